"""What the pages use to check themselves: parameters, equations, figures."""

import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from companion.pages.checks import CheckError, Checks, gradients
from companion.pages.figures import (
    PLOTS,
    attention_maps,
    beam_tree,
    dot_plots,
    draw,
    finished,
    histograms,
    interval_bars,
    lines,
    loss_curves,
    maximum_attention,
    number_grid,
    redraw,
    shaded_words,
    use_style,
    word_maps,
)
from companion.pages.parameters import ParameterError, check_parameters
from companion.pages.runs import (
    measured,
    nll_by_text,
    run_facts,
    unseen_papers,
    validation_losses,
)  # fmt: skip
from companion.pages.shown import ShownSource, clip, figures_folder, show_source
from companion.pages.summaries import summary_table
from companion.tasks.task import learn
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.decoding.search import batches, written
from lib.evaluation.metrics import repeated_ngrams
from lib.evaluation.scores import score_systems
from lib.papers import open_run
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.files import project_root, trained_folder, write_whole
from lib.system.threads import torch_threads
from tests.conftest import batch_of, tiny_model

DECLARED = 'dataset: str = "aclsum"  # which\nsteps: int = 0\nrate: float = 0.1\nfast: bool = False'


def injected(code):
    namespace = {"In": ["", "import x", DECLARED, f"# Parameters\n{code}\n", "check_parameters(globals())"]}
    exec(DECLARED, namespace)
    exec(code, namespace)
    check_parameters(namespace)
    return namespace


def test_unknown_parameter():
    with pytest.raises(
        ParameterError, match=r"unknown parameter 'datset', did you mean 'dataset'\? This page has: data"
    ):
        injected('datset = "arxiv"')
    with pytest.raises(ParameterError, match=r"unknown parameter 'qqq'\. This page has"):
        injected("qqq = 1")


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("steps = 1000.0", "steps", 1000),
        ("rate = 1", "rate", 1.0),
        ("dataset = 7", "dataset", "7"),
        ('fast = "true"', "fast", True),
        ('dataset = "a"', "dataset", "a"),
    ],
)
def test_values_are_converted(code, name, value):
    got = injected(code)[name]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("code", ['steps = "ten"', "steps = 1.5", "steps = True", 'fast = "maybe"', "dataset = None"])
def test_values_that_do_not_fit(code):
    with pytest.raises(ParameterError, match=rf"parameter '{code.split()[0]}' must be"):
        injected(code)


@pytest.mark.parametrize("value", ["-5", "-1.0"])
def test_numbers_below_zero(value):
    with pytest.raises(ParameterError, match=r"parameter 'steps' must be at least 0, not -\d"):
        injected(f"steps = {value}")
    assert injected("rate = -1.0")["rate"] == -1.0


def test_without_injection_and_as_a_script():
    namespace = {"In": ["", DECLARED, "check_parameters(globals())"]}
    exec(DECLARED, namespace)
    check_parameters(namespace)
    assert namespace["steps"] == 0
    check_parameters({"dataset": "x"})


def test_numbers_are_compared():
    checks = Checks()
    checks.close(torch.ones(2, 3), torch.ones(2, 3), "(7)", "read")
    checks.close(torch.ones(2), torch.ones(2).double() + 1e-12, "(7)")
    with pytest.raises(CheckError, match=r"\(7\) read: page and lib differ by 1"):
        checks.close(torch.ones(2), torch.tensor([1.0, 2.0]), "(7)", "read")
    with pytest.raises(CheckError, match="differ by nan"):
        checks.close(torch.ones(1), torch.tensor([float("nan")]), "(7)")
    with pytest.raises(CheckError, match="shape"):
        checks.close(torch.ones(1, 2), torch.ones(2), "(7)")
    report = checks.table()
    assert repr(report) == "2 of 2 comparisons, of 1 equations and checks, agree within 1.0e-12", (
        "without those that failed"
    )
    html = report._repr_html_()
    assert html.startswith("<details><summary>2 of 2") and 'left">read</td>' in html and "<td>6</td>" in html
    assert checks.table().held == [], "each part has its own"


