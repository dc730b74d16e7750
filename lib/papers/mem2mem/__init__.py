"""Mem2Mem (Park, Pilault and Pal 2020), and the models of its Table 1."""

from lib.papers.mem2mem.variants import PAPER

__all__ = ["PAPER"]
