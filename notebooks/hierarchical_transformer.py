# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Hierarchical transformers: many paragraphs, one summary

Yang Liu, Mirella Lapata: *Hierarchical Transformers for Multi-Document Summarization*, ACL 2019,
[arXiv:1905.13164](https://arxiv.org/abs/1905.13164).

Many documents are about the same topic. Together they are too long for a transformer in which every word sees every other word. This paper
first **ranks** the paragraphs of all documents by how much each is likely to give to the summary, and keeps the best. Its encoder then works
on two levels. **Local layers** work inside each paragraph. **Global layers** turn each paragraph into a few vectors, let paragraphs attend
to each other through these vectors, and give every word what its paragraph has learned. The attention between paragraphs is a learned graph
over them. One of its heads can be replaced by a graph that is made outside the model, from **lexical similarity** or **discourse**.

**When you have read this page**, you can explain how paragraphs learn about each other through a few vectors each, what a given graph changes, and where the authors' code differs from
their equations.

**Before you start**: PyTorch, a transformer's attention, and what [Start here](start_here.ipynb) explains: beam search, length penalty, warm-up, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | towns: many snippets that repeat and contradict each other, and what each part of the model is for | 10 |
| 2 | every equation as a short function, in two readings, the paper's and its code's, checked against the library `lib` on a small cluster; all of them composed into the loss | 45 |
| 3 | real papers as clusters of paragraphs: the paper's study of ranking (its Table 1) | 10 |
| 4, 5 | real text: a model that has not learned enough, and how one sees it; what its heads attend to, beside the two graphs | 15 |
| 6, 7 | the published tables and the commands for their rows, what deviates | 10 |
| 8 | ten exercises | 90 |

Before this page: [Mem2Mem](mem2mem.ipynb); next: [all models on the same documents](compare.ipynb).

With the parameters as they are, the page takes about a minute on two CPU cores and needs no network. It opens the shipped model
(`trained/hierarchical_transformer`) and lets it summarize papers that it has never seen. `towns_steps=1000` trains the models of part 1 here, in some ten minutes. With any other `dataset`, `preset`, `variant`, `steps`, `study_steps` or `seed` the page
trains a model first. The model of `preset="demo"` is small and sees a hundred clusters; it then writes the same text for every cluster.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Conventions

The paper is paraphrased, never quoted; **(5)** is its equation 5. Functions named after an equation, like `eq15_pooling_weights`, are
written to be read: they take one cluster, with no batch and no padding. Their weights come from the library's modules. `checks` compares their results with
what the library computes for a padded batch in double precision, and stops the page if the two differ. A table at the end of the part lists all comparisons. Linear layers, LSTMs and layer
normalisation are PyTorch's in both.

| symbol | shape | what |
|---|---|---|
| $m$ | | paragraphs of a cluster; the title is the first |
| $d$ | | width of the model |
| $x_{ij},\ w_{ij}$ | $d$ | word (piece) $j$ of paragraph $i$; its embedding |
| $e_p$ | $d/2$ | sinusoids of a position |
| $n_{head},\ d_{head}$ | | heads $z$, and their width $d/n_{head}$ |
| $\hat a^z_{ij}$ | scalar | pooling weight of a word inside its paragraph |
| $head^z_i$ | $d_{head}$ | paragraph $i$ as head $z$ sees it |
| $context^z_i$ | $d_{head}$ | what paragraph $i$ gathers from all paragraphs |
| $c_i$ | $d$ | all contexts of paragraph $i$ together |
| $G$ | $m\times m$ | a graph over paragraphs |
| $W,\ V$ | | pieces of all paragraphs together; of the vocabulary |

Some letters mean a second thing: $z$ a switch in (C2), $d$ half of the width in (7) and (8), $p$ a vector in (4), $i$ a dimension in (7), $m$ a marker in (26).
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # aclsum:paragraphs, multi_news, ... or a folder of clusters
preset: str = ""  # empty: the shipped model; demo: 100 clusters; paper, code: for a GPU
variant: str = "HT"  # a row of Tables 2 and 3: HT + similarity graph, FT 600, ...
steps: int = 0  # training steps; 0: as many as the preset says
study_steps: int = 0  # of each row of Tables 2 and 3 (100: half an hour); 0: none
seed: int = 0  # of weights, batches and bootstrap
towns_steps: int = 0  # of each model of part 1 (1000: 5 minutes); 0: the shipped
output: str = ""  # folder of the trained run; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
from lib.pages.parameters import check_parameters

check_parameters(globals())

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lib.pages.checks import Checks, gradients
from lib.data.batch import EncodedDocument, make_batch
from lib.papers.hierarchical_transformer.clusters import clusters, encode_cluster
from lib.papers.hierarchical_transformer.ranking import (
    order_scores,
    similarity_scores,
)
from lib.data.corpora import anthology_year, load_corpus
from lib.papers.hierarchical_transformer.graphs import (
    MARKERS,
    capitalised_names,
    density,
    discourse_graph,
    entity_finder,
    similarity_graph,
)
from lib.data.words import bigram_recall
from lib.data.vocabulary import BOS, EOS, PAD, SENTENCE_END
from lib.evaluation.baselines import lexrank, oracle
from lib.evaluation.bootstrap import paired_bootstrap
from lib.pages.diagrams import show_folded, show_model
from lib.pages.figures import (
    attention_maps,
    lines,
    signed_maps,
    word_maps,
    word_weights,
)
from lib.runs.search import summarize
from lib.human.sheets import write_summaries
from lib.layers.transformer import sinusoids
from lib.results.kept import kept_table
from lib.evaluation.metrics import longest_common_recall, rouge
from lib.models.hierarchical_transformer import (
    GlobalLayer,
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.pages.runs import (
    loss_figure, nll_by_text, run_facts, run_for_page, train_or_load,
    unseen_papers, validation_losses,
)  # fmt: skip
from lib.pages.shown import (
    PageFigures, Passages, clip, figures_folder, show_source, show_tables, wrapped,
)  # fmt: skip
from lib.pages.summaries import summary_table
from lib.pages.measured import task_results
from lib.pages.towns import (
    cluster_passages, cuts_table, hops_table, mean_share, shares, town_graphs, towns_table,
)  # fmt: skip
from lib.papers import open_run, resolve
from lib.papers.hierarchical_transformer.ranking import (
    best_paragraphs,
    learned_ranking,
    train_ranker,
)
from lib.runs.folder import kept_checkpoints, load_weights
from lib.results.scores import cut
from lib.results.text import published_table, setting, table_frame
from lib.system.files import trained_folder, work_folder
from lib.papers.tables import DECODINGS
from lib.runs.loop import evaluate_loss
from lib.tasks.towns import open_towns, unseen_towns, write_towns

as_they_are = (dataset, preset, variant, steps, study_steps, seed) == (
    "",
    "",
    "HT",
    0,
    0,
    0,
)
studied = resolve(
    "hierarchical_transformer",
    preset or "demo",
    variant,
    steps=steps or None,
    seed=seed,
)
studied_corpus = load_corpus(
    dataset or "aclsum:paragraphs", errors="skip"
)  # what cannot be read ends the page here
chosen, corpus, dataset, preset = (
    studied,
    studied_corpus,
    dataset or "aclsum:paragraphs",
    preset or "demo",
)
kept = (
    as_they_are and studied.paper.kept is not None
)  # the run that the project keeps is shown, where there is one
if kept:
    dataset, preset = "pmc-sample", "medium"
    chosen, corpus = (
        resolve("hierarchical_transformer", preset, variant),
        load_corpus(dataset),
    )
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The model in one picture

Colours mean the same on every page. An arrow carries the number of its equation and the shape of the result. The picture returns at every equation, with the part
in question highlighted.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. Towns: what each part is for

A cluster is twelve snippets about two invented towns, in any order. Each says two facts, the second of "it". Each of a town's four facts is said three times in different words, and one of the
three is wrong in every second case. The title names a town, and the summary is what most snippets say of it. All facts are drawn anew for each cluster, so nothing can be learned by heart. The model is
the paper's own, with 262,855 parameters and **without copying**.
"""

# %% slideshow={"slide_type": "subslide"}
towns = open_towns(towns_steps, seed)
unseen = unseen_towns(1)
written = {row: write_towns(towns[row], unseen, row)[0] for row in towns}
Passages(cluster_passages(unseen[0], written))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Which part is needed? Each row of the table is a model from which one thing is taken, trained like HT: batches of 32 new clusters, Adam at 0.001, 1,000 steps, several seeds (`python -m lib.solve towns`). Facts are those of 200 unseen
clusters. A wrong one is *the other town's*, *a minority's* of the snippets about the right town, or stands *nowhere*.
"""

# %% slideshow={"slide_type": "subslide"}
solved = task_results("towns")
towns_table(solved)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** HT writes nearly all facts right. Without global layers, or in one flat row, half of them are right, and nearly all others are the other town's: these models read, and outvote the minority, but do not know which town is meant. This task does not need paragraph positions. With one pooling head it is learned by two seeds, and by the third not even in 2,000 steps. The given graph makes it sooner with two seeds of three.
"""

# %% slideshow={"slide_type": "skip"}
for paragraphs in (24, 48):
    right = shares(solved["HT"][f"right, {paragraphs} paragraphs"])
    print(f"HT, trained on 12 paragraphs, reads {paragraphs}: {right} of facts right")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The attention between paragraphs is a learned graph. We sort the rows by town and draw the head that comes nearest to a graph of equal towns, beside that graph. In the row "graph of towns", the first head has it by (24).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
caption = (
    "How much each paragraph (row) takes from each, on one unseen cluster, sorted by town:"
    " a given graph, and the learned attention that is nearest to it."
)
panels = town_graphs(towns["HT"], unseen[0])
figures.show(word_maps, caption, "hierarchical_towns", panels=panels, top=1.0)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Both graphs have two blocks. In the learned one, snippets about the title's town look mostly at the title and hardly at the other town, and those about the other town look at each other.

What is this attention *for*? A dark cell says where a head looks, and not what for. So we cut connections of the trained models, for each seed, and count what is still right. The second column is a smaller task: the title names one of five
paragraphs, and the summary is the two words that stand in it (`python -m lib.solve named`).
"""

# %% slideshow={"slide_type": "subslide"}
named = task_results("named")
cuts_table(solved["HT"], named["HT"])

# %% slideshow={"slide_type": "skip"}
weight = mean_share(solved["HT"]["decoder's weight on its town"])
print(f"where it writes a fact, the decoder has {weight} of its weight on the town,")
weight = mean_share(named["HT"]["decoder's weight on it"])
print(f"in the smaller task, {weight} on the named paragraph")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Without any look at the title, half of the facts are right or fewer, and most others are the other town's. *In which layer* a model looks at the title is an accident of its seed: the cut that costs one seed everything
costs another nothing, in both tasks. So a picture of one head explains one run. What all seeds share is where the decoder looks: from the paragraphs with the answer alone it writes most of it right, from the others what those say.

The smaller task also shows what the paper's *other* idea does. A ranker, (1) to (6), can put the named paragraph first before the model reads anything:
"""

# %% slideshow={"slide_type": "skip"}
ranked = {row: shares(measures["right"]) for row, measures in named.items()}
pd.DataFrame({"summaries right": ranked})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Without the ranker, the model without global layers guesses one of five paragraphs. With it, both models know where to look. Ranking does before the model what global layers do inside it.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. The equations, one by one

## A toy corpus

Three clusters. The first row of each is its title, ended by the symbol `<T>`; the others are paragraphs. The clusters differ in their
numbers of paragraphs and of words, so that everything is padded somewhere. A word has one piece here. The weights are random: the pictures show what is computed, not
what a trained model does.
"""

# %% slideshow={"slide_type": "skip"}
toy_texts = [
    ("the zebra", ["the zebra saw a cat", "it ran"], ["zebra saw cat", "it ran"]),
    ("a quokka", ["it sat"], ["quokka sat"]),
    ("the cat", ["the cat sat and sat", "it ran", "a zebra saw the cat", "cat"],
     ["cat saw zebra"]),
]  # fmt: skip
SYMBOLS = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "<T>", "<P>", "<Q>"]
toy_pieces = [
    *SYMBOLS, "the", "zebra", "saw", "a", "cat", "it", "ran", "quokka", "sat", "and",
]  # fmt: skip


def numbered(text):
    return [toy_pieces.index(word) for word in text.split()]


toy_rows = []
for title, paragraphs, summary in toy_texts:
    ids = [numbered(f"{title} <T>"), *map(numbered, paragraphs)]
    toy_rows.append((ids, numbered(" <Q> ".join(summary) + " [EOS]")))


# %% slideshow={"slide_type": "skip"}
def encoded(name, rows, target):
    words, lengths = [w for row in rows for w in row], [len(row) for row in rows]
    made = EncodedDocument.of(name, words, lengths, target)
    wanted = [w for w in target if w > SENTENCE_END]
    recall = [bigram_recall(row, wanted) for row in rows[1:]]
    return replace(made, labels=np.array(recall, dtype=np.float32))


toy = [encoded(name, *pair) for name, pair in zip("abc", toy_rows)]
V, d, n_head = len(toy_pieces), 8, 2
b = 0  # the cluster that the next cells follow; it is padded
batch = make_batch(toy, V)
rows, target = toy_rows[b]
row_names = ["title", *(f"paragraph {i}" for i in range(1, len(rows)))]
print(f"batch: {tuple(batch.source.shape)} words, {batch.sentence_mask.shape[1]} rows")
shown = [" ".join(f"{toy_pieces[i]}:{i}" for i in row) for row in [*rows, target]]
Passages(list(zip([*row_names, "summary"], shown)))

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) to (6) Which paragraphs matter

