"""Tables of results: what is in them, how runs are scored, and where tables are kept."""

import gzip
import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import lib
from companion import make_tables
from companion.results import kept as kept_tables
from companion.results.kept import kept_table
from companion.results.numbers import make_table, page_table, table_numbers
from companion.results.scores_file import SCORES, read_table_scores
from companion.results.text import markdown, pairs_frame, published_table, setting, table_frame, without_published
from lib import score
from lib.data.corpora import Corpus, load_corpus
from lib.decoding.search import DecodeConfig
from lib.evaluation.baselines import matches, oracle
from lib.evaluation.measures import SUPPORT
from lib.evaluation.metrics import rouge
from lib.evaluation.scores import ALL_LETTERS, score_run, score_systems
from lib.papers import PAPERS, page_table_named, resolve, table_named
from lib.papers.tables import Row, RunSpec, Table, slug
from lib.system.files import project_root
from lib.train import main as train_main

TABLES = [name for paper in PAPERS.values() for name in paper.tables]
PAGE_TABLES = [name for paper in PAPERS.values() for name in paper.page_tables]
FIGURES = [name for paper in PAPERS.values() for name in paper.figures]
SHOWN = [name for paper in PAPERS.values() for name in (*paper.samples, *paper.run_figures)]
RUNS = [
    (paper, row.run) for paper in PAPERS.values() for table in paper.tables.values() for row in table.rows if row.run
]

# ------------------------------------------------------------------------------------------------- the tables


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_of_what_exists(name):
    paper, table = table_named(name)
    labels = [row.label for row in table.rows]
    assert len(set(labels)) == len(labels)
    assert {label for pair in table.pairs for label in pair} <= {row.label for row in table.rows if row.part}
    assert paper.dataset
    published = any(row.published for row in table.rows)  # or a claim that has no table in the paper
    columns = [c for c in table.columns if c != "R-Lsum" or "R-L" not in table.columns]  # a paper has one R-L
    for row in table.rows:
        assert row.published or not (published and row.run), "what is not published needs no training"
        assert row.published or row.part
        assert all(len(v) == len(columns) for v in row.published.values()), row.label
        for size in ("demo", "paper") if row.run else ():
            variant, words = None if row.run.preset_row else row.run.variant, dict(row.run.vocabulary).get(size)
            resolve(paper.name, row.run.preset(size), variant, {"vocab_size": words}).model_config()


def test_names_of_runs_are_their_own():
    """Two runs that differ have different folders; rows that differ in scoring alone share one."""
    trained = {(paper.name, replace(run, scaled=(), exactly=None, numbers=False)) for paper, run in RUNS}
    for size in ("demo", "paper"):
        names = {PAPERS[name].run_name(run, size) for name, run in trained}
        assert len(names) == len({tuple(PAPERS[name].run_arguments(run, size)) for name, run in trained})
    assert slug("+encoder memory") == "encoder-memory" and slug("aclsum:paragraphs") == "aclsum-paragraphs"


def test_arguments_of_runs():
    plain, row = RunSpec("+read"), RunSpec("CD_II", preset_row=True)
    arguments = PAPERS["mem2mem"].run_arguments(plain, "small")
    assert arguments == ["mem2mem", "--preset", "small", "--variant", "+read"]
    assert PAPERS["windowed"].run_arguments(row, "paper") == ["windowed", "--preset", "CD_II"]
    assert PAPERS["windowed"].run_arguments(row, "demo") == ["windowed", "--preset", "demo CD_II"]
    paper, sized = PAPERS["read_again"], RunSpec("gru", vocabulary=(("paper", 15_000), ("demo", 500)))
    assert paper.run_arguments(sized, "demo")[-2:] == ["--options.vocab-size", "500"]
    assert paper.run_name(sized, "demo") == "read_again--gru--500"


def test_a_row_that_reads_more_at_test_time():
    """Two thirds more paragraphs than in training, from the same run."""
    rows = {row.label: row.run for row in table_named("hierarchical_table2")[1].rows if row.run}
    longer = rows["HT, longer input at test"]
    assert longer.scaled == (("paragraphs", Fraction(5, 3)),) and replace(longer, scaled=()) == rows["HT"]


def test_every_transformer_can_read_more_at_test_time():
    """The paper's footnote: it helps the hierarchical one alone. Each is compared with itself, from one run."""
    table = table_named("hierarchical_table_longer")[1]
    rows = {row.label: row.run for row in table.rows}
    assert [first for first, _ in table.pairs] == ["FT 800", "T-DMCA", "HT"]
    for first, second in table.pairs:
        assert rows[second].scaled and not rows[first].scaled
        assert replace(rows[second], scaled=()) == rows[first] and second == f"{first}, longer input at test"
        options = resolve("hierarchical_transformer", "paper", first).options
        assert all(isinstance(getattr(options, option), int) for option, _ in rows[second].scaled)
    other = {row.label: row.run for row in table_named("hierarchical_table2")[1].rows}
    assert other["HT, longer input at test"] == rows["HT, longer input at test"], "which is scored once"


def test_a_corpus_of_the_paper_has_its_own_rows():
    _, table = table_named("windowed_table")
    labels = {name: [row.label for row in table.rows_for(name)] for name in ("wikihow", "aclsum")}
    assert labels["wikihow"] == ["Lead (3 sentences)", "WIKI_I", "WIKI_II", "WIKI_III", "WIKI_IV", "WIKI_V"]
    assert {"CD_I", "WIKI_V"} <= set(labels["aclsum"]), "all of them, on any other corpus"


def test_pages_that_measure_exist(request):
    pages = {path.stem for path in (request.config.rootpath / "notebooks").glob("*.py")}
    assert set(PAPERS) <= pages
    figures = {path.stem for path in (request.config.rootpath / "figures").glob("*.json")}
    assert {page_table_named(name)[1].figure for name in PAGE_TABLES} <= figures
    assert {figure for paper in PAPERS.values() for figure in paper.figures.values()} <= figures


