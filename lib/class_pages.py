"""`python -m lib.class_pages FOLDER`: the exercises of each page as a notebook of its own, solutions and hidden tests
inside, in the format and the folders of nbgrader: FOLDER/PAGE/PAGE.ipynb."""

import argparse
import json
from pathlib import Path

from lib.storage import project_root, write_whole

FOLDED = "hide-input"


def exercises_of(page: dict) -> list[dict]:
    """The cells of a page from its heading "N. Exercises" up to the next heading of that level, unfolded and without
    outputs. They stand on nothing that comes before them. Raises ValueError when a page has no such heading."""
    starts = [number for number, cell in enumerate(page["cells"]) if _heading(cell).endswith(". Exercises")]
    if len(starts) != 1:
        raise ValueError(f"one heading 'N. Exercises' is needed, {len(starts)} found")
    cells = page["cells"][starts[0] :]
    end = next((number for number, cell in enumerate(cells) if number and _heading(cell)), len(cells))
    return [_unfolded(cell) for cell in cells[:end]]


def _heading(cell: dict) -> str:
    """The heading of the first level that a cell begins with, or nothing."""
    first = "".join(cell["source"]).split("\n", 1)[0]
    return first.removeprefix("# ") if cell["cell_type"] == "markdown" and first.startswith("# ") else ""


def _unfolded(cell: dict) -> dict:
    """As it was written: shown where it is an answer, without outputs."""
    metadata = dict(cell["metadata"])
    if metadata.get("nbgrader", {}).get("solution"):
        metadata.pop("jupyter", None)
        metadata["tags"] = [tag for tag in metadata.get("tags", []) if tag != FOLDED]
    return {**cell, "metadata": metadata} | ({"outputs": [], "execution_count": None} if "outputs" in cell else {})


def write_exercises(folder: Path) -> list[str]:
    """A notebook for each page that has exercises to be graded, in `folder`; the names of the pages."""
    written = []
    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        page = json.loads(path.read_text(encoding="utf-8"))
        if not any("nbgrader" in cell["metadata"] for cell in page["cells"]):
            continue
        (folder / path.stem).mkdir(parents=True, exist_ok=True)
        made = {**page, "cells": exercises_of(page)}
        write_whole(folder / path.stem / path.name, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        written.append(path.stem)
    return written


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lib.class_pages", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the notebooks are written")
    print("exercises of", *write_exercises(parser.parse_args(arguments).folder))


if __name__ == "__main__":
    main()
