import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from filelock import FileLock

from lib.data.batch import make_batch
from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError
from lib.data.split import Split
from lib.data.vocabulary import EOS
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.models.tlm import TLM, TLMConfig
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers import PAPERS, resolve
from lib.system.errors import RunError
from lib.system.files import project_root
from lib.train import main, parse
from lib.training import loop as training
from lib.training.config import TrainConfig
from lib.training.folder import Recipe, kept_checkpoints, load_tensors, load_weights, read_meta, read_metrics
from lib.training.loop import _optimizer, check_output, train
from tests.conftest import make_planted_corpus

MEM2MEM, WINDOWED = Recipe("mem2mem", "+read"), Recipe("windowed", "dynamic")
CONFIG = TrainConfig(batch_size=4, steps=8, learning_rate=1e-2, validate_every=3, save_every=2, log_every=1, seed=5)


def model(seed=0):
    torch.manual_seed(seed)
    return Mem2Mem(Mem2MemConfig(20, embedding=6, hidden=8, bottleneck=6, slots=2, compression=4))


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    return all(torch.equal(a[k], b[k]) for k in a)


def test_training_learns_and_leaves_a_run(planted_corpus, tmp_path):
    run = train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=60), tmp_path / "run", progress=False)
    losses = [m for m in run.metrics if m["split"] == "train"]
    assert [m["step"] for m in losses] == list(range(1, 61))
    assert sum(m["nll"] for m in losses[-5:]) < 0.8 * sum(m["nll"] for m in losses[:5])
    assert all(m["loss"] == pytest.approx(m["nll"] + 1e-4 * m["comp"] + 1e-2 * m["read"]) for m in losses)
    validated = [m["step"] for m in run.metrics if m["split"] == "val"]
    assert validated == [*range(3, 61, 3)]
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["train"]["learning_rate"] == 1e-2
    assert config["data"] == planted_corpus.fingerprint
    assert config["made_with"]["torch"] == torch.__version__
    assert sorted(p.name for p in (tmp_path / "run").iterdir() if p.name != ".lock") == [
        "best.safetensors", "config.json", "last.safetensors", "metrics.jsonl", "vocabulary.txt",
    ]  # fmt: skip
    assert same(load_weights(model(3), tmp_path / "run", "last"), run.model)


def test_best_is_the_step_with_the_least_validation_loss(planted_corpus, tmp_path, monkeypatch):
    losses = iter([3.0, 1.0, 2.0])  # at steps 3, 6 and 8
    monkeypatch.setattr(training, "evaluate_loss", lambda *_: {"loss": next(losses)})
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "a", progress=False)
    assert read_meta(tmp_path / "a" / "best.safetensors")["step"] == 6
    losses = iter([3.0, 1.0])
    six = train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=6), tmp_path / "b", progress=False)
    assert same(load_weights(model(3), tmp_path / "a", "best"), six.model)


def test_validation_is_the_mean_over_documents(planted_corpus):
    ours = training.evaluate_loss(model(), planted_corpus["val"], batch_size=4, vocab_size=20)
    each = [training.evaluate_loss(model(), [d], 1, 20) for d in planted_corpus["val"]]
    for term, value in ours.items():
        assert value == pytest.approx(sum(e[term] for e in each) / 6, rel=1e-5)


def test_the_same_seed_gives_the_same_weights(planted_corpus, tmp_path):
    a = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "a", progress=False)
    b = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "b", progress=False)
    c = train(MEM2MEM, model(), planted_corpus, replace(CONFIG, seed=6), tmp_path / "c", progress=False)
    assert same(a.model, b.model)
    assert not same(a.model, c.model)


def test_batches_of_many_lengths_are_trained_without_cudnns_attention(planted_corpus, tmp_path, monkeypatch):
    """In all updates and validations, and afterwards it is as it was."""
    enabled, seen, evaluate = torch.backends.cuda.cudnn_sdp_enabled, [], training.evaluate_loss
    step = training._Loop._step
    monkeypatch.setattr(training._Loop, "_step", lambda *given: seen.append(enabled()) or step(*given))
    monkeypatch.setattr(training, "evaluate_loss", lambda *given: seen.append(enabled()) or evaluate(*given))
    before = enabled()
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    assert before and enabled() and len(seen) == 8 + 3 and not any(seen)


def stopped_at(step, corpus, folder, config, monkeypatch):
    """A run that a person stopped before the step that comes after `step`."""
    go_on = training._Loop._step

    def stop(self, *given):
        if self.step == step:
            raise KeyboardInterrupt
        return go_on(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(training._Loop, "_step", stop)
        with pytest.raises(KeyboardInterrupt):
            train(MEM2MEM, model(), corpus, config, folder, progress=False)


@pytest.mark.parametrize("stop_after", [1, 3, 5, 7])
def test_resuming_gives_the_weights_of_an_uninterrupted_run(planted_corpus, tmp_path, monkeypatch, stop_after):
    whole = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "whole", progress=False)

    stopped_at(stop_after, planted_corpus, tmp_path / "cut", CONFIG, monkeypatch)
    resumed = train(MEM2MEM, model(9), planted_corpus, CONFIG, tmp_path / "cut", resume=True, progress=False)
    assert same(whole.model, resumed.model), "bit for bit"
    assert same(load_weights(model(), tmp_path / "whole"), load_weights(model(), tmp_path / "cut"))
    strip = [{k: v for k, v in m.items() if k != "seconds"} for m in resumed.metrics]
    assert strip == [{k: v for k, v in m.items() if k != "seconds"} for m in whole.metrics]


def test_a_finished_run_is_loaded_and_can_go_on(planted_corpus, tmp_path, monkeypatch):
    run = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "r", progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(training._Loop, "_step", lambda *_: pytest.fail("trained again"))
        again = train(MEM2MEM, model(3), planted_corpus, CONFIG, tmp_path / "r", resume=True, progress=False)
    assert same(run.model, again.model)
    longer = replace(CONFIG, steps=12)
    further = train(MEM2MEM, model(3), planted_corpus, longer, tmp_path / "r", resume=True, progress=False)
    whole = train(MEM2MEM, model(), planted_corpus, longer, tmp_path / "whole", progress=False)
    assert same(further.model, whole.model)
    with pytest.raises(RunError, match="holds 12 steps, more than the 8"):
        train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "r", resume=True, progress=False)


def test_a_batch_in_parts_is_the_same_batch(planted_corpus, tmp_path):
    whole = train(MEM2MEM, model().double(), planted_corpus, CONFIG, tmp_path / "whole", progress=False)
    config = replace(CONFIG, accumulate=3)  # parts of 2, 1 and 1 documents
    parts = train(MEM2MEM, model().double(), planted_corpus, config, tmp_path / "parts", progress=False)
    for a, b in zip(whole.model.parameters(), parts.model.parameters()):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)
    assert [m["comp"] for m in whole.metrics] == pytest.approx([m["comp"] for m in parts.metrics], abs=1e-10)


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
    assert training.parts_that_fit(peak, 1, 16, memory) == expected
    assert training.parts_that_fit(peak + 7, 1 + 7, 16, memory + 7 / 0.8) == expected


