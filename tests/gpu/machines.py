"""Peak numbers of two GPUs by their maker's data sheets, what is assumed of launches, and a CPU's own numbers."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

# Seconds of the host for each operation that PyTorch issues one by one. Measured beside an H100: all of an update, of
# which the GPU computes a sixth, by its operations: 30 microseconds in Mem2Mem, 33 in the hierarchical transformer.
LAUNCH = 30e-6


@dataclass(frozen=True)
class Machine:
    """Dense products a second by precision, bytes a second of the memory and of the link to another GPU (one way)."""

    name: str
    flop: dict[str, float]
    bandwidth: float
    memory: float  # GB
    link: float
    known: str


# the sheets give products in TF32 and bfloat16 "with sparsity" as twice these, and links both ways as twice these
GPUS = {
    "A100": Machine(
        "A100 (SXM, 80 GB)", {"float32": 19.5e12, "tf32": 156e12, "bf16": 312e12}, 2.039e12, 80, 300e9,
        "NVIDIA A100 Tensor Core GPU, data sheet",
    ),
    "H100": Machine(
        "H100 (SXM, 80 GB)", {"float32": 67e12, "tf32": 494.5e12, "bf16": 989.5e12}, 3.35e12, 80, 450e9,
        "NVIDIA H100 Tensor Core GPU, data sheet",
    ),
}  # fmt: skip


def measured_cpu() -> dict:
    """Of this CPU on one thread, in seconds of its own time (`time.process_time`), so that other processes do not
    count: products of float32 matrices of 2,048, sums of arrays of 256 MB, and sums of one number."""
    torch.set_num_threads(1)
    a, b = torch.rand(2048, 2048), torch.rand(2048, 2048)
    x, y = torch.rand(2**26), torch.rand(2**26)
    one, out, many = torch.rand(1), torch.empty(2**26), 20_000
    return {
        "flop": 2 * 2048**3 / fastest(lambda: a @ b),
        "bandwidth": 3 * x.nbytes / fastest(lambda: torch.add(x, y, out=out)),
        "launch": fastest(lambda: [one + one for _ in range(many)]) / many,
        "threads": 1,
    }


def fastest(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of this process's own time, the least of several."""
    seconds = []
    for _ in range(repeats + 1):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds[1:])
