# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
r"""
# Four models, the same documents

Mem2Mem, the windowed model, Read-Again and the hierarchical transformer were published on different corpora, with different
scorers and budgets. Here all four read and summarize the same papers, and one scorer compares them with each other and with
systems that learn nothing.

**What you will see**

1. What each model makes of the same paper before it reads it.
2. All four trained by the command that everybody uses, each in a process of its own, so that its memory is its own.
3. One table: ROUGE with intervals, copying, parameters, time and memory.
4. Which of the differences are real: a paired bootstrap.
5. Three papers with every system's summary side by side; a form to let people judge.

With the parameters as they are, the page takes about two minutes on two CPU cores and needs no network. That is a **demo**: 100
training papers and 200 steps for each model. It shows how such a comparison is made; it does not say which of the four is
best. Each model's own page explains it.
"""

# %% tags=["parameters"]
dataset: str = "aclsum"  # a corpus name (aclsum, arxiv, pubmed, ...) or a folder of train, val and test files
preset: str = "demo"  # demo: minutes on two CPU cores; paper: every model at its own paper's sizes, for a GPU
steps: int = 200  # training steps of every model; 0: as many as each preset says
documents: int = 100  # how many test documents are summarized and scored
seed: int = 0  # of weights, batches and bootstrap

# %%
from lib.parameters import check_parameters

check_parameters(globals())

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import torch

from lib.bootstrap import interval, paired_bootstrap
from lib.checks import check_exercise
from lib.data.corpora import anthology_year, load_corpus
from lib.figures import draw, interval_bars, use_style
from lib.human.sheets import read_summaries
from lib.make_tables import render
from lib.page_tools import clip, figures_folder, measured
from lib.papers import PAPERS, resolve
from lib.storage import code_digest, digest, project_root, write_json

corpus = load_corpus(dataset, errors="skip")  # a name or folder that cannot be read ends the page here
as_they_are = (dataset, preset, steps, documents, seed) == ("aclsum", "demo", 200, 100, 0)
figures = figures_folder(as_they_are)
use_style()
pd.set_option("display.max_colwidth", None)

# %% [markdown]
r"""
# 1. One paper, four readings

Each model keeps its own paper's preprocessing; only Read-Again, made for headlines, gets longer texts than its authors gave it. What is left
of the first test paper, in each model's own symbols:
"""

# %%
MODELS_HERE = {paper.title: (model, paper.comparison.get(preset, preset)) for model, paper in PAPERS.items()}
read = {}
for name, (model, size) in MODELS_HERE.items():
    chosen = resolve(model, size)
    prepared = chosen.prepare(corpus, progress=False)
    first = prepared["test"][0]
    units = "paragraphs and title" if chosen.paper.paragraphs else "sentences"
    read[name] = {
        "variant": chosen.variant,
        "symbols read": len(first.source),
        "in": f"{len(first.sentence_lengths)} {units}",
        "symbols known": f"{len(prepared.vocabulary):,}",
        "only to be copied": len(first.unknown),
        "training steps": f"{steps or chosen.train.steps or 'by epochs'}",
        "documents a step": chosen.train.batch_size,
    }
pd.DataFrame.from_dict(read, orient="index")

# %% [markdown]
r"""
# 2. Training and summarizing

`python -m lib.train` and `python -m lib.score`, as on the command line. What was measured once for the same settings and code is not
done again. The seconds hold everything: starting Python, training or writing the summaries, scoring; at demo size, on one core.
"""

# %%
code = code_digest("lib.train", "lib.score")  # and all that they import
here = project_root() / "runs" / f"compare-{digest([dataset, preset, steps, documents, seed, corpus.identity, code])}"
common = ["--dataset", dataset, "--errors", "skip"]
alone = torch.cuda.is_available() or preset != "demo"  # otherwise two at a time, a core for each
threads = None if alone else 1


def train_and_score(model, size):
    """What training and scoring a model takes."""
    folder, length = here / model, ["--steps", str(steps)] if steps else []
    what = [model, "--preset", size, *common, "--seed", str(seed), *length, "--output", str(folder), "--resume"]
    training = measured(folder, "training", "lib.train", *what, threads=threads)
    what = ["run", str(folder), *common, "--documents", str(documents)]
    return {"training": training, "scoring": measured(folder, "scoring", "lib.score", *what, threads=threads)}


