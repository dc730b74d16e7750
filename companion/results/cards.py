"""The front matter of cards, in the Hugging Face Hub's form: of trained models, and of the sample of papers.

It says for machines what the card says for people. A model's scores are those of its table; the sample's licences are
those of its papers. `python -m companion.make_tables render` writes it anew.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data.documents import SPLITS
from lib.system.files import project_root, read_numbers, write_whole

if TYPE_CHECKING:
    from huggingface_hub import DatasetCardData, EvalResult, ModelCardData

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n\n?", re.DOTALL)
_ROUGE = ("R-1", "R-2", "R-Lsum")


def cards() -> list[Path]:
    """Cards of the trained runs that have been scored, and of the sample of papers."""
    trained = sorted((project_root() / "trained").glob("*/README.md"))
    sample = sorted((project_root() / "lib" / "data").glob("pmc_sample/README.md"))
    return [path for path in trained if (path.parent / "table.json").is_file()] + sample


def render_cards() -> None:
    """Write every card's front matter anew."""
    for path in cards():
        text = path.read_text(encoding="utf-8")
        if (rendered := with_front_matter(text, path.parent)) != text:
            write_whole(path, rendered)


def with_front_matter(text: str, folder: Path) -> str:
    """A card with the front matter of what stands in its folder, in place of any that it has.

    Raises OSError or ValueError for a folder without attributions whose config or table cannot be read.
    """
    data = _of_sample(folder) if (folder / "ATTRIBUTION.md").is_file() else _of_run(folder)
    return f"---\n{data.to_yaml(line_break=chr(10))}\n---\n\n{_FRONT_MATTER.sub('', text)}"


def _of_run(folder: Path) -> "ModelCardData":
    from huggingface_hub import ModelCardData  # here, because tables that stand in no card do not need it

    config = read_numbers(folder / "config.json", "config of a run", ("paper",))
    table = read_numbers(folder / "table.json", "table", ("title", "corpus", "split", "documents", "rows"))
    return ModelCardData(
        language="en",
        license="other",
        license_name="research-and-teaching",
        library_name="neural-summarization-companion",
        pipeline_tag="summarization",
        metrics=["rouge"],
        model_name=table["title"],
        eval_results=_results(table),
        tags=["summarization", "pytorch", config["paper"]],
    )


def _results(table: dict) -> "list[EvalResult]":
    """The model's own scores in a table of a trained run: those of the rows that say how long it was trained."""
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="summarization",
            dataset_type=table["corpus"],
            dataset_name=table["corpus"],
            dataset_split=table["split"],
            dataset_args={"documents": table["documents"]},
            metric_type="rouge",
            metric_name=f"{column}, {row['label'].rpartition(', ')[2]}",
            metric_value=row["scores"][column]["mean"],
        )
        for row in table["rows"]
        if "steps" in row
        for column in _ROUGE
    ]


def _of_sample(folder: Path) -> "DatasetCardData":
    from huggingface_hub import DatasetCardData

    text = (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")
    licences = re.findall(r"^- .* (CC\S+)$", text, re.MULTILINE)
    files = [{"split": name, "path": f"{name}.jsonl.gz"} for name in SPLITS]
    return DatasetCardData(
        language="en",
        license=sorted({"cc" if name == "CC-BY" else name.lower() for name in licences}),  # "cc": of no version
        pretty_name="pmc-sample",
        task_categories=["summarization"],
        size_categories=["n<1K"],
        configs=[{"config_name": "default", "data_files": files}],
    )
