# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Start here: how does a model write a word that it has never seen?

*25 minutes, no code. You need no paper and no linguistics. The building path below needs PyTorch.*

Summarizers write names that were in none of their training texts. They also say the same thing twice. And tables of their scores hang on differences that may be luck. All four papers take the reasons for granted, so this page explains them first, on models small enough to look at.
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
seed: int = 0  # of weights, stories and bootstrap

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

import lib
from companion.live.page import LivePointer
from companion.pages.checks import Checks
from companion.pages.diagrams import show_model
from companion.pages.figures import beam_tree, lines, word_maps
from companion.pages.shown import (
    PageFigures,
    Passages,
    Prediction,
    clip,
    figures_folder,
    show_tables,
)
from companion.pages.start_here import (
    bootstrap_panels,
    lcs_panel,
    repetition_panel,
    resampled,
)
from companion.pages.steps import decoding_frames, pointer_steps
from companion.tasks.stories import (
    CONFIG,
    SUMMARY,
    TEXT,
    VOCABULARY,
    learned,
    story_of,
    unseen_stories,
)
from lib.data.batch import in_vocabulary, make_batch
from lib.data.corpus import load_corpus
from lib.data.vocabulary import BOS, EOS, PAD
from lib.decoding.config import DECODINGS, DecodeConfig
from lib.decoding.search import beam_search
from lib.evaluation.baselines import lexrank
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.rouge import rouge
from lib.evaluation.scores import cut
from lib.system.files import project_root, trained_folder

figures = PageFigures(figures_folder())
checks = Checks()
show_tables()

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
## What does such a summary look like?

