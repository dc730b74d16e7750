"""The exercises of the pages: three levels, solutions that earn every point, and what nbgrader makes of them for a
class."""

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from companion.site.class_pages import answers_of, exercises_of, for_class, main, write_config, write_exercises
from lib.system.files import project_root
from tests.test_project import PAGES as EVERY_PAGE
from tests.test_project import notebook

ROOT = project_root()
PAGES = [page for page in EVERY_PAGE if page.stem != "baselines"]  # which has no exercises
TAUGHT = [page for page in PAGES if page.stem != "compare"]  # which has two exercises
LEVELS = ["## Compute", "## Derive", "## Change the model, and predict"]
SOLUTION = re.compile(r" *### BEGIN SOLUTION\n(.*?) *### END SOLUTION", re.DOTALL)
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.DOTALL)
SHOWN = ("slide", "subslide")
GRADED = "hierarchical_transformer"  # the page whose exercises take least time


def source(cell):
    return "".join(cell["source"])


def kind(cell):
    """'solution', 'check', or nothing."""
    given = cell["metadata"].get("nbgrader", {})
    return "solution" if given.get("solution") else "check" if given.get("grade") else ""


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.stem)
def test_a_page_has_exercises_of_three_levels(page):
    cells = exercises_of(notebook(page))
    known = import_module(f"companion.exercises.{page.stem}").PAGE.known
    assert 8 <= len(known) <= 10
    texts = [source(cell) for cell in cells if cell["cell_type"] == "markdown"]
    levels = [line for text in texts for line in text.splitlines() if line.startswith("## ")]
    assert levels == LEVELS
    numbered = [text for text in texts if re.search(r"^\*\*\d+\.\*\*", text, re.MULTILINE)]
    for text, (number, exercise) in zip(numbered, sorted(known.items()), strict=True):
        last = re.search(r"^\*\*(\d+)\.\*\* .*\((\d) points, (\d+) minutes\)$", text, re.MULTILINE | re.DOTALL)
        assert last and last[1] == str(number) and last[2] == str(exercise.points)
        assert re.search(r"\(\d+\)|section \d|Table \d|planted", text), "says what of the paper it is about"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_exercise_has_a_hint_and_a_solution_in_folds(page):
    cells = exercises_of(notebook(page))
    folds = [source(cell) for cell in cells if source(cell).startswith("<details>")]
    assert len(folds) == len(answers_of(cells)) > 0
    for fold in folds:
        hint, solution = fold.split("</details>\n", 1)
        assert hint.startswith("<details><summary>Hint</summary>\n\n") and len(hint) > 50
        assert solution.startswith("<details><summary>Solution</summary>\n\n```python\n") and "### " not in fold


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_class_gets_every_answer_and_check(page):
    cells = for_class(notebook(page), page.stem)["cells"]
    known = import_module(f"companion.exercises.{page.stem}").PAGE.known
    ids = [f"{page.stem}-{number}{part}" for number in sorted(known) for part in ("", "-check")]
    marked = [cell["metadata"]["nbgrader"] for cell in cells if kind(cell) and "-setup" not in grade_id(cell)]
    assert [marks["grade_id"] for marks in marked] == ids
    assert [m["points"] for m in marked if m["grade"]] == [known[n].points for n in sorted(known)]
    for cell in cells:
        if kind(cell) == "solution":
            assert len(SOLUTION.findall(source(cell))) == 1 and "NotImplementedError" not in source(cell)
        elif kind(cell) == "check" and "-setup" not in grade_id(cell):
            assert len(HIDDEN.findall(source(cell))) == 1 and "shown=True" in source(cell)
    assert not any("<details>" in source(cell) or "progress" in source(cell) for cell in cells)


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.stem)
def test_a_page_is_a_talk_of_twenty_to_thirty_slides(page):
    cells = notebook(page)["cells"]
    kinds = [cell["metadata"].get("slideshow", {}).get("slide_type", "-") for cell in cells]
    assert 20 <= sum(map(kinds.count, SHOWN)) <= 30
    assert set(kinds) - {"-"} == {"slide", "subslide", "skip", "notes"}
    for cell, how in zip(cells, kinds):
        assert how == "skip" or not kind(cell), "no solution is shown"
        if how == "notes":
            assert cell["cell_type"] == "markdown"
        if how in SHOWN and cell["cell_type"] == "code":
            assert cell["outputs"], "a talk shows no code, and this cell shows nothing else"
        if how == "-":  # goes on from the cell before it
            assert "show_model(" in source(cell)


