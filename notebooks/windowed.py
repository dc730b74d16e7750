# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
# Why does the window jump?

*Leon Schüller: Abstractive Summarization for Long Texts, 2019, a report with its code (`lschuell/abs-summ-long-texts`); in 2020 an article of Schüller, Wilhelm, Kreiling and Glavaš, [arXiv:2004.03324](https://arxiv.org/abs/2004.03324). 30 minutes, no code. You need attention, copying, beam search and ROUGE ([Start here](start_here.ipynb)).*
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details ontoggle="for (const frame of this.getElementsByTagName('iframe')) frame.src ||= frame.dataset.src"><summary><b>Watch the model slide over a paper</b></summary>

The model runs in your browser. Step through the words, or answer five questions about it. ([In a window of its own](../docs/live.md).)

<iframe class="live" data-src="../live/windowed.html" title="The windowed model writes an abstract in this frame"></iframe>

</details>
"""

# %% slideshow={"slide_type": "skip"} tags=["parameters"]
dataset: str = ""  # a corpus (aclsum, ...) or a folder of train, val and test files
run: str = ""  # folder of a trained run that reads it; empty: the shipped one
preset: str = ""  # train a model instead: demo (half a minute), CD_I, ..., WIKI_V
variant: str = "dynamic"  # what is trained: static, streamed, standard, ...
steps: int = 0  # training steps; 0: as many as the preset says
documents: int = 20  # test documents of the corpus that the report is about
seed: int = 0  # of the training: weights and batches
output: str = ""  # folder of the run that is trained; empty: one under runs/

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

from copy import deepcopy

import numpy as np
import torch
from IPython.display import Markdown

import lib
from companion.claims.text import evidence_table
from companion.pages import windowed as wind
from companion.pages.bets import Bets, Outcomes
from companion.pages.checks import Checks
from companion.pages.choice import choose
from companion.pages.diagrams import show_model
from companion.pages.figures import maximum_attention
from companion.pages.runs import loss_figure, unseen_papers
from companion.pages.shown import PageFigures, Prediction
from companion.pages.shown import figures_folder, show_tables
from companion.studies.marking import ALONE, FORWARD, PATH
from companion.tasks.synthetic import planted_facts
from companion.tasks.windows import LEFT_OUT, STRIDE, VOCABULARY, WINDOW
from companion.tasks.windows import learn_facts, written_for
from lib.data.batch import make_batch
from lib.data.vocabulary import BOS, SLIDE, UNK
from lib.data.corpus import load_corpus
from lib.decoding.config import DecodeConfig
from lib.system.files import trained_folder

# a name or folder that cannot be read ends the page here
choice = choose("windowed", dataset, preset, variant, steps, seed, run, documents)
reader = lib.load(trained_folder("windowed"))  # the shipped model, of the lesson
articles = unseen_papers(load_corpus("pmc-sample"), 50)
encoded = reader.encode(articles)
figures = PageFigures(figures_folder())
checks = Checks()
show_tables()
choice.banner


# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How can a model read a text of any length?

Before each word of a summary, a pointer-generator attends to all words that it has read. It usually reads the first few hundred words of an article, and never sees the rest.

Leon Schüller limits what the decoder sees. An encoder reads the whole article, but the decoder attends to one **window** of it, for example 400 words. When it has finished with the window, it writes a symbol, **→**, and the window **slides** on. The symbol is removed before anybody reads the summary. So each step looks at one window, however long the article is. A window never slides back.

How does the model learn when to slide? No reference summary contains arrows, so the author computes them. Each sentence of the reference is **linked** to the most similar sentence of the article. Wherever the links move on to a later window, an arrow is put into the reference. We call this **marking**.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
wind.marked(reader, encoded[0])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
visited = len(set(wind.linked_windows(reader, encoded[0])[0][FORWARD].tolist()))
Markdown(
    f"*Left: how each window of a real article begins. Right: the sentences of its abstract that are linked to the window.* The article: Wanigatunga and others, 2018, CC BY 4.0.\n\nThis abstract takes something from {visited} windows, in their order. A model that has learned from thousands of marked abstracts should write like this. Does it?"
)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What did the author find?

He compared windows with a standard model, which attends to all that it reads, on news (CNN/DailyMail) and instructions (WikiHow).

| corpus | model | words read | window | R-1 |
|---|---|---|---|---|
| CNN/DailyMail | standard | 400 | | 38.23 |
| CNN/DailyMail | windows | 1,160 | 400 | 37.08 |
| WikiHow | standard | 200 | | 22.84 |
| WikiHow | windows | 740 | 200 | 26.15 |
| WikiHow | standard | 400 | | 27.54 |
| WikiHow | windows | 780 | 400 | 27.23 |
| WikiHow | standard | 780 | | 29.19 |

Windows win once, where the standard model reads 200 words. The author concludes that they are "often slightly worse", but read a text of any length: he shows a summary of 18,136 words.

In the released code the window never slides during training. The code looks for the arrow among the words of the article, where it does not occur. The paper does not say whether these rows were trained with that code.

**Place your bets.** Do these claims hold in models that a laptop can train? Choose *holds*, *fails* or *cannot tell*. The last means that the data allow both the paper's effect and none.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
BETS = "any-length", "more-text", "static", "links"
Bets("windowed", BETS)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Does it work where the answer is known?

We start in a laboratory. The text below has three windows of 20 random numbers, which overlap by four. Each window has a **fact**: the four numbers after the word FACT. The summary is the facts in order, with → between them. This small model was trained when the page was built.

The underlined words are the window. The darker a word, the more attention it gets. $P_g$ is the probability of generating a word, $P_c$ of copying it, and $P$ mixes the two.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
fact_model = learn_facts("windows", 0).eval()
example = planted_facts(1, seed=7, windows=3, vocab_size=VOCABULARY)[0]
wind.fact_frames(fact_model, example)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
At step 5 the model writes → and still sees the first window. At step 6 the window has moved.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
longer = planted_facts(1, seed=3, windows=12, vocab_size=VOCABULARY)[0]
config = DecodeConfig(beam=2, max_length=72)
path = wind.largest_weights(fact_model, longer, VOCABULARY, config)
right, standard = wind.facts_right("windows", 300), wind.facts_right("standard", 12)
caption = "A summary of twelve windows. Each dot is a word of the summary, at the word of the text with the largest weight. Grey: the window. Each short line of dots is one fact."
Prediction(
    "The model learned from texts of two to six windows. Now it reads texts of 300 windows, 4,804 words. How many of the facts does it write, each in its place?",
    ["fewer than half", "about nine of ten", "all"],
    f"{right}, the mean of three seeds. The standard model, which attends to everything, writes {standard} of the facts of 12 windows.",
    [figures.show(maximum_attention, caption, "windowed_facts", **path)],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
With windows, a step on a long text is like a step on a short one. The standard model has to choose among more words than it ever saw in training, and no symbol marks the next fact. Perhaps this is why it fails.

Here each window has exactly one fact. Articles are less tidy. What happens there?
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Where do the words of a summary come from?

**Greedy search** takes the most probable symbol at each step, whether it is a word or →. We let a trained model summarize articles that it has never seen.
"""

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
It is the model that comes with this project. It was trained once, on 31,077 biomedical articles with marked references, and has 2.8 million parameters. It reads up to 1,540 words of each of 50 articles, in up to four windows of 400. It does not stop by itself, so each summary has about 240 words and symbols.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
windows = wind.Windows(reader, articles, figures, stored=True)
shown = [wind.REFERENCES, "greedy search"]
slide, word, count = windows.slide, windows.word, len(encoded)
wins = int((slide > word).sum())
Prediction(
    f"In the references, as they are marked for training, {windows.text(wind.REFERENCES)} of the words belong to the last window. What is this share under greedy search?",
    ["about a quarter", "about half", "nearly all"],
    f"{windows.text('greedy search')}. In {wins} of {count} articles the first symbol is →. The summary of the article above begins: {windows.begins} ...",
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
Brackets hold 95% intervals. Did the model learn to jump? We let it **draw**. Each symbol, word or →, is drawn with the probability that the model gives it. Weights and articles stay.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
shown += ["drawn", "beam of 4"]
Prediction(
    "All symbols are drawn. What is the share of the last window now?",
    ["nearly all", "about half", "less than a fifth"],
    f"{windows.text('drawn')}. The windows between the first and the last have {windows.text('drawn', 1)} of the words. With a beam of four, {windows.text('beam of 4')} come from the last window.",
    [windows.bars(*shown)],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
So the model did not learn to jump. It gives its probability to all windows, and writes even fewer words from the last one than the references do. The **search** jumps. How can a search for probable summaries go where the model seldom goes?
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How probable is a slide?

Look at the very first step, before any word.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
first = [f"{p:.2f}" for p in (slide.mean(), word.mean(), 1 - slide.mean())]
Prediction(
    f"In how many of {count} articles is → more probable than all words together?",
    [f"in {wins}", f"in about {wins // 2}", "in a few"],
    f"In {int((slide > 0.5).sum())}. In {wins} it is more probable than every single word. On average → has {first[0]}, the most probable word has {first[1]}, and all words together have {first[2]}.",
    [windows.probabilities()],
)

# %% [markdown] slideshow={"slide_type": "notes"}
r"""
There is one arrow, but there are fifteen thousand words. Where a sentence begins, many words are possible, and each gets a small share. So the probability of *staying* is divided among them, and the probability of *sliding* is not. Greedy search compares → with each word separately, and → wins although staying is more probable.

An unlucky word can be followed by better ones, but a slide cannot be taken back. After it the next sentence has to begin, → can win again, and soon the window is at the end.

If this explanation is right, one change of the search should help: decide first *whether* to slide, and only then *which* word to write.
"""

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What if it decides first?

This search is our addition. Imagine a coin at each step, which says "slide" with the probability of →. Thrown again and again, such coins slide sometimes earlier and sometimes later. The search slides at the median of these times. For this it multiplies the probabilities of staying since the last slide, and slides as soon as the product is below one half. Otherwise it writes a word, and → is barred. We call this rule `median`. The weights stay the same.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
shown += ["decided first"]
Prediction(
    f"A beam of four writes {windows.text('beam of 4', 1)} of the words in the windows between the first and the last. What is this share if slides are decided first?",
    ["the same", "two or three times as much", "nearly all"],
    f"{windows.text(shown[-1], 1)}. Under greedy search it goes from {windows.text('greedy search', 1)} to {windows.text('decided first, greedy', 1)}, and the share of the last window from {windows.text('greedy search')} to {windows.text('decided first, greedy')}.",
    [windows.bars(*shown, "decided first, greedy")],
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
gains = wind.gains_of_median()
Markdown(f"""
Nothing but the decision has changed, so whatever changed is its effect. Does R-1 rise, too? On 200 articles of the shipped model's own corpus it changes by {gains[0]} with plain beam search. With trigram blocking it changes by {gains[1]}.

In two smaller models, with three and five seeds, it changes by {gains[2]} and {gains[3]}. So deciding first uses more of the text, but it is no general gain in R-1. What else pushes the window on?
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## Who taught it to slide?

A program has made the marks that the model learned from. How good are they?

For some sentences we know the answer. They share five words in a row with exactly one sentence of their article, so they were probably copied from there. Is the most similar sentence in the same window?

Then comes a rule. A window cannot slide back, so a mark may not either. If a sentence is linked to an earlier window than one before it, it gets the later window.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
known, moved, tables = windows.marks()
right = windows.right
Prediction(
    f"{known} sentences have a known source. The most similar sentence is in the right window for {right('embeddings', ALONE)} of them, and a random sentence for {right('random', ALONE)}. What does the rule do to the {right('embeddings', ALONE)}?",
    ["it corrects wrong links, so they rise", "nothing", "they fall"],
    f"{right('embeddings', FORWARD)} are right after the rule, and the share of all words in the last window goes from {right('embeddings', ALONE, 'last')} to {right('embeddings', FORWARD, 'last')}. Upper table: one abstract, in which the rule changes {moved}. Lower table: all.",
    tables,
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
Markdown(f"""
One wrong link to a late window drags all later sentences along, and nothing pulls them back. This also happens to random links: the rule puts {right("random", FORWARD, "last")} of their words into the last window.

The **best path** avoids this. Of all sequences of windows that never go back, it takes the one with the largest sum of similarities. It puts {right("embeddings", PATH)} of the sentences into the right window, and {right("embeddings", PATH, "last")} of the words into the last.

So the marks push to the end as well. But they are not the main reason for the jump: the model that learned from such marks does not jump if we let it draw. Marks by the best path alone do not help: trained with them, the row CD_II of the author's table changes by {wind.points("windowed_table_sumpubmed", pair=("CD_II, plain beam search", "CD_II, best path, plain beam search"))} R-1 (two seeds of small models, plain beam search).

Need the slide be learned at all? **Static windows** (14) move after a fixed share of the words, and need no marks. With three seeds they have {wind.points("windowed_table_sumpubmed", pair=("CD_II, plain beam search", "CD_II, static windows, plain beam search"))} R-1 more than windows that → moves (plain beam search), and {wind.points("windowed_table_sumpubmed", pair=("CD_I, plain beam search", "CD_II, static windows, plain beam search"))} more than the first 400 words. With trigram blocking this is {wind.points("windowed_table_sumpubmed", pair=("CD_II", "CD_II, static windows"))}, and windows whose search decides first whether to slide are as good as static ones. So much of the difference is repetition.
""")

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## How did your bets turn out?

We trained each row of the author's table on biomedical articles. The models are small, so compare differences.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "subslide"} tags=["remove-input"]
Markdown(evidence_table("windowed", *BETS))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Outcomes("windowed", BETS)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "notes"} tags=["remove-input"]
Markdown(
    f"And if windows are chunks, each summarized separately? An article is then cut into as many pieces as it has windows. Each chunk begins anew, so less is repeated. With trigram blocking and slides decided first, chunks minus windows is {wind.points('windowed_slides_pmc', 'equal chunks - by the median, trigram blocking')} R-1. The author argues with coherent text, which R-1 does not measure. All claims are in [claims.md](../docs/claims.md#windowed)."
)

# %% [markdown] slideshow={"slide_type": "slide"}
r"""
## What became of the idea?

Attention that moves on and never back was known from speech: monotonic attention (Raffel and others, 2017), with a window behind the place (Chiu and Raffel, 2018). Windows without a slide became common. SLED (Ivgi and others, 2023) encodes a long text in overlapping windows, and its decoder attends to all of them. Language models such as Mistral 7B (Jiang and others, 2023) let each layer attend to the last 4,096 tokens, so that layer upon layer reaches further back.

## What to take home

* **Ask what a search does before you blame the model.** One symbol competed with fifteen thousand words, one by one, and won too often. Drawing showed it.
* **What cannot be taken back deserves a decision of its own.** Slide or stay? Only then: which word?
* **Look at labels that a program has made.** One wrong link can move the rest of an abstract.

**You can stop here.** The building path derives the equations and ends with a windowed model of your own.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""

# 1. Build it

The paper numbers no equations: **(1)** to **(14)** are this page's numbers. (1), (4), (7) and (14) come from the code, and (14) belongs to the later paper. Only (1) to (4), (7), (9), (13) and (14) are new here. The functions are written to be read: one document, no batch, no padding. A green line says how far they agree with the library `lib` in double precision. A difference stops the page.

<details><summary>Symbols</summary>

| symbol | meaning | equation |
|---|---|---|
| $T_x,\ T_y$ | words of the text; words and symbols of the summary | (1), (13) |
| $ws,\ ss,\ n$ | words in a window; words by which it slides; number of windows | (1) |
| $F_w$ | the words of window $w$ | (1) |
| $S,\ D_i$ | a sentence of the summary; sentence $i$ of the text | (2), (3) |
| $\mathbf v_j,\ \mathbf v(S)$ | vector of word $j$; sum over a sentence | (2) |
| $d,\ \lvert V\rvert$ | width of the states; words of the vocabulary | (5), (11) |
| $h_j$ | encoder's state of word $j$ of the text | (5) |
| $y_t,\ s_t$ | word or symbol $t$ of the summary; state of the decoder | (6) |
| $w_t$ | window at step $t$ | (7) |
| $e_{tj},\ \alpha_{tj},\ c_t$ | score and attention weight of word $j$ at step $t$; context | (8), (9) |
| $P$ | probability of the next word or symbol | (12) |
| $\kappa,\ \delta,\ B,\ T_{max}$ | constants of static windows | (14) |

</details>
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
show_model("windowed")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## How many windows does a text need?

A window has $ws$ words and begins $ss$ words after the previous one. With fewer windows than $n$, the last words of the text could never be read.

$$n=1\ \text{ if } T_x\le ws,\qquad n=1+\Big\lceil\frac{T_x-ws}{ss}\Big\rceil\ \text{ otherwise}\tag{1}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq01_windows(words, ws, ss):
    n, reached = 1, ws
    while reached < words:
        n, reached = n + 1, reached + ss
    return n


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
T_x, ws, ss = len(example.source), WINDOW, STRIDE
n = eq01_windows(T_x, ws, ss)
wind.check_windows(checks, eq01_windows, T_x)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Which sentence was it written from?

Without arrows in the references, the decoder could not learn to write any. To place them, we need the sentence of the text that a summary sentence was written from. A sentence becomes the sum of its word vectors. It is linked to the sentence with the largest cosine.

$$\mathbf v(S)=\sum_{j\in S}\mathbf v_j\tag{2}$$

$$Sim(S,D_i)=\frac{\mathbf v(S)\cdot\mathbf v(D_i)}{\|\mathbf v(S)\|\,\|\mathbf v(D_i)\|}\tag{3}$$

The author uses fastText vectors. His code takes the mean of vectors of length 1 and the dot product. In the small text that we use for the numbers, each word has a dimension of its own, so the sums count words:

> *text:* The cat sat and sat. | The zebra ran. | The quokka saw it. | It was the cat, not it.
>
> *summary:* The okapi sat. | The quokka saw the cat. | It was not it.
"""


# %% slideshow={"slide_type": "skip"}
def eq02_sum_of_vectors(ids, vectors):
    known = [vectors[i] for i in ids if i < len(vectors)]  # others have no vector
    return sum(known, np.zeros(vectors.shape[1]))


def eq03_similarity(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Where is a slide put?

A link gives the words $start$ to $end$ of a sentence. A window rarely ends where a sentence does. We take the window that leaves out the fewest of these words, and the first of several.

$$w=\mathop{\mathrm{arg\,min}}_{w'}\big|\{start,\dots,end\}\setminus F_{w'}\big|\tag{4}$$

A window cannot slide back. So a sentence never gets an earlier window than the sentence before it. Wherever the window moves on, → is put in front of the sentence, once for each window.
"""


# %% slideshow={"slide_type": "skip"}
def eq04_window(start, end, words, ws, ss):
    """Words and windows count from 1."""
    left_out = []
    for w in range(1, eq01_windows(words, ws, ss) + 1):
        first = (w - 1) * ss + 1
        left_out.append(sum(not first <= j < first + ws for j in range(start, end + 1)))
    return 1 + left_out.index(min(left_out))


def eq04_mark(sentences, windows):
    marked, now = [], 1
    for ids, w in zip(sentences, windows):
        marked += [SLIDE] * (w - now) + list(ids)
        now = max(now, w)  # never back
    return marked


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
functions = eq02_sum_of_vectors, eq03_similarity, eq04_window, eq04_mark
wind.check_marks(checks, *functions)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
What is wrong with "never back"? Let the sentences be linked to windows 1, 4, 2, 2. The rule makes 1, 4, 4, 4 of it: one wrong link costs two right ones. The best path is chosen for all sentences together, and would rather give up the 4. You write it in exercise 7.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## When does the window move?

Encoder and decoder are LSTMs, as in [Start here](start_here.ipynb). (5): $h_j$ is the two states of word $j$, read forward and backward, and the decoder starts from the last state of each direction. (6): the decoder reads the previous word *or symbol* $y_{t-1}$ and runs through the whole summary, so its state keeps what was written about earlier windows.

The window slides at the step whose **input** is →. Then the next word is already written from the new window. At the last window it stays.

$$w_t=\min\big(w_{t-1}+[y_{t-1}={\rightarrow}],\ n\big),\qquad w_0=1\tag{7}$$

The released code asks whether → is among the words of the *text*. It never is, so there $w_t=1$ in all of training.
"""


# %% slideshow={"slide_type": "skip"}
def embed(ids, model):
    ids = torch.as_tensor(ids).long()
    return model.embedding(ids.where(ids < model.config.vocab_size, UNK))


def eq05_states(x, model):
    """As in Start here: states [T_x, d], and the decoder's first hidden and cell state."""
    right, (h_right, c_right) = model.forward_encoder(x)
    left, (h_left, c_left) = model.backward_encoder(x.flip(0))
    start = torch.cat([h_right, h_left], 1), torch.cat([c_right, c_left], 1)
    return torch.cat([right, left.flip(0)], 1), start


def eq07_windows_of_steps(inputs, n):
    windows, now = [], 1
    for y in inputs:
        now = min(now + (y == SLIDE), n)
        windows.append(now)
    return windows


# %% slideshow={"slide_type": "skip"}
model = deepcopy(fact_model).double().requires_grad_(False)
inputs = [BOS, *example.target[:-1].tolist()]
h, start = eq05_states(embed(example.source, model), model)
y = embed(inputs, model)
s, _ = model.decoder(y, start)  # (6)
w = eq07_windows_of_steps(inputs, n)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
batch = make_batch([example, longer], VOCABULARY)
state, T_y = model.encode(batch), len(example.target)
result, _ = model.decode(batch.target_input, state)
checks.close(h, state.words[0, :T_x], "(5)", "states of the words")
checks.close(start[0], state.hidden[:1], "(5)", "first state of the decoder")
checks.close(torch.tensor(w), result.windows[0, :T_y] + 1, "(7)", "windows")
entered = " ".join(wind.WORDS[i] for i in inputs)
checks.line(f"Inputs: {entered}. Windows: {' '.join(map(str, w))}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What does the decoder see?

Two things differ from Start here. The score is a dot product, $e_{tj}=s_t^\top h_j$ (8), and the softmax runs over the words of the current window only. If it ran over all words and the others were set to 0 afterwards, the weights of a window would no longer add up to 1.

$$\alpha_{tj}=\frac{\exp e_{tj}}{\sum_l\exp e_{tl}},\qquad c_t=\sum_j\alpha_{tj}h_j,\qquad j,l\in F_{w_t}\tag{9}$$

The rest is a pointer-generator: (10) and (11) give $P_g$, and (12) mixes it with copying words *of the window*. Its output layer is the embedding table $\mathbf E$, which has 15.0 of the 18.54 million parameters at the author's size. → is a word of the vocabulary like all others, but it occurs in no text, so it can only be generated.
"""


# %% slideshow={"slide_type": "skip"}
def eq09_context(s_t, h, w_t, ws, ss):
    """Weights [T_x] (0 outside the window) and context [d]."""
    begin = (w_t - 1) * ss
    inside = h[begin : begin + ws]
    alpha = torch.zeros(len(h)).double()
    alpha[begin : begin + ws] = (inside @ s_t).softmax(0)  # (8)
    return alpha, alpha @ h


def eq12_next(c_t, s_t, s_before, y_before, alpha_t, source, size, model):
    """(10) to (12), as in Start here: P over the vocabulary and the unknown words."""
    pointer, E = model.pointer, model.embedding.weight
    a_t = pointer.combine(torch.tanh(torch.cat([c_t, s_t])))  # (10)
    P_g = (E @ pointer.bottleneck(a_t) + pointer.vocabulary.bias).softmax(0)  # (11)
    p_t = torch.sigmoid(pointer.switch(torch.cat([a_t, s_before, y_before])))
    P = torch.cat([p_t * P_g, torch.zeros(size - len(P_g))])
    return P.index_add(0, source, (1 - p_t) * alpha_t)  # (12)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
alpha = torch.stack([eq09_context(s[t], h, w[t], ws, ss)[0] for t in range(T_y)])
checks.close(alpha, result.copy[0, :T_y, :T_x], "(8), (9)", "attention weights")
largest = (f"step {t + 1}, word {int(alpha[t].argmax()) + 1}" for t in (0, 4, 5))
checks.line(f"Largest weights: {'; '.join(largest)}.")

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## How does it learn to slide?

The loss makes the marked reference likely. An arrow is one of its $T_y$ symbols, and nothing else teaches the model to slide.

$$\mathcal L=-\frac1{T_y}\sum_{t=1}^{T_y}\log P(y_t)\tag{13}$$

A word that is neither in the vocabulary nor in the window cannot be written. It counts as [UNK].
"""


# %% slideshow={"slide_type": "skip"}
def eq13_objective(document, model, slides=True):
    """(1), (5) to (12) in order. Without slides, as in the released code: w_t = 1."""
    c, size = model.config, model.config.vocab_size + len(document.unknown)
    text, inputs = document.source.tolist(), [BOS, *document.target[:-1].tolist()]
    h, start = eq05_states(embed(text, model), model)
    y, n = embed(inputs, model), eq01_windows(len(text), c.window, c.stride)
    s, _ = model.decoder(y, start)
    w = eq07_windows_of_steps(inputs, n) if slides else [1] * len(inputs)
    total, before = 0, start[0][0]
    for t, u in enumerate(document.target.tolist()):
        alpha, c_t = eq09_context(s[t], h, w[t], c.window, c.stride)
        P = eq12_next(c_t, s[t], before, y[t], alpha, torch.tensor(text), size, model)
        begin, before = (w[t] - 1) * c.stride, s[t]
        reached = u < c.vocab_size or u in text[begin : begin + c.window]
        total = total - torch.log(P[u if reached else UNK])
    return total / len(document.target)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
wind.check_batch(checks, eq13_objective)
loss, stuck = (eq13_objective(example, model, slides) for slides in (True, False))
of_lib = model.loss(make_batch([example], VOCABULARY))["loss"]
checks.close(loss, of_lib, "(13)", "loss")
checks.line(
    f"The toy summary: {loss:.3f} nats a symbol. If the window never slides: {stuck:.1f}. Loss and gradients are also compared on a padded batch with random weights."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## What does each part do?

We take one part away from the toy model, without training it again. *Window*: it attends to the whole text. *Sliding*: it stays in the first window. *Copying* and *generating*: the switch is fixed, so that it can only do the other.

<details><summary>Predict: what can it write when it can only copy, and what when it can only generate?</summary>

By copying it writes the first fact, and never an arrow, which occurs in no text. By generating it writes arrows, but it cannot know which random numbers make the fact.

</details>
"""

# %% slideshow={"slide_type": "skip"}
print("right:", " ".join(wind.WORDS[i] for i in example.target[:-1]))
for part, take_away in LEFT_OUT.items():
    with take_away(fact_model):
        (ids,) = written_for(fact_model, [example], max_length=18)
    print(f"without {part}:", " ".join(wind.WORDS[i] for i in ids))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Without the window not even the first fact is right. This model was trained with a window and depends on it. A standard model, trained without one, writes all facts of two windows.
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Do we need the arrow at all?

The later paper also has **static** windows, which slide by themselves. Nothing has to be guessed in the references. But how many words a window gets no longer depends on what it contains. Window $i$ gets a share of the summary in advance, and the first window gets the largest. $filled_i$ is the part of window $i$ that has words. A text of $T_{max}$ words gets a summary of $B$ words, and a shorter one in proportion.

$$share_i\propto e^{-\kappa(1+(i-1)\,\delta^{i-1})}\cdot filled_i,\qquad
end_i=\Big\lfloor\frac{T_x}{T_{max}}\,B\sum_{i'\le i}share_{i'}\Big\rfloor\tag{14}$$
"""


# %% slideshow={"slide_type": "skip"}
def eq14_ends(words, ws, ss, kappa, delta, B, longest):
    """After how many words of the summary each window ends."""
    shares = []
    for i in range(eq01_windows(words, ws, ss)):  # i - 1 of (14)
        filled = min(1.0, (words - i * ss) / ws)
        shares.append(np.exp(-kappa * (1 + i * delta**i)) * filled)
    parts = np.cumsum(shares) / np.sum(shares)
    return np.floor(parts * B * words / longest + 1e-9)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
static = wind.same_weights(model, windowing="static", budget=30, longest=104)
ends = eq14_ends(T_x, ws, ss, kappa=1.2, delta=0.8, B=30, longest=104)
of_lib = static.encode(batch).window_ends[0, :n].double()
checks.close(torch.from_numpy(ends), of_lib, "(14)", "ends of the windows")
checks.line(
    f"T_x = {T_x}, T_max = 104, B = 30: {ends[-1]:.0f} words, whose windows end after {', '.join(f'{end:.0f}' for end in ends)} of them."
)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
## Slide, or which word?

The decision of the reading path needs no training. Before each word, `stayed` is the probability that the coin has not yet said "slide" since the last slide. This is all that a search needs beside $P({\rightarrow})$. It is not in the paper.
"""


# %% slideshow={"slide_type": "skip"}
def slide_first(p_slide, stayed):
    """Whether to slide now, and `stayed` for the next step."""
    stayed = stayed * (1 - p_slide)
    return (True, 1.0) if stayed < 0.5 else (False, stayed)


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
Markdown(wind.check_slides(slide_first, windows.example))

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Now all equations are there. In the order in which the decoder computes them, one step is:

```python
s_before = s
s = LSTM(e(y), s)                                  # (6); y: the previous word or symbol
w = min(w + (y == SLIDE), n)                       # (7); n from (1)
alpha, c = attend(s, h[window(w)])                 # (8), (9)
P = pointer(c, s, s_before, y, alpha)              # (10) to (12)
slide, stayed = slide_first(P[SLIDE], stayed)      # ours, in decoding only
```
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Your corpus

With `dataset` the shipped model reads your test documents here. With `preset` the page trains a model on them first, and with `run` it opens one that you have trained. Start JupyterLab and set these in the page's first cell, or use `papermill`. As the page comes, the report is about the shipped model and papers of `pmc-sample`, which are of its field. `python -m lib.score run FOLDER --decode slide=median` decides first whether to slide.
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
trained = choice.open(output, progress=preset != "demo" or steps > 0)
choice.report(trained)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
None if choice.is_shipped else loss_figure(figures, "", trained, False)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
From which windows do the words of a model that slides come?
"""

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "skip"} tags=["remove-input"]
own, own_windows = trained.model.config, None
if own.window and own.windowing == "dynamic":
    own_windows = wind.Windows(trained, choice.documents, figures, stored=False)
own_windows.bars(
    *shown, saved_as=""
) if own_windows else "This model does not slide by itself."

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 2. Your own model

You write the five functions that this paper adds to a pointer-generator: links, marks, slides, the window, and the decision. Write each one instead of `raise NotImplementedError`, run its cell and then the check below it. A check says how many cases are right and shows the first wrong one, never the right answer. Hints and solutions are folded. Then your functions train a model. This part needs nothing from above but the cell that follows. `make class` makes notebooks of it for students and for their teachers (`docs/teaching.md`).
"""

# %% slideshow={"slide_type": "skip"}
import numpy as np
import torch

from lib.data.vocabulary import SLIDE
from companion.exercises.windowed import check, own_model, progress

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**1.** Link each sentence of a summary to the most similar sentence of the text, (2) and (3). Sentences are lists of ids, `vectors` [V, width] has a row for each id. Return a list with the place of the linked sentence for each sentence of the summary, counted from 0. (medium, core, 8 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def linked_sentences(summary, source, vectors):
    """[[2, 3], [5]] and [[5, 6], [3]] with one dimension a word give [1, 0]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(1, linked_sentences)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

`vectors[ids].sum(0)` is (2). Long sentences have long sums: what does (3) do about it?

</details>
<details><summary>Solution</summary>

```python
def linked_sentences(summary, source, vectors):
    links, sums = [], [vectors[ids].sum(0) for ids in source]
    for ids in summary:
        a = vectors[ids].sum(0)
        links.append(int(np.argmax([a @ b / np.linalg.norm(b) for b in sums])))
    return links
```

The length of the summary sentence is the same for all of them, so it may be left out.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**2.** Mark a summary, (4). `sentences` are lists of ids, and `windows` has the window of the sentence that each is linked to, counted from 1. A window never goes back. Put `SLIDE` in front of a sentence once for each window that it moves on. Return one list of ids. (medium, core, 6 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def marked_summary(sentences, windows):
    """[[10], [11, 12], [13]] and [1, 2, 1] give [10, SLIDE, 11, 12, 13]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(2, marked_summary)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

In which window is the model before the first sentence? `[SLIDE] * -1` is an empty list.

</details>
<details><summary>Solution</summary>

```python
def marked_summary(sentences, windows):
    marked, now = [], 1
    for ids, window in zip(sentences, windows):
        marked += [SLIDE] * (window - now) + list(ids)
        now = max(now, window)
    return marked
```

The window `now` can only grow: this is the rule "never back".

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**3.** Give the window of each step, (7). `inputs` are what the decoder reads, `before` is the window before the first of these steps, and `n` is the number of windows. (easy, core, 5 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def windows_of_steps(inputs, before, n):
    """A list of ids and two whole numbers in, a list of windows out, counted from 1."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(3, windows_of_steps)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

The step whose input is `SLIDE` is already in the new window.

</details>
<details><summary>Solution</summary>

```python
def windows_of_steps(inputs, before, n):
    windows = []
    for y in inputs:
        before = min(before + (y == SLIDE), n)
        windows.append(before)
    return windows
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**4.** Which words may each step attend to, (9)? `windows` is a tensor [T] of windows, counted from 1. A text has `words` words, a window has `ws`, and it slides by `ss`. (medium, core, 6 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def window_mask(windows, words, ws, ss):
    """Returns [T, words], True for the words of the window."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(4, window_mask)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

`torch.arange(words)` numbers the words from 0. How far is each behind the beginning of the window?

</details>
<details><summary>Solution</summary>

```python
def window_mask(windows, words, ws, ss):
    behind = torch.arange(words) - (windows[:, None] - 1) * ss
    return (behind >= 0) & (behind < ws)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**5.** Decide whether to slide, by the median: slide as soon as the product of the probabilities of staying since the last slide is below 1/2. `stayed` is that product before this step. (medium, core, 6 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def decide(p_slide, stayed):
    """Returns two numbers: 1 to slide or 0 to stay, and `stayed` for the next step."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(5, decide)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

After a slide, the product begins again.

</details>
<details><summary>Solution</summary>

```python
def decide(p_slide, stayed):
    stayed = stayed * (1 - p_slide)
    return (1, 1.0) if stayed < 0.5 else (0, stayed)
```

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
Now your functions become a model. The texts are those of the toy, but nobody has put symbols into their summaries: your links and marks do. Your model trains for a few seconds, its windows move by your function, and it looks where your mask lets it. Then it writes and decides by your rule.
"""

# %% slideshow={"slide_type": "skip"}
own_model(linked_sentences, marked_summary, windows_of_steps, window_mask, decide)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# 3. Exercises

**6.** *Find the bugs.* This is somebody's attention (8), (9) of one step over **all** words of the text, with 0 outside the window `w`, which counts from 1:

```python
def attention_in_window(s, h, w, ws, ss):
    alpha = (h @ s).softmax(0)
    alpha[: (w - 1) * ss] = 0
    alpha[w * ws :] = 0
    return alpha
```

What leaks? Write it right. (easy, core, 8 minutes; 2 points)
"""


# %% slideshow={"slide_type": "skip"}
def attention_in_window(s, h, w, ws, ss):
    """State s [d], states of the text h [T_x, d], window w from 1. Returns [T_x]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(6, attention_in_window)

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

The softmax ran over the whole text, so words outside the window took a share of the weights. And window `w` ends `ws` words after its beginning, `(w - 1) * ss`.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**7.** Mark without dragging. `scores` [S, n] has the largest similarity of each of S summary sentences to any sentence of each of n windows. Among all sequences of windows that never go back, find the one with the largest sum of scores. Return its windows, counted from 1. Trying all sequences takes too long, so build the best path sentence by sentence (this is Viterbi's algorithm). (hard, core, 20 minutes; 4 points)
"""


# %% slideshow={"slide_type": "skip"}
def best_path(scores):
    """[[0.9, 0.1], [0.2, 0.8], [0.7, 0.6]] gives [1, 2, 2]."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(7, best_path)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

For each window, keep the best sum of a path that ends there. The next sentence may come from any window up to its own. Remember from which one, and walk back from the best end.

</details>
<details><summary>Solution</summary>

```python
def best_path(scores):
    total, back = scores[0], []
    for row in scores[1:]:
        best = [int(total[: w + 1].argmax()) for w in range(len(row))]
        back.append(best)
        total = row + total[best]
    path = [int(total.argmax())]
    for best in reversed(back):
        path.append(best[path[-1]])
    return [w + 1 for w in reversed(path)]
```

On the articles of this page the best path puts fewer words into the last window than "never back". Both put about as many sentences into the right window.

</details>
"""

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
**8.** Models train for 50 steps on small facts: windows of 10 words that slide by 8, facts of two words, three windows a text. All read the summary with its symbols. The standard model attends to everything. Which has the smaller loss (13), the standard model or a model with a window, if the window (a) has 10 words and slides by 8, (b) has 3 words and slides by 3, (c) has 10 words and never slides in training, as in the released code? All three have to be right. (medium, core, 8 minutes; 3 points)
"""


# %% slideshow={"slide_type": "skip"}
def smaller_loss_of_facts():
    """Three names, each "window" or "standard": for (a), (b) and (c)."""
    raise NotImplementedError


# %% slideshow={"slide_type": "skip"}
check(8, smaller_loss_of_facts)

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
<details><summary>Hint</summary>

Which words of the text can each model attend to at all?

</details>
<details><summary>Solution</summary>

```python
def smaller_loss_of_facts():
    return ["window", "standard", "standard"]
```

A window leaves fewer places to choose from, if the right one is among them. Three windows of 3 words reach only the first nine words. A window that never slides sees one fact of three.

</details>
"""

# %% slideshow={"slide_type": "skip"}
progress()

# %% [markdown] slideshow={"slide_type": "skip"}
r"""
# Where to go from here

* **[Watch it write](../docs/live.md)**: the shipped model in your browser, without Python. Step through a summary of your own text, watch the window slide, and forbid the symbol.
* `python -m lib.score run trained/windowed --dataset pmc-sample --decode slide=median` scores a model that decides first.
* [`docs/papers/windowed.md`](../docs/papers/windowed.md) has all tables, the deviations from the sources, and where each equation is in `lib`. Next page: [Read-Again](read_again.ipynb).
"""
