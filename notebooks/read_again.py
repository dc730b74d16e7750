# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Read-Again: reading twice, and copying words one does not know

Wenyuan Zeng, Wenjie Luo, Sanja Fidler, Raquel Urtasun: *Efficient Summarization with Read-Again and Copy Mechanism*, 2016,
[arXiv:1611.03382](https://arxiv.org/abs/1611.03382).

When a recurrent encoder reads a word, it knows only what came before that word. People read a text, and then read it again, knowing
what it is about. **Read-Again** does the same: a first read makes a vector of the text, and that vector steers the second read. The
paper's other idea concerns the decoder: a **small vocabulary** is enough, and fast, under two conditions. First, every other word can
be **copied** from the text. Second, unknown words do not all enter the decoder as one symbol: each has an embedding made from
**its context**.

**When you have read it** you can say what a second read can do that a bidirectional encoder cannot, why it brings so little here, how a model writes a word that is in no vocabulary, and which part of a headline a trained model copies.

**Before you start**: PyTorch, and what [Start here](start_here.ipynb) explains: sequence to sequence with attention, copying, beam search, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | headlines of a model that has learned from 13,898 dispatches (short reports) of a news agency: which words it copies, its scores | 12 |
| 2 | what a second read adds: which words a state depends on, and a task that asks for it | 8 |
| 3 | a task that can only be learned by copying | 3 |
| 4 | every equation as a short function, checked against the library `lib`; then all functions together as the loss, for every encoder | 40 |
| 5 | the paper's studies on the dispatches: encoders (its Table 1), vocabulary sizes (Table 3), embeddings from context, decoding time (Table 4) | 15 |
| 6 | what deviates | 5 |
| 7 | ten exercises | 80 |

Before this page: [Windowed attention](windowed.ipynb); next: [Mem2Mem](mem2mem.ipynb).

With the parameters as they are, the page takes some 20 seconds on two CPU cores and needs no network: it opens the shipped model
(`trained/read_again`). With any other `dataset`, `preset`, `variant`, `steps` or `seed` the page trains a model first. With `preset="demo"` this takes half a
minute; the model then learns from docstrings of seven Python packages. The numbers of part 5 are saved; the page does not make them.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Conventions

The paper is paraphrased, never quoted; **(5)** is its equation 5. The paper prints no equation for the copy distribution; the numbers
(16) to (18) are this page's. Functions named after an equation, like `eq05_importance`, are written to be read: one document, no batch, no
padding. They take their weights from the library's modules. `checks` compares their results with what the library computes for a padded
batch in double precision, and stops the page when the two differ. A table at the end of part 4 lists everything that was compared. The weights of GRU and LSTM cells are laid out as PyTorch's on both sides.

| symbol | shape | what |
|---|---|---|
| $n,\ T$ | | words of the text, of the headline |
| $\mathbf x_i$ | $e$ | embedding of a source word, from the encoder's own table |
| $h^1_i,\ h^2_i$ | $d$ | state of word $i$ after the first, the second read |
| $\alpha_i$ | $d$ | importance of word $i$, for each dimension |
| $Y,\ \mathbf Y$ | | the decoder's vocabulary; its table of embeddings |
| $\mathbf y_t,\ s_t,\ c_t$ | $e,\ d,\ d$ | embedding of headline word $t$; state of the decoder; context |
| $\beta_{it}$ | scalar | attention to word $i$ at step $t$ |
| $\mathbf p_i$ | $e$ | embedding of source word $i$ from its context |
| $g_w,\ k_i$ | scalar | score of generating $w\in Y$; of copying word $i$ |
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # docstrings, gigaword, ... or a folder of train, val and test files
preset: str = ""  # empty: shipped model; demo where others are given; paper: for a GPU
variant: str = "read-again lstm + copy"  # a row of Table 1, with or without + copy
steps: int = 0  # training steps; 0: as many as the preset says
seed: int = 0  # of weights, batches and bootstrap
output: str = ""  # folder of the trained run; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
from lib.pages.parameters import check_parameters

check_parameters(globals())

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lib.pages.checks import Checks, gradients
from lib.data.batch import EncodedDocument, make_batch
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.papers.read_again.headlines import HeadlineOptions
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import BOS, EOS, UNK, Vocabulary
from lib.pages.diagrams import show_model
from lib.pages.figures import lines, shaded_words, word_maps
from lib.runs.search import DecodeConfig, beam_search, greedy_search, summarize
from lib.layers.gru import GatedGRU, gru_scan
from lib.results.kept import kept_table
from lib.evaluation.hidden_words import nearest
from lib.evaluation.word_dependence import interaction, reach
from lib.models.read_again import ENCODERS, ReadAgain, ReadAgainConfig
from lib.pages.runs import loss_figure, run_facts, run_for_page, validation_losses
from lib.pages.shown import (
    PageFigures, Passages, clip, figures_folder, show_source, show_tables, wrapped,
)  # fmt: skip
from lib.pages.summaries import summary_table
from lib.papers import resolve
from lib.results.text import (
    pairs_frame,
    published_table,
    setting,
    table_frame,
    without_published,
)
from lib.system.files import project_root, work_folder, write_whole
from lib.tasks.task import by_row, learn

kept = (dataset, preset, variant, steps, seed) == (
    "",
    "",
    "read-again lstm + copy",
    0,
    0,
)
dataset, preset = dataset or "docstrings", preset or "demo"
chosen = resolve("read_again", preset, variant, steps=steps or None, seed=seed)
corpus = load_corpus(
    dataset, errors="skip"
)  # a name or folder that cannot be read ends the page here
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()


def saved(name):
    """The numbers of a file in `figures`."""
    return json.loads((project_root() / "figures" / f"{name}.json").read_text("utf-8"))


# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The model in one picture

Colours mean the same on every page. An arrow carries the number of its equation and the shape of the result. The picture returns at every equation, with the part
in question highlighted.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. Headlines

The shipped model has learned from Reuters-21578: the first paragraphs and the headlines of a news agency's dispatches of 1987, split by time, so that the test dispatches are the latest. These texts are free for
research but may not be printed. The six dispatches below are therefore made up for this page in the same style, with invented companies.
"""

# %% slideshow={"slide_type": "skip"}
dispatches = """
NORBALT MINING TO BUY REST OF TESSERA COPPER
Norbalt Mining Corp said it agreed to acquire the shares of Tessera Copper Co that it
does not already own for about 42 mln dlrs in cash. Norbalt, which holds 18 pct of
Tessera, said it will pay 11 dlrs a share. The boards of both companies have approved
the agreement. Tessera operates two copper mines in Nevada.

CENTRAL BANK OF VELMORA CUTS DISCOUNT RATE
The central bank of Velmora cut its discount rate to 6.5 pct from seven pct, effective
tomorrow, the bank said in a statement. It was the second cut this year. Bankers said
the move had been expected after a similar step in West Germany last week and was meant
to slow the rise of the currency against the dollar.

KESTREL PETROLEUM RAISES CRUDE OIL PRICES
Kestrel Petroleum Inc said it raised the price it pays for crude oil by 50 cts a barrel,
effective today. The increase brings its price for West Texas Intermediate, the
benchmark grade, to 17.50 dlrs a barrel. The company last changed its prices on
February 12."""

# %% slideshow={"slide_type": "skip"}
dispatches += """

RAIN DELAYS IVORY COAST COCOA HARVEST
Heavy rain in the main growing regions of the Ivory Coast has delayed the cocoa harvest
by at least two weeks, traders said. Arrivals at the port of Abidjan reached 12,000
tonnes last week, compared with 19,000 tonnes in the same week a year ago. The traders
said that the quality of the beans may suffer if the rain goes on.

OSTERVIK AIRWAYS PILOTS VOTE TO STRIKE
Pilots of Ostervik Airways voted to strike from Monday if talks on a new contract fail,
a spokesman for their union said. The airline has asked its 1,400 pilots to accept a
wage cut of eight pct. It reported a loss of 31 mln dlrs for the first quarter. A
spokeswoman for Ostervik said that the company hoped to reach an agreement before the
deadline.

EC MINISTERS FAIL TO AGREE ON GRAIN PRICES
Agriculture ministers of the European Community failed to agree on new prices for grain
after three days of talks, diplomats said. The ministers will meet again on May 18. The
dispute is over a proposal by the EC Commission to cut the price of wheat by two pct,
which West Germany and Ireland oppose."""

# %% slideshow={"slide_type": "skip"}
run, origin = run_for_page(chosen, corpus, kept, output, progress=preset != "demo")
summarizer, vocabulary = run.model, run.vocabulary
options, decode = run.options, run.decode
if kept:
    heads = [part.partition("\n") for part in dispatches.strip().split("\n\n")]
    made_up = [
        {"summary": head, "document": text.replace("\n", " ")}
        for head, _, text in heads
    ]
    documents = run.documents(made_up)
else:
    documents = list(corpus.split("test", chosen.documents))
test = run.encode(documents)
references = [document.summary for document in documents]
run_facts(run, origin)

# %% slideshow={"slide_type": "skip"}
if kept:  # for others to read, as the figure of importance below
    lines_of_json = "".join(json.dumps(record) + "\n" for record in made_up)
    write_whole(work_folder() / "dispatches" / "test.jsonl", lines_of_json)

# %% slideshow={"slide_type": "skip"}
validation_losses(run)

# %% slideshow={"slide_type": "subslide"}
loss_figure(figures, "read_again_losses", run, kept)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Is this curve normal?** Yes. The corpus is small for headlines, so that the validation loss stops falling while the training loss continues to fall. (The points are single batches; their mean is 2.69
in the last epoch but one, and 2.52 in the last.) The weights with the least validation loss are the ones that are used.

## What is copied

As in the paper's Table 5, copied words are marked: **[word]** where the word is outside $Y$ and can only have been copied, and
`(word)` where copying had the larger share of its probability. Digits are `#`, as in Rush et al.'s preparation.
"""


# %% slideshow={"slide_type": "skip"}
@torch.no_grad()
def marked_words(model, document, ids, vocabulary):
    """The words of a headline, copied ones marked."""
    batch = make_batch([document], len(vocabulary))
    state = model.encode(batch)
    output, _ = model.decode(torch.tensor([[BOS, *ids]]), state)
    copies = hasattr(output, "copy")  # ABS has nothing to copy with
    generated = model.generate(output.features)[0] if copies else None
    words = []
    texts = vocabulary.decode(ids, document.unknown)
    for t, (word, text) in enumerate(zip(ids, texts)):
        if word >= len(vocabulary):
            words.append(f"[{text}]")
            continue
        places = output.source[0] == word
        copied = copies and output.copy[0, t][places].logsumexp(0) > generated[t, word]
        words.append(f"({text})" if copied else text)
    return " ".join(words)


# %% slideshow={"slide_type": "subslide"}
long_enough = [i for i in range(len(test)) if len(test[i].source) > 25]
rows = []
for i in range(len(test)) if kept else long_enough[:400:50]:
    one = make_batch([test[i]], len(vocabulary))
    ((best, *_),) = beam_search(summarizer, one, decode)
    rows += [("text", clip(" ".join(documents[i].sentences), 70))]
    rows += [("reference", " ".join(references[i]))]
    rows += [("Read-Again", marked_words(summarizer, test[i], best.ids, vocabulary))]
Passages(rows)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The model has learned the style of headlines: they say who does what, without articles, with the verb in the infinitive or in the present. Nearly every
word that carries meaning is copied, even names that are in no vocabulary: Norbalt, Kestrel and Ostervik were invented for this page. The mistakes can be seen as well. Velmora is lost and
the United States, which so many dispatches are about, take its place. Words are said twice. And the headline says that the ministers are "to agree on grain prices", where the dispatch says that they failed to.

Such names are the reason for (15). In a first run, the encoder knew every word that stands in the corpus twice or more. A word that stands in both a text and its headline was then never
unknown in training. So the model learned nothing about unknown words, and wrote "u . s ." in their place. With a limit of five occurrences (Rush et al.'s), rare names are
unknown in training too, and the model copies three of the five names that were invented here.

## Scores

The table shows ROUGE F1 in percent, with a seeded 95% bootstrap interval over test pairs. *Lead (8 words)* is the first eight words of the text;
the paper's headlines have eight words on average. For the shipped model this is a saved table, made by `python -m lib.trained score read_again` on all 1,106 test pairs of Reuters.
"""


# %% slideshow={"slide_type": "skip"}
def plain_setting(numbers):
    return setting(numbers).replace("`", "")


if kept:
    print(wrapped(plain_setting(kept_table("trained_read_again"))))
    scores = table_frame(kept_table("trained_read_again"))
else:
    headlines = summarize(summarizer, test, vocabulary, decode, batch_size=64)
    first = [vocabulary.decode(d.source[:8].tolist(), d.unknown) for d in test]
    systems = {
        "Lead (8 words)": [[" ".join(words)] for words in first],
        variant: headlines,
    }
    scores, means = summary_table(systems, documents, options, None, seed)
    lead, ours = (means[name]["R-1"] for name in systems)
    print(f"{preset} run, {len(test)} test pairs of {Path(dataset).name}")
    print(f"R-1 is {ours - lead:+.1f} points from Lead")
scores

# %% slideshow={"slide_type": "skip"}
pairs_frame(kept_table("trained_read_again")) if kept else None

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The model is more than thirteen points of R-1 and more than seven of R-2 above the first eight words: much more than the intervals. Trigram blocking (no three words in a row are
written twice) is worth at most one point.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. What a second read adds

After one read, the state of a word knows the words before it. A **bidirectional** encoder lays a second state beside it, which knows the words behind it. So there, too, each state depends on all words: what is left for
a second read? Three encoders with random weights read nine words. The maps show by how much the state of word $i$ moves when the embedding of word $j$ does.
"""

# %% slideshow={"slide_type": "skip"}
encoders = {
    "once": "gru", "bidirectional": "bidirectional gru", "read again": "read-again gru",
}  # fmt: skip
nine_words = EncodedDocument.of("nine words", range(4, 13), [9], [EOS])
number, maps, together = list(range(1, 10)), [], {}
for name, encoder in encoders.items():
    torch.manual_seed(0)
    sizes = {"embedding": 4, "hidden": 6, "dropout": 0.0, "importance": "sigmoid"}
    reader = ReadAgain(ReadAgainConfig(13, 13, encoder=encoder, **sizes)).double()
    for parameter in reader.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    values = reach(reader, nine_words)  # |dh_i / dx_j|
    maps.append({"title": name, "values": values, "rows": number, "columns": number})
    changed = {
        "words that state 5 depends on": int((values[4] > 0).sum()),
        "words 3 and 8 together": f"{interaction(reader, nine_words, 4, 2, 7):.3g}",
    }
    together[name] = changed

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
caption = (
    "How much the state of each word (rows) depends on the embedding of each word (columns):"
    " sizes of derivatives, encoders with random weights."
)
top = max(panel["values"].max().item() for panel in maps)
axes = {"xlabel": "word j", "ylabel": "state i"}
maps = [panel | axes for panel in maps]
figures.show(word_maps, caption, "read_again_reach", panels=maps, top=top, label="size")

# %% slideshow={"slide_type": "skip"}
pd.DataFrame.from_dict(together, orient="index")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**What to see.** Above the diagonal the map of reading once is empty; the other two are full. The last column tells these two apart. It asks about state 5 and words 3 and 8, one before and one behind it: does what the one word does to
the state depend on which word the other is? The number is the largest mixed second derivative. In a bidirectional encoder it is **exactly 0**: its halves stand side by side and never meet, and what both words say together has to be worked
out by the decoder. In a second read they meet inside the state. This is the paper's argument for reading twice.

## A task made for a second read

A text has one word of each of four kinds, in any order, between two numbers. Their sum, modulo four, names the kind that is asked for, and the headline is the text's word of this kind:
of `2 b1 d3 a0 c2 3` it is `b1`, because $2+3=5$ is 1 modulo 4 (kind a is 0). Whoever reads forwards knows the last number when the words are over, whoever reads backwards knows the first one then: until that moment any word may be the one.
The decoder begins with the encoder's **last state** (of a bidirectional encoder, where both halves end) and attends to nothing, or it attends to **all states** as in (13). `python -m lib.solve read_twice` trains the rows: width 32, 1,000 batches of 128 texts (in half of them
the first number is 0), a minute each on a free core. Who knows the words and not the kind, or the kind and not the word, is right in 25 of 100.
"""

# %% slideshow={"slide_type": "subslide"}
solved = by_row(saved("task_read_twice")["results"])


def of_seeds(measure):
    return {
        row: " / ".join(f"{100 * x:.0f}" for x in found[measure])
        for row, found in solved.items()
    }


columns = {"right word, of 100, by seed": "right", "right kind": "right kind"}
pd.DataFrame({name: of_seeds(measure) for name, measure in columns.items()})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** All rows know which kind is asked for. With the last state alone it is the word that gets lost: reading once is right in 67, 65, 56 of 100, a bidirectional encoder in 85, 81, 80, reading again in 74, 90, 84 (by seed). So the
second read is above one read, but not above a bidirectional encoder: 1,000 batches do not show that it helps to know *which* word to carry.
With **all states** in sight, reading once is right in 100, 100, 100 of 100. This may be why the gain on Reuters is small, too: there the decoder attends to all states (14), and can fetch a word that turns out to matter when the whole text is known. It is a
hypothesis; a made-up task can support it, and cannot show it for Reuters.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. A task that only copying can learn

Each text has seven words. One of them is outside every vocabulary, and the headline is that word. Without copying a model cannot write it, so that its 0 is certain; the question is
whether copying is learned, from 960 texts.
"""

# %% slideshow={"slide_type": "skip"}
V = 12


def texts_with_a_stranger(count, seed):
    """Six random words and, anywhere, an unknown one, which is the headline."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words = np.insert(random.integers(4, V, 6), random.integers(0, 7), V)
        words, unknown = words.astype(np.int32), ["stranger"]
        reading = np.where(words < V, words, UNK).astype(np.int32)
        lengths, target = np.array([7], np.int32), np.array([V, EOS], np.int32)
        parts = words, lengths, target, unknown, [], reading
        made.append(EncodedDocument(str(number), *parts))
    return made


# %% slideshow={"slide_type": "subslide"}
def learn_to_copy(copy, steps=60):
    torch.manual_seed(seed)
    sizes = {"embedding": 16, "hidden": 16, "dropout": 0.0}
    model = ReadAgain(ReadAgainConfig(V, V, copy=copy, **sizes))
    batches = (make_batch(texts_with_a_stranger(16, i), V) for i in range(steps))
    return learn(model, batches, learning_rate=1e-2)


unseen = make_batch(texts_with_a_stranger(200, 10**6), V)
rows = {}
short = DecodeConfig(min_length=1, max_length=3)
for name, copy in {"with copying": True, "without": False}.items():
    found = greedy_search(learn_to_copy(copy), unseen, short)
    rows[name] = {"headlines right": np.mean([h.ids == [V] for h in found])}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 4. The equations, one by one

## A toy corpus

The corpus has three texts of one or two sentences. The encoder knows most words, the decoder only a few. A word that the decoder does
not know gets an id beyond its vocabulary, so that the word can be copied. The first text goes through all equations, and its words stand at the axes of every picture.
The weights are random: the pictures show what is computed, not what a trained model does.
"""

# %% slideshow={"slide_type": "skip"}
toy_texts = [
    Document("a", "", [""], [["The cat saw a zebra.", "It ran."]], ["Cat saw zebra."]),
    Document("b", "", [""], [["A quokka sat."]], ["Quokka sat."]),
    Document(
        "c", "", [""],
        [["The zebra ran and the zebra sat.", "The cat did not see it."]],
        ["Okapi, not zebra."],
    ),
]  # fmt: skip
toy_options = HeadlineOptions(sentences=2)
written = Vocabulary(["the", "cat", "sat", "saw", "ran", "."])  # Y
read = Vocabulary([*written.words[4:], "a", "it", "and", "not", "did", "zebra"])
toy = TextEncoder(toy_options, written, read).encode(toy_texts)
b = 0  # the document that the next cells follow; it is padded

# %% slideshow={"slide_type": "skip"}
shown = toy[b]
words = written.decode(shown.source.tolist(), shown.unknown)
both = shown.source_ids.tolist(), shown.source.tolist()
pd.DataFrame([words, *both], index=["text", "id to read", "id to copy"])

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The next cell makes a toy model for each encoder, in double precision. Its weights are larger than usual, so that every mistake shows.
"""

# %% slideshow={"slide_type": "skip"}
size_of_Y, e, d = len(written), 4, 3


def toy_model(**changes):
    torch.manual_seed(1)
    sizes = {
        "source_vocab_size": len(read),
        "embedding": e,
        "hidden": d,
        "dropout": 0.0,
    }
    model = ReadAgain(ReadAgainConfig(size_of_Y, **{**sizes, **changes})).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


models = {name: toy_model(encoder=name) for name in ENCODERS}
batch = make_batch(toy, size_of_Y)
states = {name: model.encode(batch) for name, model in models.items()}

# %% slideshow={"slide_type": "skip"}
n, T = len(toy[b].source), len(toy[b].target)
print(
    f"batch: texts {tuple(batch.source.shape)}, headlines {tuple(batch.target.shape)}"
)
print(f"document {b}: {n} words, {T} in the headline")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) to (3), (7) The first read

A GRU or an LSTM from left to right; its last state $h^1_n$ stands for the text. (PyTorch's GRU differs from the paper's formula in two
ways. Its gate keeps the old state where the paper's takes the new one, which only changes what the weights mean. And its reset gate comes
after the product, which makes it a slightly different cell.)

$$h^1_i=\mathrm{RNN}(\mathbf x_i,h^1_{i-1})\tag{1}$$

$$h^1_i=\mathrm{GRU}^1(\mathbf x_i,h^1_{i-1})\tag{2}$$

$$\begin{gathered}z_i=\sigma(W_z[\mathbf x_i,h^1_{i-1}]),\qquad r_i=\sigma(W_r[\mathbf x_i,h^1_{i-1}])\\
\tilde h^1_i=\tanh(W_h[\mathbf x_i,r_i\odot h^1_{i-1}]),\qquad h^1_i=(1-z_i)\odot h^1_{i-1}+z_i\odot\tilde h^1_i\end{gathered}\tag{3}$$

$$\begin{gathered}in_i,\ f_i,\ out_i=\sigma(W_{in,f,out}[\mathbf x_i,h^1_{i-1}]),\qquad \tilde C_i=\tanh(W_C[\mathbf x_i,h^1_{i-1}])\\
C_i=f_i\odot C_{i-1}+in_i\odot\tilde C_i,\qquad h^1_i=out_i\odot\tanh C_i\end{gathered}\tag{7}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {1, 2, 3, 7})


# %% slideshow={"slide_type": "skip"}
def eq03_gates(x_i, h, gru):
    """z of the paper and h-tilde, from PyTorch's GRU."""
    xr, xz, xn = (gru.weight_ih_l0 @ x_i + gru.bias_ih_l0).chunk(3)
    hr, hz, hn = (gru.weight_hh_l0 @ h + gru.bias_hh_l0).chunk(3)
    return 1 - torch.sigmoid(xz + hz), torch.tanh(xn + torch.sigmoid(xr + hr) * hn)


def eq07_step(x_i, h, C, lstm):
    """The state h and the cell C after a word, from PyTorch's LSTM."""
    gates = lstm.weight_ih_l0 @ x_i + lstm.bias_ih_l0
    gates = gates + lstm.weight_hh_l0 @ h + lstm.bias_hh_l0
    in_, f, new, out = gates.chunk(4)  # new: before its tanh
    C = torch.sigmoid(f) * C + torch.sigmoid(in_) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(C), C


# %% slideshow={"slide_type": "skip"}
def eq02_read(x, rnn):
    """Embeddings [n, e] -> states [n, d]; the last of a first read is the text's."""
    h = C = torch.zeros(rnn.hidden_size).double()
    states = []
    for x_i in x:
        if isinstance(rnn, torch.nn.LSTM):
            h, C = eq07_step(x_i, h, C, rnn)
        else:
            z, new = eq03_gates(x_i, h, rnn)
            h = (1 - z) * h + z * new
        states.append(h)
    return torch.stack(states)


def embeddings(model, document):
    return model.source_embedding(torch.from_numpy(document.source_ids).long())


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for name in ("gru", "lstm"):
    model = models[name]
    h = eq02_read(embeddings(model, toy[b]), model.first_read)
    checks.close(
        h, states[name].words[b, :n], "(2), (3), (7)", f"states of one read, {name}"
    )

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (5) The importance of a word

It is computed from the word's own state, the state of the whole text, and the word. It is a vector: each dimension of the second read has
an importance of its own. With $\tanh$ the importance may be negative; then the state can grow without bound (4). With the option `importance="sigmoid"` this cannot happen; all presets but `paper` use it.

$$\alpha_i=\tanh\big(W_eh^1_i+U_eh^1_n+V_e\mathbf x_i\big)\tag{5}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {5})


