"""TLM and T-DMCA: the whole sequence piece by piece; what TLM reads, and as a preset."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from lib.data.batch import rows_of
from lib.data.corpus import load_corpus
from lib.data.documents import Document
from lib.data.pieces import Pieces
from lib.data.vocabulary import BOS, EOS, PARAGRAPH_END, SENTENCE_END
from lib.decoding.search import choose_sentences
from lib.models.sentence_extractors import SentencePointer
from lib.models.t_dmca import TDMCA, LocalLayer, TDMCAConfig
from lib.models.tlm import TLM, CausalLayer, TLMConfig
from lib.papers import resolve
from lib.papers.mem2mem.extracts import SequenceOptions, encode_sequence
from tests.conftest import VOCAB, batch_of, document, double, same_document, same_gradients
from tests.models.test_hierarchical_transformer import attention_of, naive_position

SIZES = {"width": 8, "heads": 2, "inner": 10, "dropout": 0.0}
# what the summary is written from, the summary, and windows of the rest of the paper
PAPER = (([4, 5, 9, 6, 7, 8, 10, 4], [[5, 5, 6, 11], [7, 4]]), [5, 4, 9, 8, 7, EOS])
LETTER = (([4], []), [5, EOS])
REPORT = (([7, 8, 9, 4, 5], [[6], [5, 11, 9]]), [6, 6, EOS])


def tlm(**changes):
    return double(TLM, TLMConfig(VOCAB, **{**SIZES, "layers": 2, "window": 20, **changes}), 0.4)


def t_dmca(block, stride):
    config = TDMCAConfig(VOCAB, **SIZES, layers=4, block=block, stride=stride, smoothing=0.0)
    return double(TDMCA, config, 0.4)


MODELS = {
    "TLM": tlm,
    **{f"T-DMCA {sizes}": partial(t_dmca, *sizes) for sizes in ((4, 3), (3, 2), (1, 1), (16, 5))},
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def papers(model):
    """What a model reads, the rest that it learns from, and what it writes. T-DMCA knows of no
    rest."""
    return [(source, rest if isinstance(model, TLM) else [], target)
            for (source, rest), target in (PAPER, LETTER, REPORT)]  # fmt: skip


def batch_for(model):
    return batch_of(*[document([source, *rest], target) for source, rest, target in papers(model)])


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def seen_at(layer, k, v, t):
    """The keys and values that piece t sees: all before; those of its block; compressed ones."""
    if isinstance(layer, CausalLayer):
        return k[: t + 1], v[: t + 1]
    c = layer.config
    if isinstance(layer, LocalLayer):
        here = slice(t // c.block * c.block, t + 1)
        return k[here], v[here]
    groups = [slice(g, g + c.stride) for g in range(0, t, c.stride) if g + c.stride - 1 < t]
    parts = ((k, layer.compress_key), (v, layer.compress_value))
    return ([y[0], *(compress(torch.cat(y[group])) for group in groups)] for y, compress in parts)


def naive_layer(layer, x, heads):
    """One layer over the pieces of a whole sequence: equations S6 and S7, or T-DMCA's."""
    causal = isinstance(layer, CausalLayer)
    attention = layer.attention if causal else layer
    y = [layer.norms[0](w) for w in x]
    q, k, v = ([f(w) for w in y] for f in (attention.query, attention.key, attention.value))
    result = []
    for t, w in enumerate(x):
        h = w + attention.output(attention_of(q[t], *seen_at(layer, k, v, t), heads))
        normed = layer.norms[1](h)
        result.append(
            h + (layer.outer(gelu(layer.inner(normed))) if causal else layer.feed_forward(normed))
        )
    return result


def naive(model, sequence):
    """log P of what follows each piece: [n, V]."""
    x, width = [model.embedding.weight[w] for w in sequence], model.config.width
    if isinstance(model, TLM):
        x = [word + model.position.weight[t] for t, word in enumerate(x)]
    else:
        x = [word * math.sqrt(width) + naive_position(t, width) for t, word in enumerate(x)]
    for layer in model.layers:
        x = naive_layer(layer, x, model.config.heads)
    weight, bias = model.output_layer()
    return torch.stack([weight @ model.norm(w) + bias for w in x]).log_softmax(-1)


def test_the_whole_sequence_piece_by_piece(model):
    """The summary's probabilities, and their gradients."""
    batch = batch_for(model)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    ours = model.log_prob(output, batch.target, state)
    expected = []
    for row, (source, _, target) in zip(ours, papers(model)):
        # the predictions from [BOS] on
        log_p = naive(model, [*source, BOS, *target[:-1]])[len(source) :]
        expected.append(log_p[range(len(target)), target])
        assert torch.allclose(row[: len(target)], expected[-1], rtol=0, atol=1e-12)
    loss = -torch.stack([log_p.mean() for log_p in expected]).mean()
    same_gradients(model, model.loss(batch)["loss"], loss, 1e-11)


def test_training_predicts_every_piece_of_a_paper_alike(model):
    """Equation S8: but for the first of each sequence. The rest begins sequences of its own."""
    losses = model.train().loss(batch_for(model))
    loss = nll = 0.0
    for source, rest, target in papers(model):
        log_p = naive(model, [*source, BOS, *target[:-1]])
        read = [log_p[i, piece] for i, piece in enumerate(source[1:])]
        written = [log_p[len(source) + i, piece] for i, piece in enumerate(target)]
        others = [
            p[i, piece]
            for row in rest
            for p in [naive(model, row)]
            for i, piece in enumerate(row[1:])
        ]
        every = [*read, *written, *others]
        loss -= sum(every) / len(every) / 3
        nll -= sum(written) / len(written) / 3
    assert losses["loss"].item() == pytest.approx(loss.item(), abs=1e-12)
    assert losses["nll"].item() == pytest.approx(nll.item(), abs=1e-12)
    same_gradients(model, losses["loss"], loss, 1e-10)


