# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Mem2Mem: summarizing long texts with memory compression and transfer

Jaehong Park, Jonathan Pilault, Christopher Pal: *Learning to Summarize Long Texts with Memory Compression and
Transfer*, 2020, [arXiv:2010.11322](https://arxiv.org/abs/2010.11322).

A recurrent encoder-decoder reads a paper of thousands of words, sentence by sentence. Its decoder would have to find its way through hundreds of sentence states. Mem2Mem
**compresses** these states into a handful of memory slots. Each slot is meant to learn, without labels, to hold about one important sentence. Mem2Mem then **hands the slots over** to
the decoder, and lets the decoder **read and write** them while it writes the summary.

**When you have read this page** you can say what each of the paper's 17 equations computes, what a readable memory needs, when a memory matters to the words, and what
a trained model of this kind writes.

**Before you start**: PyTorch, and what [Start here](start_here.ipynb) explains: sequence to sequence with attention, copying, coverage, beam search, ROUGE.

| part | what you will see | minutes |
|---|---|---|
| 1 | a synthetic task: a memory that learns to pick the sentences that matter, and one that the decoder needs | 10 |
| 2 | every numbered equation as a short function, with its numbers for one small text, checked against the library `lib` that trains the model; all of them composed into the loss | 45 |
| 3 | a model that has learned: its losses over hours, its summaries, scores beside baselines, pictures of its memory | 20 |
| 4, 5 | the published numbers, and what deviates from the paper | 15 |
| 6 | exercises | 90 |

The equations stand in the order in which a document flows through the model. So (3) comes after (10), and (11) and (12) come last.
Before this page: [Read-Again](read_again.ipynb); next: [Hierarchical transformers](hierarchical_transformer.ipynb).

With the parameters as they are, the page takes about a minute on two CPU cores and needs no network. It opens the kept run, a trained model that comes with the project
(`trained/mem2mem`, a third of the paper's size), and lets this model summarize papers that it has never seen. With any other `dataset`, `preset`, `variant`, `steps` or `seed`
the page trains a model first. With `preset="demo"` the training takes half a minute, and the model then writes text that sounds like an abstract but makes no sense.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Conventions

The paper is paraphrased, never quoted; **(7)** is its equation 7. Functions named after an equation, like `eq07_memory_read`, are written to be read: they take one document,
with no batch, no padding and no device, and use loops where loops are clear. They take their weights from the library's modules. `checks` compares their results with what the
library computes for a padded batch in double precision, and stops the page when the two differ. A table at the end of part 2 lists all comparisons. Standard parts (GRU,
softmax) come from PyTorch on both sides.

| symbol | shape | what |
|---|---|---|
| $N, L, T$ | | words and sentences of the document, words of the summary |
| $E,\ r$ | | width of the embeddings; number of memory heads, which is also the number of slots |
| $d$ | | width of the sentence states (both directions) and of the decoder |
| $x_i,\ x'_t$ | $E$ | embedding of a source word; of the summary word that enters the decoder at step $t$ |
| $h^{(w)}_i,\ h^{(s)}_j$ | $d$ | state of word $i$ (sentence encoder), of sentence $j$ (document encoder) |
| $h^{(d)}_t,\ h^{(m)}_t$ | $d$ | decoder state; the same after it has read the memory |
| $\alpha_t,\ \beta_t,\ \gamma_t$ | $N,\ L,\ N$ | attention over words, over sentences, and the two combined |
| $cov_t,\ c_t$ | $N,\ d$ | word attention of all steps before $t$, summed; context: word states, weighted by $\gamma_t$ |
| $\mathbf H$ | $L\times d$ | all sentence states |
| $\mathbf A$ | $r\times L$ | write attention: one row a memory head, softmax over sentences |
| $\mathbf M_E,\ \mathbf M_D$ | $r\times d$ | encoder memory, decoder memory |
| $\psi_t,\ m_t$ | $r,\ d$ | read attention over the slots, and what is read |
| $z^k_t,\ u^k_t$ | $d$ | write gate of slot $k$; the update that may be written into the slot |
| $P_g,\ P_c,\ P$ | a number a word | distribution over the vocabulary; over the document's words; the two mixed |
| $p_t$ | scalar | probability of generating rather than copying (the paper calls it $z_t$, as the gate) |
| $sen(i)$ | | the sentence of word $i$ (the paper: $m(i)$) |
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, arxiv, ...) or a folder of train, val, test files
preset: str = ""  # empty: kept run; demo where others are given; paper: for a GPU
variant: str = "+read"  # a row of Tables 1 and 2: hred to +read, Sent-CLF, TLM, ...
steps: int = 0  # training steps; 0: as many as the preset says
seed: int = 0  # of weights, batches and bootstrap
output: str = ""  # folder of the trained run; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
from lib.pages.parameters import check_parameters

check_parameters(globals())

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lib.pages.checks import Checks, gradients
from lib.data.batch import in_vocabulary, make_batch
from lib.data.corpora import anthology_year, load_corpus
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.papers.mem2mem.sections import CohanOptions, choose_sections
from lib.data.synthetic import MARK, planted_at, planted_sentences
from lib.data.vocabulary import BOS, UNK, Vocabulary
from lib.evaluation.baselines import lexrank, oracle, random_sentences
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.interventions import changes_of, log_probs
from lib.evaluation.slots import slots_after
from lib.pages.diagrams import show_model
from lib.pages.figures import attention_maps, word_maps
from lib.runs.search import beam_search, extract, source_sentences, summarize
from lib.layers.pointer import PointerOutput
from lib.results.kept import kept_table
from lib.evaluation.metrics import copied_ngrams
from lib.models.hred import HRED, HREDConfig
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, compression_loss
from lib.models.summarizer import Extractor
from lib.pages.measured import task_table
from lib.pages.runs import (
    loss_figure, run_facts, run_for_page, unseen_papers, validation_losses,
)  # fmt: skip
from lib.pages.shown import (
    PageFigures, Passages, clip, figures_folder, show_source, show_tables, wrapped,
)  # fmt: skip
from lib.pages.summaries import summary_table
from lib.papers import resolve
from lib.results.scores import cut
from lib.results.text import (
    pairs_frame,
    published_table,
    setting,
    table_frame,
)
from lib.papers.tables import DECODINGS
from lib.tasks.memory import (
    GATES, LOSSES, VOCABULARY, MemoryAlone, learn_planted, unseen_documents,
)  # fmt: skip

as_they_are = (dataset, preset, variant, steps, seed) == ("", "", "+read", 0, 0)
dataset = dataset or ("pmc-sample" if as_they_are else "aclsum")
preset = preset or ("medium" if as_they_are else "demo")
chosen = resolve("mem2mem", preset, variant, steps=steps or None, seed=seed)
corpus = load_corpus(
    dataset, errors="skip"
)  # a name or folder that cannot be read ends the page here
documents = unseen_papers(corpus, 50 if as_they_are else chosen.documents)
# only the page as it is draws the committed figures
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
show_model("mem2mem")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**One whole step of the decoder.** The last written word enters a GRU; no context is fed into the state of this GRU. From the second step on, the memory is **written** first,
from that state and from what was read at the step before: each slot keeps a part of itself and replaces the rest (8)-(10). Then the state **reads**: it attends to the r
slots, which started out as the encoder's memory, and what is read is mixed into the state (7). This mixed state, not the GRU's own, attends to all words and to all sentences.
The attention to words takes into account how much attention each word has had so far (16), (17). The two attentions are multiplied and normalised, and give the context (3).
The mixed state and the context make the vocabulary's distribution. The combined attention is also the copy distribution (14). A switch between 0 and 1 mixes the two
distributions (13), (15). The GRU's state, the memory, what was read, and the sum of the word attention so far go on to the next step.

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
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. A task with a known answer

A document has twelve sentences of six random words each. Three of the sentences begin with a marking word, and the summary consists of the other words of these three. Nobody
tells the memory which sentences matter. It has four slots, each filled by a head that spreads its attention over the sentences. The loss has two extra terms, the
regularisers. $\mathcal L^{(comp)}$ (6) wants each head on one sentence and no two heads on the same one. $\mathcal L^{(read)}$ (11) wants what is read from the memory to be
what the decoder attends to in the text. The same small model was trained with five pairs of weights $\lambda_1,\lambda_2$, and five seeds each
(`python -m lib.solve memory`). The table gives, for 200 unseen documents, means and ranges over the seeds: the loss (**nll**); the share of marked sentences among those on
which some head is strongest (**precision**); the share of the marked sentences on which some head is strongest (**recall**); how much of its weight a head has **on marked**
sentences (uniform: 0.25); and its weight on its **strongest** sentence.
"""

# %% slideshow={"slide_type": "skip"}
V = VOCABULARY
(example,) = planted_sentences(1, seed=7, vocab_size=V)
sentences = example.source.reshape(12, 6).tolist()
written_out = [" ".join(map(str, words)) for words in sentences]
marks = [f"begins with {MARK}" if j in planted_at(example) else "" for j in range(12)]
print("summary", *example.target.tolist()[:-1])
pd.DataFrame({"sentence": written_out, "marked": marks}, index=range(1, 13))

# %% slideshow={"slide_type": "subslide"}
measures = ("nll", "precision", "recall", "on marked", "strongest")
rows = {
    f"{name}: {comp:g}, {read:g}": f"all ways, {name}, plain gate"
    for name, (comp, read) in LOSSES.items()
}
table = task_table("memory", dict(zip(measures, measures)), rows)
table.rename_axis("λ1, λ2")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The pictures below are the paper's figures 3 and 4 for four of these models, trained by the page. First the write attention $\mathbf A$ of one unseen document; red
triangles stand under the marked sentences.
"""


# %% slideshow={"slide_type": "skip"}
@torch.no_grad()
def planted_attention(model, document):
    """Write attention A [r, L], read attention psi [r, T] under teacher forcing."""
    batch = make_batch([document], V)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    return state.write_attention[0], output.read[0].T


shown, maps = unseen_documents()[0], {}
for name in ("both", "neither", "no L(comp)", "no L(read)"):
    learned, _ = learn_planted(Mem2Mem, name, "plain gate", seed)
    maps[name] = planted_attention(learned, shown)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
write_panels = [
    {"title": name, "weights": A, "marked": planted_at(shown)}
    for name, (A, _) in maps.items()
]
caption = (
    "Write attention A of one unseen document, a row for each memory head, for the four"
    " losses. Red triangles: the marked sentences, which nobody told the heads."
)
figures.show(
    attention_maps, caption, "mem2mem_write_attention",
    panels=write_panels, rows="memory head", columns="sentence", top=1.0,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With both terms the heads find all marked sentences with every seed (one is chosen twice, since there are four heads). With neither the memory is no blur: the
heads have 0.00 of their weight on marked sentences, which they avoid. $\mathcal L^{(read)}$ alone puts them on marked sentences, but nothing
keeps two heads from choosing the same one, and with every seed one of the three is missed. With the paper's own weights, 0.0001
and 0.01, one or two are. $\mathcal L^{(comp)}$ alone makes heads sharp, on other sentences: with two seeds no
head is on a marked sentence, with three a quarter of them, as by chance. So a *readable* memory needs both terms. The words need neither: *both* has the
lowest nll with no seed.

The next picture shows the read attention $\psi$ while the summary is written. The summary has 15 words, five from each of three sentences; the 16th column is the end symbol.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
read_panels = [{"title": name, "weights": psi} for name, (_, psi) in maps.items()]
caption = (
    "Read attention ψ for the same document, a column for each word of the summary."
)
figures.show(
    attention_maps, caption, "mem2mem_read_attention",
    panels=read_panels, rows="memory slot", columns="decoding step", top=1.0,
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With the read loss, the slots that are read change after words 5 and 10, where the next sentence begins. With both terms one slot is read for the first
sentence; for the second the reads are spread (we do not know why). Without the read loss, they have little to do with what is being written. But $\psi$ belongs to two
memories: (11) ties it to the slots as they were at first, while (7) reads what they hold now, and after five words at most 0.29 of the first content is left (table below).

## When a memory matters

Does the decoder need its memory? A document is summarized with the memory of **another**. In a second model the memory is **alone**: the decoder
starts from zeros, its context is zero, and it cannot copy (`MemoryAlone`): all it knows of the text has gone through four slots. Both models are trained with
three write gates: the paper's, the same with a bias of 3 at the start, so that it keeps a slot, and none: the memory is never written.
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

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
learned, _ = learn_planted(MemoryAlone, "both", "never written", seed)
A, psi = planted_attention(learned, shown)
panels = [
    {
        "title": "write attention A",
        "weights": A,
        "marked": planted_at(shown),
        "columns": "sentence",
    },
    {"title": "read attention ψ", "weights": psi, "columns": "decoding step"},
]
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
(one in a hundred by chance), and another document's memory costs 6.6 to 7.8 nats a word. It needs no regulariser (last row): words that depend on the memory teach its heads, all three sentences with four seeds, two with one.
With the paper's gate nothing is learned in 600 steps: the nll is that of chance, 4.26 (4.1 without regularisers), since a slot is
overwritten before its words are due. A gate that starts by keeping learns something. With **all ways open**, another memory costs nothing (at most 0.006), whatever the gate.
So there are two causes why a memory is not used: attention and copying make it needless, and the plain gate destroys what it holds.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. The equations, one by one

## A toy corpus

Three documents of different lengths, so that a batch of them has padding in both directions: words and sentences. The
vocabulary is made too small on purpose. A word outside it, like *zebra*, gets an id of its own after those of the vocabulary, valid in its document only. In this way the
model can copy a word for which it has no embedding. The first document goes through all equations, and its words label the axes of the pictures. The weights are random, so
the pictures show what is computed, not what a trained model does.
"""

# %% slideshow={"slide_type": "skip"}
toy_documents = [
    Document(
        "a", "", ["Introduction", "Conclusion"],
        [["The cat saw a zebra.", "It ran!"],
         ["The cat was fast, and the zebra was not."]],
        ["The zebra saw the cat."],
    ),
    Document(
        "b", "", ["Introduction"], [["A quokka sat.", "The cat ran."]],
        ["A quokka and the cat."],
    ),
    Document(
        "c", "", ["Introduction", "Conclusion"],
        [["The cat sat and sat and sat.", "The zebra ran.", "The quokka saw it."],
         ["It was not the cat."]],
        ["It was the okapi, not the cat."],
    ),
]  # fmt: skip

# %% slideshow={"slide_type": "skip"}
toy_options = CohanOptions(vocab_size=18)
toy_words = ["the", "cat", "ran", "sat", "saw", "a", "it", "was", "not", "and"]
toy_words += ["fast", ".", ",", "!"]
toy_vocabulary = Vocabulary(toy_words)
toy = TextEncoder(toy_options, toy_vocabulary).encode(toy_documents)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
def in_ids(document, ids):
    words = toy_vocabulary.decode(ids.tolist(), document.unknown)
    return " ".join(f"{word}:{i}" for word, i in zip(words, ids.tolist()))


a, _, c = toy
Passages([
    ("vocabulary", f"{len(toy_vocabulary)} symbols: {' '.join(toy_vocabulary.words)}"),
    ("source of a", in_ids(a, a.source)),
    ("its unknown word", f"{a.unknown[0]}, which has id {len(toy_vocabulary)} in this document"),
    ("summary of a", in_ids(a, a.target)),
    ("summary of c", f"{in_ids(c, c.target)} (the okapi is in neither vocabulary nor source)"),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The model at toy size, in double precision, its weights drawn larger than usual so that every
mistake shows. `state` is what the encoder computes once per document, `toy_output` what the decoder computes for all
summary words at once.
"""

# %% slideshow={"slide_type": "skip"}
torch.manual_seed(1)
model = Mem2Mem(
    Mem2MemConfig(
        len(toy_vocabulary), embedding=5, hidden=6, bottleneck=4, slots=3,
        compression=4, lambda_comp=0.3, lambda_read=0.7,
    )
).double()  # fmt: skip
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.7)
batch = make_batch(toy, len(toy_vocabulary))
state = model.encode(batch)
toy_output, state_after = model.decode(batch.target_input, state)

b = 0  # the document that the next cells follow; it is padded on both axes
N, L, T = len(toy[b].source), len(toy[b].sentence_lengths), len(toy[b].target)
print(f"batch: sources {tuple(batch.source.shape)}")
print(f"document {b}: {N} words in {L} sentences, {T} words in the summary")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The paper's symbols and the modules of `lib` that hold them:
"""

# %% slideshow={"slide_type": "skip"}
d = model.config.hidden
W = {  # the paper's symbol -> weights of lib's module; here those of the memory
    "W_a1": model.compress_heads.weight, "W_a2": model.compress_hidden.weight,  # (5)
    "psi W_q": model.read_attention.query.weight,  # (7)
    "psi W_k": model.read_attention.key.weight,
    "psi v": model.read_attention.v.weight[0], "W_m": model.read_output.weight,
    "W_z1": model.write_hidden.weight[:d], "W_u1": model.write_hidden.weight[d:],
    "W_z2": model.write_read.weight[:d], "W_u2": model.write_read.weight[d:],
    "W_z3": model.write_memory.weight[:d], "W_u3": model.write_memory.weight[d:],
}  # fmt: skip
W |= {  # of attention and prediction
    "beta W_q": model.sentence_attention.query.weight,  # (3)
    "beta W_k": model.sentence_attention.key.weight,
    "beta v": model.sentence_attention.v.weight[0],
    "W_e": model.word_attention.key.weight,  # (17)
    "W_d": model.word_attention.query.weight,
    "w_c cov": model.word_attention.coverage, "v": model.word_attention.v,
}  # fmt: skip

# %% slideshow={"slide_type": "skip"}
pointer, switch = model.pointer, model.pointer.switch
W |= {
    "V'": pointer.bottleneck.weight, "b": pointer.bottleneck.bias,  # P_g
    "V": pointer.vocabulary.weight, "b'": pointer.vocabulary.bias,
    "w_c": switch.weight[0, :d], "w_d": switch.weight[0, d : 2 * d],  # (13)
    "w_x": switch.weight[0, 2 * d :], "b_z": switch.bias[0],
}  # fmt: skip
shapes = {name: " × ".join(map(str, w.shape)) for name, w in W.items() if w.ndim}
pd.DataFrame.from_dict(shapes, orient="index", columns=["shape"]).T

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (1) The sentence encoder

A bidirectional GRU reads one sentence at a time. Its last state is the sentence's embedding. For a bidirectional GRU, this is the forward state after the last word beside the
backward state after the first word, the one that the backward direction reaches last.

$$h^{(w)}_1,\dots,h^{(w)}_n = \mathrm{GRU}_{sen}(x_1,\dots,x_n),\qquad s = [\overrightarrow h_n;\overleftarrow h_1]\tag{1}$$

The library runs all sentences of all documents as one packed batch; no padding is computed.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {1})


# %% slideshow={"slide_type": "skip"}
def eq01_sentence_encoder(words, gru):
    """Embeddings [n, E] of a sentence -> states [n, d], embedding of it [d]."""
    states, last = gru(words)  # last: [direction, d / 2]
    return states, torch.cat([last[0], last[1]])


def sentences_of(document):
    """Word ids (unknown words as [UNK]) of each sentence."""
    ids = torch.from_numpy(document.source).long()
    known = ids.where(ids < len(toy_vocabulary), UNK)
    return known.split(document.sentence_lengths.tolist())


embedded = [model.embedding(ids) for ids in sentences_of(toy[b])]
read = [eq01_sentence_encoder(x, model.sentence_encoder) for x in embedded]
h_w = torch.cat([states for states, _ in read])  # [N, d]
s = torch.stack([last for _, last in read])  # [L, d]

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(h_w, state.words[b, :N], "(1)", "word states")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (2) and (4) The document encoder

A second bidirectional GRU reads the sentence embeddings. Its states, stacked, are the matrix $\mathbf H$. Its final state, passed through a linear layer, is the first state
of the decoder (the paper does not say how the decoder starts).

$$h^{(s)}_1,\dots,h^{(s)}_L=\mathrm{GRU}_{doc}(s_1,\dots,s_L)\tag{2}$$

$$\mathbf H=[h^{(s)}_1\ \dots\ h^{(s)}_L]^\top\in\mathbb R^{L\times d}\tag{4}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {2, 4})


# %% slideshow={"slide_type": "skip"}
def eq02_document_encoder(embeddings, gru):
    """Sentence embeddings [L, d] -> H [L, d] of (4), final state [d]."""
    states, last = gru(embeddings)
    return states, torch.cat([last[0], last[1]])


H, final = eq02_document_encoder(s, model.document_encoder)
h_start = model.bridge(final)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(H, state.sentences[b, :L], "(2), (4)", "sentence states")
checks.close(h_start, state.hidden[b], "(2)", "first state of the decoder")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (5) Memory compression

Each of $r$ heads spreads a softmax over the $L$ sentences and takes the weighted sum of their states. That is the encoder
memory: $r$ vectors however long the document.

$$\mathbf A=\mathrm{softmax}\big(W_{a1}\tanh(W_{a2}\mathbf H^\top)\big)\in\mathbb R^{r\times L},\qquad
\mathbf M_E=\mathbf{AH}\in\mathbb R^{r\times d}\tag{5}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {5})


# %% slideshow={"slide_type": "skip"}
def eq05_compress(H, W_a1, W_a2):
    """H [L, d] -> write attention A [r, L], encoder memory M_E [r, d]."""
    A = torch.softmax(W_a1 @ torch.tanh(W_a2 @ H.T), dim=1)
    return A, A @ H


A, M_E = eq05_compress(H, W["W_a1"], W["W_a2"])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(A, state.write_attention[b, :, :L], "(5)", "write attention A")
checks.close(M_E, state.encoder_memory[b], "(5)", "encoder memory M_E")
no_weight = torch.zeros(3)
checks.close(no_weight, state.write_attention[b, :, L:].sum(1), "(5)", "of padding")

# %% slideshow={"slide_type": "skip"}
source_words = toy_vocabulary.decode(toy[b].source.tolist(), toy[b].unknown)
target_words = toy_vocabulary.decode(toy[b].target.tolist(), toy[b].unknown)
target_words.append("[EOS]")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
sentence_names = [f"sentence {j + 1}" for j in range(L)]
slots = [f"slot {k + 1}" for k in range(3)]
slot_names = {"rows": slots, "columns": list(range(1, d + 1))}
gathered = {"title": "encoder memory: what each head gathered", **slot_names}
on_heads = {"rows": [f"head {k + 1}" for k in range(3)], "columns": sentence_names}
write_map = {"title": "write attention A", **on_heads}
caption = "(5) on the toy document: how much each head takes of each sentence, and what it holds then."
figures.show(
    word_maps, caption,
    panels=[{"values": A.detach(), **write_map}, {"values": M_E.detach(), **gathered}],
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (6) The compression loss

Nothing so far keeps two heads from choosing the same sentence, or one head from spreading over all. The loss asks $\mathbf{AA}^\top$ to be the identity. The product of a row
with itself is 1 only if all the weight of the row is on one sentence. The product of two rows is 0 only if they share no sentence.

$$\mathcal L^{(comp)}=\|\mathbf{AA}^\top-I\|_F^2\tag{6}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {6})


# %% slideshow={"slide_type": "skip"}
def eq06_compression_loss(A):
    """A [r, L] -> scalar: the squares of all entries of A A^T - I."""
    heads = range(len(A))
    return sum((A[k] @ A[n] - float(k == n)) ** 2 for k in heads for n in heads)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_loss = compression_loss(state.write_attention)[b]
checks.close(eq06_compression_loss(A), lib_loss, "(6)", "L(comp)")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**By hand.** Two heads on two sentences. One sentence each: $\mathbf{AA}^\top=I$, loss 0. Both uniform: every entry of
$\mathbf{AA}^\top$ is ½, so the loss is $4\cdot(½)^2=1$. Both on the same sentence: $0+0+1+1=2$.
"""

# %% slideshow={"slide_type": "skip"}
by_hand = {
    "one each": ([[1.0, 0.0], [0.0, 1.0]], 0.0),
    "uniform": ([[0.5, 0.5]] * 2, 1.0),
    "same": ([[1.0, 0.0]] * 2, 2.0),
}

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
for name, (weights, expected) in by_hand.items():
    found = compression_loss(torch.tensor([weights]).double())
    checks.close(torch.tensor([expected]), found, "(6)", f"by hand, {name}")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (7) Reading the memory

The decoder's own recurrence is a plain GRU over the summary so far. Its state $h^{(d)}_t$ attends to the slots of the
decoder memory, which at first **is** the encoder memory ($\mathbf M_D=\mathbf M_E$: the transfer). What it reads is mixed
into the state that will attend to the source and predict the next word:

$$\psi_{tk}=\mathrm{Attn}\big(h^{(d)}_t,\mathbf M_D(k)\big),\quad m_t=\sum_{k=1}^r\psi_{tk}\mathbf M_D(k),\quad
h^{(m)}_t=W_m[h^{(d)}_t;m_t]\tag{7}$$

Attn is Luong's attention; of his three scores the page uses *concat*, since (17) has that form:
$\mathrm{Attn}(q,k)=\mathrm{softmax}\big(v^\top\tanh(W_q q+W_k k)\big)$.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {7})


# %% slideshow={"slide_type": "skip"}
def attention(query, keys, W_q, W_k, v):
    """Luong's concat score, softmax over the keys: [n]."""
    scores = [v @ torch.tanh(W_q @ query + W_k @ key) for key in keys]
    return torch.stack(scores).softmax(0)


def eq07_memory_read(h_d, M_D, W_q, W_k, v, W_m):
    """State [d], memory [r, d] -> psi [r], what is read m [d], new state h_m [d]."""
    psi = attention(h_d, M_D, W_q, W_k, v)
    m = sum(psi[k] * M_D[k] for k in range(len(M_D)))
    return psi, m, W_m @ torch.cat([h_d, m])


fed = in_vocabulary(batch.target_input[b, :T], len(toy_vocabulary))
x_target = model.embedding(fed)  # [T, E]: [BOS] and the reference shifted
h_d, _ = model.decoder(x_target, h_start[None])  # [T, d]
read_weights = W["psi W_q"], W["psi W_k"], W["psi v"], W["W_m"]
psi_1, m_1, h_m_1 = eq07_memory_read(h_d[0], M_E, *read_weights)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(psi_1, toy_output.read[b, 0], "(7)", "read attention of the first step")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (8) to (10) Writing the memory

The memory is written before the second and every later read, so that it can log what was read and written. From the new decoder state, from what was read last and from its own content, each slot decides how much of
itself to keep ($z$) and what to put in place of the rest ($u$):

$$z^k_t=\sigma\big(W_{z1}h^{(d)}_{t+1}+W_{z2}m_t+W_{z3}\mathbf M_D(k)\big)\tag{8}$$

$$u^k_t=\tanh\big(W_{u1}h^{(d)}_{t+1}+W_{u2}m_t+W_{u3}\mathbf M_D(k)\big)\tag{9}$$

$$\mathbf M_D(k):=z^k_t\odot\mathbf M_D(k)+(1-z^k_t)\odot u^k_t\tag{10}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {8, 9, 10})


