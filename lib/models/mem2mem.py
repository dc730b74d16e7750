"""Mem2Mem: an encoder-decoder whose memory is compressed by the encoder and read and written by the decoder.

Park, Pilault and Pal (2020), "Mem2Mem". Equation numbers are the paper's.

Shapes: B documents, R decoder rows (one per hypothesis), T target words, L sentences, r slots, d hidden size.
Symbols: H sentence states, A write weights, M_E encoder memory, M_D decoder memory, psi read weights, m vector read.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.layers.attention import Attention, full_precision, masked_softmax
from lib.layers.memory import has_memory_kernels, memory_scan
from lib.models.hred import HRED, HREDConfig
from lib.models.summarizer import DecoderState, HierarchicalOutput, mean_over_words
from lib.system.errors import InputError
from lib.system.fields import Count, Weight, checked


@checked
class Mem2MemConfig(HREDConfig):
    """Sizes of HRED and of the memory (appendix A.2)."""

    slots: Count = 10  # r
    compression: int = 128  # d_a, hidden size of the compression
    start: Literal["encoder", "zeros"] = "encoder"  # first decoder memory: M_E (the paper's transfer) or zeros
    write: bool = True  # whether the decoder writes (equations 8 to 10)
    gate_bias: float | None = None  # initial bias of the write gate; None: no bias, as in the paper
    lambda_comp: Weight = 1e-4
    lambda_read: Weight = 1e-2

    def __post_init__(self):
        if self.start == "zeros" and (self.lambda_comp or self.lambda_read):
            raise InputError("start='zeros' has no encoder memory: set lambda_comp and lambda_read to 0")


class Mem2Mem(HRED):
    """HRED with a memory: attention and prediction use the decoder state and what it reads from r slots."""

    Config = Mem2MemConfig

    def __init__(self, config: Mem2MemConfig):
        super().__init__(config)
        d = config.hidden
        self.extracts = config.start == "encoder"
        if self.extracts:
            self.compress_hidden = nn.Linear(d, config.compression, bias=False)  # W_a2
            self.compress_heads = nn.Linear(config.compression, config.slots, bias=False)  # W_a1
        self.read_attention = Attention(d, d, d, config.score)
        self.read_output = nn.Linear(2 * d, d, bias=False)  # W_m
        if config.write:
            # The gate z and the update u have the same inputs, so one matrix serves both: W_z above, W_u below.
            self.write_hidden = nn.Linear(d, 2 * d, bias=config.gate_bias is not None)  # W_z1, W_u1
            self.write_read = nn.Linear(d, 2 * d, bias=False)  # W_z2, W_u2
            self.write_memory = nn.Linear(d, 2 * d, bias=False)  # W_z3, W_u3
            if config.gate_bias is not None:
                # A positive bias makes the gate keep a slot until training finds a reason to write.
                nn.init.constant_(self.write_hidden.bias[:d], config.gate_bias)
                nn.init.zeros_(self.write_hidden.bias[d:])

    # ------------------------------------------------------------------------------------------------------ encoder

    def encode(self, batch: Batch) -> DecoderState:
        """Encode the documents and compress their sentence states into the first decoder memory."""
        state = super().encode(batch)
        if self.extracts:
            attention, memory = self.compress(state.sentences, state.sentence_mask)
            state = state.replace(write_attention=attention, encoder_memory=memory)
        else:
            memory = state.sentences.new_zeros(len(batch), self.config.slots, self.config.hidden)
        # M_D [R, r, d]; m_t [R, d], None before the first read
        return state.replace(hypotheses=state.hypotheses | {"memory", "read"}, memory=memory, read=None)

    def compress(self, sentences: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compress sentence states [B, L, d] to A [B, r, L] and M_E [B, r, d]."""
        # A = softmax(W_a1 tanh(W_a2 H^T)): each slot attends to the sentences   (5)
        scores = self.compress_heads(torch.tanh(self.compress_hidden(sentences)))  # [B, L, r]
        attention = masked_softmax(scores.transpose(1, 2), mask[:, None])
        # M_E = A H   (5)
        return attention, attention.to(sentences.dtype) @ sentences

    # ------------------------------------------------------------------------------------------------------ decoder

    def condition(self, hidden: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Read the memory at T steps, and write to it between reads.

        Takes decoder states h [R, T, d]. Returns h^(m) [R, T, d], psi [R, T, r], and the state after the last read.
        """
        queries = self.read_attention.project_queries(hidden)  # [R, T, A]
        memory = state.memory
        if not self.config.write:
            psi, reads = self.read(queries, memory)
        else:
            from_hidden = self.write_hidden(hidden)  # [R, T, 2d], a term of (8) and (9)
            if state.read is not None:
                # A previous call read m_t; the write that belongs to it needs h_{t+1}, which arrives only now.
                memory = self.write(memory, state.read, from_hidden[:, 0])
            # The kernels implement the concat score only; a single step has nothing to scan.
            use_kernel = (
                self.read_attention.score == "concat"
                and hidden.shape[1] > 1
                and has_memory_kernels(self.read_attention.v.weight)
            )
            scan = self._fast_scan if use_kernel else self._scan
            psi, reads, memory = scan(memory, queries, from_hidden)
        # h^(m)_t = W_m [h_t; m_t]   (7)
        query = self.read_output(torch.cat([hidden, reads], -1))
        return query, psi, state.replace(memory=memory, read=reads[:, -1])

    def read(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Read one memory [R, r, d] with queries [R, T, A]: psi [R, T, r] and m [R, T, d]."""
        # psi_tk = Attn(h_t, M_D(k)),  m_t = sum_k psi_tk M_D(k)   (7)
        psi = self.read_attention(queries, self.read_attention.project(memory))
        return psi, psi.to(memory.dtype) @ memory

    def write(self, memory: Tensor, read: Tensor, from_hidden: Tensor) -> Tensor:
        """Write to every slot: the next memory [R, r, d]."""
        # M_D(k) := z^k * M_D(k) + (1 - z^k) * u^k   (10)
        z, u = self.gate_and_update(memory, read, from_hidden)
        return z * memory + (1 - z) * u

    def gate_and_update(self, memory: Tensor, read: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Compute z and u, each [R, r, d], from M_D [R, r, d], m_t [R, d] and `write_hidden` of h_{t+1} [R, 2d]."""
        # z^k = sigmoid(W_z1 h_{t+1} + W_z2 m_t + W_z3 M_D(k))   (8)
        # u^k =    tanh(W_u1 h_{t+1} + W_u2 m_t + W_u3 M_D(k))   (9)
        same_for_all_slots = (from_hidden + self.write_read(read))[:, None]  # [R, 1, 2d]
        z, u = (self.write_memory(memory) + same_for_all_slots).chunk(2, -1)
        return z.sigmoid(), u.tanh()

    def _scan(self, memory: Tensor, queries: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Alternate reads and writes: psi [R, T, r], m [R, T, d], and the memory after the last write."""
        psis: list[Tensor] = []
        reads: list[Tensor] = []
        # One split, not a slice at each step: its backward pass would fill a tensor of all steps.
        for query, hidden in zip(queries.split(1, 1), from_hidden.unbind(1)):
            if reads:
                memory = self.write(memory, reads[-1][:, 0], hidden)
            psi, read = self.read(query, memory)
            psis.append(psi)
            reads.append(read)
        return torch.cat(psis, 1), torch.cat(reads, 1), memory

    def _fast_scan(self, memory: Tensor, queries: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Do what `_scan` does, with kernels and explicit gradients."""
        v, key = self.read_attention.v.weight[0], self.read_attention.key.weight
        return memory_scan(memory, queries, from_hidden, v, key, self.write_memory.weight, self.write_read.weight)

    def regularisers(self, output: HierarchicalOutput, batch: Batch, state: Any) -> dict[str, tuple[float, Tensor]]:
        """Return weight and value of L^(comp) (6) and L^(read) (11), which equation 12 adds to the loss."""
        if not self.extracts:
            return {}
        comp = compression_loss(state.write_attention).mean()
        read = mean_over_words(self._read_distance(output, state), batch.target_mask).mean()
        return {"comp": (self.config.lambda_comp, comp), "read": (self.config.lambda_read, read)}

    @staticmethod
    def _read_distance(output: Any, state: Any) -> Tensor:
        """Measure how far the memory read is from the sentence context, in each step: [B, T]."""
        # ||c^(m)_t - c^(s)_t||_2 with c^(m) = sum_k psi_tk M_E(k), c^(s) = sum_j beta_tj h_j   (11)
        memory, sentences = full_precision(state.encoder_memory, state.sentences)
        difference = output.read @ memory - output.sentences @ sentences  # [B, T, d]
        # Not (x ** 2).sum().sqrt(): its gradient is NaN where both contexts are equal; this one's is 0.
        return torch.linalg.vector_norm(difference, dim=-1)

    def seen(self, output: HierarchicalOutput, state: Any) -> dict[str, Any]:
        """Add "slots" [B, T, r], psi, and "heads" [B, r, L], the write attention, to HRED's attention weights."""
        heads = {"heads": state.write_attention} if self.extracts else {}
        return {**super().seen(output, state), "slots": output.read, **heads}

    def choose(self, batch: Batch) -> list[list[int]]:
        """Extract the sentences that the slots attend to most (Table 3)."""
        if not self.extracts:
            raise InputError("a memory that starts from zeros holds no sentences")
        return memory_sentences(self.encode(batch).write_attention)


def memory_sentences(write_attention: Tensor) -> list[list[int]]:
    """Return the sentences to which write attention [B, r, L] gives a slot's largest weight, in document order."""
    return [sorted(set(row)) for row in write_attention.argmax(-1).tolist()]


def compression_loss(attention: Tensor) -> Tensor:
    """Compute L^(comp) [B] of write attention A [B, r, L]; 0 if every slot attends to a sentence of its own."""
    # ||A A^T - I||_F^2   (6)
    gram = attention @ attention.transpose(1, 2)
    return (gram - torch.eye(gram.shape[-1], device=gram.device, dtype=gram.dtype)).square().sum((1, 2))
