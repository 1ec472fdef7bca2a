"""Settings for all tests."""

import signal
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import configuration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests run as root; what they leave in the checkout would stand in the user's way.
_home = tempfile.TemporaryDirectory(prefix="tdo-hypothesis-")
configuration.set_hypothesis_home_dir(_home.name)

# A shell lets what runs in its background ignore SIGINT, and so would all commands under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One Spark session for all tests: it takes seconds to start."""
    from analysis.spark.session import (
        open_session,  # tests without Spark need not wait for its import
    )

    with open_session("local[2,3]", "tdo tests", memory_mb=1_024, is_brief=True) as session:
        yield session
