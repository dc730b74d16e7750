"""Score a trained run, or systems that need no training, on a corpus.

    python -m lib.score run runs/x --dataset aclsum
    python -m lib.score baselines mem2mem --preset demo --dataset aclsum --output runs/baselines.json
    python -m lib.score summaries theirs.jsonl --dataset aclsum --output runs/theirs.json

The scores are what tables are made of (`companion.make_tables`). A run's summaries are written beside them, for people to
judge (`companion.human`): beside scores-200.json in summaries-200.jsonl, beside x.json in x.summaries.jsonl. Such a file of
any system, JSON lines of {id, summary}, is scored by `summaries`.

Besides ROUGE there is what a summary has and its text does not (`lib.evaluation.support`): numbers, names, words and
word pairs, and how many sentences one source sentence carries, for the references as well.

Several GPUs share the documents, and write what one would:

    torchrun --standalone --nproc-per-node 4 -m lib.score run runs/x --dataset aclsum
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import lib
from lib.data.corpora import check_unpublished, learned_from, unseen
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.decoding.search import DecodeConfig
from lib.evaluation.scores import intervals, score_baselines, score_run, score_summaries
from lib.evaluation.summaries import read_summary_sentences, write_summaries
from lib.papers import PAPERS, resolve
from lib.papers.paper import corpus_for
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError
from lib.system.files import check_replaces, check_writable, trained_folder, work_folder, write_whole
from lib.training.devices import Process, processes

DECODED = {"min_length": "words that are written at least", "max_length": "at most", "beam": "width of the search"}


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("lib.score", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="summaries of a run and their scores, beside its weights")
    run.add_argument("folder", type=Path, help="that lib.train wrote")
    run.add_argument(
        "--scaled", action="append", default=[], metavar="OPTION=FACTOR", help="read more than in training"
    )
    for name, what in DECODED.items():
        run.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"{what}; by default as the run has it")
    run.add_argument(
        "--numbers", action="store_true", help="put the text's numbers in place of # (Rush et al. 2015, for DUC 2004)"
    )
    run.add_argument("--batch-size", type=int, default=16, help="documents that are read and written at once")
    run.add_argument("--device", help="cpu or cuda; by default the GPU where there is one")
    run.add_argument(
        "--output",
        type=Path,
        help="the file of scores; by default scores.json beside the run, or in runs/scores/NAME for trained/NAME. "
        "The summaries: its name with summaries for scores, or NAME.summaries.jsonl",
    )
    theirs = commands.add_parser("summaries", help="scores of summaries that any system wrote")
    theirs.add_argument("file", type=Path, help="JSON lines of id and summary (a text, or a list of sentences)")
    theirs.add_argument("--output", type=Path, required=True, help="the file of scores")
    base = commands.add_parser("baselines", help="scores of systems that are not trained")
    base.add_argument("paper", choices=PAPERS)
    base.add_argument("--preset", default="demo")
    base.add_argument("--output", type=Path, required=True, help="the file of scores")
    for command in (run, theirs, base):
        command.add_argument("--dataset", required=True)
        command.add_argument("--limit", type=int, help="at most so many documents of each split, as in training")
        command.add_argument("--errors", choices=("raise", "skip"), default="raise")
        command.add_argument("--test", default="", help="another corpus to take the test documents from")
        command.add_argument("--split", choices=("val", "test"), default="test")
        command.add_argument("--documents", type=int, help="score the first so many alone")
    args = parser.parse_args(arguments)
    with plain_errors(), processes() as process:
        _check_numbers(args)
        output = args.output or _folder_of_scores(args.folder) / "scores.json"
        if args.command == "summaries" and output.resolve() == args.file.resolve():
            raise InputError(f"--output {output}: the summaries themselves. Name another file.")
        check_replaces(output, "scores", ("ids", "parts"))
        if args.command == "run":
            check_writable(_beside(output))
            check_unpublished(_beside(output), _scored(args))
        if process.rank and args.command != "run":  # a model's work alone is shared
            return
        scores = {"run": _run, "summaries": _summaries, "baselines": _baselines}[args.command](args, output, process)
        if process.rank:
            return
        write_whole(output, json.dumps(scores, ensure_ascii=False) + "\n")
        for name, part in scores["parts"].items():
            print(f"{output}: {name}, ROUGE", " / ".join(f"{x:.2f}" for x in np.mean(part["rouge"], 0)))
            shares = (f"{column} {share}" for column, share in intervals("support", part).items())
            print(f"{output}: {name}, in percent:", "; ".join(shares))
        if "letters" in scores:
            print(f"{output}: the references are not in ASCII, so ROUGE's words are of {scores['letters']}")


def _check_numbers(args: Namespace) -> None:
    for name in ("limit", "documents", "batch_size"):
        if (value := getattr(args, name, None)) is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {value}")


def _folder_of_scores(run: Path) -> Path:
    """The folder of a run's scores: its own, but not one of `trained/`, whose files are the project's."""
    name, home = run.resolve().name, run.resolve().parent
    return work_folder() / "scores" / name if home == trained_folder(name).resolve().parent else run


def _decoding(run: Run, args: Namespace) -> DecodeConfig:
    """Decoding of the run with what was asked for."""
    changes = {name: value for name in DECODED if (value := getattr(args, name)) is not None}
    least = changes.get("min_length", run.decode.min_length)
    if (most := changes.get("max_length", run.decode.max_length)) < least:
        raise InputError(f"at least {least} words and at most {most} are asked for: give --min-length, --max-length")
    return replace(run.decode, **changes)


def _scored(args: Namespace) -> str:
    """Name of the corpus that the scored documents are of."""
    return args.test if args.test and args.split == "test" else args.dataset


def _run(args: Namespace, output: Path, process: Process) -> dict:
    run = lib.load(args.folder, device=args.device)
    options = _scaled(run, args.scaled)
    run = replace(run, encoder=replace(run.encoder, options=options), decode=_decoding(run, args))
    corpus = Path(_scored(args))
    limits = [n for n in (args.documents, args.limit) if n is not None]
    if not limits and corpus.resolve() == Path(run.config["corpus"]).resolve():
        limits = [n for n in [run.config["documents"].get(args.split)] if n]  # as many as there were in training
    limit = min(limits, default=None)
    documents = unseen(corpus_for(args.dataset, args.errors, args.test), args.split, [run.config["corpus"]], limit)
    scores, summaries = score_run(run, documents, args.split, corpus.name, args.batch_size, args.numbers, process)
    if not process.rank:
        write_summaries(_beside(output), documents, summaries, corpus.name)
    return scores


def _summaries(args: Namespace, *_: Any) -> dict:
    """Scores of a file of summaries, on the documents of the split that it has."""
    by_id = read_summary_sentences(args.file)
    corpus = Path(_scored(args))
    split = corpus_for(args.dataset, args.errors, args.test).split(args.split, args.limit)
    every = (document if document.id in by_id else None for document in split)  # others are counted, not held
    read = list(every) if args.documents is None else list(islice(filter(None, every), args.documents))
    documents = [document for document in read if document]
    if args.documents is None and (unknown := by_id.keys() - {d.id for d in documents}):
        raise InputError(f"{args.file}: {corpus.name} has no {args.split} document {min(unknown)!r}")
    if not documents:
        raise InputError(f"{args.file}: no summary of a {args.split} document of {corpus.name}")
    if len(documents) < len(read):
        print(f"{args.file}: scores are of {len(documents)} of {len(read)} {args.split} documents", file=sys.stderr)
    return score_summaries([by_id[d.id] for d in documents], documents, args.split, args.file.stem, corpus.name)


def _beside(output: Path) -> Path:
    """The file of a run's summaries, beside its scores."""
    name = output.stem.replace("scores", "summaries") if "scores" in output.stem else f"{output.stem}.summaries"
    return output.with_name(f"{name}.jsonl")


