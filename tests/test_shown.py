"""What a page shows: figures that are described, tables whose numbers stay whole, passages, frames."""

import io
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image

from companion.pages.alt_texts import alt_text
from companion.pages.figures import PLOTS, attention_maps, beam_tree, number_grid, rounded, word_maps
from companion.pages.frames import Frames
from companion.pages.shown import PageFigures, Passages, picture, show_tables, table_html
from companion.pages.steps import CELL, WHITE, Step, best_words, decoding_frames
from lib.system.files import project_root
from tests.test_pages import DRAWN

PANEL = {"title": "α", "values": [[0.25, 0.75], [1.0, 0.0]], "rows": ["a", "b"], "columns": ["x", "y"]}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_every_plot_is_described(plot):
    told = alt_text(plot.__name__, rounded(DRAWN[plot]))
    assert len(told) > 20 and told.endswith(".")
    assert re.search(r"\d", told), "with its numbers"


def test_descriptions_say_what_is_largest_and_where():
    told = alt_text("word_maps", {"panels": [PANEL]})
    assert told == "Heat maps. α: 2 rows (a, b) by 2 columns (x, y), from 0 to 1, the furthest from 0 at b, x."
    told = alt_text("attention_maps", {"panels": [{"title": "h", "weights": [[0.1, 0.9]], "marked": [0]}]})
    assert told.endswith("from 0.1 to 0.9, the furthest from 0 at row 1, column 2; marked columns: 1.")
    told = alt_text("lines", {"panels": [{"series": {"s": [[1, 8], [2.0, 0.5]]}, "xlabel": "x", "ylabel": "y"}]})
    assert "y over x: s from 2 at 1 to 0.5 at 8" in told


def test_a_tree_and_a_grid_are_described_as_they_are_read():
    told = alt_text("beam_tree", DRAWN[beam_tree])
    assert told == (
        "A tree of hypotheses. Step 1: a 0.67 (in the beam), b 0.33. Step 2: a c 0.33, a longer 0.33 (in the beam)."
    )
    told = alt_text("number_grid", {**DRAWN[number_grid], "rows": ["", "a"], "hits": [[1, 1]]})
    assert told.endswith("the last is 1. A path leads to it over 1 hits: a.")


def test_a_node_of_a_tree_stands_in_the_middle_of_what_follows():
    figure = beam_tree(**DRAWN[beam_tree])
    rows = {text.get_text().split()[0]: text.get_position()[1] for text in figure.axes[0].texts}
    assert (rows["c"], rows["longer"], rows["b"]) == (0, 1, 2), "what has no more words, from the top"
    assert rows["a"] == 0.5 and rows["[BOS]"] == (rows["a"] + rows["b"]) / 2
    plt.close(figure)


@pytest.mark.parametrize(
    ("zeros", "numbers"), [(False, [".25", ".75", "1.00", ""]), (True, [".25", ".75", "1.00", ".00"])]
)
def test_a_cell_of_a_map_that_is_zero_is_written_if_asked_for(zeros, numbers):
    figure = word_maps([PANEL], zeros=zeros)
    assert [text.get_text() for text in figure.axes[0].texts] == numbers


def test_figures_are_numbered_once_and_described(tmp_path):
    figures = PageFigures(tmp_path)
    first = figures.show(word_maps, "One <map>.", "kept", panels=[PANEL])
    second = figures.show(word_maps, "Another.", panels=[PANEL])
    again = figures.show(word_maps, "One, changed.", "kept", panels=[PANEL])
    assert [shown.caption for shown in (first, second, again)] == [
        "Figure 1. One <map>.",
        "Figure 2. Another.",
        "Figure 1. One, changed.",
    ]
    html = first._repr_html_()
    assert "<b>Figure 1.</b> One &lt;map&gt;.</figcaption>" in html and 'alt="Heat maps. α: 2 rows' in html
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.json", "kept.png"]
    width = int(re.search(r'width="(\d+)"', html)[1])
    assert Image.open(io.BytesIO(first.drawn.picture)).width == pytest.approx(2 * width, abs=1), "sharp on any screen"
    assert repr(second).startswith("Figure 2. Another. [Heat maps.")


