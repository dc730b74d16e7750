"""Peak numbers of two GPUs by their maker's data sheets, what is assumed of launches."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

# Seconds of the host for each operation that PyTorch issues one by one. Measured beside an H100:
# all of an update, of which the GPU computes a sixth, by its operations: 30 microseconds in
# Mem2Mem, 33 in the hierarchical transformer.
LAUNCH = 30e-6


@dataclass(frozen=True)
class Machine:
    """Dense products a second by precision, bytes a second of the memory and of the link to another
    GPU (one way)."""

    name: str
    flop: dict[str, float]
    bandwidth: float
    memory: float  # GB
    link: float
    known: str


_SHEETS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
GPUS = {name: Machine(**row) for name, row in _SHEETS.items()}
