"""Fifteen minutes of a GPU, prepared beforehand on a machine without one.

`prepare` fills a folder with all that a bare machine needs: PyTorch with CUDA and Triton are there, and no network.
`card` works there in slices of time, in the order of `STAGES`: models beside the CPU's, seconds of an update now and
before, and trainings at the papers' sizes. The same command goes on where it stopped, from what it left in the
folder; on another machine, from the files of the call before, in the folder `back`.
"""

import importlib.metadata
import io
import json
import os
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
from companion.results.text import markdown
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
BEFORE = "3fa4523"  # the commit whose seconds are measured beside
OF_BEFORE = "pyproject.toml lib tests/gpu tests/tools tests/__init__.py tests/conftest.py tests/test_models.py"
OF_BEFORE += " tests/test_generate.py"
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
NEW = ("equality/mem2mem/*", "equality/read_again/*")  # their kernels are new since BEFORE


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
    command = f"git archive --format tar.gz {BEFORE} {OF_BEFORE}"
    before = subprocess.run(command, shell=True, cwd=project_root(), capture_output=True)
    if before.returncode:
        print(f"without the library as it was before: {before.stderr.decode().strip()}")
    else:
        write_whole(folder / "before.tar.gz", before.stdout)
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
            left += check(found, until, device)
        elif stage == "seconds":
            left += measure(found, folder / "before", until, device)
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


def check(found: Path, until: float, device: str) -> list[str]:
    """Compare models with the CPU's: those of new kernels, and those that no GPU has been compared with."""
    measured = json.loads(checks.MEASURED.read_text(encoding="utf-8"))
    known = {f"equality/{name}" for name in measured["kinds"]["equality"]} - set(measured["failed"])
    never = [name for name in chosen(checks.pieces(), ["equality/*"]) if name not in known]
    return do(chosen(checks.pieces(), [*never, *NEW, "lengths/*", "generation/*"]), device, found, until)


def measure(found: Path, before: Path, until: float, device: str) -> list[str]:
    """Time updates now and before, then those in other precisions, and what their kernels take."""
    now = chosen(checks.pieces(), ["step/*/float32"])
    do(now, device, found, until)
    left = measure_before(now, before, found / "before", until, device)
    others = [name for name in checks.pieces() if name.partition("/")[0] in ("kernels", "blocks", "step")]
    return left + do(others, device, found, until)


def measure_before(names: list[str], tree: Path, found: Path, until: float, device: str) -> list[str]:
    """Time updates by the library as it was before, in its own process."""
    waiting = [name for name in names if not path_of(found, name).exists()]
    if waiting and tree.exists():
        found.mkdir(parents=True, exist_ok=True)
        python_path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))
        command = ["tests.gpu", "piece", *waiting, "--device", device, "--folder", str(found)]
        run_until(until, command, tree, PYTHONPATH=python_path)
    return [f"before/{name}" for name in waiting if not path_of(found, name).exists()]


def train(paper: str, folder: Path, until: float, preset: str, device: str) -> bool:
    """Train a paper's model, or go on. Returns whether it came to its end."""
    places = ["--dataset", str(folder / paper), "--output", str(folder / "runs" / paper)]
    arguments = ["--preset", preset, *places, *TRAINED[paper].split(), "--resume", "--device", device]
    return run_until(until, ["lib.train", paper, *arguments], project_root())


def run_until(until: float, command: list[str], place: Path, **environment: str) -> bool:
    """Run a module, and end it when its time is over. Returns whether it came to its own end, without an error."""
    seconds = max(0.1, until - time.monotonic())
    command = [sys.executable, "-m", *command]
    try:
        return not subprocess.run(command, cwd=place, env={**os.environ, **environment}, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return False


# ------------------------------------------------------------------------------------------------- what comes back


def report(found: Path, out: Path, left: list[str], device: str) -> None:
    """Write results.json and results.md: all pieces so far, and updates before and now."""
    names = [name for name in checks.pieces() if finished(found, name)]
    results, text = tables.report(found, names, left, called(device))
    paths = {name: path_of(found / "before", name) for name in names}
    before = {name: read_numbers(path, "piece", ("seconds",)) for name, path in paths.items() if path.exists()}
    lines = {
        name: [f"{one['seconds']:.3f} s" for one in (old, results["pieces"][name])] for name, old in before.items()
    }
    if lines:
        text += "\n" + markdown(tables.table_of("gpu_results", "Updates", ["before", "now"], lines)) + "\n"
    write_json(out / "results.json", {**results, "before": before})
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
        results = read_numbers(back / "results.json", "results", ("pieces", "before"))
        for folder, pieces in ((found, results["pieces"]), (found / "before", results["before"])):
            for name, made in pieces.items():
                if not path_of(folder, name).exists():
                    folder.mkdir(exist_ok=True)
                    write_json(path_of(folder, name), made)
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
