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

*Read-Again: Wenyuan Zeng, Wenjie Luo, Sanja Fidler and Raquel Urtasun, 2016, [arXiv:1611.03382](https://arxiv.org/abs/1611.03382). 25 minutes, no code. You need attention, copying and ROUGE ([Start here](start_here.ipynb)).*
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

from companion.claims.records import claims_of, effect_of
from companion.claims.text import bets_table, evidence_table
from companion.pages.checks import Checks
from companion.pages.choice import choose, compare_means
from companion.pages.diagrams import show_model
from companion.pages.dispatches import made_up_dispatches
from companion.pages.figures import interval_bars, lines, shaded_words, word_maps
from companion.pages.measured import summary_table, task_results
from companion.pages.read_again import (
    check_losses, check_states, check_step, copying_frames, embeddings, gates, writing_weights,
)  # fmt: skip
from companion.pages.runs import loss_figure, run_facts
from companion.pages.shown import PageFigures, Prediction, figures_folder, show_tables
from companion.results.kept import kept_table
from companion.results.tables import PAGE_RESULTS
from companion.results.text import table_frame
from companion.studies.importance import EQUAL
from companion.studies.word_dependence import interaction, reach
from companion.tasks.short_news import (
    RATE, SIX, WRITTEN, dispatch, dispatch_batches, dispatches, reader, share_right,
)  # fmt: skip
from companion.tasks.task import greedy_words, learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, UNK
from lib.decoding.search import DecodeConfig, beam_search, summarize
from lib.evaluation.interventions import log_probs
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.system.files import project_root, work_folder, write_whole

# a name or folder that cannot be read ends the page here
choice = choose(
    "read_again", dataset, preset, variant, steps, seed, run, *("docstrings",) * 2
)
figures, checks = PageFigures(figures_folder()), Checks()
show_tables()


def saved(name):
    """Results of a file in `figures`, by the name of the change."""
    path = project_root() / "figures" / f"{name}.json"
    return {
        row["change"]: row for row in json.loads(path.read_text("utf-8"))["changes"]
    }


def bar(row, scale=1):
    return [scale * row[name] for name in ("mean", "low", "high")]


def claim_bar(name, setting=0):
    found = effect_of(
        {c.id: c for c in claims_of("read_again")}[name].settings[setting]
    )
    return [found.mean, found.low, found.high]


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.box

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
summarizer, vocabulary = trained.model, trained.vocabulary
documents = made_up_dispatches() if choice.on_sample else choice.documents
if choice.on_sample:  # for others to read, as the figure of importance below
    records = [
        {"summary": d.summary[0], "document": " ".join(d.sentences)} for d in documents
    ]
    write_whole(
        work_folder() / "dispatches" / "test.jsonl",
        "".join(json.dumps(r) + "\n" for r in records),
    )
test = trained.encode(documents)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
## How does a new name get into a headline?

A model writes headlines for the dispatches of a news agency. A company that was founded yesterday is in no vocabulary: not in the one that the model reads with, and not in the one that it writes with. Its name should be in the headline all the same.

Read-Again rests on two ideas. The first is about reading. When a recurrent encoder reads a word, its state depends on that word and on those before it. People read a text, and then read it again, knowing what it is about. So does Read-Again. The first read ends in a vector of the whole text, and this vector steers a **second read**.

The other idea is about writing. The decoder chooses from two lists at once: the words of a small vocabulary, and the places of the text. To choose a place is to **copy** the word that occurs there. If every rare word can be copied, a small vocabulary is enough, and a small vocabulary is fast.

So two sets of weights lie over the words of the text. With one the decoder *attends*: it mixes the states of the words into its own state. With the other it *copies*. In many models these are the same numbers. Here they are not.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"} tags=["remove-input"]
copies = isinstance(summarizer, ReadAgain) and summarizer.config.copy
long_enough = [i for i in range(len(test)) if len(test[i].source) > 25] or [0]
example = test[2 if choice.on_sample else long_enough[0]]
((best, *_),) = beam_search(
    summarizer, make_batch([example], len(vocabulary)), trained.decode
)
example_words = [*vocabulary.words, *example.unknown]
copying_frames(summarizer, example, [*best.ids, EOS], example_words) if copies else None

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
seen = ""
if copies:
    attended, _, copied = writing_weights(summarizer, example, [*best.ids, EOS])
    first = [
        example_words[example.source[weights[0].argmax()]]
        for weights in (attended, copied)
    ]
    seen = (
        f"At step 1 the decoder attends most to *{first[0]}*, with a weight of {attended[0].max():.2f}."
        f" It copies *{first[1]}*, with a probability of {copied[0].max():.2f}."
    )
Markdown(
    f"**A headline, word by word.** The darker a word, the larger its weight. {seen} In brackets: how much of the"
    " probability copying has, and how much generating."
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
choice.about_sample(r"""
Kestrel Petroleum was invented for this page. The model has learned from 13,898 dispatches of Reuters, in seven minutes on one core.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What did the authors find?

They trained on millions of pairs of a sentence and a headline (Gigaword). This is R-1 of their Table 1, without its second half on other systems.

| encoder | 69,000 words, no copying | 15,000 words, no copying | 15,000 words, copying |
|---|---|---|---|
| GRU, reads once | 26.79 | 24.67 | |
| GRU, reads again | 27.26 | 25.04 | 27.41 |
| LSTM, reads again | 27.82 | 25.30 | 27.37 |
| LSTM, reads two sentences again | | | 27.96 |

A second read adds 0.4 to 0.5 points, copying 2.1 to 2.4. With copying, 15,000 words do nearly as well as 69,000. And they are three times as fast.

Gigaword is not free. We trained the same rows on the 13,898 dispatches, with three seeds, and tested them on 1,106 later ones. The vocabularies are smaller as well: 2,500 words instead of 15,000, and all 9,873 instead of 69,000. So compare the gains, not the scores.

**Place your bets.** Do these claims hold in models that a laptop can train? Choose *holds*, *fails* or *cannot tell*. The last means that the data allow both the paper's effect and none.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
BETS = (
    "copying",
    "vocabulary",
    "context-embedding",
    "again",
    "bidirectional",
    "important-words",
)
Markdown(bets_table("read_again", *BETS))

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Which weights find the name?

We start where the answer is known. A toy dispatch has two sentences: an offer, and the answer of a board. The decoder knows three words: *to*, *buy* and *rejects*. So every name in a headline must be copied. Half of the names are unknown to the encoder as well.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
toys = [
    learn(reader(seed + i, "read-again gru"), dispatch_batches(seed + i), RATE)
    for i in range(3)
]
six, unseen = [dispatch(*parts) for parts in SIX], dispatches(500, 10**7 + seed)
(written,) = greedy_words(toys[0], six[:1], max_length=6, min_length=1)
copying_frames(toys[0], six[0], [*written, EOS], [*WRITTEN.words, *six[0].unknown])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
Markdown(
    f"**The toy at work.** It is a GRU that reads again, with 12 numbers a state. After 150 batches it writes"
    f" {share_right(toys[0], unseen):.0%} of 500 unseen headlines without a mistake."
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
To learn what a part does, we change it. We make one set of weights equal for all words of the text, and leave the other as it is. Then we measure how much less probable the right headline becomes, in **nats** a word. Losing 0.7 nats halves a word's probability. We count a loss below 0.05 nats as no effect.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
lost = {
    name: [
        (log_probs(toy, unseen) - log_probs(toy, unseen, change)).mean() for toy in toys
    ]
    for name, change in EQUAL.items()
}
real = saved("copying_read_again_reuters")
series = {
    "toy, three seeds": {
        name: [np.mean(v), min(v), max(v)] for name, v in lost.items()
    },
    "shipped model, 400 dispatches": {name: bar(real[name]) for name in EQUAL},
}
caption = "What equal weights cost, in nats a word: means with the range of seeds, or 95% intervals over dispatches."
Prediction(
    "Which change costs more: equal attention, or equal copying?",
    [
        "Equal attention: the decoder must attend to what it copies",
        "Equal copying",
        "Both cost about the same",
    ],
    f"Equal copying costs the toy {np.mean(lost['copying equal']):.2f} nats a word, and equal attention"
    f" {np.mean(lost['attention equal']):.2f}. In the shipped model it is {real['copying equal']['mean']:.2f} and"
    f" {real['attention equal']['mean']:.2f}. There the two prefer different words at"
    f" {real['largest word differs']['mean']:.0f} of 100 steps.",
    [figures.show(interval_bars, caption, series=series, xlabel="nats lost a word")],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So **attention is not what is copied.** The copy scores find the name. They have a key of their own for each place of the text. A map of attention would not show which word is written next, and in the shipped model attention hardly matters at all.

## What is copying worth?

Now to the scores. In the paper copying adds 2.4 points of R-1. The decoder's vocabulary matters as well: without copying, its largest one is 13.4 points better than its smallest.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
rows = {
    "copying, GRU": (claim_bar("copying"), 2.37),
    "copying, LSTM": (claim_bar("copying", 1), 2.07),
    "largest vocabulary, no copying": (claim_bar("vocabulary"), 13.43),
    "largest vocabulary, copying": (claim_bar("vocabulary-copying"), 3.68),
}
series = {
    "here": {name: here for name, (here, _) in rows.items()},
    "paper": {name: [p] * 3 for name, (_, p) in rows.items()},
}
caption = "Gains in R-1 by copying, and by the largest vocabulary instead of the smallest one; 95% intervals over dispatches and seeds."
Prediction(
    "How much does copying add to a GRU that reads again, on these dispatches?",
    ["About 2 points, as in the paper", "About 10 points", "More than 20 points"],
    f"{rows['copying, GRU'][0][0]:.1f} points. A larger vocabulary adds {rows['largest vocabulary, no copying'][0][0]:+.1f} without copying"
    f" and {rows['largest vocabulary, copying'][0][0]:+.1f} with it; both intervals include 0.",
    [figures.show(interval_bars, caption, series=series, xlabel="points of R-1")],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
A gain that is ten times the paper's measures something else. From 13,898 headlines a decoder does not learn to *generate* names, whatever its vocabulary. Without copying every model stays below 15 points, and the first eight words of the text have 29.

Much of the gain is knowing which words to choose from. A control generates, but only words of its text and 2,000 frequent ones. In Table 2's measure, recall, it has 30 points. The models that choose from all words have 6 to 10, and Read-Again has 41. So copying helps here, and the paper's contrast between vocabularies cannot be tested.

What does the decoder do with a name, once it has copied it?

## What does the decoder read after a name?

A decoder reads each word that it has written, as an embedding. *Kestrel* has no embedding. Other models put one symbol, [UNK], in the place of all such words. Read-Again makes an embedding $\mathbf p_i$ of the encoder's state at that place, that is, of the word's **context**.

The authors give an example. The embedding of *headmaster* should be close to that of *teacher*, because the decoder goes on in the same way after both. We test this with words that the model does know. We hide a word: the encoder reads [UNK] where it occurs. Then we compare the next words after $\mathbf p_i$ with those after the word's own embedding. A divergence of 0 means that they are the same.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
hidden = saved("hidden_words_read_again_reuters")
rows = {
    "its own p": "p and the word",
    "p of another hidden word": "another p and the word",
    "[UNK]": "[UNK] and the word",
}
caption = "How far the next words are from those after the hidden word itself: Jensen-Shannon divergence in thousandths of a nat, 95% intervals over 400 dispatches."
gain = bar(hidden["another p and the word - p and the word"], 1000)
Prediction(
    "A word is hidden. After which embedding are the next words most like those after the word itself?",
    [
        "After its own p, by far: half the divergence of the others",
        "After its own p, by a little",
        "There is no difference",
    ],
    "After its own p the divergence is {:.0f} thousandths, after the p of another hidden word {:.0f}, and after [UNK] {:.0f}.".format(
        *(1000 * hidden[name]["mean"] for name in rows.values())
    )
    + " The difference between the first two is {:.0f} [{:.0f}, {:.0f}].".format(*gain),
    [
        figures.show(
            interval_bars,
            caption,
            series={
                "shipped model": {
                    name: bar(hidden[key], 1000) for name, key in rows.items()
                }
            },
            xlabel="thousandths of a nat",
        )
    ],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So $\mathbf p_i$ carries a little of its word. It also helps the headline a little. With [UNK] fed back instead, the references lose 0.014 nats a word, which is too little to count. The toy learns its task with [UNK] as well.

Perhaps $\mathbf p_i$ has too many duties. It is also the key by which its place is copied. As a key it must differ from place to place; as an embedding it should be alike for similar words.

Everything so far is made of the encoder's states. What does a second read put into them?

## What can a second read do?

One read leaves out what comes later. A **bidirectional** encoder is the usual remedy: one GRU reads forwards, one backwards, and their states are placed side by side. We compare three encoders on nine words: once, bidirectional, and again. A map shows by how much the state of word $i$ moves when word $j$ is changed.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
encoders = {
    "once": "gru",
    "bidirectional": "bidirectional gru",
    "again": "read-again gru",
}
nine_words = EncodedDocument.of("nine words", range(4, 13), [9], [EOS])
maps, together = {}, {}
for name, encoder in encoders.items():
    torch.manual_seed(0)
    sizes = {"embedding": 4, "hidden": 6, "dropout": 0.0, "importance": "sigmoid"}
    nine = ReadAgain(ReadAgainConfig(13, 13, encoder=encoder, **sizes)).double()
    for parameter in nine.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    maps[name] = reach(nine, nine_words)  # |dh_i / dx_j|
    together[name] = interaction(nine, nine_words, 4, 2, 7)
top = max(values.max().item() for values in maps.values())
axes = {
    "rows": list(range(1, 10)),
    "columns": list(range(1, 10)),
    "xlabel": "word j",
    "ylabel": "state i",
}
panels = [{"title": name, "values": values, **axes} for name, values in maps.items()]
caption = "How much the state of each word (rows) depends on each word (columns): sizes of derivatives, random weights."
acting = ", ".join(f"{value:.2g} ({name})" for name, value in together.items())
Prediction(
    "Above the diagonal are later words. Which maps are empty there?",
    [
        "That of reading once only",
        "Those of reading once and bidirectionally",
        "Those of reading once and reading again",
    ],
    f"That of reading once only. But do two words also act together? In the state of word 5, the effect of word 3 may"
    f" depend on word 8. How much it does, as a mixed second derivative: {acting}.",
    [
        figures.show(
            word_maps, caption, "read_again_reach", panels=panels, top=top, label="size"
        )
    ],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
This is the authors' argument. In a bidirectional encoder of one layer the two halves never meet. So a word before and a word after cannot act together inside a state, and the decoder has to combine them. In a second read they meet.

### Does it help where it should?

Here is a task made for it: `2 b1 d3 a0 c2 3`. The two numbers give $2+3=5$, which is 1 modulo 4 and stands for kind *b* (*a* is 0). The headline is the text's word of this kind, `b1`. Whoever reads once knows the kind only when the words are over. The decoder gets nothing but the encoder's **last state**.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
solved = {
    row: [100 * share for share in measures["right"]]
    for row, measures in task_results("read_twice").items()
}
caption = "Right words of 100 unseen texts, mean and range of three seeds. Chance is 25. In the last row the decoder attends to all states."
shares = {row: f"{np.mean(v):.0f}" for row, v in solved.items()}
Prediction(
    "The decoder gets the last state only. Which encoder writes most words right?",
    [
        "Reading again, clearly",
        "Bidirectional, clearly",
        "Reading again and bidirectional about the same, reading once less",
    ],
    "Of 100 words: once {}, bidirectional {}, again {}. The ranges of the last two overlap. If the decoder attends to all states, reading once has {}.".format(
        *shares.values()
    ),
    [
        figures.show(
            interval_bars,
            caption,
            series={
                "toy": {row: [np.mean(v), min(v), max(v)] for row, v in solved.items()}
            },
            xlabel="right words of 100",
        )
    ],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
(We chose this setting after one trial run, in which reading again had every word right and the bidirectional encoder 84 of 100.)

A second read helps where everything must pass through one state. A bidirectional encoder helps as much. And a decoder that can use all states needs neither.

### Does it help with headlines?

A decoder of headlines can use all states. We compared five pairs of models that differ only in whether they read once or again: the paper's two, and three more. A sixth row compares reading again with a bidirectional encoder.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
settings = {
    "GRU, 9,873 words": ("again", 0), "GRU, 2,500 words": ("again-small", 0), "LSTM, 2,500 words": ("again-other", 0),
    "GRU, copying": ("again-other", 1), "LSTM, copying": ("again-other", 2), "again - bidirectional, GRU": ("bidirectional", 0),
}  # fmt: skip
gains = {label: claim_bar(*of) for label, of in settings.items()}
above = [label for label in list(gains)[:5] if gains[label][1] > 0]
series = {
    "here": gains,
    "paper": {"GRU, 9,873 words": [0.47] * 3, "GRU, 2,500 words": [0.37] * 3},
}
caption = "R-1 of reading again minus reading once; in the last row minus a bidirectional encoder. 95% intervals over dispatches and seeds."
Prediction(
    "Of the first five pairs, how many show a gain by the second read, an interval above 0?",
    ["All five", "Two or three", "One or none"],
    f"{len(above)} of five ({', '.join(above)}). Against the bidirectional encoder the difference is"
    " {:+.2f} [{:+.2f}, {:+.2f}].".format(*gains["again - bidirectional, GRU"]),
    [figures.show(interval_bars, caption, series=series, xlabel="points of R-1")],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
One gain in five tries is weak evidence, and its two models are far below the first eight words of the text.

Does the shipped model ignore its second read, then? No. If the second read gets zeros instead of the text's vector, the references lose 0.34 nats a word. The model **depends** on it. But a model that was trained without a second read does as well. Depending on a part is not gaining by it.

## Which words does the second read take in?

In a GRU the first read steers the second by **importance** $\alpha$: at 0 a word is passed over, at 1 it is read in full. The authors draw it as shades, in which articles are light and names are dark. This is such a picture of our model.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
figure_4 = json.loads(
    (project_root() / "figures" / "read_again_figure4.json").read_text("utf-8")
)
caption = "Mean importance of each word, in three invented dispatches; above each the headline that the model writes."
figures.show(
    shaded_words, caption, panels=figure_4["panels"][:3], label=figure_4["label"]
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
But $\alpha$ is no single number. Each word has 128 of them, one for each dimension of the state, and the shade is their mean. All means lie between 0.59 and 0.70.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
effects = saved("importance_read_again_reuters")
shares = [100 * share for share in effects["below 0.1"]["histogram"]]
panel = {
    "series": {"two seeds, 400 dispatches": [[round(0.05 + 0.1 * i, 2) for i in range(10)], shares]},
    "xlabel": "importance of a word in one dimension", "ylabel": "percent of the values", "zero": True,
}  # fmt: skip
caption = "How often importance has which value, before any mean is taken."
Prediction(
    "How are the single values distributed?",
    [
        "Nearly all are between 0.5 and 0.8",
        "Evenly from 0 to 1",
        "Almost half are close to 0 or to 1",
    ],
    f"{shares[0]:.0f}% are below 0.1 and {shares[-1]:.0f}% above 0.9. Each word is passed over in some dimensions and read in full in others.",
    [figures.show(lines, caption, "read_again_importance", panels=[panel])],
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
place, kind, used = (
    [f"{v:+.3f}" for v in bar(effects[name])]
    for name in ("first word, same word", "rarer words", "importance averaged")
)
Markdown(
    f"""The shades suggest that names and articles at the beginning are unimportant. Is it the kind of word, or its place? Compared with *the same word* at other places, the first word has less importance by {place[0].strip("-")} [{place[2].strip("-")}, {place[1].strip("-")}]. So the place counts.

At the same places, rarer words have {kind[0]} [{kind[1]}, {kind[2]}] more importance than the 50 most frequent ones. That is the authors' direction, but 2% of the range. If every word gets the mean importance of its text, the references lose {used[0].strip("+")} nats a word, less than the 0.05 that count."""
)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How did your bets turn out?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(evidence_table("read_again", *BETS))

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
[papers.md](../papers.md) explains the verdicts and has all claims; [findings and tables](../docs/papers/read_again.md) has every number. Gigaword and the paper's sizes were not tried, so a second read may still pay there.

## What to take home

* **Attention and copying are two things.** Here the name is found by the copy scores, and attention is elsewhere. Before you read a map of weights, ask what is done with them.
* **A part can be used and not be needed.** The model depends on its second read, and a model without one does as well. Only training without the part shows what it is worth.
* **A mean can hide what it is a mean of.** Importance looks the same for all words, until its dimensions are counted one by one.

**You can stop here.** The [building path](#build) derives the equations, and ends with a Read-Again of your own.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<a id="build"></a>

# 1. Build it

We build the model out of short functions, on the toy from above. The functions are written to be read: one document, no batch, no padding. A green line says that the library `lib` computes the same numbers in double precision, on a padded batch of other texts and with random weights.

The first read is PyTorch's GRU (1) to (3) or LSTM (7), and attention (12) to (14) is that of [Start here](start_here.ipynb). New are the second read (4) to (6) and (8), two sentences (9) to (11), the embedding from context (15), and copying (16) and (17). The paper prints no equation for copying and the loss; (16) to (18) are ours.

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

A second GRU with the same words would repeat the first read. It needs something that the first read did not have: the text's vector $h^1_n$. It enters through the importance of each word.

$$\alpha_i=\tanh\big(W_eh^1_i+U_eh^1_n+V_e\mathbf x_i\big)\tag{5}$$

With $\tanh$, importance may be negative, and then a state can grow without bound. The option `importance="sigmoid"` keeps it between 0 and 1; all presets but `paper` use it, and so does the toy.
"""

# %% slideshow={"slide_type": "skip"}
model, toy = toys[0].double(), six[0]
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
middle = alpha[2].sort().values
checks.line(
    f"Importance of word 3, {words[2]}, in its 12 dimensions: from {middle[0]:.2f} to {middle[-1]:.2f}, mean {middle.mean():.2f}."
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
check_step(checks, eq06_step)
step_3 = eq06_step(h2[1], *gates(x[2], h2[1], model.second_read.gru), alpha[2])
checks.close(h2[2], step_3, "(4), (6)", "the two forms are one")
checks.line(
    f"Word 3, {words[2]}, dimension 1: (4) gives {h2[2, 0]:.3f}, (6) gives {step_3[0]:.3f}."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## (8) The second read of an LSTM gets the vectors themselves

Through importance only little of the text's vector reaches a state. The LSTM has no importance. Its second read gets the word, the word's first state, and the text's vector, side by side:

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
check_states(checks, read_document)
refused = dispatch(*SIX[0][:4], False)  # another last but one word
lstm = learn(reader(seed, "read-again lstm"), dispatch_batches(seed), RATE).double()
moves = [
    (read_document(toy, one)[0][2] - read_document(refused, one)[0][2]).abs().max()
    for one in (model, lstm)
]
checks.line(
    f"If {words[-2]} becomes refuses, word {len(words) - 1}, the second state of word 3 moves by up to {moves[0]:.3f} in the toy,"
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
checks.line(
    f"Step 1: P({words[source.index(toy.target[0])]}) = {P[0, toy.target[0]]:.3f}, in the text at {source.count(toy.target[0])} place(s)."
)

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
check_losses(checks, eq18_loss)
checks.line(
    f"The toy's loss on this dispatch is {eq18_loss(toy, model):.4f} nats a word. Losses and all gradients, of six encoders:"
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
checks.table()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## How fast is a small vocabulary?

Here is the paper's Table 4 on this machine: seconds for a headline of eight words by beam search. The weights are random, which takes as long as learned ones.
"""


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
def seconds_a_headline(size, copy, repeats=5):
    """Sorted times of beam search for one headline."""
    model = ReadAgain(ReadAgainConfig(size, source_vocab_size=5_000, copy=copy))
    text = EncodedDocument.of("x", range(100, 130), [30], [5, EOS])
    batch, taken = make_batch([text], size), []
    for _ in range(repeats):
        started = time.perf_counter()
        beam_search(model, batch, DecodeConfig(beam=10, min_length=8, max_length=8))
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
published_4 = PAGE_RESULTS["read_again_table4"].published
times = [published_4[f"published, {way}"] for way in ways]
caption = (
    "Decoding time of a headline on this machine's CPU by the size of Y: the median of five times. In the paper, on a"
    f" Titan X, it is {times[0][-1]} s with 69,000 words and no copying, and {times[1][0]} s with 2,000 words and copying."
)
figures.show(lines, caption, "read_again_seconds", panels=[panel])

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## On your own corpus

With a `dataset` the page shows the shipped model on that corpus's test documents, with a `run` a run of yours, and with a `preset` it trains a model first. A `[word]` below is outside the decoder's vocabulary, so it can only have been copied.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
rows = []
for i in range(len(test)) if choice.on_sample else long_enough[:8]:
    ((best, *_),) = beam_search(
        summarizer, make_batch([test[i]], len(vocabulary)), trained.decode
    )
    texts = zip(best.ids, vocabulary.decode(best.ids, test[i].unknown))
    headline = " ".join(
        f"[{text}]" if word >= len(vocabulary) else text for word, text in texts
    )
    rows.append(
        {
            "reference": " ".join(documents[i].summary).lower(),
            "the model's headline": headline,
        }
    )
pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
choice.about_sample(r"""
Norbalt, Kestrel and Ostervik were invented, and are copied. Other things fail: Velmora becomes the United States, words are said twice, and ministers who failed to agree are "to agree".
On 1,106 test dispatches the shipped model is 13.5 points of R-1 above the first eight words of the text.
""")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
differences = None
if choice.on_sample:
    scores = (
        table_frame(kept_table("trained_read_again"))
        .drop(columns="distinct")
        .drop(index="References")
    )
else:
    written = summarize(summarizer, test, vocabulary, trained.decode, batch_size=64)
    lead = [
        [" ".join(vocabulary.decode(d.source[:8].tolist(), d.unknown))] for d in test
    ]
    systems = {"Lead (8 words)": lead, trained.config["variant"]: written}
    scores, parts = summary_table(systems, documents, trained.options, None, seed)
    differences = compare_means(
        parts, trained.config["variant"], ["Lead (8 words)"], seed
    )
scores

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
differences

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.on_sample else run_facts(trained, choice.origin(trained))

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

Hints and solutions are folded, and a check shows the first case that is wrong.

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
* [`docs/papers/read_again.md`](../docs/papers/read_again.md) maps every equation to its function in `lib`; [Baselines](baselines.ipynb) has the equations of ABS, RAS and words-lvt.
"""
