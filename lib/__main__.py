"""The commands of the library, a line each.

python -m lib
"""

import ast
import re
from pathlib import Path

from lib.system.command_line import plain_errors


def main() -> None:
    """Print the first sentence of each command's docstring. None is imported."""
    home = Path(__file__).parent
    paths = {path.stem: path for path in home.glob("[!_]*.py")}
    for name, path in sorted(paths.items()):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        sentence = " ".join(re.split(r"(?<=\.)\s", docstring)[0].split())
        print(f"python -m lib.{name:<12} {sentence}")


if __name__ == "__main__":
    with plain_errors():
        main()