def test_windowed_rows_at_demo_size():
    """Three tenths of each row's words, window and step; a row without a window has none."""
    for name in ("CD_I", "CD_II", "WIKI_I", "WIKI_II", "WIKI_III", "WIKI_IV", "WIKI_V"):
        paper, demo = (PAPERS["windowed"].presets[n] for n in (name, f"demo {name}"))
        assert demo.options.source_tokens == round(0.3 * paper.options.source_tokens)
        assert demo.variant == paper.variant in PAPERS["windowed"].variants
        assert (demo.options.window is None) == (paper.options.window is None)
    assert PAPERS["windowed"].presets["demo CD_II"].options.window == 120
    assert PAPERS["windowed"].presets["demo"].train == PAPERS["windowed"].presets["demo CD_I"].train


def test_published_numbers():
    frame = published_table("mem2mem_table1")
    assert frame.loc["Mem2Mem", ("arxiv", "R-1")] == 41.81
    assert np.isnan(frame.loc["Discourse-aware", ("newsroom", "R-1")])
    assert published_table("mem2mem_table4").loc["HRED", "5"] == 38.1


# ---------------------------------------------------------------------------------------------- scores and tables


PLAIN = "plain beam search"
TEN, LEXRANK = "Lead (10 sentences)", "LexRank (sentences, as training references)"


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two rows of Mem2Mem's tables, trained for two steps, and the baselines."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        data = ["--dataset", "aclsum", "--limit", "4"]
        for name, variant in (("hred", "hred"), ("read", "+read")):
            run = ["--preset", "demo", "--variant", variant, "--steps", "2", "--output", str(folder / name)]
            train_main(["mem2mem", *data, *run])
            score.main(["run", str(folder / name), *data, "--documents", "3"])
        score.main(["baselines", "mem2mem", *data, "--documents", "3", "--output", str(folder / "baselines.json")])
    return folder


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_scores_of_a_run(scored):
    found = read(scored / "read" / "scores.json")
    lines = [
        json.loads(line) for line in (scored / "read" / "summaries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert found["ids"] == [line["id"] for line in lines] and len(lines) == 3
    expected = rouge([line["summary"] for line in lines], [line["reference"] for line in lines])
    assert np.allclose(found["parts"]["summaries"]["rouge"], expected, atol=1e-3)
    assert found["steps"] == 2 and found["seed"] == 0 and found["parameters"] > 100_000
    assert set(found["parts"]) == {"summaries", PLAIN, "extracts", "reference"} and found["made_with"]["code"]
    assert found["decoding"] == "trigram blocking" and not any(n for n, _ in found["parts"]["summaries"]["repeated"])
    assert any(n for n, _ in found["parts"][PLAIN]["repeated"]), "where nothing forbids it, it says things twice"
    assert found["parts"]["extracts"]["rouge"] != found["parts"]["summaries"]["rouge"]
    assert min(n for n, _ in found["parts"]["extracts"]["copied"]["5"]) > 0, "heads copy whole sentences"
    assert set(read(scored / "hred" / "scores.json")["parts"]) == {"summaries", PLAIN, "reference"}, (
        "HRED has no heads"
    )
    for part in found["parts"].values():
        assert all(len(counts) == 3 for counts in part["support"].values()) and set(part["support"]) == set(SUPPORT)
    assert sum(n for n, _ in found["parts"]["extracts"]["support"]["words"]) == 0, (
        "chosen sentences have no other words"
    )


def test_as_many_documents_are_scored_as_the_run_was_prepared_with(scored, tmp_path, monkeypatch):
    copy = shutil.copytree(scored / "hred", tmp_path / "run")
    config = read(copy / "config.json") | {"documents": {"train": 4, "val": 2, "test": 3}}
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.setattr(score, "score_run", lambda run, documents, *_: ({"parts": {}, "n": len(documents)}, []))
    monkeypatch.setattr(score, "write_summaries", lambda *_: None)

    def scored_with(*given):
        output = tmp_path / "scores.json"
        output.unlink(missing_ok=True)
        score.main(["run", str(copy), "--dataset", "aclsum", "--output", str(output), *given])
        return read(output)["n"]

    assert [scored_with(), scored_with("--split", "val")] == [3, 2]
    assert [scored_with("--limit", "6"), scored_with("--limit", "6", "--documents", "5")] == [6, 5], "as is asked"


def test_scores_of_baselines(scored):
    parts = read(scored / "baselines.json")["parts"]
    assert set(parts) == {"lead", "lexrank", "oracle", "lead-3", "lead-10", "reference", "oracle-10", "labelled"}
    means = {name: np.mean(part["rouge"], 0)[0] for name, part in parts.items()}
    assert means["oracle"] > means["labelled"] > max(means["lead"], means["lexrank"])
    texts = list(load_corpus("aclsum").split("test", 3))
    wanted = {
        "oracle-10": [oracle(d.sentences, d.summary, 10) for d in texts],
        "labelled": [[d.sentences[i] for i in matches(d.sentences, d.summary, 2)] for d in texts],
    }
    for name, summaries in wanted.items():
        assert np.allclose(parts[name]["rouge"], rouge(summaries, [d.summary for d in texts]), atol=1e-3), name
    found, every = np.sum(parts["reference"]["copied"]["5"], 0)
    assert 0 < found < every, "references share some 5-grams with their papers"
    assert np.allclose(parts["reference"]["rouge"], 100), "whole, and in their own words"


def test_a_table_in_one_decoding_has_a_row_for_each_run(scored):
    found = read(scored / "hred" / "scores.json")
    numbers = make_table("mem2mem_table4", {"HRED": [found]}, "aclsum", "demo")
    assert [r["label"] for r in numbers["rows"]] == ["HRED"]
    assert "decoding" not in numbers and "repeated" not in numbers["rows"][0]


def test_what_chooses_sentences_has_no_decoding(scored):
    found = read(scored / "read" / "scores.json")
    chosen = {**found, "parts": {"summaries": found["parts"]["extracts"]}, "decoding": PLAIN}
    numbers = make_table("mem2mem_table1", {"Sent-CLF": [chosen], "Mem2Mem": [found]}, "aclsum", "demo")
    assert [r["label"] for r in numbers["rows"] if "scores" in r] == ["Sent-CLF", "Mem2Mem", f"Mem2Mem, {PLAIN}"]
    assert numbers["decoding"] == "trigram blocking"


def table_2(scored, corpus="aclsum"):
    given = {"hred": [read(scored / "hred" / "scores.json")] * 2, "+read": [read(scored / "read" / "scores.json")]}
    return make_table("mem2mem_table2", given, corpus, "demo", "snakemake -c2 mem2mem_table2")


def test_a_table(scored):
    numbers = table_2(scored)
    assert [row["label"] for row in numbers["rows"]] == ["hred", f"hred, {PLAIN}", "+read", f"+read, {PLAIN}"]
    row, plain = numbers["rows"][:2]
    assert numbers["documents"] == 3 and numbers["decoding"] == "trigram blocking" and "missing" not in plain
    expected = np.mean(read(scored / "hred" / "scores.json")["parts"]["summaries"]["rouge"], 0)
    assert [row["scores"][c]["mean"] for c in numbers["columns"]] == pytest.approx(expected, abs=0.01)
    assert row["by seed"]["R-1"] == pytest.approx([expected[0]] * 2, abs=0.01)
    of_plain = read(scored / "hred" / "scores.json")["parts"][PLAIN]
    means = np.mean(of_plain["rouge"], 0)
    assert [plain["scores"][c]["mean"] for c in numbers["columns"]] == pytest.approx(means, abs=0.01)
    said_before, every = np.sum(of_plain["repeated"], 0)
    assert row["repeated"] == 0 and plain["repeated"] == pytest.approx(100 * said_before / every, abs=0.06)
    pairs = [("hred", "+read"), (f"hred, {PLAIN}", f"+read, {PLAIN}")]
    assert [(p["first"], p["second"]) for p in numbers["pairs"]] == pairs
    text = markdown(numbers)
    assert "Trigram blocking, unless a row says otherwise." in text and f"| {plain['repeated']:.0f}% |" in text
    assert f"| `+read`, {PLAIN} |" in text
    assert f", {row['parameters']:,} to " in text and "| hred | " in text
    assert (
        "40.02 / 15.82 / 36.28" in text
        and "+read - hred" in text.partition("<details>")[2]
        and "Published: pubmed, its R-L summary-level." in text
    )
    assert "`aclsum`, 4 documents to train on, 3 of its test split scored; preset `demo`, " in text
    assert text.endswith("Made by `snakemake -c2 mem2mem_table2`.")
    assert table_frame(numbers).loc["+read", "published"] == "42.06 / 16.56 / 38.11"
    assert pairs_frame(numbers).loc["+read - hred", "R-1"].endswith(" (no interval: 3 documents)")
    assert table_frame(numbers).loc["hred", "R-1"] == f"{row['scores']['R-1']['mean']:.2f} (no interval: 3 documents)"
    assert "too few documents for an interval" in text and "p < 0.01" not in text
    enough = {**numbers, "documents": 10}
    assert pairs_frame(enough).loc["+read - hred", "R-1"].count("p ") == 1
    assert "(no interval" not in markdown(enough) and "95% bootstrap interval over documents" in markdown(enough)


def test_rows_that_are_not_built_say_so(scored, monkeypatch):
    paper, table = table_named("mem2mem_table1")
    rows = tuple(Row(r.label, r.published) if "TLM" in r.label else r for r in table.rows)
    monkeypatch.setitem(paper.tables, "mem2mem_table1", replace(table, rows=rows))
    read_again = read(scored / "read" / "scores.json")
    baselines = read(scored / "baselines.json")
    numbers = make_table("mem2mem_table1", {TEN: [baselines], "Mem2Mem": [read_again]}, "aclsum", "demo")
    row = table_frame(numbers).loc["TLM, hybrid"]
    assert row["R-1"] == "not built" and row["published"].startswith("42.13")
    numbers = make_table("mem2mem_table1", {TEN: [baselines], "Mem2Mem": [read_again]}, "newsroom", "demo")
    assert "TLM, hybrid" in table_frame(numbers).index and "Discourse-aware" not in table_frame(numbers).index
    assert table_frame(numbers).loc["Mem2Mem", "published"] == "20.00 / 6.60 / 16.80"


def test_published_numbers_of_another_corpus_are_named():
    """Lead of three sentences is published for Newsroom alone, where the others have PubMed beside them."""
    published = {"a": {"pubmed": [1.0], "newsroom": [2.0]}, "b": {"newsroom": [3.0]}, "c": {}}
    rows = [{"label": label, "published": values} for label, values in published.items()]
    for corpus, expected in (("aclsum", ["1.00", "3.00 (newsroom)", ""]), ("newsroom", ["2.00", "3.00", ""])):
        frame = table_frame({"corpus": corpus, "columns": ["R-1"], "rows": rows})
        assert list(frame["published"]) == expected


def test_rows_that_a_corpus_cannot_give_say_why(scored):
    """WikiSum comes ranked: its order and its pages are not known."""
    _, table = table_named("hierarchical_table2")
    labels = {name: {row.label for row in table.built_for(name)} for name in ("wikisum", "aclsum")}
    assert labels["aclsum"] - labels["wikisum"] == {"FT 600, no ranking", "HT + discourse graph"}
    given = {label: [read(scored / "read" / "scores.json")] for label in ("FT 600", "HT")}
    row = table_frame(make_table("hierarchical_table2", given, "wikisum", "demo")).loc["FT 600, no ranking"]
    assert "come ranked" in row["R-1"] and row["R-2"] == "" and row["published"].startswith("35.46")


def test_tables_of_clusters_have_the_published_r_l_beside_ours():
    """Which is of summaries in one line; R-Lsum is of a sentence a line."""
    documents = list(load_corpus("aclsum:paragraphs").split("test", 3))
    parts = score_systems({"lead": [d.sentences[:4] for d in documents]}, documents)
    scores = {"ids": [d.id for d in documents], "split": "test", "training documents": 0, "parts": parts}
    for name in ("hierarchical_table2", "hierarchical_table3"):
        assert table_named(name)[1].columns == ("R-1", "R-2", "R-Lsum", "R-L")
    label = "Lead (words, as the reference)"
    numbers = make_table("hierarchical_table2", {label: [scores]}, "aclsum:paragraphs", "demo")
    row = next(row for row in numbers["rows"] if row["label"] == label)
    assert row["scores"]["R-L"]["mean"] == pytest.approx(np.mean(parts["lead"]["one line"]), abs=0.01)
    assert 0 < row["scores"]["R-L"]["mean"] < row["scores"]["R-Lsum"]["mean"]
    assert "R-L is of one line each." in setting(numbers)


def test_rows_of_which_there_is_only_what_is_published_say_why(scored):
    """On every corpus; all other rows of the table are built."""
    _, table = table_named("read_again_table2")
    assert [row.label for row in table.rows if not row.part] == ["TOPIARY", "ABS+"]
    given = {"ABS": [read(scored / "read" / "scores.json")]}
    for corpus, more in (("duc2004", ["Option 2 + copy"]), ("aclsum", [])):
        frame = table_frame(make_table("read_again_table2", given, corpus, "demo"))
        assert list(frame.index) == ["TOPIARY", "ABS", "ABS+", *more]
        assert all("first sentence" in frame.loc[label, "R-1"] for label in more)
        assert frame.loc["TOPIARY", "R-1"].startswith("published only: ")
        assert "DUC 2003" in frame.loc["ABS+", "R-1"] and frame.loc["ABS+", "published"] == "28.18 / 8.49 / 23.81"
        assert frame.loc["ABS", "published"] == "26.55 / 7.06 / 23.49"


def test_duc_is_scored_on_fifteen_words_with_the_texts_numbers(scored):
    """As Rush et al. (2015) score it; the table says so."""
    _, table = table_named("read_again_table2")
    assert {(row.run.exactly, row.run.numbers) for row in table.rows if row.run} == {(15, True)}
    run = replace(lib.load(scored / "hred"), decode=DecodeConfig(beam=2, min_length=15, max_length=15))
    documents = list(load_corpus("aclsum").split("test", 2))
    scores, summaries = score_run(run, documents, "test", "aclsum", numbers=True)
    assert all(sum(len(sentence.split()) for sentence in summary) == 15 for summary in summaries)
    numbers = make_table("read_again_table2", {"ABS": [scores]}, "duc2004", "demo")
    assert "Runs write exactly 15 words, the text's numbers in place of #." in setting(numbers)
    scores, _ = score_run(replace(run, decode=DecodeConfig(beam=2, max_length=15)), documents, "test", "aclsum")
    assert "Runs write" not in setting(make_table("read_again_table2", {"ABS": [scores]}, "duc2004", "demo"))


def test_numbers_of_the_text_stand_in_the_scored_summary(scored, monkeypatch):
    """By the number of characters alone, as published, of the words of the document itself."""
    (document,) = Corpus.from_records(
        train=[{"document": "In 1987, 31 ships sailed; 12.5% of 204 sank.", "summary": "x y"}]
    ).split("train")
    monkeypatch.setattr(
        "lib.evaluation.scores.summarize", lambda *_: [["## ships of ### sank in ####", "#.# % in ##"]]
    )
    _, summaries = score_run(lib.load(scored / "hred"), [document], "test", "x", numbers=True)
    assert summaries == [["31 ships of 204 sank in 12.5", "204 % in 31"]]


def test_a_run_writes_at_most_so_many_words(scored, tmp_path):
    given = ["--dataset", "aclsum", "--documents", "2", "--max-length", "22"]
    score.main(["run", str(scored / "hred"), *given, "--output", str(tmp_path / "scores.json")])
    summaries = [
        json.loads(line)["summary"]
        for line in (tmp_path / "summaries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert all(0 < len(" ".join(s).split()) <= 22 for s in summaries)


@pytest.fixture
def asked(monkeypatch):
    """What `lib.score run` asks a shipped run for: its documents, decoding, batch size and numbers."""
    found = {}

    def scores(run, documents, split_name, corpus, batch_size, numbers, process):
        asked_for = {"decode": run.decode, "batch_size": batch_size, "corpus": corpus, "numbers": numbers}
        found.update(ids=[d.id for d in documents], **asked_for)
        return {"parts": {}}, []

    monkeypatch.setattr(score, "score_run", scores)
    monkeypatch.setattr(score, "write_summaries", lambda *_: None)
    return found


LEARNED = "PMC4784345"  # a test paper of pmc-sample that stands among the training papers of the shipped run


def score_shipped(tmp_path, *given):
    output = ["--output", str(tmp_path / "scores.json")]
    score.main(["run", str(project_root() / "trained" / "mem2mem"), *given, *output])


def test_papers_that_a_run_has_learned_from_are_not_scored(asked, tmp_path, capsys):
    """Said in a line. In the place of each stands the next one."""
    every = [d.id for d in load_corpus("pmc-sample").split("test")]
    place, unseen = every.index(LEARNED), [name for name in every if name != LEARNED]
    own = write_corpus(tmp_path / "sumpubmed")
    told = f"pmc-sample: without {LEARNED}, which the model has learned from\n"
    for given in (["--dataset", "pmc-sample"], ["--dataset", str(own), "--test", "pmc-sample"]):
        (tmp_path / "scores.json").unlink(missing_ok=True)
        score_shipped(tmp_path, *given)
        assert asked["ids"] == unseen and asked["corpus"] == "pmc-sample" and capsys.readouterr().err == told
    (tmp_path / "scores.json").unlink()
    score_shipped(tmp_path, "--dataset", "pmc-sample", "--documents", str(place + 1))
    assert asked["ids"] == unseen[: place + 1]
    (tmp_path / "scores.json").unlink()
    score_shipped(tmp_path, "--dataset", "pmc-sample", "--split", "val", "--documents", "2")
    score.main(
        [
            *("baselines", "mem2mem", "--dataset", str(own), "--test", "pmc-sample"),
            *("--documents", str(place + 1), "--output", str(tmp_path / "base.json")),
        ]
    )
    assert read(tmp_path / "base.json")["ids"] == unseen[: place + 1], "baselines stand beside such runs"


def write_corpus(folder):
    folder.mkdir()
    for name in ("train", "val", "test"):
        line = json.dumps({"id": name, "document": "A text. It ends.", "summary": "A summary."})
        (folder / f"{name}.jsonl").write_text(line + "\n", encoding="utf-8")
    return folder


def test_a_run_is_scored_with_another_decoding(asked, tmp_path):
    own = lib.load(project_root() / "trained" / "mem2mem").decode
    given = ["--dataset", "pmc-sample", "--documents", "2"]
    score_shipped(tmp_path, *given)
    assert (asked["decode"], asked["batch_size"], asked["numbers"]) == (own, 16, False)
    (tmp_path / "scores.json").unlink()
    other = ["--min-length", "5", "--max-length", "9", "--beam", "2", "--batch-size", "3", "--numbers"]
    score_shipped(tmp_path, *given, *other)
    assert asked["decode"] == replace(own, min_length=5, max_length=9, beam=2)
    assert (asked["batch_size"], asked["numbers"]) == (3, True)
    (tmp_path / "scores.json").unlink()
    wrong = f"at least {own.min_length} words and at most 100 are asked for: give --min-length, --max-length"
    with pytest.raises(SystemExit, match=f"error: {wrong}$"):
        score_shipped(tmp_path, *given, "--max-length", "100")
    with pytest.raises(SystemExit, match="error: --batch-size must be at least 1, not 0"):
        score_shipped(tmp_path, *given, "--batch-size", "0")


def test_every_rl_has_its_level():
    for name, level in (("mem2mem_table1", "summary"), ("hierarchical_table2", "sentence")):
        columns = published_table(name).columns
        assert f"R-L, {level}-level" in (columns.levels[1] if columns.nlevels > 1 else columns)
    kept = json.loads((project_root() / "trained" / "mem2mem" / "table.json").read_text(encoding="utf-8"))
    assert "R-Lsum is summary-level." in setting(kept) and "Published" not in setting(kept)


def test_a_column_that_is_the_same_everywhere_is_not_shown():
    """`distinct` stands where some summary is another document's as well."""
    for name, shown in (("mem2mem", False), ("hierarchical_transformer", True)):
        kept = json.loads((project_root() / "trained" / name / "table.json").read_text(encoding="utf-8"))
        assert ("distinct" in table_frame(kept)) == shown and "distinct" not in pairs_frame(kept)


def test_a_table_without_runs(scored):
    """Nothing was trained: neither steps nor seeds are told."""
    base = read(scored / "baselines.json")
    labels = ["Oracle (sentences, as many as help)", "Oracle (10 sentences)", "Gold Ext (two sentences for each)"]
    made = make_table("mem2mem_table3_gold", {label: [base] for label in labels}, "pubmed", "demo")
    how = "`pubmed`, 3 of its test split scored; too few documents for an interval. R-Lsum is summary-level."
    assert setting(made) == f"{how} Published: pubmed, its R-L summary-level."
    assert table_frame(made)["published"].tolist() == ["", "", "47.76 / 20.36 / 39.19"]
    others = {label: [base | {"letters": ALL_LETTERS}] for label in labels}
    assert " Words are of all letters, without stems. " in setting(
        make_table("mem2mem_table3_gold", others, "pubmed", "demo")
    )
    ours = without_published(made)
    assert setting(ours) == how
    assert table_frame(ours).equals(table_frame(made).drop(columns="published"))
    assert made["rows"][2]["words"] > made["rows"][0]["words"] > 0, "two for each of the reference are many"


def test_shares_are_pooled(scored):
    """A long summary counts for more than a short one."""
    baselines, run = read(scored / "baselines.json"), read(scored / "read" / "scores.json")
    baselines["parts"]["reference"]["copied"]["5"] = [[1, 2], [0, 98], [4, 100]]
    numbers = make_table("mem2mem_table4", {"Reference": [baselines], "Mem2Mem": [run]}, "aclsum", "demo")
    assert numbers["rows"][0]["scores"]["5"]["mean"] == 2.5


def test_rows_must_have_the_same_documents(scored):
    other = read(scored / "hred" / "scores.json")
    given = {"hred": [{**other, "ids": other["ids"][::-1]}], "+read": [read(scored / "read" / "scores.json")]}
    with pytest.raises(ValueError, match="not all rows were scored on the same documents"):
        make_table("mem2mem_table2", given, "aclsum", "demo")


def test_the_command_line(scored, tmp_path, capsys):
    made = tmp_path / "t.json"
    scores = [f"hred={scored / 'hred' / 'scores.json'}", f"+read={scored / 'read' / 'scores.json'}"]
    make_tables.main(["table", "mem2mem_table2", *scores, "--corpus", "aclsum", "--output", str(made)])
    assert read(made)["table"] == "mem2mem_table2" and "+read - hred" in made.with_suffix(".md").read_text(
        encoding="utf-8"
    )
    with pytest.raises(SystemExit, match=r"'\+raed' is no row, did you mean '\+read'\?"):
        make_tables.main(["table", "mem2mem_table2", "+raed=x.json", "--corpus", "c", "--output", str(made)])
    with pytest.raises(SystemExit, match="No such file"):
        make_tables.main(["table", "mem2mem_table2", "+read=x.json", "--corpus", "c", "--output", str(made)])
    with pytest.raises(SystemExit, match="holds no run"):
        score.main(["run", str(tmp_path / "none"), "--dataset", "aclsum"])
    with pytest.raises(SystemExit, match="holds no weights"):
        (tmp_path / "config.json").write_bytes((scored / "read" / "config.json").read_bytes())
        (tmp_path / "vocabulary.txt").write_bytes((scored / "read" / "vocabulary.txt").read_bytes())
        score.main(["run", str(tmp_path), "--dataset", "aclsum", "--limit", "4"])


def made_by_hand(**changes):
    """Scores of Lead and LexRank that this project did not write: what a table needs, and no more."""
    part = {"rouge": [[30.0, 10.0, 20.0]] * 2, "repeated": [[0, 9]] * 2, "distinct": [1, 1], "words": 90}
    parts = {"lead-10": part, "lexrank": part}
    return {"ids": ["a", "b"], "split": "test", "training documents": 0, "parts": parts} | changes


@pytest.mark.parametrize(
    ("label", "content", "message"),
    [
        (TEN, "{", r"cannot be read as JSON \(.*line 1"),
        (TEN, b"\xff", "cannot be read as JSON"),
        (TEN, "[" * 100_000, "cannot be read as JSON"),
        (TEN, "[1]", "no scores: it holds no JSON object"),
        (TEN, {"model": "mem2mem", "train": {}}, "no scores: it has no 'ids', 'parts'"),
        (
            TEN,
            made_by_hand(parts=[]),
            "no scores of 'lead-10', which the row 'Lead .10 sentences.' is made of",
        ),
        (
            TEN,
            made_by_hand(parts={"lead-10": {}}),
            "part 'lead-10': not what lib.score writes for a table",
        ),
        (
            TEN,
            made_by_hand(parts={"lead-10": 3}),
            "part 'lead-10': not what lib.score writes for a table",
        ),
        ("Mem2Mem", made_by_hand(), "no scores: it has no 'seed', 'steps', 'parameters', 'made_with'"),
    ],
)
def test_files_that_are_no_scores(tmp_path, label, content, message):
    path = tmp_path / "x.json"
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    given = ["mem2mem_table1", f"{label}={path}", "--corpus", "pubmed", "--output", str(tmp_path / "T.json")]
    with pytest.raises(SystemExit, match=rf"^error: .*x\.json.*{message}"):
        make_tables.main(["table", *given])
    assert not (tmp_path / "T.json").exists()


def test_labels_without_a_place_are_named(tmp_path):
    """Lead of three sentences is a row for Newsroom alone; rows made by hand have the places of any other."""
    (tmp_path / "x.json").write_text(json.dumps(made_by_hand()), encoding="utf-8")
    given = ["--corpus", "pubmed", "--output", str(tmp_path / "T.json")]
    rows = [f"{label}={tmp_path / 'x.json'}" for label in (TEN, LEXRANK, "Lead (3 sentences)")]
    with pytest.raises(
        SystemExit,
        match=r"'Lead .3 sentences.=.*': mem2mem_table1 has no place for it on pubmed.*: Lead .10 sentences., ",
    ):
        make_tables.main(["table", "mem2mem_table1", rows[0], rows[2], *given])
    with pytest.raises(SystemExit, match="read_again_table2 has no place for it"):
        make_tables.main(["table", "read_again_table2", f"TOPIARY={tmp_path / 'x.json'}", *given])
    make_tables.main(["table", "mem2mem_table3", *rows[:2], *given])
    assert [row["label"] for row in read(tmp_path / "T.json")["rows"] if "scores" in row] == [
        TEN,
        LEXRANK,
    ]


def of_seed(seed, r1):
    """Scores of one of Mem2Mem's rows on two documents, made by hand."""
    part = made_by_hand()["parts"]["lexrank"] | {"rouge": [[r1, 10.0, 20.0], [r1 + 1, 11.0, 21.0]]}
    run = {"seed": seed, "steps": 7, "parameters": 9, "made_with": {}, "decoding": "trigram blocking"}
    return made_by_hand(parts=dict.fromkeys(("summaries", PLAIN, "extracts"), part)) | run


def test_a_seed_is_added_where_the_runs_are_gone(tmp_path):
    def table(name, *rows, add_to=()):
        given = ["--corpus", "aclsum", "--output", str(tmp_path / name), *add_to]
        make_tables.main(["table", "mem2mem_table2", *(f"{label}={tmp_path / file}" for label, file in rows), *given])
        return read(tmp_path / name)

    for seed, r1 in enumerate((30.0, 33.0)):
        (tmp_path / f"{seed}.json").write_text(json.dumps(of_seed(seed, r1)), encoding="utf-8")
    first, more = [("hred", "0.json"), ("+read", "1.json")], [("hred", "1.json")]
    whole = table("whole.json", *first, *more)
    table("T.json", *first)
    (tmp_path / "0.json").unlink()
    kept = ["--add-to", str(tmp_path / "T.scores.json.gz")]
    assert table("T.json", *more, add_to=kept) == whole and whole["rows"][0]["by seed"]["R-1"] == [30.5, 33.5]
    assert read_table_scores(tmp_path / "T.scores.json.gz") == read_table_scores(tmp_path / "whole.scores.json.gz")
    assert Path(kept[1]).read_bytes()[4:8] == bytes(4), "no time in it: the same scores are the same file"
    parts = {label: set(every[0]["parts"]) for label, every in read_table_scores(Path(kept[1])).items()}
    assert parts == {label: {"summaries", PLAIN} for label in ("hred", "+read")}, "what the rows are made of"
    with pytest.raises(SystemExit, match="there are scores of hred with seed 1 already"):
        table("T.json", *more, add_to=kept)
    (tmp_path / "lead.json").write_text(json.dumps(made_by_hand()), encoding="utf-8")
    twice = [f"{TEN}={tmp_path / 'lead.json'}"] * 2 + [
        "--corpus",
        "aclsum",
        "--output",
        str(tmp_path / "U.json"),
    ]
    with pytest.raises(SystemExit, match="there are scores of Lead \\(10 sentences\\) already"):
        make_tables.main(["table", "mem2mem_table1", *twice])


def zipped(text):
    return gzip.compress(text, mtime=0)  # the same at any time: a test's name is made of it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no scores of a table"),
        (b"x", "no scores of a table"),
        (zipped(b"{}")[:-3], "no scores of a table"),
        (zipped(b"{"), "no scores of a table"),
        (zipped(b"[1]"), "no scores of a table"),
        (zipped(b'{"hred": 3}'), "no scores of a table"),
        (zipped(b'{"hred": [3]}'), "a row is no list of scores"),
        (zipped(b'{"hred": [{}]}'), "no scores: it has no 'ids', 'parts'"),
        (zipped(b'{"hrde": [{}]}'), "'hrde' is no row, did you mean 'hred'"),
    ],
)
def test_files_that_are_no_scores_of_a_table(tmp_path, content, message):
    (tmp_path / "T.scores.json.gz").write_bytes(content)
    given = ["mem2mem_table2", "hred=x.json", "--corpus", "aclsum", "--output", str(tmp_path / "U.json")]
    with pytest.raises(SystemExit, match=rf"^error: .*T\.scores\.json\.gz.*{message}"):
        make_tables.main(["table", *given, "--add-to", str(tmp_path / "T.scores.json.gz")])
    assert [path.name for path in tmp_path.iterdir()] == ["T.scores.json.gz"]


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        (None, "no figure of lines: it has no 'panels'"),
        ([], "its first panel has no series"),
        ([{"weights": [1]}], "its first panel has no series"),
        ([{"series": {"a": [[1, 2], [3]]}}], "its first panel has no series"),
        ([{"series": {"a": [["x"] * 5, [3] * 5]}}], "its first panel has no series"),
        ([{"series": {"a": [[1], [3]]}}], "lines of 1 places, where 5 are published"),
    ],
)
def test_figures_that_are_no_lines(tmp_path, panels, message):
    (tmp_path / "f.json").write_text(json.dumps({} if panels is None else {"panels": panels}), encoding="utf-8")
    with pytest.raises(SystemExit, match=rf"f\.json: .*{message}"):
        figure = ["--figure", str(tmp_path / "f.json"), "--output", str(tmp_path / "T.json")]
        make_tables.main(["page", "read_again_table4", *figure])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        ('{"model": {}}', "no table: it has no 'table', 'title', 'columns'"),
        ('{"table": "t", "title": "T", "columns": []}', "no table: it has no 'rows', 'corpus', 'split', 'documents'"),
    ],
)
def test_what_is_no_table_is_not_kept(project, content, message):
    (project / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit, match=rf"x\.json: {message}"):
        make_tables.main(["keep", str(project / "x.json")])
    assert not list((project / "figures").iterdir())


