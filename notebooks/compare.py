# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
r"""
# What makes a summary score, and what makes it true?

*25 minutes, no code. You need ROUGE and intervals ([Start here](start_here.ipynb)).*

The four papers were published with different corpora, scorers and budgets. Here their models summarize the same 30 papers. One scorer compares them with each other, and with systems that learn nothing. Which of the papers' ideas shows in a score? And does a higher score mean that less of a summary is false?

The page opens the shipped runs, takes one to two minutes on two CPU cores, and needs no network. At its end is a report that compares models on texts of yours.
"""

# %% tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
systems: str = ""  # runs and files of summaries beside the shipped models, with spaces
documents: int = 30  # test documents of the corpus that the report is about

# %% jupyter={"source_hidden": true} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import lib
from companion.pages.comparison import open_systems
from companion.pages.figures import interval_bars
from companion.pages.measured import summary_row, support_row
from companion.pages.runs import unseen_papers
from companion.pages.shown import PageFigures, Passages, Prediction
from companion.pages.shown import clip, figures_folder, show_tables
from companion.results.places import render
from companion.results.tables import TRAINED
from lib.data.corpus import load_corpus
from lib.decoding.config import DECODINGS
from lib.decoding.search import summarize
from lib.evaluation.baselines import lexrank, oracle
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.scores import score_systems
from lib.evaluation.summaries import write_summaries
from lib.system.files import trained_folder, work_folder, write_json
from lib.training.console import duration

# a name, folder or file that cannot be read ends the page here
theirs = open_systems(dataset, systems, documents)
sample = load_corpus("pmc-sample")
texts = unseen_papers(sample, 30)
figures = PageFigures(figures_folder())
show_tables()
theirs.banner if theirs else None

# %% [markdown]
r"""
## What does each model read?

Each model keeps the preprocessing of its own paper, so it reads its own part of a text.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
runs = {of.title: lib.load(trained_folder(folder)) for folder, of in TRAINED.items()}
read = {}
for name, trained in runs.items():
    (first,) = trained.encode(texts[:1])
    units = (
        "paragraphs, the title first" if trained.options.of_paragraphs else "sentences"
    )
    read[name] = {
        "variant": trained.config["variant"],
        "parameters": f"{sum(p.numel() for p in trained.model.parameters()):,}",
        "trained on": f"{trained.config['documents']['train']:,}",
        "of": Path(trained.config["corpus"]).name,
        "training": duration(3600 * trained.all_hours),
        "symbols known": f"{len(trained.vocabulary):,}",
        "read of the first paper": f"{len(first.source):,} {'pieces' if trained.in_pieces else 'words'}",
        "in": f"{len(first.sentence_lengths)} {units}",
        "only to be copied": len(first.unknown),
    }
pd.DataFrame.from_dict(read, orient="index").T

# %% [markdown]
r"""
*Training* is what the run took: hours on one core for the shipped runs (two cores for *HT + copying*). Words that are *only to be copied* are in no vocabulary. A vocabulary of pieces, parts of words, leaves no such words. Read-Again has learned from news and writes headlines of seven words. So it joins us only where summaries are read, and not in the tables of scores.

## What is the way of writing worth?

Every summary is cut to the same number of words and scored by ROUGE, with 95% intervals over documents. Each model writes twice with the same weights: by plain beam search, as in its paper, and with trigram blocking, which writes no three words in a row twice. Lead, LexRank and the oracle choose sentences of the whole paper. The oracle sees the reference, so it shows about how far choosing can go.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
longest = 200
by_rank = [lexrank(document.sentences, longest) for document in texts]
best = [oracle(document.sentences, document.summary) for document in texts]
systems_of_page = {
    f"Lead ({longest} words)": [document.sentences for document in texts],
    f"LexRank (sentences, {longest} words)": by_rank,
    f"Oracle (sentences, {longest} words)": best,
}
milliseconds = {}
for name, trained in runs.items():
    encoded = trained.encode(texts)
    for how, size in DECODINGS.items():
        rule = replace(trained.decode, block_ngrams=size)
        begun = time.perf_counter()
        written = summarize(trained.model, encoded, trained.vocabulary, rule)
        taken = (time.perf_counter() - begun) / len(texts)
        milliseconds[f"{name}, {how}"] = 1000 * taken
        systems_of_page[f"{name}, {how}"] = written
options = next(iter(runs.values())).options  # cuts texts into words, for all
parts = score_systems(systems_of_page, texts, options, longest)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
# a headline is not compared with abstracts
scored = {name: part for name, part in parts.items() if part["words"] >= longest / 10}
rows = {}
for name, part in scored.items():
    taken = f"{milliseconds[name]:.0f} ms" if name in milliseconds else ""
    rows[name] = {**summary_row(part, 0), "a summary": taken}
