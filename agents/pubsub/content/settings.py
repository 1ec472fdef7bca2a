"""The settings of content-based forwarding."""

from typing import Annotated

from msgspec import Meta, Struct


class ContentSettings(Struct, frozen=True, kw_only=True):
    """How subscriptions are announced, and how events are kept for peers that lack them."""

    psi: Annotated[int, Meta(ge=1, description="recent events in the history of a peer")] = 1_000
    replay_window_s: Annotated[
        float, Meta(gt=0, description="how long events are kept to be offered again")
    ] = 60.0
    handover_slack_s: Annotated[
        float, Meta(ge=0, description="how much older than a tree an offered event may be")
    ] = 30.0
    replay_delay_s: Annotated[
        float, Meta(ge=0, description="how long offers over a link are collected")
    ] = 0.5
    handover_delay_s: Annotated[
        float, Meta(ge=0, description="how long offers over a newer tree are collected")
    ] = 2.0
    update_delay_s: Annotated[
        float, Meta(gt=0, description="how long changes of subscriptions are collected")
    ] = 0.2
    pace_delay_s: Annotated[
        float, Meta(gt=0, description="time between two batches of missed events and offers")
    ] = 0.1
    pace_events: Annotated[int, Meta(ge=1, description="missed events in a batch to each peer")] = (
        10
    )
    ask_after_s: Annotated[
        float,
        Meta(
            gt=0, description="time after which missing subscriptions of a neighbour are requested"
        ),
    ] = 3.0
    merging: Annotated[
        bool, Meta(description="send subscriptions whose union is a box as that one box")
    ] = False
    history_every_events: Annotated[
        int, Meta(ge=1, description="events between two announcements of the history")
    ] = 10
    recalculate_every_events: Annotated[
        int, Meta(ge=0, description="events after which a new tree is requested; 0: never")
    ] = 0
    recalculations: Annotated[
        int, Meta(ge=0, description="maximum number of new trees requested; 0: no limit")
    ] = 0