def test_a_window_has_an_end():
    model = tlm(window=9)
    batch = batch_of(document([REPORT[0][0]], REPORT[1]))
    model.decode(torch.tensor([[BOS, 4, 5, 6]]), model.encode(batch))
    with pytest.raises(ValueError, match="10 pieces does not fit into the model's window of 9"):
        model.decode(torch.tensor([[BOS, 4, 5, 6, 7]]), model.encode(batch))


# ---------------------------------------------------------------------------------
# what it reads

OPENING = ["Fish is eaten by cats .", "Why is not known ."]
METHOD = ["Ten cats were shown fish .", "We counted ."]
PAPER_TEXT = Document(
    "p",
    "",
    ["Abbreviations", "Introduction", "Method"],
    [["Cm , centimetre ."], OPENING, METHOD],
    ["Cats eat fish .", "Ten did ."],
)


@pytest.fixture(scope="module")
def pieces():
    return Pieces.train(
        [s.lower() for s in (*OPENING, *METHOD, "cm , centimetre .")] * 20, 90, kind="bpe"
    )


def texts(made, pieces):
    return [pieces.text(row) for row in rows_of(made)]


def test_the_parts_of_a_sequence(pieces):
    options = SequenceOptions(summary_tokens=60, window=300, extract_tokens=60, vocab_size=90)
    made = encode_sequence((PAPER_TEXT, [3, 1]), pieces, options, rest=True)
    condition, rest = rows_of(made)
    (place,) = np.flatnonzero(condition == PARAGRAPH_END)
    assert pieces.text(condition[:place]) == " ".join(OPENING).lower()
    assert pieces.text(condition[place:]) == f"{METHOD[0]} {OPENING[0]}".lower(), (
        "in the order in which they come"
    )
    assert pieces.text(rest) == f"cm , centimetre . {' '.join(METHOD)}".lower()
    assert pieces.sentences(made.target.tolist()) == [s.lower() for s in PAPER_TEXT.summary]
    assert made.target[-1] == EOS and (made.target == SENTENCE_END).sum() == 1
    assert len(rows_of(encode_sequence((PAPER_TEXT, [3, 1]), pieces, options))) == 1, (
        "to be written, nothing more is read"
    )
    plain = encode_sequence((PAPER_TEXT, [3, 1]), pieces, replace(options, extracts=False))
    assert texts(plain, pieces) == [" ".join(OPENING).lower()] and PARAGRAPH_END not in plain.source


def test_a_sequence_fits_into_its_window(pieces):
    """What of the introduction has no room belongs to the rest, which is cut into windows."""
    options = SequenceOptions(summary_tokens=6, window=20, extract_tokens=5, vocab_size=90)
    made = encode_sequence((PAPER_TEXT, [3, 4]), pieces, options, rest=True)
    condition, *rest = rows_of(made)
    assert len(made.target) == 6 and len(condition) + len(made.target) == 20
    assert np.flatnonzero(condition == PARAGRAPH_END).tolist() == [20 - 6 - 6]
    opening = np.concatenate(pieces.encode([s.lower() for s in OPENING]))
    assert np.array_equal(condition[:8], opening[:8]) and np.array_equal(rest[0][:3], opening[8:])
    whole = np.concatenate(rest)
    narrow = replace(options, window=13)  # one piece of the introduction is read
    cut = rows_of(encode_sequence((PAPER_TEXT, [3, 4]), pieces, narrow, rest=True))
    assert len(cut[0]) == 1 + 6 and np.array_equal(np.concatenate(cut[1:]), [*opening[1:8], *whole])
    assert len(cut) > 2 and {len(row) for row in cut[1:-1]} == {13} and 0 < len(cut[-1]) <= 13
    some = rows_of(
        encode_sequence((PAPER_TEXT, [3]), pieces, replace(narrow, rest_tokens=15), rest=True)
    )
    assert [len(row) for row in some[1:]] == [13, 2]


# ---------------------------------------------------------------------------------
# as presets

SOME = {"pointer_steps": 3, "vocab_size": 600}


def test_training_reads_what_is_right_and_the_test_what_is_chosen():
    setup = resolve("mem2mem", "demo", "TLM + extracts", SOME)
    texts = load_corpus("aclsum")
    corpus = setup.prepare(texts, 3, progress=False)
    sentences = resolve("mem2mem", "demo", "Sent-PTR", {"vocab_size": 600, "summary_tokens": 160})
    found = sentences.options.prepare(texts, 3, progress=False)
    assert found.vocabulary.identity == corpus.vocabulary.identity
    pointer = SentencePointer(SentencePointer.Config(len(found.vocabulary), 64, 64, 1)).eval()
    pointer.load_state_dict(
        {name: torch.from_numpy(w) for name, w in corpus.encoder.chooser.items()}
    )
    for name in ("train", "val", "test"):
        documents = list(texts.split(name, 3))
        chosen = [np.flatnonzero(d.labels).tolist() for d in found[name]]
        if name != "train":
            chosen = choose_sentences(pointer, found[name], found.vocabulary)
        for ours, d, numbers in zip(corpus[name], documents, chosen, strict=True):
            same_document(
                ours,
                encode_sequence((d, numbers), corpus.vocabulary, setup.options, name == "train"),
            )
            assert (len(ours.sentence_lengths) > 1) == (name == "train")
    again = corpus.encoder.encode(list(texts.split("test", 3)))
    for ours, theirs in zip(corpus["test"], again, strict=True):
        same_document(ours, theirs)
