"""Commands in README and docs: `tdo` has them, and the files that they name exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cli import make_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:sudo )?(?:\.venv/bin/)?tdo ")


def commands() -> Iterator[tuple[str, str]]:
    """Every command of `tdo` in a block of shell, with its page."""
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            for line in block.splitlines():
                if COMMAND.match(line):
                    yield page.name, COMMAND.sub("", line)


@pytest.mark.parametrize(("page", "command"), [*commands()])
def test_tdo_has_the_command(page: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    make_parser().parse_args(words)  # exits if it does not know them
    experiments = [word for word in words if word.startswith("experiments/")]
    assert not [file for file in experiments if not (ROOT / file).is_file()], page


def test_the_pages_have_commands() -> None:
    assert len([*commands()]) > 30