def test_the_cells_of_a_map_say_their_values(tmp_path):
    named = {"title": "a <b>", "values": [[0.0, 1.0, 0.5]], "rows": ["<r>"], "columns": ["x", "y", "z"]}
    shown = PageFigures(tmp_path).show(word_maps, "c", panels=[PANEL, named], top=1.0)
    pixels = Image.open(io.BytesIO(shown.drawn.picture)).convert("L")
    for x, y, width, height, text in shown.drawn.cells:
        place = ((x + width / 2) * pixels.width / 1000, (y + height / 2) * pixels.height / 1000)
        assert (pixels.getpixel(tuple(map(int, place))) < 200) == (float(text.split(": ")[1]) > 0.4), text
    assert [cell[-1] for cell in shown.drawn.cells][-3:] == ["<r>, x: 0", "<r>, y: 1", "<r>, z: 0.5"]
    assert ' title="&lt;r&gt;, y: 1" style="position:absolute;' in shown._repr_html_()
    without_tags = re.sub("<[^>]*>", "", shown._repr_html_().partition("<figcaption")[0])
    assert not without_tags, "nothing is left where tags are taken out, but the caption"
    numbered = picture(attention_maps, "", panels=[{"title": "", "weights": np.eye(30)}], rows="", columns="")
    assert numbered.drawn.cells[32][-1] == "2, 3: 0", "the columns that have no number too"
    large = picture(attention_maps, "", panels=[{"title": "", "weights": np.eye(32)}], rows="", columns="")
    assert large.drawn.cells == () and "<i " not in large._repr_html_()


def test_a_long_name_is_not_squeezed():
    html = table_html(pd.DataFrame({"R-1": [1.0, 2.0]}, index=["Lead", "Read-Again, plain beam search"]))
    assert "<th>Lead</th>" in html and '<th style="min-width: 9rem">Read-Again, plain beam search</th>' in html


def test_no_line_breaks_inside_an_interval():
    frame = pd.DataFrame({"R-1": ["42.06 [41.10, 43.02]"], "what": ["by 1.2 [0.3, 2.0] points, p < 0.01"], "n": [3]})
    html = table_html(frame)
    assert "<td>42.06 [41.10,&nbsp;43.02]</td>" in html, "the interval may stand below its mean"
    assert "by 1.2 [0.3,&nbsp;2.0] points, p&nbsp;&lt;&nbsp;0.01" in html
    assert "<td>99&nbsp;/&nbsp;100&nbsp;/&nbsp;100%</td>" in table_html(pd.DataFrame({"a": ["99 / 100 / 100%"]}))
    assert "NaN" not in table_html(pd.DataFrame({"a": [np.nan, 1.0]}))


def test_texts_begin_at_the_left_and_numbers_end_at_the_right():
    texts = ["by 1.2 [0.3, 2.0] points, p < 0.01", "750 words", "HT", "[BOS]", ".", "<b>"]
    numbers = ["+1.2 [+0.3, +2.0], p < 0.01", "< 0.001", "156 ms", "1.5 GB", "99 / 100%", "42*", "", 3]
    html = table_html(pd.DataFrame({"a": [*texts, *numbers]}))
    assert re.findall(r"<td(.*?)>", html) == [' style="text-align: left"'] * len(texts) + [""] * len(numbers)


def test_a_notebook_shows_tables_so():
    shell = InteractiveShell.instance()
    try:
        show_tables()
        data, _ = shell.display_formatter.format(pd.DataFrame({"a": ["1 [2, 3]"]}))
        assert "[2,&nbsp;3]" in data["text/html"]
    finally:
        InteractiveShell.clear_instance()


def test_passages_wrap_between_words():
    shown = Passages([("title", "A & B"), ("text", "word " * 60)])
    lines = repr(shown).splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 100 and all(set(line.split()) <= {"word"} for line in lines[2:])
    assert "A &amp; B" in shown._repr_html_()


FRAMES = Frames(
    {"a": ["0", "1"], "b": ["x", "y"]}, {(a, b): f"<i>{a}{b}</i>" for a in "01" for b in "xy"}, ("1", "x")
)


def test_a_slider_changes_what_is_seen():
    first, second, shown = FRAMES.widget().children
    assert (first.value, second.value, shown.value) == ("1", "x", "<i>1x</i>")
    second.value = "y"
    assert shown.value == "<i>1y</i>"
    first.value = "0"
    assert shown.value == "<i>0y</i>"


def test_frames_without_a_kernel():
    html = FRAMES._repr_html_()
    assert all(html.count(frame) == 1 for frame in FRAMES.frames.values()) and "<script" not in html
    checked = re.findall(r'id="([\w-]+)" checked', html)
    name = re.match(r'<div id="([\w-]+)">', html)[1]
    assert checked == [f"{name}-0-1", f"{name}-1-0"]
    for a in "01":
        for b in "01":
            rule = f"#{name}-0-{a}:checked ~ #{name}-1-{b}:checked ~ #{name}-f-{a}-{b} {{display: block !important}}"
            assert rule in html
    assert FRAMES._repr_html_() != html, "two on a page do not share their buttons"


