"""What all models share, for every variant of every paper in a tiny size. A model is tested here
when its paper is in `PAPERS`. What a model has of its own is tested in its own file: equations,
numbers by hand, limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from lib.data.vocabulary import BOS, EOS, SLIDE, UNK
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search, greedy_search
from lib.models.discourse_aware import DiscourseAware
from lib.models.headline_baselines import RAS
from lib.models.hierarchical_transformer import CopyingTransformer, HierarchicalTransformer
from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem
from lib.models.sentence_extractors import SentenceClassifier, SentencePointer
from lib.models.seq2seq import Seq2Seq
from lib.models.summarizer import Summarizer
from lib.models.t_dmca import TDMCA
from lib.models.tlm import TLM
from lib.models.windowed import Windowed
from lib.papers import PAPERS
from lib.papers.paper import Paper
from lib.system.settings import field_names, from_json
from lib.training.folder import load_tensors, put_weights, weights_of
from tests.conftest import (
    VOCAB,
    batch_of,
    document,
    double,
    dropped_in_a_loss,
    leaves,
    same_gradients,
    without_kernels,
)

SIZES = {
    "embedding": 5, "hidden": 6, "bottleneck": 4, "slots": 3, "compression": 4, "width": 8, "heads": 2, "inner": 10,
    "layers": 2, "local_layers": 2, "global_layers": 2, "decoder_layers": 2, "source_vocab_size": 20, "context": 3,
    "filter_width": 3, "candidates": 9, "window": 4, "stride": 3, "block": 4, "budget": 3, "longest": 4,
    "sentences": 4, "lambda_comp": 0.5, "lambda_read": 0.25, "dropout": 0.0,
}  # fmt: skip
LONGEST = 2_050  # words, where a model has so many positions
CHOICES = [  # of configs, which no variant makes: paper, variant, changes
    ("mem2mem", "+read", {"score": "general"}),
    ("mem2mem", "+read", {"score": "dot"}),
    ("hierarchical_transformer", "T-DMCA", {"block": 3, "stride": 2}),
    ("hierarchical_transformer", "T-DMCA", {"block": 1, "stride": 1}),
    ("hierarchical_transformer", "T-DMCA", {"block": 16, "stride": 5}),
    ("windowed", "streamed", {"windowing": "static"}),
    ("windowed", "streamed", {"stride": 4}),
    ("read_again", "words-lvt2k", {"candidates": 50}),
]


@dataclass(frozen=True)
class Case:
    """A model in a tiny size, with the first paper and variant that have it."""

    name: str
    kind: Any
    config: Any
    graph: bool  # whether it reads weights between paragraphs

    def __str__(self):
        return self.name

    def model(self, **changes) -> Any:
        return double(self.kind, replace(self.config, **changes), 0.5)

    def first(self) -> Any:
        """With the weights that training begins from."""
        torch.manual_seed(0)
        return self.kind(self.config)

    @property
    def documents(self) -> list:
        return [
            replace(d, graph=graph_of(len(d.sentence_lengths)) if self.graph else None)
            for d in DOCUMENTS
        ]


def cases(papers: Mapping[str, Paper]) -> list[Case]:
    """Every variant in its paper's demo, and every preset; of equal models the first."""
    found: dict[tuple, Case] = {}
    for of in papers.values():
        small = "demo" if "demo" in of.presets else next(iter(of.presets))
        asked = [(small, variant, {}) for variant in of.variants] + [
            (preset, None, {}) for preset in of.presets
        ]
        asked += [
            (small, variant, changes) for name, variant, changes in CHOICES if name == of.name
        ]
        for preset, variant, changes in asked:
            setup = of.setup(preset, variant)
            chosen = of.variants[setup.variant]
            names = field_names(chosen.kind.Config)
            # of a model that cannot move it
            window = {} if "stride" in names else {"window": LONGEST}
            sizes = {**SIZES, **window, "source_tokens": LONGEST}
            own = {
                name: value and min(value, sizes[name])
                for name, value in chosen.config.items()
                if name in sizes
            }
            own |= {name: None for name in setup.shared if getattr(setup.options, name) is None}
            config = setup.model_config(**{**sizes, **own, "vocab_size": VOCAB, **changes})
            special = [] if preset == small else [preset]
            name = [
                of.name,
                setup.variant,
                *(f"{field} {value}" for field, value in changes.items()),
                *special,
            ]
            case = Case(
                ", ".join(name), setup.kind, config, bool(getattr(setup.options, "graph", False))
            )
            found.setdefault((case.kind, config, case.graph), case)
    return list(found.values())


