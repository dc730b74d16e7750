"""Scores of trained runs, and of systems that need no training: what result tables are made of.

    python -m lib.score_runs run mem2mem --preset demo --variant +read --dataset aclsum --folder runs/x
    python -m lib.score_runs baselines mem2mem --preset demo --dataset aclsum --output runs/baselines.json

A file of scores holds the ROUGE and the copied n-grams of every document, so that tables, intervals and comparisons
(`lib.make_tables`) are made without the model. A run's summaries are written beside them, for people to judge
(`lib.human`).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lib.data.batch import EncodedDocument
from lib.data.clusters import rows_of
from lib.data.documents import Document
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus
from lib.data.preprocess import cluster
from lib.evaluate import limited_recall, ngram_counts, rouge
from lib.extractive import baselines, extract_by_memory, lead, lexrank, source_sentences
from lib.generate import summarize
from lib.human.sheets import write_summaries
from lib.presets import MODELS, Preset, build, corpus_for, open_corpus, preset
from lib.storage import write_whole
from lib.tables import COPIED
from lib.train import RunError, load_weights, read_metrics


def score_texts(summaries: Sequence[list[str]], documents: Sequence[Document], sources: Sequence[list[str]]) -> dict:
    """What a table needs of a system's summaries: numbers of every document.

    summaries: sentences of each; sources: the words that stand to be copied, of each document.
    """
    words = [" ".join(summary).lower().split() for summary in summaries]
    copied = [ngram_counts(*pair, sizes=[int(n) for n in COPIED]) for pair in zip(words, sources)]
    return {
        "rouge": np.round(rouge(summaries, [d.summary for d in documents]), 3).tolist(),
        "recall": np.round(limited_recall(summaries, [d.references for d in documents]), 3).tolist(),
        "copied": {n: [counts[int(n)] for counts in copied] for n in COPIED},  # [found, all] of each document
        "words": round(float(np.mean([len(w) for w in words])), 1),
    }


def score_run(
    model_name: str, chosen: Preset, corpus: PreparedCorpus, documents: list[Document], folder: Path, split: str
) -> tuple[dict, list[list[str]]]:
    """Scores of a trained run, and the summaries it wrote."""
    which = "average" if chosen.train.keep_best > 1 else "best"
    model = load_weights(build(model_name, chosen, corpus), folder, which)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    prepared = [corpus[split][i] for i in range(len(documents))]
    started = time.perf_counter()
    summaries = summarize(model.eval(), prepared, corpus.vocabulary, chosen.decode)
    seconds = time.perf_counter() - started
    sources = [_source_text(d, corpus).split() for d in prepared]
    parts = {"summaries": score_texts(summaries, documents, sources)}
    if hasattr(model, "compress_heads"):
        heads = extract_by_memory(model, prepared, corpus.vocabulary)
        parts["heads"] = score_texts(heads, documents, sources)
    made = {
        **_setting(model_name, chosen, corpus, documents, split),
        "seed": chosen.train.seed,
        "steps": max(m["step"] for m in read_metrics(folder)),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": {"training": _seconds(folder), "summary": round(seconds / len(documents), 4)},
        "made_with": config["made_with"],
        "parts": parts,
    }
    return made, summaries


def score_baselines(
    model_name: str, chosen: Preset, corpus: PreparedCorpus, documents: list[Document], split: str
) -> dict:
    """Lead, LexRank, the oracle and the references themselves; for clusters, Lead and LexRank over paragraphs."""
    prepared = [corpus[split][i] for i in range(len(documents))]
    if model_name == "hierarchical_transformer":
        systems = _cluster_baselines(chosen, prepared, documents, corpus)
    else:
        training = [corpus["train"][i].reference for i in range(len(corpus["train"]))]
        first, *others = baselines(documents, training).items()
        systems = {"lead": first[1], **{name.lower(): texts for name, texts in others}}
        systems["lead-3"] = [lead(d.sentences, 3) for d in documents]
    systems["reference"] = [[" ".join(corpus.vocabulary.decode(d.target.tolist(), d.unknown))] for d in prepared]
    sources = [_source_text(d, corpus).split() for d in prepared]
    return {
        **_setting(model_name, chosen, corpus, documents, split),
        "parts": {name: score_texts(texts, documents, sources) for name, texts in systems.items()},
    }


def _cluster_baselines(chosen: Preset, prepared, documents, corpus: PreparedCorpus) -> dict[str, list[list[str]]]:
    """Lead: the first words of what the model reads, as many as the reference has; LexRank picks paragraphs."""
    lengths = [sum(len(s.split()) for s in d.summary) for d in documents]
    texts = [_source_text(d, corpus) for d in prepared]
    paragraphs = [cluster(d, chosen.options).paragraphs for d in documents]
    return {
        "lead": [[" ".join(text.split()[:n])] for text, n in zip(texts, lengths)],
        "lexrank": [lexrank(p, n) for p, n in zip(paragraphs, lengths)],
    }


def _source_text(document: EncodedDocument, corpus: PreparedCorpus) -> str:
    """What a model reads, its words set apart by spaces."""
    if isinstance(corpus.vocabulary, Pieces):
        return " ".join(corpus.vocabulary.text(row) for row in rows_of(document))
    return " ".join(source_sentences(document, corpus.vocabulary))


def _matching(texts: Iterable[Document], ids: list[str]) -> list[Document]:
    """Documents as they were prepared: in order, without those that a paper's filters left out."""
    texts, found = iter(texts), []
    for wanted in ids:
        found.append(next((d for d in texts if d.id == wanted), None))
    if None in found:
        raise ValueError(f"document {ids[found.index(None)]!r} is prepared, but not in the corpus any more")
    return found