Here is a real article, what its authors say it is about, and what three programs say.
"""

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
    ("the article", f"{paper.title} (Garcia-Agundez and others 2021, CC BY 4.0)"),
    ("its abstract", " ".join(paper.summary)),
    ("Lead", " ".join(paper.sentences[:2])),
    ("LexRank", " ".join(lexrank(paper.sentences, 60))),
    ("Mem2Mem", clip(" ".join(run.readable(paper, mem2mem)), 62)),
])  # fmt: skip

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
**Lead** takes the first sentences. **LexRank** takes the most central ones, those that are similar to many others. Both are **extractive**: they choose sentences, learn nothing, and say nothing that the article does not say.

**Mem2Mem**, one of the four papers' models, is **abstractive**: it writes word by word, as the authors did. Its first sentence is copied from the article, word for word. The second sounds like an abstract and is wrong. It joins the participants and the public data of the article, which have nothing to do with each other. So do not rely on what such a model writes. The other pages show more of these mistakes.

## How does it write a word that it has never seen?

Real texts are too long to look into. So we make up a small world. A text has three sentences. In one of them somebody did something to somebody; in the others an animal sleeps, runs, eats or sits. The summary says who did what, in the active voice:

> the dog slept . **the cat was seen by the zebra .** the okapi ran . → *the zebra saw the cat .*

A model has to **find** one sentence, **reverse** it, **change** a word (*seen*, *saw*) and leave out the rest. A real summarizer has to do all of this, too.

The model's vocabulary has 27 symbols, and only three animals are among them. The ten others, *zebra* too, are all the same symbol to it: [UNK], *unknown*.

Two models learn from 9,600 such texts. The **plain** one can write words of its vocabulary. The **pointer-generator** can also point at a word of the text and copy it. Otherwise they are the same.

In the book you can <a href="../live/training.html">train both models yourself</a> and watch a summary become right.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
plain, pointer = (
    learned(seed, config=replace(CONFIG, copy=copies)).double()
    for copies in (False, True)
)
V, story, unseen = len(VOCABULARY), story_of(TEXT, SUMMARY), unseen_stories()
batch = make_batch([story], V)
source_words, target_words = " ".join(TEXT).split(), [*SUMMARY.split(), "[EOS]"]
all_words = [*VOCABULARY.words, *story.unknown]
N, T = len(source_words), len(target_words)
config = DecodeConfig(beam=4, min_length=1, max_length=10, forbidden=(PAD, BOS))


def with_unknown(ids):
    """Ids with every unknown word as [UNK]."""
    return in_vocabulary(torch.tensor(ids), V).tolist()


rows = {}
for name, model in {"plain": plain, "pointer-generator": pointer}.items():
    hypotheses = beam_search(model, make_batch([story, *unseen], V), config)
    of_story, *summaries = [best.ids for best, *_ in hypotheses]
    pairs = list(zip(summaries, (d.target[:-1].tolist() for d in unseen)))
    rows[name] = {
        "weights": f"{sum(p.numel() for p in model.parameters()):,}",
        "writes of our text": VOCABULARY.text(of_story, story.unknown),
        "right, of 100": sum(a == b for a, b in pairs),
        "right but for [UNK]": sum(
            with_unknown(a) == with_unknown(b) for a, b in pairs
        ),
    }
right = {name: row["right, of 100"] for name, row in rows.items()}
Prediction(
    "Both models summarize 100 new texts. How many summaries of the plain model are right to the last word?",
    ["nearly all", "about half", "those in which it knows both animals"],
    f"The plain model writes {right['plain']} of 100 right, those in which it knows both animals; elsewhere it writes [UNK]. "
    f"The pointer-generator writes {right['pointer-generator']} of 100. The last column counts [UNK] as right. There both choose the right words.",
    [pd.DataFrame.from_dict(rows, orient="index")],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So a model that can copy writes names that it has never seen. How does it do that? Step through its summary. The text is as dark as the model attends to it. Below stand the three most probable words if it generates, if it copies, and both together.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
with torch.no_grad():
    output, state = pointer.decode(batch.target_input, pointer.encode(batch))
    names = "generate", "copy", "both"
    steps = pointer_steps(pointer.pointer, output, story.target, all_words, names)
decoding_frames([sentence.split() for sentence in TEXT], steps)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Before each word the model spreads its **attention** over the text: weights that sum to 1. That is all it needs to copy: if 99% of the attention is on *zebra*, then *zebra* is the next word, whether or not it is in the vocabulary. A **switch** decides between the two ways. The verb *saw* does not stand in the text, so it must be generated; *zebra* must be copied.

The frame below holds this model. Type a text of your own, with an animal that you make up, and watch it copy. Move the switch of a step, and the rest of the summary is written again.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
LivePointer(pointer, VOCABULARY, " ".join(TEXT), config)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
*Where* the model looks is one thing, *what* it finds there another. In the next picture a row is a step of the plain model, which cannot copy.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
with torch.no_grad():
    output, _ = plain.decode(batch.target_input, plain.encode(batch))
by_word = {"rows": target_words, "columns": source_words, "ylabel": "is written"}
panel = {"title": "", "values": output.copy[0].round(decimals=3), **by_word}
caption = "Attention: where the plain model looks before each word."
drawn = figures.show(word_maps, caption, "start_attention", panels=[panel], top=1.0)
share = output.copy[0, 1, source_words.index("zebra")].item()
Prediction(
    "The plain model cannot write zebra. Where does it look at step 2, where zebra is the right word?",
    ["nowhere in particular", "at zebra", "at an animal that it knows"],
    f"It has {share:.0%} of its attention on zebra. So its attention finds the place, but it reads [UNK] there. "
    "No label showed it the place: the loss of the words was enough.",
    [drawn],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
This picture of attention is the key to all four papers. They ask what happens when the text is too long for it: Windowed attention looks at a part at a time, Read-Again reads twice, Mem2Mem stores sentences in a memory, and the hierarchical transformer lets paragraphs attend to each other.

## Why does it repeat itself?

Back to the real article. Mem2Mem has written two summaries of it, with the same weights. One is the most probable summary that **beam search** finds. (It keeps the few best beginnings of a summary, and extends them word by word.) For the other, **trigram blocking** was switched on: no three words in a row are written twice. A dot marks two equal trigrams. The diagonal compares each trigram with itself.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
panels = [
    repetition_panel(how, " ".join(summary.sentences).split())
    for how, summary in by_decoding.items()
]
caption = "Two summaries of one article: a dot where two trigrams are the same."
figures.show(lines, caption, "start_repetition", panels=panels)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Has the model learned to repeat itself, or is it the search? We can ask it to write differently. **Greedy** search takes the best word at each step. **Sampling** draws each word by its probability, as dice do. A *temperature* below 1 makes probable words even more probable.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
stored = json.loads(
    (project_root() / "figures" / "repetition_mem2mem.json").read_text("utf-8")
)
by_way = {row["change"]: row["text"] for row in stored["changes"]}
by_way = {how: text for how, text in by_way.items() if " - " not in how}
Prediction(
    "The same weights write 30 articles in each way. When do the summaries repeat no more than the authors' abstracts?",
    [
        "never: the model has learned it",
        "when words are drawn by their probability",
        "when the best word is taken",
    ],
    "When words are drawn by their probability. The lower the temperature, the more is repeated, and most under greedy search. "
    "But drawing is no remedy, because it also writes improbable words.",
    [pd.DataFrame({"repeated trigrams, percent": by_way})],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So the model's probabilities alone do not make it repeat itself. Repetition appears when a search prefers probable words. This is a lesson for every table of results: **how a model writes is not what it has learned**, and a comparison must hold the way of writing fixed. The pages show the paper's own way first, and then trigram blocking.

## What is a score?

Summaries are scored by **ROUGE**: how many words does a summary share with the reference, which a person wrote? R-1 counts single words, R-2 pairs of neighbours. R-L counts the longest series of words that both have in the same order. R-Lsum does that for each sentence of the reference.

The numbers are F1 scores in percent: 100 if both texts have the same words.
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
scorer, library = RougeScorer(["rougeL"], use_stemmer=True), {}
for name, (summary, wanted) in examples.items():
    whole = scorer.score("\n".join(wanted), "\n".join(summary))["rougeL"].fmeasure
    library[name] = [*rouge([summary], [wanted])[0], 100 * whole]
measures = ["R-1", "R-2", "R-Lsum", "R-L"]
table = pd.DataFrame.from_dict(library, orient="index", columns=measures)
false = table.loc["who and whom exchanged", "R-1"]
Prediction(
    "The reference says: The zebra saw the cat. A summary says: The cat saw the zebra. What is its R-1?",
    ["0, since it is false", "about 60", "100"],
    f"It is {false:.0f}. ROUGE counts words and does not judge truth. The last row is a real summary: there R-L is "
    f"{table.iloc[-1]['R-Lsum'] - table.iloc[-1]['R-L']:.0f} points below R-Lsum, more than most models differ. So ask which one a table means.",
    [table.round(1)],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
## When is a difference more than luck?

A score is a mean over test articles. Other articles would give another mean. The **bootstrap** imitates that: it draws as many articles from the test set, some of them twice and others not at all, and computes the mean again. After a thousand draws, 95% of the means lie in an interval. That is what brackets mean on all pages.

Two systems that learn nothing are scored on 60 articles: Lead, cut after 180 words and after 200.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
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
short, long, chosen = r1.values()
pd.DataFrame({"R-1": {name: str(interval(x, seed)) for name, x in r1.items()}})

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
difference = paired_bootstrap(short, long, seed)
panels = bootstrap_panels(short, long, ["180 words", "200 words"], seed)
caption = "2,000 draws of articles: the two means, and their difference."
drawn = figures.show(lines, caption, "start_bootstrap", panels=panels)
Prediction(
    "The intervals of the two Leads overlap by more than half. Is their difference luck?",
    ["yes", "no", "one cannot tell from 60 articles"],
    f"No, as far as a 95% interval can show. On the same articles the difference is {difference.text(2)}, which excludes 0. What makes an article hard is hard "
    f"for both: the scores have a correlation of {np.corrcoef(short, long)[0, 1]:.2f}, and what they share cancels. "
    "Drawn for each system by itself (unpaired), the same articles could not show it.",
    [drawn],
)

# %% [markdown] slideshow={"slide_type": "subslide"}
r"""
So differences are **paired**: both systems are scored on the same articles, and the articles are drawn together. The example shows one thing more. Twenty more words are worth a point of R-1, for a system that has learned nothing. That is why the pages compare at equal length, and with chance.

