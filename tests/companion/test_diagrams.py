"""The pictures of the models, and the equations that their parts name."""

import base64
import re
from xml.etree import ElementTree

import pytest

from companion.pages.diagrams import FOLDER, PICTURES, show_model
from lib.papers import PAPERS
from lib.system.files import project_root

SVG = "{http://www.w3.org/2000/svg}"
PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (project_root() / "notebooks").glob("*.py")
}
KINDS = {"text", "states", "memory", "attention", "output"}


def counted(text):
    """The numbers in a text, "8 to 10" and "(8) to (10)" being three."""
    found = set()
    for first, last in re.findall(r"\(?\b[A-Z]?(\d+)\b\)?(?: to \(?[A-Z]?(\d+)\)?)?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def numbered(page):
    """The equations of a page's source, in headings like "## (8) to (10) Writing" or tagged; not
    those in folds."""
    page = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    headings = re.findall(r"^#+ ((?:\(\d+\)(?:, | and | to )?)+)", page, re.MULTILINE)
    return set().union(*map(counted, headings), map(int, re.findall(r"\\tag\{(\d+)\}", page)))


def parts_of(name):
    """(equations, title) of each part of a picture; an arrow has no title."""
    tree = ElementTree.fromstring(show_model(name).image)
    groups = [group for group in tree.iter(f"{SVG}g") if "data-equations" in group.attrib]
    return [
        ({*map(int, g.get("data-equations").split())}, g.findtext(f"{SVG}title", ""))
        for g in groups
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_whole(name):
    """It loads nothing, keeps inside its frame, and its classes are those of the style sheet."""
    image = show_model(name).image
    tree = ElementTree.fromstring(image)
    _, _, width, height = map(float, tree.get("viewBox").split())
    for rectangle in tree.iter(f"{SVG}rect"):
        left, top, *size = (float(rectangle.get(side, 0)) for side in ("x", "y", "width", "height"))
        assert 0 <= left <= left + size[0] <= width and 0 <= top <= top + size[1] <= height
    classes = {part for element in tree.iter() for part in element.get("class", "").split()}
    styles = (FOLDER / "models.css").read_text(encoding="utf-8")
    assert classes - {"shape", "label", "legend"} <= set(re.findall(r"\.([a-z]+)", styles))
    assert (
        (classes >= KINDS and "href" not in image) if name == "mem2mem" else ">memory<" not in image
    )


@pytest.mark.parametrize("name", [*PAPERS, "start_here"])
def test_every_equation_of_the_page_is_in_its_picture(name):
    lit = set().union(*(equations for equations, _ in parts_of(name)))
    page = numbered(PAGES[name])
    assert len(lit) > 8 and (page <= lit or (name == "start_here" and lit <= page))
    assert counted(show_model(name).alt) <= lit, (
        "the picture in words has the equations of the picture"
    )


def test_a_picture_is_shown_without_a_file():
    shown = show_model("mem2mem")
    html = shown._repr_html_()
    image = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    assert image == shown.image and image.startswith("<svg") and 'alt="Mem2Mem. The encoder' in html
    with pytest.raises(ValueError, match="model"):
        show_model("nothing")