CONCERNED = {  # the name of an argument of a test -> which cases it has
    "case": lambda case: True,
    "writer": lambda case: issubclass(case.kind, Summarizer),
    "extractor": lambda case: case.first().extracts,
    "dropping": lambda case: hasattr(case.config, "dropout"),
}


def pytest_generate_tests(metafunc):
    for name in CONCERNED.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, [*filter(CONCERNED[name], cases(PAPERS))], ids=str)


def labelled(sentences, target, right=(0,), name="d"):
    """A document of which some sentences are right."""
    return replace(
        document(sentences, target, name),
        labels=np.isin(range(len(sentences)), right).astype(np.float32),
    )


def graph_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).random((n, n)).astype(np.float32).flatten()


# 11, 2 and 8 words: 4, 1 and 3 windows; copies of unknown words; a word that stands in no source
DOCUMENTS = [
    labelled(
        [[4, 5, 12, 6], [7, 8], [9, 5, 13, 12, 5]],
        [12, SLIDE, SLIDE, 13, 5, SLIDE, 6, EOS],
        [1, 2],
        "a",
    ),
    labelled([[5, 12]], [12, 5, 6, EOS], [0], "b"),
    labelled([[9, 10, 11, 5, 5, 6, 7], [5]], [1, SLIDE, 8, SLIDE, 7, EOS], [0], "c"),
]
ROWS = torch.tensor([0, 0, 1, 1, 2, 2])  # two hypotheses of each
NEVER = -100.0  # log P of what cannot be written is less
WRITTEN = torch.tensor(
    [[4, 12, 6], [7, 13, SLIDE], [9, 12, 9], [SLIDE, 13, 8], [1, 12, SLIDE], [5, SLIDE, 3]]
)


def same(ours: Tensor, expected: Tensor, what: Any, tolerance: float = 1e-12) -> None:
    assert torch.allclose(ours, expected, rtol=0, atol=tolerance), what


def same_state(state, expected) -> None:
    """What two states hold of their hypotheses is the same."""
    assert expected.hypotheses
    for name in expected.hypotheses:
        for a, b in zip(leaves(getattr(state, name)), leaves(getattr(expected, name)), strict=True):
            same(a, b, name)


def log_p(model, output, state) -> Tensor:
    """Of every word at every step [R, T, V + 2], those to copy too."""
    every = (torch.full(output.features.shape[:2], word) for word in range(VOCAB + 2))
    return torch.stack([model.log_prob(output, words, state) for words in every], -1)


def read(model, tokens: Tensor, state):
    """log P of all words after each of `tokens`, and the state after them."""
    output, after = model.decode(tokens, state)
    return log_p(model, output, after), after


# ---------------------------------------------------------------------------------
# every model


@pytest.mark.parametrize("training", [False, True])
def test_padding_changes_nothing(case, training):
    """Documents alone and in a padded batch, those with fewer sentences last and first: terms and
    gradients."""
    if training and hasattr(case.config, "candidates"):
        return  # a batch's documents share the words that are scored
    model = case.model().train(training)
    for documents in (case.documents, case.documents[::-1]):
        together, alone = (
            model.loss(batch_of(*documents)),
            [model.loss(batch_of(d)) for d in documents],
        )
        for term, value in together.items():
            same(value, torch.stack([terms[term] for terms in alone]).mean(), term)
        same_gradients(model, together["loss"], sum(terms["loss"] for terms in alone) / len(alone))


HARD = {
    "one sentence of one word": [labelled([[5]], [5, EOS])],
    "no more than the end": [labelled([[5, 6], [7]], [EOS])],
    "all words unknown": [labelled([[12, 13], [14]], [13, SLIDE, 14, EOS])],
    "nothing of the summary in the source": [labelled([[5, 6]], [UNK, UNK, EOS])],
    "a sentence of 2,000 words": [labelled([[5 + i % 7 for i in range(2_000)], [5]], [SLIDE] * 40 + [5, EOS]),
                                  labelled([[5]], [EOS])],
}  # fmt: skip


