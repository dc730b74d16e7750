"""Windowed attention: a pointer-generator that attends to one window of the text and writes a
symbol to move it.

Schüller (2019); Schüller, Wilhelm, Kreiling and Glavaš (2020). Equation numbers are those of its
page.

Shapes: B documents, K hypotheses of each, R = B * K decoder rows, T target words, N source words, M
words in reach, w words of a window, H `hidden`, d = 2H.
"""

import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary, put
from lib.data.vocabulary import SLIDE, UNK
from lib.layers.attention import full_precision, masked_softmax
from lib.layers.pointer import PointerGenerator, PointerOutput
from lib.layers.recurrent import LSTM, run_packed
from lib.models.state import DecoderState, PerDocument, PerHypothesis, per_document, per_hypothesis
from lib.models.summarizer import PointerModel
from lib.system.errors import InputError
from lib.system.settings import checked


@checked
class WindowedConfig:
    """Sizes of the author's code: 18.54M parameters. Without a window it is the standard model."""

    vocab_size: int = 50_000
    embedding: int = 300  # one table for source, summary and output
    hidden: int = 256  # of the encoder, in each direction; the decoder has twice as many
    window: int | None = 400  # words that attention sees; None: all
    stride: int | None = 380  # words by which the window moves
    # it moves by [SLIDE]; static: after a share of the words
    windowing: Literal["dynamic", "static"] = "dynamic"
    # the whole text at first; stream: each window when it is entered
    encode: Literal["whole", "stream"] = "whole"
    # static windowing: equation 14
    steepness: float = 1.2  # k
    decay: float = 0.8  # d
    budget: int = 100  # words of a summary, T_y, of a text of
    longest: int = 1500  # words

    def __post_init__(self):
        check_window(self.window, self.stride)
        if self.encode == "stream" and self.window is None:
            advice = "give window and stride, or encode it whole"
            raise InputError(f"a text is streamed in windows: {advice}")


# Of a hypothesis that reads a stream: states [R, w, d] of its window, and state and cell [R, H] of
# the forward direction where the next window begins.
Held = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class WindowedState(DecoderState):
    """The text, and where each hypothesis is in it."""

    source: PerDocument[Tensor]  # [B, N] extended ids
    lengths: PerDocument[Tensor]  # [B]
    last_window: PerDocument[Tensor]  # [B]
    window_ends: PerDocument[Tensor | None]  # [B, most windows] of static windowing
    words: PerDocument[Tensor | None]  # [B, N, d] of a text that is encoded whole
    hidden: PerHypothesis[Tensor]  # [R, d]
    cell: PerHypothesis[Tensor]  # [R, d]
    window: PerHypothesis[Tensor]  # [R]
    position: PerHypothesis[Tensor]  # [R] symbols written
    held: PerHypothesis[Held | None]  # of a text that is read as a stream


@dataclass(frozen=True)
class WindowedOutput(PointerOutput):
    """The output of a step that can reach M source words; `copy` is alpha, 0 outside the window."""

    places: Tensor  # [R, M] places of those words in the text
    windows: Tensor  # [R, T] the window at each step


class TiedPointer(PointerGenerator):
    """A pointer that scores the words by their embeddings (equations 10 to 12)."""

    def __init__(self, embedding: nn.Embedding, width: int):
        vocab_size, size = embedding.weight.shape
        combine = nn.Linear(2 * width, width)  # W_a, b
        super().__init__(width, 2 * width + size, size, vocab_size)  # W_e, b_e; b_v; q, b_p
        self.combine = combine
        self.vocabulary.weight = embedding.weight  # E
        nn.init.zeros_(self.vocabulary.bias)


