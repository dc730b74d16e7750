"""Mem2Mem (Park, Pilault and Pal 2020): encoder memory, compressed, handed to the decoder, read and written there."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.layers.attention import Attention, full_precision, masked_softmax
from lib.layers.memory import memory_scan
from lib.models.decoder_state import HYPOTHESIS, PerHypothesis
from lib.models.hred import HRED, HREDConfig, HREDState
from lib.models.summarizer import HierarchicalOutput, mean_over_words
from lib.system.errors import InputError
from lib.system.fields import Count, Weight, checked


@checked
class Mem2MemConfig(HREDConfig):
    """HRED's sizes and the memory's (appendix A.2)."""

    slots: Count = 10  # r, heads of the compression and slots of the memory
    compression: int = 128  # d_a
    start: Literal["encoder", "zeros"] = "encoder"  # of the decoder memory: the encoder's (transfer, M_D = M_E), or 0
    write: bool = True  # equations 8 to 10
    gate_bias: float | None = None  # start of a bias of the write gate (3: it keeps); None: the paper's, no bias
    lambda_comp: Weight = 1e-4
    lambda_read: Weight = 1e-2

    def __post_init__(self):
        if self.start == "zeros" and (self.lambda_comp or self.lambda_read):
            raise InputError(
                "a memory that starts from zeros has no encoder memory: lambda_comp, lambda_read must be 0"
            )


@dataclass(frozen=True)
class Mem2MemState(HREDState):
    memory: PerHypothesis  # [R, r, d] M_D
    read: Annotated[Tensor | None, HYPOTHESIS] = None  # [R, d] m_t, from the first read on
    write_attention: Tensor | None = None  # [B, r, L] A, where the memory starts from the encoder's
    encoder_memory: Tensor | None = None  # [B, r, d] M_E


class Mem2Mem(HRED):
    """HRED whose attention and prediction are conditioned on a memory of r slots, [r, d]."""

    Config = Mem2MemConfig

    def __init__(self, config: Mem2MemConfig):
        super().__init__(config)
        c, d = config, config.hidden
        self.extracts = c.start == "encoder"
        if self.extracts:
            self.compress_hidden = nn.Linear(d, c.compression, bias=False)  # W_a2
            self.compress_heads = nn.Linear(c.compression, c.slots, bias=False)  # W_a1
        self.read_attention = Attention(d, d, d, c.score)
        self.read_output = nn.Linear(2 * d, d, bias=False)  # W_m
        if c.write:  # gate and update share their inputs: rows 0..d-1 are W_z, rows d..2d-1 are W_u
            self.write_hidden = nn.Linear(d, 2 * d, bias=c.gate_bias is not None)  # W_z1, W_u1
            if c.gate_bias is not None:
                with torch.no_grad():
                    self.write_hidden.bias[:d].fill_(c.gate_bias)
                    self.write_hidden.bias[d:].zero_()
            self.write_read = nn.Linear(d, 2 * d, bias=False)  # W_z2, W_u2
            self.write_memory = nn.Linear(d, 2 * d, bias=False)  # W_z3, W_u3

    def encode(self, batch: Batch) -> Mem2MemState:
        """HRED's state, the write attention and encoder memory, and the first M_D."""
        state = vars(super().encode(batch))
        if not self.extracts:
            memory = state["sentences"].new_zeros(len(batch), self.config.slots, self.config.hidden)
            return Mem2MemState(**state, memory=memory)
        attention, memory = self.compress(state["sentences"], state["sentence_mask"])
        return Mem2MemState(**state, memory=memory, write_attention=attention, encoder_memory=memory)

    def compress(self, sentences: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Equations 4 and 5: A [B, r, L] and M_E [B, r, d] of sentence states [B, L, d]."""
        scores = self.compress_heads(torch.tanh(self.compress_hidden(sentences)))  # [B, L, r]
        attention = masked_softmax(scores.transpose(1, 2), mask[:, None])
        return attention, attention.to(sentences.dtype) @ sentences

    def condition(self, hidden: Tensor, state: Mem2MemState) -> tuple[Tensor, Tensor, Mem2MemState]:
        """Equations 7 to 10 over T steps: the memory is written (but not before the first read), then read.

        hidden: [R, T, H]. Returns h^(m) [R, T, H], the read weights psi [R, T, r], and the state with the memory
        [R, r, d] and the last read m_t [R, d].
        """
        queries, memory = self.read_attention.project_queries(hidden), state.memory  # [R, T, A], [R, r, d]
        if not self.config.write:
            psi, reads = self.read(queries, memory)
        else:
            from_hidden = self.write_hidden(hidden)  # [R, T, 2d]
            if state.read is not None:
                memory = self.write(memory, state.read, from_hidden[:, 0])
            # the fast scan knows the concat score only; a single step has nothing to scan
            fast = self.read_attention.score == "concat" and hidden.shape[1] > 1
            scan = self._fast_scan if fast else self._scan
            psi, reads, memory = scan(memory, queries, from_hidden)
        query = self.read_output(torch.cat([hidden, reads], -1))
        return query, psi, replace(state, memory=memory, read=reads[:, -1])

    def read(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Equation 7: weights [R, T, r] and reads [R, T, d] of one memory [R, r, d] by queries [R, T, A]."""
        psi = self.read_attention(queries, self.read_attention.project(memory))
        return psi, psi.to(memory.dtype) @ memory

    def _scan(self, memory: Tensor, queries: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Read, and between two reads write: weights, reads, and the memory after the last."""
        psi, reads = [], []
        for t in range(queries.shape[1]):
            if t:
                memory = self.write(memory, reads[-1][:, 0], from_hidden[:, t])
            for made, new in zip((psi, reads), self.read(queries[:, t : t + 1], memory)):
                made.append(new)
        return torch.cat(psi, 1), torch.cat(reads, 1), memory

    def _fast_scan(self, memory: Tensor, queries: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The `_scan` with explicit gradients, by kernels where there are any."""
        read, write = self.read_attention, (self.write_memory.weight, self.write_read.weight)
        return memory_scan(memory, queries, from_hidden, read.v.weight[0], read.key.weight, *write)

    def gate_and_update(self, memory: Tensor, read: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Equations 8 and 9: z and u, each [R, r, d], from M_D [R, r, d], m_t [R, d] and `write_hidden` of the next
        decoder state [R, 2d]."""
        shared = (from_hidden + self.write_read(read))[:, None]  # [R, 1, 2d]
        z, u = (self.write_memory(memory) + shared).chunk(2, -1)
        return z.sigmoid(), u.tanh()

    def write(self, memory: Tensor, read: Tensor, from_hidden: Tensor) -> Tensor:
        """Equation 10: the new memory [R, r, d]."""
        z, u = self.gate_and_update(memory, read, from_hidden)
        return z * memory + (1 - z) * u

    def regularisers(self, output: HierarchicalOutput, batch: Batch, state: Any) -> dict[str, tuple[float, Tensor]]:
        """`comp` (equation 6) and `read` (equation 11), weighted as in equation 12."""
        if not self.extracts:
            return {}
        read = mean_over_words(self._read_distance(output, state), batch.target_mask).mean()
        comp = compression_loss(state.write_attention).mean()
        return {"comp": (self.config.lambda_comp, comp), "read": (self.config.lambda_read, read)}

    @staticmethod
    def _read_distance(output: Any, state: Any) -> Tensor:
        """The norms in equation 11, [B, T]: how far the memory read is from the sentence context."""
        memory, sentences = full_precision(state.encoder_memory, state.sentences)
        difference = output.read @ memory - output.sentences @ sentences  # [B, T, d]
        return torch.linalg.vector_norm(difference, dim=-1)  # PyTorch takes the slope at 0 to be 0

    def seen(self, output: HierarchicalOutput, state: Any) -> dict[str, Any]:
        """Weights of HRED, "slots" [B, T, r], the slots read, and "heads" [B, r, L], the sentences that each
        holds."""
        heads = {"heads": state.write_attention} if self.extracts else {}
        return {**super().seen(output, state), "slots": output.read, **heads}

    def choose(self, batch: Batch) -> list[list[int]]:
        """The sentence that each memory head attends to most, each once, in document order (Table 3)."""
        attention = self.encode(batch).write_attention
        if attention is None:
            raise InputError("a memory that starts from zeros holds no sentences")
        return memory_sentences(attention)


def memory_sentences(write_attention: Tensor) -> list[list[int]]:
    """Sentence indices of each document, of the largest weight of each head of write attention [B, r, L]."""
    return [sorted(set(row)) for row in write_attention.argmax(-1).tolist()]


def compression_loss(attention: Tensor) -> Tensor:
    """Equation 6 of each document: the squared Frobenius norm of A A^T - I, for A [B, r, L]."""
    gram = attention @ attention.transpose(1, 2)
    return (gram - torch.eye(gram.shape[-1], device=gram.device, dtype=gram.dtype)).square().sum((1, 2))
