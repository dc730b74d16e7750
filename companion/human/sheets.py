"""Blinded forms for people to judge summaries with: HTML files that need nothing else, and the key
to them."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase as LETTERS

import numpy as np
import pandas as pd

from lib.data.corpus import check_unpublished
from lib.page.html_page import html_page
from lib.system.errors import InputError
from lib.system.files import read_numbers, write_json, write_whole
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
COMPARED = 3  # summaries of a document of which the best and the worst are chosen


def write_sheets(
    folder: str | Path, systems: Mapping[str, Mapping[str, dict]], documents: int, seed: int = 0
) -> None:
    """Draw documents that all systems have, and write form.html and key.json.

    A summary is shown once, under a letter, another one in each document; the key has the system of
    each. Raises InputError when too little is shared or the folder has a key already; CorpusError
    where texts that may not be published would be.
    """
    folder, names = Path(folder), list(systems)
    shared = sorted(set.intersection(*(set(of_system) for of_system in systems.values())))
    if len(names) < 2 or not 1 <= documents <= len(shared):
        raise InputError(
            f"{len(names)} systems share {len(shared)} documents: two systems and {documents} "
            "documents are needed"
        )
    if (folder / "key.json").exists():
        raise InputError(
            f"{folder} holds a form already: choose another folder, people may have filled it in"
        )
    for corpus in {
        row["corpus"]
        for of_system in systems.values()
        for row in of_system.values()
        if "corpus" in row
    }:
        check_unpublished(folder / "form.html", corpus)

    random = np.random.default_rng(seed)
    chosen = [shared[i] for i in sorted(random.choice(len(shared), documents, replace=False))]
    key = {
        "documents": chosen,
        "systems": names,
        "criteria": CRITERIA,
        "seed": seed,
        "ratings": {},
        "best_worst": {},
    }
    rated, compared, texts = [], [], {}
    for document in chosen:
        rows, about = [systems[name][document] for name in names], {"document": document}
        for part in ("title", "reference", "source"):
            about[part] = next((row[part] for row in rows if row[part]), "")
        texts[document] = about.pop("source")
        letters = dict(zip(LETTERS, random.permutation(names).tolist()))
        for letter, name in letters.items():
            item = f"r{len(rated) + 1}"
            key["ratings"][item] = [document, name]
            rated.append(
                {
                    "item": item,
                    **about,
                    "letter": letter,
                    "summary": systems[name][document]["summary"],
                }
            )
        for group in combinations(letters, min(COMPARED, len(letters))):
            item = f"b{len(compared) + 1}"
            key["best_worst"][item] = {letter: letters[letter] for letter in group}
            compared.append({"item": item, "document": document, "of": group})

    criteria = {"criteria": CRITERIA, "best_worst_criteria": BEST_WORST_CRITERIA}
    content = {"ratings": rated, "best_worst": compared, "texts": texts, **criteria}
    _write_form(folder / "form.html", "Rating summaries", content)
    write_json(folder / "key.json", key)


def read_key(folder: str | Path) -> dict:
    """Read which system wrote what."""
    path = Path(folder) / "key.json"
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; begin with python -m companion.human sheet {folder} ..."
        )
    return read_numbers(path, "key", ("documents", "systems", "ratings", "best_worst"))


def read_csv(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Read columns of a CSV file as texts. A spreadsheet may have put semicolons or tabs between
    them."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            separator = max(",;\t", key=file.readline().count)
        table = pd.read_csv(
            path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
        return table.loc[:, list(columns)]
    except (ValueError, KeyError) as error:  # pandas has a ValueError for what is no CSV
        raise InputError(
            f"{path}: a CSV file in UTF-8 with {', '.join(columns)} is needed ({error})"
        ) from None


def _write_form(path: Path, title: str, content: dict) -> None:
    """Write form.html beside this file with the content in it. A browser stores what was filled in
    under the content's digest, so that another form in its place begins empty."""
    form = Path(__file__).with_name("form.html")
    write_whole(path, html_page(form, {**content, "digest": digest(content)}, TITLE=title))
