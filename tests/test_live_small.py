"""The live pages of small models: the hierarchical transformer that writes about towns, and the frame of Start here
in which a pointer-generator reads what is typed."""

import json
import re
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch

from companion.live.__main__ import main
from companion.live.page import scripts
from companion.live.pointer import LivePointer
from companion.live.towns import SCRIPTS, towns_data
from companion.pages.towns import town_writing
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, town_cluster, town_document
from companion.tasks.towns import batch_of, kind_of, open_towns, rows_about, unseen_towns, write_towns
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, Vocabulary
from lib.decoding.search import DecodeConfig, beam_search, greedy_search
from lib.evaluation.interventions import Change, changes_of, decoder_sees, log_probs, without_unit
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from tests.conftest import RAGGED, VOCAB, double
from tests.tools.browser import needs_browser, open_page
from tests.tools.live import needs_node, read_by

# -------------------------------------------------------------------------------------------------------- the towns

WRITTEN = "document.getElementById('status').textContent.includes(' words in ')"
OWN, OTHERS = "decoder sees the title's town", "decoder sees the other town"
CHANGES = {
    "nothing": {},
    "layer 1 cut": {"cuts": ["itself", ""]},
    "layer 2 cut": {"cuts": ["", "itself"]},
    "layers cut": {"cuts": ["itself", "itself"]},
    "first paragraph cut in layer 1": {"cuts": ["first", ""]},
    "first paragraph cut in layer 2": {"cuts": ["", "first"]},
    "first paragraph cut": {"cuts": ["first", "first"]},
    "no paragraph positions": {"positions": False},
    OWN: {"sees": True},
    OTHERS: {"sees": False},
    "first unit erased": {"dropped": 0},
    "fourth unit erased": {"dropped": 3},
}
TOWNS = """
const open = async ({ config, weights }) => new HierarchicalTransformer(config, await unpacked(weights), 5);
const models = await Promise.all(data.models.map(open));
const written = models.map(model => data.documents.map(read => data.decodings.map(rules => {
  const { ids, logP } = all(search(model, all(model.encode(read)), rules));
  return { ids, logP };
})));
const forced = Object.values(data.changes).map(({ sees, dropped, ...change }) => data.documents.map((read, n) => {
  const sentences = read.sentences.filter((_, i) => i !== dropped);
  const seen = sees === undefined ? null : data.own[n].map((own, i) => i > 0 && own === sees);
  const of = models[0].with({ ...change, seen }), document = all(of.encode({ ...read, sentences }));
  const logs = all(logProbs(of, document, data.targets[n], true));
  return logs.reduce((a, b) => a + b, 0) / logs.length;
}));
const facts = new TownFacts(data);
const judged = data.cases.map(({ title, paragraphs, summary }) =>
  facts.judged(summary, title, facts.mentions(paragraphs)).map(({ kind }) => kind));
return { written, forced, judged };"""


@pytest.fixture(scope="module")
def towns():
    return open_towns()


