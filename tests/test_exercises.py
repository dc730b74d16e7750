"""Exercises: what a check says of a reader's function, and what its solution earns."""

import re
import sys
import warnings
from collections import Counter
from importlib import import_module

import numpy as np
import pytest
import torch

from companion.exercises.exercise import Case, Exercises
from companion.site.class_pages import answers_of, exercises_of
from lib.data.vocabulary import EOS
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
    return import_module(f"companion.exercises.{request.param}").PAGE, cells, answers_of(cells)


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


def test_code_with_a_bug_earns_less_than_every_point(of_page, capsys):
    """What an exercise asks to be mended is not right as it stands."""
    page, cells, answers = of_page
    numbers = {answer.function: answer.number for answer in answers}
    names = {"np": np, "torch": torch}
    for text in map(source, cells):
        if "*Find the bug" in text:
            code = re.search(r"```python\n(def (\w+)\(.*?)```", text, re.DOTALL)
            exec(code[1], names)
            number = numbers[code[2]]
            for shown in (True, False):
                assert page.grade(number, names[code[2]], shown) < page.known[number].points


def source(cell):
    return "".join(cell["source"])


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


def grams(words, n):
    return [*zip(*(words[i:] for i in range(n)))]


# ------------------------------------------------------------------- plausible wrong answers, of which none earns all


def text_of_padding(h1, x, mask, W_e, U_e, V_e, b):
    return torch.tanh(h1 @ W_e.T + b + h1[:, -1:] @ U_e.T + x @ V_e.T)


def text_of_mean(h1, x, mask, W_e, U_e, V_e, b):
    text = (h1 * mask[..., None]).sum(1, keepdim=True) / mask.sum(1)[:, None, None]
    return torch.tanh(h1 @ W_e.T + b + text @ U_e.T + x @ V_e.T)


def text_of_first(h1, x, mask, W_e, U_e, V_e, b):
    return torch.tanh(h1 @ W_e.T + b + h1[:, :1] @ U_e.T + x @ V_e.T)


def two_softmaxes(word, g, k, source, share=1.0):
    here = torch.tensor([place == word for place in source])
    return share * ((g.softmax(0)[word] if word < len(g) else 0) + k.softmax(0)[here].sum())


def first_place_alone(word, g, k, source):
    copied = k[source.index(word)].exp() if word in source else 0
    return ((g[word].exp() if word < len(g) else 0) + copied) / (g.exp().sum() + k.exp().sum())


def either(word, g, k, source):
    """A word of Y is never copied."""
    here = torch.tensor([place == word for place in source])
    return (g[word].exp() if word < len(g) else k[here].exp().sum()) / (g.exp().sum() + k.exp().sum())


def sharing(z_too: bool, own_too: bool, forwards: bool):
    def shares(alpha, z):
        taken, passed = alpha * z, 1 - (alpha * z if z_too else alpha)
        n = range(len(z))
        later = [passed[:i] if forwards else passed[i if own_too else i + 1 :] for i in n]
        return [taken[i] * later[i].prod() for i in n]

    return shares


def pooling(dim: int, mask_after: bool):
    def pooled(a, b, mask):
        there = mask[..., None]
        weights = a.softmax(dim) * there if mask_after else a.masked_fill(~there, -1e9).softmax(dim) * there
        return (weights[..., None] * b).sum(1)

    return pooled


def power_of(step):
    return lambda G, layers: torch.linalg.matrix_power(step(G), layers) > 0


def with_itself(G):
    return G + torch.eye(len(G))


def unpaired(first, second):
    random = np.random.default_rng(0)
    a, b = (random.choice(x, (2000, len(x))).mean(1) for x in (first, second))
    return np.percentile(b - a, [2.5, 97.5])


def paired(q=(2.5, 97.5), mean=True, sign=1):
    def ends(first, second):
        difference, random = sign * (second - first), np.random.default_rng(0)
        drawn = difference[random.integers(0, len(first), (2000, len(first)))]
        return np.percentile(drawn.mean(1) if mean else drawn, q)

    return ends


def logit(p):
    return float(np.log(p / (1 - p)))


