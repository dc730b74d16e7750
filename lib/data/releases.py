"""Corpora as their owners release them, one file a document or many in one: what each is and how it is read.

The splits are the project's own where a release has none: lists of ids in `splits`, or a rule.
"""

import gzip
import html
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from pathlib import Path
from xml.etree import ElementTree

from lib.data.documents import SPLITS, CorpusError, Omitted
from lib.data.jats import jats_articles
from lib.system.errors import InputError

# an InputError stands for a record that cannot be read, Omitted for one that a rule leaves out
Found = Iterator[tuple[int, dict | InputError]]


@dataclass(frozen=True)
class Release:
    """A layout: how a folder is recognised, and what reads the documents of a split from it."""

    files: str  # what it looks like, for messages
    probe: Callable[[Path], bool]
    read: Callable[[Path, str], Found]


def visible(folder: Path, pattern: str = "**/*") -> list[Path]:
    """Paths in a folder, in order, without those that are hidden: names that begin with a dot, as `.git` does."""
    paths = ((path, path.relative_to(folder).parts) for path in folder.glob(pattern))
    return ordered(path for path, parts in paths if not any(part.startswith(".") for part in parts))


def ordered(paths: Iterable[Path]) -> list[Path]:
    """Paths in order. Raises CorpusError for a pipe or a device: its end may never come."""
    paths = sorted(paths)
    for path in paths:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise CorpusError(f"{path}: a pipe or a device, where a file must be")
    return paths


def _share(name: str) -> str:
    """The split of a document in a release without any: 80, 10 and 10 of 100, by the SHA-1 of its id."""
    place = int(sha1(name.encode()).hexdigest()[:8], 16) % 100
    return "train" if place < 80 else "val" if place < 90 else "test"


@cache
def _listed(corpus: str) -> dict[str, str]:
    """{id: split} of the documents that are not for training."""
    lists = json.loads((Path(__file__).parent / "splits" / f"{corpus}.json").read_text(encoding="utf-8"))
    return {i: split_name for split_name, ids in lists.items() for i in ids}


def of_each_file(paths: list[Path], read: Callable[[Path], dict | Omitted | None]) -> Found:
    """Results of a function for each file; an InputError gets the file's name, None stands for another split's."""
    for number, path in enumerate(paths, 1):
        try:
            record = read(path)
        except (ValueError, OSError) as error:
            yield number, InputError(f"{path.name}: {error}")
            continue
        if record is not None:
            yield number, record


def _words(text: str) -> int:
    return len(text.split())


def _short(what: str, words: int, least: int) -> Omitted | None:
    """Why a document with a part of so many words is left out."""
    if not words:
        return Omitted(f"no {what}")
    return Omitted(f"{what} of fewer than {least} words") if words < least else None


# ------------------------------------------------------------------------------------------------------ SumPubMed


def _is_sumpubmed(folder: Path) -> bool:
    return (folder / "text").is_dir() and (folder / "abstract").is_dir()


def _sumpubmed(folder: Path, split_name: str) -> Found:
    """`text/text_N.txt` and `abstract/abstract_N.txt`, in which a line BACKGROUND, RESULTS or CONCLUSIONS begins a
    section. Left out: an abstract of fewer than 50 words or that an earlier article has, a text of fewer than 400."""
    listed, seen = _listed("sumpubmed"), set()
    numbers = sorted(int(p.stem.removeprefix("text_")) for p in (folder / "text").glob("text_*.txt"))
    if split_name != "train":
        numbers = [n for n in numbers if listed.get(f"sumpubmed-{n}") == split_name]

    def read(path: Path) -> dict | Omitted | None:
        name = path.stem.replace("text_", "sumpubmed-")
        abstract = folder / "abstract" / path.name.replace("text", "abstract")
        summary = " ".join(text for _, text in _headed(abstract.read_text(encoding="utf-8-sig")))
        again = summary in seen
        seen.add(summary)
        if listed.get(name, "train") != split_name:
            return None
        if again:
            return Omitted("abstract of an earlier article")
        if fault := _short("abstract", _words(summary), 50):
            return fault
        sections = _headed(path.read_text(encoding="utf-8-sig"))
        if fault := _short("text", sum(_words(text) for _, text in sections), 400):
            return fault
        names, texts = zip(*sections)
        return {"id": name, "section_names": list(names), "sections": list(texts), "abstract_text": summary}

    return of_each_file([folder / "text" / f"text_{n}.txt" for n in numbers], read)


