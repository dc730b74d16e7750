"""Digests, short names of what something was made of: of values, of files' contents, of code."""

import ast
import hashlib
import importlib.util
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from lib.system.files import cached, write_json


def digest(value, length: int = 12) -> str:
    """A short, stable name of anything that json can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def contents_digest(folder: Path, files: Iterable[Path]) -> str:
    """A short name of the contents of these files and of their names in `folder`, wherever that is.

    What was read once is known again by place, number, size and times of each file, which the cache keeps: a large
    corpus is not read each time that it is opened.
    """
    files = list(files)
    stats = [path.stat() for path in files]
    stamps = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats]
    known = cached(f"digests/{digest([[str(path.absolute()), *s] for path, s in zip(files, stamps)], 24)}")
    with suppress(OSError, ValueError):
        (saved,) = json.loads(known.read_text(encoding="utf-8"))
        return saved
    contents = digest([[path.relative_to(folder).as_posix(), _sha256(path)] for path in files])
    # a file that was changed a moment ago may be changed again without another time
    if time.time_ns() - max((max(s[-2:]) for s in stamps), default=0) > 2_000_000_000:
        with suppress(OSError):
            write_json(known, [contents])
    return contents


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_digest(*modules: str, root: str | Path | None = None) -> str:
    """A short name of the code of these modules (`lib.data.batch`) and of all that they import from their package,
    anywhere in their files: what other code made is not reused. Comments, docstrings, formatting and what errors say
    do not count.

    root: the folder that holds the package; by default this one's. Raises ValueError for a module that is not there.
    """
    root = Path(root or Path(__file__).resolve().parents[2])
    packages = {name.partition(".")[0] for name in modules}
    waiting, code_by_module = list(modules), {}
    while waiting:
        name = waiting.pop()
        if name not in code_by_module:
            path = _file_of(name, root)
            if path is None:
                raise ValueError(f"no module {name} in {root}")
            code_by_module[name], imported = _code_in(path, path.stat().st_mtime_ns)
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            absolute = [importlib.util.resolve_name(other, package) for other in imported]
            waiting += [other for other in absolute if other.partition(".")[0] in packages and _file_of(other, root)]
    return digest(code_by_module)


def _file_of(module: str, root: Path) -> Path | None:
    """The file of a module in `root`; a package's is its `__init__`."""
    path = root.joinpath(*module.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@cache
def _code_in(path: Path, changed: int) -> tuple[str, list[str]]:
    """A file's code without docstrings and what errors say, and all names that it imports: modules, and what may be
    one.

    changed: when the file was, in nanoseconds; a changed file is read again.
    """
    tree, imported = ast.parse(path.read_text(encoding="utf-8")), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            behind = module if module.endswith(".") else f"{module}."
            imported += [module, *(behind + alias.name for alias in node.names)]
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc = node.exc.func  # the error, whatever it says
    return digest(_outline(tree)), imported


def _outline(node):
    """A syntax tree as lists, without what is empty: `ast.dump` is another with every version of Python."""
    if isinstance(node, ast.AST):
        filled = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *([name, _outline(value)] for name, value in filled)]
    return [_outline(part) for part in node] if isinstance(node, list) else repr(node)
