"""Settings of all drawn workloads: number and times of events, and churn."""

from typing import Annotated

from msgspec import Meta, Struct

from workloads.schedule import Schedule


class EventSettings(Struct, frozen=True, kw_only=True):
    """Number and times of events, and churn meanwhile."""

    events: Annotated[int, Meta(ge=0, description="number of events")] = 200
    rate_per_s: Annotated[float, Meta(gt=0, description="events per second")] = 20.0
    start_s: Annotated[float, Meta(ge=0, description="time of the first event")] = 40.0
    payload_bytes: Annotated[
        int, Meta(ge=0, le=1_414, description="bytes that an event carries beside its content")
    ] = 0
    churn: Annotated[
        float, Meta(ge=0, le=1, description="share of the peers that leaves at each step of churn")
    ] = 0.0
    churn_every_events: Annotated[
        int, Meta(ge=1, description="events between two steps of churn")
    ] = 100

    @property
    def schedule(self) -> Schedule:
        """When events are published."""
        return Schedule(self.start_s, self.rate_per_s)
