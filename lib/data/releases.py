"""The releases of named corpora, read as their owners pass them on.

The splits are the project's own where a release has none: lists of ids in `splits`, or a rule.
"""

import gzip
import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from hashlib import sha1
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

from lib.data.documents import SPLITS, CorpusError
from lib.data.jats import jats_articles
from lib.data.named_corpora import LeftOut, corpus
from lib.data.pieces import Pieces
from lib.data.record_readers import Records, read_csv, read_each, read_file, read_folder
from lib.data.sentences import split_sentences
from lib.data.vocabulary import TITLE_END
from lib.system.errors import InputError
from lib.system.files import read_json


def split_by_name(name: str) -> str:
    """The split of a document in a release without any: 80, 10 and 10 of 100, by the SHA-1 of its
    id."""
    place = int(sha1(name.encode()).hexdigest()[:8], 16) % 100
    return "train" if place < 80 else "val" if place < 90 else "test"


@cache
def held_out(name: str) -> dict[str, str]:
    """{id: split} of the documents that are not for training."""
    lists = read_json(Path(__file__).with_name("splits") / f"{name}.json")
    return {i: split_name for split_name, ids in lists.items() for i in ids}


def too_short(part: str, texts: Iterable[str], min_words: int) -> LeftOut | None:
    """Why a document with such a part is left out."""
    words = sum(len(text.split()) for text in texts)
    if not words:
        return LeftOut(f"no {part}")
    return LeftOut(f"{part} of fewer than {min_words} words") if words < min_words else None


# ---------------------------------------------------------------------------------
# with the installation


