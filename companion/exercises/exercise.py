"""Grade a reader's function on cases."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
UNWRITTEN = "is not written yet"


@dataclass(frozen=True)
class Case:
    """One call of a reader's function and its answer: a text, a list of texts, or numbers (a
    number, nested lists or a tensor), compared by shape and value, which may differ by `tolerance`,
    relative to the largest."""

    what: str  # names the case for the reader
    arguments: Sequence[Any]
    expected: Any
    of: Callable[[Any], Any] = lambda result: result  # the part of the result that is compared
    tolerance: float = 1e-5


@dataclass(frozen=True)
class Exercise:
    name: str  # of the function that the reader writes
    points: int
    cases: Callable[[], Iterable[Case]]
    shown: int  # number of cases that a class sees; the others come with the grades


class Exercises:
    """The exercises of a page, by number. `progress` counts the last check of each."""

    def __init__(self):
        self.known: dict[int, Exercise] = {}
        self._share: dict[int, float] = {}

    def _register(
        self, number: int, points: int, shown: int, make_cases: Callable[..., Iterable]
    ) -> Decorator:
        """Make a decorator of a function that has the name of the reader's; `make_cases` takes
        it."""

        def register(function: Function) -> Function:
            self.known[number] = Exercise(
                function.__name__, points, lambda: make_cases(function), shown
            )
            return function

        return register

    def exercise(
        self, number: int, points: int, cases: Sequence | Mapping, shown: int = 1
    ) -> Decorator:
        """Register a reference function that has the arguments of the reader's.

        cases: the arguments of each call, by a name for the reader, or only the arguments.
        """
        named = (
            cases
            if isinstance(cases, Mapping)
            else {", ".join(map(str, given)): given for given in cases}
        )
        return self._register(
            number,
            points,
            shown,
            lambda answer: (Case(what, given, answer(*given)) for what, given in named.items()),
        )

    def cases(self, number: int, points: int, shown: int = 1) -> Decorator:
        """Register a generator of cases."""
        return self._register(number, points, shown, lambda generate: generate())

    def prediction(self, number: int, points: int) -> Decorator:
        """Register a function that measures what the reader predicts: {case: value}. The reader's
        function takes no arguments and returns a list of values in this order; truth values may be
        0 and 1."""

        def make_cases(measure: Callable[[], Mapping[str, Any]]) -> Iterator[Case]:
            for place, (what, value) in enumerate(measure().items()):
                yield Case(what, (), value, of=itemgetter(place))

        return self._register(number, points, 1, make_cases)

    def check(self, number: int, function: Any) -> None:
        """Print how many cases are right, and what is wrong with the first wrong one. The right
        answer is not shown. An exception of the reader's code makes a case wrong, so that the page
        runs on."""
        self.grade(number, function)

    def grade(self, number: int, function: Any, shown: bool = False) -> float:
        """Check for a class: return the points for the cases that are right, which a grader reads
        from the cell.

        Args:
            function: the student's; None where there is none.
            shown: only the cases that a class may see.
        """
        exercise = self.known[number]
        cases = islice(exercise.cases(), exercise.shown) if shown else exercise.cases()
        reasons = [(case.what, _reason(case, function)) for case in cases]
        wrong = [f"{what}: {reason}" for what, reason in reasons if reason]
        share = 1 - len(wrong) / len(reasons)
        self._share[number] = share
        message = "; ".join([f"{len(reasons) - len(wrong)} of {len(reasons)} right", *wrong[:1]])
        if function is None:
            message = f"there is no {exercise.name}"
        elif all(reason == UNWRITTEN for _, reason in reasons):
            message = "not done yet"
        print(f"exercise {number}: {message}")
        return exercise.points * share

    def ready(self, *numbers: int) -> bool:
        """Return whether the last check of each of these exercises was all right, as a model of the
        reader's needs. Otherwise print which was not."""
        missing = [self.known[number].name for number in numbers if self._share.get(number, 0) < 1]
        if missing:
            print(f"Your model needs {', '.join(missing)}: write them, and run their checks")
        return not missing

    def progress(self) -> None:
        """Print which exercises are done."""
        for number, exercise in sorted(self.known.items()):
            share = self._share.get(number, 0)
            print(
                f"{'done' if share == 1 else f'{share:.0%}' if share else '-':>5}  {number}. "
                f"{exercise.name}"
            )


def _reason(case: Case, function: Any) -> str:
    """Describe why a case is wrong; return an empty text if it is right."""
    try:
        with redirect_stderr(io.StringIO()):  # a grader takes a warning for a failure
            result = case.of(function(*case.arguments))
    except NotImplementedError:
        return UNWRITTEN
    except (Exception, SystemExit) as error:  # whatever a reader's code does
        return f"raises {type(error).__name__}: {error}"
    return "" if _equal(result, case.expected, case.tolerance) else f"gives {_short(result)}"


def _equal(result: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, str):
        return isinstance(result, str) and result == expected
    if isinstance(expected, list) and isinstance(expected[0], str):
        return isinstance(result, list | tuple) and list(result) == expected
    expected = _numbers(expected)
    try:
        result = _numbers(result)
    except Exception:  # None, a text, a dict: not equal, and nothing that the reader's code raised
        return False
    bound = tolerance * max(1.0, expected.abs().max().item())
    return result.shape == expected.shape and torch.allclose(result, expected, rtol=0.0, atol=bound)


def _numbers(value: Any) -> Tensor:
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
        value = torch.stack([torch.as_tensor(v) for v in value])
    return torch.as_tensor(value, dtype=torch.float64).detach()


def _short(value: Any, max_length: int = 60) -> str:
    text = repr(value.tolist() if isinstance(value, Tensor) else value)
    return text if len(text) <= max_length else text[: max_length - 4] + " ..."
