"""Runs: a folder is all that is needed to use a model, and what cannot be opened is refused in one
line."""

import json
import shutil
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lib
from lib import score
from lib.data.corpus import Corpus, load_corpus
from lib.data.documents import SPLITS
from lib.data.pieces import Pieces
from lib.data.vocabulary import SLIDE, SLIDE_SYMBOL
from lib.decoding.search import extract, summarize
from lib.evaluation import scores
from lib.models.summarizer import Extractor
from lib.papers import PAPERS, resolve, starting_from
from lib.system.errors import RunError
from lib.system.files import cache_dir
from lib.training.folder import load_weights
from lib.training.loop import train
from tests.conftest import same_document

# widths of each paper's own model, and sizes of what it reads
TINY = {
    "mem2mem": (
        {"embedding": 8, "hidden": 8, "bottleneck": 8, "slots": 3, "compression": 4},
        {"section_tokens": 40, "summary_tokens": 20, "vocab_size": 300},
    ),
    "windowed": (
        {"embedding": 8, "hidden": 6},
        {"window": 40, "stride": 30, "source_tokens": 120, "summary_tokens": 20, "vocab_size": 300},
    ),
    "read_again": (
        {"embedding": 8, "hidden": 8},
        {"source_tokens": 60, "summary_tokens": 20, "vocab_size": 100, "source_vocab_size": 300, "fewest": 1},
    ),
    "hierarchical_transformer": (
        {"width": 16, "heads": 2, "inner": 16, "local_layers": 1},
        {"paragraphs": 3, "paragraph_tokens": 30, "summary_tokens": 30, "vocab_size": 400, "ranker_width": 8,
         "ranker_steps": 3},
    ),
}  # fmt: skip
RECORD = {
    "title": "Reading",
    "section_names": ["Introduction", "Conclusion"],
    "sections": [
        ["We read a long text with a neural network.", "It has many words."],
        ["The end is near."],
    ],
}


def tiny(paper: str, variant: str | None = None, **options):
    """A setup of a few words and widths: three steps, short summaries."""
    widths, sizes = TINY[paper]
    setup = resolve(paper, "demo", variant, steps=3, batch_size=2)
    given = {**sizes, "pointer_steps": 2, **options}
    return replace(
        setup,
        options=replace(
            setup.options, **{k: v for k, v in given.items() if hasattr(setup.options, k)}
        ),
        config={**setup.config, **widths},
        decode=replace(setup.decode, beam=2, min_length=4, max_length=12),
    )


@cache
def short_papers(name):
    """Two papers in each split, with a few sentences of each section: the test of all variants
    reads each often."""
    most = 12 if name.endswith(":paragraphs") else 100  # sections

    def short(paper):
        sections = [section[:5] for section in paper.sections[:most]]
        return replace(paper, sections=sections, section_names=paper.section_names[:most])

    corpus = load_corpus(name)
    return Corpus.from_records(**{split: [*map(short, corpus.split(split, 2))] for split in SPLITS})


def made_by(setup, folder, load=load_corpus):
    """A trained run, moved away from where it was made; its model, corpus and texts in memory."""
    corpus = load("aclsum:paragraphs" if setup.options.of_paragraphs else "aclsum")
    prepared = setup.prepare(corpus, 5, progress=False)
    model = setup.build(prepared)
    run = train(setup.recipe, model, prepared, setup.train, folder / "made" / "run", progress=False)
    shutil.move(run.folder, folder / "moved")
    load_weights(model, folder / "moved", setup.recipe.weights)
    texts = list(corpus.split("test", 5))
    return SimpleNamespace(
        folder=folder / "moved", setup=setup, model=model, corpus=prepared, texts=texts
    )


@pytest.fixture(scope="module", params=TINY)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        found = made_by(tiny(request.param), folder)
    shutil.rmtree(folder / "cache")
    return found


def same_texts(run, made):
    """The run makes of texts what the corpus holds, but for the [SLIDE] in its summaries."""
    slide = SLIDE if SLIDE_SYMBOL in run.options.symbols else -1
    for ours, prepared in zip(run.encode(made.texts), made.corpus["test"], strict=True):
        same_document(
            ours, replace(prepared, target=prepared.target[prepared.target != slide], labels=None)
        )


# ---------------------------------------------------------------------------------
# another training that starts from a run

OTHER = {"text": "Whales sing. They sing for hours, and dive.", "summary": "Whales sing and dive."}


