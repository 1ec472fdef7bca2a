"""Settings from tables: defaults and types by the fields of a class, and errors."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from testbed.errors import ExperimentError
from testbed.experiment.settings import read_settings, settings_of


class Walk(Struct, frozen=True, kw_only=True):
    """A struct with a field of each type."""

    ttl: Annotated[int, Meta(ge=1, description="most hops")] = 100
    share: Annotated[float, Meta(gt=0, le=1)] = 0.1
    skew: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    cores: Annotated[int, Meta(ge=1, le=200)] = 5
    spare: Annotated[int, Meta(le=3)] = 0
    free: float = 2.0
    rule: Annotated[Literal["mlink", "dbest"], Meta(description="which peers")] = "mlink"
    limit: str = "none"
    is_quiet: bool = False
    sizes: list[int] = []

    def __post_init__(self) -> None:
        if self.limit == "all" and self.ttl > 100:
            raise ValueError(f"limit: expected a limit for so many hops, found {self.limit!r}")


@dataclass(frozen=True)
class Fault:
    """A dataclass with a required field."""

    at_s: float
    targets: list[str] = field(default_factory=list)


def test_defaults_are_filled_in_and_given_values_are_kept() -> None:
    read = read_settings(Walk, "overlay.", {"ttl": 7, "share": 1, "rule": "dbest"})
    assert read == Walk(ttl=7, share=1, rule="dbest")
    assert isinstance(read.share, int)  # as in the file: digests of sweeps depend on it


def test_a_number_is_converted_if_a_text_is_expected() -> None:
    assert read_settings(Walk, "", {"limit": 8}).limit == "8"


def test_other_types_are_read_as_declared() -> None:
    assert read_settings(Walk, "", {"sizes": [1, 2]}).sizes == [1, 2]
    with pytest.raises(ExperimentError, match=r"sizes: expected `int`, got `str`.*; found \['x'\]"):
        read_settings(Walk, "", {"sizes": ["x"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tll": 3}, "overlay.tll: .* found 'tll'; the nearest known key is overlay.ttl"),
        ({"ttl": 0}, "overlay.ttl: expected 1 or more, found 0"),
        ({"ttl": 1.5}, "overlay.ttl: expected a whole number, found 1.5"),
        ({"ttl": True}, "overlay.ttl: expected a whole number, found True"),
        ({"share": 0}, "overlay.share: expected above 0, at most 1, found 0"),
        ({"share": "x"}, "overlay.share: expected a number, found 'x'"),
        ({"skew": 1.0}, "overlay.skew: expected 0 or more, below 1, found 1.0"),
        ({"cores": 201}, "overlay.cores: expected 1 to 200, found 201"),
        ({"spare": 4}, "overlay.spare: expected at most 3, found 4"),
        ({"free": float("nan")}, "overlay.free: expected a finite number, found nan"),
        ({"rule": "best"}, "overlay.rule: expected one of mlink, dbest; found 'best'"),
        ({"rule": 3}, "overlay.rule: expected one of mlink, dbest; found '3'"),
        ({"limit": True}, "overlay.limit: expected a text, found True"),
        ({"is_quiet": 1}, "overlay.is_quiet: expected true or false, found 1"),
        ({"limit": "all", "ttl": 101}, "overlay.limit: expected a limit for so many hops"),
        (3, "overlay: expected a table, found 3"),
    ],
)
def test_a_wrong_value_is_reported_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=f"^{message}"):
        read_settings(Walk, "overlay.", given)


def test_a_dataclass_is_read_like_a_struct() -> None:
    assert read_settings(Fault, "fault[0].", {"at_s": 1}) == Fault(1)
    with pytest.raises(ExperimentError, match=r"fault\[0\].at_s: expected a value, found none"):
        read_settings(Fault, "fault[0].", {})


def test_fields_have_descriptions() -> None:
    known = settings_of(Walk)
    assert (known["ttl"].type_name, known["ttl"].default, known["ttl"].description) == (
        "int", 100, "most hops",
    )  # fmt: skip
    assert [known[name].range for name in ("ttl", "share", "skew", "cores", "free")] == [
        "1 or more", "above 0, at most 1", "0 or more, below 1", "1 to 200", "",
    ]  # fmt: skip
    assert known["rule"].choices == ("mlink", "dbest")
    assert settings_of(Fault)["at_s"].is_required
