"""A page in headless Chromium, driven through the DevTools protocol: scripts, keys, pictures.

with Browser(page, width=1100, theme="dark") as browser:
    browser.until("document.getElementById('status').textContent.includes('words in')")
    browser.key("ArrowRight")
    browser.picture("page.png")
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13, " ": 32}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """Chromium that shows one page, and stays until the block ends."""

    def __init__(self, page: Path, width: int = 1400, height: int = 900, theme: str = "light"):
        self.profile = TemporaryDirectory(ignore_cleanup_errors=True)
        (ours_in, theirs_out), (theirs_in, ours_out) = ([_high(end) for end in os.pipe()] for _ in range(2))

        def connect() -> None:  # on 3 Chromium listens, on 4 it speaks
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.process = subprocess.Popen(
            [chromium() or "chromium", *FLAGS, f"--user-data-dir={self.profile.name}"],
            preexec_fn=connect, close_fds=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.reads, self.writes, self.number, self.rest, self.session = ours_in, ours_out, 0, b"", None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": theme}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.resize(width, height)
        self.open(page)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        with suppress(OSError, RuntimeError):
            session, self.session = self.session, None
            self.call("Browser.close")
            self.session = session
        self.process.wait(30)
        os.close(self.reads)
        os.close(self.writes)
        self.profile.cleanup()

    def open(self, page: Path) -> None:
        """Show a page in place of the one that is shown, in the same theme and size."""
        self.run("window.before = true")
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete' && !!document.body && !window.before")

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    patience = 120.0  # seconds in which the browser must say something

    def call(self, method: str, **parameters) -> dict[str, Any]:
        """The result of a method. Raises RuntimeError with what the browser says, or where it says nothing."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(self.patience)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds: float) -> dict:
        while b"\0" not in self.rest:
            if not select.select([self.reads], [], [], seconds)[0] or not (part := os.read(self.reads, 1 << 20)):
                raise RuntimeError("the browser says nothing")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def run(self, expression: str) -> Any:
        """The value of an expression of the page, or of its promise. Raises RuntimeError for what it throws."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", "an error"))
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 120) -> Any:
        """The value of an expression once it is true. Raises RuntimeError when it never is."""
        end = time.monotonic() + seconds
        while not (value := self.run(expression)):
            if time.monotonic() > end:
                raise RuntimeError(f"never true within {seconds} s: {expression}")
            time.sleep(0.05)
        return value

    def key(self, key: str) -> None:
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: str | Path, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors of scripts and of the page's policy so far, and addresses that it asked for."""
        found = []
        for event in self.events:
            kind, about = event.get("method"), event.get("params", {})
            if kind == "Runtime.exceptionThrown":
                found.append(about["exceptionDetails"].get("exception", {}).get("description", "an error"))
            elif kind == "Log.entryAdded" and about["entry"]["level"] == "error":
                found.append(about["entry"]["text"])
            elif kind == "Network.requestWillBeSent" and about["request"]["url"].startswith("http"):
                found.append(about["request"]["url"])
        return found


def _high(descriptor: int) -> int:
    """The same pipe under a number that is not 3 or 4."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return high