An interval over articles says nothing of another training run. For that the pages train with several seeds.

## What to take home

* **A summarizer looks, and copies.** In this small world attention finds the next word in the text. The switch sends a word that is in no vocabulary from there into the summary.
* **How a model writes is not what it has learned.** The same weights repeat themselves in beam search, and not when words are drawn.
* **A score counts words; a difference needs an interval.** Compare on the same articles, at one length, and with chance.

**You can stop here.** Next: [windowed attention](windowed.ipynb), the model of this page plus one idea. Or [Read-Again](read_again.ipynb), if you wonder what becomes of [UNK] when it is fed back; [Mem2Mem](mem2mem.ipynb), the model of the first table; [hierarchical transformers](hierarchical_transformer.ipynb), if you know transformers. Later: [all four compared](compare.ipynb), and [what they compare themselves with](baselines.ipynb).
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 1. Build it

Now the same with equations and code: a model that attends and copies, how it learns, how it writes, how it is scored. Each short function does what an equation says, for one text and without padding; the library `lib` does the same for batches. A ✓ behind an equation's number says that both give the same numbers in double precision. If they did not, the page would stop.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("start_here")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary><b>Symbols</b></summary>

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

## Reading, and one vector that is too small

The **encoder** goes over the words $x_1,\dots,x_N$ of the text forwards and backwards. $E[w]$ is the embedding of a word. The state $h_i$, of width $d$, knows word $i$ and what stands around it:

