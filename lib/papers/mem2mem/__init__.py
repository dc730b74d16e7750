"""Mem2Mem (Park, Pilault and Pal 2020), and the models of its Table 1."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.data.vocabulary import BOS, PAD, PARAGRAPH_END, TITLE_END, UNK
from lib.decoding.search import DecodeConfig
from lib.evaluation.baselines import counted_in, matches, oracle
from lib.models.discourse_aware import DiscourseAware
from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem
from lib.models.sentence_extractors import SentenceClassifier, SentencePointer
from lib.models.seq2seq import Seq2Seq
from lib.models.tlm import TLM
from lib.papers.mem2mem.extracts import (
    ExtractOptions,
    SequenceOptions,
    summary_sentences,
)
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.paper import Paper, Preset, Variant, text_baselines
from lib.papers.tables import read_results
from lib.training.config import TrainConfig


def _extractor(pieces: int, size: int, **train) -> Preset:
    """A small preset of an extractor: so many pieces, and one layer of so many units in place of two of 512."""
    return Preset(
        ExtractOptions(vocab_size=pieces),
        {"embedding": size, "hidden": size, "layers": 1},
        train=TrainConfig(weight_decay=1e-5, **train),
    )


# Subramanian et al. (2020) train until 50 validations in a row, 200 steps apart, bring nothing
EXTRACTORS = {
    "paper": Preset(
        ExtractOptions(),
        train=TrainConfig(batch_size=32, steps=20_000, learning_rate=1e-3, weight_decay=1e-5, validate_every=200),
    ),
    "demo": replace(
        _extractor(2_000, 64, batch_size=4, steps=150, learning_rate=2e-3, validate_every=25), documents=100
    ),
    "small": _extractor(5_000, 64, batch_size=16, steps=600, learning_rate=2e-3, validate_every=100),
    "medium": _extractor(15_000, 128, batch_size=16, epochs=2, learning_rate=1e-3, validate_every=500, log_every=50),
}
_POINTER = {"pointer_layers": 1, "pointer_embedding": 64, "pointer_hidden": 64, "pointer_rate": 2e-3}
_SMALL_TLM = {"width": 64, "heads": 4, "inner": 256, "layers": 3, "dropout": 0.1}
_WRITTEN = {"block_ngrams": 3, "forbidden": (PAD, UNK, BOS, TITLE_END, PARAGRAPH_END)}
TLM_PRESETS = {
    # 256 sequences a batch there: some 64 papers
    "paper": Preset(
        SequenceOptions(),
        train=TrainConfig(
            batch_size=64, accumulate=None, steps=240_000, learning_rate=2.5e-4, warmup=40_000, cosine=200_000,
            max_norm=None, validate_every=5_000,
        ),
        decode=DecodeConfig(
            min_length=0, max_length=299, forbidden=_WRITTEN["forbidden"], sample=30, temperature=0.7
        ),
    ),
    "demo": Preset(
        SequenceOptions(
            vocab_size=2_000, summary_tokens=160, window=384, extract_tokens=120, rest_tokens=384, pointer_steps=100,
            pointer_batch=4, **_POINTER,
        ),
        _SMALL_TLM,
        train=TrainConfig(batch_size=4, steps=200, learning_rate=2e-3, validate_every=40),
        decode=DecodeConfig(min_length=60, max_length=159, **_WRITTEN),
        documents=100,
    ),
    "small": Preset(
        SequenceOptions(
            vocab_size=5_000, summary_tokens=160, window=512, extract_tokens=160, rest_tokens=512, pointer_steps=600,
            pointer_batch=16, **_POINTER,
        ),
        _SMALL_TLM,
        train=TrainConfig(batch_size=16, steps=600, learning_rate=2e-3, validate_every=150),
        decode=DecodeConfig(min_length=35, max_length=159, **_WRITTEN),
    ),
    "medium": Preset(
        SequenceOptions(
            vocab_size=15_000, extract_tokens=300, rest_tokens=1024, pointer_steps=2_000, pointer_batch=16,
            pointer_layers=1, pointer_embedding=128, pointer_hidden=128,
        ),
        {"width": 128, "heads": 4, "inner": 512, "layers": 6},
        train=TrainConfig(
            batch_size=16, epochs=6, learning_rate=1e-3, validate_every=500, save_every=250, log_every=50, bf16=True,
        ),
        decode=DecodeConfig(min_length=240, max_length=299, **_WRITTEN),
    ),
}  # fmt: skip
VARIANTS = {
    # the rows of Table 2: each adds one thing to the row before
    "hred": Variant(HRED),
    "+encoder memory": Variant(Mem2Mem, {"write": False, "lambda_comp": 0.0, "lambda_read": 0.0}),
    "+decoder memory": Variant(Mem2Mem, {"start": "zeros", "lambda_comp": 0.0, "lambda_read": 0.0}),
    "+transfer": Variant(Mem2Mem, {"lambda_comp": 0.0, "lambda_read": 0.0}),
    "+comp": Variant(Mem2Mem, {"lambda_read": 0.0}),
    "+read": Variant(Mem2Mem),
    # models of Table 1
    "attn-seq2seq": Variant(Seq2Seq, {"copy": False}),
    "ptr-gen-seq2seq": Variant(Seq2Seq, {"copy": True}),
    "discourse-aware": Variant(DiscourseAware, options={"unit": "section"}),
    "Sent-CLF": Variant(SentenceClassifier, counted={"summary_sentences": summary_sentences}, presets=EXTRACTORS),
    "Sent-PTR": Variant(SentencePointer, presets=EXTRACTORS),
    "TLM": Variant(TLM, options={"extracts": False}, presets=TLM_PRESETS),
    "TLM + extracts": Variant(TLM, options={"extracts": True}, presets=TLM_PRESETS),
}
# the weights of the regularisers are larger than the paper's because there are hundreds of steps in place of 100,000
_SMALL = {
    "embedding": 64,
    "hidden": 64,
    "bottleneck": 64,
    "compression": 64,
    "lambda_comp": 5e-2,
    "lambda_read": 1e-1,
}
PRESETS = {
    "paper": Preset(CohanOptions()),
    "demo": Preset(
        CohanOptions(section_tokens=80, summary_tokens=80, vocab_size=1_000),
        {**_SMALL, "slots": 6},
        train=TrainConfig(batch_size=4, steps=240, learning_rate=2e-3, validate_every=60),
        decode=DecodeConfig(min_length=20, max_length=80, block_ngrams=3),
        documents=100,
    ),
    # between the two: a table of several seeds in an hour or two on two CPU cores
    "small": Preset(
        CohanOptions(section_tokens=100, summary_tokens=100, vocab_size=5_000),
        _SMALL,
        train=TrainConfig(batch_size=16, steps=600, learning_rate=2e-3, validate_every=150),
        decode=DecodeConfig(min_length=35, max_length=100, block_ngrams=3),
    ),
    # the size of the trained run that the project keeps
    "medium": Preset(
        CohanOptions(sections=3, section_tokens=250, summary_tokens=200, vocab_size=15_000),
        {**_SMALL, "embedding": 128, "hidden": 128, "bottleneck": 128},
        train=TrainConfig(
            batch_size=16, epochs=6, learning_rate=1e-3, halve_after=4, validate_every=500, save_every=250,
            log_every=50,
        ),
        decode=DecodeConfig(min_length=240, max_length=246, block_ngrams=3),  # 200 words and their marks
    ),
}  # fmt: skip


def mem2mem_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """The `text_baselines`, and extraction that sees the reference at two other lengths: ten sentences, as many as
    Lead-10 and the heads of Mem2Mem choose, and the sentences that Subramanian et al. (2020) label, whose "Gold Ext"
    the paper quotes."""
    letters = counted_in(documents)
    numbers = [matches(d.sentences, d.summary, all_letters=letters) for d in documents]
    labelled = [[d.sentences[i] for i in chosen] for d, chosen in zip(documents, numbers)]
    ten = [oracle(d.sentences, d.summary, 10, letters) for d in documents]
    return {**text_baselines(documents, encoded, prepared), "oracle-10": ten, "labelled": labelled}


PAPER = Paper(
    name="mem2mem",
    title="Mem2Mem",
    variants=VARIANTS,
    usual="+read",
    presets=PRESETS,
    dataset="aclsum",
    baselines=mem2mem_baselines,
    **vars(read_results(Path(__file__).parent)),
)
