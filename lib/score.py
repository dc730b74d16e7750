"""Score a trained run, or systems that need no training, on a corpus.

    python -m lib.score run runs/x --dataset aclsum
    python -m lib.score baselines mem2mem --preset demo --dataset aclsum --output runs/baselines.json
    python -m lib.score summaries theirs.jsonl --dataset aclsum --output runs/theirs.json

Tables are made from the scores (`companion.make_tables`). A run's summaries are written beside
them: beside scores-200.json in summaries-200.jsonl, beside x.json in x.summaries.jsonl. `summary`
has the model's own words, which are scored; `readable` is for people to judge (`companion.human`).
`summaries` scores such a file of any system: JSON lines of {id, summary}.

Besides ROUGE, scores show what of a summary is not in its text (`lib.evaluation.support`): numbers,
names, words and word pairs. They also show how many sentences are taken from one source sentence.
The references have a row of their own.

Several GPUs share the documents, with the same result:

    torchrun --standalone --nproc-per-node 4 -m lib.score run runs/x --dataset aclsum
"""  # noqa: E501

import json
import re
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

import lib
from lib.data.corpora import check_unpublished, learned_from, unseen
from lib.data.options import Options
from lib.evaluation.bootstrap import no_interval
from lib.evaluation.measures import SUPPORT
from lib.evaluation.scores import intervals, score_run, score_systems, setting
from lib.evaluation.summaries import read_summary_sentences, write_summaries
from lib.papers import PAPERS, resolve
from lib.papers.paper import corpus_for, imported
from lib.system.command_line import command_parser, count, plain_errors
from lib.system.devices import Process, processes
from lib.system.errors import InputError
from lib.system.fields import field_names
from lib.system.files import (
    check_replaces,
    check_writable,
    trained_folder,
    work_folder,
    write_whole,
)


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("lib.score", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="write summaries with a run and score them")
    run.add_argument("folder", type=Path, help="the folder of a run")
    run.add_argument(
        "--scaled",
        action="append",
        default=[],
        metavar="OPTION=FACTOR",
        help="read more than in training",
    )
    run.add_argument(
        "--min-length",
        type=int,
        help="the smallest number of words of a summary; by default the run's",
    )
    run.add_argument("--max-length", type=count, help="the largest number of words")
    run.add_argument("--beam", type=count, help="width of the search")
    run.add_argument(
        "--slide",
        help="how a window slides: 'as a word' (the paper's search), half, median or coin",
    )
    cut_help = (
        "cut each summary to the words of its reference, as the code of windowed attention does"
    )
    run.add_argument("--as-long-as-references", action="store_true", help=cut_help)
    run.add_argument(
        "--numbers", action="store_true", help="replace # by the text's numbers (Rush et al. 2015)"
    )
    run.add_argument("--batch-size", type=count, default=16, help="documents in a batch")
    run.add_argument("--device", help="cpu or cuda; by default the GPU if there is one")
    where = (
        "the file of scores; by default scores.json beside the run, or in runs/scores/NAME for "
        "trained/NAME"
    )
    run.add_argument("--output", type=Path, help=where)
    summaries = commands.add_parser("summaries", help="score the summaries of any system")
    summaries.add_argument(
        "file", type=Path, help="JSON lines of id and summary (a text, or a list of sentences)"
    )
    summaries.add_argument("--output", type=Path, required=True, help="the file of scores")
    base = commands.add_parser("baselines", help="score systems that are not trained")
    base.add_argument("paper", choices=PAPERS)
    base.add_argument("--preset", default="demo")
    base.add_argument("--output", type=Path, required=True, help="the file of scores")
    for command in (run, summaries, base):
        command.add_argument("--dataset", required=True)
        command.add_argument(
            "--limit", type=count, help="documents of each split, at most; as in training"
        )
        command.add_argument(
            "--errors", choices=("raise", "skip"), default="raise", help="at a malformed record"
        )
        command.add_argument("--test", default="", help="take the test documents of another corpus")
        command.add_argument("--split", choices=("val", "test"), default="test")
        command.add_argument(
            "--documents", type=count, help="score only the first documents, this many"
        )
    args = parser.parse_args(arguments)
    with plain_errors(), processes() as process:
        output = args.output or _folder_of_scores(args.folder) / "scores.json"
        check_replaces(output, "scores", ("ids", "parts"))
        if process.rank and args.command != "run":  # only a model's work is shared
            return
        score = {"run": _run, "summaries": _summaries, "baselines": _baselines}[args.command]
        scores = score(args, output, process)
        if process.rank:
            return
        write_whole(output, json.dumps(scores, ensure_ascii=False) + "\n")
        print(f"{tables(scores)}\n\nAll scores: {output}")


