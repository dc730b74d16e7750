"""The exercises of the pages: three levels, solutions that earn every point, and what nbgrader makes of them for a
class."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lib.class_pages import exercises_of, write_exercises
from lib.storage import project_root
from tests.test_project import PAGES, notebook

ROOT = project_root()
TAUGHT = [page for page in PAGES if page.stem != "compare"]  # which has two exercises
LEVELS = ["## Compute", "## Derive", "## Change the model, and predict"]
SOLUTION = re.compile(r" *### BEGIN SOLUTION\n(.*?) *### END SOLUTION", re.DOTALL)
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.DOTALL)
GRADED = "hierarchical_transformer"  # the page whose exercises take least time


def source(cell):
    return "".join(cell["source"])


def kind(cell):
    """'solution', 'check', or nothing."""
    given = cell["metadata"].get("nbgrader", {})
    return "solution" if given.get("solution") else "check" if given.get("grade") else ""


def pairs(page):
    """The answer and the check of each exercise of a page."""
    cells = [cell for cell in exercises_of(notebook(page)) if kind(cell)]
    assert [kind(cell) for cell in cells] == ["solution", "check"] * (len(cells) // 2)
    return list(zip(cells[::2], cells[1::2]))


def run(cells):
    """{exercise: points earned} of cells that are executed one after the other, as a notebook does."""
    names, earned = {}, {}
    for cell in cells:
        *statements, last = ast.parse(source(cell)).body
        exec(compile(ast.Module(statements, []), "page", "exec"), names)
        if kind(cell) == "check":
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
            earned[cell["metadata"]["nbgrader"]["grade_id"]] = value
        else:
            exec(compile(ast.Module([last], []), "page", "exec"), names)
    return earned


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.stem)
def test_a_page_has_exercises_of_three_levels(page):
    found = pairs(page)
    assert 8 <= len(found) <= 10
    texts = [source(cell) for cell in exercises_of(notebook(page)) if cell["cell_type"] == "markdown"]
    levels = [line for text in texts for line in text.splitlines() if line.startswith("## ")]
    assert levels == LEVELS
    numbered = [text for text in texts if re.search(r"^\*\*\d+\.\*\*", text, re.MULTILINE)]
    asked = [re.search(r"^\*\*(\d+)\.\*\*.*\((\d) points\)$", text, re.MULTILINE | re.DOTALL) for text in numbered]
    for number, (match, (answer, check)) in enumerate(zip(asked, found, strict=True), 1):
        ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in (answer, check)]
        assert ids == [f"{page.stem}-{number}", f"{page.stem}-{number}-check"] and match[1] == str(number)
        assert check["metadata"]["nbgrader"]["points"] == int(match[2])
        assert f"Exercise({number}, points={match[2]})" in source(check)
        assert re.search(r"\(\d+\)|section \d|Table \d|planted", match[0]), "says what of the paper it is about"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_answer_is_a_folded_function_and_its_check_is_short(page):
    for answer, check in pairs(page):
        (written,) = SOLUTION.findall(source(answer))
        assert source(answer).startswith("def ") and len([x for x in written.splitlines() if "#" not in x]) <= 6
        assert len(HIDDEN.findall(source(check))) == 1 and source(check).endswith("asked.score()")
        for cell in (answer, check):
            lines = source(cell).splitlines()
            assert len(lines) <= 20 and max(map(len, lines)) <= 88, source(cell)
    folded = [cell for cell in notebook(page)["cells"] if kind(cell) == "solution"]
    assert all(cell["metadata"]["tags"] == ["hide-input"] for cell in folded)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_solutions_of_a_page_earn_every_point(page, capsys):
    """By themselves: the exercises stand on nothing of the page before them."""
    cells = [cell for cell in exercises_of(notebook(page)) if cell["cell_type"] == "code"]
    graded = [check["metadata"]["nbgrader"] for _, check in pairs(page)]
    points = {given["grade_id"]: given["points"] for given in graded}
    assert run(cells) == points
    assert len(re.findall(r"^exercise \d+: (\d+) of \1 right$", capsys.readouterr().out, re.MULTILINE)) == len(points)


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.stem)
def test_a_page_is_a_talk_of_twenty_to_thirty_slides(page):
    cells = notebook(page)["cells"]
    kinds = [cell["metadata"].get("slideshow", {}).get("slide_type", "-") for cell in cells]
    assert 20 <= kinds.count("slide") + kinds.count("subslide") <= 30
    assert set(kinds) - {"-"} == {"slide", "subslide", "skip", "notes"}
    for cell, how in zip(cells, kinds):
        assert how == "skip" or not kind(cell), "no solution is shown"
        if how == "notes":
            assert cell["cell_type"] == "markdown"
        if how in ("slide", "subslide") and cell["cell_type"] == "code":
            assert cell["outputs"], "a talk shows no code, and this cell shows nothing else"
        if how == "-":  # goes on from the cell before it
            assert "show_model(" in source(cell)


def test_only_the_exercises_of_a_page_are_taken():
    text, code = (
        {"cell_type": "markdown", "metadata": {}},
        {"cell_type": "code", "outputs": [1], "execution_count": 3},
    )
    folded = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "nbgrader": {"solution": True}}
    page = {
        "cells": [
            {**text, "source": ["# 5. Before\n"]},
            {**text, "source": ["# 6. Exercises\n", "one"]},
            {**code, "source": ["pass"], "metadata": folded},
            {**text, "source": ["## Derive\n"]},
            {**text, "source": ["# After\n"]},
        ]
    }
    first, answer, level = exercises_of(page)
    assert source(first) == "# 6. Exercises\none" and source(level) == "## Derive\n"
    assert answer["metadata"] == {"tags": [], "nbgrader": {"solution": True}}, "unfolded"
    assert answer["outputs"] == [] and answer["execution_count"] is None
    assert folded["tags"] == ["hide-input"], "the page is left as it was"
    with pytest.raises(ValueError, match=r"one heading 'N\. Exercises' is needed, 0 found"):
        exercises_of({"cells": page["cells"][:1]})


def test_a_talk_keeps_the_proportions_of_a_figure():
    """A figure has a width of its own; where its height is held back, it is fitted into what is left."""
    styles = (ROOT / "book" / "talk" / "index.html.j2").read_text(encoding="utf-8")
    limited = [rule for rule in re.findall(r"\bimg[^{}]*\{([^}]*)\}", styles) if "max-height" in rule]
    assert limited and all("object-fit: contain" in rule for rule in limited)


# ------------------------------------------------------------------------------------------------ with nbgrader


def nbgrader(folder, *arguments):
    pytest.importorskip("nbgrader", reason="needs the extra `class`")
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it calls the command alembic
    given = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with the exercises of every page, one of them built for students."""
    pytest.importorskip("nbgrader", reason="needs the extra `class`")
    folder = tmp_path_factory.mktemp("course")
    assert write_exercises(folder / "source") == [page.stem for page in PAGES]
    nbgrader(folder, "generate_assignment", GRADED, "--create")
    return folder


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_students_version_holds_no_solution_and_no_hidden_test(course):
    whole, given = (read(course / part / GRADED / f"{GRADED}.ipynb") for part in ("source", "release"))
    left = "\n".join(map(source, given["cells"]))
    texts = [source(cell) for cell in whole["cells"]]
    secret = [block for text in texts for pattern in (SOLUTION, HIDDEN) for block in pattern.findall(text)]
    assert len(secret) == 2 * left.count("raise NotImplementedError()") >= 16
    lines = {line.strip() for block in secret for line in block.splitlines()}
    assert [line for line in lines if len(line) > 12 and line in left] == []
    assert "SOLUTION" not in left and "HIDDEN" not in left
    assert all(not cell.get("outputs") for cell in given["cells"])


