# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
r"""
# The models, on the same documents

The four papers were published with different corpora, scorers and budgets. Here their models read and summarize the same papers, and one scorer
compares them with each other and with systems that learn nothing.

**What you will see**

1. The runs that the project keeps, and what each model makes of the same paper before it reads it.
2. One table: every summary cut to the same length; ROUGE with intervals, repetition, copying, size and time.
3. Which of the differences are real: a paired bootstrap.
4. Three papers with every model's summary side by side; a form to let people judge.

With the parameters as they are, the page opens the kept runs (`trained`), takes about a minute on two CPU cores and needs no network. With
another `dataset` or `preset` it trains every model first, by the command that everybody uses, each in a process of its own; `preset="demo"` takes two minutes for
that, and shows what training costs, not what the models can do. Each model's own page explains it.
"""

# %% tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
preset: str = ""  # empty: the kept runs; demo: two minutes on a CPU; paper: for GPUs
steps: int = 0  # training steps of every model; 0: as many as each preset says
documents: int = 30  # how many test documents are summarized and scored
seed: int = 0  # of weights, batches and bootstrap

# %% jupyter={"source_hidden": true} tags=["hide-input"]
from lib.parameters import check_parameters

check_parameters(globals())

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import lib
from lib.bootstrap import interval, paired_bootstrap
from lib.data.corpora import anthology_year, load_corpus
from lib.extractive import lexrank, oracle
from lib.figures import interval_bars
from lib.generate import summarize
from lib.human.sheets import write_summaries
from lib.kept_tables import render
from lib.page_tools import clip, figures_folder, measured, summary_row, unseen_papers
from lib.papers import PAPERS
from lib.score_runs import score_systems
from lib.shown import PageFigures, Passages, show_tables
from lib.storage import code_digest, digest, project_root, trained_folder, write_json
from lib.papers.paper import DECODINGS

kept = not (dataset or preset or steps)
dataset, preset = dataset or ("pmc-sample" if kept else "aclsum"), preset or "demo"
corpus = load_corpus(
    dataset, errors="skip"
)  # a name or folder that cannot be read ends the page here
texts = unseen_papers(corpus, documents)
references = [document.summary for document in texts]
figures = PageFigures(figures_folder())
show_tables()

# %% [markdown]
r"""
# 1. The runs, and what they read of one paper

Where the parameters ask for training, it is `python -m lib.train` in a process of its own for each model, so that its memory is its own; what was measured once for the same
settings and code is not done again.
"""

# %%
code = code_digest("lib.train")  # and all that it imports
made_of = digest([dataset, preset, steps, seed, corpus.identity, code])
here = project_root() / "runs" / f"compare-{made_of}"
# otherwise two at a time, a core for each
alone = torch.cuda.is_available() or preset != "demo"


def train_here(model, paper):
    """A run of a model, trained at the comparison's preset, and what that takes."""
    what = [model, "--preset", paper.comparison.get(preset, preset)]
    what += ["--dataset", dataset, "--errors", "skip", "--seed", str(seed)]
    what += ["--steps", str(steps)] if steps else []
    what += ["--output", str(here / model), "--resume"]
    threads = None if alone else 1
    cost = measured(here / model, "training", "lib.train", *what, threads=threads)
    return lib.load(here / model), f"{cost['seconds']:.0f} s, {cost['gb']:.2f} GB"


# %%
def kept_run(folder, paper):
    run = lib.load(trained_folder(folder))
    return run, f"{run.hours:.1f} h"


# %%
chosen = {paper.title: (name, paper) for name, paper in PAPERS.items()}
if kept:
    chosen = {
        paper.title_of(variant): (folder, paper)
        for paper in PAPERS.values()
        for folder, variant in paper.kept_runs.items()
    }
work, started = kept_run if kept else train_here, {}
with ThreadPoolExecutor(1 if alone or kept else 2) as pool:
    for title, pair in reversed(chosen.items()):
        started[title] = pool.submit(work, *pair)
    runs = {title: started[title].result() for title in chosen}

# %%

read = {}
for name, (run, cost) in runs.items():
    (first,) = run.encode(texts[:1], run.encoder)
    units = "paragraphs, the title first" if run.paragraphs else "sentences"
    read[name] = {
        "variant": run.config["variant"],
        "parameters": f"{sum(p.numel() for p in run.model.parameters()):,}",
        "trained on": f"{run.config['documents']['train']:,}",
        "of": Path(run.config["corpus"]).name,
        "training": cost,
        "symbols known": f"{len(run.vocabulary):,}",
        "words (pieces) read of the first paper": f"{len(first.source):,}",
        "in": f"{len(first.sentence_lengths)} {units}",
        "only to be copied": len(first.unknown),
    }
pd.DataFrame.from_dict(read, orient="index").T

