"""Measure how well texts of another field than a run's corpus are recognised by their words.

    python -m companion.studies.fields trained/mem2mem "biomedical papers" --like pmc-sample \\
        --unlike aclsum docstrings reuters data/specs

This makes the weights of the words, too. The measure of a text is the mean, over the words that the model reads of it, of log P in the corpus
- log P in other texts. The limit is the 2% quantile of the validation documents. Texts of a corpus
`--unlike` it are judged by weights that were made without that corpus; from the descriptions of the
installed Python packages no weight is made. `field.json` in the run's folder gets the weights and
the errors.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from functools import partial
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

import lib
from companion.command import this_command
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.plain_text import parse_text
from lib.decoding.field import FILE, mean_weight, words_of_field
from lib.decoding.run import Run
from lib.decoding.search import source_sentences
from lib.system.command_line import run_command
from lib.system.files import check_writable, write_whole

WORDS = 3000  # that get a weight
LEARNED_FROM, JUDGED = 4000, 200  # documents of a corpus, at most
COUNTED = 1500  # words of a document, at most
QUANTILE = 0.02
SMALL = 1e-6  # probability of a word that a corpus does not have
DESCRIPTIONS = "descriptions of packages"

Weights = dict[str, float]
# of each text the sentences that a model reads, each a list of one text
Texts = list[list[list[str]]]


def count_words(documents: Iterable[Document]) -> Counter[str]:
    """Count the words of the beginning of each document."""
    rows = ([f" {sentence}" for sentence in document.sentences] for document in documents)
    return Counter(word for row in rows for word in islice(words_of_field([row]), COUNTED))


def log_ratios(own: Counter[str], others: list[Counter[str]]) -> Weights:
    """Compute log P in a corpus - log P in others, which count equally, for the most frequent
    words."""
    inside, outside = _probabilities([own]), _probabilities(others)
    frequent = (Counter(inside) + Counter(outside)).most_common(WORDS)
    pairs = (
        (word, inside.get(word, 0.0) + SMALL, outside.get(word, 0.0) + SMALL)
        for word, _ in frequent
    )
    return {word: round(math.log(p / q), 2) for word, p, q in pairs}


def _probabilities(corpora: list[Counter[str]]) -> Weights:
    totals = [counts.total() * len(corpora) for counts in corpora]
    words = set().union(*corpora)
    return {
        w: sum(counts[w] / total for counts, total in zip(corpora, totals)) for w in sorted(words)
    }


def measure(run: Run, like: list[str], unlike: list[str]) -> tuple[Weights, float, dict[str, Any]]:
    """Return the weights of a run's corpus, the limit, and the errors in each group of texts."""
    name, others = (
        run.config["corpus"],
        {Path(place).name: load_corpus(place, "skip") for place in unlike},
    )
    own = count_words(load_corpus(name).split("train", LEARNED_FROM))
    counts = {
        other: count_words(corpus.split("train", LEARNED_FROM)) for other, corpus in others.items()
    }
    validation = _read(run, load_corpus(name).split("val", JUDGED * 2))
    inside = {
        Path(n).name: _read(run, unseen(load_corpus(n), "test", [name], JUDGED))
        for n in (name, *like)
    }
    outside = {other: _read(run, corpus.split("test", JUDGED)) for other, corpus in others.items()}
    outside[DESCRIPTIONS] = _read(run, _descriptions(run.options.of_paragraphs))

    weights = log_ratios(own, list(counts.values()))
    limit = _limit(validation, weights)
    warned = {group: _rate(texts, weights, limit, below=True) for group, texts in inside.items()}
    missed = {}
    for group, texts in outside.items():
        used = (
            log_ratios(own, [c for other, c in counts.items() if other != group])
            if group in counts
            else weights
        )
        missed[group] = _rate(texts, used, _limit(validation, used), below=False)
    return weights, limit, {"warned": warned, "missed": missed}


def _limit(validation: Texts, weights: Weights) -> float:
    return float(np.quantile([mean_weight(rows, weights) for rows in validation], QUANTILE))


def _read(run: Run, documents: Iterable[Document]) -> Texts:
    """Return the sentences that a run reads of each document that has a sentence of some words."""
    encoded = run.encode([d for d in documents if sum(len(s.split()) for s in d.sentences) >= 20])
    return [[[f" {sentence}" for sentence in source_sentences(d, run.vocabulary)]] for d in encoded]


def _descriptions(paragraphs: bool) -> list[Document]:
    about: dict[str, Any] = {d.name: d.metadata for d in distributions()}
    texts = {name: m.get_payload() or m.get("Description") or "" for name, m in about.items()}
    return [
        parse_text(text, name, paragraphs=paragraphs)
        for name, text in texts.items()
        if len(text) > 1000
    ]


def _rate(texts: Texts, weights: Weights, limit: float, below: bool) -> dict[str, float | int]:
    """Return in percent how many texts are below the limit, or are not, with a 95% interval
    (Wilson)."""
    count = sum((mean_weight(rows, weights) < limit) == below for rows in texts)
    low, high = binomtest(count, len(texts)).proportion_ci(method="wilson")
    return {
        "percent": round(100 * count / len(texts), 1),
        "low": round(100 * low, 1),
        "high": round(100 * high, 1),
        "texts": len(texts),
    }


def write_field(
    run: Path, texts: str, /, *, unlike: tuple[str, ...], like: tuple[str, ...] = ()
) -> None:
    """Measure how well other texts are recognised, and write field.json into the folder of a run.

    Args:
        run: the folder of a run.
        texts: what its corpus has, for people, as "biomedical papers".
        unlike: corpora of other fields.
        like: other corpora of the same field.
    """
    check_writable(run / FILE)
    weights, limit, errors = measure(lib.load(run, device="cpu"), [*like], [*unlike])
    parts = {part: [row["percent"] for row in groups.values()] for part, groups in errors.items()}
    means = {part: round(float(np.mean(values)) / 100, 3) for part, values in parts.items()}
    command = this_command("companion.studies.fields")
    field = {"texts": texts, "least": round(limit, 3), **means, "weights": weights}
    write_whole(
        run / FILE,
        json.dumps({"command": command, "errors": errors, "field": field}, ensure_ascii=False)
        + "\n",
    )
    for part, groups in errors.items():
        shown = (
            f"{g} {r['percent']}% [{r['low']}, {r['high']}] of {r['texts']}"
            for g, r in groups.items()
        )
        print(f"{part}: {', '.join(shown)}")


main = partial(run_command, "companion.studies.fields", __doc__, write_field)

if __name__ == "__main__":
    main()
