"""Clusters of paragraphs in pieces (Liu and Lapata 2019): all of them first, then the best of a ranking.

In a corpus that `encode_clusters` makes, a document's first row (what other corpora call a sentence) is its title
with `<T>` behind it, the others its paragraphs as they come. `choose_paragraphs` makes of it what a model reads.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS
from lib.data.graphs import discourse_graph, entity_finder, similarity_graph, title_similarity
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, Split, cached_corpus
from lib.data.preprocess import Cluster, ClusterOptions, cluster
from lib.data.text import EOS, PARAGRAPH_END, SENTENCE_END, TITLE_END

# What the ranking and the model do with the paragraphs; the rest determines the paragraphs themselves.
_LATER = (
    "paragraphs", "source_tokens", "ranking", "ranker_width", "ranker_steps", "ranker_batch", "ranker_rate", "graph",
    "flat",
)  # fmt: skip


def encode_clusters(
    corpus, options: ClusterOptions, limit: int | None = None, progress: bool = False
) -> PreparedCorpus:
    """Every document's title and paragraphs in pieces, which are learned from the training documents. Kept in the
    cache. A corpus that comes ranked, in pieces of its own, keeps its paragraphs and its pieces as they are."""
    options = replace(ClusterOptions(), **{k: v for k, v in asdict(options).items() if k not in _LATER})
    if corpus.ranked:
        options = replace(options, lower=False, clones=1.0, paragraph_words=sys.maxsize)
    key = [corpus.identity, asdict(options), limit]
    return cached_corpus("clusters", key, lambda: _encode_clusters(corpus, options, limit, progress))


def _encode_clusters(corpus, options: ClusterOptions, limit: int | None, progress: bool) -> PreparedCorpus:
    def watched(split: str) -> Iterator[Cluster]:
        bar = {"desc": f"{corpus.name}, {split}", "unit": " clusters", "mininterval": 1, "ncols": 80}
        found = clusters(corpus, split, options, limit)
        return tqdm(found, disable=not progress, leave=False, delay=2, file=sys.stdout, **bar)

    pieces = corpus.pieces or Pieces.train(_texts(corpus, options, limit), options.vocab_size)
    splits = {split: Split.of([encode_cluster(c, pieces, options) for c in watched(split)]) for split in SPLITS}
    return PreparedCorpus(corpus.name, options, pieces, splits, corpus.report())


def clusters(corpus, split: str, options: ClusterOptions, limit: int | None = None) -> Iterator[Cluster]:
    """Title, paragraphs and summary of every document of a split, as texts."""
    return (cluster(document, options) for document in corpus.split(split, limit))


def _texts(corpus, options: ClusterOptions, limit: int | None) -> Iterator[str]:
    for found in clusters(corpus, "train", options, limit):
        for text in (found.title, *found.paragraphs, *found.summary):
            yield text.lower() if options.lower else text


def encode_cluster(found: Cluster, pieces: Pieces, options: ClusterOptions) -> EncodedDocument:
    """Pieces of one cluster: the title's row ends in `<T>`; `<Q>` stands between the sentences of the summary."""
    texts = [found.title, *found.paragraphs, *found.summary]
    ids = pieces.encode([text.lower() if options.lower else text for text in texts])
    paragraphs, summary = ids[1 : 1 + len(found.paragraphs)], ids[1 + len(found.paragraphs) :]
    rows = [np.append(ids[0][: options.paragraph_tokens - 1], TITLE_END)]
    rows += [row[: options.paragraph_tokens] if len(row) else np.array([PARAGRAPH_END]) for row in paragraphs]
    target = np.concatenate([np.append(sentence, SENTENCE_END) for sentence in summary])
    target = np.append(target[:-1], EOS)[: options.summary_tokens]
    return _document(found.id, rows, target, found.summary)


def _document(name: str, rows: list[np.ndarray], target: np.ndarray, reference: list[str]) -> EncodedDocument:
    lengths = [len(row) for row in rows]
    arrays = (np.asarray(values, dtype=np.int32) for values in (np.concatenate(rows), lengths, target))
    return EncodedDocument(name, *arrays, [], reference)


def rows_of(document: EncodedDocument) -> list[np.ndarray]:
    """Title and paragraphs of an encoded cluster."""
    return np.split(document.source, document.sentence_lengths.cumsum()[:-1])


# ------------------------------------------------------------------------------------------- ranking and choosing


def similarity_scores(split: Sequence[EncodedDocument]) -> list[np.ndarray]:
    """tf-idf cosine of each paragraph with its title, in pieces (Liu et al. 2018): an array for each document."""
    return [
        title_similarity(title[:-1].tolist(), [p.tolist() for p in paragraphs])
        for title, *paragraphs in map(rows_of, split)
    ]


def order_scores(split: Sequence[EncodedDocument]) -> list[np.ndarray]:
    """Scores by which paragraphs stay as they come."""
    return [-np.arange(len(document.sentence_lengths) - 1.0) for document in split]


def ranked(scores: np.ndarray) -> np.ndarray:
    """Indices of paragraphs, the best first; equal ones as they come."""
    return np.argsort(-scores, kind="stable")


def choose_paragraphs(
    wide: PreparedCorpus, scores: dict[str, list[np.ndarray]], options: ClusterOptions, corpus=None
) -> PreparedCorpus:
    """Title and best paragraphs of every document, cut to `source_tokens`, as rows or as one flat sequence.

    Args:
        wide: what `encode_clusters` gives. scores: of the paragraphs, by split.
        corpus: the texts, which a discourse graph needs; in the order of `wide`.
    """
    splits = {}
    for name, split in wide.splits.items():
        graphs = _graphs(wide, name, options.graph, corpus)
        splits[name] = Split.of([_choose(d, s, options, graphs) for d, s in zip(split, scores[name], strict=True)])
    return replace(wide, options=options, splits=splits)


def _choose(
    document: EncodedDocument, scores: np.ndarray, options: ClusterOptions, graphs: Iterator[np.ndarray] | None
) -> EncodedDocument:
    rows = rows_of(document)
    chosen = np.append(0, 1 + ranked(scores)[: options.paragraphs])
    kept, left = [], options.source_tokens or math.inf
    for i in chosen:
        row = rows[i] if not options.flat or i == chosen[-1] or i == 0 else np.append(rows[i], PARAGRAPH_END)
        kept.append(row[: int(min(left, len(row)))])
        left -= len(kept[-1])
        if left <= 0:
            break
    made = _document(
        document.id, [np.concatenate(kept)] if options.flat else kept, document.target, document.reference
    )
    if graphs is None:
        return made
    places = chosen[: len(kept)]
    return replace(made, graph=next(graphs)[np.ix_(places, places)].ravel().astype(np.float32))


def _graphs(wide: PreparedCorpus, split: str, kind: str, corpus) -> Iterator[np.ndarray] | None:
    """A graph over title and all paragraphs, in their own order, for each document."""
    if not kind:
        return None
    if kind == "similarity":
        return (similarity_graph([row.tolist() for row in rows_of(document)]) for document in wide[split])
    entities, _ = entity_finder()
    texts = clusters(corpus, split, wide.options)
    return (discourse_graph([c.title, *c.paragraphs], [None, *c.sources], entities) for c in texts)
