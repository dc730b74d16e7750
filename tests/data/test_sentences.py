"""Sentence ends: against those of people, in small cases of each kind, and in the words of
models."""

import json
from importlib import resources
from itertools import accumulate
from pathlib import Path

import pytest

from lib.data.sentences import group_words, split_sentences
from lib.data.tokenize import tokenize

CASES = json.loads(
    (Path(__file__).parents[1] / "cases" / "sentences.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def human_texts():
    """Abstracts, introductions and conclusions of aclsum's 250 papers, in sentences that people
    have set apart."""
    texts = []
    for split in ("train", "val", "test"):
        lines = (resources.files("aclsum") / "dataset" / f"{split}.jsonl").read_text(
            encoding="utf-8"
        )
        for line in lines.splitlines():
            texts += (
                [s for s in part if s.strip()] for part in json.loads(line)["sentences"].values()
            )
    return texts


def agreement(pairs):
    """Precision and recall of sentence ends, given as pairs of sets: people's and ours."""
    pairs = list(pairs)
    correct = sum(len(human & ours) for human, ours in pairs)
    return correct / sum(len(ours) for _, ours in pairs), correct / sum(
        len(human) for human, _ in pairs
    )


def ends_of(sentences):
    """Inner ends, in characters without white space or in words."""
    return set(list(accumulate(map(len, sentences)))[:-1])


def squeezed(sentences):
    return ["".join(sentence.split()) for sentence in sentences]


def test_ends_are_those_of_people(human_texts):
    pairs = (
        (ends_of(squeezed(t)), ends_of(squeezed(split_sentences(" ".join(t))))) for t in human_texts
    )
    precision, recall = agreement(pairs)
    assert precision > 0.997 and recall > 0.947


def test_ends_in_the_words_of_models_are_those_of_people(human_texts):
    """In lower case, with marks apart."""
    prose = [
        [tokenize(s.lower()) for s in t if s.rstrip().endswith((".", "?", "!"))]
        for t in human_texts
    ]
    precision, recall = agreement(
        (ends_of(t), ends_of(group_words([w for s in t for w in s]))) for t in prose if t
    )
    assert precision > 0.99 and recall > 0.985


@pytest.mark.parametrize("kind", sorted({case["kind"] for case in CASES}))
def test_every_kind_of_end(kind):
    """A case has the sentences, or only their number where no other split has as many."""
    wrong = []
    for case in CASES:
        found = squeezed(split_sentences(case["text"]))
        if case["kind"] != kind:
            continue
        is_right = len(found) == case.get("count", len(found)) and found == squeezed(
            case.get("sentences", found)
        )
        if not is_right:
            wrong.append((case["text"], split_sentences(case["text"])))
    assert wrong == []
