"""The pages in which Mem2Mem, windowed attention and Read-Again write: their scripts compute what the library
computes, and a reader can use them."""

import json
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import lib
from companion.live.__main__ import main
from companion.live.page import (
    LAYERS,
    MAX_BYTES,
    LivePaper,
    model_scripts,
    sample_papers,
    scripts,
    write_live_page,
)
from companion.pages.dispatches import made_up_dispatches
from lib.data.batch import make_batch
from lib.data.documents import Document
from lib.data.vocabulary import EOS, SLIDE, SLIDE_SYMBOL
from lib.decoding.search import DecodeConfig
from lib.evaluation.interventions import NOTHING, Change, changes_of, log_probs, without_unit
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.models.windowed import Windowed, WindowedConfig, count_windows
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.read_again.headlines import HeadlineOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.errors import InputError
from lib.system.files import project_root
from tests.conftest import RAGGED, VOCAB, double
from tests.test_windowed import TEXTS as WITH_SLIDES
from tests.tools.browser import needs_browser, open_page
from tests.tools.live import best_of, check_changed, check_written, needs_node, read_by, run_model, small_run

TRAINED = project_root() / "trained"
HOSTILE = "</script><!--<script>\u2028\"'&amp;\\u003c [DATA] [CODE] <img src=x onerror=alert(1)>"


# ------------------------------------------------------------------------------------------------------- the models


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


def without_slot(state, _):
    memory = state.memory.clone()
    memory[:, 2] = 0
    return replace(state, memory=memory)


MOVED = partial(Change, "", only_known=True)  # a word of the text may be out of sight
SECOND_ERASED = Change("", document=partial(without_unit, unit=1), only_known=True)


@dataclass(frozen=True)
class Case:
    """A model with a page.

    changes: the page's change, by the library's name of it; others: those that the library has no name for.
    controls: how a reader makes a change.
    """

    kind: Any
    config: Any
    options: Any
    documents: list
    variants: list[dict]
    changes: dict[str, dict]
    others: dict[str, tuple[dict, Change]]
    controls: dict[str, str]
    shade: str  # the output that shades the words


CASES = {
    "mem2mem": Case(
        Mem2Mem,
        partial(Mem2MemConfig, embedding=6, hidden=8, bottleneck=5, slots=3, compression=4),
        CohanOptions(vocab_size=VOCAB),
        RAGGED,
        [
            {}, {"start": "zeros", "lambda_comp": 0.0, "lambda_read": 0.0}, {"write": False}, {"gate_bias": 3.0},
            {"score": "general"}, {"score": "dot"},
        ],
        {
            "never written": {"written": False}, "another memory": {"following": "memory"},
            "no coverage": {"covered": False}, "no copying": {"copying": False}, "first unit erased": {},
        },
        {"slot erased": ({"erasedSlot": 2}, Change("", state=without_slot))},
        {"never written": "unwritten", "no coverage": "uncovered", "no copying": "uncopied", "slot erased": "slot=2"},
        "gamma",
    ),
    "windowed": Case(
        Windowed,
        partial(WindowedConfig, embedding=5, hidden=3, window=4, stride=3, budget=6, longest=4),
        ArticleOptions(vocab_size=VOCAB, window=4, stride=3),
        WITH_SLIDES,
        [
            {}, {"window": None, "stride": None}, {"windowing": "static"}, {"windowing": "static", "reading": "code"},
            {"encode": "stream"}, {"encode": "stream", "stride": 4}, {"encode": "stream", "windowing": "static"},
        ],
        {"no copying": {"copying": False}, "first unit erased": {}},
        {
            "stays": ({"stays": True}, MOVED(model=lambda model: as_kind(model, Stays))),
            "static": ({"windowing": "static"}, MOVED(model=lambda m: as_kind(m, Windowed, windowing="static"))),
            "everything in sight": ({"everything": True}, MOVED(model=seeing_all)),
            "second unit erased": ({}, SECOND_ERASED),
        },
        {"no copying": "uncopied", "stays": "stays", "static": "static", "everything in sight": "everything"},
        "alpha",
    ),
    "read_again": Case(
        ReadAgain,
        partial(ReadAgainConfig, source_vocab_size=20, embedding=5, hidden=4, dropout=0.0, sentences=3),
        HeadlineOptions(vocab_size=VOCAB, sentences=3),
        [replace(d, source_ids=((d.source * 7) % 20).astype(np.int32)) for d in RAGGED],
        [
            {}, {"encoder": "lstm"}, {"encoder": "gru"}, {"encoder": "bidirectional gru"},
            {"encoder": "read-again gru"}, {"copy": False},
            {"encoder": "read-again gru", "importance": "sigmoid", "single_importance": True},
        ],
        {
            "no copying": {"copying": False}, "[UNK] fed back": {"fromContext": False},
            "text not told": {"told": False}, "first unit erased": {},
        },
        {},
        {"no copying": "uncopied", "[UNK] fed back": "unembedded", "text not told": "untold"},
        "beta",
    ),
}  # fmt: skip
DECODINGS = [
    {"block_ngrams": 3}, {"block_ngrams": 2, "min_length": 5}, {"beam": 1, "length_penalty": 0.6, "length_offset": 5},
    {"beam": 3, "min_length": 9, "forbidden": (0, 1, 2, SLIDE)},
]  # fmt: skip
LETTERS = [f"w{i}" for i in range(VOCAB)]


