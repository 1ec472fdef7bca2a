"""Benchmarks: contestants do the same work, and what did not come is not passed over."""

import pytest

from benchmarks.agents import last_answer_s
from benchmarks.simulate import make_crowd, race
from testbed.errors import EmulationError


def test_all_simulators_carry_the_same_messages() -> None:
    nodes, rounds = 30, 4
    paces = race(make_crowd(nodes, rounds, routers=20))
    messages = nodes * rounds * 2  # a push and a pull
    assert {name: pace.messages for name, pace in paces.items()} == dict.fromkeys(paces, messages)


def test_an_agent_without_an_answer_is_not_up() -> None:
    answered = {"h1": 0.5, "h3": 2.5}
    assert last_answer_s(answered, ["h1", "h3"]) == 2.5
    with pytest.raises(EmulationError, match="all 3 .* found 1 without an answer, among them h2"):
        last_answer_s(answered, ["h1", "h2", "h3"])
