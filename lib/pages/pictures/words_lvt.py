"""The picture of words-lvt2k: few of many words are scored."""

from lib.pages.pictures.picture import UP, Arrow, Box, Frame, ModelPicture, Part

VOCABULARY = "vocabulary, frequent words first"
FREQUENT, OWN = 18, (21, 24, 28, 35, 41, 49)  # words that are drawn as candidates

PICTURE = ModelPicture(
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
