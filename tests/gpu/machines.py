"""Peak numbers of two GPUs by their maker's data sheets, what is assumed of launches."""

from dataclasses import dataclass

# Seconds of the host for each operation that PyTorch issues one by one. Measured beside an H100: all of an update, of
# which the GPU computes a sixth, by its operations: 30 microseconds in Mem2Mem, 33 in the hierarchical transformer.
LAUNCH = 30e-6


@dataclass(frozen=True)
class Machine:
    """Dense products a second by precision, bytes a second of the memory and of the link to another GPU (one way)."""

    name: str
    flop: dict[str, float]
    bandwidth: float
    memory: float  # GB
    link: float
    known: str


# the sheets give products in TF32 and bfloat16 "with sparsity" as twice these, and links both ways as twice these
GPUS = {
    "A100": Machine(
        "A100 (SXM, 80 GB)", {"float32": 19.5e12, "tf32": 156e12, "bf16": 312e12}, 2.039e12, 80, 300e9,
        "NVIDIA A100 Tensor Core GPU, data sheet",
    ),
    "H100": Machine(
        "H100 (SXM, 80 GB)", {"float32": 67e12, "tf32": 494.5e12, "bf16": 989.5e12}, 3.35e12, 80, 450e9,
        "NVIDIA H100 Tensor Core GPU, data sheet",
    ),
}  # fmt: skip
