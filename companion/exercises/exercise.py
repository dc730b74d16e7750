"""What a reader's function gives beside what it should give, case by case, for points."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One call of a reader's function, and what it should give: a text, a truth value, or numbers (a number, nested
    lists or a tensor), compared by shape and value, which may differ by `tolerance`, relative to the largest."""

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
    shown: int  # so many of the cases are shown to a class; the others come with the grades


class Exercises:
    """The exercises of a page, by number. What is checked last of each counts in `progress`."""

    def __init__(self):
        self.known: dict[int, Exercise] = {}
        self._share: dict[int, float] = {}

    def exercise(self, number: int, points: int, shown: int = 1) -> Callable[[Function], Function]:
        """Of a generator of cases that has the name of the reader's function."""

        def add(cases: Function) -> Function:
            self.known[number] = Exercise(cases.__name__, points, cases, shown)
            return cases

        return add

    def check(self, number: int, function: Any) -> None:
        """Print how many cases are right and the first wrong one. It says what is wrong, never what is right, and
        whatever a reader's code raises is a wrong case, so that a page runs on."""
        self.grade(number, function)

    def grade(self, number: int, function: Any, shown: bool = False) -> float:
        """As `check`, for a class: the points for the cases that are right, which a grader reads from the cell's
        value.

        Args:
            function: the student's; None where it is not there.
            shown: only the cases that a class may see.
        """
        exercise = self.known[number]
        cases = islice(exercise.cases(), exercise.shown) if shown else exercise.cases()
        reasons = [(case.what, _reason(case, function)) for case in cases]
        wrong = [f"{what}: {reason}" for what, reason in reasons if reason]
        share = self._share[number] = 1 - len(wrong) / len(reasons)
        if function is None:
            print(f"exercise {number}: there is no {exercise.name}")
        elif all(reason == UNWRITTEN for _, reason in reasons):
            print(f"exercise {number}: not done yet")
        else:
            print(f"exercise {number}: {len(reasons) - len(wrong)} of {len(reasons)} right", *wrong[:1], sep="; ")
        return exercise.points * share

    def progress(self) -> None:
        """Print which exercises are done, as they were checked last."""
        for number, exercise in sorted(self.known.items()):
            share = self._share.get(number, 0)
            print(f"{'done' if share == 1 else f'{share:.0%}' if share else '-':>5}  {number}. {exercise.name}")


UNWRITTEN = "is not written yet"


def _reason(case: Case, function: Any) -> str:
    """Why a case is wrong, or nothing."""
    try:
        with redirect_stderr(io.StringIO()):  # a grader takes a warning for a failure
            result = case.of(function(*case.arguments))
    except NotImplementedError:
        return UNWRITTEN
    except (Exception, SystemExit) as error:  # whatever a reader's code does
        return f"raises {type(error).__name__}: {error}"
    return "" if _equal(result, case.expected, case.tolerance) else f"gives {_short(result)}"


def _equal(result: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, str | bool):
        result = _plain(result)
        return type(result) is type(expected) and result == expected
    if isinstance(expected, list) and any(isinstance(value, str | bool) for value in expected):
        same = isinstance(result, list | tuple) and len(result) == len(expected)
        return same and all(_equal(a, b, tolerance) for a, b in zip(result, expected))
    expected = _numbers(expected)
    try:
        result = _numbers(result)
    except Exception:  # None, a text, a dict: not equal, and nothing that the reader's code raised
        return False
    if result.shape != expected.shape:
        return False
    bound = tolerance * max(1.0, expected.abs().max().item() if expected.numel() else 0.0)
    return torch.allclose(result, expected, rtol=0.0, atol=bound)


def _plain(value: Any) -> Any:
    """A single value of NumPy or torch as Python's own: a comparison of theirs is True or False as well."""
    return value.item() if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0 else value


def _numbers(value: Any) -> Tensor:
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
        value = torch.stack([torch.as_tensor(v) for v in value])
    return torch.as_tensor(value, dtype=torch.float64).detach()


def _short(value: Any, most: int = 60) -> str:
    text = repr(value.tolist() if isinstance(value, Tensor) else value)
    return text if len(text) <= most else text[: most - 4] + " ..."
