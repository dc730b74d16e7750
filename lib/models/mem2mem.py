"""Mem2Mem: an encoder compresses its states to a memory, which the decoder reads and writes.

Park, Pilault and Pal (2020), "Mem2Mem". Equation numbers are the paper's.

Shapes: B documents, R decoder rows (one per hypothesis), T target words, L sentences, r slots,
d hidden size, A attention width.
Symbols: H sentence states, A write weights, M_E encoder memory, M_D decoder memory,
psi read weights, m vector read.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.layers.attention import Attention, additive_scores, full_precision, masked_softmax
from lib.layers.fast import fast_form
from lib.layers.memory import has_memory_kernels, memory_scan
from lib.layers.scan import scan
from lib.models.changes import Change
from lib.models.hred import HRED, HREDConfig, HREDState
from lib.models.memory_changes import MEMORY, WRITING
from lib.models.state import PerDocument, PerHypothesis
from lib.models.summarizer import HierarchicalOutput, mean_over_words
from lib.system.errors import InputError
from lib.system.settings import Count, Weight, checked


@checked
class Mem2MemConfig(HREDConfig):
    """Sizes of HRED and of the memory (appendix A.2)."""

    slots: Count = 10  # r
    compression: int = 128  # d_a, hidden size of the compression
    # First decoder memory: M_E (the paper's transfer) or zeros.
    start: Literal["encoder", "zeros"] = "encoder"
    write: bool = True  # whether the decoder writes (equations 8 to 10)
    gate_bias: float | None = None  # initial bias of the write gate; None: no bias, as in the paper
    lambda_comp: Weight = 1e-4
    lambda_read: Weight = 1e-2

    def __post_init__(self):
        if self.start == "zeros" and (self.lambda_comp or self.lambda_read):
            problem = "start='zeros' has no encoder memory"
            raise InputError(f"{problem}: set lambda_comp and lambda_read to 0")


# M_D [R, r, d]; m_t [R, d], None before the first read.
MemoryAndRead = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, kw_only=True)
class Mem2MemState(HREDState):
    """HRED's state, the memories, and the last read."""

    write_attention: PerDocument[Tensor | None]  # A [B, r, L]; None: the memory starts from zeros
    encoder_memory: PerDocument[Tensor | None]  # M_E [B, r, d]
    memory: PerHypothesis[Tensor]  # M_D [R, r, d]
    read: PerHypothesis[Tensor | None]  # m_t [R, d], None before the first read


