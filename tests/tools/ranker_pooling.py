"""What the ranker of the hierarchical transformer loses on papers when it pools otherwise than by the maximum of
equations 3 and 5: ROUGE-L recall of its first five paragraphs, on the clusters that the page ranks, three seeds each.

    python -m tests.tools.ranker_pooling           # five minutes on one core
    python -m tests.tools.ranker_pooling --keep    # figures/hierarchical_ranker_pooling.json too
"""

import argparse
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from lib.data.corpora import load_corpus
from lib.data.prepared import PreparedCorpus
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.metrics import longest_common_recall
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig, Pooling
from lib.papers import resolve
from lib.papers.hierarchical_transformer.ranking import best_paragraphs, learned_scores, ranker_training
from lib.system.files import project_root, write_json
from lib.training.folder import load_weights
from lib.training.loop import Recipe, train

CORPUS, SEEDS, FIRST = "aclsum:paragraphs", (0, 1, 2), 5


def trained(wide: PreparedCorpus, options, pooling: Pooling, seed: int) -> ParagraphRanker:
    """The ranker of `lib.papers.hierarchical_transformer.ranking.train_ranker`, with another pooling and seed."""
    torch.manual_seed(seed)
    width = options.ranker_width
    model = ParagraphRanker(ParagraphRankerConfig(len(wide.vocabulary), width, width, pooling=pooling))
    config = replace(ranker_training(options), seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(Recipe("ranker"), model, wide, config, run, progress=False, alone=True)
        load_weights(model, run, "best")
    return model.eval()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="write figures/hierarchical_ranker_pooling.json")
    args = parser.parse_args(arguments)
    demo = resolve("hierarchical_transformer", "demo")
    options, corpus = demo.options, load_corpus(CORPUS, errors="skip")
    wide = options.base.prepare(corpus, demo.documents, progress=False)
    test = wide["test"]
    wanted, recalls = [paper.reference for paper in test], {}
    for pooling in get_args(Pooling):
        models = (trained(wide, options, pooling, seed) for seed in SEEDS)
        chosen = (best_paragraphs(test, learned_scores(model, test), wide.vocabulary, FIRST) for model in models)
        recalls[pooling] = np.stack([longest_common_recall(texts, wanted) for texts in chosen])  # [seeds, papers]
        print(pooling, *recalls[pooling].mean(1).round(2), flush=True)
    against = {name: paired_bootstrap(recalls["max"], of) for name, of in recalls.items() if name != "max"}
    print(*(f"{name} - max: {difference}" for name, difference in against.items()), sep="\n")
    if args.keep:
        numbers = {
            "measured": f"ROUGE-L recall of the first {FIRST} paragraphs, {len(test)} test papers of {CORPUS}",
            "seeds": SEEDS,
            "recall": {name: of.mean(1).round(2).tolist() for name, of in recalls.items()},
            "minus max": {name: asdict(difference) for name, difference in against.items()},
        }
        write_json(project_root() / "figures" / "hierarchical_ranker_pooling.json", numbers)


if __name__ == "__main__":
    main()
