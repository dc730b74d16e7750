"""How a windowed run reads papers: slides, windows against chunks, the order of sections, links of references.

    python -m companion.studies.windows trained/windowed --dataset pmc-sample --output figures/windowed_papers.json

A part that --output already holds is not measured again.

slides: papers are read whole; how many windows the first, second, third ... slide moves on by, where one slide is all
symbols in a row. references: how much of them comes from the windows between the first and the last, linked as in
training. chunks: what is read is cut into as many chunks as it has windows, each is summarized alone in an equal
share of the words, and the parts are put together. orders: papers are cut to introduction, second section and
conclusion, and these change their order. links: of reference sentences that share a run of words with a single
sentence of the text, the rank that each similarity gives to that sentence, with the run's embeddings as word vectors.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lib
from companion.stored import open_store
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.sections import choose_sections
from lib.data.split import Split
from lib.data.tfidf import tfidf
from lib.data.vocabulary import EOS, SLIDE
from lib.data.word_vectors import learn_vectors, similarities, target_sentences
from lib.decoding.run import Run
from lib.decoding.search import search_split
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.scores import score_systems
from lib.models.windowed import Windowed, count_windows
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError

CUT = 200  # words of a summary that are scored
LEARNED_ON = 3_000  # documents that word vectors are learned on
TOGETHER = 10  # documents in a batch


def main(arguments: Sequence[str] | None = None) -> None:
    parser = papers_parser("companion.studies.windows", __doc__)
    parser.add_argument("--vectors-of", default="sumpubmed", help="a corpus to learn word vectors on")
    args = parser.parse_args(arguments)
    with plain_errors():
        _measure(args)


def papers_parser(module: str, docstring: str | None) -> ArgumentParser:
    """Make the parser of a command that measures how a windowed run reads papers."""
    parser = command_parser(module, docstring)
    parser.add_argument("run", type=Path, help="the folder of a run with windows")
    parser.add_argument("--dataset", required=True, help="a corpus; its test documents are read")
    parser.add_argument("--documents", type=int, default=50, help="the first so many (50)")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    return parser


def open_papers(args: Namespace) -> tuple[Run, list[Document], dict[str, Any]]:
    """Open the run and the documents that a command asks for; return also what its results are about.

    Raises InputError for a run without windows.
    """
    run = lib.load(args.run, device="cpu")
    if not (isinstance(run.model, Windowed) and run.model.config.window):
        raise InputError(f"{args.run}: this run has no windows")
    documents = unseen(load_corpus(args.dataset), "test", [run.config["corpus"]], args.documents)
    return run, documents, {"run": str(args.run), "corpus": Path(args.dataset).name, "documents": len(documents)}


def _measure(args: Namespace) -> None:
    run, documents, about = open_papers(args)
    store = open_store(args.output, "how papers are read", about)
    for name, measure in PARTS.items():
        numbers = store.part(name, lambda measure=measure: measure(run, documents, args))
        print(f"{name}:", *(f"  {key}: {value}" for key, value in numbers.items()), sep="\n")


def window_counts(run: Run, documents: Sequence[EncodedDocument]) -> list[int]:
    """Count the windows of each document."""
    config = run.model.config
    return [int(count_windows(len(document.source), config.window, config.stride)) for document in documents]


# ------------------------------------------------------------------------------------------- slides and references


def slides(run: Run, documents: Sequence[Document], _: Namespace) -> dict:
    """Summarize whole papers, the shortest first: the windows that the first, second ... slide moves on by, means
    over the papers that have so many slides; how many windows there are, and by how many all slides move on."""
    config, read = run.model.config, run.options.source_tokens
    in_training = int(count_windows(read, config.window, config.stride)) if read else 1
    whole = replace(run.encoder, options=replace(run.options, source_tokens=None, section_words=None))
    texts = sorted(whole.encode(documents), key=lambda text: len(text.source))
    counts, jumps = window_counts(run, texts), []
    for first in range(0, len(texts), TOGETHER):
        part = slice(first, first + TOGETHER)
        # as many words as a summary in training had for each window
        max_length = max(run.decode.max_length, run.options.summary_tokens // in_training * counts[part][-1])
        best = search_split(run.model, texts[part], run.vocabulary, replace(run.decode, max_length=max_length))
        jumps += [jumps_of(hypothesis.ids) for hypothesis in best]
    numbers = {}
    for i in range(5):
        sizes = np.array([jump[i] for jump in jumps if len(jump) > i])
        numbers[f"slide {i + 1}"] = {"papers": len(sizes), "windows": str(interval(sizes)), "sizes": sizes.tolist()}
    return numbers | {"windows": counts, "windows moved on by": [sum(jump) for jump in jumps], "slides": jumps}


def jumps_of(ids: Sequence[int]) -> list[int]:
    """Count the symbols in a row, at each place where there are any."""
    words_before = np.cumsum(np.array(ids) != SLIDE)[np.array(ids) == SLIDE]
    return np.unique(words_before, return_counts=True)[1].tolist()


def references(run: Run, documents: Sequence[Document], args: Namespace) -> dict:
    """Link each sentence of the references as in training: the share of their words that comes from the windows
    between the first and the last of a text, with a 95% interval over papers, and how many references have none from
    there. Texts of two windows are left out."""
    corpus = load_corpus(args.vectors_of, errors="skip")
    learned = Split.of(text for document in corpus.split("train", LEARNED_ON) for text in run.encode([document]))
    vectors = learn_vectors(learned, len(run.vocabulary))
    about = f"learned on {len(learned):,} documents of {Path(corpus.name).name}"
    texts, between = run.encode(documents), []
    for document, count in zip(texts, window_counts(run, texts)):
        target = run.options.mark(document, vectors).target
        windows = np.cumsum(target == SLIDE)[(target != SLIDE) & (target != EOS)]  # of each word
        if count > 2:
            between.append((((windows > 0) & (windows < count - 1)).sum(), len(windows)))
    words, lengths = np.array(between, dtype=float).reshape(-1, 2).T
    share = str(interval(100 * words, weights=lengths)) if len(words) else ""
    none = int((words == 0).sum())
    return {"vectors": about, "papers": len(words), "no word between": none, "words between": share}


# ------------------------------------------------------------------------------------------------ chunks and orders


def chunks(run: Run, documents: Sequence[Document], _: Namespace) -> dict:
    """Score what is written through windows, and the summaries of chunks, put together."""
    encoded = run.encode(documents)
    counts, systems = window_counts(run, encoded), {"windows": _summaries(run, encoded)}
    for name, cut in CHUNKS.items():
        texts = [cut(document, count) for document, count in zip(encoded, counts)]
        summaries = [_summaries(run, parts, len(parts)) for parts in texts]
        systems[name] = [[sentence for part in summary for sentence in part] for summary in summaries]
    return _scored(systems, documents, run, dict.fromkeys(CHUNKS, "windows"))


def equal_cuts(document: EncodedDocument, count: int) -> list[int]:
    """Where a text is cut into so many chunks of equal length, to a word."""
    return [len(document.source) * i // count for i in range(1, count)]


def sentence_cuts(document: EncodedDocument, count: int) -> list[int]:
    """The ends of sentences that are nearest to `equal_cuts`."""
    ends, places = np.cumsum(document.sentence_lengths)[:-1], equal_cuts(document, count)
    return sorted({int(ends[np.abs(ends - place).argmin()]) for place in places}) if len(ends) else places


def chunks_of(document: EncodedDocument, cuts: Sequence[int]) -> list[EncodedDocument]:
    """Cut a document after so many words: a sentence that a cut goes through is one in both parts."""
    ends, parts = np.cumsum(document.sentence_lengths), []
    for begin, end in zip([0, *cuts], [*cuts, len(document.source)]):
        inside = [begin, *ends[(ends > begin) & (ends < end)].tolist(), end]
        lengths = np.diff(inside).astype(document.sentence_lengths.dtype)
        parts.append(replace(document, source=document.source[begin:end], sentence_lengths=lengths))
    return parts


CHUNKS: dict[str, Callable[[EncodedDocument, int], list[EncodedDocument]]] = {
    "equal chunks": lambda document, count: chunks_of(document, equal_cuts(document, count)),
    "chunks of whole sentences": lambda document, count: chunks_of(document, sentence_cuts(document, count)),
    "first and last chunk": lambda document, count: CHUNKS["equal chunks"](document, count)[:: max(1, count - 1)],
}
ORDERS = {"conclusion first": (2, 0, 1), "conclusion in the middle": (0, 2, 1), "conclusion last": (0, 1, 2)}
AGAINST = dict.fromkeys(ORDERS, "as they are") | {"conclusion last": "conclusion in the middle"}


def orders(run: Run, documents: Sequence[Document], _: Namespace) -> dict[str, dict]:
    """Score what is written of papers as they are, and with their conclusion in each place of three sections."""
    papers = [document for document in documents if len(document.sections) > 2]
    systems = {"as they are": _summaries(run, run.encode(papers))}
    for name, order in ORDERS.items():
        systems[name] = _summaries(run, run.encode([reordered(paper, order) for paper in papers]))
    return _scored(systems, papers, run, AGAINST)


def reordered(document: Document, order: Sequence[int]) -> Document:
    """Introduction, second section and conclusion of a document, in this order."""
    places = np.array(choose_sections(document.section_names, 3))[list(order)]
    names, sections = ([values[i] for i in places] for values in (document.section_names, document.sections))
    return replace(document, section_names=names, sections=sections)


def _summaries(run: Run, documents: Sequence[EncodedDocument], parts: int = 1) -> list[list[str]]:
    """Summarize documents, each in an equal share of the run's lengths where a text has several parts."""
    lengths = {"min_length": -(-run.decode.min_length // parts), "max_length": run.decode.max_length // parts}
    decode = replace(run.decode, **lengths)
    best = search_split(run.model, documents, run.vocabulary, decode, batch_size=TOGETHER)
    ids = [[i for i in hypothesis.ids if i != SLIDE] for hypothesis in best]
    return [run.vocabulary.sentences(i, d.unknown) for i, d in zip(ids, documents)]


def _scored(
    systems: Mapping[str, Sequence[list[str]]], documents: Sequence[Document], run: Run, against: Mapping[str, str]
) -> dict[str, dict]:
    """R-1 of each system with its interval and that of the difference from the one that it is compared with; share of
    the trigrams that are repeated."""
    parts, rows = score_systems(systems, documents, run.options, CUT), {}
    r1 = {name: np.array(part["rouge"])[:, 0] for name, part in parts.items()}
    for name, part in parts.items():
        repeated, trigrams = np.sum(part["repeated"], axis=0).tolist()
        other = against.get(name, "")
        rows[name] = {
            "R-1": str(interval(r1[name])),
            "difference": str(paired_bootstrap(r1[other], r1[name])) if other else "",
            "compared with": other,
            "repeated": round(repeated / max(1, trigrams), 4),
            "values": r1[name].tolist(),
        }
    return rows


# ------------------------------------------------------------------------------------------------------------ links


RUN = 5  # words in a row that two sentences share by copying


def copied_from(sentence: Sequence[int], source: Sequence[Sequence[int]]) -> int | None:
    """The index of the only source sentence that shares the longest run of words with a sentence; None where the run
    has fewer than `RUN` words, or several sentences share it."""
    longest = [_shared_run(sentence, other) for other in source]
    best = max(longest, default=0)
    return longest.index(best) if best >= RUN and longest.count(best) == 1 else None


def _shared_run(words: Sequence[int], others: Sequence[int]) -> int:
    """Length of the longest run of words that both have."""
    # ends[j]: length of the run that ends at this word and at the j-th of the others
    longest, ends = 0, [0] * (len(others) + 1)
    for word in words:
        ends = [0, *(ends[j] + 1 if word == other else 0 for j, other in enumerate(others))]
        longest = max(longest, *ends)
    return longest


@dataclass(frozen=True)
class SentenceLists:
    """A document's sentences in ids: S of the reference, L of the text that is read."""

    reference: list[np.ndarray]
    source: list[np.ndarray]

    @classmethod
    def of(cls, document: EncodedDocument, lower: bool) -> "SentenceLists":
        lengths = target_sentences(document, lower)
        return cls(
            np.split(document.target[: lengths.sum()], np.cumsum(lengths)[:-1]),
            np.split(document.source, np.cumsum(document.sentence_lengths)[:-1]),
        )

    @property
    def all(self) -> list[np.ndarray]:
        return [*self.reference, *self.source]

    def similarities(self, vectors: np.ndarray, aggregate: str = "sum") -> np.ndarray:
        """(2), (3): [S, L]. aggregate: "sum", cosines of sums of vectors, as in the article; "mean", dot products of
        means of vectors of length 1, as in the author's code."""
        summary, source = ((np.concatenate(s), np.array([len(x) for x in s])) for s in (self.reference, self.source))
        return similarities(summary, source, vectors, aggregate)

    def counts(self, size: int) -> np.ndarray:
        """How often each of the first words of the vocabulary occurs in each sentence [S + L, size]."""
        return np.stack([np.bincount(words[words < size], minlength=size) for words in self.all])

    @property
    def copies(self) -> list[tuple[int, int]]:
        """(reference sentence, source sentence) of every one that was copied."""
        sources = [other.tolist() for other in self.source]
        found = [(i, copied_from(sentence.tolist(), sources)) for i, sentence in enumerate(self.reference)]
        return [(i, j) for i, j in found if j is not None]


def by_centred_sums(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of sums of word vectors less their mean over the words of the text, which long sums have in common:
    [S, L]."""
    words = np.concatenate(sentences.source)
    mean = vectors[words[words < len(vectors)]].mean(0)
    return sentences.similarities(np.where(vectors.any(1, keepdims=True), vectors - mean, 0))


def by_rare_words(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of sums of word vectors that are multiplied by log(sentences / sentences with the word), as tf-idf
    weights words: [S, L]."""
    sentences_with_word = (sentences.counts(len(vectors)) > 0).sum(0)
    rarity = np.log(len(sentences.all) / np.maximum(sentences_with_word, 1))
    return sentences.similarities(vectors * rarity[:, None])


def by_counts(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of counts of the words that have a vector, each a dimension of its own: [S, L]."""
    counts = sentences.counts(len(vectors)) * (np.abs(vectors).sum(1) > 0)
    counts = counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)
    return counts[: len(sentences.reference)] @ counts[len(sentences.reference) :].T


def by_tfidf(sentences: SentenceLists, _: np.ndarray) -> np.ndarray:
    """Cosines of tf-idf over the sentences of the text and the reference: [S, L]. No vector is needed."""
    weights = tfidf([words.tolist() for words in sentences.all])
    return weights[: len(sentences.reference)] @ weights[len(sentences.reference) :].T


Measure = Callable[[SentenceLists, np.ndarray], np.ndarray]  # of sentences and word vectors [V, width]: [S, L]
OF_WORDS = "word counts", "tf-idf"  # measures that use word vectors only to know which words are known
MEASURES: dict[str, Measure] = {
    "sums": SentenceLists.similarities,
    "means": lambda sentences, vectors: sentences.similarities(vectors, "mean"),
    "sums, centred": by_centred_sums, "sums, by rarity": by_rare_words,
    "word counts": by_counts, "tf-idf": by_tfidf,
}  # fmt: skip


def rank_of(row: np.ndarray, place: int) -> int:
    """The rank of a place in a row of similarities, from 1; of equals the first places come first."""
    return int((np.argsort(-row, kind="stable") == place).nonzero()[0][0]) + 1


def embeddings_of(run: Run) -> np.ndarray:
    """Copy the run's embeddings as word vectors [V, width]; those of symbols are 0."""
    vectors = run.model.embedding.weight.detach().double().cpu().numpy().copy()
    vectors[: SLIDE + 1] = 0
    return vectors


def links(run: Run, documents: Sequence[Document], _: Namespace) -> dict[str, dict]:
    """Rank, by each similarity, the sentence that a reference sentence was copied from, with the run's embeddings as
    word vectors; and the similarities of the first paper."""
    vectors = embeddings_of(run)
    texts = [SentenceLists.of(document, run.options.lower) for document in run.encode(documents)]
    rows = {
        name if name in OF_WORDS else f"{name}, embeddings of the run": ranks(measure, texts, vectors)
        for name, measure in MEASURES.items()
    }
    first = {name: np.round(MEASURES[name](texts[0], vectors), 3).tolist() for name in ("sums", "tf-idf")}
    return {**with_differences(rows), "first paper": {**first, "copies": texts[0].copies}}


def ranks(measure: Measure, texts: Sequence[SentenceLists], vectors: np.ndarray) -> dict:
    """Shares of the copied sentences whose source has the first rank, or one of the first three, with intervals over
    papers."""
    hits = []
    for text in texts:
        values = measure(text, vectors)
        found = np.array([rank_of(values[i], j) for i, j in text.copies])
        hits.append([(found == 1).sum(), (found <= 3).sum(), len(found)])
    first, three, count = np.array(hits, dtype=float).T
    return {
        "sentences": int(count.sum()),
        "papers": int((count > 0).sum()),
        "first": str(interval(100 * first, weights=count)),
        "first three": str(interval(100 * three, weights=count)),
        "by paper": np.array(hits).tolist(),
    }


def with_differences(rows: dict[str, dict]) -> dict[str, dict]:
    """Add to each row the paired difference of its share of first ranks from that of the first row."""
    shares = {name: np.array(row["by paper"], dtype=float)[:, [0, -1]].T for name, row in rows.items()}
    (first, weights), *_ = shares.values()
    found = {name: paired_bootstrap(100 * first, 100 * b, weights=(weights, w)) for name, (b, w) in shares.items()}
    own = next(iter(rows))
    return {name: {**row, "difference": "" if name == own else str(found[name])} for name, row in rows.items()}


PARTS: dict[str, Callable[[Run, Sequence[Document], Namespace], dict]] = {
    "slides": slides, "references": references, "chunks": chunks, "orders": orders, "links": links,
}  # fmt: skip


if __name__ == "__main__":
    main()
