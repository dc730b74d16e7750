"""Mem2Mem's picture, and those of the systems that it is compared with: Sent-CLF and Sent-PTR, which have one encoder
and two ways to choose, and TLM."""

from companion.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture, Part

BOTH = "attention over words and sentences"

PICTURE = ModelPicture(
    "Mem2Mem",
    "Mem2Mem. The encoder, above: the words become word states, equation 1, and sentence states, 2 and 4; the write "
    "attention makes a memory of r slots of them, 5, which the decoder takes over as its own. One step of the "
    "decoder, below: the word before makes the decoder state; with it the decoder memory is written, 8 to 10, and "
    "read, 7; the state after reading attends to words and sentences, 3, 16 and 17; copying, 14, and generating are "
    "mixed by the switch, 13, into the next word, 15.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_N$"),
        "word states": Box("states", 1, 0, "$h^{(w)}_i$"),
        "sentence states": Box("states", 2, 0, "$h^{(s)}_j,\\ \\mathbf{H}$"),
        "write attention": Box("attention", 4, 0, "$\\mathbf{A}$"),
        "encoder memory": Box("memory", 5, 0, "$\\mathbf{M}_E$"),
        BOTH: Box("attention", 1.5, 1, "$\\alpha_t,\\ \\beta_t,\\ \\gamma_t,\\ c_t$", columns=2),
        "state after reading": Box("states", 3, 1, "$h^{(m)}_t$"),
        "read attention": Box("attention", 4, 1, "$\\psi_t,\\ m_t$"),
        "decoder memory": Box("memory", 5, 1, "$\\mathbf{M}_D$"),
        "copy": Box("output", 1, 2, "$P_c$"),
        "generate, switch": Box("output", 2, 2, "$P_g,\\ p_t$"),
        "decoder state": Box("states", 4, 2, "$h^{(d)}_t$"),
        "next word": Box("output", 1, 3, "$P$"),
        "word before": Box("text", 4, 3, "$x^{\\prime}_t$"),
    },
    (
        Arrow("words", "word states", (1,), "$N\\times d$"),
        Arrow("word states", "sentence states", (2, 4), "$L\\times d$"),
        Arrow("sentence states", "write attention", (5,), "$r\\times L$"),
        Arrow("write attention", "encoder memory", (5,), "$r\\times d$"),
        Arrow("encoder memory", "decoder memory", (), "transfer", **DOWN),
        Arrow("word before", "decoder state", (), "$d$", **UP),
        Arrow("decoder state", "decoder memory", (8, 9, 10), "$r\\times d$", ("right", 0.5), ("bottom", 0.5)),
        Arrow("read attention", "decoder memory", (8, 9, 10), "", ("right", 0.7), ("left", 0.7), plain=True),
        Arrow("decoder memory", "read attention", (7,), "", ("left", 0.3), ("right", 0.3)),
        Arrow("decoder state", "read attention", (7,), "$r$", **UP),
        Arrow("read attention", "state after reading", (7,), "$d$", **BACK),
        Arrow("decoder state", "state after reading", (7,), "", ("left", 0.5), ("bottom", 0.7), plain=True),
        Arrow("state after reading", BOTH, (3, 17), "", **BACK),
        Arrow("word states", BOTH, (16, 17), "$N$", ("bottom", 0.5), ("top", None)),
        Arrow("sentence states", BOTH, (3,), "$L$", ("bottom", 0.5), ("top", None)),
        Arrow(BOTH, "copy", (14,), "", ("bottom", None), ("top", 0.5)),
        Arrow("words", "copy", (14,), "", ("bottom", 0.5), ("left", 0.5), plain=True),
        Arrow(BOTH, "generate, switch", (13,), "$V$", ("bottom", None), ("top", 0.5)),
        Arrow("state after reading", "generate, switch", (13,), "", ("bottom", 0.3), ("right", 0.3), plain=True),
        Arrow("word before", "generate, switch", (13,), "", ("left", 0.5), ("right", 0.7), plain=True),
        Arrow("copy", "next word", (15,), "", **DOWN),
        Arrow("generate, switch", "next word", (15,), "", ("bottom", 0.5), ("right", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 5), (0, 0), at=3), Frame("decoder, step $t$", (0, 5), (1, 3), at=5)),
    {6: ("write attention",), 11: ("read attention", BOTH), 12: ("next word",)},  # the losses
)

EXTRACTED, LAST, NEXT = "is extracted", "sentence before", "next sentence"

