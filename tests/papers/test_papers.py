"""Papers as data: what they name must exist, and a fifth one needs nothing but itself."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lib
from companion import make_tables
from companion.results.tables import SHOWN, TABLES, TRAINED, Row, Table
from lib import score
from lib import train as train_command
from lib.data.corpus import Corpus
from lib.decoding.config import DecodeConfig
from lib.models.summarizer import Extractor
from lib.papers import PAPERS, resolve
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.paper import Paper, Preset, Variant, imported, read_presets
from lib.system.errors import InputError
from lib.system.files import say_once
from lib.system.settings import field_names
from lib.training.config import TrainConfig


def test_paper_presets_hold_what_the_papers_say_and_nothing_else():
    """No shortest summary, no blocked n-grams, and Adam's own epsilon: the authors' code alone has
    another."""
    rows = [
        (name, variant)
        for name, of in PAPERS.items()
        if "paper" in of.presets
        for variant in of.variants
    ]
    for name, variant in rows:
        chosen = resolve(name, "paper", variant)
        assert (chosen.decode.min_length, chosen.decode.block_ngrams) == (0, 0), variant
        assert chosen.train.epsilon == TrainConfig().epsilon == 1e-8, variant
    hierarchical = {
        preset: resolve("hierarchical_transformer", preset).train for preset in ("paper", "code")
    }
    assert hierarchical["code"].epsilon == 1e-9
    assert {train.beta2 for train in hierarchical.values()} == {0.998}
    for variant in ("+read", "TLM"):
        assert resolve("mem2mem", "small", variant).decode.min_length == 35, (
            "as the kept tables were made"
        )


# ---------------------------------------------------------------------------------
# names that do not exist


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_names_what_there_is(name):
    """Fields of presets and variants, rows of tables, and the runs that they need."""
    paper, configs = PAPERS[name], set()
    for variant in paper.variants.values():
        config = field_names(variant.kind.Config)
        assert {*variant.config} <= config and {*variant.train} <= {*paper.presets}
        assert all({*preset.config} <= config for preset in imported(variant.presets).values())
        configs |= config
    for preset in paper.presets.values():
        assert {*preset.config} <= configs and preset.variant in {"", *paper.variants}
        assert not {*preset.config} & (field_names(type(preset.options)) - {"vocab_size"}), (
            "the options determine it"
        )
    assert paper.usual in paper.variants
    assert {run.variant for run in TRAINED.values() if run.paper == name} <= {*paper.variants}
    assert TRAINED[paper.shipped.name].paper == name
    for made in (made for made in (*TABLES.values(), *SHOWN.values()) if made.paper == name):
        for row in made.rows:
            assert row.variant in {"", *paper.variants} and row.preset in {"", *paper.presets}


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (("mem2mum", "demo"), {}, "'mem2mum', did you mean 'mem2mem'"),
        (("mem2mem", "dmo"), {}, "unknown preset 'dmo', did you mean 'demo'"),
        (("mem2mem", "demo", "+raed"), {}, r"unknown variant '\+raed', did you mean '\+read'"),
        (("mem2mem", "demo"), {"options": {"vocab_sise": 3}}, "vocab_sise"),
        (("mem2mem", "demo"), {"stepps": 3}, "stepps"),
        (("mem2mem", "demo"), {"steps": 0}, "steps"),
    ],
)
def test_names_that_do_not_exist(arguments, changes, message):
    with pytest.raises(InputError, match=message):
        resolve(*arguments, **changes)


def test_presets_of_a_file():
    """A preset has the defaults, its base's fields and its own."""
    found = read_presets(Path(__file__).parents[1] / "cases" / "presets.toml", CohanOptions)
    first = Preset(
        CohanOptions(sections=2),
        {"hidden": 8},
        train=TrainConfig(steps=3, max_norm=None),
        decode=DecodeConfig(forbidden=(0, 1)),
        documents=5,
    )
    assert found["first"] == first
    train_of_second = replace(first.train, steps=4)
    config = {"hidden": 8, "embedding": 4}
    assert found["second"] == replace(first, config=config, variant="hred", train=train_of_second)


