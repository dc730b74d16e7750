"""Folders from somebody else that nobody would make: each is used, or refused in one line.

    python -m tests.tools.untrusted --minutes 5            # one folder after the other, until the time is over
    python -m tests.tools.untrusted --minutes 5 --seed 7 --keep

Small runs of every paper of which a part is damaged, enormous, of another kind, or leads elsewhere, opened as
`lib.load` and the commands open them; corpora with pipes, devices and links in place of their files; summaries and
ratings with formulas, markup and control characters in every field. Each in a process of its own with little memory
and time. No traceback, no crash, no hang; nothing is read, written or started outside of the folder. `--keep` puts
the counts into docs/robustness.md. `tests/test_untrusted.py` tries some of each kind.
"""

import argparse
import contextlib
import faulthandler
import io
import json
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import lib
from companion import show_runs
from lib import intervene, score, summarize
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.vocabulary import Vocabulary
from lib.decoding.search import DecodeConfig
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers import PAPERS
from lib.papers.hierarchical_transformer.ranking import ClusterOptions
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.read_again.headlines import HeadlineOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.errors import CompanionError, printable
from lib.system.files import write_json
from lib.training.config import TrainConfig
from lib.training.folder import Recipe, run_config, weights_of
from tests.conftest import make_planted_corpus
from tests.tools import torture
from tests.tools.torture import report

MEMORY, CPU_SECONDS, SECONDS = 2**30, 60, 300  # of a case: more than the process has already, and than any takes
SECRET = "kept-from-everybody"
TEXT = "The mice slept in the north. They ate seeds in their nests. The end of the year came late."
HELD = "used, or refused in one line; nothing outside of the folder was read, written or started"


# ------------------------------------------------------------------------------------------------------------- runs


@cache
def encoders() -> dict[str, tuple[TextEncoder, dict]]:
    """What turns texts into ids, and the sizes of a model, by paper."""
    texts = TEXT.lower().replace(".", " .").split()
    words = Vocabulary(dict.fromkeys(texts))
    pieces = Pieces.train([TEXT] * 9, 60)
    more = Vocabulary([*dict.fromkeys(texts), "other"])
    ranker = ParagraphRanker(ParagraphRankerConfig(len(pieces), 8, 8))
    weights = {name: value.numpy() for name, value in ranker.state_dict().items()}
    size = {"vocab_size": len(words)}
    paragraphs = ClusterOptions(paragraphs=3, paragraph_tokens=30, vocab_size=len(pieces), ranker_width=8)
    narrow, wide = {"embedding": 6, "hidden": 8}, {"width": 16, "heads": 2, "inner": 16}
    headlines = HeadlineOptions(source_tokens=40, summary_tokens=20, **size, source_vocab_size=len(more))
    windows = ArticleOptions(window=8, stride=4, source_tokens=40, summary_tokens=20, **size)
    return {
        "mem2mem": (
            TextEncoder(CohanOptions(section_tokens=40, **size), words),
            {**narrow, "bottleneck": 5, "slots": 3, "compression": 4, **size},
        ),
        "read_again": (
            TextEncoder(headlines, words, more),
            {**narrow, **size, "source_vocab_size": len(more), "encoder": "read-again gru", "copy": False},
        ),
        "windowed": (TextEncoder(windows, words), {**narrow, "window": 8, "stride": 4, **size}),
        "hierarchical_transformer": (
            TextEncoder(paragraphs, pieces, chooser=weights),
            {**wide, "local_layers": 1, "global_layers": 1, "vocab_size": len(pieces)},
        ),
    }


def write_run(paper: str, folder: Path) -> Path:
    """The folder of a small run with random weights."""
    torch.manual_seed(0)
    encoder, sizes = encoders()[paper]
    variant = PAPERS[paper].usual
    kind = PAPERS[paper].variants[variant].kind
    if paper == "read_again":
        variant = "read-again gru"
    model = kind(kind.Config(**sizes))
    corpus = PreparedCorpus("planted", encoder, make_planted_corpus().splits)
    decode = DecodeConfig(beam=2, min_length=3, max_length=8)
    folder.mkdir(parents=True)
    config = run_config(Recipe(paper, variant, "demo", decode), model, corpus, TrainConfig(steps=3))
    write_json(folder / "config.json", {**config, "made_with": {"torch": torch.__version__}})
    meta = {"meta": json.dumps({"step": 3, "loss": 2.5})}
    for name in ("best", "best-3"):
        save_file(weights_of(model), folder / f"{name}.safetensors", meta)
    logged = [{"step": n, "split": "train", "loss": 3.0 / n, "seconds": 2.0 * n} for n in (1, 2, 3)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(m) + "\n" for m in logged), encoding="utf-8")
    encoder.save(folder)
    return folder


