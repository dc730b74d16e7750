"""The live pages in a browser: a reader sees each model write, looks into it, and changes it and
its text."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.live.__main__ import main
from companion.live.page import TEXTS, LivePaper, write_live_page
from companion.pages.towns import town_writing
from companion.tasks import towns
from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.plain_text import parse_text
from lib.data.tokenize import tokenize
from lib.data.vocabulary import BOS, EOS
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search, greedy_search
from lib.evaluation.interventions import changes_of, log_probs
from lib.models.changes import NOTHING
from tests.companion.test_live import (
    CASES,
    HOSTILE,
    OF_TEXTS,
    SECOND_ERASED,
    TEXT,
    TRAINED,
    changes_for,
    small,
    small_pointer,
    typed_texts,
)
from tests.conftest import VOCAB
from tests.tools.browser import Tab, needs_browser, open_page
from tests.tools.live import best_of

pytestmark = needs_browser
SENTENCES = [
    "we study how mice of the north sleep in small nests .", "their nests are warm and dry , and they sleep well .",
    "we saw ten mice in two winters .", "the mice of the south sleep less than those of the north .",
]  # fmt: skip
PAPER = Document(
    "a", "On mice", ["Introduction", "Results"], [SENTENCES[:2], SENTENCES[2:]], [], tokenised=True
)
OTHER = Document("b", "On nests", ["Introduction"], [SENTENCES[1:3]], [], tokenised=True)
KNOWN = sorted({word for sentence in SENTENCES for word in sentence.split()} - {"nests", "ten"})
WRITTEN = "document.getElementById('status').textContent.includes(' words in ')"
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("mem2mem", "windowed")]
TYPED = {
    "one word": "Mice",
    "another script": "我们走了。他们来了！ " * 30,
    "hostile": f"{HOSTILE} ends here. It goes on.",
    "long": "The mice of the north slept well in their nests. " * 2_000,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{name: (run, page)}: small models with two papers, the shipped models of towns, and the
    pointer's frame."""
    folder, made = tmp_path_factory.mktemp("live"), {}
    for name in OF_TEXTS:
        run = small(name, KNOWN, KNOWN)
        papers = [LivePaper(PAPER, "A source"), LivePaper(OTHER)]
        made[name] = run, write_live_page(folder / f"{name}.html", run, name, papers)
    for name in ("towns", "training", "side_by_side"):
        main([name, str(folder / f"{name}.html")])
    pointer = small_pointer()
    (folder / "pointer.html").write_text(pointer.document(), encoding="utf-8")
    shipped = {
        "towns": towns.open_towns(),
        "pointer": pointer,
        "training": None,
        "side_by_side": None,
    }
    return made | {name: (run, folder / f"{name}.html") for name, run in shipped.items()}


def shown(tab, selector):
    return tab.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
    )


def move(control):
    """A script that moves a control: a box, or id=value of a list or a field."""
    name, _, value = control.partition("=")
    return f"setControl('{name}', {value!r})" if value else f"$('{name}').click()"


def effect_of(tab, script):
    """Change something by a script; what the page then says of log P of the unchanged summary."""
    tab.run(f"$('effect').dataset.values = ''; {{ {script} }}")
    return json.loads(tab.until("$('effect').dataset.values"))