def test_remarks_on_a_corpus_are_printed(tmp_path, capsys):
    """Records that were left out, and what is known of a copy; once."""
    for split_name in ("train", "val", "test"):
        lines = [
            json.dumps({"id": n % 2, "document": "A text. Two.", "summary": "One."})
            for n in range(3)
        ]
        (tmp_path / f"{split_name}.jsonl").write_text(
            "\n".join([*lines, "{broken"]), encoding="utf-8"
        )
    setup = resolve("mem2mem", "demo")
    say_once.cache_clear()
    for _ in range(2):
        setup.open_corpus(str(tmp_path), "skip", progress=False)
    assert capsys.readouterr().err.count("left out because they cannot be used: 3 (") == 1
    pair = {"document": "A text. Two.", "summary": "One."}
    corpus = Corpus.from_records("arxiv", train=[pair], val=[pair], test=[pair])
    corpus.note = "no section names"
    setup.prepare(corpus, progress=False)
    assert "arxiv: no section names" in capsys.readouterr().err


def test_what_a_setup_keeps_and_changes():
    """None keeps what the preset says; a variant's options and least values come before what is
    given."""
    preset = PAPERS["read_again"].presets["paper"]
    setup = resolve(
        "read_again", "paper", "option 2 + copy", {"summary_tokens": 9}, steps=None, seed=4
    )
    assert setup.options == replace(preset.options, sentences=2, summary_tokens=9)
    assert setup.train == replace(preset.train, seed=4) and setup.decode == preset.decode
    assert resolve("read_again", "demo", "option 2 + copy").options.sentences == 4, (
        "more than the least"
    )
    assert (
        resolve("read_again", "paper", "option 2 + copy", {"sentences": 3}).options.sentences == 3
    )
    assert setup.recipe.paper == "read_again" and setup.recipe.variant == "option 2 + copy"
    weights = [resolve("read_again", "paper", keep_best=count).recipe.weights for count in (1, 2)]
    assert weights == ["best", "average"], "of several checkpoints"


def test_training_of_a_variants_own():
    """In the preset that it is for; None is a value there, and what is given comes before it."""
    preset, lstm, elman = (
        resolve("read_again", "paper", name).train for name in (None, "RAS-LSTM", "RAS-Elman")
    )
    own = {"batch_size": 32, "learning_rate": 0.1, "anneal": 2.0, "halve_after": None}
    assert lstm == replace(preset, **own) and elman == replace(lstm, learning_rate=0.5)
    assert resolve(
        "read_again", "paper", "RAS-LSTM", learning_rate=0.2, anneal=None
    ).train == replace(lstm, learning_rate=0.2)
    assert resolve("read_again", "demo", "RAS-LSTM").train == resolve("read_again", "demo").train


# ---------------------------------------------------------------------------------
# a fifth paper


@dataclass(frozen=True)
class LinearConfig:
    vocab_size: int = 1_000
    width: int = 8
    count: int = 2  # sentences of a summary


