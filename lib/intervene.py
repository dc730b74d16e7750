"""Change a part of a trained run, or of what it reads, and measure how the probability of the texts
changes.

    python -m lib.intervene trained/mem2mem --dataset pmc-sample
    python -m lib.intervene trained/mem2mem "another memory" "slots averaged" --dataset pmc-sample --documents 48
    python -m lib.intervene trained/windowed --dataset pmc-sample --of summaries --output changes.json
    python -m lib.intervene trained/mem2mem --attention --dataset pmc-sample --of summaries

Each change has a row: the log-probability in nats a word, and its difference from the unchanged
model, with the 95% interval of a paired bootstrap over documents. If the interval includes 0, no
effect of the part was found. Without names, every change is made for which the model has the parts
(`lib.models.changes` explains them). After some changes a word can no longer be copied. Then only
words of the vocabulary are scored, with and without the change. So compare the differences of rows,
not their log-probabilities.

--attention measures instead how well attention ranks the sentences or paragraphs that a text
depends on: how well its ranks agree with those of the effect of erasing each, and with those of the
gradient.

Several GPUs share the documents, with the same result:

    torchrun --standalone --nproc-per-node 4 -m lib.intervene trained/mem2mem --dataset pmc-sample
"""  # noqa: E501

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import lib
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.vocabulary import EOS, SLIDE_SYMBOL, UNK
from lib.decoding.run import Run
from lib.decoding.search import search_split
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.interventions import MEASURES, changes_of, log_probs, rank_agreement
from lib.models.changes import NOTHING, Change
from lib.models.summarizer import Summarizer
from lib.system.command_line import command_parser, plain_errors
from lib.system.devices import ALONE, Process, processes
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, write_json


def main(arguments: Sequence[str] | None = None) -> None:
    parser = rows_parser("lib.intervene", __doc__)
    parser.add_argument(
        "changes", nargs="*", help="names of changes; by default all that the model's parts allow"
    )
    parser.add_argument(
        "--of",
        choices=("references", "summaries"),
        default="references",
        help="the texts whose probability is measured: the authors', or the run's own summaries",
    )
    parser.add_argument(
        "--attention", action="store_true", help="rank agreement of attention, erasure and gradient"
    )
    args = parser.parse_args(arguments)
    with plain_errors(), processes() as process:
        run, documents = read(args)
        if not isinstance(run.model, Summarizer):
            raise InputError(
                f"{args.run}: a model that chooses sentences gives no text a probability"
            )
        if (
            args.of == "references"
            and SLIDE_SYMBOL in run.options.symbols
            and run.config["model"].get("window")
        ):
            raise InputError(
                f"{args.run}: references do not say where the window moves: ask for --of summaries"
            )
        if args.attention:
            head = "| one measure | the other | rank agreement |"
            write_rows(
                args, head, agreements(run, documents, args.of, process), len(documents), process
            )
            return
        known = changes_of(run.model)
        changes = {name: known[one_of(name, known, "change")] for name in args.changes or known}
        made = intervene(run, documents, changes, args.of, process)
        write_rows(args, "| change | | nats a word | difference |", made, len(documents), process)


def rows_parser(module: str, docstring: str | None) -> ArgumentParser:
    """Make the parser of a command that measures something of a run on test documents."""
    parser = command_parser(module, docstring)
    parser.add_argument("run", type=Path, help="the folder of a run")
    parser.add_argument("--dataset", required=True, help="a corpus; its test documents are read")
    parser.add_argument(
        "--documents", type=int, default=50, help="the number of documents, from the first (50)"
    )
    parser.add_argument(
        "--output", type=Path, help="a JSON file for the numbers, also of each document"
    )
    parser.add_argument("--device", help="cpu or cuda; by default the GPU if there is one")
    return parser


def read(args: Namespace) -> tuple[Run, list[Document]]:
    """Open the run and read the documents that a command asks for."""
    if args.documents < 2:
        raise InputError(f"--documents must be at least 2, not {args.documents}")
    if args.output:
        check_replaces(args.output, "interventions", ("run", "changes"))
    run = lib.load(args.run, device=args.device)
    return run, unseen(load_corpus(args.dataset), "test", [run.config["corpus"]], args.documents)