def test_parts_of_a_run_that_leaves_them_to_the_device(planted_corpus, tmp_path, monkeypatch, capsys):
    """On a CPU by words: 4 times 15 words, at most 20 of them at once, are three parts, and the run is the same as
    with `accumulate=3`. The number is printed once, and a finished run keeps it."""
    monkeypatch.setattr(training, "PART_WORDS", 20)
    free, finished = replace(CONFIG, accumulate=None), tmp_path / "free"
    own = train(MEM2MEM, model().double(), planted_corpus, free, finished)
    assert capsys.readouterr().err.count("computed in 3 parts") == 1
    three = replace(CONFIG, accumulate=3)
    assert same(
        own.model, train(MEM2MEM, model().double(), planted_corpus, three, tmp_path / "3", False, False).model
    )
    for words in (20, 10**9):  # of which the number would follow now
        monkeypatch.setattr(training, "PART_WORDS", words)
        opened = train(MEM2MEM, model().double(), planted_corpus, free, finished, resume=True)
        assert opened.config["made_with"]["parts"] == 3 and capsys.readouterr().err == ""
    with pytest.raises(RunError, match=r"train\.accumulate is None there and 3 now"):
        train(MEM2MEM, model(), planted_corpus, three, finished, resume=True, progress=False)


def on_a_gpu(corpus, folder, config, monkeypatch, measured, memory=100, **process):
    """A run that was started on a GPU of so many bytes, on which one part was measured."""
    monkeypatch.setattr(training._Loop, "_measured", measured)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=memory))
    folder.mkdir()
    rank, world = process.get("rank", 0), process.get("world", 1)
    loop = training._Loop(MEM2MEM, model(), corpus, config, folder, rank, world, torch.device("cpu"), False)
    loop.device = torch.device("cuda", 0)
    loop.start(False)
    return loop


def test_parts_of_an_update_follow_from_a_gpus_memory(planted_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "PART_WORDS", 20)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: None)
    asked, free = [], replace(CONFIG, accumulate=None, batch_tokens=60)
    measured = lambda self, parts: asked.append(parts) or (21, 1)  # noqa: E731
    given = planted_corpus, tmp_path / "a", free, monkeypatch, measured
    loop = on_a_gpu(*given, memory=100)
    assert asked == [3] and loop.parts == 1 and loop._limits() == (4, 60), "3 * 20 + 1 of 80 bytes"
    assert json.loads((tmp_path / "a" / "config.json").read_text("utf-8"))["made_with"]["parts"] == 1
    loop = on_a_gpu(planted_corpus, tmp_path / "b", free, monkeypatch, measured, memory=50)
    assert loop.parts == 2 and len(loop._update(0)) == 2 and loop._limits() == (2, 30)

    def refuse(self, parts):
        pytest.fail("measured, though the number was given")

    loop = on_a_gpu(planted_corpus, tmp_path / "c", replace(free, accumulate=2), monkeypatch, refuse)
    assert loop.parts == 2 and len(loop._update(0)) == 2
    monkeypatch.setattr(training.Process, "gather", lambda self, own: [*own, 4] if self.world > 1 else own)
    loop = on_a_gpu(planted_corpus, tmp_path / "d", free, monkeypatch, measured, rank=1, world=2)
    assert loop.parts == 4, "the largest number of all processes"
    assert asked == [3, 3, 4], "two of each process"


def test_a_part_is_measured_and_leaves_nothing(planted_corpus, tmp_path, monkeypatch):
    """The largest part of the update with the most padded words; afterwards the model, the random numbers and the
    losses to be checked are as before."""
    texts = [
        replace(d, source=d.source[:n], sentence_lengths=np.array([n]))
        for d, n in zip(planted_corpus["train"], [15 - 7 * i % 15 for i in range(20)])
    ]
    corpus = replace(planted_corpus, splits={**planted_corpus.splits, "train": Split.of(texts)})
    network = reader()  # with dropout
    loop = training._Loop(READ_AGAIN, network, corpus, CONFIG, tmp_path, 0, 1, torch.device("cpu"), False)
    computed, backward = [], loop._backward

    def spy(model, part):
        computed.append(part)
        loop.unchecked.append((1, "", torch.tensor(0.0)))  # as on a GPU
        return backward(model, part)

    monkeypatch.setattr(loop, "_backward", spy)
    for name, value in {"memory_allocated": 1000, "max_memory_allocated": 5000}.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    for name in ("reset_peak_memory_stats", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    before, drawn = {name: p.clone() for name, p in network.state_dict().items()}, torch.get_rng_state()
    weights = 4 * sum(p.numel() for p in network.parameters())
    assert loop._measured(2) == (5000 + 3 * weights, 1000 + 3 * weights), "gradients, and two moments of Adam"
    (part,) = computed
    lengths = corpus["train"].source_lengths
    widths = [[len(half) * max(lengths[half]) for half in np.array_split(b, 2)] for b in loop.sampler.epoch(0)]
    assert len(part.documents) * max(lengths[part.documents]) == max(map(max, widths)) > min(map(max, widths))
    assert all(torch.equal(before[name], p) for name, p in network.state_dict().items())
    assert torch.equal(drawn, torch.get_rng_state()) and all(p.grad is None for p in network.parameters())
    assert loop.unchecked == []
    loop._step(network, loop._update(0))
    assert loop._measured(2)[1] == 1000 + weights, "the moments are there"


def test_presets_leave_the_parts_to_the_device():
    free = [
        ("hierarchical_transformer", "paper", None),
        ("hierarchical_transformer", "code", None),
        ("mem2mem", "paper", "TLM"),
    ]
    for paper, preset, variant in free:
        chosen = ["--variant", variant] if variant else []
        command = [paper, "--preset", preset, *chosen, "--output", "x"]
        assert parse(command)[1].train.accumulate is None
        assert parse([*command, "--accumulate", "4"])[1].train.accumulate == 4


def ragged(corpus):
    """The corpus with summaries of 1 to 5 words."""
    cut = {
        name: Split.of([replace(d, target=np.append(d.target[: i % 5], EOS)) for i, d in enumerate(corpus[name])])
        for name in ("train", "val")
    }
    return replace(corpus, splits={**corpus.splits, **cut})


BY_WORDS = replace(CONFIG, loss_mean="words", steps=4)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_mean_over_all_words_of_an_update(planted_corpus, tmp_path, accumulate):
    """However many parts it is computed in, and in validation, as each word's own loss says."""
    corpus, network = ragged(planted_corpus), reader(dropout=0.0).double()
    config = replace(BY_WORDS, steps=1, batch_size=6, accumulate=accumulate, optimizer="sgd", max_norm=None)
    documents = training.BucketSampler(corpus["train"].source_lengths, 6, config.seed).batch(0)
    expected = mean_over_words_alone(network, [corpus["train"][i] for i in documents])
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    gradients = dict(zip(before, torch.autograd.grad(expected, list(network.parameters()), allow_unused=True)))
    run = train(READ_AGAIN, network, corpus, config, tmp_path / str(accumulate), progress=False)
    assert run.metrics[0]["loss"] == pytest.approx(expected.item(), abs=1e-10)
    for name, p in run.model.named_parameters():
        step = 0 if gradients[name] is None else config.learning_rate * gradients[name]
        assert torch.allclose(p, before[name] - step, rtol=0, atol=1e-10), name
    validated = mean_over_words_alone(run.model.eval(), list(corpus["val"])).item()
    assert run.metrics[-1]["loss"] == pytest.approx(validated, abs=1e-10)


def mean_over_words_alone(network, documents):
    """-log P of every word of some documents, one document at a time, divided by how many words there are."""
    summed = [network(make_batch([d], 20))["nll"] * len(d.target) for d in documents]
    return torch.stack(summed).sum() / sum(len(d.target) for d in documents)


def test_the_code_of_the_hierarchical_transformer_takes_the_mean_over_words(planted_corpus, tmp_path):
    """In its preset alone, and not for a model whose loss is no mean over the summary's words."""
    names = ("paper", "code", "demo")
    means = [resolve("hierarchical_transformer", name).train.loss_mean for name in names]
    assert means == ["documents", "words", "documents"]
    assert resolve("hierarchical_transformer", "code", "T-DMCA").train.loss_mean == "documents"
    tlm = TLM(TLMConfig(vocab_size=20, width=8, heads=2, inner=8, layers=1))
    with pytest.raises(RunError, match="the loss of TLM has no mean over words"):
        train(Recipe("mem2mem", "TLM"), tlm, planted_corpus, BY_WORDS, tmp_path, progress=False)


def test_training_by_token_budget(planted_corpus, tmp_path):
    config = replace(CONFIG, steps=None, epochs=2, batch_size=20, batch_tokens=45)  # 3 documents of 15 words
    run = train(MEM2MEM, model(), planted_corpus, config, tmp_path, progress=False)
    assert run.step == 2 * 7


def test_weights_of_a_run_without_its_config_are_not_overwritten(planted_corpus, tmp_path):
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    (tmp_path / "config.json").unlink()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for resume in (False, True):
        with pytest.raises(RunError, match=r"holds best\.safetensors and no config\.json"):
            train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, resume=resume, progress=False)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    assert train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False).step == CONFIG.steps