@pytest.mark.parametrize("command", ["table", "page"])
def test_numbers_and_markdown_are_two_files(tmp_path, command):
    """Checked before anything is read."""
    given = {
        "table": ["mem2mem_table2", "hred=gone.json", "--corpus", "aclsum"],
        "page": ["read_again_table4", "--figure", "gone.json"],
    }
    with pytest.raises(SystemExit, match=r"--output .*T\.md: the same file is written beside the table"):
        make_tables.main([command, *given[command], "--output", str(tmp_path / "T.md")])
    (tmp_path / "config.json").write_text('{"paper": "mem2mem"}', encoding="utf-8")
    (tmp_path / "README.md").write_text("a card", encoding="utf-8")
    (tmp_path / "x.scores.json.gz").write_bytes(b"another's")
    for name, message in (
        ("config.json", r"config\.json: no table: it has no 'table', 'title', 'columns'. Name another"),
        ("README.json", r"--output would replace .*README\.md: it is of no table"),
        ("x.json", r"--output would replace .*x\.scores\.json\.gz: it is of no table"),
    ):
        with pytest.raises(SystemExit, match=message):
            make_tables.main([command, *given[command], "--output", str(tmp_path / name)])
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(SystemExit, match=r"folder\.md: Is a directory"):
        make_tables.main([command, *given[command], "--output", str(tmp_path / "folder.json")])