@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_reader_sees_it_write_and_changes_the_model(pages, name):
    run, page = pages[name]
    documents = run.options.encode([PAPER, OTHER], run.encoder)
    best = best_of(run, documents[0])
    with open_page(page) as tab:
        tab.until(WRITTEN)
        ids = tab.run("view.own.ids")
        assert ids == best.ids and tab.run("view.own.logP") == pytest.approx(
            best.log_prob, abs=1e-3
        )
        count = len(ids) + 1
        assert shown(tab, "#place") == [f"word 1 of {count}"], (
            "its beginning is what a reader wants"
        )
        tab.run("document.activeElement.blur()")
        tab.key("ArrowRight")
        assert shown(tab, "#place") == [f"word 2 of {count}"]
        assert f"{tab.run('view.own.steps[1].output.generate'):.3f}" in shown(tab, "#switch")[0]
        tab.run("document.querySelector('#equations [aria-checked=true]').focus()")
        tab.key("ArrowDown")
        chosen = re.search(r"\d+", tab.run("document.activeElement.innerText"))[0]
        lit = tab.run(
            "[...document.querySelectorAll('#picture .lit')].map(part => part.dataset.equations)"
        )
        assert lit and all(chosen in equations.split() for equations in lit), (
            "the picture shows the equation's parts"
        )
        if name == "windowed":
            tab.run("drawInside({ begin: 2, end: 5 })")
            assert tab.run(
                "view.spans.flatMap((span, i) => span.matches('.inside') ? [i] : [])"
            ) == [2, 3, 4]
        documents[0] = replace(documents[0], target=np.array([*ids, EOS]))
        pairs, controls = changes_for(name, run.model), CASES[name].controls
        changes = [(pairs[change][1], move(control)) for change, control in controls.items()]
        erase = "document.querySelectorAll('.sentence button')[1].click()"
        for change, script in [*changes, (SECOND_ERASED, erase)]:
            values = effect_of(tab, script)
            for key, of in (("own", NOTHING), ("changed", change)):
                expected = log_probs(run.model, documents, of, only_known=True)[0]
                assert values[key] == pytest.approx(expected, abs=1e-4), (script, key)
                assert f"{abs(values[key]):.3f}" in shown(tab, "#effect")[0]
            tab.run("$('undo').click()")
            tab.until(f"{WRITTEN} && $('changed').hidden")
        tab.run(move("beam=1"))
        tab.until(f"{WRITTEN} && rules().beam === 1")
        assert tab.complaints == [], "no error, and no request"


@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_readers_own_text_is_summarized(pages, name):
    run, page = pages[name]
    with open_page(page) as tab:
        tab.until(WRITTEN)
        paste = "$('pasted').value = {}; say(''); view.own = null; $('take').click()"
        tab.run(paste.format('"# A title"'))
        tab.until("$('status').className === 'error'")
        assert "nothing to summarize" in shown(tab, "#status")[0]
        for text in TYPED.values():
            tab.run(paste.format(json.dumps(text)))
            tab.until(f"{WRITTEN} && view.own?.done")
            sentences = [" ".join(row) for row in tab.run("view.read.rows")]
            (encoded,) = run.options.encode(
                [Document("own", "", [""], [sentences], [], tokenised=True)], run.encoder
            )
            assert len(tab.run("view.read.words")) == len(encoded.source)
            assert tab.run("view.own.ids") == best_of(run, encoded).ids
        assert (
            tab.run("document.querySelectorAll('#text img').length") == 0 and tab.complaints == []
        )


