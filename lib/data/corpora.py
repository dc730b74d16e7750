"""Named corpora and folders, as documents of one schema.

corpus = load_corpus("aclsum")            # ships with a package: no download
corpus = load_corpus("arxiv")             # the Hugging Face Hub, or its cache
corpus = load_corpus("my/folder")         # {train,val,test} files in any layout that `readers` knows
for document in corpus.split("train"): ...
"""

import importlib.metadata
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import resources
from itertools import islice
from pathlib import Path

from lib.data.catalogue import (
    CLUSTERS,
    HUB,
    IN_BOTH,
    MANUAL,
    NAMES,
    NEWSROOM_BINS,
    SHIPPED,
    HubCorpus,
    is_name,
    is_private,
)
from lib.data.documents import SPLITS, Absent, CorpusError, Document, Omitted, to_document
from lib.data.pieces import Pieces
from lib.data.readers import Records, Source, articles_of, find_split, parse_json, reading, shard_pieces
from lib.data.releases import RELEASES, visible
from lib.data.sentences import split_sentences
from lib.data.text_folders import TEXTS
from lib.data.words import looks_tokenised
from lib.system.errors import did_you_mean
from lib.system.files import of_the_system, project_root, would_be_published
from lib.system.fingerprints import files_digest, digest


def check_unpublished(path: str | Path, corpus: str) -> None:
    """Raise CorpusError where texts of a corpus that may not be published would stand in a file that Git takes up.

    corpus: a name, or the folder of that name.
    """
    if is_private(Path(corpus).name) and would_be_published(path):
        raise CorpusError(
            f"{path}: texts of {Path(corpus).name} may not be published, and Git would take up this file. Name one "
            "that Git ignores, such as one below runs/"
        )


