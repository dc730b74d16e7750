"""The work of an update, and of a search, grows in proportion to the words.

Work is the number of bytes that PyTorch's operations write, at N and at 2 N words. It does not
include what the CPU kernels write, which numba compiles, nor what an operation keeps to itself,
such as the weights of fused attention.

Why it is counted: a slice at each step looks cheap, but its backward pass fills a tensor of all
steps. PyTorch's LSTM and GRU do that on a CPU, where rows have different lengths.
"""

from dataclasses import dataclass, replace
from functools import cache, partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lib.data.batch import EncodedDocument
from lib.data.vocabulary import EOS, SLIDE
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.models.hierarchical_transformer import CopyingTransformer, HierarchicalTransformer
from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain
from lib.models.sentence_extractors import SentenceClassifier, SentencePointer
from lib.models.summarizer import Summarizer
from lib.models.t_dmca import TDMCA
from lib.models.tlm import TLM
from lib.models.windowed import Windowed
from lib.papers import PAPERS
from tests.conftest import VOCAB, batch_of
from tests.models.test_models import Case, cases, graph_of, labelled

LINEAR = 2.2  # times the work, for twice as many words
QUADRATIC = 4.4

# These models read a document as sentences, or as paragraphs. The attention of a hierarchical
# transformer between P paragraphs grows with P^2, but it is small beside what the words take.
BY_UNIT = (
    HRED,
    Mem2Mem,
    SentenceClassifier,
    SentencePointer,
    HierarchicalTransformer,
    CopyingTransformer,
)

# By the papers' design, each word of the summary attends to all earlier ones. These models store
# T^2 numbers for a summary of T words.
STORES_SQUARES = (TLM, TDMCA)

# In a search, transformers keep the keys and values of all earlier words, and copy them to add
# those of the next word: T^2 numbers, too.
CACHES_KEYS = (*STORES_SQUARES, HierarchicalTransformer, CopyingTransformer)


@dataclass(frozen=True)
class Size:
    """The size of the longest document of a batch."""

    sentences: int
    words: int  # of its longest sentence
    target: int  # words of its summary

    def doubled(self, what: str) -> "Size":
        return replace(self, **{what: 2 * getattr(self, what)})


class Work(TorchDispatchMode):
    """Count the operations, and the bytes that they write."""

    def __init__(self):
        super().__init__()
        self.operations = self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.operations += 1
        if _writes(function):
            results = [result] if isinstance(result, torch.Tensor) else tree_leaves(result)
            self.bytes += sum(x.nbytes for x in results if isinstance(x, torch.Tensor))
        return result


@cache
def _writes(function) -> bool:
    """Return whether an operation writes its results, which are no views of what was there."""
    aliases = [returned.alias_info for returned in function._schema.returns]
    return all(alias is None or alias.is_write for alias in aliases)


def documents(case: Case, size: Size) -> list[EncodedDocument]:
    """Make three documents of different lengths, with sentences of different lengths.

    The summary always enters three windows, and two sentences are labelled. For each window, the
    model attends from all T words; for each label, it attends to all sentences: by design, the work
    is T times the windows, or N times the labels.
    """
    found = []
    for number, share in enumerate((4, 3, 2)):
        sentences = size.sentences * share // 4
        lengths = [size.words * (8 - (number + j) % 5) // 8 for j in range(sentences)]
        words = [[5 + (3 * j + i) % (VOCAB - 4) for i in range(n)] for j, n in enumerate(lengths)]
        target = [5 + 5 * i % (VOCAB - 5) for i in range(size.target * share // 4 - 4)]
        document = labelled(words, [SLIDE] * 3 + target + [EOS], [0, 1], str(number))
        graph = graph_of(sentences) if case.graph else None
        found.append(replace(document, graph=graph))
    return found


def work_of_update(case: Case, size: Size) -> int:
    model, batch = case.first(), batch_of(*documents(case, size))
    with Work() as work:
        model.loss(batch)["loss"].backward()
    return work.bytes


def tried(case: Case) -> bool:
    """Leave out variants that only lack a part of another, and one that does not grow evenly.

    In a stream with static windows, how many of them a short summary enters is not in proportion to
    the length of the text.
    """
    if case.kind is ReadAgain:
        return case.config.copy
    if case.kind is Windowed:
        return (case.config.windowing, case.config.encode) != ("static", "stream")
    return "without" not in case.name


def parts(case: Case) -> tuple:
    """Return what a case consists of: its kind and its choices, without numbers such as sizes."""
    values = vars(case.config).values()
    chosen = [x for x in values if isinstance(x, bool) or not isinstance(x, int | float)]
    return case.kind, case.graph, *chosen


CASES = list({parts(case): case for case in cases(PAPERS) if tried(case)}.values())
WRITERS = {case.kind: case for case in reversed(CASES) if issubclass(case.kind, Summarizer)}

MANY_SENTENCES = Size(sentences=16, words=20, target=8)
LONG_TEXT = Size(sentences=4, words=20, target=8)  # options 1 and 2 of Read-Again: at most four
LONG_SUMMARY = Size(sentences=4, words=4, target=24)


def doublings(case: Case) -> list[tuple[Size, str, float]]:
    """Return sizes, which of their numbers is doubled, and the largest growth of the work.

    Text and summary are doubled one at a time: attention takes N times T numbers.
    """
    if case.kind in BY_UNIT:
        found = [(MANY_SENTENCES, "words", LINEAR), (MANY_SENTENCES, "sentences", LINEAR)]
    else:
        # Discourse-aware attention reads a few sections, one after the other: only they get longer.
        found = [(LONG_TEXT, "words", LINEAR)]
    if issubclass(case.kind, Summarizer):
        limit = QUADRATIC if case.kind in STORES_SQUARES else LINEAR
        found.append((LONG_SUMMARY, "target", limit))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_update_grows_in_proportion_to_the_words(case):
    work = cache(partial(work_of_update, case))
    for size, name, limit in doublings(case):
        growth = work(size.doubled(name)) / work(size)
        assert growth <= limit, f"twice the {name}: {growth:.2f} times the work"


@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("case", WRITERS.values(), ids=str)
def test_generation_grows_in_proportion_to_the_words(case, beam):
    model, batch = case.first(), batch_of(*documents(case, Size(sentences=4, words=4, target=8)))
    works = []
    for length in (6, 12):
        with Work() as work:
            beam_search(model, batch, DecodeConfig(beam, min_length=length, max_length=length))
        works.append(work)
    once, twice = works
    assert twice.operations <= LINEAR * once.operations
    limit = QUADRATIC if case.kind in CACHES_KEYS else LINEAR
    assert twice.bytes <= limit * once.bytes
