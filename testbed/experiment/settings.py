"""Settings from tables of a TOML file, checked against the fields of a class.

The class is a msgspec struct or a dataclass whose fields say all that is known of a setting, as in
`ttl: Annotated[int, Meta(ge=1, description="hops of a walk")] = 100`: type, range, default and
what it is for. A choice is a `Literal`. What a field alone cannot say, `__post_init__` does with a
ValueError. `tdo list kinds` prints the same fields.
"""

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta

from testbed.errors import ExperimentError

_Settings = TypeVar("_Settings")
_TYPE_NAMES: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


_known: dict[type[Any], Mapping[str, "Setting"]] = {}


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a class of settings; without a default it is required."""

    name: str
    type: Any
    default: Any
    description: str
    choices: tuple[Any, ...]
    bounds: Meta

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is NODEFAULT

    @property
    def takes_range(self) -> bool:
        """Whether the value is a number or a range of numbers, which is kept as a text."""
        return bool((self.bounds.extra or {}).get("range"))

    @property
    def type_name(self) -> str:
        """The name of the type: `int`, `float`, `str` and `bool` are also types of TOML."""
        if self.takes_range:
            return "range"
        return getattr(self.type, "__name__", None) or str(self.type)

    @property
    def range(self) -> str:
        """The range of a number in words, or an empty text."""
        low, above, high, below = self.bounds.ge, self.bounds.gt, self.bounds.le, self.bounds.lt
        if low is not None and high is not None:
            return f"{low} to {high}"
        parts = [
            f"{low} or more" if low is not None else "",
            f"above {above}" if above is not None else "",
            f"at most {high}" if high is not None else "",
            f"below {below}" if below is not None else "",
        ]
        return ", ".join(filter(None, parts))

    def read(self, key: str, value: Any) -> Any:
        """The value with the field's type; raises if it is of the wrong type or out of range."""
        if self.takes_range:
            value = range_text(key, value)
        if self.type is str:
            value = _as_text(value)
        if self.type not in _TYPE_NAMES:
            return _read_other(key, value, self.type)
        check_type(key, value, self.type)
        if self.choices:
            check_choice(key, value, self.choices)
        if self.type in (int, float) and not self._is_in_range(value):
            raise ExperimentError(
                f"{key}: expected {self.range or 'a finite number'}, found {value}"
            )
        return value

    def _is_in_range(self, value: float) -> bool:
        bounds = self.bounds
        return (
            math.isfinite(value)
            and (bounds.ge is None or value >= bounds.ge)
            and (bounds.gt is None or value > bounds.gt)
            and (bounds.le is None or value <= bounds.le)
            and (bounds.lt is None or value < bounds.lt)
        )


def settings_of(cls: type[Any]) -> Mapping[str, Setting]:
    """The fields of a class of settings, by name; cached for each class."""
    if cls not in _known:
        _known[cls] = _find_settings(cls)
    return _known[cls]


def _find_settings(cls: type[Any]) -> Mapping[str, Setting]:
    info = msgspec.inspect.type_info(cls)
    assert isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType)
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: _describe(field, hints[field.name]) for field in info.fields}


def read_settings(cls: type[_Settings], prefix: str, given: Any) -> _Settings:
    """An instance of a class of settings from a table; `prefix` is before its keys in errors."""
    check_type(prefix.rstrip(".") or "experiment", given, dict)
    known = settings_of(cls)
    check_keys(prefix, given, known)
    values = {key: known[key].read(prefix + key, value) for key, value in given.items()}
    for key, setting in known.items():
        if setting.is_required and key not in given:
            raise ExperimentError(f"{prefix}{key}: expected a value, found none")
    try:
        return cls(**values)
    except ValueError as error:
        raise ExperimentError(f"{prefix}{error}") from error


def check_keys(prefix: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise if a key is unknown; the message names the nearest known key."""
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            hint = f"; the nearest known key is {prefix}{near[0]}" if near else ""
            raise ExperimentError(f"{prefix}{key}: expected a known key, found {key!r}{hint}")


def check_type(key: str, value: Any, wanted: type) -> None:
    """Raise if a value is not of the wanted type; a whole number is a number, too."""
    accepted = (int, float) if wanted is float else wanted
    is_stray_bool = isinstance(value, bool) and wanted is not bool
    if is_stray_bool or not isinstance(value, accepted):
        raise ExperimentError(f"{key}: expected {_TYPE_NAMES[wanted]}, found {value!r}")


def check_choice(key: str, value: Any, choices: Collection[Any]) -> None:
    """Raise if a value is not one of the choices."""
    if value not in choices:
        names = ", ".join(map(str, choices))
        raise ExperimentError(f"{key}: expected one of {names}; found {value!r}")


def _describe(field: msgspec.inspect.Field, hint: Any) -> Setting:
    bounds, choices = Meta(), tuple[Any, ...]()
    if get_origin(hint) is Annotated:
        hint, bounds, *_ = get_args(hint)
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        hint = type(choices[0])
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return Setting(field.name, hint, default, bounds.description or "", choices, bounds)


def range_text(key: str, value: Any) -> Any:
    """A range that is given as two numbers, as a text: `[2, 6]` is `2..6`."""
    if not isinstance(value, list):
        return value
    if len(value) != 2 or not all(map(_is_number, value)):
        raise ExperimentError(
            f"{key}: expected a number or a range, as in 4 or [2, 6]; found {value!r}"
        )
    return f"{value[0]}..{value[1]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_text(value: Any) -> Any:
    """A number as a text if the field is a text: a limit may be "lg2" or 8."""
    return str(value) if _is_number(value) else value


def _read_other(key: str, value: Any, wanted: Any) -> Any:
    """A value of a composed type, as in `list[int]` or `int | str`."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise ExperimentError(f"{key}: {_first_small(str(error))}; found {value!r}") from error


def _first_small(text: str) -> str:
    return text[:1].lower() + text[1:]
