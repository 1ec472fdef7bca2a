"""What the person importing a file has to say where the file itself says nothing."""

from dataclasses import dataclass

# The transit-stub generator uses the same, so that a file of GT-ITM and a network of ours compare.
DELAY_US_PER_LENGTH_UNIT = 100


@dataclass(frozen=True)
class ImportOptions:
    """Delays for links without one, and the delay of one unit of length."""

    default_delay_us: int | None = None
    delay_us_per_unit: float = DELAY_US_PER_LENGTH_UNIT