@pytest.mark.parametrize("what", HARD)
def test_nothing_is_nan(case, what):
    model = case.model().float()
    losses = model.loss(batch_of(*HARD[what]))
    losses["loss"].backward()
    assert all(torch.isfinite(value) for value in losses.values())
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_bfloat16_stays_close(case):
    """In training, gradients too, and in a validation; a sum over words is not rounded. Closer:
    PyTorch alone in single precision."""
    model, batch = case.first().eval(), batch_of(*case.documents)
    loss = model.loss(batch)["loss"]
    loss.backward()
    exact, slopes = loss.item(), _gradient(model)
    with without_kernels():
        assert model.loss(batch)["loss"].item() == pytest.approx(exact, rel=1e-5)
    for learns in (True, False):
        with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(learns):
            rough = model.loss(batch)["loss"]
        assert rough.dtype == torch.float32 and rough.item() == pytest.approx(exact, rel=0.02)
        assert rough != rough.bfloat16()
        if learns:
            model.zero_grad()
            rough.backward()
            far = torch.linalg.vector_norm(_gradient(model) - slopes) / torch.linalg.vector_norm(
                slopes
            )
            # transformers: every layer is rounded
            assert far <= (0.15 if hasattr(case.config, "heads") else 0.03)


def _gradient(model) -> Tensor:
    """The gradient of all parameters, one after the other."""
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).clone()


@pytest.mark.parametrize("cached", [1, 40])
def test_pytorch_alone_gives_the_same(case, cached):
    """Without compiled kernels, documents in groups of any size: as on a GPU."""
    model, batch = case.model(), batch_of(*case.documents)
    whole = model.loss(batch)["loss"]
    with without_kernels(cached):
        parts = model.loss(batch)["loss"]
        same(parts, whole, "loss")
        same_gradients(model, whole, parts)


def test_what_is_saved_is_opened(case, tmp_path):
    """The config from JSON, every weight from its file, where one that is used twice stands
    once."""
    model, path = case.model(), tmp_path / "weights.safetensors"
    save_file(weights_of(model), path)
    config = from_json(case.kind.Config, vars(case.config), path)
    again = case.kind(config).double().eval()
    stored = load_tensors(path)
    put_weights(again, stored, path)
    assert len(stored) == len({value.data_ptr() for value in model.state_dict().values()})
    assert config == case.config and again.state_dict().keys() == model.state_dict().keys()
    assert all(
        torch.equal(a, b) for a, b in zip(again.state_dict().values(), model.state_dict().values())
    )


def test_dropout_is_only_for_training(dropping):
    model, batch = dropping.model(dropout=0.5).train(), batch_of(*dropping.documents)
    assert model.loss(batch)["loss"] != model.loss(batch)["loss"]
    model.eval()
    assert (
        model.loss(batch)["loss"]
        == model.loss(batch)["loss"]
        == dropping.model().loss(batch)["loss"]
    )


# how often dropout draws in one loss of DOCUMENTS: of words, weights of attention, and what parts
# give
DROPPED = [
    (TLM, {"layers": 2}, {"dropout": 3, "layers.attention.dropout": 2 * 3, "layers.dropout": 2 * 3 * 2}),
    (TDMCA, {"layers": 4}, {"dropout": 2, "layers.dropout": 4 * 2 * 3, "layers.feed_forward.dropout": 4 * 2}),
    (HierarchicalTransformer, {"decoder_layers": 2}, {
        "dropout": 2,
        "local_layers.attention.dropout": 2 * 4,  # for paragraphs of one or another length
        "local_layers.dropout": 2 * 2, "local_layers.feed_forward.dropout": 2,
        "global_layers.dropout": 2 * 4, "global_layers.feed_forward.dropout": 2,
        "decoder_layers.self_attention.dropout": 2, "decoder_layers.source_attention.dropout": 2,
        "decoder_layers.dropout": 2 * 3, "decoder_layers.feed_forward.dropout": 2,
    }),
    (SentencePointer, {"layers": 3}, {"encoder.words.dropout": 2, "encoder.sentences.dropout": 2, "dropout": 2 * 3}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "expected"), DROPPED)
def test_what_is_dropped(kind, changes, expected, monkeypatch):
    sizes = {
        name: SIZES[name] for name in field_names(kind.Config) if name in SIZES and name != "window"
    }
    model = double(kind, kind.Config(**{**sizes, "vocab_size": VOCAB, **changes, "dropout": 0.5}))
    assert dropped_in_a_loss(model, batch_of(*DOCUMENTS), monkeypatch) == expected


