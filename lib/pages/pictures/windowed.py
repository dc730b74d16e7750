"""The windowed model's picture. Equation numbers are those of its page."""

from lib.pages.pictures.picture import UP, Arrow, Box, Frame, ModelPicture, Window

WINDOWS = (Window(19, 27, "$ws$ words"), Window(26, 34, "slid by $ss$", dashed=True))
VIEW, NEXT = "attention in the window", "next word or symbol"

PICTURE = ModelPicture(
    "Windowed attention",
    "Windowed attention. Above, the text, and word for word the states of the encoder, equation 2; over ws of them "
    "stands the window, and dashed, ss words further on, where it slides to; equation 11 counts the windows. One "
    "step of the decoder, below: the word before makes the decoder state, 5; if it is the symbol for that, the "
    "window slides, 13, or static windows end where that was fixed before, 14; the decoder state attends to the "
    "states in the window alone, 3 and 4; generating, 6 and 7, and copying are mixed by the switch into the next "
    "word, or the symbol, 8.",
    {
        "text": Box("text", 2.5, 0, "$x_1\\ldots x_{T_x}$", columns=6, words=56),
        "states": Box("states", 2.5, 0.8, "$h_1\\ldots h_{T_x}$", columns=6, words=56, windows=WINDOWS),
        "static windows": Box("memory", 0, 1.85, "$end_i$"),
        "window": Box("memory", 1, 1.85, "$w_t$"),
        VIEW: Box("attention", 2, 1.85, "$\\alpha_t,\\ c_t$"),
        "generate": Box("output", 3, 1.85, "$P_{\\mathcal{V}}$"),
        NEXT: Box("output", 5, 1.85, "$P$"),
        "word before": Box("text", 1, 2.85, "$y_{t-1}$"),
        "decoder state": Box("states", 2, 2.85, "$s_t$"),
        "switch": Box("output", 4, 2.85, "$p_t$"),
    },
    (
        Arrow("text", "states", (2,), "$T_x\\times d$", ("bottom", 0.75), ("top", None)),
        Arrow("states", "window", (11,), "", ("bottom", None), ("top", 0.5)),
        Arrow("word before", "window", (13,), "", **UP),
        Arrow("static windows", "window", (14,), "", dashed=True),
        Arrow("window", VIEW, (3,), "$ws$"),
        Arrow("states", VIEW, (3, 4), "$ws\\times d$", ("bottom", None), ("top", 0.5)),
        Arrow("word before", "decoder state", (5,), "$d$"),
        Arrow("decoder state", VIEW, (4,), "", **UP),
        Arrow(VIEW, "generate", (6, 7), "$|\\mathcal{V}|$"),
        Arrow("decoder state", "generate", (7,), "", ("right", 0.3), ("bottom", 0.5), plain=True),
        Arrow("decoder state", "switch", (8,), "$a_t,s_{t-1},y_{t-1}$", ("right", 0.7), ("left", 0.7)),
        Arrow("generate", NEXT, (8,), ""),
        Arrow(VIEW, NEXT, (8,), "copy", ("top", 0.85), ("top", 0.5), beyond=10),
        Arrow("switch", NEXT, (8,), "", ("right", 0.5), ("bottom", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 5), (0, 0.8)), Frame("decoder, step $t$", (0, 5), (1.85, 2.85))),
    {1: (NEXT,), 9: ("text",), 10: ("text",), 12: ("text",)},  # the loss; where a reference slides
)