# --------------------------------------------------------------------------------------------------- what is damaged

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 10**9, 10**12, 2**63, 10**400, 1e308, -1e-320, 0.5, "", "x", "best-3",
    "../../outside/secret", "/etc/passwd", "\0", "\x1b[31mred", "a\nb", "\ud800",
    "x" * 100_000, [], {}, [[]], [1] * 1_000, {"": ""}, [None],
)  # fmt: skip
RAW = {
    "deep": b"[" * 200_000, "deep objects": b'{"a":' * 100_000, "empty": b"", "null": b"null", "a list": b"[1]",
    "not UTF-8": b'{"paper": "\xff"}', "UTF-16": '{"paper": "mem2mem"}'.encode("utf-16"), "null bytes": b"\0" * 99,
    "many digits": b'{"model": ' + b"9" * 5_000 + b"}", "Python": b"__import__('os').system('touch pwned')",
}  # fmt: skip


def _values(part: Any, keys: tuple = ()) -> list[tuple]:
    """The keys of every value within a JSON object."""
    own = [keys] if keys else []
    pairs = part.items() if isinstance(part, dict) else ()
    return own + [place for key, value in pairs for place in _values(value, (*keys, key))]


def odd_config(random: Random, run: Path) -> None:
    """Values of config.json that are odd, enormous, paths, missing or unknown."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    for _ in range(random.choice([1, 1, 1, 3])):
        *keys, last = random.choice(_values(config))
        part = config
        for key in keys:
            part = part[key] if isinstance(part, dict) and key in part else {}
        if isinstance(part, dict):
            if random.random() < 0.1:
                part.pop(last, None)
            else:
                part[random.choice([last, last, last, last, f"{last}s", "__class__"])] = random.choice(ODD)
    text = json.dumps(config)
    if random.random() < 0.1:
        text = text.replace("null", random.choice(["NaN", "Infinity", "-Infinity", "1e999"]), 1)
    if random.random() < 0.1:
        text = text.replace("{", '{"paper": "mem2mem", ', 1)
    (run / "config.json").write_text(text, encoding="utf-8")


def raw_file(random: Random, run: Path) -> None:
    """Something else in place of a file of text: not JSON, too deep, not UTF-8, 100 MB of spaces."""
    path = run / random.choice(["config.json", "metrics.jsonl"])
    name = random.choice([*RAW, "100 MB", "cut"])
    if name == "100 MB":
        path.write_bytes(b"{" + b" " * 100_000_000 + b"}")
    else:
        path.write_bytes(RAW.get(name, path.read_bytes()[: random.randrange(path.stat().st_size)]))


def odd_metrics(random: Random, run: Path) -> None:
    line = {"step": 3, "split": "val", "loss": 1.0, "seconds": 6.0}
    line[random.choice([*line, "more"])] = random.choice(ODD)
    with open(run / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def odd_weights(random: Random, run: Path) -> None:
    """Tensors of other shapes and kinds, missing or more of them, no numbers; damaged bytes."""
    ranker = run / "ranker.safetensors"
    path = ranker if ranker.exists() and random.random() < 0.3 else run / "best.safetensors"
    tensors, meta = load_file(path), {"meta": json.dumps({"step": 3, "loss": 2.5})}
    name = random.choice(sorted(tensors))
    value = tensors[name]
    changes: dict[str, Callable[[], Any]] = {
        "another shape": lambda: tensors.update({name: torch.zeros(*value.shape, 2)}),
        "flat": lambda: tensors.update({name: value.flatten()[:-1].contiguous()}),
        "no shape": lambda: tensors.update({name: torch.tensor(1.0)}),
        "missing": lambda: tensors.pop(name),
        "more": lambda: tensors.update({"model.more": torch.zeros(2), "other": torch.zeros(2)}),
        "another kind": lambda: tensors.update({name: value.to(random.choice(KINDS_OF_NUMBERS))}),
        "no number": lambda: tensors.update({name: torch.full_like(value, random.choice([np.nan, np.inf, -np.inf]))}),
        "enormous": lambda: tensors.update({name: torch.full_like(value, 3e38)}),
        "meta": lambda: meta.update(meta=random.choice(["", "null", "[" * 9_999, '{"step": "x"}', '{"loss": [1]}'])),
        "no meta": lambda: meta.clear(),
        "named otherwise": lambda: tensors.update({f"model.{'x' * 9_999}": tensors.pop(name)}),
    }
    changes[random.choice(sorted(changes))]()
    save_file(tensors, path, meta)
    if path.name == "best.safetensors":
        shutil.copy(path, run / "best-3.safetensors")
    if random.random() < 0.2:
        _damage(random, path)


KINDS_OF_NUMBERS = (
    torch.int8,
    torch.bool,
    torch.int64,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
)


def _damage(random: Random, path: Path) -> None:
    """Bytes changed, cut or put in; or another length of the header."""
    data = bytearray(path.read_bytes())
    if random.random() < 0.3:
        data[:8] = struct.pack("<Q", random.choice([0, 1, len(data), 200_000_000, 2**40, 2**63, 2**64 - 1]))
    for _ in range(random.choice([0, 1, 20])):
        data[random.randrange(len(data))] = random.randrange(256)
    cut = random.choice([len(data), random.randrange(len(data)), 0])
    path.write_bytes(data[:cut] + random.randbytes(random.choice([0, 0, 9])))


def damaged_weights(random: Random, run: Path) -> None:
    """Bytes of the weights: a cut file, a header of 200 MB, a file of 1 TB that takes no place on the disk."""
    path, kind = run / "best.safetensors", random.random()
    if kind < 0.1:
        header = json.dumps({"model.x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
        path.write_bytes(struct.pack("<Q", 200_000_000) + header + b" " * (200_000_000 - len(header)))
    elif kind < 0.2:
        os.truncate(path, 2**40)
    elif kind < 0.3:
        shape = {"dtype": "F32", "shape": [2**20, 2**18], "data_offsets": [0, 2**40]}
        header = json.dumps({"model.embedding.weight": shape}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        os.truncate(path, 8 + len(header) + 2**40)
    else:
        _damage(random, path)


def odd_words(random: Random, run: Path) -> None:
    """The vocabulary, or the SentencePiece model: lines twice, empty, with control characters, 10 million; bytes."""
    path = run / random.choice([p.name for p in run.iterdir() if "vocabulary" in p.name or p.name == "pieces.model"])
    if path.suffix == ".model":
        other = [random.randbytes(10_000), b"", b"\0" * 99, (run / "config.json").read_bytes(), b"w1\nw2\n"]
        if random.random() < 0.3:
            path.write_bytes(random.choice(other))
        else:
            _damage(random, path)
        return
    lines = path.read_text(encoding="utf-8").split("\n")
    place = random.randrange(len(lines))
    odd = [lines[0], "", " ", "a b", "\x1b]0;red\x07", "\x85", "\u2028", "\0", "[PAD]", "x" * 1_000_000, "\u202e"]
    kind = random.random()
    if kind < 0.1:
        path.write_bytes(b"".join(b"%d\n" % n for n in range(10_000_000)))
    elif kind < 0.2:
        os.truncate(path, 2**36)
    elif kind < 0.3:
        path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
    else:
        lines[place] = random.choice(odd)
        path.write_text("\n".join(lines), encoding="utf-8")
    if random.random() < 0.5:  # as the folder's own config says it
        _say_encoder(run)


def _say_encoder(run: Path) -> None:
    """Let config.json name the vocabulary that is there, where one is."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    with contextlib.suppress(Exception):
        encoder = TextEncoder.load(run, encoders()[config["paper"]][0].options)
        write_json(run / "config.json", {**config, "encoder": encoder.digest()})


