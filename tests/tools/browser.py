"""Pages in headless Chromium, driven by Playwright: scripts, keys, what axe-core finds."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
INSTALLED = CHROMIUM and find_spec("axe_playwright_python")
needs_browser = pytest.mark.skipif(
    not INSTALLED, reason="needs the browser chromium, and the extra `dev`"
)
AXE = """axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.flatMap(rule =>
  rule.nodes.map(({ html, failureSummary }) => [rule.id, html, failureSummary ?? ""].map(
    text => text.replace(/\\s+/g, " ").slice(0, 200)))))"""
AT_REST = (
    "Promise.resolve(window.MathJax?.startup?.promise).then(() => new Promise(go => setTimeout(go, "
    "500)))"
)
FOCUSABLE = "button, select, input, textarea, summary"
MISSED = f"""[...document.querySelectorAll('{FOCUSABLE}')].filter(e => !e.disabled && e.tabIndex >= 0
  && e.checkVisibility() && !reached.has(e) && !(e.type === 'radio' && !e.checked))
  .map(e => e.outerHTML.slice(0, 80))"""


def data_of(path: Path) -> Any:
    """The JSON data of a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[0]
    )


@dataclass
class Tab:
    """A page of Playwright; `complaints` are errors of its scripts and policy, and addresses that
    it requested."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def open(self, address: Path | str) -> None:
        self.page.goto(address if isinstance(address, str) else address.resolve().as_uri())

    def run(self, script: str) -> Any:
        """The value of a script of the page, or of its promise."""
        return self.page.evaluate(script)

    def until(self, expression: str, seconds: float = 120) -> Any:
        """Wait until an expression is true. Raises TimeoutError when it never is."""
        end = time.monotonic() + seconds
        while not (value := self.run(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"never true within {seconds} s: {expression}")
            time.sleep(0.05)
        return value

    def key(self, key: str) -> None:
        self.page.keyboard.press(key)

    def violations(self) -> list[list[str]]:
        """What axe-core finds: the rule, the HTML that breaks it, and how."""
        package = find_spec("axe_playwright_python")
        assert package is not None and package.origin is not None
        script = (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")
        self.run("if (!window.axe) { " + script + " }")
        return self.run(AXE)

    def check_looks(self, allowed: str = "") -> None:
        """Check with every fold open that people can use the page, and that nothing leaves the
        window.

        allowed: a rule of axe-core that the page may break.
        """
        self.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
        for width in (1400, 400):
            self.page.set_viewport_size({"width": width, "height": 900})
            found = [violation for violation in self.violations() if violation[0] != allowed]
            assert not found, (width, found)
            assert self.run("document.documentElement.scrollWidth") <= width

    def check_keyboard(self) -> None:
        """Check that the Tab key reaches every control."""
        self.run(
            "document.activeElement.blur(); window.reached = new Set();"
            "document.addEventListener('focusin', event => reached.add(event.target))"
        )
        for _ in range(self.run(f"document.querySelectorAll('{FOCUSABLE}').length") + 12):
            self.key("Tab")
        assert self.run(MISSED) == []


@contextmanager
def open_page(address: Path | str, theme: str = "light") -> Iterator[Tab]:
    """Show a page in Chromium until the block ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme=theme)
        tab = Tab(page)
        page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        page.on(
            "console",
            lambda line: tab.complaints.append(line.text) if line.type == "error" else None,
        )
        page.on(
            "request",
            lambda request: (
                tab.complaints.append(request.url) if "http" in request.url[:4] else None
            ),
        )
        tab.open(address)
        yield tab
        browser.close()