SENTENCE_EXTRACTORS = ModelPicture(
    "Sent-CLF and Sent-PTR",
    "Sent-CLF and Sent-PTR. Their encoder, above: the pieces of each sentence become a vector, equation S1, and "
    "these become states of the sentences in their document, S2. Sent-CLF, beside it: the mean of the states makes a "
    "vector of the document, and both give the probability of each sentence, S3. One step of Sent-PTR, below: the "
    "vector of the sentence before and what was seen then make the pointer's state, whose attention to the "
    "sentences' states is the probability of the next one, S4; what it sees is kept for the next step, S5.",
    {
        "sentences": Box("text", 0, 0, "$w_{j1}\\ldots w_{jn}$"),
        "sentence vectors": Box("states", 1, 0, "$s_j$"),
        "sentence states": Box("states", 2, 0, "$d_j$"),
        "document": Box("states", 3, 0, "$\\bar{d}$"),
        EXTRACTED: Box("output", 4, 0, "$P(j)$"),
        LAST: Box("text", 1, 1, "$s_{i_{t-1}}$"),
        "pointer state": Box("states", 2, 1, "$h_t$"),
        "attention": Box("attention", 3, 1, "$d_j^\\top h_t$"),
        NEXT: Box("output", 4, 1, "$P(i_t=j)$"),
        "what it saw": Box("states", 3, 2, "$\\tilde{h}_t$"),
    },
    (
        Arrow("sentences", "sentence vectors", (1,), "$L\\times d$"),
        Arrow("sentence vectors", "sentence states", (2,), "$L\\times d$"),
        Arrow("sentence states", "document", (3,), "$d$"),
        Arrow("document", EXTRACTED, (3,), "$L$"),
        Arrow("sentence states", EXTRACTED, (3,), "", ("top", 0.8), ("top", 0.5), plain=True, beyond=10),
        Arrow("sentence vectors", LAST, (), "of one", **DOWN),
        Arrow(LAST, "pointer state", (4,), "$d$"),
        Arrow("sentence states", "attention", (4,), "", ("bottom", 0.7), ("top", 0.5), plain=True),
        Arrow("pointer state", "attention", (4,), "$L$"),
        Arrow("attention", NEXT, (4,), "$L$"),
        Arrow("attention", "what it saw", (5,), "$d$", **DOWN),
        Arrow("pointer state", "what it saw", (5,), "", ("bottom", 0.7), ("left", 0.3), plain=True),
        Arrow("what it saw", "pointer state", (4,), "$t+1$", ("left", 0.7), ("bottom", 0.3)),
    ),
    (
        Frame("encoder", (0, 2), (0, 0)),
        Frame("Sent-CLF", (3, 4), (0, 0), at=4),
        Frame("Sent-PTR, step $t$", (1, 4), (1, 2), at=4),
    ),
    letter="S",
)

INTRODUCTION, EXTRACT, ABSTRACT, REST = 9, 6, 7, 6  # pieces that are drawn
SEQUENCE = INTRODUCTION + EXTRACT + ABSTRACT
PIECES, ATTENTION, KEPT = "a paper in pieces", "attention to the pieces before", "keys and values"
SAYS = "row: the piece that looks; column: what it sees"


def _causal(*sequences: int) -> tuple[str, ...]:
    """Each piece sees itself and those before it in its own sequence."""
    n, begins = sum(sequences), [sum(sequences[:i]) for i in range(len(sequences))]
    rows = [(begin, begin + t + 1) for begin, length in zip(begins, sequences) for t in range(length)]
    return tuple("." * begin + "#" * (end - begin) + "." * (n - end) for begin, end in rows)


TLM = ModelPicture(
    "TLM",
    "TLM. Above, a paper as pieces in a row: introduction, the sentences that were extracted, the summary, and apart "
    "from these, in windows of their own, the rest of the paper. Below, each row a piece and each column what it may "
    "see: a triangle over introduction, extract and summary, and another one over a window of the rest. Pieces with "
    "positions, of the layer below, give keys and values, which are kept while a summary is written; attention to "
    "them, equation S6, and a feed-forward part, S7, make the states of the next layer, and the last ones the next "
    "piece.",
    {
        PIECES: Box(
            "text", 2, 0, "$x_1\\ldots x_n$", columns=5, words=SEQUENCE + REST,
            parts=(
                Part(0, INTRODUCTION, "text", "introduction"),
                Part(INTRODUCTION, INTRODUCTION + EXTRACT, "text", "<P> extract"),
                Part(INTRODUCTION + EXTRACT, SEQUENCE, "output", "[BOS] summary"),
                Part(SEQUENCE, SEQUENCE + REST, "text", "rest"),
            ),
        ),
        ATTENTION: Box("attention", 2, 1.585, SAYS, columns=5, rows=2.9, mask=_causal(SEQUENCE, REST)),
        "pieces with positions": Box("states", 5, 0, "$X$"),
        KEPT: Box("memory", 5, 1, "$K,\\ V$"),
        "states": Box("states", 5, 2, "$X'$"),
        "next piece": Box("output", 5, 3, "$P$"),
    },
    (
        Arrow(PIECES, "pieces with positions", (), "$n\\times d$"),
        Arrow("pieces with positions", KEPT, (6,), "$n\\times d$", **DOWN),
        Arrow(KEPT, ATTENTION, (6,), "", ("left", 0.5), ("right", None)),
        Arrow(ATTENTION, "states", (7,), "", ("right", None), ("left", 0.5)),
        Arrow("states", KEPT, (), "20 layers", ("top", 0.5), ("bottom", 0.5)),
        Arrow("states", "next piece", (), "$V$", **DOWN),
    ),
    beside={8: ("next piece",)},
    letter="S",
)  # fmt: skip

