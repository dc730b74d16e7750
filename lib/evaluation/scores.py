"""Scores of trained runs, and of systems that need no training: what result tables are made of.

A file of scores holds the ROUGE, the copied n-grams and what is not in the text of every document, so that tables,
intervals and comparisons (`companion.make_tables`) are made without the model.
"""

import gzip
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.characters import lowered
from lib.data.documents import Document
from lib.data.options import Options, words_of
from lib.data.prepared import PreparedCorpus
from lib.data.words import is_word, with_numbers
from lib.decoding.run import Run
from lib.decoding.search import DecodeConfig, extract, summarize
from lib.evaluation.baselines import counted_in
from lib.evaluation.bootstrap import Interval, interval
from lib.evaluation.measures import COPIED, MEASURES, SUPPORT
from lib.evaluation.metrics import (
    count_words,
    distinct,
    limited_recall,
    ngram_counts,
    repeated_ngrams,
    rouge,
    rouge_in_one_line,
)
from lib.evaluation.support import Names, SourceText, names_of, source_of, support_counts
from lib.models.summarizer import Extractor
from lib.papers.paper import Setup
from lib.papers.tables import DECODINGS, Row, Table
from lib.system.errors import InputError
from lib.system.files import write_whole
from lib.training.devices import ALONE, Process


def score_systems(
    systems: Mapping[str, Sequence[list[str]]],
    documents: Sequence[Document],
    options: Options | None = None,
    words: int | None = None,
) -> dict[str, dict]:
    """Scores that a table needs of each system's summaries, sentences of each: numbers of every document.

    n-grams count as copied from anywhere in the whole document, as words of `options`; without these as words and
    marks in lower case. What is not in the text is as `lib.evaluation.support` has it.

    words: every summary is cut to so many first; marks alone are none.
    """
    if words is not None:
        systems = {
            name: [cut(summary, words, options, d.tokenised) for summary, d in zip(written, documents)]
            for name, written in systems.items()
        }
    sources = [_words(d.sentences, options, d.tokenised) for d in documents]
    texts, names = [source_of(document) for document in documents], names_of(documents)
    return {
        name: {**_scores(summaries, documents, sources, options), "support": _support(summaries, texts, names)}
        for name, summaries in systems.items()
    }


def _support(summaries: Sequence[list[str]], texts: Sequence[SourceText], names: Names) -> dict[str, list]:
    counts = [support_counts(summary, text, names) for summary, text in zip(summaries, texts)]
    return {kind: [count[kind] for count in counts] for kind in SUPPORT}  # [so many, of all] of each document


def _scores(
    summaries: Sequence[list[str]], documents: Sequence[Document], sources: list[list[str]], options: Options | None
) -> dict:
    words = [_words(summary, options, d.tokenised) for summary, d in zip(summaries, documents)]
    copied = [ngram_counts(*pair, sizes=[int(n) for n in COPIED]) for pair in zip(words, sources)]
    return {
        "rouge": np.round(rouge(summaries, [d.summary for d in documents]), 3).tolist(),
        "one line": np.round(rouge_in_one_line(summaries, [d.summary for d in documents]), 3).tolist(),
        "recall": np.round(limited_recall(summaries, [d.references for d in documents]), 3).tolist(),
        "copied": {n: [counts[int(n)] for counts in copied] for n in COPIED},  # [found, all] of each document
        "repeated": [repeated_ngrams(summary) for summary in words],  # trigrams: [said before, all]
        "distinct": distinct(words),
        "words": round(float(np.mean([count_words(summary) for summary in summaries])), 1),
    }


def cut(summary: Sequence[str], words: int, options: Options | None, tokenised: bool = False) -> list[str]:
    """A summary's first words, sentence by sentence, as `options` write them."""
    sentences = []
    for sentence in (_sentence_words(sentence, options, tokenised) for sentence in summary):
        numbers = list(accumulate(map(is_word, sentence)))
        sentences.append(" ".join(word for word, number in zip(sentence, numbers) if number <= words))
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
) -> tuple[dict, list[list[str]]]:
    """Scores of a trained run on documents with references, and the summaries it wrote (an extractor: chose).

    corpus: the name of what the documents are of. numbers: whether the text's numbers are put in place of #
    (`with_numbers`). What it writes in the other of DECODINGS is a part of that name; the references are one too.
    process: one of those that share the writing; the first alone scores, and the others return no scores.
    """
    encoded = run.encode(documents)
    chooses, (plain, ruled) = isinstance(run.model, Extractor), DECODINGS
    decoding, other = (ruled, plain) if run.decode.block_ngrams else (plain, ruled)
    started = time.perf_counter()
    if chooses:
        summaries = extract(run.model, encoded, run.vocabulary, batch_size, process)
    else:
        summaries = summarize(run.model, encoded, run.vocabulary, run.decode, batch_size, process)
    seconds = time.perf_counter() - started
    systems = {"summaries": summaries}
    if not chooses:
        decode = replace(run.decode, block_ngrams=DECODINGS[other])
        systems[other] = summarize(run.model, encoded, run.vocabulary, decode, batch_size, process)
        if run.model.extracts:
            systems["extracts"] = extract(run.model, encoded, run.vocabulary, batch_size, process)
    if process.rank:
        return {}, summaries
    if numbers:
        systems = {name: _with_numbers(every, documents) for name, every in systems.items()}
    systems["reference"] = [document.summary for document in documents]
    parts = score_systems(systems, documents, run.options)
    if chooses:
        parts["extracts"] = parts["summaries"]
    scores = {
        "model": run.config["paper"],
        "variant": run.config["variant"],
        **({} if chooses else {"decoding": decoding, **_written(run.decode, numbers)}),
        **about(run, corpus, documents, split_name),
        "seconds": {"training": _seconds(run), "summary": round(seconds / len(documents), 4)},
        "parts": parts,
    }
    return scores, systems["summaries"]


