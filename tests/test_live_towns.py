"""The page of the towns: its model writes what the library's does, its facts are judged as the task judges them, and
a reader can change the text and the model."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import companion.solve
from companion.live.page import LIVE, scripts
from companion.live.towns import SCRIPTS, model_data, towns_data
from companion.pages.diagrams import live_picture
from companion.pages.towns import town_writing
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, town_cluster, town_document
from companion.tasks.towns import SHIPPED, batch_of, kind_of, open_towns, rows_about, unseen_towns, write_towns
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.decoding.search import DecodeConfig, beam_search, greedy_search
from lib.evaluation.interventions import Change, changes_of, decoder_sees, log_probs, without_unit
from tests.tools.axe import needs_axe
from tests.tools.devtools import Browser
from tests.tools.live import (
    WRITTEN,
    check_axe,
    check_keyboard,
    check_looks,
    needs_browser,
    needs_node,
    read_by,
    text_of,
)

CLUSTERS = 10
MODELS = """
const opened = async ([name, { config, weights }]) =>
  [name, new HierarchicalTransformer(config, await unpacked(weights), 5)];
const models = Object.fromEntries(await Promise.all(Object.entries(data.models).map(opened)));
"""


@pytest.fixture(scope="module")
def towns():
    return open_towns()


@pytest.fixture(scope="module")
def clusters():
    return unseen_towns(CLUSTERS)


def given(models):
    return {name: model_data(model) for name, model in models.items()}


def documents_of(clusters):
    return [town_document(cluster, str(i)) for i, cluster in enumerate(clusters)]


# -------------------------------------------------------------------------------------------------- what is computed


@needs_node
def test_both_models_write_what_the_librarys_write(node, towns, clusters):
    """Greedily, as the task does, and with a beam: ids, and log P word by word."""
    decodings = [DecodeConfig(beam=1, max_length=30), DecodeConfig(beam=4, max_length=30)]
    found = node(
        scripts(*SCRIPTS),
        f"""{MODELS}
        const write = (model, document, rules) => {{
          const best = all(search(model, document, rules));
          return {{ ids: best.ids, logP: best.logP, logs: all(logProbs(model, document, best.ids)) }};
        }};
        const each = model => data.documents.map(read => {{
          const document = all(model.encode(read));
          return data.decodings.map(rules => write(model, document, rules));
        }});
        return Object.fromEntries(Object.entries(models).map(([name, model]) => [name, each(model)]));""",
        models=given(towns), documents=list(map(read_by, documents_of(clusters))),
        decodings=[vars(decoding) for decoding in decodings],
    )  # fmt: skip
    batch = batch_of(clusters)
    for name, model in towns.items():
        by_beam = [
            greedy_search(model, batch, decodings[0]),
            [best for best, *_ in beam_search(model, batch, decodings[1])],
        ]
        for place, hypotheses in enumerate(by_beam):
            ours = [of_document[place] for of_document in found[name]]
            assert [o["ids"] for o in ours] == [h.ids for h in hypotheses], (name, place)
            assert [o["logP"] for o in ours] == pytest.approx([h.log_prob for h in hypotheses], abs=1e-4)
            assert [sum(o["logs"]) for o in ours] == pytest.approx([h.log_prob for h in hypotheses], abs=1e-4)
    assert all(EOS not in o["ids"] and len(o["ids"]) == 23 for o in ours)


SEES_OWN, SEES_OTHERS, ANYWAY = "decoder sees the title's town", "decoder sees the other town", "nothing"
CHANGES = {
    "nothing": {},
    "layer 1 cut": {"cuts": ["itself", ""]},
    "layer 2 cut": {"cuts": ["", "itself"]},
    "layers cut": {"cuts": ["itself", "itself"]},
    "first paragraph cut in layer 1": {"cuts": ["first", ""]},
    "first paragraph cut in layer 2": {"cuts": ["", "first"]},
    "first paragraph cut": {"cuts": ["first", "first"]},
    "no paragraph positions": {"positions": False},
    SEES_OWN: {"sees": True},
    SEES_OTHERS: {"sees": False},
    "first unit erased": {"dropped": 0},
    "fourth unit erased": {"dropped": 3},
}
FORCED = f"""{MODELS}
const changed = (model, {{ sees, dropped, ...change }}) => data.documents.map((read, n) => {{
  const sentences = read.sentences.filter((_, i) => i !== dropped);
  const seen = sees === undefined ? null : data.own[n].map((own, i) => i > 0 && own === sees);
  const of = model.with({{ ...change, seen }}), document = all(of.encode({{ ...read, sentences }}));
  return mean(all(logProbs(of, document, data.targets[n], true)));
}});
const mean = numbers => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const each = (record, of) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value, name)]));
return each(models, (model, name) => each(data.changes[name], change => changed(model, change)));"""


@needs_node
def test_every_change_is_the_librarys(node, towns, clusters):
    """Cuts, positions, what the decoder sees, a paragraph that is dropped: log P of the references."""
    clusters = clusters[:3]
    documents = documents_of(clusters)
    without_layers = [name for name in CHANGES if "cut" not in name]
    known = {name: changes_of(model) for name, model in towns.items()}
    for changes in known.values():
        changes |= {
            SEES_OWN: decoder_sees(rows_about(clusters, True)),
            SEES_OTHERS: decoder_sees(rows_about(clusters, False)),
        }
        changes["fourth unit erased"] = Change("", document=partial(without_unit, unit=3))
    names = dict(zip(SHIPPED, (list(CHANGES), without_layers)))
    found = node(
        scripts(*SCRIPTS), FORCED, models=given(towns), documents=list(map(read_by, documents)),
        changes={model: {name: CHANGES[name] for name in chosen} for model, chosen in names.items()},
        own=[[None, *(p.town == c.title for p in c.paragraphs)] for c in clusters],
        targets=[document.target.tolist() for document in documents],
    )  # fmt: skip
    for model, chosen in names.items():
        for name in chosen:
            expected = log_probs(towns[model], documents, known[model][name])
            assert found[model][name] == pytest.approx(expected, abs=1e-4), (model, name)
        means = {name: round(float(np.mean(values)), 6) for name, values in found[model].items()}
        assert len(set(means.values())) == len(chosen), "every change does something of its own"
    assert set(CHANGES) >= {name for name in known["HT"] if "cut" in name or "positions" in name}, "none is left out"


@needs_node
def test_what_the_page_shows_is_what_the_model_sees(node, towns, clusters):
    """Attention between paragraphs, pooling, the decoder's attention, the best words; of a cut layer, too."""
    document, model = documents_of(clusters)[3], towns["HT"]
    tokens = [2, *document.target[:9].tolist()]
    found = node(
        scripts(*SCRIPTS),
        f"""{MODELS}
        const of = models.HT.with({{ cuts: ["", "itself"] }}), encoded = all(of.encode(data.document));
        let state = of.first(), output;
        for (const token of data.tokens) {{
          const made = of.advance([token], [state], encoded);
          [state] = made.states;
          [output] = made.outputs;
          of.distributions(made.outputs, made.features);
        }}
        const pooling = encoded.global.map(({{ pooled }}) => pooled.flatMap(({{ weights }}) => [...weights]));
        return {{ between: encoded.global.map(({{ between }}) => [...between]), pooling, words: [...output.words],
          paragraphs: [...output.paragraphs], best: output.best, states: [...encoded.words] }};""",
        models=given({"HT": model}), document=read_by(document), tokens=tokens,
    )  # fmt: skip
    with torch.no_grad(), changes_of(model)["layer 2 cut"].model(model):
        state = model.encode(make_batch([document], len(TOWN_PIECES)))
        seen = model.attention_weights(torch.tensor([tokens]), state)
        output, _ = model.decode(torch.tensor([tokens]), state)
        weight, bias = model.output_layer()
        p = (output.features[0, -1] @ weight.T + bias).softmax(-1)
    assert np.allclose(found["between"], [b.flatten() for b in state.between], atol=1e-5)
    assert np.allclose(found["pooling"], [b.flatten() for b in state.pooling], atol=1e-5)
    assert np.allclose(found["states"], state.words.flatten(), atol=1e-4)
    assert np.allclose(found["words"], seen["words"][0, -1], atol=1e-5)
    assert np.allclose(found["paragraphs"], seen["units"][0, -1], atol=1e-5)
    values, ids = p.topk(5)
    assert [i for i, _ in found["best"]] == ids.tolist()
    assert np.allclose([share for _, share in found["best"]], values, atol=1e-5)


