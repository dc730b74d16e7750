"""Exercises: what a check says of a reader's function, and what solutions and wrong answers
earn."""

import re
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch

from companion.exercises.exercise import Case, Exercises
from companion.site.class_pages import answers_of, exercises_of
from tests.project.test_project import PAGES, notebook

# which have none
NAMES = [page.stem for page in PAGES if page.stem not in ("baselines", "compare")]


def page_of(*cases, points=3, shown=1):
    """A page whose only exercise has these cases."""

    def name_of_it():
        yield from cases

    page = Exercises()
    page.cases(1, points, shown)(name_of_it)
    return page


def not_written(x):
    raise NotImplementedError


def leaves(x):
    raise SystemExit("bye")


def warns(x):
    """A grader takes whatever goes to stderr for a failure."""
    warnings.warn("careful", stacklevel=1)
    print("oh", file=sys.stderr)
    return 2 * x


@pytest.mark.parametrize(
    ("attempt", "points", "message"),
    [
        (not_written, 0.0, "not done yet"),
        (lambda x: x, 0.0, "0 of 2 right; one number: gives 2.0"),
        (warns, 3.0, "2 of 2 right"),
        (lambda x: 4.0, 1.5, "1 of 2 right; two numbers: gives 4.0"),
        (lambda x: float("nan"), 0.0, "0 of 2 right; one number: gives nan"),
        (lambda x: {"a": 4}, 0.0, "0 of 2 right; one number: gives {'a': 4}"),
        (leaves, 0.0, "0 of 2 right; one number: raises SystemExit: bye"),
        (None, 0.0, "there is no name_of_it"),
    ],
)
def test_a_check_says_what_is_wrong_and_not_what_is_right(attempt, points, message, capsys):
    one, two = (
        Case("one number", (2.0,), 4.0),
        Case("two numbers", (torch.tensor([1.0, 3.0]),), [2.0, 6.0]),
    )
    assert page_of(one, two).grade(1, attempt) == points
    written = capsys.readouterr()
    assert (
        written.out.startswith(f"exercise 1: {message}")
        and written.out.count("\n") == 1
        and not written.err
    )


ANSWERS = [  # result, expected, whether they are equal
    ("larger", "larger", True), (np.True_, 1, True), (torch.tensor(True), 0, False), (("a", "b"), ["a", "b"], True),
    ("ab", ["a", "b"], False), (torch.tensor(1 / 3), 1 / 3, True), (0.1, 0.1 + 1e-4, False), ([1.0], 1.0, False),
    ([torch.tensor(1.0), 2.0], [1, 2], True), ([[1.0], [1.0, 2.0]], [1.0, 2.0], False), (10**400, 4.0, False),
]  # fmt: skip


@pytest.mark.parametrize(("result", "expected", "same"), ANSWERS, ids=str)
def test_equal_answers(result, expected, same, capsys):
    assert page_of(Case("", (), expected)).grade(1, lambda: result) == 3 * same
    assert "raises" not in capsys.readouterr().out


def test_a_class_sees_the_first_cases_and_progress_is_that_of_the_last_check(capsys):
    page = page_of(Case("shown", (), 1.0), Case("hidden", (), 2.0))
    page.progress()
    assert page.grade(1, lambda: 1.0, shown=True) == 3 and page.grade(1, lambda: 1.0) == 1.5
    page.progress()
    page.check(1, iter([1.0, 2.0]).__next__)
    page.progress()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:8] != "exercise"] == [
        f"{share:>5}  1. name_of_it" for share in ("-", "50%", "done")
    ]


@pytest.fixture(scope="module", params=NAMES)
def of_page(request):
    """The exercises of a page: those of its module, its cells, the answers in them, and the
    readers' names."""
    cells = exercises_of(notebook(next(page for page in PAGES if page.stem == request.param)))
    return import_module(f"companion.exercises.{request.param}").PAGE, cells, answers_of(cells)


def source(cell):
    return "".join(cell["source"])


def names_of(cells):
    """What the page's exercises import: they need nothing of the page before them."""
    names = {}
    (imports,) = (
        source(c) for c in cells if c["cell_type"] == "code" and "import check" in source(c)
    )
    exec(imports, names)
    return names


def test_solutions_earn_every_point_and_stubs_none(of_page, capsys):
    page, cells, answers = of_page
    assert {answer.number: answer.function for answer in answers} == {
        n: e.name for n, e in page.known.items()
    }
    names = names_of(cells)
    for answer in answers:
        exec(answer.stub, names)
        capsys.readouterr()
        assert page.grade(answer.number, names[answer.function]) == 0
        assert capsys.readouterr().out == f"exercise {answer.number}: not done yet\n"
        exec(answer.solution, names)
        solution, points = names[answer.function], page.known[answer.number].points
        assert page.grade(answer.number, solution) == points


@pytest.mark.slow
def test_a_readers_functions_make_a_model_once_all_are_right(of_page, capsys):
    page, cells, answers = of_page
    called = [
        source(cell).rstrip(") \n") for cell in cells if source(cell).startswith("own_model(")
    ]
    if not called:
        pytest.skip("this page has no model of the reader's")
    names = names_of(cells)
    for answer in answers:
        exec(answer.stub, names)
        page.check(answer.number, names[answer.function])
    assert eval(f"{called[0]}, steps=2)", names) is None
    assert f"needs {answers[0].function}, " in capsys.readouterr().out
    for answer in answers:
        exec(answer.solution, names)
        page.check(answer.number, names[answer.function])
    shown = eval(f"{called[0]}, steps=2)", names)
    assert shown._repr_html_() and "Your model" in capsys.readouterr().out


def another(value):
    """Another answer of the same form."""
    if isinstance(value, str):
        return f"not {value}"
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, list | tuple):
        return [another(v) for v in value]
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool:
        return ~value
    return 2 * value + 1


def test_wrong_answers_earn_less_than_every_point(of_page, capsys):
    """Constants, the answer of the first case to every question, and the solution's with other
    numbers."""
    page, cells, answers = of_page
    names = names_of(cells)
    for answer in answers:
        exec(answer.solution, names)
        solution, exercise = names[answer.function], page.known[answer.number]
        first = solution(*next(iter(exercise.cases())).arguments)
        wrong = [
            lambda *_: 0,
            lambda *_: True,
            lambda *_: [],
            lambda *of, s=solution: another(s(*of)),
        ]
        if any(case.arguments for case in exercise.cases()):
            wrong.append(lambda *_, first=first: first)
        for function in wrong:
            assert page.grade(answer.number, function) < exercise.points, exercise.name


def test_code_with_a_bug_earns_less_than_every_point(of_page, capsys):
    """What an exercise asks to be mended is not right as it is."""
    page, cells, answers = of_page
    known = {answer.function: answer.number for answer in answers}
    names = {"np": np, "torch": torch}
    for text in map(source, cells):
        if "*Find the bug" in text:
            code = re.search(r"```python\n(def (\w+)\(.*?)```", text, re.DOTALL)
            exec(code[1], names)
            number = known[code[2]]
            for shown in (True, False):
                assert page.grade(number, names[code[2]], shown) < page.known[number].points


def test_a_readers_read_again_writes_what_the_librarys_does(capsys):
    page = import_module("companion.exercises.read_again")
    functions = [getattr(page, page.PAGE.known[number].name) for number in range(1, 5)]
    for number, function in enumerate(functions, 1):
        page.check(number, function)
    page.own_model(*functions, steps=60)
    yours, librarys = (
        line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()[-2:]
    )
    assert yours == librarys > "1"
