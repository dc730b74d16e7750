"""The pictures of the models, in one visual language: a colour for each kind of thing, arrows with equation numbers.

    python -m companion.pages.diagrams           # draw model_NAME.svg of every model into figures/, and those of live pages
    python -m companion.pages.diagrams FOLDER

What is drawn is in `companion.pages.pictures`. Lengths are CSS pixels of a whole picture.
"""

import base64
import html
import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path as Line
from matplotlib.text import Text

from companion.live.page import LIVE
from companion.pages.figures import drawing_command
from companion.pages.pictures import PICTURES
from companion.pages.pictures.picture import Arrow, Box, Frame, ModelPicture, Part, equation_numbers
from lib.system.errors import one_of
from lib.system.files import project_root, write_whole

# After Okabe and Ito (2008), the blue a little darker and the purple lighter, so that colour-blind readers can tell
# all five apart. Heat maps of the same things can have them too.
COLOURS = {"text": "#4d4d4d", "states": "#009e73", "memory": "#d55e00", "attention": "#0066a8", "output": "#d486b3"}
INK, GREY, PALE = "#222222", "#767676", "#b0b0b0"
COLUMN, ROW, MARGIN = 154, 104, 12  # from box to box; around the picture
WIDTH, HEIGHT, STRIP = 98, 60, 22  # of a box; height of one that is drawn as words in a row
FRAME, FOOT = 14, 20  # from boxes to the frame around them; below them stands its name
LEGEND = 34
NAME, SYMBOL, LABEL = 11.5, 12.5, 11.0  # of letters
SMALL, LARGER = 0.7, 1.2  # of the size: a small picture, and its letters in it
DASHES = (0, (3, 2))

Point = tuple[float, float]


def model_picture(name: str, lit: Iterable[int | str] | None = None, small: bool = False) -> Figure:
    """The picture of a paper's model, or of one that it is compared with.

    Args:
        lit: equation numbers and names of boxes that stand out of the rest; None: all is as it is.
        small: for a reminder, of less size. Of its texts it has the names, and the equation numbers that are lit.

    Raises ValueError for a model or a part that is not there.
    """
    picture = PICTURES[one_of(name, PICTURES, "model")]
    boxes, arrows = (set(picture.boxes), set(picture.arrows)) if lit is None else picture.lit(lit)
    pen = _pen(picture, small)
    for frame in picture.frames:
        pen.frame(frame)
    for arrow in sorted(picture.arrows, key=arrows.__contains__):  # the lit ones above the pale ones
        pen.arrow(picture.boxes, arrow, arrow in arrows)
    for title, box in picture.boxes.items():
        pen.box(title, box, title in boxes)
    return _finished(pen)


def live_picture(name: str) -> str:
    """The picture as SVG for a live page. The id of each part says which equations light it: p3-1-e7-e8-."""
    picture = PICTURES[one_of(name, PICTURES, "model")]
    pen = _pen(picture, small=False)
    lit = {number: picture.lit([number]) for number in sorted(picture.drawn)}
    for frame in picture.frames:
        pen.frame(frame)
    parts = [partial(pen.arrow, picture.boxes, arrow, True) for arrow in picture.arrows]
    parts += [partial(pen.box, title, box, True) for title, box in picture.boxes.items()]
    for part, (draw, it) in enumerate(zip(parts, (*picture.arrows, *picture.boxes))):
        before = set(pen.axes.get_children())
        draw()
        equations = "".join(f"e{n}-" for n, (boxes, arrows) in lit.items() if it in boxes or it in arrows)
        for number, artist in enumerate(a for a in pen.axes.get_children() if a not in before):
            artist.set_gid(f"p{part}-{number}-{equations}")
    drawn = svg(_finished(pen))
    return drawn[drawn.index("<svg") :]


def _finished(pen: "_Pen") -> Figure:
    if not pen.small:
        pen.legend()
    for artist in pen.axes.get_children():
        artist.set_clip_on(False)
    return pen.figure


def _pen(picture: ModelPicture, small: bool) -> "_Pen":
    columns = 1 + max(box.column + (box.columns - 1) / 2 for box in picture.boxes.values())
    rows = 1 + max(box.row + (box.rows - 1) / 2 for box in picture.boxes.values())
    width, height = 2 * MARGIN + COLUMN * columns, 2 * MARGIN + ROW * rows + (0 if small else LEGEND)
    scale = SMALL if small else 1.0
    size = (scale * width / 96, scale * height / 96)  # 96 pixels an inch
    figure = Figure(figsize=size, dpi=100, facecolor="white")
    figure.set_layout_engine("none")  # whatever the style of the other figures is
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return _Pen(figure, axes, small, scale, picture.letter)