# ---------------------------------------------------------------------------------------------------- what is right

JUDGED = """
const facts = new TownFacts(data.about);
const of = ({ title, paragraphs, summary }) => facts.judged(summary, title, facts.mentions(paragraphs));
return data.cases.map(of);"""


def judged(node, cases):
    about = {name: value for name, value in towns_data([], [], DecodeConfig()).items() if name != "models"}
    return node(scripts("town_facts"), JUDGED, about=about, cases=cases)


def case(title, paragraphs, summary):
    return {"title": title, "paragraphs": list(map(str.split, paragraphs)), "summary": summary}


@needs_node
def test_facts_are_judged_as_the_task_judges_them(node, towns):
    """Summaries of both models, and such as no model writes: of every kind."""
    clusters, random = unseen_towns(40), np.random.default_rng(0)
    cut = changes_of(towns["HT"])["layers cut"]
    summaries = [*write_towns(towns["HT"], clusters, change=cut), *write_towns(towns[SHIPPED[1]], clusters)]
    other = [town_cluster(random).summary.split() for _ in clusters]
    clusters, summaries = clusters * 4, [*summaries, *other, *([["a"]] * len(clusters))]
    found = judged(node, [case(c.title, [p.text for p in c.paragraphs], s) for c, s in zip(clusters, summaries)])
    expected = [
        [kind_of(c, fact, "".join(s[place : place + 1])) for fact, place in enumerate(FACT_PLACES)]
        for c, s in zip(clusters, summaries)
    ]
    assert [[fact["kind"] for fact in facts] for facts in found] == expected
    assert {kind for kinds in expected for kind in kinds} == {"right", "other town's", "minority's", "nowhere"}


