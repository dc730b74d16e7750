"""Front matter of cards: what the project has, as the Hugging Face Hub reads it."""

import gzip
import json
import re
import shutil

import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard, ModelCard

from companion.results import cards as model_cards
from companion.results import kept as kept_tables
from companion.results.cards import cards, with_front_matter
from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS
from lib.system.files import project_root

ROOT = project_root()
SAMPLE = ROOT / "lib" / "data" / "pmc_sample"
RUNS = sorted(path.parent for path in (ROOT / "trained").glob("*/config.json"))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_every_run_and_the_sample_have_a_card():
    assert [path.parent for path in cards()] == [*RUNS, SAMPLE] and len(RUNS) == 5


@pytest.mark.parametrize("card", cards(), ids=name_of)
def test_a_card_has_the_front_matter_of_its_folder(card):
    """Committed as `python -m companion.make_tables render` writes it, once, and before the card's heading."""
    text = card.read_text(encoding="utf-8")
    assert with_front_matter(text, card.parent) == text, "run: make figures"
    assert text.count("\n---\n") == 1 and re.search(r"\A---\n.*?\n---\n\n# \S", text, re.DOTALL)


@pytest.mark.parametrize("folder", RUNS, ids=name_of)
def test_the_hub_reads_the_scores_of_the_table(folder):
    card = ModelCard.load(folder / "README.md")
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    plain, ruled = table["rows"][:2]
    expected = {
        f"{metric}, {decoding}": row["scores"][metric]["mean"]
        for row, decoding in ((plain, "plain beam search"), (ruled, "trigram blocking"))
        for metric in ("R-1", "R-2", "R-Lsum")
    }
    assert {result.metric_name: result.metric_value for result in card.data.eval_results} == expected
    places = {(r.dataset_type, r.dataset_split, r.dataset_args["documents"]) for r in card.data.eval_results}
    assert places == {(table["corpus"], "test", table["documents"])}
    assert card.data.model_name == table["title"] and folder.name.startswith(card.data.tags[-1])
    assert card.data.license == "other", "the weights are not under the licence of the code"
    assert card.text.lstrip().startswith("# ")


def test_the_hub_reads_licences_and_files_of_the_sample():
    data = DatasetCard.load(SAMPLE / "README.md").data
    papers = [json.loads(line) for split in SPLITS for line in _lines(split)]
    names = {"cc" if paper["license"] == "CC-BY" else paper["license"].lower() for paper in papers}
    assert set(data.license) == names and len(papers) == 150
    (config,) = data.configs
    assert {d["split"]: d["path"] for d in config["data_files"]} == {s: f"{s}.jsonl.gz" for s in SPLITS}


def _lines(split):
    with gzip.open(SAMPLE / f"{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(lines)


def test_the_card_of_the_sample_says_what_a_record_holds():
    keys = re.findall(r"^\| (`.*?) \|", (SAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(keys)) == list(json.loads(_lines("val")[0]))


def test_datasets_loads_the_sample_by_its_card(tmp_path):
    found = load_dataset(str(SAMPLE), cache_dir=str(tmp_path))
    corpus = load_corpus("pmc-sample")
    for split in SPLITS:
        assert found[split]["title"] == [document.title for document in corpus.split(split)]


def test_render_writes_front_matter_anew(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "trained" / "mem2mem"
    folder.mkdir(parents=True)
    for name in ("README.md", "config.json", "table.json"):
        shutil.copy(ROOT / "trained" / "mem2mem" / name, folder)
    (tmp_path / "trained" / "unscored").mkdir()
    (tmp_path / "trained" / "unscored" / "README.md").write_text("# Not scored yet\n", encoding="utf-8")
    for name in ("papers.md", "README.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    for module in (kept_tables, model_cards):
        monkeypatch.setattr(module, "project_root", lambda: tmp_path)
    monkeypatch.setattr(kept_tables, "trained_folder", lambda name: tmp_path / "trained" / name)
    whole, card = (folder / "README.md").read_text(encoding="utf-8"), folder / "README.md"
    card.write_text(whole.partition("\n---\n\n")[2], encoding="utf-8")  # without
    kept_tables.render()
    assert card.read_text(encoding="utf-8") == whole
    numbers = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    numbers["rows"][1]["scores"]["R-1"]["mean"] = 12.34
    (folder / "table.json").write_text(json.dumps(numbers), encoding="utf-8")
    kept_tables.render()
    assert [r.metric_value for r in ModelCard.load(card).data.eval_results].count(12.34) == 1
    assert (tmp_path / "trained" / "unscored" / "README.md").read_text(encoding="utf-8") == "# Not scored yet\n"
