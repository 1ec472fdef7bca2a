"""Options of an import, for delays and units that the file does not have."""

from dataclasses import dataclass

# As in the transit-stub generator, so that its networks are comparable with GT-ITM's files.
DELAY_US_PER_LENGTH_UNIT = 100


@dataclass(frozen=True)
class ImportOptions:
    """Delays for links without one, and the delay of one unit of length."""

    default_delay_us: int | None = None
    delay_us_per_unit: float = DELAY_US_PER_LENGTH_UNIT
