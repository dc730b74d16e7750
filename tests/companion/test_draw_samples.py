"""Tables of samples, and pictures of what runs look at."""

import json

import pytest

from companion import draw_samples
from companion.draw_samples import samples, samples_text
from lib.data.corpus import load_corpus
from lib.data.named_corpora import CORPORA, is_private
from tests.conftest import train_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of six rows, trained for two steps."""
    data = ["--dataset", "aclsum", "--limit", "3", "--steps", "2"]
    wanted = {
        "read": ["mem2mem", "--preset", "demo"],
        "comp": ["mem2mem", "--preset", "demo", "--variant", "+comp"],
        "hred": ["mem2mem", "--preset", "demo", "--variant", "hred"],
        "standard": ["windowed", "--preset", "demo CD_I"],
        "windows": ["windowed", "--preset", "demo CD_II"],
        "gru": ["read_again", "--preset", "demo papers", "--variant", "read-again gru + copy"],
    }
    return train_runs(
        tmp_path_factory.mktemp("runs"), {name: [*given, *data] for name, given in wanted.items()}
    )


def shown(*arguments, output):
    draw_samples.main([*map(str, arguments), "--dataset", "aclsum", "--output", str(output)])
    return json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))


def test_samples(runs, tmp_path, capsys):
    given = ["mem2mem_table6", f"HRED={runs / 'hred'}", f"Mem2Mem={runs / 'read'}"]
    found = shown(*given, output=tmp_path / "t.json")
    assert (found["samples"], found["corpus"], len(found["documents"])) == (
        "mem2mem_table6",
        "aclsum",
        2,
    )
    texts = list(load_corpus("aclsum").split("test", 2))
    labels = [
        f"{row}, {how}"
        for row in ("HRED", "Mem2Mem")
        for how in ("plain beam search", "trigram blocking")
    ]
    for number, (document, text) in enumerate(zip(found["documents"], texts), 1):
        assert document["reference"] == " ".join(text.summary) and document["number"] == number
        assert document["title"] == text.title and document["text"] == " ".join(text.sentences[:3])
        assert list(document["summaries"]) == labels and all(document["summaries"].values())
    first = found["documents"][0]["summaries"]
    run = draw_samples.lib.load(runs / "read", device="cpu")
    assert first["Mem2Mem, trigram blocking"] == str(run.summarize(texts[:1])[0]), (
        "the preset's own rule"
    )
    assert first["Mem2Mem, plain beam search"] != first["Mem2Mem, trigram blocking"]
    told = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert (
        told == samples_text(found)
        and f"`{texts[0].id}`" in told
        and "*HRED, trigram blocking*: " in told
    )
    assert told.strip() == capsys.readouterr().out.strip()


def test_texts_that_may_not_be_published(runs):
    """What stands for the document is its number."""
    texts = list(load_corpus("aclsum").split("test", 1))
    run = draw_samples.lib.load(runs / "standard", device="cpu")
    for corpus in ("sumpubmed", "reuters", "newsroom:abstractive", "gigaword", "duc2004"):
        made = samples("windowed_text", {"standard": run}, texts, corpus)
        assert set(made["documents"][0]) == {"number", "summaries"}
        assert texts[0].title not in samples_text(made) and "**Document 1**" in samples_text(made)
    assert not is_private("aclsum") and not is_private("scisummnet")
    assert [
        name
        for name, found in CORPORA.items()
        if "ublish none" in found.licence and not found.private
    ] == []


@pytest.mark.parametrize(
    ("name", "kind"), [("mem2mem_figure3", "heads"), ("mem2mem_figure4", "slots")]
)
def test_the_memory_of_runs(runs, tmp_path, name, kind):
    other = ["no L(read)=" + str(runs / "comp")] if kind == "slots" else []
    found = shown(
        name, f"Mem2Mem={runs / 'read'}", *other, "--documents", 2, output=tmp_path / "f.png"
    )
    assert (tmp_path / "f.png").stat().st_size > 1000 and found["plot"] == "attention_maps"
    titles = [
        f"{label}, paper {n}"
        for label in ("Mem2Mem", *(["no L(read)"] if other else []))
        for n in (1, 2)
    ]
    assert [panel["title"] for panel in found["panels"]] == titles
    run = draw_samples.lib.load(runs / "read", device="cpu")
    texts = list(load_corpus("aclsum").split("test", 2))
    for panel, summary in zip(found["panels"], run.summarize(texts, attention=True)):
        weights = summary.attention[kind] if kind == "heads" else summary.attention[kind].T
        assert len(panel["weights"]) == 6 and panel["weights"] == pytest.approx(weights, abs=1e-3)
    assert found["top"] == pytest.approx(
        max(w for p in found["panels"] for row in p["weights"] for w in row), abs=1e-3
    )


@pytest.mark.parametrize(
    ("name", "label"), [("windowed_figure1", "standard"), ("windowed_figure2", "windows")]
)
def test_the_largest_weights(runs, tmp_path, name, label):
    found = shown(name, f"{label}={runs / label}", output=tmp_path / "f.png")
    run = draw_samples.lib.load(runs / label, device="cpu")
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
    found = shown("read_again_figure4", *given, output=tmp_path / "f.png")
    run = draw_samples.lib.load(runs / "gru", device="cpu")
    summaries = run.summarize(load_corpus("aclsum").split("test", 2), attention=True)
    for panel, summary in zip(found["panels"], summaries, strict=True):
        words = [word.strip() for sentence in summary.source for word in sentence]
        assert panel["title"] == str(summary) and panel["words"] == words
        assert panel["weights"] == pytest.approx(summary.attention["importance"], abs=1e-4)


def test_what_cannot_be_shown(runs, tmp_path):
    where = ["--dataset", "aclsum", "--output", str(tmp_path / "x.png")]
    cases = {
        ("mem2mem_figure9", "a=b"): "unknown table 'mem2mem_figure9', did you mean 'mem2mem_figure",
        (
            "mem2mem_figure3",
            "Mem2Mum=b",
        ): "unknown row of mem2mem_figure3 'Mem2Mum', did you mean 'Mem2Mem'",
        ("mem2mem_figure3", f"Mem2Mem={runs / 'hred'}"): "hred.*has no heads to draw",
        ("mem2mem_figure3", f"Mem2Mem={tmp_path}"): "holds no run",
    }
    for given, message in cases.items():
        with pytest.raises(SystemExit, match=message):
            draw_samples.main([*given, *where])
    assert not (tmp_path / "x.png").exists()
