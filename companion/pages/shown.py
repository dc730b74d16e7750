"""Results that a page shows below its cells: figures with number, caption and description, tables
without line breaks in numbers, passages of text that wrap between words."""

import html
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.core.getipython import get_ipython

from companion.pages.diagrams import image_html
from companion.pages.figures import SHARP, Plot, draw, rounded
from lib.system.files import work_folder
from lib.system.fingerprints import digest


@dataclass(frozen=True)
class ShownFigure:
    """A figure as the result of a cell: a PNG with its caption, or its description where there are
    no pictures."""

    picture: bytes
    alt: str
    caption: str

    def _repr_html_(self) -> str:
        width = int.from_bytes(self.picture[16:20], "big") // SHARP  # a PNG begins with its size
        image = image_html("png", self.picture, self.alt, f' width="{width}"')
        text = re.sub(r"^Figure \d+\.", r"<b>\g<0></b>", html.escape(self.caption))
        caption = f'<figcaption style="max-width: 56rem">{text}</figcaption>'
        return f'<figure style="margin: 0.5rem 0">{image}{caption}</figure>'

    def __repr__(self) -> str:
        return f"{self.caption} [{self.alt}]"


def figures_folder() -> Path:
    """Return the folder of a page's figures: `figures` in the `work_folder`, or that of the
    environment variable COMPANION_FIGURES. Only `make notebooks` sets it to the committed
    `figures`."""
    return Path(os.environ.get("COMPANION_FIGURES") or work_folder() / "figures")


class PageFigures:
    """The figures of a page, numbered in the order in which they are first shown.

    folder: where those with a name are kept (`companion.pages.figures.draw`).
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._numbers: dict[str, int] = {}

    def show(self, plot: Plot, caption: str, name: str = "", **data) -> ShownFigure:
        """Show a plot of `companion.pages.figures` with its caption; save it if it has a name."""
        number = self._numbers.setdefault(name or caption, len(self._numbers) + 1)
        data = rounded(data)
        drawn = draw(plot, name, self.folder, caption, **data) if name else plot.picture(data)
        return ShownFigure(drawn, plot.describe(**data), f"Figure {number}. {caption}")


@dataclass(frozen=True)
class Prediction:
    """A question with choices. Its answer is folded, and so are figures and tables that show it,
    until the reader has chosen. Where a viewer takes out buttons, the fold is opened by hand."""

    question: str
    choices: Sequence[str]
    answer: str
    shown: Sequence[Any] = ()  # with `_repr_html_`: tables as `table_html`

    def _repr_html_(self) -> str:
        name = f"predict-{digest([self.question, list(self.choices)], 8)}"
        opens = "this.closest('.predict').querySelector('details').open = true"
        choices = "".join(
            f'<li><label><input type="radio" name="{name}" onchange="{opens}"> '
            f"{html.escape(choice)}</label></li>"
            for choice in self.choices
        )
        parts = (
            table_html(x) if isinstance(x, pd.DataFrame) else x._repr_html_() for x in self.shown
        )
        return (
            f'<div class="predict"><p><b>Predict.</b> {html.escape(self.question)}</p>'
            f'<ul style="list-style-type: none">{choices}</ul>'
            f"<details><summary>Choose one, then open the answer</summary>{''.join(parts)}"
            f"<p>{html.escape(self.answer)}</p></details></div>"
        )

    def __repr__(self) -> str:
        return "\n".join(
            [f"Predict. {self.question}", *(f"  ○ {choice}" for choice in self.choices)]
        )


@dataclass(frozen=True)
class Passages:
    """Texts with a name before each, wrapped between words."""

    rows: Sequence[tuple[str, str]]

    def _repr_html_(self) -> str:
        left = 'style="text-align: left; vertical-align: top; white-space: normal"'
        rows = (
            f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(text)}</td></tr>"
            for name, text in self.rows
        )
        return f'<table class="dataframe">{"".join(rows)}</table>'

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(f"{name}: {text}", 100) for name, text in self.rows)


def clip(text: str, words: int = 45) -> str:
    """Return the first words of a text."""
    parts = text.split()
    return " ".join(parts[:words]) + (" ..." if len(parts) > words else "")


UNIT = r"(?<=\d) (?:ms|s|h|GB|%)(?!\w)"  # behind a number
# of a cell, without line breaks
PIECE = re.compile(rf"\[[+\-−\d., ]+\]|p (?:&lt; )?(?=\d)|{UNIT}|\d+(?: / \d+)+%")
# of a row: not squeezed into a column of single words
LONG_NAME = re.compile(r"(?<=<tr>)(\s*)<th>(?=[^<]{16})")


def table_html(frame: pd.DataFrame) -> str:
    """A table as HTML: no line breaks inside an interval or a number with its unit, and texts begin
    at the left."""

    def whole(cell: re.Match) -> str:
        text = PIECE.sub(lambda piece: piece[0].replace(" ", "&nbsp;"), cell[1])
        return (
            f'<td style="text-align: left">{text}</td>'
            if _is_text(html.unescape(cell[1]))
            else f"<td>{text}</td>"
        )

    table = frame.to_html(border=0, max_cols=None, na_rep="", max_rows=60, notebook=True)
    return LONG_NAME.sub(
        r'\1<th style="min-width: 9rem">', re.sub(r"<td>([^<]*)</td>", whole, table)
    )


def _is_text(cell: str) -> bool:
    """Return whether a cell is a text, not a number with its unit, an interval, "p < 0.01" or
    empty."""
    return bool(re.search("[A-Za-z]{2}", re.sub(UNIT, "", cell))) or bool(
        cell.strip() and not re.search(r"\d", cell)
    )


def show_tables() -> None:
    """Show every DataFrame at the end of a notebook's cell as `table_html`; texts in it are never
    cut."""
    pd.set_option("display.max_colwidth", None)
    if (shell := get_ipython()) and shell.display_formatter:
        shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, table_html)  # type: ignore[index]