def contrast(*colours):
    """As WCAG 1.4.3 has it."""
    linear = [[c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(x)] for x in colours]
    dark, light = sorted(np.array(linear) @ [0.2126, 0.7152, 0.0722])
    return (light + 0.05) / (dark + 0.05)


def test_a_line_says_what_was_compared_since_the_last_one():
    checks = Checks()
    checks.close(torch.ones(2, 3), torch.ones(2, 3), "(7)", "read")
    checks.line()
    checks.close(torch.ones(2), torch.ones(2).double() + 1e-12, "(8)")
    checks.close(torch.ones(1), torch.ones(1), "(8)")
    line = checks.line("z < 1")
    assert repr(line) == "z < 1\n✓ (8) agrees with lib: 3 numbers, within 1e-12"
    assert "z &lt; 1<br>" in line._repr_html_() and "✓ (8) agrees" in line._repr_html_()
    colours = re.search(r'"background: (#\w+); color: (#\w+)', line._repr_html_())
    assert contrast(*colours.groups()) > 4.5, "in dark themes too: it brings what it stands on"
    assert len(checks.table().held) == 3, "the table has all of them"
    checks.close(torch.ones(4), torch.ones(4), "(9)")
    checks.close(torch.ones(1), torch.ones(1), "(10)-(12)")
    assert repr(checks.line()) == "✓ (9), (10)-(12) agree with lib: 5 numbers, exactly"


def test_gradients_are_compared():
    checks = Checks()
    checks.gradients({"a": torch.ones(2)}, {"a": torch.ones(2)}, "(12)")
    with pytest.raises(CheckError, match="gradient of b: missing in lib"):
        checks.gradients({"a": torch.ones(2), "b": torch.ones(1)}, {"a": torch.ones(2)}, "(12)")
    with pytest.raises(CheckError, match="differ"):
        checks.gradients({"a": torch.ones(2)}, {"a": torch.zeros(2)}, "(12)")


PANELS = [
    {"title": "a", "weights": torch.eye(3), "marked": [1]},
    {"title": "b", "weights": torch.ones(3, 20) / 3},
]
METRICS = [
    {"step": 1, "split": "train", "loss": 2.0, "nll": 2.0, "seconds": 1.0},
    {"step": 1, "split": "val", "nll": 3.0},
]
DRAWN = {
    attention_maps: {"panels": PANELS, "rows": "slot", "columns": "step"},
    loss_curves: {"metrics": METRICS},
    lines: {
        "panels": [
            {"series": {"a": [[1, 2], [1 / 3, 2.0]], "b": [[1, 2], [2.0, 2.5]]}, "xlabel": "x", "ylabel": "y",
             "xscale": "log", "dashed": ["b"], "zero": True, "ticks": [1, 2], "spread": {"a": [[0.3, 1], [0.4, 3]]}}
        ]
    },
    shaded_words: {
        "panels": [
            {"title": "a", "words": ["b", "c"], "weights": torch.tensor([1 / 3, 1.0])},
            {"title": "d", "words": ["e"] * 60, "weights": [0.5] * 60},
        ],
        "label": "y",
    },
    maximum_attention: {
        "places": torch.tensor([1, 4]), "weights": torch.tensor([0.3333333, 0.1]), "windows": torch.tensor([0, 1]),
        "words": 6, "window": 3, "stride": 2,
    },
    word_maps: {
        "panels": [
            {"title": "longer than its panel", "values": torch.eye(2), "rows": ["a", "b"], "columns": ["x", "y"]},
            {"title": "b", "values": -torch.eye(2), "rows": ["a", "b"], "columns": ["x", "y"], "ylabel": "y"},
        ],
    },
    interval_bars: {
        "series": {"s": {"a": [1.0, 0.5, 2.0], "b": [2.0, 1 / 3, 3.0]}, "t": {"b": [2.0, 1.0, 3.0]}}, "xlabel": "x",
    },
    histograms: {
        "panels": [{"edges": torch.tensor([0.0, 1 / 3, 1.0]), "counts": {"a": [1, 2]}, "xlabel": "x", "mark": 0.5}],
    },
    dot_plots: {
        "panels": [{"title": "a", "pairs": [[1, 3], [3, 1]], "length": 3}, {"title": "b", "pairs": [], "length": 2}],
        "unit": "word",
    },
    beam_tree: {
        "columns": [
            [{"word": "[BOS]", "value": 1.0, "beam": True}],
            [{"word": "a", "value": 2 / 3, "beam": True, "parent": 0},
             {"word": "b", "value": 1 / 3, "beam": False, "parent": 0}],
            [{"word": "c", "value": 1 / 3, "beam": False, "parent": 0},
             {"word": "longer", "value": 0.3333333, "beam": True, "parent": 0}],
        ],
    },
    number_grid: {
        "values": [[0, 0, 0], [0, 1, 1]], "rows": ["", "a"], "columns": ["", "a", "longer"],
        "path": [[1, 2], [1, 1]], "hits": [[1, 1]], "xlabel": "x", "ylabel": "y",
    },
}  # fmt: skip


