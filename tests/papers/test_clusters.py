"""Clusters of paragraphs: layouts, pieces, shards of WikiSum, ranking, choosing and graphs."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sentencepiece
import torch

from lib.data.batch import make_batch, rows_of
from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError, to_document
from lib.data.pieces import Pieces
from lib.data.tokenize import bigram_recall
from lib.data.vocabulary import EOS, PARAGRAPH_END, SENTENCE_END, SPECIALS, TITLE_END
from lib.papers import PAPERS, resolve
from lib.papers.hierarchical_transformer.graphs import discourse_graph, similarity_graph
from lib.papers.hierarchical_transformer.ranking import (
    ClusterOptions,
    best_first,
    choose_rows,
    learned_scores,
    paragraph_scores,
    similarity_scores,
    train_ranker,
    words_of_rows,
)
from tests.conftest import same_document

SENTENCE = (
    "the cat dog bird fish horse sat ran flew swam on under over a mat tree river hill and then "
    "again"
)
WORDS = SENTENCE.split()


def text(random, count):
    return " ".join(random.choice(WORDS, count)).capitalize() + "."


def record(random, name):
    paragraphs = [
        {"text": text(random, 9) + " " + text(random, 7), "source": f"s{i // 2}"} for i in range(5)
    ]
    return {
        "id": name,
        "title": text(random, 3),
        "paragraphs": paragraphs,
        "summary": [text(random, 6), text(random, 5)],
    }


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    for split, count in (("train", 30), ("val", 4), ("test", 4)):
        lines = [json.dumps(record(random, f"{split}{i}")) for i in range(count)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


OPTIONS = ClusterOptions(
    paragraphs=3,
    paragraph_tokens=12,
    summary_tokens=20,
    vocab_size=80,
    ranking="order",
    ranker_width=8,
    ranker_steps=4,
    ranker_batch=4,
)


# ---------------------------------------------------------------------------------
# documents


def test_long_sections_are_cut_at_sentence_ends():
    document = to_document(
        {"sections": [["A b c.", "D e.", "F g h i j k."], ["L."]], "abstract_text": "S."}
    )
    found = replace(OPTIONS, paragraph_words=5).example(document)
    assert found.paragraphs == ["A b c. D e.", "F g h i j k.", "L."]


def test_copies_of_the_summary_are_left_out():
    summary = "the cat sat on the mat and then ran"
    paragraphs = [summary, "the cat sat on the mat", "Dogs bark."]
    found = OPTIONS.example(to_document({"paragraphs": paragraphs, "summary": summary}))
    assert found.paragraphs == paragraphs[1:], "5 of 8 bigrams are not a copy"
    assert OPTIONS.example(
        to_document({"paragraphs": [summary], "summary": summary})
    ).paragraphs == [summary]


# ---------------------------------------------------------------------------------
# pieces


@pytest.fixture(scope="module")
def pieces():
    random = np.random.default_rng(1)
    return Pieces.train([text(random, 12).lower() for _ in range(200)], 80)


def test_pieces_go_there_and_back(pieces, tmp_path):
    (ids,) = pieces.encode(["the cat ran over a hill."])
    assert ids.min() > SENTENCE_END
    assert pieces.text(ids) == "the cat ran over a hill."
    assert pieces.decode([*ids, EOS, 9], []) == ["the", "cat", "ran", "over", "a", "hill."]
    (more,) = pieces.encode(["a dog sat."])
    written = [*ids, SENTENCE_END, SENTENCE_END, *more, EOS, *ids]
    assert pieces.sentences(written, []) == ["the cat ran over a hill.", "a dog sat."]
    pieces.save(tmp_path / "pieces.model")
    assert Pieces.load(tmp_path / "pieces.model").words == pieces.words


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="not a SentencePiece model"):
        Pieces(b"nonsense")
    with pytest.raises(CorpusError, match="cannot be learned"):
        Pieces.train([], 100)


# ---------------------------------------------------------------------------------
# encoded clusters


def test_title_paragraphs_and_summary_in_pieces(folder):
    corpus = load_corpus(folder)
    wide = OPTIONS.base.prepare(corpus)
    assert not hasattr(wide.options, "ranking"), "what is chosen later does not determine it"
    for item, document in zip(wide["test"], corpus.split("test")):
        title, *paragraphs = rows_of(item)
        found = OPTIONS.example(document)
        assert title[-1] == TITLE_END and wide.vocabulary.text(title) == document.title
        assert len(paragraphs) == len(found.paragraphs)
        for ids, paragraph in zip(paragraphs, found.paragraphs):
            assert len(ids) <= 12
            assert paragraph.startswith(wide.vocabulary.text(ids).rstrip())
        assert len(item.target) <= 20
        if item.target[-1] == EOS:
            assert wide.vocabulary.sentences(item.target, []) == document.summary
        assert item.reference == document.summary
        texts = (
            t.lower().replace(".", " .").split()
            for t in (" ".join(document.summary), *found.paragraphs)
        )
        wanted, *rows = texts
        recalls = [bigram_recall(row, wanted) for row in rows]
        assert item.labels == pytest.approx(recalls), "of words, of whole paragraphs"
    assert max(max(item.labels) for split in wide.splits.values() for item in split) > 0


def test_the_best_paragraphs_in_their_order(folder):
    wide = OPTIONS.base.prepare(load_corpus(folder))
    scores = [np.array([0.1, 0.9, 0.5, 0.9, 0.0])] * 4

    def choose(**changes):
        return list(choose_rows(wide["test"], scores, replace(OPTIONS, **changes), wide.vocabulary))

    chosen = choose()
    for before, after in zip(wide["test"], chosen):
        rows = rows_of(before)
        expected = [rows[0], rows[2], rows[4], rows[3]]
        assert [r.tolist() for r in rows_of(after)] == [r.tolist() for r in expected]
    cut = choose(source_tokens=20)[0]
    assert (
        cut.source.tolist() == chosen[0].source[:20].tolist() and (cut.sentence_lengths > 0).all()
    )
    flat = choose(flat=True)[0]
    rows = rows_of(wide["test"][0])
    joined = [*rows[0], *rows[2], PARAGRAPH_END, *rows[4], PARAGRAPH_END, *rows[3]]
    assert flat.source.tolist() == joined and flat.sentence_lengths.tolist() == [len(joined)]


def test_rankings(folder):
    wide = OPTIONS.base.prepare(load_corpus(folder))
    (kept,) = {
        tuple(best_first(s)) for s in paragraph_scores(wide["test"], "order", wide.vocabulary)
    }
    assert kept == (0, 1, 2, 3, 4)
    document = wide["test"][0]
    title, *paragraphs = (row.tolist() for row in rows_of(document))
    (scores, *_) = similarity_scores([document], wide.vocabulary)
    texts = [
        wide.vocabulary.text(row).lower().replace(".", " .").split() for row in (title, *paragraphs)
    ]
    by_hand = similarity_graph(texts, threshold=-1)[0, 1:]
    assert scores == pytest.approx(by_hand), "of words, not of pieces"


def test_a_learned_ranking_comes_again(folder):
    options = replace(OPTIONS, ranking="learned")
    corpus = load_corpus(folder)
    wide = options.base.prepare(corpus)
    first, second = (
        learned_scores(train_ranker(wide, options, progress=False), wide["test"]) for _ in range(2)
    )
    assert [len(s) for s in first] == [5] * 4 and all(0 < s.min() <= s.max() < 1 for s in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, second))
    other = learned_scores(train_ranker(wide, options, progress=False, seed=1), wide["test"])
    assert not any(np.array_equal(a, b) for a, b in zip(first, other))
    chosen = options.prepare(corpus, progress=False)
    assert chosen.encoder.chooser and chosen.fingerprint != wide.fingerprint
    row = rows_of(chosen["test"][0])[1]
    assert row.tolist() == rows_of(wide["test"][0])[1 + best_first(first[0])[0]].tolist()


@pytest.mark.parametrize("kind", ["similarity", "discourse"])
def test_graphs_follow_the_chosen_paragraphs(folder, kind):
    corpus = load_corpus(folder)
    options = replace(OPTIONS, graph=kind, ranking="similarity")
    chosen, wide = options.prepare(corpus), options.base.prepare(corpus)
    for i, document in enumerate(corpus.split("test")):
        found = options.example(document)
        if kind == "discourse":
            whole = discourse_graph([document.title, *found.paragraphs], [None, *found.sources])
        else:
            whole = similarity_graph(words_of_rows(wide["test"][i], wide.vocabulary))
        places = [
            0,
            *(1 + best_first(similarity_scores([wide["test"][i]], wide.vocabulary)[0])[:3]),
        ]
        assert chosen["test"][i].graph.reshape(4, 4) == pytest.approx(
            whole[np.ix_(places, places)], abs=1e-6
        )
    batch = make_batch([chosen["test"][i] for i in range(4)], len(chosen.vocabulary))
    assert batch.graph.shape == (4, 4, 4) and batch.graph.dtype == torch.float32


def test_clusters_are_encoded_as_in_their_corpus(folder):
    """With and without a summary."""
    corpus = load_corpus(folder)
    prepared = OPTIONS.base.prepare(corpus)
    documents = list(corpus.split("train"))
    for ours, theirs in zip(prepared.encoder.encode(documents), prepared["train"], strict=True):
        same_document(ours, theirs)
    (alone,) = prepared.encoder.encode([replace(documents[0], summary=[])])
    nothing = np.zeros(len(alone.labels), np.float32)
    same_document(
        alone, replace(prepared["train"][0], target=np.array([EOS]), reference=[], labels=nothing)
    )
    with pytest.raises(ValueError, match="document 'empty' has no paragraph"):
        prepared.encoder.encode([replace(documents[0], id="empty", sections=[], section_names=[])])


# ---------------------------------------------------------------------------------
# the rows of the paper's tables


@pytest.mark.parametrize("variant", PAPERS["hierarchical_transformer"].variants)
def test_what_the_rows_of_the_tables_read(variant):
    options = resolve("hierarchical_transformer", "demo", variant).options
    flat = variant.startswith(("FT", "T-DMCA"))
    limit = int(variant.split()[1].strip(",")) if variant.startswith("FT") else 3000
    assert (options.flat, options.source_tokens) == ((True, limit) if flat else (False, None))
    assert bool(options.graph) == (" graph" in variant)
    assert options.ranking == ("order" if "no ranking" in variant else "learned")


def test_the_presets_are_the_papers():
    paper, code = (resolve("hierarchical_transformer", name) for name in ("paper", "code"))
    model = code.build(_Sized(32_000))
    assert sum(p.numel() for p in model.parameters()) == 15_343_952
    assert paper.config == {"form": "paper", "local_layers": 5}
    # facts of the published code: the peak
    assert code.train.rate(8000) == pytest.approx(0.0021, abs=5e-5)
    assert paper.train.rate(8000) == pytest.approx(0.0014, abs=5e-5)
    assert (paper.decode.beam, paper.decode.length_penalty, paper.decode.length_offset) == (
        5,
        0.4,
        5,
    )
    assert (paper.options.paragraphs, paper.options.vocab_size) == (24, 32_000)


class _Sized:
    """As much of a prepared corpus as `build` looks at."""

    def __init__(self, size):
        self.vocabulary, self.options, self.name = range(size), ClusterOptions(), "x"
        self.encoder = SimpleNamespace(digest=lambda: "")


# ---------------------------------------------------------------------------------
# shards of WikiSum

THEIR_SYMBOLS = ["<T>", "<P>", "<Q>"]


@pytest.fixture
def shards(tmp_path):
    """As the authors pass them on: their ids, symbols and names; made here, because none can be
    had."""
    random = np.random.default_rng(2)
    texts = [text(random, 12) for _ in range(200)]
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_prefix=str(tmp_path / "spm9998_3"),
        vocab_size=80,
        minloglevel=2,
        hard_vocab_limit=False,
        pad_id=3,
        pad_piece="<PAD>",
        unk_id=0,
        bos_id=1,
        eos_id=2,
        bos_piece="<S>",
        eos_piece="</S>",
        user_defined_symbols=THEIR_SYMBOLS,
    )
    (tmp_path / "spm9998_3.vocab").unlink()
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm9998_3.model"))
    end = theirs.PieceToId("<T>")
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        for shard in range(count):
            records = []
            for _ in range(3):
                title, *paragraphs = (text(random, 4) + " " + text(random, 5) for _ in range(5))
                source = [[*theirs.Encode(title), end, *theirs.Encode(p)] for p in paragraphs]
                sentences = [text(random, 5) for _ in range(2)]
                # a copy of the summary, which they did not find
                source.insert(1, theirs.Encode(" ".join(sentences)))
                target = [
                    1,
                    *theirs.Encode(sentences[0]),
                    theirs.PieceToId("<Q>"),
                    *theirs.Encode(sentences[1]),
                    2,
                ]
                records.append(
                    {
                        "src": source,
                        "tgt": target,
                        "tgt_str": "<t> " + " <Q> ".join(sentences) + " </t>",
                    }
                )
            torch.save(records, tmp_path / f"WIKI.{split}.{shard}.pt")
    return tmp_path


def test_shards_are_read_in_the_librarys_ids(shards):
    corpus = load_corpus(f"wikisum:{shards}")
    assert corpus.ranked and len(list(corpus.split("train"))) == 6
    chosen = replace(OPTIONS, ranking="learned", paragraph_words=4).prepare(corpus)
    record = torch.load(shards / "WIKI.test.0.pt", weights_only=True)[0]
    ours = [corpus.pieces.ours(ids).tolist() for ids in record["src"]]
    title = ours[0][: ours[0].index(TITLE_END) + 1]
    texts = [ids[ids.index(TITLE_END) + 1 :] if TITLE_END in ids else ids for ids in ours[:3]]
    expected = [[*title[:11], TITLE_END], *(ids[:12] for ids in texts)]
    document = chosen["test"][0]
    assert [row.tolist() for row in rows_of(document)] == expected, "whole and in their order"
    assert document.target.tolist() == [*corpus.pieces.ours(record["tgt"][1:]).tolist()][:20]
    (alone,) = chosen.options.base.encode(corpus.split("test", 1), chosen.encoder)
    assert rows_of(alone)[1].tolist() == expected[1], "by the options that the corpus keeps"
    assert chosen.vocabulary.words[:4] == list(SPECIALS)


@pytest.mark.parametrize(
    "given",
    [{"ranking": "order"}, {"ranking": "similarity"}, {"ranking": "learned", "graph": "discourse"}],
    ids=str,
)
def test_what_shards_cannot_give_is_refused(shards, given):
    """In silence a row would be the same as that with the ranking, or join paragraphs that were no
    neighbours."""
    with pytest.raises(CorpusError, match="come ranked"):
        replace(OPTIONS, **given).prepare(load_corpus(f"wikisum:{shards}"))