def _scaled(run: Run, pairs: Iterable[str]):
    """A run's options, some of them so many times larger. Raises ValueError for one that it does not have."""
    changes = {}
    for name, _, factor in (pair.partition("=") for pair in pairs):
        if not isinstance(value := getattr(run.options, name, None), int):
            raise InputError(f"--scaled {name}: {type(run.options).__name__} has no such number")
        try:
            changes[name] = round(value * Fraction(factor))
        except (ValueError, ZeroDivisionError):
            raise InputError(f"--scaled {name}={factor}: the factor is a number, such as 2 or 5/3") from None
    return replace(run.options, **changes)


def _baselines(args: Namespace, *_: Any) -> dict:
    setup = resolve(args.paper, args.preset)
    corpus = setup.open_corpus(args.dataset, args.errors, args.limit, args.test, progress=False)
    texts = corpus_for(args.dataset, args.errors, args.test)
    seen = learned_from(texts, args.split, [args.dataset])  # as runs leave them out, beside which these stand
    encoded = list(islice((d for d in corpus[args.split] if d.id not in seen), args.documents))
    documents = _matching(texts.split(args.split), [d.id for d in encoded])
    return score_baselines(setup, corpus, documents, encoded, args.split)


def _matching(texts: Iterable[Document], ids: list[str]) -> list[Document]:
    """Documents as they were prepared: in order, without those that a paper's filters left out."""
    texts, documents = iter(texts), []
    for document_id in ids:
        documents.append(next((d for d in texts if d.id == document_id), None))
    if None in documents:
        raise InputError(f"document {ids[documents.index(None)]!r} is prepared, but not in the corpus any more")
    return documents


if __name__ == "__main__":
    main()