def small(name, words=LETTERS[: VOCAB - 4], source_words=LETTERS, **changes):
    """A run of a small model that was not trained."""
    case = CASES[name]
    words = [SLIDE_SYMBOL, *words[:-1]] if name == "windowed" else words
    model = double(case.kind, case.config(len(words) + 4, **changes)).float()
    if name == "windowed":
        model.pointer.vocabulary.bias.data[SLIDE] += 8  # so that the window moves
    return small_run(model, case.options, words, source_words if name == "read_again" else ())


def changes_for(name, model):
    """{name: (the page's change, the library's)}."""
    known = changes_of(model)
    nothing = MOVED() if name == "windowed" else NOTHING
    same = {change: (ours, known[change]) for change, ours in CASES[name].changes.items()}
    return {"nothing": ({}, nothing), **same, **CASES[name].others}


# -------------------------------------------------------------------------------------------------- what is computed


@needs_node
@pytest.mark.parametrize(("name", "changes"), [(n, v) for n, case in CASES.items() for v in case.variants], ids=str)
def test_every_variant_writes_the_same(node, name, changes):
    written = check_written(node, small(name, **changes), CASES[name].documents, DecodeConfig(max_length=9))
    moves = name == "windowed" and changes.get("windowing") != "static" and "window" not in changes
    assert any(SLIDE in ids for ids in written) == moves or name != "windowed"


@needs_node
@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_every_decoding_writes_the_same(node, name, decoding):
    check_written(node, small(name), CASES[name].documents, DecodeConfig(max_length=9, **decoding))


@needs_node
@pytest.mark.parametrize("name", CASES)
def test_changes_do_what_the_librarys_do(node, name):
    run = small(name, **({"longest": 11} if name == "windowed" else {}))
    check_changed(node, run, [CASES[name].documents[0], CASES[name].documents[2]], changes_for(name, run.model))


STEP = """
const document = all(model.encode(data.document));
let state = model.first(document), made;
for (const token of data.tokens) {
  made = model.advance([token], [state], document);
  [state] = made.states;
  model.distributions(made.outputs, made.features, document);
}
const plain = Object.entries(made.outputs[0]).map(([name, list]) => [name, list?.buffer ? [...list] : list]);
const heads = document.heads?.map(head => [...head]);
return { ...Object.fromEntries(plain), heads, importance: document.importance };"""


