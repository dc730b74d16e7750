"""The results that the project keeps, in figures/ and trained/, and the scores that tables were
made of."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from companion.results.tables import Table
from lib.decoding.config import DECODINGS
from lib.system.files import project_root, read_numbers, trained_folder, write_whole

# the end of the name of a file beside a table, with the scores that it was made of
SCORES = ".scores.json.gz"


def kept_tables() -> dict[str, dict]:
    """Read the tables in figures/, and those of the trained runs (`trained_NAME`), by name."""
    root = project_root()
    names = [path.stem for path in sorted((root / "figures").glob("*_table*.json"))]
    names += [
        f"trained_{path.parent.name}" for path in sorted((root / "trained").glob("*/table.json"))
    ]
    tables = {name: stored_numbers(name) for name in names}
    return {name: numbers for name, numbers in tables.items() if "table" in numbers}


def stored_numbers(name: str) -> dict:
    """Read one kept table, or results of a study or of a synthetic task."""
    run = name.removeprefix("trained_")
    path = (
        project_root() / "figures" / f"{name}.json"
        if run == name
        else trained_folder(run) / "table.json"
    )
    return read_numbers(path, "stored results", ())


def write_table_scores(path: Path, table: Table, scored: Mapping[str, Sequence[dict]]) -> Path:
    """Write the scores of each row, by label, of all its seeds: only the parts that the row is made
    of."""
    scores_by_label = {}
    for row in table.rows:
        parts = {row.part, *(DECODINGS if table.decodings and row.part == "summaries" else ())}
        if row.label in scored:
            scores_by_label[row.label] = [
                scores
                | {"parts": {name: part for name, part in scores["parts"].items() if name in parts}}
                for scores in scored[row.label]
            ]
    text = json.dumps(scores_by_label, ensure_ascii=False, separators=(",", ":"))
    return write_whole(path, gzip.compress(text.encode(), mtime=0))


def read_table_scores(path: Path) -> dict[str, list[dict]]:
    """Read what `write_table_scores` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))
