"""Parts of the picture of a model: data, drawn by `companion.pages.diagrams`.

Boxes stand in columns and rows and say what they hold. An arrow has the numbers of the equations that make what it
leads to, and that result's shape.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("text", "states", "memory", "attention", "output")
# where the arrows of a straight line leave and enter
DOWN: Any = {"leaves": ("bottom", 0.5), "enters": ("top", 0.5)}
UP: Any = {"leaves": ("top", 0.5), "enters": ("bottom", 0.5)}
BACK: Any = {"leaves": ("left", 0.5), "enters": ("right", 0.5)}


@dataclass(frozen=True)
class Window:
    """A frame around words in a row, in the colour of memory."""

    first: int
    last: int  # one after its last word
    says: str
    dashed: bool = False


@dataclass(frozen=True)
class Part:
    """Words in a row that have a colour of their own."""

    first: int
    last: int  # one after its last word
    kind: str  # one of KINDS
    says: str = ""  # below them


@dataclass(frozen=True)
class Box:
    """A quantity of the model. Its name is its key in the picture."""

    kind: str  # one of KINDS: its colour
    column: float  # of its middle, from 0
    row: float
    symbol: str = ""  # below its name, in mathtext
    columns: float = 1  # that it is wide
    rows: float = 1  # that it is high
    words: int = 0  # drawn as so many words in a row, its name above them
    windows: tuple[Window, ...] = ()  # over those words
    parts: tuple[Part, ...] = ()  # of those words
    mask: tuple[str, ...] = ()  # drawn as a matrix, "#" what is seen; its name stands upper right


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another, with right angles only.

    It leaves and enters at a side of a box, there at a part of its length (0 is left or top, 1 right or bottom);
    None is where its other end stands.
    """

    source: str
    target: str
    equations: tuple[int, ...] = ()  # that make what it leads to
    says: str = ""  # the shape of that, or a word
    leaves: tuple[str, float | None] = ("right", 0.5)
    enters: tuple[str, float | None] = ("left", 0.5)
    plain: bool = False  # without text: another arrow has it
    dashed: bool = False  # in another mode of the model
    beyond: float = 22  # pixels from the boxes to where it turns, if it leaves and enters in the same direction


@dataclass(frozen=True)
class Frame:
    """A frame around columns and rows, the first and the last of each."""

    name: str
    columns: tuple[float, float]
    rows: tuple[float, float]
    at: float = 0  # the column in which its name stands, at the lower edge


@dataclass(frozen=True)
class ModelPicture:
    title: str
    alt: str  # the picture in words, for those who cannot see it
    boxes: Mapping[str, Box]
    arrows: tuple[Arrow, ...]
    frames: tuple[Frame, ...] = ()
    beside: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    # equations that are no part of a forward pass (losses, preparation of data) -> the boxes that they speak of
    letter: str = ""  # before the numbers of its equations

    @property
    def drawn(self) -> set[int]:
        """Numbers of the equations on the arrows."""
        return {number for arrow in self.arrows for number in arrow.equations}

    def lit(self, parts: Iterable[int | str]) -> tuple[set[str], set[Arrow]]:
        """The boxes and arrows of equation numbers and of names of boxes.

        An equation has the arrows with its number and the boxes at their ends, or the boxes that it speaks of. Two
        named boxes have the arrows between them. Raises ValueError for a part that is not there.
        """
        parts = set(parts)
        if unknown := parts - self.drawn - set(self.beside) - set(self.boxes):
            numbers = equation_numbers(self.drawn | set(self.beside), self.letter)
            known = f"equations {numbers} and {', '.join(self.boxes)}"
            raise ValueError(f"{self.title}: no part {min(unknown, key=str)!r}; there are {known}")
        arrows = {a for a in self.arrows if parts & set(a.equations) or {a.source, a.target} <= parts}
        boxes = {end for arrow in arrows for end in (arrow.source, arrow.target)}
        boxes |= {name for name in self.boxes if name in parts}
        return boxes.union(*(names for number, names in self.beside.items() if number in parts)), arrows


def equation_numbers(equations: Iterable[int], letter: str = "") -> str:
    """Equation numbers as a text, like "(2, 4)" or "(8–10)", and with a letter "(S2, S4)"."""
    runs: list[list[int]] = []
    for number in sorted(equations):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [[f"{letter}{number}" for number in run] for run in runs]
    parts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(run) for run in named]
    return f"({', '.join(parts)})" if parts else ""
