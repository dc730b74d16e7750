"""Corpora that say that their text is tokenised: words are what stands between spaces, in source and summary, for
every paper's options, on disk and in scores."""

import json

import numpy as np
import pytest

from lib.corpora import contents
from lib.data.catalogue import HUB, MANUAL
from lib.data.corpora import Corpus, load_corpus
from lib.data.documents import CorpusError, to_document
from lib.data.prepared import PreparedCorpus
from lib.data.words import looks_tokenised
from lib.evaluation.scores import score_systems
from lib.papers.hierarchical_transformer.clusters import ParagraphOptions
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.read_again.headlines import HeadlineOptions, fits
from lib.papers.windowed.windows import ArticleOptions, target_sentences

TEXT = "the drought-hit u.s. state lost 12% of its maize , officials of the ministry said late on friday ."
TITLE = "drought-hit state lost its maize"
RECORD = {"article_text": [TEXT], "abstract_text": [f"<S> {TITLE} . </S>", "<S> rain is far-off . </S>"]}
SAYING = '{"tokenised": true}'


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "val", "test"):
        lines = [json.dumps({"article_id": f"{split}-{n}", **RECORD}) for n in range(3)]
        (tmp_path / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_a_folder_says_it(folder):
    """In one small file, which is part of what the corpus is."""
    raw = load_corpus(folder)
    assert not next(raw.split("test")).tokenised and raw.tokenised == [] and "tokenised" not in raw.report()
    (folder / "corpus.json").write_text(SAYING, encoding="utf-8")
    corpus = load_corpus(folder)
    assert all(d.tokenised for d in corpus.split("test")) and corpus.identity != raw.identity
    assert "its text is tokenised (test): words are what stands between spaces" in corpus.report()
    assert "its text is tokenised (train, val, test)" in contents(str(folder))
    (folder / "corpus.json").write_text('{\n "tokenised": false\n}\n', encoding="utf-8")
    assert not next(load_corpus(folder).split("test")).tokenised and load_corpus(folder).identity == raw.identity


@pytest.mark.parametrize(
    ("apart", "behind", "tokenised"), [(40, 10, True), (39, 11, False), (39, 10, False), (90, 9, True)]
)
def test_eight_of_ten_marks_of_fifty_stand_apart(apart, behind, tokenised):
    assert looks_tokenised(["a . B"] * apart + ["a. B"] * behind) == tokenised


def test_a_folder_that_looks_tokenised_is_told_how_to_say_it(tmp_path):
    """Nothing is guessed; plain text, French marks and a few sentences give no hint."""
    texts = {
        "apart": "it rained , and we left .",
        "plain": "It rained, and we left.",
        "French": "Il pleut ; on part ?",
    }
    hint = 'its text looks tokenised, and is cut again: corpus.json in its folder can say {"tokenised": true}'
    for name, text in texts.items():
        for count in (3, 40):
            corpus = Corpus.from_records(train=[{"document": [text], "summary": "x"}] * count)
            documents = list(corpus.split("train"))
            assert not any(d.tokenised for d in documents)
            assert (hint in corpus.remarks()) == (name == "apart" and count == 40)
    said = Corpus.from_records(train=[{"document": [texts["apart"]], "summary": "x", "tokenised": True}] * 40)
    assert len(list(said.split("train"))) == 40 and hint not in said.remarks() and "is tokenised" in said.remarks()


@pytest.mark.parametrize("wrong", ["", "[]", '{"tokenized": true}', '{"tokenised": "yes"}', "{", "\0", "\xff"])
def test_what_it_says_is_checked(folder, wrong):
    (folder / "corpus.json").write_bytes(wrong.encode("latin-1"))
    with pytest.raises(CorpusError, match=r'corpus.json: it must hold {"tokenised": true} or {"tokenised": false}'):
        load_corpus(folder)


def test_a_record_says_it():
    said = {value: to_document({**RECORD, "tokenised": value}).tokenised for value in (True, False, None, "true", "")}
    assert [value for value, tokenised in said.items() if tokenised] == [True, "true"]
    with pytest.raises(ValueError, match="'tokenised' must be true or false, not 'perhaps'"):
        to_document({**RECORD, "tokenised": "perhaps"})
    corpus = Corpus.from_records(train=[{**RECORD, "tokenised": True}], test=[RECORD])
    assert [next(corpus.split(name)).tokenised for name in ("train", "test")] == [True, False]
    assert "(train)" in corpus.remarks()


def test_the_catalogue_says_it(tmp_path, monkeypatch):
    """Of the copies of Cohan et al.'s sets and of Gigaword; a folder's own word goes before."""
    tokenised = {name for name, corpus in {**HUB, **MANUAL}.items() if corpus.tokenised}
    assert tokenised == {"arxiv", "pubmed", "gigaword"}
    data = tmp_path / "data" / "gigaword"
    data.mkdir(parents=True)
    (data / "train.article.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    (data / "train.title.txt").write_text(f"{TITLE}\n", encoding="utf-8")
    monkeypatch.setattr("lib.data.corpora.project_root", lambda: tmp_path)
    assert next(load_corpus("gigaword").split("train")).tokenised
    assert not next(load_corpus(data).split("train")).tokenised, "a path is a folder that says nothing"
    (data / "corpus.json").write_text('{"tokenised": false}', encoding="utf-8")
    assert not next(load_corpus("gigaword").split("train")).tokenised


def test_test_documents_of_another_corpus_keep_theirs(folder, tmp_path):
    other = Corpus.from_records(test=[RECORD])
    (folder / "corpus.json").write_text(SAYING, encoding="utf-8")
    both = load_corpus(folder).tested_on(other)
    assert [next(both.split(name)).tokenised for name in ("train", "test")] == [True, False]


def test_headlines_with_hyphenated_words_stay():
    """Rush et al.'s filter looks for words that are a hyphen, and a hyphenated word is none."""
    made = {t: HeadlineOptions().example(to_document({**RECORD, "tokenised": t})) for t in (False, True)}
    headline = made[True].summary[:5]
    assert headline == TITLE.split() and "##%" in made[True].words
    assert fits(made[True].words, headline) and not fits(made[False].words, made[False].summary[:7])


@pytest.mark.parametrize("options", [CohanOptions(), CohanOptions(whole_sentences=True), ArticleOptions()])
def test_words_of_source_and_summary(options):
    example = options.example(to_document({**RECORD, "tokenised": True}))
    assert example.words == TEXT.split() and example.summary == [*TITLE.split(), *[".", "rain", "is", "far-off", "."]]


def test_prepared_corpora_know_it(folder, capsys):
    """The words, and where the sentences of a summary end, also after they were saved; another text is another
    corpus."""
    options = ArticleOptions(vocab_size=40, window=8, stride=4)
    raw = options.prepare(load_corpus(folder), folder=folder / "raw", progress=False)
    (folder / "corpus.json").write_text(SAYING, encoding="utf-8")
    options.prepare(load_corpus(folder), folder=folder / "prepared", progress=False)
    corpus = PreparedCorpus.load(folder / "prepared", ArticleOptions)
    assert corpus.fingerprint != raw.fingerprint
    assert {"drought-hit", "far-off", "12%"} <= set(corpus.vocabulary.words)
    assert target_sentences(corpus["train"][0], lower=True).tolist() == [6, 4]
    assert corpus["train"][0].tokenised and not raw["train"][0].tokenised
    assert "its text is tokenised (train, val, test)" in corpus.remarks


def test_clusters_compare_words_between_spaces():
    """A paragraph has as many of the summary's bigrams as their words say."""
    record = {"paragraphs": ["far-off rain ."], "summary": ["far-off rain", "off rain"]}
    made = {t: ParagraphOptions(clones=1.0).example(to_document({**record, "tokenised": t})) for t in (False, True)}
    assert made[True].recalls == [pytest.approx(1 / 3)] and made[False].recalls == [pytest.approx(3 / 5)]


def test_scores_count_words_between_spaces():
    """n-grams that were copied, and where a summary is cut."""
    document = to_document({**RECORD, "tokenised": True})
    (scores,) = score_systems({"x": [[TEXT]]}, [document], CohanOptions(), words=3).values()
    assert scores["words"] == 3 and scores["repeated"] == [(0, 1)]
    assert np.array(scores["copied"]["5"]).tolist() == [[0, 0]]
