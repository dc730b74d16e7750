"""The frame of the first page in which a reader types a text: its model computes what the library does with the same
weights, and it can be used."""

import base64
import json
import math
import re
import zlib
from dataclasses import asdict, replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from companion.live.page import scripts
from companion.live.pointer import MISSING, SCRIPTS, LivePointer
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, SPECIALS, Vocabulary
from lib.decoding.search import DecodeConfig, beam_search, greedy_search
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from lib.system.files import project_root
from tests.conftest import RAGGED, VOCAB, double
from tests.test_live import HOSTILE
from tests.test_project import notebook
from tests.tools.axe import axe_core, violations
from tests.tools.devtools import Browser
from tests.tools.live import needs_browser, needs_node
from tests.tools.rendered import PROBE

TYPED = [
    "the ibex was forgotten by the cow .",
    "the dog slept . the cat was seen by the zebra . the okapi ran .",
    "the cat was chosen by the cat .",
    "the axolotl was bitten by the thylacine . the axolotl slept .",
    "the the the",
    "cow",
    "by . was seen",
    "мышь was known by the 猫 .",
    "the dog saw the cat .",
    " ".join(["the llama was drawn by the dog . the koala sat ."] * 17),
]


@pytest.fixture(scope="module")
def committed():
    """The frame of the executed page: its model by the library, and its HTML as it would be written now."""
    cells = notebook(project_root() / "notebooks" / "start_here.ipynb")["cells"]
    shown = ["".join(o.get("data", {}).get("text/html", "")) for c in cells for o in c.get("outputs", [])]
    (document,) = [unescape(re.search('srcdoc="([^"]*)"', html)[1]) for html in shown if "<iframe" in html]
    data = json.loads(re.search(r'id="data">(.*?)</script>', document, re.DOTALL)[1])
    model = Seq2Seq(Seq2SeqConfig(**data["config"])).double().eval()
    model.load_state_dict(unpacked(data["weights"]))
    decode = DecodeConfig(**{**data["decode"], "forbidden": tuple(data["decode"]["forbidden"])})
    live = LivePointer(model, Vocabulary(data["words"][len(SPECIALS) :]), data["text"], decode)
    exact = {**data["weights"], "rounded": False}  # once they are rounded
    assert json.loads(json.dumps(live.data())) == {**data, "weights": exact}
    return SimpleNamespace(
        document=live.document(), frame=live._repr_html_(), data=data, model=model, decode=decode,
        vocabulary=live.vocabulary,
    )  # fmt: skip