def write_rows(
    args: Namespace, head: str, made: Iterable[dict], documents: int, process: Process = ALONE
) -> None:
    """Print a table row by row, and write all that is in the rows to the file that is asked for."""
    rows = []
    for row in made:
        if process.rank:  # the first process writes what all have made
            continue
        if not rows:  # not before an error
            print(f"{head}\n|{' --- |' * (head.count('|') - 1)}")
        mean = f" {row['mean']:.3f} |" if "difference" in row else ""
        print(f"| {row['change']} | {row['what']} |{mean} {row['text']} |", flush=True)
        rows.append(row)
    if args.output and not process.rank:
        about = {
            "run": str(args.run),
            "corpus": Path(args.dataset).name,
            "of": vars(args).get("of", "references"),
        }
        write_json(args.output, {**about, "documents": documents, "changes": rows})


def intervene(
    run: Run,
    documents: Sequence[Document],
    changes: dict[str, Change],
    of: str = "references",
    process: Process = ALONE,
) -> Iterator[dict]:
    """Yield a row for each change: the mean log-probability in nats a word, its difference from the
    unchanged texts with a paired interval, and the values of all documents."""
    encoded, values_of = run.encode(documents), partial(log_probs, run.model, process=process)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    own = {
        only: values_of(texts, only_known=only)
        for only in sorted({c.only_known for c in changes.values()})
    }
    for name, change in changes.items():
        read = texts
        if change.text:
            read = run.encode([change.text(document) for document in documents])
            # copy ids of the other reading are other words here: they are [UNK]
            known = len(run.vocabulary)
            targets = [
                np.where(text.target < known, text.target, UNK).astype(np.int32) for text in texts
            ]
            read = [replace(document, target=target) for document, target in zip(read, targets)]
        values = own[change.only_known] if change is NOTHING else values_of(read, change)
        seen = paired_bootstrap(own[change.only_known], values)
        yield {
            "change": name,
            "what": change.what,
            "mean": float(values.mean()),
            "difference": seen.mean,
            "low": seen.low,
            "high": seen.high,
            "p": seen.p,
            "text": seen.text(3),
            "values": np.round(values, 5).tolist(),
        }


def agreements(
    run: Run, documents: Sequence[Document], of: str = "references", process: Process = ALONE
) -> Iterator[dict]:
    """Yield a row for each pair of MEASURES: the mean rank agreement over documents of the
    importance of units, with its interval, and the values of all documents. A document of one unit
    has no ranks and is left out."""
    encoded = run.encode(documents)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    texts = [text for text in texts if len(text.sentence_lengths) > 1]
    if not texts:
        raise InputError("no document has two sentences or paragraphs: there is nothing to rank")
    ranked = {
        name: process.gather(measure(run.model, text) for text in process.share(texts))
        for name, measure in MEASURES.items()
    }
    for first, second in combinations(MEASURES, 2):
        values = np.array([rank_agreement(*pair) for pair in zip(ranked[first], ranked[second])])
        yield mean_row(first, second, values)


def mean_row(name: str, what: str, values: np.ndarray, digits: int = 5, **more: Any) -> dict:
    """Make a row of the mean of a measure over documents, with its interval and their values."""
    mean = interval(values)
    return {
        "change": name,
        "what": what,
        "mean": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "text": str(mean),
        **more,
        "values": np.round(values, digits).tolist(),
    }


def _written(
    run: Run, documents: Sequence[EncodedDocument], process: Process
) -> list[EncodedDocument]:
    """Replace the reference of each document by what the run writes of it."""
    best = search_split(run.model, documents, run.vocabulary, run.decode, process=process)
    targets = [np.array([*hypothesis.ids, EOS], dtype=np.int32) for hypothesis in best]
    return [replace(document, target=target) for document, target in zip(documents, targets)]


if __name__ == "__main__":
    main()
