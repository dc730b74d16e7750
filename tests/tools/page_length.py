"""How long the pages are: words that a reader sees with all folds closed, lines of code that are shown, and minutes.

    python -m tests.tools.page_length

Minutes: 140 words and 9 lines of code each, with 15 seconds for a picture and 20 for an equation; those of the
exercises are what the exercises say.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from lib.system.files import project_root

UNSEEN = {"hide-input", "remove-input", "remove-cell"}
FOLD = re.compile(r"<details>.*?</details>", re.DOTALL)
DISPLAYED = re.compile(r"\$\$.*?\$\$", re.DOTALL)
MINUTES = re.compile(r"\(\d points, (\d+) minutes\)$", re.MULTILINE)


@dataclass
class Length:
    words: int = 0  # of prose, tables and printed text
    lines: int = 0  # of code
    pictures: int = 0
    equations: int = 0
    exercises: int = 0  # minutes

    @property
    def minutes(self) -> float:
        """Without the exercises."""
        return self.words / 140 + self.lines / 9 + self.pictures / 4 + self.equations / 3


def length_of(page: dict) -> Length:
    """The length of a notebook as it was executed, up to its exercises; these by what they say."""
    length, cells = Length(), page["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    end = next((n for n, text in enumerate(texts) if re.match(r"# \d+\. Exercises", text)), len(cells))
    length.exercises = sum(int(minutes) for text in texts for minutes in MINUTES.findall(text))
    for cell, text in zip(cells[:end], texts):
        tags = UNSEEN & set(cell["metadata"].get("tags", ()))
        if cell["cell_type"] == "markdown":
            text = FOLD.sub("", text)
            length.equations += len(DISPLAYED.findall(text))
            length.pictures += text.count("<img") + text.count("![")
            length.words += _words(DISPLAYED.sub("", text))
        elif "remove-cell" not in tags:
            length.lines += 0 if tags else sum(bool(line.strip()) for line in text.splitlines())
            _add_outputs(length, cell.get("outputs", ()))
    return length


def _add_outputs(length: Length, outputs) -> None:
    for output in outputs:
        data = output.get("data", {})
        html = "".join(data.get("text/html", ""))
        if "image/png" in data or "image/svg+xml" in data or "<img" in html or "<svg" in html:
            length.pictures += 1
        elif html and "<table" not in html:
            length.words += _words(re.sub(r"<style.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))
        else:
            length.words += _words("".join(data.get("text/plain", "") or output.get("text", "")))


def _words(text: str) -> int:
    return len(re.findall(r"[^\W\d_][\w'-]*", re.sub(r"\$[^$]*\$", " x ", text)))


def main() -> None:
    print("| page | words | lines of code | pictures | equations | minutes | exercises, minutes |\n|" + " --- |" * 7)
    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        n = length_of(json.loads(Path(path).read_text(encoding="utf-8")))
        numbers = (f"{n.words:,}", n.lines, n.pictures, n.equations, f"{n.minutes:.0f}", n.exercises)
        print(f"| {' | '.join(map(str, (path.stem, *numbers)))} |")


if __name__ == "__main__":
    main()
