"""Fifteen minutes of a GPU, prepared beforehand on a machine without one.

`prepare` fills a folder with all that a bare machine needs: PyTorch with CUDA and Triton are there, and no network.
`card` works there in slices of time, in the order of `STAGES`: models beside the CPU's, seconds of an update, and
trainings at the papers' sizes. The same command goes on where it stopped, from what it left in the
folder; on another machine, from the files of the call before, in the folder `back`.
"""

import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save, save_file

from companion.results.tables import slug
from lib.data.prepared import PreparedCorpus
from lib.data.split import Split
from lib.system.errors import InputError
from lib.system.files import project_root, read_numbers, write_json, write_whole
from lib.train import parse
from lib.training.folder import load_tensors, read_meta
from tests.gpu import checks, tables
from tests.gpu.pieces import chosen, do, finished, path_of
from tests.gpu.places import called

FOLDER = project_root() / "runs" / "gpu" / "card"
MOST = 60  # MiB of the folder, which travels to the card
HELD_OUT = 200  # documents to validate with, and as many to test with
PART = 15 * 2**20  # bytes of a file that comes back, at most
# of the packages that lib.train imports those that a machine with PyTorch may lack; they hold Python code only
PACKAGES = ("tyro", "docstring-parser", "typeguard", "rouge-score", "nltk", "defusedxml", "platformdirs")
# Arguments of lib.train. The learned ranking of paragraphs would take hours on a CPU: their order is kept instead.
TRAINED = {
    "mem2mem": "--save-every 100 --validate-every 500",
    "hierarchical_transformer": "--options.ranking order --save-every 25 --validate-every 100 --keep-best 1",
}
# the share of the time that is left then
STAGES = {"checks": 0.35, "seconds": 0.5, "mem2mem": 0.65, "hierarchical_transformer": 1.0}
RESERVE = 20  # seconds in which results are written


# -------------------------------------------------------------------------------------------- on a machine without


def prepare(folder: Path, corpus: str, documents: int, preset: str) -> None:
    """Write what a card needs, with at most so many documents to train on."""
    folder.mkdir(parents=True, exist_ok=True)
    if others := [path.name for path in folder.iterdir() if path.name != "back"]:
        raise InputError(f"{folder} holds {others[0]!r}: remove all but `back` to prepare it anew")
    for paper, arguments in TRAINED.items():
        _, setup = parse([paper, "--preset", preset, "--output", "", *arguments.split()])
        shortened(setup.open_corpus(corpus), documents).save(folder / paper)
        shutil.make_archive(str(folder / paper), "xztar", folder / paper)
        shutil.rmtree(folder / paper)
    copy_packages(folder / "site")
    size = sum(path.stat().st_size for path in folder.rglob("*")) / 2**20
    print(f"{folder}: {size:.1f} MiB" + ("; ask for fewer --documents" if size > MOST else ""))


