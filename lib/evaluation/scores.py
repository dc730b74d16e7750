"""Scores of trained runs, and of systems that need no training: what result tables are made of.

A file of scores has the ROUGE, copied n-grams and support of every document, so that tables and
their intervals (`companion.make_tables`) need no model.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, repeat
from pathlib import Path

import numpy as np

from lib.data.characters import lowered
from lib.data.documents import Document
from lib.data.options import Options, words_of
from lib.data.tokenize import is_word, with_numbers
from lib.decoding.config import DECODINGS
from lib.decoding.run import Run
from lib.decoding.search import extract, summarize
from lib.evaluation import rouge
from lib.evaluation.baselines import counted_in
from lib.evaluation.bootstrap import Interval, interval
from lib.evaluation.measures import COPIED, MEASURES, SUPPORT
from lib.evaluation.support import names_of, source_of, support_counts
from lib.system.devices import ALONE, Process

# what scores and tables note where ROUGE's words are not only ASCII
ALL_LETTERS = "all letters, without stems"


def score_systems(
    systems: Mapping[str, Sequence[list[str]]],
    documents: Sequence[Document],
    options: Options | None = None,
    words: int | Sequence[int] | None = None,
) -> dict[str, dict]:
    """Compute the scores that a table needs of each system's summaries (lists of sentences), for
    every document.

    An n-gram counts as copied from anywhere in the whole document, in words of `options`; without
    these in words and marks in lower case. What is not in the text is counted by
    `lib.evaluation.support`.

    words: every summary is cut to so many first, or to as many as are given for each document;
    marks do not count.
    """
    if words is not None:
        lengths = repeat(words) if isinstance(words, int) else words
        systems = {
            name: [
                cut(summary, n, options, d.tokenised)
                for summary, n, d in zip(summaries, lengths, documents)
            ]
            for name, summaries in systems.items()
        }
    sources = [_words(d.sentences, options, d.tokenised) for d in documents]
    texts = [source_of(document) for document in documents]
    names = names_of(documents)
    parts = {}
    for name, summaries in systems.items():
        tokens = [_words(summary, options, d.tokenised) for summary, d in zip(summaries, documents)]
        copied = [
            rouge.ngram_counts(*pair, sizes=[int(n) for n in COPIED])
            for pair in zip(tokens, sources)
        ]
        support = [support_counts(summary, text, names) for summary, text in zip(summaries, texts)]
        # counts are pairs [found, all] of each document
        parts[name] = {
            "rouge": np.round(rouge.rouge(summaries, [d.summary for d in documents]), 3).tolist(),
            "one line": np.round(
                rouge.rouge_in_one_line(summaries, [d.summary for d in documents]), 3
            ).tolist(),
            "recall": np.round(
                rouge.limited_recall(summaries, [d.references for d in documents]), 3
            ).tolist(),
            "copied": {n: [counts[int(n)] for counts in copied] for n in COPIED},
            "repeated": [rouge.repeated_ngrams(summary) for summary in tokens],
            "distinct": rouge.distinct(tokens),
            "words": round(
                float(np.mean([rouge.count_words(summary) for summary in summaries])), 1
            ),
            "support": {kind: [counts[kind] for counts in support] for kind in SUPPORT},
        }
    return parts


def cut(
    summary: Sequence[str], words: int, options: Options | None, tokenised: bool = False
) -> list[str]:
    """Cut a summary to its first words, sentence by sentence, as `options` write them."""
    sentences = []
    for sentence in summary:
        tokens = _sentence_words(sentence, options, tokenised)
        numbers = list(accumulate(map(is_word, tokens)))
        sentences.append(
            " ".join(token for token, number in zip(tokens, numbers) if number <= words)
        )
        words -= numbers[-1] if numbers else 0
        if words <= 0:
            break
    return sentences


def score_run(
    run: Run,
    documents: Sequence[Document],
    split_name: str,
    corpus: str,
    batch_size: int = 16,
    numbers: bool = False,
    process: Process = ALONE,
    as_long_as_references: bool = False,
) -> tuple[dict, list[list[str]]]:
    """Score a trained run on documents with references; return also the summaries that it wrote or
    chose.

    The parts are the run's own decoding ("summaries"), the other of DECODINGS and the references.

    corpus: the name of the documents' corpus. numbers: whether the text's numbers replace #
    (`with_numbers`). process: one of those that share the writing; the first one scores, and the
    others return no scores. as_long_as_references: whether each summary is cut to the number of
    words of its reference.
    """
    source = run.model, run.encode(documents), run.vocabulary
    how = {"batch_size": batch_size, "process": process}
    plain, blocking = DECODINGS
    decoding, other = (blocking, plain) if run.decode.block_ngrams else (plain, blocking)
    is_extractor = run.is_extractor
    write = extract if is_extractor else partial(summarize, config=run.decode)
    started = time.perf_counter()
    systems = {"summaries": write(*source, **how)}
    seconds = time.perf_counter() - started
    if not is_extractor:
        systems[other] = summarize(
            *source, replace(run.decode, block_ngrams=DECODINGS[other]), **how
        )
        if run.model.extracts:
            systems["extracts"] = extract(*source, **how)
    if process.rank:
        return {}, systems["summaries"]
    if numbers:
        texts = [
            [w for s in d.sentences for w in words_of(s, False, d.tokenised)] for d in documents
        ]
        systems = {
            name: [
                [" ".join(with_numbers(sentence.split(), text)) for sentence in summary]
                for summary, text in zip(summaries, texts)
            ]
            for name, summaries in systems.items()
        }
    systems["reference"] = [document.summary for document in documents]
    lengths = (
        [rouge.count_words(document.summary) for document in documents]
        if as_long_as_references
        else None
    )
    parts = score_systems(systems, documents, run.options, lengths)
    notes = ["cut at the length of each reference"] * as_long_as_references
    notes += run.decode.notes()
    if is_extractor:
        parts["extracts"] = parts["summaries"]
    elif run.decode.min_length == run.decode.max_length:
        notes.append(f"exactly {run.decode.max_length} words")
    if numbers:
        notes.append("the text's numbers instead of #")
    scores = {
        "model": run.config["paper"],
        "variant": run.config["variant"],
        **({} if is_extractor else {"decoding": decoding}),
        **({"written": ", ".join(notes)} if notes else {}),
        **about(run, corpus, documents, split_name),
        "seconds": {
            "training": next((m["seconds"] for m in reversed(run.metrics) if "seconds" in m), 0.0),
            "summary": round(seconds / len(documents), 4),
        },
        "parts": parts,
    }
    return scores, systems["summaries"]


def _words(sentences: Sequence[str], options: Options | None, tokenised: bool) -> list[str]:
    return [
        word
        for sentence in sentences
        for word in _sentence_words(lowered(sentence), options, tokenised)
    ]


def _sentence_words(sentence: str, options: Options | None, tokenised: bool) -> list[str]:
    return options.words(sentence, tokenised) if options else words_of(sentence, True, tokenised)


def about(run: Run, corpus: str, documents: Sequence[Document], split_name: str) -> dict:
    """Describe a run that was scored on a corpus's documents, as a table does."""
    return {
        **setting(corpus, documents, split_name, run.config["documents"].get("train", 0)),
        "seed": run.config["train"].get("seed"),
        "steps": run.updates,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "made_with": run.config.get("made_with"),
    }


def setting(corpus: str, documents: Sequence[Document], split_name: str, training: int = 0) -> dict:
    """Describe the documents that were scored. training: how many documents the system has learned
    from."""
    return {
        "corpus": Path(corpus).name,
        "split": split_name,
        "ids": [d.id for d in documents],
        **({"letters": ALL_LETTERS} if counted_in(documents) else {}),
        "training documents": training,
    }


def column_values(measure: str, parts: list[dict], column: str) -> np.ndarray:
    """Values and weights of a column of a measure: [2, runs, documents]."""
    number = MEASURES[measure].columns.index(column)
    return np.stack([MEASURES[measure].numbers(part)[:, number] for part in parts], 1)


def intervals(measure: str, part: dict) -> dict[str, Interval]:
    """Compute the mean over documents, with its interval, of each column of a measure for one
    system's scores."""
    columns = {c: column_values(measure, [part], c) for c in MEASURES[measure].columns}
    return {
        column: interval(values, weights=weights) for column, (values, weights) in columns.items()
    }
