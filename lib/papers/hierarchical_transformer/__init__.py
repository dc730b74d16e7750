"""The hierarchical transformer (Liu and Lapata 2019), flat transformers and T-DMCA beside it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.data.vocabulary import BOS, PAD, PARAGRAPH_END, TITLE_END, UNK
from lib.decoding.search import DecodeConfig, source_sentences
from lib.evaluation.baselines import counted_in, lexrank
from lib.models.copying_transformer import CopyingTransformer
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig
from lib.models.t_dmca import TDMCA, TDMCAConfig
from lib.papers.hierarchical_transformer.ranking import ClusterOptions
from lib.papers.paper import Paper, Preset, Variant
from lib.papers.tables import read_results
from lib.training.config import TrainConfig

_FLAT = {"local_layers": 6, "global_layers": 0, "paragraph_positions": False}


def _flat(pieces: int, **options) -> Variant:
    """One sequence of the best paragraphs, which a transformer without global layers reads. The paper's "6-layer
    transformer": 6 layers in the encoder, and in the decoder 1, as all rows have it."""
    return Variant(HierarchicalTransformer, _FLAT, {**_sequence(pieces), **options})


def _sequence(pieces: int) -> dict:
    return {"flat": True, "paragraphs": 40, "source_tokens": pieces}


def _noam(factor: float, width: int = HierarchicalTransformerConfig.width) -> float:
    """The learning rate by a model's width (Vaswani et al. 2017, equation 3, whose factor is 1)."""
    return factor * width**-0.5


# The rows of tables 2 and 3, and one of ours. T-DMCA is wider than the others in the paper's comparison.
VARIANTS = {
    "HT": Variant(HierarchicalTransformer),
    "HT + similarity graph": Variant(HierarchicalTransformer, options={"graph": "similarity"}),
    "HT + discourse graph": Variant(HierarchicalTransformer, options={"graph": "discourse"}),
    "HT without paragraph positions": Variant(HierarchicalTransformer, {"paragraph_positions": False}),
    "HT without multi-head pooling": Variant(HierarchicalTransformer, {"pooling_heads": 1}),
    "HT without global layers": Variant(HierarchicalTransformer, {"global_layers": 0}),
    "FT 600, no ranking": _flat(600, ranking="order"),
    "FT 600": _flat(600),
    "FT 800": _flat(800),
    "FT 1200": _flat(1200),
    "T-DMCA": Variant(
        TDMCA,
        options=_sequence(3000),
        train={
            name: {"learning_rate": _noam(n, TDMCAConfig.width), "loss_mean": "documents"}
            for name, n in (("paper", 2), ("code", 3))
        },
    ),
}
_ABLATIONS = [f"HT without {part}" for part in ("paragraph positions", "multi-head pooling", "global layers")]
_GRAPHS = ["HT + similarity graph", "HT + discourse graph"]
_COPYING = ["FT 600", "FT 1200", "HT", *_GRAPHS, *_ABLATIONS]
# beside the preset `short`: as much text as HT reads there, half of it, and as many layers in the encoder
_SHORT = {f"FT {pieces}": pieces for pieces in (150, 300)}
VARIANTS |= {name: replace(_flat(pieces), config={**_FLAT, "local_layers": 4}) for name, pieces in _SHORT.items()}
VARIANTS |= {f"{name} + copying": replace(VARIANTS[name], kind=CopyingTransformer) for name in (*_COPYING, *_SHORT)}

