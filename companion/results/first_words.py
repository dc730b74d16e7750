"""The floor of the tables of scores: the first words of each text, as many as a row's systems write
on average.

A row whose R-1 is not above it has not learned to summarize, and comparisons of such rows decide
nothing (`companion.claims`).
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from companion.results.kept import kept_tables, stored_numbers
from companion.results.tables import TABLES
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.evaluation.rouge import rouge
from lib.evaluation.scores import cut
from lib.system.files import project_root, write_json

SAMPLE = "pmc-sample"  # the corpus that is a part of the library
NAME = "first_words"  # of the stored numbers


def measure_first_words(data: Path) -> Path:
    """Score the first words of the texts of all kept tables whose corpus is in a folder.

    Tables of other corpora keep the numbers that are stored. data: holds a folder for each corpus.
    """
    path = project_root() / "figures" / f"{NAME}.json"
    found = dict(stored_numbers(NAME)["tables"]) if path.exists() else {}
    for name, numbers in kept_tables().items():
        corpus_name = str(numbers.get("corpus"))
        place = SAMPLE if corpus_name == SAMPLE else data / corpus_name
        rows = dict(_trained_rows(numbers))
        if rows and name not in found and (place == SAMPLE or Path(place).is_dir()):
            corpus = load_corpus(place)
            documents = list(islice(corpus.split(numbers["split"]), numbers["documents"]))
            scores = cache(lambda words, documents=documents: _score(documents, words))
            found[name] = {label: scores(round(words)) for label, words in rows.items()}
    return write_json(
        path,
        {
            "command": "python -m companion.make_tables first-words data",
            "tables": dict(sorted(found.items())),
        },
    )


def _trained_rows(numbers: dict) -> Iterator[tuple[str, float]]:
    """Yield label and words of the rows of a table of ROUGE scores that are trained."""
    described = TABLES.get(numbers["table"])
    if described is None or "R-1" not in described.columns:
        return
    for row in numbers["rows"]:
        if row.get("seeds") and row.get("words"):
            yield row["label"], row["words"]


def _score(documents: list[Document], words: int) -> dict[str, float]:
    first = [cut(document.sentences, words, None, document.tokenised) for document in documents]
    references = [document.summary for document in documents]
    r1, r2, rlsum = np.mean(rouge(first, references), axis=0)
    return {
        "words": words,
        "R-1": round(float(r1), 2),
        "R-2": round(float(r2), 2),
        "R-Lsum": round(float(rlsum), 2),
    }


def first_words_of(table: str) -> dict[str, dict[str, float]]:
    """Read the scores of the first words of a table's texts, by the label of the row that writes as
    many; empty where they were not measured."""
    return stored_numbers(NAME)["tables"].get(table, {})
