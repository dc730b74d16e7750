"""What needs no training, beside the models that read clusters."""

from collections.abc import Sequence

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.decoding.search import source_sentences
from lib.evaluation.baselines import counted_in, lexrank


def cluster_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """Lead: the first words of what the model reads, as many as the reference has; LexRank,
    weighted by cosine, picks paragraphs."""
    lengths = [len(" ".join(d.summary).split()) for d in documents]
    texts = [" ".join(source_sentences(d, prepared.vocabulary)) for d in encoded]
    paragraphs = [prepared.options.example(d).paragraphs for d in documents]
    letters = counted_in(documents)
    leads, ranked = [], []
    for text, of_cluster, length in zip(texts, paragraphs, lengths):
        leads.append([" ".join(text.split()[:length])])
        ranked.append(lexrank(of_cluster, length, threshold=None, all_letters=letters))
    return {"lead": leads, "lexrank": ranked}
