"""The page in which a model writes: its scripts give what the library gives, and a reader can use it."""

import base64
import hashlib
import json
import re
import tomllib
from dataclasses import asdict, replace
from fnmatch import fnmatch
from functools import partial

import numpy as np
import pytest
import torch

import lib
from companion.live import page as live_page
from companion.live.page import (
    LARGEST,
    LIVE,
    TEXT,
    LivePaper,
    live_data,
    sample_papers,
    scripts,
    scripts_of,
    text_rules,
    write_live_page,
)
from companion.pages import diagrams
from companion.pages.diagrams import live_picture
from companion.pages.pictures import PICTURES
from lib.data import characters, plain_text, sentences, words
from lib.data.batch import make_batch
from lib.data.characters import lowered
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.data.plain_text import parse_text
from lib.data.sentences import group_words, split_sentences
from lib.data.vocabulary import EOS
from lib.data.words import tokenize
from lib.decoding.search import DecodeConfig
from lib.evaluation.interventions import Change, changes_of, log_probs, without_unit
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.papers.mem2mem.sections import CohanOptions
from lib.summarize import main
from lib.system.errors import InputError
from lib.system.files import project_root
from tests.conftest import RAGGED, VOCAB, double
from tests.test_summarize import TEXT as PAPER
from tests.test_summarize import train_four_steps
from tests.tools.axe import needs_axe
from tests.tools.devtools import Browser
from tests.tools.disturbed_texts import DISTURBED
from tests.tools.live import (
    EFFECT,
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
    model_script,
    needs_browser,
    needs_node,
    read_by,
    small_run,
    summarized,
    text_of,
)  # fmt: skip

SHIPPED = project_root() / "trained" / "mem2mem"


@pytest.fixture(scope="module")
def shipped():
    return lib.load(SHIPPED, device="cpu")


def small(**changes):
    sizes = {"embedding": 6, "hidden": 8, "bottleneck": 5, "slots": 3, "compression": 4}
    model = double(Mem2Mem, Mem2MemConfig(VOCAB, **{**sizes, **changes})).float()
    return small_run(model, CohanOptions(vocab_size=VOCAB))


# --------------------------------------------------------------------------------------------- the rules of a text

ODD = """The U.S. Army came. The U.K. is far, e.g. on Fig. 3. At 5 p.m. Anna left; Dr. Hill's co-work-
ers didn't (see Smith et al. 2017). "Really?" she asked. It rose by 3.5%.[12] Next one.Two follow... And x² too.

1. First thing. 2. Second thing. 3. Third thing.

Ученые спали. Они проснулись. 我们走了。他们来了！ ไทยคำ a\u0301b \u200bc\u00ad d ﬁne
H\u00adO ... ok? No. Yes. No. 5 is out, i.e. vitamin C. We saw J. Anna Hill. | Its pH was 7.\u2028The end
"""
MARKED = """# A title

Some words *stand* here, `code` too, and [a link](there).

## 2.1 Methods

- one item
- another <script>alert(1)</script> item
> quoted text
> goes on.

```
not read
```

Results
-------
It is 5 > 3. The end."""
UNMARKED = """Introduction

It begins. We go on.

2. Methods

What was done was done.

2.1 Mice

They slept.

Conclusions and outlook

It ends. Well."""
LISTED = """A report

Introduction

Methods

Results

1. Apples

They are red.

2. Pears

> 0.05 was the limit.
Two more were green.
"""
FRUIT = "1. Apples\n\nThey are red.\n\n2. Pears\n\n> 0.05 was the limit."


@needs_node
def test_patterns_find_what_pythons_find(node):
    """Every regular expression of the rules, on lines that are hard to cut."""
    lines = [line for text in (ODD, MARKED, UNMARKED) for line in (text, *text.splitlines())]
    patterns = {f"{m.__name__}{n}": v for m in (characters, words, sentences, plain_text) for n, v in vars(m).items()}
    patterns = {name: value for name, value in patterns.items() if isinstance(value, re.Pattern)}
    assert len(patterns) > 40
    found = node(
        scripts("patterns"),
        """return Object.fromEntries(Object.entries(data.patterns).map(([name, [source, flags]]) => {
          const pattern = new Pattern(source, flags);
          const found = line => [...pattern.finditer(line)].map(match => match[0]);
          return [name, data.lines.map(line => [found(line), Boolean(pattern.fullmatch(line))])];
        }));""",
        patterns={name: [value.pattern, value.flags] for name, value in patterns.items()},
        lines=lines,
    )
    for name, pattern in patterns.items():
        expected = [[[m[0] for m in pattern.finditer(line)], bool(pattern.fullmatch(line))] for line in lines]
        assert found[name] == expected, name