# %% slideshow={"slide_type": "skip"}
def eq05_importance(h1_i, h1_n, x_i, model):
    W_e, b_e = model.importance_word.weight, model.importance_word.bias
    U_e, V_e = model.importance_text.weight, model.importance_input.weight
    return torch.tanh(W_e @ h1_i + b_e + U_e @ h1_n + V_e @ x_i)


model = models["read-again gru"]
x = embeddings(model, toy[b])
h1 = eq02_read(x, model.first_read)
alpha = torch.stack([eq05_importance(h1[i], h1[-1], x[i], model) for i in range(n)])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
checks.close(alpha, states["read-again gru"].importance[b, :n], "(5)", "importance")
trained_importance = saved("read_again_figure4")
caption = (
    "(5) in a trained GRU that reads again and copies: the mean of α over its dimensions in"
    " the first sentences of the six dispatches; above each text the headline it writes."
)
importance_of = {key: trained_importance[key] for key in ("panels", "label")}
figures.show(shaded_words, caption, **importance_of)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
The weights of this page's toy models are random, so the picture is of a trained run: the Read-Again GRU with copying of Table 1 below, seed 0, with a sigmoid in (5)
(Figure 4 of the paper; `snakemake -c1 read_again_figure4 --config dataset=reuters preset=small test=runs/dispatches`, after `make workflow`, with Reuters in `data/reuters`).
What happened is dark: *voted to strike from Monday if talks*, *raised the price it pays*, *discount rate*. In each sentence the articles, *of*, the full stop and the company that begins it are lighter than
the mean of its words, as in the paper. But the range is narrow, 0.59 to 0.70: no word is passed over (0), and none is read as by a plain GRU (1).
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (4), (6) The second read of a GRU

