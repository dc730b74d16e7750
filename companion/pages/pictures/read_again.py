"""Read-Again's picture, and those of the systems that it is compared with: ABS, RAS and words-lvt2k."""

from companion.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture, Part

CONTEXT, SCORES = "embeddings from context", "generate, copy"

PICTURE = ModelPicture(
    "Read-Again",
    "Read-Again. The encoder, above: the first read, equations 1 to 3 of a GRU or 7 of an LSTM, ends in a vector of "
    "the text; word, state and text vector give the importance of each word, 5, which steers the second read of a "
    "GRU, 4 and 6; that of an LSTM is told them, 8, or the vectors of several sentences, 9 to 11. One step of the "
    "decoder, below: attention to the second read from the state before, 13 and 14, and the word before make the "
    "decoder state, 12; a word outside the vocabulary is embedded from its context, 15; scores for generating and "
    "for copying, 16, share one softmax, 17.",
    {
        "importance": Box("attention", 1, 0, "$\\alpha_i$"),
        "words": Box("text", 0, 1, "$\\mathbf{x}_i$"),
        "first read": Box("states", 1, 1, "$h^1_i$"),
        "text vector": Box("states", 2, 1, "$h^1_n$"),
        "several sentences": Box("states", 3, 1, "$h_{global}$"),
        "second read": Box("states", 2, 2, "$h^2_i$"),
        CONTEXT: Box("memory", 2, 3.25, "$\\mathbf{p}_i$"),
        "word before": Box("text", 3, 3.25, "$\\mathbf{y}_{t-1}$"),
        "attention": Box("attention", 4, 3.25, "$\\beta_t,\\ c_t$"),
        "next word": Box("output", 1, 4.25, "$P$"),
        SCORES: Box("output", 2, 4.25, "$g_w,\\ k_i$"),
        "decoder state": Box("states", 3, 4.25, "$s_t$"),
    },
    (
        Arrow("words", "first read", (1, 2, 3, 7), "$n\\times d$"),
        Arrow("first read", "text vector", (), "$d$"),
        Arrow("text vector", "several sentences", (10,), "$d$"),
        Arrow("first read", "importance", (5,), "$n\\times d$", **UP),
        Arrow("text vector", "importance", (5,), "", ("top", 0.5), ("right", 0.5), plain=True),
        Arrow("words", "importance", (5,), "", ("top", 0.5), ("left", 0.7), plain=True),
        Arrow("importance", "second read", (4, 6), "$n\\times d$", ("left", 0.3), ("left", 0.85), beyond=163),
        Arrow("words", "second read", (4, 6, 8, 9, 11), "", ("bottom", 0.5), ("left", 0.5), plain=True),
        Arrow("first read", "second read", (8, 9, 11), "", ("bottom", 0.7), ("left", 0.15), plain=True),
        Arrow("text vector", "second read", (8, 9, 11), "$n\\times d$", **DOWN),
        Arrow("several sentences", "second read", (9, 11), "", ("bottom", 0.5), ("right", 0.3)),
        Arrow("second read", CONTEXT, (15,), "$n\\times e$", **DOWN),
        Arrow("second read", "attention", (13, 14), "$n$", ("right", 0.7), ("top", 0.5)),
        Arrow("decoder state", "attention", (14,), "", ("right", 0.3), ("bottom", 0.3), plain=True),
        Arrow(CONTEXT, "word before", (15,), "$e$"),
        Arrow("word before", "decoder state", (12,), "$d$", **DOWN),
        Arrow("attention", "decoder state", (12,), "", ("bottom", 0.6), ("right", 0.7)),
        Arrow(CONTEXT, SCORES, (16,), "$n$", **DOWN),
        Arrow("decoder state", SCORES, (16,), "$|Y|$", **BACK),
        Arrow(SCORES, "next word", (17,), "", **BACK),
    ),
    (Frame("encoder", (0, 3), (0, 2.1), at=3), Frame("decoder, step $t$", (1, 4), (3.25, 4.25), at=1)),
    {18: ("next word",)},  # the loss
)

MEANS, LAST_WORDS = "means of neighbours", "last $C$ words"

ABS = ModelPicture(
    "ABS",
    "ABS. The encoder, above, has no recurrence: vectors of the words, and their means over neighbours. One step of "
    "the decoder, below: the last C words attend to the vectors and take the mean of the means, equation A2; they "
    "also pass a hidden layer; both give the next word, A1.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_n$"),
        "word vectors": Box("states", 1, 0, "$\\tilde{x}_i$"),
        MEANS: Box("states", 2, 0, "$\\bar{x}_i$"),
        LAST_WORDS: Box("text", 0, 1, "$\\tilde{y}_C,\\ \\tilde{y}'_C$"),
        "attention": Box("attention", 2, 1, "$p,\\ enc$"),
        "hidden layer": Box("states", 2, 2, "$h$"),
        "next word": Box("output", 4, 1, "$P$"),
    },
    (
        Arrow("words", "word vectors", (), "$n\\times H$"),
        Arrow("word vectors", MEANS, (), "$n\\times H$"),
        Arrow("word vectors", "attention", (2,), "", ("bottom", 0.5), ("left", 0.3), plain=True),
        Arrow(MEANS, "attention", (2,), "$n$", **DOWN),
        Arrow(LAST_WORDS, "attention", (2,), "", ("right", 0.7), ("left", 0.7), plain=True),
        Arrow(LAST_WORDS, "hidden layer", (1,), "$H$", ("bottom", 0.5), ("left", 0.5)),
        Arrow("attention", "next word", (1,), "$|Y|$"),
        Arrow("hidden layer", "next word", (1,), "", ("right", 0.5), ("bottom", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 2), (0, 0)), Frame("decoder, step $t$", (0, 4), (1, 2), at=4)),
    letter="A",
)

