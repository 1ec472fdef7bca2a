"""`analysis/overlay.json` and `analysis/publications.txt`: a run in the form of `tdo overlay`.

The overlay has the tables of all agents when all were ready, and their subscriptions at that time.
The publications are those of the measured window. So the run can be drawn, measured and
disseminated again without messages. Nodes are numbered in the order of hosts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.agent_tables import RING_BITS, AgentTables, Place, end_us
from analysis.errors import AnalysisError
from analysis.run_directory import RecordedRun
from analysis.tables.events import SETTLE_US
from analysis.tables.interests import interest_spans
from topologies.overlays.interests import Interests, make_interests
from topologies.overlays.overlay import Keys, Overlay, distinct_edges
from topologies.overlays.overlay_file import save_overlay

OVERLAY, PUBLICATIONS = "overlay.json", "publications.txt"
_MOST_TOPICS = 10_000_000
_FIRST_ROLE = "table"  # of the entries of a slot, the first is the one that routes take

Numbers = NDArray[np.int64]


def compose_overlay(run: RecordedRun, tables: AgentTables) -> Overlay:
    """The overlay of these tables; an error names what is missing."""
    section = run.experiment.get("overlay") or {}
    return Overlay(
        _interests(run, tables),
        _edges(tables),
        tables.is_directed,
        _positions(tables),
        ids=_ids(tables),
        kind=section.get("kind"),
        settings={key: value for key, value in section.items() if key != "kind"},
        seed=run.experiment.get("seed"),
        names=tables.hosts,
    )


def choose_publications(
    run: RecordedRun, tables: AgentTables, published: pd.DataFrame
) -> pd.DataFrame:
    """The events of the measured window, of topics: `event_id`, `node`, `topic`.

    Events at the end of the run, which may not be delivered everywhere, are left out.
    """
    until_us = end_us(run) - SETTLE_US
    is_inside = (published["published_us"] >= (run.window_start_us or 0)) & (
        published["published_us"] <= until_us
    )
    node = {host: number for number, host in enumerate(tables.hosts)}
    topics = run.workload.publications.set_index("event_id")["content"]
    some = published[is_inside].sort_values("event_id")
    some = some.assign(
        node=some["publisher"].map(node).astype("Int64"),
        topic=some["event_id"].map(topics).astype("Int64"),
    )
    return some[["event_id", "node", "topic"]].dropna().astype("int64")


def write_overlay(overlay: Overlay, publications: pd.DataFrame | None, folder: Path) -> None:
    """Write both files; the second one where events have topics."""
    save_overlay(overlay, folder / OVERLAY)
    if publications is not None:
        rows = zip(publications["node"], publications["topic"], strict=True)
        lines = "".join(f"{node} {topic}\n" for node, topic in rows)
        (folder / PUBLICATIONS).write_text(f"# publisher topic\n{lines}")


def _interests(run: RecordedRun, tables: AgentTables) -> Interests:
    """The subscriptions at the time of the tables; none in a run without topics."""
    number = {host: place for place, host in enumerate(tables.hosts)}
    if not run.is_topic_based:
        return make_interests(len(number), 0, [])
    spans = interest_spans(run.records, run.workload, run.lives.ends_frame(), end_us(run))
    at_us, last_us = tables.at_us, end_us(run)
    is_held = (spans["from_us"] <= at_us) & (
        (at_us < spans["until_us"]) | (spans["until_us"] >= last_us)
    )
    topics = run.workload.interests.set_index("interest")["content"]
    held = spans[is_held & spans["host"].isin(number.keys())]
    pairs = np.column_stack([held["host"].map(number), held["interest"].map(topics)])
    return make_interests(len(number), _topic_count(run), pairs.astype(np.int64))


def _topic_count(run: RecordedRun) -> int:
    """The number of topics that the workload states, or as many as its numbers require."""
    stated = (run.experiment.get("workload") or {}).get("topics", 0)
    columns = (run.workload.interests["content"], run.workload.publications["content"])
    largest = max((int(column.max()) for column in columns if len(column)), default=-1)
    count = max(stated if isinstance(stated, int) else 0, largest + 1)
    if count > _MOST_TOPICS:
        raise AnalysisError(f"expected at most {_MOST_TOPICS} topics, found {count}")
    return count


def _edges(tables: AgentTables) -> Numbers:
    """Links that both ends hold; of a directed overlay, those that their owners hold."""
    held = {(entry.owner, entry.peer) for entry in tables.entries}
    ordered = sorted(tables.entries, key=lambda e: (e.owner, e.role != _FIRST_ROLE, e.peer))
    pairs = [
        (owner, peer)
        for owner, peer, _ in ordered
        if tables.is_directed or (owner < peer and (peer, owner) in held)
    ]
    return distinct_edges(pairs, len(tables.hosts), directed=True)


def _positions(tables: AgentTables) -> Keys | None:
    """Positions on the ring: ranks if it is full, else on the ring of 64 bits."""
    places = _all_places(tables)
    if places is None or places[0].position is None:
        return None
    positions = [place.position or 0 for place in places]
    moduli = {place.modulus for place in places}
    if len(moduli) > 1:
        raise AnalysisError("agents have positions on rings of different sizes")
    modulus, count = moduli.pop(), len(places)
    step = modulus // count
    if modulus < 1 << RING_BITS and sorted(positions) == list(range(0, step * count, step)):
        return np.array([position // step for position in positions], dtype=np.uint64)
    return np.array([_stretch(position, modulus) for position in positions], dtype=np.uint64)


def _stretch(position: int, modulus: int) -> int:
    """The last key of 64 bits that maps onto a position of a smaller ring or a lower one."""
    return ((position + 1 << RING_BITS) + modulus - 1) // modulus - 1


def _ids(tables: AgentTables) -> Keys | None:
    places = _all_places(tables)
    if places is None or places[0].id is None:
        return None
    return np.array([place.id or 0 for place in places], dtype=np.uint64)


def _all_places(tables: AgentTables) -> Sequence[Place] | None:
    """The places of all agents; None if this overlay has none."""
    if not tables.places:
        return None
    missing = [host for host in tables.hosts if host not in tables.places]
    if missing:
        raise AnalysisError(
            f"expected a place of every agent, found none of {len(missing)}, {missing[0]} first"
        )
    return [tables.places[host] for host in tables.hosts]
