"""TLM: the whole sequence piece by piece, what it reads, and as presets."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.data.batch import make_batch, rows_of
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.data.pieces import Pieces
from lib.data.vocabulary import BOS, EOS, PARAGRAPH_END, SENTENCE_END
from lib.decoding.search import choices
from lib.models.sentence_extractors import SentencePointer
from lib.models.tlm import TLM, TLMConfig
from lib.papers import resolve
from lib.papers.mem2mem.extracts import (
    SequenceOptions,
    encode_sequence,
    right_sentences,
)
from tests.conftest import VOCAB, batch_of, document, double, dropped_in_a_loss, same_document, same_gradients

SIZES = {"width": 8, "heads": 2, "inner": 10, "layers": 2, "window": 20, "dropout": 0.0}
# what the summary is written from, the summary, and windows of the rest of the paper
PAPER = (([4, 5, 9, 6, 7, 8, 10, 4], [[5, 5, 6, 11], [7, 4]]), [5, 4, 9, 8, 7, EOS])
LETTER = (([4], []), [5, EOS])
REPORT = (([7, 8, 9, 4, 5], [[6], [5, 11, 9]]), [6, 6, EOS])
ITEMS = [document([source, *rest], target) for (source, rest), target in (PAPER, LETTER, REPORT)]


def tiny(**changes):
    return double(TLM, TLMConfig(VOCAB, **{**SIZES, **changes}), 0.4)


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def model(request):
    return tiny(tied=request.param)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def naive_layer(layer, x, heads):
    """Equations S6 and S7, piece by piece and head by head."""
    a, size, result = layer.attention, len(x[0]) // heads, []
    y = [layer.norms[0](w) for w in x]
    q, k, v = ([f(w) for w in y] for f in (a.query, a.key, a.value))
    for t in range(len(x)):
        found = []
        for z in range(heads):
            part = slice(z * size, (z + 1) * size)
            weights = torch.stack([q[t][part] @ k[i][part] / math.sqrt(size) for i in range(t + 1)]).softmax(0)
            found.append(sum(w * v[i][part] for i, w in enumerate(weights)))
        h = x[t] + a.output(torch.cat(found))
        result.append(h + layer.outer(gelu(layer.inner(layer.norms[1](h)))))
    return result


def naive(model, sequence):
    """log P of what follows each piece: [n, V]."""
    x = [model.embedding.weight[w] + model.position.weight[t] for t, w in enumerate(sequence)]
    for layer in model.layers:
        x = naive_layer(layer, x, model.config.heads)
    scores = model.embedding.weight if model.config.tied else model.output.weight
    return torch.stack([scores @ model.norm(w) for w in x]).log_softmax(-1)


def test_the_whole_sequence_piece_by_piece(model):
    """The summary's probabilities, and their gradients."""
    batch = batch_of(*ITEMS)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    ours = model.log_prob(output, batch.target, state)
    expected = []
    for (source, _), target in (PAPER, LETTER, REPORT):
        log_p = naive(model, [*source, BOS, *target[:-1]])[len(source) :]  # the predictions from [BOS] on
        expected.append(log_p[range(len(target)), target])
    for row, log_p in zip(ours, expected):
        assert torch.allclose(row[: len(log_p)], log_p, rtol=0, atol=1e-12)
    loss = -torch.stack([log_p.mean() for log_p in expected]).mean()
    same_gradients(model, model.loss(batch)["loss"], loss, 1e-11)


def test_training_predicts_every_piece_of_a_paper_alike(model):
    """Equation S8: but for the first of each sequence. The rest begins sequences of its own."""
    model.train()
    losses = model.loss(batch_of(*ITEMS))
    loss = nll = 0.0
    for (source, rest), target in (PAPER, LETTER, REPORT):
        log_p = naive(model, [*source, BOS, *target[:-1]])
        read = [log_p[i, piece] for i, piece in enumerate(source[1:])]
        written = [log_p[len(source) + i, piece] for i, piece in enumerate(target)]
        others = [p[i, piece] for row in rest for p in [naive(model, row)] for i, piece in enumerate(row[1:])]
        every = [*read, *written, *others]
        loss -= sum(every) / len(every) / 3
        nll -= sum(written) / len(written) / 3
    assert losses["loss"].item() == pytest.approx(loss.item(), abs=1e-12)
    assert losses["nll"].item() == pytest.approx(nll.item(), abs=1e-12)
    assert losses["loss"].item() > (losses["source"] + losses["rest"]).item() > losses["rest"].item() > 0
    same_gradients(model, losses["loss"], loss, 1e-11)


def test_what_is_dropped(monkeypatch):
    """Of sources, summaries and the rest of the papers: embeddings, and in both layers the weights of attention and
    what each part gives, as in GPT-2."""
    expected = {"dropout": 3, "layers.attention.dropout": 2 * 3, "layers.dropout": 2 * 3 * 2}
    assert dropped_in_a_loss(tiny(dropout=0.5), batch_of(*ITEMS), monkeypatch) == expected


def test_a_window_has_an_end():
    model = tiny(window=9)
    batch = batch_of(ITEMS[2])
    model.decode(torch.tensor([[BOS, 4, 5, 6]]), model.encode(batch))
    with pytest.raises(ValueError, match="10 pieces does not fit into the model's window of 9"):
        model.decode(torch.tensor([[BOS, 4, 5, 6, 7]]), model.encode(batch))


