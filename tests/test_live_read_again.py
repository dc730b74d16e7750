"""The page in which Read-Again writes: its scripts give what the library gives, and a reader can use it."""

from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch

import lib
from companion.live.page import LivePaper, live_data, scripts, scripts_of, text_rules, write_live_page
from lib.data.batch import EncodedDocument, make_batch
from lib.data.corpora import Corpus, load_corpus
from lib.data.plain_text import parse_text
from lib.data.vocabulary import EOS, UNK
from lib.decoding.search import DecodeConfig
from lib.evaluation.hidden_words import nearest
from lib.evaluation.importance import by_erasure
from lib.evaluation.interventions import NOTHING, Change, changes_of, log_probs, without_unit
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.papers import resolve
from lib.papers.read_again.headlines import HeadlineOptions
from lib.papers.read_again.made_up import made_up_dispatches
from lib.system.errors import InputError
from lib.system.files import project_root
from lib.training.loop import train
from tests.conftest import RAGGED, VOCAB, double
from tests.test_read_again import SIZES
from tests.test_summarize import RECORDS
from tests.tools.axe import needs_axe
from tests.tools.devtools import Browser
from tests.tools.live import (
    ODD_TEXTS,
    READ_TOKENS,
    WRITTEN,
    best_of,
    check_axe,
    check_changed,
    check_keyboard,
    check_looks,
    check_written,
    effect_of,
    model_script,
    needs_browser,
    needs_node,
    read_by,
    small_run,
    summarized,
    text_of,
)  # fmt: skip


def small(**changes):
    model = double(ReadAgain, ReadAgainConfig(VOCAB, **{**SIZES, **changes})).float()
    return small_run(model, HeadlineOptions(vocab_size=VOCAB))


def with_own_ids(document: EncodedDocument) -> EncodedDocument:
    """A document of which the encoder reads other ids: of a vocabulary of 20."""
    return replace(document, source_ids=((document.source * 7) % 20).astype(np.int32))


DOCUMENTS = [*map(with_own_ids, RAGGED)]
VARIANTS = [
    {},
    {"encoder": "lstm"},
    {"encoder": "gru"},
    {"encoder": "bidirectional gru"},
    {"encoder": "read-again gru"},
    {"encoder": "read-again gru", "importance": "sigmoid", "single_importance": True},
    {"copy": False},
]


@needs_node
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_variant_writes_the_same(node, changes):
    written = check_written(node, small(**changes), DOCUMENTS, DecodeConfig(max_length=9, block_ngrams=2))
    copies = any(i >= VOCAB for ids in written for i in ids)
    assert copies or changes, "unknown words are copied"
    assert not copies or changes.get("copy", True)


@needs_node
@pytest.mark.parametrize("changes", [{"beam": 1}, {"beam": 3, "min_length": 9}, {"block_ngrams": 1}], ids=str)
def test_every_decoding_writes_the_same(node, changes):
    check_written(node, small(), DOCUMENTS, DecodeConfig(max_length=9, **changes))


def test_of_an_encoder_of_several_sentences_there_is_no_page():
    with pytest.raises(InputError, match="no live page of an encoder of several sentences, option 2"):
        scripts_of(small(encoder="option 2"))


def changes_for(model) -> dict:
    """What the page changes, and the same in the library."""
    known = changes_of(model)
    pairs = {
        "nothing": ({}, NOTHING),
        "no copying": ({"copying": False}, known["no copying"]),
        "[UNK] fed back": ({"fromContext": False}, known["[UNK] fed back"]),
        "text not told": ({"told": False}, known["text not told"]),
        "first unit erased": ({}, known["first unit erased"]),
    }
    gru = model.config.encoder == "read-again gru"
    return {**pairs, "importance averaged": ({"averaged": True}, known["importance averaged"])} if gru else pairs


@needs_node
@pytest.mark.parametrize("encoder", ["read-again lstm", "read-again gru"])
def test_changes_do_what_the_librarys_do(node, encoder):
    run = small(encoder=encoder)
    check_changed(node, run, [DOCUMENTS[0], DOCUMENTS[2]], changes_for(run.model))


