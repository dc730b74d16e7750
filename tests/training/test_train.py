"""Training: results, resuming, several processes, and the command."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.data.batch import make_batch
from lib.data.split import Split
from lib.data.vocabulary import EOS, Vocabulary
from lib.decoding.run import Run
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers import PAPERS, resolve
from lib.system.devices import Process
from lib.system.errors import InputError, RunError
from lib.system.files import project_root
from lib.system.metrics import read_metrics
from lib.train import draw_losses, main, parse, report
from lib.training import console, losses, parts
from lib.training import loop as training
from lib.training.checkpoint import Checkpoint
from lib.training.config import TrainConfig
from lib.training.console import duration, outcome, plan
from lib.training.folder import (
    Recipe,
    kept_checkpoints,
    load_tensors,
    load_weights,
    read_meta,
)
from lib.training.loop import make_optimizer, train
from tests.conftest import make_planted_corpus

MEM2MEM = Recipe("mem2mem", "+read")
WINDOWED = Recipe("windowed", "dynamic")
READ_AGAIN = Recipe("read_again", "read-again gru")
CONFIG = TrainConfig(
    batch_size=4, steps=8, learning_rate=1e-2, validate_every=3, save_every=2, log_every=1, seed=5
)
BY_WORDS = replace(CONFIG, loss_mean="words", steps=4)
EMPTY = replace(CONFIG, steps=10)  # two documents for each of two processes
# 3 documents of 15 words: two processes have two and one
UNEVEN = replace(CONFIG, batch_size=20, batch_tokens=45)


def model(seed=0):
    torch.manual_seed(seed)
    return Mem2Mem(Mem2MemConfig(20, embedding=6, hidden=8, bottleneck=6, slots=2, compression=4))


def tiny_windowed():
    torch.manual_seed(0)
    return Windowed(WindowedConfig(20, embedding=6, hidden=4, window=8, stride=6))


def reader(dropout=0.5):
    torch.manual_seed(0)
    return ReadAgain(
        ReadAgainConfig(20, 20, embedding=5, hidden=6, encoder="read-again gru", dropout=dropout)
    )


def ragged(corpus):
    """The corpus with summaries of 1 to 5 words."""
    cut = {
        name: Split.of(
            [
                replace(d, target=np.append(d.target[: i % 5], EOS))
                for i, d in enumerate(corpus[name])
            ]
        )
        for name in ("train", "val")
    }
    return replace(corpus, splits={**corpus.splits, **cut})


def often_empty(corpus):
    """Leave no word in three of five summaries."""
    documents = [
        replace(document, target=document.target[-1:]) if i % 5 < 3 else document
        for i, document in enumerate(corpus["train"])
    ]
    return replace(corpus, splits={**corpus.splits, "train": Split.of(documents)})


class Probed(Mem2Mem):
    """A model of a user's own: a named term has a weight that the loss does not depend on."""

    def __init__(self, config):
        super().__init__(config)
        self.probe = torch.nn.Parameter(torch.ones(3))

    def loss(self, batch):
        return {**super().loss(batch), "probe": self.probe.sum()}


def probed():
    torch.manual_seed(0)
    return Probed(model().config).double()


def trained(corpus, folder, config=CONFIG, network=None, recipe=MEM2MEM, resume=False):
    return train(recipe, network or model(), corpus, config, folder, resume=resume, progress=False)


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    return all(torch.equal(a[k], b[k]) for k in a)


def logged(run, split):
    return [m for m in run.metrics if m["split"] == split]


# ---------------------------------------------------------------------------------
# results


@pytest.mark.slow
def test_training_learns_and_leaves_a_run(planted_corpus, tmp_path):
    run = trained(planted_corpus, tmp_path / "run", replace(CONFIG, steps=60))
    losses = logged(run, "train")
    assert [m["step"] for m in losses] == list(range(1, 61))
    assert sum(m["nll"] for m in losses[-5:]) < 0.8 * sum(m["nll"] for m in losses[:5])
    assert all(
        m["loss"] == pytest.approx(m["nll"] + 1e-4 * m["comp"] + 1e-2 * m["read"]) for m in losses
    )
    assert [m["step"] for m in logged(run, "val")] == [*range(3, 61, 3)]
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["train"]["learning_rate"] == 1e-2 and config["data"] == planted_corpus.fingerprint
    assert config["made_with"]["torch"] == torch.__version__
    assert {p.name for p in (tmp_path / "run").iterdir()} - {".lock"} == {
        "best.safetensors", "config.json", "last.safetensors", "metrics.jsonl", "vocabulary.txt",
    }  # fmt: skip
    assert same(load_weights(model(3), tmp_path / "run", "last"), run.model)


def test_the_seed_determines_the_weights(planted_corpus, tmp_path):
    a, b = (trained(planted_corpus, tmp_path / name) for name in "ab")
    c = trained(planted_corpus, tmp_path / "c", replace(CONFIG, seed=6))
    assert same(a.model, b.model) and not same(a.model, c.model)


def test_validation_is_the_mean_over_documents(planted_corpus):
    ours = training.evaluate_loss(model(), planted_corpus["val"], batch_size=4, vocab_size=20)
    each = [training.evaluate_loss(model(), [d], 1, 20) for d in planted_corpus["val"]]
    for term, value in ours.items():
        assert value == pytest.approx(sum(e[term] for e in each) / len(each), rel=1e-5)


