"""Texts in files of several formats: what is read of them, and the errors of those that are not
read."""

import gzip
import importlib.util
import io
import zipfile
from pathlib import Path

import pytest

from lib.data.corpus import load_corpus
from lib.data.documents import CorpusError
from lib.data.files import texts_of
from lib.data.plain_text import parse_text
from lib.summarize import read_texts
from lib.system.errors import InputError
from tests.data.made_files import docx_bytes, zip_bytes

CASES = Path(__file__).parents[1] / "cases"


def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"needs the extra `files`: {', '.join(missing)}"
    )


def left_out(data, name="FILE"):
    (text,) = texts_of(data, name)
    return dict(text.left_out)


def read(data, name="text.bin"):
    """The only text of a file, as a document."""
    (text,) = texts_of(data if isinstance(data, bytes) else data.encode(), name)
    return parse_text(text)


# ---------------------------------------------------------------------------------
# HTML

PAGE = (CASES / "gulls.html").read_text(encoding="utf-8")


@needs("bs4", "pypandoc")
def test_a_page():
    document = read(PAGE)
    assert document.title == "Gulls of the north pier"
    assert document.section_names == ["", "Why they stay"]
    assert document.sections[0] == ["There are 2 * 10^3 gulls on the pier & none elsewhere."]
    second = "Bread|# 1 reason: fish_and_chips|May, 9 gulls|Text without a paragraph.|It ends."
    assert document.sections[1] == second.split("|")
    title, heading, menu, foot = 5, 3, 3, 3
    beside = "menus and other parts beside the text"
    assert left_out(PAGE.encode()) == {
        "headings": title + heading,
        "code": 1,
        beside: menu + foot,
    }


@needs("bs4", "pypandoc")
def test_the_main_part_of_a_page():
    head = "<html><title>T</title><body><div>Menu of all</div>"
    for tag in ("main", "article"):
        text = (
            f"{head}<{tag}><header><h2>By Ines</h2></header><p>It rains.</p></{tag}><p>Buy a "
            "boat.</p></body></html>"
        )
        document = read(text)
        assert (document.title, document.section_names, document.sentences) == (
            "T",
            ["By Ines"],
            ["It rains."],
        )
        assert sum(left_out(text.encode()).values()) == 2 + 1 + 3 + 3
    assert read("<p>One part.<p>Another.", "x.html").sentences == ["One part.", "Another."]
    assert read("<html><body><pre>Plain\ntext.\n\nOf old.</pre></body>").sentences == [
        "Plain text.",
        "Of old.",
    ]


# ---------------------------------------------------------------------------------
# DOCX


def paragraph(text, style=""):
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def cell(text):
    return f"<w:tc>{paragraph(text)}</w:tc>"


STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{shown}"/></w:style>'
    for name, shown in (("Title", "Title"), ("Heading1", "heading 1"), ("Heading2", "heading 2"))
)
REPORT = docx_bytes(
    paragraph("A report", "Title")
    + paragraph("Written in *May*.")
    + paragraph("Results", "Heading1")
    + paragraph("There are 10^5 gulls.")
    + f"<w:tbl><w:tr>{cell('Decision')}{cell('Paint the fence')}</w:tr></w:tbl>"
    + paragraph("In detail", "Heading2")
    + paragraph("- 2.4 degrees, and")
    + paragraph("rain"),
    styles=STYLES,
)


@needs("pypandoc")
def test_a_docx():
    document = read(REPORT, "report.txt")
    assert document.title == "A report" and document.section_names == ["", "Results", "In detail"]
    assert document.sections == [
        ["Written in *May*."],
        ["There are 10^5 gulls.", "Decision, Paint the fence"],
        ["- 2.4 degrees, and", "rain"],
    ]


# ---------------------------------------------------------------------------------
# other formats of pandoc

NOTES = """---
title: Notes on boats
---

# Results

Two *old* boats sank, at $x^2 = 4$. One came back.

- a coat
- a lamp

# Piers

There are 10^5^ of them[^1]. It rained.

[^1]: Not all.
"""
FORMS = ["docx", "epub", "html", "latex", "mediawiki", "odt", "org", "pptx", "rst", "rtf"]


