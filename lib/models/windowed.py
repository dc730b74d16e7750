"""Windowed attention (Schüller 2019; Schüller, Wilhelm, Kreiling, Glavaš 2020): a pointer-generator whose decoder
sees one window of the text at a time and writes a symbol to move on. Equation numbers are those of its page."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lib.data.batch import Batch, in_vocabulary
from lib.data.preprocess import check_window
from lib.data.text import SLIDE, UNK
from lib.data.windows import count_windows
from lib.layers.attention import full_precision, masked_softmax
from lib.layers.pointer import GenerateOrCopy
from lib.models.pointer_model import document_weights
from lib.models.state import State


@dataclass(frozen=True)
class WindowedConfig:
    """Sizes of the author's code: 18.54M parameters. Without a window it is the standard model."""

    vocab_size: int = 50_000
    embedding: int = 300  # one table for source, summary and output
    hidden: int = 256  # of the encoder, in each direction; the decoder has twice as many
    window: int | None = 400  # words that attention sees; None: all
    stride: int | None = 380  # words by which the window moves
    windowing: str = "dynamic"  # the decoder writes [SLIDE] to move on; "static": after a share of the words
    encode: str = "whole"  # the whole text at first; "stream": each window when it is entered
    # static windowing: equation 14
    steepness: float = 1.2  # k
    decay: float = 0.8  # d
    budget: int = 100  # words of a summary, T_y, of a text of
    longest: int = 1500  # words

    def __post_init__(self):
        if (self.window is None) != (self.stride is None):
            raise ValueError("window and stride are given both or not at all")
        if self.window is not None:
            check_window(self.window, self.stride)
        if self.windowing not in ("dynamic", "static"):
            raise ValueError(f"windowing must be 'dynamic' or 'static', not {self.windowing!r}")
        if self.encode not in ("whole", "stream"):
            raise ValueError(f"encode must be 'whole' or 'stream', not {self.encode!r}")
        if self.encode == "stream" and self.window is None:
            raise ValueError("a text is streamed in windows: give window and stride, or encode it whole")


@dataclass(frozen=True)
class WindowedSteps:
    """What the decoder computed for T target positions of R hypotheses; M source words are in reach."""

    features: Tensor  # [R, T, E] from which the pointer scores the vocabulary
    switch: Tensor  # [R, T] its sigmoid is the probability of generating
    copy: Tensor  # [R, T, M] alpha, the weights of the source words; 0 outside the window
    source: Tensor  # [R, M] their extended ids
    places: Tensor  # [R, M] their places in the text
    windows: Tensor  # [R, T] the window at each step


