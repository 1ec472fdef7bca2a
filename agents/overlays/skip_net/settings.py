"""Settings of skip-net."""

from typing import Annotated

from msgspec import Meta

from agents.failure_detector import FailureDetectorSettings


class SkipNetSettings(FailureDetectorSettings, frozen=True, kw_only=True):
    """The settings of `SkipNetOverlay`."""

    delay_samples: Annotated[
        int, Meta(ge=1, le=100, description="round trips that measure the delay to a neighbour")
    ] = 3
    period_s: Annotated[
        float, Meta(gt=0, description="time between two checks of unanswered messages")
    ] = 1.0
    check_s: Annotated[float, Meta(gt=0, description="time between two checks of all links")] = 10.0
