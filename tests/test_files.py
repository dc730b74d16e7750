"""Files that people have texts in: what is read of them, and what is said of those that are not read."""

import gzip
import importlib.util
import io
import sys
import zipfile

import pytest

from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError
from lib.data.files import read_text_file, texts_of
from lib.data.plain_text import left_out_words, parse_text
from lib.data.readers import reading
from lib.summarize import read_texts
from lib.system.errors import InputError


def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs the extra `files`: {', '.join(missing)}")


def read(data, name="text.bin"):
    """The only text of a file, as a document."""
    (text,) = texts_of(data if isinstance(data, bytes) else data.encode(), name)
    return parse_text(text)


# -------------------------------------------------------------------------------------------------------------- HTML

PAGE = """<!DOCTYPE html>
<html><head><title>Gulls | Harbour News</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a> <a href="/boats">All boats</a></nav>
<h1>Gulls of the <em>north</em> pier</h1><!-- a remark -->
<p>There are 2 * 10<sup>3</sup> gulls<sup><a href="#n1">1</a></sup> on
the pier &amp; none elsewhere.</p><script>let x = "No text.";</script>
<h2>Why they stay</h2>
<ul><li>Bread</li><li># 1 reason: fish_and_chips</li></ul>
<table><tr><td>May</td><td>9 gulls</td></tr></table>
<pre><code>count(gulls)</code></pre>
Text without a paragraph.<br>It ends.
<footer>Harbour News 1931</footer></body></html>"""


@needs("bs4", "lxml")
def test_a_page():
    document = read(PAGE)
    assert document.title == "Gulls of the north pier"
    assert document.section_names == ["", "Why they stay"]
    assert document.sections[0] == ["There are 2 * 10^3 gulls on the pier & none elsewhere."]
    assert document.sections[1] == [
        "Bread",
        "# 1 reason: fish_and_chips",
        "May 9 gulls",
        "Text without a paragraph.",
        "It ends.",
    ]
    title, heading, menu, code, foot = 5, 3, 3, 1, 3
    assert left_out_words(*texts_of(PAGE.encode())) == title + heading + menu + code + foot


@needs("bs4", "lxml")
def test_the_main_part_of_a_page():
    head = "<html><title>T</title><body><div>Menu of all</div>"
    for tag in ("main", "article"):
        text = (
            f"{head}<{tag}><header><h2>By Ines</h2></header><p>It rains.</p></{tag}><p>Buy a boat.</p></body></html>"
        )
        document = read(text)
        assert (document.title, document.section_names, document.sentences) == ("T", ["By Ines"], ["It rains."])
        assert left_out_words(*texts_of(text.encode())) == 2 + 1 + 3 + 3
    assert read("<p>One part.<p>Another.", "x.html").sentences == ["One part.", "Another."]
    assert read("<html><body><pre>Plain\ntext.\n\nOf old.</pre></body>").sentences == ["Plain text.", "Of old."]


@needs("bs4", "lxml")
def test_paragraphs_that_nothing_ends():
    assert read("<html>" + "<p>It rains." * 2000).sentences == ["It rains."] * 2000
    with pytest.raises(InputError, match="elements within elements, too deep"):
        read("<html>" + "<div>" * 3000 + "It rains.")


@needs("bs4", "lxml")
def test_the_encoding_of_a_page():
    page = '<html><head><meta charset="iso-8859-1"></head><p>Café.</p></html>'
    assert read(page.encode("latin-1")).sentences == ["Café."]
    with pytest.raises(InputError, match="it seems to be ISO-8859-1"):
        read(page.replace("charset", "content").encode("latin-1"))
    with pytest.raises(InputError, match="it says that it is in klingon"):
        read(page.replace("iso-8859-1", "klingon").encode("latin-1"))


# -------------------------------------------------------------------------------------------------------------- DOCX


def docx_bytes(write):
    from docx import Document

    document, file = Document(), io.BytesIO()
    write(document)
    document.save(file)
    return file.getvalue()


