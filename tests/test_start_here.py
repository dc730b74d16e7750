"""The first page: what a reader of it is promised."""

import math
import re

import pytest

from companion.pages.checks import Checks
from companion.pages.runs import unseen_papers
from lib.data.corpora import load_corpus
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


(CONTENTS,) = [text for text in TEXTS if "| section |" in text]


def test_every_section_has_its_minutes():
    timed = [
        int(n) for row in re.findall(r"^\| ([\d, ]+) \|.*\| \d+ \|$", CONTENTS, re.MULTILINE) for n in row.split(",")
    ]
    sections = [int(n) for text in TEXTS for n in re.findall(r"^# (\d+)\. ", text, re.MULTILINE)]
    assert timed == sections == list(range(len(sections)))


def test_the_other_pages_are_linked_at_both_ends():
    others = {f"{page.stem}.ipynb" for page in PAGES} - {"start_here.ipynb"}
    for text in (CONTENTS, TEXTS[-1]):
        assert set(re.findall(r"\]\((\w+\.ipynb)\)", text)) == others


def test_every_figure_of_the_page_is_drawn_and_described_by_its_number():
    saved = {path.stem for path in (ROOT / "figures").glob("start_*.json")}
    drawn = {name for cell in CODE for name in re.findall(r'figures\.show\([^)]*"(start_\w+)"', cell)}
    assert saved == drawn == {path.stem for path in (ROOT / "figures").glob("start_*.png")}
    described = [int(n) for text in TEXTS for n in re.findall(r"\*\*What to see in Figure (\d+)\.\*\*", text)]
    assert described == list(range(1, len(drawn) + 1))
    assert not [text for text in TEXTS if "`start_" in text], "by their numbers, not by their files"


def test_a_question_to_predict_has_its_answer_folded():
    asked = [
        fold for text in TEXTS for fold in re.findall(r"<details><summary>Predict: .*?</details>", text, re.DOTALL)
    ]
    assert 4 <= len(asked) <= 8
    for fold in asked:
        question, answer = fold.removesuffix("</details>").split("</summary>")
        assert question.endswith("?") and 1 <= len(re.findall(r"[a-z0-9\]$]\.(?=\s)", answer)) <= 3, fold


def test_the_first_paper_may_be_printed_and_was_not_learned_from():
    (printed,) = {paper for cell in CODE for paper in re.findall(r'paper\.id == "(\w+)"', cell)}
    attribution = (ROOT / "lib" / "data" / "pmc_sample" / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert re.search(rf"^- {printed}: .* CC-BY-4\.0$", attribution, re.MULTILINE)
    assert printed in {document.id for document in unseen_papers(load_corpus("pmc-sample"))}


def test_the_ratio_decides_between_lengths():
    """The long hypothesis wins where the ratio of the divisors is more than that of the log P."""
    needed = 12 * math.log(0.85) / (6 * math.log(0.80))
    rules = [(1, 0), (1, 5), (0.4, 5), (0, 0)]
    wins = [((12 + o) / (6 + o)) ** exponent > needed for exponent, o in rules]
    assert wins == [True, True, False, False] and f"{needed:.3f}" == "1.457"
    assert any("1.457 times as much" in text and "for both offsets" in text for text in TEXTS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_weight_that_is_moved_to_another_animal_makes_the_plain_model_write_it(seed):
    """What the text says of Figure 1, by the page's own cells."""
    names: dict = {"seed": seed}
    imports = next(code for code in CODE if "from companion.pages.checks import Checks" in code)
    exec("\n".join(line for line in imports.splitlines() if line.startswith(("import", "from"))), names)
    for beginning in ("VERBS = ", "def tell", "def story_of", "def learned", "def states_of"):
        (code,) = (code for code in CODE if code.startswith(beginning))
        exec(code.replace("plain, pointer = learned(copy=False), learned(copy=True)", ""), names)
    exec(re.search(r"^def with_unknown.*?\n\n\n", "\n".join(CODE), re.DOTALL | re.MULTILINE)[0], names)  # type: ignore[index]
    (comparison,) = (code for code in CODE if "P_dog = " in code)
    names |= {"plain": names["learned"](copy=False), "checks": Checks()}
    exec(comparison, names)
    assert min(names["P_dog"][1], names["P_dog"][4]) > 0.9