def test_a_text_is_shown_as_it_was_written_and_its_address_brings_the_state_back(tmp_path):
    run = small("mem2mem", KNOWN)
    run.options = replace(run.options, sections=1, section_tokens=9)
    text = [["Voles of Ghent sleep 10.5 h (Smith et al., 2019).", "So?"], ["Ja."]]
    papers = [LivePaper(PAPER), LivePaper(Document("c", "On voles", ["", "End"], text, []))]
    with open_page(write_live_page(tmp_path / "page.html", run, "mem2mem", papers)) as tab:
        tab.until(WRITTEN)
        tab.run("say(''); start('text=1&uncovered=on&look=changed&step=3')")
        tab.until("view.changed?.done && location.hash.includes('step=3')")
        assert shown(tab, "#text .sentence") == ["1Voles of Ghent sleep 10.5 h (Smith et"]
        (unread,) = shown(tab, "#text .unread")
        assert unread.startswith("4 words are not read.") and unread.endswith(
            "al., 2019). So? End: Ja. "
        )
        written = json.dumps("the voles of a ghent - based team ( <dig> % ) . we 're")
        said = tab.run(f"readable({written}.split(' '), view.read.forms).join('')")
        assert said == "The voles of a Ghent-based team ([number]%). We're"
        address = tab.run("$('address').href")
        tab.open("about:blank")
        tab.open(address)
        tab.until("view.changed?.done && view.looked === 'changed'")
        assert tab.run("[$('paper').value, $('uncovered').checked, view.step]") == ["1", True, 2]
        tab.run("document.querySelector('#effect .term').click()")
        assert "natural logarithms" in shown(tab, "#tip:not([hidden])")[0]
        tab.page.locator("#picture [data-equations='14'] text").first.click()
        assert (
            "γi attention to word i and to its sentence"
            in shown(tab, "#equations [aria-checked=true]")[0]
        )
        tab.run("look('own', 0)")
        tab.page.locator("#text .word").nth(3).hover()
        assert f"γ (3): {tab.run('number(drawn.gamma[3])')}" in shown(tab, "#tip:not([hidden])")[0]
        tab.run("play()")
        tab.until("view.step === view.own.steps.length - 1 && playing === null")
        tab.run(
            "$('pasting').open = true; $('pasted').value = 'Ganz andere Worte stehen hier.'; "
            "$('take').click()"
        )
        tab.until("view.read?.raw.title === '' && view.own?.done")
        assert "100% of the words read are unknown" in shown(tab, "#unlike")[0] and not tab.run(
            "$('pasting').open"
        )
        assert tab.complaints == []


@pytest.mark.parametrize("name", ["read_again", "hierarchical_transformer", *LONG])
def test_each_answer_of_a_tour_is_true(tmp_path, name):
    """The shipped model writes what an answer says, once the button has made the change."""
    main(
        [
            "towns" if name == "hierarchical_transformer" else str(TRAINED / name),
            str(tmp_path / "page.html"),
        ]
    )
    now = (
        "['own', view.changed ? 'changed' : 'own'].map(part => "
        "$(part).lastElementChild.textContent)"
    )
    with open_page(tmp_path / "page.html") as tab:
        tab.until(WRITTEN)
        for n, stop in enumerate(TEXTS[name]["tour"]):
            tab.run(f"ask({n}); $('act').click()")
            assert tab.until("$('answer').textContent") == stop["see"]
            own, written = tab.run(now)
            assert stop["shown"] in written and stop.get("gone", "") in own, stop
            assert stop.get("gone", "no such") not in written and (
                own == written or not stop.get("same")
            ), stop
        assert tab.complaints == []


# ---------------------------------------------------------------------------------
# the towns


def act(tab, script):
    """Do what makes the page of towns write again, and wait until both models have written."""
    tab.run(f"$('status').textContent = ''; view.other = null; {{ {script} }}")
    tab.until(f"{WRITTEN} && view.other || $('status').className === 'error'")


def words_of(tab, name):
    return tab.run(f"wordsOf(view.{name})")


def reference(model, title, paragraphs):
    """What the library writes of a title and paragraphs, as the page has them."""
    rows = [[title, "<T>"], *(text.split() for text in paragraphs)]
    ids, unknown = towns.TOWN_PIECES.encode_source([word for row in rows for word in row])
    document = EncodedDocument.of("", ids, [len(row) for row in rows], [EOS], unknown, [])
    (best,) = greedy_search(
        model, make_batch([document], len(towns.TOWN_PIECES)), DecodeConfig(max_length=30)
    )
    return [towns.TOWN_PIECES.words[i] for i in best.ids]


