"""Clusters in which the answer's paragraph shares no word with the title: one must go over another paragraph."""

from dataclasses import dataclass, replace

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.vocabulary import EOS, SENTENCE_END, TITLE_END

CHAINS = 4
NAMES = range(SENTENCE_END + 1, SENTENCE_END + 7)
ALIASES = range(NAMES.stop, NAMES.stop + 6)
SAME_AS = ALIASES.stop
CONTENT = range(SAME_AS + 1, SAME_AS + 12)
VOCAB_SIZE = CONTENT.stop


@dataclass(frozen=True)
class HopCluster:
    rows: list[list[int]]  # ids of the title, a name, and of each paragraph
    answer: list[int]


def hop_cluster(random: np.random.Generator) -> HopCluster:
    """Four paragraphs that say which alias a name has, and four with an alias and two words, in any order. The title
    is a name, the answer the two words after its alias."""
    names, aliases = (random.permutation(ids)[:CHAINS].tolist() for ids in (NAMES, ALIASES))
    words = random.integers(CONTENT.start, CONTENT.stop, (CHAINS, 2)).tolist()
    links = [[name, SAME_AS, alias] for name, alias in zip(names, aliases)]
    ends = [[alias, *pair] for alias, pair in zip(aliases, words)]
    paragraphs, asked = links + ends, int(random.integers(CHAINS))
    rows = [[names[asked], TITLE_END], *(paragraphs[i] for i in random.permutation(2 * CHAINS))]
    return HopCluster(rows, words[asked])


def shared_names(cluster: HopCluster) -> np.ndarray:
    """1 where two rows share a name or an alias, and on the diagonal: [rows, rows]. These are the edges that (26) of
    the hierarchical transformer draws between paragraphs with the same entity."""
    called = [{piece for piece in row if piece in NAMES or piece in ALIASES} for row in cluster.rows]
    return np.array([[float(bool(one & other)) for other in called] for one in called], dtype=np.float32)


def hop_document(cluster: HopCluster, name: str = "", graph: bool = False) -> EncodedDocument:
    """graph: with `shared_names`."""
    source, lengths = [piece for row in cluster.rows for piece in row], [len(row) for row in cluster.rows]
    document = EncodedDocument.of(name, source, lengths, [*cluster.answer, EOS])
    return replace(document, graph=shared_names(cluster).ravel()) if graph else document
