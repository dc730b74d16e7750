"""Ranking the paragraphs of clusters: the learned ranker, trained as every model is, and corpora in its order."""

import math
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
from lib.data.vocabulary import PARAGRAPH_END, Vocabulary
from lib.decoding.run import Run
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers.hierarchical_transformer.clusters import ParagraphOptions
from lib.papers.hierarchical_transformer.graphs import (
    discourse_graph,
    entity_finder,
    similarity_graph,
    title_similarity,
)
from lib.system.errors import InputError
from lib.system.fields import Count, as_kind, checked
from lib.training.config import TrainConfig
from lib.training.devices import device_named
from lib.training.folder import chooser_model
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
        """Raises CorpusError where a corpus comes ranked, and the options need the order of its paragraphs."""
        if corpus.ranked and (self.ranking != "learned" or self.graph == "discourse"):
            option = "graph='discourse'" if self.graph == "discourse" else f"ranking={self.ranking!r}"
            raise CorpusError(
                f"{corpus.name}: its paragraphs come ranked: neither the order in which they stood nor their pages "
                f"are known, so a row with {option} cannot be had from it"
            )
        return super().for_corpus(corpus)

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        """Choose the best paragraphs of every cluster. Those of a corpus that comes ranked keep their order."""
        weights, ranking = None, "order" if corpus.ranked else self.ranking
        if ranking == "learned":
            scores, weights = learned_ranking(base, self, progress)
        else:
            scores = {name: SCORES[ranking](split, base.vocabulary) for name, split in base.splits.items()}
        splits = {}
        for name, split in base.splits.items():
            texts = corpus.split(name) if self.graph == "discourse" else None
            chosen = choose_rows(split, scores[name], self, base.vocabulary, texts)
            largest = max(
                len(base.vocabulary), split.longest + self.paragraphs
            )  # a mark after each in a flat sequence
            splits[name] = Split.write(folder, name, chosen, largest)
        return replace(base, encoder=replace(base.encoder, options=self, chooser=weights), splits=splits)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        """Choose paragraphs with the encoder's ranker; without one (its corpus came ranked) in their order."""
        documents, pieces = list(documents), encoder.vocabulary
        wide = super().encode(documents, encoder)
        if self.ranking == "learned" and encoder.chooser is not None:
            model = chooser_model(lambda: _ranker(encoder, self.ranker_width), encoder)
            scores = learned_scores(model.to(device_named()), wide)
        else:
            scores = SCORES["order" if self.ranking == "learned" else self.ranking](wide, pieces)
        return list(choose_rows(wide, scores, self, pieces, documents))


