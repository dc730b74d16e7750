"""Training under bad conditions, compared with undisturbed runs byte for byte.

    python -m tests.tools.torture_runs --minutes 3        # one condition after the other, until the time is over
    python -m tests.tools.torture_runs --minutes 3 --seed 7

Kills and Ctrl-C at random moments; a disk that is full at a random moment; folders whose names have spaces and other
alphabets; another working directory. Prints how often each was tried; ends with status 1 at the first difference, and
where one was never tried. `--keep` puts the counts into docs/robustness.md.
"""

import argparse
import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.system.errors import RunError
from lib.training.config import TrainConfig
from lib.training.folder import Recipe
from lib.training.loop import train
from tests.conftest import make_planted_corpus
from tests.tools.torture import report

CONFIG = TrainConfig(batch_size=4, steps=24, learning_rate=1e-2, validate_every=5, save_every=1, log_every=1)
NAMES = (
    "a run with spaces", "прогон", "運行", "‏הרצה", "e\u0301te\u0301", "100% #1 'quoted' \"twice\" $HOME *?", "-dash",
    "new\nline",
)  # fmt: skip
MODELS: dict[str, Callable] = {
    "mem2mem": lambda: Mem2Mem(Mem2MemConfig(20, embedding=6, hidden=8, bottleneck=6, slots=2, compression=4)),
    "read_again": lambda: ReadAgain(ReadAgainConfig(20, 20, embedding=5, hidden=6, dropout=0.3)),
    "hierarchical_transformer": lambda: HierarchicalTransformer(
        HierarchicalTransformerConfig(20, width=8, heads=2, inner=12, local_layers=1, global_layers=1, dropout=0.2)
    ),
}
# Forked, from a process that has done nothing but these trainings, so that what is imported and compiled is there at
# once and kills hit the training.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.tools.torture_warm"])
STOPPED = 3  # exit status of a training that says in one line why it cannot go on


def run(paper: str, folder: Path | str) -> None:
    """The training that is disturbed: small, with dropout where there is some, saved at every step."""
    torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork
    torch.manual_seed(0)
    train(Recipe(paper), MODELS[paper](), make_planted_corpus(), CONFIG, folder, resume=True, progress=False)


def elsewhere(function: Callable, *arguments):
    """A process of its own for a function."""
    process = _processes.Process(target=function, args=arguments)
    process.start()
    return process


def started(paper: str, folder: Path):
    """The training in a process of its own."""
    return elsewhere(_quietly, paper, folder)