def test_sentences_are_chosen_document_by_document(extractor):
    model, documents = extractor.model(), extractor.documents
    for d, chosen in zip(documents, model.choose(batch_of(*documents)), strict=True):
        assert model.choose(batch_of(d)) == [chosen]
        assert (
            chosen
            and len(set(chosen)) == len(chosen)
            and set(chosen) <= set(range(len(d.sentence_lengths)))
        )


# ---------------------------------------------------------------------------------
# models that write


def test_the_loss_is_the_mean_of_minus_log_p(writer):
    model, found = writer.model(), []
    for batch in map(batch_of, writer.documents):
        every, _ = read(model, batch.target_input, model.encode(batch))
        right = every.gather(2, batch.target[..., None])[..., 0]
        found.append(-right.where(right > NEVER, every[..., UNK]).mean())
    ours, expected = model.loss(batch_of(*writer.documents))["nll"], torch.stack(found).mean()
    same(ours, expected, "nll")
    same_gradients(model, ours, expected)


def test_the_loss_can_be_the_mean_over_all_words(writer):
    """Of which longer summaries have more; of smoothed labels as well, which are there in training
    alone."""
    model, documents = writer.model().train(hasattr(writer.config, "smoothing")), writer.documents
    if not model.by_words:
        return
    with torch.no_grad():
        each = [model(batch_of(d)) for d in documents]
        every = model(replace(batch_of(*documents), by_words=True))
    words = [len(d.target) for d in documents]
    # regularisers stay documents' means
    names = ("nll", "loss") if every.keys() <= {"nll", "loss"} else ("nll",)
    for name in names:
        expected = sum(n * terms[name] for n, terms in zip(words, each)) / sum(words)
        assert torch.allclose(every[name], expected, rtol=1e-9), name


def test_one_call_with_many_words_equals_many_calls(writer):
    """In any cuts: log P of all words, and the state after."""
    model, batch = writer.model(), batch_of(*writer.documents)
    state = model.encode(batch)
    whole, after = read(model, batch.target_input, state)
    for cut in ((1,) * 8, (2, 3, 3), (5, 3)):
        running, parts = state, []
        for tokens in batch.target_input.split(cut, 1):
            part, running = read(model, tokens, running)
            parts.append(part)
        same(torch.cat(parts, 1), whole, cut)
        same_state(running, after)


def test_hypotheses_share_their_document(writer):
    """K hypotheses of each document equal K copies of it, of which nothing is copied; also those
    that a search goes on with, of documents that are left."""
    model, documents = writer.model(), writer.documents
    state = model.encode(batch_of(*documents))
    hypotheses = state.reorder(ROWS)
    for name in vars(state).keys() - state.hypotheses:
        assert getattr(hypotheses, name) is getattr(state, name), name
    found, after = read(model, WRITTEN, hypotheses)
    expected, expected_after = read(
        model, WRITTEN, model.encode(batch_of(*[documents[i] for i in ROWS]))
    )
    same(found, expected, "two hypotheses")
    same_state(after, expected_after)
    rows, left, words = (
        torch.tensor([1, 1, 5, 4]),
        torch.tensor([0, 2]),
        torch.tensor([[5], [12], [SLIDE], [6]]),
    )
    found, after = read(model, words, after.reorder(rows, left))
    copies = model.encode(batch_of(*[documents[i] for i in ROWS[rows]]))
    expected, expected_after = read(model, torch.cat([WRITTEN[rows], words], 1), copies)
    same(found, expected[:, -1:], "those that go on")
    same_state(after, expected_after)


def test_the_distribution_is_log_prob(writer):
    """Of every word and every word to copy; one that cannot be written may count as unknown."""
    model = writer.model()
    output, after = model.decode(WRITTEN, model.encode(batch_of(*writer.documents)).reorder(ROWS))
    p, expected = model.distribution(output, after, 2), log_p(model, output, after)[:, -1]
    closed = (p[:, SLIDE] == 0) & (SLIDE in model.control_symbols)  # there is no further window
    same(p.sum(1) + expected[:, SLIDE].exp().where(closed, 0), torch.ones(6).double(), "sum")
    unknown = (expected < NEVER) | (expected == expected[:, UNK, None])
    unknown[:, SLIDE] |= closed
    assert unknown[p == 0].all()
    same(p, expected.exp().where(p > 0, 0), "P")


