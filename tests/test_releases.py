"""Corpora as their owners release them: what is read, how it is split, what is left out."""

import gzip
import json
import re
from xml.etree import ElementTree

import pytest

from lib.corpora import INSTALLED, main, table
from lib.data.catalogue import NAMES, NEWSROOM_BINS
from lib.data.corpora import Corpus, load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.data.jats import jats_article
from lib.data.releases import RELEASES, _listed, _share
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.files import project_root
from tests.tools import pmc_sample

WORDS = " ".join(f"word{i}" for i in range(450))


def ids(corpus, split_name):
    return [document.id for document in corpus.split(split_name)]


def sumpubmed(folder, articles):
    """{number: (text, abstract)} as a clone has them."""
    for kind in ("text", "abstract"):
        (folder / kind).mkdir(parents=True)
    for number, (text, abstract) in articles.items():
        (folder / "text" / f"text_{number}.txt").write_text(text, encoding="utf-8")
        (folder / "abstract" / f"abstract_{number}.txt").write_text(abstract, encoding="utf-8")


def test_sumpubmed(tmp_path):
    """Sections by their headings, splits by the project's lists, short and repeated articles left out."""
    val, test = (next(i for i, s in _listed("sumpubmed").items() if s == name) for name in ("val", "test"))
    free = [n for n in range(1, 40) if f"sumpubmed-{n}" not in _listed("sumpubmed")]
    text = f"BACKGROUND\none study. {WORDS}\n\nRESULTS\ntwo results.\n"
    abstracts = [f"BACKGROUND\nfirst {n}. {' '.join(['some'] * 60)}.\nCONCLUSIONS\nlast.\n" for n in range(5)]
    articles = {free[0]: (text, abstracts[0]), free[1]: (text, abstracts[0]), free[2]: (text, "BACKGROUND\nshort.\n")}
    articles |= {free[3]: ("BACKGROUND\nshort.\n", abstracts[1])}
    articles |= {int(i.split("-")[1]): (text, abstracts[n]) for n, i in ((2, val), (3, test))}
    sumpubmed(tmp_path, articles)
    corpus = load_corpus(tmp_path)
    assert {s: ids(corpus, s) for s in SPLITS} == {"train": [f"sumpubmed-{free[0]}"], "val": [val], "test": [test]}
    assert corpus.omitted == {
        "abstract of an earlier article": 1,
        "abstract of fewer than 50 words": 1,
        "text of fewer than 400 words": 1,
    }
    assert corpus.report().startswith("left out: 3 of 6 (1 abstract of an earlier article, ")
    (document,) = corpus.split("train")
    assert document.section_names == ["background", "results"]
    assert document.sections[1] == ["two results."] and document.sections[0][0] == "one study."
    assert document.summary[0] == "first 0." and document.summary[-1] == "last."


def test_sumpubmed_as_released(shared):
    """Two genuine articles; the same text as that of the shared corpus, which is cut."""
    corpus = load_corpus(shared / "samples" / "sumpubmed_original")
    found = {d.id: d for split_name in SPLITS for d in _there(corpus, split_name)}
    assert found and set(found) <= {"sumpubmed-1", "sumpubmed-1364"}
    with gzip.open(shared / "sumpubmed" / "train.jsonl.gz", "rt") as lines:
        expected = {r["article_id"]: r for r in map(json.loads, lines) if r["article_id"] in found}
    assert expected
    for name, record in expected.items():
        assert found[name].section_names == record["section_names"]
        for ours, theirs in zip(found[name].sections, record["sections"]):
            assert _letters(" ".join(ours)).startswith(_letters(" ".join(theirs)))


def _there(corpus, split_name):
    try:
        yield from corpus.split(split_name)
    except CorpusError:
        return


def _letters(text):
    return "".join(c for c in text.lower() if c.isalnum())


STORY = """<REUTERS TOPICS="YES" NEWID="{number}">
<TEXT>&#2;<TITLE>{title}</TITLE>
<DATELINE>  LONDON, Feb 26 - </DATELINE><BODY>{body}
 Reuter
&#3;</BODY></TEXT></REUTERS>
"""


