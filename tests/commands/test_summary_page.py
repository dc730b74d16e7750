"""The page that shows a text and its summary side by side: what is written, and what a reader sees
of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lib.page.summary_page import ShownDocument, write_page
from tests.tools.browser import data_of, needs_browser, open_page

# 11 words
SOURCE = [["The", " cat", " sat", "."], [" A", " dog", " barked", "."], [" It", " rained", "."]]
SUMMARY = [["Cat", " sat", "."], [" Dog", " barked", "."]]
HOSTILE = "</script><!--<script>\u2028\"'&amp;\\u003c DATA"


def rows(width, *weights):
    """[6, width]: for each summary word the weights {index: weight}, the last of them again for
    those that follow."""
    array = np.zeros((6, width))
    for i in range(6):
        for j, weight in weights[min(i, len(weights) - 1)].items():
            array[i, j] = weight
    return array


def shown(**attention):
    copied = [True, True, False, True, False, False] if "generate" in attention else None
    return ShownDocument("Cats", SOURCE, "sentence", SUMMARY, attention, copied)


def memory():
    """A document as Mem2Mem reads it: three sentences, two slots."""
    return shown(
        words=rows(11, {1: 0.7, 2: 0.2, 0: 0.1}, {2: 1.0}, {3: 1.0}),
        units=rows(3, {0: 0.8, 1: 0.2}),
        generate=np.array([0.125, 0.2, 0.831, 0.4, 0.5, 0.6]),
        slots=np.array([[0.9, 0.1], *[[0.25, 0.75]] * 5]),
        heads=np.array([[0, 0, 1.0], [0.3, 0.7, 0]]),
    )


def windowed():
    """Two windows, of words 1 to 6 and of the second sentence, which is there for the last summary
    word alone."""
    windows = np.array([[0, 6], [4, 8]])
    return shown(words=rows(11, {4: 0.5, 5: 0.5}), window=np.array([0] * 5 + [1]), windows=windows)


def clusters():
    return replace(shown(units=rows(3, {1: 0.6, 0: 0.3, 2: 0.1}, {2: 1.0})), unit="paragraph")


# ---------------------------------------------------------------------------------
# what is written


def test_the_largest_weights_are_kept(tmp_path):
    """98% of a row, and 60 of 400 equal weights; what is kept is the largest, in order, to 3
    digits."""
    peaked = np.array([0.6, 0.005, 0.3, 0.06, 0.03, 0.004, 0.001, 0, 0, 0, 0])
    equal = np.full(11, 0.123456)
    document = replace(memory(), attention={"words": np.stack([peaked, equal, np.zeros(11)])})
    written = data_of(write_page(tmp_path / "a.html", "m", [document]))["documents"][0][
        "attention"
    ]["words"]
    assert written[0] == [[0, 0.6], [2, 0.3], [3, 0.06], [4, 0.03]]
    assert written[1:] == [[[j, 0.123] for j in range(11)], []]
    many = ShownDocument(
        "n", [["w"] * 400], "section", [["s"]], {"words": np.linspace(1, 2, 400)[None]}
    )
    (row,) = data_of(write_page(tmp_path / "b.html", "m", [many]))["documents"][0]["attention"][
        "words"
    ]
    assert [j for j, _ in row] == list(range(399, 339, -1))


# ---------------------------------------------------------------------------------
# in a browser

HELPERS = (Path(__file__).parents[1] / "tools" / "summary_page.js").read_text(encoding="utf-8")


def seen(path, script):
    """What a function of `tests/tools/summary_page.js` finds when a browser shows the page; it
    requests nothing."""
    with open_page(path) as tab:
        result = tab.run(f"() => {{ {HELPERS} {script}(); return found; }}")
        assert tab.complaints == []
        return result


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_page(tmp_path, theme):
    documents = [supported(words=rows(11, {1: 1.0})), memory(), windowed(), clusters()]
    path = write_page(tmp_path / "page.html", "Mem2Mem, +read", documents)
    with open_page(path, theme) as tab:
        for number in range(len(documents)):
            tab.run(f"draw({number})")
            tab.check_looks()


@needs_browser
def test_pointing_colours_the_text(tmp_path):
    path = write_page(tmp_path / "page.html", "Mem2Mem, +read", [memory(), windowed()])
    found = seen(path, "pointing")
    assert found["before"] == found["left"] == [None] * 11
    the, cat, sat, *others = found["pointed"]
    assert cat > sat > the > 0 and others == [None] * 8, (
        "darker for a larger weight, and none for no weight"
    )
    assert (
        found["bars"][0] == pytest.approx(4 * found["bars"][1], abs=0.5) and found["bars"][2] == 0
    )
    assert (
        "Cat copied 88%" in found["detail"]
        and "words cat (70%), sat (20%), The (10%)" in found["detail"]
    )
    assert (
        "sentences 1 (80%), 2 (20%)" in found["detail"]
        and "slots 1 (90%), 2 (10%)" in found["detail"]
    )
    assert found["pinned"][3] and found["pinned"][:3] == [None] * 3, (
        "pointing elsewhere does not move a pinned word"
    )
    assert ". generated 83% pinned" in found["made"] and found["again"] == 0
    assert found["copied"] == ["underline", "underline", "none", "underline"]


@needs_browser
def test_the_text_follows_the_pointer_and_has_its_sections(tmp_path):
    source = [["The", " cat", " sat", "."]] * 60
    look = {"words": rows(240, {2: 1.0}, {238: 1.0})}
    document = replace(
        shown(**look), source=source, sections=["Introduction"] * 30 + ["Results"] * 30
    )
    with open_page(write_page(tmp_path / "page.html", "m", [document])) as tab:
        assert tab.page.locator("#text h3").all_inner_texts() == ["Introduction", "Results"]
        assert tab.run("document.querySelector('h3:last-of-type + .unit').innerText").startswith(
            "31"
        )
        tab.page.hover("#summary .word >> nth=3")
        tab.until("words[238].getBoundingClientRect().bottom < innerHeight", 5)


@needs_browser
def test_the_keyboard_goes_everywhere(tmp_path):
    path = write_page(tmp_path / "page.html", "m", [memory(), windowed()])
    found = seen(path, "keys")
    assert found["first"][1] and not found["second"][1] and found["second"][2], (
        "the colours go along"
    )
    assert found["places"] == [1, 3, 4, 0, 5, 5, 4, 0, 0] and found["stops"] == 1
    assert found["pinned"] == ["sat"]
    assert found["cleared"] == [None] * 11 and "Point at a word" in found["detail"]
    assert found["slots"] == 0, "the list shows the other text"


@needs_browser
def test_memory_slots(tmp_path):
    found = seen(write_page(tmp_path / "page.html", "m", [memory()]), "memorySlots")
    assert found["first"][0] > found["first"][1] and found["second"][0] < found["second"][1]
    assert found["none"] == found["left"] == found["cleared"] == [None] * 3
    assert found["pointed"][:2] == [None] * 2 and found["pointed"][2] is not None
    assert found["focused"][2] is None and None not in found["focused"][:2]
    assert found["holds"] == "Slot 2 holds sentences 2 (70%), 1 (30%)."


@needs_browser
def test_the_window(tmp_path):
    found = seen(write_page(tmp_path / "page.html", "m", [memory(), windowed()]), "windows")
    grey = found["first"][0][-1]
    assert set(found["cleared"]) == {found["first"][0][0]} != {grey}
    assert [c == grey for c in found["first"][0]] == [False] * 6 + [True] * 5, (
        "words outside are grey"
    )
    assert [c == grey for c in found["second"][0]] == [True] * 4 + [False] * 4 + [True] * 3
    assert "window 2 of 2, words 5 to 8 of 11" in found["second"][1]


def partly_read():
    rest = [("Methods", "Mice slept. Rats did."), ("Methods", "It rained."), ("", "The end.")]
    notes = ["read 9 of 17 words (Introduction)", HOSTILE]
    return replace(memory(), notes=notes, unread=rest, unfinished=True)


@needs_browser
def test_what_was_not_read_is_grey(tmp_path):
    """Under its section, behind the text; it is no word that the model could have looked at."""
    found = seen(write_page(tmp_path / "page.html", "m", [partly_read(), memory()]), "unreadText")
    assert found["rest"] == ["Mice slept. Rats did.", "It rained.", "The end."] and found[
        "sections"
    ] == ["Methods"]
    assert found["colours"][0] != found["colours"][1] and found["below"] and found["words"] == 11
    assert found["notes"] == ["read 9 of 17 words (Introduction)", HOSTILE]
    assert (
        found["cut"] == [False, True]
        and "of a sentence that the limit of length cut" in found["legend"]
    )
    assert found["next"] == [0, 0, True]


# ---------------------------------------------------------------------------------
# what is in the text


def supported(**attention):
    """The second sentence of the summary is carried by the first of the text, the title and what
    was not read."""
    return replace(
        shown(**attention),
        unread=[("Methods", "Mice slept. Birds sang.")],
        spans=[(0, 4), (4, 8), (8, 11)],
        lacks=["number", "", "", "word", "name", ""],
        carriers=[[], [(0, 0.5), (-1, 0.25), (4, 0.25)]],
    )


@needs_browser
def test_pointing_shows_which_sentences_carry_it(tmp_path):
    look = {"words": rows(11, {1: 0.7, 2: 0.3}), "generate": np.full(6, 0.2)}
    found = seen(write_page(tmp_path / "page.html", "m", [supported(**look)]), "carriers")
    assert found["before"] == found["none"] == found["left"] == found["cleared"] == ""
    assert found["pointed"] == found["focused"] == "Cats The cat sat . Birds sang." and found[
        "units"
    ] == ["1"]
    assert "carried by sentence 1 (50%), the title (25%), not read (25%)" in found["detail"]
    assert (
        "name not in the text" in found["detail"]
        and "carried by no sentence of the text" in found["nowhere"]
    )
    assert found["shades"][:4] == [True] * 4, "beside where the model looked"


@needs_browser
def test_a_phone_shows_summary_text_and_details_at_once(tmp_path):
    document = replace(
        memory(), summary=[[f"{word} " * 40 for word in sentence] for sentence in SUMMARY]
    )
    with open_page(write_page(tmp_path / "page.html", "Mem2Mem", [document])) as tab:
        tab.page.set_viewport_size({"width": 390, "height": 844})
        tab.page.click("#summary .word")
        tab.run("document.body.scrollTop = 200")
        summary, details = (
            tab.page.locator(f"#{name}").bounding_box() for name in ("summary", "about")
        )
        end = summary["y"] + summary["height"]
        assert (
            summary["height"] > 250
            and details["y"] - end > 200
            and details["y"] + details["height"] <= 844
        )


@needs_browser
def test_what_is_not_in_the_text_is_marked(tmp_path):
    found = seen(write_page(tmp_path / "page.html", "m", [supported(), shown()]), "marks")
    assert found["marked"] == [
        [True, False],
        [False] * 2,
        [False] * 2,
        [True, True],
        [True, False],
        [False] * 2,
    ]
    assert found["seen"] == [
        [True, True],
        [False] * 2,
        [False] * 2,
        [True, False],
        [True, True],
        [False] * 2,
    ]
    assert (
        "number or name not in the text" in found["legend"]
        and "word not in the text" in found["legend"]
    )
    assert found["next"] == [0, True]
