"""Digests of the experiment files: finished sweeps are not run again as long as these hold."""

from pathlib import Path

import pytest

from testbed.sweeps.file import load_sweep

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
DIGESTS = {
    "anonymous.toml": "442e8675e4dae832d11e7bddd335b4674e19ac0c60a93fac2fb6a70f903f42e9",
    "discovery.toml": "91bd2b979d827e9e98e3f43a96a614a81e78b6a670449b52ce01ea8c3e4c2283",
    "emulated-limits.toml": "bd04bafaf8fd78272456b41f4faf9befdba6e9f698357917722f7684161ee857",
    "emulated-peers.toml": "69353316ca3292c794a2fa435bdd1baf09ce5ec9814f27dfc1f38ac3520d2e09",
    "emulated-routing.toml": "7dc53ea8998a4b34a721786927d36e44b711d3ad7eab45f0704c19def91794bf",
    "events.toml": "e7d7f89a381cc6c6471fae593427e8b2753f77d78e4b9eb1d9b86c5601ba4117",
    "example1.toml": "a78156f36a1da0fbfb6731581c19c0b82c2a6fe1f60887104e1705fbb69762b5",
    "faults.toml": "c1812b27d1445ff239483652767ca428cd454ed74191bf00a42281ddb29fc06a",
    "fig3-targets.toml": "ab7227b5ece9694f91eee6888279d8ca51787ff47bdebbb6c23072a71b9a2b2a",
    "fig5-limits.toml": "8f3318b2319f0fd0d3168a5b5dd9fc1795417f901aa6088710ba677e103f6cec",
    "fig5-peers.toml": "7b735e5e0ab886cc11d3ad724bcf9afa00febbbf428b4e5932fca0958e5ddbc4",
    "fig5-readings.toml": "c2d0ac6ddb7e7d195f098f9f759f2b9b59328cf56b643fc9466db91d015ef771",
    "fig5-targets.toml": "5f7c1bdbc3229a497e3b4878874f401f5c62b4f54d8699c6569b35e3afb84c56",
    "fig5-walks.toml": "a90f590f9c8e574d69d118dc39bbcc2a1243f63713d62d61e51fcc71010a13fb",
    "fig6-churn.toml": "fb2b865ca724b1de08c4bfaad681794550655b3e263dbb180541dc4868065c2b",
    "fig6-cores.toml": "650c8bd6126160f4824ef5a3ac3675823c6d6e6b5f8fae4ac7b48a1d1a2161db",
    "fig6-hotspots.toml": "d30f88a78dffca304bd2042056a658acf16aba8b11df013e87c452589dac807b",
    "fig6-sim.toml": "6fef4e0209fbc61e2e511020d8a7c492d6da448b3a45464e6aba4a3669961940",
    "fig6-strategies.toml": "fb2da323f16353f61a9f21f73ef6f1fe55fd46a6af601cf9c056115588631dfb",
    "full-size-faults.toml": "afff58d529a4fdce4e9dbeff2161ea25848a3bf8de4b165523014af30f7d6c46",
    "full-size.toml": "965ad05ea69fe62d1277782cf785b68af31354c373896121e6680ef054b9b89a",
    "gossip-sweep.toml": "0fa4a86cf14b8992eba43218d4515d1612e6cb86289543c0a7bb920027e2a526",
    "gossip.toml": "e9436bb8db3997b7516bacbf3f9a90dc32639f4438de40b43868120a7e237edd",
    "hello.toml": "49bb2333dbd64e97b6e114c60a11bb8194f93134ca7fc324c89876cf7529df8f",
    "landmarks.toml": "952d4ae78cc98d2da95979dde08411faf8028df5c7f8c3c785b19ddd356d2c67",
    "quickstart.toml": "c4a357060d85893104f8cd93a2f8865c0a3fcc7a284fda618f28d31d365f9872",
    "vm.toml": "308d6e0d55c960bdacbe656d14265a5b006b824c89ca431cf0d508b0957a9e58",
}


# Settings that were added later, at the value that makes no difference, and at another.
ADDED = [
    ("overlay.walk_links", "near", "all"),
    ("overlay.target_budget", "capped", "literal"),
    ("overlay.mlink_tolerance", 0.02, 0.0),
    ("overlay.placement", "cases", "direct"),
    ("routing.sim_score", "mean", "sum"),
    ("routing.repair", "optimal", "local"),
    ("workload.recalculations", 0, 1),
    ("workload.radii", "fitted", "equal"),
    ("workload.hotspots", "scattered", "located"),
]


@pytest.mark.parametrize(("key", "usual", "other"), ADDED)
def test_a_setting_that_was_added_counts_only_where_it_is_used(
    key: str, usual: object, other: object
) -> None:
    path = EXPERIMENTS / "full-size.toml"
    assert load_sweep(path, {key: usual}).digest == DIGESTS["full-size.toml"]
    assert load_sweep(path, {key: other}).digest != DIGESTS["full-size.toml"]


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_keeps_its_digest(name: str) -> None:
    assert load_sweep(EXPERIMENTS / name).digest == DIGESTS[name]
