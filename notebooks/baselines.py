# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
r"""
# What the papers compare themselves with

Three of the four papers have other people's trained systems in their tables; the one on windowed attention has none. This page says what each system computes: a picture, a few equations, and naive functions that are compared with the library.

**When you have read this page**, you can say of every trained row in the papers' tables what it reads, how it decides where to look, and how it writes, and what the papers changed.

**You need** [Start here](start_here.ipynb): attention, copying, coverage; for sections 4, 8 and 9 also the layers of a [transformer](hierarchical_transformer.ipynb). Read a section when you meet its system in a table; they do not build on each other.

| section | system | in the tables of | minutes |
|---|---|---|---|
| 1 | Attn-Seq2Seq, Ptr-Gen-Seq2Seq | Mem2Mem | 6 |
| 2 | Discourse-aware | Mem2Mem | 8 |
| 3 | Sent-CLF, Sent-PTR | Mem2Mem | 9 |
| 4 | TLM | Mem2Mem | 7 |
| 5 | ABS | Read-Again | 5 |
| 6 | RAS-Elman, RAS-LSTM | Read-Again | 6 |
| 7 | words-lvt2k, words-lvt5k | Read-Again | 6 |
| 8 | flat transformer | hierarchical transformers | 3 |
| 9 | T-DMCA | hierarchical transformers | 7 |

Lead, LexRank and the oracle learn nothing: `lib.evaluation.baselines`. ABS+ and TOPIARY, of Read-Again's tables, were not released and need tools or corpora that are not free: of them this project has published numbers only.

The letter of an equation says whose it is: P Ptr-Gen, C Cohan and others, S Subramanian and others, A ABS, R RAS and words-lvt, D T-DMCA. Symbols are those of the systems' own papers and may mean something else on another page.
"""

# %% tags=["parameters"]
seed: int = 0  # of the models' random weights

# %% jupyter={"source_hidden": true} tags=["remove-input"]
from companion.pages.parameters import check_parameters  # missing? Clone the project

check_parameters(globals())

import math

import torch
from torch.nn import functional as F

from lib.data.batch import EncodedDocument, in_vocabulary, make_batch, rows_of
from lib.data.vocabulary import BOS, UNK
from lib.models.discourse_aware import DiscourseAware
from lib.models.headline_baselines import (
    ABS,
    RAS,
    ABSConfig,
    RASConfig,
    WordsLVT,
    WordsLVTConfig,
)
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.models.sentence_extractors import (
    SentenceClassifier,
    SentenceExtractorConfig,
    SentencePointer,
)
from lib.models.seq2seq import RecurrentConfig, Seq2Seq, Seq2SeqConfig
from lib.models.t_dmca import TDMCA, CompressedLayer, TDMCAConfig
from lib.models.tlm import TLM, TLMConfig
from companion.pages.checks import Checks, gradients
from companion.pages.diagrams import show_model

torch.set_default_dtype(torch.float64)
checks = Checks()

# %% [markdown]
r"""
# The toy document

One document of three sentences is enough for all of them. Words are numbers: the vocabulary has 12, of which the first are symbols; 12 and 13 are two words of the text that the vocabulary does not have, and only a model that copies can write them. (TLM, the flat transformer and T-DMCA read pieces of words, none of which is unknown: they have 14.)
"""

# %%
V = 12
document = EncodedDocument.of(
    "toy", source=[4, 5, 12, 6, 7, 8, 9, 4, 13, 12, 5],
    sentence_lengths=[4, 2, 5], target=[12, 4, 13, 5, 3],
)  # fmt: skip
batch = make_batch([document], V)
source, target = document.source.tolist(), document.target.tolist()
inputs = [BOS, *target[:-1]]


