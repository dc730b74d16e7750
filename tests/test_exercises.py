"""Exercises: what a check says of a reader's function, and what its solution earns."""

import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch

from book.class_pages import answers_of, exercises_of
from lib.exercises.exercise import Case, Exercises
from tests.test_project import PAGES, notebook

NAMES = [page.stem for page in PAGES if page.stem != "baselines"]  # which has none


def page_of(*cases, points=3, shown=1):
    """A page whose only exercise has these cases."""

    def name_of_it():
        yield from cases

    page = Exercises()
    page.exercise(1, points, shown)(name_of_it)
    return page


def not_written(x):
    raise NotImplementedError


def leaves(x):
    raise SystemExit("bye")


@pytest.mark.parametrize(
    ("attempt", "points", "said"),
    [
        (not_written, 0.0, "exercise 1: not done yet"),
        (lambda x: x, 0.0, "exercise 1: 0 of 2 right; one number: gives 2.0"),
        (lambda x: 2 * x, 3.0, "exercise 1: 2 of 2 right"),
        (lambda x: 4.0, 1.5, "exercise 1: 1 of 2 right; two numbers: gives 4.0"),
        (
            lambda x: [4.0] * len(x),
            0.0,
            "exercise 1: 0 of 2 right; one number: raises TypeError: object of type 'floa",
        ),
        (
            lambda x: x / 0,
            0.0,
            "exercise 1: 0 of 2 right; one number: raises ZeroDivisionError: float division by ze",
        ),
        (lambda x: float("nan"), 0.0, "exercise 1: 0 of 2 right; one number: gives nan"),
        (lambda x: None, 0.0, "exercise 1: 0 of 2 right; one number: gives None"),
        (leaves, 0.0, "exercise 1: 0 of 2 right; one number: raises SystemExit: bye"),
    ],
)
def test_an_exercise_is_checked_and_its_answer_not_told(attempt, points, said, capsys):
    one, two = Case("one number", (2.0,), 4.0), Case("two numbers", (torch.tensor([1.0, 3.0]),), [2.0, 6.0])
    assert page_of(one, two).grade(1, attempt) == points
    written = capsys.readouterr()
    assert written.out.startswith(said) and written.out.count("\n") == 1 and not written.err
    if points < 3:
        assert "[2.0, 6.0]" not in written.out and "4.0" not in written.out.replace("gives 4.0", "")


def test_what_an_exercise_takes_for_the_same(capsys):
    def right(result, expected, **how):
        return page_of(Case("", (), expected, **how), points=1).grade(1, lambda: result) == 1

    assert right("larger", "larger") and not right("smaller", "larger") and not right(None, "larger")
    assert right(True, True) and not right(1, True) and right([True, False], [True, False])
    assert right(["a", True], ["a", True]) and not right(["a"], ["a", "b"]) and not right("ab", ["a", "b"])
    assert right(1 / 3, torch.tensor(1 / 3, dtype=torch.float64)), "a float has its 64 bits"
    assert right(torch.tensor(1 / 3), 1 / 3), "single precision is enough"
    assert not right(0.1, 0.1 + 1e-4) and right(0.1, 0.1 + 1e-6) and not right(0.1, 0.1 + 1e-6, tolerance=1e-7)
    assert right([torch.tensor(1.0), 2.0], [1, 2]) and not right([1.0], 1.0) and not right([1, 2, 3], [1, 2])
    for true in (np.True_, np.array(True), torch.tensor(True)):
        assert right(true, True) and not right(true, False), "the comparisons of NumPy and torch give these"
    assert not right(np.float64(1), True) and not right(torch.tensor([True]), True) and right(np.str_("a"), "a")
    assert right([1, 2, 3], 3, of=lambda result: result[-1])


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "None"),
        ("4", "'4'"),
        ({"a": 4}, "{'a': 4}"),
        ({4.0}, "{4.0}"),
        ((x for x in (1.0, 2.0)), "<generator object"),
        ([1.0, None], "[1.0, None]"),
        ([torch.ones(2), None], "[tensor([1., 1.]), None]"),
        ([[1.0], [1.0, 2.0]], "[[1.0], [1.0, 2.0]]"),
        pytest.param(10**400, "1000", id="large"),
    ],
)
@pytest.mark.parametrize("expected", [4.0, [1.0, 2.0], torch.ones(2, 2)])
def test_what_is_no_numbers_is_wrong_and_raises_nothing(result, said, expected, capsys):
    """A forgotten `return` gives None: a TypeError of the check would send its reader looking in the wrong place."""
    assert page_of(Case("it", (), expected)).grade(1, lambda: result) == 0
    assert capsys.readouterr().out.startswith(f"exercise 1: 0 of 1 right; it: gives {said}")


