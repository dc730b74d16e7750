"""What pages use: parameters, checks, figures with their descriptions, tables, frames, runs."""

import io
import json
import os
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from numba import njit
from PIL import Image

from companion.pages.checks import CheckError, Checks, gradients
from companion.pages.choice import choose
from companion.pages.figures import PLOTS, attention_maps, draw, redraw, rounded, word_maps
from companion.pages.frames import Frames
from companion.pages.parameters import ParameterError, check_parameters, prepare_machine
from companion.pages.runs import nll_by_text, unseen_papers
from companion.pages.shown import PageFigures, Prediction, figures_folder
from companion.pages.steps import Step, best_words, decoding_frames
from lib.data.corpus import load_corpus
from lib.papers import open_run
from lib.system.files import project_root
from lib.system.threads import torch_threads
from tests.tools.minutes import minutes_of

# ---------------------------------------------------------------------------------
# parameters

DECLARED = 'dataset: str = "aclsum"  # which\nsteps: int = 0\nrate: float = 0.1\nfast: bool = False'


def injected(code):
    namespace = {
        "In": ["", "import x", DECLARED, f"# Parameters\n{code}\n", "check_parameters(globals())"]
    }
    exec(DECLARED, namespace)
    exec(code, namespace)
    check_parameters(namespace)
    return namespace


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("steps = 1000.0", 1000),
        ("rate = 1", 1.0),
        ('fast = "true"', True),
        ('dataset = "a"', "a"),
        ("rate = -1.0", -1.0),
    ],
)
def test_injected_values_are_converted(code, value):
    found = injected(code)[code.split()[0]]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('datset = "arxiv"', r"unknown parameter 'datset', did you mean 'dataset'\?"),
        *((f"steps = {value}", "'steps' must be int") for value in ('"ten"', "1.5", "True")),
        ('fast = "maybe"', "'fast' must be bool"),
        ("dataset = None", "'dataset' must be str"),
        ("dataset = 7", "use -r dataset TEXT"),
        ("steps = -5", "must be at least 0"),
    ],
)
def test_other_parameters_stop_the_page(code, message):
    with pytest.raises(ParameterError, match=message):
        injected(code)


@pytest.mark.parametrize(("load", "threads"), [(9.0, 1), (0.5, 2)])
def test_a_page_says_what_makes_it_slow(load, threads, monkeypatch, capsys):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with torch_threads(2):
        prepare_machine.__wrapped__()
        assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"]) == threads
    assert ("busy (load 9.0 on 2 cores)" in capsys.readouterr().out) == (threads == 1)
    njit(lambda x: x)(load)
    assert "kernels are compiled" in capsys.readouterr().out


# ---------------------------------------------------------------------------------
# checks


def test_numbers_are_compared():
    checks = Checks()
    checks.close(torch.ones(2, 3), torch.ones(2, 3), "(7)", "read")
    assert repr(checks.line("z < 1")) == "z < 1\n✓ (7) agrees with lib: 6 numbers, exactly"
    checks.close(torch.ones(2), torch.ones(2).double() + 1e-12, "(8)")
    line = checks.line("z < 1")
    assert (
        repr(line).endswith("✓ (8) agrees with lib: 2 numbers, within 1e-12")
        and "z &lt; 1" in line._repr_html_()
    )
    for other, message in {
        (1.0, 2.0): "differ by 1",
        (1.0, np.nan): "nan",
        (1.0,): "shape",
    }.items():
        with pytest.raises(CheckError, match=message):
            checks.close(torch.ones(2), torch.tensor(other), "(7)", "read")


def test_gradients_are_compared():
    checks, model = Checks(), torch.nn.Linear(2, 1, bias=False)
    found = gradients(model, 3 * model(torch.tensor([[1.0, 2.0]])).sum())
    checks.gradients({"weight": torch.tensor([[3.0, 6.0]])}, found, "(12)")
    with pytest.raises(CheckError, match="gradient of b: missing in lib"):
        checks.gradients({**found, "b": torch.ones(1)}, found, "(12)")
    with pytest.raises(CheckError, match="differ"):
        checks.gradients({"weight": torch.zeros(1, 2)}, found, "(12)")


# ---------------------------------------------------------------------------------
# predictions, minutes


