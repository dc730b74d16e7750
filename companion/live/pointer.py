"""A small pointer-generator for readers of a page: it reads what they type, in their browser, without a kernel."""

from dataclasses import asdict, dataclass
from html import escape

from companion.live.page import LAYERS, live_page, packed, scripts
from companion.pages.frames import TRUST
from lib.data.vocabulary import Vocabulary
from lib.decoding.search import DecodeConfig
from lib.models.seq2seq import Seq2Seq

# Shown where a page's frames are removed, as GitHub and a JupyterLab that does not trust the page do.
MISSING = (
    "Here a text can be typed and the switch be moved, where a browser runs the page's scripts: open the page in the "
    f"book, or {TRUST}."
)


@dataclass(frozen=True)
class LivePointer:
    """As a cell's result: a frame in which a text is typed, with the model's steps and its beam search.

    model: one that copies, in any precision; its weights are rounded to 16 bits.
    text: what the frame begins with.
    decode: rules of its search, of which a reader changes the beam.
    """

    model: Seq2Seq
    vocabulary: Vocabulary
    text: str
    decode: DecodeConfig

    def document(self) -> str:
        """The frame's own HTML, which needs nothing else."""
        data = {
            "config": asdict(self.model.config),
            "weights": packed(self.model.state_dict(), 16),
            "decode": asdict(self.decode),
            "words": self.vocabulary.words,
            "text": self.text,
        }
        code = scripts(*LAYERS, "seq2seq", "elements", "pointer_page")
        return live_page("pointer_page", "a pointer-generator", "", code, data)

    def _repr_html_(self) -> str:
        """A frame that may run its script and nothing more; it hides the sentence that stands below it."""
        cell, size = "grid-area: 1 / 1", "width: 100%; height: 46rem; border: 1px solid #b0b0b0"
        return (
            f'<div style="display: grid; grid-template-columns: minmax(0, 1fr)"><p style="{cell}">{MISSING}</p>'
            f'<iframe title="A pointer-generator that reads what you type" sandbox="allow-scripts" loading="lazy" '
            f'style="{cell}; {size}; background: #fff" srcdoc="{escape(self.document(), quote=True)}"></iframe></div>'
        )