def test_a_warning_in_an_exercise_is_not_shown(capsys):
    """A grader takes whatever goes to stderr for a failure."""

    def warns():
        return warnings.warn("careful", stacklevel=1) or print("oh", file=sys.stderr) or 1.0

    assert page_of(Case("", (), 1.0)).grade(1, warns) == 3 and not capsys.readouterr().err


def test_a_class_sees_the_first_cases_and_a_missing_function_earns_nothing(capsys):
    page = page_of(Case("shown", (), 1.0), Case("hidden", (), 2.0))
    assert page.grade(1, lambda: 1.0, shown=True) == 3 and page.grade(1, lambda: 1.0) == 1.5
    assert page.grade(1, None) == 0
    lines = ["1 of 1 right", "1 of 2 right; hidden: gives 1.0", "there is no name_of_it"]
    assert capsys.readouterr().out.splitlines() == [f"exercise 1: {line}" for line in lines]


def test_progress_is_that_of_the_last_check(capsys):
    page = page_of(Case("a", (), 1.0), Case("b", (), 2.0))
    page.progress()
    page.check(1, lambda: 1.0)
    page.progress()
    page.check(1, iter([1.0, 2.0]).__next__)
    page.progress()
    shown = [line for line in capsys.readouterr().out.splitlines() if "name_of_it" in line]
    assert shown == ["    -  1. name_of_it", "  50%  1. name_of_it", " done  1. name_of_it"]


@pytest.fixture(scope="module", params=NAMES)
def of_page(request):
    """The exercises of a page: those of its module, its cells, the answers in them."""
    cells = exercises_of(notebook(next(page for page in PAGES if page.stem == request.param)))
    return import_module(f"lib.exercises.{request.param}").PAGE, cells, answers_of(cells)


def test_a_page_has_a_stub_a_check_and_a_solution_of_each_exercise(of_page):
    page, _, answers = of_page
    assert {answer.number: answer.function for answer in answers} == {n: e.name for n, e in page.known.items()}
    assert [answer.number for answer in answers] == list(range(1, len(answers) + 1))
    for answer in answers:
        head, docstring, *_ = answer.stub.splitlines()
        assert answer.solution.splitlines()[0] == head and docstring.startswith('    """')
        assert len(answer.solution.splitlines()) <= 7, "short enough to be found by oneself"


def test_the_solutions_of_a_page_earn_every_point_and_its_stubs_none(of_page, capsys):
    """By themselves: the exercises stand on nothing of the page before them but their imports."""
    page, cells, answers = of_page
    names = {}
    imports = [
        "".join(c["source"]) for c in cells if c["cell_type"] == "code" and "import check" in "".join(c["source"])
    ]
    for code in imports:
        exec(code, names)
    for answer in answers:
        exec(answer.stub, names)
        assert page.grade(answer.number, names[answer.function]) == 0
        assert capsys.readouterr().out == f"exercise {answer.number}: not done yet\n"
        exec(answer.solution, names)
        assert page.grade(answer.number, names[answer.function]) == page.known[answer.number].points
        capsys.readouterr()
    assert len(imports) == 1


def test_a_constant_answer_earns_no_exercise_that_asks_for_numbers(of_page, capsys):
    """Cases differ from each other, so that no single value is right for all of them."""
    page, _, _ = of_page
    for number, exercise in page.known.items():
        if any(case.arguments for case in exercise.cases()):
            for value in (0, 1, 2, True, []):
                assert page.grade(number, lambda *_, value=value: value) < exercise.points, exercise.name
