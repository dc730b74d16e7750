"""One measurement in a process of its own, so that its peak memory is its own: prints a line of JSON.

python -m tests.tools.bench.measure train '{"model": "mem2mem", "way": "lib", "batch": 16}'
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from lib.data.batch import EncodedDocument, make_batch
from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS
from lib.data.prepared import encode
from lib.data.split import Split
from lib.data.vocabulary import Vocabulary
from lib.decoding.search import DecodeConfig, beam_search, written
from lib.layers.gru import GatedGRU
from lib.models.hierarchical_transformer import HierarchicalTransformerConfig
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.windowed import Windowed, WindowedConfig, count_windows
from lib.papers import PAPERS
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.threads import torch_threads
from lib.training import loop as training
from lib.training.config import TrainConfig
from lib.training.folder import Recipe
from lib.training.loop import backward_in_threads
from tests.tools.bench.before import without_compiled_dropout, without_kernels
from tests.tools.bench.textbook import (
    PointerGeneratorLSTM,
    TextbookHierarchicalTransformer,
    TextbookMem2Mem,
    gated_steps,
)

VOCAB = 50_000


def documents(count: int, source: int, target: int, vocab_size: int, sentence: int = 25) -> list[EncodedDocument]:
    """Random documents of one length, in which every 50th word is unknown."""
    random = np.random.default_rng(0)
    made = []
    for number in range(count):
        words = random.integers(4, vocab_size, source, dtype=np.int32)
        unknown = source // 50
        words[::50][:unknown] = vocab_size + np.arange(unknown)
        summary = random.choice(words, target).astype(np.int32)
        lengths = np.full(source // sentence, sentence, dtype=np.int32)
        lengths[-1] += source - lengths.sum()
        made.append(EncodedDocument(str(number), words, lengths, summary, [f"u{i}" for i in range(unknown)], []))
    return made


def clusters(count: int, paragraphs: int, target: int, vocab_size: int, equal: bool = False) -> list[EncodedDocument]:
    """Random clusters whose paragraphs have 20 to 120 pieces: about 1,600 of 24 paragraphs, as the paper's; all 70
    where they are `equal`, so that there is no padding."""
    random, made = np.random.default_rng(0), []
    for number in range(count):
        lengths = random.integers(70, 71, paragraphs) if equal else random.integers(20, 121, paragraphs)
        words, summary = (random.integers(7, vocab_size, n, dtype=np.int32) for n in (lengths.sum(), target))
        made.append(EncodedDocument.of(str(number), words, lengths, summary))
    return made


def build(model: str):
    torch.manual_seed(0)
    if model == "hierarchical_transformer":
        # without dropout, so that both ways give the same loss
        return TextbookHierarchicalTransformer(HierarchicalTransformerConfig(dropout=0.0))
    if model == "medium_transformer":  # as the trained runs are
        medium = PAPERS["hierarchical_transformer"].presets["medium"]
        config = HierarchicalTransformerConfig(medium.options.vocab_size, **medium.config)
        return TextbookHierarchicalTransformer(config)
    if model == "pointer_generator":
        return PointerGeneratorLSTM(VOCAB)
    if model == "mem2mem":
        return TextbookMem2Mem(Mem2MemConfig(VOCAB))
    return TextbookMem2Mem(
        Mem2MemConfig(2_000, embedding=64, hidden=64, bottleneck=64, slots=6, compression=64)
    )  # small


def train(model: str, way: str, batch: int, source: int, target: int, repeats: int = 3, equal: bool = False) -> dict:
    """Seconds of forward, backward and update; the loss of the first step; floating-point operations of products.

    way: "lib", "bf16" (its products in bfloat16), "dropout" (the same, but see `before.py`), "before" (likewise) or
    "textbook".
    """
    step = _step(model, way, batch, source, target, equal)
    before = _peak()
    with FlopCounterMode(display=False) as counter:
        first = step()
    return {"loss": first, "flop": counter.get_total_flops(), **_timed(step, repeats, before)}


def _step(model: str, way: str, batch: int, source: int, target: int, equal: bool = False) -> Callable[[], float]:
    network, shared = build(model), way in ("lib", "bf16", "dropout")
    loss = network.textbook_loss if way == "textbook" else network.loss
    if way == "dropout":
        without_compiled_dropout()
    if not shared:
        without_kernels(network)
    if model.endswith("transformer"):  # source: paragraphs
        vocab_size = network.config.vocab_size
        items = clusters(batch, source, target, vocab_size, equal)
    else:
        vocab_size, items = VOCAB, documents(batch, source, target, VOCAB)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)

    threads = torch.get_num_threads()
    shares = [items[i::threads] for i in range(min(threads, batch))] if shared else [items]
    weights = [len(share) / batch for share in shares]

    def losses_of(share) -> dict:
        with torch.autocast("cpu", torch.bfloat16, enabled=way in ("bf16", "dropout")):
            return loss(make_batch(share, vocab_size))

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        value = backward_in_threads(network, losses_of, shares, weights)["loss"]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
        return value.item()

    return step


def profile(model: str, batch: int, source: int, target: int, rows: int = 10) -> dict:
    """Where lib's training step spends its time: percent of it in the operations that take most."""
    with torch_threads(1):  # all of it in one
        step = _step(model, "lib", batch, source, target)
        step()
        with torch.profiler.profile() as profiler:
            step()
    events = sorted(profiler.key_averages(), key=lambda e: -e.self_cpu_time_total)
    whole = sum(e.self_cpu_time_total for e in events)
    return {"percent": {e.key: round(100 * e.self_cpu_time_total / whole, 1) for e in events[:rows]}}


