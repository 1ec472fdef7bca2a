"""Delays as text: a number with a required unit."""

import math
import re

from topologies.errors import TopologyError

US_PER_UNIT = {"us": 1, "ms": 1_000, "s": 1_000_000}
# Delays of routes are limited to 134 s; links of terrestrial networks have far less.
LARGEST_DELAY_US = 100_000_000

_DELAY = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ]*)\s*")


def parse_delay(text: str, what: str = "delay") -> int:
    """The microseconds in a text such as 5ms, 300us or 0.5s; `what` names it in errors."""
    match = _DELAY.fullmatch(text)
    unit = match[2].lower().replace("µ", "u") if match else ""
    if match is None or unit not in US_PER_UNIT:
        wrote_no_unit = match is not None and not unit
        found = f"{text!r} without a unit" if wrote_no_unit else repr(text)
        example = f"{text.strip()}ms" if wrote_no_unit else "5ms"
        raise TopologyError(
            f"{what}: expected a number with its unit us, ms or s, found {found}; "
            f"write for example {example}"
        )
    return whole_delay_us(float(match[1]) * US_PER_UNIT[unit], text, what)


def whole_delay_us(delay_us: float, found: object, what: str = "delay") -> int:
    """The delay rounded to whole microseconds, checked against the limits of a link."""
    if not (math.isfinite(delay_us) and 0 <= delay_us <= LARGEST_DELAY_US):
        raise TopologyError(
            f"{what}: expected 0 or more, and at most {LARGEST_DELAY_US // 1_000_000} s, "
            f"found {found}; correct the delay"
        )
    return round(delay_us)
