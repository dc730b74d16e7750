"""Tables of results: what is in them, how runs are scored, and where tables are kept."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lib
from companion import make_tables
from companion.pages.dispatches import made_up_dispatches
from companion.results import kept, places
from companion.results.kept import SCORES, read_table_scores, stored_numbers
from companion.results.numbers import make_table, page_table
from companion.results.tables import (
    PAGE_RESULTS,
    SHOWN,
    TABLES,
    Row,
    run_arguments,
    run_name,
    run_preset,
    slug,
)
from companion.results.text import markdown, pairs_frame, setting, table_frame
from lib import score
from lib.data.corpus import load_corpus
from lib.evaluation.baselines import matches, oracle
from lib.evaluation.measures import SUPPORT
from lib.evaluation.rouge import count_words, rouge
from lib.evaluation.scores import score_run
from lib.papers import resolve
from lib.system.files import project_root
from lib.train import main as train_main

# ---------------------------------------------------------------------------------
# the tables


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_of_what_exists(name):
    table = TABLES[name]
    labels = [row.label for row in table.rows]
    assert len(set(labels)) == len(labels)
    assert {label for pair in table.pairs for label in pair} <= {
        row.label for row in table.rows if row.part
    }
    # or a claim that has no table in the paper
    published = any(row.published for row in table.rows)
    # a paper has one R-L
    columns = [c for c in table.columns if c != "R-Lsum" or "R-L" not in table.columns]
    for row in table.rows:
        assert row.published or not (published and row.is_run), (
            "what is not published needs no training"
        )
        assert row.published or row.part
        assert all(len(v) in (0, len(columns)) for v in row.published.values()), row.label
        for size in ("demo", "paper") if row.is_run else ():
            words = row.vocabulary.get(size)
            resolve(
                table.paper, run_preset(row, size), row.variant, {"vocab_size": words}
            ).model_config()


def test_names_of_runs_are_their_own():
    """Two runs that differ have different folders; rows that differ in scoring alone share one."""
    runs = [(table.paper, row) for table in TABLES.values() for row in table.rows if row.is_run]
    for size in ("demo", "paper"):
        names = {tuple(run_arguments(*run, size)): run_name(*run, size) for run in runs}
        assert len({*names.values()}) == len(names)
    assert (
        slug("+encoder memory") == "encoder-memory"
        and slug("aclsum:paragraphs") == "aclsum-paragraphs"
    )


def test_arguments_of_runs():
    row = Row("windows", preset="CD_II")
    arguments = run_arguments("mem2mem", Row("all", variant="+read"), "small")
    assert arguments == ["mem2mem", "--preset", "small", "--variant", "+read"]
    assert run_arguments("windowed", row, "paper") == ["windowed", "--preset", "CD_II"]
    assert run_arguments("windowed", row, "demo") == ["windowed", "--preset", "demo CD_II"]
    sized = Row("GRU", variant="gru", vocabulary={"paper": 15_000, "demo": 500})
    assert run_arguments("read_again", sized, "demo")[-2:] == ["--options.vocab-size", "500"]
    assert run_name("read_again", sized, "demo") == "read_again--gru--500"


def test_a_corpus_of_the_paper_has_its_own_rows():
    table, both = (
        TABLES["windowed_table"],
        {n: (n, f"{n}, slides decided first") for n in ("WIKI_II", "WIKI_IV")},
    )
    labels = {name: [row.label for row in table.rows_for(name)] for name in ("wikihow", "aclsum")}
    wikihow = [
        "Lead (3 sentences)",
        "WIKI_I",
        *both["WIKI_II"],
        "WIKI_III",
        *both["WIKI_IV"],
        "WIKI_V",
    ]
    assert labels["wikihow"] == wikihow
    assert {"CD_I", "WIKI_V"} <= set(labels["aclsum"]), "all of them, on any other corpus"


# ---------------------------------------------------------------------------------
# scores and tables


PLAIN = "plain beam search"


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two rows of Mem2Mem's tables, trained for two steps, and the baselines."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        data = ["--dataset", "aclsum", "--limit", "4"]
        for name, variant in (("hred", "hred"), ("read", "+read")):
            run = [
                "--preset",
                "demo",
                "--variant",
                variant,
                "--steps",
                "2",
                "--output",
                str(folder / name),
            ]
            train_main(["mem2mem", *data, *run])
            score.main(["run", str(folder / name), *data, "--documents", "3"])
        score.main(
            [
                "baselines",
                "mem2mem",
                *data,
                "--documents",
                "3",
                "--output",
                str(folder / "baselines.json"),
            ]
        )
    return folder


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_scores_of_a_run(scored):
    found = read(scored / "read" / "scores.json")
    written = (scored / "read" / "summaries.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    assert found["ids"] == [line["id"] for line in lines] and len(lines) == 3
    expected = rouge([line["summary"] for line in lines], [line["reference"] for line in lines])
    assert np.allclose(found["parts"]["summaries"]["rouge"], expected, atol=1e-3)
    assert found["steps"] == 2 and found["seed"] == 0 and found["parameters"] > 100_000
    assert (
        set(found["parts"]) == {"summaries", PLAIN, "extracts", "reference"}
        and found["made_with"]["code"]
    )
    assert found["decoding"] == "trigram blocking" and not any(
        n for n, _ in found["parts"]["summaries"]["repeated"]
    )
    assert any(n for n, _ in found["parts"][PLAIN]["repeated"]), (
        "where nothing forbids it, it says things twice"
    )
    extracts = found["parts"]["extracts"]
    assert min(n for n, _ in extracts["copied"]["5"]) > 0, "heads copy whole sentences"
    assert not any(n for n, _ in extracts["support"]["words"]), (
        "chosen sentences have no other words"
    )
    assert set(read(scored / "hred" / "scores.json")["parts"]) == {
        "summaries",
        PLAIN,
        "reference",
    }, "no heads"
    for part in found["parts"].values():
        assert {name: len(counts) for name, counts in part["support"].items()} == dict.fromkeys(
            SUPPORT, 3
        )


def test_scores_of_baselines(scored):
    parts = read(scored / "baselines.json")["parts"]
    assert set(parts) == {
        "lead",
        "lexrank",
        "oracle",
        "lead-3",
        "lead-10",
        "reference",
        "oracle-10",
        "labelled",
    }
    texts = list(load_corpus("aclsum").split("test", 3))
    wanted = {
        "oracle-10": [oracle(d.sentences, d.summary, 10) for d in texts],
        "labelled": [[d.sentences[i] for i in matches(d.sentences, d.summary, 2)] for d in texts],
    }
    for name, summaries in wanted.items():
        assert np.allclose(
            parts[name]["rouge"], rouge(summaries, [d.summary for d in texts]), atol=1e-3
        ), name
    found, every = np.sum(parts["reference"]["copied"]["5"], 0)
    assert 0 < found < every, "references share some 5-grams with their papers"
    assert np.allclose(parts["reference"]["rouge"], 100), "whole, and in their own words"


def table_2(scored, corpus="aclsum"):
    given = {
        "hred": [read(scored / "hred" / "scores.json")] * 2,
        "+read": [read(scored / "read" / "scores.json")],
    }
    return make_table("mem2mem_table2", given, corpus, "demo", "snakemake -c2 mem2mem_table2")


def test_a_table(scored):
    numbers = table_2(scored)
    assert [row["label"] for row in numbers["rows"]] == [
        "hred",
        f"hred, {PLAIN}",
        "+read",
        f"+read, {PLAIN}",
    ]
    row, plain = numbers["rows"][:2]
    assert (
        numbers["documents"] == 3
        and numbers["decoding"] == "trigram blocking"
        and "missing" not in plain
    )
    expected = np.mean(read(scored / "hred" / "scores.json")["parts"]["summaries"]["rouge"], 0)
    assert [row["scores"][c]["mean"] for c in numbers["columns"]] == pytest.approx(
        expected, abs=0.01
    )
    assert row["by seed"]["R-1"] == pytest.approx([expected[0]] * 2, abs=0.01)
    of_plain = read(scored / "hred" / "scores.json")["parts"][PLAIN]
    means = np.mean(of_plain["rouge"], 0)
    assert [plain["scores"][c]["mean"] for c in numbers["columns"]] == pytest.approx(
        means, abs=0.01
    )
    said_before, every = np.sum(of_plain["repeated"], 0)
    assert row["repeated"] == 0 and plain["repeated"] == pytest.approx(
        100 * said_before / every, abs=0.06
    )
    pairs = [("hred", "+read"), (f"hred, {PLAIN}", f"+read, {PLAIN}")]
    assert [(p["first"], p["second"]) for p in numbers["pairs"]] == pairs
    text = markdown(numbers)
    facts = dict(fact.split(": ", 1) for fact in setting(numbers).split("; "))
    assert (
        facts["scored"] == "3 test documents"
        and facts["training documents"] == "4"
        and facts["seeds"] == "1 or 2"
    )
    assert (
        facts["decoding"] == "trigram blocking"
        and facts["published"] == "pubmed"
        and facts["preset"] == "`demo`"
    )
    assert f"{row['parameters']:,} to " in facts["parameters"]
    assert f"| `+read`, {PLAIN} |" in text and f"| {plain['repeated']:.0f}% |" in text
    assert "40.02 / 15.82 / 36.28" in text and "+read - hred" in text.partition("<details>")[2]
    assert text.endswith("Made by `snakemake -c2 mem2mem_table2`.")
    assert table_frame(numbers).loc["+read", "published"] == "42.06 / 16.56 / 38.11"
    assert pairs_frame(numbers).loc["+read - hred", "R-1"].endswith(" (no interval: 3 documents)")
    assert (
        table_frame(numbers).loc["hred", "R-1"]
        == f"{row['scores']['R-1']['mean']:.2f} (no interval: 3 documents)"
    )
    assert "(no interval" not in markdown({**numbers, "documents": 10})


@pytest.fixture
def asked(monkeypatch):
    """What `lib.score run` asks a shipped run for: its documents, decoding, batch size and
    numbers."""
    found = {}

    def scores(run, documents, split_name, corpus, batch_size, numbers, process, as_long):
        asked_for = {
            "decode": run.decode,
            "batch_size": batch_size,
            "corpus": corpus,
            "numbers": numbers,
        }
        found["as long as references"] = as_long
        found.update(ids=[d.id for d in documents], **asked_for)
        return {"parts": {}}, []

    monkeypatch.setattr("lib.evaluation.scores.score_run", scores)
    monkeypatch.setattr("lib.evaluation.summaries.write_summaries", lambda *_: None)
    monkeypatch.setattr(score, "tables", lambda _: "")
    return found


def score_shipped(tmp_path, *given):
    output = ["--output", str(tmp_path / "scores.json")]
    score.main(["run", str(project_root() / "trained" / "mem2mem"), *given, *output])


def test_a_run_is_scored_with_another_decoding(asked, tmp_path):
    own = lib.load(project_root() / "trained" / "mem2mem").decode
    other = (
        "--min-length 5 --max-length 9 --beam 2 --batch-size 3 --numbers --as-long-as-references"
    )
    score_shipped(tmp_path, "--dataset", "pmc-sample", "--documents", "2", *other.split())
    assert asked["decode"] == replace(own, min_length=5, max_length=9, beam=2)
    assert (asked["batch_size"], asked["numbers"], asked["as long as references"]) == (
        3,
        True,
        True,
    )


def test_any_setting_of_a_run_s_own_decoding_can_be_replaced(asked, tmp_path):
    given = "--decode block_ngrams=0 --decode length_penalty=0.5"
    refused = {
        "slide=median": "unknown --decode setting of .*mem2mem 'slide'",
        "beam=wide": "beam: Input should be a valid integer, not 'wide'",
        "beam": "--decode beam: give NAME=VALUE",
    }
    two = ["--dataset", "pmc-sample", "--documents", "2"]
    own = lib.load(project_root() / "trained" / "mem2mem").decode
    score_shipped(tmp_path, *two, *given.split())
    assert asked["decode"] == replace(own, block_ngrams=0, length_penalty=0.5) != own
    for wrong, message in refused.items():
        (tmp_path / "scores.json").unlink(missing_ok=True)
        with pytest.raises(SystemExit, match=f"^error: {message}"):
            score_shipped(tmp_path, *two, "--decode", wrong)


def test_summaries_are_cut_at_the_length_of_their_references():
    run, documents = lib.load(project_root() / "trained" / "read_again"), made_up_dispatches()[:2]
    lengths = [count_words(document.summary) for document in documents]
    for as_long in (True, False):
        scores, summaries = score_run(
            run, documents, "test", "made-up", as_long_as_references=as_long
        )
        words = [
            [word for word in " ".join(summary).split() if word.isalnum()] for summary in summaries
        ]
        assert any(len(own) > length for own, length in zip(words, lengths)), (
            "otherwise nothing is tested"
        )
        # ROUGE passes over marks
        cut = [" ".join(own[:length]) for own, length in zip(words, lengths)]
        expected = rouge(
            [[text] for text in cut] if as_long else summaries, [d.summary for d in documents]
        )
        assert np.allclose(scores["parts"]["summaries"]["rouge"], expected, atol=1e-3)
        assert ("cut at" in scores.get("written", "")) == as_long


def test_rows_must_have_the_same_documents(scored):
    other = read(scored / "hred" / "scores.json")
    given = {
        "hred": [{**other, "ids": other["ids"][::-1]}],
        "+read": [read(scored / "read" / "scores.json")],
    }
    with pytest.raises(ValueError, match="not all rows were scored on the same documents"):
        make_table("mem2mem_table2", given, "aclsum", "demo")


def test_what_is_no_table(scored, tmp_path):
    """Nothing is written."""
    bad, lead = tmp_path / "bad.json", tmp_path / "lead.json"
    bad.write_text("{", encoding="utf-8")
    lead.write_text(json.dumps(made_by_hand()), encoding="utf-8")
    (tmp_path / "T.scores.json.gz").write_bytes(b"x")
    hred = f"hred={scored / 'hred' / 'scores.json'}"
    table, aclsum = (
        ["table", "mem2mem_table2"],
        ["--corpus", "aclsum", "--output", str(tmp_path / "T.json")],
    )
    topiary = ["table", "read_again_table2", f"TOPIARY={lead}"]
    refused = {
        "unknown table 'mem2mem_table9', did you mean": [
            "table",
            "mem2mem_table9",
            "+read=x.json",
            *aclsum,
        ],
        "unknown row of mem2mem_table2 on aclsum .*, did you mean": [
            *table,
            "+raed=x.json",
            *aclsum,
        ],
        "No such file": [*table, "+read=x.json", *aclsum],
        r"x\.json is not LABEL=FILE": [*table, "x.json", *aclsum],
        "nothing is not LABEL=FILE": [*table, *aclsum],
        r"bad\.json: no JSON": [*table, f"hred={bad}", *aclsum],
        "no scores: it has no 'seed', 'steps'": [*table, f"hred={lead}", *aclsum],
        "there are scores of hred with this seed already": [*table, hred, hred, *aclsum],
        "Not a gzipped file": [
            *table,
            hred,
            "--add-to",
            str(tmp_path / "T.scores.json.gz"),
            *aclsum,
        ],
        "no scores of 'lead-3'": ["table", "mem2mem_table1", f"Lead (3 sentences)={lead}", *aclsum],
        "unknown row of read_again_table2 on aclsum 'TOPIARY'": [*topiary, *aclsum],
        r"bad\.json: no JSON ": ["keep", str(bad)],
        r"lead\.json: no table: it has no 'table', 'title', 'columns'": ["keep", str(lead)],
    }
    for message, arguments in refused.items():
        with pytest.raises(SystemExit, match=f"^error: .*{message}"):
            make_tables.main(arguments)
    assert not (tmp_path / "T.json").exists()


def made_by_hand(**changes):
    """Scores of Lead and LexRank that this project did not write: what a table needs, and no
    more."""
    part = {
        "rouge": [[30.0, 10.0, 20.0]] * 2,
        "repeated": [[0, 9]] * 2,
        "distinct": [1, 1],
        "words": 90,
    }
    parts = {"lead-10": part, "lexrank": part}
    return {"ids": ["a", "b"], "split": "test", "training documents": 0, "parts": parts} | changes


def of_seed(seed, r1):
    """Scores of one of Mem2Mem's rows on two documents, made by hand."""
    part = made_by_hand()["parts"]["lexrank"] | {"rouge": [[r1, 10.0, 20.0], [r1 + 1, 11.0, 21.0]]}
    run = {
        "seed": seed,
        "steps": 7,
        "parameters": 9,
        "made_with": {},
        "decoding": "trigram blocking",
    }
    return made_by_hand(parts=dict.fromkeys(("summaries", PLAIN, "extracts"), part)) | run


