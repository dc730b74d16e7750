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

The four papers were published with different corpora, scorers and budgets. Here their models read and summarize the same 30 papers, and one scorer compares them with each other and with systems that learn nothing:

| part | | minutes |
|---|---|---|
| 1 | The runs that the project ships, and how each prepares the same paper | 3 |
| 2 | ROUGE, repetition, copying and time; and what summaries say that their papers do not | 8 |
| 3 | Which differences are real: a paired bootstrap | 4 |
| 4 | Three papers with every model's summary | 6 |
| 5 | What to take home of the whole project; a form to let people judge | 4 |

Each model is explained on its own page, and section 7 of [Start here](start_here.ipynb) explains intervals. With the parameters as they are, the page opens the shipped runs (`trained`), takes one to two minutes on two CPU cores and needs no network.
With a `dataset` the shipped runs summarize that corpus's test documents: which model writes best on your papers? `run` adds a run of your own. With a `preset` the page first trains every model, each in a process of its own; `preset="demo"` takes two minutes and shows what training costs, not what the models can do.
"""

# %% tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
run: str = ""  # folder of a trained run of yours, compared with the shipped ones
preset: str = ""  # train all four instead: demo: two minutes on a CPU; paper: for GPUs
steps: int = 0  # training steps of every model; 0: as many as each preset says
documents: int = 30  # how many test documents are summarized and scored
seed: int = 0  # of weights, batches and bootstrap

# %% jupyter={"source_hidden": true} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import lib
from lib.evaluation.bootstrap import interval, no_interval, paired_bootstrap
from lib.data.corpora import anthology_year, load_corpus
from lib.evaluation.baselines import lexrank, oracle
from companion.pages.figures import interval_bars
from lib.decoding.search import DECODINGS, summarize
from lib.evaluation.summaries import write_summaries
from companion.results.places import render
from companion.pages.choice import compare_means, sample_text
from companion.results.tables import TRAINED
from companion.pages.runs import run_module, unseen_papers
from companion.pages.shown import (
    PageFigures,
    Passages,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.measured import summary_row, support_row
from lib.papers import PAPERS
from lib.evaluation.scores import score_systems
from lib.system.files import trained_folder, work_folder, write_json
from lib.system.errors import InputError
from lib.system.fingerprints import code_digest, digest

trains = bool(preset or steps)
if run and trains:
    raise InputError("run joins the shipped models: leave out preset and steps")
about_sample = partial(
    sample_text, (dataset, run, documents, seed, trains) == ("", "", 30, 0, False)
)
# a name or folder that cannot be read ends the page here
name_of_corpus = dataset or ("aclsum" if trains else "pmc-sample")
corpus = load_corpus(name_of_corpus, errors="skip")
texts = unseen_papers(corpus, documents)
references = [document.summary for document in texts]
figures = PageFigures(figures_folder())
show_tables()

# %% [markdown]
r"""
# 1. What each model reads of one document

Each model keeps the preprocessing of its own paper, so each paper's model reads a different part of the text (the two hierarchical transformers read the same).
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
code = code_digest("lib.train")  # and all that it imports
made_of = digest([dataset, preset, steps, seed, corpus.identity, code])
here = work_folder() / f"compare-{made_of}"
trained_at = preset or "demo"
# otherwise two at a time, a core for each
alone = torch.cuda.is_available() or trained_at != "demo"


def train_here(model, paper):
    """A run of a model, trained at the comparison's preset, and the time that it took."""
    own = "demo papers" if (model, trained_at) == ("read_again", "demo") else trained_at
    what = ["lib.train", model, "--preset", own, "--dataset", name_of_corpus]
    what += ["--errors", "skip", "--seed", str(seed)]
    what += ["--steps", str(steps)] if steps else []
    what += ["--output", str(here / model), "--resume"]
    run_module(*what, threads=None if alone else 1)
    run = lib.load(here / model)
    return run, f"{3600 * run.hours:.0f} s"


def shipped_run(folder, paper):
    trained = lib.load(trained_folder(folder))
    return trained, f"{trained.hours:.1f} h"


chosen = {paper.title: (name, paper) for name, paper in PAPERS.items()}
if not trains:
    chosen = {of.title: (folder, PAPERS[of.paper]) for folder, of in TRAINED.items()}
work, started = train_here if trains else shipped_run, {}
with ThreadPoolExecutor(2 if trains and not alone else 1) as pool:
    for title, pair in reversed(chosen.items()):
        started[title] = pool.submit(work, *pair)
    runs = {title: started[title].result() for title in chosen}
if run:
    yours = lib.load(run)
    runs[f"{Path(run).name} (yours)"] = yours, f"{yours.hours:.1f} h"