@needs_node
def test_models_changes_and_facts_of_towns_are_the_librarys(node, towns):
    """What both models write, greedily and with a beam; log P with every change; which facts are right."""
    clusters, random = unseen_towns(3), np.random.default_rng(0)
    documents = [town_document(cluster, str(i)) for i, cluster in enumerate(clusters)]
    decodings = [DecodeConfig(beam=1, max_length=30), DecodeConfig(beam=4, max_length=30)]
    summaries = [write_towns(towns["HT"], [c], change=changes_of(towns["HT"])["layers cut"])[0] for c in clusters]
    cases = list(
        zip(clusters * 3, [*summaries, *(town_cluster(random).summary.split() for _ in clusters), *[["a"]] * 3])
    )
    found = node(
        scripts(*SCRIPTS), TOWNS, **towns_data(list(towns.values()), [], decodings[0]),
        documents=list(map(read_by, documents)), decodings=list(map(asdict, decodings)), changes=CHANGES,
        own=[[None, *(p.town == c.title for p in c.paragraphs)] for c in clusters],
        targets=[document.target.tolist() for document in documents],
        cases=[
            {"title": c.title, "paragraphs": [p.text.split() for p in c.paragraphs], "summary": summary}
            for c, summary in cases
        ],
    )  # fmt: skip
    batch = batch_of(clusters)
    for model, by_document in zip(towns.values(), found["written"]):
        greedy, beams = (greedy_search(model, batch, decodings[0]), beam_search(model, batch, decodings[1]))
        for ours, one, (best, *_) in zip(by_document, greedy, beams):
            assert [h["ids"] for h in ours] == [one.ids, best.ids]
            assert [h["logP"] for h in ours] == pytest.approx([one.log_prob, best.log_prob], abs=1e-4)
    known = changes_of(towns["HT"])
    known |= {name: decoder_sees(rows_about(clusters, sees)) for name, sees in ((OWN, True), (OTHERS, False))}
    known["fourth unit erased"] = Change("", document=partial(without_unit, unit=3))
    for name, values in zip(CHANGES, found["forced"]):
        assert values == pytest.approx(log_probs(towns["HT"], documents, known[name]), abs=1e-4), name
    assert len({round(float(np.mean(values)), 6) for values in found["forced"]}) == len(CHANGES)
    expected = [
        [kind_of(c, fact, "".join(summary[place : place + 1])) for fact, place in enumerate(FACT_PLACES)]
        for c, summary in cases
    ]
    assert found["judged"] == expected and len({kind for kinds in expected for kind in kinds}) >= 3


@pytest.fixture(scope="module")
def towns_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "towns.html"
    main(["towns", str(path)])
    return path


def act(tab, script):
    """Do what makes the page write again, and wait until it has written."""
    tab.run(f"$('status').textContent = ''; {{ {script} }}")
    tab.until(f"{WRITTEN} || $('status').className === 'error'")


def choose(name, value):
    return f"$({name!r}).value = {value!r}; $({name!r}).dispatchEvent(new Event('change'));"


def words_of(tab, name="own"):
    return tab.run(f"view[{name!r}].ids.map(id => word(id, view[{name!r}].text))")


def shown(tab, selector):
    return tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def reference(model, title, paragraphs):
    """What the library writes of a title and paragraphs, as the page has them."""
    rows = [[title, "<T>"], *(text.split() for text in paragraphs)]
    ids = [[TOWN_PIECES.words.index(w) if w in TOWN_PIECES.words else len(TOWN_PIECES) for w in row] for row in rows]
    document = EncodedDocument.of("", [i for row in ids for i in row], [len(row) for row in ids], [EOS])
    (best,) = greedy_search(model, make_batch([document], len(TOWN_PIECES)), DecodeConfig(max_length=30))
    return [TOWN_PIECES.words[i] for i in best.ids]


@needs_browser
def test_a_reader_looks_into_the_model_and_cuts_it(towns_page, towns):
    cluster, step = unseen_towns(1)[0], FACT_PLACES[1]
    words, p, paragraphs = town_writing(towns["HT"], cluster)
    between = towns["HT"].encode(batch_of([cluster])).between[1][0, 1]
    with open_page(towns_page) as tab:
        tab.until(WRITTEN)
        own, other = (write_towns(model, [cluster])[0] for model in towns.values())
        assert [words_of(tab), words_of(tab, "other")] == [own, other]
        tab.run(f"look('own', {step - 1}); document.activeElement.blur()")
        tab.key("ArrowRight")
        assert shown(tab, "#place") == [f"word {step + 1} of {len(words)}"]
        assert shown(tab, "#words td:first-child") == [TOWN_PIECES.words[i] for i in p[step].topk(5).indices]
        bars = tab.run("view.bars.map(bar => Number(bar.title))")
        assert bars == pytest.approx(paragraphs[step].tolist(), abs=6e-4)
        tab.run("place({ layer: 1, head: 1, paragraph: 2, from: null }); $('between').querySelector('.at').focus()")
        tab.key("ArrowRight")
        i, k = map(int, tab.run("document.activeElement.dataset.pair").split())
        assert f"{between[i, k].item():.3f}"[:5] in shown(tab, "#pair")[0]
        assert shown(tab, "#equations b") == [*(f"({n})" for n in range(7, 24)), "y", "P"]
        act(tab, choose("cut0", "itself") + choose("cut1", "itself"))
        cut, values = changes_of(towns["HT"])["layers cut"], json.loads(tab.run("$('effect').dataset.values"))
        document = replace(town_document(cluster), target=np.array([*map(TOWN_PIECES.words.index, own), EOS]))
        assert values["changed"] == pytest.approx(log_probs(towns["HT"], [document], cut)[0], abs=1e-4)
        (changed,) = write_towns(towns["HT"], [cluster], change=cut)
        right = sum(kind_of(cluster, fact, changed[place]) == "right" for fact, place in enumerate(FACT_PLACES))
        assert words_of(tab, "changed") == changed
        assert f"with your changes: {right} of 4" in shown(tab, "#facts th")[2]
        assert tab.complaints == []


