"""Compare the speed and the memory of this checkout with those of a commit.

    python -m tests.tools.speed HEAD~10                        # every case: about half an hour
    python -m tests.tools.speed HEAD --cases 'update/mem2mem*' 'write/*' --rounds 5

Each case is an update of a model at a preset's sizes, or a beam search of a shipped model. Both
checkouts compute it by turns, each in a process of its own with one thread, so that both meet the
same load of the machine. The table has the least CPU seconds of each, their ratio (below 1: this
checkout is faster) and the peak memory of each process. On the standard error is a line for each
case.

A case that the commit does not have is left out, and named. Texts are random words of ragged
lengths: the shortest has 0.4 times as many words as the longest. Losses are compared, so that equal
work is timed.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Words of the longest text and of its summary: a corpus's means (tests/gpu/cases.py) as the preset
# cuts them.
UPDATES: dict[str, dict[str, Any]] = {
    "mem2mem/paper": {"source": 2000, "target": 200},
    "mem2mem/medium": {"source": 750, "target": 200},
    "mem2mem/demo": {"source": 320, "target": 80},
    "mem2mem/paper/hred": {"source": 2000, "target": 200},
    "mem2mem/paper/pointer-generator": {"source": 400, "target": 100, "documents": 8},
    "mem2mem/medium/pointer-generator": {"source": 750, "target": 200},
    "mem2mem/demo/pointer-generator": {"source": 320, "target": 80},
    "windowed/paper": {"source": 800, "target": 100},
    "windowed/medium": {"source": 1540, "target": 200},
    "windowed/demo": {"source": 240, "target": 80},
    "read_again/paper": {"source": 31, "target": 17},
    "read_again/paper/read-again gru": {"source": 31, "target": 17},
    "read_again/medium": {"source": 80, "target": 20},
    "read_again/demo": {"source": 50, "target": 20},
    "hierarchical_transformer/paper": {"source": 1750, "target": 279, "documents": 4},
    "hierarchical_transformer/medium": {"source": 1500, "target": 256, "documents": 8},
    "hierarchical_transformer/demo": {"source": 480, "target": 160},
}
SEARCHES: dict[str, dict[str, Any]] = {
    **{f"trained/{name}": {"source": n, "target": 60, "documents": 4} for name, n in (
        ("mem2mem", 750), ("windowed", 1540), ("read_again", 80),
        ("hierarchical_transformer_copying", 1500),
    )},
    "mem2mem/paper": {"source": 1000, "target": 60, "documents": 4},
    "mem2mem/paper/pointer-generator": {"source": 400, "target": 60, "documents": 4},
    "windowed/paper": {"source": 800, "target": 60, "documents": 4},
}  # fmt: skip
CASES = {
    **{f"update/{name}": sizes for name, sizes in UPDATES.items()},
    **{f"write/{name}": sizes for name, sizes in SEARCHES.items()},
}


@contextmanager
def exported(commit: str) -> Iterator[Path]:
    """Write `lib` and `trained` of a commit into a temporary folder."""
    archive = subprocess.run(
        ["git", "archive", commit, "lib", "trained"], cwd=ROOT, capture_output=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


class Worker:
    """A process that computes one case in a checkout, once each time it is asked to."""

    def __init__(self, checkout: Path, case: str):
        # This file is the program in both checkouts; it imports the library of the folder that it
        # runs in.
        program = [sys.executable, str(Path(__file__).resolve()), "worker", case]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout)}
        self.process = subprocess.Popen(
            program,
            cwd=checkout,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def measure(self) -> dict[str, float] | None:
        """Return CPU seconds, peak megabytes and a checksum of the next repetition; None where it
        failed."""
        assert self.process.stdin and self.process.stdout
        try:
            print("again", file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self) -> str:
        """End the process; return the last line of its standard error."""
        try:
            _, errors = self.process.communicate(timeout=60)
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self.process.kill()
            return ""
        return (errors.strip().splitlines() or [""])[-1]


def compare(case: str, checkouts: dict[str, Path], rounds: int) -> dict[str, Any] | str:
    """Measure a case in both checkouts by turns: a row of the table, or why there is none."""
    workers = {name: Worker(path, case) for name, path in checkouts.items()}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    for _ in range(rounds + 1):  # the first repetition compiles kernels and fills caches
        for name, worker in workers.items():
            measured = worker.measure()
            if measured is None:
                reasons = {other: w.close() for other, w in workers.items()}
                return f"{name} cannot compute it ({reasons[name]})"
            found[name].append(measured)
    for worker in workers.values():
        worker.close()
    row: dict[str, Any] = {"case": case}
    for name, repetitions in found.items():
        row[f"{name} s"] = min(m["seconds"] for m in repetitions[1:])
        row[f"{name} MB"] = max(m["megabytes"] for m in repetitions)
        row[f"{name} sum"] = repetitions[0]["sum"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        "tests.tools.speed", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("commit", help="what is compared with: a commit, a tag or a branch")
    parser.add_argument(
        "--cases", nargs="*", default=["*"], help="patterns of the cases; by default all"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="repetitions of each; the least time counts"
    )
    arguments = parser.parse_args()
    chosen = [case for case in CASES if any(fnmatch(case, pattern) for pattern in arguments.cases)]
    if not chosen:
        parser.error(f"no case is named so; there are {', '.join(CASES)}")
    lines = [
        "| case | then, s | now, s | now / then | then, MB | now, MB | same sum |",
        "|---|---|---|---|---|---|---|",
    ]
    with ExitStack() as stack:
        checkouts = {"then": stack.enter_context(exported(arguments.commit)), "now": ROOT}
        for case in chosen:
            row = compare(case, checkouts, arguments.rounds)
            if isinstance(row, str):
                print(f"{case}: {row}", file=sys.stderr, flush=True)
                continue
            ratio = row["now s"] / row["then s"]
            difference = abs(row["now sum"] - row["then sum"])
            same = (
                "yes"
                if difference <= 1e-5 * abs(row["then sum"])
                else f"{row['then sum']:g}, {row['now sum']:g}"
            )
            lines.append(
                f"| {case} | {row['then s']:.3f} | {row['now s']:.3f} | {ratio:.2f} "
                f"| {row['then MB']:,.0f} | {row['now MB']:,.0f} | {same} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))


# ---------------------------------------------------------------------------------
# the program of a worker


def work(case: str) -> None:
    """Compute a case each time that a line arrives; write what it took as a line of JSON."""
    import resource
    import time

    import torch

    torch.set_num_threads(1)
    try:
        from lib.system.threads import flush_denormals  # as training does
    except ImportError:  # an older commit
        pass
    else:
        flush_denormals()
    once = (_search if case.startswith("write/") else _update)(case.partition("/")[2], CASES[case])
    for _ in sys.stdin:
        started = time.process_time()
        value = once()
        seconds = time.process_time() - started
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            json.dumps({"seconds": seconds, "megabytes": kilobytes / 1024, "sum": value}),
            flush=True,
        )


def _documents(
    options: Any, vocab_size: int, source: int, target: int, documents: int
) -> list[Any]:
    """Make random texts whose lengths fall from `source` to 0.4 of it, with summaries likewise."""
    from dataclasses import replace

    import numpy as np

    from lib.data.batch import EncodedDocument
    from lib.data.vocabulary import SLIDE

    random = np.random.default_rng(0)
    made = []
    for number in range(documents):
        share = 1 - 0.6 * number / documents
        words, written = max(2, round(share * source)), max(2, round(share * target))
        # sentences of 25 words
        rows = np.full(-(-words // 25), words // -(-words // 25), dtype=np.int32)
        rows[0] += words - rows.sum()
        ids = random.integers(10, vocab_size, words).astype(np.int32)
        ids[::50] = vocab_size  # a word that is unknown, but for its place in the source
        summary = random.integers(10, vocab_size, written).astype(np.int32)
        document = EncodedDocument(str(number), ids, rows, summary, ["unknown"], [])
        if getattr(options, "window", None):
            windows = 1 + max(0, -(-(words - options.window) // options.stride))
            summary[np.linspace(0, written, windows + 1, dtype=int)[1:-1]] = SLIDE
        if hasattr(options, "source_vocab_size"):
            own = random.integers(10, options.source_vocab_size, words).astype(np.int32)
            document = replace(document, source_ids=own)
        if getattr(options, "of_paragraphs", False):
            document = replace(document, graph=np.ones(len(rows) ** 2, dtype=np.float32))
        made.append(document)
    return made


def _update(name: str, sizes: dict[str, Any]) -> Any:
    """Prepare an update of a model with a preset's sizes: a function that makes it and returns its
    loss."""
    import torch

    from lib.data.batch import make_batch
    from lib.papers import resolve

    paper, preset, *variant = name.split("/")
    variant = {"pointer-generator": "ptr-gen-seq2seq"}.get(*variant, *variant) if variant else None
    setup = resolve(paper, preset, variant)
    options, training = setup.options, setup.train
    torch.manual_seed(0)
    model = setup.kind(setup.model_config(vocab_size=options.vocab_size)).train()
    count = {"documents": min(training.batch_size, 64), **sizes}
    batch = make_batch(_documents(options, options.vocab_size, **count), options.vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def once() -> float:
        # the same units are dropped in both checkouts, if they draw them alike
        torch.manual_seed(1)
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(batch)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        return loss.item()

    return once


def _search(name: str, sizes: dict[str, Any]) -> Any:
    """Prepare a beam search: a function that writes summaries of a fixed length and returns the sum
    of their ids."""
    from dataclasses import replace

    import torch

    import lib
    from lib.data.batch import make_batch
    from lib.papers import resolve

    try:
        from lib.decoding.search import beam_search
    except ImportError:  # its place in older commits
        from lib.runs.search import beam_search  # type: ignore[import-not-found]

    if name.startswith("trained/"):
        run = lib.load(name)
        model, options, decode, vocab_size = run.model, run.options, run.decode, len(run.vocabulary)
    else:
        paper, preset, *variant = name.split("/")
        variant = "ptr-gen-seq2seq" if variant else None
        setup = resolve(paper, preset, variant)
        options, decode, vocab_size = setup.options, setup.decode, setup.options.vocab_size
        torch.manual_seed(0)
        model = setup.kind(setup.model_config(vocab_size=vocab_size)).eval()
    batch = make_batch(_documents(options, vocab_size, **sizes), vocab_size)
    decode = replace(decode, min_length=sizes["target"], max_length=sizes["target"])

    def once() -> float:
        with torch.inference_mode():
            found = beam_search(model, batch, decode)
        return float(sum(sum(hypotheses[0].ids) for hypotheses in found))

    return once


if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["worker"] else main()