# %% jupyter={"source_hidden": true} tags=["remove-input"]
read = {}
for name, (trained, cost) in runs.items():
    (first,) = trained.encode(texts[:1])
    units = (
        "paragraphs, the title first" if trained.options.of_paragraphs else "sentences"
    )
    read[name] = {
        "variant": trained.config["variant"],
        "parameters": f"{sum(p.numel() for p in trained.model.parameters()):,}",
        "trained on": f"{trained.config['documents']['train']:,}",
        "of": Path(trained.config["corpus"]).name,
        "training": cost,
        "symbols known": f"{len(trained.vocabulary):,}",
        "read of the first paper": f"{len(first.source):,} {'pieces' if trained.in_pieces else 'words'}",
        "in": f"{len(first.sentence_lengths)} {units}",
        "only to be copied": len(first.unknown),
    }
pd.DataFrame.from_dict(read, orient="index").T

# %% [markdown]
r"""
*training* is what the run took: of the shipped runs, hours on one core (*HT + copying*: on two). *Only to be copied* are words of the text that are not in the vocabulary: the model can write them only by copying. A vocabulary of pieces, parts of words, leaves no such words. Read-Again has learned from news and writes headlines of seven words, so it is in part 4 and not in the
tables of scores: a score against an abstract says nothing about a headline ([its page](read_again.ipynb) compares it on its own task).

# 2. Scores, and two ways of writing

Every summary is cut to at most the same number of words (column *words*: some end earlier) and scored by ROUGE $F_1$ in percent, with 95% bootstrap intervals over documents. **R-Lsum** is the summary-level R-L. *repeated* is the share of a summary's trigrams (three words or marks in a row) that it has said before, *copied* the share of its 5-grams that stand in the paper, and *a summary* the time of beam search for one document.

Lead, LexRank and the oracle read the whole paper. The oracle sees the reference and shows about how far one can get by choosing sentences. Each model decodes by plain beam search, as its paper does, and again with trigram blocking: no three words (or pieces) in a row are written twice.
"""

# %%
longest = 200
if trains:
    longest = max(trained.decode.max_length for trained, _ in runs.values())
by_rank = [lexrank(document.sentences, longest) for document in texts]
best = [oracle(document.sentences, document.summary) for document in texts]
systems = {
    f"Lead ({longest} words)": [document.sentences for document in texts],
    f"LexRank (sentences, {longest} words)": by_rank,
    f"Oracle (sentences, {longest} words)": best,
}
milliseconds = {}
for name, (trained, _) in runs.items():
    encoded = trained.encode(texts)
    for how, size in DECODINGS.items():
        rule = replace(trained.decode, block_ngrams=size)
        begun = time.perf_counter()
        written = summarize(trained.model, encoded, trained.vocabulary, rule)
        taken = (time.perf_counter() - begun) / len(texts)
        milliseconds[f"{name}, {how}"] = 1000 * taken
        systems[f"{name}, {how}"] = written
options = next(iter(runs.values()))[0].options  # cuts texts into words, for all
parts = score_systems(systems, texts, options, longest)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
<details><summary>Predict: the same weights write once by plain beam search and once with trigram blocking. How many points of R-1 lie between the two?</summary>

6 to 14, as many as between most of these models.

</details>
""")

# %% jupyter={"source_hidden": true} tags=["remove-input"]
# a headline is not compared with abstracts
scored = {name: part for name, part in parts.items() if part["words"] >= longest / 10}
rows = {}
for name, part in scored.items():
    taken = f"{milliseconds[name]:.0f} ms" if name in milliseconds else ""
    rows[name] = {**summary_row(part, seed), "a summary": taken}
comparison = pd.DataFrame.from_dict(rows, orient="index")
comparison.drop(columns="R-2")

# %% jupyter={"source_hidden": true} tags=["remove-input"]
caption = f"The models on the same {len(texts)} documents of {Path(corpus.name).name}, every summary cut to {longest} words"
table = {
    "table": "compare_table",
    "title": caption,
    "preset": trained_at if trains else "shipped runs",
}
lines = {name: list(row) for name, row in comparison.T.items()}
write_json(
    figures.folder / "compare_table.json",
    {**table, "columns": list(comparison), "lines": lines},
)
render()  # docs/reproduce.md shows the committed one
rouge_1 = {name: [r[0] for r in part["rouge"]] for name, part in scored.items()}
series = {how: {} for how in ("chosen from the text", *DECODINGS)}
for name, values in rouge_1.items():
    how = next((how for how in DECODINGS if name.endswith(how)), "chosen from the text")
    series[how][name.removesuffix(f", {how}")] = interval(values, seed).drawn
over = no_interval(len(texts), "paper") or "its 95% interval over papers"
figures.show(
    interval_bars, f"{caption}: R-1 with {over}.", "compare_rouge",
    series=series, xlabel="ROUGE-1, F1 in percent",
)  # fmt: skip

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
**What to see in Figure 1.** None of the models has learned from these papers. With trigram blocking Mem2Mem is not told apart from LexRank (part 3), and both are far above Lead. The windowed model is seven points below Mem2Mem, although on the corpus that both have learned from it is only a point below (48.2 and 49.1 R-1): in these papers it seldom reads the conclusion, and not where it expects it
([its page](windowed.ipynb) changes the order of sections). The hierarchical transformer has learned from as many papers, but it is eight and a half points below Lead: nothing in it copies, and it takes little from the text. With copying, which is ours and not the paper's (*HT + copying*), it is not told apart from Lead here, and eight points above Lead on the corpus that it has learned from.

Why is *repeated* 3% for the hierarchical transformer, although trigram blocking allows no trigram twice? It writes pieces, and blocking is of pieces, while the column counts words and marks. `2)` is one piece, but a number and a bracket. No trigram of its pieces is there twice; of 6,442 trigrams of words and marks 213 are, 193 of them in three of the 30 summaries, which go on in lists such as *2) 2) 3)*.
""")

