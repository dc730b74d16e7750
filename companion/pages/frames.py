"""Frames of which one is shown at a time, by buttons that need neither a script nor a kernel."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from lib.system.fingerprints import digest

UNSEEN = ' style="display: none"'  # where style sheets are taken out; otherwise they say better
TRUST = "tell JupyterLab to trust this notebook (View, Activate Command Palette, Trust Notebook), or run its cells"

_times: Counter[str] = Counter()  # how often frames were shown, by a digest of what they show


@dataclass(frozen=True)
class Frames:
    """HTML for every choice of values.

    axes: the values of each row of buttons, by its name.
    frames: HTML for each tuple of values, one of each axis, in their order.
    first: what is seen first.
    """

    axes: Mapping[str, Sequence[str]]
    frames: Mapping[tuple[str, ...], str]
    first: tuple[str, ...]

    def _repr_html_(self) -> str:
        """Buttons, of which style sheets know the chosen one. Where those are taken out, as JupyterLab does with a
        notebook that it does not trust, the first frame is seen, and how one gets the others.

        Names are made of what is shown, so that an executed page is the same each time, and of how often it was
        shown before: the same frames twice on a page do not share their buttons.
        """
        shown = digest([list(self.axes.items()), list(self.frames.items()), self.first], 8)
        _times[shown] += 1
        name = f"frames-{shown}-{_times[shown]}"
        inputs, rows = [], []
        for a, ((axis, values), first) in enumerate(zip(self.axes.items(), self.first)):
            labels = []
            for i, value in enumerate(values):
                chosen = " checked" if value == first else ""
                inputs.append(f'<input type="radio" name="{name}-{a}" id="{name}-{a}-{i}"{chosen}{UNSEEN}>')
                labels.append(f'<label for="{name}-{a}-{i}">{escape(value)}</label>')
            rows.append(f"<p{UNSEEN}><b>{escape(axis)}</b> {' '.join(labels)}</p>")
        places = itertools.product(*(range(len(values)) for values in self.axes.values()))
        pictures, rules = [], []
        for place, choice in zip(places, itertools.product(*self.axes.values())):
            mark = f"{name}-f-{'-'.join(map(str, place))}"
            buttons = [f"#{name}-{a}-{i}:checked" for a, i in enumerate(place)]
            rules.append(f"{' ~ '.join(buttons)} ~ #{mark} {{display: block !important}}")
            unseen = "" if choice == self.first else UNSEEN
            pictures.append(f'<div id="{mark}" class="frame"{unseen}>{self.frames[choice]}</div>')
        chosen = ", ".join(
            f"#{name}-{a}-{i}:checked ~ p label[for={name}-{a}-{i}]"
            for a, values in enumerate(self.axes.values())
            for i in range(len(values))
        )
        style = (
            f"#{name} > input {{display: inline !important; position: absolute; opacity: 0}} "
            f"#{name} > .frame, #{name} > .untrusted {{display: none}} "
            f"#{name} > p {{display: block !important}} #{name} p {{margin: 0.3rem 0}} "
            f"#{name} label {{display: inline-block; "
            f"padding: 0 0.5rem; margin: 0.1rem 0; border: 1px solid #b0b0b0; border-radius: 4px; cursor: pointer}} "
            f"{chosen} {{background: #0066a8; color: white}} {' '.join(f'#{name} > {rule}' for rule in rules)}"
        )
        seen = ", ".join(f"{axis} {value}" for axis, value in zip(self.axes, self.first))
        untrusted = f"One of {len(self.frames)} pictures: {seen}. For buttons that lead to the others, {TRUST}."
        parts = [f'<div class="untrusted"><em>{escape(untrusted)}</em></div>', *inputs, *rows, *pictures]
        return f'<div id="{name}"><style>{style}</style>{"".join(parts)}</div>'

    def __repr__(self) -> str:
        return f"{len(self.frames)} frames, by {', '.join(self.axes)}"
