"""The tutorial docs/analysing.md works block by block, as a reader types it."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from testbed.cli import make_parser
from tests.fixtures.capture_files import ethernet, ipv4, pcap, udp

PAGE = Path(__file__).parents[3] / "docs" / "analysing.md"
PACKETS = 5


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def names(
    tmp_path_factory: pytest.TempPathFactory, faulty_run: Path, faulty_metrics: dict[str, Any]
) -> dict[str, Any]:
    """The variables after all Python code of the page."""
    assert faulty_metrics["events"]["delivered"] > 0  # so its tables exist
    folder = tmp_path_factory.mktemp("reader")
    run = folder / "results" / "quickstart" / "latest"
    shutil.copytree(faulty_run, run)
    (run / "captures").mkdir()  # tables of an emulated run have the same form
    ours = [ethernet(ipv4(udp(source=7001, target=7001))) for _ in range(PACKETS - 1)]
    whole = pcap([*ours, ethernet(ipv4(udp()))])
    (run / "captures" / "a.pcap").write_bytes(whole)
    (run / "captures" / "b.pcap").write_bytes(pcap([])[:-1])
    known: dict[str, Any] = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, code in enumerate(blocks("python")):
            # Spark was started in another folder and resolves paths there.
            here = re.sub(r'"(results|my-tables)', rf'"{folder}/\1', code)
            exec(compile(here, f"{PAGE.name}, block {number + 1}", "exec"), known)
    return known


def test_the_readers_own_query_has_a_result(names: dict[str, Any]) -> None:
    rows = names["answer"].collect()
    assert sum(row["events"] for row in rows) == (
        names["tables"]["receptions"].where("is_match AND path IS NOT NULL").count()
    )
    assert all(row["hops"] >= 1 and row["links"] >= row["hops"] for row in rows)
    assert rows[0]["detour"] >= rows[-1]["detour"] > 0


def test_metrics_can_be_computed_again(names: dict[str, Any]) -> None:
    stress = names["stress_summary"](names["link_stress"](names["tables"]["packets"])).first()
    assert stress["mean"] == names["metrics"]["link_stress"]["mean"]
    assert len(names["others"]) == names["metrics"]["events"]["delivered"]
    assert 0 < names["loads"].num_rows <= names["tables"]["link_loads"].count()


def test_captures_are_read_and_unreadable_data_are_counted(names: dict[str, Any]) -> None:
    assert (names["written"].packets, names["written"].errors) == (PACKETS, 1)
    assert names["few"].count() == PACKETS - 1
    assert [row["reason"] for row in names["errors"].collect()] == ["cut short"]
    assert names["mine"].count() == PACKETS


def test_tdo_has_all_commands_of_the_page() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line.removeprefix("sudo "))
        assert words[0] == ".venv/bin/tdo"
        make_parser().parse_args(words[1:])  # exits for an unknown command


def test_the_page_has_code() -> None:
    pages = PAGE.parent, PAGE.parents[1]
    assert "analysing.md" in (pages[0] / "tables.md").read_text()
    assert "docs/analysing.md" in (pages[1] / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        assert (pages[0] / target).exists(), target
