"""docs/workloads.md has every kind and setting with its default, and its examples run."""

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.experiment.file import load_experiment
from testbed.experiment.kinds import find_kind
from testbed.experiment.settings import settings_of
from workloads.kinds import WORKLOADS

PAGE = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TABLES = [part for part in PAGE.split("\n\n") if part.startswith("| setting | default |")]
DEFAULTS = [
    row
    for table in TABLES
    for row in re.findall(r"^\| `(\w+)` \| ([^|]*?) \|", table, re.MULTILINE)
]
IN_WORDS = {("file", "required"), ("subscriptions", "none"), ("publishers", "all hosts")}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_every_kind_and_setting_is_on_the_page(kind: str) -> None:
    assert f"| `{kind}` |" in PAGE
    for name in settings_of(find_kind("workload", kind).Settings):
        assert f"| `{name}` |" in PAGE, name


def plain(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_defaults_on_the_page_are_those_of_the_settings() -> None:
    known = {
        (name, plain(setting.default))
        for kind in WORKLOADS
        for name, setting in settings_of(find_kind("workload", kind).Settings).items()
    }
    stated = {(name, text.strip("`")) for name, text in DEFAULTS}
    assert len(stated) > 25
    assert stated - known == IN_WORDS


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_are_valid_experiments(number: int, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(EXAMPLES[number])
    assert load_experiment(file).pubsub["kind"] == "topic-flood"


def test_the_code_on_the_page_draws_interests() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)
    assert set(found["wanted"].peer.tolist()) == set(range(1_000))
