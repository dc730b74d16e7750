"""Every page as `papermill` runs it with parameters: whole, on a folder of texts of another kind than its own."""

import ast
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lib.system.files import project_root

NOTEBOOKS = project_root() / "notebooks"
PAGES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))

PARTS = ("pump", "valve", "filter", "gearbox", "sensor", "relay", "compressor", "nozzle")
FAULTS = ("leaks", "overheats", "vibrates", "stops without a warning", "reports a wrong value")
REMEDIES = ("Replace the seal", "Clean the inlet", "Tighten both screws", "Update the firmware", "Check the wiring")


def manual(number: int) -> dict:
    """A short technical note under four headings, and what a technician has to know of it."""
    draw = random.Random(number)
    part, other = draw.sample(PARTS, 2)
    fault, remedy, hours = draw.choice(FAULTS), draw.choice(REMEDIES), draw.randrange(200, 9000)
    sections = {
        "Overview": f"The {part} of unit {number} belongs to the cooling circuit. It works beside the {other}.",
        "Symptoms": f"After {hours} hours the {part} {fault}. The {other} shows nothing unusual (code E{number}).",
        "Procedure": f"Switch the unit off. {remedy}. Wait for 5 min., then start the {part} again at 0.5 bar.",
        "Parts": f"One set of seals, no. {number}-{hours}. Keep the old {part} for the record.",
    }
    return {
        "title": f"Service note {number}: the {part}",
        "section_names": list(sections),
        "sections": [[text] for text in sections.values()],
        "abstract_text": [f"The {part} {fault} after {hours} hours.", f"{remedy} and start it again."],
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
    """The whole page with these parameters, run as README says; what it writes goes below `folder`."""
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", f"notebooks/{page}.ipynb"]
    command += [str(folder / "out.ipynb")]
    for name, value in parameters.items():
        command += ["-p", name, str(value)]
    environment = {**os.environ, "COMPANION_FIGURES": str(folder / "figures"), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, timeout=900, encoding="utf-8"
    )
    assert run.returncode == 0, run.stderr[-3000:]
    notebook = nbformat.read(folder / "out.ipynb", as_version=4)
    assert notebook.metadata.papermill.exception is None or not notebook.metadata.papermill.exception
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip():
            assert cell.execution_count is not None, cell.source
            assert not [output for output in cell.outputs if output.output_type == "error"], cell.source
    return notebook


def text_of(notebook: nbformat.NotebookNode) -> str:
    """All that the page printed and showed as text."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


TRAINED = {  # page -> a variant that is not its own, and what else its studies take
    "mem2mem": {"variant": "+transfer"},
    "windowed": {"variant": "streamed"},
    "read_again": {"variant": "read-again gru"},
    # `small` has longer summaries and products in bfloat16, which take minutes where a processor has none
    "hierarchical_transformer": {
        "variant": "HT + similarity graph",
        "study_steps": 1,
        "preset": "demo",
        "towns_steps": 2,
    },
}


@pytest.mark.long
@pytest.mark.parametrize("page", TRAINED)
def test_a_page_with_all_its_parameters(page, manuals, tmp_path):
    given = {
        "dataset": manuals,
        "steps": 3,
        "seed": 7,
        "preset": "small",
        "output": tmp_path / "run",
        **TRAINED[page],
    }
    shown = text_of(papermill(page, tmp_path, **given))
    assert "trained here, on 24 documents, 3 steps" in shown
    assert "Empty DataFrame" not in shown, "a table that has no row for these texts"
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert (config["variant"], config["preset"]) == (given["variant"], given["preset"])
    assert (config["train"]["seed"], config["train"]["steps"]) == (7, 3)
    declared = parameters_of(page)
    assert set(given) == set(declared), "a parameter of the page is not tried"


@pytest.mark.long
def test_the_comparison_on_a_folder_of_other_texts(manuals, tmp_path):
    given = {"dataset": manuals, "preset": "demo", "steps": 2, "documents": 5, "seed": 7}
    assert set(given) == set(parameters_of("compare"))
    shown = text_of(papermill("compare", tmp_path, **given))
    assert "LexRank" in shown and "Windowed" in shown


@pytest.mark.long
def test_the_comparison_as_it_is(tmp_path):
    """Of all its papers: `make test` takes a third of them."""
    papermill("compare", tmp_path)
    made, committed = (
        json.loads((folder / "figures" / "compare_table.json").read_text(encoding="utf-8"))
        for folder in (tmp_path, project_root())
    )
    for field in ("title", "preset", "columns"):
        assert made[field] == committed[field]
    assert list(made["lines"]) == list(committed["lines"])


SEEDED = ["baselines", "start_here"]


@pytest.mark.long
@pytest.mark.parametrize("page", SEEDED)
def test_a_page_with_another_seed(page, tmp_path):
    assert set(parameters_of(page)) == {"seed"}
    papermill(page, tmp_path, seed=1)


def test_every_page_is_tried():
    assert sorted([*TRAINED, "compare", *SEEDED]) == PAGES


# --------------------------------------------------------------------------------- what holds without running them


def cells_of(page: str) -> list[tuple[str, ast.Module]]:
    """Code cells of a page: the line after `# %%`, and the code."""
    text = (NOTEBOOKS / f"{page}.py").read_text(encoding="utf-8")
    cells = [cell.partition("\n") for cell in text.split("\n# %%")[1:]]
    return [(head, ast.parse(cell)) for head, _, cell in cells if "[markdown]" not in head]


def parameters_of(page: str) -> list[str]:
    (cell,) = [code for head, code in cells_of(page) if '"parameters"' in head]
    return [s.target.id for s in cell.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def bound_by(code: ast.AST) -> set[str]:
    """Names that a cell binds for all cells. What functions, classes and comprehensions bind is their own."""
    if isinstance(code, ast.FunctionDef | ast.ClassDef):
        return {code.name}
    if isinstance(code, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return {node.target.id for node in ast.walk(code) if isinstance(node, ast.NamedExpr)}
    if isinstance(code, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in code.names}
    if isinstance(code, ast.ExceptHandler):
        named = {code.name} if code.name else set()
    else:
        named = {code.id} if isinstance(code, ast.Name) and not isinstance(code.ctx, ast.Load) else set()
    return named.union(*map(bound_by, ast.iter_child_nodes(code)))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("output, _ = f()", {"output", "_"}), ("for steps in x: pass", {"steps"}), ("seed += 1", {"seed"}),
        ("with f() as output: pass", {"output"}), ("def f(steps): output = 1", {"f"}),
        ("import a.b as seed", {"seed"}), ("import seed.a", {"seed"}), ("from a import seed", {"seed"}),
        ("[steps for steps in x]", set()), ("[(seed := s) for s in x]", {"seed"}), ("del output", {"output"}),
        ("(lambda seed: seed)(1)", set()), ("class steps: pass", {"steps"}), ("print(output)", set()),
    ],
)  # fmt: skip
def test_names_that_a_cell_binds(code, names):
    assert bound_by(ast.parse(code)) == names


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_binds_the_name_of_a_parameter_again(page):
    """But the one behind the parameters, which fills in what was left empty."""
    cells, parameters = cells_of(page), set(parameters_of(page))
    (place,) = [i for i, (head, _) in enumerate(cells) if '"parameters"' in head]
    for _, cell in cells[place + 2 :]:
        again = bound_by(cell) & parameters
        assert not again, f"{page} binds {again} in: {ast.unparse(cell)[:200]}"
