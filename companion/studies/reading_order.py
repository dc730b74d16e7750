"""Measure which slots of its memory Mem2Mem reads while a summary is written, and in which order
(figure 2(b) of the paper).

    python -m companion.studies.reading_order --output figures/mem2mem_reading_order.json

The paper shows that all slots are read, and that reading moves from the front of the text to its
end. The control hands over one memory for all texts, which is the mean over other texts: its slots
hold nothing of the text that is summarized.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

import lib
from companion.command import this_command
from companion.stored import effect_row
from lib.data.batch import EncodedDocument
from lib.data.corpus import load_corpus, unseen
from lib.models.changes import NOTHING, Change, batch_alone
from lib.models.mem2mem import Mem2Mem
from lib.models.memory_changes import one_memory
from lib.system.command_line import run_command
from lib.system.files import trained_folder, write_json

SHIPPED = trained_folder("mem2mem")


def study(
    run: Path = SHIPPED,
    /,
    *,
    output: Path,
    dataset: str = "pmc-sample",
    documents: int = 50,
) -> None:
    """Measure how a run reads its memories beside the words of the references.

    Args:
        run: the folder of a run of Mem2Mem; by default the shipped one.
        output: a JSON file for the numbers.
        dataset: a corpus; its test documents are read.
        documents: how many are measured; as many others give the mean memory.
    """
    opened = lib.load(run)
    found = unseen(load_corpus(dataset), "test", [opened.config["corpus"]], 2 * documents)
    encoded = opened.encode(found)
    changes = {"own": NOTHING, "one for all": one_memory(opened.model, encoded[documents:])}
    seed = opened.config["train"].get("seed", 0)
    write_json(
        output,
        {
            "command": this_command("companion.studies.reading_order"),
            "corpus": Path(dataset).name,
            "documents": documents,
            "effects": effects(opened.model, encoded[:documents], changes, seed),
        },
    )


def effects(
    model: Mem2Mem,
    documents: Sequence[EncodedDocument],
    changes: Mapping[str, Change],
    seed: int = 0,
) -> list[dict]:
    """Measure slots and order of reading with each memory."""
    rows = []
    for name, change in changes.items():
        measured = np.array([reading(model, document, change) for document in documents])
        rows += [
            effect_row(f"{name}: slots", "slots that are read", measured[:, 0], [seed]),
            effect_row(
                f"{name}: order",
                "correlation of the word written and the place read",
                measured[:, 1],
                [seed],
            ),
        ]
    return rows


@torch.no_grad()
def reading(
    model: Mem2Mem, document: EncodedDocument, change: Change = NOTHING
) -> tuple[float, float]:
    """Compute the effective number of slots that are read beside a reference, and the correlation
    of a word's number with the place in the text that is read there.

    The effective number is exp of the entropy of the mean read weights: r if all slots are read
    alike, 1 if only one is. The place of a slot is the mean place of the sentences that it was made
    of (5), from 0 at the front to 1 at the end. The place read is the mean of these by psi (7). The
    correlation is 0 where the place never changes.
    """
    batch = batch_alone(model.eval(), document)
    encoded = model.encode(batch)
    state = change.state(encoded, lambda: (batch, encoded))  # no other document follows
    output, _ = model.decode(batch.target_input, state)
    assert output.read is not None and encoded.write_attention is not None
    psi = output.read[0].double().cpu().numpy()  # [T, r]
    attention = encoded.write_attention[0].double().cpu().numpy()  # A [r, L]
    sentences = attention.shape[1]
    place = psi @ attention @ ((np.arange(sentences) + 0.5) / sentences)
    used = psi.mean(0)
    slots = np.exp(-(used * np.log(used)).sum())
    order = np.corrcoef(np.arange(len(place)), place)[0, 1] if place.std() > 0 else 0.0
    return float(slots), float(order)


main = partial(run_command, "companion.studies.reading_order", __doc__, study)

if __name__ == "__main__":
    main()