_WRITTEN = {"length_penalty": 0.4, "length_offset": 5, "forbidden": (PAD, UNK, BOS, TITLE_END, PARAGRAPH_END)}
_NOAM = {"warmup": 8_000, "beta2": 0.998, "max_norm": None}
_CODE = {**_NOAM, "epsilon": 1e-9}  # of which the paper does not speak
_ARTICLES = ClusterOptions(  # whose paragraphs stand in order
    paragraphs=22, paragraph_tokens=110, paragraph_words=70, section_words=520, summary_tokens=256, vocab_size=8_000,
    ranking="order", lower=True,
)  # fmt: skip
_ABSTRACTS = DecodeConfig(beam=5, min_length=230, max_length=256, block_ngrams=3, **_WRITTEN)
# batches: those of the authors' code, which computes 10,500 pieces on each of 4 GPUs, 4 times before an update
_BATCHES = {"batch_size": 512, "batch_tokens": 168_000, "accumulate": None, "validate_every": 10_000, "keep_best": 5}
PRESETS = {
    "paper": Preset(
        ClusterOptions(),
        {"form": "paper", "local_layers": 5},
        train=TrainConfig(**_BATCHES, steps=500_000, learning_rate=_noam(2), **_NOAM),
        decode=DecodeConfig(beam=5, min_length=0, max_length=400, **_WRITTEN),
    ),
    "code": Preset(
        ClusterOptions(),
        train=TrainConfig(**_BATCHES, loss_mean="words", steps=1_000_000, learning_rate=_noam(3), **_CODE),
        decode=DecodeConfig(beam=5, min_length=20, max_length=400, **_WRITTEN),
    ),
    "demo": Preset(
        ClusterOptions(
            paragraphs=12, paragraph_tokens=60, summary_tokens=160, vocab_size=2_000, ranker_width=64,
            ranker_steps=300, ranker_batch=2, ranker_rate=0.05,
        ),
        {"width": 64, "heads": 4, "inner": 128, "local_layers": 2, "dropout": 0.2},
        train=TrainConfig(
            batch_size=8, steps=240, learning_rate=0.2, validate_every=20, keep_best=5, **{**_CODE, "warmup": 100}
        ),
        decode=DecodeConfig(beam=5, min_length=60, max_length=160, block_ngrams=3, **_WRITTEN),
        documents=100,
    ),
    # for a trained run
    "medium": Preset(
        _ARTICLES,
        {"width": 128, "heads": 4, "inner": 512, "local_layers": 3},
        train=TrainConfig(
            batch_size=16, epochs=3, learning_rate=0.08, validate_every=500, save_every=250, log_every=50, bf16=True,
            **{**_CODE, "warmup": 1_000},
        ),
        decode=_ABSTRACTS,
    ),
    # for the rows of a table
    "small": Preset(
        replace(_ARTICLES, paragraphs=12),
        {"width": 64, "heads": 4, "inner": 256, "local_layers": 3},
        train=TrainConfig(
            batch_size=16, steps=2_000, learning_rate=0.05, validate_every=500, log_every=50, bf16=True,
            **{**_CODE, "warmup": 400},
        ),
        decode=_ABSTRACTS,
    ),
    # for the rows of a table in minutes: a few sentences of each section, and the beginning of the abstract
    "short": Preset(
        replace(_ARTICLES, paragraphs=7, paragraph_tokens=60, paragraph_words=40, section_words=56,
                summary_tokens=48, vocab_size=3_000),
        {"width": 64, "heads": 4, "inner": 128, "local_layers": 2},
        train=TrainConfig(
            batch_size=8, steps=600, learning_rate=0.05, validate_every=200, log_every=50,
            **{**_CODE, "warmup": 100},
        ),
        decode=replace(_ABSTRACTS, min_length=40, max_length=48),
    ),
}  # fmt: skip


def cluster_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """Lead: the first words of what the model reads, as many as the reference has; LexRank, weighted by cosine, picks
    paragraphs."""
    lengths = [sum(len(s.split()) for s in d.summary) for d in documents]
    texts = [" ".join(source_sentences(d, prepared.vocabulary)) for d in encoded]
    paragraphs = [prepared.options.example(d).paragraphs for d in documents]
    letters = counted_in(documents)
    return {
        "lead": [[" ".join(text.split()[:n])] for text, n in zip(texts, lengths)],
        "lexrank": [lexrank(p, n, threshold=None, all_letters=letters) for p, n in zip(paragraphs, lengths)],
    }


PAPER = Paper(
    name="hierarchical_transformer",
    title="Hierarchical transformer",
    variants=VARIANTS,
    usual="HT",
    presets=PRESETS,
    dataset="aclsum:paragraphs",
    baselines=cluster_baselines,
    **vars(read_results(Path(__file__).parent)),
)