def test_reuters(tmp_path):
    """Paragraphs, tickers and signatures; what is left out; the splits."""
    body = (
        "Copper &lt;CU> rose in {n} early trade on the exchange\nas dealers said stocks were low.\n    Tin fell {n}."
    )
    stories = [STORY.format(number=n, title=f"COPPER RISES AGAIN {n}", body=body.format(n=n)) for n in range(100)]
    odd = [
        STORY.format(number=200, title="NOTHING SHARED HERE", body=body.format(n=200)),
        STORY.format(number=201, title="COPPER", body=body.format(n=201)),
        STORY.format(number=202, title="COPPER RISES AGAIN", body="Copper rose."),
        STORY.format(number=203, title="COPPER EARNINGS TABLE", body="Copper net 55,321 vs 66.2 mln " * 9),
        STORY.format(number=204, title="COPPER RISES AGAIN 0", body=body.format(n=0)),
        '<REUTERS NEWID="205"><TEXT TYPE="BRIEF"><TITLE>COPPER RISES AGAIN</TITLE></TEXT></REUTERS>',
    ]
    (tmp_path / "reut2-000.sgm").write_text("".join(stories), encoding="latin-1")
    (tmp_path / "reut2-001.sgm.gz").write_bytes(gzip.compress("".join(odd).encode("latin-1")))
    corpus = load_corpus(tmp_path)
    assert [len(ids(corpus, s)) for s in SPLITS] == [88, 5, 7]
    reasons = {"no text", "headline without a word of the text", "text of fewer than 12 words", "table or test"}
    reasons |= {"headline of fewer than 3 or more than 20 words", "earlier story again"}
    assert corpus.omitted == dict.fromkeys(reasons, 1) and corpus.report().startswith("left out: 6 of 106 (1 ")
    assert ids(corpus, "train")[0] == "reuters-0" and ids(corpus, "test")[-1] == "reuters-99"
    first = next(corpus.split("train"))
    assert first.summary == ["COPPER RISES AGAIN 0"]
    text = "Copper rose in 0 early trade on the exchange as dealers said stocks were low."
    assert first.sentences == [text, "Tin fell 0."]


def test_reuters_as_released(shared):
    """The counts and the ids of the shared corpus."""
    corpus = load_corpus(shared / "reuters_original")
    for split_name, count in zip(SPLITS, (13_898, 790, 1_106)):
        found = ids(corpus, split_name)
        with gzip.open(shared / "reuters" / f"{split_name}.jsonl.gz", "rt") as lines:
            expected = [json.loads(line)["id"] for line in lines]
        assert len(found) == count and found == expected


def test_scisummnet_as_released(shared):
    corpus = load_corpus(shared / "samples" / "scisummnet_original")
    found = [d for split_name in SPLITS for d in _there(corpus, split_name)]
    (paper,) = found
    assert paper.id == "D07-1114" and paper.title.startswith("Extracting Aspect-Evaluation")
    assert paper.section_names[0] == "Introduction" and paper.sections[0][0].startswith("The explosive increase")
    assert paper.summary[0] == (
        "The technology of opinion extraction allows users to retrieve and analyze people's opinions scattered over "
        "Web documents."
    )


def test_scisummnet_says_what_it_leaves_out(tmp_path):
    """A short abstract, a short body, and papers without an abstract."""
    cases = {
        "A00-1": (WORDS * 2, WORDS),
        "A00-2": ("short", WORDS),
        "A00-3": (WORDS * 2, "short"),
        "A00-4": ("", None),
    }
    for name, (text, abstract) in cases.items():
        (tmp_path / name).mkdir()
        section = f'<PAPER><SECTION title="Aim"><S>{text}</S></SECTION></PAPER>'
        (tmp_path / name / f"{name}.xml").write_text(section, encoding="utf-8")
        if abstract is not None:
            (tmp_path / name / f"{name}.abstract.txt").write_text(abstract, encoding="utf-8")
    corpus = load_corpus(tmp_path)
    assert ids(corpus, "train") == ["A00-1"]
    reasons = ("abstract of fewer than 30 words", "body of fewer than 500 words", "no abstract beside it")
    assert corpus.omitted == dict.fromkeys(reasons, 1)