CUT = """
loadRules(data.rules);
const parsed = text => { try { return all(parseText(text)); } catch (reason) { return reason.message; } };
return {
  words: data.sentences.map(tokenize), split: data.texts.map(splitSentences), parsed: data.texts.map(parsed),
  groups: data.sentences.map(s => groupWords(tokenize(s))),
  rows: data.options.map(options => data.documents.map(document => readDocument(document, options).rows)),
};"""
OPTIONS = (
    CohanOptions(sections=3, section_tokens=250),
    CohanOptions(sections=2, section_tokens=40, lower=False, whole_sentences=True),
    CohanOptions(sections=4, section_tokens=500, unit="section"),
)


def parts(document: Document) -> dict:
    return {"title": document.title, "names": document.section_names, "sections": document.sections}


def parsed(text: str) -> dict | str:
    try:
        return parts(parse_text(text))
    except InputError:
        return "The text has no sentence: there is nothing to summarize."


def check_cut(node, documents, texts) -> None:
    """The scripts cut these documents and texts as the library does."""
    every = list(dict.fromkeys(sentence for document in documents for sentence in (*document.sentences, ODD)))
    every = [lowered(sentence) for sentence in every]
    given = [{**parts(document), "tokenised": document.tokenised} for document in documents]
    found = node(
        scripts(*TEXT), CUT, rules=text_rules(), sentences=every, texts=texts, documents=given,
        options=list(map(asdict, OPTIONS)),
    )  # fmt: skip
    assert found["words"] == list(map(tokenize, every))
    assert found["groups"] == [group_words(tokenize(sentence)) for sentence in every]
    assert found["split"] == list(map(split_sentences, texts))
    assert found["parsed"] == list(map(parsed, texts))
    for options, rows in zip(OPTIONS, found["rows"]):
        assert rows == [options.example(document).sentences for document in documents]


def as_text(document: Document, heading: str = "## ") -> str:
    sections = zip(document.section_names, document.sections)
    return f"# {document.title}\n\n" + "\n\n".join(f"{heading}{n}\n\n{' '.join(s)}" for n, s in sections)


def spaced(document: Document) -> Document:
    sections = [[" ".join(tokenize(sentence)) for sentence in section] for section in document.sections]
    return replace(document, sections=[["[EOS] state-of-the-art ends ."], *sections[1:]], tokenised=True)


@needs_node
@pytest.mark.parametrize("name", ["pmc-sample", "aclsum"])
def test_a_text_is_cut_as_by_the_library(node, name):
    """Words, sentences, sections of three papers, disturbed in every way too, and of texts that are hard to cut."""
    documents = list(load_corpus(name).split("test"))[:3]
    texts = [disturb(as_text(documents[0])) for disturb in DISTURBED.values()]
    texts += [
        as_text(documents[1], heading=""),
        "\n".join(documents[2].sentences),
        ODD,
        MARKED,
        UNMARKED,
        LISTED,
        FRUIT,
        "",
        "# T",
        "Photo-\nsyn-\nthesis of state-\nof-the-\nart leaves.",
    ]
    small = [parse_text(text) for text in (MARKED, UNMARKED, LISTED)]
    check_cut(node, [*documents, *small, spaced(documents[0])], texts)


@pytest.mark.long
@needs_node
@pytest.mark.parametrize("name", ["pmc-sample", "aclsum"])
def test_every_text_is_cut_as_by_the_library(node, name):
    corpus = load_corpus(name)
    documents = [document for split in ("train", "val", "test") for document in corpus.split(split)]
    texts = [as_text(document, heading) for document in documents for heading in ("## ", "")]
    texts += [" ".join(section) for document in documents for section in document.sections]
    check_cut(node, documents, texts)


# -------------------------------------------------------------------------------------------------- what is computed

