"""What a process keeps in memory while it trains and writes."""

import subprocess
import sys
from textwrap import dedent

import pytest

from lib.system.files import project_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

TRAINS = """
    import numpy as np
    import torch
    from lib.data.batch import EncodedDocument, make_batch
    from lib.models.mem2mem import Mem2Mem

    torch.set_num_threads(1)
    vocabulary, random = 2_000, np.random.default_rng(0)
    model = Mem2Mem(Mem2Mem.Config(vocabulary, hidden=64, embedding=64, bottleneck=64))
    optimizer = torch.optim.Adam(model.parameters())


    def document(name):
        sentences = random.integers(1, 20, int(random.integers(1, 20)))
        ids = random.integers(4, vocabulary, sentences.sum())
        return EncodedDocument.of(name, ids, sentences, random.integers(4, vocabulary, int(random.integers(1, 60))))


    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20


    for update in range(60):
        batch = make_batch([document(f"{update} {i}") for i in range(4)], vocabulary)
        optimizer.zero_grad()
        model.loss(batch)["loss"].backward()
        optimizer.step()
        if update == 19:
            before = resident()
    print(before, resident())
"""

WRITES = """
    import sys
    import lib

    run = lib.load("trained/mem2mem")
    run.summarize(["A memory is handed over. It is read at each step, and it is written."])
    print("torch._dynamo" in sys.modules)
"""


def printed(program: str) -> list[str]:
    """Run a program at the project's root, in a process of its own; return the words of its last
    line."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        cwd=project_root(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[-2].split()


def test_memory_levels_off():
    """Updates of ragged batches: after 20 of them, 40 more need hardly more memory."""
    before, after = map(float, printed(TRAINS))
    assert after < before + 20  # MB; 20 MB are 0.5 an update


def test_a_search_does_not_load_the_compiler():
    """PyTorch's compiler takes a second and 130 MB, and nothing of ours needs it to write."""
    assert printed(WRITES) == ["False"]
