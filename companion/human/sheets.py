"""Blinded sheets for people to judge summaries with: CSV files, and one HTML form that needs nothing else."""

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase as LETTERS

import numpy as np

from lib.data.corpora import check_unpublished
from lib.data.readers import delimiter_of
from lib.decoding.html_page import html_page
from lib.system.errors import InputError
from lib.system.files import write_json, write_whole
from lib.system.fingerprints import digest

CRITERIA = {  # Mem2Mem's (section 5.7), each from 1 to 5; its Table 5 heads the third column REL
    "coherence": "Does the summary make sense?",
    "informativeness": "Are the most important points of the document in it?",
    "redundancy": "5: it never repeats itself",
    "fluency": "Is it good English?",
}
BEST_WORST_CRITERIA = {  # Liu and Lapata's (section 5), all in one judgement beside the reference
    "informativeness": "Does it convey important facts about the topic?",
    "fluency": "Is it fluent and grammatical?",
    "succinctness": "Does it avoid repetition?",
}
COLUMNS = ("item", "document", "title", "reference", "text", "letter", "summary")  # of ratings.csv
COMPARED = 3  # summaries of a document of which the best and the worst are chosen


class RatingError(InputError):
    """A file of ratings that cannot be used: says which, where and why."""


def write_sheets(
    folder: str | Path,
    systems: dict[str, dict[str, dict]],
    documents: int,
    seed: int = 0,
    criteria: dict[str, str] = CRITERIA,
) -> None:
    """Draw documents that all systems have; write the sheets, the form, and key.json, which says whose is what.

    A summary has a letter, another one in each document. `ratings.csv` has a row for every summary and a column for
    each of `criteria`; `best_worst.csv` one for every three summaries of a document (of two systems: for both);
    `form.html` shows each summary once and asks the same. `documents` has the texts where the files hold them.
    `questions.csv` is for whoever reads the references. Raises RatingError when there are fewer than two systems or
    than one document, too many of either, no file with references, no criteria or one that is named as another
    column, or sheets are there already; CorpusError where texts that may not be published would be.
    """
    folder = Path(folder)
    if documents < 1 or seed < 0:
        raise RatingError(f"at least one document is drawn, with a seed of at least 0; not {documents} and {seed}")
    if not criteria or not all(name.strip() for name in criteria):
        raise RatingError(f"criteria are names such as fluency, not {', '.join(map(repr, criteria)) or 'none'}")
    if taken := [name for name in criteria if name in COLUMNS]:
        raise RatingError(f"criteria are names such as fluency, not {taken[0]!r}: a column of ratings.csv")
    if len(systems) > len(LETTERS):
        raise RatingError(f"{len(systems)} systems, and {len(LETTERS)} letters to name them by")
    if (folder / "key.json").exists():
        raise RatingError(f"{folder} holds sheets already: choose another folder, they may have been filled in")
    shared = sorted(set.intersection(*(set(s) for s in systems.values()))) if systems else []
    if len(systems) < 2 or len(shared) < documents:
        raise RatingError(
            f"{len(systems)} systems share {len(shared)} documents: two systems and {documents} documents are needed"
        )
    if not any(system[name]["reference"].strip() for system in systems.values() for name in shared):
        raise RatingError("no file has a reference: those that python -m lib.score run writes have them")
    for corpus in {row["corpus"] for system in systems.values() for row in system.values() if "corpus" in row}:
        check_unpublished(folder / "form.html", corpus)
    random = np.random.default_rng(seed)
    chosen = [shared[i] for i in sorted(random.choice(len(shared), documents, replace=False))]
    key = {"documents": chosen, "systems": list(systems), "criteria": criteria, "ratings": {}, "best_worst": {}}
    rated, judged, asked, texts = [], [], [], {}
    for number, name in enumerate(chosen, 1):
        title, reference, source = (
            next((s[name][k] for s in systems.values() if s[name][k]), "") for k in ("title", "reference", "source")
        )
        about = {"document": name, "title": title, "reference": reference}
        letters = dict(zip(LETTERS, (list(systems)[i] for i in random.permutation(len(systems)))))
        if source:
            texts[name] = source
            write_whole(folder / "documents" / f"{number}.txt", f"{name}\n{title}\n\n{source}\n")
            about["text"] = f"documents/{number}.txt"
        shown = {letter: systems[system][name]["summary"] for letter, system in letters.items()}
        for letter, system in letters.items():
            item = f"r{len(rated) + 1}"
            key["ratings"][item] = [name, system]
            rated.append(
                {"item": item, **about, "letter": letter, "summary": shown[letter], **dict.fromkeys(criteria, "")}
            )
        for together in combinations(letters, min(COMPARED, len(letters))):
            item = f"b{len(judged) + 1}"
            key["best_worst"][item] = {letter: letters[letter] for letter in together}
            compared = {letter: shown[letter] if letter in together else "" for letter in letters}
            judged.append({"item": item, **about, **compared, "best": "", "worst": ""})
        asked += [{**about, "question": "", "answer": ""} for _ in range(3)]
    key["summaries"] = {s: {name: rows[name]["summary"] for name in chosen} for s, rows in systems.items()}
    _write_csv(folder / "ratings.csv", rated)
    _write_csv(folder / "best_worst.csv", judged)
    _write_csv(folder / "questions.csv", asked)
    groups = [
        {"item": j["item"], "document": j["document"], "of": list(key["best_worst"][j["item"]])} for j in judged
    ]
    asking = {"criteria": criteria, "best_worst_criteria": BEST_WORST_CRITERIA, "texts": texts}
    _write_form(folder / "form.html", "Rating summaries", {"ratings": rated, "best_worst": groups, **asking})
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
    sheet = [{"item": item, **row} for item, _, row in items]
    _write_csv(folder / "answers.csv", sheet)
    _write_form(folder / "answers.html", "Answering questions from summaries", {"answers": sheet})
    return len(items)