@dataclass
class Skipped:
    """A record that was left out."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


LOOKED_AT = 1_000  # sentences, to see whether a corpus that does not say so looks tokenised
SAYS = "corpus.json"  # the file in which a folder says what its texts are
Given = Iterable[dict | Document]


class Corpus:
    """Documents by split, read anew each time they are asked for.

    `skipped` holds what the last pass over each split could not use (`errors="skip"`, and `Absent` records),
    `omitted` counts by reason what the reader's own rules left out of it, `repeated` has the ids that it found more
    than once, `tokenised` the splits with documents whose words were set apart by spaces. `identity` names all that
    determines the documents.
    """

    def __init__(
        self,
        name: str,
        records: dict[str, list[Source]],
        identity: str,
        errors: str = "raise",
        note: str = "",
        pieces: Pieces | None = None,  # a SentencePiece model that comes with ranked paragraphs
    ):
        if errors not in ("raise", "skip"):
            raise CorpusError(f"errors must be 'raise' or 'skip', not {errors!r}")
        self.name, self.note, self._contents, self._records, self._errors = name, note, identity, records, errors
        self.test_name = name  # of the corpus that the test documents are of
        self.pieces = pieces
        self._skipped: dict[str, list[Skipped]] = {}
        self._repeated: dict[str, list[str]] = {}
        self._omitted: dict[str, Counter[str]] = {}
        self._seen: dict[str, int] = {}  # records of each split, those that were left out among them
        self._tokenised: dict[str, bool] = {}
        self._looked_at: list[str] = []  # the first sentences that were read

    @property
    def identity(self) -> str:
        return self._contents if self._errors == "raise" else f"{self._contents}, errors skipped"

    @classmethod
    def from_records(
        cls, name: str = "records", *, train: Given = (), val: Given = (), test: Given = (), errors: str = "raise"
    ) -> "Corpus":
        """Data in memory: `Document`s, or records in any layout that `to_document` knows."""
        by_split = dict(zip(SPLITS, map(list, (train, val, test))))
        records = {split_name: of_split for split_name, of_split in by_split.items() if of_split}
        if not records:
            raise CorpusError(f"{name}: there is no record in train, val or test")
        identity = digest([[_written(record) for record in of_split] for of_split in by_split.values()])
        sources = _sources(name, records, lambda split_name: enumerate(records[split_name], 1))
        return cls(name, sources, identity, errors)

    @property
    def ranked(self) -> bool:
        """Whether sections are paragraphs in the order of their importance, cut into pieces by others."""
        return self.pieces is not None

    def split(self, split_name: str, limit: int | None = None) -> Iterator[Document]:
        """Documents of `split_name` ("train", "val" or "test"), at most `limit` of them.

        Raises CorpusError at the first record that cannot be used (`errors="raise"`), or when none can.
        """
        if limit is not None and limit < 1:
            raise CorpusError(f"limit must be at least 1, not {limit}; without it there is none")
        self._check_split(split_name)
        return islice(self._documents(split_name), limit)

    def _check_split(self, name: str) -> None:
        if name not in self._records:
            raise CorpusError(f"{self.name}: no split {name!r}; there are {', '.join(self._records)}")

    def _documents(self, split_name: str) -> Iterator[Document]:
        self._skipped[split_name] = skipped = []
        self._repeated[split_name] = repeated = []
        self._omitted[split_name] = omitted = Counter()
        self._seen[split_name] = 0
        self._tokenised[split_name] = False
        seen: set[int] = set()  # hashes: a corpus may have millions of ids
        before = 0
        for source in self._records[split_name]:
            path, usable, ended, first = source.path, 0, 0, None
            for ended, (line, record) in enumerate(_records(source), 1):  # noqa: B007
                self._seen[split_name] += 1
                if isinstance(record, Omitted):
                    omitted[str(record)] += 1
                    continue
                try:
                    if isinstance(record, ValueError):
                        raise record
                    document = record if isinstance(record, Document) else to_document(record, before + line)
                    usable += 1
                    self._tokenised[split_name] |= document.tokenised
                    if len(self._looked_at) < LOOKED_AT:
                        self._looked_at += document.sentences
                    if (name := hash(document.id)) in seen:
                        repeated.append(document.id)
                    seen.add(name)
                    yield document
                except ValueError as reason:
                    problem = Skipped(str(path), line, str(reason))
                    if self._errors == "raise" and not isinstance(reason, Absent):
                        raise CorpusError(
                            f"{problem}. Mend the line, or leave such records out: errors='skip' (--errors skip)."
                        ) from None
                    first = first or problem
                    skipped.append(problem)
            if not ended:
                raise CorpusError(f"{path}: nothing for the split {split_name!r} in it")
            if not usable:
                why = f"the first: {first}" if first else f"left out: {_counted(omitted)}"
                raise CorpusError(f"{path}: none of {ended} records can be used; {why}")
            before += ended

    def only(self, key: str, value: str) -> "Corpus":
        """Those of its records in which `key` is `value`."""

        def matching(read):
            return (
                (line, record)
                for line, record in read()
                if isinstance(record, ValueError) or (isinstance(record, dict) and record.get(key) == value)
            )

        records = {
            split_name: [replace(source, read=partial(matching, source.read)) for source in sources]
            for split_name, sources in self._records.items()
        }
        name, identity = f"{self.name}:{value}", f"{self._contents} {key} {value}"
        return Corpus(name, records, identity, self._errors, self.note, self.pieces)

    def tested_on(self, other: "Corpus") -> "Corpus":
        """This corpus with the test documents of another: DUC 2004 has no others."""
        other._check_split("test")
        records = {**self._records, "test": other._records["test"]}
        identity = f"{self._contents} {other._contents}"
        both = Corpus(self.name, records, identity, self._errors, self.note, self.pieces)
        both.test_name = other.test_name
        return both

    @property
    def skipped(self) -> list[Skipped]:
        return [problem for problems in self._skipped.values() for problem in problems]

    @property
    def omitted(self) -> Counter[str]:
        return sum(self._omitted.values(), Counter())

    @property
    def repeated(self) -> list[str]:
        return [name for names in self._repeated.values() for name in names]

    @property
    def tokenised(self) -> list[str]:
        return [name for name, seen in self._tokenised.items() if seen]

    def left_out(self) -> str:
        """The numbers of records that were left out: by the reader's rules with each reason, and of those that cannot
        be used with the first reasons; empty where none was."""
        omitted = self.omitted
        rules = (
            f"left out: {omitted.total():,} of {sum(self._seen.values()):,} ({_counted(omitted)})" if omitted else ""
        )
        return ". ".join(filter(None, [rules, self._unusable()]))

    def _unusable(self) -> str:
        skipped = self.skipped
        if not skipped:
            return ""
        shown = "; ".join(map(str, skipped[:3]))
        count = "1 record was" if len(skipped) == 1 else f"{len(skipped)} records were"
        return f"{count} left out: {shown}" + ("; and more" if len(skipped) > 3 else "")

    def remarks(self, nothing: str = "") -> str:
        """`left_out`, or `nothing` where no record was, ids that come again, and which splits are tokenised,
        or look as if they were."""
        parts = [self.left_out() or nothing]
        if again := self.repeated:
            parts.append(f"{len(again)} documents have the id of an earlier one in their split, such as {again[0]!r}")
        if names := ", ".join(self.tokenised):
            parts.append(f"its text is tokenised ({names}): words are what stands between spaces")
        elif looks_tokenised(self._looked_at):
            parts.append(
                f'its text looks tokenised, and is cut again: {SAYS} in its folder can say {{"tokenised": true}}'
            )
        return ". ".join(filter(None, parts))

    def report(self) -> str:
        """`remarks`, and what a reader should know of this copy, for a page or a log."""
        return f"{self.remarks('no record was left out')}. {self.note}".strip()


def _counted(reasons: Counter[str]) -> str:
    """Reasons with their counts, the most frequent first."""
    pairs = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {reason}" for reason, count in pairs)


def learned_from(corpus: Corpus, split_name: str, trained_on: Iterable[str]) -> set[str]:
    """Ids of the documents of a split that are known to be training documents of the corpora `trained_on` (names, or
    folders of these names) as well."""
    others = {Path(name).name for name in trained_on} if split_name == "test" else set()
    pairs = ((corpus.test_name, other) for other in others)
    return {name for pair in pairs for name in IN_BOTH.get(pair, ())}


def unseen(
    corpus: Corpus, split_name: str, trained_on: Iterable[str], most: int | None = None, tell: bool = True
) -> list[Document]:
    """The first documents of a split, without those that are `learned_from`.

    tell: standard error says which are left out.
    """
    seen = learned_from(corpus, split_name, trained_on)
    if not seen:
        return list(corpus.split(split_name, most))
    if tell:
        names = ", ".join(sorted(seen))
        print(f"{corpus.test_name}: without {names}, which the model has learned from", file=sys.stderr)
    return list(islice((d for d in corpus.split(split_name) if d.id not in seen), most))


def _written(record) -> str:
    """A record in memory as text, whatever it holds."""
    try:
        return json.dumps(asdict(record) if isinstance(record, Document) else record, default=str, skipkeys=True)
    except (
        ValueError,
        RecursionError,
    ):  # a circle, a number without end, what is too deep: it is going to be refused
        return type(record).__name__


def _sources(name: str, split_names: Iterable[str], read: Callable[[str], Iterable]) -> dict[str, list[Source]]:
    """Splits that are no files, as a `Corpus` wants them: for each a name, and what reads its numbered records."""
    return {split_name: [Source(f"{name}, {split_name}", partial(read, split_name))] for split_name in split_names}


def _as_tokenised(sources: dict[str, list[Source]]) -> dict[str, list[Source]]:
    """Sources of records that say that their text is tokenised, unless one says otherwise."""

    def saying(read):
        for line, record in read():
            silent = isinstance(record, dict) and record.get("tokenised") is None
            yield line, {**record, "tokenised": True} if silent else record

    return {
        split_name: [replace(source, read=partial(saying, source.read)) for source in of_split]
        for split_name, of_split in sources.items()
    }


def _records(source: Source) -> Records:
    with reading(source.path):
        yield from source.read()


def load_corpus(dataset: str | Path, errors: str = "raise") -> Corpus:
    """Find a corpus by name, or a folder of `{train,val,test}` files.

    A name is always that corpus. A folder which has the name of one is given as a path, "./aclsum" or a `Path`;
    where there is such a folder and the name was given, standard error says so.

    Args:
        dataset: one of `NAMES`, or the path of a folder.
        errors: "raise" stops at the first malformed record with file, line and reason; "skip" leaves such records
            out and counts them in `Corpus.skipped`.

    Raises:
        CorpusError: unknown name, nothing to read, the Hub cannot be reached and holds no cached copy.
    """
    if not str(dataset).strip():
        raise CorpusError("the corpus has no name: give one, or a folder")
    folder = _folder_named(dataset)
    if folder is not None and not is_name(dataset):
        return _folder(folder, errors)
    if folder is not None:
        print(f"{dataset} is the corpus of this name; the folder here is ./{dataset}", file=sys.stderr)
    if dataset in ("aclsum", CLUSTERS):
        return _aclsum(errors, dataset == CLUSTERS)
    if dataset in SHIPPED:
        return _folder(Path(__file__).parent / SHIPPED[str(dataset)], errors, str(dataset))
    if dataset in HUB:
        return _hub(str(dataset), HUB[str(dataset)], errors)
    if dataset in MANUAL:
        return _by_hand(str(dataset), errors)
    if str(dataset) in NEWSROOM_BINS:
        return _by_hand("newsroom", errors).only("density_bin", str(dataset).split(":")[1])
    hint = did_you_mean(str(dataset), NAMES)
    raise CorpusError(
        f"no corpus or folder {str(dataset)!r}{hint} Names: {', '.join(NAMES)}; or the path of a folder."
    )


def _folder_named(dataset: str | Path) -> Path | None:
    """The folder of this path, if there is one."""
    try:
        folder = Path(dataset).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError) as error:  # a name that is too long, the home of nobody
        raise CorpusError(f"{str(dataset)!r} can be no folder ({error})") from None


def _by_hand(name: str, errors: str) -> Corpus:
    folder, corpus = project_root() / "data" / name, MANUAL[name]
    if folder.is_dir():
        return _folder(folder, errors, name, corpus.tokenised)
    raise CorpusError(
        f"{name!r} must be fetched by hand: {corpus.how}, into the folder {folder}, or anywhere, and give that "
        f"folder's path in place of the name. Size: {corpus.size}. Licence: {corpus.licence}."
    )


def _says_tokenised(folder: Path, otherwise: bool) -> bool:
    """Whether a folder's `SAYS` says that its texts are tokenised, or `otherwise` without such a file."""
    path = folder / SAYS
    if not path.exists():
        return otherwise
    with reading(path):
        says = parse_json(path.read_bytes().replace(b"\n", b" "))
    if not isinstance(says, dict) or says.keys() != {"tokenised"} or not isinstance(says["tokenised"], bool):
        raise CorpusError(f'{path}: it must hold {{"tokenised": true}} or {{"tokenised": false}}, and nothing else')
    return says["tokenised"]