def unpacked(packed: dict) -> dict[str, torch.Tensor]:
    """Weights of 16 bits as `companion.live.page.packed` wrote them."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), np.uint8).reshape(2, -1)
    numbers = torch.from_numpy(planes.T.copy().view("<f2").ravel().astype("f8"))
    parts = numbers.split([math.prod(shape) for shape in packed["shapes"].values()])
    return {name: part.reshape(shape) for (name, shape), part in zip(packed["shapes"].items(), parts)}


def encoded(vocabulary: Vocabulary, text: str) -> EncodedDocument:
    source, unknown = vocabulary.encode_source(text.split())
    return EncodedDocument.of("typed", source, [len(source)], [EOS], unknown, [])


@torch.no_grad()
def distributions(model, document, ids, moved=()) -> dict[str, torch.Tensor]:
    """P_g, P_c and P at every step of a summary `ids` and its end, by `PointerGenerator`; switches `moved`."""
    batch = make_batch([document], model.config.vocab_size)
    output, _ = model.decode(torch.tensor([[BOS, *ids]]), model.encode(batch))
    generated = model.pointer.vocabulary(output.features[0]).softmax(-1)
    generated = torch.nn.functional.pad(generated, (0, len(document.unknown)))
    copied = torch.zeros_like(generated).index_add(1, output.source[0], output.copy[0])
    own = output.switch[0].sigmoid()
    p = own.clone()
    for step, value in dict(moved).items():
        p[step] = value
    mixed = p[:, None] * generated + (1 - p[:, None]) * copied
    return {"generated": generated, "copied": copied, "mixed": mixed, "own": own, "gamma": output.copy[0]}


def log_prob(mixed, ids) -> float:
    return sum(float(mixed[t, word].log()) for t, word in enumerate([*ids, EOS]))


MODEL = """
const model = new Seq2Seq(data.config, await unpacked(data.weights), 3);
const read = data.documents.map(document => model.encode(document));
"""


def documents_of(documents) -> list[dict]:
    return [{"sentences": [d.source.tolist()], "unknown": d.unknown} for d in documents]


# -------------------------------------------------------------------------------------------------- what is computed


@needs_node
@pytest.mark.parametrize("beam", [1, 2, 4, 6])
def test_what_is_typed_is_summarized_as_by_the_library(node, committed, beam):
    documents = [encoded(committed.vocabulary, text) for text in TYPED]
    decode = replace(committed.decode, beam=beam)
    found = node(
        scripts(*SCRIPTS),
        f"""{MODEL} return read.map(document => {{
          const run = new BeamSearch(model, document, data.decode);
          while (run.step());
          return run.ended.slice(0, data.decode.beam).map(({{ ids, logP, score }}) => ({{ ids, logP, score }}));
        }});""",
        config=committed.data["config"], weights=committed.data["weights"], decode=asdict(decode),
        documents=documents_of(documents),
    )  # fmt: skip
    written = set()
    for text, document, ours in zip(TYPED, documents, found):
        batch = make_batch([document], len(committed.vocabulary))
        expected = greedy_search(committed.model, batch, decode) if beam == 1 else []
        expected = expected or beam_search(committed.model, batch, decode)[0]
        assert [h["ids"] for h in ours][: len(expected)] == [h.ids for h in expected], text
        for hypothesis, other in zip(ours, expected):
            assert hypothesis["score"] == pytest.approx(other.score, abs=1e-4)
            exact = log_prob(distributions(committed.model, document, other.ids)["mixed"], other.ids)
            assert hypothesis["logP"] == pytest.approx(exact, abs=1e-4)
        written.add(committed.vocabulary.text(ours[0]["ids"], document.unknown))
    assert {"the cow forgot the ibex .", "the zebra saw the cat .", "the thylacine bit the axolotl ."} <= written


@needs_node
@pytest.mark.parametrize("value", [0, 0.25, 1])
def test_a_moved_switch_mixes_as_the_equation_says(node, committed, value):
    """P = p P_g + (1 - p) P_c at the step of the switch, and at the other steps the model's own p."""
    documents = [encoded(committed.vocabulary, text) for text in TYPED[:4]]
    tokens = committed.vocabulary.encode_target(["the", "cow", "forgot", "the", "dog"], [])
    found = node(
        scripts(*SCRIPTS),
        f"""{MODEL} return read.map(document => {{
          const by_hand = model.with(new Map([[2, data.value]])), steps = [];
          let states = [model.first(document)], made;
          for (const token of [BOS, ...data.tokens]) {{
            ({{ states, ...made }} = by_hand.advance([token], states, document));
            const [p] = by_hand.distributions(made.outputs, made.features, document);
            const [{{ own, gamma }}] = made.outputs;
            steps.push({{ mixed: [...p], own, gamma: [...gamma] }});
          }}
          return steps;
        }});""",
        config=committed.data["config"], weights=committed.data["weights"], documents=documents_of(documents),
        tokens=tokens, value=value,
    )  # fmt: skip
    for document, steps in zip(documents, found):
        expected = distributions(committed.model, document, tokens, {2: value})
        for name in ("mixed", "own", "gamma"):
            assert np.allclose([step[name] for step in steps], expected[name], atol=1e-6), name
        changed = (expected["mixed"] - distributions(committed.model, document, tokens)["mixed"]).abs().sum(1)
        assert changed[2] > 1e-3 or value == round(float(expected["own"][2])), "it was moved"
        assert not changed[[0, 1, 3, 4, 5]].any()


@needs_node
def test_any_small_model_writes_the_same(node):
    """Of random weights, whose attention has coverage to go by."""
    model = double(Seq2Seq, Seq2SeqConfig(VOCAB, embedding=6, hidden=8, bottleneck=5)).half().double()
    live = LivePointer(model, Vocabulary([f"w{i}" for i in range(VOCAB - 4)]), "", DecodeConfig(max_length=9))
    data = live.data()
    found = node(
        scripts(*SCRIPTS),
        f"""{MODEL} return read.map(document => all(search(model, document, data.decode)))
          .map(({{ ids, logP, score }}) => ({{ ids, logP, score }}));""",
        config=data["config"], weights=data["weights"], decode=data["decode"], documents=documents_of(RAGGED),
    )  # fmt: skip
    for document, ours in zip(RAGGED, found):
        ((best, *_),) = beam_search(model, make_batch([document], VOCAB), live.decode)
        assert ours["ids"] == best.ids and ours["score"] == pytest.approx(best.score, abs=1e-4)


