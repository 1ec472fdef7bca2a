"""Comparisons of runs: groups by experiment, intervals over seeds, and missing values."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from analysis.compare import compare, find_runs, welch_interval
from analysis.errors import NotARunError
from testbed.cli import main
from tests.fixtures.report_runs import experiment, write_documents

MLINK, LONGEST = {"heuristic": "mlink"}, {"heuristic": "longest"}


def make_run(
    path: Path, seed: int, metrics: dict[str, Any], verdict: str = "valid", **changes: Any
) -> Path:
    write_documents(path, experiment(seed, **changes), verdict)
    (path / "analysis").mkdir()
    (path / "analysis" / "metrics.json").write_text(json.dumps(metrics))
    return path


def make_group(folder: Path, name: str, values: list[float], **changes: Any) -> list[Path]:
    return [
        make_run(folder / f"{name}-s{seed}", seed, {"rdp": {"mean": value}}, **changes)
        for seed, value in enumerate(values, start=1)
    ]


def test_differences_of_groups_follow_welch(tmp_path: Path) -> None:
    one, other = [1.0, 1.2, 1.1, 1.3], [2.0, 2.6, 2.3]
    runs = [
        *make_group(tmp_path, "a", one, overlay=MLINK),
        *make_group(tmp_path, "b", other, overlay=LONGEST),
    ]
    comparison = compare(runs)
    assert [group.settings for group in comparison.groups] == [
        {"overlay.heuristic": "mlink"},
        {"overlay.heuristic": "longest"},
    ]
    first, second = comparison.rows["rdp.mean"]
    assert (first.count, second.count) == (4, 3)
    assert first.mean == pytest.approx(1.15)
    assert (first.low, first.high) == pytest.approx(
        stats.t.interval(0.95, 3, loc=1.15, scale=stats.sem(one))
    )
    truth = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert second.difference_percent == pytest.approx(100 * 1.15 / 1.15)
    assert second.difference_low_percent == pytest.approx(100 * truth.low / 1.15)
    assert second.difference_high_percent == pytest.approx(100 * truth.high / 1.15)
    assert comparison.notes == ()


def test_one_run_has_no_interval_and_a_note(tmp_path: Path) -> None:
    runs = [
        *make_group(tmp_path, "a", [1.0, 1.2], overlay=MLINK),
        *make_group(tmp_path, "b", [2.2], overlay=LONGEST),
    ]
    comparison = compare(runs)
    cell = comparison.rows["rdp.mean"][1]
    assert cell.difference_percent == pytest.approx(100.0)
    assert (cell.low, cell.high) == (None, None)
    assert (cell.difference_low_percent, cell.difference_high_percent) == (None, None)
    assert [note for note in comparison.notes if "no interval" in note and "longest" in note]


def test_without_spread_the_interval_is_a_point() -> None:
    assert welch_interval([2.0, 2.0], [3.0, 3.0]) == (1.0, 1.0, 1.0)


def test_no_percentage_of_zero(tmp_path: Path) -> None:
    runs = [
        *make_group(tmp_path, "a", [0.0, 0.0], overlay=MLINK),
        *make_group(tmp_path, "b", [1.0, 2.0], overlay=LONGEST),
    ]
    cell = compare(runs).rows["rdp.mean"][1]
    assert cell.mean == 1.5
    assert cell.difference_percent is None


def test_only_numbers_are_compared(tmp_path: Path) -> None:
    metrics = {
        "rdp": {"mean": 1.5, "max": None},
        "peers": 12,
        "messages_by_kind": {"Walk": 3},
        "degree": {"mean": 2.0, "histogram": {"2": 4}},
        "checks": {"routes_whole": {"ok": True, "found": 3}},
        "notes": {"rdp": "3"},
    }
    runs = [make_run(tmp_path / "a", 1, metrics), make_run(tmp_path / "b", 2, {})]
    comparison = compare(runs)
    assert list(comparison.rows) == ["degree.mean", "peers", "rdp.mean"]
    assert [cell.count for cell in comparison.rows["peers"]] == [1]


def test_notes_name_problems_of_runs(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / "a", 1, {"peers": 3}),
        make_run(tmp_path / "b", 1, {}, verdict="degraded", folder="/elsewhere"),
    ]
    comparison = compare([*runs, tmp_path / "a" / ".." / "a"])
    assert len(comparison.groups) == 1
    assert len(comparison.groups[0].runs) == 2
    words = "\n".join(comparison.notes)
    assert "seed 1 occurs 2 times" in words
    assert "no metrics (1 of 2)" in words
    assert "1 of 2 runs have the verdict degraded" in words
    assert "of one experiment; add runs of another" in words


def test_a_run_without_analysis_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, *bare = make_group(tmp_path, "a", [1.0, 1.1, 1.2])
    for run in bare:
        (run / "analysis" / "metrics.json").unlink()
    assert main(["compare", str(whole), *map(str, bare)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{bare[0]} and 1 more: expected analysis/metrics.json" in line
    assert line.endswith(f"tdo analyze {bare[0]} {bare[1]}")


def test_seeds_of_one_experiment_have_an_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, make_group(tmp_path, "a", [1.0, 1.1, 1.2]))]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("RDP, mean"))
    assert row.split("  ")[1].strip() == "times unicast delay"
    assert row.split()[-5:] == ["1.1", "[0.8516,", "1.348]", "1", "1.2"]
    assert "mean [95 % interval]" in lines


def test_the_folder_of_a_sweep_selects_its_runs(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    runs = make_group(tmp_path / "runs", "a", [1.0, 2.0])
    make_run(tmp_path / "runs" / "dead.partial", 3, {})
    assert find_runs(tmp_path) == runs


@pytest.mark.parametrize("made", [False, True])
def test_a_path_that_is_no_run_is_one_clear_error(
    made: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nothing"
    if made:
        path.mkdir()
    with pytest.raises(NotARunError, match="expected a run directory or the folder of a sweep"):
        find_runs(path)
    assert main(["compare", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line


def test_the_command_prints_a_table_and_ends_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        *make_group(tmp_path, "a", [1.0, 1.1, 1.2], overlay=MLINK),
        *make_group(tmp_path, "b", [2.0, 2.1, 2.2], overlay=LONGEST),
    ]
    assert main(["compare", *map(str, runs), "--json"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines[0] == "A: hand-made overlay.heuristic=mlink (3 runs, seeds 1, 2, 3)"
    (row,) = (line for line in lines if line.startswith("RDP, mean"))
    assert "1.1 [0.8516, 1.348]" in row
    assert "+90.9 % [+70.3, +111.5] *" in row
    document = json.loads(last)
    assert document["groups"][1]["settings"] == {"overlay.heuristic": "longest"}
    assert document["metrics"]["rdp.mean"][1]["difference_percent"] == pytest.approx(1 / 1.1 * 100)


def test_shares_are_in_percent_and_former_names_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = {"mapped_links": 0.25, "events": {"false_positives": 12_345, "in_vain": 12_345}}
    run = make_run(tmp_path / "a", 1, metrics)
    assert main(["compare", str(run), "--json"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    table = [line.split("  ") for line in lines if line.startswith(("Mapped", "Events"))]
    assert [(row[0], row[-1].strip()) for row in table] == [
        ("Events, false positives", "12,345"),
        ("Mapped links", "25"),
    ]
    assert json.loads(last)["metrics"].keys() >= {"events.in_vain", "events.false_positives"}


def test_many_groups_are_printed_below_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        path
        for number in range(5)
        for path in make_group(tmp_path, f"g{number}", [1.0 + number], routing={"cores": number})
    ]
    assert main(["compare", *map(str, runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if "+400.0 %" in line] == [["E", "5"]]


@pytest.mark.parametrize("text", ["{", "", "[1, 2]"])
def test_damaged_metrics_are_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    runs = make_group(tmp_path, "a", [1.0, 1.2])
    (runs[1] / "analysis" / "metrics.json").write_text(text)
    with pytest.raises(NotARunError, match=r"a-s2/analysis/metrics.json: expected a JSON object"):
        compare(runs)


def test_rdp_of_deliveries_is_not_compared_with_that_of_pairs(tmp_path: Path) -> None:
    """One run is of the former version, whose metrics do not state what `rdp` is measured over."""
    spread = {"mean": 2.0, "count": 9}
    metrics: list[dict[str, Any]] = [
        {
            "rdp": spread,
            "delivery_rdp": spread,
            "overlay_rdp": {"mean": 1.5},
            "rdp_over": "deliveries",
        },
        {"rdp": {"mean": 1.1}, "overlay_rdp": {"mean": 1.1}, "rdp_over": "pairs"},
        {"rdp": {"mean": 3.0, "count": 4}, "overlay_rdp": {"mean": 1.2}},
    ]
    runs = [
        make_run(tmp_path / f"run{number}", 1, found, overlay={"heuristic": str(number)})
        for number, found in enumerate(metrics)
    ]
    mixed = compare(runs)
    assert not [name for name in mixed.rows if name.startswith("rdp.")]
    assert [cell.mean for cell in mixed.rows["overlay_rdp.mean"]] == [1.5, 1.1, 1.2]
    assert [cell.mean for cell in mixed.rows["delivery_rdp.mean"]] == [2.0, None, 3.0]
    assert [note for note in mixed.notes if "over pairs of peers in others" in note]
    alike = compare([runs[0], runs[2]])
    assert [cell.mean for cell in alike.rows["rdp.mean"]] == [2.0, 3.0]