@needs_node
@pytest.mark.parametrize("encoder", ["read-again lstm", "read-again gru"])
def test_what_a_step_shows_is_what_the_model_sees(node, encoder):
    run, document, tokens = small(encoder=encoder), DOCUMENTS[0], [2, 5, 13, 12]
    data = live_data(run)
    found = node(
        scripts_of(run),
        f"""{model_script(run)}{READ_TOKENS}
        const [output] = made.outputs, {{ near, importance }} = document;
        return {{ ...output, beta: [...output.beta], copied: [...output.copied], near, alpha: importance }};""",
        config=data["config"], weights=data["weights"], document=read_by(document), tokens=tokens,
    )  # fmt: skip
    batch = make_batch([document], VOCAB)
    with torch.no_grad():
        state = run.model.encode(batch)
        output, after = run.model.decode(torch.tensor([tokens]), state)
        seen = run.model.seen(output, state)
        mixed = run.model.distribution(output, after, len(document.unknown))[0]
        scores, copies = run.model.generate(output.features)[0, -1], output.copy[0, -1]
        both = torch.cat([scores, copies]).softmax(0)
    assert np.allclose(found["beta"], seen["words"][0, -1], atol=1e-5)
    assert np.allclose(found["copied"], both[VOCAB:], atol=1e-5)
    assert found["generate"] == pytest.approx(float(seen["generate"][0, -1]), abs=1e-5)
    assert found["scores"] == {
        "g": pytest.approx(float(scores.max()), abs=1e-4),
        "k": pytest.approx(float(copies.max()), abs=1e-4),
    }
    values, ids = mixed.topk(5)
    assert [i for i, _ in found["best"]["mixed"]] == ids.tolist()
    assert np.allclose([p for _, p in found["best"]["mixed"]], values, atol=1e-5)
    places = [document.source.tolist().index(VOCAB + n) for n in range(len(document.unknown))]
    assert [n["place"] for n in found["near"]] == places and found["from"] == places[0], "12 enters by its context"
    assert [[i for i, _ in n["words"]] for n in found["near"]] == nearest(run.model, state.embedded[0, places], 3)
    if encoder == "read-again gru":
        assert np.allclose(found["alpha"], seen["importance"][0], atol=1e-5)


READ = [HeadlineOptions(sentences=2, source_tokens=30), HeadlineOptions(sentences=1, lower=False, digits=False)]


@needs_node
def test_a_dispatch_is_cut_as_by_the_library(node):
    documents = [
        *made_up_dispatches(),
        parse_text("It cost ## dlrs, <unk> said in 1987. ٣ more.\n\n# Two\n\nIt rose."),
    ]
    given = [{"names": d.section_names, "sections": d.sections, "tokenised": d.tokenised} for d in documents]
    found = node(
        scripts("patterns", "words", "sentences", "plain_text"),
        """loadRules(data.rules);
        return data.options.map(options => data.documents.map(document => readHeadline(document, options).rows));""",
        rules=text_rules(), documents=given, options=list(map(asdict, READ)),
    )  # fmt: skip
    for options, rows in zip(READ, found):
        assert rows == [options.example(d).sentences for d in documents]


@pytest.fixture(scope="module")
def shipped():
    return lib.load(project_root() / "trained" / "read_again", device="cpu")


def ten_texts():
    return [*made_up_dispatches(), *list(load_corpus("docstrings").split("test"))[:4]]


@needs_node
@pytest.mark.parametrize("block", [0, 3])
def test_the_shipped_run_writes_ten_texts_the_same(node, shipped, block):
    check_written(node, shipped, shipped.encode(ten_texts()), replace(shipped.decode, block_ngrams=block))


@needs_node
def test_changes_of_the_shipped_run_do_what_the_librarys_do(node, shipped):
    check_changed(node, shipped, shipped.encode(made_up_dispatches()[:3]), changes_for(shipped.model))