def test_wikihow_says_what_it_leaves_out(tmp_path, capsys):
    """Rows of other splits are not left out; those that no list names are counted once."""
    rows = [(f"Step {n}.,", f"Title {n}", f"A text that is much longer than the headline {n}.") for n in range(4)]
    rows += [("A headline as long as the text.,", "Title 4", "A text."), ("Step.,", "Title 5", ""), rows[0]]
    rows[-1] = ("Step.,", "In no list", rows[0][2])
    lines = "".join(f'"{headline}","{title}","{text}"\n' for headline, title, text in rows)
    (tmp_path / "wikihowAll.csv").write_text(f"headline,title,text\n{lines}", encoding="utf-8")
    for split_name, numbers in {"train": (0, 1, 4, 5), "val": (2,), "test": (3,)}.items():
        names = "".join(f"Title{n}\n" for n in numbers)
        (tmp_path / f"all_{split_name}.txt").write_text(names, encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "train: 2 documents" in shown and "val: 1 documents" in shown and "test: 1 documents" in shown
    assert (
        "left out: 3 of 7 (1 headline at least 0.75 times as long as the text, 1 no text, 1 title that no list names)"
    ) in shown


def test_jats():
    """Citations by number, tables and labels go; formulas become a word; sub-sections stand by themselves."""
    article = ElementTree.fromstring(
        """<article><front><article-meta><article-id pub-id-type="pmc">12</article-id>
        <title-group><article-title>A <italic>title</italic></article-title></title-group>
        <abstract abstract-type="graphical"><p>no</p></abstract>
        <abstract><sec><title>Aim</title><p>One.</p></sec><sec><title>End</title><p>Two.</p></sec></abstract>
        </article-meta></front><body><p>Before.</p>
        <sec><label>1</label><title>Intro</title><p>Seen [<xref ref-type="bibr">1</xref>,
        <xref ref-type="bibr">2</xref>] by <xref ref-type="bibr">Ann 1999</xref>: <disp-formula>x</disp-formula>
        <table-wrap><p>cells</p></table-wrap>.</p><sec><title>More</title><p>Below.</p></sec></sec></body></article>"""
    )
    assert jats_article(article) == {
        "id": "PMC12",
        "title": "A title",
        "section_names": ["", "Intro", "More"],
        "sections": [["Before."], ["Seen by Ann 1999: @formula."], ["Below."]],
        "abstract_text": ["One.", "Two."],
        "beside": ["cells"],
    }


def test_jats_in_a_single_line():
    """Words of different blocks are not glued, the mark of a note goes; a paragraph is read once."""
    items = (
        "<list><list-item><p>They walked.</p></list-item><list-item><p>Then CO<sub>2</sub> rose<sup>a</sup></p>"
        "</list-item></list>"
    )
    article = ElementTree.fromstring(
        "<article><front><article-meta><title-group><article-title>T<break/>second</article-title></title-group>"
        f"<abstract><sec><title>Aim</title><p>We saw:{items}.</p>{items}</sec></abstract></article-meta></front>"
        f"<body><p>We saw:{items}and <italic>E. co</italic>li.<fig><caption><p>no</p></caption></fig>End"
        "<disp-quote><p>he said</p><attrib>Ann</attrib></disp-quote><def-list><def-item><term>one</term>"
        f"<def><p>two</p></def></def-item></def-list></p>{items}</body></article>"
    )
    listed = "They walked. Then CO2 rose"
    found = jats_article(article)
    assert found["title"] == "T second"
    assert found["abstract_text"] == [f"We saw: {listed}.", "They walked.", "Then CO2 rose"]
    whole = f"We saw: {listed} and E. coli. End he said Ann one two"
    assert found["sections"] == [[whole, listed]]


def test_jats_as_released(shared):
    corpus = load_corpus(shared / "samples" / "jats_xml")
    found = {d.id: d for split_name in SPLITS for d in _there(corpus, split_name)}
    assert found and all(d.section_names and d.title for d in found.values())
    for name, document in found.items():
        text = " ".join(document.sentences)
        assert not re.search(r"</?[a-z]|\[\]|\(\)", text), name


def test_texts_and_summaries(tmp_path):
    """Plain text and Markdown, shared out by their names or in folders of their own."""
    for n in range(20):
        (tmp_path / f"note{n}.md").write_text(
            f"# Note {n}\n\n## Start\n\nThe text of note {n} is short. It ends.\n", encoding="utf-8"
        )
        mark = "\ufeff" if n % 2 else ""  # as some editors save texts
        (tmp_path / f"note{n}.summary.txt").write_text(f"{mark}Note {n} in one sentence.\n", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    found = {s: ids(corpus, s) for s in SPLITS}
    assert [len(found[s]) for s in SPLITS] == [16, 2, 2]
    assert sorted(i for names in found.values() for i in names) == sorted(f"note{n}" for n in range(20))
    assert all(d.summary[0].startswith("Note") for s in SPLITS for d in corpus.split(s))
    document = next(corpus.split("val"))
    assert document.section_names == ["Start"] and document.summary[0].endswith("in one sentence.")
    for split_name in SPLITS:
        folder = tmp_path / "apart" / split_name
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(f"A text for {split_name}.", encoding="utf-8")
        (folder / "a.summary.md").write_text("Short.", encoding="utf-8")
    apart = load_corpus(tmp_path / "apart")
    assert [next(apart.split(s)).sentences for s in SPLITS] == [[f"A text for {s}."] for s in SPLITS]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "good.xml").write_text("<article><body/></article>", encoding="utf-8")
    (tmp_path / "bad.xml").write_text("<article><body>", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    with pytest.raises(CorpusError, match=r"bad\.xml: not XML: no element found"):
        for split_name in SPLITS:
            list(corpus.split(split_name))


def test_a_corpus_by_hand_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.data.corpora.project_root", lambda: tmp_path)
    with pytest.raises(CorpusError) as error:
        load_corpus("sumpubmed")
    for what in ("clone github.com/vgupta123/sumpubmed", str(tmp_path / "data" / "sumpubmed"), "32,689", "Licence"):
        assert what in str(error.value)
    sumpubmed(tmp_path / "data" / "sumpubmed", {5: (f"BACKGROUND\n{WORDS}.\n", f"BACKGROUND\n{WORDS}.\n")})
    corpus = load_corpus("sumpubmed")
    assert corpus.name == "sumpubmed" and ids(corpus, "train") == ["sumpubmed-5"]


def test_the_identity_of_a_release_is_that_of_its_files(tmp_path):
    sumpubmed(tmp_path, {5: (f"BACKGROUND\n{WORDS}.\n", f"BACKGROUND\n{WORDS}.\n")})
    before = load_corpus(tmp_path).identity
    assert load_corpus(tmp_path).identity == before
    (tmp_path / "text" / "text_5.txt").write_text(f"BACKGROUND\n{WORDS} more.\n", encoding="utf-8")
    assert load_corpus(tmp_path).identity != before


def test_what_is_hidden_in_a_release_is_no_part_of_it(tmp_path):
    """A command of git changes no corpus; nor is a file read that is not part of the identity."""
    texts = {"a": "One text.", "b": "Two texts.", "c": "Three texts."}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}.summary.txt").write_text(text, encoding="utf-8")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README").write_text("Notes.", encoding="utf-8")
    assert (before := load_corpus(tmp_path).identity) == "74403b61545e", "as it was before hidden files were left out"
    (tmp_path / ".git" / "logs").mkdir(parents=True)
    for name in (".git/index", ".git/logs/HEAD", "notes/.old", ".d.txt", ".d.summary.txt"):
        (tmp_path / name).write_text("Anything.", encoding="utf-8")
        assert load_corpus(tmp_path).identity == before, name
    assert sorted(i for s in SPLITS for i in ids(load_corpus(tmp_path), s)) == sorted(texts)
    (tmp_path / "a.txt").write_text("Another text.", encoding="utf-8")
    assert load_corpus(tmp_path).identity != before