def ranker_training(options: ClusterOptions) -> TrainConfig:
    """Adagrad, as in the paper; batch and duration are not stated there."""
    return TrainConfig(
        batch_size=options.ranker_batch,
        steps=options.ranker_steps,
        optimizer="adagrad",
        learning_rate=options.ranker_rate,
        max_norm=None,
        validate_every=max(1, options.ranker_steps // 5),
    )


def train_ranker(wide: PreparedCorpus, options: ClusterOptions, progress: bool = True) -> tuple[ParagraphRanker, Run]:
    """The ranker of a corpus of whole clusters (`ParagraphOptions`), with its best weights. Saved in the cache."""
    config = ranker_training(options)
    return train_in_cache("ranker", lambda: _ranker(wide.encoder, options.ranker_width), wide, config, progress)


def _ranker(encoder: TextEncoder, width: int) -> ParagraphRanker:
    return ParagraphRanker(ParagraphRankerConfig(len(encoder.vocabulary), width, width))


@torch.no_grad()
def learned_scores(model: ParagraphRanker, split: Sequence[EncodedDocument], batch_size: int = 8) -> list[np.ndarray]:
    """Equation 6 for every paragraph: an array for each document."""
    device, scores = next(model.parameters()).device, []
    for batch in in_order(split, batch_size, model.config.vocab_size):
        counts = (batch.sentence_counts - 1).tolist()
        scores += [s.cpu().numpy() for s in model.logits(batch.to(device)).sigmoid().split(counts)]
    return scores


def learned_ranking(
    wide: PreparedCorpus, options: ClusterOptions, progress: bool = True
) -> tuple[dict[str, list[np.ndarray]], dict[str, np.ndarray]]:
    """Scores of every split by a ranker that is trained on "train", and the ranker's weights."""
    model, _ = train_ranker(wide, options, progress)
    scores = {name: learned_scores(model, split) for name, split in wide.splits.items()}
    return scores, {name: value.cpu().numpy() for name, value in model.state_dict().items()}


def best_paragraphs(split: Sequence[EncodedDocument], scores: list[np.ndarray], vocabulary, count: int) -> list[str]:
    """The text of the `count` best paragraphs of every document, the best first."""
    return [
        " ".join(vocabulary.text(rows_of(document)[1 + i]) for i in best_first(s)[:count])
        for document, s in zip(split, scores, strict=True)
    ]


# ------------------------------------------------------------------------------------------- ranking and choosing


def words_of_rows(document: EncodedDocument, pieces: Vocabulary) -> list[list[str]]:
    """Lower-cased words of a cluster's title and paragraphs."""
    return [words_of(pieces.text(row), lower=True, tokenised=document.tokenised) for row in rows_of(document)]


def similarity_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """tf-idf cosine of each paragraph with its title, in words (Liu et al. 2018): an array for each document."""
    rows = (words_of_rows(document, pieces) for document in split)
    return [title_similarity(title, paragraphs) for title, *paragraphs in rows]


def order_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """Scores that leave paragraphs as they come."""
    return [-np.arange(len(document.sentence_lengths) - 1.0) for document in split]


SCORES = {"similarity": similarity_scores, "order": order_scores}


def best_first(scores: np.ndarray) -> np.ndarray:
    """Indices of paragraphs, the best first; equal ones as they come."""
    return np.argsort(-scores, kind="stable")


def choose_rows(
    documents: Sequence[EncodedDocument],
    scores: Sequence[np.ndarray],
    options: ClusterOptions,
    pieces: Vocabulary,
    texts: Iterable[Document] | None = None,
) -> Iterator[EncodedDocument]:
    """Title and best paragraphs of documents with all their paragraphs, with a graph where `options` name one.

    scores: of each document's paragraphs. texts: the documents before they were encoded, for a discourse graph.
    """
    clusters = map(options.example, texts) if options.graph == "discourse" else repeat(None)  # type: ignore[arg-type]
    for document, own_scores, cluster in zip(documents, scores, clusters):
        graph = None
        if options.graph == "similarity":
            graph = similarity_graph(words_of_rows(document, pieces))
        elif cluster is not None:
            graph = discourse_graph([cluster.title, *cluster.paragraphs], [None, *cluster.sources])
        yield _choose(document, own_scores, graph, options)


def _choose(
    document: EncodedDocument, scores: np.ndarray, graph: np.ndarray | None, options: ClusterOptions
) -> EncodedDocument:
    rows = rows_of(document)
    chosen = np.append(0, 1 + best_first(scores)[: options.paragraphs])
    cut_rows, left = [], options.source_tokens or math.inf
    for i in chosen:
        row = rows[i] if not options.flat or i == chosen[-1] or i == 0 else np.append(rows[i], PARAGRAPH_END)
        cut_rows.append(row[: int(min(left, len(row)))])
        left -= len(cut_rows[-1])
        if left <= 0:
            break
    places = chosen[: len(cut_rows)]
    source = np.concatenate(cut_rows).astype(np.int32)
    lengths = [len(source)] if options.flat else [len(row) for row in cut_rows]
    if graph is not None:
        graph = graph[np.ix_(places, places)].ravel().astype(np.float32)
    lengths = np.array(lengths, dtype=np.int32)
    return replace(document, source=source, sentence_lengths=lengths, graph=graph, labels=None)
