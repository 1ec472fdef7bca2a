"""`tdo topology` through its parser: files, output and errors."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.commands import topology
from testbed.errors import UsageError
from topologies.errors import TopologyError
from topologies.underlay_file import load_underlay

GML = """graph [
  node [ id 0 label "A" Longitude 0 Latitude 50 ]
  node [ id 1 label "B" Longitude 5 Latitude 50 ]
  node [ id 2 label "C" ]
  edge [ source 0 target 1 ]
  edge [ source 1 target 2 ]
]
"""


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    topology.add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["topology", *map(str, arguments)])
    status: int = options.run(options)
    return status


def last_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return result


def test_generate_waxman_then_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "w.json"
    extras = ("--anonymous-routers", 0.5, "--asymmetry", 0.2)
    sizes = ("--routers", 30, "--hosts", 8, "--seed", 3)
    assert run("generate", "waxman", *sizes, *extras, "-o", file) == 0
    printed = capsys.readouterr().out
    assert "30 (15 anonymous)" in printed
    assert str(file) in printed
    assert run("show", file, "--json") == 0
    shown = last_json(capsys)
    assert (shown["routers"], shown["links"], shown["hosts"]) == (30, 60, 8)
    assert shown["source"]["generator"] == "waxman"
    underlay = load_underlay(file)
    assert sum(router.anonymous for router in underlay.routers) == 15
    assert any(link.ab != link.ba for link in underlay.router_links)


def test_generate_is_repeatable(tmp_path: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        run("generate", "waxman", "--routers", 30, "--hosts", 8, "--seed", 3, "-o", file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_generate_transit_stub_by_routers_and_by_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.json"
    model = ("generate", "transit-stub", "--seed", 1, "--json", "-o", file)
    assert run(*model, "--routers", 100) == 0
    assert last_json(capsys)["routers"] == 100
    sizes = ("--transit-domains", 2, "--routers-per-transit-domain", 2,
             "--stub-domains-per-transit-router", 2, "--routers-per-stub-domain", 3)  # fmt: skip
    assert run(*model, *sizes, "--hosts", 5) == 0
    made = last_json(capsys)
    assert made["routers_by_role"] == {"stub": 24, "transit": 4}
    with pytest.raises(UsageError, match=r"expected 28.*found 100"):
        run(*model, *sizes, "--routers", 100)


def test_generate_a_hierarchy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "h.json"
    model = ("generate", "waxman-hierarchical", "--routers", 60, "--seed", 1, "--json", "-o", file)
    assert run(*model) == 0
    assert last_json(capsys)["source"]["autonomous_systems"] == 6
    borders = ("--edge-connection", "smallest-k-degree", "--border-degree", 5)
    assert run(*model, "--autonomous-systems", 4, *borders) == 0
    made = last_json(capsys)
    assert made["routers"] == 60
    assert made["source"]["autonomous_systems"] == 4
    assert made["source"]["border_degree"] == 5


def test_import_prints_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, file = tmp_path / "small.gml", tmp_path / "g.json"
    source.write_text(GML)
    options = ("--hosts", 2, "--seed", 1, "--default-delay", "5ms")
    assert run("import", source, *options, "-o", file) == 0
    assert "default of 5000 us" in capsys.readouterr().out
    underlay = load_underlay(file)
    assert [link.ab.delay_us for link in underlay.router_links] == [1787, 5000]
    assert len(underlay.hosts) == 2
    assert underlay.source["file"] == "small.gml"


def test_show_imports_a_file_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, picture = tmp_path / "small.gml", tmp_path / "p.svg"
    source.write_text(GML)
    assert run("show", source, "--picture", picture, "--json") == 0
    assert last_json(capsys)["links"] == 2
    assert picture.read_text().startswith("<?xml")


def test_show_describes_an_exchange(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "m.txt"
    matrix.write_text("0 30 50\n30 0 40\n50 40 0\n")
    assert run("show", matrix) == 0
    printed = capsys.readouterr().out
    assert "last mile    5.000 to 15.000 ms" in printed
    assert "median relative error" in printed


def test_wrong_arguments(tmp_path: Path) -> None:
    source, file = tmp_path / "small.gml", tmp_path / "g.json"
    source.write_text(GML)
    with pytest.raises(UsageError, match=r"--default-delay: .*found '5' without a unit"):
        run("import", source, "--default-delay", "5", "-o", file)
    with pytest.raises(UsageError, match="--hosts: expected a --seed"):
        run("import", source, "--hosts", 2, "-o", file)
    with pytest.raises(TopologyError, match="expected a format of"):
        run("import", source, "--format", "pajek", "-o", file)
    with pytest.raises(TopologyError, match="No such file"):
        run("show", tmp_path / "none.alt")
    with pytest.raises(TopologyError, match="routers: expected"):
        run("generate", "waxman", "--routers", 1, "--seed", 1, "-o", file)
    with pytest.raises(TopologyError, match=r"\.svg, \.png, \.pdf"):
        run("show", source, "--picture", tmp_path / "p.jpeg")
    assert not file.exists()


def test_unwritable_output(tmp_path: Path) -> None:
    source = tmp_path / "small.gml"
    source.write_text(GML)
    with pytest.raises(UsageError, match="expected a file that can be written"):
        run("import", source, "-o", tmp_path / "missing" / "g.json")
    with pytest.raises(UsageError, match="expected a file that can be written"):
        run("show", source, "--picture", tmp_path / "missing" / "p.svg")


def test_seed_and_output_are_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("-o", tmp_path / "w.json"), ("--seed", 1)):
        with pytest.raises(SystemExit) as caught:
            run("generate", "waxman", *arguments)
        assert caught.value.code == 2
    assert "--seed" in capsys.readouterr().err