def test_figures_are_kept_with_their_numbers(tmp_path):
    draw(attention_maps, "maps", tmp_path, "A caption.", **DRAWN[attention_maps])
    kept = json.loads((tmp_path / "maps.json").read_text(encoding="utf-8"))
    assert kept["plot"] == "attention_maps" and kept["caption"] == "A caption."
    assert kept["panels"][0]["weights"][1] == [0, 1, 0] and kept["panels"][1]["weights"][0][0] == 0.3333
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_figure_is_drawn_again_from_its_numbers(plot, tmp_path):
    use_style()
    draw(plot, "x", tmp_path, **DRAWN[plot])
    first = (tmp_path / "x.png").read_bytes()
    (tmp_path / "x.png").write_bytes(b"")
    (tmp_path / "table.json").write_text('{"table": "t"}', encoding="utf-8")
    assert redraw(tmp_path) == ["x"]
    assert (tmp_path / "x.png").read_bytes() == first, "to the last pixel"


def cut_off(figure):
    """How many inches of what is drawn leave the figure, at its left, bottom, right and top."""
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return {
        side: round(d, 2) for side, d in zip("lbrt", (-box.x0, -box.y0, box.x1 - width, box.y1 - height)) if d > 0.02
    }


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_nothing_of_a_figure_is_cut(plot):
    use_style()
    figure = plot(**DRAWN[plot])
    assert cut_off(figure) == {}
    figure.text(0.9, 0.5, "a text that leaves the figure, which is a long one")
    assert list(cut_off(figure)) == ["r"]
    plt.close(figure)


def test_a_figure_of_an_unknown_plot_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"plot": "pie"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json: no plot 'pie' in lib\.pages\.figures"):
        redraw(tmp_path)


