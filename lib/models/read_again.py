"""Read-Again: an encoder that reads twice, and a decoder that generates from a small vocabulary or
copies.

Zeng, Luo, Fidler and Urtasun (2016). Equation numbers are the paper's; (16) to (18) are ours.

Shapes: B documents, K hypotheses of each, R = B * K decoder rows, T target words, N source words in
S sentences, e `embedding`, d `hidden`, Y `vocab_size`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import UNK
from lib.layers.attention import Attention, additive_scores, full_precision, masked_softmax
from lib.layers.attentive_lstm import attentive_lstm
from lib.layers.dropout import Dropout
from lib.layers.fast import fast_form
from lib.layers.pointer import DecoderOutput, ScoredWords
from lib.layers.recurrent import GRU, LSTM, GatedGRU, run_packed
from lib.layers.scan import scan
from lib.models.changes import Change, hooks
from lib.models.state import DecoderState, PerDocument, PerHypothesis, per_document, per_hypothesis
from lib.models.summarizer import Summarizer, Tap
from lib.system.errors import InputError
from lib.system.settings import Count, Share, checked

PaperEncoder = Literal["gru", "lstm", "read-again gru", "read-again lstm", "option 1", "option 2"]
ENCODERS: tuple[str, ...] = get_args(PaperEncoder)
Encoder = Literal[PaperEncoder, "bidirectional gru"]
READS_ONCE = "gru", "lstm"
# what the paper compares the idea with in words; it has no row of it
BIDIRECTIONAL = "bidirectional gru"


@checked
class ReadAgainConfig:
    """Sizes of the paper. `vocab_size` is the decoder's |Y|; the encoder has a table of its own."""

    vocab_size: int = 15_000
    source_vocab_size: int = 110_000  # words that the encoder knows
    embedding: int = 512
    hidden: int = 512
    encoder: Encoder = "read-again lstm"  # options 1 and 2 are for several sentences
    sentences: Count = 2  # at most, in options 1 and 2
    copy: bool = True
    importance: Literal["tanh", "sigmoid"] = "tanh"  # of alpha in (5); "sigmoid" keeps it positive
    # alpha is one number a word, not one for each of the d dimensions
    single_importance: bool = False
    dropout: Share = 0.2  # on all that enters and leaves a recurrent layer


@dataclass(frozen=True, kw_only=True)
class ReadAgainState(DecoderState):
    """What the decoder needs of every source word, and its LSTM's state."""

    words: PerDocument[Tensor]  # [B, N, d] h^2
    keys: PerDocument[Tensor]  # [B, N, d] U_a h^2
    mask: PerDocument[Tensor]  # [B, N]
    source: PerDocument[Tensor]  # [B, N] extended ids
    importance: PerDocument[Tensor | None]  # [B, N, d or 1] alpha of a GRU that reads again
    embedded: PerDocument[Tensor | None]  # [B, N, e] p_i of words that may be copied
    hidden: PerHypothesis[Tensor]  # [R, d]
    cell: PerHypothesis[Tensor]  # [R, d]


# s_t and its cell, [R, d] each.
HiddenAndCell = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ReadAgainOutput(DecoderOutput):
    """`features` are the decoder's states, from which the vocabulary's scores g are made."""

    copy: Tensor  # [R, T, N] k, scores of the source words; `LOWEST` where there is none
    attention: Tensor  # [R, T, N] beta
    source: Tensor  # [R, N] extended ids


