"""Helpers of the Read-Again page: a model that copies, step by step, and the checks of the page's
equations."""

import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from IPython.display import Markdown
from torch import Tensor, nn

from companion.claims.verdicts import Effect, Setting, effect_of
from companion.pages.checks import Checks, gradients
from companion.pages.figures import interval_bars
from companion.pages.frames import Frames
from companion.pages.shown import PageFigures, Prediction
from companion.pages.steps import Step, best_words, decoding_frames
from companion.tasks.short_news import WRITTEN, dispatches, reader
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, UNK
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.models.read_again import ENCODERS, ReadAgain, ReadAgainConfig

EQUATIONS = {"gru": "(1)-(3)", "lstm": "(7)", "read-again gru": "(4)-(6)", "read-again lstm": "(8)"}


def station(
    name: str,
    figures: PageFigures,
    more: dict[str, dict[str, Effect]] | None = None,
    drawn: Any = None,
) -> Prediction | Markdown:
    """Show a station of `read_again.toml`.

    more: rows that are measured on the page, {series: {label: effect}}; in the answer they follow
    the stored ones. drawn: a figure of another kind, instead of intervals.
    """
    stored = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[name]
    series: dict[str, dict[str, Effect]] = {}
    for row in stored.pop("rows", ()):
        named, value = row.pop("series", ""), row.get("published", 0)
        found = Effect(value, value, value, 1) if value else effect_of(Setting(**row))
        series.setdefault(named, {})[row["label"]] = found
    series |= more or {}
    answer = stored["answer"].format(
        *(found for rows in series.values() for found in rows.values())
    )
    if "question" not in stored:
        return Markdown(answer)
    if drawn is None:
        bars = {
            named: {label: [found.mean, found.low, found.high] for label, found in rows.items()}
            for named, rows in series.items()
            if named
        }
        axis = {"xlabel": stored["xlabel"], "zero": stored.get("zero", False)}
        drawn = figures.show(interval_bars, stored["caption"], series=bars, **axis)
    return Prediction(stored["question"], stored["choices"], answer, [drawn])


@torch.no_grad()
def copying_frames(
    model: ReadAgain, document: EncodedDocument, ids: Sequence[int], words: Sequence[str]
) -> Frames:
    """Make a frame for each word that a model writes. It has the text twice: shaded by attention,
    and by copying.

    ids: of the words that are written; words: one for each id, at the end those that the vocabulary
    lacks.
    """
    state = model.eval().encode(make_batch([document], model.config.vocab_size))
    output, _ = model.decode(torch.tensor([[BOS, *ids[:-1]]]), state)
    both = torch.cat([model.generate(output.features), output.copy], -1)[0].softmax(-1)
    text = [words[int(i)] for i in document.source]
    steps = []
    for word, attends, P in zip(ids, output.attention[0], both):
        generates, copies = P.split([model.config.vocab_size, len(text)])
        best = {
            "attends to": best_words(attends, text),
            f"copies ({copies.sum():.2f})": best_words(copies, text),
            f"generates ({generates.sum():.2f})": best_words(generates, words),
        }
        steps.append(Step(words[word], [*attends.tolist(), *copies.tolist()], best))
    return decoding_frames([text, text], steps, ["attends to:", "copies:"])


def embeddings(model: ReadAgain, document: EncodedDocument) -> Tensor:
    """Return the embeddings of a document's words, as the encoder reads them: [n, e]."""
    return model.source_embedding(make_batch([document], model.config.vocab_size).source[0])


def gates(x: Tensor, h: Tensor, gru: Any) -> tuple[Tensor, Tensor]:
    """Compute z, as the paper has it, and h-tilde of PyTorch's GRU, for a word [..., e] and a state
    [..., d]."""
    xr, xz, xn = nn.functional.linear(x, gru.weight_ih_l0, gru.bias_ih_l0).chunk(3, -1)
    hr, hz, hn = nn.functional.linear(h, gru.weight_hh_l0, gru.bias_hh_l0).chunk(3, -1)
    return 1 - torch.sigmoid(xz + hz), torch.tanh(xn + torch.sigmoid(xr + hr) * hn)


def seconds_a_headline(size: int, copy: bool, repeats: int = 5) -> list[float]:
    """Measure how long beam search takes for one headline, in a model of the paper's width with
    random weights."""
    model = ReadAgain(ReadAgainConfig(size, source_vocab_size=5_000, copy=copy))
    batch, taken = make_batch([EncodedDocument.of("", range(100, 130), [30], [5, EOS])], size), []
    for _ in range(repeats):
        started = time.perf_counter()
        beam_search(model, batch, DecodeConfig(beam=10, min_length=8, max_length=8))
        taken.append(time.perf_counter() - started)
    return sorted(taken)


def ragged() -> list[EncodedDocument]:
    """Make texts of different lengths, with names that neither vocabulary has; the last has a
    single sentence."""
    short = EncodedDocument.of("short", [7, 4, 7], [3], [7, UNK, EOS], ["okapi"])
    return [*dispatches(2, 5), replace(short, source_ids=np.array([UNK, 4, UNK], np.int32))]


def check_states(
    checks: Checks, read: Callable[[EncodedDocument, ReadAgain], tuple[Tensor, Tensor]]
) -> None:
    """Compare the states of words, in models with random weights, with those of a padded batch."""
    for name in ENCODERS:
        model = reader(1, name).double()
        states = model.encode(make_batch(ragged(), len(WRITTEN))).words
        for document, ours in zip(ragged(), states):
            found = read(document, model)[0]
            checks.close(
                found,
                ours[: len(found)],
                EQUATIONS.get(name, "(9)-(11)"),
                f"states of words, {name}",
            )


def check_losses(checks: Checks, loss: Callable[[EncodedDocument, ReadAgain], Tensor]) -> None:
    """Compare the mean loss of texts, and all gradients, with those of a padded batch."""
    for name in ENCODERS:
        model = reader(1, name).double()
        naive = torch.stack([loss(document, model) for document in ragged()]).mean()
        ours = model.loss(make_batch(ragged(), len(WRITTEN)))["loss"]
        checks.close(naive, ours, "(1)-(18)", f"loss, {name}")
        checks.gradients(gradients(model, naive), gradients(model, ours), "(1)-(18)")
