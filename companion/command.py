"""Helpers of the commands of `companion`: arguments LABEL=FILE, and the command that was typed."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.system.errors import InputError


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
