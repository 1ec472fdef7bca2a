"""A sweep of emulated runs: they run one after another, and each is analysed and judged once."""

import csv
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testbed.cli import main

SWEEP = """
name = "few"
seed = [1]
duration_s = 1
[topology]
routers = 4
hosts = 3
[overlay]
kind = "hello"
greetings = 1
"""


class Swept(NamedTuple):
    """A finished sweep, and the output of the command."""

    path: Path
    lines: list[str]

    def rows(self) -> list[dict[str, str]]:
        with (self.path / "runs.csv").open() as file:
            return list(csv.DictReader(file))

    def run(self) -> Path:
        return self.path / self.rows()[0]["path"]


def sweep(folder: Path) -> Swept:
    (folder / "few.toml").write_text(SWEEP)
    with redirect_stdout(io.StringIO()) as said:
        status = main(["run", str(folder / "few.toml"), "--out", str(folder), "--json"])
    assert status in (0, 3)  # A busy machine may be late.
    lines = said.getvalue().splitlines()
    return Swept(Path(json.loads(lines[-1])["path"]), lines)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    return sweep(tmp_path_factory.mktemp("results"))


def test_the_forecast_is_printed_before_a_run_is_built(swept: Swept) -> None:
    told = [line.split()[0] for line in swept.lines if line.startswith("    ")]
    assert told == ["this", "building", "starting", "analysing"]
    assert sum("this will take" in line for line in swept.lines) == 1


def test_rows_have_metrics_of_packets_and_of_records(swept: Swept) -> None:
    (row,) = swept.rows()
    assert row["checks.copies_sent.ok"] == "True"
    assert float(row["discovered_links"]) > 0 < int(row["packets.total"])


def test_an_emulated_run_can_be_repeated_from_its_directory(swept: Swept, tmp_path: Path) -> None:
    first = swept.run()
    assert main(["rerun", str(first), "--no-report", "--out", str(tmp_path)]) in (0, 3)
    again = tmp_path / "few" / "latest"
    assert (again / "underlay.json").read_bytes() == (first / "underlay.json").read_bytes()
    experiments = [
        json.loads((run / "run.json").read_text())["experiment"] for run in (first, again)
    ]
    assert experiments[0] == experiments[1]


@pytest.mark.slow
def test_only_missing_verdicts_are_made_again(swept: Swept) -> None:
    run = swept.run()
    pretend_to_have_sent_more(run)
    verdict = json.loads((run / "verdict.json").read_text())
    del verdict["reasons_by_analysis"]
    (run / "verdict.json").write_text(json.dumps(verdict))
    again = sweep(swept.path.parents[1])
    assert "  1 runs, 0 of them done before, 1 to do" in again.lines
    assert [line for line in again.lines if line.startswith("    ")] == ["    analysing"]
    assert again.rows()[0]["verdict"] == "invalid"


def pretend_to_have_sent_more(run: Path) -> None:
    path = run / "agents" / "records.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        if row["what"] == "agent_ended":
            counted = json.loads(row["values"])
            row["values"] = json.dumps(counted | {"sent": counted["sent"] + 1})
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
