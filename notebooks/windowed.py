# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Windowed attention: summarizing texts of any length

Leon Schüller: *Abstractive Summarization for Long Texts*, master's thesis, 2019, as its author's article at inovex and his
published code (`lschuell/abs-summ-long-texts`) describe it; the later paper of the same work is
[arXiv:2004.03324](https://arxiv.org/abs/2004.03324) (2020).

A pointer-generator attends to every word of the source at every step, and is usually trained on the first few hundred words of a text.
Here the encoder reads the whole text, but the decoder sees **one window** of it at a time. It writes a symbol, $\rightarrow$,
when it has written what there is to say about the window; then the window **slides**.

**What the article found.** Over 740 words, windows of 200 have 3.31 R-1 more than a standard model of the first 200 (WikiHow). In its two other comparisons with less text, windows have 0.31 and 1.15 less. It concludes that windows are "often slightly worse", but read texts of any length.

**What we found.** On synthetic facts, a model that learned from texts of two to six windows reads texts of three hundred without a mistake. On real papers the paper's *search* jumps over most windows; a search that decides first whether to slide stays longer in the first windows (part 4).
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, ...) or a folder of train, val and test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), CD_I, ..., WIKI_V
variant: str = "dynamic"  # what is trained: static, streamed, standard, ...
steps: int = 0  # training steps; 0: as many as the preset says
seed: int = 0  # of weights, batches and bootstrap
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from lib.data.batch import make_batch
from lib.data.corpora import anthology_year, load_corpus
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from companion.tasks.synthetic import FACT, planted_facts
from lib.data.vocabulary import BOS, EOS, SLIDE, SLIDE_SYMBOL, UNK, Vocabulary
from lib.data.word_vectors import similarities, target_sentences
from lib.evaluation.baselines import lexrank, oracle
from lib.layers.pointer import PointerOutput, mixture_distribution
from lib.models.windowed import Windowed, WindowedConfig, count_windows, window_of
from companion.claims.text import claims_table
from companion.pages.checks import Checks, gradients
from companion.pages.diagrams import show_model
from companion.pages.figures import attention_maps, lines, maximum_attention
from companion.pages.measured import of_papers, papers_table, task_table
from companion.pages.choice import choose, compare_means
from companion.pages.runs import loss_figure, run_facts, unseen_papers
from companion.pages.shown import (
    PageFigures,
    Passages,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.steps import decoding_frames, pointer_steps
from companion.pages.measured import summary_table
from lib.papers import open_run
from lib.papers.windowed.windows import (
    ArticleOptions,
    link,
    mark_transitions,
    vectors_for,
)
from lib.decoding.search import DecodeConfig, beam_search, search_split
from lib.system.files import project_root, read_numbers, trained_folder
from companion.tasks.windows import (
    LEFT_OUT, READINGS, STRIDE, TESTED, VOCABULARY, WINDOW, learn_facts,
)  # fmt: skip

# a name or folder that cannot be read ends the page here
choice = choose("windowed", dataset, preset, variant, steps, seed, run)
sample = load_corpus("pmc-sample")  # whose links were measured
documents = choice.documents
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## A trained model at work

The text below has three windows of 20 words. Its words are numbers: random, but for three **facts**, each of which is four words after the word FACT. The summary is the facts in order, with $\rightarrow$ between them.
The model has learned this while the page was executed. Go from step to step. The underlined words are the window, and a word is as dark as its attention. $P_g$ generates a word of the vocabulary, $P_c$ copies one of the window, and the switch mixes them into $P$.

<details><summary>Predict: does the window move before or after → is written?</summary>

After: step 5 writes → and still sees the first window. The window moves at step 6, whose input is →.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
fact_model = learn_facts("windows", seed)
example = planted_facts(1, seed=7, windows=3, vocab_size=VOCABULARY)[0]
names = {FACT: "FACT", SLIDE: "→", BOS: "[BOS]", EOS: "[EOS]"}
words = [names.get(i, str(i)) for i in range(VOCABULARY)]
source_words = [words[i] for i in example.source]


@torch.no_grad()
def fact_steps(model, document):
    """What a model of facts does before it writes each word that a beam of two finds."""
    batch, config = (
        make_batch([document], VOCABULARY),
        DecodeConfig(beam=2, min_length=0, max_length=18),
    )
    ((best, *_),) = beam_search(model, batch, config)
    result, _ = model.decode(torch.tensor([[BOS, *best.ids]]), model.encode(batch))
    steps = pointer_steps(model.pointer, result, [*best.ids, EOS], words)
    for step, window in zip(steps, result.windows[0].tolist()):
        yield replace(step, view=(window * STRIDE, window * STRIDE + WINDOW))


decoding_frames([source_words], list(fact_steps(fact_model, example)))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**When you have read the page** you can say how a reference is marked with symbols that nobody has written, what each part of the model does, and where sliding carries over to longer texts and where it does not.

**Before you start**: PyTorch, and what [Start here](start_here.ipynb) explains: attention, copying, beam search, ROUGE. Next: [Read-Again](read_again.ipynb).

| part | what you will see | minutes |
|---|---|---|
| 1 | a task with a known answer; why chunks are not enough there; what each part of the model does | 10 |
| 2 | every equation as a short function, with its numbers for the text above, compared with the library `lib` | 33 |
| 3 | what a longer text costs | 2 |
| 4 | a model that has learned from papers: where its window goes, what it writes, chunks, long texts | 12 |
| 5 | what the paper claims, what we found | 3 |
| 6 | six exercises | 40 |

With the parameters as they are, the page takes about a minute and needs no network: it opens the run that the project
ships (`trained/windowed`) and lets it summarize papers that it has never seen. With a `dataset` it summarizes that corpus's test documents; with a `preset` the page trains a model first; with `run` it shows a run of yours.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The model in one picture

An arrow carries the number of its equation and the shape of the result.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("windowed")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The last word or symbol written enters an LSTM that runs through the whole summary (6). If it is $\rightarrow$, the window slides (7). The decoder's state is compared with the
encoder's states (5) inside the window only (8), (9). What it attends to and the state give a distribution over the vocabulary, in which $\rightarrow$ is one of the words (10), (11). A switch mixes it with copying words of the window (12).
Words, windows and steps are counted from 1.

<details><summary>Symbols</summary>

| symbol | meaning | equation |
|---|---|---|
| $T_x,\ T_y$ | words of the text; words and symbols of the summary | (1), (13) |
| $ws,\ ss,\ n$ | words in a window; words by which it slides; number of windows | (1) |
| $F_w$ | the words of window $w$ | (1) |
| $S,\ D_i$ | a sentence of the summary; sentence $i$ of the text | (2), (3) |
| $\mathbf v_j,\ \mathbf v(S)$ | vector of word $j$; sum over a sentence | (2) |
| $h_j$ | encoder's state of word $j$ of the text | (5) |
| $y_t,\ \mathbf e(y)$ | word or symbol $t$ of the summary; embedding of $y$, its row of the table $\mathbf E$ | (6), (10) |
| $s_t$ | state of the decoder at step $t$ | (6) |
| $w_t$ | window at step $t$ | (7) |
| $e_{tj},\ \alpha_{tj},\ c_t$ | score and attention weight of word $j$ at step $t$; context | (8), (9) |
| $a_t,\ l_t,\ P_g$ | attentional state; scores of the vocabulary; what is generated | (10), (11) |
| $p_t,\ P_c,\ P$ | probability of generating (the article: $p_{gen}$); what is copied; what is written | (12) |
| $\kappa,\ \delta,\ B,\ T_{max}$ | constants of static windows | (14) |

</details>
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. A task with a known answer

The texts are like the one above: windows of 20 words that slide by 16, each with one fact where no other window sees it. Models train on texts of two to six
windows and then read texts of up to 300. *Standard* attends to everything and writes no symbol; it has three times the training. *Streamed*, an addition of ours, encodes each window when it is entered (part 2).
The table has the share of facts that are written, each in its place (`python -m companion.solve windows`).

<details><summary>Predict: what will models that learned from two to six windows do on 300?</summary>

With windows a step on a long text is like a step on a short one. Attention to everything has to choose among more words than it ever saw in training; and nothing tells it which fact is next.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
print(
    "share of the facts of 50 texts, of the longest 5; mean of three seeds, with the least and the largest"
)
assert [*TESTED.values()] == [50, 50, 50, 5], "the line above says so"
modes = "standard", "windows", "streamed"
lengths = {
    f"{n} windows, {WINDOW + (n - 1) * STRIDE:,} words": f"facts of {n}" for n in TESTED
}
task_table("windows", lengths, {mode: mode for mode in modes})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** At the lengths they were trained on, all models write nearly all facts. On texts twice as long the standard model writes 15% of them. With windows no seed makes a mistake in three hundred windows.
The streamed model loses more facts the longer the text is.

The next picture shows the model with windows on twelve windows: for each word that is written, the source word with the largest weight.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
@torch.no_grad()
def largest_weights(model, document, ids, vocab_size):
    """While `ids` are written: the largest weights, where they are, the windows."""
    batch = make_batch([document], vocab_size)
    result, _ = model.decode(torch.tensor([[BOS, *ids]]), model.encode(batch))
    weights, where = result.copy[0].max(-1)
    places, count = result.places[0][where], len(document.source)
    return {
        "places": places,
        "weights": weights,
        "windows": result.windows[0],
        "words": count,
    }


longer = planted_facts(1, seed=3, windows=12, vocab_size=VOCABULARY)[0]
config = DecodeConfig(beam=2, min_length=0, max_length=72)
((best, *_),) = beam_search(fact_model, make_batch([longer], VOCABULARY), config)
path = largest_weights(fact_model, longer, best.ids, VOCABULARY)
caption = (
    "Maximum attention while twice as many windows are read as any text in training had: a"
    " dot for each symbol written, at the source word with the largest weight; in grey the"
    " window. Each line of dots is one fact, read word by word."
)
figures.show(
    maximum_attention, caption, "windowed_facts", **path, window=WINDOW, stride=STRIDE
)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Why not summarize each chunk?

One could also cut the text, summarize each chunk alone and put the parts together. The article's answer: nobody knows where to cut, and the parts do not know of each other. The next table is about the first half of it. Here a fact may begin at any word, so that the end of a chunk of 20 words cuts one in five. Overlapping chunks are the windows, each read alone.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
print("share of the facts of 100 texts, with three seeds")
measures = {
    "4 windows": "facts of 4",
    "12 windows": "facts of 12",
    "written twice": "twice of 12",
}
task_table("windows", measures, {how: f"facts anywhere, {how}" for how in READINGS})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Cut into chunks a fifth of the facts is lost. Chunks that overlap lose none, windows 5% in texts of twelve. So where to cut matters. That an overlap is enough holds by construction here: a fact has five words, the overlap four, so that no overlapping chunk cuts one.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What each part does

A part is taken away from the trained model with windows, which is not trained again. *Window*: it attends to the whole text and still writes symbols. *Sliding*: it stays in the first window. *Copying*: the switch is fixed at 1, so that it only generates. *Generating*: the switch is fixed at 0, so that it only copies.

<details><summary>Predict: what can the model still write when it can only copy, and what when it can only generate?</summary>

Copying knows the words of the facts but not $\rightarrow$, which stands in no text. Generating knows $\rightarrow$ but cannot tell which random words make the fact.

</details>
"""

# %% slideshow={"slide_type": "skip"}
print("the text above:", " ".join(words[i] for i in example.target))
for part, take_away in LEFT_OUT.items():
    with take_away(fact_model):
        summary = [step.word for step in fact_steps(fact_model, example)]
    named = "all parts" if part == "nothing" else f"without {part}"
    print(f"{named}:", " ".join(summary))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The table has the same for 50 texts of six windows, and what the decoder attends to at its first step (`python -m companion.solve windows`).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
print("with three seeds: shares of the facts, of the texts, of the attention")
measures = {
    "facts": "facts of 6", "first fact": "first fact", "texts with →": "texts with symbols",
    "first step: attention on facts": "first look, facts", "largest weight": "first look, largest",
}  # fmt: skip
task_table(
    "windows",
    measures,
    {f"without {part}": f"windows without {part}" for part in LEFT_OUT},
).rename({"without nothing": "all parts"})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Without sliding the first fact is written again and again. Copying alone (without generating) writes the first fact as well, and never an arrow; generating alone (without copying) writes arrows and no fact. With attention to the whole text not even the first fact is written: at the first step nearly all attention is on the first words of facts, but it is spread over several of them. The model has learned what a fact looks like. Only the window says which one is next.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. The equations, one by one

The article is paraphrased, never quoted. It numbers no equations: **(1)** to **(14)** are this page's numbers. (1), (4), (7) and (14) come from the code; (14) belongs to the later paper. Functions named after an equation, like `eq09_context`, are written to be
read: one document, no batch, no padding. The page uses them on the model and the text above. The green line says how far they agree with the library `lib` in double precision; a model of random weights, in a padded batch of texts of different lengths, is compared as well. A difference stops the page.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) As many windows as cover the text

A text has $T_x$ words. A window has $ws$ words and begins $ss$ words after the one before. The words $F_w$ of window $w$ are those from $(w-1)\,ss+1$ to $(w-1)\,ss+ws$. With fewer windows than $n$ the last words could never be read:

$$n=1\ \text{ if } T_x\le ws,\qquad n=1+\Big\lceil\frac{T_x-ws}{ss}\Big\rceil\ \text{ otherwise}\tag{1}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq01_windows(words, ws, ss):
    """Count them: one, and another as long as words are left."""
    n, reached = 1, ws
    while reached < words:
        n, reached = n + 1, reached + ss
    return n


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def numbers(values):
    return torch.tensor([float(value) for value in values]).double()


sizes = [1, 8, 9, 14, 15, 40]
checks.close(
    numbers(eq01_windows(n, 8, 6) for n in sizes), numbers(count_windows(np.array(sizes), 8, 6)), "(1)",
    "number of windows",
)  # fmt: skip
T_x, ws, ss = len(example.source), WINDOW, STRIDE
n = eq01_windows(T_x, ws, ss)
checks.line(
    f"the text above: T_x = {T_x}, so n = 1 + ⌈({T_x} − {ws}) / {ss}⌉ = {n}; 1,160 words in the author's windows of "
    f"400 that slide by 380: {eq01_windows(1160, 400, 380)}"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (2), (3) A summary sentence is linked to the most similar source sentence

Nobody has marked in a reference where its writer turned to the next part of the text. These places are guessed. A sentence is represented by the sum
of the vectors $\mathbf v_j$ of its words, and each summary sentence $S$ is linked to the source sentence $D_i$ with which it has the largest cosine.

$$\mathbf v(S)=\sum_{j\in S}\mathbf v_j\tag{2}$$

$$Sim(S,D_i)=\frac{\mathbf v(S)\cdot\mathbf v(D_i)}{\|\mathbf v(S)\|\,\|\mathbf v(D_i)\|}\tag{3}$$

The author takes fastText vectors; his code averages vectors of length 1 and takes the dot product. In the small text below each word has a dimension of its own, so that the sums count words.
"""


# %% slideshow={"slide_type": "skip"}
def eq02_sum_of_vectors(ids, vectors):
    """A word outside the vocabulary has no vector."""
    known = [vectors[i] for i in ids if i < len(vectors)]
    return sum(known, np.zeros(vectors.shape[1]))


def eq03_similarity(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
small_options = ArticleOptions(
    source_tokens=40, summary_tokens=20, vocab_size=19, window=8, stride=6
)
small_vocabulary = Vocabulary([
    SLIDE_SYMBOL, "the", "cat", "ran", "sat", "saw", "a", "it", "was", "not", "and",
    "fast", ".", ",", "!",
])  # fmt: skip
small_texts = [
    Document(
        "a", "", [""],
        [["The cat saw a zebra.", "It ran!", "The cat was fast, and the zebra was not.", "It sat."]],
        ["The zebra saw the cat.", "The cat was fast."],
    ),
    Document("b", "", [""], [["A quokka sat."]], ["A quokka."]),
    Document(
        "c", "", [""],
        [["The cat sat and sat.", "The zebra ran.", "The quokka saw it.", "It was the cat, not it."]],
        ["The okapi sat.", "The quokka saw the cat.", "It was not it."],
    ),
]  # fmt: skip
unmarked = TextEncoder(small_options, small_vocabulary).encode(small_texts)
followed = unmarked[2]
vectors = np.eye(len(small_vocabulary))
Passages([
    ("text", " | ".join(small_texts[2].sections[0])), ("summary", " | ".join(small_texts[2].summary)),
])  # fmt: skip

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
summary_lengths = target_sentences(followed, lower=True)
summary_ids = followed.target[: summary_lengths.sum()]
summary_sentences = np.split(summary_ids, np.cumsum(summary_lengths)[:-1])
text_sentences = np.split(followed.source, np.cumsum(followed.sentence_lengths)[:-1])
pair = (summary_ids, summary_lengths), (followed.source, followed.sentence_lengths)
for values in (
    np.random.default_rng(0).normal(size=(len(small_vocabulary), 4)),
    vectors,
):
    sums = [
        [eq02_sum_of_vectors(ids, values) for ids in part]
        for part in (summary_sentences, text_sentences)
    ]
    similar = np.array([[eq03_similarity(a, b) for b in sums[1]] for a in sums[0]])
    checks.close(
        torch.tensor(similar),
        torch.tensor(similarities(*pair, values)),
        "(2), (3)",
        "cosines",
    )
a, b = sums[0][1], sums[1][2]
in_row = ", ".join(f"{value:.2f}" for value in similar[1])
checks.line(
    f"second summary sentence, third sentence of the text: {a @ b:.0f} / √({a @ a:.0f} · {b @ b:.0f}) = "
    f"{similar[1, 2]:.2f}; with all four: {in_row}"
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
How good are such links on papers? 122 sentences in the abstracts of 48 papers share a run of five words and marks or more with one sentence of the text alone. It is taken for their *source*; words in common are what counts see, so this test favours counts. The table has how often the source is linked (*first*), and how often it is among the three most similar (*first three*), in percent of the 122 with intervals over papers; *difference* is to the sums (`python -m companion.studies.windows`).

<details><summary>Predict: which links more of these sentences to their source, sums of trained vectors or word counts?</summary>

Counts do: sums of vectors lose which word it was.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
papers_table("links", ["first", "difference", "first three"]).rename(
    lambda name: name.replace(", embeddings of the run", "")
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
first_paper = of_papers("links")["first paper"]
sources = ", ".join(f"{j + 1} of row {i + 1}" for i, j in first_paper["copies"])
caption = (
    "(3) on a real paper, with the embeddings of the shipped run, and tf-idf in its place."
    f" Rows: sentences of the abstract; columns: of the text; triangles: sources, {sources}."
)
marked_columns = sorted({source for _, source in first_paper["copies"]})
panels = [
    {"title": title, "weights": first_paper[how], "marked": marked_columns}
    for how, title in (("sums", "sums"), ("tf-idf", "tf-idf"))
]
figures.show(
    attention_maps, caption, panels=panels, top=1.0, label="cosine", rows="sentence of the abstract", columns="sentence of the text",
)  # fmt: skip

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
shipped = open_run(trained_folder("windowed"))
(first_text,) = shipped.encode(unseen_papers(sample, 1))
of_text = np.split(first_text.source, np.cumsum(first_text.sentence_lengths)[:-1])
abstract_lengths = target_sentences(first_text, shipped.options.lower)
of_abstract = np.split(
    first_text.target[: abstract_lengths.sum()], np.cumsum(abstract_lengths)[:-1]
)
(row, source_row), *_ = first_paper["copies"]


def as_text(ids):
    return clip(
        " ".join(shipped.vocabulary.decode(ids.tolist(), first_text.unknown)), 40
    )


Passages([
    ("row 1", as_text(of_abstract[row])),
    ("its source", as_text(of_text[source_row])),
    ("linked by sums", as_text(of_text[int(np.argmax(first_paper["sums"][row]))])),
    ("linked by tf-idf", as_text(of_text[int(np.argmax(first_paper["tf-idf"][row]))])),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Sums of the run's embeddings link 55% of the sentences to their source, tf-idf 70%. Means of the same embeddings, as in the author's code, are worse; his fastText vectors were not tried. Without what all sums have in common (*centred*), or with more weight for rare words (*by rarity*), nothing is gained. Counts bring 66%. In the picture the sums give the sources of rows 1 and 3 the ranks 9 and 12 of 40; but what row 1 shares with its source is a common phrase.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (4) From links to symbols

The words $start$ to $end$ of a linked sentence belong to the first window that holds all of them, or else to the first that leaves out the fewest.
A summary never goes back: the window of a summary sentence is never earlier than that of the sentence before. Where the window moves on,
$\rightarrow$ is put in front of the sentence, once for each window. Without these symbols the decoder could not learn to write them.

$$w=\mathop{\mathrm{arg\,min}}_{w'}\big|\{start,\dots,end\}\setminus F_{w'}\big|\tag{4}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq04_window(start, end, words, ws, ss):
    """The window of the words start to end; words and windows count from 1."""
    left_out = []
    for w in range(1, eq01_windows(words, ws, ss) + 1):
        first = (w - 1) * ss + 1
        left_out.append(sum(not first <= j < first + ws for j in range(start, end + 1)))
    return 1 + left_out.index(min(left_out))


# %% slideshow={"slide_type": "skip"}
ends = np.cumsum(followed.sentence_lengths)
starts = ends - followed.sentence_lengths + 1
windows = [eq04_window(a, b, len(followed.source), 8, 6) for a, b in zip(starts, ends)]
marked, now = [], 1
for ids, row in zip(summary_sentences, similar):
    window = max(now, windows[row.argmax()])
    marked += [SLIDE] * (window - now) + ids.tolist()
    now = window

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
lib_windows = [
    window_of(a - 1, b, len(followed.source), 8, 6) + 1 for a, b in zip(starts, ends)
]
checks.close(numbers(windows), numbers(lib_windows), "(4)", "windows of the sentences")


def with_symbols(document, values):
    """A document of the small corpus, marked by the library."""
    lengths = target_sentences(document, lower=True)
    return mark_transitions(
        document, lengths, link(document, lengths, values, small_options)
    )


lib_marked = with_symbols(followed, vectors)
checks.close(
    numbers([*marked, EOS]), numbers(lib_marked.target), "(4)", "the marked summary"
)
summary = " ".join(small_vocabulary.decode(marked, followed.unknown)).replace(
    SLIDE_SYMBOL, "→"
)
checks.line(
    f"windows of 8 by 6; the third sentence is words {starts[2]} to {ends[2]}: window 2 (7 to 14) leaves out 1, "
    f"window 3 (13 to 20) leaves out 2. The sentences are in windows {', '.join(map(str, windows))} of 4, "
    f"and the marked summary is: {summary}"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (5) The encoder reads both ways

A word alone does not say whether it belongs to a fact: its neighbours do. One LSTM reads the text forward, another reads it backward; $h_j$ is the two states of word $j$, one after the other. The decoder starts from the
final hidden and cell states of both.

$$h_j=[\overrightarrow h_j;\overleftarrow h_j],\qquad s_0=[\overrightarrow h_{T_x};\overleftarrow h_1]\tag{5}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("windowed", {5})


# %% slideshow={"slide_type": "skip"}
def eq05_states(embedded, forward, backward):
    """Embeddings [T_x, E] -> states [T_x, d], first hidden and cell state [d]."""
    right, (h_right, c_right) = forward(embedded)
    left, (h_left, c_left) = backward(embedded.flip(0))
    states = torch.cat([right, left.flip(0)], 1)
    hidden = torch.cat([h_right[0], h_left[0]])
    cell = torch.cat([c_right[0], c_left[0]])
    return states, hidden, cell


def embedded_ids(ids, model):
    """Rows of the table; a word outside the vocabulary is [UNK]."""
    ids = torch.as_tensor(ids).long()
    return model.embedding(ids.where(ids < model.config.vocab_size, UNK))


# %% slideshow={"slide_type": "skip"}
model = deepcopy(fact_model).double().requires_grad_(False)
x = embedded_ids(example.source, model)
h, s_0, cell_0 = eq05_states(x, model.forward_encoder, model.backward_encoder)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
batch = make_batch(
    [example, *planted_facts(1, seed=8, windows=5, vocab_size=VOCABULARY)], VOCABULARY
)
state = model.encode(batch)
checks.close(h, state.words[0, :T_x], "(5)", "states of the source words")
checks.close(s_0, state.hidden[0], "(5)", "first state of the decoder")
checks.close(cell_0, state.cell[0], "(5)", "first cell of the decoder")
checks.line(
    f"{len(h)} states of 2 × {h.shape[1] // 2} numbers; s_0 begins as h_{T_x} does: {s_0[0]:.3f} and {h[-1, 0]:.3f}, "
    f"and ends as h_1 does: {s_0[-1]:.3f} and {h[0, -1]:.3f}"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (6), (7) One decoder for all windows; it moves when → enters

The decoder reads $y_{t-1}$, the last word or symbol of the summary, as its embedding $\mathbf e(y_{t-1})$. What it has written about earlier windows
stays in its state. As in Luong et al. (2015), attention comes after the new state and is not fed back.

$$s_t=\mathrm{LSTM}(s_{t-1},\mathbf e(y_{t-1})),\qquad y_0=\text{[BOS]}\tag{6}$$

The window slides at the step whose **input** is $\rightarrow$, so that the word after it is already written from the new window. At
the last window it no longer moves. Without sliding the model writes 17% of the facts of six windows (part 1).

$$w_t=\min\big(w_{t-1}+[y_{t-1}={\rightarrow}],\ n\big),\qquad w_0=1\tag{7}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("windowed", {6, 7})


# %% slideshow={"slide_type": "skip"}
def eq06_decoder_states(embedded, s_0, cell_0, lstm):
    """Embeddings [T_y, E] of [BOS] and the summary -> s_1 ... s_T [T_y, d]."""
    states, _ = lstm(embedded, (s_0[None], cell_0[None]))
    return states


def eq07_windows_of_steps(inputs, n):
    """Inputs of the decoder -> the window at each step, from 1."""
    windows, now = [], 1
    for y in inputs:
        now = min(now + (y == SLIDE), n)
        windows.append(now)
    return windows


inputs = [BOS, *example.target[:-1].tolist()]
y = embedded_ids(inputs, model)
s = eq06_decoder_states(y, s_0, cell_0, model.decoder)
w = eq07_windows_of_steps(inputs, n)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
T_y = len(example.target)
result, _ = model.decode(batch.target_input, state)
_, after = model.decode(torch.tensor([inputs] * 2), state)
checks.close(s[-1], after.hidden[0], "(6)", "last state of the decoder")
checks.close(
    numbers(w), result.windows[0, :T_y].double() + 1, "(7)", "window at each step"
)
entered = " ".join(words[i] for i in inputs)
checks.line(f"inputs: {entered}; windows: {' '.join(map(str, w))}")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (8), (9) Attention inside the window

Scores are dot products; the softmax runs over the $ws$ words of the current window alone.

$$e_{tj}=s_t^\top h_j\tag{8}$$

$$\alpha_{tj}=\frac{\exp e_{tj}}{\sum_l\exp e_{tl}},\qquad c_t=\sum_j\alpha_{tj}h_j,\qquad j,l\in F_{w_t}\tag{9}$$

A model that was trained with windows writes no fact without them (part 1): the attention of the first step is spread over several facts. The standard model, which never had windows, writes 96 to 100% of the facts at these lengths.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("windowed", {8, 9})


# %% slideshow={"slide_type": "skip"}
def eq08_scores(s_t, h):
    return torch.stack([s_t @ h_j for h_j in h])


def eq09_context(s_t, h, w_t, ws, ss):
    """State [d], source states [T_x, d] -> weights [T_x] (0 outside), context [d]."""
    begin = (w_t - 1) * ss  # so many words stand before the window
    alpha = torch.zeros(len(h)).double()
    alpha[begin : begin + ws] = eq08_scores(s_t, h[begin : begin + ws]).softmax(0)
    return alpha, sum(a * h_j for a, h_j in zip(alpha, h))


attended = [eq09_context(s[t], h, w[t], ws, ss) for t in range(len(s))]
alpha, c = (torch.stack(parts) for parts in zip(*attended))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.close(alpha, result.copy[0, :T_y, :T_x], "(8), (9)", "attention weights")
seen_at = [int(row.argmax()) for row in alpha]
largest = (
    f"step {t + 1}, word {seen_at[t] + 1} {alpha[t, seen_at[t]]:.2f}" for t in (0, 4, 5)
)
checks.line("largest weights: " + "; ".join(largest))

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (10), (11), (12) Generate or copy

The article prints one matrix between $\tanh[c_t;s_t]$ and the vocabulary. The code has three: $\mathbf W_a$ leads to the attentional state $a_t$, $\mathbf W_e$ to the width of the embeddings, and the
**embedding table** $\mathbf E$ is also the output layer. It has 15.0 of the model's 18.54 million parameters at the author's size, so a second one would nearly double them.

$$a_t=\mathbf W_a\tanh([c_t;s_t])+b,\qquad l_t=\mathbf E\,(\mathbf W_ea_t+b_e)+b_v\tag{10}$$

$$P_g=\mathrm{softmax}(l_t)\tag{11}$$

$$p_t=\sigma\big(\mathbf q^\top[a_t;s_{t-1};\mathbf e(y_{t-1})]+b_p\big),\qquad P=p_tP_g+(1-p_t)P_c\tag{12}$$

$P_c(u)=\sum_{j:x_j=u}\alpha_{tj}$ is what attention gives to the places of word $u$; $x_j$ is word $j$ of the text. Only words of the window can be copied. With $p_t$ fixed at 1 this model writes no fact, and at 0 no arrow (part 1).
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("windowed", {10, 11, 12})


# %% slideshow={"slide_type": "skip"}
def eq10_scores_of_words(c_t, s_t, W):
    """l_t, and a_t, which the switch needs."""
    a_t = W["a"] @ torch.tanh(torch.cat([c_t, s_t])) + W["b"]
    return W["E"] @ (W["e"] @ a_t + W["b_e"]) + W["b_v"], a_t


def eq11_generated(l_t):
    return torch.exp(l_t) / torch.exp(l_t).sum()


def eq12_distribution(P_g, p_t, alpha_t, source, size):
    """P over the vocabulary and the document's unknown words [size]."""
    P = torch.cat([p_t * P_g, torch.zeros(size - len(P_g))])
    for x_j, weight in zip(source, alpha_t):
        P[x_j] = P[x_j] + (1 - p_t) * weight
    return P


# %% slideshow={"slide_type": "skip"}
def next_word(c_t, s_t, s_before, y_before, alpha_t, source, size, W):
    """(10) to (12) of one step: p_t, P_g and P."""
    l_t, a_t = eq10_scores_of_words(c_t, s_t, W)
    p_t = torch.sigmoid(W["q"] @ torch.cat([a_t, s_before, y_before]) + W["b_p"])
    P_g = eq11_generated(l_t)
    return p_t, P_g, eq12_distribution(P_g, p_t, alpha_t, source, size)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def symbol_weights(model):
    """The symbols of (10) and (12) -> weights of the library's module."""
    pointer = model.pointer
    return {
        "a": pointer.combine.weight, "b": pointer.combine.bias,
        "e": pointer.bottleneck.weight, "b_e": pointer.bottleneck.bias,
        "E": model.embedding.weight, "b_v": pointer.vocabulary.bias,
        "q": pointer.switch.weight[0], "b_p": pointer.switch.bias[0],
    }  # fmt: skip


def distribution_by_lib(model, result, row, steps, size):
    """P [steps, size] of a document of a batch, by the library."""
    parts = (
        values[row, :steps, None]
        for values in (result.features, result.switch, result.copy)
    )
    by_step = PointerOutput(*parts, result.source[row].expand(steps, -1))
    extra = size - model.config.vocab_size
    return mixture_distribution(by_step, *model.output_layer(), extra)


W, text = symbol_weights(model), example.source.tolist()
steps_of_text = zip(c, s, [s_0, *s], y, alpha)
p, P_g, P = map(
    torch.stack, zip(*(next_word(*step, text, VOCABULARY, W) for step in steps_of_text))
)
checks.close(p, result.switch[0, :T_y].sigmoid(), "(10)-(12)", "switch")
checks.close(
    P,
    distribution_by_lib(model, result, 0, T_y, VOCABULARY),
    "(10)-(12)",
    "P of every word",
)
lines_of_steps = []
for t in (0, 4):
    u = int(example.target[t])
    P_c = sum(float(alpha[t, j]) for j in range(T_x) if text[j] == u)
    lines_of_steps.append(
        f"step {t + 1}, {words[u]}: {p[t]:.3f} · {P_g[t, u]:.3f} + {1 - p[t]:.3f} · {P_c:.3f} = {P[t, u]:.3f}"
    )
at_full_size = Windowed(WindowedConfig())
parameters, in_table = (
    sum(p.numel() for p in at_full_size.parameters()),
    at_full_size.embedding.weight.numel(),
)
checks.line(
    f"p P_g + (1 − p) P_c: {'; '.join(lines_of_steps)}. At the author's size: {parameters:,} parameters, "
    f"{in_table:,} of them in E"
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
$P_g$ gives *55*, one of 54 random words, almost nothing, and the switch copies. The arrow stands in no text, so $P_c$ gives it nothing, and the switch generates.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (13) The loss: the marked reference is to be likely

The symbols are words like all others here: that is all that teaches the model to slide. The loss of a document is the mean over its $T_y$ words and symbols, that of a batch the mean
over its documents. A word that is in neither the vocabulary nor the window cannot be written and counts as [UNK].

$$\mathcal L=-\frac1{T_y}\sum_{t=1}^{T_y}\log P(y_t)\tag{13}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq13_objective(document, model, W):
    """(1), (5) to (12) in order, for one document."""
    ws, ss, V = model.config.window, model.config.stride, model.config.vocab_size
    text, size = document.source.tolist(), V + len(document.unknown)
    encoders = model.forward_encoder, model.backward_encoder
    h, s_0, cell_0 = eq05_states(embedded_ids(text, model), *encoders)
    inputs = [BOS, *document.target[:-1].tolist()]
    y = embedded_ids(inputs, model)
    s = eq06_decoder_states(y, s_0, cell_0, model.decoder)
    w = eq07_windows_of_steps(inputs, eq01_windows(len(h), ws, ss))
    total = 0.0
    for t, u in enumerate(document.target.tolist()):
        alpha, c_t = eq09_context(s[t], h, w[t], ws, ss)
        before = s[t - 1] if t else s_0
        *_, P = next_word(c_t, s[t], before, y[t], alpha, text, size, W)
        begin = (w[t] - 1) * ss
        in_reach = u < V or u in text[begin : begin + ws]
        total = total - torch.log(P[u if in_reach else UNK])
    return total / len(document.target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.close(
    eq13_objective(example, model, W),
    model.loss(make_batch([example], VOCABULARY))["loss"],
    "(13)",
    "loss",
)
torch.manual_seed(1)
random_model = Windowed(
    WindowedConfig(len(small_vocabulary), embedding=5, hidden=3, window=8, stride=6)
).double()
for parameter in random_model.parameters():
    torch.nn.init.normal_(parameter, std=0.7)
random_vectors = np.random.default_rng(0).normal(size=(len(small_vocabulary), 4))
ragged = [with_symbols(document, random_vectors) for document in unmarked]
ragged_batch = make_batch(ragged, len(small_vocabulary))
random_weights = symbol_weights(random_model)
naive_loss = sum(
    eq13_objective(document, random_model, random_weights) for document in ragged
) / len(ragged)
lib_loss = random_model.loss(ragged_batch)["loss"]
checks.close(naive_loss, lib_loss, "(13)", "loss of a padded batch")
checks.gradients(
    gradients(random_model, naive_loss), gradients(random_model, lib_loss), "(13)"
)
costs = -torch.log(P[range(T_y), example.target.tolist()])
largest = int(costs.argmax())
checks.line(
    f"the summary above: {costs.mean():.4f} in the mean, {costs[largest]:.4f} at step {largest + 1}, "
    f"where {words[int(example.target[largest])]} is written with P = {P[largest, int(example.target[largest])]:.3f}"
)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Texts that never end: one window at a time

So far the encoder reads the whole text before the first word is written, so what is held grows with the text. *Streamed*, each
window is encoded only when it is entered. The forward LSTM goes on from the state that it had where the window begins. The backward LSTM
starts at the window's last word. So the forward states are those of the whole text, and the backward states are not. Trained like this, the model of part 1 leaves out facts of long texts. This variant is ours, not the paper's.
"""


# %% slideshow={"slide_type": "skip"}
def streamed_states(embedded, w, ws, ss, forward, backward):
    """The states [<= ws, d] of one window."""
    begin, end = (w - 1) * ss, min((w - 1) * ss + ws, len(embedded))
    right = forward(embedded[:end])[0][begin:]  # lib reads only the new words
    left = backward(embedded[begin:end].flip(0))[0].flip(0)
    return torch.cat([right, left], 1)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def same_weights(of, **changes):
    """A model with the weights of another one."""
    other = Windowed(replace(of.config, **changes)).double()
    other.load_state_dict(of.state_dict())
    return other


streamed = same_weights(model, encode="stream")
running = streamed.encode(make_batch([example], VOCABULARY))
whole_text, encoders = h, (model.forward_encoder, model.backward_encoder)
for window in range(1, n + 1):
    if window > 1:
        _, running = streamed.decode(torch.tensor([[SLIDE]]), running)
    naive_states = streamed_states(x, window, ws, ss, *encoders)
    held = running.held[0][0, : len(naive_states)]
    checks.close(naive_states, held, "streamed", f"states of window {window}")
    change = (
        naive_states - whole_text[(window - 1) * ss : (window - 1) * ss + ws]
    ).abs()
    if window == 2:
        half = change.shape[1] // 2
        middle = f"{change[:, :half].max():.0e} forward, {change[:, half:].max():.2f} backward"


def held_numbers(model, windows):
    """Numbers that a model holds between steps, without the ids of the text, and the words of the text."""
    documents = planted_facts(1, seed=5, windows=windows, vocab_size=VOCABULARY)
    state = model.encode(make_batch(documents, VOCABULARY))
    values = {**vars(state), **dict(enumerate(state.held or ()))}
    ids = {"source", "lengths", "last_window"}
    return sum(
        v.numel() for k, v in values.items() if k not in ids and torch.is_tensor(v)
    ), len(documents[0].source)


sizes = {
    name: [held_numbers(each, k) for k in (10, 1000)]
    for name, each in (("whole", model), ("streamed", streamed))
}
held_at = "; ".join(
    f"{name}: {' and '.join(f'{count:,} for {length:,} words' for count, length in pairs)}"
    for name, pairs in sizes.items()
)
checks.line(
    f"window 2 of 3, largest difference from the states of the whole text: {middle}. Numbers held between steps, {held_at}"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (14) Static windows slide by themselves

The later paper also has windows without a symbol. Then nothing has to be guessed in the references, but how much is written from a window no longer depends on what stands in it. Window $i$ gets a share of the summary's words beforehand, and the first the largest. $\kappa$ and $\delta$ are constants (the author's $k$ and $d$), $filled_i$ is the part of window $i$ that has words.
The longest text, of $T_{max}$ words, gets a summary of $B$ words, a shorter one in proportion.

$$share_i\propto e^{-\kappa(1+(i-1)\,\delta^{i-1})}\cdot filled_i,\qquad
end_i=\Big\lfloor\frac{T_x}{T_{max}}\,B\sum_{i'\le i}share_{i'}\Big\rfloor\tag{14}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq14_ends(words, ws, ss, kappa, delta, B, longest):
    """After how many words of the summary each window ends."""
    n = eq01_windows(words, ws, ss)
    shares = []
    for i in range(n):  # i - 1 of (14)
        filled = min(1.0, (words - i * ss) / ws)
        shares.append(np.exp(-kappa * (1 + i * delta**i)) * filled)
    parts = np.cumsum(shares) / np.sum(shares)
    return np.floor(parts * B * words / longest + 1e-9)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
static = same_weights(model, windowing="static", budget=30, longest=104)
ends = eq14_ends(T_x, ws, ss, kappa=1.2, delta=0.8, B=30, longest=104)
lib_ends = static.encode(batch).window_ends[0, :n].double()
checks.close(torch.from_numpy(ends), lib_ends, "(14)", "ends of the windows")
checks.line(
    f"T_x = {T_x}, T_max = 104, B = 30: a summary of {T_x} / 104 · 30 = {ends[-1]:.0f} words, "
    f"whose windows end after {', '.join(f'{end:.0f}' for end in ends)} of them"
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## One whole step, and checks that need no equation

In the order in which the decoder computes them:

```python
s_before = s
s = LSTM(e(y), s)                                  # (6); y: the word or symbol before
w = min(w + (y == SLIDE), n)                       # (7); n from (1)
begin = (w - 1) * ss
inside = range(begin + 1, min(begin + ws, T_x) + 1)
alpha = softmax([s @ h[j] for j in inside])        # (8), (9); h from (5)
c = sum(alpha[j] * h[j] for j in inside)           # (9)
a = W_a @ tanh([c; s]) + b                         # (10)
P_g = softmax(E @ (W_e @ a + b_e) + b_v)           # (10), (11)
p = sigmoid(q @ [a; s_before; e(y)] + b_p)         # (12)
P = p * P_g + (1 - p) * copies(alpha)              # (12); a search bars → in the last window
```

With a window as long as the text the model is the standard model. In the search the symbol has probability 0 in the last window; the loss does not bar it. Words outside the window get no attention. One call of the decoder with many words equals as many calls with one word each: training and generation take the same path.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
longest = ragged_batch.source.shape[1]
ordinary = same_weights(random_model, window=None, stride=None).loss(ragged_batch)[
    "loss"
]
for mode in ("whole", "stream"):
    wide = same_weights(random_model, window=longest, stride=longest, encode=mode)
    checks.close(
        ordinary,
        wide.loss(ragged_batch)["loss"],
        "(9)",
        f"one window, {mode}: the standard model",
    )
ragged_state = random_model.encode(ragged_batch)
slid_result, slid = random_model.decode(
    torch.full((len(ragged), 9), SLIDE), ragged_state
)
last_P = random_model.distribution(
    slid_result, slid, max(map(len, ragged_batch.unknown))
)
checks.close(
    torch.zeros(len(ragged)), last_P[:, SLIDE], "(7)", "no symbol after the last window"
)
random_result, _ = random_model.decode(ragged_batch.target_input, ragged_state)
outside = [
    random_result.copy[2, t, j]
    for t, window in enumerate(
        random_result.windows[2, : len(ragged[2].target)].tolist()
    )
    for j in range(len(ragged[2].source))
    if not window * 6 <= j < window * 6 + 8
]
checks.close(
    torch.zeros(len(outside)),
    torch.stack(outside),
    "(9)",
    "no attention outside the window",
)
static_random = same_weights(random_model, windowing="static", budget=12, longest=30)
for each in (random_model, same_weights(random_model, encode="stream"), static_random):
    one_by_one, running = [], each.encode(ragged_batch)
    for fed, target in zip(
        ragged_batch.target_input.split(1, 1), ragged_batch.target.split(1, 1)
    ):
        one_result, running = each.decode(fed, running)
        one_by_one.append(each.log_prob(one_result, target, running))
    at_once, _ = each.decode(ragged_batch.target_input, each.encode(ragged_batch))
    whole = each.log_prob(at_once, ragged_batch.target, ragged_state)
    checks.close(torch.cat(one_by_one, 1), whole, "(5)-(14)", "T calls equal one call")
checks.table()

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. What a longer text costs

The picture has one text at the author's sizes, with a summary of three words for each window of 400 ([Speed](../docs/speed.md)). Windows bound what a step looks at, so attention to everything is four times slower at 100,000 words. The paper's model saves time but no memory: its encoder holds the states of the whole text. Our streamed variant also bounds what is held: its memory stays at 0.5 GB for a million words.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
measured = project_root() / "figures" / "windowed_text_lengths.json"
rows = pd.DataFrame(read_numbers(measured, "times and memory", ["rows"])["rows"])
axis = {"xlabel": "words of the text", "xscale": "log"}
panels = [
    {**axis, "ylabel": label, "yscale": scale, "zero": scale == "linear", "series": {
        name: [of_model["source"].tolist(), of_model[column].tolist()]
        for name, of_model in rows.groupby("model", sort=False)
    }}
    for column, label, scale in (("peak_gb", "largest memory, GB", "linear"), ("seconds", "seconds", "log"))
]  # fmt: skip
caption = (
    "Memory and time of one summary as the text grows, at the author's sizes (18.5 million"
    " parameters). At the left the line of windows lies under that of the standard model."
)
figures.show(lines, caption, "windowed_cost", width=4.5, panels=panels)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 4. A model that has learned from papers

A run is a folder with its configuration, vocabulary, losses and weights. If the parameters ask for it, this page
trains one, as `python -m lib.train` does.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.box

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
summarizer, vocabulary = trained.model, trained.vocabulary
options, decode = trained.options, replace(trained.decode, block_ngrams=3)
ws, ss = summarizer.config.window, summarizer.config.stride
system = f"Windowed ({trained.config['variant']})"
run_facts(trained, choice.origin(trained))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
loss_figure(figures, "windowed_losses", trained, choice.is_shipped)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
Training and validation loss fall together. A demo run learns its hundred papers by heart, and its validation loss stops falling.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## A reference with its symbols, and a summary

The reference of one test document is marked (2) to (4) with vectors that are learned from the corpus's own training documents, which are few here; the shipped run had 20,000. The summary is written with beam search and trigram blocking: no three words in a row are written twice. At least 230 symbols are written, since the run does not stop by itself. Symbols are
shown here, and removed before scoring. `<dig>` stands for a number, as in the corpus that the run has learned from; [UNK] for a word that the vocabulary lacks.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
# papers of the ACL Anthology may be quoted from 2016 on
recent = [
    choice.corpus.name != "aclsum" or anthology_year(doc.id) >= 2016
    for doc in documents
]
quotable = int(np.flatnonzero(recent)[0])
quoted = documents[quotable]
prepared = choice.setup.prepare(choice.corpus, progress=False)
(marked_document,) = prepared.encoder.encode([quoted])
if prepared.options.marked:
    vectors = vectors_for(prepared, prepared.options)
    of_sentences = target_sentences(marked_document, prepared.options.lower)
    places = link(marked_document, of_sentences, vectors, prepared.options)
    marked_document = mark_transitions(marked_document, of_sentences, places)
encoded = trained.encode(documents)
summaries = [
    best.ids
    for best in search_split(summarizer, encoded, vocabulary, decode, batch_size=10)
]


def with_arrows(ids, unknown, words, most=80):
    """Words of ids, the symbol as an arrow, clipped."""
    return clip(" ".join(words.decode(ids, unknown)).replace(SLIDE_SYMBOL, "→"), most)


Passages([
    ("title", quoted.title),
    ("words", f"{len(encoded[quotable].source):,} of {sum(len(s.split()) for s in quoted.sentences):,} are read"),
    ("reference", with_arrows(marked_document.target.tolist(), marked_document.unknown, prepared.vocabulary)),
    ("written", with_arrows(summaries[quotable], encoded[quotable].unknown, vocabulary, 150)),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## From which windows does it write?

Where the window and the attention go while this summary is written, and the share of the words of all summaries that were written from each window:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: does the window move on by one, as in the task?</summary>

No. A sentence or two is written from the first window, then several symbols in a row, and the rest from the last window.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
path = largest_weights(
    summarizer, encoded[quotable], summaries[quotable], len(vocabulary)
)
box = {"window": ws or len(encoded[quotable].source), "stride": ss or 1}
caption = "Maximum attention while the summary is written."
figures.show(maximum_attention, caption, "windowed_attention", **path, **box)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
counts = np.zeros((len(summaries), 1 + max(ids.count(SLIDE) for ids in summaries)))
for count, ids in zip(counts, summaries):
    symbols = np.array(ids) == SLIDE
    np.add.at(count, np.cumsum(symbols)[~symbols], 1)
if counts.shape[1] > 2:
    passed = int((counts[:, 1:-1].sum(1) == 0).sum())
    print(f"{passed} of {len(summaries)} summaries: no word from the windows between")
shares = pd.Series(counts.sum(0) / counts.sum(), name="share of the words")
shares.rename(lambda i: f"window {i + 1}").to_frame().T.round(2)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** In four of five summaries nothing is written from the windows between the first and the last, and over all summaries
these windows have less than a tenth of the words. In the references of the same papers, marked as in training, 44% [35, 54] of the words belong there. Links that are drawn at random give 31% with the same rule, so this number says little about the references.

The cause is the search. The slide symbol is one symbol, and at the end of a sentence each of many words is less probable than it. So the most probable next symbol is the slide, and a slide cannot be taken back. A search that decides first whether to slide (by one half, our addition) has 2.71 R-1 more on these papers [+1.00, +4.52]; but so has the first window alone (+2.16 [+0.51, +3.90]) (`python -m companion.studies.slides`). The picture below shows it step by step.

What do the words rest on? Parts of the run are changed while it reads its own summaries of 50 papers (`python -m lib.intervene`). Without copying a word loses 1.90 nats [1.80, 2.01], with the last section first 1.11 [0.88, 1.35].
Attention ranks the sentences nearly as the gradient does (rank agreement 0.92 [0.90, 0.93]), and less closely as erasing them does (0.51 [0.47, 0.55]).
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
greedy = read_numbers(
    project_root() / "figures" / "windowed_slides_pmc.json", "slides", ["example"]
)["example"]
panels = [
    {
        "title": search, "xlabel": "step", "ylabel": "probability", "marks": [place + 1 for place in steps["slides"]],
        "styles": {"→": "C3-", "most probable word": "C0-"},
        "series": {name: [list(range(1, 111)), steps[key][:110]]
                   for name, key in (("→", "slide"), ("most probable word", "word"))},
    }
    for search, steps in greedy.items() if search != "document"
]  # fmt: skip
caption = (
    "P of the symbol and of the most probable word at the first 110 steps of a greedy summary"
    " of one paper; dotted lines: slides. In the paper's search the first symbols that beat every"
    " single word take the window to its end; decided by the median, it stays longer."
)
figures.show(lines, caption, "windowed_probability", panels=panels)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Scores

ROUGE F1 in percent with a seeded 95% bootstrap interval over documents. Lead and LexRank choose sentences of the full paper; the oracle sees the reference. All
summaries are cut to the same number of words. *Repeated* is the share of a summary's trigrams that it has written before, *copied* the share of its 5-grams that stand in the text.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
longest = options.summary_tokens
sentences = [
    vocabulary.sentences([i for i in ids if i != SLIDE], document.unknown)
    for ids, document in zip(summaries, encoded)
]
systems = {
    "Lead": [doc.sentences for doc in documents],
    "LexRank": [lexrank(doc.sentences, longest) for doc in documents],
    "Oracle": [oracle(doc.sentences, doc.summary) for doc in documents],
    system: sentences,
}
table, parts = summary_table(systems, documents, options, longest, seed)
table[["R-1", "R-2", "R-Lsum", "repeated", "copied"]]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
compare_means(parts, system, ["Lead", "LexRank"], seed)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**Why is the shipped run so much worse here than on its own corpus**, where it has 48.2 R-1 and LexRank 45.4 ([its card](../trained/windowed/README.md))? An article of that corpus has three sections, so its last window is its conclusion. The papers
here have more and shorter sections, of which the model reads 520 words each until it has 1,540: in 47 of 50 it never sees the conclusion.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Does it matter where the conclusion is?

In the next table 50 papers of `pmc-sample` are cut to introduction, second section and conclusion, in three orders (`python -m companion.studies.windows`).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: must the conclusion be read, or must it be last?</summary>

It helps where it is read, and most where it is last, as in the articles that the model has learned from.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
papers_table("orders", ["R-1", "difference", "compared with"])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** Where the conclusion comes first, so that it is surely read, R-1 rises from 37.9 to 41.3. Last, as in the articles that the model has learned from, it gives 43.5, in the middle 40.0. Reading it and its place cannot be separated here: in the middle it is read, too, and gains 2.10 [-0.03, +4.47]. That last is better than first is not certain (+2.14 [-0.29, +4.47]). LexRank still scores higher.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Windows or chunks?

The words of the same 50 papers are cut into as many chunks as they have windows, and each chunk is summarized alone by the shipped run in an equal share of the words (`python -m companion.studies.windows`). *Difference* is to windows, with its interval; *repeated* is the share of the trigrams that the summary has written before.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: the windows were learned, chunks were not. Which summaries share more words with the abstracts?</summary>

Those of chunks, cut anywhere or between sentences.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
chunks = papers_table("chunks", ["R-1", "difference", "repeated"])
chunks.assign(repeated=chunks["repeated"].map("{:.1%}".format))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** Hardly anything is said twice, though no chunk knows of another (2.5% of the trigrams at most). The first and the last chunk, in half the words each, are better too (+2.96). The article does not claim a better score for windows but a more coherent text, and R-1 does not measure that. The windows here are those of the paper's search. Against windows that slide by that rule, chunks have +1.19 [-0.12, +2.49].
""")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## A text far longer than any in training

Here the model reads the longest of the test documents whole; in training it saw only the first words of each section. For every window it may write as many words as in training. (The article reads a text of 18,136 words, after training on 1,160 at most; it shows what was written and no score.)
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
longest_document = max(documents, key=lambda doc: sum(len(s) for s in doc.sentences))
encoder = replace(
    trained.encoder, options=replace(options, source_tokens=None, section_words=None)
)
(long_text,) = encoder.encode([longest_document])
lengths = [len(long_text.source), options.source_tokens]
in_all, in_training = (
    count_windows(np.array(lengths), ws, ss).tolist() if ws else (1, 1)
)
most = max(decode.max_length, options.summary_tokens // in_training * in_all)
long_batch = make_batch([long_text], len(vocabulary))
((best, *_),) = beam_search(summarizer, long_batch, replace(decode, max_length=most))
path = largest_weights(summarizer, long_text, best.ids, len(vocabulary))
last = int(max(path["windows"])) + 1
at_last = np.mean([window == last - 1 for window in path["windows"]])
Passages([
    ("read", f"{lengths[0]:,} words; training saw {lengths[1]:,} at most"),
    ("written", f"{len(best.ids) - best.ids.count(SLIDE)} words, in windows 1 to {last} of {in_all}"),
    ("from the last of them", f"{at_last:.0%} of the symbols"),
    ("begins", with_arrows(best.ids, long_text.unknown, vocabulary)),
])  # fmt: skip

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
box = {"window": ws or lengths[0], "stride": ss or 1}
caption = (
    f"Maximum attention on {lengths[0]:,} words, more than any text in training had."
)
figures.show(maximum_attention, caption, "windowed_long", **path, **box)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** The window slides further than any text in training allowed, but the paper's search does not move it window by window. In 50 papers read whole (`python -m companion.studies.windows`), 87% of the 213 slides are by two or three windows at once; the first is by 2.74 [2.58, 2.88] in the mean, the fifth by 2.13 [1.87, 2.39].
Words come from 41% of the windows, and 26 papers are read to their last window.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 5. What the paper claims, what we found
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(claims_table("windowed", up="../"))

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
[`docs/papers/windowed.md`](../docs/papers/windowed.md) has the published table beside ours, all deviations from the sources with their reasons, and where each equation is in `lib`. In the released code the window never slides in training: it looks for the symbol among the words of the text, where it does not occur. The article does not say whether the published rows were trained like that.

**What to take home**

* Where each step needs only one window, a model that learned to slide reads texts of any length.
* On papers the paper's search jumps to the last window that is read. It slides wherever the symbol beats every single word, even if the words together are more probable.
* Ask what the search does to a symbol that competes with single words, before you blame the model.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 6. Exercises

Six functions of at most six lines each. Write one instead of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from lib.data.vocabulary import SLIDE
from companion.exercises.windowed import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** A summary was marked with the symbol `SLIDE` as (4) says. For each of its words, symbols left out, return the number of the window that it was written from. Windows count from 1. (2 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def windows_of_words(marked):
    """marked: a list of ids. Returns a list: [10, SLIDE, 11] gives [1, 2]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, windows_of_words)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

A symbol may stand before the first word, and several may stand in a row.

</details>
<details><summary>Solution</summary>

```python
def windows_of_words(marked):
    windows, now = [], 1
    for word in marked:
        now += word == SLIDE
        windows += [now] * (word != SLIDE)
    return windows
```

Each symbol counts, also those between which no word is written.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Find the bugs.* This is somebody's attention (8), (9) of one step over **all** source words, with 0 outside the window `w`, which counts from 1:

```python
def attention_in_window(s, h, w, ws, ss):
    alpha = (h @ s).softmax(0)
    alpha[: (w - 1) * ss] = 0
    alpha[w * ws :] = 0
    return alpha
```

What leaks? Write it right. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def attention_in_window(s, h, w, ws, ss):
    """Weights of one step: state s [d], states of the text h [T_x, d], window w from 1.

    The window has ws words and slides by ss. Returns [T_x].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, attention_in_window)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

There are two faults. Print the sum of the weights, and where the window ends when `ss` is not `ws`.

</details>
<details><summary>Solution</summary>

```python
def attention_in_window(s, h, w, ws, ss):
    scores = h @ s
    begin = (w - 1) * ss
    scores[:begin] = -torch.inf
    scores[begin + ws :] = -torch.inf
    return scores.softmax(0)
```

The softmax ran over the whole text, so that words outside of the window took a share of the weights; and the window `w` ends `ws` words after its begin, `(w - 1) * ss`.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** `ids` are the words and symbols that have entered the decoder so far (7). How many words of the text, counted from its beginning, have been in a window by now? The text has `words` words. (2 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def words_in_reach(ids, words, ws, ss):
    """A list of ids and three whole numbers in, one out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, words_in_reach)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Windows do not go beyond the last one, which may hold fewer than `ws` words.

</details>
<details><summary>Solution</summary>

```python
def words_in_reach(ids, words, ws, ss):
    return min(words, ids.count(SLIDE) * ss + ws)
```

What stands after them cannot be copied, whatever the model has learned. The check looks where the library's attention is not 0.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**4.** A word $u$ can only be copied. Its probability is the sum over its places in the text, $P_c(u)=\sum_{j:x_j=u}\alpha_{tj}$ (12). Derive $\partial\log P_c(u)/\partial e_{tj}$ for all words of the window (9). (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_scores(alpha, here):
    """alpha: weights [n]; here: 1 at the places of u, else 0 [n]. Returns [n]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, push_on_the_scores)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\partial\alpha_i/\partial e_j=\alpha_i(\mathbb 1[i=j]-\alpha_j)$.

</details>
<details><summary>Solution</summary>

```python
def push_on_the_scores(alpha, here):
    return alpha * here / (alpha @ here) - alpha
```

Each place of $u$ gets its share of $P_c(u)$, and every place loses its weight.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Change the model, and predict

**5.** With `encode="stream"` each window is encoded when it is entered. A text has three windows. Compare the states (5) of window 2, the one in the middle, with those of the same words when the text is encoded whole: are the forward halves equal, and are the backward halves? And in the **last** window? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def same_when_streamed():
    """Four truth values: forward and backward of window 2, then of the last."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, same_when_streamed)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Where does each LSTM begin, and from which state?

</details>
<details><summary>Solution</summary>

```python
def same_when_streamed():
    return [True, False, True, True]
```

The forward LSTM goes on where it was. The backward one starts at the window's end, which is the text's end for the last window alone.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** Take the task of part 1, smaller: windows have 10 words and slide by 8, a fact is two words, and a text has three windows, which are 26 words. A model with a window and the standard model, which attends to everything, train for 50 steps. Both are given the summary with its symbols. Which one has the smaller loss (13)? Now change the window: it has 3 words and slides by 3, over the same texts, while the summaries keep their two symbols. Which words can the model with a window ever attend to, and which model has the smaller loss now? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss_of_facts():
    """Two names, "window" or "standard": for windows of 10, then of 3."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, smaller_loss_of_facts)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

How far into the text do three windows of 3 words reach? See exercise 3.

</details>
<details><summary>Solution</summary>

```python
def smaller_loss_of_facts():
    return ["window", "standard"]
```

A model with a window has fewer places to choose from, if the right one is among them. Three windows of 3 words are the first nine of the text, and two of the facts stand after them.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**To go on with, without a check.** Run the page with `variant="streamed"` and compare the validation losses. Which direction of the encoder does the model miss, and what in the synthetic task shows it?
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* **[Watch it write](../docs/live.md)**: the shipped model in your browser, without Python. Step through a summary of your own text, see the window slide, bar the symbol, and turn the sections round.
* `python -m lib.train windowed --dataset cnn_dailymail --preset CD_II --output runs/cd2` trains the article's windowed model on a
  GPU. Then run this page with `run` set to `runs/cd2`.
* [`docs/papers/windowed.md`](../docs/papers/windowed.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
