"""Errors that name what a person should change. The commands show them as one line. Any other error
is a fault of the program, and keeps its traceback."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CompanionError(Exception):
    """An error that the project itself raises for people to read: says what, where and what to
    do."""


class InputError(CompanionError, ValueError):
    """A value, a file or an option that whoever gave it can change."""


class RunError(CompanionError, RuntimeError):
    """A run that cannot be started, continued or opened: says why and what to do."""


def printable(text: str) -> str:
    """A text with its control characters, line ends and tabs aside, as escapes: a terminal would
    obey them."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: ", did you mean 'dataset'?", or a full stop."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else "."


def one_of(value: str, allowed: Collection[str], what: str) -> str:
    """`value` if it is allowed; otherwise a ValueError that proposes the nearest."""
    if value in allowed:
        return value
    known = f"There are: {', '.join(allowed)}"
    raise InputError(f"unknown {what} {value!r}{did_you_mean(value, allowed)} {known}")
