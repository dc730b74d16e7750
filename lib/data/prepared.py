"""A corpus in ids, on disk and in memory: compact enough to travel, and all that training needs.

A folder holds `prepared.json` (options, counts, fingerprint), the files of its `TextEncoder`, and for each split
the files of `Split`: ids, lengths, unknown words, reference sentences.
"""

import hashlib
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.options import Example, Options
from lib.data.pieces import Pieces
from lib.data.split import Split
from lib.data.vocabulary import EOS, UNK, Vocabulary
from lib.system.errors import InputError
from lib.system.fields import checked, field_names
from lib.system.files import cached, check_file, locked, remove_leftovers, temporary_beside, write_json, write_whole
from lib.system.fingerprints import code_digest, digest
from lib.system.processes import default_workers, in_processes


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Options and vocabularies that turn documents into a model's ids, as its training documents were, and ids into
    text."""

    options: Any  # an `Options`
    vocabulary: Any  # a `Vocabulary`, of what the model writes, and for most models of what it reads
    source_vocabulary: Vocabulary | None = None  # where the encoder knows other words (Read-Again)
    chooser: dict[str, np.ndarray] | None = (
        None  # weights of a model that chooses what is read: paragraphs, sentences
    )

    def save(self, folder: str | Path) -> None:
        """Write `pieces.model` or `vocabulary.txt`, and where there are such `source_vocabulary.txt` and
        `ranker.safetensors`. The options are the caller's to save."""
        folder = Path(folder)
        self.vocabulary.save(folder / ("pieces.model" if isinstance(self.vocabulary, Pieces) else "vocabulary.txt"))
        if self.source_vocabulary is not None:
            self.source_vocabulary.save(folder / "source_vocabulary.txt")
        if self.chooser is not None:
            write_whole(folder / "ranker.safetensors", save(self.chooser))

    @classmethod
    def load(cls, folder: str | Path, options: Options) -> "TextEncoder":
        """Read what `save` wrote. Raises OSError, ValueError or SafetensorError for what is missing or damaged."""
        folder = Path(folder)
        pieces, source, ranker = (folder / n for n in ("pieces.model", "source_vocabulary.txt", "ranker.safetensors"))
        for path in (pieces, source, ranker, folder / "vocabulary.txt"):
            if path.exists():
                check_file(path, folder=folder)
        return cls(
            options,
            Pieces.load(pieces) if pieces.exists() else Vocabulary.load(folder / "vocabulary.txt"),
            Vocabulary.load(source) if source.exists() else None,
            _chooser(ranker) if ranker.exists() else None,
        )

    def encode(self, documents: Iterable[Document]) -> list[EncodedDocument]:
        """Texts as those of its corpus were encoded (`Options.encode`)."""
        return self.options.encode(documents, self)

    def encode_example(self, example: Example) -> EncodedDocument:
        """Words to ids of the vocabulary, and to those of the encoder's own."""
        encoded = encode(example, self.vocabulary, self.options.summary_tokens)
        if self.source_vocabulary is None:
            return encoded
        known = self.source_vocabulary.encode_target(example.words, [])  # words it does not know are [UNK]
        return replace(encoded, source_ids=np.array(known, dtype=np.int32))

    def digest(self) -> str:
        """A name of both vocabularies and the ranker."""
        weights = {n: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()] for n, a in (self.chooser or {}).items()}
        source = None if self.source_vocabulary is None else self.source_vocabulary.identity
        return digest([self.vocabulary.identity, source, weights])


def _chooser(path: Path) -> dict[str, np.ndarray]:
    try:
        return load_file(path)
    except (KeyError, TypeError) as error:  # of a kind of numbers that numpy has not
        raise InputError(f"{path}: weights that cannot be read ({error})") from None


def encode(example: Example, vocabulary: Vocabulary, summary_tokens: int) -> EncodedDocument:
    """Words to extended ids, one document. `WordOptions.prepare` does the same for a corpus, with numpy."""
    lengths = [len(s) for s in example.sentences]
    source, unknown = vocabulary.encode_source(example.words)
    target = [*vocabulary.encode_target(example.summary, unknown), EOS][:summary_tokens]
    return EncodedDocument.of(example.id, source, lengths, target, unknown, example.reference, example.tokenised)