def tables(scores: dict) -> str:
    """Write the scores of each system: ROUGE, and what its summaries have and their texts do
    not."""
    count, letters = len(scores["ids"]), scores.get("letters", "ASCII letters")
    lines = [
        f"{count} {scores['split']} documents of {scores['corpus']}; "
        f"{no_interval(count) or '95% intervals'}"
    ]
    lacking = (
        "What the text does not have, in percent; carried: sentences that one of its sentences "
        "carries"
    )
    for measure, heading in {
        "rouge": f"ROUGE (F1) of words of {letters}",
        "support": lacking,
    }.items():
        columns = {name: intervals(measure, part) for name, part in scores["parts"].items()}
        table = pd.DataFrame(columns).T.rename(
            columns={long: short for short, long in SUPPORT.items()}
        )
        lines += [heading, table.map(lambda value: str(value).partition(" (")[0]).to_string()]
    return "\n\n".join(lines)


def _folder_of_scores(run: Path) -> Path:
    """Return the folder of a run's scores: its own, except for those in `trained/`, whose files are
    the project's."""
    run = run.resolve()
    return work_folder() / "scores" / run.name if run == trained_folder(run.name).resolve() else run


def _scored(args: Namespace) -> str:
    """Name the corpus of the scored documents."""
    return args.test if args.test and args.split == "test" else args.dataset


def _run(args: Namespace, output: Path, process: Process) -> dict:
    name = (
        output.stem.replace("scores", "summaries")
        if "scores" in output.stem
        else f"{output.stem}.summaries"
    )
    beside = output.with_name(f"{name}.jsonl")
    corpus = Path(_scored(args))
    check_writable(beside)
    check_unpublished(beside, str(corpus))
    run = lib.load(args.folder, device=args.device)
    options = {name: getattr(args, name) for name in ("min_length", "max_length", "beam", "slide")}
    changes = {name: value for name, value in options.items() if value is not None}
    if "slide" in changes and "slide" not in field_names(type(run.decode)):
        raise InputError(f"--slide: {args.folder} holds no model with windows")
    decode = replace(run.decode, **changes)
    run = replace(
        run, encoder=replace(run.encoder, options=_scaled(run.options, args.scaled)), decode=decode
    )
    limits = [n for n in (args.documents, args.limit) if n is not None]
    if not limits and corpus.resolve() == Path(run.config["corpus"]).resolve():
        # as many as there were in training
        limits = [n for n in [run.config["documents"].get(args.split)] if n]
    texts = corpus_for(args.dataset, args.errors, args.test)
    documents = unseen(texts, args.split, [run.config["corpus"]], min(limits, default=None))
    how = args.batch_size, args.numbers, process, args.as_long_as_references
    scores, summaries = score_run(run, documents, args.split, corpus.name, *how)
    if not process.rank:
        write_summaries(beside, documents, summaries, corpus.name, run)
    return scores


def _scaled(options: Options, pairs: Iterable[str]) -> Options:
    """Multiply options by factors, given as OPTION=FACTOR."""
    changes = {}
    for name, _, factor in (pair.partition("=") for pair in pairs):
        value = getattr(options, name, None)
        if not isinstance(value, int) or not re.fullmatch(r"\d+(\.\d+|/[1-9]\d*)?", factor):
            raise InputError(
                f"--scaled {name}={factor}: give a number of {type(options).__name__} and 2 or 5/3"
            )
        changes[name] = round(value * Fraction(factor))
    return replace(options, **changes)


def _summaries(args: Namespace, *_: Any) -> dict:
    by_id = read_summary_sentences(args.file)
    corpus = Path(_scored(args))
    split = corpus_for(args.dataset, args.errors, args.test).split(args.split, args.limit)
    documents = list(islice((d for d in split if d.id in by_id), args.documents))
    if args.documents is None and (unknown := by_id.keys() - {d.id for d in documents}):
        raise InputError(
            f"{args.file}: {corpus.name} has no {args.split} document {min(unknown)!r}"
        )
    if not documents:
        raise InputError(f"{args.file}: no summary of a {args.split} document of {corpus.name}")
    systems = {
        "summaries": [by_id[d.id] for d in documents],
        "reference": [d.summary for d in documents],
    }
    return {
        "model": args.file.stem,
        **setting(corpus.name, documents, args.split),
        "parts": score_systems(systems, documents),
    }


def _baselines(args: Namespace, *_: Any) -> dict:
    setup = resolve(args.paper, args.preset)
    corpus = setup.open_corpus(args.dataset, args.errors, args.limit, args.test, progress=False)
    texts = corpus_for(args.dataset, args.errors, args.test)
    seen = learned_from(texts, args.split, [args.dataset])  # runs leave these documents out as well
    encoded = list(islice((d for d in corpus[args.split] if d.id not in seen), args.documents))
    ids = {d.id for d in encoded}
    by_id = {d.id: d for d in texts.split(args.split) if d.id in ids}
    documents = [by_id[d.id] for d in encoded]
    systems = imported(setup.paper.baselines)(documents, encoded, corpus)
    systems["reference"] = [document.summary for document in documents]
    return {
        "model": setup.paper.name,
        "variant": setup.variant,
        **setting(corpus.name, documents, args.split, len(corpus["train"])),
        "parts": score_systems(systems, documents, corpus.options),
    }


if __name__ == "__main__":
    main()
