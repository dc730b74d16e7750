"""The papers' result tables as plain numbers, made of scores (`lib.evaluation.scores`) or of a page's figure of lines:
intervals over documents and seeds, and a paired bootstrap for each pair of rows that a table compares."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.scores import column_values
from lib.papers import page_table_named, table_named
from lib.papers.tables import DECODINGS, Row, Table
from lib.system.errors import InputError

ANY_TABLE = ("table", "title", "columns")  # what the numbers of every table have


def make_table(name: str, scored: dict[str, list[dict]], corpus: str, preset_name: str, command: str = "") -> dict:
    """A table in plain numbers: intervals over documents and seeds, and a paired bootstrap for each of its pairs.

    scored: for each row that is built, by label, the scores of its seeds (of a baseline: one).
    Raises ValueError when rows were scored on different documents.
    """
    return {"table": name, **table_numbers(table_named(name)[1], scored, corpus, preset_name, command)}


def table_numbers(
    table: Table, scored: dict[str, list[dict]], corpus: str, preset_name: str, command: str = ""
) -> dict:
    """The numbers of any table; its scores have the parts that its rows name."""
    rows = [r for r in table.rows_for(corpus) if r.label in scored or not r.part or corpus in r.missing]
    pairs = table.pairs
    if table.decodings:
        rows, pairs, scored = _in_both_decodings(rows, pairs, scored)
    parts = {r.label: [s["parts"][r.part] for s in scored[r.label]] for r in rows if r.label in scored}
    every = [s for seeds in scored.values() for s in seeds]
    if different := {s.get("corpus", "unnamed") for s in every if s["ids"] != every[0]["ids"]}:
        where = ", ".join(sorted(different))
        raise InputError(f"{table.title}: not all rows were scored on the same documents: {where}")
    usual = next((s["decoding"] for s in every if table.decodings and DECODINGS.keys() & s["parts"]), "")
    return {
        "title": table.title,
        "corpus": corpus,
        "preset": preset_name,
        "split": every[0]["split"],
        "documents": len(every[0]["ids"]),
        "training documents": every[0]["training documents"],
        **({"letters": letters} if (letters := every[0].get("letters")) else {}),
        **({"decoding": usual} if usual else {}),
        **({"written": written} if (written := next(filter(None, (s.get("written") for s in every)), "")) else {}),
        "columns": list(table.columns),
        "command": command,
        "rows": [_table_row(r, table, corpus, scored.get(r.label, []), parts.get(r.label)) for r in rows],
        "pairs": [
            {"first": a, "second": b, **_pair(table, parts[a], parts[b])}
            for a, b in pairs
            if a in parts and b in parts
        ],
    }


def _in_both_decodings(
    rows: list[Row], pairs: tuple[tuple[str, str], ...], scored: dict[str, list[dict]]
) -> tuple[list[Row], tuple[tuple[str, str], ...], dict[str, list[dict]]]:
    """Add after each row of a run's summaries one of the same run in the other decoding; such rows are compared
    too."""
    expanded, of_both, others = [], dict(scored), {}
    for row in rows:
        expanded.append(row)
        for how in DECODINGS if row.part == "summaries" and row.label in scored else ():
            if all(how in s["parts"] for s in scored[row.label]):
                others[row.label] = other = f"{row.label}, {how}"
                expanded.append(replace(row, label=other, part=how, published={}))
                of_both[other] = scored[row.label]
    return expanded, (*pairs, *((others[a], others[b]) for a, b in pairs if a in others and b in others)), of_both


def _table_row(row: Row, table: Table, corpus: str, scored: list[dict], parts: list[dict] | None) -> dict:
    numbers: dict[str, Any] = {"label": row.label, "published": {name: list(v) for name, v in row.published.items()}}
    if not parts:
        return numbers | ({"missing": row.reason(corpus)} if row.reason(corpus) else {})
    columns = {c: column_values(table.measure, parts, c) for c in table.columns}
    numbers["scores"] = {c: _plain(interval(v, weights=w), "mean", "low", "high") for c, (v, w) in columns.items()}
    numbers["words"] = round(float(np.mean([part["words"] for part in parts])), 1)
    if table.decodings:
        numbers["repeated"] = round(_repeated(parts), 1)
    if row.run:
        numbers["by seed"] = {c: [round(interval(v[i], weights=w[i]).mean, 2) for i in range(len(v))]
                              for c, (v, w) in columns.items()}  # fmt: skip
        numbers |= {key: scored[0][key] for key in ("parameters", "steps", "made_with")}
        numbers["seeds"] = [s["seed"] for s in scored]
    return numbers


def _repeated(parts: list[dict]) -> float:
    """Percent of the trigrams that the summary has said before."""
    repeated, every = column_values("repetition", parts, "repeated")
    return repeated.sum() / max(every.sum(), 1)


def _pair(table: Table, first: list[dict], second: list[dict]) -> dict:
    differences = {}
    for column in table.columns:
        (a, wa), (b, wb) = (column_values(table.measure, parts, column) for parts in (first, second))
        found = paired_bootstrap(a, b, weights=(wa, wb))
        differences[column] = _plain(found, "mean", "low", "high", "p", digits=4)
    return differences


def _plain(result: Any, *names: str, digits: int = 2) -> dict:
    return {name: round(float(getattr(result, name)), digits) for name in names}


def support_table(scored: Mapping[str, dict], corpus: str, command: str = "") -> dict:
    """A table of what is not in the text: a row for each system by its label, and one for the references; all
    differences between two of them.

    scored: the scores of each system. Raises ValueError when they are of different documents.
    """
    rows = [Row(label, part="summaries") for label in scored]
    rows.append(Row(REFERENCES, part="reference"))
    pairs = tuple(combinations([row.label for row in rows], 2))
    table = Table("What summaries have and their texts do not, in percent", tuple(rows), pairs, measure="support")
    every = {label: [scores] for label, scores in scored.items()}
    every[REFERENCES] = [next(iter(scored.values()))]
    return {"table": "support_table", **table_numbers(table, every, corpus, "", command)}


REFERENCES = "references"


def page_table(name: str, figure: dict, preset_name: str) -> dict:
    """A table that a page saved as a figure of lines: a row a line, a column a place."""
    _, table = page_table_named(name)
    series = figure["panels"][0]["series"]
    return {
        "table": name,
        "title": table.title,
        "preset": preset_name,
        "columns": [f"{x:,}" for x in next(iter(series.values()))[0]],
        "lines": {
            **{label: y for label, (_, y) in series.items()},
            **{k: list(v) for k, v in table.published.items()},
        },
    }
