"""The check of an exercise: what a reader wrote beside what it should give, for points."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import torch
from torch import Tensor


class Exercise:
    """One exercise, checked case by case. It says what is wrong, never what is right, and whatever a reader's code
    raises is a wrong case, so that a page runs on and a notebook is graded to its end."""

    def __init__(self, number: int, points: float):
        self.number, self.points = number, points
        self._wrong: list[str] = []
        self._cases = self._unwritten = 0

    def same(self, what: str, attempt: Callable[[], Any], expected: Any, tolerance: float = 1e-9) -> None:
        """One case: what `attempt`, a call of the reader's function, gives against what is expected.

        Args:
            what: names the case for the reader.
            expected: a text, a truth value, or numbers: a number, nested lists or a tensor, compared by shape and
                value, which may differ by `tolerance`, relative to the largest.
        """
        self._cases += 1
        try:
            with redirect_stderr(io.StringIO()):  # a grader takes a warning for a failure
                got = attempt()
            reason = "" if _equal(got, expected, tolerance) else f"gives {_short(got)}"
        except NotImplementedError:
            self._unwritten += 1
            reason = "is not written yet"
        except (Exception, SystemExit) as error:  # whatever a reader's code does
            reason = f"raises {type(error).__name__}: {error}"
        if reason:
            self._wrong.append(f"{what}: {reason}")

    def score(self) -> float:
        """Print how many cases are right and the first wrong one; the points for them, which a grader reads from the
        cell's value."""
        if self._unwritten == self._cases:
            print(f"exercise {self.number}: not done yet")
            return 0.0
        right = self._cases - len(self._wrong)
        print(f"exercise {self.number}: {right} of {self._cases} right", *self._wrong[:1], sep="; ")
        return self.points * right / self._cases


def _equal(got: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, str | bool):
        got = _plain(got)
        return type(got) is type(expected) and got == expected
    expected = _numbers(expected)
    try:
        got = _numbers(got)
    except Exception:  # None, a text, a dict: not equal, and nothing that the reader's code raised
        return False
    if got.shape != expected.shape:
        return False
    bound = tolerance * max(1.0, expected.abs().max().item() if expected.numel() else 0.0)
    return torch.allclose(got, expected, rtol=0.0, atol=bound)


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
