"""The picture of each paper's model: one file each, drawn by `lib.diagrams`."""

from lib.papers.pictures import hierarchical_transformer, mem2mem, read_again, windowed
from lib.papers.pictures.picture import ModelPicture

PICTURES: dict[str, ModelPicture] = {
    "mem2mem": mem2mem.PICTURE,
    "windowed": windowed.PICTURE,
    "read_again": read_again.PICTURE,
    "hierarchical_transformer": hierarchical_transformer.PICTURE,
}
