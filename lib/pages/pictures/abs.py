"""The picture of ABS."""

from lib.pages.pictures.picture import DOWN, Arrow, Box, Frame, ModelPicture

MEANS, CONTEXT = "means of neighbours", "last $C$ words"

PICTURE = ModelPicture(
    "ABS",
    "ABS. The encoder, above, has no recurrence: vectors of the words, and their means over neighbours. One step of "
    "the decoder, below: the last C words attend to the vectors and take the mean of the means, equation A2; they "
    "also pass a hidden layer; both give the next word, A1.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_n$"),
        "word vectors": Box("states", 1, 0, "$\\tilde{x}_i$"),
        MEANS: Box("states", 2, 0, "$\\bar{x}_i$"),
        CONTEXT: Box("text", 0, 1, "$\\tilde{y}_C,\\ \\tilde{y}'_C$"),
        "attention": Box("attention", 2, 1, "$p,\\ enc$"),
        "hidden layer": Box("states", 2, 2, "$h$"),
        "next word": Box("output", 4, 1, "$P$"),
    },
    (
        Arrow("words", "word vectors", (), "$n\\times H$"),
        Arrow("word vectors", MEANS, (), "$n\\times H$"),
        Arrow("word vectors", "attention", (2,), "", ("bottom", 0.5), ("left", 0.3), plain=True),
        Arrow(MEANS, "attention", (2,), "$n$", **DOWN),
        Arrow(CONTEXT, "attention", (2,), "", ("right", 0.7), ("left", 0.7), plain=True),
        Arrow(CONTEXT, "hidden layer", (1,), "$H$", ("bottom", 0.5), ("left", 0.5)),
        Arrow("attention", "next word", (1,), "$|Y|$"),
        Arrow("hidden layer", "next word", (1,), "", ("right", 0.5), ("bottom", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 2), (0, 0)), Frame("decoder, step $t$", (0, 4), (1, 2), at=4)),
    letter="A",
)
