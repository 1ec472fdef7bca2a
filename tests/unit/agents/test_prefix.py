"""The prefix relation between routes."""

from agents.probing.prefix import cut, is_prefix


def test_a_route_is_a_prefix_of_itself_and_of_its_extensions() -> None:
    assert is_prefix((1, 2), (1, 2))
    assert is_prefix((1, 2), (1, 2, 3))
    assert not is_prefix((1, 2, 3), (1, 2))
    assert not is_prefix((1, 4), (1, 2, 3))


def test_a_silent_router_equals_only_a_silent_one() -> None:
    assert is_prefix((1, 0), (1, 0, 3))
    assert not is_prefix((1, 0), (1, 2, 3))


def test_the_rest_of_a_route_begins_at_the_router_of_the_peer_on_the_way() -> None:
    assert cut((1, 2), (1, 2, 3, 4)) == (2, 3, 4)
    assert cut((1, 2), (1, 2)) == (2,)
