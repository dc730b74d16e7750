"""The hierarchical transformer (Liu and Lapata 2019), flat transformers and T-DMCA beside it."""

from lib.papers.hierarchical_transformer.variants import PAPER

__all__ = ["PAPER"]
