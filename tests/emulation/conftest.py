"""Small real networks for tests; without root, these tests are skipped."""

import os
from collections.abc import Iterator

import pytest

from testbed.emulation.network import EmulatedNetwork
from tests.fixtures.diamond import diamond


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            if "emulation" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="needs root: run scripts/test"))


@pytest.fixture
def network() -> Iterator[EmulatedNetwork]:
    """The diamond as a running network."""
    with EmulatedNetwork(diamond()) as built:
        yield built