def test_best_is_the_step_with_the_least_validation_loss(planted_corpus, tmp_path, monkeypatch):
    losses = iter([3.0, 1.0, 2.0, 3.0, 1.0])  # at steps 3, 6 and 8; at 3 and 6
    monkeypatch.setattr(training, "evaluate_loss", lambda *_, **__: {"loss": next(losses)})
    trained(planted_corpus, tmp_path / "a")
    assert read_meta(tmp_path / "a" / "best.safetensors")["step"] == 6
    six = trained(planted_corpus, tmp_path / "b", replace(CONFIG, steps=6))
    assert same(load_weights(model(3), tmp_path / "a", "best"), six.model)


def test_the_best_checkpoints_are_kept_and_averaged(planted_corpus, tmp_path):
    run = trained(planted_corpus, tmp_path / "run", replace(CONFIG, validate_every=1, keep_best=3))
    losses = {m["step"]: m["loss"] for m in logged(run, "val")}
    best = sorted(losses, key=losses.__getitem__)[:3]
    assert kept_checkpoints(run.folder) == [f"best-{step}" for step in best]
    weights = [load_weights(model(), run.folder, f"best-{step}").state_dict() for step in best]
    average = load_weights(model(), run.folder, "average").state_dict()
    for name, value in average.items():
        assert torch.allclose(value, sum(w[name] for w in weights) / 3, atol=1e-7), name
    first = load_weights(model(), run.folder, "best").state_dict()
    assert all(torch.equal(value, weights[0][name]) for name, value in first.items())


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_mean_over_all_words_of_an_update(planted_corpus, tmp_path, accumulate):
    """The gradient and the losses are those of all words, in however many parts they are
    computed."""
    corpus, network = ragged(planted_corpus), reader(dropout=0.0).double()
    config = replace(
        BY_WORDS, steps=1, batch_size=6, accumulate=accumulate, optimizer="sgd", max_norm=None
    )
    documents = parts.BucketSampler(corpus["train"].source_lengths, 6, config.seed).batch(0)

    def naive(documents):
        summed = [network(make_batch([d], 20))["nll"] * len(d.target) for d in documents]
        return torch.stack(summed).sum() / sum(len(d.target) for d in documents)

    expected = naive([corpus["train"][i] for i in documents])
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    gradients = dict(
        zip(before, torch.autograd.grad(expected, list(network.parameters()), allow_unused=True))
    )
    run = trained(corpus, tmp_path / str(accumulate), config, network, READ_AGAIN)
    assert run.metrics[0]["loss"] == pytest.approx(expected.item(), abs=1e-10)
    for name, p in run.model.named_parameters():
        step = 0 if gradients[name] is None else config.learning_rate * gradients[name]
        assert torch.allclose(p, before[name] - step, rtol=0, atol=1e-10), name
    network.eval()
    assert run.metrics[-1]["loss"] == pytest.approx(naive(list(corpus["val"])).item(), abs=1e-10)


def test_a_batch_in_parts_is_the_same_batch(planted_corpus, tmp_path):
    whole = trained(planted_corpus, tmp_path / "whole", network=model().double())
    parts = trained(
        planted_corpus, tmp_path / "parts", replace(CONFIG, accumulate=3), model().double()
    )
    for a, b in zip(whole.model.parameters(), parts.model.parameters()):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)
    assert [m["comp"] for m in whole.metrics] == pytest.approx(
        [m["comp"] for m in parts.metrics], abs=1e-10
    )


def test_a_weight_used_twice_is_stored_once(planted_corpus, tmp_path):
    run = trained(planted_corpus, tmp_path, network=tiny_windowed(), recipe=WINDOWED)
    stored = load_tensors(tmp_path / "last.safetensors")
    assert "model.embedding.weight" in stored and "model.pointer.vocabulary.weight" not in stored
    again = load_weights(tiny_windowed(), tmp_path, "last")
    assert again.pointer.vocabulary.weight is again.embedding.weight and same(again, run.model)


def test_bf16_is_used_in_training_and_validation(planted_corpus, tmp_path, monkeypatch):
    modes = []

    def autocast(self):
        modes.append(self.model.training)
        return torch.autocast("cpu", torch.bfloat16)

    config = replace(CONFIG, steps=1, bf16=True)
    monkeypatch.setattr(training.devices, "has_bf16_products", lambda: False)
    with pytest.warns(UserWarning, match="no products in bfloat16"):
        none = trained(planted_corpus, tmp_path / "none", config)
    full = trained(planted_corpus, tmp_path / "full", replace(config, bf16=False))
    assert none.metrics[0]["loss"] == full.metrics[0]["loss"]
    assert (
        none.config["made_with"]["products"] == "float32"
        and "products" not in full.config["made_with"]
    )
    monkeypatch.setattr(training.devices, "has_bf16_products", lambda: True)
    half = trained(planted_corpus, tmp_path / "half", config)
    assert (
        half.metrics[0]["loss"]
        != full.metrics[0]["loss"]
        == pytest.approx(half.metrics[0]["loss"], rel=0.01)
    )
    assert half.config["made_with"]["products"] == "bfloat16"
    monkeypatch.setattr(parts.Updates, "autocast", autocast)
    trained(planted_corpus, tmp_path / "spied", config)
    assert set(modes) == {True, False}