def test_a_reader_looks_into_the_model_of_towns_and_cuts_it(pages):
    (models, page), cluster, step = pages["towns"], towns.unseen_towns(1)[0], towns.FACT_PLACES[1]
    words, p, paragraphs = town_writing(models["HT"], cluster)
    between = models["HT"].encode(towns.batch_of([cluster])).between[1][0, 1]
    with open_page(page) as tab:
        tab.until(f"{WRITTEN} && view.other")
        own, other = (towns.write_towns(model, [cluster])[0] for model in models.values())
        assert [words_of(tab, "own"), words_of(tab, "other")] == [own, other]
        tab.run(f"look('own', {step - 1}); document.activeElement.blur()")
        tab.key("ArrowRight")
        assert shown(tab, "#place") == [f"word {step + 1} of {len(words)}"]
        best = [text.split()[0] for text in shown(tab, "#words td")[:5]]
        assert best == [towns.TOWN_PIECES.words[i] for i in p[step].topk(5).indices]
        bars = tab.run("view.bars.map(bar => Number(bar.title))")
        assert bars == pytest.approx(paragraphs[step].tolist(), abs=6e-4)
        tab.run("lookInto({ layer: 1, head: 1, paragraph: 2, from: null })")
        tab.page.select_option("#at-from", "4")
        assert f"takes {between[2, 4]:.3f} from paragraph 4" in shown(tab, "#between caption")[0]
        assert shown(tab, "#equations b") == [*(f"({n})" for n in range(7, 24)), "y", "P"]
        act(tab, f"{move('cut0=0')}; {move('cut1=0')}")
        (changed,) = towns.write_towns(
            models["HT"], [cluster], change=changes_of(models["HT"])["layers cut"]
        )
        assert (
            words_of(tab, "changed") == changed
            and "with the change: 4 of 4" in shown(tab, "#facts th")[2]
        )
        assert tab.complaints == []


def test_a_reader_changes_the_paragraphs(pages):
    models, page = pages["towns"]
    paragraphs = [paragraph.text for paragraph in towns.unseen_towns(1)[0].paragraphs]
    typed = (
        "</script><script>alert(1)</script> <img src=x onerror=alert(1)> [EOS] 我们 osvia lies on "
        "the tisza ."
    )
    with open_page(page) as tab:
        tab.until(f"{WRITTEN} && view.other")
        edit = """document.querySelectorAll('.tool')[{}].click();
            const field = document.querySelector('#text textarea'); field.value = {};
            field.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}));"""
        act(tab, edit.format(3, json.dumps(typed)))
        paragraphs[3] = " ".join(tokenize(typed.lower()))  # "[EOS]" is three
        assert words_of(tab, "changed") == reference(models["HT"], "osvia", paragraphs)
        assert tab.run("document.querySelectorAll('#text img').length") == 0
        act(tab, edit.format(0, "''"))
        assert words_of(tab, "changed") == reference(models["HT"], "osvia", paragraphs[1:])
        act(tab, "take([])")
        act(tab, move("sees=0"))
        assert "decoder would see nothing" in shown(tab, "#status")[0] and tab.complaints == []


# ---------------------------------------------------------------------------------
# the pointer


@torch.no_grad()
def distributions(model, document, ids, step, switch) -> dict[str, torch.Tensor]:
    """P_g, P_c and P = p P_g + (1 - p) P_c at a step of a summary, with a switch p moved by
    hand."""
    output, _ = model.decode(
        torch.tensor([[BOS, *ids]]), model.encode(make_batch([document], VOCAB))
    )
    generated = model.pointer.vocabulary(output.features[0, step]).softmax(-1)
    generated = torch.nn.functional.pad(generated, (0, len(document.unknown)))
    copied = torch.zeros_like(generated).index_add(0, output.source[0], output.copy[0, step])
    return {
        "generated": generated,
        "copied": copied,
        "mixed": switch * generated + (1 - switch) * copied,
    }


