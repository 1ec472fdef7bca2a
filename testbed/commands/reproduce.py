"""`tdo reproduce`: the paper's claims beside our own runs, as a table and an HTML page."""

import argparse
import json
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.privileges import require_root
from testbed.commands.sweep import add_arguments, draw_figures, load_measure, make_carriers
from testbed.errors import ExperimentError, UsageError
from testbed.experiment.file import BACKENDS, parse_change
from testbed.ownership import hand_over
from testbed.sweeps.directory import SweepDirectory, find_runs
from testbed.sweeps.file import Sweep, load_sweep
from testbed.sweeps.rows import FAILED, Row, count_commits
from testbed.sweeps.runs import Carrier, play_sweep

if TYPE_CHECKING:
    from analysis.claims import Claim, ClaimResult, SweepFiles, SweepRows

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
_SCALES = ("small", "paper")
_COLUMNS = ("claim", "paper", "ours (mean over seeds [95 % interval])", "interval", "holds")
_NARROW = {"claim": 5, "paper": 20, "interval": 26, "holds": 7}
_WIDEST, _NARROWEST = 160, 100
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Played:
    """A sweep that feeds claims, as far as it was done."""

    sweep: Sweep
    directory: SweepDirectory
    rows: Sequence[Row]


def add_parser(commands: Any) -> None:
    """Add `reproduce` to the commands."""
    parser = commands.add_parser(
        "reproduce", help="run what published claims need, and say whether they hold"
    )
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help="T1 to T12; default: all")
    parser.add_argument(
        "--scale",
        choices=_SCALES,
        default="small",
        help="small (default): 128 peers, minutes, for a look; paper: 1,024 peers, for the record",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="simulation",
        help="default: simulation; emulated runs are done one after another, in their own time",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change every sweep beyond its scale, as in seed='[1, 2, 3, 4, 5]'",
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="default: results")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    add_arguments(parser)
    parser.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    return perform(options, make_carriers(options, load_measure()))


def perform(options: argparse.Namespace, carriers: Mapping[str, Carrier]) -> int:
    """Do what the command asks for, with a carrier for each backend; returns the exit status."""
    claims = _find_claims(options.claims)
    if options.backend == "emulation":
        require_root("reproduce --backend emulation")
    changes = dict(parse_change(text) for text in options.changes) | {"backend": options.backend}
    sweeps = load_sweeps(claims, options.scale, changes)
    results, files, verdicts = reproduce(claims, sweeps, options.out, carriers)
    page = _write_page(options, results, files)
    print()
    print(format_table(results, shutil.get_terminal_size((120, 24)).columns))
    print(f"\n{page} shows all of it")
    if options.json:
        print(json.dumps({"claims": [to_json(r) for r in results], "page": str(page)}))
    return _exit_status(results, verdicts)


def _exit_status(results: Sequence["ClaimResult"], verdicts: Counter[str]) -> int:
    is_missing = any(not result.finding.parts and not result.failed for result in results)
    if is_missing or verdicts[FAILED]:
        return 1
    return 0 if set(verdicts) <= {"valid"} else 3


def load_sweeps(
    claims: Sequence["Claim"], scale: str, changes: Mapping[str, Any]
) -> dict[str, Sweep]:
    """The sweeps that feed some claims, each once, by the names of their files."""
    from analysis.claims import SCALES

    if not EXPERIMENTS.is_dir():
        raise UsageError(
            f"{EXPERIMENTS}: expected the experiment files of the checkout, found none; install "
            "the testbed from a checkout"
        )
    names = dict.fromkeys(source.experiment for claim in claims for source in claim.sweeps)
    return {
        name: load_sweep(EXPERIMENTS / f"{name}.toml", {**SCALES[scale][name], **changes})
        for name in names
    }


def reproduce(
    claims: Sequence["Claim"],
    sweeps: Mapping[str, Sweep],
    results: Path,
    carriers: Mapping[str, Carrier],
) -> tuple[list["ClaimResult"], dict[str, "SweepFiles"], Counter[str]]:
    """Do the runs that are missing, draw figures, and find out about each claim.

    Beside what was found are what the sweeps left, and the verdicts of all runs that were needed.
    """
    from analysis.claims import SweepFiles, SweepRows

    rows: dict[str, SweepRows] = {}
    files: dict[str, SweepFiles] = {}
    doubtful: dict[str, list[Row]] = {}
    verdicts: Counter[str] = Counter()
    for name, sweep in sweeps.items():
        fed = [c.id for c in claims for source in c.sweeps if source.experiment == name]
        print(f"{name}, for {', '.join(fed)}", flush=True)
        is_needed = _need(claims, name)
        played = _play(sweep, results, carriers, is_needed)
        verdicts.update(row["verdict"] for row in played.rows if is_needed(row))
        good = [row for row in played.rows if row["verdict"] == "valid"]
        doubtful[name] = [row for row in played.rows if row["verdict"] != "valid"]
        _tell_doubtful(doubtful[name], played.directory)
        _draw(played, good)
        rows[name] = SweepRows(name, good, played.directory.path)
        files[name] = SweepFiles(name, played.directory.path, len(played.rows))
    return [_find_out(claim, rows, doubtful) for claim in claims], files, verdicts


