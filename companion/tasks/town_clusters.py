"""Clusters of snippets about invented towns: every fact is said several times in other words, once perhaps wrongly,
and the title names the town whose facts make the summary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, PARAGRAPH_END, TITLE_END, Vocabulary

_BEGINNINGS = ("zor", "bel", "quin", "tar", "mel", "os", "vel", "lun", "kar", "dra")
TOWNS = [begin + end for begin in _BEGINNINGS for end in ("via", "mont", "stad", "holm")]
# What a fact can be: founded in, river, product, mayor; and how it is said.
VALUES = [
    line.split()
    for line in (
        " ".join(str(year) for year in range(1100, 1900, 40)),
        "arno bresk colva drune elt fenna garr hylde istra jarn korb lenn mura narew oder prut quelle ruhr saale "
        "tisza",
        "amber barley cheese cider clocks copper glass honey lace lamps linen paper pears salt silk soap timber "
        "tiles wine wool",
        "abel brandt conti dahl eriksen fabre greco haas ivers jansen keller lund moreau novak olsen petrov quist "
        "rossi sand toth",
    )
]
PHRASES = (
    ("was founded in {}", "dates from {}", "was first settled in {}"),
    ("lies on the {}", "stands on the banks of the {}", "is crossed by the {}"),
    ("is known for its {}", "exports {}", "has a market for {}"),
    ("has a mayor called {}", "elected {} as its mayor", "is governed by {}"),
)
FACTS = len(VALUES)
_SUMMARY = "{} , founded in {} , lies on the {} . it is known for its {} . its mayor is {} ."
_MENTIONS = 3  # of a fact in each group of paragraphs
_PARAGRAPHS = _MENTIONS * FACTS // 2  # of a group: each says two facts


@dataclass(frozen=True)
class Paragraph:
    town: str
    facts: tuple[int, int]  # which of the four
    values: tuple[str, str]
    text: str


@dataclass(frozen=True)
class TownCluster:
    """Paragraphs about several towns; `truth` has the four facts of each, the title's town first."""

    truth: dict[str, list[str]]
    paragraphs: list[Paragraph]

    @property
    def title(self) -> str:
        return next(iter(self.truth))

    @property
    def summary(self) -> str:
        return _SUMMARY.format(self.title, *self.truth[self.title])


def town_cluster(random: np.random.Generator, towns: int = 2, groups: int = 1) -> TownCluster:
    """A cluster with `groups` times six paragraphs about each town, in any order.

    A paragraph says two facts, the second of "it". Each fact of a town is said three times a group; with probability
    1/2, one of its mentions in the cluster is wrong.
    """
    names = [TOWNS[i] for i in random.permutation(len(TOWNS))[:towns]]
    truth = {name: [_any(random, values) for values in VALUES] for name in names}
    paragraphs = [p for name in names for p in _about(random, name, truth[name], groups)]
    return TownCluster(truth, [paragraphs[i] for i in random.permutation(len(paragraphs))])


def _any(random: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(random.integers(len(choices)))]


def _about(random: np.random.Generator, town: str, truth: list[str], groups: int) -> list[Paragraph]:
    facts = np.concatenate([_pairs(random) for _ in range(groups)])
    values = [[truth[f] for f in pair] for pair in facts]
    for f in range(FACTS):
        if random.random() < 0.5:
            places = np.argwhere(facts == f)
            i, j = places[random.integers(len(places))]
            values[i][j] = _any(random, [value for value in VALUES[f] if value != truth[f]])
    return [_paragraph(random, town, pair, said) for pair, said in zip(facts.tolist(), values)]


def _pairs(random: np.random.Generator) -> np.ndarray:
    """The facts of each paragraph of a group, two different ones: [paragraphs, 2]."""
    while True:
        pairs = random.permutation(np.arange(FACTS).repeat(_MENTIONS)).reshape(_PARAGRAPHS, 2)
        if (pairs[:, 0] != pairs[:, 1]).all():
            return pairs


def _paragraph(random: np.random.Generator, town: str, facts: list[int], values: list[str]) -> Paragraph:
    first, second = (_any(random, PHRASES[f]).format(value) for f, value in zip(facts, values))
    subject = _any(random, (town, f"the town of {town}"))
    one, other = facts
    return Paragraph(town, (one, other), (values[0], values[1]), f"{subject} {first} . it {second} .")


# ------------------------------------------------------------------------------------------------------- pieces


def _words() -> list[str]:
    phrases = [*(phrase for fact in PHRASES for phrase in fact), _SUMMARY, "the town of it . ,"]
    frame = {word for phrase in phrases for word in phrase.split() if word != "{}"}
    return [*CLUSTER_SYMBOLS, *sorted(frame), *TOWNS, *(value for values in VALUES for value in values)]


TOWN_PIECES = Vocabulary(_words())


_IDS = {word: i for i, word in enumerate(TOWN_PIECES.words)}


def pieces_of(text: str) -> list[int]:
    return [_IDS[word] for word in text.split()]


# Where the facts stand in a summary, in pieces.
FACT_PLACES = [i for i, word in enumerate(_SUMMARY.split()) if word == "{}"][1:]


def town_document(
    cluster: TownCluster, name: str = "", flat: bool = False, separator: bool = False, graph: bool = False
) -> EncodedDocument:
    """A row for the title, ended by `<T>`, and one for each paragraph.

    flat: all in one row, with `<P>` between paragraphs if separator is set. graph: the weight of two paragraphs is 1
    if they are about the same town, the title's row being about its own, and else 0.
    """
    rows = [[*pieces_of(cluster.title), TITLE_END], *(pieces_of(p.text) for p in cluster.paragraphs)]
    if separator:
        rows[1:-1] = [[*row, PARAGRAPH_END] for row in rows[1:-1]]
    source = [piece for row in rows for piece in row]
    lengths = [len(source)] if flat else [len(row) for row in rows]
    document = EncodedDocument.of(name, source, lengths, [*pieces_of(cluster.summary), EOS])
    return replace(document, graph=same_town(cluster).ravel()) if graph else document


def same_town(cluster: TownCluster) -> np.ndarray:
    """1 where two rows, of which the title is the first, are about the same town: [rows, rows]."""
    about = np.array([cluster.title, *(p.town for p in cluster.paragraphs)])
    return (about[:, None] == about).astype(np.float32)
