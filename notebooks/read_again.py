# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Who copies, and what does a second read add?

*Read-Again: Wenyuan Zeng, Wenjie Luo, Sanja Fidler and Raquel Urtasun, 2016, [arXiv:1611.03382](https://arxiv.org/abs/1611.03382). 30 minutes, no code. You need attention, copying and ROUGE ([Start here](start_here.ipynb)).*
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details ontoggle="for (const frame of this.getElementsByTagName('iframe')) frame.src ||= frame.dataset.src"><summary><b>Watch the model write a headline of your own sentence</b></summary>

The model runs in your browser. Step through the words, or answer five questions about it. ([In a window of its own](../docs/live.md).)

<iframe class="live" data-src="../live/read_again.html" title="Read-Again writes a headline in this frame"></iframe>

</details>
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # docstrings, gigaword, ... or a folder of train, val and test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), ..., paper (for a GPU)
variant: str = "read-again lstm + copy"  # what is trained: a row of the tables
steps: int = 0  # training steps; 0: as many as the preset says
documents: int = 50  # test documents of the corpus that the report is about
seed: int = 0  # of the training: weights and batches
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import json

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

import lib
from companion.claims.verdicts import Effect
from companion.claims.text import evidence_table
from companion.pages import read_again as shown
from companion.pages.bets import Bets, Outcomes
from companion.pages.checks import Checks
from companion.pages.choice import choose
from companion.pages.diagrams import show_model
from companion.pages.dispatches import made_up_dispatches
from companion.pages.figures import lines, word_maps
from companion.pages.read_again import copying_frames, embeddings, gates, station
from companion.pages.runs import loss_figure
from companion.pages.shown import PageFigures, figures_folder, show_tables
from companion.results.kept import stored_numbers
from companion.results.text import table_frame
from companion.studies.importance import EQUAL
from companion.studies.word_dependence import compare_encoders
from companion.tasks.short_news import (
    RATE, SIX, WRITTEN, dispatch, dispatch_batches, dispatches, reader,
)  # fmt: skip
from companion.tasks.task import greedy_words, learn
from lib.data.batch import make_batch
from lib.data.vocabulary import BOS, EOS, UNK
from lib.decoding.search import beam_search
from lib.evaluation.interventions import log_probs
from lib.system.files import project_root, trained_folder, work_folder, write_whole

# a name or folder that cannot be read ends the page here
choice = choose(
    "read_again",
    dataset,
    preset,
    variant,
    steps,
    seed,
    run,
    documents,
    corpora=("docstrings", "docstrings"),
)
figures, checks = PageFigures(figures_folder()), Checks()
show_tables()
choice.banner

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
shipped = lib.load(trained_folder("read_again"))
summarizer, vocabulary = shipped.model, shipped.vocabulary
invented = made_up_dispatches()
test = shipped.encode(invented)


def headline(document):
    """The ids that the model writes."""
    batch = make_batch([document], len(vocabulary))
    return beam_search(summarizer, batch, shipped.decode)[0][0].ids


# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How does a new name get into a headline?

A model writes headlines for the dispatches of a news agency. A company that was founded yesterday is in no vocabulary, and yet its name belongs in the headline.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Read-Again rests on two ideas. The first is about reading. When a recurrent encoder reads a word, its state depends on that word and on those before it. Read-Again reads twice. The first read ends in a vector of the whole text, which steers a **second read**.

The other idea is about writing. The decoder chooses from two lists at once: the words of a small vocabulary, and the places of the text. To choose a place is to **copy** its word. Then a small vocabulary should be enough, which is fast.

So two sets of weights lie over the text. With one the decoder *attends*: it mixes the states of the words into its own. With the other it *copies*. In many models these are the same numbers. The paper gives no equation for the second set. We compute it with a key of its own, so here they are not.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"} tags=["remove-input"]
example = test[2]
its_words, ids = [*vocabulary.words, *example.unknown], [*headline(example), EOS]
copying_frames(summarizer, example, ids, its_words)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**A headline, word by word.** The darker a word, the larger its weight. At step 1 the decoder attends most to *raised*, and copies *kestrel*, a company that was invented for this page. In brackets: the probability of copying, and of generating. The model is an LSTM that reads again and copies. It has learned from 13,898 dispatches of Reuters, in seven minutes on one core. Its encoder knows the words that occur there five times or more.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What did the authors find?

They trained on millions of pairs of a sentence and a headline (Gigaword). This is R-1 of their Table 1.

| encoder | 69,000 words, no copying | 15,000 words, no copying | 15,000 words, copying |
|---|---|---|---|
| GRU, reads once | 26.79 | 24.67 | |
| GRU, reads again | 27.26 | 25.04 | 27.41 |
| LSTM, reads again | 27.82 | 25.30 | 27.37 |
| LSTM, reads two sentences again | | | 27.96 |

A second read adds 0.4 to 0.5 points, copying 2.1 to 2.4. With copying, 15,000 words do nearly as well as 69,000, in a third of the time.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Gigaword is not free. We trained the same rows on the 13,898 dispatches, with three seeds, and tested them on 1,106 later ones. Our vocabularies have 500 to 9,873 words. So compare gains, not scores.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
**Place your bets.** Do these claims hold in models that a laptop can train? Choose *holds*, *fails* or *cannot tell* (the interval allows both the paper's effect and none; where the paper has no number, both more and less than the smallest effect that counts).
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
BETS = "copying", "context-embedding", "again", "bidirectional"
Bets("read_again", BETS)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Which weights find the name?
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
A toy dispatch has an offer and a board's answer. If the board agrees, the headline says who buys whom; if it refuses, who rejects whom. The decoder knows three words: *to*, *buy* and *rejects*. The encoder does not know half of the names either. It reads them all as [UNK], so only their context tells them apart.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
seeds, SIZE = (0, 1, 2), len(WRITTEN)
toys = [reader(s, "read-again gru") for s in seeds]
for s, one in zip(seeds, toys):
    learn(one, dispatch_batches(s), RATE)
toy, unseen = dispatch(*SIX[0]), dispatches(500, 10**7)
(ids,) = greedy_words(toys[0], [toy], max_length=6, min_length=1)
copying_frames(toys[0], toy, [*ids, EOS], [*WRITTEN.words, *toy.unknown])

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
The toy is a GRU that reads again, with hidden size 12. After 150 batches, and with each of three seeds, it writes all of 500 unseen headlines correctly.

To learn what a part does, we change it. We make one set of weights equal for all words, and leave the other as it is. Then we measure how much less probable the right headline becomes, in **nats** a word. Losing 0.7 nats halves a word's probability. We count a loss below 0.05 as no effect.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
losses = {}
for name, change in EQUAL.items():
    lost = [(log_probs(o, unseen) - log_probs(o, unseen, change)).mean() for o in toys]
    losses[name] = Effect(np.mean(lost), min(lost), max(lost), 3)
station("weights", figures, {"toy": losses})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So **attention is not what is copied.** The copy scores find the name, and in the shipped model it hardly counts where the decoder attends.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What is copying worth?

In the paper copying adds 2.4 points of R-1 to a GRU.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
station("copying", figures)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
A gain that is more than ten times the paper's measures something else. Without copying every model stays below 15 points, and the first eight words of the text have 29. Probably 13,898 headlines are too few to learn to *generate* names.

Much of the gain may come from the words that a model can choose from. One model that cannot copy chooses only among the words of its text and 2,000 frequent ones. It recalls 30% of the references' words. Models that choose from all words recall 6 to 10%, Read-Again 41%, and the first 75 bytes of the text 47%.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What does the decoder read after a name?

The decoder reads what it has written, as embeddings. *Kestrel* has none.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Other models put one symbol, [UNK], in the place of all such words. Read-Again makes an embedding $\mathbf p_i$ from the encoder's state there, that is, from the word's **context**.

The authors give an example: the $\mathbf p$ of *headmaster* is probably close to the embedding of *teacher*, since the decoder goes on in the same way. We test this with words that have an embedding: we hide one, so that the encoder reads [UNK]. Then we compare the next words after $\mathbf p_i$ with those after the word's own embedding. A divergence of 0 means that they are the same.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
station("context", figures)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So $\mathbf p_i$ carries a little of its word. The bet asks about the word of $Y$ that is nearest to $\mathbf p_i$: there $\mathbf p_i$ leads by 0.008 nats.

With [UNK] fed back instead, the references lose 0.014 nats a word over all words. But $\mathbf p_i$ can act only after a copied unknown word: there they lose 0.125 nats. The toy learns its task without it as well.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What can a second read do?

The usual remedy for reading in one direction is a **bidirectional** encoder. One GRU reads forwards, one backwards, and their states are placed side by side.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
A map shows by how much the state of word $i$ moves when word $j$ changes. We compare three encoders with random weights on nine words: once, bidirectional, and again.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
encoders = {
    "once": "gru", "bidirectional": "bidirectional gru", "again": "read-again gru"
}  # fmt: skip
maps, together = compare_encoders(encoders)
numbers = {"rows": list(range(1, 10)), "columns": list(range(1, 10))}
panels = [
    {"title": n, "values": v, "xlabel": "word j", "ylabel": "state i", **numbers}
    for n, v in maps.items()
]
top = max(values.max().item() for values in maps.values())
caption = "How much each state depends on each word: sizes of derivatives."
drawn = figures.show(
    word_maps, caption, "read_again_reach", panels=panels, top=top, label="size"
)
together["later words"] = maps["again"].triu(1).max().item()
station("maps", figures, {"": together}, drawn)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
This is the authors' argument. In a bidirectional encoder of one layer the two halves never meet. So a word before and a word after cannot act together inside a state. In a second read they meet.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
### Does it help where it should?

Here is a task made for it: `2 b1 d3 a0 c2 3`. The numbers give $2+3=5$, which is 1 modulo 4 and stands for kind *b* (*a* is 0). The headline is the text's word of this kind, `b1`.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
The kind depends on both numbers, so an encoder that reads once knows it only at the end. The decoder gets nothing but the encoder's **last state**.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
station("task", figures)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
(We tried six settings, one run each. In the one that we kept, that run had 100 with reading again and 84 with bidirectional. The three seeds above came later.)

In this task a second read helps if everything must pass through one state. So does a bidirectional encoder. A decoder that can use all states needs neither.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
### Does it help with headlines?

Five pairs of models differ only in whether they read once or again: the paper's two, and three more. A sixth row compares reading again with a bidirectional encoder, whose two halves together are as wide.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
station("again", figures)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
One gain in five tries is weak evidence, and both of its models score less than half of what the first eight words do. A second sentence shows no gain either: -0.55 [-1.27, +0.19] R-1, where the paper has +0.59.

Does the shipped model ignore its second read, then? No. We replace the text's vector in this read by zeros. Then the references lose 0.34 nats a word. The model **depends** on it. (Such zeros never occur in training, so this does not show what the vector tells about the text.) But we found no difference from models that were trained to read once.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Which words does the second read take in?

In a GRU the first read steers the second by **importance** $\alpha$. At 0 a word is passed over, at 1 it is read in full. The paper's importance may be negative, ours may not.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
The authors draw it as [shades](../docs/papers/read_again.md#figure-4), in which articles are light. But a shade is a mean. In our GRU that reads again and copies, each word has 128 values, one for each dimension of the state. And in six dispatches all means lie between 0.59 and 0.70.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
path = project_root() / "figures" / "importance_read_again_reuters.json"
(below, *_) = json.loads(path.read_text("utf-8"))["changes"]
shares = [100 * share for share in below["histogram"]]
series = {"two seeds": [[round(0.05 + 0.1 * i, 2) for i in range(10)], shares]}
axes = {"xlabel": "importance in a dimension", "ylabel": "percent of the values"}
caption = "How often importance has which value, in 400 dispatches."
panels = [{"series": series, "zero": True, **axes}]
drawn = figures.show(lines, caption, "read_again_importance", panels=panels)
station("values", figures, drawn=drawn)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
station("place", figures)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How did your bets turn out?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(evidence_table("read_again", *BETS))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Outcomes("read_again", BETS)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
*Confirmed* means that the interval lies above 0 and no control explains the effect. Its size and its cause may differ from the paper's. *Not learned here*: neither model is better than the first words of the text, so nobody wins this bet. [claims.md](../docs/claims.md#read-again) has all claims and verdicts.

**What is not known.** Only a run on Gigaword, at the paper's sizes, can show what a second read and a large vocabulary give a model that has learned names. Even the most precise comparison of one read and two finds only gains of about 0.8 points reliably, and the paper's are 0.4 to 0.5.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What became of the idea?

Copying stayed. CopyNet (Gu and others) and pointers to unknown words (Gulcehre and others) came in the same year, 2016, and the pointer-generator (See and others, 2017) became the usual form. Pieces of words (Sennrich and others, 2016) then left hardly any unknown words to copy. Two reads were replaced by encoders that see both sides of a word in every layer, such as BERT (Devlin and others, 2019). The thought is alive where a model reads in one direction only: recurrent language models recall more of a text that they are given twice (Arora and others, *Just read twice*, 2024).

## What to take home

* **Attention and copying are two things.** Before you read a map of weights, ask what the model does with them.
* **A model can depend on a part that it could have done without.** Changing a trained model shows that it depends on a part. What the part is worth, only training without it shows.
* **A mean can hide what it is a mean of.** The mean importance of a word differs little in size between rare and frequent words, but it does so in four of five pairs. Read a difference beside its own spread.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**You can stop here.** The building path derives the equations, and ends with a Read-Again of your own.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""


# 1. Build it

We build the model out of short functions, on the toy from above. The functions are written to be read: one document, no batch, no padding. A green line says that the library `lib` computes the same numbers in double precision, on a padded batch of other texts and with random weights.

The first read is PyTorch's GRU (1) to (3) or LSTM (7), and attention (12) to (14) is that of [Start here](start_here.ipynb). New are the second read (4) to (6) and (8), two sentences (9) to (11), the embedding from context (15), and copying (16) and (17). The paper prints no equation for copying and the loss, and no code was published. (16) to (18) are our reading, which only the authors could confirm.

<details><summary>Symbols</summary>

| symbol | shape | meaning |
|---|---|---|
| $n,\ T$ | | number of words of the text, of the headline |
| $e,\ d$ | | widths of embeddings and of states, both 12 in the toy |
| $W,\ U,\ V,\ v,\ b$ | | weights, each with an index |
| $\mathbf x_i$ | $e$ | embedding of a source word, from the encoder's own table |
| $h^1_i,\ h^2_i$ | $d$ | state of word $i$ after the first, the second read |
| $\alpha_i$ | $d$ | importance of word $i$ in each dimension |
| $Y,\ \mathbf Y$ | | the decoder's vocabulary; its table of embeddings |
| $\mathbf y_t,\ s_t,\ c_t$ | $e,\ d,\ d$ | embedding of headline word $t$; state of the decoder; context |
| $\beta_{it}$ | scalar | attention to word $i$ at step $t$ |
| $\mathbf p_i$ | $e$ | embedding of source word $i$ from its context (no probability) |
| $g_w,\ k_i$ | scalar | score of generating $w\in Y$; of copying word $i$ |

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("read_again")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (5) Importance comes from the whole text

A second GRU that sees only the words learns nothing from the first read. It needs something that the first read did not have: the text's vector $h^1_n$. It enters through the importance of each word.

$$\alpha_i=\tanh\big(W_eh^1_i+U_eh^1_n+V_e\mathbf x_i\big)\tag{5}$$

With $\tanh$, importance may be negative, and then a state can grow without bound. The option `importance="sigmoid"` keeps it between 0 and 1; all presets but `paper` use it, and so does the toy.
"""

# %% slideshow={"slide_type": "skip"}
model = toys[0].double()
words, source = WRITTEN.text(toy.source, toy.unknown).split(), toy.source.tolist()
x = embeddings(model, toy)  # [n, e]
h1 = model.first_read(x[None])[0][0]  # [n, d], PyTorch's GRU


def eq05_importance(h1_i, h1_n, x_i, model):
    W_e, b_e = model.importance_word.weight, model.importance_word.bias
    U_e, V_e = model.importance_text.weight, model.importance_input.weight
    squash = getattr(torch, model.config.importance)  # tanh or sigmoid
    return squash(W_e @ h1_i + b_e + U_e @ h1_n + V_e @ x_i)


alpha = torch.stack(
    [eq05_importance(h1[i], h1[-1], x[i], model) for i in range(len(x))]
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.close(alpha, model.encode(make_batch([toy], SIZE)).importance[0], "(5)")
checks.line(
    f"Importance of word 3, {words[2]}, in its 12 dimensions: from"
    f" {alpha[2].min():.2f} to {alpha[2].max():.2f}, with a mean of {alpha[2].mean():.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (4), (6) The second read of a GRU goes only part of the way

Importance controls a skip connection. At 0 the state stays as it was; at 1 the step is that of a plain GRU.

$$h^2_i=(1-\alpha_i)\odot h^2_{i-1}+\alpha_i\odot\mathrm{GRU}^2(\mathbf x_i,h^2_{i-1})\tag{4}$$

A GRU's step goes from the old state to a proposal $\tilde h^2_i$ by its gate $z_i$. If we write this out, the gate becomes $\alpha_i\odot z_i$:

$$h^2_i=(1-\alpha_i\odot z_i)\odot h^2_{i-1}+(\alpha_i\odot z_i)\odot\tilde h^2_i\tag{6}$$

**By hand**, in one dimension: the state is 1, the gate 0.6, the proposal 0. A plain GRU goes to $0.4\cdot1+0.6\cdot0=0.4$. With $\alpha=0.5$, (4) goes half of that way: $0.5\cdot1+0.5\cdot0.4=0.7$. In (6) the gate is $0.5\cdot0.6=0.3$, which gives $0.7\cdot1+0.3\cdot0=0.7$ again. With $\alpha=-0.5$ both give 1.3: the state grows, and it does so at every word.

PyTorch's gate is $1-z$ of the paper, and its reset gate comes after a product where the paper has it before, which makes a slightly different cell. The function `gates` returns the paper's $z_i$ and PyTorch's $\tilde h_i$.
"""


# %% slideshow={"slide_type": "skip"}
def eq04_second_read(x, alpha, gru):
    """Embeddings [n, e], importance [n, d], a torch.nn.GRU -> states [n, d]."""
    h, states = torch.zeros(gru.hidden_size).double(), []
    for x_i, alpha_i in zip(x, alpha):
        _, plain = gru(x_i[None], h[None])
        h = (1 - alpha_i) * h + alpha_i * plain[0]
        states.append(h)
    return torch.stack(states)


def eq06_step(h, z, new, alpha_i):
    return (1 - alpha_i * z) * h + alpha_i * z * new


h2 = eq04_second_read(x, alpha, model.second_read.gru)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
one = torch.ones(2).double()
by_hand = eq06_step(one, 0.6 * one, 0 * one, torch.tensor([0.5, -0.5]).double())
checks.close(torch.tensor([7, 13]).double() / 10, by_hand, "(6)", "by hand")
step_3 = eq06_step(h2[1], *gates(x[2], h2[1], model.second_read.gru), alpha[2])
checks.close(h2[2], step_3, "(4), (6)", "the two forms are one")
checks.line(
    f"Word 3, {words[2]}, dimension 1: (4) gives {h2[2, 0]:.2f}, (6) gives {step_3[0]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (8) The second read of an LSTM gets the vectors themselves

Through importance the text's vector can only scale a step of the state. The LSTM has no importance. Its second read gets the word, the word's first state, and the text's vector, side by side:

$$h^2_i=\mathrm{LSTM}^2\big([\mathbf x_i,h^1_i,h^1_n],h^2_{i-1}\big)\tag{8}$$

## (9) to (11) Two sentences share their vectors

If each sentence were read on its own, its states could not depend on the other. Only what enters beside $\mathbf x_i$ and $h^1_i$ changes. **Option 1** gives all vectors in order, $[h^1_n,h'^1_m]$ (9). **Option 2** gives the sentence's own vector and one of both, $[h^1_n,h_{global}]$ (11):

$$h_{global}=\tanh\big(W_rh^1_n+U_rh'^1_m+v_r\big)\tag{10}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq08_second_read(x, h1, beside, lstm):
    again = torch.cat([x, h1, beside.expand(len(x), -1)], 1)
    return lstm(again[None])[0][0]


def eq09_eq11_beside(own, texts, model):
    """What enters beside a word and its first state, in options 1 and 2."""
    if model.config.encoder == "option 1":
        return torch.cat(texts)  # (9)
    layer = model.global_text  # W_r, U_r and v_r
    return torch.cat([own, torch.tanh(layer.weight @ torch.cat(texts) + layer.bias)])


def read_sentences(x, lengths, model):
    """States [n, d], and where the decoder starts from [d]."""
    parts = x.split(lengths)
    first = [model.first_read(part[None])[0][0] for part in parts]
    texts = [h1[-1] for h1 in first]
    missing = [torch.zeros_like(texts[0])] * (model.config.sentences - len(texts))
    second = []
    for part, h1 in zip(parts, first):
        beside = eq09_eq11_beside(h1[-1], texts + missing, model)
        second.append(eq08_second_read(part, h1, beside, model.second_read))
    return torch.cat(second), torch.stack([h2[-1] for h2 in second]).mean(0)


# %% slideshow={"slide_type": "skip"}
def read_document(document, model):
    """Every encoder: states [n, d], and where the decoder starts from [d]."""
    x, name = embeddings(model, document), model.config.encoder
    if name in ("option 1", "option 2"):
        return read_sentences(x, document.sentence_lengths.tolist(), model)
    h1 = h2 = model.first_read(x[None])[0][0]
    if name == "read-again gru":
        alpha = [eq05_importance(h, h1[-1], x_i, model) for h, x_i in zip(h1, x)]
        h2 = eq04_second_read(x, torch.stack(alpha), model.second_read.gru)
    elif name == "read-again lstm":
        h2 = eq08_second_read(x, h1, h1[-1], model.second_read)
    return h2, h2[-1]


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
shown.check_states(checks, read_document)
refused = dispatch(*SIX[0][:4], False)  # another last but one word
lstm = learn(reader(0, "read-again lstm"), dispatch_batches(0), RATE).double()
moves = [
    (read_document(toy, one)[0][2] - read_document(refused, one)[0][2]).abs().max()
    for one in (model, lstm)
]
checks.line(
    f"If {words[-2]} becomes refuses, word {len(words) - 1}, the second state of word 3 moves by up to {moves[0]:.2f} in the toy,"
    f" and by up to {moves[1]:.2f} in an LSTM. Its first state does not move."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (15) A name is embedded by its context

Without this, all names would enter the decoder as the same symbol. A word of $Y$ has its row of the table. Another word of the text is embedded from its state, at its first place. Everything else is [UNK].

$$\mathbf y=\begin{cases}\mathbf Y[w]&w\in Y\\ \mathbf p_i=\tanh(W_ch^2_i+b_c)&w\notin Y,\ w=x_i\\
\mathbf Y[\mathrm{UNK}]&\text{otherwise}\end{cases}\tag{15}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq15_from_context(h2, model):
    return torch.tanh(h2 @ model.word.weight.T + model.word.bias)  # [n, e]


def eq15_embedding(word, source, p, model):
    if word < model.config.vocab_size:
        return model.target_embedding.weight[word]
    if word in source:
        return p[source.index(word)]
    return model.target_embedding.weight[UNK]


p = eq15_from_context(h2, model)
y = torch.stack(
    [eq15_embedding(word, source, p, model) for word in [BOS, *toy.target[:-1]]]
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (12) to (14) The decoder looks before it steps

As in Start here, with one difference: attention uses the state of the step **before**. Its context enters the LSTM together with the word.

$$s_t=\mathrm{LSTM}\big([\mathbf y_{t-1},c_t],s_{t-1}\big),\qquad c_t=\sum_i\beta_{it}h^2_i,\qquad\beta_{it}\propto\exp\big(v_a^\top\tanh(W_as_{t-1}+U_ah^2_i)\big)\tag{12-14}$$

The paper does not say where the decoder starts. Here a layer with $\tanh$ makes its first state from the encoder's last one.
"""


# %% slideshow={"slide_type": "skip"}
def eq12_eq14_states(y, h2, last, model):
    """Embeddings [T, e] of what enters -> states [T, d]."""
    s, outputs = torch.tanh(model.bridge(last)), []
    W_a, U_a = model.attention.query.weight, model.attention.key.weight
    cell, v_a = torch.zeros_like(s), model.attention.v.weight[0]
    for y_t in y:
        beta = torch.softmax(torch.tanh(W_a @ s + h2 @ U_a.T) @ v_a, 0)
        s, cell = model.decoder(torch.cat([y_t, beta @ h2]), (s, cell))
        outputs.append(s)
    return torch.stack(outputs)


s = eq12_eq14_states(y, h2, h2[-1], model)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (16), (17) Generate or copy: one softmax, no switch

The decoder still cannot write a name. A pointer-generator would add a second softmax, over the places, and a switch between the two. Read-Again has **one softmax over words and places together**. Each word of $Y$ and each place of the text has a score, and $\mathbf p_i$ is the key of a place. This is CopyNet's rule (Gu and others, 2016), to which the authors compare their own. (Here $\mathbf o_w$ and $b_w$ are weights and bias of word $w$ in the output layer.)

$$g_w=\mathbf o_w^\top s_t+b_w,\qquad k_i=\mathbf p_i^\top W_ks_t\tag{16}$$

$$P(w)=\frac1Z\Big([w\in Y]\,e^{g_w}+\sum_{i:x_i=w}e^{k_i}\Big),\qquad Z=\sum_{v\in Y}e^{g_v}+\sum_ie^{k_i}\tag{17}$$

**By hand**: $Y$ has two words, *to* and *buys*, with $e^g$ of 3 and 1. The text is *norbalt buys norbalt*, with $e^k$ of 4, 1 and 1. Then $Z=10$, and $P(\textit{norbalt})=\frac{4+1}{10}=0.5$: both places count. *Buys* is generated and copied, $\frac{1+1}{10}=0.2$.
"""


# %% slideshow={"slide_type": "skip"}
def eq16_scores(s_t, p, model):
    g = model.vocabulary.weight @ s_t + model.vocabulary.bias
    return g, p @ (model.copy_query.weight @ s_t)


def eq17_joint(g, k, source, unknown):
    """P of the words of Y and of the document's unknown words."""
    mass = torch.cat([torch.exp(g), torch.zeros(unknown).double()])
    for word, score in zip(source, k):
        mass[word] = mass[word] + torch.exp(score)
    return mass / (torch.exp(g).sum() + torch.exp(k).sum())


P = torch.stack(
    [eq17_joint(*eq16_scores(s_t, p, model), source, len(toy.unknown)) for s_t in s]
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
g_and_k = torch.tensor([[3.0, 1, 1], [4, 1, 1]]).double().log()
by_hand = eq17_joint(g_and_k[0, :2], g_and_k[1], [2, 1, 2], 1)
checks.close(torch.tensor([3, 2, 5]).double() / 10, by_hand, "(17)", "by hand")
checks.close(torch.ones(len(P)), P.sum(1), "(17)", "each P sums to 1")
first_name = toy.target[0]
checks.line(f"Step 1: P({words[source.index(first_name)]}) = {P[0, first_name]:.2f}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (18) The loss

All parts together: read the text, write the headline, and take the mean of $-\log P$ over the headline's words. The loss of a batch is the mean over its documents.

$$\mathcal L=-\frac1T\sum_t\log P(y_t\mid y_{<t},x)\tag{18}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq18_loss(document, model):
    h2, last = read_document(document, model)
    source, p = document.source.tolist(), eq15_from_context(h2, model)
    inputs = [BOS, *document.target[:-1].tolist()]
    y = torch.stack([eq15_embedding(word, source, p, model) for word in inputs])
    total = 0.0
    for s_t, target in zip(eq12_eq14_states(y, h2, last, model), document.target):
        P = eq17_joint(*eq16_scores(s_t, p, model), source, len(document.unknown))
        total = total - torch.log(P[target])
    return total / len(document.target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
shown.check_losses(checks, eq18_loss)
checks.line(
    f"The toy's loss on this dispatch is {eq18_loss(toy, model):.2f} nats a word. Losses and all gradients, of six encoders:"
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## How fast is a small vocabulary?

Here is the paper's Table 4 on this machine: seconds for a headline of eight words by beam search. The weights are random, which takes as long as learned ones. A second read adds one pass over the text for each headline, which we did not time.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
sizes, ways = (2_000, 5_000, 15_000, 30_000, 69_000), {"without": False, "with": True}
series, spread = {}, {}
for way, copy in ways.items():
    times = [shown.seconds_a_headline(size, copy) for size in sizes]
    series[f"{way} copying"] = [sizes, [t[2] for t in times]]
    spread[f"{way} copying"] = [[t[0] for t in times], [t[-1] for t in times]]
axes = {"xlabel": "|Y|", "ylabel": "seconds a headline", "zero": True}
caption = (
    "Decoding time of a headline on this machine's CPU by the size of Y: the median of"
    " five times. In the paper, on a Titan X, it is 0.356 s with 69,000 words and no"
    " copying, and 0.084 s with 2,000 words and copying."
)
panels = [{"series": series, "spread": spread, **axes}]
figures.show(lines, caption, "read_again_seconds", panels=panels)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What does the shipped model write?

A `[word]` is outside the decoder's vocabulary, so it can only have been copied. The dispatches are invented.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
rows = {}
for number, (document, dispatched) in enumerate(zip(test, invented), 1):
    ids = headline(document)
    texts = zip(ids, vocabulary.decode(ids, document.unknown))
    words_of = [f"[{w}]" if n >= len(vocabulary) else w for n, w in texts]
    reference = " ".join(dispatched.summary).lower()
    rows[number] = {"reference": reference, "headline": " ".join(words_of)}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Norbalt, Kestrel and Ostervik were invented, and are copied. Other things fail: Velmora becomes the United States, words are said twice, and ministers who failed to agree are "to agree".
On 1,106 test dispatches the shipped model is 13.5 points of R-1 above the first eight words of the text:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
records = [{"summary": d.title, "document": " ".join(d.sentences)} for d in invented]
text = "".join(json.dumps(record) + "\n" for record in records)
write_whole(work_folder() / "dispatches" / "test.jsonl", text)  # for Figure 4 of docs
scores = table_frame(stored_numbers("trained_read_again"))
scores.drop(columns="distinct").drop(index="References")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Your corpus

With `dataset` the shipped model reads your test documents here. With `preset` the page trains a model on them first, and with `run` it opens one that you have trained. Start JupyterLab and set these in the page's first cell, or use `papermill`. As the page comes, the report is about the shipped model and docstrings of Python packages: texts of another kind than the news that it has learned from.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
choice.report(trained)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. Your own model

Four functions are new in Read-Again. Fill them in, one after the other, and run each check. The last cell puts them into a model, trains it on the toy dispatches in a few seconds, and shows it at work. Hints and solutions are folded. This part needs nothing from above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from companion.exercises.read_again import check, own_model, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**1.** *Importance.* Compute (5) for all words of B texts at once, with a sigmoid instead of $\tanh$. (medium, core, 8 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def importance_of_words(first, text, x, W_e, U_e, V_e, b):
    """Importance of the words of B texts: [B, n, d].

    first: states of the first read [B, n, d]; text: its last state of each text [B, d];
    x: embeddings [B, n, e]; W_e, U_e [d, d]; V_e [d, e]; b: a bias [d].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, importance_of_words)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

A weight of shape [d, d] that is multiplied from the left in the equation is multiplied from the right here, transposed. Where does `text` need a dimension for the words?

</details>
<details><summary>Solution</summary>

```python
def importance_of_words(first, text, x, W_e, U_e, V_e, b):
    from_text = (text @ U_e.T)[:, None]
    return torch.sigmoid(first @ W_e.T + b + from_text + x @ V_e.T)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *The gated update.* Write the step (6) of the second read. (easy, core, 3 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def gated_update(h, z, new, alpha):
    """The next state [..., d]. h: the state before; z: the GRU's gate; new: its
    proposal; alpha: importance, all [..., d].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, gated_update)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

With importance 1 it is the step of a plain GRU: $(1-z)\odot h+z\odot\tilde h$.

</details>
<details><summary>Solution</summary>

```python
def gated_update(h, z, new, alpha):
    return (1 - alpha * z) * h + alpha * z * new
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** *The embedding of a written word.* Write (15) for one word. (easy, core, 5 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def embed_word(word, source, table, p):
    """The embedding [e] with which a written word enters the decoder.

    word: an id; those from |Y| on are not in Y. source: the ids of the text, a list.
    table: embeddings of Y [|Y|, e], [UNK] is row 1. p: those from context [n, e].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, embed_word)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Three cases. A name may occur at several places; the first one counts.

</details>
<details><summary>Solution</summary>

```python
def embed_word(word, source, table, p):
    if word < len(table):
        return table[word]
    return p[source.index(word)] if word in source else table[1]
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** *One softmax for both.* Write (17) for all steps of a headline. (medium, core, 12 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def joint_distribution(g, k, source, unknown):
    """P of the words of Y and of the text's unknown words: [T, |Y| + unknown].

    g: scores of Y [T, |Y|]; k: scores of the places [T, n]; source: the ids of the
    text, a tensor [n]; unknown: how many words it has that are not in Y.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, joint_distribution)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Take one softmax over g and k side by side, and split it again. `index_add(1, source, ...)` adds the columns of the places to those of their words.

</details>
<details><summary>Solution</summary>

```python
def joint_distribution(g, k, source, unknown):
    both = torch.cat([g, k], 1).softmax(1)
    generated, copied = both[:, : g.shape[1]], both[:, g.shape[1] :]
    nothing = torch.zeros(len(g), unknown, dtype=g.dtype)
    return torch.cat([generated, nothing], 1).index_add(1, source, copied)
```

Two softmaxes, halved, would sum to 1 as well. They would be another model: one with a switch that is always at one half.

</details>
"""

# %% slideshow={"slide_type": "skip"}
own_model(importance_of_words, gated_update, embed_word, joint_distribution)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 3. Exercises

**5.** *Find the bug.* This is somebody's importance of all words of a padded batch. It is right for one text, and wrong for several:

```python
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    text = h1[:, -1:] @ U_e.T
    return torch.sigmoid(h1 @ W_e.T + b + text + x @ V_e.T)
```

Write it right. The values at padding do not count. (medium, core, 8 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    """Importance of the words of B texts, padded to n words: [B, n, d].

    h1: states of the first read [B, n, d]; x: embeddings [B, n, e]; mask [B, n]:
    whether there is a word; W_e, U_e [d, d]; V_e [d, e]; b: a bias [d].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, importance_in_a_batch)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What is at place $-1$ of the shorter texts? `mask.sum(1)` is the length of each text.

</details>
<details><summary>Solution</summary>

```python
def importance_in_a_batch(h1, x, mask, W_e, U_e, V_e, b):
    last = h1[torch.arange(len(h1)), mask.sum(1) - 1]
    return torch.sigmoid(h1 @ W_e.T + b + (last @ U_e.T)[:, None] + x @ V_e.T)
```

The state at the last place of the batch has read padding, and in a shorter text it is not $h^1_n$. Padding comes after the words, so it cannot change their states in the first read. Here it would change all of them.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** Take one dimension of the state, which begins at 0. By (6) the last state is a weighted sum of the proposals, $h^2_n=\sum_iw_i\tilde h^2_i$. Derive the weights. When is one negative? (hard, core, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def share_of_each_word(alpha, z):
    """Importance alpha [n] and gate z [n] of n words in one dimension. Returns [n]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, share_of_each_word)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

By which factor does (6) multiply the state before? Word $i$ is multiplied once for each later word.

</details>
<details><summary>Solution</summary>

```python
def share_of_each_word(alpha, z):
    taken = alpha * z
    return [taken[i] * (1 - taken[i + 1 :]).prod() for i in range(len(z))]
```

$w_i=\alpha_iz_i\prod_{j>i}(1-\alpha_jz_j)$: a word enters with $\alpha_iz_i$ and is multiplied by $1-\alpha_jz_j$ at each later word. Since $|\alpha_jz_j|<1$, a weight has the sign of its own $\alpha_i$. A later word with a negative $\alpha_j$ makes the earlier ones *grow*.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**7.** *What does the second read add?* Two words act together in a state if the effect of one depends on the other. Measure it: change one word, the other, both, or neither, and compute what remains of the effect of both when the two single effects are subtracted. (medium, core, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def acting_together(states, x, a, b):
    """How much two changes act together in each state: [n, d].

    states: a function of embeddings [n, e] that returns the encoder's states [n, d];
    x: the embeddings; a, b: a change of one word, and of another one, both [n, e].
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, acting_together)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The effect of a change is the difference of two calls of `states`. For a sum of what each word does by itself, the result is 0.

</details>
<details><summary>Solution</summary>

```python
def acting_together(states, x, a, b):
    return states(x + a + b) - states(x + a) - states(x + b) + states(x)
```

In a bidirectional encoder it is exactly 0 in every state between the two words. One half of the state has read one word, the other half the other. In a GRU that reads again it is not 0: there the two words meet. A second bidirectional layer mixes the halves as well, so reading again is one way out and not the only one.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**8.** *Change a trained model.* The check trains the toy for 40 batches, and then lets your function change its copy scores. All places of a text are to share equally in what is copied. How much is copied stays as it is. (hard, extra, 12 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def equal_copying(k, mask):
    """New copy scores [B, T, n] of the same total weight, the sum of exp(k).

    k: the scores at T steps [B, T, n], -1e30 at padding; mask [B, n]: whether there
    is a word.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, equal_copying)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Of n equal scores whose exponentials sum to $S$, each is $\log(S/n)$. Padding keeps its score.

</details>
<details><summary>Solution</summary>

```python
def equal_copying(k, mask):
    each = k.logsumexp(-1, keepdim=True) - mask.sum(1).log()[:, None, None]
    return torch.where(mask[:, None], each, k)
```

Only the share of each place changes, not the sum. So a loss that rises shows that the model depends on *where* it copies, and not only on whether it copies. A change without such a control, for example scores of 0, would mix up the two.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* **[Watch it write](../docs/live.md)**: the shipped model in your browser, without Python, on a dispatch of your own.
* `python -m lib.train read_again --dataset gigaword:gigaword_folder --preset paper --output runs/gigaword` trains at the paper's size on a GPU.
* DUC 2004 (a folder with `input.txt` and `task1_ref0.txt` to `task1_ref3.txt`) is read as a test set, and
  `lib.evaluation.rouge.limited_recall` is its measure: recall of the first 75 bytes against all four references.
* [`docs/papers/read_again.md`](../docs/papers/read_again.md) maps every equation to its function in `lib`; [Baselines](baselines.ipynb) shows ABS, RAS and words-lvt.
"""
