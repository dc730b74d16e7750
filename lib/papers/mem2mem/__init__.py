"""Mem2Mem (Park, Pilault and Pal 2020), and the models of its Table 1."""

from collections.abc import Sequence
from dataclasses import replace

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
from lib.papers.tables import Kept, RunFigure, Samples, Table, against, baseline, trained
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


def _papers(*scores: tuple[float, float, float]) -> dict:
    return dict(zip(("pubmed", "arxiv", "newsroom"), scores))


# extraction that sees the reference; in the last row two sentences for each of the reference's
_GOLD = {"pubmed": (47.76, 20.36, 39.19), "arxiv": (44.25, 18.17, 35.33)}
_SEEING = (
    baseline("Oracle (sentences, as many as help)", "oracle"),
    baseline("Oracle (10 sentences)", "oracle-10"),
    baseline("Gold Ext (two sentences for each)", "labelled", **_GOLD),
)
_AS_REFERENCES = "(sentences, as training references)"
_LEAD = {"pubmed": (37.45, 14.19, 34.07), "arxiv": (35.52, 10.33, 31.44)}
TABLES = {
    "mem2mem_table1": Table(
        "Mem2Mem, Table 1: systems",
        (
            baseline("Lead (10 sentences)", "lead-10", **_LEAD),
            baseline("Lead (3 sentences)", "lead-3", newsroom=(13.7, 2.4, 11.2)),
            trained("Sent-CLF", "Sent-CLF",
                 published=_papers((45.01, 19.91, 41.16), (34.01, 8.71, 30.31), (15.4, 2.7, 12.8))),
            trained("Sent-PTR", "Sent-PTR",
                 published=_papers((43.30, 17.92, 39.47), (42.32, 15.63, 38.06), (15.9, 2.8, 13.0))),
            trained("Attn-Seq2Seq", "attn-seq2seq",
                 published=_papers((31.55, 8.52, 27.38), (29.3, 6.00, 25.56), (6.21, 1.07, 5.68))),
            trained("Ptr-Gen-Seq2Seq", "ptr-gen-seq2seq",
                 published=_papers((35.86, 10.22, 29.69), (32.06, 9.04, 25.16), (14.66, 2.26, 11.44))),
            trained("Discourse-aware", "discourse-aware",
                 published=_papers((38.93, 15.37, 35.21), (35.80, 11.05, 31.80))),
            trained("TLM, abstractive", "TLM",
                 published=_papers((37.06, 11.69, 34.27), (39.65, 12.15, 35.76), (20.40, 6.90, 17.10))),
            trained("TLM, hybrid", "TLM + extracts",
                 published=_papers((42.13, 16.27, 39.21), (41.62, 14.69, 38.03), (20.10, 6.50, 16.60))),
            trained("Mem2Mem", "+read",
                 published=_papers((42.06, 16.56, 38.11), (41.81, 14.99, 37.24), (20.00, 6.60, 16.80))),
        ),
        against("Mem2Mem", "Lead (10 sentences)", "Sent-CLF", "Sent-PTR", "Attn-Seq2Seq", "Ptr-Gen-Seq2Seq",
                "Discourse-aware", "TLM, abstractive", "TLM, hybrid"),
        decodings=True,
    ),
    "mem2mem_table2": Table(
        "Mem2Mem, Table 2: one part after the other",
        tuple(
            trained(label, label, published={"pubmed": scores})
            for label, scores in {
                "hred": (40.02, 15.82, 36.28), "+encoder memory": (40.62, 15.89, 36.85),
                "+decoder memory": (40.51, 15.9, 36.64), "+transfer": (41.27, 16.24, 37.38),
                "+comp": (41.82, 16.51, 37.76), "+read": (42.06, 16.56, 38.11),
            }.items()
        ),
        (("hred", "+encoder memory"), ("hred", "+decoder memory"), ("+decoder memory", "+transfer"),
         ("+transfer", "+comp"), ("+comp", "+read"), ("hred", "+read")),
        decodings=True,
    ),
    "mem2mem_table3": Table(
        "Mem2Mem, Table 3: extraction without labels",
        (
            baseline("Lead (10 sentences)", "lead-10", **_LEAD),
            baseline(f"Lead {_AS_REFERENCES}", "lead"),
            baseline(f"LexRank {_AS_REFERENCES}", "lexrank",
                     pubmed=(39.19, 13.89, 34.59), arxiv=(33.85, 10.73, 28.99)),
            trained("Mem2Mem's heads", "+read", "extracts",
                 published={"pubmed": (41.77, 16.20, 37.81), "arxiv": (41.76, 14.95, 37.22)}),
            *_SEEING,
        ),
        against("Mem2Mem's heads", "Lead (10 sentences)", f"Lead {_AS_REFERENCES}",
                f"LexRank {_AS_REFERENCES}"),
    ),
    "mem2mem_table3_gold": Table(
        "Mem2Mem, Table 3's Gold Ext: extraction that sees the reference, by its length",
        _SEEING,
        against("Oracle (sentences, as many as help)", "Oracle (10 sentences)", "Gold Ext (two sentences for each)"),
    ),
    "mem2mem_table4": Table(
        "Mem2Mem, Table 4: percent of n-grams that stand in the source",
        (
            baseline("Reference", "reference", pubmed=(12.4, 3.2, 1.3, 0.9)),
            trained("HRED", "hred", published={"pubmed": (38.1, 26.0, 17.4, 13.4)}),
            trained("TLM, hybrid", "TLM + extracts", published={"pubmed": (24.7, 10.8, 7.0, 4.1)}),
            trained("Mem2Mem", "+read", published={"pubmed": (28.3, 19.2, 17.6, 10.7)}),
        ),
        against("Mem2Mem", "HRED"),
        measure="copied",
    ),
}  # fmt: skip


def _run(label: str, variant: str):
    return trained(label, variant, published={})


_FULL = _run("Mem2Mem", "+read")
SAMPLES = {
    "mem2mem_table6": Samples(
        "Mem2Mem, Table 6: references and what the systems write",
        (_run("HRED", "hred"), _run("TLM, hybrid", "TLM + extracts"), _FULL),
    )
}
# without L(comp) there is a row of Table 2 that has not L(read) either, and no other
RUN_FIGURES = {
    "mem2mem_figure3": RunFigure(
        "Write attention A of test papers, one row a memory head",
        (_FULL, _run("neither regulariser", "+transfer")),
        "heads",
    ),
    "mem2mem_figure4": RunFigure(
        "Read attention ψ, one column a word of the summary", (_FULL, _run("no L(read)", "+comp")), "slots"
    ),
}

PAPER = Paper(
    "mem2mem",
    "Mem2Mem",
    VARIANTS,
    "+read",
    PRESETS,
    dataset="aclsum",
    baselines=mem2mem_baselines,
    tables=TABLES,
    figures={
        "mem2mem_figure2": "mem2mem_real_memory",
        "mem2mem_figure3_planted": "mem2mem_write_attention",
        "mem2mem_figure4_planted": "mem2mem_write_attention",
    },
    samples=SAMPLES,
    run_figures=RUN_FIGURES,
    kept=Kept("sumpubmed", words=200, cut=200),
)