@dataclass(frozen=True)
class _Pen:
    """Draws parts of a picture. Places are in pixels from the upper left corner."""

    figure: Figure
    axes: Axes
    small: bool
    scale: float
    letter: str  # before equation numbers

    def write(self, x: float, y: float, text: str, size: float, colour: str = INK, **how) -> Text:
        size *= LARGER if self.small else 1
        look = {"family": "DejaVu Sans", "math_fontfamily": "cm", "ha": "center", "va": "center_baseline"}
        return self.axes.text(x, y, text, fontsize=0.75 * self.scale * size, color=colour, **{**look, **how})

    def line(self, width: float) -> float:
        """Width of a line, in points."""
        return 0.75 * self.scale * (1.4 * width if self.small else width)

    def frame(self, frame: Frame) -> None:
        left, top = _centre(frame.columns[0], frame.rows[0])
        right, bottom = _centre(frame.columns[1], frame.rows[1])
        left, right = left - WIDTH / 2 - FRAME, right + WIDTH / 2 + FRAME
        top, bottom = top - HEIGHT / 2 - FRAME, bottom + HEIGHT / 2 + FOOT
        self.rounded(left, top, right - left, bottom - top, facecolor="#f5f5f5", edgecolor="none")
        if not self.small:
            self.write(_centre(frame.at, 0)[0], bottom - 9, frame.name, LABEL, "#707070", style="italic")

    def rounded(self, left: float, top: float, width: float, height: float, radius: float = 6, **how) -> None:
        style = f"round,pad=0,rounding_size={radius}"
        self.axes.add_patch(FancyBboxPatch((left, top), width, height, style, **how))

    def box(self, title: str, box: Box, lit: bool) -> None:
        (x, y), (width, height) = _centre(box.column, box.row), _size(box)
        left, top, ink = x - width / 2, y - height / 2, INK if lit else GREY if self.small else PALE
        look = {**shade(box.kind, lit), "linewidth": self.line(1.4), "zorder": 3}
        self.rounded(left, top, width, height, radius=0 if box.mask else 6, **look)
        if box.words:
            self.words_in_a_row(box, left, top, lit)
        if box.mask:
            self.matrix(box, left, top, lit)
        letters = width / (0.64 * NAME * (LARGER if self.small else 1)) / (2 if box.mask else 1)
        texts = textwrap.wrap(title, int(letters), break_long_words=False)
        texts += [box.symbol] if box.symbol and not self.small else []
        for n, text in enumerate(texts):
            size = NAME if text != box.symbol else LABEL if box.mask else SYMBOL
            if box.words:
                self.write(left + (10 + 7 * len(title)) * n, top - 10, text, size, ink, ha="left")
            elif box.mask:
                self.write(left + width - 8, top + 14 + 16 * n, text, size, ink, ha="right", zorder=4)
            else:
                self.write(x, y - 1 + 15 * (n - (len(texts) - 1) / 2), text, size, ink, zorder=4)

    def words_in_a_row(self, box: Box, left: float, top: float, lit: bool) -> None:
        step, colour = _size(box)[0] / box.words, shade(box.kind, lit)["edgecolor"]
        for part in box.parts:
            self.part(part, left + step * part.first, top, step * (part.last - part.first), lit)
        between = left + step * np.arange(1, box.words)
        self.axes.vlines(between, top, top + STRIP, color=colour, linewidth=self.line(0.5), zorder=4)
        for window in box.windows:
            edge, width = shade("memory", lit)["edgecolor"], step * (window.last - window.first)
            look = {"facecolor": "none", "edgecolor": edge, "linewidth": self.line(2), "zorder": 5}
            start = left + step * window.first
            self.rounded(start, top - 4, width, STRIP + 8, linestyle=DASHES if window.dashed else "solid", **look)
            if not self.small:
                self.write(start + width / 2, top - 14, window.says, LABEL, INK if lit else PALE)

    def part(self, part: Part, left: float, top: float, width: float, lit: bool) -> None:
        look = {**shade(part.kind, lit), "linewidth": self.line(1.4), "zorder": 3.5}
        self.axes.add_patch(Rectangle((left, top), width, STRIP, **look))
        if part.says and not self.small:
            self.write(left + width / 2, top + STRIP + 10, part.says, LABEL, INK if lit else PALE)

    def matrix(self, box: Box, left: float, top: float, lit: bool) -> None:
        """Draw cells row by row, those that are seen in the full colour, with thin lines between them."""
        (width, height), colours = _size(box), shade(box.kind, lit)
        down, across = height / len(box.mask), width / len(box.mask[0])
        full = {"facecolor": _whitened(colours["edgecolor"], 0.4), "zorder": 3.2}
        for n, row in enumerate(box.mask):
            runs = [(left + across * seen.start(), across * len(seen[0])) for seen in re.finditer("#+", row)]
            self.axes.broken_barh(runs, (top + down * n, down), **full)
        look = {"color": colours["facecolor"], "linewidth": self.line(0.7), "zorder": 3.3}
        self.axes.hlines(top + down * np.arange(1, len(box.mask)), left, left + width, **look)
        self.axes.vlines(left + across * np.arange(1, len(box.mask[0])), top, top + height, **look)
        edge = {"facecolor": "none", "edgecolor": colours["edgecolor"], "linewidth": self.line(1.4), "zorder": 3.4}
        self.axes.add_patch(Rectangle((left, top), width, height, **edge))

    def arrow(self, boxes: Mapping[str, Box], arrow: Arrow, lit: bool) -> None:
        points = route(boxes, arrow)
        colour = INK if lit else "#d0d0d0"
        codes = [Line.MOVETO] + [Line.LINETO] * (len(points) - 1)
        self.axes.add_patch(
            FancyArrowPatch(
                path=Line(points, codes), arrowstyle="-|>,head_length=5,head_width=2.6",
                mutation_scale=self.line(1.0), color=colour, linewidth=self.line(1.1),
                linestyle=DASHES if arrow.dashed else "solid", joinstyle="round", zorder=2,
            )
        )  # fmt: skip
        if not arrow.plain and (lit or not self.small):
            self.label(points, arrow, INK if lit else PALE)

    def label(self, points: Sequence[Point], arrow: Arrow, ink: str) -> None:
        """Label the middle of the longest part of the line: above it the equations and below it the shape, or both
        right of it."""
        (ax, ay), (bx, by) = max(pairwise(points), key=lambda ends: math.dist(*ends))
        x, y = (ax + bx) / 2, (ay + by) / 2
        texts = [equation_numbers(arrow.equations, self.letter), "" if self.small else arrow.says]
        if ay == by:
            for text, side in zip(texts, (-1, 1)):
                self.write(x, y + side * (13 if self.small else 9), text, LABEL, ink)
        else:
            texts = [text for text in texts if text]
            for n, text in enumerate(texts):
                self.write(x + 6, y + 14 * (n - (len(texts) - 1) / 2), text, LABEL, ink, ha="left")

    def legend(self) -> None:
        x, y = MARGIN + WIDTH / 4, self.axes.get_ylim()[0] - MARGIN - 8
        for kind in COLOURS:
            self.axes.add_patch(Rectangle((x, y - 6), 18, 12, **shade(kind, True)))
            self.write(x + 25, y, kind, LABEL, ha="left")
            x += 46 + 6.5 * len(kind)
        self.write(x + 20, y, "on an arrow: equation, shape of what it makes", LABEL, ha="left")