def test_beam_search(writer):
    """log P are the model's own, and a beam of one is greedy search. (`test_properties_runs` has
    its definition.)"""
    model, batch = writer.model(), batch_of(*writer.documents)
    config = DecodeConfig(beam=2, min_length=1, max_length=5, length_penalty=0.4, length_offset=5)
    with torch.no_grad():
        for d, found in zip(writer.documents, beam_search(model, batch, config)):
            assert found
            for h in found:
                output, after = model.decode(
                    torch.tensor([[BOS, *h.ids]]), model.encode(batch_of(d))
                )
                log_prob = model.log_prob(output, torch.tensor([[*h.ids, EOS]]), after).sum().item()
                assert h.log_prob == pytest.approx(log_prob, abs=1e-9)
    one = replace(config, beam=1)
    for found, expected in zip(beam_search(model, batch, one), greedy_search(model, batch, one)):
        assert found[0].ids == expected.ids


def test_what_is_shown_are_weights(writer):
    """Of words and sentences that are there."""
    model, batch = writer.model(), batch_of(*writer.documents)
    seen = model.attention_weights(batch.target_input, model.encode(batch))
    masks = {
        "words": batch.source_mask,
        "units": batch.sentence_mask,
        "heads": batch.sentence_mask,
        "slots": None,
    }
    for name in seen.keys() & masks.keys():
        same(seen[name].sum(-1), torch.ones(seen[name].shape[:-1]).double(), name)
        if masks[name] is not None:
            assert not seen[name].transpose(1, 2)[~masks[name]].any(), name
    generate = seen.get("generate", torch.tensor(0.5))
    assert ((generate > 0) & (generate <= 1)).all()


# ---------------------------------------------------------------------------------
# configs and sizes

REFUSED = [  # the models' own rules
    (Mem2Mem, {"start": "zeros"}, "no encoder memory"),
    (Windowed, {"window": 4, "stride": None}, "both or not at all"),
    (Windowed, {"window": 4, "stride": 5}, "must move on by 1 to 4 words, not 5"),
    (Windowed, {"encode": "stream", "window": None, "stride": None}, "streamed in windows"),
    (RAS, {"filter_width": 4}, "filter_width must be odd"),
    (TLM, {"width": 10, "heads": 4}, "do not divide"),
    (HierarchicalTransformer, {"width": 10, "heads": 2}, "multiple of four times"),
    (HierarchicalTransformer, {"pooling_heads": 5}, "5 pooling_heads do not divide a width of"),
    (CopyingTransformer, {"smoothing": 0.1}, "smoothing must be 0"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED)
def test_configs_are_checked(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        kind.Config(**changes)


# d = 512, |Y| = 69,000: tables of 110,000, 100 and 69,000 rows, a filter of 5, two maps to Y; then
# the recurrence
RAS_SHARED = 512 * (110_000 + 100 + 69_000) + 5 * 512**2 + 69_000 * (2 * 512 + 1)
PARAMETERS = [  # of the papers' hyper-parameters
    (HRED, {}, 14_036_049),
    (Mem2Mem, {}, 14_725_713),
    (Seq2Seq, {"copy": False}, 13_607_376),
    (Seq2Seq, {}, 13_608_273),
    (DiscourseAware, {}, 14_612_433),  # the paper: 14.3M; docs/papers/mem2mem.md says why
    (SentenceClassifier, {}, 21_214_445),
    (SentencePointer, {}, 26_726_124),
    (TLM, {}, 219_740_160),  # the paper's 220M: 20 layers of 768, pieces with two vectors each
    (Windowed, {}, 18_539_881),  # the author's 18.54M, 15.0M of them the one table of embeddings
    (RAS, {"decoder": "elman"}, RAS_SHARED + 512 * (3 * 512 + 1)),
    (RAS, {"decoder": "lstm"}, RAS_SHARED + 4 * 512 * (3 * 512 + 1)),
    (HierarchicalTransformer, {}, 15_343_952),
]


@pytest.mark.parametrize(("kind", "changes", "count"), PARAMETERS)
def test_sizes_at_the_papers_hyper_parameters(kind, changes, count):
    with torch.device("meta"):
        assert sum(p.numel() for p in kind(kind.Config(**changes)).parameters()) == count
