"""What the rest of `lib` is built on. Importing it checks that `lib` is this project's package.

`companion` runs this file too: with another `lib` before it on the path, its own would not be
imported.
"""

from importlib.metadata import packages_distributions
from pathlib import Path

OURS = Path(__file__).resolve().parents[1]


def _check_ours() -> None:
    """Raise ImportError where `lib` is another package or module, or its `__init__` belongs to
    another project."""
    import lib

    if hasattr(lib, "load"):
        return
    found = Path(getattr(lib, "__file__", None) or next(iter(lib.__path__))).resolve()
    reason = f"{found} is in the way: Python takes it for {OURS}"
    advice = (
        "start in another folder (papermill: --cwd FOLDER), a command with python -P -m, or rename "
        "it"
    )
    if OURS in (found, found.parent):
        reason = (
            f"{OURS / '__init__.py'} is not this project's file: another program has replaced or "
            "removed it"
        )
        advice = "install this project again: pip install -e . in its clone"
    others = {*packages_distributions().get("lib", [])} - {"neural-summarization-companion"}
    other = (
        f"pip uninstall {' '.join(sorted(others))}, or use an environment without it; or "
        if others
        else ""
    )
    raise ImportError(f"{reason}. What helps: {other}{advice}")


_check_ours()