def _with_numbers(summaries: Sequence[list[str]], documents: Sequence[Document]) -> list[list[str]]:
    texts = ([w for s in d.sentences for w in words_of(s, False, d.tokenised)] for d in documents)
    return [[" ".join(with_numbers(s.split(), text)) for s in summary] for summary, text in zip(summaries, texts)]


def _written(decode: DecodeConfig, numbers: bool) -> dict[str, str]:
    """What a table says of the summaries' length where it is fixed, and of # where it does not stay."""
    exactly = f"exactly {decode.max_length} words" if decode.min_length == decode.max_length else ""
    told = ", ".join(filter(None, [exactly, "the text's numbers in place of #" if numbers else ""]))
    return {"written": told} if told else {}


def score_summaries(
    summaries: Sequence[list[str]], documents: Sequence[Document], split_name: str, of: str, corpus: str
) -> dict:
    """Scores of summaries that any system wrote (sentences of each), and of the references.

    of: the system's name. corpus: the name of what the documents are of.
    """
    systems = {"summaries": summaries, "reference": [document.summary for document in documents]}
    return {"model": of, **_setting(corpus, documents, split_name, 0), "parts": score_systems(systems, documents)}


def score_baselines(
    setup: Setup,
    corpus: PreparedCorpus,
    documents: Sequence[Document],
    encoded: list[EncodedDocument],
    split_name: str,
) -> dict:
    """Scores of the paper's baselines, and of the references themselves."""
    systems = setup.paper.baselines(documents, encoded, corpus)
    systems["reference"] = [document.summary for document in documents]
    return {
        "model": setup.paper.name,
        "variant": setup.variant,
        **_setting(corpus.name, documents, split_name, len(corpus["train"])),
        "parts": score_systems(systems, documents, corpus.options),
    }


def _words(sentences: Sequence[str], options: Options | None, tokenised: bool) -> list[str]:
    return [word for sentence in sentences for word in _sentence_words(lowered(sentence), options, tokenised)]


def _sentence_words(sentence: str, options: Options | None, tokenised: bool) -> list[str]:
    return options.words(sentence, tokenised) if options else words_of(sentence, True, tokenised)


def about(run: Run, corpus: str, documents: Sequence[Document], split_name: str) -> dict:
    """Facts that a table tells of a run that was scored on a corpus's documents."""
    return {
        **_setting(corpus, documents, split_name, run.config["documents"].get("train", 0)),
        "seed": run.config["train"].get("seed"),
        "steps": run.step,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "made_with": run.config.get("made_with"),
    }


def _setting(corpus: str, documents: Sequence[Document], split_name: str, training: int) -> dict:
    return {
        "corpus": Path(corpus).name,
        "split": split_name,
        "ids": [d.id for d in documents],
        **({"letters": ALL_LETTERS} if counted_in(documents) else {}),
        "training documents": training,
    }


def _seconds(run: Run) -> float:
    """Seconds that the last start of a run trained."""
    return next((m["seconds"] for m in reversed(run.metrics) if "seconds" in m), 0.0)


def column_values(measure: str, parts: list[dict], column: str) -> np.ndarray:
    """Values and weights of a column of a measure: [2, runs, documents]."""
    number = MEASURES[measure].columns.index(column)
    return np.stack([MEASURES[measure].numbers(part)[:, number] for part in parts], 1)


def intervals(measure: str, part: dict) -> dict[str, Interval]:
    """A measure of one system's scores: the mean over documents of each column with its interval."""
    columns = {c: column_values(measure, [part], c) for c in MEASURES[measure].columns}
    return {column: interval(values, weights=weights) for column, (values, weights) in columns.items()}


SCORES = ".scores.json.gz"
ALL_LETTERS = "all letters, without stems"  # what scores and tables say that ROUGE counts, where it is not ASCII


def row_parts(row: Row, table: Table) -> set[str]:
    """The parts of a run's or a baseline's scores that a row of a table can be made of."""
    return {row.part, *(DECODINGS if table.decodings and row.part == "summaries" else ())}


def write_table_scores(path: Path, table: Table, scored: Mapping[str, Sequence[dict]]) -> Path:
    """The scores of each row, by label: those of its seeds, without the parts that it does not have."""
    needed = {row.label: row_parts(row, table) for row in table.rows}
    scores_by_label = {
        label: [s | {"parts": {k: v for k, v in s["parts"].items() if k in needed[label]}} for s in every]
        for label, every in scored.items()
    }
    text = json.dumps(scores_by_label, ensure_ascii=False, separators=(",", ":"))
    return write_whole(path, gzip.compress(text.encode(), mtime=0))


def read_table_scores(path: Path) -> dict[str, list[dict]]:
    """Read what `write_table_scores` wrote. Raises ValueError for another file."""
    try:
        scores_by_label = json.loads(gzip.decompress(path.read_bytes()))
        if all(isinstance(scores, dict) for every in scores_by_label.values() for scores in every):
            return scores_by_label
        reason = "a row is no list of scores"
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError, AttributeError, TypeError) as error:
        reason = str(error)
    raise InputError(f"{path}: no scores of a table ({reason})")
