"""The plan: what a step of each paper's preset asks of a GPU, counted; and from that hours and
memory on two GPUs.

A step's time is the roofline of its operations (each takes its products by the peak, or its bytes
by the bandwidth, whichever is longer), and a launch for each, one after the other; with several
processes the gradients go once around the ring of GPUs besides.
"""

import gc
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from lib.system.devices import SHARE
from lib.training import loop
from lib.training.parts import parts_that_fit
from tests.gpu.cases import CASES, CORPORA, Case
from tests.gpu.machines import GPUS, LAUNCH, Machine
from tests.gpu.places import one_update, put_training

PLAN = Path(__file__).with_name("plan.json")  # what was counted, for the texts
WORLDS = (1, 4, 8)  # processes
MEMORY = 80_000_000_000  # bytes of both GPUs
# source words that are counted at once, where a preset does not name the parts of an update
WORDS_AT_ONCE = 32_000


def pieces() -> dict[str, Callable[[str], dict]]:
    """All pieces of the plan."""
    found: dict[str, Callable[[str], dict]] = {}
    for case in CASES:
        for world in WORLDS:
            found[f"count/{case}/{world}"] = lambda device, case=case, world=world: count(
                case, world
            )
    return found


def share(case: Case, world: int) -> int:
    """Documents of one process's part of an update."""
    return -(-case.batch // world)


def count(case: Case, world: int) -> dict:
    """What one process's part of an update asks of a GPU of `MEMORY`, counted on the pretend
    device."""
    from tests.gpu.counts import counted
    from tests.tools.pretend_device import DEVICE

    documents = share(case, world)
    asked = case.setup.train.accumulate
    parts = parts_to_count(case, documents, world)
    room = patch("lib.layers.pointer.room_on", lambda device: MEMORY // SHARE)
    with tempfile.TemporaryDirectory() as folder, counted() as (device, counts), room:
        training = put_training(
            case.training(DEVICE, Path(folder), documents, accumulate=parts), DEVICE
        )
        moments = make_moments(training.optimizer)
        gc.collect()
        before = counts.live
        rest = before + 4 * training.updates.parameters  # with gradients
        counts.start()
        device.synchronisations.clear()
        peak = 0

        def first_is_done() -> None:
            nonlocal parts, peak
            fitting = parts if asked else parts_that_fit(counts.peak, rest, parts, MEMORY)
            peak, counts.peak = rest + (counts.peak - rest) * parts // fitting, counts.live
            as_parts(counts, parts, fitting)
            parts = fitting

        first_part_alone(training, first_is_done)
        losses = one_update(training)
        return {
            "documents": documents, "parts": parts, "source": case.source, "target": case.target,
            "parameters": training.updates.parameters,
            "flop": counts.flop, "moved": counts.moved, "launches": counts.launches,
            "synchronisations": parts * device.synchronisations.total(), "optimizer_bytes": moments,
            "before_bytes": before,
            "peak_bytes": max(peak, counts.peak), "loss": losses["loss"].item(),
            "most_launched": counts.names.most_common(8),
            "operations": [[*operation, times] for operation, times in counts.operations.items()],
        }  # fmt: skip


def parts_to_count(case: Case, documents: int, world: int) -> int:
    """Parts of an update of which one is computed here: the preset's, or as many as this machine
    has memory for."""
    if case.setup.train.accumulate:
        return min(documents, -(-case.setup.train.accumulate // world))
    return -(-documents * case.source // WORDS_AT_ONCE)


def make_moments(optimizer: torch.optim.Optimizer) -> int:
    """Let an optimizer make what it keeps, in an update by zeros: every later update finds it
    there. Returns its bytes."""
    for parameter in (p for group in optimizer.param_groups for p in group["params"]):
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return sum(x.numel() * x.element_size() for s in optimizer.state.values() for x in s.values())


def first_part_alone(training: loop._Loop, after: Callable[[], None]) -> None:
    """Let an update compute the first of its parts, which are alike. `after` is called when it is
    done."""
    backward, losses = training.updates.backward, []

    def once(*arguments: Any) -> Any:
        if not losses:
            losses.append(backward(*arguments))
            after()
        return losses[0]

    training.updates.backward = once


def as_parts(counts: Any, counted: int, parts: int) -> None:
    """Turn what was counted of one of `counted` parts into all of `parts`: larger ones take no
    further launches."""
    operations, larger = Counter(), counted / parts
    for (flop, moved, launches), times in counts.operations.items():
        operations[round(flop * larger), round(moved * larger), launches] += parts * times
    counts.operations = operations
    counts.names = Counter({name: parts * times for name, times in counts.names.items()})


# ---------------------------------------------------------------------------------
# the estimate


def roofline(operations: list[list[int]], flop: float, bandwidth: float) -> float:
    """Seconds of counted operations without their launches."""
    return sum(max(f / flop, moved / bandwidth) * times for f, moved, _, times in operations)


def exchange(machine: Machine, parameters: int, world: int) -> float:
    """Seconds in which gradients of float32 go around the ring of `world` GPUs: each sends 2 (world
    - 1) / world of them."""
    return 2 * (world - 1) / world * 4 * parameters / machine.link


def summary(found: dict[str, dict]) -> dict:
    """What is kept of the pieces: per case and number of processes what was counted, and what
    follows from it."""
    rows = {}
    for case in CASES:
        rows[str(case)] = row = {
            "paper": case.paper,
            "preset": case.preset,
            "batch": case.batch,
            "by_processes": {},
        }
        row["updates"] = {corpus: case.updates(corpus) for corpus in case.corpora}
        for world in WORLDS:
            counted = found[f"count/{case}/{world}"]
            row["by_processes"][str(world)] = _counted(counted, world)
    machines = {name: {**vars(machine), "launch": LAUNCH} for name, machine in GPUS.items()}
    corpora = {name: vars(lengths) for name, lengths in CORPORA.items()}
    return {"machines": machines, "corpora": corpora, "rows": rows}


def _without(piece: dict) -> dict:
    """What is kept of a piece."""
    left_out = ("piece", "device", "code", "took", "operations")
    return {key: value for key, value in piece.items() if key not in left_out}


def _counted(counted: dict, world: int) -> dict:
    work = {
        name: {
            p: roofline(counted["operations"], flop, gpu.bandwidth)
            for p, flop in gpu.flop.items()
            if p != "bf16"
        }
        for name, gpu in GPUS.items()
    }
    exchanged = {name: exchange(gpu, counted["parameters"], world) for name, gpu in GPUS.items()}
    return {**_without(counted), "work": work, "exchange": exchanged}


def step_seconds(counted: dict, gpu: str, precision: str = "float32") -> float:
    """The plan's seconds of an update on a GPU, from what `summary` has of a case and a number of
    processes."""
    return counted["work"][gpu][precision] + counted["launches"] * LAUNCH + counted["exchange"][gpu]