# %% slideshow={"slide_type": "skip"}
def eq08_gate(h_next, m, slot, W_z1, W_z2, W_z3):
    return torch.sigmoid(W_z1 @ h_next + W_z2 @ m + W_z3 @ slot)


def eq09_update(h_next, m, slot, W_u1, W_u2, W_u3):
    return torch.tanh(W_u1 @ h_next + W_u2 @ m + W_u3 @ slot)


def eq10_write(h_next, m, M_D, W):
    """Next decoder state [d], last read [d], memory [r, d] -> new memory [r, d]."""
    slots = []
    for slot in M_D:
        z = eq08_gate(h_next, m, slot, W["W_z1"], W["W_z2"], W["W_z3"])
        u = eq09_update(h_next, m, slot, W["W_u1"], W["W_u2"], W["W_u3"])
        slots.append(z * slot + (1 - z) * u)
    return torch.stack(slots)


z = eq08_gate(h_d[1], m_1, M_E[2], W["W_z1"], W["W_z2"], W["W_z3"])
u = eq09_update(h_d[1], m_1, M_E[2], W["W_u1"], W["W_u2"], W["W_u3"])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_hidden = model.write_hidden(h_d[1:2])
lib_z, lib_u = model.gate_and_update(M_E[None], m_1[None], lib_hidden)
checks.close(z, lib_z[0, 2], "(8)", "gate of slot 3")
checks.close(u, lib_u[0, 2], "(9)", "update of slot 3")

