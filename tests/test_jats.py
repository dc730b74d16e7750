"""Articles in JATS: what is raised and lowered keeps its meaning, citations go, every article of a file is read."""

import gzip
from xml.etree import ElementTree

import pytest

from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.data.jats import jats_article, jats_articles
from lib.data.releases import split_by_name
from lib.system.errors import InputError


def article(body="", abstract="", number="7", attributes=""):
    return (
        f"<article{attributes}><front><article-meta><article-id pub-id-type='pmc'>{number}</article-id>{abstract}"
        f"</article-meta></front><body>{body}</body></article>"
    )


def line(paragraph):
    ((text,),) = jats_article(ElementTree.fromstring(article(f"<p>{paragraph}</p>")))["sections"]
    return text


def cite(text, kind="bibr"):
    return f'<xref ref-type="{kind}">{text}</xref>'


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("3 × 10<sup>5</sup> cells", "3 × 10^5 cells"),
        ("3 × 10 <sup>5</sup> CFU", "3 × 10^5 CFU"),
        ("10<sup>−3</sup>, 10<sup>– 4</sup> and 10<sup>-\u20095</sup>", "10^-3, 10^-4 and 10^-5"),
        ("10<sup>0</sup> to 10<sup>2</sup>", "10^0 to 10^2"),
        ("10<sup>5–7</sup>", "10^(5–7)"),
        ("2<sup>−ΔΔCt</sup>, 2<sup>-∆∆CT</sup>, 2<sup>-△△Ct</sup>", "2^-ΔΔCt, 2^-∆∆CT, 2^-△△Ct"),
        ("10<sup>[− 1/slope]</sup>", "10^[-1/slope]"),
        ("<italic>x</italic><sup>2</sup> + y<sup>2</sup>", "x^2 + y^2"),
        ("b<sub>1</sub><sup>2</sup>", "b1^2"),
        ("b<sup>2</sup><sub>1</sub>", "b1^2"),
        ("e<sup>x+1</sup>, e<sup>−x</sup>", "e^(x+1), e^-x"),
        ("x<sup>y<sup>2</sup></sup>, x<sub>i<sub>j</sub></sub>", "x^(y^2), x_(i_j)"),
        ("(a + b)<sup>2</sup> and sin<sup>2</sup>", "(a + b)^2 and sin^2"),
        ("4 t ha<sup>−1</sup>, 9 m<sup>2</sup>, 8 pixels<sup>2</sup>", "4 t ha^-1, 9 m^2, 8 pixels^2"),
        ("CO<sub>3</sub><sup>2−</sup>, SO<sup>2−</sup><sub>4</sub>", "CO3^2-, SO4^2-"),
        ("Ca<sup>2+</sup>-ATPase, Na<sup>+</sup>/K<sup>+</sup>", "Ca2+-ATPase, Na+/K+"),
        ("NO<sub>3</sub><sup>−</sup>, NH<sub>4</sub><sup>+</sup>OAc", "NO3-, NH4^+OAc"),
        ("[Fe(CN)<sub>6</sub>]<sup>3−</sup>", "[Fe(CN)6]^3-"),
        ("<sup>14</sup>C, δ<sup>15</sup>N, <sup>99m</sup>Tc", "14C, δ15N, 99mTc"),
        ("H<sub>2</sub>O, (NH<sub>4</sub>)<sub>2</sub>SO<sub>4</sub>", "H2O, (NH4)2SO4"),
        ("RF2<sub>150</sub>, t<sub>s</sub>, x<sub>i+1</sub>", "RF2_150, t_s, x_(i+1)"),
        ("La<sub>1−x</sub>Sr<sub>x</sub>MnO<sub>3</sub>", "La_(1-x)Sr_(x)MnO3"),
        ("log<sub>10</sub>(x), log<sub>2</sub>5", "log10(x), log_(2)5"),
        ("at 65<sup>0</sup> C, 4 <sup>0</sup>C, 37<sup>o</sup>C", "at 65 °C, 4 °C, 37°C"),
        ("38<sup>0</sup> 25′ N, 90<sup>0</sup> turns", "38° 25′ N, 90° turns"),
        ("the 2<sup>nd</sup> day", "the 2nd day"),
        ("Kit<sup>®</sup>, Taq<sup>TM</sup>", "Kit®, Taq™"),
        ("strain PXO99<sup>A</sup>, F<sup>*</sup>", "strain PXO99^A, F*"),
        ("10<sup>‒6</sup>, 10<sup>⁻6</sup> and 10<sup>\u00ad6</sup>", "10^-6, 10^-6 and 10^-6"),
        ("Fe<sup>3 +</sup>, PO<sub>4</sub><sup>3 −</sup>", "Fe3+, PO4^3-"),
        ("10<sup>3 </sup>cells", "10^3 cells"),
        (f"10<sup>5</sup><sup>{cite(12)}</sup> cells, 10<sup>5</sup>{cite(12)} more", "10^5 cells, 10^5 more"),
    ],
)
def test_what_is_raised_or_lowered_keeps_its_meaning(xml, text):
    assert line(xml) == text


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        (f"It grows.<sup>{cite(1)},{cite(2)}</sup> It ends", "It grows. It ends"),
        (f"It grows<sup>{cite(1)}–{cite(3)}</sup>. It ends", "It grows. It ends"),
        (f"It grows,<sup>{cite(1)}</sup> then ends", "It grows, then ends"),
        (f"It grows{cite('<sup>1</sup>')}<sup>,</sup>{cite('<sup>4</sup>')}.", "It grows."),
        (f"as [{cite(1)}, {cite(2)}] and [{cite(3)}]–[{cite(5)}] have it", "as have it"),
        (f"as shown (see {cite(1)}; {cite(2)}), so", "as shown, so"),
        (f"as Ann ({cite(1999)}) and others ({cite('Bo 2001')}; {cite(7)})", "as Ann (1999) and others (Bo 2001)"),
        ("genes<sup>1,2</sup> grow.<sup>3</sup> So [<sup>4</sup>]", "genes grow. So [4]"),
        ("known<sup>[12]</sup> and known <sup>13</sup>.", "known and known."),
        ("the table<sup>a</sup> and Ann<sup>†</sup>", "the table and Ann"),
        (f"vegan (version 3.4.0<sup>{cite(1, 'fn')}</sup>)", "vegan (version 3.4.0)"),
        (f"Ann{cite('*', 'fn')} came", "Ann came"),
        (f"chromosome 7<sup>4</sup>, as it is{cite(5)}<sup>{cite(5)}</sup>.", "chromosome 7, as it is."),
        ("(–)-catechin and f( )", "(–)-catechin and f( )"),
        (f"as <sup>{cite(1)},{cite(2)}</sup>shown", "as shown"),
        (f"as{cite(1)}shown", "as shown"),
        ("<sup>a</sup>Means differ.", "Means differ."),
        ("<sup>1</sup>Department of plants", "Department of plants"),
    ],
)
def test_citations_and_marks_go_with_their_commas(xml, text):
    assert line(xml) == text


