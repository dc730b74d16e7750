"""Steps of a page in a real JupyterLab: before it is trusted, after Run All, saved, and opened
again."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import nbformat
import pytest

from companion.pages.frames import Frames
from lib.system.files import project_root
from tests.tools.browser import needs_browser, open_page

CODE = (
    "from companion.pages.frames import Frames\nFrames(['<p>one</p>', '<p>two</p>', "
    "'<p>three</p>'], 2)"
)
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@contextmanager
def jupyterlab(folder, pages):
    """Serve a folder of pages, and trust none of them at first. Yields the address of the
    folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("DATA", "CONFIG", "RUNTIME")}
    options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token="]
    with subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={pages}"],
        env={**os.environ, **own, "PYTHONPATH": str(project_root())},
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            while server.poll() is None and not list(folder.glob("RUNTIME/jpserver-*.json")):
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/lab/tree"
        finally:
            server.terminate()


@needs_browser
@pytest.mark.long
def test_steps_in_jupyterlab(tmp_path):
    from playwright.sync_api import expect

    html = nbformat.v4.new_output(
        "display_data", {"text/html": Frames(["one", "two", "three"], 2)._repr_html_()}
    )
    notebook = nbformat.v4.new_notebook(
        metadata=KERNEL, cells=[nbformat.v4.new_code_cell(CODE, outputs=[html])]
    )
    path = tmp_path / "pages" / "page.ipynb"
    path.parent.mkdir()
    nbformat.write(notebook, path)
    with jupyterlab(tmp_path, path.parent) as address, open_page(f"{address}/{path.name}") as tab:
        page, seen = tab.page, tab.page.locator(".frame:visible, .untrusted:visible, label:visible")
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        expect(seen).to_have_text([re.compile("^Step 2 of 3. For buttons"), "two"])
        # Cells that are run before the kernel is there lose their outputs, and its indicator says
        # "idle" too early.
        while (
            '"connections": 1'
            not in page.request.get(address.replace("lab/tree", "api/kernels")).text()
        ):
            time.sleep(0.1)
        page.click("text=Run >> visible=true")
        page.click("[data-command='runmenu:run-all']")
        expect(seen).to_have_text(["1", "2", "3", "two"])
        page.click("label:has-text('3')")
        expect(seen).to_have_text(["1", "2", "3", "three"])
        tab.key("Control+s")
        while not nbformat.read(path, 4).cells[0].execution_count:
            time.sleep(0.1)
        page.reload()
        expect(seen).to_have_text(["1", "2", "3", "two"])
        page.click("label:has-text('1')")
        expect(seen).to_have_text(["1", "2", "3", "one"])
