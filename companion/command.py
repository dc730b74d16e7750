"""Make commands of functions: their parameters are the arguments of `python -m MODULE`, positional
before a "/"."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tyro

from lib.system.command_line import plain_errors
from lib.system.errors import InputError


def run_command(
    module: str,
    docstring: str | None,
    command: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    arguments: Sequence[str] | None = None,
) -> None:
    """Call a function, or the one of several that the first argument names, as `python -m MODULE`
    does.

    docstring: the help. A user's errors are printed as one line (`plain_errors`).
    """
    options: Any = {"prog": f"python -m {module}", "description": docstring, "args": arguments}
    options["config"] = (tyro.conf.FlagCreatePairsOff,)
    with plain_errors():
        if callable(command):
            tyro.cli(command, **options)
        else:
            tyro.extras.subcommand_cli_from_dict(dict(command), **options)


def this_command(module: str) -> str:
    """Write the command that was typed, which is stored with its results."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def split_labels(arguments: Sequence[str]) -> list[tuple[str, Path]]:
    """Split arguments that are LABEL=FILE."""
    pairs = [argument.rpartition("=") for argument in arguments]
    wrong = [path for label, _, path in pairs if not label]
    if wrong or not pairs:
        raise InputError(f"{', '.join(wrong) or 'nothing'} is not LABEL=FILE")
    return [(label, Path(path)) for label, _, path in pairs]
