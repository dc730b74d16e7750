"""Mem2Mem (Park, Pilault and Pal 2020), and the models of its Table 1."""

from collections.abc import Sequence
from pathlib import Path

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.evaluation.baselines import counted_in, matches, oracle
from lib.models.discourse_aware import DiscourseAware
from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem
from lib.models.sentence_extractors import SentenceClassifier, SentencePointer
from lib.models.seq2seq import Seq2Seq
from lib.models.tlm import TLM
from lib.papers.mem2mem.extracts import ExtractOptions, SequenceOptions, make_sentence_classifier
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.paper import Paper, Variant, read_presets, text_baselines

FOLDER = Path(__file__).parent
EXTRACTORS = read_presets(FOLDER / "extractor_presets.toml", ExtractOptions)
TLM_PRESETS = read_presets(FOLDER / "tlm_presets.toml", SequenceOptions)
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
    "Sent-CLF": Variant(SentenceClassifier, presets=EXTRACTORS, make=make_sentence_classifier),
    "Sent-PTR": Variant(SentencePointer, presets=EXTRACTORS),
    "TLM": Variant(TLM, options={"extracts": False}, presets=TLM_PRESETS),
    "TLM + extracts": Variant(TLM, options={"extracts": True}, presets=TLM_PRESETS),
}


def mem2mem_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """The `text_baselines`, and extraction that sees the reference at two other lengths: ten
    sentences, as many as Lead-10 and the heads of Mem2Mem choose, and the sentences that
    Subramanian et al. (2020) label, whose "Gold Ext" the paper quotes."""
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
    presets=read_presets(FOLDER / "presets.toml", CohanOptions),
    dataset="aclsum",
    baselines=mem2mem_baselines,
)