@dataclass(frozen=True)
class PreparedCorpus:
    """Encoded splits of a corpus, and what they were encoded with."""

    name: str
    encoder: TextEncoder
    splits: dict[str, Split]
    report: str = ""
    remarks: str = ""  # on records that were left out and ids that come again; empty where there are none

    def __getitem__(self, split_name: str) -> Split:
        return self.splits[split_name]

    @property
    def options(self) -> Any:
        """Options of the class that the corpus was prepared for."""
        return self.encoder.options

    @property
    def vocabulary(self) -> Vocabulary:
        return self.encoder.vocabulary

    @property
    def fingerprint(self) -> str:
        """Hash of every id and text, and of what gives them a meaning."""
        more = self.encoder.source_vocabulary is not None or self.encoder.chooser is not None
        encoder = [self.vocabulary.words, self.encoder.digest()] if more else [self.vocabulary.words]
        return digest([*encoder, *(self.splits[name].fingerprint() for name in sorted(self.splits))])

    def save(self, folder: str | Path, made_of: str = "") -> Path:
        """Write the folder whole: it appears under its name when everything is in it. made_of: a digest of what it
        was made of, for `cached_corpus`.

        Raises CorpusError where it would take the place of something else than a prepared corpus.
        """
        folder = Path(folder)
        _check_replaceable(folder)
        building = temporary_beside(folder)
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
            "remarks": self.remarks,
            "made_of": made_of,
        }
        write_json(building / "prepared.json", {**description, "digest": digest(description)})
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
        return folder

    @classmethod
    def load(cls, folder: str | Path, kind: type[Options]) -> "PreparedCorpus":
        """Read what `save` wrote. Raises DamagedCorpus for a folder that is no prepared corpus, or whose files are
        not those that were written; CorpusError where it has options of another kind."""
        folder = Path(folder)
        description = _description(folder)
        name, made_for = description["corpus"], description["options_class"]
        if made_for != kind.__name__:
            raise CorpusError(
                f"{folder}: {name} was prepared there with {made_for}, and {kind.__name__} is needed: another "
                "folder, or the corpus itself to prepare it anew"
            )
        if other := sorted(description["options"].keys() - field_names(kind)):
            raise CorpusError(f"{folder}: {name} was prepared there with {other[0]}, which {made_for} has no more")
        options = kind(**description["options"])
        try:
            splits = {split_name: Split.load(folder, split_name) for split_name in description["documents"]}
            encoder = TextEncoder.load(folder, options)
        except PermissionError:
            raise
        except (OSError, ValueError, SafetensorError) as error:
            raise _damaged(folder, error) from None
        corpus = cls(name, encoder, splits, description["report"], description["remarks"])
        if corpus.fingerprint != description["fingerprint"]:
            raise _damaged(folder, "its files are not those that were written")
        return corpus


class DamagedCorpus(CorpusError):
    """A folder that should hold a prepared corpus, whose files are not those that were written."""


def _damaged(folder: Path, reason: object) -> DamagedCorpus:
    return DamagedCorpus(
        f"{folder}: not a prepared corpus, or damaged ({reason}). Remove the folder to make it anew."
    )


_DESCRIBED = ("corpus", "options_class", "options", "documents", "fingerprint", "report", "remarks")


def _description(folder: Path) -> dict:
    """The contents of prepared.json. Raises DamagedCorpus unless they are as they were written."""
    try:
        description = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
    except PermissionError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, error) from None
    if not isinstance(description, dict) or description.pop("digest", None) != digest(description):
        raise _damaged(folder, "prepared.json is not what was written")
    if missing := [key for key in _DESCRIBED if key not in description]:
        raise _damaged(folder, f"prepared.json does not say {missing[0]}")
    return description


