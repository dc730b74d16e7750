"""Names that a reader may mistype."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: ", did you mean 'dataset'?", or a full stop."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else "."
