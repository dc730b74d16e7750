"""Named corpora and folders, as documents of one schema.

corpus = load_corpus("aclsum")            # comes with a package: no download
corpus = load_corpus("arxiv")             # the Hugging Face Hub, or its cache
corpus = load_corpus("my/folder")         # {train,val,test} files (`lib.data.readers.read_folder`)
corpus = load_corpus("reuters:my/folder") # a corpus as its owners release it (`lib.data.releases`)
for document in corpus.split("train"): ...
"""

import json
import sys
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from lib.data import releases  # registers the named corpora
from lib.data.documents import IDS, SPLITS, CorpusError, Document, first_key, to_document
from lib.data.pieces import Pieces
from lib.data.readers import Records, read_folder, unread_files
from lib.data.registry import CORPORA, IN_BOTH, CorpusSpec, LeftOut, find_spec, is_private
from lib.system.errors import did_you_mean
from lib.system.files import read_json, would_be_published
from lib.system.fingerprints import digest, files_digest

anthology_year = releases.anthology_year
CORPUS_FILE = "corpus.json"  # in which a folder says whether its texts are tokenised


def check_unpublished(path: str | Path, corpus: str) -> None:
    """Raise CorpusError where private texts would be in a file that Git takes up. corpus: a name,
    or its folder."""
    if is_private(corpus) and would_be_published(path):
        raise CorpusError(
            f"{path}: texts of {Path(corpus).name} may not be published, and Git would take up "
            "this file. Name one "
            ""
            "that Git ignores, such as one below runs/"
        )


@dataclass
class Pass:
    """Counts of a split from the last time that it was read."""

    used: int = 0
    ended: bool = False  # whether all was read, and there was a document
    ids: set[int] = field(default_factory=set)  # hashes of the ids that records have
    texts: array = field(default_factory=lambda: array("q"))  # hashes of the texts in lower case
    repeated: list[str] = field(default_factory=list)  # ids of earlier documents
    skipped: list[str] = field(default_factory=list)  # records that cannot be used: where, and why
    # by a rule of the corpus: reasons and how often
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass
class Corpus:
    """Documents by split, read anew each time they are asked for."""

    name: str
    readers: dict[str, Callable[[], Records]]  # by split
    contents: str  # names all that determines the documents
    errors: str = "raise"  # "skip" leaves bad records out and counts them
    note: str = ""
    unread: list[str] = field(default_factory=list)  # files that look like splits and are not read
    pieces: Pieces | None = None  # a SentencePiece model that comes with ranked paragraphs
    other_name: str = ""  # of the corpus that the test documents are from, if it is another
    passes: dict[str, Pass] = field(default_factory=dict)

    @classmethod
    def from_records(
        cls, name: str = "records", errors: str = "raise", **records: Iterable[dict | Document]
    ) -> "Corpus":
        """Data in memory: for each split `Document`s, or records in any layout that `to_document`
        knows."""
        given = {split: list(own) for split, own in records.items()}
        texts = {
            split: [asdict(r) if isinstance(r, Document) else r for r in own]
            for split, own in given.items()
        }
        readers = {
            split: partial(_in_memory, f"{name}, {split}", own)
            for split, own in given.items()
            if own
        }
        return cls(name, readers, digest(json.dumps(texts, default=str)), errors)

    @property
    def identity(self) -> str:
        return self.contents if self.errors == "raise" else f"{self.contents}, errors skipped"

    @property
    def ranked(self) -> bool:
        """Whether sections are paragraphs in the order of their importance, cut into pieces by
        others."""
        return self.pieces is not None

    @property
    def test_name(self) -> str:
        """Name of the corpus that the test documents are from."""
        return self.other_name or self.name

    def tested_on(self, other: "Corpus") -> "Corpus":
        """This corpus with the test documents of another: DUC 2004 has no others."""
        other.split("test")  # raises CorpusError where there are none
        readers = {**self.readers, "test": other.readers["test"]}
        both = f"{self.contents} {other.contents}"
        return replace(self, readers=readers, contents=both, other_name=other.test_name, passes={})

    def split(self, split_name: str, limit: int | None = None) -> Iterator[Document]:
        """Documents of "train", "val" or "test", at most `limit` of them. Raises CorpusError at the
        first record that cannot be used (`errors="raise"`), or when none can."""
        if split_name not in self.readers:
            raise CorpusError(
                f"{self.name}: no split {split_name!r}; there are "
                f"{', '.join(self.readers) or 'none'}"
            )
        return islice(self._documents(split_name), limit)

    def _documents(self, split_name: str) -> Iterator[Document]:
        found = self.passes[split_name] = Pass()
        for number, (path, line, record) in enumerate(self.readers[split_name](), 1):
            try:
                if isinstance(record, ValueError):
                    raise record
                document = record if isinstance(record, Document) else to_document(record, number)
            except LeftOut as reason:
                found.left_out[str(reason)] += 1
                continue
            except ValueError as reason:
                problem = f"{path}, line {line}: {reason}"
                if self.errors == "raise":
                    raise CorpusError(
                        f"{problem}. Correct it, or leave such records out: --errors skip"
                    ) from None
                found.skipped.append(problem)
                continue
            found.used += 1
            found.texts.append(hash(" ".join(" ".join(document.sentences).lower().split())))
            name = document.id
            if hash(name) in found.ids:  # summaries are found by their ids
                found.repeated.append(name)
                document = replace(document, id=f"{name}#{number}")
            if isinstance(record, Document) or first_key(record, IDS):
                found.ids.add(hash(name))
            yield document
        if not found.used:
            why = found.skipped[:1] or _counted(found.left_out) or "there is none"
            raise CorpusError(f"{self.name}: no record of {split_name!r} can be used: {why}")
        found.ended = True

    @property
    def left_out(self) -> Counter[str]:
        return sum((found.left_out for found in self.passes.values()), Counter())

    @property
    def is_read(self) -> bool:
        """Whether each split was read to its end."""
        return all(name in self.passes and self.passes[name].ended for name in SPLITS)

    def remarks(self) -> str:
        """Count the records that were left out, that occur twice and that occur in training as
        well."""
        # Splits that are made by a rule read the same files: a problem counts once.
        skipped = list(
            dict.fromkeys(problem for found in self.passes.values() for problem in found.skipped)
        )
        left_out, parts = self.left_out, []
        if left_out:
            total = (
                left_out.total() + len(skipped) + sum(found.used for found in self.passes.values())
            )
            parts.append(f"left out: {left_out.total():,} of {total:,} ({_counted(left_out)})")
        if skipped:
            parts.append(
                f"left out because they cannot be used: {len(skipped):,} ({_first(skipped, '; ')})"
            )
        if self.unread:
            parts.append(f"not read: {_first(self.unread)}")
        train = self.passes.get("train", Pass())
        for name, found in self.passes.items():
            if found.repeated:
                parts.append(
                    f"{name}: ids that occur twice ({_first(found.repeated)}): later documents get "
                    "new ones"
                )
            ids, texts = len(found.ids & train.ids), int(np.isin(found.texts, train.texts).sum())
            if name != "train" and (ids or texts):
                parts.append(
                    f"{name}: {texts:,} of {found.used:,} texts and {ids:,} of their ids occur in "
                    "train"
                )
        return ". ".join(parts)

    def report(self) -> str:
        """`remarks` and the note, for a page or a log."""
        nothing = (
            "no record was left out" if self.is_read else "not every split was read to its end"
        )
        return f"{self.remarks() or nothing}. {self.note}".strip()


