"""What the process has done that the trainings of `torture_runs` are forked from: each of them once, so that compiled
code is there at once."""

import tempfile
from pathlib import Path

from tests.tools.torture_runs import MODELS, run

with tempfile.TemporaryDirectory() as folder:
    for paper in MODELS:
        run(paper, Path(folder) / paper)
