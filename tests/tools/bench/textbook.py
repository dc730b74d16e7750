"""The usual way, as the benchmark's reference: a loop over decoding steps, each with its own attention over the
source and its own distribution over vocabulary and source. The same weights as lib's modules, the same loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import PAD
from lib.layers.coverage import CoverageAttention
from lib.layers.pointer import PointerGenerator, PointerOutput
from lib.layers.transformer import sinusoids
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.models.mem2mem import Mem2Mem, compression_loss
from lib.models.summarizer import document_weights, mean_over_words


def coverage_step(module: CoverageAttention, query: Tensor, projected: Tensor, mask: Tensor, coverage: Tensor):
    """Equations 16 and 17 for one step: query [B, H], coverage [B, N] -> weights [B, N], coverage."""
    hidden = torch.tanh(projected + module.query(query)[:, None] + coverage[..., None] * module.coverage)
    alpha = (hidden @ module.v).masked_fill(~mask, -torch.inf).softmax(-1)
    return alpha, coverage + alpha


def step_loss(
    module: PointerGenerator, features: Tensor, switch: Tensor, copy: Tensor, source, target, extra
) -> Tensor:
    """-log of the extended distribution [B, V + extra] at one target word each: [B]."""
    z = switch.sigmoid()[:, None]
    mixed = F.pad(z * module.vocabulary(features).softmax(-1), (0, extra))
    mixed = mixed.scatter_add(1, source, (1 - z) * copy)
    return -torch.log(mixed.gather(1, target[:, None]).squeeze(1))


def gated_steps(gru: nn.GRU, inputs: Tensor, alpha: Tensor) -> Tensor:
    """The second read of a GRU (Read-Again, equation 4) with PyTorch's cell, word by word: [B, N, d]."""
    hidden, states = inputs.new_zeros(len(inputs), gru.hidden_size), []
    for x, a in zip(inputs.unbind(1), alpha.unbind(1)):
        new = torch.gru_cell(x, hidden, gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0)
        hidden = (1 - a) * hidden + a * new
        states.append(hidden)
    return torch.stack(states, 1)