def test_a_run_that_is_older_than_a_field_goes_on(planted_corpus, tmp_path):
    """What its config.json does not say is the field's default, and nothing else."""
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    stored = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del stored["train"]["accumulate"], stored["model"]["write"], stored["options"]["lower"]
    (tmp_path / "config.json").write_text(json.dumps(stored), encoding="utf-8")
    longer = replace(CONFIG, steps=9)
    with pytest.raises(RunError, match=r"another run: train\.accumulate is 1 there and 2 now\."):
        train(MEM2MEM, model(), planted_corpus, replace(longer, accumulate=2), tmp_path, resume=True, progress=False)
    assert train(MEM2MEM, model(), planted_corpus, longer, tmp_path, resume=True, progress=False).step == 9


def test_another_run_is_not_overwritten(planted_corpus, tmp_path):
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    before = (tmp_path / "last.safetensors").read_bytes()
    with pytest.raises(RunError, match="holds a run already"):
        train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    with pytest.raises(RunError, match=r"train\.seed is 5 there and 6 now"):
        train(MEM2MEM, model(), planted_corpus, replace(CONFIG, seed=6), tmp_path, resume=True, progress=False)
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_a_kill_while_writing_leaves_the_last_checkpoint(planted_corpus, tmp_path, monkeypatch):
    run = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        longer = replace(CONFIG, steps=12)
        with pytest.raises(KeyboardInterrupt):
            train(MEM2MEM, model(), planted_corpus, longer, tmp_path, resume=True, progress=False)
    assert same(load_weights(model(4), tmp_path, "last"), run.model)
    assert not list(tmp_path.glob(".*tmp"))


def test_a_metrics_line_that_was_cut_short_is_dropped(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo', encoding="utf-8")
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 2.0}]


def test_names_of_nothing_are_refused():
    for name in ("", " "):
        with pytest.raises(RunError, match="the output folder has no name"):
            check_output(name, resume=False)
        with pytest.raises(CorpusError, match="the corpus has no name"):
            load_corpus(name)


def test_damaged_and_missing_weights(tmp_path):
    with pytest.raises(RunError, match="holds no weights; make them with"):
        load_weights(model(), tmp_path)
    (tmp_path / "best.safetensors").write_bytes(b"x")
    with pytest.raises(RunError, match=r"best.safetensors is damaged"):
        load_weights(model(), tmp_path)


def test_weights_of_another_model(planted_corpus, tmp_path):
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, progress=False)
    with pytest.raises(RunError, match="of another model"):
        load_weights(Mem2Mem(Mem2MemConfig(20, embedding=5, hidden=8)), tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(planted_corpus, tmp_path, monkeypatch):
    broken = model()
    monkeypatch.setattr(broken, "loss", lambda batch: {"loss": torch.tensor(float("nan"), requires_grad=True)})
    with pytest.raises(FloatingPointError, match=r"nan at step 1, documents .*learning rate"):
        train(MEM2MEM, broken, planted_corpus, CONFIG, tmp_path, progress=False)
    assert (tmp_path / "last.safetensors").exists()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"batch_size": 0}, "must be at least 1"),
        ({"epochs": -1}, "must be at least 1"),
        ({"seed": -3}, "seed must be at least 0 and below 2^63, not -3"),
        ({"seed": 2**63}, "seed must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0"),
        ({"max_norm": -1.0}, "max_norm must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"weight_decay": -1.0}, "weight_decay must be"),
        ({"beta2": 1.0}, r"beta2 must be in [0, 1)"),
    ],
)
def test_train_config_is_checked(bad, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainConfig(**bad)


UNEVEN = replace(CONFIG, batch_size=20, batch_tokens=45)  # 3 documents of 15 words: two and one


TWO_PROCESSES = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from lib.data.prepared import PreparedCorpus
from lib.papers.mem2mem.sections import CohanOptions
from lib.training.devices import processes
from lib.training.loop import train
from lib.train import main
from tests.test_train import BY_WORDS, CONFIG, MEM2MEM, READ_AGAIN, UNEVEN, model, ragged, reader
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
    train(MEM2MEM, model().double(), corpus, CONFIG, out / "held", True, False, "cpu")
    train(MEM2MEM, model().double(), corpus, replace(UNEVEN, accumulate=3), out / "two", True, False, "cpu")
    words = ragged(corpus), replace(BY_WORDS, accumulate=2), out / "twowords"
    train(READ_AGAIN, reader(dropout=0.0).double(), *words, True, False, "cpu")
    main(["mem2mem", "--preset=demo", "--limit=6", "--steps=2", "--device=cpu", f"--output={out / 'command'}"])
"""
READ_AGAIN = Recipe("read_again", "read-again gru")


def reader(dropout=0.5):
    torch.manual_seed(0)
    return ReadAgain(ReadAgainConfig(20, 20, embedding=5, hidden=6, encoder="read-again gru", dropout=dropout))


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What two processes left: runs with dropout, one in a folder that another process held in the meantime, two that
    one process makes as well, and that of the command."""
    folder = tmp_path_factory.mktemp("two")
    corpus = make_planted_corpus()
    corpus.save(folder / "corpus")
    (folder / "two.py").write_text(TWO_PROCESSES, encoding="utf-8")
    six, held = replace(CONFIG, steps=6), folder / "held"
    train(MEM2MEM, model().double(), corpus, six, folder / "six", progress=False)
    held.mkdir()
    with FileLock(held / ".lock"):
        script = [str(folder / "two.py"), str(folder / "corpus"), str(folder)]
        started = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *script],
            cwd=project_root(), stderr=(folder / "errors").open("w"),
            env={
                **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(project_root()),
                "COMPANION_CACHE": str(folder / "cache"),
            },
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while not (said := "another process trains this run" in (folder / "errors").read_text(encoding="utf-8")):
            if started.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        time.sleep(2)
        files = [path.name for path in held.iterdir()]
        for path in (folder / "six").iterdir():  # what a killed run left
            if path.name != ".lock":
                shutil.copy(path, held)
    try:
        assert started.wait(timeout=300) == 0, (folder / "errors").read_text(encoding="utf-8")
    finally:
        started.kill()
    return SimpleNamespace(folder=folder, said=said, files=files, corpus=corpus)