# %% [markdown]
r"""
Each model keeps its own paper's preprocessing, so each reads another part of a paper. Read-Again was made for headlines: its kept run has learned from news, reads the beginning
and writes some seven words; it is here because the comparison would not be one of the four papers without it. *training* is hours of one core; of *HT + copying*, of two.

# 2. One table

F1 in percent with 95% bootstrap intervals over documents, every summary cut to the same number of words. **R-Lsum** is the summary-level R-L; *repeated*, the share of trigrams that
a summary has said before; *copied*, the share of its 5-grams that stand in the paper; *distinct*, the share of summaries that no other paper has; *a summary*, the time of
beam search for one document, all hypotheses of a batch at once. Lead, LexRank and the oracle read the whole paper; the oracle sees the reference and shows about
how far choosing sentences can go. Each model decodes as its paper does, and with no trigram twice: of words, or of pieces where it writes pieces (the hierarchical transformer).
"""

# %%
longest = 200 if kept else max(run.decode.max_length for run, _ in runs.values())
systems = {
    "Lead": [document.sentences for document in texts],
    "LexRank": [lexrank(document.sentences, longest) for document in texts],
    "Oracle": [oracle(document.sentences, document.summary) for document in texts],
}
milliseconds = {}
for name, (run, _) in runs.items():
    encoded = run.encode(texts, run.encoder)
    for how, size in DECODINGS.items():
        rule = replace(run.decode, block_ngrams=size)
        begun = time.perf_counter()
        written = summarize(run.model, encoded, run.vocabulary, rule)
        milliseconds[f"{name}, {how}"] = (
            1000 * (time.perf_counter() - begun) / len(texts)
        )
        systems[f"{name}, {how}"] = written
options = runs["Mem2Mem"][0].options  # one way to cut texts into words for all
parts = score_systems(systems, texts, options, longest)

# %%
rows = {}
for name, part in parts.items():
    taken = f"{milliseconds[name]:.0f} ms" if name in milliseconds else ""
    rows[name] = {**summary_row(part, seed), "a summary": taken}
comparison = pd.DataFrame.from_dict(rows, orient="index")
comparison

# %% jupyter={"source_hidden": true} tags=["hide-input"]
caption = f"The models on the same {len(texts)} papers of {Path(dataset).name}, every summary cut to {longest} words"
table = {
    "table": "compare_table",
    "title": caption,
    "preset": "kept runs" if kept else preset,
}
lines = {name: list(row) for name, row in comparison.T.items()}
write_json(
    figures.folder / "compare_table.json",
    {**table, "columns": list(comparison), "lines": lines},
)
render()  # the README shows the committed one
rouge_1 = {name: [r[0] for r in part["rouge"]] for name, part in parts.items()}
shown = {name: interval(values, seed) for name, values in rouge_1.items()}
figures.show(
    interval_bars, f"{caption}: R-1 with its 95% interval over papers.", "compare_rouge",
    rows={name: [i.mean, i.low, i.high] for name, i in shown.items()}, xlabel="ROUGE-1, F1 in percent",
)  # fmt: skip

# %% [markdown]
r"""
**What to see.** On these papers, which none of the models has learned from, LexRank and Mem2Mem with no trigram twice are level, and both far above Lead. The windowed model is nearly seven points below Mem2Mem, although on
the corpus of both they are a point apart (48.2 and 49.1 R-1): it has learned where in an article of that corpus the conclusion stands, and here something else stands there ([its page](windowed.ipynb) measures that). As their papers decode,
they repeat themselves: four in ten of Mem2Mem's trigrams and six in ten of the windowed model's have been said before. The hierarchical transformer, with as many papers to learn from, is eight points below
Lead: nothing in it copies, and it takes little from the text ([its page](hierarchical_transformer.ipynb) measures that). With copying, which is ours and not the paper's (*HT + copying*), it is level with Lead here and eight points above it on the corpus that it has
learned from; its 230 to 256 pieces make fewer words of these papers than of those (156 and 178), for new names take many pieces. Read-Again answers with seven words of news, as it was taught; no summary of 200 words can be made of them.

# 3. Which differences are real

Intervals of two systems may overlap although one is better on nearly every document: both move with how hard the documents are. The
paired bootstrap draws the same documents for both and looks at the difference (Koehn 2004). Row minus column, R-1, with a star where the
95% interval of the difference excludes 0; models with no trigram twice:
"""


# %%
def difference_shown(first, second):
    if first == second:
        return ""
    found = paired_bootstrap(rouge_1[second], rouge_1[first], seed)
    return f"{found.mean:+.1f}{'*' if found.low > 0 or found.high < 0 else ''}"


plain, ruled = (f", {how}" for how in DECODINGS)
names = [name for name in parts if not name.endswith(plain)]
compared = {name.removesuffix(ruled): name for name in names}
differences = {
    b: {a: difference_shown(compared[a], compared[b]) for a in compared}
    for b in compared
}
pd.DataFrame(differences)

