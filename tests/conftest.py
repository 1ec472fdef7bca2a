"""Settings for all tests."""

import signal
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import configuration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests run as root; root's files in the checkout could block the user.
_home = tempfile.TemporaryDirectory(prefix="tdo-hypothesis-")
configuration.set_hypothesis_home_dir(_home.name)

# A shell starts background jobs with SIGINT ignored, which all commands under test inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One Spark session for all tests, because starting one takes seconds."""
    from analysis.spark.session import (
        open_session,  # imported here: tests without Spark do not wait for it
    )

    with open_session("local[2,3]", "tdo tests", memory_mb=1_024, is_brief=True) as session:
        yield session
