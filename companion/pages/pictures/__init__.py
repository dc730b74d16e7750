"""The pictures of the models: a file a paper, with those of the systems that its model is compared with, and one of
the first page."""

from companion.pages.pictures import hierarchical_transformer, mem2mem, read_again, start_here, windowed
from companion.pages.pictures.picture import ModelPicture

MODELS: dict[str, ModelPicture] = {
    "mem2mem": mem2mem.PICTURE,
    "windowed": windowed.PICTURE,
    "read_again": read_again.PICTURE,
    "hierarchical_transformer": hierarchical_transformer.PICTURE,
}
FIRST: dict[str, ModelPicture] = {"start_here": start_here.PICTURE}  # what all papers build on
# by the paper that compares itself with them
COMPARED: dict[str, dict[str, ModelPicture]] = {
    "mem2mem": mem2mem.COMPARED,
    "read_again": read_again.COMPARED,
    "hierarchical_transformer": hierarchical_transformer.COMPARED,
}
PICTURES = MODELS | FIRST | {name: picture for compared in COMPARED.values() for name, picture in compared.items()}
