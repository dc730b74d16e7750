"""The papers' result tables as plain numbers, made of scores (`lib.evaluation.scores`) or of a
page's figure of lines: intervals over documents and seeds, and a paired bootstrap for each pair of
rows that a table compares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from companion.results.tables import PAGE_RESULTS, TABLES, Row, Table
from lib.decoding.config import DECODINGS
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.scores import column_values
from lib.system.errors import InputError, one_of

ANY_TABLE = ("table", "title", "columns")  # keys of the numbers of every table
REFERENCES = "references"


def make_table(
    name: str, scored: dict[str, list[dict]], corpus: str, preset_name: str, command: str = ""
) -> dict:
    """Make a paper's table: intervals over documents and seeds, and a paired bootstrap for each of
    its pairs.

    scored: for each row that is built, by label, the scores of its seeds (of a baseline: one).
    Raises InputError when rows were scored on different documents.
    """
    return {"table": name, **table_numbers(TABLES[name], scored, corpus, preset_name, command)}


def table_numbers(
    table: Table, scored: dict[str, list[dict]], corpus: str, preset_name: str, command: str = ""
) -> dict:
    """Make the numbers of any table; its scores have the parts that its rows name."""
    rows = [
        r for r in table.rows_for(corpus) if r.label in scored or not r.part or corpus in r.missing
    ]
    pairs = table.pairs
    if table.decodings:
        rows, pairs, scored = _in_both_decodings(rows, pairs, scored)
    parts = {
        r.label: [s["parts"][r.part] for s in scored[r.label]] for r in rows if r.label in scored
    }
    every = [scores for seeds in scored.values() for scores in seeds]
    first = every[0]
    if different := {s.get("corpus", "unnamed") for s in every if s["ids"] != first["ids"]}:
        where = ", ".join(sorted(different))
        raise InputError(f"{table.title}: not all rows were scored on the same documents: {where}")
    optional = {
        "letters": first.get("letters"),
        "decoding": next(
            (s["decoding"] for s in every if table.decodings and DECODINGS.keys() & s["parts"]), ""
        ),
        "written": next((s["written"] for s in every if s.get("written")), ""),
    }
    return {
        "title": table.title,
        "corpus": corpus,
        "preset": preset_name,
        "split": first["split"],
        "documents": len(first["ids"]),
        "training documents": first["training documents"],
        **{key: value for key, value in optional.items() if value},
        "columns": list(table.columns),
        "command": command,
        "rows": [
            _table_row(r, table, corpus, scored.get(r.label, []), parts.get(r.label)) for r in rows
        ],
        "pairs": [
            {"first": a, "second": b, **_pair(table, parts[a], parts[b])}
            for a, b in pairs
            if a in parts and b in parts
        ],
    }


def _in_both_decodings(
    rows: list[Row], pairs: tuple[tuple[str, str], ...], scored: dict[str, list[dict]]
) -> tuple[list[Row], tuple[tuple[str, str], ...], dict[str, list[dict]]]:
    """Add after each row of a run's summaries one of the same run in the other decoding, and
    compare these too."""
    expanded, of_both, others = [], dict(scored), {}
    for row in rows:
        expanded.append(row)
        for how in DECODINGS if row.part == "summaries" and row.label in scored else ():
            if all(how in scores["parts"] for scores in scored[row.label]):
                label = f"{row.label}, {how}"
                others[row.label] = label
                of_both[label] = scored[row.label]
                expanded.append(replace(row, label=label, part=how, published={}))
    return (
        expanded,
        (*pairs, *((others[a], others[b]) for a, b in pairs if a in others and b in others)),
        of_both,
    )


def _table_row(
    row: Row, table: Table, corpus: str, scored: list[dict], parts: list[dict] | None
) -> dict:
    numbers: dict[str, Any] = {
        "label": row.label,
        "published": {name: list(v) for name, v in row.published.items()},
    }
    if not parts:
        reason = row.missing.get(corpus, row.unbuilt)
        return numbers | ({"missing": reason} if reason else {})
    columns = {c: column_values(table.measure, parts, c) for c in table.columns}
    intervals = {c: interval(values, weights=weights) for c, (values, weights) in columns.items()}
    numbers["scores"] = {
        c: _rounded(found, ("mean", "low", "high"), 2) for c, found in intervals.items()
    }
    numbers["words"] = round(float(np.mean([part["words"] for part in parts])), 1)
    if table.decodings:
        repeated, trigrams = column_values("repetition", parts, "repeated")
        numbers["repeated"] = round(repeated.sum() / max(trigrams.sum(), 1), 1)
    if row.is_run:
        numbers["by seed"] = {
            c: [round(interval(v, weights=w).mean, 2) for v, w in zip(values, weights)]
            for c, (values, weights) in columns.items()
        }
        numbers |= {key: scored[0][key] for key in ("parameters", "steps", "made_with")}
        numbers["seeds"] = [scores["seed"] for scores in scored]
    return numbers


def _pair(table: Table, first: list[dict], second: list[dict]) -> dict:
    differences = {}
    for column in table.columns:
        (a, a_weights), (b, b_weights) = (
            column_values(table.measure, parts, column) for parts in (first, second)
        )
        found = paired_bootstrap(a, b, weights=(a_weights, b_weights))
        differences[column] = _rounded(found, ("mean", "low", "high", "p"), 4)
    return differences


def _rounded(result: Any, names: Sequence[str], digits: int) -> dict:
    return {name: round(float(getattr(result, name)), digits) for name in names}


def support_table(scored: Mapping[str, dict], corpus: str, command: str = "") -> dict:
    """Make a table of what is not in the text: a row for each system, one for the references, and
    all differences.

    scored: the scores of each system, by label. Raises InputError when they are of different
    documents.
    """
    rows = [Row(label, part="summaries") for label in scored]
    rows.append(Row(REFERENCES, part="reference"))
    pairs = tuple(combinations([row.label for row in rows], 2))
    table = Table(
        "",
        "What summaries have and their texts do not, in percent",
        tuple(rows),
        pairs,
        measure="support",
    )
    by_row = {label: [scores] for label, scores in scored.items()}
    by_row[REFERENCES] = [next(iter(scored.values()))]
    return {"table": "support_table", **table_numbers(table, by_row, corpus, "", command)}


def page_table(name: str, figure: dict, preset_name: str) -> dict:
    """Make a table of a figure of lines that a page saved: a row a line, a column a place."""
    table = PAGE_RESULTS[one_of(name, PAGE_RESULTS, "table")]
    series = figure["panels"][0]["series"]
    places, _ = next(iter(series.values()))
    lines = {label: values for label, (_, values) in series.items()}
    return {
        "table": name,
        "title": table.title,
        "preset": preset_name,
        "columns": [f"{x:,}" for x in places],
        "lines": lines | {label: list(values) for label, values in table.published.items()},
    }