@needs("bs4", "pypandoc")
@pytest.mark.parametrize("form", FORMS)
def test_pandocs_formats(form, tmp_path):
    """A text that pandoc writes is read as it was, whatever the format."""
    import pypandoc

    endings = {"latex": "tex", "mediawiki": "wiki"}
    path = tmp_path / f"notes.{endings.get(form, form)}"
    options = ["--standalone", "--mathml"]
    pypandoc.convert_text(NOTES, form, "markdown", outputfile=str(path), extra_args=options)
    document = read(path.read_bytes(), path.name)
    text = " ".join(document.sentences).replace("@formula", "x^2 = 4").replace("x² = 4", "x^2 = 4")
    assert "Two old boats sank, at x^2 = 4. One came back. a coat a lamp" in text
    assert "There are 10^5 of them. It rained." in text
    assert "Results" in [document.title, *document.section_names]
    if form != "pptx":  # where pandoc writes footnotes on a slide of their own
        assert document.section_names[-1] == "Piers" and "Not all" not in text


def shape(text, place=""):
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr id='40' name='x'/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr>"
        f"<p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


@needs("pypandoc")
def test_groups_footers_and_notes_of_slides(tmp_path):
    import pypandoc

    path = tmp_path / "slides.pptx"
    slides = "# Ships\n\nShips pass two stations.\n\n::: notes\nI explain it now.\n:::\n"
    pypandoc.convert_text(slides, "pptx", "markdown", outputfile=str(path))
    within = f"<p:grpSp>{shape('The tug turns it.')}</p:grpSp>"
    added = f"<p:grpSp>{shape('The pilot boards.')}{within}</p:grpSp>"
    added += shape("Harbor Office", "<p:ph type='ftr'/>")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    slide = "ppt/slides/slide1.xml"
    parts[slide] = parts[slide].replace("</p:spTree>", f"{added}</p:spTree>")
    data = zip_bytes(parts)
    assert read(data).sentences == [
        "Ships pass two stations.", "The pilot boards.", "The tug turns it.",
    ]  # fmt: skip
    left = left_out(data)
    assert left["footers of slides"] == 2 and left["notes of the speaker"] == 5  # and a number


# ---------------------------------------------------------------------------------
# PDF


def pdf_bytes(*pages, size=10):
    """A PDF of pages; on each lines at places (x, y) in shares of it."""
    pytest.importorskip("matplotlib")
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
    from matplotlib.figure import Figure

    file = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}), PdfPages(file) as pdf:
        for lines in pages:
            figure = Figure(figsize=(6, 8))
            FigureCanvasPdf(figure)
            for x, y, text, *font in lines:
                figure.text(x, y, text, fontsize=font[0] if font else size)
            pdf.savefig(figure)
    return file.getvalue()


def column(x, *lines, leading=0.02):
    return [(x, 0.88 - leading * n, line) for n, line in enumerate(lines) if line]


LEFT = [
    "The harbour office kept a", "log of ships that came in", "during the winter of 1931.", "",
    "A second paragraph begins", "here and runs on to the", "end of the first column,", "where it breaks off in mid",
]  # fmt: skip
RIGHT = [
    "sentence and goes on at", "the top of the other one.", "", "Results", "The price of salt fell by", "12.5% (p",
    "> 0.05).",
]  # fmt: skip


@needs("pdfminer", "matplotlib")
def test_columns_of_a_pdf():
    """Column by column, whatever the order in which lines were drawn; a sentence goes on in the
    next one."""
    lines = sorted([*column(0.1, *LEFT), *column(0.55, *RIGHT)], key=lambda line: -line[1])
    title, number = (0.1, 0.95, "A title across both columns", 16), (0.5, 0.02, "17")
    data = pdf_bytes([title, *lines, number])
    document = read(data, "paper.txt")
    assert document.title == "A title across both columns"
    assert document.section_names == ["", "Results"]
    assert document.sections[0] == [
        "The harbour office kept a log of ships that came in during the winter of 1931.",
        "A second paragraph begins here and runs on to the end of the first column, where it "
        "breaks off in mid "
        "sentence and goes on at the top of the other one.",
    ]
    assert document.sections[1] == ["The price of salt fell by 12.5% (p > 0.05)."]
    assert left_out(data) == {"headings": 6, "page numbers and running heads": 1}


