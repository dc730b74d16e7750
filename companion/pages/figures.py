"""The plots of the pages, in one style, each saved with its numbers.

    python -m companion.pages.figures            # draw every figure again, from its numbers
    python -m companion.pages.figures FOLDER

A figure NAME.png has a NAME.json beside it: the name of a function of this file, and its arguments.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.cm
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lib.system.command_line import run_command
from lib.system.errors import one_of
from lib.system.files import project_root, read_numbers, write_whole

SHARP = 2  # pixels of a file for each that a browser shows
plt.style.use(Path(__file__).with_name("figures.mplstyle"))
SIZE = plt.rcParams["font.size"]  # of all letters


@dataclass(frozen=True)
class Plot:
    """A kind of figure, named in the JSON files: how its arguments are drawn, and described in
    words."""

    draw: Callable[..., Figure]
    describe: Callable[..., str]

    def picture(self, data: Mapping[str, Any]) -> bytes:
        """Draw a figure as PNG, of twice the pixels that it is shown with."""
        figure, buffer = self.draw(**data), io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        plt.close(figure)
        return buffer.getvalue()


PLOTS: dict[str, Plot] = {}


def described_by(describe: Callable[..., str]) -> Callable[[Callable[..., Figure]], Plot]:
    """Make a drawing function a `Plot` of `PLOTS`."""
    return lambda draw: PLOTS.setdefault(draw.__name__, Plot(draw, describe))


def draw(plot: Plot, name: str, folder: str | Path, caption: str = "", **data) -> bytes:
    """Draw a figure from `data`, rounded to four digits, and write NAME.png and NAME.json. Returns
    the PNG.

    Args:
        caption: saved in the JSON file, not in the picture.
        data: arguments of the plot: JSON values, tensors or arrays.
    """
    data = rounded(data)
    content = (
        json.dumps({"plot": plot.draw.__name__, "caption": caption, **data}, ensure_ascii=False)
        + "\n"
    )
    drawn = plot.picture(data)
    # The numbers come first: without them a picture looks like another program's
    # (`check_replaces`).
    write_whole(Path(folder) / f"{name}.json", content)
    write_whole(Path(folder) / f"{name}.png", drawn)
    return drawn


def redraw(folder: str | Path) -> list[str]:
    """Draw every figure of a folder again from its numbers. Returns their names.

    Raises OSError where there is no such folder, and ValueError for a plot that is not in this
    file.
    """
    drawn = []
    for path in sorted(path for path in Path(folder).iterdir() if path.suffix == ".json"):
        data = read_numbers(path, "figure or table", needed=())
        if name := data.pop("plot", ""):  # otherwise it is a table
            data.pop("caption", "")
            plot = PLOTS[one_of(name, PLOTS, f"{path}: plot")]
            write_whole(path.with_suffix(".png"), plot.picture(data))
            drawn.append(path.stem)
    return drawn


def rounded(value: Any) -> Any:
    """Numbers with four digits, tensors and arrays as lists."""
    if isinstance(value, dict):
        return {str(k): rounded(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


# ---------------------------------------------------------------------------------
# alternative texts


def _joined(panels: Sequence[dict], describe: Callable[[dict], str]) -> str:
    return " ".join(
        f"{panel.get('title', '')}: {describe(panel)}.".lstrip(": ") for panel in panels
    )


def _describe_map(panel: Mapping[str, Any]) -> str:
    """Describe a map: size, names, range, and the place of the number that is furthest from 0."""
    values = np.asarray(panel.get("values", panel.get("weights")), dtype=float)
    sizes, places = [], []
    furthest = np.unravel_index(abs(values).argmax(), values.shape)
    for axis, count, i in zip(("rows", "columns"), values.shape, furthest):
        names = list(map(str, panel[axis])) if isinstance(panel.get(axis), list) else []
        sizes.append(f"{count} {axis}" + (f" ({', '.join(names)})" if names else ""))
        places.append(names[i] if names else f"{axis[:-1]} {i + 1}")  # numbered from 1
    ends = f"from {values.min():.2g} to {values.max():.2g}"
    return f"{' by '.join(sizes)}, {ends}, the furthest from 0 at {', '.join(places)}"


def describe_maps(panels: Sequence[dict], **_: Any) -> str:
    return "Heat maps. " + _joined(panels, _describe_map)


def describe_lines(panels: Sequence[dict], **_: Any) -> str:
    def describe(panel: dict) -> str:
        series = (
            f"{name} from {y[0]:.3g} at {x[0]:g} to {y[-1]:.3g} at {x[-1]:g}"
            for name, (x, y) in panel["series"].items()
        )
        return f"{panel['ylabel']} over {panel['xlabel']}: {', '.join(series)}"

    return "Line plots. " + _joined(panels, describe)


def describe_shaded_words(panels: Sequence[dict], label: str, **_: Any) -> str:
    def describe(panel: dict) -> str:
        ordered = sorted(zip(panel["weights"], panel["words"]))
        ends = [f"{weight:.3g} ({word})" for weight, word in (ordered[0], ordered[-1])]
        return f"{label} of {len(ordered)} words, from {' to '.join(ends)}"

    return "Texts with shaded words. " + _joined(panels, describe)


def describe_maximum_attention(
    places: Sequence[int], windows: Sequence[int], words: int, **_: Any
) -> str:
    ends = f"from word {min(places) + 1} to {max(places) + 1}"
    return (
        f"A point for each of {len(places)} written symbols at one of {words} source words, "
        f"{ends}; "
        + (
            f"in grey the window that it was written from: {len(set(windows))} windows, the last "
            f"is {windows[-1] + 1}."
        )
    )


def describe_interval_bars(
    series: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str, **_: Any
) -> str:
    bars = [
        f"{label}, {name} {mean:.3g} [{low:.3g}, {high:.3g}]"
        for label, rows in series.items()
        for name, (mean, low, high) in rows.items()
    ]
    return f"Means with intervals, {xlabel}. {'; '.join(bars)}."


def describe_beam_tree(columns: Sequence[Sequence[dict]], **_: Any) -> str:
    text = "A tree of hypotheses."
    for step, column in enumerate(columns[1:], start=1):
        nodes = [
            f"{n['word']} {n['value']:.2f}{' (in the beam)' if n['beam'] else ''}" for n in column
        ]
        text += f" Step {step}: {', '.join(nodes)}."
    return text


# ---------------------------------------------------------------------------------
# the plots

PALEST = 0.2  # the smallest top of a colour bar, so that small weights stay pale
NUMBER = {"ha": "center", "va": "center", "fontsize": SIZE - 2}
BLUES = {"cmap": "Blues", "vmin": 0, "aspect": "auto", "interpolation": "nearest"}


@described_by(describe_maps)
def attention_maps(
    panels: list[dict],
    rows: str,
    columns: str,
    across: int = 2,
    top: float = 0.0,
    size: float = 4.6,
    label: str = "weight",
) -> Figure:
    """Several attention maps, axes numbered from 1; each panel is {"title", "weights"} and perhaps
    "marked" columns, with a triangle below, and a name of its own for the "columns".

    Args:
        top: weights [rows, columns] are shades from 0 to this, with one colour bar; 0: each panel
            has its own.
        size: inches of a panel's width.
        label: what the shades are, at the colour bar.
    """
    down = -(-len(panels) // across)
    height = 0.9 + 0.26 * max(len(p["weights"]) for p in panels)
    figure, axes = plt.subplots(down, across, figsize=(size * across, height * down), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        named = panel.get("columns", columns)
        highest = top or max(PALEST, np.asarray(panel["weights"]).max())
        length, count = np.shape(panel["weights"])
        image = ax.imshow(panel["weights"], vmax=highest, **BLUES)
        ax.set(title=panel["title"], xlabel=named, ylabel=rows)
        ax.set_yticks(range(length), map(str, range(1, length + 1)))
        for column in panel.get("marked", ()):
            ax.plot(column, length - 0.42, "^", color="tab:red", markersize=7, clip_on=False)
        # so that the numbers of the columns do not overlap
        step = max(1, -(-count // min(12, round(2.6 * size))))
        ax.set_xticks(range(0, count, step), map(str, range(1, count + 1, step)))
        if not top or panel is panels[-1]:
            figure.colorbar(image, ax=axes if top else ax, label=label, shrink=0.9)
    return figure


@described_by(describe_lines)
def lines(panels: list[dict], width: float = 5.0) -> Figure:
    """Lines side by side; each panel is {"series": {name: [x, y]}, "xlabel", "ylabel"} and perhaps
    "title", "yscale", "styles": {name: matplotlib's format}, "marks" and "ticks" of x, "legend":
    its place, "zero": whether y begins at 0, and "spread": {name: [low, high]}, the range of
    repeated measurements at each x. A name is in the legend of the first panel that has it."""
    figure, axes = plt.subplots(1, len(panels), figsize=(width * len(panels), 3.1), squeeze=False)
    for ax, panel in zip(axes.flat, panels):
        for name, (x, y) in panel["series"].items():
            (line,) = ax.plot(x, y, panel.get("styles", {}).get(name, "o-"), label=name)
            if name in panel.get("spread", {}):
                low, high = panel["spread"][name]
                ax.vlines(x, low, high, color=line.get_color(), linewidth=5, alpha=0.35)
        ax.set(title=panel.get("title", ""), xlabel=panel["xlabel"], ylabel=panel["ylabel"])
        ax.set_yscale(panel.get("yscale", "linear"))
        for x in panel.get("marks", ()):
            ax.axvline(x, color="0.6", linestyle=":", linewidth=1)
        if panel.get("zero"):
            ax.set_ylim(bottom=0)
        if "ticks" in panel:
            ax.set_xticks(panel["ticks"])
        if panel is panels[0] or not panel["series"].keys() <= panels[0]["series"].keys():
            ax.legend(frameon=False, **panel.get("legend", {}))
    return figure


LETTER = 0.602 * SIZE / 72  # inches of a letter of the monospaced font


@described_by(describe_shaded_words)
def shaded_words(panels: list[dict], label: str, across: int = 84) -> Figure:
    """Texts whose words are shaded by weight, from the smallest of all to the largest; each panel
    is {"title", "words", "weights"}. across: letters of a line."""
    every = [weight for panel in panels for weight in panel["weights"]]
    shade = matplotlib.cm.ScalarMappable(Normalize(min(every), max(every)), "Blues")
    texts, row = [], 0.0
    for panel in panels:
        texts.append((row, 0, panel["title"], "none"))
        column, row = 0, row + 1.3
        for word, weight in zip(panel["words"], panel["weights"]):
            if column and column + len(word) > across:
                column, row = 0, row + 1.3
            texts.append((row, column, word, shade.to_rgba(weight)))
            column += len(word) + 1
        row += 2
    width, height = across * LETTER, 0.19 * row
    figure = plt.figure(figsize=(width + 1.2, height), layout="none")
    ax = figure.add_axes((0.1 / (width + 1.2), 0, width / (width + 1.2), 1))
    ax.set(xlim=(0, across), ylim=(row - 1, -1))
    ax.axis("off")
    for row, column, word, colour in texts:
        dark = colour != "none" and sum(colour[:3]) < 1.65
        ax.text(
            column,
            row,
            word,
            family="monospace",
            weight="bold" if colour == "none" else "normal",
            va="center",
            color="white" if dark else "black",
            bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5},
        )
    bar = figure.add_axes(((width + 0.4) / (width + 1.2), 0.15, 0.12 / (width + 1.2), 0.7))
    figure.colorbar(shade, cax=bar, label=label)
    return figure


@described_by(describe_maps)
def word_maps(
    panels: list[dict],
    across: int = 0,
    top: float = 0.0,
    label: str = "weight",
    zeros: bool = False,
) -> Figure:
    """Small matrices with a name at every row and column; each panel is {"title", "values"
    [rows, columns], "rows", "columns"}, the last two lists of names, and perhaps "xlabel", "ylabel"
    and "shades" [rows, columns] instead of those of the values.

    Args:
        across: panels side by side; 0: all.
        top: shades from 0 to this, with one colour bar that has the `label`; 0: each panel has its
            own shades, and numbers inside.
        zeros: a number that is 0 is written too; otherwise its cell stays empty, as outside a
            window.
    """
    across = across or len(panels)
    down, shapes = -(-len(panels) // across), [np.shape(panel["values"]) for panel in panels]
    step = 0.26 if top else 0.42
    widths = [
        max(1.1 + step * n, 0.8 + 0.09 * len(panel["title"]))
        for panel, (_, n) in zip(panels, shapes)
    ]
    widths = [max(widths[column::across]) for column in range(across)]
    size = (sum(widths) + (1 if top else 0), down * (1.5 + 0.28 * max(rows for rows, _ in shapes)))
    figure, axes = plt.subplots(
        down, across, figsize=size, squeeze=False, gridspec_kw={"width_ratios": widths}
    )
    for ax, panel in zip(axes.flat, panels):
        values = np.asarray(panel["values"])
        shades = np.asarray(panel.get("shades", values))
        largest = top or np.abs(shades).max()
        signed = {"cmap": "RdBu", "vmin": -largest} if shades.min() < 0 else {}
        image = ax.imshow(shades, vmax=largest, **{**BLUES, **signed})
        digits = "d" if values.dtype.kind == "i" else ".2f"
        for (i, j), value in np.ndenumerate([] if top else values):
            number = f"{value:{digits}}".replace("0.", ".") if value or zeros else ""
            ax.text(
                j,
                i,
                number,
                color="white" if abs(shades[i, j]) > 0.6 * largest else "black",
                **NUMBER,
            )
        ax.set_xticks(range(len(panel["columns"])), panel["columns"], rotation=90)
        ax.set_yticks(range(len(panel["rows"])), panel["rows"])
        ax.set(title=panel["title"], xlabel=panel.get("xlabel", ""), ylabel=panel.get("ylabel", ""))
    if top:
        figure.colorbar(image, ax=axes, label=label, fraction=0.06)
    return figure


@described_by(describe_maximum_attention)
def maximum_attention(
    places: list[int],
    weights: list[float],
    windows: list[int],
    words: int,
    window: int,
    stride: int,
) -> Figure:
    """The source word with the largest weight for every word that was written, and in grey the
    window it was in.

    places, weights, windows: of each word written; `windows` are numbers of windows of `window`
    words, `stride` apart.
    """
    figure, ax = plt.subplots(figsize=(7, 3.6))
    steps = range(1, len(places) + 1)  # words and steps are counted from 1, as on the pages
    for t, w in zip(steps, windows):
        ax.barh(
            t, min(window, words - w * stride), left=float(w * stride) + 0.5, height=1, color="0.9"
        )
    points = ax.scatter(
        [place + 1 for place in places],
        steps,
        c=weights,
        cmap="Blues",
        s=14,
        vmin=0,
        vmax=1,
        edgecolors="tab:blue",
        linewidths=0.4,
    )
    ax.set(xlabel="word of the source", ylabel="word of the summary")
    ax.set(xlim=(0.5, words + 0.5), ylim=(len(places) + 0.5, 0.5))
    figure.colorbar(points, ax=ax, label="weight")
    return figure


@described_by(describe_interval_bars)
def interval_bars(
    series: dict[str, dict[str, list[float]]], xlabel: str, width: float = 8, zero: bool = False
) -> Figure:
    """Means with their intervals, {series: {row: [mean, low, high]}}: a colour for each series, the
    first row on top, and beside each other in a row what several series have there. The series
    "paper" has diamonds.

    zero: whether there is a line at 0.
    """
    rows = list(dict.fromkeys(name for named in series.values() for name in named))
    figure, ax = plt.subplots(figsize=(width, 1.1 + 0.42 * len(rows)))
    _draw_intervals(ax, series, rows)
    ax.set(xlabel=xlabel)
    if zero:
        ax.axvline(0, color="0.6", linewidth=1)
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(series))
    return figure


def _draw_intervals(
    ax: Any, series: Mapping[str, Mapping[str, Sequence[float]]], rows: Sequence[str]
) -> None:
    having = {name: [label for label, named in series.items() if name in named] for name in rows}
    for label, named in series.items():
        means, low, high = np.array(list(named.values())).T
        beside = [having[name].index(label) - (len(having[name]) - 1) / 2 for name in named]
        places = [rows.index(name) + 0.3 * offset for name, offset in zip(named, beside)]
        marker = "D" if label == "paper" else "o"
        ax.errorbar(
            means,
            places,
            xerr=[means - low, high - means],
            fmt=marker,
            markersize=5,
            capsize=3,
            label=label,
        )
    ax.set(yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticklabels(rows)
    ax.grid(axis="x", color="0.9")


def describe_interval_panels(panels: Sequence[dict], xlabel: str, **_: Any) -> str:
    return " ".join(
        describe_interval_bars(panel["series"], f"{panel['title']}, {xlabel}") for panel in panels
    )


@described_by(describe_interval_panels)
def interval_panels(panels: list[dict], xlabel: str, small: float) -> Figure:
    """`interval_bars` below each other, each {"title", "series", "top"} on an axis of its own from
    0 to "top".

    small: a grey band goes up to this value; what is smaller does not count.
    """
    rows = [
        list(dict.fromkeys(name for named in p["series"].values() for name in named))
        for p in panels
    ]
    heights = [0.75 + 0.3 * len(names) for names in rows]
    figure, axes = plt.subplots(len(panels), 1, figsize=(4.3, sum(heights)), height_ratios=heights)
    for ax, panel, names in zip(axes, panels, rows):
        _draw_intervals(ax, panel["series"], names)
        ax.axvspan(0, small, color="0.85")
        ax.set(title=panel["title"], xlim=(-0.03 * panel["top"], panel["top"]))
        if len(panel["series"]) > 1:
            ax.legend(frameon=False, loc="upper right")
    axes[-1].set(xlabel=xlabel)
    return figure


# the fill of what is chosen; the lines and letters of what is not
CHOSEN, PALE = "#cfe3f2", "#909090"


def describe_memory_path(
    panels: Sequence[dict], sentences: Sequence[str], summary: Sequence[str]
) -> str:
    heads, reads = (np.asarray(panel["weights"]) for panel in panels)
    slots = (
        f"slot {k + 1} holds sentence {j + 1} ({sentences[j]}), with {reads[k, 0]:.0%} of the "
        "reads at the first word"
        f" and {reads[k, -1]:.0%} at the last"
        for k, j in enumerate(heads.argmax(1).tolist())
    )
    return (
        f"{len(sentences)} sentences, {len(heads)} slots, a summary ({' ... '.join(summary)}): "
        f"{'; '.join(slots)}."
    )


@described_by(describe_memory_path)
def memory_path(panels: list[dict], sentences: list[str], summary: list[str]) -> Figure:
    """Sentences of an article, the slots that hold them, and how much each slot is read at the
    first and at the last word of a summary.

    panels: {"weights"} of write attention [r, L] and of read attention [r, T].
    summary: how it begins, and how it ends.
    """
    heads, reads = (np.asarray(panel["weights"]) for panel in panels)
    rows = [np.flatnonzero(heads.argmax(1) == j).tolist() for j in range(len(sentences))]
    lines = sum(len(slots) or 0.7 for slots in rows)
    figure, ax = plt.subplots(figsize=(4.2, 0.21 * (lines + 8)), layout="none")
    figure.subplots_adjust(0, 0, 1, 1)
    small: Any = {"fontsize": SIZE - 2, "va": "center"}
    y = 0.0
    for j, slots in enumerate(rows):
        ax.text(
            0,
            y,
            f"{j + 1}  {sentences[j]}" if slots else f"{j + 1}",
            color="black" if slots else "0.55",
            **small,
        )
        if not slots:
            ax.plot([4, 44], [y, y], color="0.88", linewidth=4)
        for place, k in enumerate(slots or [-1]):
            if k >= 0:
                arrow = {"arrowstyle": "->", "color": "tab:blue"}
                ax.annotate("", (54, y), (47, y - place), arrowprops=arrow)
                box = {"facecolor": CHOSEN, "edgecolor": "none", "pad": 1.5}
                ax.text(60, y, f"slot {k + 1}", ha="center", bbox=box, **small)
                for share, colour, up in (
                    (reads[k, 0], "tab:blue", -0.22),
                    (reads[k, -1], "tab:orange", 0.22),
                ):
                    ax.barh(y + up, 50 * share, left=68, height=0.4, color=colour)
                    ax.text(
                        69 + 50 * share,
                        y + up,
                        f"{share:.0%}",
                        fontsize=SIZE - 4,
                        va="center",
                        color=colour,
                    )
            y += 1 if slots else 0.7
    for x, title in ((0, "the article"), (53, "memory"), (68, "read: first, last word")):
        ax.text(x, -1.3, title, weight="bold", **small)
    ax.plot([2, 2], [y - 0.3, y + 1.3], color="0.4", linestyle="--", linewidth=1)
    ax.text(4, y + 0.4, "attention to all words, copying", color="0.4", **small)
    ax.text(0, y + 1.9, "the summary", weight="bold", **small)
    ax.text(0, y + 3.0, f"{summary[0]} ...", color="tab:blue", **small)
    ax.text(0, y + 4.0, f"... {summary[1]}", color="tab:orange", **small)
    ax.set(xlim=(-1, 100), ylim=(y + 4.8, -2.2))
    ax.axis("off")
    return figure


@described_by(describe_beam_tree)
def beam_tree(columns: list[list[dict]], steps: str = "step") -> Figure:
    """Hypotheses of a beam search, a column for each step, the first one for the empty hypothesis.

    columns: of nodes {"word", "value"}, with "parent", the place of the node before it in its
    column, and "beam":
        whether the search goes on with it, which is drawn dark.
    """
    height = max(map(len, columns))
    rows = [[(n + 0.5) * height / len(column) for n in range(len(column))] for column in columns]
    figure, ax = plt.subplots(figsize=(2.0 * len(columns), 0.7 + 0.55 * height))
    for x, column in enumerate(columns):
        for node, y in zip(column, rows[x], strict=True):
            dark = node["beam"]
            if x:
                ends = [x - 1, x], [rows[x - 1][node["parent"]], y]
                ax.plot(
                    *ends,
                    color="tab:blue" if dark else PALE,
                    linewidth=2 if dark else 0.8,
                    zorder=1,
                )
            look = {"boxstyle": "round", "facecolor": CHOSEN if dark else "white"}
            look |= {
                "edgecolor": "tab:blue" if dark else PALE,
                "linestyle": "solid" if dark else "dashed",
            }
            text = f"{node['word']}  {node['value']:.2f}"
            ax.text(
                x,
                y,
                text,
                ha="center",
                va="center",
                bbox=look,
                color="black" if dark else "#5f5f5f",
                zorder=2,
            )
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(height, 0), xlabel=steps, yticks=[])
    ax.set_xticks(range(len(columns)))
    ax.spines["left"].set_visible(False)
    return figure


def print_redrawn(folder: Path | None = None, /) -> None:
    """Draw every figure of a folder again, by default of figures/."""
    print(*redraw(folder or project_root() / "figures"), sep="\n")


main = partial(run_command, "companion.pages.figures", __doc__, print_redrawn)

if __name__ == "__main__":
    main()
