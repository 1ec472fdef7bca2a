"""The version of a function: a digest of the source code that its results depend on.

This is its own module and every module of the testbed that it imports, directly or not. Changes of
other code, or of documentation, do not make results outdated.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_OURS = ("topologies", "workloads", "agents", "testbed", "analysis")


def code_digest(function: Callable[..., Any]) -> str:
    """A digest that changes with the code of a function or of any module that it uses."""
    found: dict[str, bytes] = {}
    _gather(function.__module__, found)
    digest = hashlib.sha256()
    for module, source in sorted(found.items()):
        digest.update(f"{module} {len(source)}\n".encode() + source)
    return digest.hexdigest()


def _gather(module: str, found: dict[str, bytes]) -> None:
    """Add the source of a module and of all modules of the testbed that it imports."""
    path = _source(module)
    if module in found or path is None:
        return
    found[module] = path.read_bytes()
    for other in _imports(found[module]):
        if other.partition(".")[0] in _OURS:
            _gather(other, found)


def _imports(source: bytes) -> Iterator[str]:
    """The modules that a source imports anywhere, and names that may be modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _source(module: str) -> Path | None:
    """The file of a module; None if the name is not a module."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name in a module, mistaken for a module in a package
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None
