"""Tables of numbers (`companion.results.numbers`) to read: as frames for a page, as Markdown for a
text."""

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from companion.results.tables import TABLES
from lib.decoding.config import DECODINGS
from lib.evaluation.bootstrap import Difference, Interval

_FOLD = "<details><summary>Which differences are real (paired bootstrap)</summary>"


def table_frame(numbers: dict) -> pd.DataFrame:
    """Make the frame of a table: our rows with intervals, and published numbers beside them."""
    if "lines" in numbers:
        frame = pd.DataFrame.from_dict(numbers["lines"], orient="index", columns=numbers["columns"])
        return frame.loc[:, [c for c in frame if c != "distinct" or set(frame[c]) != {"100%"}]]
    columns, shown_corpus = _columns(numbers), _published_corpus(numbers)
    rows = {}
    for row in numbers["rows"]:
        corpus = (
            shown_corpus
            if shown_corpus in row["published"]
            else next(iter(row["published"]), shown_corpus)
        )
        published = " / ".join(f"{v:.2f}" for v in row["published"].get(corpus, ()))
        scores = row.get("scores", {})
        cells = {
            c: str(Interval(**scores[c], count=numbers["documents"]))
            for c in columns
            if c in scores
        }
        if not cells:
            cells = dict.fromkeys(columns, "" if "missing" in row else "not built")
        if "missing" in row:
            cells[columns[0]] = row["missing"]
        cells["words"] = f"{row['words']:.0f}" if "words" in row else ""
        if "repeated" in row:  # otherwise the table has it as a column with an interval
            cells["repeated"] = f"{row['repeated']:.0f}%"
        cells["published"] = published + f" ({corpus})" * (
            bool(published) and corpus != shown_corpus
        )
        rows[row["label"]] = cells
    frame = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    return frame.loc[:, (frame != "").any()]


def _columns(numbers: dict) -> list[str]:
    """Choose the columns to show: `distinct` only if two documents have the same summary."""
    scores = [row.get("scores", {}) for row in numbers["rows"]]
    alike = any(one["distinct"]["mean"] < 100 for one in scores if "distinct" in one)
    return [column for column in numbers["columns"] if column != "distinct" or alike]


def _published_corpus(numbers: dict) -> str:
    """Choose the corpus whose published numbers are shown: ours, or the first one of the paper."""
    reported = next((row["published"] for row in numbers["rows"] if row["published"]), {})
    return numbers["corpus"] if numbers["corpus"] in reported else next(iter(reported), "")


def pairs_frame(numbers: dict) -> pd.DataFrame:
    """Make the frame of differences between rows: the 95% interval of each, and p of a paired
    bootstrap."""
    columns = [c for c in numbers["columns"] if c not in ("repeated", "distinct")]
    rows = {
        _difference(pair["first"], pair["second"]): {
            c: str(Difference(**pair[c], count=numbers["documents"])) for c in columns
        }
        for pair in numbers["pairs"]
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _difference(first: str, second: str) -> str:
    """Name both rows; a decoding that they share comes once, at the end."""
    shared = next(
        (f", {how}" for how in DECODINGS if first.endswith(how) and second.endswith(how)), ""
    )
    return f"{second.removesuffix(shared)} - {first}"


def setting(numbers: dict) -> str:
    """List how the numbers came about, as "name: value; name: value"."""
    if "lines" in numbers:
        return (
            f"Measured by the page at preset `{numbers['preset']}`." if "preset" in numbers else ""
        )
    runs = [row for row in numbers["rows"] if "seeds" in row]
    published, columns = _published_corpus(numbers), numbers["columns"]
    facts = {
        "corpus": f"`{numbers['corpus']}`",
        "scored": f"{numbers['documents']:,} {numbers['split']} documents",
        "training documents": f"{numbers['training documents']:,}" if runs else "",
        "preset": f"`{numbers['preset']}`" if runs else "",
        "parameters": _values({row["parameters"] for row in runs}, " to "),
        "steps": _values({row["steps"] for row in runs}, " or "),
        "seeds": _values({len(row["seeds"]) for row in runs}, " or "),
        "decoding": numbers.get("decoding"),
        "length": numbers.get("written"),
        "words are": numbers.get("letters"),
        "R-L": "in one line" if {"R-L", "R-Lsum"} <= set(columns) else "",
        "published": published,
        "published R-L": TABLES[numbers["table"]].published_rl
        if published and columns[0] == "R-1"
        else "",
    }
    return "; ".join(f"{name}: {value}" for name, value in facts.items() if value)


def _values(values: set[int], between: str) -> str:
    """Write the smallest and the largest value, or one value if they are equal."""
    return between.join(f"{n:,}" for n in sorted(values)[:: max(1, len(values) - 1)])


def markdown(numbers: dict) -> str:
    """Write a table, its setting and its comparisons."""
    parts = [
        f"**{numbers['title']}.** {setting(numbers)}".rstrip(),
        _grid(table_frame(numbers), ""),
    ]
    if numbers.get("pairs"):
        parts += [_FOLD, _grid(pairs_frame(numbers), "difference"), "</details>"]
    if numbers.get("command"):
        parts.append(f"Made by `{numbers['command']}`.")
    text, table = "\n\n".join(parts), TABLES.get(numbers["table"])
    for size, words in (
        table.words.get(f"{numbers['corpus']} {numbers['preset']}", {}).items() if table else ()
    ):
        text = text.replace(f", {size}", f", {words} words")  # in the labels of rows
    return text


def _grid(frame: pd.DataFrame, corner: str) -> str:
    # Markdown takes a "+" that begins a cell for a list.
    names = [re.sub(r"^\+[^,]*", r"`\g<0>`", name) for name in frame.index]
    return markdown_table(
        [corner, *frame.columns], [[name, *row] for name, row in zip(names, frame.values)]
    )


def markdown_table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Write a Markdown table; cells may be anything that has a text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
