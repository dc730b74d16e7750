"""The field of the texts that a run was trained on, and how a text of another field is recognised.

A word's weight is log P(word in texts of the field) - log P(word in other texts), and a text is of
the field if the mean weight of its words is large enough. `python -m companion.studies.fields`
measures weights, limit and errors.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from lib.data.characters import lowered
from lib.data.tokenize import tokenize
from lib.system.files import read_json

FILE = "field.json"
STRANGE = 0.25  # share of words that a model does not know, in another language, say

# What is said of a text that is too short, and of one with more unknown words than `STRANGE`.
TOO_SHORT = (
    "{length} {unit} read are fewer than a summary has ({shortest}): this one has at most as many"
)
UNKNOWN = (
    "{share} of the words read are unknown to the model: the text is unlike those of {corpus}, "
    "and its summary cannot be trusted"
)


@dataclass(frozen=True)
class Field:
    """The field of a run's training texts, and the rule that recognises other texts."""

    texts: str  # for people: "biomedical papers"
    weights: Mapping[str, float]  # of frequent words; other words have the weight 0
    least: float  # mean weight of the words of a text of the field
    warned: float  # share of texts of the field that have less
    missed: float  # share of other texts that have as much

    def is_unlike(self, rows: Iterable[Iterable[str]]) -> bool:
        """Return whether a text is of another field. rows: tokens of its sentences, with the spaces
        before them."""
        return mean_weight(rows, self.weights) < self.least

    @property
    def warning(self) -> str:
        kind = self.texts.split()[-1]
        return (
            f"This text is unlike the {self.texts} that the model was trained on: expect nothing "
            "of the summary. `python -m lib.summarize lexrank FILE` chooses sentences of the text "
            f"instead. ({self.warned:.0%} of such {kind} get this warning, {self.missed:.0%} of "
            "other texts do not.)"
        )


def read_field(folder: Path) -> Field | None:
    """Read the field of a run; None for a run of which it was not measured."""
    path = folder / FILE
    return Field(**read_json(path)["field"]) if path.exists() else None


def words_of_field(rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the words that have weights: letters only, in lower case."""
    text = "".join(chain.from_iterable(rows))
    return [word for word in tokenize(lowered(text)) if word.isalpha()]


def mean_weight(rows: Iterable[Iterable[str]], weights: Mapping[str, float]) -> float:
    """Compute the mean weight of the words of a text; 0 for a text without words."""
    found = [weights.get(word, 0.0) for word in words_of_field(rows)]
    return sum(found) / max(1, len(found))
