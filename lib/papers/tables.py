"""The tables and figures of a paper: their rows, what is published, and which run or baseline each needs.

They are read from `tables.toml` in the paper's folder.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from pydantic import TypeAdapter

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
        """Name the preset in which it is trained when the table is made at `preset`."""
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

    def __post_init__(self):
        if self.run and not self.part:
            object.__setattr__(self, "part", "summaries")

    def reason(self, corpus: str) -> str:
        """Say why there are no numbers of ours; nothing where there are, or no reason is known."""
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
        """Select the rows that are made of scores on a corpus."""
        return tuple(row for row in self.rows_for(corpus) if row.part and corpus not in row.missing)

    def rows_for(self, corpus: str) -> tuple[Row, ...]:
        """Select the rows for a corpus of the paper and those that are not published; for another corpus all."""
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


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a paper reports, and what its page and the project make of it."""

    tables: dict[str, Table] = field(default_factory=dict)
    page_tables: dict[str, PageTable] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)  # of the paper -> the name under which its page draws it
    samples: dict[str, Samples] = field(default_factory=dict)
    run_figures: dict[str, RunFigure] = field(default_factory=dict)
    kept: Kept | None = None


def read_results(folder: Path) -> Results:
    """Read `tables.toml` of a paper's folder."""
    return TypeAdapter(Results).validate_python(tomllib.loads((folder / "tables.toml").read_text(encoding="utf-8")))


def slug(name: str) -> str:
    """Make a name part of a file name: "+encoder memory" -> "encoder-memory"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())