def test_every_process_drops_places_of_its_own(two_processes):
    first, second = (np.load(two_processes.folder / f"masks{rank}.npz") for rank in (0, 1))
    assert len(first.files) == len(second.files) == 5
    for name in first.files:
        assert 0.2 < first[name].mean() < 0.8 and first[name].shape == second[name].shape
        assert (first[name] != second[name]).mean() > 0.2
    weights = [(two_processes.folder / run / "last.safetensors").read_bytes() for run in ("whole", "parts")]
    assert weights[0] == weights[1], "resumed, bit for bit"


def test_processes_wait_for_a_run_that_another_holds(two_processes):
    """None of them has looked into the folder before: all go on from step 6."""
    assert two_processes.said and two_processes.files == [".lock"]
    corpus, folder = two_processes.corpus, two_processes.folder
    one = train(MEM2MEM, model().double(), corpus, CONFIG, folder / "undisturbed", progress=False)
    two = load_weights(model(4).double(), folder / "held", "last").state_dict()
    for name, value in one.model.state_dict().items():
        assert torch.allclose(two[name], value, rtol=0, atol=1e-10), name
    steps = [m["step"] for m in read_metrics(folder / "held") if m["split"] == "train"]
    assert steps == [*range(1, CONFIG.steps + 1)]


def test_two_processes_give_the_result_of_one(two_processes):
    # in double precision, because Adam makes rounding errors large where a gradient is nearly 0
    corpus, folder = two_processes.corpus, two_processes.folder
    one = train(MEM2MEM, model().double(), corpus, UNEVEN, folder / "one", progress=False)
    words = train(
        READ_AGAIN, reader(dropout=0.0).double(), ragged(corpus), BY_WORDS, folder / "onewords", progress=False
    )
    for run, network, name in ((one, model(4), ""), (words, reader(), "words")):
        two = load_weights(network.double(), folder / f"two{name}", "last").state_dict()
        for key, value in run.model.state_dict().items():
            assert torch.allclose(two[key], value, rtol=0, atol=1e-10), key
        ours, theirs = (read_metrics(folder / f"{n}{name}") for n in ("one", "two"))
        assert [m["step"] for m in ours] == [m["step"] for m in theirs]
        assert [m["loss"] for m in ours] == pytest.approx([m["loss"] for m in theirs], abs=1e-10)


def test_command_line_with_two_processes(two_processes):
    """One prepares the corpus, both train on it."""
    assert read_metrics(two_processes.folder / "command")[-1]["step"] == 2
    assert len([*(two_processes.folder / "cache").glob("*/prepared.json")]) == 1


class InOneProcess(torch.nn.Module):
    """As PyTorch's `DistributedDataParallel`, with nobody to exchange gradients with."""

    def __init__(self, module, device_ids=None):
        super().__init__()
        self.module, self.no_sync = module, nullcontext

    def forward(self, batch):
        return self.module(batch)


def test_only_the_first_of_several_processes_writes(planted_corpus, tmp_path, monkeypatch):
    config, said = replace(CONFIG, steps=4, validate_every=2, keep_best=2), []
    monkeypatch.setattr(training, "DistributedDataParallel", InOneProcess)
    monkeypatch.setattr(training, "evaluate_loss", lambda *_: {"loss": 1.0})
    monkeypatch.setattr(training.dist, "all_reduce", lambda values: values.mul_(2))
    monkeypatch.setattr(torch.distributed, "barrier", lambda: None)
    monkeypatch.setattr(training.dist, "broadcast_object_list", lambda values, src: said.append((values, src)))
    for rank in (0, 1):
        folder = tmp_path / str(rank)
        folder.mkdir()
        loop = training._Loop(MEM2MEM, model(), planted_corpus, config, folder, rank, 2, torch.device("cpu"), False)
        loop.start(False)
        loop.run()
        assert loop.step == 4 and isinstance(loop.model, Mem2Mem)
    assert [*(tmp_path / "1").iterdir()] == []
    first = {path.name for path in (tmp_path / "0").iterdir()}
    weights = {f"{name}.safetensors" for name in ("last", "best", "best-2", "best-4")}
    assert first >= {*weights, "config.json", "metrics.jsonl"}
    assert [m["split"] for m in read_metrics(tmp_path / "0")] == ["train", "train", "val", "train", "train", "val"]
    assert training._agreed(True, 1) is True and said == []
    assert training._agreed(False, 2) is False and said == [([False], 0)], "what the first one says"


def test_a_broken_loss_of_one_process_stops_all(planted_corpus, tmp_path, monkeypatch):
    """The first by steps: it has broken the weights of the others, whose own losses were finite or came later."""
    folder, cpu = tmp_path, torch.device("cpu")
    loop = training._Loop(MEM2MEM, model(), planted_corpus, CONFIG, folder, 0, 2, cpu, False)
    other: list = [(5, "d5, d6", float("nan"))]
    monkeypatch.setattr(training.Process, "gather", lambda self, own: [*own, other] if self.world > 1 else own)
    for losses in ([1.0, 2.0], [1.0, float("inf")]):
        loop.unchecked = [(4 + 2 * i, "d1", torch.tensor(x)) for i, x in enumerate(losses)]
        with pytest.raises(
            training.NonFiniteLossError, match="the loss is nan at step 5, documents d5, d6; the last"
        ):
            loop._check_unchecked()
    other.clear()
    loop.unchecked = [(4, "d1", torch.tensor(1.0))]
    loop._check_unchecked()
    assert loop.unchecked == []


def test_processes_share_out_the_parts_of_a_batch():
    """None has parts larger than a process alone, nor more of them than it takes."""
    batch = np.arange(105)
    for world, count in ((1, 16), (3, 6), (4, 4), (8, 2), (16, 1), (50, 1)):
        parts = [training._parts(batch, 16, rank, world) for rank in range(world)]
        assert {len(own) for own in parts} == {count}
        assert sorted(np.concatenate([part for own in parts for part in own])) == batch.tolist()
        assert max(len(part) for own in parts for part in own) <= 7