def _in_memory(name: str, records: list) -> Records:
    return ((name, number, record) for number, record in enumerate(records, 1))


def _counted(reasons: Counter[str]) -> str:
    """Reasons with their counts, the most frequent first."""
    pairs = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {reason}" for reason, count in pairs)


def _first(parts: list[str], between: str = ", ") -> str:
    return between.join([*parts[:3], *["and more"] * (len(parts) > 3)])


def learned_from(corpus: Corpus, split_name: str, trained_on: Iterable[str]) -> set[str]:
    """Ids of the documents of a split that are known to be training documents of the corpora
    `trained_on` (names, or folders of these names)."""
    others = {Path(name).name for name in trained_on} if split_name == "test" else set()
    return {name for other in others for name in IN_BOTH.get((corpus.test_name, other), ())}


def unseen(
    corpus: Corpus,
    split_name: str,
    trained_on: Iterable[str],
    most: int | None = None,
    tell: bool = True,
) -> list[Document]:
    """The first documents of a split, without those that are `learned_from`; standard error names
    them if `tell`."""
    seen = learned_from(corpus, split_name, trained_on)
    if seen and tell:
        names = ", ".join(sorted(seen))
        print(
            f"{corpus.test_name}: without {names}, which the model has learned from",
            file=sys.stderr,
        )
    return list(islice((d for d in corpus.split(split_name) if d.id not in seen), most))


