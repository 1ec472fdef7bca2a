"""Parameters of generators: checked before anything is made of them."""

from topologies.errors import TopologyError


def check_parameter(name: str, found: float, expected: str, is_good: bool) -> None:
    """Raise a TopologyError that says what was expected and found, unless all is good."""
    if not is_good:
        raise TopologyError(f"{name}: expected {expected}, found {found!r}")


def check_seed(seed: int) -> None:
    """Raise a TopologyError unless a generator of random numbers can start from this seed."""
    check_parameter("seed", seed, "a whole number, 0 or more", isinstance(seed, int) and seed >= 0)
