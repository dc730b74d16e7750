"""Measure how much of a summary is in the best paragraphs of its cluster, for several rankings.

    python -m companion.studies.ranking --dataset my/clusters --preset clusters --output r.json

This is Table 1 of Liu and Lapata (2019): ROUGE-L recall of the first paragraphs, joined. The ranker
is trained with three seeds.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lib.data.batch import rows_of
from lib.data.corpus import load_corpus
from lib.data.split import Split
from lib.data.vocabulary import Vocabulary
from lib.evaluation.interventions import mean_row
from lib.evaluation.rouge import longest_common_recall
from lib.papers import resolve
from lib.papers.hierarchical_transformer.ranking import (
    best_first,
    learned_scores,
    paragraph_scores,
    train_ranker,
)
from lib.system.command_line import run_command
from lib.system.files import write_json

SEEDS = (0, 1, 2)
COUNTS = (5, 10, 20, 40)  # L'
_PAIRS = [("similarity", "learned"), ("as they come", "learned"), ("similarity", "by the labels")]


def study(*, dataset: str, output: Path, preset: str = "demo") -> None:
    """Measure all rankings: their means by L', a number for each seed, and differences at each L'.

    Args:
        dataset: a corpus of clusters.
        output: a JSON file for the numbers of each document.
        preset: of the hierarchical transformer.
    """
    setup = resolve("hierarchical_transformer", preset)
    wide = setup.options.base.prepare(load_corpus(dataset), setup.documents)
    test, pieces = wide["test"], wide.vocabulary
    scores = {
        "as they come": [paragraph_scores(test, "order", pieces)],
        "similarity": [paragraph_scores(test, "similarity", pieces)],
        "learned": [
            learned_scores(train_ranker(wide, setup.options, seed=seed), test) for seed in SEEDS
        ],
        "by the labels": [[document.labels for document in test]],
    }
    found = {
        name: np.array([[recalls(test, own, count, pieces) for count in COUNTS] for own in seeds])
        for name, seeds in scores.items()
    }
    name = Path(dataset).name
    numbers = {
        "command": f"python -m companion.studies.ranking --dataset {name} --preset {preset}",
        "documents": len(test),
        "means": {
            name: dict(zip(COUNTS, of.mean(2).T.round(2).tolist())) for name, of in found.items()
        },
        "effects": [
            mean_row(
                f"{second} - {first}, {count} paragraphs",
                "ROUGE-L recall",
                found[second][:, place] - found[first][:, place],
                3,
                seeds=SEEDS,
            )
            for place, count in enumerate(COUNTS)
            for first, second in _PAIRS
        ],
    }
    write_json(output, numbers)


def recalls(
    test: Split, scores: Sequence[np.ndarray], count: int, pieces: Vocabulary
) -> np.ndarray:
    """Compute the ROUGE-L recall of the best `count` paragraphs of each document, in percent."""
    best = [
        " ".join(pieces.text(rows_of(document)[1 + i]) for i in best_first(own)[:count])
        for document, own in zip(test, scores)
    ]
    return longest_common_recall(best, [document.reference for document in test])


main = partial(run_command, "companion.studies.ranking", __doc__, study)

if __name__ == "__main__":
    main()
