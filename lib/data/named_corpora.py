"""The named corpora: their facts, from named_corpora.toml, and a decorator over functions that read
a release."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from lib.data.pieces import Pieces
from lib.data.record_readers import Records, read_folder
from lib.system.errors import InputError
from lib.system.files import project_root


class LeftOut(InputError):
    """A record that a rule of its corpus leaves out; it is counted by reason, whatever `errors`
    is."""


@dataclass(frozen=True)
class CorpusSpec:
    """A named corpus. `read(folder, split)` gives its records, or None where it has no such
    split."""

    name: str
    read: Callable[[Path, str], Records | None] = read_folder
    what: str = ""  # for people; empty: not listed
    licence: str = "its owners'"
    splits: str = "its owners'"
    how: str = ""  # to get it
    shipped: str = ""  # "PACKAGE:FOLDER" of a corpus that comes with the installation
    # where the Hugging Face Hub has it, and its columns there
    hub: dict[str, str] = field(default_factory=dict)
    private: bool = False  # whether none of its texts may be published
    tokenised: bool = False  # whether words and marks are separated by spaces
    note: str = ""  # what a reader should know of this copy
    # reads the model of a corpus that comes ranked and in pieces
    pieces: Callable[[Path], Pieces] | None = None

    @property
    def folder(self) -> Path:
        package, _, inside = self.shipped.partition(":")
        if package:
            return Path(str(resources.files(package) / inside))
        return project_root() / "data" / self.name.partition(":")[0]


_FACTS = Path(__file__).with_name("named_corpora.toml").read_text(encoding="utf-8")
_CATALOGUE = tomllib.loads(_FACTS)
CORPORA = {name: CorpusSpec(name, **facts) for name, facts in _CATALOGUE.items()}


def corpus(name: str, **facts) -> Callable:
    """Register the function (folder, split) that reads a corpus; facts: more fields of its
    `CorpusSpec`."""

    def register(read: Callable[[Path, str], Records | None]) -> Callable:
        CORPORA[name] = replace(CORPORA[name], read=read, **facts)
        return read

    return register


def find_spec(dataset: str | Path) -> tuple[CorpusSpec | None, str]:
    """The corpus of a name, of its repository (OWNER/NAME) or of NAME:FOLDER, and the folder."""
    name, place = _find_name(dataset)
    return CORPORA.get(name), place


def _find_name(dataset: str | Path) -> tuple[str, str]:
    """Split what names a corpus into its name, empty for a folder, and the folder."""
    known = CORPORA if isinstance(dataset, str) else {}
    name = max(
        (name for name in known if f"{dataset}:".startswith(f"{name}:")), key=len, default=""
    )
    if not name and "/" in str(dataset) and not Path(dataset).exists():
        repository = re.sub(
            r"^(https://)?(huggingface\.co/datasets|github\.com)/", "", str(dataset)
        ).rstrip("/")
        pattern = re.compile(rf"(?<![\w-]){re.escape(repository)}(?![\w-])")
        names = [name for name, spec in known.items() if pattern.search(spec.how)]
        return (names[0], "") if names else ("", str(dataset))
    return name, str(dataset)[len(name) + 1 :] if name else str(dataset)


def is_private(name: str) -> bool:
    """Whether none of a corpus's texts may be published. Of a folder its owner knows."""
    known, _ = _find_name(Path(name).name)
    return bool(known) and CORPORA[known].private


# Test documents of a corpus that another one has among its training documents: (corpus, the other)
# -> their ids.
IN_BOTH = {("pmc-sample", "sumpubmed"): frozenset({"PMC4784345"})}
