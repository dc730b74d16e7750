"""Alternative texts of figures, generated from their numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def _joined(panels: Sequence[dict], describe: Callable[[dict], str]) -> str:
    return " ".join(f"{panel.get('title', '')}: {describe(panel)}.".lstrip(": ") for panel in panels)


def _describe_map(panel: Mapping[str, Any]) -> str:
    """Size, names if there are any, range, and the place of the number that is furthest from 0."""
    values = np.asarray(panel.get("values", panel.get("weights")), dtype=float)
    sizes, places = [], []
    for axis, count, i in zip(
        ("rows", "columns"), values.shape, np.unravel_index(abs(values).argmax(), values.shape)
    ):
        if isinstance(panel.get(axis), list):
            names = [str(name) for name in panel[axis]]
            sizes.append(f"{count} {axis} ({', '.join(names)})")
            places.append(names[i])
        else:  # numbered from 1
            sizes.append(f"{count} {axis}")
            places.append(f"{axis[:-1]} {i + 1}")
    ends = f"from {values.min():.2g} to {values.max():.2g}"
    return f"{' by '.join(sizes)}, {ends}, the furthest from 0 at {', '.join(places)}"


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
        ordered = sorted(zip(panel["weights"], panel["words"]))
        ends = [f"{weight:.3g} ({word})" for weight, word in (ordered[0], ordered[-1])]
        return f"{label} of {len(ordered)} words, from {' to '.join(ends)}"

    return "Texts with shaded words. " + _joined(panels, describe)


def describe_maximum_attention(places: Sequence[int], windows: Sequence[int], words: int, **_: Any) -> str:
    ends = f"from word {min(places) + 1} to {max(places) + 1}"
    return f"A point for each of {len(places)} written symbols at one of {words} source words, {ends}; " + (
        f"in grey the window that it was written from: {len(set(windows))} windows, the last is {windows[-1] + 1}."
    )


def describe_interval_bars(series: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str) -> str:
    bars = [
        f"{label}, {name} {mean:.1f} [{low:.1f}, {high:.1f}]"
        for label, rows in series.items()
        for name, (mean, low, high) in rows.items()
    ]
    return f"Means with intervals, {xlabel}. {'; '.join(bars)}."


def describe_histograms(panels: Sequence[dict]) -> str:
    def describe(panel: dict) -> str:
        middles = np.convolve(panel["edges"], [0.5, 0.5], "valid")
        means = [f"{name} {np.average(middles, weights=c):.3g}" for name, c in panel["counts"].items()]
        return f"{panel['xlabel']}, means {', '.join(means)}"

    return "Histograms. " + _joined(panels, describe)


def describe_dot_plots(panels: Sequence[dict], unit: str) -> str:
    return "Dot plots. " + _joined(panels, lambda panel: f"{len(panel['pairs'])} dots, {panel['length']} {unit}s")


def describe_beam_tree(columns: Sequence[Sequence[dict]], **_: Any) -> str:
    text = "A tree of hypotheses."
    for step, column in enumerate(columns[1:], start=1):
        nodes = [f"{n['word']} {n['value']:.2f}{' (in the beam)' if n['beam'] else ''}" for n in column]
        text += f" Step {step}: {', '.join(nodes)}."
    return text


def describe_number_grid(values: Sequence[Sequence[int]], hits: Sequence[Sequence[int]], **_: Any) -> str:
    size = f"{len(values)} rows by {len(values[0])} columns"
    return f"A grid of whole numbers, {size}. A path over {len(hits)} hits leads to the last, {values[-1][-1]}."
