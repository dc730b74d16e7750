"""What the commands have in common: an error that its reader can mend is one line, and so is Ctrl-C."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import torch

from lib.runs import RunError
from lib.storage import check_writable, of_the_system, read_numbers

INTERRUPTED = 130  # the exit status of what a person stopped, as shells have it


@contextmanager
def plain_errors(stopped: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Errors of input, files, devices and numbers end the process with one line and status 1; Ctrl-C with status 130.

    stopped: what Ctrl-C leaves behind, in words.
    """
    try:
        yield
    except OSError as error:
        sys.exit(f"error: {of_the_system(error)}")
    except (ValueError, RunError, FloatingPointError) as error:  # CorpusError and RatingError are ValueErrors
        sys.exit(f"error: {error}")
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        sys.exit(f"error: {reason}. Try a smaller batch, or a batch in more parts (accumulate).")
    except KeyboardInterrupt:
        print(" ".join(filter(None, ("stopped.", stopped()))), file=sys.stderr)
        sys.exit(INTERRUPTED)


def one_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to the same file, by whatever names; it need not be there yet."""
    there = first.exists() and second.exists()
    return first.samefile(second) if there else first.resolve() == second.resolve()


def check_replaces(
    output: Path, what: str, needed: Iterable[str], beside: Mapping[str, Path] = MappingProxyType({})
) -> None:
    """Raises OSError where files cannot be written, and ValueError where they would replace other ones.

    output: a `what`, a JSON object with the keys that are `needed`; no other file is replaced.
    beside: by what they are, files that are written with it; without it they are not its own, and not replaced.
    """
    for name, path in beside.items():
        check_writable(path)
        if one_file(output, path):
            raise ValueError(f"--output {output}: the {name} is written there, and numbers as NAME.json")
        if path.exists() and not output.exists():
            raise ValueError(
                f"--output {output}: its {name} would replace {path}, which is of no {what}. Name another"
            )
    check_writable(output)
    if output.exists():
        try:
            read_numbers(output, what, needed)
        except ValueError as error:
            raise ValueError(f"--output would replace {error}. Name another file, or remove this one") from None
