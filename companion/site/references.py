r"""Numbers of equations in a text become links: "(7)" leads to the equation with \tag{7} on the
same page."""

import re

from docutils import nodes

TAG = re.compile(r"\\tag\{([^{}]+)\}")
NUMBER = re.compile(r"\(([A-Z]?\d+)\)")
CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def anchor(number: str) -> str:
    """Return the id of the equation with this number."""
    return f"equation-{number.lower()}"


def link_equations(doctree: nodes.document) -> None:
    """Give every numbered equation an id, and every mention of it a link, except in titles and
    code."""
    numbers = set()
    for equation in doctree.findall(nodes.math_block):
        found = TAG.findall(equation.astext())
        equation["ids"] += [anchor(number) for number in found if number not in numbers]
        numbers |= set(found)
    for text in list(doctree.findall(nodes.Text)):
        if not any(
            isinstance(parent, (nodes.title, nodes.reference, *CODE)) for parent in _above(text)
        ):
            parts = list(_linked(text.astext(), numbers))
            if len(parts) > 1:
                text.parent.replace(text, parts)


def _above(node: nodes.Node):
    while node := node.parent:
        yield node


def _linked(text: str, numbers: set[str]):
    """Split a text into parts; mentions of one of the numbers become links."""
    end = 0
    for mention in NUMBER.finditer(text):
        if mention[1] in numbers:
            yield nodes.Text(text[end : mention.start()])
            yield nodes.reference("", mention[0], internal=True, refid=anchor(mention[1]))
            end = mention.end()
    yield nodes.Text(text[end:])
