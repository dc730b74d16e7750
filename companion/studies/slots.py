"""What is left in the slots of a memory while a summary is written, and where its heads look.

    python -m companion.studies.slots trained/mem2mem --dataset pmc-sample

The command asks how much of the memory that Mem2Mem's encoder hands over is left while the references are read, and
on which sentences its heads are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.data.batch import Batch, in_vocabulary
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.decoding.run import Run
from lib.evaluation.interventions import batch_alone
from lib.intervene import mean_row, read, rows_parser, write_rows
from lib.models.mem2mem import Mem2Mem
from lib.system.command_line import plain_errors
from lib.system.errors import InputError

WORDS = (5, 50)  # of a reference, after which what is left of the memory is measured


def main(arguments: Sequence[str] | None = None) -> None:
    args = rows_parser("companion.studies.slots", __doc__).parse_args(arguments)
    with plain_errors():
        run, documents = read(args)
        write_rows(args, "| memory | | |", memory(run, documents), len(documents))


def memory(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """A row each of what is left of the memory after WORDS of the reference, of a head's weight on its strongest
    sentence (means over documents and slots, with intervals, and the values of all documents), and of how often that
    sentence stands at the head's usual place. Documents with shorter references are left out."""
    model = run.model
    if not isinstance(model, Mem2Mem) or not model.extracts:
        raise InputError(f"{run.folder}: only Mem2Mem has a memory that its encoder hands over")
    pairs = [
        (document, text) for document, text in zip(documents, run.encode(documents)) if len(text.target) > WORDS[-1]
    ]
    if not pairs:
        raise InputError(f"no document has a reference of {WORDS[-1]} words")
    alone = [batch_alone(model, text) for _, text in pairs]
    left = np.stack([slots_after(model, batch, WORDS)["left"] for batch in alone])  # [documents, WORDS]
    weights = [strongest_weights(model, batch).mean().item() for batch in alone]
    for words, values in zip(WORDS, left.T):
        yield mean_row(f"left after {words} words", "share of what was handed over", values)
    yield mean_row("strongest sentence", "weight of a head on it", np.array(weights))
    places = usual_places(run.model, run.encoder, [document for document, _ in pairs])["papers"].to_numpy()
    yield {
        "change": "usual place", "what": "documents in which a head's strongest sentence is there, mean over heads",
        "mean": float(places.mean()), "text": f"{places.mean():.2f}", "values": places.round(5).tolist(),
    }  # fmt: skip


@torch.no_grad()
def slots_after(model: Mem2Mem, batch: Batch, counts: Sequence[int]) -> dict[str, np.ndarray]:
    """The slots after so many words of the references, means over documents: "left", the share of what was handed
    over that is still there (the product of the write gates), and "cosine" of two different slots; [counts] each.

    Every reference must have more words than the largest count.
    """
    left, cosine = {}, {}
    for t, (memory, share) in enumerate(_written(model, batch, max(counts))):
        if t in counts:
            left[t], cosine[t] = share.mean().item(), _similarity(memory)
    return {"left": np.array([left[n] for n in counts]), "cosine": np.array([cosine[n] for n in counts])}


@torch.no_grad()
def slots_left(model: Mem2Mem, batch: Batch, count: int) -> Tensor:
    """The share of each slot that is still there before each of the first words of the references, which the product
    of its write gates gives: [B, count, r], 1 before the first word."""
    return torch.stack([left.mean(-1) for _, left in _written(model, batch, count - 1)], 1)


@torch.no_grad()
def strongest_weights(model: Mem2Mem, batch: Batch) -> Tensor:
    """The weight of each head on its strongest sentence (equation 4): [B, r]."""
    state = model.encode(batch)
    attention, _ = model.compress(state.sentences, state.sentence_mask)
    return attention.amax(-1)


def usual_places(model: Any, encoder: TextEncoder, documents: Sequence[Document]) -> pd.DataFrame:
    """Where the sentence of each memory head stands in its section most often, in how many of the documents it stands
    there, and in how many if no sentence is cut off. Nothing for a model without such heads."""
    if not isinstance(model, Mem2Mem) or not model.extracts:
        return pd.DataFrame()
    readings = encoder, replace(encoder, options=replace(encoder.options, whole_sentences=True))
    as_read, whole = (np.stack([_strongest(model, document, reads) for document in documents]) for reads in readings)
    rows = {f"slot {k + 1}": _usual_place(as_read[:, :, k], whole[:, :, k]) for k in range(as_read.shape[2])}
    return pd.DataFrame.from_dict(rows, orient="index")


@torch.no_grad()
def _strongest(model: Mem2Mem, document: Document, encoder: TextEncoder) -> np.ndarray:
    """Of the sentence on which each head is strongest: its section, its place from the section's beginning, and from
    its end, all from 1: [3, r]."""
    ends = np.cumsum([len(section) for section in encoder.options.kept_sections(document)])
    (read,) = encoder.encode([document])
    attention = model.encode(batch_alone(model, read)).write_attention
    assert attention is not None
    best = attention[0].argmax(1).cpu().numpy()
    section = np.searchsorted(ends, best, side="right")
    starts = np.concatenate([[0], ends])[section]
    return np.stack([section + 1, best - starts + 1, ends[section] - best])


def _usual_place(as_read: np.ndarray, whole: np.ndarray) -> dict[str, str | float]:
    """One head, of [papers, 3] each."""
    counts = [pd.Series(as_read[:, way]).value_counts() for way in (1, 2)]
    way = 1 if counts[0].iloc[0] >= counts[1].iloc[0] else 2
    place = int(counts[way - 1].index[0])
    sections = pd.Series(as_read[:, 0]).value_counts(normalize=True).sort_index()
    return {
        "sentence of its section": f"{place} from the {('beginning', 'end')[way - 1]}",
        "of section": ", ".join(f"{number} ({share:.0%})" for number, share in sections.items()),
        "papers": counts[way - 1].iloc[0] / len(as_read),
        "nothing cut off": float((whole[:, way] == place).mean()),
    }


def _written(model: Mem2Mem, batch: Batch, last: int) -> Iterator[tuple[Tensor, Tensor]]:
    """M_D [B, r, d] and the product of its gates [B, r, d] after 0, 1, ... `last` words."""
    tokens, state = in_vocabulary(batch.target_input, model.config.vocab_size), model.encode(batch)
    hidden, _ = model.decoder(model.embedding(tokens), state.hidden[None])
    memory, queries = state.memory, model.read_attention.project_queries(hidden)
    left = torch.ones_like(memory)
    yield memory, left
    for t in range(last):
        if model.config.write:
            _, read = model.read(queries[:, t : t + 1], memory)
            z, u = model.gate_and_update(memory, read[:, 0], model.write_hidden(hidden[:, t + 1]))
            memory, left = z * memory + (1 - z) * u, z * left
        yield memory, left


def _similarity(memory: Tensor) -> float:
    """The mean cosine of two different slots of M [B, r, d]."""
    unit = torch.nn.functional.normalize(memory, dim=-1)
    others = ~torch.eye(memory.shape[1], dtype=torch.bool, device=memory.device)
    return (unit @ unit.transpose(1, 2))[:, others].mean().item()


if __name__ == "__main__":
    main()
