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
    if OURS in (found, found.parent):
        file = OURS / "__init__.py"
        change = "another program has replaced or removed it"
        reason = f"{file} is not this project's file: {change}"
        advice = "install this project again: pip install -e . in its clone"
    else:
        reason = f"{found} is in the way: Python takes it for {OURS}"
        folder = "start in another folder (papermill: --cwd FOLDER)"
        advice = f"{folder}, a command with python -P -m, or rename it"
    others = {*packages_distributions().get("lib", [])} - {"neural-summarization-companion"}
    if others:
        uninstall = f"pip uninstall {' '.join(sorted(others))}"
        advice = f"{uninstall}, or use an environment without it; or {advice}"
    raise ImportError(f"{reason}. What helps: {advice}")


_check_ours()