# %% slideshow={"slide_type": "skip"}
psi, m, h_m, M_D = [], [], [], M_E
for t in range(T):
    if t > 0:
        M_D = eq10_write(h_d[t], m[-1], M_D, W)
    found = eq07_memory_read(h_d[t], M_D, *read_weights)
    for values, value in zip((psi, m, h_m), found):
        values.append(value)
psi, m, h_m = torch.stack(psi), torch.stack(m), torch.stack(h_m)
lib_inputs = model.embedding(in_vocabulary(batch.target_input, len(toy_vocabulary)))
lib_h_d, _ = model.decoder(lib_inputs, state.hidden[None])
lib_h_m, _, _ = model.condition(lib_h_d, state)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
checks.close(psi, toy_output.read[b, :T], "(7)-(10)", "read attention of all steps")
checks.close(h_m, lib_h_m[b, :T], "(7)-(10)", "h^(m) of all steps")
read_map = {"title": "read attention ψ", "rows": slots, "columns": target_words}
caption = "(7) to (10) on the toy document: which slot is read before each word."
figures.show(word_maps, caption, panels=[{"values": psi.detach().T, **read_map}])

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (3), (16), (17) Attention over words and sentences

$h^{(m)}_t$ attends twice: over all words of the document ($\alpha$, with a coverage term that tells how much attention each
word has had) and over its sentences ($\beta$). The weight of a word is multiplied by that of its sentence $sen(i)$, and the products are normalised ($\gamma$):