One LSTM reads the title, another one reads a paragraph. The title becomes one vector: the largest value of each dimension over its words. This vector is joined to every word of the
paragraph. The result is again reduced to the largest value of each dimension, and a logistic regression gives the score.

$$\{u_{t1},\dots\}=\mathrm{lstm}_t(\{w_{t1},\dots\})\tag{1}$$

$$\{u_{p1},\dots\}=\mathrm{lstm}_p(\{w_{p1},\dots\})\tag{2}$$

$$\hat u_t=\mathrm{maxpool}(\{u_{t1},\dots\})\tag{3}$$

$$p_i=\tanh\big(W_1[u_{pi};\hat u_t]\big)\tag{4}$$

$$\hat p=\mathrm{maxpool}(\{p_1,\dots\})\tag{5}$$

$$s=\sigma(W_2\hat p)\tag{6}$$

The ranker learns, by cross entropy, the **ROUGE-2 recall** of the paragraph: the share of the summary's bigrams that the paragraph has. The
ranker reads pieces, but its labels are counted in words. In the toy clusters a word is a number.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {1, 2, 3, 4, 5, 6})


# %% slideshow={"slide_type": "skip"}
def eq01_states(words, lstm, embedding):
    """Words of a title or (2) of a paragraph -> states [n, hidden]."""
    states, _ = lstm(embedding(torch.tensor(words)))
    return states


def eq03_title_vector(states):
    return states.max(0).values


def eq04_features(u_pi, title_vector, W_1):
    return torch.tanh(W_1(torch.cat([u_pi, title_vector])))


def eq06_score(title, paragraph, ranker):
    title_vector = eq03_title_vector(eq01_states(title, ranker.title, ranker.embedding))
    states = eq01_states(paragraph, ranker.paragraph, ranker.embedding)
    p = torch.stack([eq04_features(u, title_vector, ranker.combine) for u in states])
    p_hat = p.max(0).values  # (5)
    return torch.sigmoid(ranker.score(p_hat))[0]


# %% slideshow={"slide_type": "skip"}
def rouge_2_recall(paragraph, summary):
    """Bigrams of the summary, each found as often as the paragraph has it."""
    there, wanted = (list(pairwise(words)) for words in (paragraph, summary))
    found = sum(min(wanted.count(pair), there.count(pair)) for pair in set(wanted))
    return found / max(1, len(wanted))


torch.manual_seed(1)
toy_ranker = ParagraphRanker(ParagraphRankerConfig(V, embedding=4, hidden=3))
toy_ranker = toy_ranker.double().eval()
scored = [(rows, row, target) for rows, target in toy_rows for row in rows[1:]]
s = torch.stack([eq06_score(rows[0], row, toy_ranker) for rows, row, _ in scored])
wanted = [[w for w in target if w > SENTENCE_END] for _, _, target in scored]
y = [rouge_2_recall(row, words) for (_, row, _), words in zip(scored, wanted)]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_scores = toy_ranker.logits(batch).sigmoid()
checks.close(s, lib_scores, "(1)-(6)", "scores of all paragraphs of the batch")
checks.close(torch.tensor(y), batch.labels, "soft labels", "ROUGE-2 recall")
y = torch.tensor(y).double()
cross_entropy = -(y * s.log() + (1 - y) * (1 - s).log()).mean()
lib_loss = toy_ranker.loss(batch)["loss"]
checks.close(cross_entropy, lib_loss, "ranker", "cross entropy with soft labels")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (7) to (10) Two positions

A word has two positions: the number of its paragraph, and its own number in that paragraph. Each gets half of the dimensions. The paper prints $e_p[i]$ in (7)
where it means $e_p[2i]$. In (7) and (8), $d$ is read as the width of $e_p$ itself, which is half of the model's width, as in the code.

$$e_p[2i]=\sin\big(p/10000^{2i/d}\big)\tag{7}$$

$$e_p[2i+1]=\cos\big(p/10000^{2i/d}\big)\tag{8}$$

$$pe_{ij}=[e_i;e_j]\tag{9}$$

$$x^0_{ij}=w_{ij}+pe_{ij}\tag{10}$$

**The code** puts the word's half first, and multiplies $w_{ij}$ by $\sqrt d$. From here on, every function has the two readings: `paper`
for the equations as they stand, `code` for what the authors ran.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {7, 8, 9, 10})


