"""The pictures of the models: whole, legible, and in step with the equations of the pages."""

import base64
import re
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from companion.pages.four_ideas import ALT, PANELS, ideas_picture
from companion.pages.pictures import COMPARED, FIRST, MODELS, PICTURES
from companion.pages.pictures.hierarchical_transformer import BLOCK, LOCAL, SOURCE, STRIDE, SUMMARY, WHOLE
from companion.pages.pictures.mem2mem import ABSTRACT, ATTENTION, EXTRACT, INTRODUCTION, PIECES, REST
from companion.pages.pictures.picture import KINDS, Arrow, Box, equation_numbers
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from companion.pages.diagrams import (
    COLOURS,
    GREY,
    PALE,
    draw_models,
    model_picture,
    route,
    show_folded,
    show_model,
    svg,
)
from lib.models.t_dmca import CompressedLayer, LocalLayer, TDMCAConfig
from lib.models.tlm import CausalLayer, TLMConfig
from lib.papers import PAPERS
from lib.system.files import project_root


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
    assert list(MODELS) == list(PAPERS) and set(COMPARED) <= set(PAPERS)
    assert len(PICTURES) == len(MODELS | FIRST) + sum(map(len, COMPARED.values())), "a name is used once"


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_a_picture_names_what_is_there(picture):
    ends = {end for arrow in picture.arrows for end in (arrow.source, arrow.target)}
    assert ends.union(*picture.beside.values()) <= set(picture.boxes)
    assert not picture.drawn & set(picture.beside), "an equation is drawn or beside the picture"
    assert {part.kind for box in picture.boxes.values() for part in (box, *box.parts)} <= set(KINDS)
    sides = {side for arrow in picture.arrows for side, _ in (arrow.leaves, arrow.enters)}
    assert sides <= {"left", "right", "top", "bottom"}


@pytest.mark.parametrize("name", MODELS)
def test_every_equation_of_the_page_is_in_its_picture_or_beside_it(name):
    picture = PICTURES[name]
    page = numbered((project_root() / "notebooks" / f"{name}.py").read_text(encoding="utf-8"))
    assert len(page) > 10
    assert picture.drawn | set(picture.beside) == page
    assert counted(picture.alt) == picture.drawn, "the picture in words has the equations of the picture"


def test_the_picture_of_the_first_page_has_the_equations_of_its_model():
    page = numbered((project_root() / "notebooks" / "start_here.py").read_text(encoding="utf-8"))
    assert FIRST["start_here"].drawn == set(range(1, 10)) <= page
    assert counted(FIRST["start_here"].alt) == FIRST["start_here"].drawn


COMPARED_WITH = {name: picture for pictures in COMPARED.values() for name, picture in pictures.items()}


def test_every_equation_of_another_system_is_in_its_picture():
    """On the page of the systems that the papers are compared with; what this project adds is on its paper's page."""
    pages = [(project_root() / "notebooks" / f"{name}.py").read_text("utf-8") for name in ("baselines", *COMPARED)]
    tags = [re.findall(r"\\tag\{([A-Z]?)(\d+)\}", page) for page in pages]
    theirs = {(letter, int(n)) for page, found in enumerate(tags) for letter, n in found if letter or not page}
    drawn = {(p.letter, n) for p in COMPARED_WITH.values() for n in p.drawn | set(p.beside)}
    assert drawn == theirs
    shown = re.findall(r'show_(?:model|folded)\((?:\s*"[^"]+",)?\s*"(\w+)"\)', "".join(pages))
    assert sorted(set(shown) - set(MODELS)) == sorted(COMPARED_WITH)


@pytest.mark.parametrize("picture", COMPARED_WITH.values(), ids=COMPARED_WITH)
def test_another_system_in_words_has_the_equations_of_its_picture(picture):
    words = re.sub(rf"\b{picture.letter}(?=\d)", "", picture.alt)
    assert counted(words) == picture.drawn


def matrix(seen):
    """A picture's mask as a boolean matrix."""
    return torch.tensor([[c == "#" for c in row] for row in seen])


def dependent(output, *inputs):
    """[n, n]: whether row t of `output` depends on row j of what it was made from."""
    rows = [torch.autograd.grad(row.sum(), inputs, retain_graph=True) for row in output]
    return torch.stack([sum(g[0].abs().sum(-1) for g in found) > 0 for found in rows])


