"""A corpus in ids, on disk and in memory: compact enough to travel, and all that training needs.

A folder holds `prepared.json` (options, counts, fingerprint), the files of its `TextEncoder`, and for each split
`NAME.safetensors` (ids and lengths, 16-bit where they fit) and `NAME.jsonl.gz` (id, unknown words, reference
sentences).
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.options import Example, Options
from lib.data.pieces import Pieces
from lib.data.processes import default_workers, in_processes
from lib.data.text import EOS, SPECIALS, UNK, Vocabulary
from lib.storage import cache_dir, code_digest, digest, write_json, write_whole


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """All that turns documents into a model's ids and ids into text, as its training documents were."""

    options: Any  # an `Options`
    vocabulary: Any  # a `Vocabulary`, of what the model writes, and for most models of what it reads
    source_vocabulary: Vocabulary | None = None  # where the encoder knows other words (Read-Again)
    ranker: dict[str, np.ndarray] | None = None  # weights of a learned paragraph ranker (hierarchical Transformer)

    def save(self, folder: str | Path) -> None:
        """`pieces.model` or `vocabulary.txt`, and where there are such `source_vocabulary.txt` and
        `ranker.safetensors`. The options are the caller's to keep."""
        folder = Path(folder)
        self.vocabulary.save(folder / ("pieces.model" if isinstance(self.vocabulary, Pieces) else "vocabulary.txt"))
        if self.source_vocabulary is not None:
            self.source_vocabulary.save(folder / "source_vocabulary.txt")
        if self.ranker is not None:
            write_whole(folder / "ranker.safetensors", save(self.ranker))

    @classmethod
    def load(cls, folder: str | Path, options: Options) -> "TextEncoder":
        """What `save` wrote. Raises OSError, ValueError or SafetensorError for what is missing or damaged."""
        folder = Path(folder)
        pieces, source, ranker = (folder / n for n in ("pieces.model", "source_vocabulary.txt", "ranker.safetensors"))
        return cls(
            options,
            Pieces.load(pieces) if pieces.exists() else Vocabulary.load(folder / "vocabulary.txt"),
            Vocabulary.load(source) if source.exists() else None,
            load_file(ranker) if ranker.exists() else None,
        )

    def encode(self, example: Example) -> EncodedDocument:
        """Words to ids of the vocabulary, and to those of the encoder's own."""
        made = encode(example, self.vocabulary, self.options.summary_tokens)
        if self.source_vocabulary is None:
            return made
        known = self.source_vocabulary.encode_target(example.words, [])  # words it does not know are [UNK]
        return replace(made, source_ids=np.array(known, dtype=np.int32))

    def digest(self) -> str:
        """A name of both vocabularies and the ranker."""
        weights = {n: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()] for n, a in (self.ranker or {}).items()}
        source = None if self.source_vocabulary is None else self.source_vocabulary.identity
        return digest([self.vocabulary.identity, source, weights])


def encode(example: Example, vocabulary: Vocabulary, summary_tokens: int) -> EncodedDocument:
    """Words to extended ids, one document. `prepare` does the same for a corpus, with numpy."""
    lengths = [len(s) for s in example.sentences]
    source, unknown = vocabulary.encode_source(example.words)
    target = [*vocabulary.encode_target(example.summary, unknown), EOS][:summary_tokens]
    return EncodedDocument.of(example.id, source, lengths, target, unknown, example.reference)


