"""Parts of the work in threads: in order, few at once, the same numbers."""

import threading
import time

import pytest
import torch
from torch import nn

from lib.layers.dropout import Dropout, random_numbers
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.runs.config import TrainConfig
from lib.runs.folder import Recipe, read_metrics
from lib.runs.loop import train
from lib.system.threads import in_threads, torch_threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_in_order_and_few_are_asked_for_at_once(threads):
    asked, taken, most = [], 0, 0

    def items():
        for i in range(10):
            asked.append(i)
            yield i

    def slow_at_first(i):
        time.sleep(0.02 if i == 0 else 0)
        return i * i

    for place, result in enumerate(in_threads(slow_at_first, items(), threads)):
        assert result == place**2
        taken += 1
        most = max(most, len(asked) - taken)
    assert taken == 10 and most < threads


def test_a_thread_has_one_of_pytorchs_and_the_caller_keeps_its_own():
    with torch_threads(2):
        found = list(in_threads(lambda _: (torch.get_num_threads(), threading.get_ident()), range(4), 2))
        assert torch.get_num_threads() == 2
        assert list(in_threads(lambda _: torch.get_num_threads(), [0], 1)) == [2], "one thread is the caller's"
    assert {count for count, _ in found} == {1}
    assert threading.get_ident() not in {thread for _, thread in found}


def test_after_an_error_nothing_goes_on():
    running = []

    def work(i):
        running.append(i)
        time.sleep(0.05)
        if i == 0:
            raise ValueError("no zero")
        running.remove(i)

    with pytest.raises(ValueError, match="no zero"):
        list(in_threads(work, range(9), 3))
    assert running == [0]


def model(dropout: float = 0.0):
    torch.manual_seed(0)
    made = Mem2Mem(Mem2MemConfig(20, embedding=6, hidden=8, bottleneck=6, slots=2, compression=4))
    made.embedding = nn.Sequential(made.embedding, Dropout(dropout))
    return made


def losses_and_weights(corpus, folder, threads, dropout=0.0, **config):
    config = TrainConfig(**{"batch_size": 6, "steps": 3, "learning_rate": 1e-3, "log_every": 1, **config})
    with torch_threads(threads):
        run = train(Recipe("mem2mem", "+read"), model(dropout), corpus, config, folder, progress=False)
    steps = [m for m in read_metrics(folder) if m["split"] == "train"]
    terms = [[m[name] for name in ("loss", "nll", "comp", "read")] for m in steps]
    return torch.tensor(terms), torch.cat([p.detach().flatten() for p in run.model.parameters()])


@pytest.mark.parametrize("config", [{}, {"accumulate": 2}, {"batch_size": 3}])
def test_documents_shared_out_give_the_same_losses_and_weights(planted_corpus, tmp_path, monkeypatch, config):
    one, expected = losses_and_weights(planted_corpus, tmp_path / "1", 1, **config)
    monkeypatch.setattr("lib.runs.loop.WORTH_SHARING", 0)
    for threads in (2, 4):
        losses, weights = losses_and_weights(planted_corpus, tmp_path / str(threads), threads, **config)
        assert torch.allclose(losses, one, rtol=1e-5, atol=0)
        assert torch.allclose(weights, expected, rtol=0, atol=2e-5)


def test_dropout_in_threads_comes_back_with_the_seed(planted_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.runs.loop.WORTH_SHARING", 0)
    (_, first), (_, again), (_, other) = (
        losses_and_weights(planted_corpus, tmp_path / name, 3, dropout=0.5, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_small_steps_are_not_shared_out(planted_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.runs.loop.backward_in_threads", lambda *_: pytest.fail("shared out"))
    losses_and_weights(planted_corpus, tmp_path / "small", 2)


def test_random_numbers_are_a_threads_own():
    drop, ones = Dropout(0.5), torch.ones(1000)
    with random_numbers(1, 2):
        first = drop(ones)
        second = drop(ones)

    def again(seeds):
        with random_numbers(*seeds):
            return drop(ones)

    same, other = in_threads(again, [(1, 2), (1, 3)], 2)
    assert torch.equal(first, same)
    assert not torch.equal(first, second) and not torch.equal(first, other)
    torch.manual_seed(7)
    outside = drop(ones)
    torch.manual_seed(7)
    assert torch.equal(outside, drop(ones)), "elsewhere PyTorch's own"
