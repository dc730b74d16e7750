"""Corpora as their owners release them: what is read, how it is split, what is left out."""

import gzip
import json

import pytest

from lib.corpora import main
from lib.data.corpus import Corpus, load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.data.named_corpora import CORPORA
from lib.data.releases import held_out
from lib.papers.mem2mem.sections import CohanOptions

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
    """Sections by their headings, splits by the project's lists, short and repeated articles left
    out."""
    val, test = (
        next(i for i, s in held_out("sumpubmed").items() if s == name) for name in ("val", "test")
    )
    free = [n for n in range(1, 40) if f"sumpubmed-{n}" not in held_out("sumpubmed")]
    text = f"BACKGROUND\none study. {WORDS}\n\nRESULTS\ntwo results.\n"
    abstracts = [
        f"BACKGROUND\nfirst {n}. {' '.join(['some'] * 60)}.\nCONCLUSIONS\nlast.\n" for n in range(5)
    ]
    articles = {
        free[0]: (text, abstracts[0]),
        free[1]: (text, abstracts[0]),
        free[2]: (text, "BACKGROUND\nshort.\n"),
    }
    articles |= {free[3]: ("BACKGROUND\nshort.\n", abstracts[1])}
    articles |= {int(i.split("-")[1]): (text, abstracts[n]) for n, i in ((2, val), (3, test))}
    sumpubmed(tmp_path, articles)
    corpus = load_corpus(f"sumpubmed:{tmp_path}")
    assert {s: ids(corpus, s) for s in SPLITS} == {
        "train": [f"sumpubmed-{free[0]}"],
        "val": [val],
        "test": [test],
    }
    assert corpus.left_out == {
        "abstract of an earlier article": 1,
        "abstract of fewer than 50 words": 1,
        "text of fewer than 400 words": 1,
    }
    assert corpus.report().startswith("left out: 3 of 6 (1 abstract of an earlier article, ")
    (document,) = corpus.split("train")
    assert document.section_names == ["background", "results"]
    assert document.sections[1] == ["two results."] and document.sections[0][0] == "one study."
    assert document.summary[0] == "first 0." and document.summary[-1] == "last."


STORY = """<REUTERS TOPICS="YES" NEWID="{number}">
<TEXT>&#2;<TITLE>{title}</TITLE>
<DATELINE>  LONDON, Feb 26 - </DATELINE><BODY>{body}
 Reuter
&#3;</BODY></TEXT></REUTERS>
"""


def test_reuters(tmp_path):
    """Paragraphs, tickers and signatures; what is left out; the splits."""
    body = (
        "Copper &lt;CU> rose in {n} early trade on the exchange\nas dealers said stocks were "
        "low.\n    Tin fell {n}."
    )
    stories = [
        STORY.format(number=n, title=f"COPPER RISES AGAIN {n}", body=body.format(n=n))
        for n in range(100)
    ]
    odd = [
        STORY.format(number=200, title="NOTHING SHARED HERE", body=body.format(n=200)),
        STORY.format(number=201, title="COPPER", body=body.format(n=201)),
        STORY.format(number=202, title="COPPER RISES AGAIN", body="Copper rose."),
        STORY.format(
            number=203, title="COPPER EARNINGS TABLE", body="Copper net 55,321 vs 66.2 mln " * 9
        ),
        STORY.format(number=204, title="COPPER RISES AGAIN 0", body=body.format(n=0)),
        '<REUTERS NEWID="205"><TEXT TYPE="BRIEF"><TITLE>COPPER RISES AGAIN</TITLE></TEXT></REUTERS>',
    ]
    (tmp_path / "reut2-000.sgm").write_text("".join(stories), encoding="latin-1")
    (tmp_path / "reut2-001.sgm.gz").write_bytes(gzip.compress("".join(odd).encode("latin-1")))
    corpus = load_corpus(f"reuters:{tmp_path}")
    assert [len(ids(corpus, s)) for s in SPLITS] == [88, 5, 7]
    reasons = {
        "no text",
        "headline without a word of the text",
        "text of fewer than 12 words",
        "table or test",
    }
    reasons |= {"headline of fewer than 3 or more than 20 words", "earlier story again"}
    assert corpus.left_out == dict.fromkeys(reasons, 1) and corpus.report().startswith(
        "left out: 6 of 106 (1 "
    )
    assert ids(corpus, "train")[0] == "reuters-0" and ids(corpus, "test")[-1] == "reuters-99"
    first = next(corpus.split("train"))
    assert first.summary == ["COPPER RISES AGAIN 0"]
    text = "Copper rose in 0 early trade on the exchange as dealers said stocks were low."
    assert first.sentences == [text, "Tin fell 0."]


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
    corpus = load_corpus(f"scisummnet:{tmp_path}")
    assert ids(corpus, "train") == ["A00-1"]
    reasons = (
        "abstract of fewer than 30 words",
        "body of fewer than 500 words",
        "no abstract beside it",
    )
    assert corpus.left_out == dict.fromkeys(reasons, 1)


