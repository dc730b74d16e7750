"""Texts to words, ids and files and back: what is documented to be kept is kept, in every
script."""

import json
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from unicodedata import is_normalized

import numpy as np
import torch
from hypothesis import strategies as st

from lib.data.batch import BucketSampler, in_order, make_batch, rows_of
from lib.data.characters import clean, lowered, mend_encoding, unified
from lib.data.corpus import Corpus, load_corpus
from lib.data.options import words_of
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus
from lib.data.sentences import group_words, split_sentences
from lib.data.split import Split
from lib.data.tokenize import counted_words, is_word, split_words, tokenize, word_spans
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, SPECIALS, UNK, Vocabulary
from lib.papers.mem2mem.sections import CohanOptions
from tests.conftest import same_document
from tests.properties import TEXTS, documents, holds, without_space

# ---------------------------------------------------------------------------------
# words, sentences


@holds(120, text=TEXTS)
def test_cleaned_texts(text):
    """What was cleaned is composed (NFC) and stays as it is; so do texts of unified characters and
    in lower case."""
    once = clean(text)
    assert clean(once) == once and is_normalized("NFC", once)
    assert unified(unified(text)) == unified(text)
    assert lowered(lowered(text)) == lowered(text)


@holds(120, text=TEXTS)
def test_words_are_the_text(text):
    """Words, joined, are the cleaned text without its spaces; none has a space or is empty, or is a
    symbol of a vocabulary."""
    words, set_apart = tokenize(text), split_words(text)
    for found, tokenised in ((words, False), (set_apart, True)):
        assert [clean(text)[a:b] for a, b in word_spans(clean(text), tokenised)] == found
        assert "".join(found) == without_space(clean(text))
        assert all(word and word.split() == [word] and word not in SPECIALS for word in found)
    counted = counted_words(text, all_letters=True)
    assert all(map(is_word, counted)) and set("".join(counted)) <= set(lowered(unified(text)))


@holds(
    120,
    text=TEXTS,
    words=st.lists(
        st.one_of(TEXTS.map(without_space), st.sampled_from([".", "a", "?"])), max_size=9
    ),
)
def test_sentences_are_the_text(text, words):
    """Sentences, joined, are the text up to white space; places of words by sentence are all
    places, in order."""
    found = split_sentences(text)
    assert without_space("".join(found)) == without_space(text)
    assert all(sentence and sentence == sentence.strip() for sentence in found)
    words = [word for word in words if word]
    groups = group_words(words)
    assert [place for group in groups for place in group] == list(range(len(words))) and all(groups)


@holds(
    60,
    texts=st.lists(TEXTS, max_size=4),
    size=st.integers(5, 30),
    lower=st.booleans(),
    tokenised=st.booleans(),
)
def test_vocabularies(texts, size, lower, tokenised):
    """Words to ids and back: a text and its unknown words are as they were, also with a vocabulary
    from a file; of a summary what neither has is [UNK]."""
    sentences = [words_of(text, lower, tokenised) for text in texts]
    every = [word for words in sentences for word in words]
    vocabulary = Vocabulary.from_counts(Counter(every[::2]), size)
    assert len(vocabulary) <= size
    with tempfile.TemporaryDirectory() as folder:
        vocabulary.save(Path(folder) / "vocabulary.txt")
        assert Vocabulary.load(Path(folder) / "vocabulary.txt").words == vocabulary.words
    source = [word for words in sentences[:2] for word in words]
    ids, unknown = vocabulary.encode_source(source)
    assert vocabulary.decode(ids, unknown) == source
    assert "".join(vocabulary.tokens(ids, unknown)).split() == source
    assert " ".join(vocabulary.sentences(ids, unknown)).split() == source
    known = {*source, *vocabulary.words}
    target = vocabulary.encode_target(every, unknown)
    assert vocabulary.decode(target, unknown) == [
        word if word in known else SPECIALS[UNK] for word in every
    ]
    assert vocabulary.decode([*target[:1], EOS, *target], unknown) == vocabulary.decode(
        target[:1], unknown
    )


LEARNED = "the cat sat on a mat and purred; кошка сидит на ковре, 猫は好き שלום हिन्दी 12.5%"


@cache
def pieces() -> Pieces:
    return Pieces.train([LEARNED] * 5, 90)


ALPHABET = sorted(set(LEARNED))


