"""Ranking the paragraphs of clusters: the learned ranker, trained as every model is, and corpora in its order."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save

from lib.data.batch import EncodedDocument, rows_of
from lib.data.batching import in_order
from lib.data.documents import CorpusError, Document
from lib.data.prepared import PreparedCorpus, TextEncoder, cached_corpus
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers.hierarchical_transformer.clusters import (
    ClusterOptions,
    choose_paragraphs,
    choose_rows,
    encode_clusters,
    encode_wide,
    order_scores,
    ranked,
    similarity_scores,
)
from lib.papers.hierarchical_transformer.graphs import entity_finder
from lib.runs.config import TrainConfig
from lib.runs.loop import train_in_cache
from lib.runs.run import Run
from lib.system.files import write_whole


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
    """The ranker of a corpus of whole clusters (`encode_clusters`), with its best weights. Kept in the cache."""
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
    """Scores of every split by a ranker that is trained on the first, kept beside it, and the ranker's weights."""
    model, run = train_ranker(wide, options, progress)
    path = run.folder / "scores.safetensors"
    if not path.exists():
        flat = {
            name: np.concatenate([np.zeros(0, np.float32), *learned_scores(model, split)])
            for name, split in wide.splits.items()
        }
        write_whole(path, save(flat))
    flat = load_file(path)
    scores = {name: _by_document(flat[name], split) for name, split in wide.splits.items()}
    return scores, {name: value.cpu().numpy() for name, value in model.state_dict().items()}


def _by_document(flat: np.ndarray, split: Sequence[EncodedDocument]) -> list[np.ndarray]:
    counts = [len(document.sentence_lengths) - 1 for document in split]
    return np.split(flat, np.cumsum(counts)[:-1]) if counts else []


def prepare_clusters(
    corpus,
    options: ClusterOptions,
    limit: int | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
) -> PreparedCorpus:
    """A corpus as the model reads it: the best paragraphs of every cluster. Kept in `folder`, by default in the
    cache, where all paragraphs and the ranker are.

    Paragraphs of a corpus that comes ranked keep their order. Raises CorpusError for another ranking of such a one.
    """
    if corpus.ranked and (options.ranking != "learned" or options.graph == "discourse"):
        wanted = "graph='discourse'" if options.graph == "discourse" else f"ranking={options.ranking!r}"
        raise CorpusError(f"{corpus.name}: {RANKED}, so a row with {wanted} cannot be had from it")
    wide = encode_clusters(corpus, options, limit, progress)
    ranking = "order" if corpus.ranked else options.ranking
    graph = entity_finder()[1] if options.graph == "discourse" else options.graph

    def make(parts: Path) -> PreparedCorpus:
        weights = None
        if ranking == "learned":
            scores, weights = learned_ranking(wide, options, progress)
        else:
            scores = {name: SCORES[ranking](split, wide.vocabulary) for name, split in wide.splits.items()}
        made = choose_paragraphs(wide, scores, options, parts, corpus)
        return replace(made, encoder=replace(made.encoder, ranker=weights))

    key = [wide.fingerprint, asdict(options), ranking, graph]
    return cached_corpus("ranked", key, ClusterOptions, make, folder)


# what is not known of a corpus such as WikiSum's shards
RANKED = "its paragraphs come ranked: neither the order in which they stood nor their pages are known"
SCORES = {"similarity": similarity_scores, "order": order_scores}


def encode_ranked(documents: Sequence[Document], encoder: TextEncoder) -> list[EncodedDocument]:
    """Texts as `prepare_clusters` encodes those of a corpus, the best paragraphs by the ranker that the encoder has.

    Where it has none (its corpus came ranked), paragraphs stay as they come. Raises ValueError for a text without a
    paragraph.
    """
    options, pieces = encoder.options, encoder.vocabulary
    wide = encode_wide(documents, pieces, options)
    if options.ranking == "learned" and encoder.ranker is not None:
        model = _ranker(encoder, options.ranker_width)
        model.load_state_dict({name: torch.from_numpy(value) for name, value in encoder.ranker.items()})
        scores = learned_scores(model.eval(), wide)
    else:
        scores = SCORES["order" if options.ranking == "learned" else options.ranking](wide, pieces)
    return list(choose_rows(wide, scores, options, pieces, documents))


def best_paragraphs(split: Sequence[EncodedDocument], scores: list[np.ndarray], vocabulary, count: int) -> list[str]:
    """The text of the `count` best paragraphs of every document, the best first."""
    return [
        " ".join(vocabulary.text(rows_of(document)[1 + i]) for i in ranked(s)[:count])
        for document, s in zip(split, scores, strict=True)
    ]