def report(document):
    document.add_heading("A report", 0)
    document.add_paragraph("Written in *May*.")
    document.add_heading("Results", 1)
    paragraph = document.add_paragraph("There are 10")
    paragraph.add_run("5").font.superscript = True
    paragraph.add_run(" gulls.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Decision", "Paint the fence"
    document.add_heading("In detail", 2)
    document.add_paragraph("- 2.4 degrees, and")
    document.add_paragraph("rain", style="List Bullet")


@needs("docx")
def test_a_docx():
    document = read(docx_bytes(report), "report.txt")
    assert document.title == "A report" and document.section_names == ["", "Results", "In detail"]
    assert document.sections == [
        ["Written in *May*."],
        ["There are 10^5 gulls.", "Decision", "Paint the fence"],
        ["- 2.4 degrees, and", "rain"],
    ]


@needs("docx")
def test_changes_and_text_boxes_of_a_docx():
    """As the text is after its changes; a text box once."""
    from docx.oxml import parse_xml

    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = "<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent>"
    xml = f"""<w:p {names} {mc}><w:r><w:t>The </w:t></w:r><w:ins><w:r><w:t>new </w:t></w:r></w:ins>
    <w:del><w:r><w:delText>old </w:delText></w:r></w:del><w:r><w:t>text</w:t><w:tab/><w:t>stays.</w:t></w:r>
    <mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:p>"""

    def write(document):
        document.element.body.insert(0, parse_xml(xml))

    assert read(docx_bytes(write)).sentences == ["The new text stays.", "In a box."]


@needs("docx")
def test_a_damaged_docx():
    data = docx_bytes(report)
    with pytest.raises(InputError, match="a damaged zip file"):
        read(data[: len(data) // 2])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("word/document.xml", "<x>")
    with pytest.raises(InputError, match="DOCX that cannot be opened"):
        read(file.getvalue())


# --------------------------------------------------------------------------------------------------------------- PDF


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
    """Column by column, whatever the order in which lines were drawn; a sentence goes on in the next one."""
    lines = sorted([*column(0.1, *LEFT), *column(0.55, *RIGHT)], key=lambda line: -line[1])
    title, number = (0.1, 0.95, "A title across both columns", 16), (0.5, 0.02, "17")
    data = pdf_bytes([title, *lines, number])
    document = read(data, "paper.txt")
    assert document.section_names == ["", "Results"]
    assert document.sections[0] == [
        "A title across both columns",
        "The harbour office kept a log of ships that came in during the winter of 1931.",
        "A second paragraph begins here and runs on to the end of the first column, where it breaks off in mid "
        "sentence and goes on at the top of the other one.",
    ]
    assert document.sections[1] == ["The price of salt fell by 12.5% (p > 0.05)."]
    assert left_out_words(*texts_of(data)) == 2, "the heading and the number of the page"


@needs("pdfminer", "matplotlib")
def test_lines_of_a_pdf_that_stand_far_apart():
    right = ["sentence and goes on at", "the top of the other, as", "Ann had seen. It rains", "there."]
    data = pdf_bytes([*column(0.1, *LEFT[4:], leading=0.03), *column(0.55, *right, leading=0.03)])
    assert read(data).sentences == [
        "A second paragraph begins here and runs on to the end of the first column, where it breaks off in mid "
        "sentence and goes on at the top of the other, as Ann had seen.",
        "It rains there.",
    ]


@needs("pdfminer", "matplotlib")
def test_running_heads_and_exponents_of_a_pdf():
    pages = [
        [(0.1, 0.97, "Harbour News"), *column(0.1, text, "and on."), (0.4, 0.02, f"Page {n} of 3")]
        for n, text in enumerate(("There were $10^{5}$ gulls", "There were nine boats", "It rained"), 1)
    ]
    document = read(pdf_bytes(*pages, size=12))
    assert document.sentences == [
        "There were 10^5 gulls and on.",
        "There were nine boats and on.",
        "It rained and on.",
    ]


@needs("pdfminer", "matplotlib")
def test_lines_of_a_pdf_stay_lines():
    """So that words which hyphens cut at their ends can be joined."""
    (text,) = texts_of(pdf_bytes([*column(0.1, "It came in during the win-", "ter of that year.")]))
    assert "win-\nter of that year." in text


@needs("pdfminer", "matplotlib")
def test_a_pdf_without_text():
    with pytest.raises(
        InputError, match=r"PDF of pictures, without a text.*: ocrmypdf 'my scan\.pdf' 'my scan'\.ocr"
    ):
        read(pdf_bytes([]), "my scan.pdf")


OUTLINED = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Contents 5 0 R/Resources<</Font<</F 4 0 R>>>>>> endobj
4 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
5 0 obj <</Length 150>> stream
BT /F 12 Tf 50 350 Td (Gulls are many.) Tj 0 -14 Td (1.2 Where they nest) Tj 0 -14 Td (They nest on roofs.) Tj ET
endstream endobj
6 0 obj <</Type/Outlines/First 7 0 R/Last 7 0 R/Count 1>> endobj
7 0 obj <</Title(Where they nest)/Parent 6 0 R/Dest[3 0 R/Fit]>> endobj
trailer <</Root 1 0 R>>
%%EOF"""


@needs("pdfminer")
def test_headings_by_the_outline_of_a_pdf():
    document = read(OUTLINED)
    assert document.section_names == ["", "1.2 Where they nest"]
    assert document.sections == [["Gulls are many."], ["They nest on roofs."]]


LOCKED = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[]/Count 0>> endobj
3 0 obj <</Filter/Standard/V 1/R 2/P -44
/O(11111111111111111111111111111111)/U(22222222222222222222222222222222)>> endobj
trailer <</Root 1 0 R/Encrypt 3 0 R/ID[(x)(x)]>>
%%EOF"""


@needs("pdfminer")
def test_a_pdf_that_is_locked_or_damaged():
    with pytest.raises(InputError, match=r"PDF that a password locks\. Unlock it: qpdf"):
        read(LOCKED, "a.pdf")
    for data in (b"%PDF-1.7\nnothing", LOCKED[:60]):
        with pytest.raises(InputError, match="PDF that cannot be read"):
            read(data, "a.pdf")


# --------------------------------------------------------------------------------------------------------------- XML

ARTICLE = """<?xml version="1.0"?><article{}><front><article-meta><title-group><article-title>Gulls</article-title>
</title-group><abstract><p>In short.</p></abstract></article-meta></front><body><p>It begins.</p>
<sec><title>Results</title><p># 9 is a gull.</p><p>So is *10*.</p></sec></body></article>"""


@pytest.mark.parametrize("name", ["", ' xmlns="https://jats.nlm.nih.gov"'])
def test_an_article_in_jats(name):
    text = ARTICLE.format(name)
    document = read(text, "paper.txt")
    assert (document.title, document.section_names) == ("Gulls", ["", "Results"])
    assert document.sections == [["It begins."], ["# 9 is a gull.", "So is *10*."]]
    assert left_out_words(*texts_of(text.encode())) == 1 + 2 + 1, "title, abstract, heading"


def test_several_articles_and_standard_input(tmp_path, monkeypatch):
    article = ARTICLE.format("").partition("?>")[2]
    (tmp_path / "a.xml").write_text(f"<pmc-articleset>{article}{article}</pmc-articleset>", encoding="utf-8")
    named = list(read_texts([tmp_path / "a.xml"]))
    assert [name for name, _ in named] == ["a.xml, article 1", "a.xml, article 2"] and "It begins." in named[1][1]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ARTICLE.format("").encode()), encoding="utf-8"))
    ((name, text),) = read_texts([])
    assert name == "standard input" and isinstance(text, str) and parse_text(text).title == "Gulls"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<?xml version='1.0'?><TEI><p>x</p></TEI>", "no <article> in it, as JATS has them: save it as text"),
        ("<?xml version='1.0'?><article><p>x", "not XML"),
        (
            "<?xml version='1.0'?><article><body>"
            + "<sec>" * 3000
            + "<p>x</p>"
            + "</sec>" * 3000
            + "</body></article>",
            "too deep",
        ),
        ("<?xml version='1.0'?><article><front/></article>", "an article without a text"),
    ],
)
def test_other_xml(text, error):
    with pytest.raises(InputError, match=error):
        read(text)


