"""Read-Again (Zeng, Luo, Fidler and Urtasun 2016), and ABS, RAS and words-lvt2k beside it."""

from dataclasses import replace

from lib.decoding.search import DecodeConfig
from lib.models.abs import ABS
from lib.models.ras import RAS
from lib.models.read_again import ENCODERS, ReadAgain
from lib.models.words_lvt import WordsLVT
from lib.papers.paper import Paper, Preset, Variant, at_least
from lib.papers.read_again.headlines import FIRST_SENTENCES, HeadlineOptions
from lib.papers.read_again.made_up import made_up_dispatches
from lib.papers.tables import Kept, PageTable, Row, RunFigure, Samples, Table, baseline, trained
from lib.training.config import TrainConfig


def _variant(encoder: str, copy: bool) -> Variant:
    """A variant; options 1 and 2 read the paper's two sentences, or more."""
    return Variant(
        ReadAgain, {"encoder": encoder, "copy": copy}, {"sentences": at_least(2)} if "option" in encoder else {}
    )


def _ras(decoder: str, rate: float) -> Variant:
    """RAS, in the paper's preset with the training of Chopra et al. (2016), from memory; for how long is not
    stated."""
    training = {"batch_size": 32, "learning_rate": rate, "anneal": 2.0, "halve_after": None, "max_norm": 10.0}
    return Variant(RAS, {"decoder": decoder}, train={"paper": training})


def _lvt(candidates: int) -> Variant:
    """Words-lvt of a vocabulary with more words than are candidates, in the demos too."""
    return Variant(WordsLVT, {"candidates": candidates}, {"vocab_size": at_least(4 * candidates)})


# The models of Table 1: every encoder without and with copying, and ABS; and those of Table 2.
VARIANTS = {name + suffix: _variant(name, bool(suffix)) for name in ENCODERS for suffix in ("", " + copy")}
# the text of the paper: a vector in (5) is found better than a single value
_SINGLE = {"encoder": "read-again gru", "single_importance": True}
VARIANTS |= {
    f"read-again gru, single importance{' + copy' * copy}": Variant(ReadAgain, {**_SINGLE, "copy": copy})
    for copy in (False, True)
}
VARIANTS |= {f"abs {encoder}": Variant(ABS, {"encoder": encoder}) for encoder in ("bag", "attention")}
VARIANTS |= {"RAS-LSTM": _ras("lstm", 0.1), "RAS-Elman": _ras("elman", 0.5)}
VARIANTS |= {f"words-lvt{n}k": _lvt(1_000 * n) for n in (2, 5)}
# the size of the trained run that the project keeps
_MEDIUM = Preset(
    HeadlineOptions(sentences=4, summary_tokens=20, vocab_size=5_000, source_vocab_size=20_000, filtered=False),
    {"embedding": 128, "hidden": 128, "dropout": 0.4, "importance": "sigmoid"},
    train=TrainConfig(batch_size=32, epochs=8, learning_rate=1e-3, halve_after=5, log_every=50),
    decode=DecodeConfig(beam=4, min_length=3, max_length=20),
)
PRESETS = {
    "paper": Preset(
        HeadlineOptions(),
        train=TrainConfig(
            batch_size=64, epochs=10, optimizer="sgd", learning_rate=2.0, halve_after=5, max_norm=10.0
        ),
        decode=DecodeConfig(beam=10, min_length=0, max_length=30),
    ),
    "demo": Preset(
        HeadlineOptions(
            sentences=4, source_tokens=50, summary_tokens=20, vocab_size=2_000, source_vocab_size=8_000, fewest=2,
            filtered=False,
        ),
        {"embedding": 96, "hidden": 96, "importance": "sigmoid"},  # with tanh, states grow without bound
        train=TrainConfig(batch_size=32, steps=500, learning_rate=3e-3, validate_every=100),
        decode=DecodeConfig(beam=4, min_length=3, max_length=20),
    ),
    "medium": _MEDIUM,
    # the size of the kept tables: one sentence, or the two of options 1 and 2, as in the paper
    "small": replace(
        _MEDIUM,
        options=replace(_MEDIUM.options, sentences=1, source_tokens=60, vocab_size=2_500),
        train=replace(_MEDIUM.train, epochs=6, halve_after=4),
    ),
    # papers in place of headlines: the demo of the other models
    "demo papers": Preset(
        HeadlineOptions(
            sentences=40, source_tokens=300, summary_tokens=80, vocab_size=1_000, source_vocab_size=8_000, fewest=2,
            digits=False, filtered=False,
        ),
        {"embedding": 64, "hidden": 64, "importance": "sigmoid"},
        train=TrainConfig(batch_size=4, steps=300, learning_rate=2e-3, validate_every=75),
        decode=DecodeConfig(min_length=20, max_length=80, block_ngrams=3),
        documents=100,
    ),
}  # fmt: skip


# |Y|, by the thousands of the paper, where the tables are made of some 14,000 headlines in place of millions
_SMALL = {2: 500, 5: 1_000, 15: 2_500, 30: 5_000, 69: 15_000, 200: 20_000}


def _y(thousands: int, demo: int) -> tuple[tuple[str, int], ...]:
    return (("paper", 1000 * thousands), ("small", _SMALL[thousands]), ("demo", demo))


def _headlines(label: str, variant: str, thousands: int, demo: int, corpus: str, scores: tuple, **run) -> Row:
    return trained(label, variant, published={corpus: scores}, vocabulary=_y(thousands, demo), **run)


def _read_again(label: str, variant: str, thousands: int, demo: int, *scores: float, **more) -> Row:
    return _headlines(f"{label}, {thousands}K", variant, thousands, demo, "gigaword", scores, **more)


