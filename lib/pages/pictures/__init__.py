"""The picture of each paper's model and of those it is compared with: a file each, drawn by `lib.pages.diagrams`."""

from lib.pages.pictures import (
    abs,
    copying_transformer,
    hierarchical_transformer,
    mem2mem,
    ras,
    read_again,
    sentence_extractors,
    t_dmca,
    tlm,
    windowed,
    words_lvt,
)
from lib.pages.pictures.picture import ModelPicture

MODELS: dict[str, ModelPicture] = {
    "mem2mem": mem2mem.PICTURE,
    "windowed": windowed.PICTURE,
    "read_again": read_again.PICTURE,
    "hierarchical_transformer": hierarchical_transformer.PICTURE,
}
# by the paper that compares itself with them
COMPARED: dict[str, dict[str, ModelPicture]] = {
    "mem2mem": {"sentence_extractors": sentence_extractors.PICTURE, "tlm": tlm.PICTURE},
    "read_again": {"abs": abs.PICTURE, "ras": ras.PICTURE, "words_lvt": words_lvt.PICTURE},
    "hierarchical_transformer": {"copying_transformer": copying_transformer.PICTURE, "t_dmca": t_dmca.PICTURE},
}
PICTURES = MODELS | {name: picture for found in COMPARED.values() for name, picture in found.items()}
