# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Mem2Mem: a memory that is compressed, handed over, read and written

Jaehong Park, Jonathan Pilault, Christopher Pal: *Learning to Summarize Long Texts with Memory Compression and
Transfer*, 2020, [arXiv:2010.11322](https://arxiv.org/abs/2010.11322).

A recurrent model reads a paper of thousands of words, sentence by sentence. Its decoder would have to find its way through hundreds of sentence states. Mem2Mem **compresses** them
into a handful of memory slots, each of which should hold about one important sentence, without labels. It **hands the slots over** to the decoder, which **reads and writes** them
while it writes the summary.

Here is a small one at work. Its text has twelve sentences of random words (numbers). Three sentences begin with *mark*; the summary consists of the other words of these three. The text is
as dark as the decoder attends to it; below stand the three best words of $P_g$ (what the model would generate), $P_c$ (what it would copy) and their mixture $P$; then the memory: how much of
what the encoder handed over the gates have kept in each slot, and how much the slot is read.

<details><summary>Predict: the second sentence of the summary begins at step 6. What changes there: the attention, the switch, the slots?</summary>

The attention moves from sentence 1 to sentence 5. The switch stays at 0: the model copies every word, and generates the end alone. The reads leave the slot of the first sentence, and spread over all slots;
but by then the gates have replaced nearly all of it.

</details>
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), ..., paper (for a GPU)
variant: str = "+read"  # what is trained: a row of Tables 1 and 2 (hred, TLM, ...)
steps: int = 0  # training steps; 0: as many as the preset says
seed: int = 0  # of weights, batches and bootstrap
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from companion.claims.text import claims_table
from companion.pages.checks import Checks, gradients
from lib.data.batch import EncodedDocument, in_vocabulary, make_batch
from lib.data.corpora import anthology_year
from companion.tasks.synthetic import planted_at
from lib.data.vocabulary import BOS, EOS, UNK
from lib.evaluation.baselines import lexrank, oracle, random_sentences
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.interventions import changes_of, log_probs
from companion.studies.slots import slots_after, slots_left, usual_places
from companion.pages.diagrams import show_model
from companion.pages.figures import attention_maps, lines, shaded_words, word_maps
from companion.pages.mem2mem import (
    grid_panels,
    paper_weights,
    planted_steps,
    planted_words,
)
from lib.layers.pointer import PointerOutput, mixture_distribution
from lib.decoding.search import (
    DECODINGS,
    beam_search,
    extract,
    source_sentences,
    summarize,
)
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, compression_loss
from lib.models.summarizer import Extractor
from companion.pages.measured import lever_table, task_table
from companion.pages.choice import choose, compare_means
from companion.pages.runs import loss_figure, run_facts
from companion.pages.shown import (
    PageFigures,
    Passages,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.measured import summary_table
from companion.results.tables import TRAINED
from companion.tasks.memory import GATES, MemoryAlone, learn_planted, unseen_documents

# a name or folder that cannot be read ends the page here
choice = choose("mem2mem", dataset, preset, variant, steps, seed, run)
documents = choice.documents
# only the page as it is draws the committed figures
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()

# %% slideshow={"slide_type": "subslide"}
# "both": λ1 = 0.01, λ2 = 0.1
toy = learn_planted(Mem2Mem, "both", "plain gate", seed + 3)
document = unseen_documents()[0]
planted_steps(toy, document)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** All words are right, copied from the right places. The gates keep about 60% of each slot at the first word, a tenth after five words, and next to nothing after ten. If the memory of **another** text is handed over instead, the words become no less probable.
If the memory is erased, they become nearly impossible: each loses 8.6 nats. Both have one reason: the encoder hands over **nearly the same memory for every text**. The same holds of the model that comes with this project, which was trained on papers. This page shows it, and a case in which the memory differs from text to text and is needed.
(This is the fourth of five seeds, one of the two with which all words are right; with the others 49 to 80% are.)

**When you have read this page** you can say what each of the paper's 17 equations computes, when heads find the sentences that matter, when a memory holds something of its text, and what a trained model of this kind writes.

**Before you start**: PyTorch, and what [Start here](start_here.ipynb) explains: sequence to sequence with attention, copying, coverage, beam search, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | the model above, and its task: what makes a memory readable, and when it is needed | 13 |
| 2 | every numbered equation as a short function, on the model above, checked against the library `lib` | 33 |
| 3 | a model trained on papers: its summary, its scores, its memory, and what happens when that is changed | 12 |
| 4 | the paper's claims and what we found | 4 |
| 5 | exercises | 60 |

The page takes about a minute and a half on two CPU cores, and no network. With another `dataset` the shipped model reads its test documents in part 3; with a `preset`, part 3 trains a model first; with `run`, it shows a run of yours.
Before this page: [Read-Again](read_again.ipynb); next: [Hierarchical transformers](hierarchical_transformer.ipynb).
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary><b>Symbols</b></summary>

The paper is paraphrased, never quoted; **(7)** is its equation 7. Three hold more than the paper has numbered: (3) also the context $c_t$, (5) the step from one head to $r$ of them and $\mathbf M_E$, (7) also $h^{(m)}_t$; and the $\alpha$ of its (3) is given in (17), with coverage. Where the paper prints $h^{(d)}_t$ in (3), (13) and (17), the page has $h^{(m)}_t$, and (13) has a bias here ([all deviations](../docs/papers/mem2mem.md#deviations)). Words, sentences, slots and steps are counted from 1.

| symbol | shape | what |
|---|---|---|
| $N, L, T$ | | words and sentences of the document, words of the summary; a sentence has $n$ words |
| $E,\ r$ | | width of the embeddings; number of memory heads, which is also the number of slots |
| $d$ | | width of the sentence states (both directions) and of the decoder |
| $x_i,\ x'_t$ | $E$ | embedding of a source word; of the summary word that enters the decoder at step $t$ |
| $h^{(w)}_i,\ s_j$ | $d$ | state of word $i$, vector of sentence $j$ (sentence encoder) |
| $h^{(s)}_j,\ \mathbf H$ | $d,\ L\times d$ | state of sentence $j$ (document encoder); all of them |
| $h^{(d)}_t,\ h^{(m)}_t$ | $d$ | decoder state; the same after it has read the memory |
| $\alpha_t,\ \beta_t,\ \gamma_t$ | $N,\ L,\ N$ | attention over words, over sentences, and the two combined |
| $cov_t,\ c_t$ | $N,\ d$ | word attention of all steps before $t$, summed; context: word states, weighted by $\gamma_t$ |
| $\mathbf A$ | $r\times L$ | write attention: one row for each memory head, softmax over sentences |
| $\mathbf M_E,\ \mathbf M_D$ | $r\times d$ | encoder memory, decoder memory |
| $\psi_t,\ m_t$ | $r,\ d$ | read attention over the slots, and what is read |
| $z^k_t,\ u^k_t$ | $d$ | write gate of slot $k$; the update that may be written into the slot |
| $P_g,\ P_c,\ P$ | one number for each word | distribution over the vocabulary; over the document's words; the two mixed |
| $p_t$ | scalar | probability of generating rather than copying (the paper calls it $z_t$, as the gate) |
| $sen(i)$ | | the sentence of word $i$ (the paper: $m(i)$) |
| $\lambda_1,\ \lambda_2$ | scalar | weights of the regularisers (6) and (11) |

</details>
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. A task with a known answer: heads that choose well, and a memory that is the same for every text

Nobody tells the memory of the model above which sentences matter. Its four slots are filled by four heads, each of which spreads its attention over the twelve sentences. Two extra terms of the loss, the regularisers,
say what a good memory is. $\mathcal L^{(comp)}$ (6), with weight $\lambda_1$, wants each head on one sentence and no two heads on the same one. $\mathcal L^{(read)}$ (11), with
weight $\lambda_2$, wants what is read from the memory to be what the decoder attends to in the text.

The same model was trained with 25 pairs of weights (`python -m companion.solve memory`). For 200 unseen documents, **recall** is the share of the marked sentences on
which some head is strongest; **precision** is the share of marked sentences among those on which some head is strongest; **sharpness** is a head's weight on its strongest sentence; **nll** is the loss of the words.

<details><summary>Predict: for which weights does the memory hold all marked sentences? Are these also the best for the words?</summary>

Where both are large enough, and the second not too large for the first: in 4 of the 25 pairs. The words need none of it.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
measures = {
    "recall": "recall",
    "precision": "precision",
    "sharpness": "strongest",
    "nll": "nll",
}
panels, seeds = grid_panels(measures)
caption = (
    "What the memory heads find, and the loss of the words, by the weights of the two regularisers."
    f" Means over the seeds {', '.join(map(str, seeds))}. Each panel has its own colours."
)
figures.show(word_maps, caption, "mem2mem_grid", panels=panels, across=2, zeros=True)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** All marked sentences are found with both seeds in four of the 25 pairs alone: with $\lambda_1=0.01$ and $\lambda_2=0.01$ or 0.1, and with $\lambda_1=0.1$ and $\lambda_2=0.1$ or 1. Without $\mathcal L^{(read)}$ heads find none, or as many as by chance; with $\lambda_2=0.001$ the seed decides, but with $\lambda_1=0.1$ both seeds find as many as by chance. Where $\lambda_2$ is 1
and $\lambda_1$ at most 0.01, no head is sharp: equal attentions make (11) small, too. The paper's own weights, 0.0001 and 0.01, miss one sentence or two. So heads that find all marked sentences need both terms here, where the decoder can also attend and copy.

The words need neither: their nll depends more on the seed than on the weights (`figures/task_memory.json` has each seed). Over five seeds, which the pairs of Figure 2 have, the pair of the model at the top, called *both*, has the lowest nll with no seed.

Figure 2 has four of these models on the document at the top of the page: left the write attention $\mathbf A$, right the read attention $\psi$ (the paper's figures 3 and 4). Red triangles stand under the marked sentences.

<details><summary>Predict: in which of the four do the slots that are read change after words 5 and 10, where the next sentence of the summary begins?</summary>

Clearly in the two that have the read loss. Without it reads change less, and no slot belongs to one of the sentences.

</details>
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
@torch.no_grad()
def planted_attention(model, document):
    """Panels: write attention A [r, L], read attention ψ [r, T] under teacher forcing."""
    batch = make_batch([document], model.config.vocab_size)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    A = {
        "weights": state.write_attention[0],
        "marked": planted_at(document),
        "columns": "sentence",
    }
    return [A, {"weights": output.read[0].T, "columns": "decoding step"}]


panels = []
for name in ("both", "neither", "no L(comp)", "no L(read)"):
    learned = (
        toy if name == "both" else learn_planted(Mem2Mem, name, "plain gate", seed + 3)
    )
    for symbol, panel in zip("Aψ", planted_attention(learned, document)):
        panels.append({"title": f"{name}: {symbol}", **panel})
caption = (
    "Write attention A (left, a row for each memory head) and read attention ψ (right, a row for each slot) for four losses:"
    " λ1 = 0.01 and λ2 = 0.1 (both), or one or both of them 0. Red triangles: the marked sentences."
)
figures.show(
    attention_maps, caption, "mem2mem_write_attention",
    panels=panels, rows="head, slot", columns="", top=1.0,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With both terms the heads find all marked sentences with every seed. (There are four heads and three sentences: in each document one head is spread over several.) With neither they spread over the plain sentences: the
heads have 0.00 of their weight on marked sentences, which they avoid. $\mathcal L^{(read)}$ alone puts them on marked sentences, but nothing
keeps two heads from choosing the same one, and with every seed one of the three is missed. $\mathcal L^{(comp)}$ alone makes heads sharp, on any sentences: with two seeds no
head is on a marked sentence, with three a quarter of them, as by chance (head 2 of Figure 2 is one).

With both terms one slot is read for the first sentence; for the second the reads are spread. (11) hardly forbids it: the slots are nearly parallel, so that any mixture of them is near the state of any sentence. And $\psi$ belongs to two
memories: (11) ties it to the slots as they were at first, while (7) reads what they hold now, and after five words the gates have kept at most 0.29 of the first content in its place.

## When a memory matters

Does the decoder need its memory? A document is summarized with the memory of **another**. In a second model the memory is **alone**: the decoder
starts from zeros, its context is zero, and it cannot copy (`MemoryAlone`). All it knows of the text has gone through four slots. This model and the one above, which has **all ways** open, are trained with
three write gates: the paper's plain one, the same with a bias of 3 at the start, so that it keeps a slot, and none: the memory is never written.

<details><summary>Predict: what does another document's memory cost the words, with all ways open and with the memory alone?</summary>

With all ways open nothing, whatever the gate. Alone it costs 6.6 to 7.8 nats a word, if the memory is never written; with the plain gate nothing with four seeds, 0.25 with one, because hardly anything is learned.

</details>
"""

# %% slideshow={"slide_type": "subslide"}
columns = {
    "nll": "nll", "another memory": "nll, another", "words right": "words right",
    "left after 5 words": "left 5", "recall": "recall",
}  # fmt: skip
rows = {
    f"{way}, {gate}": f"{way}, both, {gate}"
    for way in ("memory alone", "all ways") for gate in GATES
}  # fmt: skip
rows["memory alone, never written, neither"] = "memory alone, neither, never written"
task_table("memory", columns, rows)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
learned = learn_planted(MemoryAlone, "both", "never written", seed)
A, psi = planted_attention(learned, document)
panels = [{"title": "write attention A", **A}, {"title": "read attention ψ", **psi}]
caption = (
    "A memory that works: it is the only way from the text to the summary, and is never"
    " written. Left: the sentence that each slot holds; right: the slot that each word is"
    " read from."
)
figures.show(
    attention_maps, caption, "mem2mem_memory_alone",
    panels=panels, rows="memory slot", columns="", top=1.0,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** **Alone and never written, the memory works**: each marked sentence is in a slot, the slot is read while its words are written, a third of the words are right
(one in a hundred by chance), and another document's memory costs 6.6 to 7.8 nats a word. Where the memory is the only way, its heads need no regulariser (last row, *neither*): words that depend on the memory teach them, all three sentences with four seeds, two with one.
With the paper's gate this model learns nothing in 600 steps: the nll is that of chance, 4.26, probably since a slot is
overwritten before its words come. A gate that starts by keeping learns something. With **all ways open**, another memory costs nothing (at most 0.006), whatever the gate.

That exchange has a catch: **it exchanges two memories that are nearly the same vector.** The next table has the other tests: the memory is erased, replaced by random vectors, or by one memory for all texts (the mean over 200 other texts). The last two columns are cosines.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
lever_table()

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With all ways open, the toy needs *a* memory: without one, or with a random one, it loses several nats a word. But it is the same memory for every text (a cosine of 0.998 between texts), and one memory for all costs nothing. **The encoder has learned a constant**, a kind of bias for the decoder; attention and copying leave it no reason to put the text into the slots.
Where the memory is the only way and is never overwritten, it differs from text to text (0.60), and one memory for all costs 3.7 nats.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. The equations, on the trained model

Colours mean the same on every page. An arrow carries the number of its equation and the shape of the result.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("mem2mem")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**One step of the decoder.** The word before enters a GRU, whose state takes no context in. From the second step on, the memory is **written** first, from that state and from what was read at the step before: each slot keeps a part of itself and replaces
the rest. Then the state **reads**: it attends to the slots, and what is read is mixed into it. This mixed state, not the GRU's own, attends to all words and to all sentences. The two attentions are multiplied and normalised, and give the context and the copy distribution. Mixed state and context
make the vocabulary's distribution, and a switch between 0 and 1 mixes the two distributions. With the numbers of the equations:

```python
h_d = GRU(x, h_d)                                  # x: embedding of the word before
if t > 1:
    M = write(M, m, h_d)                           # (8)-(10); m was read at the step before
psi, m = read(h_d, M); h_m = W_m [h_d; m]          # (7)
alpha = word_attention(h_m, h_w, cov)              # (17)
cov = cov + alpha                                  # (16), for the next step
beta = sentence_attention(h_m, H)
gamma = normalise(alpha * beta[sentence_of])
c = gamma @ h_w                                    # (3)
p = sigmoid(w @ [c; h_m; x] + b_z)                 # (13)
P_g = softmax(V (V' [h_m; c] + b) + b')
P = p * P_g + (1 - p) * P_c(gamma)                 # (14), (15)
```

The equations stand in the order in which a document flows through the model, so (3) comes after (10), and (11) and (12) come last. Their functions are written to be read: one document, no batch, no padding, loops where loops are clear.
The values below are those of the trained model above, on the text at the top of the page. A green line says that function and library agree in double precision: on this text, and on a padded batch of three documents whose words the vocabulary does not
all have, with random weights. A difference would stop the page. Standard parts (GRU, softmax) come from PyTorch on both sides.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def walked(model, documents):
    """A model in double precision, what the library makes of a batch, and the sizes of its first document, which the
    equations follow."""
    model = deepcopy(model).double().requires_grad_(True)
    batch = make_batch(documents, model.config.vocab_size)
    state = model.encode(batch)
    output, after = model.decode(batch.target_input, state)
    first, W = documents[0], paper_weights(model)
    sizes = len(first.source), len(first.sentence_lengths), len(first.target)
    return SimpleNamespace(
        model=model, documents=documents, document=first, W=W, batch=batch, state=state, output=output, after=after,
        N=sizes[0], L=sizes[1], T=sizes[2], d=model.config.hidden, size=model.config.vocab_size,
    )  # fmt: skip


torch.manual_seed(1)
ragged = []  # the vocabulary has the ids up to 17; a document's other words come first in it
for lengths, target in (
    ([6, 3, 11], [4, 18, 8, 4, 5, 15, EOS]), ([4, 4], [9, 19, 13, EOS]), ([8, 4, 5, 6], [10, UNK, 16, 12, 4, 5, 18, 7, EOS]),
):  # fmt: skip
    unknown = ["?"] * (max(target) - 17)
    known = torch.randint(4, 18, (sum(lengths) - len(unknown),)).tolist()
    ragged.append(
        EncodedDocument.of(
            "", [*range(18, 18 + len(unknown)), *known], lengths, target, unknown
        )
    )
random_model = Mem2Mem(
    Mem2MemConfig(
        18,
        embedding=5,
        hidden=6,
        bottleneck=4,
        slots=3,
        compression=4,
        lambda_comp=0.3,
        lambda_read=0.7,
    )
)
for parameter in random_model.parameters():
    torch.nn.init.normal_(parameter, std=0.7)
here, padded = walked(toy, [document]), walked(random_model, ragged)
words = planted_words(document.source)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) Each sentence gets a vector

The memory is to hold sentences, so each sentence needs a vector, $s_j$. A bidirectional GRU reads one sentence at a time; its last states, forward after the last word and backward after the first, are the vector.

$$h^{(w)}_1,\dots,h^{(w)}_n = \mathrm{GRU}_{sen}(x_1,\dots,x_n),\qquad s = [\overrightarrow h_n;\overleftarrow h_1]\tag{1}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("mem2mem", {1, 2, 4, 5})


# %% slideshow={"slide_type": "skip"}
def eq01_sentence_encoder(words, gru):
    """Embeddings [n, E] of a sentence -> states [n, d], its vector [d]."""
    states, last = gru(words)  # last: [direction, d / 2]
    return states, torch.cat([last[0], last[1]])


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def sentences_of(document, size):
    """Word ids (unknown words as [UNK]) of each sentence."""
    ids = torch.from_numpy(document.source).long()
    return ids.where(ids < size, UNK).split(document.sentence_lengths.tolist())


for w in (here, padded):
    read = [
        eq01_sentence_encoder(w.model.embedding(ids), w.model.sentence_encoder)
        for ids in sentences_of(w.document, w.size)
    ]
    w.h_w, w.s = (
        torch.cat([states for states, _ in read]),
        torch.stack([last for _, last in read]),
    )
    checks.close(w.h_w, w.state.words[0, : w.N], "(1)", "word states")
checks.line(
    f"Sentence 5, {' '.join(words[24:30])}: {len(read_5 := here.h_w[24:30])} states of {here.d} numbers, one vector of {here.s[4].numel()}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (2) and (4) Sentences learn of each other

$s_j$ knows its own sentence alone. A second bidirectional GRU reads these vectors one after the other. Its states, stacked, are $\mathbf H$. Its final state, through a linear layer, starts
the decoder (the paper does not say what does).

$$h^{(s)}_1,\dots,h^{(s)}_L=\mathrm{GRU}_{doc}(s_1,\dots,s_L)\tag{2}$$

$$\mathbf H=[h^{(s)}_1\ \dots\ h^{(s)}_L]^\top\in\mathbb R^{L\times d}\tag{4}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq02_document_encoder(vectors, gru):
    """Sentence vectors [L, d] -> H [L, d] of (4), final state [d]."""
    states, last = gru(vectors)
    return states, torch.cat([last[0], last[1]])


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def cosine(a, b):
    return torch.nn.functional.cosine_similarity(a, b, dim=0).item()


for w in (here, padded):
    w.H, final = eq02_document_encoder(w.s, w.model.document_encoder)
    w.h_start = w.model.bridge(final)
    checks.close(w.H, w.state.sentences[0, : w.L], "(2), (4)", "sentence states")
    checks.close(w.h_start, w.state.hidden[0], "(2), (4)", "first state of the decoder")
checks.line(
    f"H is {w.L and here.L} × {here.d}. Cosine of the states of sentences 1 and 5, both marked: {cosine(here.H[0], here.H[4]):.2f};"
    f" of sentences 1 and 2, which is plain: {cosine(here.H[0], here.H[1]):.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (5) A memory of r slots, however long the document

A decoder that has to find its way through $L$ states has more to search the longer the document is. Each of $r$ heads spreads a softmax over the sentences, and takes the weighted sum of their states.

$$\mathbf A=\mathrm{softmax}\big(W_{a1}\tanh(W_{a2}\mathbf H^\top)\big)\in\mathbb R^{r\times L},\qquad
\mathbf M_E=\mathbf{AH}\in\mathbb R^{r\times d}\tag{5}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq05_compress(H, W_a1, W_a2):
    """H [L, d] -> write attention A [r, L], encoder memory M_E [r, d]."""
    A = torch.softmax(W_a1 @ torch.tanh(W_a2 @ H.T), dim=1)
    return A, A @ H


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    w.A, w.M_E = eq05_compress(w.H, w.W["W_a1"], w.W["W_a2"])
    checks.close(w.A, w.state.write_attention[0, :, : w.L], "(5)", "write attention A")
    checks.close(w.M_E, w.state.encoder_memory[0], "(5)", "encoder memory M_E")
    no_weight = torch.zeros(w.model.config.slots)
    checks.close(
        no_weight, w.state.write_attention[0, :, w.L :].sum(1), "(5)", "of padding"
    )
strongest = here.A.argmax(1)
on = ", ".join(
    f"head {k + 1}: {j + 1} ({here.A[k, j]:.2f})"
    for k, j in enumerate(strongest.tolist())
)
checks.line(
    f"The sentence on which each head is strongest, and its weight there: {on}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (6) The compression loss keeps heads apart

Nothing in (5) keeps two heads from choosing the same sentence, or one head from spreading over all. Without (6), with $\lambda_1=0$ and $\lambda_2=0.1$, one of the three marked sentences is missed with every seed (part 1). The loss asks $\mathbf{AA}^\top$ to be the identity.
The product of a row with itself is 1 only if all the weight of the row is on one sentence; the product of two rows is 0 only if they share no sentence.

$$\mathcal L^{(comp)}=\|\mathbf{AA}^\top-I\|_F^2\tag{6}$$

**By hand.** Two heads on two sentences. One sentence each: $\mathbf{AA}^\top=I$, loss 0. Both uniform: every entry of
$\mathbf{AA}^\top$ is ½, so the loss is $4\cdot(½)^2=1$. Both on the same sentence: $0+0+1+1=2$.
"""


# %% slideshow={"slide_type": "skip"}
def eq06_compression_loss(A):
    """A [r, L] -> scalar: the squares of all entries of A A^T - I."""
    heads = range(len(A))
    return sum((A[k] @ A[n] - float(k == n)) ** 2 for k in heads for n in heads)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    checks.close(
        eq06_compression_loss(w.A),
        compression_loss(w.state.write_attention)[0],
        "(6)",
        "L(comp)",
    )
by_hand = {
    "one each": ([[1.0, 0.0], [0.0, 1.0]], 0.0),
    "uniform": ([[0.5, 0.5]] * 2, 1.0),
    "same": ([[1.0, 0.0]] * 2, 2.0),
}
for name, (weights, expected) in by_hand.items():
    naive = eq06_compression_loss(torch.tensor(weights).double())
    checks.close(naive, torch.tensor(expected), "(6)", f"by hand, {name}")
alike = (here.A @ here.A.T).fill_diagonal_(0)
k, n = sorted(np.unravel_index(int(alike.argmax()), alike.shape))
checks.line(
    f"L(comp) of the four heads: {eq06_compression_loss(here.A):.2f}. Most alike are heads {k + 1} and"
    f" {n + 1}: {alike[k, n]:.2f} in place of 0, which is there twice."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (7) The decoder reads the memory

The decoder's GRU sees the summary so far, and nothing else of the text than its first state. Its state $h^{(d)}_t$ attends to the slots of the decoder memory, which at first **is** the encoder's
($\mathbf M_D=\mathbf M_E$: the transfer). What is read is mixed into the state that attends to the text and predicts the next word. Attn is Luong's; of his three scores the page uses *concat*.

$$\mathrm{Attn}(q,k)=\mathrm{softmax}\big(v^\top\tanh(W_q q+W_k k)\big)$$

$$\psi_{tk}=\mathrm{Attn}\big(h^{(d)}_t,\mathbf M_D(k)\big),\quad m_t=\sum_{k=1}^r\psi_{tk}\mathbf M_D(k),\quad
h^{(m)}_t=W_m[h^{(d)}_t;m_t]\tag{7}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("mem2mem", {7, 8, 9, 10})


# %% slideshow={"slide_type": "skip"}
def attention(query, keys, W_q, W_k, v):
    """Luong's concat score, softmax over the keys: [n]."""
    scores = [v @ torch.tanh(W_q @ query + W_k @ key) for key in keys]
    return torch.stack(scores).softmax(0)


def eq07_memory_read(h_d, M_D, W):
    """State [d], memory [r, d] -> psi [r], what is read m [d], new state h_m [d]."""
    psi = attention(h_d, M_D, *W["psi"])
    m = sum(psi[k] * M_D[k] for k in range(len(M_D)))
    return psi, m, W["W_m"] @ torch.cat([h_d, m])


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    fed = in_vocabulary(w.batch.target_input[0, : w.T], w.size)
    w.x = w.model.embedding(fed)  # [T, E]: [BOS] and the reference shifted
    w.h_d, _ = w.model.decoder(w.x, w.h_start[None])  # [T, d]
    w.psi_1, w.m_1, _ = eq07_memory_read(w.h_d[0], w.M_E, w.W)
    checks.close(
        w.psi_1, w.output.read[0, 0], "(7)", "read attention of the first step"
    )
k = int(here.psi_1.argmax())
checks.line(
    f"Before word 1 slot {k + 1} gets {here.psi_1[k]:.2f} of the read. So what is read has a cosine of"
    f" {cosine(here.m_1, here.H[0]):.2f} with the state of sentence 1, of {cosine(here.m_1, here.H[4]):.2f} with that of sentence 5."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (8) to (10) Every slot is overwritten

Writing lets the decoder note what it has read and written. A model of part 1 that is trained without any write has a higher nll (1.06 in place of 0.29). Before every read but the first, each slot decides how much of itself to keep ($z$) and what to put in place of the rest ($u$), from the new decoder state, from
what was read last and from its own content:

$$z^k_t=\sigma\big(W_{z1}h^{(d)}_{t+1}+W_{z2}m_t+W_{z3}\mathbf M_D(k)\big)\tag{8}$$

$$u^k_t=\tanh\big(W_{u1}h^{(d)}_{t+1}+W_{u2}m_t+W_{u3}\mathbf M_D(k)\big)\tag{9}$$

$$\mathbf M_D(k):=z^k_t\odot\mathbf M_D(k)+(1-z^k_t)\odot u^k_t\tag{10}$$

The number $k$ of a slot is in none of the three, only its content. Two equal slots stay equal: a memory that **starts from zeros** stays one vector in $r$ copies. This is the case of the row `+decoder memory` of the paper's Table 2.

<details><summary>Predict: a gate keeps 60% of a slot at every word. How much is left of it after five words? Is the slot still similar to what it was?</summary>

$0.6^5=8\%$; the gates of the model above differ a little from word to word, and leave 10%. After four words the slots have a cosine of about 0 with what was handed over. The product of the gates counts only what stays in its place. The update (9) reads the slots as well, so it may carry some of their content on.

</details>
"""


# %% slideshow={"slide_type": "skip"}
def eq08_gate(h_next, m, slot, W):
    return torch.sigmoid(W["W_z1"] @ h_next + W["W_z2"] @ m + W["W_z3"] @ slot)


def eq09_update(h_next, m, slot, W):
    return torch.tanh(W["W_u1"] @ h_next + W["W_u2"] @ m + W["W_u3"] @ slot)


def eq10_write(h_next, m, M_D, W):
    """Next decoder state [d], last read [d], memory [r, d] -> new memory [r, d]."""
    slots = []
    for slot in M_D:
        z, u = eq08_gate(h_next, m, slot, W), eq09_update(h_next, m, slot, W)
        slots.append(z * slot + (1 - z) * u)
    return torch.stack(slots)


# %% slideshow={"slide_type": "skip"}
def reads_and_writes(h_d, M_E, W):
    """States [T, d], M_E [r, d] -> all psi [T, r], m [T, d], h_m [T, d], and M_D."""
    reads, memories = [eq07_memory_read(h_d[0], M_E, W)], [M_E]
    for t in range(2, len(h_d) + 1):
        (_, m, _), M_D = reads[-1], memories[-1]
        memories.append(eq10_write(h_d[t - 1], m, M_D, W))
        reads.append(eq07_memory_read(h_d[t - 1], memories[-1], W))
    return *map(torch.stack, zip(*reads)), torch.stack(memories)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    z, u = (of(w.h_d[1], w.m_1, w.M_E[2], w.W) for of in (eq08_gate, eq09_update))
    lib_z, lib_u = w.model.gate_and_update(
        w.M_E[None], w.m_1[None], w.model.write_hidden(w.h_d[1:2])
    )
    checks.close(z, lib_z[0, 2], "(8)", "gate of slot 3")
    checks.close(u, lib_u[0, 2], "(9)", "update of slot 3")
    w.psi, w.m, w.h_m, w.M_D = reads_and_writes(w.h_d, w.M_E, w.W)
    lib_inputs = w.model.embedding(in_vocabulary(w.batch.target_input, w.size))
    lib_h_m, _, _ = w.model.condition(
        w.model.decoder(lib_inputs, w.state.hidden[None])[0], w.state
    )
    checks.close(w.psi, w.output.read[0, : w.T], "(10)", "read attention of all steps")
    checks.close(w.h_m, lib_h_m[0, : w.T], "(10)", "h^(m) of all steps")
    if w is here:
        number = f"{z[0]:.2f} · {w.M_E[2, 0]:.2f} + {1 - z[0]:.2f} · {u[0]:.2f} = {w.M_D[1, 2, 0]:.2f}"
        share = z.mean().item()
checks.line(
    f"Before word 2 the first number of slot 3 becomes {number}. Over its {here.d} numbers the gate keeps {share:.2f} of it."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
steps_seen = list(range(1, here.T + 1))
left = slots_left(here.model, here.batch, here.T)[0].mean(1)
with torch.no_grad():
    similar = torch.nn.functional.cosine_similarity(
        here.M_D, here.M_E[None], dim=-1
    ).mean(1)
figures.show(
    lines, "What is in a slot before each word of the toy's summary, means over the four slots: the share of what was handed over that the gates"
    " have kept in its place, and the cosine with what was handed over.",
    panels=[{
        "series": {"kept by the gates": [steps_seen, left], "cosine with the first content": [steps_seen, similar]},
        "xlabel": "decoding step", "ylabel": "", "ticks": steps_seen,
    }], width=7,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (16), (17), (3) Attention to words and to sentences, multiplied

$h^{(m)}_t$ attends twice: to all words of the document ($\alpha$, with a coverage term that tells how much attention each
word has had) and to its sentences ($\beta$). The weight of a word is multiplied by that of its sentence $sen(i)$, and the products are normalised ($\gamma$). With α uniform words lose 1.6 nats each, with β uniform 1.3 (table at the end of this part); without coverage they lose nothing here.
The paper writes $w_c$ for two vectors: for the one that coverage is multiplied with, here $w_{cov}$, and for that of the context in (13).

$$cov_t=\sum_{t'<t}\alpha_{t'}\tag{16}$$

$$\alpha_{ti}=\mathrm{softmax}_i\big(v^\top\tanh(W_eh^{(w)}_i+W_dh^{(m)}_t+w_{cov}\,cov_{ti})\big)\tag{17}$$

$$\beta_{tj}=\mathrm{Attn}\big(h^{(m)}_t,h^{(s)}_j\big),\qquad
\gamma_{ti}=\frac{\beta_{t\,sen(i)}\,\alpha_{ti}}{\sum_l\beta_{t\,sen(l)}\,\alpha_{tl}},\qquad c_t=\sum_i\gamma_{ti}h^{(w)}_i\tag{3}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("mem2mem", {3, 16, 17})


# %% slideshow={"slide_type": "skip"}
def eq16_coverage(alphas, words):
    """Weights of all earlier steps -> their sum [N]; zeros before the first."""
    return sum(alphas, torch.zeros(words).double())


def eq17_word_attention(h_m, h_w, cov, W):
    query = W["W_d"] @ h_m
    sums = [W["W_e"] @ h_w[i] + query + W["w_cov"] * cov[i] for i in range(len(h_w))]
    return torch.stack([W["v"] @ torch.tanh(x) for x in sums]).softmax(0)


def eq03_combine(alpha, beta, sentence_of):
    """alpha [N], beta [L], sentence of each word [N] -> gamma [N]."""
    weights = torch.stack([beta[sentence_of[i]] * alpha[i] for i in range(len(alpha))])
    return weights / weights.sum()


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    alpha, beta, gamma = [], [], []
    w.sentence_of = w.batch.sentence_of[0, : w.N]
    for t in range(w.T):
        cov = eq16_coverage(alpha, w.N)
        alpha.append(eq17_word_attention(w.h_m[t], w.h_w, cov, w.W))
        beta.append(attention(w.h_m[t], w.H, *w.W["beta"]))
        gamma.append(eq03_combine(alpha[-1], beta[-1], w.sentence_of))
    w.alpha, w.beta, w.gamma = torch.stack(alpha), torch.stack(beta), torch.stack(gamma)
    w.c = w.gamma @ w.h_w
    checks.close(
        eq16_coverage(alpha, w.N),
        w.output.alpha[0, : w.T, : w.N].sum(0),
        "(16)",
        "coverage after the last step",
    )
    checks.close(w.alpha, w.output.alpha[0, : w.T, : w.N], "(17)", "attention to words")
    checks.close(
        w.beta, w.output.sentences[0, : w.T, : w.L], "(3)", "attention to sentences"
    )
    checks.close(
        w.gamma, w.output.copy[0, : w.T, : w.N], "(3)", "combined attention gamma"
    )
i = 25  # the first word of the second marked sentence
checks.line(
    f"Before word 6, the place of {words[i]}: coverage {here.alpha[:5, i].sum():.2f}, α {here.alpha[5, i]:.2f}, β of its sentence {here.beta[5, 4]:.2f}, γ {here.gamma[5, i]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: before word 6, three words share three quarters of α. Which three? And why are the two attentions multiplied?</summary>

The first words of the three marked sentences: α knows which word of a sentence is due, but not in which sentence. β knows the sentence and nothing of its words. Their product is a single word.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
of_word = here.beta[5, here.sentence_of]
three = {
    "α, words": here.alpha[5],
    "β, of each word's sentence": of_word,
    "γ, the product": here.gamma[5],
}
panels = [
    {"title": title, "words": words, "weights": weights.detach()}
    for title, weights in three.items()
]
figures.show(
    shaded_words, "(17) and (3) before word 6: each word of the text as dark as it is attended to.",
    panels=panels, label="weight",
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (13) to (15) Generate or copy

$P_g$, over the vocabulary, cannot name a word that the vocabulary lacks; $P_c$, which gives each word of the document the attention on all its places, cannot end a summary. A switch mixes the two. (Without copying this model loses 48 nats a word: its $P_g$ has learned nothing but the end.)
$P_g$ goes through a bottleneck of 128, which the paper does not describe; with it, the model has [the paper's 14.7M parameters](../docs/papers/mem2mem.md#parameters).

$$P_g=\mathrm{softmax}\big(V(V'[h^{(m)}_t;c_t]+b)+b'\big)$$

$$p_t=\sigma\big(w_c^\top c_t+w_d^\top h^{(m)}_t+w_x^\top x'_t+b_z\big)\tag{13}$$

$$P_c(w)=\sum_{i:x_i=w}\gamma_{ti}\tag{14}$$

$$P=p_tP_g+(1-p_t)P_c\tag{15}$$

The paper prints (13) with a softmax. The softmax of a single number is always 1, so it must be a sigmoid.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("mem2mem", {13, 14, 15})


# %% slideshow={"slide_type": "skip"}
def vocabulary_distribution(h_m, c, W):
    narrow = W["V'"] @ torch.cat([h_m, c]) + W["b"]
    return torch.softmax(W["V"] @ narrow + W["b'"], dim=0)


def eq13_switch(c, h_m, x, W):
    return torch.sigmoid(W["w_c"] @ c + W["w_d"] @ h_m + W["w_x"] @ x + W["b_z"])


def eq14_copy(gamma, source, size):
    """gamma [N], extended ids [N] -> P_c of vocabulary and unknown words [size]."""
    return torch.zeros(size).double().index_add(0, torch.as_tensor(source), gamma)


def eq15_mixture(p, P_g, P_c):
    """P_g has no mass on copy ids, and P_c none on words that the source lacks."""
    P_g = torch.cat([P_g, torch.zeros(len(P_c) - len(P_g)).double()])
    return p * P_g + (1 - p) * P_c


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def lib_distribution(w, **changes):
    """P of each step [T, vocabulary and unknown words] by the library, a row for each step."""
    features, switch, copy = (
        of[0, : w.T, None] for of in (w.output.features, w.output.switch, w.output.copy)
    )
    by_step = PointerOutput(
        features, switch, copy, w.batch.source_extended[0].expand(w.T, -1)
    )
    return mixture_distribution(
        replace(by_step, **changes), *w.model.output_layer(), len(w.document.unknown)
    )


for w in (here, padded):
    unknown = len(w.document.unknown)
    w.p = torch.stack([eq13_switch(w.c[t], w.h_m[t], w.x[t], w.W) for t in range(w.T)])
    w.P_c = torch.stack(
        [
            eq14_copy(w.gamma[t], w.document.source.tolist(), w.size + unknown)
            for t in range(w.T)
        ]
    )
    w.P_g = torch.stack(
        [vocabulary_distribution(w.h_m[t], w.c[t], w.W) for t in range(w.T)]
    )
    w.P = torch.stack([eq15_mixture(w.p[t], w.P_g[t], w.P_c[t]) for t in range(w.T)])
    checks.close(w.p, w.output.switch[0, : w.T].sigmoid(), "(13)", "switch")
    never = torch.full((w.T, 1), -1e9).double()  # leaves P_c
    checks.close(w.P_c, lib_distribution(w, switch=never), "(14)", "copy distribution")
    checks.close(w.P, lib_distribution(w), "(15)", "P over vocabulary and source")
    checks.close(torch.ones(w.T), w.P.sum(1), "(15)", "each row of P sums to 1")
word = int(document.target[5])
checks.line(
    f"Step 6, {word}: P = {here.p[5]:.2f} · {here.P_g[5, word]:.2f} + {1 - here.p[5]:.2f} · {here.P_c[5, word]:.2f} = {here.P[5, word]:.2f}."
    f" Step 16, the end: P = {here.p[15]:.2f} · {here.P_g[15, EOS]:.2f} + {1 - here.p[15]:.2f} · {here.P_c[15, EOS]:.2f} = {here.P[15, EOS]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (11) The read loss ties ψ to the encoder's memory

Without (11), with $\lambda_2=0$, the heads find no more than by chance, sharp or not (Figure 1, first columns). The loss asks that two things are equal: the slots read at a step, summed with their read weights, and what the sentence attention sees. The slots
are taken **as they were before any write**, since a written slot is no mean of sentence states any more. So (11) ties $\psi$ to $\mathbf M_E$, while (7) reads $\mathbf M_D$. A model can satisfy (11) and hold something else in its slots.

$$c^{(m)}_t=\sum_k\psi_{tk}\mathbf M_E(k),\; c^{(s)}_t=\sum_j\beta_{tj}h^{(s)}_j,\;
\mathcal L^{(read)}=\frac1T\sum_t\big\|c^{(m)}_t-c^{(s)}_t\big\|_2\tag{11}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq11_read_loss(psi, M_E, beta, H):
    """psi [T, r], M_E [r, d], beta [T, L], H [L, d] -> scalar."""
    gaps = [psi[t] @ M_E - beta[t] @ H for t in range(len(psi))]
    return sum(torch.linalg.vector_norm(gap) for gap in gaps) / len(psi)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w in (here, padded):
    alone = w.model.loss(make_batch([w.document], w.size))["read"]
    checks.close(eq11_read_loss(w.psi, w.M_E, w.beta, w.H), alone, "(11)", "L(read)")
at_11 = {"of M_E": here.psi[10] @ here.M_E, "read": here.m[10]}
checks.line(
    f"Before word 11 the sentence attention is on sentence 9 ({here.beta[10, 8]:.2f}). By (11) the slots read should be its state: their first content, weighted with ψ,"
    f" has a cosine of {cosine(at_11['of M_E'], here.H[8]):.2f} with it; what is really read, by (7), of {cosine(at_11['read'], here.H[8]):.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (12) The whole loss, composed

The loss is the mean negative log-likelihood of the reference's words $y_1,\dots,y_T$ (*nll*) plus the two regularisers. The code puts all equations together: first the encoder, then one step of the decoder, then the loss of a document.

$$\mathcal L+\lambda_1\mathcal L^{(comp)}+\lambda_2\mathcal L^{(read)},\qquad
\mathcal L=-\frac1T\sum_t\log P(y_t\mid y_{<t})\tag{12}$$
"""


# %% slideshow={"slide_type": "skip"}
def encode_document(document, model, W):
    """(1), (2), (4), (5)"""
    ids_of_sentences = sentences_of(document, model.config.vocab_size)
    embedded = [model.embedding(ids) for ids in ids_of_sentences]
    read = [eq01_sentence_encoder(x, model.sentence_encoder) for x in embedded]
    s = torch.stack([last for _, last in read])
    H, final = eq02_document_encoder(s, model.document_encoder)
    h_w = torch.cat([states for states, _ in read])
    return h_w, H, model.bridge(final), *eq05_compress(H, W["W_a1"], W["W_a2"])


# %% slideshow={"slide_type": "skip"}
def decode_step(t, h_d, x, h_w, H, M_D, m, alphas, document, W):
    """One step in the paper's order: write, read, attend, predict."""
    if t > 1:
        M_D = eq10_write(h_d, m, M_D, W)
    psi, m, h_m = eq07_memory_read(h_d, M_D, W)
    alpha = eq17_word_attention(h_m, h_w, eq16_coverage(alphas, len(h_w)), W)
    beta = attention(h_m, H, *W["beta"])
    sentence_of = np.repeat(np.arange(len(H)), document.sentence_lengths)
    gamma = eq03_combine(alpha, beta, sentence_of)
    P_g = vocabulary_distribution(h_m, gamma @ h_w, W)
    P_c = eq14_copy(gamma, document.source.tolist(), len(P_g) + len(document.unknown))
    p = eq13_switch(gamma @ h_w, h_m, x, W)
    return M_D, m, psi, alpha, beta, eq15_mixture(p, P_g, P_c)


# %% slideshow={"slide_type": "skip"}
def eq12_objective(document, model, W, lambda_1, lambda_2):
    """The paper's loss of one document, word by word."""
    h_w, H, h_start, A, M_E = encode_document(document, model, W)
    target = torch.from_numpy(document.target).long()
    inputs = torch.cat([torch.tensor([BOS]), target[:-1]])
    x = model.embedding(inputs.where(inputs < model.config.vocab_size, UNK))
    h_d, _ = model.decoder(x, h_start[None])
    M_D, m, psis, alphas, betas, nll = M_E, None, [], [], [], 0.0
    for t in range(1, len(target) + 1):
        before = h_w, H, M_D, m, alphas, document, W
        M_D, m, psi, alpha, beta, P = decode_step(t, h_d[t - 1], x[t - 1], *before)
        psis, alphas, betas = [*psis, psi], [*alphas, alpha], [*betas, beta]
        nll = nll - torch.log(P[target[t - 1]]) / len(target)
    read = eq11_read_loss(torch.stack(psis), M_E, torch.stack(betas), H)
    return nll + lambda_1 * eq06_compression_loss(A) + lambda_2 * read


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for w, weights in ((here, (0.01, 0.1)), (padded, (0.3, 0.7))):
    naive = sum(
        eq12_objective(document, w.model, w.W, *weights) for document in w.documents
    ) / len(w.documents)
    lib_loss = w.model.loss(w.batch)["loss"]
    checks.close(naive, lib_loss, "(12)", "loss of the batch")
    checks.gradients(gradients(w.model, naive), gradients(w.model, lib_loss), "(12)")
terms = here.model.loss(here.batch)
checks.line(
    f"L = {terms['nll']:.3f} + 0.01 · {terms['comp']:.2f} + 0.1 · {terms['read']:.3f} = {terms['loss']:.3f}. The gradients of all parameters agree, too."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Four limiting cases can be predicted without any equation of ours, and hold: with one slot and no writing every read is that slot; with the switch at 1, $P$ is a plain softmax; a memory that starts from zeros never tells its slots apart;
and one call of the decoder with $T$ words equals $T$ calls with one, so training and generation are one path.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def small(**changes):
    sizes = {"embedding": 5, "hidden": 6, "bottleneck": 4, "slots": 3, "compression": 4}
    torch.manual_seed(2)
    return Mem2Mem(
        Mem2MemConfig(18, lambda_comp=0.0, lambda_read=0.0, **{**sizes, **changes})
    ).double()


batch, one_slot, zeros = padded.batch, small(slots=1, write=False), small(start="zeros")
one_state = one_slot.encode(batch)
one_output, one_after = one_slot.decode(batch.target_input, one_state)
checks.close(
    torch.ones_like(one_output.read),
    one_output.read,
    "(7)",
    "one slot: read attention is 1",
)
checks.close(
    one_state.encoder_memory[:, 0],
    one_after.read,
    "(7)",
    "one slot: what is read is the slot",
)
at_1 = replace(padded.output, switch=torch.full_like(padded.output.switch, 1e9))
lib_flat = padded.model.distribution(at_1, padded.state, max(map(len, batch.unknown)))[
    :, : padded.size
]  # last step
plain = padded.model.pointer.vocabulary(padded.output.features[:, -1]).softmax(-1)
checks.close(plain, lib_flat, "(15)", "switch at 1: plain softmax")
zero_output, _ = zeros.decode(batch.target_input, zeros.encode(batch))
checks.close(
    torch.full_like(zero_output.read, 1 / 3),
    zero_output.read,
    "(8)-(10)",
    "start from zeros: psi is uniform",
)
one_by_one, running = [], padded.state
for t in range(batch.target_input.shape[1]):
    step, running = padded.model.decode(batch.target_input[:, t : t + 1], running)
    one_by_one.append(padded.model.log_prob(step, batch.target[:, t : t + 1], running))
whole = padded.model.log_prob(padded.output, batch.target, padded.state)
checks.close(torch.cat(one_by_one, 1), whole, "(7)-(17)", "T calls equal one call")
checks.table()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What each part is worth to the trained toy

One part after the other is changed in the trained model, which is not trained again. How much less probable does a word of the 200 references become? (Nats a word, with a 95% interval over documents. One model: with another seed the large numbers differ.)

<details><summary>Predict: which parts can be taken away at no cost?</summary>

Coverage, what another document's memory would change, and even the difference between the slots. Not the memory itself, and not that it is written: the decoder has learned with a memory that is there and changes at every word.

</details>
"""


# %% slideshow={"slide_type": "skip"}
def lost_by(model, documents, change):
    """Nats a word that the references lose by a change, with an interval."""
    plain = log_probs(model, documents, only_known=change.only_known)
    return paired_bootstrap(log_probs(model, documents, change), plain)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
def uniform(of):
    """A change: an attention whose scores are all 0."""

    def change(model):
        changed = deepcopy(model)
        with torch.no_grad():
            of(changed).zero_()
        return changed

    return change


of_parts = {
    "no coverage (16)": "no coverage", "another document's memory (7)": "another memory", "slots averaged (7)": "slots averaged",
    "memory erased (7)": "memory erased", "one memory for all (7)": "one memory for all", "memory never written (8)-(10)": "never written", "no copying (14)": "no copying",
}  # fmt: skip
unseen, of_toy = unseen_documents(), changes_of(toy)
lost = {name: lost_by(toy, unseen, of_toy[change]) for name, change in of_parts.items()}
plain = log_probs(toy, unseen)
for name, of in (
    ("α uniform (17)", lambda m: m.word_attention.v),
    ("β uniform (3)", lambda m: m.sentence_attention.v.weight),
):
    lost[name] = paired_bootstrap(log_probs(uniform(of)(toy), unseen), plain)
pd.DataFrame.from_dict(
    {
        name: {"lost": d.text(3).split(", p")[0]}
        for name, d in sorted(lost.items(), key=lambda item: -item[1].mean)
    },
    orient="index",
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The two attentions share the work: α alone leaves three words to choose from, β alone those of a sentence. The memory that is handed over is needed, but any document's will do, since all are nearly the same; that it is *written* is worth everything to a decoder that has learned with it.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. Real papers: what does it write, and does it use what it was handed?

The shipped model (`trained/mem2mem`) has 4.4 million parameters, a third of the paper's 14.7, and was trained on papers of biomedicine. It reads 22 sentences of these papers on average, which its ten slots hardly have to compress; the paper's model reads up to 2,000 words. Its weights $\lambda_1=0.05$ and $\lambda_2=0.1$ are 500 and 10 times the paper's. From each paper it reads the introduction, the section after it and the conclusion, each cut to 250 words,
lower-cased. Words that its vocabulary does not have can only be copied.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.box

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
summarizer, vocabulary = trained.model, trained.vocabulary
options, decode = trained.options, trained.decode
has_memory = isinstance(summarizer, Mem2Mem)
system = trained.config["variant"]
system = f"Mem2Mem ({system})" if has_memory else system
run_facts(trained, choice.origin(trained))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
loss_figure(figures, "mem2mem_losses", trained, choice.is_shipped)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**Is this curve normal?** Yes: both losses of the words fall together, because every paper is new or has been seen only a few times. The learning rate is halved after the fourth and the fifth epoch (dotted lines); after the first halving both drop. The compression loss, on a logarithmic axis, falls from 9 to 0.13 within
half an hour: the heads are sharp and apart early on. The read loss first rises: at the start all attentions are uniform, and both sides of (11) are the same mean. A demo of a hundred papers looks different: it memorises them, and its validation loss soon rises.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Two summaries

Beam search writes them with trigram blocking (no three words in a row twice), which the paper does not mention; the scores below are also without it. [number] stands for a number, as in the corpus. The shipped model has to write at least 240 symbols, since the summaries that it was trained on were cut, and it has hardly ever seen one end.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
# papers of the ACL Anthology may be quoted from 2016 on
recent = [
    choice.corpus.name != "aclsum" or anthology_year(doc.id) >= 2016
    for doc in documents
]
quotable = np.flatnonzero(recent).tolist()
encoded = trained.encode(documents)
written = {}
if isinstance(summarizer, Extractor):  # chooses sentences of the paper
    written[system] = extract(summarizer, encoded, vocabulary)
else:
    for how, size in DECODINGS.items():
        rule = replace(decode, block_ngrams=size)
        written[f"{system}, {how}"] = summarize(summarizer, encoded, vocabulary, rule)
*_, blocked = written.values()
rows = []
for i in quotable[:2]:
    rows += [("title", documents[i].title)]
    rows += [("reference", clip(" ".join(documents[i].summary), 60))]
    rows += [
        ("written", clip(" ".join(trained.readable(documents[i], blocked[i])), 90))
    ]
Passages(rows)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** The sentences form an abstract: what is known, what was done, what was found. Many of the terms are copied. But in the first summary the ages of the participants, 70 to 89, have become a percentage of them.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Scores

ROUGE F1 in percent on the test documents, with a 95% bootstrap interval over documents; every summary is cut to the same length. **R-Lsum** is the summary-level R-L, with one sentence a line; the sentence-level R-L is far lower (30.7 and 20.3 for one summary on [Start here](start_here.ipynb)).
*Repeated* is the share of a summary's trigrams that have occurred in it before; *copied* is the share of its 5-grams that stand in the article. *Memory heads* are the sentences on which the heads of $\mathbf A$ are strongest, as in the paper's Table 3; *Random* chooses as many by chance from the same
shortened text. The oracle sees the reference.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: do the memory heads choose better sentences than chance does?</summary>

On these papers hardly. On 99 papers of this corpus the heads' sentences are 0.94 [0.06, 1.77] R-1 above as many words at random; on 200 papers of the corpus on which the model was trained it is 2.41 [1.88, 3.00]. What the heads look at is the next question.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
longest = TRAINED["mem2mem"].words if choice.is_shipped else decode.max_length
by_rank = [lexrank(doc.sentences, longest) for doc in documents]
systems = {
    f"Lead ({longest} words)": [doc.sentences for doc in documents],
    f"LexRank ({longest} words)": by_rank,
    "Oracle": [oracle(doc.sentences, doc.summary) for doc in documents],
}
if has_memory and summarizer.extracts:
    heads, random = summarizer.config.slots, np.random.default_rng(seed)
    shortened = [source_sentences(document, vocabulary) for document in encoded]
    by_chance = [random_sentences(texts, heads, random) for texts in shortened]
    systems[f"Random-{heads}"] = by_chance
    systems["Memory heads"] = extract(summarizer, encoded, vocabulary)
systems |= written
table, parts = summary_table(systems, documents, options, longest, seed)
table[["R-1", "R-Lsum", "words", "repeated", "copied"]]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
compare_means(parts, list(written)[-1], list(systems)[:2], seed)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** With trigram blocking the model is far above Lead and not told apart from LexRank, on papers from other sources than those that it has learned from; on papers of its own corpus it is [nearly four points above LexRank](../docs/papers/mem2mem.md#the-shipped-model). (LexRank's and the heads' sentences stand in the paper word for word, but the last one is cut, and where two sentences meet some 5-grams span both.) With plain beam search more than
four in ten of its trigrams are repetitions, and R-1 is seven points lower. The paper's numbers belong to another corpus, PubMed, with longer texts, and cannot be compared with these.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Which sentences do the heads choose?

Which sentences are the heads on, and which slots are read at each word of the summary? Here for the first of the documents:
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
@torch.no_grad()
def real_attention(model, document):
    """Panels for A, if there is one, and for psi while the summary is read back."""
    batch = make_batch([document], len(vocabulary))
    state = model.encode(batch)
    ids = torch.tensor([BOS, *beam_search(model, batch, decode)[0][0].ids])
    output, _ = model.decode(ids[None], state)
    psi = {"title": "read attention ψ", "columns": "decoding step"}
    psi["weights"] = output.read[0].T
    if not model.extracts:  # its memory starts from zeros
        return [psi]
    A = {"title": "write attention A", "columns": "sentence"}
    return [{"weights": state.write_attention[0], **A}, psi]


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
no_memory = f"{system} has no memory to draw"
panels = real_attention(summarizer, encoded[quotable[0]]) if has_memory else []
if choice.on_sample:
    assert np.asarray(panels[0]["weights"]).max(1).min() > 0.9, (
        "nearly all of its weight"
    )
caption = (
    "Memory of one test document: which sentence each head is on, and which slot"
    " is read at each word of the summary."
)
figures.show(
    attention_maps, caption, "mem2mem_real_memory", panels=panels, rows="slot", columns="", size=4.9,
) if has_memory else no_memory  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Which sentences do the heads hold? The first table lists those of this document. The second shows where in its section the sentence of a head is most often, in which sections, and in what share of the documents. For the
last column the same documents are read once more, without the sentences that the limit of words breaks off.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: slots 4, 6 and 10 move from paper to paper. What could they follow, if nobody has told the model where a section ends?</summary>

The place where a section breaks off after 250 words, in the middle of a sentence. Slot 10 has the broken sentence, slots 4 and 6 the two after it. Without broken sentences they lose their places.

</details>
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
rows = []
if has_memory and summarizer.extracts:
    texts = source_sentences(encoded[quotable[0]], vocabulary)
    for slot, j in enumerate(panels[0]["weights"].argmax(1).tolist()):
        rows.append((f"slot {slot + 1}", f"sentence {j + 1}: {clip(texts[j], 12)}"))
Passages(rows)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
usual = usual_places(trained.model, trained.encoder, documents)
if (
    choice.on_sample
):  # three heads know where a section ends, if something is cut off there
    at_seam = usual.loc[["slot 4", "slot 6", "slot 10"]]
    assert at_seam["papers"].min() > 0.9 and at_seam["nothing cut off"].max() < 0.3
usual.map(lambda x: x if isinstance(x, str) else f"{x:.0%}")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** Slots 1, 3 and 7 have the first three sentences in 98% of the papers, slots 5 and 9 mostly the last two of all that is read. Slots 10, 4 and 6 are at the seam between two sections, and lose their places in 92% of the papers and more when nothing is cut off. **These heads have learned to find the seam that the preprocessing leaves.**
Methods or conclusions begin there, so it is a good place to look at. In the toy task the place of a sentence says nothing, and the heads found the marks.
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What the memory does

A change shows it. The memory that the encoder hands over is replaced by that of another paper, each slot by the mean of all, and so on. How much less probable do the authors' abstracts
become? (Nats a word, with a 95% interval over papers; `python -m lib.intervene trained/mem2mem --dataset pmc-sample` does it for any run. The second table has means over papers.)
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
<details><summary>Predict: which costs more, another paper's memory or no memory at all? And a memory that is never written?</summary>

Another paper's memory costs 0.006 nats a word, an erased one 0.106, and 0.87 in the first ten words. A memory that is never written costs 1.6, more than to lose all copying.

</details>
""")

# %% slideshow={"slide_type": "subslide"}
changes = changes_of(summarizer) if has_memory else {}
parts = (
    "another memory", "one memory for all", "memory erased", "random memory", "slots averaged", "never written",
    "written beside another text", "written with other words", "no coverage", "no copying",
)  # fmt: skip
there = [part for part in parts if part in changes]
lost = {part: lost_by(summarizer, encoded, changes[part]) for part in there}
what = {part: changes[part].what for part in there}
text = {part: difference.text(3) for part, difference in lost.items()}
pd.DataFrame({"what is changed": what, "lost": text}, index=there)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
if (
    choice.on_sample
):  # any text's memory will do, but none will not; what the decoder writes is needed
    assert max(lost["another memory"].high, lost["one memory for all"].high) < 0.02
    assert lost["memory erased"].low > 0.05
    assert lost["written beside another text"].high < 0.02
    needed = "never written", "written with other words", "no copying"
    assert min(lost[part].low for part in needed) > 1
usual = np.median([len(document.target) for document in encoded])
WRITTEN = [n for n in (0, 1, 5, 20, 50, 100) if n + 1 < max(usual, 2)]
long_ones = [d for d in encoded if len(d.target) > max(WRITTEN) + 1]
fading = pd.DataFrame()
if has_memory and summarizer.config.write and long_ones:
    batch = make_batch(long_ones, len(vocabulary))
    fading = pd.DataFrame(slots_after(summarizer, batch, WRITTEN), WRITTEN).T
    fading.index = ["kept in place by the gates", "cosine of two slots"]
    fading = fading.rename_axis(columns="words written")
fading.round(3)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
**What to see.** With *another paper's* memory the abstracts lose 0.006 nats a word, and with *one memory for all* papers (their mean) 0.004. Erased, it costs 0.106, nearly all of it at the beginning. So the decoder depends on the memory that it is handed, but not on which paper it comes from: **the encoder has learned nearly the same memory for all papers.**
The same slot has a cosine of 0.99 for two papers, two slots of one paper 0.97, and two sentence states 0.98: a head needs only a small difference between sentences to choose one, but it collects the whole vector. So it also matters little which slot is read, and a picture of ψ (Figure 7, right) does not show what is read. What is handed over is also overwritten: of the distance between two papers' memories 40% is left after a hundred words (the product of the gates, a lower bound, says 3%).

Yet the decoder depends on *writing*: without it, 1.6 nats a word are lost. What does it note? A memory that the same words have written beside another paper's text costs 0.005. One that another abstract's words have written beside this text costs 1.15. **So the memory holds what has been said, and nothing of the text that counts**: it has become a second recurrent state. (11) does not ask for more: it compares only the contents of $\mathbf M_E$.
Attention does say what counts: in the summaries that the model writes, sentences ranked by the sum of γ over their words agree with those by erasing each to 0.78 [0.76, 0.81] (1: the same order).
""")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**[Watch it write](../docs/live.md)**: the same model in your browser, without Python. Step through a summary of your own text word by word, erase a slot or a sentence, and see what changes.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 4. What the paper claims, and what was found here

Brackets are 95% intervals over documents and seeds. Rows of Tables 1 to 4 are models of 0.8 million parameters that read 400 words and write 100; rows of the shipped model have 4.4 million and 750 words. The paper's models have 14.7 million, read 2,000 words of PubMed and write 200. So compare differences, not scores.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(claims_table("mem2mem", up="../"))

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
[`papers.md`](../papers.md#mem2mem) has all claims and what the verdicts mean, [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) the tables, where each equation stands in the library, and [every deviation](../docs/papers/mem2mem.md#deviations) with its reason. [Baselines](baselines.ipynb) has a picture and the equations of each system that the paper compares with.

## What to take home

* **Training puts information where it lowers the loss, not where the diagram has a box.** Beside attention and copying, the memory became a constant. As the only path, and never overwritten, it held the text, even without regularisers.
* **To know what a part does, change it, and check that the change could have mattered.** To exchange two equal memories shows nothing. To erase one shows that it is needed. One memory for all shows whether its content counts.
* **Compare extracts at equal length, and with chance.** R-1 rewards an extract that is as long as the reference.
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

from companion.exercises.mem2mem import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** *Find the bugs.* Somebody reads and writes the memory (7) to (10). `read(h, M)` gives $m_t$, and `gate_and_update(h, m, M)` gives $z$ and $u$ of all slots, $[r, d]$ each.

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

There are two faults. Write it right. (2 points, 15 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def reads_of_memory(M, states, read, gate_and_update):
    """What is read at each step [T, d]: first memory M [r, d], GRU's states [T, d]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, reads_of_memory)

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

(8) and (9) take $h^{(d)}_{t+1}$: the memory is written when the decoder has read one more word, just before it is read again. And $z$ is what a slot keeps, not what it takes.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**2.** Each head has all its weight on one sentence: head $k$ on the sentence `on[k]`. Derive $\mathcal L^{(comp)}$ (6). What is it when all $r$ heads are on the same sentence? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def loss_of_sharp_heads(on):
    """A list of the numbers of sentences, one for each head, in; a number out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, loss_of_sharp_heads)

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

The diagonal is right. Off it there is a 1 for each two heads on one sentence, and it stands there twice: $r(r-1)$ when all are on the same, 0 when no two are. A text with fewer sentences than heads cannot have 0.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** For $k$ words every gate (8) is at $z$, and every update (9) is $u$. Derive what a number of a slot is after them, if it was $M$ before (10). Two slots get the same gates and updates: how much of their difference is left? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def slot_after(k, z, M, u):
    """A whole number and three numbers in, one number out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, slot_after)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Write down (10) for two words, and collect what multiplies $M$. What multiplies $u$ is the rest to 1.

</details>
<details><summary>Solution</summary>

```python
def slot_after(k, z, M, u):
    return z**k * M + (1 - z**k) * u
```

Of what the encoder handed over $z^k$ is left, and just as much of the difference of two slots. With $z=0.5$ that is 3% after five words. A memory that is to last needs gates very near 1.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Change the model, and predict

**4.** A smaller model is trained on the synthetic task of part 1 for 30 steps: once without regularisers, once with $\lambda_1=1$ and once with $\lambda_2=3$ (12). Compare the last two with the first. With $\lambda_1=1$, is the mean weight that a head has on its strongest sentence larger or smaller? With $\lambda_2=3$, is the loss of the words larger or smaller? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def with_heavy_regulariser():
    """Two words, "larger" or "smaller": of the weight, of the loss of the words."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, with_heavy_regulariser)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

For which attention is (6) 0? And what can the model do in 30 steps, if most of a gradient, which is shortened to a norm of 2, is that of (11)?

</details>
<details><summary>Solution</summary>

```python
def with_heavy_regulariser():
    return ["larger", "larger"]
```

(6) is 0 only where each head is on one sentence, so it makes heads sharp at once. (11) makes what is read equal to what the sentence attention sees before that is of any use, and the words get less of the gradient.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** A small Mem2Mem has learned a task like that of part 1, with one marked sentence in four. Then one thing is changed, and the model is not trained again: it gets the **memory of another text**; its memory is **never written**, so that (8) to (10) are left out; it **cannot copy**, with $p_t=1$ in (15). For each change: does the *first* word of the references lose more than half a nat of $\log P$? And does a word of theirs on average? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def more_than_half_a_nat():
    """Three pairs of truth values, [first word, average word]: another memory, never
    written, no copying."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, more_than_half_a_nat)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What else than the memory tells the decoder of the text? When is the memory written for the first time? And whose words are random?

</details>
<details><summary>Solution</summary>

```python
def more_than_half_a_nat():
    return [[False, False], [False, True], [True, True]]
```

The decoder attends to the text itself, and has no use for what is handed over. But it has learned with a memory that changes at every word, and without that it is lost from the second word on; the first is written
before any write of the memory. The words are random, so nothing but the text can tell them. What matters to this model is that its memory is written, not what it gets.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** The weights of a Mem2Mem are random. Before the first word the memory that is handed over is changed in one of four ways: its slots come **in another order**; **one slot** is there **twice**, so that there are four instead of three; **each slot** is there **twice**, so that there are six; all slots are **their mean**. In which cases do all words of the summary keep exactly the probability that they had? Use (7) to (10). (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def same_probabilities():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, same_probabilities)

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

No equation knows a slot by its number, and equal slots stay equal. Slots that are all there twice share the weight that each had, and $m_t$ is as before. If only one is there twice, it gets more weight than it had.
The mean of the slots is not what is read, unless $\psi$ is uniform.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**To go on with, without a check.** Run the page with `variant="+decoder memory"` and look at the read attention. Which of the limiting cases above explains it?
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* `python -m lib.train mem2mem --dataset arxiv --preset paper --output runs/arxiv` trains at the paper's size on a GPU;
  then run this page with `run` set to `runs/arxiv`.
* [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