def test_validation_keeps_to_what_a_part_of_a_batch_may_hold(planted_corpus, tmp_path, monkeypatch):
    sizes, network = [], model()
    loss = network.loss
    monkeypatch.setattr(network, "loss", lambda batch: sizes.append(len(batch)) or loss(batch))
    config = replace(CONFIG, steps=1, batch_size=20, batch_tokens=90, accumulate=3)
    train(MEM2MEM, network, planted_corpus, config, tmp_path / "tokens", progress=False)
    assert sizes[3:] == [2, 2, 2], "after three parts, documents of 15 words"
    sizes.clear()
    train(MEM2MEM, network, planted_corpus, replace(CONFIG, steps=1, accumulate=4), tmp_path / "rows", progress=False)
    assert sizes[4:] == [1] * 6


@pytest.mark.parametrize("fails", [False, True])
def test_matmul_precision_is_for_training_alone(planted_corpus, tmp_path, monkeypatch, fails):
    used, network = [], model()
    loss = network.loss

    def losses(batch):
        used.append(torch.get_float32_matmul_precision())
        if fails:
            raise FloatingPointError("in between")
        return loss(batch)

    monkeypatch.setattr(network, "loss", losses)
    config = replace(CONFIG, steps=1, matmul_precision="high")
    with pytest.raises(FloatingPointError, match="in between") if fails else nullcontext():
        train(MEM2MEM, network, planted_corpus, config, tmp_path, progress=False)
    assert set(used) == {"high"} and torch.get_float32_matmul_precision() == "highest"


def test_a_batch_that_processes_cannot_share(planted_corpus, tmp_path):
    with pytest.raises(RunError, match="cannot be shared by 5 processes"):
        training._Loop(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, 0, 5, torch.device("cpu"), False)


# ----------------------------------------------------------------------------------------------- command line


def command_line(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "lib.train", *arguments],
        capture_output=True, text=True, cwd=project_root(), env={**os.environ, **env}, timeout=600,
    )  # fmt: skip


def test_command_line_trains_and_resumes(tmp_path, capsys):
    arguments = [
        "mem2mem",
        "--preset",
        "demo",
        "--limit",
        "6",
        "--variant",
        "+transfer",
        "--output",
        str(tmp_path / "r"),
    ]
    first = command_line(*arguments, "--steps", "2")
    assert first.returncode == 0, first.stderr
    main([*arguments, "--steps", "3", "--resume"])
    assert "3 steps" in capsys.readouterr().out
    assert json.loads((tmp_path / "r" / "config.json").read_text(encoding="utf-8"))["model"]["lambda_read"] == 0