VARIANTS = [
    {},
    {"start": "zeros", "lambda_comp": 0.0, "lambda_read": 0.0},
    {"write": False},
    {"gate_bias": 3.0},
    {"score": "general"},
    {"score": "dot"},
]
DECODINGS = [
    {},
    {"block_ngrams": 3},
    {"block_ngrams": 2, "min_length": 5},
    {"beam": 1, "length_penalty": 0.6, "length_offset": 5},
    {"beam": 3, "min_length": 9, "forbidden": (0, 1, 2, 4, 200)},
]


@needs_node
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_variant_writes_the_same(node, changes):
    check_written(node, small(**changes), RAGGED, DecodeConfig(max_length=9))


@needs_node
@pytest.mark.parametrize("changes", DECODINGS, ids=str)
def test_every_decoding_writes_the_same(node, changes):
    run = small()
    if "min_length" in changes:  # a model that would end at once
        run.model.pointer.vocabulary.bias.data[EOS] += 8
    check_written(node, run, RAGGED, DecodeConfig(max_length=9, **changes))


@needs_node
@pytest.mark.parametrize("changes", [{"block_ngrams": 1}, {"min_length": 8}, {"max_length": 3}], ids=str)
def test_the_first_word_that_is_not_barred_is_written(node, changes):
    """By greedy search; a page shows which of the best words are barred."""
    run = small()
    data = live_data(run)
    steps = node(
        scripts_of(run),
        f"""{model_script(run)}
        const steps = [], word = h => h.score === undefined ? h.ids.at(-1) : EOS;
        for (let h = all(search(model, all(model.encode(data.document)), data.decode)); h.parent; h = h.parent)
          steps.unshift([word(h), h.output.barred, h.output.best.mixed.map(([id]) => id)]);
        return steps;""",
        config=data["config"], weights=data["weights"], document=read_by(RAGGED[2]),
        decode=asdict(DecodeConfig(**{"beam": 1, "max_length": 9, **changes})),
    )  # fmt: skip
    assert len(steps) > 3 and {2} <= set(steps[0][1]), "[BOS] is barred"
    for word, barred, best in steps:
        assert word == next((i for i in best if i not in barred), word) if barred else word == EOS
    repeated = any(best[0] in barred for _, barred, best in steps if barred)
    assert repeated or "block_ngrams" not in changes


@needs_node
@pytest.mark.parametrize("block", [0, 3])
def test_the_shipped_run_writes_the_same_words(node, shipped, block):
    documents = shipped.encode(list(load_corpus("pmc-sample").split("test"))[:1])
    check_written(node, shipped, documents, replace(shipped.decode, min_length=40, max_length=45, block_ngrams=block))


@pytest.mark.long
@needs_node
@pytest.mark.parametrize("block", [0, 3])
def test_the_shipped_run_writes_ten_papers_the_same(node, shipped, block):
    documents = shipped.encode(list(load_corpus("pmc-sample").split("test"))[:10])
    check_written(node, shipped, documents, replace(shipped.decode, block_ngrams=block))


def without_slot(slot: int) -> Change:
    def change(state, _):
        memory = state.memory.clone()
        memory[:, slot] = 0
        return replace(state, memory=memory)

    return Change("a slot is 0", state=change)


OURS = {
    "nothing": {},
    "never written": {"written": False},
    "another memory": {"following": "memory"},
    "slot erased": {"erasedSlot": 2},
    "no coverage": {"covered": False},
    "no copying": {"copying": False},
    "first unit erased": {},
}


def changes_for(model) -> dict:
    """What the page changes, and the same in the library."""
    known = {**changes_of(model), "slot erased": without_slot(2)}
    return {name: (change, known[name]) for name, change in OURS.items()}


@needs_node
def test_changes_do_what_the_librarys_do(node):
    documents = [d for d in RAGGED if len(d.sentence_lengths) > 1]
    run = small()
    check_changed(node, run, documents, changes_for(run.model))


@pytest.mark.long
@needs_node
def test_changes_of_the_shipped_run_do_what_the_librarys_do(node, shipped):
    documents = shipped.encode(list(load_corpus("pmc-sample").split("test"))[:3])
    check_changed(node, shipped, documents, changes_for(shipped.model))


