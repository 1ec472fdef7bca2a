"""`tdo reproduce` with emulated runs."""

import csv
import json
from pathlib import Path

import pytest

from tests.claim_runs import reproduce_here

SHORT = (
    "seed=1", "duration_s=6", "routing.first_selection_s=1.0", "routing.settle_s=1.0",
    "workload.start_s=4.0", "workload.events=20",
)  # fmt: skip


def test_claims_are_reproduced_by_emulation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [part for change in SHORT for part in ("--set", change)]
    reproduce_here(tmp_path, "T12", "--backend", "emulation", *changes)
    (claim,) = json.loads(capsys.readouterr().out.splitlines()[-1])["claims"]
    assert claim["runs"] + claim["failed"] == 2  # on a busy machine they may not be valid
    (table,) = tmp_path.glob("example1/sweep-*/runs.csv")
    with table.open() as file:
        assert [row["error"] for row in csv.DictReader(file)] == ["", ""]
    page = (tmp_path / "reproduce" / "small-emulation" / "T12.html").read_text()
    assert "beside emulated runs of this testbed" in page
    assert "tdo reproduce T12 --scale small --backend emulation --set seed=1" in page
