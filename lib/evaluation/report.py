"""A report on a run that has summarized the documents of a corpus: what to expect of it, scores of
equally long summaries, what is not in the text, and every document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean

import numpy as np

from lib.data.characters import clean
from lib.data.documents import Document
from lib.data.options import Options
from lib.decoding.field import STRANGE
from lib.decoding.readable import Reading
from lib.decoding.run import Run
from lib.evaluation.baselines import counted_in, lexrank, oracle
from lib.evaluation.bootstrap import Difference, interval, no_interval, paired_bootstrap
from lib.evaluation.comparison import first_words, reference_lengths
from lib.evaluation.measures import METRICS, SUPPORT
from lib.evaluation.rouge import count_words, rouge
from lib.evaluation.scores import cut
from lib.evaluation.support import (
    Names,
    SourceText,
    names_of,
    not_in_text,
    source_of,
    support_counts,
    terms,
)

LEXRANK, LEAD, ORACLE = "LexRank", "Lead", "Oracle"
REFERENCES = "the references"
AT_REFERENCE, AT_EQUAL = "R-1, cut to the reference", "R-1, both also cut to the shorter one"

Summaries = Sequence[list[str]]  # of each document, in sentences
Marked = list[tuple[str, str]]  # a sentence in parts: the text, and "number", "name", "word" or ""


@dataclass(frozen=True)
class Scores:
    """ROUGE of a system's summaries [documents, 3], in percent, and their mean number of words."""

    rouge: np.ndarray
    words: float


@dataclass(frozen=True)
class ReportedDocument:
    """A document with its summaries; `scores` has the R-1 of each system, cut to the reference's
    length."""

    name: str
    scores: dict[str, float]
    lengths: dict[str, int]  # words of the text, the reference and the summary
    missing: int  # numbers and names of the summary that the text does not have
    reference: list[str]
    summary: list[Marked]
    lexrank: list[str]


