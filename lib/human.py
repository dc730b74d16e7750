"""People judge summaries: blinded sheets to fill in, and what they say in numbers (Liu and Lapata 2019, section 5).

    python -m lib.human sheet runs/rating --documents 20 HT=ht.jsonl FT=ft.jsonl Lead=lead.jsonl
    python -m lib.human answers runs/rating       # when questions.csv is filled in
    python -m lib.human scores runs/rating        # when answers*.csv and best_worst*.csv are

`sheet` draws documents and writes `best_worst.csv` (which of three summaries is best, which worst) and
`questions.csv` (questions about each reference, to be written by a person). `answers` turns those into `answers.csv`:
each question beside one system's summary, for people who have not seen the reference; `mark` says 1 for a right
answer, 0.5 for a partly right one, 0 otherwise. Several people fill in copies, named like `answers-anna.csv`. Which
summary is whose stands in `key.json` alone.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import f_oneway, tukey_hsd

from lib.data.documents import CorpusError
from lib.data.readers import read_json_lines
from lib.evaluate import interval
from lib.files import write_json, write_whole

MARKS = {"1": 1.0, "1.0": 1.0, "0.5": 0.5, ".5": 0.5, "0": 0.0, "0.0": 0.0}
LETTERS = "ABC"


class RatingError(ValueError):
    """A file of ratings that cannot be used: says which, where and why."""


def write_summaries(
    path: str | Path, ids: Sequence[str], summaries: Sequence[list[str]], references: Sequence[list[str]], titles=None
) -> Path:
    """Summaries of one system as JSON lines of {id, title, summary, reference}: what `sheet` takes."""
    titles = titles or [""] * len(ids)
    rows = zip(ids, titles, summaries, references, strict=True)
    lines = (json.dumps(dict(zip(("id", "title", "summary", "reference"), row)), ensure_ascii=False) for row in rows)
    return write_whole(path, "".join(line + "\n" for line in lines))


def read_summaries(path: str | Path) -> dict[str, dict]:
    """By id. Raises RatingError with file and line."""
    path, found = Path(path), {}
    if not path.exists():
        raise RatingError(f"{path}: no such file; lib.human.write_summaries writes one")
    for number, record in read_json_lines(path):
        if isinstance(record, ValueError) or not {"id", "summary", "reference"} <= set(record):
            reason = record if isinstance(record, ValueError) else "id, summary and reference are needed"
            raise RatingError(f"{path}, line {number}: {reason}")
        found[record["id"]] = {**record, **{k: _text(record[k]) for k in ("summary", "reference")}}
    return found


def _text(value) -> str:
    return value if isinstance(value, str) else " ".join(value)


def write_sheets(folder: str | Path, systems: dict[str, dict[str, dict]], documents: int, seed: int = 0) -> None:
    """Draw documents that all systems have; write best_worst.csv, questions.csv and key.json.

    Raises RatingError when there are fewer than two systems or documents, or sheets are there already.
    """
    folder = Path(folder)
    if (folder / "key.json").exists():
        raise RatingError(f"{folder} holds sheets already: choose another folder, they may have been filled in")
    shared = sorted(set.intersection(*(set(s) for s in systems.values()))) if systems else []
    if len(systems) < 2 or len(shared) < documents:
        raise RatingError(
            f"{len(systems)} systems share {len(shared)} documents: two systems and {documents} documents are needed"
        )
    random = np.random.default_rng(seed)
    chosen = [shared[i] for i in sorted(random.choice(len(shared), documents, replace=False))]
    first = next(iter(systems.values()))
    judged, asked, key = [], [], {"documents": chosen, "systems": list(systems), "best_worst": {}}
    for name in chosen:
        about = {"document": name, "title": first[name].get("title", ""), "reference": first[name]["reference"]}
        for together in combinations(systems, min(len(LETTERS), len(systems))):
            order = [together[i] for i in random.permutation(len(together))]
            item = f"b{len(judged) + 1}"
            key["best_worst"][item] = order
            shown = {letter: systems[s][name]["summary"] for letter, s in zip(LETTERS, order)}
            judged.append({"item": item, **about, **shown, "best": "", "worst": ""})
        asked += [{**about, "question": "", "answer": ""} for _ in range(3)]
    key["summaries"] = {s: {name: found[name]["summary"] for name in chosen} for s, found in systems.items()}
    _write_csv(folder / "best_worst.csv", judged)
    _write_csv(folder / "questions.csv", asked)
    write_json(folder / "key.json", {**key, "seed": seed})


def write_answers(folder: str | Path) -> int:
    """Every question beside every system's summary, in random order: answers.csv. Returns how many rows it has.

    Raises RatingError when there is no question, or answers.csv is there already.
    """
    folder, rows = Path(folder), []
    key = _key(folder)
    if (folder / "answers.csv").exists():
        raise RatingError(f"{folder / 'answers.csv'} is there already, and may have been filled in")
    for line, row in _rows(folder / "questions.csv", ("document", "question", "answer")):
        if not row["question"].strip():
            continue
        if row["document"] not in key["documents"]:
            raise RatingError(f"{folder / 'questions.csv'}, line {line}: no document {row['document']!r} was drawn")
        for system in key["systems"]:
            asked = {"question": row["question"], "expected": row["answer"], "response": "", "mark": ""}
            rows.append((system, {"summary": key["summaries"][system][row["document"]], **asked}))
    if not rows:
        raise RatingError(
            f"{folder / 'questions.csv'} holds no question yet: fill in the columns question and answer"
        )
    order = np.random.default_rng(key["seed"]).permutation(len(rows))
    items = [(f"q{n}", *rows[i]) for n, i in enumerate(order, 1)]
    write_json(folder / "key.json", {**key, "answers": {item: system for item, system, _ in items}})
    _write_csv(folder / "answers.csv", [{"item": item, **row} for item, _, row in items])
    return len(items)


def best_worst(folder: str | Path) -> dict[str, list[float]]:
    """For each system, 1 for every time it was the best of those shown, -1 for the worst, 0 otherwise.

    Raises RatingError for a letter that was not shown, or the same one twice.
    """
    key, values = _key(folder), {}
    for path in sorted(Path(folder).glob("best_worst*.csv")):
        for line, row in _rows(path, ("item", "best", "worst")):
            best, worst = row["best"].strip().upper(), row["worst"].strip().upper()
            if not best and not worst:
                continue
            order = _known(key["best_worst"], row["item"], path, line)
            shown = LETTERS[: len(order)]
            if len(best) != 1 or len(worst) != 1 or best not in shown or worst not in shown or best == worst:
                wanted = f"best and worst must be two of {', '.join(shown)}"
                raise RatingError(f"{path}, line {line}: {wanted}, not {best!r} and {worst!r}")
            for letter, system in zip(shown, order):
                values.setdefault(system, []).append(float(letter == best) - float(letter == worst))
    return values


def question_marks(folder: str | Path) -> dict[str, list[float]]:
    """For each system, the marks of all answers in percent. Raises RatingError for a mark that is not 1, 0.5 or 0."""
    key, values = _key(folder), {}
    for path in sorted(Path(folder).glob("answers*.csv")):
        for line, row in _rows(path, ("item", "mark")):
            mark = row["mark"].strip().replace(",", ".")
            if not mark:
                continue
            system = _known(key.get("answers", {}), row["item"], path, line)
            if mark not in MARKS:
                raise RatingError(f"{path}, line {line}: a mark is 1, 0.5 or 0, not {mark!r}")
            values.setdefault(system, []).append(100 * MARKS[mark])
    return values


def compare_systems(values: dict[str, list[float]]) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Means with 95% bootstrap intervals; Tukey's test of every pair; and the p value of a one-way analysis of
    variance. Raises RatingError when there are not two systems with two ratings each."""
    if len(values) < 2 or min(map(len, values.values())) < 2:
        raise RatingError("two systems with two ratings each are needed for a comparison")
    means = {s: {"mean": str(interval(np.array(v))), "ratings": len(v)} for s, v in values.items()}
    tukey, names = tukey_hsd(*values.values()), list(values)
    limits = tukey.confidence_interval(0.95)
    pairs = {
        f"{names[i]} - {names[k]}": {
            "difference": tukey.statistic[i, k],
            "low": limits.low[i, k],
            "high": limits.high[i, k],
            "p": tukey.pvalue[i, k],
        }
        for i, k in combinations(range(len(names)), 2)
    }
    frames = (pd.DataFrame.from_dict(rows, orient="index") for rows in (means, pairs))
    return *frames, float(f_oneway(*values.values()).pvalue)


