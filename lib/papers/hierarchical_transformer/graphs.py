"""Graphs over the paragraphs of a cluster (Liu and Lapata 2019, appendix A): lexical similarity,
and discourse."""

import re
from collections.abc import Callable, Hashable, Sequence
from functools import cache

import numpy as np

from lib.data.tfidf import tfidf

# The markers of the paper's appendix (it counts 36).
MARKERS = (
    "again",
    "also",
    "another",
    "comparatively",
    "furthermore",
    "at the same time",
    "however",
    "immediately",
    "indeed",
    "instead",
    "to be sure",
    "likewise",
    "meanwhile",
    "moreover",
    "nevertheless",
    "nonetheless",
    "notably",
    "otherwise",
    "regardless",
    "similarly",
    "unlike",
    "in addition",
    "even",
    "in turn",
    "in exchange",
    "in this case",
    "in any event",
    "finally",
    "later",
    "as well",
    "especially",
    "as a result",
    "example",
    "in fact",
    "then",
    "the day before",
)
ENTITY_TYPES = frozenset(
    {"PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "EVENT", "WORK_OF_ART", "LAW"}
)
_MARKER = re.compile(r"\b(?:" + "|".join(map(re.escape, MARKERS)) + r")\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:[A-Z][\w'’-]*|[A-Z]{2,})(?:\s+(?:(?:of|the|and|de|van|von)\s+)?[A-Z][\w'’-]*)*"
)


def similarity_graph(
    paragraphs: Sequence[Sequence[Hashable]], threshold: float = 0.2
) -> np.ndarray:
    """Build the similarity graph [P, P] (equation 25): cosines of the tf-idf vectors of paragraphs
    in words, 0 below `threshold`, 1 on the diagonal. The paper's threshold is 0.2 (appendix A.1).
    """
    vectors = tfidf(paragraphs)
    cosines = vectors @ vectors.T
    graph = np.where(cosines >= threshold, cosines, 0.0)
    np.fill_diagonal(graph, 1.0)
    return graph


def discourse_graph(
    paragraphs: Sequence[str],
    sources: Sequence[Hashable],
    entities: Callable[[str], set[str]] | None = None,
) -> np.ndarray:
    """Build the discourse graph [P, P] (equation 26): 0.2 times the entities that two paragraphs
    share, plus 1 if a discourse marker joins them. The diagonal is 1, so that no row is empty.

    Args:
        paragraphs: texts, in the order of their documents.
        sources: the document of each; only neighbours of one document are joined by a marker,
            anywhere in the later one: the paper does not say where the marker occurs.
        entities: a text's entities; by default what `entity_finder` gives.
    """
    entities = entities or entity_finder()[0]
    names = [entities(text) for text in paragraphs]
    # G_ij = 0.2 |entities of i and j| + 1 if a marker joins them   (26)
    shared = np.zeros((len(names), len(names)))
    for i, own in enumerate(names):
        shared[i] = [len(own & other) for other in names]
    graph = 0.2 * shared
    for i in range(1, len(paragraphs)):
        if sources[i] == sources[i - 1] and _MARKER.search(paragraphs[i]):
            graph[i - 1, i] += 1
            graph[i, i - 1] += 1
    np.fill_diagonal(graph, 1.0)
    return graph


@cache
def entity_finder() -> tuple[Callable[[str], set[str]], str]:
    """A function that finds the entities of a text, and its name: spaCy with its small English
    model where both are installed, otherwise `capitalised_names`."""
    try:
        import spacy  # pyright: ignore[reportMissingImports]  # an extra that need not be there

        model = spacy.load("en_core_web_sm", enable=["tok2vec", "ner"])
    except (ImportError, OSError):
        return capitalised_names, "capitalised names"

    def find(text: str) -> set[str]:
        return {e.text for e in model(text).ents if e.label_ in ENTITY_TYPES}

    return find, "spaCy en_core_web_sm"


def capitalised_names(text: str) -> set[str]:
    """Runs of capitalised words. One that begins a sentence counts only if it has several words."""
    names = set()
    for match in _NAME.finditer(text):
        name = match.group()
        before = text[: match.start()].rstrip()
        begins = not before or before[-1] in ".!?\"'”"
        if not begins or len(name.split()) > 1:
            names.add(name)
    return names