The importance controls the skip connection: at 0 the word is passed over, at 1 the step is that of a plain GRU.

**By hand**, for one dimension: the state before is 1, the gate $z$ is 0.6, the proposal $\tilde h$ is 0. A plain GRU goes to $0.4\cdot1+0.6\cdot0=0.4$. With $\alpha=0.5$, (4) goes half of that way:
$0.5\cdot1+0.5\cdot0.4=0.7$; and (6) has the gate $0.5\cdot0.6=0.3$: $0.7\cdot1+0.3\cdot0=0.7$. With $\alpha=-0.5$ both give 1.3: the state grows, and does so at every word.

$$h^2_i=(1-\alpha_i)\odot h^2_{i-1}+\alpha_i\odot\mathrm{GRU}^2(\mathbf x_i,h^2_{i-1})\tag{4}$$

$$h^2_i=(1-\alpha_i\odot z_i)\odot h^2_{i-1}+(\alpha_i\odot z_i)\odot\tilde h^2_i\tag{6}$$

PyTorch has no such cell; the library's scan is `GatedGRU`.
"""


# %% slideshow={"slide_type": "skip"}
def by_hand(alpha, z=0.6, before=1.0, new=0.0):
    plain = (1 - z) * before + z * new
    four = (1 - alpha) * before + alpha * plain
    return four, (1 - alpha * z) * before + alpha * z * new


def by_lib(alpha):
    gates = torch.tensor([[0.0, np.log(0.4 / 0.6), 0.0]]).double()  # PyTorch's z: 0.4
    one, nothing = torch.ones(1, 1).double(), torch.zeros(3, 1).double()
    states, _ = gru_scan(gates, alpha * one, one, nothing, nothing[:, 0], [1])
    return states.item()


rows = {f"α = {a}": [*by_hand(a), by_lib(a)] for a in (1.0, 0.5, 0.0, -0.5)}
pd.DataFrame.from_dict(rows, orient="index", columns=["(4)", "(6)", "the library"])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
two_forms, in_lib = torch.tensor(list(rows.values())).double().split([2, 1], 1)
checks.close(two_forms, in_lib.expand(-1, 2), "(4), (6)", "a step by hand")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {4, 6})


# %% slideshow={"slide_type": "skip"}
def eq04_second_read(x, alpha, gru):
    """Embeddings [n, e], importance [n, d], a torch.nn.GRU -> states [n, d]."""
    h, states = torch.zeros(gru.hidden_size).double(), []
    for x_i, alpha_i in zip(x, alpha):
        _, plain = gru(x_i[None], h[None])
        h = (1 - alpha_i) * h + alpha_i * plain[0]
        states.append(h)
    return torch.stack(states)


h2 = eq04_second_read(x, alpha, model.second_read.gru)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(
    h2, states["read-again gru"].words[b, :n], "(4)", "states of the second read"
)

# %% slideshow={"slide_type": "skip"}
merged, h = [], torch.zeros(d).double()
for i in range(n):
    z, new = eq03_gates(x[i], h, model.second_read.gru)
    h = (1 - alpha[i] * z) * h + alpha[i] * z * new
    merged.append(h)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(torch.stack(merged), h2, "(6)", "the two forms are one")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (8) The second read of an LSTM

There is no skip connection here: the gates see the word, its state after the first read, and the vector of the text.

$$h^2_i=\mathrm{LSTM}^2\big([\mathbf x_i,h^1_i,h^1_n],h^2_{i-1}\big)\tag{8}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {8})


# %% slideshow={"slide_type": "skip"}
def eq08_second_read(x, h1, second):
    again = torch.stack([torch.cat([x[i], h1[i], h1[-1]]) for i in range(len(x))])
    return eq02_read(again, second)


model = models["read-again lstm"]
x = embeddings(model, toy[b])
h2 = eq08_second_read(x, eq02_read(x, model.first_read), model.second_read)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(
    h2, states["read-again lstm"].words[b, :n], "(8)", "states of the second read"
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (9) to (11) Several sentences

Each sentence is read on its own. The options differ in what a sentence is given for its second read. **Option 1** gives it the vectors
of all sentences, concatenated. **Option 2** makes one vector of them all, and gives each sentence its own vector and this one. The paper
has two sentences. Here there are as many places as the configuration says, and places without a sentence hold zeros.

$$h^2_i=\mathrm{RNN}^2\big([\mathbf x_i,h^1_i,h^1_n,h'^1_m],h^2_{i-1}\big)\tag{9}$$

($h'^1_m$ is the last state of the second sentence, of $m$ words.)

$$h_{global}=\tanh\big(W_rh^1_n+U_rh'^1_m+v_r\big)\tag{10}$$

$$h^2_i=\mathrm{RNN}^2\big([\mathbf x_i,h^1_i,h^1_n,h_{global}],h^2_{i-1}\big)\tag{11}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {9, 10, 11})


# %% slideshow={"slide_type": "skip"}
def eq09_option_1(texts):
    """What a sentence has beside its words: the vectors of all, in order."""
    return torch.cat(texts)


def eq10_global(texts, model):
    return torch.tanh(
        model.global_text.weight @ torch.cat(texts) + model.global_text.bias
    )


def eq11_option_2(own, texts, model):
    return torch.cat([own, eq10_global(texts, model)])


# %% slideshow={"slide_type": "skip"}
def read_sentences(x, lengths, model):
    """Embeddings [n, e] -> states [n, d], and where the decoder starts from [d]."""
    parts = x.split(lengths)
    first = [eq02_read(part, model.first_read) for part in parts]
    texts = [states[-1] for states in first]
    texts += [torch.zeros(d).double()] * (model.config.sentences - len(texts))
    second = []
    for part, h1 in zip(parts, first):
        if model.config.encoder == "option 1":
            beside = eq09_option_1(texts)
        else:
            beside = eq11_option_2(h1[-1], texts, model)
        again = torch.cat([part, h1, beside.expand(len(part), -1)], 1)
        states, _ = model.second_read(again)
        second.append(states)
    return torch.cat(second), torch.stack([states[-1] for states in second]).mean(0)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for name in ("option 1", "option 2"):
    model = models[name]
    lengths = toy[b].sentence_lengths.tolist()
    h2, _ = read_sentences(embeddings(model, toy[b]), lengths, model)
    checks.close(
        h2, states[name].words[b, :n], "(9)-(11)", f"states of the second read, {name}"
    )

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (15) The embedding of a word

This is what enters the decoder. For a word of $Y$ it is the word's row of the table; for another word of the text, an embedding made
from the state of that word in the text; for any other word, [UNK]. If a word stands in the text several times, the state at its first
place is used.

$$\mathbf y=\begin{cases}\mathbf Y[w]&w\in Y\\ \mathbf p_i=\tanh(W_ch^2_i+b_c)&w\notin Y,\ w=x_i\\
\mathbf Y[\mathrm{UNK}]&\text{otherwise}\end{cases}\tag{15}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {15})


# %% slideshow={"slide_type": "skip"}
def eq15_from_context(h2_i, model):
    return torch.tanh(model.word.weight @ h2_i + model.word.bias)


def eq15_embedding(word, source, h2, model):
    if word < size_of_Y:
        return model.target_embedding.weight[word]
    if word in source:
        return eq15_from_context(h2[source.index(word)], model)
    return model.target_embedding.weight[UNK]


model = models["read-again lstm"]
state = states["read-again lstm"]
source = toy[b].source.tolist()
x = embeddings(model, toy[b])
h2 = eq08_second_read(x, eq02_read(x, model.first_read), model.second_read)
p = torch.stack([eq15_from_context(h2[i], model) for i in range(n)])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(p, state.embedded[b, :n], "(15)", "embeddings of the source words")

# %% slideshow={"slide_type": "skip"}
inputs = [BOS, *toy[b].target[:-1].tolist()]
y = torch.stack([eq15_embedding(word, source, h2, model) for word in inputs])
fed = ["[BOS]", *written.decode(inputs[1:], toy[b].unknown)]
print("what enters the decoder:", *fed)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (12) to (14) The decoder

Attention comes first and uses the state of the step **before**. The context that it gives enters the LSTM together with the word.

$$s_t=\mathrm{LSTM}\big([\mathbf y_{t-1},c_t],s_{t-1}\big)\tag{12}$$

$$c_t=\sum_i\beta_{it}h^2_i,\qquad\beta_{\cdot t}=\mathrm{softmax}(o_{\cdot t})\tag{13}$$

$$o_{it}=v_a^\top\tanh\big(W_as_{t-1}+U_ah^2_i\big)\tag{14}$$

The paper does not say where the decoder starts. Here its first state comes from a layer with $\tanh$ on the encoder's last state.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {12, 13, 14})


# %% slideshow={"slide_type": "skip"}
def eq14_attention_scores(s, h2, model):
    W_a, U_a = model.attention.query.weight, model.attention.key.weight
    v_a = model.attention.v.weight[0]
    return torch.stack([v_a @ torch.tanh(W_a @ s + U_a @ h2_i) for h2_i in h2])


def eq13_context_of(scores, h2):
    beta = torch.softmax(scores, 0)
    return beta, sum(beta[i] * h2[i] for i in range(len(h2)))


def eq12_next_state(y, c, s, cell, lstm):
    s, cell = lstm(torch.cat([y, c])[None], (s[None], cell[None]))
    return s[0], cell[0]


# %% slideshow={"slide_type": "skip"}
def decoder_states(y, h2, last, model):
    """Embeddings [T, e] of what enters -> states [T, d], attention [T, n]."""
    s = torch.tanh(model.bridge.weight @ last + model.bridge.bias)
    cell, outputs, attention = torch.zeros(d).double(), [], []
    for y_t in y:
        beta, c = eq13_context_of(eq14_attention_scores(s, h2, model), h2)
        s, cell = eq12_next_state(y_t, c, s, cell, model.decoder)
        outputs.append(s)
        attention.append(beta)
    return torch.stack(outputs), torch.stack(attention)


toy_output, _ = model.decode(batch.target_input, state)
s, beta = decoder_states(y, h2, h2[-1], model)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
checks.close(
    beta, toy_output.attention[b, :T, :n], "(12)-(14)", "attention of all steps"
)
target_words = [*written.decode(toy[b].target.tolist(), toy[b].unknown), "[EOS]"]
source_words = written.decode(toy[b].source.tolist(), toy[b].unknown)
on_words = {"title": "β", "rows": target_words, "columns": source_words}
caption = (
    "(13) on the toy text: attention of the decoder before each word of the headline."
)
figures.show(word_maps, caption, panels=[{"values": beta.detach(), **on_words}])

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (16), (17) Generate or copy

One softmax over the words of $Y$ **and** the places of the text, without a gate. The paper says this but prints no equation. The
equations here are CopyNet's rule (Gu et al. 2016), with $\mathbf p_i$ as the key of a place. A word of $Y$ that stands in the text gets both shares, and a word that stands there twice the shares of both places. $Z$ is the sum of all exponentials.

$$g_w=\mathbf o_w^\top s_t+b_w,\qquad k_i=\mathbf p_i^\top W_ks_t\tag{16}$$

$$P(w)=\frac1Z\Big([w\in Y]\,e^{g_w}+\sum_{i:x_i=w}e^{k_i}\Big)\tag{17}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("read_again", {16, 17})


# %% slideshow={"slide_type": "skip"}
def eq16_scores(s_t, p, model):
    g = model.vocabulary.weight @ s_t + model.vocabulary.bias
    k = torch.stack([p_i @ (model.copy_query.weight @ s_t) for p_i in p])
    return g, k


def eq17_joint(g, k, source, unknown):
    """P over Y and the document's unknown words."""
    mass = torch.cat([torch.exp(g), torch.zeros(unknown).double()])
    for word, score in zip(source, k):
        mass[word] = mass[word] + torch.exp(score)
    return mass / (torch.exp(g).sum() + torch.exp(k).sum())


