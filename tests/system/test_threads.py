"""Parts of the work in threads: in order, few at once, the same numbers."""

import threading
import time

import pytest
import torch
from torch import nn

from lib.data.batch import make_batch
from lib.layers.dropout import Dropout, random_numbers
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.system.metrics import read_metrics
from lib.system.threads import batches_ahead, in_threads, made_ahead, torch_threads
from lib.training import parts
from lib.training.config import TrainConfig
from lib.training.folder import Recipe
from lib.training.loop import train


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
    config = TrainConfig(
        **{"batch_size": 6, "steps": 3, "learning_rate": 1e-3, "log_every": 1, **config}
    )
    with torch_threads(threads):
        run = train(
            Recipe("mem2mem", "+read"), model(dropout), corpus, config, folder, progress=False
        )
    steps = [m for m in read_metrics(folder) if m["split"] == "train"]
    terms = [[m[name] for name in ("loss", "nll", "comp", "read")] for m in steps]
    return torch.tensor(terms), torch.cat([p.detach().flatten() for p in run.model.parameters()])


@pytest.mark.parametrize("config", [{}, {"accumulate": 2}, {"batch_size": 3}])
def test_documents_shared_out_give_the_same_losses_and_weights(
    planted_corpus, tmp_path, monkeypatch, config
):
    one, expected = losses_and_weights(planted_corpus, tmp_path / "1", 1, **config)
    shared, in_threads = [], parts.Updates.backward_in_threads
    counted = lambda *given: shared.append(given) or in_threads(*given)  # noqa: E731
    monkeypatch.setattr(parts.Updates, "backward_in_threads", counted)
    monkeypatch.setattr(parts, "WORTH_SHARING", 0)
    for threads in (2, 4):
        shared.clear()
        losses, weights = losses_and_weights(
            planted_corpus, tmp_path / str(threads), threads, **config
        )
        assert torch.allclose(losses, one, rtol=1e-5, atol=0)
        assert torch.allclose(weights, expected, rtol=0, atol=2e-5)
        assert len(shared) == 3 * config.get("accumulate", 1), "each part of each step"


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


# ---------------------------------------------------------------------------------
# batches made ahead


def in_background() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_is_made_ahead_is_in_order_and_bounded(count):
    begun, threads = [], set()

    def square(i):
        begun.append(i)
        threads.add(threading.get_ident())
        return i * i

    results = made_ahead(square, iter(range(9)), count)
    assert next(results) == 0
    time.sleep(0.05)
    assert len(begun) <= max(1, count)
    assert list(results) == [i * i for i in range(1, 9)] and begun == [*range(9)]
    assert len(threads) == 1 and (threading.get_ident() in threads) == (count == 0)
    assert not in_background()


@pytest.fixture
def ahead(monkeypatch):
    """Batches of a CPU's training are made in the background as those of a GPU's."""
    assert batches_ahead(torch.device("cpu")) == 0
    monkeypatch.setattr(
        "lib.training.loop.batches_ahead", lambda device: batches_ahead(torch.device("cuda"))
    )


def training_of(corpus, folder, dropout=0.5, **config):
    """The losses and weights, bit for bit, of training with validation on one thread."""
    settings = {"validate_every": 2, "accumulate": 2, "batch_size": 7, "steps": 7, **config}
    losses_and_weights(corpus, folder, 1, dropout, **settings)
    lines = [{k: v for k, v in m.items() if k != "seconds"} for m in read_metrics(folder)]
    return lines, (folder / "last.safetensors").read_bytes()


@pytest.mark.parametrize("config", [{}, {"batch_tokens": 60, "accumulate": 1}])
def test_batches_made_ahead_change_no_number(
    planted_corpus, tmp_path, request, monkeypatch, config
):
    expected = training_of(planted_corpus, tmp_path / "in turn", **config)
    request.getfixturevalue("ahead")
    made, make = [], make_batch
    monkeypatch.setattr(
        "lib.training.parts.make_batch", lambda *a: made.append(threading.get_ident()) or make(*a)
    )
    assert training_of(planted_corpus, tmp_path / "ahead", **config) == expected
    assert len(made) == 7 * config.get("accumulate", 2) and threading.get_ident() not in made
    assert not in_background()