# --------------------------------------------------------------------------------------------------- what it reads

OPENING = ["Fish is eaten by cats .", "Why is not known ."]
METHOD = ["Ten cats were shown fish .", "We counted ."]
PAPER_TEXT = Document("p", "", ["Abbreviations", "Introduction", "Method"], [["Cm , centimetre ."], OPENING, METHOD],
                      ["Cats eat fish .", "Ten did ."])  # fmt: skip


@pytest.fixture(scope="module")
def pieces():
    return Pieces.train([s.lower() for s in (*OPENING, *METHOD, "cm , centimetre .")] * 20, 90, kind="bpe")


def texts(made, pieces):
    return [pieces.text(row) for row in rows_of(made)]


def test_the_parts_of_a_sequence(pieces):
    options = SequenceOptions(summary_tokens=60, window=300, extract_tokens=60, vocab_size=90)
    made = encode_sequence(PAPER_TEXT, [3, 1], pieces, options, rest=True)
    condition, rest = rows_of(made)
    (place,) = np.flatnonzero(condition == PARAGRAPH_END)
    assert pieces.text(condition[:place]) == " ".join(OPENING).lower()
    assert pieces.text(condition[place:]) == f"{METHOD[0]} {OPENING[0]}".lower(), "in the order in which they come"
    assert pieces.text(rest) == f"cm , centimetre . {' '.join(METHOD)}".lower()
    assert pieces.sentences(made.target.tolist()) == [s.lower() for s in PAPER_TEXT.summary]
    assert made.target[-1] == EOS and (made.target == SENTENCE_END).sum() == 1
    assert len(rows_of(encode_sequence(PAPER_TEXT, [3, 1], pieces, options))) == 1, (
        "to be written, nothing more is read"
    )
    plain = encode_sequence(PAPER_TEXT, [3, 1], pieces, replace(options, extracts=False))
    assert texts(plain, pieces) == [" ".join(OPENING).lower()] and PARAGRAPH_END not in plain.source


def test_a_sequence_fits_into_its_window(pieces):
    """What of the introduction has no room belongs to the rest, which is cut into windows."""
    options = SequenceOptions(summary_tokens=6, window=20, extract_tokens=5, vocab_size=90)
    made = encode_sequence(PAPER_TEXT, [3, 4], pieces, options, rest=True)
    condition, *rest = rows_of(made)
    assert len(made.target) == 6 and len(condition) + len(made.target) == 20
    assert np.flatnonzero(condition == PARAGRAPH_END).tolist() == [20 - 6 - 6]
    opening = np.concatenate(pieces.encode([s.lower() for s in OPENING]))
    assert np.array_equal(condition[:8], opening[:8]) and np.array_equal(rest[0][:3], opening[8:])
    whole = np.concatenate(rest)
    narrow = replace(options, window=13)  # one piece of the introduction is read
    cut = rows_of(encode_sequence(PAPER_TEXT, [3, 4], pieces, narrow, rest=True))
    assert len(cut[0]) == 1 + 6 and np.array_equal(np.concatenate(cut[1:]), [*opening[1:8], *whole])
    assert len(cut) > 2 and {len(row) for row in cut[1:-1]} == {13} and 0 < len(cut[-1]) <= 13
    some = rows_of(encode_sequence(PAPER_TEXT, [3], pieces, replace(narrow, rest_tokens=15), rest=True))
    assert [len(row) for row in some[1:]] == [13, 2]


# ------------------------------------------------------------------------------------------------------ as presets

SOME = {"pointer_steps": 3, "vocab_size": 600}


def test_training_reads_what_is_right_and_the_test_what_is_chosen():
    setup = resolve("mem2mem", "demo", "TLM + extracts", SOME)
    texts = load_corpus("aclsum")
    corpus = setup.prepare(texts, 6, progress=False)
    sentences = resolve("mem2mem", "demo", "Sent-PTR", {"vocab_size": 600, "summary_tokens": 160})
    found = sentences.options.prepare(texts, 6, progress=False)
    assert found.vocabulary.identity == corpus.vocabulary.identity
    pointer = SentencePointer(SentencePointer.Config(len(found.vocabulary), 64, 64, 1)).eval()
    pointer.load_state_dict({name: torch.from_numpy(w) for name, w in corpus.encoder.chooser.items()})
    for name in ("train", "val", "test"):
        documents = list(texts.split(name, 6))
        chosen = [right_sentences(d, setup.options) for d in documents]
        if name != "train":
            batches = [make_batch([d], len(found.vocabulary)) for d in found[name]]
            chosen = choices(pointer, batches)
        for ours, d, numbers in zip(corpus[name], documents, chosen, strict=True):
            same_document(ours, encode_sequence(d, numbers, corpus.vocabulary, setup.options, name == "train"))
            assert (len(ours.sentence_lengths) > 1) == (name == "train")
    again = corpus.encoder.encode(list(texts.split("test", 6)))
    for ours, theirs in zip(corpus["test"], again, strict=True):
        same_document(ours, theirs)
