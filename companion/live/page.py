"""One self-contained HTML page in which a trained model reads and writes: its weights and equations in the reader's
browser, without a network.

The scripts are in `companion/live/static`: rules that cut a text (`patterns`, `words`, `sentences`, `plain_text`, which take
tables and regular expressions from `lib.data`), products of matrices, layers, beam search, the model, and the page.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from lib.data import characters, plain_text, sentences, words
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain
from lib.models.windowed import Windowed
from lib.system.errors import InputError
from lib.system.files import write_whole

LIVE = Path(__file__).with_name("static")
TEXT = ("patterns", "words", "sentences", "plain_text")
LAYERS = ("vocabulary", "kernels", "layers", "search")
# the models that have a script, a page and a picture: NAME.js, NAME_page.js and NAME.svg, NAME that of their module
MODELS = (Mem2Mem, Windowed, ReadAgain)
LARGEST = 12_000_000  # bytes of a page
# of the test split of pmc-sample, all CC BY 4.0
SAMPLE = ("PMC6249499", "PMC6351142", "PMC5985758", "PMC6084865", "PMC6341647")


@dataclass(frozen=True)
class LivePaper:
    """A paper that a page offers, and whom to name for it."""

    document: Document
    source: str = ""


def scripts(*names: str) -> str:
    """Scripts of `companion/live/static`, one after the other: they share their names."""
    return "\n".join((LIVE / f"{name}.js").read_text(encoding="utf-8") for name in names)


def scripts_of(run: Run) -> str:
    """What a run's page computes with, without the page itself. Raises InputError for a model without a script."""
    if type(run.model) not in MODELS:
        known = ", ".join(sorted(kind.__name__ for kind in MODELS))
        raise InputError(f"{run.folder}: there is no live page of {type(run.model).__name__}, only of {known}")
    if getattr(run.model.config, "encoder", "") in ("option 1", "option 2"):
        raise InputError(
            f"{run.folder}: there is no live page of an encoder of several sentences, {run.model.config.encoder}"
        )
    return scripts(*TEXT, *LAYERS, script_of(type(run.model)))


def script_of(model: type[torch.nn.Module]) -> str:
    """The name of a model's script and picture: that of its module."""
    return model.__module__.rpartition(".")[2]


def write_live_page(path: str | Path, run: Run, title: str, papers: Sequence[LivePaper]) -> Path:
    """Write the page of a run; `title` is a line such as "Mem2Mem, +read", papers are those that it offers.

    Weights are in 16 bits where those of the run are, and otherwise in 32 bits, as far as the page stays below 12 MB;
    it says so where they were rounded. Raises InputError for a model that it does not know, and for one that is too
    large.
    """
    code = scripts_of(run)
    for bits in (32, 16):
        page = _page(run, code, title, papers, bits)
        if len(page.encode()) <= LARGEST:
            return write_whole(path, page)
    size = len(page.encode()) / 1e6
    raise InputError(f"{run.folder}: the page would have {size:.0f} MB, and has {LARGEST / 1e6:.0f} MB at most")


def _page(run: Run, code: str, title: str, papers: Sequence[LivePaper], bits: int) -> str:
    name = script_of(type(run.model))
    data = {**live_data(run, bits), "papers": list(map(_paper, papers))}
    return framed("page", title, name, f"{code}\n{scripts('reader', f'{name}_page', 'page')}", data)


def framed(name: str, title: str, picture: str, code: str, data: object, styles: Sequence[str] = ("page",)) -> str:
    """The page `name`, which is what stands in the frame of all pages that write summaries; picture: of its model."""
    body, stepper, equations = (
        (LIVE / f"{part}.html").read_text(encoding="utf-8") for part in (name, "stepper", "equations")
    )
    drawn = (LIVE / f"{picture}.svg").read_text(encoding="utf-8")
    body = _put(_put(body, {"STEPPER": stepper, "EQUATIONS": equations}), {"PICTURE": drawn})
    return filled("frame", code, data, styles, TITLE=escape(title), BODY=_put(body, {"TITLE": escape(title)}))