def test_frames_without_style_sheets():
    """JupyterLab takes them out of a notebook that it does not trust, and leaves what attributes say."""
    html = re.sub("<style>.*?</style>", "", FRAMES._repr_html_())
    seen = re.sub(r'<(\w+)[^>]* style="display: none">.*?</\1>|<input[^>]* style="display: none">', "", html)
    assert "One of 4 pictures: a 1, b x. " in seen and "Trust Notebook" in seen
    assert "<label" not in seen and "<input" not in seen
    assert [frame for frame in FRAMES.frames.values() if frame in seen] == [FRAMES.frames[FRAMES.first]]


def test_frames_of_an_executed_page_are_the_same_each_time():
    """In a process of its own, as a page is executed; with two that are alike, of which each keeps its buttons."""
    code = (
        "from companion.pages.frames import Frames; make = lambda text: Frames({'a': ['0']}, {('0',): text}, ('0',))\n"
        "for text in ('one', 'one', 'two'): print(make(text)._repr_html_())"
    )
    once, again = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project_root())
        for _ in range(2)
    )
    names = re.findall(r'<div id="(frames-[\w-]+?)">', once.stdout)
    assert once.stdout == again.stdout and len(set(names)) == 3


@pytest.mark.parametrize(("served", "kind"), [(True, "VBox"), (False, "HTML")])
def test_a_reader_gets_sliders_and_a_page_that_is_executed_frames(served, kind, monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if served:
        monkeypatch.setenv("JPY_SESSION_NAME", "page.ipynb")
    seen = []
    monkeypatch.setattr("companion.pages.frames.display", seen.append)
    FRAMES._ipython_display_()
    assert [type(shown).__name__ for shown in seen] == [kind]


def test_a_choice_without_a_frame():
    with pytest.raises(ValueError, match="one for each of 2 choices is needed, there are 1"):
        Frames({"a": ["0", "1"]}, {("0",): ""}, ("0",))


STEPS = [
    Step("a<b", [0.75, 0.25, 0.0], {"P_g": [("saw", 0.5), ("a", 0.25)]}, 0.25, slots=[(1.0, 0.125), (0.25, 0.875)]),
    Step(".", [0.0, 0.5, 0.5], view=(1, 3)),
]


def test_a_decoders_steps():
    first, second = decoding_frames([["the", "cat"], ["."]], STEPS, ["title", "text"]).frames.values()
    assert re.findall(r"rgba\(0, 102, 168, 0.75\)[^>]*>(\w+)<", first) == ["the"]
    assert "written:  <b" in first and "a&lt;b</b>" in first and "written: a&lt;b <b" in second
    assert first.count("<tr") == first.count(f'<tr style="{WHITE}">') == 3, "a theme's own rows may be dark"
    assert f'<td style="{CELL}">saw 0.50</td><td style="{CELL}">a 0.25</td>' in first
    assert first.count("<td") == first.count(CELL), "a widget's table has no style of its own"
    assert "width: 25%" in first and "generates with 0.25" in first
    assert "slot 2: 0.25 left" in first and "read 0.88" in first and "slot" not in second and "<table" not in second
    assert re.findall(r"border-bottom[^>]*>([^<]+)<", second) == ["cat", "."] and "border-bottom" not in first
    assert re.search(r"title</span>.*the.*<br>.*text</span>", first)


def test_words_that_look_the_same_are_one_piece():
    (frame,) = decoding_frames([["a", "b", "c"], ["d"]], [Step("x", [0.25, 0.25, 0.5, 0.5])]).frames.values()
    assert re.findall(r"rgba\(0, 102, 168, (\d.\d+)\)[^>]*>([\w ]+)<", frame) == [
        ("0.25", "a b"), ("0.50", "c"), ("0.50", "d"),
    ]  # fmt: skip


def test_what_others_write_at_the_same_steps():
    steps = [Step("one", [1.0]), Step("two", [1.0]), Step("three", [1.0])]
    frames = decoding_frames([["text"]], steps, beside={"another": ["eins", "<zwei>"]}, first=2)
    first, second, third = frames.frames.values()
    assert frames.first == ("2",) and decoding_frames([["text"]], steps, first=9).first == ("3",)
    assert "another:  <b" in first and "another: eins <b" in second and ">&lt;zwei&gt;</b>" in second
    assert "written: one two <b" in third and "another: eins &lt;zwei&gt; <b" in third


def test_a_step_needs_a_weight_for_each_word():
    with pytest.raises(ValueError):
        decoding_frames([["one"]], [Step("x", [0.5, 0.5])])


def test_the_best_words_of_a_distribution():
    assert best_words(torch.tensor([0.125, 0.5, 0.375]), ["a", "b", "c"], 2) == [("b", 0.5), ("c", 0.375)]


def test_a_picture_has_a_caption_and_no_number():
    assert "<b>" not in picture(word_maps, "Only this.", panels=[PANEL])._repr_html_()
