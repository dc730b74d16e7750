"""Runs that the project keeps: in 16 bits, scored twice, with a card."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import lib
from companion import trained
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.evaluation.scores import cut, score_systems
from lib.papers import PAPERS
from lib.papers.tables import Kept
from lib.system.files import project_root
from lib.train import main as train_main

KEPT = sorted(path.parent for path in (project_root() / "trained").glob("*/config.json"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two papers, trained for three steps."""
    folder = tmp_path_factory.mktemp("runs")
    averaged = ["--validate-every", "1", "--options.ranker-steps", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        for name, more in (("windowed", []), ("hierarchical_transformer", averaged)):
            data = ["--dataset", PAPERS[name].dataset, "--limit", "4", "--preset", "demo", "--steps", "3"]
            train_main([name, *data, *more, "--output", str(folder / name)])
    return folder


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "trained_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(trained, "render", list)
    return tmp_path


@pytest.mark.parametrize("name", ["windowed", "hierarchical_transformer"])
def test_a_kept_run_is_the_run_in_half_the_bits(runs, kept_in, name):
    """Of a model whose embedding is used twice; of one whose weights are an average of several."""
    trained.main(["keep", str(runs / name)])
    whole, half = lib.load(runs / name), lib.load(kept_in / name)
    assert half.config == {**whole.config, "weights": "best"} and half.metrics == whole.metrics
    for key, value in whole.model.state_dict().items():
        assert torch.equal(half.model.state_dict()[key], value.half().float()), key
    stored = load_file(kept_in / name / "best.safetensors")
    assert {v.dtype for v in stored.values()} == {torch.float16}
    assert (whole.config["weights"] == "average") == (name == "hierarchical_transformer")
    text = ["The first sentence is here. Another one follows. A third ends it."]
    assert half.summarize(text)[0].tokens


def test_what_is_too_large_for_the_repository_is_refused(runs, kept_in, monkeypatch, capsys):
    monkeypatch.setattr(trained, "MAX_BYTES", 1000)
    with pytest.raises(SystemExit, match="MB of weights in 16 bits"):
        trained.main(["keep", str(runs / "windowed")])
    assert not any(kept_in.iterdir())
    with pytest.raises(SystemExit, match="holds no run"):
        trained.main(["keep", str(kept_in)])


def test_a_run_of_another_corpus_or_preset_is_not_replaced(runs, kept_in):
    """A demo in place of a shipped run, whose card and scores would stay."""
    for _ in range(2):  # the same one again
        trained.main(["keep", str(runs / "windowed")])
    path = kept_in / "windowed" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"preset": "medium"}), encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=r"holds a run of preset medium on aclsum, and .* demo on aclsum: --replace"):
        trained.main(["keep", str(runs / "windowed")])
    assert path.read_bytes() == before
    trained.main(["keep", str(runs / "windowed"), "--replace"])
    assert json.loads(path.read_text(encoding="utf-8"))["preset"] == "demo"


def test_the_table_of_a_kept_run(runs, kept_in, monkeypatch):
    trained.main(["keep", str(runs / "windowed")])
    monkeypatch.setitem(PAPERS, "windowed", replace(PAPERS["windowed"], kept=Kept("aclsum", 20, 20, 3)))
    trained.main(["score", "windowed"])
    numbers = json.loads((kept_in / "windowed" / "table.json").read_text(encoding="utf-8"))
    rows = {row["label"]: row for row in numbers["rows"]}
    own = ["Windowed, plain beam search", "Windowed, trigram blocking"]
    assert list(rows) == [*own, "Lead (20 words)", "LexRank (sentences, 20 words)", "References"]
    assert numbers["documents"] == 3 and numbers["corpus"] == "aclsum" and numbers["columns"][-1] == "distinct"
    assert numbers["command"] == "python -m companion.trained score windowed"
    assert rows["Windowed, trigram blocking"]["scores"]["repeated"]["mean"] == 0
    assert rows["Lead (20 words)"]["words"] == 20 and rows["LexRank (sentences, 20 words)"]["words"] <= 20
    assert set(rows["References"]["scores"]) == {"repeated", "distinct"}
    assert {"Lead (20 words)", "Windowed, trigram blocking"} in [{p["first"], p["second"]} for p in numbers["pairs"]]
    with pytest.raises(SystemExit, match=r"unknown trained run 'window', did you mean 'windowed'"):
        trained.main(["score", "window"])


def test_hours_do_not_count_pauses(tmp_path):
    """Ten steps take 36 s; one pause, one resumption whose clock begins again."""
    seconds = [36, 72, 10_000, 10_036, 30, 66, 102]
    lines = [{"step": 10 * (i + 1), "split": "train", "seconds": s} for i, s in enumerate(seconds)]
    lines.append({"step": 70, "split": "val"})
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(m) + "\n" for m in lines), encoding="utf-8")
    assert Run(tmp_path, {}, None, None).hours == pytest.approx(7 * 36 / 3600)
    assert Run(tmp_path / "none", {}, None, None).hours == 0


def test_cut_and_distinct():
    options = PAPERS["mem2mem"].presets["demo"].options
    found = cut(["One two, three.", "--", "Four (five) six."], 5, options)
    assert found == ["one two , three .", "- -", "four ( five )"]
    assert cut(["One two."], 2, options) == ["one two ."] and cut(["One two."], 9, options) == ["one two ."]
    documents = [Document(str(i), "", [""], [["a b c d ."]], ["a b c ."]) for i in range(3)]
    scores = score_systems({"x": [["a b c d"], ["A b c d"], ["e f g h i"]]}, documents, options, words=4)["x"]
    assert scores["distinct"] == [0, 0, 1] and scores["words"] == 4 and scores["repeated"] == [(0, 2)] * 3


# -------------------------------------------------------------------------------------------- those that are there


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_run_of_the_project(folder):
    """It opens, has learned, fits into the repository, and its card tells what a reader has to know."""
    run = lib.load(folder)
    of = PAPERS[run.config["paper"]]
    assert of.kept_runs[folder.name] == run.config["variant"] and run.config["preset"] == "medium"
    assert sum(p.stat().st_size for p in folder.iterdir()) < 13_500_000
    assert (folder / "best.safetensors").stat().st_size <= trained.MAX_BYTES
    losses = [m["nll"] for m in run.metrics if m["split"] == "val"]
    assert losses[-1] < 0.9 * losses[0] and np.isfinite(losses).all()
    card = (folder / "README.md").read_text(encoding="utf-8")
    parts = ("Sample", "What it is bad at", "How to use it", "Scores", "How it was made", "Corpus and licence")
    assert tuple(re.findall("^## (.*)$", card, re.MULTILINE)) == parts
    prose = re.sub(r"<!-- table.*?<!-- end -->", "", card, flags=re.DOTALL)
    assert len(prose.split()) <= 700
    assert f"python -m lib.train {of.name} --dataset {run.config['corpus']} --preset medium" in card
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    own = next(row for row in table["rows"] if row["label"].endswith("trigram blocking"))
    assert own["steps"] == run.step and own["scores"]["distinct"]["mean"] > 93
