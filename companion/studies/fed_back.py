"""What the embedding from context (15) of Read-Again is worth, where it can act: at the words after a
copied unknown word.

    python -m companion.studies.fed_back trained/read_again --dataset data/reuters --output fed_back.json

The decoder reads that embedding only in the step after it has copied a word that its vocabulary
lacks. With [UNK] in its place, the words right after such a step, the later words of the same
references, and all words of all references lose so many nats.
"""

from functools import partial
from pathlib import Path

import numpy as np
import torch

import lib
from companion.command import run_command, this_command
from companion.stored import effect_row
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.models.changes import Change, batch_alone
from lib.models.read_again import ReadAgain
from lib.system.errors import InputError
from lib.system.files import write_json

WORDS = "the word after a copied unknown word", "later words", "all words"


def fed_back(run: Path, /, *, dataset: str, output: Path, documents: int = 2_000) -> None:
    """Measure the loss of the references with [UNK] fed back.

    Args:
        run: the folder of a run of Read-Again that copies.
        dataset: a corpus, of whose test documents the first are read.
        output: a JSON file.
        documents: at most.
    """
    opened = lib.load(run)
    model = opened.model
    if not (isinstance(model, ReadAgain) and model.config.copy):
        raise InputError(f"{run}: only Read-Again with copying has embeddings from context")
    change = model.changes()["[UNK] fed back"]
    texts = unseen(load_corpus(dataset), "test", [opened.config["corpus"]], documents)
    losses = [losses_of(model, document, change) for document in opened.encode(texts)]
    effects = []
    for place, name in enumerate(WORDS):
        values = np.array([of_document[place] for of_document in losses])
        effects.append(effect_row(name, "nats a word", values[~np.isnan(values)]))
    about = {
        "command": this_command("companion.studies.fed_back"),
        "run": str(run),
        "corpus": Path(dataset).name,
    }
    write_json(output, {**about, "effects": effects})
    for row in effects:
        print(f"{row['name']}: {row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}] nats")


@torch.no_grad()
def losses_of(
    model: ReadAgain, document: EncodedDocument, change: Change
) -> tuple[float, float, float]:
    """Compute the means over the WORDS of a reference of what they lose; NaN where there are
    none."""
    batch = batch_alone(model.eval(), document)

    def log_p() -> np.ndarray:
        state = model.encode(batch)
        output, _ = model.decode(batch.target_input, state)
        return model.log_prob(output, batch.target, state)[0].double().cpu().numpy()

    own = log_p()
    with change.model(model):
        lost = own - log_p()
    read = batch.target_input[0].cpu().numpy()
    after = (read >= model.config.vocab_size) & np.isin(read, document.source)
    later = ~after & (np.cumsum(after) > 0)
    return _mean(lost[after]), _mean(lost[later]), _mean(lost)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan


main = partial(run_command, "companion.studies.fed_back", __doc__, fed_back)

if __name__ == "__main__":
    main()
