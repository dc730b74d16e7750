"""Make the papers of `pmc-sample` anew from their XML, by the project's own reader and splitter of sentences.

    python -m tests.tools.pmc_sample FOLDER     # into lib/data/pmc_sample

FOLDER holds ID.xml.gz for each paper, `/` in an id written `_`. Splits, ids, their order, and what
ATTRIBUTION.md has stay as the present files have them; sections and abstracts are read. The same XML gives the same
bytes.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path

from lib.data.documents import SPLITS
from lib.data.jats import jats_articles
from lib.data.sentences import split_sentences
from lib.system.command_line import plain_errors
from lib.system.files import project_root

SAMPLE = project_root() / "lib" / "data" / "pmc_sample"
PRESENT = ("article_id", "title", "authors", "journal", "year", "doi", "license")


def records(split_name: str) -> list[dict]:
    """The papers of a split as the present file has them."""
    with gzip.open(SAMPLE / f"{split_name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def anew(record: dict, xml: Path) -> dict:
    """A paper with what is in its XML. Raises ValueError where that is another paper's."""
    (article,) = jats_articles(xml.read_bytes(), record["article_id"])
    if article["id"] != record["article_id"]:
        raise ValueError(f"{xml}: it holds {article['id']}")
    return {
        **{key: record[key] for key in PRESENT},
        "section_names": article["section_names"],
        "sections": [_sentences(paragraphs) for paragraphs in article["sections"]],
        "abstract_text": _sentences(article["abstract_text"]),
    }


def _sentences(paragraphs: list[str]) -> list[str]:
    return [sentence for paragraph in paragraphs for sentence in split_sentences(paragraph)]


def contents(split_name: str, folder: Path) -> bytes:
    """The file of a split, made anew."""
    papers = (anew(r, folder / f"{r['article_id'].replace('/', '_')}.xml.gz") for r in records(split_name))
    lines = (json.dumps(paper, ensure_ascii=False) + "\n" for paper in papers)
    return gzip.compress("".join(lines).encode(), 9, mtime=0)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    with plain_errors():
        for split_name in SPLITS:
            data = contents(split_name, folder)
            (SAMPLE / f"{split_name}.jsonl.gz").write_bytes(data)
            print(f"{split_name}: {len(data):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
