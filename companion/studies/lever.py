"""Exchange a memory at the moment when it is handed over, and measure how much less probable the
right words become.

    python -m companion.studies.lever --output figures/mem2mem_lever.json
    python -m companion.studies.lever runs/mine --dataset my/folder --seeds --output lever.json

The lever has five positions: a text's own memory, another text's, an erased one, random vectors,
and one memory for all texts, which is the mean over other texts. It is pulled in a trained run, and
in synthetic models (`companion.tasks.memory`) in which all paths from the text to the summary are
open or the memory is the only one. The file also has cosines between memories.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

import lib
from companion.command import this_command
from companion.stored import effect_row
from companion.studies.slots import mean_cosine
from companion.tasks.memory import VOCABULARY, MemoryAlone, learn_planted, unseen_documents
from companion.tasks.synthetic import planted_sentences
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.evaluation.interventions import log_probs
from lib.models.changes import NOTHING, Change, batch_alone
from lib.models.mem2mem import Mem2Mem
from lib.models.memory_changes import MEMORY, one_memory
from lib.system.command_line import run_command
from lib.system.files import trained_folder, write_json

SHIPPED = trained_folder("mem2mem")
TOYS = {
    "toy": (Mem2Mem, "plain gate"),
    "memory only, gate that starts by keeping": (MemoryAlone, "gate +3"),
    "memory only, never overwritten": (MemoryAlone, "never written"),
}
BEGINNING = 10  # words of a summary that are measured on their own


def pull(
    run: Path = SHIPPED,
    /,
    *,
    output: Path,
    dataset: str = "pmc-sample",
    documents: int = 50,
    seeds: tuple[int, ...] = (3, 0, 1, 2, 4),
) -> None:
    """Measure the positions of the lever, and write the numbers.

    Args:
        run: the folder of a run of Mem2Mem; by default the shipped one.
        output: a JSON file for the numbers.
        dataset: a corpus; its test documents are read.
        documents: how many are measured; as many others give the mean memory.
        seeds: of the synthetic models; none without a seed.
    """
    opened, effects = lib.load(run), []
    for label, (kind, gate) in TOYS.items() if seeds else ():
        models = {seed: learn_planted(kind, "both", gate, seed) for seed in seeds}
        texts, others = unseen_documents(), planted_sentences(200, seed=2, vocab_size=VOCABULARY)
        effects += [*costs(label, models, texts, others), *cosines(label, models, texts)]
    encoded = opened.encode(
        unseen(load_corpus(dataset), "test", [opened.config["corpus"]], 2 * documents)
    )
    own = [document for document in encoded[:documents] if len(document.target) > BEGINNING]
    models = {opened.config["train"].get("seed", 0): opened.model}
    effects += [*costs("papers", models, own, encoded[documents:]), *cosines("papers", models, own)]
    command = this_command("companion.studies.lever")
    about = {"command": command, "corpus": Path(dataset).name, "documents": documents}
    write_json(output, {**about, "effects": effects})


def positions(model: Mem2Mem, others: Sequence[EncodedDocument]) -> dict[str, Change]:
    """Return the positions of the lever as changes; `others` give the mean memory."""
    names = {
        "another text's": "another memory",
        "erased": "memory erased",
        "random": "random memory",
    }
    changes = {position: MEMORY[name] for position, name in names.items()}
    return {"own": NOTHING, **changes, "one for all": one_memory(model, others)}


def costs(
    label: str,
    models: Mapping[int, Mem2Mem],
    documents: Sequence[EncodedDocument],
    others: Sequence[EncodedDocument],
) -> Iterator[dict]:
    """Measure the nats a word that references lose in each position, over all words, the first ones
    and the later ones; for "own" the loss itself. models: by seed."""
    found = [
        {
            name: by_place(model, documents, change)
            for name, change in positions(model, others).items()
        }
        for model in models.values()
    ]
    for name in found[0]:
        for place, words in enumerate(("", f", first {BEGINNING} words", ", later words")):
            lost = [(0 if name == "own" else of["own"][place]) - of[name][place] for of in found]
            what = "loss in nats a word" if name == "own" else "nats a word lost with this memory"
            yield effect_row(f"{label}: {name}{words}", what, lost, [*models])


def by_place(model: Mem2Mem, documents: Sequence[EncodedDocument], change: Change) -> np.ndarray:
    """Compute the log-probability of all words, of the first ones and of the later ones:
    [3, documents]."""
    begun = [replace(document, target=document.target[:BEGINNING]) for document in documents]
    whole, first = (log_probs(model, texts, change) for texts in (documents, begun))
    lengths = np.array([len(document.target) for document in documents])
    return np.stack([whole, first, (whole * lengths - first * BEGINNING) / (lengths - BEGINNING)])


@torch.no_grad()
def cosines(
    label: str, models: Mapping[int, Mem2Mem], documents: Sequence[EncodedDocument]
) -> Iterator[dict]:
    """Measure cosines of a slot and the same slot for the next document, of two slots, and of two
    sentence states."""
    states = [
        [model.encode(batch_alone(model, document)) for document in documents]
        for model in models.values()
    ]
    memories = [torch.cat([state.memory for state in row]) for row in states]
    across = [
        F.cosine_similarity(memory, memory.roll(-1, 0), dim=-1).mean(1).numpy()
        for memory in memories
    ]
    for name, values in (
        ("a slot and the same slot for the next text", across),
        ("two slots of a text", [[mean_cosine(state.memory) for state in row] for row in states]),
        (
            "two sentences of a text",
            [[mean_cosine(state.sentences) for state in row] for row in states],
        ),
    ):
        yield effect_row(f"{label}: {name}", "cosine", values, [*models])


main = partial(run_command, "companion.studies.lever", __doc__, pull)

if __name__ == "__main__":
    main()
