"""Hyper-parameters by name: `paper`, the paper's own and nothing else, and `demo`, minutes on two CPU cores."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import torch
from torch import nn

from lib.data.corpora import Corpus, load_corpus
from lib.data.headlines import prepare_headlines
from lib.data.prepared import PreparedCorpus, prepare
from lib.data.preprocess import ArticleOptions, ClusterOptions, CohanOptions, HeadlineOptions
from lib.data.text import BOS, PAD, PARAGRAPH_END, TITLE_END, UNK
from lib.data.windows import prepare_windowed
from lib.generate import DecodeConfig
from lib.models import hierarchical_transformer, mem2mem, read_again, seq2seq, windowed
from lib.models.abs import ABS
from lib.models.discourse_aware import DiscourseAware
from lib.models.hred import HRED
from lib.models.seq2seq import Seq2Seq
from lib.models.tdmca import TDMCA
from lib.ranking import prepare_clusters
from lib.suggestions import did_you_mean
from lib.train import TrainConfig

VARIANTS = {
    "mem2mem": {**mem2mem.VARIANTS, **seq2seq.VARIANTS, "discourse-aware": None},
    "windowed": windowed.VARIANTS,
    "read_again": read_again.VARIANTS,
    "hierarchical_transformer": hierarchical_transformer.VARIANTS,
}
USUAL = {  # each paper's own model
    "mem2mem": "+read",
    "windowed": "dynamic",
    "read_again": "read-again lstm + copy",
    "hierarchical_transformer": "HT",
}
# What variants read, where it is not what their model usually does: sentences, or paragraphs in the ranker's order.
_FLAT = {"flat": True, "paragraphs": 40}
READS = {
    "discourse-aware": {"unit": "section"},
    "HT + similarity graph": {"graph": "similarity"},
    "HT + discourse graph": {"graph": "discourse"},
    "FT 600, no ranking": {**_FLAT, "source_tokens": 600, "ranking": "order"},
    "FT 600": {**_FLAT, "source_tokens": 600},
    "FT 800": {**_FLAT, "source_tokens": 800},
    "FT 1200": {**_FLAT, "source_tokens": 1200},
    "T-DMCA": {**_FLAT, "source_tokens": 3000},
}
MODELS = tuple(VARIANTS)
OTHER_KINDS = {  # variants that are models of their own
    "hred": HRED,
    "attn-seq2seq": Seq2Seq,
    "ptr-gen-seq2seq": Seq2Seq,
    "discourse-aware": DiscourseAware,
    "abs bag": ABS,
    "abs attention": ABS,
    "T-DMCA": TDMCA,
}


@dataclass(frozen=True)
class Preset:
    """Everything a run needs to know: preprocessing, model sizes, training, decoding."""

    options: CohanOptions | ArticleOptions | HeadlineOptions | ClusterOptions = CohanOptions()
    model: dict = field(default_factory=dict)  # fields of the model's config that differ from the paper's
    variant: str = ""  # a row of the paper's tables; empty: its own model
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
    # between the two: a table of several seeds in an hour or two on two CPU cores
    ("mem2mem", "small"): Preset(
        options=CohanOptions(section_tokens=100, summary_tokens=100, vocab_size=5_000),
        model={
            "embedding": 64, "hidden": 64, "bottleneck": 64, "compression": 64,
            "lambda_comp": 5e-2, "lambda_read": 1e-1,
        },
        train=TrainConfig(batch_size=16, steps=600, learning_rate=2e-3, validate_every=150),
        decode=DecodeConfig(max_length=100, block_ngrams=3),
    ),
    ("windowed", "demo"): Preset(
        options=ArticleOptions(source_tokens=400, summary_tokens=80, vocab_size=1_000),
        model={"embedding": 64, "hidden": 32, "window": 120, "stride": 100},
        train=TrainConfig(batch_size=4, steps=400, learning_rate=2e-3, validate_every=80),
        decode=DecodeConfig(beam=3, min_length=20, max_length=80, block_ngrams=3),
        documents=100,
    ),
}  # fmt: skip


def _article(source: int, summary: int, longest: int, window: int | None = None, stride: int | None = None) -> Preset:
    """A row of the windowed paper's table: words of source and summary, window and step; the author's training."""
    return Preset(
        options=ArticleOptions(source_tokens=source, summary_tokens=summary),
        model={"window": window, "stride": stride, "budget": summary, "longest": longest},
        variant="dynamic" if window else "standard",
        train=TrainConfig(
            batch_size=12, epochs=21, learning_rate=300**-0.45, warmup=4000, weight_decay=1e-5, max_norm=None
        ),
        decode=DecodeConfig(beam=3, min_length=0, max_length=summary),
    )


PRESETS |= {
    ("windowed", "CD_I"): _article(400, 100, 1500),
    ("windowed", "CD_II"): _article(1160, 100, 1500, 400, 380),
    ("windowed", "WIKI_I"): _article(200, 125, 800),
    ("windowed", "WIKI_II"): _article(740, 125, 800, 200, 180),
    ("windowed", "WIKI_III"): _article(400, 125, 800),
    ("windowed", "WIKI_IV"): _article(780, 125, 800, 400, 380),
    ("windowed", "WIKI_V"): _article(780, 125, 800),
}
PRESETS["windowed", "paper"] = PRESETS["windowed", "CD_II"]


def _demo_article(row: Preset, demo: Preset) -> Preset:
    """A row of that table in the demo's sizes: three tenths of its words, the demo's training and decoding."""
    lengths = {k: v and round(0.3 * v) for k, v in row.model.items() if k in ("window", "stride", "longest")}
    options = replace(demo.options, source_tokens=round(0.3 * row.options.source_tokens))
    model = {**demo.model, "budget": demo.options.summary_tokens, **lengths}
    return replace(demo, options=options, model=model, variant=row.variant)


PRESETS |= {
    ("windowed", f"demo {name}"): _demo_article(PRESETS["windowed", name], PRESETS["windowed", "demo"])
    for name in ("CD_I", "CD_II", "WIKI_I", "WIKI_II", "WIKI_III", "WIKI_IV", "WIKI_V")
}
PRESETS |= {
    ("read_again", "paper"): Preset(
        options=HeadlineOptions(),
        train=TrainConfig(
            batch_size=64, epochs=10, optimizer="sgd", learning_rate=2.0, halve_after=5, max_norm=10.0
        ),
        decode=DecodeConfig(beam=10, min_length=0, max_length=30),
    ),
    ("read_again", "demo"): Preset(
        options=HeadlineOptions(
            sentences=4, source_tokens=50, summary_tokens=20, vocab_size=2_000, source_vocab_size=8_000, fewest=2,
            filtered=False,
        ),
        model={"embedding": 96, "hidden": 96, "importance": "sigmoid"},  # with tanh, states grow without bound
        train=TrainConfig(batch_size=32, steps=500, learning_rate=3e-3, validate_every=100),
        decode=DecodeConfig(beam=4, min_length=3, max_length=20),
    ),
}  # fmt: skip
# Papers in place of headlines: the demo of the other models, for Read-Again.
PRESETS["read_again", "demo papers"] = replace(
    PRESETS["read_again", "demo"],
    options=HeadlineOptions(
        sentences=40, source_tokens=300, summary_tokens=80, vocab_size=1_000, source_vocab_size=8_000, fewest=2,
        digits=False, filtered=False,
    ),
    model={"embedding": 64, "hidden": 64, "importance": "sigmoid"},
    train=TrainConfig(batch_size=4, steps=300, learning_rate=2e-3, validate_every=75),
    decode=DecodeConfig(min_length=20, max_length=80, block_ngrams=3),
    documents=100,
)  # fmt: skip


_WRITTEN = {"length_penalty": 0.4, "length_offset": 5, "forbidden": (PAD, UNK, BOS, TITLE_END, PARAGRAPH_END)}
_NOAM = {"warmup": 8_000, "beta2": 0.998, "epsilon": 1e-9, "max_norm": None}
PRESETS |= {
    # batches: 10,500 pieces on each of 4 GPUs, 4 times before an update, as the authors' code does it
    ("hierarchical_transformer", "paper"): Preset(
        options=ClusterOptions(),
        model={"form": "paper", "local_layers": 5},
        train=TrainConfig(
            batch_size=512, batch_tokens=168_000, accumulate=16, steps=500_000, learning_rate=2 * 256**-0.5,
            validate_every=10_000, keep_best=5, **_NOAM,
        ),
        decode=DecodeConfig(beam=5, min_length=0, max_length=400, **_WRITTEN),
    ),
    ("hierarchical_transformer", "code"): Preset(
        options=ClusterOptions(),
        train=TrainConfig(
            batch_size=512, batch_tokens=168_000, accumulate=16, steps=1_000_000, learning_rate=3 * 256**-0.5,
            validate_every=10_000, keep_best=5, **_NOAM,
        ),
        decode=DecodeConfig(beam=5, min_length=20, max_length=400, **_WRITTEN),
    ),
    ("hierarchical_transformer", "demo"): Preset(
        options=ClusterOptions(
            paragraphs=12, paragraph_tokens=60, summary_tokens=160, vocab_size=2_000, ranker_width=64,
            ranker_steps=300, ranker_batch=2, ranker_rate=0.05,
        ),
        model={"width": 64, "heads": 4, "inner": 128, "local_layers": 2, "dropout": 0.2},
        train=TrainConfig(
            batch_size=8, steps=240, learning_rate=0.2, validate_every=20, keep_best=5, **{**_NOAM, "warmup": 100}
        ),
        decode=DecodeConfig(beam=5, min_length=60, max_length=160, block_ngrams=3, **_WRITTEN),
        documents=100,
    ),
}  # fmt: skip


def choose(value: str, allowed, what: str) -> str:
    """`value` if it is allowed; otherwise a ValueError that proposes the nearest."""
    if value in allowed:
        return value
    raise ValueError(f"unknown {what} {value!r}{did_you_mean(value, allowed)} There are: {', '.join(allowed)}")


def preset(model: str, name: str, variant: str | None = None, vocab_size: int | None = None, **train) -> Preset:
    """A preset of a model in one of its variants, with fields of its training configuration replaced.

    None keeps the preset's variant, vocabulary or value. Raises ValueError for a name that does not exist.
    """
    choose(model, MODELS, "model")
    names = [n for m, n in PRESETS if m == model]
    chosen = PRESETS[model, choose(name, names, "preset")]
    given = {key: value for key, value in train.items() if value is not None}
    variant = choose(variant or chosen.variant or USUAL[model], VARIANTS[model], "variant")
    chosen = replace(chosen, variant=variant, train=replace(chosen.train, **given))
    values = {**chosen.model, **(VARIANTS[model][variant] or {})}
    if model == "windowed" and variant != "standard":
        if values["window"] is None:
            raise ValueError(f"preset {name!r} has no window: choose the variant 'standard', or another preset")
        if variant != "static":  # its summaries say when to move
            options = replace(chosen.options, window=values["window"], stride=values["stride"])
            chosen = replace(chosen, options=options)
    chosen = replace(chosen, options=replace(chosen.options, **READS.get(variant, {})))
    if vocab_size is not None:
        chosen = replace(chosen, options=replace(chosen.options, vocab_size=vocab_size))
    if variant.startswith("option") and chosen.options.sentences == 1:  # the paper's two sentences
        chosen = replace(chosen, options=replace(chosen.options, sentences=2))
    return replace(chosen, model=values)


def open_corpus(
    dataset: str, chosen: Preset, errors: str = "raise", limit: int | None = None, test: str = "", **keep
) -> PreparedCorpus:
    """A corpus by name or folder, prepared for a preset; a folder that is prepared already is taken as it is.

    test: another corpus, by name or folder, to take the test documents from.
    """
    if (Path(dataset) / "prepared.json").exists():
        if test:
            raise ValueError(f"{dataset} is prepared already: its test documents cannot be exchanged")
        return PreparedCorpus.load(dataset)
    make = {
        ArticleOptions: prepare_windowed,
        HeadlineOptions: prepare_headlines,
        ClusterOptions: prepare_clusters,
    }.get(type(chosen.options), prepare)
    return make(corpus_for(dataset, errors, test), chosen.options, limit or chosen.documents, **keep)


def corpus_for(dataset: str, errors: str = "raise", test: str = "") -> Corpus:
    """A corpus's texts, with another's test documents where `test` names one."""
    corpus = load_corpus(dataset, errors)
    return corpus.tested_on(load_corpus(test, errors)) if test else corpus


def build(model: str, chosen: Preset, corpus: PreparedCorpus) -> nn.Module:
    """The model of a preset for a corpus's vocabulary, with the seed's weights.

    Raises ValueError when the corpus was prepared for another window than the preset's, or for another unit.
    """
    for name in ("window", "unit"):
        there, wanted = (getattr(options, name, None) for options in (corpus.options, chosen.options))
        if there != wanted:
            raise ValueError(f"{corpus.name} was prepared with {name} {there}, not {wanted}: prepare it anew")
    kinds = {
        "mem2mem": mem2mem.Mem2Mem,
        "windowed": windowed.Windowed,
        "read_again": read_again.ReadAgain,
        "hierarchical_transformer": hierarchical_transformer.HierarchicalTransformer,
    }
    kind = kinds[choose(model, MODELS, "model")]
    kind = OTHER_KINDS.get(chosen.variant, kind)
    known = {f.name for f in fields(kind.Config)}
    values = {k: v for k, v in chosen.model.items() if k in known}
    if "source_vocab_size" in known:  # what the encoder reads is the corpus's to say
        values |= {
            name: getattr(corpus.options, name) for name in ("source_vocab_size", "sentences") if name in known
        }
    torch.manual_seed(chosen.train.seed)
    return kind(kind.Config(**values, vocab_size=len(corpus.vocabulary)))
