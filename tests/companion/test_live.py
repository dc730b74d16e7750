"""The scripts of the live pages compute what the library computes. The pages themselves:
`test_live_pages`."""

import json
import re
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import lib
from companion.live import page as live
from companion.live.__main__ import main
from companion.pages.dispatches import made_up_dispatches
from companion.tasks import stories, towns
from companion.tasks.task import learn
from companion.tasks.windows import LEFT_OUT
from lib.data.batch import make_batch, rows_of, with_units
from lib.data.characters import clean
from lib.data.documents import Document
from lib.data.plain_text import parse_text
from lib.data.tokenize import tokenize
from lib.data.vocabulary import SLIDE, SLIDE_SYMBOL, Vocabulary
from lib.decoding.config import DecodeConfig
from lib.evaluation.interventions import changes_of
from lib.models.changes import NOTHING, Change, configured
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.paragraph_changes import decoder_sees
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.read_again.headlines import HeadlineOptions
from lib.papers.windowed.sliding import SlidingConfig
from lib.papers.windowed.windows import ArticleOptions
from lib.summarize import remarks
from lib.system.errors import InputError
from lib.system.files import project_root
from tests.conftest import RAGGED, VOCAB, double
from tests.models.test_windowed import TEXTS as WITH_SLIDES
from tests.tools.browser import data_of
from tests.tools.live import (
    SMALL,
    check_changed,
    check_written,
    needs_node,
    read_by,
    run_model,
    small_run,
)

TRAINED = project_root() / "trained"
TABLES = Path(__file__).parents[1] / "cases"
HOSTILE = "</script><!--<script>\u2028\"'&amp;\\u003c [DATA] [CODE] <img src=x onerror=alert(1)>"


# ---------------------------------------------------------------------------------
# the models


def without_slot(state, _):
    memory = state.memory.clone()
    memory[:, 2] = 0
    return state.replace(memory=memory)


MOVED = partial(Change, "", only_known=True)  # a word of the text may be out of sight


def units_moved(units):
    """A change of a text: of its n sentences the `units(n)`, in that order."""
    return MOVED(
        document=lambda document: with_units(document, units(len(document.sentence_lengths)))
    )


# as a page takes it out of the text
SECOND_ERASED = units_moved(lambda n: [unit for unit in range(n) if unit != 1])


