"""Small corpora and models that many tests use."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lib.data.batching import make_batch
from lib.data.prepared import EncodedDocument, PreparedCorpus, Split
from lib.data.preprocess import CohanOptions
from lib.data.synthetic import planted_sentences
from lib.data.text import SPECIALS, Vocabulary
from lib.files import project_root
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig

VOCAB = 12


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


def tiny_model(**changes) -> Mem2Mem:
    """Double precision, with weights large enough that no attention is uniform."""
    torch.manual_seed(0)
    sizes = {"embedding": 5, "hidden": 6, "bottleneck": 4, "slots": 3, "compression": 4}
    model = Mem2Mem(Mem2MemConfig(VOCAB, **{**sizes, **changes})).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def document(sentences: list[list[int]], target: list[int], name: str = "d") -> EncodedDocument:
    """A document from ids; ids from VOCAB up are its unknown words."""
    source = [w for s in sentences for w in s]
    unknown = [f"unknown{i}" for i in range(max([*source, *target]) - VOCAB + 1)]
    lengths = [len(s) for s in sentences]
    return EncodedDocument(name, *(np.array(x, dtype=np.int32) for x in (source, lengths, target)), unknown, ["x ."])


RAGGED = [
    document([[4, 5, 12, 6], [7, 8], [9, 4, 13, 12, 5]], [12, 4, 13, 5, 3], "a"),
    document([[5, 12]], [12, 3], "b"),
    document([[9, 10, 11, 4, 5, 6, 7], [4]], [1, 9, 8, 3], "c"),
]


def batch_of(*documents):
    return make_batch(documents or RAGGED, VOCAB)


@pytest.fixture
def planted_corpus() -> PreparedCorpus:
    """20 training and 6 validation documents of the synthetic task."""
    splits = {
        "train": Split.of(planted_sentences(20, seed=1, sentences=5, words=3, planted=2, vocab_size=20)),
        "val": Split.of(planted_sentences(6, seed=2, sentences=5, words=3, planted=2, vocab_size=20)),
        "test": Split.of([]),
    }
    vocabulary = Vocabulary([f"w{i}" for i in range(20 - len(SPECIALS))])
    return PreparedCorpus("planted", CohanOptions(vocab_size=20), vocabulary, splits)