@needs_node
def test_what_a_step_shows_is_what_the_model_sees(node):
    """Attention, switch, slots and the best words of one step, as the library has them."""
    run, document = small(), RAGGED[0]
    data = live_data(run)
    found = node(
        scripts_of(run),
        f"""{model_script(run)}{READ_TOKENS}
        const {{ alpha, beta, gamma, coverage, ...rest }} = made.outputs[0];
        const lists = {{ alpha, beta, gamma, coverage, psi: rest.psi }};
        const heads = document.heads.map(head => [...head]);
        const plain = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, [...list]]));
        return {{ ...rest, ...plain, heads }};""",
        config=data["config"], weights=data["weights"], decode={}, document=read_by(document), tokens=[2, 5, 12, 7],
    )  # fmt: skip
    batch = make_batch([document], VOCAB)
    with torch.no_grad():
        state = run.model.encode(batch)
        tokens = torch.tensor([[2, 5, 12, 7]])
        output, after = run.model.decode(tokens, state)
        seen = run.model.seen(output, state)
        mixed = run.model.distribution(output, after, len(document.unknown))[0]
        before = run.model.decode(tokens[:, :3], state)[1]
        generated = run.model.pointer.vocabulary(output.features[0, -1]).softmax(-1)
        hidden, _ = run.model.decoder(run.model.embedding(torch.tensor([[7]])), before.hidden[None])
        from_hidden = run.model.write_hidden(hidden)[:, 0]
        gates, update = run.model.gate_and_update(before.memory, before.read, from_hidden)
    expected = {
        "alpha": output.alpha[0, -1],
        "beta": seen["units"][0, -1],
        "gamma": seen["words"][0, -1],
        "coverage": before.coverage[0],
        "psi": seen["slots"][0, -1],
        "gates": gates[0].mean(-1),
        "updates": update[0].abs().mean(-1),
        "norms": after.memory[0].norm(dim=-1),
        "heads": state.write_attention[0],
        "generate": seen["generate"][0, -1],
    }
    for name, value in expected.items():
        assert np.allclose(found[name], value.numpy(), atol=1e-5), name
    for name, p in {"generated": generated, "mixed": mixed}.items():
        values, ids = p.topk(5)
        assert [i for i, _ in found["best"][name]] == ids.tolist()
        assert np.allclose([x for _, x in found["best"][name]], values, atol=1e-5), name
    copied = torch.zeros(VOCAB + len(document.unknown)).index_add_(0, batch.source_extended[0], output.copy[0, -1])
    assert [i for i, _ in found["best"]["copied"]] == copied.topk(5).indices.tolist()


@needs_node
def test_products_of_any_size_are_numpys(node):
    """One row and many, also after a wider product has made the memory larger; single precision."""
    rng = np.random.default_rng(0)
    sizes = [(1, 1, 1), (3, 5, 4), (64, 6, 5), (65, 128, 9), (130, 7, 40), (2, 700, 2), (65, 128, 1)]
    cases = [[rng.normal(size=size).astype("f4") for size in ((n, m), (K, m), (n,))] for n, m, K in sizes]
    found = node(
        scripts("kernels", "layers"),
        """return data.cases.map(([weight, rows, bias, n, m, K]) => {
          const [w, x, b] = [weight, rows, bias].map(list => Float32Array.from(list)), W = { data: w, shape: [n, m] };
          return [linear(W, x, K, { data: b }), linear(W, x, K)].map(made => [...made]);
        });""",
        cases=[[*(part.ravel().tolist() for part in parts), *size] for parts, size in zip(cases, sizes)],
    )
    for (w, x, b), (with_bias, without) in zip(cases, found):
        assert np.allclose(np.reshape(without, (len(x), -1)), x @ w.T, atol=1e-4)
        assert np.allclose(np.reshape(with_bias, (len(x), -1)), x @ w.T + b, atol=1e-4)


@needs_node
@pytest.mark.parametrize("half", [True, False])
def test_weights_come_back_as_they_are(node, half):
    numbers = torch.tensor([0.0, -1.5, 6e-8, -2e-5, 65504.0, 1 / 3]).reshape(2, 3)
    numbers = numbers.half().float() if half else numbers
    found = node(
        scripts("layers"),
        "const w = await unpacked(data.packed); return [...w.a.data, ...w.b.data, w.a.shape];",
        packed=live_page.packed({"a": numbers, "b": numbers[0]}, 32),
    )
    assert found == [*numbers.flatten().tolist(), *numbers[0].tolist(), [2, 3]]


# ------------------------------------------------------------------------------------------------- what is written


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_four_steps(tmp_path_factory.mktemp("runs"))


HOSTILE = "</script><!--<script>\u2028\"'&amp;\\u003c [DATA] [CODE]"


