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

1. The runs that the project keeps, and how each model prepares the same paper before reading it.
2. Every summary cut to the same length: ROUGE with intervals, repetition, copying and time; and what it has that its paper does not.
3. Which of the differences are real: a paired bootstrap.
4. Three papers with every model's summary side by side; a form to let people judge.

With the parameters as they are, the page opens the kept runs (`trained`), takes about a minute on two CPU cores and needs no network. With
another `dataset`, `preset` or `steps` it first trains every model, with the command that everybody uses, each in a process of its own. With `preset="demo"` this takes two minutes
and shows what training costs, not what the models can do. Each model is explained on its own page.
"""

# %% tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
preset: str = ""  # empty: the kept runs; demo: two minutes on a CPU; paper: for GPUs
steps: int = 0  # training steps of every model; 0: as many as each preset says
documents: int = 30  # how many test documents are summarized and scored
seed: int = 0  # of weights, batches and bootstrap

# %% jupyter={"source_hidden": true} tags=["hide-input"]
from lib.pages.parameters import check_parameters

check_parameters(globals())

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import lib
from lib.evaluation.bootstrap import interval, no_interval, paired_bootstrap
from lib.data.corpora import anthology_year, load_corpus
from lib.evaluation.baselines import lexrank, oracle
from lib.pages.figures import interval_bars
from lib.runs.search import summarize
from lib.human.sheets import write_summaries
from lib.results.kept import render
from lib.pages.runs import measured, unseen_papers
from lib.pages.shown import PageFigures, Passages, clip, figures_folder, show_tables
from lib.pages.summaries import summary_row, support_row
from lib.papers import PAPERS
from lib.results.scores import score_systems
from lib.system.files import trained_folder, work_folder, write_json
from lib.system.fingerprints import code_digest, digest
from lib.papers.tables import DECODINGS

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

If the parameters ask for training, the page runs `python -m lib.train` in a process of its own for each model, so that the memory of each model is measured alone. What was measured once for the same
settings and code is not done again.
"""

# %%
code = code_digest("lib.train")  # and all that it imports
made_of = digest([dataset, preset, steps, seed, corpus.identity, code])
here = work_folder() / f"compare-{made_of}"
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
    (first,) = run.encode(texts[:1])
    units = "paragraphs, the title first" if run.options.of_paragraphs else "sentences"
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
Each model keeps the preprocessing of its own paper, so each model reads a different part of the text. Read-Again was made for headlines: its kept run has learned from news, reads the beginning
and writes about seven words. It is here because without it the comparison would not cover the four papers. *training* is what the run took: of the kept runs, hours on one core (*HT + copying*: on two). *Only to be copied* are words of the text that are not in the vocabulary: the model can write them only by copying; pieces leave no such words.

# 2. Two tables

The table shows ROUGE F1 in percent with 95% bootstrap intervals over documents. Every summary is cut to the same number of words. **R-Lsum** is the summary-level R-L. *repeated* is the share of
trigrams that a summary has said before. *copied* is the share of its 5-grams that stand in the paper. *a summary* is the time of
beam search for one document, with all hypotheses of a batch at once.

