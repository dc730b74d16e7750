"""Clusters of paragraphs in pieces (Liu and Lapata 2019): all of them first, then the best of a
ranking.

In a corpus of `ParagraphOptions` the first row of a document (a sentence in other corpora) is its
title with `<T>` after it, the others are its paragraphs in their order. `ClusterOptions` rank them,
by a ranker that is trained as every model is, and choose what a model reads.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from lib.data.batch import NOWHERE, EncodedDocument, in_order, rows_of
from lib.data.corpus import Corpus
from lib.data.documents import CorpusError, Document
from lib.data.options import PieceOptions, beginnings, cased, summary_pieces, words_of
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.tfidf import tfidf
from lib.data.tokenize import bigram_recall
from lib.data.vocabulary import PARAGRAPH_END, TITLE_END, Vocabulary
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers.hierarchical_transformer.graphs import (
    discourse_graph,
    entity_finder,
    similarity_graph,
)
from lib.system.devices import device_named
from lib.system.errors import InputError
from lib.system.settings import Count, Share, as_kind, checked
from lib.training.config import TrainConfig
from lib.training.folder import chooser_model, chooser_weights
from lib.training.loop import train_in_cache


class Cluster(NamedTuple):
    """The paragraphs of a document."""

    paragraphs: list[str]
    sources: list[str]  # the document or section that each is from
    recalls: list[float]  # ROUGE-2 recall of the summary by each
    places: list[tuple[int, int]]  # start and end of each in `Document.text`


# A corpus that comes ranked keeps its own paragraphs and pieces.
_IF_RANKED = {"lower": False, "clones": 1.0, "paragraph_words": sys.maxsize}


@checked
class ParagraphOptions(PieceOptions):
    """Title and all paragraphs of several documents in SentencePiece pieces (Liu and Lapata 2019,
    section 4)."""

    paragraph_tokens: Count = 200  # pieces of one paragraph (not stated)
    # a longer section is cut into paragraphs at sentence ends (not stated)
    paragraph_words: Count = 100
    # whole sentences of each section until there are so many; None: all
    section_words: Count | None = None
    summary_tokens: Count = 400
    vocab_size: int = 32_000  # pieces, shared by source and summary
    # a paragraph with more of the summary's bigrams is a copy of it, and is left out
    clones: Share = 0.8
    lower: bool = False  # WikiSum's pieces are cased

    of_paragraphs = True

    def example(self, document: Document) -> Cluster:
        """Cut sections into paragraphs of at most `paragraph_words` words, and leave out copies of
        the summary, unless every paragraph is one."""
        sentences, places = document.sentences, document.places
        cluster = Cluster([], [], [], [])
        for source, numbers in zip(
            document.section_names, beginnings(document, self.section_words)
        ):
            for part in _gather(numbers, sentences, self.paragraph_words):
                cluster.paragraphs.append(" ".join(sentences[i] for i in part))
                cluster.sources.append(source)
                cluster.places.append((places[part[0]][0], places[part[-1]][1]))
        words = partial(words_of, lower=True, tokenised=document.tokenised)
        summary_words = words(" ".join(document.summary))
        for paragraph in cluster.paragraphs:
            cluster.recalls.append(bigram_recall(words(paragraph), summary_words))
        kept = [i for i, recall in enumerate(cluster.recalls) if recall <= self.clones]
        if not kept:
            return cluster
        return Cluster(
            paragraphs=[cluster.paragraphs[i] for i in kept],
            sources=[cluster.sources[i] for i in kept],
            recalls=[cluster.recalls[i] for i in kept],
            places=[cluster.places[i] for i in kept],
        )

    def for_corpus(self, corpus: Corpus) -> "ParagraphOptions":
        return replace(self, **_IF_RANKED) if corpus.ranked else self

    def texts(self, document: Document) -> Iterable[str]:
        return [document.title, *self.example(document).paragraphs, *document.summary]

    def row_places(self, document: Document) -> list[tuple[int, int]]:
        return [(0, len(document.title)), *self.example(document).places]

    def encode_one(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Encode title and all paragraphs, to be ranked: the title's row ends in `<T>`."""
        cluster = self.example(document)
        if not cluster.paragraphs:
            reason = "has no paragraph: nothing is left to summarize"
            raise InputError(f"document {document.id!r} {reason}")
        title, *paragraphs = pieces.encode(cased([document.title, *cluster.paragraphs], self))
        rows = [np.append(title[: self.paragraph_tokens - 1], TITLE_END)]
        for row in paragraphs:
            # A paragraph of which nothing is left keeps its place.
            rows.append(row[: self.paragraph_tokens] if len(row) else np.array([PARAGRAPH_END]))
        target = summary_pieces(document.summary, pieces, self)
        lengths = [len(row) for row in rows]
        source = np.concatenate(rows)
        encoded = EncodedDocument.of(
            document.id, source, lengths, target, (), document.summary, document.tokenised
        )
        return replace(encoded, labels=np.array(cluster.recalls, dtype=np.float32))


