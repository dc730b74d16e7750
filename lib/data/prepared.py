"""A corpus in ids, on disk and in memory: compact enough to travel, and all that training needs.

A folder holds `vocab.txt` or `pieces.model`, `prepared.json` (options, counts, fingerprint), and for each split
`NAME.safetensors` (ids and lengths, 16-bit where they fit) and `NAME.jsonl.gz` (id, unknown words, reference
sentences).
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError
from lib.data.pieces import Pieces
from lib.data.preprocess import STEPS, ArticleOptions, ClusterOptions, CohanOptions, Example, HeadlineOptions
from lib.data.text import EOS, SPECIALS, UNK, Vocabulary
from lib.storage import cache_dir, digest, source_digest, write_json, write_whole

Options = CohanOptions | ArticleOptions | HeadlineOptions | ClusterOptions


def encode(example: Example, vocabulary: Vocabulary, summary_tokens: int) -> EncodedDocument:
    """Words to extended ids, one document. `prepare` does the same for a corpus, with numpy."""
    lengths = [len(s) for s in example.sentences]
    source, unknown = vocabulary.encode_source(w for s in example.sentences for w in s)
    target = [*vocabulary.encode_target(example.summary, unknown), EOS][:summary_tokens]
    arrays = (np.array(values, dtype=np.int32) for values in (source, lengths, target))
    return EncodedDocument(example.id, *arrays, unknown, example.reference)


class Split(Sequence):
    """Encoded documents of one split: flat arrays and offsets, so that a large corpus stays small."""

    ARRAYS = ("source", "sentence_lengths", "target", "source_ids", "graph")

    def __init__(self, arrays: dict[str, np.ndarray], texts: list[bytes]):
        self._arrays, self._texts = arrays, texts
        self._offsets = {
            k: np.concatenate([[0], np.cumsum(arrays[f"{k}_count"], dtype=np.int64)])
            for k in self.ARRAYS
            if k in arrays
        }

    @classmethod
    def of(cls, documents: Sequence[EncodedDocument]) -> "Split":
        arrays = {}
        for key in cls.ARRAYS:
            values = [getattr(d, key) for d in documents]
            if values and values[0] is None:
                continue
            flat = np.concatenate(values) if values else np.zeros(0, np.int32)
            arrays[key] = _compact(flat)
            arrays[f"{key}_count"] = np.array([len(v) for v in values], dtype=np.int32)
        texts = [{"id": d.id, "unknown": d.unknown, "reference": d.reference} for d in documents]
        return cls(arrays, [json.dumps(t, ensure_ascii=False).encode() for t in texts])

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> EncodedDocument:
        arrays = {
            key: self._arrays[key][offsets[index] : offsets[index + 1]].astype(
                np.float32 if key == "graph" else np.int32
            )
            for key, offsets in self._offsets.items()
        }
        return EncodedDocument(**json.loads(self._texts[index]), **arrays)

    @property
    def source_lengths(self) -> np.ndarray:
        return self._arrays["source_count"]

    def save(self, folder: Path, name: str) -> None:
        write_whole(folder / f"{name}.safetensors", save(self._arrays))
        write_whole(folder / f"{name}.jsonl.gz", gzip.compress(b"\n".join(self._texts) + b"\n", mtime=0))

    @classmethod
    def load(cls, folder: Path, name: str) -> "Split":
        with gzip.open(folder / f"{name}.jsonl.gz") as lines:
            return cls(load_file(folder / f"{name}.safetensors"), [line.rstrip(b"\n") for line in lines])

    def fingerprint(self) -> str:
        """Hash of every id and text."""
        sha = hashlib.sha256()
        for key in sorted(self._arrays):
            sha.update(self._arrays[key].tobytes())
        for text in self._texts:
            sha.update(text)
        return sha.hexdigest()[:12]


def _compact(values: np.ndarray) -> np.ndarray:
    """In as few bytes as hold them."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.uint16 if values.max(initial=0) < 2**16 else np.int32)