scored = [eq16_scores(s[t], p, model) for t in range(T)]
P = torch.stack([eq17_joint(g, k, source, len(toy[b].unknown)) for g, k in scored])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
lib_words = [torch.full_like(batch.target, w) for w in range(P.shape[1])]
lib_log_P = [model.log_prob(toy_output, words, state)[b, :T] for words in lib_words]
lib_P = torch.stack(lib_log_P, 1).exp()
checks.close(P, lib_P, "(16), (17)", "P over Y and the words of the text")
checks.close(torch.ones(T), P.sum(1), "(17)", "each row of P sums to 1")
every_word = [*written.words, *toy[b].unknown]
word_map = {"title": "P: the next word", "rows": target_words, "columns": every_word}
caption = "(17) on the toy text: one softmax over Y and the places of the text."
figures.show(word_maps, caption, panels=[{"values": P.detach(), **word_map}])

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**One whole step of the decoder**, in the order in which it is computed:

```python
if word in Y: y = table[word]                      # (15)
elif word in text: y = p[first place of word]
else: y = table[UNK]
o = [v_a @ tanh(W_a s + U_a h2[i]) for i in range(n)]
beta = softmax(o)                                  # (14), with the state before
c = sum(beta[i] * h2[i] for i in range(n))         # (13)
s, cell = LSTM([y; c], (s, cell))                  # (12)
g = W_o s + b; k = [p[i] @ W_k s for i in range(n)]  # (16)
copied = sum(exp(k[i]) for i where x[i] == word)   # (17)
P(word) = ([word in Y] exp(g[word]) + copied) / (sum(exp(g)) + sum(exp(k)))
```
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (18) The whole loss, composed