@dataclass(frozen=True)
class Case:
    """A model with a page.

    changes: the page's change, by the library's name of it; others: those that the library has no
    name for. controls: how a reader makes a change; shade: the output that shades the words.
    """

    kind: Any
    config: Any
    options: Any
    documents: list
    variants: list[dict]
    shade: str
    changes: dict[str, dict] = field(default_factory=dict)
    others: dict[str, tuple[dict, Change]] = field(default_factory=dict)
    controls: dict[str, str] = field(default_factory=dict)


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
        "gamma",
        {
            "never written": {"written": False}, "another memory": {"following": "memory"},
            "no coverage": {"covered": False}, "no copying": {"copying": False}, "first unit erased": {},
        },
        {"slot erased": ({"erasedSlot": 2}, Change("", state=without_slot))},
        {"never written": "unwritten", "no coverage": "uncovered", "no copying": "uncopied", "slot erased": "slot=2"},
    ),
    "windowed": Case(
        Windowed,
        partial(WindowedConfig, embedding=5, hidden=3, window=4, stride=3, budget=6, longest=4),
        ArticleOptions(vocab_size=VOCAB, window=4, stride=3),
        WITH_SLIDES,
        [{}, {"window": None, "stride": None}, {"windowing": "static"}],
        "alpha",
        {"no copying": {"copying": False}, "first unit erased": {}},
        {
            "stays": ({"stays": True}, MOVED(model=LEFT_OUT["sliding"])),
            "static": ({"windowing": "static"}, MOVED(model=configured(windowing="static"))),
            "everything in sight": ({"everything": True}, MOVED(model=LEFT_OUT["window"])),
            "second unit erased": ({}, SECOND_ERASED),
            "sections turned": ({}, units_moved(lambda n: [*range(n // 2, n), *range(n // 2)])),
        },
        {"no copying": "uncopied", "stays": "stays", "static": "static", "everything in sight": "everything",
         "sections turned": "order=1"},
    ),
    "read_again": Case(
        ReadAgain,
        partial(ReadAgainConfig, embedding=5, hidden=4, dropout=0.0, sentences=3),
        HeadlineOptions(vocab_size=VOCAB, sentences=3),
        [replace(d, source_ids=((d.source * 7) % (VOCAB + 4)).astype(np.int32)) for d in RAGGED],
        [
            {}, {"encoder": "lstm"}, {"encoder": "gru"}, {"encoder": "bidirectional gru"},
            {"encoder": "read-again gru"}, {"copy": False},
            {"encoder": "read-again gru", "importance": "sigmoid", "single_importance": True},
        ],
        "beta",
        {
            "no copying": {"copying": False}, "[UNK] fed back": {"fromContext": False},
            "text not told": {"told": False}, "first unit erased": {},
        },
        {},
        {"no copying": "uncopied", "[UNK] fed back": "unembedded", "text not told": "untold"},
    ),
    "pointer": Case(
        Seq2Seq, partial(Seq2SeqConfig, embedding=6, hidden=8, bottleneck=5), CohanOptions(vocab_size=VOCAB),
        RAGGED, [{}], "gamma",
    ),
}  # fmt: skip
OF_TEXTS = [name for name in CASES if name != "pointer"]  # whose pages are of texts
DECODINGS = [
    {"block_ngrams": 3}, {"block_ngrams": 2, "min_length": 5}, {"beam": 1, "length_penalty": 0.6, "length_offset": 5},
    {"beam": 3, "min_length": 9, "forbidden": (0, 1, 2, SLIDE)}, {"slide": "half"},
    {"slide": "median", "block_ngrams": 3},
]  # fmt: skip
LETTERS = [f"w{i}" for i in range(VOCAB)]
TEXT = "w0 w1 thylacine w2 . w1"


def small(name, words=LETTERS[: VOCAB - 4], source_words=LETTERS, **changes):
    """A run of a small model that was not trained."""
    case = CASES[name]
    if name == "windowed":
        words = [SLIDE_SYMBOL, *words[:-1]]
    if name == "read_again":
        changes["source_vocab_size"] = len(source_words) + 4
    model = double(case.kind, case.config(len(words) + 4, **changes)).float()
    if name == "windowed":
        model.pointer.vocabulary.bias.data[SLIDE] += 8  # so that the window moves
    return small_run(model, case.options, words, source_words if name == "read_again" else ())


def small_pointer():
    """The frame of a small pointer-generator."""
    model = double(Seq2Seq, CASES["pointer"].config(VOCAB)).half().double()
    return live.LivePointer(
        model, Vocabulary(LETTERS[: VOCAB - 4]), TEXT, DecodeConfig(max_length=9)
    )


def changes_for(name, model):
    """{name: (the page's change, the library's)}."""
    known = changes_of(model)
    nothing = MOVED() if name == "windowed" else NOTHING
    same = {change: (ours, known[change]) for change, ours in CASES[name].changes.items()}
    return {"nothing": ({}, nothing), **same, **CASES[name].others}


# ---------------------------------------------------------------------------------
# what is computed


@needs_node
@pytest.mark.parametrize(
    ("name", "changes"), [(n, v) for n, case in CASES.items() for v in case.variants], ids=str
)
def test_every_variant_writes_the_same(node, name, changes):
    written = check_written(
        node, small(name, **changes), CASES[name].documents, DecodeConfig(max_length=9)
    )
    moves = name == "windowed" and changes.get("windowing") != "static" and "window" not in changes
    assert any(SLIDE in ids for ids in written) == moves or name != "windowed"


@needs_node
@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_every_decoding_writes_the_same(node, name, decoding):
    check_written(node, small(name), CASES[name].documents, SlidingConfig(max_length=9, **decoding))


@needs_node
@pytest.mark.parametrize("name", OF_TEXTS)
def test_changes_do_what_the_librarys_do(node, name):
    run = small(name, **({"longest": 11} if name == "windowed" else {}))
    check_changed(
        node,
        run,
        [CASES[name].documents[0], CASES[name].documents[2]],
        changes_for(name, run.model),
    )


@needs_node
@pytest.mark.parametrize(
    ("name", "changes"), [*((n, {}) for n in CASES), ("read_again", {"encoder": "read-again gru"})]
)
def test_what_a_step_shows_is_what_the_model_computes(node, name, changes):
    """Attention, switch, the best words, and each model's own parts."""
    run, document, tokens = (
        small(name, **changes),
        CASES[name].documents[0],
        [2, 5 - (name == "windowed"), 12, 7],
    )
    found = run_model(
        node, run, "return lastStep(model, data);", document=read_by(document), tokens=tokens
    )
    with torch.no_grad():
        state = run.model.encode(make_batch([document], VOCAB))
        output, after = run.model.decode(torch.tensor([tokens]), state)
        seen = {
            part: weights[0, -1]
            for part, weights in run.model.seen(output, state).items()
            if weights.dim() > 1
        }
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
        memory = after.memory[0].norm(dim=-1)
        shown = {
            "psi": seen["slots"],
            "beta": seen["units"],
            "heads": state.write_attention[0],
            "norms": memory,
        }
        for part, expected in shown.items():
            assert np.allclose(found[part], expected, atol=1e-5), part
    if name == "windowed":
        assert (found["window"], found["begin"], found["end"], found["last"]) == (1, 3, 7, 3)
        assert found["slide"] == pytest.approx(float(p[SLIDE]), abs=1e-5)
    if changes:
        importance = run.model.seen(output, state)["importance"][0]
        assert np.allclose(found["importance"], importance, atol=1e-5)


@needs_node
@pytest.mark.parametrize("name", OF_TEXTS)
def test_the_shipped_run_reads_and_writes_the_same(node, name, tmp_path):
    """Its page's papers are read as the library reads them, with its own options and with
    others."""
    main([str(TRAINED / name), str(tmp_path / "page.html")])
    papers = data_of(tmp_path / "page.html")["papers"]
    assert "It is not to be trusted" in data_of(tmp_path / "page.html")["caution"]
    assert (
        all(paper["source"] for paper in papers)
        and (tmp_path / "page.html").stat().st_size < live.MAX_BYTES
    )
    run = lib.load(TRAINED / name, device="cpu")
    offered = (
        [p.document for p in live.sample_papers()] if name != "read_again" else made_up_dispatches()
    )
    read = {"mem2mem": "readDocument", "windowed": "readArticle", "read_again": "readHeadline"}[
        name
    ]
    others = {
        "mem2mem": [{"sections": 2, "section_tokens": 40}, {"unit": "section"}],
        "windowed": [{"source_tokens": None, "section_words": 50}, {"source_tokens": 7}],
        "read_again": [{"sentences": 2, "source_tokens": 30}],
    }[name]
    options = [run.options, *(replace(run.options, **other) for other in others)]
    body = f"return data.options.map(options => data.papers.map(paper => {read}(paper, options)));"
    found = node(
        live.scripts(*live.LAYERS, *live.TEXT),
        body,
        papers=papers,
        options=list(map(asdict, options)),
    )
    for texts, option in zip(found, options):
        assert [text["rows"] for text in texts] == [
            option.example(document).sentences for document in offered
        ]
    decode = replace(
        run.decode,
        min_length=min(run.decode.min_length, 40),
        max_length=min(run.decode.max_length, 45),
    )
    check_written(node, run, run.encode(offered[:1]), decode)


# ---------------------------------------------------------------------------------
# the towns


def town_run(row="HT"):
    return small_run(towns.open_towns()[row], CohanOptions(), towns.TOWN_PIECES.words[4:])


@needs_node
@pytest.mark.parametrize("row", ["HT", "without global layers"])
def test_models_of_towns_write_the_same(node, row):
    run = town_run(row)
    documents = [
        towns.town_document(cluster, str(i)) for i, cluster in enumerate(towns.unseen_towns(3))
    ]
    for beam in (1, 4):
        check_written(node, run, documents, DecodeConfig(beam=beam, max_length=30))


@needs_node
def test_cuts_between_paragraphs_are_the_librarys(node):
    cluster, run = towns.unseen_towns(2)[1], town_run()
    known = changes_of(run.model)
    cuts = {
        "layer 1 cut": ["itself", ""],
        "layer 2 cut": ["", "itself"],
        "first paragraph cut in layer 2": ["", "first"],
        "first paragraph cut": ["first", "first"],
    }
    pairs = {name: ({"cuts": kinds}, known[name]) for name, kinds in cuts.items()}
    pairs["no paragraph positions"] = {"positions": False}, known["no paragraph positions"]
    for own in (True, False):
        rows = towns.rows_about([cluster], own)
        pairs[f"sees {own}"] = ({"seen": rows[0].tolist()}, decoder_sees(rows))
    check_changed(node, run, [towns.town_document(cluster)], {"nothing": ({}, NOTHING), **pairs})


@needs_node
def test_facts_of_towns_are_judged_the_same(node):
    clusters, random, model = (
        towns.unseen_towns(3),
        np.random.default_rng(0),
        towns.open_towns()["HT"],
    )
    summaries = towns.write_towns(model, clusters, change=changes_of(model)["layers cut"])
    others = [towns.town_cluster(random).summary.split() for _ in clusters]
    cases = list(zip(clusters * 3, [*summaries, *others, *[["a"]] * 3]))
    texts = [
        {"title": c.title, "paragraphs": [p.text.split() for p in c.paragraphs], "summary": s}
        for c, s in cases
    ]
    facts = {"towns": towns.TOWNS, "values": towns.VALUES, "places": towns.FACT_PLACES}
    found = node(live.scripts(*live.TOWNS_SCRIPTS), "return judged(data);", cases=texts, **facts)
    expected = [
        [
            towns.kind_of(c, fact, "".join(summary[place : place + 1]))
            for fact, place in enumerate(towns.FACT_PLACES)
        ]
        for c, summary in cases
    ]
    assert found == expected and len({kind for kinds in expected for kind in kinds}) >= 3


# ---------------------------------------------------------------------------------
# what a reader types

REMARKED = {
    "too short": "Don't wake the mice.",
    "of another field": "The striker didn't score. It's the fans' third defeat, the coach said. "
    * 40,
    "unknown words": "Ganz andere Worte stehen hier, und niemand kennt sie. " * 40,
    "unknown names": "The patients of zorvex wexil were treated with drabonol nolvit. " * 40,
    "in Chinese": "我们走了。他们来了！" * 40,
    "marks only": "! ? ... !",
}


def typed_texts() -> list[str]:
    """Texts of all tables, the odd ones of `typed_texts.json` first."""
    texts = []
    for name in ("typed_texts", "words", "sentences", "plain_texts"):
        cases = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
        texts += [case["text"] for case in cases]
    return texts


def cut(text: str, options) -> dict:
    """The title of a text, and its sections as the scripts have them."""
    document = parse_text(text)
    sections = []
    for name, sentences in zip(document.section_names, document.sections):
        cut_sentences = [
            {
                "tokens": options.words(sentence),
                "shown": options.surfaces(sentence),
                "spaced": len(sentence.split()),
            }
            for sentence in sentences
        ]
        sections.append({"name": name, "sentences": cut_sentences})
    return {"title": document.title, "sections": sections}


@needs_node
def test_a_typed_text_is_cut_as_the_library_cuts_it(node):
    texts = typed_texts()
    body = "return data.texts.map(text => [clean(text), tokenize(text)]);"
    found = node(live.scripts(*live.LAYERS, *live.TEXT), body, texts=texts)
    for text, ours in zip(texts, found, strict=True):
        assert ours == [clean(text), tokenize(text)], text


@needs_node
@pytest.mark.parametrize(
    "options", [CohanOptions(), CohanOptions(lower=False), HeadlineOptions()], ids=str
)
def test_a_typed_text_has_the_librarys_sections_sentences_and_words(node, options):
    texts = typed_texts()
    body = "return data.texts.map(text => ownText(text, data.options));"
    code = live.scripts(*live.LAYERS, *live.TEXT)
    found = node(code, body, texts=texts, options=asdict(options))
    for text, ours in zip(texts, found, strict=True):
        assert ours == cut(text, options), text


@needs_node
def test_a_text_without_a_sentence_is_refused_as_by_the_library(node):
    texts = ["", " \n\t", "# A title", "# A title\n\n## Results", "* * *", "\u200b"]
    body = """return data.texts.map(text => {
        try { return ownText(text, { lower: true }); } catch ({ message }) { return message; } });"""
    found = node(live.scripts(*live.LAYERS, *live.TEXT), body, texts=texts)
    for text, message in zip(texts, found):
        with pytest.raises(InputError) as refused:
            parse_text(text)
        assert message.lower() == f"{refused.value}."


@needs_node
def test_a_text_of_very_many_lines_is_cut(node):
    texts = ["- a b\n" * 130_000, "Ann Lee\n" * 130_000]
    body = """return data.texts.map(text => {
        const { sections } = parseText(text);
        return sections.flatMap(({ sentences }) => sentences).length; });"""
    found = node(live.scripts(*live.LAYERS, *live.TEXT), body, texts=texts)
    assert found == [130_000] * 2


@needs_node
@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_typed_text_gets_the_librarys_warnings(node, name):
    run = lib.load(TRAINED / name, device="cpu")
    read = {"mem2mem": "readDocument", "windowed": "readArticle", "read_again": "readHeadline"}
    offered = made_up_dispatches()[0] if name == "read_again" else live.sample_papers()[1].document
    body = f"""const known = new Set(data.source_words ?? data.words);
        return data.texts.map(text => {{
            const {{ rows }} = {read[name]}(ownText(text, data.options), data.options);
            return remarksOn(rows.flat(), known, data);
        }});"""
    texts = [*REMARKED.values(), "\n\n".join(offered.sentences)]
    data = live.text_data(run)
    found = node(live.scripts(*live.LAYERS, *live.TEXT), body, texts=texts, **data)
    for text, ours in zip(texts, found):
        (document,) = run.documents([text])
        (encoded,) = run.encode([document])
        source = [run.vocabulary.tokens(row, encoded.unknown) for row in rows_of(encoded)]
        summary = SimpleNamespace(reading=run.reading(document, encoded), source=source)
        assert ours == remarks(run, summary, {})[1:], text
    assert all(found[:-1]) and found[-1] == []


# ---------------------------------------------------------------------------------
# training


@needs_node
@pytest.mark.parametrize("copy", [True, False])
def test_training_steps_are_the_librarys(node, copy):
    """The loss and all gradients of ragged documents, and the weights after two steps with clipped
    gradients."""
    model, batch = double(Seq2Seq, Seq2SeqConfig(VOCAB, 6, 8, 5, copy)), make_batch(RAGGED, VOCAB)
    (loss, gradients, _), (*_, weights) = node(
        live.scripts(*SMALL["Seq2Seq"]),
        "return trained(data);",
        documents=[{**read_by(d), "target": d.target.tolist()} for d in RAGGED],
        weights={name: {"data": p.flatten().tolist()} for name, p in model.named_parameters()},
    )
    expected = model.loss(batch)["loss"]
    expected.backward()
    flat = torch.nn.utils.parameters_to_vector
    assert loss == pytest.approx(expected.item(), abs=1e-6)
    assert np.allclose(gradients, flat([p.grad for p in model.parameters()]), atol=1e-6)
    learned = flat(learn(model, iter([batch, batch]), 0.01).parameters()).detach()
    assert np.allclose(weights, learned, atol=1e-6) and max(map(abs, gradients)) > 0.1


@needs_node
def test_training_begins_as_the_librarys_does(node, tmp_path):
    """The stories of the page are of the library's grammar and in its ids, and random weights are
    as large."""
    main(["training", str(tmp_path / "page.html")])
    models, told = node(
        live.scripts(*SMALL["Seq2Seq"], "stories"),
        "return begun(data);",
        **data_of(tmp_path / "page.html"),
    )
    for copy, weights in zip((False, True), models):
        parameters = list(stories.Seq2Seq(replace(stories.CONFIG, copy=copy)).parameters())
        spreads = [
            (np.std(w), p.std().item())
            for w, p in zip(weights, parameters, strict=True)
            if len(w) > 500
        ]
        assert list(map(len, weights)) == [p.numel() for p in parameters] and np.allclose(
            *zip(*spreads), rtol=0.1
        )
    for story in told:
        whom, verb, who = re.findall(r"the (\w+) was (\w+) by the (\w+) \.", story["text"])[0]
        assert story["summary"] == f"the {who} {stories.VERBS[verb]} the {whom} ."
        expected = stories.story_of(re.findall(r"\w[^.]+\.", story["text"]), story["summary"])
        assert [*story["sentences"], story["target"]] == [
            expected.source.tolist(),
            expected.target.tolist(),
        ]


# ---------------------------------------------------------------------------------
# what is written


def test_a_tour_names_folds_that_the_page_has():
    folds = re.findall(r"<summary[^>]*>([^<]+)</summary>", live.read_static("page.html"))
    for texts in live.TEXTS.values():
        for stop in texts.get("tour", []):
            for fold in re.findall(r"under (How [^.,]+)", stop["see"]):
                assert fold in folds, stop["question"]


def test_the_page_loads_nothing_and_no_text_leaves_its_data(tmp_path):
    paper = live.LivePaper(Document("d", HOSTILE, [HOSTILE], [[HOSTILE]], []), HOSTILE)
    path = live.write_live_page(tmp_path / "page.html", small("mem2mem"), HOSTILE, [paper])
    pointer = small_pointer()
    for page in (path.read_text(encoding="utf-8"), pointer.document()):
        assert not re.search(
            r"""(src|href)\s*=\s*["'](?!#|x)|@import|url\((?!#)|fetch\(|import\(""", page
        )
        assert page.count("</script>") == 2 and "default-src 'none'; script-src 'sha256-" in page
    assert (
        data_of(path)["papers"][0]["title"] == HOSTILE
        and 'sandbox="allow-scripts"' in pointer._repr_html_()
    )


def test_bad_arguments_are_one_line(tmp_path):
    text, page = tmp_path / "paper.md", tmp_path / "page.html"
    text.write_text("It ends.", encoding="utf-8")
    refused = {
        "no live page of CopyingTransformer, only of": [
            TRAINED / "hierarchical_transformer_copying",
            page,
        ],
        "PAGE .*paper.md: one of the texts": [TRAINED / "mem2mem", text, text],
        "towns: this page takes no texts": ["towns", page, text],
    }
    for message, arguments in refused.items():
        with pytest.raises(SystemExit, match=message):
            main(list(map(str, arguments)))
    for name, changes in (
        ("read_again", {"encoder": "option 2"}),
        ("windowed", {"encode": "stream"}),
    ):
        with pytest.raises(
            InputError, match="no live page of an encoder of several sentences, or of windows"
        ):
            live.model_scripts(small(name, **changes))
    assert text.read_text(encoding="utf-8") == "It ends." and not page.exists()
