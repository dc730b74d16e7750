"""What is checked on a GPU: that every variant computes what it computes on a CPU, that a resumed
run ends with the same weights, that the commands run and the shipped models write the same
summaries, that two processes train as one, and what a step of each paper's preset takes."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.autograd import DeviceType

import lib
from companion.results.tables import TRAINED
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.papers import PAPERS
from lib.system.devices import attention_of_many_lengths, float32_products
from lib.system.files import project_root, trained_folder
from lib.system.metrics import read_metrics
from lib.training import loop
from lib.training.config import TrainConfig
from lib.training.folder import Recipe, load_tensors
from tests.conftest import VOCAB, batch_of
from tests.gpu.cases import PAPER_CASES, Case, corpus_of
from tests.gpu.places import on, one_update, put, put_training, wait
from tests.gpu.plan import share, step_seconds
from tests.models.test_models import Case as Variant
from tests.models.test_models import cases

MEASURED = Path(__file__).with_name("measured.json")  # what a GPU has shown, for the texts
CPU = torch.device("cpu")
# of the largest number; of bfloat16 the loss alone
TOLERANCE = {"float64": 1e-8, "float32": 1e-3, "bf16": 0.05}
PRECISIONS = ("float32", "tf32", "bf16")
NO_AUTOCAST = ("pretend",)  # PyTorch has none for devices of others
TIMED, LEAST = 8, 5  # seconds that a step is measured for, and steps at least
NOISE = 10  # how much farther a resumed run may be from a run than the same run made twice
KERNELS = 12  # of the slowest that are named
TEXTS = 8  # that are summarised at once


def pieces() -> dict[str, Callable[[str], dict]]:
    """All pieces, each to be given a device by name."""
    found: dict[str, Callable[[str], dict]] = {}
    variants = cases(PAPERS)
    for variant in variants:
        name = f"equality/{str(variant).replace(', ', '/', 1)}"
        found[name] = lambda device, variant=variant: equality(variant, device)
    for paper in PAPERS:
        variant = next(v for v in variants if str(v).startswith(f"{paper}, {PAPERS[paper].usual}"))
        found[f"resume/{paper}"] = lambda device, variant=variant: resumed(variant, device)
    for paper in PAPERS:
        found[f"commands/{paper}"] = lambda device, paper=paper: commands(paper, device)
    for name in TRAINED:
        found[f"generation/{name}"] = lambda device, name=name: generation(name, device)
    found["processes/two"] = two_processes
    for case in PAPER_CASES.values():
        for precision in PRECISIONS:
            found[f"step/{case.paper}/{precision}"] = lambda device, c=case, p=precision: step(
                c, p, device
            )
    for case in PAPER_CASES.values():
        found[f"kernels/{case.paper}"] = lambda device, case=case: slowest_kernels(case, device)
    return found


# ---------------------------------------------------------------------------------
# equality


def equality(variant: Variant, device: str) -> dict:
    """How far losses and gradients of a tiny model are from the CPU's, in each precision; `ok` if
    near enough."""
    found = {}
    for precision, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        model = variant.model().to(dtype)
        found[precision] = difference(*(computed(model, variant, name) for name in (device, "cpu")))
    if device not in NO_AUTOCAST:  # from the first weights: larger ones lose more by rounding
        rough, exact = (
            computed(variant.first(), variant, *where) for where in ((device, True), ("cpu",))
        )
        found["bf16"] = difference({"loss": rough["loss"]}, {"loss": exact["loss"]})
    return {"difference": found, "ok": all(share <= TOLERANCE[p] for p, share in found.items())}


def computed(model: Any, variant: Variant, device: str, bf16: bool = False) -> dict[str, Tensor]:
    """Losses of a copy of a model, and the gradients of its parameters by their names, on the
    CPU."""
    model = deepcopy(model)
    with on(device) as place, torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        model = put(model.train(), place)
        with torch.autocast(place.type, torch.bfloat16, enabled=bf16):
            losses = model(batch_of(*variant.documents).to(place))
        losses["loss"].backward()
        gradients = {
            f"gradient of {name}": p.grad
            for name, p in model.named_parameters()
            if p.grad is not None
        }
        return {name: value.detach().cpu() for name, value in {**losses, **gradients}.items()}


def difference(ours: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference of two sets of tensors, as a share of the largest number of each kind:
    losses, gradients. Infinite where one has a tensor that the other has not, or a number is
    none."""
    if ours.keys() != expected.keys():
        return float("inf")
    largest: dict[str, float] = {}
    for name, value in expected.items():
        kind = name.partition(" ")[0]
        largest[kind] = max(largest.get(kind, 0.0), value.abs().max().item())
    found = [
        (ours[name].double() - value.double()).abs().max().item()
        / (largest[name.partition(" ")[0]] or 1.0)
        for name, value in expected.items()
    ]
    return max((float("inf") if x != x else x for x in found), default=0.0)


