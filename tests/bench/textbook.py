"""The usual way, as the benchmark's reference: a loop over decoding steps, each with its own attention over the
source and its own distribution over vocabulary and source. The same weights as lib's modules, the same loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batching import Batch, in_vocabulary
from lib.layers.attention import CoverageAttention
from lib.layers.pointer import PointerGenerator
from lib.models.hred import document_weights, per_document
from lib.models.mem2mem import Mem2Mem, compression_loss


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
        nll = self.pointer.nll(features, switch, alpha, batch.source_extended, batch.target, weights)
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
        return {"loss": per_document(torch.stack(losses, 1), batch.target_mask).mean()}


class TextbookMem2Mem(Mem2Mem):
    """Mem2Mem word by word; `loss` is lib's, `textbook_loss` the usual way."""

    def textbook_loss(self, batch: Batch) -> dict[str, Tensor]:
        state = self.encode(batch)
        doc, coverage, extra = state.document, state.decoder["coverage"], max(map(len, batch.unknown))
        hidden, memory, read, losses, distances = state.decoder["hidden"], state.decoder["memory"], None, [], []
        for t in range(batch.target.shape[1]):
            embedded = self.embedding(in_vocabulary(batch.target_input[:, t], self.config.vocab_size))
            output, last = self.decoder(embedded[:, None], hidden[None])
            hidden = last[0]
            if read is not None:
                memory = self.write(memory, read, self.write_hidden(hidden))
            psi = self._weights(self.read_attention, hidden, self.read_attention.project(memory))
            read = (psi[:, None] @ memory)[:, 0]
            query = self.read_output(torch.cat([output[:, 0], read], -1))
            alpha, coverage = coverage_step(self.word_attention, query, doc["word_keys"], doc["word_mask"], coverage)
            beta = self._weights(self.sentence_attention, query, doc["sentence_keys"], doc["sentence_mask"])
            gamma = alpha * beta.gather(1, doc["sentence_of"])
            gamma = gamma / gamma.sum(-1, keepdim=True)
            features, switch = self.pointer(query, (gamma[:, None] @ doc["words"])[:, 0], embedded)
            losses.append(step_loss(self.pointer, features, switch, gamma, doc["source"], batch.target[:, t], extra))
            difference = (psi[:, None] @ doc["encoder_memory"] - beta[:, None] @ doc["sentences"])[:, 0]
            distances.append(torch.linalg.vector_norm(difference, dim=-1))
        nll = per_document(torch.stack(losses, 1), batch.target_mask).mean()
        distance = per_document(torch.stack(distances, 1), batch.target_mask).mean()
        comp = compression_loss(doc["write_attention"]).mean()
        return {"loss": nll + self.config.lambda_comp * comp + self.config.lambda_read * distance}

    @staticmethod
    def _weights(attention, query: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Luong's concat score for one query each: [B, H] -> [B, n]."""
        scores = attention.v(torch.tanh(attention.query(query)[:, None] + keys)).squeeze(-1)
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)
