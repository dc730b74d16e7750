"""How papers are read through windows: slides, chunks, links of references; the made-up tasks beside them."""

import json
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
import torch

import companion.studies.windows
import lib
from companion.pages.measured import over_seeds
from companion.studies.links import MEASURES, SentenceLists, copied_from, rank_of
from companion.studies.repetition import log_prob_after
from companion.studies.windows import ORDERS, chunks_of, equal_cuts, jumps_of, reordered, sentence_cuts
from companion.tasks import slips, windows
from companion.tasks.synthetic import FACT, planted_facts
from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import EOS, SLIDE
from lib.decoding.search import DecodeConfig
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from lib.models.windowed import count_windows
from lib.system.errors import InputError
from lib.system.files import trained_folder

# ------------------------------------------------------------------------------------------------------------ papers


def test_symbols_in_a_row_are_one_slide():
    assert jumps_of([7, SLIDE, SLIDE, SLIDE, 8, 9, SLIDE, 7]) == [3, 1]
    assert jumps_of([SLIDE, 7, SLIDE, SLIDE]) == [1, 2]
    assert jumps_of([SLIDE, 8, 9]) == [1] and jumps_of([7, 8]) == []


def test_slides_over_whole_papers(monkeypatch):
    """Shortest texts first, in groups; of each group as many words are written as its longest text has windows,
    where a summary in training had its share for each window."""
    run, groups = lib.load(trained_folder("windowed")), []
    window, stride = run.model.config.window, run.model.config.stride
    options = replace(run.options, source_tokens=window + 2 * stride, summary_tokens=20)
    run = replace(run, encoder=replace(run.encoder, options=options), decode=DecodeConfig(max_length=10))
    papers = [Document(str(n), "", [""], [[" ".join(["moss"] * n)]], ["moss ."]) for n in (2000, 50, 90, 1000, 500)]

    def written(model, texts, decode):
        groups.append(([len(text.source) for text in texts], decode.max_length))
        return [Namespace(ids=[7, *[SLIDE] * (len(text.source) // 60), 8, SLIDE, 9]) for text in texts]

    monkeypatch.setattr(companion.studies.windows, "TOGETHER", 3)
    monkeypatch.setattr(companion.studies.windows, "batches", lambda model, texts, size, vocabulary: texts)
    monkeypatch.setattr(companion.studies.windows, "written", written)
    slides = companion.studies.windows.slides(run, papers, Namespace())
    lengths = sorted(length for texts, _ in groups for length in texts)
    counts = [int(count_windows(length, window, stride)) for length in lengths]
    assert [length for texts, _ in groups for length in texts] == lengths and len(groups) == 2
    assert [most for _, most in groups] == [20 // 3 * count for count in (counts[2], counts[4])] == [12, 36]
    assert slides["windows"] == counts and slides["slides"] == [[n // 60, 1] if n >= 60 else [1] for n in lengths]
    assert slides["windows moved on by"] == [n // 60 + 1 for n in lengths]
    assert slides["slide 1"]["papers"] == 5 and slides["slide 1"]["sizes"] == [j[0] for j in slides["slides"]]
    assert slides["slide 2"]["papers"] == 4 and slides["slide 3"]["papers"] == 0


def test_words_of_references_from_the_windows_between(monkeypatch):
    """Those after one symbol or more that are not of the last window; texts of two windows have none between."""
    targets = [
        [7, 7, SLIDE, 8, SLIDE, 9, EOS],
        [7, 8, SLIDE, SLIDE, SLIDE, 9, EOS],
        [SLIDE, 7, 7, 7, SLIDE, SLIDE, 8],
    ]
    texts = [Namespace(source=range(n), target=np.array(t)) for n, t in zip((20, 25, 30, 15), [*targets, targets[0]])]
    used = []
    options = Namespace(mark=lambda text, vectors: used.append(vectors) or text)
    model = Namespace(config=Namespace(window=10, stride=5))
    run = Namespace(model=model, options=options, encode=lambda documents: texts)
    monkeypatch.setattr(companion.studies.windows, "_vectors", lambda *_: {"of the run": None, "learned": "vectors"})
    assert companion.studies.windows.references(run, [], Namespace()) == {
        "vectors": "learned", "papers": 3, "no word between": 1,
        "words between": f"{100 * (1 + 0 + 4) / (4 + 3 + 4):.2f} (no interval: 3 documents)",
    }  # fmt: skip
    assert used == ["vectors"] * 4
    texts[:] = texts[3:]
    assert companion.studies.windows.references(run, [], Namespace())["papers"] == 0


TEXT = EncodedDocument.of("a", np.arange(10, 20), [3, 5, 2], [10, 11, EOS], ["zebra"])


def test_chunks_put_together_are_the_text():
    for cuts in (equal_cuts(TEXT, 4), sentence_cuts(TEXT, 3), []):
        parts = chunks_of(TEXT, cuts)
        assert np.concatenate([part.source for part in parts]).tolist() == TEXT.source.tolist()
        assert [int(part.sentence_lengths.sum()) for part in parts] == [len(part.source) for part in parts]
        assert all(part.sentence_lengths.min() > 0 and part.unknown == ["zebra"] for part in parts)


def test_where_a_text_is_cut():
    assert equal_cuts(TEXT, 2) == [5] and [len(p.source) for p in chunks_of(TEXT, [5])] == [5, 5]
    assert sentence_cuts(TEXT, 2) == [3], "of the ends 3 and 8 the nearest; of equals the first"
    assert sentence_cuts(TEXT, 3) == [3, 8], "nearest to 3 and 6"
    assert chunks_of(TEXT, [5])[0].sentence_lengths.tolist() == [3, 2], "a sentence that a cut goes through is two"


@pytest.mark.parametrize(("count", "first_words"), [(1, [10]), (2, [10, 15]), (4, [10, 17])])
def test_the_first_and_the_last_chunk(count, first_words):
    parts = companion.studies.windows.CHUNKS["first and last chunk"](TEXT, count)
    assert [part.source[0] for part in parts] == first_words and parts[-1].source[-1] == 19


def test_a_chunk_is_summarized_in_its_share_of_the_words(monkeypatch):
    """At least as many words, rounded up, and at most, rounded down."""
    decoded = []
    monkeypatch.setattr(companion.studies.windows, "batches", lambda *_: [])
    monkeypatch.setattr(
        companion.studies.windows, "written", lambda model, texts, config: decoded.append(config) or []
    )
    run = Namespace(model=None, vocabulary=None, decode=DecodeConfig(min_length=35, max_length=100))
    for share in (1, 3):
        assert companion.studies.windows._summaries(run, [], share) == []
    assert [(config.min_length, config.max_length) for config in decoded] == [(35, 100), (12, 33)]


def test_a_copied_sentence_has_one_source():
    source = [[1, 2, 3, 4, 5, 6], [9, 1, 2, 3, 4, 5], [7, 7, 7]]
    assert copied_from([0, 1, 2, 3, 4, 5, 6], source) == 0, "the longest run of words"
    assert copied_from([0, 1, 2, 3, 4, 5, 0], source) is None, "two sentences share it"
    assert copied_from([0, 9, 1, 2, 3, 0], source) is None, "four words are too few"
    assert copied_from([1, 2, 0, 3, 4, 5, 6], source) is None, "a run has no gap"


def test_ranks_begin_at_one_and_equals_keep_their_order():
    assert [rank_of(np.array([0.2, 0.9, 0.2]), place) for place in range(3)] == [2, 1, 3]


@pytest.fixture
def sentences():
    """A reference sentence that was copied from the short sentence 1; sentence 0 is long and of common words."""
    source = [[6, 7, 6, 7, 8, 6, 7, 9, 6, 7], [10, 6, 11, 7, 12], [6, 7, 6, 13]]
    return SentenceLists([np.array([10, 6, 11, 7, 12])], [np.array(s) for s in source])


@pytest.mark.parametrize("name", MEASURES)
def test_a_copy_is_most_similar_where_vectors_tell_words_apart(sentences, name):
    similar = MEASURES[name](sentences, np.eye(20))
    assert similar.shape == (1, 3) and rank_of(similar[0], 1) == 1


def test_centred_sums_do_not_have_what_all_words_have_in_common(sentences):
    common = np.eye(20) + 100.0
    assert MEASURES["sums"](sentences, common).min() > 0.99, "everything is similar"
    assert MEASURES["sums, centred"](sentences, common).min() < 0.5


def test_by_rarity_a_word_that_every_sentence_has_counts_for_nothing():
    source = [np.array([6, 6, 6, 7]), np.array([6, 8])]
    sentences = SentenceLists([np.array([6, 6, 6, 8])], source)
    assert MEASURES["sums"](sentences, np.eye(9))[0].argmax() == 0
    assert MEASURES["sums, by rarity"](sentences, np.eye(9))[0] == pytest.approx([0, 1])


def test_ranks_of_links_over_papers(sentences):
    row = companion.studies.windows._ranked(MEASURES["tf-idf"], [sentences] * 12, np.eye(20))
    assert row["sentences"] == row["papers"] == 12 and row["first"] == "100.00"
    assert row["words, true"] == row["words, linked"] == 5 and row["rank"] == "1.00"


def test_a_link_is_to_the_most_similar_sentence():
    """Of five sentences of 1 to 5 words, the second is most similar to each of four that were copied."""
    text = Namespace(source=[[0] * n for n in range(1, 6)], copies=[(0, 1), (1, 0), (2, 3), (3, 4)])
    row = companion.studies.windows._ranked(lambda *_: np.array([[4, 5, 3, 2, 1]] * 4), [text] * 10, np.eye(1))
    assert row["by paper"] == [[1, 2, 1 + 2 + 4 + 5, 4]] * 10
    assert row["first"].startswith("25.00") and row["first three"].startswith("50.00")
    assert (row["words, linked"], row["words, true"], row["words, all"]) == (2, 3, 3)
    assert row["similarity and length"] == -0.9, "ranks 4 5 3 2 1 and 1 2 3 4 5: 1 - 6 * 38 / (5 * 24)"


def test_shares_of_links_differ_in_points():
    right, wrong = ({"by paper": [[hits, 0, 0, 2]] * 12} for hits in (2, 1))
    rows = companion.studies.windows.with_differences({"a": right, "b": wrong, "c": dict(right)})
    assert [rows[name]["difference"] for name in "abc"] == [
        "", "-50.00 [-50.00, -50.00], p < 0.01", "+0.00 [+0.00, +0.00], p 1.00",
    ]  # fmt: skip


NAMES = ["intro", "methods", "results", "conclusion"]
PAPER = Document("p", "", NAMES, [[f"{name[0]} ."] for name in NAMES], ["s ."])


@pytest.mark.parametrize(
    "name, names",
    [
        ("conclusion first", ["conclusion", "intro", "methods"]),
        ("conclusion in the middle", ["intro", "conclusion", "methods"]),
        ("conclusion last", ["intro", "methods", "conclusion"]),
    ],
)
def test_three_sections_in_another_order(name, names):
    paper = reordered(PAPER, ORDERS[name])
    assert paper.section_names == names and [text[0][0] for text in paper.sections] == [n[0] for n in names]
    assert paper.summary == PAPER.summary


def test_an_order_needs_papers_with_three_sections():
    with pytest.raises(InputError, match="orders: at least two papers with three sections are needed"):
        companion.studies.windows.orders(None, [PAPER], Namespace())


def test_papers_in_every_order_are_scored_together(monkeypatch):
    """Those with three sections, as they are and in each order."""
    short = Document("q", "", NAMES[:2], PAPER.sections[:2], ["s ."])
    monkeypatch.setattr(
        companion.studies.windows, "_summaries", lambda run, papers: [paper.section_names[0] for paper in papers]
    )
    monkeypatch.setattr(companion.studies.windows, "_scored", lambda systems, papers, run, against: (systems, papers))
    run = Namespace(encode=lambda papers: papers)
    systems, papers = companion.studies.windows.orders(run, [PAPER, short, PAPER, PAPER], Namespace())
    assert papers == [PAPER] * 3 and systems == {
        "as they are": ["intro"] * 3, "conclusion first": ["conclusion"] * 3,
        "conclusion in the middle": ["intro"] * 3, "conclusion last": ["intro"] * 3,
    }  # fmt: skip


def test_a_difference_is_from_the_system_that_it_stands_against(monkeypatch):
    scores = {"a": 10.0, "b": 12.0, "c": 11.0}
    parts = {name: {"rouge": [[value] * 3] * 12, "repeated": [(0, 5)], "words": 9} for name, value in scores.items()}
    monkeypatch.setattr(companion.studies.windows, "score_systems", lambda *_: parts)
    rows = companion.studies.windows._scored({}, [], lib.load(trained_folder("windowed")), {"b": "a", "c": "b"})
    assert [rows[name]["difference"].split()[0] for name in "bc"] == ["+2.00", "-1.00"]
    assert rows["a"]["difference"] == rows["a"]["compared with"] == "" and rows["c"]["compared with"] == "b"


@pytest.mark.parametrize(
    "run, arguments, message",
    [
        ("windowed", ["--documents", "1"], "--documents must be at least 2, not 1"),
        ("windowed", ["pages"], "pages"),
        ("mem2mem", [], "this run has no windows"),
    ],
)
def test_what_cannot_be_measured_is_one_line(run, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        companion.studies.windows.main([f"trained/{run}", *arguments, "--dataset", "pmc-sample"])
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)


def test_a_part_that_is_there_is_not_measured_again(tmp_path, monkeypatch, capsys):
    calls = []
    parts = {name: lambda *_, name=name: calls.append(name) or {"n": 1} for name in ("slides", "links")}
    monkeypatch.setattr(companion.studies.windows, "PARTS", parts)
    monkeypatch.setattr(companion.studies.windows, "unseen", lambda *_: [None, None])
    output = str(tmp_path / "papers.json")
    companion.studies.windows.main(["trained/windowed", "links", "--dataset", "pmc-sample", "--output", output])
    companion.studies.windows.main(["trained/windowed", "--dataset", "pmc-sample", "--output", output])
    assert calls == ["links", "slides"]
    held = json.loads((tmp_path / "papers.json").read_text("utf-8"))
    assert held["links"] == held["slides"] == {"n": 1} and held["corpus"] == "pmc-sample"
    with pytest.raises(SystemExit, match=r"papers\.json is of another run, corpus or number of documents"):
        companion.studies.windows.main(["trained/windowed", "links", "--dataset", "docstrings", "--output", output])


# ------------------------------------------------------------------------------------------------------------- tasks


def test_every_fact_anywhere_is_whole_in_its_window_and_not_in_its_chunk():
    random, cut = np.random.default_rng(0), 0
    for _ in range(50):
        text = windows.fact_text(random, 5)
        for number, (start, fact) in enumerate(zip(text.starts, text.facts)):
            begin = number * windows.STRIDE
            assert begin <= start and start + windows.WORDS < begin + windows.WINDOW
            assert text.source[start : start + 5].tolist() == [FACT, *fact]
            cut += start // windows.WINDOW != (start + windows.WORDS) // windows.WINDOW
    assert 0.15 < cut / 250 < 0.25, "a fifth lies across the end of a chunk"


def test_summaries_of_chunks_have_the_facts_that_are_whole():
    text = windows.FactText(np.arange(7, 43, dtype=np.int32), [5, 18], [(13, 14, 15, 16), (26, 27, 28, 29)])
    targets = [chunk.target.tolist() for chunk in windows.in_chunks(text, windows.WINDOW)]
    assert targets == [[13, 14, 15, 16, EOS], [EOS]]
    targets = [chunk.target.tolist() for chunk in windows.in_chunks(text, windows.STRIDE)]
    assert targets == [[13, 14, 15, 16, EOS], [26, 27, 28, 29, EOS]]


def test_through_windows_symbols_stand_between_the_facts():
    fact, other = (8, 9, 10, 11), (9, 9, 9, 9)
    (document,) = windows.in_windows(windows.FactText(np.arange(36, dtype=np.int32), [5, 21], [fact, other]))
    assert document.target.tolist() == [*fact, SLIDE, *other, EOS]
    assert windows.facts_in_place(document.target[:-1]) == [list(fact), list(other)]


def test_facts_without_symbols_are_four_words():
    assert windows.facts_in_place([1, 2, 3, 4, 5, 6, 7, 8], "standard") == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_wrong_words_are_fed_and_right_ones_asked_for():
    batch = slips._batch(0, 8)
    wrong = slips.with_wrong_words(batch, 0.5, torch.Generator().manual_seed(0))
    share = (wrong.target_input != batch.target_input).float().mean()
    assert 0.3 < share < 0.6 and (wrong.target_input[:, 0] == batch.target_input[:, 0]).all()
    assert wrong.target is batch.target
    same = slips.with_wrong_words(batch, 0.0, torch.Generator().manual_seed(0))
    assert (same.target_input == batch.target_input).all()


@pytest.fixture
def facts():
    return make_batch(planted_facts(1, 0, 3), windows.VOCABULARY)


def test_parts_are_left_out_one_at_a_time(facts):
    model = windows.small_model(0).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    without = {part: change(model) for part, change in windows.LEFT_OUT.items()}
    with torch.no_grad():
        results = {part: each.decode(facts.target_input, each.encode(facts))[0] for part, each in without.items()}
    reach = {part: result.copy[0, 0].count_nonzero().item() for part, result in results.items()}
    assert reach == {"nothing": 20, "window": 52, "sliding": 20, "copying": 20, "generating": 20}
    at_the_end = {part: int(result.windows[0, -1]) for part, result in results.items()}
    assert at_the_end == {"nothing": 2, "window": 2, "sliding": 0, "copying": 2, "generating": 2}
    assert results["copying"].switch.sigmoid().min() > 0.99 and results["generating"].switch.sigmoid().max() < 0.01
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "it stays as it was"


def test_a_first_look_is_weighed_where_facts_begin(facts):
    look = windows._first_look(windows.small_model(0).eval(), planted_facts(3, 0, 3))
    assert 0 < look["first look, facts"] < 0.2 and 0.05 < look["first look, largest"] < 1, "20 words, nothing learned"
    assert facts.source[0][(facts.source == FACT).roll(1, 1)[0]][0] == facts.target[0, 0], "a fact begins after FACT"


def test_what_attends_to_everything_may_still_write_symbols(facts):
    model = windows.LEFT_OUT["window"](windows.small_model(0))
    state = model.encode(facts)
    output, _ = model.decode(facts.target_input[:, :1], state)
    assert (model.distribution(output, state, 0)[:, SLIDE] > 0).all()


# -------------------------------------------------------------------------------------------- sentences said again


def test_a_sentence_is_read_after_those_before_it():
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(20, embedding=4, hidden=6, bottleneck=4)).eval()
    document = EncodedDocument.of("a", [7, 8, 9, 7], [4], [8, 9, EOS])
    alone, after = (log_prob_after(model, document, [8, 9], before) for before in ([], [[7, 7]]))
    assert alone < 0 and after < 0 and alone != after
    both = log_prob_after(model, document, [7, 7, 8, 9])
    assert both == pytest.approx((log_prob_after(model, document, [7, 7]) + after) / 2, abs=1e-5)


@pytest.mark.parametrize("values, text", [([0.5, 0.5], "0.50"), ([0.2, 0.4], "0.30 [0.20, 0.40]"), ([], "")])
def test_a_measure_over_seeds(values, text):
    assert over_seeds(values) == text