@needs_node
@pytest.mark.parametrize(
    ("name", "changes"), [*((n, {}) for n in CASES), ("read_again", {"encoder": "read-again gru"})]
)
def test_what_a_step_shows_is_what_the_model_computes(node, name, changes):
    """Attention, switch, the best words, and each model's own parts."""
    run, document, tokens = small(name, **changes), CASES[name].documents[0], [2, 5 - (name == "windowed"), 12, 7]
    found = run_model(node, run, STEP, document=read_by(document), tokens=tokens)
    with torch.no_grad():
        state = run.model.encode(make_batch([document], VOCAB))
        output, after = run.model.decode(torch.tensor([tokens]), state)
        seen = {part: weights[0, -1] for part, weights in run.model.seen(output, state).items() if weights.dim() > 1}
        p = run.model.distribution(output, after, len(document.unknown))[0]
    values, ids = p.topk(5)
    assert [i for i, _ in found["best"]["mixed"]] == ids.tolist()
    assert np.allclose([share for _, share in found["best"]["mixed"]], values, atol=1e-5)
    assert found["generate"] == pytest.approx(float(seen["generate"]), abs=1e-5)
    words = np.zeros(len(document.source))
    begin = found.get("begin", 0)
    words[begin : begin + len(found[CASES[name].shade])] = found[CASES[name].shade]
    assert np.allclose(words, seen["words"], atol=1e-5)
    if name == "mem2mem":
        assert np.allclose(found["psi"], seen["slots"], atol=1e-5) and np.allclose(
            found["beta"], seen["units"], atol=1e-5
        )
        assert np.allclose(found["heads"], state.write_attention[0], atol=1e-5)
        assert np.allclose(found["norms"], after.memory[0].norm(dim=-1), atol=1e-5)
    if name == "windowed":
        assert (found["window"], found["begin"], found["end"], found["last"]) == (1, 3, 7, 3)
        assert found["slide"] == pytest.approx(float(p[SLIDE]), abs=1e-5)
    if changes:
        importance = run.model.seen(output, state)["importance"][0]
        assert np.allclose(found["importance"], importance, atol=1e-5)


@needs_node
@pytest.mark.parametrize("name", CASES)
def test_the_shipped_run_reads_and_writes_the_same(node, name, tmp_path):
    """Its page's papers are read as the library reads them, with its own options and with others."""
    main([str(TRAINED / name), str(tmp_path / "page.html")])
    papers = data_of(tmp_path / "page.html")["papers"]
    assert all(paper["source"] for paper in papers) and (tmp_path / "page.html").stat().st_size < MAX_BYTES
    run = lib.load(TRAINED / name, device="cpu")
    offered = [p.document for p in sample_papers()] if name != "read_again" else made_up_dispatches()
    read = {"mem2mem": "readDocument", "windowed": "readArticle", "read_again": "readHeadline"}[name]
    others = {
        "mem2mem": [{"sections": 2, "section_tokens": 40, "whole_sentences": True}, {"unit": "section"}],
        "windowed": [{"source_tokens": None, "section_words": 50}, {"source_tokens": 7}],
        "read_again": [{"sentences": 2, "source_tokens": 30}],
    }[name]
    options = [run.options, *(replace(run.options, **other) for other in others)]
    body = f"return data.options.map(options => data.papers.map(paper => {read}(paper, options)));"
    found = node(scripts(*LAYERS), body, papers=papers, options=list(map(asdict, options)))
    for texts, option in zip(found, options):
        assert [text["rows"] for text in texts] == [option.example(document).sentences for document in offered]
    decode = replace(run.decode, min_length=min(run.decode.min_length, 40), max_length=min(run.decode.max_length, 45))
    check_written(node, run, run.encode(offered[:1]), decode)


