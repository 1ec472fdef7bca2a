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


def test_no_package_imports_what_it_must_not() -> None:
    assert broken_walls(ROOT) == []


@pytest.mark.parametrize("text", ["import mininet.net", "from mininet import net"])
def test_a_breach_is_noticed(text: str, tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies" / "bad.py").write_text(f"def f():\n    {text}\n")
    assert broken_walls(tmp_path) == ["topologies/bad.py: mininet"]
