"""ROUGE-1 of a trained model on papers as people have them: with characters that cannot be seen, and cut words.

    python -m tests.tools.disturbed_texts                     # Mem2Mem on 30 papers of pmc-sample
    python -m tests.tools.disturbed_texts trained/windowed --documents 10
    python -m tests.tools.disturbed_texts --hyphens           # how often a hyphen at a line's end is understood

Each text is disturbed in one way and read again; a way that leaves every document as it was is not summarized again.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

import lib
from lib.data.characters import clean
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import SPLITS, Document, to_document
from lib.decoding.search import summarize
from lib.evaluation.metrics import rouge

_LONG = re.compile(r"(?<![\w-])[a-z]{8,}(?![\w-])")
_LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ"}


def _within_words(what: str) -> Callable[[str], str]:
    """Put something into the middle of every long word of small letters."""
    return lambda text: _LONG.sub(lambda m: m[0][: len(m[0]) // 2] + what + m[0][len(m[0]) // 2 :], text)


DISTURBED: dict[str, Callable[[str], str]] = {
    "clean": lambda text: text,
    "soft hyphens": _within_words("\u00ad"),
    "zero-width spaces": _within_words("\u200b"),
    "ligatures": lambda text: re.sub("|".join(_LIGATURES), lambda match: _LIGATURES[match[0]], text),
    "line-end hyphens": _within_words("-\n"),
}


def disturbed(document: Document, change: Callable[[str], str]) -> Document:
    """A document whose source was changed and comes through the door again."""
    sections = [[change(sentence) for sentence in section] for section in document.sections]
    record = {"id": document.id, "title": document.title, "section_names": document.section_names}
    return to_document({**record, "sections": sections, "abstract_text": document.summary})


_COMPOUND = re.compile(r"(?<![\w-])([a-z]{2,})-([a-z]{2,})(?![\w-])")


def hyphens() -> None:
    """Print for the papers of pmc-sample how many hyphens of words stay and how many cut words are whole again, when
    one place of a paper is at a line's end: with the rest of the paper to go by, and without."""
    random, counts = Random(0), Counter()
    for document in (d for name in SPLITS for d in load_corpus("pmc-sample").split(name)):
        text = "\n\n".join(document.sentences)
        compounds, words = (list(pattern.finditer(text)) for pattern in (_COMPOUND, _LONG))
        for match in random.sample(compounds, min(20, len(compounds))):
            counts.update(_understood("hyphens", match, text, match[0].index("-"), 1))
        for match in random.sample(words, min(20, len(words))):
            counts.update(_understood("cut words", match, text, random.randint(2, len(match[0]) - 2), 0))
    for (kind, how), right in sorted(counts.items()):
        if how != "tried":
            print(f"{kind}, {how}: {right} of {counts[kind, 'tried']} right")


def _understood(kind: str, match: re.Match, text: str, place: int, width: int) -> list[tuple[str, str]]:
    """What is right of a word that a line's end cuts at a place, where `width` characters are its own hyphen."""
    cut = f"{match[0][:place]}-\n{match[0][place + width :]}"
    right = {
        "with the paper": clean(text[: match.start()] + cut + text[match.end() :]) == text,
        "without": clean(cut) == match[0],
    }
    return [(kind, "tried"), *((kind, how) for how, was in right.items() if was)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.disturbed_texts", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("run", type=Path, nargs="?", default=Path("trained/mem2mem"))
    parser.add_argument("--documents", type=int, default=30)
    parser.add_argument("--hyphens", action="store_true", help="count hyphens at line ends, and summarize nothing")
    args = parser.parse_args(arguments)
    if args.hyphens:
        hyphens()
        return
    run = lib.load(args.run)
    documents = unseen(load_corpus("pmc-sample"), "test", [run.config["corpus"]], args.documents)
    clean, summaries = None, []
    for name, change in DISTURBED.items():
        encoded = run.encode([disturbed(document, change) for document in documents])
        texts = [(d.source.tolist(), d.unknown) for d in encoded]
        if texts != clean:
            summaries = summarize(run.model, encoded, run.vocabulary, run.decode)
        same = sum(a == b for a, b in zip(texts, clean or texts))
        clean = clean or texts
        scores = rouge(summaries, [document.summary for document in documents])
        print(f"{name}: R-1 {np.mean(scores[:, 0]):.2f}; {same} of {len(documents)} are read as clean ones are")


if __name__ == "__main__":
    main()
