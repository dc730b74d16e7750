"""The result tables of the four papers: their rows, what makes each row here, and what the papers report.

A row is a run (a model that `lib.train` trains, once for each seed), a baseline that needs no training, or something
that is not built. `lib.make_tables` scores the runs and puts a table together; `workflow/Snakefile` has a rule for each.
"""

from dataclasses import dataclass, field

ROUGE = ("R-1", "R-2", "R-Lsum")
COPIED = ("5", "10", "15", "20")  # n of the n-grams
RECALL = ("R-1", "R-2", "R-L")  # of the first 75 bytes


@dataclass(frozen=True)
class RunSpec:
    """What is trained for a row, besides corpus, preset and seed."""

    model: str
    variant: str = ""  # empty: the preset's own
    rows: bool = False  # whether the variant is a preset of its own, as in the windowed model's table
    vocabulary: tuple[tuple[str, int], ...] = ()  # (preset, |Y|)
    longer: bool = False  # more paragraphs at test time than in training

    def preset(self, preset: str) -> str:
        """The preset in which it is trained when the table is made at `preset`."""
        if not self.rows:
            return preset
        return self.variant if preset == "paper" else f"{preset} {self.variant}"

    def name(self, preset: str) -> str:
        """Of its folder. Rows that differ only in how they are scored share it."""
        size = dict(self.vocabulary).get(preset, "")
        return "--".join(filter(None, (self.model, slug(self.variant), str(size))))

    def arguments(self, preset: str) -> list[str]:
        """Arguments of `python -m lib.train` that say what is trained."""
        found = [self.model, "--preset", self.preset(preset)]
        if self.variant and not self.rows:
            found += ["--variant", self.variant]
        if preset in dict(self.vocabulary):
            found += ["--vocab-size", str(dict(self.vocabulary)[preset])]
        return found


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str
    published: dict[str, tuple[float, ...]] = field(default_factory=dict)  # corpus -> numbers
    run: RunSpec | None = None
    part: str = ""  # of the scores: "summaries" or "heads" of a run, or a baseline; empty: not built

    @property
    def built(self) -> bool:
        return bool(self.part)


@dataclass(frozen=True)
class Table:
    """A table of a paper."""

    title: str
    model: str  # whose page it belongs to
    rows: tuple[Row, ...]
    pairs: tuple[tuple[str, str], ...]  # labels of rows to compare: a paired bootstrap of the second minus the first
    measure: str = "rouge"  # or "copied", or "recall"
    split: str = "test"

    @property
    def columns(self) -> tuple[str, ...]:
        return {"rouge": ROUGE, "copied": COPIED, "recall": RECALL}[self.measure]

    def rows_for(self, corpus: str) -> tuple[Row, ...]:
        """The rows that belong to a corpus of the paper; on another corpus all of them."""
        known = {name for row in self.rows for name in row.published}
        return tuple(r for r in self.rows if corpus not in known or corpus in r.published)