class Mem2Mem(HRED):
    """HRED with a memory: attention and prediction also use what the decoder reads from r slots."""

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
            # The gate z and the update u have the same inputs, so one matrix serves both.
            # Its upper half is W_z, its lower half W_u.
            self.write_hidden = nn.Linear(d, 2 * d, bias=config.gate_bias is not None)  # W_z1, W_u1
            self.write_read = nn.Linear(d, 2 * d, bias=False)  # W_z2, W_u2
            self.write_memory = nn.Linear(d, 2 * d, bias=False)  # W_z3, W_u3
            if config.gate_bias is not None:
                # A positive bias makes the gate keep a slot until training finds a reason to write.
                nn.init.constant_(self.write_hidden.bias[:d], config.gate_bias)
                nn.init.zeros_(self.write_hidden.bias[d:])

    # -------------------------------------------------------------------------------------- encoder

    def encode(self, batch: Batch) -> Mem2MemState:
        """Encode the documents and compress their sentence states into the first decoder memory."""
        state = super().encode(batch)
        attention = encoder_memory = None
        if self.extracts:
            attention, encoder_memory = self.compress(state.sentences, state.sentence_mask)
            memory = encoder_memory
        else:
            memory = state.sentences.new_zeros(len(batch), self.config.slots, self.config.hidden)
        return Mem2MemState(
            **vars(state),
            write_attention=attention,
            encoder_memory=encoder_memory,
            memory=memory,
            read=None,
        )

    def compress(self, sentences: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compress sentence states [B, L, d] to A [B, r, L] and M_E [B, r, d]."""
        # A = softmax(W_a1 tanh(W_a2 H^T)): each slot attends to the sentences   (5)
        scores = self.compress_heads(torch.tanh(self.compress_hidden(sentences)))  # [B, L, r]
        attention = masked_softmax(scores.transpose(1, 2), mask[:, None])
        # M_E = A H   (5)
        return attention, attention.to(sentences.dtype) @ sentences

    # -------------------------------------------------------------------------------------- decoder

    def condition(self, hidden: Tensor, state: Mem2MemState) -> tuple[Tensor, Tensor, Mem2MemState]:
        """Read the memory at T steps, and write to it between reads.

        Takes decoder states h [R, T, d]. Returns h^(m) [R, T, d], psi [R, T, r], and the state
        after the last read.
        """
        queries = self.read_attention.project_queries(hidden)  # [R, T, A]
        if self.config.write:
            from_hidden = self.write_hidden(hidden)  # [R, T, 2d], a term of (8) and (9)
            before = (state.memory, state.read)
            (psi, reads), (memory, read) = scan(self.write_and_read, before, [queries, from_hidden])
        else:
            psi, reads = self.read(queries, state.memory)
            memory, read = state.memory, reads[:, -1]
        # h^(m)_t = W_m [h_t; m_t]   (7)
        query = self.read_output(torch.cat([hidden, reads], -1))
        return query, psi, state.replace(memory=memory, read=read)

    # A subclass may change any of the next four methods.
    # Training then computes its equations, without kernels.

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

    def gate_and_update(
        self, memory: Tensor, read: Tensor, from_hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute z and u, each [R, r, d].

        Args:
            memory: M_D [R, r, d].
            read: m_t [R, d].
            from_hidden: `write_hidden` of h_{t+1} [R, 2d].
        """
        # z^k = sigmoid(W_z1 h_{t+1} + W_z2 m_t + W_z3 M_D(k))   (8)
        # u^k =    tanh(W_u1 h_{t+1} + W_u2 m_t + W_u3 M_D(k))   (9)
        same_for_all_slots = (from_hidden + self.write_read(read))[:, None]  # [R, 1, 2d]
        z, u = (self.write_memory(memory) + same_for_all_slots).chunk(2, -1)
        return z.sigmoid(), u.tanh()

    def write_and_read(
        self, state: MemoryAndRead, query: Tensor, from_hidden: Tensor
    ) -> tuple[tuple[Tensor, Tensor], MemoryAndRead]:
        """Compute one step: the write that belongs to the previous read, then a read.

        Args:
            state: M_D [R, r, d], and m [R, d] of the previous read or None.
            query: [R, A].
            from_hidden: `write_hidden` of this step's decoder state [R, 2d].

        Returns:
            psi [R, r] and m [R, d] of this step, and the next state.
        """
        memory, read = state
        if read is not None:
            # The write after a read needs h_{t+1}, which exists only now.
            memory = self.write(memory, read, from_hidden)
        psi, reads = self.read(query[:, None], memory)  # of one step: [R, 1, r], [R, 1, d]
        return (psi[:, 0], reads[:, 0]), (memory, reads[:, 0])

    def _has_kernel(self, state: MemoryAndRead, queries: Tensor, from_hidden: Tensor) -> bool:
        several_steps = queries.shape[1] > 1  # in decoding there is nothing to scan
        concat = getattr(self.read_attention, "score", None) == "concat"
        return several_steps and concat and has_memory_kernels(next(self.parameters()))

    @fast_form(
        write_and_read,
        computes=[read, write, gate_and_update, additive_scores],
        parts={"read_attention": Attention, "write_memory": nn.Linear, "write_read": nn.Linear},
        where=_has_kernel,
    )
    def _write_and_read_fast(
        self, state: MemoryAndRead, queries: Tensor, from_hidden: Tensor
    ) -> tuple[tuple[Tensor, Tensor], MemoryAndRead]:
        """Do what `scan` does with `write_and_read`, by kernels with explicit gradients."""
        attention = self.read_attention
        memory, read = state
        if read is not None:  # the kernels begin with a read
            memory = self.write(memory, read, from_hidden[:, 0])
        psi, reads, memory = memory_scan(
            memory=memory,
            queries=queries,
            from_hidden=from_hidden,
            v=attention.v.weight[0],
            key=attention.key.weight,
            write=self.write_memory.weight,
            from_read=self.write_read.weight,
        )
        return (psi, reads), (memory, reads[:, -1])

    # --------------------------------------------------------------------------------------- losses

    def regularisers(
        self, output: HierarchicalOutput, batch: Batch, state: Any
    ) -> dict[str, tuple[float, Tensor]]:
        """Return weight and value of L^(comp) (6) and L^(read) (11), terms of the loss (12)."""
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
        # Not (x ** 2).sum().sqrt(): its gradient is NaN where both contexts are equal.
        # The gradient of this norm is 0 there.
        return torch.linalg.vector_norm(difference, dim=-1)

    def seen(self, output: HierarchicalOutput, state: Any) -> dict[str, Any]:
        """Add "slots" [B, T, r], psi, and "heads" [B, r, L], A, to HRED's attention weights."""
        heads = {"heads": state.write_attention} if self.extracts else {}
        return {**super().seen(output, state), "slots": output.read, **heads}

    def changes(self) -> dict[str, Change]:
        """Return changes of the memory that is handed over, of writing, and those of HRED."""
        memory = MEMORY if self.extracts else {}
        writing = WRITING if self.config.write else {}
        return {**memory, **writing, **super().changes()}

    def choose(self, batch: Batch) -> list[list[int]]:
        """Extract the sentences that the slots attend to most (Table 3)."""
        attention = self.encode(batch).write_attention
        if attention is None:
            raise InputError("a memory that starts from zeros holds no sentences")
        return memory_sentences(attention)


def memory_sentences(write_attention: Tensor) -> list[list[int]]:
    """Return the sentences that have a slot's largest weight in A [B, r, L], in document order."""
    return [sorted(set(row)) for row in write_attention.argmax(-1).tolist()]


def compression_loss(attention: Tensor) -> Tensor:
    """Compute L^(comp) [B] of A [B, r, L]; 0 if every slot attends to a sentence of its own."""
    # ||A A^T - I||_F^2   (6)
    gram = attention @ attention.transpose(1, 2)
    identity = torch.eye(gram.shape[-1], device=gram.device, dtype=gram.dtype)
    return (gram - identity).square().sum((1, 2))