class Windowed(PointerModel):
    """Bidirectional LSTM encoder, LSTM decoder, Luong's dot attention, pointer, tied embeddings."""

    Config = WindowedConfig
    pointer: TiedPointer
    control_symbols = frozenset({SLIDE})  # what it writes that is no word of the summary

    def __init__(self, config: WindowedConfig):
        super().__init__()
        self.config = config
        c, d = config, 2 * config.hidden
        self.embedding = nn.Embedding(c.vocab_size, c.embedding)
        with torch.no_grad():  # rows of length 1: the table is the output layer as well
            self.embedding.weight.div_(self.embedding.weight.norm(dim=1, keepdim=True))
        self.forward_encoder = LSTM(c.embedding, c.hidden)
        self.backward_encoder = LSTM(c.embedding, c.hidden)
        self.decoder = LSTM(c.embedding, d)
        self.pointer = TiedPointer(self.embedding, d)

    # Without a window there is one, number 0, which holds every text.
    @property
    def size(self) -> int:
        return self.config.window or sys.maxsize

    @property
    def stride(self) -> int:
        return self.config.stride or 0

    # ---------------------------------------------------------------------------------
    # encoder

    def encode(self, batch: Batch) -> WindowedState:
        """Encode the whole text, or its first window. The decoder starts where the encoder ended
        (5)."""
        # Lengths, and what depends on them, are computed on the host: it need not wait for a GPU.
        lengths, device = batch.source_lengths, batch.source.device
        last_window = self._last_window(lengths)
        ends = None
        if self.config.windowing == "static" and self.config.window:
            ends = put(self._window_ends(lengths, last_window), device)
        start = torch.zeros(len(batch), dtype=torch.long, device=device)
        streamed = self.config.encode == "stream"
        size = self.size if streamed else batch.source.shape[1]
        embedded = self.embedding(batch.source[:, :size])
        # Of the whole text, [B, N, d], or of the first window.
        words, hidden, cell = self._read(embedded, lengths.clamp_max(size))
        held = None
        if streamed:
            # The forward direction's state where the second window begins.
            _, (carried, carried_cell) = self.forward_encoder(embedded[:, : self.stride])
            padded = nn.functional.pad(words, (0, 0, 0, size - words.shape[1]))
            held = padded, carried[0], carried_cell[0]
        return WindowedState(
            source=batch.source_extended,
            lengths=put(lengths, device),
            last_window=put(last_window, device),
            window_ends=ends,
            words=None if streamed else words,
            hidden=hidden,
            cell=cell,
            window=start,
            position=start,
            held=held,
        )

    def _last_window(self, lengths: Tensor) -> Tensor:
        if self.config.window is None:
            return torch.zeros_like(lengths)
        return count_windows(lengths, self.size, self.stride) - 1

    def _read(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute states [B, N, d] of words [B, N, E] (5), and the final hidden and cell states
        [B, d]."""
        forward, last = run_packed(self.forward_encoder, embedded, lengths)
        backward, first = run_packed(self.backward_encoder, embedded, lengths, backwards=True)
        # h_j = [h_j forwards; h_j backwards]   (5)
        states = torch.cat([forward, backward], -1)
        # s_0 = [h_Tx forwards; h_1 backwards], and the cell likewise   (5)
        hidden = torch.cat([last[0], first[0]], -1)[0]
        cell = torch.cat([last[1], first[1]], -1)[0]
        return states, hidden, cell

    # ---------------------------------------------------------------------------------
    # decoder

    def decode(self, tokens: Tensor, state: WindowedState) -> tuple[WindowedOutput, WindowedState]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as
        [UNK].

        The window moves at a step whose input is [SLIDE], not beyond the last one (equation 7).
        """
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))  # [R, T, E]
        start = state.hidden
        # s_t = LSTM(s_{t-1}, e(y_{t-1}))   (6)
        before = start[None], state.cell[None]
        output, (hidden, cell) = self.decoder(embedded, before)  # [R, T, d]
        windows = self._windows(tokens, state)  # [R, T]
        attend = self._attend_whole if self.config.encode == "whole" else self._attend_stream
        copy, context, places, held = attend(output, windows, state)
        previous = torch.cat([start[:, None], output[:, :-1]], 1)  # s_{t-1}
        # a_t = W_a tanh([c_t; s_t]) + b,  l_t = E (W_e a_t + b_e) + b_v   (10)
        attentional = self.pointer.combine(torch.tanh(torch.cat([context, output], -1)))
        # p_t = sigmoid(q^T [a_t; s_{t-1}; e(y_{t-1})] + b_p)   (11)
        # P = p_t softmax(l_t) + (1 - p_t) P_c   (12)
        switch_inputs = torch.cat([attentional, previous, embedded], -1)
        features, switch = self.pointer(attentional, switch_inputs)
        after = state.replace(
            hidden=hidden[0],
            cell=cell[0],
            window=windows[:, -1],
            position=state.position + tokens.shape[1],
            held=held,
        )
        result = WindowedOutput(
            features=features,
            switch=switch,
            copy=copy,
            source=per_hypothesis(state.source, len(tokens)).gather(1, places),
            places=places,
            windows=windows,
        )
        return result, after

    def _windows(self, tokens: Tensor, state: WindowedState) -> Tensor:
        """Compute the window [R, T] of each step (7, 14)."""
        last = per_hypothesis(state.last_window, len(tokens))[:, None]
        if state.window_ends is None:
            # w_t = min(w_{t-1} + [y_{t-1} = SLIDE], n), here from 0   (7)
            return torch.minimum(state.window[:, None] + (tokens == SLIDE).cumsum(1), last)
        steps = state.position[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        ends = per_hypothesis(state.window_ends, len(tokens))
        return torch.minimum(torch.searchsorted(ends, steps, right=True), last)

    def _window_ends(self, lengths: Tensor, last: Tensor) -> Tensor:
        """Compute the number of summary words after which each window ends: [B, most windows]
        (14)."""
        c = self.config
        # share_i = exp(-k (1 + i d^i)) times the part of window i that is filled, which is 1 but
        # for the last
        t = torch.arange(int(last.max()) + 1, device=lengths.device, dtype=torch.float64)
        share = torch.exp(-c.steepness * (1 + t * c.decay**t)) * (t <= last[:, None])
        share = share * ((lengths[:, None] - t * self.stride) / self.size).clamp(0, 1)
        # end_i = floor(T_x / T_max * T_y * sum_{i' <= i} share_i' / sum_i' share_i')   (14)
        share = share.cumsum(1) / share.sum(1, keepdim=True)
        ends = share * (lengths[:, None] * c.budget / c.longest)
        return (ends + 1e-9).long()  # rounding errors must not move an end

    def _attend_whole(
        self, query: Tensor, windows: Tensor, state: WindowedState
    ) -> tuple[Tensor, Tensor, Tensor, None]:
        """Attend to the states of the whole text, where they are in the window."""
        low, high = 0, state.source.shape[1]
        if query.shape[1] == 1 and self.config.window:
            # Generation: the hypotheses' windows are near each other, so most of a long text is not
            # computed with.
            low = int(windows.min()) * self.stride
            high = min(high, int(windows.max()) * self.stride + self.size)
        places = torch.arange(low, high, device=query.device).expand(len(query), -1)  # [R, M]
        inside = places < per_hypothesis(state.lengths, len(query))[:, None]
        assert state.words is not None, "the text is encoded whole"
        seen = self._in_window(places, windows) & inside[:, None]
        alpha, context = _attend(query, state.words[:, low:high], seen)
        return alpha, context, places, None

    def _in_window(self, places: Tensor, windows: Tensor) -> Tensor:
        """Return whether the words at `places` [R, M] are in `windows` [R, T]: [R, T, M]."""
        behind = places[:, None] - windows[..., None] * self.stride
        return (behind >= 0) & (behind < self.size)

    def _attend_stream(
        self, query: Tensor, windows: Tensor, state: WindowedState
    ) -> tuple[Tensor, Tensor, Tensor, Held]:
        """Attend to windows that are encoded when a hypothesis enters them, one for each row."""
        first, held = state.window, state.held
        assert held is not None, "the text is read as a stream"
        lengths = per_hypothesis(state.lengths, len(query))
        alphas, contexts, places = [], torch.zeros_like(query), []
        in_window = torch.arange(self.size, device=query.device)
        for ahead in range(int((windows[:, -1] - first).max()) + 1):
            now = first + ahead
            if ahead:
                entering = (windows[:, -1] >= now).nonzero()[:, 0]
                held = self._enter(held, now, entering, state)
            here = windows == now[:, None]  # [R, T]
            # A CPU skips windows that no row is in. To know that, the host would wait for a GPU.
            if here.device.type != "cpu" or here.any():
                place = now[:, None] * self.stride + in_window  # [R, w]
                seen = here[..., None] & (place < lengths[:, None])[:, None]
                alpha, context = _attend(query, held[0], seen)
                alphas.append(alpha)
                contexts = contexts + context
                places.append(place.clamp_max(state.source.shape[1] - 1))
        return torch.cat(alphas, -1), contexts, torch.cat(places, -1), held

    def _enter(self, held: Held, window: Tensor, rows: Tensor, state: WindowedState) -> Held:
        """Encode window [R] for `rows`, once for the G groups of hypotheses of a document that
        enter the same one.

        The forward direction goes on from the state it had where the window begins, the backward
        direction starts at the window's end.
        """
        documents = torch.arange(len(state.source), device=rows.device)
        document = per_hypothesis(documents, len(window))
        # A text has fewer windows than words, so this is one number for document and window.
        key = document[rows] * state.source.shape[1] + window[rows]
        # To count the groups, the host waits for a GPU once.
        groups, group = key.unique(return_inverse=True)
        first = torch.empty_like(groups).scatter_(0, group, rows)  # a row of each group
        source = state.source[document[first]]
        start = window[first] * self.stride
        lengths = (state.lengths[document[first]] - start).clamp(max=self.size)
        places = start[:, None] + torch.arange(self.size, device=rows.device)  # [G, w]
        ids = source.gather(1, places.clamp_max(source.shape[1] - 1))
        embedded = self.embedding(in_vocabulary(ids, self.config.vocab_size))
        states, carried, carried_cell = held
        begin = carried[first][None], carried_cell[first][None]
        forward, (hidden, cell) = self.forward_encoder(embedded[:, : self.stride], begin)
        if self.stride < self.size:
            rest, _ = self.forward_encoder(embedded[:, self.stride :], (hidden, cell))
            forward = torch.cat([forward, rest], 1)
        backward, _ = self.backward_encoder(reverse(embedded, lengths))
        entered = torch.cat([forward, reverse(backward, lengths)], -1)  # [G, w, d]
        return (
            states.index_copy(0, rows, entered[group]),
            carried.index_copy(0, rows, hidden[0][group]),
            carried_cell.index_copy(0, rows, cell[0][group]),
        )

    # ---------------------------------------------------------------------------------
    # probabilities

    def distribution(self, output: WindowedOutput, state: WindowedState, extra: int) -> Tensor:
        """Compute P of every word; that of [SLIDE] is 0 where there is no further window."""
        p = super().distribution(output, state, extra)
        windows = output.windows[:, -1]
        further = windows < per_hypothesis(state.last_window, len(windows))
        p[:, SLIDE] *= further if self.config.windowing == "dynamic" else 0
        return p

    def nll(self, output: WindowedOutput, batch: Batch, state: WindowedState) -> Tensor:
        """Compute (13). A word that is neither in the vocabulary nor in the window counts as
        [UNK]."""
        same = output.source[:, None] == batch.target[..., None]  # [B, T, M]
        in_window = (same & self._in_window(output.places, output.windows)).any(-1)
        target = batch.target.where((batch.target < self.config.vocab_size) | in_window, UNK)
        return super().nll(output, replace(batch, target=target), state)

    def seen(self, output: WindowedOutput, state: WindowedState) -> dict[str, Tensor]:
        """Add "window" [B, T], the number of the window at each word, and "windows" [B, W, 2],
        their begins and ends.

        "windows" is the same for all documents, cut to the longest.
        """
        rows, steps, _ = output.copy.shape
        words = output.copy.new_zeros(rows, steps, state.source.shape[1])
        words = words.scatter_add(2, output.places[:, None].expand_as(output.copy), output.copy)
        seen = {**super().seen(output, state), "words": words}
        if self.config.window is None:
            return seen
        first = torch.arange(int(state.last_window.max()) + 1, device=words.device) * self.stride
        ends = (first + self.size).clamp_max(words.shape[2])
        spans = torch.stack([first, ends], -1).expand(len(state.source), -1, -1)
        return {**seen, "window": output.windows, "windows": spans}


def _attend(query: Tensor, keys: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Compute weights [R, T, M] and contexts [R, T, d] of queries [R, T, d] over keys [G, M, d], R
    a multiple of G.

    A query that sees nothing has weights 0.
    """
    rows, steps, _ = query.shape
    grouped = per_document(query, len(keys)).flatten(1, 2)  # [G, K * T, d]
    # e_tj = s_t^T h_j   (8)
    (scores,) = full_precision((grouped @ keys.transpose(1, 2)).view(rows, steps, -1))
    # alpha_t = softmax_j(e_tj) over the window's words   (9)
    nothing = ~seen.any(-1, keepdim=True)  # a softmax needs an entry
    alpha = masked_softmax(scores, seen | nothing).masked_fill(nothing, 0)
    # c_t = sum_j alpha_tj h_j   (9)
    context = alpha.to(keys.dtype).view(len(keys), grouped.shape[1], -1) @ keys
    return alpha, context.view(query.shape)


def reverse(values: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the first `lengths` [B] rows of values [B, N, ...]; the others stay in place."""
    place = torch.arange(values.shape[1], device=values.device)
    mirrored = lengths.to(values.device)[:, None] - 1 - place
    index = torch.where(mirrored >= 0, mirrored, place)
    return values.gather(1, index[..., None].expand_as(values))


def check_window(window: int | None, stride: int | None) -> None:
    """Raise InputError if windows of `window` words that move by `stride` would leave out words."""
    if window is None or stride is None:
        if window != stride:
            raise InputError("window and stride are given both or not at all")
    elif not 1 <= stride <= window:
        steps = f"1 to {window} words"
        raise InputError(f"a window of {window} words must move on by {steps}, not {stride}")


def count_windows(words: Any, window: int, stride: int) -> Any:
    """Count the windows of `window` words, `stride` words apart, that a text of `words` words
    needs.

    `words` is a number, an array or a tensor, and so is the result.
    """
    # n = 1 if T_x <= ws, else 1 + ceil((T_x - ws) / ss)   (1)
    more = -((window - words) // stride)
    return 1 + more * (more > 0)


def window_of(start: int, end: int, words: int, window: int, stride: int) -> int:
    """Return the first window that holds the words [start, end) of a text, or the one that leaves
    out fewest of them.

    The author's code takes another one where no window holds a sentence: the one that has fewest of
    its words.
    """
    # arg min_w |{start, ..., end} without F_w|   (4)
    first = np.arange(count_windows(words, window, stride)) * stride
    outside = np.clip(first - start, 0, None) + np.clip(end - first - window, 0, None)
    return int(outside.argmin())
