"""A slider over frames: buttons show one at a time, without a script or a kernel."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from lib.system.fingerprints import digest

UNSEEN = ' style="display: none"'  # for viewers that take out style sheets
TRUST = (
    "tell JupyterLab to trust this notebook (View, Activate Command Palette, Trust Notebook), or "
    "run its cells"
)

_times: Counter[str] = Counter()  # how often frames were shown, by a digest of what they show


@dataclass(frozen=True)
class Frames:
    """Steps, one frame of HTML each.

    first: the step that is shown first, counted from 1.
    """

    frames: Sequence[str]
    first: int

    def _repr_html_(self) -> str:
        """Write the buttons, and the style sheet that shows the frame of the chosen one. JupyterLab
        takes out the style sheet of a notebook that it does not trust; then the first frame is
        shown with a notice.

        Names are made of the content, so that an executed page is the same each time, and of how
        often it was shown before, so that equal frames on a page do not share their buttons.
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
            rules += (
                f"#{button}:checked ~ p label[for={button}] {{background: #0066a8; color: white}} "
            )
            rules += f"#{name} > #{button}:checked ~ #{picture} {{display: block !important}} "
        style = (
            f"#{name} > input {{display: inline !important; position: absolute; opacity: 0}} "
            f"#{name} > .frame, #{name} > .untrusted {{display: none}} "
            f"#{name} > p {{display: block !important}} #{name} p {{margin: 0.3rem 0}} "
            f"#{name} label {{display: inline-block; "
            f"padding: 0 0.5rem; margin: 0.1rem 0; border: 1px solid #b0b0b0; border-radius: 4px; cursor: pointer}} "
        )
        untrusted = (
            f"Step {self.first} of {len(self.frames)}. For buttons that lead to the others, "
            f"{TRUST}."
        )
        notice = f'<div class="untrusted"><em>{escape(untrusted)}</em></div>'
        buttons = f"{inputs}<p{UNSEEN}><b>step</b> {labels}</p>"
        return f'<div id="{name}"><style>{style}{rules}</style>{notice}{buttons}{pictures}</div>'

    def __repr__(self) -> str:
        return f"{len(self.frames)} frames, by step"