@needs("pdfminer", "matplotlib")
def test_running_heads_and_exponents_of_a_pdf():
    pages = [
        [(0.1, 0.97, "Harbour News"), *column(0.1, text, "and on."), (0.4, 0.02, f"Page {n} of 3")]
        for n, text in enumerate(
            ("There were $10^{5}$ gulls", "There were nine boats", "It rained"), 1
        )
    ]
    document = read(pdf_bytes(*pages, size=12))
    assert document.sentences == [
        "There were 10^5 gulls and on.",
        "There were nine boats and on.",
        "It rained and on.",
    ]


LOCKED = (CASES / "locked.pdf").read_bytes()


# ---------------------------------------------------------------------------------
# XML

ARTICLE = (CASES / "gulls.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_article_in_jats(pack):
    data = pack(ARTICLE.encode())
    document = read(data, "paper.nxml.gz")
    assert (document.title, document.section_names) == ("Gulls", ["", "Results"])
    assert document.sections == [["It begins."], ["# 9 is a gull.", "So is *10* <b>."]]
    title, abstract, heading = 1, 2, 1
    assert left_out(data, "paper.nxml.gz") == {
        "headings": title + heading,
        "the abstract": abstract,
    }


def test_several_articles_and_standard_input(tmp_path, monkeypatch):
    article = ARTICLE.partition("?>")[2]
    (tmp_path / "a.xml").write_text(
        f"<pmc-articleset>{article}{article}</pmc-articleset>", encoding="utf-8"
    )
    named = list(read_texts([tmp_path / "a.xml"]))
    assert [name for name, _ in named] == [
        "a.xml, article 1",
        "a.xml, article 2",
    ] and parse_text(named[1][1]).sentences[0] == "It begins."
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(ARTICLE.encode()), encoding="utf-8")
    )
    ((name, text),) = read_texts([])
    assert name == "standard input" and parse_text(text).title == "Gulls"


# ---------------------------------------------------------------------------------
# encodings and refusals


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<?xml version='1.0'?><TEI><p>x</p></TEI>", "without an <article>"),
        (b"<?xml version='1.0'?><article><front/></article>", "an article without a text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "a picture: recognise its text .*tesseract 'my text'"),
        (b"a text" + bytes([1, 2, 3]), "no text; text, PDF, Word files .* are read"),
        (b"PK\x03\x04 damaged", "damaged"),
        (b"%PDF-1.7\nnothing", "PDF that cannot be read"),
        (LOCKED, "PDF that a password locks. Unlock it: qpdf"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(data, message, tmp_path):
    pytest.importorskip("pdfminer")
    (tmp_path / "text").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read(data, "my text")
    with pytest.raises(CorpusError, match=f"{tmp_path / 'text'}: ") as error:
        list(read_texts([tmp_path / "text"]))
    assert "\n" not in str(error.value)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("lib.data.files.find_spec", lambda module: None)
    with pytest.raises(
        InputError, match=r"HTML: to read it, install the extra `files`: pip install"
    ):
        read(PAGE)
    assert read("Plain text needs nothing.").sentences == ["Plain text needs nothing."]


@needs("bs4", "pypandoc")
def test_a_corpus_of_files(tmp_path):
    """Each beside its summary."""
    for split, name, data in (
        ("train", "a.html", PAGE.encode()),
        ("val", "b.docx", REPORT),
        ("test", "c.txt", b"Plain."),
    ):
        (tmp_path / split).mkdir()
        (tmp_path / split / name).write_bytes(data)
        (tmp_path / split / f"{name[0]}.summary.txt").write_text("Short.", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    titles = [
        document.title for split in ("train", "val", "test") for document in corpus.split(split)
    ]
    assert titles == ["Gulls of the north pier", "A report", ""]


def test_latex_in_several_files(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/one.tex").write_text("Bees fly. \\input{parts/two} They die.")
    (tmp_path / "parts/two.tex").write_text("They eat.")
    text = "\\documentclass{article}\\begin{document}\\include{parts/one}\\end{document}"
    (found,) = texts_of(text.encode(), str(tmp_path / "paper.tex"))
    assert parse_text(found).sentences == ["Bees fly.", "They eat.", "They die."]
    # but nothing of other folders
    (found,) = texts_of(text.encode(), str(tmp_path / "parts/paper.tex"))
    assert not found.parts and "parts/one" in found.notes[0]