class PointerGeneratorLSTM(nn.Module):
    """A flat LSTM encoder-decoder with coverage attention and copying, assembled from lib's layers."""

    def __init__(self, vocab_size: int = 50_000, embedding: int = 128, hidden: int = 256):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding)
        self.encoder = nn.LSTM(embedding, hidden // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.attention = CoverageAttention(hidden, hidden, hidden)
        self.pointer = PointerGenerator(hidden, hidden, embedding, hidden, vocab_size)

    def _start(self, batch: Batch):
        words, (last, cell) = self.encoder(self.embedding(batch.source))
        state = tuple(x.transpose(0, 1).flatten(1)[None] for x in (last, cell))
        return words, self.attention.project(words), state

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """lib's way: everything that does not recur for all steps at once."""
        words, keys, state = self._start(batch)
        embedded = self.embedding(in_vocabulary(batch.target_input, self.embedding.num_embeddings))
        hidden, _ = self.decoder(embedded, state)
        start = words.new_zeros(len(batch), 1, words.shape[1])
        alpha, _ = self.attention(hidden[:, None], keys, batch.source_mask, start)
        alpha = alpha[:, 0]
        features, switch = self.pointer(hidden, alpha @ words, embedded)
        weights = document_weights(batch.target_mask, switch.dtype)
        nll = self.pointer.nll(PointerOutput(features, switch, alpha, batch.source_extended), batch.target, weights)
        return {"loss": nll}

    def textbook_loss(self, batch: Batch) -> dict[str, Tensor]:
        """Word by word."""
        words, keys, state = self._start(batch)
        coverage, losses, extra = words.new_zeros(words.shape[:2]), [], max(map(len, batch.unknown))
        for t in range(batch.target.shape[1]):
            embedded = self.embedding(in_vocabulary(batch.target_input[:, t], self.embedding.num_embeddings))
            hidden, state = self.decoder(embedded[:, None], state)
            query = hidden[:, 0]
            alpha, coverage = coverage_step(self.attention, query, keys, batch.source_mask, coverage)
            context = (alpha[:, None] @ words)[:, 0]
            features, switch = self.pointer(query, context, embedded)
            target = batch.target[:, t]
            losses.append(step_loss(self.pointer, features, switch, alpha, batch.source_extended, target, extra))
        return {"loss": mean_over_words(torch.stack(losses, 1), batch.target_mask).mean()}


class TextbookMem2Mem(Mem2Mem):
    """Mem2Mem word by word; `loss` is lib's, `textbook_loss` the usual way."""

    def textbook_loss(self, batch: Batch) -> dict[str, Tensor]:
        state = self.encode(batch)
        coverage, extra = state.coverage, max(map(len, batch.unknown))
        hidden, memory, read, losses, distances = state.hidden, state.memory, None, [], []
        for t in range(batch.target.shape[1]):
            embedded = self.embedding(in_vocabulary(batch.target_input[:, t], self.config.vocab_size))
            output, last = self.decoder(embedded[:, None], hidden[None])
            hidden = last[0]
            if read is not None:
                memory = self.write(memory, read, self.write_hidden(hidden))
            psi = self._weights(self.read_attention, hidden, self.read_attention.project(memory))
            read = (psi[:, None] @ memory)[:, 0]
            query = self.read_output(torch.cat([output[:, 0], read], -1))
            alpha, coverage = coverage_step(self.word_attention, query, state.word_keys, state.word_mask, coverage)
            beta = self._weights(self.sentence_attention, query, state.sentence_keys, state.sentence_mask)
            gamma = alpha * beta.gather(1, state.sentence_of)
            gamma = gamma / gamma.sum(-1, keepdim=True)
            features, switch = self.pointer(query, (gamma[:, None] @ state.words)[:, 0], embedded)
            losses.append(step_loss(self.pointer, features, switch, gamma, state.source, batch.target[:, t], extra))
            difference = (psi[:, None] @ state.encoder_memory - beta[:, None] @ state.sentences)[:, 0]
            distances.append(torch.linalg.vector_norm(difference, dim=-1))
        nll = mean_over_words(torch.stack(losses, 1), batch.target_mask).mean()
        distance = mean_over_words(torch.stack(distances, 1), batch.target_mask).mean()
        comp = compression_loss(state.write_attention).mean()
        return {"loss": nll + self.config.lambda_comp * comp + self.config.lambda_read * distance}

    @staticmethod
    def _weights(attention, query: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Luong's concat score for one query each: [B, H] -> [B, n]."""
        scores = attention.v(torch.tanh(attention.query(query)[:, None] + keys)).squeeze(-1)
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


class TextbookHierarchicalTransformer(HierarchicalTransformer):
    """Every paragraph and token of the padded grid computed, attention as two products, labels as distributions."""

    def textbook_loss(self, batch: Batch) -> dict[str, Tensor]:
        rows, c = batch.sentences, self.config
        shape = *batch.sentence_mask.shape, rows.mask.shape[1]  # [B, P, J]
        ids, mask = batch.source.new_zeros(shape), rows.mask.new_zeros(shape)
        source, target = (in_vocabulary(x, c.vocab_size) for x in (batch.source, batch.target))
        ids[rows.owner, rows.number] = source.flatten()[rows.place].masked_fill(~rows.mask, PAD)
        mask[rows.owner, rows.number] = rows.mask
        numbers = torch.arange(shape[1])[:, None].expand(shape[1:])
        x = self.embed(ids, self.positions(numbers, torch.arange(shape[2]).expand(shape[1:]))).flatten(0, 1)
        seen = mask.flatten(0, 1)[:, None, None]
        for layer in self.local_layers:
            x = x + layer.dropout(_attend(layer.attention, layer.attention_norm(x), None, seen))
            x = x + layer.dropout(layer.feed_forward(layer.feed_forward_norm(x)))
        x = x.unflatten(0, shape[:2])
        for layer in self.global_layers:
            normed = layer.norms[0](x)
            weights = layer.score(normed).masked_fill(~mask[..., None], -1e18).softmax(2)  # [B, P, J, heads]
            values = layer.value(normed).unflatten(-1, (layer.heads, -1))
            heads = layer.pool_norm((weights[..., None] * values).sum(2))
            context, _ = layer._between(heads.transpose(1, 2), batch.sentence_mask, None)
            x = x + layer.output(context.transpose(1, 2).flatten(2))[:, :, None]
            x = x + layer.feed_forward(layer.norms[1](x))
        words = x.new_zeros(*batch.source.shape, c.width)
        words[batch.source_mask] = self.encoder_norm(x)[mask]
        seen = batch.source_mask[:, None, None]
        y = self.embed(batch.target_input, sinusoids(torch.arange(batch.target.shape[1]), c.width))
        causal = torch.ones(2 * batch.target.shape[1:], dtype=torch.bool).tril()[None, None]
        for layer in self.decoder_layers:
            one, two, three = layer.norms
            y = y + _attend(layer.self_attention, one(y), None, causal)
            y = y + _attend(layer.source_attention, two(y), words, seen)
            y = y + layer.feed_forward(three(y))
        log_p = self.scores(self.decoder_norm(y)).log_softmax(-1).flatten(0, 1)
        labels = torch.full_like(log_p, c.smoothing / (c.vocab_size - 2))
        labels.scatter_(1, target.flatten()[:, None], 1 - c.smoothing)
        labels[:, PAD] = 0
        loss = -(labels * log_p).sum(1).view(batch.target.shape)
        return {"loss": mean_over_words(loss, batch.target_mask).mean()}


def _attend(attention, x: Tensor, source: Tensor | None, mask: Tensor) -> Tensor:
    keys, values = attention.keys_and_values(x if source is None else source)
    q = attention.split(attention.query(x))
    weights = (q @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~mask, -1e18).softmax(-1)
    return attention.output((weights @ values).transpose(1, 2).flatten(2))