@needs_browser
def test_a_reader_changes_the_paragraphs(towns_page, towns):
    paragraphs = [paragraph.text for paragraph in unseen_towns(1)[0].paragraphs]
    typed = "</script><script>alert(1)</script> <img src=x onerror=alert(1)> [EOS] 我们 osvia lies on the tisza ."
    with open_page(towns_page) as tab:
        tab.until(WRITTEN)
        act(
            tab,
            f"""document.querySelector('[data-tool=edit3]').click();
            const field = document.querySelector('#text textarea'); field.value = {json.dumps(typed)};
            field.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}));""",
        )
        paragraphs[3] = " ".join(re.findall(r"\w+|[^\w\s]", typed.lower()))  # "[EOS]" is three
        assert words_of(tab, "changed") == reference(towns["HT"], "osvia", paragraphs)
        assert tab.run("document.querySelectorAll('#text img').length") == 0
        act(tab, choose("title", "velholm"))
        assert words_of(tab, "changed") == reference(towns["HT"], "velholm", paragraphs)
        act(tab, "document.querySelector('[data-tool=drop0]').click()")
        now = [" ".join(words) for words in tab.run("view.text.paragraphs")]
        assert len(now) == 11 and words_of(tab, "changed") == reference(towns["HT"], "velholm", now)
        act(tab, "take({ paragraphs: [] })")
        act(tab, choose("sees", "own"))
        assert "decoder would see nothing" in shown(tab, "#status")[0]


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_page_of_towns(towns_page, theme):
    with open_page(towns_page, theme) as tab:
        tab.until(WRITTEN)
        act(tab, "$('positions').click()")
        tab.check_looks()
        if theme == "light":
            tab.check_keyboard()


# ------------------------------------------------------------------------------------------------------ the pointer

WORDS = [f"w{i}" for i in range(VOCAB - 4)]
TEXT = "w0 w1 thylacine w2 . w1"
POINTER = """
const model = new Seq2Seq(data.config, await unpacked(data.weights), 3);
const read = data.documents.map(document => model.encode(document));
const written = read.map(document => {
  const run = new BeamSearch(model, document, data.decode);
  while (run.step());
  return run.ended.slice(0, data.decode.beam).map(({ ids, score }) => ({ ids, score }));
});
const moved = read.map(document => {
  const by_hand = model.with(new Map([[2, 0.25]]));
  let states = [model.first(document)], made;
  return [BOS, ...data.tokens].map(token => {
    ({ states, ...made } = by_hand.advance([token], states, document));
    return [...by_hand.distributions(made.outputs, made.features, document)[0]];
  });
});
return { written, moved };"""


@pytest.fixture(scope="module")
def pointer():
    model = double(Seq2Seq, Seq2SeqConfig(VOCAB, embedding=6, hidden=8, bottleneck=5)).half().double()
    return LivePointer(model, Vocabulary(WORDS), TEXT, DecodeConfig(max_length=9))


