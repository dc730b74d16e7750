"""Does a summarizer repeat itself because of what it has learned, or because of how it is decoded?

    python -m companion.studies.repetition trained/mem2mem --dataset pmc-sample

The same weights write by beam search, by greedy search and by sampling. Temperature 1 draws words
as often as the model's own distribution has them; a lower one prefers probable words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lib.data.documents import Document
from lib.decoding.run import Run
from lib.decoding.search import search_split
from lib.evaluation.interventions import mean_row
from lib.evaluation.rouge import repeated_ngrams
from lib.intervene import DocumentOptions, read, write_rows
from lib.system.command_line import Grouped, run_command

TEMPERATURES = 0.25, 0.5, 0.75, 1.0
BEAM, SAMPLED = "plain beam search", "sampled, temperature 1.0"
WHAT = "repeated trigrams of a summary, percent"


def study(run: Path, /, *, documents: Grouped[DocumentOptions]) -> None:
    """Print a table of repeated trigrams.

    Args:
        run: the folder of a run.
    """
    opened, texts = read(run, documents)
    rows = repetition(opened, texts)
    write_rows(run, documents, "| decoding | | mean over documents |", rows, len(texts))


def repetition(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """Yield a row for each way of decoding, for the references, and for the difference between beam
    search and sampling at temperature 1: the mean over documents, its interval, and all values."""
    encoded, plain = run.encode(documents), replace(run.decode, block_ngrams=0)
    drawn = replace(plain, sample=len(run.vocabulary))
    ways = {BEAM: plain, "greedy search": replace(plain, beam=1)}
    ways |= {f"sampled, temperature {t}": replace(drawn, temperature=t) for t in TEMPERATURES}
    repeated = {}
    for name, way in ways.items():
        written = search_split(run.model, encoded, run.vocabulary, way)
        repeated[name] = repeated_percent([best.ids for best in written])
    repeated["references"] = repeated_percent(
        [document.target[:-1].tolist() for document in encoded]
    )
    repeated[f"{BEAM} - {SAMPLED}"] = repeated[BEAM] - repeated[SAMPLED]
    for name, values in repeated.items():
        yield mean_row(name, WHAT, values)


def repeated_percent(texts: Sequence[Sequence[int]]) -> np.ndarray:
    """Percent of the trigrams of each text, in ids, that have occurred in it before."""
    counts = np.array([repeated_ngrams([*map(str, ids)]) for ids in texts])
    return 100 * counts[:, 0] / np.maximum(counts[:, 1], 1)


main = partial(run_command, "companion.studies.repetition", __doc__, study)

if __name__ == "__main__":
    main()
