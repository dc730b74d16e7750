"""The idea of each of the four papers, drawn as one picture of four panels, in the colours of the models' pictures.

    python -m companion.pages.four_ideas           # draw four_ideas.svg into figures/
    python -m companion.pages.four_ideas FOLDER

Lengths are CSS pixels. A panel is drawn in places of its own, from its upper left corner.
"""

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from companion.pages.diagrams import COLOURS, DASHES, INK, Point, shade, svg
from companion.pages.figures import drawing_command
from lib.system.files import write_whole

WIDTH, HEIGHT, GAP = 440, 252, 12  # of a panel; around and between panels
CELL, HIGH = 13.6, 22  # a word without letters
LETTERS = 12.5
ALT = (
    "Four panels: a window slides over a text; a headline copies words; "
    "memory heads gather sentences into slots; paragraphs attend to each other"
)


class Panel:
    """One quarter of the picture."""

    def __init__(self, axes: Axes, left: float, top: float) -> None:
        self.axes, self.left, self.top = axes, left, top
        self.rounded(0, 0, WIDTH, HEIGHT, facecolor="#f5f5f5", edgecolor="none", zorder=0)

    def write(self, x: float, y: float, text: str, size: float = LETTERS, **how) -> None:
        style = {"family": "DejaVu Sans", "color": INK, "ha": "left", "va": "center_baseline", "zorder": 6, **how}
        self.axes.text(self.left + x, self.top + y, text, fontsize=0.75 * size, **style)

    def rounded(self, x: float, y: float, width: float, height: float, **how) -> None:
        corner = (self.left + x, self.top + y)
        self.axes.add_patch(FancyBboxPatch(corner, width, height, "round,pad=0,rounding_size=6", **how))

    def cells(self, x: float, y: float, count: int, kind: str, width: float = CELL) -> list[Point]:
        """A row of cells; returns the middle of each."""
        return [self.cell(x + width * n, y, width, kind) for n in range(count)]

    def cell(self, x: float, y: float, width: float, kind: str, text: str = "") -> Point:
        look = {**shade(kind), "linewidth": 0.9, "zorder": 3}
        self.axes.add_patch(Rectangle((self.left + x, self.top + y), width, HIGH, **look))
        self.write(x + width / 2, y + HIGH / 2, text, ha="center")
        return x + width / 2, y + HIGH / 2

    def arrow(self, start: Point, end: Point, colour: str = INK, width: float = 1.0, **how) -> None:
        ends = [(self.left + x, self.top + y) for x, y in (start, end)]
        style = {"arrowstyle": "-|>,head_length=5,head_width=2.6", "shrinkA": 0, "shrinkB": 0, "zorder": 4, **how}
        self.axes.add_patch(
            FancyArrowPatch(*ends, mutation_scale=0.9, color=colour, linewidth=width, joinstyle="round", **style)
        )

    def texts(self, title: str, paper: str, *says: str) -> None:
        self.write(18, 25, title, 15, weight="bold")
        self.write(WIDTH - 18, 25, paper, color="#707070", style="italic", ha="right")
        for n, line in enumerate(says):
            self.write(18, HEIGHT - 36 + 19 * n, line)


def sliding_window(panel: Panel) -> None:
    panel.texts(
        "A window that slides",
        "Windowed attention, 2019",
        "The model sees one window of the text. It writes the",
        "symbol → when the window is to move on.",
    )
    left, top = 18, 88
    panel.write(left, 64, "text")
    panel.cells(left, top, 28, "text")
    for first, line in ((4, "solid"), (11, DASHES), (18, DASHES)):
        look = {"facecolor": "none", "edgecolor": COLOURS["memory"], "linewidth": 1.8, "zorder": 5}
        panel.rounded(left + CELL * first, top - 5, 8 * CELL, HIGH + 10, linestyle=line, **look)
    for first in (8, 15):
        start, end = (left + CELL * first, top - 8), (left + CELL * (first + 7), top - 8)
        panel.arrow(start, end, COLOURS["memory"], connectionstyle="arc3,rad=-0.25")
    written = 158
    panel.write(left, written + HIGH / 2, "summary")
    for n, word in enumerate(("", "", "", "→", "", "", "→", "")):
        panel.cell(left + 78 + 26 * n, written, 26, "memory" if word else "output", word)
    panel.arrow((left + 8 * CELL, top + HIGH + 6), (left + 78 + 39, written - 3), COLOURS["attention"])