def _duc(label: str, variant: str, thousands: int, demo: int, *scores: float, **more) -> Row:
    """A row of DUC 2004, scored as Rush et al. (2015) do it."""
    return _headlines(label, variant, thousands, demo, "duc2004", scores, exactly=15, numbers=True, **more)


_TWO = dict.fromkeys(("gigaword", "duc2004"), FIRST_SENTENCES)
TABLES = {
    "read_again_table1": Table(
        "Read-Again, Table 1: encoders",
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
            _read_again("Option 1 + copy", "option 1 + copy", 15, 500, 27.95, 12.65, 26.10, missing=_TWO),
            _read_again("Option 2 + copy", "option 2 + copy", 15, 500, 27.96, 12.65, 26.18, missing=_TWO),
        ),
        (("GRU, 69K", "Read-Again GRU, 69K"), ("GRU, 15K", "Read-Again GRU, 15K"),
         ("Read-Again GRU, 15K", "Read-Again GRU + copy, 15K"),
         ("Read-Again LSTM, 15K", "Read-Again LSTM + copy, 15K"),
         ("Read-Again LSTM + copy, 15K", "Option 2 + copy, 15K")),
        published_rl="sentence-level",
    ),
    "read_again_table2": Table(
        "Read-Again, Table 2: recall of the first 75 bytes",
        (
            Row("TOPIARY", {"duc2004": (25.12, 6.46, 20.12)},
                unbuilt="published only: a parser's compression and topics of the corpus; not released"),
            _duc("ABS", "abs attention", 69, 2_000, 26.55, 7.06, 23.49),
            Row("ABS+", {"duc2004": (28.18, 8.49, 23.81)},
                unbuilt="published only: ABS with features whose weights are tuned on DUC 2003"),
            _duc("RAS-LSTM", "RAS-LSTM", 69, 2_000, 27.41, 7.69, 23.06),
            _duc("RAS-Elman", "RAS-Elman", 69, 2_000, 28.97, 8.26, 24.06),
            _duc("big-words-lvt2k-1sent", "words-lvt2k", 69, 8_000, 28.35, 9.46, 24.59),
            _duc("big-words-lvt5k-1sent", "words-lvt5k", 200, 20_000, 28.61, 9.42, 25.24),
            baseline("Lead (75 bytes)", "lead"),
            _duc("Read-Again GRU + copy", "read-again gru + copy", 15, 500, 29.08, 9.20, 25.25),
            _duc("Read-Again LSTM + copy", "read-again lstm + copy", 15, 500, 29.89, 9.37, 25.93),
            _duc("Option 2 + copy", "option 2 + copy", 15, 500, 29.74, 9.44, 25.94, missing=_TWO),
        ),
        (("Read-Again GRU + copy", "Read-Again LSTM + copy"), ("Read-Again LSTM + copy", "Option 2 + copy"),
         ("RAS-LSTM", "RAS-Elman"), ("RAS-Elman", "Read-Again LSTM + copy"),
         ("big-words-lvt2k-1sent", "Read-Again LSTM + copy")),
        measure="recall",
        published_rl="sentence-level",
    ),
    "read_again_table3": Table(
        "Read-Again, Table 3: the decoder's vocabulary",
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
        published_rl="sentence-level",
    ),
    # the paper says it and has no table of it
    "read_again_table_importance": Table(
        "Read-Again, (5): the importance of a word as one value or as a vector",
        tuple(
            trained(f"{label}{suffix}", f"read-again gru{kind}{suffix}", published={}, vocabulary=_y(15, 500))
            for suffix in ("", " + copy")
            for label, kind in (("one value", ", single importance"), ("a vector", ""))
        ),
        (("one value", "a vector"), ("one value + copy", "a vector + copy")),
    ),
    # the paper has the GRU that reads once without copying alone, and no such LSTM
    "read_again_table_once": Table(
        "Read-Again: reading once or twice",
        tuple(
            trained(f"{label} {cell}{suffix}", f"{kind}{cell.lower()}{suffix}", published={}, vocabulary=_y(15, 500))
            for suffix in ("", " + copy")
            for cell in ("GRU", "LSTM")
            for label, kind in (("once,", ""), ("twice,", "read-again "))
        ),
        tuple((f"once, {s}", f"twice, {s}") for s in ("GRU", "LSTM", "GRU + copy", "LSTM + copy")),
    ),
}  # fmt: skip

SAMPLES = {
    "read_again_table5": Samples(
        "Read-Again, Table 5: headlines without and with copying",
        tuple(
            trained(label, f"read-again lstm{suffix}", published={}, vocabulary=_y(15, 500))
            for label, suffix in (("without copying", ""), ("with copying", " + copy"))
        ),
        documents=7,
    )
}

RUN_FIGURES = {
    "read_again_figure4": RunFigure(
        "Read-Again, Figure 4: the importance of words, above each text what is written of it",
        (trained("Read-Again GRU + copy", "read-again gru + copy", published={}, vocabulary=_y(15, 500)),),
        attention="importance",
        documents=6,
    )
}

PAPER = Paper(
    "read_again",
    "Read-Again",
    VARIANTS,
    "read-again lstm + copy",
    PRESETS,
    dataset="docstrings",
    comparison={"demo": "demo papers"},
    tables=TABLES,
    page_tables={
        "read_again_table4": PageTable(
            "Read-Again, Table 4: seconds a headline, by |Y|",
            "read_again_seconds",
            {
                "published, without copying": (0.076, 0.081, 0.111, 0.161, 0.356),
                "published, with copying": (0.084, 0.090, 0.123, 0.171, 0.376),
            },
        )
    },
    samples=SAMPLES,
    run_figures=RUN_FIGURES,
    made_up=made_up_dispatches,
    kept=Kept("reuters", words=8, documents=1_106),
)
