"""The scores that a table was made of, in a file beside it."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from companion.results.tables import Table
from lib.decoding.search import DECODINGS
from lib.system.files import write_whole

SCORES = ".scores.json.gz"  # the end of the file's name


def write_table_scores(path: Path, table: Table, scored: Mapping[str, Sequence[dict]]) -> Path:
    """Write the scores of each row, by label, of all its seeds: only the parts that the row is made of."""
    scores_by_label = {}
    for row in table.rows:
        parts = {row.part, *(DECODINGS if table.decodings and row.part == "summaries" else ())}
        if row.label in scored:
            scores_by_label[row.label] = [
                scores | {"parts": {name: part for name, part in scores["parts"].items() if name in parts}}
                for scores in scored[row.label]
            ]
    text = json.dumps(scores_by_label, ensure_ascii=False, separators=(",", ":"))
    return write_whole(path, gzip.compress(text.encode(), mtime=0))


def read_table_scores(path: Path) -> dict[str, list[dict]]:
    """Read what `write_table_scores` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))
