import json
from collections import Counter
from importlib import resources

import pytest

from lib.data.text import EOS, SPECIALS, UNK, Vocabulary, split_sentences, tokenize


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two? Three! Four", 4),
        ("See Fig. 3 and Smith et al. (2003) for e.g. this. It holds.", 2),
        ("J. R. Smith of the U.S. Army came. He left.", 2),
        ("The value is 3.14. The i.i.d. case is easier.", 2),
        ("already tokenised . lower case text goes on . as in fig . 3 of smith et al . ( 2003 ) .", 3),
        ("no full stop", 1),
        ("   ", 0),
        ("He asked: “Why?” She left.", 2),
    ],
)
def test_sentences(text, count):
    assert len(split_sentences(text)) == count


def test_splitting_loses_nothing():
    text = 'A "b." C (d. E) f.  G\nH... I? J'
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_sentences_against_human_splits():
    """Boundaries in the 250 papers whose abstracts, introductions and conclusions were split by hand."""
    correct = found = wanted = 0
    for split in ("train", "val", "test"):
        for line in (resources.files("aclsum") / "dataset" / f"{split}.jsonl").open(encoding="utf-8"):
            for sentences in json.loads(line)["sentences"].values():
                human = _ends([s for s in sentences if s.strip()])
                ours = _ends(split_sentences(" ".join(sentences)))
                correct, found, wanted = correct + len(human & ours), found + len(ours), wanted + len(human)
    assert correct / found > 0.998
    assert correct / wanted > 0.943


def _ends(sentences: list[str]) -> set[int]:
    ends, length = set(), 0
    for sentence in sentences:
        length += len("".join(sentence.split()))
        ends.add(length)
    return ends - {length}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop", ["do", "n't", "stop"]),
        ("Parkinson's, (3.5%)", ["Parkinson", "'s", ",", "(", "3.5", "%", ")"]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("in @xmath0 of <cit> .", ["in", "@xmath0", "of", "<cit>", "."]),
        ("1,000 naïve Σ", ["1,000", "naïve", "Σ"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert tokenize(text) == words


def test_tokenised_text_stays():
    text = "the patient 's heart ( 3 cm ) was n't seen ."
    assert tokenize(text) == text.split()


def test_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    counts = Counter({"b": 2, "a": 2, "c": 5, "d": 1})
    assert Vocabulary.from_counts(counts, 7).words == [*SPECIALS, "c", "a", "b"]


def test_unknown_words_get_ids_of_their_own():
    vocabulary = Vocabulary(["the", "cat"])
    ids, unknown = vocabulary.encode_source(["the", "zebra", "saw", "the", "zebra"])
    assert ids == [4, 6, 7, 4, 6]
    assert unknown == ["zebra", "saw"]
    assert vocabulary.encode_target(["saw", "cat", "okapi"], unknown) == [7, 5, UNK]
    assert vocabulary.decode([4, 6, EOS, 5], unknown) == ["the", "zebra"]


def test_vocabulary_from_file_is_the_same(tmp_path):
    vocabulary = Vocabulary(["é", "@xmath0", "b"])
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").words == vocabulary.words


def test_a_word_twice_is_refused():
    with pytest.raises(ValueError, match="'a' is twice"):
        Vocabulary(["a", "b", "a"])