@needs_node
def test_facts_of_a_changed_text_are_what_it_says_most(node):
    """Two towns in a paragraph, a value of no town, as many mentions of two values, a town that is not there."""
    summary = str.split(
        "osvia , founded in 1460 , lies on the arno . it is known for its cider . its mayor is greco ."
    )
    texts = {
        "right": ["osvia lies on the arno ."],
        "tied": ["osvia lies on the arno .", "osvia is crossed by the oder ."],
        "minority's": ["osvia lies on the arno .", "the oder , osvia has the oder , not the elt , but oder"],
        "other town's": ["osvia lies on the oder . velholm lies on the arno ."],
        "nowhere": ["it lies on the arno . osvia"],
    }
    found = judged(node, [case("osvia", paragraphs, summary) for paragraphs in texts.values()])
    assert [facts[1]["kind"] for facts in found] == list(texts)
    assert [facts[1]["said"] for facts in found] == [[0], [0], [0], [], []] and found[3][1]["other"] == "velholm"
    assert all(facts[0]["kind"] == "nowhere" for facts in found)


# ---------------------------------------------------------------------------------------------------- in a browser

STEP = FACT_PLACES[1]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "towns.html"
    companion.solve.main(["towns", "--live", str(path)])
    return path


def test_the_page_is_one_small_file_that_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert len(text) < 2_000_000 and text.count("</script>") == 2
    assert not re.search(r"""(?<!xlink:)(src|href)\s*=\s*["'](?!#)|@import|url\((?!#)|fetch\(|import\(""", text)
    (code,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval'; " in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["memory"], "memory: there is no live page of this task, only of towns"),
        (["towns", "HT"], "leave out rows, --seeds and --output"),
        (["towns", "--seeds", "1"], "leave out rows, --seeds and --output"),
    ],
)
def test_what_makes_no_page_is_one_line(tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=f"^error: .*{message}$"):
        companion.solve.main([*arguments, "--live", str(tmp_path / "page.html")])
    assert not list(tmp_path.iterdir())


def test_the_picture_is_the_one_of_the_pages():
    """Boxes, arrows and the equations that light them; to draw it again: companion.pages.diagrams.live_picture."""
    ours = (LIVE / "hierarchical_transformer.svg").read_text(encoding="utf-8")
    ids = [re.findall(r'id="(p\d+-[^"]*)"', text) for text in (ours, live_picture("hierarchical_transformer"))]
    assert ids[0] == ids[1] and len(set(ids[0])) == len(ids[0]) > 40


@pytest.fixture(scope="module")
def tab(page):
    with Browser(page) as tab:
        tab.until(WRITTEN)
        yield tab
        assert tab.complaints() == []


def act(tab, script):
    """Do what makes the page write again, and wait until it has written."""
    tab.run(f"$('status').textContent = ''; {{ {script} }}")
    tab.until(f"{WRITTEN} || $('status').className === 'error'")


def choose(name, value):
    return f"$({name!r}).value = {value!r}; $({name!r}).dispatchEvent(new Event('change'));"