# the baselines choose sentences, so they are a paper's whose texts are not paragraphs
model, size = next(pair for pair in MODELS_HERE.values() if not PAPERS[pair[0]].paragraphs)
where = ["--documents", str(documents), "--output", str(here / "baselines.json")]
what = ["baselines", model, "--preset", size, *common, *where]
with ThreadPoolExecutor(1 if alone else 2) as pool:
    started = {name: pool.submit(train_and_score, *pair) for name, pair in reversed(MODELS_HERE.items())}
    unlearned = pool.submit(measured, here, "baselines-cost", "lib.score", *what)
    costs = {name: started[name].result() for name in MODELS_HERE}
    unlearned.result()
pd.DataFrame({
    name: {"training, s": c["training"]["seconds"], "training, GB": c["training"]["gb"],
           "summaries and scores, s": c["scoring"]["seconds"], "summaries and scores, GB": c["scoring"]["gb"]}
    for name, c in costs.items()
}).T  # fmt: skip

# %% [markdown]
r"""
# 3. One table

F1 in percent with 95% bootstrap intervals over documents. **R-Lsum** is the summary-level R-L. *Copied* is the share of a summary's
5-grams that stand in what the model read. *A summary* is the time of beam search for one document, all hypotheses of a batch at once. Lead,
LexRank and the oracle read the whole paper; the oracle sees the reference and is an upper bound for choosing sentences.
"""

# %%
BASELINES = {"Lead": "lead", "LexRank": "lexrank", "Oracle": "oracle"}
scored = {name: json.loads((here / model / "scores.json").read_text()) for name, (model, _) in MODELS_HERE.items()}
untrained = json.loads((here / "baselines.json").read_text())
assert all(found["ids"] == untrained["ids"] for found in scored.values()), "all systems have the same documents"
parts = {label: untrained["parts"][part] for label, part in BASELINES.items()}
parts |= {name: found["parts"]["summaries"] for name, found in scored.items()}


def comparison_row(name):
    """Quality, size, speed and memory of a system."""
    part = parts[name]
    row = {
        metric: str(interval([r[i] for r in part["rouge"]], seed))
        for i, metric in enumerate(("R-1", "R-2", "R-Lsum"))
    }
    row["words"] = f"{part['words']:.0f}"
    if name not in scored:
        return row
    copied, grams = (sum(counts[i] for counts in part["copied"]["5"]) for i in (0, 1))
    found, cost = scored[name], costs[name]
    return row | {
        "copied": f"{100 * copied / max(1, grams):.0f}%",
        "parameters": f"{found['parameters']:,}",
        "training": f"{cost['training']['seconds']:.0f} s, {cost['training']['gb']:.2f} GB",
        "a summary": f"{1000 * found['seconds']['summary']:.0f} ms",
    }


comparison = pd.DataFrame.from_dict({name: comparison_row(name) for name in parts}, orient="index").fillna("")
caption = (
    f"The four models on the same {len(untrained['ids'])} papers of {Path(dataset).name}: "
    f"{untrained['training documents']:,} to train on, {steps or 'as many as the preset says'} steps each"
)
kept = {"table": "compare_table", "title": caption, "preset": preset, "columns": list(comparison)}
write_json(figures / "compare_table.json", {**kept, "lines": {n: list(row) for n, row in comparison.T.items()}})
render()  # the README shows the committed one
comparison.style.set_properties(**{"white-space": "nowrap"})

# %%
rouge_1 = {name: [r[0] for r in part["rouge"]] for name, part in parts.items()}
shown = {name: interval(values, seed) for name, values in rouge_1.items()}
draw(
    interval_bars,
    "compare_rouge",
    figures,
    rows={name: [i.mean, i.low, i.high] for name, i in shown.items()},
    xlabel="ROUGE-1, F1 in percent",
    title=f"{len(untrained['ids'])} test documents of {Path(dataset).name} ({preset} run)",
)

# %% [markdown]
r"""
**What to see.** Whatever is chosen from the paper, even its first sentences, is far ahead of whatever these models write: a hundred papers and 200
steps teach a decoder the sound of an abstract and little else. Quality at this size says nothing about the four; what a step and a
summary cost is a property of the models, and stays.

# 4. Which differences are real

Intervals of two systems may overlap although one is better on nearly every document: both move with how hard the documents are. The
paired bootstrap draws the same documents for both and looks at the difference (Koehn 2004). Row minus column, R-1, with a star where the
95% interval of the difference excludes 0:
"""