def test_a_reader_types_and_moves_the_switch(pages):
    pointer, page = pages["pointer"]
    source, unknown = pointer.vocabulary.encode_source(TEXT.split())
    document = EncodedDocument.of("typed", source, [len(source)], [EOS], unknown, [])
    with open_page(page) as tab:
        tab.until("view.run !== null")
        (expected,) = beam_search(pointer.model, make_batch([document], VOCAB), pointer.decode)
        assert shown(tab, "#ended td:last-child") == [
            pointer.vocabulary.text(h.ids, unknown) for h in expected
        ]
        assert set(shown(tab, ".unknown")) == {"thylacine", "."}
        tab.run("look(2); $('by-hand').value = 0.3; $('by-hand').dispatchEvent(new Event('input'))")
        parts = distributions(pointer.model, document, tab.run("view.run.best.ids"), 2, 0.3)
        for name, best in tab.run("view.steps[2].output.best").items():
            values, ids = parts[name].topk(3)
            assert [i for i, _ in best] == ids.tolist()
            assert [share for _, share in best] == pytest.approx(values.tolist(), abs=1e-5)
        assert shown(tab, "#best td")[0].endswith(f" {parts['generated'].max():.2f}")
        tab.run("$('restore').click(); $('typed').focus(); $('typed').select()")
        tab.page.keyboard.insert_text(
            "<script>alert(1)</script><img src=x onerror=alert(1)> w1 . " * 20
        )
        assert "The first 200 of" in shown(tab, "#status")[0]
        assert tab.run("document.querySelectorAll('img').length") == 0 and tab.complaints == []


# ---------------------------------------------------------------------------------
# training


def test_a_reader_trains_two_models(pages):
    with open_page(pages["training"][1]) as tab:
        right = shown(tab, "#right-words")
        assert "0 of 20" in shown(tab, "#looks1")[0]
        tab.run("$('run').click()")
        tab.until("view.losses.length >= 10")
        tab.run("$('run').click()")
        losses = tab.run("view.losses")
        assert all(last < 0.95 * first for first, last in zip(losses[0], losses[-1]))
        assert shown(tab, "#run") == ["Go on"] and f"Step {len(losses)}" in shown(tab, "#status")[0]
        tab.run("$('again').click(); $('run').click()")
        tab.until("view.losses.length >= 2")
        assert tab.run("view.losses.slice(0, 2)") == losses[:2], (
            "the same seed begins in the same way"
        )
        tab.run(
            "$('run').click(); $('seed').value = 1; $('again').click(); $('other').click(); "
            "$('run').click()"
        )
        tab.until("view.losses.length")
        assert (
            tab.run("view.losses[0]") != losses[0]
            and shown(tab, "#right-words") != right
            and tab.complaints == []
        )


# ---------------------------------------------------------------------------------
# two models


def both(tab, expression):
    """Wait until an expression is true in both frames."""
    for frame in tab.page.frames[1:]:
        frame.wait_for_url("**.html#*")
        Tab(frame).until(expression)


def test_two_models_read_one_text(pages):
    read = "view.read?.words.join(' ') === 'the mice sleep .'"
    with open_page(pages["read_again"][1]) as tab:
        tab.until(WRITTEN)
        tab.run("$('pasted').value = 'The mice sleep.'; $('take').click()")
        tab.until("$('beside').href.includes('mice')")
        tab.open(tab.run("$('beside').href"))
        both(tab, f"{read} && view.own?.done")
        tab.page.select_option("#pair", "mem2mem windowed")
        both(tab, "view.read?.raw.title === 'On mice' && view.own?.done")
        tab.page.select_option("#paper", "own")
        tab.page.check("#uncopied")
        tab.page.reload()
        both(tab, f"{read} && view.changed?.done && $('uncopied').checked")
        assert [Tab(frame).run("model.constructor.name") for frame in tab.page.frames[1:]] == [
            "Mem2Mem",
            "Windowed",
        ]
        assert tab.run("$('pasted').value") == "The mice sleep." and tab.complaints == []


# ---------------------------------------------------------------------------------
# odd texts, and odd addresses

ODD = [*typed_texts()[:72:2], "word " * 50_000, "x" * 5_000, ". " * 300, "- item\n" * 2_000]
# Give the page each text, point at all words and press keys before the model has written; returns
# what the page says of each.
TAKE_ALL = """async texts => {
    const said = [], pause = () => new Promise(go => setTimeout(go, 5));
    for (const text of texts) {
        $('pasted').value = text;
        $('take').click();
        for (const word of document.querySelectorAll('#text .word')) showTip({ target: word });
        for (const key of ['ArrowRight', 'ArrowLeft'])
            document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        $('play').click();
        while (!view.own?.done && $('status').className !== 'error') await pause();
        play(false);
        for (const word of [...document.querySelectorAll('#text .word')].slice(-9)) showTip({ target: word });
        said.push([$('status').className, $('status').textContent, view.read?.words.length]);
    }
    return said;
}"""
ADDRESSES = [
    "text=99", "text=abc", "text=", "text=-1", "text=0&step=abc", "text=0&step=-1e99", "text=1&look=read&step=2",
    "text=0&look=constructor&step=1", "text=0&slot=99&erased=99&memory=x&order=7", "%E0%A4%A", "text=0&pair=x",
    "text=own&own=It ends.&erased=5&step=99", "x" * 200_000,
]  # fmt: skip


