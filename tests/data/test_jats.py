"""Articles in JATS: what is raised and lowered keeps its meaning, citations go, every article of a
file is read."""

import gzip
from xml.etree import ElementTree

import pytest

from lib.data.corpus import load_corpus
from lib.data.documents import SPLITS
from lib.data.jats import jats_article, jats_articles
from tests.conftest import case_tables

CASES = case_tables("jats")


def article(body="", abstract="", number="7", attributes=""):
    return (
        f"<article{attributes}><front><article-meta><article-id "
        f"pub-id-type='pmc'>{number}</article-id>{abstract}"
        f"</article-meta></front><body>{body}</body></article>"
    )


def read(*args, **kwargs):
    return jats_article(ElementTree.fromstring(article(*args, **kwargs)))


@pytest.mark.parametrize(("xml", "text"), CASES["line"])
def test_a_line_of_text(xml, text):
    assert read(f"<p>{xml}</p>")["sections"] == [[text]]


def test_the_items_of_a_list_are_paragraphs_apart_from_the_words_around_them():
    items = (
        "<title>Findings</title><list-item><p>Cells grow</p></list-item><list-item><p>So do<list>"
    )
    items += "<list-item><p>pegs</p></list-item></list></p></list-item>"
    body = f"<p>Two (<fig><label>1</label></fig>) of<break/>them:<list>{items}</list>as before.</p>"
    paragraphs = ["Two () of them:", "Findings", "Cells grow", "So do", "pegs", "as before."]
    assert read(body)["sections"] == [paragraphs]


SPACES = ' xmlns="https://jats.nlm.nih.gov/ns/archiving/1.3/" xmlns:mml="http://www.w3.org/1998/Math/MathML"'


@pytest.mark.parametrize(
    "envelope",
    [
        "<pmc-articleset>{}{}</pmc-articleset>",
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><metadata>{}</metadata></record>'
        '<record><header status="deleted"/></record><record><metadata>{}</metadata></record></ListRecords></OAI-PMH>',
    ],
)
@pytest.mark.parametrize("attributes", ["", SPACES])
def test_every_article_of_a_file_is_read(envelope, attributes):
    body = "<sec><title>1. Aim</title><p>Text.</p></sec>"
    articles = [article(body, "<abstract>Short.</abstract>", str(n), attributes) for n in range(2)]
    answer = "<sub-article><body><p>An answer.</p></body></sub-article>"
    data = envelope.format(*articles).replace("</article>", f"{answer}</article>", 1).encode()
    for packed in (data, gzip.compress(data)):
        found = list(jats_articles(packed))
        assert [a["id"] for a in found] == ["PMC0", "PMC1"]
        assert all(a["sections"] == [["Text."]] and a["section_names"] == ["Aim"] for a in found)
        assert all(a["abstract_text"] == ["Short."] for a in found)


@pytest.mark.parametrize(("abstract", "paragraphs"), CASES["abstract"])
def test_the_abstract_is_the_articles_own(abstract, paragraphs):
    """Its usual types, and its language, come first."""
    assert read(abstract=abstract, attributes=" xml:lang='en-GB'")["abstract_text"] == paragraphs


def test_sections_and_what_is_beside_them():
    names = (
        "1. Aim",
        "2.1 Ways",
        "20 strains",
        "Author Contributions",
        "Conflict of Interest Statement",
    )
    figure = "<fig><caption><p>A figure.</p></caption></fig><boxed-text><p>A box.</p></boxed-text>"
    body = "".join(f"<sec><title>{name}</title><p>Text {figure}</p></sec>" for name in names)
    found = read(f"Loose text.{body}")
    assert found["section_names"] == ["", "Aim", "Ways", "20 strains"]
    assert found["sections"] == [["Loose text."], *[["Text"]] * 3]
    statements = [f"{name} Text A figure. A box." for name in names[3:]]
    assert [" ".join(text.split()) for text in found["beside"]] == [
        *["A figure.", "A box."] * 3,
        *statements,
    ]


def test_a_file_of_many_articles_is_a_corpus(tmp_path):
    """What is too short is counted by its reason."""

    def long_article(number, words=600, abstract=40):
        return article(
            f"<p>{f'word{number} ' * words}</p>",
            f"<abstract><p>{'some ' * abstract}</p></abstract>",
            number,
        )

    articles = [
        *map(long_article, range(30)),
        long_article(30, words=10),
        long_article(31, abstract=5),
    ]
    data = f"<pmc-articleset>{''.join(articles)}</pmc-articleset>".encode()
    (tmp_path / "many.nxml.gz").write_bytes(gzip.compress(data))
    corpus = load_corpus(f"pmc:{tmp_path}")
    assert {d.id for s in SPLITS for d in corpus.split(s)} == {f"PMC{n}" for n in range(30)}
    report = (
        "left out: 2 of 32 (1 abstract of fewer than 30 words, 1 body of fewer than 500 words)."
    )
    assert corpus.report() == report