def test_every_committed_figure_can_be_drawn_again_and_nothing_of_it_is_cut(tmp_path, monkeypatch):
    figures, cut = project_root() / "figures", []
    monkeypatch.setattr(
        "companion.pages.figures.finished", lambda figure: cut.append(cut_off(figure)) or finished(figure)
    )
    for path in figures.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    drawn = redraw(tmp_path)
    assert drawn == sorted(path.stem for path in figures.glob("*.png"))
    assert all((tmp_path / path.name).read_bytes() for path in figures.glob("*.png"))
    assert {name: sides for name, sides in zip(drawn, cut, strict=True) if sides} == {}


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_whole(tmp_path / "f", "old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(tmp_path / "f", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text(encoding="utf-8") == "old"


def test_a_page_draws_committed_figures_only_where_it_is_told_to(monkeypatch):
    monkeypatch.delenv("COMPANION_FIGURES", raising=False)
    assert figures_folder() == project_root() / "runs" / "figures"
    monkeypatch.setenv("COMPANION_FIGURES", "/elsewhere")
    assert figures_folder() == Path("/elsewhere")


def test_clip_and_source():
    assert clip("a b c", 2) == "a b ..."
    assert clip("a b", 2) == "a b"
    shown = show_source(clip, ShownSource)
    assert repr(shown).startswith("def clip(") and "class ShownSource" in repr(shown)
    html = shown._repr_html_()
    assert html.startswith("<details><summary>clip, ShownSource</summary>") and "color:" in html


def test_learning_from_batches_made_as_they_come():
    model = tiny_model()
    before, threads = model.loss(batch_of())["loss"].item(), set()
    model.embedding.register_forward_pre_hook(lambda *_: threads.add(torch.get_num_threads()))
    with torch_threads(2):
        assert learn(model, (batch_of() for _ in range(20)), learning_rate=1e-2) is model
        assert torch.get_num_threads() == 2
    assert threads == {1}, "several would wait for each other"
    assert model.loss(batch_of())["loss"].item() < before - 0.5


def test_gradients_by_name():
    model = torch.nn.Linear(2, 1, bias=False)
    assert gradients(model, 3 * model(torch.tensor([[1.0, 2.0]])).sum())["weight"].tolist() == [[3.0, 6.0]]


@pytest.mark.parametrize("top", [0.0, 1.0])
def test_a_colour_bar_says_what_the_shades_are(top):
    for label, changes in (("weight", {}), ("cosine", {"label": "cosine"})):
        figure = attention_maps(panels=PANELS, rows="slot", columns="step", top=top, **changes)
        bars = [ax.get_ylabel() for ax in figure.axes[len(PANELS) :]]
        assert bars and set(bars) == {label}


def test_maximum_attention_counts_from_one():
    (ax, _) = maximum_attention(places=[0, 5], weights=[1.0, 0.5], windows=[0, 1], words=6, window=3, stride=3).axes
    assert ax.collections[0].get_offsets().tolist() == [[1, 1], [6, 2]]
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0.5, 3), (3.5, 3)]
    assert (ax.get_xlim(), ax.get_ylim()) == ((0.5, 6.5), (2.5, 0.5))


def test_a_loss_that_falls_a_hundredfold_has_a_logarithmic_axis():
    metrics = [{"step": n, "split": "train", "loss": 3.0, "nll": 3 / n, "comp": 9 / 20**n} for n in (1, 2, 3)]
    nll, comp = loss_curves(metrics, halved=[2]).axes
    assert (nll.get_yscale(), comp.get_yscale()) == ("linear", "log")
    assert [line.get_xdata() for line in nll.lines if line.get_linestyle() == ":"] == [[2, 2]]


def test_loss_curves_of_terms_that_only_training_has():
    metrics = [
        {"step": 1, "split": "train", "loss": 3.0, "nll": 2.0, "source_nll": 4.0, "seconds": 1.0},
        {"step": 1, "split": "val", "loss": 2.5, "nll": 2.5},
    ]
    axes = [ax for ax in loss_curves(metrics).axes if ax.get_title()]
    assert {ax.get_title(): len(ax.lines) for ax in axes} == {"nll": 2, "source_nll": 1}


def test_what_a_command_takes(tmp_path, monkeypatch):
    """Measured in a process of its own, which a large one has started; once."""
    (tmp_path / "in.json").write_text("{}", encoding="utf-8")
    large = torch.ones(100_000_000)  # 400 MB of this process
    command = ("json.tool", str(tmp_path / "in.json"), str(tmp_path / "out.json"))
    found = measured(tmp_path, "cost", *command, threads=1)
    assert large[0] == 1 and 0 < found["gb"] < 0.2 and found["seconds"] < 60
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == "{}\n"
    (tmp_path / "out.json").unlink()
    assert measured(tmp_path, "cost", *command) == found and not (tmp_path / "out.json").exists()