# ---------------------------------------------------------------------------------
# runs, one and two


def resumed(variant: Variant, device: str) -> dict:
    """How far the weights of a run that was stopped and resumed are from those of one that was not,
    and how far two runs are that were not."""
    with tempfile.TemporaryDirectory() as folder:
        torch.use_deterministic_algorithms(True, warn_only=True)
        runs = {
            name: weights_after(variant, device, Path(folder) / name, steps)
            for name, steps in {"whole": (8,), "again": (8,), "resumed": (4, 8)}.items()
        }
    again, stopped = (difference(runs[name], runs["whole"]) for name in ("again", "resumed"))
    return {"again": again, "resumed": stopped, "ok": stopped <= NOISE * again}


def weights_after(
    variant: Variant, device: str, folder: Path, steps: tuple[int, ...]
) -> dict[str, Tensor]:
    """All that a run saves to be resumed, after it was started for each of `steps`."""
    dropout = {"dropout": 0.3} if hasattr(variant.config, "dropout") else {}
    config = TrainConfig(batch_size=2, learning_rate=0.01, log_every=1, save_every=4)
    with on(device) as place, patch.object(loop.devices, "device_named", lambda name: place):
        for number in steps:
            corpus = corpus_of(PAPERS["mem2mem"].presets["demo"].options, variant.documents, VOCAB)
            model = variant.model(**dropout).float()
            recipe = Recipe("mem2mem", "hred")
            loop.train(
                recipe,
                model,
                corpus,
                replace(config, steps=number),
                folder,
                number > steps[0],
                False,
            )
    return {
        k: v.double()
        for k, v in load_tensors(folder / "last.safetensors").items()
        if v.is_floating_point()
    }


DATA = ("--dataset", "pmc-sample")
PRESETS = {"read_again": "demo papers"}  # of the others: demo


def commands(paper: str, device: str) -> dict:
    """Seconds of each command that computes with a model, on a device: it trains one for a few
    steps, scores and changes it."""
    if device not in ("cuda", "cpu"):
        return {"ok": True, "left out": f"commands know no device {device}"}
    with tempfile.TemporaryDirectory() as folder:
        run, few = f"{folder}/run", (*DATA, "--documents", "4")
        made = {
            "train": (
                paper,
                "--preset",
                PRESETS.get(paper, "demo"),
                *DATA,
                "--steps",
                "20",
                "--output",
                run,
            ),
            "score": ("run", run, *few),
            "intervene": (run, "nothing", "--of", "summaries", *few),
        }
        seconds = {}
        for name, arguments in made.items():
            started = time.perf_counter()
            command = ["-m", f"lib.{name}", *arguments, "--device", device]
            done = subprocess.run(
                [sys.executable, *command], capture_output=True, text=True, cwd=project_root()
            )
            if done.returncode:
                return {"ok": False, "command": " ".join(command), "said": done.stderr[-2000:]}
            seconds[name] = round(time.perf_counter() - started, 1)
    return {"seconds": seconds, "ok": True}


def generation(name: str, device: str) -> dict:
    """Whether a shipped run writes what it writes on the CPU, in double precision, and the seconds
    that a summary takes on both in single."""
    texts, run = (
        sample_texts(TEXTS if device == "cuda" else 2),
        lib.load(trained_folder(name), device="cpu"),
    )
    if device == "pretend":  # it is slow
        run.decode = replace(run.decode, min_length=5, max_length=10)
    shipped, written, seconds = run.model, [], []
    for where in ("cpu", device):
        with on(where) as place:
            run.model = put(deepcopy(shipped).double(), place)
            written.append([summary.tokens for summary in run.summarize(texts)])
            run.model = put(deepcopy(shipped), place)
            started = time.perf_counter()
            run.summarize(texts)
            seconds.append((time.perf_counter() - started) / len(texts))
    same = sum(a == b for a, b in zip(*written, strict=True))
    return {"texts": len(texts), "same": same, "seconds": seconds, "ok": same == len(texts)}


def sample_texts(count: int) -> list[Document]:
    return list(islice(load_corpus("pmc-sample").split("test"), count))


TRAIN = (
    "lib.train",
    "mem2mem",
    "--preset",
    "demo",
    "--dataset",
    "pmc-sample",
    "--limit",
    "20",
    "--steps",
    "20",
    "--log-every",
    "1",
    "--validate-every",
    "20",
)