@torch.no_grad()
def distributions(model, document, ids, moved=None) -> dict[str, torch.Tensor]:
    """P_g, P_c and P = p P_g + (1 - p) P_c at every step of `ids` and its end, with switches moved by hand."""
    output, _ = model.decode(torch.tensor([[BOS, *ids]]), model.encode(make_batch([document], VOCAB)))
    generated = model.pointer.vocabulary(output.features[0]).softmax(-1)
    generated = torch.nn.functional.pad(generated, (0, len(document.unknown)))
    copied = torch.zeros_like(generated).index_add(1, output.source[0], output.copy[0])
    p = output.switch[0].sigmoid()
    for step, value in (moved or {}).items():
        p[step] = value
    mixed = p[:, None] * generated + (1 - p[:, None]) * copied
    return {"generated": generated, "copied": copied, "mixed": mixed, "gamma": output.copy[0]}


@needs_node
@pytest.mark.parametrize("beam", [1, 4])
def test_the_pointer_writes_as_the_library_and_mixes_as_the_equation_says(node, pointer, beam):
    decode, tokens = replace(pointer.decode, beam=beam), [4, 5, 6, 7]
    documents = [{"sentences": [d.source.tolist()], "unknown": d.unknown} for d in RAGGED]
    data = json.loads(re.search(r'id="data">(.*?)</script>', pointer.document(), re.DOTALL)[1])
    given = {"config": data["config"], "weights": data["weights"], "decode": asdict(decode)}
    code = scripts("vocabulary", "own_text", "layers", "search", "seq2seq")
    found = node(code, POINTER, **given, documents=documents, tokens=tokens)
    for document, ours, steps in zip(RAGGED, found["written"], found["moved"]):
        (expected,) = beam_search(pointer.model, make_batch([document], VOCAB), decode)
        assert [h["ids"] for h in ours] == [h.ids for h in expected]
        assert [h["score"] for h in ours] == pytest.approx([h.score for h in expected], abs=1e-4)
        assert np.allclose(steps, distributions(pointer.model, document, tokens, {2: 0.25})["mixed"], atol=1e-6)


@needs_browser
def test_a_reader_types_and_moves_the_switch(pointer, tmp_path):
    page = tmp_path / "frame.html"
    page.write_text(pointer.document(), encoding="utf-8")
    source, unknown = pointer.vocabulary.encode_source(TEXT.split())
    document = EncodedDocument.of("typed", source, [len(source)], [EOS], unknown, [])
    with open_page(page) as tab:
        tab.until("!document.querySelector('main').hidden && view.run !== null")
        (expected,) = beam_search(pointer.model, make_batch([document], VOCAB), pointer.decode)
        table = tab.run("[...document.querySelectorAll('#ended tr')].slice(1).map(row => row.lastChild.textContent)")
        assert table == [pointer.vocabulary.text(h.ids, unknown) for h in expected]
        assert set(shown(tab, ".unknown")) == {"thylacine", "."}
        tab.run("look(2); $('switch').value = 0.3; $('switch').dispatchEvent(new Event('input'))")
        ids = tab.run("view.run.best.ids")
        parts = distributions(pointer.model, document, ids, {2: 0.3})
        words = [*pointer.vocabulary.words, *unknown]
        for name, row in zip(("generated", "copied", "mixed"), range(1, 4)):
            (p, *_), (word, *_) = parts[name][2].topk(1)
            assert shown(tab, f"#best tr:nth-child({row}) td")[0] == f"{words[int(word)]} {float(p):.2f}"
        weights = tab.run("[...document.querySelectorAll('#attention span')].map(e => parseFloat(e.title))")
        assert np.allclose(weights, parts["gamma"][2], atol=6e-4)
        tab.run("$('back').click(); $('text').focus(); $('text').select()")
        tab.page.keyboard.insert_text("<script>alert(1)</script><img src=x onerror=alert(1)> w1 . " * 20)
        assert (
            "The first 200 of" in shown(tab, "#status")[0] and tab.run("document.querySelectorAll('img').length") == 0
        )
        assert tab.complaints == []
        tab.check_looks(allowed="page-has-heading-one")  # the heading is the page's that the frame stands in


def test_the_frame_runs_its_own_script_only(pointer):
    frame, document = pointer._repr_html_(), pointer.document()
    assert 'sandbox="allow-scripts"' in frame and document.count("</script>") == 2 and "<noscript>" in document
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)|@import|url\((?!#)|fetch\(""", document)
