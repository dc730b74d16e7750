"""The exercises of each page as a notebook of its own, with solutions and hidden tests, for
nbgrader.

    python -m companion.site.class_pages FOLDER

writes FOLDER/source/PAGE/PAGE.ipynb, and FOLDER/nbgrader_config.py where there is none.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from lib.system.command_line import run_command
from lib.system.errors import InputError
from lib.system.files import project_root, read_json, write_whole

# A sentence of a page that is not for a class.
FOR_READERS = re.compile(
    r"\s*Hints and solutions are folded\b.*?\(`docs/teaching\.md`\)\.", re.DOTALL
)
UNWRITTEN = "    raise NotImplementedError"
STUB = re.compile(rf"(?P<head>def (?P<name>\w+)\(.*?\):\n).*\n{UNWRITTEN}", re.DOTALL)
CHECK = re.compile(r"check\((?P<number>\d+), (?P<name>\w+)\)")
SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)
CONFIG = Path(__file__).with_name("nbgrader_config.txt")


def exercises_of(page: dict) -> list[dict]:
    """Return the cells of a page from its heading "N. Your own model", or else "N. Exercises", up
    to the next heading of that level after the exercises, without outputs. They need no earlier
    cell."""
    headings = list(map(_heading, page["cells"]))
    last = next(
        number for number, heading in enumerate(headings) if heading.endswith(". Exercises")
    )
    start = next(
        (n for n, heading in enumerate(headings) if heading.endswith(". Your own model")), last
    )
    end = next((n for n, heading in enumerate(headings) if heading and n > last), len(headings))
    empty = {"outputs": [], "execution_count": None}
    return [cell | (empty if "outputs" in cell else {}) for cell in page["cells"][start:end]]


def _heading(cell: dict) -> str:
    """The heading of the first level that a cell begins with, or nothing."""
    first = _text(cell).partition("\n")[0]
    return (
        first.removeprefix("# ")
        if cell["cell_type"] == "markdown" and first.startswith("# ")
        else ""
    )


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def for_class(page: dict, name: str) -> dict:
    """Make a notebook of the exercises of the page `name`, with nbgrader's marks."""
    title = next(filter(None, map(_heading, page["cells"])))
    first, *others = exercises_of(page)
    text = FOR_READERS.sub("", _text(first).partition("\n")[2].strip())
    beside = (
        f"Equations and sections are those of the page `notebooks/{name}.ipynb`; have it open "
        "beside this."
    )
    opening = {**first, "source": f"# Exercises: {title}\n\n{beside}\n\n{text}\n"}
    return {**page, "cells": [opening, *_marked(others, name)]}


def _marked(cells: list[dict], name: str) -> Iterator[dict]:
    """Yield the cells for a class: an answer holds its solution, between marks, and a check holds
    hidden tests. Folds and the reader's progress are left out."""
    known = import_module(f"companion.exercises.{name}").PAGE.known
    answers = {answer.function: answer for answer in answers_of(cells)}
    for number_of_cell, cell in enumerate(cells):
        text = _text(cell)
        if cell["cell_type"] == "markdown":
            if not text.startswith("<details>"):
                yield cell
        elif stub := STUB.fullmatch(text):
            answer = answers[stub["name"]]
            yield _graded(cell, answer.written(), f"{name}-{answer.number}", solution=True)
        elif check := CHECK.fullmatch(text):
            number, call = (
                int(check["number"]),
                f'grade({check["number"]}, globals().get("{check["name"]}")',
            )
            code = f"{call}, shown=True)\n### BEGIN HIDDEN TESTS\n{call})\n### END HIDDEN TESTS"
            yield _graded(
                cell, code, f"{name}-{number}-check", grade=True, points=known[number].points
            )
        elif text != "progress()":
            text = text.replace("import check, ", "import grade, ").replace(", progress", "")
            yield _graded(cell, text, f"{name}-setup-{number_of_cell}", grade=True)


@dataclass(frozen=True)
class Answer:
    number: int
    function: str
    stub: str  # ends with `raise NotImplementedError`
    solution: str

    def written(self) -> str:
        """The stub with the solution in it, between nbgrader's marks."""
        body = self.solution.partition("\n")[2]
        return self.stub.replace(UNWRITTEN, f"    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION")


def answers_of(cells: list[dict]) -> list[Answer]:
    """The exercises among the cells of a page: the stub of a function, its check, a fold with the
    solution. Raises ValueError where they do not follow each other."""
    found = []
    for cell, check, fold in zip(cells, cells[1:], cells[2:]):
        if stub := STUB.fullmatch(_text(cell)):
            call, solution = CHECK.fullmatch(_text(check)), SOLUTION.search(_text(fold))
            if not (
                call
                and solution
                and stub["name"] == call["name"]
                and solution[1].startswith(stub["head"])
            ):
                raise InputError(
                    f"{stub['name']}: after its stub come its check, and a fold with its solution"
                )
            found.append(
                Answer(int(call["number"]), stub["name"], _text(cell), solution[1].rstrip())
            )
    return found


def _graded(
    cell: dict, code: str, name: str, solution: bool = False, grade: bool = False, points: int = 0
) -> dict:
    """Add nbgrader's marks to a cell. Set-up cells are checks of 0 points, because nbgrader puts
    back only checks if a student deletes cells."""
    marks = {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": grade,
    }
    marks |= {"task": False, **({"points": points} if grade else {})}
    return {**cell, "source": code, "metadata": {**cell["metadata"], "nbgrader": marks}}


def write_class(folder: Path, /) -> None:
    """Write a notebook for each page that has exercises, and nbgrader's settings where there are
    none: a teacher's own are kept."""
    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        if find_spec(f"companion.exercises.{path.stem}"):
            made = json.dumps(for_class(read_json(path), path.stem), indent=1, ensure_ascii=False)
            print(write_whole(folder / "source" / path.stem / path.name, made + "\n"))
    if not (config := folder / "nbgrader_config.py").exists():
        write_whole(config, CONFIG.read_text(encoding="utf-8"))


main = partial(run_command, "companion.site.class_pages", __doc__, write_class)

if __name__ == "__main__":
    main()
