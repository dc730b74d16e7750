"""Mem2Mem's picture."""

from lib.pages.pictures.picture import BACK, DOWN, UP, Arrow, Box, Frame, ModelPicture

BOTH = "attention over words and sentences"

PICTURE = ModelPicture(
    "Mem2Mem",
    "Mem2Mem. The encoder, above: the words become word states, equation 1, and sentence states, 2 and 4; the write "
    "attention makes a memory of r slots of them, 5, which the decoder takes over as its own. One step of the "
    "decoder, below: the word before makes the decoder state; with it the decoder memory is written, 8 to 10, and "
    "read, 7; the state after reading attends to words and sentences, 3, 16 and 17; copying, 14, and generating are "
    "mixed by the switch, 13, into the next word, 15.",
    {
        "words": Box("text", 0, 0, "$x_1\\ldots x_N$"),
        "word states": Box("states", 1, 0, "$h^{(w)}_i$"),
        "sentence states": Box("states", 2, 0, "$h^{(s)}_j,\\ \\mathbf{H}$"),
        "write attention": Box("attention", 4, 0, "$\\mathbf{A}$"),
        "encoder memory": Box("memory", 5, 0, "$\\mathbf{M}_E$"),
        BOTH: Box("attention", 1.5, 1, "$\\alpha_t,\\ \\beta_t,\\ \\gamma_t,\\ c_t$", columns=2),
        "state after reading": Box("states", 3, 1, "$h^{(m)}_t$"),
        "read attention": Box("attention", 4, 1, "$\\psi_t,\\ m_t$"),
        "decoder memory": Box("memory", 5, 1, "$\\mathbf{M}_D$"),
        "copy": Box("output", 1, 2, "$P_c$"),
        "generate, switch": Box("output", 2, 2, "$P_g,\\ p_t$"),
        "decoder state": Box("states", 4, 2, "$h^{(d)}_t$"),
        "next word": Box("output", 1, 3, "$P$"),
        "word before": Box("text", 4, 3, "$x^{\\prime}_t$"),
    },
    (
        Arrow("words", "word states", (1,), "$N\\times d$"),
        Arrow("word states", "sentence states", (2, 4), "$L\\times d$"),
        Arrow("sentence states", "write attention", (5,), "$r\\times L$"),
        Arrow("write attention", "encoder memory", (5,), "$r\\times d$"),
        Arrow("encoder memory", "decoder memory", (), "transfer", **DOWN),
        Arrow("word before", "decoder state", (), "$d$", **UP),
        Arrow("decoder state", "decoder memory", (8, 9, 10), "$r\\times d$", ("right", 0.5), ("bottom", 0.5)),
        Arrow("read attention", "decoder memory", (8, 9, 10), "", ("right", 0.7), ("left", 0.7), plain=True),
        Arrow("decoder memory", "read attention", (7,), "", ("left", 0.3), ("right", 0.3)),
        Arrow("decoder state", "read attention", (7,), "$r$", **UP),
        Arrow("read attention", "state after reading", (7,), "$d$", **BACK),
        Arrow("decoder state", "state after reading", (7,), "", ("left", 0.5), ("bottom", 0.7), plain=True),
        Arrow("state after reading", BOTH, (3, 17), "", **BACK),
        Arrow("word states", BOTH, (16, 17), "$N$", ("bottom", 0.5), ("top", None)),
        Arrow("sentence states", BOTH, (3,), "$L$", ("bottom", 0.5), ("top", None)),
        Arrow(BOTH, "copy", (14,), "", ("bottom", None), ("top", 0.5)),
        Arrow("words", "copy", (14,), "", ("bottom", 0.5), ("left", 0.5), plain=True),
        Arrow(BOTH, "generate, switch", (13,), "$V$", ("bottom", None), ("top", 0.5)),
        Arrow("state after reading", "generate, switch", (13,), "", ("bottom", 0.3), ("right", 0.3), plain=True),
        Arrow("word before", "generate, switch", (13,), "", ("left", 0.5), ("right", 0.7), plain=True),
        Arrow("copy", "next word", (15,), "", **DOWN),
        Arrow("generate, switch", "next word", (15,), "", ("bottom", 0.5), ("right", 0.5), plain=True),
    ),
    (Frame("encoder", (0, 5), (0, 0), at=3), Frame("decoder, step $t$", (0, 5), (1, 3), at=5)),
    {6: ("write attention",), 11: ("read attention", BOTH), 12: ("next word",)},  # the losses
)