@checked
class WordOptions(Options):
    """Options of models that read and write words: their `example` is an `Example`, and the vocabulary is that of the
    training documents."""

    def prepare(
        self,
        corpus,
        limit: int | None = None,
        folder: str | Path | None = None,
        progress: bool = True,
        workers: int | None = None,
    ) -> PreparedCorpus:
        """Prepare a corpus as `Options.prepare` says.

        workers: processes; by default one a core on Linux and one elsewhere. Their number changes no result.
        """
        key = [corpus.identity, code_of(type(corpus)), asdict(self), limit]
        name = "".join(c if c.isalnum() else "_" for c in Path(corpus.name).name)
        workers = workers or default_workers()
        return cached_corpus(
            name, key, type(self), lambda parts: _prepare(corpus, self, limit, progress, workers, parts), folder
        )

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        examples = [self.example(document) for document in documents]
        for example in examples:
            if not example.sentences:
                raise InputError(f"document {example.id!r} has no words: nothing is left to summarize")
        return [encoder.encode_example(example) for example in examples]


def _prepare(
    corpus, options: Options, limit: int | None, progress: bool, workers: int, parts: Path
) -> PreparedCorpus:
    """Two passes: words counted and documents numbered chunk by chunk, each in a file of `parts` that a killed
    preparation finds again; then the chunks encoded. Memory holds the counts and a few chunks."""
    check_splits(corpus)
    options.check(corpus.name, map(options.example, corpus.split("train", min(limit or CHECKED, CHECKED))))
    counts, chunks, lengths = Counter(), {}, {}
    for name in SPLITS:
        documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
        numbered = ((parts / f"{name}-{n:06}.safetensors", chunk) for n, chunk in enumerate(chunked(documents)))
        chunks[name], lengths[name] = [], []
        for path, words, numbers, sources in in_processes(partial(_number_words, options), numbered, workers):
            chunks[name].append(path)
            lengths[name] += sources
            if name == "train":
                counts.update(dict(zip(words, numbers)))
    vocabulary, splits = Vocabulary.from_counts(counts, options.vocab_size, options.symbols), {}
    for name, paths in chunks.items():
        encoded = in_processes(partial(_encode_chunk, vocabulary, options.summary_tokens), iter(paths), workers)
        documents = (document for chunk in encoded for document in chunk)
        documents = watched(documents, f"{corpus.name}, {name}, encoded", progress, len(lengths[name]))
        most = len(vocabulary) + max(lengths[name], default=0)
        splits[name] = Split.write(parts, name, documents, most)
    return PreparedCorpus(corpus.name, TextEncoder(options, vocabulary), splits, corpus.report(), corpus.remarks())


CHECKED = 1_000  # training documents that say, before all are prepared, whether a corpus is one for the options


def check_splits(corpus) -> None:
    """Raise CorpusError for a split that is not there, or whose first record cannot be used, before hours go into
    the others."""
    for name in SPLITS:
        next(corpus.split(name))


LONG = 2  # seconds: what takes less is done in silence


def watched(documents: Iterable, name: str, progress: bool, total: int | None = None) -> Iterable:
    """The documents, with a bar that says how many there were, and how long the rest of `total` takes: only if it
    takes `LONG`."""
    bar = {"desc": name, "unit": " documents", "mininterval": 1, "ncols": 80, "total": total}
    return tqdm(documents, disable=not progress, leave=False, delay=LONG, file=sys.stdout, **bar)


def noted(what: str, progress: bool) -> AbstractContextManager:
    """A line that stands as long as the context is open."""
    return tqdm(desc=what, bar_format="{desc}", disable=not progress, leave=False, file=sys.stdout)