def test_the_page_needs_nothing_else_and_runs_its_own_script_alone(trained, tmp_path):
    paper = LivePaper(Document("d", HOSTILE, [HOSTILE], [[HOSTILE]], []), HOSTILE)
    page = write_live_page(tmp_path / "page.html", lib.load(trained), HOSTILE, [paper]).read_text(encoding="utf-8")
    assert not re.search(r"""(?<!xlink:)(src|href)\s*=\s*["'](?!#)|@import|url\((?!#)|fetch\(|import\(""", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    own, code = re.findall(r"<script>(.*?)</script>", page, re.DOTALL), "default-src 'none'; script-src 'sha256-"
    assert len(own) == 1 and page.count("</script>") == 2
    assert policy.startswith(code + base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode())
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["papers"][0]["title"] == HOSTILE and data["papers"][0]["sections"] == [[HOSTILE]]


@pytest.mark.parametrize("name, texts", [("mem2mem", 5), ("windowed", 5), ("read_again", 6)])
def test_shipped_pages_are_small_and_have_texts_with_their_sources(name, texts, tmp_path, capsys):
    main([str(project_root() / "trained" / name), "--live", str(tmp_path / "page.html")])
    assert "open it in a browser" in capsys.readouterr().err
    assert (tmp_path / "page.html").stat().st_size < LARGEST
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert len(data["papers"]) == texts and all(paper["source"] for paper in data["papers"])
    assert "rounded" in data["weights"] and not data["weights"]["rounded"]


def test_papers_have_their_sources():
    papers = sample_papers()
    assert len(papers) == 5 and all("CC-BY" in p.source and "https://doi.org" in p.source for p in papers)


def test_weights_are_rounded_only_where_the_page_would_be_too_large(trained, tmp_path, monkeypatch):
    run = lib.load(trained)
    path = write_live_page(tmp_path / "page.html", run, "m", [])
    assert '"bits":32,"rounded":false' in path.read_text(encoding="utf-8")
    size = path.stat().st_size
    monkeypatch.setattr(live_page, "LARGEST", size - 1)
    path = write_live_page(tmp_path / "page.html", run, "m", [])
    assert '"bits":16,"rounded":true' in path.read_text(encoding="utf-8")
    monkeypatch.setattr(live_page, "LARGEST", 1000)
    with pytest.raises(InputError, match=r"run: the page would have \d+ MB, and has 0 MB at most"):
        write_live_page(tmp_path / "page.html", run, "m", [])


def test_of_other_models_there_is_no_page(tmp_path):
    of = "there is no live page of HierarchicalTransformer, only of Mem2Mem, ReadAgain, Windowed"
    with pytest.raises(SystemExit, match=rf"trained/hierarchical_transformer: {of}"):
        main([str(project_root() / "trained" / "hierarchical_transformer"), "--live", str(tmp_path / "page.html")])
    assert not (tmp_path / "page.html").exists()


def test_texts_of_the_command_are_the_papers_of_the_page_and_stay(trained, tmp_path):
    text = tmp_path / "paper.md"
    text.write_text(PAPER, encoding="utf-8")
    main([str(trained), str(text), "--live", str(tmp_path / "page.html"), "--words", "7"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Reading long papers" in page and 'max_length":7' in page
    with pytest.raises(SystemExit, match=r"--live .*paper.md: one of the texts"):
        main([str(trained), str(text), "--live", str(text)])
    with pytest.raises(SystemExit, match="leave out --json"):
        main([str(trained), str(text), "--live", str(tmp_path / "page.html"), "--json"])
    assert text.read_text(encoding="utf-8") == PAPER


@pytest.mark.parametrize("name", ["mem2mem", "windowed", "read_again"])
def test_the_picture_is_the_one_of_the_pages(name):
    """Boxes, arrows and the equations that light them; `make figures` draws it again."""

    def drawn(text):
        return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.0f}", text)

    def ids(text):
        return re.findall(r'id="(p\d+-[^"]*)"', text)

    ours, expected = (LIVE / f"{name}.svg").read_text(encoding="utf-8"), live_picture(name)
    assert ids(ours) == ids(expected) and len(set(ids(ours))) == len(ids(ours)) > 40
    assert drawn(ours) == drawn(expected)


def test_the_command_draws_the_pictures_of_live_pages_again(tmp_path, monkeypatch):
    (tmp_path / "figures").mkdir()
    (tmp_path / "mem2mem.svg").write_text("old", encoding="utf-8")
    for name, value in (
        ("LIVE", tmp_path),
        ("project_root", lambda: tmp_path),
        ("PICTURES", {"mem2mem": PICTURES["mem2mem"]}),
    ):
        monkeypatch.setattr(diagrams, name, value)
    diagrams.main([str(tmp_path / "figures")])
    assert (tmp_path / "mem2mem.svg").read_text(encoding="utf-8") == live_picture("mem2mem")
    diagrams.main([str(tmp_path)])
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["mem2mem.svg", "model_mem2mem.svg"]


# ---------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def page(trained, tmp_path_factory):
    """The page of a small run with two texts."""
    path = tmp_path_factory.mktemp("live") / "page.html"
    papers = [LivePaper(parse_text(PAPER, "a"), "A source"), LivePaper(parse_text(UNMARKED, "b"))]
    return write_live_page(path, lib.load(trained), "Mem2Mem, +read", papers)


@needs_browser
def test_a_reader_sees_it_write_and_steps_through_the_words(page, trained):
    run = lib.load(trained)
    (document,) = run.encode([parse_text(PAPER, "a")])
    best = best_of(run, document)
    with Browser(page) as tab:
        tab.until(WRITTEN)
        ids = tab.run("view.own.ids")
        assert ids == best.ids and tab.run("view.own.logP") == pytest.approx(best.log_prob, abs=1e-3)
        count = len(ids) + 1
        assert text_of(tab, "#place") == f"word {count} of {count}" and text_of(tab, ".sentence .word") == "we"
        tab.run("$('first').click(); document.activeElement.blur()")
        assert text_of(tab, "#place") == f"word 1 of {count}"
        tab.key("ArrowRight")
        tab.key("ArrowRight")
        assert text_of(tab, "#place") == f"word 3 of {count}"
        tab.key("ArrowLeft")
        assert text_of(tab, "#place") == f"word 2 of {count}" and tab.run("Number($('step').value)") == 1
        tab.run("$('step').focus()")
        tab.key("ArrowRight")
        assert text_of(tab, "#place") == f"word 3 of {count}", "the slider moves by one, too"
        seen = run._attention(document, best.ids)
        dark = tab.run(
            r"[...document.querySelectorAll('#text .word')].map(w =>"
            r" Number(w.style.background.match(/\/ ([\d.]+)/)?.[1] ?? 0))"
        )
        assert dark == pytest.approx(np.sqrt(seen["words"][2]).tolist(), abs=0.06), (
            "as dark as the root of its weight"
        )
        shown = tab.run(
            "[...document.querySelectorAll('#slots tr')].slice(1).map(tr => Number(tr.cells[1].innerText))"
        )
        assert shown == pytest.approx(seen["slots"][2].tolist(), abs=6e-4)
        assert f"p = {seen['generate'][2]:.3f}" in text_of(tab, "#switch")
        lit = tab.run("[...document.querySelectorAll('#picture g.lit')].every(g => g.id.includes('-e15-'))")
        assert lit and tab.run("document.querySelectorAll('#picture g.lit').length") > 2
        tab.run("document.querySelector('#equations [aria-checked=true]').focus()")
        tab.key("ArrowDown")
        assert tab.run("document.activeElement.innerText").startswith("(8)"), "it begins again"
        assert tab.run("[...document.querySelectorAll('#picture g.lit')].every(g => g.id.includes('-e8-'))")
        assert tab.complaints() == []


@needs_browser
def test_controls_change_the_model_and_the_page_says_what_that_does(page, trained):
    run = lib.load(trained)
    documents = run.encode([parse_text(PAPER, "a"), parse_text(UNMARKED, "b")])
    second = Change("the second sentence is not there", document=partial(without_unit, unit=1))
    changes = {**changes_of(run.model), "slot erased": without_slot(2), "second unit erased": second}
    controls = {
        "never written": "$('unwritten').click()",
        "no coverage": "$('uncovered').click()",
        "no copying": "$('uncopied').click()",
        "another memory": "$('memory').value = 1; $('memory').dispatchEvent(new Event('change'))",
        "slot erased": "$('slot').value = 2; $('slot').dispatchEvent(new Event('change'))",
        "second unit erased": "document.querySelectorAll('.sentence button')[1].click()",
    }
    with Browser(page) as tab:
        tab.until(WRITTEN)
        documents[0] = replace(documents[0], target=np.array([*tab.run("view.own.ids"), EOS]))
        for name, click in controls.items():
            tab.run(f"$('effect').dataset.values = ''; {{ {click} }}")
            values = json.loads(tab.until(EFFECT))
            for key, change in (("own", changes["nothing"]), ("changed", changes[name])):
                expected = log_probs(run.model, documents, change, only_known=True)[0]
                assert values[key] == pytest.approx(expected, abs=1e-4), (name, key)
            assert "with the change" in text_of(tab, "#changed h3") and f"{-values['changed']:.3f}" in text_of(
                tab, "#effect"
            )
            if name == "second unit erased":  # weights stand at the words that are shown
                places = tab.run("[drawn.alpha.length, drawn.units.length, view.spans.length, view.bars.length]")
                assert places[:2] == places[2:]
                first, second = (len(row) for row in tab.run("view.read.rows.slice(0, 2)"))
                gamma = tab.run("[...drawn.gamma]")
                assert (
                    not any(gamma[first : first + second]) and all(gamma[:first]) and sum(gamma) == pytest.approx(1)
                )
                assert tab.run("drawn.units[1]") == 0 < tab.run("drawn.units[0]")
            tab.run("$('undo').click()")
            tab.until(f"{WRITTEN} && $('changed').hidden")
        tab.run("$('beam').value = 1; $('beam').dispatchEvent(new Event('change'))")
        tab.until(f"{WRITTEN} && rules().beam === 1")
        assert tab.complaints() == []


TEXTS = {**ODD_TEXTS, "hostile": f"{HOSTILE} <img src=x onerror=alert(1)> ends here. It goes on.", **LONG_TEXT}


@needs_browser
def test_texts_of_every_kind_can_be_pasted(page, trained):
    run = lib.load(trained)
    with Browser(page) as tab:
        tab.until(WRITTEN)
        for name, document in summarized(tab, run, TEXTS):
            rows = [run.vocabulary.text(ids, document.unknown).split() for ids in read_by(document)["sentences"]]
            shown = tab.run(
                "[...document.querySelectorAll('.sentence')].map(s =>"
                " [...s.querySelectorAll('.word')].map(w => w.textContent))"
            )
            assert shown == rows, name
            assert tab.run("view.own.ids") == best_of(run, document).ids, name
        assert tab.complaints() == []


@needs_node
def test_no_slice_of_work_takes_longer_than_a_page_may_stand_still(node, shipped):
    """Milliseconds of CPU time: 100,000 words in one paragraph are cut, and a paper is summarized with beam 4."""
    text = "The mice of the north slept well in their nests. " * 10_000
    (document,) = shipped.encode(list(load_corpus("pmc-sample").split("test"))[:1])
    data = live_data(shipped)
    found = node(
        scripts_of(shipped),
        f"""{model_script(shipped)}
        loadRules(data.tables);
        const slices = generator => {{
          for (const times = [];;) {{
            const before = process.cpuUsage(), {{ value, done }} = generator.next();
            times.push((process.cpuUsage(before).user) / 1000);
            if (done) return {{ times, value }};
          }}
        }};
        const cut = slices(parseText(data.text)), read = slices(model.encode(data.document));
        return [cut, read, slices(search(model, read.value, data.decode))].map(({{ times }}) => times);""",
        config=data["config"], weights=data["weights"], tables=data["rules"], text=text,
        document=read_by(document), decode=asdict(replace(shipped.decode, min_length=30, max_length=40)),
    )  # fmt: skip
    for times in found:
        assert len(times) > 15 and max(times) < 150 and np.median(times) < 30


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_in_both_themes_and_at_every_width(page, theme):
    check_looks(page, theme, change="uncovered")


@needs_browser
def test_every_control_has_a_name_and_the_keyboard_reaches_it(page):
    check_keyboard(page)


@needs_axe
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, theme):
    check_axe(page, theme, change="uncovered")


def test_an_installed_library_has_the_files_of_the_page():
    project = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["companion.live"]
    files = {path.relative_to(LIVE.parent).as_posix() for path in LIVE.iterdir()}
    assert {name for name in files if any(fnmatch(name, pattern) for pattern in patterns)} == files and len(
        files
    ) > 10
