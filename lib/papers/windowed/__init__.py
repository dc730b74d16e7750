"""Windowed attention (Schüller 2019)."""

from lib.papers.windowed.variants import PAPER

__all__ = ["PAPER"]