def test_a_table_from_a_page():
    series = {"without copying": [[2000, 5000], [0.1, 0.2]], "with copying": [[2000, 5000], [0.11, 0.22]]}
    numbers = page_table("read_again_table4", {"plot": "lines", "panels": [{"series": series}]}, "demo")
    assert table_frame({**numbers, "lines": {"with copying": [0.11, 0.22]}}).loc["with copying", "5,000"] == 0.22
    assert numbers["lines"]["published, with copying"][0] == 0.084


# ------------------------------------------------------------------------------------------------- kept tables


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_tables, "project_root", lambda: tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "papers.md").write_text(
        "before\n<!-- table mem2mem_table2_aclsum -->\nold\n<!-- end -->\nafter\n", encoding="utf-8"
    )
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    return tmp_path


def test_every_table_of_the_texts_is_that_of_its_numbers():
    tables = kept_tables.kept_tables()
    changed = [
        str(file) for file, text in kept_tables._texts().items() if kept_tables._rendered(text, tables) != text
    ]
    assert changed == [], "run: python -m companion.make_tables render"


def test_a_place_may_be_empty(scored, project):
    other = "<!-- table another -->\n<!-- end -->\n"
    (project / "papers.md").write_text(
        f"<!-- table mem2mem_table2_aclsum -->\n<!-- end -->\n{other}", encoding="utf-8"
    )
    (project / "t.json").write_text(json.dumps(table_2(scored)), encoding="utf-8")
    make_tables.main(["keep", str(project / "t.json")])
    text = (project / "papers.md").read_text(encoding="utf-8")
    assert text.endswith(f"<!-- end -->\n{other}") and "40.02" in text, "the next place is as it was"


