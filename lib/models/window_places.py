"""Where windows stand in a text: what the preparation of summaries and the windowed models both need."""

import numpy as np

from lib.system.errors import InputError


def check_window(window: int, stride: int) -> None:
    """ValueError unless every word is in a window of `window` words that moves on by `stride`."""
    if not 1 <= stride <= window:
        raise InputError(f"a window of {window} words must move on by 1 to {window} words, not {stride}")


def count_windows(words, window: int, stride: int):
    """How many windows of `window` words, each `stride` words after the one before, hold a text of `words` words.

    `words` is a number, an array or a tensor, and so is the result: 1, and one more for each stride that is needed.
    """
    more = -((window - words) // stride)
    return 1 + more * (more > 0)


def window_of(start: int, end: int, words: int, window: int, stride: int) -> int:
    """The first window that holds the words [start, end) of a text, or the one that leaves out fewest of them."""
    first = np.arange(count_windows(words, window, stride)) * stride
    outside = np.clip(first - start, 0, None) + np.clip(end - first - window, 0, None)
    return int(outside.argmin())
