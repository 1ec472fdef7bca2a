"""The evidence of claims: missing runs and points of their sweeps and computations are made."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.sweep import draw, draw_figures
from testbed.data_files import find_data_file
from testbed.errors import ExperimentError, UsageError
from testbed.sweeps.computations import play_computation
from testbed.sweeps.directory import SweepDirectory, find_runs
from testbed.sweeps.file import Sweep, load_sweep
from testbed.sweeps.points import PointCarrier
from testbed.sweeps.rows import Row, count_commits
from testbed.sweeps.runs import Carrier, play_sweep

if TYPE_CHECKING:
    from analysis.claims import Claim, ClaimResult, Computation, SweepFiles, SweepRows

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SEED = "seed"

Sources = Mapping[str, "Sweep | Computation"]
IsNeeded = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Carriers:
    """Functions that run the experiments of each backend, and compute points."""

    runs: Mapping[str, Carrier]
    points: PointCarrier


@dataclass(frozen=True, slots=True)
class Played:
    """A sweep or computation with a row for each of its finished units."""

    path: Path
    rows: Sequence[Row]
    draw: Callable[[Sequence[Row]], object]
    unit: str


def load_sources(
    claims: Sequence["Claim"], scale: str, changes: Mapping[str, Any], backend: str, data: Path
) -> dict[str, "Sweep | Computation"]:
    """The sweeps and computations that feed some claims, each once, by their names.

    A change applies to computations that have its key. Other keys, and the seed, apply to sweeps.
    Data files of computations are looked for in the folder `data`.
    """
    swept, computed = _find_sources(claims, scale)
    taken = {SEED, *(key for computation in computed.values() for key in computation.keys)}
    for key in changes:
        if not swept and key not in taken:
            known = ", ".join(sorted(taken))
            raise UsageError(
                f"--set: expected one of {known}, as these claims need no runs; found {key}"
            )
    others = {key: value for key, value in changes.items() if key not in taken or key == SEED}
    sweeps = _load_sweeps(swept, {**others, "backend": backend})
    changed = {name: _change(some, changes) for name, some in computed.items()}
    return {**sweeps, **{name: _find_files(some, data) for name, some in changed.items()}}


def _find_sources(
    claims: Sequence["Claim"], scale: str
) -> tuple[dict[str, Mapping[str, Any]], dict[str, "Computation"]]:
    """The changes of a scale for each sweep that feeds some claims, and its computations."""
    from analysis.claims import paper_of

    swept, computed = {}, {}
    for claim in claims:
        catalogue = paper_of(claim).catalogue
        for name in (source.experiment for source in claim.sweeps):
            computation = catalogue.computation(name)
            if computation is None:
                swept[name] = catalogue.changes[scale][name]
            else:
                computed[name] = computation.change(catalogue.changes[scale][name])
    return swept, computed


def _change(computation: "Computation", changes: Mapping[str, Any]) -> "Computation":
    from analysis.claims import UnfitChange

    known = (SEED, *computation.keys)
    try:
        return computation.change({key: changes[key] for key in changes if key in known})
    except UnfitChange as error:
        raise UsageError(f"--set: {error}") from error


def _find_files(computation: "Computation", data: Path) -> "Computation":
    """The same computations with the paths of existing data files; missing ones are printed."""
    found = {}
    for key, names in computation.files.items():
        paths = [path for name in names if (path := find_data_file(name, data, data)) is not None]
        if not paths:
            print(
                f"{computation.name}: expected {' or '.join(names)} in {data}, found none; a "
                "synthetic graph is used instead (--data names the folder)"
            )
        found[key] = (str(paths[0]) if paths else "",)
    return replace(computation, parameters={**computation.parameters, **found})


def _load_sweeps(
    scaled: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]
) -> dict[str, Sweep]:
    if scaled and not EXPERIMENTS.is_dir():
        raise UsageError(
            f"{EXPERIMENTS}: expected the experiment files of the checkout, found none; install "
            "the testbed from a checkout"
        )
    return {
        name: load_sweep(EXPERIMENTS / f"{name}.toml", {**settings, **changes})
        for name, settings in scaled.items()
    }


def reproduce(
    claims: Sequence["Claim"], sources: Sources, results: Path, carriers: Carriers
) -> tuple[list["ClaimResult"], dict[str, "SweepFiles"], Counter[str]]:
    """Make what is missing, draw figures, and decide each claim.

    The result also has the files of all sources, and the verdicts of the runs that were needed.
    """
    from analysis.claims import SweepFiles, SweepRows

    rows: dict[str, SweepRows] = {}
    files: dict[str, SweepFiles] = {}
    doubtful: dict[str, list[Row]] = {}
    verdicts: Counter[str] = Counter()
    for name, source in sources.items():
        fed = dict.fromkeys(c.id for c in claims for s in c.sweeps if s.experiment == name)
        print(f"{name}, for {', '.join(fed)}", flush=True)
        is_needed = _need(claims, name)
        played = _play(source, results, carriers, is_needed)
        verdicts.update(row["verdict"] for row in played.rows if is_needed(row))
        good = [row for row in played.rows if row["verdict"] == "valid"]
        doubtful[name] = [row for row in played.rows if row["verdict"] != "valid"]
        _tell_doubtful(doubtful[name], played.path)
        _draw(played, good)
        rows[name] = SweepRows(name, good, played.path, played.unit)
        files[name] = SweepFiles(name, played.path, len(played.rows), played.unit)
    return [_find_out(claim, rows, doubtful) for claim in claims], files, verdicts


def _need(claims: Sequence["Claim"], name: str) -> IsNeeded:
    """Whether any of the claims needs a run or point, by its row or its keys."""
    sources = [s for claim in claims for s in claim.sweeps if s.experiment == name]
    return lambda values: any(source.needs(values) for source in sources)


def _play(
    source: "Sweep | Computation", results: Path, carriers: Carriers, is_needed: IsNeeded
) -> Played:
    if isinstance(source, Sweep):
        return _play_sweep(source, results, carriers.runs, is_needed)
    rows, path = play_computation(
        source,
        results,
        carriers.points,
        say,
        lambda point: is_needed({**point.values, SEED: point.seed}),
    )
    return Played(path, rows, lambda good: draw(source.figures, source.keys, good, path), "point")


def _play_sweep(
    sweep: Sweep, results: Path, carriers: Mapping[str, Carrier], is_needed: IsNeeded
) -> Played:
    directory = SweepDirectory.of(sweep, results)
    rows = play_sweep(
        sweep,
        directory,
        carriers,
        is_measured=True,
        say=say,
        is_needed=lambda swept: is_needed(swept.values),
        elsewhere=find_runs(results),  # because sweeps have runs in common
    )
    return Played(directory.path, rows, lambda good: draw_figures(sweep, good, directory), "run")


def _tell_doubtful(rows: Sequence[Row], folder: Path) -> None:
    for row in rows:
        what = row["error"] or f"{folder / row['path']}; remove it to repeat it"
        say(f"{row['verdict']}: {what}")


def _draw(played: Played, rows: Sequence[Row]) -> None:
    try:
        played.draw(rows)
    except ExperimentError as error:  # if no run has the column to draw
        say(f"not drawn: {error}")


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


def say(line: str) -> None:
    """Print a line of progress."""
    print(f"  {line}", flush=True)