def search(model: str, at_once: int, count: int = 32, source: int = 400, length: int = 40) -> dict:
    """Seconds of beam search over `count` documents, `at_once` in a batch."""
    network = build(model)
    vocab_size = network.config.vocab_size
    items = documents(count, source, 5, vocab_size)
    at_once = min(at_once, count // torch.get_num_threads())  # every thread has a batch
    batches = [make_batch(items[i : i + at_once], vocab_size) for i in range(0, count, at_once)]

    def searched() -> list:
        if at_once == 1:  # one by one, with PyTorch's threads
            return [beam_search(network, batch, config)[0][0] for batch in batches]
        return written(network, batches, config)

    config = DecodeConfig(min_length=length, max_length=length)
    before = _peak()
    found = [best.ids for best in searched()]
    return {"ids": found, **_timed(searched, 2, before)}


def windows(encode: str, words: int, windowed: bool = True, summary: int = 3) -> dict:
    """Seconds and memory of a summary of one document: `summary` words a window of 400, encoded whole or streamed.

    The window moves by itself (static), so that random weights will do.
    """
    count, size = count_windows(words, 400, 380), {} if windowed else {"window": None, "stride": None}
    torch.manual_seed(0)
    network = Windowed(
        WindowedConfig(VOCAB, windowing="static", encode=encode, budget=summary * count, longest=words, **size)
    )
    batch = make_batch(documents(1, words, 5, VOCAB), VOCAB)
    length = summary * count
    config = DecodeConfig(beam=3, min_length=length, max_length=length)
    started = time.perf_counter()
    (found,) = beam_search(network, batch, config)
    return {"seconds": [time.perf_counter() - started], "peak_gb": _peak(), "words": len(found[0].ids)}


def second_read(way: str, batch: int = 64, words: int = 32, width: int = 512) -> dict:
    """Seconds of the second read of a GRU at the paper's sizes, forward and backward."""
    torch.manual_seed(0)
    layer, before = GatedGRU(width, width), _peak()
    inputs, alpha = (torch.rand(batch, words, width, requires_grad=True) for _ in range(2))

    def step() -> float:
        states = layer(inputs, alpha) if way == "lib" else gated_steps(layer.gru, inputs, alpha)
        loss = states.square().mean()
        loss.backward()
        return loss.item()

    return {"loss": step(), **_timed(step, 10, before)}


def demo(busy: bool, steps: int = 100) -> dict:
    """Seconds of a step of the Mem2Mem demo, and its last loss; beside a process that keeps a core busy, or alone."""
    preset = PAPERS["mem2mem"].presets["demo"]
    corpus = preset.options.prepare(load_corpus("aclsum"), progress=False)
    torch.manual_seed(0)
    network = Mem2Mem(Mem2MemConfig(len(corpus.vocabulary), **preset.config))
    config = replace(preset.train, steps=steps, log_every=10, validate_every=10**6)
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = training.train(Recipe("mem2mem", "+read"), network, corpus, config, folder, progress=False)
            logged = [m for m in run.metrics if m["split"] == "train"]
    finally:
        if other:
            other.kill()
    seconds = (logged[-1]["seconds"] - logged[0]["seconds"]) / (steps - 10)
    return {"seconds": [seconds], "loss": logged[-1]["loss"], "peak_gb": _peak(), "step_gb": 0.0}


def preprocess(way: str, papers: str, folder: str) -> dict:
    """Seconds to prepare the folder `papers` from its files, and the words kept."""
    corpus, options = load_corpus(papers), CohanOptions()
    shutil.rmtree(folder, ignore_errors=True)
    before, started = _peak(), time.perf_counter()
    if way == "lib":
        splits = options.prepare(corpus, folder=folder, progress=False).splits
    else:
        examples = {s: [options.example(d) for d in corpus.split(s)] for s in SPLITS}
        counts = Counter(w for e in examples["train"] for ws in (*e.sentences, e.summary) for w in ws)
        vocabulary = Vocabulary.from_counts(counts, options.vocab_size)
        splits = {s: Split.of([encode(e, vocabulary, 200) for e in examples[s]]) for s in SPLITS}
    seconds = [time.perf_counter() - started]
    words = sum(int(s.source_lengths.sum()) for s in splits.values())
    return {"seconds": seconds, "words": words, "peak_gb": _peak(), "step_gb": _peak() - before}


def large(documents: int, words: int = 1500, steps: int = 5) -> dict:
    """Seconds to prepare a corpus of so many documents, and the largest memory (mapped files counted in) of that and
    of some steps of training on it."""
    random = np.random.default_rng(0)
    names = np.array([f"word{i}" for i in range(200_000)])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "corpus"
        folder.mkdir()
        for split_name, count in (("train", documents), ("val", 100), ("test", 100)):
            with open(folder / f"{split_name}.jsonl", "w", encoding="utf-8") as file:
                for number in range(count):
                    drawn = names[np.minimum(random.zipf(1.3, words + 100), 200_000) - 1]
                    parts = [" ".join(drawn[i : i + 25]) + " ." for i in range(0, words + 100, 25)]
                    record = {"id": f"{split_name}{number}", "sections": [parts[4:]], "abstract_text": parts[:4]}
                    file.write(json.dumps({**record, "section_names": [""]}) + "\n")
        before, started = _peak(), time.perf_counter()
        corpus = CohanOptions().prepare(load_corpus(folder), folder=Path(temporary) / "prepared", progress=False)
        seconds, prepared = time.perf_counter() - started, _peak()
        network = Mem2Mem(Mem2MemConfig(len(corpus.vocabulary), embedding=64, hidden=64, bottleneck=64))
        config = TrainConfig(batch_size=16, steps=steps, validate_every=10**6)
        training.train(Recipe("mem2mem", "+read"), network, corpus, config, Path(temporary) / "run", progress=False)
    return {"seconds": [seconds], "start_gb": before, "peak_gb": prepared, "training_gb": _peak()}


def products(size: int = 2048, repeats: int = 8) -> dict:
    """Floating-point operations a second of a large matrix product, the machine's best of `repeats`."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    timed = _timed(lambda: a @ b, repeats)
    return {"flop_per_second": 2 * size**3 / min(timed["seconds"])}


def _timed(function, repeats: int, before: float = 0.0) -> dict:
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return {"seconds": seconds, "peak_gb": _peak(), "step_gb": _peak() - before}


def _peak() -> float:
    """Largest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