class TiedPointer(GenerateOrCopy):
    """Generate from the decoder's attentional state a_t, through the embedding table, or copy: equations 6 to 8."""

    def __init__(self, embedding: nn.Embedding, width: int):
        super().__init__()
        vocab_size, size = embedding.weight.shape
        self.combine = nn.Linear(2 * width, width)  # W_a, b
        self.bottleneck = nn.Linear(width, size)  # W_e, b_e
        self.vocabulary = nn.Linear(size, vocab_size)  # E, b_v
        self.vocabulary.weight = embedding.weight
        nn.init.zeros_(self.vocabulary.bias)
        self.switch = nn.Linear(2 * width + size, 1)  # w, b

    def forward(self, context: Tensor, hidden: Tensor, before: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Features [..., E] and the score of the switch [...], from c_t, s_t, s_{t-1} and the word that enters."""
        attentional = self.combine(torch.tanh(torch.cat([context, hidden], -1)))
        (switch,) = full_precision(self.switch(torch.cat([attentional, before, embedded], -1)).squeeze(-1))
        return self.bottleneck(attentional), switch


class Windowed(nn.Module):
    """Bidirectional LSTM encoder, LSTM decoder, Luong's dot attention, pointer, tied embeddings.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, H = `hidden`, d = 2H.
    """

    Config = WindowedConfig
    control_symbols = frozenset({SLIDE})  # what it writes that is no word of the summary

    def __init__(self, config: WindowedConfig):
        super().__init__()
        self.config = config
        c, d = config, 2 * config.hidden
        self.embedding = nn.Embedding(c.vocab_size, c.embedding)
        with torch.no_grad():  # rows of length 1: the table is the output layer as well
            self.embedding.weight.div_(self.embedding.weight.norm(dim=1, keepdim=True))
        self.forward_encoder = nn.LSTM(c.embedding, c.hidden, batch_first=True)
        self.backward_encoder = nn.LSTM(c.embedding, c.hidden, batch_first=True)
        self.decoder = nn.LSTM(c.embedding, d, batch_first=True)
        self.pointer = TiedPointer(self.embedding, d)

    # ---------------------------------------------------------------------------------------------- encoder

    def encode(self, batch: Batch) -> State:
        """The whole text, or the first window of it; the decoder starts where the encoder ended: equation 2."""
        lengths = batch.source_lengths
        document = {"source": batch.source_extended, "lengths": lengths.to(batch.source.device)}
        document["last_window"] = self._last_window(document["lengths"])  # [B]
        if self.config.windowing == "static":
            document["window_ends"] = self._window_ends(document)
        window = torch.zeros_like(document["lengths"])
        if self.config.encode == "whole":
            document["words"], hidden, cell = self._read(self.embedding(batch.source), lengths)  # [B, N, d]
            return State(document, {"hidden": hidden, "cell": cell, "window": window, "position": window})
        size, stride = self.config.window, self.config.stride
        embedded = self.embedding(batch.source[:, :size])
        states, hidden, cell = self._read(embedded, lengths.clamp_max(size))
        _, (carried, carried_cell) = self.forward_encoder(embedded[:, :stride])
        held = {"states": _padded(states, size), "carried": carried[0], "carried_cell": carried_cell[0]}
        return State(document, {"hidden": hidden, "cell": cell, "window": window, "position": window, **held})

    def _last_window(self, lengths: Tensor) -> Tensor:
        if self.config.window is None:
            return torch.zeros_like(lengths)
        return count_windows(lengths, self.config.window, self.config.stride) - 1

    def _read(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Equation 2: states [B, N, d], and the final hidden and cell states [B, d], of words [B, N, E]."""
        forward, last = run_ragged(self.forward_encoder, embedded, lengths)
        backward, first = run_ragged(self.backward_encoder, reverse(embedded, lengths), lengths)
        states = torch.cat([forward, reverse(backward, lengths)], -1)
        hidden, cell = (torch.cat(pair, -1) for pair in zip(last, first))
        return states, hidden, cell

    # ---------------------------------------------------------------------------------------------- decoder

    def decode(self, tokens: Tensor, state: State) -> tuple[WindowedSteps, State]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK].

        The window moves at a step whose input is [SLIDE], not beyond the last one (equation 13).
        """
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))  # [R, T, E]
        start = state.decoder["hidden"]
        output, (hidden, cell) = self.decoder(embedded, (start[None], state.decoder["cell"][None]))
        windows = self._windows(tokens, state)  # [R, T]
        attend = self._attend_whole if self.config.encode == "whole" else self._attend_stream
        copy, context, places, held = attend(output, windows, state)
        before = torch.cat([start[:, None], output[:, :-1]], 1)
        features, switch = self.pointer(context, output, before, embedded)
        document = torch.arange(len(tokens), device=tokens.device) // (len(tokens) // len(state.document["source"]))
        source = state.document["source"][document[:, None], places]
        position = state.decoder["position"] + tokens.shape[1]
        after = state.advance(hidden=hidden[0], cell=cell[0], window=windows[:, -1], position=position, **held)
        return WindowedSteps(features, switch, copy, source, places, windows), after

    def _windows(self, tokens: Tensor, state: State) -> Tensor:
        """Equations 13 and 14: the window [R, T] of each step."""
        last = _per_row(state.document["last_window"], len(tokens))[:, None]
        if self.config.windowing == "dynamic":
            return torch.minimum(state.decoder["window"][:, None] + (tokens == SLIDE).cumsum(1), last)
        steps = state.decoder["position"][:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        ends = _per_row(state.document["window_ends"], len(tokens))
        return torch.minimum(torch.searchsorted(ends, steps, right=True), last)

    def _window_ends(self, document: dict[str, Tensor]) -> Tensor:
        """Equation 14: after how many words of the summary each window ends, [B, most windows]."""
        c, lengths, last = self.config, document["lengths"], document["last_window"]
        if c.window is None:
            return lengths[:, None] * c.budget
        t = torch.arange(int(last.max()) + 1, device=lengths.device)
        filled = ((lengths[:, None] - t * c.stride) / c.window).clamp(0, 1)  # less than 1 in the last window
        share = torch.exp(-c.steepness * (1 + t * c.decay**t)) * filled * (t <= last[:, None])
        share = share.double().cumsum(1) / share.double().sum(1, keepdim=True)
        return (share * (lengths[:, None] * c.budget / c.longest) + 1e-9).long()

    def _attend_whole(self, query: Tensor, windows: Tensor, state: State):
        """Equations 3 and 4 over the states of the whole text, of which only what the windows cover is touched."""
        doc, (rows, steps) = state.document, query.shape[:2]
        low, high = 0, doc["words"].shape[1]
        if steps == 1 and self.config.window:  # generation: windows are near each other
            size, stride = self.config.window, self.config.stride
            low, high = int(windows.min()) * stride, min(high, int(windows.max()) * stride + size)
        places = torch.arange(low, high, device=query.device).expand(rows, -1)  # [R, M]
        inside = places < _per_row(doc["lengths"], rows)[:, None]
        alpha, context = _attend(query, doc["words"][:, low:high], self._in_window(places, windows) & inside[:, None])
        return alpha, context, places, {}

    def _in_window(self, places: Tensor, windows: Tensor) -> Tensor:
        """Whether the words at `places` [R, M] are in `windows` [R, T]: [R, T, M]."""
        if self.config.window is None:
            return torch.ones_like(windows, dtype=torch.bool)[..., None].expand(-1, -1, places.shape[1])
        behind = places[:, None] - windows[..., None] * self.config.stride
        return (behind >= 0) & (behind < self.config.window)

    def _attend_stream(self, query: Tensor, windows: Tensor, state: State):
        """The same, each window encoded when a hypothesis enters it. Every row holds the states of one window."""
        size, stride = self.config.window, self.config.stride
        first = state.decoder["window"]
        lengths = _per_row(state.document["lengths"], len(query))
        held = {name: state.decoder[name] for name in ("states", "carried", "carried_cell")}
        alphas, contexts, places = [], 0, []
        for ahead in range(int((windows[:, -1] - first).max()) + 1):
            now = first + ahead
            if ahead:
                held = self._enter(held, now, (windows[:, -1] >= now).nonzero()[:, 0], state)
            here = windows == now[:, None]  # [R, T]
            if here.any():
                place = now[:, None] * stride + torch.arange(size, device=query.device)  # [R, w]
                seen = here[..., None] & (place < lengths[:, None])[:, None]
                alpha, context = _attend(query, held["states"], seen)
                alphas.append(alpha)
                contexts = contexts + context
                places.append(place.clamp_max(state.document["source"].shape[1] - 1))
        return torch.cat(alphas, -1), contexts, torch.cat(places, -1), held

    def _enter(self, held: dict[str, Tensor], window: Tensor, rows: Tensor, state: State) -> dict[str, Tensor]:
        """Encode window [R] for `rows`, once for all hypotheses of a document that enter the same one.

        The forward direction goes on from the state it had where the window begins, the backward direction starts
        at the window's end.
        """
        c, source = self.config, state.document["source"]
        document = torch.arange(len(window), device=window.device) // (len(window) // len(source))
        key = document[rows] * (int(window.max()) + 1) + window[rows]
        _, which = key.unique(return_inverse=True)
        one = torch.empty(int(which.max()) + 1, dtype=torch.long, device=rows.device).scatter_(0, which, rows)
        place = window[one, None] * c.stride + torch.arange(c.window, device=rows.device)  # [G, w]
        lengths = (state.document["lengths"][document[one]] - window[one] * c.stride).clamp(max=c.window)
        ids = source[document[one, None], place.clamp_max(source.shape[1] - 1)]
        embedded = self.embedding(in_vocabulary(ids, c.vocab_size))
        carried = held["carried"][one][None], held["carried_cell"][one][None]
        begun, (hidden, cell) = self.forward_encoder(embedded[:, : c.stride], carried)
        forward = [begun]
        if c.stride < c.window:
            forward.append(self.forward_encoder(embedded[:, c.stride :], (hidden, cell))[0])
        backward = reverse(self.backward_encoder(reverse(embedded, lengths))[0], lengths)
        entered = {
            "states": torch.cat([torch.cat(forward, 1), backward], -1),
            "carried": hidden[0],
            "carried_cell": cell[0],
        }
        return {name: value.index_copy(0, rows, entered[name][which]) for name, value in held.items()}

    # ------------------------------------------------------------------------------------------ probabilities

    def log_prob(self, steps: WindowedSteps, target: Tensor, state: State) -> Tensor:
        """log P of the target words [R, T] (extended ids), equation 8."""
        return self.pointer.log_prob(steps.features, steps.switch, steps.copy, steps.source, target)

    def distribution(self, steps: WindowedSteps, state: State, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every word after the last step, [R, V + extra] with `extra` copy ids, in `out` if given; [SLIDE] has 0
        where there is no further window."""
        last = steps.features[:, -1], steps.switch[:, -1], steps.copy[:, -1]
        p = self.pointer.distribution(*last, steps.source, extra, out)
        more = steps.windows[:, -1] < _per_row(state.document["last_window"], len(p))
        p[:, SLIDE] *= more if self.config.windowing == "dynamic" else 0
        return p

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Equation 1, the mean over documents of the mean over a summary's symbols of -log P.

        A word that is in neither the vocabulary nor the window counts as [UNK].
        """
        state = self.encode(batch)
        steps, _ = self.decode(batch.target_input, state)
        weights = document_weights(batch.target_mask, steps.switch.dtype)
        same = steps.source[:, None] == batch.target[..., None]  # [B, T, M]
        in_window = (same & self._in_window(steps.places, steps.windows)).any(-1)
        target = batch.target.where((batch.target < self.config.vocab_size) | in_window, UNK)
        nll = self.pointer.nll(steps.features, steps.switch, steps.copy, steps.source, target, weights)
        return {"loss": nll, "nll": nll}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


def _attend(query: Tensor, keys: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Weights [R, T, M], 0 where nothing is seen, and contexts [R, T, d] of queries [R, T, d] over keys [G, M, d],
    for R a multiple of G."""
    grouped = query.unflatten(0, (len(keys), -1)).flatten(1, 2)  # [G, K * T, d]
    (scores,) = full_precision((grouped @ keys.transpose(1, 2)).view(*query.shape[:2], -1))
    nothing = ~seen.any(-1, keepdim=True)
    alpha = masked_softmax(scores, seen | nothing).masked_fill(nothing, 0)
    context = alpha.to(keys.dtype).view(*grouped.shape[:2], -1) @ keys
    return alpha, context.view(query.shape)