def test_a_model_that_does_not_copy_has_no_switch_to_move():
    model = Seq2Seq(Seq2SeqConfig(VOCAB, embedding=6, hidden=8, bottleneck=5, copy=False))
    with pytest.raises(ValueError, match="needs a model that copies"):
        LivePointer(model, Vocabulary([]), "", DecodeConfig())


def test_a_frame_needs_nothing_and_says_what_is_missing_without_scripts(committed):
    assert len(committed.frame) < 125_000
    assert MISSING in committed.frame and 'sandbox="allow-scripts"' in committed.frame
    assert re.search(r"<noscript>.*without JavaScript.*</noscript>", committed.document)
    assert not re.search(r"""(?<!xlink:)(src|href)\s*=\s*["'](?!#)|@import|url\((?!#)|fetch\(""", committed.document)
    assert "default-src 'none'; script-src 'sha256-" in committed.document
    model = double(Seq2Seq, Seq2SeqConfig(VOCAB, embedding=6, hidden=8, bottleneck=5))
    hostile = LivePointer(model, Vocabulary([f"w{i}" for i in range(VOCAB - 4)]), HOSTILE, DecodeConfig())
    assert hostile.document().count("</script>") == 2 and hostile._repr_html_().count('"') == 14


# ------------------------------------------------------------------------------------------------- what a reader does

READY = "!document.querySelector('main').hidden && view.run !== null"


@pytest.fixture
def tab(committed, tmp_path):
    page = tmp_path / "frame.html"
    page.write_text(committed.document, encoding="utf-8")
    with Browser(page) as tab:
        tab.until(READY)
        yield tab
        assert tab.complaints() == []


def type_text(tab, text: str) -> None:
    """With the keyboard, in place of what stands there."""
    tab.run("$('text').focus(); $('text').select()")
    if text:
        tab.type(text)
    else:
        tab.run("$('text').value = ''; $('text').dispatchEvent(new Event('input'))")


def shown(tab, selector: str) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)}).textContent")


@needs_browser
def test_a_reader_types_moves_the_switch_and_reads_the_numbers(tab, committed):
    model, vocabulary = committed.model, committed.vocabulary
    document = encoded(vocabulary, TYPED[0])
    type_text(tab, TYPED[0])
    assert "the cow forgot the ibex ." in shown(tab, "#status")
    assert tab.run("[...document.querySelectorAll('.unknown')].map(e => e.textContent)") == ["ibex"]
    tab.run("$('beam').value = 1; $('beam').dispatchEvent(new Event('input'))")
    tab.run("$('written').children[1].focus()")
    tab.key("Enter")
    tab.key("ArrowRight")
    assert shown(tab, "[aria-pressed=true]") == "forgot" == tab.run("document.activeElement.textContent")
    assert shown(tab, "#share") == "1.00, the model's own: it generates" and tab.run("$('back').disabled")
    tab.run("$('switch').focus()")
    for _ in range(70):
        tab.key("ArrowLeft")
    value = tab.run("Number($('switch').value)")
    assert value == pytest.approx(0.3) and shown(tab, "#share") == "0.30 by hand; the model's own is 1.00"
    ids = tab.run("view.run.best.ids")
    expected = distributions(model, document, ids, {2: value})
    assert ids[2] == int(expected["mixed"][2].argmax()) and shown(tab, "[aria-pressed=true]") != "forgot"
    assert tab.run("view.run.best.logP") == pytest.approx(log_prob(expected["mixed"], ids), abs=1e-4)
    words = [*vocabulary.words, *document.unknown]
    for name, row in zip(("generated", "copied", "mixed"), range(1, 4)):
        (p, *_), (word, *_) = expected[name][2].topk(1)
        assert shown(tab, f"#best tr:nth-child({row}) td") == f"{words[int(word)]} {float(p):.2f}", name
    weights = tab.run("[...document.querySelectorAll('#attention span')].map(e => parseFloat(e.title))")
    assert np.allclose(weights, expected["gamma"][2], atol=6e-4)
    tab.run("$('back').focus()")
    tab.key("Enter")
    assert "the cow forgot the ibex ." in shown(tab, "#status")


