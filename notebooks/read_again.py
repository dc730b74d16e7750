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
paper's other idea concerns the decoder: a **small vocabulary** is enough, and fast, if every other word can be **copied** from the text.
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # docstrings, gigaword, ... or a folder of train, val and test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), ..., paper (for a GPU)
variant: str = "read-again lstm + copy"  # what is trained: a row of the tables
steps: int = 0  # training steps; 0: as many as the preset says
seed: int = 0  # of weights, batches and bootstrap
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import json
import time

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import BOS, EOS, UNK, Vocabulary
from companion.claims.text import claims_table
from companion.studies.hidden_words import nearest
from companion.studies.word_dependence import interaction, reach
from lib.layers.recurrent import GatedGRU, gru_scan
from lib.models.read_again import ENCODERS, ReadAgain, ReadAgainConfig
from companion.pages.checks import Checks, gradients
from companion.pages.diagrams import show_model
from companion.pages.figures import lines, shaded_words, word_maps
from companion.pages.measured import task_results
from companion.pages.choice import choose, compare_means
from companion.pages.runs import loss_figure, run_facts
from companion.pages.shown import (
    PageFigures,
    Passages,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.steps import Step, best_words, decoding_frames
from companion.pages.measured import summary_table
from lib.papers.read_again.headlines import HeadlineOptions
from companion.pages.dispatches import made_up_dispatches
from companion.results.kept import kept_table
from companion.results.tables import PAGE_RESULTS
from companion.results.text import pairs_frame, table_frame
from lib.decoding.search import DecodeConfig, beam_search, summarize
from lib.system.files import project_root, work_folder, write_whole
from companion.tasks.short_news import (
    RATE, SIX, WRITTEN, dispatch, dispatch_batches, dispatches, headlines, reader,
    share_right,
)  # fmt: skip
from companion.tasks.task import learn

# a name or folder that cannot be read ends the page here
choice = choose(
    "read_again", dataset, preset, variant, steps, seed, run, *("docstrings",) * 2
)
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()


def saved(name):
    """The numbers of a file in `figures`."""
    return json.loads((project_root() / "figures" / f"{name}.json").read_text("utf-8"))


# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. Headlines, and which of their words are copied

The shipped model, a Read-Again LSTM with copying, has learned from 13,898 dispatches (short reports) of a news agency, Reuters-21578, in seven minutes on one core. Those texts are free for
research but may not be printed, so the page's own six dispatches are synthetic, with invented companies. A `[word]` is not in the decoder's vocabulary and can only have been
copied; of a `(word)` copying had the larger share of the probability. Digits are `#`.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: which words does it copy, names or verbs?</summary>

Both, and nearly everything else: in these six headlines it generates only *u*, *s*, *sets* and three of four *to*.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.box

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
summarizer, vocabulary = trained.model, trained.vocabulary
options, decode = trained.options, trained.decode
if choice.on_sample:
    documents = made_up_dispatches()
    made_up = [
        {"summary": d.summary[0], "document": " ".join(d.sentences)} for d in documents
    ]
    # for others to read, as the figure of importance below
    lines_of_json = "".join(json.dumps(record) + "\n" for record in made_up)
    write_whole(work_folder() / "dispatches" / "test.jsonl", lines_of_json)
else:
    documents = choice.documents
test = trained.encode(documents)


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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
long_enough = [i for i in range(len(test)) if len(test[i].source) > 25]
rows = []
for i in range(len(test)) if choice.on_sample else long_enough[:8]:
    one = make_batch([test[i]], len(vocabulary))
    ((best, *_),) = beam_search(summarizer, one, decode)
    rows += [("text", clip(" ".join(documents[i].sentences), 70))]
    rows += [("reference", " ".join(documents[i].summary))]
    rows += [("headline", marked_words(summarizer, test[i], best.ids, vocabulary))]
Passages(rows)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.on_sample else run_facts(trained, choice.origin(trained))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** The model has the style of headlines: who does what, without articles. Norbalt, Kestrel and Ostervik were invented for this page; it writes them all the same, by copying. **What does not work**: Velmora becomes
the United States, which so many dispatches are about; words are said twice; and ministers who failed to agree are "to agree on grain prices".
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**When you have read this page** you can say what a second read can do that a bidirectional encoder cannot, why it brings so little here, how a model writes a word that is in no vocabulary, and which of the paper's claims hold on these dispatches.

**Before you start**: PyTorch, and what [Start here](start_here.ipynb) explains: sequence to sequence with attention, copying, beam search, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | headlines, and which of their words are copied | 6 |
| 2 | a task that only copying can learn; what a second read adds | 10 |
| 3 | every equation as a short function, on a small model that has learned the task, checked against the library `lib` | 34 |
| 4 | real dispatches: scores, encoders, vocabularies, embeddings from context, time | 9 |
| 5 | the paper's claims in one table | 3 |
| 6 | six exercises | 45 |

Before this page: [Windowed attention](windowed.ipynb); next: [Mem2Mem](mem2mem.ipynb). The page runs in about a minute on two CPU cores and needs no network. With a `dataset` the shipped model writes
headlines of that corpus's test documents; with a `preset` the page trains a model first; with `run` it shows a run of yours.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. Two tasks with a known answer

## A task that only copying can learn

Dispatches of two sentences: an offer and the board's answer, in either order. The decoder's vocabulary $Y$ has the words *to*, *buy* and *rejects*, and no name. The offer says who buys whom, the answer which name begins the
headline. Small models (12 numbers a state) learn from 150 batches of 32 such dispatches, in a few seconds each; names are drawn at random, half of them unknown to the encoder as well.
"""

# %% slideshow={"slide_type": "subslide"}
toys = {}
for encoder in ("read-again gru", "read-again lstm", "option 1", "option 2"):
    toys[encoder] = learn(reader(seed, encoder), dispatch_batches(seed), RATE)
mute_toy = reader(seed, "read-again gru", copy=False)
without = learn(mute_toy, dispatch_batches(seed), RATE)

six = [dispatch(*parts) for parts in SIX]
written = headlines(toys["read-again gru"], six), headlines(without, six)
texts = [WRITTEN.text(d.source, d.unknown) for d in six]
pd.DataFrame({"with copying": written[0], "without": written[1]}, index=texts)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
unseen = dispatches(500, 10**7 + seed)
shares = {"with copying": toys["read-again gru"], "without": without}
for name, model in shares.items():
    print(
        f"whole headlines right, of 500 unseen: {100 * share_right(model, unseen):.0f}%, {name}"
    )

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Without copying the decoder has no name to write. With copying the small model writes names that it has never met. Over three seeds (`python -m companion.solve short_news`) every row that copies has at least 99.8% of unseen headlines right, without copying it is 0. Nothing else is needed: a model that reads once learns the task too, and so do one without attention and one whose decoder reads each copied name as [UNK], not as (15) has it.

One decoding step after the other: the darker a word of the text, the more the decoder attends to it. **Attention is not what is copied here**: the copy scores (16) are a second set of weights over the same words. In the shipped model the two prefer different words at 94 of the steps (400 dispatches; `companion.studies.importance`). Below, the words most probably generated, copied, and both together, $P$; in brackets how much of the probability each way has. No switch decides on that, see (17).

<details><summary>Predict: which word does the decoder look at before it writes the first name?</summary>

At *agrees*: this word decides whose name begins. But the model need not look there: without attention it learns the task as well.

</details>
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
@torch.no_grad()
def decoder_steps(model, document):
    """Steps of the reference, word by word."""
    batch, size = make_batch([document], len(WRITTEN)), len(WRITTEN)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    generated, copied = model.generate(output.features)[0].exp(), output.copy[0].exp()
    every, shown = [*WRITTEN.words, *document.unknown], []
    for t, word in enumerate(document.target):
        Z = generated[t].sum() + copied[t].sum()
        P_g, P_c = generated[t] / Z, torch.zeros(len(every))
        P_c = P_c.index_add(0, torch.from_numpy(document.source).long(), copied[t] / Z)
        P = P_c + torch.cat([P_g, torch.zeros(len(every) - size)])
        best = {
            f"generate ({P_g.sum():.2f})": best_words(P_g, every),
            f"copy ({P_c.sum():.2f})": best_words(P_c, every),
            "P": best_words(P, every),
        }
        shown.append(Step(every[word], output.attention[0, t].tolist(), best))
    return shown


sentences_of = np.split(
    np.array(texts[0].split()), six[0].sentence_lengths.cumsum()[:-1]
)
decoding_frames(sentences_of, decoder_steps(toys["read-again gru"], six[0]))

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What a second read adds

After one read, the state of a word knows this word and those before it. A **bidirectional** encoder lays a second state beside it, which knows the words after it. So there, too, each state depends on all words: what is left for
a second read? Three encoders with random weights read nine words. The maps show by how much the state of word $i$ moves when the embedding of word $j$ does.

<details><summary>Predict: which map is empty above the diagonal, and which are full?</summary>

That of reading once is empty: no state knows a later word. The other two are full, so these maps do not show what a second read adds; the table below them does.

</details>
"""

# %% slideshow={"slide_type": "skip"}
encoders = {
    "once": "gru", "bidirectional": "bidirectional gru", "read again": "read-again gru",
}  # fmt: skip
nine_words = EncodedDocument.of("nine words", range(4, 13), [9], [EOS])
maps, together = {}, {}
for name, encoder in encoders.items():
    torch.manual_seed(0)
    sizes = {"embedding": 4, "hidden": 6, "dropout": 0.0, "importance": "sigmoid"}
    nine = ReadAgain(ReadAgainConfig(13, 13, encoder=encoder, **sizes)).double()
    for parameter in nine.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    maps[name] = reach(nine, nine_words)  # |dh_i / dx_j|
    together[name] = {
        "words that state 5 depends on": int((maps[name][4] > 0).sum()),
        "words 3 and 8 together": f"{interaction(nine, nine_words, 4, 2, 7):.3g}",
    }

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
caption = (
    "How much the state of each word (rows) depends on the embedding of each word (columns):"
    " sizes of derivatives, encoders with random weights."
)
top = max(values.max().item() for values in maps.values())
axes = {
    "rows": list(range(1, 10)),
    "columns": list(range(1, 10)),
    "xlabel": "word j",
    "ylabel": "state i",
}
maps = [{"title": name, "values": values, **axes} for name, values in maps.items()]
figures.show(word_maps, caption, "read_again_reach", panels=maps, top=top, label="size")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
pd.DataFrame.from_dict(together, orient="index")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Above its diagonal the map of reading again is pale (0.002 to 0.079), not empty: later words come in through the importance alone (5). The table's last column asks about state 5 and words 3 and 8, one before and one after it: does what the one word does to the state depend on which word the other is? Its numbers are the largest mixed second derivatives. In a bidirectional encoder of one layer it
is **exactly 0**: its halves stand side by side and never meet, and the decoder has to combine the two words. In a second read they meet inside the state. This is the paper's argument for reading twice.

**A task made for a second read.** A text has one word of each of four kinds, in any order, between two numbers. Their sum, modulo four, names the kind that is asked for, and the headline is the text's word of this kind:
of `2 b1 d3 a0 c2 3` it is `b1`, because $2+3=5$ is 1 modulo 4 (kind a is 0). An encoder that reads in one direction knows the sum only after the words.
The decoder begins with the encoder's **last state** and attends to nothing, or it attends to **all states**. A model that knows the words and not the kind is right in 25 of 100.

<details><summary>Predict: which encoder is best with the last state alone, and what changes when all states are attended to?</summary>

With the last state alone reading once is worst; reading again and a bidirectional encoder cannot be told apart. With all states, reading once is enough.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
by_seed = {
    row: " / ".join(f"{100 * share:.0f}" for share in measures["right"])
    for row, measures in task_results("read_twice").items()
}
pd.DataFrame({"right words of 100, by seed": by_seed})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With the last state alone (`python -m companion.solve read_twice`), reading once is right in 67, 65, 56 of 100, a bidirectional encoder in 85, 81, 80, reading again in 74, 90, 84. So the
second read is better than one read, and we found no difference between it and a bidirectional encoder. (This setting was chosen after a single run of it, on other texts, in which reading again had 100 and the bidirectional encoder 84.)
With **all states**, reading once is right in 100, 100, 100 of 100. **This may be why the gain on Reuters (part 4) is small**: there the decoder attends to all states (14), so it has the whole text in any case. A synthetic task can support this hypothesis, but not show it for Reuters.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. The equations, on the small models that have learned

The paper is paraphrased, never quoted; (1) to (15) are its equations. It prints none for the copy distribution and the loss: (16) to (18) are this page's. Functions like `eq05_importance` are written to be read: one document, no batch, no
padding; weights come from the library's modules. They run here on the first text of part 2's table and on the models that learned there; words and dimensions are counted from 1. A green line says that
the same function agrees with the library, on models with random weights in double precision and a padded batch of three other texts; a difference would stop the page.

| symbol | shape | what |
|---|---|---|
| $n,\ T$ | | number of words of the text, of the headline |
| $e,\ d$ | | widths of embeddings and of states, both 12 in these models |
| $W,\ U,\ V,\ v,\ b$ | | weights, each with an index |
| $\mathbf x_i$ | $e$ | embedding of a source word, from the encoder's own table |
| $h^1_i,\ h^2_i$ | $d$ | state of word $i$ after the first, the second read |
| $\alpha_i$ | $d$ | importance of word $i$, for each dimension |
| $Y,\ \mathbf Y$ | | the decoder's vocabulary; its table of embeddings |
| $\mathbf y_t,\ s_t,\ c_t$ | $e,\ d,\ d$ | embedding of headline word $t$; state of the decoder; context |
| $\beta_{it}$ | scalar | attention to word $i$ at step $t$ |
| $\mathbf p_i$ | $e$ | embedding of source word $i$ from its context (no probability: this model has no switch $p_t$) |
| $g_w,\ k_i$ | scalar | score of generating $w\in Y$; of copying word $i$ |
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
show_model("read_again")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
# Models with random weights, larger than usual so that every mistake shows, and texts of different lengths.
random_texts = [
    Document("a", "", [""], [["The cat saw a zebra.", "It ran."]], ["Cat saw zebra."]),
    Document("b", "", [""], [["A quokka sat."]], ["Quokka sat."]),
    Document(
        "c", "", [""],
        [["The zebra ran and the zebra sat.", "The cat did not see it."]],
        ["Okapi, not zebra."],
    ),
]  # fmt: skip
random_Y = Vocabulary(["the", "cat", "sat", "saw", "ran", "."])
random_read = Vocabulary([*random_Y.words[4:], "a", "it", "and", "not", "did", "zebra"])
ragged = TextEncoder(HeadlineOptions(sentences=2), random_Y, random_read).encode(
    random_texts
)
batch = make_batch(ragged, len(random_Y))


def random_model(**changes):
    torch.manual_seed(1)
    sizes = {
        "source_vocab_size": len(random_read), "embedding": 4, "hidden": 3, "dropout": 0.0,
    }  # fmt: skip
    model = ReadAgain(ReadAgainConfig(len(random_Y), **{**sizes, **changes})).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


random_models = {name: random_model(encoder=name) for name in ENCODERS}
random_states = {name: model.encode(batch) for name, model in random_models.items()}
for model in toys.values():
    model.double()


def compare_states(name, equation, what, states_of):
    """Word states of every text: `states_of` (document, model) against the library's."""
    for b, document in enumerate(ragged):
        ours = random_states[name].words[b, : len(document.source)]
        checks.close(states_of(document, random_models[name]), ours, equation, what)


# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) to (3), (7) The first read makes a vector of the text

A GRU or an LSTM from left to right; its last state $h^1_n$ stands for the text. Without it the second read could not know more than the first one. (The functions below compute PyTorch's cell, not (3) as printed: its gate keeps the old state where the paper's takes the new one, which only changes what the weights mean, and its reset gate comes after the product, which makes a slightly different cell.)

$$h^1_i=\mathrm{RNN}(\mathbf x_i,h^1_{i-1})\tag{1}$$

$$h^1_i=\mathrm{GRU}^1(\mathbf x_i,h^1_{i-1})\tag{2}$$

$$\begin{gathered}z_i=\sigma(W_z[\mathbf x_i,h^1_{i-1}])\\
r_i=\sigma(W_r[\mathbf x_i,h^1_{i-1}])\\
\tilde h^1_i=\tanh(W_h[\mathbf x_i,r_i\odot h^1_{i-1}])\\
h^1_i=(1-z_i)\odot h^1_{i-1}+z_i\odot\tilde h^1_i\end{gathered}\tag{3}$$

$$\begin{gathered}in_i,\ f_i,\ out_i=\sigma(W_{in,f,out}[\mathbf x_i,h^1_{i-1}])\\
\tilde C_i=\tanh(W_C[\mathbf x_i,h^1_{i-1}])\\
C_i=f_i\odot C_{i-1}+in_i\odot\tilde C_i\\
h^1_i=out_i\odot\tanh C_i\end{gathered}\tag{7}$$
"""


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


# %% slideshow={"slide_type": "skip"}
toy, words = six[0], texts[0].split()
source, n, T = toy.source.tolist(), len(toy.source), len(toy.target)
model = toys["read-again gru"]
x = embeddings(model, toy)
h1 = eq02_read(x, model.first_read)
z, new = eq03_gates(x[2], h1[1], model.first_read)  # word 3
dimension = (z * new).abs().argmax()  # that it changes most

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for name in ("gru", "lstm"):
    compare_states(
        name, "(2), (3), (7)", f"states of one read, {name}",
        lambda document, model: eq02_read(embeddings(model, document), model.first_read),
    )  # fmt: skip
checks.line(
    f"Word 3, {words[2]}, dimension {dimension + 1}: z = {z[dimension]:.2f}, so that"
    f" {1 - z[dimension]:.2f} · {h1[1, dimension]:.2f} + {z[dimension]:.2f} · {new[dimension]:.2f} = {h1[2, dimension]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (5) The importance of a word comes from the whole text

The GRU of the second read reads the same words as the first one. What it gets from the first read is the importance $\alpha_i$ alone: without it, the second read would be a first read again, and the right map of part 2 would be the left one. The importance is computed from the word's
own state, the state of the whole text, and the word; each dimension has one of its own.

$$\alpha_i=\tanh\big(W_eh^1_i+U_eh^1_n+V_e\mathbf x_i\big)\tag{5}$$

With $\tanh$ it may be negative; then the state can grow without bound (4). `importance="sigmoid"` keeps it positive; all presets but `paper` use it, and so do the small models.
"""


# %% slideshow={"slide_type": "skip"}
def eq05_importance(h1_i, h1_n, x_i, model):
    W_e, b_e = model.importance_word.weight, model.importance_word.bias
    U_e, V_e = model.importance_text.weight, model.importance_input.weight
    squash = getattr(torch, model.config.importance)  # tanh or sigmoid
    return squash(W_e @ h1_i + b_e + U_e @ h1_n + V_e @ x_i)


alpha = torch.stack([eq05_importance(h1[i], h1[-1], x[i], model) for i in range(n)])


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def importance_of(document, model):
    x = embeddings(model, document)
    h1 = eq02_read(x, model.first_read)
    return torch.stack(
        [eq05_importance(h, h1[-1], x_i, model) for h, x_i in zip(h1, x)]
    )


for b, document in enumerate(ragged):
    lib_alpha = random_states["read-again gru"].importance[b, : len(document.source)]
    ours = importance_of(document, random_models["read-again gru"])
    checks.close(ours, lib_alpha, "(5)", "importance")
mean_alpha = alpha.mean(1)
most, least = mean_alpha.argmax(), mean_alpha.argmin()
checks.line(
    f"Mean α over the {alpha.shape[1]} dimensions: from {mean_alpha[least]:.2f}"
    f" (word {least + 1}, {words[least]}) to {mean_alpha[most]:.2f} (word {most + 1}, {words[most]})."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The paper's Figure 4 draws the importance of a trained model. Ours is the Read-Again GRU with copying of Table 1 below (seed 0, sigmoid; another model than part 1's), on the first sentences of part 1.

<details><summary>Predict: which words are important to it, and is any word passed over?</summary>

*Strike*, *price* and *discount* are dark, and so are *to* and *it*; articles, full stops and the first word of each text are light. Whether something is passed over a mean cannot show: the histogram below does.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
trained_importance = saved("read_again_figure4")
caption = (
    "(5) in a trained GRU that reads again and copies: the mean of α over its dimensions in"
    " the first sentences of the six dispatches; above each text the headline it writes."
)
drawn = {key: trained_importance[key] for key in ("panels", "label")}
figures.show(shaded_words, caption, **drawn)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The means lie between 0.59 and 0.70. That is a mean over gates that are mostly open or shut: α has a value for each dimension. The histogram counts these values, in two such models on 400 dispatches and in this page's small model.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
by_effect = {
    row["change"]: row for row in saved("importance_read_again_reuters")["changes"]
}
of_small = (
    np.histogram(alpha.detach().numpy(), np.linspace(0, 1, 11))[0] / alpha.numel()
)
middles = [round(0.05 + 0.1 * i, 2) for i in range(10)]
shares_of = {
    f"on Reuters, seeds {by_effect['below 0.1']['seeds']}": by_effect["below 0.1"][
        "histogram"
    ],
    "the small model": of_small,
}
panel = {
    "series": {name: [middles, [100 * share for share in shares]] for name, shares in shares_of.items()},
    "xlabel": "importance α of a word in a dimension", "ylabel": "percent of the values", "zero": True,
}  # fmt: skip
caption = "Importance as it is, not averaged: how often α has which value."
figures.show(lines, caption, "read_again_importance", panels=[panel])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
asked = [
    "first word",
    "first word, same word",
    "rarer words",
    "unknown words",
    "importance averaged",
    "text not told",
]
rows = {
    name: {
        "what": by_effect[name]["what"],
        "mean [95%]": "{mean:+.3f} [{low:+.3f}, {high:+.3f}]".format(**by_effect[name]),
    }
    for name in asked
}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** On Reuters 8% of the values are below 0.1 and 40% above 0.9: every word is passed over in some dimensions and read in full in others, and no mean shows that.
The table takes place and kind apart. The first word of a text has less importance than the others, and most of this remains if it is compared with the same word at other places: it is the place, not the kind of word. At the same places, rarer words have 0.017 more than the 50 most frequent ones. That is the paper's picture, but a small part of the range. The headlines depend on it little: with the mean importance in place of each word's own, the references lose 0.038 nats a word, and without the vector of the text 0.046.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (4), (6) The second read of a GRU goes only part of the way

The importance controls a skip connection: at 0 the word is passed over, at 1 the step is that of a plain GRU. (6) is (4) with that step (3) written out; the gate becomes $\alpha_i\odot z_i$.

$$h^2_i=(1-\alpha_i)\odot h^2_{i-1}+\alpha_i\odot\mathrm{GRU}^2(\mathbf x_i,h^2_{i-1})\tag{4}$$

$$h^2_i=(1-\alpha_i\odot z_i)\odot h^2_{i-1}+(\alpha_i\odot z_i)\odot\tilde h^2_i\tag{6}$$

**By hand**, for one dimension: the state before is 1, the gate $z$ is 0.6, the proposal $\tilde h$ is 0. A plain GRU goes to $0.4\cdot1+0.6\cdot0=0.4$. With $\alpha=0.5$, (4) goes half of that way:
$0.5\cdot1+0.5\cdot0.4=0.7$; and (6) has the gate $0.5\cdot0.6=0.3$: $0.7\cdot1+0.3\cdot0=0.7$. With $\alpha=-0.5$ both give 1.3: the state grows, and does so at every word (to 50 after 50 random words: last line of this part).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("read_again", {2, 4, 5, 6})


# %% slideshow={"slide_type": "skip"}
def eq04_second_read(x, alpha, gru):
    """Embeddings [n, e], importance [n, d], a torch.nn.GRU -> states [n, d]."""
    h, states = torch.zeros(gru.hidden_size).double(), []
    for x_i, alpha_i in zip(x, alpha):
        _, plain = gru(x_i[None], h[None])
        h = (1 - alpha_i) * h + alpha_i * plain[0]
        states.append(h)
    return torch.stack(states)


def eq06_step(x_i, alpha_i, h, gru):
    z, new = eq03_gates(x_i, h, gru)
    return (1 - alpha_i * z) * h + alpha_i * z * new


h2 = eq04_second_read(x, alpha, model.second_read.gru)
step_3 = eq06_step(x[2], alpha[2], h2[1], model.second_read.gru)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def second_read_of(document, model):
    x = embeddings(model, document)
    return eq04_second_read(x, importance_of(document, model), model.second_read.gru)


def merged_read_of(document, model):
    states, h = [], torch.zeros(model.config.hidden).double()
    for x_i, alpha_i in zip(
        embeddings(model, document), importance_of(document, model)
    ):
        h = eq06_step(x_i, alpha_i, h, model.second_read.gru)
        states.append(h)
    return torch.stack(states)


def by_lib(alpha):
    """The step by hand, from the library's scan."""
    gates = torch.tensor([[0.0, np.log(0.4 / 0.6), 0.0]]).double()  # PyTorch's z: 0.4
    one, nothing = torch.ones(1, 1).double(), torch.zeros(3, 1).double()
    states, _ = gru_scan(gates, alpha * one, one, nothing, nothing[:, 0], [1])
    return states[0]


by_hand = torch.tensor([0.7, 1.3], dtype=torch.float64)
checks.close(
    by_hand,
    torch.stack([by_lib(0.5), by_lib(-0.5)]).flatten(),
    "(4), (6)",
    "a step by hand",
)
compare_states(
    "read-again gru", "(4), (6)", "states of the second read", second_read_of
)
compare_states("read-again gru", "(4), (6)", "the two forms are one", merged_read_of)
# the same dispatch with another last but one word
refused = dispatch(*SIX[0][:4], False)
moves = {}
for name, states_of in {
    "first": lambda d: eq02_read(embeddings(model, d), model.first_read),
    "second": lambda d: second_read_of(d, model),
}.items():
    moves[name] = (states_of(toy)[2] - states_of(refused)[2]).abs().max().item()
checks.line(
    f"Word 3, {words[2]}, dimension {dimension + 1}: (4) and (6) both give {step_3[dimension]:.3f}."
    f" With refuses in place of agrees (word 13) its state moves by {moves['first']:.0f} after the first read,"
    f" by up to {moves['second']:.3f} after the second."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (8) The second read of an LSTM is told what the first one knew

Through the importance alone little of the last sentence reaches word 3 in this model. The LSTM's second read has no importance: its gates see the word, the word's state after the first read, and the vector of the text.

$$h^2_i=\mathrm{LSTM}^2\big([\mathbf x_i,h^1_i,h^1_n],h^2_{i-1}\big)\tag{8}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq08_second_read(x, h1, second):
    again = torch.stack([torch.cat([x[i], h1[i], h1[-1]]) for i in range(len(x))])
    return eq02_read(again, second)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def lstm_read_of(document, model):
    x = embeddings(model, document)
    return eq08_second_read(x, eq02_read(x, model.first_read), model.second_read)


compare_states("read-again lstm", "(8)", "states of the second read", lstm_read_of)
lstm = toys["read-again lstm"]
moved = (lstm_read_of(toy, lstm)[2] - lstm_read_of(refused, lstm)[2]).abs().max()
checks.line(
    "12 + 12 + 12 numbers enter at each word."
    f" With refuses in place of agrees the state of word 3 moves by up to {moved:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (9) to (11) Several sentences tell each other what they say

Each sentence is read on its own; if that were all, its states could not depend on another sentence. **Option 1** gives its second read the vectors
of all sentences, concatenated. **Option 2** makes one vector of them all, and gives each sentence its own vector and this one. The paper
has two sentences, and (9) and (11) are of the first one; here there are as many places as the configuration says, and places without a sentence hold zeros. $h'^1_m$ is the last state of the second sentence, of $m$ words.

$$h^2_i=\mathrm{RNN}^2\big([\mathbf x_i,h^1_i,h^1_n,h'^1_m],h^2_{i-1}\big)\tag{9}$$

$$h_{global}=\tanh\big(W_rh^1_n+U_rh'^1_m+v_r\big)\tag{10}$$

$$h^2_i=\mathrm{RNN}^2\big([\mathbf x_i,h^1_i,h^1_n,h_{global}],h^2_{i-1}\big)\tag{11}$$
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("read_again", {8, 9, 10, 11})


# %% slideshow={"slide_type": "skip"}
def eq09_option_1(texts):
    """What a sentence has beside its words: the vectors of all, in order."""
    return torch.cat(texts)


def eq10_global(texts, model):
    layer = model.global_text
    return torch.tanh(layer.weight @ torch.cat(texts) + layer.bias)


def eq11_option_2(own, texts, model):
    return torch.cat([own, eq10_global(texts, model)])


# %% slideshow={"slide_type": "skip"}
def read_sentences(x, lengths, model):
    """Embeddings [n, e] -> states [n, d], and where the decoder starts from [d]."""
    parts = x.split(lengths)
    first = [eq02_read(part, model.first_read) for part in parts]
    texts = [states[-1] for states in first]
    texts += [torch.zeros_like(texts[0])] * (model.config.sentences - len(texts))
    second = []
    for part, h1 in zip(parts, first):
        if model.config.encoder == "option 1":
            beside = eq09_option_1(texts)
        else:
            beside = eq11_option_2(h1[-1], texts, model)
        again = torch.cat([part, h1, beside.expand(len(part), -1)], 1)
        second.append(eq02_read(again, model.second_read))
    return torch.cat(second), torch.stack([h2[-1] for h2 in second]).mean(0)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def sentences_read_of(document, model):
    lengths = document.sentence_lengths.tolist()
    return read_sentences(embeddings(model, document), lengths, model)[0]


moves = {}
for name in ("option 1", "option 2"):
    compare_states(
        name, "(9)-(11)", f"states of the second read, {name}", sentences_read_of
    )
    states = [sentences_read_of(d, toys[name])[2] for d in (toy, refused)]
    moves[name] = (states[0] - states[1]).abs().max()
two, one = random_models["option 2"], random_model(encoder="option 2", sentences=1)
weights = two.state_dict()
weights["global_text.weight"] = weights["global_text.weight"][:, :3]
one.load_state_dict(weights)
single = make_batch([ragged[1]], len(random_Y))
checks.close(
    one.loss(single)["loss"],
    two.loss(single)["loss"],
    "(9)-(11)",
    "option 2 with one sentence",
)
checks.line(
    "With refuses in the second sentence, the state of word 3 in the first one moves by up to "
    + ", ".join(f"{moved:.2f} ({name})" for name, moved in moves.items())
    + "."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (15) An unknown word is embedded by its context

Without this, all names would enter the decoder as the same symbol. A word of $Y$ has its row of the table; another word of the text is embedded by its state there, at its first place; any other is [UNK]. The result enters (12), below.

$$\mathbf y=\begin{cases}\mathbf Y[w]&w\in Y\\ \mathbf p_i=\tanh(W_ch^2_i+b_c)&w\notin Y,\ w=x_i\\
\mathbf Y[\mathrm{UNK}]&\text{otherwise}\end{cases}\tag{15}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq15_from_context(h2_i, model):
    return torch.tanh(model.word.weight @ h2_i + model.word.bias)


def eq15_embedding(word, source, h2, model):
    if word < model.config.vocab_size:
        return model.target_embedding.weight[word]
    if word in source:
        return eq15_from_context(h2[source.index(word)], model)
    return model.target_embedding.weight[UNK]


p = torch.stack([eq15_from_context(h2_i, model) for h2_i in h2])
inputs = [BOS, *toy.target[:-1].tolist()]
y = torch.stack([eq15_embedding(word, source, h2, model) for word in inputs])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for name in ("read-again gru", "read-again lstm"):
    for b, document in enumerate(ragged):
        count = len(document.source)
        state = random_states[name]
        ours = torch.stack(
            [eq15_from_context(h, random_models[name]) for h in state.words[b, :count]]
        )
        checks.close(
            ours, state.embedded[b, :count], "(15)", "embeddings of source words"
        )


def by_role(model):
    """p of the one who buys and of the one who is bought, in each of the six, [2, 6, e]."""
    pairs = []
    for document, (_, first, second, buys, *_) in zip(six, SIX):
        names = [first, second] if buys else [second, first]
        ids = [len(WRITTEN) + document.unknown.index(name) for name in names]
        states = second_read_of(document, model)
        places = [document.source.tolist().index(word) for word in ids]
        pairs.append(torch.stack([eq15_from_context(states[i], model) for i in places]))
    return torch.nn.functional.normalize(torch.stack(pairs, 1), dim=-1)


buyers, others = by_role(model)
pairs_of_buyers = (buyers @ buyers.T)[~torch.eye(6, dtype=bool)].mean()
across = (buyers @ others.T).mean()
checks.line(
    f"Mean cosine in the six dispatches: {pairs_of_buyers:.2f} between p of two who want to buy,"
    f" {across:.2f} between p of one who buys and of one who is to be bought."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (12) to (14) The decoder looks before it steps

Attention comes first and uses the state of the step **before**. Each word gets a score $o_{it}$ (14), a softmax makes weights of them, and the context that these give (13) enters the LSTM together with the word. Without attention a text must fit in the encoder's last state: in the second task of part 2 that cost an encoder that reads once 33 to 44 words of 100.

$$s_t=\mathrm{LSTM}\big([\mathbf y_{t-1},c_t],s_{t-1}\big)\tag{12}$$

$$c_t=\sum_i\beta_{it}h^2_i,\qquad\beta_{\cdot t}=\mathrm{softmax}(o_{\cdot t})\tag{13}$$

$$o_{it}=v_a^\top\tanh\big(W_as_{t-1}+U_ah^2_i\big)\tag{14}$$

The paper does not say where the decoder starts. Here its first state comes from a layer with $\tanh$ on the encoder's last state (in options 1 and 2, the mean of the sentences' last states).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
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
    cell, outputs, attention = torch.zeros_like(s), [], []
    for y_t in y:
        beta, c = eq13_context_of(eq14_attention_scores(s, h2, model), h2)
        s, cell = eq12_next_state(y_t, c, s, cell, model.decoder)
        outputs.append(s)
        attention.append(beta)
    return torch.stack(outputs), torch.stack(attention)


s, beta = decoder_states(y, h2, h2[-1], model)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def fed_to(document, h2, model):
    """What enters the decoder when it writes the reference [T, e]."""
    fed = [BOS, *document.target[:-1].tolist()]
    return torch.stack(
        [eq15_embedding(w, document.source.tolist(), h2, model) for w in fed]
    )


name = "read-again lstm"
random_output, _ = random_models[name].decode(batch.target_input, random_states[name])
for b, document in enumerate(ragged):
    states = lstm_read_of(document, random_models[name])
    fed = fed_to(document, states, random_models[name])
    _, ours = decoder_states(fed, states, states[-1], random_models[name])
    lib_beta = random_output.attention[
        b, : len(document.target), : len(document.source)
    ]
    checks.close(ours, lib_beta, "(12)-(14)", "attention of all steps")
top_two = beta[0].topk(2).indices.tolist()
checks.line(
    "Before the first word the decoder looks most at "
    + " and ".join(f"word {i + 1}, {words[i]} ({beta[0, i]:.2f})" for i in top_two)
    + f"; all {n} weights sum to {beta[0].sum():.0f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (16), (17) Generate or copy: one softmax, no switch

One softmax over the words of $Y$ **and** the places of the text, as the paper says. The
equations are CopyNet's rule (Gu et al. 2016), with $\mathbf p_i$ as the key of a place; $\mathbf o_w$ and $b_w$ are the row of word $w$ in the output layer $W_o$ and its bias (not the $o_{it}$ of (14)). A word of $Y$ that stands in the text gets both shares, and a word that stands there twice the shares of both places. $Z$ is the sum of all exponentials. The model of part 2 that learned without the scores $k_i$ has no headline right.

$$g_w=\mathbf o_w^\top s_t+b_w,\qquad k_i=\mathbf p_i^\top W_ks_t\tag{16}$$

$$P(w)=\frac1Z\Big([w\in Y]\,e^{g_w}+\sum_{i:x_i=w}e^{k_i}\Big)\tag{17}$$
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("read_again", {15, 16, 17})


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
P = torch.stack([eq17_joint(g, k, source, len(toy.unknown)) for g, k in scored])


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def distribution_of(document, states, model):
    """P over Y and the unknown words at each step of the reference."""
    p = torch.stack([eq15_from_context(h, model) for h in states])
    s, _ = decoder_states(fed_to(document, states, model), states, states[-1], model)
    unknown, ids = len(document.unknown), document.source.tolist()
    return torch.stack(
        [eq17_joint(*eq16_scores(s_t, p, model), ids, unknown) for s_t in s]
    )


for b, document in enumerate(ragged):
    ours = distribution_of(
        document, lstm_read_of(document, random_models[name]), random_models[name]
    )
    steps_of = len(document.target)
    lib_log_P = [
        random_models[name].log_prob(
            random_output, torch.full_like(batch.target, w), random_states[name]
        )
        for w in range(ours.shape[1])
    ]
    lib_P = torch.stack([log_P[b, :steps_of] for log_P in lib_log_P], 1).exp()
    checks.close(ours, lib_P, "(16), (17)", "P over Y and the words of the text")
    checks.close(
        torch.ones(steps_of), ours.sum(1), "(16), (17)", "each row of P sums to 1"
    )
mute = random_model(copy=False)
mute_output, mute_after = mute.decode(batch.target_input, mute.encode(batch))
mute_P = mute.distribution(mute_output, mute_after, max(map(len, batch.unknown)))
outside = mute_P[:, len(random_Y) :]
checks.close(
    torch.zeros(outside.shape), outside, "(16), (17)", "no copying: nothing outside Y"
)
last = T - 2  # the step that writes the last name
places = [i for i in range(n) if source[i] == toy.target[last]]
g, k_last = scored[last]
share = torch.exp(k_last) / (torch.exp(g).sum() + torch.exp(k_last).sum())
checks.line(
    f"Step {last + 1}: P({words[places[0]]}) = "
    + " + ".join(f"{share[i]:.3f} (word {i + 1})" for i in places)
    + f" = {P[last, toy.target[last]]:.3f}; all words together have {P[last].sum():.0f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**One whole step of the decoder**, in the order in which it is computed:

```python
if word in Y: y = table[word]                      # (15)
elif word in text: y = p[first place of word]
else: y = table[UNK]
o = [v_a @ tanh(W_a s + U_a h2[i]) for i in range(n)]  # (14), s: the state before
beta = softmax(o)                                  # (13)
c = sum(beta[i] * h2[i] for i in range(n))
s, cell = LSTM([y; c], (s, cell))                  # (12)
g = W_o s + b; k = [p[i] @ W_k s for i in range(n)]  # (16)
copied = sum(exp(k[i]) for i where x[i] == word)   # (17)
P(word) = ([word in Y] exp(g[word]) + copied) / (sum(exp(g)) + sum(exp(k)))
```
"""

# %% [markdown] slideshow={"slide_type": "skip"}
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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for name, one in random_models.items():
    naive_loss = sum(eq18_objective(document, one) for document in ragged) / len(ragged)
    lib_loss = one.loss(batch)["loss"]
    checks.close(naive_loss, lib_loss, "(18)", f"loss of the padded batch, {name}")
    checks.gradients(gradients(one, naive_loss), gradients(one, lib_loss), "(18)")
right = P[range(T), toy.target]
checks.line(
    "−log P of the words and of [EOS]: ("
    + " + ".join(f"{-torch.log(probability):.4f}" for probability in right)
    + f") / {T} = {eq18_objective(toy, model):.4f}. Losses and all gradients, every encoder:"
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
torch.manual_seed(0)
scan = GatedGRU(4, 3).double()
inputs_of_scan, ones = torch.randn(2, 7, 4).double(), torch.ones(2, 7, 3).double()
plain, nothing = scan.gru(inputs_of_scan)[0], torch.zeros(2, 7, 3)
checks.close(plain, scan(inputs_of_scan, ones), "(4)", "importance 1: a plain GRU")
checks.close(
    nothing, scan(inputs_of_scan, 0 * ones), "(4)", "importance 0: nothing is read"
)
long_text, longer_ones = torch.randn(1, 50, 4).double(), torch.ones(1, 50, 3).double()
largest = {
    a: scan(long_text, a * longer_ones).abs()[0, -1].max().item() for a in (0.5, -0.5)
}
for name, one in random_models.items():
    one_by_one, running = [], one.encode(batch)
    for fed, target in zip(batch.target_input.split(1, 1), batch.target.split(1, 1)):
        one_output, running = one.decode(fed, running)
        one_by_one.append(one.log_prob(one_output, target, running))
    at_once, after = one.decode(batch.target_input, one.encode(batch))
    whole, parts = one.log_prob(at_once, batch.target, after), torch.cat(one_by_one, 1)
    checks.close(parts, whole, "(2)-(17)", f"T calls equal one call, {name}")
checks.line(
    "Importance 1 everywhere is a plain GRU, importance 0 reads nothing;"
    " a decoder gives the same word by word as at once."
    f" After 50 random words the largest number of a state is {largest[0.5]:.2g} with α = 0.5,"
    f" {largest[-0.5]:.2g} with α = −0.5."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.table()

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 4. Real dispatches

## Scores

ROUGE F1 in percent with 95% bootstrap intervals over documents; of the shipped model on 1,106 test dispatches of Reuters, all later than those that it learned from (`python -m companion.trained score read_again`), unless the parameters choose other documents. *Lead (8 words)*: the first eight words of the text; *repeated*: trigrams that a headline says twice; *trigram blocking* forbids them.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
if choice.on_sample:
    scores = table_frame(kept_table("trained_read_again"))
    scores = scores.drop(columns="distinct").drop(index="References")
    differences = None
else:
    written = summarize(summarizer, test, vocabulary, decode, batch_size=64)
    first = [vocabulary.decode(d.source[:8].tolist(), d.unknown) for d in test]
    systems = {
        "Lead (8 words)": [[" ".join(words_8)] for words_8 in first],
        trained.config["variant"]: written,
    }
    scores, parts = summary_table(systems, documents, options, None, seed)
    lead, ours = systems
    differences = compare_means(parts, ours, [lead], seed)
scores

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
differences

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** The model is 13.5 points of R-1 above the first eight words. Trigram blocking adds 0.75.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Encoders (Table 1)

Each row learned from the 13,898 dispatches for six epochs, with three seeds, at width 128. [ABS](baselines.ipynb) has no recurrence; options 1 and 2 read two sentences. The vocabulary $Y$ has 2,500 words
where a row says 15K, and all 9,873 words of the training headlines where it says 69K. *Published* (R-1 / R-2 / sentence-level R-L) is of Gigaword, whose texts and sizes are others: compare differences, not levels.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: what is worth more, a second read or copying?</summary>

Copying, by far: 27 to 30 points of R-1.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
numbers_1 = kept_table("read_again_table1_reuters")
table_frame(numbers_1)[["R-1", "R-2", "words", "published"]]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
pairs_frame(numbers_1)[["R-1", "R-2"]]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** Copying is worth 27 to 30 points of R-1, more than ten times the paper's gain. It measures something else here: 13,898 headlines are too few to learn names without copying, and those rows stay below the first eight words of the text, which have 29. More than half of the gain is knowing which words to choose from: in recall (75 bytes) rows without copying have 6 to 10, words-lvt2k, which may write only its text's words and frequent ones, 30.1, Read-Again 40.7 ([Table 2](../docs/papers/read_again.md#table-2)).
Reading again is worth 0.8 points to a GRU that chooses from all words (p < 0.01; the paper: 0.5). It is the only one of five comparisons with a gain, so p is 0.03 after a correction for five. With 2,500 words we found none (-0.3 [-0.9, +0.4]; the paper: 0.4),
nor with an LSTM or with copying ([three pairs](../docs/papers/read_again.md#reading-once-or-twice): -0.6 to +0.4, p 0.18 and more; not in the paper). Against a bidirectional encoder, the paper's own argument, we found no gain either (-0.2 [-0.9, +0.4]; [table](../docs/papers/read_again.md#reading-once-or-twice)). Nor does a second sentence help (-0.6, p 0.14; the paper: 0.6).
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## The decoder's vocabulary (Table 3)

R-1 of the Read-Again LSTM, the same corpus and training. Where a row says 2K, 5K, 15K and 30K, $Y$ has the 500, 1,000, 2,500 and 5,000 most frequent words of the training headlines.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
numbers_3 = table_frame(kept_table("read_again_table3_reuters"))
r1_by_size: dict = {}
for label, row in numbers_3.iterrows():
    name, _, size = label.partition(", ")
    way = "with copying" if "copy" in name else "without copying"
    cells = r1_by_size.setdefault(size, {})
    cells[f"here, {way}"] = row["R-1"]
    cells[f"published, {way}"] = row["published"].partition(" /")[0]
r1_table = pd.DataFrame.from_dict(r1_by_size, orient="index")
r1_table[sorted(r1_table)].rename_axis("|Y|")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** With copying, we found no difference between 500 words and all (41.2 and 40.9 R-1): what is not in $Y$ is copied. In the paper 2K words cost 3.7 R-1 (its text says two to three points). Without copying, more words do not help either (11.2 to 12.1 R-1):
most words occur too rarely in 13,898 headlines to be learned. In the paper, with millions of headlines, they bring 13 points. So the contrast on which the paper's argument rests cannot be tested here.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Embeddings from context (15)

Of one example the paper says that $\mathbf p_i$ of a rare word (*headmaster*) is probably closely related to the embedding of a similar one (*teacher*), because the decoder goes on in the same way. First the neighbours: the table lists names that the shipped decoder does not know, and the words of $Y$ whose embeddings are nearest (by cosine).
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
def neighbours(document, count=4):
    """Unknown words of a document, each with its neighbours in Y."""
    size, ids = len(vocabulary), document.source.tolist()
    places = [ids.index(size + j) for j in range(len(document.unknown))]
    p = trained.model.encode(make_batch([document], size)).embedded[0, places]
    near = (vocabulary.decode(ids, []) for ids in nearest(trained.model, p, count))
    return dict(zip(document.unknown, map(" ".join, near)))


named = {}
if choice.on_sample:
    every = {}
    for document in test:
        every |= neighbours(document)
    unknown_names = ["norbalt", "tessera", "velmora", "kestrel", "ostervik", "abidjan"]
    named = {word: {"nearest words of Y": every[word]} for word in unknown_names}
pd.DataFrame.from_dict(named, orient="index") if named else None

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
What would be similar to an invented name? So **known words are hidden**: the encoder reads [UNK] where the word stands. Two questions follow (`python -m companion.studies.hidden_words trained/read_again`):

* *Near*: the word's own row of $\mathbf Y$ is ranked among all rows by its cosine with $\mathbf p_i$. The table has the share of rows that are nearer, in percent. The control is the $\mathbf p$ of another hidden word of the text.
* *Used alike*, which is what the paper means: the decoder reads the reference up to the hidden word and then $\mathbf p_i$, or something else. How far are its distributions of the next word from those after the word's own embedding, or after that of the most similar word? (Jensen-Shannon divergence, in nats.)

Last, how much the log-probability of the references falls, in nats a word, without $\mathbf p_i$ or without copying (`python -m lib.intervene trained/read_again`). One run, the shipped one; docstrings are a kind of text that it was not trained on; 95% intervals over documents.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: after which embedding does the decoder go on most as after the hidden word itself: its p, the p of another hidden word, or [UNK]?</summary>

After its own p, but by a tenth only: 0.083 nats from the word itself, and 0.093 and 0.092 after the two others.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
endings = {"docstrings": "", "Reuters": "_reuters"}
asked_of = {
    "hidden_words_read_again": {
        "word read": "near, %: the encoder reads the word",
        "word hidden": "near, %: the word is hidden",
        "another hidden word": "near, %: p of another hidden word",
        "another hidden word - word hidden": "near, %: difference of these two",
        "p and the word": "next words, nats: p and the word itself",
        "another p and the word": "next words, nats: another p and the word itself",
        "[UNK] and the word": "next words, nats: [UNK] and the word itself",
        "p and a random word": "next words, nats: p and a random word",
        "p and a similar word": "next words, nats: p and the most similar word",
        "another p and a similar word": "next words, nats: another p and the most similar word",
    },
    "interventions_read_again": {
        "no copying": "nats: every word is generated",
        "[UNK] fed back": "nats: [UNK] enters in place of p",
    },
}
columns = {}
for corpus_name, ending in endings.items():
    cells = columns.setdefault(corpus_name, {})
    for file, labels in asked_of.items():
        changes = {row["change"]: row for row in saved(file + ending)["changes"]}
        for change, label in labels.items():
            row = changes[change]
            mean = row.get("difference", row["mean"])
            form = (
                "{:.2f} [{:.2f}, {:.2f}]"
                if "near" in label
                else "{:.3f} [{:.3f}, {:.3f}]"
            )
            cells[label] = form.format(mean, row["low"], row["high"])
pd.DataFrame(columns)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** *Near*: on Reuters 49.5% of the rows are nearer to $\mathbf p_i$ than the hidden word's own, and 52.0% to the $\mathbf p$ of another hidden word. The difference is certain and very small: 2.5 points [1.8, 3.2]. *Used alike*: after $\mathbf p_i$ the next words are 0.083 nats from those after the word itself; after another word's $\mathbf p$ 0.093, and after [UNK] 0.092. So $\mathbf p_i$ carries a little of its word.
The nearest word in $\mathbf Y$ is no similar word in this small model: the next words after it are farther from those after $\mathbf p_i$ than the next words after a random word of like frequency (0.133 and 0.111 nats). So the paper's example cannot be tested here as it stands.
In the references $\mathbf p_i$ is worth 0.014 nats a word on Reuters and 0.064 on docstrings, beside 3.2 and 0.6 for copying itself (counted on the words of $Y$ only).
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Decoding time (Table 4)

Seconds that beam search (beam 10) takes for a text of 30 words and a headline of 8: the median of five, with the fastest and the slowest. The model has the paper's width and random weights, which take as long as learned ones.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def seconds_a_headline(size, copy, repeats=5):
    """Sorted times of beam search for one headline."""
    model = ReadAgain(ReadAgainConfig(size, source_vocab_size=5_000, copy=copy))
    text = np.arange(100, 130, dtype=np.int32)
    parts = text, np.array([30], np.int32), np.array([5, EOS], np.int32)
    batch = make_batch([EncodedDocument("x", *parts, [], [], text)], size)
    config, taken = DecodeConfig(beam=10, min_length=8, max_length=8), []
    for _ in range(repeats):
        started = time.perf_counter()
        beam_search(model, batch, config)
        taken.append(time.perf_counter() - started)
    return sorted(taken)


sizes_4 = (2_000, 5_000, 15_000, 30_000, 69_000)
ways = {"without copying": False, "with copying": True}
taken_4 = {
    way: [seconds_a_headline(size, copy) for size in sizes_4]
    for way, copy in ways.items()
}
panel = {
    "series": {way: [sizes_4, [t[2] for t in every]] for way, every in taken_4.items()},
    "spread": {way: [[t[0] for t in every], [t[-1] for t in every]] for way, every in taken_4.items()},
    "xlabel": "|Y|", "ylabel": "seconds a headline", "zero": True,
}  # fmt: skip
caption = (
    "Decoding time of a headline on this machine's CPU by the size of Y: the median of five"
    " times (the table has the fastest and the slowest)."
)
figures.show(lines, caption, "read_again_seconds", panels=[panel])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
here = {
    f"here, {way}": [f"{t[2]:.3f} [{t[0]:.3f}, {t[-1]:.3f}]" for t in every]
    for way, every in taken_4.items()
}
published_4 = PAGE_RESULTS["read_again_table4"].published
pd.DataFrame({**here, **published_4}, index=pd.Index(sizes_4, name="|Y|"))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** Time grows with the vocabulary, here and on the paper's Titan X. Copying costs little: here a fifth at most, in the paper 6 to 11%. There 2,000 words with copying write 4.2 times as fast
as 69,000 without it (0.084 and 0.356 s).
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 5. The paper's claims, and what was found
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Markdown(claims_table("read_again", up="../"))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
[`docs/papers/read_again.md`](../docs/papers/read_again.md) has all findings, Table 2 beside other systems, and every deviation from the paper with its reason. [Baselines](baselines.ipynb) has the equations of ABS, RAS and words-lvt.

**What to take home**

* A second read lets a word before and a word after act together inside a state, which a bidirectional encoder of one layer never does. On real dispatches it brings little or nothing that we could find; a decoder that attends to all states may not need it.
* Copying is what counts here: 27 to 30 points, with any vocabulary from 500 words on, because so few headlines cannot teach names.
* The embedding from context carries a little of its word, and helps a little.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 6. Exercises

Six functions of at most six lines each. Write one instead of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from companion.exercises.read_again import check, progress

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
**2.** *Find the bug.* This is somebody's $P(w)$ (17), from the scores (16):

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
check(2, shared_softmax)

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

**3.** Take one dimension of the state, which begins at 0. By (6) the last state is a weighted sum of the candidates, $h^2_n=\sum_iw_i\tilde h^2_i$. Derive the weights. When is one negative? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def share_of_each_word(alpha, z):
    """Importance alpha [n] and gate z [n] of n words in one dimension. Returns [n]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, share_of_each_word)

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
## Change the model, and predict

**4.** A text has nine words. The mixed second derivative $\partial^2h_5/\partial\mathbf x_3\,\partial\mathbf x_8$ says whether words 3 and 8 *act on each other* in the state of word 5: where it is 0, $h_5$ is a sum of what each does by itself. For which of these encoders, with random weights, is it **exactly** 0? A GRU that reads once (2); a bidirectional GRU, whose states are both directions beside each other; a bidirectional GRU of two layers; a GRU that reads again (4). (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def never_meet():
    """Four truth values, in the order of the text: whether it is exactly 0."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, never_meet)

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
**5.** Words 12 and 13 are in no vocabulary, neither the decoder's nor the encoder's. The reference, which is fed in training, has one of them, and it enters the next step (15). Does the next step change if it is the other one? Say so in three cases: both stand in the text; neither stands in the text; both stand in the text, and the model has no copying. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def next_word_changes():
    """Three truth values."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, next_word_changes)

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
**6.** In the planted task of `companion.tasks.synthetic` a text here has four sentences of six words each. One sentence is marked, and its words are the headline. A model with copying and one without train for 30 steps. Predict which one has the smaller loss (18), `"copying"` or `"without"`, in two cases: all words are in $Y$; $Y$ has nothing but symbols and marks, so that the model without copying is asked for [UNK]. (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss():
    """Two names: with all words in Y, and with none."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, smaller_loss)

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
**To go on with, without a check.** Change `KINDS` and `WORDS` of `companion/tasks/read_twice.py`: how many words can the last state of a GRU of 16 numbers hold?
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* **[Watch it write](../docs/live.md)**: the shipped model in your browser, without Python. Step through a headline for a dispatch of your own, erase its words one after the other, and see what it writes without copying.
* `python -m lib.train read_again --dataset gigaword:gigaword_folder --preset paper --output runs/gigaword` trains at the paper's size on a GPU.
* DUC 2004 (a folder with `input.txt` and `task1_ref0.txt` to `task1_ref3.txt`) is read as a test set, and
  `lib.evaluation.rouge.limited_recall` is its measure: recall of the first 75 bytes against all four references.
* [`docs/papers/read_again.md`](../docs/papers/read_again.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
