"""Read-Again's picture."""

from lib.pages.pictures.picture import BACK, DOWN, Arrow, Box, Frame, ModelPicture

CONTEXT, SCORES = "embeddings from context", "generate, copy"

PICTURE = ModelPicture(
    "Read-Again",
    "Read-Again. The encoder, above: the first read, equations 1 to 3 of a GRU or 7 of an LSTM, ends in a vector of "
    "the text; word state and text vector give the importance of each word, 5, which steers the second read of a "
    "GRU, 4 and 6; that of an LSTM is told them, 8, or the vectors of several sentences, 9 to 11. One step of the "
    "decoder, below: attention to the second read from the state before, 13 and 14, and the word before make the "
    "decoder state, 12; a word outside the vocabulary is embedded from its context, 15; scores for generating and "
    "for copying, 16, share one softmax, 17.",
    {
        "words": Box("text", 0, 0, "$\\mathbf{x}_i$"),
        "first read": Box("states", 1, 0, "$h^1_i$"),
        "text vector": Box("states", 2, 0, "$h^1_n$"),
        "several sentences": Box("states", 3, 0, "$h_{global}$"),
        "importance": Box("attention", 1, 1, "$\\alpha_i$"),
        "second read": Box("states", 2, 1, "$h^2_i$"),
        CONTEXT: Box("memory", 2, 2.25, "$\\mathbf{p}_i$"),
        "word before": Box("text", 3, 2.25, "$\\mathbf{y}_{t-1}$"),
        "attention": Box("attention", 4, 2.25, "$\\beta_t,\\ c_t$"),
        "next word": Box("output", 1, 3.25, "$P$"),
        SCORES: Box("output", 2, 3.25, "$g_w,\\ k_i$"),
        "decoder state": Box("states", 3, 3.25, "$s_t$"),
    },
    (
        Arrow("words", "first read", (1, 2, 3, 7), "$n\\times d$"),
        Arrow("first read", "text vector", (), "$d$"),
        Arrow("text vector", "several sentences", (10,), "$d$"),
        Arrow("first read", "importance", (5,), "$n\\times d$", ("bottom", 0.25), ("top", 0.25)),
        Arrow("text vector", "importance", (5,), "", ("bottom", 0.2), ("top", 0.85), plain=True),
        Arrow("importance", "second read", (4, 6), "$n\\times d$"),
        Arrow("words", "second read", (4, 8), "again", ("bottom", 0.5), ("bottom", 0.2)),
        Arrow("text vector", "second read", (8,), "$h^1_i,h^1_n$", ("bottom", 0.6), ("top", 0.6)),
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
    (Frame("encoder", (0, 3), (0, 1.2), at=3), Frame("decoder, step $t$", (1, 4), (2.25, 3.25), at=1)),
    {18: ("next word",)},  # the loss
)