WRONG = [  # what some students write in place of answers 2 to 6
    "return 0",
    "raise ValueError('no idea')",
    "return ]",
    "import sys; print('oh', file=sys.stderr); sys.exit()",
    "return None",
]


def test_a_course_is_graded_to_its_end(course):
    """Full marks for the solutions, and two points for somebody whose first answer alone is right."""
    whole, given = (read(course / part / GRADED / f"{GRADED}.ipynb") for part in ("source", "release"))
    solved = {c["metadata"]["nbgrader"]["grade_id"]: source(c) for c in whole["cells"] if kind(c) == "solution"}
    for student in ("right", "mixed"):
        answers = [cell for cell in given["cells"] if kind(cell) == "solution"]
        for number, cell in enumerate(answers):
            name = cell["metadata"]["nbgrader"]["grade_id"]
            if student == "right" or number == 0:
                cell["source"] = solved[name]
            elif number <= len(WRONG):
                cell["source"] = source(cell).split("\n")[0] + f"\n    {WRONG[number - 1]}"
            else:
                cell["source"] = source(cell).split("\n")[0] + "\n    raise NotImplementedError()"
        handed_in = course / "submitted" / student / GRADED
        handed_in.mkdir(parents=True)
        (handed_in / f"{GRADED}.ipynb").write_text(json.dumps(given), encoding="utf-8")
    nbgrader(course, "autograde", GRADED, "--create")
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        scores = {s: book.find_submission(GRADED, s) for s in ("right", "mixed")}
        most = sum(cell["metadata"]["nbgrader"].get("points", 0) for cell in whole["cells"] if kind(cell))
        assert {name: (found.score, found.max_score) for name, found in scores.items()} == {
            "right": (most, most), "mixed": (2.0, most),
        }  # fmt: skip
