"""The windowed model's picture. Equation numbers are those of its page."""

from companion.pages.pictures.picture import UP, Arrow, Box, Frame, ModelPicture, Window

WINDOWS = (Window(19, 27, "$ws$ words"), Window(26, 34, "slid by $ss$", dashed=True))
VIEW, NEXT = "attention in the window", "next word or symbol"

PICTURE = ModelPicture(
    "Windowed attention",
    "Windowed attention. Above, the text, and word for word the states of the encoder, equation 5; over ws of them "
    "stands the window, and dashed, ss words further on, where it slides to; equation 1 counts the windows. One "
    "step of the decoder, below: the word before makes the decoder state, 6; if it is the symbol for that, the "
    "window slides, 7, or static windows end where that was fixed before, 14; the decoder state attends to the "
    "states in the window alone, 8 and 9; generating, 10 and 11, and copying are mixed by the switch into the next "
    "word, or the symbol, 12.",
    {
        "text": Box("text", 2.5, 0, "$x_1\\ldots x_{T_x}$", columns=6, words=56),
        "states": Box("states", 2.5, 0.8, "$h_1\\ldots h_{T_x}$", columns=6, words=56, windows=WINDOWS),
        "static windows": Box("memory", 0, 1.85, "$end_i$"),
        "window": Box("memory", 1, 1.85, "$w_t$"),
        VIEW: Box("attention", 2, 1.85, "$\\alpha_t,\\ c_t$"),
        "generate": Box("output", 3, 1.85, "$P_g$"),
        NEXT: Box("output", 5, 1.85, "$P$"),
        "word before": Box("text", 1, 2.85, "$y_{t-1}$"),
        "decoder state": Box("states", 2, 2.85, "$s_t$"),
        "switch": Box("output", 4, 2.85, "$p_t$"),
    },
    (
        Arrow("text", "states", (5,), "$T_x\\times d$", ("bottom", 0.75), ("top", None)),
        Arrow("states", "window", (1,), "", ("bottom", None), ("top", 0.5)),
        Arrow("word before", "window", (7,), "", **UP),
        Arrow("static windows", "window", (14,), "", dashed=True),
        Arrow("window", VIEW, (9,), "$ws$"),
        Arrow("states", VIEW, (8, 9), "$ws\\times d$", ("bottom", None), ("top", 0.5)),
        Arrow("word before", "decoder state", (6,), "$d$"),
        Arrow("decoder state", VIEW, (8,), "", **UP),
        Arrow(VIEW, "generate", (10, 11), "$|\\mathcal{V}|$"),
        Arrow("decoder state", "generate", (10,), "", ("right", 0.3), ("bottom", 0.5), plain=True),
        Arrow("decoder state", "switch", (12,), "$a_t,s_{t-1},y_{t-1}$", ("right", 0.7), ("left", 0.7)),
        Arrow("generate", NEXT, (12,), ""),
        Arrow(VIEW, NEXT, (12,), "copy", ("top", 0.85), ("top", 0.5), beyond=10),
        Arrow("switch", NEXT, (12,), "", ("right", 0.5), ("bottom", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 5), (0, 0.8)), Frame("decoder, step $t$", (0, 5), (1.85, 2.85))),
    {13: (NEXT,), 2: ("text",), 3: ("text",), 4: ("text",)},  # the loss; where a reference slides
)
