"""The walls of the house: which folder may import what (see docs/architecture.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = {
    "topologies": {"mininet", "socket", "pyspark", "testbed", "agents", "analysis", "benchmarks"},
    "agents": {"mininet", "pyspark", "testbed", "analysis", "benchmarks"},
    "analysis": {"mininet", "testbed", "agents", "benchmarks"},
    "testbed": {"pyspark", "benchmarks"},
}
# Protocols get time and randomness as arguments, and leave all I/O to the runtimes.
FORBIDDEN_IN_PROTOCOLS = {"socket", "time", "asyncio", "threading", "select", "datetime"}
# Commands import what only they need when they run.
LAZY_ALLOWED = {"testbed/commands": {"pyspark", "analysis", "benchmarks"}}


def imports(path: Path, at_top_only: bool) -> Iterator[str]:
    """The top-level packages that a module imports."""
    tree = ast.parse(path.read_text())
    for node in tree.body if at_top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0]


def broken_walls(root: Path) -> list[str]:
    """Every import that goes where it must not."""
    broken = []
    for package, forbidden in FORBIDDEN.items():
        for path in sorted((root / package).rglob("*.py")):
            place = path.parent.relative_to(root).as_posix()
            found = set(imports(path, at_top_only=place in LAZY_ALLOWED))
            broken += [f"{path.relative_to(root)}: {name}" for name in sorted(found & forbidden)]
    return broken


def impure_protocols(root: Path) -> list[str]:
    """Every use of I/O, clocks or shared dice in the modules directly in `agents/`."""
    broken = []
    for path in sorted((root / "agents").glob("*.py")):
        found = set(imports(path, at_top_only=False)) & FORBIDDEN_IN_PROTOCOLS
        broken += [f"{path.name}: {name}" for name in sorted(found)]
        broken += [f"{path.name}: random.{name}" for name in shared_dice(path)]
    return broken


def shared_dice(path: Path) -> Iterator[str]:
    """What a module uses of `random` other than the class `Random`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            yield from (name.name for name in node.names if name.name != "Random")
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name == "random")


def test_protocols_have_no_clock_no_sockets_and_no_shared_dice() -> None:
    assert impure_protocols(ROOT) == []


@pytest.mark.parametrize(
    ("text", "breach"),
    [
        ("import time", "time"),
        ("from asyncio import sleep", "asyncio"),
        ("import random", "random.random"),
        ("from random import choice", "random.choice"),
    ],
)
def test_an_impure_protocol_is_noticed(text: str, breach: str, tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "bad.py").write_text(f"def f():\n    {text}\n")
    assert impure_protocols(tmp_path) == [f"bad.py: {breach}"]


def test_no_package_imports_what_it_must_not() -> None:
    assert broken_walls(ROOT) == []


@pytest.mark.parametrize("text", ["import mininet.net", "from mininet import net"])
def test_a_breach_is_noticed(text: str, tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies" / "bad.py").write_text(f"def f():\n    {text}\n")
    assert broken_walls(tmp_path) == ["topologies/bad.py: mininet"]