def go_to(tab, address):
    """Change the page's address; wait until it has written."""
    tab.run(f"view.own = null; say(''); location.hash = {json.dumps(address)}")
    tab.until("(view.own?.done || $('status').className === 'error') && $('stop').disabled", 60)


@pytest.mark.parametrize("name", OF_TEXTS)
def test_odd_texts_raise_nothing(pages, name):
    run, page = pages[name]
    with open_page(page) as tab:
        tab.until(WRITTEN)
        texts = ODD if name == "mem2mem" else ODD[::4]
        said = tab.page.evaluate(TAKE_ALL, texts)
        assert tab.complaints == []
        for text, (kind, status, words) in zip(texts, said, strict=True):
            (document,) = run.options.encode([parse_text(text)], run.encoder)
            assert kind == "" and re.search(r"^\d+ words? in ", status), (text[:80], status)
            assert words == len(document.source), text[:80]


def test_a_text_without_a_sentence_leaves_nothing_of_the_text_before(pages):
    with open_page(pages["mem2mem"][1]) as tab:
        tab.until(WRITTEN)
        tab.run("$('pasted').value = 'Ganz andere Worte.'; $('take').click()")
        tab.until("view.own?.done && $('unlike').textContent && $('stop').disabled")
        for text in ("", " \n ", "# A title"):
            tab.run(f"$('pasted').value = {json.dumps(text)}; $('take').click()")
            tab.until("$('status').className === 'error' && $('stop').disabled")
            assert shown(tab, "#status") == [
                "The text has no sentence: there is nothing to summarize."
            ]
            assert shown(tab, "#unlike") == [""] and tab.run("view.own") is None
            assert not tab.page.locator("#columns").is_visible()
            tab.key("ArrowRight")
        tab.page.select_option("#paper", "0")
        tab.until(f"{WRITTEN} && view.own?.done")
        assert tab.page.locator("#columns").is_visible() and tab.complaints == []


def test_a_wrong_address_brings_a_text_all_the_same(pages):
    page = pages["mem2mem"][1]
    with open_page(page) as tab:
        tab.until(WRITTEN)
        for address in ADDRESSES:
            go_to(tab, address)
            assert re.search(r"^\d+ words? in ", shown(tab, "#status")[0]), address[:80]
            assert tab.run("$('paper').value") in ("0", "1", "own"), address[:80]
            assert shown(tab, "#place")[0].startswith("word ")
        tab.open("about:blank")
        tab.open(f"{page.as_uri()}#text=99")
        tab.until(WRITTEN)
        assert tab.run("view.read.raw.title") == "On mice" and tab.complaints == []


def test_a_text_that_is_too_long_for_a_link_is_not_in_it(pages):
    with open_page(pages["mem2mem"][1]) as tab:
        tab.until(WRITTEN)
        assert tab.page.locator("#address").is_visible()
        tab.run("$('pasted').value = 'The mice sleep. '.repeat(9000); $('take').click()")
        tab.until("view.own?.done && $('stop').disabled")
        assert tab.run("location.href.length") < 1_000
        assert not tab.page.locator("#address").is_visible()
        assert "too long for a link" in tab.page.locator("#unlinked").text_content()
        tab.run("$('pasted').value = 'The mice sleep.'; $('take').click()")
        tab.until("location.hash.includes('mice')")
        assert tab.page.locator("#address").is_visible() and tab.complaints == []


