"""The first page: what a reader of it is promised."""

import re

from lib.system.files import project_root
from tests.test_project import PAGES, notebook

ROOT = project_root()
(PAGE,) = [page for page in PAGES if page.stem == "start_here"]
CELLS = notebook(PAGE)["cells"]
TEXTS = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_equations_are_numbered_in_order_and_each_is_used():
    whole = "\n".join(TEXTS)
    numbers = [int(n) for n in re.findall(r"\\tag\{(\d+)\}", whole)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers
    assert f"from (1) to ({numbers[-1]})" in whole
    for equation in re.findall(r"\$\$.*?\$\$", whole, re.DOTALL):
        assert equation.count(r"\tag{") == 1, equation
    ranges = [(int(a), int(b or a)) for a, b in re.findall(r"\((\d+)\)(?:(?:-| to )\((\d+)\))?", "\n".join(CODE))]
    assert set(numbers) <= {n for first, last in ranges for n in range(first, last + 1)}, "named where it is coded"


def test_every_section_has_its_minutes():
    first = TEXTS[0]
    timed = [
        int(n) for row in re.findall(r"^\| ([\d, ]+) \|.*\| \d+ \|$", first, re.MULTILINE) for n in row.split(",")
    ]
    sections = [int(n) for text in TEXTS for n in re.findall(r"^# (\d+)\. ", text, re.MULTILINE)]
    assert timed == sections == list(range(len(sections)))


def test_the_other_pages_are_linked_at_both_ends():
    others = {f"{page.stem}.ipynb" for page in PAGES} - {"start_here.ipynb"}
    for text in (TEXTS[0], TEXTS[-1]):
        assert set(re.findall(r"\]\((\w+\.ipynb)\)", text)) == others


def test_every_figure_of_the_page_is_drawn_and_described():
    kept = {path.stem for path in (ROOT / "figures").glob("start_*.json")}
    drawn = {name for cell in CODE for name in re.findall(r'"(start_\w+)"', cell)}
    described = {name for text in TEXTS for name in re.findall(r"`(start_\w+)`", text)} - {"start_here"}
    assert kept == drawn == described == {path.stem for path in (ROOT / "figures").glob("start_*.png")}
