"""Check a page's parameters, and prepare the machine."""

import ast
import os
from functools import cache

import torch
from numba.core import event
from pydantic import TypeAdapter, ValidationError

from lib.system.errors import InputError, did_you_mean
from lib.system.files import check_checkout
from lib.system.threads import flush_denormals


class ParameterError(InputError):
    """A parameter that the page does not have, or a value that does not fit it."""


def check_parameters(namespace: dict) -> None:
    """Check what papermill injected against the page's parameters cell; call it in the cell after.

    papermill only warns of a name the page does not have, and passes `1e3` as a float and `false`
    as a string. Values are converted to the annotated type in `namespace` (the page's globals()).

    The page's machine is prepared as well (`prepare_machine`).

    Raises:
        InputError: there is no clone of the project, whose runs and results the page shows.
        ParameterError: an unknown name, with the nearest known one; a value of the wrong type; a
            negative number.
    """
    check_checkout()
    prepare_machine()
    declared = namespace.get("__annotations__", {})
    for cell in namespace.get("In", []):
        for statement in ast.parse(cell).body if cell.lstrip().startswith("# Parameters") else ():
            name = ast.unparse(statement).partition(" = ")[0]
            if name not in declared:
                hint = did_you_mean(name, declared)
                raise ParameterError(
                    f"unknown parameter {name!r}{hint} This page has: {', '.join(declared)}"
                )
    for name, kind in declared.items():
        namespace[name] = _convert(name, namespace[name], kind)
        if kind is int and namespace[name] < 0:  # a number of things, or a seed
            raise ParameterError(f"parameter {name!r} must be at least 0, not {namespace[name]}")


class CompilationNotice(event.Listener):
    """Print a notice when the first kernel is compiled."""

    said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said:
            print("The library's kernels are compiled, once: about a minute in all.", flush=True)
        self.said = True

    def on_end(self, event: event.Event) -> None:
        pass


@cache
def prepare_machine() -> None:
    """Print what makes a page slow: kernels that are compiled, and a busy machine, on which the
    page uses one thread.

    PyTorch's threads wait for each other after every operation, so one thread is faster beside busy
    processes. Numbers that are almost 0, which are slow, become 0.
    """
    flush_denormals()
    event.register("numba:compile", CompilationNotice())
    load, cores = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1
    if load > cores and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"  # of processes that the page starts
        print(
            f"This machine is busy (load {load:.1f} on {cores} cores), so this page computes on "
            "one thread."
        )


def _convert(name: str, value, kind: type):
    """Convert a value of papermill: 1000.0 to 1000, "true" to True. A parameter that is a text must
    be one."""
    hint = ""
    if kind is str and not isinstance(value, str):  # 2020_10 has become 202010
        hint = f": papermill reads what follows -p as a number where it can; use -r {name} TEXT"
    if isinstance(value, bool) == (kind is bool) or isinstance(value, str):
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError:
            pass
    raise ParameterError(f"parameter {name!r} must be {kind.__name__}, not {value!r}{hint}")
