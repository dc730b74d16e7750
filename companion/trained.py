"""Trained runs that the project keeps, in `trained`: weights in 16 bits, losses, vocabulary,
scores, a card.

    python -m companion.trained keep runs/mem2mem      # all that lib.load needs: trained/mem2mem
    python -m companion.trained score mem2mem          # trained/mem2mem/table.json, and its card

A run is scored twice, with plain beam search and with trigram blocking, beside Lead and LexRank of
as many words.
"""

import json
import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from safetensors.torch import save

import lib
from companion.results.numbers import table_numbers
from companion.results.places import render
from companion.results.tables import TRAINED, Row, Table, TrainedRun
from companion.results.text import markdown
from lib.data.corpus import load_corpus, unseen
from lib.data.documents import Document
from lib.decoding.config import DECODINGS
from lib.decoding.run import Run
from lib.decoding.search import summarize
from lib.evaluation.baselines import counted_in, lexrank
from lib.evaluation.scores import about, cut, score_systems
from lib.system.command_line import run_command
from lib.system.errors import RunError, one_of
from lib.system.files import trained_folder, write_json, write_whole
from lib.training.folder import weights_of


def keep(folder: Path, /, *, replace: bool = False) -> None:
    """Store the files of a run that its use needs under its name, with weights in 16 bits
    (float16).

    Raises RunError for a run of a model of which none is kept.

    Args:
        folder: that lib.train wrote.
        replace: replace the run that is stored.
    """
    run = lib.load(folder, device="cpu")
    names = {(kept.paper, kept.variant): name for name, kept in TRAINED.items()}
    model = run.config["paper"], run.config["variant"]
    if model not in names:
        raise RunError(
            f"{folder}: a run of {', '.join(model)}; the project keeps none of this model"
        )
    to = trained_folder(names[model])
    if (to / "config.json").exists() and not replace:
        raise RunError(f"{to} holds a run already: give --replace to replace it")
    weights = {
        name: (value.half() if value.is_floating_point() else value).contiguous()
        for name, value in weights_of(run.model).items()
    }
    write_whole(to / "best.safetensors", save(weights, {"meta": json.dumps({"step": run.step})}))
    write_json(to / "config.json", {**run.config, "weights": "best"})
    write_whole(to / "metrics.jsonl", "".join(json.dumps(m) + "\n" for m in run.metrics))
    run.encoder.save(to)
    print(to)


def score(
    name: str, /, *, dataset: str = "", documents: int | None = None, output: Path | None = None
) -> None:
    """Make the table of a kept run on test documents.

    Args:
        name: of its folder.
        dataset: by default the corpus that it was trained on.
        documents: the first so many; by default 200.
        output: by default table.json beside the run.
    """
    kept = TRAINED[one_of(name, TRAINED, "trained run")]
    run = lib.load(trained_folder(name))
    corpus = dataset or run.config["corpus"]
    texts = unseen(load_corpus(corpus), "test", [run.config["corpus"]], documents or kept.documents)
    systems = _systems(kept, run, texts)
    words = kept.words if kept.cut else None
    scored = {
        **about(run, corpus, texts, "test"),
        "parts": score_systems(systems, texts, run.options, words),
    }
    command = ["python", "-m", "companion.trained", "score", name]
    if dataset:
        command += ["--dataset", scored["corpus"]]
    about_table = table_of(kept, systems), {label: [scored] for label in systems}, scored["corpus"]
    numbers = table_numbers(*about_table, run.config["preset"], shlex.join(command))
    for metric in ("R-1", "R-2", "R-Lsum"):
        del numbers["rows"][-1]["scores"][metric]  # of the references against themselves
    numbers = {"table": "trained", **numbers, "hours": round(run.all_hours, 2)}
    write_json(output or trained_folder(name) / "table.json", numbers)
    render()
    print(markdown(numbers))


def table_of(kept: TrainedRun, systems: Iterable[str]) -> Table:
    """Describe the table of a trained run: the model's two rows first, the references last."""
    plain, ruled, *others, references = systems
    rows = [Row(label, variant=kept.variant, part=label) for label in (plain, ruled)]
    rows += [Row(label, part=label) for label in (*others, references)]
    pairs = [(other, of_model) for of_model in (plain, ruled) for other in others] + [
        (plain, ruled)
    ]
    return Table(
        kept.paper,
        f"{kept.title}, the trained run",
        tuple(rows),
        tuple(pairs),
        measure="repetition",
    )


def _systems(kept: TrainedRun, run: Run, texts: list[Document]) -> dict[str, list[list[str]]]:
    """Make the summaries of each system, by name."""
    encoded, systems = run.encode(texts), {}
    for how, size in DECODINGS.items():
        decode = replace(run.decode, block_ngrams=size)
        systems[f"{kept.title}, {how}"] = summarize(run.model, encoded, run.vocabulary, decode)
    leads = [cut(d.sentences, kept.words, run.options, d.tokenised) for d in texts]
    systems[f"Lead ({kept.words} words)"] = leads
    if kept.cut:  # a headline is no choice of sentences
        letters = counted_in(texts)
        central = [lexrank(d.sentences, kept.words, all_letters=letters) for d in texts]
        systems[f"LexRank (sentences, {kept.words} words)"] = central
    systems["References"] = [d.summary for d in texts]
    return systems


main = partial(run_command, "companion.trained", __doc__, {"keep": keep, "score": score})

if __name__ == "__main__":
    main()
