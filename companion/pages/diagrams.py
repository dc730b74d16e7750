"""The pictures of the models, drawn by hand in `companion/pages/models` and shown on pages.

A picture is an SVG file; `models.css` has its styles. Each part (a box or an arrow) is a group that
names the equations which compute it: data-equations="8 9 10". Live pages highlight the parts of an
equation by it.
"""

import base64
import html
import re
from dataclasses import dataclass
from pathlib import Path

from lib.system.errors import one_of

FOLDER = Path(__file__).with_name("models")
PICTURES = tuple(sorted(path.stem for path in FOLDER.glob("*.svg")))


def image_html(kind: str, picture: bytes, alt: str, attributes: str = "") -> str:
    """Write an image that needs no file beside the page."""
    source, alt = (
        f"data:image/{kind};base64,{base64.b64encode(picture).decode()}",
        html.escape(alt, quote=True),
    )
    return f'<img src="{source}" alt="{alt}"{attributes} style="max-width: 100%">'


@dataclass(frozen=True)
class ShownModel:
    """A picture as the result of a cell: an image that needs no file beside it, or its
    description."""

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


def show_model(name: str) -> ShownModel:
    """Show the picture of a model. Raises ValueError for a model that has none."""
    image, style = read_picture(name), (FOLDER / "models.css").read_text(encoding="utf-8")
    alt = html.unescape(" ".join(re.findall("<desc>(.*?)</desc>", image, re.DOTALL)[0].split()))
    return ShownModel(image.replace("<defs>", f"<style>\n{style}</style>\n<defs>", 1), alt)
