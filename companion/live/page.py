"""Self-contained HTML pages in which models read and write: their weights and equations in the
reader's browser, without a network: a page of a trained run, of the models of the towns, and the
frame of a small pointer-generator.

The scripts are in `companion/live/static`: products of matrices, layers, beam search, the models,
and the pages. The texts that a page offers are cut into sentences and words here; only a reader's
own text is cut in the browser.
"""

import base64
import json
import re
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from companion.live.rules import cutting_rules
from companion.pages.diagrams import FOLDER, read_picture
from companion.pages.frames import TRUST
from companion.tasks import stories, towns
from lib.data.corpus import load_corpus
from lib.data.documents import Document
from lib.data.options import Options
from lib.data.vocabulary import BOS, CLUSTER_SYMBOLS, PAD, SPECIALS, Vocabulary
from lib.decoding.config import DecodeConfig
from lib.decoding.field import STRANGE, TOO_SHORT, UNKNOWN
from lib.decoding.run import Run
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain
from lib.models.seq2seq import Seq2Seq
from lib.models.windowed import Windowed
from lib.page.html_page import html_page
from lib.system.errors import InputError
from lib.system.files import project_root, write_whole

STATIC = Path(__file__).with_name("static")
# What the page of each model says: what to see and to try, its formulas and symbols, and the
# questions of its tour.
TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))
LAYERS = ("vocabulary", "words", "layers", "search")
TEXT = ("sentences", "plain_text", "own_text")
PAGE = ("draw", "page")
# Each model has a script, a page and a picture: NAME.js, NAME_page.js and NAME.svg, NAME that of
# its module.
MODELS = (Mem2Mem, Windowed, ReadAgain)
_RULES = re.compile(r"\[RULES (\w+)\]")  # of a module of the library
MAX_BYTES = 12_000_000  # of a page
# of pmc-sample, all CC BY 4.0
SAMPLE = ("PMC6249499", "PMC6351142", "PMC5985758", "PMC6084865", "PMC6341647")


@dataclass(frozen=True)
class LivePaper:
    """A paper that a page offers, and its authors and licence."""

    document: Document
    source: str = ""


def read_static(name: str) -> str:
    """Return a file of `companion/live/static`, with the library's rules in their places."""
    text = (STATIC / name).read_text(encoding="utf-8")
    return _RULES.sub(lambda place: json.dumps(cutting_rules()[place[1]], ensure_ascii=False), text)


def scripts(*names: str) -> str:
    """Join scripts of `companion/live/static`; they share their names."""
    return "\n".join(read_static(f"{name}.js") for name in names)


def model_scripts(run: Run) -> str:
    """Join the scripts that compute what a run computes. Raises InputError for a model without a
    script."""
    if type(run.model) not in MODELS:
        known = ", ".join(kind.__name__ for kind in MODELS)
        raise InputError(
            f"{run.folder}: there is no live page of {type(run.model).__name__}, only of {known}"
        )
    if {vars(run.model.config).get(name) for name in ("encoder", "encode")} & {
        "option 1",
        "option 2",
        "stream",
    }:
        raise InputError(
            f"{run.folder}: there is no live page of an encoder of several sentences, or of windows"
        )
    return scripts(*LAYERS, *TEXT, _module(run))


def _module(run: Run) -> str:
    return type(run.model).__module__.rpartition(".")[2]


def write_live_page(path: str | Path, run: Run, title: str, papers: Sequence[LivePaper]) -> Path:
    """Write the page of a run; `title` is a line such as "Mem2Mem, +read", papers are those that it
    offers.

    Weights have the run's precision, or 16 bits where the page would have more than 12 MB
    otherwise. Raises InputError for a model without a script, and for one that is too large.
    """
    name = _module(run)
    code = f"{model_scripts(run)}\n{scripts('elements', f'{name}_page', *PAGE)}"
    texts = [_paper(paper, run.options) for paper in papers]
    for bits in (32, 16):
        page = live_page(
            "page", title, name, code, live_data(run, bits) | TEXTS[name] | {"papers": texts}
        )
        if (size := len(page.encode())) <= MAX_BYTES:
            return write_whole(path, page)
    raise InputError(
        f"{run.folder}: the page would have {size / 1e6:.0f} MB, more than {MAX_BYTES / 1e6:.0f}"
    )