def _key(folder: str | Path) -> dict:
    path = Path(folder) / "key.json"
    if not path.exists():
        raise RatingError(f"{path}: no such file; begin with python -m lib.human sheet {folder} ...")
    return json.loads(path.read_text(encoding="utf-8"))


def _known(items: dict, item: str, path: Path, line: int):
    if item not in items:
        raise RatingError(f"{path}, line {line}: no item {item!r} was given out")
    return items[item]


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    if not path.exists():
        raise RatingError(f"{path}: no such file")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if missing := [name for name in needed if name not in (rows.fieldnames or ())]:
            raise RatingError(f"{path}, line 1: no column {', '.join(missing)}")
        for row in rows:
            yield rows.line_num, {name: row[name] or "" for name in needed}


def _write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, out.getvalue())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lib.human", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    sheet = commands.add_parser("sheet", help="draw documents and write blinded sheets")
    sheet.add_argument("folder")
    sheet.add_argument("systems", nargs="+", metavar="NAME=FILE", help="summaries as JSON lines")
    sheet.add_argument("--documents", type=int, default=20, help="how many are drawn (the paper: 20)")
    sheet.add_argument("--seed", type=int, default=0)
    commands.add_parser("answers", help="put the questions beside the summaries").add_argument("folder")
    commands.add_parser("scores", help="read the sheets back").add_argument("folder")
    args = parser.parse_args(arguments)
    try:
        _run(args)
    except (RatingError, CorpusError) as error:
        sys.exit(f"error: {error}")


def _run(args: argparse.Namespace) -> None:
    if args.command == "sheet":
        pairs = [pair.partition("=") for pair in args.systems]
        if unnamed := [name for name, equals, _ in pairs if not equals]:
            raise RatingError(f"{unnamed[0]!r}: a system is given as NAME=FILE")
        write_sheets(args.folder, {n: read_summaries(p) for n, _, p in pairs}, args.documents, args.seed)
        print(f"{args.folder}: fill in best_worst.csv and questions.csv; key.json says whose summaries they are")
    elif args.command == "answers":
        print(f"{args.folder}/answers.csv: {write_answers(args.folder)} questions to answer from the summaries alone")
    else:
        for what, values in (
            ("questions answered, %", question_marks(args.folder)),
            ("best minus worst", best_worst(args.folder)),
        ):
            if not values:
                print(f"{what}: nothing is filled in yet\n")
                continue
            means, pairs, p = compare_systems(values)
            print(f"{what} (analysis of variance: p = {p:.2g})\n{means}\n\n{pairs.round(4)}\n")


if __name__ == "__main__":
    main()