def test_hidden_files_beside_articles(tmp_path):
    """As an editor or a Mac leaves them."""
    article = (
        "<article><front><article-meta><abstract><p>{0}</p></abstract></article-meta></front>"
        "<body><sec><p>{1}</p></sec></body></article>"
    )
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "one.nxml").write_text(
        article.format(" ".join(["some"] * 40), WORDS + WORDS), encoding="utf-8"
    )
    (tmp_path / ".idea").mkdir()
    for name in (".idea/workspace.xml", "._one.xml", "one/._one.nxml"):
        (tmp_path / name).write_text("<project/>", encoding="utf-8")
    assert ids(load_corpus(tmp_path), _share("one")) == ["one"]


def test_newsroom_by_how_much_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.data.corpora.project_root", lambda: tmp_path)
    (tmp_path / "data" / "newsroom").mkdir(parents=True)
    for split_name in ("train", "dev", "test"):
        records = [
            {"url": f"{split_name}-{kind}", "text": "A text.", "summary": "Short.", "density_bin": kind}
            for kind in ("abstractive", "extractive", "abstractive", "mixed")
        ]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "data" / "newsroom" / f"{split_name}.jsonl").write_text(lines, encoding="utf-8")
    whole, some = load_corpus("newsroom"), load_corpus("newsroom:abstractive")
    assert len(ids(whole, "test")) == 4 and ids(some, "test") == ["test-abstractive"] * 2
    assert some.name == "newsroom:abstractive" and some.identity != whole.identity


def test_a_model_of_sections_refuses_a_corpus_without(tmp_path):
    for split_name in SPLITS:
        (tmp_path / f"{split_name}.jsonl").write_text(
            json.dumps({"article": "One text. Two.", "abstract": "One."}), encoding="utf-8"
        )
    CohanOptions().prepare(load_corpus(tmp_path), folder=tmp_path / "sentences", progress=False)
    wanted = r"no document has more than one section \(the first 1 of the training split were looked at\), and this"
    with pytest.raises(CorpusError, match=wanted):
        CohanOptions(unit="section").prepare(load_corpus(tmp_path), folder=tmp_path / "sections", progress=False)