$$h_1,\dots,h_N=\mathrm{BiGRU}\big(E[x_1],\dots,E[x_N]\big)\tag{1}$$

The **decoder** goes over the words $y_1,\dots,y_T$ of the summary, of which the last is [EOS], the end; $y_0$ is [BOS], the beginning. It starts from the last states of the encoder. Its state $s_t$ has read what was written so far:

$$s_0=W_b[\overrightarrow h_N;\overleftarrow h_1]+b_b,\qquad s_t=\mathrm{GRU}\big(E[y_{t-1}],\,s_{t-1}\big)\tag{2}$$

($W$, $w$, $b$ and $v$ are weights; $[a;b]$ is two vectors side by side.) At first this was all there was. But then the whole text has to pass through the one vector $s_0$.

## Attention: look back at every step

Bahdanau, Cho and Bengio (2015) let the decoder look back. Each state of the encoder gets a **score** $a_{ti}$: how well does it fit the decoder's state? A softmax makes **weights** $\alpha_{ti}$ of the scores, and the weighted mean of the states is the **context** $c_t$:

$$a_{ti}=v^\top\tanh\big(W_h h_i+W_s s_t\big)\tag{3}$$

$$\alpha_{ti}=\frac{\exp a_{ti}}{\sum_{j=1}^N\exp a_{tj}}\tag{4}$$

$$c_t=\sum_{i=1}^N\alpha_{ti}\,h_i\tag{5}$$

State and context decide on the next word. The features $f_t$ are narrow, because the last layer has a row for each word of the vocabulary:

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
## Copying: the attention is a distribution, too

At *zebra* the plain model looks at the right word and has to write [UNK]. A larger vocabulary does not solve this: there is always another name, and a model learns little about a word that it has seen twice. The **pointer-generator** (See, Liu and Manning 2017) uses the attention as a second distribution over words. A word gets the weights of all places where it stands:

$$P_c(w)=\sum_{i:\,x_i=w}\alpha_{ti}\tag{7}$$

The **switch** $p_t$ is the probability that step $t$ generates ($\sigma$ is the sigmoid):

$$p_t=\sigma\big(w_c^\top c_t+w_s^\top s_t+w_x^\top E[y_{t-1}]+b_p\big)\tag{8}$$

$$P(w)=p_t\,P_g(w)+(1-p_t)\,P_c(w)\tag{9}$$

$P$ is over the 27 symbols *and* the unknown words of this text. Those get **extended ids**: 27 is *zebra* here, and may be *lynx* in the next text. A copied unknown word is fed back as [UNK], because the embedding table has no row for it.
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

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
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

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Columns are the 27 symbols and, at the right, this text's own two words. The switch is at 0 for the words that are copied and at 1 for those that are generated. Where it is at 0, $P_g$ has no effect, and it says anything. **A part that nothing depends on is free to say anything**, so do not read meaning into it.

## Learning: the reference is fed

Training makes the reference probable. The loss is the mean of $-\log P$ over its words, in **nats** a word. Losing 0.7 nats halves a word's probability.