def test_formulas_and_addresses():
    math = '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML"><mml:msqrt/></mml:math>'
    text = line(f"the uptake (<inline-formula>{math}</inline-formula>) of {math}; mail <email>ann@here.org</email>.")
    assert text == "the uptake (@formula) of @formula; mail."
    read = jats_article(ElementTree.fromstring(article("<sec><p>So:</p><disp-formula>q</disp-formula></sec>")))
    assert read["sections"] == [["So: @formula"]]


V_DOT = "<mover><mtext>V</mtext><mo>˙</mo></mover><msub><mtext>O</mtext><mn>2</mn></msub>"


@pytest.mark.parametrize(
    ("math", "text"),
    [
        (f"<mrow>{V_DOT}</mrow>", "V̇O2"),
        ("<msubsup><mtext>NH</mtext><mn>4</mn><mo>+</mo></msubsup>", "NH4+"),
        ("<msup><mn>10</mn><mrow><mo>−</mo><mn>5</mn></mrow></msup>", "10^-5"),
        ("<msup><mi>R</mi><mn>2</mn></msup><mo>=</mo><mn>0.9</mn>", "R^2 = 0.9"),
        ("<msub><mi>I</mi><mi>am</mi></msub>", "I_am"),
        ("<msup><mi>H</mi><mo>†</mo></msup><mo>=</mo><msup><mi>rate</mi><mn>4</mn></msup>", "H^(†) = rate^4"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "x̄"),
        ("<mi>f</mi><mo>\u2061</mo><mo>(</mo><mi>x</mi><mo>)</mo>", "f(x)"),
        ("<semantics><mi>q</mi><annotation>\\q</annotation></semantics>", "q"),
        ("<mfrac><mi>a</mi><mi>b</mi></mfrac>", "@formula"),
        ("<mover><mi>ab</mi><mo>¯</mo></mover>", "@formula"),
        ("<mover><mi>x</mi><mo>⏞</mo></mover>", "@formula"),
        ("<mo>∑</mo><mi>x</mi>", "@formula"),
        ("<mi>abcdefgh</mi><mi>ijklmnop</mi>", "@formula"),
        ("", "@formula"),
    ],
)
def test_a_short_formula_in_a_line_is_text_and_any_other_a_sign(math, text):
    formula = f'<math xmlns="http://www.w3.org/1998/Math/MathML">{math}</math>'
    assert line(f"the <inline-formula>{formula}</inline-formula> of") == f"the {text} of"
    assert line(f"the <disp-formula>{formula}</disp-formula> of") == "the @formula of"


