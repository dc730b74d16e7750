"""Devices that processes compute on, and torchrun's processes."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist

from lib.system.errors import RunError

Item = TypeVar("Item")
Result = TypeVar("Result")


def has_bf16_products() -> bool:
    """Whether this processor multiplies bfloat16 (AVX-512 or AMX): where not, float32 is faster."""
    return getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()


def device_named(name: str | None = None) -> torch.device:
    """ "cpu" or "cuda", with a number or this process's own; by default the `default_device`, or the GPU where there
    is one. Raises RunError for a device that is not here."""
    if name is None and (chosen := _default.get()) is not None:
        return chosen
    try:
        device = torch.device(name or (f"cuda:{rank_device()}" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise RunError(f"no device {name!r}: cpu, or cuda where there is a GPU") from None
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", rank_device())
    here = {"cpu": 1, "cuda": torch.cuda.device_count()}.get(device.type, 0)
    if (device.index or 0) >= here:
        raise RunError(f"device {name!r} is not here: this machine has the CPU and {torch.cuda.device_count()} GPUs")
    return device


_default: ContextVar[torch.device | None] = ContextVar("default device", default=None)


@contextmanager
def default_device(device: torch.device) -> Iterator[None]:
    """The device that `device_named` gives without a name, for a while: of models that help to prepare a corpus, or
    to encode a text, as well."""
    before = _default.set(device)
    try:
        yield
    finally:
        _default.reset(before)


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Products of float32 matrices in a precision by PyTorch's name ("highest", "high", "medium") for a while."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def attention_of_many_lengths() -> Iterator[None]:
    """Attention on a GPU without cuDNN's kernels for a while. PyTorch takes them first where an H100 computes in
    bfloat16, and they make a plan for each shape that they have not met: of batches that are of many lengths, almost
    all."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def rank_device() -> int:
    return int(os.environ.get("LOCAL_RANK", 0))


SHARE = 64  # the part of a GPU's memory, one in so many, that a large result which is made in chunks may take


@cache
def room_on(device: torch.device) -> int:
    """Bytes that a chunk of a large result may take: on a CPU 16 MiB, on a GPU a `SHARE` of its memory, all of it and
    not what is free, so that chunks and sums are the same in every run."""
    least = 2**24
    if device.type != "cuda":
        return least
    return max(least, torch.cuda.get_device_properties(device).total_memory // SHARE)


class Process(NamedTuple):
    """One of `world` processes that share work; `rank` are before it."""

    rank: int = 0
    world: int = 1

    def share(self, items: Iterable[Item]) -> Iterator[Item]:
        """This process's part of the work: of `world` items that follow each other one."""
        return islice(items, self.rank, None, self.world)

    def gather(self, results: Iterable[Result]) -> list[Result]:
        """The results of all items in order, in every process. results: of this process's share."""
        own = list(results)
        if self.world == 1:
            return own
        shares: list[Any] = [None] * self.world
        dist.all_gather_object(shares, own)
        every: list[Any] = [None] * sum(map(len, shares))
        for rank, share in enumerate(shares):
            every[rank :: self.world] = share
        return every


ALONE = Process()
PATIENCE = timedelta(hours=2)  # that processes have with each other; none prepares a corpus while others wait here


@contextmanager
def processes() -> Iterator[Process]:
    """This process among torchrun's, from the environment, or alone. What is on the CPU they exchange by gloo."""
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        yield ALONE
        return
    started = not dist.is_initialized()
    if started:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
        if torch.cuda.is_available():
            torch.cuda.set_device(rank_device())
    try:
        yield Process(dist.get_rank(), world)
    finally:
        if started:
            dist.destroy_process_group()


def wait_for_all(world: int) -> None:
    if world > 1:
        dist.barrier()