# %% [markdown]
r"""
ROUGE does not say whether a summary keeps to its paper. The second table shows what of the same summaries is **not in the text**, in percent: numbers (1,635 is 1635; `<dig>`, which stands for a number in the corpus that these models have learned from and is shown as [number] below, is none), names (words that the papers write with a capital inside of sentences), and pairs of neighbouring words. Only spelling is compared, so a number that the paper has for something else is not seen ([more](../docs/reproduce.md#what-is-not-in-the-text)).
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
abstracts = {"References": [document.summary for document in texts]}
with_abstracts = {**scored, **score_systems(abstracts, texts, options, longest)}
plain, ruled = (f", {how}" for how in DECODINGS)
shown = [name for name in with_abstracts if name.endswith(ruled)] + list(abstracts)
support = {
    name.removesuffix(ruled): support_row(with_abstracts[name]) for name in shown
}
columns = [
    "numbers not in the text",
    "names not in the text",
    "word pairs not in the text",
]
pd.DataFrame.from_dict(support, orient="index")[columns]

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
**What to see.** By ROUGE the windowed model and *HT + copying* are not told apart (R-1 38.5 and 39.0). By their numbers they are: every number that the windowed model writes stands in its paper, but 16.9% [11.4, 22.8] of those of *HT + copying* do not. It spells numbers in pieces, and the windowed model copies them whole. The abstracts have 6.8% [2.1, 12.7], such as numbers of tables (on 99 papers 15.6%, as many as *HT + copying* with 15.2%: [more](../docs/reproduce.md#what-is-not-in-the-text)).
Mem2Mem writes no number of its own on these 30 papers either (on 99: 0.9%), which does not make the numbers right: in its summary of the first paper of part 4 (further on than is shown there) it gives the age of the participants as 60 to 83 degrees (*60–83°C*). Without copying, 28% [9, 60] of the names and 64% [60, 68] of the word pairs that the hierarchical transformer writes are not in the paper.
""")

# %% [markdown]
r"""
# 3. Which differences are real?

The intervals of two systems may overlap although one system is better on nearly every document, because both scores depend on how hard the documents are. The paired bootstrap draws the same documents for both systems and looks at the difference (Koehn 2004). The table shows R-1, row minus column; the models decode with trigram blocking. A star means that the 95% interval of the difference excludes 0; of fewer than ten papers none can be had.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
names = [name for name in scored if not name.endswith(plain)]
compared = {name.removesuffix(ruled).split(" (")[0]: name for name in names}
pairs = {
    (a, b): paired_bootstrap(rouge_1[compared[b]], rouge_1[compared[a]], seed)
    for n, a in enumerate(compared)
    for b in list(compared)[:n]
}
cells = {
    pair: f"{found.mean:+.1f}{'*' if found.is_real else ''}"
    for pair, found in pairs.items()
}
numbered = {name: f"{n} {name}" for n, name in enumerate(compared, start=1)}
pd.DataFrame(
    {
        numbered[b].split()[0]: {
            numbered[a]: cells.get((a, b), "") for a in list(compared)[1:]
        }
        for b in list(compared)[:-1]
    }
)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
# the best model, and what it is compared with
models = [compared[name] for name in runs if name in compared]
by_score = sorted(models, key=lambda name: np.mean(rouge_1[name]), reverse=True)
others = [*by_score[1:], *list(compared.values())[:2]]
compare_means(scored, by_score[0], others, seed)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
without = {
    f"{a} - {b}": found.text(1) for (a, b), found in pairs.items() if not found.is_real
}
pd.DataFrame({"difference, R-1": without})

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
**What to see.** Below the matrix stand the four of 21 differences that have no star. A missing star does not mean that two systems are equal, only that 30 papers do not tell them apart: a difference of two points or less is hard to see on so few. And if there were no difference at all, about one of 21 would have a star by luck.
""")

