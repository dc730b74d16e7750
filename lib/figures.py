"""The plots of the pages, in one style, kept with the numbers they were drawn from."""

import io
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.files import write_whole

STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def use_style() -> None:
    plt.rcParams.update(STYLE)


def attention_map(ax: Axes, weights, title: str, rows: str, columns: str, marked=(), top: float = 1.0):
    """Weights [rows, columns] as shades from 0 to `top`; columns in `marked` get a triangle below."""
    weights = np.asarray(weights)
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    ax.set(title=title, xlabel=columns, ylabel=rows, yticks=range(len(weights)))
    ax.set_yticklabels(range(1, len(weights) + 1))
    step = max(1, weights.shape[1] // 12)
    ax.set_xticks(range(0, weights.shape[1], step))
    ax.set_xticklabels(range(1, weights.shape[1] + 1, step))
    for column in marked:
        ax.plot(column, len(weights) - 0.42, "^", color="tab:red", markersize=7, clip_on=False)
    return image


def attention_maps(panels: list[dict], rows: str, columns: str, title: str, across: int = 2, **keys) -> Figure:
    """Several attention maps with one colour bar; each panel is {"title", "weights"} and perhaps "marked" columns
    and a name of its own for the "columns"."""
    down = -(-len(panels) // across)
    height = 0.9 + 0.26 * max(len(p["weights"]) for p in panels)
    figure, axes = plt.subplots(down, across, figsize=(4.6 * across, height * down + 0.4), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        named = panel.get("columns", columns)
        image = attention_map(ax, panel["weights"], panel["title"], rows, named, panel.get("marked", ()), **keys)
    figure.colorbar(image, ax=axes, label="weight", shrink=0.9)
    figure.suptitle(title)
    return figure


def loss_curves(metrics: list[dict], title: str) -> Figure:
    """Every loss term over the steps, training as a line and validation, where it has the term, as points."""
    terms = [k for k in metrics[0] if k not in ("step", "split", "seconds", "loss")]
    figure, axes = plt.subplots(1, len(terms), figsize=(3.4 * len(terms), 2.8), squeeze=False)
    for ax, term in zip(axes.flat, terms):
        for split, style in (("train", "-"), ("val", "o--")):
            points = [(m["step"], m[term]) for m in metrics if m["split"] == split and term in m]
            if points:
                ax.plot(*zip(*points), style, label=split)
        ax.set(title=term, xlabel="step")
        ax.set_ylim(bottom=0)
    axes[0, 0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def save_figure(figure: Figure, name: str, data, folder: str | Path) -> None:
    """Write NAME.png and NAME.json, the numbers it was drawn from (rounded to four digits)."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_whole(Path(folder) / f"{name}.png", buffer.getvalue())
    write_whole(Path(folder) / f"{name}.json", json.dumps(_rounded(data), ensure_ascii=False) + "\n")


def _rounded(value):
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
