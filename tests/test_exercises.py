"""Exercises: what a check says of a reader's function, and what solutions and wrong answers earn."""

import re
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch

from companion.exercises.exercise import Case, Exercises
from companion.site.class_pages import answers_of, exercises_of
from tests.test_project import PAGES, notebook

NAMES = [page.stem for page in PAGES if page.stem != "baselines"]  # which has none


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
        (lambda x: x / 0, 0.0, "0 of 2 right; one number: raises ZeroDivisionError: float division by ze"),
        (lambda x: float("nan"), 0.0, "0 of 2 right; one number: gives nan"),
        (lambda x: None, 0.0, "0 of 2 right; one number: gives None"),
        (lambda x: {"a": 4}, 0.0, "0 of 2 right; one number: gives {'a': 4}"),
        (leaves, 0.0, "0 of 2 right; one number: raises SystemExit: bye"),
        (None, 0.0, "there is no name_of_it"),
    ],
)
def test_a_check_says_what_is_wrong_and_not_what_is_right(attempt, points, message, capsys):
    one, two = Case("one number", (2.0,), 4.0), Case("two numbers", (torch.tensor([1.0, 3.0]),), [2.0, 6.0])
    assert page_of(one, two).grade(1, attempt) == points
    written = capsys.readouterr()
    assert written.out.startswith(f"exercise 1: {message}") and written.out.count("\n") == 1 and not written.err


@pytest.mark.parametrize(
    ("result", "expected", "same"),
    [
        ("larger", "larger", True),
        (None, "larger", False),
        (1, True, False),
        (np.True_, True, True),
        (torch.tensor(True), False, False),
        (["a", True], ["a", True], True),
        ("ab", ["a", "b"], False),
        (torch.tensor(1 / 3), 1 / 3, True),
        (0.1, 0.1 + 1e-4, False),
        ([torch.tensor(1.0), 2.0], [1, 2], True),
        ([1.0], 1.0, False),
        ([1, 2, 3], [1, 2], False),
        ([torch.ones(2), None], torch.ones(2, 2), False),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], False),
        (10**400, 4.0, False),
    ],
    ids=str,
)
def test_equal_answers(result, expected, same, capsys):
    assert page_of(Case("", (), expected)).grade(1, lambda: result) == 3 * same
    assert "raises" not in capsys.readouterr().out


def test_parts_of_results_and_tolerances():
    def right(result, expected, **how):
        return page_of(Case("", (), expected, **how), points=1).grade(1, lambda: result) == 1

    assert right([1, 2, 3], 3, of=lambda result: result[-1])
    assert right(0.1, 0.1 + 1e-6) and not right(0.1, 0.1 + 1e-6, tolerance=1e-7)


def test_references_and_predictions(capsys):
    page = Exercises()
    page.exercise(1, 2, [[2], [3]])(lambda x: x**2)
    page.prediction(2, 3)(lambda: {"a": True, "b": "smaller"})
    assert page.grade(1, lambda x: x * x) == 2 and page.grade(1, lambda x: 2 * x) == 1
    assert page.grade(2, lambda: [1, "smaller"]) == 3 and page.grade(2, lambda: [0, "smaller"]) == 1.5


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
    """The exercises of a page: those of its module, its cells, the answers in them, and the readers' names."""
    cells = exercises_of(notebook(next(page for page in PAGES if page.stem == request.param)))
    return import_module(f"companion.exercises.{request.param}").PAGE, cells, answers_of(cells)


def source(cell):
    return "".join(cell["source"])


def names_of(cells):
    """What the page's exercises import: they need nothing of the page before them."""
    names = {}
    (imports,) = (source(c) for c in cells if c["cell_type"] == "code" and "import check" in source(c))
    exec(imports, names)
    return names


def test_solutions_earn_every_point_and_stubs_none(of_page, capsys):
    page, cells, answers = of_page
    assert {answer.number: answer.function for answer in answers} == {n: e.name for n, e in page.known.items()}
    names = names_of(cells)
    for answer in answers:
        exec(answer.stub, names)
        capsys.readouterr()
        assert page.grade(answer.number, names[answer.function]) == 0
        assert capsys.readouterr().out == f"exercise {answer.number}: not done yet\n"
        exec(answer.solution, names)
        solution, points = names[answer.function], page.known[answer.number].points
        assert page.grade(answer.number, solution) == points
        if "ruth value" in answer.stub:  # which may be written as numbers
            assert page.grade(answer.number, lambda *of, solution=solution: numbers(solution(*of))) == points


def numbers(values):
    return values if any(isinstance(value, str) for value in values) else np.asarray(values, dtype=int).tolist()


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
    """Constants, the answer of the first case to every question, and the solution's with other numbers."""
    page, cells, answers = of_page
    names = names_of(cells)
    for answer in answers:
        exec(answer.solution, names)
        solution, exercise = names[answer.function], page.known[answer.number]
        first = solution(*next(iter(exercise.cases())).arguments)
        wrong = [lambda *_: 0, lambda *_: True, lambda *_: [], lambda *of, s=solution: another(s(*of))]
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


