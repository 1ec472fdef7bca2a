"""Relative links of README, CONTRIBUTING, CHANGELOG and docs lead to files and headings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page; a repeated one gets a number."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(CODE.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        found[name] = found.get(name, 0) + 1
    return {f"{name}-{n}" if n else name for name, times in found.items() for n in range(times)}


def broken_links(page: Path) -> Iterator[str]:
    """The relative links of a page without a target."""
    for link in LINK.findall(CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        is_file = target.suffix == ".md" and target.is_file()
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (
            anchor and not (is_file and anchor in anchors(target.read_text()))
        ):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_have_a_target(page: Path) -> None:
    assert not [*broken_links(page)]


def test_every_page_is_linked_from_another() -> None:
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in PAGES
        for link in LINK.findall(page.read_text())
        if link.partition("#")[0]
    }
    assert not [page.name for page in PAGES if page not in linked and page != ROOT / "README.md"]


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing\n[a](none.md) [b](#other) [c](#one-thing) [d](https://x.example)\n"
    )
    assert [*broken_links(page)] == ["none.md", "#other"]
