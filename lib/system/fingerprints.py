"""Digests, short names of what something was made of: of values, of files, of code."""

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]


def digest(value: Any, length: int = 12) -> str:
    """A short, stable name of anything that json can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def files_digest(folder: Path, files: Iterable[Path]) -> str:
    """A short name of files by their names in `folder`, sizes and times; their contents are not
    read."""
    stats = [(path.relative_to(folder).as_posix(), path.stat()) for path in sorted(files)]
    return digest([[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats])


def code_digest(*modules: str) -> str:
    """A short name of the code of these modules and of all that they import from this project.
    Comments and formatting do not count."""
    waiting, code = set(modules), {}
    while waiting:
        name = waiting.pop()
        path = (_ROOT / name.replace(".", "/")).with_suffix(".py")
        if name not in code and path.is_file():
            code[name], imported = _read_code(path)
            waiting |= imported
    return digest(code)


@cache
def _read_code(path: Path) -> tuple[str, set[str]]:
    """A digest of a module's syntax tree, and names of what it imports, among which are modules."""
    tree = ast.parse(path.read_bytes())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return digest(ast.dump(tree)), imported