def read_key(folder: str | Path) -> dict:
    """Read what `write_sheets` knows of the sheets. Raises RatingError when there are none."""
    path = Path(folder) / "key.json"
    if not path.is_file():
        raise RatingError(f"{path}: no such file; begin with python -m companion.human sheet {folder} ...")
    kinds = {"documents": list, "systems": list, "criteria": dict, "ratings": dict, "best_worst": dict}
    kinds |= {"summaries": dict, "seed": int}
    try:
        key = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(key[name], kind) for name, kind in kinds.items()) and _is_whole(key):
            return key
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise RatingError(f"{path} is damaged. Without it nobody can tell whose summaries were rated.")


def _is_whole(key: dict) -> bool:
    """Whether items are of the documents and systems that were drawn, and every summary is there."""
    documents, systems = set(key["documents"]), set(key["systems"])
    pairs = all(document in documents and system in systems for document, system in key["ratings"].values())
    letters = all(set(order.values()) <= systems for order in key["best_worst"].values())
    return pairs and letters and all(documents <= set(key["summaries"][system]) for system in systems)


def read_rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and the columns `needed` of each row of a CSV file, its fields set apart as the spreadsheet of a
    country does it. Raises RatingError where one is missing."""
    if not path.is_file():
        raise RatingError(f"{path}: no such file")
    csv.field_size_limit(2**31 - 1)
    with open(path, "rb") as file:
        delimiter = delimiter_of(file.readline())
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter=delimiter)
        try:
            if missing := [name for name in needed if name not in map(_as_given, rows.fieldnames or ())]:
                raise RatingError(f"{path}, line 1: no column {', '.join(missing)}")
            for row in rows:
                given = {_as_given(name): value for name, value in row.items() if name is not None}
                yield rows.line_num, {name: _as_given(given[name] or "") for name in needed}
        except UnicodeDecodeError:
            raise RatingError(f"{path}: not UTF-8. Save it as CSV in UTF-8.") from None
        except csv.Error as error:
            raise RatingError(f"{path}, line {rows.line_num}: {error}") from None


def _write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out)
    for row in ({name: name for name in names}, *rows):
        writer.writerow([_as_text(row.get(name, "")) for name in names])
    write_whole(path, out.getvalue())


FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # a spreadsheet takes a cell that begins so for a formula, and runs it


# Where a cell begins: for a spreadsheet of a country that sets cells apart by semicolons also within a text of ours.
_BEGIN = rf"(^|[;\t\r\n])(?='*[{''.join(map(re.escape, FORMULA))}])"


def _as_text(cell: str) -> str:
    """A cell of which no spreadsheet takes a part for a formula: an apostrophe before it says that it is a text."""
    return re.sub(_BEGIN, r"\1'", cell)


def _as_given(cell: str) -> str:
    """A cell as it was before `_as_text`."""
    return re.sub(_BEGIN.replace("(?='*", "'(?='*"), r"\1", cell)


def _write_form(path: Path, title: str, sheets: dict) -> None:
    """Write a form with the sheets in it, from `form.html` beside this file. A browser keeps what was filled in under
    the sheets' digest, so that others in their place begin empty."""
    form = Path(__file__).with_name("form.html")
    write_whole(path, html_page(form, {**sheets, "digest": digest(sheets)}, TITLE=title))