def _folder(folder: Path, errors: str, name: str = "", tokenised: bool = False) -> Corpus:
    try:
        records = {split_name: files for split_name in SPLITS if (files := find_split(folder, split_name))}
        if not records and (folder / "prepared.json").is_file():
            raise CorpusError(
                f"{folder}: a corpus that is prepared, where its texts are needed: give the corpus itself, by name "
                "or folder"
            )
        if not records and (inner := _corpora_in(folder)):
            raise CorpusError(f"{folder}: no corpus, but there is one in it. Did you mean {' or '.join(inner)}?")
        if not records:
            raise CorpusError(
                f"{folder}: no train, val or test files in a known layout: NAME.jsonl[.gz], .json, .txt with JSON "
                "lines, .parquet, .csv, .src and .tgt, .article.txt and .title.txt, wikihowAll.csv, url_lists with "
                "stories, *.NAME.0.pt with a SentencePiece model; nor "
                f"{', '.join(r.files for r in (*RELEASES.values(), TEXTS))}"
            )
        sources = [source for of_split in records.values() for source in of_split]
        paths = list(dict.fromkeys(path for s in sources for path in (Path(s.path), *s.beside)))
        inside = [p for path in paths for p in ([path] if path.is_file() else visible(path)) if p.is_file()]
        pieces = shard_pieces(folder) if any(path.suffix == ".pt" for path in paths) else None
        tokenised = _says_tokenised(folder, tokenised)
        says = [SAYS] if tokenised else []
        identity = digest([files_digest(folder, inside), pieces and pieces.words, *says])
    except OSError as error:
        raise CorpusError(of_the_system(error, folder)) from None
    records = _as_tokenised(records) if tokenised else records
    return Corpus(name or str(folder), records, identity, errors, pieces=pieces)


