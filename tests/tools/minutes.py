"""Estimate how long a page takes: 200 words or 6 lines of code a minute, half a minute for an
equation or a prediction, a minute for a figure or a table. An exercise takes the minutes that it
states.

    python -m tests.tools.minutes        # of all pages, with their visible words
"""

import re
from collections import Counter

from lib.system.files import project_root, read_json

PARTS = ("reading", "building", "exercises")
EXERCISES = ("Your own model", "Exercises")
REPORT = re.compile("^# Your corpus$", re.MULTILINE)
FOLDED = re.compile(
    r"<details[^>]*><summary>(?:<b>)?(?:Symbols|Hint|Solution|Watch).*?</details>", re.DOTALL
)
EQUATION = re.compile(r"\$\$.*?\$\$", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
FRAMES = re.compile(r'<div id="frames-.*</div>', re.DOTALL)  # one picture
PICTURE = re.compile(r"<figure|<table|<svg|<iframe|!\[")
STATED = re.compile(r"(\d+) minutes[^)]*\)")


def minutes_of(page: dict) -> Counter:
    """Compute the minutes of an executed page by `PARTS`, and its visible "words".

    The reading path ends at the first heading with a number, the building path at the report on a
    corpus, which is no part of the lesson, or at the model of one's own.
    """
    found, part = Counter(), "reading"
    for cell in page["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = re.search(r"^# \d+\. (.*)", text, re.MULTILINE)
            if heading:
                part = "exercises" if heading[1] in EXERCISES else "building"
            elif REPORT.search(text):
                part = "report"
            _read(text, part, found)
            continue
        if not {"remove-input", "hide-input", "parameters"} & set(cell["metadata"].get("tags", ())):
            lines = [
                line
                for line in text.splitlines()
                if line.strip() and not line.lstrip().startswith("#")
            ]
            found[part] += len(lines) / 6 if part != "exercises" else 0
        for output in cell["outputs"]:
            data = output.get("data", {})
            _read(
                "".join(
                    data.get("text/markdown") or data.get("text/html") or output.get("text", "")
                ),
                part,
                found,
            )
    return found


def _read(text: str, part: str, found: Counter) -> None:
    """Count a text or an output."""
    text = FRAMES.sub("<svg", text)
    text = re.sub(
        r"<style>.*?</style>|base64,[^\"]*|srcdoc=\"[^\"]*\"",
        "",
        FOLDED.sub("", text),
        flags=re.DOTALL,
    )
    stated = sum(map(int, STATED.findall(text)))
    words = len(re.sub(r"<[^>]*>", " ", EQUATION.sub("", TABLE.sub("", text))).split())
    found["words"] += len(re.sub(r"<[^>]*>", " ", text).split())
    shown = len(PICTURE.findall(text)) + len(TABLE.findall(text))
    half = len(EQUATION.findall(text)) + text.count("<b>Predict.</b>")
    found[part] += stated if part == "exercises" else words / 200 + shown + half / 2


def print_minutes() -> None:
    """Print each page's minutes by part, and its visible words."""
    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        found = minutes_of(read_json(path))
        print(f"{path.stem:24}", *(f"{part} {found[part]:4.0f}" for part in (*PARTS, "words")))


if __name__ == "__main__":
    print_minutes()