def test_global_settings_are_for_training_only(planted_corpus, tmp_path, monkeypatch):
    network, seen = model(), []
    loss = network.loss

    def losses(batch):
        seen.append((torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()))
        return loss(batch)

    monkeypatch.setattr(network, "loss", losses)
    trained(planted_corpus, tmp_path, replace(CONFIG, steps=1, matmul_precision="high"), network)
    assert set(seen) == {("high", False)}
    assert (
        torch.get_float32_matmul_precision() == "highest"
        and torch.backends.cuda.cudnn_sdp_enabled()
    )


# ---------------------------------------------------------------------------------
# optimizer and its rate


def test_schedules_of_the_rate():
    warm = TrainConfig(learning_rate=2.0, warmup=4)
    assert [warm.rate(s) for s in (1, 4, 16)] == pytest.approx([2 / 8, 2 / 2, 2 / 4])
    cosine = TrainConfig(learning_rate=2.0, warmup=4, cosine=6)
    assert [cosine.rate(s) for s in (1, 2, 4, 6, 7, 10, 12)] == pytest.approx(
        [0.5, 1, 2, 1.5, 1, 0, 0]
    )
    halved = TrainConfig(optimizer="sgd", learning_rate=2.0, halve_after=5)
    assert [halved.rate(1, epoch + 0.5) for epoch in range(8)] == [2, 2, 2, 2, 2, 1, 0.5, 0.25]
    assert TrainConfig(learning_rate=0.5).rate(100) == 0.5
    assert TrainConfig(learning_rate=0.5, anneal=5.0).rate(1, rises=2) == pytest.approx(0.02)