def test_a_seed_is_added_where_the_runs_are_gone(tmp_path):
    def table(name, *rows, add_to=()):
        given = ["--corpus", "aclsum", "--output", str(tmp_path / name), *add_to]
        make_tables.main(
            [
                "table",
                "mem2mem_table2",
                *(f"{label}={tmp_path / file}" for label, file in rows),
                *given,
            ]
        )
        return read(tmp_path / name)

    for seed, r1 in enumerate((30.0, 33.0)):
        (tmp_path / f"{seed}.json").write_text(json.dumps(of_seed(seed, r1)), encoding="utf-8")
    first, more = [("hred", "0.json"), ("+read", "1.json")], [("hred", "1.json")]
    whole = table("whole.json", *first, *more)
    table("T.json", *first)
    (tmp_path / "0.json").unlink()
    kept = ["--add-to", str(tmp_path / "T.scores.json.gz")]
    assert table("T.json", *more, add_to=kept) == whole and whole["rows"][0]["by seed"]["R-1"] == [
        30.5,
        33.5,
    ]
    assert read_table_scores(tmp_path / "T.scores.json.gz") == read_table_scores(
        tmp_path / "whole.scores.json.gz"
    )
    assert Path(kept[1]).read_bytes()[4:8] == bytes(4), (
        "no time in it: the same scores are the same file"
    )
    parts = {
        label: set(every[0]["parts"]) for label, every in read_table_scores(Path(kept[1])).items()
    }
    assert parts == {label: {"summaries", PLAIN} for label in ("hred", "+read")}, (
        "what the rows are made of"
    )
    with pytest.raises(SystemExit, match="there are scores of hred with this seed already"):
        table("T.json", *more, add_to=kept)