# %%
def difference_shown(first, second):
    if first == second:
        return ""
    found = paired_bootstrap(rouge_1[second], rouge_1[first], seed)
    return f"{found.mean:+.1f}{'*' if found.low > 0 or found.high < 0 else ''}"


pd.DataFrame({second: {first: difference_shown(first, second) for first in parts} for second in parts})

# %% [markdown]
r"""
With one seed for each model, a star says that these two *runs* differ on documents like these. Whether the two *models* do takes several seeds:
`snakemake -c2 mem2mem_table2 --config seeds=3` draws seeds as well as documents.

# 5. Three papers, every system

The beginnings of the summaries; the first two rows are the authors' own words.
"""

# %%
texts = {doc.id: doc for doc in corpus.split("test", documents)}
written = {name: read_summaries(here / model / "summaries.jsonl") for name, (model, _) in MODELS_HERE.items()}
quotable = [i for i in untrained["ids"] if dataset != "aclsum" or anthology_year(i) >= 2016][:3]


def side_by_side(name):
    """Reference, first sentences and all summaries of one document."""
    rows = {"reference": " ".join(texts[name].summary), "Lead": " ".join(texts[name].sentences[:3])}
    rows |= {system: found[name]["summary"] for system, found in written.items()}
    frame = pd.DataFrame({texts[name].title or name: {system: clip(text, 60) for system, text in rows.items()}})
    return frame.style.set_properties(**{"text-align": "left", "vertical-align": "top"}).set_table_styles(
        [{"selector": "th", "props": [("text-align", "left"), ("vertical-align", "top")]}]
    )


side_by_side(quotable[0])

# %%
side_by_side(quotable[min(1, len(quotable) - 1)])

# %%
side_by_side(quotable[min(2, len(quotable) - 1)])

# %% [markdown]
r"""
**What to see.** Words of the genre, and in the models that can copy now and then a word of the paper; the transformer over pieces has no way to copy and
writes the same for every paper.

# 6. Let people judge

The summaries of every system lie beside its run, as lines of JSON. One command draws documents and writes a form for a browser and the same as
CSV, blinded; another reads it back, with the agreement of the raters (`python -m lib.human --help`):
"""

# %%
for name, (model, _) in MODELS_HERE.items():
    print(f"{name:<25} {(here / model / 'summaries.jsonl').relative_to(project_root())}")
print("\npython -m lib.human sheet runs/rating --documents 20 Mem2Mem=FILE Windowed=FILE ...")
print("python -m lib.human scores runs/rating")

# %% [markdown]
r"""
# 7. Exercises

Fill the gap; the check tells whether it is right.

**1.** Two systems were scored on the same documents. Return the mean difference, second minus first, and how many documents the second wins, as a list of two numbers.
"""


# %%


def paired_difference(first, second):
    # your code
    return None


check_exercise(
    1, paired_difference, [(([1.0, 2.0, 3.0], [2.0, 2.0, 5.0]), [1.0, 2.0]), (([1.0], [0.0]), [-1.0, 0.0])]
)

# %% [markdown]
r"""
<details><summary>Solution</summary>

```python
def paired_difference(first, second):
    differences = [b - a for a, b in zip(first, second)]
    return [sum(differences) / len(differences), float(sum(d > 0 for d in differences))]
```

</details>

**2.** Three people chose the best of three summaries of one document: "A", "A" and "C". Best-worst scaling counts 1 for a best choice, -1 for a worst one, and divides by
how often the summary was shown. Return the score of one letter, given the lists of best and of worst choices.
"""


# %%


def best_minus_worst(letter, best, worst):
    # your code
    return None


check_exercise(2, best_minus_worst, [(("A", ["A", "A", "C"], ["B", "C", "B"]), 2 / 3), (("B", ["A"], ["B"]), -1.0)])

# %% [markdown]
r"""
<details><summary>Solution</summary>

```python
def best_minus_worst(letter, best, worst):
    return (best.count(letter) - worst.count(letter)) / len(best)
```

</details>

**3.** (no check) Run the page with `steps=0`. Which columns of the table change, and which stay?

# Where to go from here

* `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder` compares the four on your own documents.
* `snakemake -n` lists every table and figure of the four papers; `papers.md` has those that were made.
"""