def shortened(corpus: PreparedCorpus, documents: int) -> PreparedCorpus:
    """Take documents that are evenly spread over each split; those for training without their texts, which training
    does not read."""
    splits = {}
    for name, split in corpus.splits.items():
        count = min(len(split), documents if name == "train" else HELD_OUT)
        chosen = [split[i * len(split) // count] for i in range(count)]
        if name == "train":
            chosen = [replace(document, unknown=[], reference=[]) for document in chosen]
        splits[name] = Split.of(chosen)
    return replace(corpus, splits=splits)


def copy_packages(site: Path) -> None:
    """Copy installed packages, which hold Python code only, so that they need not be installed on the card."""
    for name in PACKAGES:
        for file in importlib.metadata.distribution(name).files or []:
            if not {"..", "__pycache__", "test"} & set(file.parts):
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)


# ------------------------------------------------------------------------------------------------------ on the card


def card(folder: Path, out: Path, minutes: float, stages: list[str], preset: str, device: str) -> list[str]:
    """Do what fits into so many minutes, and write what is to come back to `out`. Returns what was not reached."""
    ends = time.monotonic() + 60 * minutes - RESERVE
    out.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.tar.*"):
        unpack(path)
    found = folder / slug(called(device))
    restore(folder / "back", found, folder / "runs")
    left = []
    for stage in stages:
        now = time.monotonic()
        until = now + STAGES[stage] * (ends - now)
        if stage == "checks":
            left += do(chosen(checks.pieces(), ["equality/*", "generation/*"]), device, found, until)
        elif stage == "seconds":
            left += do(chosen(checks.pieces(), ["step/*", "kernels/*"]), device, found, until)
        elif not train(stage, folder, until, preset, device):
            left.append(f"the end of {stage}'s training")
        report(found, out, left, device)
    for run in (folder / "runs").glob("*"):
        pack(run, out)
    print(f"not reached: {', '.join(left)}" if left else "all was reached")
    return left


def unpack(path: Path) -> None:
    """Unpack an archive beside it, unless that was done."""
    folder = path.parent / path.name.partition(".")[0]
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.unpack_archive(path, unfinished, filter="data")
        unfinished.rename(folder)


def train(paper: str, folder: Path, until: float, preset: str, device: str) -> bool:
    """Train a paper's model, or go on, until a time. Returns whether it came to its end, without an error."""
    places = ["--dataset", str(folder / paper), "--output", str(folder / "runs" / paper)]
    arguments = ["--preset", preset, *places, *TRAINED[paper].split(), "--resume", "--device", device]
    command = [sys.executable, "-m", "lib.train", paper, *arguments]
    try:
        return not subprocess.run(command, cwd=project_root(), timeout=max(0.1, until - time.monotonic())).returncode
    except subprocess.TimeoutExpired:
        return False


# ------------------------------------------------------------------------------------------------- what comes back


def report(found: Path, out: Path, left: list[str], device: str) -> None:
    """Write results.json and results.md: all pieces so far."""
    names = [name for name in checks.pieces() if finished(found, name)]
    results, text = tables.report(found, names, left, called(device))
    write_json(out / "results.json", results)
    write_whole(out / "results.md", text)


def pack(run: Path, out: Path) -> None:
    """Write a run's losses, and the run in files of at most `PART` with its last weights as float16.

    Adam's moments are not in it, nor the other bits of the weights: a run that goes on from there is no longer the
    run that was not stopped.
    """
    last = run / "last.safetensors"
    if not last.exists():
        return
    shutil.copy(run / "metrics.jsonl", out / f"{run.name}.jsonl")
    weights = {name: value.half() for name, value in load_tensors(last, "model.").items()}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for path in sorted(run.iterdir()):
            if path.suffix != ".safetensors" and not path.name.startswith("."):
                tar.add(path, path.name)
        content = save(weights, {"meta": json.dumps(read_meta(last))})
        entry = tarfile.TarInfo("weights.safetensors")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    for number, start in enumerate(range(0, whole.tell(), PART)):
        write_whole(out / f"{run.name}.tar.{number}", whole.getvalue()[start : start + PART])


def restore(back: Path, found: Path, runs: Path) -> None:
    """Take up what an earlier call has left: pieces, and runs, whose optimizer begins anew."""
    if (back / "results.json").exists():
        found.mkdir(parents=True, exist_ok=True)
        for name, made in read_numbers(back / "results.json", "results", ("pieces",))["pieces"].items():
            if not path_of(found, name).exists():
                write_json(path_of(found, name), made)
    for first in back.glob("*.tar.0"):
        name = first.name.partition(".")[0]
        if not (runs / name).exists():
            join(sorted(back.glob(f"{name}.tar.*")), runs / name)


def join(parts: list[Path], run: Path) -> None:
    """Make a run's folder again of what `pack` wrote: to train on, or to open with its last weights."""
    with tarfile.open(fileobj=io.BytesIO(b"".join(path.read_bytes() for path in parts))) as tar:
        tar.extractall(run, filter="data")
    packed = run / "weights.safetensors"
    meta = {"meta": json.dumps(read_meta(packed))}
    weights = {name: value.float() for name, value in load_file(packed).items()}
    save_file(weights, run / "best.safetensors", meta)
    save_file({**weights, "random": torch.get_rng_state()}, run / "last.safetensors", meta)
    packed.unlink()
