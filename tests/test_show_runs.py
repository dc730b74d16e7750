"""Tables of samples, and pictures of what runs look at."""

import json

import numpy as np
import pytest

from companion import show_runs
from companion.show_runs import samples, samples_text
from lib.data.corpora import load_corpus
from lib.data.registry import CORPORA, is_private
from lib.decoding.readable import Readable, Reading
from lib.decoding.run import Summary
from lib.papers import PAPERS, made_of_runs_named
from lib.system.files import project_root
from lib.train import main as train_main

NAMES = [name for of in PAPERS.values() for name in (*of.samples, *of.run_figures)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of six rows, trained for two steps."""
    folder = tmp_path_factory.mktemp("runs")
    wanted = {
        "read": ["mem2mem", "--preset", "demo"],
        "comp": ["mem2mem", "--preset", "demo", "--variant", "+comp"],
        "hred": ["mem2mem", "--preset", "demo", "--variant", "hred"],
        "standard": ["windowed", "--preset", "demo CD_I"],
        "windows": ["windowed", "--preset", "demo CD_II"],
        "gru": ["read_again", "--preset", "demo papers", "--variant", "read-again gru + copy"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        for name, given in wanted.items():
            data = ["--dataset", "aclsum", "--limit", "3", "--steps", "2"]
            train_main([*given, *data, "--output", str(folder / name)])
    return folder


def shown(*arguments, output):
    show_runs.main([*map(str, arguments), "--dataset", "aclsum", "--output", str(output)])
    return json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))


def test_samples(runs, tmp_path, capsys):
    given = ["samples", "mem2mem_table6", f"HRED={runs / 'hred'}", f"Mem2Mem={runs / 'read'}"]
    found = shown(*given, output=tmp_path / "t.json")
    assert (found["samples"], found["corpus"], len(found["documents"])) == ("mem2mem_table6", "aclsum", 2)
    texts = list(load_corpus("aclsum").split("test", 2))
    labels = [f"{row}, {how}" for row in ("HRED", "Mem2Mem") for how in ("plain beam search", "trigram blocking")]
    for number, (document, text) in enumerate(zip(found["documents"], texts), 1):
        assert document["reference"] == " ".join(text.summary) and document["number"] == number
        assert document["title"] == text.title and document["text"] == " ".join(text.sentences[:3])
        assert list(document["summaries"]) == labels and all(document["summaries"].values())
    first = found["documents"][0]["summaries"]
    run = show_runs.lib.load(runs / "read", device="cpu")
    assert first["Mem2Mem, trigram blocking"] == str(run.summarize(texts[:1])[0]), "the preset's own rule"
    assert first["Mem2Mem, plain beam search"] != first["Mem2Mem, trigram blocking"]
    told = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert told == samples_text(found) and f"`{texts[0].id}`" in told and "*HRED, trigram blocking*: " in told
    assert told.strip() == capsys.readouterr().out.strip()


def test_a_row_that_is_no_run(runs):
    texts = list(load_corpus("aclsum").split("test", 2))
    run = show_runs.lib.load(runs / "hred", device="cpu")
    found = samples("hierarchical_table5", {"HT": run}, texts, "aclsum")["documents"][1]["summaries"]
    assert found["Lead (3 sentences)"] == " ".join(texts[1].sentences[:3]) and "FT" not in found


def test_texts_that_may_not_be_published(runs):
    """What stands for the document is its number."""
    texts = list(load_corpus("aclsum").split("test", 1))
    run = show_runs.lib.load(runs / "standard", device="cpu")
    for corpus in ("sumpubmed", "reuters", "newsroom:abstractive", "gigaword", "duc2004"):
        made = samples("windowed_text", {"standard": run}, texts, corpus)
        assert set(made["documents"][0]) == {"number", "summaries"}
        assert texts[0].title not in samples_text(made) and "**Document 1**" in samples_text(made)
    assert not is_private("aclsum") and not is_private("scisummnet")
    assert [name for name, found in CORPORA.items() if "ublish none" in found.licence and not found.private] == []


@pytest.mark.parametrize(("name", "kind"), [("mem2mem_figure3", "heads"), ("mem2mem_figure4", "slots")])
def test_the_memory_of_runs(runs, tmp_path, name, kind):
    other = ["no L(read)=" + str(runs / "comp")] if kind == "slots" else []
    found = shown("attention", name, f"Mem2Mem={runs / 'read'}", *other, "--documents", 2, output=tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 1000 and found["plot"] == "attention_maps"
    titles = [f"{label}, paper {n}" for label in ("Mem2Mem", *(["no L(read)"] if other else [])) for n in (1, 2)]
    assert [panel["title"] for panel in found["panels"]] == titles
    run = show_runs.lib.load(runs / "read", device="cpu")
    texts = list(load_corpus("aclsum").split("test", 2))
    for panel, summary in zip(found["panels"], run.summarize(texts, attention=True)):
        weights = summary.attention[kind] if kind == "heads" else summary.attention[kind].T
        assert len(panel["weights"]) == 6 and panel["weights"] == pytest.approx(weights, abs=1e-3)
    assert found["top"] == pytest.approx(
        max(w for p in found["panels"] for row in p["weights"] for w in row), abs=1e-3
    )


def test_a_row_of_a_panel_is_a_slot():
    """Its columns are the words of the summary."""
    slots = {"slots": np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])}
    reading = Reading([], [], 0, 0, [], 0.0)
    found = Summary([], 0.0, [], [], [], slots, readable=Readable([], []), reading=reading)
    assert show_runs._slots(found, "")["weights"].tolist() == [[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]]


@pytest.mark.parametrize(("name", "label"), [("windowed_figure1", "standard"), ("windowed_figure2", "windows")])
def test_the_largest_weights(runs, tmp_path, name, label):
    found = shown("attention", name, f"{label}={runs / label}", output=tmp_path / "f.png")
    run = show_runs.lib.load(runs / label, device="cpu")
    (summary,) = run.summarize(load_corpus("aclsum").split("test", 1), attention=True)
    words = summary.attention["words"]
    assert found["places"] == words.argmax(1).tolist() and found["words"] == words.shape[1]
    assert found["weights"] == pytest.approx(words.max(1), abs=1e-3)
    if label == "standard":
        assert set(found["windows"]) == {0} and found["window"] == found["words"]
    else:
        assert found["windows"] == summary.attention["window"].tolist() and found["window"] == 120


def test_the_importance_of_words(runs, tmp_path):
    """Above each text what is written of it."""
    given = [f"Read-Again GRU + copy={runs / 'gru'}", "--documents", 2]
    found = shown("attention", "read_again_figure4", *given, output=tmp_path / "f.png")
    run = show_runs.lib.load(runs / "gru", device="cpu")
    summaries = run.summarize(load_corpus("aclsum").split("test", 2), attention=True)
    for panel, summary in zip(found["panels"], summaries, strict=True):
        words = [word.strip() for sentence in summary.source for word in sentence]
        assert panel["title"] == str(summary) and panel["words"] == words
        assert panel["weights"] == pytest.approx(summary.attention["importance"], abs=1e-4)


def test_the_kept_importance_is_what_the_page_says():
    """What happened is more important than the names, articles and marks."""
    kept = project_root() / "figures" / "read_again_figure4.json"
    panels = json.loads(kept.read_text(encoding="utf-8"))["panels"]
    order = [[word for _, word in sorted(zip(panel["weights"], panel["words"]))] for panel in panels]
    assert (order[0][0], order[2][0]) == ("norbalt", "kestrel"), "the companies that begin a sentence"
    assert [set(words[-2:]) for words in order[1:5]] == [
        {"discount", "rate"}, {"price", "pays"}, {"cocoa", "delayed"}, {"strike", "talks"},
    ]  # fmt: skip
    for panel in panels:
        light = [w for word, w in zip(panel["words"], panel["weights"]) if word in ("the", "a", "of", ".")]
        assert max(light) < np.mean(panel["weights"])
    every = [weight for panel in panels for weight in panel["weights"]]
    assert (round(min(every), 2), round(max(every), 2)) == (0.59, 0.70)
    assert sum(panel["title"].startswith("u . s .") for panel in panels) == 4


def test_what_cannot_be_shown(runs, tmp_path):
    where = ["--dataset", "aclsum", "--output", str(tmp_path / "x.png")]
    cases = {
        ("attention", "mem2mem_figure9", "a=b"): "unknown table 'mem2mem_figure9', did you mean 'mem2mem_figure",
        ("attention", "mem2mem_figure3", "Mem2Mum=b"): "'Mem2Mum=b': a run is LABEL=FOLDER.*did you mean 'Mem2Mem'",
        ("samples", "mem2mem_figure3", "Mem2Mem=b"): "mem2mem_figure3 is a figure of attention",
        ("attention", "mem2mem_table6", "Mem2Mem=b"): "mem2mem_table6 is a table of samples",
        ("attention", "mem2mem_figure3", f"Mem2Mem={runs / 'hred'}"): "hred.*has no heads to draw",
        ("attention", "mem2mem_figure3", f"Mem2Mem={tmp_path}"): "holds no run",
    }
    for given, message in cases.items():
        with pytest.raises(SystemExit, match=message):
            show_runs.main([*given, *where])
    assert not (tmp_path / "x.png").exists()


def test_what_is_shown_replaces_no_other_file(tmp_path):
    """Before a run is loaded."""
    (tmp_path / "config.json").write_text('{"paper": "mem2mem"}', encoding="utf-8")
    for name in ("README.md", "photo.png"):
        (tmp_path / name).write_bytes(b"another")
    (tmp_path / "folder.png").mkdir()
    samples, attention = ("samples", "mem2mem_table6"), ("attention", "mem2mem_figure3")
    cases = [
        (samples, "config.json", "config.json: no table of samples: it has no 'samples', 'documents'"),
        (samples, "README.json", "--output would replace .*README.md: it is of no table of samples"),
        (samples, "README.md", "the same file is written beside the table of samples"),
        (attention, "config.png", "config.json: no figure: it has no 'plot'"),
        (attention, "photo.png", "--output would replace .*photo.png: it is of no figure"),
        (attention, "folder.png", "folder.png: Is a directory"),
    ]
    before = sorted((path.name, path.is_file() and path.read_bytes()) for path in tmp_path.iterdir())
    for command, name, message in cases:
        with pytest.raises(SystemExit, match=message):
            show_runs.main([*command, "Mem2Mem=nowhere", "--dataset", "aclsum", "--output", str(tmp_path / name)])
    assert sorted((path.name, path.is_file() and path.read_bytes()) for path in tmp_path.iterdir()) == before


def test_which_rows_are_of_a_kept_run():
    """Of the paper's own model."""
    kept = {
        name: [row.label for row in made_of_runs_named(name)[1].rows if row.run and of.is_kept(row.run)]
        for name in NAMES
        for of in [made_of_runs_named(name)[0]]
    }
    assert kept["mem2mem_figure3"] == kept["mem2mem_table6"] == ["Mem2Mem"]
    assert kept["windowed_figure1"] == [] and kept["windowed_figure2"] == kept["windowed_text"] == ["windows"]
    assert kept["read_again_table5"] == ["with copying"]


def test_the_kept_figures_are_of_the_trained_run():
    """Ten heads, each on one sentence: in every paper the first three, and three in a row that are others in each."""
    kept = project_root() / "figures" / "mem2mem_trained_figure3.json"
    panels = json.loads(kept.read_text(encoding="utf-8"))["panels"]
    assert len(panels) == 4
    chosen = [[row.index(max(row)) for row in panel["weights"]] for panel in panels]
    assert all([heads[slot] for slot in (0, 2, 6)] == [0, 1, 2] for heads in chosen)
    seams = [[heads[slot] for slot in (9, 3, 5)] for heads in chosen]
    assert all(seam == [seam[0], seam[0] + 1, seam[0] + 2] for seam in seams) and len({seam[0] for seam in seams}) > 2
    weights = [max(row) for panel in panels for row in panel["weights"]]
    assert sum(weight > 0.9 for weight in weights) >= len(weights) - 1


def test_papers_that_a_run_has_learned_from_are_not_shown(tmp_path, monkeypatch, capsys):
    """In the place of each stands the next one."""
    shown_documents = []

    def no_samples(name, runs, documents, corpus):
        shown_documents.extend(documents)
        return {"title": "", "corpus": corpus, "documents": []}

    monkeypatch.setattr(show_runs, "samples", no_samples)
    every = [d.id for d in load_corpus("pmc-sample").split("test")]
    place = every.index("PMC4784345")
    kept = f"Mem2Mem={project_root() / 'trained' / 'mem2mem'}"
    given = ["--dataset", "pmc-sample", "--documents", str(place + 1), "--output", str(tmp_path / "T.json")]
    show_runs.main(["samples", "mem2mem_table6", kept, *given])
    assert [d.id for d in shown_documents] == [*every[:place], every[place + 1]]
    assert "pmc-sample: without PMC4784345, which the model has learned from" in capsys.readouterr().err