PLACED = "words with positions"

RAS = ModelPicture(
    "RAS",
    "RAS. The encoder, above: vectors of words and of their positions are added, and a convolution makes aggregate "
    "vectors of them, equation 19. One step of the decoder, below: the state before is compared with the aggregate "
    "vectors, and the context is the mean of the words' own vectors, 20; context, word before and state before make "
    "the next state, of Elman's network or of an LSTM, 21; state and context give the next word, 22.",
    {
        "words": Box("text", 0, 0, "$x_i$"),
        PLACED: Box("states", 1, 0, "$a_i=x_i+l_i$"),
        "aggregate vectors": Box("states", 2, 0, "$z_i$"),
        "attention": Box("attention", 2, 1, "$\\alpha_{t-1},\\ c_t$"),
        "decoder state": Box("states", 3, 1, "$h_t\\ (m_t)$"),
        "next word": Box("output", 4, 1, "$P$"),
        "word before": Box("text", 3, 2, "$y_{t-1}$"),
    },
    (
        Arrow("words", PLACED, (19,), "$N\\times d$"),
        Arrow(PLACED, "aggregate vectors", (19,), "$N\\times d$"),
        Arrow("aggregate vectors", "attention", (20,), "$N$", **DOWN),
        Arrow("words", "attention", (20,), "$d$", ("bottom", 0.5), ("left", 0.5)),
        Arrow("attention", "decoder state", (21,), "", ("right", 0.3), ("left", 0.3)),
        Arrow("decoder state", "attention", (20,), "", ("left", 0.7), ("right", 0.7), plain=True),
        Arrow("word before", "decoder state", (21,), "$d$", **UP),
        Arrow("decoder state", "next word", (22,), "$|Y|$"),
        Arrow("attention", "next word", (22,), "", ("top", 0.85), ("top", 0.5), plain=True, beyond=10),
    ),
    (Frame("encoder", (0, 2), (0, 0), at=1), Frame("decoder, step $t$", (2, 4), (1, 2), at=4)),
)

VOCABULARY = "vocabulary, frequent words first"
FREQUENT, OWN = 18, (21, 24, 28, 35, 41, 49)  # words that are drawn as candidates

WORDS_LVT = ModelPicture(
    "words-lvt2k",
    "words-lvt2k. Above, the vocabulary; its candidates are marked: the most frequent words, and those of the texts, "
    "equation 23. Below: two GRUs read the words; one step of the decoder attends to their states, its next state is "
    "made of context and word before, and the next word is one of the candidates, 24.",
    {
        VOCABULARY: Box(
            "output", 2, 0, "$Y$", columns=5, words=56,
            parts=(
                Part(0, FREQUENT, "memory", "the most frequent"),
                *(Part(n, n + 1, "text", "the texts' own" if n == OWN[2] else "") for n in OWN),
            ),
        ),
        "words": Box("text", 0, 1, "$x_1\\ldots x_N$"),
        "word states": Box("states", 1, 1, "$h_i$"),
        "attention": Box("attention", 2, 1, "$\\alpha_t,\\ c_t$"),
        "decoder state": Box("states", 3, 1, "$s_t$"),
        "next word": Box("output", 4, 1, "$P$"),
        "word before": Box("text", 3, 2, "$y_{t-1}$"),
    },
    (
        Arrow("words", VOCABULARY, (23,), "", ("top", 0.5), ("bottom", None)),
        Arrow("words", "word states", (), "$N\\times 2d$"),
        Arrow("word states", "attention", (), "$N$"),
        Arrow("attention", "decoder state", (), "", ("right", 0.3), ("left", 0.3)),
        Arrow("decoder state", "attention", (), "", ("left", 0.7), ("right", 0.7)),
        Arrow("word before", "decoder state", (), "$d$", **UP),
        Arrow("decoder state", "next word", (24,), "$n$"),
        Arrow(VOCABULARY, "next word", (24,), "$Y_B$", ("bottom", None), ("top", 0.7)),
        Arrow("attention", "next word", (24,), "", ("top", 0.85), ("top", 0.3), plain=True, beyond=10),
    ),
    (Frame("encoder", (0, 1), (1, 1)), Frame("decoder, step $t$", (2, 4), (1, 2), at=4)),
)  # fmt: skip

COMPARED = {"abs": ABS, "ras": RAS, "words_lvt": WORDS_LVT}