def test_a_command_that_fails_is_not_measured(tmp_path):
    with pytest.raises(RuntimeError, match=r"python -m json\.tool .*failed"):
        measured(tmp_path, "cost", "json.tool", str(tmp_path / "nothing.json"))
    assert not (tmp_path / "cost.json").exists()


def test_summaries_are_compared_at_one_length():
    text = Document("x", "", [""], [["One two three four five six seven."]], ["one two three."])
    systems = {"long": [["one two three four five six"]], "short": [["one two", "one two"]]}
    table, means = summary_table(systems, [text], CohanOptions(), words=3, seed=0)
    assert means["long"]["R-1"] == 100.0 and means["short"]["R-1"] == pytest.approx(200 / 3, abs=1e-3)
    assert list(table["words"]) == ["3", "3"] and list(table["repeated"]) == ["0%", "0%"]
    assert "distinct" not in table, "it was 100% in every table"
    table, _ = summary_table({"twice": [["a b c a b c"]] * 2}, [text] * 2, CohanOptions(), 6, seed=0)
    assert list(table.loc["twice", ["repeated", "copied"]]) == ["25%", "0%"]
    table, _ = summary_table({"copy": [["one two three four five"]]}, [text], CohanOptions(), 6, seed=0)
    assert table.loc["copy", "copied"] == "100%"


def test_papers_that_kept_runs_have_learned_from_are_left_out():
    corpus = load_corpus("pmc-sample")
    every, unseen = list(corpus.split("test")), unseen_papers(corpus)
    assert {d.id for d in every} - {d.id for d in unseen} == {"PMC4784345"} and len(unseen) == len(every) - 1
    assert [d.id for d in unseen_papers(corpus, 2)] == [d.id for d in unseen[:2]]


def test_what_a_run_takes_from_the_text():
    run, papers = open_run(project_root() / "trained" / "mem2mem"), unseen_papers(load_corpus("pmc-sample"), 3)
    alone, found = nll_by_text(run, papers[:1]), nll_by_text(run, papers)
    assert alone["its own"] == alone["the next one's"]
    assert found["its own"] < found["the next one's"] - 0.5


def test_the_facts_and_losses_of_a_run():
    run = open_run(project_root() / "trained" / "windowed")
    facts = dict(run_facts(run, "kept").rows)
    assert facts["model"].startswith("dynamic: 2,759,321 parameters") and "window 400" in facts["options"]
    assert " ," not in facts["options"], "what is empty is left out"
    losses = validation_losses(run)
    assert list(losses) == ["nll"] and losses.index.name == "step" and 6 <= len(losses) <= 16
    losses = validation_losses(open_run(project_root() / "trained" / "mem2mem"))
    assert {"nll", "comp", "read"} <= set(losses)


@pytest.mark.long
def test_what_is_repeated_although_trigrams_of_pieces_are_blocked():
    """By the hierarchical transformer, on the papers of the comparison."""
    papers = unseen_papers(load_corpus("pmc-sample"), 30)
    run = open_run(trained_folder("hierarchical_transformer"))
    split, rule = run.encode(papers), replace(run.decode, block_ngrams=3)
    found = list(written(run.model, batches(run.model, split, 16, run.vocabulary), rule))
    assert not any(repeated_ngrams(best.ids)[0] for best in found)
    summaries = {"HT": [run.vocabulary.sentences(best.ids) for best in found]}
    options = open_run(trained_folder("mem2mem")).options
    counts = np.array(score_systems(summaries, papers, options, 200)["HT"]["repeated"])
    repeated, every = counts.sum(0)
    page = (project_root() / "notebooks" / "compare.py").read_text(encoding="utf-8")
    most = np.sort(counts[:, 0])[-3:].sum()
    assert f"of {every:,} trigrams of words and marks {repeated} are, {most} of them in three of the 30" in page