SPACES = ' xmlns="https://jats.nlm.nih.gov/ns/archiving/1.3/" xmlns:mml="http://www.w3.org/1998/Math/MathML"'


@pytest.mark.parametrize(
    "envelope",
    [
        "{}{}{}",
        "<pmc-articleset>{}{}{}</pmc-articleset>",
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><metadata>{}</metadata></record>'
        '<record><header status="deleted"/></record><record><metadata>{}</metadata></record><record><metadata>{}'
        "</metadata></record></ListRecords></OAI-PMH>",
    ],
)
@pytest.mark.parametrize("attributes", ["", SPACES])
def test_every_article_of_a_file_is_read(envelope, attributes):
    answer = "<sub-article><body><p>An answer.</p></body></sub-article>"
    articles = [
        article(
            f"<sec><title>1. Aim</title><p>Text {n}.</p></sec>", "<abstract>Short.</abstract>", str(n), attributes
        )
        for n in range(3)
    ]
    articles[1] = articles[1].replace("</article>", f"{answer}</article>")
    if envelope == "{}{}{}":
        envelope, articles[1:] = "{}", []
    data = envelope.format(*articles).encode()
    for packed in (data, gzip.compress(data)):
        read = list(jats_articles(packed, "name"))
        assert [a["id"] for a in read] == [f"PMC{n}" for n in range(len(articles))]
        assert [a["sections"] for a in read] == [[[f"Text {n}."]] for n in range(len(articles))]
        assert all(a["abstract_text"] == ["Short."] and a["section_names"] == ["Aim"] for a in read)


def test_a_file_without_an_article_is_named():
    with pytest.raises(InputError, match="no <article> in it"):
        list(jats_articles(b"<html/>"))
    with pytest.raises(InputError, match="damaged gzip data"):
        list(jats_articles(gzip.compress(b"<article/>")[:-9]))