# ---------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run of a small model that has learned four steps."""
    folder = tmp_path_factory.mktemp("read_again")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        setup = resolve("read_again", "demo", variant="read-again lstm + copy", steps=4, batch_size=2)
        corpus = setup.prepare(Corpus.from_records(train=RECORDS, val=RECORDS[:2], test=RECORDS[:2]), progress=False)
        train(setup.recipe, setup.build(corpus), corpus, setup.train, folder / "run", progress=False)
    return folder / "run"


@pytest.fixture(scope="module")
def page(trained, tmp_path_factory):
    papers = [LivePaper(d, "made up") for d in made_up_dispatches()[:2]]
    return write_live_page(tmp_path_factory.mktemp("live") / "page.html", lib.load(trained), "Read-Again", papers)


@needs_browser
def test_a_reader_sees_it_write_changes_it_and_erases_words(page, trained):
    run = lib.load(trained)
    (document,) = run.encode(made_up_dispatches()[:1])
    best = best_of(run, document)
    with Browser(page) as tab:
        tab.until(WRITTEN)
        ids = tab.run("view.own.ids")
        assert ids == best.ids and tab.run("view.own.logP") == pytest.approx(best.log_prob, abs=1e-3)
        tab.run("$('first').click(); document.activeElement.blur()")
        assert text_of(tab, "#place") == f"word 1 of {len(ids) + 1}"
        shown = tab.run("view.own.steps[0].output.generate")
        assert f"generate = {shown:.3f} (17)" in text_of(tab, "#switch")
        assert len(document.unknown) == tab.run("document.querySelectorAll('#contexts tr').length") - 1 > 0
        own = [replace(document, target=np.array([*ids, EOS]))]
        third = document.sentence_lengths[:2].sum()
        every_word = replace(own[0], sentence_lengths=np.ones(len(document.source), dtype=np.int32))
        pairs = changes_for(run.model)
        clicks = {
            "no copying": "$('uncopied').click()",
            "[UNK] fed back": "$('unembedded').click()",
            "text not told": "$('untold').click()",
            "first unit erased": "document.querySelector('.sentence button').click()",
        }
        for name, click in clicks.items():
            values = effect_of(tab, click)
            for key, change in (("own", NOTHING), ("changed", pairs[name][1])):
                expected = log_probs(run.model, own, change, only_known=True)[0]
                assert values[key] == pytest.approx(expected, abs=1e-4), (name, key)
        values = effect_of(tab, f"$('word').value = {third}; $('word').dispatchEvent(new Event('change'))")
        erased = Change("", document=partial(without_unit, unit=int(third)), only_known=True)
        assert values["changed"] == pytest.approx(log_probs(run.model, [every_word], erased)[0], abs=1e-4)
        tab.run("$('measure').click()")
        tab.until("view.read.worth")
        assert np.allclose(tab.run("[...view.read.worth]"), by_erasure(run.model, every_word), atol=1e-4)
        assert tab.run("document.querySelector('[name=shade]:checked').value") == "worth"
        assert tab.complaints() == []


@needs_browser
def test_texts_of_every_kind_can_be_pasted(page, trained):
    run = lib.load(trained)
    with Browser(page) as tab:
        tab.until(WRITTEN)
        for name, document in summarized(tab, run, ODD_TEXTS):
            assert tab.run("view.spans.length") == len(document.source), name
            assert tab.run("view.own.ids") == best_of(run, document).ids, name
        assert tab.complaints() == []


def test_the_dispatches_are_those_that_the_shipped_run_reads_on_its_page(shipped):
    dispatches = made_up_dispatches()
    assert len(dispatches) == 6 and all(d.title == d.summary[0] for d in dispatches)
    unknown = [word for d in shipped.encode(dispatches) for word in d.unknown]
    assert {"norbalt", "kestrel", "ostervik"} <= set(unknown) and UNK not in unknown


@needs_browser
def test_every_control_has_a_name_and_the_keyboard_reaches_it(page):
    check_keyboard(page)


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_in_both_themes_and_at_every_width(page, theme):
    check_looks(page, theme, change="unembedded")


@pytest.mark.long
@needs_axe
def test_axe_finds_nothing(page):
    check_axe(page, "light", change="unembedded")