def live_page(name: str, title: str, model: str, code: str, data: object) -> str:
    """Fill the frame of all live pages with the page `name`, the picture of a model, scripts and
    data."""
    body = read_static(f"{name}.html").replace("[TITLE]", escape(title))
    style = read_static("page.css")
    if model:
        body = body.replace("[PICTURE]", read_picture(model))
        style += (FOLDER / "models.css").read_text(encoding="utf-8")
    return html_page(
        STATIC / "frame.html", data, TITLE=escape(title), STYLE=style, BODY=body, CODE=code
    )


def sample_papers() -> list[LivePaper]:
    """Load five papers of `pmc-sample` from which no run of the project has learned."""
    attributions = project_root() / "lib" / "data" / "pmc_sample" / "ATTRIBUTION.md"
    sources = dict(
        re.findall(r"^- (\S+): (.*)$", attributions.read_text(encoding="utf-8"), re.MULTILINE)
    )
    documents = {document.id: document for document in load_corpus("pmc-sample").split("test")}
    return [
        LivePaper(documents[name], sources[name].replace("et al..", "et al.")) for name in SAMPLE
    ]


def _paper(paper: LivePaper, options: Options) -> dict[str, Any]:
    """Cut a paper as the scripts read it: of each sentence its words, how the text writes them, and
    how many words white space sets apart."""
    document = paper.document

    def cut(sentence: str) -> dict[str, Any]:
        tokens, shown = (
            of(sentence, document.tokenised) for of in (options.words, options.surfaces)
        )
        return {"tokens": tokens, "shown": shown, "spaced": len(sentence.split())}

    named = zip(document.section_names, document.sections)
    sections = [{"name": name, "sentences": list(map(cut, sentences))} for name, sentences in named]
    return {"title": document.title, "source": paper.source, "sections": sections}


def live_data(run: Run, bits: int = 32) -> dict[str, Any]:
    """Collect what the scripts need of a run: configuration, what texts need, weights."""
    return {
        "config": asdict(run.model.config),
        **text_data(run),
        "caution": run.caution,
        # what layers share is there once
        "weights": packed(dict(run.model.named_parameters()), bits),
    }


def text_data(run: Run) -> dict[str, Any]:
    """Collect what the scripts need to read a text: options, vocabulary, rules of the search, and
    what they say of texts that are unlike those of the training."""
    return {
        "options": asdict(run.options),
        "decode": asdict(run.decode),
        "words": run.vocabulary.words,
        "source_words": source.words if (source := run.encoder.source_vocabulary) else None,
        "field": run.field and {**asdict(run.field), "warning": run.field.warning},
        "remarks": _remarks(run.config["corpus"]),
    }


def _remarks(corpus: str) -> dict[str, Any]:
    """Return what `lib.summarize` says of texts that are too short or too strange."""
    return {"short": TOO_SHORT, "unknown": UNKNOWN, "strange": STRANGE, "corpus": corpus}


def packed(tensors: Mapping[str, torch.Tensor], bits: int) -> dict[str, Any]:
    """Tensors for the scripts: shapes, and all numbers in base64, in 16 bits if `bits` is 16 or
    nothing is lost."""
    numbers = np.concatenate(
        [tensor.detach().cpu().float().numpy().ravel() for tensor in tensors.values()]
    )
    half = numbers.astype("<f2")
    exact = bool((half.astype("<f4") == numbers).all())
    numbers = half if exact or bits == 16 else numbers.astype("<f4")
    return {
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "bits": 8 * numbers.itemsize,
        "rounded": numbers.itemsize == 2 and not exact,
        "data": base64.b64encode(zlib.compress(numbers.tobytes())).decode(),
    }


# ---------------------------------------------------------------------------------
# the towns

TOWNS_MODEL = "hierarchical_transformer"
TOWNS_SCRIPTS = (*LAYERS, *TEXT, "transformer", TOWNS_MODEL, "town_facts")


