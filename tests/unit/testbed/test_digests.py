"""Digests of the experiment files: finished sweeps are not run again as long as these hold."""

from pathlib import Path

import pytest

from testbed.sweeps.file import load_sweep

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
DIGESTS = {
    "anonymous.toml": "99eb7ca26d131f4319068744ced7a48d4e01726cace3a10e72327299f4b734f1",
    "discovery.toml": "91bd2b979d827e9e98e3f43a96a614a81e78b6a670449b52ce01ea8c3e4c2283",
    "emulated-limits.toml": "bd04bafaf8fd78272456b41f4faf9befdba6e9f698357917722f7684161ee857",
    "emulated-peers.toml": "69353316ca3292c794a2fa435bdd1baf09ce5ec9814f27dfc1f38ac3520d2e09",
    "emulated-routing.toml": "7dc53ea8998a4b34a721786927d36e44b711d3ad7eab45f0704c19def91794bf",
    "events.toml": "e7d7f89a381cc6c6471fae593427e8b2753f77d78e4b9eb1d9b86c5601ba4117",
    "example1.toml": "a78156f36a1da0fbfb6731581c19c0b82c2a6fe1f60887104e1705fbb69762b5",
    "faults.toml": "c1812b27d1445ff239483652767ca428cd454ed74191bf00a42281ddb29fc06a",
    "fig3-targets.toml": "9cc07ba93ea61332c9c97f30e43cfe4d704db8a1f0f59b87be4aaf69324ef9c5",
    "fig5-limits.toml": "a8199277a878a0a0b256c7895f60a2e578df6b7cf25302759f5a2a7b4d213099",
    "fig5-peers.toml": "53a9fc2e66497ca0d5a6b5f4df2417f38e7026c17b1d7300ce6bf7a78b7c8a90",
    "fig5-targets.toml": "b0aa2c1d125b3258a1f7805d956e973824dd23ae6bfc45140f09de9f61587682",
    "fig6-churn.toml": "928fb06bf100941ac2b35cbe9ba39ade8f4b214119edd9de21d9d1fc6c018a15",
    "fig6-cores.toml": "b64a9d4df3cd2f1010eea64d5d63685b13c623c0add13b5d5ab35bdb6764446c",
    "fig6-strategies.toml": "06834061cd7f9ed93942c9081a9b151a9bd3eb24d40e56ee029039886100c347",
    "full-size-faults.toml": "afff58d529a4fdce4e9dbeff2161ea25848a3bf8de4b165523014af30f7d6c46",
    "full-size.toml": "965ad05ea69fe62d1277782cf785b68af31354c373896121e6680ef054b9b89a",
    "gossip-sweep.toml": "0fa4a86cf14b8992eba43218d4515d1612e6cb86289543c0a7bb920027e2a526",
    "gossip.toml": "bd629be6a68be917fb3173e863d5bd9218f9ab6575d17718cb57c6467c68d442",
    "hello.toml": "49bb2333dbd64e97b6e114c60a11bb8194f93134ca7fc324c89876cf7529df8f",
    "landmarks.toml": "299590eb762d1494c740a3b62312b2cd21b1020f98e14f70c5394f3313c50538",
    "quickstart.toml": "c4a357060d85893104f8cd93a2f8865c0a3fcc7a284fda618f28d31d365f9872",
    "vm.toml": "308d6e0d55c960bdacbe656d14265a5b006b824c89ca431cf0d508b0957a9e58",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_keeps_its_digest(name: str) -> None:
    assert load_sweep(EXPERIMENTS / name).digest == DIGESTS[name]
