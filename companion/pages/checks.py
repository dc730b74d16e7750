"""Checks of a page: the naive equation and the library give the same numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

# read in light and dark themes
GREEN = "background: #e3f3e9; color: #14613d; padding: 0 0.3rem; border-radius: 4px"


class CheckError(AssertionError):
    """An equation and the library differ."""


@dataclass
class Compared:
    """One comparison that held."""

    equation: str
    numbers: int
    difference: float  # the largest


class Checks:
    """The comparisons of a page, gathered for a line after each equation; the first that fails
    stops the page."""

    def __init__(self):
        self._held: list[Compared] = []  # since the last line

    def close(
        self, naive: Tensor, fast: Tensor, eq: str, what: str = "", tolerance: float = 1e-9
    ) -> None:
        """Compare numbers, which may differ by `tolerance`, relative to the largest. Raises
        CheckError.

        Args:
            naive: numbers of the page's equation, unpadded.
            fast: the same numbers, computed by `lib`, in the same shape.
            eq: number of the equation in the paper: "(7)".
        """
        if naive.shape != fast.shape:
            raise CheckError(
                f"{eq} {what}: shape {tuple(naive.shape)} on the page, {tuple(fast.shape)} in lib"
            )
        difference = (naive.double() - fast.double()).abs().max().item() if naive.numel() else 0.0
        bound = tolerance * max(1.0, naive.abs().max().item() if naive.numel() else 0.0)
        if not difference <= bound:  # also when it is NaN
            raise CheckError(
                f"{eq} {what}: page and lib differ by {difference:.3g}, allowed is {bound:.3g}"
            )
        self._held.append(Compared(eq, naive.numel(), difference))

    def gradients(
        self, naive: dict[str, Tensor], fast: dict[str, Tensor], eq: str, tolerance: float = 1e-8
    ) -> None:
        """Compare two sets of gradients by parameter name, as `close` does; every parameter must
        have one on both sides."""
        for name in sorted(naive.keys() ^ fast.keys()):
            missing = "in lib" if name in naive else "on the page"
            raise CheckError(f"{eq} gradient of {name}: missing {missing}")
        page, ours = (torch.cat([g[name].flatten() for name in sorted(g)]) for g in (naive, fast))
        self.close(page, ours, eq, f"gradients of {len(naive)} parameters", tolerance)

    def line(self, seen: str = "") -> "Line":
        """Summarize the comparisons since the last line in one line, after the numbers that the
        reader can see."""
        held, self._held = self._held, []
        return Line(seen, held)


@dataclass(frozen=True)
class Line:
    """Numbers that a reader can follow by hand, and how closely page and library agree."""

    seen: str
    held: Sequence[Compared]

    @property
    def agreement(self) -> str:
        equations = ", ".join(dict.fromkeys(c.equation for c in self.held))
        largest = max((c.difference for c in self.held), default=0.0)
        how = (
            f"{sum(c.numbers for c in self.held):,} numbers, "
            f"{f'within {largest:.0e}' if largest else 'exactly'}"
        )
        several = ", " in equations or ")-(" in equations
        return f"✓ {equations} {'agree' if several else 'agrees'} with lib: {how}"

    def __repr__(self) -> str:
        return f"{self.seen}\n{self.agreement}".lstrip()

    def _repr_html_(self) -> str:
        seen = f"{escape(self.seen)}<br>" if self.seen else ""
        return (
            f'<p style="margin: 0">{seen}<span style="{GREEN}">{escape(self.agreement)}</span></p>'
        )


def gradients(model, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradient of `loss` for every parameter of `model`, by name."""
    names, parameters = zip(*model.named_parameters())
    return dict(zip(names, torch.autograd.grad(loss, parameters)))