The steps are the same for every encoder: read the text, write the headline, and take the mean of $-\log P$ over the headline's words.
The loss of a batch is the mean over its documents.

$$\mathcal L=-\frac1T\sum_t\log P(y_t\mid y_{<t},x)\tag{18}$$
"""


# %% slideshow={"slide_type": "skip"}
def read_document(document, model):
    """States of the words [n, d], where the decoder starts from [d]; any encoder."""
    x, name = embeddings(model, document), model.config.encoder
    if name in ("option 1", "option 2"):
        return read_sentences(x, document.sentence_lengths.tolist(), model)
    h1 = h2 = eq02_read(x, model.first_read)
    if name == "read-again gru":
        pairs = zip(h1, x)
        alpha = [eq05_importance(h1_i, h1[-1], x_i, model) for h1_i, x_i in pairs]
        alpha = torch.stack(alpha)
        h2 = eq04_second_read(x, alpha, model.second_read.gru)
    elif name == "read-again lstm":
        h2 = eq08_second_read(x, h1, model.second_read)
    return h2, h2[-1]


# %% slideshow={"slide_type": "skip"}
def eq18_objective(document, model):
    h2, last = read_document(document, model)
    source = document.source.tolist()
    p = torch.stack([eq15_from_context(h2_i, model) for h2_i in h2])
    inputs = [BOS, *document.target[:-1].tolist()]
    y = [eq15_embedding(word, source, h2, model) for word in inputs]
    s, _ = decoder_states(torch.stack(y), h2, last, model)
    total = 0.0
    for s_t, target in zip(s, document.target.tolist()):
        g, k = eq16_scores(s_t, p, model)
        P = eq17_joint(g, k, source, len(document.unknown))
        total = total - torch.log(P[target])
    return total / len(document.target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for name, model in models.items():
    naive_loss = sum(eq18_objective(document, model) for document in toy) / len(toy)
    lib_loss = model.loss(batch)["loss"]
    checks.close(naive_loss, lib_loss, "(18)", f"loss of the padded batch, {name}")
    checks.gradients(gradients(model, naive_loss), gradients(model, lib_loss), "(18)")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Checks that need no equation of ours

* With **importance 1** the second read is a plain GRU, with importance 0 nothing is read.
* With a **negative importance**, which (5) allows, the state grows: in the figure from 0.18 to 8.1e6 in 50 words.
* **Option 2 with one sentence** gives the same as an option 2 built for one sentence, because the columns of weights for further sentences are multiplied by zeros.
* Without copying, no word outside $Y$ has any probability.
* One call of the decoder with $T$ words equals $T$ calls with one word: training and generation are one path.
"""