def _centre(column: float, row: float) -> Point:
    return MARGIN + COLUMN * (column + 0.5), MARGIN + ROW * (row + 0.5)


def _size(box: Box) -> tuple[float, float]:
    return WIDTH + COLUMN * (box.columns - 1), STRIP if box.words else HEIGHT + ROW * (box.rows - 1)


def shade(kind: str, lit: bool = True) -> dict[str, Any]:
    white = (0.84, 0.0) if lit else (0.96, 0.75)
    return dict(zip(("facecolor", "edgecolor"), (_whitened(COLOURS[kind], part) for part in white)))


def _whitened(colour: str, white: float) -> str:
    red, green, blue = (white + (1 - white) * part for part in to_rgb(colour))
    return to_hex((red, green, blue))


def route(boxes: Mapping[str, Box], arrow: Arrow) -> list[Point]:
    """The corners of an arrow, from the edge of one box to the edge of another."""
    (ax, ay), (bx, by) = _port(boxes[arrow.source], *arrow.leaves), _port(boxes[arrow.target], *arrow.enters)
    upright, upright_after = (side in ("top", "bottom") for side, _ in (arrow.leaves, arrow.enters))
    if arrow.leaves[1] is None:
        ax, ay = (bx, ay) if upright else (ax, by)
    if arrow.enters[1] is None:
        bx, by = (ax, by) if upright_after else (bx, ay)
    if upright != upright_after:
        between = [(ax, by) if upright else (bx, ay)]
    elif upright:
        y = _turn(ay, by, arrow)
        between = [(ax, y), (bx, y)] if ax != bx else []
    else:
        x = _turn(ax, bx, arrow)
        between = [(x, ay), (x, by)] if ay != by else []
    return [(ax, ay), *between, (bx, by)]


