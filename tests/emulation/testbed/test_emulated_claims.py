"""`tdo reproduce` with emulated runs."""

import csv
import json
from pathlib import Path

import pytest

from testbed.cli import main

SHORT = (
    "seed=1", "duration_s=6", "routing.first_selection_s=1.0", "routing.settle_s=1.0",
    "workload.start_s=4.0", "workload.events=20",
)  # fmt: skip


@pytest.mark.slow
def test_claims_are_reproduced_by_emulation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [part for change in SHORT for part in ("--set", change)]
    main(["reproduce", "T12", "--backend", "emulation", *changes, "--out", str(tmp_path), "--json"])
    (claim,) = json.loads(capsys.readouterr().out.splitlines()[-1])["claims"]
    assert claim["runs"] + claim["failed"] == 2  # On a busy machine, runs may not be valid.
    (table,) = tmp_path.glob("example1/sweep-*/runs.csv")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["error"] for row in rows] == ["", ""]
    for row in rows:  # metrics of the claim, and metrics of packets
        assert int(row["events.crossings"]) > 0 < int(row["link_stress.total"])
        assert row["checks.copies_sent.ok"] == "True"
    (written,) = (tmp_path / "reproduce" / "small-emulation").glob("T12-seed-1-*.html")
    page = written.read_text()
    assert "beside emulated runs of this testbed" in page
    assert "tdo reproduce T12 --scale small --backend emulation --set seed=1" in page