def _quietly(paper: str, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it may be ignored
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for what Python says of a KeyboardInterrupt
    run(paper, folder)


def finished(process) -> int:
    """The exit status of a process, which may take two minutes."""
    process.join(120)
    if process.is_alive():
        process.kill()
        raise AssertionError("a training of a second has not ended after two minutes")
    return process.exitcode


def completed(paper: str, folder: Path) -> None:
    """The training to its end, from where it was stopped, if it was."""
    status = finished(started(paper, folder))
    assert status == 0, f"{paper}: exit status {status} where nothing disturbs, in {folder}"


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a run; of its losses all but the seconds. Without what a kill leaves under a temporary name."""
    found = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != ".lock" and p.suffix != ".tmp"}
    losses = [json.loads(line) for line in found["metrics.jsonl"].splitlines()]
    kept = [{k: v for k, v in line.items() if k != "seconds"} for line in losses]
    return {**found, "metrics.jsonl": json.dumps(kept).encode()}


class Undisturbed:
    """What a run has to give, and how long it takes."""

    def __init__(self, folder: Path):
        self.contents, self.seconds = {}, {}
        for paper in MODELS:
            completed(paper, folder / f"undisturbed {paper}")
            self.contents[paper] = contents(folder / f"undisturbed {paper}")
            begun = time.perf_counter()
            completed(paper, folder / f"again {paper}")
            self.seconds[paper] = time.perf_counter() - begun
            self.check(paper, folder / f"again {paper}", "the same twice")

    def check(self, paper: str, folder: Path, how: str) -> None:
        """AssertionError that names the files where they are not the same."""
        found, expected = contents(folder), self.contents[paper]
        differing = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
        assert not differing, f"{paper}, {how}: {', '.join(differing)} differ in {folder}"


def killed(random: np.random.Generator, right: Undisturbed, folder: Path, most: int = 6) -> Counter:
    """One to `most` kills or Ctrl-C, each at a random moment, then the rest without. Returns how many there were, and
    how many came when the run was at its end."""
    paper = str(random.choice(list(MODELS)))
    count, landed, wanted = Counter(), 0, int(random.integers(1, most + 1))
    seconds = right.seconds[paper]
    while landed < wanted:
        process = started(paper, folder)
        process.join(float(random.uniform(0.05, 1.0)) * seconds)
        how = str(random.choice(["killed", "killed", "by Ctrl-C"]))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL if how == "killed" else signal.SIGINT)
        if finished(process):
            landed += 1
            count[how] += 1
            continue
        count["too late"] += 1
        if landed:
            break
        shutil.rmtree(folder)  # from the beginning: the machine has become faster
        seconds /= 2
    completed(paper, folder)
    right.check(paper, folder, f"{landed} kills")
    return count


@contextmanager
def full_disk(writes: int):
    """After so many more writes of whole files the disk is full: half of the next one is written."""
    left, whole = [writes], Path.write_bytes

    def write(path: Path, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            whole(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole(path, data)

    Path.write_bytes = write
    try:
        yield
    finally:
        Path.write_bytes = whole


def disk_fills(random: np.random.Generator, right: Undisturbed, folder: Path) -> Counter:
    """A disk that is full twice, at a random moment each time, and then has room again. Returns how often it was."""
    paper = str(random.choice(list(MODELS)))
    count = Counter()
    for _ in range(2):
        status = finished(elsewhere(_on_a_full_disk, paper, folder, int(random.integers(0, 40))))
        assert status in (0, STOPPED), f"{paper}: exit status {status} on a full disk, in {folder}"
        count["stopped in one line"] += status == STOPPED
    completed(paper, folder)
    right.check(paper, folder, "a full disk")
    return count


def _on_a_full_disk(paper: str, folder: Path, writes: int) -> None:
    with full_disk(writes):
        try:
            run(paper, folder)
        except RunError as error:
            message = str(error)
            assert os.strerror(errno.ENOSPC) in message and "\n" not in message, message
            sys.exit(STOPPED)


def odd_names(random: np.random.Generator, right: Undisturbed, folder: Path) -> Counter:
    """A folder with a name in which something could go wrong, from another working directory, by a relative path."""
    paper, name = str(random.choice(list(MODELS))), str(random.choice(NAMES))
    folder.mkdir()
    assert finished(elsewhere(_in_folder, folder, paper, name)) == 0, f"{paper}: not trained in {name!r}"
    right.check(paper, folder / name, f"a folder named {name!r}")
    return Counter({"trained": 1})


def _in_folder(folder: Path, paper: str, name: str) -> None:
    os.chdir(folder)
    run(paper, name)


CONDITIONS = {"trainings that are stopped": killed, "full disks": disk_fills, "odd folders": odd_names}


def campaign(minutes: float, seed: int) -> dict[str, Counter]:
    """Conditions in turn until the time is over; how often each was tried. Runs that differ stay where they are."""
    random, tried = np.random.default_rng(seed), {what: Counter() for what in CONDITIONS}
    folder, number = Path(tempfile.mkdtemp(prefix="torture-")), 0
    right, until = Undisturbed(folder), time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        for what, condition in CONDITIONS.items():
            number += 1
            tried[what] += condition(random, right, folder / str(number))
    shutil.rmtree(folder)
    return tried


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="put the counts into docs/robustness.md")
    args = parser.parse_args(arguments)
    try:
        tried = campaign(args.minutes, args.seed)
    except AssertionError as error:
        print(f"difference, seed {args.seed}: {error}")
        return 1
    command = f"python -m tests.tools.torture_runs --minutes {args.minutes:g} --seed {args.seed}"
    return report(tried, "afterwards every file as of a run that nothing disturbed", command, args.keep)


def trained_at_once(folder: Path, count: int = 2, seconds: float = 240) -> list[subprocess.Popen]:
    """So many `python -m lib.train` at the same time, on one small corpus that none has prepared; all ended."""
    command = [sys.executable, "-m", "lib.train", "mem2mem", "--preset", "demo", "--limit", "8", "--steps", "6"]
    ways = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = [subprocess.Popen([*command, "--output", str(folder / str(n))], **ways) for n in range(count)]
    until = time.monotonic() + seconds
    for process in running:
        try:
            process.wait(max(1.0, until - time.monotonic()))
        finally:
            if process.poll() is None:
                process.kill()
    return running


if __name__ == "__main__":
    sys.exit(main())