@pytest.mark.parametrize(
    ("abstract", "paragraphs"),
    [
        ("We <italic>saw</italic> it.", ["We saw it."]),
        ("<title>Abstract</title>We saw it.", ["We saw it."]),
        ("<sec><title>Aim</title>To see.</sec><sec><title>End</title>Seen.</sec>", ["To see.", "Seen."]),
        ("<p>One.</p>Two.<p>Three.</p>", ["One.", "Two.", "Three."]),
    ],
)
def test_abstracts_with_paragraphs_and_without(abstract, paragraphs):
    whole = article(abstract=f"<abstract abstract-type='teaser'><p>No.</p></abstract><abstract>{abstract}</abstract>")
    assert jats_article(ElementTree.fromstring(whole))["abstract_text"] == paragraphs


@pytest.mark.parametrize(
    ("abstracts", "paragraphs"),
    [
        ([" abstract-type='graphical'", " abstract-type='structured'"], ["1"]),
        ([" abstract-type='teaser'", " abstract-type='abstract'"], ["1"]),
        ([" abstract-type=''", ""], ["0"]),
        ([" abstract-type='key-points'"], []),
    ],
)
def test_an_abstract_is_told_from_others_by_its_type(abstracts, paragraphs):
    whole = article(abstract="".join(f"<abstract{a}><p>{n}</p></abstract>" for n, a in enumerate(abstracts)))
    assert jats_article(ElementTree.fromstring(whole))["abstract_text"] == paragraphs
    empty = whole.replace("<abstract", "<abstract><title>Pictures</title><fig/></abstract><abstract", 1)
    assert jats_article(ElementTree.fromstring(empty))["abstract_text"] == paragraphs


def test_sections_have_their_names_and_statements_go():
    names = ("1. Aim", "2.1 Ways", "20 strains", "Author Contributions", "Conflict of Interest Statement", "Funding")
    body = "".join(f"<sec><title>{name}</title><p>Text.</p></sec>" for name in names)
    read = jats_article(ElementTree.fromstring(article(f"Loose text.{body}")))
    assert read["section_names"] == ["", "Aim", "Ways", "20 strains"] and read["sections"][0] == ["Loose text."]


def long_article(number, words=600, abstract=40):
    return article(f"<p>{'word ' * words}</p>", f"<abstract><p>{'some ' * abstract}</p></abstract>", number, SPACES)


def test_a_file_of_many_articles_is_a_corpus(tmp_path):
    """What is too short is counted by its reason, in the split that it would be in."""
    short = [
        long_article(n, **size) for n, size in ((30, {"words": 10}), (31, {"abstract": 5}), (32, {"abstract": 0}))
    ]
    whole = "".join([*(long_article(n) for n in range(30)), *short])
    (tmp_path / "many.nxml.gz").write_bytes(gzip.compress(f"<pmc-articleset>{whole}</pmc-articleset>".encode()))
    corpus = load_corpus(f"pmc:{tmp_path}")
    assert {d.id for s in SPLITS for d in corpus.split(s)} == {f"PMC{n}" for n in range(30)}
    assert not corpus.skipped and corpus.report() == (
        "left out: 3 of 33 (1 abstract of fewer than 30 words, 1 body of fewer than 500 words, 1 no abstract)."
    )


def test_a_corpus_of_which_all_is_left_out_says_why(tmp_path):
    (tmp_path / "one.xml").write_text(long_article(1, words=9), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"no record of .* can be used: 1 body of fewer than 500 words"):
        list(load_corpus(f"pmc:{tmp_path}").split(split_by_name("PMC1")))


def test_what_stands_beside_the_text_is_there_to_be_counted():
    body = "<sec><title>A</title><p>Text <fig><caption><p>A figure.</p></caption></fig></p><boxed-text><p>A box.</p>"
    body += "</boxed-text></sec><sec><title>Funding</title><p>By Ann.</p></sec>"
    read = jats_article(ElementTree.fromstring(article(body)))
    assert read["sections"] == [["Text"]] and read["beside"] == ["A figure.", "A box.", "Funding By Ann."]
