"""Named corpora and folders, as documents of one schema.

corpus = load_corpus("aclsum")            # comes with a package: no download
corpus = load_corpus("arxiv")             # the Hugging Face Hub, or its cache
corpus = load_corpus("my/folder")         # {train,val,test} files (`lib.data.record_readers`)
corpus = load_corpus("reuters:my/folder") # a corpus as its owners release it (`lib.data.releases`)
for document in corpus.split("train"): ...
"""

import json
import sys
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.data.documents import SPLITS, CorpusError, Document, own_id, to_document
from lib.data.named_corpora import CORPORA, IN_BOTH, CorpusSpec, LeftOut, find_spec, is_private
from lib.data.pieces import Pieces
from lib.data.record_keys import IDS, KeysError, check_no_table, known_keys, with_known_keys
from lib.data.record_readers import (
    SPLIT_NAMES,
    Records,
    advice_on,
    holds_records,
    missing_files,
    read_folder,
    unread_files,
)
from lib.data.shape import SAMPLE, Shape, shape_of
from lib.system.errors import did_you_mean
from lib.system.files import read_json, would_be_published
from lib.system.fingerprints import digest, files_digest

if TYPE_CHECKING:  # it imports PyTorch, and reading a corpus needs none
    from lib.data.prepared import TextEncoder

LONGER = "longer than their texts"
SAME_OPENINGS = 3  # texts of a split, at least, that are worth a remark if they begin alike
CORPUS_FILE = "corpus.json"  # in which a folder says whether its texts are tokenised


def check_unpublished(path: str | Path, corpus: str) -> None:
    """Raise CorpusError where private texts would be in a file that Git takes up. corpus: a name,
    or its folder."""
    if is_private(corpus) and would_be_published(path):
        raise CorpusError(
            f"{path}: texts of {Path(corpus).name} may not be published, and Git would take up "
            "this file. Name one "
            "that Git ignores, such as one below runs/"
        )


class UnusableSplitError(CorpusError):
    """A split without a record that can be used; `Corpus.remarks` has the reasons."""


@dataclass
class Pass:
    """Counts of a split from the last time that it was read."""

    used: int = 0
    ended: bool = False  # whether all was read, and there was a document
    ids: set[int] = field(default_factory=set)  # hashes of the ids that records have
    texts: array = field(default_factory=lambda: array("q"))  # hashes of the texts in lower case
    repeated: list[str] = field(default_factory=list)  # ids of earlier documents
    # records that cannot be used: where, and why
    skipped: list[tuple[str, str]] = field(default_factory=list)
    advice: str = ""  # on all of these
    has_ids: bool = False  # whether a record has a place for an id, which may be empty
    unnamed: int = 0  # records without an id
    opening: str | None = None  # with which all texts begin; "" if they differ
    kinds: Counter[str] = field(default_factory=Counter)  # how often a `Shape` changed a record
    doubts: Counter[str] = field(default_factory=Counter)  # what summaries are and should not be
    # by a rule of the corpus: reasons and how often
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, document: Document, has_id: bool) -> None:
        """Count a document, whose id is its own or the number of its record."""
        self.used += 1
        text, summary = map(_in_lower_case, (document.sentences, document.summary))
        self.texts.append(hash(text))
        first = document.sentences[0]
        self.opening = first if self.opening in (None, first) else ""
        if len(summary) > len(text):
            self.doubts[LONGER] += 1
        elif summary == text:
            self.doubts["equal to their texts"] += 1
        elif text.startswith(summary):
            self.doubts["word for word the beginning of their texts"] += 1
        if has_id:
            self.ids.add(hash(document.id))
        else:
            self.unnamed += 1