def typed(place, text):
    """What a reader does to give a paragraph other words."""
    return f"""document.querySelector('[data-tool=edit{place}]').click();
    const field = document.querySelector('#text textarea'); field.value = {json.dumps(text)};
    field.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}));"""


def written(tab, name="own"):
    return tab.run(f"view[{name!r}].ids.map(id => word(id, view[{name!r}].text))")


def shown(tab, selector):
    return tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def reference(models, title, paragraphs, change=None):
    """What the library writes of a title and paragraphs, as the page has them."""
    rows = [[title, "<T>"], *(text.split() for text in paragraphs)]
    ids = [[TOWN_PIECES.words.index(w) if w in TOWN_PIECES.words else len(TOWN_PIECES) for w in row] for row in rows]
    document = EncodedDocument.of("", [i for row in ids for i in row], [len(row) for row in ids], [EOS])
    with (change or changes_of(models)["nothing"]).model(models):
        (best,) = greedy_search(models, make_batch([document], len(TOWN_PIECES)), DecodeConfig(max_length=30))
    return [TOWN_PIECES.words[i] for i in best.ids]


@needs_browser
def test_a_reader_sees_both_models_write_and_steps(tab, towns):
    """The words, the best of P, weights and matrices of a step, by buttons, keys and mouse."""
    act(tab, "$('undo').click()")  # whatever a test before has changed
    cluster = unseen_towns(1)[0]
    ((own,), (other,)) = (write_towns(model, [cluster]) for model in towns.values())
    assert written(tab) == own and written(tab, "other") == other and own != other
    words, p, paragraphs = town_writing(towns["HT"], cluster)
    tab.run(f"look('own', {STEP})")
    for step in (STEP, STEP + 1):
        assert text_of(tab, "#place") == f"word {step + 1} of {len(words)}"
        assert shown(tab, "#words td:first-child") == [TOWN_PIECES.words[i] for i in p[step].topk(5).indices]
        bars = tab.run("view.bars.map(bar => Number(bar.title))")
        assert bars == pytest.approx(paragraphs[step].tolist(), abs=6e-4)
        tab.run("document.activeElement.blur()")
        tab.key("ArrowRight")
    tab.run(f"look('own', {STEP})")
    assert "2 of 4" in shown(tab, "#facts th")[2] and "velholm's" in text_of(tab, "#facts")
    state = towns["HT"].encode(batch_of([cluster]))
    tab.run("place({ layer: 1, head: 1, paragraph: 2, from: null }); $('between').querySelector('.at').focus()")
    for key, (i, k) in {"": (2, 0), "ArrowRight": (2, 2), "ArrowDown": (4, 2)}.items():
        if key:
            tab.key(key)
        weight = state.between[1][0, 1, i, k].item()
        assert tab.run("document.activeElement.dataset.pair") == f"{i} {k}", "the keys move in the matrix, by town"
        said = text_of(tab, "#pair")
        assert f"paragraph {i} (osvia) takes " in said and f"{weight:.3f}"[:5] in said
        assert tab.run("document.activeElement.title") in said and tab.run("view.step") == STEP
    values = dict(zip(shown(tab, "#equations b"), shown(tab, "#equations .value")))
    assert list(values) == [*(f"({n})" for n in range(7, 24)), "y", "P"]
    assert f"weight {state.between[1][0, 1, 4, 2].item():.3f}"[:12] in values["(20)"] and "arno" in values["P"]


CUT = {
    "layers cut": choose("cut0", "itself") + choose("cut1", "itself"),
    "first paragraph cut in layer 2": choose("cut1", "first"),
    "no paragraph positions": "$('positions').click();",
    SEES_OTHERS: choose("sees", "others"),
}


@needs_browser
@pytest.mark.parametrize("name", CUT)
def test_a_cut_is_read_back(tab, towns, name):
    """log P of the unchanged summary, the summary, and its facts."""
    cluster = unseen_towns(1)[0]
    change = changes_of(towns["HT"]).get(name) or decoder_sees(rows_about([cluster], False))
    act(tab, "$('undo').click()")
    act(tab, CUT[name])
    own = written(tab)
    document = replace(town_document(cluster), target=np.array([*map(TOWN_PIECES.words.index, own), EOS]))
    values = json.loads(tab.run("$('effect').dataset.values"))
    for key, of in (("own", changes_of(towns["HT"])["nothing"]), ("changed", change)):
        assert values[key] == pytest.approx(log_probs(towns["HT"], [document], of)[0], abs=1e-4)
    (changed,) = write_towns(towns["HT"], [cluster], change=change)
    assert written(tab, "changed") == changed and f"{values['changed']:.3f}".replace("-", "−") in text_of(
        tab, "#effect"
    )
    right = sum(kind_of(cluster, fact, changed[place]) == "right" for fact, place in enumerate(FACT_PLACES))
    assert f"with your changes: {right} of 4" in shown(tab, "#facts th")[2]


