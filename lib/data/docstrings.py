"""Headlines that need no download: docstrings of the installed packages.

PEP 257 asks for a first line that sums up the rest. Files are parsed, nothing is imported. The same versions of the
same packages give the same pairs.
"""

import ast
import importlib.metadata
import inspect
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress

from lib.data.documents import CorpusError
from lib.data.sentences import split_sentences
from lib.system.files import cache_dir, cached, write_whole
from lib.system.fingerprints import code_digest, digest
from lib.system.processes import default_workers, in_processes

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


def versions(packages: tuple[str, ...] = ()) -> dict[str, str]:
    """Installed packages (those named, or all that hold Python files) and their versions, by name.

    Raises CorpusError for a package that is not installed.
    """
    installed = {}
    for distribution in importlib.metadata.distributions():
        if any(file.suffix == ".py" for file in distribution.files or ()):
            installed[distribution.metadata["Name"].lower().replace("_", "-")] = distribution.version
    missing = [name for name in packages if name not in installed]
    if missing:
        raise CorpusError(f"docstrings: {', '.join(missing)} not installed; there are {', '.join(sorted(installed))}")
    own = "neural-summarization-companion"
    return {name: installed[name] for name in sorted(packages or installed) if name != own}


def code() -> str:
    """A name of the code that finds the pairs."""
    return code_digest(__name__)


def splits(packages: dict[str, str]) -> dict[str, list[dict]]:
    """Pairs by split. Whole packages are held out: about a tenth of the pairs for "test", a tenth for "val".

    A pair whose summary or body came before, in any package, is left out. Raises CorpusError for fewer than three
    packages.
    """
    pairs, seen = {}, set()
    cache_dir()  # says where it is, which else each process would
    for name, of_package in zip(packages, in_processes(_read_package, iter(packages.items()), default_workers())):
        pairs[name] = []
        for pair in of_package:
            keys = {pair["summary"].lower(), pair["document"].lower()}
            if not keys & seen:
                pairs[name].append(pair)
                seen |= keys
    held_out = _held_out({name: len(of_package) for name, of_package in pairs.items() if of_package})
    by_split = {"train": [], "val": [], "test": []}
    for name in sorted(pairs, key=digest):
        by_split[held_out.get(name, "train")] += pairs[name]
    return by_split


def _held_out(sizes: dict[str, int]) -> dict[str, str]:
    """Packages for "test" and "val": in an order that has nothing to do with their names, until each has a
    tenth of all pairs, none much larger than that; where none is small enough, the smallest that are left."""
    if len(sizes) < 3:
        raise CorpusError(f"docstrings: three packages with docstrings are needed, one a split, not {len(sizes)}")
    share, chosen = sum(sizes.values()) / 10, {}
    for split_name in ("test", "val"):
        left = sorted((name for name in sizes if name not in chosen), key=digest)
        size = 0
        for name in left:
            if size < share and sizes[name] <= 1.5 * share:
                chosen[name] = split_name
                size += sizes[name]
        if not size:
            chosen[min(left, key=sizes.__getitem__)] = split_name
    return chosen


def _read_package(package: tuple[str, str]) -> list[dict]:
    """All pairs of one package, from the cache if its version has been parsed by this code."""
    name, version = package
    path = cached(f"docstrings/{name}-{version}-{code()}.jsonl")
    if path.exists():
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    files = importlib.metadata.distribution(name).files or ()
    sources = sorted(str(f.locate()) for f in files if f.suffix == ".py" and not _is_test(f.parts))
    pairs = [pair for source in sources for pair in _read_file(name, source)]
    with suppress(PermissionError):  # a cache that may only be read
        write_whole(path, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs))
    return pairs


def _is_test(parts: tuple[str, ...]) -> bool:
    return any(part in ("tests", "test", "testing") or part.startswith(("test_", "_vendor")) for part in parts)


def _read_file(package: str, path: str) -> Iterator[dict]:
    try:
        with open(path, encoding="utf-8") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old escapes in strings
            tree = ast.parse(file.read())
    except (SyntaxError, ValueError, OSError, RecursionError):  # a template, another encoding, an older Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            pair = headline_and_body(ast.get_docstring(node, clean=False) or "")
            if pair:
                name = getattr(node, "name", "")
                yield {"id": f"{package}:{name}", "title": name, "summary": pair[0], "document": pair[1]}


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