def _setting(model_name: str, chosen: Preset, corpus: PreparedCorpus, documents, split: str) -> dict:
    return {
        "model": model_name,
        "variant": chosen.variant,
        "corpus": Path(corpus.name).name,
        "split": split,
        "ids": [d.id for d in documents],
        "training documents": len(corpus["train"]),
    }


def _seconds(folder: Path) -> float:
    """That the last start of a run trained."""
    return [m["seconds"] for m in read_metrics(folder) if "seconds" in m][-1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lib.score_runs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="summaries of a run and their scores, beside its weights")
    run.add_argument("--folder", required=True, type=Path, help="that lib.train wrote")
    run.add_argument("--longer", action="store_true", help="read 40 paragraphs for every 24 in training")
    base = commands.add_parser("baselines", help="scores of systems that are not trained")
    for command in (run, base):
        command.add_argument("model", choices=MODELS)
        command.add_argument("--dataset", required=True)
        command.add_argument("--preset", default="demo")
        command.add_argument("--variant")
        command.add_argument("--vocab-size", type=int)
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--limit", type=int, help="at most so many documents of each split, as in training")
        command.add_argument("--errors", choices=("raise", "skip"), default="raise")
        command.add_argument("--test", default="", help="another corpus to take the test documents from")
        command.add_argument("--split", choices=("val", "test"), default="test")
        command.add_argument("--documents", type=int, help="score the first so many alone")
        command.add_argument("--output", type=Path, help="the file of scores; by default scores.json beside the run")
    args = parser.parse_args(arguments)
    if args.command == "baselines" and args.output is None:
        parser.error("baselines: --output is needed")
    try:
        _score(args)
    except (ValueError, RunError, OSError) as error:  # CorpusError is a ValueError
        sys.exit(f"error: {error}")


def _score(args: argparse.Namespace) -> None:
    chosen = preset(args.model, args.preset, args.variant, vocab_size=args.vocab_size, seed=args.seed)
    if args.command == "run" and args.longer:  # the paper's 40 and 24 paragraphs
        longer = round(chosen.options.paragraphs * 40 / 24)
        chosen = replace(chosen, options=replace(chosen.options, paragraphs=longer))
    corpus = open_corpus(args.dataset, chosen, args.errors, args.limit, args.test, progress=False)
    texts = corpus_for(args.dataset, args.errors, args.test)
    count = min(args.documents or len(corpus[args.split]), len(corpus[args.split]))
    documents = _matching(texts.split(args.split), [corpus[args.split][i].id for i in range(count)])
    if args.command == "run":
        output = args.output or args.folder / "scores.json"
        made, summaries = score_run(args.model, chosen, corpus, documents, args.folder, args.split)
        beside = output.with_name(output.stem.replace("scores", "summaries") + ".jsonl")
        ids, titles = [d.id for d in documents], [d.title for d in documents]
        write_summaries(beside, ids, summaries, [d.summary for d in documents], titles)
    else:
        output = args.output
        made = score_baselines(args.model, chosen, corpus, documents, args.split)
    write_whole(output, json.dumps(made, ensure_ascii=False) + "\n")
    for name, part in made["parts"].items():
        print(f"{output}: {name}, ROUGE", " / ".join(f"{x:.2f}" for x in np.mean(part["rouge"], 0)))


if __name__ == "__main__":
    main()
