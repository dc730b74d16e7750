"""A text as its reader found it: title, headings and paragraphs, and what is not read."""

import re
from collections import Counter
from dataclasses import dataclass, field

from lib.data.characters import clean
from lib.data.documents import Document
from lib.data.sentences import split_sentences
from lib.data.tokenize import is_word
from lib.system.errors import InputError

_BETWEEN = "\n\x1e\n"  # between the parts of a text while it is cleaned as a whole

ORNAMENT = re.compile(r"[\s*=_~#+|·•—–⁂❦◆◇★☆-]+")  # between parts of a text
BETWEEN_LINKS = re.compile(r"[\s|·•»«/>-]")  # of a menu
MENUS = "menus and other parts beside the text"

# The names by which sections of papers and reports are known.
is_section_name = re.compile(
    r"(?:(?:\d{1,3}\.)*\d{1,3}\.?\s+|[IVX]+\.?\s+)?(?=[A-Z])(?i:abstract|introduction|background"
    r"|motivation|overview|objectives?|aims?|(?:related|prior|future) work"
    r"|(?:\w+ and )?method(?:s|ology)?(?: and \w+)?|study design"
    r"|data ?sets?|experiments?|experimental (?:setup|design|results)|statistical analys[ei]s"
    r"|evaluation|findings"
    r"|(?:main )?results(?: and discussion)?|(?:general )?discussion(?: and conclusions?)?"
    r"|limitations|summary|conclusions?(?: and \w+(?: \w+)?)?|concluding remarks"
    r"|acknowledge?ments?|case (?:report|presentation)"
    r"|data availability|references|bibliography|appendi(?:x|ces)(?: [a-z])?"
    r"|(?:chapter|part) \w+(?:[:.] .*)?):?"
).fullmatch


@dataclass
class Text:
    """Title, parts in their order, and what is set aside.

    A part is the level of a heading, or 0, with its words. `set_aside` has the words that are not
    read, by kind. `notes` say what was decided about the file, such as its encoding.
    """

    title: str = ""
    parts: list[tuple[int, str]] = field(default_factory=list)
    set_aside: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_heading(self, words: str, level: int) -> None:
        """Add a heading. The first part of a text without a title is its title, unless it is the
        name of a section."""
        words = " ".join(words.split())
        if not words:
            return
        self.leave_out("headings", words)
        is_title = not self.title and not self.parts
        if is_title and (level == 1 or not is_section_name(words)):
            self.title = words
        else:
            self.parts.append((level, words))

    def add_paragraph(self, words: str) -> None:
        """Add a paragraph, whose line ends `split_sentences` interprets. Ornaments are none."""
        if words.strip() and not ORNAMENT.fullmatch(words):
            self.parts.append((0, words))

    def leave_out(self, kind: str, words: str) -> None:
        self.set_aside.append((kind, words))

    @property
    def left_out(self) -> Counter[str]:
        """Numbers of the words that are not read, by kind."""
        counts: Counter[str] = Counter()
        for kind, words in self.set_aside:
            counts[kind] += sum(map(is_word, words.split()))
        return +counts

    def document(self, name: str = "", paragraphs: bool = False) -> Document:
        """Make a document without a summary.

        paragraphs: make each paragraph a section. Raises InputError for a text without a sentence.
        """
        words = [words for _, words in self.parts]
        cleaned = clean(_BETWEEN.join(words)).split(_BETWEEN) if words else []
        sections: list[tuple[str, list[str]]] = []
        for (level, _), part in zip(self.parts, cleaned):
            if level:
                sections.append((part, []))
            elif sentences := split_sentences(part):
                if paragraphs or not sections:
                    sections.append((sections[-1][0] if sections else "", []))
                sections[-1][1].extend(sentences)
        sections = [(heading, sentences) for heading, sentences in sections if sentences]
        if not sections:
            raise InputError("the text has no sentence: there is nothing to summarize")
        return Document(
            id=name,
            title=clean(self.title),
            section_names=[heading for heading, _ in sections],
            sections=[sentences for _, sentences in sections],
            summary=[],
        )
