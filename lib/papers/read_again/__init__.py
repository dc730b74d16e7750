"""Read-Again (Zeng, Luo, Fidler and Urtasun 2016), and ABS, RAS and words-lvt2k beside it."""

from dataclasses import replace
from pathlib import Path

from lib.decoding.search import DecodeConfig
from lib.models.abs import ABS
from lib.models.ras import RAS
from lib.models.read_again import ENCODERS, ReadAgain
from lib.models.words_lvt import WordsLVT
from lib.papers.paper import Paper, Preset, Variant, at_least
from lib.papers.read_again.headlines import HeadlineOptions
from lib.papers.read_again.made_up import made_up_dispatches
from lib.papers.tables import read_results
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

PAPER = Paper(
    name="read_again",
    title="Read-Again",
    variants=VARIANTS,
    usual="read-again lstm + copy",
    presets=PRESETS,
    dataset="docstrings",
    comparison={"demo": "demo papers"},
    made_up=made_up_dispatches,
    **vars(read_results(Path(__file__).parent)),
)
