"""Frames of which one is shown at a time, by buttons that need neither a script nor a kernel."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from lib.system.fingerprints import digest

UNSEEN = ' style="display: none"'  # where style sheets are taken out; otherwise they say better
TRUST = "tell JupyterLab to trust this notebook (View, Activate Command Palette, Trust Notebook), or run its cells"

_times: Counter[str] = Counter()  # how often frames were shown, by a digest of what they show


@dataclass(frozen=True)
class Frames:
    """Steps, one frame of HTML each.

    first: the step that is seen first, counted from 1.
    """

    frames: Sequence[str]
    first: int

    def _repr_html_(self) -> str:
        """Buttons, of which style sheets know the chosen one. Where those are taken out, as JupyterLab does with a
        notebook that it does not trust, the first frame is seen, and how one gets the others.

        Names are made of what is shown, so that an executed page is the same each time, and of how often it was
        shown before: the same frames twice on a page do not share their buttons.
        """
        shown = digest([list(self.frames), self.first], 8)
        _times[shown] += 1
        name = f"frames-{shown}-{_times[shown]}"
        inputs = labels = pictures = rules = ""
        for step, frame in enumerate(self.frames, start=1):
            button, picture = f"{name}-{step}", f"{name}-f-{step}"
            checked, unseen = (" checked", "") if step == self.first else ("", UNSEEN)
            inputs += f'<input type="radio" name="{name}-0" id="{button}"{checked}{UNSEEN}>'
            labels += f'<label for="{button}">{step}</label> '
            pictures += f'<div id="{picture}" class="frame"{unseen}>{frame}</div>'
            rules += f"#{button}:checked ~ p label[for={button}] {{background: #0066a8; color: white}} "
            rules += f"#{name} > #{button}:checked ~ #{picture} {{display: block !important}} "
        style = (
            f"#{name} > input {{display: inline !important; position: absolute; opacity: 0}} "
            f"#{name} > .frame, #{name} > .untrusted {{display: none}} "
            f"#{name} > p {{display: block !important}} #{name} p {{margin: 0.3rem 0}} "
            f"#{name} label {{display: inline-block; "
            f"padding: 0 0.5rem; margin: 0.1rem 0; border: 1px solid #b0b0b0; border-radius: 4px; cursor: pointer}} "
        )
        untrusted = f"Step {self.first} of {len(self.frames)}. For buttons that lead to the others, {TRUST}."
        told = f'<div class="untrusted"><em>{escape(untrusted)}</em></div>'
        buttons = f"{inputs}<p{UNSEEN}><b>step</b> {labels}</p>"
        return f'<div id="{name}"><style>{style}{rules}</style>{told}{buttons}{pictures}</div>'

    def __repr__(self) -> str:
        return f"{len(self.frames)} frames, by step"
