# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
r"""
# What do the papers compare themselves with?

*30 minutes, no code. You need attention, copying and ROUGE ([Start here](start_here.ipynb)).*

"Our model gains two points." Over what? A gain is a difference between two systems, and most readers know only one of them. This page shows the other side: every system of other people in the tables of the four papers. Each gets one picture or table, its own idea as an equation, and a few sentences.

The sections do not build on each other. If you come from a table, read the section of its system.
"""

# %% tags=["parameters"]
seed: int = 0  # of the models' random weights

# %% jupyter={"source_hidden": true} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import pandas as pd
import torch

from companion.pages.checks import Checks
from companion.pages.diagrams import show_model
from companion.pages.shown import Passages, Prediction, clip, show_tables
from lib.data.batch import EncodedDocument, make_batch
from lib.data.corpus import load_corpus
from lib.data.vocabulary import BOS
from lib.evaluation.baselines import lead, lexrank, matches, oracle
from lib.evaluation.rouge import rouge
from lib.models.discourse_aware import DiscourseAware
from lib.models.seq2seq import RecurrentConfig
from lib.system.files import project_root, read_json

torch.set_default_dtype(torch.float64)
show_tables()
checks = Checks()


def measured_rows(name):
    rows = read_json(project_root() / "figures" / f"{name}.json")["rows"]
    return {row["label"]: row for row in rows if "scores" in row}


def with_interval(row):
    return "{mean:.1f} [{low:.1f}, {high:.1f}]".format(**row["scores"]["R-1"])


# %% [markdown]
r"""
## Three questions about every system

What does it read, where does it look, and how does it write? These are the answers.

| system | what it reads | where it looks | how it writes | in the tables of |
|---|---|---|---|---|
| Lead, LexRank, oracle | sentences | at the beginning; at what is like the rest; at the reference | takes whole sentences | Mem2Mem, hierarchical (no oracle) |
| Sent-CLF, Sent-PTR | sentences | where labels have taught it to | takes whole sentences | Mem2Mem |
| Attn-Seq2Seq, Ptr-Gen-Seq2Seq | one row of words | at words | word by word; Ptr-Gen also copies | Mem2Mem |
| Discourse-aware | words in sections | at words; sections scale their scores | word by word, and copies | Mem2Mem |
| TLM | introduction, chosen sentences, summary, all in one row | at all pieces before | piece by piece | Mem2Mem |
| flat transformer | one row of at most 1,200 pieces | at all pieces | piece by piece | hierarchical |
| T-DMCA | one row of 3,000 pieces | at its own block, and at a compressed past | piece by piece | hierarchical |
| ABS | one sentence | at words, from the last five words written | word by word | Read-Again |
| RAS | one sentence | at words, from a recurrent state | word by word | Read-Again |
| words-lvt2k, words-lvt5k | one sentence | at words | word by word, from a few candidates | Read-Again |

A *piece* is a word or a part of one. The paper on windowed attention compares only variants of its own model. Two systems in Read-Again's tables, ABS+ and TOPIARY, need data or tools that are not free. For these, the project only quotes published numbers.

Every system has a **source**. Some equations come from a paper or from its authors' code. Others are marked as a *reconstruction*: we had no text of the paper and wrote them from its abstract, from public notes and from memory. Do not quote a reconstruction as the authors' equation.

## What if nothing is learned?

The simplest systems take whole sentences from the article. **Lead** takes the first ones. **LexRank** takes the sentences that are most like the others. Imagine a walk over the sentences. With probability $d=0.85$ the next step leads to a sentence that is similar to this one, and otherwise to any sentence. The share of steps that visit sentence $j$ is its centrality:

$$p_j=\frac{1-d}{L}+d\sum_{k\,\sim\,j}\frac{p_k}{\deg(k)}\tag{L1}$$

$L$ is the number of sentences. Two sentences are similar ($k\sim j$) if the cosine of their tf-idf vectors reaches 0.1, and $\deg(k)$ counts the sentences that are similar to $k$.

The **oracle** cheats: it looks at the reference summary. It adds the sentence that helps ROUGE most, and stops when none helps. So it shows about how far choosing can go.

The table shows what the three take from one article of 131 sentences ([2020.aacl-main.67](https://aclanthology.org/2020.aacl-main.67)). Lead takes as many sentences as the reference has, and LexRank takes sentences until it has as many words.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
articles = load_corpus("aclsum").split("test")
article = next(x for x in articles if x.id == "2020.aacl-main.67")
sentences, reference = article.sentences, article.summary
words = sum(len(sentence.split()) for sentence in reference)
taken = {
    "Lead": lead(sentences, len(reference)),
    "LexRank": lexrank(sentences, words),
    "oracle": oracle(sentences, reference),
}
r_1 = rouge([*taken.values()], [reference] * 3)[:, 0]
every = set().union(*taken.values())
places = [i for i, sentence in enumerate(sentences) if sentence in every]
first = [clip(sentences[i], 12) for i in places]
extracts = pd.DataFrame({"beginning of the sentence": [*first, "R-1 of all"]})
for (name, chosen), score in zip(taken.items(), r_1):
    marks = ["●" if sentences[i] in chosen else "" for i in places]
    extracts[name] = [*marks, f"{score:.0f}"]
extracts.index = [*(f"{i + 1}" for i in places), ""]
extracts

# %% [markdown]
r"""
Lead is hard to beat on news, where the first sentences are a summary already. On other texts it depends. On 200 biomedical articles of SumPubMed, LexRank has 45.4 R-1 and Lead has 38.5, both cut to 200 words. In the paper on hierarchical transformers Lead is the better one. The [comparison](compare.ipynb) shows both beside all four models.

