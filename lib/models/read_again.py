"""Read-Again (Zeng, Luo, Fidler and Urtasun 2016): an encoder that reads twice, and a decoder that generates from a
small vocabulary or copies, with an embedding of unknown words from their context. Equation numbers are the paper's;
(16) to (18) are ours."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.data.text import UNK
from lib.layers.attention import Attention, full_precision
from lib.layers.gated_gru import GatedGRU
from lib.models.pointer_model import mean_nll
from lib.models.state import State

ENCODERS = ("gru", "lstm", "read-again gru", "read-again lstm", "option 1", "option 2")


@dataclass(frozen=True)
class ReadAgainConfig:
    """Sizes of the paper. `vocab_size` is the decoder's |Y|; the encoder has a table of its own."""

    vocab_size: int = 15_000
    source_vocab_size: int = 110_000  # words that the encoder knows
    embedding: int = 512
    hidden: int = 512
    encoder: str = "read-again lstm"  # options 1 and 2 are for several sentences
    sentences: int = 2  # at most, in options 1 and 2
    copy: bool = True
    importance: str = "tanh"  # of alpha in (5); "sigmoid" keeps it positive
    dropout: float = 0.2  # on what enters and leaves the recurrent layers

    def __post_init__(self):
        if self.encoder not in ENCODERS:
            raise ValueError(f"encoder must be one of {', '.join(ENCODERS)}, not {self.encoder!r}")
        if self.importance not in ("tanh", "sigmoid"):
            raise ValueError(f"importance must be 'tanh' or 'sigmoid', not {self.importance!r}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), not {self.dropout}")
        if self.sentences < 1:
            raise ValueError(f"sentences must be at least 1, not {self.sentences}")


@dataclass(frozen=True)
class ReadAgainSteps:
    """What the decoder computed for T target positions of R hypotheses."""

    generate: Tensor  # [R, T, Y] g, scores of the vocabulary
    copy: Tensor  # [R, T, N] k, scores of the source words; -inf where there is none
    attention: Tensor  # [R, T, N] beta
    source: Tensor  # [R, N] extended ids


