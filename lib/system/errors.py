"""Errors that tell a person what to change. The commands show them as one line; any other error is a fault of the
program, and keeps its traceback."""


class CompanionError(Exception):
    """What the project itself raises for people to read: says what, where and what to do."""


class InputError(CompanionError, ValueError):
    """A value, a file or an option that whoever gave it can change."""


class RunError(CompanionError, RuntimeError):
    """A run that cannot be started, continued or opened: says why and what to do."""
