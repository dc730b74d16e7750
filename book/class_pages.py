"""`python -m book.class_pages FOLDER`: the exercises of each page as a notebook of its own, solutions and hidden
tests inside, in the format and the folders of nbgrader: FOLDER/source/PAGE/PAGE.ipynb, and
FOLDER/nbgrader_config.py, which stays as it is where there is one."""

import argparse
import json
import re
from pathlib import Path

from lib.system.command_line import plain_errors
from lib.system.errors import InputError
from lib.system.files import project_root, write_whole

FOLDED = "hide-input"
# What a page says to its readers alone, and not to a class.
FOR_READERS = re.compile(r"\s*Open an answer's fold\b.*?\(`teaching\.md`\)\.", re.DOTALL)
CONFIG = r"""# nbgrader's settings for this class. `make class` writes them where there are none: change them freely.
c = get_config()  # noqa: F821

# Checks and set-up cells that a student deleted are put back before grading.
c.OverwriteCells.add_missing_cells = True

# `nbgrader zip_collect`: how Moodle names what was handed in. Other systems need another expression.
c.FileNameCollectorPlugin.named_regexp = (
    r"(?P<last_name>.*?)_(?P<student_id>\d+)_assignsubmission_file_(?P<file_id>.+)"
)
"""


def exercises_of(page: dict) -> list[dict]:
    """The cells of a page from its heading "N. Exercises" up to the next heading of that level, unfolded and without
    outputs. They stand on nothing that comes before them. Raises ValueError when a page has no such heading."""
    starts = [number for number, cell in enumerate(page["cells"]) if _heading(cell).endswith(". Exercises")]
    if len(starts) != 1:
        raise InputError(f"one heading 'N. Exercises' is needed, {len(starts)} found")
    cells = page["cells"][starts[0] :]
    end = next((number for number, cell in enumerate(cells) if number and _heading(cell)), len(cells))
    return [_unfolded(cell) for cell in cells[:end]]


def _heading(cell: dict) -> str:
    """The heading of the first level that a cell begins with, or nothing."""
    first = _text(cell).partition("\n")[0]
    return first.removeprefix("# ") if cell["cell_type"] == "markdown" and first.startswith("# ") else ""


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def _unfolded(cell: dict) -> dict:
    """As it was written: shown where it is an answer, without outputs."""
    metadata = dict(cell["metadata"])
    if metadata.get("nbgrader", {}).get("solution"):
        metadata.pop("jupyter", None)
        metadata["tags"] = [tag for tag in metadata.get("tags", []) if tag != FOLDED]
    return {**cell, "metadata": metadata} | ({"outputs": [], "execution_count": None} if "outputs" in cell else {})


def for_class(page: dict, name: str) -> dict:
    """The exercises of a page, called `name`, as a notebook that stands by itself."""
    title = next(filter(None, map(_heading, page["cells"])))
    first, *others = exercises_of(page)
    return {**page, "cells": [_opening(first, name, title), *_protected(others, name)]}


def _opening(cell: dict, name: str, title: str) -> dict:
    """The first cell: it names the page, and leaves out what is said to the page's readers alone. Raises ValueError
    when the page does not say it in the words that are known."""
    text, cut = FOR_READERS.subn("", _text(cell).partition("\n")[2].strip())
    if cut != 1:
        raise InputError(f'{name}: its exercises begin with no "Open an answer\'s fold ... (`teaching.md`)."')
    beside = f"Equations and sections are those of the page `notebooks/{name}.ipynb`; have it open beside this."
    return {**cell, "source": f"# Exercises: {title}\n\n{beside}\n\n{text}\n"}


def _protected(cells: list[dict], name: str) -> list[dict]:
    """With set-up cells that nbgrader puts back where a student changed or deleted them. They are checks of 0 points:
    of the cells that were deleted, it puts back checks alone."""
    known = {"schema_version": 3, "grade": True, "points": 0, "locked": True, "solution": False, "task": False}
    made, setups = [], 0
    for cell in cells:
        if cell["cell_type"] == "code" and "nbgrader" not in cell["metadata"]:
            setups += 1
            marked = {**known, "grade_id": f"{name}-setup-{setups}"}
            cell = {**cell, "metadata": {**cell["metadata"], "nbgrader": marked}}
        made.append(cell)
    return made


def write_exercises(folder: Path) -> list[str]:
    """A notebook for each page that has exercises to be graded, in `folder`; the names of the pages."""
    written = []
    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        page = json.loads(path.read_text(encoding="utf-8"))
        if not any("nbgrader" in cell["metadata"] for cell in page["cells"]):
            continue
        made = for_class(page, path.stem)
        write_whole(folder / path.stem / path.name, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        written.append(path.stem)
    return written


def write_config(folder: Path) -> str:
    """nbgrader's settings in `folder`, where there are none: a teacher's own are kept. What became of them."""
    path = folder / "nbgrader_config.py"
    if not path.exists():
        write_whole(path, CONFIG)
        return f"settings in {path}"
    kept = "as they were" if path.read_text(encoding="utf-8") == CONFIG else "your own, kept"
    return f"settings in {path}: {kept}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m book.class_pages", description=__doc__)
    parser.add_argument("folder", type=Path, help="the class: where notebooks and settings are written")
    folder = parser.parse_args(arguments).folder
    with plain_errors():
        print("exercises of", *write_exercises(folder / "source"))
        print(write_config(folder))


if __name__ == "__main__":
    main()
