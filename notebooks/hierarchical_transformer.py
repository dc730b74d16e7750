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

Many documents are about the same topic. Together they are too long for a transformer in which every word sees every other word. This paper first **ranks** the paragraphs of all documents and keeps the best. **Local layers** then
read each paragraph alone. **Global layers** turn each paragraph into a few vectors, let paragraphs attend to each other through these vectors, and give every word what its paragraph has gathered.

Below, such a model writes one summary, word by word. It has read twelve snippets about two towns, in which every fact is said three times, sometimes wrongly. It must write about the town in the title.
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # aclsum:paragraphs, multi_news, ... or a folder of clusters
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo: 100 clusters; paper, code: for a GPU
variant: str = "HT"  # what is trained, a row of Tables 2 and 3: FT 600, ...
steps: int = 0  # training steps; 0: as many as the preset says
study_steps: int = 0  # of each row of Tables 2 and 3 (100: half an hour); 0: none
seed: int = 0  # of weights, batches and bootstrap
towns_steps: int = 0  # of each model of part 1 (1000: 5 minutes); 0: the shipped
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from lib.data.batch import EncodedDocument, make_batch, rows_of
from lib.data.corpora import anthology_year, load_corpus
from companion.tasks.towns import (
    FACT_PLACES,
    TOWN_PIECES,
    same_town,
    town_document,
)
from lib.data.vocabulary import BOS, EOS, PAD, SENTENCE_END
from lib.data.tokenize import bigram_recall
from lib.evaluation.baselines import lexrank
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.rouge import longest_common_recall, rouge
from lib.evaluation.summaries import write_summaries
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from companion.claims.text import claims_table
from companion.pages.checks import Checks, gradients
from companion.pages.diagrams import show_model
from companion.pages.figures import lines, word_maps
from companion.pages.measured import lost_table, task_table
from companion.pages.choice import choose, compare_means
from companion.pages.runs import (
    loss_figure, nll_by_text, run_facts, train_or_load,
)  # fmt: skip
from companion.pages.shown import (
    PageFigures, Passages, clip, figures_folder, show_tables,
)  # fmt: skip
from companion.pages.measured import summary_table
from companion.pages.towns import (
    cuts_table, hops_table, town_frames, town_graphs, towns_table,
)  # fmt: skip
from lib.papers import open_run, resolve
from lib.papers.hierarchical_transformer.graphs import (
    MARKERS,
    capitalised_names,
    discourse_graph,
    similarity_graph,
)
from lib.papers.hierarchical_transformer.ranking import (
    best_first,
    learned_scores,
    paragraph_scores,
    similarity_scores,
    train_ranker,
)
from companion.results.kept import kept_table
from companion.results.tables import PAGE_RESULTS, TABLES, TRAINED
from lib.evaluation.scores import cut
from companion.results.text import table_frame
from lib.training.folder import kept_checkpoints, load_weights
from lib.training.loop import evaluate_loss
from lib.decoding.search import DECODINGS, summarize
from lib.system.files import trained_folder, work_folder
from companion.tasks.towns import open_towns, unseen_towns

# what cannot be read ends the page here
choice = choose(
    "hierarchical_transformer", dataset, preset, variant, steps, seed, run,
    demo="aclsum:paragraphs",
)  # fmt: skip
studied = resolve("hierarchical_transformer", preset or "demo", variant, seed=seed)
studied_corpus = load_corpus(dataset or "aclsum:paragraphs", errors="skip")
figures, checks = PageFigures(figures_folder()), Checks()
show_tables()

# %% slideshow={"slide_type": "subslide"}
towns, cluster = open_towns(towns_steps, seed), unseen_towns(1)[0]
town_frames(towns, cluster)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** At step 10 the model has to name the river. A paragraph is as dark as the decoder's attention to it: the three that name a river *for osvia* are dark, whatever their words are. Two of them say *arno*, one says *oder*, and the model writes *arno*. A model of the same depth
**without global layers** writes *colva*, the river of the other town. Go through the other facts: the year at step 5, the product at 17, the mayor at 22.