def test_a_corpus_without_sections_is_refused_before_all_of_it_is_prepared(monkeypatch):
    """By its first training documents; where sections come later among them, it is taken."""
    record = {"sections": [["One text.", "Two."]], "abstract_text": "One."}
    parts = {"val": [record], "test": [record]}
    plain, options, prepared = Corpus.from_records(train=[record] * 30, **parts), CohanOptions(unit="section"), []

    def example(self, document, original=CohanOptions.example):
        prepared.append(document.id)
        return original(self, document)

    monkeypatch.setattr("lib.data.prepared.CHECKED", 10)
    monkeypatch.setattr(CohanOptions, "example", example)
    with pytest.raises(CorpusError, match=r"more than one section \(the first 10 of the"):
        options.prepare(plain, progress=False, workers=1)
    assert len(prepared) == 10
    late = [record] * 9 + [{**record, "sections": [["One."], ["Two."]]}] + [record]
    assert len(options.prepare(Corpus.from_records(train=late, **parts), progress=False, workers=1)["train"]) == 11


def test_shares_are_of_a_hundred():
    shares = [_share(f"PMC{n}") for n in range(4_000)]
    assert abs(shares.count("train") / 4_000 - 0.8) < 0.02 and abs(shares.count("val") / 4_000 - 0.1) < 0.02


def test_the_command(tmp_path, capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"`{name}`" in listed for name in NAMES if name not in NEWSROOM_BINS)
    (tmp_path / "train.jsonl").write_text(
        json.dumps({"text": "One two. Three.", "summary": "One."}) + "\nno\n", encoding="utf-8"
    )
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "train: 1 documents, in the mean 3 words in 2 sentences, 1 of summary" in shown
    assert "train.jsonl, line 2: not JSON" in shown
    with pytest.raises(SystemExit, match=r"^error: .*no corpus or folder"):
        main([str(tmp_path / "nowhere")])


def test_a_text_lists_every_corpus():
    assert table() in (project_root() / "docs" / "corpora.md").read_text(encoding="utf-8")


def test_an_error_names_every_layout(tmp_path):
    with pytest.raises(CorpusError) as error:
        load_corpus(tmp_path)
    assert all(release.files in str(error.value) for release in RELEASES.values())


@pytest.mark.parametrize("name", ["aclsum", "aclsum:paragraphs", "pmc-sample", "docstrings"])
def test_what_comes_with_the_installation_has_the_splits_that_are_said(name):
    counts = "{:,}, {:,} and {:,}".format(*(len(ids(load_corpus(name), s)) for s in SPLITS))
    assert counts == INSTALLED[name][2]


def test_the_sample_names_its_sources():
    """Every paper, with its licence, in the file of attributions."""
    folder = project_root() / "lib" / "data" / "pmc_sample"
    attributions = (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")
    count = 0
    for split_name in SPLITS:
        with gzip.open(folder / f"{split_name}.jsonl.gz", "rt") as lines:
            for record in map(json.loads, lines):
                (line,) = [x for x in attributions.splitlines() if x.startswith(f"- {record['article_id']}: ")]
                assert record["authors"] in line and record["doi"] in line and line.endswith(record["license"])
                assert record["license"].startswith(("CC-BY-", "CC0")) or record["license"] == "CC-BY"
                assert not {"NC", "ND", "SA"} & set(record["license"].split("-"))
                count += 1
    assert count == 150 and sum(p.stat().st_size for p in folder.iterdir()) < 1.5e6


def test_the_sample_is_what_its_command_makes(shared):
    for split_name in SPLITS:
        remade = gzip.decompress(pmc_sample.contents(split_name, shared / "pmc_xml"))
        assert remade == gzip.decompress((pmc_sample.SAMPLE / f"{split_name}.jsonl.gz").read_bytes()), split_name


def test_numbers_in_the_sample_keep_their_meaning():
    """Powers of ten stand as powers; no address, mark or half citation is left."""
    text = "\n".join(
        s for name in SPLITS for d in load_corpus("pmc-sample").split(name) for s in d.sentences + d.summary
    )
    assert len(re.findall(r"\b10\^-?\d", text)) > 80 and "65 °C" in text and "CO3^2-" in text and "b1^2" in text
    assert "1.5 × 10^15 kg" in text and "RF2_150" in text
    assert not re.search("[\ufdd0-\ufdef]|removed@|[\\[(][,;]", text)
