"""The page in which windowed attention writes: its scripts give what the library gives, and a reader can use it."""

import json
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch

import lib
from companion.live.page import LivePaper, live_data, scripts, scripts_of, text_rules, write_live_page
from lib.data.batch import make_batch
from lib.data.corpora import Corpus, load_corpus
from lib.data.plain_text import parse_text
from lib.data.vocabulary import EOS, SLIDE
from lib.decoding.search import DecodeConfig
from lib.evaluation.interventions import NOTHING, TEXTS, Change, changes_of, log_probs, without_unit
from lib.models.windowed import Windowed, WindowedConfig, count_windows
from lib.papers import resolve
from lib.papers.windowed.windows import ArticleOptions
from lib.system.files import project_root
from lib.training.loop import train
from tests.conftest import VOCAB, double
from tests.test_summarize import RECORDS
from tests.test_summarize import TEXT as PAPER
from tests.test_windowed import SIZES
from tests.test_windowed import TEXTS as RAGGED
from tests.tools.axe import needs_axe
from tests.tools.devtools import Browser
from tests.tools.live import (
    LONG_TEXT,
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
    exact_log_prob,
    model_script,
    needs_browser,
    needs_node,
    read_by,
    small_run,
    summarized,
    text_of,
)  # fmt: skip

OPTIONS = ArticleOptions(vocab_size=VOCAB, window=SIZES["window"], stride=SIZES["stride"])


def small(**changes):
    model = double(Windowed, WindowedConfig(VOCAB, **{**SIZES, "longest": 4, **changes})).float()
    model.pointer.vocabulary.bias.data[SLIDE] += 8  # so that it moves
    return small_run(model, OPTIONS)


VARIANTS = [
    {},
    {"window": None, "stride": None},
    {"windowing": "static"},
    {"windowing": "static", "reading": "code"},
    {"encode": "stream"},
    {"encode": "stream", "stride": 4},
    {"encode": "stream", "windowing": "static"},
]
DECODINGS = [{"block_ngrams": 2, "min_length": 5}, {"beam": 1}, {"beam": 3, "forbidden": (0, 1, 2, SLIDE)}]


@needs_node
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_variant_writes_the_same(node, changes):
    written = check_written(node, small(**changes), RAGGED, DecodeConfig(max_length=9, block_ngrams=2))
    dynamic = changes.get("windowing") != "static" and "window" not in changes
    assert any(SLIDE in ids for ids in written) == dynamic, "the window moves"


@needs_node
@pytest.mark.parametrize("changes", DECODINGS, ids=str)
def test_every_decoding_writes_the_same(node, changes):
    check_written(node, small(), RAGGED, DecodeConfig(max_length=9, **changes))


@contextmanager
def as_kind(model, kind, **config):
    """The model as one of another class, with another configuration, for a while."""
    own = type(model), model.config
    model.__class__, model.config = kind, replace(model.config, **config)
    try:
        yield
    finally:
        model.__class__, model.config = own


class Stays(Windowed):
    def _windows(self, tokens, state):
        return torch.zeros_like(tokens)


class SeesAll(Windowed):
    def _last_window(self, lengths):
        return count_windows(lengths, *self.sizes) - 1


def seeing_all(model):
    SeesAll.sizes = model.config.window, model.config.stride
    return as_kind(model, SeesAll, window=None, stride=None)


def changes_for(model, stream: bool = False) -> dict:
    """What the page changes, and the same in the library."""
    moved = partial(Change, "", only_known=True)  # a word of the text alone may be out of sight
    whole = {"everything in sight": ({"everything": True}, moved(model=seeing_all))}
    second = Change("the second unit is not there", document=partial(without_unit, unit=1), only_known=True)
    return {
        "nothing": ({}, moved()),
        "no copying": ({"copying": False}, changes_of(model)["no copying"]),
        "stays": ({"stays": True}, moved(model=lambda m: as_kind(m, Stays))),
        "static": ({"windowing": "static"}, moved(model=lambda m: as_kind(m, Windowed, windowing="static"))),
        "first unit erased": ({}, changes_of(model)["first unit erased"]),
        "second unit erased": ({}, second),
        **({} if stream else whole),
    }


@needs_node
@pytest.mark.parametrize("encode", ["whole", "stream"])
def test_changes_do_what_the_librarys_do(node, encode):
    run = small(encode=encode, longest=11)
    check_changed(node, run, [RAGGED[0], RAGGED[2]], changes_for(run.model, encode == "stream"))


