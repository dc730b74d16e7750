"""Mem2Mem (Park, Pilault and Pal 2020), and the models of its Table 1."""

from pathlib import Path

from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem
from lib.models.seq2seq import Seq2Seq
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.paper import Paper, Variant, read_presets

_EXTRACTS = "lib.papers.mem2mem.extracts"


def _tlm(extracts: bool) -> Variant:
    presets = f"{_EXTRACTS}:TLM_PRESETS"
    return Variant("lib.models.tlm:TLM", options={"extracts": extracts}, presets=presets)


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
    "discourse-aware": Variant(
        "lib.models.discourse_aware:DiscourseAware", options={"unit": "section"}
    ),
    "Sent-CLF": Variant(
        "lib.models.sentence_extractors:SentenceClassifier",
        presets=f"{_EXTRACTS}:EXTRACTOR_PRESETS",
        make=f"{_EXTRACTS}:make_sentence_classifier",
    ),
    "Sent-PTR": Variant(
        "lib.models.sentence_extractors:SentencePointer",
        presets=f"{_EXTRACTS}:EXTRACTOR_PRESETS",
    ),
    "TLM": _tlm(extracts=False),
    "TLM + extracts": _tlm(extracts=True),
}


PAPER = Paper(
    name="mem2mem",
    title="Mem2Mem",
    variants=VARIANTS,
    usual="+read",
    presets=read_presets(Path(__file__).with_name("presets.toml"), CohanOptions),
    dataset="aclsum",
    baselines="lib.papers.mem2mem.baselines:mem2mem_baselines",
)