# %%
def built(kind, config):
    """A model in double precision, with random weights: all attention is uneven."""
    torch.manual_seed(seed)
    model = kind(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def as_read(word):
    """A word as an embedding sees it."""
    return torch.tensor(word if word < V else UNK)


# %% jupyter={"source_hidden": true} tags=["remove-input"]
def compare(model, naive, equations):
    """log P of the summary, word by word, and all gradients: page and library."""
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    ours = model.log_prob(output, batch.target, state)[0]
    checks.close(naive, ours, equations, f"log P, {type(model).__name__}")
    used = {n: g for n, g in gradients_of(model, naive.sum()).items() if g is not None}
    theirs = gradients_of(model, ours.sum())
    checks.gradients(used, {name: theirs[name] for name in used}, equations)


def gradients_of(model, loss):
    names, parameters = zip(*model.named_parameters())
    found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    return dict(zip(names, found))


# %% [markdown]
r"""
# 1. Attn-Seq2Seq and Ptr-Gen-Seq2Seq

A bidirectional GRU over all words of the text, one GRU that writes, and attention between them: the model of Start here without its copying, and with it. They know no sentences: what Mem2Mem adds begins with a second level.

The score of a word, with the coverage $cov_{ti}=\sum_{t'<t}\alpha_{t'i}$ in Ptr-Gen alone:

$$\begin{gathered}e_{ti}=v^\top\tanh(W_hh_i+W_dh^{(d)}_t+w_{cov}\,cov_{ti}+b)\\
\alpha_t=\mathrm{softmax}(e_t),\qquad c_t=\sum_i\alpha_{ti}h_i\end{gathered}\tag{P1}$$

The vocabulary's probabilities, through a bottleneck, and the switch, with $x_t$ the embedding of the word before:

$$P_g=\mathrm{softmax}\bigl(V'(V[h^{(d)}_t;c_t]+b)+b'\bigr),\quad p_t=\sigma(w^\top[c_t;h^{(d)}_t;x_t]+b'')\tag{P2}$$

In Ptr-Gen both ways are mixed; Attn-Seq2Seq is $P_g$ alone:

$$P(y)=p_t\,P_g(y)+(1-p_t)\sum_{i:x_i=y}\alpha_{ti}\tag{P3}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("pointer_generator")


# %%
def p1_attention(h, state, coverage, a, copies):
    """States [n, d], one state [d], coverage [n] -> weights [n], context [d]."""
    hidden = [a.key(h_i) + a.query(state) for h_i in h]
    if copies:
        scores = [
            a.v @ torch.tanh(x + a.coverage * c) for x, c in zip(hidden, coverage)
        ]
    else:
        scores = [a.v(torch.tanh(x))[0] for x in hidden]
    alpha = torch.stack(scores).softmax(0)
    return alpha, alpha @ h


def p3_mixture(features, p, alpha, word, pointer):
    """log P of one word."""
    P = p * pointer.vocabulary(features).softmax(-1)
    generated = P[word] if word < V else 0.0
    return torch.log(
        generated + (1 - p) * sum(a for a, x in zip(alpha, source) if x == word)
    )


# %%
def seq2seq(model, copies):
    """log P of each word of the summary."""
    h, last = model.encoder(model.embedding(in_vocabulary(batch.source, V)))
    h, state, coverage = h[0], model.bridge(last.flatten()), torch.zeros(len(source))
    pointer, found = model.pointer, []
    for word, wanted in zip(inputs, target):
        x = model.embedding(as_read(word))
        state = model.decoder(x[None, None], state[None, None])[1].flatten()
        alpha, c = p1_attention(h, state, coverage, model.word_attention, copies)
        coverage = coverage + alpha
        features = pointer.bottleneck(torch.cat([state, c]))  # (P2)
        if copies:
            p = pointer.switch(torch.cat([c, state, x])).sigmoid()[0]
            found.append(p3_mixture(features, p, alpha, wanted, pointer))
        else:
            P_g = pointer.vocabulary(features).softmax(-1)
            found.append(P_g[as_read(wanted)].log())
    return torch.stack(found)


# %%
for copies in (False, True):
    model = built(Seq2Seq, Seq2SeqConfig(V, 5, 6, 4, copy=copies))
    log_p = seq2seq(model, copies)
    way = "with" if copies else "without"
    print(f"{way} copying: P of the summary's first word {log_p[0].exp():.3f}")
    compare(model, log_p, "(P1)-(P3)")
checks.line()

# %% [markdown]
r"""
**What to see.** Without copying the summary's first word, 12, counts as [UNK]: the first number is of a symbol that says nothing, the second of the word itself. (Weights are random: how large they are says nothing.)

**In the papers.** Copying and coverage are worth 4.3 points of R-1 in Mem2Mem's Table 1, and 5.1 here ([table](../docs/papers/mem2mem.md#table-1)).
"""

# %% [markdown]
r"""
# 2. Discourse-aware attention

Cohan and others (2018) read a paper as **sections**. One LSTM goes over the words of each section, another one over the sections, and the attention to words is scaled by an attention to sections. In both directions a section begins with the state in which the section before it ended.

$$h_{ji},\ \text{last}_j=\mathrm{BiLSTM}(x_{j1}\ldots x_{jn}\mid\text{last}_{j-1})\tag{C1}$$

$$s_j=\mathrm{ReLU}(W_r\,\text{last}_j+b)\tag{C2}$$

$$g_1\ldots g_S=\mathrm{BiLSTM}(s_1\ldots s_S)\tag{C3}$$

With $q_t=[\mathrm{cell}_t;h_t]$ of the decoder, the sections' weights, the words' scores and their weights:

$$\beta_t=\mathrm{softmax}_j\bigl(v_s^\top\tanh(W_{hs}g_j+W_{ss}q_t+b_s)\bigr)\tag{C4}$$

$$e_{tji}=v^\top\tanh(W_hh_{ji}+W_sq_t+w_{cov}\,cov_{tji}+b)\tag{C5}$$

$$\alpha_t=\mathrm{softmax}_{ji}(\beta_{tj}\,e_{tji}),\qquad c_t=\sum_{ji}\alpha_{tji}h_{ji}\tag{C6}$$

The last context enters the next input; output and switch are those of (P2), (P3), with the cell in the switch:

$$\begin{gathered}x_t=W[y_{t-1};c_{t-1}]+b,\qquad P_g\text{ from }[h_t;c_t]\\
p_t=\sigma(w^\top[c_t;\mathrm{cell}_t;h_t;x_t]+b'')\end{gathered}\tag{C7}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("discourse_aware")


# %%
def c1_to_c3(model):
    """Word states [n, d], states of sections [S, d], the decoder's first state."""
    carried, states, vectors, half = None, [], [], model.config.hidden // 2
    for words in rows_of(document):
        embedded = model.embedding(in_vocabulary(torch.tensor(words).long(), V))
        h, carried = model.word_encoder(embedded[None], carried)
        states.append(h[0])
        last = torch.cat([h[0, -1, :half], h[0, 0, half:]])
        vectors.append(torch.relu(model.reduce_section(last)))
    g, (hidden, cell) = model.section_encoder(torch.stack(vectors)[None])
    first = model.bridge_hidden(hidden.flatten()), model.bridge_cell(cell.flatten())
    return torch.cat(states), g[0], [torch.relu(x) for x in first]


# %%
def c4_to_c6(model, h, g, section_of, query, coverage):
    """Weights of all words [n]."""
    hidden = [model.section_key(g_j) + model.section_query(query) for g_j in g]
    beta = torch.cat([model.section_v(torch.tanh(x)) for x in hidden]).softmax(0)
    w_cov = model.word_coverage.weight[:, 0]
    hidden = [model.word_key(h_i) + model.word_query(query) for h_i in h]
    e = [model.word_v(torch.tanh(x + w_cov * c))[0] for x, c in zip(hidden, coverage)]
    return torch.stack([beta[j] * e_i for j, e_i in zip(section_of, e)]).softmax(0)


# %%
def discourse_aware(model):
    h, g, (s, cell) = c1_to_c3(model)
    section_of = [j for j, words in enumerate(rows_of(document)) for _ in words]
    c, coverage, found = torch.zeros(h.shape[1]), torch.zeros(len(h)), []
    for word, wanted in zip(inputs, target):
        x = model.input(torch.cat([model.embedding(as_read(word)), c]))  # (C7)
        s, cell = (state[0] for state in model.cell(x[None], (s[None], cell[None])))
        query = torch.cat([cell, s])
        alpha = c4_to_c6(model, h, g, section_of, query, coverage)
        c, coverage = alpha @ h, coverage + alpha
        features = model.pointer.bottleneck(torch.cat([s, c]))
        p = model.pointer.switch(torch.cat([c, cell, s, x])).sigmoid()[0]
        found.append(p3_mixture(features, p, alpha, wanted, model.pointer))
    return torch.stack(found)


model = built(DiscourseAware, RecurrentConfig(V, 5, 6, 4))
log_p = discourse_aware(model)
compare(model, log_p, "(C1)-(C7)")
checks.line(f"P of the summary's first word: {log_p[0].exp():.3f}")

# %% [markdown]
r"""
**What to see.** (C6) multiplies a *score*, not a probability: where all scores of a section are negative, a large $\beta$ makes its words less likely, not more. Mem2Mem's (3) multiplies probabilities instead.

**In the papers.** It is the closest to Mem2Mem: two levels, copying, no memory. In the paper Mem2Mem is 3.1 R-1 above it, here 0.6 below. What its released code does otherwise stands in [Mem2Mem's deviations](../docs/papers/mem2mem.md#deviations).
"""

# %% [markdown]
r"""
# 3. Sent-CLF and Sent-PTR (a reconstruction)

Two systems that choose sentences, of Subramanian, Li, Pilault and Pal (2020, *On Extractive and Abstractive Neural Document Summarization with Transformer Language Models*, [arXiv:1909.03186](https://arxiv.org/abs/1909.03186)). They learn from labels: for each sentence of the reference, the two sentences that are most like it. The equations are a reconstruction: we had no copy of that paper when we wrote them; [`docs/papers/mem2mem.md`](../docs/papers/mem2mem.md) says what else is our reading.

Both make a vector of each sentence $j$ from its pieces, the last states of a bidirectional LSTM, and with another one a state of the sentence in its document:

$$s_j=\mathrm{LSTM}\bigl(w_{j1},\dots,w_{jn_j}\bigr)_{\mathrm{last}}\tag{S1}$$

$$d_1,\dots,d_L=\mathrm{LSTM}\bigl(s_1,\dots,s_L\bigr)\tag{S2}$$

**Sent-CLF** judges each sentence by its state and a vector of the document, and takes the most probable ones:

$$\bar d=\tanh\Bigl(W_d\,\tfrac1L\sum_{j=1}^{L}d_j+b_d\Bigr),\qquad
P(j\text{ is extracted})=\sigma\bigl(w_o^\top[d_j;\bar d]+b_o\bigr)\tag{S3}$$

**Sent-PTR** points to one sentence after the other; its LSTM starts from the last state of (S2). Its attention *is* the probability of the next sentence; what it saw, $\tilde h$, enters the next step; it stops by pointing to the same sentence twice:

$$h_t=\mathrm{LSTM}\bigl([s_{i_{t-1}};\tilde h_{t-1}],\,h_{t-1}\bigr),\qquad
P(i_t=j)=\frac{\exp(d_j^\top h_t)}{\sum_{k}\exp(d_k^\top h_t)}\tag{S4}$$

$$\tilde h_t=\tanh\Bigl(W_h\bigl[\textstyle\sum_jP(i_t=j)\,d_j;\,h_t\bigr]\Bigr)\tag{S5}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("sentence_extractors")


# %%
def through(stack, x):
    """One sequence through an LSTM: states [n, d], last ones of each layer."""
    last = []
    for layer in stack.layers:
        states, (hidden, cell) = layer(x[None])
        x = states[0]
        last.append((hidden.flatten(), cell.flatten()))
    return x, last


# %%
def s1_s2(encoder):
    s = []
    for words in rows_of(document):
        pieces = in_vocabulary(torch.tensor(words).long(), V)
        s.append(through(encoder.words, encoder.embedding(pieces))[1][-1][0])
    return s, *through(encoder.sentences, torch.stack(s))


def s3_classifier(model):
    """Scores of the sentences, before the sigmoid: [L]."""
    _, d, _ = s1_s2(model.encoder)
    d_bar = torch.tanh(model.document.weight @ d.mean(0) + model.document.bias)
    return torch.cat([model.output(torch.cat([d_j, d_bar])) for d_j in d])


# %%
def s4_s5_pointer(model, chosen):
    """log P of pointing to these sentences, and then to the last one again."""
    s, d, hidden = s1_s2(model.encoder)
    previous, seen, found = torch.zeros_like(s[0]), torch.zeros_like(d[0]), []
    for number in [*chosen, chosen[-1]]:
        x, after = torch.cat([previous, seen]), []
        for lstm, (h, c) in zip(model.cells, hidden):
            gates = (
                lstm.weight_ih @ x + lstm.bias_ih + lstm.weight_hh @ h + lstm.bias_hh
            )
            i, f, g, o = gates.chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            x = o.sigmoid() * c.tanh()
            after.append((x, c))
        P = torch.stack([d_j @ x for d_j in d]).softmax(0)  # (S4)
        seen = torch.tanh(model.combine.weight @ torch.cat([P @ d, x]))  # (S5)
        found.append(P[number].log())
        hidden, previous = after, s[number]
    return torch.stack(found)


# %%
sizes = {"embedding": 5, "hidden": 6, "layers": 2, "dropout": 0.0}
classifier = built(SentenceClassifier, SentenceExtractorConfig(V, **sizes))
pointer = built(SentencePointer, SentenceExtractorConfig(V, **sizes))
scores = s3_classifier(classifier)
naive = s4_s5_pointer(pointer, [2, 0])

# %% jupyter={"source_hidden": true} tags=["remove-input"]
checks.close(scores, classifier.logits(batch)[0], "(S1)-(S3)", "Sent-CLF")
ours = pointer.log_prob(batch, [[2, 0]])[0]
checks.close(naive, ours, "(S4), (S5)", "Sent-PTR")
checks.gradients(
    gradients(pointer, naive.sum()), gradients(pointer, ours.sum()), "(S4), (S5)"
)
of_each = ", ".join(f"{probability:.3f}" for probability in scores.sigmoid())
checks.line(
    f"Sent-CLF extracts each sentence with P = {of_each};"
    f" Sent-PTR points to sentence 3, then 1, with P = {naive.sum().exp():.4f}."
)

# %% [markdown]
r"""
**What to see.** Nothing keeps Sent-CLF from taking two sentences that say the same. Sent-PTR knows what it has taken, and decides on the length itself.

**In the papers.** Mem2Mem's heads choose sentences as well, without labels. Sent-CLF is best in R-1 in the paper's table (45.0; Sent-PTR 43.3) and here (45.4; 27.5). `python -m lib.train mem2mem --preset demo --variant Sent-CLF` (or Sent-PTR) trains one.
"""

# %% [markdown]
r"""
# 4. TLM (a reconstruction)

A language model of the same authors with GPT-2's architecture, trained from scratch: no encoder, no cross attention, no copying. A paper is one sequence: its introduction, in the hybrid row the sentences that Sent-PTR has chosen, a symbol, the summary. The rest of the paper follows in windows of its own. The equations are a reconstruction, as in section 3. Each layer attends to the pieces before, then comes a feed-forward part, both after a normalisation:

$$Y=X+\mathrm{Attention}_{\le}\bigl(\mathrm{LN}(X)\bigr)\tag{S6}$$

$$X'=Y+W_2\,\mathrm{gelu}\bigl(W_1\,\mathrm{LN}(Y)+b_1\bigr)+b_2\tag{S7}$$

The loss is the mean over all pieces of a paper that have another before them:

$$\begin{gathered}\mathcal L=-\frac1n\sum_{t}\log P(x_t\mid x_{<t})\\
x=[\,\text{introduction};\ \texttt{<P>};\ \text{extract};\ \texttt{[BOS]};\ \text{summary}\,]\end{gathered}\tag{S8}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("tlm")


# %%
def s6_s7_layer(layer, x, heads):
    """One layer over the pieces of a sequence, a list of vectors."""
    a, size, result = layer.attention, len(x[0]) // heads, []
    y = [layer.norms[0](w) for w in x]
    q, k, v = ([f(w) for w in y] for f in (a.query, a.key, a.value))
    for t in range(len(x)):
        seen = []
        for z in range(0, heads * size, size):
            part = slice(z, z + size)
            e = [q[t][part] @ k[i][part] / math.sqrt(size) for i in range(t + 1)]
            weights = torch.stack(e).softmax(0)
            seen.append(sum(w * v[i][part] for i, w in enumerate(weights)))
        h = x[t] + a.output(torch.cat(seen))
        inner = F.gelu(layer.inner(layer.norms[1](h)), approximate="tanh")
        result.append(h + layer.outer(inner))
    return result


# %%
def tlm(model, sequence):
    """log P of what follows each piece: [n, V]."""
    embed, position = model.embedding.weight, model.position.weight
    x = [embed[w] + position[t] for t, w in enumerate(sequence)]
    for layer in model.layers:
        x = s6_s7_layer(layer, x, model.config.heads)
    return torch.stack([model.output.weight @ model.norm(w) for w in x]).log_softmax(-1)


# %%
introduction = rows_of(document)[0].tolist()  # the first row; the others are windows
sizes = {"width": 8, "heads": 2, "inner": 10, "layers": 2, "window": 20}
model = built(TLM, TLMConfig(14, **sizes, dropout=0.0))
pieces = make_batch([document], 14)
log_p = tlm(model, [*introduction, *inputs])[len(introduction) :]
naive = log_p[range(len(target)), target]

# %% jupyter={"source_hidden": true} tags=["remove-input"]
state = model.encode(pieces)
output, _ = model.decode(pieces.target_input, state)
ours = model.log_prob(output, pieces.target, state)[0]
checks.close(naive, ours, "(S6), (S7)", "TLM")
every = [*tlm(model, [*introduction, *inputs]).unbind()][: len(introduction) - 1]
read = [row[piece] for row, piece in zip(every, introduction[1:])]
rest = [
    row[piece]
    for words in rows_of(document)[1:]
    for row, piece in zip(tlm(model, words.tolist()), words.tolist()[1:])
]
whole = torch.stack([*read, *naive, *rest])
checks.close(-whole.mean(), model.train().loss(pieces)["loss"], "(S8)", "TLM")
of_pieces = ", ".join(f"{log_probability:.2f}" for log_probability in naive)
checks.line(f"log P of the summary's pieces: {of_pieces}")

# %% [markdown]
r"""
**In the papers.** With 16 times Mem2Mem's parameters the hybrid is level with it. Here both have 0.8M, and after 600 steps it is 5.6 R-1 below ([table](../docs/papers/mem2mem.md#table-1)): that does not test the paper's claim.
"""

# %% [markdown]
r"""
# 5. ABS

The model of Rush, Chopra and Weston (2015) has no recurrence. The last $C$ words of the headline go through one hidden layer; they also attend to the source words, and what is summed with these weights are the words' vectors averaged over $Q$ neighbours on each side. There is no copying. $\tilde y_C$ and $\tilde y'_C$ are the concatenated embeddings of these $C$ words, each from a table of its own; $\tilde x$ are the embeddings of the source words, $\bar x_i$ the averaged ones; $U$, $V$, $W$ and, in (A2), $P$ are matrices.

$$P(w)\propto\exp\big(Vh+W\,\mathrm{enc}(x,\tilde y'_C)\big)_w,\qquad h=\tanh(U\tilde y_C)\tag{A1}$$

$$\mathrm{enc}=\sum_ip_i\bar x_i,\qquad p=\mathrm{softmax}(\tilde x^\top P\tilde y'_C)\tag{A2}$$
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("abs")


# %%
def abs_scores(x, context, model):
    """Source vectors [n, H], ids of the last C words -> scores of the vocabulary."""
    U, P, V = model.hidden.weight, model.attention.weight, model.vocabulary.weight
    y, y_attending = model.target_embedding.weight, model.attending.weight
    h = torch.tanh(U @ y[context].flatten() + model.hidden.bias)
    p = torch.softmax(x @ (P @ y_attending[context].flatten()), 0)
    Q = model.config.smoothing
    means = torch.stack([x[max(0, i - Q) : i + Q + 1].mean(0) for i in range(len(x))])
    return V @ h + model.vocabulary.bias + model.from_encoder.weight @ (p @ means)


model = built(ABS, ABSConfig(V, V, embedding=3, hidden=4, context=2, smoothing=1))
heard = [BOS, *(as_read(word).item() for word in inputs)]  # C - 1 [BOS] in front
x = model.source_embedding(in_vocabulary(batch.source[0], V))
contexts = [torch.tensor(heard[t : t + 2]) for t in range(len(inputs))]
log_p = torch.stack(
    [abs_scores(x, context, model) for context in contexts]
).log_softmax(1)
naive = torch.stack([row[as_read(word)] for row, word in zip(log_p, target)])
compare(model, naive, "(A1), (A2)")

# %% jupyter={"source_hidden": true} tags=["remove-input"]
checks.line(f"P of the headline's second word, 4: {naive[1].exp():.3f}")

# %% [markdown]
r"""
**What to see.** The context is always $C$ words: what was written before them is forgotten.

**In the papers.** Read-Again's outside baseline. On Reuters it has 10.1 R-1, models with a recurrent encoder and no copying 11.3 to 14.2 ([table](../docs/papers/read_again.md#table-1)).
"""

# %% [markdown]
r"""
# 6. RAS (a reconstruction)

RAS (Chopra, Auli and Rush 2016) keeps the encoder without recurrence and takes a recurrent decoder. A learned embedding $l_i$ of the position is added to each word $x_i$, and a convolution over $q=5$ words makes the aggregate vectors $z_i$:

$$a_i=x_i+l_i,\qquad z_{ik}=\sum_{h=-\lfloor q/2\rfloor}^{\lfloor q/2\rfloor}a_{i+h}\cdot b^k_{\lfloor q/2\rfloor+h},\qquad k=1,\dots,d\tag{R19}$$

These say only where to look; the context is the weighted mean of the *word* embeddings:

$$\alpha_{t-1,i}=\frac{\exp(z_i\cdot h_{t-1})}{\sum_j\exp(z_j\cdot h_{t-1})},\qquad c_t=\sum_i\alpha_{t-1,i}\,x_i\tag{R20}$$

The context and the last word make the next state, in Elman's network with a sigmoid and no gates; in the LSTM the gates $i,f,o$ and the proposal $i'$ see the same three vectors:

$$\begin{gathered}h_t=\sigma(W_1y_{t-1}+W_2h_{t-1}+W_3c_t)\\
\text{or}\quad m_t=f_t\odot m_{t-1}+i_t\odot i'_t,\;\;h_t=o_t\odot m_t\end{gathered}\tag{R21}$$

$$P(y_t\mid y_{<t},x)=\mathrm{softmax}(W_4h_t+W_5c_t)\tag{R22}$$

The equations are a reconstruction, written without the paper at hand; [`docs/papers/read_again.md`](../docs/papers/read_again.md) says which of them another source confirms.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("ras")


# %%
def aggregate_vectors(x, model):
    """(R19): words outside the text are zeros."""
    a = [x_i + model.position_embedding.weight[i] for i, x_i in enumerate(x)]
    b, q, z = model.convolution.weight, model.config.filter_width, []
    for i in range(len(x)):
        places = [h for h in range(q) if 0 <= i + h - q // 2 < len(x)]
        z.append(sum(b[:, :, h] @ a[i + h - q // 2] for h in places))
    return torch.stack(z)


# %%
def ras(model):
    d, x = (
        model.config.hidden,
        model.source_embedding(in_vocabulary(batch.source[0], V)),
    )
    z, h, m, found = aggregate_vectors(x, model), torch.zeros(d), torch.zeros(d), []
    W_1, W_3, W_2 = model.cell.weight.split(d, 1)
    for word, wanted in zip(inputs, target):
        c = (z @ h).softmax(0) @ x  # (R20)
        y = model.target_embedding(as_read(word))
        gates = W_1 @ y + W_2 @ h + W_3 @ c + model.cell.bias
        h, m = eqR21_state(gates, m, model.config.decoder)
        scores = model.vocabulary(torch.cat([h, c]))  # (R22)
        found.append(scores.log_softmax(0)[as_read(wanted)])
    return torch.stack(found)


# %%
def eqR21_state(gates, m, decoder):
    if decoder == "elman":
        return gates.sigmoid(), m
    i, proposal, f, o = gates.chunk(4)
    m = m * f.sigmoid() + i.sigmoid() * proposal.tanh()
    return m * o.sigmoid(), m


for decoder in ("elman", "lstm"):
    model = built(RAS, RASConfig(V, V, 12, hidden=4, decoder=decoder))
    compare(model, ras(model), "(R19)-(R22)")
checks.line("Elman's network and the LSTM, word by word:")

# %% [markdown]
r"""
**What to see.** RAS never reads a word in the light of the whole sentence: it knows a place only by five words. And it cannot copy: a name outside its vocabulary is lost.

**In the papers.** In the published table the simpler recurrence, Elman's, is the better one (28.97 and 27.41 R-1), and both are above ABS (26.55). Here neither is: 7.1 and 6.1, ABS 9.6 ([table](../docs/papers/read_again.md#table-2)).
"""

# %% [markdown]
r"""
# 7. words-lvt2k and words-lvt5k

An ordinary encoder-decoder with attention (Nallapati and others 2016) that uses the *large vocabulary trick* of Jean and others (2015). The vocabulary $Y$ has 69,000 words (200,000 in the second row), but for a batch $B$ only $n=2{,}000$ (5,000) of them are scored: the words of the batch's texts, and the most frequent others.

$$Y_B=\underbrace{\textstyle\bigcup_{x\in B}\{x_1,\dots,x_N\}\cap Y}_{\text{words of the texts}}\;\cup\;\{\text{the most frequent others}\},\;|Y_B|=n\tag{R23}$$

$$P(y_t=w)=\frac{\exp(o_w^\top[s_t;c_t]+b_w)}{\sum_{v\in Y_B}\exp(o_v^\top[s_t;c_t]+b_v)},\quad w\in Y_B\tag{R24}$$

A word that is not in $Y_B$ counts as [UNK]. The additive score, first state and output layer are this project's interpretation.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("words_lvt")


# %%
def eqR23_candidates(count):
    """Symbols and words of the text, then frequent others: ids are by frequency."""
    chosen = sorted({0, 1, 2, 3} | {word for word in source if word < V})[:count]
    others = [word for word in range(V) if word not in chosen]
    return sorted(chosen + others[: count - len(chosen)])


# %%
def words_lvt(model, candidates):
    h, last = model.encoder(model.source_embedding(in_vocabulary(batch.source, V)))
    h, s, a, found = h[0], torch.tanh(model.bridge(last.flatten())), model.attention, []
    for word, wanted in zip(inputs, target):
        e = [a.v(torch.tanh(a.query(s) + a.key(h_i)))[0] for h_i in h]
        c = torch.stack(e).softmax(0) @ h
        x = torch.cat([model.target_embedding(as_read(word)), c])
        s = model.decoder(x[None], s[None])[0]
        scores = model.vocabulary(torch.cat([s, c]))[candidates]  # (R24)
        place = candidates.index(wanted if wanted in candidates else UNK)
        found.append(scores.log_softmax(0)[place])
    return torch.stack(found)


# %%
model = built(WordsLVT, WordsLVTConfig(V, V, candidates=11, embedding=3, hidden=4))
candidates = eqR23_candidates(11)
compare(model, words_lvt(model, candidates), "(R23), (R24)")
checks.line(f"Of 12 words, 11 are scored for this text: {candidates}")

# %% [markdown]
r"""
**What to see.** Read-Again's small vocabulary with copying is one way to write the words of a text; this is another. Here a word can be written only if it is in the large vocabulary.

**In the papers.** Read-Again is 1.5 R-1 above words-lvt2k, and 10.6 here ([table](../docs/papers/read_again.md#table-2)).
"""

# %% [markdown]
r"""
# 8. The flat transformer

FT of the hierarchical paper is its model for a text that is one paragraph: title and best paragraphs one after the other, cut to 600, 800 or 1,200 pieces, through six local layers and no global one. So there is no equation of its own: every piece attends to every other in each layer, and a text twice as long needs four times the attention.
"""

# %%
sizes = {"width": 8, "heads": 2, "inner": 12, "local_layers": 2, "dropout": 0.0}
flat = built(
    HierarchicalTransformer, HierarchicalTransformerConfig(14, global_layers=0, **sizes)
)
rows = make_batch([document], 14)
one_row = make_batch([EncodedDocument.of("flat", source, [len(source)], target)], 14)
for name, text in (("three paragraphs", rows), ("one row", one_row)):
    print(f"{name}: {flat.loss(text)['nll']:.4f} nats a piece")

# %% [markdown]
r"""
**What to see.** The same weights on the same words have two losses: without global layers, paragraphs that are rows of their own cannot see each other, and one row can. Towns, on the [hierarchical page](hierarchical_transformer.ipynb), shows what each of the two can learn.
"""

# %% [markdown]
r"""
# 9. T-DMCA

T-DMCA (Liu and others 2018, *Generating Wikipedia by Summarizing Long Sequences*, [arXiv:1801.10198](https://arxiv.org/abs/1801.10198)) is a language model over up to 3,000 pieces of source and the summary: each piece sees only what comes before it. Two kinds of layers make that cheap. The equations are ours; places count from 0, and $s$ is the width of a head.

In the first kind, a piece $t$ attends to itself and to the pieces before it in its own block of 256 pieces:

$$\mathrm{softmax}_{j\in B(t)}\Bigl(\tfrac{q_t\cdot k_j}{\sqrt s}\Bigr)\text{ over }v_j,\qquad B(t)=\{j\le t:\lfloor j/256\rfloor=\lfloor t/256\rfloor\}\tag{D1}$$

In the second kind it attends to the whole past, of which a convolution of width and stride 3 makes one key and one value of every three:

$$\kappa_m=C_k[k_{3m};k_{3m+1};k_{3m+2}]+b_k,\qquad\nu_m=C_v[v_{3m};v_{3m+1};v_{3m+2}]+b_v\tag{D2}$$

It sees the groups of three that end before it, and the first piece as it is, because that is there before any group is complete:

$$\mathrm{softmax}_{m}\Bigl(\tfrac{q_t\cdot\kappa_m}{\sqrt s}\Bigr)\text{ over }\nu_m,\quad3m+2<t,\quad\kappa_{-1}=k_0,\ \nu_{-1}=v_0\tag{D3}$$

The layers take turns: (D1), (D3), (D1), (D3), (D1). Blocks and convolution are from the paper; how (D3) treats the first piece and the groups, and the normalisation before each part, are from its authors' code. Their mixture of experts is left out, because the table's row, of five layers of 512 and 2,048, mentions none.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
show_model("t_dmca")


# %%
def keys_and_values(layer, t, k, v):
    """What piece t sees: (D1), or (D2) and (D3)."""
    c = layer.config
    if not isinstance(layer, CompressedLayer):
        return k[t // c.block * c.block : t + 1], v[t // c.block * c.block : t + 1]
    groups = [
        slice(m, m + c.stride)
        for m in range(0, len(k), c.stride)
        if m + c.stride - 1 < t
    ]
    kappa = [layer.compress_key(torch.cat(k[group])) for group in groups]
    nu = [layer.compress_value(torch.cat(v[group])) for group in groups]
    return [k[0], *kappa], [v[0], *nu]


# %%
def t_dmca_layer(layer, x):
    heads, size, result = (
        layer.config.heads,
        layer.config.width // layer.config.heads,
        [],
    )
    y = [layer.norms[0](w) for w in x]
    q, k, v = ([f(w) for w in y] for f in (layer.query, layer.key, layer.value))
    for t in range(len(x)):
        keys, values = map(torch.stack, keys_and_values(layer, t, k, v))
        parts = [slice(z, z + size) for z in range(0, heads * size, size)]
        e = [keys[:, part] @ q[t][part] / math.sqrt(size) for part in parts]
        seen = [w.softmax(0) @ values[:, part] for w, part in zip(e, parts)]
        h = x[t] + layer.output(torch.cat(seen))
        result.append(h + layer.feed_forward(layer.norms[1](h)))
    return result


# %%
def position(t, width):
    """Sine and cosine of each frequency in turn."""
    angles = [t / 10_000 ** (2 * i / width) for i in range(width // 2)]
    return torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)])


def t_dmca(model, sequence):
    """log P of what follows each piece: [n, V]."""
    E, width = model.embedding.weight, model.config.width
    x = [E[w] * math.sqrt(width) + position(t, width) for t, w in enumerate(sequence)]
    for layer in model.layers:
        x = t_dmca_layer(layer, x)
    return torch.stack([E @ model.norm(w) + model.bias for w in x]).log_softmax(-1)


sizes = {"width": 8, "heads": 2, "inner": 12, "layers": 4, "block": 4, "stride": 3}
model = built(TDMCA, TDMCAConfig(14, **sizes))
log_p = t_dmca(model, [*source, *inputs])[len(source) :]
naive = log_p[range(len(target)), target]

# %% jupyter={"source_hidden": true} tags=["remove-input"]
state = model.encode(one_row)
output, _ = model.decode(one_row.target_input, state)
checks.close(
    naive, model.log_prob(output, one_row.target, state)[0], "(D1)-(D3)", "T-DMCA"
)
checks.line(f"P of the summary's first piece: {naive[0].exp():.3f}")

# %% [markdown]
r"""
**In the papers.** It reads 3,000 pieces, FT at most 1,200, and is the strongest baseline of the hierarchical paper's Table 2 (40.77 R-1; FT at best 40.56, HT 40.82). It was not trained here.

# All comparisons

Every system above but the flat transformer, which is the hierarchical page's model, was computed twice in double precision: on this page word by word, and by the library. Gradients are compared too, except those of Sent-CLF, TLM and T-DMCA.
"""

# %% jupyter={"source_hidden": true} tags=["remove-input"]
checks.table()