@holds(
    60,
    text=st.text(st.sampled_from(ALPHABET), max_size=20),
    symbols=st.lists(st.sampled_from(CLUSTER_SYMBOLS), max_size=2),
)
def test_pieces(text, symbols):
    """Text of known characters to pieces and back is the text, up to white space; symbols between
    are left out."""
    known = pieces()
    (ids,) = known.encode([text])
    assert known.text(ids) == " ".join(text.split())
    assert "".join(known.tokens(ids)).split() == text.split()
    between = [
        *map(known.words.index, symbols),
        *ids.tolist(),
        *map(known.words.index, symbols),
        EOS,
        9,
    ]
    assert known.text(between) == known.text(ids)
    assert [place for group in known.by_sentence(ids) for place in group] == list(range(len(ids)))
    again = Pieces(known.model)
    assert again.identity == known.identity and again.encode([text])[0].tolist() == ids.tolist()


# ---------------------------------------------------------------------------------
# corpora

OPTIONS = CohanOptions(sections=2, section_tokens=20, summary_tokens=12, vocab_size=7)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "section_names": st.just(["Introduction", "End"]),
            "sections": st.tuples(
                *[st.lists(TEXTS, max_size=2).map(lambda texts: ["A b.", *texts])] * 2
            ).map(list),
            "abstract_text": st.lists(TEXTS, max_size=2).map(lambda texts: ["C.", *texts]),
            "tokenised": st.booleans(),
        }
    ),
    min_size=1,
    max_size=3,
)


def cleaned(text):
    return clean(mend_encoding(text)).strip()