def plans():
    """Of each page, the equations that its plan in docs/teaching.md shows."""
    text = (ROOT / "docs/teaching.md").read_text(encoding="utf-8").partition("## Slides")[0]
    for name, plan in re.findall(r"^### (.+)\n((?:(?!###).*\n)*)", text, re.MULTILINE):
        shown = [row.split("|")[2] for row in plan.splitlines() if row.startswith("|")]
        spans = re.findall(r"\((\d+)\)(?: to \((\d+)\))?", " ".join(shown))
        yield name, {n for first, last in spans for n in range(int(first), int(last or first) + 1)}


PLANS = dict(plans())


@pytest.mark.parametrize(("name", "equations"), PLANS.items(), ids=list(PLANS))
def test_a_talk_has_the_equations_of_its_plan(name, equations):
    assert equations
    (page,) = [page for page in PAGES if page.stem.startswith(name.lower().split()[0].replace("-", "_"))]
    slides = [c for c in notebook(page)["cells"] if c["metadata"].get("slideshow", {}).get("slide_type") in SHOWN]
    assert equations <= {int(n) for cell in slides for n in re.findall(r"\\tag\{(\d+)\}", source(cell))}


def test_only_the_exercises_of_a_page_are_taken():
    code = {"cell_type": "code", "outputs": [1], "execution_count": 3, "metadata": {}, "source": ["pass"]}
    headings = [
        {"cell_type": "markdown", "metadata": {}, "source": source}
        for source in (["# 5. Before\n"], ["# 6. Exercises\n", "one"], ["## Derive\n"], ["# After\n"])
    ]
    page = {"cells": [code, *headings[:2], code, *headings[2:], code]}
    first, answer, level = exercises_of(page)
    assert source(first) == "# 6. Exercises\none" and source(level) == "## Derive\n"
    assert answer["outputs"] == [] and answer["execution_count"] is None
    assert code["outputs"] == [1], "the page is left as it was"
    with pytest.raises(ValueError, match=r"one heading 'N\. Exercises' is needed, 0 found"):
        exercises_of({"cells": page["cells"][:1]})


def test_a_stub_without_its_check_or_solution_is_refused():
    def cell(text):
        return {"cell_type": "code", "metadata": {}, "source": text}

    stub = cell('def half(x):\n    """A number."""\n    raise NotImplementedError')
    check = cell("check(3, half)")
    fold = cell("<details><summary>Solution</summary>\n\n```python\ndef half(x):\n    return x / 2\n```\n</details>")
    (answer,) = answers_of([stub, check, fold])
    assert (answer.number, answer.function, answer.solution) == (3, "half", "def half(x):\n    return x / 2")
    marked = "    ### BEGIN SOLUTION\n    return x / 2\n    ### END SOLUTION"
    assert answer.written() == f'def half(x):\n    """A number."""\n{marked}'
    other = cell(source(fold).replace("half(x)", "half(y)"))
    for cells in ([stub, fold, check], [stub, cell("check(3, third)"), fold], [stub, check, other]):
        with pytest.raises(ValueError, match="half: after its stub come its check, and a fold with its solution"):
            answers_of(cells)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_for_a_class_says_whose_exercises_it_has(page):
    """And nothing that is for readers of the page alone."""
    whole = notebook(page)
    first, *others = for_class(whole, page.stem)["cells"]
    heading, beside, *rest = source(first).strip().split("\n\n")
    assert heading == "# Exercises: " + source(whole["cells"][0]).split("\n")[0].removeprefix("# ")
    assert f"`notebooks/{page.stem}.ipynb`" in beside and (ROOT / "notebooks" / f"{page.stem}.ipynb").exists()
    assert len(rest) == 1 and "A check" in rest[0] and "says how many cases are right" in " ".join(rest[0].split())
    told = "\n".join([source(first), *(source(cell) for cell in others if cell["cell_type"] == "markdown")])
    assert not re.search(r"\bfold|make class|teaching\.md|needs nothing from above", told)


def test_a_page_with_other_words_for_its_readers_is_refused():
    def page(text):
        cells = [{"cell_type": "markdown", "metadata": {}, "source": [line]} for line in ("# Title", text)]
        return {"cells": cells}

    text = "# 6. Exercises\n\nTen.\nHints and solutions are folded\nall. (`docs/teaching.md`)."
    (made,) = for_class(page(text), "windowed")["cells"]
    assert source(made).startswith("# Exercises: Title\n\n") and source(made).endswith("\n\nTen.\n")
    for other in ("# 6. Exercises", "# 6. Exercises\n\nTen. Unfold an answer to see it (`docs/teaching.md`)."):
        with pytest.raises(ValueError, match='windowed: its exercises begin with no "Hints and solutions'):
            for_class(page(other), "windowed")