def _gather(numbers: Sequence[int], sentences: Sequence[str], words: int) -> list[list[int]]:
    """Numbers of sentences in groups of at most `words` words; a longer sentence is a group of its
    own."""
    groups, count = [], words
    for number in numbers:
        length = len(sentences[number].split())
        if count + length > words:
            groups.append([])
            count = 0
        groups[-1].append(number)
        count += length
    return groups


@checked
class ClusterOptions(ParagraphOptions):
    """The best paragraphs of a cluster, as the models of the paper read them."""

    paragraphs: Count = 24  # L', the best ones, besides the title
    source_tokens: Count | None = None  # pieces of title and paragraphs together; None: all of them
    # similarity: tf-idf, to the title
    ranking: Literal["learned", "similarity", "order"] = "learned"
    ranker_width: Count = 256
    ranker_steps: Count = 20_000  # not stated
    ranker_batch: Count = 8  # clusters; not stated
    ranker_rate: float = 0.15  # of Adagrad
    graph: Literal["", "similarity", "discourse"] = ""
    flat: bool = False  # one sequence instead of paragraphs

    def __post_init__(self):
        if self.graph and self.flat:
            raise InputError("a flat sequence has no paragraphs for a graph")

    @property
    def base(self) -> ParagraphOptions:
        return as_kind(self, ParagraphOptions)

    @property
    def outside(self) -> str:
        return entity_finder()[1] if self.graph == "discourse" else ""

    def for_corpus(self, corpus: Corpus) -> ParagraphOptions:
        """Raise CorpusError where a corpus comes ranked, and the options need the order of its
        paragraphs."""
        if corpus.ranked and (self.ranking != "learned" or self.graph == "discourse"):
            raise CorpusError(
                f"{corpus.name}: its paragraphs come ranked, and neither their order nor their "
                "pages are known: it cannot be ranked in another way, nor have a discourse graph"
            )
        return super().for_corpus(corpus)

    def make(
        self, corpus: Corpus, base: Any, limit: int | None, progress: bool, folder: Path
    ) -> PreparedCorpus:
        """Choose the best paragraphs of every cluster. Those of a corpus that comes ranked keep
        their order."""
        learned = self.ranking == "learned" and not corpus.ranked
        ranker = train_ranker(base, self, progress) if learned else None
        splits = {}
        pieces = base.vocabulary
        for name, split in base.splits.items():
            texts = corpus.split(name) if self.graph == "discourse" else None
            scores = paragraph_scores(split, self.ranking, pieces, ranker)
            longest = split.longest + self.paragraphs  # a mark after each in a flat sequence
            chosen = choose_rows(split, scores, self, pieces, texts)
            splits[name] = Split.write(folder, name, chosen, max(len(pieces), longest))
        weights = chooser_weights(ranker) if ranker else None
        encoder = replace(base.encoder, options=self, chooser=weights)
        return replace(base, encoder=encoder, splits=splits)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        """Choose paragraphs with the encoder's ranker; without one (its corpus came ranked) in
        their order."""
        documents = list(documents)
        pieces = encoder.vocabulary
        wide = super().encode(documents, encoder)
        ranker = None
        if self.ranking == "learned" and encoder.chooser is not None:
            ranker = chooser_model(lambda: _ranker(encoder, self.ranker_width), encoder)
            ranker = ranker.to(device_named())
        scores = paragraph_scores(wide, self.ranking, pieces, ranker)
        return list(choose_rows(wide, scores, self, pieces, documents))


