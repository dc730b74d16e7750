"""A stepper in a real JupyterLab: run, saved, closed, opened again; and in exported HTML."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
import pytest
from nbconvert import HTMLExporter

from lib.system.files import project_root
from tests.tools.browser import needs_browser, open_page

CELL = "from companion.pages.frames import Frames\nFrames(['one', 'two', 'three'], first=2)"
SHOWN = "[...document.querySelectorAll('.frame')].filter(e => e.checkVisibility()).map(e => e.textContent).join()"
SAVED = "!document.querySelector('.jp-mod-dirty')"


@contextmanager
def jupyterlab(folder):
    """Serve a folder until the block ends; what JupyterLab remembers is kept below it. Yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    places = {name: str(folder / ".kept" / name) for name in kept}
    os.makedirs(places["IPYTHONDIR"])
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--ServerApp.disable_check_xsrf=True"]
    environment = {**os.environ, **places, "PYTHONPATH": str(project_root())}
    with open(folder / ".log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api").close()
                    break
                except OSError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/lab/tree"
        finally:
            server.terminate()
            server.wait(60)


def check_stepper(tab):
    """Its first frame is seen, and a button leads to another."""
    tab.until(f"{SHOWN} === 'two'")
    tab.page.locator("label", has_text="3").click()
    tab.until(f"{SHOWN} === 'three'", 10)
    assert "Error displaying widget" not in tab.run("document.body.innerText")


@pytest.mark.long
@needs_browser
def test_a_stepper_survives_run_save_close_reopen_and_export(tmp_path):
    path = tmp_path / "page.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)], metadata=kernel), path)
    with jupyterlab(tmp_path) as address:
        with open_page(f"{address}/page.ipynb") as tab:
            tab.page.locator(".jp-Notebook .jp-CodeCell").wait_for()
            tab.page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
            tab.page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
            check_stepper(tab)
            tab.page.keyboard.press("Control+s")
            end = time.monotonic() + 60
            while "frames-" not in path.read_text(encoding="utf-8"):
                assert time.monotonic() < end, "the page was never saved"
                time.sleep(0.2)
        with open_page(f"{address}/page.ipynb?reset") as tab:
            check_stepper(tab)
    exported = tmp_path / "page.html"
    exported.write_text(HTMLExporter().from_filename(str(path))[0], encoding="utf-8")
    with open_page(exported) as tab:
        check_stepper(tab)