# %% slideshow={"slide_type": "skip"}
scan = GatedGRU(e, d).double()
inputs_of_scan, ones = torch.randn(2, 7, e).double(), torch.ones(2, 7, d).double()
plain, nothing = scan.gru(inputs_of_scan)[0], torch.zeros(2, 7, d)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(plain, scan(inputs_of_scan, ones), "(4)", "importance 1: a plain GRU")
checks.close(
    nothing, scan(inputs_of_scan, 0 * ones), "(4)", "importance 0: nothing is read"
)

# %% slideshow={"slide_type": "skip"}
torch.manual_seed(0)
long_text, longer_ones = torch.randn(1, 50, e).double(), torch.ones(1, 50, d).double()
growth = {}
for constant in (0.5, -0.5):
    largest = scan(long_text, constant * longer_ones).abs().amax((0, 2))
    growth[f"α = {constant}"] = [list(range(1, 51)), largest.tolist()]
    print(f"largest state with α = {constant:>4}, after 50 words: {largest[-1]:.3g}")
two, one = models["option 2"], toy_model(encoder="option 2", sentences=1)
weights = two.state_dict()
weights["global_text.weight"] = weights["global_text.weight"][:, :d]
one.load_state_dict(weights)
single = make_batch([toy[1]], size_of_Y)
losses = one.loss(single)["loss"], two.loss(single)["loss"]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(*losses, "(11)", "option 2 with one sentence")
caption = (
    "(4) with the same importance at every word: the largest number of the state over 50"
    " random words. A positive importance keeps it below 1, a negative one does not."
)
panel = {"series": growth, "xlabel": "word", "ylabel": "largest |h²|", "yscale": "log"}
figures.show(lines, caption, panels=[panel])

# %% slideshow={"slide_type": "skip"}
mute = toy_model(copy=False)
mute_state = mute.encode(batch)
mute_output, mute_after = mute.decode(batch.target_input, mute_state)
mute_P = mute.distribution(mute_output, mute_after, max(map(len, batch.unknown)))
nothing = torch.zeros(3, mute_P.shape[1] - size_of_Y)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(nothing, mute_P[:, size_of_Y:], "(17)", "no copying: nothing outside Y")
for name, model in models.items():
    one_by_one, running = [], model.encode(batch)
    for fed, wanted in zip(batch.target_input.split(1, 1), batch.target.split(1, 1)):
        one_output, running = model.decode(fed, running)
        one_by_one.append(model.log_prob(one_output, wanted, running))
    at_once, after = model.decode(batch.target_input, model.encode(batch))
    whole, parts = (
        model.log_prob(at_once, batch.target, after),
        torch.cat(one_by_one, 1),
    )
    checks.close(parts, whole, "(2)-(17)", f"T calls equal one call, {name}")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## All comparisons

The table puts the numbers of the page's functions beside the library's, in double precision. A comparison that failed would have stopped the page.
"""

# %% slideshow={"slide_type": "skip"}
checks.table()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## The code that was just verified
"""

# %% slideshow={"slide_type": "skip"}
copying = ReadAgain._embed, ReadAgain._copied, ReadAgain.log_prob
show_source(GatedGRU, ReadAgain.decode, *copying)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 5. The paper's studies, on Reuters

## Encoders (Table 1)

Each row learned from the 13,898 dispatches for six epochs, with three seeds, at a size that this project could afford: width 128, and a vocabulary $Y$ of 2,500 words
where a row says 15K and of all 9,873 words of the training headlines where it says 69K. All numbers are saved (`figures/`, [`docs/papers/read_again.md`](../docs/papers/read_again.md)); the page does not make them.
Published numbers are of a random 2,000 of Gigaword's test pairs. [Baselines](baselines.ipynb) has the equations of ABS, RAS and words-lvt.
"""

# %% slideshow={"slide_type": "skip"}
published_table("read_again_table1")

# %% slideshow={"slide_type": "skip"}
numbers_1 = without_published(kept_table("read_again_table1_reuters"))
print(wrapped(plain_setting(numbers_1)))
table_frame(numbers_1)

# %% slideshow={"slide_type": "skip"}
pairs_frame(numbers_1)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Copying is worth 27 to 30 points of R-1. With so little data a decoder without it has seen few names often enough to write them: its rows stay below the first eight words of the text, which have 29.
Reading again is worth 0.8 points to a GRU that chooses from all words (p < 0.01), as in the paper (0.5); with 2,500 words no gain is seen (-0.3, p 0.40; the paper: 0.4),
and none with an LSTM or with copying (-0.6 to +0.4, p 0.18 and more; these pairs are in [`docs/papers/read_again.md`](../docs/papers/read_again.md), the paper has none).
A second sentence does not help either (-0.6, p 0.14; the paper: 0.6).
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The decoder's vocabulary, with and without copying (Table 3)

The same corpus and training. Where a row says 2K, 5K, 15K, 30K and 69K, $Y$ has the 500, 1,000, 2,500, 5,000 most frequent words of the training headlines and all 9,873 of them.
"""

