"""Parts that the commands share: their help is their docstring, an error that its reader can mend is one line, and
so is Ctrl-C. A fault of the program keeps its traceback."""

import io
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lib.system.errors import CompanionError, printable
from lib.system.files import check_ours, of_the_system

INTERRUPTED = 130  # the exit status of what a person stopped, as shells have it


def command_parser(module: str, docstring: str | None) -> ArgumentParser:
    """The arguments of `python -m MODULE`, to be added; its docstring is the help, line by line."""
    formatter = RawDescriptionHelpFormatter
    return ArgumentParser(prog=f"python -m {module}", description=docstring, formatter_class=formatter)


@contextmanager
def plain_errors(stopped: Callable[[], str] = lambda: "") -> Iterator[None]:
    """The project's own errors (`CompanionError`), the system's and a full GPU end the process with one line and
    status 1, Ctrl-C with status 130. Any other error passes, with its traceback.

    What is printed within it is UTF-8. stopped: what Ctrl-C leaves, in words.
    """
    _print_utf8()
    try:
        check_ours()
        yield
    except OSError as error:
        sys.exit(f"error: {_in_a_line(of_the_system(error))}")
    except CompanionError as error:
        sys.exit(f"error: {_in_a_line(str(error))}")
    except KeyboardInterrupt:
        print(" ".join(filter(None, ("stopped.", stopped()))), file=sys.stderr)
        sys.exit(INTERRUPTED)
    except RuntimeError as error:
        if not _is_of_memory(error):
            raise
        reason = str(error).partition(". ")[0]
        sys.exit(f"error: {reason}. Try a smaller batch, or a batch in more parts (accumulate).")


def _in_a_line(message: str) -> str:
    """What an error says, which may name a file of any name, in one line that a terminal prints and does not obey."""
    return printable(" ".join(message.splitlines()))


def _print_utf8() -> None:
    """Print in UTF-8 whatever the system's encoding is, in which a summary might not be written. Half a character, as
    of a file's name that is no text, becomes its escape, which JSON reads too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _is_of_memory(error: RuntimeError) -> bool:
    """Whether a device's memory was too small. Only a command that has imported PyTorch can meet that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)