$$cov_t=\sum_{t'<t}\alpha_{t'}\tag{16}$$

$$\alpha_{ti}=\mathrm{softmax}_i\big(v^\top\tanh(W_eh^{(w)}_i+W_dh^{(m)}_t+w_c\,cov_{ti})\big)\tag{17}$$

$$\beta_{tj}=\mathrm{Attn}\big(h^{(m)}_t,h^{(s)}_j\big),\qquad
\gamma_{ti}=\frac{\beta_{t\,sen(i)}\,\alpha_{ti}}{\sum_l\beta_{t\,sen(l)}\,\alpha_{tl}},\qquad c_t=\sum_i\gamma_{ti}h^{(w)}_i\tag{3}$$

The coverage makes $\alpha$ a recurrence over steps, the one that costs most: every step touches every source word. The
library keeps only the weights and computes the $\tanh$ again in the backward pass.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {3, 16, 17})


# %% slideshow={"slide_type": "skip"}
def eq16_coverage(alphas, words):
    """Weights of all earlier steps -> their sum [N]; zeros before the first."""
    return sum(alphas, torch.zeros(words).double())


def eq17_word_attention(h_m, h_w, cov, W_e, W_d, w_c, v):
    sums = [W_e @ h_w[i] + W_d @ h_m + w_c * cov[i] for i in range(len(h_w))]
    return torch.stack([v @ torch.tanh(x) for x in sums]).softmax(0)


def eq03_combine(alpha, beta, sentence_of):
    """alpha [N], beta [L], sentence of each word [N] -> gamma [N]."""
    weights = torch.stack([beta[sentence_of[i]] * alpha[i] for i in range(len(alpha))])
    return weights / weights.sum()


word_weights = W["W_e"], W["W_d"], W["w_c cov"], W["v"]
sentence_of = batch.sentence_of[b, :N]

# %% slideshow={"slide_type": "skip"}
alpha, beta, gamma = [], [], []
for t in range(T):
    cov = eq16_coverage(alpha, N)
    alpha.append(eq17_word_attention(h_m[t], h_w, cov, *word_weights))
    beta.append(attention(h_m[t], H, W["beta W_q"], W["beta W_k"], W["beta v"]))
    gamma.append(eq03_combine(alpha[-1], beta[-1], sentence_of))
