"""Read-Again (Zeng, Luo, Fidler and Urtasun 2016), and ABS, RAS and words-lvt2k beside it."""

from pathlib import Path

from lib.models.headline_baselines import ABS, RAS, WordsLVT
from lib.models.read_again import BIDIRECTIONAL, ENCODERS, ReadAgain
from lib.papers.paper import Paper, Variant, at_least, read_presets
from lib.papers.read_again.headlines import HeadlineOptions


def _variant(encoder: str, copy: bool) -> Variant:
    """A variant; options 1 and 2 read the paper's two sentences, or more."""
    options = {"sentences": at_least(2)} if "option" in encoder else {}
    return Variant(ReadAgain, config={"encoder": encoder, "copy": copy}, options=options)


def _ras(decoder: str, rate: float) -> Variant:
    """RAS, in the paper's preset with the training of Chopra et al. (2016), from memory; for how
    long is not stated."""
    training = {
        "batch_size": 32,
        "learning_rate": rate,
        "anneal": 2.0,
        "halve_after": None,
        "max_norm": 10.0,
    }
    return Variant(RAS, {"decoder": decoder}, train={"paper": training})


def _lvt(candidates: int) -> Variant:
    """Words-lvt of a vocabulary with more words than are candidates, in the demos too."""
    return Variant(WordsLVT, {"candidates": candidates}, {"vocab_size": at_least(4 * candidates)})


# The models of Table 1: every encoder (and one that reads both ways) without and with copying, and
# ABS; and those of Table 2.
READERS = *ENCODERS, BIDIRECTIONAL
VARIANTS: dict[str, Variant] = {}
for _name in READERS:
    VARIANTS[_name] = _variant(_name, copy=False)
    VARIANTS[f"{_name} + copy"] = _variant(_name, copy=True)
# The text of the paper: a vector in (5) is found better than a single value.
_SINGLE = {"encoder": "read-again gru", "single_importance": True}
VARIANTS |= {
    "read-again gru, single importance": Variant(ReadAgain, {**_SINGLE, "copy": False}),
    "read-again gru, single importance + copy": Variant(ReadAgain, {**_SINGLE, "copy": True}),
    "abs bag": Variant(ABS, {"encoder": "bag"}),
    "abs attention": Variant(ABS, {"encoder": "attention"}),
}
VARIANTS |= {"RAS-LSTM": _ras("lstm", 0.1), "RAS-Elman": _ras("elman", 0.5)}
VARIANTS |= {f"words-lvt{n}k": _lvt(1_000 * n) for n in (2, 5)}

PAPER = Paper(
    name="read_again",
    title="Read-Again",
    variants=VARIANTS,
    usual="read-again lstm + copy",
    presets=read_presets(Path(__file__).with_name("presets.toml"), HeadlineOptions),
    dataset="docstrings",
)