@pytest.mark.parametrize(
    "bad", [{"cosine": 6}, {"seed": 2**63}, {"learning_rate": math.nan}, {"anneal": 0.5}]
)
def test_train_config_is_checked(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        TrainConfig(**bad)


def test_plain_sgd_with_and_without_clipping(planted_corpus, tmp_path):
    """A step is the rate times the gradient, which is cut to `max_norm`."""
    config = TrainConfig(batch_size=4, steps=1, optimizer="sgd", learning_rate=0.5, max_norm=None)
    reference = tiny_windowed()
    documents = parts.BucketSampler(planted_corpus["train"].source_lengths, 4, 0).batch(0)
    reference.loss(make_batch([planted_corpus["train"][i] for i in documents], 20))[
        "loss"
    ].backward()
    gradient = reference.embedding.weight.grad
    norm = torch.nn.utils.get_total_norm(
        [p.grad for p in reference.parameters() if p.grad is not None]
    )
    for max_norm, factor in ((None, 1.0), (norm.item() / 4, 0.25)):
        clipped = replace(config, max_norm=max_norm)
        run = trained(planted_corpus, tmp_path / str(factor), clipped, tiny_windowed(), WINDOWED)
        expected = reference.embedding.weight - 0.5 * factor * gradient
        assert torch.allclose(run.model.embedding.weight, expected, atol=1e-6)


def test_settings_reach_the_optimizer(planted_corpus, tmp_path):
    """Adam's first step is the rate times the gradient's sign; decay changes the gradient."""
    steps = {}
    for name, changes in {
        "plain": {"learning_rate": 1e-3},
        "warm": {"learning_rate": 1e-2, "warmup": 100},
        "decayed": {"learning_rate": 1e-3, "weight_decay": 10.0},
    }.items():
        network = tiny_windowed()
        start = network.embedding.weight.detach().clone()
        trained(
            planted_corpus,
            tmp_path / name,
            TrainConfig(batch_size=4, steps=1, **changes),
            network,
            WINDOWED,
        )
        steps[name] = (network.embedding.weight.detach() - start)[5:]
    assert steps["warm"].abs().max() == pytest.approx(1e-2 * 100**-1.5, rel=0.01)
    assert steps["plain"].abs().max() == pytest.approx(1e-3, rel=0.01)
    assert not torch.equal(steps["decayed"].sign(), steps["plain"].sign())
    (group,) = make_optimizer(model(), TrainConfig(beta2=0.998, epsilon=1e-9)).param_groups
    assert group["betas"] == (0.9, 0.998) and group["eps"] == 1e-9


def test_the_rate_falls_where_the_validation_loss_rises(planted_corpus, tmp_path, monkeypatch):
    """It is divided by `anneal` each time, also in a run that is resumed after an end that is no
    validation."""
    config = TrainConfig(
        batch_size=4,
        steps=16,
        optimizer="sgd",
        learning_rate=3.0,
        anneal=2.0,
        max_norm=None,
        validate_every=2,
    )
    rates, rate = [], TrainConfig.rate
    monkeypatch.setattr(TrainConfig, "rate", lambda *args: rates.append(rate(*args)) or rates[-1])
    straight = trained(planted_corpus, tmp_path / "straight", config, tiny_windowed(), WINDOWED)
    losses = [m["loss"] for m in logged(straight, "val")]
    expected = [
        3.0 / 2 ** sum(b > a for a, b in pairwise(losses[: step // 2])) for step in range(16)
    ]
    assert rates == expected and len(set(expected)) > 2
    for steps in (7, 16):
        part = replace(config, steps=steps)
        resumed = trained(
            planted_corpus, tmp_path / "two", part, tiny_windowed(), WINDOWED, resume=True
        )
    assert same(resumed.model, straight.model)


# ---------------------------------------------------------------------------------
# parts that fit memory


@pytest.mark.parametrize(
    ("peak", "memory", "expected"),
    [
        (5, 100, 1),  # 1 at rest, and 4 for each of 16 parts: 1 + 64 in one part, of 80
        (5, 81.25, 1),  # of 65: just enough
        (5, 80, 2),
        (5, 20, 8),  # 64 in 15 at a time would be five parts
        (20, 10, 64),  # more than was measured: 16 * 19 in 7
        (5, 1, 16),  # not even what is at rest
    ],
)
def test_parts_that_fit(peak, memory, expected):
    """Into four fifths of the memory, as a power of two."""
    assert parts.parts_that_fit(peak, 1, 16, memory) == expected
    assert parts.parts_that_fit(peak + 7, 1 + 7, 16, memory + 7 / 0.8) == expected


def test_parts_of_a_run_that_leaves_them_to_the_cpu(planted_corpus, tmp_path, monkeypatch):
    """4 times 15 words, at most 20 of them at once, are three parts. A finished run keeps the
    number."""
    monkeypatch.setattr(parts, "PART_WORDS", 20)
    free, three = (replace(CONFIG, accumulate=n) for n in (None, 3))
    own = trained(planted_corpus, tmp_path / "free", free, model().double())
    assert same(own.model, trained(planted_corpus, tmp_path / "3", three, model().double()).model)
    monkeypatch.setattr(parts, "PART_WORDS", 10**9)
    opened = trained(planted_corpus, tmp_path / "free", free, model().double(), resume=True)
    assert opened.config["made_with"]["parts"] == 3


def test_parts_of_an_update_follow_from_a_gpus_memory(planted_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PART_WORDS", 20)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: None)
    monkeypatch.setattr(parts.Updates, "measure", lambda self, count, has_moments: (21, 1))
    monkeypatch.setattr(Process, "gather", lambda self, own: [*own, 4] if self.world > 1 else own)

    def parts_of(name, memory, world=1, **changes):
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=memory)
        )
        config = replace(CONFIG, **{"accumulate": None, "batch_tokens": 60, **changes})
        (tmp_path / name).mkdir()
        loop = training._Loop(
            MEM2MEM, model(), planted_corpus, config, tmp_path / name, Process(0, world)
        )
        loop.device = loop.updates.device = torch.device("cuda", 0)
        loop.start()
        return loop.updates.count

    assert parts_of("a", memory=100) == 1, "3 * 20 + 1 of 80 bytes"
    assert parts_of("b", memory=50) == 2
    assert parts_of("c", memory=100, accumulate=2) == 2, "the given number"
    assert parts_of("d", memory=100, world=2) == 4, "the largest number of all processes"


# ---------------------------------------------------------------------------------
# resuming


# options and a model; the method at one of whose calls the run stops, before its work or after it
RESUMED = [
    ({}, "mem2mem", (training._Loop, "step", 2, False)),
    ({"accumulate": 3, "save_every": 3}, "mem2mem", (training._Loop, "validate", 1, False)),
    ({"optimizer": "adagrad", "batch_tokens": 60}, "windowed", (Checkpoint, "_save", 3, False)),
    (
        {"optimizer": "sgd", "anneal": 2.0, "loss_mean": "words"},
        "mem2mem",
        (Checkpoint, "log", 4, True),
    ),
    (
        {"warmup": 2, "cosine": 3, "validate_every": 1, "keep_best": 3},
        "windowed",
        (Checkpoint, "_save", 6, True),
    ),
    ({"save_every": 1}, "read_again", (training._Loop, "step", 5, True)),  # with dropout
]
NETWORKS = {
    "mem2mem": (MEM2MEM, model),
    "windowed": (WINDOWED, tiny_windowed),
    "read_again": (READ_AGAIN, reader),
}


@pytest.mark.parametrize(("options", "paper", "stop"), RESUMED)
def test_a_resumed_run_is_the_uninterrupted_one(
    planted_corpus, tmp_path, monkeypatch, options, paper, stop
):
    config, (recipe, make), (owner, method, number, works) = (
        replace(CONFIG, **options),
        NETWORKS[paper],
        stop,
    )
    go_on, calls = getattr(owner, method), []

    def stopped(self, *given, **named):
        calls.append(method)
        made = go_on(self, *given, **named) if works or len(calls) < number else None
        if len(calls) == number:
            raise KeyboardInterrupt
        return made

    whole = trained(planted_corpus, tmp_path / "whole", config, make(), recipe)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, method, stopped)
        trained(planted_corpus, tmp_path / "cut", config, make(), recipe)
    resumed = trained(planted_corpus, tmp_path / "cut", config, make(), recipe, resume=True)
    weights = (
        {p.name: p.read_bytes() for p in run.folder.glob("*.safetensors")}
        for run in (whole, resumed)
    )
    assert next(weights) == next(weights), "bit for bit"
    without_time = ([m | {"seconds": 0} for m in run.metrics] for run in (whole, resumed))
    assert next(without_time) == next(without_time)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_stop_is_saved_first(planted_corpus, tmp_path, monkeypatch, number):
    if signal.getsignal(number) is signal.SIG_IGN:  # so do tests in the background of a shell
        signal.signal(number, signal.default_int_handler)
    config = replace(CONFIG, save_every=100, validate_every=100)
    whole = trained(planted_corpus, tmp_path / "whole", config)
    handler, step = signal.getsignal(number), training._Loop.step

    def stop(self, *given):
        if self.at.step == 4:
            os.kill(os.getpid(), number)
        return step(self, *given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training._Loop, "step", stop)
        trained(planted_corpus, tmp_path / "cut", config)
    assert (
        read_meta(tmp_path / "cut" / "last.safetensors")["step"] == 5
        and signal.getsignal(number) is handler
    )
    assert same(
        whole.model, trained(planted_corpus, tmp_path / "cut", config, model(9), resume=True).model
    )


def with_train(corpus, documents, words=None):
    """The corpus with other training documents, and perhaps another vocabulary."""
    encoder = replace(corpus.encoder, vocabulary=Vocabulary(words)) if words else corpus.encoder
    return replace(corpus, encoder=encoder, splits={**corpus.splits, "train": Split.of(documents)})


@pytest.mark.parametrize(
    "change",
    [
        lambda c: with_train(
            c, [*c["train"][1:], replace(c["train"][0], source=c["val"][0].source)]
        ),
        lambda c: with_train(c, c["train"][:17]),
        lambda c: with_train(c, c["train"][::-1]),
        lambda c: with_train(c, [*c["train"]], [*c.vocabulary.words[4:], "more"]),
    ],
)
def test_a_changed_corpus_is_another_run(planted_corpus, tmp_path, change):
    trained(planted_corpus, tmp_path, replace(CONFIG, steps=1))
    with pytest.raises(
        RunError, match=r"other documents, another order of them or another vocabulary\. Choose"
    ):
        trained(change(planted_corpus), tmp_path, replace(CONFIG, steps=1), resume=True)


def test_a_finished_run_is_loaded_and_can_be_continued(planted_corpus, tmp_path, monkeypatch):
    run = trained(planted_corpus, tmp_path / "r")
    with monkeypatch.context() as patch:
        patch.setattr(training._Loop, "step", lambda *_: pytest.fail("trained again"))
        assert same(
            run.model, trained(planted_corpus, tmp_path / "r", network=model(3), resume=True).model
        )
    longer = replace(CONFIG, steps=12, save_every=1)
    moved = replace(planted_corpus, name="elsewhere/planted")
    further = trained(moved, tmp_path / "r", longer, model(3), resume=True)
    assert same(further.model, trained(planted_corpus, tmp_path / "whole", longer).model)
    with pytest.raises(RunError, match="holds 12 steps, more than the 8"):
        trained(planted_corpus, tmp_path / "r", resume=True)


def test_another_run_is_not_overwritten(planted_corpus, tmp_path):
    trained(planted_corpus, tmp_path)
    before = (tmp_path / "last.safetensors").read_bytes()
    with pytest.raises(RunError, match="holds a run already: --resume continues it"):
        trained(planted_corpus, tmp_path)
    with pytest.raises(RunError, match=r"train\.seed is 5 there and 6 now"):
        trained(planted_corpus, tmp_path, replace(CONFIG, seed=6), resume=True)
    other = replace(
        planted_corpus, splits={**planted_corpus.splits, "train": planted_corpus["val"]}
    )
    with pytest.raises(RunError, match="the corpus has other documents"):
        trained(other, tmp_path, resume=True)
    (tmp_path / "config.json").unlink()
    with pytest.raises(RunError, match="no config"):
        trained(planted_corpus, tmp_path, resume=True)
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_a_kill_while_writing_leaves_the_last_checkpoint(planted_corpus, tmp_path, monkeypatch):
    run = trained(planted_corpus, tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        trained(planted_corpus, tmp_path, replace(CONFIG, steps=12), resume=True)
    assert same(load_weights(model(4), tmp_path, "last"), run.model) and not list(
        tmp_path.glob(".*tmp")
    )


def test_weights_that_cannot_be_loaded(planted_corpus, tmp_path):
    trained(planted_corpus, tmp_path, replace(CONFIG, steps=1))
    with pytest.raises(RunError, match="holds no weights 'average'"):
        load_weights(model(), tmp_path, "average")
    network = model()
    network.encoder_digest = "that of another vocabulary"
    with pytest.raises(RunError, match="another vocabulary"):
        load_weights(network, tmp_path)


def test_a_line_of_the_log_that_was_cut_off_is_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 5}\n{"step": 6, "lo', encoding="utf-8")
    assert read_metrics(tmp_path) == [{"step": 5}]


# ---------------------------------------------------------------------------------
# several processes


TWO_PROCESSES = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from lib.data.prepared import PreparedCorpus
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.devices import processes
from lib.training.loop import train
from lib.train import main
from tests.training.test_train import BY_WORDS, CONFIG, EMPTY, MEM2MEM, READ_AGAIN, UNEVEN
from tests.training.test_train import model, often_empty, probed, ragged, reader
corpus, out = PreparedCorpus.load(sys.argv[1], CohanOptions), Path(sys.argv[2])

def dropped(run, steps, masks=None):
    network = reader()
    if masks is not None:
        network.dropout.register_forward_hook(lambda _, given, made: masks.append((made == 0).numpy()))
    train(READ_AGAIN, network, corpus, replace(CONFIG, steps=steps), out / run, True, False, "cpu")

with processes() as (rank, _):
    masks = []
    dropped("whole", 4, masks)
    np.savez(out / f"masks{rank}.npz", *masks[:5])
    dropped("parts", 2)
    dropped("parts", 4)
    train(MEM2MEM, model().double(), corpus, replace(UNEVEN, accumulate=3), out / "two", True, False, "cpu")
    words = ragged(corpus), replace(BY_WORDS, accumulate=2), out / "twowords"
    train(READ_AGAIN, reader(dropout=0.0).double(), *words, True, False, "cpu")
    for parts in (1, 4):
        empty = often_empty(corpus), replace(EMPTY, accumulate=parts), out / f"empty{parts}"
        train(MEM2MEM, probed(), *empty, True, False, "cpu")
    main(["mem2mem", "--preset=demo", "--limit=6", "--steps=2", "--device=cpu", f"--output={out / 'command'}"])
"""


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """Runs that two processes made, and the corpus."""
    folder = tmp_path_factory.mktemp("two")
    corpus = make_planted_corpus()
    corpus.save(folder / "corpus")
    (folder / "two.py").write_text(TWO_PROCESSES, encoding="utf-8")
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    env = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(project_root()),
        "COMPANION_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        [*torchrun, str(folder / "two.py"), str(folder / "corpus"), str(folder)],
        cwd=project_root(),
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(folder=folder, corpus=corpus, errors=done.stderr)


@pytest.mark.slow
def test_every_process_drops_places_of_its_own(two_processes):
    first, second = (np.load(two_processes.folder / f"masks{rank}.npz") for rank in (0, 1))
    for name in first.files:
        assert 0.1 < first[name].mean() < 0.9 and first[name].shape == second[name].shape
        assert (first[name] != second[name]).mean() > 0.2
    weights = [
        (two_processes.folder / run / "last.safetensors").read_bytes() for run in ("whole", "parts")
    ]
    assert weights[0] == weights[1], "resumed, bit for bit"


def test_two_processes_give_the_result_of_one(two_processes):
    # in double precision, because Adam makes rounding errors large where a gradient is nearly 0
    corpus, folder = two_processes.corpus, two_processes.folder
    one = trained(corpus, folder / "one", UNEVEN, model().double())
    words = trained(
        ragged(corpus), folder / "onewords", BY_WORDS, reader(dropout=0.0).double(), READ_AGAIN
    )
    for run, network, name in ((one, model(4), ""), (words, reader(), "words")):
        two = load_weights(network.double(), folder / f"two{name}", "last").state_dict()
        for key, value in run.model.state_dict().items():
            assert torch.allclose(two[key], value, rtol=0, atol=1e-10), key
        ours, theirs = (read_metrics(folder / f"{n}{name}") for n in ("one", "two"))
        assert [m["step"] for m in ours] == [m["step"] for m in theirs]
        assert [m["loss"] for m in ours] == pytest.approx([m["loss"] for m in theirs], abs=1e-10)
    assert read_metrics(folder / "command")[-1]["step"] == 2, "and the command"
    assert "find_unused_parameters" not in two_processes.errors, "a warning of PyTorch's"


def test_a_process_may_have_no_gradient_for_a_weight(two_processes, tmp_path):
    """Empty summaries give no gradient to the weights that write to Mem2Mem's memory.

    If one process has only empty summaries, the gradient is 0 there. If all have, there is none,
    as in one process: with a gradient of 0, Adam would still move the weights.
    """
    corpus, folder = often_empty(two_processes.corpus), two_processes.folder
    sampler = training._Loop(MEM2MEM, probed(), corpus, EMPTY, tmp_path).updates.sampler
    lengths = corpus["train"].target_lengths
    updates = [sampler.batch(step) for step in range(4)]
    only_empty = [sum(lengths[u[rank::2]].max() == 1 for rank in (0, 1)) for u in updates]
    assert only_empty == [1, 0, 0, 2], "processes with empty summaries only"

    one = trained(corpus, tmp_path / "one", EMPTY, probed())
    assert torch.equal(one.model.probe, torch.ones(3)), "has no part in the loss"
    for count in (1, 4):
        two = load_weights(probed(), folder / f"empty{count}", "last").state_dict()
        for key, value in one.model.state_dict().items():
            assert torch.allclose(two[key], value, rtol=0, atol=1e-10), key
        runs = one.folder, folder / f"empty{count}"
        ours, theirs = ([m["loss"] for m in read_metrics(run)] for run in runs)
        assert ours == pytest.approx(theirs, abs=1e-10)


def test_a_broken_loss_of_one_process_stops_all(planted_corpus, tmp_path, monkeypatch):
    loop = training._Loop(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, Process(0, 2))
    other = [(5, "d5, d6", math.nan)]
    monkeypatch.setattr(Process, "gather", lambda self, own: [*own, other])
    for values in ([1.0, 2.0], [1.0, math.inf]):
        loop.updates.finite.unchecked = [
            (4 + 2 * i, "d1", torch.tensor(x)) for i, x in enumerate(values)
        ]
        with pytest.raises(
            losses.NonFiniteLossError, match="the loss is nan at step 5, documents d5, d6"
        ):
            loop.updates.finite.check(loop.process, tmp_path)


def test_processes_share_out_the_parts_of_a_batch(planted_corpus, tmp_path):
    batch = np.arange(105)
    for world, count in ((1, 16), (3, 6), (4, 4), (8, 2), (16, 1), (50, 1)):
        shares = [parts.split_documents(batch, 16, Process(rank, world)) for rank in range(world)]
        assert {len(own) for own in shares} == {count}
        assert sorted(np.concatenate([part for own in shares for part in own])) == batch.tolist()
        assert max(len(part) for own in shares for part in own) <= 7
    with pytest.raises(RunError, match="5 processes cannot share a batch of 4"):
        training._Loop(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, Process(0, 5))


def test_batches_of_validation_are_as_large_as_a_part(planted_corpus, tmp_path, monkeypatch):
    network, sizes = model(), []
    loss = network.loss
    monkeypatch.setattr(network, "loss", lambda batch: sizes.append(len(batch)) or loss(batch))
    config = replace(CONFIG, steps=1, batch_size=20, batch_tokens=90, accumulate=3)
    trained(planted_corpus, tmp_path / "tokens", config, network)
    assert sizes[3:] == [2, 2, 2], "after three parts, documents of 15 words"
    two_epochs = replace(config, steps=None, epochs=2, accumulate=1, batch_tokens=45)
    assert trained(planted_corpus, tmp_path / "epochs", two_epochs).step == 2 * 7, (
        "3 documents at a time"
    )


# ---------------------------------------------------------------------------------
# the command


def parsed(*arguments):
    return parse([*arguments, "--output", "x"])[1]


def test_a_training_that_starts_from_a_run_has_its_sizes():
    shipped = str(project_root() / "trained" / "windowed")
    setup = parsed("windowed", "--start", shipped, "--steps", "7", "--options.whole-sentences")
    assert setup.train.steps == 7 and setup.train.batch_size == 16
    assert setup.options.window == 400 and setup.options.whole_sentences
    assert setup.config["hidden"] == setup.start.config["model"]["hidden"]
    for arguments, reason in (
        (["mem2mem", "--start", shipped], "paper, preset and variant are windowed, 'medium'"),
        (["windowed", "--start", shipped, "--preset", "demo"], "give no others"),
        (["windowed", "--start", shipped, "--options.vocab-size", "9"], "vocabulary is kept"),
    ):
        with pytest.raises(InputError, match=reason):
            parsed(*arguments)


@pytest.mark.slow
def test_the_command_trains_and_resumes(tmp_path, capsys):
    arguments = [
        "mem2mem",
        "--preset=demo",
        "--limit=6",
        "--variant=+transfer",
        f"--output={tmp_path / 'r'}",
    ]
    first = subprocess.run(
        [sys.executable, "-m", "lib.train", *arguments, "--steps", "2"],
        capture_output=True,
        text=True,
        cwd=project_root(),
        timeout=600,
    )
    assert first.returncode == 0, first.stderr
    main([*arguments, "--steps", "3", "--resume"])
    out = capsys.readouterr().out
    assert "step 3: training loss" in out and "3 steps" in out and "; validation loss" in out
    assert "The weights of step" in out or "the weights of step" in out
    assert f"python -m lib.score run {tmp_path / 'r'} --dataset aclsum" in out
    assert (tmp_path / "r" / "curve.png").stat().st_size > 5000
    assert (
        json.loads((tmp_path / "r" / "config.json").read_text(encoding="utf-8"))["model"][
            "lambda_read"
        ]
        == 0
    )


def test_the_report_has_the_seconds_of_an_update(tmp_path):
    """Their median between two lines of the log: the first update compiles, and others validate."""

    def reported(*seconds):
        times = enumerate(seconds, 1)
        logged = [{"split": "train", "step": 10 * i, "seconds": s} for i, s in times]
        lines = "".join(json.dumps(values) + "\n" for values in logged)
        (tmp_path / "metrics.jsonl").write_text(lines, encoding="utf-8")
        return report(Run(tmp_path, {}, None, encoder=None), "aclsum")  # type: ignore[arg-type]

    pace = "40 steps in 82 seconds, 2.05 seconds each (median).\nThere are no validation documents"
    assert pace in reported(60, 80.5, 101, 900)
    assert "10 steps.\n" in reported(60), "nothing to take the time between"


# ---------------------------------------------------------------------------------
# what the command says of a training


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (43.4, "43 seconds"),
        (100, "2 minutes"),
        (3600, "60 minutes"),
        (12_240, "3.4 hours"),
    ],
)
def test_a_time_as_people_say_it(seconds, text):
    assert duration(seconds) == text


def test_the_plan_warns_of_few_documents_and_few_updates(planted_corpus, monkeypatch):
    count = len(planted_corpus["train"])
    lines = plan(replace(CONFIG, steps=None, epochs=3, batch_size=count), planted_corpus)
    assert lines[0] == f"planned: 3 updates, 3 times through {count} documents"
    assert [line.partition(".")[0] for line in lines[1:]] == [
        f"warning: few documents ({count})",
        "warning: few updates (3)",
    ]
    monkeypatch.setattr(console, "FEW_DOCUMENTS", count)
    assert len(plan(replace(CONFIG, steps=200), planted_corpus)) == 1


def validated(*losses):
    return [{"split": "val", "step": 10 * i, "loss": loss} for i, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "documents", "text"),
    [
        (
            (5.0, 4.0, 8.0),
            30,
            "rose from step 20 on, .*step 20 are used; 30 documents are too few$",
        ),
        ((5.0, 4.0, 8.0), 900, "rose from step 20 on, .* by heart; the .* step 20 are used$"),
        ((5.0, 4.0, 3.0), 30, "least at the last step; .* step 30 are used; more updates may help"),
        ((5.0, 4.0, 4.01), 30, "least at step 20 and .* since; the weights of step 20 are used$"),
        ((), 30, "no validation documents; the weights of the last step are used"),
    ],
)
def test_the_outcome_names_the_weights_that_are_used(losses, documents, text):
    assert re.search(text, outcome(validated(*losses), "best", documents))


def test_the_mean_of_several_weights_is_named():
    assert "the mean of the best weights is used" in outcome(validated(5, 4, 8), "average", 30)


def test_the_curve_marks_the_step_with_the_least_loss(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, path: drawn.append(figure)
    )
    lines = "".join(json.dumps(values) + "\n" for values in validated(5, 4, 8))
    (tmp_path / "metrics.jsonl").write_text(lines, encoding="utf-8")
    draw_losses(Run(tmp_path, {}, None, encoder=None))  # type: ignore[arg-type]
    (axes,) = drawn[0].axes
    assert "least validation loss: step 20" in axes.get_legend_handles_labels()[1]
    assert any(list(line.get_xdata()) == [20, 20] for line in axes.lines)


def test_the_time_of_a_run_is_told_after_ten_updates(monkeypatch, capsys):
    clock = iter([100.0, 116.0])  # after the second and the tenth update
    monkeypatch.setattr(console.time, "perf_counter", lambda: next(clock))
    assert list(console.Bar(range(12), 5, 3000, shown=False)) == [*range(12)]
    assert capsys.readouterr().out == ""
    clock = iter([100.0, 116.0])
    bar = console.Bar(range(12), 990, 2700, shown=True)
    bar.bar.disable = True  # tqdm has a clock of its own
    list(bar)
    said = "2,700 updates take about 90 minutes; 57 minutes are left"
    assert said in capsys.readouterr().out


def test_training_stops_when_validation_is_no_better(planted_corpus, tmp_path, monkeypatch):
    """Patience 2: the least loss is that of step 2, so that step 4 is the last. A run that was
    stopped before is the same, and a longer patience continues it."""
    losses = {1: 5.0, 2: 3.0, 3: 4.0, 4: 3.5, 5: 2.0, 6: 2.5}
    network, config = model(), replace(CONFIG, steps=6, validate_every=1, patience=2)

    def loss(model, *given, **named):
        return {"loss": losses[steps[-1]]}

    steps = []
    step = training._Loop.step

    def counted(self, *given):
        made = step(self, *given)
        steps.append(self.at.step)
        return made

    monkeypatch.setattr(training, "evaluate_loss", loss)
    monkeypatch.setattr(training._Loop, "step", counted)
    whole = trained(planted_corpus, tmp_path / "whole", config, network)
    assert whole.step == 4 and read_meta(tmp_path / "whole" / "best.safetensors")["step"] == 2
    assert trained(planted_corpus, tmp_path / "whole", config, model(3), resume=True).step == 4

    trained(planted_corpus, tmp_path / "cut", replace(config, steps=3))
    resumed = trained(planted_corpus, tmp_path / "cut", config, model(3), resume=True)
    assert resumed.step == 4 and same(whole.model, resumed.model)
    more = replace(config, patience=3)
    assert trained(planted_corpus, tmp_path / "cut", more, model(3), resume=True).step == 6
    assert trained(planted_corpus, tmp_path / "off", replace(config, patience=None)).step == 6


@pytest.mark.parametrize(
    ("name", "preset"), [(name, preset) for name, of in PAPERS.items() for preset in of.presets]
)
def test_every_field_is_an_option_with_the_presets_value(name, preset):
    setup, read = resolve(name, preset), parsed(name, "--preset", preset)
    assert (read.train, read.decode, read.options) == (setup.train, setup.decode, setup.options)
    assert read.model_config() == setup.model_config() and read.recipe == setup.recipe


@pytest.mark.parametrize(("name", "time"), [("mem2mem", 2.6), ("hierarchical_transformer", 1.7)])
def test_presets_are_listed_with_the_time_of_the_shipped_run(capsys, name, time):
    with pytest.raises(SystemExit):
        main([name])
    assert f"The shipped run, a medium one, took {time} hours" in capsys.readouterr().err


def test_one_value_for_what_options_and_model_share():
    given = "--options.window 50 --options.stride 40 --max-norm None --epochs 2 --steps 7"
    setup = parsed("windowed", "--preset", "demo", *given.split())
    assert (setup.model_config().window, setup.options.window) == (50, 50)
    assert (setup.train.max_norm, setup.train.epochs, setup.train.steps) == (None, 2, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mem2mem", "--beem", "3"], "--beam"),
        (["mem2mem", "--train.batch-size", "3"], "Perhaps you meant: --batch-size"),
        (["mem2mem", "--hidden", "3"], "--model.hidden"),
        (["mem2mem", "--beam", "three"], "three"),
        (["mem2mem", "--model.hidden", "7"], "hidden"),
        (["mem2mem", "--model.vocab-size", "7"], "give --options.vocab-size"),
        (["windowed", "--preset", "CD_I", "--variant", "dynamic"], "choose the variant 'standard'"),
        (["mem2mem", "--dataset", "nowhere"], "no corpus or folder 'nowhere'"),
        (["mem2mem", "--preset", "papr"], "unknown preset 'papr', did you mean 'paper'?"),
        (["mem2mum"], "unknown model 'mem2mum', did you mean 'mem2mem'?"),
    ],
)
def test_a_wrong_command_stops_with_a_message(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                *arguments[:1],
                "--preset",
                "paper",
                *arguments[1:],
                "--output",
                str(tmp_path / "run"),
                "--steps",
                "1",
            ]
        )
    assert stopped.value.code not in (0, None)
    shown = "".join(x.strip("│╭╰─╮╯\n") for x in capsys.readouterr().err.splitlines())
    assert message in " ".join(f"{stopped.value.code} {shown}".split())