def _need(claims: Sequence["Claim"], name: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether any of the claims needs a run of this sweep, by its row or what sets it apart."""
    sources = [s for claim in claims for s in claim.sweeps if s.experiment == name]
    return lambda values: any(source.needs(values) for source in sources)


def _play(
    sweep: Sweep,
    results: Path,
    carriers: Mapping[str, Carrier],
    is_needed: Callable[[Mapping[str, Any]], bool],
) -> Played:
    directory = SweepDirectory.of(sweep, results)
    rows = play_sweep(
        sweep,
        directory,
        carriers,
        is_measured=True,
        say=_say,
        is_needed=lambda swept: is_needed(swept.values),
        elsewhere=find_runs(results),  # as sweeps have some runs in common
    )
    return Played(sweep, directory, rows)


def _tell_doubtful(rows: Sequence[Row], directory: SweepDirectory) -> None:
    for row in rows:
        what = row["error"] or f"{directory.path / row['path']}; remove it to have it done again"
        _say(f"{row['verdict']}: {what}")


def _draw(played: Played, rows: Sequence[Row]) -> None:
    try:
        draw_figures(played.sweep, rows, played.directory)
    except ExperimentError as error:  # as where no run has what is to be drawn
        _say(f"not drawn: {error}")


def _find_out(
    claim: "Claim", rows: Mapping[str, "SweepRows"], doubtful: Mapping[str, Sequence[Row]]
) -> "ClaimResult":
    from analysis.claims import ClaimResult

    missing = sum(
        source.needs(row) for source in claim.sources for row in doubtful[source.experiment]
    )
    runs = claim.runs(rows)
    finding = claim.evaluate(rows, missing)
    return ClaimResult(claim, finding, len(runs), missing, count_commits(runs))


def _find_claims(wanted: Sequence[str]) -> list["Claim"]:
    from analysis.claims import UnknownClaim, find_claims

    try:
        return find_claims(wanted)
    except UnknownClaim as error:
        raise UsageError(f"claim {error}") from error


def _write_page(
    options: argparse.Namespace,
    results: Sequence["ClaimResult"],
    files: Mapping[str, "SweepFiles"],
) -> Path:
    from analysis.claims import Request, write_page

    names = [result.claim.id for result in results] if options.claims else ["index"]
    name = re.sub(r"[^\w.]+", "-", "-".join([*names, *options.changes]))[:_LONGEST_NAME].strip("-")
    request = Request(options.scale, options.backend, tuple(options.changes))
    target: Path = options.out.absolute() / "reproduce" / request.folder / f"{name}.html"
    try:
        return write_page(target, request, results, files)
    finally:
        hand_over([options.out.absolute() / "reproduce"])


def to_json(result: "ClaimResult") -> dict[str, Any]:
    """A claim and what was found, for scripts; what cannot be told is null."""
    finding = result.finding
    interval = finding.interval
    return {
        "id": result.claim.id,
        "paper": result.claim.published,
        "ours": finding.ours,
        "interval": interval and interval.bounds,
        "interval_of": finding.interval_of or None,
        "holds": finding.holds,
        "in_part": finding.is_in_part,
        "runs": result.runs,
        "failed": result.failed,
        "commits": dict(result.commits),
    }


def format_table(results: Sequence["ClaimResult"], width: int) -> str:
    """A table with wrapped cells, as wide as the terminal within reason."""
    left = max(_NARROWEST, min(width, _WIDEST)) - sum(_NARROW.values()) - 2 * (len(_COLUMNS) - 1)
    widths = [_NARROW.get(column, left) for column in _COLUMNS]
    lines = [_lay_out([[column] for column in _COLUMNS], widths)]
    for result in results:
        lines += ["-" * (sum(widths) + 2 * (len(widths) - 1)), _lay_out(_cells(result), widths)]
    return "\n".join(lines)


def _cells(result: "ClaimResult") -> list[list[str]]:
    """The paragraphs of each cell."""
    from analysis.claims import describe_interval

    finding = result.finding
    marks = {True: "+ ", False: "- ", None: "  "}
    ours = [marks[part.holds] + part.text for part in finding.parts]
    interval = [] if finding.interval is None else [describe_interval(finding.interval)]
    return [
        [result.claim.id],
        [f"figure {result.claim.figure}: {result.claim.published}"],
        [*([finding.reason] if finding.reason else []), *ours],
        [*interval, *([finding.interval_of] if finding.interval_of else [])],
        [finding.verdict],
    ]


def _lay_out(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """One row of the table."""
    wrapped = [
        [
            line
            for text in cell
            for line in textwrap.wrap(text, width, subsequent_indent=_hang(text))
        ]
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, wrapped))):
        texts = [cell[number] if number < len(cell) else "" for cell in wrapped]
        padded = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
        lines.append(padded.rstrip())
    return "\n".join(lines)


def _hang(text: str) -> str:
    return "  " if text[:2] in ("+ ", "- ", "  ") else ""


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