def test_a_training_starts_with_the_vocabulary_and_the_weights_of_a_run(made, tmp_path):
    """Texts of another corpus are encoded with the run's words. Only the same start continues."""
    if made.corpus.encoder.chooser is not None:
        with pytest.raises(RunError, match="this run has a ranker"):
            starting_from(made.folder)
        return
    setup = starting_from(made.folder)
    assert (setup.variant, setup.decode) == (made.setup.variant, made.setup.decode)
    setup = replace(setup, train=replace(setup.train, steps=1))
    corpus = Corpus.from_records(train=[OTHER] * 2, val=[OTHER], test=[OTHER])
    prepared = setup.prepare(corpus, progress=False)
    assert prepared.encoder.digest() == made.corpus.encoder.digest()
    assert prepared.fingerprint != setup.prepare(corpus, 1, progress=False).fingerprint
    model = setup.build(prepared)
    for found, expected in zip(model.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(found, expected)
    run = train(setup.recipe, model, prepared, setup.train, tmp_path / "run", progress=False)
    start = run.config["start"]
    assert (start["run"], start["updates"]) == ("moved", 3) and start["weights"]
    opened = lib.load(run.folder)
    assert (opened.step, opened.updates) == (1, 4) and opened.all_hours >= opened.hours
    with pytest.raises(RunError, match=r"start\.\w+ is .+ there and None now"):
        recipe = replace(setup.recipe, start={})
        train(recipe, model, prepared, setup.train, run.folder, resume=True)
    wider = {**setup.config, "hidden": 10}
    with pytest.raises(RunError, match="weights of another model"):
        replace(setup, config=wider).build(prepared)


# ---------------------------------------------------------------------------------
# from the folder alone


def test_a_run_summarizes_as_the_model_in_memory(made):
    run = lib.load(made.folder)
    assert not run.model.training, "dropout is off"
    same_texts(run, made)
    expected = summarize(made.model, made.corpus["test"], made.corpus.vocabulary, made.setup.decode)
    found = run.summarize(made.texts, batch_size=2)
    assert [summary.sentences for summary in found] == expected
    assert any(expected) and str(found[0]) == found[0].text == " ".join(found[0].readable.sentences)
    assert not cache_dir().exists(), "nothing but the folder"


def test_what_a_run_says_of_itself(made):
    run, setup = lib.load(made.folder), made.setup
    assert run.step == 3 and run.options == made.corpus.options and run.decode == setup.decode
    assert run.vocabulary.words == made.corpus.vocabulary.words
    assert [(m["step"], m["split"]) for m in run.metrics] == [(3, "train"), (3, "val")]
    assert {**run.config, "made_with": ""} == json.loads(
        json.dumps(
            {
                "paper": setup.paper.name,
                "variant": setup.variant,
                "preset": "demo",
                "weights": "average" if setup.train.keep_best > 1 else "best",
                "model": vars(made.model.config),
                "options": vars(setup.options),
                "decode": vars(setup.decode),
                "train": vars(setup.train),
                "corpus": made.corpus.name,
                "documents": {"train": 5, "val": 5, "test": 5},
                "data": made.corpus.fingerprint,
                "encoder": made.corpus.encoder.digest(),
                "made_with": "",
            }
        )
    )
    assert set(run.config["made_with"]) == {"python", "torch", "numpy", "code"}


def test_texts_of_every_kind(made):
    """Plain text and Markdown, a record with sections, and one of paragraphs, in one call."""
    run = lib.load(made.folder)
    plain = "A text about reading. It has three sentences.\n\nThis is the last one."
    cluster = {
        "title": "Reading",
        "paragraphs": ["We read a long text.", {"text": "It is long.", "source": "a"}],
    }
    found = run.summarize([plain, f"# Title\n\n## First\n\n{plain}", RECORD, cluster])
    assert len(found) == 4 and all(summary.sentences for summary in found)
    (read,) = run.encode(run.documents([plain]))
    words = run.vocabulary.text(read.source.tolist(), read.unknown)
    assert "reading" in words and "three sentences" in words
    parts = ["a text about", "this is the last"]
    units = ["".join(unit).lower() for unit in run.summarize([plain])[0].source]
    assert [sum(part in unit for unit in units) for part in parts] == [1, 1], (
        "each stands in one unit"
    )


def test_the_name_of_a_file_is_no_text(made, tmp_path):
    path = tmp_path / "paper.md"
    path.write_text("It rains.", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"^text 1: .*paper\.md' is the name of a file: give its text"
    ):
        lib.load(made.folder).summarize([str(path)])


@pytest.mark.parametrize("text", ["", "  \n\n", {"sections": [[]]}])
def test_an_empty_text_is_named(made, text):
    run = lib.load(made.folder)
    with pytest.raises(ValueError, match=r"^text 2: "):
        run.summarize(["A text.", text])
    with pytest.raises(ValueError, match=r"as a list: \[text\]"):
        run.summarize("A text.")


def test_attention_is_of_the_words_that_are_shown(made):
    """Shapes, rows that are weights, and no difference to the summary."""
    run, config = lib.load(made.folder), made.model.config
    plain, found = run.summarize(made.texts), run.summarize(made.texts, attention=True)
    for document, without, summary in zip(run.encode(made.texts), plain, found):
        assert (without.sentences, without.score) == (summary.sentences, summary.score)
        assert without.attention == {} and without.copied == []
        tokens = [token for sentence in summary.tokens for token in sentence]
        t, n, units = len(tokens), len(document.source), len(document.sentence_lengths)
        assert sum(map(len, summary.readable.tokens)) == t, "as people read them, they are as many"
        assert [len(row) for row in summary.reading.rows] == document.sentence_lengths.tolist()
        assert len(summary.tokens) == len(summary.sentences) and "[SLIDE]" not in "".join(tokens)
        assert [len(unit) for unit in summary.source] == document.sentence_lengths.tolist()
        shapes = {
            "mem2mem": {
                "words": (t, n),
                "units": (t, units),
                "generate": (t,),
                "slots": (t, 3),
                "heads": (3, units),
            },
            "windowed": {
                "words": (t, n),
                "generate": (t,),
                "window": (t,),
                "windows": (len(range(0, n - 10, 30)), 2),
            },
            "read_again": {"words": (t, n), "generate": (t,)},
            "hierarchical_transformer": {"words": (t, n), "units": (t, units)},
        }[run.config["paper"]]
        assert {name: value.shape for name, value in summary.attention.items()} == shapes, config
        for name in {"words", "units", "slots", "heads"} & shapes.keys():
            assert np.allclose(summary.attention[name].sum(-1), 1, atol=1e-5), name
        if "generate" in shapes:
            assert (
                summary.copied == (summary.attention["generate"] < 0.5).tolist()
                and len(summary.copied) == t
            )


@pytest.mark.parametrize("paper", PAPERS)
def test_every_variant_opens(paper, tmp_path):
    """Its config and what it reads come back from JSON as they were; it summarizes and says where
    it looked."""
    for variant in PAPERS[paper].variants:
        setup = tiny(
            paper,
            variant,
            **({"ranking": "similarity"} if paper == "hierarchical_transformer" else {}),
        )
        given = PAPERS[paper].variants[variant].options.items()
        own = {k: v(getattr(setup.options, k)) if callable(v) else v for k, v in given}
        setup = replace(setup, options=replace(setup.options, **own))
        if variant == "T-DMCA":
            setup = replace(setup, config={**setup.config, "layers": 2, "block": 8})
        made = made_by(setup, tmp_path / str(len(list(tmp_path.iterdir()))), short_papers)
        run = lib.load(made.folder)
        assert not getattr(run.options, "graph", None) or made.corpus["test"][0].graph.max() > 0
        assert (run.model.config, run.options) == (made.model.config, made.corpus.options), variant
        same_texts(run, made)
        how = () if isinstance(made.model, Extractor) else (setup.decode,)
        expected = (summarize if how else extract)(
            made.model, made.corpus["test"], made.corpus.vocabulary, *how
        )
        found = run.summarize(made.texts, attention=True)
        assert [summary.sentences for summary in found] == expected, variant
        seen = [summary.attention["words"] for summary in found if "words" in summary.attention]
        assert all(np.allclose(weights.sum(-1), 1, atol=1e-5) for weights in seen), variant


@pytest.mark.slow
@pytest.mark.parametrize("made", ["mem2mem"], indirect=True)
def test_scores_on_another_corpus(made, tmp_path):
    """As many documents as are asked for, of its own corpus by default as many as in training;
    under its name."""
    seven = ["--documents", "7"]
    for corpus, asked, count in (("aclsum", [], 5), ("aclsum", seven, 7), ("pmc-sample", seven, 7)):
        output, page = tmp_path / f"{corpus}.json", tmp_path / f"{corpus}.html"
        given = ["run", str(made.folder), "--dataset", corpus, *asked, "--output", str(output)]
        score.main([*given, "--html", str(page)])
        found = json.loads(output.read_text(encoding="utf-8"))
        assert (found["corpus"], len(found["ids"])) == (corpus, count)
        report = page.read_text(encoding="utf-8")
        assert f"<h1>Mem2Mem, +read on {count} test documents of {corpus}</h1>" in report


def test_weights_by_name(made):
    """Those that the run says count by default; the mean of one checkpoint is that checkpoint."""
    run = lib.load(made.folder)
    names = (
        ("best", "last", "best-3", "average")
        if made.setup.train.keep_best > 1
        else ("best", "last")
    )
    for name in names:
        again = lib.load(made.folder, name)
        assert all(
            (a == b).all()
            for a, b in zip(run.model.state_dict().values(), again.model.state_dict().values())
        ), name
    with pytest.raises(RunError, match=r"holds no (best-STEP )?weights"):
        lib.load(made.folder, "best-2" if len(names) == 4 else "average")


@pytest.mark.parametrize("made", ["hierarchical_transformer"], indirect=True)
def test_a_run_may_read_more_when_it_is_scored(made, tmp_path, monkeypatch):
    """5 paragraphs of each cluster in place of 3; the run itself stays as it is."""
    read, summarized = [], scores.score_run
    monkeypatch.setattr(
        scores, "score_run", lambda run, *given: read.append(run) or summarized(run, *given)
    )
    command = [
        "run",
        str(made.folder),
        "--dataset",
        "aclsum:paragraphs",
        "--documents",
        "2",
        "--output",
    ]
    score.main([*command, str(tmp_path / "scores.json")])
    score.main([*command, str(tmp_path / "scores-scaled.json"), "--scaled", "paragraphs=5/3"])
    plain, longer = ([len(d.sentence_lengths) for d in run.encode(made.texts[:2])] for run in read)
    assert plain == [1 + 3, 1 + 3] and longer == [1 + 5, 1 + 5], "and the title"
    assert lib.load(made.folder).options.paragraphs == 3
    found = [
        json.loads((tmp_path / f"scores{how}.json").read_text(encoding="utf-8"))
        for how in ("", "-scaled")
    ]
    assert found[0]["ids"] == found[1]["ids"] == [document.id for document in made.texts[:2]]
    assert (tmp_path / "summaries-scaled.jsonl").exists()
    for wrong, message in (
        ("paragraph=2", "a number of ClusterOptions"),
        ("paragraphs=two", "two"),
    ):
        with pytest.raises(SystemExit, match=f"error: .*{message}"):
            score.main([*command, str(tmp_path / "s.json"), "--scaled", wrong])


# ---------------------------------------------------------------------------------
# what cannot be opened


def changed(*keys, to):
    """A damage: another value in config.json."""

    def damage(folder, made):
        path = folder / "config.json"
        config = values = json.loads(path.read_text(encoding="utf-8"))
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = to
        path.write_text(json.dumps(config), encoding="utf-8")

    return damage


def without_encoder(folder, made):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    del config["encoder"]
    path.write_text(json.dumps(config), encoding="utf-8")


def other_vocabulary(folder, made):
    """As many words in another order: its summaries would be other words."""
    path = folder / "vocabulary.txt"
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n", encoding="utf-8")
    else:
        texts = [
            sentence.lower()
            for d in load_corpus("aclsum").split("val", 20)
            for sentence in d.sentences
        ]
        (folder / "pieces.model").write_bytes(
            Pieces.train(texts, len(made.corpus.vocabulary)).model
        )


def written(pattern, content):
    def damage(folder, made):
        for path in folder.glob(pattern):
            path.write_bytes(content)

    return damage


def no_weights(folder, made):
    for path in folder.glob("[bl]*.safetensors"):
        path.unlink()


DAMAGES = {
    "no run": (lambda folder, made: (folder / "config.json").unlink(), "holds no run"),
    "no JSON": (written("config.json", b'{"paper": '), "config.json"),
    "no object": (written("config.json", b"[1, 2]"), "config.json"),
    "a part is missing": (without_encoder, "it has no 'encoder'"),
    "an unknown paper": (changed("paper", to="mem2mum"), "'mem2mum', did you mean 'mem2mem'?"),
    "an unknown variant": (changed("variant", to="+raed"), "unknown variant"),
    "an unknown field": (changed("decode", "beem", to=1), "config.json: decode: beem"),
    "another type": (changed("options", "lower", to="no"), "config.json: options: lower"),
    "a value out of range": (changed("decode", "beam", to=0), "config.json: decode: beam"),
    "another vocabulary": (other_vocabulary, "not the one that the run was trained with"),
    "a damaged vocabulary": (written("[vp]*.[tm]*", b"\xff\xfe"), "vocabulary"),
    "damaged weights": (written("[bl]*.safetensors", b"x"), "damaged"),
    "no weights": (no_weights, "holds no"),
    "weights of another size": (changed("model", "vocab_size", to=123), "weights of another model"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_refused(made, tmp_path, damage):
    folder = shutil.copytree(made.folder, tmp_path / "run")
    apply, message = DAMAGES[damage]
    apply(folder, made)
    with pytest.raises(RunError) as error:
        lib.load(folder)
    assert message in str(error.value) and str(folder) in str(error.value)


def test_a_run_that_was_stopped_before_its_first_validation(made, tmp_path):
    folder = shutil.copytree(made.folder, tmp_path / "run")
    for path in folder.glob("best*.safetensors"):
        path.unlink()
    with pytest.raises(RunError, match="holds no weights 'best'; there are: last"):
        lib.load(folder, "best")
    assert lib.load(folder, "last").step == 3
    changed("documents", "val", to=0)(folder, made)  # without validation there are no best weights
    assert lib.load(folder, "best").step == 3
