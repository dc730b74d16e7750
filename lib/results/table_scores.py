"""What a table was made of, document by document: the scores of its rows, in one file beside it. With them a seed or
a row is added where the runs are gone, and systems are compared on the same documents."""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from lib.papers.paper import DECODINGS, Row, Table
from lib.system.errors import InputError
from lib.system.files import write_whole

SCORES = ".scores.json.gz"


def row_parts(row: Row, table: Table) -> set[str]:
    """The parts of a run's or a baseline's scores that a row of a table can be made of."""
    return {row.part, *(DECODINGS if table.decodings and row.part == "summaries" else ())}


def write_table_scores(path: Path, table: Table, scored: Mapping[str, Sequence[dict]]) -> Path:
    """The scores of each row, by label: those of its seeds, without the parts that it does not have."""
    needed = {row.label: row_parts(row, table) for row in table.rows}
    kept = {
        label: [s | {"parts": {k: v for k, v in s["parts"].items() if k in needed[label]}} for s in every]
        for label, every in scored.items()
    }
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return write_whole(path, gzip.compress(text.encode(), mtime=0))


def read_table_scores(path: Path) -> dict[str, list[dict]]:
    """What `write_table_scores` wrote. Raises ValueError for another file."""
    try:
        found = json.loads(gzip.decompress(path.read_bytes()))
        if all(isinstance(scores, dict) for every in found.values() for scores in every):
            return found
        reason = "a row is no list of scores"
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError, AttributeError, TypeError) as error:
        reason = str(error)
    raise InputError(f"{path}: no scores of a table ({reason})")