def grade_id(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_set_up_of_a_class_is_locked_and_earns_nothing(page):
    whole = notebook(page)
    cells = for_class(whole, page.stem)["cells"]
    names = [grade_id(cell) for cell in cells if cell["cell_type"] == "code"]
    assert len(set(names)) == len(names) and all(names)
    found = [cell["metadata"]["nbgrader"] for cell in cells if "-setup" in grade_id(cell)]
    assert found and all(g["locked"] and g["grade"] and not g["solution"] and g["points"] == 0 for g in found)
    assert not any("-setup" in grade_id(cell) for cell in whole["cells"]), "the page is left as it was"


def test_settings_of_a_class_are_written_once(tmp_path):
    path = tmp_path / "nbgrader_config.py"
    assert write_config(tmp_path) == f"settings in {path}"
    assert write_config(tmp_path).endswith(": as they were")
    path.write_text("c = get_config()\n", encoding="utf-8")
    assert write_config(tmp_path).endswith(": your own, kept")
    assert path.read_text(encoding="utf-8") == "c = get_config()\n"


def test_a_class_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^error: .*Not a directory"):
        main([str(tmp_path / "file")])
    assert not capsys.readouterr().out


def test_a_talk_keeps_the_proportions_of_a_figure():
    """A figure has a width of its own; where its height is held back, it is fitted into what is left."""
    styles = (ROOT / "companion" / "site" / "talk" / "index.html.j2").read_text(encoding="utf-8")
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
    write_config(folder)
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


def hand_in(course, student, cells):
    """A notebook of these cells, where nbgrader looks for it."""
    folder = course / "submitted" / student / GRADED
    folder.mkdir(parents=True)
    page = read(course / "release" / GRADED / f"{GRADED}.ipynb")
    (folder / f"{GRADED}.ipynb").write_text(json.dumps({**page, "cells": cells}), encoding="utf-8")


def test_a_course_is_graded_to_its_end(course):
    """Full marks for the solutions, also where cells that are not the student's were changed or deleted, and two
    points for somebody whose first answer alone is right."""
    whole = read(course / "source" / GRADED / f"{GRADED}.ipynb")
    given = read(course / "release" / GRADED / f"{GRADED}.ipynb")["cells"]
    solved = {grade_id(c): source(c) for c in whole["cells"] if kind(c) == "solution"}
    right = [{**c, "source": solved.get(grade_id(c), source(c))} for c in given]
    hand_in(course, "right", right)
    hand_in(course, "mixed", partly_right(right))
    hand_in(course, "spoilt", spoilt(right))
    nbgrader(course, "autograde", GRADED, "--create")
    from nbgrader.api import Gradebook

    most = sum(cell["metadata"]["nbgrader"].get("points", 0) for cell in whole["cells"] if kind(cell))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        found = {s: book.find_submission(GRADED, s) for s in ("right", "spoilt", "mixed")}
        scores = {name: (submission.score, submission.max_score) for name, submission in found.items()}
    assert scores == {"right": (most, most), "spoilt": (most, most), "mixed": (2.0, most)}


def partly_right(cells):
    """The first answer, then what is WRONG, then answers that were left as they are handed out."""
    wrong = iter(["", *WRONG])
    made = []
    for cell in cells:
        if kind(cell) == "solution" and (body := next(wrong, "raise NotImplementedError()")):
            cell = {**cell, "source": source(cell).split("\n")[0] + f"\n    {body}"}
        made.append(cell)
    return made


def spoilt(cells):
    """Of the cells that are not the student's every other check is changed, and all else deleted."""
    changed = {grade_id(cell) for cell in [cell for cell in cells if kind(cell) == "check"][::2]}
    own = [cell for cell in cells if kind(cell) == "solution" or grade_id(cell) in changed]
    return [{**cell, "source": "raise ValueError()"} if grade_id(cell) in changed else cell for cell in own]


def test_a_download_from_moodle_is_collected(course):
    """With the expression in the settings: one notebook for each student, by the number that Moodle gives."""
    names = [f"{who}_assignsubmission_file_{GRADED}.ipynb" for who in ("Ada de la Cruz_4021", "Bo Li_17")]
    archive = course / "downloaded" / GRADED / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "download.zip", "w") as file:
        for name in names:
            file.write(course / "release" / GRADED / f"{GRADED}.ipynb", name)
    nbgrader(course, "zip_collect", GRADED)
    assert all((course / "submitted" / number / GRADED / f"{GRADED}.ipynb").exists() for number in ("4021", "17"))