# What looks right and is not: by page and exercise.
WRONG = {
    ("start_here", 1): [  # sums to 1; copies only what it cannot generate; the switch the wrong way
        lambda p, P_g, alpha, ids, size: torch.cat([p * P_g, (1 - p) * torch.ones(2).double() / 2]),
        lambda p, P_g, alpha, ids, size: torch.cat([P_g, torch.zeros(2)]).index_add(0, ids, alpha * (ids > 11)),
        lambda p, P_g, alpha, ids, size: torch.cat([(1 - p) * P_g, torch.zeros(2)]).index_add(0, ids, p * alpha),
    ],
    ("start_here", 2): [  # greedy; of all summaries; probabilities added; stops at the first that ends
        lambda next_words, K, most: beam(next_words, 1, most),
        lambda next_words, K, most: beam(next_words, 1000, most),
        lambda next_words, K, most: beam(next_words, K, most, score=lambda p: p),
        lambda next_words, K, most: beam(next_words, K, most, first_end=True),
    ],
    ("start_here", 3): [
        sorted,
        lambda words: list(dict.fromkeys(words[::-1])),
        lambda words: words[1:] + words[:1],
        lambda words: [word[::-1] for word in words],
    ],
    ("start_here", 5): [
        lambda T, N: [T - 1, T - N],
        lambda T, N: [T, max(0, T - N)],
        lambda T, N: [T - 1, 0],
        lambda T, N: [T - 1, T // N - 1],
    ],
    ("start_here", 7): [  # at a large exponent all ranks are 0
        lambda a, n, b, m: 50.0,
        lambda a, n, b, m: np.log(a / b) / np.log(m / n),
        lambda a, n, b, m: (b / a) / (m / n),
    ],
    ("start_here", 8): [  # [EOS] left out; always possible; unknown words never
        lambda source, summary: [word in source for word in summary],
        lambda source, summary: [*(word in source for word in summary), True],
        lambda source, summary: [*(word in source and word < 12 for word in summary), False],
    ],
    ("mem2mem", 1): [
        lambda alpha, beta, of: alpha * beta[:, of],
        lambda alpha, beta, of: alpha,
        lambda alpha, beta, of: (alpha * beta[:, of]).masked_fill(alpha == 0, -torch.inf).softmax(1),
        lambda alpha, beta, of: alpha * beta[:, of] / (alpha * beta[:, of]).sum(0).clamp_min(1e-9),
    ],
    ("mem2mem", 2): [
        lambda *of: reads(*of, of_read=False),
        lambda *of: reads(*of, keeps=False),
        lambda M, states, read, _: torch.stack([read(h, M) for h in states]),
    ],
    ("mem2mem", 3): [  # types, ROUGE's count, of the source's, a share, parts of words
        lambda s, t, n: 100 * len({*grams(s, n)} & {*grams(t, n)}) / len({*grams(s, n)}),
        lambda s, t, n: 100 * (Counter(grams(s, n)) & Counter(grams(t, n))).total() / len(grams(s, n)),
        lambda s, t, n: 100 * sum(g in grams(t, n) for g in grams(s, n)) / len(grams(t, n)),
        lambda s, t, n: sum(g in grams(t, n) for g in grams(s, n)) / len(grams(s, n)),
        lambda s, t, n: 100 * sum(" ".join(g) in " ".join(t) for g in grams(s, n)) / len(grams(s, n)),
    ],
    ("mem2mem", 4): [
        lambda on: len(on) - len(set(on)),
        lambda on: 2 * (len(on) - len(set(on))),
        lambda on: sum(on.count(a) for a in on),
        lambda on: len(on) * (len(on) - 1),
    ],
    ("mem2mem", 7): [
        lambda k, z, M, u: z**k * M + (1 - z) * u,
        lambda k, z, M, u: z**k * M + (1 - z) ** k * u,
        lambda k, z, M, u: z**k * M + k * (1 - z) * u,
        lambda k, z, M, u: z * M + (1 - z) * u,
    ],
    ("read_again", 1): [text_of_padding, text_of_mean, text_of_first],
    ("read_again", 2): [
        lambda e, d, s: [4 * d * (n + d + 1) for n in (e, e + 2 * d, e + d + s * d)],  # one bias
        lambda e, d, s: [4 * d * (n + d + 2) for n in (e, e + d, e + s * d)],  # the word's state is forgotten
        lambda e, d, s: [4 * d * (n + d + 2) for n in (e, e + 2 * d, e + 2 * d + s * d)],  # its own text twice
        lambda e, d, s: [3 * d * (n + d + 2) for n in (e, e + 2 * d, e + d + s * d)],  # a GRU
    ],
    ("read_again", 3): [two_softmaxes, lambda *a: two_softmaxes(*a, share=0.5), first_place_alone, either],
    ("read_again", 4): [
        sharing(True, True, False),
        sharing(True, False, True),
        sharing(False, False, False),
        lambda alpha, z: alpha * z,
    ],
    ("read_again", 5): [
        lambda n, alpha, u: [(1 - (1 - alpha) ** n) * u, abs(1 - alpha) >= 1],  # 0 does not grow
        lambda n, alpha, u: [(1 - (1 - alpha) ** n) * u, False],
        lambda n, alpha, u: [(1 - alpha) ** n * u, alpha < 0],
        lambda n, alpha, u: [(1 - (1 - alpha) ** (n - 1)) * u, alpha < 0],
    ],
    ("read_again", 6): [
        lambda g, k, here: here - k.exp() / (g.exp().sum() + k.exp().sum()),
        lambda g, k, here: here * k.exp() / (here * k.exp()).sum() - k.softmax(0),
        lambda g, k, here: here * k.exp() / (here * k.exp()).sum(),
    ],
    ("read_again", 7): [["sigmoid", True, False], ["tanh", False, False], ["tanh", True, True]],
    ("read_again", 8): [[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]],
    ("read_again", 9): [[0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]],
    ("read_again", 10): [["copying", "copying"], ["without", "copying"], ["without", "without"]],
    ("hierarchical_transformer", 1): [
        lambda G, present: G / G.sum(0) * present,
        lambda G, present: G / G.sum(1, keepdim=True) * present,
        lambda G, present: (G / G.sum(0)).masked_fill(~present, 0),
        lambda G, present: G.masked_fill(~present, -torch.inf).softmax(1),
    ],
    ("hierarchical_transformer", 2): [pooling(2, True), pooling(1, True), pooling(2, False), pooling(0, False)],
    ("hierarchical_transformer", 3): [
        lambda n: [sum(n) ** 2, sum(n) ** 2 // len(n) + sum(n) + len(n) ** 2],  # the mean length
        lambda n: [sum(n) ** 2, sum(k**2 for k in n) + len(n) ** 2],
        lambda n: [sum(n) ** 2, sum(k**2 for k in n) + len(n) + len(n) ** 2],
        lambda n: [sum(k**2 for k in n), sum(k**2 for k in n) + sum(n) + len(n) ** 2],
    ],
    ("hierarchical_transformer", 4): [
        lambda y: sum(y) / len(y),
        lambda y: sum(logit(max(p, 1e-6)) for p in y) / len(y),
        lambda y: logit(sorted(y)[len(y) // 2] + 1e-6),
        lambda y: 1 / (1 + np.exp(-sum(y) / len(y))),
    ],
    ("hierarchical_transformer", 5): [
        lambda w, b, g: w * (b @ g),
        lambda w, b, g: w * (1 - w) * (b @ g),
        lambda w, b, g: b @ g - w @ b @ g,
        lambda w, b, g: w * (b @ g - (b @ g).mean()),
    ],
    ("hierarchical_transformer", 6): [
        power_of(lambda G: G),
        power_of(lambda G: with_itself(G).T),
        lambda G, layers: with_itself(G) > 0,
        lambda G, layers: torch.linalg.matrix_power(with_itself(G), layers + 1) > 0,
    ],
    ("hierarchical_transformer", 7): [[0, 1, 0, 0], [0, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]],
    ("hierarchical_transformer", 8): [[1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0]],
    ("hierarchical_transformer", 9): [[0, 1, 0, 1, 0], [1, 0, 0, 0, 1], [1, 1, 0, 0, 0], [1, 1, 0, 1, 1]],
    ("hierarchical_transformer", 10): [[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1], [1, 1, 1, 0]],
    ("compare", 1): [unpaired, paired((5, 95)), paired(mean=False), paired(sign=-1)],
    ("compare", 2): [
        lambda difference, spread: (1.645 * spread / difference) ** 2,
        lambda difference, spread: 1.96 * spread / difference,
        lambda difference, spread: 2 * (1.96 * spread / difference) ** 2,
        lambda difference, spread: (spread / difference) ** 2,
    ],
}


@pytest.mark.parametrize(("page", "number"), WRONG, ids=[f"{page}-{number}" for page, number in WRONG])
def test_what_looks_right_and_is_not_earns_less_than_every_point(page, number, capsys):
    """By what it gives. A function fails in the cases that a class may see as well."""
    exercises = import_module(f"companion.exercises.{page}").PAGE
    for wrong in WRONG[page, number]:
        predicted = isinstance(wrong, list)
        function = (lambda wrong=wrong: wrong) if predicted else wrong
        for shown in (False,) if predicted else (True, False):
            assert exercises.grade(number, function, shown) < exercises.known[number].points
            assert "raises" not in capsys.readouterr().out


@pytest.mark.parametrize("write", [np.asarray, lambda values: np.asarray(values, dtype=int).tolist()])
def test_truth_values_may_be_written_as_numbers_and_stand_in_arrays(of_page, write, capsys):
    page, _, answers = of_page
    names = {"np": np, "torch": torch, "EOS": EOS}
    for answer in answers:
        exec(answer.solution, names)

        def rewritten(*arguments, solution=names[answer.function]):
            values = solution(*arguments)
            return values if any(isinstance(value, str) for value in values) else write(values)

        if "ruth value" in answer.stub:
            assert page.grade(answer.number, rewritten) == page.known[answer.number].points