def _headed(text: str) -> list[tuple[str, str]]:
    """Sections of a text in which lines of capitals are headings: names in small letters, and texts."""
    parts = re.split(r"^([A-Z][A-Z &]+)\s*$", text, flags=re.MULTILINE)
    pairs = [("", parts[0]), *zip(parts[1::2], parts[2::2])]
    # the texts are lower-cased but for a symbol here and there, by which a sentence would seem to go on
    return [(name.strip().lower(), " ".join(part.lower().split())) for name, part in pairs if part.strip()]


# --------------------------------------------------------------------------------------------------- Reuters-21578

_STORY = re.compile(r'<REUTERS[^>]*NEWID="(\d+)"[^>]*>(.*?)</REUTERS>', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def _reuters_files(folder: Path) -> list[Path]:
    return ordered([*folder.glob("reut2-*.sgm"), *folder.glob("reut2-*.sgm.gz")])


def _is_reuters(folder: Path) -> bool:
    return bool(_reuters_files(folder))


def _reuters(folder: Path, split_name: str) -> Found:
    """Headlines and the first four paragraphs of `reut2-*.sgm`, in the order of time: the first 88 of 100 are for
    training, the next 5 for validation, the rest for the test. A story that comes again, told by its headline and
    first 80 characters, is left out."""
    stories = _stories_of(tuple(_reuters_files(folder)))
    count = sum(isinstance(story, dict) for story in stories)
    ends = [int(share * count) for share in (0.88, 0.93)]
    before = 0
    for number, story in enumerate(stories, 1):
        if SPLITS[sum(before >= end for end in ends)] == split_name:
            yield number, story
        before += isinstance(story, dict)


@cache
def _stories_of(paths: tuple[Path, ...]) -> list[dict | Omitted]:
    """Stories in the order of time, those that are left out among them."""
    stories, seen = [], set()
    for path in paths:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for number, story in _STORY.findall(data.decode("latin-1")):
            record = _story(number, story)
            if isinstance(record, dict):
                key = (record["summary"].lower(), record["document"][:80].lower())
                record = Omitted("earlier story again") if key in seen else record
                seen.add(key)
            stories.append(record)
    return stories


def _story(number: str, story: str) -> dict | Omitted:
    """A record, or why it is no story: no headline of 3 to 20 words that shares a word of four letters with the text,
    fewer than 12 words, fewer than 6 letters in 10 signs (tables of earnings)."""
    title, body = (re.search(rf"<{tag}>(.*?)</{tag}>", story, re.DOTALL) for tag in ("TITLE", "BODY"))
    if not title or not body:
        return Omitted("no headline" if body else "no text")
    headline = " ".join(_tidy(title[1]).split())
    paragraphs = [
        re.sub(r"\s+([,.;:])", r"\1", " ".join(p.split())) for p in map(_tidy, re.split(r"\n {3,}", body[1]))
    ]
    paragraphs = [p for p in paragraphs if p and p.lower() != "reuter"][:4]
    text = "\n".join(paragraphs)
    words, signs = re.findall(r"[a-z]{4,}", headline.lower()), "".join(text.split())
    if not 3 <= _words(headline) <= 20:
        return Omitted("headline of fewer than 3 or more than 20 words")
    if _words(text) < 12:
        return Omitted("text of fewer than 12 words")
    if sum(c.isalpha() for c in signs) < 0.6 * len(signs) or "blah" in text.lower():
        return Omitted("table or test")
    if not set(words) & set(re.findall("[a-z]+", text.lower())):
        return Omitted("headline without a word of the text")
    return {"id": f"reuters-{number}", "document": text, "summary": headline}


def _tidy(text: str) -> str:
    """A text without tickers, signs that are not printed, and the agency's name at the end."""
    text = _CONTROL.sub("", html.unescape(text))
    text = re.sub(r"<[^<>]{1,12}>", " ", text)
    return re.sub(r"\s*Reuter\s*$", "", text)


# ------------------------------------------------------------------------------------------------------ ScisummNet


def _papers_of(folder: Path) -> Path:
    """The folder in a clone of scisumm-corpus that holds its papers, a folder each."""
    inside = folder / "data" / "Training-Set-2019" / "Task2" / "From-ScisummNet-2019"
    return inside if inside.is_dir() else folder


def _scisummnet_files(folder: Path) -> list[Path]:
    papers = _papers_of(folder)
    return sorted([*visible(papers, "*/Documents_xml/*.xml"), *visible(papers, "*/*.xml")])


def _is_scisummnet(folder: Path) -> bool:
    return any(_abstract_beside(path) for path in _scisummnet_files(folder)[:3])


def _abstract_beside(path: Path) -> Path | None:
    """The abstract of a paper, cleaned by hand, which stands beside its XML or in a folder of its own."""
    paper = path.parent.parent if path.parent.name == "Documents_xml" else path.parent
    abstracts = visible(paper, "*.abstract.txt") + visible(paper, "summary/*.abstract.txt")
    return abstracts[0] if abstracts else None


def _scisummnet(folder: Path, split_name: str) -> Found:
    """Papers of the ACL Anthology: the XML's sections, and the abstract's file. Left out: an abstract of fewer than
    30 words, a body of fewer than 500."""
    listed = _listed("scisummnet")

    def read(path: Path) -> dict | Omitted | None:
        abstract = _abstract_beside(path)
        if listed.get(path.stem, "train") != split_name:
            return None
        if abstract is None:
            return Omitted("no abstract beside it")
        paper = _xml(path)
        sections = [
            (section.get("title", "").strip(), _lines(section))
            for section in paper.iter("SECTION")
            if section.get("title", "").lower() not in ("acknowledgement", "acknowledgements", "references")
        ]
        sections = [(name, sentences) for name, sentences in sections if sentences]
        summary = abstract.read_text(encoding="utf-8", errors="replace").split("\n")
        title = " ".join("".join(paper.findtext("S") or "").split())
        if fault := _short("abstract", _words(" ".join(summary)), 30):
            return fault
        if fault := _short("body", sum(_words(s) for _, sentences in sections for s in sentences), 500):
            return fault
        names, sections = zip(*sections)
        record = {"id": path.stem, "title": title, "section_names": list(names), "sections": list(sections)}
        return {**record, "abstract_text": [" ".join(s.split()) for s in summary if s.strip()]}

    return of_each_file(_scisummnet_files(folder), read)


def _lines(section: ElementTree.Element) -> list[str]:
    sentences = (" ".join("".join(s.itertext()).split()) for s in section.iter("S"))
    return [s for s in sentences if s]


def _xml(path: Path) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError as error:
        raise InputError(f"not XML: {error}") from None


# ----------------------------------------------------------------------------------------- articles in JATS's XML

_JATS_ENDINGS = (".xml", ".nxml", ".xml.gz", ".nxml.gz")


def _jats_files(folder: Path) -> list[Path]:
    patterns = (f"{inside}*{ending}" for ending in _JATS_ENDINGS for inside in ("", "*/"))
    return sorted(path for pattern in patterns for path in visible(folder, pattern))


def _is_jats(folder: Path) -> bool:
    return any(re.search(rb"<(?:\w+:)?(?:pmc-)?article", _head(path)) for path in _jats_files(folder)[:3])


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _head(path: Path, size: int = 20_000) -> bytes:
    """The first bytes of a file, without compression; none of one that cannot be read."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _jats(folder: Path, split_name: str) -> Found:
    """Articles of PubMed Central, one or several in a file: each section and sub-section with text of its own, the
    abstract without headings.

    Left out: an abstract of fewer than 30 words, a body of fewer than 500. Numbered citations, tables, figures and
    notes are removed; a formula is the word @formula.
    """
    number = 0
    for path in _jats_files(folder):
        try:
            for article in jats_articles(path.read_bytes(), _stem(path)):
                number += 1
                if _share(article["id"]) == split_name:
                    yield number, _jats_record(article)
        except (ValueError, OSError) as error:
            number += 1
            yield number, InputError(f"{path.name}: {error}")


def _jats_record(article: dict) -> dict | Omitted:
    if fault := _short("abstract", _words(" ".join(article["abstract_text"])), 30):
        return fault
    if fault := _short("body", sum(_words(p) for section in article["sections"] for p in section), 500):
        return fault
    return {**article, "sections": ["\n".join(section) for section in article["sections"]],
            "abstract_text": "\n".join(article["abstract_text"])}  # fmt: skip


RELEASES = {
    "sumpubmed": Release("text/text_N.txt with abstract/abstract_N.txt", _is_sumpubmed, _sumpubmed),
    "reuters": Release("reut2-*.sgm", _is_reuters, _reuters),
    "scisummnet": Release("papers in XML with NAME.abstract.txt", _is_scisummnet, _scisummnet),
    "pmc": Release("articles in JATS's XML", _is_jats, _jats),
}
