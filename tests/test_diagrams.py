"""The pictures of the models: whole, legible, and in step with the equations of the pages."""

import base64
import re
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from lib.diagrams import COLOURS, draw_models, model_picture, show_model, svg
from lib.papers import PAPERS
from lib.papers.pictures import PICTURES
from lib.papers.pictures.picture import KINDS, Arrow, Box, ModelPicture, equation_numbers
from lib.storage import project_root


def counted(text):
    """The numbers in a text, "8 to 10" and "(8) to (10)" being three."""
    found = set()
    for first, last in re.findall(r"\(?\b(\d+)\b\)?(?: to \(?(\d+)\)?)?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def numbered(page):
    """The equations of a page's source: in a heading like "## (8) to (10) Writing", or tagged; not those of other
    systems, which are folded."""
    page = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    headings = re.findall(r"^#+ ((?:\(\d+\)(?:, | and | to )?)+)", page, re.MULTILINE)
    return set().union(*map(counted, headings), map(int, re.findall(r"\\tag\{(\d+)\}", page)))


def test_equations_of_a_page_are_found():
    page = "# 2. A task\n## (2) and (4) The\n## (1) to (3), (7) A\ntext (9)\n$$x\\tag{12}$$"
    assert numbered(page + "<details>$$x\\tag{13}$$</details>") == {1, 2, 3, 4, 7, 12}


def test_every_paper_has_a_picture():
    assert list(PICTURES) == list(PAPERS)


@pytest.mark.parametrize("name", PICTURES)
def test_every_equation_of_the_page_is_in_its_picture_or_beside_it(name):
    picture = PICTURES[name]
    page = numbered((project_root() / "notebooks" / f"{name}.py").read_text(encoding="utf-8"))
    assert len(page) > 10
    assert picture.drawn | set(picture.beside) == page
    assert counted(picture.alt) == picture.drawn, "the picture in words has the equations of the picture"


# ----------------------------------------------------------------------------------------------------- legible


@pytest.fixture(scope="module", params=[(name, small) for name in PICTURES for small in (False, True)], ids=str)
def parts(request):
    """Texts, boxes and frames as `Bbox`, and lines as paths, all in pixels; the outline of the figure."""
    figure = model_picture(*request.param[:1], small=request.param[1])
    figure.draw_without_rendering()
    (axes,) = figure.axes
    texts = {text: text.get_window_extent() for text in axes.texts if text.get_text()}
    shapes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    boxes = [patch.get_window_extent() for patch in shapes if patch.get_zorder() == 3]
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    lines = [axes.transData.transform_path(_drawn(patch.get_path())) for patch in arrows]
    assert len(boxes) == len(PICTURES[request.param[0]].boxes) and len(lines) == len(
        PICTURES[request.param[0]].arrows
    )
    return texts, boxes, lines, figure.bbox


def _drawn(path):
    """Without the places of CLOSEPOLY, which are none."""
    kept = path.codes != Path.CLOSEPOLY
    return Path(path.vertices[kept], path.codes[kept])


def smaller(box, by):
    return Bbox.from_extents(box.x0 + by, box.y0 + by, box.x1 - by, box.y1 - by)


def test_no_text_is_cut(parts):
    texts, boxes, _, figure = parts
    for text, place in texts.items():
        assert figure.x0 + 2 <= place.x0 and place.x1 <= figure.x1 - 2, text
        assert figure.y0 + 2 <= place.y0 and place.y1 <= figure.y1 - 2, text
        for box in boxes:
            inside = Bbox.intersection(smaller(box, 1.5), place)
            assert not place.overlaps(box) or np.allclose(inside, place), f"{text} crosses the edge of a box"


def test_no_texts_or_boxes_overlap(parts):
    texts, boxes, _, _ = parts
    for (a, place), (b, other) in combinations(texts.items(), 2):
        assert not smaller(place, 0.5).overlaps(smaller(other, 0.5)), (a, b)
    for box, other in combinations(boxes, 2):
        assert not box.overlaps(other)


def test_no_line_goes_through_a_text_a_box_or_a_line(parts):
    texts, boxes, lines, _ = parts
    for line in lines:
        for text, place in texts.items():
            assert not line.intersects_bbox(place, filled=False), text
        for box in boxes:
            assert not line.intersects_bbox(smaller(box, 2), filled=False)
    for line, other in combinations(lines, 2):
        assert not line.intersects_path(other, filled=False)


def test_letters_are_large_enough(parts):
    texts, *_ = parts
    assert min(text.get_fontsize() for text in texts) * 96 / 72 > 9, "CSS pixels"


# The matrices of Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
COLOUR_BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    "none": np.eye(3),
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(linear):
    """CIE L*a*b* of linear RGB."""
    x, y, z = np.cbrt(TO_XYZ @ linear / np.array([0.9505, 1, 1.089]))  # none is so dark that the root does not hold
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", COLOUR_BLIND)
def test_colours_stay_apart_for_colour_blind_readers(sight):
    assert tuple(COLOURS) == KINDS
    rgb = {kind: np.array(to_rgb(colour)) for kind, colour in COLOURS.items()}
    linear = {kind: np.where(c > 0.04045, ((c + 0.055) / 1.055) ** 2.4, c / 12.92) for kind, c in rgb.items()}
    seen = {kind: lab(np.clip(COLOUR_BLIND[sight] @ c, 0, 1)) for kind, c in linear.items()}
    for kind, other in combinations(seen, 2):
        assert np.linalg.norm(seen[kind] - seen[other]) > 20, (kind, other)


# --------------------------------------------------------------------------------------------------------- lit


def test_an_equation_lights_its_arrows_and_their_ends():
    boxes, arrows = PICTURES["mem2mem"].lit({7})
    assert boxes == {"decoder memory", "decoder state", "read attention", "state after reading"}
    assert len(arrows) == 4 and all(7 in arrow.equations for arrow in arrows)


def test_an_equation_beside_the_picture_lights_what_it_speaks_of():
    for picture in PICTURES.values():
        for number, names in picture.beside.items():
            assert picture.lit({number}) == (set(names), set())


def test_named_boxes_light_the_arrows_between_them():
    boxes, arrows = PICTURES["mem2mem"].lit({"words", "word states", "next word"})
    assert boxes == {"words", "word states", "next word"}
    assert [(arrow.source, arrow.target) for arrow in arrows] == [("words", "word states")]


@pytest.mark.parametrize("small", [False, True])
def test_what_is_not_lit_is_pale(small):
    """And says nothing in a small picture."""
    picture = PICTURES["windowed"]
    boxes, arrows = picture.lit({13})
    (axes,) = model_picture("windowed", {13}, small=small).axes
    shapes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch) and patch.get_zorder() == 3]
    full = {
        name: np.allclose(shape.get_edgecolor()[:3], to_rgb(COLOURS[box.kind]))
        for (name, box), shape in zip(picture.boxes.items(), shapes)
    }
    assert {name for name, at_full in full.items() if at_full} == boxes == {"word before", "window"}
    lines = [patch.get_edgecolor() for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert len(set(lines)) == 2 and lines.count(lines[-1]) == len(arrows), "the lit ones are drawn last"
    dark = {text.get_text() for text in axes.texts if sum(to_rgb(text.get_color())) < 1}
    assert {"(13)", "window"} <= dark and not {"switch", "(14)"} & dark
    assert ("switch" in [text.get_text() for text in axes.texts]) is not small


def test_a_part_or_model_that_is_not_there():
    with pytest.raises(ValueError, match=r"Windowed attention: no part 15; there are equations \(1–14\) and text, "):
        model_picture("windowed", {13, 15})
    with pytest.raises(ValueError, match=r"unknown model 'window', did you mean 'windowed'\?"):
        model_picture("window")


def test_a_description_is_checked():
    boxes = {"words": Box("text", 0, 0), "states": Box("states", 1, 0)}
    line = Arrow("words", "states", (1,))
    with pytest.raises(ValueError, match="T: no box 'word'; there are words, states"):
        ModelPicture("T", "", boxes, (Arrow("word", "states"),))
    with pytest.raises(ValueError, match="T: no box 'loss'"):
        ModelPicture("T", "", boxes, (line,), beside={2: ("loss",)})
    with pytest.raises(ValueError, match="T: equation 1 is both drawn and beside the picture"):
        ModelPicture("T", "", boxes, (line,), beside={1: ("words",)})
    with pytest.raises(ValueError, match=r"T, words: the kind must be one of text, states, .*, not 'txt'"):
        ModelPicture("T", "", {"words": Box("txt", 0, 0)}, ())
    with pytest.raises(ValueError, match="T: a side is one of left, right, top, bottom, not 'up'"):
        ModelPicture("T", "", boxes, (Arrow("words", "states", leaves=("up", 0.5)),))


def test_numbers_in_a_row_are_joined():
    assert [equation_numbers(n) for n in ((), (7,), (4, 2), (8, 10, 9), (7, 1, 2, 3))] == [
        "",
        "(7)",
        "(2, 4)",
        "(8–10)",
        "(1–3, 7)",
    ]


# ------------------------------------------------------------------------------------------- files, and on a page


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    assert draw_models(folder) == [f"model_{name}.svg" for name in PICTURES]
    return folder


def test_the_committed_pictures_are_these(drawn):
    """The letters of a file depend on matplotlib's version; what they say does not."""
    for path in drawn.iterdir():
        kept = (project_root() / "figures" / path.name).read_text()
        texts = [re.findall(r"<!-- (.*) -->", text) for text in (path.read_text(), kept)]
        assert texts[0] == texts[1] and "attention" in texts[0], "run: make figures"
        assert len(kept) < 120_000 and "date" not in kept


def test_the_same_picture_is_the_same_file(drawn):
    name = "windowed"
    assert svg(model_picture(name)) == (drawn / f"model_{name}.svg").read_text()


class Images(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_a_picture_on_a_page_has_its_words_with_it():
    whole, part = show_model("mem2mem"), show_model("mem2mem", [6])
    for shown, alt, widths in (
        (whole, PICTURES["mem2mem"].alt, (900, 960)),
        (part, "Mem2Mem, lit: write attention.", (600, 700)),
    ):
        ((tag, found),) = Images(shown._repr_html_()).found
        assert (tag, found["alt"], repr(shown)) == ("img", alt, alt)
        image = ElementTree.fromstring(base64.b64decode(found["src"].removeprefix("data:image/svg+xml;base64,")))
        assert image.tag == "{http://www.w3.org/2000/svg}svg"
        assert widths[0] < float(image.get("width").removesuffix("pt")) * 96 / 72 < widths[1], "CSS pixels"
    assert len(part.image) < 40_000