def test_a_table_is_kept(scored, project, capsys):
    made = project / "t.json"
    made.write_text(json.dumps(table_2(scored)), encoding="utf-8")
    make_tables.main(["keep", str(made)])
    text = (project / "papers.md").read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- table") and text.endswith("<!-- end -->\nafter\n") and "old" not in text
    assert kept_table("mem2mem_table2_aclsum") == table_2(scored)
    (project / "papers.md").write_text(text.replace("40.02", "99.99"), encoding="utf-8")
    (project / "README.md").write_text("<!-- table mem2mem_table2_aclsum -->\n<!-- end -->\n", encoding="utf-8")
    make_tables.main(["render"])
    assert (project / "papers.md").read_text(encoding="utf-8") == text, "written again from its numbers"
    assert "40.02" in (project / "README.md").read_text(encoding="utf-8")
    assert "mem2mem_table2_aclsum" in capsys.readouterr().out


def test_a_tables_scores_are_kept_with_it(scored, project):
    (made := project / "t.json").write_text(json.dumps(table_2(scored)), encoding="utf-8")
    (scores := project / "t.scores.json.gz").write_bytes(b"scores")
    kept = project / "figures" / "scores" / "mem2mem_table2_aclsum.scores.json.gz"
    make_tables.main(["keep", str(made)])
    assert kept.read_bytes() == b"scores"
    scores.unlink()
    make_tables.main(["keep", str(made)])
    assert not kept.exists(), "they were another table's"