Lead, LexRank and the oracle read the whole paper. The oracle sees the reference and shows about how far one can get by choosing sentences. Each model decodes by plain beam search, as its paper does, and again with
trigram blocking. The trigrams are of words, or of pieces if the model writes pieces (both hierarchical transformers).
"""

# %%
longest = 200 if kept else max(run.decode.max_length for run, _ in runs.values())
by_rank = [lexrank(document.sentences, longest) for document in texts]
best = [oracle(document.sentences, document.summary) for document in texts]
systems = {
    f"Lead ({longest} words)": [document.sentences for document in texts],
    f"LexRank (sentences, {longest} words)": by_rank,
    f"Oracle (sentences, {longest} words)": best,
}
milliseconds = {}
for name, (run, _) in runs.items():
    encoded = run.encode(texts)
    for how, size in DECODINGS.items():
        rule = replace(run.decode, block_ngrams=size)
        begun = time.perf_counter()
        written = summarize(run.model, encoded, run.vocabulary, rule)
        taken = (time.perf_counter() - begun) / len(texts)
        milliseconds[f"{name}, {how}"] = 1000 * taken
        systems[f"{name}, {how}"] = written
options = next(iter(runs.values()))[0].options  # cuts texts into words, for all
parts = score_systems(systems, texts, options, longest)

# %%
rows = {}
for name, part in parts.items():
    taken = f"{milliseconds[name]:.0f} ms" if name in milliseconds else ""
    rows[name] = {**summary_row(part, seed), "a summary": taken}
comparison = pd.DataFrame.from_dict(rows, orient="index")
if set(comparison["distinct"]) == {"100%"}:  # no two papers have the same summary
    comparison = comparison.drop(columns="distinct")
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
render()  # docs/reproduce.md shows the committed one
rouge_1 = {name: [r[0] for r in part["rouge"]] for name, part in parts.items()}
series = {how: {} for how in ("chosen from the text", *DECODINGS)}
for name, values in rouge_1.items():
    how = next((how for how in DECODINGS if name.endswith(how)), "chosen from the text")
    series[how][name.removesuffix(f", {how}")] = interval(values, seed).drawn
over = no_interval(len(texts), "paper") or "its 95% interval over papers"
figures.show(
    interval_bars, f"{caption}: R-1 with {over}.", "compare_rouge",
    series=series, xlabel="ROUGE-1, F1 in percent",
)  # fmt: skip

# %% [markdown]
r"""
ROUGE does not say whether a summary keeps to its paper. The second table shows what of the same summaries is **not in the text**, in percent: numbers (1,635 is 1635; `<dig>` is none), names (words that the papers
write with a capital inside of sentences), words, and pairs of neighbouring words. The last column is the share of sentences that *one* sentence of the paper carries: it has at least half of their words, and rare words
count more. Only spelling is compared, so a number that the paper has for something else is not seen ([more](../docs/reproduce.md#what-is-not-in-the-text)).
"""

# %%
abstracts = {"References": [document.summary for document in texts]}
scored = {**parts, **score_systems(abstracts, texts, options, longest)}
plain, ruled = (f", {how}" for how in DECODINGS)
shown = [name for name in scored if name.endswith(ruled)] + list(abstracts)
support = {name.removesuffix(ruled): support_row(scored[name]) for name in shown}
pd.DataFrame.from_dict(support, orient="index")

# %% [markdown]
r"""
**What to see.** None of the models has learned from these papers. Mem2Mem with trigram blocking is level with LexRank, and both are far above Lead. The windowed model is seven points below Mem2Mem, although on
the corpus that both have learned from it is only a point below (48.2 and 49.1 R-1). In these papers it seldom reads the conclusion, and not where it expects it
([its page](windowed.ipynb) changes the order of sections). With plain beam search, both models repeat themselves: four in ten of Mem2Mem's trigrams and six in ten of the windowed model's have been said before.

The hierarchical transformer has learned from as many papers, but it is eight and a half points below Lead: nothing in it copies, and it takes little from the text ([its page](hierarchical_transformer.ipynb)
measures that). With copying, which is ours and not the paper's (*HT + copying*), it is level with Lead here, and eight points above Lead on the corpus that it has learned from. Read-Again answers with seven words of news, as it was taught.

By ROUGE the windowed model and *HT + copying* are equal (R-1 38.5 and 39.0). By their numbers they are not: every number that the windowed model writes stands in its paper, but 16.9% [11.4, 22.8] of those of *HT + copying* do not. It spells
numbers in pieces, and the windowed model copies them whole. The abstracts have 6.8% [2.1, 12.7], such as numbers of tables. Mem2Mem writes no number of its own either, which does not make the numbers right: *60–83°C* was the age of
people in another study. Without copying, 28% [9, 60] of the names and 64% [60, 68] of the word pairs that the hierarchical transformer writes are not in the paper.

# 3. Which differences are real

The intervals of two systems may overlap although one system is better on nearly every document, because both scores depend on how hard the
documents are. The paired bootstrap draws the same documents for both systems and looks at the difference (Koehn 2004). The table shows R-1, row minus
column; the models decode with trigram blocking. A star means that the 95% interval of the difference excludes 0; of fewer than ten papers none can be had.
"""


# %%
def difference_shown(first, second):
    if first == second:
        return ""
    found = paired_bootstrap(rouge_1[second], rouge_1[first], seed)
    return f"{found.mean:+.1f}{'*' if found.is_real else ''}"


names = [name for name in parts if not name.endswith(plain)]
compared = {name.removesuffix(ruled).split(" (")[0]: name for name in names}
differences = {
    b: {a: difference_shown(compared[a], compared[b]) for a in compared}
    for b in compared
}
pd.DataFrame(differences)

# %% [markdown]
r"""
**What to see.** Four of the 28 differences have no star: LexRank and Mem2Mem (0.6), windowed model and Lead (1.3), *HT + copying* and Lead (1.3), windowed model and *HT + copying* (0.0). A missing star does not mean that
two systems are equal, only that 30 papers do not tell them apart. And if there were no difference at all, one or two of 28 would have a star by luck.

There is one seed for each model, so a star says that these two *runs* differ on documents like these. To know whether the two *models* differ, one needs several runs of each. For the rows of one paper,
`snakemake -c2 mem2mem_table2` makes three runs of each row and draws seeds as well as documents. With `preset` and `seed` this page trains other runs of all four.

# 4. Three papers, every model

Below are the beginnings of the summaries. The first three rows of each paper are the authors' own words.
"""

# %%
# papers of the ACL Anthology may be quoted from 2016 on
recent = [dataset != "aclsum" or anthology_year(doc.id) >= 2016 for doc in texts]
quotable = np.flatnonzero(recent).tolist()[:3]


def three_summaries(i):
    """Reference, first sentences and all summaries of one document."""
    rows = {"reference": texts[i].summary, "Lead (3 sentences)": texts[i].sentences[:3]}
    for name, (run, _) in runs.items():
        rows[name] = run.readable(texts[i], systems[f"{name}{ruled}"][i])
    column = [(system, clip(" ".join(found), 60)) for system, found in rows.items()]
    return Passages([("title", texts[i].title or texts[i].id), *column])


three_summaries(quotable[0])

# %%
three_summaries(quotable[min(1, len(quotable) - 1)])

# %%
three_summaries(quotable[min(2, len(quotable) - 1)])

# %% [markdown]
r"""
**What to see.** Mem2Mem's sentences are about the paper and use its words, but they often get wrong who was compared with whom. The hierarchical transformer writes the frame of an abstract (*the aim of this study was to*) around
things that are not in the paper. With copying, it takes whole clauses from the paper and joins them wrongly (*a total of 1, 1,635 men and women*). The windowed model begins like the paper's first sentences, most of
them copied, and goes on with the paper's methods. Read-Again, made for news dispatches of 1987, turns the paper into a dispatch.

# 5. Let people judge

The next cell writes the summaries of every system as lines of JSON, each beside its document. One command draws documents and writes a blinded form for a browser, and the same form
as CSV. Another command reads the filled form and gives the scores and the agreement of the raters (`python -m lib.human --help`):
"""

# %%
for name in compared:
    path = work_folder() / "summaries" / f"{name}.jsonl"
    write_summaries(path, texts, systems[compared[name]], dataset)
    print(f"{name:<25} {path.relative_to(work_folder().parent)}")
print("\npython -m lib.human sheet runs/rating --documents 20 Mem2Mem=FILE ...")
print("python -m lib.human scores runs/rating")

# %% [markdown]
r"""
# 6. Exercises

Two functions of at most six lines each. Write one in place of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`teaching.md`).
"""

# %%
import numpy as np

from lib.exercises.compare import check, progress

# %% [markdown]
r"""
## Compute

**1.** *Find the bug.* This is somebody's bootstrap of the difference between two systems (section 3). It finds hardly any difference real:

```python
def interval_of_difference(first, second):
    random = np.random.default_rng(0)
    a, b = (random.choice(x, (2000, len(x))).mean(1) for x in (first, second))
    return np.percentile(b - a, [2.5, 97.5])
```

Write it right. (2 points, 10 minutes)
"""


# %%
def interval_of_difference(first, second):
    """Ends of the 95% interval of the mean of second - first, two numbers.

    first, second: arrays of scores, of the same documents in the same order.
    """
    raise NotImplementedError


# %%
check(1, interval_of_difference)

# %% [markdown]
r"""
<details><summary>Hint</summary>

Some documents are hard for every system. Which documents do the two means here come from?

</details>
<details><summary>Solution</summary>

```python
def interval_of_difference(first, second):
    random, n = np.random.default_rng(0), len(first)
    drawn = random.integers(0, n, (2000, n))
    return np.percentile((second - first)[drawn].mean(1), [2.5, 97.5])
```

The two means were of different documents, so the interval held how much documents differ from each other. The same documents have to be drawn for both. (`lib.evaluation.bootstrap.paired_bootstrap` is the library's.)

</details>
"""

# %% [markdown]
r"""
## Derive

**2.** Two systems differ by `difference` on average, and the differences on single documents have the standard deviation `spread`. The mean of so many documents is nearly normally distributed. Of how many documents would the difference get a star (section 3)? LexRank and Mem2Mem, 0.6 apart, have none on 30 papers. (3 points, 10 minutes)
"""


# %%
def documents_for_a_star(difference, spread):
    """Two numbers in, one out: the documents; 5% more or less does not matter."""
    raise NotImplementedError


# %%
check(2, documents_for_a_star)

# %% [markdown]
r"""
<details><summary>Hint</summary>

How wide is a 95% interval of a mean? It has to end before 0.

</details>
<details><summary>Solution</summary>

```python
def documents_for_a_star(difference, spread):
    return (1.96 * spread / difference) ** 2
```

The half-width is $1.96\,\text{spread}/\sqrt n$. Half the difference needs four times the documents.

</details>
"""

# %%
progress()

# %% [markdown]
r"""
**To go on with, without a check.** Run the page with `preset="demo"`. Which columns of the table change, and which of them say something about the papers?
"""

# %% [markdown]
r"""
# Where to go from here

* `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder` trains the four on your own documents and compares them.
* `snakemake -n` lists every table and figure of the four papers; [`papers.md`](../papers.md) says what they show.
"""
