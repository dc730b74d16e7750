"""What a page asserts: the naive equation and the library give the same numbers."""

import torch
from torch import Tensor


class CheckError(AssertionError):
    """An equation and the library differ."""


def check_close(naive: Tensor, fast: Tensor, eq: str, what: str = "", tolerance: float = 1e-9) -> None:
    """Print one line when all numbers agree to `tolerance`, relative to the largest; raise CheckError otherwise.

    Args:
        naive: what the equation on the page gives, unpadded.
        fast: what `lib` gives for the same thing, same shape.
        eq: number of the equation in the paper, as it stands there: "(7)".
    """
    if naive.shape != fast.shape:
        raise CheckError(f"{eq} {what}: shape {tuple(naive.shape)} on the page, {tuple(fast.shape)} in lib")
    naive, fast = naive.detach().double(), fast.detach().double()
    difference = (naive - fast).abs().max().item() if naive.numel() else 0.0
    bound = tolerance * max(1.0, naive.abs().max().item() if naive.numel() else 0.0)
    if not difference <= bound:  # also when it is NaN
        raise CheckError(f"{eq} {what}: page and lib differ by {difference:.3g}, allowed is {bound:.3g}")
    shape = "x".join(map(str, naive.shape)) or "scalar"
    print(f"equal  {eq:<10} {what:<44} {shape:<10} largest difference {difference:.1e}")


def check_gradients(naive: dict[str, Tensor], fast: dict[str, Tensor], eq: str, tolerance: float = 1e-8) -> None:
    """The same for two sets of gradients by parameter name; every parameter must have one on both sides."""
    for name in naive.keys() | fast.keys():
        if naive.get(name) is None or fast.get(name) is None:
            raise CheckError(
                f"{eq} gradient of {name}: missing {'on the page' if naive.get(name) is None else 'in lib'}"
            )
    page, ours = (torch.cat([g[name].flatten() for name in sorted(g)]) for g in (naive, fast))
    check_close(page, ours, eq, f"gradients of {len(naive)} parameters", tolerance)


def gradients(model, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradient of `loss` for every parameter of `model`, by name."""
    names, parameters = zip(*model.named_parameters())
    return dict(zip(names, torch.autograd.grad(loss, parameters)))


def check_exercise(number: int, attempt, cases: list[tuple[tuple, object]], tolerance: float = 1e-6) -> None:
    """Say whether a reader's function gives what is expected: not done yet (it returns None), wrong, or right."""
    for arguments, expected in cases:
        got = attempt(*arguments)
        if got is None:
            print(f"exercise {number}: not done yet")
            return
        got, expected = torch.as_tensor(got), torch.as_tensor(expected)
        if got.shape != expected.shape or not torch.allclose(got.double(), expected.double(), atol=tolerance):
            print(f"exercise {number}: expected {expected.tolist()}, got {got.tolist()}")
            return
    print(f"exercise {number}: right")