def slug(name: str) -> str:
    """A name as part of a file name: "+encoder memory" -> "encoder-memory"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())


def _baseline(label: str, part: str, **published) -> Row:
    return Row(label, published, part=part)


def _run(label: str, model: str, variant: str = "", part: str = "summaries", *, published: dict, **run) -> Row:
    return Row(label, published, RunSpec(model, variant, **run), part)


def _against(last: str, *others: str) -> tuple[tuple[str, str], ...]:
    return tuple((other, last) for other in others)


# ------------------------------------------------------------------------------------------------------- Mem2Mem

_PAPERS = ("pubmed", "arxiv", "newsroom")


def _papers(*scores: tuple[float, float, float]) -> dict:
    return dict(zip(_PAPERS, scores))


TABLES = {
    "mem2mem_table1": Table(
        "Mem2Mem, Table 1: systems",
        "mem2mem",
        (
            Row("Lead", _papers((37.45, 14.19, 34.07), (35.52, 10.33, 31.44), (13.7, 2.4, 11.2)), part="lead"),
            Row("Sent-CLF", _papers((45.01, 19.91, 41.16), (34.01, 8.71, 30.31), (15.4, 2.7, 12.8))),
            Row("Sent-PTR", _papers((43.30, 17.92, 39.47), (42.32, 15.63, 38.06), (15.9, 2.8, 13.0))),
            _run("Attn-Seq2Seq", "mem2mem", "attn-seq2seq",
                 published=_papers((31.55, 8.52, 27.38), (29.3, 6.00, 25.56), (6.21, 1.07, 5.68))),
            _run("Ptr-Gen-Seq2Seq", "mem2mem", "ptr-gen-seq2seq",
                 published=_papers((35.86, 10.22, 29.69), (32.06, 9.04, 25.16), (14.66, 2.26, 11.44))),
            _run("Discourse-aware", "mem2mem", "discourse-aware",
                 published=_papers((38.93, 15.37, 35.21), (35.80, 11.05, 31.80))),
            Row("TLM, abstractive", _papers((37.06, 11.69, 34.27), (39.65, 12.15, 35.76), (20.40, 6.90, 17.10))),
            Row("TLM, hybrid", _papers((42.13, 16.27, 39.21), (41.62, 14.69, 38.03), (20.10, 6.50, 16.60))),
            _run("Mem2Mem", "mem2mem", "+read",
                 published=_papers((42.06, 16.56, 38.11), (41.81, 14.99, 37.24), (20.00, 6.60, 16.80))),
        ),
        _against("Mem2Mem", "Lead", "Attn-Seq2Seq", "Ptr-Gen-Seq2Seq", "Discourse-aware"),
    ),
    "mem2mem_table2": Table(
        "Mem2Mem, Table 2: one part after the other",
        "mem2mem",
        tuple(
            _run(label, "mem2mem", label, published={"pubmed": scores})
            for label, scores in {
                "hred": (40.02, 15.82, 36.28), "+encoder memory": (40.62, 15.89, 36.85),
                "+decoder memory": (40.51, 15.9, 36.64), "+transfer": (41.27, 16.24, 37.38),
                "+comp": (41.82, 16.51, 37.76), "+read": (42.06, 16.56, 38.11),
            }.items()
        ),
        (("hred", "+encoder memory"), ("hred", "+decoder memory"), ("+decoder memory", "+transfer"),
         ("+transfer", "+comp"), ("+comp", "+read"), ("hred", "+read")),
    ),
    "mem2mem_table3": Table(
        "Mem2Mem, Table 3: extraction without labels",
        "mem2mem",
        (
            _baseline("Lead", "lead", pubmed=(37.45, 14.19, 34.07), arxiv=(35.52, 10.33, 31.44)),
            _baseline("LexRank", "lexrank", pubmed=(39.19, 13.89, 34.59), arxiv=(33.85, 10.73, 28.99)),
            _run("Mem2Mem's heads", "mem2mem", "+read", "heads",
                 published={"pubmed": (41.77, 16.20, 37.81), "arxiv": (41.76, 14.95, 37.22)}),
            _baseline("Oracle", "oracle", pubmed=(47.76, 20.36, 39.19), arxiv=(44.25, 18.17, 35.33)),
        ),
        _against("Mem2Mem's heads", "Lead", "LexRank"),
    ),
    "mem2mem_table4": Table(
        "Mem2Mem, Table 4: percent of n-grams that stand in the source",
        "mem2mem",
        (
            _baseline("Reference", "reference", pubmed=(12.4, 3.2, 1.3, 0.9)),
            _run("HRED", "mem2mem", "hred", published={"pubmed": (38.1, 26.0, 17.4, 13.4)}),
            Row("TLM, hybrid", {"pubmed": (24.7, 10.8, 7.0, 4.1)}),
            _run("Mem2Mem", "mem2mem", "+read", published={"pubmed": (28.3, 19.2, 17.6, 10.7)}),
        ),
        _against("Mem2Mem", "HRED"),
        measure="copied",
    ),
}  # fmt: skip

# ------------------------------------------------------------------------------------------------ windowed attention

_CNN = {"CD_I": (38.23, 16.88, 35.43), "CD_II": (37.08, 16.27, 34.28)}
_WIKI = {
    "WIKI_I": (22.84, 7.89, 22.38),
    "WIKI_II": (26.15, 8.63, 25.48),
    "WIKI_III": (27.54, 9.59, 26.85),
    "WIKI_IV": (27.23, 9.51, 26.49),
    "WIKI_V": (29.19, 10.14, 28.46),
}
TABLES["windowed_table"] = Table(
    "Windowed attention, the article's table (validation set)",
    "windowed",
    (
        _baseline("Lead-3", "lead-3", cnn_dailymail=(40.68, 17.76, 36.87), wikihow=(24.24, 5.31, 21.86)),
        *(_run(k, "windowed", k, published={"cnn_dailymail": v}, rows=True) for k, v in _CNN.items()),
        *(_run(k, "windowed", k, published={"wikihow": v}, rows=True) for k, v in _WIKI.items()),
    ),
    (("CD_I", "CD_II"), ("WIKI_I", "WIKI_II"), ("WIKI_III", "WIKI_IV"), ("WIKI_III", "WIKI_V")),
    split="val",
)

# --------------------------------------------------------------------------------------------------------- Read-Again


def _y(thousands: int, demo: int) -> tuple[tuple[str, int], ...]:
    return (("paper", 1000 * thousands), ("demo", demo))


def _headlines(label: str, variant: str, thousands: int, demo: int, corpus: str, scores: tuple) -> Row:
    return _run(label, "read_again", variant, published={corpus: scores}, vocabulary=_y(thousands, demo))


def _read_again(label: str, variant: str, thousands: int, demo: int, *scores: float) -> Row:
    return _headlines(f"{label}, {thousands}K", variant, thousands, demo, "gigaword", scores)


TABLES |= {
    "read_again_table1": Table(
        "Read-Again, Table 1: encoders",
        "read_again",
        (
            _read_again("ABS", "abs attention", 69, 2_000, 24.12, 10.24, 22.61),
            _read_again("GRU", "gru", 69, 2_000, 26.79, 12.03, 25.14),
            _read_again("Read-Again GRU", "read-again gru", 69, 2_000, 27.26, 12.28, 25.48),
            _read_again("Read-Again LSTM", "read-again lstm", 69, 2_000, 27.82, 12.74, 26.01),
            _read_again("GRU", "gru", 15, 500, 24.67, 11.30, 23.28),
            _read_again("Read-Again GRU", "read-again gru", 15, 500, 25.04, 11.40, 23.47),
            _read_again("Read-Again LSTM", "read-again lstm", 15, 500, 25.30, 11.76, 23.71),
            _read_again("Read-Again GRU + copy", "read-again gru + copy", 15, 500, 27.41, 12.58, 25.74),
            _read_again("Read-Again LSTM + copy", "read-again lstm + copy", 15, 500, 27.37, 12.64, 25.69),
            _read_again("Option 1 + copy", "option 1 + copy", 15, 500, 27.95, 12.65, 26.10),
            _read_again("Option 2 + copy", "option 2 + copy", 15, 500, 27.96, 12.65, 26.18),
        ),
        (("GRU, 69K", "Read-Again GRU, 69K"), ("GRU, 15K", "Read-Again GRU, 15K"),
         ("Read-Again GRU, 15K", "Read-Again GRU + copy, 15K"),
         ("Read-Again LSTM, 15K", "Read-Again LSTM + copy, 15K"),
         ("Read-Again LSTM + copy, 15K", "Option 2 + copy, 15K")),
    ),
    "read_again_table2": Table(
        "Read-Again, Table 2: recall of the first 75 bytes",
        "read_again",
        (
            *(Row(label, {"duc2004": scores}) for label, scores in {
                "TOPIARY": (25.12, 6.46, 20.12), "ABS": (26.55, 7.06, 23.49), "ABS+": (28.18, 8.49, 23.81),
                "RAS-LSTM": (27.41, 7.69, 23.06), "RAS-Elman": (28.97, 8.26, 24.06),
                "big-words-lvt2k-1sent": (28.35, 9.46, 24.59), "big-words-lvt5k-1sent": (28.61, 9.42, 25.24),
            }.items()),
            *(_headlines(label, variant, 15, 500, "duc2004", scores) for label, variant, scores in (
                ("Read-Again GRU + copy", "read-again gru + copy", (29.08, 9.20, 25.25)),
                ("Read-Again LSTM + copy", "read-again lstm + copy", (29.89, 9.37, 25.93)),
                ("Option 2 + copy", "option 2 + copy", (29.74, 9.44, 25.94)),
            )),
        ),
        (("Read-Again GRU + copy", "Read-Again LSTM + copy"), ("Read-Again LSTM + copy", "Option 2 + copy")),
        measure="recall",
    ),
    "read_again_table3": Table(
        "Read-Again, Table 3: the decoder's vocabulary",
        "read_again",
        tuple(
            _read_again("Read-Again LSTM" + suffix, "read-again lstm" + suffix, thousands, demo, *scores)
            for thousands, demo, without, copying in (
                (2, 150, (14.39, 6.46, 13.74), (24.21, 11.27, 23.09)),
                (5, 300, (20.61, 9.67, 19.58), (26.83, 12.66, 25.31)),
                (15, 500, (25.30, 11.76, 23.74), (27.37, 12.64, 25.69)),
                (30, 1_000, (26.86, 11.93, 25.16), (27.49, 12.75, 25.77)),
                (69, 2_000, (27.82, 12.73, 26.01), (27.89, 12.69, 26.03)),
            )
            for suffix, scores in (("", without), (" + copy", copying))
        ),
        tuple((f"Read-Again LSTM, {n}K", f"Read-Again LSTM + copy, {n}K") for n in (2, 5, 15, 30, 69)),
    ),
}  # fmt: skip

# ------------------------------------------------------------------------------------------- hierarchical transformer


def _clusters(label: str, *scores: float, variant: str = "", longer: bool = False) -> Row:
    run = RunSpec("hierarchical_transformer", variant or label, longer=longer)
    return Row(label, {"wikisum": scores}, run, "summaries")


_HT = _clusters("HT", 40.82, 25.99, 35.08)
TABLES |= {
    "hierarchical_table2": Table(
        "Hierarchical transformer, Table 2: systems",
        "hierarchical_transformer",
        (
            _baseline("Lead", "lead", wikisum=(38.22, 16.85, 26.89)),
            _baseline("LexRank", "lexrank", wikisum=(36.12, 11.67, 22.52)),
            _clusters("FT 600, no ranking", 35.46, 20.26, 30.65),
            _clusters("FT 600", 40.46, 25.26, 34.65),
            _clusters("FT 800", 40.56, 25.35, 34.73),
            _clusters("FT 1200", 39.55, 24.63, 33.99),
            _clusters("T-DMCA", 40.77, 25.60, 34.90),
            _HT,
            _clusters("HT + similarity graph", 40.80, 25.95, 35.08),
            _clusters("HT + discourse graph", 40.81, 25.95, 35.24),
            _clusters("HT, longer input at test", 41.53, 26.52, 35.76, variant="HT", longer=True),
        ),
        (("FT 600, no ranking", "FT 600"), ("FT 800", "HT"), ("T-DMCA", "HT"), ("HT", "HT + similarity graph"),
         ("HT", "HT + discourse graph"), ("HT", "HT, longer input at test")),
    ),
    "hierarchical_table3": Table(
        "Hierarchical transformer, Table 3: ablations",
        "hierarchical_transformer",
        (
            _HT,
            _clusters("HT without paragraph positions", 40.21, 24.54, 34.71),
            _clusters("HT without multi-head pooling", 39.90, 24.34, 34.61),
            _clusters("HT without global layers", 39.01, 22.97, 33.76),
        ),
        _against("HT", *(f"HT without {x}" for x in ("paragraph positions", "multi-head pooling", "global layers"))),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class PageTable:
    """A table that a page measures while it runs, and keeps as the lines of a figure: a row a line."""

    title: str
    page: str
    figure: str
    published: dict[str, tuple[float, ...]]  # by row, at the places of a line


PAGE_TABLES = {
    "read_again_table4": PageTable(
        "Read-Again, Table 4: seconds a headline, by |Y|",
        "read_again",
        "read_again_seconds",
        {
            "published, without copying": (0.076, 0.081, 0.111, 0.161, 0.356),
            "published, with copying": (0.084, 0.090, 0.123, 0.171, 0.376),
        },
    ),
    "hierarchical_table1": PageTable(
        "Hierarchical transformer, Table 1: ROUGE-L recall of the L' best paragraphs",
        "hierarchical_transformer",
        "hierarchical_ranking",
        {
            "published, similarity": (24.86, 32.43, 40.87, 49.49),
            "published, learned": (39.38, 46.74, 53.84, 60.42),
        },
    ),
}
FIGURES = {  # of a paper: the page that draws it, and under which name
    "mem2mem_figure2": ("mem2mem", "mem2mem_real_memory"),
    "mem2mem_figure3": ("mem2mem", "mem2mem_write_attention"),
    "mem2mem_figure4": ("mem2mem", "mem2mem_read_attention"),
    "read_again_figure4": ("read_again", "read_again_importance"),
}
DATASETS = {  # of the demo: no download
    "mem2mem": "aclsum",
    "windowed": "aclsum",
    "read_again": "docstrings",
    "hierarchical_transformer": "aclsum:paragraphs",
}