def _corpora_in(folder: Path) -> list[str]:
    """Folders right below this one that are corpora, as `data` in a clone from the Hub is."""
    inner = [path for path in visible(folder, "*") if path.is_dir()]
    return [str(path) for path in inner if any(find_split(path, split_name) for split_name in SPLITS)]


# ---------------------------------------------------------------------------------------------------- the default


def _aclsum(errors: str, clusters: bool) -> Corpus:
    """250 full papers of the ACL Anthology (Takeshita et al. 2024), in the splits of the package that ships them.

    `clusters`: each paper's paragraphs, in place of its sections.
    """
    version = importlib.metadata.version("aclsum")
    records = _sources(f"aclsum {version}", SPLITS, lambda split_name: _aclsum_records(split_name, clusters))
    name, identity = (CLUSTERS, f"{version} {clusters}") if clusters else ("aclsum", version)
    return Corpus(name, records, identity, errors)


def _aclsum_records(split_name: str, clusters: bool) -> Records:
    folder = resources.files("aclsum") / "dataset"
    with (folder / f"{split_name}.jsonl").open(encoding="utf-8") as lines:
        identifiers = [json.loads(line)["id"] for line in lines]
    for number, identifier in enumerate(identifiers, 1):
        paper = json.loads((folder / "paper_jsons" / f"{identifier}.json").read_text(encoding="utf-8"))
        yield number, _aclsum_record(identifier, paper, clusters)


