"""What people bring: texts, corpora, other systems' summaries, parameters and ratings, from tables of cases."""

import tomllib

import pandas as pd
import pytest

from companion.human.__main__ import main as human
from companion.human.ratings import report
from companion.human.sheets import read_key
from companion.pages.parameters import check_parameters
from lib.data.documents import Document
from lib.evaluation.summaries import write_summaries
from lib.system.errors import CompanionError
from lib.system.files import project_root

CASES = project_root() / "tests" / "what_people_bring"


def cases(surface):
    """The cases of a surface, named."""
    table = tomllib.loads((CASES / f"{surface}.toml").read_text(encoding="utf-8"))["case"]
    return [pytest.param(case, id=f"{case['kind']}: {case['name']}") for case in table]


def check_words(case, message):
    """Check that a message has the words that a case asks for."""
    assert "\n" not in message.strip(), message
    missing = [word for word in case["error"] if word.lower() not in message.lower()]
    assert not missing, f"{missing} are not in: {message}"


# ------------------------------------------------------------------------------------------ parameters and ratings

TEXTS = ("dataset", "run", "preset", "variant", "output")
DECLARED = "\n".join([*(f'{name}: str = ""' for name in TEXTS), "steps: int = 0", "seed: int = 0"])


@pytest.mark.parametrize("case", cases("parameters"))
def test_parameters(case):
    injected = f"# Parameters\n{case['parameter']} = value"
    namespace = {"In": ["", DECLARED, injected], "value": case["value"]}
    exec(DECLARED, namespace)
    exec(injected, namespace)
    if "error" in case:
        with pytest.raises(CompanionError) as refused:
            check_parameters(namespace)
        check_words(case, str(refused.value))
        return
    check_parameters(namespace)
    assert namespace[case["parameter"]] == case["expect"]


@pytest.mark.parametrize("case", cases("ratings"))
def test_ratings(case, tmp_path):
    """Line @N of a case rates item N by the four criteria."""
    for system in "AB":
        documents = [Document(f"d{i}", "T", [""], [["Text."]], [f"Reference {i}."]) for i in range(6)]
        summaries = [[f"Summary {i} of {system}."] for i in range(6)]
        write_summaries(tmp_path / f"{system}.jsonl", documents, summaries, "x")
    folder = tmp_path / "r"
    human(["sheet", str(folder), *(f"{s}={tmp_path / s}.jsonl" for s in "AB"), "--documents", "5"])
    key = read_key(folder)
    for name, text in case["files"].items():
        rows = []
        for item, line in zip(key["ratings"], text.strip().splitlines()[1:]):
            rows += [("ratings", item, *pair) for pair in zip(key["criteria"], line.split(",")[1:])]
        table = pd.DataFrame(rows, columns=["sheet", "item", "field", "value"])
        table = table[::-1] if case.get("reverse") == name else table
        table.to_csv(folder / name, index=False, sep=case.get("delimiter", ","))
    if "error" in case:
        with pytest.raises(CompanionError) as refused:
            report(folder)
        check_words(case, str(refused.value))
        return
    said = report(folder)
    assert not [word for word in case.get("lacks", []) if word in said]
