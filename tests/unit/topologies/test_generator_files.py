"""Files of BRITE and GT-ITM in less common modes, which importers must accept."""

import argparse
from pathlib import Path

import pytest

from testbed.commands import topology
from topologies.errors import TopologyError
from topologies.importers import import_topology
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

# As BRITE's C++ engine writes it: a NUL byte after the model, counts without spaces, a colon.
BRITE_CPP = (
    b"Topology: ( 3 Nodes, 2 Edges )\n"
    b"Model ( 1 ): 3 1000 100 1 2 0.15 0.20 1 1 10.00 1024.00 \x00\n\n"
    b"Nodes: (3)\n"
    b"0 322.00 729.00 1 1 -1 RT_NODE \n"
    b"1 916.00 967.00 2 2 -1 RT_NODE \n"
    b"2 148.00 348.00 1 1 -1 RT_NODE \n"
    b"\nEdges: (2):\n"
    b"0 1 0 640.10 2.13 10.00 -1 -1 E_RT U\n"
    b"1 2 1 986.40 3.29 10.00 -1 -1 E_RT U\n"
)
BRITE_SYSTEMS = (
    BRITE_CPP.replace(b"RT_NODE", b"AS_NODE")
    .replace(b"2.13", b"-1")
    .replace(b"3.29", b"-1")
    .replace(b"E_RT", b"E_AS")
)
# Two of the three extra stub-stub links are self-loops: the header counts 2 * 6 arcs.
ALT = """GRAPH (#nodes #edges id uu vv ww xx yy zz):
4 12 transtub(0,1,0,3,{1,18,3,1.000,0.000,0.000},{1,10,3,1.000,0.000,0.000}) 18 0 1 0

VERTICES (index name u v w x y z):
0 T:0.0 5 6
1 S:0.0/0.0 7 8
2 S:0.0/0.1 9 1
3 S:0.0/1.0 2 3

EDGES (from-node to-node length a b):
0 1 12 3
1 2 3 4
0 3 7 5
2 3 9 5
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def delays_us(underlay: Underlay) -> dict[str, int]:
    return {link.name: link.ab.delay_us for link in underlay.links}


@pytest.mark.parametrize("end", [b"\x00\n\n", b"\n\x00\n\n", b"\x00\x00\r\n\r\n"])
def test_a_nul_byte_after_brite_s_model_is_accepted_as_text(tmp_path: Path, end: bytes) -> None:
    path = write(tmp_path, "cpp.brite", BRITE_CPP.replace(b"\x00\n\n", end))
    assert delays_us(import_topology(path)) == {"r2-r1": 2130, "r3-r2": 3290}
    unnamed = write(tmp_path, "cpp", BRITE_CPP.replace(b"\x00\n\n", end))
    assert import_topology(unnamed).source["format"] == "brite"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (BRITE_CPP.replace(b"322.00 ", b"322.00\x00"), 5),
        (BRITE_CPP.replace(b"RT_NODE \n", b"RT_NODE \x00\n", 1), 5),
        (BRITE_CPP.replace(b"( 1 )", b"(\x00)"), 2),
        (BRITE_CPP.replace(b"Topology", b"Topo\x00ogy"), 1),
        (b"a b\x00\n1 2\n", 1),
    ],
)
def test_other_nul_bytes_are_refused(tmp_path: Path, content: bytes, line: int) -> None:
    with pytest.raises(TopologyError, match=rf"line {line}: expected text, found the byte 0x00"):
        import_topology(write(tmp_path, "bad.brite", content))


def test_self_loops_in_the_header_of_gt_itm_are_noted(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "loops.alt", ALT))
    assert len(underlay.links) == 4
    (note,) = [note for note in underlay.source["notes"] if "header" in note]
    assert note.startswith("the header counts 2 edges more than the file has")
    assert "from a router to itself" in note


def test_a_full_file_of_gt_itm_has_no_such_note(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "full.alt", ALT.replace("4 12 ", "4 8 ")))
    assert not [note for note in underlay.source["notes"] if "header" in note]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("4 12 ", "4 16 ", "expected 8 edges as the header says, found 4"),
        ("4 12 ", "4 6 ", "expected 3 edges as the header says, found 4"),
        ("4 12 ", "4 11 ", "expected 5.5 edges as the header says, found 4"),
        ("(0,1,0,3,", "(0,1,0,1,", "expected 6 edges as the header says, found 4"),
        ("(0,1,0,3,", "(0,1,3,0,", "expected 6 edges as the header says, found 4"),
        ("4 12 transtub(0,1,0,3,", "4 12 geo(0,1,0,3,", "expected 6 edges .* found 4"),
    ],
)
def test_other_missing_edges_are_refused(tmp_path: Path, old: str, new: str, found: str) -> None:
    with pytest.raises(TopologyError, match=rf"line 10: {found}; .*restore the missing lines"):
        import_topology(write(tmp_path, "cut.alt", ALT.replace(old, new)))


def test_brite_s_systems_require_a_default_delay_and_use_it(tmp_path: Path) -> None:
    path, file = write(tmp_path, "as.brite", BRITE_SYSTEMS), tmp_path / "as.json"
    with pytest.raises(TopologyError, match=r"line 10: expected a delay .*--default-delay 5ms"):
        import_topology(path)
    parser = argparse.ArgumentParser()
    topology.add_parser(parser.add_subparsers(required=True))
    arguments = ["topology", "import", str(path), "--default-delay", "5ms", "-o", str(file)]
    options = parser.parse_args(arguments)
    assert options.run(options) == 0
    underlay = load_underlay(file)
    assert delays_us(underlay) == {"r2-r1": 5000, "r3-r2": 5000}
    note = "2 links have no delay in the file and get the default of 5000 us"
    assert note in underlay.source["notes"]


def test_a_default_delay_applies_only_to_links_without_one(tmp_path: Path) -> None:
    content = BRITE_CPP.replace(b"2.13", b"-1")
    underlay = import_topology(write(tmp_path, "mixed.brite", content), default_delay_us=77)
    assert delays_us(underlay) == {"r2-r1": 77, "r3-r2": 3290}
    with pytest.raises(TopologyError, match=r"line 10: the delay in ms: .* found -2"):
        content = BRITE_CPP.replace(b"2.13", b"-2")
        import_topology(write(tmp_path, "bad.brite", content), default_delay_us=77)
