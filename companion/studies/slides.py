"""When a windowed run slides: the paper's search beside searches that first decide whether to
slide, then which word.

    python -m companion.studies.slides trained/windowed --dataset pmc-sample \\
        --output figures/windowed_slides_pmc.json

Every system is scored with plain beam search and with trigram blocking: the paper's search, where
the slide symbol competes with single words; three rules of `SlidingConfig.slide`; the same
greedily; symbols drawn with the model's own probability; and chunks, each summarized separately.
Summaries are cut to 200 words. A system that --output already holds is not measured again.

by window: words written in the first window, in those between, and in the last, of each document.
example: P of the slide symbol and of the most probable word at each step of the first document, in
the paper's search and by the median. first step: these two before the first word of each document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from companion.stored import difference_row, open_store
from companion.studies.windows import CUT, equal_chunks, open_papers, window_counts
from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import BOS, EOS, SLIDE
from lib.decoding.config import DECODINGS
from lib.decoding.run import Run
from lib.decoding.search import greedy_search, search_split
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.measures import METRICS
from lib.evaluation.scores import score_systems
from lib.system.command_line import run_command
from lib.system.errors import one_of

PAPERS, MEDIAN, DRAWN, CHUNKS = "the paper's search", "by the median", "drawn", "equal chunks"
SEARCHES = {PAPERS: "as a word", MEDIAN: "median", "by half": "half", "by a coin": "coin"}
SYSTEMS = (*SEARCHES, DRAWN, CHUNKS, *(f"{search}, greedy" for search in SEARCHES))


def study(
    run: Path,
    /,
    *,
    dataset: str,
    documents: int = 50,
    output: Path | None = None,
    systems: tuple[str, ...] = SYSTEMS,
) -> None:
    """Score the systems, and measure when they slide.

    Args:
        run: the folder of a run with windows.
        dataset: a corpus; its test documents are read.
        documents: how many of them, from the first.
        output: a JSON file for the numbers.
        systems: only these.
    """
    opened, papers, about = open_papers(run, dataset, documents)
    encoded = opened.encode(papers)
    store = open_store(output, "when a window slides", {**about, "cut to": CUT})
    for decoding, block in DECODINGS.items():
        of_decoding = replace(opened, decode=replace(opened.decode, block_ngrams=block))
        for name in systems:
            chosen = one_of(name, SYSTEMS, "system")
            system = partial(_system, of_decoding, chosen, encoded, papers)
            scores = store.part(f"{name}, {decoding}", system)
            print(f"{name}, {decoding}: {scores['R-1']}", flush=True)
    store.part("example", lambda: example(opened, encoded[0]))
    store.part("first step", lambda: first_step(opened, encoded))
    store.numbers.pop("effects", None)
    store.part("effects", lambda: effects(store.numbers))


def _system(
    run: Run, name: str, encoded: Sequence[EncodedDocument], documents: Sequence[Document]
) -> dict:
    """Score a system's summaries, and count their words by window."""
    counts = window_counts(run, encoded)
    if name == CHUNKS:
        summaries, words = _by_parts(run, list(map(equal_chunks, encoded, counts))), []
    else:
        found = write_with(run, name, encoded)
        words = [words_by_window(*pair) for pair in zip(found, counts)]
        summaries = [_sentences(run, *pair) for pair in zip(found, encoded)]
    part = score_systems({name: summaries}, documents, run.options, CUT)[name]
    scores = np.array(part["rouge"])
    repeated, trigrams = np.sum(part["repeated"], axis=0).tolist()
    return {
        **{column: str(interval(values)) for column, values in zip(METRICS, scores.T)},
        "words": part["words"],
        "repeated": round(repeated / max(1, trigrams), 4),
        "by window": words,
        "values": scores[:, 0].tolist(),
    }


def write_with(run: Run, name: str, encoded: Sequence[EncodedDocument]) -> list[list[int]]:
    """Write summaries with a search of `SYSTEMS`, by the run's other settings of decoding."""
    search, _, greedy = name.partition(", ")
    how = {"sample": len(run.vocabulary)} if name == DRAWN else {"slide": SEARCHES[search]}
    rule = replace(run.decode, beam=1 if greedy else run.decode.beam, **how)
    return [hypothesis.ids for hypothesis in search_split(run.model, encoded, run.vocabulary, rule)]


