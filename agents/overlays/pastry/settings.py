"""Settings of Pastry."""

from typing import Annotated, Literal

from msgspec import Meta

from agents.failure_detector import FailureDetectorSettings


class PastrySettings(FailureDetectorSettings, frozen=True, kw_only=True):
    """The settings of `PastryOverlay`."""

    b: Annotated[Literal[1, 2, 4, 8], Meta(description="bits of a digit")] = 4
    leaves: Annotated[
        int, Meta(ge=2, le=256, description="peers in a leaf set, half of them on each side")
    ] = 16
    proximity: Annotated[
        bool, Meta(description="use the nearest of the peers that fit an entry of the table")
    ] = True
    delay_samples: Annotated[
        int, Meta(ge=1, le=100, description="round trips that measure the delay to a peer")
    ] = 1
    period_s: Annotated[
        float, Meta(gt=0, description="time between two exchanges of changed tables")
    ] = 1.0
    upkeep_s: Annotated[
        float,
        Meta(gt=0, description="time in which each entry of the table is checked once"),
    ] = 30.0

    def __post_init__(self) -> None:
        """Check that both sides of the leaf set have the same size."""
        if self.leaves % 2:
            raise ValueError(f"leaves: expected an even number, found {self.leaves}")