def test_a_table_is_kept_in_two_sizes(scored, project):
    (made := project / "t.json").write_text(json.dumps(table_2(scored)), encoding="utf-8")
    place = "<!-- table mem2mem_table2_aclsum_long -->\n<!-- end -->\n"
    (project / "papers.md").write_text((project / "papers.md").read_text(encoding="utf-8") + place, encoding="utf-8")
    make_tables.main(["keep", str(made), "--size", "long"])
    text = (project / "papers.md").read_text(encoding="utf-8")
    assert text.count("40.02") == 1 and "40.02" in text.partition(place[:40])[2] and "old" in text
    assert kept_table("mem2mem_table2_aclsum_long") == table_2(scored)


def test_a_table_without_a_place_is_not_kept(scored, project):
    made = project / "t.json"
    made.write_text(json.dumps(table_2(scored, "elsewhere")), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"no text in docs or trained has a place for mem2mem_table2_elsewhere"):
        make_tables.main(["keep", str(made)])
    assert not list((project / "figures").iterdir())


def test_every_kept_table_is_shown_as_it_is():
    """As `python -m companion.make_tables render` writes them."""
    texts, tables = kept_tables._texts(), kept_tables.kept_tables()
    for name in tables:
        assert any(kept_tables._place(name).search(text) for text in texts.values()), name
    for text in texts.values():
        assert kept_tables._rendered(text, tables) == text, "run: make figures"


