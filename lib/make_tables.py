"""The papers' result tables, made of scores: intervals, comparisons, and the published rows beside.

    python -m lib.make_tables table mem2mem_table2 --corpus aclsum --output T.json hred=a/scores.json ...
    python -m lib.make_tables table mem2mem_table2 --corpus aclsum --output U.json --add-to T.scores.json.gz ...
    python -m lib.make_tables page read_again_table4 --figure runs/figures/read_again_seconds.json --output T.json
    python -m lib.make_tables keep T.json          # into figures/, and papers.md or README.md
    python -m lib.make_tables render               # papers.md and README.md again, from the tables in figures/

`workflow/Snakefile` makes the runs and the scores (`lib.score_runs`) and calls these. Beside a table stands what
it was made of (`lib.table_scores`).
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.bootstrap import interval, paired_bootstrap
from lib.commands import check_replaces, plain_errors
from lib.measures import MEASURES
from lib.papers import page_table_named, table_named
from lib.papers.paper import DECODINGS, Row, Table
from lib.storage import check_keys, project_root, read_numbers, trained_folder, write_json, write_whole
from lib.suggestions import did_you_mean
from lib.table_scores import SCORES, read_table_scores, row_parts, write_table_scores

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
    """The same for any table; its scores have the parts that its rows name."""
    rows = [r for r in table.rows_for(corpus) if r.label in scored or not r.part or corpus in r.missing]
    pairs = table.pairs
    if table.decodings:
        rows, pairs, scored = _in_both_decodings(rows, pairs, scored)
    parts = {r.label: [s["parts"][r.part] for s in scored[r.label]] for r in rows if r.label in scored}
    every = [s for found in scored.values() for s in found]
    if different := {s.get("corpus", "unnamed") for s in every if s["ids"] != every[0]["ids"]}:
        where = ", ".join(sorted(different))
        raise ValueError(f"{table.title}: not all rows were scored on the same documents: {where}")
    usual = next((s["decoding"] for s in every if table.decodings and DECODINGS.keys() & s["parts"]), "")
    return {
        "title": table.title,
        "corpus": corpus,
        "preset": preset_name,
        "split": every[0]["split"],
        "documents": len(every[0]["ids"]),
        "training documents": every[0]["training documents"],
        **({"decoding": usual} if usual else {}),
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
    """Behind each row of a run's summaries one of the same run in the other decoding; such rows are compared too."""
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
    made: dict[str, Any] = {"label": row.label, "published": {name: list(v) for name, v in row.published.items()}}
    if not parts:
        return made | ({"missing": row.reason(corpus)} if row.reason(corpus) else {})
    columns = {c: _column(table.measure, parts, c) for c in table.columns}
    made["scores"] = {c: _plain(vars(interval(v, weights=w))) for c, (v, w) in columns.items()}
    made["words"] = round(float(np.mean([part["words"] for part in parts])), 1)
    if table.decodings:
        made["repeated"] = round(_repeated(parts), 1)
    if row.run:
        made["by seed"] = {c: [round(interval(v[i], weights=w[i]).mean, 2) for i in range(len(v))]
                           for c, (v, w) in columns.items()}  # fmt: skip
        made |= {key: scored[0][key] for key in ("parameters", "steps", "made_with")}
        made["seeds"] = [s["seed"] for s in scored]
    return made


def _repeated(parts: list[dict]) -> float:
    """Percent of the trigrams that the summary has said before."""
    repeated, every = _column("repetition", parts, "repeated")
    return repeated.sum() / max(every.sum(), 1)


def _pair(table: Table, first: list[dict], second: list[dict]) -> dict:
    found = {}
    for column in table.columns:
        (a, wa), (b, wb) = (_column(table.measure, parts, column) for parts in (first, second))
        found[column] = _plain(vars(paired_bootstrap(a, b, weights=(wa, wb))), digits=4)
    return found


def _column(measure: str, parts: list[dict], column: str) -> np.ndarray:
    """Values and weights of a column of a measure: [2, runs, documents]."""
    number = MEASURES[measure].columns.index(column)
    return np.stack([MEASURES[measure].numbers(part)[:, number] for part in parts], 1)


def _plain(values: dict, digits: int = 2) -> dict:
    return {key: round(float(value), digits) for key, value in values.items()}


def page_table(name: str, figure: dict, preset_name: str) -> dict:
    """A table that a page kept as a figure of lines: a row a line, a column a place."""
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


# ------------------------------------------------------------------------------------------------ to be read


