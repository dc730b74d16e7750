"""Ranking the paragraphs of clusters: the learned ranker, trained as every model is, and corpora in its order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Literal

import numpy as np
import torch

from lib.data.batch import EncodedDocument, rows_of
from lib.data.batching import in_order
from lib.data.documents import CorpusError, Document
from lib.data.options import words_of
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.tfidf import tfidf
from lib.data.vocabulary import PARAGRAPH_END, Vocabulary
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers.hierarchical_transformer.clusters import ParagraphOptions
from lib.papers.hierarchical_transformer.graphs import discourse_graph, entity_finder, similarity_graph
from lib.system.errors import InputError
from lib.system.fields import Count, as_kind, checked
from lib.training.config import TrainConfig
from lib.training.devices import device_named
from lib.training.folder import chooser_model, chooser_weights
from lib.training.loop import train_in_cache


@checked
class ClusterOptions(ParagraphOptions):
    """The best paragraphs of a cluster, as the models of the paper read them."""

    paragraphs: Count = 24  # L', the best ones, besides the title
    source_tokens: Count | None = None  # pieces of title and paragraphs together; None: all of them
    ranking: Literal["learned", "similarity", "order"] = "learned"  # similarity: tf-idf, to the title
    ranker_width: Count = 256
    ranker_steps: Count = 20_000  # not stated
    ranker_batch: Count = 8  # clusters; not stated
    ranker_rate: float = 0.15  # of Adagrad
    graph: Literal["", "similarity", "discourse"] = ""
    flat: bool = False  # one sequence in place of paragraphs

    def __post_init__(self):
        if self.graph and self.flat:
            raise InputError("a flat sequence has no paragraphs for a graph")

    @property
    def base(self) -> ParagraphOptions:
        return as_kind(self, ParagraphOptions)

    @property
    def outside(self) -> str:
        return entity_finder()[1] if self.graph == "discourse" else ""

    def for_corpus(self, corpus) -> ParagraphOptions:
        """Raise CorpusError where a corpus comes ranked, and the options need the order of its paragraphs."""
        if corpus.ranked and (self.ranking != "learned" or self.graph == "discourse"):
            raise CorpusError(
                f"{corpus.name}: its paragraphs come ranked, and neither their order nor their pages are known: it "
                "cannot be ranked in another way, nor have a discourse graph"
            )
        return super().for_corpus(corpus)

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        """Choose the best paragraphs of every cluster. Those of a corpus that comes ranked keep their order."""
        learned = self.ranking == "learned" and not corpus.ranked
        ranker = train_ranker(base, self, progress) if learned else None
        splits = {}
        for name, split in base.splits.items():
            texts = corpus.split(name) if self.graph == "discourse" else None
            scores = paragraph_scores(split, self.ranking, base.vocabulary, ranker)
            chosen = choose_rows(split, scores, self, base.vocabulary, texts)
            marks = self.paragraphs  # a mark after each in a flat sequence
            splits[name] = Split.write(folder, name, chosen, max(len(base.vocabulary), split.longest + marks))
        weights = chooser_weights(ranker) if ranker else None
        return replace(base, encoder=replace(base.encoder, options=self, chooser=weights), splits=splits)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        """Choose paragraphs with the encoder's ranker; without one (its corpus came ranked) in their order."""
        documents, pieces = list(documents), encoder.vocabulary
        wide, ranker = super().encode(documents, encoder), None
        if self.ranking == "learned" and encoder.chooser is not None:
            ranker = chooser_model(lambda: _ranker(encoder, self.ranker_width), encoder).to(device_named())
        scores = paragraph_scores(wide, self.ranking, pieces, ranker)
        return list(choose_rows(wide, scores, self, pieces, documents))


def train_ranker(wide: PreparedCorpus, options: ClusterOptions, progress: bool = True) -> ParagraphRanker:
    """Train the ranker of a corpus of whole clusters (`ParagraphOptions`), or load it from the cache.

    With Adagrad, as in the paper; batch and duration are not stated there.
    """
    config = TrainConfig(
        batch_size=options.ranker_batch,
        steps=options.ranker_steps,
        optimizer="adagrad",
        learning_rate=options.ranker_rate,
        max_norm=None,
        validate_every=max(1, options.ranker_steps // 5),
    )
    return train_in_cache("ranker", lambda: _ranker(wide.encoder, options.ranker_width), wide, config, progress)[0]


def _ranker(encoder: TextEncoder, width: int) -> ParagraphRanker:
    return ParagraphRanker(ParagraphRankerConfig(len(encoder.vocabulary), width, width))


# ------------------------------------------------------------------------------------------- ranking and choosing


def paragraph_scores(
    split: Sequence[EncodedDocument], ranking: str, pieces: Vocabulary, ranker: ParagraphRanker | None = None
) -> list[np.ndarray]:
    """Score the paragraphs of each document. A "learned" ranking without a ranker leaves them as they come."""
    if ranker:
        return learned_scores(ranker, split)
    if ranking == "similarity":
        return similarity_scores(split, pieces)
    return [-np.arange(len(document.sentence_lengths) - 1.0) for document in split]


@torch.no_grad()
def learned_scores(model: ParagraphRanker, split: Sequence[EncodedDocument], batch_size: int = 8) -> list[np.ndarray]:
    """Compute equation 6 for every paragraph: an array for each document."""
    device, scores = next(model.parameters()).device, []
    for batch in in_order(split, batch_size, model.config.vocab_size):
        counts = (batch.sentence_counts - 1).tolist()
        scores += [s.cpu().numpy() for s in model.logits(batch.to(device)).sigmoid().split(counts)]
    return scores


def similarity_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """Compute the tf-idf cosine of each paragraph with its title, which counts as a paragraph (Liu et al. 2018)."""
    vectors = (tfidf(words_of_rows(document, pieces)) for document in split)
    return [v[1:] @ v[0] for v in vectors]


def words_of_rows(document: EncodedDocument, pieces: Vocabulary) -> list[list[str]]:
    """Lower-cased words of a cluster's title and paragraphs."""
    return [words_of(pieces.text(row), lower=True, tokenised=document.tokenised) for row in rows_of(document)]


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

    scores: of each document's paragraphs. texts: the documents before they were encoded, for a discourse graph.
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
    rows = [rows_of(document)[i] for i in chosen]
    if options.flat:  # a mark between paragraphs
        rows[1:-1] = [np.append(row, PARAGRAPH_END) for row in rows[1:-1]]
    source = np.concatenate(rows)[: options.source_tokens].astype(np.int32)
    ends = np.minimum(np.cumsum([len(row) for row in rows]), len(source))
    lengths = np.diff(ends, prepend=0)
    lengths = lengths[lengths > 0].astype(np.int32)
    if graph is not None:
        places = chosen[: len(lengths)]
        graph = graph[np.ix_(places, places)].ravel().astype(np.float32)
    if options.flat:
        lengths = np.array([len(source)], dtype=np.int32)
    return replace(document, source=source, sentence_lengths=lengths, graph=graph, labels=None)
