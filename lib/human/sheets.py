"""Blinded sheets for people to judge summaries with: CSV files, and one HTML form that needs nothing else."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from lib.data.readers import read_json_lines
from lib.storage import write_json, write_whole

LETTERS = "ABC"
CRITERIA = {  # Mem2Mem's, each from 1 to 5
    "coherence": "Does the summary make sense?",
    "informativeness": "Are the most important points of the document in it?",
    "redundancy": "5: it never repeats itself",
    "fluency": "Is it good English?",
}


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


def write_sheets(
    folder: str | Path,
    systems: dict[str, dict[str, dict]],
    documents: int,
    seed: int = 0,
    criteria: dict[str, str] = CRITERIA,
) -> None:
    """Draw documents that all systems have; write the sheets, the form, and key.json, which says whose is what.

    `ratings.csv` has a row for every summary and a column for each of `criteria`; `best_worst.csv` one for every
    three summaries of a document (of two systems: for both); `form.html` asks the same. `questions.csv` is for
    whoever reads the references. Raises RatingError when there are fewer than two systems or documents, or sheets are
    there already.
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
    key = {"documents": chosen, "systems": list(systems), "criteria": criteria, "ratings": {}, "best_worst": {}}
    rated, judged, asked = [], [], []
    for name in chosen:
        about = {"document": name, "title": first[name].get("title", ""), "reference": first[name]["reference"]}
        for system in (list(systems)[i] for i in random.permutation(len(systems))):
            item = f"r{len(rated) + 1}"
            key["ratings"][item] = [name, system]
            rated.append(
                {"item": item, **about, "summary": systems[system][name]["summary"], **dict.fromkeys(criteria, "")}
            )
        for together in combinations(systems, min(len(LETTERS), len(systems))):
            order = [together[i] for i in random.permutation(len(together))]
            item = f"b{len(judged) + 1}"
            key["best_worst"][item] = order
            shown = {letter: systems[s][name]["summary"] for letter, s in zip(LETTERS, order)}
            judged.append({"item": item, **about, **shown, "best": "", "worst": ""})
        asked += [{**about, "question": "", "answer": ""} for _ in range(3)]
    key["summaries"] = {s: {name: found[name]["summary"] for name in chosen} for s, found in systems.items()}
    _write_csv(folder / "ratings.csv", rated)
    _write_csv(folder / "best_worst.csv", judged)
    _write_csv(folder / "questions.csv", asked)
    _write_form(
        folder / "form.html", "Rating summaries", {"ratings": rated, "best_worst": judged, "criteria": criteria}
    )
    write_json(folder / "key.json", {**key, "seed": seed})


def write_answers(folder: str | Path) -> int:
    """Every question beside every system's summary, in random order: answers.csv and answers.html. Returns how many.

    Raises RatingError when there is no question, or answers.csv is there already.
    """
    folder, rows = Path(folder), []
    key = read_key(folder)
    if (folder / "answers.csv").exists():
        raise RatingError(f"{folder / 'answers.csv'} is there already, and may have been filled in")
    for line, row in read_rows(folder / "questions.csv", ("document", "question", "answer")):
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
    given = [{"item": item, **row} for item, _, row in items]
    _write_csv(folder / "answers.csv", given)
    _write_form(folder / "answers.html", "Answering questions from summaries", {"answers": given})
    return len(items)


def read_key(folder: str | Path) -> dict:
    """What `write_sheets` knows of the sheets. Raises RatingError when there are none."""
    path = Path(folder) / "key.json"
    if not path.exists():
        raise RatingError(f"{path}: no such file; begin with python -m lib.human sheet {folder} ...")
    return json.loads(path.read_text(encoding="utf-8"))


def read_rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and the columns `needed` of each row of a CSV file. Raises RatingError where one is missing."""
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


def _write_form(path: Path, title: str, sheets: dict) -> None:
    """`form.html` beside this file, with the sheets in it: one page, nothing is loaded from anywhere."""
    page = Path(__file__).with_name("form.html").read_text(encoding="utf-8")
    data = json.dumps(sheets, ensure_ascii=False).replace("</", "<\\/")  # no text can end the script
    write_whole(path, page.replace("TITLE", title).replace("SHEETS", data, 1))
