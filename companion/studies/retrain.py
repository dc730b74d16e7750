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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lib
from companion.tasks.task import learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.corpora import Corpus, load_corpus, unseen
from lib.decoding.run import Run
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.interventions import NOTHING, Change, changes_of, log_probs, with_change
from lib.models.summarizer import Summarizer
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, read_numbers, write_json

NEEDED = ("run", "setting", "results")
UNCHANGED = "nothing"


@dataclass(frozen=True)
class Setting:
    """How models learn on: Adam."""

    steps: int
    batch_size: int  # documents
    learning_rate: float


@dataclass(frozen=True)
class ChangedRow:
    """A change of a model or of encoded documents, or options of the run that have other values."""

    change: Change = NOTHING
    options: Mapping[str, Any] | None = None


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
        _retrain(args)


def _retrain(args: Namespace) -> None:
    for name in ("steps", "batch_size"):
        if getattr(args, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(args, name)}")
    if args.documents < 2:
        raise InputError(f"--documents must be at least 2, not {args.documents}")
    if args.output:
        check_replaces(args.output, "retrained models", NEEDED)
    run = lib.load(args.run, device="cpu")
    if not isinstance(run.model, Summarizer):
        raise InputError(f"{args.run}: a model that chooses sentences gives no text a probability")
    run = _with_options(run, _values(run, args.set))
    rows = {UNCHANGED: ChangedRow(), **{name: _row(run, name) for name in args.rows}}
    numbers = _earlier(args) or {"run": str(args.run), "setting": _setting(args), "results": []}
    corpus = load_corpus(args.dataset)
    for row, seed, before, after in _trained(run, corpus, rows, args, numbers["results"]):
        numbers["results"].append({"row": row, "seed": seed, "before": before, "after": after})
        if args.output:
            write_json(args.output, numbers)
    print(_table(numbers["results"]))


def _trained(
    run: Run, corpus: Corpus, rows: Mapping[str, ChangedRow], args: Namespace, results: list[dict]
) -> Iterator[tuple[str, int, list[float], list[float]]]:
    """Row, seed and the references' log-probabilities before and after training, of what there is not yet."""
    how = Setting(args.steps, args.batch_size, args.learning_rate)
    solved = {(result["row"], result["seed"]) for result in results}
    train = list(corpus.split("train", args.steps * args.batch_size * len(args.seeds)))
    test = unseen(corpus, "test", [run.config["corpus"]], args.documents)
    for seed in args.seeds:
        for name, row in rows.items():
            if (name, seed) not in solved:
                changed = _with_options(run, row.options or {})
                model = copy.deepcopy(run.model)
                documents = changed.encode(test)
                before = log_probs(model, documents, row.change)
                chosen = np.random.default_rng(seed).permutation(len(train))[: args.steps * args.batch_size]
                encoded = changed.encode([train[i] for i in chosen])
                train_on(model, encoded, row.change, how, seed)
                after = log_probs(model, documents, row.change)
                yield name, seed, *(np.round(values, 5).tolist() for values in (before, after))


def train_on(model: Any, documents: Sequence[EncodedDocument], change: Change, how: Setting, seed: int) -> None:
    """Train a model while it is changed, on documents as they stand, from the first again after the last one."""
    torch.manual_seed(seed)
    model.train()
    with ExitStack() as stack:
        stack.enter_context(change.model(model))
        learn(model, _batches(model, documents, change, how), how.learning_rate)


def _batches(model: Any, documents: Sequence[EncodedDocument], change: Change, how: Setting) -> Iterator[Batch]:
    for step in range(how.steps):
        places = range(step * how.batch_size, (step + 1) * how.batch_size)
        part = [documents[i % len(documents)] for i in places]
        yield make_batch([with_change(d, change) for d in part], model.config.vocab_size)


def row_of(model: Summarizer, name: str) -> ChangedRow:
    """The row of a change. Raises ValueError for one that there is not, or that no model can learn with."""
    known = changes_of(model)
    change = known[one_of(name, known, "change")]
    if change.text or change.state or change.only_known:
        raise InputError(f"{name!r} changes no part that a model can learn to do without")
    return ChangedRow(change)


def _row(run: Run, name: str) -> ChangedRow:
    if "=" not in name:
        return row_of(run.model, name)
    values = _values(run, [name])
    _with_options(run, values)
    return ChangedRow(options=values)


def _values(run: Run, pairs: Sequence[str]) -> dict[str, Any]:
    """Options as NAME=VALUE. Raises ValueError for one that the run does not have, or a value of another kind."""
    known, values = {field.name: getattr(run.options, field.name) for field in fields(run.options)}, {}
    for name, _, value in (pair.partition("=") for pair in pairs):
        before = known[one_of(name, known, "option")]
        if not isinstance(before, (int, str)) or isinstance(before, bool):
            raise InputError(f"{name}={value}: only numbers and names can be given")
        try:
            values[name] = type(before)(value)
        except ValueError:
            raise InputError(f"{name}={value}: a whole number is needed, such as {before}") from None
    return values


def _with_options(run: Run, values: Mapping[str, Any]) -> Run:
    return replace(run, encoder=replace(run.encoder, options=replace(run.options, **values)))


def _setting(args: Namespace) -> dict:
    return {
        "corpus": Path(args.dataset).name, "documents": args.documents, "steps": args.steps,
        "batch size": args.batch_size, "learning rate": args.learning_rate, "options": args.set,
    }  # fmt: skip


def _earlier(args: Namespace) -> dict | None:
    if not (args.output and args.output.exists()):
        return None
    numbers = read_numbers(args.output, "retrained models", NEEDED)
    if (numbers["run"], numbers["setting"]) != (str(args.run), _setting(args)):
        raise InputError(f"{args.output} is of another run or setting: name another file")
    return numbers


def differences(results: Sequence[Mapping]) -> dict[str, dict]:
    """By row and by "before" and "after": the difference to the unchanged model with the same seed, which has learned
    from the same documents: seeds are drawn in pairs."""
    by_row: dict[str, dict[int, Mapping]] = {}
    for result in results:
        by_row.setdefault(result["row"], {})[result["seed"]] = result
    found: dict[str, dict] = {}
    own = by_row[UNCHANGED]
    for row, of_row in by_row.items():
        seeds = [seed for seed in of_row if seed in own]
        for when in ("before", "after"):
            values = np.array([np.subtract(of_row[seed][when], own[seed][when]) for seed in seeds])
            found.setdefault(row, {})[when] = paired_bootstrap(np.zeros_like(values), values)
    return found


def _table(results: Sequence[Mapping]) -> str:
    lines = ["| change | at once | after training | seeds |", "| --- | --- | --- | --- |"]
    for row, of_row in differences(results).items():
        seeds = sum(result["row"] == row for result in results)
        lines.append(f"| {row} | {of_row['before'].text(3)} | {of_row['after'].text(3)} | {seeds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
