"""The picture of Sent-CLF and Sent-PTR, which have one encoder and two ways to choose."""

from lib.pages.pictures.picture import DOWN, Arrow, Box, Frame, ModelPicture

EXTRACTED, LAST, NEXT = "is extracted", "sentence before", "next sentence"

PICTURE = ModelPicture(
    "Sent-CLF and Sent-PTR",
    "Sent-CLF and Sent-PTR. Their encoder, above: the pieces of each sentence become a vector, equation S1, and "
    "these become states of the sentences in their document, S2. Sent-CLF, beside it: the mean of the states makes a "
    "vector of the document, and both give the probability of each sentence, S3. One step of Sent-PTR, below: the "
    "vector of the sentence before and what was seen then make the pointer's state, whose attention to the "
    "sentences' states is the probability of the next one, S4; what it sees is kept for the next step, S5.",
    {
        "sentences": Box("text", 0, 0, "$w_{j1}\\ldots w_{jn}$"),
        "sentence vectors": Box("states", 1, 0, "$s_j$"),
        "sentence states": Box("states", 2, 0, "$d_j$"),
        "document": Box("states", 3, 0, "$\\bar{d}$"),
        EXTRACTED: Box("output", 4, 0, "$P(j)$"),
        LAST: Box("text", 1, 1, "$s_{i_{t-1}}$"),
        "pointer state": Box("states", 2, 1, "$h_t$"),
        "attention": Box("attention", 3, 1, "$d_j^\\top h_t$"),
        NEXT: Box("output", 4, 1, "$P(i_t=j)$"),
        "what it saw": Box("states", 3, 2, "$\\tilde{h}_t$"),
    },
    (
        Arrow("sentences", "sentence vectors", (1,), "$L\\times d$"),
        Arrow("sentence vectors", "sentence states", (2,), "$L\\times d$"),
        Arrow("sentence states", "document", (3,), "$d$"),
        Arrow("document", EXTRACTED, (3,), "$L$"),
        Arrow("sentence states", EXTRACTED, (3,), "", ("top", 0.8), ("top", 0.5), plain=True, beyond=10),
        Arrow("sentence vectors", LAST, (), "of one", **DOWN),
        Arrow(LAST, "pointer state", (4,), "$d$"),
        Arrow("sentence states", "attention", (4,), "", ("bottom", 0.7), ("top", 0.5), plain=True),
        Arrow("pointer state", "attention", (4,), "$L$"),
        Arrow("attention", NEXT, (4,), "$L$"),
        Arrow("attention", "what it saw", (5,), "$d$", **DOWN),
        Arrow("pointer state", "what it saw", (5,), "", ("bottom", 0.7), ("left", 0.3), plain=True),
        Arrow("what it saw", "pointer state", (4,), "$t+1$", ("left", 0.7), ("bottom", 0.3)),
    ),
    (
        Frame("encoder", (0, 2), (0, 0)),
        Frame("Sent-CLF", (3, 4), (0, 0), at=4),
        Frame("Sent-PTR, step $t$", (1, 4), (1, 2), at=4),
    ),
    letter="S",
)