class LinearExtractor(Extractor):
    """A linear score of the mean embedding of each sentence; right are those whose words are mostly
    the summary's."""

    Config = LinearConfig

    def __init__(self, config):
        super().__init__()
        self.config, self.score = config, nn.Linear(config.width, 1)
        self.embedding = nn.Embedding(config.vocab_size, config.width)

    def scores(self, batch):
        words, mask = (
            self.embedding(batch.source.flatten()[batch.sentences.place]),
            batch.sentences.mask,
        )
        return self.score((words * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).squeeze(1)

    def loss(self, batch):
        rows = batch.sentences
        words, summaries = batch.source_extended.flatten()[rows.place], batch.target[rows.owner]
        shared = (words[..., None] == summaries[:, None]).any(-1) & rows.mask
        right = shared.sum(1) > rows.mask.sum(1) / 2
        scores = self.scores(batch)
        losses = F.binary_cross_entropy_with_logits(scores, right.to(scores), reduction="none")
        return {
            "loss": torch.stack(
                [part.mean() for part in losses.split(batch.sentence_counts.tolist())]
            ).mean()
        }

    def choose(self, batch):
        parts = self.scores(batch).split(batch.sentence_counts.tolist())
        return [
            sorted(part.topk(min(self.config.count, len(part))).indices.tolist()) for part in parts
        ]


FIFTH = Paper(
    "linear",
    "Linear extraction",
    {"plain": Variant(LinearExtractor)},
    "plain",
    {
        "demo": Preset(
            CohanOptions(section_tokens=60, summary_tokens=40, vocab_size=500),
            train=TrainConfig(batch_size=4, steps=30, learning_rate=3e-2),
            documents=8,
        )
    },
    dataset="aclsum",
)
FIFTH_TABLE = Table(
    "linear",
    "Linear, Table 1",
    (Row("Lead", part="lead"), Row("Linear", variant="plain")),
    (("Lead", "Linear"),),
)


@pytest.fixture(scope="module")
def fifth(tmp_path_factory):
    """Trained by the command that trains every paper."""
    folder = tmp_path_factory.mktemp("fifth")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        patch.setitem(PAPERS, "linear", FIFTH)
        train_command.main(
            ["linear", "--preset", "demo", "--model.count", "3", "--output", str(folder / "run")]
        )
    return folder / "run"


@pytest.fixture(autouse=True)
def there(monkeypatch):
    monkeypatch.setitem(PAPERS, "linear", FIFTH)
    monkeypatch.setitem(TABLES, "linear_table", FIFTH_TABLE)


def test_a_fifth_paper_learns(fifth):
    run = lib.load(fifth)
    losses = [m["loss"] for m in run.metrics if m["split"] == "train"]
    assert run.step == 30 and losses[-1] < losses[0]
    assert run.model.config == LinearConfig(500, 8, 3) and run.config["variant"] == "plain"


def test_a_fifth_paper_is_scored_and_tabulated(fifth, tmp_path, capsys):
    score.main(["run", str(fifth), "--dataset", "aclsum", "--documents", "4"])
    scores = json.loads((fifth / "scores.json").read_text(encoding="utf-8"))
    assert scores["parts"]["summaries"] == scores["parts"]["extracts"] and len(scores["ids"]) == 4
    lines = [
        json.loads(line)
        for line in (fifth / "summaries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert all(len(line["summary"]) == 3 for line in lines)
    base = [
        "baselines",
        "linear",
        "--dataset",
        "aclsum",
        "--documents",
        "4",
        "--output",
        str(tmp_path / "base.json"),
    ]
    score.main(base)
    rows = [f"Linear={fifth / 'scores.json'}", f"Lead={tmp_path / 'base.json'}"]
    made = tmp_path / "t.json"
    make_tables.main(["table", "linear_table", *rows, "--corpus", "aclsum", "--output", str(made)])
    numbers = json.loads(made.read_text(encoding="utf-8"))
    assert [row["label"] for row in numbers["rows"]] == ["Lead", "Linear"]
    expected = np.mean(scores["parts"]["summaries"]["rouge"], 0)
    assert [numbers["rows"][1]["scores"][c]["mean"] for c in numbers["columns"]] == pytest.approx(
        expected, abs=0.01
    )
    text = made.with_suffix(".md").read_text(encoding="utf-8")
    assert "Linear - Lead" in text
    assert "Published" not in text, "there is nothing"


def test_a_seed_makes_the_weights():
    corpus = resolve("mem2mem", "demo").open_corpus("aclsum", limit=2, progress=False)
    first, other, again = (
        resolve("mem2mem", "demo", seed=s).build(corpus).bridge.weight for s in (0, 1, 0)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_paper_preset_of_mem2mem():
    setup = resolve("mem2mem", "paper")
    t, options = setup.train, setup.options
    assert (t.optimizer, t.learning_rate, t.batch_size, t.epochs, t.max_norm) == (
        "adam",
        2e-4,
        16,
        15,
        2.0,
    )
    assert (options.sections, options.section_tokens, options.summary_tokens) == (4, 500, 200)
    assert options.vocab_size == 50_000
