# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# A memory is handed over. Who reads it?

*Mem2Mem: Park, Pilault and Pal, "Learning to Summarize Long Texts with Memory Compression and Transfer", 2020, [arXiv:2010.11322](https://arxiv.org/abs/2010.11322). 30 minutes, no code. You need attention, copying and ROUGE ([Start here](start_here.ipynb)).*
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details ontoggle="for (const frame of this.getElementsByTagName('iframe')) frame.src ||= frame.dataset.src"><summary><b>Watch the model write an abstract</b></summary>

The model runs in your browser. Step through the words, or answer five questions about it. ([In a window of its own](../docs/live.md).)

<iframe class="live" data-src="../live/mem2mem.html" title="Mem2Mem writes an abstract in this frame"></iframe>

</details>
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), ..., paper (for a GPU)
variant: str = "+read"  # what is trained: a row of Tables 1 and 2 (hred, TLM, ...)
steps: int = 0  # training steps; 0: as many as the preset says
documents: int = 30  # test documents of the corpus that the report is about
seed: int = 0  # of the training: weights and batches
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
# fmt: off
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

from copy import deepcopy
from functools import partial
from math import exp

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

import lib
from companion.claims.text import evidence_table
from companion.pages.bets import Bets, Outcomes
from companion.pages.checks import Checks
from companion.pages.choice import choose
from companion.pages.diagrams import show_model
from companion.pages.figures import attention_maps, interval_bars, interval_panels, memory_path
from companion.pages.measured import over_seeds, task_table
from companion.pages.mem2mem import (
    article_path, blocking_gain, check_objective, extract_series, ladder_series, lever_panels, memory_weights, paths_costs, planted_steps, stored,
)
from companion.pages.runs import loss_figure, unseen_papers
from companion.pages.shown import PageFigures, Prediction, figures_folder, show_tables
from companion.tasks.memory import learn_planted, memory_scores, unseen_documents
from companion.tasks.synthetic import planted_at
from lib.data.batch import make_batch
from lib.data.corpus import load_corpus
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.interventions import changes_of, log_probs
from lib.models.mem2mem import Mem2Mem, compression_loss
from lib.system.files import trained_folder

choice = choose("mem2mem", dataset, preset, variant, steps, seed, run, documents)  # what cannot be read ends the page here
shipped = lib.load(trained_folder("mem2mem"))
article = unseen_papers(load_corpus("pmc-sample"), 1)[0]
figures, checks = PageFigures(figures_folder()), Checks()  # only the page as it is draws the committed figures
show_tables()
cost = partial(stored, "mem2mem_lever")
text = lambda effect, digits: "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(effect.mean, effect.low, effect.high, d=digits)  # noqa: E731
choice.banner

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## What is handed over?

Mem2Mem first chooses a few sentences.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Before each word of a summary, a model can attend to the whole article: hundreds of sentences. Mem2Mem adds a shorter way, a **memory** of ten slots. An encoder computes one vector for each sentence of the article. Ten *memory heads* attend to these vectors, and each fills one slot with a weighted sum of them. A head with all its weight on one sentence has, in effect, chosen it.

Earlier systems that choose first need labels for the sentences that matter, and are trained in stages. Here the heads learn with everything else, from the loss of the words and two *regularisers*. The first is small when each head has a sentence of its own. The second is small when the slots that are read match the sentences that are attended to.

Then the memory is **handed over**. Before each word the decoder *reads* it: a weighted sum of the slots is mixed into the decoder's state. Between two words the decoder *writes*: a gate keeps part of each slot and replaces the rest.