comparison = pd.DataFrame.from_dict(rows, orient="index")
rouge_1 = {name: [r[0] for r in part["rouge"]] for name, part in scored.items()}
plain, ruled = (f", {how}" for how in DECODINGS)
gains = {
    name: np.mean(rouge_1[name + ruled]) - np.mean(rouge_1[name + plain])
    for name in runs
    if name + plain in rouge_1 and name + ruled in rouge_1
}
told = ", ".join(f"{gain:+.0f} ({name})" for name, gain in gains.items())
Prediction(
    "The same weights write by plain beam search and with trigram blocking. How many points of R-1 lie between the two?",
    ["none, since the weights are the same", "about 2", "5 and more"],
    f"Trigram blocking changes R-1 by: {told}. Compare that with the differences between the models.",
    [comparison.drop(columns="R-2")],
)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
caption = f"The models on the same {len(texts)} documents of pmc-sample, every summary cut to {longest} words"
table = {
    "table": "compare_table",
    "title": caption,
    "preset": "shipped runs",
}
lines = {name: list(row) for name, row in comparison.T.items()}
write_json(
    figures.folder / "compare_table.json",
    {**table, "columns": list(comparison), "lines": lines},
)
render()  # docs/reproduce.md shows the committed one
series = {how: {} for how in ("chosen from the text", *DECODINGS)}
for name, values in rouge_1.items():
    how = next((how for how in DECODINGS if name.endswith(how)), "chosen from the text")
    series[how][name.removesuffix(f", {how}")] = interval(values).drawn
figures.show(
    interval_bars, f"{caption}: R-1 with its 95% interval over papers.", "compare_rouge",
    series=series, xlabel="ROUGE-1, F1 in percent",
)  # fmt: skip

# %% [markdown]
r"""
None of the models has learned from these papers. With trigram blocking Mem2Mem is about as good as LexRank, and far above Lead. The hierarchical transformer copies words, which is our addition (*HT + copying*). It reaches Lead here, and is eight points above Lead on the corpus that it has learned from.
"""

