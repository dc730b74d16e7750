"""Pages of the book as a browser shows them: what is wider than its column, or as faint as what is behind it.

    python -m tests.tools.rendered book/_build/html/notebooks/mem2mem.html
    python -m tests.tools.rendered book/_build/html/notebooks/*.html --width 400 --theme dark

Needs Chromium (Debian's package `chromium`). One line a problem.
"""

import json
import re
import shutil
import subprocess
from argparse import ArgumentParser
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

PROBE = Path(__file__).with_name("rendered.js")
# Once the page and its equations are there, what the probe finds is written into it.
AFTER = """<script>addEventListener("load", () => {
  const ready = window.MathJax?.startup?.promise ?? Promise.resolve();
  ready.then(() => setTimeout(() => {
    const found = document.createElement("pre");
    found.id = "probe";
    found.textContent = JSON.stringify(PROBE);
    document.body.append(found);
  }, 1500));
});</script>"""


def browser() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def problems(page: Path, width: int = 1300, theme: str = "light") -> list[dict]:
    """What is wrong with a page in a window of `width` pixels: `kind` "wide" or "faint", its tag and first words.

    Raises RuntimeError where the browser shows nothing.
    """
    text = page.read_text(encoding="utf-8")
    chosen = f"<script>localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')</script>"
    text = text.replace("<head>", f"<head>{chosen}", 1)
    script = AFTER.replace("PROBE", PROBE.read_text(encoding="utf-8").strip())
    copy = page.with_name(f"_{theme}_{width}_{page.name}")  # beside the page, for what it names
    copy.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    try:
        with TemporaryDirectory() as profile:
            command = [
                browser() or "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--dump-dom",
                f"--user-data-dir={profile}", "--virtual-time-budget=60000", f"--window-size={width},1500",
                copy.resolve().as_uri(),
            ]  # fmt: skip
            shown = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120).stdout
    finally:
        copy.unlink()
    found = re.search(r'<pre id="probe">(.*?)</pre>', shown, re.DOTALL)
    if not found:
        raise RuntimeError(f"{page}: the browser shows nothing")
    return json.loads(unescape(found[1]))


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
