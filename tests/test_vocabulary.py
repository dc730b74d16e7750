from collections import Counter

import pytest

from lib.data.vocabulary import EOS, SPECIALS, UNK, Vocabulary


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
    Vocabulary([]).save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").words == list(SPECIALS), "no word is not an empty one"


def test_a_word_twice_is_refused():
    with pytest.raises(ValueError, match="'a' is twice"):
        Vocabulary(["a", "b", "a"])