def write_towns_page(path: Path) -> Path:
    """Write the page of the shipped models, with the first unseen clusters."""
    code = scripts(*TOWNS_SCRIPTS, "elements", f"{TOWNS_MODEL}_page", *PAGE)
    data = towns_data(list(towns.open_towns().values()), towns.unseen_towns(20))
    return write_whole(path, live_page("page", "two towns", TOWNS_MODEL, code, data))


def towns_data(
    models: Sequence[HierarchicalTransformer], clusters: Sequence[towns.TownCluster]
) -> dict[str, Any]:
    """Collect what the scripts need of two models, of which the second one has no global layers,
    and of clusters.

    Both models are of the form "code", without dropout.
    """
    model, beside = (
        {"config": asdict(m.config), "weights": packed(m.state_dict(), 32)} for m in models
    )
    papers = [
        {
            "title": " and ".join(c.truth),
            "town": c.title,
            "paragraphs": [p.text for p in c.paragraphs],
        }
        for c in clusters
    ]
    return {
        **TEXTS[TOWNS_MODEL],
        **model,
        "beside": beside,
        "papers": papers,
        "words": towns.TOWN_PIECES.words,
        "decode": asdict(DecodeConfig(beam=1, max_length=30)),
        "remarks": _remarks("the synthetic task"),
        "specials": len(SPECIALS) + len(CLUSTER_SYMBOLS),
        "towns": towns.TOWNS,
        "values": towns.VALUES,
        "places": towns.FACT_PLACES,
    }


# ---------------------------------------------------------------------------------
# a pointer-generator


def write_training_page(path: Path) -> Path:
    """Write the page in which a reader trains a pointer-generator of the stories, and a model
    without copying."""
    models = [Seq2Seq(replace(stories.CONFIG, copy=copies)) for copies in (False, True)]
    data = {
        "config": asdict(stories.CONFIG),
        "decode": asdict(DecodeConfig(beam=1, max_length=10, forbidden=(PAD, BOS))),
        "shapes": [
            {name: list(tensor.shape) for name, tensor in m.named_parameters()} for m in models
        ],
        "text": " ".join(stories.TEXT),
        "words": stories.VOCABULARY.words,
        **{
            name: getattr(stories, name.upper())
            for name in ("summary", "verbs", "idle", "known", "rare")
        },
    }
    code = scripts(*LAYERS, "seq2seq", "stories", "elements", "training_page")
    return write_whole(path, live_page("training_page", "two models that learn", "", code, data))


def write_side_by_side(path: Path) -> Path:
    """Write the page in which two models read the same text: its frames are the models' pages in
    its folder."""
    data = TEXTS["side_by_side"] | {"papers": [paper.document.title for paper in sample_papers()]}
    return write_whole(
        path, live_page("side_by_side", "two models", "", scripts("elements", "side_by_side"), data)
    )


OWN_PAGES = {
    "towns": write_towns_page,
    "training": write_training_page,
    "side_by_side": write_side_by_side,
}

# Shown where a page's frames are removed, as GitHub and a JupyterLab that does not trust the page
# do.
MISSING = (
    "Here a text can be typed and the switch be moved, where a browser runs the page's scripts: "
    "open the page in the "
    f"book, or {TRUST}."
)


@dataclass(frozen=True)
class LivePointer:
    """As a cell's result: a frame in which a text is typed, with the model's steps and its beam
    search.

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
        """A frame that may run its script and nothing more; it hides the sentence that stands below
        it."""
        cell, size = "grid-area: 1 / 1", "width: 100%; height: 46rem; border: 1px solid #b0b0b0"
        return (
            f'<div style="display: grid; grid-template-columns: minmax(0, 1fr)"><p style="{cell}">{MISSING}</p>'
            f'<iframe title="A pointer-generator that reads what you type" sandbox="allow-scripts" loading="lazy" '
            f'style="{cell}; {size}; background: #fff" srcdoc="{escape(self.document(), quote=True)}"></iframe></div>'
        )
