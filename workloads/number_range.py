"""Settings that are one number or a range of numbers, as in `4` and `2..6`.

An experiment file may also write a range as a list of two numbers, `[2, 6]`. The setting is
declared as a text with the mark `RANGE`: `Annotated[str, Meta(description="...", extra=RANGE)]`.
"""

import re
from typing import NamedTuple

RANGE = {"range": True}

_NUMBER = r"(\d+(?:\.\d+)?)"
_PATTERN = re.compile(rf"\s*{_NUMBER}\s*(?:\.\.\s*{_NUMBER}\s*)?")


class NumberRange(NamedTuple):
    """All numbers from the low one to the high one, both included."""

    low: float
    high: float


class WholeRange(NamedTuple):
    """All whole numbers from the low one to the high one, both included."""

    low: int
    high: int


def parse_range(key: str, text: str) -> NumberRange:
    """The range in a text such as `30..60` or `45`; `key` names the setting in errors."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{key}: expected a number or a range, as in 4 or 2..6; found {text!r}")
    low, high = float(match[1]), float(match[2] or match[1])
    if low > high:
        raise ValueError(f"{key}: expected the lower number first, found {text!r}")
    return NumberRange(low, high)


def parse_whole_range(key: str, text: str) -> WholeRange:
    """The range of whole numbers in a text such as `2..6` or `4`."""
    found = parse_range(key, text)
    if not (found.low.is_integer() and found.high.is_integer()):
        raise ValueError(f"{key}: expected whole numbers, as in 4 or 2..6; found {text!r}")
    return WholeRange(int(found.low), int(found.high))
