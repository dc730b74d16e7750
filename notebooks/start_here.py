# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Start here: what the four papers stand on

This page is for somebody who can read PyTorch and has never met summarization. First a real paper: what its authors say it is about, and what three programs say.
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
seed: int = 0  # of weights, stories and bootstrap

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import json
import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

import lib
from lib.data.batch import EncodedDocument, in_vocabulary, make_batch
from lib.data.corpora import load_corpus
from lib.data.vocabulary import BOS, EOS, PAD, Vocabulary
from lib.evaluation.baselines import lexrank
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.rouge import repeated_ngrams, rouge
from lib.evaluation.interventions import log_probs
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from companion.pages.checks import Checks
from companion.pages.diagrams import show_model
from companion.pages.figures import beam_tree, lines, word_maps
from companion.live.page import LivePointer
from companion.pages.shown import (
    PageFigures,
    Passages,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.steps import decoding_frames, pointer_steps
from lib.evaluation.scores import cut
from lib.training.config import TrainConfig
from lib.decoding.search import DECODINGS, DecodeConfig, beam_search, search_split
from lib.system.files import project_root, trained_folder
from companion.tasks.task import learn

figures = PageFigures(figures_folder())
checks = Checks()
show_tables()

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
run = lib.load(trained_folder("mem2mem"), device="cpu")
papers = list(load_corpus("pmc-sample", errors="skip").split("test"))
(paper,) = [paper for paper in papers if paper.id == "PMC8062708"]
by_decoding = {}
for decoding, size in DECODINGS.items():
    searching = replace(run, decode=replace(run.decode, block_ngrams=size))
    (by_decoding[decoding],) = searching.summarize([paper], attention=True)
mem2mem = by_decoding["trigram blocking"].sentences
Passages([
    ("the paper", f"{paper.title} (Garcia-Agundez and others 2021, CC BY 4.0)"),
    ("its abstract", " ".join(paper.summary)),
    ("Lead", " ".join(paper.sentences[:2])),
    ("LexRank", " ".join(lexrank(paper.sentences, 60))),
    ("Mem2Mem", clip(" ".join(run.readable(paper, mem2mem)), 62)),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** An **extractive** summary consists of sentences of the text. **Lead** takes the first ones, **LexRank** (Erkan and Radev 2004) the most central ones, those that are similar to many others. Both learn nothing, and what they say is as true as
the paper. An **abstractive** summary is written word by word. The abstract is one, and so is the summary by Mem2Mem, one of the four papers' models, trained on papers like this one. Its first sentence is copied from the paper, word for word. Its second
begins as abstracts do and is wrong: it joins the participants and the public repository of the paper, which have nothing to do with each other. **What does not work**: one cannot rely on what such a model writes. The other pages show the same kind of mistakes.

Why can such a model copy, what makes it repeat itself, how is a summary scored, and when is one system better than another? This page answers that with a model small enough to look at. This is its picture:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
show_model("start_here")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The **encoder** reads the text and leaves a state at each word. The **decoder** writes one word at each step. Its state says by **attention** which words of the text to look at. Then the next word is either **generated** from a vocabulary or **copied** from the
text, and a **switch** decides between the two. Numbers are those of the equations below.

**Goals.** At the end you can

* write down a sequence-to-sequence model with attention, and read its attention as a picture;
* say why summarizers copy words, and compute the probability of a word that the model has no embedding for;
* explain what is fed to a decoder in training and in use, and write beam search from memory;
* compute ROUGE-1, ROUGE-2 and ROUGE-L by hand, and say whether a table means ROUGE-L or ROUGE-Lsum;
* tell whether a difference between two systems is more than luck.

**Prerequisites.** PyTorch: tensors, `nn.Module`, a training loop. What a GRU is (its equations are not needed), softmax, cross-entropy, gradient descent. No linguistics.

| section | | minutes |
|---|---|---|
| 0 | The paper above, and a small world to summarize | 12 |
| 1 | Attention | 8 |
| 2 | Copying | 6 |
| 3 | Learning | 6 |
| 4 | Writing | 8 |
| 5 | Repetition and coverage | 9 |
| 6 | ROUGE | 10 |
| 7 | Intervals, and the paired bootstrap | 6 |
| 8, 9 | What to take home, symbols and words | 3 |
| 10 | Exercises | 55 |

**Next pages:** [windowed attention](windowed.ipynb) · [Read-Again](read_again.ipynb) · [Mem2Mem](mem2mem.ipynb) · [hierarchical transformers](hierarchical_transformer.ipynb) · [all four compared](compare.ipynb) ·
[what they compare themselves with](baselines.ipynb). Section 8 says which to take first.

Equations have this page's own numbers, from (1) to (22). Short functions do what the equations say, for one text and without padding; the library `lib` does the same for batches. A green line after a group of equations says that both give the same numbers; if they did not,
the page would stop. Symbols are explained where they first occur; section 9 lists them. Before some pictures there is a question to **predict** what they show. The page runs in half a minute on one CPU core.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 0. A small world to summarize

A text here has three sentences in any order. In one of them something was done by somebody; in the two others an animal sleeps, runs, eats or sits. The summary says who did what, in the active voice. So the model has to **find** that one sentence, **reverse** it
(the animal that comes last in it comes first in the summary), **change** a word (*seen* to *saw*), and leave the rest out. That is much of what a summarizer does.

Three animals are in the vocabulary of 27 symbols. The other ten are not: to the model each is the same symbol, [UNK], *unknown*.
"""

# %% slideshow={"slide_type": "skip"}
VERBS = {
    "seen": "saw", "known": "knew", "drawn": "drew",
    "bitten": "bit", "chosen": "chose", "forgotten": "forgot",
}  # fmt: skip
IDLE, KNOWN = ["slept", "ran", "ate", "sat"], ["cat", "dog", "cow"]
RARE = ["zebra", "quokka", "okapi", "lynx", "panda", "otter", "llama"]
RARE += ["koala", "tapir", "ibex"]
words = ["the", "was", "by", ".", *VERBS, *VERBS.values(), *IDLE, *KNOWN]
vocabulary = Vocabulary(words)


# %% slideshow={"slide_type": "skip"}
def tell(rng):
    """A random text, in sentences, and its summary."""
    # known animals twice, so that they are less rare; a cat may see a cat
    who, whom, *others = rng.sample(2 * KNOWN + RARE, 4)
    verb = rng.choice(list(VERBS))
    text = [f"the {other} {rng.choice(IDLE)} ." for other in others]
    text.insert(rng.randrange(3), f"the {whom} was {verb} by the {who} .")
    return text, f"the {who} {VERBS[verb]} the {whom} ."


TEXT = ["the dog slept .", "the cat was seen by the zebra .", "the okapi ran ."]
SUMMARY = "the zebra saw the cat ."


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def story_of(text, summary):
    """Ids, as the models read them; words outside the vocabulary have ids after it."""
    sentences = [sentence.split() for sentence in text]
    source, unknown = vocabulary.encode_source(w for words in sentences for w in words)
    target = [*vocabulary.encode_target(summary.split(), unknown), EOS]
    lengths = [len(words) for words in sentences]
    return EncodedDocument.of("story", source, lengths, target, unknown, [summary])


story = story_of(TEXT, SUMMARY)
batch = make_batch([story], len(vocabulary))
source_words, target_words = " ".join(TEXT).split(), [*SUMMARY.split(), "[EOS]"]
N, T, V = len(source_words), len(target_words), len(vocabulary)
all_words = [*vocabulary.words, *story.unknown]
ids = pd.DataFrame(
    {
        "word": source_words,
        "embedded id": batch.source[0],
        "extended id": batch.source_extended[0],
    }
)
ids.index += 1
ids.iloc[4:12].T

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
This is the middle sentence of the text that the whole page follows. The second row is what the encoder embeds: *zebra* is 1, which is [UNK]. The third row gives the word a number of its own, 27. Such numbers come after the 27 ids of the
vocabulary and hold in this text only. Section 2 says what they are for.

Two models learn on 9,600 such stories, made up at random: a **plain** one, which can only write words of its vocabulary, and a **pointer-generator**, which can copy. Both are `Seq2Seq` of `lib`.
"""


# %% slideshow={"slide_type": "skip"}
def learned(copy, steps=300):
    """A small model after `steps` batches of 32 new stories."""
    torch.manual_seed(seed)
    sizes = Seq2SeqConfig(V, embedding=24, hidden=48, bottleneck=24, copy=copy)
    rng = random.Random(seed)
    stories = ([story_of(*tell(rng)) for _ in range(32)] for _ in range(steps))
    batches = (make_batch(documents, V) for documents in stories)
    return learn(Seq2Seq(sizes), batches, learning_rate=3e-3).double()


plain, pointer = learned(copy=False), learned(copy=True)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: the plain model does not know ten of thirteen animals. What will it write in their place, and how many of 100 new summaries will be complete?</summary>

It writes [UNK] in their place. A summary is complete only if both of its animals are known.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
unseen = [story_of(*tell(random.Random(1000 + i))) for i in range(100)]
config = DecodeConfig(beam=4, min_length=1, max_length=10, forbidden=(PAD, BOS))


def with_unknown(ids):
    """Ids with every unknown word as [UNK]."""
    return in_vocabulary(torch.tensor(ids), V).tolist()


rows = {}
for name, model in {"plain": plain, "pointer-generator": pointer}.items():
    hypotheses = beam_search(model, make_batch([story, *unseen], V), config)
    of_story, *summaries = [best.ids for best, *_ in hypotheses]
    references = [document.target[:-1].tolist() for document in unseen]
    pairs = list(zip(summaries, references))
    rows[name] = {
        "weights": f"{sum(p.numel() for p in model.parameters()):,}",
        "writes of our text": vocabulary.text(of_story, story.unknown),
        "right, of 100": sum(a == b for a, b in pairs),
        "right but for [UNK]": sum(
            with_unknown(a) == with_unknown(b) for a, b in pairs
        ),
    }
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** On 100 new texts both find the sentence, reverse it and change the verb, without a mistake. But the plain model has no name for most animals: only 16 of its summaries are complete. The pointer-generator, of nearly the same size, writes all 100 correctly, including the
animals that it has no embedding for. Here is how it writes, step by step. Text is as dark as the attention to it; below it stand the most probable words if the model generates, if it copies, and with the switch between the two.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
with torch.no_grad():
    output, state = pointer.decode(batch.target_input, pointer.encode(batch))
    names = "generate", "copy", "both"
    steps = pointer_steps(pointer.pointer, output, story.target, all_words, names)
decoding_frames([sentence.split() for sentence in TEXT], steps)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 1. Attention says where to look

## Reading

The **encoder** is a recurrent network that goes over the words $x_1,\dots,x_N$ of the text once forward and once backward. $E[w]$ is the embedding of a word. The state $h_i$ at word $i$, of width $d$, has the forward and the backward half side by side, so it knows the word and what stands around it:

$$h_1,\dots,h_N=\mathrm{BiGRU}\big(E[x_1],\dots,E[x_N]\big)\tag{1}$$

The **decoder** is a second recurrent network, over the words $y_1,\dots,y_T$ of the summary. $y_T$ is [EOS], the end, and $y_0$ is [BOS], the beginning. It starts from the last state of the encoder in each direction. Its state $s_t$, when it is about to write $y_t$, has read what was written so far:

$$s_0=W_b[\overrightarrow h_N;\overleftarrow h_1]+b_b,\qquad s_t=\mathrm{GRU}\big(E[y_{t-1}],\,s_{t-1}\big)\tag{2}$$

($W$, $w$, $b$ and $v$ are weights, with an index that says of what; $[a;b]$ is two vectors side by side, and the arrows mark the forward and the backward half.) In principle this is enough, and at first it was all there was. But then the whole text has to pass through the one vector $s_0$.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## Looking back

Bahdanau, Cho and Bengio (2015) let the decoder look back at every step. Each state of the encoder gets a **score** $a_{ti}$ that says how well it fits the present state of the decoder. A softmax turns the scores into **weights** $\alpha_{ti}$, which are positive and sum to 1.
The weighted mean of the encoder's states is the **context** $c_t$:

$$a_{ti}=v^\top\tanh\big(W_h h_i+W_s s_t\big)\tag{3}$$

$$\alpha_{ti}=\frac{\exp a_{ti}}{\sum_{j=1}^N\exp a_{tj}}\tag{4}$$

$$c_t=\sum_{i=1}^N\alpha_{ti}\,h_i\tag{5}$$

State and context together decide on the next word. The features $f_t$ make them narrower first, since with a real vocabulary the last layer, with a row for each word, is the largest. $P_g$ is the probability of generating each word:

$$f_t=W_f[s_t;c_t]+b_f,\qquad P_g=\mathrm{softmax}\big(W_v f_t+b_v\big)\tag{6}$$
"""


# %% slideshow={"slide_type": "skip"}
def states_of(model):
    """(1), (2). h [N, d], and s [T, d] while the reference is read."""
    h, ends = model.encoder(model.embedding(batch.source))  # ends: [2, 1, d / 2]
    s_0 = model.bridge(torch.cat([ends[0], ends[1]], 1))
    read = in_vocabulary(batch.target_input, V)  # [BOS], then the reference
    return h[0], model.decoder(model.embedding(read), s_0[None])[0][0]


def look_back(s, h, W_h, W_s, v):
    """(3) to (5). s [d], h [N, d] -> scores [N], weights [N], context [d]."""
    scores = torch.stack([v @ torch.tanh(W_h @ h_i + W_s @ s) for h_i in h])
    alpha = scores.exp() / scores.exp().sum()
    return scores, alpha, sum(alpha[i] * h[i] for i in range(len(h)))


def generate(s, c, W_f, b_f, W_v, b_v):
    """(6). s [d], c [d] -> features, P_g [V]."""
    f = W_f @ torch.cat([s, c]) + b_f
    return f, (W_v @ f + b_v).softmax(0)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
with torch.no_grad():
    h, s = states_of(plain)
    layer = plain.word_attention
    of_attention = layer.key.weight, layer.query.weight, layer.v.weight[0]
    looked = [look_back(s_t, h, *of_attention) for s_t in s]
    scores, alpha, c = (torch.stack(part) for part in zip(*looked))
    narrow, last = plain.pointer.bottleneck, plain.pointer.vocabulary
    of_words = narrow.weight, narrow.bias, last.weight, last.bias
    f, P_g = (
        torch.stack(part) for part in zip(*(generate(*x, *of_words) for x in zip(s, c)))
    )
    output, state = plain.decode(batch.target_input, plain.encode(batch))
    lib_P = plain.log_prob(output, batch.target, state)[0].exp()
checks.close(alpha, output.copy[0], "(1)-(4)", "attention of the plain model")
checks.close(f, output.features[0], "(5), (6)", "features")
checks.close(
    P_g[range(T), with_unknown(story.target)],
    lib_P,
    "(5), (6)",
    "P of the reference's words",
)
first, second = alpha[1].topk(2).indices.tolist()
a, b = scores[1, first].item(), scores[1, second].item()
others = (scores[1] - a).exp().sum().item() - 1 - math.exp(b - a)
h_dog, dog = h[source_words.index("dog")], all_words.index("dog")
P_dog = [generate(s_t, h_dog, *of_words)[1][dog].item() for s_t in s]
checks.line(
    f"Step 2 by hand: word {first + 1}, {source_words[first]}, has the score {a:.2f}, and word {second + 1}, "
    f"{source_words[second]}, the second score {b:.2f}. Divided by e^{a:.2f}, the sum in (4) is "
    f"1 + e^{b - a:.2f} + {others:.3f} (the others), and the weight of {source_words[first]} is "
    f"1 / {1 + math.exp(b - a) + others:.3f} = {alpha[1, first]:.3f}. "
    f"With all weight on dog, P(dog) is {P_dog[1]:.2f} here, and {P_dog[4]:.2f} at step 5."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
(In Bahdanau's model the context also goes into the recurrence of the decoder. Here, as in Mem2Mem, it does not.)

<details><summary>Predict: at which words of the text will the model look when it writes zebra, saw and cat? And when it writes the, or [EOS]?</summary>

At *zebra*, *seen* and *cat*, which stand in the text in reverse order. What is written at the steps of *the* and [EOS] does not depend on the text, so it does not matter where the model looks.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
by_word = {"rows": target_words, "columns": source_words, "ylabel": "is written"}
panel = {"title": "", "values": alpha.round(decimals=3), **by_word}
caption = "Attention α: where the plain model looks before each word."
figures.show(word_maps, caption, "start_attention", panels=[panel], top=1.0)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 1.** A row is a step, and sums to 1. For *zebra*, *saw* and *cat* nearly all weight is on one word each, in reverse order. Nobody has told it which word belongs to which. The weight decides: moved to *dog*, it makes the model write *dog* there (the line above; so it is with two other seeds). The row of the first *the* is spread out; the second *the* and [EOS] have nearly half of their weight on *seen*. The row of the full stop lies on the two animals that are [UNK].
At *zebra* the plain model looks at the right word and still has to write [UNK]: it knows *where* the word is, but not *which* word it is.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 2. The attention can also copy

A summary is full of names, numbers and terms that the training texts had once or never. A larger vocabulary does not solve this: there is always another name, each word costs a row in two tables, and from a word seen twice the model has learned nothing. But most such words stand in the text, and the
decoder is already looking at them. The **pointer-generator** (See, Liu and Manning 2017; their equations 8 and 9) turns the attention itself into a second distribution over words. A word gets the weights of all places where it stands:

$$P_c(w)=\sum_{i:\,x_i=w}\alpha_{ti}\tag{7}$$

A **switch** $p_t$ between 0 and 1 is the probability that step $t$ generates rather than copies ($\sigma$ is the sigmoid):

$$p_t=\sigma\big(w_c^\top c_t+w_s^\top s_t+w_x^\top E[y_{t-1}]+b_p\big)\tag{8}$$

$$P(w)=p_t\,P_g(w)+(1-p_t)\,P_c(w)\tag{9}$$

$P$ is a distribution over a larger set than the vocabulary: the 27 words *and* the unknown words of this text. The numbers of these unknown words are the **extended ids**: 27 is *zebra* here and may be *lynx* in the next text. $P_g$ is 0 at the extended ids, $P_c$ is 0 at words that the text lacks, and $P$ sums to 1.
When a copied unknown word is fed back as $y_{t-1}$, it is embedded as [UNK], because the table has no row for it.
"""


# %% slideshow={"slide_type": "skip"}
def copy_distribution(alpha, extended, size):
    """(7). Weights [N], extended ids [N] -> P_c [size]."""
    P_c = torch.zeros(size).double()
    for weight, word in zip(alpha, extended):
        P_c[word] += weight
    return P_c


def generate_or_copy(p, P_g, P_c):
    """(9). The vocabulary's distribution is 0 at the text's unknown words."""
    nothing = torch.zeros(len(P_c) - len(P_g)).double()
    return p * torch.cat([P_g, nothing]) + (1 - p) * P_c


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
with torch.no_grad():
    h, s = states_of(pointer)
    output, state = pointer.decode(batch.target_input, pointer.encode(batch))
    alpha, part = output.copy[0], pointer.pointer
    c, x = alpha @ h, pointer.embedding(in_vocabulary(batch.target_input, V))[0]
    w_c, w_s, w_x = part.switch.weight[0].split([c.shape[1], s.shape[1], x.shape[1]])
    p = torch.sigmoid(c @ w_c + s @ w_s + x @ w_x + part.switch.bias)  # (8)
    P_g = part.vocabulary(part.bottleneck(torch.cat([s, c], 1))).softmax(1)  # (6)
    extended, size = batch.source_extended[0].tolist(), V + len(story.unknown)
    P_c = torch.stack([copy_distribution(a, extended, size) for a in alpha])
    P = torch.stack([generate_or_copy(*of_step) for of_step in zip(p, P_g, P_c)])
    lib_log_P = pointer.log_prob(output, batch.target, state)[0]
checks.close(p, output.switch[0].sigmoid(), "(8)", "switch")
checks.close(
    P[range(T), story.target].log(), lib_log_P, "(7), (9)", "log P of the words"
)
checks.close(P.sum(1), torch.ones(T).double(), "(7), (9)", "each row of P sums to 1")
zebra, the = (all_words.index(word) for word in ("zebra", "the"))
at_the = [f"{alpha[0, i]:.2f}" for i, word in enumerate(source_words) if word == "the"]
checks.line(
    f"Step 1 by hand: P_c(the) = {' + '.join(at_the)} = {P_c[0, the]:.2f} of four places. "
    f"Step 2: P(zebra) = {p[1]:.2f} · 0 + {1 - p[1]:.2f} · {P_c[1, zebra]:.2f} = {P[1, zebra]:.2f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: where the switch is at 0, the model copies. What will the vocabulary's distribution say there?</summary>

Anything. It has no effect on $P$ there, so training does not ask anything of it.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
numbers = [f"{t + 1}" for t in range(T)]
with_switch = [f"{step}   p = {share:.2f}" for step, share in zip(numbers, p.tolist())]
generated = torch.cat([P_g, torch.zeros(T, len(story.unknown))], 1)
maps = {
    "$P_g$, over the vocabulary": (generated, numbers),
    "$P_c$, over the words of the text": (P_c, numbers),
    "$P$, with the switch $p_t$ at the left": (P, with_switch),
}
panels = [
    {
        "title": title,
        "values": x.round(decimals=3),
        "rows": rows,
        "columns": all_words,
        "ylabel": "step",
    }
    for title, (x, rows) in maps.items()
]
caption = "Generate or copy: the probability of every word at each step."
figures.show(
    word_maps, caption, "start_copying", panels=panels, across=1, top=1.0, label="P"
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 2.** Columns are the 27 symbols of the vocabulary and, at the right, this text's own two. The switch is at 0 for *the*, *zebra*, *the* and *cat*, which are copied, and at 1 for *saw*, the full stop and [EOS], which are generated. The text has *seen* but no *saw*, and no [EOS]; the full stop could have been copied as well. Only the third map puts the two together.
Where the switch is at 0, $P_g$ has no effect, and it says *saw*, *chose* or a full stop. Where the switch is at 1, $P_c$ has no effect, and it says *the* or *zebra*. A part of a model that nothing depends on is free to say anything, so do not read meaning into it.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**Your own text.** The frame below holds this pointer-generator, its weights rounded to 16 bits, and runs in your browser without a kernel. Type *the ibex was forgotten by the cow .* or something it has never read, choose a step by its word, and move the switch of that step: the rest of the summary is written again. Words with dots below them are not in the vocabulary, so they can only be copied. The tree is a beam search, which section 4 explains.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
LivePointer(pointer, vocabulary, " ".join(TEXT), config)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 3. In training the reference is fed, not the model's own words

By the chain rule, a model of the next word is also a model of the whole summary. Training makes the reference, the summary that a person wrote, probable. The loss is the mean of $-\log P$ over its words, in **nats** a word (the logarithm is the natural one):

$$\mathcal L=-\frac1T\sum_{t=1}^T\log P\big(y_t\mid y_1,\dots,y_{t-1},\,x\big)\tag{10}$$

What matters is the condition: whatever the model would have written at step $t-1$, it is **fed the reference's word**. This is **teacher forcing**. The inputs of all steps are then known in advance, and one call of the decoder computes all steps. The first function goes step by step, so that each step can be seen; the second is the training loop that you know.
"""


# %% slideshow={"slide_type": "skip"}
@torch.no_grad()
def forced_losses(model, batch):
    """-log P of each word of one reference, the words before it given: [T]."""
    state, losses = model.encode(batch), []
    for fed, correct in zip(batch.target_input[0], batch.target[0]):
        output, state = model.decode(fed[None, None], state)
        P = model.distribution(output, state, extra=len(batch.unknown[0]))[0]
        losses.append(-P[correct].log())
    return torch.stack(losses)


# %% slideshow={"slide_type": "skip"}
def teach(model, batches, learning_rate):
    """Teacher forcing, a batch at a time; `learn` of section 0 does the same."""
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for batch in batches:
        state = model.encode(batch)
        output, _ = model.decode(batch.target_input, state)  # the reference goes in
        log_p = model.log_prob(output, batch.target, state)  # and is asked for: [B, T]
        mask = batch.target_mask
        loss = -((log_p * mask).sum(1) / mask.sum(1)).mean()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        adam.step()
    return model


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
losses = forced_losses(pointer, batch)
losses_shown = [f"{loss:.4f}" for loss in losses.tolist()]
fed = ["[BOS]", *target_words[:-1]]
pd.DataFrame(
    [fed, target_words, losses_shown], ["fed", "correct", "-log P"], columns=numbers
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.close(
    losses.mean(), pointer.loss(batch)["loss"], "(10)", "step by step, and in one call"
)
rng = random.Random(seed)
three = [make_batch([story_of(*tell(rng)) for _ in range(8)], V) for _ in range(3)]
weights = []
for train in (teach, learn):
    torch.manual_seed(seed)
    model = Seq2Seq(Seq2SeqConfig(V, embedding=8, hidden=12, bottleneck=8)).double()
    train(model, three, learning_rate=3e-3)
    weights.append(torch.cat([w.flatten() for w in model.parameters()]))
checks.close(*weights, "(10)", "weights after three steps, page and lib")
checks.line(f"The loss is the mean of the last row: {losses.mean():.4f}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Teacher forcing has a price that is often named and hard to measure: **exposure bias**. In training the model reads only references, and in use its own words, with its own mistakes. This page does not measure how much that costs.

<details><summary>Only the hierarchical transformer needs it: a learning rate that warms up</summary>

The recurrent models learn with Adam at one rate. Transformers with the layer norm after each layer often do not start well in this way; their large gradients near the output at first weights are one explanation (Xiong and others 2020). Vaswani and others (2017, their equation 3) let the rate rise in proportion to the step for $k_0$ steps of **warm-up**; after that it falls as one over the root of the step:

$$\eta_k=\eta\,d^{-1/2}\cdot\min\big(k^{-1/2},\ k\,k_0^{-3/2}\big)\tag{11}$$

with $\eta$ a factor, $k$ the step from 1 on and $d$ the width of the model. The rate is largest at $k=k_0$. After that, four times as many steps mean half the rate. Code and papers call it **Noam's rate**, after Noam Shazeer, one of the authors. In `lib`, $\eta\,d^{-1/2}$ is one number, `learning_rate`.
A run of a few hundred steps with $k_0=8000$ would never leave the beginning of the line, so demos have a $k_0$ of their own.

</details>
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def noam(k, factor, d, warmup):
    """(11)."""
    return factor * d**-0.5 * min(k**-0.5, k * warmup**-1.5)


ks = [1, *range(1000, 30_001, 1000)]
settings = {
    "Vaswani and others, base": (1, 512, 4000),
    "Liu and Lapata": (2, 256, 8000),
}
for name, (factor, d, w) in settings.items():
    training = TrainConfig(learning_rate=factor * d**-0.5, warmup=w)
    rates = [noam(k, factor, d, w) for k in ks], [training.rate(k) for k in ks]
    checks.close(*(torch.tensor(x).double() for x in rates), "(11)", name)
checks.line()

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 4. Writing is a search

## Beam search finds what greedy search misses

The model gives the probability of any summary. But there are more summaries than can be listed, and the most probable one has to be found among them. Taking the best word at every step is **greedy search**. **Beam search** keeps the $K$ best **hypotheses**, prefixes of summaries, instead of one. At each step every hypothesis is extended by every word, and the best $K$
of all extensions go on. One that ends with [EOS] is put aside. The figure has a made-up model whose summaries have two words, and $K=2$:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
AFTER = {
    "[BOS]": {"zebra": 0.5, "cat": 0.4, "dog": 0.1},
    "zebra": {"ran": 0.6, "saw": 0.4},
    "cat": {"slept": 0.9, "ran": 0.1},
}
columns = [[{"word": "[BOS]", "value": 1.0, "beam": True}]]
for _ in range(2):
    column = [
        {"word": word, "value": node["value"] * share, "parent": n}
        for n, node in enumerate(columns[-1])
        if node["beam"]
        for word, share in AFTER[node["word"]].items()
    ]
    best = sorted(range(len(column)), key=lambda n: -column[n]["value"])[:2]
    columns.append([{**node, "beam": n in best} for n, node in enumerate(column)])
caption = (
    "Beam search of width 2: the probability of each hypothesis; dark: in the beam."
)
figures.show(beam_tree, caption, "start_beam", columns=columns, steps="step")

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 3.** Greedy search takes *zebra* (0.50) and can only come to 0.30. With two hypotheses *cat* stays in the beam, and $0.4\cdot0.9=0.36$ is found. *dog* was dropped at step 1, and nothing that follows from it is ever looked at: a beam can miss the best summary, too.

The function below does this with our models and shares two details with `lib.decoding.search.beam_search`. It looks at the $2K$ best extensions, because up to $K$ of them may be ends and $K$ open ones must be left. And it stops when $K$ hypotheses have ended and no open one ranks higher than the worst of these $K$. The rank is (12) below.
"""


# %% slideshow={"slide_type": "skip"}
@torch.no_grad()
def extensions(hypotheses, model, batch, barred):
    """Every hypothesis (log P, ids, state) with every word after it."""
    longer = []
    for log_p, ids, state in hypotheses:
        output, after = model.decode(torch.tensor([ids[-1:]]), state)
        P = model.distribution(output, after, extra=len(batch.unknown[0]))[0]
        P[barred] = 0
        of_words = enumerate(P.log().tolist())
        longer += [(log_p + x, [*ids, word], after) for word, x in of_words]
    return longer


# %% slideshow={"slide_type": "skip"}
def search_with_beam(model, batch, config):
    """(rank, log P, ids) of the best hypotheses of one text, the best first."""
    K, ended, going_on = config.beam, [], [(0.0, [BOS], model.encode(batch))]
    for length in range(1, config.max_length + 2):
        barred = [*config.forbidden, *([EOS] if length <= config.min_length else [])]
        longer = extensions(going_on, model, batch, barred)
        if length > config.max_length:
            longer = [hypothesis for hypothesis in longer if hypothesis[1][-1] == EOS]
        best = sorted(longer, key=lambda hypothesis: -hypothesis[0])[: 2 * K]
        for log_p, ids, _ in best[:K]:
            if ids[-1] == EOS:
                ended.append((config.rank(log_p, length), log_p, ids[1:-1]))
        ended = sorted(ended)[-K:]
        going_on = [hypothesis for hypothesis in best if hypothesis[1][-1] != EOS][:K]
        highest = config.rank(going_on[0][0], length) if going_on else -math.inf
        if len(ended) == K and ended[0][0] >= highest:
            break
    return ended[::-1]


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
beam = [
    [vocabulary.text(ids, story.unknown), log_p, len(ids) + 1, rank]
    for rank, log_p, ids in search_with_beam(pointer, batch, config)
]
table = pd.DataFrame(beam, columns=["summary", "log P", "symbols", "rank"]).round(4)
table.index += 1
table

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for name, model in {"plain": plain, "pointer-generator": pointer}.items():
    page, library = [], []
    for size, document in [(size, d) for size in (1, 2, 4, 8) for d in unseen[:3]]:
        one, sized = make_batch([document], V), replace(config, beam=size)
        page += search_with_beam(model, one, sized)
        library += beam_search(model, one, sized)[0]
    assert [ids for _, _, ids in page] == [h.ids for h in library], "the same words"
    page_numbers = torch.tensor([[rank, log_p] for rank, log_p, _ in page]).double()
    lib_numbers = torch.tensor([[h.score, h.log_prob] for h in library]).double()
    checks.close(page_numbers, lib_numbers, "(12)", f"{name}: rank and log P")
rank, log_p, ids = search_with_beam(pointer, batch, config)[0]
checks.line(
    f"The first row by hand: {log_p:.4f} / {len(ids) + 1} symbols = {rank:.4f}. "
    "In 24 searches, with beams of 1 to 8, the page finds the hypotheses of lib."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The best hypothesis is nearly certain ($\log P=-0.01$, a probability of 0.99), and the three others differ from it in the verb alone: a beam shows what the model hesitates about. All have seven symbols, so that they are easily compared. When lengths differ they are not.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## A ratio decides between lengths

Each further word multiplies the probability by something less than 1, so $\log P$ always prefers the shorter of two summaries that are equally good word by word. The **length penalty** $\ell$ divides this preference out. For $n$ symbols, [EOS] included, `lib` ranks by

$$\mathrm{rank}=\frac{\log P}{\ell(n)},\qquad \ell(n)=\Big(\frac{n+o}{1+o}\Big)^{\lambda}\tag{12}$$

`length_penalty` is $\lambda$, `length_offset` is $o$. With $\lambda=0$ the rank is $\log P$ itself. With $\lambda=1$, $o=0$ it is the mean $\log P$ of a symbol; this is the default here. With $o=5$ it is the rule of Wu and others (2016), which the hierarchical transformer uses with $\lambda=0.4$. The name misleads: it *takes away* a penalty on length, and a larger $\lambda$ favours longer summaries.

<details><summary>Predict: one hypothesis has 6 symbols, each with a probability of 0.80, another one 12 symbols, each with 0.85. Which one wins under which rule?</summary>

$\log P$ is $6\log0.80=-1.339$ and $12\log0.85=-1.950$, 1.457 times as much. The long one wins where $\ell(12)/\ell(6)$ is more than 1.457: with $\lambda=1$, for both offsets.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
rules = {"λ = 1, o = 0": (1, 0), "λ = 1, o = 5": (1, 5)}
rules |= {"λ = 0.4, o = 5": (0.4, 5), "λ = 0": (0, 0)}
short, long = 6 * math.log(0.80), 12 * math.log(0.85)
rows = {}
for name, (exponent, offset) in rules.items():
    ruled = replace(config, length_penalty=exponent, length_offset=offset)
    ell = torch.tensor(
        [((n + offset) / (1 + offset)) ** exponent for n in range(1, 19)]
    ).double()
    lib_ell = torch.tensor([1 / ruled.rank(1.0, n) for n in range(1, 19)]).double()
    checks.close(ell, lib_ell, "(12)", name, tolerance=1e-6)
    ranks = {"6 symbols": short / ell[5].item(), "12 symbols": long / ell[11].item()}
    rows[name] = {
        **ranks,
        "wins": max(ranks, key=ranks.get),
        "ℓ(12) / ℓ(6)": (ell[11] / ell[5]).item(),
    }
pd.DataFrame.from_dict(rows, orient="index").round(3)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.line(
    f"The second row by hand: (12 + 5) / (6 + 5) = {17 / 11:.3f}; {short:.3f} / (11 / 6) = {6 * short / 11:.3f}."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** What decides is the last column: the long one wins where it is above 1.457, the ratio of the two $\log P$. Where a model's summaries still have the wrong length, people set bounds: the Mem2Mem of the first table has to write at least 240 symbols.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 5. Why do models repeat themselves?

Mem2Mem summarizes the paper of the first table twice, with the same weights and beams: once by plain beam search, as its paper does, and once with **trigram blocking** (Paulus, Xiong and Socher 2018): no three words in a row are written twice. A word is barred if it would complete a trigram that already stands in the summary (`block_ngrams=3`).
What is counted is the share of a summary's trigrams that have occurred in it before:

$$\mathrm{repeated}=1-\frac{\text{different trigrams}}{\text{trigrams}}\tag{13}$$
"""


# %% slideshow={"slide_type": "skip"}
def repeated_share(words):
    """(13)."""
    trigrams = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    return 1 - len(set(trigrams)) / len(trigrams)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
written = {
    how: " ".join(summary.sentences).split() for how, summary in by_decoding.items()
}
panels = []
for how, words in written.items():
    repeated, count = repeated_ngrams(words)
    checks.close(
        torch.tensor(repeated_share(words)), torch.tensor(repeated / count), "(13)", how
    )
    grams = list(enumerate(zip(words, words[1:], words[2:]), start=1))
    pairs = [[i, j] for i, a in grams for j, b in grams if a == b]
    title = f"{how}\n{repeated} of {count} are repetitions ({repeated / count:.0%})"
    series = {"equal trigrams": list(zip(*pairs))}
    panel = {"title": title, "series": series, "styles": {"equal trigrams": "."}}
    panels.append({**panel, "xlabel": "trigram", "ylabel": "trigram"})
caption = "Two summaries of one paper: a dot where two trigrams are the same. On the diagonal each is compared with itself."
figures.show(lines, caption, "start_repetition", panels=panels)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
words = written["plain beam search"]
repeated, count = repeated_ngrams(words)
checks.line(
    f"At the left: {count} trigrams, {count - repeated} different ones, 1 - {count - repeated} / {count} = {repeated / count:.2f}."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 4.** Each pair of equal trigrams has two dots, and a repeated passage is a line beside the diagonal. On the right trigram blocking has left only the diagonal, as it must. But the rule does not make the summary true, and it also bars what would rightly be said twice.

**Is it what the model has learned, or how it is decoded?** The same weights write the same 30 papers by beam search, by greedy search and by **sampling**: each word is drawn from the model's own distribution $P$, or from $P^{1/\tau}$ with a temperature $\tau$ below 1, which prefers probable words (`python -m companion.studies.repetition trained/mem2mem --dataset pmc-sample --documents 30`).

<details><summary>Predict: which summaries repeat most, and do sampled ones repeat more than the authors' abstracts?</summary>

Greedy and beam search repeat most. Words drawn from the model's own distribution repeat no more than the authors do.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
stored = json.loads(
    (project_root() / "figures" / "repetition_mem2mem.json").read_text("utf-8")
)
by_way = {row["change"]: row["text"] for row in stored["changes"]}
pd.DataFrame({"repeated trigrams, percent": by_way})

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** The distribution that the model has learned hardly repeats. Repetition comes with the search for probable words, and grows as the temperature falls (Holtzman and others 2020 found the same for language models). Sampling is no remedy: what it draws from the tail of the distribution is often wrong.

Does repetition also feed itself? The first sentence of the model's own summary is read to it after another sentence of that summary, after itself, and after two copies of itself:
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def log_prob(document, *sentences):
    """log P of sentences as the beginning of a document's summary."""
    words = np.concatenate(sentences).astype(np.int32)
    (of_word,) = log_probs(run.model, [replace(document, target=words)])
    return of_word * len(words)


def first_two(ids):
    """The first two different sentences of a summary, in ids."""
    ends = [i + 1 for i, word in enumerate(ids) if word == full_stop]
    parts = [tuple(ids[a:b]) for a, b in zip([0, *ends], ends)]
    return list(dict.fromkeys(part for part in parts if len(part) > 4))[:2]


full_stop, values = run.vocabulary.words.index("."), []
some = run.encode(papers[:15])
plain_search = replace(run.decode, block_ngrams=0, min_length=120, max_length=120)
for document, best in zip(
    some, search_split(run.model, some, run.vocabulary, plain_search)
):
    one, *others = first_two(best.ids)
    befores = (others, [one], [one, one]) if others else ()
    changed = [
        (log_prob(document, *before, one) - log_prob(document, *before)) / len(one)
        for before in befores
    ]
    values += [changed] if changed else []
after_other, after_itself, after_two = np.array(values).T
change = paired_bootstrap(after_other, after_itself, seed)
again = paired_bootstrap(after_itself, after_two, seed)
differences = {
    "after itself - after the other": change,
    "after two copies - after one": again,
}
pd.DataFrame(
    {name: [x.text(3)] for name, x in differences.items()},
    [f"log P of a word, {len(values)} papers"],
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
After itself the sentence is a little more probable, and after two copies it is less probable than after one. So what is already written explains little of the repetition.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Coverage

See, Liu and Manning's remedy (2017) is to tell the attention where it has been. The **coverage** of a source word is the attention that it has had so far:

$$cov_{ti}=\sum_{t'<t}\alpha_{t'i}\tag{14}$$

It is 0 at the first step, and its sum over the words of the text is $t-1$. It enters the score (3) as one more term, so that the model *can* learn to look elsewhere:

$$a_{ti}=v^\top\tanh\big(W_h h_i+W_s s_t+w_{cov}\,cov_{ti}\big)\tag{15}$$

A loss can also ask the model to do so. It counts the attention that goes where attention has been before:

$$\mathcal L^{(cov)}_t=\sum_{i=1}^N\min\big(\alpha_{ti},\ cov_{ti}\big)\tag{16}$$

At each step this loss lies between 0, when all attention is on new words, and 1, when all of it is on words that had at least as much before. In a long summary it says little: once every word has had some attention, coverage exceeds nearly every weight, and the loss is near 1 whatever the attention does. Mem2Mem has (15) without (16), and so has the pointer-generator of this page.
"""


# %% slideshow={"slide_type": "skip"}
def coverage_attention(s, h, W_h, W_s, w_cov, v):
    """(14), (15). s [T, d], h [N, d] -> weights and coverage, [T, N] each."""
    cov, alphas, covs = torch.zeros(len(h)).double(), [], []
    for s_t in s:
        sums = [W_h @ h[i] + W_s @ s_t + w_cov * cov[i] for i in range(len(h))]
        scores = [v @ torch.tanh(x) for x in sums]
        alphas.append(torch.stack(scores).softmax(0))
        covs.append(cov)
        cov = cov + alphas[-1]
    return torch.stack(alphas), torch.stack(covs)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
with torch.no_grad():
    h, s = states_of(pointer)
    layer = pointer.word_attention
    alpha, cov = coverage_attention(
        s, h, layer.key.weight, layer.query.weight, layer.coverage, layer.v
    )
checks.close(alpha, output.copy[0], "(14), (15)", "attention of the pointer-generator")
place = int(cov[-1].argmax())
so_far = [f"{x:.2f}" for x in alpha[:-1, place].tolist()]
checks.line(
    f"Word {place + 1}, {source_words[place]}, before step {T}: {' + '.join(so_far)} = {cov[-1, place]:.2f}."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
panels = [
    {"title": "attention α", "values": alpha.round(decimals=2), **by_word},
    {"title": "coverage before the step", "values": cov.round(decimals=2), **by_word},
]
caption = "The pointer-generator: attention, and its sum so far."
figures.show(word_maps, caption, "start_coverage", panels=panels, across=1)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 5.** When the pointer-generator writes *saw*, it attends a second time to the *the* before *zebra*, and for the next *the* it does so a third time. The state of this source word has read *the cat was seen by the* from the left and *zebra* from the right, and so knows of both. **A weight points at a state, not at a word**, and a state knows its surroundings.
Coverage does not stop the model from looking three times at one place, because nothing is lost by it.

See, Liu and Manning report that coverage as an input, without the loss (16), did not reduce repetition in their model. Mem2Mem has the input, and repeats itself in plain beam search. Whether it would repeat more without it was not measured.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 6. ROUGE counts shared words

A summary is scored against a reference. **ROUGE** (Lin 2004) counts what the two share. First both are lower-cased, punctuation is dropped, and words of more than three letters are cut to their stem (Porter's rules: *studies* and *studied* are both *studi*). Then **ROUGE-n** counts the n-grams, $n$ words in a row, that both texts have, each by the smaller of its two counts $\#$:

$$\mathrm{hits}_n=\sum_{g}\min\big(\#_{\text{summary}}(g),\ \#_{\text{reference}}(g)\big)\tag{17}$$

**Precision** $\pi$ is the hits as a share of the summary's n-grams; **recall** $\rho$ is the hits as a share of the reference's. Tables mostly show $F_1$, the harmonic mean of the two, in percent:

$$F_1=\frac{2\,\pi\rho}{\pi+\rho}\tag{18}$$

**By hand.** The reference is *the zebra saw the cat*, the summary *the cat saw the zebra*. Both have five words, and all are shared: R-1 is 100. The pairs of the summary are *the cat, cat saw, saw the, the zebra*; three of these four stand in the reference, which has four as well. So $\pi=\rho=3/4$, and R-2 is 75.
"""

# %% slideshow={"slide_type": "skip"}
stems = DefaultTokenizer(use_stemmer=True).tokenize


def f1_percent(hits, in_summary, in_reference):
    """(18), of how many words (n-grams) are shared, and are in each."""
    if not hits:
        return 0.0
    precision, recall = hits / in_summary, hits / in_reference
    return 100 * 2 * precision * recall / (precision + recall)


def rouge_n(summary, reference, n):
    """(17). Both are lists of sentences."""
    words = [stems(" ".join(sentences)) for sentences in (summary, reference)]
    counts = [Counter(zip(*(text[i:] for i in range(n)))) for text in words]
    hits = (counts[0] & counts[1]).total()  # & takes the smaller count of each n-gram
    return f1_percent(hits, *(count.total() for count in counts))


# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
**ROUGE-L** does not ask that words stand next to each other, only that they come in the same order. It takes the **longest common subsequence** of the two texts: the longest series of words that both contain in the same order, with anything between them. Its length follows from those of prefixes. With $u_i$ and $u'_j$ the words of the two texts,

$$L_{ij}=\begin{cases}L_{i-1,j-1}+1&\text{if }u_i=u'_j\\ \max(L_{i-1,j},\,L_{i,j-1})&\text{otherwise}\end{cases}\tag{19}$$

with $L_{i0}=L_{0j}=0$. The last of the $L_{ij}$ is $\mathrm{hits}_L$.
"""


# %% slideshow={"slide_type": "skip"}
def lcs_lengths(words, others):
    """(19). L[i][j] for all prefixes of two lists of words."""
    L = [[0] * (len(others) + 1) for _ in range(len(words) + 1)]
    for i, a in enumerate(words, start=1):
        for j, b in enumerate(others, start=1):
            L[i][j] = L[i - 1][j - 1] + 1 if a == b else max(L[i - 1][j], L[i][j - 1])
    return L


def rouge_l(summary, reference):
    """All sentences of a text as one."""
    words, others = (stems(" ".join(text)) for text in (summary, reference))
    return f1_percent(lcs_lengths(words, others)[-1][-1], len(words), len(others))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
reference = ["the", "zebra", "saw", "the", "cat"]
changed = ["the", "cat", "saw", "the", "zebra"]
L, i, j, path, hits = (
    lcs_lengths(reference, changed),
    len(reference),
    len(changed),
    [],
    [],
)
while i and j:
    path.append([i, j])
    if reference[i - 1] == changed[j - 1]:
        hits.append([i, j])
        i, j = i - 1, j - 1
    else:
        i, j = (i, j - 1) if L[i][j - 1] > L[i - 1][j] else (i - 1, j)
caption = "The longest common subsequence: L of all prefixes, and a way back from the last number; dark: a shared word."
shades = np.zeros((len(L), len(L[0])))
shades[tuple(zip(*path))] = 0.25
shades[tuple(zip(*hits))] = 0.8
panel = {
    "title": "", "values": L, "shades": shades, "rows": ["", *reference], "columns": ["", *changed],
    "ylabel": "reference", "xlabel": "summary",
}  # fmt: skip
figures.show(word_maps, caption, "start_lcs", panels=[panel], zeros=True)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 6.** A number is one more than its neighbour up left where the words are equal, and otherwise the larger of its neighbours above and at the left. The last one is 3: *the saw the*. So $\pi=\rho=3/5$, and R-L is 60.
"""

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
One sequence for the whole text is hard on a summary that says the right things in another order: a subsequence cannot go back. **ROUGE-Lsum**, the summary-level ROUGE-L, treats each sentence of the reference by itself. It finds the longest common subsequence of this sentence with *every* sentence of the summary. A word counts as a hit when it is in any of these subsequences:

$$\mathrm{hits}_{Lsum}=\sum_{r\in\text{reference}}\Big|\bigcup_{c\in\text{summary}}\mathrm{LCS}(r,c)\Big|\tag{20}$$

The union is of *places* in $r$. Of several longest subsequences `in_common` takes the one that `rouge-score` takes. No word is counted more often than it occurs in the summary or in the reference.
"""


# %% slideshow={"slide_type": "skip"}
def in_common(wanted, sentence):
    """Places in `wanted` of one longest common subsequence: (19), from the end."""
    L, i, j, places = lcs_lengths(wanted, sentence), len(wanted), len(sentence), set()
    while i and j:
        if wanted[i - 1] == sentence[j - 1]:
            places, i, j = places | {i - 1}, i - 1, j - 1
        else:
            i, j = (i, j - 1) if L[i][j - 1] > L[i - 1][j] else (i - 1, j)
    return places


def rouge_lsum(summary, reference):
    """(20). A list of sentences each."""
    texts = [[stems(sentence) for sentence in text] for text in (summary, reference)]
    ours, theirs = (Counter(word for s in text for word in s) for text in texts)
    hits = Counter()
    for sentence in texts[1]:
        places = set().union(*(in_common(sentence, other) for other in texts[0]))
        hits += Counter(sentence[i] for i in places)
    return f1_percent((hits & ours & theirs).total(), ours.total(), theirs.total())


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: a summary has the two sentences of its reference in the other order. Which of R-1, R-2, R-L and R-Lsum does that cost something?</summary>

R-L nearly 29 points, since a subsequence cannot go back; R-2 nearly 17, for the pair of words across the two sentences. R-1 and R-Lsum lose nothing.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
two = ["The zebra saw the cat.", "It ran."]
examples = {
    "the same": (two, two),
    "sentences in the other order": (two[::-1], two),
    "who and whom exchanged": (["The cat saw the zebra.", "It ran."], two),
    "all in one sentence": (["It ran when the zebra saw the cat."], two),
    "Mem2Mem, trigram blocking": (mem2mem, paper.summary),
}
scorer, page, library = RougeScorer(["rougeL"], use_stemmer=True), {}, []
for name, pair in examples.items():
    page[name] = [
        *(rouge_n(*pair, n) for n in (1, 2)),
        rouge_lsum(*pair),
        rouge_l(*pair),
    ]
    summary, wanted = ("\n".join(sentences) for sentences in pair)
    whole = scorer.score(wanted, summary)["rougeL"].fmeasure
    library.append([*rouge([pair[0]], [pair[1]])[0], 100 * whole])
table = pd.DataFrame.from_dict(
    page, orient="index", columns=["R-1", "R-2", "R-Lsum", "R-L"]
)
checks.close(torch.tensor(table.values), torch.tensor(np.array(library)), "(17)-(20)")
table.round(1)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
by_hand = [["the cat saw the zebra"], ["the zebra saw the cat"]]
checks.line(
    f"The example by hand: R-1 {rouge_n(*by_hand, 1):.0f}, R-2 {rouge_n(*by_hand, 2):.0f}, R-L {rouge_l(*by_hand):.0f}."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see.** On the real summary, R-L is 20.3 and R-Lsum is 30.7: taking one for the other is a larger error than most differences between models. Most tables of CNN/DailyMail, arXiv and PubMed mean **R-Lsum**, but it depends on the script. The pages here mean R-Lsum, unless they say R-L. In a table of long summaries an R-L near R-1 is R-Lsum; one far below R-1 is R-L.

In the third row the wrong animal saw the other, and still R-1 is 100. ROUGE counts words. It does not judge truth, and it rewards longer summaries: in section 7, twenty more words of the paper are worth a point.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 7. Is it luck?

## Intervals

A score is a mean over test documents, and other documents would give another score. How different would it be? The **bootstrap** asks the documents themselves. From the $D$ documents it draws $D$, with replacement, and takes the mean of their scores $m_i$. It does this $B$ times, a thousand here and 2,000 in (22). The interval goes from the 2.5% quantile $q$ of these means to the 97.5% quantile:

$$\Big[\,q_{2.5},\ q_{97.5}\Big]\ \text{of}\ \bar m_b=\frac1D\sum_{j=1}^D m_{i_{bj}},\ i_{bj}\sim\mathrm{Uniform}\{1,\dots,D\},\ b\le B\tag{21}$$

Three systems that learn nothing supply the numbers, on 60 papers: Lead and LexRank, both cut to 200 words, and Lead cut to 180 words.
"""


# %% slideshow={"slide_type": "skip"}
def resampled_means(values, resamples, seed):
    """(21): the mean of each resample of documents, [resamples]."""
    size = resamples, len(values)
    drawn = np.random.default_rng(seed).integers(0, len(values), size)
    return values[drawn].mean(1)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
scored = papers[:60]
ranked = [lexrank(text.sentences, 200) for text in scored]
lead = [text.sentences for text in scored]
systems = {
    "Lead, 180 words": (lead, 180),
    "Lead, 200 words": (lead, 200),
    "LexRank, 200 words": (ranked, 200),
}
r1 = {
    name: rouge(
        [cut(text, most, run.options) for text in texts],
        [text.summary for text in scored],
    )[:, 0]
    for name, (texts, most) in systems.items()
}
rows = {}
for name, scores in r1.items():
    low, high = np.percentile(resampled_means(scores, 1000, seed), [2.5, 97.5])
    library = interval(scores, seed)
    checks.close(
        torch.tensor([low, high]),
        torch.tensor([library.low, library.high]),
        "(21)",
        name,
    )
    rows[name] = {"R-1": str(library), "half width": f"{(high - low) / 2:.2f}"}
pd.DataFrame.from_dict(rows, orient="index")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
short, long, chosen = r1.values()
error = short.std() / len(short) ** 0.5
checks.line(
    f"By hand, roughly: ± 1.96 times the standard deviation over the root of {len(short)}, 1.96 · {short.std():.1f} / {len(short) ** 0.5:.2f} = {1.96 * error:.2f}."
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## The paired bootstrap

But comparing two intervals throws away what we know: both systems were scored on the *same* documents, some of which are hard for both. The **paired bootstrap** (Koehn 2004) draws documents once and takes the difference of the two systems on them, $m_i$ being the score of the first and $m'_i$ that of the second. $p_{boot}$ is twice the share of resamples that contradict the difference:

$$\begin{gathered}\Delta_b=\frac1D\sum_{j=1}^D\big(m'_{i_{bj}}-m_{i_{bj}}\big)\\
p_{boot}=\min\Big(1,\ 2\,\frac{\#\{\Delta_b\le0\}}B,\ 2\,\frac{\#\{\Delta_b\ge0\}}B\Big)\end{gathered}\tag{22}$$

By convention a difference is called real when its interval excludes 0; of many comparisons some do so by luck, and $p_{boot}$ is a rough p-value. When no resample contradicts it, (22) gives 0, and a table shows $p_{boot}<2/B$.
"""


# %% slideshow={"slide_type": "skip"}
def paired_differences(first, second, resamples, seed):
    """(22): mean difference of each resample, and p."""
    differences = resampled_means(second - first, resamples, seed)
    worse, better = (differences <= 0).mean(), (differences >= 0).mean()
    return differences, min(1.0, 2 * min(worse, better))


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Predict: the intervals of Lead with 180 and with 200 words overlap by more than half. Is the difference luck?</summary>

No. The two scores rise and fall together over papers, and what they share cancels in the difference: on the same papers its interval excludes 0.

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
rows = {}
for name, a, b in (
    ("Lead, 200 - 180 words", short, long),
    ("LexRank - Lead", long, chosen),
):
    differences, p_boot = paired_differences(a, b, 2000, seed)
    low, high = np.percentile(differences, [2.5, 97.5])
    library = paired_bootstrap(a, b, seed)
    checks.close(
        torch.tensor([low, high, p_boot]),
        torch.tensor([library.low, library.high, library.p]),
        "(22)",
        name,
    )
    b_alone, a_alone = (resampled_means(x, 2000, seed + i) for i, x in ((1, b), (2, a)))
    apart = np.percentile(b_alone - a_alone, [2.5, 97.5])
    rows[name] = {
        "difference": f"{(b - a).mean():+.2f}",
        "paired": f"[{low:+.2f}, {high:+.2f}]",
        "p_boot": f"{p_boot:.3f}" if p_boot else f"< {2 / len(differences):.3f}",
        "unpaired": "[{:+.2f}, {:+.2f}]".format(*apart),
        "correlation": f"{np.corrcoef(a, b)[0, 1]:+.2f}",
    }
pd.DataFrame.from_dict(rows, orient="index")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
better, equal = int((long > short).sum()), int((long == short).sum())
checks.line(
    f"By hand: of {len(short)} papers, {better} are better with 200 words and {equal} equal; {(long - short).std():.2f} is the standard deviation of the differences."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
means = {
    name: resampled_means(scores, 2000, seed + i)
    for i, (name, scores) in enumerate(
        {"180 words": short, "200 words": long}.items(), start=1
    )
}
differences, _ = paired_differences(short, long, 2000, seed)
drawn = {
    "R-1 of Lead": means,
    "200 words - 180 words": {
        "paired": differences,
        "unpaired": means["200 words"] - means["180 words"],
    },
}
panels = []
for label, values in drawn.items():
    edges = np.histogram_bin_edges(np.concatenate(list(values.values())), 50)
    middles = (edges[1:] + edges[:-1]) / 2
    series = {
        name: [middles, np.histogram(means_of, edges)[0]]
        for name, means_of in values.items()
    }
    styles = dict.fromkeys(series, "-")
    panels.append(
        {"series": series, "styles": styles, "xlabel": label, "ylabel": "resamples"}
    )
panels[1]["series"]["no difference"] = [[0, 0], [0, 250]]
panels[1]["styles"]["no difference"] = "k:"
caption = "2,000 resamples: two means, and their difference."
figures.show(lines, caption, "start_bootstrap", panels=panels)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**What to see in Figure 7.** The two Leads differ by 1.13 points. When each is resampled by itself (unpaired), the interval of the difference is -0.8 to 3.1. On the same documents (paired) it is 0.7 to 1.5, and none of 2,000 resamples contradicts the difference. The scores of the two have a correlation of 0.96, and what they share cancels.
So twenty more words *are* worth a point of R-1, for a system that has learned nothing. That is why the pages cut all summaries to one length before they compare. For LexRank and Lead pairing changes little, because their scores on a paper have nothing to do with each other (a correlation of -0.04). Pairing costs nothing either, so it is always done.

Neither interval covers another seed, another training set or another corpus: a table of one run says nothing about the next run. `lib.evaluation.bootstrap` can take several runs of a system and then resamples the runs, too.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# 8. What to take home, and where to go

* **A summarizer looks, and copies.** Attention says at which states of the text the next word is; the switch sends a word that no vocabulary has from there into the summary. On made-up texts it makes the difference between 16 and 100 right of 100.
* **How a model writes is not what it has learned.** The same weights repeat much in plain beam search, hardly at all when words are drawn from their distribution, and never with trigram blocking.
* **A score is a count of words, and a mean over documents.** R-1 is 100 when the wrong animal saw the other, and twenty more words are worth a point. Compare at one length, on the same documents, paired.

| page | what it adds to this one | take it when |
|---|---|---|
| [Windowed attention](windowed.ipynb) | the attention sees one window of the text, and a symbol moves the window on | **first**: the pointer-generator of section 2 plus one idea |
| [Read-Again](read_again.ipynb) | an encoder that reads twice; copying without a switch, by one softmax | you wonder what becomes of [UNK] when it is fed back |
| [Mem2Mem](mem2mem.ipynb) | sentences as states of their own, pressed into a memory that the decoder reads and writes | you want the model of the first table |
| [Hierarchical transformers](hierarchical_transformer.ipynb) | transformers in place of GRUs; many texts, one summary | you know transformers; (11), and (12) with $o=5$, are used there |
| [What they compare themselves with](baselines.ipynb) | the systems in the papers' tables | beside a table of a paper |
| [All four compared](compare.ipynb) | which is better, with section 7 | after at least two of the others |
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 9. Symbols and words

<details><summary>Symbols of this page, with their shapes</summary>

| symbol | shape | what |
|---|---|---|
| $x_1\dots x_N$ | | words of the text |
| $y_1\dots y_T$ | | words of the summary; $y_T$ is [EOS], and $y_0$ is [BOS] |
| $E[w]$ | $e$ | embedding of word $w$: one table for text and summary |
| $d$ | | width of all states |
| $h_i$, $s_t$ | $d$ | state of the encoder at word $i$; state of the decoder when it is about to write $y_t$ |
| $a_{ti},\ \alpha_{ti}$ | scalar | score, and attention weight, of source word $i$ at step $t$ |
| $c_t$ | $d$ | context: what is read from the text at step $t$ |
| $f_t$ | narrower than $d$ | features, of which the next word is predicted |
| $P_g,\ P_c,\ P$ | words | probability of generating a word, of copying it, and both together |
| $p_t$ | scalar | switch: probability that step $t$ generates rather than copies |
| $cov_{ti}$ | scalar | coverage: the attention that word $i$ has had before step $t$ |
| $W,\ b,\ v$ | | weights, with an index that says of what; in (3) $W_h,W_s$ are $d\times d$, $v$ is $d$ |
| $k,\ k_0$ | | training step; steps of warm-up |
| $K,\ n$ | | beam; symbols of a hypothesis |
| $\ell(n),\ \lambda,\ o$ | scalar | length penalty, its exponent and its offset |
| $\pi,\ \rho$ | scalar | precision and recall |
| $m_i$ | scalar | score of test document $i$ |
| $D,\ B,\ p_{boot}$ | | test documents; resamples; twice the share of resamples that contradict a difference |

</details>

<details><summary>The same thing under other names on other pages</summary>

| here | Mem2Mem | windowed | Read-Again | hierarchical | what |
|---|---|---|---|---|---|
| $N$ | $N$ | $T_x$ | $n$ | | words of the text |
| $T$ | $T$ | $T_y$ | $T$ | | words of the summary |
| $d$ | $d$ | $d$ | $d$ | $d$ | width of the states |
| $h_i$ | $h^{(w)}_i$; $h^{(s)}_j$ of sentences | $h_j$ | $h^2_i$, after the second read | $x_{ij}$, layer by layer | state of a source word |
| $s_t$ | $h^{(d)}_t$; $h^{(m)}_t$ after the memory | $s_t$ | $s_t$ | | state of the decoder |
| $a_{ti}$ | | $e_{tj}$ | $o_{it}$ | | score |
| $\alpha_{ti}$ | $\alpha_t$; with sentences $\gamma_t$ | $\alpha_{tj}$ | $\beta_{it}$ | | attention to a source word |
| $c_t$ | $c_t$ | $c_t$ | $c_t$ | | context |
| $p_t$ | $p_t$ | $p_t$ | one softmax over $g_w$ and $k_i$ | copies nothing | generate or copy |

Letters with another meaning elsewhere: $\alpha_i$ is the importance of a word in Read-Again, and $c_i$ what a paragraph has gathered in the hierarchical transformer.

</details>

<details><summary>Glossary</summary>

| word | meaning |
|---|---|
| abstractive, extractive | written word by word; consisting of sentences of the text |
| attention | weights over states, of sum 1, computed again at each step: (3), (4) |
| beam | the hypotheses with which a search goes on: section 4 |
| bootstrap | drawing the test documents again, with replacement: (21), (22) |
| [BOS], [EOS], [PAD], [UNK] | beginning, end, filling of shorter rows in a batch, a word outside the vocabulary |
| context | the weighted mean of states that attention gives: (5) |
| coverage | the attention that a source word has had so far: (14) |
| exposure bias | in training a model reads references, in use its own words |
| extended id | a number after the vocabulary's for a text's own unknown word: section 2 |
| greedy search | beam search with a beam of 1 |
| hypothesis | a summary, or a prefix of one, with its $\log P$ |
| Lead, LexRank, oracle | first sentences; most central sentences; the sentences that fit the reference best, chosen by looking at it |
| length penalty | what $\log P$ is divided by before hypotheses are compared: (12) |
| n-gram, trigram | $n$ words in a row, three |
| nat | the unit of $-\log P$ with the natural logarithm: a word that loses 0.7 nats is half as probable |
| pointer-generator | generates or copies each word, by a switch: (9) |
| R-1, R-2, R-L, R-Lsum | ROUGE $F_1$ in percent: (17) to (20) |
| reference | the summary that a person wrote |
| switch | $p_t$, (8) |
| teacher forcing | the reference's words are fed in training: (10) |
| warm-up | the steps over which the learning rate rises: (11) |

</details>

All comparisons of the page with the library, in double precision:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.table()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 10. Exercises

Six functions of at most six lines each. Write one instead of `raise NotImplementedError`, run its cell and then the check below it, which compares your results with the library or with
something computed in another way. A check says how many cases are right and shows the first wrong one. Hints and solutions are folded. This part needs nothing from
above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import numpy as np
import torch

from companion.exercises.start_here import check, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Compute

**1.** *Find the bug.* This is somebody's mixture (9) of generating and copying, over the vocabulary and the unknown words of one text:

```python
def generated_or_copied(p, P_g, alpha, extended, size):
    P = torch.zeros(size, dtype=P_g.dtype)
    P[: len(P_g)] = p * P_g
    P[extended] += (1 - p) * alpha
    return P
```

For some texts the probabilities do not sum to 1. For which ones, and why? Write it right. (2 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def generated_or_copied(p, P_g, alpha, extended, size):
    """P of every word: switch p, P_g [V], attention alpha [N], extended ids [N].

    Returns [size], with the words of the vocabulary first.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, generated_or_copied)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Compare (7). Try `P = torch.zeros(3); P[torch.tensor([1, 1])] += torch.tensor([0.4, 0.6])`.

</details>
<details><summary>Solution</summary>

```python
def generated_or_copied(p, P_g, alpha, extended, size):
    P = torch.zeros(size, dtype=P_g.dtype)
    P[: len(P_g)] = p * P_g
    return P.index_add(0, extended, (1 - p) * alpha)
```

With an index on the left, each entry is written once. Of a word that stands twice in the text only one weight was added, while (7) adds those of all its places.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Find the bug.* This beam search (section 4) compares hypotheses by $\log P$ itself, with $\lambda=0$ in (12). `next_words` says which words can follow a list of words, with their probabilities; nothing follows `"[EOS]"`. No summary has more than `most` symbols.

```python
def best_of_beam(next_words, K, most):
    beam = [(0.0, [])]
    for _ in range(most):
        longer = [
            (log_p + np.log(p), [*words, word])
            for log_p, words in beam
            for word, p in next_words(words).items()
        ]
        beam = sorted(longer, reverse=True)[:K]
    return beam[0][1]
```

Which summaries can it never return? Write it right. (2 points, 15 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def best_of_beam(next_words, K, most):
    """next_words(["the"]) may be {"cat": 0.7, "[EOS]": 0.3}; K: hypotheses in a beam.

    Returns the words of the best summary that the beam finds, "[EOS]" included.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, best_of_beam)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What happens at the next step to a hypothesis that ends with `"[EOS]"`?

</details>
<details><summary>Solution</summary>

```python
def best_of_beam(next_words, K, most):
    beam = [(0.0, [])]
    for _ in range(most):
        ended = [found for found in beam if found[1][-1:] == ["[EOS]"]]
        longer = [(s + np.log(p), [*y, w]) for s, y in beam for w, p in next_words(y).items()]
        beam = sorted(ended + longer, reverse=True)[:K]
    return beam[0][1]
```

Nothing follows [EOS], so a hypothesis that had ended was in no later beam, and only the longest summaries were left. Here it stays and competes. Section 4 puts it aside instead, which leaves
all $K$ places to those that are open.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Derive

**3.** An attention has $T$ steps over a text of $N$ words. Derive the largest and the smallest value that the coverage loss (16), summed over all steps, can have. Which attention has the largest, and which one the smallest? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def extremes_of_coverage_loss(T, N):
    """Two whole numbers in, two out: the largest and the smallest sum."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, extremes_of_coverage_loss)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

What does a step cost that attends where all attention has been? How much attention can one word have before it costs anything, and how many words are there?

</details>
<details><summary>Solution</summary>

```python
def extremes_of_coverage_loss(T, N):
    return [T - 1, max(0, T - N)]
```

The first step is free, and a later one costs at most 1. Every attention that stays where it is pays that much, the uniform one too. The first 1 of attention to a word costs nothing if the word
gets it in one step, and all beyond it is paid for. So the cheapest attention goes from word to word, and pays only when no new word is left.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** Let $q$ be the score whose sigmoid is the switch $p$ (8). Derive $\partial\log P(w)/\partial q$ from (9), in $p$ and the two probabilities of $w$. When does a word of the reference push the switch towards copying? (3 points, 10 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_switch(p, P_g, P_c):
    """The switch, and P_g and P_c of the word: three numbers in, one out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, push_on_the_switch)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

$\sigma'(q)=p\,(1-p)$. How does $P(w)$ change with $p$?

</details>
<details><summary>Solution</summary>

```python
def push_on_the_switch(p, P_g, P_c):
    return p * (1 - p) * (P_g - P_c) / (p * P_g + (1 - p) * P_c)
```

Whenever copying is the better guess for the word. A word outside the vocabulary has $P_g=0$, and pushes by $-p$, whatever $P_c$ is.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Change the model, and predict

**5.** Two systems summarized the same 60 papers (section 7). The scores of the first have a standard deviation of 8 points over papers. The second is about one point better on every paper (standard deviation of the differences: 1). There are two intervals of the difference of the means: the paired one (22), and one for which the papers of each system are drawn by themselves (21). Which of them excludes 0?

Then somebody sorts the second system's scores by mistake before the comparison. Which of the two excludes 0 now? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def shown_by_intervals():
    """Four truth values: paired, unpaired; the same with sorted scores."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, shown_by_intervals)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The mean of 60 numbers is uncertain by their standard deviation over $\sqrt{60}$. Which numbers are averaged in each case, and what is their standard deviation?

</details>
<details><summary>Solution</summary>

```python
def shown_by_intervals():
    return [True, False, False, False]
```

Paired, the differences count, and one point is many times $1/\sqrt{60}\approx0.13$. Unpaired, it is less than $8\sqrt{2/60}\approx1.5$. Sorting changes no mean, but the scores are no longer at their papers, and pairing has nothing left to cancel.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**6.** In the planted task of `companion.tasks.synthetic` a text has three sentences of random words, one of them begins with a mark, and the summary is the rest of that sentence. All these words are now **outside** the vocabulary. A plain model and a pointer-generator train for 30 steps. Which of the two has the smaller loss (10) at the end? And which one gives the summary's own words the larger probability? (3 points, 5 minutes)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss_and_better_summary():
    """Two names, "plain" or "pointer": of the smaller loss, of the better summary."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, smaller_loss_and_better_summary)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Which symbol is the plain model asked for at every step?

</details>
<details><summary>Solution</summary>

```python
def smaller_loss_and_better_summary():
    return ["plain", "pointer"]
```

The plain model is asked for [UNK] and [EOS] only, which is soon learned, and it can write no other word. Losses can be compared only where the same is asked.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**To go on with, without a check.** Let `tell` put two sentences that say who did what into a text, with the summary of the first of them only.
Which of Figures 1, 2 and 5 change? What does the model have to know that it did not have to know before? Train both models again and look.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Next

Go on with [windowed attention](windowed.ipynb), or choose from section 8. The other pages: [Read-Again](read_again.ipynb) · [Mem2Mem](mem2mem.ipynb) · [hierarchical transformers](hierarchical_transformer.ipynb) ·
[all four compared](compare.ipynb), [what they compare themselves with](baselines.ipynb).

**Sources.** Bahdanau, Cho, Bengio: *Neural Machine Translation by Jointly Learning to Align and Translate*, ICLR 2015. See, Liu, Manning: *Get To The Point: Summarization with Pointer-Generator Networks*, ACL 2017. Vaswani and others: *Attention Is All You
Need*, NeurIPS 2017. Wu and others: *Google's Neural Machine Translation System*, 2016. Paulus, Xiong, Socher: *A Deep Reinforced Model for Abstractive Summarization*, ICLR 2018. Lin: *ROUGE: A Package for Automatic Evaluation of Summaries*, 2004. Koehn:
*Statistical Significance Tests for Machine Translation Evaluation*, EMNLP 2004. Erkan, Radev: *LexRank*, JAIR 2004.
"""