alpha, beta, gamma = torch.stack(alpha), torch.stack(beta), torch.stack(gamma)
c = gamma @ h_w

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
lib_cov = toy_output.alpha[b, :T, :N].sum(0)
checks.close(eq16_coverage(alpha, N), lib_cov, "(16)", "coverage after the last step")
checks.close(alpha, toy_output.alpha[b, :T, :N], "(17)", "attention over words")
checks.close(beta, toy_output.sentences[b, :T, :L], "(3)", "attention over sentences")
checks.close(gamma, toy_output.copy[b, :T, :N], "(3)", "combined attention gamma")
on_words = {"rows": target_words, "columns": source_words}
on_sentences = {"rows": target_words, "columns": sentence_names}
caption = (
    "(3), (17) on the toy document: attention to words, to sentences, and to both."
)
figures.show(
    word_maps, caption, across=1,
    panels=[
        {"title": "α: words", "values": alpha.detach(), **on_words},
        {"title": "β: sentences", "values": beta.detach(), **on_sentences},
        {"title": "γ: each word as much as its sentence lets it", "values": gamma.detach(), **on_words},
    ],
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (13) to (15) Generate or copy

The vocabulary's distribution $P_g$ is computed through a bottleneck. The paper does not describe this bottleneck, but its 14.7M parameters are reached only with one of 128.
$P_c$ gives each source word the attention on all its places. A switch mixes the two:

$$P_g=\mathrm{softmax}\big(V(V'[h^{(m)}_t;c_t]+b)+b'\big)$$

$$p_t=\sigma\big(w_c^\top c_t+w_d^\top h^{(m)}_t+w_x^\top x'_t+b_z\big)\tag{13}$$

$$P_c(w)=\sum_{i:x_i=w}\gamma_{ti}\tag{14}$$

$$P=p_tP_g+(1-p_t)P_c\tag{15}$$

The paper prints (13) with a softmax. The softmax of a single number is always 1, so it must be a sigmoid.
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {13, 14, 15})


# %% slideshow={"slide_type": "skip"}
def vocabulary_distribution(h_m, c, W):
    narrow = W["V'"] @ torch.cat([h_m, c]) + W["b"]
    return torch.softmax(W["V"] @ narrow + W["b'"], dim=0)


def eq13_switch(c, h_m, x, W):
    return torch.sigmoid(W["w_c"] @ c + W["w_d"] @ h_m + W["w_x"] @ x + W["b_z"])


def eq14_copy(gamma, source, size):
    """gamma [N], extended ids [N] -> P_c of vocabulary and unknown words [size]."""
    P_c = torch.zeros(size).double()
    for i, word in enumerate(source):
        P_c[word] = P_c[word] + gamma[i]
    return P_c


# %% slideshow={"slide_type": "skip"}
def eq15_mixture(z, P_g, P_c):
    """P_g has no mass on copy ids, and P_c none on words that the source lacks."""
    P_g = torch.cat([P_g, torch.zeros(len(P_c) - len(P_g)).double()])
    return z * P_g + (1 - z) * P_c


source, size = toy[b].source.tolist(), len(toy_vocabulary) + len(toy[b].unknown)
z = torch.stack([eq13_switch(c[t], h_m[t], x_target[t], W) for t in range(T)])
P_c = torch.stack([eq14_copy(gamma[t], source, size) for t in range(T)])
P_g = [vocabulary_distribution(h_m[t], c[t], W) for t in range(T)]
P = torch.stack([eq15_mixture(z[t], P_g[t], P_c[t]) for t in range(T)])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
checks.close(z, toy_output.switch[b, :T].sigmoid(), "(13)", "switch")
lib_parts = toy_output.features, toy_output.switch, toy_output.copy
found = (values[b, :T, None] for values in lib_parts)  # a row for each step
by_step = PointerOutput(*found, batch.source_extended[b].expand(T, -1))
lib_switch = torch.full_like(by_step.switch, -1e9)  # at 0: leaves P_c
only_copy = replace(by_step, switch=lib_switch)
lib_P_c = model.pointer.distribution(only_copy, len(toy[b].unknown))
lib_P = model.pointer.distribution(by_step, len(toy[b].unknown))
checks.close(P_c, lib_P_c, "(14)", "copy distribution")
checks.close(P, lib_P, "(15)", "P over vocabulary and source")
checks.close(torch.ones(T), P.sum(1), "(15)", "each row of P sums to 1")
every_word = [*toy_vocabulary.words, *toy[b].unknown]
switch_map = {"title": "generate", "rows": target_words, "columns": ["p"]}
word_map = {"title": "P: the next word", "rows": target_words, "columns": every_word}
caption = "(13) to (15) on the toy document: the switch, and every word's probability."
figures.show(
    word_maps, caption,
    panels=[{"values": z.detach()[:, None], **switch_map}, {"values": P.detach(), **word_map}],
)  # fmt: skip

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (11) The read loss

The authors saw that a few slots were read again and again. The read loss ties the read attention to the sentence attention: the slots read at a step, taken as they were before
any write (a written slot is no mean of sentence states) and summed with their read weights, should equal what the sentence attention sees. So (11) ties $\psi$ to
$\mathbf M_E$, while (7) reads $\mathbf M_D$.

$$c^{(m)}_t=\sum_k\psi_{tk}\mathbf M_E(k),\; c^{(s)}_t=\sum_j\beta_{tj}h^{(s)}_j,\;
\mathcal L^{(read)}=\frac1T\sum_t\big\|c^{(m)}_t-c^{(s)}_t\big\|_2\tag{11}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {11})


# %% slideshow={"slide_type": "skip"}
def eq11_read_loss(psi, M_E, beta, H):
    """psi [T, r], M_E [r, d], beta [T, L], H [L, d] -> scalar."""
    gaps = [psi[t] @ M_E - beta[t] @ H for t in range(len(psi))]
    return sum(torch.linalg.vector_norm(gap) for gap in gaps) / len(psi)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
alone = make_batch([toy[b]], len(toy_vocabulary))
lib_loss = model.loss(alone)["read"]
checks.close(eq11_read_loss(psi, M_E, beta, H), lib_loss, "(11)", "L(read)")

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## (12) The whole loss, composed

All of the above in order, for one document: the loss is the mean negative log-likelihood of the reference's words plus the
two regularisers.

$$\mathcal L+\lambda_1\mathcal L^{(comp)}+\lambda_2\mathcal L^{(read)},\qquad
\mathcal L=-\frac1T\sum_t\log P(y_t\mid y_{<t})\tag{12}$$
"""

# %% jupyter={"source_hidden": true} tags=["hide-input"]
show_model("mem2mem", {12})


# %% slideshow={"slide_type": "skip"}
def encode_document(document):
    """(1), (2), (4), (5)"""
    embedded = [model.embedding(ids) for ids in sentences_of(document)]
    read = [eq01_sentence_encoder(x, model.sentence_encoder) for x in embedded]
    h_w = torch.cat([states for states, _ in read])
    s = torch.stack([last for _, last in read])
    H, final = eq02_document_encoder(s, model.document_encoder)
    return h_w, H, model.bridge(final), *eq05_compress(H, W["W_a1"], W["W_a2"])


# %% slideshow={"slide_type": "skip"}
def decode_step(t, h_d, x, h_w, H, M_D, m, alphas, document):
    """One step in the paper's order: write, read, attend, predict."""
    if t > 0:
        M_D = eq10_write(h_d, m, M_D, W)
    psi, m, h_m = eq07_memory_read(h_d, M_D, *read_weights)
    cov = eq16_coverage(alphas, len(h_w))
    alpha = eq17_word_attention(h_m, h_w, cov, *word_weights)
    beta = attention(h_m, H, W["beta W_q"], W["beta W_k"], W["beta v"])
    sentence_of = [j for j, n in enumerate(document.sentence_lengths) for _ in range(n)]
    gamma = eq03_combine(alpha, beta, sentence_of)
    size = len(toy_vocabulary) + len(document.unknown)
    P_c = eq14_copy(gamma, document.source.tolist(), size)
    P_g = vocabulary_distribution(h_m, gamma @ h_w, W)
    z = eq13_switch(gamma @ h_w, h_m, x, W)
    return M_D, m, psi, alpha, beta, eq15_mixture(z, P_g, P_c)


# %% slideshow={"slide_type": "skip"}
def eq12_objective(document, lambda_1, lambda_2):
    """The paper's loss of one document, word by word."""
    h_w, H, h_start, A, M_E = encode_document(document)
    target = torch.from_numpy(document.target).long()
    inputs = torch.cat([torch.tensor([BOS]), target[:-1]])
    x = model.embedding(inputs.where(inputs < len(toy_vocabulary), UNK))
    h_d, _ = model.decoder(x, h_start[None])
    M_D, m, psis, alphas, betas, nll = M_E, None, [], [], [], 0.0
    for t in range(len(target)):
        before = h_w, H, M_D, m, alphas, document
        M_D, m, psi, alpha, beta, P = decode_step(t, h_d[t], x[t], *before)
        psis, alphas, betas = [*psis, psi], [*alphas, alpha], [*betas, beta]
        nll = nll - torch.log(P[target[t]]) / len(target)
    read = eq11_read_loss(torch.stack(psis), M_E, torch.stack(betas), H)
    return nll + lambda_1 * eq06_compression_loss(A) + lambda_2 * read


naive_loss = sum(eq12_objective(document, 0.3, 0.7) for document in toy) / len(toy)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_loss = model.loss(batch)["loss"]
checks.close(naive_loss, lib_loss, "(12)", "loss of the padded batch")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The gradients of all parameters are compared as well: what trains the model is what the equations say.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.gradients(gradients(model, naive_loss), gradients(model, lib_loss), "(12)")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Checks that need no equation of ours

Limiting cases that can be foretold:

* with **one slot** and no writing, the read attention is 1 and every read is the same vector;
* a **switch at 1** leaves a plain softmax over the vocabulary;
* a memory that **starts from zeros** never tells its slots apart: (8) to (10) depend on $k$ through $\mathbf M_D(k)$ alone,
  so all slots get the same update for ever and $\psi$ stays uniform. In the row *+decoder memory* of the paper's Table 2 the memory is therefore a single vector, whatever $r$
  is;
* one call of the decoder with $T$ words equals $T$ calls with one word: training and generation are one path.
"""


# %% slideshow={"slide_type": "skip"}
def small(**changes):
    sizes = {"embedding": 5, "hidden": 6, "bottleneck": 4, "slots": 3, "compression": 4}
    torch.manual_seed(2)
    config = Mem2MemConfig(
        len(toy_vocabulary), lambda_comp=0.0, lambda_read=0.0, **{**sizes, **changes}
    )
    return Mem2Mem(config).double()


one_slot = small(slots=1, write=False)
one_state = one_slot.encode(batch)
one_output, one_after = one_slot.decode(batch.target_input, one_state)
ones = torch.ones_like(one_output.read)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(ones, one_output.read, "(7)", "one slot: read attention is 1")
slot = one_state.encoder_memory[:, 0]
checks.close(slot, one_after.read, "(7)", "one slot: what is read is the slot")

# %% slideshow={"slide_type": "skip"}
at_1 = replace(toy_output, switch=torch.full_like(toy_output.switch, 1e9))
flat = model.pointer.distribution(at_1, max(map(len, batch.unknown)))  # last step
plain = model.pointer.vocabulary(toy_output.features[:, -1]).softmax(-1)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_flat = flat[:, : len(toy_vocabulary)]
checks.close(plain, lib_flat, "(15)", "switch at 1: plain softmax")

# %% slideshow={"slide_type": "skip"}
zeros = small(start="zeros")
zero_output, zero_after = zeros.decode(batch.target_input, zeros.encode(batch))
uniform = torch.full_like(zero_output.read, 1 / 3)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
checks.close(uniform, zero_output.read, "(8)-(10)", "start from zeros: psi is uniform")

# %% slideshow={"slide_type": "skip"}
one_by_one, running = [], state
for t in range(batch.target_input.shape[1]):
    one_output, running = model.decode(batch.target_input[:, t : t + 1], running)
    one_by_one.append(model.log_prob(one_output, batch.target[:, t : t + 1], running))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["hide-input"]
lib_whole = model.log_prob(toy_output, batch.target, state)
checks.close(torch.cat(one_by_one, 1), lib_whole, "(7)-(17)", "T calls equal one call")

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

The memory in the library: compression, the scan over steps, the write.
"""

# %% slideshow={"slide_type": "skip"}
memory_code = Mem2Mem.compress, Mem2Mem.condition, Mem2Mem.gate_and_update
show_source(*memory_code, Mem2Mem.write, compression_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
And at the paper's size it has the paper's 14.7 million parameters:
"""

# %% slideshow={"slide_type": "skip"}
at_paper_size = {"HRED": HRED(HREDConfig()), "Mem2Mem": Mem2Mem(Mem2MemConfig())}
for name, each in at_paper_size.items():
    print(f"{name:<8} {sum(p.numel() for p in each.parameters()):>11,} parameters")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. Real papers

## The run

A run is a folder with its configuration, its vocabulary, its losses by step and its weights. `lib.load` opens one. Where the parameters ask for it, this page trains one, with
the function that `python -m lib.train` calls.
"""

# %% slideshow={"slide_type": "skip"}
told = preset != "demo"
run, origin = run_for_page(chosen, corpus, as_they_are, output, progress=told)
summarizer, vocabulary = run.model, run.vocabulary
options, decode = run.options, run.decode
has_memory = isinstance(summarizer, Mem2Mem)
system = f"Mem2Mem ({variant})" if has_memory else variant
run_facts(run, origin)

# %% slideshow={"slide_type": "skip"}
validation_losses(run)

# %% slideshow={"slide_type": "subslide"}
loss_figure(figures, "mem2mem_losses", run, as_they_are)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Is this curve normal?** For the kept run, yes. The loss of single batches (blue) and the validation loss (orange) fall together, because every paper is new or has been seen
only a few times. The learning rate is halved after the fourth and after the fifth epoch: after the first halving both losses drop, after the second hardly. A demo of a
hundred papers looks different: the papers are memorised in a few epochs, and the validation loss soon rises again. The weights with the lowest validation loss are the ones
that count. The compression loss is near 0 after half an hour: the heads are sharp and apart early on. What they are good for is asked below. The read loss first
rises: at the start all attentions are uniform, and both sides of (11) are the same mean. (In the task it rises without $\mathcal L^{(comp)}$ too, from 0.02 to 1.4.)

## One document
"""

# %% slideshow={"slide_type": "skip"}
# papers of the ACL Anthology may be quoted from 2016 on
recent = [dataset != "aclsum" or anthology_year(doc.id) >= 2016 for doc in documents]
quotable = np.flatnonzero(recent).tolist()
looked_at = documents[quotable[0]]
example = options.example(looked_at)

rows = [("title", looked_at.title), ("sections", " · ".join(looked_at.section_names))]
if isinstance(options, CohanOptions):  # extractors and TLM read a paper as it is
    chosen_sections = choose_sections(looked_at.section_names, options.sections)
    rows += [("kept", " · ".join(looked_at.section_names[i] for i in chosen_sections))]
    rows += [("first words", " ".join(example.sentences[0]))]
rows += [("sentences", f"{len(looked_at.sentences)}, kept {len(example.sentences)}")]
rows += [("summary", clip(" ".join(looked_at.summary)))]
Passages(rows)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The preprocessing is that of Cohan et al. (2018) as Mem2Mem uses it: the introduction, the sections after it and the conclusion are kept, each cut to its first words (in the
kept run, three sections of 250 words) and lower-cased. The vocabulary holds the training set's most frequent words; every other word can only be copied.

## Summaries

Beam search writes the summaries in two ways: plainly, as the paper does, which lets the model repeat itself, and with trigram blocking, which writes no three words in a row twice (Paulus, Xiong and
Socher 2018), which the paper does not mention. One thing differs from the paper in both ways: the kept run has to write 240 symbols (200 words and their punctuation marks).
Most of its references were cut at this length in training, so it has hardly ever seen a summary end.
"""

# %% slideshow={"slide_type": "skip"}
encoded = run.encode(documents)
written = {}
if isinstance(summarizer, Extractor):  # chooses sentences of the paper
    written[system] = extract(summarizer, encoded, vocabulary)
else:
    for how, size in DECODINGS.items():
        rule = replace(decode, block_ngrams=size)
        found = summarize(summarizer, encoded, vocabulary, rule)
        written[f"{system}, {how}"] = found
*_, ruled = written.values()
rows = []
for i in quotable[:2]:
    rows += [("title", documents[i].title)]
    rows += [("reference", clip(" ".join(documents[i].summary), 90))]
    rows += [("written", clip(" ".join(run.readable(documents[i], ruled[i])), 120))]
Passages(rows)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The model writes sentences that form an abstract: what is known, what was done, what was found. It uses the paper's own terms, and many of them are copied. In
the first summary, the ages of the participants, 70 - 89, have become a percentage of the participants.

## Scores

The table gives ROUGE F1 in percent, with a seeded 95% bootstrap interval over documents. **R-Lsum** is the summary-level R-L, with one sentence per line, as the paper's
numbers suggest; the sentence-level R-L is half of it (44.5 and 20.9 on [Start here](start_here.ipynb)). Lead and LexRank choose from the full paper. The oracle adds sentences as long as
R-1 + R-2 grows. It sees the reference, so it shows roughly how far choosing sentences can go. It is not a system, and since it is greedy, it is not a strict bound either. All
summaries are cut to the same number of words (punctuation marks alone do not count): ROUGE rewards length, and nothing can be compared otherwise. *repeated* is the share of a
summary's trigrams that have occurred in it before; *copied* is the share of its 5-grams that occur in the article; *distinct* is the share of summaries that differ from those
of all other documents.

The row *Memory heads* holds the sentences that the heads of $\mathbf A$ attend to most, as in the paper's Table 3. The heads choose from the shortened source. It consists of
the beginnings of some sections, among them the conclusion, and is a good place to choose from. *Random* chooses the same number of sentences from it by chance: only what the
heads score above *Random* has been learned.
"""

# %% slideshow={"slide_type": "subslide"}
longest = chosen.paper.kept.cut if as_they_are else decode.max_length
by_rank = [lexrank(doc.sentences, longest) for doc in documents]
systems = {
    f"Lead ({longest} words)": [doc.sentences for doc in documents],
    f"LexRank (sentences, {longest} words)": by_rank,
    "Oracle": [oracle(doc.sentences, doc.summary) for doc in documents],
}
if has_memory and summarizer.extracts:
    heads, random = summarizer.config.slots, np.random.default_rng(seed)
    shortened = [source_sentences(document, vocabulary) for document in encoded]
    by_chance = [random_sentences(texts, heads, random) for texts in shortened]
    systems[f"Random-{heads}"] = by_chance
    systems["Memory heads"] = extract(summarizer, encoded, vocabulary)
systems |= written
table, means = summary_table(systems, documents, options, longest, seed)
print(f"{preset} run, {len(documents)} test documents of {Path(dataset).name}")
print(f"every summary cut to {longest} words")
table

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With trigram blocking the model is far above Lead and level with LexRank, on papers from other sources than those that it has learned from. With plain beam search more than
four in ten of its trigrams are repetitions, and R-1 is seven points lower. The heads choose hardly better than chance does among the same sentences; the next section shows
what they look at. On 200 test papers of its own corpus (`python -m lib.trained score mem2mem`) the model is nearly four points above LexRank:
"""

# %% slideshow={"slide_type": "skip"}
own = kept_table("trained_mem2mem")
print(wrapped(setting(own)))
table_frame(own)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The paper's PubMed numbers (below) are not comparable with these. They belong to another corpus. There up to 2,000 words of a paper are read (four sections of 500; papers have
3,016 on average), and abstracts have up to 200 words.

The next table shows how much of the output is copied: the share of its n-grams that occur in the whole article, as in the paper's Table 4. The model itself sees a shortened
article.
"""


# %% slideshow={"slide_type": "skip"}
def in_words(texts):
    return [
        [word for s in sentences for word in options.words(s)] for sentences in texts
    ]


sources = in_words(doc.sentences for doc in documents)
texts = {"reference": in_words(doc.summary for doc in documents)}
for name, found in written.items():
    shortened = [cut(summary, longest, options) for summary in found]
    texts[name] = [" ".join(summary).split() for summary in shortened]
copied = {name: copied_ngrams(found, sources) for name, found in texts.items()}
pd.DataFrame.from_dict(copied, orient="index").round(1).rename_axis(columns="n")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## The memory on a real paper
"""


# %% slideshow={"slide_type": "skip"}
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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["hide-input"]
no_memory = f"{variant} has no memory to draw"
panels = real_attention(summarizer, encoded[quotable[0]]) if has_memory else []
caption = (
    f"Memory of one test paper ({preset} run): which sentence each head is on, and which slot"
    " is read at each word of the summary."
)
figures.show(
    attention_maps, caption, "mem2mem_real_memory", panels=panels, rows="slot", columns="", size=4.9,
) if has_memory else no_memory  # fmt: skip

# %% slideshow={"slide_type": "skip"}
rows = []
if has_memory and summarizer.extracts:
    A = panels[0]["weights"]
    assert not as_they_are or A.max(1).values.min() > 0.9, "nearly all of its weight"
    sentences = source_sentences(encoded[quotable[0]], vocabulary)
    for slot, j in enumerate(A.argmax(1).tolist()):
        held = f"{A[slot, j]:.2f} on sentence {j + 1}: {clip(sentences[j], 16)}"
        rows.append((f"slot {slot + 1}", held))
Passages(rows)


# %% slideshow={"slide_type": "skip"}
def strongest(doc, encoder):
    """Of each head: the section, the sentence from its beginning, from its end."""
    ends = np.cumsum([len(section) for section in encoder.options.kept_sections(doc)])
    batch = make_batch(encoder.encode([doc]), len(vocabulary))
    with torch.no_grad():
        best = summarizer.encode(batch).write_attention[0].argmax(1).numpy()
    section = np.searchsorted(ends, best, side="right")
    starts = np.concatenate([[0], ends])[section]
    return np.stack([section + 1, best - starts + 1, ends[section] - best])


# %% slideshow={"slide_type": "skip"}
def usual_place(given, whole):
    """Where in its section a head's sentence stands most often; [papers, 3] each."""
    counts = [pd.Series(given[:, way]).value_counts() for way in (1, 2)]
    way = 1 if counts[0].iloc[0] >= counts[1].iloc[0] else 2
    place, papers = counts[way - 1].index[0], counts[way - 1].iloc[0]
    edge = {1: "beginning", 2: "end"}[way]
    sections = pd.Series(given[:, 0]).value_counts(normalize=True).sort_index()
    return {
        "sentence of its section": f"{place} from the {edge}",
        "papers": papers / len(given),
        "nothing cut off": (whole[:, way] == place).mean(),
        **{f"section {number}": share for number, share in sections.items()},
    }


# %% slideshow={"slide_type": "subslide"}
usual = {}
if has_memory and summarizer.extracts:
    nothing_cut = replace(options, whole_sentences=True)
    encoders = run.encoder, replace(run.encoder, options=nothing_cut)
    given, whole = (
        np.stack([strongest(doc, encoder) for doc in documents])  # [papers, 3, r]
        for encoder in encoders
    )
    for slot in range(given.shape[2]):
        usual[f"slot {slot + 1}"] = usual_place(given[:, :, slot], whole[:, :, slot])
usual = pd.DataFrame.from_dict(usual, orient="index").fillna(0)
if as_they_are:  # three heads know where a section ends, if something is cut off there
    behind = usual.iloc[[3, 5, 9]]
    assert behind["papers"].min() > 0.9 and behind["nothing cut off"].max() < 0.3
usual.map(lambda x: x if isinstance(x, str) else f"{x:.0%}")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** Left: each of the ten heads has nearly all of its weight on one sentence, and only two share one (slots 2 and 8). That is what $\mathcal L^{(comp)}$ asks for, here with 500 times
the paper's $\lambda_1$. The table says *which* sentences. Slots 1, 3 and 7 have the first three sentences in 98% of the 50 papers. Slots 5 and 9 mostly have the last two sentences of all that the model
reads. Slots 10, 4 and 6 move from paper to paper, and yet they follow a pattern: they have the last sentence of a section and the first two sentences of the section after it.
Nobody has told the model where a section ends; it reads all sentences as one sequence. How does it know?

Each section is cut after 250 words, so its last sentence breaks off. (In the table, *papers* is the share of papers that have the head's sentence at its place, and
*section 1* to *3* say how often it is in which section.) For the column *nothing cut off*, the same papers are read again with whole sentences only. Now slots 10, 4 and 6
lose their places in 92% of the papers and more, while the others keep theirs in most papers. (Slot 2 keeps its place in 74%. It moves as well, from the last sentence but one
of one section to the last sentence but one of another.)
**These heads have learned to find the seam that the preprocessing leaves.** The
seam is a good place to look at, since methods or conclusions begin there, and $\mathcal L^{(read)}$ was content with it. But to find the seam is not to judge what matters.
Compare this with the synthetic task, where the place of a sentence says nothing and the heads found the marks.

Right: for the first 40 words no slot has more than 0.13 of the reads; after them slot 5 has 0.28, slots 6 and 9 about 0.16. The picture shows $\psi$, not what is
read: the slots are written at every word, and soon hold something else than their sentences.

The paper's figures 3 and 4 show one document each. Here they are for the kept run and four of these papers
(`snakemake -c1 mem2mem_figure3 mem2mem_figure4 --config kept=1 dataset=pmc-sample documents=4`):

![Write attention of the trained run for four papers: each of ten heads but one (slot 8 of the third) with nearly all its weight on one sentence; slots 1, 3 and 7 on the first three, 10, 4 and 6 on three in a row, from the 6th, the 14th, the 6th and the 16th on](../figures/mem2mem_trained_figure3.png)

*The paper's figure 3 (a): each head sharply on one sentence, and hardly two heads on the same one. The four papers side by side show the pattern: slots 10, 4 and 6 are on
three sentences in a row, wherever a section breaks off.*

![Read attention of the trained run for four papers: spread over the slots at first, then most on slots 4, 5 and 6](../figures/mem2mem_trained_figure4.png)

*The paper's figure 4 (a). Of uniform reads each slot would have 10%. After 40 words slots 4, 5 and 6 together have 45 to 59% of the reads, slots 1 and 3 only 1 to 2% each.*

## What the memory does

A change shows it. The memory that the encoder hands over is replaced by that of another paper; each slot by the mean of all; and so on. How much less probable do the authors' abstracts
become? The table says it in nats a word, with a 95% interval over papers. (`python -m lib.intervene trained/mem2mem --dataset pmc-sample` makes such a table for any run.)
"""


# %% slideshow={"slide_type": "skip"}
def lost_by(change):
    """Nats a word that the references lose by a change."""
    plain = log_probs(summarizer, encoded, only_known=change.only_known)
    return paired_bootstrap(log_probs(summarizer, encoded, change), plain)


# %% slideshow={"slide_type": "subslide"}
PARTS = (
    "another memory", "slots averaged", "memory erased", "never written",
    "no coverage", "no copying",
)  # fmt: skip
changes = changes_of(summarizer) if has_memory else {}
lost = {name: lost_by(changes[name]) for name in PARTS if name in changes}
if as_they_are:  # what the encoder hands over is not used; what the decoder writes is
    assert max(lost["another memory"].high, lost["slots averaged"].high) < 0.02
    assert min(lost["never written"].low, lost["no copying"].low) > 1
table = {
    name: {"what is changed": changes[name].what, "lost": difference.text(3)}
    for name, difference in lost.items()
}
pd.DataFrame.from_dict(table, orient="index")


# %% slideshow={"slide_type": "skip"}
WRITTEN = (0, 1, 5, 20, 50, 100)
long_ones = [d for d in encoded if len(d.target) > max(WRITTEN) + 1]
fading = pd.DataFrame()
if has_memory and summarizer.config.write and long_ones:
    batch = make_batch(long_ones, len(vocabulary))
    fading = pd.DataFrame(slots_after(summarizer, batch, WRITTEN), WRITTEN).T
    fading.index = ["left of what was handed over", "cosine of two slots"]
    fading = fading.rename_axis(columns="words written")
fading.round(3)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** With *another paper's* memory the abstracts lose 0.006 nats a word, with all slots alike 0.001. **The shipped model does not use what the encoder hands over**, however
well the heads have chosen. Both causes of part 1 are there. Copying and attention lead past the memory: without copying 1.4 nats are lost. And the plain gate overwrites it (second table): after
one written word half of what was handed over is left, after a hundred 3%. So when slot 5
is read at word 150, the sentence that it held is long gone. And two slots hardly differ, even before anything is written (a cosine of 0.97), so it matters little which of them is read.
Yet the decoder depends on *writing*: without it, 1.6 nats a word are lost. It uses the memory as a second recurrent state. (11) cannot prevent this: it never sees $\mathbf M_D$.

The attention to sentences does say what counts: in the summaries that the model writes, its ranks agree with those by erasing each sentence to 0.77 [0.75, 0.79] (1: the same order).

# 4. The paper's numbers and this run's

The paper's Table 2 adds one part after the other, on PubMed (15 epochs; the Hub's copy has 119,924 training documents). The last three columns are this
page's run, at its preset, on its dataset: **not comparable**, and shown so that nobody has to guess.
`snakemake -n` lists a command for each of the paper's tables and figures.
"""

# %% slideshow={"slide_type": "skip"}
table_2, ours = published_table("mem2mem_table2"), means[next(iter(written))]
for measure, mean in ours.items():
    here = [f"{mean:.1f}" if name == variant else "" for name in table_2.index]
    table_2[f"this run, {measure}"] = here
print("published: PubMed test set; this run:", preset, "preset,", Path(dataset).name)
table_2

# %% slideshow={"slide_type": "skip"}
print("published, Table 3: extraction without labels")
published_table("mem2mem_table3")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
For each sentence of the reference, **Gold Ext** takes the two sentences of the paper that are most like it, so its extracts are long. Our oracle adds sentences one by one as
long as R-1 + R-2 grows. The table compares them on 200 test papers of SumPubMed, with nothing cut. It also shows the oracle with at most ten sentences, because Lead-10 and
the ten heads have ten:
"""

# %% slideshow={"slide_type": "skip"}
gold = kept_table("mem2mem_table3_gold_sumpubmed")
print(setting(gold))
table_frame(gold)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**What to see.** A limit of ten sentences costs the oracle little. The labels of Gold Ext score ten points less than the oracle, because they are one and a half times as long
as what the oracle takes. What makes up the rest of the distance to the published 47.76 has not been measured: the corpus, the sentence splitter and the script are all
different.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The same rows at a size that this project could afford

All six rows of Table 2 were trained with one budget and three seeds, on two corpora of papers. This is far from the paper's size, but large enough to ask which differences
are real. The results of these runs are saved (`figures/`, [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md)); the page does not make them. The first table is for 9,000 biomedical papers:
"""

# %% slideshow={"slide_type": "skip"}
numbers_2 = kept_table("mem2mem_table2_sumpubmed")
print(wrapped(setting(numbers_2)))
table_frame(numbers_2)

# %% slideshow={"slide_type": "skip"}
pairs_frame(numbers_2)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The same rows after eight epochs of all 31,077 papers, three seeds, in both decodings:
"""

# %% slideshow={"slide_type": "subslide"}
numbers_2 = kept_table("mem2mem_table2_sumpubmed_eight_epochs")
print(wrapped(setting(numbers_2)))
table_frame(numbers_2)

# %% slideshow={"slide_type": "skip"}
pairs_frame(numbers_2)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The full model of these as an extractor, as in Table 3:
"""

# %% slideshow={"slide_type": "skip"}
table_frame(kept_table("mem2mem_table3_sumpubmed"))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
What HRED and the full model copy from the whole article, as in Table 4 (the hybrid TLM has not been trained for as long):
"""

# %% slideshow={"slide_type": "skip"}
table_frame(kept_table("mem2mem_table4_sumpubmed"))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
And 632 papers of computational linguistics:
"""

# %% slideshow={"slide_type": "skip"}
numbers_2 = kept_table("mem2mem_table2_scisummnet")
print(wrapped(setting(numbers_2)))
table_frame(numbers_2)

# %% slideshow={"slide_type": "skip"}
pairs_frame(numbers_2)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** On the larger corpus, with each document seen twice, no row is ahead of HRED. After eight epochs of the whole corpus and with plain beam search, models with a memory in the
decoder repeat 29 to 31% of their trigrams, HRED 35%, but ROUGE cannot tell them apart. The parts that the paper adds to *+decoder memory* bring nothing here. The heads choose better sentences
than Lead does, as in the paper, but not better ones than LexRank, which reads the whole paper. HRED and the full model copy 19.5 and 19.1% of their 5-grams, 1.3 times as many as the
references do (the paper: 38.1 and 28.3%). On the smaller corpus, with each document seen six
times, the full model is ahead of HRED, but *+decoder memory* is ahead of the full model. The rows that are ahead write longer summaries, which F1 rewards. The
paper's order does not show at this size; [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) says more.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## The systems of Table 1, small

Each system was trained with one seed for 600 steps of 16 papers, less than a third of the 31,077 papers. That is enough to see what kind of systems these are. Extracts
consist of whole sentences; summaries have at most 100 words, TLM's at most 160 symbols. [Baselines](baselines.ipynb) has a picture and the equations of each system.
"""

# %% slideshow={"slide_type": "skip"}
systems_1 = kept_table("mem2mem_table1_sumpubmed")
print(wrapped(setting(systems_1)))
table_frame(systems_1)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**What to see.** Ptr-Gen differs from Attn-Seq2Seq in copying and coverage, and these are worth five points of R-1. TLM copies nothing and is level with Attn-Seq2Seq. Mem2Mem
is a little above Ptr-Gen and 0.6 points below Discourse-aware. With plain beam search it is below Ptr-Gen, and half of the trigrams of both have been said before. Sent-CLF is
first, as on the paper's PubMed, but here by far: whole sentences of a paper, chosen well, are hard to beat, and its extracts are longer.
No system that writes its own text reaches Lead-10 here, whose extracts are longer: more than twice as long as the summaries of all but TLM. Sent-PTR writes 93 words, Mem2Mem 85, and is five points lower. The trained run of this page has had nearly twenty times as many steps as these models.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 5. Deviations

These are the points that one needs to understand this page's numbers. [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) has every point at which the project differs from the paper, with the reason.

| point | paper | here |
|---|---|---|
| (13), the switch | softmax of a scalar, which is 1 | sigmoid |
| `+encoder memory` | how the decoder takes it in is not stated | $\mathbf M_E$ is read at every step by (7) and never written; the other reading is a third attention, without $h^{(m)}$ |
| `+decoder memory` | memory without transfer, from zeros | no encoder memory is made; one vector in $r$ copies (see above) |
| sections | four of 500 words | introduction, the next two, conclusion (Cohan et al.); a text without sections keeps its first 2,000 words |
| generation | beam 4 | the same; ranked by mean log-probability; [UNK] is never generated; `small` and its saved tables: at least 35 symbols, with trigram blocking unless a row says otherwise; the shipped model: at least 240 symbols |
| ROUGE | the official script | rouge-score, which stems otherwise: up to 0.4 points of R-1 lower |
| Gold Ext of Table 3 | two labelled sentences for each of the reference | the oracle as long as it helps; with ten sentences; with their labels (`mem2mem_table3_gold`) |
| sentences and words | Cohan et al.'s tokenised files | theirs as they stand; other corpora by our own splitter and tokenizer |
| shipped model and demo | the sizes of appendix A.2, $\lambda_1=0.0001$, $\lambda_2=0.01$ | the shipped model: `trained/mem2mem`, 3 x 250 source words, 200 summary words, a vocabulary of 15,000, width 128, $\lambda_1=0.05$, $\lambda_2=0.1$; the demo: 4 x 80 source words, 80 summary words, a vocabulary of 1,000, 6 slots, width 64, $\lambda_1=0.05$, $\lambda_2=0.1$, trigram blocking |
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 6. Exercises

Ten functions of at most six lines each. Write one in place of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import torch

from lib.exercises.mem2mem import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** *Find the bug.* This is somebody's $\gamma$ (3), of all steps at once. The text is in a batch with a longer one; on its padding `alpha` is 0.

```python
def both_attentions(alpha, beta, sentence_of):
    weights = alpha * beta[:, sentence_of]
    return weights.softmax(1)
```

What happens on the padding, and what to the words? Write it right. (2 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def both_attentions(alpha, beta, sentence_of):
    """gamma [T, N], from alpha [T, N], beta [T, L] and each word's sentence [N]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, both_attentions)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Each row of the result sums to 1, so that is not the fault. What is the softmax of 0 and 0.1, and what does (3) make of them?

</details>
<details><summary>Solution</summary>

```python
def both_attentions(alpha, beta, sentence_of):
    weights = alpha * beta[:, sentence_of]
    return weights / weights.sum(1, keepdim=True)
```

A softmax takes scores, which may be any numbers. A weight of 0 is to it a score like others, so padding gets its share; and since all products are between 0 and 1, it makes them nearly equal.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Find the bugs.* Somebody reads and writes the memory (7) to (10). `read(h, M)` gives $m_t$, and `gate_and_update(h, m, M)` gives $z$ and $u$ of all slots, $[r, d]$ each.

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
check(2, reads_of_memory)

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
**3.** The paper's Table 4 measures copying by n-grams. Return the percentage of the n-grams of `summary` that stand in `source`. An n-gram that the summary has twice counts twice. (2 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def copied_share(summary, source, n):
    """Two lists of words and a whole number in, a number from 0 to 100 out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, copied_share)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

`zip(words, words[1:])` gives the pairs of neighbours. Which of the two texts does the percentage belong to?

</details>
<details><summary>Solution</summary>

```python
def copied_share(summary, source, n):
    grams = [[*zip(*(words[i:] for i in range(n)))] for words in (summary, source)]
    return 100 * sum(gram in grams[1] for gram in grams[0]) / len(grams[0])
```

How often the source has an n-gram does not matter; how often the summary has it does. That is another count than ROUGE's.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**4.** Each head has all its weight on one sentence: head $k$ on the sentence `on[k]`. Derive $\mathcal L^{(comp)}$ (6). What is it when all $r$ heads are on the same sentence? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def loss_of_sharp_heads(on):
    """A list of the numbers of sentences, one for each head, in; a number out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, loss_of_sharp_heads)

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
**5.** Derive the gradient of $\mathcal L^{(comp)}$ (6) with respect to $\mathbf A$. (3 points, 15 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def gradient_of_compression(A):
    """A [r, L] in, its gradient [r, L] out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, gradient_of_compression)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

With $G=\mathbf{AA}^\top-I$, which is symmetric: $d\mathcal L=2\,\mathrm{tr}(G\,dG)$ and $dG=d\mathbf A\,\mathbf A^\top+\mathbf A\,d\mathbf A^\top$.

</details>
<details><summary>Solution</summary>

```python
def gradient_of_compression(A):
    return 4 * (A @ A.T - torch.eye(len(A))) @ A
```

Both parts of $dG$ give the same, hence $4G\mathbf A$. Of two heads on one sentence, each is pushed away from where the other is.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** Let $q$, one number, be the argument of the sigmoid in (8), and $M'$ the slot after (10). Derive $\partial M'/\partial q$ as a function of $z=\sigma(q)$, the slot $M$ and the update $u$. Where does a gate learn nothing? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_gate(z, M, u):
    """Three numbers in, one out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, push_on_the_gate)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\sigma'(q)=z\,(1-z)$, and (10) is linear in $z$.