def words_by_window(ids: Sequence[int], count: int) -> list[int]:
    """Count the words in the first of `count` windows, in those between, and in the last one (after
    the first)."""
    symbols = np.array(ids) == SLIDE
    windows = np.bincount(np.cumsum(symbols)[~symbols], minlength=count)
    return [
        int(windows[0]),
        int(windows[1 : count - 1].sum()),
        int(windows[max(1, count - 1) :].sum()),
    ]


def _by_parts(run: Run, texts: Sequence[Sequence[EncodedDocument]]) -> list[list[str]]:
    """Summarize the parts of each text separately, in an equal share of the words, and put these
    together."""
    summaries: list[list[str]] = [[] for _ in texts]
    for count in {len(parts) for parts in texts}:
        places = [place for place, parts in enumerate(texts) if len(parts) == count]
        lengths = {
            "min_length": -(-run.decode.min_length // count),
            "max_length": run.decode.max_length // count,
        }
        parts = [part for place in places for part in texts[place]]
        best = search_split(run.model, parts, run.vocabulary, replace(run.decode, **lengths))
        for n, (hypothesis, part) in enumerate(zip(best, parts)):
            summaries[places[n // count]] += _sentences(run, hypothesis.ids, part)
    return summaries


def _sentences(run: Run, ids: Sequence[int], document: EncodedDocument) -> list[str]:
    return run.vocabulary.sentences([i for i in ids if i != SLIDE], document.unknown)


@torch.no_grad()
def first_step(run: Run, documents: Sequence[EncodedDocument]) -> dict[str, list[float]]:
    """Compute P of the slide symbol and of the most probable word before the first word of each
    document."""
    batch = make_batch(documents, len(run.vocabulary))
    output, state = run.model.decode(torch.full((len(batch), 1), BOS), run.model.encode(batch))
    p = run.model.distribution(output, state, max(map(len, batch.unknown)))
    slide = p[:, SLIDE].tolist()
    p[:, SLIDE] = 0
    return {
        "slide": [round(x, 4) for x in slide],
        "word": [round(x, 4) for x in p.amax(1).tolist()],
    }


@torch.no_grad()
def example(run: Run, document: EncodedDocument) -> dict[str, Any]:
    """Compute P of the slide symbol and of the most probable word at each step of greedy summaries
    of one document.

    "product": of 1 - P since the last slide, before each step. "slides": the steps that wrote the
    symbol.
    """
    batch, steps = make_batch([document], len(run.vocabulary)), {}
    for search in (PAPERS, MEDIAN):
        (best,) = greedy_search(run.model, batch, replace(run.decode, slide=SEARCHES[search]))
        state, rows, stayed = run.model.encode(batch), [], 1.0
        for token, following in pairwise([BOS, *best.ids, EOS]):
            output, state = run.model.decode(torch.tensor([[token]]), state)
            p = run.model.distribution(output, state, len(document.unknown))[0]
            slide, word = float(p[SLIDE]), float(p.index_fill(0, torch.tensor(SLIDE), 0).max())
            rows.append({"slide": slide, "word": word, "product": stayed})
            stayed = 1.0 if following == SLIDE else stayed * (1 - slide)
        steps[search] = {
            **{name: [round(row[name], 4) for row in rows[:-1]] for name in rows[0]},
            "slides": [place for place, i in enumerate(best.ids) if i == SLIDE],
        }
    return {"document": document.id, **steps}


def effects(systems: Mapping[str, dict]) -> list[dict]:
    """Compare the R-1 of every system with the paper's search, and that of chunks with every
    search."""
    found = []
    for decoding in DECODINGS:
        for first in SEARCHES:
            for second in SYSTEMS if first == PAPERS else [CHUNKS]:
                labels = f"{first}, {decoding}", f"{second}, {decoding}"
                if second != first and all(label in systems for label in labels):
                    a, b = (systems[label] for label in labels)
                    difference = paired_bootstrap(a["values"], b["values"])
                    values = np.subtract(b["values"], a["values"])
                    found.append(
                        difference_row(f"{second} - {first}, {decoding}", "R-1", difference, values)
                    )
    return found


main = partial(run_command, "companion.studies.slides", __doc__, study)

if __name__ == "__main__":
    main()