WRONG = {
    ("--dataset", "nowhere"): "no corpus or folder 'nowhere'",
    ("--preset", "papr"): "unknown preset 'papr', did you mean 'paper'?",
    ("--variant", "+raed"): "unknown variant '+raed', did you mean '+read'?",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_command_line_errors_are_one_line(tmp_path, arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["mem2mem", "--output", str(tmp_path / "r"), "--limit", "2", *arguments])
    assert WRONG[arguments] in stopped.value.code and "\n" not in stopped.value.code


def test_an_error_of_the_command_has_no_traceback(tmp_path):
    result = command_line("mem2mem", "--output", str(tmp_path / "r"), *next(iter(WRONG)))
    assert result.returncode == 1
    assert next(iter(WRONG.values())) in result.stderr and "Traceback" not in result.stderr


def test_a_preset_says_that_it_leaves_documents_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COMPANION_CACHE", str(tmp_path / "cache"))
    record = json.dumps({"text": "A long text. It goes on.", "summary": "A text."}) + "\n"
    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.jsonl").write_text(101 * record, encoding="utf-8")
    arguments = ["mem2mem", "--preset", "demo", "--dataset", str(tmp_path), "--steps", "1", "--batch-size", "1"]
    main([*arguments, "--output", str(tmp_path / "all")])
    assert "preset 'demo' takes at most 100 documents of each split; --limit takes" in capsys.readouterr().err
    main([*arguments, "--output", str(tmp_path / "given"), "--limit", "100"])
    assert "takes at most" not in capsys.readouterr().err
    resolve("mem2mem", "demo").prepare(load_corpus(tmp_path), folder=tmp_path / "named", progress=False)
    arguments[arguments.index(str(tmp_path))] = str(tmp_path / "named")
    main([*arguments, "--output", str(tmp_path / "prepared")])
    assert "takes at most" not in capsys.readouterr().err, "and no limit can be given"


def test_a_prepared_folder_is_trained_on_as_it_was_prepared(tmp_path):
    """With its preset and its options; what else is asked for is refused, and not left aside in silence."""
    folder = str(tmp_path / "named")
    corpus = load_corpus("aclsum")
    resolve("mem2mem", "demo", None, {"vocab_size": 90}).prepare(corpus, 2, folder=folder, progress=False)
    arguments = ["mem2mem", "--preset", "demo", "--dataset", folder, "--steps", "1", "--output"]
    main([*arguments, str(tmp_path / "run"), "--options.vocab-size", "90"])
    refused = {
        "--options.vocab-size=90 --limit=1": f"{folder} is prepared already: a limit can be set on the corpus itself",
        "--device=cpu": f"{folder} was prepared with vocab_size 90, not 1000: ask for what it was prepared with "
        "(preset, variant, --options.vocab-size), or give the corpus itself",
        "--options.vocab-size=90 --options.section-tokens=9": "was prepared with section_tokens 80, not 9: ask for",
        "--options.vocab-size=90 --variant=discourse-aware": "was prepared with unit 'sentence', not 'section'",
    }
    for given, message in refused.items():
        with pytest.raises(SystemExit, match=re.escape(message)):
            main([*arguments, str(tmp_path / "no"), *given.split()])
    windowed = resolve("windowed", "demo")
    windowed.prepare(corpus, 2, folder=tmp_path / "windows", progress=False)
    with pytest.raises(ValueError, match=r"was prepared with window 120, not 90: .* --options.window\)"):
        resolve("windowed", "demo", None, {"window": 90, "stride": 80}).open_corpus(str(tmp_path / "windows"))


def test_a_prepared_folder_has_no_texts(tmp_path):
    resolve("mem2mem", "demo").prepare(load_corpus("aclsum"), 1, folder=tmp_path / "named", progress=False)
    with pytest.raises(CorpusError, match="named: a corpus that is prepared, where its texts are needed: give the"):
        load_corpus(tmp_path / "named")


def test_warm_up():
    config = TrainConfig(learning_rate=2.0, warmup=4)
    assert [config.rate(s) for s in (1, 4, 16)] == pytest.approx([2 / 8, 2 / 2, 2 / 4])
    assert TrainConfig(learning_rate=0.5).rate(100) == 0.5
    risen = TrainConfig(learning_rate=2.0, warmup=4, cosine=6)
    assert [risen.rate(s) for s in (1, 2, 4, 6, 7, 10, 12)] == pytest.approx([0.5, 1, 2, 1.5, 1, 0, 0])
    with pytest.raises(ValueError, match="cosine needs a warmup"):
        TrainConfig(cosine=6)
    with pytest.raises(ValueError, match="warmup"):
        TrainConfig(warmup=0)


def test_a_schedule_and_weight_decay_reach_the_optimizer(planted_corpus, tmp_path):
    """After one step from the same weights: Adam's step is the rate times its sign; decay changes the gradient."""
    weights = {}
    for name, changes in {
        "plain": {"learning_rate": 1e-3},
        "warm": {"learning_rate": 1e-2, "warmup": 100},
        "decayed": {"learning_rate": 1e-3, "weight_decay": 10.0},
        "unclipped": {"learning_rate": 1e-3, "max_norm": None},
    }.items():
        model = tiny_windowed()
        start = model.embedding.weight.detach().clone()
        config = TrainConfig(batch_size=4, steps=1, **changes)
        train(WINDOWED, model, planted_corpus, config, tmp_path / name, progress=False)
        weights[name] = (model.embedding.weight.detach() - start)[5:]
    assert weights["warm"].abs().max() == pytest.approx(1e-2 * 100**-1.5, rel=0.01)
    assert weights["plain"].abs().max() == pytest.approx(1e-3, rel=0.01)
    assert not torch.equal(weights["decayed"].sign(), weights["plain"].sign())
    assert torch.isfinite(weights["unclipped"]).all()


def tiny_windowed():
    torch.manual_seed(0)
    return Windowed(WindowedConfig(20, embedding=6, hidden=4, window=8, stride=6))


def test_a_weight_used_twice_is_stored_once(planted_corpus, tmp_path):
    config = TrainConfig(batch_size=4, steps=3)
    run = train(WINDOWED, tiny_windowed(), planted_corpus, config, tmp_path / "run", progress=False)
    stored = load_tensors(tmp_path / "run" / "last.safetensors")
    assert "model.embedding.weight" in stored
    assert "model.pointer.vocabulary.weight" not in stored
    again = load_weights(tiny_windowed(), tmp_path / "run", "last")
    assert again.pointer.vocabulary.weight is again.embedding.weight
    for name, value in run.model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    longer = replace(config, steps=6)
    resumed = train(WINDOWED, tiny_windowed(), planted_corpus, longer, tmp_path / "run", resume=True, progress=False)
    straight = train(WINDOWED, tiny_windowed(), planted_corpus, longer, tmp_path / "straight", progress=False)
    assert torch.equal(resumed.model.embedding.weight, straight.model.embedding.weight)


def test_the_rate_of_read_again():
    """2, halved each epoch after the first 5."""
    config = TrainConfig(optimizer="sgd", learning_rate=2.0, halve_after=5)
    rates = [config.rate(1, epoch + 0.5) for epoch in range(10)]
    assert rates == [2, 2, 2, 2, 2, 1, 0.5, 0.25, 0.125, 0.0625]
    with pytest.raises(ValueError, match="optimizer must be"):
        TrainConfig(optimizer="adamw")


def test_plain_sgd(planted_corpus, tmp_path):
    """A step is the rate times the gradient; a run goes on from where it stopped, over the halving of the rate."""
    config = TrainConfig(
        batch_size=4, steps=12, optimizer="sgd", learning_rate=0.5, halve_after=1, max_norm=None, validate_every=12
    )
    network = tiny_windowed()
    start = network.embedding.weight.detach().clone()
    one = replace(config, steps=1)
    train(WINDOWED, network, planted_corpus, one, tmp_path / "one", progress=False)
    reference = tiny_windowed()
    batch_ids = training.BucketSampler(planted_corpus["train"].source_lengths, 4, 0).batch(0)
    loss = reference.loss(training.make_batch([planted_corpus["train"][i] for i in batch_ids], 20))["loss"]
    loss.backward()
    assert torch.allclose(network.embedding.weight, start - 0.5 * reference.embedding.weight.grad, atol=1e-6)
    train(WINDOWED, tiny_windowed(), planted_corpus, replace(config, steps=7), tmp_path / "two", progress=False)
    resumed, straight = (
        train(WINDOWED, tiny_windowed(), planted_corpus, config, tmp_path / name, resume=True, progress=False)
        for name in ("two", "straight")
    )
    assert torch.equal(resumed.model.embedding.weight, straight.model.embedding.weight)


def test_the_rate_falls_where_the_validation_loss_rises(planted_corpus, tmp_path, monkeypatch):
    """Divided by `anneal` each time; the same in a run that goes on after an end that is no validation of its own."""
    config = TrainConfig(
        batch_size=4, steps=16, optimizer="sgd", learning_rate=3.0, anneal=2, max_norm=None, validate_every=2
    )
    rates, rate = [], TrainConfig.rate
    monkeypatch.setattr(TrainConfig, "rate", lambda *args: rates.append(rate(*args)) or rates[-1])
    straight = train(WINDOWED, tiny_windowed(), planted_corpus, config, tmp_path / "straight", progress=False)
    losses, expected = [m["loss"] for m in straight.metrics if m["split"] == "val"], []
    for step in range(16):
        seen = losses[: step // 2]
        expected.append(3.0 / 2 ** sum(b > a for a, b in pairwise(seen)))
    assert rates == expected and len(set(expected)) > 2
    for steps in (7, 16):
        part = replace(config, steps=steps)
        resumed = train(WINDOWED, tiny_windowed(), planted_corpus, part, tmp_path / "two", True, progress=False)
    assert torch.equal(resumed.model.embedding.weight, straight.model.embedding.weight)
    with pytest.raises(ValueError, match="anneal must be at least 1"):
        TrainConfig(anneal=0.5)


def test_a_loss_is_compared_with_the_last_one(planted_corpus, tmp_path, monkeypatch):
    """Not with the best: what falls again from a rise does not make the rate fall."""
    losses, rates, rate = iter((5.0, 7.0, 6.0, 4.0, 4.5)), [], TrainConfig.rate
    monkeypatch.setattr(training, "evaluate_loss", lambda *args: {"loss": next(losses)})
    monkeypatch.setattr(TrainConfig, "rate", lambda *args: rates.append(rate(*args)) or rates[-1])
    config = TrainConfig(batch_size=4, steps=6, learning_rate=8e-3, anneal=2, validate_every=1)
    with pytest.raises(StopIteration):  # at the sixth validation
        train(WINDOWED, tiny_windowed(), planted_corpus, config, tmp_path, progress=False)
    assert rates == pytest.approx([8e-3, 8e-3, 4e-3, 4e-3, 4e-3, 2e-3])


def test_a_loss_that_stays_is_no_rise(tmp_path):
    """Nor is that at the end of a run, between two validations."""
    losses = {2: 3.0, 4: 3.0, 6: 2.0, 8: 4.0, 9: 5.0}
    lines = [{"step": step, "split": "val", "loss": loss} for step, loss in losses.items()]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert training._Loop._rises(SimpleNamespace(folder=tmp_path, validate_every=2)) == 1


def test_the_best_checkpoints_are_kept_and_averaged(planted_corpus, tmp_path):
    config = replace(CONFIG, steps=8, validate_every=1, keep_best=3)
    run = train(MEM2MEM, model(), planted_corpus, config, tmp_path / "run", progress=False)
    losses = {m["step"]: m["loss"] for m in run.metrics if m["split"] == "val"}
    best = sorted(losses, key=losses.get)[:3]
    assert kept_checkpoints(run.folder) == [f"best-{step}" for step in best]
    weights = [load_weights(model(), run.folder, f"best-{step}").state_dict() for step in best]
    average = load_weights(model(), run.folder, "average").state_dict()
    for name, value in average.items():
        assert torch.allclose(value, sum(w[name] for w in weights) / 3, atol=1e-7), name
    first = load_weights(model(), run.folder, "best").state_dict()
    assert all(torch.equal(value, weights[0][name]) for name, value in first.items())
    with pytest.raises(RunError, match="keep_best above 1"):
        plain = train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path / "plain", progress=False)
        load_weights(model(), plain.folder, "average")


def test_adagrad_goes_on_where_it_stopped(planted_corpus, tmp_path):
    config = replace(CONFIG, optimizer="adagrad", learning_rate=0.05, max_norm=None, steps=6, save_every=1)
    whole = train(MEM2MEM, model(), planted_corpus, config, tmp_path / "whole", progress=False)
    train(MEM2MEM, model(), planted_corpus, replace(config, steps=3), tmp_path / "parts", progress=False)
    parts = train(MEM2MEM, model(), planted_corpus, config, tmp_path / "parts", resume=True, progress=False)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name]), name