@corpus("aclsum")
def read_aclsum(folder: Path, split_name: str, clusters: bool = False) -> Records:
    """250 full papers (Takeshita et al. 2024), in sections; `clusters`: in paragraphs."""
    lines = (folder / f"{split_name}.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        name = json.loads(line)["id"]
        path = folder / "paper_jsons" / f"{name}.json"
        yield path, number, _aclsum_record(name, read_json(path), clusters)


corpus("aclsum:paragraphs")(partial(read_aclsum, clusters=True))


def _aclsum_record(name: str, paper: dict, clusters: bool) -> dict:
    """Abstract as summary; body by paragraph, or by major section (its number up to the first dot,
    or its name). Sentences of the abstract are removed from the body, where they would leak the
    summary."""
    abstract = _letters(paper["abstract"].lower())
    record = {"id": name, "title": paper["title"]}
    names, sections, paragraphs, last = [], [], [], None
    for paragraph in paper["pdf_parse"]["body_text"]:
        sentences = split_sentences(paragraph["text"])
        sentences = [s for s in sentences if len(s) < 40 or _letters(s.lower()) not in abstract]
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


def _letters(text: str) -> str:
    """A text without spaces and marks, to compare."""
    return "".join(c for c in text if c.isalnum())


def anthology_year(name: str) -> int:
    """Year of a paper of the ACL Anthology: "P19-1234" and "2021.eacl-main.84"."""
    if "." in name:
        return int(name.split(".")[0])
    year = int(name[1:3])
    return 1900 + year if year > 50 else 2000 + year


# ---------------------------------------------------------------------------------
# SumPubMed


@corpus("sumpubmed")
def read_sumpubmed(folder: Path, split_name: str) -> Records:
    """`text/text_N.txt` and `abstract/abstract_N.txt`, in which a line BACKGROUND, RESULTS or
    CONCLUSIONS begins a section. Left out: an abstract of fewer than 50 words or that an earlier
    article has, a text of fewer than 400."""
    splits, seen = held_out("sumpubmed"), set()
    numbers = sorted(
        int(p.stem.removeprefix("text_")) for p in (folder / "text").glob("text_*.txt")
    )
    if split_name != "train":
        numbers = [n for n in numbers if splits.get(f"sumpubmed-{n}") == split_name]

    def read(path: Path) -> Iterator[dict | LeftOut]:
        name = path.stem.replace("text_", "sumpubmed-")
        abstract = folder / "abstract" / path.name.replace("text", "abstract")
        summary = " ".join(text for _, text in _headed(abstract.read_text(encoding="utf-8-sig")))
        again = LeftOut("abstract of an earlier article") if summary in seen else None
        seen.add(summary)
        if splits.get(name, "train") == split_name:
            names, texts = zip(*_headed(path.read_text(encoding="utf-8-sig")) or [("", "")])
            record = {
                "id": name,
                "section_names": list(names),
                "sections": list(texts),
                "abstract_text": summary,
            }
            yield (
                again
                or too_short("abstract", [summary], 50)
                or too_short("text", texts, 400)
                or record
            )

    return read_each([folder / "text" / f"text_{n}.txt" for n in numbers], read)


def _headed(text: str) -> list[tuple[str, str]]:
    """Sections of a text in which lines of capitals are headings: names in small letters, and
    texts."""
    parts = re.split(r"^([A-Z][A-Z &]+)\s*$", text, flags=re.MULTILINE)
    pairs = [("", parts[0]), *zip(parts[1::2], parts[2::2])]
    # The texts are in lower case but for a few symbols, at which a sentence would seem to begin.
    return [
        (name.strip().lower(), " ".join(part.lower().split()))
        for name, part in pairs
        if part.strip()
    ]


# ---------------------------------------------------------------------------------
# Reuters-21578

_STORY = re.compile(r'<REUTERS[^>]*NEWID="(\d+)"[^>]*>(.*?)</REUTERS>', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@corpus("reuters")
def read_reuters(folder: Path, split_name: str) -> Records:
    """Headlines and the first four paragraphs, in the order of time: the first 88 of 100 are for
    training, the next 5 for validation, the rest for the test. A story with the headline and first
    80 characters of an earlier one is left out."""
    stories = _reuters_stories(
        tuple(sorted([*folder.glob("reut2-*.sgm"), *folder.glob("reut2-*.sgm.gz")]))
    )
    count = sum(isinstance(story, dict) for story in stories)
    ends = [int(share * count) for share in (0.88, 0.93)]
    before = 0
    for number, story in enumerate(stories, 1):
        if SPLITS[sum(before >= end for end in ends)] == split_name:
            yield folder, number, story
        before += isinstance(story, dict)


@cache
def _reuters_stories(paths: tuple[Path, ...]) -> list[dict | LeftOut]:
    stories, seen = [], set()
    for path in paths:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for number, story in _STORY.findall(data.decode("latin-1")):
            record = _reuters_story(number, story)
            if isinstance(record, dict):
                key = (record["summary"].lower(), record["document"][:80].lower())
                record = LeftOut("earlier story again") if key in seen else record
                seen.add(key)
            stories.append(record)
    return stories


def _reuters_story(number: str, story: str) -> dict | LeftOut:
    """A record, or why it is no story, such as tables of earnings (fewer than 6 letters in 10
    signs)."""
    title, body = (
        re.search(rf"<{tag}>(.*?)</{tag}>", story, re.DOTALL) for tag in ("TITLE", "BODY")
    )
    if not title or not body:
        return LeftOut("no headline" if body else "no text")
    headline = " ".join(_tidy(title[1]).split())
    paragraphs = (" ".join(_tidy(part).split()) for part in re.split(r"\n {3,}", body[1]))
    paragraphs = [
        re.sub(r"\s+([,.;:])", r"\1", p) for p in paragraphs if p and p.lower() != "reuter"
    ][:4]
    text = "\n".join(paragraphs)
    words, signs = re.findall(r"[a-z]{4,}", headline.lower()), "".join(text.split())
    if not 3 <= len(headline.split()) <= 20:
        return LeftOut("headline of fewer than 3 or more than 20 words")
    if len(text.split()) < 12:
        return LeftOut("text of fewer than 12 words")
    if sum(c.isalpha() for c in signs) < 0.6 * len(signs) or "blah" in text.lower():
        return LeftOut("table or test")
    if not set(words) & set(re.findall("[a-z]+", text.lower())):
        return LeftOut("headline without a word of the text")
    return {"id": f"reuters-{number}", "document": text, "summary": headline}


def _tidy(text: str) -> str:
    """A text without tickers, control characters, and the agency's name at the end."""
    text = _CONTROL.sub("", html.unescape(text))
    return re.sub(r"\s*Reuter\s*$", "", re.sub(r"<[^<>]{1,12}>", " ", text))


# ---------------------------------------------------------------------------------
# ScisummNet


@corpus("scisummnet")
def read_scisummnet(folder: Path, split_name: str) -> Records:
    """The sections of a paper's XML; its abstract, cleaned by hand, is in a file.

    Left out: an abstract of fewer than 30 words, a body of fewer than 500.
    """
    splits = held_out("scisummnet")
    inside = folder / "data" / "Training-Set-2019" / "Task2" / "From-ScisummNet-2019"
    papers = inside if inside.is_dir() else folder
    files = sorted([*papers.glob("*/Documents_xml/*.xml"), *papers.glob("*/*.xml")])
    return read_each(
        (path for path in files if splits.get(path.stem, "train") == split_name), _scisummnet_record
    )


def _scisummnet_record(path: Path) -> Iterator[dict | LeftOut]:
    place = path.parent.parent if path.parent.name == "Documents_xml" else path.parent
    abstract = next(
        iter(sorted([*place.glob("*.abstract.txt"), *place.glob("summary/*.abstract.txt")])), None
    )
    if abstract is None:
        yield LeftOut("no abstract beside it")
        return
    summary = [
        " ".join(s.split()) for s in abstract.read_text("utf-8", errors="replace").split("\n")
    ]
    try:
        paper = ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError as error:
        raise InputError(f"not XML: {error}") from None
    names, sections = [], []
    for section in paper.iter("SECTION"):
        name = section.get("title", "").strip()
        lines = list(
            filter(None, (" ".join("".join(s.itertext()).split()) for s in section.iter("S")))
        )
        if lines and name.lower() not in ("acknowledgement", "acknowledgements", "references"):
            names.append(name)
            sections.append(lines)
    title = " ".join((paper.findtext("S") or "").split())
    record = {"id": path.stem, "title": title, "section_names": names, "sections": sections}
    left_out = too_short("abstract", summary, 30) or too_short(
        "body", chain.from_iterable(sections), 500
    )
    yield left_out or {**record, "abstract_text": [s for s in summary if s]}


# ---------------------------------------------------------------------------------
# articles in JATS's XML


@corpus("pmc")
def read_jats(folder: Path, split_name: str) -> Records:
    """Articles of PubMed Central: each section and sub-section with text of its own, the abstract
    without headings.

    Left out: an abstract of fewer than 30 words, a body of fewer than 500. Numbered citations,
    tables, figures and notes are removed; a formula is the word @formula.
    """
    files = [*folder.glob("[!.]*"), *folder.glob("[!.]*/[!.]*")]
    articles = sorted(path for path in files if re.search(r"\.n?xml(\.gz)?$", path.name))
    return read_each(articles, partial(_read_articles, split_name=split_name))


def _read_articles(path: Path, split_name: str) -> Iterator[dict | LeftOut]:
    for article in jats_articles(
        path.read_bytes(), path.name.removesuffix(".gz").rpartition(".")[0]
    ):
        if split_by_name(article["id"]) == split_name:
            sections, abstract = article["sections"], article["abstract_text"]
            whole = {
                **article,
                "sections": ["\n".join(s) for s in sections],
                "abstract_text": "\n".join(abstract),
            }
            left_out = too_short("abstract", abstract, 30) or too_short(
                "body", chain.from_iterable(sections), 500
            )
            yield left_out or whole


# ---------------------------------------------------------------------------------
# others' records


def read_newsroom(folder: Path, split_name: str, kind: str) -> Records | None:
    """Articles by how much of a summary is copied; the published numbers of Mem2Mem's Table 1 are
    for the first kind."""
    if (records := read_folder(folder, split_name)) is None:
        return None
    return (r for r in records if isinstance(r[2], InputError) or r[2].get("density_bin") == kind)


for kind in ("abstractive", "mixed", "extractive"):
    corpus(f"newsroom:{kind}")(partial(read_newsroom, kind=kind))


@corpus("wikihow")
def read_wikihow(folder: Path, split_name: str) -> Records:
    """The articles whose titles a split's list names, cleaned as their authors do.

    The bold line of each step, ended by `.,`, is a sentence of the summary. Left out: articles
    whose headlines are at least 0.75 times as long as their text (Koupaee and Wang 2018), and those
    that no list names.
    """
    path, titles = folder / "wikihowAll.csv", {}
    for name in SPLITS:
        lines = (folder / f"all_{name}.txt").read_text(encoding="utf-8-sig").splitlines()
        titles[name] = set(map(_letters, lines))
    listed = set.union(*titles.values())
    for _, number, row in read_file(read_csv, path):
        title = "" if isinstance(row, InputError) else _letters(row["title"])
        if isinstance(row, InputError):
            yield path, number, row
        elif title in titles[split_name]:
            yield path, number, _wikihow_record(row)
        elif split_name == "train" and title not in listed:
            yield path, number, LeftOut("title that no list names")


def _wikihow_record(row: dict) -> dict | LeftOut:
    headline, text, title = (row[key] for key in ("headline", "text", "title"))
    if len(headline) >= 0.75 * len(text):
        return LeftOut(
            "headline at least 0.75 times as long as the text" if text.strip() else "no text"
        )
    steps = (line.strip().rstrip(",").strip() for line in headline.splitlines())
    body = text.replace(";\n,", "\n").replace("\n,", "\n").replace(" .", ".")
    return {
        "id": title,
        "title": title,
        "document": body,
        "summary": "\n".join(filter(None, steps)),
    }


@corpus("gigaword")
def read_gigaword(folder: Path, split_name: str) -> Records | None:
    insides = (folder, folder / "train", folder / "Giga")
    return next(
        (records for inside in insides if (records := read_folder(inside, split_name))), None
    )


# ---------------------------------------------------------------------------------
# WikiSum


def read_pieces(folder: Path) -> Pieces:
    """The SentencePiece model beside WikiSum's shards."""
    models = sorted(folder.glob("*.model"))
    if len(models) != 1:
        raise CorpusError(
            f"{folder}: {len(models)} SentencePiece models (*.model) beside the shards instead of "
            "one"
        )
    return Pieces.load(models[0])


@corpus("wikisum", pieces=read_pieces)
def read_wikisum(folder: Path, split_name: str) -> Records:
    """Shards as Liu and Lapata passed them on, ranked and in pieces: lists of {src, tgt,
    tgt_str}."""
    import torch

    pieces = read_pieces(folder)
    names = ("valid", "val") if split_name == "val" else (split_name,)
    shards = [path for name in names for path in folder.glob(f"*.{name}.*.pt")]
    for path in sorted(shards, key=lambda p: (len(p.name), p.name)):
        records = torch.load(path, weights_only=True)  # plain lists and numbers, never code
        for number, record in enumerate(records, 1):
            yield path, number, _wikisum_cluster(record, pieces)


def _wikisum_cluster(record: dict, pieces: Pieces) -> dict:
    """`src` holds the paragraphs, the best first; `<T>` ends a title before one of them."""
    title, texts = "", []
    for ids in (pieces.ours(ids).tolist() for ids in record["src"]):
        end = ids.index(TITLE_END) if TITLE_END in ids else -1
        title = title or pieces.text(ids[: max(0, end)])
        texts.append(pieces.text(ids[end + 1 :]))
    summary = re.split(r"<[Qq]>", re.sub(r"</?t>", " ", record["tgt_str"]))
    return {"title": title, "paragraphs": texts, "summary": summary}