**[Watch it write](../docs/live.md#two-towns)**: the same two models in your browser, without Python. Change a snippet or drop it, ask for the other town, cut a layer, and read the numbers of every equation.

**When you have read this page**, you can explain how paragraphs learn about each other through a few vectors each, what a given graph changes, and where the authors' code differs from their equations. **What does not work**: on real papers, models of this size hardly use what passes between paragraphs (part 3). The models of part 3 do not rank: they read a paper's paragraphs in their order.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Before you start**: PyTorch, a transformer's attention, and what [Start here](start_here.ipynb) explains: beam search, length penalty, warm-up, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | towns: what each part of the model is for | 12 |
| 2 | every equation as a short function, in two readings, the paper's and its code's, each with a number of the cluster above, checked against the library `lib` | 42 |
| 3 | real papers: ranking, what the shipped models write, and what they lose without a part | 12 |
| 4 | the paper's claims, and what we found | 4 |
| 5 | six exercises | 55 |

Before this page: [Mem2Mem](mem2mem.ipynb); next: [all models on the same documents](compare.ipynb).

With the parameters as they are, the page takes about a minute on two CPU cores and needs no network. `towns_steps=1000` trains the models of part 1 here, in some ten minutes. With a `dataset` the shipped models read that corpus's test documents in part 3; with a `preset` the page trains a model first; with `run` it shows a run of yours.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. Towns: what each part is for

The snippets above are a task with a known answer. Each says two facts, the second of "it". Each of a town's four facts is said three times in different words, and one of the three is wrong in every second case. Each cluster combines known towns and known values anew, so a combination cannot be learned by heart. The model is the paper's own,
with 262,855 parameters and **without copying**.

## Which models learn the task?

Each row of the table is a model from which one thing is taken, trained like HT: batches of 32 new clusters, Adam at 0.001, 1,000 steps, three seeds (`python -m companion.solve towns`). The facts are those of 200 unseen clusters. A wrong one is *the other town's*, *a minority's* of the snippets about the right town, or stands *nowhere*. *Flat* models read all pieces in one row, with `<P>` between paragraphs if they have *separators*. *Graph of towns*: one head has a graph, (24), which is 1 for the same town; it is made from the right answer. *One pooling head* pools a paragraph into one vector of 64 numbers instead of four of 16.

<details><summary>Predict: how many facts are right without global layers, without local ones, with all paragraphs in one flat row, or with one pooling head? What is written in place of the others?</summary>

HT has all facts right, and so do the models with a graph and without paragraph positions: the snippets come in any order. Without global layers, or in one flat row, half of the facts are right after 1,000 steps, and nearly all others are the other town's. One pooling head learns as much in two seeds of three. Without local layers most facts are right, but are learned later.

</details>
"""

# %% slideshow={"slide_type": "subslide"}
towns_table()

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The models without global layers read, and they outvote the minority, but they mix the towns. This does not show that global layers are *needed*. The flat model sees title and snippets in every layer, and could compare their names; within these steps it does not learn to. What is shown is that the models with global layers learn it sooner.

HT was trained on 12 paragraphs. With more paragraphs, hardly anything is lost. In the first two columns a fact is said more often and at most one mention is wrong, so that the vote is easier. In the third, as large a share of the mentions is wrong as in training:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
longer = {f"{n} paragraphs": f"right, {n} paragraphs" for n in (24, 48)}
longer["48, as many wrong, seed 0"] = "right, 48 paragraphs, as many wrong"
task_table("towns", longer, {"HT": "HT"}, by_seed=True)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## In which layer a model looks at the title is an accident

What is the attention between paragraphs *for*? We cut connections of the trained models, for each seed, and count what is still right. The second column is a smaller task, *named*: the title names one of five paragraphs, and the summary is the two words that stand in it (`python -m companion.solve named`).

<details><summary>Predict: which cut costs more, the look at the title in layer 1 or in layer 2?</summary>

It depends on the seed. A cut that costs one seed half of its answers or more costs another nothing, in both tasks.

</details>
"""

# %% slideshow={"slide_type": "subslide"}
cuts_table()

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Without any look at the title, about half of the facts are right (40 to 52%). But *where* a model looks at it differs from seed to seed, so a picture of one head explains one run. What all seeds share is the decoder: from the paragraphs with the answer alone it writes most of it right, from the others it writes what those say.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. The equations, one by one

The paper is paraphrased, never quoted; **(5)** is its equation 5. Functions named after an equation, like `eq15_pooling_weights`, are written to be read: they take one cluster, with no batch and no padding, and the weights of the library's modules. After each group, a line shows a number of the trained towns model on the cluster
above, and how far the functions agree with the library. This comparison is made in double precision for a padded batch of three small clusters with random weights, in both readings; it stops the page if the two differ.

| symbol | shape | what |
|---|---|---|
| $m$ | | paragraphs of a cluster; the title is paragraph 0 |
| $d$ | | width of the model |
| $x_{ij},\ w_{ij}$ | $d$ | word (piece) $j$ of paragraph $i$; its embedding |
| $e_p$ | $d/2$ | sinusoids of a position |
| $n_{head},\ d_{head}$ | | heads $z$, and their width $d/n_{head}$ |
| $\hat a^z_{ij}$ | scalar | pooling weight of a word inside its paragraph |
| $head^z_i$ | $d_{head}$ | paragraph $i$ as head $z$ sees it |
| $context^z_i$ | $d_{head}$ | what paragraph $i$ gathers from all paragraphs |
| $c_i$ | $d$ | all contexts of paragraph $i$ together |
| $G$ | $m\times m$ | a graph over paragraphs |
| $W,\ V$ | | in the picture: words of all paragraphs, and pieces known |

A *piece* is a word or a part of one; in the towns each word is a piece. Some letters mean a second thing: $d$ is half of the width in (7) and (8), $p$ a vector in (4) and a switch in (C2), $i$ a dimension in (7), $m$ a marker in (26); and $W_1$, $W_2$ in (4), (6) are not those of $\mathrm{FFN}$, nor is $W^z_c$ in (16) the $W_c$ of (21).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
show_model("hierarchical_transformer")

# %% slideshow={"slide_type": "skip"}
town, document = towns["HT"].double(), town_document(cluster)
rows = [row.tolist() for row in rows_of(document)]  # the title, twelve paragraphs

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
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


def encoded(name, rows, target):
    words, lengths = [w for row in rows for w in row], [len(row) for row in rows]
    wanted = [w for w in target if w > SENTENCE_END]
    recall = [bigram_recall(row, wanted) for row in rows[1:]]
    labels = np.array(recall, dtype=np.float32)
    return replace(EncodedDocument.of(name, words, lengths, target), labels=labels)


toy = [encoded(name, *pair) for name, pair in zip("abc", toy_rows)]
V, d = len(toy_pieces), 8
b = 0  # the cluster that the checks follow; it is padded
batch = make_batch(toy, V)
toy_cluster, toy_target = toy_rows[b]


def toy_transformer(form):
    torch.manual_seed(1)
    sizes = {"width": d, "heads": 2, "inner": 12, "local_layers": 2, "global_layers": 2}
    config = HierarchicalTransformerConfig(V, **sizes, dropout=0.0, form=form)
    model = HierarchicalTransformer(config).double()
    for parameter in model.parameters():  # larger than usual: every mistake shows
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def seen_by_lib(model, graph=None):
    """What enters the first layer and leaves every layer of lib, for cluster b."""
    passed_on, hooks = [], []

    def note(words):
        placed = words.new_zeros(batch.source.numel(), d)
        placed = placed.index_copy(0, batch.ragged.word, words)
        placed = placed.view(*batch.source.shape, d)
        passed_on.append(placed[b, : len(toy[b].source)].detach())

    first = model.local_layers[0]
    hooks.append(first.register_forward_pre_hook(lambda layer, inputs: note(inputs[0])))
    for layer in model.local_layers:
        hooks.append(layer.register_forward_hook(lambda *passed: note(passed[2])))
    for layer in model.global_layers:
        hooks.append(layer.register_forward_hook(lambda *passed: note(passed[2][0])))
    state = model.encode(batch, graph)
    for hook in hooks:
        hook.remove()
    return passed_on, state


torch.set_default_dtype(torch.float64)  # for the equations alone
random_models = {form: toy_transformer(form) for form in ("paper", "code")}
lib_layers, lib_states = {}, {}
for form, model in random_models.items():
    lib_layers[form], lib_states[form] = seen_by_lib(model)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) to (6) The ranker: which paragraphs to read

Without it, the model reads the first paragraphs that fit, whatever they say. One LSTM reads the title, another one reads a paragraph. The title becomes one vector: the largest value of each dimension over its words. This vector is joined to every word of the
paragraph. The result is reduced in the same way, and a logistic regression gives the score.

$$\{u_{t1},\dots\}=\mathrm{lstm}_t(\{w_{t1},\dots\})\tag{1}$$

$$\{u_{p1},\dots\}=\mathrm{lstm}_p(\{w_{p1},\dots\})\tag{2}$$

$$\hat u_t=\mathrm{maxpool}(\{u_{t1},\dots\})\tag{3}$$

$$p_i=\tanh\big(W_1[u_{pi};\hat u_t]\big)\tag{4}$$

$$\hat p=\mathrm{maxpool}(\{p_1,\dots\})\tag{5}$$

$$s=\sigma(W_2\hat p)\tag{6}$$

The ranker learns, by cross entropy, the **ROUGE-2 recall** of the paragraph: the share of the summary's bigrams that the paragraph has.

The paper does not say why it takes a maximum. The models of parts 1 and 3 do not rank; part 3 measures the ranker by itself.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
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


# %% slideshow={"slide_type": "skip"}
def eq06_score(title, paragraph, ranker):
    title_vector = eq03_title_vector(eq01_states(title, ranker.title, ranker.embedding))
    states = eq01_states(paragraph, ranker.paragraph, ranker.embedding)
    p = torch.stack([eq04_features(u, title_vector, ranker.combine) for u in states])
    p_hat = p.max(0).values  # (5)
    return torch.sigmoid(ranker.score(p_hat))[0]


def rouge_2_recall(paragraph, summary):
    """Each bigram of the summary counts as often as the paragraph has it."""
    there, sought = (list(pairwise(words)) for words in (paragraph, summary))
    both = sum(min(sought.count(pair), there.count(pair)) for pair in set(sought))
    return both / max(1, len(sought))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
