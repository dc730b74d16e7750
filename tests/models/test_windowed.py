"""The windowed model: against itself with a window as long as the text, streamed, and against the
paper."""

import pytest
import torch

from lib.data.vocabulary import BOS, EOS, SLIDE, UNK
from lib.decoding.search import beam_search
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers.windowed.sliding import SlidingConfig
from tests.conftest import VOCAB, batch_of, document, double
from tests.models.test_models import DOCUMENTS as TEXTS

SIZES = {"embedding": 5, "hidden": 3, "window": 4, "stride": 3, "budget": 6, "longest": 11}


def tiny(**changes) -> Windowed:
    return double(Windowed, WindowedConfig(VOCAB, **{**SIZES, **changes}))


def texts():
    return batch_of(*TEXTS)


MODELS = {
    "standard": {"window": None, "stride": None},
    "dynamic": {},
    "static": {"windowing": "static"},
    "streamed": {"encode": "stream"},
    "streamed, static": {"encode": "stream", "windowing": "static"},
    "streamed, no overlap": {"encode": "stream", "stride": 4},
}


@pytest.mark.parametrize("encode", ["whole", "stream"])
@pytest.mark.parametrize("windowing", ["dynamic", "static"])
def test_a_window_as_long_as_the_text_is_the_standard_model(encode, windowing):
    standard, wide = (
        tiny(window=None, stride=None),
        tiny(window=11, stride=11, encode=encode, windowing=windowing),
    )
    wide.load_state_dict(standard.state_dict())
    a, b = (model.loss(texts())["loss"] for model in (standard, wide))
    assert torch.allclose(a, b, rtol=0, atol=1e-13)
    gradients = (
        torch.autograd.grad(loss, list(m.parameters())) for loss, m in ((a, standard), (b, wide))
    )
    for x, y in zip(*gradients):
        assert torch.allclose(x, y, rtol=0, atol=1e-12)


def test_the_window_moves_with_the_input_and_stops_at_the_last():
    model, batch = tiny(), texts()
    output, _ = model.decode(batch.target_input, model.encode(batch))
    assert output.windows.tolist() == [[0, 0, 1, 2, 2, 2, 3, 3], [0] * 8, [0, 0, 1, 1, 2, 2, 2, 2]]
    more = torch.tensor([[BOS, SLIDE, SLIDE, SLIDE, SLIDE, SLIDE]]).expand(3, -1)
    output, _ = model.decode(more, model.encode(batch))
    assert output.windows.tolist() == [[0, 1, 2, 3, 3, 3], [0] * 6, [0, 1, 2, 2, 2, 2]]


def test_where_windows_begin_and_end():
    """4 words each, 3 further each time, as for the longest text, which has 11; the symbol moves on
    to the next."""
    batch, model = texts(), tiny()
    state = model.encode(batch)
    seen = model.seen(model.decode(batch.target_input, state)[0], state)
    assert seen["windows"].tolist() == [[[0, 4], [3, 7], [6, 10], [9, 11]]] * 3
    assert seen["window"][0].tolist() == [0, 0, 1, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("encode", ["whole", "stream"])
def test_nothing_outside_the_window_is_seen(encode):
    """Weights add up to 1 inside the window; what lies outside may be anything."""
    model, batch = tiny(encode=encode), texts()
    output, _ = model.decode(batch.target_input, model.encode(batch))
    assert torch.allclose(output.copy.sum(-1), torch.ones(3, 8).double())
    for b, item in enumerate(TEXTS):
        for t, w in enumerate(output.windows[b].tolist()):
            seen = output.places[b][output.copy[b, t] > 0].tolist()
            assert sorted(seen) == list(range(3 * w, min(3 * w + 4, len(item.source))))
            weights = dict(zip(seen, output.source[b][output.copy[b, t] > 0].tolist()))
            assert all(item.source[place] == word for place, word in weights.items())


def test_streaming_keeps_the_forward_direction():
    """Forward states in a window are those of the whole text; the backward direction starts at the
    window's end."""
    model, batch = tiny(encode="stream"), batch_of(TEXTS[0])
    whole = tiny().encode(batch).words[0]
    state, embedded = model.encode(batch), model.embedding(batch.source)[0]
    for w in range(4):
        if w:
            _, state = model.decode(torch.tensor([[SLIDE]]), state)
        end = min(3 * w + 4, 11)
        states = state.held[0][0, : end - 3 * w]
        assert torch.allclose(states[:, :3], whole[3 * w : end, :3], rtol=0, atol=1e-12)
        backward, _ = model.backward_encoder(embedded[3 * w : end].flip(0)[None])
        assert torch.allclose(states[:, 3:], backward[0].flip(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_no_symbol_behind_the_last_window(name):
    model = tiny(**MODELS[name])
    with torch.no_grad():
        model.pointer.vocabulary.bias[SLIDE] = 40.0  # would do nothing else
    windows = model.encode(texts()).last_window.tolist()
    slides = windows if model.config.windowing == "dynamic" else [0, 0, 0]
    assert windows == {"standard": [0, 0, 0], "streamed, no overlap": [2, 0, 1]}.get(
        name, [3, 0, 2]
    )
    for rule in ("as a word", "half", "median", "coin"):
        for found, most in zip(
            beam_search(model, texts(), SlidingConfig(2, 6, 6, slide=rule)), slides
        ):
            assert found[0].ids.count(SLIDE) == most
            assert all(h.ids.count(SLIDE) <= most for h in found)


def test_static_windows_by_hand():
    """11 words, half the longest text, and a budget of 120: shares of four windows, the last of
    them half full."""
    model = tiny(windowing="static", budget=120, longest=22)
    ends = model.encode(batch_of(TEXTS[0])).window_ends
    share = torch.exp(torch.tensor([-1.2 * (1 + t * 0.8**t) for t in range(4)])) * torch.tensor(
        [1, 1, 1, 0.5]
    )
    assert ends[0].tolist() == [int(x) for x in 60 * share.cumsum(0) / share.sum() + 1e-6]
    output, _ = model.decode(torch.full((1, 70), 5), model.encode(batch_of(TEXTS[0])))
    expected = [min(3, sum(end <= t for end in ends[0].tolist())) for t in range(70)]
    assert output.windows[0].tolist() == expected
    assert expected[0] == 0 and expected[-1] == 3


@pytest.mark.parametrize("encode", ["whole", "stream"])
def test_a_word_that_the_window_does_not_have_counts_as_unknown(encode):
    """12 is the third word of the text, 13 the ninth; windows are words 1-4, 4-7, 7-10 and
    10-11."""
    model, words = tiny(encode=encode), [[4, 5, 12, 6], [7, 8], [9, 5, 13, 12, 5]]

    def loss(*target):
        return model.loss(batch_of(document(words, [*target, EOS])))["loss"].item()

    assert loss(13) == loss(UNK) != loss(12)
    assert loss(SLIDE, 12) == loss(SLIDE, UNK) == loss(SLIDE, 13)
    assert loss(SLIDE, SLIDE, 13) != loss(SLIDE, SLIDE, UNK)
    assert loss(SLIDE, SLIDE, 12) != loss(SLIDE, SLIDE, UNK)