@holds(25, records=RECORDS)
def test_prepared_corpora(records):
    """A corpus of JSON lines, read, prepared chunk by chunk, saved and opened: texts are those that
    were written, cleaned, and ids those of each document alone, byte for byte."""
    records = [{**record, "article_id": f"№ {i}"} for i, record in enumerate(records)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
        (folder / "train.jsonl").write_text(lines, encoding="utf-8", newline="")
        texts = list(load_corpus(folder).split("train"))
        for text, record in zip(texts, records, strict=True):
            assert text.id == record["article_id"] and text.tokenised == record["tokenised"]
            written = [list(map(cleaned, section)) for section in record["sections"]]
            assert text.sections == [[s for s in section if s] for section in written]
            assert text.summary == [s for s in map(cleaned, record["abstract_text"]) if s]
        made = OPTIONS.prepare(
            Corpus.from_records(train=texts, val=texts, test=texts), progress=False
        )
        encoder, vocabulary = made.encoder, made.vocabulary
        alone = encoder.encode(texts)
        for ours, expected in zip(made["train"], alone, strict=True):
            same_document(ours, expected)
        for document, text in zip(alone, texts):
            assert document.reference == text.summary
            read = [word for row in OPTIONS.example(text).sentences for word in row]
            assert vocabulary.decode(document.source, document.unknown) == read
        corpus = PreparedCorpus("odd", encoder, {"train": Split.of(alone), "val": Split.of([])})
        opened = PreparedCorpus.load(corpus.save(folder / "prepared"), CohanOptions)
        assert (
            opened.fingerprint == corpus.fingerprint and opened.vocabulary.words == vocabulary.words
        )
        for ours, expected in zip(opened["train"], alone, strict=True):
            same_document(ours, expected)


@st.composite
def splits(draw) -> list:
    """Documents with all that a split may hold."""
    made, more = draw(documents(12)), draw(st.booleans())
    names = draw(st.lists(TEXTS, min_size=len(made), max_size=len(made)))
    size = draw(st.sampled_from([1, 2**16 + 5]))  # ids of two bytes, or of four
    for i, (document, name) in enumerate(zip(made, names)):
        count = len(document.sentence_lengths)
        document = replace(
            document,
            id=name,
            unknown=names,
            reference=[name, ""],
            source=document.source + size - 1,
        )
        if more:
            document = replace(
                document,
                source_ids=document.source,
                graph=np.linspace(0, 1, count * count, dtype=np.float32),
                labels=np.arange(count, dtype=np.float32),
                tokenised=True,
            )
        made[i] = document
    return made


@holds(30, texts=splits())
def test_splits_on_disk(texts):
    """A split in memory, one that was saved and opened, and one that was written document by
    document hold the same documents."""
    with tempfile.TemporaryDirectory() as name:
        whole, folder = Split.of(texts), Path(name)
        whole.save(folder, "saved")
        opened = Split.load(folder, "saved")
        assert opened.fingerprint() == whole.fingerprint()
        for split in (whole, opened, Split.write(folder, "written", iter(texts), max_id=2**17)):
            assert split.longest == max(len(text.source) for text in texts)
            for ours, expected in zip(split, texts, strict=True):
                same_document(ours, expected)
                assert ours.tokenised == expected.tokenised


# ---------------------------------------------------------------------------------
# batches


@holds(40, texts=documents(12))
def test_batches(texts):
    """Every word of a batch is where its document has it, whichever way sentences are laid out, and
    none twice."""
    batch = make_batch(texts, 12)
    flat = batch.source_extended.flatten()
    words, rows = (
        [word for text in texts for word in text.source.tolist()],
        [rows_of(text) for text in texts],
    )
    assert batch.source_extended[batch.source_mask].tolist() == words
    assert batch.source[batch.source_mask].tolist() == [
        word if word < 12 else UNK for word in words
    ]
    assert not batch.source[~batch.source_mask].any() and not batch.target[~batch.target_mask].any()
    for row, text in enumerate(texts):
        target = text.target.tolist()
        assert batch.target[row, : len(target)].tolist() == target
        assert batch.target_input[row, 1 : len(target)].tolist() == target[:-1]
        of = np.repeat(np.arange(len(rows[row])), text.sentence_lengths)
        assert batch.sentence_of[row, : len(of)].tolist() == of.tolist()
    sentences, ragged, packed = batch.sentences, batch.ragged, batch.packed
    for owner, number, place, mask in zip(
        sentences.owner, sentences.number, sentences.place, sentences.mask
    ):
        assert flat[place[mask]].tolist() == rows[owner][number].tolist()
    for row, (owner, number) in enumerate(zip(ragged.owner, ragged.number)):
        own = ragged.row == row
        assert flat[ragged.word[own]].tolist() == rows[owner][number].tolist()
        assert ragged.place[own].tolist() == list(range(int(own.sum())))
    assert sum(ragged.sizes) == len(words) == len(ragged.word)
    assert torch.equal(torch.sort(packed.words).values, torch.sort(ragged.word).values)
    steps, longest = packed.words.split(packed.sizes.tolist()), batch.sentence_mask.shape[1]
    for place, sentence in enumerate(packed.rows.tolist()):
        own = [int(step[place]) for step in steps if place < len(step)]
        assert flat[own].tolist() == rows[sentence // longest][sentence % longest].tolist()


@holds(
    60,
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=40),
    size=st.integers(1, 9),
    pool=st.integers(1, 3),
    tokens=st.sampled_from([None, 40, 100]),
    seed=st.integers(0, 9),
    epoch=st.integers(0, 3),
)
def test_batches_of_an_epoch(counts, size, pool, tokens, seed, epoch):
    """An epoch has no document twice and leaves out fewer than a batch; batches keep to their
    budget; a step has the same documents, whichever step was asked for before."""
    sampler = BucketSampler(counts, size, seed, pool, tokens)
    batches = sampler.epoch(epoch)
    chosen = np.concatenate(batches).tolist()
    assert len(chosen) == len(set(chosen)) and set(chosen) <= set(range(len(counts)))
    size = min(size, len(counts))
    assert len(chosen) > len(counts) - size if tokens is None else len(chosen) == len(counts)
    for batch in batches:
        assert len(batch) == size if tokens is None else len(batch) <= size
        assert tokens is None or len(batch) * max(counts[i] for i in batch) <= tokens
    first = sum(len(sampler.epoch(e)) for e in range(epoch))
    sampler.batch(first + 2 * len(batches) + 1)  # of a later epoch
    for step in np.random.default_rng(seed).permutation(len(batches)).tolist():
        assert sampler.batch(first + step).tolist() == list(batches[step])


@holds(30, texts=documents(12), size=st.integers(1, 3), tokens=st.sampled_from([None, 5, 20]))
def test_batches_in_order(texts, size, tokens):
    """Documents in their own order, each once, in batches that keep to their budget."""
    found = list(in_order(texts, size, 12, tokens))
    assert [name for batch in found for name in batch.ids] == [text.id for text in texts]
    for batch in found:
        assert len(batch) <= size and (
            tokens is None or len(batch) == 1 or batch.source.numel() <= tokens
        )