def test_an_answer_and_an_effect_wait_for_the_summary(pages):
    """While the change is measured, the page says so; an answer goes with what it is about."""
    with open_page(pages["read_again"][1]) as tab:
        tab.until(WRITTEN)
        tab.run(
            """window.said = []; new MutationObserver(() =>
                said.push([$('status').textContent, $('effect').textContent, $('answer').textContent])
            ).observe($('status'), { childList: true });
            ask(0); $('act').click()"""
        )
        tab.until("$('answer').textContent && $('stop').disabled")
        said = tab.run("window.said")
        assert [line for line in said if " in " in line[0] and not line[1]] == []
        assert any("compares" in line[0] for line in said)
        tab.run("said.length = 0; $('act').click()")
        tab.until("$('answer').textContent && $('stop').disabled")
        assert {answer for _, _, answer in tab.run("window.said")} == {""}
        tab.run("$('undo').click()")
        tab.until(f"{WRITTEN} && $('changed').hidden && $('stop').disabled")
        assert shown(tab, "#answer") == [""] and tab.complaints == []


def test_numbers_for_people(pages):
    with open_page(pages["read_again"][1]) as tab:
        numbers = [-11, -0.25, -0.0001, 0, 0.25, 12.345, "-Infinity"]
        said = tab.run(f"[{', '.join(map(str, numbers))}].map(number)")
        assert said == ["−11.00", "−0.250", "−1.0e-4", "0.000", "0.250", "12.35", "−∞"]
        tab.until(WRITTEN)
        tab.run(
            "$('beam').value = -5; $('beam').dispatchEvent(new Event('change', { bubbles: true }))"
        )
        assert tab.run("$('beam').value") == "1"


def test_odd_words_in_towns_and_in_the_pointer_raise_nothing(pages):
    with open_page(pages["towns"][1]) as tab:
        tab.until(f"{WRITTEN} && view.other")
        for text in ODD[:36:9]:
            words = json.dumps([text[:600], "osvia lies on the tisza ."])
            act(tab, f"take({words})")
            assert shown(tab, "#status")[0].endswith(" s")
        for address in ("text=99", "edited=5", "edited=%5B1%5D", "edited={", "title=999&sees=7"):
            tab.run(f"view.other = null; location.hash = {json.dumps(address)}")
            tab.until("view.other && $('stop').disabled", 60)
            assert tab.run("$('status').className") == "", address
        assert tab.complaints == []
    with open_page(pages["pointer"][1]) as tab:
        tab.until("view.run !== null")
        for text in ODD:
            tab.run(f"$('typed').value = {json.dumps(text)}; read()")
            assert "summary" in shown(tab, "#status")[0], text[:80]
        assert tab.complaints == []


def test_a_wrong_address_of_two_models_brings_them_all_the_same(pages):
    address = f"{pages['side_by_side'][1].as_uri()}#pair=constructor&text=map"
    with open_page(address) as tab:
        both(tab, WRITTEN)
        assert tab.run("$('pair').value") == "mem2mem windowed"
        assert tab.run("$('paper').value") == "0" and tab.complaints == []


# ---------------------------------------------------------------------------------
# everybody


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [*OF_TEXTS, "towns", "pointer", "training", "side_by_side"])
def test_everybody_can_use_the_page(pages, name, theme):
    with open_page(pages[name][1], theme) as tab:
        if name == "side_by_side":
            both(tab, WRITTEN)
        elif name in ("pointer", "training"):
            tab.until(f"view.{'run' if name == 'pointer' else 'work'} !== null")
        else:
            tab.until(WRITTEN)
            tab.run(
                move("positions" if name == "towns" else next(iter(CASES[name].controls.values())))
            )
            tab.until(f"{WRITTEN} && view.changed?.done")
        # The frame's heading is that of the page in which it stands.
        tab.check_looks(allowed="page-has-heading-one" if name == "pointer" else "")
        dark = tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"
        assert dark == (theme == "dark")
        if theme == "light":
            tab.check_keyboard()
