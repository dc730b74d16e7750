"""Devices that models compute on, and the processes that torchrun starts."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lib.system.errors import RunError
from lib.system.threads import restored

Item = TypeVar("Item")
Result = TypeVar("Result")


def computes_bf16(device: torch.device) -> bool:
    """Return whether bfloat16 is worth it on a device: on a GPU, or a CPU that multiplies it
    (AVX-512 or AMX)."""
    return device.type != "cpu" or has_bf16_products()


def has_bf16_products() -> bool:
    """Whether this processor multiplies bfloat16 (AVX-512 or AMX); otherwise float32 is faster."""
    return getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()


def device_named(name: str | None = None) -> torch.device:
    """Find a device by name: "cpu", "cuda" (this process's own GPU) or "cuda:1".

    Without a name it is the `default_device`, or the GPU where there is one. Raises RunError for an
    absent device.
    """
    if name is None and _default:
        return _default[-1]
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    asked = name or ("cuda" if gpus else "cpu")
    # "cuda" is the GPU of this process among those that torchrun started.
    full = f"cuda:{rank_device()}" if asked == "cuda" else asked
    if full not in ("cpu", *(f"cuda:{i}" for i in range(gpus))):
        raise RunError(f"no device {asked!r} here: this machine has the CPU and {gpus} GPUs")
    return torch.device(full)


_default: list[torch.device] = []  # the last one counts


@contextmanager
def default_device(device: torch.device) -> Iterator[None]:
    """Set what `device_named` gives without a name, also for models that help to encode texts."""
    _default.append(device)
    try:
        yield
    finally:
        _default.pop()


def float32_products(precision: str) -> AbstractContextManager[None]:
    """Set the precision of float32 matrix products by PyTorch's name: "highest", "high" or
    "medium"."""
    return restored(
        read=torch.get_float32_matmul_precision,
        write=torch.set_float32_matmul_precision,
        value=precision,
    )


def attention_of_many_lengths() -> AbstractContextManager[None]:
    """Switch off cuDNN's attention on a GPU: it makes a plan for each new shape, and almost every
    batch has one."""
    cuda = torch.backends.cuda
    return restored(read=cuda.cudnn_sdp_enabled, write=cuda.enable_cudnn_sdp, value=False)


def rank_device() -> int:
    return int(os.environ.get("LOCAL_RANK", 0))


SHARE = 64  # a large result that is made in chunks takes at most 1/64 of a GPU's memory at a time


@cache
def room_on(device: torch.device) -> int:
    """Return the bytes of a chunk of a large result: 32 MiB on a CPU, a `SHARE` of a GPU's whole
    memory.

    It does not depend on free memory, so that chunks and sums are the same in every run.
    """
    least = 2**25
    if device.type != "cuda":
        return least
    return max(least, torch.cuda.get_device_properties(device).total_memory // SHARE)


class Process(NamedTuple):
    """Process `rank` of `world` in data-parallel work."""

    rank: int = 0
    world: int = 1

    def share(self, items: Iterable[Item]) -> Iterator[Item]:
        """Take this process's items: one of each `world` in a row."""
        return islice(items, self.rank, None, self.world)

    def gather(self, results: Iterable[Result]) -> list[Result]:
        """Collect the results of all items in order, in every process. results: of this process's
        share."""
        own = list(results)
        if self.world == 1:
            return own
        shares: list[Any] = [None] * self.world
        dist.all_gather_object(shares, own)
        every: list[Any] = [None] * sum(map(len, shares))
        for rank, share in enumerate(shares):
            every[rank :: self.world] = share
        return every

    def any(self, flag: bool) -> bool:
        """Return in every process whether the flag is set in at least one."""
        flags = torch.tensor(int(flag))
        if self.world > 1:
            dist.all_reduce(flags, dist.ReduceOp.MAX)
        return bool(flags)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.world > 1:
            dist.barrier()


def with_shared_gradients(model: nn.Module, device: torch.device) -> DistributedDataParallel:
    """Wrap a model, so that its backward pass averages the gradients over the processes.

    A weight that has no part in the loss of one process has the gradient 0 there: Mem2Mem writes to
    its memory between two words, so a process whose summaries are all empty has no gradient for it.
    A weight that has no part in any process's loss keeps the gradient None, as in one process.
    """
    options: dict[str, Any] = {"find_unused_parameters": True}
    if device.type == "cuda":
        options["device_ids"] = [device.index]
    # PyTorch warns once in a process where all weights have a gradient, which is the usual case.
    # Its C++ code prints the line, so that Python's filters of warnings do not reach it.
    with _silent_stderr():
        smallest = DistributedDataParallel(nn.Linear(1, 1).to(device), **options)
        smallest(torch.ones(1, device=device))
    return DistributedDataParallel(model, **options)


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Throw away what this process prints on standard error, C++ code included."""
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


ALONE = Process()
PATIENCE = timedelta(hours=2)  # that processes wait for each other


@contextmanager
def processes() -> Iterator[Process]:
    """Join torchrun's processes, which the environment describes. Values on the CPU are exchanged
    by gloo."""
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        yield ALONE
        return
    started = not dist.is_initialized()
    if started:
        on_gpu = torch.cuda.is_available()
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=PATIENCE)
        if on_gpu:
            torch.cuda.set_device(rank_device())
    try:
        yield Process(dist.get_rank(), world)
    finally:
        if started:
            dist.destroy_process_group()