# ------------------------------------------------------------------------------------------------- what is written


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_loads_nothing_and_no_text_leaves_its_data(tmp_path):
    paper = LivePaper(Document("d", HOSTILE, [HOSTILE], [[HOSTILE]], []), HOSTILE)
    path = write_live_page(tmp_path / "page.html", small("mem2mem"), HOSTILE, [paper])
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|x)|@import|url\((?!#)|fetch\(|import\(""", page)
    assert page.count("</script>") == 2 and "default-src 'none'; script-src 'sha256-" in page
    assert data_of(path)["papers"][0]["title"] == HOSTILE


def test_bad_arguments_are_one_line(tmp_path):
    text, page = tmp_path / "paper.md", tmp_path / "page.html"
    text.write_text("It ends.", encoding="utf-8")
    refused = {
        "no live page of HierarchicalTransformer, only of": [TRAINED / "hierarchical_transformer", page],
        "PAGE .*paper.md: one of the texts": [TRAINED / "mem2mem", text, text],
        "towns: this page takes no texts": ["towns", page, text],
    }
    for message, arguments in refused.items():
        with pytest.raises(SystemExit, match=message):
            main(list(map(str, arguments)))
    with pytest.raises(InputError, match="no live page of an encoder of several sentences"):
        model_scripts(small("read_again", encoder="option 2"))
    assert text.read_text(encoding="utf-8") == "It ends." and not page.exists()


# ---------------------------------------------------------------------------------------------------- in a browser

SENTENCES = [
    "we study how mice of the north sleep in small nests .", "their nests are warm and dry , and they sleep well .",
    "we saw ten mice in two winters .", "the mice of the south sleep less than those of the north .",
]  # fmt: skip
PAPER = Document("a", "On mice", ["Introduction", "Results"], [SENTENCES[:2], SENTENCES[2:]], [], tokenised=True)
OTHER = Document("b", "On nests", ["Introduction"], [SENTENCES[1:3]], [], tokenised=True)
KNOWN = sorted({word for sentence in SENTENCES for word in sentence.split()} - {"nests", "ten"})
WRITTEN = "document.getElementById('status').textContent.includes(' words in ')"
TYPED = {
    "one word": "Mice",
    "another script": "我们走了。他们来了！ " * 30,
    "hostile": f"{HOSTILE} ends here. It goes on.",
    "long": "The mice of the north slept well in their nests. " * 2_000,
}


@pytest.fixture(scope="module", params=CASES)
def live(request, tmp_path_factory):
    """(name, run, page) of a small model with two papers."""
    name = request.param
    run = small(name, KNOWN, KNOWN)
    if name == "read_again":
        run.model = double(ReadAgain, CASES[name].config(len(KNOWN) + 4, source_vocab_size=len(KNOWN) + 4)).float()
    path = tmp_path_factory.mktemp("live") / "page.html"
    return name, run, write_live_page(path, run, name, [LivePaper(PAPER, "A source"), LivePaper(OTHER)])


def text_of(tab, selector):
    return tab.run(f"document.querySelector({json.dumps(selector)}).innerText")


def move(control):
    """A script that moves a control: a box, or id=value of a list."""
    name, _, value = control.partition("=")
    if not value:
        return f"$('{name}').click()"
    return f"$('{name}').value = {value!r}; $('{name}').dispatchEvent(new Event('change'))"


@needs_browser
def test_a_reader_sees_it_write_and_changes_the_model(live):
    name, run, page = live
    documents = run.options.encode([PAPER, OTHER], run.encoder)
    best = best_of(run, documents[0])
    with open_page(page) as tab:
        tab.until(WRITTEN)
        ids = tab.run("view.own.ids")
        assert ids == best.ids and tab.run("view.own.logP") == pytest.approx(best.log_prob, abs=1e-3)
        count = len(ids) + 1
        assert text_of(tab, "#place") == f"word {count} of {count}"
        tab.run("$('first').click(); document.activeElement.blur()")
        tab.key("ArrowRight")
        assert text_of(tab, "#place") == f"word 2 of {count}"
        shown = tab.run("view.own.steps[1].output.generate")
        assert f"{shown:.3f}" in text_of(tab, "#switch")
        tab.run("document.querySelector('#equations [aria-checked=true]').focus()")
        tab.key("ArrowDown")
        first = re.search(r"\d+", tab.run("document.activeElement.innerText"))[0]
        lit = tab.run(
            "[...document.querySelectorAll('#picture .lit')].map(part => part.dataset.equations.split(' '))"
        )
        assert lit and all(first in equations for equations in lit), "the picture shows the equation's parts"
        documents[0] = replace(documents[0], target=np.array([*ids, EOS]))
        pairs = {**changes_for(name, run.model), "second unit erased": ({}, SECOND_ERASED)}
        for change, control in CASES[name].controls.items():
            check_effect(tab, run, documents, pairs[change][1], move(control))
        check_effect(tab, run, documents, SECOND_ERASED, "document.querySelectorAll('.sentence button')[1].click()")
        tab.run(move("beam=1"))
        tab.until(f"{WRITTEN} && rules().beam === 1")
        assert tab.complaints == [], "no error, and no request"


def check_effect(tab, run, documents, change, script):
    """Check what the page says that a change does to log P of the unchanged summary; then undo it."""
    tab.run(f"$('effect').dataset.values = ''; {{ {script} }}")
    values = json.loads(tab.until("$('effect').dataset.values"))
    for key, of in (("own", NOTHING), ("changed", change)):
        expected = log_probs(run.model, documents, of, only_known=True)[0]
        assert values[key] == pytest.approx(expected, abs=1e-4), key
        assert f"{abs(values[key]):.3f}" in text_of(tab, "#effect")
    tab.run("$('undo').click()")
    tab.until(f"{WRITTEN} && $('changed').hidden")


@needs_browser
def test_a_readers_own_text_is_summarized(live):
    _, run, page = live
    with open_page(page, theme="dark") as tab:
        tab.until(WRITTEN)
        paste = "$('pasted').value = {}; say(''); view.own = null; $('take').click()"
        tab.run(paste.format('"# A title"'))
        tab.until("$('status').className === 'error'")
        assert "nothing to summarize" in text_of(tab, "#status")
        for text in TYPED.values():
            tab.run(paste.format(json.dumps(text)))
            tab.until(f"{WRITTEN} && view.own?.done")
            words = tab.run("view.read.words")
            document = Document(
                "own", "", [""], [[" ".join(row) for row in tab.run("view.read.rows")]], [], tokenised=True
            )
            (encoded,) = run.options.encode([document], run.encoder)
            assert len(words) == len(encoded.source) and tab.run("view.own.ids") == best_of(run, encoded).ids
        assert tab.run("document.querySelectorAll('#text img').length") == 0 and tab.complaints == []


@needs_browser
def test_windows_slide_sections_turn_and_a_stream_reads_everything(tmp_path):
    run = small("windowed", KNOWN)
    run.model.pointer.vocabulary.bias.data[SLIDE] += 30  # so that the window moves often
    weights = run.model.state_dict()
    with open_page(write_live_page(tmp_path / "page.html", run, "windowed", [LivePaper(PAPER)])) as tab:
        tab.until(WRITTEN)
        (document,) = run.options.encode([PAPER], run.encoder)
        target = np.array([*tab.run("view.own.ids"), EOS])
        inside = "[...document.querySelectorAll('#text .word')].flatMap((w, i) => w.matches('.inside') ? [i] : [])"
        begin, end = tab.run("[view.own.steps.at(-1).output.begin, view.own.steps.at(-1).output.end]")
        assert tab.run(inside) == list(range(begin, end)) and begin > 0
        turned = replace(PAPER, sections=PAPER.sections[::-1], section_names=PAPER.section_names[::-1])
        tab.run(f"$('effect').dataset.values = ''; {move('order=1')}")
        values = json.loads(tab.until("$('effect').dataset.values"))
        backwards = [replace(d, target=target) for d in run.options.encode([turned], run.encoder)]
        assert values["changed"] == pytest.approx(log_probs(run.model, backwards, only_known=True)[0], abs=1e-4)
        tab.run(f"say(''); view.own = null; {move('reading=1')}")
        tab.until(f"{WRITTEN} && view.own?.done")
        run.model = Windowed(replace(run.model.config, encode="stream")).eval()
        run.model.load_state_dict(weights)
        assert tab.run("view.own.ids") == best_of(run, document).ids and tab.run("$('everything').disabled")


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_page(live, theme):
    name, _, page = live
    with open_page(page, theme) as tab:
        tab.until(WRITTEN)
        tab.run(move(next(iter(CASES[name].controls.values()))))
        tab.until(f"{WRITTEN} && view.changed?.done")
        tab.check_looks()
        dark = tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"
        assert dark == (theme == "dark")
        if theme == "light":
            tab.check_keyboard()