*Source: LexRank is Erkan and Radev (2004), the greedy oracle Nallapati and others (2017). The papers leave open how long an extract is, and the length by itself moves R-1 by several points.*

## What if choosing is learned?

**Sent-CLF** and **Sent-PTR** also take whole sentences, but learn which. For that they need labels: for every sentence of the reference, the two sentences of the article that are most like it.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
labels = []
for number in (1, 4):
    labels.append((f"reference, {number + 1}", reference[number]))
    for i in matches(sentences, [reference[number]]):
        labels.append((f"article, {i + 1}", clip(sentences[i], 24)))
Passages(labels)

# %% [markdown]
r"""
Both compute a vector $s_j$ of each sentence $j$ from its words, and from these a state $d_j$ of the sentence in its article. Sent-CLF turns each state into a probability and takes the most probable sentences. Nothing keeps it from taking two that say the same.

Sent-PTR points to one sentence after the other. The attention of a decoder *is* the probability of the next sentence:

$$h_t=\mathrm{LSTM}\bigl([s_{i_{t-1}};\tilde h_{t-1}],\,h_{t-1}\bigr),\qquad
P(i_t=j)=\frac{\exp(d_j^\top h_t)}{\sum_{k}\exp(d_k^\top h_t)}\tag{S4}$$

Its input is the sentence that it took last, $s_{i_{t-1}}$, and what it attended to then, $\tilde h_{t-1}$. So it can avoid repetition, and it stops by itself: it points to the same sentence twice.

Mem2Mem's memory heads choose sentences too, but learn it without labels, from the loss of the summary's words.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
rows = measured_rows("mem2mem_table1_sumpubmed")
cells, points = {}, {}
for label, row in rows.items():
    if "pubmed" in row["published"]:
        plain = rows.get(f"{label}, plain beam search", row)
        there, here = row["published"]["pubmed"][0], plain["scores"]["R-1"]["mean"]
        points[label] = there, here
        blocked = with_interval(row) if plain is not row else ""
        cells[label] = there, with_interval(plain), round(plain["words"]), blocked
columns = ["in the paper", "here", "words", "no repeated trigrams"]
table_1 = pd.DataFrame.from_dict(cells, orient="index", columns=columns)
best, ours = (max(points, key=lambda label: points[label][i]) for i in range(2))
where = "here, too" if ours == best else f"here {ours}"
Prediction(
    "Which system has the highest R-1 in Mem2Mem's own table for PubMed?",
    [
        "an extractor that learns from labels",
        "TLM, a language model of 234 million parameters",
        "Mem2Mem, with 14.7 million parameters",
    ],
    f"{best}: it has the highest R-1 in the paper, and {where}. It takes whole sentences; the paper's claim is about systems that write their own text.",
    [table_1],
)

# %% [markdown]
r"""
*Here* means small models after 600 steps on SumPubMed, with one seed; the paper trains for 15 epochs on PubMed. So look at gains and not at scores, and look at lengths, because R-1 favours longer summaries here. In the last column, no three words in a row are written twice. The paper does not mention such a rule.

