"""Read-Again (Zeng, Luo, Fidler and Urtasun 2016), and ABS, RAS and words-lvt2k beside it."""

from lib.papers.read_again.variants import PAPER

__all__ = ["PAPER"]
