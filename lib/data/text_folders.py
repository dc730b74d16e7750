"""Folders of texts of one's own, each with a summary beside it."""

from hashlib import sha1
from pathlib import Path

from lib.data.documents import SPLITS, Document
from lib.data.files import ENDINGS, texts_of
from lib.data.plain_text import parse_text
from lib.data.releases import Found, Release, of_each_file, visible

_TEXT = (".txt", ".md", ".markdown")


def _texts(folder: Path) -> list[tuple[Path, Path]]:
    """`NAME.txt`, or another file that holds a text, each with its `NAME.summary.txt` or `.md`."""
    summaries = [p for ending in _TEXT for p in visible(folder, f"*.summary{ending}")]
    pairs = []
    for summary in sorted(summaries):
        name = summary.name.removesuffix(f".summary{summary.suffix}")
        pairs += [(text, summary) for ending in ENDINGS if (text := folder / f"{name}{ending}").is_file()][:1]
    return pairs


def _is_texts(folder: Path) -> bool:
    return bool(_texts(folder)) or any(_texts(folder / split_name) for split_name in SPLITS)


def _texts_of(folder: Path, split_name: str) -> Found:
    """A file a document, in folders `train`, `val` and `test`, or in one: then one in ten,
    and at least one, is for validation and as many are for the test, by the SHA-1 of their names."""
    if any(_texts(folder / s) for s in SPLITS):
        pairs = _texts(folder / split_name)
    else:
        pairs = sorted(_texts(folder), key=lambda pair: sha1(pair[0].stem.encode()).hexdigest())
        tenth = max(1, len(pairs) // 10)
        parts = {"val": pairs[:tenth], "test": pairs[tenth : 2 * tenth], "train": pairs[2 * tenth :]}
        pairs = parts[split_name]
    summaries = dict(pairs)

    def read(path: Path) -> dict:
        text, summary = _document(path), _document(summaries[path])
        record = {"id": text.id, "title": text.title, "section_names": text.section_names}
        return {**record, "sections": text.sections, "abstract_text": summary.sentences}

    return of_each_file([path for path, _ in pairs], read)


def _document(path: Path) -> Document:
    return parse_text("\n\n".join(texts_of(path.read_bytes(), str(path))), path.stem)


TEXTS = Release("NAME.txt (.md, .pdf, .docx, .html) with NAME.summary.txt", _is_texts, _texts_of)
