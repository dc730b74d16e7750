"""Records and files that nobody would write: whatever they hold, a corpus is read, or refused in one line.

    python -m tests.tools.torture --minutes 10     # or: make torture
    python -m tests.tools.torture --minutes 10 --keep     # the counts into docs/robustness.md

`test_torture` runs a few of each kind. What is generated: JSON lines among good ones, rows of CSV and aligned lines
likewise, whole corpora in every format with bytes of them changed, and preparations that are killed.
"""

import argparse
import csv
import gzip
import io
import json
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from companion.results.kept import render
from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.pieces import Pieces
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.files import project_root, write_json

OPTIONS = CohanOptions(section_tokens=20, vocab_size=50)
Files = dict[str, bytes]


# ------------------------------------------------------------------------------------------------ what must hold


def read(files: Files, whole: frozenset[str] = frozenset()) -> str:
    """What becomes of a corpus of these files, in a word.

    Raises AssertionError unless it is read in both modes alike, or refused by CorpusError in one line. whole: ids of
    documents that nothing else in the files may take away when damaged records are skipped.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        (strict, _), (lenient, left_out) = outcomes(folder, "raise"), outcomes(folder, "skip")
    there = {name: found for name, found in lenient.items() if not isinstance(found, str)}
    assert whole <= {d.id for found in there.values() for d in found}, lenient
    if not there:
        assert all(isinstance(found, str) for found in strict.values())
        return "refused"
    differing = [name for name in there if strict[name] != there[name]]
    assert all(isinstance(strict[name], str) for name in differing) and bool(left_out) == bool(differing)
    return "read in part" if differing else "read"


def outcomes(folder: str, errors: str = "skip") -> tuple[dict[str, list[Document] | str], int]:
    """The documents of each split, or the one line that refuses it; how many records were left out of these."""
    found, left_out = {}, 0
    for name in SPLITS:
        try:
            corpus = load_corpus(folder, errors)
            found[name] = list(corpus.split(name))
            left_out += len(corpus.skipped)
        except CorpusError as error:
            assert "\n" not in str(error) and folder in str(error), error
            found[name] = str(error)
    for document in (d for documents in found.values() if not isinstance(documents, str) for d in documents):
        texts = [document.id, document.title, *document.section_names, *document.sentences, *document.summary]
        json.dumps(texts, ensure_ascii=False).encode()
        assert document.sections and all(document.sections) and all(s.strip() for s in document.sentences)
        assert document.summary and isinstance(document.more_summaries, list)
        OPTIONS.example(document)
    return found, left_out


# ------------------------------------------------------------------------------------------------------ generators

CHARACTERS = st.characters(exclude_categories=())  # halves of characters, too
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=20), st.sampled_from(["A b. C d.", "", " ", "<S>", "\0", "|||||", "\ufeff"])
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.just(10**4_299))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
_KEYS = """id article_id url title sections section_names abstract_text article_text paragraphs summary article
    abstract highlights document text source more_summaries"""
KEYS = st.sampled_from(_KEYS.split())
RECORDS = st.dictionaries(KEYS, VALUES, max_size=6)
PLAUSIBLE = st.fixed_dictionaries(  # most of it is right
    {"text": TEXTS, "summary": TEXTS}, optional={"id": VALUES, "title": VALUES, "more_summaries": VALUES}
)
DEEP = st.sampled_from([b"[" * 3_000, b'{"text":' * 3_000, b'{"text": ' + b"[" * 3_000 + b"]" * 3_000 + b"}"])
LINES = st.one_of(
    st.one_of(RECORDS, PLAUSIBLE, VALUES).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
    DEEP,
    st.integers(4_301, 5_000).map(lambda n: b'{"text": "a b", "summary": "c", "n": ' + b"9" * n + b"}"),
)


def good(number: int) -> dict:
    return {"id": f"good-{number}", "text": f"One {number}. Two.", "summary": f"Short {number}."}


@st.composite
def json_lines(draw) -> tuple[Files, frozenset[str]]:
    """Odd lines among two good ones, which they may not take away."""
    lines = draw(st.lists(LINES, max_size=4))
    for number in range(2):
        lines.insert(draw(st.integers(0, len(lines))), json.dumps(good(number)).encode())
    data = b"\n".join(lines)
    array = lines[0].lstrip()[:1] == b"["  # then the whole file may be one array, and damaged
    name, data = draw(st.sampled_from([("train.jsonl", data), ("train.txt.gz", gzip.compress(data))]))
    return {name: data}, frozenset() if array else frozenset({"good-0", "good-1"})


@st.composite
def rows(draw) -> tuple[Files, frozenset[str]]:
    """Odd rows of CSV behind two good ones, and aligned lines."""
    if draw(st.booleans()):
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerows([["id", "text", "summary"], *(list(good(n).values()) for n in range(2))])
        writer.writerows(draw(st.lists(st.lists(TEXTS, max_size=4), max_size=3)))
        data = out.getvalue().encode("utf-8", "surrogatepass") + draw(st.binary(max_size=20))
        return {"train.csv": data}, frozenset({"good-0", "good-1"})
    lines = st.lists(st.one_of(st.binary(max_size=20), st.just(b"a b. c d.")), min_size=1, max_size=4)
    names = draw(st.sampled_from([("train.src", "train.tgt"), ("input.txt", "task1_ref0.txt", "task1_ref1.txt")]))
    return {name: b"\n".join(draw(lines)) for name in names}, frozenset()


@cache
def corpora() -> dict[str, Files]:
    """A good corpus in every format."""
    records = [good(n) for n in range(3)]
    table = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(records), table)
    shard, body = io.BytesIO(), " ".join(["word"] * 600)
    torch.save([{"src": [[10, 11], [12]], "tgt": [1], "tgt_str": "a <q> b"}] * 2, shard)
    pieces = Pieces.train(["one two three four five six"] * 9, 30)
    texts = {".md": b"# T\n\nA b.\n", ".summary.txt": b"C."}
    story = (
        '<REUTERS NEWID="{0}"><TITLE>GRAIN PRICES RISE {0}</TITLE>'
        "<BODY>Prices of grain rose on {0} markets {1}</BODY></REUTERS>"
    )
    article = (
        '<article><front><article-meta><article-id pub-id-type="pmc">{}</article-id><abstract><p>{}</p></abstract>'
        "</article-meta></front><body><sec><title>A</title><p>{}</p></sec></body></article>"
    )
    return {
        "lines": {"train.jsonl": b"\n".join(json.dumps(r).encode() for r in records)},
        "packed lines": {"val.jsonl.gz": gzip.compress(b"\n".join(json.dumps(r).encode() for r in records))},
        "array": {"test.json": json.dumps(records, indent=1).encode()},
        "parquet": {"train.parquet": table.getvalue()},
        "csv": {"train.csv": b'id,text,summary\n1,"a, b",c\n2,d e,f\n'},
        "aligned": {"train.src": b"a b\nc d\n", "train.tgt": b"e\nf\n"},
        "duc": {"input.txt": b"a b\nc d\n", "task1_ref0.txt": b"e\nf\n", "task1_ref1.txt": b"g\nh\n"},
        "wikihow": {
            "wikihowAll.csv": b'headline,title,text\n"\nDo it.,\n",How to do,"Some longer text, that says how."\n',
            "all_train.txt": b"How to do\n",
        },
        "shards": {"W.train.0.pt": shard.getvalue(), "x.model": pieces.model},
        "texts": {f"{name}{ending}": text for name in "abc" for ending, text in texts.items()},
        "sumpubmed": {
            "text/text_1.txt": f"BACKGROUND\n{body}.\n".encode(),
            "abstract/abstract_1.txt": f"BACKGROUND\n{body[:300]}.\n".encode(),
        },
        "reuters": {"reut2-000.sgm": "\n".join(story.format(n, "and so on " * 8) for n in range(30)).encode()},
        "pmc": {f"{n}.xml": article.format(n, body[:300], body).encode() for n in range(3)},
    }  # fmt: skip


@st.composite
def damaged(draw) -> tuple[Files, frozenset[str]]:
    """A good corpus, some bytes of which were taken out, changed or put in."""
    files = dict(corpora()[draw(st.sampled_from(sorted(corpora())))])
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(sorted(files)))
        data = files[name]
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + draw(st.sampled_from([0, 1, 5, 10**9])))))
        files[name] = data[:start] + draw(st.binary(max_size=4)) + data[end:]
    return files, frozenset()


KINDS = {"JSON lines": json_lines(), "rows": rows(), "damaged files": damaged()}


# ----------------------------------------------------------------------------------------------------- the long run


def run_round(kind: str, number: int, examples: int) -> Counter:
    """Reads so many corpora of a kind. Raises what `read` raises, for the smallest example that is found."""
    counts = Counter()

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(KINDS[kind])
    def check(case):
        counts[read(*case)] += 1

    check()
    return counts


PREPARES = """
import sys
from lib.data.corpora import load_corpus
from lib.data.prepared import prepare
from lib.papers.mem2mem.sections import CohanOptions
options = CohanOptions(section_tokens=60, vocab_size=400)
print(prepare(load_corpus("pmc-sample"), options, folder=sys.argv[1], progress=False, workers=2).fingerprint)
"""


def kill_preparations(rounds: int, moments: random.Random) -> Counter:
    """Preparations that are killed, each at two moments, and then finish: the same corpus as undisturbed."""
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PREPARES]
        started = time.monotonic()
        expected = subprocess.check_output([*command, f"{folder}/whole"], cwd=project_root())
        usual = time.monotonic() - started
        for number in range(rounds):
            for _ in range(2):
                process = subprocess.Popen(
                    [*command, f"{folder}/{number}"], cwd=project_root(), stdout=subprocess.DEVNULL
                )
                try:
                    process.wait(moments.uniform(0.3, 1.0) * usual)
                    counts["finished before"] += 1
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    counts["killed"] += 1
            found = subprocess.check_output([*command, f"{folder}/{number}"], cwd=project_root())
            assert found == expected, f"another corpus after {number + 1} rounds of kills"
            left = [path.name for path in Path(folder).iterdir() if path.name.endswith((".tmp", ".parts"))]
            assert not left, left
    return counts


def report(tried: dict[str, Counter], held: str, command: str, keep: bool) -> int:
    """Print what was tried; if `keep`, put it into the table of docs/robustness.md. Returns the exit status: 1 where
    something was never tried, for then nothing is known of it, and nothing is kept.

    tried: {what: {what became of it: how often}}. held: what was seen of all of them.
    """
    if never := [what for what, counts in tried.items() if not counts.total()]:
        print(f"never tried: {', '.join(never)}. Give it more --minutes.")
        return 1
    lines = {
        what: [f"{counts.total():,}", ", ".join(f"{n:,} {became}" for became, n in sorted(counts.items())), held]
        for what, counts in tried.items()
    }
    for what, (_, became, _) in lines.items():
        print(f"{what}: {became}")
    print(held)
    if keep:
        path = project_root() / "figures" / "tried_table.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"lines": {}, "commands": {}}
        commands = known["commands"] | dict.fromkeys(lines, command)
        table = {"table": "tried_table", "title": "Counts", "columns": ["tried", "of these", "seen of all"]}
        made_by = {"commands": commands, "command": "` and `".join(dict.fromkeys(commands.values()))}
        write_json(path, {**table, **made_by, "lines": known["lines"] | lines})
        render()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="put the counts into docs/robustness.md")
    args = parser.parse_args()
    number, counts = args.seed, {kind: Counter() for kind in KINDS}
    print(f"seed {number}")
    counts["preparations"] = kill_preparations(3, random.Random(number)) if args.minutes > 0 else Counter()
    ends = time.monotonic() + 60 * args.minutes
    while time.monotonic() < ends:
        for kind in KINDS:
            counts[kind].update(run_round(kind, number, 100))
        number += 1
    command = f"python -m tests.tools.torture --minutes {args.minutes:g} --seed {args.seed}"
    return report(counts, "read, or refused in one line; after a kill the same corpus", command, args.keep)


if __name__ == "__main__":
    sys.exit(main())
