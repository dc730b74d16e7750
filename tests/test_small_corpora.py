"""The part of each page that reads a corpus, on a few records of another kind than its own, and every kind of system.

What stands before that part on a page needs no corpus, and is executed with the page; imports and functions are taken
of it here.
"""

import ast
import json
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lib.data.documents import CorpusError
from lib.papers import PAPERS
from lib.system.files import project_root

PARTS = {  # the headings with which it begins, and behind it
    "mem2mem": ("# 3. Real papers", "# 4. What the paper claims"),
    "windowed": ("# 4. A model that has learned", "# 5. What the paper claims"),
    "read_again": ("# 1. Headlines, and which of their words are copied", "# 2. Two tasks with a known answer"),
    "hierarchical_transformer": ("# 3. Real papers", "# 4. The paper's claims"),
}
UNNAMED = ("hierarchical_transformer",)  # whose losses are shown and not saved
NEWS = (
    "Rain fell on {0} fields near the river on Monday. Farmers said that the harvest of {0} villages would be late.",
    "The bank of the north raised {0} rates by half a point. It was the third time this year. Prices fell at once.",
)


@pytest.fixture
def news(tmp_path):
    """40 training, one validation and one test document without sections or titles, two or three sentences each."""
    for name, count in (("train", 40), ("val", 1), ("test", 1)):
        texts = [NEWS[number % 2].format(number) for number in range(count)]
        lines = [json.dumps({"document": text, "summary": text[: text.index(".") + 1]}) for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def corpus_part(page: str) -> tuple[str, str]:
    """The code of a page: its parameters, and what reads a corpus, behind the imports and functions before it."""
    begin, end = PARTS[page]
    text = (project_root() / "notebooks" / f"{page}.py").read_text(encoding="utf-8")
    assert text.count(f"\n{begin}") == text.count(f"\n{end}") == 1
    parameters, taken, begun = "", [], False
    for head, _, cell in (cell.partition("\n") for cell in text[: text.index(f"\n{end}")].split("\n# %%")[1:]):
        begun = begun or f"\n{begin}" in cell
        if "parameters" in head:
            parameters = cell
        elif "[markdown]" not in head:
            taken += [s for s in ast.parse(cell).body if begun or "load_corpus(" in cell or _prepares(s)]
    return parameters, "\n".join(map(ast.unparse, taken))


def _prepares(statement: ast.stmt) -> bool:
    named = isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef)
    return named or "figures_folder(" in ast.unparse(statement)


def execute(page: str, given: dict, tmp_path, monkeypatch) -> dict:
    """Returns what the page's names then stand for."""
    monkeypatch.setenv("COMPANION_FIGURES", str(tmp_path / "figures"))
    parameters, code = corpus_part(page)
    namespace = {}
    exec(parameters, namespace)
    namespace |= {"dataset": str(tmp_path), "steps": 2, "output": str(tmp_path / "run"), **given}
    try:
        exec(compile(code, f"{page}.py", "exec"), namespace)
    finally:
        plt.close("all")
    return namespace


@pytest.mark.parametrize(
    ("page", "variant"),
    [
        ("mem2mem", "+read"), ("mem2mem", "Sent-CLF"), ("mem2mem", "Sent-PTR"), ("mem2mem", "TLM"),
        ("windowed", "dynamic"), ("read_again", "read-again lstm + copy"), ("read_again", "abs attention"),
        ("hierarchical_transformer", "HT"),
    ],
)  # fmt: skip
def test_a_page_on_a_small_corpus(page, variant, news, monkeypatch):
    """It trains, whatever run the project keeps, and what it draws stays out of `figures`."""
    found = execute(page, {"variant": variant}, news, monkeypatch)
    assert "trained here, on 40 documents, 2 steps" in found["origin"]
    assert (news / "run" / "config.json").exists()
    assert (news / "figures" / f"{page}_losses.png").exists() or page in UNNAMED


def test_a_corpus_without_sections_for_a_model_of_sections(news, monkeypatch):
    with pytest.raises(CorpusError, match="no document has more than one section"):
        execute("mem2mem", {"variant": "discourse-aware"}, news, monkeypatch)


@pytest.mark.parametrize(
    ("page", "parameter", "message"),
    [
        ("mem2mem", {"variant": "+raed"}, r"unknown variant '\+raed', did you mean '\+read'\?"),
        ("windowed", {"preset": "WIKI_6"}, "unknown preset 'WIKI_6', did you mean 'WIKI_"),
        ("hierarchical_transformer", {"variant": "FT 601"}, "unknown variant 'FT 601', did you mean 'FT 600'"),
    ],
)
def test_a_value_that_is_unknown_stops_a_page(page, parameter, message, tmp_path, monkeypatch):
    """Before the corpus is looked for."""
    with pytest.raises(ValueError, match=message):
        execute(page, {"dataset": "nowhere", **parameter}, tmp_path, monkeypatch)


def test_parameters_come_from_papermill(news, monkeypatch):
    monkeypatch.setenv("COMPANION_FIGURES", str(news / "figures"))
    parameters, code = corpus_part("read_again")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [
        new_code_cell(parameters, metadata={"tags": ["parameters"]}),
        new_code_cell(code),
        new_code_cell("print(origin)"),
    ]
    nbformat.write(new_notebook(cells=cells, metadata=kernel), news / "page.ipynb")
    given = ["-p", "dataset", str(news), "-p", "steps", "2", "-p", "output", str(news / "run")]
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", str(news / "page.ipynb")]
    command += [str(news / "out.ipynb"), *given]
    subprocess.run(command, capture_output=True, check=True, timeout=600, cwd=project_root())
    assert "trained here, on 40 documents, 2 steps" in (news / "out.ipynb").read_text(encoding="utf-8")
    assert (news / "run" / "config.json").exists() and (news / "figures" / "read_again_losses.png").exists()


def test_a_comparison_of_other_models(tmp_path, monkeypatch):
    """The comparison's table where the first of the papers is left out."""
    monkeypatch.setattr("lib.papers.PAPERS", {"read_again": PAPERS["read_again"]})
    monkeypatch.setenv("COMPANION_FIGURES", str(tmp_path))
    text = (project_root() / "notebooks" / "compare.py").read_text(encoding="utf-8")
    before = text[: text.index("# %% jupyter", text.index("comparison = "))]
    code = [cell for cell in before.split("\n# %%")[1:] if not cell.startswith(" [markdown]")]
    namespace = {}
    for cell in code:
        exec(cell.partition("\n")[2], namespace)
        namespace["documents"] = 2
    assert list(namespace["runs"]) == ["Read-Again"]
    assert {"Lead (200 words)", "Read-Again, trigram blocking"} <= set(namespace["systems"])
    assert "Lead (200 words)" in namespace["comparison"].index
    assert not [name for name in namespace["comparison"].index if "Read-Again" in name], "headlines are not scored"