# %% [markdown]
r"""
There is one seed for each model, so a star says that these two *runs* differ on documents like these. To know whether the two *models* differ, one needs several runs of each. For the rows of one paper,
`snakemake -c2 mem2mem_table2` makes three runs of each row and draws seeds as well as documents. With `preset` and `seed` this page trains other runs of all four.

# 4. Three documents, every model

Below are the first words of the summaries. Title, reference and Lead are the authors' own words.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
# papers of the ACL Anthology may be quoted from 2016 on
recent = [corpus.name != "aclsum" or anthology_year(doc.id) >= 2016 for doc in texts]
quotable = np.flatnonzero(recent).tolist()[:3]


def all_summaries(i):
    """Reference, first sentences and all summaries of one document."""
    rows = {"reference": texts[i].summary, "Lead": texts[i].sentences[:2]}
    for name, (trained, _) in runs.items():
        rows[name] = trained.readable(texts[i], systems[f"{name}{ruled}"][i])
    column = [(system, clip(" ".join(text), 45)) for system, text in rows.items()]
    return Passages([("title", texts[i].title or texts[i].id), *column])


all_summaries(quotable[0])

# %% jupyter={"source_hidden": true} tags=["remove-input"]
all_summaries(quotable[min(1, len(quotable) - 1)])

# %% jupyter={"source_hidden": true} tags=["remove-input"]
all_summaries(quotable[min(2, len(quotable) - 1)])

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
**What to see.** Mem2Mem's sentences are about the paper and use its words, but they often say of one thing what the paper says of another. The hierarchical transformer writes the frame of an abstract (*the aim of this study was to*) around things that are not in the paper. With copying, it takes whole clauses from the paper and joins them wrongly. The windowed model begins like the paper's introduction,
or goes straight to its methods. Read-Again, made for news dispatches of 1987, turns the paper into a dispatch.
""")

# %% [markdown]
r"""
# 5. What to take home
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
about_sample(r"""
* **How a model writes is worth 6 to 14 points of R-1.** The same weights, plain beam search and trigram blocking: 39.1 and 45.5 (Mem2Mem), 29.5 and 38.5 (windowed), 15.5 and 28.7 (hierarchical), 24.8 and 39.0 (with copying).
* **Copying is worth as much or more**: 10 points for the hierarchical transformer (28.7 and 39.0), and 27 to 30 for Read-Again's headlines, where 13,898 dispatches are too few to learn names without it. Neither decides whether what is said is true.
* **The papers' other ideas are worth a point or two of ROUGE at these sizes, or none that we could find**, less than 30 papers can show. The tables of each paper, on more documents, have:

| idea | R-1 [95%], plain beam search | measured on |
|---|---|---|
| more text through windows than without | +1.4 [-0.2, +3.0] to +2.6 [+0.6, +4.9] | 200 papers, three pairs and seeds |
| reading again | +0.8 [+0.3, +1.3]; with a small vocabulary -0.3 [-0.9, +0.4] | 1,106 dispatches |
| a memory | +0.4 [-0.3, +1.1] | 200 papers, three seeds |
| global layers over paragraphs | +0.4 [-0.5, +1.3] | short texts of 200 papers, three seeds |

What each idea contributes is tested on synthetic tasks, too, on the papers' own pages; not every idea is needed even there. And what a model has learned does not always carry over: on its own corpus the windowed model has 48.2, here 38.5.
""")

# %% [markdown]
r"""
**Let people judge.** The next cell writes the summaries of every system as lines of JSON. One command draws documents and writes a blinded form for a browser, another one reads the filled form and gives the scores and the agreement of the raters (`python -m companion.human --help`):
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
for name in compared:
    path = work_folder() / "summaries" / f"{name}.jsonl"
    writer = runs[name][0] if name in runs else None
    write_summaries(path, texts, systems[compared[name]], corpus.name, writer)
print("summaries/NAME.jsonl of:", ", ".join(compared))
print("\npython -m companion.human sheet runs/rating --documents 20 Mem2Mem=FILE ...")
print("python -m companion.human scores runs/rating")

# %% [markdown]
r"""
# Where to go from here

* Run the page with `preset="demo"`. Which columns of the table change, and which of them say something about the papers?
* `papermill notebooks/compare.ipynb out.ipynb -p dataset my/folder` compares the shipped models on your own documents.
* `snakemake -n` lists every table and figure of the four papers; [`papers.md`](../papers.md) says what they show.
"""