# %% slideshow={"slide_type": "skip"}
def eq07_position(p, width):
    """The sinusoids of (7) and (8): [width]."""
    angles = [p / 10000 ** (2 * i / width) for i in range(width // 2)]
    return torch.tensor(
        [f(angle) for angle in angles for f in (math.sin, math.cos)]
    ).double()


def eq09_both_positions(i, j, width, form):
    paragraph, word = eq07_position(i, width // 2), eq07_position(j, width // 2)
    return torch.cat([paragraph, word] if form == "paper" else [word, paragraph])


# %% slideshow={"slide_type": "skip"}
def eq10_input(rows, model):
    """Words of every paragraph: a list of [n_i, d]."""
    form = model.config.form
    scale, E = 1 if form == "paper" else math.sqrt(d), model.embedding.weight
    placed = []
    for i, row in enumerate(rows):
        both = [eq09_both_positions(i, j, d, form) for j in range(len(row))]
        placed.append(scale * E[torch.tensor(row)] + torch.stack(both))
    return placed


def toy_transformer(**changes):
    torch.manual_seed(1)
    sizes = {"width": d, "heads": n_head, "inner": 12, "local_layers": 2}
    sizes |= {"global_layers": 2, "dropout": 0.0, **changes}
    config = HierarchicalTransformerConfig(V, **sizes)
    model = HierarchicalTransformer(config).double()
    for parameter in model.parameters():  # larger than usual: every mistake shows
        torch.nn.init.normal_(parameter, std=0.5)
    return model


# %% slideshow={"slide_type": "skip"}
torch.set_default_dtype(torch.float64)  # for the toy alone
models = {form: toy_transformer(form=form) for form in ("paper", "code")}


# %% slideshow={"slide_type": "skip"}
def seen_by_lib(model, graph=None):
    """What enters the first layer and leaves every layer of lib, for cluster b."""
    found, hooks = [], []

    def keep(words):
        placed = words.new_zeros(batch.source.numel(), d)
        placed = placed.index_copy(0, batch.ragged.word, words)
        placed = placed.view(*batch.source.shape, d)
        found.append(placed[b, : len(toy[b].source)].detach())

    first = model.local_layers[0]
    hooks.append(first.register_forward_pre_hook(lambda layer, inputs: keep(inputs[0])))
    for layer in model.local_layers:
        hooks.append(layer.register_forward_hook(lambda *passed: keep(passed[2])))
    for layer in model.global_layers:
        hooks.append(layer.register_forward_hook(lambda *passed: keep(passed[2][0])))
    state = model.encode(batch, graph)
    for hook in hooks:
        hook.remove()
    return found, state


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_layers, lib_states = {}, {}
for form, model in models.items():
    lib_layers[form], lib_states[form] = seen_by_lib(model)
    x = torch.cat(eq10_input(rows, model))
    checks.close(x, lib_layers[form][0], "(7)-(10)", f"input, {form}")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (11), (12) A local layer

Inside one paragraph every word looks at every word. $\mathrm{MHAtt}$ is multi-head attention (Vaswani et al. 2017): each head maps the words $X$ to queries, keys and values of width
$d_{head}$ and gives $\mathrm{softmax}(QK^\top/\sqrt{d_{head}})V$; the heads are joined and mixed by one more matrix. $\mathrm{FFN}(x)=W_2\,\mathrm{ReLU}(W_1x)$ works on each word alone;
$\mathrm{LN}$, layer normalisation, gives a vector mean 0 and variance 1, scaled and shifted by learned numbers.

$$h=\mathrm{LN}\big(x^{l-1}+\mathrm{MHAtt}(x^{l-1})\big)\tag{11}$$

$$x^l=\mathrm{LN}\big(h+\mathrm{FFN}(h)\big)\tag{12}$$

**The code** normalises the input of each part instead of the sum: $h=x+\mathrm{MHAtt}(\mathrm{LN}\,x)$, $x^l=h+\mathrm{FFN}(\mathrm{LN}\,h)$.
It normalises once more after the last layer.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {11, 12})


# %% slideshow={"slide_type": "skip"}
def multi_head_attention(queries, words, part):
    """Scaled dot-product attention of [m, d] to [n, d], head by head."""
    q, k, v = part.query(queries), part.key(words), part.value(words)
    size = d // part.heads
    found = []
    for z in range(part.heads):
        columns = slice(z * size, (z + 1) * size)
        weights = (q[:, columns] @ k[:, columns].T / math.sqrt(size)).softmax(-1)
        found.append(weights @ v[:, columns])
    return part.output(torch.cat(found, -1))


# %% slideshow={"slide_type": "skip"}
def eq12_local_layer(x, layer, form):
    """Words of one paragraph [n, d]."""
    if form == "paper":
        attended = multi_head_attention(x, x, layer.attention)
        h = layer.attention_norm(x + attended)  # (11)
        return layer.feed_forward_norm(h + layer.feed_forward(h))
    normed = layer.attention_norm(x)
    h = x + multi_head_attention(normed, normed, layer.attention)
    return h + layer.feed_forward(layer.feed_forward_norm(h))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
local_words = {}
for form, model in models.items():
    x = eq10_input(rows, model)
    for number, layer in enumerate(model.local_layers, 1):
        x = [eq12_local_layer(paragraph, layer, form) for paragraph in x]
        found, name = lib_layers[form][number], f"local layer {number}, {form}"
        checks.close(torch.cat(x), found, "(11), (12)", name)
    local_words[form] = x

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (13) to (16) Pooling: a paragraph as several vectors

Each head weighs the words of a paragraph with a softmax, and adds up their values. (16) prints $a$ where the softmax $\hat a$ is meant.

$$a^z_{ij}=W^z_ax_{ij}\tag{13}$$

$$b^z_{ij}=W^z_bx_{ij}\tag{14}$$

$$\hat a^z_{ij}=\frac{\exp a^z_{ij}}{\sum_{j'}\exp a^z_{ij'}}\tag{15}$$

$$head^z_i=\mathrm{LN}\Big(W^z_c\sum_j\hat a^z_{ij}b^z_{ij}\Big)\tag{16}$$

**The code** pools $\mathrm{LN}(x)$, has no $W^z_c$, and one normalisation for all heads.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {13, 14, 15, 16})


# %% slideshow={"slide_type": "skip"}
def eq15_pooling_weights(x, layer):
    """Words of one paragraph [n, d] -> weights [n, heads]."""
    a = layer.score(x)  # (13): a row of its weight is a head's W_a
    return a.softmax(0)


def eq16_heads(x, layer, form):
    """One paragraph as each head sees it: [heads, d_head]."""
    x = layer.norms[0](x) if form == "code" else x
    weights = eq15_pooling_weights(x, layer)
    values = layer.value(x).view(len(x), layer.heads, -1)  # (14)
    heads = []
    for z in range(layer.heads):
        pooled = sum(weights[j, z] * values[j, z] for j in range(len(x)))
        if form == "code":
            heads.append(layer.pool_norm(pooled))
        else:
            heads.append(layer.pool_norms[z](layer.pool_output[z] @ pooled))
    return torch.stack(heads)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for form, model in models.items():
    layer = model.global_layers[0]
    x = [layer.norms[0](x) if form == "code" else x for x in local_words[form]]
    weights = [eq15_pooling_weights(words, layer) for words in x]
    lib_weights = lib_states[form].pooling[0][b, : len(toy[b].source)]
    checks.close(
        torch.cat(weights), lib_weights, "(13), (15)", f"pooling weights, {form}"
    )

# %% slideshow={"slide_type": "skip"}
pooled = {
    name: w.detach().T for name, w in zip(row_names, weights)
}  # of the code's reading
panels = []
for (name, w), row in zip(pooled.items(), rows):
    columns = [toy_pieces[i] for i in row]
    panels.append(
        {"title": name, "values": w, "rows": ["head 1", "head 2"], "columns": columns}
    )

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
caption = (
    "(15) on the toy cluster: how much each head takes of each word of a paragraph."
)
figures.show(word_maps, caption, panels=panels)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (17) to (20) Attention between paragraphs

For each head, paragraphs attend to paragraphs.

$$q^z_i=W^z_qhead^z_i\tag{17}$$

$$k^z_i=W^z_khead^z_i\tag{18}$$

$$v^z_i=W^z_vhead^z_i\tag{19}$$

$$context^z_i=\sum_{i'}\frac{\exp(q^{z\top}_ik^z_{i'})}{\sum_o\exp(q^{z\top}_ik^z_o)}\,v^z_{i'}\tag{20}$$

**The code** has the same three matrices for all heads, and divides the scores by $\sqrt{d_{head}}$.

## (24) A graph in place of a head

A graph that is made outside the model can take the place of one head's attention. Row $i$ of $G$, scaled to sum to 1, says how much paragraph $i$ takes from each paragraph. In this head only the values
are learned.

$$context^{z'}_i=\sum_{i'}\frac{G_{ii'}}{\sum_oG_{io}}\,v^{z'}_{i'}\tag{24}$$

The paper does not say which head the graph replaces, nor in which layers. Here it replaces the first head of every global layer. No published
commit of the code has the graphs.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {17, 18, 19, 20, 24})


# %% slideshow={"slide_type": "skip"}
def eq17_project(head, which, z, layer, form):
    """Query (17), key (18) or value (19) of a paragraph for head z: which is 0 to 2."""
    return (
        layer.between[which](head)
        if form == "code"
        else layer.between_weights[which, z] @ head
    )


def eq20_weights(heads, i, z, layer, form):
    """How much paragraph i attends to each: [m]. heads: a list of [heads, d_head]."""
    q = eq17_project(heads[i][z], 0, z, layer, form)
    scores = torch.stack(
        [q @ eq17_project(head[z], 1, z, layer, form) for head in heads]
    )
    return (scores / math.sqrt(len(q)) if form == "code" else scores).softmax(0)


def eq24_weights(G, i):
    return G[i] / G[i].sum()


# %% slideshow={"slide_type": "skip"}
def eq20_contexts(heads, layer, form, G=None):
    """[m, heads, d_head], and the weights [heads, m, m]."""
    contexts, weights = [], []
    for z in range(layer.heads):
        values = [eq17_project(head[z], 2, z, layer, form) for head in heads]
        if G is not None and z == 0:
            rows = [eq24_weights(G, i) for i in range(len(heads))]
        else:
            rows = [eq20_weights(heads, i, z, layer, form) for i in range(len(heads))]
        weights.append(torch.stack(rows))
        contexts.append(weights[z] @ torch.stack(values))
    return torch.stack(contexts, 1), torch.stack(weights)


toy_graph = torch.zeros(len(toy), 5, 5)
for k, (other, _) in enumerate(toy_rows):
    size = len(other)
    toy_graph[k, :size, :size] = torch.eye(size) + 0.3 * torch.rand(size, size)
graphed = {form: seen_by_lib(model, toy_graph) for form, model in models.items()}

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
for form, model in models.items():
    layer = model.global_layers[0]
    heads = [eq16_heads(x, layer, form) for x in local_words[form]]
    size = len(rows)
    G = toy_graph[b, :size, :size]
    pairs = (None, lib_states[form], "(17)-(20)"), (G, graphed[form][1], "(24)")
    for graph, state, eq in pairs:
        _, weights = eq20_contexts(heads, layer, form, graph)
        found = state.between[0][b, :, :size, :size]
        checks.close(weights, found, eq, f"attention between paragraphs, {form}")
titles = "head 1: the graph", "head 2: learned"
panels = [
    {"title": title, "values": w, "rows": row_names, "columns": row_names}
    for title, w in zip(titles, weights.detach())
]
caption = "(24) and (20) on the toy cluster: how much each paragraph takes from each."
figures.show(word_maps, caption, panels=panels)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
**Two hops: when a given graph matters.** The title is a name. Four paragraphs each say the alias of a name, and four others each begin with an alias, and the two words behind it may be the summary. So the answer's paragraph shares no word with the title: the way leads over another paragraph. The given graph joins
paragraphs that share a name or an alias. Predict: how many global layers does it take, with the graph and without? A guess among the four answers is right in 25% (`python -m lib.solve hops`).
"""

# %% slideshow={"slide_type": "subslide"}
hops_table(task_results("hops"))

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** A global layer is one step on the graph, so two hops take two layers. With the graph, two layers find every answer after 500 steps; without it, even three still guess, and so does one layer with it. A given graph pays where it says what attention has not learned.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (21) to (23) Back to the words

Every word receives what its paragraph has gathered: the contexts of all heads are joined, mixed and added to the word, and two linear layers follow.

$$c_i=W_c[context^1_i;\dots;context^{n_{head}}_i]\tag{21}$$

$$g_{ij}=W_{o2}\,\mathrm{ReLU}\big(W_{o1}(x_{ij}+c_i)\big)\tag{22}$$

$$x^l_{ij}=\mathrm{LN}(g_{ij}+x_{ij})\tag{23}$$

**The code** keeps $c_i$ in what is passed on: $x^l_{ij}=(x_{ij}+c_i)+\mathrm{FFN}(\mathrm{LN}(x_{ij}+c_i))$.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {21, 22, 23})


# %% slideshow={"slide_type": "skip"}
def eq23_global_layer(x, layer, form, G=None):
    """All paragraphs: a list of [n_i, d] -> the same."""
    heads, made = [eq16_heads(words, layer, form) for words in x], []
    contexts, _ = eq20_contexts(heads, layer, form, G)
    for words, context in zip(x, contexts):
        c = layer.output(context.flatten())  # (21)
        if form == "paper":
            g = layer.feed_forward(words + c)  # (22)
            made.append(layer.norms[0](g + words))
        else:
            made.append(words + c + layer.feed_forward(layer.norms[1](words + c)))
    return made


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for form, model in models.items():
    for G, found, eq in (
        (None, lib_layers[form], "(21)-(23)"),
        (toy_graph[b, :3, :3], graphed[form][0], "(24)"),
    ):
        x = local_words[form]
        for number, layer in enumerate(model.global_layers, 1):
            x = eq23_global_layer(x, layer, form, G)
            checks.close(
                torch.cat(x), found[number + 2], eq, f"global layer {number}, {form}"
            )

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (25), (26) The two graphs

**Similarity** is the cosine of the tf-idf vectors of two paragraphs. The weight of a word is its count times $\log(N_d/N_{dw})$: there are $N_d$ paragraphs,
and $N_{dw}$ of them have the word. Edges below 0.2 are dropped. **Discourse** is $0.2$ times the number of entities that two paragraphs share, plus 1
if the two are neighbours in a document and a marker such as *however* or *as a result* joins them.

$$v_{ik}=N_w(t_{ik})\log\frac{N_d}{N_{dw}(t_{ik})}\tag{25}$$

$$D_{ii'}=0.2\,e_{ii'}+m_{ii'}\tag{26}$$

The paper finds entities with spaCy. This page does the same if spaCy and its small English model are installed; otherwise sequences of capitalised
words count as entities. Both graphs have 1 on the diagonal, so that no row of (24) is empty.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("hierarchical_transformer", {25, 26})


# %% slideshow={"slide_type": "skip"}
def eq25_similarity(paragraphs):
    """Paragraphs in words -> [m, m]."""
    words, m = sorted({w for p in paragraphs for w in p}), len(paragraphs)
    having = [sum(w in p for p in paragraphs) for w in words]
    idf = [math.log(m / n) for n in having]
    vectors = [[p.count(w) * x for w, x in zip(words, idf)] for p in paragraphs]
    V, S = torch.tensor(vectors), torch.eye(m)
    for i, k in ((i, k) for i in range(m) for k in range(m) if i != k):
        cosine = V[i] @ V[k] / (V[i].norm() * V[k].norm()).clamp_min(1e-30)
        S[i, k] = cosine if cosine >= 0.2 else 0
    return S


# %% slideshow={"slide_type": "skip"}
graph_texts = [
    "Ada Lovelace met Charles Babbage in London.",
    "However, the engine of Charles Babbage was not built.",
    "We saw the engine in London with Ada Lovelace. As a result, London was full.",
    "Also built elsewhere: the engine of Charles Babbage.",
    "In fact, Charles Babbage went to Paris.",
]
graph_sources = ["first", "first", "first", "second", "second"]  # the document of each

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
toy_words = [text.lower().replace(".", "").split() for text in graph_texts]
lib_similarity = torch.tensor(similarity_graph(toy_words))
checks.close(eq25_similarity(toy_words), lib_similarity, "(25)", "similarity graph")


# %% slideshow={"slide_type": "skip"}
def names_in(text):
    """Runs of capitalised words; a single one that begins a sentence is none."""
    names = set()
    for sentence in text.split(". "):
        run = []
        for i, word in enumerate(
            [*sentence.rstrip(".").replace(",", " ,").split(), "end"]
        ):
            if word[0].isupper():
                run.append(word)
            elif run:
                names |= {" ".join(run)} if len(run) > 1 or i > 1 else set()
                run = []
    return names


def marked(text):
    words = "".join(c if c.isalpha() else " " for c in text.lower()).split()
    return any(f" {marker} " in f" {' '.join(words)} " for marker in MARKERS)


# %% slideshow={"slide_type": "skip"}
def eq26_discourse(paragraphs, sources):
    """Texts and the document of each -> [m, m]."""
    D = torch.eye(len(paragraphs))
    for i, one in enumerate(paragraphs):
        for k, other in enumerate(paragraphs[:i]):
            e = len(names_in(one) & names_in(other))
            m = k == i - 1 and sources[k] == sources[i] and marked(one)
            D[i, k] = D[k, i] = 0.2 * e + m
    return D


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_discourse = discourse_graph(graph_texts, graph_sources, capitalised_names)
D = eq26_discourse(graph_texts, graph_sources)
checks.close(D, torch.tensor(lib_discourse), "(26)", "discourse graph")
print(D.numpy().round(1))
print("1.2: neighbours that However joins, and a name that both have; 0.4: two names")

# %% slideshow={"slide_type": "skip"}
entities, finder = entity_finder()
print(f"entities on this page: {finder}")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The decoder, and the loss

At each step, the piece written last is embedded with the table that also embeds the source and makes the output. It attends to itself and to the pieces before it, and then to **all words of all paragraphs** in one row. It does
not attend to paragraphs: only through (13)-(23) can a word's state hold what other paragraphs say. The paper does not state the depth; the code has **one** layer. Nothing is copied. (The form "paper" has no √d, and normalises after each sum.)

```python
y = sqrt(d) * E[piece] + sinusoids(t)
kept.append(keys_and_values(LN1(y)))               # beside those of the pieces before
y = y + self_attention(LN1(y), kept)
y = y + source_attention(LN2(y), words)            # keys and values of all words, made once
y = y + FFN(LN3(y))
P = softmax(E LN(y) + bias)
```

Labels are smoothed: the right piece gets $1-\epsilon$, and all other pieces except [PAD] share $\epsilon=0.1$.
"""


# %% slideshow={"slide_type": "skip"}
def encoder(rows, model, G=None):
    """Title and paragraphs in ids -> words [n, d]."""
    x, form = eq10_input(rows, model), model.config.form
    for layer in model.local_layers:
        x = [eq12_local_layer(words, layer, form) for words in x]
    for layer in model.global_layers:
        x = eq23_global_layer(x, layer, form, G)
    return model.encoder_norm(torch.cat(x)) if form == "code" else torch.cat(x)


def pieces_before(x, part):
    """Every place attends to itself and to those before it."""
    parts = [
        multi_head_attention(x[t : t + 1], x[: t + 1], part) for t in range(len(x))
    ]
    return torch.cat(parts)


# %% slideshow={"slide_type": "skip"}
def decoder_layer(y, words, layer, form):
    """Pieces written [T, d], words of the source [n, d] -> [T, d]."""
    (one, two, three), attend = layer.norms, multi_head_attention
    if form == "code":
        y = y + pieces_before(one(y), layer.self_attention)
        y = y + attend(two(y), words, layer.source_attention)
        return y + layer.feed_forward(three(y))
    y = one(y + pieces_before(y, layer.self_attention))
    y = two(y + attend(y, words, layer.source_attention))
    return three(y + layer.feed_forward(y))


# %% slideshow={"slide_type": "skip"}
def decoder(written, words, model):
    """Pieces so far, [BOS] first -> log P of what comes after each: [T, V]."""
    code, E = model.config.form == "code", model.embedding.weight
    places = torch.stack([eq07_position(t, d) for t in range(len(written))])
    y = (math.sqrt(d) if code else 1) * E[torch.tensor(written)] + places
    for layer in model.decoder_layers:
        y = decoder_layer(y, words, layer, model.config.form)
    y = model.decoder_norm(y) if code else y
    return (y @ E.T + model.bias).log_softmax(-1)


def smoothed_loss(log_p, target, epsilon):
    labels = torch.full_like(log_p, epsilon / (V - 2))
    labels[:, PAD] = 0
    for t, right in enumerate(target):
        labels[t, right] = 1 - epsilon
    return -(labels * log_p).sum() / len(target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for form, model in models.items():
    model.train()
    losses = []
    for rows, target in toy_rows:
        log_p = decoder([BOS, *target[:-1]], encoder(rows, model), model)
        losses.append(smoothed_loss(log_p, target, 0.1))
    loss = sum(losses) / len(toy)
    ours = model.loss(batch)["loss"]
    checks.close(loss, ours, "all", f"loss of the padded batch, {form}")
    checks.gradients(gradients(model, loss), gradients(model, ours), "all")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Everything agrees**, in both readings. This is the library's global layer, which was just checked.
"""

# %% slideshow={"slide_type": "skip"}
show_source(GlobalLayer.forward, GlobalLayer._pool, GlobalLayer._between)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Limiting cases

**One paragraph.** A single paragraph can only attend to itself. So the attention (20) is 1, and the global layer transforms that paragraph alone:
$context^z=W^z_vhead^z$. **A graph of ones** gives an attention of $1/m$ everywhere, like a head whose queries are 0. **Writing piece by piece** with
kept keys and values gives the same as one pass over the whole summary.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for form, model in models.items():
    model.eval()
    layer = model.global_layers[0]
    x = local_words[form][1]
    heads = eq16_heads(x, layer, form)
    alone = [eq17_project(head, 2, z, layer, form) for z, head in enumerate(heads)]
    alone = torch.stack(alone)
    c = layer.output(alone.flatten())
    by_hand = layer.norms[0](layer.feed_forward(x + c) + x)
    if form == "code":
        by_hand = x + c + layer.feed_forward(layer.norms[1](x + c))
    single = make_batch([encoded("x", rows[1:2], [EOS])], V)
    ours, _, _ = layer(x, single.ragged, single.sentence_mask)
    checks.close(by_hand, ours, "one paragraph", f"global layer, {form}")
for form, model in models.items():
    ones = model.encode(batch, torch.ones_like(toy_graph)).between[0][:, 0]
    present = batch.sentence_mask.double()
    uniform = (present / present.sum(1, keepdim=True))[:, None].expand_as(ones)
    checks.close(uniform, ones, "graph of 1", f"uniform attention, {form}")
for form, model in models.items():
    whole, _ = model.decode(batch.target_input, model.encode(batch))
    state, parts = model.encode(batch), []
    for token in batch.target_input.split(1, dim=1):
        part, state = model.decode(token, state)
        parts.append(part.features)
    checks.close(
        whole.features, torch.cat(parts, 1), "decoder", f"piece by piece, {form}"
    )

# %% slideshow={"slide_type": "skip"}
torch.set_default_dtype(torch.float32)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## All comparisons

The table puts the numbers of the page's functions beside the library's, in double precision. A comparison that failed would have stopped the page.
"""

# %% slideshow={"slide_type": "skip"}
checks.table()

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. Real clusters, and which paragraphs to read

By default, each paper that ships with `aclsum` is a cluster: it has the paper's title and paragraphs, and the abstract is the summary. Long paragraphs are
cut at the end of a sentence after about 100 words. Such a cluster is one document and not many, so it is only a stand-in. The ranked WikiSum shards,
Multi-News or your own folder of `{title, paragraphs, summary}` lines can be read as well. Texts are cut into SentencePiece pieces, which are learned from
the training clusters and shared by source and summary. Paragraphs that have more than 0.8 of the summary's bigrams count as copies of
the summary and are left out, as in the paper.
"""

# %% slideshow={"slide_type": "skip"}
told = preset == "paper"
wide = studied.options.of_all.prepare(studied_corpus, studied.documents, progress=told)
pieces, test, train = wide.vocabulary, wide["test"], wide["train"]
# papers of the ACL Anthology may be quoted from 2016 on
first_cluster = next(
    cluster
    for cluster in clusters(studied_corpus, "test", studied.options)
    if studied_corpus.name != "aclsum:paragraphs" or anthology_year(cluster.id) >= 2016
)
first_encoded = encode_cluster(first_cluster, pieces, studied.options)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
counts = {
    "paragraphs of one": [len(document.sentence_lengths) - 1 for document in train],
    "pieces of a paragraph": np.concatenate([d.sentence_lengths[1:] for d in train]),
    "pieces of a summary": [len(document.target) for document in train],
}
splits = ", ".join(f"{name} {len(split)}" for name, split in wide.splits.items())
Passages([
    ("clusters", splits),
    *((name, f"{np.mean(found):.1f} in the mean") for name, found in counts.items()),
    ("vocabulary", f"{len(pieces):,} pieces"),
    ("options", str(studied.options)),
    ("left out", str(wide.report)),
    ("title of a paper", first_cluster.title),
    ("its first paragraph", clip(first_cluster.paragraphs[0])),
    ("its summary", clip(" ".join(first_cluster.summary))),
    ("in pieces", " ".join(pieces.words[i] for i in first_encoded.target[:24])),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Ranking paragraphs (Table 1)

The figure and the table show how much of the summary is in the best $L'$ paragraphs, as the ROUGE-L recall of their concatenation. *Similarity* ranks by the tf-idf
cosine with the title (Liu et al. 2018). *Learned* ranks by the ranker of (1) to (6), which is trained with Adagrad by the same loop as every model here. Two more
rows are ours: *as they come* leaves the paragraphs in their order, and *by the labels* ranks them by the labels that the ranker should predict, which no ranking can know.
"""

# %% slideshow={"slide_type": "skip"}
scores = {"as they come": order_scores(test, pieces)}
if not studied_corpus.ranked:
    scores["similarity"] = similarity_scores(test, pieces)
    learned, _ = learned_ranking(wide, studied.options, progress=preset == "paper")
    scores["learned"] = learned["test"]
    _, ranker_run = train_ranker(wide, studied.options, progress=False)
    losses = [m["cross_entropy"] for m in ranker_run.metrics if m["split"] == "val"]
    print("cross entropy of the ranker on the validation clusters:")
    print(*(f"{loss:.4f}" for loss in losses))
scores["by the labels"] = [document.labels for document in test]

# %% slideshow={"slide_type": "skip"}
counts, wanted = (5, 10, 20, 40), [document.reference for document in test]
means = {name: {} for name in scores}
for name, every in scores.items():
    for n in counts:
        best = best_paragraphs(test, every, pieces, n)
        means[name][f"L' = {n}"] = longest_common_recall(best, wanted).mean()

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
panel = {
    "series": {name: [counts, list(row.values())] for name, row in means.items()},
    "dashed": ["by the labels"],
    "xlabel": "best paragraphs, L'",
    "ylabel": "ROUGE-L recall",
    "ticks": counts,
}
caption = "How much of the summary is in the best paragraphs, by how they are ranked."
figures.show(lines, caption, "hierarchical_ranking", panels=[panel], width=5.6)

# %% slideshow={"slide_type": "skip"}
published_1 = studied.paper.page_tables["hierarchical_table1"].published
columns = [f"L' = {n}" for n in counts]
published_1 = pd.DataFrame.from_dict(published_1, orient="index", columns=columns)
pd.concat([pd.DataFrame.from_dict(means, orient="index"), published_1]).round(2)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With a hundred papers to learn from, the learned ranker is within a point and a half of the ranking by similarity to the title. In the paper, with 1.6
million clusters, it is ten to fifteen points ahead. Paragraphs as they come are three points behind these two when five are read, and at most three when more are. Ranking by the labels themselves would give 1.1 to 4.2 points more than the learned
ranker.

# 4. With real text: a model that has not learned enough

`lib.load` opens a run, or this page trains one as `python -m lib.train` does. As in the paper, it uses Adam with Noam's learning rate, which rises for some steps and then falls with the square root of the number of steps:
$rate=c\cdot\min(step^{-0.5},\ step\cdot warmup^{-1.5})$.
"""

# %% slideshow={"slide_type": "skip"}
told = preset != "demo"
run, origin = run_for_page(chosen, corpus, kept, output, progress=told)
summarizer, pieces = run.model, run.vocabulary
options, decode = run.options, run.decode
run_facts(run, origin)

# %% slideshow={"slide_type": "skip"}
validation_losses(run)

# %% slideshow={"slide_type": "skip"}
loss_figure(figures, "hierarchical_losses", run, kept)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
For the shipped model, the training line lies above the validation points (dropout is on only in training). Both still fall at the end: the run is short, not overfitted.

A model that the page trains has the mean weights of its five best checkpoints; a table shows what that is worth. (The paper reports the mean of the five checkpoints' results.)
"""

# %% slideshow={"slide_type": "skip"}
checkpoints = {}
if not kept:
    prepared = chosen.prepare(corpus, progress=False)
    for which in (*kept_checkpoints(run.folder), "average"):
        load_weights(summarizer, run.folder, which).eval()
        loss = evaluate_loss(summarizer, prepared["val"], 8, len(pieces))
        checkpoints[which] = loss["nll"]
table = pd.Series(checkpoints, name="validation nll", dtype=float).round(3).to_frame()
table if checkpoints else None

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Summaries and scores

The model writes each summary twice. First it decodes as the paper does, by plain beam search with 5 hypotheses. They are compared by $\log P(y)\,/\,\big((5+|y|)/6\big)^{0.4}$; the divisor is the length penalty, without
which shorter hypotheses are favoured. Then it does the same with trigram blocking: no three pieces in a row are written twice. Both differ from the paper in one thing: the shipped model has to write at least 230 pieces,
because most of its references were cut in training and it has hardly seen an end.

Scores are ROUGE F1 in percent, with a seeded 95% bootstrap interval over test clusters. *Lead* is the first words of the text. *LexRank* picks paragraphs; its graph is weighted by cosine. The oracle
sees the reference. All summaries are cut to the same number of words. *repeated* is the share of trigrams that the summary has had before. *copied* is the share of its 5-grams that stand in the text.
*distinct* is the share of summaries that are like no other.
"""

# %% slideshow={"slide_type": "subslide"}
documents = unseen_papers(corpus, 20 if kept else chosen.documents)
encoded_tests = run.encode(documents)
references = [document.summary for document in documents]
longest = chosen.paper.kept.cut if kept else decode.max_length
paragraphs = [options.example(document).paragraphs for document in documents]
by_cosine = [lexrank(texts, longest, threshold=None) for texts in paragraphs]
upper = [oracle(document.sentences, document.summary) for document in documents]
systems = {
    f"Lead ({longest} words)": paragraphs,
    f"LexRank (paragraphs, {longest} words)": by_cosine,
    "Oracle": upper,
}
for how, size in DECODINGS.items():
    rule = replace(decode, block_ngrams=size)
    systems[f"{variant}, {how}"] = summarize(summarizer, encoded_tests, pieces, rule)
table, _ = summary_table(systems, documents, options, longest, seed)
print(f"{preset} run, {len(documents)} test clusters of {Path(dataset).name}")
print(f"every summary cut to {longest} words")
table

# %% slideshow={"slide_type": "skip"}
rows = []
for i in range(min(2, len(documents))):
    own = systems[f"{variant}, trigram blocking"][i]
    written = " ".join(run.readable(documents[i], own))
    rows += [("title", documents[i].title)]
    rows += [("reference", clip(" ".join(references[i]), 90))]
    rows += [("written", clip(written, 120))]
Passages(rows)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The shipped model knows the field of a paper and how an abstract is built: background, aim, what was done, what was found. It often misses what this paper is about, and it always misses what the paper
found. Its scores stay below Lead. With plain beam search, most of what it writes repeats what it has written before.

**How much does it take from the text?** We compute the loss of the references twice: given their own texts, and given the text of the next paper instead. The loss rises by this
exchange, and the rise is what the model takes from the text. The table also shows Mem2Mem, which has learned from the same papers.
"""

# %% slideshow={"slide_type": "skip"}
compared = {f"{variant}, a piece": run}
if kept:
    compared["Mem2Mem, a word"] = open_run(trained_folder("mem2mem"))
nlls = {name: nll_by_text(of, documents) for name, of in compared.items()}
taken = pd.DataFrame.from_dict(nlls, orient="index")
taken["taken from the text"] = taken["the next one's"] - taken["its own"]
taken.round(2)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The rise is a fraction of Mem2Mem's: this model has mostly learned what abstracts of such papers say. Mem2Mem can point at a word of the text and have it written.
Nothing here copies: for each of 8,000 pieces, the model has to learn the way from an attended state to the piece. To learn
that without copying, the paper had 1.6 million clusters and 500,000 steps on four GPUs; this run had 31,077 papers and read each three times.

The scores on 200 test papers of the corpus that the shipped model has learned from (`python -m lib.trained score hierarchical_transformer`):
"""

# %% slideshow={"slide_type": "skip"}
own = kept_table("trained_hierarchical_transformer")
print(wrapped(setting(own)))
table_frame(own)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What copying is worth

To see whether copying is what is missing, we give the model the pointer that Mem2Mem has (See et al. 2017). This is our addition and not part of the paper. The decoder's last layer $f$ looks for a piece to copy among the encoder's
pieces $h_i$, and a switch decides between copying and generating:

$$\gamma_i=\mathrm{softmax}_i\Bigl(\tfrac{f^\top W h_i}{\sqrt d}\Bigr)\tag{C1}$$

$$P(w)=z\,P_g(w)+(1-z)\!\!\sum_{i:x_i=w}\!\!\gamma_i,\qquad z=\sigma\Bigl(w_f^\top f+w_c^\top\sum_i\gamma_i h_i+b\Bigr)\tag{C2}$$

$P_g$ is the softmax over all pieces, as in the model without copying. `variant="HT + copying"` trains the model with copying (`lib.models.copying_transformer`; `tests/test_copying_transformer.py` checks it and its
gradients against naive loops). The run below has the same corpus, sizes, batches and steps as the run above, and 16,641 parameters more. It is trained without label smoothing, the run above with 0.1; some of the
difference between their losses comes from that. The scores on the same 200 test papers:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
show_folded("Copying in a picture", "copying_transformer")

# %% slideshow={"slide_type": "skip"}
copying = kept_table("trained_hierarchical_transformer_copying")
print(wrapped(setting(copying)))
table_frame(copying)

# %% slideshow={"slide_type": "skip"}
if kept:
    copier = open_run(trained_folder("hierarchical_transformer_copying"))
    taken.loc["HT + copying, a piece"] = nll_by_text(copier, documents)
    taken["taken from the text"] = taken["the next one's"] - taken["its own"]
taken.round(2)

# %% slideshow={"slide_type": "skip"}
rows = []
for document in documents[:2] if kept else []:
    (found,) = copier.summarize([document])
    rows += [("title", document.title)]
    rows += [("HT + copying", clip(str(found), 120))]
Passages(rows) if kept else None

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With trigram blocking, the model with copying is eight points of R-1 above Lead. It is above LexRank in R-2 (and in R-1 by one point, which may be chance). Without copying, it is five points below Lead. The exchange of texts
explains this: the loss of a reference now rises by more than two a piece, where it rose by a quarter of one before. The summaries name what the paper is about in the paper's own words, but these words are
cut in places and joined to others. With plain beam search, six of ten trigrams are still repeated. So copying alone does not keep a model from repeating itself.

With copying, the paper's ablations can be repeated at a small size ([tables](../docs/papers/hierarchical_transformer.md#tables-2-and-3)). After one epoch, with one seed, R-1 is 0.8 higher with global layers, and 0.9 lower with paragraph positions and with several pooling heads.
After two epochs, paragraph positions make no difference (two seeds, p 1.00), and several pooling heads cost 0.4 (p 0.02); global layers were not trained on, so their gain is no more than suggested.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
## Longer input at test time

The model of the paper's best row trains on 1,600 pieces (24 paragraphs) and is tested on 3,000 (40 paragraphs in its code). In proportion, the model here reads 37 paragraphs instead of 22, and whole sections
instead of their first 520 words.
"""

# %% slideshow={"slide_type": "skip"}
if not options.flat and not corpus.ranked:
    more = round(options.paragraphs * 40 / 24)
    more = replace(options, paragraphs=more, section_words=None)
    longer = replace(run.encoder, options=more).encode(documents)
    both = (longer, encoded_tests)
    means = [np.mean([len(document.source) for document in found]) for found in both]
    print(f"{means[0]:.0f} pieces in place of {means[1]:.0f}")
    ruled = summarize(summarizer, longer, pieces, replace(decode, block_ngrams=3))
    added = {f"{variant}, longer input, trigram blocking": ruled}
    more_rows, _ = summary_table(added, documents, options, longest, seed)
    systems, table = systems | added, pd.concat([table, more_rows])
    points = []
    for found in (systems[f"{variant}, trigram blocking"], ruled):
        whole = [cut(summary, longest, options) for summary in found]
        points.append(rouge(whole, references)[:, 0])
    print("R-1, longer input minus the other:", paired_bootstrap(*points, seed))
table

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** In the paper, the longer input gains 0.7 points of R-1. In the paper, the longer input gains 0.7 points of R-1. Here it is a point lower, with an interval from -3.2 to +0.9: 20 papers cannot tell. In part 1, longer input costs nothing.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 5. What the model looks at

## Positions

Half of the dimensions say which word of its paragraph a word is, the other half say which paragraph it is in. A row of the picture is a position.
"""

# %% slideshow={"slide_type": "skip"}
half = 32  # of 64 dimensions
moving = sinusoids(torch.arange(41), half)
constant = sinusoids(torch.tensor([3]), half).expand(41, -1)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
panels = [
    {
        "title": "words 0 to 40 of paragraph 3",
        "values": torch.cat([moving, constant], -1),
    },
    {
        "title": "paragraph 0 to 40, for word 3",
        "values": torch.cat([constant, moving], -1),
    },
]
caption = "(7) to (9), the code's reading: a row is a position; the line parts the two."
figures.show(
    signed_maps, caption, "hierarchical_positions",
    panels=panels, xlabel="dimension (word | paragraph)", ylabel="position", border=half - 0.5,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Only the half in question changes from row to row. Its first sine and cosine repeat about every six positions ($2\pi$), and each further pair takes 1.8 times as long ($10000^{2/32}$).
So neighbouring positions differ in the first dozen dimensions of a half; the others look like stripes, because they change over hundreds or thousands of words.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Pooling: what each head takes from a paragraph
"""

# %% slideshow={"slide_type": "skip"}
shown = 0
one = make_batch([encoded_tests[shown]], len(pieces))
with torch.no_grad():
    state = summarizer.encode(one)
has_heads = bool(getattr(state, "pooling", ()))  # those of global layers

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
no_heads = f"{variant} has no global layers to draw"
if has_heads:
    begin, length = one.sentence_lengths[0][0], min(30, one.sentence_lengths[0][1])
    pooled = state.pooling[-1][0, begin : begin + length].T
    ids = one.source[0, begin : begin + length]
    words = [pieces.words[i].replace("▁", " ").strip() or "▁" for i in ids]
    whole = one.sentence_lengths[0][1]
    caption = (
        f"Pooling weights of the first paragraph's first {length} pieces, last global layer"
        f" ({preset} run). Of its {whole} pieces each would have {1 / whole:.3f} if all counted"
        f" the same; the colours go to 0.2 at least."
    )
figures.show(
    word_weights, caption, "hierarchical_pooling", words=words, weights=pooled, rows="head",
) if has_heads else no_heads  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** In the shipped model, no piece has more than a tenth of a head's weight. In this paragraph, heads 3, 1 and 4 prefer content words (*reverse*, *identifying*, *brain*); head 2 weighs all pieces nearly the same.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Between paragraphs: the learned graph beside the two given ones

The rows of each graph are the title and the chosen paragraphs, normalised as in (24). The learned graph is the mean over the heads of the last global layer. The shipped model takes paragraphs in their order. Its
corpus has no titles, so the title in row 1 is new to it.
"""

# %% slideshow={"slide_type": "skip"}
panels = []
if has_heads:
    learned_graph = state.between[-1][0].mean(0).numpy()
    panels.append({"title": "learned, mean of the heads", "weights": learned_graph})
    for kind in ("similarity", "discourse"):
        with_graph = replace(run.encoder, options=replace(options, graph=kind))
        encoded_graph = with_graph.encode([documents[shown]])
        weights = make_batch(encoded_graph, len(pieces)).graph[0].numpy()
        weights = weights / weights.sum(1, keepdims=True)
        panels.append({"title": kind, "weights": weights})

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
caption = (
    f"Three graphs over one cluster ({preset} run), each with its own colour bar; paragraph 1"
    " is the title."
)
figures.show(
    attention_maps, caption, "hierarchical_graphs",
    panels=panels, rows="paragraph", columns="paragraph", across=3, size=4.6,
) if has_heads else no_heads  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** One column of the learned graph is dark in nearly all rows: all paragraphs look at the same one, here the first after the title. Which paragraph this is differs from paper to
paper (the table below counts: in 5 of 20 papers it is the title, in 6 it is one after the twelfth).  The similarity
graph is almost the identity: it joins 2% of the pairs of paragraphs (discourse: 19%), and a paragraph has 91% of its weight on itself (the second table). So what it changes in a model can only be little.
"""

# %% slideshow={"slide_type": "skip"}
places, heights = [], []
for document in encoded_tests if has_heads else []:
    with torch.no_grad():
        between = summarizer.encode(make_batch([document], len(pieces))).between
    weights = between[-1][0].mean((0, 1))  # of a paragraph, over heads and rows
    places.append(weights.argmax().item())
    heights.append(weights.max().item() * len(weights))
if has_heads:
    named = pd.cut(places, [-1, 0, 5, 11, 1000]).value_counts()
    named.index = ["1, the title", "2 to 6", "7 to 12", "later"]
    print(f"the most watched paragraph has {np.mean(heights):.1f} times its share")
named.rename_axis("paragraph").to_frame("papers").T if has_heads else no_heads

# %% slideshow={"slide_type": "skip"}
densities = {}
for kind in ("similarity", "discourse") if has_heads else ():
    with_graph = replace(run.encoder, options=replace(options, graph=kind))
    found = with_graph.encode(documents)
    graphs = [make_batch([d], len(pieces)).graph[0].numpy() for d in found]
    densities[kind] = np.mean([density(graph) for graph in graphs], axis=0)
columns = ["share of pairs joined", "a paragraph's weight on itself"]
pd.DataFrame.from_dict(densities, orient="index", columns=columns).round(3)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 6. The paper's tables

## Systems (Table 2) and ablations (Table 3)

Every row that is trained is a `variant` of this page and of `python -m lib.train hierarchical_transformer --variant ...`. If `study_steps` is above 0, the page
trains all of them, each for that number of steps. FT is a flat transformer over the same pieces. T-DMCA (Liu et al. 2018) is a decoder without an encoder: it reads up to 3,000 pieces of source, and then the summary, as one
sequence, and is trained to predict both. [Baselines](baselines.ipynb) has what both compute, equation by equation.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
def table_row(name):
    """Train a row for `study_steps`, and score it."""
    length = {"steps": study_steps, "validate_every": max(1, study_steps // 5)}
    row = resolve("hierarchical_transformer", preset, name, **length, seed=seed)
    data = row.prepare(corpus, progress=False)
    model = row.build(data)
    done = train_or_load(row, model, data)
    load_weights(model, done.folder, "average").eval()
    found = summarize(model, data["test"], data.vocabulary, row.decode)
    points = rouge(found, references).mean(0)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "pieces read": round(data["test"].source_lengths.mean()),
        "val nll": evaluate_loss(model, data["val"], 8, len(data.vocabulary))["nll"],
        **dict(zip(("R-1", "R-2", "R-Lsum"), points)),
    }


tables = chosen.paper.tables.values()

# %% slideshow={"slide_type": "skip"}
names = dict.fromkeys(
    row.run.variant for table in tables for row in table.rows if row.run
)
trained_rows = {name: table_row(name) for name in names if study_steps}
pd.DataFrame.from_dict(trained_rows, orient="index").round(2) if trained_rows else None

# %% slideshow={"slide_type": "skip"}
print("published, WikiSum, ROUGE F1; R-L is of sentences, the tables above have R-Lsum")
pd.concat([published_table(f"hierarchical_table{n}") for n in (2, 3)]).drop_duplicates()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Human evaluation (Table 4)

People answered questions about the summaries (1 for a right answer, 0.5 for a partly right one, 0 otherwise). They also said which of several
summaries is the best and which is the worst. A system's rating is the share of best choices minus the share of worst choices.

The summaries of this page are kept as JSON lines, and one command makes blinded sheets of them:

```sh
python -m lib.human sheet runs/rating --documents 20 HT="runs/summaries/HT, plain beam search.jsonl" Lead="runs/summaries/Lead (200 words).jsonl" LexRank="runs/summaries/LexRank (paragraphs, 200 words).jsonl"
python -m lib.human answers runs/rating    # when questions.csv is written: each question beside each summary, without the reference
python -m lib.human scores runs/rating     # means with intervals, analysis of variance, Tukey's test of every pair
```
"""

# %% slideshow={"slide_type": "skip"}
for name, summaries in systems.items():
    path = work_folder() / "summaries" / f"{name}.jsonl"
    write_summaries(path, documents, summaries, dataset)
published_4 = {"Lead": (31.59, -0.383), "FT": (35.69, 0.000)}
published_4 |= {"T-DMCA": (43.14, 0.147), "HT": (54.11, 0.237)}
columns = ["questions answered, %", "best minus worst"]
pd.DataFrame.from_dict(published_4, orient="index", columns=columns)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 7. Deviations

These are the points that one needs to understand this page's numbers. [`docs/papers/hierarchical_transformer.md`](../docs/papers/hierarchical_transformer.md) has every point at which the project differs from the paper and its authors' code, with the reason.

| point | the paper | the authors' code | here |
|---|---|---|---|
| layer normalisation | after each sum | before each part, and at the end | `form` |
| residual of (23) | $g+x$ | $c$ stays in it | `form` |
| encoder | 5 local, 2 global layers | 6 and 2 | presets `paper` and `code` |
| decoder | depth not stated | 1 layer | 1 layer |
| graph | one head | not in any commit | first head of every global layer, 1 on the diagonal |
| entities | spaCy's | | the same where it is installed, otherwise runs of capitalised words |
| L', lengths | 24 paragraphs, about 1,600 pieces | a limit of pieces | 24, of 200 pieces each; sections are cut into paragraphs of at most 100 words (shipped models and `small`: 70) |
| dropout | before all linear layers | after each part, on embeddings and attention | `form` |
| beam search | to the end symbol | ends when the best hypothesis ends | at most 400 pieces, in `code` at least 20, the shipped models at least 230; ends when five have ended and the best open one ranks, at its present length, no higher than the worst of them |
| ROUGE | not stated | ROUGE-1.5.5, each summary in one line | rouge-score, a sentence a line: R-Lsum is no R-L |
| shipped model and demo | | | the shipped model: paragraphs in order, 22 of 110 pieces, 8,000 pieces, width 128, 3 local and 2 global layers, batches of 16, 3 epochs (the card has the rest) |
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 8. Exercises

Ten functions of at most six lines each. Write one in place of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import math

import torch

from lib.exercises.hierarchical_transformer import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** *Find the bug.* A batch of clusters is padded to the same number of rows. This is somebody's attention (24) of a head that a graph replaces, for one cluster:

```python
def attention_of_graph(G, present):
    A = G / G.sum(0)
    return A * present
```

Do the rows sum to 1? Write it right. The rows of padding do not count. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def attention_of_graph(G, present):
    """Attention [m, m] by a graph G [m, m]: row i says what paragraph i takes.

    present [m]: whether there is a paragraph. Nobody takes anything of padding.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, attention_of_graph)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

There are two faults. What does `sum(0)` add up? And what is left of a row's sum of 1 when padding is cut out afterwards?

</details>
<details><summary>Solution</summary>

```python
def attention_of_graph(G, present):
    G = G * present
    return G / G.sum(1, keepdim=True)
```

Rows are scaled, not columns, and padding is cut out first. In the library the first head has this attention.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Find the bug.* This is somebody's pooling, the sum in (16) with the weights (15), of all paragraphs of a cluster, which are padded to the same number of words:

```python
def pooled_words(a, b, mask):
    weights = a.softmax(2) * mask[..., None]
    return (weights[..., None] * b).sum(1)
```

Write it right. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def pooled_words(a, b, mask):
    """Pooled values [m, heads, s] of m paragraphs of at most n words.

    a: scores (13) [m, n, heads]; b: values (14) [m, n, heads, s]; mask [m, n]: whether
    there is a word.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, pooled_words)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

There are two faults. Over what does the softmax run? And do the weights of a short paragraph sum to 1?

</details>
<details><summary>Solution</summary>

```python
def pooled_words(a, b, mask):
    scores = a.masked_fill(~mask[..., None], -torch.inf)
    return (scores.softmax(1)[..., None] * b).sum(1)
```

The words of a paragraph compete, not the heads. A mask after the softmax leaves a short paragraph weights that sum to less than 1.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** How many attention scores does one head of a flat transformer compute for a cluster? And one head in a local layer (11), the pooling (13) and the attention between paragraphs (20) of a global layer together? For 24 paragraphs of 70 words the first number is 23.5 times the second. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def attention_scores(lengths):
    """lengths: a list, the words of each paragraph. Returns both numbers."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, attention_scores)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

A local layer computes a score for each pair of words that are in the same paragraph.

</details>
<details><summary>Solution</summary>

```python
def attention_scores(lengths):
    words, m = sum(lengths), len(lengths)
    return [words**2, sum(n**2 for n in lengths) + words + m**2]
```

What is saved are the pairs of words from different paragraphs. Nearly all that is left is the local layer's.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**4.** A ranker that has learned nothing gives every paragraph the same $q=W_2\hat p$, so $s=\sigma(q)$ (6). It is trained by the mean of $-y\log s-(1-y)\log(1-s)$ over paragraphs with the ROUGE-2 recalls $y$. Derive the derivative with respect to $q$. At which $q$ is it 0? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def score_without_knowing(y):
    """y: a list of recalls between 0 and 1. Returns q."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, score_without_knowing)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\sigma'(q)=s\,(1-s)$. The derivative is simpler than the loss.

</details>
<details><summary>Solution</summary>

```python
def score_without_knowing(y):
    mean = sum(y) / len(y)
    return math.log(mean / (1 - mean))
```

The derivative is the mean of $s-y$: the score that it settles on is the mean recall, and for one paragraph its own recall.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** Take one head and one paragraph. Its words are pooled to $\sum_j\hat a_jb_j$ (16), and the derivative of the loss with respect to this vector is $g$. Derive the derivative with respect to the scores $a_j$ (13). For which words is it 0? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_pooling(weights, b, g):
    """weights: the softmax of the scores [n]; b: values [n, s]; g [s]. Returns [n]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, push_on_the_pooling)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\partial\hat a_i/\partial a_j=\hat a_i(\mathbb 1[i=j]-\hat a_j)$.

</details>
<details><summary>Solution</summary>

```python
def push_on_the_pooling(weights, b, g):
    return weights * (b @ g - weights @ b @ g)
```

A word is pushed by how much its value differs, in the direction of $g$, from what is pooled already. Nothing is learned about a word that has no weight, or all of it.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** A graph $G$ takes the place of the only head's attention (24). Each global layer adds to the words of a paragraph what it has taken (22), (23). How many hops can two layers follow? Derive which paragraphs the words of each paragraph depend on, after a number of global layers. (3 points, 15 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def reached(G, layers):
    """G: a graph [m, m], 0 where nothing is taken; layers: a whole number.

    Returns truth values [m, m]: row i for the words of paragraph i.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, reached)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

After two layers a paragraph knows what those knew that it takes from. Does it forget itself where the diagonal of $G$ is 0?

</details>
<details><summary>Solution</summary>

```python
def reached(G, layers):
    step = G + torch.eye(len(G))
    return torch.linalg.matrix_power(step, layers) > 0
```

A layer is one hop, and what is there already stays there: paths of *at most* so many hops, so the power is that of $G+I$. The check looks where the library's Jacobian is not 0.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Change the model, and predict

**7.** One word of the **last** paragraph is changed. Do the encoder's states of the words of the **first** paragraph change? Say so for a model with no global layer; with one; with one whose only pooling head attends by the graph $G=I$ (24); and with one that has two pooling heads, of which the graph $G=I$ replaces the first. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def other_paragraphs_change():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, other_paragraphs_change)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What leads from one paragraph to another, and how many heads does a graph replace?

</details>
<details><summary>Solution</summary>

```python
def other_paragraphs_change():
    return [False, True, False, True]
```

Only a global layer leads from a paragraph to another. $G=I$ leads to itself, but the second head attends as it has learned.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**8.** The last two paragraphs of a cluster change places. Do the states of the words change, each word compared with itself? Say so for the model as it is (9); without positions of paragraphs; without them and with a graph (24) that stays as it was; and without them and with a graph whose rows and columns change places as the paragraphs do. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def order_matters():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, order_matters)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What in (9) to (24) knows the number of a paragraph?

</details>
<details><summary>Solution</summary>

```python
def order_matters():
    return [True, False, True, False]
```

Attention is a sum over paragraphs, in any order. The number of a paragraph enters by its position and by the graph's rows, and by nothing else.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**9.** A model has two global layers (13) to (23) and random weights. Connections to the title are cut: a paragraph then takes nothing from it. Do the words of the **last** of three paragraphs still depend on a word of the title? Say so for five cases: no paragraph takes from the title in layer 1; in layer 2; in both; in both, but paragraph 1 may in layer 1; in both, but paragraph 1 may in layer 2. (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def title_is_known():
    """Five truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(9, title_is_known)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Exercise 6: draw the paragraphs once for each layer, and an arrow for what is taken.

</details>
<details><summary>Solution</summary>

```python
def title_is_known():
    return [True, True, False, True, False]
```

One open layer is enough. In the fourth case paragraph 1 carries the title on in layer 2; in the fifth it comes too late. So both layers *can* do it, and which of them a trained model needs is an accident of its seed (section 1).

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**10.** A model with two global layers learns a small planted task: the title names one of three paragraphs, and the summary is the word behind that name. It writes all summaries right. Now something is cut, **without training again**. Are more than eight of ten still right? The decoder sees the named paragraph alone; it sees the title alone; it sees all but the title; it sees everything, but in the global layers no paragraph takes anything from the title. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def still_right():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(10, still_right)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The decoder has one layer, so it looks at the source once. Who has compared names before it looks?

</details>
<details><summary>Solution</summary>

```python
def still_right():
    return [True, False, True, False]
```

The global layers compare names, and leave a mark in the named paragraph; the decoder finds the mark and reads the word there. It does not need the title, but the layers do.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**To go on with, without a check.** Run the page with `variant="HT + discourse graph"`. Which head no longer learns whom a paragraph attends to, and what does it still learn?
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* `python -m lib.train hierarchical_transformer --dataset wikisum_folder --preset code --bf16 --output runs/wikisum` trains at the authors' size on
  a GPU; the folder holds the ranked shards (`WIKI.train.0.pt` and so on) and their SentencePiece model.
* `papermill notebooks/hierarchical_transformer.ipynb out.ipynb -p dataset multi_news` runs this page on Multi-News.
* [`docs/papers/hierarchical_transformer.md`](../docs/papers/hierarchical_transformer.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
