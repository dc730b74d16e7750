"""The hierarchical transformer (Liu and Lapata 2019), flat transformers and T-DMCA beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lib.models.hierarchical_transformer import CopyingTransformer, HierarchicalTransformer
from lib.models.t_dmca import TDMCA, TDMCAConfig
from lib.papers.hierarchical_transformer.ranking import ClusterOptions
from lib.papers.paper import Paper, Variant, read_presets

_FLAT = {"local_layers": 6, "global_layers": 0, "paragraph_positions": False}


def _flat(pieces: int, **options: Any) -> Variant:
    """One sequence of the best paragraphs, which a transformer without global layers reads. The
    paper's "6-layer transformer": 6 layers in the encoder, and in the decoder 1, as all rows have
    it."""
    return Variant(HierarchicalTransformer, _FLAT, {**_sequence(pieces), **options})


def _sequence(pieces: int) -> dict:
    return {"flat": True, "paragraphs": 40, "source_tokens": pieces}


def _t_dmca_training(factor: int) -> dict[str, Any]:
    """The rate by the width (Vaswani et al. 2017, equation 3, whose factor is 1)."""
    return {"learning_rate": factor * TDMCAConfig.width**-0.5, "loss_mean": "documents"}


# The rows of tables 2 and 3, and one of ours. T-DMCA is wider than the others in the paper's
# comparison.
VARIANTS = {
    "HT": Variant(HierarchicalTransformer),
    "HT + similarity graph": Variant(HierarchicalTransformer, options={"graph": "similarity"}),
    "HT + discourse graph": Variant(HierarchicalTransformer, options={"graph": "discourse"}),
    "HT without paragraph positions": Variant(
        HierarchicalTransformer, {"paragraph_positions": False}
    ),
    "HT without multi-head pooling": Variant(HierarchicalTransformer, {"pooling_heads": 1}),
    "HT without global layers": Variant(HierarchicalTransformer, {"global_layers": 0}),
    "FT 600, no ranking": _flat(600, ranking="order"),
    "FT 600": _flat(600),
    "FT 800": _flat(800),
    "FT 1200": _flat(1200),
    "T-DMCA": Variant(
        TDMCA,
        options=_sequence(3000),
        train={"paper": _t_dmca_training(2), "code": _t_dmca_training(3)},
    ),
}
_PARTS = ("paragraph positions", "multi-head pooling", "global layers")
_ABLATIONS = [f"HT without {part}" for part in _PARTS]
_GRAPHS = ["HT + similarity graph", "HT + discourse graph"]
_COPYING = ["FT 600", "FT 1200", "HT", *_GRAPHS, *_ABLATIONS]
# Beside the preset `short`: as much text as HT reads there, half of it, and as many layers in the
# encoder.
_SHORT = {"FT 150": 150, "FT 300": 300}
for _name, _pieces in _SHORT.items():
    VARIANTS[_name] = replace(_flat(_pieces), config={**_FLAT, "local_layers": 4})
_UNRANKED = "FT 300, no ranking"
VARIANTS[_UNRANKED] = replace(VARIANTS["FT 300"], options={**_sequence(300), "ranking": "order"})
for _name in (*_COPYING, *_SHORT, _UNRANKED):
    VARIANTS[f"{_name} + copying"] = replace(VARIANTS[_name], model=CopyingTransformer)


PAPER = Paper(
    name="hierarchical_transformer",
    title="Hierarchical transformer",
    variants=VARIANTS,
    usual="HT",
    presets=read_presets(Path(__file__).with_name("presets.toml"), ClusterOptions),
    dataset="aclsum:paragraphs",
    baselines="lib.papers.hierarchical_transformer.baselines:cluster_baselines",
    trained="hierarchical_transformer_copying",
)