def test_the_answer_of_a_prediction_is_folded_with_what_shows_it():
    asked = Prediction("Is 1 < 2?", ["no & never", "yes"], "It is: <1>.", [Frames(["<b>1</b>"], 1)])
    before, folded = asked._repr_html_().split("<details>")
    assert "Is 1 &lt; 2?" in before and before.count("<li>") == 2 and "no &amp; never" in before
    assert before.count('type="radio"') == 2
    assert "It is: &lt;1&gt;." in folded and "<b>1</b>" in folded
    assert repr(asked).splitlines() == ["Predict. Is 1 < 2?", "  ○ no & never", "  ○ yes"]


def test_the_minutes_of_a_page_follow_the_rule():
    def markdown(text):
        return {"cell_type": "markdown", "source": text}

    def code(text, *outputs, tags=()):
        return {
            "cell_type": "code",
            "source": text,
            "metadata": {"tags": list(tags)},
            "outputs": list(outputs),
        }

    picture = {
        "data": {"text/html": f'<figure><img src="base64,{"a " * 99}"></figure> ' + "word " * 100}
    }
    cells = [
        markdown("word " * 200 + "<details><summary>Symbols</summary>" + "a " * 500 + "</details>"),
        code("x = 1\n" * 60, picture, {"text": "<b>Predict.</b>"}, tags=["remove-input"]),
        markdown("# 1. Build it\n$$a$$\n| a | b |\n|---|---|\n| c | d |\n"), code("x = 1\n" * 12 + "\n# why\n"),
        markdown("# Your corpus\n" + "word " * 400), code("x = 1\n", picture, tags=["remove-input"]),
        markdown("# 2. Exercises\nDo it. (easy, core, 15 minutes; 2 points)"), code("x = 1\n" * 60),
    ]  # fmt: skip
    found = minutes_of({"cells": cells})
    assert found["reading"] == pytest.approx(1 + 1 + 100 / 200 + 1 / 2, abs=0.05)
    assert found["building"] == pytest.approx(1 / 2 + 1 + 2, abs=0.05) and found["exercises"] == 15


# ---------------------------------------------------------------------------------
# figures

PANEL = {
    "title": "α",
    "values": [[0.25, 0.75], [1.0, 0.0]],
    "rows": ["a", "b"],
    "columns": ["x", "y"],
}
FIGURES = project_root() / "figures"
COMMITTED = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FIGURES.glob("*.json")
}
COMMITTED = {name: data for name, data in COMMITTED.items() if "plot" in data}


