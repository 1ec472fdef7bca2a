"""Importers: small files, valid and invalid, and real ones if they are present."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import nnls

from topologies.delays import parse_delay
from topologies.errors import TopologyError
from topologies.importers import FORMATS, import_topology
from topologies.importers.attributed_graph import great_circle_km
from topologies.importers.latency_matrix import fit_last_miles_us, median_relative_error
from topologies.underlay import Underlay
from topologies.underlay_file import underlay_from_json, underlay_to_json

REAL = Path(__file__).parents[4] / "shared" / "data"

ALT = """GRAPH (#nodes #edges id uu vv ww xx yy zz):
4 6 transtub(0,1,0,0) 10 1 1 0

VERTICES (index name u v w x y z):
0 T:0.0 5 6
1 S:0.0/0.0 7 8
2 S:0.0/0.1 9 1
3 S:0.0/1.0 2 3

EDGES (from-node to-node length a b):
0 1 12 3
1 2 3.5 4
0 3 7 5 1
"""

BRITE = """Topology: ( 3 Nodes, 2 Edges )
Model (1 - RTWaxman):  3 1000 100 1  2  0.15 0.2 1 1 10.0 1024.0

Nodes: ( 3 )
7\t322\t729\t16\t16\t-1\tRT_NODE
8\t916\t967\t10\t10\t-1\tRT_NODE
9\t148\t348\t13\t13\t-1\tRT_NODE

Edges: ( 2 )
0\t8\t7\t418.8\t1.3971\t10.0\t-1\t-1\tE_RT\tU
1\t9\t8\t986.4\t3.2902\t10.0\t-1\t-1\tE_RT\tU
"""

CCH = """1 @New+York,+NY + bb\t(3) &1 -> <2> <3> {-7} =a.example.net r0
2 @Boston,+MA  \t(1) -> <1>  =b.example.net! r0
3 @?  \t(2) -> <1> <3>  =192.0.2.1 r1
4 @Boston,+MA  \t(1) -> <5>  =c.example.net r0
5 @Boston,+MA  \t(1) -> <4>  =d.example.net r0
6 @Boston,+MA  \t(1) ->   =e.example.net r0
-7 =192.0.2.9 r1
"""

INTRA = """a+1 b+2 4
b+2 a+1 6.5
b+2 c+3 1
"""

GML = """# a comment
graph [
  directed 0
  label "Three places & more"
  node [
    id 10
    label "London"
    Longitude -0.12574
    Latitude 51.50853
  ]
  node [
    id 20
    label "Paris"
    Longitude 2.3488
    Latitude 48.85341
  ]
  node [
    id 30
    label "Nowhere"
  ]
  edge [
    source 10
    target 20
    LinkLabel "10 Gbps"
  ]
  edge [
    source 10
    target 20
    delay "300us"
  ]
  edge [
    source 20
    target 20
  ]
  edge [
    source 20
    target 30
  ]
]
"""

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="delay_ms" attr.type="double" for="edge" id="d0"><default>9</default></key>
  <key attr.name="name" attr.type="string" for="node" id="d1" />
  <graph edgedefault="directed">
    <node id="a"><data key="d1">Alpha</data></node>
    <node id="b" />
    <node id="c" />
    <edge source="a" target="b"><data key="d0">1.5</data></edge>
    <edge source="b" target="a"><data key="d0">2</data></edge>
    <edge source="b" target="c" />
  </graph>
</graphml>
"""

MATRIX = """0 30 50
30 0 40
50 40 0
"""

PAIRS = """1 2 30000
1 3 50000
2 3 40000
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def delays_us(underlay: Underlay) -> dict[str, tuple[int, int]]:
    return {link.name: (link.ab.delay_us, link.ba.delay_us) for link in underlay.links}


def labels(underlay: Underlay) -> list[str]:
    return [router.label for router in underlay.routers]


def notes(underlay: Underlay) -> str:
    return "\n".join(underlay.source["notes"])


def test_gt_itm(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.alt", ALT))
    assert delays_us(underlay) == {"r1-r2": (1200,) * 2, "r2-r3": (350,) * 2, "r1-r4": (700,) * 2}
    assert [router.role for router in underlay.routers] == ["transit", "stub", "stub", "stub"]
    assert labels(underlay) == ["T:0.0", "S:0.0/0.0", "S:0.0/0.1", "S:0.0/1.0"]
    assert (underlay.routers[1].x, underlay.routers[1].y) == (7, 8)
    assert underlay.source["format"] == "gt-itm"
    assert underlay.source["file"] == "small.alt"


def test_gt_itm_other_kinds_have_plain_routers(tmp_path: Path) -> None:
    path = write(tmp_path, "geo.alt", ALT.replace("transtub", "geo").replace("S:", "n"))
    underlay = import_topology(path, delay_us_per_unit=10)
    assert {router.role for router in underlay.routers} == {"router"}
    assert delays_us(underlay)["r1-r2"] == (120, 120)


def test_brite(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.brite", BRITE))
    assert delays_us(underlay) == {"r2-r1": (1397, 1397), "r3-r2": (3290, 3290)}
    assert labels(underlay) == ["7", "8", "9"]
    assert all(link.ab.rate_mbit is None for link in underlay.links)
    assert "bandwidth" in notes(underlay)


def test_rocketfuel_cch_keeps_the_largest_piece(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.cch", CCH), default_delay_us=2500)
    assert delays_us(underlay) == {"r1-r2": (2500, 2500), "r1-r3": (2500, 2500)}
    assert labels(underlay) == ["1 New York, NY", "2 Boston, MA", "3 ?"]
    assert "default of 2500 us" in notes(underlay)
    assert "1 links from a router to itself" in notes(underlay)
    assert "3 pieces" in notes(underlay)
    assert "left out 3 routers" in notes(underlay)


def test_rocketfuel_cch_states_its_default_delay(tmp_path: Path) -> None:
    assert "default of 1000 us" in notes(import_topology(write(tmp_path, "small.cch", CCH)))


def test_rocketfuel_latencies_differ_by_direction(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "latencies.intra", INTRA))
    assert delays_us(underlay) == {"r1-r2": (4000, 6500), "r2-r3": (1000, 1000)}
    assert labels(underlay) == ["a+1", "b+2", "c+3"]


def test_rocketfuel_weights_note_that_they_have_no_unit(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "weights.intra", INTRA))
    assert underlay.source["format"] == "rocketfuel-weights"
    assert "no unit" in notes(underlay)


def test_gml_delays_from_coordinates_and_texts(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.gml", GML))
    # London to Paris is 344 km; the parallel link with its own delay is shorter.
    assert great_circle_km(-0.12574, 51.50853, 2.3488, 48.85341) == pytest.approx(344, abs=1)
    assert delays_us(underlay) == {"r1-r2": (300, 300), "r2-r3": (1010, 1010)}
    assert labels(underlay) == ["London", "Paris", "Nowhere"]
    assert "1 parallel links" in notes(underlay)
    assert "1 links from a router to itself" in notes(underlay)
    assert "Nowhere" in notes(underlay)
    assert "get the median of the others" in notes(underlay)
    assert underlay.routers[2].x == underlay.routers[1].x


def test_gml_default_delay_for_links_without_one(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.gml", GML), default_delay_us=7)
    assert delays_us(underlay)["r2-r3"] == (7, 7)


def test_great_circle_of_a_quarter_of_the_globe() -> None:
    assert great_circle_km(0, 0, 90, 0) == pytest.approx(6371 * np.pi / 2)
    assert great_circle_km(10, 50, 10, 50) == 0


def test_graphml_directed_with_defaults(tmp_path: Path) -> None:
    underlay = import_topology(write(tmp_path, "small.graphml", GRAPHML))
    assert delays_us(underlay) == {"r1-r2": (1500, 2000), "r2-r3": (9000, 9000)}
    assert labels(underlay) == ["Alpha", "b", "c"]


def test_matrix_becomes_hosts_around_an_exchange(tmp_path: Path) -> None:
    for name, content in (("m.txt", MATRIX), ("p.txt", PAIRS)):
        underlay = import_topology(write(tmp_path, name, content))
        # Three pairs determine three last miles: 10 + 5 = 15, 10 + 15 = 25, 5 + 15 = 20.
        assert delays_us(underlay) == {
            "h1-r1": (10_000, 10_000),
            "h2-r1": (5_000, 5_000),
            "h3-r1": (15_000, 15_000),
        }
        assert "median relative error 0.0 %" in notes(underlay)


def test_the_fit_is_the_best_without_negative_delays() -> None:
    rng = np.random.default_rng(1)
    rtt_us = rng.exponential(1e5, (12, 12)) ** 2 / 1e5
    np.fill_diagonal(rtt_us, 0)
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    system = np.zeros((len(pairs), 12))
    for row, pair in enumerate(pairs):
        system[row, pair] = 1
    expected, _ = nnls(system, [rtt_us[pair] / 2 for pair in pairs])
    fitted = fit_last_miles_us(rtt_us)
    assert (expected == 0).any(), "the case should need the bound"
    assert fitted == pytest.approx(expected, abs=0.1)


def test_fit_error_is_relative_to_the_round_trip_times() -> None:
    rtt_us = np.array([[0.0, 20, 0], [20, 0, 20], [20, 20, 0]])
    assert median_relative_error(rtt_us, np.array([6.0, 6, 6])) == pytest.approx(0.2)


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    contents = {
        "gt-itm": ALT,
        "brite": BRITE,
        "rocketfuel-cch": CCH,
        "rocketfuel-latencies": INTRA,
        "gml": GML,
        "graphml": GRAPHML,
        "latency-matrix": MATRIX,
        "latency-pairs": PAIRS,
    }
    for name, content in contents.items():
        assert import_topology(write(tmp_path, "file", content)).source["format"] == name
    assert import_topology(tmp_path / "file", "latency-pairs").source["format"] == "latency-pairs"
    assert set(FORMATS) == {*contents, "rocketfuel-weights"}


def test_imports_are_equal_after_writing_and_reading(tmp_path: Path) -> None:
    for name, content in (("a.alt", ALT), ("g.gml", GML), ("m.txt", MATRIX)):
        underlay = import_topology(write(tmp_path, name, content))
        assert underlay_from_json(underlay_to_json(underlay), name) == underlay


BAD = [
    # file name, content, line, and part of the message
    ("header.alt", ALT.replace("4 6 transtub", "four transtub"), 2, "'four transtub"),
    ("nodes.alt", ALT.replace("4 6 trans", "5 6 trans"), 4, "expected 5 vertices"),
    ("edges.alt", ALT.replace("4 6 trans", "4 8 trans"), 10, "expected 4 edges"),
    ("id.alt", ALT.replace("1 2 3.5", "1 9 3.5"), 12, "'9'"),
    ("twice.alt", ALT.replace("3 S:0.0/1.0", "2 S:0.0/1.0"), 8, "'2' again"),
    ("negative.alt", ALT.replace("0 1 12 3", "0 1 -12 3"), 11, "-12"),
    ("name.alt", ALT.replace("S:0.0/0.1", "Q:1"), 7, "'Q:1'"),
    ("short.alt", ALT.replace("1 2 3.5 4", "1 2"), 12, "'1 2'"),
    ("cut.alt", ALT[: ALT.index("EDGES")], 8, "a line that starts with EDGES"),
    ("header.brite", BRITE.replace("3 Nodes,", "Nodes,"), 1, "'Topology: ( Nodes"),
    ("count.brite", BRITE.replace("3 Nodes,", "4 Nodes,"), 1, "expected 4 nodes"),
    ("title.brite", BRITE.replace("Edges: ( 2 )", "Edges: ( 3 )"), 9, "expected 3 edges"),
    ("delay.brite", BRITE.replace("1.3971", "-1.0"), 10, "-1.0"),
    ("missing.brite", BRITE.replace("\t3.2902", ""), 11, "'1 9 8 986.4 10.0"),
    ("nan.brite", BRITE.replace("3.2902", "nan"), 11, "'nan'"),
    ("twice.brite", BRITE.replace("8\t916", "7\t916"), 6, "'7' again"),
    ("unknown.cch", CCH.replace("<2>", "<22>"), 1, "'22'"),
    ("token.cch", CCH.replace("{-7}", "(-7)"), 1, "'(-7)'"),
    ("line.cch", CCH.replace("2 @Boston", "2 Boston"), 2, "'2 Boston"),
    ("twice.cch", CCH.replace("2 @Bos", "1 @Bos"), 2, "'1' again"),
    ("unit.intra", INTRA.replace("6.5", "6.5ms"), 2, "'6.5ms'"),
    ("missing.intra", INTRA.replace(" 6.5", ""), 2, "'b+2 a+1'"),
    ("negative.intra", INTRA.replace(" 1\n", " -1\n"), 3, "found -1"),
    ("unit.gml", GML.replace('"300us"', "5"), 29, "'5' without a unit"),
    ("key.gml", GML.replace('delay "300us"', "delay_ms -3"), 29, "found -3"),
    ("unknown.gml", GML.replace("target 30", "target 31"), 35, "'31'"),
    ("twice.gml", GML.replace("id 20", "id 10"), 11, "'10' again"),
    ("noid.gml", GML.replace("    id 30\n", ""), 17, "expected id in this node"),
    ("place.gml", GML.replace("51.50853", "151"), 9, "151"),
    ("open.gml", GML.rstrip().removesuffix("]"), 2, "a ] for this ["),
    ("close.gml", GML + "]\n", 40, "']'"),
    ("quote.gml", 'graph [\n  label "x\n]\n', 2, 'a closing "'),
    ("value.gml", GML.replace("target 30", "target"), 37, "']'"),
    ("none.gml", 'Creator "nobody"\n', 1, "one `graph"),
    ("xml.graphml", GRAPHML.replace("</edge>", "", 1), 12, "mismatched tag"),
    ("end.graphml", GRAPHML.replace('target="b"', ""), 9, "expected target in <edge>"),
    ("key.graphml", GRAPHML.replace('data key="d1"', 'data key="d7"'), 6, "'d7'"),
    ("root.graphml", "<svg>\n</svg>\n", 1, "<svg>"),
    ("unit.graphml", GRAPHML.replace('"delay_ms"', '"delay"'), 9, "'1.5' without a unit"),
    ("twice.graphml", GRAPHML.replace('node id="c"', 'node id="b"'), 8, "'b' again"),
    ("bomb.graphml", '<!DOCTYPE a [\n<!ENTITY b "c">\n]>\n' + GRAPHML[39:], 2, "entity"),
    ("ragged.txt", MATRIX.replace("30 0 40", "30 0"), 2, "found 2"),
    ("negative.txt", MATRIX.replace("30 0 40", "30 0 -1"), 2, "column 3"),
    ("text.txt", MATRIX.replace("30 0 40", "30 0 x"), 2, "'x'"),
    ("alone.txt", "0 5 0\n5 0 0\n0 0 0\n", 3, "every host"),
    ("twice.txt", PAIRS + "1 2 7\n", 4, "1 2 again"),
    ("empty.alt", "", 1, "an empty file"),
    ("blank.txt", " \n\n", 1, "an empty file"),
    ("junk.brite", b"Topo\x00logy\n", 1, "0x00"),
    ("junk.txt", b"a\nb\xff\xfe", 2, "0xff"),
    ("packed.gml", b"\x1f\x8b\x08\x00", 1, "gunzip packed.gml"),
    ("unknown.dat", "hello world\n", 1, "a known format"),
]


@pytest.mark.parametrize(("name", "content", "line", "words"), BAD, ids=[case[0] for case in BAD])
def test_bad_files(tmp_path: Path, name: str, content: str | bytes, line: int, words: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(TopologyError) as caught:
        import_topology(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert words in message
    assert "expected" in message
    assert "found" in message
    assert "\n" not in message


def test_bad_calls(tmp_path: Path) -> None:
    path = write(tmp_path, "small.alt", ALT)
    with pytest.raises(TopologyError, match=r"expected a format of gt-itm.*found 'pajek'"):
        import_topology(path, "pajek")
    with pytest.raises(TopologyError, match=r"none\.alt.*No such file"):
        import_topology(tmp_path / "none.alt")
    with pytest.raises(TopologyError, match="Is a directory"):
        import_topology(tmp_path)
    with pytest.raises(TopologyError, match="found -5"):
        import_topology(path, default_delay_us=-5)
    with pytest.raises(TopologyError, match="delay_us_per_unit"):
        import_topology(path, delay_us_per_unit=0)


def test_a_graph_without_coordinates_or_delays_requires_a_default(tmp_path: Path) -> None:
    bare = "graph [\nnode [ id 1 ]\nnode [ id 2 ]\nedge [ source 1 target 2 ]\n]\n"
    path = write(tmp_path, "bare.gml", bare)
    with pytest.raises(TopologyError, match=r"line 4: expected a delay.*--default-delay"):
        import_topology(path)
    assert delays_us(import_topology(path, default_delay_us=9)) == {"r1-r2": (9, 9)}


@pytest.mark.parametrize(
    ("text", "delay_us"),
    [("5ms", 5000), ("300us", 300), ("0.5s", 500_000), (" 1.5 ms ", 1500), ("2µs", 2), ("0ms", 0)],
)
def test_delay_texts(text: str, delay_us: int) -> None:
    assert parse_delay(text) == delay_us


@pytest.mark.parametrize("text", ["5", "", "ms", "-5ms", "5 km", "1e9s", "nan ms", "5ms 3ms"])
def test_bad_delay_texts(text: str) -> None:
    with pytest.raises(TopologyError, match="expected"):
        parse_delay(text)


def real_file(name: str) -> Path:
    path = REAL / name
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path


@pytest.mark.parametrize(
    ("name", "routers", "links"),
    [
        ("ts1584a-0.alt", 1584, 2838),
        ("t100-0.alt", 100, 187),
        ("RTWaxman1640.brite", 1640, 3280),
        ("brite-topdown.brite", 1500, 3060),
        ("rocketfuel-1239.latencies.intra", 315, 972),
        ("rocketfuel-1239.weights.intra", 315, 972),
        ("rocketfuel-2914.r0.cch", 960, 2821),
        ("Geant2012.gml", 40, 61),
        ("topozoo-garr.graphml", 61, 75),
    ],
)
def test_real_files(name: str, routers: int, links: int) -> None:
    underlay = import_topology(real_file(f"topologies/{name}"))
    assert (len(underlay.routers), len(underlay.links)) == (routers, links)


@pytest.mark.parametrize("name", ["Geant2012.gml", "topozoo-garr.graphml"])
def test_real_graphs_equal_those_read_by_networkx(name: str) -> None:
    path = real_file(f"topologies/{name}")
    theirs = nx.read_gml(path, label="id") if path.suffix == ".gml" else nx.read_graphml(path)
    number = {node: f"r{index + 1}" for index, node in enumerate(theirs)}
    edges = {frozenset((number[a], number[b])) for a, b in theirs.edges()}
    underlay = import_topology(path)
    assert {frozenset((link.a, link.b)) for link in underlay.links} == edges
    assert labels(underlay) == [theirs.nodes[node]["label"] for node in theirs]


@pytest.mark.parametrize(
    ("name", "hosts", "note"),
    [("planetlab-490.txt", 490, "error 34.6 %"), ("freepastry-1000.txt", 1000, "error 11.6 %")],
)
def test_real_matrices(name: str, hosts: int, note: str) -> None:
    underlay = import_topology(real_file(f"latency/{name}"))
    assert (len(underlay.routers), len(underlay.hosts)) == (1, hosts)
    assert note in notes(underlay)