KEPT_SCORES = {
    path.name.removesuffix(SCORES): path for path in (project_root() / "figures" / "scores").glob(f"*{SCORES}")
}


@pytest.mark.parametrize("name", KEPT_SCORES)
def test_kept_scores_make_the_kept_table(name):
    numbers = kept_table(name)
    given = [numbers[key] for key in ("corpus", "preset", "command")]
    assert make_table(numbers["table"], read_table_scores(KEPT_SCORES[name]), *given) == numbers


def test_the_read_again_page_and_its_kept_table_3_have_the_same_numbers():
    text = (project_root() / "notebooks" / "read_again.py").read_text(encoding="utf-8")
    rows = kept_table("read_again_table3_reuters")["rows"]
    r1 = {row["label"].removeprefix("Read-Again LSTM"): row["scores"]["R-1"]["mean"] for row in rows}
    assert f"500 words are as good as all ({r1[' + copy, 2K']:.1f} and {r1[' + copy, 69K']:.1f} R-1)" in text
    without = [mean for label, mean in r1.items() if "copy" not in label]
    assert f"more words do not help either ({min(without):.1f} to {max(without):.1f} R-1)" in text


def test_the_papers_texts_name_every_table_and_figure():
    text = "".join(text for file, text in kept_tables._texts().items() if file.startswith("docs/papers/"))
    assert [name for name in (*TABLES, *PAGE_TABLES, *FIGURES, *SHOWN) if f"`{name}`" not in text] == []


