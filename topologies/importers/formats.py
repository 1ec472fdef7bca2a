"""The table of formats, the detection of a file's format, and the import."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from topologies.delays import whole_delay_us
from topologies.errors import TopologyError
from topologies.importers.brite import read_brite
from topologies.importers.gml import read_gml
from topologies.importers.graphml import read_graphml
from topologies.importers.gt_itm import read_gt_itm
from topologies.importers.latency_matrix import read_matrix, read_pairs
from topologies.importers.options import DELAY_US_PER_LENGTH_UNIT, ImportOptions
from topologies.importers.rocketfuel import read_cch, read_latencies, read_weights
from topologies.importers.source_file import SourceFile, read_source
from topologies.parameters import check_parameter
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay


@dataclass(frozen=True)
class Format:
    """A file format: its reader, and its description for users."""

    read: Callable[[SourceFile, ImportOptions], Underlay]
    description: str


FORMATS = {
    "gt-itm": Format(read_gt_itm, "GT-ITM's .alt"),
    "brite": Format(read_brite, "BRITE's .brite"),
    "rocketfuel-cch": Format(read_cch, "Rocketfuel's .cch, without delays"),
    "rocketfuel-latencies": Format(read_latencies, "Rocketfuel's latencies.intra, in ms"),
    "rocketfuel-weights": Format(read_weights, "Rocketfuel's weights.intra, taken as ms"),
    "gml": Format(read_gml, "GML, as the Topology Zoo has it"),
    "graphml": Format(read_graphml, "GraphML, as the Topology Zoo has it"),
    "latency-matrix": Format(read_matrix, "N rows of N round-trip times in ms (PlanetLab, King)"),
    "latency-pairs": Format(read_pairs, "lines `i j microseconds` (Meridian)"),
}

_BY_EXTENSION = {
    ".alt": "gt-itm",
    ".brite": "brite",
    ".cch": "rocketfuel-cch",
    ".gml": "gml",
    ".graphml": "graphml",
}
_BY_CONTENT = (
    ("gt-itm", re.compile(r"\A\s*GRAPH\s*\(#nodes")),
    ("brite", re.compile(r"\A\s*Topology:\s*\(")),
    ("graphml", re.compile(r"\A\s*<(\?xml|graphml|!--)")),
    ("rocketfuel-cch", re.compile(r"\A\s*-?[0-9]+\s+[@=]")),
    ("gml", re.compile(r"^[ \t]*graph\s*\[", re.MULTILINE)),
)
_WHOLE_NUMBERS = re.compile(r"[0-9]+\s+[0-9]+\s+[0-9]+")
_NUMBERS = re.compile(r"[-+0-9.eE\s]+")
_ZERO = re.compile(r"0+\.?0*")


def import_topology(
    path: Path,
    format: str | None = None,
    *,
    default_delay_us: int | None = None,
    delay_us_per_unit: float = DELAY_US_PER_LENGTH_UNIT,
) -> Underlay:
    """The underlay in a file of another tool; `source` has notes on what was assumed or left out.

    Without a format, the extension decides, then the content. `default_delay_us` is for links
    without a delay in the file; `delay_us_per_unit` is for GT-ITM, whose lengths have no unit.
    """
    if format is not None and format not in FORMATS:
        raise TopologyError(
            f"{path}: expected a format of {', '.join(FORMATS)}; found {format!r}; "
            f"name one of them, or none to have it recognised"
        )
    if default_delay_us is not None:
        whole_delay_us(default_delay_us, default_delay_us, "default_delay_us")
    check_parameter("delay_us_per_unit", delay_us_per_unit, "above 0", delay_us_per_unit > 0)
    source = read_source(path)
    options = ImportOptions(default_delay_us, delay_us_per_unit)
    return FORMATS[format or detect_format(source)].read(source, options)


def load_topology(path: Path) -> Underlay:
    """The underlay in a file of the testbed, or of any format that can be imported."""
    try:
        with path.open("rb") as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        start = b""  # the importer reports what is wrong with the file
    is_ours = path.suffix.lower() == ".json" or start.startswith(b"{")
    return load_underlay(path) if is_ours else import_topology(path)


def detect_format(source: SourceFile) -> str:
    """The name of a file's format, by its extension or else its content."""
    extension = source.path.suffix.lower()
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if extension == ".intra":
        is_weights = "weight" in source.path.name.lower()
        return "rocketfuel-weights" if is_weights else "rocketfuel-latencies"
    for name, mark in _BY_CONTENT:
        if mark.search(source.text):
            return name
    return _detect_table(source)


def _detect_table(source: SourceFile) -> str:
    """The name of the format of a file of rows and columns."""
    line, first = source.lines[0]
    columns = first.split()
    is_square = len(columns) == len(source.lines)
    if is_square and _ZERO.fullmatch(columns[0]):
        return "latency-matrix"
    if len(columns) == 3 and _WHOLE_NUMBERS.fullmatch(first):
        return "latency-pairs"
    if _NUMBERS.fullmatch(first) and len(columns) > 1:
        return "latency-matrix"
    if len(columns) == 3 and _NUMBERS.fullmatch(columns[2]):
        return "rocketfuel-latencies"
    raise source.error(
        line,
        f"a known format ({', '.join(FORMATS)})",
        repr(first),
        "name the format with --format",
    )
