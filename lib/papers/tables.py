"""The tables and figures of a paper as data: their rows, what is published, and which run or baseline each needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from lib.evaluation.measures import MEASURES

DECODINGS = {"plain beam search": 0, "trigram blocking": 3}  # size of the n-grams that are not repeated


@dataclass(frozen=True)
class RunSpec:
    """The run that is trained for a row, but for corpus, preset and seed."""

    variant: str = ""  # empty: the preset's own
    preset_row: bool = False  # whether the row is a preset of its own, as in the windowed model's table
    vocabulary: tuple[tuple[str, int], ...] = ()  # (preset, |Y|)
    scaled: tuple[tuple[str, Fraction], ...] = ()  # options that are so many times larger at test time
    exactly: int | None = None  # words that are written at test time
    numbers: bool = False  # whether the text's numbers are put in place of # before scoring

    def preset(self, preset: str) -> str:
        """The preset in which it is trained when the table is made at `preset`."""
        if not self.preset_row:
            return preset
        return self.variant if preset == "paper" else f"{preset} {self.variant}"


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str
    published: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # corpus -> numbers
    run: RunSpec | None = None
    part: str = ""  # of the scores: "summaries" or "extracts" of a run, or a baseline; empty: not built
    missing: Mapping[str, str] = field(default_factory=dict)  # corpus -> why it cannot be had there
    unbuilt: str = ""  # why there is nothing but what is published

    def reason(self, corpus: str) -> str:
        """The reason why there are no numbers of ours; empty: there are, or nothing is said."""
        return self.missing.get(corpus, self.unbuilt)


@dataclass(frozen=True)
class Table:
    """A table of a paper: each row is a run, a baseline that needs no training, or something that is not built."""

    title: str
    rows: tuple[Row, ...]
    pairs: tuple[tuple[str, str], ...]  # labels of rows to compare: a paired bootstrap of the second minus the first
    measure: str = "rouge"  # of MEASURES
    decodings: bool = False  # whether each run has a row for both of DECODINGS
    split_name: str = "test"
    published_rl: str = "summary-level"  # or "sentence-level", as of summaries that are scored in one line

    @property
    def columns(self) -> tuple[str, ...]:
        return MEASURES[self.measure].columns

    def built_for(self, corpus: str) -> tuple[Row, ...]:
        """The rows that are made of scores on a corpus."""
        return tuple(row for row in self.rows_for(corpus) if row.part and corpus not in row.missing)

    def rows_for(self, corpus: str) -> tuple[Row, ...]:
        """The rows that belong to a corpus of the paper, and those that are not published; on another corpus all."""
        known = {name for row in self.rows for name in row.published}
        return tuple(r for r in self.rows if corpus not in known or corpus in r.published or not r.published)


@dataclass(frozen=True)
class PageTable:
    """A table that the paper's page measures while it runs, and saves as the lines of a figure: a row a line."""

    title: str
    figure: str
    published: Mapping[str, tuple[float, ...]]  # by row, at the places of a line


@dataclass(frozen=True)
class Samples:
    """A table of summaries themselves: the reference of a few test documents, and what each row's run writes."""

    title: str
    rows: tuple[Row, ...]  # runs; or baselines, of which there is "lead-3"
    documents: int = 2


@dataclass(frozen=True)
class RunFigure:
    """A figure of what runs look at while they summarize test documents: a panel for each run and document."""

    title: str
    rows: tuple[Row, ...]
    attention: str  # of `companion.show_runs.MAPS`
    documents: int = 1


@dataclass(frozen=True)
class Kept:
    """The trained run of a paper that the project keeps (`companion.trained`), and how it is scored."""

    dataset: str  # that it was trained on
    words: int  # of Lead and LexRank
    cut: int | None = None  # words after which every summary is cut
    documents: int = 200  # of the test split
    # names of the folders of runs of other variants that are kept -> those variants
    also: Mapping[str, str] = field(default_factory=dict)


def baseline(label: str, part: str, **published) -> Row:
    """A row that needs no training."""
    return Row(label, published, part=part)


def trained(
    label: str, variant: str = "", part: str = "summaries", *, published: Mapping, missing: Mapping = {}, **run
) -> Row:
    """A row that is a run."""
    return Row(label, published, RunSpec(variant, **run), part, missing)


def against(last: str, *others: str) -> tuple[tuple[str, str], ...]:
    """Pairs of one row and each of the others."""
    return tuple((other, last) for other in others)


def slug(name: str) -> str:
    """A name as part of a file name: "+encoder memory" -> "encoder-memory"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())
