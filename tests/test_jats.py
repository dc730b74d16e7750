"""Articles in JATS: what is raised and lowered keeps its meaning, citations go, every article of a file is read."""

import gzip
from xml.etree import ElementTree

import pytest

from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS
from lib.data.jats import jats_article, jats_articles


def article(body="", abstract="", number="7", attributes=""):
    return (
        f"<article{attributes}><front><article-meta><article-id pub-id-type='pmc'>{number}</article-id>{abstract}"
        f"</article-meta></front><body>{body}</body></article>"
    )


def read(*args, **kwargs):
    return jats_article(ElementTree.fromstring(article(*args, **kwargs)))


def cite(text, kind="bibr"):
    return f'<xref ref-type="{kind}">{text}</xref>'


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("3 × 10<sup>5</sup> cells, 10 <sup>0</sup> CFU", "3 × 10^5 cells, 10^0 CFU"),
        ("10<sup>−3</sup>, 10<sup>– 4</sup>, 10<sup>\u00ad6</sup>", "10^-3, 10^-4, 10^-6"),
        ("10<sup>5–7</sup>, e<sup>x+1</sup>, e<sup>−x</sup>", "10^(5–7), e^(x+1), e^-x"),
        ("<italic>x</italic><sup>2</sup> + b<sub>1</sub><sup>2</sup>", "x^2 + b1^2"),
        ("(a + b)<sup>2</sup> and sin<sup>2</sup>", "(a + b)^2 and sin^2"),
        ("CO<sub>3</sub><sup>2−</sup>, Ca<sup>2+</sup>-ATPase, Na<sup>+</sup>/K", "CO3^2-, Ca2+-ATPase, Na+/K"),
        ("<sup>14</sup>C, δ<sup>15</sup>N", "14C, δ15N"),
        ("H<sub>2</sub>O, (NH<sub>4</sub>)<sub>2</sub>SO<sub>4</sub>", "H2O, (NH4)2SO4"),
        ("RF2<sub>150</sub>, t<sub>s</sub>, x<sub>i+1</sub>", "RF2_150, t_s, x_(i+1)"),
        ("the 2<sup>nd</sup> day, Kit<sup>®</sup>", "the 2nd day, Kit®"),
        (f"10<sup>5</sup><sup>{cite(12)}</sup> cells, 10<sup>5</sup>{cite(12)} more", "10^5 cells, 10^5 more"),
        (f"It grows.<sup>{cite(1)},{cite(2)}</sup> It ends", "It grows. It ends"),
        (f"It grows<sup>{cite(1)}–{cite(3)}</sup>. It ends", "It grows. It ends"),
        (f"as [{cite(1)}, {cite(2)}] and [{cite(3)}]–[{cite(5)}] have it", "as have it"),
        (f"as shown (see {cite(1)}; {cite(2)}), so{cite(1)}shown", "as shown, so shown"),
        (f"as Ann ({cite(1999)}) and {cite('Bo 2001')}", "as Ann (1999) and Bo 2001"),
        ("genes<sup>1,2</sup> grow.<sup>3</sup> So", "genes grow. So"),
        (f"Ann{cite('*', 'fn')} came (–)", "Ann came (–)"),
        ("the <inline-formula><math>q</math></inline-formula> of", "the @formula of"),
        ("mail <email>ann@here.org</email> to Ann", "mail to Ann"),
    ],
)  # fmt: skip
def test_a_line_of_text(xml, text):
    assert read(f"<p>{xml}</p>")["sections"] == [[text]]


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


@pytest.mark.parametrize(
    ("abstract", "paragraphs"),
    [
        ("<abstract>We <italic>saw</italic> it.</abstract>", ["We saw it."]),
        ("<abstract><title>So</title><sec><title>Aim</title>To see.</sec>Seen.</abstract>", ["To see.", "Seen."]),
        ("<abstract><p>One.</p>Two.<p>Three.</p></abstract>", ["One.", "Two.", "Three."]),
        ("<abstract abstract-type='graphical'>0</abstract><abstract abstract-type='structured'>1</abstract>", ["1"]),
        ("<abstract><title>Empty</title><fig/></abstract><abstract abstract-type=''>1</abstract>", ["1"]),
        ("<abstract abstract-type='teaser'>0</abstract>", []),
    ],
)  # fmt: skip
def test_the_abstract_is_the_articles_own(abstract, paragraphs):
    assert read(abstract=abstract)["abstract_text"] == paragraphs


def test_sections_and_what_is_beside_them():
    names = ("1. Aim", "2.1 Ways", "20 strains", "Author Contributions", "Conflict of Interest Statement")
    figure = "<fig><caption><p>A figure.</p></caption></fig><boxed-text><p>A box.</p></boxed-text>"
    body = "".join(f"<sec><title>{name}</title><p>Text {figure}</p></sec>" for name in names)
    found = read(f"Loose text.{body}")
    assert found["section_names"] == ["", "Aim", "Ways", "20 strains"]
    assert found["sections"] == [["Loose text."], *[["Text"]] * 3]
    statements = [f"{name} Text A figure. A box." for name in names[3:]]
    assert [" ".join(text.split()) for text in found["beside"]] == [*["A figure.", "A box."] * 3, *statements]


def test_a_file_of_many_articles_is_a_corpus(tmp_path):
    """What is too short is counted by its reason."""

    def long_article(number, words=600, abstract=40):
        return article(
            f"<p>{f'word{number} ' * words}</p>", f"<abstract><p>{'some ' * abstract}</p></abstract>", number
        )

    articles = [*map(long_article, range(30)), long_article(30, words=10), long_article(31, abstract=5)]
    data = f"<pmc-articleset>{''.join(articles)}</pmc-articleset>".encode()
    (tmp_path / "many.nxml.gz").write_bytes(gzip.compress(data))
    corpus = load_corpus(f"pmc:{tmp_path}")
    assert {d.id for s in SPLITS for d in corpus.split(s)} == {f"PMC{n}" for n in range(30)}
    report = "left out: 2 of 32 (1 abstract of fewer than 30 words, 1 body of fewer than 500 words)."
    assert corpus.report() == report
