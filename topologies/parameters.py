"""Checks of the parameters of generators."""

from topologies.errors import TopologyError


def check_parameter(name: str, found: float, expected: str, is_good: bool) -> None:
    """Raise a TopologyError with what was expected and found, unless the parameter is valid."""
    if not is_good:
        raise TopologyError(f"{name}: expected {expected}, found {found!r}")


def check_seed(seed: int) -> None:
    """Raise a TopologyError unless this is a valid seed."""
    check_parameter("seed", seed, "a whole number, 0 or more", isinstance(seed, int) and seed >= 0)