Two other paths lead to the summary: attention to all words and sentences of the article, and copying of its words. (A narrow third is the decoder's first state.)
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
caption = (
    "An article (Wanigatunga and others, 2018, CC BY 4.0) on its way through the memory. Arrows lead from the sentence on which a head is strongest"
    " to its slot. Bars: how much the slot is read at the first (blue) and the last word (orange) of the summary."
)
figures.show(memory_path, caption, "mem2mem_real_memory", **article_path(shipped, shipped.encode([article])[0]))

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
This is our *shipped model*. Each head has at least 98% of its weight on one sentence. Slot 1 holds the sentence that begins *due to the growing aging population*, and the summary begins *the growing aging population*. At the first word the slots of the first three sentences get 36% of the reads, and at the last word 6%.
It looks as if the decoder wrote from its memory, front to back. Does it?
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## What did the authors find?

R-1 on PubMed, in their Table 2:

| model | R-1 | gain |
|---|---|---|
| HRED | 40.02 | |
| + encoder memory (read, never written) | 40.62 | +0.60 over HRED |
| + decoder memory (starts empty, written) | 40.51 | +0.49 over HRED |
| + transfer (starts with what is handed over) | 41.27 | +0.76 |
| + first regulariser | 41.82 | +0.55 |
| + second regulariser: Mem2Mem | 42.06 | +0.24 |
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
They added the parts to **HRED**, a hierarchical recurrent model with the same encoder and decoder and no memory. The paper does not say how many trainings stand behind a row.

**Place your bets.** Do these claims hold in models that a laptop can train? Choose *holds*, *fails* or *cannot tell* (our data allow both the paper's effect and none). *Fails*: our data exclude the paper's effect, or a control has at least half of ours. Bet 3 counts from 0.05 nats a word, a unit that comes below.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
BETS = "full-model", "transfer", "reads-memory", "heads-lead", "heads-lexrank"
Bets("mem2mem", BETS)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Can we test it where the answer is known?

A toy text has twelve sentences of random numbers, which play the part of words. Three sentences begin with *mark*, and the summary is the rest of those three.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
# λ1 = 0.01, λ2 = 0.1
toy = learn_planted(Mem2Mem, "both", "plain gate", 3)
document = unseen_documents()[0]
planted_steps(toy, document)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
scores = memory_scores(toy, unseen_documents())
Markdown(
    "The model is a Mem2Mem with four slots. Step through its summary. The text is as dark as it is attended to, $P_c$ is what it would copy, $P_g$"
    " what it would generate. Below is the memory: how much of each slot its gates have kept so far (their product), and how much it is read. On"
    f" 200 texts {scores['words right']:.0%} of the words are right, and the heads find {scores['recall']:.0%} of the marked sentences."
    " If any model reads its memory, this one should."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Now we pull a **lever**. It exchanges the memory when it is handed over, and nothing else. We measure how much less probable the right summary becomes, in **nats** a word. Losing 0.7 nats halves a word's probability. Losses below 0.05 (5%) do not count.

We pull the same lever on the shipped model of Figure 1, which has 4.4 million parameters and was trained on 31,077 biomedical articles. The right summaries are the abstracts of 50 others.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
### Lever 1: what if it gets the memory of another text?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
axis = {"xlabel": "cost in nats a word", "small": 0.05}
another, of_toy, panels = cost("papers: another text's"), cost("toy: another text's"), lever_panels("another text's")
Prediction(
    "The toy summarizes text A with the slots of text B. What does it cost, in nats a word?", ["nothing", "about 1", "more than 5"],
    f"Nothing: {of_toy.mean:.2f} nats in the toy. The shipped model loses {text(another, 3)}, so a word becomes {1 - exp(-another.mean):.1%} less probable."
    " (Brackets hold 95% intervals.) So the decoder seems to ignore its memory. Can we take it away?",
    [figures.show(interval_panels, "Another text's memory. Bars are 95% intervals; the grey band is too small to count.", panels=panels, **axis)],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
### Lever 2: what if the memory is erased?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
erased, of_toy, begun = cost("papers: erased"), cost("toy: erased"), cost("papers: erased, first 10 words")
Prediction(
    "All slots are set to zero before the first word. What does it cost the toy?", ["nothing again", "about 1", "more than 5"],
    f"It loses {text(of_toy, 1)} nats. The shipped model loses {text(erased, 2)} on"
    f" average, and {text(begun, 2)} in the first ten words. So the decoder does depend on its memory. (No slot was ever zero in training.)"
    " A puzzle: any text's memory will do, and no memory will not.",
    [figures.show(interval_panels, "An erased memory.", panels=lever_panels("another text's", "erased"), **axis)],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
### Lever 3: what if all texts share one memory?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
one, of_toy, panels = cost("papers: one for all"), cost("toy: one for all"), lever_panels("another text's", "erased", "one for all")
Prediction(
    "We average the memories of other texts, slot by slot, and hand this one memory to every text. What does it cost the toy?",
    ["as much as zeros", "about half of that", "nothing"],
    f"Nothing: less than 0.001 nats in the toy and {text(one, 3)} in the shipped model."
    " Whatever the decoder takes from the slots that it was handed, hardly any of it is about the text. So what is in the slots?",
    [figures.show(interval_panels, "One memory for all texts.", "mem2mem_costs", panels=panels, **axis)],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## What is in the slots?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
labels, name = ("toy", "papers", "memory only, never overwritten"), "a slot and the same slot for the next text"
of_toy, shipped, alone = (cost(f"{label}: {name}") for label in labels)
Prediction(
    "We compare a slot for one text with the same slot for the next text. What is their cosine? (1 is the same direction, 0 a right angle.)",
    ["about 0.1", "about 0.6", "above 0.95"],
    f"{of_toy.mean:.3f} in the toy and {shipped.mean:.2f} in the shipped model: nearly the same vectors for every text. How can heads choose different sentences and"
    " still collect the same vector? To choose, a head needs only a small difference between sentence vectors. Its slot gets the whole vector, and nearly all"
    f" of that is common: in the shipped model two sentences of an article have a cosine of {cost('papers: two sentences of a text').mean:.2f}. In the toy only marked sentences are so alike. So Figure 1 shows which"
    " sentence is chosen and which slot is read, not what a slot contains.",
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
no_copying, beside, others = (
    stored("interventions_mem2mem", name, scale=-1) for name in ("no copying", "written beside another text", "written with other words")
)
Markdown(f"""
A vector that is the same for every input has a familiar name: a **bias**. Without it the toy fails, and the shipped model loses most in its first words.

We suspect the other two paths. Attention can find what the next word needs, and copying can write it down: without copying the shipped model loses {text(no_copying, 2)} nats. While both are open, storing the text a second time would hardly lower the loss, so the encoder would hardly learn it.
""")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## What if the other paths are closed?

Closing the other paths should bring the text into the memory.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So we train the toy again without attention to the text and without copying. Everything has to pass through four slots. We try three gates: the paper's, one that starts by keeping the slots, and one that never overwrites them.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
gates, six = ["the paper's gate", "a gate that starts by keeping", "never overwritten"], paths_costs()
table = pd.DataFrame({paths: [over_seeds(cell) for cell in cells] for paths, cells in six.items()}, index=gates)
Prediction(
    "Two kinds of paths and three gates make six models. Where does another text's memory cost more than 1 nat?",
    ["wherever the memory is the only path", "only where it is the only path and slots are kept", "wherever slots are kept"],
    "Only where both hold. (Cells: nats a word, mean and range of five seeds.) With all paths open the swap costs nothing, even where no slot is overwritten."
    f" With the memory as the only path it costs {np.mean(six['memory only'][1]):.1f} nats if slots tend to be kept, and {np.mean(six['memory only'][2]):.1f} if they"
    " always are. With the paper's gate such a model learns next to nothing, probably because a slot is gone before its words are needed. Where the swap costs most,"
    f" slots differ from text to text: their cosine is {alone.mean:.2f}. So slots can carry part of a text, if nothing leads past them and nothing overwrites them.", [table],
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
Markdown(f"""
### So who reads the memory?

The decoder does, and it reads what it has written itself. We give the shipped model the same summary words beside *another article*. The memory that it writes there costs {beside.mean:.3f} nats. A memory from *other words*, written beside the same article, costs {others.mean:.2f}. So the memory depends on the summary so far, and hardly on the article. It works like a second recurrent state.
""")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Does it matter for the scores?

We trained every row of Table 2 with three seeds on biomedical articles.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
These models have 0.8 million parameters, read 400 words and write 100 (the authors': 14.7 million, 2,000, 200). So compare gains, not scores. With another text's memory, six models of this size that were trained with other weights of the regularisers and other gates (one seed each) lose about 0.02 nats a word or less.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
ladder, gain = ladder_series(), lambda row: "{:+.2f} [{:+.2f}, {:+.2f}]".format(*ladder["plain beam search"][row])
caption = "Gains in R-1: the paper's, and ours with 95% intervals. The first two rows and the last are over HRED, the others over the row before."
Prediction(
    "Suppose that these encoders learn a constant, too. Which gains should vanish?", ["encoder memory and transfer", "the two regularisers", "none"],
    f"The gains of encoder memory and transfer: if the encoder supplies a constant, the decoder can learn it by itself. With plain beam search, transfer changes R-1 by {gain('transfer')}, which excludes"
    f" the paper's +0.76. The whole ladder is worth {gain('full model')}, which excludes +2.04. For the other rows, encoder memory among them, the intervals are too wide to tell. Decoding matters"
    f" more: trigram blocking, which writes no three words in a row twice, lifts HRED by {blocking_gain():.1f} points without any memory. The paper does not mention"
    " blocking, so our verdicts use plain beam search.",
    [figures.show(interval_bars, caption, series=ladder, xlabel="gain in R-1", width=5, zero=True)],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Do the heads choose well?

A memory that changes no word could still be a good extract.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
We compare the sentences on which the shipped model's heads are strongest with the first ten sentences, as the paper does. R-1 favours extracts as long as the abstract. So three rivals have the heads' length: random sentences of what the model reads, those of LexRank, which needs no training, and the sentences at the places that the heads chose in *another* article.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
series = extract_series()
names = "heads - first ten sentences", "at random, as long - first ten sentences", "heads - at random, as long", "places of another text's heads, as long - at random, as long", "heads - LexRank of the text that is read, as long"
lead, chance, more, places, over_lexrank = (stored("mem2mem_extracts", f"sumpubmed: {name}") for name in names)
caption = "R-1 of extracts with 95% intervals. In a corpus all but the first ten sentences have the same length (224 and 228 words)."
Prediction(
    f"On articles of its own corpus the heads are {lead.mean:.1f} points above the first ten sentences. How much of this lead do random sentences have?",
    ["none", "a third", "two thirds"],
    f"{chance.mean:.1f} points, {chance.mean / lead.mean:.0%} of it. The model reads the beginnings of several sections, and a random sample of these beats the first"
    f" ten sentences. Choosing adds {text(more, 2)} points. The places of another article's heads add {places.mean:.1f}, so about half of the gain is place, not content. The heads are also {text(over_lexrank, 2)} points above LexRank of the text that is read, at the same length. LexRank of the whole article cannot be told from them here, and is better on another corpus (bet 5).",
    [figures.show(interval_bars, caption, "mem2mem_extracts_at_equal_length", series=series, xlabel="R-1", width=5)],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## How did your bets turn out?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(evidence_table("mem2mem", *BETS))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Outcomes("mem2mem", BETS)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
[claims.md](../docs/claims.md#mem2mem) has all claims and explains the verdicts.

Bets 1 and 2 are about the small models (three seeds), bets 3 to 5 about the shipped model (one seed; bet 4 about both).

**What is not known.** The shipped model reads about 22 sentences, which ten slots hardly compress. With hundreds of sentences a memory may be needed, and the same levers on a model of the paper's size would show it. On articles the other paths were never closed, and of six small models with other settings we do not know whether their memories are nearly equal. Not tested: arXiv, Newsroom, judgements by people, and the paper's rival of 234 million parameters.

## What became of the idea?

The slots stayed, the recurrence went. In the Perceiver (Jaegle and others, 2021) a few learned vectors attend to an input of any length, as in (5), and layers follow. The Recurrent Memory Transformer (Bulatov and others, 2022) hands memory tokens from one segment of a text to the next. But papers of arXiv and PubMed were soon read without such a memory: BigBird (Zaheer and others, 2020), LED (Beltagy and others, 2020) and LongT5 (Guo and others, 2022) attend to thousands of tokens with sparse patterns.

## What to take home

* **A box in the diagram need not hold what its name says.** Beside attention and copying, the memory of both models became a bias. In the toy, as the only path and never overwritten, it carried part of the text.
* **To learn what a part does, change it, and check that the change could have mattered.** A swap of equal vectors shows nothing. Erasing shows dependence. A constant shows whether the content counts.
* **Compare at equal length, with chance, and with one decoding.** Each of these moved R-1 by more than the memory did.

**You can stop here.** The building path ends with a Mem2Mem of your own.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 1. Build it

You need PyTorch for this part. Everything around the memory is HRED, and you know its parts:

* **Encoder**, (1), (2), (4): a bidirectional GRU reads each sentence, and its last states are the vector of the sentence. A second one reads these vectors. Its states, stacked, are $\mathbf H\in\mathbb R^{L\times d}$, and its last state starts the decoder.
* **Attention**, (3), (16), (17): the decoder attends to words (with coverage) and to sentences. The weight of a word is multiplied by that of its sentence and normalised. So a word gets weight only if its sentence does, too.
* **Copying**, (13) to (15): a switch mixes the distribution over the vocabulary with copies. The paper prints the switch with a softmax, but the softmax of one number is always 1, so it must be a sigmoid.

New are (5) to (12), the memory.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
# fmt: on
show_model("mem2mem")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
In what order? One step of the decoder with word $t$ of the summary:

```python
h = GRU(x, h)                       # x: embedding of the previous word
if t > 1:
    M = write(h, m, M)              # (8)-(10); m was read at the previous step
psi, m = read(h, M)                 # (7)
h_m = W_m @ [h, m]                  # (7): this state attends, copies and predicts
```

<details><summary><b>Symbols</b></summary>

| symbol | shape | what |
|---|---|---|
| $L,\ T,\ r$ | | sentences of the article, words of the summary, slots (and heads) |
| $d$ | | width of all states |
| $h^{(s)}_j,\ \mathbf H$ | $d,\ L\times d$ | state of sentence $j$; all of them |
| $h_t$ | $d$ | decoder state $h^{(d)}_t$ before it reads the memory |
| $h^{(m)}_t$ | $d$ | the same after it has read; the paper writes $h^{(d)}_t$ for it in (3), (13), (17) |
| $\mathbf A$ | $r\times L$ | write attention: one row for each head |
| $\mathbf M_E,\ \mathbf M_D$ | $r\times d$ | memory of the encoder, of the decoder |
| $\psi_t,\ m_t$ | $r,\ d$ | read attention over the slots, and what is read |
| $z^k_t,\ u^k_t$ | $d$ | write gate of slot $k$, and the update that may be written into it |
| $\beta_t$ | $L$ | attention over sentences |
| $\lambda_1,\ \lambda_2$ | | weights of the regularisers (6) and (11): 0.0001 and 0.01 in the paper, 0.01 and 0.1 in the toy |

The paper is paraphrased, never quoted. [All deviations](../docs/papers/mem2mem.md#deviations) have their reasons.

</details>

The functions below are written to be read: one document, no batch, no padding. A green line says that function and library agree in double precision, on the trained toy from above. Here is what its encoder and decoder give.
"""

# %% slideshow={"slide_type": "skip"}
model = deepcopy(toy).double().requires_grad_(False)
batch = make_batch([document], model.config.vocab_size)
state = model.encode(batch)
H = state.sentences[0]  # [L, d]
h, _ = model.decoder(model.embedding(batch.target_input), state.hidden[None])
h = h[0]  # [T, d], decoder states of the right summary
decoded, after = model.decode(batch.target_input, state)
beta = decoded.sentences[0]  # [T, L], attention to sentences
W = memory_weights(model)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (5) A memory of r slots, however long the article

The decoder also attends to all $L$ states, (3), but there it has more to search the longer the article is. So each of $r$ heads spreads a softmax over the sentences and takes the weighted sum of their states.

$$\mathbf A=\mathrm{softmax}\big(W_{a1}\tanh(W_{a2}\mathbf H^\top)\big),\qquad \mathbf M_E=\mathbf{AH}\tag{5}$$

**By hand.** A head has scores $\ln 3$ and $0$ for two sentences with states $(1, 2)$ and $(3, -2)$. Its weights are ¾ and ¼, and its slot is $(1.5, 1)$.
"""


# %% slideshow={"slide_type": "skip"}
def eq05_compress(H, W_a1, W_a2):
    """Sentence states H [L, d] -> write attention A [r, L], memory M_E [r, d]."""
    A = torch.softmax(W_a1 @ torch.tanh(W_a2 @ H.T), dim=1)
    return A, A @ H


# %% slideshow={"slide_type": "skip"}
A, M_E = eq05_compress(H, *W["heads"])
checks.close(A, state.write_attention[0], "(5)", "write attention")
checks.close(M_E, state.encoder_memory[0], "(5)", "encoder memory")
checks.line(f"Strongest sentence of each head, from 1: {(A.argmax(1) + 1).tolist()}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (6) The compression loss keeps heads apart

Nothing in (5) keeps two heads from choosing the same sentence. Without (6) one of the three marked sentences is missed, with each of five seeds. The loss asks $\mathbf{AA}^\top$ to be the identity: the product of a row with itself is 1 only if all its weight is on one sentence, and the product of two rows is 0 only if they share no sentence.

$$\mathcal L^{(comp)}=\|\mathbf{AA}^\top-I\|_F^2\tag{6}$$

**By hand.** Heads with weights $(0.8, 0.2)$ and $(0.3, 0.7)$: $\mathbf{AA}^\top$ has $0.68$ and $0.58$ on its diagonal and $0.38$ off it. The loss is $0.32^2+0.42^2+2\cdot0.38^2=0.5676$.
"""


# %% slideshow={"slide_type": "skip"}
def eq06_compression_loss(A):
    """A [r, L] -> scalar: the squares of all entries of A A^T - I."""
    return (A @ A.T - torch.eye(len(A), dtype=A.dtype)).square().sum()


# %% slideshow={"slide_type": "skip"}
two_heads = torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
by_hand = torch.tensor(0.5676, dtype=torch.float64)
checks.close(eq06_compression_loss(two_heads), by_hand, "(6)", "by hand")
of_lib = compression_loss(state.write_attention)[0]
checks.close(eq06_compression_loss(A), of_lib, "(6)", "compression loss")
checks.line(f"The loss of the toy's four heads: {of_lib:.2f}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
With four heads on three marked sentences, some sentence has weight from two heads, and the loss stays above 0:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
marks = {"weights": A, "title": "write attention A", "marked": planted_at(document), "columns": "sentence"}  # fmt: skip
reads = {"weights": decoded.read[0].T, "title": "read attention ψ", "columns": "decoding step"}  # fmt: skip
caption = "The toy's memory: the sentences of each head (left; triangles: marked sentences), and the slots that each word reads (right)."
figures.show(attention_maps, caption, "mem2mem_write_attention", panels=[marks, reads], rows="slot", columns="", top=1.0, size=4.2)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (7) The decoder reads

The decoder's GRU sees only the summary so far, and the article only through its first state. So its state $h_t$ attends to the slots of the decoder memory. At first this **is** the encoder's: $\mathbf M_D=\mathbf M_E$ is the whole of the *transfer*. What is read is mixed into the state that attends to the article and predicts the next word.

$$\psi_{tk}=\mathrm{softmax}_k\big(v^\top\tanh(W_qh_t+W_k\mathbf M_D(k))\big),\quad m_t=\sum_{k=1}^r\psi_{tk}\mathbf M_D(k),\quad h^{(m)}_t=W_m[h_t;m_t]\tag{7}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq07_read(h, M, W_q, W_k, v):
    """State h [d], memory M [r, d] -> psi [r], what is read m [d]."""
    scores = [v @ torch.tanh(W_q @ h + W_k @ slot) for slot in M]
    psi = torch.stack(scores).softmax(0)
    return psi, psi @ M


# %% slideshow={"slide_type": "skip"}
psi_1, m_1 = eq07_read(h[0], M_E, *W["read"])
checks.close(psi_1, decoded.read[0, 0], "(7)", "reads before the first word")
checks.line(
    f"Before the first word slot {psi_1.argmax() + 1} is read with {psi_1.max():.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (8) to (10) The decoder writes

A memory that is only read cannot note what has been said. The toy without writing has a higher loss (1.06 nats a word instead of 0.29, means of five seeds). So before every read but the first, each slot decides how much of itself to keep ($z$), and what to put in place of the rest ($u$). It uses the new state, what was read last, and its own content:

$$z^k_t=\sigma\big(W_{z1}h_{t+1}+W_{z2}m_t+W_{z3}\mathbf M_D(k)\big)\tag{8}$$

$$u^k_t=\tanh\big(W_{u1}h_{t+1}+W_{u2}m_t+W_{u3}\mathbf M_D(k)\big)\tag{9}$$

$$\mathbf M_D(k):=z^k_t\odot\mathbf M_D(k)+(1-z^k_t)\odot u^k_t\tag{10}$$

**By hand.** A number of a slot is $0.5$, its gate $0.6$, its update $-0.9$: it becomes $0.6\cdot0.5+0.4\cdot(-0.9)=-0.06$. If every gate is $0.6$, then $0.6^5=8\%$ of the first content is left in its place after five words.

None of the three equations uses the number $k$, only the slot's content. So two equal slots stay equal, and a memory that **starts from zeros** stays one vector in $r$ copies. This is the row *decoder memory* of Table 2.
"""


# %% slideshow={"slide_type": "skip"}
def eq08_gate(h_next, m, slot, W_z):
    """States and slot [d], three matrices -> how much is kept [d]."""
    return torch.sigmoid(W_z[0] @ h_next + W_z[1] @ m + W_z[2] @ slot)


def eq09_update(h_next, m, slot, W_u):
    return torch.tanh(W_u[0] @ h_next + W_u[1] @ m + W_u[2] @ slot)


def eq10_write(h_next, m, M, W_z, W_u):
    """Next state [d], last read [d], memory [r, d] -> new memory [r, d]."""
    z = torch.stack([eq08_gate(h_next, m, slot, W_z) for slot in M])
    u = torch.stack([eq09_update(h_next, m, slot, W_u) for slot in M])
    return z * M + (1 - z) * u


# %% slideshow={"slide_type": "skip"}
psis, m, M_D = [psi_1], m_1, M_E
for h_next in h[1:]:
    M_D = eq10_write(h_next, m, M_D, W["gate"], W["update"])
    psi_t, m = eq07_read(h_next, M_D, *W["read"])
    psis.append(psi_t)
psi = torch.stack(psis)
checks.close(psi, decoded.read[0], "(8)-(10)", "reads before all words")
checks.close(M_D, after.memory[0], "(8)-(10)", "memory after the last word")
cosine = torch.cosine_similarity(M_D, M_E, dim=1).mean()
checks.line(f"Cosine of a slot at the end with what was handed over: {cosine:.2f}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (11) The read loss ties reads to attention

The authors saw that only a few slots were read, again and again. And without (11) the toy's heads find no more marked sentences than by chance. The loss asks that two vectors are equal at each step: the slots, weighted by how they are read, and the sentences, weighted by how they are attended to. The slots are taken *as they were handed over*, since a written slot is no longer a weighted sum of sentences.

$$c^{(m)}_t=\sum_k\psi_{tk}\mathbf M_E(k),\quad c^{(s)}_t=\sum_j\beta_{tj}h^{(s)}_j,\quad
\mathcal L^{(read)}=\frac1T\sum_t\big\|c^{(m)}_t-c^{(s)}_t\big\|_2\tag{11}$$

**By hand.** With $c^{(m)}=(0.5, 1)$ and $c^{(s)}=(0.2, 0.6)$ a step has $\sqrt{0.3^2+0.4^2}=0.5$.

So (11) ties $\psi$ to $\mathbf M_E$, while (7) reads $\mathbf M_D$. A model can satisfy (11) and hold something else in its slots. And where all sentence states are nearly equal, (11) asks for little.
"""


# %% slideshow={"slide_type": "skip"}
def eq11_read_loss(psi, M_E, beta, H):
    """psi [T, r], M_E [r, d], beta [T, L], H [L, d] -> scalar."""
    gaps = psi @ M_E - beta @ H
    return sum(torch.linalg.vector_norm(gap) for gap in gaps) / len(gaps)


# %% slideshow={"slide_type": "skip"}
losses_of_lib = model.loss(batch)
L_read = eq11_read_loss(psi, M_E, beta, H)
checks.close(L_read, losses_of_lib["read"], "(11)", "read loss")
checks.line(
    f"The toy's read loss is {L_read:.2f}; its sentence states have a norm of {H.norm(dim=1).mean():.1f}."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
rows = {"neither": "neither", "only (6)": "no L(read)", "only (11)": "no L(comp)", "both": "both", "both, the paper's weights": "the paper's"}  # fmt: skip
measures = {"marked sentences found": "recall", "weight on the strongest sentence": "strongest", "nats a word": "nll"}  # fmt: skip
Prediction(
    "So the heads find all marked sentences only with both regularisers. Does the toy also write better with both?",
    ["yes", "no, worse", "no difference can be seen"],
    "No difference can be seen (cells: mean and range of five seeds): the loss of the words depends more on the seed. (6) alone makes heads sharp, on any sentences."
    " (11) alone puts them on marked sentences, but misses one of the three. And both have to weigh enough: with the paper's own weights some marked sentences are missed.",
    [task_table("memory", measures, {name: f"all ways, {row}, plain gate" for name, row in rows.items()})],
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (12) The whole loss

$$-\frac1T\sum_t\log P(y_t\mid y_{<t})+\lambda_1\mathcal L^{(comp)}+\lambda_2\mathcal L^{(read)}\tag{12}$$

`check_objective` puts the five functions into the model instead of the library's, and compares the loss and the gradients of all parameters. It does so for the toy, and for random weights and a padded batch of three documents.
"""

# %% slideshow={"slide_type": "skip"}
functions = eq05_compress, eq07_read, eq10_write, eq06_compression_loss, eq11_read_loss
check_objective(checks, functions, toy, document)
checks.line()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Pull the lever

The lever is one line: the decoder's first state gets another memory. Here it is pulled on the toy by hand, for two texts A and B.
"""

# %% slideshow={"slide_type": "skip"}
texts = unseen_documents()[:2]
A_and_B = make_batch(texts, toy.config.vocab_size)
handed_over = toy.encode(A_and_B)
memories = {
    "own": handed_over.memory,
    "another text's": handed_over.memory.flip(0),
    "erased": torch.zeros_like(handed_over.memory),
    "one for all": handed_over.memory.mean(0, keepdim=True).expand(2, -1, -1),
}
rows = {}
for name, memory in memories.items():
    changed = handed_over.replace(memory=memory.contiguous())
    written, _ = toy.decode(A_and_B.target_input, changed)
    log_p = toy.log_prob(written, A_and_B.target, changed)
    rows[name] = dict(zip("AB", log_p.mean(1).tolist()))
pd.DataFrame(rows).T.round(2).rename_axis(columns="mean log P of a word")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Closing the other paths needs as little code: `MemoryAlone` in `companion.tasks.memory` sets the decoder's first state and every context to zeros, and has no copying. `python -m companion.train_task memory` trains the six toys. `python -m companion.studies.lever --output lever.json` measured Figures 2 to 4, and with a folder of a run it pulls the lever on yours.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Your corpus

With `dataset` the shipped model reads your test documents here. With `preset` the page trains a model on them first, and with `run` it opens one that you have trained. Start JupyterLab and set these in the page's first cell, or use `papermill`. As the page comes, the report is about the shipped model and papers of `pmc-sample`, which are of its field.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
choice.report(trained)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The lever on these documents: nats a word that the references lose.
"""

# %% slideshow={"slide_type": "skip"}
encoded = trained.encode(choice.documents)
changes = changes_of(trained.model) if isinstance(trained.model, Mem2Mem) else {}
own = log_probs(trained.model, encoded) if changes else None
lost = {
    name: paired_bootstrap(log_probs(trained.model, encoded, changes[name]), own).text(
        3
    )
    for name in ("another memory", "memory erased", "one memory for all", "no copying")
    if name in changes
}
pd.DataFrame({"lost": lost}) if lost else "This model has no memory."

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. Your own model

Write the memory yourself: five functions of at most six lines, for one document. Run the check below each. At the end they are put into a model that is trained on the toy task, and you pull the lever on it. Hints and solutions are folded. `make class` makes notebooks of this part for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from companion.exercises.mem2mem import check, own_model, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**1.** *Compress*, (5): each head spreads a softmax over the sentences, and its slot is the weighted sum of their states. (easy, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def compress(H, W_a1, W_a2):
    """Sentence states [L, d], weights [r, a] and [a, d] -> A [r, L], M_E [r, d]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, compress)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Solution</summary>

```python
def compress(H, W_a1, W_a2):
    A = torch.softmax(W_a1 @ torch.tanh(W_a2 @ H.T), dim=1)
    return A, A @ H
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Read*, (7): the scores $v^\top\tanh(W_qh+W_k\mathbf M(k))$ of the slots become weights $\psi$, and what is read is the weighted sum of the slots. (easy, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def read(h, M, W_q, W_k, v):
    """State [d], memory [r, d] -> psi [r], what is read [d]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, read)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$W_k\mathbf M(k)$ of all slots at once is `M @ W_k.T`, [r, a].

</details>
<details><summary>Solution</summary>

```python
def read(h, M, W_q, W_k, v):
    psi = torch.softmax(torch.tanh(W_q @ h + M @ W_k.T) @ v, dim=0)
    return psi, psi @ M
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** *Write*, (8) to (10): `W_z` and `W_u` hold three matrices each, for the next state, for what was read, and for the slot. (medium, core, 15 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def write(h_next, m, M, W_z, W_u):
    """Next state [d], last read [d], memory [r, d] -> new memory [r, d]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, write)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Solution</summary>

```python
def write(h_next, m, M, W_z, W_u):
    z = torch.sigmoid(W_z[0] @ h_next + W_z[1] @ m + M @ W_z[2].T)
    u = torch.tanh(W_u[0] @ h_next + W_u[1] @ m + M @ W_u[2].T)
    return z * M + (1 - z) * u
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** *Keep heads apart*, (6): the sum of the squares of all entries of $\mathbf{AA}^\top-I$. (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def compression_loss(A):
    """Write attention [r, L] -> a scalar."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, compression_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Solution</summary>

```python
def compression_loss(A):
    return (A @ A.T - torch.eye(len(A), dtype=A.dtype)).square().sum()
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** *Tie reads to attention*, (11): the distance of the slots that are read from the sentences that are attended to, mean over steps. (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def read_loss(psi, M_E, beta, H):
    """psi [T, r], M_E [r, d], beta [T, L], H [L, d] -> a scalar."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, read_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Solution</summary>

```python
def read_loss(psi, M_E, beta, H):
    return torch.linalg.vector_norm(psi @ M_E - beta @ H, dim=1).mean()
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Now they become a model. It is trained for about half a minute, and then it gets another text's memory, and none.
"""

# %% slideshow={"slide_type": "skip"}
own_model(compress, read, write, compression_loss, read_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 3. Exercises

A check says how many cases are right and shows the first wrong one, never the right answer. An answer with several predictions counts only if all are right.

**6.** *Find the bugs.* This code reads and writes the memory, (7) to (10). `read(h, M)` gives $m_t$, and `gate_and_update(h, m, M)` gives $z$ and $u$ of all slots, $[r, d]$ each.

```python
def reads_of_memory(M, states, read, gate_and_update):
    reads = []
    for h in states:
        m = read(h, M)
        z, u = gate_and_update(h, m, M)
        M = (1 - z) * M + z * u
        reads.append(m)
    return torch.stack(reads)
```

There are two faults. Write it right. (medium, core, 15 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def reads_of_memory(M, states, read, gate_and_update):
    """What is read at each step [T, d]: first memory M [r, d], GRU's states [T, d]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, reads_of_memory)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Two steps are enough: write down which state and which read go into the write between them. And what does a gate of 1 do to a slot?

</details>
<details><summary>Solution</summary>

```python
def reads_of_memory(M, states, read, gate_and_update):
    reads = [read(states[0], M)]
    for h in states[1:]:
        z, u = gate_and_update(h, reads[-1], M)
        M = z * M + (1 - z) * u
        reads.append(read(h, M))
    return torch.stack(reads)
```

(8) and (9) take the next state: the memory is written when the decoder has read one more word, just before it is read again. And $z$ is what a slot keeps, not what it takes.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**7.** Each head has all its weight on one sentence: head $k$ on the sentence `on[k]`. Derive $\mathcal L^{(comp)}$ (6). What is it when all $r$ heads are on the same sentence? (medium, extra, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def loss_of_sharp_heads(on):
    """A list of the numbers of sentences, one for each head, in; a number out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, loss_of_sharp_heads)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The entry of $\mathbf{AA}^\top$ at $(k,n)$ is the product of two rows, each with a single 1. Which entries are not as (6) wants them?

</details>
<details><summary>Solution</summary>

```python
def loss_of_sharp_heads(on):
    return sum(a == b for a in on for b in on) - len(on)
```

The diagonal is right. Off it there is a 1 for each two heads on one sentence, and it is there twice: $r(r-1)$ when all are on the same, 0 when no two are. A text with fewer sentences than heads cannot have 0.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**8.** The weights of a Mem2Mem are random. Before the first word the memory that is handed over is changed in one of four ways: its slots come **in another order**; **one slot** is there **twice**, so that there are four instead of three; **each slot** is there **twice**, so that there are six; all slots are **their mean**. In which cases do all words of the summary keep exactly the probability that they had? Use (7) to (10). (hard, core, 15 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def same_probabilities():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, same_probabilities)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What does a softmax make of two equal scores, and what becomes of $m_t$ in (7)? Do two equal slots stay equal in (8) to (10)?

</details>
<details><summary>Solution</summary>

```python
def same_probabilities():
    return [True, False, True, False]
```

No equation uses the number of a slot, and equal slots stay equal. Slots that are all there twice share the weight that each had, and $m_t$ is as before. If only one is there twice, it gets more weight than it had.
The mean of the slots is not what is read, unless $\psi$ is uniform.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**9.** *The constant.* Build one memory for all texts, slot by slot the mean of the memories of other texts, and measure what it costs. `log_p(M)` gives the log-probability of a word of each of $n$ references when memories $M$ $[n, r, d]$ are handed over. (medium, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def cost_of_one_memory(own, others, log_p):
    """Memories [n, r, d] of n texts and [m, r, d] of others -> mean nats a word."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(9, cost_of_one_memory)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

A cost is positive when the words become less probable. `expand_as` repeats a memory for all texts.

</details>
<details><summary>Solution</summary>

```python
def cost_of_one_memory(own, others, log_p):
    one = others.mean(0).expand_as(own)
    return (log_p(own) - log_p(one)).mean()
```

In a trained model it is nearly 0. Why other texts? A mean that includes the text itself would contain some of it.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**10.** *A gate that lets a memory work.* In this toy the memory is the only path from the text to the summary. With the paper's gate, $z=\sigma(s)$ of the score $s$, it learns nothing in the time that it has. Find another gate: a function of $s$ between 0 and 1 that grows with $s$. The check trains the toy with your gate. Then another text's memory has to cost more than half a nat a word. (hard, core, 20 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def better_gate():
    """A function: a tensor of scores in, what is kept out (of the same shape)."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(10, better_gate)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Scores are near 0 when training starts. How much of a slot is then kept over nine words, the length of a summary here?

</details>
<details><summary>Solution</summary>

```python
def better_gate():
    return lambda scores: torch.sigmoid(scores + 5)
```

With a gate of ½ only 0.2% of a slot is kept over the nine words of a summary, and the encoder gets hardly any gradient on this way. A gate that starts near 1 keeps the memory until training finds a reason to write; adding 3 is not enough here. LSTMs use the same trick for their forget gates.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* Run the page with `variant="+transfer"`, which trains a model without regularisers. How does Figure 1 change?
* `python -m lib.train mem2mem --dataset arxiv --preset paper --output runs/arxiv` trains at the paper's size on a GPU; then run this page with `run` set to `runs/arxiv`. `python -m companion.studies.lever runs/arxiv --dataset arxiv --seeds --output lever.json` pulls the lever on it.
* [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) maps every equation to its function in `lib`. Next page: [Hierarchical transformers](hierarchical_transformer.ipynb).
"""
