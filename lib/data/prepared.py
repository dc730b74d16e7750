"""A corpus in ids, on disk and in memory: compact enough to travel, and all that training needs.

A folder holds `vocab.txt`, `prepared.json` (options, counts, fingerprint), and for each split `NAME.safetensors`
(ids and lengths, 16-bit where they fit) and `NAME.jsonl.gz` (id, unknown words, reference sentences).
"""

import gzip
import hashlib
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from tqdm import tqdm

from lib.data.documents import SPLITS, CorpusError
from lib.data.preprocess import CohanOptions, Example, cohan
from lib.data.text import EOS, Vocabulary
from lib.files import cache_dir, digest, source_digest, write_json, write_whole


@dataclass(frozen=True)
class EncodedDocument:
    """One document in extended ids."""

    id: str
    source: np.ndarray  # [N] extended ids
    sentence_lengths: np.ndarray  # [L], their sum is N
    target: np.ndarray  # [T] extended ids, [EOS] last unless the summary was cut
    unknown: list[str]  # the word of extended id len(vocabulary) + j
    reference: list[str]  # sentences


def encode(example: Example, vocabulary: Vocabulary, summary_tokens: int) -> EncodedDocument:
    """Words to extended ids. Raises ValueError when source or summary has no words."""
    lengths = [len(s) for s in example.sentences]
    if not sum(lengths) or not example.summary:
        raise ValueError(f"document {example.id!r} has no words in its {'summary' if sum(lengths) else 'source'}")
    source, unknown = vocabulary.encode_source(w for s in example.sentences for w in s)
    target = [*vocabulary.encode_target(example.summary, unknown), EOS][:summary_tokens]
    arrays = (np.array(values, dtype=np.int32) for values in (source, lengths, target))
    return EncodedDocument(example.id, *arrays, unknown, example.reference)


class Split(Sequence):
    """Encoded documents of one split: flat arrays and offsets, so that a large corpus stays small."""

    ARRAYS = ("source", "sentence_lengths", "target")

    def __init__(self, arrays: dict[str, np.ndarray], texts: list[bytes]):
        self._arrays, self._texts = arrays, texts
        self._offsets = {
            k: np.concatenate([[0], np.cumsum(arrays[f"{k}_count"], dtype=np.int64)]) for k in self.ARRAYS
        }

    @classmethod
    def of(cls, documents: Sequence[EncodedDocument]) -> "Split":
        arrays = {}
        for key in cls.ARRAYS:
            values = [getattr(d, key) for d in documents]
            flat = np.concatenate(values) if values else np.zeros(0, np.int32)
            arrays[key] = flat.astype(np.uint16 if flat.max(initial=0) < 2**16 else np.int32)
            arrays[f"{key}_count"] = np.array([len(v) for v in values], dtype=np.int32)
        texts = [{"id": d.id, "unknown": d.unknown, "reference": d.reference} for d in documents]
        return cls(arrays, [json.dumps(t, ensure_ascii=False).encode() for t in texts])

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> EncodedDocument:
        arrays = {
            key: self._arrays[key][offsets[index] : offsets[index + 1]].astype(np.int32)
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


@dataclass(frozen=True)
class PreparedCorpus:
    """Vocabulary and encoded splits of a corpus."""

    name: str
    options: CohanOptions
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
        building = folder.with_name(f".{folder.name}.tmp")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        self.vocabulary.save(building / "vocab.txt")
        for name, split in self.splits.items():
            split.save(building, name)
        description = {
            "corpus": self.name,
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
            vocabulary = Vocabulary.load(folder / "vocab.txt")
        except (OSError, ValueError, KeyError, EOFError, SafetensorError) as error:
            raise CorpusError(
                f"{folder}: not a prepared corpus ({error}). Remove the folder to make it anew."
            ) from None
        options = CohanOptions(**description["options"])
        return cls(description["corpus"], options, vocabulary, splits, description["report"])


def prepare(
    corpus,
    options: CohanOptions,
    limit: int | None = None,
    step: Callable = cohan,
    folder: str | Path | None = None,
    progress: bool = True,
) -> PreparedCorpus:
    """Preprocess a corpus, build its vocabulary from the training documents and encode every split.

    The result is kept in `folder` (by default in the cache, under a name made of corpus, options and code) and
    loaded from there the next time.

    Args:
        corpus: a `lib.data.corpora.Corpus`.
        limit: at most so many documents of each split.
        step: the paper's preprocessing, from (Document, options) to Example.
    """
    key = [corpus.identity, asdict(options), limit, step.__name__, source_digest("data")]
    name = "".join(c if c.isalnum() else "_" for c in Path(corpus.name).name)
    folder = Path(folder or cache_dir() / f"{name}-{digest(key)}")
    if (folder / "prepared.json").exists():
        return PreparedCorpus.load(folder)
    # Two passes, so that a corpus need not fit into memory as words.
    counts = Counter()
    for example in _examples(corpus, "train", limit, options, step, progress):
        counts.update(w for words in (*example.sentences, example.summary) for w in words)
    vocabulary = Vocabulary.from_counts(counts, options.vocab_size)
    encoded = {}
    for split in SPLITS:
        examples = _examples(corpus, split, limit, options, step, progress)
        encoded[split] = Split.of([encode(e, vocabulary, options.summary_tokens) for e in examples])
    prepared = PreparedCorpus(corpus.name, options, vocabulary, encoded, corpus.report())
    prepared.save(folder)
    return prepared


def _examples(corpus, split, limit, options, step, progress) -> Iterator[Example]:
    bar = {
        "desc": f"{corpus.name}, {split}",
        "unit": " documents",
        "mininterval": 1,
        "ncols": 80,
        "file": sys.stdout,
    }
    for document in tqdm(corpus.split(split, limit), disable=not progress, leave=False, delay=2, **bar):
        yield step(document, options)