@needs_node
def test_what_a_step_shows_is_what_the_model_sees(node):
    run, document, tokens = small(), RAGGED[0], [2, SLIDE, 12, 7]
    data = live_data(run)
    found = node(
        scripts_of(run),
        f"""{model_script(run)}{READ_TOKENS}
        const [output] = made.outputs;
        return {{ ...output, alpha: [...output.alpha] }};""",
        config=data["config"], weights=data["weights"], document=read_by(document), tokens=tokens,
    )  # fmt: skip
    batch = make_batch([document], VOCAB)
    with torch.no_grad():
        state = run.model.encode(batch)
        output, _ = run.model.decode(torch.tensor([tokens]), state)
        mixed = run.model.distribution(output, state, len(document.unknown))[0]
        seen = run.model.seen(output, state)
        scores = run.model.pointer.vocabulary(output.features[0, -1])
        before = run.model.decode(torch.tensor([tokens[:-1]]), state)[1]
        hidden = run.model.decode(torch.tensor([tokens[-1:]]), before)[1].hidden[0]
    assert (found["window"], found["begin"], found["end"], found["last"]) == (1, 3, 7, 3)
    words = seen["words"][0, -1].numpy()
    assert np.allclose(found["alpha"], words[3:7], atol=1e-5) and words[3:7].sum() == pytest.approx(1)
    assert found["slide"] == pytest.approx(float(mixed[SLIDE]), abs=1e-5)
    assert found["generate"] == pytest.approx(float(seen["generate"][0, -1]), abs=1e-5)
    assert found["logit"] == pytest.approx(float(scores.max()), abs=1e-4)
    assert found["score"] == pytest.approx(float((state.words[0, 3:7] @ hidden).max()), abs=1e-4)
    assert found["state"] == pytest.approx(float(hidden.abs().mean()), abs=1e-5)
    values, ids = mixed.topk(5)
    assert [i for i, _ in found["best"]["mixed"]] == ids.tolist()
    assert np.allclose([p for _, p in found["best"]["mixed"]], values, atol=1e-5)
    values, ids = scores.softmax(-1).topk(5)
    assert [i for i, _ in found["best"]["generated"]] == ids.tolist()


READ = [
    ArticleOptions(source_tokens=60, section_words=20),
    ArticleOptions(source_tokens=None, lower=False),
    ArticleOptions(source_tokens=7),
]


@needs_node
@pytest.mark.parametrize("name", ["pmc-sample", "aclsum"])
def test_an_article_is_cut_as_by_the_library(node, name):
    documents = list(load_corpus(name).split("test"))[:3]
    given = [{"names": d.section_names, "sections": d.sections, "tokenised": d.tokenised} for d in documents]
    found = node(
        scripts("patterns", "words", "sentences", "plain_text"),
        """loadRules(data.rules);
        return data.options.map(options => data.documents.map(document => all(readArticle(document, options))));""",
        rules=text_rules(), documents=given, options=list(map(asdict, READ)),
    )  # fmt: skip
    for options, read in zip(READ, found):
        assert [text["rows"] for text in read] == [options.example(d).sentences for d in documents]
        for text, document in zip(read, documents):
            assert len(text["of"]) == len(text["rows"]) and set(text["of"]) <= set(document.section_names)


@pytest.mark.long
@needs_node
@pytest.mark.parametrize("block", [0, 3])
def test_the_shipped_run_writes_ten_papers_the_same(node, block):
    run = lib.load(project_root() / "trained" / "windowed", device="cpu")
    documents = run.encode(list(load_corpus("pmc-sample").split("test"))[:10])
    written = check_written(node, run, documents, replace(run.decode, block_ngrams=block))
    assert any(SLIDE in ids for ids in written)


@pytest.mark.long
@needs_node
def test_changes_of_the_shipped_run_do_what_the_librarys_do(node):
    run = lib.load(project_root() / "trained" / "windowed", device="cpu")
    documents = run.encode(list(load_corpus("pmc-sample").split("test"))[:3])
    # no reference of a corpus moves the window: what is changed of that changes nothing here
    check_changed(node, run, documents, changes_for(run.model), alike=True)


# ---------------------------------------------------------------------------------------------------- in a browser