def test_adams_betas_and_epsilon():
    (group,) = _optimizer(model(), TrainConfig(beta2=0.998, epsilon=1e-9)).param_groups
    assert group["betas"] == (0.9, 0.998) and group["eps"] == 1e-9


def test_weights_of_another_vocabulary_are_refused(planted_corpus, tmp_path):
    """Where the model knows its own; weights alone, without config.json, say nothing of theirs."""
    train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=1), tmp_path, progress=False)
    network = model(4)
    network.encoder_digest = planted_corpus.encoder.digest()
    load_weights(network, tmp_path, "last")
    network.encoder_digest = "0123456789abcdef"
    said = r"was trained with the vocabulary .*, and the model was built .* 0123456789abcdef"
    with pytest.raises(RunError, match=said):
        load_weights(network, tmp_path, "last")
    (tmp_path / "config.json").unlink()
    load_weights(network, tmp_path, "last")


def test_what_a_stopped_run_has_saved_is_said(planted_corpus, tmp_path):
    """Nothing where there is nothing, or nothing that can be read."""
    assert training.progress_of(tmp_path) == ""
    train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=3), tmp_path, progress=False)
    assert training.progress_of(tmp_path) == (
        f"{tmp_path} holds step 3: the same command with --resume goes on from there."
    )
    (tmp_path / "last.safetensors").write_bytes(b"cut")
    assert training.progress_of(tmp_path) == ""


def test_a_second_process_waits_for_the_first(planted_corpus, tmp_path):
    """Whoever trains the same run later finds it finished, or goes on with what a killed one left."""
    lock = FileLock(tmp_path / ".lock")
    with ThreadPoolExecutor(1) as pool:
        with lock:
            waiting = pool.submit(train, MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, True, False)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=3)
            assert not (tmp_path / "config.json").exists()
        assert waiting.result(timeout=60).step == CONFIG.steps


def test_the_vocabulary_can_be_given(tmp_path):
    arguments = ["mem2mem", "--preset", "demo", "--limit", "3", "--steps", "1", "--options.vocab-size", "200"]
    main([*arguments, "--output", str(tmp_path)])
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["model"]["vocab_size"] == 200


def parsed(*arguments):
    """The setup of a command."""
    _, setup = parse([*arguments, "--output", "x"])
    return setup


@pytest.mark.parametrize(("name", "preset"), [(name, preset) for name, of in PAPERS.items() for preset in of.presets])
def test_every_field_is_an_option_with_the_presets_value(name, preset):
    setup, read = resolve(name, preset), parsed(name, "--preset", preset)
    assert (read.train, read.decode, read.options) == (setup.train, setup.decode, setup.options)
    assert read.model_config() == setup.model_config() and read.recipe == setup.recipe


OTHER = {bool: lambda v: not v, str: lambda v: v, float: lambda v: v / 2, int: lambda v: v + 1}


@pytest.mark.parametrize("part", ["train", "decode", "options", "model"])
def test_each_field_by_its_name(part):
    """Given one by one, on a preset in which every field has a value: that field is changed, and no other."""
    given = ["windowed", "--preset", "demo", "--batch-tokens", "9", "--warmup", "9", "--halve-after", "9"]
    given += ["--anneal", "4", "--cosine", "9", "--options.section-words", "9"]
    before = parsed(*given)
    config = {"model": before.model_config()}.get(part) or getattr(before, part)
    skipped = {"window", "stride"} | ({"vocab_size"} if part == "model" else set())
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in skipped or isinstance(value, str):
            continue
        wanted = (0, 1) if isinstance(value, tuple) else OTHER[type(value)](value)
        option = ("" if part in ("train", "decode") else f"{part}.") + field.name.replace("_", "-")
        if isinstance(value, bool):
            words = [
                f"--{option}"
                if wanted
                else "--" + (f"{part}.no-" if "." in option else "no-") + option.split(".")[-1]
            ]
        else:
            words = [f"--{option}", *map(str, wanted if isinstance(value, tuple) else [wanted])]
        after = parsed(*given, *words)
        found = {"model": after.model_config()}.get(part) or getattr(after, part)
        instead = {"steps": None} if field.name == "epochs" else {}
        assert asdict(found) == {**asdict(config), **instead, field.name: wanted}, field.name


def test_fields_of_training_decoding_model_and_preprocessing():
    setup = parsed(
        "mem2mem", "--preset", "demo", "--learning-rate", "1e-3", "--batch-size", "2", "--beam", "2", "--max-norm",
        "None", "--optimizer", "sgd", "--model.hidden", "32", "--options.section-tokens", "10", "--options.unit",
        "section", "--bf16",
    )  # fmt: skip
    preset = resolve("mem2mem", "demo")
    changed = {"learning_rate": 1e-3, "batch_size": 2, "max_norm": None, "optimizer": "sgd", "bf16": True}
    assert setup.train == replace(preset.train, **changed)
    assert setup.decode == setup.recipe.decode == replace(preset.decode, beam=2)
    assert setup.model_config() == replace(preset.model_config(), hidden=32)
    assert setup.options == replace(preset.options, section_tokens=10, unit="section")


def test_epochs_stand_in_for_the_steps_of_a_preset():
    setup = parsed("mem2mem", "--preset", "demo", "--epochs", "2")
    assert (setup.train.epochs, setup.train.steps) == (2, None)
    setup = parsed("mem2mem", "--preset", "demo", "--epochs", "2", "--steps", "7")
    assert (setup.train.epochs, setup.train.steps) == (2, 7)


def test_a_run_goes_on_where_its_corpus_has_moved(planted_corpus, tmp_path):
    moved, often = replace(planted_corpus, name="elsewhere/planted"), replace(CONFIG, save_every=1)
    train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=4), tmp_path, progress=False)
    assert train(MEM2MEM, model(), moved, often, tmp_path, resume=True, progress=False).step == CONFIG.steps