$$\mathcal L=-\frac1T\sum_{t=1}^T\log P\big(y_t\mid y_1,\dots,y_{t-1},\,x\big)\tag{10}$$

Mind the condition: whatever the model would have written at step $t-1$, it is fed the reference's word. This is **teacher forcing**. All inputs are known in advance, so one call of the decoder computes all steps.
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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
losses = forced_losses(pointer, batch)
checks.close(
    losses.mean(), pointer.loss(batch)["loss"], "(10)", "step by step, and in one call"
)
checks.line(
    "-log P of the words: "
    + ", ".join(
        f"{word} {loss:.4f}" for word, loss in zip(target_words, losses.tolist())
    )
    + f"; the loss is their mean, {losses.mean():.4f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The recurrent models learn with Adam at one rate. Transformers usually get a rate that rises for $k_0$ steps of **warm-up** and then falls (Vaswani and others 2017), with a factor $\eta$ and the model's width $d$:

$$\eta_k=\eta\,d^{-1/2}\cdot\min\big(k^{-1/2},\ k\,k_0^{-3/2}\big)\tag{11}$$

## Writing: a search

There are more summaries than can be listed, and a probable one has to be found. **Greedy search** takes the best word at every step. **Beam search** keeps the $K$ best **hypotheses**, beginnings of summaries. Each is extended by every word, and the best $K$ of all extensions go on. Here is a made-up model whose summaries have two words, with $K=2$:
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
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

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Greedy search takes *zebra* (0.50) and can only come to 0.30. With two hypotheses *cat* stays, and $0.4\cdot0.9=0.36$ is found. *dog* was dropped: a beam can miss the best summary, too.

Hypotheses of different lengths need a rule. $\log P$ prefers the shorter of two, since each word multiplies by less than 1. The **length penalty** $\ell$ divides this preference out. For $n$ symbols, [EOS] included, `lib` ranks by

$$\mathrm{rank}=\frac{\log P}{\ell(n)},\qquad \ell(n)=\Big(\frac{n+o}{1+o}\Big)^{\lambda}\tag{12}$$

With `length_penalty` $\lambda=1$ and `length_offset` $o=0$ this is the mean $\log P$ of a symbol, the default here. The hierarchical transformer has $\lambda=0.4$ and $o=5$ (Wu and others 2016).
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

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Repetition, and a memory of where one has looked

What Figure 2 counts is the share of trigrams that have occurred before: $\mathrm{repeated}=1-\text{different trigrams}/\text{trigrams}$ (13). See, Liu and Manning's remedy is to tell the attention where it has been. The **coverage** of a source word is the attention that it has had so far. It enters the score (3) as one more term:

$$cov_{ti}=\sum_{t'<t}\alpha_{t'i}\tag{14}$$

$$a_{ti}=v^\top\tanh\big(W_h h_i+W_s s_t+w_{cov}\,cov_{ti}\big)\tag{15}$$

A loss can also count the attention that goes where attention has been before:

$$\mathcal L^{(cov)}_t=\sum_{i=1}^N\min\big(\alpha_{ti},\ cov_{ti}\big)\tag{16}$$

Mem2Mem has (15) without (16), and so has the pointer-generator of this page.
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

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Coverage *can* keep the model from looking twice; nothing forces it to. When this one writes *saw*, it looks again at the *the* before *zebra*. The state there has read *the cat was seen by the* from the left and *zebra* from the right. **A weight points at a state, not at a word.**

## ROUGE counts shared words

Both texts are lower-cased and lose their punctuation, and words are cut to their stem. Then **ROUGE-n** counts the n-grams that both have, each by the smaller of its two counts $\#$. **Precision** $\pi$ is the hits as a share of the summary's n-grams, **recall** $\rho$ as a share of the reference's; tables show $F_1$:

$$\mathrm{hits}_n=\sum_{g}\min\big(\#_{\text{summary}}(g),\ \#_{\text{reference}}(g)\big)\tag{17}$$

$$F_1=\frac{2\,\pi\rho}{\pi+\rho}\tag{18}$$

**By hand.** *the cat saw the zebra* for the reference *the zebra saw the cat*: all five words are shared, so R-1 is 100. Of the four pairs *the cat, cat saw, saw the, the zebra* three stand in the reference. So $\pi=\rho=3/4$, and R-2 is 75.
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


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**ROUGE-L** takes the **longest common subsequence**: the longest series of words that both texts contain in the same order, with anything between them. Its length follows from those of prefixes:

$$L_{ij}=\begin{cases}L_{i-1,j-1}+1&\text{if }u_i=u'_j\\ \max(L_{i-1,j},\,L_{i,j-1})&\text{otherwise}\end{cases}\tag{19}$$
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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
by_hand = [["the cat saw the zebra"], ["the zebra saw the cat"]]
summary, reference = (texts[0].split() for texts in by_hand)
caption = "The longest common subsequence: L of all prefixes, and a way back from the last number; dark: a shared word."
panel = lcs_panel(lcs_lengths(reference, summary), reference, summary)
figures.show(word_maps, caption, "start_lcs", panels=[panel], zeros=True)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
The last number is 3: *the saw the*. So $\pi=\rho=3/5$, and R-L is 60. One sequence for a whole text is hard on a summary that says the right things in another order. **ROUGE-Lsum** treats each sentence of the reference by itself. A word is a hit when it is in the longest common subsequence with *any* sentence of the summary:

$$\mathrm{hits}_{Lsum}=\sum_{r\in\text{reference}}\Big|\bigcup_{c\in\text{summary}}\mathrm{LCS}(r,c)\Big|\tag{20}$$
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


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
page = [
    [*(rouge_n(*pair, n) for n in (1, 2)), rouge_lsum(*pair), rouge_l(*pair)]
    for pair in examples.values()
]
checks.close(torch.tensor(np.array(page)), torch.tensor(table.values), "(17)-(20)")
checks.line(
    f"The example by hand: R-1 {rouge_n(*by_hand, 1):.0f}, R-2 {rouge_n(*by_hand, 2):.0f}, R-L {rouge_l(*by_hand):.0f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Most tables of CNN/DailyMail, arXiv and PubMed mean R-Lsum. The pages do, too, unless they say R-L.

## Intervals

From the $D$ articles the bootstrap draws $D$, with replacement, and takes the mean of their scores $m_i$. It does this $B$ times. The interval goes from the 2.5% quantile $q$ of these means to the 97.5% quantile:

$$\Big[\,q_{2.5},\ q_{97.5}\Big]\ \text{of}\ \bar m_b=\frac1D\sum_{j=1}^D m_{i_{bj}},\ i_{bj}\sim\mathrm{Uniform}\{1,\dots,D\},\ b\le B\tag{21}$$

The **paired bootstrap** (Koehn 2004) draws articles once and takes the difference of two systems on them. $p_{boot}$ is twice the share of draws that contradict the difference:

$$\begin{gathered}\Delta_b=\frac1D\sum_{j=1}^D\big(m'_{i_{bj}}-m_{i_{bj}}\big)\\
p_{boot}=\min\Big(1,\ 2\,\frac{\#\{\Delta_b\le0\}}B,\ 2\,\frac{\#\{\Delta_b\ge0\}}B\Big)\end{gathered}\tag{22}$$
"""


# %% slideshow={"slide_type": "skip"}
def resampled_means(values, resamples, seed):
    """(21): the mean of each resample of documents, [resamples]."""
    size = resamples, len(values)
    drawn = np.random.default_rng(seed).integers(0, len(values), size)
    return values[drawn].mean(1)


# %% slideshow={"slide_type": "skip"}
def paired_differences(first, second, resamples, seed):
    """(22): mean difference of each resample, and p."""
    differences = resampled_means(second - first, resamples, seed)
    worse, better = (differences <= 0).mean(), (differences >= 0).mean()
    return differences, min(1.0, 2 * min(worse, better))


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
for name, scores in r1.items():
    library = interval(scores, seed)
    means = resampled_means(scores, 1000, seed)
    bounds = torch.tensor([library.low, library.high])
    checks.close(torch.tensor(np.percentile(means, [2.5, 97.5])), bounds, "(21)", name)
rows = {}
for name, a, b in (
    ("Lead, 200 - 180 words", short, long),
    ("LexRank - Lead", long, chosen),
):
    differences, p_boot = paired_differences(a, b, 2000, seed)
    found = torch.tensor([*np.percentile(differences, [2.5, 97.5]), p_boot])
    library = paired_bootstrap(a, b, seed)
    bounds = torch.tensor([library.low, library.high, library.p])
    checks.close(found, bounds, "(22)", name)
    apart = np.percentile(resampled(b, seed + 1) - resampled(a, seed + 2), [2.5, 97.5])
    rows[name] = {
        "difference, paired": library.text(2),
        "p_boot": f"{p_boot:.3f}" if p_boot else f"< {2 / len(differences):.3f}",
        "unpaired": "[{:+.2f}, {:+.2f}]".format(*apart),
        "correlation": f"{np.corrcoef(a, b)[0, 1]:+.2f}",
    }
pd.DataFrame.from_dict(rows, orient="index")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
error = 1.96 * short.std() / len(short) ** 0.5
checks.line(
    f"By hand, roughly: ± 1.96 · {short.std():.1f} / √{len(short)} = ± {error:.2f} for Lead with 180 words."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
For LexRank and Lead pairing changes little, because their scores on an article have little to do with each other. Pairing costs nothing, so it is always done.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
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
| beam | the hypotheses with which a search goes on |
| bootstrap | drawing the test documents again, with replacement: (21), (22) |
| [BOS], [EOS], [PAD], [UNK] | beginning, end, filling of shorter rows in a batch, a word outside the vocabulary |
| context | the weighted mean of states that attention gives: (5) |
| coverage | the attention that a source word has had so far: (14) |
| exposure bias | in training a model reads references, in use its own words |
| extended id | a number after the vocabulary's for a text's own unknown word |
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
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. Your own model

Write the four parts that make a pointer-generator, for whole batches. When all four are right, they are put into a model. It learns from the stories of this page in a few seconds, and you see it write. Hints and solutions are folded. `make class` makes notebooks of this part and the next for students and for their teachers (`docs/teaching.md`). Both need nothing from above but the cell that follows.
"""

# %% slideshow={"slide_type": "skip"}
import numpy as np
import torch

from companion.exercises.start_here import check, own_model, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**1.** *Attend.* The weights (3), (4) of every word of every text of a batch, for all steps. Words of padding get none. (medium, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def attend(queries, keys, v, mask):
    """Weights [B, T, N] of queries W_s s [B, T, A] over keys W_h h [B, N, A]; v [A].

    mask [B, N] is true for the words that a text has.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, attend)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Give queries and keys one more axis each, so that their sum is [B, T, N, A]. Scores of padding become minus infinity before the softmax.

</details>
<details><summary>Solution</summary>

```python
def attend(queries, keys, v, mask):
    scores = torch.tanh(queries[:, :, None] + keys[:, None]) @ v
    return scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
```

The library computes the same in parts, so that the sum with four axes never stands in memory whole.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** *Copy.* The distribution (7) over vocabulary and unknown words. (medium, core, 10 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def copy_words(alpha, extended, size):
    """Weights [B, T, N] and extended ids [B, N] in; P_c [B, T, size] out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, copy_words)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

A word can stand in a text twice: its weights are added. Look at `torch.Tensor.scatter_add`.

</details>
<details><summary>Solution</summary>

```python
def copy_words(alpha, extended, size):
    P_c = alpha.new_zeros(*alpha.shape[:2], size)
    return P_c.scatter_add(2, extended[:, None].expand_as(alpha), alpha)
```

`P_c[..., extended] += alpha` would keep only the last of two weights.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** *Mix.* Generate or copy (9). (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def mix(p, P_g, P_c):
    """Switch [B, T], P_g [B, T, V], P_c [B, T, size] in; P [B, T, size] out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, mix)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Solution</summary>

```python
def mix(p, P_g, P_c):
    P_g = torch.nn.functional.pad(P_g, (0, P_c.shape[2] - P_g.shape[2]))
    return p[..., None] * P_g + (1 - p[..., None]) * P_c
```

The vocabulary's distribution is 0 at the words that the vocabulary lacks.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** *Learn.* The loss (10): the mean over the words of each summary, then over the batch. (easy, core, 5 minutes; 1 point)
"""


# %% slideshow={"slide_type": "skip"}
def loss_of(P, target, mask):
    """P [B, T, size], target [B, T] extended ids, mask [B, T] true for words."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, loss_of)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

`gather` takes the probability of each target. Padding must not count.

</details>
<details><summary>Solution</summary>

```python
def loss_of(P, target, mask):
    log_p = P.gather(2, target[..., None])[..., 0].clamp_min(1e-30).log() * mask
    return -(log_p.sum(1) / mask.sum(1)).mean()
```

Long and short summaries count alike. The sum over all words of a batch, divided by their number, would be another loss.

</details>
"""

# %% slideshow={"slide_type": "skip"}
own_model(attend, copy_words, mix, loss_of)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 3. Exercises

Five more. Write a function instead of `raise NotImplementedError`, run its cell and then the check below it. A check says how many cases are right and shows the first wrong one.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** *Find the bug.* This beam search compares hypotheses by $\log P$ itself, with $\lambda=0$ in (12). `next_words` says which words can follow a list of words, with their probabilities; nothing follows `"[EOS]"`. No summary has more than `most` symbols.

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

Which summaries can it never return? Write it right. (hard, core, 15 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def best_of_beam(next_words, K, most):
    """next_words(["the"]) may be {"cat": 0.7, "[EOS]": 0.3}; K: hypotheses in a beam.

    Returns the words of the best summary that the beam finds, "[EOS]" included.
    """
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, best_of_beam)

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
**6.** An attention has $T$ steps over a text of $N$ words. Derive the largest and the smallest value that the coverage loss (16), summed over all steps, can have. Which attention has the largest, and which one the smallest? (medium, extra, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def extremes_of_coverage_loss(T, N):
    """Two whole numbers in, two out: the largest and the smallest sum."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, extremes_of_coverage_loss)

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
**7.** Let $q$ be the score whose sigmoid is the switch $p$ (8). Derive $\partial\log P(w)/\partial q$ from (9), in $p$ and the two probabilities of $w$. When does a word of the reference push the switch towards copying? (medium, core, 10 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def push_on_the_switch(p, P_g, P_c):
    """The switch, and P_g and P_c of the word: three numbers in, one out."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, push_on_the_switch)

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
**8.** Two systems summarized the same 60 papers as above. The scores of the first have a standard deviation of 8 points over papers. The second is about one point better on every paper (standard deviation of the differences: 1). There are two intervals of the difference of the means: the paired one (22), and one for which the papers of each system are drawn by themselves (21). Which of them excludes 0?

Then somebody sorts the second system's scores by mistake before the comparison. Which of the two excludes 0 now? (easy, core, 5 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def shown_by_intervals():
    """Four truth values: paired, unpaired; the same with sorted scores."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, shown_by_intervals)

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
**9.** In the planted task of `companion.tasks.synthetic` a text has three sentences of random words, one of them begins with a mark, and the summary is the rest of that sentence. All these words are now **outside** the vocabulary. A plain model and a pointer-generator train for 30 steps. Which of the two has the smaller loss (10) at the end? And which one gives the summary's own words the larger probability? (medium, core, 5 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss_and_better_summary():
    """Two names, "plain" or "pointer": of the smaller loss, of the better summary."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(9, smaller_loss_and_better_summary)

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
**To go on with, without a check.** Let `companion.tasks.stories.tell` put two sentences that say who did what into a text, with the summary of the first of them only. What does the model have to know that it did not have to know before? Train both models again and look.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Your corpus

This page reads none. With the parameter `dataset`, [the comparison](compare.ipynb) and the page of each paper make a report on your documents.

# Sources

Bahdanau, Cho, Bengio: *Neural Machine Translation by Jointly Learning to Align and Translate*, ICLR 2015. See, Liu, Manning: *Get To The Point: Summarization with Pointer-Generator Networks*, ACL 2017. Vaswani and others: *Attention Is All You
Need*, NeurIPS 2017. Wu and others: *Google's Neural Machine Translation System*, 2016. Paulus, Xiong, Socher: *A Deep Reinforced Model for Abstractive Summarization*, ICLR 2018. Lin: *ROUGE: A Package for Automatic Evaluation of Summaries*, 2004. Koehn:
*Statistical Significance Tests for Machine Translation Evaluation*, EMNLP 2004. Erkan, Radev: *LexRank*, JAIR 2004.
"""
