"""Times of Mem2Mem's two loops on a GPU at the paper's sizes: by Triton's kernels in blocks of several sizes, and by
PyTorch's operations. The sizes in `lib.layers.gpu_kernels` were chosen without a GPU."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from unittest.mock import patch

import torch

from lib.layers.coverage import CoverageAttention
from lib.layers.memory import memory_scan

DOCUMENTS, STEPS, WORDS, SLOTS, WIDTH = 16, 200, 2_000, 10, 256
TIMES = 5
SIZES = {  # names in `lib.layers.gpu_kernels` -> what is tried
    "coverage": {"TILE": (4_096, 8_192, 16_384), "COVERAGE_WARPS": (8, 16)},
    "memory": {"BLOCK": (32, 64, 128), "MEMORY_WARPS": (4, 8, 16)},
}


def by_blocks(loop: str, device: str) -> dict:
    """Milliseconds of a loop's forward and backward pass by sizes of blocks, the least of some; and how far its
    gradients are from those by PyTorch's operations, as a share of the largest."""
    if device != "cuda":
        return {"left out": "no GPU", "ok": True}
    from lib.layers import gpu_kernels

    make = {"coverage": _coverage, "memory": _memory}[loop]
    with patch(f"lib.layers.{loop}.triton_runs", lambda values: False):
        seconds, expected = _timed(make)
    found = {"PyTorch": [1e3 * seconds]}
    for values in product(*SIZES[loop].values()):
        chosen = dict(zip(SIZES[loop], values))
        with ExitStack() as stack:
            for name, value in chosen.items():
                stack.enter_context(patch.object(gpu_kernels, name, value))
            try:
                seconds, gradients = _timed(make)
            except Exception as error:  # blocks that this GPU has no room for
                found[str(chosen)] = [None, str(error)[:200]]
                continue
        apart = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(gradients, expected))
        found[str(chosen)] = [1e3 * seconds, apart]
    well = all(len(row) == 1 or row[0] is None or row[1] < 1e-3 for row in found.values())
    return {"milliseconds": found, "ok": well and any(row[0] for name, row in found.items() if name != "PyTorch")}


def _timed(make: Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]) -> tuple[float, list[torch.Tensor]]:
    """The least seconds of a loss and its gradients, and the gradients."""
    seconds = []
    for _ in range(TIMES + 1):  # the first compiles
        torch.manual_seed(0)
        torch.cuda.synchronize()
        started = time.perf_counter()
        loss, leaves = make()
        gradients = torch.autograd.grad(loss, leaves)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:]), list(gradients)


def _coverage() -> tuple[torch.Tensor, list[torch.Tensor]]:
    with torch.device("cuda"):
        attention = CoverageAttention(WIDTH, WIDTH, WIDTH)
        queries = torch.randn(DOCUMENTS, 1, STEPS, WIDTH)
        keys = torch.randn(DOCUMENTS, WORDS, WIDTH, requires_grad=True)
        mask = torch.ones(DOCUMENTS, WORDS, dtype=torch.bool)
        alpha, _ = attention(queries, keys, mask, torch.zeros(DOCUMENTS, 1, WORDS))
        return alpha.square().sum(), [keys, *(p for name, p in attention.named_parameters() if "key" not in name)]


def _memory() -> tuple[torch.Tensor, list[torch.Tensor]]:
    shapes = {
        "memory": (DOCUMENTS, SLOTS, WIDTH), "queries": (DOCUMENTS, STEPS, WIDTH),
        "from_hidden": (DOCUMENTS, STEPS, 2 * WIDTH), "v": (WIDTH,), "key": (WIDTH, WIDTH),
        "write": (2 * WIDTH, WIDTH), "from_read": (2 * WIDTH, WIDTH),
    }  # fmt: skip
    scale = dict.fromkeys(("key", "write", "from_read"), WIDTH**-0.5)
    leaves = [
        (scale.get(name, 1) * torch.randn(shape, device="cuda")).requires_grad_() for name, shape in shapes.items()
    ]
    _, reads, last = memory_scan(*leaves)
    return reads.square().sum() + last.square().sum(), leaves
