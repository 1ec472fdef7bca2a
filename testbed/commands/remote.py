"""`tdo remote`: runs on another machine over SSH."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from testbed.commands import experiment_options
from testbed.commands.status import print_run, print_status
from testbed.sweeps.file import load_sweep

_FAILED, _NOT_VALID = 1, 3


def add_parser(commands: Any) -> None:
    """Add `remote` to the commands."""
    remote = commands.add_parser("remote", help="run on another machine over SSH")
    actions = remote.add_subparsers(metavar="ACTION", required=True)
    _add_run(actions)
    status = actions.add_parser("status", help="print the state of runs on the other machine")
    _add_place(status)
    status.add_argument(
        "id",
        nargs="?",
        metavar="RUN",
        help="id of a run, or the beginning of the id; default: all",
    )
    status.add_argument(
        "--follow", action="store_true", help="print the output of the run until it ends"
    )
    status.add_argument("--json", action="store_true", help="end the output with one JSON object")
    status.set_defaults(run=_status)
    fetch = actions.add_parser(
        "fetch", help="copy the results of a run from the other machine to this one"
    )
    _add_place(fetch)
    fetch.add_argument("id", metavar="RUN", help="id of a run, or the beginning of the id")
    fetch.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    fetch.set_defaults(run=_fetch)
    clean = actions.add_parser(
        "clean", help="remove what was sent to the other machine, and keep the results there"
    )
    _add_place(clean)
    clean.add_argument(
        "--runs",
        action="store_true",
        help="also remove results that were fetched or have nothing to fetch",
    )
    clean.set_defaults(run=_clean)


def _add_run(actions: Any) -> None:
    parser = actions.add_parser(
        "run", help="run an experiment on the other machine, and fetch the results"
    )
    _add_place(parser)
    experiment_options.add_arguments(
        parser, "an experiment file on this machine; lists in it make a sweep"
    )
    parser.add_argument("--no-report", action="store_true", help="do not analyse the run")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    parser.add_argument("--detach", action="store_true", help="start the run and return")
    parser.add_argument(
        "--no-fetch", action="store_true", help="do not copy the results to this machine"
    )
    parser.add_argument(
        "--beside",
        action="store_true",
        help="start even if another emulated run is in progress there",
    )
    parser.add_argument(
        "--environment",
        metavar="DIR",
        help="Python environment there that has the testbed's dependencies; default: a new one",
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_run)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", metavar="HOST", help="the other machine, as a host for ssh")
    parser.add_argument(
        "--ssh-config",
        type=Path,
        metavar="FILE",
        help="file of an SSH configuration; default: that of ssh",
    )
    parser.add_argument(
        "--folder",
        default=".tdo",
        metavar="DIR",
        help="folder of the testbed on the other machine; default: ~/.tdo",
    )


def _place(options: argparse.Namespace) -> Any:
    from testbed.remote.jobs import Place

    environment = getattr(options, "environment", None)
    return Place(options.host, options.ssh_config, options.folder, environment)


def _run(options: argparse.Namespace) -> int:
    from testbed.remote.jobs import Order, fetch_run, find_run, follow_run, reach, start_run

    sweep = load_sweep(options.file, experiment_options.wanted_changes(options))
    order = Order(options.file, sweep, _options_there(options), options.beside)
    place = _place(options)
    with reach(place, _say) as far:
        run_id = start_run(far, place, order, _say)
        if options.detach:
            if options.json:
                print(json.dumps(find_run(far, run_id)))
            return 0
        try:
            run = follow_run(far, run_id, _print_line)
        except KeyboardInterrupt:
            _say(f"the run continues there; its results: tdo remote fetch {options.host} {run_id}")
            raise
        if run["phase"] != "finished":
            print(f"tdo: {options.host}: run {run_id}: {run['died']}", file=sys.stderr)
        elif not options.no_fetch:
            run["fetched"] = str(fetch_run(far, run, options.out, _say))
            print(f"results: {run['fetched']}")
    if options.json:
        print(json.dumps(run))
    return _exit_status(run)


def _options_there(options: argparse.Namespace) -> list[str]:
    """The options of `tdo run` on the other machine."""
    words = [f"--set={change}" for change in options.changes]
    words += [] if options.backend is None else [f"--backend={options.backend}"]
    words += [] if options.seed is None else [f"--seed={options.seed}"]
    return words + (["--no-report"] if options.no_report else [])


def _exit_status(run: dict[str, Any]) -> int:
    """The exit status of the run; a killed one has failed."""
    status = run["exit_status"]
    if (
        status is None and run["phase"] == "finished"
    ):  # its keeper was killed and could not record the status
        return 0 if run["verdict"] == "valid" else _NOT_VALID
    return _FAILED if status is None or status < 0 else int(status)


def _status(options: argparse.Namespace) -> int:
    from testbed.remote.jobs import find_run, follow_run, reach, read_status

    with reach(_place(options), _say) as far:
        if options.id is None:
            answer = read_status(far)
            start = f"tdo remote run {options.host} FILE"
            print_status(answer["runs"], answer["networks"], start)
        else:
            answer = find_run(far, options.id)
            if options.follow:
                answer = follow_run(far, answer["id"], _print_line)
            print_run(answer)
    if options.json:
        print(json.dumps(answer))
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from testbed.remote.jobs import fetch_run, find_run, reach

    with reach(_place(options), _say) as far:
        print(f"results: {fetch_run(far, find_run(far, options.id), options.out, _say)}")
    return 0


def _clean(options: argparse.Namespace) -> int:
    from testbed.remote.jobs import clean_there, reach

    with reach(_place(options), _say) as far:
        removed, left = clean_there(far, options.runs)
    for line in removed or ["nothing to remove"]:
        print(line)
    for line in left:
        print(f"left alone: {line}")
    return 0


def _say(line: str) -> None:
    print(f"{line}", file=sys.stderr, flush=True)


def _print_line(line: str) -> None:
    if not line.startswith("{"):  # the outcome is for scripts
        print(line, flush=True)