def _aclsum_record(identifier: str, paper: dict, clusters: bool) -> dict:
    """Abstract as summary; body by paragraph, or by major section (its number up to the first dot, or its name)."""
    abstract = _squeeze(paper["abstract"])
    record = {"id": identifier, "title": paper["title"]}
    names, sections, paragraphs, last = [], [], [], None
    for paragraph in paper["pdf_parse"]["body_text"]:
        sentences = [s for s in split_sentences(paragraph["text"]) if not _stands_in(s, abstract)]
        major = (paragraph["sec_num"] or paragraph["section"]).split(".")[0]
        if major != last:
            names.append(paragraph["section"])
            sections.append([])
            last = major
        sections[-1] += sentences
        paragraphs.append(" ".join(sentences))
    summary = split_sentences(paper["abstract"])
    if clusters:
        return {**record, "paragraphs": paragraphs, "summary": summary}
    return {**record, "section_names": names, "sections": sections, "abstract_text": summary}


def anthology_year(identifier: str) -> int:
    """Year of a paper of the ACL Anthology: "P19-1234" and "2021.eacl-main.84"."""
    if "." in identifier:
        return int(identifier.split(".")[0])
    year = int(identifier[1:3])
    return 1900 + year if year > 50 else 2000 + year


def _squeeze(text: str) -> str:
    """Letters and digits alone, so that a body sentence is found in the abstract: it would leak the summary."""
    return "".join(c for c in text.lower() if c.isalnum())


def _stands_in(sentence: str, squeezed_abstract: str) -> bool:
    return len(sentence) >= 40 and _squeeze(sentence) in squeezed_abstract


# --------------------------------------------------------------------------------------------------------- the Hub


def _hub(name: str, hub: HubCorpus, errors: str) -> Corpus:
    from datasets import config, load_dataset

    online = _hub_answers()
    config.HF_HUB_OFFLINE = not online  # offline, cached copies still load, and nothing waits for a retry
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = load_dataset(hub.repository, hub.configuration, revision=hub.revision)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        raise CorpusError(
            f"{name}: {hub.repository} comes with a script of its own, which `datasets` runs no longer. Fetch its "
            "Parquet files (in its branch refs/convert/parquet), and give their folder in place of the name"
        ) from None
    except (ConnectionError, FileNotFoundError) as error:
        if online:
            raise CorpusError(f"{name}: the Hub answers, but {hub.repository} cannot be loaded: {error}") from None
        raise CorpusError(
            f"{name}: asked the Hugging Face Hub for {hub.repository}"
            f"{f' ({hub.configuration})' if hub.configuration else ''}, which cannot be reached from here and is not "
            "in this machine's cache. Three ways out: dataset='aclsum', which needs no download; the path of "
            "a folder with train, val and test files; or load it once on a machine with network and copy its "
            "Hugging Face cache (HF_HOME) here."
        ) from None
    rows = {split_name: loaded["validation" if split_name == "val" else split_name] for split_name in SPLITS}
    records = _sources(hub.repository, SPLITS, lambda split_name: _hub_records(rows[split_name], hub))
    identity = digest([*(split._fingerprint for split in rows.values()), *([SAYS] if hub.tokenised else [])])
    return Corpus(name, _as_tokenised(records) if hub.tokenised else records, identity, errors, hub.note)


def _hub_answers(timeout: float = 3.0) -> bool:
    """Whether the Hub can be reached: asked once, because its own client retries for 23 seconds or more."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=timeout)
        return True
    except Exception:  # whatever the HTTP library of the day raises
        return False


def _hub_records(rows, hub: HubCorpus) -> Records:
    for number, row in enumerate(rows, 1):
        source, record = row.get(hub.source), {"id": row.get("id"), "abstract_text": row.get(hub.summary)}
        if hub.separator and isinstance(source, str):
            yield number, {**record, **articles_of(source.split(hub.separator))}
        else:
            yield number, {**record, "article_text": source}
