"""The plots of the pages, in one style, each kept with all that it was drawn from.

    python -m lib.figures            # draw every figure in figures/ again, from its numbers
    python -m lib.figures FOLDER

A figure NAME.png has a NAME.json beside it: the name of a function of this file, and its arguments.
"""

import io
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.storage import project_root, write_whole

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
    plt.rcParams.update(STYLE)  # pyright: ignore[reportArgumentType, reportCallIssue]


def draw(plot: Callable[..., Figure], name: str, folder: str | Path, **data) -> None:
    """Draw a figure from `data`, rounded to four digits, and write NAME.png and NAME.json.

    Args:
        plot: a function of this file.
        data: its arguments, in what JSON can hold, or tensors and arrays.
    """
    data = {name: _rounded(value) for name, value in data.items()}
    kept = json.dumps({"plot": plot.__name__, **data}, ensure_ascii=False) + "\n"
    _save(plot(**data), Path(folder) / f"{name}.png")
    write_whole(Path(folder) / f"{name}.json", kept)


def redraw(folder: str | Path) -> list[str]:
    """Draw every figure of a folder from its numbers alone. Returns their names.

    Raises ValueError for a figure of a plot that is not in this file.
    """
    use_style()
    drawn = []
    for path in sorted(Path(folder).glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if "plot" not in data:  # a table
            continue
        if data["plot"] not in PLOTS:
            raise ValueError(f"{path}: no plot {data['plot']!r} in lib.figures; there are {', '.join(PLOTS)}")
        figure = PLOTS[data.pop("plot")](**data)
        _save(figure, path.with_suffix(".png"))
        plt.close(figure)
        drawn.append(path.stem)
    return drawn


def _title(figure: Figure, title: str) -> None:
    """Above the whole figure, in as many lines as its width asks for."""
    figure.suptitle(textwrap.fill(title, int(11 * figure.get_figwidth())) if title else "")


def _save(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_whole(path, buffer.getvalue())


def _rounded(value):
    if isinstance(value, dict):
        return {str(k): _rounded(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


# ----------------------------------------------------------------------------------------------------- the plots


def attention_maps(
    panels: list[dict], rows: str, columns: str, title: str, across: int = 2, top: float = 1.0
) -> Figure:
    """Several attention maps with one colour bar; each panel is {"title", "weights"} and perhaps "marked" columns
    and a name of its own for the "columns". Weights [rows, columns] are shades from 0 to `top`."""
    down = -(-len(panels) // across)
    height = 0.9 + 0.26 * max(len(p["weights"]) for p in panels)
    figure, axes = plt.subplots(down, across, figsize=(4.6 * across, height * down + 0.4), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        named = panel.get("columns", columns)
        image = _attention_map(ax, panel["weights"], panel["title"], rows, named, panel.get("marked", ()), top)
    figure.colorbar(image, ax=axes, label="weight", shrink=0.9)
    _title(figure, title)
    return figure


def _attention_map(ax: Axes, weights, title: str, rows: str, columns: str, marked, top: float):
    """Columns in `marked` get a triangle below."""
    weights = np.asarray(weights)
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    ax.set(title=title, xlabel=columns, ylabel=rows, yticks=range(len(weights)))
    ax.set_yticklabels(map(str, range(1, len(weights) + 1)))
    step = max(1, weights.shape[1] // 12)
    ax.set_xticks(range(0, weights.shape[1], step))
    ax.set_xticklabels(map(str, range(1, weights.shape[1] + 1, step)))
    for column in marked:
        ax.plot(column, len(weights) - 0.42, "^", color="tab:red", markersize=7, clip_on=False)
    return image


def loss_curves(metrics: list[dict], title: str, hours: float = 0.0) -> Figure:
    """Every loss term over the steps, training as a line and validation, where it has the term, as points.

    hours: that all steps took, to be shown in place of them.
    """
    terms = [k for k in metrics[0] if k not in ("step", "split", "seconds", "loss")]
    last = metrics[-1]["step"]
    unit, time = ("hours", hours) if hours >= 1 else ("minutes", 60 * hours)
    label, pace = (f"{unit} ({last:,} steps)", time / last) if hours else ("step", 1)
    figure, axes = plt.subplots(1, len(terms), figsize=(max(4.4, 3.4 * len(terms)), 2.8), squeeze=False)
    for ax, term in zip(axes.flat, terms):
        for split, style in (("train", "-"), ("val", "o--")):
            points = [(pace * m["step"], m[term]) for m in metrics if m["split"] == split and term in m]
            if points:
                ax.plot(*zip(*points), style, label=split)
        ax.set(title=term, xlabel=label)
        ax.set_ylim(bottom=0)
    axes[0, 0].legend(frameon=False)
    _title(figure, title)
    return figure


def lines(panels: list[dict], title: str = "", width: float = 5.0) -> Figure:
    """Lines side by side; each panel is {"series": {name: [x, y]}, "xlabel", "ylabel"} and perhaps "xscale",
    "yscale", "dashed" names, "ticks" of x, and "zero": whether y begins there."""
    figure, axes = plt.subplots(1, len(panels), figsize=(width * len(panels), 3.1), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        for name, (x, y) in panel["series"].items():
            ax.plot(x, y, "o--" if name in panel.get("dashed", ()) else "o-", label=name)
        ax.set(xlabel=panel["xlabel"], ylabel=panel["ylabel"])
        ax.set(xscale=panel.get("xscale", "linear"), yscale=panel.get("yscale", "linear"))
        if panel.get("zero"):
            ax.set_ylim(bottom=0)
        if "ticks" in panel:
            ax.set_xticks(panel["ticks"])
    axes[0, 0].legend(frameon=False)
    _title(figure, title)
    return figure


def word_bars(words: list[str], heights: list[float], ylabel: str, title: str) -> Figure:
    """A bar for every word of a text."""
    figure, ax = plt.subplots(figsize=(9, 2.6))
    ax.bar(range(len(words)), heights)
    ax.set(ylabel=ylabel, title=title, xlim=(-0.6, len(words) - 0.4))
    ax.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
    return figure


def word_weights(words: list[str], weights, rows: str, title: str) -> Figure:
    """Weights [rows, words] of every word of a text as shades."""
    figure, ax = plt.subplots(figsize=(9, 2.4))
    image = ax.imshow(np.asarray(weights), cmap="Blues", vmin=0, aspect="auto")
    ax.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
    ax.set(ylabel=rows, yticks=range(len(weights)), title=title)
    figure.colorbar(image, ax=ax, label="weight")
    return figure


def labelled_maps(panels: list[dict]) -> Figure:
    """Small matrices side by side with a name at every row and column and their numbers inside; each panel is
    {"title", "values" [rows, columns], "rows", "columns"}, the last two lists of names."""
    shapes = [np.shape(panel["values"]) for panel in panels]
    widths = [max(1.1 + 0.42 * n, 0.8 + 0.09 * len(panel["title"])) for panel, (_, n) in zip(panels, shapes)]
    height = 1.5 + 0.3 * max(rows for rows, _ in shapes)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(sum(widths), height), squeeze=False, gridspec_kw={"width_ratios": widths}
    )
    for ax, panel in zip(axes.flat, panels):
        values = np.asarray(panel["values"])
        largest = np.abs(values).max()
        signed = values.min() < 0
        ax.imshow(
            values, cmap="RdBu" if signed else "Blues", vmin=-largest if signed else 0, vmax=largest, aspect="auto"
        )
        ax.set_xticks(range(values.shape[1]), panel["columns"], rotation=90)
        ax.set_yticks(range(values.shape[0]), panel["rows"])
        ax.set_title(panel["title"])
        for (i, j), value in np.ndenumerate(values):
            shade = "white" if abs(value) > 0.6 * largest else "black"
            number = f"{value:.2f}".replace("0.", ".") if value else ""  # outside a window: nothing
            ax.text(j, i, number, ha="center", va="center", fontsize=7, color=shade)
    return figure


def signed_maps(panels: list[dict], xlabel: str, ylabel: str, border: float) -> Figure:
    """Numbers from -1 to 1 as colours, panels {"title", "values"} side by side, with a line at `border`."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3), sharey=True, squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        image = ax.imshow(np.asarray(panel["values"]), cmap="RdBu", aspect="auto", vmin=-1, vmax=1)
        ax.axvline(border, color="black", linewidth=0.8)
        ax.set(title=panel["title"], xlabel=xlabel)
    axes[0, 0].set_ylabel(ylabel)
    figure.colorbar(image, ax=axes)
    return figure


def maximum_attention(
    places: list[int], weights: list[float], windows: list[int], words: int, window: int, stride: int, title: str
) -> Figure:
    """For every word that was written, the source word with the largest weight, and in grey the window it was in.

    places, weights, windows: of each word written; `windows` are numbers of windows of `window` words, `stride`
    apart.
    """
    figure, ax = plt.subplots(figsize=(7, 4))
    for t, w in enumerate(windows):
        ax.barh(t, min(window, words - w * stride), left=w * stride, height=1, color="0.9")
    points = ax.scatter(
        places, range(len(places)), c=weights, cmap="Blues", s=14, vmin=0, vmax=1,
        edgecolors="tab:blue", linewidths=0.4,
    )  # fmt: skip
    ax.set(title=title, xlabel="word of the source", ylabel="word of the summary", xlim=(-1, words))
    ax.invert_yaxis()
    figure.colorbar(points, ax=ax, label="weight")
    return figure


def interval_bars(rows: dict[str, list[float]], xlabel: str, title: str) -> Figure:
    """A mean with its interval for every row, {name: [mean, low, high]}, the first on top."""
    figure, ax = plt.subplots(figsize=(7, 0.7 + 0.34 * len(rows)))
    means, low, high = np.array(list(rows.values())).T
    ax.errorbar(means, range(len(rows)), xerr=[means - low, high - means], fmt="o", capsize=3)
    ax.set(xlabel=xlabel, title=title, yticks=range(len(rows)))
    ax.set_yticklabels(rows)
    ax.invert_yaxis()
    return figure


def word_maps(panels: list[dict], title: str, across: int = 1, top: float = 1.0, label: str = "weight") -> Figure:
    """Small maps with words at both axes and one colour bar; each panel is {"title", "weights", "rows", "columns"},
    the last two lists of words, and perhaps "ylabel" and "xlabel". Weights are shades from 0 to `top`."""
    down = -(-len(panels) // across)
    rows, columns = max(len(p["rows"]) for p in panels), max(len(p["columns"]) for p in panels)
    size = (1.7 + across * (0.9 + 0.26 * columns), 0.5 + down * (1.25 + 0.24 * rows))
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        image = ax.imshow(np.asarray(panel["weights"]), cmap="Blues", vmin=0, vmax=top, interpolation="nearest")
        ax.set_aspect("auto")
        ax.set_xticks(range(len(panel["columns"])), panel["columns"], rotation=90, fontsize=9)
        ax.set_yticks(range(len(panel["rows"])), panel["rows"], fontsize=9)
        ax.set(title=panel["title"], xlabel=panel.get("xlabel", ""), ylabel=panel.get("ylabel", ""))
    figure.colorbar(image, ax=axes, label=label, fraction=0.06)
    figure.suptitle(title)
    return figure


def histograms(panels: list[dict], title: str) -> Figure:
    """Outlines of histograms side by side; each panel is {"edges", "counts": {name: of each bin}, "xlabel"} and
    perhaps "mark", where a line stands."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.1), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        for name, counts in panel["counts"].items():
            ax.stairs(counts, panel["edges"], label=name, fill=True, alpha=0.45)
        if "mark" in panel:
            ax.axvline(panel["mark"], color="black", linewidth=0.8)
        ax.set(xlabel=panel["xlabel"])
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 1.22), ncols=2)
    axes[0, 0].set_ylabel("resamples")
    figure.suptitle(title)
    return figure


def dot_plots(panels: list[dict], unit: str, title: str) -> Figure:
    """Two places of a text that are equal as a dot; each panel is {"title", "pairs", "length"}: [first, second] from
    1 on, in a text of `length` units."""
    figure, axes = plt.subplots(1, len(panels), figsize=(3.9 * len(panels), 4), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        ax.plot([1, panel["length"]], [1, panel["length"]], color="0.8", linewidth=0.8)
        ax.plot(*zip(*panel["pairs"]), ".", color="tab:blue", markersize=3) if panel["pairs"] else None
        ax.set(title=panel["title"], xlabel=unit, xlim=(0, panel["length"] + 1), ylim=(panel["length"] + 1, 0))
        ax.set_aspect("equal")
    axes[0, 0].set_ylabel(f"same {unit}")
    figure.suptitle(title)
    return figure


PLOTS = {
    plot.__name__: plot
    for plot in (
        attention_maps, loss_curves, lines, word_bars, word_weights, labelled_maps, signed_maps, maximum_attention,
        interval_bars, word_maps, histograms, dot_plots,
    )
}  # fmt: skip


if __name__ == "__main__":
    print(*redraw(*sys.argv[1:] or [project_root() / "figures"]), sep="\n")
