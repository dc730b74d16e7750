"""What axe-core finds on pages as headless Chromium shows them: what keeps people from reading or using them.

    python -m tests.tools.axe companion/site/_build/html/README.html
    python -m tests.tools.axe companion/site/_build/html/notebooks/*.html --theme dark

Needs Chromium, and axe-core, which the extra `dev` brings. One line a violation: page, rule, HTML, what is wrong.
"""

import json
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tools.devtools import Browser, chromium
from tests.tools.rendered import AT_REST


def axe_core() -> Path | None:
    """The script of axe-core, where the package that brings it is installed."""
    package = find_spec("axe_playwright_python")
    return None if package is None or package.origin is None else Path(package.origin).parent / "axe.min.js"


needs_axe = pytest.mark.skipif(
    axe_core() is None or chromium() is None, reason="needs the browser chromium, and axe-core: the extra `dev`"
)
FOUND = """axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.flatMap(rule =>
  rule.nodes.map(({ html, failureSummary }) => [rule.id, html, failureSummary ?? ""].map(
    text => text.replace(/\\s+/g, " ").slice(0, 200)))))"""


def violations(tab: Browser) -> list[list[str]]:
    """Of the page that is shown: the rule, the HTML that breaks it, and how."""
    script = axe_core()
    assert script is not None
    tab.patience = 1_200  # a page with a thousand formulas takes long
    tab.run("if (!window.axe) { " + script.read_text(encoding="utf-8") + " }")
    return tab.run(FOUND)


def themed(tab: Browser, theme: str) -> None:
    """Show a page of the book in a theme, at rest."""
    tab.run(f"document.documentElement.dataset.theme = document.documentElement.dataset.mode = {json.dumps(theme)}")
    tab.run(AT_REST)


def main() -> None:
    parser = ArgumentParser(prog="python -m tests.tools.axe", description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--width", type=int, default=1300)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    args = parser.parse_args()
    with Browser(args.pages[0], args.width, theme=args.theme) as tab:
        for page in args.pages:
            tab.open(page)
            themed(tab, args.theme)
            for found in violations(tab):
                print(page, *found, sep="; ", flush=True)


if __name__ == "__main__":
    main()
