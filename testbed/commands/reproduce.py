"""`tdo reproduce`: published claims compared with our results, in a table and a page."""

import argparse
import functools
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.carriers import carry_on_spark
from testbed.commands.claim_evidence import Carriers, load_sources, reproduce
from testbed.commands.claim_table import format_list, format_table, list_for_scripts, to_json
from testbed.commands.privileges import require_root
from testbed.commands.sweep import add_arguments, load_measure, make_carriers
from testbed.data_files import default_data_folder
from testbed.errors import UsageError
from testbed.experiment.file import BACKENDS, parse_change
from testbed.ownership import hand_over
from testbed.sweeps.file import Sweep
from testbed.sweeps.rows import FAILED

if TYPE_CHECKING:
    from analysis.claims import Claim, ClaimResult, SweepFiles

_SCALES = ("small", "paper")
_LONGEST_NAME = 200
_USUAL_TERMINAL = (120, 24)


def add_parser(commands: Any) -> None:
    """Add `reproduce` to the commands."""
    parser = commands.add_parser(
        "reproduce", help="run what published claims need, and print whether they hold"
    )
    parser.add_argument(
        "claims",
        nargs="*",
        metavar="CLAIM",
        help="an id as in T1, or the letter of a paper for all of its claims; default: all",
    )
    parser.add_argument(
        "--list", action="store_true", help="only print the claims, with paper and section"
    )
    parser.add_argument(
        "--scale",
        choices=_SCALES,
        default="small",
        help="small: reduced sizes, some minutes; paper: the sizes of the paper; default: small",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="simulation",
        help="backend of the runs; emulated ones take real time, one after another; "
        "default: simulation",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change a key of every sweep, and of every computation that has it, as in "
        "seed='[1, 2, 3, 4, 5]'; may be repeated; default: none",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of data files, such as social graphs; default: $TDO_DATA, else data",
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    add_arguments(parser)
    parser.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    if options.list:
        return list_all(options)
    points = functools.partial(carry_on_spark, options.master, options.jobs)
    return perform(options, Carriers(make_carriers(options, load_measure()), points))


def list_all(options: argparse.Namespace) -> int:
    """Print claims with paper and section; returns the exit status."""
    claims = _find_claims(options.claims)
    print(format_list(claims, shutil.get_terminal_size(_USUAL_TERMINAL).columns))
    if options.json:
        print(json.dumps({"claims": list_for_scripts(claims)}))
    return 0


def perform(options: argparse.Namespace, carriers: Carriers) -> int:
    """Carry out the command; returns the exit status."""
    claims = _find_claims(options.claims)
    changes = dict(parse_change(text) for text in options.changes)
    data = options.data or default_data_folder()
    sources = load_sources(claims, options.scale, changes, options.backend, data.resolve())
    if options.backend == "emulation" and any(isinstance(s, Sweep) for s in sources.values()):
        require_root("reproduce --backend emulation")
    results, files, verdicts = reproduce(claims, sources, options.out, carriers)
    page = _write_page(options, results, files)
    print()
    print(format_table(results, shutil.get_terminal_size(_USUAL_TERMINAL).columns))
    print(f"\nreport: {page}")
    if options.json:
        print(json.dumps({"claims": [to_json(r) for r in results], "page": str(page)}))
    return _exit_status(results, verdicts)


def _exit_status(results: Sequence["ClaimResult"], verdicts: Counter[str]) -> int:
    is_missing = any(not result.finding.parts and not result.failed for result in results)
    if is_missing or verdicts[FAILED]:
        return 1
    return 0 if set(verdicts) <= {"valid"} else 3


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

    names = _name_claims([r.claim for r in results]) if options.claims else ["index"]
    name = re.sub(r"[^\w.]+", "-", "-".join([*names, *options.changes]))[:_LONGEST_NAME].strip("-")
    request = Request(options.scale, options.backend, tuple(options.changes))
    target: Path = options.out.absolute() / "reproduce" / request.folder / f"{name}.html"
    try:
        return write_page(target, request, results, files)
    finally:
        hand_over([options.out.absolute() / "reproduce"])


def _name_claims(claims: Sequence["Claim"]) -> list[str]:
    """The ids of some claims; the letter of a paper, if they are all of it."""
    from analysis.claims import paper_of

    names: list[str] = []
    for paper in dict.fromkeys(map(paper_of, claims)):
        ids = [claim.id for claim in claims if paper_of(claim) is paper]
        names += [paper.group] if len(ids) == len(paper.catalogue.claims) else ids
    return names
