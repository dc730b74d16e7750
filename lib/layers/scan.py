"""Recurrences whose equations are written once, and the kernels that are bound to them.

A model writes one step of a recurrence as a method, and `scan` repeats it:

    def attend(self, coverage, query, keys, mask): ...       # the equations of one step
        return alpha, coverage + alpha

    alphas, coverage = scan(self.attend, coverage, [queries], [keys, mask])

A kernel computes all steps at once. It contains the equations again, so it is right only as long as
the model's equations are the ones that the kernel was written for. Therefore a kernel lists them,
and `scan` compares:

    @fast_scan(attend, computes=[weights])
    def _attend_fast(self, coverage, queries, keys, mask): ...

A subclass that overrides `attend` or `weights` gets the loop over its own step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[..., tuple[Any, Any]]


def scan(
    step: Step,
    state: Any,
    inputs: Sequence[Tensor],
    fixed: Sequence[Any] = (),
    dim: int = 1,
) -> tuple[Any, Any]:
    """Repeat `step` over the T steps of `inputs`, or use its fast scan where that applies.

    Args:
        step: a bound method, (state, *inputs of one step, *fixed) -> (output, next state). An
            output is a tensor or a tuple of tensors.
        state: the state before the first step: a tensor, or a tuple of tensors and None.
        inputs: tensors with T steps in dimension `dim`.
        fixed: arguments that are the same in every step.
        dim: dimension of the steps, in the inputs and in the result.

    Returns:
        the outputs of all steps, with T steps in dimension `dim`, and the state after the last
        step.
    """
    fast: FastScan | None = getattr(step, "fast_scan", None)
    model: Any = getattr(step, "__self__", None)
    if fast is not None and fast.computes_the_equations_of(model):
        result = fast.function(model, state, *inputs, *fixed)
        # As in Python's operators, NotImplemented means: not for these operands.
        if result is not NotImplemented:
            return result

    # This loop defines what a fast scan has to compute.
    outputs = []
    for inputs_of_step in zip(*(values.unbind(dim) for values in inputs), strict=True):
        output, state = step(state, *inputs_of_step, *fixed)
        outputs.append(output)
    if isinstance(outputs[0], Tensor):
        return torch.stack(outputs, dim), state
    return tuple(torch.stack(values, dim) for values in zip(*outputs, strict=True)), state


def fast_scan(
    step: Step,
    computes: Sequence[Callable],
    parts: Mapping[str, type[nn.Module]] | None = None,
) -> Callable[[Callable], Callable]:
    """Declare a method as the fast scan of `step`: a decorator in the class body of the step.

    The decorated method takes (state, *inputs, *fixed) with all steps and returns what `scan`
    returns, or NotImplemented where it does not support the device, the type or the configuration.

    Args:
        computes: the other methods whose equations it contains, as they are named in the class
            body.
        parts: attributes whose weights it uses, and the classes whose `forward` it contains.
    """

    def declare(function: Callable) -> Callable:
        fast = FastScan(function, equations=(step, *computes), parts=dict(parts or {}))
        step.fast_scan = fast  # type: ignore[attr-defined]
        return function

    return declare


@dataclass(frozen=True)
class FastScan:
    """A method that computes all steps at once, and the equations that it contains."""

    function: Callable
    equations: tuple[Callable, ...]
    parts: dict[str, type[nn.Module]]

    def computes_the_equations_of(self, model: Any) -> bool:
        """Return whether the model's methods and parts are those of the fast scan."""
        # The functions themselves are compared, not their names: this also notices a method that
        # was replaced on the object or, as `unittest.mock.patch` does, on the class.
        same_methods = all(
            getattr(getattr(model, equation.__name__), "__func__", None) is equation for equation in self.equations
        )
        return same_methods and all(is_plain(getattr(model, name), kind) for name, kind in self.parts.items())


def is_plain(part: nn.Module, kind: type[nn.Module]) -> bool:
    """Return whether calling `part` computes `kind.forward` and nothing else."""
    # A subclass, a parametrization (which changes the class), or a hook may compute something else.
    has_hooks = bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks)
    return type(part) is kind and "forward" not in vars(part) and not has_hooks
