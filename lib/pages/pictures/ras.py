"""The picture of RAS."""

from lib.pages.pictures.picture import DOWN, UP, Arrow, Box, Frame, ModelPicture

PLACED = "words with positions"

PICTURE = ModelPicture(
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