@dataclass
class Corpus:
    """Documents by split, read anew each time they are asked for."""

    name: str
    readers: dict[str, Callable[[], Records]]  # by split
    contents: str  # names all that determines the documents
    errors: str = "raise"  # "skip" leaves bad records out and counts them
    note: str = ""
    unread: list[str] = field(default_factory=list)  # files that look like splits and are not read
    missing: list[str] = field(default_factory=list)  # files that belong to those that are read
    # how records are written, by split; a split without is in the form of `Shape()`
    shapes: dict[str, Callable[[], Shape]] = field(default_factory=dict)
    pieces: Pieces | None = None  # a SentencePiece model that comes with ranked paragraphs
    encoder: "TextEncoder | None" = None  # of a run, to encode the texts with; None: it is learned
    other_name: str = ""  # of the corpus that the test documents are from, if it is another
    passes: dict[str, Pass] = field(default_factory=dict)

    @classmethod
    def from_records(
        cls, name: str = "records", errors: str = "raise", **splits: Iterable[dict | Document]
    ) -> "Corpus":
        """Data in memory: for each split `Document`s, or records in any layout that `to_document`
        knows."""
        for own in splits.values():
            check_no_table(own)
        given = {split: list(own) for split, own in splits.items()}
        texts = {
            split: [asdict(r) if isinstance(r, Document) else r for r in own]
            for split, own in given.items()
        }
        readers = {
            split: partial(_in_memory, f"{name}, {split}", own)
            for split, own in given.items()
            if own
        }
        records = [record for own in given.values() for record in own]
        shape = cache(partial(shape_of, records))
        return cls(
            name,
            readers,
            digest(json.dumps(texts, default=str)),
            errors,
            shapes=dict.fromkeys(readers, shape),
        )

    @property
    def identity(self) -> str:
        skipped = "" if self.errors == "raise" else ", errors skipped"
        encoded = f", encoded with {self.encoder.digest()}" if self.encoder else ""
        return f"{self.contents}{skipped}{encoded}"

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
        shapes = {**self.shapes, "test": other.shapes.get("test", Shape)}
        return replace(
            self,
            readers=readers,
            shapes=shapes,
            contents=both,
            other_name=other.test_name,
            passes={},
        )

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
        shape = self.shapes.get(split_name, Shape)()
        for number, (path, line, record) in enumerate(self.readers[split_name](), 1):
            place = f"{path}, line {line}"
            try:
                if isinstance(record, ValueError):
                    raise record
                document = (
                    record
                    if isinstance(record, Document)
                    else to_document(record, number, shape=shape)
                )
            except LeftOut as reason:
                found.left_out[str(reason)] += 1
                continue
            except ValueError as reason:
                if self.errors == "raise":
                    raise CorpusError(
                        f"{place}: {reason}. Correct it, or leave such records out: --errors skip"
                    ) from None
                if isinstance(reason, KeysError):
                    found.advice = known_keys()
                found.skipped.append((place, getattr(reason, "short", str(reason))))
                continue
            if isinstance(record, dict):
                record = with_known_keys(record)
                found.kinds.update(shape.kinds(record))
                found.has_ids |= any(key in record for key in IDS)
            has_id = isinstance(record, Document) or bool(own_id(record))
            if hash(document.id) in found.ids:  # summaries are found by their ids
                found.repeated.append(document.id)
                document = replace(document, id=f"{document.id}#{number}")
            found.add(document, has_id)
            yield document
        if not found.used:
            why = _counted(found.left_out) or "there is none"
            if found.skipped:
                why = ". ".join(filter(None, [": ".join(found.skipped[0]), found.advice]))
            raise UnusableSplitError(f"{self.name}: no record of {split_name!r} can be used: {why}")
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
        passes = list(self.passes.values())
        # Splits that are made by a rule read the same files: a problem counts once.
        skipped = dict.fromkeys(problem for found in passes for problem in found.skipped)
        left_out, parts = self.left_out, []
        if left_out:
            total = left_out.total() + len(skipped) + sum(found.used for found in passes)
            parts.append(f"left out: {left_out.total():,} of {total:,} ({_counted(left_out)})")
        if skipped:
            problems = _first(_by_reason(skipped), "; ")
            parts.append(f"left out because they cannot be used: {len(skipped):,} ({problems})")
            parts += sorted({found.advice for found in passes} - {""})
        kinds = sum((found.kinds for found in passes), Counter())
        parts += [f"records with {kind}: {count:,}" for kind, count in kinds.items()]
        doubts = sum((found.doubts for found in passes), Counter())
        if doubts:
            used = sum(found.used for found in passes)
            is_exchanged = 2 * doubts[LONGER] > used
            question = ": are texts and summaries exchanged?" if is_exchanged else ""
            parts.append(f"of {used:,} summaries, {_counted(doubts)}{question}")
        unnamed = sum(found.unnamed for found in passes)
        if unnamed and any(found.has_ids for found in passes):
            parts.append(f"records without an id, which are numbered: {unnamed:,}")
        if self.missing:
            parts.append(f"not there: {_first(self.missing)}")
        if self.unread:
            parts.append(f"not read: {_first(self.unread)}")
        train = self.passes.get("train", Pass())
        for name, found in self.passes.items():
            if found.opening and found.used >= SAME_OPENINGS:
                opening = found.opening[:80]
                parts.append(f"{name}: all texts begin with {opening!r}, perhaps a prompt")
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


