"""The exercises of the pages as notebooks for a class, and what nbgrader makes of them."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from companion.site.class_pages import for_class, write_class
from lib.system.files import project_root
from tests.project.test_project import PAGES as EVERY_PAGE
from tests.project.test_project import notebook

ROOT = project_root()
# which have no exercises
PAGES = [page for page in EVERY_PAGE if page.stem not in ("baselines", "compare")]
SOLUTION = re.compile(r" *### BEGIN SOLUTION\n(.*?) *### END SOLUTION", re.DOTALL)
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.DOTALL)
GRADED = "hierarchical_transformer"  # the page whose exercises take least time


def source(cell):
    return "".join(cell["source"])


def kind(cell):
    """'solution', 'check', or nothing."""
    given = cell["metadata"].get("nbgrader", {})
    return "solution" if given.get("solution") else "check" if given.get("grade") else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_class_gets_every_answer_and_check(page):
    cells = for_class(notebook(page), page.stem)["cells"]
    known = import_module(f"companion.exercises.{page.stem}").PAGE.known
    ids = [f"{page.stem}-{number}{part}" for number in sorted(known) for part in ("", "-check")]
    marked = [
        cell["metadata"]["nbgrader"]
        for cell in cells
        if kind(cell) and "-setup" not in grade_id(cell)
    ]
    assert [marks["grade_id"] for marks in marked] == ids
    assert [m["points"] for m in marked if m["grade"]] == [known[n].points for n in sorted(known)]
    for cell in cells:
        if kind(cell) == "solution":
            assert len(SOLUTION.findall(source(cell))) == 1 and "NotImplementedError" not in source(
                cell
            )
        elif kind(cell) == "check" and "-setup" not in grade_id(cell):
            assert len(HIDDEN.findall(source(cell))) == 1 and "shown=True" in source(cell)
    setup = [cell["metadata"]["nbgrader"] for cell in cells if "-setup" in grade_id(cell)]
    assert setup and all(marks["locked"] and marks["points"] == 0 for marks in setup)
    assert not any(
        part in source(cell) for cell in cells for part in ("<details>", "progress", "are folded")
    )


def grade_id(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


# ---------------------------------------------------------------------------------
# with nbgrader


def nbgrader(folder, *arguments):
    pytest.importorskip("nbgrader", reason="needs the extra `class`")
    # it calls the command alembic
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with the exercises of every page, one of them built for students."""
    pytest.importorskip("nbgrader", reason="needs the extra `class`")
    folder = tmp_path_factory.mktemp("course")
    write_class(folder)
    assert sorted(path.stem for path in (folder / "source").glob("*/*.ipynb")) == [
        page.stem for page in PAGES
    ]
    nbgrader(folder, "generate_assignment", GRADED, "--create")
    return folder


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_students_version_holds_no_solution_and_no_hidden_test(course):
    whole, given = (
        read(course / part / GRADED / f"{GRADED}.ipynb") for part in ("source", "release")
    )
    left = "\n".join(map(source, given["cells"]))
    texts = [source(cell) for cell in whole["cells"]]
    secret = [
        block for text in texts for pattern in (SOLUTION, HIDDEN) for block in pattern.findall(text)
    ]
    assert len(secret) == 2 * left.count("raise NotImplementedError()") == 14
    lines = {line.strip() for block in secret for line in block.splitlines()}
    assert [line for line in lines if len(line) > 12 and line in left] == []
    assert "SOLUTION" not in left and "HIDDEN" not in left
    assert all(not cell.get("outputs") for cell in given["cells"])


WRONG = [  # what some students write instead of answers 2 to 6
    "return 0", "raise ValueError('no idea')", "return ]", "import sys; print('oh', file=sys.stderr); sys.exit()",
    "return None",
]  # fmt: skip


def hand_in(course, student, cells):
    """A notebook of these cells, where nbgrader looks for it."""
    folder = course / "submitted" / student / GRADED
    folder.mkdir(parents=True)
    page = read(course / "release" / GRADED / f"{GRADED}.ipynb")
    (folder / f"{GRADED}.ipynb").write_text(json.dumps({**page, "cells": cells}), encoding="utf-8")


def test_a_course_is_graded_to_its_end(course):
    """Full marks for the solutions, and two points for somebody of whom only the first answer is
    right."""
    whole = read(course / "source" / GRADED / f"{GRADED}.ipynb")
    given = read(course / "release" / GRADED / f"{GRADED}.ipynb")["cells"]
    solved = {grade_id(c): source(c) for c in whole["cells"] if kind(c) == "solution"}
    right = [{**c, "source": solved.get(grade_id(c), source(c))} for c in given]
    hand_in(course, "right", right)
    hand_in(course, "mixed", partly_right(right))
    nbgrader(course, "autograde", GRADED, "--create")
    from nbgrader.api import Gradebook

    most = sum(
        cell["metadata"]["nbgrader"].get("points", 0) for cell in whole["cells"] if kind(cell)
    )
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        found = {s: book.find_submission(GRADED, s) for s in ("right", "mixed")}
        scores = {
            name: (submission.score, submission.max_score) for name, submission in found.items()
        }
    assert scores == {"right": (most, most), "mixed": (2.0, most)}


def partly_right(cells):
    """The first answer, then what is WRONG, then answers that were left as they are handed out."""
    wrong = iter(["", *WRONG])
    made = []
    for cell in cells:
        if kind(cell) == "solution" and (body := next(wrong, "raise NotImplementedError()")):
            cell = {**cell, "source": source(cell).split("\n")[0] + f"\n    {body}"}
        made.append(cell)
    return made
