"""The model of the first page: sequence to sequence with attention, copying and coverage."""

from companion.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture

PICTURE = ModelPicture(
    "A pointer-generator",
    "The pointer-generator. The encoder, above: words of the text become states, equation 1. One step of the "
    "decoder, below: the word before and the state before give the state of the decoder, 2; this state gives each "
    "state of the text a weight, and the attention reads their weighted mean, 3 to 5; state and context give the "
    "probabilities of the vocabulary's words, 6, and the switch, 8; the attention gives those of the words of the "
    "text, 7; both together give the next word, 9.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_N$"),
        "word states": Box("states", 1, 0, "$h_i$"),
        "copy": Box("output", 0, 1, "$P_c$"),
        "attention": Box("attention", 1, 1, "$\\alpha_t,\\ c_t$"),
        "generate, switch": Box("output", 2.5, 1, "$P_g,\\ p_t$"),
        "decoder state": Box("states", 4, 1, "$s_t$"),
        "next word": Box("output", 1, 2, "$P$"),
        "word before": Box("text", 4, 2, "$y_{t-1}$"),
    },
    (
        Arrow("words", "word states", (1,), "$N\\times d$"),
        Arrow("word before", "decoder state", (2,), "$d$", **UP),
        Arrow("decoder state", "attention", (3, 4, 5), "$N$", ("top", 0.5), ("top", 0.8)),
        Arrow("word states", "attention", (3, 4, 5), "", plain=True, **DOWN),
        Arrow("attention", "copy", (7,), "", **BACK),
        Arrow("words", "copy", (7,), "", plain=True, **DOWN),
        Arrow("attention", "generate, switch", (6, 8), ""),
        Arrow("decoder state", "generate, switch", (6, 8), "$V$", **BACK),
        Arrow("copy", "next word", (9,), "", ("bottom", 0.5), ("left", 0.5)),
        Arrow("generate, switch", "next word", (9,), "", ("bottom", 0.5), ("right", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 4), (0, 0), at=2), Frame("decoder, step $t$", (0, 4), (1, 2), at=2)),
)
