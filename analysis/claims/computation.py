"""Computations: evidence for claims from a pure function and its arguments, without a network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from analysis.errors import AnalysisError
from analysis.figures.sweep import Figure

Value = str | int | float | bool
Function = Callable[..., Mapping[str, Any]]

SEED = "seed"


class UnfitChange(AnalysisError):
    """A change that a computation cannot take."""


@dataclass(frozen=True, slots=True)
class Point:
    """One call of a function: the values of its parameters, and its seed."""

    values: Mapping[str, Value]
    seed: int


@dataclass(frozen=True, slots=True)
class Computation:
    """A pure function, with the values and seeds for which it is computed, in every combination.

    The function gets `seed` and each parameter by name, and returns numbers by name. It may run in
    another process or on another machine, so it is a function of a module.

    `files` are parameters that are paths of data files, each with names below the folder of data
    files under which it is looked for; the path is empty where there is none of them.
    """

    name: str
    function: Function
    parameters: Mapping[str, tuple[Value, ...]]
    seeds: tuple[int, ...]
    figures: tuple[Figure, ...] = ()
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that distinguish its points, without the seed and data files."""
        return tuple(key for key in self.parameters if key not in self.files)

    @property
    def points(self) -> list[Point]:
        """Every combination of values and seeds."""
        return [
            Point(dict(zip(self.parameters, values, strict=True)), seed)
            for values in product(*self.parameters.values())
            for seed in self.seeds
        ]

    def change(self, changes: Mapping[str, Any]) -> "Computation":
        """The same with one or more other values of a parameter or the seed."""
        given = {key: self._check(key, value) for key, value in changes.items()}
        seeds = given.pop(SEED, self.seeds)
        return replace(self, parameters={**self.parameters, **given}, seeds=seeds)

    def _check(self, key: str, given: Any) -> tuple[Any, ...]:
        known = {**self.parameters, SEED: self.seeds}
        if key not in known:
            raise UnfitChange(f"{self.name}: expected one of {', '.join(known)}, found {key!r}")
        values = tuple(given) if isinstance(given, list | tuple) else (given,)
        kind = type(known[key][0])
        fitting = [value for value in values if type(value) is kind]
        if len(fitting) < len(values) or not values or len(set(values)) < len(values):
            raise UnfitChange(
                f"{self.name}: {key}: expected different values like {known[key][0]!r}, "
                f"found {given!r}"
            )
        return values
