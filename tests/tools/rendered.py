"""Pages of the book as a browser shows them: what is wider than its column, or as faint as what is behind it.

    python -m tests.tools.rendered companion/site/_build/html/notebooks/mem2mem.html
    python -m tests.tools.rendered companion/site/_build/html/notebooks/*.html --width 400 --theme dark

Needs Chromium (Debian's package `chromium`). One line a problem.
"""

from argparse import ArgumentParser
from pathlib import Path

from tests.tools.devtools import Browser

PROBE = Path(__file__).with_name("rendered.js").read_text(encoding="utf-8")
AT_REST = """Promise.resolve(window.MathJax?.startup?.promise)
  .then(() => new Promise(done => setTimeout(done, 500)))"""


def problems(page: Path, width: int = 1300, theme: str = "light") -> list[dict]:
    """What is wrong with a page in a window of `width` pixels: `kind` "wide" or "faint", its tag and first words."""
    with Browser(page, width, 1500) as tab:
        tab.run(f"document.documentElement.dataset.theme = {theme!r}")
        tab.run(AT_REST)
        return tab.run(PROBE)


def main() -> None:
    parser = ArgumentParser(prog="python -m tests.tools.rendered", description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--width", type=int, default=1300)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    args = parser.parse_args()
    for page in args.pages:
        for problem in problems(page, args.width, args.theme):
            print(page.name, *(f"{key} {value}" for key, value in problem.items()), sep="; ")


if __name__ == "__main__":
    main()