def _in_lower_case(sentences: list[str]) -> str:
    return " ".join(" ".join(sentences).lower().split())


def _in_memory(name: str, records: list) -> Records:
    return ((name, number, record) for number, record in enumerate(records, 1))


def _by_reason(problems: Iterable[tuple[str, str]]) -> list[str]:
    """Problems (place, reason) as texts: one for each reason, the most frequent first."""
    places: dict[str, list[str]] = {}
    for place, reason in problems:
        places.setdefault(reason, []).append(place)
    ordered = sorted(places.items(), key=lambda pair: -len(pair[1]))
    return [
        f"{first} and {len(others):,} more: {reason}" if others else f"{first}: {reason}"
        for reason, (first, *others) in ordered
    ]


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
    if spec is not None:
        from lib.data import releases  # noqa: F401  # registers what reads the named corpora

        spec = CORPORA[spec.name]
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
            ".parquet, .csv, .src and .tgt, or folders of .parquet, .arrow or .jsonl), and no "
            f"texts with NAME.summary.txt beside them. {advice_on(folder)}A corpus as its owners "
            f"release it is given with its name, such as reuters:{folder}. What is there: {there}"
        )
    inside = (f"{name}/*" for names in SPLIT_NAMES.values() for name in names)
    patterns = ("*", *inside) if read is read_folder else ("**/*",)
    files = (path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    # without .git
    shown = [path for path in files if "/." not in f"/{path.relative_to(folder).as_posix()}"]
    readers = {name: partial(_records, read, folder, name, tokenised) for name in present}
    # What texts, releases and shipped corpora look like is known.
    is_unknown = read is read_folder and not spec.shipped and holds_records(folder, present[0])
    shape = cache(partial(_first_shape, list(readers.values())))
    return Corpus(
        name=spec.name,
        readers=readers,
        contents=digest(
            [spec.name in CORPORA and spec.name, tokenised, files_digest(folder, shown)]
        ),
        errors=errors,
        note=spec.note,
        unread=unread,
        missing=missing_files(folder) if read is read_folder else [],
        shapes=dict.fromkeys(present, shape) if is_unknown else {},
        pieces=spec.pieces(folder) if spec.pieces else None,
    )


def _records(read: Callable, folder: Path, split_name: str, tokenised: bool) -> Records:
    """Yield the records of a folder; they are `tokenised` or not unless they say it themselves."""
    for path, line, record in read(folder, split_name):
        yield path, line, {"tokenised": tokenised, **record} if isinstance(record, dict) else record


def _first_shape(readers: list[Callable[[], Records]]) -> Shape:
    """Find out how a corpus writes its texts, from the first records of the first split that can be
    read: a reader's error belongs to its own split."""
    for read in readers:
        with suppress(CorpusError):
            return shape_of([record for _, _, record in islice(read(), SAMPLE)])
    return Shape()


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
