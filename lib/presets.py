"""Hyper-parameters by name: `paper`, the paper's own and nothing else, and `demo`, minutes on two CPU cores."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import torch
from torch import nn

from lib.data.corpora import load_corpus
from lib.data.prepared import PreparedCorpus, prepare
from lib.data.preprocess import CohanOptions
from lib.generate import DecodeConfig
from lib.models.hred import HRED
from lib.models.mem2mem import VARIANTS, Mem2Mem
from lib.names import did_you_mean
from lib.train import TrainConfig

MODELS = ("mem2mem",)


@dataclass(frozen=True)
class Preset:
    """Everything a run needs to know: preprocessing, model sizes, training, decoding."""

    options: CohanOptions = CohanOptions()
    model: dict = field(default_factory=dict)  # fields of the model's config that differ from the paper's
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()
    documents: int | None = None  # at most so many of each split


PRESETS = {
    ("mem2mem", "paper"): Preset(),
    ("mem2mem", "demo"): Preset(
        options=CohanOptions(section_tokens=80, summary_tokens=80, vocab_size=1_000),
        # the weights of the regularisers are larger because there are hundreds of steps in place of 100,000
        model={
            "embedding": 64, "hidden": 64, "bottleneck": 64, "compression": 64, "slots": 6,
            "lambda_comp": 5e-2, "lambda_read": 1e-1,
        },
        train=TrainConfig(batch_size=4, steps=240, learning_rate=2e-3, validate_every=60),
        decode=DecodeConfig(min_length=20, max_length=80, block_ngrams=3),
        documents=100,
    ),
}  # fmt: skip


def choose(value: str, allowed, what: str) -> str:
    """`value` if it is allowed; otherwise a ValueError that proposes the nearest."""
    if value in allowed:
        return value
    raise ValueError(f"unknown {what} {value!r}{did_you_mean(value, allowed)} There are: {', '.join(allowed)}")


def preset(model: str, name: str, **train) -> Preset:
    """A preset, with fields of its training configuration replaced; None keeps the preset's value."""
    choose(model, MODELS, "model")
    names = [n for m, n in PRESETS if m == model]
    chosen = PRESETS[model, choose(name, names, "preset")]
    given = {key: value for key, value in train.items() if value is not None}
    return replace(chosen, train=replace(chosen.train, **given))


def open_corpus(
    dataset: str, chosen: Preset, errors: str = "raise", limit: int | None = None, **keep
) -> PreparedCorpus:
    """A corpus by name or folder, prepared for a preset; a folder that is prepared already is taken as it is."""
    if (Path(dataset) / "prepared.json").exists():
        return PreparedCorpus.load(dataset)
    return prepare(load_corpus(dataset, errors), chosen.options, limit or chosen.documents, **keep)


def build(model: str, chosen: Preset, corpus: PreparedCorpus, variant: str | None = None) -> nn.Module:
    """The model of a preset for a corpus's vocabulary, in one of its variants, with the seed's weights."""
    choose(model, MODELS, "model")
    changes = VARIANTS[choose(variant or "+read", VARIANTS, "variant")]
    kind = HRED if changes is None else Mem2Mem
    known = {f.name for f in fields(kind.Config)}
    values = {k: v for k, v in {**chosen.model, **(changes or {})}.items() if k in known}
    torch.manual_seed(chosen.train.seed)
    return kind(kind.Config(**values, vocab_size=len(corpus.vocabulary)))