def _turn(a: float, b: float, arrow: Arrow) -> float:
    """The place where a line turns twice: in the middle, or beyond both ends if they look the same way."""
    if arrow.leaves[0] != arrow.enters[0]:
        return (a + b) / 2
    return max(a, b) + arrow.beyond if arrow.leaves[0] in ("right", "bottom") else min(a, b) - arrow.beyond


def _port(box: Box, side: str, along: float | None) -> Point:
    (x, y), (width, height) = _centre(box.column, box.row), _size(box)
    along = 0.5 if along is None else along
    if side in ("left", "right"):
        return x + (width / 2 if side == "right" else -width / 2), y + (along - 0.5) * height
    return x + (along - 0.5) * width, y + (height / 2 if side == "bottom" else -height / 2)


@dataclass(frozen=True)
class ShownModel:
    """A picture as the result of a cell: an image with its description, or the description where there are none."""

    image: str  # SVG
    alt: str

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.image.encode()).decode()
        alt = html.escape(self.alt, quote=True)
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{alt}" style="max-width: 100%">'

    def __repr__(self) -> str:
        return self.alt


def show_model(name: str, lit: Iterable[int | str] | None = None, small: bool | None = None) -> ShownModel:
    """`model_picture` for a page: an image that needs no file beside it.

    small: by default a picture of which parts are lit.
    """
    lit = None if lit is None else set(lit)
    image = svg(model_picture(name, lit, lit is not None if small is None else small))
    picture = PICTURES[name]
    if lit is None:
        return ShownModel(image, picture.alt)
    boxes, _ = picture.lit(lit)
    return ShownModel(image, f"{picture.title}, lit: {', '.join(box for box in picture.boxes if box in boxes)}.")


@dataclass(frozen=True)
class FoldedModels:
    """Pictures as the result of a cell, seen when a reader opens them."""

    summary: str
    pictures: tuple[ShownModel, ...]

    def _repr_html_(self) -> str:
        shown = "".join(f"<p>{picture._repr_html_()}</p>" for picture in self.pictures)
        return f"<details><summary><b>{html.escape(self.summary)}</b></summary>{shown}</details>"

    def __repr__(self) -> str:
        return "\n\n".join(picture.alt for picture in self.pictures)


def show_folded(summary: str, *names: str) -> FoldedModels:
    """Whole pictures for a page, behind a line to click on."""
    return FoldedModels(summary, tuple(show_model(name) for name in names))


def draw_models(folder: str | Path) -> list[str]:
    """Write model_NAME.svg of every model. Returns the files' names."""
    return [write_whole(Path(folder) / f"model_{name}.svg", svg(model_picture(name))).name for name in PICTURES]


def draw_live(folder: str | Path) -> list[str]:
    """Draw again the NAME.svg (`live_picture`) of each model that has one in a folder. Returns the files' names."""
    paths = [path for name in PICTURES if (path := Path(folder) / f"{name}.svg").exists()]
    return [write_whole(path, live_picture(path.stem)).name for path in paths]


def _draw(folder: Path) -> list[str]:
    """Into the committed figures, those of the live pages too."""
    return draw_models(folder) + (draw_live(LIVE) if folder == project_root() / "figures" else [])


def svg(figure: Figure) -> str:
    """A figure as SVG, letters as outlines and places cut to a hundredth: always the same for the same figure."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "model", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), buffer.getvalue())


def main(arguments: list[str] | None = None) -> None:
    drawing_command("companion.pages.diagrams", __doc__, _draw, arguments)


if __name__ == "__main__":
    main()
