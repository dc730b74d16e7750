"""The parameters cell of a page: unknown names and unfit values stop the run."""

import ast
import builtins

from pydantic import TypeAdapter, ValidationError

from lib.system.errors import InputError, did_you_mean


class ParameterError(InputError):
    """A parameter that the page does not have, or a value that does not fit it."""


def check_parameters(namespace: dict) -> None:
    """Check what papermill injected against the page's parameters cell; call it in the cell after.

    papermill only warns of a name the page does not have, and passes `1e3` as a float and `false` as a string. Values
    are converted to the annotated type in `namespace` (the page's globals()).

    Raises:
        ParameterError: an unknown name, with the nearest known one; a value of the wrong type; a negative number.
    """
    cells = [cell for cell in namespace.get("In", []) if cell.strip()]
    declared_at = max((i for i, cell in enumerate(cells) if _declared(cell)), default=None)
    if declared_at is None:
        return  # run as a script: the values are the literals
    declared = _declared(cells[declared_at])
    for cell in cells[declared_at + 1 :]:
        if cell.lstrip().startswith("# Parameters"):
            for name in _assigned(cell):
                if name not in declared:
                    hint = did_you_mean(name, declared)
                    raise ParameterError(f"unknown parameter {name!r}{hint} This page has: {', '.join(declared)}")
    for name, kind in declared.items():
        namespace[name] = _convert(name, namespace[name], getattr(builtins, kind))
        if kind == "int" and namespace[name] < 0:  # a number of things, or a seed
            raise ParameterError(f"parameter {name!r} must be at least 0, not {namespace[name]}")


def _declared(cell: str) -> dict[str, str]:
    """Names and types of a cell that holds annotated literals and nothing else."""
    body = _parse(cell)
    declared = {
        s.target.id: s.annotation.id
        for s in body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        if isinstance(s.annotation, ast.Name) and isinstance(s.value, ast.Constant)
    }
    return declared if len(declared) == len(body) else {}


def _assigned(cell: str) -> list[str]:
    return [t.id for s in _parse(cell) if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)]


def _parse(cell: str) -> list[ast.stmt]:
    try:
        return ast.parse(cell).body
    except SyntaxError:  # magics
        return []


def _convert(name: str, value, kind: type):
    """Convert what papermill passes: 1000.0 to 1000, "true" to True. What should be a text has to be one."""
    hint = ""
    if kind is str and not isinstance(value, str):  # 2020_10 has become 202010
        hint = f": papermill reads what follows -p as a number where it can; use -r {name} TEXT"
    if isinstance(value, bool) == (kind is bool) or isinstance(value, str):
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError:
            pass
    raise ParameterError(f"parameter {name!r} must be {kind.__name__}, not {value!r}{hint}")