def cached_corpus(
    name: str,
    key: list,
    kind: type[Options],
    make: Callable[[Path], PreparedCorpus],
    folder: str | Path | None = None,
) -> PreparedCorpus:
    """The corpus that `make` gives, saved in `folder`: by default in the cache, named after `name`, `key`, and the
    code that defines `kind`, the class of its options, and `make`. Parts that are made on the way are in the folder
    that `make` is given: they are there again after a killed preparation, and gone after a finished one.

    Of several processes that want the same corpus one makes it, and the others wait. What is damaged in the cache is
    made again, and standard error says so. Raises CorpusError for a named folder that is damaged or holds something
    else.
    """
    made_of, made_for = digest([key, kind.__name__]), digest([key, kind.__name__, code_of(kind, make)])
    named, folder = folder is not None, Path(folder or cached(f"{name}-{made_for}", "prepared.json"))
    try:
        corpus = _corpus_in(folder, kind, named)
        if corpus is None:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with locked(folder.with_name(f".{folder.name}.lock"), f"prepares {folder}"):
                corpus = _corpus_in(folder, kind, named)
                if corpus is None:
                    remove_leftovers(folder.parent, folder.name)
                    if not named and folder.exists():
                        print(f"{folder}: a prepared corpus that is damaged. It is made again", file=sys.stderr)
                        shutil.rmtree(folder)
                    parts = _parts(folder, made_for)
                    make(parts).save(folder, made_of)
                    shutil.rmtree(parts)
                    corpus = PreparedCorpus.load(folder, kind)
    except OSError as error:
        raise CorpusError(
            f"{folder} cannot be prepared ({error}). COMPANION_CACHE names another place for prepared corpora."
        ) from None
    if named and _description(folder).get("made_of") != made_of:
        raise CorpusError(
            f"{folder} holds {corpus.name} as it was prepared from other files, with other options or by other code: "
            "name another folder, or remove this one to make it anew"
        )
    return corpus


def _corpus_in(folder: Path, kind: type[Options], named: bool) -> PreparedCorpus | None:
    """The corpus that is prepared in a folder; None where it has to be made. Raises CorpusError for a named folder
    with something else in it."""
    if not (folder / "prepared.json").exists():
        if named:
            _check_replaceable(folder)
        return None
    try:
        return PreparedCorpus.load(folder, kind)
    except DamagedCorpus:
        if named:
            raise
        return None


def _parts(folder: Path, made_for: str) -> Path:
    """The folder of parts that are made on the way to `folder`; what a killed preparation of something else left
    goes.

    Raises CorpusError where there is another folder of this name.
    """
    parts = folder.with_name(f".{folder.name}.parts")
    stamp = parts / "made_for"
    if parts.exists() and not stamp.exists() and any(parts.iterdir()):
        raise CorpusError(f"{parts} is there and holds no parts of a corpus: name another folder, or take it away")
    if stamp.exists() and stamp.read_text(encoding="utf-8") != made_for:
        shutil.rmtree(parts)
    parts.mkdir(exist_ok=True)
    remove_leftovers(parts)
    write_whole(stamp, made_for)
    return parts


def is_prepared(folder: str | Path) -> bool:
    """Whether there is a prepared corpus, whole or damaged."""
    try:
        return (Path(folder) / "prepared.json").exists()
    except OSError:  # a name that no folder can have
        return False


def code_of(*parts: Callable | type) -> str:
    """A name of the code that defines these functions and classes; what stands outside the library has none."""
    return code_digest(*sorted({p.__module__ for p in parts if p.__module__.startswith("lib.")}))


def _check_replaceable(folder: Path) -> None:
    """Raise CorpusError unless `folder` is new, empty or holds a prepared corpus alone: what it holds is going to be
    deleted."""
    if not folder.exists():
        return
    contents = list(folder.iterdir()) if folder.is_dir() else [folder]
    ours = any(path.name == "prepared.json" for path in contents)
    if others := sorted(path.name for path in contents if not (ours and _OWN.fullmatch(path.name))):
        raise CorpusError(
            f"{folder} is there and is no prepared corpus: it would be deleted, with {others[0]!r} in it. Name a "
            "folder that is new or empty."
        )


# The files of a prepared corpus.
_OWN = re.compile(
    r"prepared\.json|(source_)?vocabulary\.txt|pieces\.model|ranker\.safetensors|"
    rf"({'|'.join(SPLITS)})\.(\w+\.bin|safetensors)"
)


