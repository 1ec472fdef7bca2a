"""Digests of the experiment files: finished sweeps are reused as long as these are unchanged."""

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
    "fig5-limits.toml": "7ac7275306aea7f6d33ed2ad409dc88852bcdcc1c9fa7e64899e6fe2e08771d2",
    "fig5-peers.toml": "63d693e8a4f080488644d2578f0f9285b83f5e29c97e7bbe0b573cc7c17b2f0b",
    "fig5-readings.toml": "59b9d65980f56e56caa35a4daf3d017bda5445d6a8b93526171e15de7835b825",
    "fig5-targets.toml": "bf5bd56c56e024b0b9aca239e66279fe201d7debe88da5b5470ec28a9451b91c",
    "fig5-walks.toml": "a90f590f9c8e574d69d118dc39bbcc2a1243f63713d62d61e51fcc71010a13fb",
    "fig6-churn.toml": "fd2234f7463411551b0bf089aaa36e1a5d895747e017e802d136fe0eae87fce7",
    "fig6-cores.toml": "50a7adf02021f302f183741f0c061bb3a209ba33cfd8c64557190a0a0e919e42",
    "fig6-hotspots.toml": "6022211d96e4506ece0930831f808e61f320808cbea4073b89a0908b04bb4875",
    "fig6-sim.toml": "598d38d5fbbdbcbe31d86352737eb263dccf816e67118535787047764389083f",
    "fig6-strategies.toml": "e8033e8cefc4c96eeea2605764d032953eaaf49fd248d1b3ec8c3f35e1a00d68",
    "full-size-faults.toml": "afff58d529a4fdce4e9dbeff2161ea25848a3bf8de4b165523014af30f7d6c46",
    "full-size.toml": "965ad05ea69fe62d1277782cf785b68af31354c373896121e6680ef054b9b89a",
    "gossip-sweep.toml": "0fa4a86cf14b8992eba43218d4515d1612e6cb86289543c0a7bb920027e2a526",
    "gossip.toml": "e9436bb8db3997b7516bacbf3f9a90dc32639f4438de40b43868120a7e237edd",
    "hello.toml": "49bb2333dbd64e97b6e114c60a11bb8194f93134ca7fc324c89876cf7529df8f",
    "landmarks.toml": "952d4ae78cc98d2da95979dde08411faf8028df5c7f8c3c785b19ddd356d2c67",
    "quickstart.toml": "c4a357060d85893104f8cd93a2f8865c0a3fcc7a284fda618f28d31d365f9872",
    "vm.toml": "308d6e0d55c960bdacbe656d14265a5b006b824c89ca431cf0d508b0957a9e58",
}


# Settings that were added later, with the value that changes nothing, and with another.
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
def test_a_later_setting_changes_the_digest_only_where_it_is_used(
    key: str, usual: object, other: object
) -> None:
    path = EXPERIMENTS / "full-size.toml"
    assert load_sweep(path, {key: usual}).digest == DIGESTS["full-size.toml"]
    assert load_sweep(path, {key: other}).digest != DIGESTS["full-size.toml"]


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_keeps_its_digest(name: str) -> None:
    assert load_sweep(EXPERIMENTS / name).digest == DIGESTS[name]
