"""What needs no training, beside the models of Mem2Mem's tables."""

from collections.abc import Sequence

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.evaluation.baselines import counted_in, matches, oracle, text_baselines


def mem2mem_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """The `text_baselines`, and extraction that sees the reference at two other lengths: ten
    sentences, as many as Lead-10 and the heads of Mem2Mem choose, and the sentences that
    Subramanian et al. (2020) label, whose "Gold Ext" the paper quotes."""
    letters = counted_in(documents)
    labelled = []
    for document in documents:
        numbers = matches(document.sentences, document.summary, all_letters=letters)
        labelled.append([document.sentences[i] for i in numbers])
    ten = [oracle(d.sentences, d.summary, 10, letters) for d in documents]
    return {**text_baselines(documents, encoded, prepared), "oracle-10": ten, "labelled": labelled}
