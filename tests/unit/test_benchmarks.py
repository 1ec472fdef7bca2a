"""Benchmarks: contestants do the same work."""

from benchmarks.simulate import make_crowd, race


def test_all_simulators_carry_the_same_messages() -> None:
    nodes, rounds = 30, 4
    paces = race(make_crowd(nodes, rounds, routers=20))
    messages = nodes * rounds * 2  # a push and a pull
    assert {name: pace.messages for name, pace in paces.items()} == dict.fromkeys(paces, messages)
