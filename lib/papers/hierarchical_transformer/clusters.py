"""Clusters of paragraphs in pieces (Liu and Lapata 2019): all of them first, then the best of a ranking.

In a corpus that `encode_clusters` makes, a document's first row (what other corpora call a sentence) is its title
with `<T>` behind it, the others its paragraphs as they come. `choose_paragraphs` makes of it what a model reads.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from lib.data.batch import EncodedDocument, rows_of
from lib.data.documents import SPLITS, Document
from lib.data.options import Options, beginning, words_of
from lib.data.piece_corpora import cased, encode_split, learn_pieces, summary_pieces
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, cached_corpus, check_splits, code_of, watched
from lib.data.split import Split
from lib.data.text import bigram_recall
from lib.data.vocabulary import CLUSTER_SYMBOLS, PARAGRAPH_END, TITLE_END, Vocabulary
from lib.papers.hierarchical_transformer.graphs import (
    discourse_graph,
    entity_finder,
    similarity_graph,
    title_similarity,
)
from lib.system.errors import InputError


@dataclass(frozen=True)
class Cluster:
    """Title, paragraphs and summary as texts."""

    id: str
    title: str
    paragraphs: list[str]
    sources: list[str]  # the document of each paragraph
    summary: list[str]  # sentences
    recalls: list[float]  # ROUGE-2 recall of the summary by each paragraph


# what a corpus keeps that comes ranked, in paragraphs and pieces of its own
_RANKED = {"lower": False, "clones": 1.0, "paragraph_words": sys.maxsize}


@dataclass(frozen=True)
class ClusterOptions(Options):
    """Paragraphs of several documents in SentencePiece pieces (Liu and Lapata 2019, section 4)."""

    paragraphs: int = 24  # L', the best ones, besides the title
    source_tokens: int | None = None  # pieces of title and paragraphs together; None: all of them
    paragraph_tokens: int = 200  # pieces of one paragraph (not stated)
    paragraph_words: int = 100  # a longer section is cut into paragraphs at sentence ends (not stated)
    section_words: int | None = None  # whole sentences of each section until there are so many; None: all
    summary_tokens: int = 400
    vocab_size: int = 32_000  # pieces, shared by source and summary
    clones: float = 0.8  # a paragraph with more of the summary's bigrams is a copy of it, and is left out
    ranking: str = "learned"  # "similarity": by tf-idf to the title; "order": as they come
    ranker_width: int = 256
    ranker_steps: int = 20_000  # not stated
    ranker_batch: int = 8  # clusters; not stated
    ranker_rate: float = 0.15  # of Adagrad
    graph: str = ""  # "similarity" or "discourse"
    lower: bool = False  # WikiSum's pieces are cased
    flat: bool = False  # one sequence in place of paragraphs

    def __post_init__(self):
        self._at_least_one("paragraphs", "paragraph_tokens", "paragraph_words", "section_words", "summary_tokens")
        self._at_least_one("source_tokens", "ranker_width", "ranker_steps", "ranker_batch")
        if not 0 <= self.clones <= 1:
            raise InputError(f"clones must be in [0, 1], not {self.clones}")
        if self.ranking not in ("learned", "similarity", "order"):
            raise InputError(f"ranking must be 'learned', 'similarity' or 'order', not {self.ranking!r}")
        if self.graph not in ("", "similarity", "discourse"):
            raise InputError(f"graph must be 'similarity', 'discourse' or empty, not {self.graph!r}")
        if self.graph and self.flat:
            raise InputError("a flat sequence has no paragraphs for a graph")

    @property
    def symbols(self) -> tuple[str, ...]:
        return CLUSTER_SYMBOLS

    @property
    def of_corpus(self) -> tuple[str, ...]:
        """Those of a corpus that came ranked."""
        return tuple(_RANKED) if all(getattr(self, name) == value for name, value in _RANKED.items()) else ()

    def example(self, document: Document) -> Cluster:
        """Sections as paragraphs of at most `paragraph_words` words, without copies of the summary.

        Where every paragraph would be a copy, all are kept: there would be nothing to summarize.
        """
        paragraphs, sources = [], []
        for source, sentences in zip(document.section_names, document.sections):
            for part in _gather(beginning(sentences, self.section_words), self.paragraph_words):
                paragraphs.append(" ".join(part))
                sources.append(source)
        wanted = words_of(" ".join(document.summary), lower=True)
        recalls = [bigram_recall(words_of(p, lower=True), wanted) for p in paragraphs]
        kept = [i for i, recall in enumerate(recalls) if recall <= self.clones] or range(len(paragraphs))
        texts, names = [paragraphs[i] for i in kept], [sources[i] for i in kept]
        return Cluster(document.id, document.title, texts, names, document.summary, [recalls[i] for i in kept])


def _gather(sentences: Sequence[str], words: int) -> list[list[str]]:
    """Sentences in groups of at most `words` words; a longer sentence is a group of its own."""
    groups, count = [], words
    for sentence in sentences:
        length = len(sentence.split())
        if count + length > words:
            groups.append([])
            count = 0
        groups[-1].append(sentence)
        count += length
    return groups


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
        options = replace(options, **_RANKED)
    key = [corpus.identity, code_of(type(corpus)), asdict(options), limit]
    return cached_corpus(
        "clusters", key, ClusterOptions, lambda parts: _encode_clusters(corpus, options, limit, progress, parts)
    )


def _encode_clusters(
    corpus, options: ClusterOptions, limit: int | None, progress: bool, parts: Path
) -> PreparedCorpus:
    check_splits(corpus)
    texts = ((c.title, *c.paragraphs, *c.summary) for c in clusters(corpus, "train", options, limit))
    pieces, splits = corpus.pieces or learn_pieces(texts, options, corpus.name, progress), {}
    for name in SPLITS:
        documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
        splits[name] = encode_split(parts, name, documents, partial(encode_wide, options=options), pieces)
    return PreparedCorpus(corpus.name, TextEncoder(options, pieces), splits, corpus.report(), corpus.remarks())


def clusters(corpus, split_name: str, options: ClusterOptions, limit: int | None = None) -> Iterator[Cluster]:
    """Title, paragraphs and summary of every document of a split, as texts."""
    return map(options.example, corpus.split(split_name, limit))


def encode_wide(documents: Iterable[Document], pieces: Pieces, options: ClusterOptions) -> list[EncodedDocument]:
    """Title and all paragraphs of each document, to be ranked; a document without a summary has [EOS] for one.

    Raises ValueError for a document without a paragraph.
    """
    return [encode_cluster(options.example(document), pieces, options) for document in documents]


def encode_cluster(found: Cluster, pieces: Pieces, options: ClusterOptions) -> EncodedDocument:
    """Pieces of one cluster: the title's row ends in `<T>`; `<Q>` stands between the sentences of the summary."""
    if not found.paragraphs:
        raise InputError(f"document {found.id!r} has no paragraph: nothing is left to summarize")
    title, *paragraphs = pieces.encode(cased([found.title, *found.paragraphs], options))
    rows = [np.append(title[: options.paragraph_tokens - 1], TITLE_END)]
    rows += [row[: options.paragraph_tokens] if len(row) else np.array([PARAGRAPH_END]) for row in paragraphs]
    target = summary_pieces(found.summary, pieces, options)
    made = EncodedDocument.of(found.id, np.concatenate(rows), list(map(len, rows)), target, (), found.summary)
    return replace(made, labels=np.array(found.recalls, dtype=np.float32))


