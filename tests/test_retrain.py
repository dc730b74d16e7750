"""Models that learn on after a change: what cannot learn stays, and the table is of pairs with the same seed."""

import json

import numpy as np
import pytest

from companion.studies import retrain
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig
from lib.system.files import trained_folder
from tests.conftest import RAGGED, VOCAB, double
from tests.test_interventions import SIZES, transformer

SHIPPED = str(trained_folder("hierarchical_transformer_copying"))
QUICK = ["--dataset", "pmc-sample", "--set", "paragraphs=2", "summary_tokens=8", "--steps", "1", "--documents", "2"]


def moved(model, change):
    """Names of the weights that learning moves."""
    before = {name: p.clone() for name, p in model.named_parameters()}
    retrain.train_on(model, RAGGED, change, retrain.Setting(steps=3, batch_size=2, learning_rate=0.01), seed=0)
    return {name for name, p in model.named_parameters() if not p.equal(before[name])}


def test_a_paragraph_that_attends_to_itself_alone_learns_no_queries_and_keys():
    model = transformer(copying=True)
    still = {f"global_layers.{i}.between.{j}.{kind}" for i in (0, 1) for j in (0, 1) for kind in ("weight", "bias")}
    changes = [retrain.row_of(model, name).change for name in ("nothing", "layers cut")]
    whole, cut = (moved(transformer(copying=True), change) for change in changes)
    assert whole - cut == still
    assert cut and cut < whole


def test_the_same_seed_learns_the_same():
    sizes = HierarchicalTransformerConfig(VOCAB, **{**SIZES, "dropout": 0.5})
    first, second = (double(HierarchicalTransformer, sizes) for _ in range(2))
    assert moved(first, retrain.NOTHING) == moved(second, retrain.NOTHING)
    assert all(a.equal(b) for a, b in zip(first.parameters(), second.parameters()))


def test_differences_are_to_the_unchanged_model_with_the_same_seed():
    results = [
        {"row": row, "seed": seed, "before": [-5.0 - less] * 12, "after": [-4.0 + seed - less / 2] * 12}
        for row, less in (("nothing", 0.0), ("cut", 0.5))
        for seed in (0, 1)
    ]
    found = retrain.differences(results)
    assert found["nothing"]["after"].mean == 0
    assert found["cut"]["before"].mean == pytest.approx(-0.5)
    after = found["cut"]["after"]
    assert (after.mean, after.low, after.high) == pytest.approx((-0.25, -0.25, -0.25)), "seeds stay in pairs"


def test_the_command_goes_on_where_it_stopped(tmp_path, capsys):
    path = tmp_path / "r.json"
    arguments = [SHIPPED, "layers cut", "graph=similarity", *QUICK, "--seeds", "0", "--output", str(path)]
    retrain.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert [r["row"] for r in saved["results"]] == ["nothing", "layers cut", "graph=similarity"]
    assert lines[-3:][0].startswith("| nothing | +0.000")
    assert all(np.shape(r[when]) == (2,) for r in saved["results"] for when in ("before", "after"))
    assert saved["results"][0]["before"] != saved["results"][1]["before"]
    saved["results"][2]["after"] = [-1.0, -1.0]
    path.write_text(json.dumps(saved), encoding="utf-8")
    retrain.main(arguments)
    assert json.loads(path.read_text(encoding="utf-8")) == saved, "nothing is trained twice"
    with pytest.raises(SystemExit, match="of another run or setting"):
        retrain.main([*arguments, "--learning-rate", "0.1"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["layers ct"], "did you mean 'layers cut'"),
        (["grph=similarity"], "did you mean 'graph'"),
        (["graph=lexical"], "graph"),
        (["paragraphs=two"], "paragraphs=two: a whole number"),
        (["sections backwards"], "'sections backwards' changes no part"),
        (["layers cut", "--steps", "0"], "--steps must be at least 1"),
        (["layers cut", "--documents", "1"], "--documents must be at least 2"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, reason):
    with pytest.raises(SystemExit, match=reason):
        retrain.main([SHIPPED, "--dataset", "pmc-sample", *arguments])
