"""The hierarchical transformer's picture."""

from lib.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture

INPUT, WORDS, BETWEEN = "title and paragraphs", "words with contexts", "attention of paragraphs"

PICTURE = ModelPicture(
    "Hierarchical transformer",
    "Hierarchical transformer. The ranker reads title and paragraphs and keeps the best, equations 1 to 6. The "
    "encoder: words get two positions, 7 to 10, and pass local layers, each paragraph for itself, 11 and 12; a "
    "global layer pools the words of each paragraph into heads, 13 to 16, lets paragraphs attend to each other, 17 "
    "to 20, or takes a graph of their similarity or discourse, 24 to 26, for one of the heads, and hands every word "
    "the context of its paragraph, 21 to 23. The decoder attends to itself and to all words, and writes the next "
    "piece.",
    {
        INPUT: Box("text", 0, 0, "$w_t,\\ w_p$"),
        "ranker": Box("attention", 1, 0, "$s$"),
        "words with positions": Box("states", 2, 0, "$x^0_{ij}$"),
        "local layers": Box("states", 3, 0, "$x^l_{ij}$"),
        "pooling weights": Box("attention", 4, 0, "$\\hat{a}^z_{ij}$"),
        "paragraph heads": Box("memory", 5, 0, "$head^z_i$"),
        BETWEEN: Box("attention", 5, 1, "$q^z_i,\\ k^z_i,\\ v^z_i$"),
        "contexts": Box("states", 4, 1, "$context^z_i,\\ c_i$"),
        WORDS: Box("states", 3, 1, "$x^l_{ij}$"),
        "graph": Box("memory", 5, 2.75, "$G$"),
        "pieces written": Box("text", 1, 2),
        "decoder states": Box("states", 2, 2),
        "attention to the words": Box("attention", 3, 2),
        "next piece": Box("output", 4, 2, "$P$"),
    },
    (
        Arrow(INPUT, "ranker", (1, 2, 3, 4, 5, 6), "$m$"),
        Arrow("ranker", "words with positions", (7, 8, 9, 10), "$W\\times d$"),
        Arrow("words with positions", "local layers", (11, 12), "$W\\times d$"),
        Arrow("local layers", "pooling weights", (13, 15)),
        Arrow("pooling weights", "paragraph heads", (14, 16), "$m\\times d$"),
        Arrow("paragraph heads", BETWEEN, (17, 18, 19, 20), "$m\\times m$", **DOWN),
        Arrow(BETWEEN, "contexts", (20, 21), "$m\\times d$", **BACK),
        Arrow("contexts", WORDS, (22, 23), "$W\\times d$", **BACK),
        Arrow("local layers", WORDS, (22, 23), "", plain=True, **DOWN),
        Arrow(INPUT, "graph", (25, 26), "$m\\times m$", ("bottom", 0.5), ("left", 0.5)),
        Arrow("graph", BETWEEN, (24,), "", **UP),
        Arrow("pieces written", "decoder states", (), "$d$"),
        Arrow("decoder states", "attention to the words", (), "$W$"),
        Arrow(WORDS, "attention to the words", (), "", plain=True, **DOWN),
        Arrow("attention to the words", "next piece", (), "$V$"),
    ),
    (Frame("encoder", (2, 5), (0, 1), at=2), Frame("decoder, step $t$", (1, 4), (2, 2), at=1)),
)
