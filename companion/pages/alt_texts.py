"""Alternative texts of figures, generated from their numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def _joined(panels: Sequence[dict], describe: Callable[[dict], str]) -> str:
    return " ".join(f"{panel.get('title', '')}: {describe(panel)}.".lstrip(": ") for panel in panels)


def _describe_map(panel: Mapping[str, Any]) -> str:
    """Size, names if there are any, range, and where the number furthest from 0 stands."""
    values = np.asarray(panel.get("values", panel.get("weights")), dtype=float)
    at = np.unravel_index(np.abs(values).argmax(), values.shape)
    size, place = [], []
    for what, count, i in zip(("rows", "columns"), values.shape, at):
        names = panel.get(what, "")
        if isinstance(names, str):  # numbered from 1
            names = [f"{what[:-1]} {number}" for number in range(1, count + 1)]
            size.append(f"{count} {what}")
        else:
            size.append(f"{count} {what} ({', '.join(map(str, names))})")
        place.append(str(names[i]))
    marked = ", ".join(str(column + 1) for column in panel.get("marked", ()))
    return (
        f"{' by '.join(size)}, from {values.min():.2g} to {values.max():.2g}, "
        f"the furthest from 0 at {', '.join(place)}" + (f"; marked columns: {marked}" if marked else "")
    )


def describe_maps(panels: Sequence[dict], **_: Any) -> str:
    return "Heat maps. " + _joined(panels, _describe_map)


def _describe_line(name: str, x: Sequence[float], y: Sequence[float]) -> str:
    return f"{name} from {y[0]:.3g} at {x[0]:g} to {y[-1]:.3g} at {x[-1]:g}"


def loss_terms(metrics: list[dict]) -> dict[str, dict[str, tuple[list, list]]]:
    """{term: {split: (steps, values)}} of a run's losses, without the weighted sum of all."""
    terms = {}
    for term in [k for k in metrics[0] if k not in ("step", "split", "seconds", "loss")]:
        by_split = {split: [m for m in metrics if m["split"] == split and term in m] for split in ("train", "val")}
        terms[term] = {
            s: ([m["step"] for m in logged], [m[term] for m in logged]) for s, logged in by_split.items() if logged
        }
    return terms


def describe_losses(metrics: list[dict], **_: Any) -> str:
    parts = [
        f"{term}: " + ", ".join(_describe_line(split, *points) for split, points in splits.items())
        for term, splits in loss_terms(metrics).items()
    ]
    return f"Losses over steps. {'; '.join(parts)}."


def describe_lines(panels: Sequence[dict], **_: Any) -> str:
    def describe(panel: dict) -> str:
        series = ", ".join(_describe_line(name, *points) for name, points in panel["series"].items())
        return f"{panel['ylabel']} over {panel['xlabel']}: {series}"

    return "Line plots. " + _joined(panels, describe)


def describe_shaded_words(panels: Sequence[dict], label: str, **_: Any) -> str:
    def describe(panel: dict) -> str:
        order, words = np.argsort(panel["weights"], kind="stable"), panel["words"]
        (low, *_), (*_, high) = order, order
        ends = f"from {panel['weights'][low]:.3g} ({words[low]}) to {panel['weights'][high]:.3g} ({words[high]})"
        return f"{label} of {len(words)} words, {ends}"

    return "Texts with shaded words. " + _joined(panels, describe)


def describe_maximum_attention(
    places: Sequence[int], windows: Sequence[int], words: int, window: int, stride: int, **_: Any
) -> str:
    entered = np.unique(np.asarray(windows)) + 1
    return (
        f"A point for each of {len(places)} written symbols at one of {words} source words, from word "
        f"{min(places) + 1} to {max(places) + 1}; in grey the window of {window} words that it was written from: "
        f"{len(entered)} windows, the last is number {entered[-1]}."
    )


def describe_interval_bars(series: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str) -> str:
    described = [
        f"{label}: "
        + ", ".join(f"{name} {mean:.1f} [{low:.1f}, {high:.1f}]" for name, (mean, low, high) in named.items())
        for label, named in series.items()
    ]
    return f"Means with intervals, {xlabel}. {'; '.join(described)}."


def describe_histograms(panels: Sequence[dict]) -> str:
    def describe(panel: dict) -> str:
        middles = (np.array(panel["edges"])[1:] + np.array(panel["edges"])[:-1]) / 2
        means = {name: np.average(middles, weights=counts) for name, counts in panel["counts"].items()}
        return f"{panel['xlabel']}, means {', '.join(f'{name} {mean:.3g}' for name, mean in means.items())}"

    return "Histograms. " + _joined(panels, describe)


def describe_dot_plots(panels: Sequence[dict], unit: str) -> str:
    return "Dot plots. " + _joined(
        panels, lambda panel: f"{len(panel['pairs'])} dots in a text of {panel['length']} {unit}s"
    )


def describe_beam_tree(columns: Sequence[Sequence[dict]], **_: Any) -> str:
    def describe(column: Sequence[dict], before: Sequence[dict]) -> str:
        return ", ".join(
            f"{before[node['parent']]['word'] + ' ' if before else ''}{node['word']} {node['value']:.2f}"
            + (" (in the beam)" if node["beam"] else "")
            for node in column
        )

    steps = (
        f"Step {t}: {describe(column, columns[t - 1] if t > 1 else [])}."
        for t, column in enumerate(columns[1:], start=1)
    )
    return f"A tree of hypotheses. {' '.join(steps)}"


def describe_number_grid(
    values: Sequence[Sequence[int]],
    rows: Sequence[str],
    columns: Sequence[str],
    hits: Sequence[Sequence[int]],
    **_: Any,
) -> str:
    shared = ", ".join(rows[i] for i in sorted(hit[0] for hit in hits))
    return (
        f"A grid of whole numbers, {len(rows)} rows ({', '.join(rows)}) by {len(columns)} columns "
        f"({', '.join(columns)}); the last is {values[-1][-1]}. A path leads to it over {len(hits)} hits: {shared}."
    )
