"""Which package may import which (docs/architecture.md), and that packages form no import cycle."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("topologies", "workloads", "agents", "testbed", "analysis", "benchmarks")
FORBIDDEN = {
    "topologies": {"mininet", "socket", "pyspark", *PACKAGES} - {"topologies"},
    "workloads": {"mininet", "socket", "pyspark", *PACKAGES} - {"workloads"},
    "agents": {"mininet", "pyspark", "testbed", "analysis", "benchmarks"},
    "analysis": {"mininet", "testbed", "agents", "benchmarks"},
    "testbed": {"pyspark", "benchmarks"},
}
# Protocols get time and randomness as arguments, and leave all I/O to the runtimes.
FORBIDDEN_IN_PROTOCOLS = {"socket", "time", "asyncio", "threading", "select", "datetime"}
# Commands import what only they need when they run.
LAZY_ALLOWED = {"testbed/commands"}


def modules(root: Path) -> dict[str, Path]:
    """Every module of the packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: Mapping[str, Path], at_top_only: bool = False) -> Iterator[str]:
    """The dotted names that a module imports: modules where they are known, else as written."""
    tree = ast.parse(path.read_text())
    for node in tree.body if at_top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else str(node.module) for name in names)


def forbidden_imports(root: Path) -> list[str]:
    """Every import of a package that the importing one must not know."""
    known, broken = modules(root), []
    for name, path in known.items():
        place = path.parent.relative_to(root).as_posix()
        found = {i.partition(".")[0] for i in imports(path, known, place in LAZY_ALLOWED)}
        forbidden = FORBIDDEN.get(name.partition(".")[0], set())
        broken += [f"{path.relative_to(root)}: {name}" for name in sorted(found & forbidden)]
    return broken


def import_cycles(root: Path) -> list[list[str]]:
    """Cycles between top-level packages, and between sub-packages of the same package."""
    known = modules(root)
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    graph = nx.DiGraph()
    for name, path in known.items():
        for other in imports(path, known):
            if other in known:
                graph.add_edges_from(_siblings(name, other, packages))
    return sorted(
        sorted(cycle) for cycle in nx.strongly_connected_components(graph) if len(cycle) > 1
    )


def _siblings(name: str, other: str, packages: set[str]) -> Iterator[tuple[str, str]]:
    """The two packages, next to each other, that an import leads from and to."""
    here, there = name.split("."), other.split(".")
    shared = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
    if shared is not None:
        ends = ".".join(here[: shared + 1]), ".".join(there[: shared + 1])
        if set(ends) <= packages:
            yield ends


def impure_protocols(root: Path) -> list[str]:
    """Every use of I/O, clocks or shared randomness in `agents/` outside of the runtimes."""
    known, broken = modules(root), []
    for name, path in known.items():
        if not name.startswith("agents") or name.startswith("agents.runtime"):
            continue
        found = {i.partition(".")[0] for i in imports(path, known)} & FORBIDDEN_IN_PROTOCOLS
        where = path.relative_to(root)
        broken += [f"{where}: {module}" for module in sorted(found)]
        broken += [f"{where}: random.{function}" for function in shared_randomness(path)]
    return broken


def shared_randomness(path: Path) -> Iterator[str]:
    """What a module uses of `random` other than the class `Random`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            yield from (name.name for name in node.names if name.name != "Random")
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name == "random")


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write modules, each in a package of its own."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)


def test_protocols_use_no_clock_no_socket_and_no_shared_randomness() -> None:
    assert impure_protocols(ROOT) == []


@pytest.mark.parametrize("place", ["agents", "agents/overlays/ring"])
@pytest.mark.parametrize(
    ("text", "breach"),
    [
        ("import time", "time"),
        ("from asyncio import sleep", "asyncio"),
        ("import random", "random.random"),
        ("from random import choice", "random.choice"),
    ],
)
def test_an_impure_protocol_is_found(place: str, text: str, breach: str, tmp_path: Path) -> None:
    write(tmp_path, {f"{place}/bad.py": f"def f():\n    {text}\n"})
    assert impure_protocols(tmp_path) == [f"{place}/bad.py: {breach}"]


def test_no_package_imports_what_it_must_not() -> None:
    assert forbidden_imports(ROOT) == []


@pytest.mark.parametrize("place", ["topologies", "topologies/overlays"])
@pytest.mark.parametrize("text", ["import mininet.net", "from mininet import net"])
def test_a_forbidden_import_is_found(place: str, text: str, tmp_path: Path) -> None:
    write(tmp_path, {f"{place}/bad.py": f"def f():\n    {text}\n"})
    assert forbidden_imports(tmp_path) == [f"{place}/bad.py: mininet"]


def test_no_packages_import_each_other_in_a_cycle() -> None:
    assert import_cycles(ROOT) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("agents", "testbed"), ("agents.pubsub", "agents.routing"), ("analysis.a.b", "analysis.a.c")],
)
def test_a_cycle_is_found(one: str, other: str, tmp_path: Path) -> None:
    paths = {name: name.replace(".", "/") for name in (one, other)}
    write(
        tmp_path,
        {
            f"{paths[one]}/x.py": f"def f():\n    from {other}.y import g\n",
            f"{paths[other]}/y.py": "",
            f"{paths[other]}/z.py": f"from {one} import x\n",
        },
    )
    for name in (one, other):
        for parent in (tmp_path / paths[name]).relative_to(tmp_path).parents:
            if parent.parts:
                (tmp_path / parent / "__init__.py").touch()
    assert import_cycles(tmp_path) == [sorted([one, other])]
