"""Ranking the paragraphs of clusters: the learned ranker, trained as every model is, and corpora in its order."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from safetensors.numpy import load_file, save

from lib.data.batch import EncodedDocument
from lib.data.batching import in_order
from lib.data.clusters import (
    choose_paragraphs,
    encode_clusters,
    order_scores,
    ranked,
    rows_of,
    similarity_scores,
)
from lib.data.graphs import entity_finder
from lib.data.prepared import PreparedCorpus, cached_corpus
from lib.data.preprocess import ClusterOptions
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.storage import cache_dir, digest, source_digest, write_whole
from lib.train import Run, TrainConfig, load_weights, run_config, train


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
    torch.manual_seed(0)
    width = options.ranker_width
    model = ParagraphRanker(ParagraphRankerConfig(len(wide.vocabulary), width, width))
    config = ranker_training(options)
    folder = cache_dir() / f"ranker-{digest([run_config('paragraph_ranker', model, wide, config), _code()])}"
    run = train("paragraph_ranker", model, wide, config, folder, resume=True, progress=progress, alone=True)
    return load_weights(model, folder, "best").eval(), run


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
) -> dict[str, list[np.ndarray]]:
    """Scores of every split by a ranker that is trained on the first. Kept beside the ranker."""
    model, run = train_ranker(wide, options, progress)
    path = run.folder / "scores.safetensors"
    if not path.exists():
        flat = {
            name: np.concatenate([np.zeros(0, np.float32), *learned_scores(model, split)])
            for name, split in wide.splits.items()
        }
        write_whole(path, save(flat))
    flat = load_file(path)
    return {name: _by_document(flat[name], split) for name, split in wide.splits.items()}


def _by_document(flat: np.ndarray, split: Sequence[EncodedDocument]) -> list[np.ndarray]:
    counts = [len(document.sentence_lengths) - 1 for document in split]
    return np.split(flat, np.cumsum(counts)[:-1]) if counts else []


def _code() -> str:
    """A short name of the code that makes a ranker."""
    return source_digest("models/paragraph_ranker.py", "train.py")


def prepare_clusters(
    corpus, options: ClusterOptions, limit: int | None = None, progress: bool = True
) -> PreparedCorpus:
    """A corpus as the model reads it: the best paragraphs of every cluster. Kept in the cache.

    Paragraphs of a corpus that comes ranked keep their order, whatever `options.ranking` says.
    """
    wide = encode_clusters(corpus, options, limit, progress)
    ranking = "order" if corpus.ranked else options.ranking
    graph = entity_finder()[1] if options.graph == "discourse" else options.graph
    ranker = _code() if ranking == "learned" else ""

    def make() -> PreparedCorpus:
        if ranking == "learned":
            scores = learned_ranking(wide, options, progress)
        else:
            kind = {"similarity": similarity_scores, "order": order_scores}[ranking]
            scores = {name: kind(split) for name, split in wide.splits.items()}
        return choose_paragraphs(wide, scores, options, corpus)

    return cached_corpus("ranked", [wide.fingerprint, asdict(options), ranking, graph, ranker], make)


def best_paragraphs(split: Sequence[EncodedDocument], scores: list[np.ndarray], vocabulary, count: int) -> list[str]:
    """The text of the `count` best paragraphs of every document, the best first."""
    return [
        " ".join(vocabulary.text(rows_of(document)[1 + i]) for i in ranked(s)[:count])
        for document, s in zip(split, scores, strict=True)
    ]