torch.manual_seed(1)
toy_ranker = ParagraphRanker(ParagraphRankerConfig(V, embedding=4, hidden=3)).eval()
scored = [(ids, row, target) for ids, target in toy_rows for row in ids[1:]]
s = torch.stack([eq06_score(ids[0], row, toy_ranker) for ids, row, _ in scored])
y = [rouge_2_recall(r, [w for w in t if w > SENTENCE_END]) for _, r, t in scored]
checks.close(s, toy_ranker.logits(batch).sigmoid(), "(1)-(6)", "scores of a batch")
checks.close(torch.tensor(y), batch.labels, "labels", "ROUGE-2 recall")
y = torch.tensor(y)
cross_entropy = -(y * s.log() + (1 - y) * (1 - s).log()).mean()
lib_loss = toy_ranker.loss(batch)["loss"]
checks.close(cross_entropy, lib_loss, "the ranker's loss", "cross entropy")
summary = cluster.summary.split()
recalls = [rouge_2_recall(p.text.split(), summary) for p in cluster.paragraphs]
count = len(summary) - 1
checks.line(
    f"Labels: paragraph 9 has {recalls[8] * count:.0f} of the summary's {count} bigrams"
    f' ("on the", "the arno", ...), {recalls[8]:.2f}; paragraph 6 has'
    f" {recalls[5] * count:.0f}, {recalls[5]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (7) to (10) Two positions

Attention is a sum and knows no order, so each word carries its position. It has two: the number of its paragraph, and its own number in that paragraph. Each gets half of the dimensions. The paper prints $e_p[i]$ in (7)
where it means $e_p[2i]$. In (7) and (8), $d$ is read as the width of $e_p$ itself, as in the code.

$$e_p[2i]=\sin\big(p/10000^{2i/d}\big)\tag{7}$$

$$e_p[2i+1]=\cos\big(p/10000^{2i/d}\big)\tag{8}$$

$$pe_{ij}=[e_i;e_j]\tag{9}$$

$$x^0_{ij}=w_{ij}+pe_{ij}\tag{10}$$

**The code** puts the word's half first, and multiplies $w_{ij}$ by $\sqrt d$. From here on, every function has the two readings: `paper`
for the equations as they stand, `code` for what the authors ran. The towns model is of the code's form.
"""


# %% slideshow={"slide_type": "skip"}
def eq07_position(p, width):
    """The sinusoids of (7) and (8): [width]."""
    angles = [p / 10000 ** (2 * i / width) for i in range(width // 2)]
    return torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)])


def eq09_both_positions(i, j, width, form):
    paragraph, word = eq07_position(i, width // 2), eq07_position(j, width // 2)
    return torch.cat([paragraph, word] if form == "paper" else [word, paragraph])


# %% slideshow={"slide_type": "skip"}
def eq10_input(rows, model):
    """Words of every paragraph: a list of [n_i, d]."""
    form, d, E = model.config.form, model.config.width, model.embedding.weight
    placed = []
    for i, row in enumerate(rows):
        both = [eq09_both_positions(i, j, d, form) for j in range(len(row))]
        scale = 1 if form == "paper" else math.sqrt(d)
        placed.append(scale * E[torch.tensor(row)] + torch.stack(both))
    return placed


x = eq10_input(rows, town)  # of the cluster above

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for form, model in random_models.items():
    words = torch.cat(eq10_input(toy_cluster, model))
    checks.close(words, lib_layers[form][0], "(7)-(10)", f"input, {form}")
width = town.config.width
place = eq09_both_positions(2, 1, width, "code")
first, second = place[:2], place[width // 2 : width // 2 + 2]
checks.line(
    f'"has" in paragraph 2 has one word before it, so its word half begins with'
    f" sin 1 = {first[0]:.2f}, cos 1 = {first[1]:.2f}; its paragraph half begins with"
    f" sin 2 = {second[0]:.2f}, cos 2 = {second[1]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (11), (12) A local layer

Inside one paragraph every word looks at every word; this is where *it* can meet the name of its town, at a fraction of what attention between all words costs. (Without local layers, and with four global ones, towns are learned later: 4 to 7% of the facts are right after 500 steps where the model above has 18 to 46%, and 88 to 100% after 1,000, in three seeds.) $\mathrm{MHAtt}$ is multi-head attention (Vaswani et al. 2017): each head maps the words $X$ to queries, keys and values of width
$d_{head}$ and gives $\mathrm{softmax}(QK^\top/\sqrt{d_{head}})V$; the heads are joined and mixed by one more matrix. $\mathrm{FFN}(x)=W_2\,\mathrm{ReLU}(W_1x)$ works on each word alone;
$\mathrm{LN}$, layer normalisation, gives a vector mean 0 and variance 1, scaled and shifted by learned numbers.

$$h=\mathrm{LN}\big(x^{l-1}+\mathrm{MHAtt}(x^{l-1})\big)\tag{11}$$

$$x^l=\mathrm{LN}\big(h+\mathrm{FFN}(h)\big)\tag{12}$$

**The code** normalises the input of each part instead of the sum: $h=x+\mathrm{MHAtt}(\mathrm{LN}\,x)$, $x^l=h+\mathrm{FFN}(\mathrm{LN}\,h)$.
It normalises once more after the last layer.
"""


# %% slideshow={"slide_type": "skip"}
def multi_head_attention(queries, words, part):
    """Scaled dot-product attention of [m, d] to [n, d], head by head."""
    q, k, v = part.query(queries), part.key(words), part.value(words)
    size, heads = q.shape[1] // part.heads, []
    for z in range(part.heads):
        columns = slice(z * size, (z + 1) * size)
        weights = (q[:, columns] @ k[:, columns].T / math.sqrt(size)).softmax(-1)
        heads.append(weights @ v[:, columns])
    return part.output(torch.cat(heads, -1))


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


for layer in town.local_layers:
    x = [eq12_local_layer(words, layer, "code") for words in x]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
local_words = {}
for form, model in random_models.items():
    toy_x = eq10_input(toy_cluster, model)
    for number, layer in enumerate(model.local_layers, 1):
        toy_x = [eq12_local_layer(words, layer, form) for words in toy_x]
        of_lib, name = lib_layers[form][number], f"local layer {number}, {form}"
        checks.close(torch.cat(toy_x), of_lib, "(11), (12)", name)
    local_words[form] = toy_x
lengths = [len(row) for row in rows]
checks.line(
    f"Paragraph 2 has {lengths[2]} pieces, so a head computes {lengths[2] ** 2} scores;"
    f" for the whole cluster {sum(n**2 for n in lengths):,}, and for all"
    f" {sum(lengths)} pieces in one row {sum(lengths) ** 2:,}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (13) to (16) Pooling: a paragraph as several vectors

A paragraph must become short before paragraphs can attend to each other cheaply. Each head weighs the words of a paragraph with a softmax, and adds up their values. All heads together have the width of one: with several heads a paragraph has several attention distributions, not more numbers. The paper means each head to weigh other words. On towns, one head is enough in two seeds of three. (16) prints $a$ where the softmax $\hat a$ is meant.

$$a^z_{ij}=W^z_ax_{ij}\tag{13}$$

$$b^z_{ij}=W^z_bx_{ij}\tag{14}$$

$$\hat a^z_{ij}=\frac{\exp a^z_{ij}}{\sum_{j'}\exp a^z_{ij'}}\tag{15}$$

$$head^z_i=\mathrm{LN}\Big(W^z_c\sum_j\hat a^z_{ij}b^z_{ij}\Big)\tag{16}$$

**The code** pools $\mathrm{LN}(x)$, has no $W^z_c$, and one normalisation for all heads.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
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


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: from which words does the second global layer make the vectors of a paragraph?</summary>

In this run head 2 takes the name of the town and hardly anything else; head 3 takes it in part. The others spread over both sentences.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
with torch.no_grad():
    town_state = town.encode(make_batch([document], len(TOWN_PIECES)))
starts = np.cumsum([0, *lengths])
panels = []
for i in (2, 12):
    panel = town_state.pooling[1][0, starts[i] : starts[i + 1]].T
    names = [TOWN_PIECES.words[piece] for piece in rows[i]]
    panels.append({
        "title": f"paragraph {i}", "values": panel, "columns": names,
        "rows": [f"head {z}" for z in range(1, len(panel) + 1)],
    })  # fmt: skip
caption = (
    "(15) in the second global layer of the towns model: how much of each word goes into"
    " the four vectors of two paragraphs."
)
figures.show(word_maps, caption, "hierarchical_pooling", panels=panels, across=1)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for form, model in random_models.items():
    layer = model.global_layers[0]
    toy_x = local_words[form]
    toy_x = [layer.norms[0](words) if form == "code" else words for words in toy_x]
    weights = torch.cat([eq15_pooling_weights(words, layer) for words in toy_x])
    of_lib = lib_states[form].pooling[0][b, : len(toy[b].source)]
    checks.close(weights, of_lib, "(13), (15)", f"pooling weights, {form}")
name, fact = (
    panels[0]["values"][1, panels[0]["columns"].index(w)] for w in ("osvia", "cider")
)
checks.line(
    f'In paragraph 2, head 2 takes {name:.2f} of "osvia" and {fact:.2f} of "cider".'
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (17) to (20) Attention between paragraphs

Here paragraphs meet: each head attends from paragraph to paragraph. Where each sees itself alone in both layers, 46, 52 and 28% of the towns' facts are right (part 1).

$$q^z_i=W^z_qhead^z_i\tag{17}$$

$$k^z_i=W^z_khead^z_i\tag{18}$$

$$v^z_i=W^z_vhead^z_i\tag{19}$$

$$context^z_i=\sum_{i'}\frac{\exp(q^{z\top}_ik^z_{i'})}{\sum_o\exp(q^{z\top}_ik^z_o)}\,v^z_{i'}\tag{20}$$

**The code** has the same three matrices for all heads, and divides the scores by $\sqrt{d_{head}}$.

## (24) A graph in place of a head

The attention (20) is a learned graph. A graph $G$ that is made outside the model can take the place of one head's attention. Row $i$ of $G$, scaled to sum to 1, says how much paragraph $i$ takes from each paragraph. In this head only the values
are learned.

$$context^{z'}_i=\sum_{i'}\frac{G_{ii'}}{\sum_oG_{io}}\,v^{z'}_{i'}\tag{24}$$

The paper does not say which head the graph replaces, nor in which layers. Here it replaces the first head of every global layer. No published
commit of the code has the graphs.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("hierarchical_transformer", {17, 18, 19, 20, 24})


# %% slideshow={"slide_type": "skip"}
def eq17_project(head, which, z, layer, form):
    """Query (17), key (18) or value (19) of a paragraph for head z: which is 0 to 2."""
    if form == "code":
        return layer.between[which](head)
    return layer.between_weights[which, z] @ head


def eq20_weights(heads, i, z, layer, form):
    """How much paragraph i attends to each: [m]. heads: a list of [heads, d_head]."""
    q = eq17_project(heads[i][z], 0, z, layer, form)
    k = torch.stack([eq17_project(head[z], 1, z, layer, form) for head in heads])
    return (k @ q / math.sqrt(len(q)) if form == "code" else k @ q).softmax(0)


def eq24_weights(G, i):
    return G[i] / G[i].sum()


# %% slideshow={"slide_type": "skip"}
def eq20_contexts(heads, layer, form, G=None):
    """[m, heads, d_head], and the weights [heads, m, m]."""
    contexts, weights = [], []
    for z in range(layer.heads):
        values = [eq17_project(head[z], 2, z, layer, form) for head in heads]
        if G is not None and z == 0:
            attention = [eq24_weights(G, i) for i in range(len(heads))]
        else:
            attention = [
                eq20_weights(heads, i, z, layer, form) for i in range(len(heads))
            ]
        weights.append(torch.stack(attention))
        contexts.append(weights[z] @ torch.stack(values))
    return torch.stack(contexts, 1), torch.stack(weights)


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: rows sorted by town, what does a learned graph look like beside the graph that joins equal towns?</summary>

Both have two blocks. In the learned one, snippets about the title's town look mostly at the title and hardly at the other town, and those about the other town look at each other. This head was chosen because it is nearest to the given graph, and the given graph is made from the right answer.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
caption = (
    "How much each paragraph (row) takes from each, on the cluster above, sorted by town:"
    " a given graph (24), and the head of (20) that is nearest to it."
)
panels = town_graphs(town, cluster)
figures.show(word_maps, caption, "hierarchical_towns", panels=panels, top=1.0)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
toy_graph = torch.zeros(len(toy), 5, 5)
for k, (ids, _) in enumerate(toy_rows):
    size = len(ids)
    toy_graph[k, :size, :size] = torch.eye(size) + 0.3 * torch.rand(size, size)
graphed = {form: seen_by_lib(m, toy_graph) for form, m in random_models.items()}
size = len(toy_cluster)
for form, model in random_models.items():
    layer = model.global_layers[0]
    heads = [eq16_heads(words, layer, form) for words in local_words[form]]
    G = toy_graph[b, :size, :size]
    pairs = (None, lib_states[form], "(14), (16)-(20)"), (G, graphed[form][1], "(24)")
    for graph, state, eq in pairs:
        _, weights = eq20_contexts(heads, layer, form, graph)
        of_lib = state.between[0][b, :, :size, :size]
        checks.close(weights, of_lib, eq, f"attention between paragraphs, {form}")
learned, given = (
    town_state.between[1][0, 1],
    eq24_weights(torch.tensor(same_town(cluster)), 2),
)
checks.line(
    f"Layer 2, head 2: paragraph 2 (osvia) takes {learned[2, 0]:.2f} from the title,"
    f" paragraph 3 (velholm) {learned[3, 0]:.2f}. By the given graph paragraph 2 takes"
    f" 1/7 = {given[0]:.2f} from each of the title and the six about osvia."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
**Two hops: when a given graph matters.** The title is a name. Four paragraphs each say the alias of a name, and four others each begin with an alias, and the two words after it may be the summary. So the answer's paragraph shares no word with the title: the way leads over another paragraph. The given graph joins
paragraphs that share a name or an alias. A guess among the four answers is right in 25% (`python -m companion.solve hops`).

<details><summary>Predict: how many global layers does it take, with the graph and without?</summary>

A global layer is one step on the graph, so two hops take two layers. With the graph, two layers find every answer after 500 steps. Without it, even three still guess, and so does one layer with it: a given graph pays where it says what attention has not learned.

</details>
"""

# %% slideshow={"slide_type": "subslide"}
hops_table()

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (21) to (23) Back to the words

The decoder reads words, not paragraphs. So every word must receive what its paragraph has gathered: the contexts of all heads are joined, mixed and added to the word, and two linear layers follow.

$$c_i=W_c[context^1_i;\dots;context^{n_{head}}_i]\tag{21}$$

$$g_{ij}=W_{o2}\,\mathrm{ReLU}\big(W_{o1}(x_{ij}+c_i)\big)\tag{22}$$

$$x^l_{ij}=\mathrm{LN}(g_{ij}+x_{ij})\tag{23}$$

**The code** keeps $c_i$ in what is passed on: $x^l_{ij}=(x_{ij}+c_i)+\mathrm{FFN}(\mathrm{LN}(x_{ij}+c_i))$.
"""


# %% slideshow={"slide_type": "skip"}
def eq21_context(x, layer, form, G=None):
    """All paragraphs, a list of [n_i, d] -> what each gathers: [m, d]."""
    heads = [eq16_heads(words, layer, form) for words in x]
    contexts, _ = eq20_contexts(heads, layer, form, G)
    return layer.output(contexts.flatten(1))


def eq23_global_layer(x, layer, form, G=None):
    """All paragraphs: a list of [n_i, d] -> the same."""
    new = []
    for words, c in zip(x, eq21_context(x, layer, form, G)):
        if form == "paper":
            g = layer.feed_forward(words + c)  # (22)
            new.append(layer.norms[0](g + words))
        else:
            new.append(words + c + layer.feed_forward(layer.norms[1](words + c)))
    return new


# %% slideshow={"slide_type": "skip"}
x = eq23_global_layer(x, town.global_layers[0], "code")
c = eq21_context(x, town.global_layers[1], "code")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for form, model in random_models.items():
    for G, of_lib, eq in (
        (None, lib_layers[form], "(21)-(23)"),
        (toy_graph[b, :size, :size], graphed[form][0], "(24)"),
    ):
        toy_x = local_words[form]
        for number, layer in enumerate(model.global_layers, 1):
            toy_x, what = (
                eq23_global_layer(toy_x, layer, form, G),
                f"layer {number}, {form}",
            )
            checks.close(torch.cat(toy_x), of_lib[number + 2], eq, f"global {what}")
long = c.detach().norm(dim=1)
own = torch.tensor([p.town == cluster.title for p in cluster.paragraphs])
own, other = long[1:][own], long[1:][~own]
checks.line(
    f"Layer 2: c has a length of {own.min():.1f} to {own.max():.1f} in the paragraphs about"
    f" osvia, and of {other.min():.1f} to {other.max():.1f} in those about velholm."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**The longer vector is in the paragraphs to be ignored.** It is longer for the other town in 98.5% of 200 unseen clusters [96.5, 100] (`python -m companion.studies.town_marks`). And it is used: if c is left out of the paragraphs about the other town, 45.3% of the facts are lost [40.9, 50.1]. If it is left out of those about the title's town, none are (-0.1% [-0.9, 0.8]). This is one model; another seed may do it in another way.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (25), (26) The two graphs

**Similarity** is the cosine of the tf-idf vectors of two paragraphs. The weight of a word is its count times $\log(N_d/N_{dw})$: there are $N_d$ paragraphs,
and $N_{dw}$ of them have the word, so that words of all paragraphs join none. Edges below 0.2 are dropped. **Discourse** is $0.2$ times the number of entities that two paragraphs share, plus 1
if the two are neighbours in a document and a marker such as *however* or *as a result* joins them.

$$v_{ik}=N_w(t_{ik})\log\frac{N_d}{N_{dw}(t_{ik})}\tag{25}$$

$$D_{ii'}=0.2\,e_{ii'}+m_{ii'}\tag{26}$$

The paper finds entities with spaCy, and so does the library if spaCy and its small English model are installed; otherwise sequences of capitalised
words count as entities, as here. Both graphs have 1 on the diagonal, so that no row of (24) is empty.
"""


# %% slideshow={"slide_type": "skip"}
def eq25_similarity(paragraphs):
    """Paragraphs in words -> [m, m]."""
    words, m = sorted({w for p in paragraphs for w in p}), len(paragraphs)
    idf = [math.log(m / sum(w in p for p in paragraphs)) for w in words]
    vectors = [[p.count(w) * x for w, x in zip(words, idf)] for p in paragraphs]
    V, S = torch.tensor(vectors), torch.eye(m)
    for i, k in ((i, k) for i in range(m) for k in range(m) if i != k):
        cosine = V[i] @ V[k] / (V[i].norm() * V[k].norm()).clamp_min(1e-30)
        S[i, k] = cosine if cosine >= 0.2 else 0
    return S


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
snippets = [p.text.replace(" .", "").split() for p in cluster.paragraphs]
S = eq25_similarity(snippets)
checks.close(S, torch.tensor(similarity_graph(snippets)), "(25)", "similarity graph")
checks.line(
    f'Paragraphs 3 and 11 both say "lies on the colva": {S[2, 10]:.2f}. But 4 and 6, of two'
    f' towns, also share words ("first settled"): {S[3, 5]:.2f}; and 2 and 5, both of osvia'
    f" and cider, fall below 0.2 and have {S[1, 4]:.0f}."
)

# %% slideshow={"slide_type": "skip"}
graph_texts = [
    "Ada Lovelace met Charles Babbage in London.",
    "However, the engine of Charles Babbage was not built.",
    "We saw the engine in London with Ada Lovelace. As a result, London was full.",
    "Also built elsewhere: the engine of Charles Babbage.",
    "In fact, Charles Babbage went to Paris.",
]
graph_sources = ["first", "first", "first", "second", "second"]  # the document of each


def eq26_discourse(paragraphs, sources):
    """Texts and the document of each -> [m, m]."""
    D = torch.eye(len(paragraphs))
    for i, one in enumerate(paragraphs):
        for k, other in enumerate(paragraphs[:i]):
            e = len(names_in(one) & names_in(other))
            m = k == i - 1 and sources[k] == sources[i] and marked(one)
            D[i, k] = D[k, i] = 0.2 * e + m
    return D


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
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


D = eq26_discourse(graph_texts, graph_sources)
lib_discourse = discourse_graph(graph_texts, graph_sources, capitalised_names)
checks.close(D, torch.tensor(lib_discourse), "(26)", "discourse graph")
checks.line(
    f'Texts 1 and 2 share one name, and "However" joins them: 0.2 + 1 = {D[0, 1]:.1f};'
    f" 1 and 3 share Ada Lovelace and London: {D[0, 2]:.1f}; 1 and 4 share one: {D[0, 3]:.1f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The decoder, and the loss

At each step, the piece written last is embedded with the table that also embeds the source and makes the output. It attends to itself and to the pieces before it, and then to **all words of all paragraphs** in one row. Only through (13) to (23) can a word's state hold what other paragraphs say. The paper does not state the depth; the code has **one** layer. Nothing is copied. (The form "paper" has no √d, and normalises after each sum.)

```python
y = sqrt(d) * E[piece] + sinusoids(t)
past.append(keys_and_values(LN1(y)))               # beside those of the pieces before
y = y + self_attention(LN1(y), past)
y = y + source_attention(LN2(y), words)            # keys and values of all words, made once
y = y + FFN(LN3(y))
P = softmax(E LN(y) + bias)
```

Labels are smoothed: the right piece gets $1-\epsilon$, and all other pieces except [PAD] share $\epsilon=0.1$ (in the towns, 0).
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


def pieces_before(x, part):
    """Every place attends to itself and to those before it."""
    places = range(len(x))
    return torch.cat(
        [multi_head_attention(x[t : t + 1], x[: t + 1], part) for t in places]
    )


# %% slideshow={"slide_type": "skip"}
def decoder(written, words, model):
    """Pieces so far, [BOS] first -> log P of what comes after each: [T, V]."""
    code, E, d = model.config.form == "code", model.embedding.weight, model.config.width
    places = torch.stack([eq07_position(t, d) for t in range(len(written))])
    y = (math.sqrt(d) if code else 1) * E[torch.tensor(written)] + places
    for layer in model.decoder_layers:
        y = decoder_layer(y, words, layer, model.config.form)
    y = model.decoder_norm(y) if code else y
    return (y @ E.T + model.bias).log_softmax(-1)


def smoothed_loss(log_p, target, epsilon):
    labels = torch.full_like(log_p, epsilon / (log_p.shape[1] - 2))
    labels[:, PAD] = 0
    for t, right in enumerate(target):
        labels[t, right] = 1 - epsilon
    return -(labels * log_p).sum() / len(target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for form, model in random_models.items():
    model.train()
    losses = []
    for ids, target in toy_rows:
        log_p = decoder([BOS, *target[:-1]], encoder(ids, model), model)
        losses.append(smoothed_loss(log_p, target, 0.1))
    loss, of_lib = sum(losses) / len(toy), model.loss(batch)["loss"]
    checks.close(loss, of_lib, "the loss", f"of the padded batch, {form}")
    checks.gradients(gradients(model, loss), gradients(model, of_lib), "the gradients")
target = document.target.tolist()
log_p = decoder([BOS, *target[:-1]], encoder(rows, town), town)
loss = smoothed_loss(log_p, target, 0)
town_loss = town.loss(make_batch([document], len(TOWN_PIECES)))["loss"]
checks.close(loss, town_loss, "the towns model's loss", "of the cluster above")
river = FACT_PLACES[1]
checks.line(
    f'After "lies on the", P(arno) = {log_p[river].exp()[target[river]]:.2f}, as at step 10'
    f" above; the loss of the whole summary is {loss:.2f} a piece."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Limiting cases** can be worked out without these functions. A single paragraph can only attend to itself: the attention (20) is 1 and $context^z=W^z_vhead^z$. A graph of ones gives an attention of $1/m$ everywhere, like a head whose queries are 0. Writing piece by piece with saved keys and values gives the same as one pass over the whole summary.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for form, model in random_models.items():
    model.eval()
    layer, words = model.global_layers[0], local_words[form][1]
    heads = eq16_heads(words, layer, form)
    alone = [eq17_project(head, 2, z, layer, form) for z, head in enumerate(heads)]
    c = layer.output(torch.stack(alone).flatten())
    by_hand = layer.norms[0](layer.feed_forward(words + c) + words)
    if form == "code":
        by_hand = words + c + layer.feed_forward(layer.norms[1](words + c))
    single = make_batch([encoded("x", toy_cluster[1:2], [EOS])], V)
    of_lib, _, _ = layer(words, single.ragged, single.sentence_mask)
    checks.close(by_hand, of_lib, "one paragraph", f"global layer, {form}")
    ones = model.encode(batch, torch.ones_like(toy_graph)).between[0][:, 0]
    present = batch.sentence_mask.double()
    uniform = (present / present.sum(1, keepdim=True))[:, None].expand_as(ones)
    checks.close(uniform, ones, "graph of 1", f"uniform attention, {form}")
    whole, _ = model.decode(batch.target_input, model.encode(batch))
    state, parts = model.encode(batch), []
    for token in batch.target_input.split(1, dim=1):
        part, state = model.decode(token, state)
        parts.append(part.features)
    pieces_alone = torch.cat(parts, 1)
    checks.close(whole.features, pieces_alone, "piece by piece", f"decoder, {form}")
torch.set_default_dtype(torch.float32)
checks.line()

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.table()

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. Real papers: does anything pass between paragraphs?

The shipped models were trained on single papers. They do not rank: they read the title, where there is one, and the first 22 paragraphs in their order.

No corpus of many web pages may be shipped, so a paper stands for a cluster: its title, its paragraphs, its abstract as the summary. Long paragraphs are cut at the end of a sentence. Texts are cut into SentencePiece pieces, which are learned from the training clusters. Paragraphs with more than 0.8 of the summary's bigrams count as copies of it and are left out, as in the paper. The ranked WikiSum shards, Multi-News or your own folder of
`{title, paragraphs, summary}` lines can be read as well.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.box

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
told = preset == "paper"
wide = studied.options.base.prepare(studied_corpus, studied.documents, progress=told)
# papers of the ACL Anthology may be quoted from 2016 on
shown = next(
    paper
    for paper in studied_corpus.split("test")
    if studied_corpus.name != "aclsum:paragraphs" or anthology_year(paper.id) >= 2016
)
in_pieces = wide.encoder.encode([shown])[0].target[:24]
Passages([
    ("title", shown.title),
    ("its first paragraph", clip(studied.options.example(shown).paragraphs[0], 30)),
    ("its summary", clip(" ".join(shown.summary), 30)),
    ("in pieces", " ".join(wide.vocabulary.words[i] for i in in_pieces)),
    ("clusters", ", ".join(f"{name} {len(of)}" for name, of in wide.splits.items())),
    ("left out", str(wide.report)),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Is the ranker better than similarity? (Table 1)

How much of the summary is in the best $L'$ paragraphs, as the ROUGE-L recall of their concatenation? *Similarity* ranks by the tf-idf cosine with the title (Liu et al. 2018). *Learned* is the ranker of (1) to (6), trained on the training documents (here a hundred papers of ACLSum, unless the parameters name another corpus) with Adagrad. *By the labels* ranks by what the ranker should predict, which no ranking can know.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: how far is the learned ranker from similarity to the title, and how far in the paper, with 1.6 million clusters?</summary>

A point or so here, ten to fifteen points in the paper. Even the labels are only a few points above similarity: a gap as large as the paper's is impossible on these clusters. On 632 clusters of several documents the labels are 10.0 points above similarity [8.3, 12.0], and the learned ranker 0.9 [-0.6, 2.4] (`python -m companion.studies.ranking`).

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
test = wide["test"]
scores = {"as they come": paragraph_scores(test, "order", wide.vocabulary)}
if not studied_corpus.ranked:
    scores["similarity"] = similarity_scores(test, wide.vocabulary)
    scores["learned"] = learned_scores(train_ranker(wide, studied.options, told), test)
scores["by the labels"] = [paper.labels for paper in test]
counts, wanted = (5, 10, 20, 40), [paper.reference for paper in test]
means = {name: {} for name in scores}
for name, every in scores.items():
    for n in counts:
        best = [
            " ".join(
                wide.vocabulary.text(rows_of(paper)[1 + i]) for i in best_first(s)[:n]
            )
            for paper, s in zip(test, every)
        ]
        means[name][f"L' = {n}"] = longest_common_recall(best, wanted).mean()
panel = {
    "series": {name: [counts, list(row.values())] for name, row in means.items()},
    "styles": {"by the labels": "o--"},
    "xlabel": "best paragraphs, L'",
    "ylabel": "ROUGE-L recall",
    "ticks": counts,
}
caption = "How much of the summary is in the best paragraphs, by how they are ranked."
figures.show(lines, caption, "hierarchical_ranking", panels=[panel], width=5.6)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
published_1 = PAGE_RESULTS["hierarchical_table1"].published
columns = [f"L' = {n}" for n in counts]
published_1 = pd.DataFrame.from_dict(published_1, orient="index", columns=columns)
pd.concat([pd.DataFrame.from_dict(means, orient="index"), published_1]).round(2)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What does the model write, with copying and without?

The shipped model has learned to write abstracts of 31,077 biomedical papers ([its card](../trained/hierarchical_transformer/README.md) has the sizes). As in the paper, it was trained with Adam and Noam's learning rate, a constant times the smaller of $step^{-0.5}$ and $step\cdot warmup^{-1.5}$, and writes by beam search with 5 hypotheses, compared by $\log P(y)\,/\,\big((5+|y|)/6\big)^{0.4}$. With *trigram blocking*, no three pieces in a row are written twice.
*HT + copying*, our addition, has the same sizes and steps, and on the decoder the pointer that Mem2Mem has (See et al. 2017). Its labels are not smoothed; those of the other are, by 0.1. So their losses are not quite comparable.

<details><summary>The equations of copying</summary>

The decoder's last layer $f$ looks for a piece to copy among the encoder's pieces $h_i$, and a switch $p$ decides between copying and generating. $P_g$ is the softmax over all pieces, as in the model without copying.

$$\gamma_i=\mathrm{softmax}_i\Bigl(\tfrac{f^\top W h_i}{\sqrt d}\Bigr)\tag{C1}$$

$$P(w)=p\,P_g(w)+(1-p)\!\!\sum_{i:x_i=w}\!\!\gamma_i,\qquad p=\sigma\Bigl(w_f^\top f+w_c^\top\sum_i\gamma_i h_i+b\Bigr)\tag{C2}$$

`tests/test_copying_transformer.py` checks `lib.models.hierarchical_transformer` and its gradients against naive loops.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("copying_transformer")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
copying = trained_folder("hierarchical_transformer_copying")
copier = open_run(copying) if choice.is_shipped else None
options, decode = trained.options, trained.decode
system = trained.config["variant"]
documents = choice.documents[:20]
encoded_tests = trained.encode(documents)
references = [paper.summary for paper in documents]
None if choice.on_sample else run_facts(trained, choice.origin(trained))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checkpoints = {}
if not choice.folder:
    prepared = choice.setup.prepare(choice.corpus, progress=False)
    for which in (*kept_checkpoints(trained.folder), "average"):
        load_weights(trained.model, trained.folder, which).eval()
        nll = evaluate_loss(trained.model, prepared["val"], 8, len(trained.vocabulary))[
            "nll"
        ]
        checkpoints[which] = round(nll, 3)
pd.Series(checkpoints, name="validation nll").to_frame() if checkpoints else None

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
longest = (
    TRAINED["hierarchical_transformer"].words
    if choice.is_shipped
    else decode.max_length
)
blocks = {how: n for how, n in DECODINGS.items() if n or not choice.is_shipped}
paragraphs = [options.example(paper).paragraphs for paper in documents]
systems = {
    f"Lead ({longest} words)": paragraphs,
    f"LexRank (paragraphs, {longest} words)": [
        lexrank(texts, longest, threshold=None) for texts in paragraphs
    ],
}
for how, n in blocks.items():
    rule = replace(decode, block_ngrams=n)
    systems[f"{system}, {how}"] = summarize(
        trained.model, encoded_tests, trained.vocabulary, rule
    )
for name, summaries in systems.items():  # for people to judge
    path = work_folder() / "summaries" / f"{name}.jsonl"
    writer = trained if name.startswith(system) else None
    write_summaries(path, documents, summaries, choice.corpus.name, writer)
blocked = systems[f"{system}, trigram blocking"]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
written = [
    ("title", documents[0].title),
    ("reference", clip(" ".join(references[0]), 60)),
    (system, clip(" ".join(trained.readable(documents[0], blocked[0])), 60)),
]
if copier:
    (summary,) = copier.summarize(documents[:1])
    written += [("HT + copying", clip(str(summary), 60))]
Passages(written)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
ROUGE F1 in percent with a 95% bootstrap interval over documents, every summary cut to 200 words; of the shipped models on 200 test papers of the corpus that they have learned from (`python -m companion.trained score hierarchical_transformer`; it needs SumPubMed), unless the parameters choose other documents. *Lead* is the first words of the text, *LexRank* picks sentences. *repeated* is the share of trigrams that the summary has had before, in percent.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
differences = None
if choice.on_sample:
    names = "hierarchical_transformer", "hierarchical_transformer_copying"
    table = pd.concat([table_frame(kept_table(f"trained_{name}")) for name in names])
    table = table[~table.index.duplicated()].drop("References")
    table.index = table.index.str.replace("Hierarchical transformer", "HT")
    table = table[["R-1", "R-2", "R-Lsum", "repeated"]]
else:
    if copier:
        of_copier = [summary.sentences for summary in copier.summarize(documents)]
        systems["HT + copying, trigram blocking"] = of_copier
    table, parts = summary_table(systems, documents, options, longest, seed)
    table = table[["R-1", "R-2", "R-Lsum", "words", "repeated", "copied"]]
    lead, by_rank, *_, ours = systems
    differences = compare_means(parts, ours, [lead, by_rank], seed)
table

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
differences

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** In plain beam search, which the paper uses, both models repeat most of what they have written, and both are far below Lead: by 21 points of R-1, and by 11 with copying. With trigram blocking, HT is 5 points below Lead and HT + copying is 8 above it. HT writes what fits the field of a paper, and misses what the paper found.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**How much do they take from the text?** We compute the loss of references twice: given their own texts, and given the text of the next document instead. The rise is what a model takes from the text.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: which loses more, a model with or without copying?</summary>

With copying the loss rises by more than two a piece, without it by a quarter of one. To learn the way from an attended state to one of 8,000 pieces, the paper had 1.6 million clusters and 500,000 steps on four GPUs; this run read 31,077 papers three times each.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
compared = {f"{system}, a piece": trained}
if copier:
    compared["HT + copying, a piece"] = copier
    compared["Mem2Mem, a word"] = open_run(trained_folder("mem2mem"))
nlls = {name: nll_by_text(of, documents) for name, of in compared.items()}
taken = pd.DataFrame.from_dict(nlls, orient="index")
taken["taken from the text"] = taken["the next one's"] - taken["its own"]
taken.round(2)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What is lost without the look between paragraphs?

We change the shipped models, and measure what the references of 50 papers of `pmc-sample` lose in log-probability (`python -m lib.intervene trained/hierarchical_transformer_copying --dataset pmc-sample`).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: what costs most, the look between paragraphs, their positions, or copying?</summary>

Copying, by far, then which paragraphs are read; their order and their positions cost little. The look between paragraphs is worth less than a hundredth of what copying is, and even less in the model without copying.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
changes = {
    "each paragraph sees itself alone": "layers cut",
    "the same in layer 1": "layer 1 cut",
    "the same in layer 2": "layer 2 cut",
    "no look at the title": "first paragraph cut",
    "all paragraphs have the same position": "no paragraph positions",
    "the same paragraphs in the opposite order": "paragraphs backwards",
    "sections backwards: other paragraphs are read": "sections backwards",
    "no copying": "no copying",
}
lost_table(
    {
        "HT, nats a piece lost": "hierarchical_transformer",
        "HT + copying": "hierarchical_transformer_copying",
    },
    changes,
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** The first three rows cut the paper's idea, the look between paragraphs. The order of paragraphs costs as little. (Sections backwards are cut after they are turned, so that only 6% of the paragraphs that are read stay the same.) A trained model has learned to rely on all its parts. So the one that copies was also trained for 40 more steps with each paragraph seeing itself alone, on shorter clusters (8 paragraphs, 60 other papers). There the cut costs 0.004 [-0.004, 0.012] at once, and after these steps 0.001 [-0.003, 0.004] (three seeds).
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
How much could a graph change? The share of the pairs of paragraphs that each graph joins:
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def graph_density(graph):
    """The share of pairs that G joins, and a paragraph's mean weight on itself (24)."""
    own, pairs = graph.diagonal(), len(graph) * (len(graph) - 1)
    joined = ((graph > 0).sum() - (own > 0).sum()) / pairs
    return joined, (own / graph.sum(1)).mean()


densities = {}
for kind in () if options.flat or choice.corpus.ranked else ("similarity", "discourse"):
    with_graph = replace(trained.encoder, options=replace(options, graph=kind))
    graphs = [
        make_batch([paper], len(trained.vocabulary)).graph[0].numpy()
        for paper in with_graph.encode(documents)
    ]
    densities[kind] = np.mean([graph_density(graph) for graph in graphs], axis=0)
columns = ["share of pairs joined", "a paragraph's weight on itself"]
pd.DataFrame.from_dict(densities, orient="index", columns=columns).round(3)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The paper's best row reads about 1,600 pieces in training and 3,000 in the test. In the authors' code, these are 24 and 40 paragraphs. In proportion, the model here reads 37 instead of 22, and whole sections instead of their first 520 words:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
if not options.flat and not choice.corpus.ranked:
    more = replace(
        options, paragraphs=round(options.paragraphs * 40 / 24), section_words=None
    )
    longer = replace(trained.encoder, options=more).encode(documents)
    rule = replace(decode, block_ngrams=3)
    read_more = summarize(trained.model, longer, trained.vocabulary, rule)
    points = [
        rouge([cut(summary, longest, options) for summary in every], references)[:, 0]
        for every in (blocked, read_more)
    ]
    print("R-1, longer input minus the other:", paired_bootstrap(*points, seed))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
Twenty papers cannot tell. In the paper it gains 0.7.
""")


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def table_row(name):
    """Train a row of Tables 2 and 3 for `study_steps`, and score it."""
    length = {"steps": study_steps, "validate_every": max(1, study_steps // 5)}
    row = resolve(
        "hierarchical_transformer", preset or "demo", name, **length, seed=seed
    )
    data = row.prepare(studied_corpus, progress=False)
    model = row.build(data)
    folder = train_or_load(row, model, data).folder
    load_weights(model, folder, "average").eval()
    summaries = summarize(model, data["test"], data.vocabulary, row.decode)
    points = rouge(summaries, [paper.reference for paper in data["test"]]).mean(0)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "pieces read": round(data["test"].source_lengths.mean()),
        "val nll": evaluate_loss(model, data["val"], 8, len(data.vocabulary))["nll"],
        **dict(zip(("R-1", "R-2", "R-Lsum"), points)),
    }


tables = TABLES.values() if study_steps else ()
tables = [of for of in tables if of.paper == studied.paper.name]
variants = (row.variant for of in tables for row in of.rows if row.variant)
trained_rows = {name: table_row(name) for name in dict.fromkeys(variants)}
pd.DataFrame.from_dict(trained_rows, orient="index").round(2) if trained_rows else None

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 4. The paper's claims, and what we found

Plain beam search is the paper's decoding. The [tables](../docs/papers/hierarchical_transformer.md#tables-2-and-3) have all rows and intervals beside the published ones.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(claims_table("hierarchical_transformer", up="../"))

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
[`papers.md`](../papers.md#hierarchical-transformer) says what the verdicts mean, and which claims were not tested (T-DMCA, WikiSum, people's judgements).

## Deviations

Every point at which this project differs from the paper or from its authors' code stands, with its reason, in [`docs/papers/hierarchical_transformer.md`](../docs/papers/hierarchical_transformer.md#deviations). The ones that this page's numbers need: the clusters of the shipped models are single papers, whose paragraphs are not ranked; layer normalisation, residuals and scale are the code's (`form`); summaries are scored a sentence a line, so R-Lsum is not the paper's R-L.

## What to take home

* **Global layers can carry what no paragraph says alone**: which snippets are about the title. On towns, models that have them learn this within 1,000 steps, and others do not.
* **A picture of attention shows one run.** Cut the connection, with several seeds, before you say what it is for.
* **A graph helps where it holds what attention has not learned.** With two hops, and a graph made from the answer, all answers are right; without it they are guesses (500 steps). On papers, where hardly anything passes between paragraphs, we found no effect.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 5. Exercises

Six functions of at most six lines each. Write one instead of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from companion.exercises.hierarchical_transformer import check, progress

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
**3.** How many attention scores does one head of a flat transformer compute for a cluster? And one head in a local layer (11), the pooling (13) and the attention between paragraphs (20) of a global layer together? For 24 paragraphs of 70 words the first number is 23.5 times the second. (That compares one flat layer with a local and a global one; per layer the saving is about twice as large.) (2 points, 10 minutes)
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

**4.** A graph $G$ takes the place of the only head's attention (24). Each global layer adds to the words of a paragraph what it has taken (22), (23). How many hops can two layers follow? Derive which paragraphs the words of each paragraph depend on, after a number of global layers. (3 points, 15 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def reached(G, layers):
    """G: a graph [m, m], 0 where nothing is taken; layers: a whole number.

    Returns truth values [m, m]: row i for the words of paragraph i.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, reached)

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

**5.** The last two paragraphs of a cluster change places. Do the states of the words change, each word compared with itself? Say so for the model as it is (9); without positions of paragraphs; without them and with a graph (24) that stays as it was; and without them and with a graph whose rows and columns change places as the paragraphs do. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def order_matters():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, order_matters)

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
**6.** A model with two global layers learns a small planted task: the title names one of three paragraphs, and the summary is the word after that name. It writes all summaries right. Now something is cut, **without training again**. Are more than eight of ten still right? The decoder sees the named paragraph alone; it sees the title alone; it sees all but the title; it sees everything, but in the global layers no paragraph takes anything from the title. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def still_right():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, still_right)

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

The global layers compare names and change the words of the paragraphs, so that the decoder can tell which one is named. It does not need the title, but the layers do. What is changed can be the named paragraph or the others: the towns model above adds its longer vector to the paragraphs that are to be ignored.

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

* `python -m lib.train hierarchical_transformer --dataset wikisum:wikisum_folder --preset code --bf16 --output runs/wikisum` trains at the authors' size on
  a GPU; the folder holds the ranked shards (`WIKI.train.0.pt` and so on) and their SentencePiece model.
* `papermill notebooks/hierarchical_transformer.ipynb out.ipynb -p dataset multi_news` runs this page on Multi-News.
* [`docs/papers/hierarchical_transformer.md`](../docs/papers/hierarchical_transformer.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