class ReadAgain(nn.Module):
    """Encoder with one or two reads, attention LSTM decoder, one softmax over vocabulary and source words.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words in S sentences, e = `embedding`,
    d = `hidden`.
    """

    Config = ReadAgainConfig
    control_symbols: frozenset[int] = frozenset()

    def __init__(self, config: ReadAgainConfig):
        super().__init__()
        self.config = config
        c, e, d = config, config.embedding, config.hidden
        self.source_embedding = nn.Embedding(c.source_vocab_size, e)  # x
        self.target_embedding = nn.Embedding(c.vocab_size, e)  # Y
        self.first_read = (nn.LSTM if c.encoder in ("lstm", "read-again lstm", "option 1", "option 2") else nn.GRU)(
            e, d, batch_first=True
        )
        if c.encoder == "read-again gru":
            self.importance_word = nn.Linear(d, d)  # W_e, with a bias
            self.importance_text = nn.Linear(d, d, bias=False)  # U_e
            self.importance_input = nn.Linear(e, d, bias=False)  # V_e
            self.second_read = GatedGRU(e, d)
        elif c.encoder not in ("gru", "lstm"):
            texts = {"read-again lstm": 1, "option 1": c.sentences, "option 2": 2}[c.encoder]
            self.second_read = nn.LSTM(e + d + texts * d, d, batch_first=True)
        if c.encoder == "option 2":
            self.global_text = nn.Linear(c.sentences * d, d)  # W_r, U_r, ... beside each other, and v_r
        self.bridge = nn.Linear(d, d)
        self.decoder = nn.LSTMCell(e + d, d)
        self.attention = Attention(d, d, d, "concat")  # W_a, U_a, v_a
        self.vocabulary = nn.Linear(d, c.vocab_size)  # o, b
        if c.copy:
            self.word = nn.Linear(d, e)  # W_c, b_c
            self.copy_query = nn.Linear(d, e, bias=False)  # W_k
        self.dropout = nn.Dropout(c.dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights uniform in +-sqrt(3 / d), all biases 0.1, as the paper has it."""
        bound = (3 / self.config.hidden) ** 0.5
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.constant_(parameter, 0.1)
            else:
                nn.init.uniform_(parameter, -bound, bound)

    # ---------------------------------------------------------------------------------------------- encoder

    def encode(self, batch: Batch) -> State:
        """The reads, and what the decoder needs of every source word."""
        states, last, importance = self._read(batch)
        states = self.dropout(states)
        document = {
            "words": states,  # [B, N, d]
            "keys": self.attention.project(states),  # [B, N, d]
            "mask": batch.source_mask,  # [B, N]
            "source": batch.source_extended,  # [B, N]
        }
        if importance is not None:
            document["importance"] = importance  # [B, N, d]
        if self.config.copy:
            document["embedded"] = torch.tanh(self.word(states))  # p, equation 15: [B, N, e]
        hidden = torch.tanh(self.bridge(last))
        return State(document, {"hidden": hidden, "cell": torch.zeros_like(hidden)})

    def _read(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Word states [B, N, d], their last [B, d], and alpha [B, N, d] of a GRU that reads again."""
        embedded = self.dropout(self.source_embedding(batch.source))  # [B, N, e]
        if self.config.encoder in ("option 1", "option 2"):
            return *self._read_sentences(batch, embedded), None
        mask = batch.source_mask
        first, text = _run(self.first_read, embedded, mask)  # equations 1 to 3, 7
        if self.config.encoder in ("gru", "lstm"):
            return first, text, None
        if self.config.encoder == "read-again gru":
            importance = self._importance(first, text, embedded)
            states = self.second_read(embedded, importance)
            return states, _last(states, mask), importance
        again = torch.cat([embedded, first, text[:, None].expand_as(first)], -1)  # equation 8
        return *_run(self.second_read, again, mask), None

    def _importance(self, first: Tensor, text: Tensor, embedded: Tensor) -> Tensor:
        """Equation 5: alpha [B, N, d]."""
        squash = torch.tanh if self.config.importance == "tanh" else torch.sigmoid
        return squash(
            self.importance_word(first) + self.importance_text(text)[:, None] + self.importance_input(embedded)
        )

    def _read_sentences(self, batch: Batch, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Equations 9 to 11: each sentence is read on its own, the second time with what the others are about."""
        c, counts, rows = self.config, batch.sentence_counts, batch.sentences
        if int(counts.max()) > c.sentences:
            raise ValueError(f"{int(counts.max())} sentences in a text, where the model takes {c.sentences} at most")
        owner, place, mask = rows.owner, rows.place, rows.mask
        sentences = embedded.flatten(0, 1)[place]  # [all, longest, e]
        first, text = _run(self.first_read, sentences, mask)
        grid = text.new_zeros(len(counts), c.sentences, text.shape[1])
        texts = grid.index_put((owner, rows.number), text).flatten(1)
        if c.encoder == "option 2":  # equations 10 and 11
            shared = torch.cat([text, torch.tanh(self.global_text(texts))[owner]], -1)
        else:  # equation 9
            shared = texts[owner]
        again = torch.cat([sentences, first, shared[:, None].expand(-1, first.shape[1], -1)], -1)
        states, last = _run(self.second_read, again, mask)
        words = states.new_zeros(embedded.shape[0] * embedded.shape[1], states.shape[2])
        words = words.index_copy(0, place[mask], states[mask]).view(*embedded.shape[:2], -1)
        mean = last.new_zeros(len(counts), last.shape[1]).index_add(0, owner, last) / counts.to(last)[:, None]
        return words, mean

    # ---------------------------------------------------------------------------------------------- decoder

    def decode(self, tokens: Tensor, state: State) -> tuple[ReadAgainSteps, State]:
        """Read T target words at once. tokens: [R, T] extended ids; words to copy are embedded by their context.

        Attention comes before the state it feeds, so equations 12 to 14 are a loop over the T words.
        """
        rows, doc = len(tokens), state.document
        source = _per_row(doc["source"], rows)
        words = self.dropout(self._embed(tokens, source, doc))  # [R, T, e]
        w, size = self.decoder, self.config.embedding
        from_words = nn.functional.linear(words, w.weight_ih[:, :size], w.bias_ih + w.bias_hh).unbind(1)
        hidden, cell = state.decoder["hidden"], state.decoder["cell"]
        outputs, attention = [], []
        for gates in from_words:
            beta, context = self._attend(hidden, doc)
            gates = gates + context @ w.weight_ih[:, size:].T + hidden @ w.weight_hh.T
            i, f, g, o = gates.chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            outputs.append(hidden)
            attention.append(beta)
        output = self.dropout(torch.stack(outputs, 1))  # [R, T, d]
        (generate,) = full_precision(self.vocabulary(output))
        steps = ReadAgainSteps(generate, self._copy_scores(output, doc), torch.stack(attention, 1), source)
        return steps, state.advance(hidden=hidden, cell=cell)

    def _embed(self, tokens: Tensor, source: Tensor, doc: dict[str, Tensor]) -> Tensor:
        """Equation 15: words of Y from its table, others from where they first stand in the source: [R, T, e]."""
        known = tokens < self.config.vocab_size
        words = self.target_embedding(tokens.where(known, UNK))
        if not self.config.copy or known.all():
            return words
        same = source[:, None] == tokens[..., None]  # [R, T, N]
        document = torch.arange(len(tokens), device=tokens.device) // (len(tokens) // len(doc["source"]))
        copied = doc["embedded"][document[:, None], same.int().argmax(-1)]  # argmax: the first of the largest
        return copied.where((~known & same.any(-1))[..., None], words)

    def _attend(self, hidden: Tensor, doc: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Equations 13 and 14: beta [R, N] and the context [R, d] of the state before, [R, d]."""
        queries = self.attention.project_queries(hidden).unflatten(0, (len(doc["words"]), -1))  # [B, K, d]
        beta = self.attention(queries, doc["keys"], doc["mask"])  # [B, K, N]
        return beta.flatten(0, 1), (beta.to(hidden.dtype) @ doc["words"]).flatten(0, 1)

    def _copy_scores(self, output: Tensor, doc: dict[str, Tensor]) -> Tensor:
        """Equation 16: k [R, T, N]."""
        documents, (rows, steps) = len(doc["source"]), output.shape[:2]
        if not self.config.copy:
            return output.new_full((rows, steps, doc["source"].shape[1]), LOWEST).float()
        queries = self.copy_query(output).unflatten(0, (documents, -1)).flatten(1, 2)  # [B, K * T, e]
        (scores,) = full_precision(queries @ doc["embedded"].transpose(1, 2))
        return scores.masked_fill(~doc["mask"][:, None], LOWEST).view(rows, steps, -1)

    # ------------------------------------------------------------------------------------------ probabilities

    def log_prob(self, steps: ReadAgainSteps, target: Tensor, state: State) -> Tensor:
        """Equation 17: log P of the target words [R, T] (extended ids). Without copying, unknown words are [UNK]."""
        known = target < self.config.vocab_size
        if not self.config.copy:
            target, known = target.where(known, UNK), torch.ones_like(known)
        generated = steps.generate.gather(-1, target.where(known, UNK)[..., None]).squeeze(-1)
        generated = generated.masked_fill(~known, LOWEST)
        same = steps.source[:, None] == target[..., None]  # [R, T, N]
        copied = steps.copy.masked_fill(~same, LOWEST).logsumexp(-1)
        normaliser = torch.logaddexp(steps.generate.logsumexp(-1), steps.copy.logsumexp(-1))
        return torch.logaddexp(generated, copied) - normaliser

    @torch.no_grad()
    def distribution(self, steps: ReadAgainSteps, state: State, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every word after the last step, [R, Y + extra] with `extra` copy ids, in `out` if given."""
        generate, copy, size = steps.generate[:, -1], steps.copy[:, -1], self.config.vocab_size
        p = generate.new_empty(len(generate), size + extra) if out is None else out
        normaliser = torch.logaddexp(generate.logsumexp(-1), copy.logsumexp(-1))[:, None]
        torch.sub(generate, normaliser, out=p[:, :size]).exp_()
        p[:, size:] = 0
        return p.scatter_add_(1, steps.source, (copy - normaliser).exp())

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Equation 18, the mean over documents of the mean over a summary's words."""
        return mean_nll(self, batch)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


LOWEST = -1e30  # a score whose exponential is 0; finite, so that gradients are too


def _run(rnn: nn.Module, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, d] and each row's last one [B, d]. Padding stands behind the words and reaches none of them."""
    outputs, _ = rnn(inputs)
    return outputs, _last(outputs, mask)


def _last(states: Tensor, mask: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]


def _per_row(values: Tensor, rows: int) -> Tensor:
    """[B, ...] of documents -> [R, ...] of hypotheses."""
    return values.repeat_interleave(rows // len(values), 0)


# The models of Table 1: every encoder without and with copying, and ABS (models/abs.py).
VARIANTS = {
    **{name + suffix: {"encoder": name, "copy": bool(suffix)} for name in ENCODERS for suffix in ("", " + copy")},
    "abs bag": {"encoder": "bag"},
    "abs attention": {"encoder": "attention"},
}