# ------------------------------------------------------------------------------- one pass over a corpus, in numbers

CHUNK = 256  # documents


def _number_words(
    options: Options, numbered: tuple[Path, list[Document]]
) -> tuple[Path, list[str], list[int], list[int]]:
    """Preprocess a chunk of documents and put it into its file, unless it is there. Returns the file, the chunk's
    words in the order in which they come, how often each does, and the lengths of the sources."""
    path, documents = numbered
    if not path.exists():
        numbers: dict[str, int] = {}
        examples = [_numbers(options.example(document), numbers) for document in documents]
        arrays = {key: np.concatenate([d[key] for d in examples]) for key in examples[0]}
        lengths = {f"{key}_count": np.array([len(d[key]) for d in examples], dtype=np.int32) for key in examples[0]}
        words = np.frombuffer("\n".join(numbers).encode(), np.uint8)
        write_whole(path, save({**arrays, **lengths, "words": words}))
    chunk = load_file(path)
    words = chunk["words"].tobytes().decode().split("\n")
    counts = np.bincount(np.concatenate([chunk["source"], chunk["summary"]]), minlength=len(words))
    return path, words, counts.tolist(), chunk["source_count"].tolist()


def _numbers(example: Example, numbers: dict[str, int]) -> dict[str, np.ndarray]:
    """An example as arrays, its words as numbers of the chunk's words."""
    if not example.sentences or not example.summary:
        raise CorpusError(f"document {example.id!r} has no words in its source or its summary")
    source, summary = (
        np.array([numbers.setdefault(w, len(numbers)) for w in words], dtype=np.int32)
        for words in (example.words, example.summary)
    )
    lengths = np.array([len(s) for s in example.sentences], dtype=np.int32)
    texts = json.dumps([example.id, example.reference, example.tokenised], ensure_ascii=False).encode()
    return {
        "source": source, "summary": summary, "sentence_lengths": lengths, "texts": np.frombuffer(texts, np.uint8),
    }  # fmt: skip


def _encode_chunk(vocabulary: Vocabulary, summary_tokens: int, path: Path) -> list[EncodedDocument]:
    """The documents of a chunk with the vocabulary's ids."""
    chunk = load_file(path)
    words = chunk["words"].tobytes().decode().split("\n")
    final = np.array(vocabulary.encode_target(words, []), dtype=np.int32)
    final[final == UNK] = -1
    keys = ("source", "summary", "sentence_lengths", "texts")
    cut = {key: np.split(chunk[key], np.cumsum(chunk[f"{key}_count"])[:-1]) for key in keys}
    documents = zip(*(cut[key] for key in keys))
    return [_encoded(document, final, words, len(vocabulary), summary_tokens) for document in documents]


def _encoded(
    document: tuple[np.ndarray, ...], final: np.ndarray, words: list[str], vocab_size: int, summary_tokens: int
) -> EncodedDocument:
    """A document of source, summary (in numbers), sentence lengths and texts. `final` gives the vocabulary's id of a
    number, or -1."""
    source, summary, lengths, texts = document
    outside, first, inverse = np.unique(source[final[source] < 0], return_index=True, return_inverse=True)
    copies = vocab_size + np.argsort(np.argsort(first))  # in the order in which they occur
    ids = final[source]
    ids[ids < 0] = copies[inverse]
    target = final[summary]
    if len(outside):
        places = np.searchsorted(outside, summary).clip(max=len(outside) - 1)
        target = np.where((target < 0) & (outside[places] == summary), copies[places], target)
    target = np.append(np.where(target < 0, UNK, target), EOS)[:summary_tokens].astype(np.int32)
    name, reference, tokenised = json.loads(texts.tobytes())
    unknown = [words[i] for i in outside[np.argsort(first)]]
    return EncodedDocument(name, ids, lengths, target, unknown, reference, tokenised=tokenised)


def chunked(documents: Iterable) -> Iterator[list]:
    documents = iter(documents)
    while chunk := list(islice(documents, CHUNK)):
        yield chunk