# ---------------------------------------------------------------------------------------------------- other formats


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name, text in files.items():
            written.writestr(name.replace("_", "/"), text)
    return file.getvalue()


OTHERS = {
    "RTF": (rb"{\rtf1\ansi A text.}", "RTF. Convert it: pandoc -f rtf my.text -t markdown -o my.rtf.md"),
    "LaTeX": (
        b"% mine\n\\documentclass{article}\n\\begin{document}Hi.",
        "LaTeX.*pandoc -f latex my.text -t markdown -o my.latex.md",
    ),
    "old Word": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(300),
        "libreoffice --headless --convert-to docx my.text",
    ),
    "OpenDocument": (zipped(mimetype="application/vnd.oasis.opendocument.text"), "OpenDocument. Convert it: pandoc"),
    "EPUB": (zipped(mimetype="application/epub+zip"), "EPUB. Convert it: pandoc"),
    "slides": (zipped(ppt_presentation="x"), "slides or a table of an Office: save it as PDF"),
    "zip": (zipped(x="y"), "an archive: unpack it"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(20), "an archive: unpack it"),
    "tar": (b"a.txt" + bytes(252) + b"ustar\x0000", "an archive: unpack it"),
    "PNG": (b"\x89PNG\r\n\x1a\n" + bytes(20), "a picture: recognise its text first"),
    "JPEG": (b"\xff\xd8\xff\xe0" + bytes(20), "a picture"),
    "PostScript": (b"%!PS-Adobe-3.0\n", "PostScript. Convert it: ps2pdf"),
    "DjVu": (b"AT&TFORM\0\0", "DjVu. Take the text out of it: djvutxt"),
    "film": (b"\0\0\0\x18ftypmp42", "sound or film, and no text"),
    "Parquet": (b"PAR1" + bytes(8), "records in Parquet: name it my.parquet"),
    "program": (b"\x7fELF\x02", "a program or a data base"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_not_read_says_what_to_do(kind):
    """By its content: whatever it is named."""
    data, advice = OTHERS[kind]
    with pytest.raises(InputError, match=advice) as error:
        read(data, "my.text")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["GIFts are rare.", "BMW made it.", "PAR for the course.", "MM is 2000."])
