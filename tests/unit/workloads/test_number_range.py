"""Settings that are a number or a range: their forms, and how sweeps distinguish them."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from testbed.errors import ExperimentError
from testbed.experiment.file import load_experiment, parse_change
from testbed.experiment.settings import read_settings, settings_of
from testbed.sweeps.file import load_sweep
from workloads.number_range import RANGE, parse_range, parse_whole_range

FILE = """
[overlay]
kind = "tdo-walk"
[workload]
kind = "topics-zipf"
topics_per_peer = {}
[pubsub]
kind = "topic-flood"
"""


class Draw(Struct, frozen=True, kw_only=True):
    """A struct with a range."""

    size: Annotated[str, Meta(description="how many", extra=RANGE)] = "4"

    def __post_init__(self) -> None:
        parse_whole_range("size", self.size)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("4", 4, 4), ("2..6", 2, 6), (" 2 .. 6 ", 2, 6), ("0..0", 0, 0)]
)
def test_a_range_is_one_number_or_two(text: str, low: int, high: int) -> None:
    assert parse_whole_range("size", text) == (low, high)
    assert parse_range("size", text) == (low, high)


def test_a_range_can_have_fractions_if_the_setting_allows_them() -> None:
    assert parse_range("after_s", "0.5..1.25") == (0.5, 1.25)
    with pytest.raises(ValueError, match="^size: expected whole numbers, .* found '0.5..1'$"):
        parse_whole_range("size", "0.5..1")


@pytest.mark.parametrize("text", ["", "x", "2..", "..6", "2-6", "-1..3", "2..4..6", "1e3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="^size: expected a number or a range, as in 4 or 2..6"):
        parse_range("size", text)


def test_the_lower_bound_is_first() -> None:
    with pytest.raises(ValueError, match="^size: expected the lower number first, found '6..2'$"):
        parse_range("size", "6..2")


@pytest.mark.parametrize(
    ("given", "read"), [(4, "4"), ([2, 6], "2..6"), ("2..6", "2..6"), ([2.0, 6], "2.0..6")]
)
def test_a_setting_becomes_a_text_from_any_form(given: Any, read: str) -> None:
    assert read_settings(Draw, "", {"size": given}).size == read
    assert settings_of(Draw)["size"].type_name == "range"


@pytest.mark.parametrize("given", [[2], [2, 4, 6], ["2", "4"], [True, 4], [], {"low": 2}, True])
def test_a_setting_that_is_no_range_is_refused(given: Any) -> None:
    with pytest.raises(ExperimentError, match="^workload.size: expected "):
        read_settings(Draw, "workload.", {"size": given})


def ranges_of(folder: Path, written: str, *changes: str) -> list[str]:
    """The ranges in the experiments of a file."""
    path = folder / "mine.toml"
    path.write_text(FILE.format(written))
    sweep = load_sweep(path, dict(map(parse_change, changes)))
    return [swept.experiment.workload["topics_per_peer"] for swept in sweep.experiments]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("4", ["4"]),
        ("[2, 6]", ["2..6"]),
        ("'2..6'", ["2..6"]),
        ("[[2, 6], [1, 3]]", ["2..6", "1..3"]),
        ("[4, [2, 6]]", ["4", "2..6"]),
    ],
)
def test_two_numbers_are_a_range_and_ranges_are_swept(
    written: str, found: list[str], tmp_path: Path
) -> None:
    assert ranges_of(tmp_path, written) == found


def test_a_file_with_only_a_range_is_no_sweep(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE.format("[2, 6]"))
    assert load_sweep(path).is_plain
    assert load_sweep(path).experiments[0].experiment == load_experiment(path)


def test_the_command_line_accepts_ranges_and_kinds_can_be_swept(tmp_path: Path) -> None:
    kinds = 'workload.kind=["topics-uniform", "topics-zipf"]'
    assert ranges_of(tmp_path, "4", "workload.topics_per_peer=[2, 6]", kinds) == ["2..6"] * 2


@pytest.mark.parametrize("written", ["[1, 2, 3]", "[2]", "[]"])
def test_a_flat_list_of_another_length_is_refused(written: str, tmp_path: Path) -> None:
    wanted = r"workload.topics_per_peer: expected a range of two numbers, as in \[2, 6\], or a"
    with pytest.raises(ExperimentError, match=wanted):
        ranges_of(tmp_path, written)


def test_a_wrong_range_of_a_sweep_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"topics_per_peer\[1\]: expected the lower number"):
        ranges_of(tmp_path, "[[2, 6], [3, 1]]")
