"""The tables and figures of the papers, and the trained runs that the project keeps: what each is
made of.

They are read from `PAPER.toml` beside this file: `tables` of scores, what runs write or look at
(`shown`), what a paper's page makes (`page`), and the runs in `trained/`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from lib.evaluation.measures import MEASURES
from lib.papers import PAPERS

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Row:
    """A row of a table: a run, which has a variant or a preset, a baseline, or something that is
    not built."""

    label: str
    published: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # corpus -> numbers
    # of the scores: "summaries" or "extracts" of a run, or a baseline; empty: not built
    part: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)  # corpus -> why it cannot be had there
    unbuilt: str = ""  # why there is nothing but what is published
    # a run, but for corpus, preset and seed
    variant: str = ""
    preset: str = ""  # the row's own, as in the windowed model's table
    vocabulary: Mapping[str, int] = field(default_factory=dict)  # preset -> |Y|
    # how a run is scored
    # option -> how many times larger it is at test time
    scaled: Mapping[str, str] = field(default_factory=dict)
    exactly: int | None = None  # words that are written at test time
    numbers: bool = False  # whether the text's numbers replace # before scoring
    # other settings of the run's own decoding, as `slide` of a model with windows
    decode: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if self.is_run and not self.part:
            object.__setattr__(self, "part", "summaries")

    @property
    def is_run(self) -> bool:
        return bool(self.variant or self.preset)


@dataclass(frozen=True)
class Table:
    """A table of a paper that is made of scores."""

    paper: str
    title: str
    rows: tuple[Row, ...]
    # labels of rows to compare: a paired bootstrap of the second minus the first
    pairs: tuple[tuple[str, str], ...]
    measure: str = "rouge"  # of MEASURES
    decodings: bool = False  # whether each run has a row for both of DECODINGS
    split_name: str = "test"
    # or "sentence-level", as of summaries that are scored in one line
    published_rl: str = "summary-level"
    # corpus, preset -> size in labels -> words
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return MEASURES[self.measure].columns

    def rows_for(self, corpus: str) -> list[Row]:
        """Select the rows for a corpus of the paper and those that are not published; for another
        corpus all."""
        known = {name for row in self.rows for name in row.published}
        return [
            row
            for row in self.rows
            if corpus not in known or corpus in row.published or not row.published
        ]


@dataclass(frozen=True)
class Shown:
    """Summaries of a few test documents by runs, or a figure of the runs' attention."""

    paper: str
    title: str
    rows: tuple[Row, ...]  # runs; or baselines, of which there is "lead-3"
    documents: int = 1
    attention: str = ""  # of `companion.draw_samples.MAPS`; empty: the summaries themselves


@dataclass(frozen=True)
class PageResult:
    """A figure that the paper's page draws; or a table, made of the lines of one: a row a line."""

    paper: str
    figure: str  # its name on the page
    title: str = ""  # of a table
    # rows of a table, at the lines' places
    published: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainedRun:
    """A trained run that the project keeps (`companion.trained`), and how it is scored."""

    paper: str
    variant: str
    words: int = 200  # of Lead and LexRank
    cut: bool = True  # whether every summary is cut to as many; a headline is not
    documents: int = 200  # of the test split

    @property
    def title(self) -> str:
        """The paper's, where the run is of its own model; otherwise the variant."""
        paper = PAPERS[self.paper]
        return paper.title if self.variant == paper.usual else self.variant


def _read(part: str, kind: type[Kind]) -> dict[str, Kind]:
    """Read a part of all papers' files: records by their names."""
    found = {}
    for paper in PAPERS:
        file = Path(__file__).with_name(f"{paper}.toml")
        records = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for name, record in records.get(part, {}).items():
            found[name] = TypeAdapter(kind).validate_python({"paper": paper, **record})
    return found


TABLES = _read("tables", Table)
SHOWN = _read("shown", Shown)
PAGE_RESULTS = _read("page", PageResult)
TRAINED = _read("trained", TrainedRun)


# ---------------------------------------------------------------------------------
# runs of rows


def run_name(paper: str, row: Row, preset: str) -> str:
    """Name the folder of a row's run. Rows that differ only in how they are scored share it."""
    size = str(row.vocabulary.get(preset, ""))
    return "--".join(filter(None, (paper, slug(row.variant or row.preset), size)))


def run_preset(row: Row, preset: str) -> str:
    """Name the preset in which a row's run is trained when its table is made at `preset`."""
    if not row.preset:
        return preset
    return row.preset if preset == "paper" else f"{preset} {row.preset}"


def run_arguments(paper: str, row: Row, preset: str) -> list[str]:
    """List the arguments of `python -m lib.train` that determine what is trained for a row."""
    arguments = [paper, "--preset", run_preset(row, preset)]
    if row.variant:
        arguments += ["--variant", row.variant]
    if preset in row.vocabulary:
        arguments += ["--options.vocab-size", str(row.vocabulary[preset])]
    return arguments


def slug(name: str) -> str:
    """Make a name part of a file name: "+encoder memory" -> "encoder-memory"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())
