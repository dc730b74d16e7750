"""Six dispatches about invented companies. The Reuters dispatches of the shipped run's training may
not be printed."""

from pathlib import Path

from lib.data.documents import Document, to_document


def made_up_dispatches() -> list[Document]:
    """Read the dispatches; their headlines are also their titles."""
    texts = (
        Path(__file__).with_name("dispatches.txt").read_text(encoding="utf-8").strip().split("\n\n")
    )
    parts = [text.partition("\n") for text in texts]
    records = [
        {"summary": head, "document": " ".join(text.split()), "title": head}
        for head, _, text in parts
    ]
    return [to_document({"id": f"dispatch {n}", **record}) for n, record in enumerate(records, 1)]