@dataclass(frozen=True)
class PreparedCorpus:
    """Vocabulary and encoded splits of a corpus."""

    name: str
    options: Options
    vocabulary: Vocabulary
    splits: dict[str, Split]
    report: str = ""

    def __getitem__(self, split: str) -> Split:
        return self.splits[split]

    @property
    def fingerprint(self) -> str:
        return digest([self.vocabulary.words, *(self.splits[s].fingerprint() for s in sorted(self.splits))])

    def save(self, folder: str | Path) -> Path:
        """Write the folder whole: it appears under its name when everything is in it."""
        folder = Path(folder)
        building = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        self.vocabulary.save(building / ("pieces.model" if isinstance(self.vocabulary, Pieces) else "vocab.txt"))
        for name, split in self.splits.items():
            split.save(building, name)
        description = {
            "corpus": self.name,
            "step": STEPS[type(self.options)].__name__,
            "options": asdict(self.options),
            "documents": {name: len(split) for name, split in self.splits.items()},
            "fingerprint": self.fingerprint,
            "report": self.report,
        }
        write_json(building / "prepared.json", description)
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "PreparedCorpus":
        """Raises CorpusError when the folder is not a prepared corpus or was damaged."""
        folder = Path(folder)
        try:
            description = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
            splits = {name: Split.load(folder, name) for name in description["documents"]}
            pieces = folder / "pieces.model"
            vocabulary = Pieces.load(pieces) if pieces.exists() else Vocabulary.load(folder / "vocab.txt")
        except (OSError, ValueError, KeyError, EOFError, SafetensorError) as error:
            raise CorpusError(
                f"{folder}: not a prepared corpus ({error}). Remove the folder to make it anew."
            ) from None
        kind = next(options for options, step in STEPS.items() if step.__name__ == description["step"])
        options = kind(**description["options"])
        return cls(description["corpus"], options, vocabulary, splits, description["report"])


def prepare(
    corpus,
    options: Options,
    limit: int | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
    workers: int | None = None,
) -> PreparedCorpus:
    """Preprocess a corpus, build its vocabulary from the training documents and encode every split.

    The result is kept in `folder` (by default in the cache, under a name made of corpus, options and code) and
    loaded from there the next time.

    Args:
        corpus: a `lib.data.corpora.Corpus`.
        options: of a paper's own preprocessing, which their type names.
        limit: at most so many documents of each split.
        workers: processes; by default one a core on Linux and one elsewhere. Their number changes no result.
    """
    key = [corpus.identity, asdict(options), limit, STEPS[type(options)].__name__]
    name = "".join(c if c.isalnum() else "_" for c in Path(corpus.name).name)
    workers = workers or default_workers()
    return cached_corpus(name, key, lambda: _prepare(corpus, options, limit, progress, workers), folder)


def _prepare(corpus, options: Options, limit: int | None, progress: bool, workers: int) -> PreparedCorpus:
    step = STEPS[type(options)]
    words, splits = _Words(), {}
    for split in SPLITS:
        bar = {"desc": f"{corpus.name}, {split}", "unit": " documents", "mininterval": 1, "ncols": 80}
        documents = tqdm(
            corpus.split(split, limit), disable=not progress, leave=False, delay=2, file=sys.stdout, **bar
        )
        chunks = in_processes(partial(_number_words, step, options), _chunked(documents), workers)
        splits[split] = [d for chunk in chunks for d in words.add(*chunk, counted=split == "train")]
    vocabulary, final = words.vocabulary(options.vocab_size, options.symbols)
    encoded = {
        split: Split.of([d.encode(final, words.words, len(vocabulary), options.summary_tokens) for d in documents])
        for split, documents in splits.items()
    }
    return PreparedCorpus(corpus.name, options, vocabulary, encoded, corpus.report())