def filled(name: str, code: str, data: object, styles: Sequence[str] = (), **parts: str) -> str:
    """The page `name` of `companion/live/static` with its code (no other script runs) and its data; styles: by default its
    own; `parts` by the names that it has for them."""
    code = f'"use strict";\n{code}'
    sheets = [(LIVE / f"{style}.css").read_text(encoding="utf-8") for style in ("palette", *(styles or (name,)))]
    parts = {
        "HASH": f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}",
        "STYLE": "".join(sheets),
        "CODE": code,
        "DATA": as_script(data),
        **parts,
    }
    return _put((LIVE / f"{name}.html").read_text(encoding="utf-8"), parts)


def _put(text: str, parts: Mapping[str, str]) -> str:
    """A text in which parts take the place of their names in brackets."""
    return re.sub("|".join(f"\\[{part}\\]" for part in parts), lambda found: parts[found[0][1:-1]], text)


def sample_papers() -> list[LivePaper]:
    """Five papers of `pmc-sample` that no run of the project has learned from."""
    attributions = (Path(characters.__file__).with_name("pmc_sample") / "ATTRIBUTION.md").read_text(encoding="utf-8")
    sources = dict(re.findall(r"^- (\S+): (.*)$", attributions, re.MULTILINE))
    documents = {document.id: document for document in load_corpus("pmc-sample").split("test")}
    return [LivePaper(documents[name], sources[name]) for name in SAMPLE]


def _paper(paper: LivePaper) -> dict[str, Any]:
    document = paper.document
    return {
        "title": document.title,
        "source": paper.source,
        "names": document.section_names,
        "sections": document.sections,
        "tokenised": document.tokenised,
    }


def as_script(value: object) -> str:
    """JSON that can stand in a script of a page: no text in it can end that script, or begin a comment."""
    data = json.dumps(value, separators=(",", ":"))  # all that is not ASCII is escaped
    for sign in "<>&":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return data


def live_data(run: Run, bits: int = 32) -> dict[str, Any]:
    """What the scripts need of a run: configuration, options, rules of its search, vocabulary, weights, and the rules
    that cut a text."""
    return {
        "config": asdict(run.model.config),
        "options": asdict(run.options),
        "decode": asdict(run.decode),
        "words": run.vocabulary.words,
        "source_words": source.words if (source := run.encoder.source_vocabulary) else None,
        "weights": packed(own_weights(run.model), bits),
        "rules": text_rules(),
    }


def own_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights by name; those that two layers share once, under the first name."""
    first: dict[int, str] = {}
    return {name: w for name, w in model.state_dict().items() if first.setdefault(w.data_ptr(), name) == name}


def packed(tensors: Mapping[str, torch.Tensor], bits: int) -> dict[str, Any]:
    """Tensors as the scripts unpack them: shapes, and the numbers of all in base64, in 16 bits where that loses
    nothing or `bits` says so. First bytes stand together, then second ones, ...: so they compress."""
    numbers = np.concatenate([tensor.detach().cpu().float().numpy().ravel() for tensor in tensors.values()])
    half = numbers.astype("<f2")
    exact = bool((half.astype("<f4") == numbers).all())
    numbers = half if exact or bits == 16 else numbers.astype("<f4")
    planes = numbers.view(np.uint8).reshape(len(numbers), -1).T.tobytes()
    return {
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "bits": 8 * numbers.itemsize,
        "rounded": numbers.itemsize == 2 and not exact,
        "data": base64.b64encode(zlib.compress(planes)).decode(),
    }


def text_rules() -> dict[str, dict[str, Any]]:
    """Tables and regular expressions of the modules that cut a text, for `tablesOf` of the scripts."""
    rules = {module.__name__.split(".")[-1]: _tables(module) for module in (characters, words, sentences, plain_text)}
    needed, in_any_script = words._in_any_script()
    rules["words"] |= {"needed": _table(needed), "in_any_script": _table(in_any_script)}
    return rules


def _tables(module: ModuleType) -> dict[str, Any]:
    tables = {name.lstrip("_"): _table(value) for name, value in vars(module).items()}
    return {name: table for name, table in tables.items() if table is not None}


def _table(value: object) -> dict[str, Any] | None:
    """A set of words, a pattern, a tuple of words, or a list of patterns with what takes their place."""
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    if isinstance(value, re.Pattern):
        return {"pattern": value.pattern, "flags": value.flags}
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        return {"list": list(value)}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {"pairs": [[_table(pattern), replacement] for pattern, replacement in value]}
    return None
