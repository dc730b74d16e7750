"""Fifteen minutes of a GPU, prepared beforehand on a machine without one.

`prepare` fills a folder with all that a bare machine needs: PyTorch with CUDA and Triton are there, and no network.
`card` works there in slices of time, in the order of `STAGES`: models beside the CPU's, seconds of an update now and
before, and a training at the paper's size. The same command goes on where it stopped, from what it left in the
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
from fnmatch import fnmatch
from pathlib import Path

import torch
from safetensors.torch import load_file, save, save_file

from lib.data.prepared import PreparedCorpus
from lib.data.split import Split
from lib.papers import PAPERS
from lib.papers.paper import slug
from lib.results.text import markdown
from lib.runs.folder import load_tensors, read_meta, read_metrics
from lib.system.errors import InputError
from lib.system.files import project_root, read_numbers, write_json, write_whole
from tests.gpu import checks, tables
from tests.gpu.pieces import do, finished, path_of
from tests.gpu.places import called

FOLDER = project_root() / "runs" / "gpu" / "card"
MOST = 60 * 2**20  # bytes of the folder, which travels to the card
PART = 15 * 2**20  # bytes of a file that comes back, at most
BEFORE = "3fa4523"  # the commit whose seconds are measured beside
OF_BEFORE = (
    "pyproject.toml", "lib", "tests/gpu", "tests/tools",
    *(f"tests/{name}.py" for name in ("__init__", "conftest", "test_models", "test_generate")),
)  # fmt: skip
# of the packages that lib.train and lib.score import those that a machine with PyTorch may lack; all are Python only
PACKAGES = ("tyro", "docstring-parser", "typeguard", "rouge-score", "nltk", "defusedxml", "platformdirs")
# paper -> arguments of its training. The ranker of paragraphs would take hours to train: their order is kept instead.
TRAINED = {
    "mem2mem": ("--save-every", "100", "--validate-every", "500"),
    "hierarchical_transformer": ("--save-every", "25", "--validate-every", "100", "--keep-best", "1"),
}
OPTIONS = {"hierarchical_transformer": {"ranking": "order"}}
STAGES = {"checks": 0.35, "seconds": 0.5, "train": 1.0}  # the share of the time that is left then
RESERVE = 20  # seconds in which results are written
NEW = ("equality/mem2mem/*", "equality/read_again/*")  # their kernels are new since BEFORE
CHECKS = ("lengths/*", "generation/*")
SECONDS = "step/*/float32"


# -------------------------------------------------------------------------------------------- on a machine without


def prepare(folder: Path, corpus: str, documents: int, held_out: int, preset: str) -> None:
    """Write what a card needs; `documents` to train on, evenly spread over the corpus, and `held_out` of each other
    split."""
    folder.mkdir(parents=True, exist_ok=True)
    if others := [path.name for path in folder.iterdir() if path.name != "back"]:
        raise InputError(f"{folder} holds {others[0]!r}: remove all but `back` to prepare it anew")
    for paper in TRAINED:
        setup = PAPERS[paper].setup(preset, options=OPTIONS.get(paper))
        prepared = shortened(setup.open_corpus(corpus), documents, held_out)
        prepared.save(folder / paper)
        with tarfile.open(folder / f"{paper}.tar.xz", "w:xz") as tar:
            tar.add(folder / paper, ".")
        shutil.rmtree(folder / paper)
    write_json(folder / "card.json", {"preset": preset})
    copy_packages(folder / "site")
    archive_before(folder / "before.tar.gz")
    sizes = {path.name: sum(f.stat().st_size for f in [path, *path.rglob("*")]) for path in sorted(folder.iterdir())}
    print(*(f"{name}: {size / 2**20:.1f} MiB" for name, size in sizes.items()), sep="\n")
    if (whole := sum(sizes.values())) > MOST:
        print(f"{folder} has {whole / 2**20:.0f} MiB, more than {MOST >> 20}: ask for fewer --documents")


def shortened(corpus: PreparedCorpus, documents: int, held_out: int) -> PreparedCorpus:
    """At most so many documents of each split; those for training without their texts, which training does not
    read."""
    splits = {}
    for name, split in corpus.splits.items():
        count = min(len(split), documents if name == "train" else held_out)
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


def archive_before(path: Path) -> None:
    command = ["git", "archive", "--format", "tar.gz", "--output", str(path), BEFORE, *OF_BEFORE]
    try:
        done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True)
        reason = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        reason = str(error)
    if reason:
        path.unlink(missing_ok=True)
        print(f"without the library as it was before: {reason}")


# ------------------------------------------------------------------------------------------------------ on the card


def card(folder: Path, out: Path, minutes: float, stages: list[str], device: str) -> list[str]:
    """Do what fits into so many minutes, and write what is to come back to `out`. Returns what was not reached."""
    ends = time.monotonic() + 60 * minutes - RESERVE
    out.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.tar.*"):
        unpack(path)
    found = folder / slug(called(device))
    restore(folder / "back", found, folder / "runs")
    left = []
    for stage in stages or STAGES:
        now = time.monotonic()
        until = now + STAGES[stage] * (ends - now)
        if stage == "train":
            left += train(folder, until, device)
        else:
            left += (check if stage == "checks" else measure)(folder, found, until, device)
        report(folder, found, out, left, device)
    for name in [paper for paper in TRAINED if (folder / "runs" / paper / "last.safetensors").exists()]:
        pack(folder / "runs" / name, out)
    print(f"not reached: {', '.join(left)}" if left else "all was reached")
    return left


def unpack(path: Path) -> None:
    """Unpack an archive beside it, unless that was done."""
    folder = path.parent / path.name.partition(".")[0]
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        with tarfile.open(path) as tar:
            tar.extractall(unfinished, filter="data")
        unfinished.rename(folder)


def check(folder: Path, found: Path, until: float, device: str) -> list[str]:
    """Compare models with the CPU's: those of new kernels, and those that no GPU has been compared with."""
    measured = json.loads(checks.MEASURED.read_text(encoding="utf-8"))
    names = [name for name in checks.pieces() if name.startswith("equality/")]
    known = {f"equality/{name}" for name in measured["kinds"]["equality"]} - set(measured["failed"])
    never = [name for name in names if name not in known]
    new = [name for name in of_patterns(*NEW) if name not in never]
    return do([*never, *new, *of_patterns(*CHECKS)], device, found, until)


