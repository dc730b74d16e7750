"""Six dispatches with invented companies, to show: those of Reuters that the shipped run has learned from may not be
printed."""

from pathlib import Path

from lib.data.documents import Document, to_document


def made_up_dispatches() -> list[Document]:
    """Dispatches with their headlines, which are their titles too."""
    texts = Path(__file__).with_name("dispatches.txt").read_text(encoding="utf-8").strip().split("\n\n")
    parts = [text.partition("\n") for text in texts]
    records = [{"summary": head, "document": " ".join(text.split()), "title": head} for head, _, text in parts]
    return [to_document({"id": f"dispatch {n}", **record}) for n, record in enumerate(records, 1)]
