"""Runs that the project keeps: in 16 bits, scored twice, with a card."""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import lib
from companion import trained
from companion.results.tables import TRAINED, TrainedRun
from lib.decoding.field import read_field
from lib.papers import PAPERS
from lib.system.files import project_root
from tests.conftest import case_tables, train_runs

FIELDS = case_tables("fields")
KEPT = sorted(path.parent for path in (project_root() / "trained").glob("*/config.json"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two papers, trained for three steps."""
    demo, wanted = ["--limit", "4", "--preset", "demo", "--steps", "3"], {}
    averaged = ["--validate-every", "1", "--options.ranker-steps", "2"]
    for name, more in (("windowed", []), ("hierarchical_transformer_copying", averaged)):
        kept = TRAINED[name]
        dataset = ["--dataset", PAPERS[kept.paper].dataset]
        wanted[name] = [kept.paper, "--variant", kept.variant, *dataset, *demo, *more]
    return train_runs(tmp_path_factory.mktemp("runs"), wanted)


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "trained_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(trained, "render", list)
    return tmp_path


@pytest.mark.parametrize("name", ["windowed", "hierarchical_transformer_copying"])
def test_a_kept_run_is_the_run_in_half_the_bits(runs, kept_in, name):
    """Of a model whose embedding is used twice; of one whose weights are an average of several."""
    trained.main(["keep", str(runs / name)])
    whole, half = lib.load(runs / name), lib.load(kept_in / name)
    assert half.config == {**whole.config, "weights": "best"} and half.metrics == whole.metrics
    for key, value in whole.model.state_dict().items():
        assert torch.equal(half.model.state_dict()[key], value.half().float()), key
    stored = load_file(kept_in / name / "best.safetensors")
    assert {v.dtype for v in stored.values()} == {torch.float16}
    assert (whole.config["weights"] == "average") == (name == "hierarchical_transformer_copying")
    text = ["The first sentence is here. Another one follows. A third ends it."]
    assert half.summarize(text)[0].tokens
    with pytest.raises(SystemExit, match="holds a run already: give --replace"):
        trained.main(["keep", str(runs / name)])
    trained.main(["keep", str(runs / name), "--replace"])


def test_the_table_of_a_kept_run(runs, kept_in, monkeypatch):
    trained.main(["keep", str(runs / "windowed")])
    monkeypatch.setitem(
        TRAINED, "windowed", TrainedRun("windowed", "dynamic", words=20, documents=3)
    )
    trained.main(["score", "windowed"])
    numbers = json.loads((kept_in / "windowed" / "table.json").read_text(encoding="utf-8"))
    rows = {row["label"]: row for row in numbers["rows"]}
    own = ["Windowed, plain beam search", "Windowed, trigram blocking"]
    assert list(rows) == [*own, "Lead (20 words)", "LexRank (sentences, 20 words)", "References"]
    assert (
        numbers["documents"] == 3
        and numbers["corpus"] == "aclsum"
        and numbers["columns"][-1] == "distinct"
    )
    assert numbers["command"] == "python -m companion.trained score windowed"
    assert rows["Windowed, trigram blocking"]["scores"]["repeated"]["mean"] == 0
    assert (
        rows["Lead (20 words)"]["words"] == 20
        and rows["LexRank (sentences, 20 words)"]["words"] <= 20
    )
    assert set(rows["References"]["scores"]) == {"repeated", "distinct"}
    assert {"Lead (20 words)", "Windowed, trigram blocking"} in [
        {p["first"], p["second"]} for p in numbers["pairs"]
    ]
    with pytest.raises(SystemExit, match=r"unknown trained run 'window', did you mean 'windowed'"):
        trained.main(["score", "window"])


# ---------------------------------------------------------------------------------
# those that are there


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_run_of_the_project(folder):
    """It opens, has learned, fits into the repository, and its card tells what a reader has to
    know."""
    run = lib.load(folder)
    kept = TRAINED[folder.name]
    assert (kept.paper, kept.variant) == (run.config["paper"], run.config["variant"])
    assert run.config["preset"] == "medium"
    assert sum(p.stat().st_size for p in folder.iterdir()) < 13_500_000
    assert (folder / "best.safetensors").stat().st_size <= 12_000_000
    said = r"The model was trained on \d\d,\d{3} (?:\w+ ){2}\(\w+\)\. It is not to be trusted"
    assert re.match(said, run.caution)
    losses = [m["nll"] for m in run.metrics if m["split"] == "val"]
    assert losses[-1] < 0.9 * losses[0] and np.isfinite(losses).all()
    card = (folder / "README.md").read_text(encoding="utf-8")
    parts = (
        "Sample",
        "What it is bad at",
        "How to use it",
        "Scores",
        "How it was made",
        "Corpus and licence",
    )
    assert tuple(re.findall("^## (.*)$", card, re.MULTILINE)) == parts
    prose = re.sub(r"<!-- table.*?<!-- end -->", "", card, flags=re.DOTALL)
    assert len(prose.split()) <= 500
    assert (
        f"python -m lib.train {kept.paper} --dataset {run.config['corpus']} --preset medium" in card
    )
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    own = next(row for row in table["rows"] if row["label"].endswith("trigram blocking"))
    assert own["steps"] == run.updates and own["scores"]["distinct"]["mean"] > 93
    plain, ruled = (row["scores"]["R-1"]["mean"] for row in table["rows"][:2])
    size = f"| {own['parameters']:,} | {run.updates:,} | {table['hours']} |"
    line = f"| `trained/{folder.name}` {size} {min(losses):.3f} | {plain:.2f} | {ruled:.2f} |"
    assert line in (project_root() / "docs" / "reproduce.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_text_of_another_field_is_recognised(folder):
    """The texts are our own; error rates on corpora are in field.json."""
    field = read_field(folder)
    found = {name: field.is_unlike([[text]]) for name, text in FIELDS.items()}
    own = "dispatch" if folder.name == "read_again" else "paper"
    missed = {"history"} if folder.name == "read_again" else set()  # written in a newspaper's words
    assert {name for name, unlike in found.items() if unlike} == FIELDS.keys() - {own} - missed
    assert field.warned < 0.05 and field.missed < 0.1
    assert all(
        name in field.warning
        for name in (field.texts, f"{field.warned:.0%}", f"{field.missed:.0%}")
    )