# ------------------------------------------------------------------------- misconceptions, of which none earns all


def beam(next_words, K, most, score=np.log, first_end=False):
    """A beam search with faults."""
    found = [(0.0, [])]
    for _ in range(most):
        ended = [f for f in found if f[1][-1:] == ["[EOS]"]]
        if first_end and ended:
            return ended[0][1]
        longer = [(s + score(p), [*y, w]) for s, y in found for w, p in next_words(y).items()]
        found = sorted(ended + longer, reverse=True)[:K]
    return found[0][1]


def reads(M, states, read, gate_and_update, of_read=True, keeps=True):
    """A memory that is written with what was not yet read, or that does not erase."""
    result = [read(states[0], M)]
    for h in states[1:]:
        z, u = gate_and_update(h, result[-1] if of_read else read(h, M), M)
        M = z * M + (1 - z) * u if keeps else z * M + u
        result.append(read(h, M))
    return torch.stack(result)


def two_softmaxes(word, g, k, source, share=1.0):
    here = torch.tensor([place == word for place in source])
    return share * ((g.softmax(0)[word] if word < len(g) else 0) + k.softmax(0)[here].sum())


def paired(q=(2.5, 97.5), mean=True, sign=1):
    def ends(first, second):
        difference, random = sign * (second - first), np.random.default_rng(0)
        drawn = difference[random.integers(0, len(first), (2000, len(first)))]
        return np.percentile(drawn.mean(1) if mean else drawn, q)

    return ends


WRONG = {
    ("start_here", 2): [  # greedy; probabilities added; stops at the first that ends
        lambda next_words, K, most: beam(next_words, 1, most),
        lambda next_words, K, most: beam(next_words, K, most, score=lambda p: p),
        lambda next_words, K, most: beam(next_words, K, most, first_end=True),
    ],
    ("start_here", 3): [sorted, lambda words: words[1:] + words[:1], lambda words: [word[::-1] for word in words]],
    ("start_here", 7): [  # at a large exponent all ranks are 0
        lambda a, n, b, m: 50.0,
        lambda a, n, b, m: np.log(a / b) / np.log(m / n),
    ],
    ("mem2mem", 1): [lambda alpha, beta, of: alpha * beta[:, of], lambda alpha, beta, of: alpha],
    ("mem2mem", 2): [
        lambda *of: reads(*of, of_read=False),
        lambda *of: reads(*of, keeps=False),
        lambda M, states, read, _: torch.stack([read(h, M) for h in states]),
    ],
    ("mem2mem", 7): [
        lambda k, z, M, u: z**k * M + (1 - z) * u,
        lambda k, z, M, u: z**k * M + k * (1 - z) * u,
    ],
    ("read_again", 2): [
        lambda e, d, s: [4 * d * (n + d + 1) for n in (e, e + 2 * d, e + d + s * d)],  # one bias
        lambda e, d, s: [4 * d * (n + d + 2) for n in (e, e + d, e + s * d)],  # the word's state is forgotten
        lambda e, d, s: [3 * d * (n + d + 2) for n in (e, e + 2 * d, e + d + s * d)],  # a GRU
    ],
    ("read_again", 3): [two_softmaxes, lambda *a: two_softmaxes(*a, share=0.5)],
    ("read_again", 5): [
        lambda n, alpha, u: [(1 - (1 - alpha) ** n) * u, abs(1 - alpha) >= 1],  # 0 does not grow
        lambda n, alpha, u: [(1 - (1 - alpha) ** (n - 1)) * u, alpha < 0],
    ],
    ("hierarchical_transformer", 1): [
        lambda G, present: G / G.sum(1, keepdim=True) * present,
        lambda G, present: G.masked_fill(~present, -torch.inf).softmax(1),
    ],
    ("hierarchical_transformer", 5): [lambda w, b, g: w * (b @ g), lambda w, b, g: w * (1 - w) * (b @ g)],
    ("hierarchical_transformer", 6): [
        lambda G, layers: torch.linalg.matrix_power(G, layers) > 0,
        lambda G, layers: G + torch.eye(len(G)) > 0,
    ],
    ("compare", 1): [paired((5, 95)), paired(mean=False), paired(sign=-1)],
    ("compare", 2): [
        lambda difference, spread: (1.645 * spread / difference) ** 2,
        lambda difference, spread: 1.96 * spread / difference,
    ],
}


@pytest.mark.parametrize(("page", "number"), WRONG, ids=[f"{page}-{number}" for page, number in WRONG])
def test_misconceptions_earn_less_than_every_point(page, number, capsys):
    """By what they return; in the cases that a class may see as well."""
    exercises = import_module(f"companion.exercises.{page}").PAGE
    for wrong in WRONG[page, number]:
        for shown in (True, False):
            assert exercises.grade(number, wrong, shown) < exercises.known[number].points
            assert "raises" not in capsys.readouterr().out
