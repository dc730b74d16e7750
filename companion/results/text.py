"""Tables of numbers (`companion.results.numbers`) to be read: as frames for a page, as Markdown for a text."""

import re

import pandas as pd

from lib.evaluation.bootstrap import Difference, Interval, no_interval
from lib.papers import table_named
from lib.papers.tables import DECODINGS

_FOLD = "<details><summary>Which differences are real (paired bootstrap)</summary>"


def table_frame(numbers: dict) -> pd.DataFrame:
    """A table as `make_table` or `page_table` made it, for a page: our rows with intervals, published ones beside."""
    if "lines" in numbers:
        frame = pd.DataFrame.from_dict(numbers["lines"], orient="index", columns=numbers["columns"])
        return frame.loc[:, [c for c in frame if c != "distinct" or set(frame[c]) != {"100%"}]]
    columns = _columns(numbers)
    rows, shown_corpus = {}, _published_corpus(numbers)
    for row in numbers["rows"]:
        corpus = shown_corpus if shown_corpus in row["published"] else next(iter(row["published"]), shown_corpus)
        published = " / ".join(f"{v:.2f}" for v in row["published"].get(corpus, ()))
        scores = row.get("scores", {})
        shown = {c: str(Interval(**scores[c], count=numbers["documents"])) for c in columns if c in scores}
        rows[row["label"]] = {
            **(shown or dict.fromkeys(columns, "" if "missing" in row else "not built")),
            **({columns[0]: row["missing"]} if "missing" in row else {}),
            "words": f"{row['words']:.0f}" if "words" in row else "",
            **({"repeated": f"{row['repeated']:.0f}%"} if "repeated" in row else {}),
            "published": published + f" ({corpus})" * (corpus != shown_corpus),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    return frame.loc[:, (frame != "").any()]


def _columns(numbers: dict) -> list[str]:
    """The columns that say something: `distinct` does not where no summary is another document's as well."""
    scores = [row.get("scores", {}) for row in numbers["rows"]]
    alike = any(one["distinct"]["mean"] < 100 for one in scores if "distinct" in one)
    return [column for column in numbers["columns"] if column != "distinct" or alike]


def _published_corpus(numbers: dict) -> str:
    """The corpus whose published numbers stand beside ours: the same one, or the first that the paper has."""
    reported = next((row["published"] for row in numbers["rows"] if row["published"]), {})
    return numbers["corpus"] if numbers["corpus"] in reported else next(iter(reported), "")


def without_published(numbers: dict) -> dict:
    """A table for a page that shows the published numbers elsewhere."""
    return {**numbers, "rows": [{**row, "published": {}} for row in numbers["rows"]]}


def published_table(name: str) -> pd.DataFrame:
    """The numbers that the paper reports in a table, corpus by corpus."""
    _, table = table_named(name)
    corpora = dict.fromkeys(corpus for row in table.rows for corpus in row.published)
    rouge = ("R-1", "R-2", f"R-L, {table.published_rl}")
    columns = table.columns if table.measure == "copied" else rouge
    rows = {
        row.label: [v for c in corpora for v in row.published.get(c, [None] * len(columns))]
        for row in table.rows
        if row.published
    }
    index = pd.MultiIndex.from_product([corpora, columns]) if len(corpora) > 1 else list(columns)
    return pd.DataFrame.from_dict(rows, orient="index").set_axis(index, axis=1)


def pairs_frame(numbers: dict) -> pd.DataFrame:
    """Differences between rows, to see which are real: 95% interval of each, and p of a paired bootstrap."""
    return pd.DataFrame.from_dict(
        {
            _difference(pair["first"], pair["second"]): {
                c: str(Difference(**pair[c], count=numbers["documents"]))
                for c in numbers["columns"]
                if c not in ("repeated", "distinct")
            }
            for pair in numbers["pairs"]
        },
        orient="index",
    )


def _difference(first: str, second: str) -> str:
    """Both rows by name; how both decode once, at the end."""
    of_both = next((f", {how}" for how in DECODINGS if first.endswith(how) and second.endswith(how)), "")
    return f"{second.removesuffix(of_both)} - {first}"


def setting(numbers: dict) -> str:
    """One sentence on how the numbers came about."""
    if "lines" in numbers:
        return f"Measured by the page at preset `{numbers['preset']}`." if "preset" in numbers else ""
    runs = [row for row in numbers["rows"] if "seeds" in row]
    seeds, steps = (_either({f(row) for row in runs}) for f in (lambda r: len(r["seeds"]), lambda r: r["steps"]))
    sizes = sorted({row["parameters"] for row in runs})
    read = f"{numbers['training documents']:,} documents to train on, " if runs else ""
    size = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))) if runs else ""
    trained = f"preset `{numbers['preset']}`, {size} parameters, {steps} steps, seeds: {seeds}; " if runs else ""
    interval = f"95% bootstrap interval over documents{' and seeds' if runs else ''}"
    interval = "too few documents for an interval" if no_interval(numbers["documents"]) else interval
    published = _published_corpus(numbers)
    level = table_named(numbers["table"])[1].published_rl if published else ""
    return (
        f"`{numbers['corpus']}`, {read}"
        f"{numbers['documents']:,} of its {numbers['split']} split scored; {trained}"
        + f"{interval}."
        + (f" Words are of {numbers['letters']}." if "letters" in numbers else "")
        + (f" {numbers['decoding'].capitalize()}, unless a row says otherwise." if "decoding" in numbers else "")
        + (f" Runs write {numbers['written']}." if "written" in numbers else "")
        + (" R-Lsum is summary-level." if "R-Lsum" in numbers["columns"] else "")
        + (" R-L is of one line each." if {"R-L", "R-Lsum"} <= set(numbers["columns"]) else "")
        + (
            f" Published: {published}" + (f", its R-L {level}." if numbers["columns"][0] == "R-1" else ".")
            if published
            else ""
        )
    )


def _either(values: set[int]) -> str:
    return " or ".join(f"{n:,}" for n in sorted(values))


def markdown(numbers: dict) -> str:
    """A table, its setting and its comparisons, as they are shown."""
    parts = [f"**{numbers['title']}.** {setting(numbers)}".rstrip(), _grid(table_frame(numbers), "")]
    if numbers.get("pairs"):
        parts += [_FOLD, _grid(pairs_frame(numbers), "difference"), "</details>"]
    if numbers.get("command"):
        parts.append(f"Made by `{numbers['command']}`.")
    return "\n\n".join(parts)


def _grid(frame: pd.DataFrame, corner: str) -> str:
    lines = [[corner, *map(str, frame.columns)], ["---"] * (1 + len(frame.columns))]
    lines += [[re.sub(r"^\+[^,]*", r"`\g<0>`", name), *map(str, row)] for name, row in zip(frame.index, frame.values)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
