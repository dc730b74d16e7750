"""Panels of the figures of the page Start here."""

from collections.abc import Sequence

import numpy as np

from lib.evaluation.rouge import repeated_ngrams


def repetition_panel(how: str, words: list[str]) -> dict:
    """Make a panel with a dot for each pair of equal trigrams of a summary, and their share in the
    title."""
    repeated, count = repeated_ngrams(words)
    grams = list(enumerate(zip(words, words[1:], words[2:]), start=1))
    pairs = [[i, j] for i, a in grams for j, b in grams if a == b]
    title = f"{how}\n{repeated} of {count} are repetitions ({repeated / count:.0%})"
    series = {"equal trigrams": list(zip(*pairs))}
    labels = {"xlabel": "trigram", "ylabel": "trigram"}
    return {"title": title, "series": series, "styles": {"equal trigrams": "."}, **labels}


def resampled(values: np.ndarray, seed: int, resamples: int = 2000) -> np.ndarray:
    """Compute the mean of each resample of documents."""
    return values[
        np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    ].mean(1)


def bootstrap_panels(
    first: np.ndarray, second: np.ndarray, names: Sequence[str], seed: int
) -> list[dict]:
    """Make histograms of the resampled means of two systems, and of their difference, paired and
    unpaired."""
    apart = {
        name: resampled(scores, seed + i)
        for i, (name, scores) in enumerate(zip(names, (first, second)), start=1)
    }
    one, two = apart.values()
    differences = {"paired": resampled(second - first, seed), "unpaired": two - one}
    panels = []
    for label, values in {"R-1": apart, " - ".join(names[::-1]): differences}.items():
        edges = np.histogram_bin_edges(np.concatenate(list(values.values())), 50)
        middles = (edges[1:] + edges[:-1]) / 2
        series = {name: [middles, np.histogram(means, edges)[0]] for name, means in values.items()}
        styles = dict.fromkeys(series, "-")
        panels.append({"series": series, "styles": styles, "xlabel": label, "ylabel": "resamples"})
    panels[1]["series"]["no difference"] = [[0, 0], [0, 250]]
    panels[1]["styles"]["no difference"] = "k:"
    return panels


def lcs_panel(L: Sequence[Sequence[int]], reference: Sequence[str], summary: Sequence[str]) -> dict:
    """Make a panel of the lengths of the longest common subsequences of all prefixes. On a path
    back from the last number, shared words are dark."""
    i, j, shades = len(reference), len(summary), np.zeros((len(reference) + 1, len(summary) + 1))
    while i and j:
        shared = reference[i - 1] == summary[j - 1]
        shades[i, j] = 0.8 if shared else 0.25
        if shared:
            i, j = i - 1, j - 1
        else:
            i, j = (i, j - 1) if L[i][j - 1] > L[i - 1][j] else (i - 1, j)
    names = {
        "rows": ["", *reference],
        "columns": ["", *summary],
        "ylabel": "reference",
        "xlabel": "summary",
    }
    return {"title": "", "values": L, "shades": shades, **names}
