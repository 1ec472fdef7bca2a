"""Figures of sweeps: correct means and intervals, and reproducible files."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.sweep import (
    Figure,
    FigureError,
    Published,
    _draw,
    draw_figure,
    gather_points,
    mean_interval,
)

KEYS = ("hosts", "kind")


def rows_of(values: dict[tuple[int, str], list[float | None]]) -> list[dict[str, Any]]:
    return [
        {"hosts": hosts, "kind": kind, "seed": seed, "rdp.mean": value, "cost": hosts * 10 + seed}
        for (hosts, kind), seeds in values.items()
        for seed, value in enumerate(seeds)
    ]


ROWS = rows_of(
    {(20, "a"): [1, 2, 3], (10, "a"): [4, 4, 4], (10, "b"): [5, None, 7], (20, "b"): [9, None]}
)


def test_the_interval_follows_students_t() -> None:
    # From a printed table: t of 2 degrees of freedom at 97.5 % is 4.303; s = 1, n = 3.
    assert mean_interval([1, 2, 3]) == pytest.approx(
        (2, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), 1e-3
    )
    assert mean_interval([5]) == (5, None, None)


def test_runs_that_differ_only_in_the_seed_are_one_point() -> None:
    points = gather_points(Figure("f", "hosts", "rdp.mean", ("kind",)), ROWS, KEYS)
    found = [(point.line, point.x, point.mean, point.count) for point in points]
    assert found == [(("a",), 10, 4, 3), (("a",), 20, 2, 3), (("b",), 10, 6, 2), (("b",), 20, 9, 1)]


def test_a_measured_x_has_a_point_for_each_combination() -> None:
    points = gather_points(Figure("f", "cost", "rdp.mean", ("kind",)), ROWS, KEYS)
    assert [(point.x, point.count) for point in points] == [(101, 3), (201, 3), (101, 2), (200, 1)]


def test_files_are_drawn_and_equal_each_time(tmp_path: Path) -> None:
    figure = Figure("f", "hosts", "rdp.mean", (), "kind", "A title", log_x=True)
    contents = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        files, notes = draw_figure(figure, ROWS, KEYS, folder)
        contents.append([file.read_bytes() for file in files])
        assert notes == ["2 of 11 runs have no rdp.mean"]
    assert contents[0] == contents[1]
    assert contents[0][1].startswith(b"\x89PNG")
    assert b"A title" in contents[0][0]
    with (tmp_path / "one" / "f.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["kind", "hosts", "mean", "ci95_low", "ci95_high", "count"]
    assert [row["count"] for row in rows] == ["3", "3", "2", "1"]
    assert rows[-1]["ci95_low"] == ""


def test_names_on_the_x_axis_are_drawn(tmp_path: Path) -> None:
    files, notes = draw_figure(Figure("f", "kind", "rdp.mean"), ROWS, KEYS, tmp_path)
    assert len(files) == 3
    assert notes[0] == "hosts: different values are averaged"
    # A variant that sets the hosts distinguishes them.
    rows = [row | {"variant": f"of {row['hosts']}"} for row in ROWS]
    _, notes = draw_figure(Figure("f", "kind", "rdp.mean", ("variant",)), rows, KEYS, tmp_path)
    assert notes == ["2 of 11 runs have no rdp.mean"]


def test_many_lines_all_look_different() -> None:
    figure = Figure("f", "hosts", "rdp.mean", ("kind",))
    rows = rows_of({(hosts, f"k{kind}"): [1.0] for kind in range(10) for hosts in (10, 20)})
    (axes,) = _draw(figure, gather_points(figure, rows, KEYS)).axes
    looks = {(bars[0].get_color(), bars[0].get_marker()) for bars in axes.containers}
    assert len(looks) == 10


def test_missing_data_are_reported(tmp_path: Path) -> None:
    with pytest.raises(FigureError, match="y: expected a column .* the nearest is rdp.mean"):
        draw_figure(Figure("f", "hosts", "rpd.mean"), ROWS, KEYS, tmp_path)
    with pytest.raises(FigureError, match="log_x: expected numbers above 0 as kind, found 'a'"):
        draw_figure(Figure("f", "kind", "rdp.mean", log_x=True), ROWS, KEYS, tmp_path)
    # If a run has no overlay, the whole metric is null.
    nulls = [{"hosts": 1, "seed": 1, "rdp": None}]
    files, notes = draw_figure(Figure("f", "hosts", "rdp.mean"), nulls, KEYS, tmp_path)
    assert (files, notes) == ([], ["not drawn, as no run has rdp.mean and hosts"])


def test_columns_are_lines_and_published_values_are_drawn(tmp_path: Path) -> None:
    rows = [
        {"hosts": hosts, "seed": seed, "ours.rdp": hosts + seed, "theirs.rdp": 2.0 * hosts}
        for hosts in (10, 20)
        for seed in (1, 3)
    ]
    figure = Figure(
        "f",
        "hosts",
        "rdp",
        columns=(("Ours", "ours.rdp"), ("Theirs", "theirs.rdp")),
        published=(Published("Theirs", 38, 20), Published("Ours", 15)),
    )
    files, notes = draw_figure(figure, rows, ("hosts",), tmp_path)
    assert notes == []
    svg = files[0].read_text()
    assert "Theirs, paper" in svg and "Ours, paper (mean)" in svg
    with (tmp_path / "f.csv").open() as file:
        found = [(row["system"], row["hosts"], float(row["mean"])) for row in csv.DictReader(file)]
    assert found == [
        ("Ours", "10", 12), ("Ours", "20", 22), ("Theirs", "10", 20), ("Theirs", "20", 40),
        ("Theirs, paper", "20", 38), ("Ours, paper (mean)", "", 15),
    ]  # fmt: skip
    with pytest.raises(FigureError, match="columns: expected .*, found 'theirs.cost'"):
        wrong = replace(figure, columns=(("Theirs", "theirs.cost"),))
        draw_figure(wrong, rows, ("hosts",), tmp_path)
