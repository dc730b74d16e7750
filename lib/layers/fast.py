"""Fast forms of equations: what they contain, and where they may be used.

An equation is written in Python once, as a method. A kernel contains it again, so it is right only
as long as the model's equation is the one that the kernel was written for. Therefore a fast form
lists what it contains, and the list is compared with the model before each use:

    class Attention(nn.Module):
        def weigh(self, queries, keys): ...  # the equation
        def scores(self, queries, keys): ...  # a part of it

        @fast_form(weigh, computes=[scores], where=_on_a_cpu)
        def _weigh_fast(self, queries, keys): ...  # the same, by a kernel

        def forward(self, queries, keys):
            return fastest(self.weigh, queries, keys)

A subclass that overrides `weigh` or `scores` computes its own equation, without knowing that there
are kernels. One warning for a class says that it is slower, and why.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from torch import nn

# Losses of kernels that a warning has named: classes, and what differs.
_warned: set[tuple[type, str]] = set()


class FastForm:
    """A faster way to compute an equation, with all that it contains.

    Attributes:
        compute: the function (model, *operands) that replaces the equation.
        equation: the method that states it.
        functions: the equation and all other functions that the form contains.
        parts: names of the parts whose weights it uses, their classes and the methods of these.
    """

    def __init__(
        self,
        compute: Callable,
        equation: Callable,
        computes: Sequence[Callable],
        parts: Mapping[str, type[nn.Module]],
        where: Callable[..., bool],
    ):
        self.compute = compute
        self.equation = equation
        self.functions = (equation, *computes)
        self.parts = {name: (kind, _methods(kind)) for name, kind in parts.items()}
        self._where = where

    def applies(self, model: Any, operands: Sequence[Any], otherwise: str) -> bool:
        """Return whether the form supports these operands and contains the model's equations.

        Where only the equations are in the way, one warning for a class says what happens
        `otherwise`.
        """
        if not self._where(model, *operands):
            return False
        difference = self.difference(model)
        if difference is None:
            return True
        if (type(model), difference) not in _warned:
            _warned.add((type(model), difference))
            slower = f"{otherwise}, which is slower than its kernel"
            text = f"{type(model).__name__}: {difference}; {slower}"
            warnings.warn(text, stacklevel=4)  # where the model calls `scan` or `fastest`
        return False

    def difference(self, model: Any) -> str | None:
        """Describe the first function or part of a model that the form does not contain."""
        # The functions themselves are compared, not their names. This also notices one that was
        # replaced on the object or, as `unittest.mock.patch` does, on the class.
        for function in self.functions:
            name = function.__name__
            if _is_method(function):
                if getattr(getattr(model, name, None), "__func__", None) is not function:
                    return f"{name} is not {function.__qualname__}"
            elif getattr(sys.modules[function.__module__], name) is not function:
                return f"{name} was replaced in {function.__module__}"
        for name, (kind, methods) in self.parts.items():
            difference = _difference_of_part(getattr(model, name), kind, methods)
            if difference is not None:
                return f"{name} {difference}"
        return None


def _difference_of_part(part: Any, kind: type, methods: dict[str, Callable]) -> str | None:
    # A subclass or a parametrization, which changes the class, may compute something else.
    if type(part) is not kind:
        return f"is of the class {type(part).__name__}, not {kind.__name__}"
    if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks:
        return "has a hook"
    for name, method in methods.items():
        if name in vars(part) or vars(kind).get(name) is not method:
            return f"has another {name}"
    return None


def _is_method(function: Callable) -> bool:
    # "Attention.scores" is a method, "additive_scores" a function of a module.
    return "." in function.__qualname__


def _methods(kind: type) -> dict[str, Callable]:
    return {name: value for name, value in vars(kind).items() if callable(value)}


def _everywhere(*_: Any) -> bool:
    return True


def fast_form(
    equation: Callable,
    computes: Sequence[Callable] = (),
    parts: Mapping[str, type[nn.Module]] | None = None,
    where: Callable[..., bool] = _everywhere,
) -> Callable[[Callable], FastForm]:
    """Declare a method as the fast form of `equation`: a decorator in the same class body.

    Args:
        equation: the method, as it is named in the class body. The decorated method takes the same
            operands (for `scan`: those of all steps) and returns the same.
        computes: methods of the class and functions of modules that the form contains as well.
        parts: attributes whose weights it uses, and the classes whose methods it contains.
        where: (self, *operands) -> whether device, type and configuration are supported. It may
            rely on nothing that a subclass may replace.
    """

    def declare(function: Callable) -> FastForm:
        return FastForm(function, equation, computes, dict(parts or {}), where)

    return declare


@cache
def _forms(kind: type) -> list[FastForm]:
    """List the fast forms of a class and its base classes, those of the class first."""
    forms = []
    for base in kind.__mro__:
        forms += [value for value in vars(base).values() if isinstance(value, FastForm)]
    return forms


def usable_form(method: Callable, operands: Sequence[Any], otherwise: str) -> Callable | None:
    """Return the function (model, *operands) that may replace a bound method, or None.

    otherwise: for the warning, what is used instead.
    """
    model = getattr(method, "__self__", None)
    for form in _forms(type(model)):
        # Found by name: a subclass overrides the method, but not the name.
        if getattr(model, form.equation.__name__) == method:
            return form.compute if form.applies(model, operands, otherwise) else None
    return None


def fastest(method: Callable, *operands: Any) -> Any:
    """Call a bound method, or its fast form where that applies."""
    compute = usable_form(method, operands, "PyTorch's operations are used")
    if compute is not None:
        return compute(method.__self__, *operands)  # type: ignore[attr-defined]
    return method(*operands)