def test_wikihow_says_what_it_leaves_out(tmp_path, capsys):
    """Rows of other splits are not left out; those that no list names are counted once."""
    rows = [
        (f"Step {n}.,", f"Title {n}", f"A text that is much longer than the headline {n}.")
        for n in range(4)
    ]
    rows += [
        ("A headline as long as the text.,", "Title 4", "A text."),
        ("Step.,", "Title 5", ""),
        rows[0],
    ]
    rows[-1] = ("Step.,", "In no list", rows[0][2])
    lines = "".join(f'"{headline}","{title}","{text}"\n' for headline, title, text in rows)
    (tmp_path / "wikihowAll.csv").write_text(f"headline,title,text\n{lines}", encoding="utf-8")
    for split_name, numbers in {"train": (0, 1, 4, 5), "val": (2,), "test": (3,)}.items():
        names = "".join(f"Title{n}\n" for n in numbers)
        (tmp_path / f"all_{split_name}.txt").write_text(names, encoding="utf-8")
    assert main([f"wikihow:{tmp_path}"]) == 0
    shown = capsys.readouterr().out
    assert (
        "train: 2 documents" in shown
        and "val: 1 documents" in shown
        and "test: 1 documents" in shown
    )
    assert (
        "left out: 3 of 7 (1 headline at least 0.75 times as long as the text, 1 no text, 1 title "
        "that no list names)"
    ) in shown


def test_newsroom_by_how_much_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.data.named_corpora.project_root", lambda: tmp_path)
    (tmp_path / "data" / "newsroom").mkdir(parents=True)
    for split_name in ("train", "dev", "test"):
        records = [
            {
                "url": f"{split_name}-{kind}",
                "text": "A text.",
                "summary": "Short.",
                "density_bin": kind,
            }
            for kind in ("abstractive", "extractive", "abstractive", "mixed")
        ]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "data" / "newsroom" / f"{split_name}.jsonl").write_text(lines, encoding="utf-8")
    whole, some = load_corpus("newsroom"), load_corpus("newsroom:abstractive")
    assert len(ids(whole, "test")) == 4 and ids(some, "test") == [
        "test-abstractive",
        "test-abstractive#2",
    ]
    assert some.name == "newsroom:abstractive" and some.identity != whole.identity


def test_a_model_of_sections_refuses_a_corpus_without():
    records = [{"article": "One text. Two.", "abstract": "One."}]
    corpus = Corpus.from_records(train=records, val=records, test=records)
    CohanOptions().prepare(corpus, progress=False)
    with pytest.raises(CorpusError, match="no document has more than one section, and this"):
        CohanOptions(unit="section").prepare(corpus, progress=False)


@pytest.mark.parametrize("name", ["aclsum", "aclsum:paragraphs", "pmc-sample", "docstrings"])
def test_what_comes_with_the_installation_has_the_splits_that_are_said(name):
    counts = "{:,}, {:,} and {:,}".format(*(len(ids(load_corpus(name), s)) for s in SPLITS))
    assert counts == CORPORA[name].splits


def test_duc_has_test_documents_with_several_headlines(tmp_path):
    (tmp_path / "input.txt").write_text("a b .\nc d .\n", encoding="utf-8")
    for n in range(2):
        (tmp_path / f"task1_ref{n}.txt").write_text(f"h{n}\ng{n}\n", encoding="utf-8")
    corpus = load_corpus(f"duc2004:{tmp_path}")
    assert [d.references for d in corpus.split("test")] == [[["h0"], ["h1"]], [["g0"], ["g1"]]]
    with pytest.raises(CorpusError, match="no split 'train'"):
        corpus.split("train")
