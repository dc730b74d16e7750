"""Every page as `papermill` runs it with parameters: whole, on a folder of texts of another kind
than its own."""

import ast
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from symtable import symtable

import nbformat
import pytest

from lib.system.files import project_root

NOTEBOOKS = project_root() / "notebooks"
PAGES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))


def manual(number: int) -> dict:
    """A short technical note under two headings, and what a technician has to know of it."""
    hours, part = (
        random.Random(number).randrange(200, 9000),
        ("pump", "valve", "filter", "relay")[number % 4],
    )
    sections = {
        "Symptoms": (
            f"The {part} of unit {number} is in the cooling circuit. After {hours} hours the "
            f"{part} leaks."
        ),
        "Procedure": (
            f"Switch the unit off. Replace the seal. Wait for 5 min., then start the {part} at 0.5 "
            "bar."
        ),
    }
    return {
        "title": f"Service note {number}: the {part}",
        "section_names": list(sections),
        "sections": [[text] for text in sections.values()],
        "abstract_text": [
            f"The {part} leaks after {hours} hours.",
            "Replace the seal and start it again.",
        ],
    }


@pytest.fixture(scope="session")
def manuals(tmp_path_factory) -> Path:
    """40 documents: 24 to train on, 8 each for validation and test."""
    folder = tmp_path_factory.mktemp("manuals")
    numbers = iter(range(40))
    for name, count in (("train", 24), ("val", 8), ("test", 8)):
        lines = [json.dumps(manual(next(numbers))) for _ in range(count)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def papermill(page: str, folder: Path, **parameters) -> nbformat.NotebookNode:
    """The whole page with these parameters, run as README says; what it writes goes below
    `folder`."""
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", f"notebooks/{page}.ipynb"]
    command += [str(folder / "out.ipynb")]
    for name, value in parameters.items():
        command += ["-p", name, str(value)]
    environment = {
        **os.environ,
        "COMPANION_FIGURES": str(folder / "figures"),
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run(
        command,
        cwd=project_root(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr[-3000:]
    notebook = nbformat.read(folder / "out.ipynb", as_version=4)
    assert not notebook.metadata.papermill.exception
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip():
            assert cell.execution_count is not None, cell.source
            assert not [output for output in cell.outputs if output.output_type == "error"], (
                cell.source
            )
    return notebook


def text_of(notebook: nbformat.NotebookNode) -> str:
    """All that the page printed and showed as text."""
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    return "\n".join(map(text_of_output, outputs))


def text_of_output(output: nbformat.NotebookNode) -> str:
    data = output.get("data", {})
    return data.get("text/markdown") or data.get("text/plain") or output.get("text", "")


def lesson_of(notebook: nbformat.NotebookNode) -> list[str]:
    """What a page shows before and after its report: the lesson."""
    heads = [cell.source.lstrip().partition("\n")[0] for cell in notebook.cells]
    first = heads.index("# Your corpus")
    end = next(i for i in range(first + 1, len(heads)) if heads[i].startswith("# "))
    cells = [*notebook.cells[:first], *notebook.cells[end:]]
    return [cell.source for cell in cells if cell.cell_type == "markdown"] + [
        line
        for cell in cells
        if cell.cell_type == "code"
        for output in cell.outputs
        for line in text_of_output(output).splitlines()
    ]


@pytest.mark.long
@pytest.mark.parametrize("page", ["mem2mem", "windowed", "read_again", "hierarchical_transformer"])
def test_the_lesson_is_the_same_on_other_texts(page, manuals, tmp_path):
    """Only the report, and the line that leads to it, are about them."""
    notebook = papermill(page, tmp_path, dataset=manuals, documents=8)
    shown = text_of(notebook)
    assert f"on 8 test documents of {manuals.name}" in shown
    assert "[Your corpus](#Your-corpus) is about the shipped model on 8 test documents" in shown
    with_parameters = [line for line in lesson_of(notebook) if manuals.name in line]
    assert len(with_parameters) == 1, "the line that leads to the report"
    assert manuals.name not in "".join(lesson_of(nbformat.read(NOTEBOOKS / f"{page}.ipynb", 4)))


@pytest.mark.long
def test_the_comparison_on_other_texts_says_nothing_about_its_own_sample(manuals, tmp_path):
    notebook = papermill("compare", tmp_path, dataset=manuals)
    shown = text_of(notebook)
    assert "Computed from these scores" in shown
    calls = [
        node
        for _, cell in cells_of("compare")
        for node in ast.walk(cell)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "about_sample"
    ]
    texts = [
        part.value
        for call in calls
        for part in ast.walk(call.args[-1])
        if isinstance(part, ast.Constant)
    ]
    sentences = [s for text in texts for s in re.split(r"(?<=[.?])\s+", text) if len(s) > 30]
    assert len(sentences) > 5
    outputs = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"] + [shown]
    assert not [s for s in sentences if any(s in output for output in outputs)]


TRAINED = {  # page -> a variant that is not its own, and what else its studies take
    "mem2mem": {"variant": "+transfer"},
    "windowed": {"variant": "streamed"},
    "read_again": {"variant": "read-again gru"},
    # `small` has longer summaries and products in bfloat16, which take minutes where a processor
    # has none
    "hierarchical_transformer": {"variant": "HT + similarity graph", "preset": "demo"},
}


@pytest.mark.long
@pytest.mark.parametrize("page", TRAINED)
def test_a_page_with_all_its_parameters(page, manuals, tmp_path):
    run = tmp_path / "run"
    given = {
        "dataset": manuals,
        "steps": 3,
        "seed": 7,
        "preset": "small",
        "output": run,
        "documents": 8,
        **TRAINED[page],
    }
    shown = text_of(papermill(page, tmp_path, **given))
    assert f"trained on 24 documents of {manuals.name} in 3 updates" in shown
    assert "Training: 3 steps on 24 documents" in shown
    assert "Empty DataFrame" not in shown, "a table that has no row for these texts"
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    assert (config["variant"], config["preset"]) == (given["variant"], given["preset"])
    assert (config["train"]["seed"], config["train"]["steps"]) == (7, 3)
    declared = parameters_of(page)
    assert {*given, "run"} == set(declared), "a parameter of the page is not tried"
    if page == "windowed":
        shown = text_of(papermill(page, tmp_path, run=tmp_path / "run"))
        assert f"is about the run in `{tmp_path / 'run'}` on 8 test documents" in shown


@pytest.mark.long
def test_the_comparison_on_a_folder_of_other_texts(manuals, tmp_path):
    given = {"dataset": manuals, "preset": "demo", "steps": 2, "documents": 5, "seed": 7}
    assert {*given, "run"} == set(parameters_of("compare"))
    shown = text_of(papermill("compare", tmp_path, **given))
    assert "LexRank" in shown and "Windowed" in shown


# ---------------------------------------------------------------------------------
# what holds without running them


def cells_of(page: str) -> list[tuple[str, ast.Module]]:
    """Code cells of a page: the line after `# %%`, and the code."""
    text = (NOTEBOOKS / f"{page}.py").read_text(encoding="utf-8")
    cells = [cell.partition("\n") for cell in text.split("\n# %%")[1:]]
    return [(head, ast.parse(cell)) for head, _, cell in cells if "[markdown]" not in head]


def parameters_of(page: str) -> list[str]:
    (cell,) = [code for head, code in cells_of(page) if '"parameters"' in head]
    return [
        s.target.id
        for s in cell.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_binds_the_name_of_a_parameter_again(page):
    """But the one behind the parameters, which fills in what was left empty."""
    cells, parameters = cells_of(page), set(parameters_of(page))
    (place,) = [i for i, (head, _) in enumerate(cells) if '"parameters"' in head]
    for _, cell in cells[place + 2 :]:
        # of the cell itself, not of its functions
        symbols = symtable(ast.unparse(cell), page, "exec").get_symbols()
        again = {symbol.get_name() for symbol in symbols if symbol.is_assigned()} & parameters
        assert not again, f"{page} binds {again} in: {ast.unparse(cell)[:200]}"