# %% slideshow={"slide_type": "skip"}
numbers_3 = without_published(kept_table("read_again_table3_reuters"))
print(wrapped(plain_setting(numbers_3)))
table_frame(numbers_3)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With copying, 500 words are as good as all (41.2 and 40.9 R-1): what is not in $Y$ is copied. Without copying, more words do not help either (11.2 to 12.1 R-1), while in the paper they do.
The reason is how rarely most words occur in 13,898 headlines. Of the words of the test headlines, 38% are not among the 500 most frequent. Without copying, the model with all words writes such a word in only 5% of
the places, and 0.5% of these words stand in the reference. With copying it is 26%, and half of them stand there. The paper has millions of headlines, in which a decoder sees many more words often enough.
(The paper's text says that with copying 2K words in place of 69K cost two to three points; its table says 3.7 R-1, 1.4 R-2 and 2.9 R-L.)
"""

# %% slideshow={"slide_type": "skip"}
print("published, Read-Again LSTM on Gigaword")
published_table("read_again_table3")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Embeddings from context (15)

The paper says that the embedding $\mathbf p_i$ of a rare word is near that of a word with a similar meaning. Here are names that the decoder does not know, and the words of $Y$ whose embeddings are nearest (by cosine) to
the $\mathbf p_i$ of the shipped model.
"""


# %% slideshow={"slide_type": "skip"}
def neighbours(document, count=4):
    """Unknown words of a document, each with its neighbours in Y."""
    size, ids = len(vocabulary), document.source.tolist()
    places = [ids.index(size + j) for j in range(len(document.unknown))]
    p = run.model.encode(make_batch([document], size)).embedded[0, places]
    near = (vocabulary.decode(ids, []) for ids in nearest(run.model, p, count))
    return dict(zip(document.unknown, map(" ".join, near)))


named = {}
if kept:
    every = {}
    for document in test:
        every |= neighbours(document)
    asked = ["norbalt", "tessera", "velmora", "kestrel", "ostervik", "abidjan"]
    named = {word: {"nearest words of Y": every[word]} for word in asked}
pd.DataFrame.from_dict(named, orient="index")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
These are no similar words. But invented names have no embedding to be near to. So **known words are hidden**: the encoder reads [UNK] where the word stands, and the word's own row of $\mathbf Y$ is ranked among all rows by its
nearness to $\mathbf p_i$ (the 500 most frequent words are left out). The table has the share of the rows that are nearer than the word's own, in percent: by chance 50. Below it, **what $\mathbf p_i$ does** when it is changed: the log-probability of
the references in nats a word, and by how much [UNK] in place of $\mathbf p_i$ moves it. Both are of 50 docstrings, which this model has not learned, and of Reuters (200 and 1,106 test dispatches), with 95% intervals over documents
(`python -m lib.intervene trained/read_again --hidden-words --dataset docstrings`; without `--hidden-words` the changes).
"""

# %% slideshow={"slide_type": "skip"}
corpora = {"docstrings": "", "Reuters": "_reuters"}


def side_by_side(what, names):
    """Rows of saved interventions, a column for each corpus."""
    columns = {}
    for corpus_name, ending in corpora.items():
        rows = {row["change"]: row for row in saved(what + ending)["changes"]}
        columns[corpus_name] = {rows[n]["what"]: rows[n]["text"] for n in names}
    return pd.DataFrame(columns)


measured = "word read", "word hidden", "another hidden word"
side_by_side("hidden_words_read_again", measured)

# %% slideshow={"slide_type": "skip"}
changes = "first unit erased", "no copying", "[UNK] fed back"
side_by_side("interventions_read_again", changes)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** A hidden word's own embedding is no nearer to $\mathbf p_i$ than others are (50.1 on Reuters), and hardly nearer where the encoder reads the word (44.6): here the paper's claim is not seen.
$\mathbf p_i$ does something all the same: with [UNK] in its place the references lose 0.014 nats a word on Reuters and 0.064 on docstrings. That is little beside what copying itself is worth (3.2 and 0.6; words that can only be copied do not count there).
Attention ranks the sentences of a text much as erasing them does: rank agreement 0.68 [0.66, 0.70] in those of 1,106 dispatches that have two sentences or more, 0.63 [0.30, 0.89] in 23 docstrings (`--attention --of summaries`).
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Decoding time (Table 4)

The time is that of beam search, with beam 10, for a text of 30 words and a headline of 8. The model has the paper's width and random weights, which take as long as learned ones. The table shows seconds per
headline, as the median of five with the fastest and the slowest, beside the paper's numbers.
"""


# %% slideshow={"slide_type": "skip"}
def seconds_a_headline(size, copy, repeats=5):
    """Sorted times of beam search for one headline."""
    model = ReadAgain(ReadAgainConfig(size, source_vocab_size=5_000, copy=copy))
    words = np.arange(100, 130, dtype=np.int32)
    parts = words, np.array([30], np.int32), np.array([5, EOS], np.int32)
    batch = make_batch([EncodedDocument("x", *parts, [], [], words)], size)
    config, taken = DecodeConfig(beam=10, min_length=8, max_length=8), []
    for _ in range(repeats):
        started = time.perf_counter()
        beam_search(model, batch, config)
        taken.append(time.perf_counter() - started)
    return sorted(taken)


# %% slideshow={"slide_type": "subslide"}
sizes_4 = (2_000, 5_000, 15_000, 30_000, 69_000)
ways = {"without copying": False, "with copying": True}
taken_4 = {
    way: [seconds_a_headline(size, copy) for size in sizes_4]
    for way, copy in ways.items()
}
here = {
    f"here, {way}": [f"{t[2]:.3f} [{t[0]:.3f}, {t[-1]:.3f}]" for t in every]
    for way, every in taken_4.items()
}
published_4 = chosen.paper.page_tables["read_again_table4"].published
pd.DataFrame({**here, **published_4}, index=pd.Index(sizes_4, name="|Y|"))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
panel = {
    "series": {way: [sizes_4, [t[2] for t in every]] for way, every in taken_4.items()},
    "spread": {way: [[t[0] for t in every], [t[-1] for t in every]] for way, every in taken_4.items()},
    "xlabel": "|Y|", "ylabel": "seconds a headline", "zero": True,
}  # fmt: skip
caption = (
    "Decoding time of a headline on this machine's CPU by the size of Y: median of five"
    " times, the bar from the fastest to the slowest."
)
figures.show(lines, caption, "read_again_seconds", panels=[panel])

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Time grows with the vocabulary, both here and on the paper's Titan X. Copying costs nothing here that could be told from noise, and about a tenth in the paper. 2,000 words with copying write 4.2 times as fast
as 69,000 without it in the paper (0.084 and 0.356 s).

# 6. Deviations

<details><summary><b>As far as this page's numbers need them</b></summary>

[`docs/papers/read_again.md`](../docs/papers/read_again.md) has every point at which the project differs from the paper, with the reason.

| point | the paper | here |
|---|---|---|
| copy distribution | described, no equation | (16), (17): CopyNet's rule with $\mathbf p_i$ as key |
| GRU | reset before the product, z takes the new state | PyTorch's: reset after the product, z keeps the old state |
| (5), tanh | may be negative | the same; `importance="sigmoid"` is an option, which all presets but `paper` use |
| words under 5 occurrences | become UNK | unknown to the encoder; still copied as they are written |
| filters | as Rush et al. | the same, on training and validation pairs, in the preset `paper`; not on docstrings and on Reuters |
| generation on Gigaword | length free, beam not stated | beam 10, as on DUC, at most 30 words, by mean log-probability |
| ROUGE | by which program is not stated | rouge-score |
| a bidirectional encoder | named in the text, no row of it | `encoder="bidirectional gru"` of the library, half of the state for each direction; in part 2 alone |
| shipped model and demo | the sizes of its section 4 | the shipped model: `trained/read_again`; the demo: docstrings, 50 words of at most 4 sentences, 2,000 words in $Y$, width 96, sigmoid in (5), Adam at 0.003 for 500 steps (the paper: SGD), beam 4; headlines of 3 words at least |

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 7. Exercises

Ten functions of at most six lines each. Write one in place of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from lib.exercises.read_again import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** *Find the bug.* This is somebody's importance (5) of all words of a batch. It is right for one text alone, and wrong for a batch of several:

```python
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    text = h1[:, -1:] @ U_e.T
    return torch.tanh(h1 @ W_e.T + b + text + x @ V_e.T)
```

Write it right. The values at padding do not count. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    """Importance of the words of B texts, padded to n words: [B, n, d].

    h1: states of the first read [B, n, d]; x: embeddings [B, n, e]; mask [B, n]:
    whether there is a word; W_e, U_e [d, d]; V_e [d, e]; b: the library's bias [d].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, importance_in_a_batch)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Which word stands at place $-1$ of the shorter texts? `mask.sum(1)` says how long each text is.

</details>
<details><summary>Solution</summary>

```python
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    last = h1[torch.arange(len(h1)), mask.sum(1) - 1]
    return torch.tanh(h1 @ W_e.T + b + (last @ U_e.T)[:, None] + x @ V_e.T)
```

The state at the last place of the batch has read padding, and in a shorter text it is not $h^1_n$. Padding behind the words reaches none of them in the first read; here it would reach all.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** How many weights do the reads have if they are LSTMs? An LSTM has four gates, each with a matrix for what enters, one for the state before, and two biases (PyTorch's). Count the first read (1), the second read of one text (8), and that of option 1 (9) with places for a number of sentences. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def weights_of_reads(e, d, sentences):
    """Whole numbers: width of embeddings and of states, sentences. Returns three."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, weights_of_reads)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What enters is as wide as everything in the square brackets of (8) and (9) together.

</details>
<details><summary>Solution</summary>

```python
def weights_of_reads(e, d, sentences):
    def weights(enters):
        return 4 * d * (enters + d + 2)

    return [weights(e), weights(e + 2 * d), weights(e + d + sentences * d)]
```

The word, its state and the text enter the second read; in option 1, the word, its state and the vectors of all sentences.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** *Find the bug.* This is somebody's $P(w)$ (17), from the scores (16):

```python
def shared_softmax(word, g, k, source):
    generated = g.softmax(0)[word] if word < len(g) else 0
    copied = k.softmax(0)[source.index(word)] if word in source else 0
    return generated + copied
```

The probabilities of all words do not sum to 1. Write it right. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def shared_softmax(word, g, k, source):
    """P of the id `word`, a number.

    g: scores of Y [|Y|]; k: scores of the places of the text [n]; source: a list, the
    n ids of the text. Ids from |Y| on are not in Y.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, shared_softmax)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

There are two faults. What do the probabilities of all words sum to, if the text has no word twice? And what is missing if it has?

</details>
<details><summary>Solution</summary>

```python
def shared_softmax(word, g, k, source):
    here = torch.tensor([place == word for place in source])
    generated = g[word].exp() if word < len(g) else 0
    return (generated + k[here].exp().sum()) / (g.exp().sum() + k.exp().sum())
```

Two softmaxes sum to 2: one $Z$ is for both. And a word gets the share of every place where it stands. Half of the two softmaxes would sum to 1 as well, and be another model: one with a switch that is always at one half.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**4.** Take one dimension of the state, which begins at 0. By (6) the last state is a weighted sum of the candidates, $h^2_n=\sum_iw_i\tilde h^2_i$. Derive the weights. When is one negative? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def share_of_each_word(alpha, z):
    """Importance alpha [n] and gate z [n] of n words in one dimension. Returns [n]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, share_of_each_word)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What does (6) leave of the state before? Word $i$ goes through this once for each word behind it.