def test_a_table_from_a_page():
    series = {
        "without copying": [[2000, 5000], [0.1, 0.2]],
        "with copying": [[2000, 5000], [0.11, 0.22]],
    }
    numbers = page_table(
        "read_again_table4", {"plot": "lines", "panels": [{"series": series}]}, "demo"
    )
    assert (
        table_frame({**numbers, "lines": {"with copying": [0.11, 0.22]}}).loc[
            "with copying", "5,000"
        ]
        == 0.22
    )
    assert numbers["lines"]["published, with copying"][0] == 0.084


# ---------------------------------------------------------------------------------
# kept tables


@pytest.fixture
def project(tmp_path, monkeypatch):
    for module in (kept, places):
        monkeypatch.setattr(module, "project_root", lambda: tmp_path)
    monkeypatch.setattr(places, "claims_texts", dict)
    monkeypatch.setattr(places, "draw_claims", lambda: None)
    (tmp_path / "figures").mkdir()
    (tmp_path / "papers.md").write_text(
        "before\n<!-- table mem2mem_table2_aclsum -->\nold\n<!-- end -->\nafter\n", encoding="utf-8"
    )
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    return tmp_path


def test_a_table_is_kept(scored, project, capsys):
    made, scores = project / "t.json", project / "t.scores.json.gz"
    made.write_text(json.dumps(table_2(scored)), encoding="utf-8")
    scores.write_bytes(b"scores")
    make_tables.main(["keep", str(made)])
    stored = project / "figures" / "scores" / "mem2mem_table2_aclsum.scores.json.gz"
    assert stored.read_bytes() == b"scores"
    scores.unlink()
    make_tables.main(["keep", str(made)])
    assert not stored.exists(), "they were of another table"
    text = (project / "papers.md").read_text(encoding="utf-8")
    assert (
        text.startswith("before\n<!-- table")
        and text.endswith("<!-- end -->\nafter\n")
        and "old" not in text
    )
    assert stored_numbers("mem2mem_table2_aclsum") == table_2(scored)
    (project / "papers.md").write_text(text.replace("40.02", "99.99"), encoding="utf-8")
    (project / "README.md").write_text(
        "<!-- table mem2mem_table2_aclsum -->\n<!-- end -->\n", encoding="utf-8"
    )
    make_tables.main(["render"])
    assert (project / "papers.md").read_text(encoding="utf-8") == text, (
        "written again from its numbers"
    )
    assert "40.02" in (project / "README.md").read_text(encoding="utf-8")
    assert "mem2mem_table2_aclsum" in capsys.readouterr().out


def test_kept_tables_and_claims_are_shown_as_they_are():
    """As `python -m companion.make_tables render` writes them."""
    contents = places.place_contents()
    shown = set()
    for text in places._texts().values():
        shown |= set(re.findall(r"<!-- table (\S+) -->", text))
        assert places._rendered(text, contents) == text, "run: make figures"
    assert shown <= set(contents) and set(places.claims_texts()) <= shown


KEPT_SCORES = {
    path.name.removesuffix(SCORES): path
    for path in (project_root() / "figures" / "scores").glob(f"*{SCORES}")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT_SCORES)
def test_kept_scores_make_the_kept_table(name):
    numbers = stored_numbers(name)
    given = [numbers[key] for key in ("corpus", "preset", "command")]
    assert make_table(numbers["table"], read_table_scores(KEPT_SCORES[name]), *given) == numbers


def test_the_papers_texts_name_every_table_and_figure():
    text = "".join(
        text for file, text in places._texts().items() if file.startswith("docs/papers/")
    )
    assert [
        name for name in (*TABLES, *SHOWN, *PAGE_RESULTS) if not re.search(rf"\b{name}\b", text)
    ] == []