@dataclass(frozen=True)
class Report:
    """What `report_of` found."""

    title: str
    facts: dict[str, str]  # of the model and of the corpus
    expectation: list[str]  # sentences: what to expect of the summaries
    scores: dict[str, dict[str, str]]  # by system: ROUGE with intervals, words
    # R-1 of the run minus that of another system, at the references' length, and at a length that
    # both have
    differences: dict[str, dict[str, str]]
    missing: dict[str, dict[str, str]]  # by system: what is not in the text, of how many
    documents: list[ReportedDocument]  # the best first
    remark: str  # how the numbers are to be read

    @property
    def shown(self) -> dict[int, str]:
        """The numbers of the documents that are opened, with what they are."""
        count = len(self.documents)
        places = {count - 1: "worst", count // 2: "middle", 0: "best"}
        return dict(sorted(places.items()))


def report_of(
    run: Run,
    model: str,
    documents: Sequence[Document],
    written: Summaries,
    corpus: str,
    split: str,
    others: Mapping[str, Summaries] | None = None,
) -> Report:
    """Compare a run's summaries with LexRank, the first words and the oracle: each cut to the words
    of the document's reference; and in pairs, both also cut to the shorter one.

    Args:
        model: its name for people.
        written: the run's summaries, in its own words.
        others: summaries of other systems, by name.
    """
    lengths = reference_lengths(documents)
    letters = counted_in(documents)
    systems = {model: written, **(others or {})}
    systems[LEXRANK] = [
        lexrank(document.sentences, words, all_letters=letters)
        for document, words in zip(documents, lengths)
    ]
    systems[LEAD] = [
        first_words(document.sentences, words) for document, words in zip(documents, lengths)
    ]
    systems[ORACLE] = [
        oracle(document.sentences, document.summary, all_letters=letters) for document in documents
    ]

    def scored(name: str, words_of_each: Sequence[int]) -> Scores:
        return scores_of(systems[name], documents, words_of_each, run.options)

    def at_equal_length(other: str) -> Difference:
        """Compare two systems that write as much: of fewer words, ROUGE is lower."""
        summaries = zip(lengths, systems[model], systems[other])
        words = [min(n, count_words(own), count_words(its)) for n, own, its in summaries]
        return _difference(scored(model, words), scored(other, words))

    scores = {name: scored(name, lengths) for name in systems}
    equal = {name: at_equal_length(name) for name in systems if name != model}
    readings = [run.reading(d, encoded) for d, encoded in zip(documents, run.encode(documents))]
    sources, names = [source_of(document) for document in documents], names_of(documents)
    whole = {
        model: written,
        LEXRANK: systems[LEXRANK],
        REFERENCES: [document.summary for document in documents],
    }
    return Report(
        title=f"{model} on {len(documents)} {split} documents of {corpus}",
        facts=_facts(run, documents, readings, lengths, corpus, split),
        expectation=_expectation(run, readings, equal[LEXRANK]),
        scores={name: _score_row(found) for name, found in scores.items()},
        differences={
            name: {
                AT_REFERENCE: str(_difference(scores[model], scores[name])),
                AT_EQUAL: str(difference),
            }
            for name, difference in equal.items()
        },
        missing={name: _missing_row(texts, sources, names) for name, texts in whole.items()},
        documents=_reported(run, documents, systems, scores, model, sources, names),
        remark=(
            "ROUGE (F1) of summaries that are cut to the number of words of the document's "
            f"reference; {no_interval(len(documents)) or '95% intervals over documents'}. words: "
            "mean number of words that are scored. A summary that is shorter than its reference "
            "stays so, and scores less for it. The oracle knows the reference when it chooses "
            "whole sentences."
        ),
    )


def scores_of(
    summaries: Summaries,
    documents: Sequence[Document],
    words_of_each: Sequence[int],
    options: Options,
) -> Scores:
    """Cut each summary to so many words, as `options` write them, and score it."""
    every = zip(summaries, words_of_each, documents)
    texts = [cut(summary, words, options, d.tokenised) for summary, words, d in every]
    references = [document.summary for document in documents]
    return Scores(rouge(texts, references), mean(map(count_words, texts)))


def _difference(model: Scores, other: Scores) -> Difference:
    return paired_bootstrap(other.rouge[:, 0], model.rouge[:, 0])


def _facts(
    run: Run,
    documents: Sequence[Document],
    readings: Sequence[Reading],
    lengths: Sequence[int],
    corpus: str,
    split: str,
) -> dict[str, str]:
    parameters = sum(p.numel() for p in run.model.parameters())
    learned_from = Path(run.config["corpus"]).name
    count = run.config["documents"].get("train", 0)
    texts = [reading.all_words for reading in readings]
    share = mean(reading.words / max(1, reading.all_words) for reading in readings)
    return {
        "model": (
            f"{run.config['variant']}, {parameters:,} parameters, trained on {count:,} documents "
            f"of {learned_from} in {run.updates:,} updates"
        ),
        "documents": (
            f"{len(documents)} of the {split} split of {corpus}; texts of {_range(texts)} words, "
            f"references of {_range(lengths)}"
        ),
        "read by the model": f"{share:.0%} of the words of a text on average",
    }


def _range(values: Sequence[int]) -> str:
    return f"{mean(values):,.0f} ({min(values):,} to {max(values):,})"


def _expectation(run: Run, readings: Sequence[Reading], to_lexrank: Difference) -> list[str]:
    """Say whether the texts are of the model's field, and whether LexRank would do as well."""
    said, count = [], len(readings)
    if run.field:
        unlike = sum(run.field.is_unlike(reading.rows) for reading in readings)
        said.append(
            f"{unlike} of {count} texts are unlike the {run.field.texts} that the model was "
            f"trained on. (The rule errs: {run.field.warned:.0%} of texts of that field count as "
            f"unlike it, {run.field.missed:.0%} of others do not.)"
        )
        if 2 * unlike > count:
            said.append("Expect nothing of these summaries, whatever their scores.")
    strange = sum(reading.unknown > STRANGE for reading in readings)
    if strange:
        said.append(
            f"In {strange} of {count} texts more than {STRANGE:.0%} of the words that are read are "
            "unknown to the model; their summaries cannot be trusted."
        )
    least = 0 if run.is_extractor else run.decode.min_length
    if short := sum(sum(map(len, reading.rows)) < least for reading in readings):
        said.append(
            f"{short} of {count} texts are shorter than the shortest summary that the model is "
            f"allowed to write ({least}); their summaries are at most as long as they are."
        )
    points = f"{to_lexrank.text(1).partition(', p')[0]} points of R-1"
    if no_interval(count):
        said.append(
            f"The model minus LexRank, at equal length: {to_lexrank.mean:+.1f} points of R-1; "
            f"{count} documents are too few for an interval."
        )
    elif to_lexrank.is_real:
        better = "higher" if to_lexrank.mean > 0 else "lower"
        said.append(
            f"At equal length the model is {better} than LexRank, which only chooses sentences: "
            f"{points}."
        )
    else:
        said.append(f"At equal length the model cannot be told from LexRank: {points}.")
    return said


def _score_row(scores: Scores) -> dict[str, str]:
    row = {}
    for metric, values in zip(METRICS, scores.rouge.T):
        row[metric] = str(interval(values)).partition(" (")[0]
    return {**row, "words": f"{scores.words:.0f}"}


def _missing_row(
    summaries: Summaries, sources: Sequence[SourceText], names: Names
) -> dict[str, str]:
    """Write how many numbers, names and words of whole summaries are not in the text, of how
    many."""
    counts = [support_counts(summary, text, names) for summary, text in zip(summaries, sources)]
    row = {}
    for kind in ("numbers", "names", "words"):
        found, every = np.sum([count[kind] for count in counts], axis=0)
        row[SUPPORT[kind]] = f"{found:,} of {every:,}" if every else "none written"
    return row


def _reported(
    run: Run,
    documents: Sequence[Document],
    systems: Mapping[str, Summaries],
    scores: Mapping[str, Scores],
    model: str,
    sources: Sequence[SourceText],
    names: Names,
) -> list[ReportedDocument]:
    reported = []
    for number, (document, text) in enumerate(zip(documents, sources)):
        own = systems[model][number]
        marked = [marks_of(sentence, text, names) for sentence in run.readable(document, own)]
        kinds = [kind for sentence in marked for _, kind in sentence]
        lengths = {"text": document.sentences, "reference": document.summary, "summary": own}
        reported.append(
            ReportedDocument(
                name=document.title or document.id,
                scores={name: float(found.rouge[number, 0]) for name, found in scores.items()},
                lengths={what: count_words(sentences) for what, sentences in lengths.items()},
                missing=sum(kind in ("number", "name") for kind in kinds),
                reference=list(document.summary),
                summary=marked,
                lexrank=systems[LEXRANK][number],
            )
        )
    return sorted(reported, key=lambda document: -document.scores[model])


def marks_of(sentence: str, text: SourceText, names: Names) -> Marked:
    """Cut a sentence into parts: those that the text does not have, each with what it is, and the
    rest."""
    cleaned = clean(sentence)
    missing = not_in_text(terms(sentence), text, names)
    bounds = [0, *(b for term, _ in missing for b in (term.start, term.end)), len(cleaned)]
    kinds = ["", *(kind for _, found in missing for kind in (found, ""))]
    pieces = [cleaned[start:end] for start, end in pairwise(bounds)]
    return [(piece, kind) for piece, kind in zip(pieces, kinds) if piece]
