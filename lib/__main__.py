"""The commands of the library, a line each.

python -m lib
"""

import ast
import re
from pathlib import Path


def commands() -> dict[str, str]:
    """The first sentence of each command's docstring, by name. None is imported."""
    home = Path(__file__).parent
    paths = {path.stem: path for path in home.glob("[!_]*.py")}
    paths |= {path.parent.name: path for path in home.glob("*/__main__.py")}
    docstrings = {name: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for name, path in paths.items()}
    return {name: re.split(r"(?<=\.)\s", docstrings[name])[0] for name in sorted(docstrings)}


def main() -> None:
    for name, sentence in commands().items():
        print(f"python -m lib.{name:<12} {sentence}")


if __name__ == "__main__":
    main()