def test_a_difference_is_the_second_less_the_first():
    def of(**r1):
        parts = {name: {"rouge": [[value] * 3] * 2, "words": 9} for name, value in r1.items()}
        return {"ids": ["a", "b"], "split": "test", "training documents": 0, "parts": parts}

    table = Table("T", (Row("low", part="low"), Row("high", part="high")), (("low", "high"),))
    scores = of(low=30.0, high=33.0)
    (pair,) = table_numbers(table, {"low": [scores], "high": [scores]}, "c", "p")["pairs"]
    assert (pair["first"], pair["second"], pair["R-1"]["mean"]) == ("low", "high", 3)


def test_each_seed_of_a_row_counts(scored):
    one = read(scored / "hred" / "scores.json")
    other = json.loads(json.dumps(one))
    for part in other["parts"].values():
        part["rouge"] = [[x + 1 for x in of] for of in part["rouge"]]
        part["words"] += 10
    row = make_table("mem2mem_table2", {"hred": [one, other]}, "aclsum", "demo")["rows"][0]
    first = np.mean(one["parts"]["summaries"]["rouge"], 0)[0]
    assert row["by seed"]["R-1"] == pytest.approx([first, first + 1], abs=0.01)
    assert row["words"] == pytest.approx(one["parts"]["summaries"]["words"] + 5, abs=0.06)