</details>
<details><summary>Solution</summary>

```python
def share_of_each_word(alpha, z):
    taken = alpha * z
    return [taken[i] * (1 - taken[i + 1 :]).prod() for i in range(len(z))]
```

$w_i=\alpha_iz_i\prod_{j>i}(1-\alpha_jz_j)$: a word is taken, and what follows wears it away. Since $|\alpha_jz_j|<1$, a weight has the sign of its own $\alpha_i$; behind a word with a negative $\alpha_j$ the earlier ones *grow*.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** Suppose that $\mathrm{GRU}^2$ of (4) gives the same number $u\ne0$ at every word, and that the importance is the same $\alpha$ everywhere. The state begins at 0. Derive the state after $n$ words, without a loop. (5) allows an $\alpha$ in $[-1, 1]$: does the state grow without bound, as the text gets longer? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def state_after(n, alpha, u):
    """Returns the state after n words, and whether it grows without bound."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, state_after)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What happens to $u-h$ at each word?

</details>
<details><summary>Solution</summary>

```python
def state_after(n, alpha, u):
    return [(1 - (1 - alpha) ** n) * u, alpha < 0]
```

$u-h$ is multiplied by $1-\alpha$ at each word. With $\alpha>0$ it goes to 0, with $\alpha=0$ it stays, and below 0 it grows with every word.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** Derive $\partial\log P(w)/\partial k$ from (17), for all places at once. The word $w$ is **not** in $Y$. (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_copy_scores(g, k, here):
    """g: scores of Y; k: scores of the places [n]; here: 1 at w's places, else 0 [n].

    Returns [n].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, push_on_the_copy_scores)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\log P(w)$ is a difference of two logarithms of sums. The derivative of $\log\sum_ie^{k_i}$ is a softmax.

</details>
<details><summary>Solution</summary>

```python
def push_on_the_copy_scores(g, k, here):
    mine = here * k.exp()
    return mine / mine.sum() - k.exp() / (g.exp().sum() + k.exp().sum())
```

The share of each place among those of $w$, less its share of everything. Only the second part knows of $Y$.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Change the model, and predict

**7.** The importance (5) has $\tanh$; `importance="sigmoid"` keeps it positive. Take random weights and a text of 60 words. Which of the two has the larger state after the second read (4)? Can the state be larger than 1 in any dimension, first with `"tanh"`, then with `"sigmoid"`? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def tanh_or_sigmoid():
    """A name and two truth values."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, tanh_or_sigmoid)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Exercise 5. What does (4) do when $0\le\alpha\le1$?

</details>
<details><summary>Solution</summary>

```python
def tanh_or_sigmoid():
    return ["tanh", True, False]
```

With $0\le\alpha\le1$ a state is a mean of numbers between $-1$ and 1; with a negative $\alpha$ it leaves them. The check takes five draws of the weights.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**8.** A text has nine words. The mixed second derivative $\partial^2h_5/\partial\mathbf x_3\,\partial\mathbf x_8$ says whether words 3 and 8 *act on each other* in the state of word 5: where it is 0, $h_5$ is a sum of what each does by itself. For which of these encoders, with random weights, is it **exactly** 0? A GRU that reads once (2); a bidirectional GRU, whose states are both directions beside each other; a bidirectional GRU of two layers; a GRU that reads again (4). (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def never_meet():
    """Four truth values, in the order of the text: whether it is exactly 0."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, never_meet)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Which words does each number in $h_5$ depend on? A number that depends on word 3 alone, or on word 8 alone, has no mixed derivative.

</details>
<details><summary>Solution</summary>

```python
def never_meet():
    return [True, True, False, False]
```

Read once, word 5 has not seen word 8. Bidirectional, one half of $h_5$ has seen word 3 and the other word 8, and they lie side by side. This is the paper's argument for reading again. A second layer mixes the halves as well, so reading again is one way out and not the only one. The check changes both words, one or none, and looks whether the effects add up.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**9.** Words 12 and 13 are in no vocabulary, neither the decoder's nor the encoder's. The decoder has written one of them, and it enters the next step (15). Does the next step change if it is the other one? Say so in three cases: both stand in the text; neither stands in the text; both stand in the text, and the model has no copying. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def next_word_changes():
    """Three truth values."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(9, next_word_changes)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Which row of (15) applies? The encoder reads [UNK] for both words, at two places.

</details>
<details><summary>Solution</summary>

```python
def next_word_changes():
    return [True, False, False]
```

Both words are read as [UNK], but at different places: their states differ, and so do their $\mathbf p_i$. A word that is not in the text enters as [UNK], and without copying there is no $\mathbf p_i$.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**10.** In the planted task of `lib.data.synthetic` a text here has four sentences of six words each. One sentence is marked, and its words are the headline. A model with copying and one without train for 30 steps. Predict which one has the smaller loss (18), `"copying"` or `"without"`, in two cases: all words are in $Y$; $Y$ has nothing but symbols and marks, so that the model without copying is asked for [UNK]. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss():
    """Two names: with all words in Y, and with none."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(10, smaller_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What has each model to learn in 30 steps, and is the same asked of both?

</details>
<details><summary>Solution</summary>

```python
def smaller_loss():
    return ["copying", "without"]
```

To point to a place is learned sooner than what each of the words is. With unknown words, the other model is asked for [UNK] alone, which is easily said and says nothing: losses can be compared only where the same is asked.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**To go on with, without a check.** Change `KINDS` and `WORDS` of `lib/tasks/read_twice.py`: how many words can the last state of a GRU of 16 numbers hold?
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# What to take home

* A second read lets a word before and a word behind act together inside a state, which a bidirectional encoder never does. In a made-up task a decoder that attends to all states does without.
* Copying is what counts here: 27 to 30 points, with any vocabulary from 500 words on.
* The embedding from context helps a little, and it is not near the embeddings of similar words.

# Where to go from here

* `python -m lib.train read_again --dataset gigaword_folder --preset paper --output runs/gigaword` trains at the paper's size on a GPU.
* DUC 2004 (a folder with `input.txt` and `task1_ref0.txt` to `task1_ref3.txt`) is read as a test set, and
  `lib.evaluation.metrics.limited_recall` is its measure: recall of the first 75 bytes against all four references.
* [`docs/papers/read_again.md`](../docs/papers/read_again.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