def table_frame(numbers: dict) -> pd.DataFrame:
    """A table as `make_table` or `page_table` made it, for a page: our rows with intervals, published ones beside."""
    columns = numbers["columns"]
    if "lines" in numbers:
        return pd.DataFrame.from_dict(numbers["lines"], orient="index", columns=columns)
    rows, shown_corpus = {}, _published_corpus(numbers)
    for row in numbers["rows"]:
        corpus = shown_corpus if shown_corpus in row["published"] else next(iter(row["published"]), shown_corpus)
        published = " / ".join(f"{v:.2f}" for v in row["published"].get(corpus, ()))
        scores = row.get("scores", {})
        shown = {c: f"{s['mean']:.2f} [{s['low']:.2f}, {s['high']:.2f}]" for c, s in scores.items()}
        rows[row["label"]] = {
            "parameters": f"{row['parameters']:,}" if "parameters" in row else "",
            **(shown or dict.fromkeys(columns, "" if "missing" in row else "not built")),
            **({columns[0]: row["missing"]} if "missing" in row else {}),
            "words": f"{row['words']:.0f}" if "words" in row else "",
            **({"repeated": f"{row['repeated']:.0f}%"} if "repeated" in row else {}),
            "published": published + f" ({corpus})" * (corpus != shown_corpus),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    return frame.loc[:, (frame != "").any()]


def _published_corpus(numbers: dict) -> str:
    """The corpus whose published numbers stand beside ours: the same one, or the first that the paper has."""
    reported = next((row["published"] for row in numbers["rows"] if row["published"]), {})
    return numbers["corpus"] if numbers["corpus"] in reported else next(iter(reported), "")


def published_table(name: str) -> pd.DataFrame:
    """What the paper reports in a table, corpus by corpus."""
    _, table = table_named(name)
    corpora = dict.fromkeys(corpus for row in table.rows for corpus in row.published)
    columns = ("R-1", "R-2", "R-L") if table.measure == "rouge" else table.columns
    rows = {
        row.label: [v for c in corpora for v in row.published.get(c, [None] * len(columns))]
        for row in table.rows
        if row.published
    }
    index = pd.MultiIndex.from_product([corpora, columns]) if len(corpora) > 1 else list(columns)
    return pd.DataFrame.from_dict(rows, orient="index").set_axis(index, axis=1)


def pairs_frame(numbers: dict) -> pd.DataFrame:
    """Which differences are real: 95% interval of each, and p of a paired bootstrap."""
    return pd.DataFrame.from_dict(
        {
            f"{pair['second']} - {pair['first']}": {
                c: f"{d['mean']:+.2f} [{d['low']:+.2f}, {d['high']:+.2f}], p {_p(d['p'])}"
                for c, d in ((c, pair[c]) for c in numbers["columns"])
            }
            for pair in numbers["pairs"]
        },
        orient="index",
    )


def _p(p: float) -> str:
    return "< 0.01" if p < 0.01 else f"{p:.2f}"


def setting(numbers: dict) -> str:
    """One sentence on how the numbers came about."""
    if "lines" in numbers:
        return f"Measured by the page at preset `{numbers['preset']}`." if "preset" in numbers else ""
    runs = [row for row in numbers["rows"] if "seeds" in row]
    seeds, steps = (_either({f(row) for row in runs}) for f in (lambda r: len(r["seeds"]), lambda r: r["steps"]))
    read = f"{numbers['training documents']:,} documents to train on, " if runs else ""
    trained = f"preset `{numbers['preset']}`, {steps} steps, seeds: {seeds}; " if runs else ""
    published = _published_corpus(numbers)
    return (
        f"`{numbers['corpus']}`, {read}"
        f"{numbers['documents']:,} of its {numbers['split']} split scored; {trained}"
        f"95% bootstrap interval over documents{' and seeds' if runs else ''}."
        + (f" {numbers['decoding'].capitalize()}, unless a row says otherwise." if "decoding" in numbers else "")
        + (f" Published: {published}." if published else "")
    )


def _either(values: set[int]) -> str:
    return " or ".join(f"{n:,}" for n in sorted(values))


def markdown(numbers: dict) -> str:
    """A table, its setting and its comparisons, as they are shown."""
    parts = [f"**{numbers['title']}.** {setting(numbers)}".rstrip(), _grid(table_frame(numbers), "")]
    if numbers.get("pairs"):
        parts += ["Which differences are real (paired bootstrap):", _grid(pairs_frame(numbers), "difference")]
    if numbers.get("command"):
        parts.append(f"Made by `{numbers['command']}`.")
    return "\n\n".join(parts)


def _grid(frame: pd.DataFrame, corner: str) -> str:
    lines = [[corner, *map(str, frame.columns)], ["---"] * (1 + len(frame.columns))]
    lines += [[re.sub(r"^\+[^,]*", r"`\g<0>`", name), *map(str, row)] for name, row in zip(frame.index, frame.values)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---------------------------------------------------------------------------------------------------- kept tables

_BLOCK = "<!-- table {} -->\n{}\n<!-- end -->"


def shown_in() -> list[str]:
    """The files that show tables: the texts of the project, and the cards of its trained runs."""
    cards = sorted((project_root() / "trained").glob("*/README.md"))
    return ["papers.md", "README.md", *(str(path.relative_to(project_root())) for path in cards)]


def keep(path: Path, size: str = "") -> Path:
    """Put a table into figures/ and where it is shown. Raises ValueError for a file that is no table or has no place.

    size: at the end of its name, where the same table of the same corpus is kept in several.
    """
    numbers = read_numbers(path, "table", ANY_TABLE)
    if "lines" not in numbers:
        check_keys(numbers, path, "table", ("rows", "corpus", "split", "documents"))
    name = "_".join(filter(None, (numbers["table"], numbers.get("corpus"), size)))
    if not any(_place(name).search(text) for text in _texts().values()):
        files = " and ".join(shown_in())
        raise ValueError(f"{files} have no place for {name}: put {_BLOCK.format(name, '')!r} where it should stand")
    kept = project_root() / "figures" / f"{name}.json"
    write_json(kept, numbers)
    _keep_scores(path.with_suffix(SCORES), kept.parent / "scores" / f"{name}{SCORES}")
    render()
    return kept


def _keep_scores(made: Path, kept: Path) -> None:
    """Where there are none, those of the table that was kept before are no longer its own."""
    if made.is_file():
        write_whole(kept, made.read_bytes())
    else:
        kept.unlink(missing_ok=True)


def render() -> list[str]:
    """Every kept table where it is shown, written anew from its numbers. Returns the tables' names."""
    tables = kept_tables()
    for file, text in _texts().items():
        if (rendered := _rendered(text, tables)) != text:
            write_whole(project_root() / file, rendered)
    return list(tables)


def kept_tables() -> dict[str, dict]:
    """The tables in figures/, and those of the trained runs (`trained_NAME`), by name."""
    root = project_root()
    names = [path.stem for path in sorted((root / "figures").glob("*_table*.json"))]
    names += [f"trained_{path.parent.name}" for path in sorted((root / "trained").glob("*/table.json"))]
    found = {name: kept_table(name) for name in names}
    return {name: numbers for name, numbers in found.items() if "table" in numbers}


def kept_table(name: str) -> dict:
    of = name.removeprefix("trained_")
    path = project_root() / "figures" / f"{name}.json" if of == name else trained_folder(of) / "table.json"
    return read_numbers(path, "table", ())


def _texts() -> dict[str, str]:
    return {file: (project_root() / file).read_text(encoding="utf-8") for file in shown_in()}


def _place(name: str) -> re.Pattern:
    begin, end = _BLOCK.format(re.escape(name), "|").split("|\n")
    return re.compile(f"{begin}(?:.*?\n)??{end}", re.DOTALL)  # also an empty one


def _rendered(text: str, tables: dict[str, dict]) -> str:
    """A text with every table that has a place in it."""
    for name, numbers in tables.items():
        block = _BLOCK.format(name, markdown(numbers))
        text = _place(name).sub(lambda _, block=block: block, text, count=1)
    return text


# --------------------------------------------------------------------------------------------------- command line


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lib.make_tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("table", help="a table of a paper from scores")
    table.add_argument("name")
    table.add_argument("scores", nargs="+", metavar="LABEL=FILE", help="one for each row and seed")
    table.add_argument("--add-to", type=Path, metavar=f"T{SCORES}", help="scores of a table: one with these")
    table.add_argument("--corpus", required=True)
    table.add_argument("--made-by", default="", help="the command that makes the table, for the record")
    page = commands.add_parser("page", help="a table of a paper from a page's figure")
    page.add_argument("name")
    page.add_argument("--figure", required=True, type=Path, help="the figure's numbers")
    for command in (table, page):
        command.add_argument("--preset", default="demo")
        command.add_argument(
            "--output", required=True, type=Path, help="NAME.json; NAME.md stands beside it, and its scores"
        )
    kept = commands.add_parser("keep", help="put tables into figures/, and papers.md or README.md")
    kept.add_argument("tables", nargs="+", type=Path)
    kept.add_argument("--size", default="", metavar="NAME", help="kept as TABLE_CORPUS_NAME, beside TABLE_CORPUS")
    commands.add_parser("render", help="write the kept tables into papers.md and README.md again")
    args = parser.parse_args(arguments)
    with plain_errors():
        {"table": _table, "page": _page, "keep": _keep, "render": _render}[args.command](args)


def _table(args: argparse.Namespace) -> None:
    _check_output(args.output)
    table, scored = table_named(args.name)[1], {}
    for given, label, path, scores in _given_scores(args):
        row = _placed(given, label, table, args)
        scores = read_numbers(path, "scores", ()) if scores is None else scores
        _check_scores(scores, path, table, row, first=not scored)
        every = scored.setdefault(label, [])
        if any(s.get("seed") == scores.get("seed") for s in every):
            seed = f" with seed {scores['seed']}" if row.run else ""
            raise ValueError(f"{given!r}: there are scores of {label}{seed} already")
        every.append(scores)
    numbers = make_table(args.name, scored, args.corpus, args.preset, args.made_by)
    _write_table(args.output, numbers)
    write_table_scores(args.output.with_suffix(SCORES), table, scored)


def _given_scores(args: argparse.Namespace) -> Iterator[tuple[str, str, Path, dict | None]]:
    """How scores were given, their row's label, their file, and the scores themselves where they have been read."""
    for label, every in (read_table_scores(args.add_to) if args.add_to else {}).items():
        yield from ((f"{label}={args.add_to}", label, args.add_to, scores) for scores in every)
    for given in args.scores:
        label, _, path = given.rpartition("=")
        yield given, label, Path(path), None


def _placed(given: str, label: str, table: Table, args: argparse.Namespace) -> Row:
    """The row of a label. Raises ValueError where the table has none for scores on this corpus."""
    labels = [row.label for row in table.rows]
    if label not in labels:
        raise ValueError(f"{given!r}: scores are LABEL=FILE, and {label!r} is no row{did_you_mean(label, labels)}")
    placed = {row.label: row for row in table.rows_for(args.corpus) if row.part}
    if label not in placed:
        rows = ", ".join(placed)
        raise ValueError(f"{given!r}: {args.name} has no place for it on {args.corpus}. Its rows there: {rows}")
    return placed[label]


def _page(args: argparse.Namespace) -> None:
    _check_output(args.output)
    figure = _read_lines(args.figure, max(map(len, page_table_named(args.name)[1].published.values()), default=0))
    _write_table(args.output, page_table(args.name, figure, args.preset))


def _check_scores(scores: dict, path: Path, table: Table, row: Row, first: bool) -> None:
    """Raises ValueError unless a row of a table can be made of them; the `first` ones say on what."""
    setting = ("split", "training documents") if first else ()
    of_run = ("seed", "steps", "parameters", "made_with") if row.run else ()
    check_keys(scores, path, "scores", ("ids", "parts", *setting, *of_run))
    if not isinstance(scores["parts"], dict) or row.part not in scores["parts"]:
        raise ValueError(f"{path}: no scores of {row.part!r}, which the row {row.label!r} is made of")
    both = row_parts(row, table) & DECODINGS.keys() & scores["parts"].keys()
    if both and scores.get("decoding") not in DECODINGS:
        raise ValueError(f"{path}: scores of {' and '.join(both)}, and 'decoding' does not say what the others are")
    for part in (row.part, *both):
        _check_part(scores["parts"][part], table, f"{path}, part {part!r}")


def _check_part(part: Any, table: Table, where: str) -> None:
    """Raises ValueError unless a table's columns can be made of one system's scores."""
    for measure in (table.measure, *(["repetition"] if table.decodings else [])):
        try:
            float(part["words"]), MEASURES[measure].numbers(part)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise ValueError(f"{where}: not what lib.score writes for a table of {measure}") from None


def _read_lines(path: Path, least: int) -> dict:
    """A figure of lines over the same places, as many as are published or more. Raises ValueError for another one."""
    figure = read_numbers(path, "figure of lines", ("panels",))
    try:
        lines = figure["panels"][0]["series"].values()
        found = [list(map(float, of)) for places, values in lines for of in (places, values)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        found = []
    if len({len(numbers) for numbers in found}) != 1:
        raise ValueError(f"{path}: no figure of lines: its first panel has no series of [places, values] each")
    if len(found[0]) < least:
        raise ValueError(f"{path}: lines of {len(found[0])} places, where {least} are published")
    return figure


def _check_output(path: Path) -> None:
    """Raises ValueError or OSError where a table or what stands beside it cannot be written."""
    beside = {"Markdown": path.with_suffix(".md"), "scores": path.with_suffix(SCORES)}
    check_replaces(path, "table", ANY_TABLE, beside)


def _write_table(path: Path, numbers: dict) -> None:
    text = markdown(numbers)
    write_json(path, numbers)  # first: what stands beside no table is not ours (`_check_output`)
    write_whole(path.with_suffix(".md"), text + "\n")
    print(text)


def _keep(args: argparse.Namespace) -> None:
    for path in args.tables:
        print(keep(path, args.size))


def _render(args: argparse.Namespace) -> None:
    print(*render(), sep="\n")


if __name__ == "__main__":
    main()