def test_words_that_begin_as_signs_do(text):
    assert read(text).sentences[0].startswith(text.split()[0])


# ------------------------------------------------------------------------------------------------------- characters

FRENCH = "Le café est fermé à l'été. Il pleut."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_that_is_said_is_read(encoding):
    assert read(FRENCH.encode(encoding)).sentences == ["Le café est fermé à l'été.", "Il pleut."]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (FRENCH.encode("latin-1"), "not UTF-8 .*it seems to be ISO-8859-1.* iconv -f ISO-8859-1 -t UTF-8 a.txt >"),
        ((FRENCH + " “Oui.”").encode("cp1252"), "it seems to be WINDOWS-1252. .*iconv -f WINDOWS-1252"),
        (FRENCH.encode("utf-16-le"), "it seems to be in UTF-16LE.* iconv -f UTF-16LE"),
        (FRENCH.encode("utf-16-be"), "it seems to be in UTF-16BE"),
        ("Мост открыт.".encode("utf-16-le"), "it seems to be in UTF-16LE"),
        ("Мост открыт до июня.".encode("cp1251"), "not UTF-8 .*; name its encoding .*iconv -f ENCODING"),
        ("橋は六月まで閉まる。".encode("shift-jis"), "not UTF-8 .*; name its encoding"),
        (FRENCH.encode("utf-16")[:-1], "not UTF-16"),
    ],
)  # fmt: skip
def test_an_encoding_that_is_not_said_is_named(data, error):
    with pytest.raises(InputError, match=error):
        read(data, "a.txt")


# -------------------------------------------------------------------------------------------------- in the commands


def test_a_part_of_a_latex_file_is_told_by_its_sections():
    with pytest.raises(InputError, match="LaTeX, whose commands"):
        read(b"\\section{Aim}\nWe \\emph{look}.\n", "part.txt")
    assert read(b"We write \\section{Aim} for a heading.\n", "part.txt").sentences


def test_compressed_jats_is_read():
    xml = b"<article><body><p>Gulls came.</p><fig><caption><p>A gull there.</p></caption></fig></body></article>"
    (text,) = texts_of(gzip.compress(xml), "a.nxml.gz")
    assert parse_text(text).sentences == ["Gulls came."] and left_out_words(text) == 3


def test_a_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(CorpusError, match="a folder: give the texts in it"):
        read_text_file(tmp_path)


def test_the_error_of_a_file_names_it(tmp_path):
    (tmp_path / "a.txt").write_bytes(FRENCH.encode("latin-1"))
    with pytest.raises(CorpusError, match=rf"^{tmp_path}/a\.txt: not UTF-8 .*ISO-8859-1"):
        read_text_file(tmp_path / "a.txt")
    with pytest.raises(CorpusError, match=r"a\.txt: not UTF-8"):
        list(read_texts([tmp_path / "a.txt"]))
    with pytest.raises(CorpusError, match="No such file"), reading("x"):
        read_text_file(tmp_path / "b.txt")


@pytest.mark.parametrize(
    ("module", "data"), [("bs4", PAGE.encode()), ("pdfminer", LOCKED), ("docx", zipped(**{"word_document.xml": "x"}))]
)
def test_without_the_extra_a_line_says_what_to_install(module, data, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r'to read it, install the extra `files`: pip install "\.\[files\]"'):
        read(data)


@needs("bs4", "lxml", "docx")
def test_a_folder_of_texts_in_other_formats(tmp_path):
    for split, name, data in (
        ("train", "a.html", PAGE.encode()),
        ("val", "b.docx", docx_bytes(report)),
        ("test", "c.txt", b"Plain."),
    ):
        (tmp_path / split).mkdir()
        (tmp_path / split / name).write_bytes(data)
        (tmp_path / split / f"{name[0]}.summary.txt").write_text("Short.", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    titles = [document.title for split in ("train", "val", "test") for document in corpus.split(split)]
    assert titles == ["Gulls of the north pier", "A report", ""]
