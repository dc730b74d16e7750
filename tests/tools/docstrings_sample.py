"""Makes the corpus `docstrings`: first lines and bodies of the docstrings of ten packages, all BSD or MIT.

    python -m tests.tools.docstrings_sample      # writes lib/data/docstrings_sample again

PEP 257 asks for a first line that sums up the rest. Files are parsed, nothing is imported. The same versions of the
packages give the same bytes; other versions are refused.
"""

import ast
import gzip
import importlib.metadata
import inspect
import json
import re
import warnings
from collections.abc import Iterator

from lib.data.sentences import split_sentences
from lib.system.command_line import plain_errors
from lib.system.errors import InputError
from lib.system.files import project_root, write_whole

# Package -> version and licence. Whole packages are held out.
PACKAGES = {
    "train": {
        "torch": ("2.13.0+cpu", "BSD-3-Clause"),
        "scipy": ("1.17.1", "BSD-3-Clause"),
        "sympy": ("1.14.0", "BSD-3-Clause"),
        "sqlalchemy": ("2.1.9", "MIT"),
        "numpy": ("2.4.6", "BSD-3-Clause"),
        "ipython": ("9.18.1", "BSD-3-Clause"),
        "fonttools": ("4.68.0", "MIT"),
    },
    "val": {"networkx": ("3.6.1", "BSD-3-Clause")},
    "test": {"pandas": ("3.1.1", "BSD-3-Clause"), "pytest": ("9.2.0", "MIT")},
}
# Where the prose of a docstring ends: sections of the usual styles, examples, field lists, directives, underlines.
_END = re.compile(
    r"^\s*(?:>>>|\.\. |:\w+|@\w+|[-=~^*`]{3,}|\* |- |\d+\. |"
    r"(?:args?|arguments|parameters?|params|returns?|yields?|raises|examples?|notes?|references|see also|attributes|"
    r"usage|warnings?|keyword arguments|inputs?|outputs?|shape|methods|properties|todo)\b[^a-z]*$)",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"\s*[-=~^*`]{3,}\s*$")
_NOT_PROSE = re.compile(r"[{}\\|]|::|http")
SUMMARY_WORDS, BODY_WORDS = (3, 25), (8, 150)  # fewest and most by white space; a longer body is cut
_COPYRIGHT = re.compile(r"copyright\s*(?:\(c\)\s*)?\d", re.IGNORECASE)
_LICENCE_BEGINS = re.compile("Redistribution and use|Permission is hereby granted")
_HEAD = """\
# Where these docstrings come from

First lines and bodies of docstrings of the packages below, each under the licence of its package. Changed: taken from
the source files; of a body the prose alone, at most 150 words, without sentences that hold markup or links.
"""


def headline_and_body(docstring: str) -> tuple[str, str] | None:
    """First line and the prose after it, or None where the docstring has no such form, or too few words of either."""
    first, *rest = inspect.cleandoc(docstring).splitlines() or [""]
    if len(rest) < 2 or rest[0].strip() or not first.rstrip().endswith(".") or _NOT_PROSE.search(first):
        return None
    lines = []
    for line in rest[1:]:
        if _END.match(line):
            if _UNDERLINE.match(line) and lines and lines[-1]:
                lines.pop()  # what is underlined
            break
        lines.append(line.strip())
    sentences = [s for s in split_sentences(" ".join(lines)) if not _NOT_PROSE.search(s)]
    words, body = first.split(), " ".join(sentences).split()[: BODY_WORDS[1]]
    fits = SUMMARY_WORDS[0] <= len(words) <= SUMMARY_WORDS[1] and len(body) >= BODY_WORDS[0]
    return (" ".join(words), " ".join(body)) if fits else None


def read_package(name: str) -> Iterator[dict]:
    """The pairs of one package, file by file."""
    for file in sorted(importlib.metadata.distribution(name).files or (), key=str):
        if file.suffix == ".py" and not _is_test(file.parts):
            yield from _read_file(file.locate())


def _is_test(parts: tuple[str, ...]) -> bool:
    return any(part in ("tests", "test", "testing") or part.startswith(("test_", "_vendor")) for part in parts)


def _read_file(path) -> Iterator[dict]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old escapes in strings
            tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):  # a template, another encoding
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            pair = headline_and_body(ast.get_docstring(node, clean=False) or "")
            if pair:
                yield {"title": getattr(node, "name", ""), "summary": pair[0], "document": pair[1]}


def splits() -> dict[str, list[dict]]:
    """Pairs by split. A pair whose summary or body came before, in any package, is left out.

    Raises InputError where a package is not installed, or has another version.
    """
    by_split, seen = {}, set()
    for split_name, packages in PACKAGES.items():
        by_split[split_name] = []
        for name, (version, _) in packages.items():
            versions = [d.version for d in importlib.metadata.distributions(name=name)]
            if version not in versions:
                there = f"{versions[0]} is installed" if versions else "it is not installed"
                raise InputError(f"the sample is of {name} {version}, and {there}: pip install {name}=={version}")
            for number, pair in enumerate(read_package(name), 1):
                texts = {pair["summary"].lower(), pair["document"].lower()}
                if not texts & seen:
                    by_split[split_name].append({"id": f"{name}:{number}", **pair})
                    seen |= texts
    return by_split


def attribution() -> str:
    """Package, version, licence and copyright lines of each, and the text of the licences."""
    parts, licences = [_HEAD], set()
    for split_name, packages in PACKAGES.items():
        for name, (version, licence) in packages.items():
            licences.add(licence)
            parts.append(f"\n- {name} {version} ({split_name}). {licence}. {'; '.join(_copyright(name))}")
    for licence in sorted(licences):
        text = (project_root() / "LICENSES" / f"{licence}.txt").read_text(encoding="utf-8")
        parts.append(f"\n\n## {licence}\n\n{text.strip()}")
    return "".join(parts) + "\n"


def _copyright(name: str) -> list[str]:
    """The copyright lines that stand before the licence itself."""
    files = importlib.metadata.distribution(name).files or ()
    (path,) = (f for f in files if re.search(r"dist-info/(licenses/)?LICENSE(\.txt)?$", str(f)))
    head = _LICENCE_BEGINS.split(path.read_text(encoding="utf-8"))[0]
    return [" ".join(line.strip(" -.").split()) for line in head.splitlines() if _COPYRIGHT.search(line)]


def main() -> None:
    """Write the sample."""
    folder = project_root() / "lib" / "data" / "docstrings_sample"
    for split_name, pairs in splits().items():
        text = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
        write_whole(folder / f"{split_name}.jsonl.gz", gzip.compress(text.encode(), 9, mtime=0))
    write_whole(folder / "ATTRIBUTION.md", attribution())


if __name__ == "__main__":
    with plain_errors():
        main()