def of_patterns(*patterns: str) -> list[str]:
    return [name for pattern in patterns for name in checks.pieces() if fnmatch(name, pattern)]


def measure(folder: Path, found: Path, until: float, device: str) -> list[str]:
    """Time updates now, before, where their time goes, and in the other precisions."""
    now = of_patterns(SECONDS)
    left = do(now, device, found, until)
    left += measure_before(now, folder / "before", found / "before", until, device)
    others = [name for name in of_patterns("kernels/*", "step/*") if name not in now]
    return left + do(others, device, found, until)


def measure_before(names: list[str], tree: Path, found: Path, until: float, device: str) -> list[str]:
    """Time updates by the library as it was before, in its own process."""
    found.mkdir(parents=True, exist_ok=True)
    waiting = [name for name in names if not path_of(found, name).exists()]
    if waiting and tree.exists():
        command = [sys.executable, "-m", "tests.gpu", "piece", *waiting, "--device", device, "--folder", str(found)]
        python_path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))
        run_until(until, command, tree, {**os.environ, "PYTHONPATH": python_path})
    return [f"before/{name}" for name in names if not path_of(found, name).exists()]


def train(folder: Path, until: float, device: str) -> list[str]:
    """Train the papers' models one after the other, the later ones in what time the earlier ones leave."""
    preset = read_numbers(folder / "card.json", "card", ("preset",))["preset"]
    left = []
    for number, (paper, arguments) in enumerate(TRAINED.items(), 1):
        options = [part for name, value in OPTIONS.get(paper, {}).items() for part in (f"--options.{name}", value)]
        command = [
            sys.executable, "-m", "lib.train", paper, "--dataset", str(folder / paper), "--preset", preset, *options,
            *arguments, "--output", str(folder / "runs" / paper), "--resume", "--device", device,
        ]  # fmt: skip
        now = time.monotonic()
        last = number == len(TRAINED)
        if not run_until(until if last else now + 2 / 3 * (until - now), command, project_root(), dict(os.environ)):
            left.append(f"the end of {paper}'s training")
    return left


def run_until(until: float, command: list[str], place: Path, environment: dict[str, str]) -> bool:
    """Run a command, and end it when its time is over. Returns whether it came to its own end, without an error."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        return False
    try:
        return not subprocess.run(command, cwd=place, env=environment, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return False


# ------------------------------------------------------------------------------------------------- what comes back


def report(folder: Path, found: Path, out: Path, left: list[str], device: str) -> None:
    """Write results.json and results.md: all pieces so far, updates now and before, and losses."""
    names = [name for name in checks.pieces() if finished(found, name)]
    results, text = tables.report(found, names, left, called(device))
    before = {
        name: json.loads(path.read_text()) for name in names if (path := path_of(found / "before", name)).exists()
    }
    lines = {
        name: [f"{old['seconds']:.3f} s", f"{results['pieces'][name]['seconds']:.3f} s"]
        for name, old in before.items()
    }
    losses = {
        f"{paper}, update {row['step']:,}, {row['split']}": [f"{row['loss']:.3f}"]
        for paper in TRAINED
        for row in last_losses(folder / "runs" / paper)
    }
    for title, columns, cells in (
        ("Updates before and now", ["before", "now"], lines),
        ("Training", ["loss"], losses),
    ):
        if cells:
            text += f"\n{markdown(tables.table_of('gpu_results', title, columns, cells))}\n"
    write_json(out / "results.json", {**results, "before": before})
    write_whole(out / "results.md", text)


def last_losses(run: Path) -> list[dict]:
    """The last training loss and the last validation loss of a run."""
    metrics = read_metrics(run)
    return [[row for row in metrics if row["split"] == split][-1] for split in {row["split"]: 0 for row in metrics}]


def pack(run: Path, out: Path) -> None:
    """Write a run in files of at most `PART`, with its last weights as float16.

    Adam's moments are not in it, nor the other bits of the weights: a run that goes on from there is no longer the
    run that was not stopped.
    """
    last = run / "last.safetensors"
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
