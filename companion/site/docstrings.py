r"""The library's reference: docstrings as reStructuredText, and a directive for a folder of `lib`.

Docstrings are written for people who read the code: `names` in backticks, equations between dollars,
code indented by four spaces. Sphinx reads its own markup, in which stars and bars have a meaning.
"""

import re
from pathlib import Path

from lib.system.files import project_root

# A kernel for a GPU is compiled when its file is imported: Triton is only there on Linux.
NEEDS_TRITON = {"lib.layers.gpu_kernels"}
COMMANDS = ("train", "score", "summarize", "corpora", "intervene")

# Bounds of a field's value, as pydantic shows them in a signature.
_BOUNDS = re.compile(r"Annotated\[([^,]+), FieldInfo\(.*?metadata=\[.*?\]\)\]")
_INLINE = re.compile(r"\$(?P<equation>[^$]+)\$|`(?P<code>[^`]+)`|(?P<sign>(?!^[*] )[*|\\])", re.M)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_LAST_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")


def modules_of(chapter: str) -> list[str]:
    """Name the modules of a folder of `lib`, the folder first; "commands" has those beside them."""
    library = project_root() / "lib"
    if chapter == "commands":
        return ["lib", *(f"lib.{name}" for name in COMMANDS)]
    paths = [path for path in sorted((library / chapter).rglob("*.py")) if _is_public(path)]
    named = [path.relative_to(library.parent).with_suffix("").as_posix() for path in paths]
    modules = [name.removesuffix("/__init__").replace("/", ".") for name in named]
    return [name for name in sorted(modules) if name not in NEEDS_TRITON]


def _is_public(path: Path) -> bool:
    return not path.stem.startswith("_") or bool(path.read_text(encoding="utf-8").strip())


def to_restructured(lines: list[str]) -> list[str]:
    """Translate a docstring: names, equations and code; sections such as "Args:" stay."""
    blocks, was_code = [], False
    for block in re.split(r"\n[ ]*\n", "\n".join(lines)):
        # an indented line after an empty one is code; after "Args:" it explains an argument
        is_code = block.startswith("    ")
        if is_code:
            blocks.append(block if was_code else f".. code-block:: text\n\n{block}")
        else:
            blocks.append(block if block.startswith(">>>") else _marked(block))
        was_code = is_code
    return "\n\n".join(blocks).split("\n")


def _marked(text: str) -> str:
    """Mark names, code and equations of a paragraph, and escape signs that are none."""
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts.append(_LAST_UNDERSCORE.sub(r"\_", text[end : found.start()]))
        end = found.end()
        # markup ends before a sign, not within a word
        close = r"\ " if text[end : end + 1].isalnum() else ""
        if found["equation"]:
            parts.append(f":math:`{' '.join(found['equation'].split())}`{close}")
        elif found["code"] and _NAME.fullmatch(found["code"]):
            parts.append(f":py:obj:`{found['code']}`{close}")
        elif found["code"]:
            parts.append(f"``{' '.join(found['code'].split())}``{close}")
        else:
            parts.append(f"\\{found['sign']}")
    return "".join([*parts, _LAST_UNDERSCORE.sub(r"\_", text[end:])])


def setup_reference(app) -> None:
    """Add the directive `library`, which takes the name of a chapter, and the translation."""
    from sphinx.util.docutils import SphinxDirective  # Sphinx is not installed with the tests

    class Library(SphinxDirective):
        required_arguments = 1

        def run(self):
            lines, modules = [], modules_of(self.arguments[0])
            for name in modules:
                # an imported file of a package is a member of it, too, and has a place of its own
                inside = [other for other in modules if other.startswith(f"{name}.")]
                own = ", ".join(other.removeprefix(f"{name}.") for other in inside)
                lines += [name, "-" * len(name), "", f".. automodule:: {name}", "   :members:"]
                lines += [*([f"   :exclude-members: {own}"] if own else []), ""]
            return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)

    def translate(app, what, name, value, options, lines) -> None:
        lines[:] = to_restructured(lines)

    def shorten(app, what, name, value, options, signature, returns) -> tuple[str | None, str]:
        return signature and _BOUNDS.sub(r"\1", signature), returns

    app.connect("autodoc-process-signature", shorten)
    app.add_directive("library", Library)
    # before napoleon (500), which makes lists of the arguments
    app.connect("autodoc-process-docstring", translate, priority=400)
