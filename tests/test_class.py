"""The exercises of the pages: three levels, solutions that earn every point, and what nbgrader makes of them for a
class."""

import ast
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from book.class_pages import exercises_of, for_class, main, write_config, write_exercises
from lib.system.files import project_root
from tests.test_project import PAGES, notebook

ROOT = project_root()
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
    """Of each page, the equations that its plan in teaching.md shows."""
    text = (ROOT / "teaching.md").read_text(encoding="utf-8").partition("## Slides")[0]
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

    text = "# 6. Exercises\n\nTen.\nOpen an answer's fold to\nsee it. (`teaching.md`)."
    (made,) = for_class(page(text), "a")["cells"]
    assert source(made).startswith("# Exercises: Title\n\n") and source(made).endswith("\n\nTen.\n")
    for other in ("# 6. Exercises", "# 6. Exercises\n\nTen. Unfold an answer to see it (`teaching.md`)."):
        with pytest.raises(ValueError, match="a: its exercises begin with no \"Open an answer's fold"):
            for_class(page(other), "a")


def grade_id(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_set_up_of_a_class_is_locked_and_earns_nothing(page):
    whole = notebook(page)
    cells = for_class(whole, page.stem)["cells"]
    names = [grade_id(cell) for cell in cells if cell["cell_type"] == "code"]
    assert len(set(names)) == len(names) and all(names)
    found = [cell["metadata"]["nbgrader"] for cell in cells if "-setup-" in grade_id(cell)]
    assert found and all(g["locked"] and g["grade"] and not g["solution"] and g["points"] == 0 for g in found)
    assert not any("-setup-" in grade_id(cell) for cell in whole["cells"]), "the page is left as it was"


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
    hand_in(course, "deleted", [c for c in right if kind(c) == "solution"])
    hand_in(course, "changed", [c if kind(c) != "check" else {**c, "source": "raise ValueError()"} for c in right])
    nbgrader(course, "autograde", GRADED, "--create")
    from nbgrader.api import Gradebook

    most = sum(cell["metadata"]["nbgrader"].get("points", 0) for cell in whole["cells"] if kind(cell))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        found = {s: book.find_submission(GRADED, s) for s in ("right", "deleted", "changed", "mixed")}
        scores = {name: (submission.score, submission.max_score) for name, submission in found.items()}
    assert scores == {**dict.fromkeys(("right", "deleted", "changed"), (most, most)), "mixed": (2.0, most)}


def partly_right(cells):
    """The first answer, then what is WRONG, then answers that were left as they are handed out."""
    wrong = iter(["", *WRONG])
    made = []
    for cell in cells:
        if kind(cell) == "solution" and (body := next(wrong, "raise NotImplementedError()")):
            cell = {**cell, "source": source(cell).split("\n")[0] + f"\n    {body}"}
        made.append(cell)
    return made


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
