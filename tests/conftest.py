"""Small corpora and models that many tests use."""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from companion.tasks.synthetic import planted_sentences
from lib.data.batch import EncodedDocument, make_batch
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.vocabulary import SPECIALS, Vocabulary
from lib.layers.dropout import Dropout
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.files import project_root

VOCAB = 12


def case_tables(name: str) -> dict:
    """Tables of texts and of what is made of them, from `tests/cases`."""
    return tomllib.loads(
        (Path(__file__).parent / "cases" / f"{name}.toml").read_text(encoding="utf-8")
    )


def pytest_configure(config):
    """Let Triton's kernels be computed by its interpreter; it is asked for when they are
    imported."""
    os.environ["TRITON_INTERPRET"] = "1"


def in_a_process(*arguments: str) -> subprocess.CompletedProcess:
    """A command in a process of its own: the pretend device changes PyTorch."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=project_root(),
        timeout=1800,
        env={**own, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )


def train_runs(folder: Path, runs: Mapping[str, Sequence[str]]) -> Path:
    """Train runs below a folder, by their names and the arguments of `lib.train`; their cache is
    there too."""
    from lib.train import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        for name, arguments in runs.items():
            main([*arguments, "--output", str(folder / name)])
    return folder


@pytest.fixture
def node(tmp_path):
    """`in_node`, in a folder of the test's own."""
    from tests.tools.live import in_node  # which needs this file

    return partial(in_node, tmp_path)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real corpora and samples that stand beside the project in some checkouts."""
    folder = project_root().parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data with real samples is not here")
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPANION_CACHE", str(tmp_path / "cache"))


def double(kind, config, std: float = 0.7):
    """A model in double precision, with weights large enough that no attention is uniform."""
    torch.manual_seed(0)
    model = kind(config).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return model.eval()


def tiny_model(**changes) -> Mem2Mem:
    sizes = {"embedding": 5, "hidden": 6, "bottleneck": 4, "slots": 3, "compression": 4}
    return double(Mem2Mem, Mem2MemConfig(VOCAB, **{**sizes, **changes})).train()


def same_gradients(model, ours, expected, tolerance: float = 1e-10) -> None:
    """Of two losses; a parameter that has none has none in either."""
    names, parameters = zip(*model.named_parameters())
    found = (torch.autograd.grad(loss, parameters, allow_unused=True) for loss in (ours, expected))
    for name, a, b in zip(names, *found):
        assert (a is None) == (b is None), name
        assert a is None or torch.allclose(a, b, rtol=0, atol=tolerance), name


def log_prob(model, *documents) -> torch.Tensor:
    """log P of the words of the references: [B, T]."""
    batch = batch_of(*documents)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    return model.log_prob(output, batch.target, state)


def document(sentences: list[list[int]], target: list[int], name: str = "d") -> EncodedDocument:
    """A document from ids; ids from VOCAB up are its unknown words."""
    source = [w for s in sentences for w in s]
    unknown = [f"unknown{i}" for i in range(max([*source, *target]) - VOCAB + 1)]
    lengths = [len(s) for s in sentences]
    return EncodedDocument(
        name, *(np.array(x, dtype=np.int32) for x in (source, lengths, target)), unknown, ["x ."]
    )


def same_document(ours: EncodedDocument, theirs: EncodedDocument) -> None:
    """Everything in them is equal."""
    assert (ours.id, ours.unknown, ours.reference) == (theirs.id, theirs.unknown, theirs.reference)
    for name in ("source", "sentence_lengths", "target", "source_ids", "graph", "labels"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


RAGGED = [
    document([[4, 5, 12, 6], [7, 8], [9, 4, 13, 12, 5]], [12, 4, 13, 5, 3], "a"),
    document([[5, 12]], [12, 3], "b"),
    document([[9, 10, 11, 4, 5, 6, 7], [4]], [1, 9, 8, 3], "c"),
]


def batch_of(*documents):
    return make_batch(documents or RAGGED, VOCAB)


def leaves(value):
    """The tensors of a field of a state, whatever holds them."""
    if value is None or isinstance(value, torch.Tensor):
        return [] if value is None else [value]
    parts = value if isinstance(value, tuple) else vars(value).values()
    return [leaf for part in parts for leaf in leaves(part)]


@contextmanager
def without_kernels(cached: int = 2**22):
    """PyTorch's operations only, as on a GPU without Triton; steps in parts of at most `cached`
    numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [
            name
            for name, module in sys.modules.items()
            if name.startswith("lib.") and hasattr(module, "compiled")
        ]:
            patch.setattr(f"{name}.compiled", lambda values: False)
        patch.setattr("lib.layers.attention.TANH_NUMBERS", cached)
        yield


def dropped_in_a_loss(model, batch, monkeypatch) -> dict[str, int]:
    """Count how often dropout draws in one loss, by the name of its module without numbers of
    layers."""
    names, found, forward = (
        {module: name for name, module in model.named_modules()},
        Counter(),
        Dropout.forward,
    )

    def count(self, x):
        if self.p:
            found[re.sub(r"\.\d+\.", ".", names[self])] += 1
        return forward(self, x)

    monkeypatch.setattr(Dropout, "forward", count)
    model.train().loss(batch)
    return found


@pytest.fixture
def planted_corpus() -> PreparedCorpus:
    return make_planted_corpus()


def make_planted_corpus() -> PreparedCorpus:
    """20 training and 6 validation documents of the synthetic task."""
    splits = {
        "train": Split.of(
            planted_sentences(20, seed=1, sentences=5, words=3, planted=2, vocab_size=20)
        ),
        "val": Split.of(
            planted_sentences(6, seed=2, sentences=5, words=3, planted=2, vocab_size=20)
        ),
        "test": Split.of([]),
    }
    vocabulary = Vocabulary([f"w{i}" for i in range(20 - len(SPECIALS))])
    return PreparedCorpus("planted", TextEncoder(CohanOptions(vocab_size=20), vocabulary), splits)
