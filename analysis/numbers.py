"""Numbers for readers: counts whole and with separators, shares in percent, others with a unit."""

from typing import Any


def read_number(value: Any) -> str:
    """A number with separators, without an exponent if it is large; other values as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value.is_integer() or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def read_quantity(value: Any, unit: str) -> str:
    """A number with its unit; a share is in percent."""
    if unit == "share":
        return f"{read_number(100 * value)} %"
    return f"{read_number(value)} {unit}".rstrip()