</details>
<details><summary>Solution</summary>

```python
def push_on_the_gate(z, M, u):
    return z * (1 - z) * (M - u)
```

Nothing is learned at $z=0$ and $z=1$, nor where the update is what the slot holds already.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**7.** For $k$ words every gate (8) is at $z$, and every update (9) is $u$. Derive what a number of a slot is after them, if it was $M$ before (10). Two slots get the same gates and updates: how much of their difference is left? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def slot_after(k, z, M, u):
    """A whole number and three numbers in, one number out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, slot_after)

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

**8.** A smaller model is trained on the synthetic task of part 1 for 30 steps: once without regularisers, once with $\lambda_1=1$ and once with $\lambda_2=3$ (12). Compare the last two with the first. With $\lambda_1=1$, is the mean weight that a head has on its strongest sentence larger or smaller? With $\lambda_2=3$, is the loss of the words larger or smaller? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def with_heavy_regulariser():
    """Two words, "larger" or "smaller": of the weight, of the loss of the words."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, with_heavy_regulariser)

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
**9.** A small Mem2Mem has learned a task like that of part 1, with one marked sentence in four. Then one thing is changed, and the model is not trained again: it gets the **memory of another text**; its memory is **never written**, so that (8) to (10) are left out; it **cannot copy**, with $p_t=1$ in (15). For each change: does the *first* word of the references lose more than half a nat of $\log P$? And does a word of theirs on average? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def more_than_half_a_nat():
    """Three pairs of truth values, [first word, average word]: another memory, never
    written, no copying."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(9, more_than_half_a_nat)

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
**10.** The weights of a Mem2Mem are random. Before the first word the memory that is handed over is changed in one of four ways: its slots come **in another order**; **one slot** is there **twice**, so that there are four instead of three; **each slot** is there **twice**, so that there are six; all slots are **their mean**. In which cases do all words of the summary keep exactly the probability that they had? Use (7) to (10). (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def same_probabilities():
    """Four truth values, in the order of the text."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(10, same_probabilities)

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
  then run this page with `dataset`, `preset` and `output` set to the same.
* [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) maps every equation to its cell and its function in `lib`; [`papers.md`](../papers.md) says which of the paper's claims hold.
"""
