"""Embeddings from context beside the words' own, where the answer is known; and the saved
numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from companion.studies import hidden_words
from companion.studies.fed_back import losses_of
from companion.studies.hidden_words import DIFFERENCES, PAIRS, divergences, most_similar
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, UNK
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.system.files import trained_folder
from tests.conftest import VOCAB, double

# 12 is outside Y; 9 is known to the decoder alone; 5 stands twice
TEXT = replace(
    EncodedDocument.of("a", [5, 12, 6, 5, 9, 8], [6], [6, EOS], ["zebra"]),
    source_ids=np.array([7, UNK, 8, 7, UNK, 9], dtype=np.int32),
)


def model(**changes):
    sizes = {"source_vocab_size": 20, "embedding": 5, "hidden": 6, "dropout": 0.0}
    return double(ReadAgain, ReadAgainConfig(VOCAB, **sizes, **changes))


def embedded(reader, source_ids):
    document = replace(TEXT, source_ids=np.array(source_ids, dtype=np.int32))
    return reader.encode(make_batch([document], VOCAB)).embedded[0]


def test_the_most_similar_word_is_no_symbol_and_not_the_word_itself():
    table = torch.eye(VOCAB)
    table[UNK], table[6], table[9] = 3 * table[8], 2 * table[8] + table[6], table[8] + table[9]
    assert most_similar(table, 8) == 6


def test_next_words_are_compared_after_what_is_fed_in_place_of_a_hidden_word():
    reader = model(copy=True)
    read = replace(TEXT, target=np.array([6, 8, EOS], dtype=np.int32))

    def next_words(reader, hidden, before, fed=None):
        """The distribution after the words `before`, the last one replaced by an embedding."""
        document = replace(TEXT, source_ids=np.array(hidden, dtype=np.int32))
        state, word = reader.encode(make_batch([document], VOCAB)), before[-1]
        row = reader.target_embedding.weight[word].clone()
        with torch.no_grad():
            reader.target_embedding.weight[word] = row if fed is None else fed
            output, state = reader.decode(torch.tensor([before]), state)
            P = reader.distribution(output, state, 1)[0].double().numpy()
            reader.target_embedding.weight[word] = row
        return P

    def apart(P, Q):
        return jensenshannon(P, Q) ** 2

    found = divergences(reader, read, frequent=0)
    without = {6: [7, UNK, UNK, 7, UNK, 9], 8: [7, UNK, 8, 7, UNK, UNK]}
    p = {6: embedded(reader, without[6])[2], 8: embedded(reader, without[8])[5]}
    p[5] = embedded(reader, [UNK, UNK, 8, UNK, UNK, 9])[0]
    for column, (word, before, another) in enumerate([(6, [BOS, 6], 5), (8, [BOS, 6, 8], 6)]):
        own = next_words(reader, without[word], before)
        fed = [
            next_words(reader, without[word], before, e)
            for e in (p[word], p[another], reader.target_embedding.weight[UNK])
        ]
        assert found[:3, column].tolist() == pytest.approx([apart(P, own) for P in fed], abs=1e-9)
    assert found.shape == (len(PAIRS), 2) and (found > 0).all()


def test_the_command_has_a_row_for_each_pair_and_difference(tmp_path, capsys):
    arguments = [str(trained_folder("read_again")), "--dataset", "pmc-sample", "--documents", "3"]
    hidden_words.main([*arguments, "--output", str(tmp_path / "h.json")])
    rows = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))["changes"]
    assert [row["change"] for row in rows] == [*PAIRS, *DIFFERENCES]
    assert capsys.readouterr().out.count("\n") == 2 + len(rows)
    means = {row["change"]: row["mean"] for row in rows}
    for name in DIFFERENCES:
        first, _, second = name.partition(" - ")
        assert means[name] == pytest.approx(means[first] - means[second])


def test_what_is_fed_back_is_measured_where_it_can_act():
    """A reference that copies an unknown word: only what follows it changes, and without such a
    word nothing does."""
    reader = model()
    change = reader.changes()["[UNK] fed back"]
    unknown = EncodedDocument.of("a", [7, VOCAB, 9], [3], [7, VOCAB, 8, 9, EOS], ["strange"])
    source_ids = np.array([7, UNK, 9], dtype=np.int32)
    unknown = replace(unknown, source_ids=source_ids)
    after, later, every = losses_of(reader, unknown, change)
    assert after != 0 and later != 0 and every == pytest.approx((after + 2 * later) / 5)
    known = replace(EncodedDocument.of("b", [7, 8, 9], [3], [7, 8, EOS]), source_ids=source_ids)
    after, later, every = losses_of(reader, known, change)
    assert np.isnan(after) and np.isnan(later) and every == 0
