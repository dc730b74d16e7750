"""Recurrences whose equations are written once, as one step.

A model writes the step as a method, and `scan` repeats it:

    def attend(self, coverage, query, keys, mask): ...       # the equations of one step
        return alpha, coverage + alpha

    alphas, coverage = scan(self.attend, coverage, [queries], [keys, mask])

A kernel computes all steps at once. It is declared beside the step (`lib.layers.fast`):

    @fast_form(attend, computes=[weights], where=...)
    def _attend_fast(self, coverage, queries, keys, mask): ...

A subclass that overrides `attend` or `weights` gets the loop over its own step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lib.layers.fast import usable_form

Step = Callable[..., tuple[Any, Any]]


def scan(
    step: Step,
    state: Any,
    inputs: Sequence[Tensor],
    fixed: Sequence[Any] = (),
    dim: int = 1,
) -> tuple[Any, Any]:
    """Repeat `step` over the T steps of `inputs`, or use its fast form where that applies.

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

    >>> def add(total, number):
    ...     return total + number, total + number
    >>> scan(add, torch.zeros(1), [torch.tensor([[1.0, 2.0, 3.0]])])
    (tensor([[1., 3., 6.]]), tensor([6.]))
    """
    operands = (state, *inputs, *fixed)
    compute = usable_form(step, operands, "the loop over the steps is used")
    if compute is not None:
        return compute(step.__self__, *operands)  # type: ignore[attr-defined]

    # This loop defines what a fast form has to compute.
    # Inputs are split once: the backward pass of a slice would fill a tensor of all steps.
    outputs = []
    for inputs_of_step in zip(*(values.unbind(dim) for values in inputs), strict=True):
        output, state = step(state, *inputs_of_step, *fixed)
        outputs.append(output)
    if isinstance(outputs[0], Tensor):
        return torch.stack(outputs, dim), state
    parts = zip(*outputs, strict=True)
    return tuple(torch.stack(values, dim) for values in parts), state