def other_kind(random: Random, run: Path) -> None:
    """A pipe, a device, a folder, or a link that leads elsewhere, in place of a file or of the folder itself."""
    replace_file(random, random.choice(sorted(run.iterdir())), run.parent / "outside")
    if random.random() < 0.1:
        run.rename(run.with_name("elsewhere"))
        run.symlink_to("elsewhere")


def replace_file(random: Random, path: Path, outside: Path) -> None:
    kind = random.choice(["pipe", "folder", "zero", "null", "loop", "nowhere", "outside", "outside", "secret"])
    shutil.copy(path, outside / path.name)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        leads = {"zero": "/dev/zero", "null": "/dev/null", "loop": path.name, "nowhere": "/nowhere/at/all"}
        own = {"outside": outside / path.name, "secret": outside / "secret"}
        path.symlink_to(leads.get(kind, own.get(kind, "")))


def traps(random: Random, run: Path) -> None:
    """A Git configuration that names programs; links where scores and temporary files are going to be written."""
    pwned = run.parent / "outside" / "pwned"
    (run / "trap.sh").write_text(f"#!/bin/sh\ntouch {pwned}\n", encoding="utf-8")
    (run / "trap.sh").chmod(0o755)
    for part in ("objects", "refs"):
        (run / ".git" / part).mkdir(parents=True)
    (run / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    names = [f"\t{name} = {run / 'trap.sh'}" for name in ("fsmonitor", "pager", "editor", "sshCommand", "hooksPath")]
    (run / ".git" / "config").write_text("\n".join(["[core]", *names]) + "\n", encoding="utf-8")
    for name in ("scores.json", "summaries.jsonl"):
        for place in (run / name, run / f".{name}.{os.getpid()}.tmp"):
            place.symlink_to(run.parent / "outside" / random.choice(["secret", "new"]))


DAMAGES = {
    "values of config.json": odd_config, "files that are no JSON": raw_file, "metrics": odd_metrics,
    "weights": odd_weights, "bytes of weights": damaged_weights, "vocabularies": odd_words,
    "pipes, devices, links": other_kind, "traps": traps,
}  # fmt: skip

# ----------------------------------------------------------------------------------------------------- what opens it


def _load(run: Path) -> None:
    opened = lib.load(run)
    _ = opened.step, opened.hours
    opened.summarize([TEXT], attention=True)


def _summarize(run: Path) -> None:
    summarize.main([str(run), str(run.parent / "text.txt"), "--html", str(run.parent / "page.html")])


def _show(run: Path) -> None:
    arguments = [
        "--dataset",
        str(run.parent / "corpus"),
        "--output",
        str(run.parent / "shown.json"),
        f"Mem2Mem={run}",
    ]
    show_runs.main(["samples", "mem2mem_table6", *arguments])


def _score(run: Path) -> None:
    score.main(["run", str(run), "--dataset", str(run.parent / "sumpubmed"), "--documents", "2"])


def _intervene(run: Path) -> None:
    intervene.main([str(run), "--dataset", str(run.parent / "corpus"), "--documents", "2"])


OPENS = {
    "lib.load": _load,
    "lib.summarize": _summarize,
    "companion.show_runs": _show,
    "lib.score": _score,
    "lib.intervene": _intervene,
}


def surroundings(place: Path) -> None:
    """What stands around a run: a text, a corpus under two names, and what nobody may read or write."""
    (place / "outside").mkdir(parents=True)
    (place / "outside" / "secret").write_text(SECRET, encoding="utf-8")
    (place / "text.txt").write_text(TEXT, encoding="utf-8")
    record = {"text": TEXT, "summary": "Mice slept."}
    for name in ("corpus", "sumpubmed"):
        (place / name).mkdir()
        for split in ("train", "val", "test"):
            lines = [json.dumps({"id": f"{split}-{n}", **record}) for n in range(2)]
            (place / name / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- one process


class Fault(AssertionError):
    """What must not become of a folder."""


def alone(place: Path, function: Callable[[], object]) -> str:
    """What becomes of a function in a process of its own: "used" or "refused".

    place: a folder, all that it may speak of. Raises Fault for a traceback, an error of several lines or of no place,
    a signal, a hang, too much memory, control characters on the terminal, and what happens outside.
    """
    outside = _contents(place / "outside")
    reads, writes = os.pipe()
    process = os.fork()
    if not process:
        os.close(reads)
        _confined(place, function, writes)
    os.close(writes)
    data, until = b"", time.monotonic() + SECONDS
    with open(reads, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            if not (part := pipe.read(2**16)):
                break
            data += part
        else:
            os.kill(process, signal.SIGKILL)
    status = os.waitpid(process, 0)[1]
    if not os.WIFEXITED(status) or not data:
        raise Fault(f"ended by {signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else status}")
    outcome, said, printed, events = json.loads(data)
    if outcome == "traceback":
        raise Fault(said)
    if outcome == "refused" and ("\n" in said or str(place) not in said or printable(said) != said):
        raise Fault(f"an error that is no line about a place: {said!r}")
    if printable(printed) != printed.replace("\r", "") or SECRET in printed + said:
        raise Fault(f"printed: {printed!r}")
    if events:
        raise Fault(f"outside of the folder: {events[:3]}")
    if _contents(place / "outside") != outside:
        raise Fault("something was written outside of the folder")
    return outcome


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _confined(place: Path, function: Callable[[], object], writes: int) -> None:
    """Run in a child: little memory and time, what is printed kept, what is opened and started watched."""
    faulthandler.disable()  # a crash is the parent's to report
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    events: list[str] = []
    sys.addaudithook(lambda event, arguments: _watch(event, arguments, str(place / "outside"), events))
    printed, said = io.StringIO(), ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            function()
            outcome = "used"
        except SystemExit as error:
            outcome, said = ("refused", error.code) if isinstance(error.code, str) else ("traceback", repr(error))
        except CompanionError as error:
            outcome, said = "refused", str(error)
        except BaseException:
            outcome, said = "traceback", traceback.format_exc()
    answer = json.dumps([outcome, said, printed.getvalue(), events]).encode()
    try:
        while answer:
            answer = answer[os.write(writes, answer) :]
    finally:
        os._exit(0)


def _watch(event: str, arguments: tuple, outside: str, events: list[str]) -> None:
    """Note what is read or written where nobody may, and what is started besides git."""
    if event == "open" and isinstance(arguments[0], str | Path):
        path = str(arguments[0])
        if path.startswith((outside, "/etc/passwd", "/dev/zero")):
            events.append(f"open {path}")
    elif event in ("os.system", "os.exec", "os.posix_spawn") or (
        event == "subprocess.Popen" and arguments[1][0] != "git"
    ):
        events.append(f"{event} {arguments[1:2]}")


# ------------------------------------------------------------------------------------------------------------ kinds


WAYS = ["lib.load", "lib.load", "lib.summarize", "lib.summarize", "lib.score", "lib.intervene", "companion.show_runs"]


def try_run(random: Random, place: Path, damage: str, opens: str | None = None, paper: str | None = None) -> str:
    """A damaged run, opened in one way."""
    surroundings(place)
    opens = opens or ("lib.score" if damage == "traps" else random.choice(WAYS))
    paper = paper or ("mem2mem" if opens == "companion.show_runs" else random.choice(list(encoders())))
    run = place / "run"
    shutil.copytree(good_runs() / paper, run)
    DAMAGES[damage](random, run)
    return alone(place, lambda: OPENS[opens](run))


@cache
def good_runs() -> Path:
    """A folder with a good run of each paper."""
    folder = Path(tempfile.mkdtemp(prefix="good-runs-"))
    for paper in encoders():
        write_run(paper, folder / paper)
    return folder


def try_corpus(random: Random, place: Path) -> str:
    """A corpus in any format, a file of which is a pipe, a device, a folder or a link."""
    surroundings(place)
    files = torture.corpora()[random.choice(sorted(torture.corpora()))]
    for name, data in files.items():
        (place / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "texts" / name).write_bytes(data)
    paths = [path for path in (place / "texts").rglob("*") if path.is_file()]
    replace_file(random, random.choice(sorted(paths)), place / "outside")
    return alone(place, lambda: torture.outcomes(str(place / "texts")))


TRIES: dict[str, Callable[[Random, Path], str]] = {
    **{f"runs: {name}": (lambda random, place, name=name: try_run(random, place, name)) for name in DAMAGES},
    "corpora: pipes, devices, links": try_corpus,
}


def campaign(minutes: float, seed: int) -> dict[str, Counter]:
    """Cases of each kind in turn until the time is over; what became of them. A folder with a fault stays."""
    tried: dict[str, Counter] = {what: Counter() for what in TRIES}
    folder, number = Path(tempfile.mkdtemp(prefix="untrusted-")), 0
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        for what, attempt in TRIES.items():
            number += 1
            place = folder / str(number)
            try:
                tried[what][attempt(Random(f"{seed} {number}"), place)] += 1
            except Fault as fault:
                raise Fault(f"{what}, in {place}: {fault}") from None
            shutil.rmtree(place)
    shutil.rmtree(folder)
    return tried


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="put the counts into docs/robustness.md")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork
    try:
        tried = campaign(args.minutes, args.seed)
    except Fault as fault:
        print(f"fault, seed {args.seed}: {fault}")
        return 1
    return report(
        tried, HELD, f"python -m tests.tools.untrusted --minutes {args.minutes:g} --seed {args.seed}", args.keep
    )


if __name__ == "__main__":
    sys.exit(main())