def test_figures_are_saved_with_their_numbers_and_drawn_again(tmp_path):
    panel = {"title": "a", "weights": torch.ones(3, 20) / 3, "marked": [1]}
    draw(
        attention_maps, "maps", tmp_path, "A caption.", panels=[panel], rows="slot", columns="step"
    )
    saved = json.loads((tmp_path / "maps.json").read_text(encoding="utf-8"))
    assert (saved["plot"], saved["caption"]) == ("attention_maps", "A caption.")
    assert saved["panels"][0]["weights"][0][0] == 0.3333
    picture = (tmp_path / "maps.png").read_bytes()
    (tmp_path / "maps.png").unlink()
    (tmp_path / "table.json").write_text('{"table": "t"}', encoding="utf-8")
    assert redraw(tmp_path) == ["maps"] and (tmp_path / "maps.png").read_bytes() == picture
    (tmp_path / "x.json").write_text('{"plot": "pie"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json: plot 'pie'"):
        redraw(tmp_path)


def test_every_committed_figure_has_its_numbers_and_every_plot_a_figure():
    assert set(COMMITTED) == {path.stem for path in FIGURES.glob("*.png")}
    drawn = {data["plot"] for data in COMMITTED.values()}
    assert drawn <= set(PLOTS) and set(PLOTS) - drawn <= {
        "attention_maps",
        "maximum_attention",
        "interval_bars",
    }


@pytest.mark.parametrize(
    "name", sorted({data["plot"]: name for name, data in COMMITTED.items()}.values())
)
def test_a_plot_is_whole_and_described_with_its_numbers(name):
    data = {key: value for key, value in COMMITTED[name].items() if key not in ("plot", "caption")}
    plot = PLOTS[COMMITTED[name]["plot"]]
    described = plot.describe(**data)
    assert len(described) > 20 and described.endswith(".") and re.search(r"\d", described)
    figure = plot.draw(**data)
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert max(-box.x0, -box.y0, box.x1 - width, box.y1 - height) < 0.02, "nothing of it is cut"
    plt.close(figure)


def test_figures_of_a_page_are_numbered_once(tmp_path, monkeypatch):
    figures = PageFigures(tmp_path)
    first = figures.show(word_maps, "One <map>.", "kept", panels=[PANEL])
    second = figures.show(word_maps, "Another.", panels=[PANEL])
    again = figures.show(word_maps, "One, changed.", "kept", panels=[PANEL])
    captions = [shown.caption for shown in (first, second, again)]
    assert captions == ["Figure 1. One <map>.", "Figure 2. Another.", "Figure 1. One, changed."]
    html = first._repr_html_()
    assert "<b>Figure 1.</b> One &lt;map&gt;." in html and 'alt="Heat maps. α: 2 rows' in html
    width = int(re.search(r'width="(\d+)"', html)[1])
    assert Image.open(io.BytesIO(first.picture)).width == pytest.approx(2 * width, abs=1), (
        "sharp on any screen"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.json", "kept.png"]
    monkeypatch.setenv("COMPANION_FIGURES", str(tmp_path))
    assert figures_folder() == tmp_path


# ---------------------------------------------------------------------------------
# tables and frames


def test_frames_need_no_script_and_no_style_sheet():
    pictures = [f"<i>{number}</i>" for number in range(3)]
    frames = Frames(pictures, first=2)
    html = frames._repr_html_()
    assert all(html.count(picture) == 1 for picture in pictures) and "<script" not in html
    name = re.match(r'<div id="([\w-]+)">', html)[1]
    assert re.findall(r'id="([\w-]+)" checked', html) == [f"{name}-2"]
    assert f"#{name}-3:checked ~ #{name}-f-3 {{display: block !important}}" in html
    assert frames._repr_html_() != html, "two on a page do not share their buttons"
    # JupyterLab takes them out of a notebook that it does not trust
    html = re.sub("<style>.*?</style>", "", html)
    shown = re.sub(
        r'<(\w+)[^>]* style="display: none">.*?</\1>|<input[^>]* style="display: none">', "", html
    )
    assert "Step 2 of 3. " in shown and [f for f in pictures if f in shown] == ["<i>1</i>"]


def test_a_decoders_steps():
    steps = [
        Step(
            "a<b",
            [0.75, 0.25, 0.0],
            {"P_g": [("saw", 0.5)]},
            0.25,
            slots=[(1.0, 0.125), (0.25, 0.875)],
        ),
        Step(".", [0.0, 0.5, 0.5], view=(1, 3)),
    ]
    frames = decoding_frames(
        [["the", "cat"], ["."]], steps, ["title", "text"], {"another": ["<x>"]}
    )
    first, second = frames.frames
    assert re.findall(r"rgba\(0, 102, 168, 0.75\)[^>]*>(\w+)<", first) == ["the"]
    assert (
        "a&lt;b</b>" in first
        and "written: a&lt;b <b" in second
        and "another: &lt;x&gt; <b" in second
    )
    assert "saw 0.50" in first and "generates with 0.25" in first and "slot 2: 0.25 kept" in first
    assert re.findall(r"border-bottom[^>]*>([^<]+)<", second) == ["cat", "."], (
        "what the decoder sees"
    )
    assert best_words(torch.tensor([0.125, 0.5, 0.375]), ["a", "b", "c"], 2) == [
        ("b", 0.5),
        ("c", 0.375),
    ]


# ---------------------------------------------------------------------------------
# runs


def test_a_page_shows_the_run_that_comes_with_its_paper():
    """Its name need not be the paper's, and its model need not be the paper's own."""
    choice = choose("hierarchical_transformer", "", "", "HT", steps=0, seed=0, run="")
    assert choice.is_shipped and choice.banner is None, "the page as it is"
    assert choice.folder == project_root() / "trained" / "hierarchical_transformer_copying"
    assert choice.setup.variant == "HT + copying"


def test_a_shipped_run_on_papers_that_it_has_not_seen():
    corpus, run = load_corpus("pmc-sample"), open_run(project_root() / "trained" / "mem2mem")
    every, papers = list(corpus.split("test")), unseen_papers(corpus)
    assert {d.id for d in every} - {d.id for d in papers} == {"PMC4784345"}, "it is in both corpora"
    nll = nll_by_text(run, papers[:3])
    assert nll["its own"] < nll["the next one's"] - 0.5, "the model reads the text"
    assert rounded({"a": torch.tensor([1 / 3])}) == {"a": [0.3333]}
