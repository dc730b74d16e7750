"""Windowed attention (Schüller 2019)."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.decoding.search import DecodeConfig
from lib.models.windowed import Windowed
from lib.papers.paper import Paper, Preset, Variant
from lib.papers.tables import read_results
from lib.papers.windowed.windows import ArticleOptions, start_from_vectors
from lib.system.errors import InputError
from lib.training.config import TrainConfig


def _needed(window: int | None) -> int:
    """The preset's window. Raises InputError where it has none."""
    if window is None:
        raise InputError("the preset has no window: choose the variant 'standard', or another preset")
    return window


_variant = partial(Variant, Windowed, start=start_from_vectors)
VARIANTS = {
    "standard": _variant(options={"window": None, "stride": None}),  # attention over the whole text
    "dynamic": _variant(options={"window": _needed}),  # the decoder moves the window: summaries say when
    "streamed": _variant({"encode": "stream"}, {"window": _needed}),  # each window when it is entered
    # the window moves after a share of the words
    "static": _variant({"windowing": "static"}, {"window": _needed, "marks": False}),
}


def _article(source: int, summary: int, longest: int, window: int | None = None, stride: int | None = None) -> Preset:
    """A row of the article's table: words of source and summary, window and stride; the author's training."""
    return Preset(
        ArticleOptions(source_tokens=source, summary_tokens=summary, window=window, stride=stride),
        {"budget": summary, "longest": longest},
        variant="dynamic" if window else "standard",
        train=TrainConfig(
            batch_size=12, epochs=21, learning_rate=300**-0.45, warmup=4000, weight_decay=1e-5, max_norm=None
        ),
        decode=DecodeConfig(beam=3, min_length=0, max_length=summary),
    )


ROWS = {
    "CD_I": _article(400, 100, 1500),
    "CD_II": _article(1160, 100, 1500, 400, 380),
    "WIKI_I": _article(200, 125, 800),
    "WIKI_II": _article(740, 125, 800, 200, 180),
    "WIKI_III": _article(400, 125, 800),
    "WIKI_IV": _article(780, 125, 800, 400, 380),
    "WIKI_V": _article(780, 125, 800),
}
DEMO = Preset(
    ArticleOptions(source_tokens=400, summary_tokens=80, vocab_size=1_000, window=120, stride=100),
    {"embedding": 64, "hidden": 32},
    train=TrainConfig(batch_size=4, steps=400, learning_rate=2e-3, validate_every=80),
    decode=DecodeConfig(beam=3, min_length=20, max_length=80, block_ngrams=3),
    documents=100,
)
# between the two: the article's table in an hour and a half on one CPU core; its rows keep their lengths
SMALL = Preset(
    ArticleOptions(source_tokens=780, vocab_size=5_000, window=400, stride=380),
    {"embedding": 64, "hidden": 64},
    train=TrainConfig(batch_size=16, epochs=1, learning_rate=2e-3, validate_every=150),
    decode=DecodeConfig(beam=3, min_length=35, max_length=100, block_ngrams=3),
)
# for a trained run: four windows over the beginnings of three sections
MEDIUM = Preset(
    ArticleOptions(
        source_tokens=1540, section_words=520, summary_tokens=200, vocab_size=15_000, window=400, stride=380
    ),
    {"embedding": 128, "hidden": 128},
    train=TrainConfig(
        batch_size=16,
        epochs=4,
        learning_rate=1e-3,
        halve_after=2,
        validate_every=500,
        save_every=250,
        log_every=50,
        bf16=True,
    ),
    decode=DecodeConfig(min_length=230, max_length=240, block_ngrams=3),  # some 200 words, their marks and [SLIDE]
)


def _demo_row(row: Preset) -> Preset:
    """A row in the demo's sizes: three tenths of its words, the demo's training and decoding."""
    lengths = {name: getattr(row.options, name) for name in ("source_tokens", "window", "stride")}
    options = replace(DEMO.options, **{name: words and round(0.3 * words) for name, words in lengths.items()})
    config = {**DEMO.config, "budget": options.summary_tokens, "longest": round(0.3 * row.config["longest"])}
    return replace(DEMO, options=options, config=config, variant=row.variant)


def _small_row(row: Preset) -> Preset:
    """A row with its own lengths, in the widths, training and decoding of `SMALL`."""
    names = ("source_tokens", "summary_tokens", "window", "stride")
    options = replace(SMALL.options, **{name: getattr(row.options, name) for name in names})
    config, decode = {**SMALL.config, **row.config}, replace(SMALL.decode, max_length=options.summary_tokens)
    return replace(SMALL, options=options, config=config, decode=decode, variant=row.variant)


PRESETS = {
    "demo": DEMO,
    "small": SMALL,
    "medium": MEDIUM,
    **ROWS,
    "paper": ROWS["CD_II"],
    **{f"demo {name}": _demo_row(row) for name, row in ROWS.items()},
    **{f"small {name}": _small_row(row) for name, row in ROWS.items()},
}

PAPER = Paper(
    name="windowed",
    title="Windowed",
    variants=VARIANTS,
    usual="dynamic",
    presets=PRESETS,
    dataset="aclsum",
    **vars(read_results(Path(__file__).parent)),
)
