"""Measure how references are marked with slides: the windows of their links, before and after
"never goes back".

    python -m companion.studies.marking trained/windowed --dataset pmc-sample \\
        --output figures/windowed_links.json

Each reference sentence is linked to the source sentence that is most like it, by the run's
embeddings ("embeddings", as in training), or to one that is drawn ("random", mean of 20 draws).
Three rules make windows of the links: "link alone"; "never goes back", the rule of training, by
which no window is earlier than the one before; and "best path", the windows that never go back and
have the largest sum of similarities.

right: share of the reference sentences copied from a known source sentence
(`companion.studies.windows`) that get its window; last, between: shares of all reference words in
the last window, and in those between it and the first. Texts of two windows are left out.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from companion.stored import difference_row, open_store
from companion.studies.windows import SentenceLists, embeddings_of, open_papers
from lib.decoding.run import Run
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.papers.windowed.windows import best_path, windows_of
from lib.system.command_line import run_command

DRAWS = 20
LINKS = "embeddings", "random"
ALONE, FORWARD, PATH = RULES = "link alone", "never goes back", "best path"
MEASURES = "right", "last", "between"
PAIRS = [  # the second minus the first
    *(((links, ALONE), (links, FORWARD)) for links in LINKS),
    (("embeddings", FORWARD), ("embeddings", PATH)),
    (("embeddings", ALONE), ("embeddings", PATH)),
    *((("random", rule), ("embeddings", rule)) for rule in RULES),
]


def study(run: Path, /, *, dataset: str, documents: int = 50, output: Path | None = None) -> None:
    """Measure how references are marked.

    Args:
        run: the folder of a run with windows.
        dataset: a corpus; its test documents are read.
        documents: how many of them, from the first.
        output: a JSON file for the numbers.
    """
    opened, papers, about = open_papers(run, dataset, documents)
    store = open_store(output, "how references are marked", about)
    counts = store.part("counts", lambda: count(opened, papers))
    store.numbers.pop("shares", None)
    store.numbers.pop("effects", None)
    for name, row in store.part("shares", lambda: shares(counts)).items():
        print(f"{name}: {row}")
    for effect in store.part("effects", lambda: effects(counts)):
        print("{name}: {mean:+.1f} [{low:+.1f}, {high:+.1f}] {what}".format(**effect))


def count(run: Run, documents: Sequence, min_windows: int = 3) -> dict[str, list[list[float]]]:
    """Count for each kind of link and rule, in each paper with at least so many windows: right
    windows and sentences with a known source; words in the last window, in those between, and all
    words."""
    vectors, random, counts = embeddings_of(run), np.random.default_rng(0), {}
    for document in run.encode(documents):
        sentences = SentenceLists.of(document, run.options.lower)
        windows = windows_of(document, run.model.size, run.model.stride)
        if windows.max() + 1 < min_windows:
            continue
        lengths, copies = np.array([len(s) for s in sentences.reference]), sentences.copies
        drawn = [random.random((len(lengths), len(windows))) for _ in range(DRAWS)]
        for links, tables in {
            "embeddings": [sentences.similarities(vectors)],
            "random": drawn,
        }.items():
            for rule in RULES:
                rows = []
                for table in tables:
                    found = apply_rule(rule, table, windows)
                    right = sum(found[i] == windows[j] for i, j in copies)
                    last, between = found == windows.max(), (found > 0) & (found < windows.max())
                    words = lengths[last].sum(), lengths[between].sum(), lengths.sum()
                    rows.append([right, len(copies), *words])
                counts.setdefault(f"{links}, {rule}", []).append(np.mean(rows, axis=0).tolist())
    return counts


def apply_rule(rule: str, similar: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Find the window of each of S reference sentences. similar: [S, L], to source sentences of
    `windows` [L]."""
    if rule == PATH:
        return best_path(similar, windows)
    linked = windows[similar.argmax(1)]
    return np.maximum.accumulate(linked) if rule == FORWARD else linked


def _parts(rows: Sequence[Sequence[float]], measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators, in percent, and denominators of a share, by paper."""
    right, known, last, between, words = np.array(rows).T
    return {
        "right": (100 * right, known),
        "last": (100 * last, words),
        "between": (100 * between, words),
    }[measure]


def shares(counts: dict) -> dict[str, dict[str, str]]:
    """Compute the shares with intervals over papers."""
    found = {}
    for name, rows in counts.items():
        parts = {measure: _parts(rows, measure) for measure in MEASURES}
        found[name] = {
            measure: str(interval(a, weights=weights)) for measure, (a, weights) in parts.items()
        }
    return found


def effects(counts: dict) -> list[dict]:
    """Compare the shares in pairs, in points. values: of each paper, weighted by its sentences or
    words."""
    found = []
    for pair in PAIRS:
        first, second = map(", ".join, pair)
        for measure in MEASURES:
            (a, wa), (b, wb) = (_parts(counts[name], measure) for name in (first, second))
            difference, values = (
                paired_bootstrap(a, b, weights=(wa, wb)),
                (b - a) / np.maximum(wa, 1),
            )
            row = difference_row(f"{measure}: {second} - {first}", "points", difference, values)
            found.append({**row, "weights": wa.tolist()})
    return found


main = partial(run_command, "companion.studies.marking", __doc__, study)

if __name__ == "__main__":
    main()
