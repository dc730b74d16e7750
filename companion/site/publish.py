"""Where the project is published, once that is known: badges in the README, and in every page a cell for Colab.

make publish REPOSITORY=owner/name
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from lib.system.command_line import plain_errors
from lib.system.files import project_root, write_whole

FOLDER = Path(__file__).parent
_BADGES = re.compile(r"<!-- badges -->.*?<!-- end -->", re.DOTALL)
_CELL = re.compile(r"# %% [^\n]*\n# Colab opens a page.*?(?=# %% )", re.DOTALL)
_PARAMETERS = re.compile(r'(?=# %% [^\n]*tags=\["parameters"\])')


def publish(repository: str, root: Path) -> None:
    """Write a repository's name, "owner/name", into README and pages, in place of another one.

    Raises ValueError for what is no such name.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(f"{repository!r} is not owner/name, as in github.com/owner/name")
    badges, cell = (
        (FOLDER / name).read_text(encoding="utf-8").replace("OWNER/NAME", repository)
        for name in ("badges.txt", "colab_cell.txt")
    )
    _rewrite(root / "README.md", lambda text: _BADGES.sub(badges.strip(), text))
    for page in (root / "notebooks").glob("*.py"):
        _rewrite(page, lambda text: _PARAMETERS.sub(lambda _: cell, _CELL.sub("", text), count=1))


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    write_whole(path, change(path.read_text(encoding="utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", metavar="owner/name")
    with plain_errors():
        publish(parser.parse_args().repository, project_root())


if __name__ == "__main__":
    main()
