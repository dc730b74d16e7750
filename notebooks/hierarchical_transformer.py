# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Why can a model that sees everything not do it?

Yang Liu, Mirella Lapata: *Hierarchical Transformers for Multi-Document Summarization*, ACL 2019, [arXiv:1905.13164](https://arxiv.org/abs/1905.13164). *27 minutes, no code. You need a transformer's attention, beam search and ROUGE ([Start here](start_here.ipynb)).*
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details ontoggle="for (const frame of this.getElementsByTagName('iframe')) frame.src ||= frame.dataset.src"><summary><b>Watch the model write about two invented towns</b></summary>

The model runs in your browser. Step through the words, or answer five questions about it. ([In a window of its own](../docs/live.md).)

<iframe class="live" data-src="../live/towns.html" title="A hierarchical transformer writes about two towns in this frame"></iframe>

</details>
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # aclsum:paragraphs, multi_news, ... or a folder of clusters
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo: 100 clusters; paper, code: for a GPU
variant: str = "HT"  # what is trained, a row of Tables 2 and 3: FT 600, ...
steps: int = 0  # training steps; 0: as many as the preset says
documents: int = 20  # test documents of the corpus that the report is about
seed: int = 0  # of the training: weights and batches
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import math

import numpy as np
import torch
from IPython.display import Markdown

from companion.claims.verdicts import Setting, claims_of, effect_of
from companion.claims.text import evidence_table
from companion.pages.bets import Bets, Outcomes
from companion.pages.checks import Checks
from companion.pages.choice import choose
from companion.pages.diagrams import show_model
from companion.pages.figures import interval_bars, lines
from companion.pages.hierarchical_transformer import (
    check_equations, local_layer, ranking_panel,
)  # fmt: skip
from companion.pages.measured import (
    shares, task_results, task_table,
)  # fmt: skip
from companion.pages.runs import loss_figure, nll_by_text
from companion.pages.shown import (
    PageFigures, Prediction, figures_folder, show_tables,
)  # fmt: skip
from companion.pages.towns import (
    curves_panel, followed, hops_table, layer_picture, levers_table, marks_table,
    town_frames,
)  # fmt: skip
from companion.results.kept import stored_numbers
from companion.tasks.towns import open_towns, town_document, unseen_towns
from lib.data.batch import rows_of
from lib.data.corpus import load_corpus
from lib.papers import resolve

# what cannot be read ends the page here
choice = choose(
    "hierarchical_transformer", dataset, preset, variant, steps, seed, run,
    documents, corpora=("pmc-sample", "aclsum:paragraphs"),
)  # fmt: skip
figures, checks = PageFigures(figures_folder()), Checks()
show_tables()
towns, cluster = open_towns(), unseen_towns(1)[0]
solved = task_results("towns")
effects = {
    (claim.id, setting.label): (effect_of(setting), claim.published)
    for claim in claims_of("hierarchical_transformer")
    for setting in claim.settings
}
choice.banner

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Two towns, one title

A title names a town. Twelve snippets follow: six about this town, and six about another one. Each states two facts, and its second sentence only says *it*. Every fact is stated three times, and sometimes one of the three is wrong: *a minority's* fact. The task is to write the four facts of the town in the title.

Two small transformers have read the cluster below. Each encoder has four layers. In the paper's model, **HT**, two of them let snippets exchange information. In the other, the **local model** (*without global layers* in tables), each snippet is read by itself.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
town_frames(towns, cluster)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Step 2 is the river. The darker a snippet is, the more HT attends to it. HT attends to the three snippets that name a river of *osvia*. Two of them name the *arno* and one the *oder*, and HT writes *arno*. The other model attends to the rivers of both towns, and writes *colva*, the river of *velholm*.

So both models find the rivers. One of them confuses the towns. Yet its decoder attends to every word, and the title is among them. **Why can a model that sees everything not do it?** ([Watch both write](../docs/live.md#two-towns) in your browser, and change the snippets.)
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What does the paper promise?

Where is the Pentagoet Archeological District? In the paper's example, a *flat* transformer, which reads all paragraphs as one long row, wrote "in Treaty Of Breda". The paper's **hierarchical transformer (HT)** wrote "in Castine, Maine", which is right.

If every word attends to every other word, many long documents cost too much. So the work is divided. **Local layers** read each paragraph by itself. **Global layers** let paragraphs exchange information, in three moves:

1. **Pool.** Each of several heads makes one vector of a paragraph: a weighted sum of its words.
2. **Attend.** With these vectors, paragraphs attend to each other.
3. **Broadcast.** What a paragraph has gathered is added to each of its words.

The authors train on 1.6 million clusters of web pages. The summary of a cluster is the opening of a Wikipedia article. First a small network ranks the paragraphs, and the best ones are read. Their Tables 2 to 4:

| model | R-1 | questions answered |
|---|---|---|
| Lead: the beginning of the ranked paragraphs | 38.22 | 32% |
| flat transformer, paragraphs not ranked | 35.46 | |
| flat transformer, the best one | 40.56 | 36% |
| T-DMCA, an earlier model that compresses | 40.77 | 43% |
| **HT** | **40.82** | **54%** |
| HT without global layers | 39.01 | |

R-1 hardly separates HT from the flat model. People do. From HT's summaries alone they answered 54% of the questions about 20 articles, and from the flat model's 36%. That is the paper's best evidence, and we have not repeated it.

**Place your bets.** Do these claims hold on real clusters, in models that a laptop can train? Choose *holds*, *fails* or *cannot tell*. The last means that the data allow both the paper's effect and none.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
BETS = "global-layers", "paragraphs", "ranking"
Bets("hierarchical_transformer", BETS)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How many facts are right?

In the local model, no snippet meets the title in the encoder. But its decoder attends to every word, the title included. We also train a flat transformer, in which all words can attend to each other in each layer.

All three learn from 1,000 batches of 32 clusters. They are tested on 200 others, whose facts are combined anew.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
kinds = {
    "right": "right",
    "the other town's": "other town's",
    "a minority's": "minority's",
}
compared = {row: row for row in ("HT", "without global layers", "flat")}
Prediction(
    f"HT writes {shares(solved['HT']['right'])} of the facts correctly (three seeds)."
    " How many do the other two models write correctly?",
    ("hardly any", "about half", "as many as HT"),
    f"In the local model {shares(solved['without global layers']['right'])} are right,"
    f" and {shares(solved['flat']['right'])} with the flat model. Nearly all other facts"
    " are those of the other town.",
    [task_table("towns", kinds, compared, by_seed=True)],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Half is what a model would get that reads well and ignores the title. It would find the rivers, go with the majority, and toss a coin between the towns. So is the task impossible without global layers, or only hard to learn?
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Who chooses the town?

### Lever 1: more time

One failed training cannot tell what is impossible. So we train longer.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
caption = (
    "Facts that are right in 200 unseen clusters, while the models are trained: a line for"
    " each of three seeds. The runs of 3,000 steps were made on a GPU."
)
longer = {
    row: solved[f"{row}, trained longer"] for row in ("without global layers", "flat")
}
before = max(longer["without global layers"]["right after 2500"])
learned = sum(share > 0.9 for share in longer["without global layers"]["right"])
Prediction(
    "The two models train on, until step 3,000. What happens to their half of the facts?",
    ("it stays", "it grows slowly", "some runs jump to nearly all"),
    f"No local model has more than {before:.0%} at step 2,500. At step 3,000,"
    f" {learned} of 3 runs have {max(longer['without global layers']['right']):.0%}, and the"
    f" third has {min(longer['without global layers']['right']):.0%}. The flat model is"
    f" still at {shares(longer['flat']['right'])}. HT was done after 1,000 steps.",
    [figures.show(lines, caption, panels=[curves_panel()], width=7.0)],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So global layers make this task learnable soon, and are not what makes it possible. What did those runs find?

A suspicion: each summary begins with the name of the town. Local layers can mix a town's name into every word of its snippet. Then the decoder need only attend to words with the name that it has just written. If so, the local model obeys the name that it *writes*. Perhaps HT obeys the title that it *reads*. Let the two disagree.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
### Lever 2: a forced first word

We write the first word of the summary: the name of the *other* town. The title stays as it is. Then the model goes on.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
LOCAL = "without global layers"
EVERYWHERE = f"{LOCAL}, the title in every paragraph"
forced = stored_numbers("forced_name")["results"]
steps_of = {
    row: [f"{r['steps']:,}" for r in forced if r["row"] == row and r["learned"]]
    for row in ("HT", LOCAL, EVERYWHERE)
}
obeys = followed("HT", "other name forced"), followed(LOCAL, "other name forced")
Prediction(
    "Whose facts follow, in HT and in a local model that has learned the task?",
    (
        "in both the title's",
        "in both the forced town's",
        "in HT the title's, in the local model the forced town's",
        "in HT the forced town's, in the local model the title's",
    ),
    f"HT ignores the name: {obeys[0][0]:.0f}% of its facts are those of the title's town. It"
    " writes one name, and the river of the other. The local model obeys:"
    f" {obeys[1][1]:.0f}% are the facts of the town whose name we forced.",
    [levers_table("no lever", "forced first word")],
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
Markdown(f"""
Cells: percentages of facts of the title's town / of the other town. They are means over {len(steps_of[LOCAL])} runs of each model, trained until 98% of the facts were right: HT for {", ".join(steps_of["HT"])} steps, the local model for {", ".join(steps_of[LOCAL])}.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
### Lever 3: a strange title

Now the reverse. The first word is right, but the title names a town that no snippet mentions.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
coin, sure = (followed(row, "absent title, own name") for row in ("HT", LOCAL))
Prediction(
    "Which model still writes the facts of the town that its summary names?",
    ("HT", "the local model", "both", "neither"),
    f"The local model, which is not affected ({sure[0]:.0f} / {sure[1]:.0f}). HT tosses a"
    f" coin ({coin[0]:.0f} / {coin[1]:.0f}).",
    [levers_table("no lever", "forced first word", "strange title")],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Each lever steers one model and leaves the other as it was. So equal scores hide two solutions: **HT chooses the town while it reads, the local model while it writes.**

Why can a model that sees everything fail for so long? Finding the rivers is soon learned. Finding out *whose* they are is not: a name in the words helps only a decoder that looks for it, and looking helps only if the name is there. This explains what we see; we have not tested it by itself.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
### Lever 4: the title everywhere

A good explanation predicts something new. If global layers carry the title to the snippets, so can we: each snippet now begins with the title. All layers are local.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
told = followed(EVERYWHERE, "other name forced")
Prediction(
    "After how many steps does this model write 98% of the facts correctly?",
    ("as late as without the title", "as soon as HT", "never"),
    f"As soon as HT, after {', '.join(steps_of[EVERYWHERE])} steps. And it ignores a forced"
    f" name, as HT does: {told[0]:.0f}% of the facts are the title's.",
    [
        levers_table(
            "no lever", "forced first word", "strange title", rows=("HT", EVERYWHERE)
        )
    ],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Global layers are one way in which a snippet can meet the title. This is another. What we do not know: why does the flat model fail, in which all words can meet?
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## And on real texts?

We trained models on 632 clusters, each a scientific article and the sentences of other articles that cite it. They also copy words, which is our addition. There are three seeds of each, tested on 96 clusters.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
parts = {
    "global layers": "global-layers",
    "paragraphs, not flat": "paragraphs",
    "ranking": "ranking",
}
where = "clusters of several documents, plain beam search"
found = {name: effects[claim, where] for name, claim in parts.items()}
bars = {
    "here": {name: [e.mean, e.low, e.high] for name, (e, _) in found.items()},
    "the paper": {name: [published] * 3 for name, (_, published) in found.items()},
}
caption = (
    "Differences in R-1 with their 95% intervals over clusters, and those of the paper."
)
helps = [name for name, (effect, _) in found.items() if effect.low > 0]
worse = [name for name, (effect, _) in found.items() if effect.high < 0]
Prediction(
    "Three comparisons: HT with global layers or without; HT or a flat transformer; the"
    " flat transformer with ranked paragraphs or not. Which of the three parts helps?",
    (
        "the global layers",
        "reading paragraph by paragraph",
        "the ranking of paragraphs",
        "we cannot tell of any",
    ),
    f"The interval lies above 0 for {', '.join(helps) or 'none of them'}, and below 0 for"
    f" {', '.join(worse) or 'none'}. It is too wide to tell what helps.",
    [figures.show(interval_bars, caption, series=bars, xlabel="difference in R-1")],
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
cut, _ = effects["global-layers", "cut in the models of the clusters, nats a piece"]
no_copying = effect_of(
    Setting("", "interventions_hierarchical_transformer_clusters", effect="no copying")
)
by_seed = {
    row["label"]: row["by seed"]["R-1"]
    for row in stored_numbers("hierarchical_table_clusters_scisummnet_mds")["rows"]
    if "by seed" in row
}
pair = "HT", "HT without global layers"
gains = np.subtract(*(by_seed[f"{row}, plain beam search"] for row in pair))
in_blocks, _ = effects[
    "global-layers", "clusters of several documents, trigram blocking"
]
Markdown(f"""
One training would have misled us. The three seeds differ: global layers change R-1 by {gains[0]:+.1f}, {gains[1]:+.1f} and {gains[2]:+.1f} points. With plain beam search, none of these models is better than the first words of its text, as many as it writes; with trigram blocking they are. There the difference is {in_blocks.mean:+.2f} [{in_blocks.low:+.2f}, {in_blocks.high:+.2f}] points.

Does anything pass between the paragraphs? We cut the global layers: each paragraph may attend only to itself. On the towns, HT then falls to {shares(solved["HT"]["right, layers cut"])} of the facts. In the three models of the clusters, a piece of the reference (a word or a part of one) changes by {-cut.mean:+.3f} nats [{-cut.high:+.3f}, {-cut.low:+.3f}]. If the same models are forbidden to copy, it loses {-no_copying.mean:.1f} nats. So these models hardly use their global layers.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How did your bets turn out?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(evidence_table("hierarchical_transformer", *BETS))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Outcomes("hierarchical_transformer", BETS)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
The clusters decide, since the paper is about several documents, and so does trigram blocking: without it no model is better than the first words of its text. [claims.md](../docs/claims.md#hierarchical-transformer) has all claims, those on pooling heads and graphs among them, and what the verdicts mean.

**What is not known.** We repeated neither the paper's training nor its best evidence, answers by people. Only a training at the authors' size, on their clusters, can show whether global layers gain 1.81 points there. And why does the flat model fail, in which all words can meet?

## What became of the idea?

Later models kept both kinds of attention. Longformer (Beltagy and others, 2020) attends in local windows and through a few global tokens; its encoder-decoder LED reads 16,000 tokens. PRIMERA (Xiao and others, 2022) is trained on clusters before it sees a task. It joins the documents into one row for LED, with a globally attending token behind each. Fusion-in-Decoder (Izacard and Grave, 2021) reads each retrieved passage by itself, *together with the question*: our lever 4.

## What to take home

* **"It cannot" needs more than one failed training.** The local model failed for 2,500 steps, and then two of three runs learned the task. Train longer, with several seeds, before you call something impossible.
* **Equal scores can hide different solutions.** HT and the local model both learn the towns. They differ only when title and name disagree.
* **Removing a part tests it only where it is used.** HT depends on its global layers on the towns, and our models of real clusters hardly use theirs.

**You can stop here.** The building path derives the equations, and ends with a global layer of your own.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 1. Build it

Numbers in brackets are the paper's. Its authors' code differs from its equations in several places. The towns model has the code's form, so the functions on this page have it, too. Each difference is named where it occurs. The functions take one cluster, with no batch and no padding. The lines below them use HT's weights and the cluster from the top of the page.

<details><summary>Symbols</summary>

| symbol | shape | what |
|---|---|---|
| $m$ | | paragraphs of a cluster; the title is paragraph 0 |
| $d$ | | width of the model |
| $x_{ij},\ w_{ij}$ | $d$ | word (piece) $j$ of paragraph $i$; its embedding |
| $e_p$ | $d/2$ | sinusoids of a position |
| $n_{head},\ d_{head}$ | | heads $z$, and their width $d/n_{head}$ |
| $\hat a^z_{ij}$ | scalar | pooling weight of a word inside its paragraph |
| $head^z_i$ | $d_{head}$ | paragraph $i$, pooled by head $z$ |
| $context^z_i$ | $d_{head}$ | what head $z$ gathers for paragraph $i$ |
| $c_i$ | $d$ | all contexts of paragraph $i$ together |
| $G$ | $m\times m$ | a graph over paragraphs |

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("hierarchical_transformer")

# %% slideshow={"slide_type": "skip"}
town, document = towns["HT"], town_document(cluster)
rows = [row.tolist() for row in rows_of(document)]  # the title, twelve paragraphs

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (1) to (6) Which paragraphs are read

A cluster has more paragraphs than a model can read. Two LSTMs read the title and a paragraph. A maximum over the words makes one vector of the title, which is joined to each word of the paragraph. After a second maximum a logistic regression predicts the paragraph's ROUGE-2 recall of the summary. The best paragraphs are read. The towns need no ranking.

## (7) to (10) Two positions

Attention is a sum and has no order, so a word needs a position. One number would not do: the 15th word of a cluster may be in any paragraph. So a word gets the number $i$ of its paragraph and its number $j$ in it. Each is a vector of sinusoids (7), (8), as in every transformer, of half the width.

$$pe_{ij}=[e_i;e_j]\tag{9}$$

$$x^0_{ij}=w_{ij}+pe_{ij}\tag{10}$$

**The code** puts $e_j$ first, and multiplies $w_{ij}$ by $\sqrt d$.
"""


# %% slideshow={"slide_type": "skip"}
def eq07_position(p, width):
    """The sinusoids of (7) and (8): [width]."""
    angles = [p / 10000 ** (2 * i / width) for i in range(width // 2)]
    return torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)])


def eq10_input(rows, model):
    """Words of every paragraph: a list of [n_i, d]."""
    d, E, placed = model.config.width, model.embedding.weight, []
    for i, row in enumerate(rows):
        paragraph = eq07_position(i, d // 2)
        both = [
            torch.cat([eq07_position(j, d // 2), paragraph]) for j in range(len(row))
        ]  # (9)
        placed.append(math.sqrt(d) * E[torch.tensor(row)] + torch.stack(both))
    return placed


x = eq10_input(rows, town)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
half = town.config.width // 2
word, paragraph = (
    eq07_position(1, half)[:2].tolist(),
    eq07_position(2, half)[:2].tolist(),
)
Markdown(
    f'"has" is word 1 of paragraph 2. Its word half begins with sin 1 = {word[0]:.2f},'
    f" cos 1 = {word[1]:.2f}; its paragraph half with sin 2 = {paragraph[0]:.2f},"
    f" cos 2 = {paragraph[1]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (11), (12) A local layer

A local layer is an ordinary transformer layer that is applied to each paragraph by itself. Here "it" can be linked to the name of its town.

A flat layer computes $(\sum_i n_i)^2$ attention scores for paragraphs of $n_i$ words. A local layer computes $\sum_i n_i^2$, and a global layer $\sum_i n_i$ for pooling and $m^2$ between paragraphs. But now no paragraph can compare its town with the title.
"""

# %% slideshow={"slide_type": "skip"}
for layer in town.local_layers:
    x = local_layer(x, layer)  # the library's

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
lengths = [len(row) for row in rows]
Markdown(
    f"For this cluster a head computes {sum(lengths) ** 2:,} scores in a flat layer and"
    f" {sum(n**2 for n in lengths):,} in a local one. A head of a global layer computes"
    f" {sum(lengths)} for pooling and {len(lengths) ** 2} between paragraphs."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (13) to (16) Pool: a paragraph as several vectors

Attention between all words is what we cannot afford. So a paragraph must become short. In the mean of its words the name of the town would be one word of twelve. Each head scores the words, and the softmax over the words *of one paragraph* gives the weights of a sum. (16) prints $a$ where the softmax $\hat a$ is meant.

$$a^z_{ij}=W^z_ax_{ij}\tag{13}$$

$$b^z_{ij}=W^z_bx_{ij}\tag{14}$$

$$\hat a^z_{ij}=\frac{\exp a^z_{ij}}{\sum_{j'}\exp a^z_{ij'}}\tag{15}$$

$$head^z_i=\mathrm{LN}\Big(W^z_c\sum_j\hat a^z_{ij}b^z_{ij}\Big)\tag{16}$$

**The code** pools $\mathrm{LN}(x)$, has no $W^z_c$, and one normalisation for all heads.
"""


# %% slideshow={"slide_type": "skip"}
def eq15_pooling_weights(x, layer):
    """Words of one paragraph [n, d] -> weights [n, heads]."""
    a = layer.score(layer.norms[0](x))  # (13): a row of its weight is a head's W_a
    return a.softmax(0)


def eq16_heads(x, layer):
    """One paragraph as each head pools it: [heads, d_head]."""
    weights, normed = eq15_pooling_weights(x, layer), layer.norms[0](x)
    b = layer.value(normed).view(len(x), layer.heads, -1)  # (14)
    pooled = [
        sum(weights[j, z] * b[j, z] for j in range(len(x))) for z in range(layer.heads)
    ]
    return layer.pool_norm(torch.stack(pooled))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
weights = eq15_pooling_weights(x[2], town.global_layers[0])[:, 0].tolist()
largest = sorted(zip(weights, cluster.paragraphs[1].text.split()), reverse=True)[:2]
Markdown(
    "In the first global layer, head 1 pools paragraph 2 mostly from "
    + " and ".join(f'"{name}" ({weight:.2f})' for weight, name in largest) + "."
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (17) to (20) Attend: paragraphs meet

Each head now has one vector a paragraph. Attention between these vectors is ordinary attention, over $m$ paragraphs instead of all words.

$$q^z_i=W^z_qhead^z_i\tag{17}$$

$$k^z_i=W^z_khead^z_i\tag{18}$$

$$v^z_i=W^z_vhead^z_i\tag{19}$$

$$context^z_i=\sum_{i'}\frac{\exp(q^{z\top}_ik^z_{i'})}{\sum_o\exp(q^{z\top}_ik^z_o)}\,v^z_{i'}\tag{20}$$

**The code** has the same three matrices for all heads, and divides the scores by $\sqrt{d_{head}}$.

## (24) A graph instead of a head

Two hops were not learned in 500 steps. A graph $G$ that is made outside the model can replace the attention of one head. Row $i$, scaled to sum to 1, tells how much paragraph $i$ takes from each paragraph. Our graphs have 1 on the diagonal, so no row is empty. In this head only the values are learned.

$$context^{z'}_i=\sum_{i'}\frac{G_{ii'}}{\sum_oG_{io}}\,v^{z'}_{i'}\tag{24}$$

The paper does not say which head it is. Here it is the first one, in every global layer.
"""


# %% slideshow={"slide_type": "skip"}
def eq20_weights(q, k):
    """Attention [m, m] of paragraphs with queries and keys [m, d_head]."""
    scores = [[q_i @ k_o / math.sqrt(len(q_i)) for k_o in k] for q_i in q]
    return torch.stack([torch.stack(row).softmax(0) for row in scores])


def eq24_weights(G):
    return torch.stack([row / row.sum() for row in G])


# %% slideshow={"slide_type": "skip"}
def eq20_contexts(x, layer, G=None):
    """All paragraphs, a list of [n_i, d] -> contexts [m, heads, d_head], weights."""
    heads = torch.stack([eq16_heads(words, layer) for words in x])  # [m, heads, d_head]
    q, k, v = (project(heads) for project in layer.between)  # (17) to (19)
    weights = [eq20_weights(q[:, z], k[:, z]) for z in range(layer.heads)]
    if G is not None:
        weights[0] = eq24_weights(G)
    contexts = [weights[z] @ v[:, z] for z in range(layer.heads)]
    return torch.stack(contexts, 1), torch.stack(weights)


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (21) to (23) Broadcast: back to the words

The decoder attends to words, not to paragraphs. So what a paragraph has gathered must get into its words. The contexts of all heads are projected to one vector $c_i$. It is the same for every word of the paragraph, and it is added to each.

$$c_i=W_c[context^1_i;\dots;context^{n_{head}}_i]\tag{21}$$

$$g_{ij}=W_{o2}\,\mathrm{ReLU}\big(W_{o1}(x_{ij}+c_i)\big)\tag{22}$$

$$x^l_{ij}=\mathrm{LN}(g_{ij}+x_{ij})\tag{23}$$

**The code** keeps $c_i$ in what is passed on: $x^l_{ij}=(x_{ij}+c_i)+\mathrm{FFN}(\mathrm{LN}(x_{ij}+c_i))$. In (23) it survives only inside $g_{ij}$.
"""


# %% slideshow={"slide_type": "skip"}
def eq23_global_layer(x, layer, G=None):
    """All paragraphs: a list of [n_i, d] -> the same."""
    contexts, _ = eq20_contexts(x, layer, G)
    new = []
    for words, context in zip(x, contexts):
        c = layer.output(context.flatten())  # (21)
        words = words + c
        new.append(words + layer.feed_forward(layer.norms[1](words)))  # (22), (23)
    return new


first, second = town.global_layers
x = eq23_global_layer(x, first)
contexts, weights = eq20_contexts(x, second)
long = second.output(contexts.flatten(1)).norm(dim=1)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
check_equations(checks, eq10_input, eq20_contexts, eq23_global_layer)
checks.line(
    f"In the second global layer, head 2 of paragraph 2 (osvia) attends to the title with"
    f" {weights[1, 2, 0]:.2f}, that of paragraph 3 (velholm) with {weights[1, 3, 0]:.2f}."
    f" The vector c is {long[2]:.0f} long in paragraph 2, and {long[3]:.0f} in paragraph 3."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The last line compares the functions with the library in double precision: three clusters of different lengths in one padded batch, with random weights, with a graph and without. `tests/models/test_hierarchical_transformer.py` does the same for the equations as they are printed.

## (25), (26) Two graphs of real texts

*Similarity* joins two paragraphs by the cosine of their tf-idf vectors (25), if it is at least 0.2. *Discourse* counts 0.2 for each name that two paragraphs share, and 1 if they are neighbours in a document and a word such as *however* joins them (26). Both are in `lib.papers.hierarchical_transformer.graphs`.

## The rest of the model

The decoder is an ordinary transformer decoder with one layer. It attends to all words of all paragraphs in one row. Nothing is copied. Labels are smoothed by 0.1.

| | in the paper | in the authors' code |
|---|---|---|
| layer normalisation | after each sum | before each part, and at the end |
| $\sqrt d$ on embeddings (10) | no | yes |
| $W^z_c$ in (16) | yes | no |
| $W_q$, $W_k$, $W_v$ | for each head | shared by all heads |
| scale in (20) | none | $1/\sqrt{d_{head}}$ |
| $c_i$ in what is passed on (23) | only inside $g$ | yes |
| encoder | 5 local and 2 global layers | 6 and 2 |

We have not measured which of these differences matters. [All deviations](../docs/papers/hierarchical_transformer.md#deviations) are listed with their reasons.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Where HT hides its decision

The table shows one head of HT's second global layer, for the title and three snippets. A word is as dark as its weight in the pooling.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
layer_picture(towns["HT"], cluster, layer=1, head=1, rows=[0, 2, 3, 12])

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
This head takes hardly anything but the name of a snippet's town. The snippets about *osvia* attend mostly to the title. The snippets about *velholm* attend to each other. So something different comes back to the words of the two towns.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
first_cut, second_cut, both_cut = (
    shares(solved["HT"][f"right, {name}"])
    for name in ("layer 1 cut", "layer 2 cut", "layers cut")
)
Markdown(f"""
A picture of attention shows one run. A model may also have a part and not depend on it. So we cut: in the trained HT, each paragraph may attend only to itself. Then {both_cut} of the facts are right (three seeds). So all runs depend on what passes between paragraphs. But *where* it passes differs from run to run. With a cut in layer 1 only, {first_cut} are right; with a cut in layer 2 only, {second_cut}. The first run needs layer 2, the others need layer 1. So the table above, which shows layer 2, explains only the first run.

In that run we can go one step further. The second global layer adds one vector to all words of a paragraph. We measure its length, and then leave it out.
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
marks = marks_table()
Prediction(
    "The decoder should attend to the snippets about the title's town. Where is the added"
    " vector longer?",
    ("in the snippets about the title's town", "in the others", "it is equally long"),
    "In the others. The vector marks what is to be ignored. If we leave it out there,"
    f" {marks.iloc[1, 1].split()[0]}% of the facts are lost. If we leave it out of the"
    " snippets about the title's town, none are.",
    [marks],
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What does a single head take away?

With one head, a paragraph becomes one vector of 64 numbers instead of four of 16. So nothing is lost in width. What is lost are three of four attention distributions, over words and over paragraphs.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
after = {f"{n:,} steps": f"right after {n}" for n in (500, 1000, 2000)}
single = solved["one pooling head"]
good = sum(share > 0.9 for share in single["right after 2000"])
Prediction(
    "The authors lose 0.92 points of R-1 with one pooling head. What happens to the towns?",
    ("they are learned as well", "most runs learn them", "no run learns them"),
    f"After 1,000 steps {shares(single['right after 1000'])} are right, and after 2,000"
    f" {shares(single['right after 2000'])}. So {good} of 3 runs learn the task with one"
    " head. Three runs are too few to say that four heads are safer.",
    [
        task_table(
            "towns", after, {r: r for r in ("HT", "one pooling head")}, by_seed=True
        )
    ],
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What if we give the connections away?

Attention between paragraphs is a graph that the model learns. The authors also try a graph that is made outside the model, and that replaces the attention of one head. It joins paragraphs that share names or words.

We test it where one connection is not enough. The title is *quokka*. One paragraph says *quokka is called zed*, another says *zed: red boat*. The answer, *red boat*, shares no word with the title: it is two hops away. The other six paragraphs say the same of other names, so a guess is right in 25%. The given graph joins paragraphs that share a name.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
hops = task_results("hops")
Prediction(
    "How many global layers does it take to answer, after 500 steps?",
    ("one with the graph", "two with the graph", "two without the graph"),
    f"Two with the graph: {shares(hops['2, given']['right'])} are right. One with the graph"
    f" has {shares(hops['1, given']['right'])}, and two without"
    f" {shares(hops['2, learned']['right'])}: they guess. A global layer is one hop.",
    [hops_table()[["500 steps"]]],
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
A given graph can help if it has connections that attention has not learned yet. This one joins exactly the right paragraphs; a graph of real texts need not.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Your corpus

With `dataset` the shipped model reads your test documents here. With `preset` the page trains a model on them first, and with `run` it opens one that you have trained. Start JupyterLab and set these in the page's first cell, or use `papermill`. As the page comes, the report is about the shipped model, which also copies (our addition), and articles of `pmc-sample`. It was trained on single articles: it reads their title and their first 22 paragraphs in order, without ranking.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
choice.report(trained)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Does the model depend on its text? The table has the loss of references with their own text and with the next document's.

The figure ranks paragraphs of the corpus, or of ACLSum's articles if no corpus is named. *Similarity* ranks them by their tf-idf cosine with the title, *learned* is the ranker of (1) to (6), and *by the labels* uses what the ranker should predict.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
losses = nll_by_text(trained, choice.documents)
losses.round(2).to_frame("loss of references, nats a piece").T

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
studied = resolve("hierarchical_transformer", preset or "demo", variant, seed=seed)
corpus = load_corpus(dataset or "aclsum:paragraphs", errors="skip")
wide = studied.options.base.prepare(corpus, studied.documents, progress=False)
panel = ranking_panel(wide, studied.options, corpus.ranked, preset == "paper")
caption = "How much of the summary is in the best paragraphs, by how they are ranked."
figures.show(lines, caption, "hierarchical_ranking", panels=[panel], width=5.6)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. Your own model

Now you write a global layer, for padded batches. You fill in four functions. Run the check below each: it compares your results with the library or with a loop. Then your layer is put into a small transformer, and trained. Hints and solutions are folded. `make class` makes notebooks of this part and the exercises for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from companion.exercises.hierarchical_transformer import check, own_model, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**1.** *Pool, the weights.* The scores (13) of $m$ paragraphs come in one tensor, padded to the same number of words. Compute the pooling weights (15). The words of a paragraph compete, and padding gets 0. (easy, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def pooling_weights(scores, mask):
    """Weights [m, n, heads].

    scores: [m, n, heads]; mask: [m, n], whether there is a word.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, pooling_weights)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Over which dimension is the sum 1? A mask *after* the softmax leaves short paragraphs weights that sum to less than 1.

</details>
<details><summary>Solution</summary>

```python
def pooling_weights(scores, mask):
    scores = scores.masked_fill(~mask[..., None], -torch.inf)
    return scores.softmax(1)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Pool, the vectors.* Sum the values (14) with these weights, as in (16) without $W_c$ and normalisation. (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def paragraph_vectors(weights, values):
    """Vectors [m, heads, s].

    weights: [m, n, heads]; values: [m, n, heads, s].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, paragraph_vectors)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The weights need one more dimension.

</details>
<details><summary>Solution</summary>

```python
def paragraph_vectors(weights, values):
    return (weights[..., None] * values).sum(1)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** *Attend.* Compute the weights of (20) in the code's form, with scores divided by $\sqrt{s}$, for a batch of clusters. Some clusters have fewer paragraphs. No paragraph attends to padding; the rows of padding do not count. (medium, core, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def attention_between(q, k, present):
    """Attention [B, heads, P, P]: rows attend to columns.

    q, k: [B, heads, P, s]; present: [B, P], whether there is a paragraph.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, attention_between)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

`present` has to be broadcast over heads and over the rows that attend.

</details>
<details><summary>Solution</summary>

```python
def attention_between(q, k, present):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~present[:, None, None], -torch.inf)
    return scores.softmax(-1)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** *Broadcast.* The words of all paragraphs of the batch are one long list. Add to each word the vector $c_i$ of its paragraph. (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def broadcast(x, c, row):
    """New states of the words [W, d].

    x: [W, d]; c: [A, d], one for each paragraph; row: [W], the paragraph of each word.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, broadcast)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Tensors can be indexed by tensors.

</details>
<details><summary>Solution</summary>

```python
def broadcast(x, c, row):
    return x + c[row]
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Put it together.** The task is smaller than the towns: three snippets about each of two towns, and the only fact is the river. The next cell trains three models for 400 steps each, which takes about half a minute: one with your global layer, the library's, and one without a global layer. Then it shows six clusters to the first and the last.
"""

# %% slideshow={"slide_type": "skip"}
own_model(pooling_weights, paragraph_vectors, attention_between, broadcast)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 3. Exercises
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** *Find the bug.* A student implemented (24) for one cluster of a padded batch like this:

```python
def attention_of_graph(G, present):
    A = G / G.sum(0)
    return A * present
```

Do the rows sum to 1? Write it correctly. The rows of padding do not count. (easy, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def attention_of_graph(G, present):
    """Attention [m, m] by a graph G [m, m]: row i attends.

    present: [m], whether there is a paragraph. No paragraph attends to padding.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, attention_of_graph)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

There are two faults. What does `sum(0)` add up? And what is left of a row's sum of 1 when padding is removed afterwards?

</details>
<details><summary>Solution</summary>

```python
def attention_of_graph(G, present):
    G = G * present
    return G / G.sum(1, keepdim=True)
```

Rows are scaled, not columns, and padding is removed first. In the library the first head has this attention.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** *How far?* A graph $G$ replaces the only head's attention (24). Each global layer adds to the words of a paragraph what it has gathered (22), (23). Derive which paragraphs the words of each paragraph depend on, after a number of global layers. (hard, core, 15 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def reached(G, layers):
    """Truth values [m, m]: row i for the words of paragraph i.

    G: a graph [m, m], 0 where nothing is taken; layers: a whole number.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, reached)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

After two layers a paragraph has what those had that it takes from. Does it lose its own words where the diagonal of $G$ is 0?

</details>
<details><summary>Solution</summary>

```python
def reached(G, layers):
    step = G + torch.eye(len(G))
    return torch.linalg.matrix_power(step, layers) > 0
```

A layer is one hop, and what is there already stays: paths of *at most* so many hops, so the power is that of $G+I$. The check looks where the library's Jacobian is not 0.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**7.** *Predict, and let it be trained.* A model with two global layers learns a small task: the title names one of three paragraphs, and the summary is the word after that name. It writes all summaries correctly. Then something is cut, **without training again**. Are more than 80% of the summaries still right? (a) The decoder attends only to the named paragraph. (b) It attends only to the title. (c) It attends to everything but the title. (d) It attends to everything, but in the global layers no paragraph attends to the title. The check trains the model, which takes half a minute. (hard, core, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def still_right():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, still_right)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The decoder has one layer, so it attends to the source once. Which part has compared the names before?

</details>
<details><summary>Solution</summary>

```python
def still_right():
    return [True, False, True, False]
```

The global layers compare names and change the words of the paragraphs, so that the decoder can distinguish the named one. It does not need the title, but the layers do. In the towns, the first run does the opposite: it marks the paragraphs to ignore.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* `python -m lib.train hierarchical_transformer --dataset wikisum:wikisum_folder --preset code --bf16 --output runs/wikisum` trains at the authors' size on a GPU. The folder holds the ranked shards (`WIKI.train.0.pt` and so on) and their SentencePiece model.
* `papermill notebooks/hierarchical_transformer.ipynb out.ipynb -p dataset multi_news` makes the report on Multi-News. `python -m companion.train_task towns` trains the models of the first picture.
* [`docs/papers/hierarchical_transformer.md`](../docs/papers/hierarchical_transformer.md) maps every equation to its cell and its function in `lib`. Next: [all models on the same documents](compare.ipynb).
"""