@needs_browser
def test_the_tree_has_the_hypotheses_of_the_search(tab, committed):
    document = encoded(committed.vocabulary, committed.data["text"])
    for width in (1, 3, 6):
        tab.run(f"$('beam').value = {width}; $('beam').dispatchEvent(new Event('input'))")
        batch = make_batch([document], len(committed.vocabulary))
        (expected,) = beam_search(committed.model, batch, replace(committed.decode, beam=width))
        table = tab.run("[...document.querySelectorAll('#ended tr')].slice(1).map(r => r.lastChild.textContent)")
        assert table == [committed.vocabulary.text(h.ids, document.unknown) for h in expected]
        columns = tab.run("columnsOf(view).map(column => column.length)")
        assert columns[0] == 1 and max(columns[:-1]) <= 2 * width and columns[1] == width
        assert tab.run("document.querySelectorAll('#tree path').length") == sum(columns) - 1
        best = tab.run("[...document.querySelectorAll('#tree text.chosen')].map(e => e.textContent)")
        assert best == ["[BOS]", *table[0].split(), "[EOS]"]


@needs_browser
def test_texts_of_every_kind_can_be_typed(tab, committed):
    type_text(tab, "")
    assert shown(tab, "#status") == "Type a text." and tab.run("$('results').hidden")
    type_text(tab, "the мышь was seen by the 猫 .")
    assert "the 猫 saw the мышь ." in shown(tab, "#status")
    type_text(tab, "<script>alert(1)</script><img src=x onerror=alert(1)>")
    assert tab.run("view.words").count("script") == 2 and tab.run("document.querySelectorAll('img').length") == 0
    long = " ".join(["the llama was drawn by the dog ."] * 26)
    type_text(tab, long)
    assert "The first 200 of 208 words are read." in shown(tab, "#status")
    document = encoded(committed.vocabulary, " ".join(long.split()[:200]))
    ((best, *_),) = beam_search(committed.model, make_batch([document], len(committed.vocabulary)), committed.decode)
    assert tab.run("view.run.best.ids") == best.ids


@needs_browser
def test_a_switch_that_lets_no_summary_end_goes_back(tab):
    """[EOS] cannot be copied: a switch at 0 bars it; at the last step nothing is left."""

    def move(step):
        tab.run(f"look({step}); $('switch').value = 0; $('switch').dispatchEvent(new Event('input'))")

    for _ in range(11):
        move(tab.run("view.steps.length - 1"))
        if "no summary could end" in shown(tab, "#status"):
            break
    assert "no summary could end" in shown(tab, "#status") and tab.run("view.moved.size") == 0
    assert tab.run("view.steps.at(-1).id") == EOS


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_frame_can_be_read_in_both_themes_and_at_every_width(committed, tmp_path, theme):
    page = tmp_path / "frame.html"
    page.write_text(committed.document, encoding="utf-8")
    with Browser(page, theme=theme) as tab:
        tab.until(READY)
        roles = {"button", "slider", "textbox", "spinbutton"}
        tree = tab.call("Accessibility.getFullAXTree")["nodes"]
        controls = [n for n in tree if n.get("role", {}).get("value") in roles and not n["ignored"]]
        assert len(controls) > 9 and all(n["name"]["value"].strip() for n in controls)
        for width in (900, 400):
            tab.resize(width, 900)
            problems = tab.run(PROBE.strip().replace("ratio < 3", "ratio < 4.5"))
            assert [p for p in problems if p["kind"] == "faint" or not p["scrolls"]] == [], width
            assert tab.run("document.documentElement.scrollWidth") <= width
            # the heading is the page's that the frame stands in
            found = violations(tab) if axe_core() else []
            assert [f for f in found if f[0] != "page-has-heading-one"] == [], width


@needs_browser
def test_the_frame_runs_inside_a_page(committed, tmp_path):
    """As a cell's result, from disk: a frame that may run its script and nothing more."""
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><body>{committed.frame}", encoding="utf-8")
    with Browser(page) as tab:

        def frames():
            return [t for t in tab.call("Target.getTargets")["targetInfos"] if t["url"] == "about:srcdoc"]

        (frame,) = frames()
        tab.session = tab.call("Target.attachToTarget", targetId=frame["targetId"], flatten=True)["sessionId"]
        tab.until(READY)
        assert "the zebra saw the cat ." in shown(tab, "#status")
        with pytest.raises(RuntimeError):
            tab.run("parent.document.title")
