"""Settings for all tests."""

import tempfile

from hypothesis import configuration

# Tests run as root; what they leave in the checkout would stand in the user's way.
_home = tempfile.TemporaryDirectory(prefix="tdo-hypothesis-")
configuration.set_hypothesis_home_dir(_home.name)
