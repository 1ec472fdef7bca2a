"""Synthetic social graphs: density, skew and clustering; same interests in runs and offline."""

from typing import get_args

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.kinds import draw_workload
from workloads.topics.social import Links
from workloads.topics.synthetic_social import draw_synthetic_interests, grow_graph


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 120), st.floats(2, 60), st.integers(0, 2**32))
def test_users_follow_each_user_at_most_once(users: int, mean_links: float, seed: int) -> None:
    graph = grow_graph(users, mean_links, np.random.default_rng(seed))
    links = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert len(set(links)) == len(links)
    assert all(a != b and min(a, b) >= 0 and max(a, b) < users for a, b in links)


@pytest.mark.parametrize("links", get_args(Links))
def test_density_skew_and_clustering(links: Links) -> None:
    wanted = draw_synthetic_interests(links, 2_000, 5)
    subscribers = np.bincount(wanted.topic, minlength=2_000)
    assert subscribers.mean() == pytest.approx(20, rel=0.1)
    graph = nx.Graph(zip(wanted.peer.tolist(), wanted.topic.tolist(), strict=True))
    assert nx.average_clustering(graph) > 10 * nx.density(graph)
    # Without skew, the first tenth has 14 % of all followers, and no user has twice the mean.
    assert np.sort(subscribers)[-200:].sum() > subscribers.sum() / 4
    assert subscribers.max() > 5 * subscribers.mean()
    # Communities are not contiguous.
    near = np.abs(wanted.peer - wanted.topic) < 100
    assert near.mean() < 0.15


def test_friends_subscribe_to_each_other() -> None:
    wanted = draw_synthetic_interests("friends", 100, 2)
    pairs = set(zip(wanted.peer.tolist(), wanted.topic.tolist(), strict=True))
    assert pairs == {(topic, peer) for peer, topic in pairs}


def test_runs_and_offline_computations_have_the_same_interests() -> None:
    section = {"kind": "topics-synthetic-social", "links": "follows", "mean_links": 8.0}
    run = draw_workload(section, 9, [f"h{number}" for number in range(1, 61)]).interests
    offline = draw_synthetic_interests("follows", 60, 9, 8.0)
    assert run.peer.tolist() == offline.peer.tolist()
    assert run.content.tolist() == offline.topic.tolist()
    assert offline.topic.tolist() != draw_synthetic_interests("follows", 60, 8, 8.0).topic.tolist()
