"""Small corpora and models that many tests use."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lib.data.batch import EncodedDocument, make_batch
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.synthetic import planted_sentences
from lib.data.vocabulary import BOS, EOS, SPECIALS, Vocabulary
from lib.layers.dropout import Dropout
from lib.models.decoder_state import _hypotheses
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.papers.mem2mem.sections import CohanOptions
from lib.runs.search import DecodeConfig, beam_search, greedy_search
from lib.system.files import project_root

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


# ------------------------------------------------------------------------------- what holds for every summarizer


def check_padding(model, items=RAGGED, tolerance: float = 1e-10):
    """Documents alone and in a padded batch: the same loss terms, and gradients of the loss."""
    together, alone = model.loss(batch_of(*items)), [model.loss(batch_of(item)) for item in items]
    for term, value in together.items():
        expected = torch.stack([terms[term] for terms in alone]).mean()
        assert torch.allclose(value, expected, rtol=0, atol=1e-12), term
    names, parameters = zip(*model.named_parameters())
    losses = together["loss"], sum(terms["loss"] for terms in alone) / len(items)
    for name, a, b in zip(names, *(torch.autograd.grad(x, parameters, allow_unused=True) for x in losses)):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=0, atol=tolerance), name


def check_beam_search(model, config: DecodeConfig, items=RAGGED):
    """Log-probabilities are the model's own, and a beam of one is greedy search."""
    for item, found in zip(items, beam_search(model, batch_of(*items), config)):
        for h in found:
            state = model.encode(batch_of(item))
            output, _ = model.decode(torch.tensor([[BOS, *h.ids]]), state)
            score = model.log_prob(output, torch.tensor([[*h.ids, EOS]]), state).sum().item()
            assert h.log_prob == pytest.approx(score, abs=1e-9)
    batch, one = batch_of(*items), replace(config, beam=1)
    for found, expected in zip(beam_search(model, batch, one), greedy_search(model, batch, one)):
        assert found[0].ids == expected.ids


def check_same_state(state, expected):
    """What two states hold of their hypotheses is the same."""
    names = _hypotheses(type(expected))
    assert names
    for name in names:
        pairs = list(zip(leaves(getattr(state, name)), leaves(getattr(expected, name)), strict=True))
        assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in pairs), name


def leaves(value):
    """The tensors of a field of a state, whatever holds them."""
    if value is None or isinstance(value, torch.Tensor):
        return [] if value is None else [value]
    parts = value if isinstance(value, tuple) else vars(value).values()
    return [leaf for part in parts for leaf in leaves(part)]


def check_parts(model, cuts, items=RAGGED):
    """One call with many words is many calls, in any cuts: the features of the output, and the state after."""
    batch = batch_of(*items)
    state = model.encode(batch)
    output, after = model.decode(batch.target_input, state)
    for cut in cuts:
        running, parts = state, []
        for tokens in batch.target_input.split(cut, 1):
            part, running = model.decode(tokens, running)
            parts.append(part.features)
        assert torch.allclose(torch.cat(parts, 1), output.features, rtol=0, atol=1e-12)
        check_same_state(running, after)


def check_hypotheses(model, items=RAGGED):
    """For three documents: two hypotheses share what was made of their document."""
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    tokens = torch.tensor([[4, 5, 6], [7, 1, 4], [9, 9, 9], [4, 6, 8], [1, 1, 2], [5, 4, 3]])
    output, _ = model.decode(tokens, model.encode(batch_of(*items)).reorder(rows))
    expected, _ = model.decode(tokens, model.encode(batch_of(*[items[i] for i in rows])))
    assert torch.allclose(output.features, expected.features, rtol=0, atol=1e-12)


def dropped_in_a_loss(model, batch, monkeypatch) -> dict[str, int]:
    """How often dropout draws in one loss, by the name of its module without numbers of layers."""
    names, found, draws = {module: name for name, module in model.named_modules()}, Counter(), Dropout._draws

    def count(self, x):
        found[re.sub(r"\.\d+\.", ".", names[self])] += 1
        return draws(self, x)

    monkeypatch.setattr(Dropout, "_draws", count)
    model.train().loss(batch)
    return found


@pytest.fixture
def planted_corpus() -> PreparedCorpus:
    return make_planted_corpus()


def make_planted_corpus() -> PreparedCorpus:
    """20 training and 6 validation documents of the synthetic task."""
    splits = {
        "train": Split.of(planted_sentences(20, seed=1, sentences=5, words=3, planted=2, vocab_size=20)),
        "val": Split.of(planted_sentences(6, seed=2, sentences=5, words=3, planted=2, vocab_size=20)),
        "test": Split.of([]),
    }
    vocabulary = Vocabulary([f"w{i}" for i in range(20 - len(SPECIALS))])
    return PreparedCorpus("planted", TextEncoder(CohanOptions(vocab_size=20), vocabulary), splits)
