"""The encoding of a text: decided once, for plain text, HTML and XML."""

import codecs
import quopri
import re

from charset_normalizer import from_bytes

from lib.data.characters import mend_encoding
from lib.system.errors import InputError

_MARKS = [  # the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
_DECLARATION = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?([\w.:-]+)""",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(  # of a letter in UTF-8
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_JAPANESE = re.compile(rb"\x1b\$[@B]")  # ISO-2022-JP's change to Chinese characters
_QUOTED_SEQUENCE = re.compile(rb"=(?:C[2-9A-F]|D[\dA-F]|E[\dA-F]=[89AB][\dA-F])=[89AB][\dA-F]")
_QUOTED_LETTER = re.compile(rb"[A-Za-z]=[89A-F][\dA-F]")
_QUOTED_LINE = re.compile(rb"=\r?\n")
_HIGH = re.compile(rb"[\x80-\xff]+")
# Bytes that Windows-1252 has not, and three letters with accents in a row.
_NOT_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d]|[\x80-\xff]{3}")
# As browsers do: what calls itself Latin-1 may have the quotation marks of Windows.
_WIDER = dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"), "cp1252")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # all but those of lines and terminals
_NO_TEXT = "no text; text, PDF, Word files and articles are read (docs/run.md). Convert it"
# Without the rarer ones, a guess from a short text is right more often.
_COMMON = [
    *("cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr"),
]
BYTES_FOR_A_GUESS = 200_000


def decoded(data: bytes, is_marked_up: bool = False) -> tuple[str, str]:
    """Return the text of bytes, and a note where the encoding was guessed.

    The order is: a byte-order mark, the declaration of HTML or XML (`is_marked_up`), the
    quoted-printable of mails and ISO-2022-JP, UTF-8, UTF-8 with few wrong bytes, UTF-16 without a
    mark, Windows-1252, and charset-normalizer's guess. Raises InputError for what is no text.
    """
    text, note = _decoded(data, is_marked_up)
    mended = mend_encoding(text)
    if mended != text:
        note = "UTF-8 that was read in another encoding, mended"
        text = mended
    text, controls = _CONTROLS.subn("", text)
    if controls > max(1, len(text) / 1000):
        raise InputError(_NO_TEXT)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), note


def _decoded(data: bytes, is_marked_up: bool) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace"), ""
    declared = _DECLARATION.search(data[:4096]) if is_marked_up else None
    names = [name.decode().lower() for name in declared.groups() if name] if declared else []
    if data.isascii() and not is_marked_up:
        if _JAPANESE.search(data):
            return data.decode("iso2022_jp_2", errors="replace"), "read as ISO-2022-JP"
        if _is_quoted_printable(data):
            text, _ = _decoded(quopri.decodestring(data), is_marked_up)
            return text, "read as the quoted-printable of mails"
    if b"\0" in data:
        return _wide(data), "no byte-order mark: read as UTF-16"
    for name in [*names, "utf-8"]:
        try:
            if not name.startswith(("utf-16", "utf-32")):  # which no declaration in ASCII can be
                return data.decode(_WIDER.get(name) or name), ""
        except (LookupError, UnicodeError):
            continue
    return _guessed(data)


def _guessed(data: bytes) -> tuple[str, str]:
    """Return the text of bytes that are in no encoding that is known, and a note."""
    sequences = len(_SEQUENCE.findall(data))
    rest = _HIGH.findall(_SEQUENCE.sub(b"", data))
    wrong = sum(map(len, rest))
    if 0 < wrong <= sequences:
        text = data.decode("utf-8", errors="companion.windows")
        return text, f"UTF-8 with {wrong} byte{'s' * (wrong > 1)} of another encoding"
    if not _NOT_WINDOWS.search(data):
        return data.decode("cp1252"), "not UTF-8: read as Windows-1252"
    best = from_bytes(data[:BYTES_FOR_A_GUESS], cp_isolation=_COMMON).best()
    if best is None:
        raise InputError(_NO_TEXT)
    return data.decode(best.encoding, errors="replace"), f"not UTF-8: guessed {best.encoding}"


def _is_quoted_printable(data: bytes) -> bool:
    """Whether a letter of UTF-8 is written as "=C3=A9", or as "=E9" where "=" also ends lines."""
    return bool(
        _QUOTED_SEQUENCE.search(data) or (_QUOTED_LINE.search(data) and _QUOTED_LETTER.search(data))
    )


def _wide(data: bytes) -> str:
    """Decode UTF-16 without a mark. The first half of a character's number, its script, varies less
    than the second."""
    even, odd = len(set(data[::2])), len(set(data[1::2]))
    try:
        text = data.decode("utf-16-le" if odd < even else "utf-16-be")
    except UnicodeError:
        raise InputError(_NO_TEXT) from None
    letters = sum(map(str.isalpha, text))
    if even == odd or 2 * letters < len(text):  # zeros in what is no text
        raise InputError(_NO_TEXT)
    return text


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are not UTF-8 as Windows-1252, and leave out a letter that is cut."""
    assert isinstance(error, UnicodeDecodeError)
    is_cut = error.end == len(error.object) and error.reason == "unexpected end of data"
    wrong = b"" if is_cut else error.object[error.start : error.end]
    return wrong.decode("cp1252", errors="replace"), error.end


codecs.register_error("companion.windows", _as_windows)