# ------------------------------------------------------------------------------------------- ranking and choosing


def words_of_rows(document: EncodedDocument, pieces: Vocabulary) -> list[list[str]]:
    """Lower-cased words of a cluster's title and paragraphs."""
    return [words_of(pieces.text(row), lower=True) for row in rows_of(document)]


def similarity_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """tf-idf cosine of each paragraph with its title, in words (Liu et al. 2018): an array for each document."""
    rows = (words_of_rows(document, pieces) for document in split)
    return [title_similarity(title, paragraphs) for title, *paragraphs in rows]


def order_scores(split: Sequence[EncodedDocument], pieces: Vocabulary) -> list[np.ndarray]:
    """Scores by which paragraphs stay as they come."""
    return [-np.arange(len(document.sentence_lengths) - 1.0) for document in split]


def ranked(scores: np.ndarray) -> np.ndarray:
    """Indices of paragraphs, the best first; equal ones as they come."""
    return np.argsort(-scores, kind="stable")


def choose_paragraphs(
    wide: PreparedCorpus, scores: dict[str, list[np.ndarray]], options: ClusterOptions, parts: Path, corpus=None
) -> PreparedCorpus:
    """Title and best paragraphs of every document, cut to `source_tokens`, as rows or as one flat sequence.

    Args:
        wide: what `encode_clusters` gives. Of `options`, what the paragraphs themselves were made with is its own.
        scores: of the paragraphs, by split.
        parts: the folder that is to hold the documents.
        corpus: the texts, which a discourse graph needs; in the order of `wide`.
    """
    options = replace(wide.options, **{name: getattr(options, name) for name in _LATER})
    splits = {}
    for name, split in wide.splits.items():
        texts = corpus.split(name) if corpus is not None and options.graph == "discourse" else None
        chosen = choose_rows(split, scores[name], options, wide.vocabulary, texts)
        most = max(len(wide.vocabulary), split.longest + options.paragraphs)  # a mark behind each in a flat sequence
        splits[name] = Split.write(parts, name, chosen, most)
    return replace(wide, encoder=replace(wide.encoder, options=options), splits=splits)


def choose_rows(
    documents: Sequence[EncodedDocument],
    scores: Sequence[np.ndarray],
    options: ClusterOptions,
    pieces: Vocabulary,
    texts: Iterable[Document] | None = None,
) -> Iterator[EncodedDocument]:
    """Title and best paragraphs of documents as `encode_wide` gives them, with a graph where `options` name one.

    scores: of each document's paragraphs. texts: the documents before they were encoded, for a discourse graph.
    """
    graphs = _graphs(documents, options, pieces, texts)
    return (_choose(d, s, g, options) for d, s, g in zip(documents, scores, graphs, strict=True))


def _choose(
    document: EncodedDocument, scores: np.ndarray, graph: np.ndarray | None, options: ClusterOptions
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
    places = chosen[: len(kept)]
    source = np.concatenate(kept).astype(np.int32)
    lengths = [len(source)] if options.flat else [len(row) for row in kept]
    if graph is not None:
        graph = graph[np.ix_(places, places)].ravel().astype(np.float32)
    lengths = np.array(lengths, dtype=np.int32)
    return replace(document, source=source, sentence_lengths=lengths, graph=graph, labels=None)


def _graphs(
    documents: Sequence[EncodedDocument],
    options: ClusterOptions,
    pieces: Vocabulary,
    texts: Iterable[Document] | None,
) -> Iterable[np.ndarray | None]:
    """A graph over title and all paragraphs, in their own order, for each document; None where none is wanted."""
    if not options.graph:
        return [None] * len(documents)
    if options.graph == "similarity":
        return (similarity_graph(words_of_rows(document, pieces)) for document in documents)
    entities, _ = entity_finder()
    if texts is None:
        raise InputError("a discourse graph is made of the documents' texts, and there are none")
    found = map(options.example, islice(texts, len(documents)))
    return (discourse_graph([c.title, *c.paragraphs], [None, *c.sources], entities) for c in found)