*Source: a reconstruction, after Subramanian, Li, Pilault and Pal (2020, [arXiv:1909.03186](https://arxiv.org/abs/1909.03186)). We do not know which ROUGE makes the labels, from which state the pointer starts, and the form of $\tilde h$. We read "width 512" as both directions together, because the dot products need equal widths.*

## What if a model attends to words, and copies?

**Attn-Seq2Seq** is the model of [Start here](start_here.ipynb) without copying, and **Ptr-Gen-Seq2Seq** is the same model with copying and coverage. In the paper this adds 4.3 points of R-1. They have no sentence level, which is the first thing Mem2Mem adds.

*Source: Mem2Mem's layers and sizes without sentences and memory, so that our table compares what is added. The paper quotes results of others, whose sizes differ.*

## What if sections guide the attention?

Cohan and others (2018) split an article into sections. **Discourse-aware** attention computes a weight $\beta_{tj}$ for each section $j$ and a score $e_{tji}$ for each of its words $i$. The section's weight scales the scores of its words, and one softmax over all words of the article follows:

$$\alpha_t=\mathrm{softmax}_{ji}(\beta_{tj}\,e_{tji}),\qquad c_t=\sum_{ji}\alpha_{tji}h_{ji}\tag{C6}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
section_of = torch.tensor([0, 0, 1, 1])
beta, scores = torch.tensor([0.8, 0.2]), torch.tensor([-1.0, -2.0, -1.0, -2.0])
scaled = beta[section_of] * scores
alpha, product = scaled.softmax(0), beta[section_of] * scores.softmax(0)
columns = {
    "section": section_of + 1,
    "its weight": beta[section_of],
    "word's score": scores,
    "scaled score": scaled,
    "attention by (C6)": alpha,
    "probabilities multiplied": product / product.sum(),
}
by_hand = pd.DataFrame({name: x.numpy().round(2) for name, x in columns.items()})
by_hand.index = [f"word {i + 1}" for i in by_hand.index]
Prediction(
    "Section 1 has the weight 0.8 and section 2 has 0.2. Each has two words, with the scores -1 and -2. How much attention do the words of section 1 get together?",
    ["about 80%", "about 50%", "about 30%"],
    f"About {alpha[:2].sum():.0%}. A large weight makes a negative score more negative. So the section with the larger weight gets less attention.",
    [by_hand],
)

# %% [markdown]
r"""
Mem2Mem multiplies probabilities instead, as in the last column. So a larger weight of a sentence never lowers the attention to its words. No other system in the table is as close to Mem2Mem: it has two levels and copying, and lacks the memory. In the paper Mem2Mem is 3.1 points above it. In our table, with one seed, Mem2Mem is slightly below it.

*Source: the authors' [released code](https://github.com/armancohan/long-summarization); only the numbers of the equations are ours. In that code, padding gets attention, and a weight can belong to another word than the one that is copied. We repeat neither. Coverage is an option there, and we switch it on as in the other rows.*

## What if there is no encoder at all?

**TLM** is a language model with the architecture of GPT-2, trained from scratch. There is no encoder, no attention between two sides, no copying. Everything is one row of pieces, and the model learns to predict each piece from those before it:

$$\begin{gathered}\mathcal L=-\frac1n\sum_{t}\log P(x_t\mid x_{<t})\\
x=[\,\text{introduction};\ \texttt{<P>};\ \text{extract};\ \texttt{[BOS]};\ \text{summary}\,]\end{gathered}\tag{S8}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("tlm")

# %% [markdown]
r"""
To summarize, the model is given the row up to `[BOS]` and goes on writing. The *extract* holds the sentences that Sent-PTR has chosen; without it the system is called *abstractive*, with it *hybrid*. The rest of the article is used in training only, in windows of its own (the small triangle in the picture).

In the paper the hybrid is level with Mem2Mem, which copies, chooses its sentences itself and has a sixteenth of the parameters. In our table both have about 0.8 million parameters and 600 steps. So it does not test what the large TLM can do.

*Source: a reconstruction, as for Sent-PTR. We do not know how long the three parts are. Its paper has 220 million parameters, which 50,257 pieces with separate input and output vectors give (219.7 million); Mem2Mem's paper counts 234.*

## What if everything is one long row?

The **flat transformer** has no equation of its own. It is the hierarchical transformer, given the whole text as one paragraph, with local layers only. The text is cut after 600, 800 or 1,200 pieces. Every piece attends to every other one, so twice the text needs four times the attention.

**T-DMCA** is a language model like TLM, with a row of 3,000 pieces of text and then the summary. It makes the long row cheap with two kinds of layers that take turns. In one, a piece attends only to those before it in its own block of 256 pieces. In the other it attends to its whole past, but to *compressed* keys and values. One linear map turns three keys into one:

$$\kappa_m=C_k[k_{3m};k_{3m+1};k_{3m+2}]+b_k\tag{D2}$$

Values are compressed in the same way. A piece attends to the groups of three that end before it, and to the first piece.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("t_dmca")

# %% jupyter={"source_hidden": true} tags=["remove-input"]
pieces, block, stride = 3000, 256, 3
flat = sum(t + 1 for t in range(pieces))
local = sum(t % block + 1 for t in range(pieces))
compressed = sum(t // stride + 1 for t in range(pieces))
Prediction(
    "In an ordinary language model, each of 3,000 pieces attends to itself and to all pieces before it. What part of this does each kind of layer need?",
    [
        "blocks a third, compression a ninth",
        "blocks a twelfth, compression a third",
        "blocks a third, compression a third",
    ],
    f"Blocks need 1 in {flat / local:.0f} of these attention weights, and compression 1 in {flat / compressed:.0f}: {flat / 1e6:.1f} million become {local / 1e6:.1f} and {compressed / 1e6:.1f} million.",
)

# %% [markdown]
r"""
The hierarchical transformer saves in another way. Pieces attend only to pieces of their own paragraph, and paragraphs exchange a few vectors. In its paper T-DMCA is the strongest trained baseline (40.77 R-1; the best flat transformer 40.56, the hierarchical one 40.82). In the test where people answer questions from the summaries, the distance is larger: 43.1% against 54.1%. We have not trained T-DMCA.

*Source: the flat transformer is the hierarchical paper's, which does not give the depth of its decoder (one layer here). Blocks and compression are from Liu and others (2018, [arXiv:1801.10198](https://arxiv.org/abs/1801.10198)); the equations are ours. The paper leaves open what a piece sees before a group is complete, and where layers normalise; both are from its authors' code. Their mixture of experts is left out, because the row of the hierarchical paper mentions none.*

## How were headlines written before Read-Again?

Read-Again makes a headline from one sentence. Its tables compare it with three earlier ideas.

**ABS** (Rush, Chopra and Weston 2015) has no recurrence. The last five words of the headline, as vectors $\tilde y'_C$, attend to the words $\tilde x_i$ of the text. The weights are applied to word vectors that were first averaged over their neighbours, $\bar x_i$:

$$\mathrm{enc}=\sum_ip_i\bar x_i,\qquad p=\mathrm{softmax}(\tilde x^\top P\tilde y'_C)\tag{A2}$$

$P$ is a learned matrix. What was written more than five words ago is forgotten.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("abs")

# %% [markdown]
r"""
*Source: the paper, [arXiv:1509.00685](https://arxiv.org/abs/1509.00685); the numbers of the equations are ours. It is trained here as Read-Again's rows are, and not with its own rates.*

**RAS** (Chopra, Auli and Rush 2016) looks from a recurrent state $h_{t-1}$ instead. A convolution over five words, with their positions, gives a vector $z_i$ for each place. These vectors only decide where to look; what is then read are the words' own vectors $x_i$:

$$\alpha_{t-1,i}=\frac{\exp(z_i\cdot h_{t-1})}{\sum_j\exp(z_j\cdot h_{t-1})},\qquad c_t=\sum_i\alpha_{t-1,i}\,x_i\tag{R20}$$

RAS-Elman and RAS-LSTM differ in the recurrent network that makes $h_t$. Both know a place only by the five words around it. Read-Again's encoder computes each word's vector after it has read the whole sentence.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("ras")

# %% [markdown]
r"""
*Source: a reconstruction. Public notes on the paper agree with (R20) and with the width of five. For the state of the LSTM we found no second source. We do not know the first state (zeros here, so that the first context is the mean of all words), and what the convolution sees at the ends of the text.*

**words-lvt2k** (Nallapati and others 2016, [arXiv:1602.06023](https://arxiv.org/abs/1602.06023)) has an ordinary encoder and decoder with attention. Its idea is the *large vocabulary trick*. The vocabulary has 69,000 words, but the softmax runs only over a set $Y_B$ of 2,000 candidates: the words of the batch's texts, and the most frequent others.

$$P(y_t=w)=\frac{\exp(o_w^\top[s_t;c_t]+b_w)}{\sum_{v\in Y_B}\exp(o_v^\top[s_t;c_t]+b_v)},\quad w\in Y_B\tag{R24}$$

Here $s_t$ is the decoder's state, $c_t$ its context, and $o_w$ the output vector of word $w$. (words-lvt5k has 5,000 candidates of 200,000 words.) Read-Again also writes from a small vocabulary, but copies the words of the text. With words-lvt2k a word of the text can be written only if it is in the large vocabulary.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("words_lvt")

# %% [markdown]
r"""
*Source: the idea is Jean and others (2015, [arXiv:1412.2007](https://arxiv.org/abs/1412.2007)). The form of the attention, the first state and the output layer are our choice. The paper does not say what becomes of a reference's word that is not a candidate; here it counts as `[UNK]`.*
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
rows = measured_rows("read_again_table2_reuters")
cells, mean = {}, {}
for label, row in rows.items():
    name = label.removeprefix("big-").removesuffix("-1sent")
    there = row["published"].get("duc2004", [""])[0]
    cells[name] = f"{there}", with_interval(row)
    mean[name] = row["scores"]["R-1"]["mean"]
table_2 = pd.DataFrame.from_dict(
    cells, orient="index", columns=["in the paper", "here"]
)
without = [mean["ABS"], mean["RAS-LSTM"], mean["RAS-Elman"]]
both = "Both RAS decoders are below ABS here" * (max(without[1:]) < without[0])
Prediction(
    "In the paper the systems differ by little more than three points of recall. We train them on 13,898 dispatches instead of millions. Which systems lose most?",
    [
        "those with a recurrent decoder",
        "those that choose from the whole vocabulary",
        "all of them about equally",
    ],
    f"Those that choose from the whole vocabulary: they have {min(without):.0f} to {max(without):.0f} points, words-lvt2k has {mean['words-lvt2k']:.0f} and Read-Again {mean['Read-Again GRU + copy']:.0f}. "
    f"{both or 'The order of ABS and RAS is open'}; without copying, a name has to be learned before it can be written.",
    [table_2],
)

# %% [markdown]
r"""
The measure is R-1 recall of the first 75 bytes, and Lead writes the first 75 bytes of the text. That is better than every system trained here. The system words-lvt2k copies nothing, and still it is far nearer to Read-Again than to ABS. This suggests that on a small corpus much depends on *which words can be written at all*. Reading again itself is tested by rows that differ in nothing else ([Read-Again](read_again.ipynb)).

## What to take home

* **A gain needs a partner that differs in one thing.** Ptr-Gen differs from Attn-Seq2Seq in copying and coverage. TLM differs from Mem2Mem in everything, so its distance explains nothing.
* **Each baseline lacks what its paper adds.** There are no sentences in Ptr-Gen, no memory in Discourse-aware, no paragraphs in the flat transformer, and no copying in ABS and RAS.
* **A baseline is only as good as its sources.** Four of these systems are reconstructions, and their numbers can show what our version does, not what the authors' did.

**You can stop here.** What follows computes one equation by hand and against the library.
"""

# %% [markdown]
r"""
# 1. Build it

We take (C6), because it is short and surprises. A function for one document and one step:
"""


# %%
def eqC6_attention(beta, scores, section_of, h):
    """Weights of sections [S], scores of words [n], their states [n, d] -> (C6)."""
    scaled = [beta[j] * e for j, e in zip(section_of, scores)]
    alpha = torch.stack(scaled).softmax(0)
    context = sum(a * h_i for a, h_i in zip(alpha, h))
    return alpha, context


alpha, _ = eqC6_attention(beta, scores, section_of, torch.eye(4))
print(alpha.numpy().round(2))

# %% [markdown]
r"""
These are the numbers of the table above. Now the library's model, with random weights, on a text of three sections. We take the section weights and the scores of its first step from the model, and compute the rest ourselves.
"""

# %%
text = EncodedDocument.of(
    "text", source=[4, 5, 12, 6, 7, 8, 9, 4, 13, 12, 5],
    sentence_lengths=[4, 2, 5], target=[12, 4, 13, 5, 3],
)  # fmt: skip
batch = make_batch([text], 12)
torch.manual_seed(seed)
model = DiscourseAware(RecurrentConfig(12, 5, 6, 4)).double().eval()
state = model.encode(batch)
output, after = model.decode(torch.tensor([[BOS]]), state)

query = model.word_query(torch.cat([after.cell, after.hidden], -1))
e = model.word_v(torch.tanh(state.word_keys[0] + query)).flatten()  # coverage is 0
alpha, context = eqC6_attention(
    output.sentences[0, 0], e, batch.sentence_of[0], state.words[0]
)

# %% jupyter={"source_hidden": true} tags=["remove-input"]
checks.close(alpha, output.alpha[0, 0], "(C6)", "weights")
checks.close(context, after.context[0], "(C6)", "context")
checks.line()

# %% [markdown]
r"""
The project's tests check the equations of the learned systems in the same way. They compare naive loops with the library in double precision, word by word, with gradients.

| system | in `lib.models` | compared in `tests` |
|---|---|---|
| Attn-Seq2Seq, Ptr-Gen-Seq2Seq (P1) to (P3) | `seq2seq` | `test_comparison_models.py` |
| Discourse-aware (C1) to (C7) | `discourse_aware` | `test_comparison_models.py` |
| Sent-CLF, Sent-PTR (S1) to (S5) | `sentence_extractors` | `test_sentence_extractors.py` |
| TLM (S6) to (S8) | `tlm` | `test_language_model.py` |
| T-DMCA (D1) to (D3) | `t_dmca` | `test_language_model.py` |
| ABS (A1), (A2) | `headline_baselines` | `test_read_again.py` |
| RAS (R19) to (R22), words-lvt (R23), (R24) | `headline_baselines` | `test_attentive_rnn.py` |

The modules' comments have the other equations. Each choice that a paper leaves open is in a table of deviations: [Mem2Mem](../docs/papers/mem2mem.md#deviations), [Read-Again](../docs/papers/read_again.md#deviations), [hierarchical transformers](../docs/papers/hierarchical_transformer.md#deviations). A number like (C6) says whose equation it is: P Ptr-Gen, C Cohan and others, S Subramanian and others, A ABS, R RAS and words-lvt, D T-DMCA.

This page reads no corpus of yours. [The comparison](compare.ipynb) does, with its parameter `dataset`. It compares the models with LexRank, Lead and the oracle.
"""
