"""Small files that tests make: DOCX from paragraphs in XML, and PDF from lines at places."""

import io
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_WORD = "http://purl.oclc.org/ooxml/wordprocessingml/main"
STRICT_OFFICE = "http://purl.oclc.org/ooxml/officeDocument/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DRAWN = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
NAMES = (
    f'xmlns:m="{OFFICE.replace("relationships", "math")}" xmlns:wps="{DRAWN}" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def docx_bytes(body, styles="", notes="", kind=f"{TYPE}.document.main+xml", strict=False):
    """A DOCX whose body, styles and footnotes are given in XML, with the prefixes w, m, mc and
    wps."""
    word, office = (STRICT_WORD, STRICT_OFFICE) if strict else (WORD, OFFICE)

    def relations(*pairs):
        rows = "".join(
            f'<Relationship Id="r{n}" Type="{office}/{name}" Target="{target}"/>'
            for n, (name, target) in enumerate(pairs)
        )
        return f'<Relationships xmlns="{PACKAGE}/relationships">{rows}</Relationships>'

    def part(name, inner):
        return f'<w:{name} xmlns:w="{word}" {NAMES}>{inner}</w:{name}>'

    types = (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
        f'ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.'
        'openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        f'ContentType="{kind}"/></Types>'
    )
    parts = {
        "[Content_Types].xml": types,
        "_rels/.rels": relations(("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations(
            ("styles", "styles.xml"), ("footnotes", "footnotes.xml")
        ),
        "word/styles.xml": part("styles", styles),
        "word/footnotes.xml": part("footnotes", notes),
        "word/document.xml": part("document", f"<w:body>{body}</w:body>"),
    }
    return zip_bytes({name: f'<?xml version="1.0"?>{xml}' for name, xml in parts.items()})


def zip_bytes(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


def pdf_bytes(pages):
    """A PDF of pages, each a list of lines (x, y, size, text, and True for text that is turned by
    90 degrees), in Helvetica, on a sheet of 612 by 792 points."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", ""]
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    objects.append(font)
    kids = []
    for page in pages:
        drawn = "\n".join(_drawn(*line) for line in page)
        objects.append(f"<</Length {len(drawn.encode('cp1252'))}>>stream\n{drawn}\nendstream")
        objects.append(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]"
            f"/Resources<</Font<</F1 3 0 R>>>>/Contents {len(objects)} 0 R>>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252")
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
        f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF"
    )
    return data + end.encode()


def _drawn(x, y, size, text, is_turned=False):
    for sign in "\\()":
        text = text.replace(sign, f"\\{sign}")
    matrix = "0 1 -1 0" if is_turned else "1 0 0 1"
    return f"BT /F1 {size} Tf {matrix} {x} {y} Tm ({text}) Tj ET"
