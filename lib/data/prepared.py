"""A corpus in ids, on disk and in memory: all that training needs.

A folder holds `prepared.json` (options, counts, fingerprints), the files of its `TextEncoder`, and
an Arrow file for each split.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from safetensors.numpy import load_file, save
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import CorpusError, Document, Example
from lib.data.pieces import Pieces
from lib.data.split import Split
from lib.data.vocabulary import EOS, Vocabulary
from lib.system.files import cached, read_json, write_json, write_whole
from lib.system.fingerprints import code_digest, digest

DESCRIPTION = "prepared.json"


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Options and vocabularies that turn documents into a model's ids, and ids into text."""

    options: Any  # an `Options`
    # a `Vocabulary`, of what the model writes, and for most models of what it reads
    vocabulary: Any
    source_vocabulary: Vocabulary | None = None  # where the encoder knows other words (Read-Again)
    # weights of a model that chooses paragraphs or sentences
    chooser: dict[str, np.ndarray] | None = None

    def save(self, folder: str | Path) -> None:
        """Write the vocabularies and the chooser. The options are the caller's to save."""
        folder = Path(folder)
        self.vocabulary.save(
            folder / ("pieces.model" if isinstance(self.vocabulary, Pieces) else "vocabulary.txt")
        )
        if self.source_vocabulary is not None:
            self.source_vocabulary.save(folder / "source_vocabulary.txt")
        if self.chooser is not None:
            write_whole(folder / "ranker.safetensors", save(self.chooser))

    @classmethod
    def load(cls, folder: str | Path, options: Any) -> "TextEncoder":
        """Read what `save` wrote. Raises OSError or ValueError where it cannot be read."""
        folder = Path(folder)
        pieces, source, ranker = (
            folder / n for n in ("pieces.model", "source_vocabulary.txt", "ranker.safetensors")
        )
        return cls(
            options,
            Pieces.load(pieces) if pieces.exists() else Vocabulary.load(folder / "vocabulary.txt"),
            Vocabulary.load(source) if source.exists() else None,
            load_file(ranker) if ranker.exists() else None,
        )

    def encode(self, documents: Iterable[Document]) -> list[EncodedDocument]:
        """Encode texts as those of its corpus (`Options.encode`)."""
        return self.options.encode(documents, self)

    def encode_example(self, example: Example) -> EncodedDocument:
        """Encode words with the vocabulary, and the source with the encoder's own where there is
        one."""
        source, unknown = self.vocabulary.encode_source(example.words)
        target = [*self.vocabulary.encode_target(example.summary, unknown), EOS][
            : self.options.summary_tokens
        ]
        lengths = [len(sentence) for sentence in example.sentences]
        texts = unknown, example.reference, example.tokenised
        encoded = EncodedDocument.of(example.id, source, lengths, target, *texts)
        if self.source_vocabulary is None:
            return encoded
        # words it does not know are [UNK]
        known = self.source_vocabulary.encode_target(example.words, [])
        return replace(encoded, source_ids=np.array(known, dtype=np.int32))

    def digest(self) -> str:
        """Name both vocabularies and the chooser. Runs store it."""
        weights = {
            n: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()]
            for n, a in (self.chooser or {}).items()
        }
        source = None if self.source_vocabulary is None else self.source_vocabulary.identity
        return digest([self.vocabulary.identity, source, weights])


@dataclass(frozen=True)
class PreparedCorpus:
    """Encoded splits of a corpus, and what they were encoded with."""

    name: str
    encoder: TextEncoder
    splits: dict[str, Split]
    report: str = ""
    remarks: str = ""  # on records that were left out; empty where there are none

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
        """Hash every id and text, and what gives them a meaning. Runs store it."""
        more = self.encoder.source_vocabulary is not None or self.encoder.chooser is not None
        encoder = (
            [self.vocabulary.words, self.encoder.digest()] if more else [self.vocabulary.words]
        )
        return digest(
            [*encoder, *(self.splits[name].fingerprint() for name in sorted(self.splits))]
        )

    def save(self, folder: str | Path) -> Path:
        """Write the corpus into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.encoder.save(folder)
        for name, split in self.splits.items():
            split.save(folder, name)
        description = {
            "corpus": self.name,
            "options": asdict(self.options),
            "splits": {name: split.fingerprint() for name, split in self.splits.items()},
            "report": self.report,
            "remarks": self.remarks,
        }
        write_json(folder / DESCRIPTION, description)
        return folder

    @classmethod
    def load(cls, folder: str | Path, kind: type) -> "PreparedCorpus":
        """Read what `save` wrote; kind: the class of its options."""
        folder = Path(folder)
        try:
            described = read_json(folder / DESCRIPTION)
            encoder = TextEncoder.load(folder, kind(**described["options"]))
            splits = {
                name: Split.load(folder, name, mark) for name, mark in described["splits"].items()
            }
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{folder}: damaged, or not for this model ({error}). Remove it, and prepare it "
                "anew"
            ) from None
        return cls(described["corpus"], encoder, splits, described["report"], described["remarks"])


def prepare(
    name: str, options: Any, key: list, make: Callable[[Path], PreparedCorpus]
) -> PreparedCorpus:
    """Load a corpus from the cache, or make it there.

    The options, `key` and the code that defines them determine the corpus. `make` writes its splits
    into the folder that it is given. One process makes a corpus, the others wait for its lock; the
    folder appears when all is in it.

    Raises CorpusError where nothing can be written.
    """
    # what encodes, and what reads the documents
    code = [code_of(type(options)), code_digest("lib.data.corpus")]
    made_of = digest([type(options).__name__, asdict(options), key, code])
    short_name = "".join(c if c.isalnum() else "_" for c in Path(name).name)
    place = cached(f"{short_name}-{made_of}", DESCRIPTION)
    description = place / DESCRIPTION
    try:
        if not description.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(place.with_name(f".{place.name}.lock")):
                if not description.exists():
                    building = place.with_name(f".{place.name}.building")
                    shutil.rmtree(building, ignore_errors=True)
                    building.mkdir()
                    make(building).save(building)
                    building.rename(place)
    except OSError as error:
        raise CorpusError(
            f"{place} cannot be prepared ({error}). COMPANION_CACHE names another place for "
            "prepared corpora."
        ) from error
    return PreparedCorpus.load(place, type(options))


def code_of(*parts: Callable | type) -> str:
    """Name the code of the library that defines these functions and classes."""
    return code_digest(*sorted({p.__module__ for p in parts if p.__module__.startswith("lib.")}))


def watched(documents: Iterable, name: str, progress: bool) -> Iterable:
    """Show a bar while the documents are read, if it takes longer than two seconds."""
    bar = {"desc": name, "unit": " documents", "mininterval": 1, "ncols": 80}
    return tqdm(documents, disable=not progress, leave=False, delay=2, file=sys.stdout, **bar)
