"""The picture of the hierarchical transformer with copying: what is added to its decoder."""

from lib.pages.pictures.picture import Arrow, Box, Frame, ModelPicture

GENERATED, COPIED = "piece generated", "piece copied"

PICTURE = ModelPicture(
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
