"""Windowed attention (Schüller 2019)."""

from functools import partial
from pathlib import Path

from lib.models.windowed import Windowed
from lib.papers.paper import Paper, Variant, read_presets
from lib.papers.windowed.sliding import SlidingConfig
from lib.papers.windowed.windows import ArticleOptions, make_windowed
from lib.system.errors import InputError


def _needed(window: int | None) -> int:
    """The preset's window. Raises InputError where it has none."""
    if window is None:
        advice = "choose the variant 'standard', or another preset"
        raise InputError(f"the preset has no window: {advice}")
    return window


_variant = partial(Variant, Windowed, make=make_windowed)
VARIANTS = {
    "standard": _variant(options={"window": None, "stride": None}),  # attention over the whole text
    # the decoder moves the window: summaries say when
    "dynamic": _variant(options={"window": _needed}),
    # each window when it is entered
    "streamed": _variant({"encode": "stream"}, {"window": _needed}),
    # the same, with summaries marked in another way
    "best path": _variant(options={"window": _needed, "links": "best path"}),
    # the window moves after a share of the words
    "static": _variant({"windowing": "static"}, {"window": _needed, "marks": False}),
}

PAPER = Paper(
    name="windowed",
    title="Windowed",
    variants=VARIANTS,
    usual="dynamic",
    presets=read_presets(Path(__file__).with_name("presets.toml"), ArticleOptions, SlidingConfig),
    dataset="aclsum",
)