def test_the_masks_of_t_dmca_are_what_its_layers_see():
    torch.manual_seed(0)
    n, config = SOURCE + SUMMARY, {"block": BLOCK, "stride": STRIDE, "dropout": 0.0}
    for kind, name in ((LocalLayer, LOCAL), (CompressedLayer, WHOLE)):
        layer = kind(TDMCAConfig(width=8, heads=2, inner=8, **config)).double()
        q, k, v = torch.randn(3, 1, n, 8, dtype=torch.double).unbind()
        k, v = k.requires_grad_(), v.requires_grad_()
        found = layer.attend(q, *layer.memory(k, v))[0].transpose(0, 1).flatten(1)  # [n, d]
        assert torch.equal(dependent(found, v), matrix(PICTURES["t_dmca"].boxes[name].mask)), name


def test_the_mask_of_tlm_is_what_its_layers_see():
    """The summary is written behind what was read; a window of the rest is a sequence of its own."""
    torch.manual_seed(0)
    layer = CausalLayer(TLMConfig(width=8, heads=2, inner=8, dropout=0.0)).double()
    lengths = INTRODUCTION + EXTRACT, ABSTRACT, REST
    x = torch.randn(1, sum(lengths), 8, dtype=torch.double, requires_grad=True)
    source, summary, rest = x.split(lengths, 1)
    read, kept = layer.read(source)
    written, _ = layer.extend(summary, None, kept, torch.ones(1, lengths[0], dtype=torch.bool))
    states = torch.cat([read, written, layer.read(rest)[0]], 1)[0]
    assert torch.equal(dependent(states, x), matrix(PICTURES["tlm"].boxes[ATTENTION].mask))
    parts = PICTURES["tlm"].boxes[PIECES].parts
    assert [(p.first, p.last) for p in parts] == [(0, 9), (9, 15), (15, 22), (22, 28)]


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
    """A name in a small picture can still be read."""
    picture = PICTURES["windowed"]
    boxes, arrows = picture.lit({7})
    (axes,) = model_picture("windowed", {7}, small=small).axes
    shapes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch) and patch.get_zorder() == 3]
    full = {
        name: np.allclose(shape.get_edgecolor()[:3], to_rgb(COLOURS[box.kind]))
        for (name, box), shape in zip(picture.boxes.items(), shapes)
    }
    assert {name for name, at_full in full.items() if at_full} == boxes == {"word before", "window"}
    lines = [patch.get_edgecolor() for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert len(set(lines)) == 2 and lines.count(lines[-1]) == len(arrows), "the lit ones are drawn last"
    dark = {text.get_text() for text in axes.texts if sum(to_rgb(text.get_color())) < 1}
    assert {"(7)", "window"} <= dark and not {"switch", "(14)"} & dark
    (switch,) = (text for text in axes.texts if text.get_text() == "switch")
    assert switch.get_color() == (GREY if small else PALE)


def test_a_part_or_model_that_is_not_there():
    with pytest.raises(ValueError, match=r"Windowed attention: no part 15; there are equations \(1–14\) and text, "):
        model_picture("windowed", {13, 15})
    with pytest.raises(ValueError, match=r"unknown model 'window', did you mean 'windowed'\?"):
        model_picture("window")


def test_numbers_in_a_row_are_joined():
    assert [equation_numbers(n) for n in ((), (7,), (4, 2), (8, 10, 9), (7, 1, 2, 3))] == [
        "",
        "(7)",
        "(2, 4)",
        "(8–10)",
        "(1–3, 7)",
    ]
    assert [equation_numbers(n, "S") for n in ((4,), (6, 7), (1, 2, 3))] == ["(S4)", "(S6, S7)", "(S1–S3)"]


def test_an_end_without_a_place_stands_where_the_other_one_does():
    boxes = {"high": Box("states", 0, 1, rows=3), "low": Box("states", 1, 2)}
    for there, back in ((("right", None), ("left", 0.5)), (("right", 0.9), ("left", None))):
        (ax, ay), (bx, by) = route(boxes, Arrow("high", "low", leaves=there, enters=back))
        assert ay == by and ax < bx
    boxes = {"wide": Box("text", 1, 0, columns=3), "narrow": Box("states", 0, 1)}
    (ax, ay), (bx, by) = route(boxes, Arrow("wide", "narrow", leaves=("bottom", None), enters=("top", 0.5)))
    assert ax == bx and ay < by


def test_a_mask_is_drawn_cell_for_cell():
    """Rectangles in the full colour, a row each; and a part of a row of words in its own."""
    box = PICTURES["t_dmca"].boxes[WHOLE]
    (axes,) = model_picture("t_dmca").axes
    cells = [c for c in axes.collections if np.isclose(c.get_zorder(), 3.2)]
    masks = [b.mask for b in PICTURES["t_dmca"].boxes.values() if b.mask]
    assert len(cells) == sum(map(len, masks))
    spans = [path.get_extents() for c in cells[-len(box.mask) :] for path in c.get_paths()]
    step = max(s.width for s in spans) / max(row.count("#") for row in box.mask)
    assert np.allclose([s.width / step for s in spans], [row.count("#") for row in box.mask])
    source, summary = (p for p in axes.patches if np.isclose(p.get_zorder(), 3.5))
    assert np.isclose(source.get_width() / summary.get_width(), SOURCE / SUMMARY)
    assert np.allclose(source.get_edgecolor()[:3], to_rgb(COLOURS["text"]))
    assert np.allclose(summary.get_edgecolor()[:3], to_rgb(COLOURS["output"]))


# ------------------------------------------------------------------------------------------- files, and on a page


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    assert draw_models(folder) == [f"model_{name}.svg" for name in PICTURES]
    return folder


def test_the_committed_pictures_are_these(drawn):
    """The letters of a file depend on matplotlib's version; what they say does not."""
    for path in drawn.iterdir():
        kept = (project_root() / "figures" / path.name).read_text(encoding="utf-8")
        texts = [re.findall(r"<!-- (.*) -->", text) for text in (path.read_text(encoding="utf-8"), kept)]
        assert texts[0] == texts[1] and "attention" in texts[0], "run: make figures"
        assert len(kept) < 120_000 and "date" not in kept


def test_the_picture_of_the_ideas_is_the_committed_one():
    """A panel for each paper; README shows it with its words."""
    kept = (project_root() / "figures" / "four_ideas.svg").read_text(encoding="utf-8")
    texts = [re.findall(r"<!-- (.*) -->", text) for text in (svg(ideas_picture()), kept)]
    assert texts[0] == texts[1] and "Memory heads" in texts[0], "run: make figures"
    assert len(PANELS) == len(PAPERS) and len(kept) < 140_000
    readme = (project_root() / "README.md").read_text(encoding="utf-8")
    assert f"![{ALT}](figures/four_ideas.svg)" in readme


def test_the_texts_of_the_ideas_stay_in_their_panels():
    figure = ideas_picture()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    panels = [patch.get_window_extent() for patch in axes.patches if patch.get_zorder() == 0]
    texts = [text for text in axes.texts if text.get_text()]
    assert len(panels) == len(PANELS) and min(text.get_fontsize() for text in texts) * 96 / 72 > 9, "CSS pixels"
    for text in texts:
        place = text.get_window_extent()
        assert any(
            np.allclose(Bbox.intersection(smaller(panel, 6), place), place)
            for panel in panels
            if panel.overlaps(place)
        ), text
    for (a, place), (b, other) in combinations([(text, text.get_window_extent()) for text in texts], 2):
        assert not smaller(place, 0.5).overlaps(smaller(other, 0.5)), (a, b)


def test_the_same_picture_is_the_same_file(drawn):
    name = "windowed"
    assert svg(model_picture(name)) == (drawn / f"model_{name}.svg").read_text(encoding="utf-8")


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


def test_folded_pictures_are_opened_by_a_click():
    shown = show_folded("Two & more", "tlm", "ras")
    tags = Images(shown._repr_html_()).found
    assert [tag for tag, _ in tags if tag in ("details", "img")] == ["details", "img", "img"]
    assert [found["alt"] for tag, found in tags if tag == "img"] == [PICTURES[n].alt for n in ("tlm", "ras")]
    assert "<summary><b>Two &amp; more</b></summary>" in shown._repr_html_() and PICTURES["ras"].alt in repr(shown)
