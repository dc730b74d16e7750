"""The hierarchical transformer's picture, and those of the systems beside it: the same with copying, and T-DMCA."""

from companion.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture, Part

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

GENERATED, COPIED = "piece generated", "piece copied"

COPYING_TRANSFORMER = ModelPicture(
    "Hierarchical transformer with copying",
    "The hierarchical transformer with copying. The features of the decoder give a piece of the vocabulary, as "
    "without copying, and look among the encoder's pieces for one to copy, equation C1. A switch, made of the "
    "features and of what was attended to, mixes the two to the next piece, C2.",
    {
        "encoder's pieces": Box("states", 0, 0, "$h_i$"),
        "pieces written": Box("text", 0, 1),
        COPIED: Box("attention", 1.25, 0, "$\\gamma_i$"),
        "switch": Box("memory", 2.75, 0, "$z$"),
        "features": Box("states", 1.25, 1, "$f$"),
        GENERATED: Box("output", 2.75, 1, "$P_g$"),
        "next piece": Box("output", 4, 1, "$P$"),
    },
    (
        Arrow("encoder's pieces", COPIED, (1,), "$N$"),
        Arrow("pieces written", "features", (), "$d$"),
        Arrow("features", COPIED, (), "$d$", ("top", 0.3), ("bottom", 0.3)),
        Arrow(COPIED, "switch", (2,), "$d$"),
        Arrow("features", "switch", (), "$d$", ("top", 0.8), ("bottom", 0.4)),
        Arrow("features", GENERATED, (), "$V$"),
        Arrow("switch", "next piece", (2,), "$V$", ("right", 0.5), ("top", 0.4)),
        Arrow(COPIED, "next piece", (), "", ("top", 0.5), ("top", 0.7), plain=True),
        Arrow(GENERATED, "next piece", (), "", plain=True),
    ),
    (Frame("decoder, step $t$", (1.25, 4), (0, 1), at=1.25),),
    letter="C",
)

SOURCE, SUMMARY, BLOCK, STRIDE = 17, 7, 8, 3  # pieces that are drawn; a block has 256
PIECES = "title, paragraphs and summary in pieces"
LOCAL, COMPRESSED, WHOLE = "blocks of 256", "compressed keys, values", "the whole past"


def _local(n: int, block: int) -> tuple[str, ...]:
    """Each piece sees itself and those before it in its block."""
    begins = [t - t % block for t in range(n)]
    return tuple("." * begin + "#" * (t + 1 - begin) + "." * (n - t - 1) for t, begin in enumerate(begins))


def _compressed(n: int, stride: int) -> tuple[str, ...]:
    """Each piece sees the groups that end before it; the first piece of all is always seen."""
    return tuple("#" * max(1, t - t % stride) + "." * (n - max(1, t - t % stride)) for t in range(n))


T_DMCA = ModelPicture(
    "T-DMCA",
    "T-DMCA. Above, title, paragraphs and summary as pieces in a row. Below, two kinds of layers, each row a piece "
    "and each column what it may see. In the first, pieces see those before them in their own block, equation D1. "
    "Of the keys and values of three pieces each a convolution makes one, D2; in the second kind, pieces see all of "
    "these that end before them, D3. The layers take turns, five in all, and the last gives the next piece.",
    {
        PIECES: Box(
            "text", 2.5, 0, "$x_1\\ldots x_n$", columns=6, words=3 * (SOURCE + SUMMARY),
            parts=(Part(0, 3 * SOURCE, "text", "title and paragraphs"),
                   Part(3 * SOURCE, 3 * (SOURCE + SUMMARY), "output", "[BOS] summary")),
        ),
        LOCAL: Box("attention", 0.5, 1.3, columns=2, rows=2, mask=_local(SOURCE + SUMMARY, BLOCK)),
        COMPRESSED: Box("memory", 2, 1.3, "$\\kappa_m,\\ \\nu_m$"),
        WHOLE: Box("attention", 3.5, 1.3, columns=2, rows=2, mask=_compressed(SOURCE + SUMMARY, STRIDE)),
        "next piece": Box("output", 5, 1.3, "$P$"),
    },
    (
        Arrow(PIECES, LOCAL, (1,), "$n\\times d$", ("bottom", None), ("top", 0.5)),
        Arrow(LOCAL, COMPRESSED, (2,), "$n/3$"),
        Arrow(COMPRESSED, WHOLE, (3,), "$n\\times d$"),
        Arrow(WHOLE, LOCAL, (), "in turn, five layers", ("bottom", 0.5), ("bottom", 0.5), beyond=16),
        Arrow(WHOLE, "next piece", (), "$V$"),
    ),
    letter="D",
)  # fmt: skip

COMPARED = {"copying_transformer": COPYING_TRANSFORMER, "t_dmca": T_DMCA}