TEXTS = {
    "hostile": "</script><script>alert(1)</script> <img src=x onerror=alert(1)> [EOS] osvia lies on the tisza .",
    "of one word": "osvia",
    "unknown": "我们走了 , osvia has a market for gold ; it dates from 1500 !",
}


@needs_browser
@pytest.mark.parametrize("name", [*TEXTS, "empty", "one paragraph", "no paragraph", "the other town"])
def test_the_text_can_be_changed(tab, towns, name):
    """What is typed is read as words, whatever it is; what is written is what the library writes."""
    act(tab, "$('undo').click()")
    title, paragraphs = "osvia", [p.text for p in unseen_towns(1)[0].paragraphs]
    if name in TEXTS:
        act(tab, typed(3, TEXTS[name]))
        words = re.findall(r"\w+|[^\w\s]", TEXTS[name].lower())  # "[EOS]" is three
        assert tab.run("view.text.paragraphs[3]") == words
        paragraphs[3] = " ".join(words)
        assert tab.run("document.activeElement.dataset.tool") == "edit3", "the focus stays at the paragraph"
        unknown = [w for w in paragraphs[3].split() if w not in TOWN_PIECES.words]
        assert shown(tab, ".unknown") == unknown and bool(unknown) == (name != "of one word")
        assert tab.run("document.querySelectorAll('#text img').length") == 0
    elif name == "empty":
        act(tab, typed(3, "  "))
        del paragraphs[3]
        assert "empty: not read" in text_of(tab, "#text")
    elif name == "the other town":
        title = "velholm"
        act(tab, choose("title", title))
    else:
        keep = {"one paragraph": 1, "no paragraph": 0}[name]
        act(tab, f"take({{ paragraphs: view.text.paragraphs.slice(0, {keep + 1}) }})")
        act(tab, f"document.querySelector('[data-tool=drop{keep}]').click()")
        paragraphs = paragraphs[:keep]
    expected = [reference(model, title, paragraphs) for model in towns.values()]
    assert [written(tab, "changed"), written(tab, "other")] == expected
    assert shown(tab, "#between tr th[scope=row]")[0] == f"title {title}"
    if name == "no paragraph":
        assert "0 of 4" in shown(tab, "#facts th")[2] and "the title alone" in text_of(tab, "#text")
        act(tab, choose("sees", "own"))
        assert "decoder would see nothing" in text_of(tab, "#status")
    tab.run("$('own').querySelector('.word').click()")
    assert "before your changes" in text_of(tab, "#text h2"), "the unchanged summary stands beside its own text"
    assert shown(tab, "#text .tools") == []


@needs_browser
def test_paragraphs_are_added_and_shuffled(tab, towns):
    act(tab, "$('undo').click()")
    act(tab, "$('add').click()")
    (added,) = tab.run("view.text.paragraphs.slice(12)")
    assert "osvia" in added and len(tab.run("facts.mentions([view.text.paragraphs[12]])")) == 2
    act(tab, "$('shuffle').click()")
    paragraphs = [" ".join(words) for words in tab.run("view.text.paragraphs")]
    own = [p.text for p in unseen_towns(1)[0].paragraphs]
    assert sorted(paragraphs) == sorted([*own, " ".join(added)]) and paragraphs[:12] != own
    assert written(tab, "changed") == reference(towns["HT"], "osvia", paragraphs)
    act(tab, "$('keep').click()")
    assert written(tab) == reference(towns["HT"], "osvia", paragraphs) and tab.run("$('changed').hidden")
    act(tab, choose("cluster", "1"))
    assert written(tab) == write_towns(towns["HT"], unseen_towns(2)[1:])[0]
    act(tab, choose("cluster", "0"))


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_in_both_themes_and_at_every_width(page, theme):
    check_looks(page, theme, change="positions")


@needs_browser
def test_every_control_has_a_name_and_the_keyboard_reaches_it(page):
    check_keyboard(page)


@needs_axe
def test_axe_finds_nothing(page):
    check_axe(page, "light", change="positions")