def memory_heads(panel: Panel) -> None:
    panel.texts(
        "Memory heads",
        "Mem2Mem, 2020",
        "Each head gathers from the sentences what one slot",
        "holds. The decoder reads the slots and writes to them.",
    )
    left, top = 104, 50
    panel.write(18, top + HIGH / 2, "sentences")
    sentences = panel.cells(left, top, 12, "text", 26)
    panel.write(18, 114 + HIGH / 2, "slots")
    slots = [panel.cell(left + 12 + 78 * n, 114, 52, "memory") for n in range(4)]
    for slot, (x, y) in enumerate(slots):
        for sentence, (a, b) in enumerate(sentences):
            strong = sentence == (0, 4, 7, 11)[slot]
            if strong or abs(a - x) < 60:
                width, paleness = (2.6, 1.0) if strong else (0.8, 0.35)
                ends = (a, b + HIGH / 2 + 2), (x, y - HIGH / 2 - 2)
                panel.arrow(*ends, COLOURS["attention"], width, arrowstyle="-", alpha=paleness)
    panel.write(18, 172 + HIGH / 2, "summary")
    panel.cells(left, 172, 12, "output", 26)
    for x, y in slots:
        for shift, style in ((-7, "-|>"), (7, "<|-")):
            style = f"{style},head_length=5,head_width=2.6"
            panel.arrow((x + shift, y + HIGH / 2 + 3), (x + shift, 169), arrowstyle=style)


def paragraphs(panel: Panel) -> None:
    panel.texts(
        "Paragraphs",
        "Hierarchical transformers, 2019",
        "Words attend to the words of their own paragraph.",
        "A vector for each lets paragraphs attend to each other.",
    )
    left, vectors = 18, []
    for row, top in enumerate((56, 104, 152)):
        words = panel.cells(left, top, 12, "text")
        for first, last in ((2, 7), *((1, 4), (4, 9), (9, 11))[row:]):
            (a, y), (b, _) = words[first], words[last]
            ends = (a, y - HIGH / 2), (b, y - HIGH / 2)
            panel.arrow(*ends, COLOURS["attention"], arrowstyle="-", connectionstyle="arc3,rad=-0.3")
        x, y = left + 12 * CELL + 42, top + HIGH / 2
        panel.arrow((left + 12 * CELL + 3, y), (x - 14, y))
        panel.axes.add_patch(Circle((panel.left + x, panel.top + y), 12, **shade("states"), zorder=3))
        vectors.append((x, y))
    (x, first), (_, second), (_, third) = vectors
    for start, end, bend in ((first, second, 0.0), (second, third, 0.0), (first, third, -0.45)):
        ends = ((x, start + 13), (x, end - 13)) if not bend else ((x + 12, start + 4), (x + 12, end - 4))
        look = {"arrowstyle": "<|-|>,head_length=5,head_width=2.6", "connectionstyle": f"arc3,rad={bend}"}
        panel.arrow(*ends, COLOURS["attention"], 1.4, **look)
    panel.arrow((x + 42, second), (x + 70, second))
    panel.write(x + 76, second - 24, "summary")
    panel.cells(x + 76, second - HIGH / 2, 5, "output")


def copied_words(panel: Panel) -> None:
    panel.texts(
        "Copied words",
        "Read-Again, 2016",
        "The encoder reads twice. The decoder has few words of",
        "its own and copies all others from the text.",
    )
    middles, x, top = {}, 18.0, 92
    for word in ("norbalt", "agreed", "to", "acquire", "tessera", "copper"):
        width = 20 + 7.4 * len(word)
        middles[word] = panel.cell(x, top, width, "text", word)
        x += width
    for y, name in ((54, "first read"), (76, "second read")):
        panel.write(18, y, name)
        panel.arrow((110, y), (x, y))
    x, written = 118.0, 162
    panel.write(18, written + HIGH / 2, "headline")
    for word, copied in (("norbalt", True), ("to", False), ("buy", False), ("tessera", True)):
        width = 20 + 7.4 * len(word)
        middle = panel.cell(x, written, width, "attention" if copied else "output", word)
        if copied:
            start, end = (middles[word][0], top + HIGH + 3), (middle[0], written - 3)
            panel.arrow(start, end, COLOURS["attention"], 1.8)
        x += width


PANELS: tuple[Callable[[Panel], None], ...] = (sliding_window, copied_words, memory_heads, paragraphs)


def ideas_picture() -> Figure:
    """All panels, two in a row."""
    width, height = 2 * WIDTH + 3 * GAP, 2 * HEIGHT + 3 * GAP
    figure = Figure(figsize=(width / 96, height / 96), dpi=100, facecolor="white")
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for n, draw_panel in enumerate(PANELS):
        draw_panel(Panel(axes, GAP + (n % 2) * (WIDTH + GAP), GAP + (n // 2) * (HEIGHT + GAP)))
    return figure


def draw_ideas(folder: Path) -> list[str]:
    """Write four_ideas.svg into a folder. Returns its name."""
    return [write_whole(folder / "four_ideas.svg", svg(ideas_picture())).name]


def main(arguments: list[str] | None = None) -> None:
    drawing_command("companion.pages.four_ideas", __doc__, draw_ideas, arguments)


if __name__ == "__main__":
    main()