POINTER_GENERATOR = ModelPicture(
    "Attn-Seq2Seq and Ptr-Gen-Seq2Seq",
    "Attn-Seq2Seq and Ptr-Gen-Seq2Seq. The words become word states. One step of the decoder: the word before makes "
    "the decoder state, which attends to the word states, equation P1; both make the vocabulary's probabilities and, "
    "in Ptr-Gen with the word before, the switch, P2, which mixes them with what attention copies, P3, into the next "
    "word.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_N$"),
        "word states": Box("states", 1, 0, "$h_i$"),
        "attention": Box("attention", 1, 1, "$\\alpha_t,\\ c_t$"),
        "generate, switch": Box("output", 2.5, 1, "$P_g,\\ p_t$"),
        "copy": Box("output", 0, 1, "$\\sum\\alpha_{ti}$"),
        "decoder state": Box("states", 4, 1, "$h^{(d)}_t$"),
        "next word": Box("output", 1, 2, "$P$"),
        "word before": Box("text", 4, 2, "$y_{t-1}$"),
    },
    (
        Arrow("words", "word states", (), "$N\\times d$"),
        Arrow("word states", "attention", (1,), plain=True, **DOWN),
        Arrow("words", "copy", (3,), "", **DOWN),
        Arrow("word before", "decoder state", (), "$d$", **UP),
        Arrow("decoder state", "attention", (1,), "$N$", ("top", 0.5), ("top", 0.8)),
        Arrow("decoder state", "generate, switch", (2,), "$V$", **BACK),
        Arrow("attention", "generate, switch", (2,), "$d$"),
        Arrow("attention", "copy", (3,), "", **BACK),
        Arrow("copy", "next word", (3,), "", ("bottom", 0.5), ("left", 0.5)),
        Arrow("generate, switch", "next word", (3,), "", ("bottom", 0.5), ("right", 0.5), plain=True),
        Arrow("word before", "generate, switch", (2,), "", ("left", 0.5), ("bottom", 0.8), plain=True),
    ),
    (Frame("encoder", (0, 4), (0, 0), at=2), Frame("decoder, step $t$", (0, 4), (1, 2), at=2)),
    letter="P",
)

TO_WORDS = "attention to words"

DISCOURSE_AWARE = ModelPicture(
    "Discourse-aware attention",
    "Discourse-aware attention. The words of each section become word states, equation C1, and their last ones a "
    "section's vector, C2; over these go section states, C3. One step of the decoder: the word before and the last "
    "context, C7, make the decoder state; it attends to sections, C4, and scores words, C5; the sections' weights "
    "scale the scores, C6; copying and generating are mixed into the next word.",
    {
        "words": Box("text", 0, 0, "$x_{j1}\\ldots x_{jn}$"),
        "word states": Box("states", 1, 0, "$h_{ji}$"),
        "section vectors": Box("states", 2.5, 0, "$s_j$"),
        "section states": Box("states", 4, 0, "$g_j$"),
        TO_WORDS: Box("attention", 1, 1, "$e_t,\\ \\alpha_t,\\ c_t$"),
        "section weights": Box("attention", 4, 1, "$\\beta_t$"),
        "next word": Box("output", 0, 2, "$P$"),
        "decoder state": Box("states", 2.5, 2, "$h_t$, cell"),
        "word before": Box("text", 4, 2, "$y_{t-1}$"),
    },
    (
        Arrow("words", "word states", (1,), "$N\\times d$"),
        Arrow("word states", "section vectors", (2,), "$S\\times d$"),
        Arrow("section vectors", "section states", (3,), "$S\\times d$"),
        Arrow("word states", TO_WORDS, (5,), "$N$", **DOWN),
        Arrow("section states", "section weights", (4,), "$S$", **DOWN),
        Arrow("section weights", TO_WORDS, (6,), "$N$", **BACK),
        Arrow("decoder state", TO_WORDS, (5,), "", ("left", 0.3), ("bottom", 0.7), plain=True),
        Arrow("decoder state", "section weights", (4,), "", ("top", 0.7), ("left", 0.8), plain=True),
        Arrow(TO_WORDS, "decoder state", (7,), "$t+1$", ("bottom", 0.3), ("left", 0.7)),
        Arrow("word before", "decoder state", (7,), "$d$", **BACK),
        Arrow(TO_WORDS, "next word", (7,), "", ("left", 0.5), ("top", 0.5)),
        Arrow("decoder state", "next word", (7,), "", ("bottom", 0.5), ("bottom", 0.5), plain=True, beyond=10),
    ),
    (Frame("encoder", (0, 4), (0, 0), at=2), Frame("decoder, step $t$", (0, 4), (1, 2), at=4)),
    letter="C",
)

COMPARED = {
    "pointer_generator": POINTER_GENERATOR,
    "discourse_aware": DISCOURSE_AWARE,
    "sentence_extractors": SENTENCE_EXTRACTORS,
    "tlm": TLM,
}