SECTIONS = "## Introduction\n\n{}\n\n## Methods\n\n{}\n\n## Conclusion\n\n{}"
LONG = SECTIONS.format(PAPER.replace("\n", " "), "What was done was done. " * 30, "It ends well. " * 20)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run of a small model that has learned eight steps."""
    folder = tmp_path_factory.mktemp("windowed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        setup = resolve("windowed", "demo", steps=8, batch_size=2, learning_rate=0.05)
        corpus = setup.prepare(Corpus.from_records(train=RECORDS, val=RECORDS[:2], test=RECORDS[:2]), progress=False)
        train(setup.recipe, setup.build(corpus), corpus, setup.train, folder / "run", progress=False)
    return folder / "run"


@pytest.fixture(scope="module")
def page(trained, tmp_path_factory):
    papers = [LivePaper(parse_text(LONG, "a"), "A source"), LivePaper(parse_text(PAPER, "b"))]
    return write_live_page(
        tmp_path_factory.mktemp("live") / "page.html", lib.load(trained), "Windowed, dynamic", papers
    )


def streaming(run):
    """The run with every word, in a stream."""
    model = Windowed(replace(run.model.config, encode="stream")).eval()
    model.load_state_dict(run.model.state_dict())
    options = replace(run.options, source_tokens=None, section_words=None)
    return model, replace(run, model=model, encoder=replace(run.encoder, options=options))


@needs_browser
def test_a_reader_sees_the_window_move_and_changes_the_model(page, trained):
    run = lib.load(trained)
    (document,) = run.encode([parse_text(LONG, "a")])
    best = best_of(run, document)
    with Browser(page) as tab:
        tab.until(WRITTEN)
        ids = tab.run("view.own.ids")
        assert ids == best.ids and tab.run("view.own.logP") == pytest.approx(best.log_prob, abs=1e-3)
        tab.run("$('first').click(); document.activeElement.blur()")
        tab.key("ArrowRight")
        assert text_of(tab, "#place") == f"word 2 of {len(ids) + 1}"
        inside = "[...document.querySelectorAll('#text .word')].flatMap((w, i) => w.matches('.inside') ? [i] : [])"
        assert tab.run(inside) == list(range(run.model.config.window))
        slide = tab.run("view.own.steps[1].output.slide")
        assert f"{slide:.3f}" in text_of(tab, "#slides") or slide < 0.001
        assert f"window 1 of {tab.run('view.document.last') + 1}" in text_of(tab, "#equations")
        changed = run.encode([TEXTS["sections backwards"].text(parse_text(LONG, "a"))])
        known = [i if i < len(run.vocabulary) else 1 for i in ids]
        own = [replace(document, target=np.array([*known, EOS]))]
        pairs = changes_for(run.model)
        clicks = {"no copying": "uncopied", "stays": "stays", "static": "static", "everything in sight": "everything"}
        for name, box in clicks.items():
            values = effect_of(tab, f"$('{box}').click()")
            for key, change in (("own", NOTHING), ("changed", pairs[name][1])):
                expected = log_probs(run.model, own, change, only_known=True)[0]
                assert values[key] == pytest.approx(expected, abs=1e-4), (name, key)
        effect_of(tab, "$('barred').click()")
        values = effect_of(tab, "$('order').value = 1; $('order').dispatchEvent(new Event('change'))")
        backwards = [replace(changed[0], target=own[0].target)]
        assert values["changed"] == pytest.approx(log_probs(run.model, backwards, only_known=True)[0], abs=1e-4)
        assert tab.complaints() == []


@needs_browser
def test_texts_of_every_kind_are_streamed(page, trained):
    model, run = streaming(lib.load(trained))
    with Browser(page) as tab:
        tab.until(WRITTEN)
        tab.run("say(''); view.own = null; $('reading').value = 1; $('reading').dispatchEvent(new Event('change'))")
        tab.until(f"{WRITTEN} && view.own?.done")
        assert tab.run("$('everything').disabled"), "a stream never has all words"
        for name, document in summarized(tab, run, ODD_TEXTS | LONG_TEXT):
            assert tab.run("view.spans.length") == len(document.source), name
            best = best_of(run, document, model)
            ids = tab.run("view.own.ids")
            if ids != best.ids:  # a text that says one thing again and again has several best summaries
                ours, theirs = (exact_log_prob(model, document, i) / (len(i) + 1) for i in (ids, best.ids))
                assert ours == pytest.approx(theirs, abs=1e-5), name
        assert tab.run("view.spans.length") == 110_000 and json.loads(tab.run("JSON.stringify(view.inside)"))[1] > 0
        assert tab.complaints() == []


@needs_browser
def test_every_control_has_a_name_and_the_keyboard_reaches_it(page):
    check_keyboard(page)


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_in_both_themes_and_at_every_width(page, theme):
    check_looks(page, theme, change="stays")


@pytest.mark.long
@needs_axe
def test_axe_finds_nothing(page):
    check_axe(page, "light", change="stays")
