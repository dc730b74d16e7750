"""Change a part of a trained run, train on without it, and see what of the loss remains.

    python -m companion.studies.retrain trained/mem2mem "no coverage" --dataset pmc-sample --output lost.json
    python -m companion.studies.retrain trained/hierarchical_transformer_copying graph=discourse --dataset pmc-sample

`lib.intervene` shows what a model loses at once. It has learned to rely on the part, and loses something even where
other parts could do the same. Here each changed model learns from the corpus's training documents for a few steps,
and so does the unchanged one, from the same documents in the same order. A row is a change of `lib.intervene` that
is one of the model or of encoded documents, or an option of the run as NAME=VALUE. The table has what the test
documents' references lose at once and after these steps, in nats a word, with the 95% interval of a paired bootstrap
over documents and seeds. What --output already holds is not trained again.
"""

import copy
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import lib
from companion.results.text import markdown_table
from companion.stored import open_store
from companion.tasks.task import learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.evaluation.bootstrap import Difference, paired_bootstrap
from lib.evaluation.interventions import NOTHING, Change, changes_of, log_probs
from lib.models.summarizer import Summarizer
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of

UNCHANGED = "nothing"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("companion.studies.retrain", __doc__)
    parser.add_argument("run", type=Path, help="the folder of a run")
    parser.add_argument("rows", nargs="+", help="changes, or options as NAME=VALUE")
    parser.add_argument("--dataset", required=True, help="a corpus with training and test documents")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="options of the run, in all rows")
    parser.add_argument("--steps", type=int, default=40, help="batches to learn from (40)")
    parser.add_argument("--batch-size", type=int, default=4, help="documents (4)")
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="of Adam (0.0005)")
    parser.add_argument("--documents", type=int, default=50, help="the first so many of the test split (50)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers, of each document too")
    args = parser.parse_args(arguments)
    with plain_errors():
        print(_retrain(args))


def _retrain(args: Namespace) -> str:
    run = lib.load(args.run, device="cpu")
    if not isinstance(run.model, Summarizer):
        raise InputError(f"{args.run}: a model that chooses sentences gives no text a probability")
    run = with_options(run, args.set)
    corpus = load_corpus(args.dataset)
    train = list(corpus.split("train", args.steps * args.batch_size * len(args.seeds)))
    test = unseen(corpus, "test", [run.config["corpus"]], args.documents)
    rows: dict[str, Callable[[int], Mapping]] = {}
    for name in (UNCHANGED, *args.rows):
        changed, change = (with_options(run, [name]), NOTHING) if "=" in name else (run, change_of(run.model, name))
        rows[name] = partial(_before_and_after, changed, change, train, test, args)
    setting = {
        "corpus": Path(args.dataset).name, "documents": args.documents, "steps": args.steps,
        "batch size": args.batch_size, "learning rate": args.learning_rate, "options": args.set,
    }  # fmt: skip
    store = open_store(args.output, "retrained models", {"run": str(args.run), "setting": setting})
    results = store.results(rows, args.seeds, list(rows))
    cells = [
        (row, both["before"].text(3), both["after"].text(3), sum(result["row"] == row for result in results))
        for row, both in differences(results).items()
    ]
    return markdown_table(["change", "at once", "after training", "seeds"], cells)


def _before_and_after(
    run: Run, change: Change, train: Sequence[Document], test: Sequence[Document], args: Namespace, seed: int
) -> dict[str, list[float]]:
    """The references' log-probabilities before and after training with a seed."""
    model, documents = copy.deepcopy(run.model), run.encode(test)
    before = log_probs(model, documents, change)
    chosen = np.random.default_rng(seed).permutation(len(train))
    chosen = np.resize(chosen, args.steps * args.batch_size).tolist()  # from the first again after the last one
    train_on(model, run.encode([train[i] for i in chosen]), change, args.batch_size, args.learning_rate, seed)
    after = log_probs(model, documents, change)
    return {"before": np.round(before, 5).tolist(), "after": np.round(after, 5).tolist()}


def train_on(
    model: Any, documents: Iterable[EncodedDocument], change: Change, batch_size: int, learning_rate: float, seed: int
) -> None:
    """Train a model while it is changed, on documents in their order."""
    changed = list(map(change.document, documents))
    parts = (changed[i : i + batch_size] for i in range(0, len(changed), batch_size))
    torch.manual_seed(seed)
    model.train()
    with change.model(model):
        learn(model, (make_batch(part, model.config.vocab_size) for part in parts), learning_rate)


def change_of(model: Summarizer, name: str) -> Change:
    """Find a change by name. Raises InputError for an unknown one, or one that no model can learn with."""
    known = changes_of(model)
    change = known[one_of(name, known, "change")]
    if change.text or change.state is not NOTHING.state or change.only_known:
        raise InputError(f"{name!r} changes no part that a model can learn to do without")
    return change


def with_options(run: Run, pairs: Sequence[str]) -> Run:
    """Set options of a run, given as NAME=VALUE. Raises ValueError for an unknown one, or a value of another kind."""
    known, values = vars(run.options), {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        values[name] = type(known[one_of(name, known, "option")])(value)
    return replace(run, encoder=replace(run.encoder, options=replace(run.options, **values)))


def differences(results: Sequence[Mapping]) -> dict[str, dict[str, Difference]]:
    """By row and by "before" and "after": the difference from the unchanged model with the same seed, which has
    learned from the same documents: seeds are drawn in pairs."""
    table, found = pd.DataFrame(list(results)).set_index(["row", "seed"]), {}
    own = table.loc[UNCHANGED]
    for row in table.index.unique("row"):
        of_row = table.loc[row]
        for when in ("before", "after"):
            pairs = [(of_row[when][seed], own[when][seed]) for seed in of_row.index.intersection(own.index)]
            values = np.array([np.subtract(changed, unchanged) for changed, unchanged in pairs])
            found.setdefault(row, {})[when] = paired_bootstrap(np.zeros_like(values), values)
    return found


if __name__ == "__main__":
    main()
