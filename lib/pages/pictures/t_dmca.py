"""T-DMCA's picture: its one sequence, and what the pieces see in its two kinds of layers."""

from lib.pages.pictures.picture import Arrow, Box, ModelPicture, Part

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


PICTURE = ModelPicture(
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
