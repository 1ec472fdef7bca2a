"""The overlay of BeaConvey: plans of a master, sent by messages, with failures at any time."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from agents.agent import Agent
from agents.announcements import EpochBegun, EpochDrained, EpochEnded, PreparesEpoch, RingView
from agents.overlays.beaconvey.master import Master
from agents.overlays.beaconvey.messages import Belief, Commit, Plan, Retire, Status, Wants
from agents.overlays.beaconvey.overlay import BeaConveyOverlay
from agents.overlays.beaconvey.planning import Layout
from agents.overlays.beaconvey.settings import BeaConveyOverlaySettings
from agents.overlays.ring.circle import RANK_SPACING
from agents.overlays.ring.messages import Member
from agents.protocol import Announce, PeerId, Record, Send, Surroundings
from agents.wire.codec import Datagram, encode
from tests.fixtures.rings import Rings, S, underlay_of
from tests.property.agents.test_hostile_messages import Hostile
from tests.simulation.agents.test_record_schema import faults_of
from tests.simulation.agents.test_ring import links_between_halves
from topologies.overlays.beaconvey import BeaConveyOverlaySettings as OfflineSettings
from topologies.overlays.beaconvey import plan_overlay
from workloads.share import NEVER_US, OwnInterest, Share

PEERS = 16
CHANCE = Random(1)
WANTED = [sorted(CHANCE.sample(range(20), 4)) for _ in range(PEERS)]
SHARES = [Share(tuple(OwnInterest(0, t, 0, NEVER_US) for t in own)) for own in WANTED]


def planned(seed: int = 1, **settings: Any) -> Rings:
    """Peers with topics that have not started yet."""
    quick = {"collect_s": 2.0, "replan_s": 0.0, **settings}
    return Rings(PEERS, seed, BeaConveyOverlay, shares=SHARES, **quick)


def run_until(rings: Rings, is_over: Callable[[], bool], within_s: float = 40.0) -> Rings:
    for _ in range(int(within_s / 0.5)):
        if is_over():
            return rings
        rings.run_for(0.5)
    epochs = [(p.chief, p.current, sorted(p.rings)) for p in rings.protocols.values()]
    raise AssertionError((epochs, list(rings.wrong())[:3]))


def is_one(rings: Rings) -> bool:
    """Whether all peers publish in the same epoch, on one ring, and have one master."""
    peers = rings.protocols.values()
    is_agreed = len({(peer.current, peer.chief) for peer in peers}) == 1
    return is_agreed and all(peer.current > 0 for peer in peers) and not list(rings.wrong())


def is_alone_in_use(rings: Rings) -> bool:
    """Whether only the rings of the current epoch and of addresses exist."""
    return is_one(rings) and all(len(peer.rings) == 2 for peer in rings.protocols.values())


@pytest.mark.parametrize("overlay", ["sl", "s", "l", "none"])
def test_the_first_epoch_is_the_overlay_of_the_offline_computation(overlay: Any) -> None:
    rings = planned(overlay=overlay, successors=6)
    run_until(rings, lambda: is_one(rings))
    order = sorted(rings.addresses)
    wanted = [WANTED[rings.addresses.index(peer)] for peer in order]
    plan = plan_overlay(wanted, OfflineSettings(overlay=overlay), 1)
    for at, peer in enumerate(order):
        ring = rings.alive[peer]
        assert ring.me.position == plan.rank[at] * RANK_SPACING
        expected = {order[finger] for finger in plan.fingers[at]}
        assert {place.peer for place in ring.view.fingers} == expected
    placed = [values for _, _, what, values in rings.records if what == "placed"]
    assert len(placed) == PEERS
    assert {values["modulus"] for values in placed} == {f"{PEERS << 40:x}"}
    assert not [row for row in rings.records if faults_of(*row[2:])]
    rings.run_for(3)
    assert len([r for r in rings.records if r[2] == "epoch_planned"]) == 1


@pytest.mark.parametrize("at_s", [1.5, 4.4, 5.5, 7.6, 9.0])
def test_a_crash_of_the_master_at_any_time_is_survived(at_s: float) -> None:
    rings = planned(2).run(int(at_s * S))
    rings.kill([min(rings.addresses)])
    run_until(rings, lambda: is_alone_in_use(rings))
    rings.start(min(rings.addresses))
    rings.run_for(0.1)
    run_until(rings, lambda: is_alone_in_use(rings))
    assert {peer.chief for peer in rings.protocols.values()} == {min(rings.addresses)}


def test_a_peer_that_starts_between_plans_is_placed_at_once_and_better_later() -> None:
    rings = planned(3, replan_s=25.0)
    late = sorted(rings.addresses)[5]
    rings.run(S)
    rings.kill([late])
    run_until(rings, lambda: is_one(rings))
    epoch = rings.protocols[min(rings.addresses)].current
    rings.start(late)
    rings.run_for(0.1)
    run_until(rings, lambda: is_one(rings), within_s=8.0)
    overlay = rings.protocols[late]
    assert overlay.current == epoch
    assert overlay.ring.me.position % RANK_SPACING == RANK_SPACING // 2
    run_until(rings, lambda: is_alone_in_use(rings) and overlay.current > epoch)
    assert overlay.ring.me.position % RANK_SPACING == 0


def test_after_a_third_crashes_the_ring_is_repaired_and_planned_again() -> None:
    rings = planned(4, replan_s=10.0, successors=8)
    run_until(rings, lambda: is_one(rings))
    rings.kill(Random(2).sample(rings.addresses, PEERS // 3))
    run_until(rings, lambda: is_one(rings), within_s=15.0)
    rings.run_for(10)
    run_until(rings, lambda: is_alone_in_use(rings))
    ranks = {peer.ring.circle.ranks for peer in rings.protocols.values()}
    assert ranks == {PEERS - PEERS // 3}


@pytest.mark.slow
def test_the_parts_of_a_partition_make_plans_and_merge_later() -> None:
    rings = planned(6, replan_s=12.0)
    run_until(rings, lambda: is_one(rings))
    cut = links_between_halves(underlay_of(PEERS))
    for a, b in cut:
        rings.simulator.set_link(rings.simulator.now_us, a, b, False)
    rings.run_for(30)
    peers = rings.protocols.values()
    assert len({peer.chief for peer in peers}) == len({peer.current for peer in peers}) == 2
    for a, b in cut:
        rings.simulator.set_link(rings.simulator.now_us, a, b, True)
    run_until(rings, lambda: is_alone_in_use(rings))


def test_one_seed_twice_gives_the_same_records() -> None:
    assert planned(5).run(12 * S).records == planned(5).run(12 * S).records


def follower(**settings: Any) -> BeaConveyOverlay:
    """Peer 50, which follows peer 2."""
    made = BeaConveyOverlay(Surroundings(50, (), Random(1), BeaConveyOverlaySettings(**settings)))
    made.on_start(0)
    made.on_message(1, 2, Belief(2))
    return made


def plan(epoch: int) -> Plan:
    others = (Member(60, RANK_SPACING), Member(2, 2 * RANK_SPACING))
    return Plan(epoch, 3, 0, others[::-1], others, ())


def announced(effects: Any) -> list[Any]:
    return [one.content for one in effects if isinstance(one, Announce)]


def test_only_the_master_plans() -> None:
    overlay = follower()
    assert announced(overlay.on_message(2, 60, plan(5))) == []
    views = [one for one in announced(overlay.on_message(2, 2, plan(5))) if type(one) is RingView]
    assert [view.epoch for view in views] == [5]
    assert announced(overlay.on_message(3, 60, Commit(5))) == []
    assert EpochBegun(5) in announced(overlay.on_message(3, 2, Commit(5)))


def test_a_plan_that_was_not_committed_is_replaced_by_the_next() -> None:
    overlay = follower()
    overlay.on_message(2, 2, plan(5))
    assert EpochEnded(5) in announced(overlay.on_message(3, 2, plan(6)))
    assert sorted(overlay.rings) == [0, 6]
    assert announced(overlay.on_message(4, 2, plan(4))) == []  # It would be older and is ignored.
    overlay.on_message(5, 2, Commit(6))
    assert sorted(overlay.rings) == [0, 6] and overlay.current == 6


def status_of(overlay: BeaConveyOverlay, now_us: int) -> Status:
    """The last status that it sent to the master."""
    overlay._reports.forget()
    told = [e for e in overlay.on_timer(now_us, "work") if isinstance(e, Send)]
    (status,) = (e.message for e in told if isinstance(e.message, Status))
    return status


def test_an_epoch_begins_when_layers_are_prepared_and_ends_without_events() -> None:
    overlay = follower(prepare_s=60.0)
    overlay.on_message(2, 2, plan(5))
    overlay.on_announcement(2, PreparesEpoch(5))
    assert not status_of(overlay, 10 * S).is_settled
    assert status_of(overlay, 70 * S).is_settled  # a time limit applies
    overlay.on_message(71 * S, 2, Commit(5))
    overlay.on_message(72 * S, 2, plan(9))
    assert status_of(overlay, 80 * S).is_settled  # No layer announces that it prepares.
    overlay.on_message(80 * S, 2, Commit(9))
    assert not status_of(overlay, 95 * S).is_drained
    overlay.on_announcement(95 * S, EpochDrained(5))
    assert status_of(overlay, 96 * S).is_drained
    assert announced(overlay.on_message(97 * S, 2, Retire(9)))[-1] == EpochEnded(5)
    assert sorted(overlay.rings) == [0, 9]


def master(*peers: PeerId) -> Master:
    """A master that knows some peers with one topic each."""
    made = Master(1, BeaConveyOverlaySettings(), 7)
    for peer in peers:
        made.on_status(0, peer, Status(1, 0, 0, 0, 0, False, True))
        made.on_wants(0, peer, Wants(1, 0, 1, (peer,)))
    return made


def test_no_plan_before_all_topics_are_known_and_unchanged() -> None:
    made = master(1, 2)
    made.on_wants(0, 3, Wants(1, 1, 2, (3,)))
    made.on_status(0, 3, Status(1, 0, 0, 0, 0, False, True))
    assert made.compute(10 * S) is None  # One of 3 pieces is missing.
    made.on_wants(10 * S, 3, Wants(1, 0, 2, (4,)))
    assert made.compute(11 * S) is None
    compute = made.compute(15 * S)
    assert compute is not None and compute.arguments[0] == [[1], [2], [3, 4]]
    assert made.compute(16 * S) is None  # one at a time


def test_a_new_master_completes_an_epoch_that_began_for_some_peers() -> None:
    made = master()
    made.on_status(0, 1, Status(1, 8, 0, 2, 8, True, True))
    made.on_status(0, 2, Status(1, 0, 0, 0, 8, True, True))
    assert [one for one in made.advance(1) if one[0] == 2] == [(2, Commit(8))]


def test_a_message_is_repeated_to_a_peer_that_has_not_followed_it() -> None:
    made = master(1, 2)
    compute = made.compute(5 * S)
    assert compute is not None
    epoch = compute.name[1]
    made.on_computed(6 * S, epoch, ([0, 1], [[1], [0]]))
    plans = [(peer, 6 * S) for peer in (1, 2)]
    assert [(peer, 6 * S) for peer, _ in made.advance(6 * S)] == plans
    assert made.advance(7 * S) == []
    assert [peer for peer, _ in made.advance(10 * S)] == [1, 2]
    made.on_status(11 * S, 2, Status(2, 0, 0, 0, epoch, False, True))
    assert [peer for peer, _ in made.advance(14 * S)] == [1]


def test_a_peer_that_starts_while_an_epoch_is_prepared_gets_a_place_in_both_epochs() -> None:
    made, epochs = master(1, 2), []
    for start_s in (5, 70):
        if epochs:
            made.on_wants(60 * S, 2, Wants(2, 0, 1, (5,)))  # A change, so there is a second plan.
        compute = made.compute(start_s * S)
        assert compute is not None
        epochs.append(compute.name[1])
        made.on_computed(start_s * S, epochs[-1], ([0, 1], [[1], [0]]))
        assert sent(made, start_s) == {(1, Plan, epochs[-1]), (2, Plan, epochs[-1])}
        if start_s == 5:
            report(made, 2, 0, epochs[0], 1, 2)
            assert sent(made, 6) == {(1, Commit, epochs[0]), (2, Commit, epochs[0])}
            report(made, 3, epochs[0], epochs[0], 1, 2)
    first, second = epochs
    made.on_wants(71 * S, 3, Wants(1, 0, 1, (5,)))
    made.on_status(71 * S, 3, Status(1, 0, 0, 0, 0, False, True))
    assert (3, Plan, first) in sent(made, 71)
    report(made, 2, 0, first, 3)
    assert sent(made, 72) == {(3, Commit, first)}
    report(made, 3, first, first, 3)
    assert (3, Plan, second) in sent(made, 73)
    report(made, 4, first, second, 1, 2)
    assert {(1, Commit, second), (2, Commit, second)} <= sent(made, 74)  # It does not wait for 3.


def report(made: Master, version: int, current: int, newest: int, *peers: PeerId) -> None:
    """Tell a master the epochs of some peers, whose tables are quiet."""
    for peer in peers:
        made.on_status(0, peer, Status(version, current, peer, 2, newest, True, True))


def sent(made: Master, at_s: int) -> set[tuple[PeerId, type, int]]:
    """The messages of a master that are sent now, without `Retire`."""
    letters = made.advance(at_s * S)
    return {(peer, type(one), one.epoch) for peer, one in letters if not isinstance(one, Retire)}


def test_a_late_peer_publishes_as_soon_as_it_has_a_position() -> None:
    made = master()
    made.on_status(0, 1, Status(1, 8, 0, 2, 8, True, True))
    made.on_status(0, 2, Status(1, 0, 0, 0, 8, False, True))
    assert [one for one in made.advance(1) if one[0] == 2] == [(2, Commit(8))]


def reports(effects: Any) -> set[type]:
    return {type(e.message) for e in effects if isinstance(e, Send)} & {Status, Wants}


def test_a_peer_reports_again_to_a_peer_that_has_become_master() -> None:
    overlay = follower()
    assert reports(overlay.on_timer(200_000, "report")) == {Status, Wants}
    assert reports(overlay.on_timer(2 * S, "work")) == set()
    overlay.on_message(2 * S, 2, Belief(1 << 31))  # It still follows another master.
    assert reports(overlay.on_timer(3 * S, "work")) == {Status, Wants}


def test_a_late_peer_is_placed_beside_the_peer_with_most_common_topics() -> None:
    layout = Layout(8, 3, {1: 0, 2: RANK_SPACING, 3: 2 * RANK_SPACING}, {})
    assert layout.place_beside(3) == 2 * RANK_SPACING + RANK_SPACING // 2
    layout.position[4] = 2 * RANK_SPACING + RANK_SPACING // 2
    assert layout.place_beside(3) == 2 * RANK_SPACING + RANK_SPACING // 4
    part = layout.plan_for(4, {1, 2, 4})
    assert [one.peer for one in part.successors] == [1, 2]
    assert [one.peer for one in part.predecessors] == [2, 1]


def test_the_answer_to_any_message_of_a_master_can_be_sent() -> None:
    hostile, overlay = Hostile(3), follower()
    agent = Agent(50, 1, overlay)
    kinds = (Plan, Plan, Commit, Retire, *BeaConveyOverlay.messages)
    begun = 0
    for number in range(3_000):
        message = hostile.draw(hostile.chance.choice(kinds))
        overlay.chief, overlay.master = 2, None
        effects = [*overlay.on_message(1_000 * number, 2, message)]
        if number % 20 == 0:
            effects += overlay.on_timer(1_000 * number, "work")
        begun += sum(isinstance(e, Record) and e.what == "epoch_begun" for e in effects)
        for action in agent._carry_out(number, effects):
            assert not isinstance(action, Datagram) or encode(action)
    assert begun > 1
