"""What the commands share: help from their docstring, and errors of a user in one line."""

import io
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lib.system.errors import CompanionError
from lib.system.files import of_the_system

INTERRUPTED = 130  # the exit status after Ctrl-C, as shells have it


def command_parser(module: str, docstring: str | None, **options: Any) -> ArgumentParser:
    """Make a parser for `python -m MODULE` whose help is the docstring, line by line."""
    return ArgumentParser(
        prog=f"python -m {module}",
        description=docstring,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **options,
    )


def count(text: str) -> int:
    """Read an argument that is a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


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