def _per_row(values: Tensor, rows: int) -> Tensor:
    """[B, ...] of documents -> [R, ...] of hypotheses."""
    return values if len(values) == rows else values.repeat_interleave(rows // len(values), 0)


def _padded(states: Tensor, size: int) -> Tensor:
    return nn.functional.pad(states, (0, 0, 0, size - states.shape[1]))


def reverse(values: Tensor, lengths: Tensor) -> Tensor:
    """The first `lengths` [B] rows of values [B, N, ...] in reverse order, the others where they were."""
    place = torch.arange(values.shape[1], device=values.device)
    mirrored = lengths.to(values.device)[:, None] - 1 - place
    index = torch.where(mirrored >= 0, mirrored, place)
    return values.gather(1, index[..., None].expand_as(values))


def run_ragged(lstm: nn.LSTM, values: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Outputs [B, N, H] (0 behind the end) and final states [B, H] of an LSTM over rows of `lengths` [B] words.

    On a GPU a packed sequence; on a CPU, where the backward pass of one takes 50 times as long, piece by piece
    between the ends of the rows. Padding is not computed in either.
    """
    if values.is_cuda:
        packed = pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, (hidden, cell) = lstm(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=values.shape[1])
        return outputs, (hidden[0], cell[0])
    hidden = cell = values.new_zeros(len(values), lstm.hidden_size)
    pieces = []
    for begin, end in pairwise([0, *sorted(set(lengths.tolist()))]):
        rows = (lengths >= end).nonzero()[:, 0]
        output, last = lstm(values[rows, begin:end], (hidden[rows][None], cell[rows][None]))
        hidden, cell = (old.index_copy(0, rows, new[0]) for old, new in zip((hidden, cell), last))
        pieces.append(output.new_zeros(len(values), end - begin, lstm.hidden_size).index_copy(0, rows, output))
    outputs = torch.cat(pieces, 1)
    return nn.functional.pad(outputs, (0, 0, 0, values.shape[1] - outputs.shape[1])), (hidden, cell)


# Attention over the whole text; the window that the decoder moves; the same, encoding window by window; the window
# that moves after a share of the words.
VARIANTS = {
    "standard": {"window": None, "stride": None},
    "dynamic": {},
    "streamed": {"encode": "stream"},
    "static": {"windowing": "static"},
}