def test_what_options_and_model_share_is_the_options_to_say():
    """One value, given once: what the model sees, and what [SLIDE] in the summaries is made for."""
    setup = parsed("windowed", "--preset", "demo", "--options.window", "50", "--options.stride", "40")
    config = setup.model_config()
    assert (config.window, config.stride) == (setup.options.window, setup.options.stride) == (50, 40)
    with pytest.raises(ValueError, match=r"--model\.window is the corpus's to say: give --options\.window"):
        parsed("windowed", "--preset", "demo", "--model.window", "110")
    setup = resolve("windowed", "demo", options={"window": 50, "stride": 40})
    assert (setup.model_config().window, setup.options.window, setup.options.stride) == (50, 50, 40)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mem2mem", "--beem", "3"], "--beam"),
        (["mem2mem", "--model.hiden", "3"], "--model.hidden"),
        (["mem2mem", "--model.window", "3"], "Unrecognized"),
        (["mem2mem", "--beam", "three"], "three"),
        (["mem2mem", "--beam", "0"], "must be at least 1"),
        (["mem2mem", "--batch-size", "0"], "batch_size must be at least 1"),
        (["mem2mem", "--model.hidden", "7"], "must be even"),
        (["mem2mem", "--options.unit", "word"], "invalid choice"),
        (["mem2mem", "--errors", "ignore"], "ignore"),
        (
            ["mem2mem", "--model.vocab-size", "7"],
            "--model.vocab-size is the corpus's to say: give --options.vocab-size",
        ),
        (
            ["read_again", "--model.sentences", "7"],
            "--model.sentences is the corpus's to say: give --options.sentences",
        ),
        (["mem2mum"], "unknown model 'mem2mum', did you mean 'mem2mem'?"),
        (["windowed", "--preset", "CD_I", "--variant", "dynamic"], "has no window: choose the variant 'standard'"),
        (["--errors", "skip", "mem2mum"], "unknown model 'mem2mum', did you mean 'mem2mem'?"),
        ([], "whose model is trained"),
    ],
)
def test_a_wrong_command_stops_with_a_message(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--output", str(tmp_path / "run"), "--limit", "2", "--steps", "1"])
    assert stopped.value.code not in (0, None)
    shown = "".join(x.strip("│╭╰─╮╯\n") for x in capsys.readouterr().err.splitlines())
    assert message in " ".join(f"{stopped.value.code} {shown}".split())
    assert not (tmp_path / "run").exists()


def test_the_paper_may_stand_anywhere():
    for arguments in (["--output", "windowed", "mem2mem", "--steps", "3"], ["--steps", "3", "mem2mem"]):
        command, setup = parse([*arguments, "--output", "windowed", "--preset", "demo"])
        assert (command.paper, setup.paper.name, command.output) == ("mem2mem", "mem2mem", "windowed")
        assert setup.train.steps == 3 and setup.options == resolve("mem2mem", "demo").options


def test_help_shows_the_presets_values(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["windowed", "--preset", "WIKI_II", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert stopped.value.code == 0
    assert re.search(r"--batch-size INT documents \(default: 12\)", text)
    assert re.search(r"--model\.window \{None\}\|INT .{0,60}\(default: 200\)", text)
    assert re.search(r"--options\.source-tokens \{None\}\|INT .{0,60}\(default: 740\)", text)


def test_bf16_on_a_processor_without_it_is_said(planted_corpus, tmp_path, monkeypatch):
    config = replace(CONFIG, steps=1, bf16=True)
    monkeypatch.setattr(training, "has_bf16_products", lambda: False)
    with pytest.warns(UserWarning, match="not worth it here: this processor has no products in bfloat16"):
        run = train(MEM2MEM, model(), planted_corpus, config, tmp_path / "a", progress=False)
    monkeypatch.setattr(training, "has_bf16_products", lambda: True)
    with warnings.catch_warnings(action="error"):
        again = train(MEM2MEM, model(), planted_corpus, config, tmp_path / "b", progress=False)
        full = train(MEM2MEM, model(), planted_corpus, replace(config, bf16=False), tmp_path / "c", progress=False)
    first, second, whole = (r.metrics[0]["loss"] for r in (run, again, full))
    assert first == second != whole and first == pytest.approx(whole, rel=0.01)


def test_gradients_are_clipped(planted_corpus, tmp_path):
    """A step of plain SGD at a rate of 1 moves the weights by as much as a gradient may be long."""
    net = tiny_windowed()
    before = [p.detach().clone() for p in net.parameters()]
    config = TrainConfig(batch_size=4, steps=1, optimizer="sgd", learning_rate=1.0, max_norm=1e-3)
    train(WINDOWED, net, planted_corpus, config, tmp_path, progress=False)
    moved = sum((p - was).square().sum().item() for p, was in zip(net.parameters(), before)) ** 0.5
    assert moved == pytest.approx(1e-3, rel=1e-3)


def test_the_rate_is_halved_by_epochs(planted_corpus, tmp_path, monkeypatch):
    """Five steps are an epoch, at whose end a run is validated."""
    rates, rate = [], TrainConfig.rate
    monkeypatch.setattr(TrainConfig, "rate", lambda *given: rates.append(rate(*given)) or rates[-1])
    config = TrainConfig(batch_size=4, steps=12, optimizer="sgd", learning_rate=0.4, halve_after=1)
    run = train(WINDOWED, tiny_windowed(), planted_corpus, config, tmp_path, progress=False)
    assert rates == pytest.approx([0.4] * 5 + [0.2] * 5 + [0.1] * 2)
    assert [m["step"] for m in run.metrics if m["split"] == "val"] == [5, 10, 12]


def test_weights_are_saved_between_validations(planted_corpus, tmp_path, monkeypatch):
    stopped_at(5, planted_corpus, tmp_path, replace(CONFIG, validate_every=100, save_every=2), monkeypatch)
    assert read_meta(tmp_path / "last.safetensors")["step"] == 4


def test_the_best_loss_is_known_after_a_stop(planted_corpus, tmp_path, monkeypatch):
    losses = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(training, "evaluate_loss", lambda *_: {"loss": next(losses)})
    stopped_at(5, planted_corpus, tmp_path, CONFIG, monkeypatch)
    train(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path, resume=True, progress=False)
    assert read_meta(tmp_path / "best.safetensors")["step"] == 3


def test_a_run_does_not_go_on_with_other_documents(planted_corpus, tmp_path):
    train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=2), tmp_path, progress=False)
    other = replace(planted_corpus, splits={**planted_corpus.splits, "train": planted_corpus["val"]})
    with pytest.raises(RunError, match="data is "):
        train(MEM2MEM, model(), other, CONFIG, tmp_path, resume=True, progress=False)


def test_validation_is_in_bfloat16_where_training_is(planted_corpus, tmp_path, monkeypatch):
    training_then = []

    def autocast(self):
        training_then.append(self.model.training)
        return torch.autocast("cpu", torch.bfloat16)

    monkeypatch.setattr(training._Loop, "_autocast", autocast)
    train(MEM2MEM, model(), planted_corpus, replace(CONFIG, steps=1, bf16=True), tmp_path, progress=False)
    assert set(training_then) == {True, False}


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_trained_on_its_own_corpus(name, capsys):
    """Unless another one is named; and the help says so."""
    given = [name, "--preset", "demo", "--output", "o"]
    assert parse(given)[0].dataset == PAPERS[name].dataset
    assert parse([*given, "--dataset", "my/folder"])[0].dataset == "my/folder"
    with pytest.raises(SystemExit):
        parse([*given, "--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert re.search(rf"by default the paper's own\. .{{0,200}}\(default: {PAPERS[name].dataset}\)", told)


def test_the_help_names_the_papers(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"PAPER whose model is trained: {', '.join(PAPERS)} (required)" in told