# %% [markdown]
r"""
**What to see.** Four of the 28 differences have no star: LexRank and Mem2Mem (0.6), windowed model and Lead (1.3), *HT + copying* and Lead (1.3), and those two models (0.0). No star does not say that two are equal, only that 30 papers do not tell them apart; and were there no
difference at all, one or two of 28 would have a star by luck.

With one seed for each model, a star says that these two *runs* differ on documents like these. Whether the two *models* do takes several runs of each: for the rows of one paper,
`snakemake -c2 mem2mem_table2` makes three and draws seeds as well as documents; with `seed` this page trains other runs of all four.

# 4. Three papers, every model

The beginnings of the summaries; the first three rows are the authors' own words.
"""

# %%
# papers of the ACL Anthology may be quoted from 2016 on
recent = [dataset != "aclsum" or anthology_year(doc.id) >= 2016 for doc in texts]
quotable = np.flatnonzero(recent).tolist()[:3]


def side_by_side(i):
    """Reference, first sentences and all summaries of one document."""
    rows = {"reference": texts[i].summary, "Lead": texts[i].sentences[:3]}
    rows |= {name: systems[f"{name}{ruled}"][i] for name in runs}
    column = [(system, clip(" ".join(found), 60)) for system, found in rows.items()]
    return Passages([("title", texts[i].title or texts[i].id), *column])


side_by_side(quotable[0])

# %%
side_by_side(quotable[min(1, len(quotable) - 1)])

# %%
side_by_side(quotable[min(2, len(quotable) - 1)])

# %% [markdown]
r"""
**What to see.** Mem2Mem's sentences are about the paper, with its words, and who was compared with whom is often wrong. The hierarchical transformer writes the frame of an abstract (*the aim of this study was to*) around things that are not in the paper; with copying it takes whole clauses, and joins them wrongly (*a total of 1, 1,635 men and women*). The windowed model begins like the paper's first sentences, most of them copied, and goes on with its
methods. Read-Again, made for dispatches of 1987, makes a dispatch of it.

# 5. Let people judge

The summaries of every system are written as lines of JSON, each beside its document. One command draws documents and writes a form for a browser and the same as
CSV, blinded; another reads it back, with the agreement of the raters (`python -m lib.human --help`):
"""

# %%
for name in compared:
    path = project_root() / "runs" / "summaries" / f"{name}.jsonl"
    write_summaries(path, texts, systems[compared[name]])
    print(f"{name:<25} {path.relative_to(project_root())}")
print("\npython -m lib.human sheet runs/rating --documents 20 Mem2Mem=FILE ...")
print("python -m lib.human scores runs/rating")

# %% [markdown]
r"""
# 6. Exercises

A check says how much is right, not what is. Open an answer's fold to see a solution. The part stands on its own set-up cell; `make class` makes a notebook of it (`teaching.md`).
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
import numpy as np

from lib.bootstrap import paired_bootstrap
from lib.exercises import Exercise

# %% [markdown]
r"""
## Compute

**1.** Two systems were scored on the same documents, in the lists `first` and `second`. Return the mean difference, second minus first, and how many documents the second wins: two numbers. `lib.bootstrap.paired_bootstrap` gives the same mean. (2 points)
"""


# %% jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "compare-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["hide-input"]
def difference_and_wins(first, second):
    ### BEGIN SOLUTION
    differences = [b - a for a, b in zip(first, second)]
    return [sum(differences) / len(differences), sum(d > 0 for d in differences)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compare-1-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
asked = Exercise(1, points=2)
scores = np.random.default_rng(0).normal(size=(2, 9))
wanted = [paired_bootstrap(*scores).mean, np.sum(scores[1] > scores[0])]
asked.same("9 documents", lambda: difference_and_wins(*scores), wanted)
### BEGIN HIDDEN TESTS
asked.same("a tie", lambda: difference_and_wins([1.0, 2.0], [1.0, 3.0]), [0.5, 1])
### END HIDDEN TESTS
asked.score()

# %% [markdown]
r"""
**2.** Three people chose the best and the worst of three summaries of one document. Best-worst scaling counts 1 for a best choice, -1 for a worst one, and divides by how often the summary was shown. Return the score of one letter, given the lists of best and of worst choices, one of each a person. (2 points)
"""


# %% jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "compare-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["hide-input"]
def best_minus_worst(letter, best, worst):
    ### BEGIN SOLUTION
    return (best.count(letter) - worst.count(letter)) / len(best)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compare-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
asked = Exercise(2, points=2)
choices = ["A", "A", "C"], ["B", "C", "B"]
asked.same("A", lambda: best_minus_worst("A", *choices), 2 / 3)
### BEGIN HIDDEN TESTS
asked.same("B", lambda: best_minus_worst("B", *choices), -2 / 3)
asked.same("C", lambda: best_minus_worst("C", *choices), 0.0)
### END HIDDEN TESTS
asked.score()

# %% [markdown]
r"""
**To go on with, without a check.** Run the page with `preset="demo"`. Which columns of the table change, and which of them say something about the papers?
"""

# %% [markdown]
r"""
# Where to go from here

* `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder` trains the four on your own documents and compares them.
* `snakemake -n` lists every table and figure of the four papers; `papers.md` has those that were made.
"""