def load_corpus(dataset: str | Path, errors: str = "raise") -> Corpus:
    """Find a corpus by name or NAME:FOLDER, or a folder of {train,val,test} files.

    A name is always that corpus; a folder that has the name of one is given as a path, "./aclsum".

    errors: "raise" stops at the first malformed record; "skip" leaves such records out and counts
    them. Raises CorpusError for an unknown name, a folder with nothing to read, and a Hub that
    cannot be reached.
    """
    spec, place = find_spec(dataset)
    if spec is not None and spec.hub and not place:
        return _from_hub(spec, errors)
    folder = Path(place).expanduser() if place or spec is None else spec.folder
    if folder.is_file():
        raise CorpusError(
            f"{folder}: a file. Give the folder of the train, val and test files: {folder.parent}"
        )
    if not folder.is_dir():
        if spec is None:
            hint = did_you_mean(str(dataset), CORPORA)
            names = f"Names: {', '.join(CORPORA)}; or the path of a folder."
            raise CorpusError(f"no corpus or folder {str(dataset)!r}{hint} {names}")
        raise CorpusError(
            f"{spec.name!r} must be fetched by hand: {spec.how}, into the folder {folder}, or "
            "anywhere, and give "
            f"{spec.name}:FOLDER. Licence: {spec.licence}."
        )
    spec = spec or CorpusSpec(str(dataset), read_folder)
    read = spec.read
    if (
        not spec.shipped
        and ":" not in spec.name
        and any(read_folder(folder, name) is not None for name in SPLITS)
    ):
        read = read_folder  # records that somebody has made of a release
    tokenised = spec.tokenised
    if (folder / CORPUS_FILE).is_file():
        tokenised = dict(read_json(folder / CORPUS_FILE)).get("tokenised", tokenised)
    present = [name for name in SPLITS if read(folder, name) is not None]
    unread = unread_files(folder) if read is read_folder else []
    if not present:
        there = (
            ", ".join(unread or [path.name for path in sorted(folder.iterdir())[:6]]) or "nothing"
        )
        raise CorpusError(
            f"{folder}: no train, val or test files (NAME.jsonl[.gz], .json, .txt with JSON lines, "
            ".parquet, .csv, "
            ".src and .tgt), and no texts with NAME.summary.txt beside them. A corpus as its "
            "owners release it is "
            ""
            f"given with its name, such as reuters:{folder}. What is there: {there}"
        )
    patterns = ("*", *(f"{name}/*" for name in SPLITS)) if read is read_folder else ("**/*",)
    files = (path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    # without .git
    shown = [path for path in files if "/." not in f"/{path.relative_to(folder).as_posix()}"]
    return Corpus(
        name=spec.name,
        readers={name: partial(_records, read, folder, name, tokenised) for name in present},
        contents=digest(
            [spec.name in CORPORA and spec.name, tokenised, files_digest(folder, shown)]
        ),
        errors=errors,
        note=spec.note,
        unread=unread,
        pieces=spec.pieces(folder) if spec.pieces else None,
    )


def _records(read: Callable, folder: Path, split_name: str, tokenised: bool) -> Records:
    """Yield the records of a folder; they are `tokenised` or not unless they say it themselves."""
    for path, line, record in read(folder, split_name):
        yield path, line, {"tokenised": tokenised, **record} if isinstance(record, dict) else record


# ---------------------------------------------------------------------------------
# the Hub


def _from_hub(spec: CorpusSpec, errors: str) -> Corpus:
    from datasets import config, load_dataset

    hub = spec.hub
    # offline, cached copies still load, and nothing waits for a retry
    config.HF_HUB_OFFLINE = not _hub_answers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = load_dataset(
                hub["repository"], hub.get("configuration"), revision=hub.get("revision")
            )
    except (OSError, RuntimeError) as error:
        raise CorpusError(
            f"{spec.name}: {hub['repository']} cannot be loaded from the Hugging Face Hub, nor "
            "from this machine's "
            ""
            f"cache ({error}). Three ways out: dataset='aclsum', which needs no download; the path "
            "of a folder with "
            "train, val and test files; or load it on a machine with network and copy its cache "
            "(HF_HOME) here."
        ) from None
    rows = {
        split_name: loaded["validation" if split_name == "val" else split_name]
        for split_name in SPLITS
    }
    readers = {split_name: partial(_hub_records, split, spec) for split_name, split in rows.items()}
    identity = digest([spec.name, *(split._fingerprint for split in rows.values())])
    return Corpus(spec.name, readers, identity, errors, spec.note)


def _hub_answers(timeout: float = 3.0) -> bool:
    """Whether the Hub can be reached: asked once, because its own client retries for 23 seconds or
    more."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=timeout)
        return True
    except Exception:  # whatever the HTTP library of the day raises
        return False


def _hub_records(rows, spec: CorpusSpec) -> Records:
    hub = spec.hub
    for number, row in enumerate(rows, 1):
        record = {
            "id": row.get("id"),
            "document": row[hub["source"]],
            "summary": row[hub["summary"]],
        }
        yield hub["repository"], number, {**record, "tokenised": spec.tokenised}