def encode_documents(documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
    """Texts, with or without a summary, as those of a corpus were encoded; without one the target is [EOS].

    Raises ValueError for a document without words.
    """
    examples = [encoder.options.example(document) for document in documents]
    for example in examples:
        if not example.sentences:
            raise ValueError(f"document {example.id!r} has no words: nothing is left to summarize")
    return [encoder.encode(example) for example in examples]


class Split(Sequence):
    """Encoded documents of one split: flat arrays and offsets, so that a large corpus stays small."""

    ARRAYS = ("source", "sentence_lengths", "target", "source_ids", "graph")

    def __init__(self, arrays: dict[str, np.ndarray], texts: list[bytes]):
        self._arrays, self._texts = arrays, texts
        counts = {key: arrays[f"{key}_count"] for key in self.ARRAYS if key in arrays}
        self._offsets = {key: np.append(0, np.cumsum(n, dtype=np.int64)) for key, n in counts.items()}

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
        values: dict[str, Any] = json.loads(self._texts[index])
        for key, offsets in self._offsets.items():
            own = self._arrays[key][offsets[index] : offsets[index + 1]]
            values[key] = own.astype(np.float32 if key == "graph" else np.int32)
        return EncodedDocument(**values)

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
    """Encoded splits of a corpus, and what they were encoded with."""

    name: str
    encoder: TextEncoder
    splits: dict[str, Split]
    report: str = ""

    def __getitem__(self, split_name: str) -> Split:
        return self.splits[split_name]

    @property
    def options(self) -> Any:
        """Of the class that the corpus was prepared for."""
        return self.encoder.options

    @property
    def vocabulary(self) -> Vocabulary:
        return self.encoder.vocabulary

    @property
    def fingerprint(self) -> str:
        """Of every id and text, and of what gives them a meaning."""
        more = self.encoder.source_vocabulary is not None or self.encoder.ranker is not None
        encoder = [self.vocabulary.words, self.encoder.digest()] if more else [self.vocabulary.words]
        return digest([*encoder, *(self.splits[name].fingerprint() for name in sorted(self.splits))])

    def save(self, folder: str | Path) -> Path:
        """Write the folder whole: it appears under its name when everything is in it.

        Raises CorpusError where it would take the place of something else than a prepared corpus.
        """
        folder = Path(folder)
        _check_replaceable(folder)
        building = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        self.encoder.save(building)
        for name, split in self.splits.items():
            split.save(building, name)
        description = {
            "corpus": self.name,
            "options_class": type(self.options).__name__,
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
    def load(cls, folder: str | Path, kind: type[Options]) -> "PreparedCorpus":
        """Raises CorpusError for a folder that is no prepared corpus, was damaged, or has options of another kind."""
        folder = Path(folder)
        try:
            description = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
            name, made_for = description["corpus"], description["options_class"]
            if made_for == kind.__name__:
                splits = {split_name: Split.load(folder, split_name) for split_name in description["documents"]}
                encoder = TextEncoder.load(folder, kind(**description["options"]))
                return cls(name, encoder, splits, description["report"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, SafetensorError) as error:
            raise CorpusError(
                f"{folder}: not a prepared corpus ({error}). Remove the folder to make it anew."
            ) from None
        raise CorpusError(
            f"{folder}: {name} was prepared there with {made_for}, and {kind.__name__} is needed: another folder, or "
            "the corpus itself to prepare it anew"
        )


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
        options: of a paper's own preprocessing, whose `example` gives words.
        limit: at most so many documents of each split.
        folder: empty, new, or with a corpus that was prepared for the same class of options.
        workers: processes; by default one a core on Linux and one elsewhere. Their number changes no result.
    """
    key = [corpus.identity, code_of(type(corpus)), asdict(options), limit]
    name = "".join(c if c.isalnum() else "_" for c in Path(corpus.name).name)
    workers = workers or default_workers()
    return cached_corpus(
        name, key, type(options), lambda: _prepare(corpus, options, limit, progress, workers), folder
    )


def _prepare(corpus, options: Options, limit: int | None, progress: bool, workers: int) -> PreparedCorpus:
    words, splits = _Words(), {}
    for name in SPLITS:
        documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
        chunks = in_processes(partial(_number_words, options), _chunked(documents), workers)
        splits[name] = [d for chunk in chunks for d in words.add(*chunk, counted=name == "train")]
    vocabulary, final = words.vocabulary(options.vocab_size, options.symbols)
    encoded = {
        name: Split.of([d.encode(final, words.words, len(vocabulary), options.summary_tokens) for d in documents])
        for name, documents in splits.items()
    }
    return PreparedCorpus(corpus.name, TextEncoder(options, vocabulary), encoded, corpus.report())


def watched(documents: Iterable[Document], name: str, progress: bool) -> Iterable[Document]:
    """The documents, with a bar that says how many there were: only if it takes more than two seconds."""
    bar = {"desc": name, "unit": " documents", "mininterval": 1, "ncols": 80}
    return tqdm(documents, disable=not progress, leave=False, delay=2, file=sys.stdout, **bar)


def cached_corpus(
    name: str, key: list, kind: type[Options], make: Callable[[], PreparedCorpus], folder: str | Path | None = None
) -> PreparedCorpus:
    """What `make` gives, kept in `folder`: by default in the cache, named after `name`, `key`, and the code that
    defines `kind`, the class of its options, and `make`.

    Of several processes that want the same corpus one makes it, and the others wait. Raises CorpusError for a folder
    that holds something else.
    """
    folder = Path(folder or cache_dir() / f"{name}-{digest([key, kind.__name__, code_of(kind, make)])}")
    if not (folder / "prepared.json").exists():
        _check_replaceable(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not (folder / "prepared.json").exists():
                made = make()
                made.save(folder)
                return made
    return PreparedCorpus.load(folder, kind)


def code_of(*parts: Callable | type) -> str:
    """A name of the code that defines these functions and classes; what stands outside the library has none."""
    return code_digest(*sorted({p.__module__ for p in parts if p.__module__.startswith("lib.")}))


def _check_replaceable(folder: Path) -> None:
    """CorpusError unless `folder` is new, empty or a prepared corpus: what it holds is going to be deleted."""
    if (folder / "prepared.json").exists() or not folder.exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise CorpusError(
            f"{folder} is there and is no prepared corpus: it would be deleted. Name a folder that is new or empty."
        )


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


def _number_words(options: Options, documents: list[Document]) -> tuple[list[str], list[_NumberedDocument]]:
    """Preprocess a chunk of documents; its words, and the documents as numbers of them."""
    numbers: dict[str, int] = {}
    numbered = []
    for example in map(options.example, documents):
        if not example.sentences or not example.summary:
            raise CorpusError(f"document {example.id!r} has no words in its source or its summary")
        source, summary = (
            np.array([numbers.setdefault(w, len(numbers)) for w in words], dtype=np.int32)
            for words in (example.words, example.summary)
        )
        lengths = np.array([len(s) for s in example.sentences], dtype=np.int32)
        numbered.append(_NumberedDocument(example.id, source, lengths, summary, example.reference))
    return list(numbers), numbered


def _chunked(documents: Iterable) -> Iterator[list]:
    documents = iter(documents)
    while chunk := list(islice(documents, CHUNK)):
        yield chunk
