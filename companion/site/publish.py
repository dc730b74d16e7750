"""Write the project's repository into its texts: badges in the README, an address in the package's description, and
in every page a cell for Colab.

make publish REPOSITORY=owner/name
"""

import re
from functools import partial
from pathlib import Path

from companion.command import run_command
from lib.system.errors import InputError
from lib.system.files import project_root, write_whole

FOLDER, ROOT = Path(__file__).parent, project_root()
_BADGES = re.compile(r"<!-- badges -->.*?<!-- end -->", re.DOTALL)
_URL = re.compile(r"(?<=\[project\.urls\]\n)(Repository = .*\n)?")
_CELL = re.compile(r"# %% [^\n]*\n# Colab opens a page.*?(?=# %% )", re.DOTALL)
_PARAMETERS = re.compile(r'(?=# %% [^\n]*tags=\["parameters"\])')


def publish(repository: str, root: Path = ROOT, /) -> None:
    """Write a repository's name, "owner/name", into README, package and pages, instead of another one.

    Raises InputError for what is no such name.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise InputError(f"{repository!r} is not owner/name, as in github.com/owner/name")
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in ("badges.txt", "colab_cell.txt")]
    badges, cell = (text.replace("OWNER/NAME", repository) for text in texts)
    url = f'Repository = "https://github.com/{repository}"\n'
    for name, pattern, text in (("README.md", _BADGES, badges.strip()), ("pyproject.toml", _URL, url)):
        write_whole(root / name, pattern.sub(text, (root / name).read_text(encoding="utf-8")))
    for page in (root / "notebooks").glob("*.py"):
        text = _CELL.sub("", page.read_text(encoding="utf-8"))
        write_whole(page, _PARAMETERS.sub(lambda _: cell, text, count=1))


main = partial(run_command, "companion.site.publish", __doc__, publish)

if __name__ == "__main__":
    main()
