"""TLM's picture: the order of its one sequence, and which pieces see which."""

from lib.pages.pictures.picture import DOWN, Arrow, Box, ModelPicture, Part

INTRODUCTION, EXTRACT, ABSTRACT, REST = 9, 6, 7, 6  # pieces that are drawn
SEQUENCE = INTRODUCTION + EXTRACT + ABSTRACT
PIECES, ATTENTION, KEPT = "a paper in pieces", "attention to the pieces before", "keys and values"
SAYS = "row: the piece that looks; column: what it sees"


def _causal(*sequences: int) -> tuple[str, ...]:
    """Each piece sees itself and those before it in its own sequence."""
    n, begins = sum(sequences), [sum(sequences[:i]) for i in range(len(sequences))]
    rows = [(begin, begin + t + 1) for begin, length in zip(begins, sequences) for t in range(length)]
    return tuple("." * begin + "#" * (end - begin) + "." * (n - end) for begin, end in rows)


PICTURE = ModelPicture(
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
