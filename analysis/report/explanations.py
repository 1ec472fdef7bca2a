"""The words of `explanations.toml`: what figures mean, and where they stand in a report."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Explanation(NamedTuple):
    """A figure in words."""

    label: str
    explain: str


class Group(NamedTuple):
    """Figures that belong together, on one side of the page.

    Where `of` names a figure, the metrics are its parts.
    """

    title: str
    side: str
    metrics: dict[str, Explanation]
    of: str = ""


@cache
def read_groups() -> tuple[Group, ...]:
    """All groups, in the order of the page."""
    text = files("analysis.report").joinpath("page", "explanations.toml").read_text("utf-8")
    return tuple(
        Group(
            group["title"],
            group["side"],
            {name: Explanation(**words) for name, words in group["metrics"].items()},
            group.get("of", ""),
        )
        for group in tomllib.loads(text)["group"]
    )


def explain(name: str) -> Explanation:
    """The words for a figure; one that nobody has explained goes by its name."""
    for group in read_groups():
        if not group.of and name in group.metrics:
            return group.metrics[name]
    words = name.replace("_", " ")
    return Explanation(words[:1].upper() + words[1:], "")