# %% [markdown]
r"""
## Does a higher score mean that less is false?

ROUGE counts words, so it does not say whether a summary keeps to its paper. The next table does, in part. It shows what of the summaries is **not in the text**, in percent: numbers, names (words that the papers write with a capital inside of sentences), and pairs of neighbouring words. Only spelling is compared: a number that the paper has for something else is not noticed ([more](../docs/reproduce.md#what-is-not-in-the-text)).
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
abstracts = {"References": [document.summary for document in texts]}
with_abstracts = {**scored, **score_systems(abstracts, texts, options, longest)}
shown = [name for name in with_abstracts if name.endswith(ruled)] + list(abstracts)
support = {
    name.removesuffix(ruled): support_row(with_abstracts[name]) for name in shown
}
columns = [
    "numbers not in the text",
    "names not in the text",
    "word pairs not in the text",
]
Prediction(
    "Do the models with the higher scores write fewer numbers that are not in the text?",
    ["yes", "no: two models with about the same score can differ"],
    "Compare the first column with the scores above. A model that copies numbers whole writes few that the text lacks; "
    "one that spells them in pieces can make up a number and have the same score.",
    [pd.DataFrame.from_dict(support, orient="index")[columns]],
)

# %% [markdown]
r"""
The windowed model and *HT + copying* have about the same R-1. But every number that the windowed model writes stands in its paper, and nearly a fifth of those of *HT + copying* do not. (The authors' abstracts have such numbers, too, for instance from tables.)

A number that stands in the paper is not right for that. In its summary of the first paper below, further on than is shown, Mem2Mem gives the age of the participants as 60 to 83 degrees (*60–83°C*).
"""

# %% [markdown]
r"""
## Which differences are real?

The intervals of two systems may overlap although one is better on nearly every document: what makes a document hard is hard for both. The paired bootstrap draws the same documents for both (Koehn 2004). The matrix shows R-1, row minus column; the models write with trigram blocking. A star means that the 95% interval of the difference excludes 0.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
names = [name for name in scored if not name.endswith(plain)]
compared = {name.removesuffix(ruled).split(" (")[0]: name for name in names}
pairs = {
    (a, b): paired_bootstrap(rouge_1[compared[b]], rouge_1[compared[a]])
    for n, a in enumerate(compared)
    for b in list(compared)[:n]
}
cells = {
    pair: f"{found.mean:+.1f}{'*' if found.is_real else ''}"
    for pair, found in pairs.items()
}
numbered = {name: f"{n} {name}" for n, name in enumerate(compared, start=1)}
matrix = pd.DataFrame(
    {
        numbered[b].split()[0]: {
            numbered[a]: cells.get((a, b), "") for a in list(compared)[1:]
        }
        for b in list(compared)[:-1]
    }
)
without = [f"{a} - {b}: {x.text(1)}" for (a, b), x in pairs.items() if not x.is_real]
Prediction(
    f"There are {len(pairs)} pairs of systems. How many differences have no star?",
    ["none", "a few", "most"],
    f"{len(without)} of {len(pairs)}. {'; '.join(without)}. A missing star does not mean that two systems are equal, only that "
    f"{len(texts)} documents do not tell them apart. And if there were no difference at all, one pair in twenty would have a star by luck.",
    [matrix],
)

# %% [markdown]
r"""
There is one seed for each model, so a star says that these two *runs* differ. Whether two *models* differ needs several runs of each, as the tables of the papers have them.

## What do they write?

Below are the first words of every summary of three papers. Title, reference and Lead are the authors' own words.
"""


# %% jupyter={"source_hidden": true} tags=["remove-input"]
def all_summaries(i):
    """Reference, first sentences and all summaries of one document."""
    rows = {"reference": texts[i].summary, "Lead": texts[i].sentences[:2]}
    for name, trained in runs.items():
        rows[name] = trained.readable(texts[i], systems_of_page[f"{name}{ruled}"][i])
    column = [(system, clip(" ".join(text), 45)) for system, text in rows.items()]
    return Passages([("title", texts[i].title or texts[i].id), *column])


all_summaries(0)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
all_summaries(1)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
all_summaries(2)

# %% [markdown]
r"""
Mem2Mem's sentences are about the paper and use its words, but they often say of one thing what the paper says of another. *HT + copying* takes whole clauses from the paper and joins them wrongly. The windowed model begins like the paper's introduction,
or goes straight to its methods. Read-Again, made for news dispatches of 1987, turns the paper into a dispatch.
"""

# %% [markdown]
r"""
## What became of the question?

Later measures compare statements, not words: FactCC (Kryściński and others, 2020) and SummaC (Laban and others, 2022) ask a classifier whether the text entails a sentence of the summary; QAGS (Wang and others, 2020) asks the same questions of both. For news, people found the summaries of instructed language models as good as those of paid writers (Zhang and others, 2024). ROUGE is still reported, and false statements are still counted by hand.

## What to take home
"""

# %% [markdown]
r"""
* **How a model writes is worth 6 to 14 points of R-1**, more than most differences between the models.
* **Copying can be worth more**: 27 to 30 points for Read-Again's headlines, where 13,898 dispatches are probably too few to learn names without it. It does not decide whether what is said is true.
* **The papers' other ideas are worth a point or two at these sizes, or none that we could find.** Thirty papers cannot show that. The tables of each paper, on more documents, have:

| idea | R-1 [95%], plain beam search | measured on |
|---|---|---|
| more text through windows than without | +1.4 [-0.2, +3.0] to +2.6 [+0.6, +4.9] | 200 papers, three pairs and seeds |
| reading again | +0.8 [+0.3, +1.3]; with a small vocabulary -0.3 [-0.9, +0.4] | 1,106 dispatches |
| a memory | +0.4 [-0.3, +1.1] | 200 papers, three seeds |
| global layers over paragraphs | +0.4 [-0.5, +1.3] | short texts of 200 papers, three seeds |

What a model has learned does not always carry over: on its own corpus the windowed model has 48.2 R-1, here 38.5.
"""

# %% [markdown]
r"""
**You can stop here.** The papers' pages test each idea by itself, and [claims.md](../docs/claims.md) has all claims.

**Let people judge.** The next cell writes the summaries of every system as lines of JSON. One command draws documents and writes a blinded form for a browser, another one reads the filled form and gives the scores and the agreement of the raters (`python -m companion.human --help`):
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
for name in compared:
    path = work_folder() / "summaries" / f"{name}.jsonl"
    write_summaries(
        path, texts, systems_of_page[compared[name]], sample.name, runs.get(name)
    )
print("summaries/NAME.jsonl of:", ", ".join(compared))
print("\npython -m companion.human sheet runs/rating --documents 20 Mem2Mem=FILE ...")
print("python -m companion.human scores runs/rating")

# %% [markdown]
r"""
# Your corpus

With a `dataset`, the shipped models of papers summarize your test documents, and LexRank and the first words are beside them. `systems` adds folders of your runs and files of summaries that other systems wrote: `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder -p systems "runs/mine theirs.jsonl"`. The report is about the model that scores highest, and compares every other system with it.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
report = theirs.report() if theirs else None
report

# %% [markdown]
r"""
## Where to go from here

* `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder` compares the shipped models on your own documents.
* The page of each paper trains a model on them, with `preset`.
* `snakemake -n` lists every table and figure of the four papers.
"""
