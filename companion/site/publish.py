"""Where the project is published, once that is known: badges in the README, and in every page a cell for Colab.

make publish REPOSITORY=owner/name
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from lib.system.command_line import plain_errors
from lib.system.files import project_root, write_whole

BADGES = """\
<!-- badges -->
[![Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/{0}/HEAD?urlpath=lab/tree/notebooks/mem2mem.ipynb)
[![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/{0}/blob/main/notebooks/mem2mem.ipynb)
<!-- end -->"""
# lib's requirements are installed, not the pages': Jupyter, matplotlib and PyTorch stay as Colab has them
CELL = """\
# %% jupyter={{"source_hidden": true}} slideshow={{"slide_type": "skip"}} tags=["hide-input"]
# Colab opens a page without its project: this fetches it, and does nothing elsewhere
import os
import subprocess
import sys

if "google.colab" in sys.modules:
    if not os.path.exists("project"):
        clone = "git clone --quiet --depth 1 https://github.com/{0} project"
        subprocess.run(clone.split(), check=True)
        install = [sys.executable, *"-m pip install --quiet -e ./project".split()]
        subprocess.run(install, check=True)
    sys.path.insert(0, os.path.abspath("project"))

"""
_BADGES = re.compile(r"<!-- badges -->.*?<!-- end -->", re.DOTALL)
_CELL = re.compile(r"# %% [^\n]*\n# Colab opens a page.*?(?=# %% )", re.DOTALL)
_PARAMETERS = re.compile(r'(?=# %% [^\n]*tags=\["parameters"\])')


def publish(repository: str, root: Path) -> None:
    """Write a repository's name, "owner/name", into README and pages, in place of another one.

    Raises ValueError for what is no such name.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(f"{repository!r} is not owner/name, as in github.com/owner/name")
    _rewrite(root / "README.md", lambda text: _BADGES.sub(BADGES.format(repository), text))
    for page in (root / "notebooks").glob("*.py"):
        _rewrite(page, lambda text: _PARAMETERS.sub(CELL.format(repository), _CELL.sub("", text), count=1))


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    write_whole(path, change(path.read_text(encoding="utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", metavar="owner/name")
    with plain_errors():
        publish(parser.parse_args().repository, project_root())


if __name__ == "__main__":
    main()
