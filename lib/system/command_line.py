"""What the commands share: arguments as typed functions and dataclasses describe them (tyro), help
from docstrings, and errors of a user in one line."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from lib.system.errors import CompanionError
from lib.system.files import of_the_system

INTERRUPTED = 130  # the exit status after Ctrl-C, as shells have it


def _count(words: list[str]) -> int:
    if not words[0].isdecimal() or int(words[0]) < 1:
        raise ValueError(f"{words[0]!r} is no whole number of at least 1")
    return int(words[0])


# a whole number of at least 1
Count = Annotated[
    int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=_count,
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]
RunFolder = Annotated[Path, tyro.conf.arg(metavar="RUN")]
Files = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint="")]
# the fields of a dataclass as options with their own names: --dataset, not --texts.dataset
Grouped = tyro.conf.OmitArgPrefixes
Repeated = tyro.conf.UseAppendAction  # an option that may be given several times
Flag = tyro.conf.FlagCreatePairsOff[bool]  # --json, and no --no-json

_RULES = ConstructorRegistry()  # of ours, beside tyro's


@_RULES.primitive_rule
def _read_optional(info: PrimitiveTypeInfo) -> Any:
    """Read an argument of type `X | None` as one of type X, or the word None.

    tyro's own rule for unions shows Python's types in help and errors.
    """
    kinds = get_args(info.type)
    if len(kinds) != 2 or kinds[1] is not NoneType:
        return None  # not our case: tyro's rules hold
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kinds[0], info.markers))
    if not isinstance(spec, PrimitiveConstructorSpec):
        return spec

    def read(words: list[str]) -> Any:
        return None if words == ["None"] else spec.instance_from_str(words)

    def write(value: Any) -> list[str]:
        return ["None"] if value is None else spec.str_from_instance(value)

    return replace(
        spec,
        instance_from_str=read,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=write,
        choices=spec.choices and (*spec.choices, "None"),
    )


def run_command(
    module: str,
    docstring: str | None,
    command: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    arguments: Sequence[str] | None = None,
) -> Any:
    """Call a function, or the one of several that the first argument names, as `python -m MODULE`
    does, and return its result.

    The function's parameters are the arguments: positional before a "/", options after it. Its
    docstring describes them. A user's errors are printed as one line (`plain_errors`).

    Args:
        docstring: the help.
        arguments: by default those of the command line.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    with plain_errors():
        if callable(command):
            return parse_arguments(module, docstring, command, arguments)
        if arguments and arguments[0] in command:
            name, *others = arguments
            chosen = command[name]
            return parse_arguments(f"{module} {name}", None, chosen, others)
        # the list of all commands, or the error
        with _RULES:
            how = _how(module, docstring, arguments)
            return tyro.extras.subcommand_cli_from_dict(dict(command), **how)


def parse_arguments(
    module: str,
    docstring: str | None,
    kind: Callable[..., Any],
    arguments: Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """Make a dataclass of the arguments of `python -m MODULE`, or call a function with them.

    docstring: the help; None: that of the dataclass or function.

    options: of `tyro.cli`.
    """
    with _RULES:
        return tyro.cli(kind, **(_how(module, docstring, arguments) | options))


def _how(module: str, docstring: str | None, arguments: Sequence[str] | None) -> dict[str, Any]:
    return {
        "prog": f"python -m {module}",
        "description": docstring,
        "args": arguments,
        "config": (tyro.conf.FlagCreatePairsOff,),  # for all arguments as for a `Flag`
    }


@contextmanager
def plain_errors(stopped: str = "") -> Iterator[None]:
    """Print an error that a user can mend in one line, and end with status 1; a bug keeps its
    traceback.

    Such errors are the project's (`CompanionError`), the system's and a full GPU. Ctrl-C ends with
    status 130; `stopped` says what it leaves. Nothing is said where whoever reads the output has
    closed the pipe, as `head` does.
    """
    for stream in (sys.stdout, sys.stderr):
        # a summary may have characters that the system's encoding lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes the output once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except OSError as error:
        sys.exit(f"error: {of_the_system(error)}")
    except CompanionError as error:
        sys.exit(f"error: {' '.join(str(error).split())}")
    except KeyboardInterrupt:
        if os.environ.get("RANK", "0") == "0":  # the first of torchrun's processes
            print(f"stopped. {stopped}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except RuntimeError as error:
        torch = sys.modules.get("torch")  # a command without PyTorch cannot fill a GPU
        if torch is None or not isinstance(error, torch.OutOfMemoryError):
            raise
        reason = str(error).partition(". ")[0]
        sys.exit(f"error: {reason}. Try a smaller batch, or a batch in more parts (--accumulate).")