def train_ranker(
    wide: PreparedCorpus, options: ClusterOptions, progress: bool = True, seed: int = 0
) -> ParagraphRanker:
    """Train the ranker of a corpus of whole clusters (`ParagraphOptions`), or load it from the
    cache.

    With Adagrad, as in the paper; batch and duration are not stated there.
    """
    config = TrainConfig(
        batch_size=options.ranker_batch,
        steps=options.ranker_steps,
        optimizer="adagrad",
        learning_rate=options.ranker_rate,
        max_norm=None,
        seed=seed,
        validate_every=max(1, options.ranker_steps // 5),
    )

    def make() -> ParagraphRanker:
        return _ranker(wide.encoder, options.ranker_width)

    return train_in_cache("ranker", make, wide, config, progress)


def _ranker(encoder: TextEncoder, width: int) -> ParagraphRanker:
    return ParagraphRanker(ParagraphRankerConfig(len(encoder.vocabulary), width, width))


# ---------------------------------------------------------------------------------
# ranking and choosing


def paragraph_scores(
    split: Sequence[EncodedDocument],
    ranking: str,
    pieces: Vocabulary,
    ranker: ParagraphRanker | None = None,
) -> list[np.ndarray]:
    """Score the paragraphs of each document. A "learned" ranking without a ranker leaves them as
    they come."""
    if ranker:
        return learned_scores(ranker, split)
    if ranking == "similarity":
        return similarity_scores(split, pieces)
    return [-np.arange(len(document.sentence_lengths) - 1.0) for document in split]


@torch.no_grad()
def learned_scores(
    model: ParagraphRanker, split: Sequence[EncodedDocument], batch_size: int = 8
) -> list[np.ndarray]:
    """Compute equation 6 for every paragraph: an array for each document."""
    device = next(model.parameters()).device
    scores = []
    for batch in in_order(split, batch_size, model.config.vocab_size):
        counts = (batch.sentence_counts - 1).tolist()  # without the title
        # s = sigmoid(W_2 p^)   (6)
        of_batch = model.logits(batch.to(device)).sigmoid()
        scores += [s.cpu().numpy() for s in of_batch.split(counts)]
    return scores


def similarity_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """Compute the tf-idf cosine of each paragraph with its title, which counts as a paragraph (Liu
    et al. 2018)."""
    vectors = (tfidf(words_of_rows(document, pieces)) for document in split)
    return [v[1:] @ v[0] for v in vectors]


def words_of_rows(document: EncodedDocument, pieces: Vocabulary) -> list[list[str]]:
    """Lower-cased words of a cluster's title and paragraphs."""
    texts = [pieces.text(row) for row in rows_of(document)]
    return [words_of(text, lower=True, tokenised=document.tokenised) for text in texts]


def best_first(scores: np.ndarray) -> np.ndarray:
    """Sort indices of paragraphs, the best first; equal ones as they come."""
    return np.argsort(-scores, kind="stable")


def choose_rows(
    documents: Sequence[EncodedDocument],
    scores: Sequence[np.ndarray],
    options: ClusterOptions,
    pieces: Vocabulary,
    texts: Iterable[Document] | None = None,
) -> Iterator[EncodedDocument]:
    """Choose title and best paragraphs of documents, with a graph where `options` name one.

    scores: of each document's paragraphs. texts: the documents before they were encoded, for a
    discourse graph.
    """
    for document, own_scores, text in zip(documents, scores, texts or repeat(None)):
        graph = None
        if options.graph == "similarity":
            graph = similarity_graph(words_of_rows(document, pieces))
        elif options.graph == "discourse" and text:
            cluster = options.example(text)
            graph = discourse_graph([text.title, *cluster.paragraphs], [None, *cluster.sources])
        yield _choose(document, own_scores, graph, options)


def _choose(
    document: EncodedDocument, scores: np.ndarray, graph: np.ndarray | None, options: ClusterOptions
) -> EncodedDocument:
    chosen = np.append(0, 1 + best_first(scores)[: options.paragraphs])  # 0 is the title
    tokens = np.split(np.arange(len(document.source)), document.sentence_lengths.cumsum()[:-1])
    rows = [tokens[i] for i in chosen]
    if options.flat:  # a mark between paragraphs, the token after all of the document's
        rows[1:-1] = [np.append(row, len(document.source)) for row in rows[1:-1]]
    order = np.concatenate(rows)[: options.source_tokens]
    source = np.append(document.source, PARAGRAPH_END)[order].astype(np.int32)
    places = document.places
    if places is not None:
        places = np.vstack([places, NOWHERE])[order]
    ends = np.minimum(np.cumsum([len(row) for row in rows]), len(source))
    lengths = np.diff(ends, prepend=0)
    lengths = lengths[lengths > 0].astype(np.int32)
    if graph is not None:
        left = chosen[: len(lengths)]
        graph = graph[np.ix_(left, left)].ravel().astype(np.float32)
    if options.flat:
        lengths = np.array([len(source)], dtype=np.int32)
    return replace(
        document,
        source=source,
        sentence_lengths=lengths,
        graph=graph,
        labels=None,
        places=places,
    )
