"""Measure the importance of words (5) in Read-Again's encoder, and whether its attention shows what
it copies.

    python -m companion.studies.importance runs/gru--0 --seeds runs/gru--1 runs/gru--2 \\
        --dataset data/reuters
    python -m companion.studies.importance trained/read_again --dataset docstrings

Importance is a gate for each dimension of each word: the histogram counts its values. The place of
a word is set apart from its kind: the first word of a text is compared with the same word at other
places, and kinds of words are compared after the mean of all words at the same place was
subtracted. Then the importance is changed, as in `lib.intervene`. A model whose second read has no
importance has only the second part.

Attention and copying: at each word of the references, the weights of the places of the text by
which the decoder attends (13) and by which it copies (16), compared; then each of the two is made
equal for all places.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import lib
from companion.studies.hidden_words import as_read
from lib.data.batch import EncodedDocument
from lib.data.vocabulary import SPECIALS, UNK
from lib.decoding.run import Run
from lib.evaluation.interventions import changes_of, log_probs, mean_row
from lib.intervene import DocumentOptions, read, write_rows
from lib.models.changes import Change, batch_alone, hooks
from lib.models.read_again import LOWEST, ReadAgain
from lib.system.command_line import Grouped, run_command

BINS = np.linspace(0, 1, 11)
# the most frequent words of the encoder's vocabulary: articles, prepositions, full stop and comma
FREQUENT = 50
WHAT = {
    "below 0.1": "values of importance, percent",
    "above 0.9": "values of importance, percent",
    "first word, same word": (
        "mean importance of the first word minus that of the same word at other places"
    ),
    "rarer words": (
        f"known words outside the {FREQUENT} most frequent, minus those, at the same places"
    ),
    "unknown words": (
        f"words that the encoder does not know, minus the {FREQUENT} most frequent, at the same "
        "places"
    ),
    "importance averaged": (
        "nats a word that the references lose when all words of a text have its mean importance"
    ),
    "text not told": (
        "nats a word that they lose when the second read gets zeros for the text's vector"
    ),
    "attention equal": (
        "nats a word that they lose when the decoder attends to all words of the text equally"
    ),
    "copying equal": (
        "nats a word that they lose when all places of the text share equally in what is copied"
    ),
    "largest word differs": (
        "steps at which attention and copying prefer different words of the text, percent"
    ),
}


def _mean_state(state: Any, _: Any) -> Any:
    words = state.mask[..., None]
    mean = (state.words * words).sum(1, keepdim=True) / words.sum(1, keepdim=True)
    return state.replace(words=mean.expand_as(state.words))


def _mean_score(scores: Tensor) -> Tensor:
    """Give all places of a text the same score; together they have the exponentials that they
    had."""
    words = scores > LOWEST
    return (scores.logsumexp(-1, keepdim=True) - words.sum(-1, keepdim=True).log()).where(
        words, scores
    )


EQUAL = {  # weights of the words of a text that no longer differ
    "attention equal": Change(WHAT["attention equal"], state=_mean_state),
    "copying equal": Change(WHAT["copying equal"], model=hooks(_mean_score, "copy_scores")),
}


def study(
    run: Path, /, *, documents: Grouped[DocumentOptions], seeds: tuple[Path, ...] = ()
) -> None:
    """Print a table of what importance does.

    Args:
        run: the folder of a run of Read-Again.
        seeds: folders of runs that differ in their seed only.
    """
    opened, texts = read(run, documents)
    runs = [opened, *(lib.load(folder, device=documents.device) for folder in seeds)]
    rows = effects(runs, opened.encode(texts))
    write_rows(run, documents, "| what | | mean over documents |", rows, len(texts))


def effects(runs: Sequence[Run], documents: Sequence[EncodedDocument]) -> Iterator[dict]:
    """Yield a row of each of WHAT that the model has the parts for: the mean over documents and
    seeds, its interval, and the values of all documents, means over seeds. The first row has the
    histogram of importance, too."""
    found = [_of_run(run.model, documents) for run in runs]
    seeds = [run.config["train"]["seed"] for run in runs]
    for name in filter(WHAT.get, found[0]):
        values = np.array([of_run[name] for of_run in found])
        if not (values := values[:, ~np.isnan(values).any(0)]).size:
            continue
        more = {"values": values.mean(0).round(5).tolist(), "seeds": seeds}
        if name == "below 0.1":
            more["histogram"] = np.mean([of_run["histogram"] for of_run in found], (0, 1)).tolist()
        yield mean_row(name, WHAT[name], values) | more


def _of_run(model: ReadAgain, documents: Sequence[EncodedDocument]) -> dict[str, np.ndarray]:
    found = {}
    if model.config.encoder == "read-again gru":
        alphas = [importance(model, document) for document in documents]
        found["histogram"] = np.array(
            [np.histogram(alpha, BINS)[0] / alpha.size for alpha in alphas]
        )
        found |= {
            "below 0.1": 100 * found["histogram"][:, 0],
            "above 0.9": 100 * found["histogram"][:, -1],
        }
        found |= place_and_kind(alphas, documents)
    changes, own = changes_of(model) | EQUAL, log_probs(model, documents)
    for name in filter(changes.get, WHAT):
        found[name] = own - log_probs(model, documents, changes[name])
    found["largest word differs"] = np.array(
        [words_that_differ(model, document) for document in documents]
    )
    return found


@torch.no_grad()
def importance(model: ReadAgain, document: EncodedDocument) -> np.ndarray:
    """Compute alpha (5) of each word and dimension: [N, d]."""
    model.eval()
    alpha = model.encode(batch_alone(model, document)).importance
    assert alpha is not None, "a GRU that reads again"
    return alpha[0].numpy()


def place_and_kind(
    alphas: Sequence[np.ndarray], documents: Sequence[EncodedDocument]
) -> dict[str, np.ndarray]:
    """Compute for each document, as differences of mean importance, the place of a word and its
    kind apart.

    NaN where a document has no such word, or its first word occurs at no other place of any
    document.
    """
    words = pd.DataFrame(
        {
            "document": np.repeat(np.arange(len(documents)), [len(alpha) for alpha in alphas]),
            "place": np.concatenate([np.arange(len(alpha)) for alpha in alphas]),
            "word": np.concatenate([as_read(document) for document in documents]),
            "mean": np.concatenate([alpha.mean(1) for alpha in alphas]),
        }
    )
    first, later = words[words.place == 0].set_index("document"), words[words.place > 0]
    elsewhere = later.groupby("word")["mean"].mean()
    kinds = np.select(
        [later.word == UNK, later.word < len(SPECIALS) + FREQUENT], ["unknown", "frequent"], "other"
    )
    later = later.assign(
        kind=kinds, above=later["mean"] - later.groupby("place")["mean"].transform("mean")
    )
    of_kind = later.pivot_table("above", "document", "kind", "mean")
    of_kind = of_kind.reindex(index=first.index, columns=["unknown", "frequent", "other"])
    return {
        "first word, same word": (first["mean"] - first.word.map(elsewhere)).to_numpy(),
        "rarer words": (of_kind["other"] - of_kind["frequent"]).to_numpy(),
        "unknown words": (of_kind["unknown"] - of_kind["frequent"]).to_numpy(),
    }


@torch.no_grad()
def words_that_differ(model: ReadAgain, document: EncodedDocument) -> float:
    """Compute at how many of 100 words of the reference attention and copying prefer different
    words of the text."""
    model.eval()
    batch = batch_alone(model, document)
    output, _ = model.decode(batch.target_input, model.encode(batch))
    attended, copied = output.attention[0].numpy(), output.copy[0].numpy()
    return 100 * float(
        (document.source[attended.argmax(1)] != document.source[copied.argmax(1)]).mean()
    )


main = partial(run_command, "companion.studies.importance", __doc__, study)

if __name__ == "__main__":
    main()
