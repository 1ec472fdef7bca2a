"""For every broken file, importers raise TopologyError and no other exception."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.errors import TopologyError
from topologies.importers import FORMATS, import_topology
from topologies.underlay import Underlay

SAMPLES = {
    "gt-itm": "GRAPH (#nodes #edges id):\n2 2 transtub(0)\nVERTICES (index name)\n"
    "0 T:0.0 5 6\n1 S:0.0/0.0 7 8\nEDGES (from-node to-node)\n0 1 12 3\n",
    "brite": "Topology: ( 2 Nodes, 1 Edges )\nModel (1)\nNodes: ( 2 )\n0 1 2 1 1 -1 RT_NODE\n"
    "1 3 4 1 1 -1 RT_NODE\nEdges: ( 1 )\n0 1 0 9.5 1.5 10.0 -1 -1 E_RT U\n",
    "rocketfuel-cch": "1 @A,+B + bb (2) &1 -> <2> {-7} =a.b r0\n2 @C (1) -> <1> =c! r1\n-7 =d r1\n",
    "rocketfuel-latencies": "a b 4\nb a 6.5\nb c 1\n",
    "rocketfuel-weights": "a b 4\nb c 1\n",
    "gml": 'graph [ directed 0\nnode [ id 1 label "A" Longitude 1.5 Latitude 2 ]\n'
    'node [ id 2 Longitude 3 Latitude 4 ]\nedge [ source 1 target 2 delay "5ms" ]\n]\n',
    "graphml": '<graphml><key id="d" for="edge" attr.name="delay_us"><default>3</default></key>\n'
    '<graph edgedefault="undirected"><node id="a"/><node id="b"/>\n'
    '<edge source="a" target="b"><data key="d">7</data></edge></graph></graphml>\n',
    "latency-matrix": "0 30 50\n30 0 40\n50 40 0\n",
    "latency-pairs": "1 2 30000\n1 3 50000\n2 3 40000\n",
}
PIECES = [
    "", " ", "\n", "-1", "0", "9" * 30, "1e400", "nan", "[", "]", '"', "<", ">", "&", "{", "}", "=",
    "\x00", "\u0661", "é", "1_0", "graph [", "<graphml>", "GRAPH (#nodes", "Topology: (", "->",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """A text as bytes, with a few parts overwritten, removed or repeated."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        piece = draw(st.sampled_from([*PIECES, text[start:end] * 2]))
        text = text[:start] + piece + text[end:]
    content = text.encode()
    return content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content


def import_or_complain(content: bytes, format: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        try:
            underlay = import_topology(path, format)
        except TopologyError as error:
            message = str(error)
            assert str(path) in message
            assert "expected" in message
            assert "found" in message
        else:
            assert isinstance(underlay, Underlay)


def test_every_format_has_a_sample(tmp_path: Path) -> None:
    assert set(SAMPLES) == set(FORMATS)
    for format, text in SAMPLES.items():
        path = tmp_path / "file"
        path.write_text(text)
        assert import_topology(path, format).source["format"] == format


@pytest.mark.parametrize("format", SAMPLES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_mutated_files(format: str, data: st.DataObject) -> None:
    content = data.draw(mutated(SAMPLES[format]))
    import_or_complain(content, data.draw(st.sampled_from([format, None])))


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=60), format=st.sampled_from([None, *FORMATS]))
def test_arbitrary_bytes(content: bytes, format: str | None) -> None:
    import_or_complain(content, format)
