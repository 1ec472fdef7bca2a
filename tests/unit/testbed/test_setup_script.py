"""The state after `scripts/setup` is interrupted; nothing is installed."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "setup"
ASLEEP = """
set -euo pipefail
as_root() { "$@"; }
update-rc.d() { :; }
systemctl() { :; }
install() { ls policy-rc.d; $then; }
here="s#/usr/sbin/policy-rc.d#$PWD/policy-rc.d#"
eval "$(sed -n "/^install_sshd_asleep()/,/^}/{$here;p}" "$0")"
install_sshd_asleep
"""


@pytest.mark.parametrize("then", ["kill -TERM $BASHPID", "kill -INT $BASHPID", "false", "true"])
@pytest.mark.parametrize("is_there_before", [True, False])
def test_services_can_start_again_after_any_interruption(
    then: str, is_there_before: bool, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    if is_there_before:
        policy.write_text("mine")
    done = subprocess.run(
        ["bash", "-c", ASLEEP.replace("$then", then), str(SCRIPT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "policy-rc.d\n"
    assert (done.returncode == 0) == (then == "true")
    assert policy.exists() == is_there_before
    if is_there_before:
        assert policy.read_text() == "mine"