def two_processes(device: str) -> dict:
    """The losses of a run by one process and by two, which share each batch; where there are two
    devices."""
    devices = {"cuda": torch.cuda.device_count(), "cpu": 2}.get(device, 1)
    if devices < 2:
        return {"ok": True, "left out": f"one device of the kind {device}"}
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    with tempfile.TemporaryDirectory() as folder:
        losses = []
        for name, command in {"one": TRAIN, "two": (*torchrun, *TRAIN)}.items():
            output = [
                "--output",
                f"{folder}/{name}",
                *(["--device", "cpu"] if device == "cpu" else []),
            ]
            subprocess.run(
                [sys.executable, "-m", *command, *output], check=True, cwd=project_root()
            )
            losses.append([m["loss"] for m in read_metrics(Path(folder) / name)])
    apart = max(abs(a - b) / abs(a) for a, b in zip(*losses, strict=True))
    return {"losses": [losses[0][0], losses[0][-1]], "difference": apart, "ok": apart <= 1e-3}


# ---------------------------------------------------------------------------------
# steps


def step(case: Case, precision: str, device: str) -> dict:
    """Seconds and memory of an update of a preset at its real size."""
    if precision == "bf16" and device in NO_AUTOCAST:
        return {"case": str(case), "left out": "no autocast", "ok": True}
    products, attention = (
        float32_products("high" if precision == "tf32" else "highest"),
        attention_of_many_lengths(),
    )
    with on(device) as place, tempfile.TemporaryDirectory() as folder, products, attention:
        of_case = case.training(
            place, Path(folder), documents_on(case, place), bf16=precision == "bf16"
        )
        training = put_training(of_case, place)
        if place.type == "cuda":
            for _ in range(2):  # cuDNN and cuBLAS choose, memory is fetched
                one_update(training)
            torch.cuda.reset_peak_memory_stats()
        made, ends = [timed(training, place)], time.perf_counter() + TIMED
        while place.type == "cuda" and (len(made) < LEAST or time.perf_counter() < ends):
            made.append(timed(training, place))
        peak = torch.cuda.max_memory_allocated() / 1e9 if place.type == "cuda" else None
    return {
        "case": str(case), "documents": len(training.corpus["train"]), "seconds": median(s for s, _ in made),
        "steps": len(made), "memory_gb": peak, "loss": made[-1][1], "ok": all(loss == loss for _, loss in made),
    }  # fmt: skip


def documents_on(case: Case, place: torch.device) -> int:
    """Documents of an update; where no GPU computes, those of one process of eight, since it takes
    long."""
    return case.batch if place.type == "cuda" else share(case, 8)


def timed(training: loop._Loop, place: torch.device) -> tuple[float, float]:
    """Seconds of an update, and its loss."""
    wait(place)
    started = time.perf_counter()
    losses = one_update(training)
    wait(place)
    return time.perf_counter() - started, losses["loss"].item()


def slowest_kernels(case: Case, device: str) -> dict:
    """The kernels that take most of an update's time, in percent of what all take; without a GPU,
    operations."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with on(device) as place, tempfile.TemporaryDirectory() as folder:
        training = put_training(
            case.training(place, Path(folder), documents_on(case, place)), place
        )
        if device == "cuda":
            one_update(training)
            wait(place)
        with torch.profiler.profile(activities=activities) as profiler:
            one_update(training)
            wait(place)
    time_of = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    # an operation has the time of its kernels, too
    kind = DeviceType.CUDA if device == "cuda" else DeviceType.CPU
    events = [e for e in profiler.key_averages() if e.device_type == kind]
    events.sort(key=lambda e: -getattr(e, time_of))
    whole = sum(getattr(e, time_of) for e in events) or 1
    slowest = {
        e.key: [round(100 * getattr(e, time_of) / whole, 1), e.count] for e in events[:KERNELS]
    }
    return {
        "case": str(case),
        "seconds": whole / 1e6,
        "percent and count": slowest,
        "ok": bool(events),
    }


# ---------------------------------------------------------------------------------
# results


def results(found: dict[str, dict], planned: dict, device: str) -> dict:
    """What the pieces say together, with the plan's numbers beside."""
    gpu = next((name for name in ("A100", "H100") if name in device), None)
    kinds: dict[str, dict[str, dict]] = {}
    for name, made in found.items():
        kind, _, rest = name.partition("/")
        kinds.setdefault(kind, {})[rest] = made
    for name, made in kinds.get("step", {}).items():
        counted = planned["rows"][made["case"]]["by_processes"]["1"]
        precision = name.rpartition("/")[2]
        known = gpu and precision != "bf16"
        made["planned_gb"] = counted["peak_bytes"] / 1e9
        made["planned_seconds"] = step_seconds(counted, gpu, precision) if known else None
        made["floor_seconds"] = counted["work"][gpu][precision] if known else None
    failed = [name for name, made in found.items() if not made["ok"]]
    return {"device": device, "torch": torch.__version__, "failed": failed, "kinds": kinds}
