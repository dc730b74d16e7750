"""The pictures of the models, drawn by hand in `companion/pages/models` and shown on pages.

A picture is an SVG file whose look is in `models.css`. Each part (a box or an arrow) is a group that names the
equations which compute it: data-equations="8 9 10". Pages and live pages highlight the parts of an equation by it.
"""

import base64
import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lib.system.errors import one_of

FOLDER = Path(__file__).with_name("models")
PICTURES = tuple(sorted(path.stem for path in FOLDER.glob("*.svg")))
LEGEND = 34  # pixels at the lower edge, which a small picture lacks
SMALL = 0.7  # of the size, for a reminder
# A reminder has the names of its boxes, and the numbers of the highlighted equations.
REMINDER = """
.model .shape, .model .symbol, .model .legend, .model .frame text { display: none; }
.model .name, .model .label { font-size: 14px; }
"""


def image_html(kind: str, picture: bytes, alt: str, attributes: str = "") -> str:
    """Write an image that needs no file beside the page."""
    source, alt = f"data:image/{kind};base64,{base64.b64encode(picture).decode()}", html.escape(alt, quote=True)
    return f'<img src="{source}" alt="{alt}"{attributes} style="max-width: 100%">'


@dataclass(frozen=True)
class ShownModel:
    """A picture as the result of a cell: an image that needs no file beside it, or its description."""

    image: str  # SVG
    alt: str

    def _repr_html_(self) -> str:
        return image_html("svg+xml", self.image.encode(), self.alt)

    def __repr__(self) -> str:
        return self.alt


def read_picture(name: str) -> str:
    """Read the <svg> element of a model's picture. Raises ValueError for a model that has none."""
    text = (FOLDER / f"{one_of(name, PICTURES, 'model')}.svg").read_text(encoding="utf-8")
    return text[text.index("<svg") :]


def show_model(name: str, equations: Iterable[int] = ()) -> ShownModel:
    """Show the picture of a model; with equations as a small reminder in which their parts are highlighted.

    Raises ValueError for a model or an equation that is not there.
    """
    image, style = read_picture(name), (FOLDER / "models.css").read_text(encoding="utf-8")
    alt = html.unescape(" ".join(re.findall("<desc>(.*?)</desc>", image, re.DOTALL)[0].split()))
    equations = set(equations)
    if equations:
        groups = re.findall(r'<g [^>]*data-equations="([^"]*)"[^>]*>(?:\s*<title>(.*?)</title>)?', image)
        lit = [(title, set(map(int, numbers.split())) & equations) for numbers, title in groups]
        if missing := equations.difference(*(found for _, found in lit)) - {0}:
            raise ValueError(f"the picture of {name} has no equation {min(missing)}")
        alt = f"{name}, highlighted: {', '.join(html.unescape(title) for title, found in lit if title and found)}."
        chosen = ", ".join(f'[data-equations~="{number}"]' for number in sorted(equations))
        style += REMINDER + f".model [data-equations]:not({chosen}) {{ opacity: 0.25; }}\n"
        style += f".model [data-equations]:not({chosen}) .label {{ display: none; }}\n"
        image = re.sub(r'viewBox="0 0 (\S+) (\S+)" width="\S+" height="\S+"', _shrink, image, count=1)
    return ShownModel(image.replace("<defs>", f"<style>\n{style}</style>\n<defs>", 1), alt)


def _shrink(size: re.Match) -> str:
    width, height = float(size[1]), float(size[2]) - LEGEND
    return f'viewBox="0 0 {width:g} {height:g}" width="{SMALL * width:g}" height="{SMALL * height:g}"'