def cached_corpus(
    name: str, key: list, make: Callable[[], PreparedCorpus], folder: str | Path | None = None
) -> PreparedCorpus:
    """What `make` gives, kept in `folder`: by default in the cache, named after `name`, `key` and the code.

    Of several processes that want the same corpus one makes it, and the others wait.
    """
    folder = Path(folder or cache_dir() / f"{name}-{digest([key, source_digest('data')])}")
    if not (folder / "prepared.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not (folder / "prepared.json").exists():
                made = make()
                made.save(folder)
                return made
    return PreparedCorpus.load(folder)


# ------------------------------------------------------------------------------- one pass over a corpus, in numbers

CHUNK = 256  # documents


@dataclass
class _NumberedDocument:
    """A preprocessed document whose words are numbers, before the vocabulary is known."""

    id: str
    source: np.ndarray
    sentence_lengths: np.ndarray
    summary: np.ndarray
    reference: list[str]

    def encode(self, final: np.ndarray, words: list[str], vocab_size: int, summary_tokens: int) -> EncodedDocument:
        """`final` gives the vocabulary's id of a number, or -1."""
        outside, first, inverse = np.unique(
            self.source[final[self.source] < 0], return_index=True, return_inverse=True
        )
        copies = vocab_size + np.argsort(np.argsort(first))  # in the order in which they occur
        source = final[self.source]
        source[source < 0] = copies[inverse]
        target = final[self.summary]
        if len(outside):
            places = np.searchsorted(outside, self.summary).clip(max=len(outside) - 1)
            target = np.where((target < 0) & (outside[places] == self.summary), copies[places], target)
        target = np.append(np.where(target < 0, UNK, target), EOS)[:summary_tokens].astype(np.int32)
        unknown = [words[i] for i in outside[np.argsort(first)]]
        return EncodedDocument(self.id, source, self.sentence_lengths, target, unknown, self.reference)


class _Words:
    """All words of a corpus, numbered as they come, and how often the training documents have them."""

    def __init__(self):
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}
        self._counts = np.zeros(0, dtype=np.int64)

    def add(self, words: list[str], documents: list[_NumberedDocument], counted: bool) -> list[_NumberedDocument]:
        """Renumber a chunk, which has numbers of its own, and count it."""
        mine = np.array([self._numbers.setdefault(w, len(self._numbers)) for w in words], dtype=np.int32)
        self.words.extend(words[i] for i in np.flatnonzero(mine >= len(self.words)))
        self._counts = np.append(self._counts, np.zeros(len(self.words) - len(self._counts), dtype=np.int64))
        for d in documents:
            d.source, d.summary = mine[d.source], mine[d.summary]
            if counted:
                np.add.at(self._counts, np.concatenate([d.source, d.summary]), 1)
        return documents

    def vocabulary(self, size: int, symbols: tuple[str, ...]) -> tuple[Vocabulary, np.ndarray]:
        """The most frequent words, and for each number its id in the vocabulary or -1."""
        counts = Counter({w: n for w, n in zip(self.words, self._counts.tolist()) if n})
        vocabulary = Vocabulary.from_counts(counts, size, symbols)
        final = np.full(len(self.words), -1, dtype=np.int32)
        first = len(SPECIALS) + len(symbols)
        final[[self._numbers[w] for w in vocabulary.words[first:]]] = np.arange(first, len(vocabulary))
        return vocabulary, final


def _number_words(step: Callable, options: Options, documents: list) -> tuple[list[str], list[_NumberedDocument]]:
    """Preprocess a chunk of documents; its words, and the documents as numbers of them."""
    numbers: dict[str, int] = {}
    numbered = []
    for example in (step(d, options) for d in documents):
        if not example.sentences or not example.summary:
            raise CorpusError(f"document {example.id!r} has no words in its source or its summary")
        source, summary = (
            np.array([numbers.setdefault(w, len(numbers)) for w in words], dtype=np.int32)
            for words in ([w for s in example.sentences for w in s], example.summary)
        )
        lengths = np.array([len(s) for s in example.sentences], dtype=np.int32)
        numbered.append(_NumberedDocument(example.id, source, lengths, summary, example.reference))
    return list(numbers), numbered


def _chunked(documents: Iterable) -> Iterator[list]:
    documents = iter(documents)
    while chunk := list(islice(documents, CHUNK)):
        yield chunk


def default_workers() -> int:
    """One process a core on Linux, where they are forked; elsewhere one."""
    return (os.cpu_count() or 1) if sys.platform == "linux" else 1


def in_processes(function: Callable, chunks: Iterator, workers: int) -> Iterator:
    """Results of `function` in order. A single chunk is not worth a process."""
    first = list(islice(chunks, 2))
    if workers == 1 or len(first) < 2:
        yield from map(function, chain(first, chunks))
        return
    # forked: the workers only handle text, and a script need not guard its main module
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        waiting = deque()
        for chunk in chain(first, chunks):
            waiting.append(pool.submit(function, chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
