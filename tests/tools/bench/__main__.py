"""lib against the textbook way, in pairs, each side in a process of its own: `make bench`, or
`python -m tests.tools.bench NAME ...` for some of it.

Writes `results.json` beside this file and prints a table. Absolute times belong to one machine and one hour; the
ratios are what counts. Pairs alternate, and the median of their ratios is reported.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS
from lib.system.command_line import command_parser
from lib.system.files import project_root, write_json

PAIRS = 3
CLUSTERS = {"model": "hierarchical_transformer", "batch": 4, "source": 24, "target": 140}
POINTER = {"model": "pointer_generator", "batch": 8, "source": 400, "target": 100}
MEM2MEM = {"model": "mem2mem", "batch": 4, "source": 2000, "target": 200, "repeats": 1}


def measure(item: str, **arguments) -> dict:
    command = [sys.executable, "-m", "tests.tools.bench.measure", item, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project_root())
    if done.returncode:
        sys.exit(f"{item} {arguments}: exit status {done.returncode}\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    print(f"  {item} {arguments}: {min(result.get('seconds', [0])):.2f} s", flush=True)
    return result


def compare(what: str, ours: tuple, theirs: tuple, same: str, close: float = 1e-4) -> dict:
    """Medians of alternating pairs; both sides must give the same result in `same`, numbers to a share `close`."""
    pairs = [(measure(ours[0], **ours[1]), measure(theirs[0], **theirs[1])) for _ in range(PAIRS)]
    for a, b in pairs:
        if not _equal(a[same], b[same], close):
            sys.exit(f"{what}: the two ways differ in {same}: {a[same]} and {b[same]}")
    seconds = [(min(a["seconds"]), min(b["seconds"])) for a, b in pairs]
    return {
        "what": what,
        "seconds": median(a for a, _ in seconds),
        "seconds_textbook": median(b for _, b in seconds),
        "times_faster": median(b / a for a, b in seconds),
        "ratios": [b / a for a, b in seconds],
        "peak_gb": median(a["peak_gb"] for a, _ in pairs),
        "peak_gb_textbook": median(b["peak_gb"] for _, b in pairs),
        "step_gb": median(a["step_gb"] for a, _ in pairs),
        "step_gb_textbook": median(b["step_gb"] for _, b in pairs),
        "flop_textbook": pairs[0][1].get("flop"),
    }


def _equal(a, b, close: float) -> bool:
    return abs(a - b) <= close * abs(a) if isinstance(a, float) else a == b


def ways(what: str, sizes: dict, ours: str, theirs: str, close: float = 1e-4) -> dict:
    """A training step in two ways."""
    return compare(what, ("train", {**sizes, "way": ours}), ("train", {**sizes, "way": theirs}), "loss", close)


def train_pair(what: str, sizes: dict) -> dict:
    row = ways(what, sizes, "lib", "textbook")
    row["floor_seconds"] = row["flop_textbook"] / measure("products")["flop_per_second"]
    row["times_floor"] = row["seconds"] / row["floor_seconds"]
    row["profile"] = measure("profile", **{k: v for k, v in sizes.items() if k != "repeats"})["percent"]
    return row


def search_pair(what: str, model: str) -> dict:
    together, alone = {"model": model, "at_once": 32}, {"model": model, "at_once": 1}
    return compare(what, ("search", together), ("search", alone), "ids")


def growth(what: str, sizes: list[dict]) -> dict:
    """Seconds and memory of a training step as one length grows."""
    rows = []
    for size in sizes:
        result = measure("train", model="mem2mem", way="lib", batch=4, repeats=2, **size)
        rows.append({**size, "seconds": min(result["seconds"]), "step_gb": result["step_gb"]})
    return {"what": what, "rows": rows}


def lengths(what: str) -> dict:
    """Seconds and memory of a summary as the text grows: windows streamed or not, and attention to everything."""
    cases = [("streamed", "stream", True, n) for n in (10**3, 10**4, 10**5, 10**6)]
    cases += [("windows", "whole", True, n) for n in (10**3, 10**4, 10**5)]
    cases += [("standard", "whole", False, n) for n in (10**3, 10**4, 10**5)]
    rows = []
    for name, encode, windowed, words in cases:
        result = measure("windows", encode=encode, words=words, windowed=windowed)
        rows.append({"model": name, "source": words, "seconds": result["seconds"][0], "peak_gb": result["peak_gb"]})
    return {"what": what, "rows": rows}


def write_papers(folder: Path, times: int = 10) -> None:
    """The papers of `aclsum`, `times` over, as files in the layout of Cohan et al."""
    corpus = load_corpus("aclsum")
    folder.mkdir()
    for split in SPLITS:
        lines = [
            json.dumps({"section_names": d.section_names, "sections": d.sections, "abstract_text": d.summary})
            for d in corpus.split(split)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines * times), encoding="utf-8")


def work(folder: Path) -> dict:
    """Name -> what measures it."""
    papers = folder / "papers"
    prepared = [
        ("preprocess", {"way": way, "papers": str(papers), "folder": str(folder / way)})
        for way in ("lib", "textbook")
    ]
    pointer = "pointer-generator, batch 8, source 400, target 100, vocabulary 50,000"
    mem2mem = "Mem2Mem at the paper's sizes, batch 4, source 2,000, target 200"
    clusters = "hierarchical transformer, the code's sizes: batch 4, 24 paragraphs of 20 to 120 pieces, target 140"
    search = "beam search, 32 documents at once or one by one, "
    sources = [{"source": n, "target": 100} for n in (250, 500, 1000, 2000, 4000)]
    targets = [{"source": 1000, "target": n} for n in (50, 100, 200, 400)]
    equal = {**CLUSTERS, "equal": True}
    whole = {**MEM2MEM, "batch": 16}
    paper = {**whole, "way": "lib", "repeats": 2}
    return {
        "pointer_generator": lambda: train_pair(pointer, POINTER),
        "mem2mem": lambda: train_pair(mem2mem, MEM2MEM),
        "hierarchical_transformer": lambda: train_pair(clusters, CLUSTERS),
        "equal_paragraphs": lambda: ways(
            "hierarchical transformer, batch 4, 24 equal paragraphs of 70 pieces, target 140, products in bfloat16",
            equal,
            "bf16",
            "textbook",
            close=2e-3,
        ),
        "bfloat16": lambda: ways("the same with products in bfloat16 or float32", equal, "bf16", "lib", close=2e-3),
        "dropout": lambda: ways(
            "the trained hierarchical transformer's sizes: batch 16, target 256, dropout compiled or PyTorch's",
            {"model": "medium_transformer", "batch": 16, "source": 22, "target": 256},
            "bf16",
            "dropout",
            close=2e-3,
        ),
        "kernels": lambda: ways(
            "Mem2Mem at the paper's sizes, batch 16, with compiled loops and threads or as it was before them",
            whole,
            "lib",
            "before",
            close=1e-5,
        ),
        "busy": lambda: compare(
            "a step of the Mem2Mem demo, alone or beside a process that keeps a core busy",
            ("demo", {"busy": False}),
            ("demo", {"busy": True}),
            "loss",
        ),
        "search_small": lambda: search_pair(search + "small model", "small"),
        "search_paper": lambda: search_pair(search + "the paper's sizes", "mem2mem"),
        "preprocess": lambda: (
            write_papers(papers),
            compare("preprocessing 2,500 papers, all cores or one by one", *prepared, same="words"),
        )[1],
        "large_corpora": lambda: {
            "what": "preparing documents of 1,500 words",
            "rows": [{"documents": n, **measure("large", documents=n)} for n in (2_000, 20_000, 200_000)],
        },
        "second_read": lambda: compare(
            "second read of a GRU (Read-Again), batch 64, 32 words, width 512",
            ("second_read", {"way": "lib"}),
            ("second_read", {"way": "textbook"}),
            "loss",
        ),
        "paper_batch": lambda: {**paper, **measure("train", **paper)},
        "growth_source": lambda: growth("source words", sources),
        "windowed": lambda: lengths("summary of one text, 3 words a window of 400, beam 3, the author's sizes"),
        "growth_target": lambda: growth("target words", targets),
    }


def main(names: list[str]) -> None:
    """Measure what is named, or everything, and put it into results.json as it comes."""
    path = Path(__file__).with_name("results.json")
    with tempfile.TemporaryDirectory() as folder:
        items = work(Path(folder))
        for name in names or items:
            results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            results[name] = items[name]()
            results["machine"] = {"cores": os.cpu_count(), "processor": platform.machine()}
            write_json(path, results)
    print(table(results))


def table(results: dict) -> str:
    """The rows of results.json as Markdown, and the floors."""
    lines = ["| work | textbook | here | times faster | memory of a step, textbook / here |", "|---|---|---|---|---|"]
    for r in (r for r in results.values() if "times_faster" in r):
        lines.append(
            f"| {r['what']} | {r['seconds_textbook']:.2f} s | {r['seconds']:.2f} s | {r['times_faster']:.1f} | "
            f"{r['step_gb_textbook']:.2f} / {r['step_gb']:.2f} GB |"
        )
    lines += [
        f"{r['what']}: matrix products alone {r['floor_seconds']:.2f} s, a step {r['times_floor']:.1f} times that; "
        f"percent of it by operation: {r['profile']}"
        for r in results.values()
        if "floor_seconds" in r
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = command_parser("tests.tools.bench", __doc__)
    names = list(work(Path()))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(names)}")
    given = parser.parse_args().names
    if unknown := [name for name in given if name not in names]:
        parser.error(f"nothing is named {unknown[0]!r}; there are {', '.join(names)}")
    main(given)
