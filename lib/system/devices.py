"""Devices that processes compute on, and torchrun's processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from lib.system.errors import RunError


def has_bf16_products() -> bool:
    """Whether this processor multiplies bfloat16 (AVX-512 or AMX): where not, float32 is faster."""
    return getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()


def device_named(name: str | None = None) -> torch.device:
    """ "cpu" or "cuda", with or without a number; by default this process's GPU where there is one. Raises RunError
    for a device that is not here."""
    try:
        device = torch.device(name or (f"cuda:{rank_device()}" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise RunError(f"no device {name!r}: cpu, or cuda where there is a GPU") from None
    here = {"cpu": 1, "cuda": torch.cuda.device_count()}.get(device.type, 0)
    if (device.index or 0) >= here:
        raise RunError(f"device {name!r} is not here: this machine has the CPU and {torch.cuda.device_count()} GPUs")
    return device


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Products of float32 matrices in a precision by PyTorch's name ("highest", "high", "medium") for a while."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def rank_device() -> int:
    return int(os.environ.get("LOCAL_RANK", 0))


@contextmanager
def processes() -> Iterator[tuple[int, int]]:
    """Rank and number of processes: torchrun's, from the environment, or one."""
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        yield 0, 1
        return
    started = not dist.is_initialized()
    if started:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=timedelta(hours=2))  # a large corpus takes its time to prepare
        if torch.cuda.is_available():
            torch.cuda.set_device(rank_device())
    try:
        yield dist.get_rank(), world
    finally:
        if started:
            dist.destroy_process_group()


def wait_for_all(world: int) -> None:
    if world > 1:
        dist.barrier()