class ReadAgain(Summarizer):
    """Encoder with one or two reads, attention LSTM decoder, one softmax over vocabulary and source
    words."""

    Config = ReadAgainConfig

    def __init__(self, config: ReadAgainConfig):
        super().__init__()
        self.config = config
        c, e, d = config, config.embedding, config.hidden
        self.source_embedding = nn.Embedding(c.source_vocab_size, e)  # x
        self.target_embedding = nn.Embedding(c.vocab_size, e)  # Y
        if c.encoder == BIDIRECTIONAL:
            self.first_read: nn.Module = GRU(e, d // 2, bidirectional=True)
        else:
            layer = GRU if c.encoder in ("gru", "read-again gru") else LSTM
            self.first_read = layer(e, d)
        if c.encoder == "read-again gru":
            each = 1 if c.single_importance else d
            self.importance_word = nn.Linear(d, each)  # W_e, with a bias
            self.importance_text = nn.Linear(d, each, bias=False)  # U_e
            self.importance_input = nn.Linear(e, each, bias=False)  # V_e
            self.second_read = GatedGRU(e, d)
        elif c.encoder not in (*READS_ONCE, BIDIRECTIONAL):
            # Vectors of texts that the second read gets beside each word: (8), (9) or (11).
            texts = {"read-again lstm": 1, "option 1": c.sentences, "option 2": 2}[c.encoder]
            self.second_read = LSTM(e + d + texts * d, d)
        if c.encoder == "option 2":
            # W_r, U_r, ... beside each other, and v_r.
            self.global_text = nn.Linear(c.sentences * d, d)
        self.bridge = nn.Linear(d, d)
        self.decoder = nn.LSTMCell(e + d, d)
        self.attention = Attention(d, d, d, "concat")  # W_a, U_a, v_a
        self.vocabulary = nn.Linear(d, c.vocab_size)  # o, b
        if c.copy:
            self.word = nn.Linear(d, e)  # W_c, b_c
            self.copy_query = nn.Linear(d, e, bias=False)  # W_k
        self.dropout = Dropout(c.dropout)
        self.text = Tap()  # h_n of the first read, in the second one
        self.alpha = Tap()  # importance (5)
        self.copied_word = Tap()  # p_i, read after a copied word (15)
        self.copy_scores = Tap()  # k (16)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights uniformly from +-sqrt(3 / d) and set all biases to 0.1, as the paper
        does.

        PyTorch's recurrent layers have two biases, which are added: one is 0.1 and the other, of
        the last state, 0.
        """
        bound = (3 / self.config.hidden) ** 0.5
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.constant_(parameter, 0.0 if "bias_hh" in name else 0.1)
            else:
                nn.init.uniform_(parameter, -bound, bound)

    # ---------------------------------------------------------------------------------
    # encoder

    def encode(self, batch: Batch) -> ReadAgainState:
        """Read the text, once or twice, and compute what the decoder needs of every source word."""
        states, last, importance = self._read(batch)
        states = self.dropout(states)
        hidden = torch.tanh(self.bridge(self.dropout(last)))
        return ReadAgainState(
            words=states,
            keys=self.attention.project(states),
            mask=batch.source_mask,
            source=batch.source_extended,
            importance=importance,
            # p_i = tanh(W_c h_i + b_c)   (15)
            embedded=torch.tanh(self.word(states)) if self.config.copy else None,
            hidden=hidden,
            cell=torch.zeros_like(hidden),
        )

    def _read(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Compute word states [B, N, d], the last of each text [B, d], and alpha [B, N, d or 1] of
        a gated GRU."""
        embedded = self.dropout(self.source_embedding(batch.source))  # [B, N, e]
        if self.config.encoder in ("option 1", "option 2"):
            states, last = self._read_sentences(batch, embedded)
            return states, last, None
        mask = batch.source_mask
        if self.config.encoder == BIDIRECTIONAL:
            states, ends = run_packed(self.first_read, embedded, batch.source_lengths)
            return states, ends.transpose(0, 1).flatten(1), None  # where each direction ends
        # h^1_i = RNN^1(x_i, h^1_{i-1})   (1 to 3 for a GRU, 7 for an LSTM)
        first, text = _run(self.first_read, embedded, mask)
        if self.config.encoder in READS_ONCE:
            return first, text, None
        first = self.dropout(first)
        text = self.text(self.dropout(text))
        if self.config.encoder == "read-again gru":
            importance = self.alpha(self._importance(first, text, embedded), mask)
            # h^2_i = (1 - alpha_i z_i) h^2_{i-1} + alpha_i z_i h~_i   (4, 6)
            states = self.second_read(embedded, importance.expand_as(first))
            return states, _last(states, mask), importance
        # The second LSTM reads x_i, h^1_i and the vector of the text h^1_n   (8)
        again = torch.cat([embedded, first, text[:, None].expand_as(first)], -1)
        states, last = _run(self.second_read, again, mask)
        return states, last, None

    def _importance(self, first: Tensor, text: Tensor, embedded: Tensor) -> Tensor:
        """Compute alpha [B, N, d or 1], how much of each word the second read takes in."""
        # alpha_i = tanh(W_e h^1_i + U_e h^1_n + V_e x_i)   (5)
        squash = torch.tanh if self.config.importance == "tanh" else torch.sigmoid
        from_text = self.importance_text(text)[:, None]
        return squash(self.importance_word(first) + from_text + self.importance_input(embedded))

    def _read_sentences(self, batch: Batch, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Read each sentence on its own, the second time with the vectors of all sentences (options
        1 and 2)."""
        c, counts, rows = self.config, batch.sentence_counts, batch.sentences
        count = int(counts.max())
        if count > c.sentences:
            raise InputError(
                f"{count} sentences in a text, where the model takes {c.sentences} at most"
            )
        owner, place, mask = rows.owner, rows.place, rows.mask
        sentences = embedded.flatten(0, 1)[place]  # [all, longest, e]
        first, text = _run(self.first_read, sentences, mask)
        first = self.dropout(first)
        text = self.dropout(text)
        grid = text.new_zeros(len(counts), c.sentences, text.shape[1])
        texts = grid.index_put((owner, rows.number), text).flatten(1)
        if c.encoder == "option 2":
            # h_global = tanh(W_r h_1 + U_r h_2 + ... + v_r)   (10)
            # The sentence's own vector, and that of all   (11)
            shared = torch.cat([text, torch.tanh(self.global_text(texts))[owner]], -1)
        else:
            # The vectors of all sentences beside each other   (9)
            shared = texts[owner]
        again = torch.cat([sentences, first, shared[:, None].expand(-1, first.shape[1], -1)], -1)
        states, last = _run(self.second_read, again, mask)
        # Back to the words' places in the texts.
        documents, longest, _ = embedded.shape
        places = place.flatten()[rows.words]
        words = states.new_zeros(documents * longest, states.shape[2])
        words = words.index_copy(0, places, states.flatten(0, 1).index_select(0, rows.words))
        sums = last.new_zeros(len(counts), last.shape[1]).index_add(0, owner, last)
        mean = sums / batch.sentence_mask.sum(1, keepdim=True)
        return words.view(documents, longest, -1), mean

    # ---------------------------------------------------------------------------------
    # decoder

    def decode(
        self, tokens: Tensor, state: ReadAgainState
    ) -> tuple[ReadAgainOutput, ReadAgainState]:
        """Read T target words at once: tokens [R, T], extended ids.

        Each state depends on attention by the state before it, so that (12) to (14) are a loop over
        the T words.
        """
        source = per_hypothesis(state.source, len(tokens))
        words = self.dropout(self._embed(tokens, source, state))  # [R, T, e]
        source_words = [state.keys, state.words, state.mask]
        before = (state.hidden, state.cell)
        (states, beta), (hidden, cell) = scan(self.attend_and_write, before, [words], source_words)
        features = self.dropout(states)  # [R, T, d]
        output = ReadAgainOutput(features, self._copy_scores(features, state), beta, source)
        return output, state.replace(hidden=hidden, cell=cell)

    # A subclass may change this step. Training then computes its equations, without the fast form.

    def attend_and_write(
        self,
        state: HiddenAndCell,
        word: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
    ) -> tuple[tuple[Tensor, Tensor], HiddenAndCell]:
        """Compute one step of the decoder.

        Args:
            state: s_{t-1} and its cell, [R, d] each.
            word: y_{t-1} [R, e].
            keys: U_a h^2 [B, N, d].
            values: h^2 [B, N, d].
            mask: [B, N].

        Returns:
            s_t [R, d] and beta_t [R, N], and the next state.
        """
        hidden, cell = state
        # As in the fast form, autocast has no effect here.
        with torch.autocast(word.device.type, enabled=False):
            hidden, cell, word, keys, values = full_precision(hidden, cell, word, keys, values)
            # o_it = v_a^T tanh(W_a s_{t-1} + U_a h^2_i),  beta_t = softmax_i(o_it)   (13)
            queries = per_document(self.attention.project_queries(hidden), len(keys))  # [B, K, d]
            beta = self.attention(queries, keys, mask)  # [B, K, N]
            # c_t = sum_i beta_ti h^2_i   (14)
            context = (beta @ values).flatten(0, 1)  # [R, d]
            # s_t = LSTM([y_{t-1}; c_t], s_{t-1})   (12)
            hidden, cell = self.decoder(torch.cat([word, context], -1), (hidden, cell))
        return (hidden, beta.flatten(0, 1)), (hidden, cell)

    def _is_additive(self, *_: object) -> bool:
        return getattr(self.attention, "score", None) == "concat"

    @fast_form(
        attend_and_write,
        computes=[additive_scores, masked_softmax],
        parts={"attention": Attention, "decoder": nn.LSTMCell},
        where=_is_additive,
    )
    def _write_fast(
        self,
        state: HiddenAndCell,
        words: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
    ) -> tuple[tuple[Tensor, Tensor], HiddenAndCell]:
        """Do what `scan` does with `attend_and_write`, with few launches and little memory."""
        states, cell, beta = attentive_lstm(
            words=words,
            start=state,
            keys=keys,
            values=values,
            mask=mask,
            attention=self.attention,
            lstm=self.decoder,
        )
        return (states, beta), (states[:, -1], cell)

    def _embed(self, tokens: Tensor, source: Tensor, state: ReadAgainState) -> Tensor:
        """Embed words of Y by their table, others by the context of their first place in the
        source: [R, T, e]."""
        # y_{t-1} = p_i if it is not in Y but equal to x_i, otherwise Y[y_{t-1}] or Y[UNK]   (15)
        known = tokens < self.config.vocab_size
        words = self.target_embedding(tokens.where(known, UNK))
        # A CPU skips the rest where it changes nothing. To know, the host would wait for a GPU.
        if state.embedded is None or (tokens.device.type == "cpu" and known.all()):
            return words
        same = source[:, None] == tokens[..., None]  # [R, T, N]
        documents = torch.arange(len(state.source), device=tokens.device)
        document = per_hypothesis(documents, len(tokens))
        first = same.int().argmax(-1)  # argmax gives the first of the largest
        copied = self.copied_word(state.embedded[document[:, None], first])
        return copied.where((~known & same.any(-1))[..., None], words)

    def _copy_scores(self, output: Tensor, state: ReadAgainState) -> Tensor:
        """Compute k [R, T, N], the scores of the source words."""
        # k_ti = p_i^T W_k h_t   (16)
        rows, steps, _ = output.shape
        if state.embedded is None:
            none = output.new_full((rows, steps, state.source.shape[1]), LOWEST)
            return full_precision(none)[0]
        queries = self.copy_query(output)
        queries = per_document(queries, len(state.source)).flatten(1, 2)  # [B, K * T, e]
        (scores,) = full_precision(queries @ state.embedded.transpose(1, 2))
        scores = scores.masked_fill(~state.mask[:, None], LOWEST).view(rows, steps, -1)
        return self.copy_scores(scores)

    # ---------------------------------------------------------------------------------
    # probabilities

    def generate(self, features: Tensor) -> Tensor:
        """Compute g, the scores of the vocabulary: [..., d] -> [..., Y]."""
        return full_precision(self.vocabulary(features))[0]

    def scored_words(
        self, output: ReadAgainOutput, target: Tensor, state: ReadAgainState
    ) -> ScoredWords:
        """Describe log P (17) of the target words [R, T] (extended ids). Without copying, unknown
        words are [UNK]."""
        if not self.config.copy:
            target = in_vocabulary(target, self.config.vocab_size)
        known = target < self.config.vocab_size
        same = output.source[:, None] == target[..., None]  # [R, T, N]
        # log sum_{i: x_i = w} exp k_i, and log sum_i exp k_i
        copied = output.copy.masked_fill(~same, LOWEST).logsumexp(-1)
        copies = output.copy.logsumexp(-1)
        return ScoredWords(
            features=output.features,
            weight=self.vocabulary.weight,
            bias=self.vocabulary.bias,
            target=target.where(known, 0),
            combine=_one_softmax,
            more=(known, copied, copies),
        )

    def distribution(self, output: ReadAgainOutput, state: ReadAgainState, extra: int) -> Tensor:
        scores = self.generate(output.features[:, -1])
        copies = output.copy[:, -1]
        p = torch.cat([scores, copies], 1).softmax(1)  # one softmax over words and copies
        generated, copied = p.split([scores.shape[1], copies.shape[1]], 1)
        return F.pad(generated, (0, extra)).scatter_add(1, output.source, copied)

    def seen(self, output: ReadAgainOutput, state: ReadAgainState) -> dict[str, Tensor]:
        """Add "importance" [B, N], the mean of alpha, to the weights of every model."""
        copies = output.copy.logsumexp(-1)
        generate = torch.sigmoid(self.generate(output.features).logsumexp(-1) - copies)
        importance = {} if state.importance is None else {"importance": state.importance.mean(-1)}
        return {"words": output.attention, "generate": generate, **importance}

    def changes(self) -> dict[str, Change]:
        changes = super().changes()
        if self.config.copy:
            changes["no copying"] = Change(
                "every word is generated",
                model=hooks(lambda scores: torch.full_like(scores, LOWEST), "copy_scores"),
                only_known=True,
            )
            unknown = self.target_embedding.weight[UNK]
            changes["[UNK] fed back"] = Change(
                "a copied word is read as [UNK], not by its context",
                model=hooks(lambda words: unknown.to(words).expand_as(words), "copied_word"),
            )
        if self.config.encoder in ("read-again gru", "read-again lstm"):
            changes["text not told"] = Change(
                "the second read gets zeros for the text's vector",
                model=hooks(torch.zeros_like, "text"),
            )
        if self.config.encoder == "read-again gru":
            changes["importance averaged"] = Change(
                "α of each word is the text's mean",
                model=hooks(_average_importance, "alpha"),
            )
        return changes


def _average_importance(alpha: Tensor, mask: Tensor) -> Tensor:
    """Replace alpha [B, N, d or 1] by its mean over the words of each text."""
    words = mask[..., None]
    mean = (alpha * words).sum(1, keepdim=True) / words.sum(1, keepdim=True)
    return mean.expand_as(alpha)


def _one_softmax(
    score: Tensor, normaliser: Tensor, known: Tensor, copied: Tensor, copies: Tensor
) -> Tensor:
    # P(w) = (exp g_w + sum_{i: x_i = w} exp k_i) / (sum_v exp g_v + sum_i exp k_i)   (17)
    either = torch.logaddexp(score.masked_fill(~known, LOWEST), copied)
    return either - torch.logaddexp(normaliser, copies)


LOWEST = -1e30  # a score whose exponential is 0; finite, so that gradients are too


def _run(rnn: nn.Module, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs [B, N, d] and each row's last one [B, d]. Padding follows the words and
    reaches none."""
    outputs, _ = rnn(inputs)
    return outputs, _last(outputs, mask)


def _last(states: Tensor, mask: Tensor) -> Tensor:
    """Select the state [B, d] of each row's last word."""
    return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]
