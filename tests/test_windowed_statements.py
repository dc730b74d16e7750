"""What the pages and docs say of windows and of slips, beside the numbers that are kept."""

import json
import re

import numpy as np
import pytest

from companion.pages.measured import over_seeds
from companion.studies.links import rank_of
from companion.tasks.task import by_row
from companion.tasks.windows import LEFT_OUT
from lib.evaluation.bootstrap import paired_bootstrap
from lib.system.files import project_root

ROOT = project_root()


def numbers(name):
    return json.loads((ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8"))


def text(name):
    """In one line."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text(encoding="utf-8"))


PAGE, DOC, START = "notebooks/windowed.py", "docs/papers/windowed.md", "notebooks/start_here.py"


def said(value, *names):
    missing = [name for name in names if value not in text(name)]
    assert not missing, f"{value} is not in {missing}"


def low_high(values, digits=2):
    return f"{np.mean(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def test_slides_over_papers():
    slides = numbers("windowed_papers")["slides"]
    sizes = [size for jumps in slides["slides"] for size in jumps]
    assert len(slides["windows"]) == 50 and len(sizes) == 213
    said(f"{np.mean([size in (2, 3) for size in sizes]):.0%} of the 213 slides", PAGE)
    assert np.mean([size > 1 for size in sizes]) > 0.87, "most pass over windows"
    for i in (1, 5):
        said(slides[f"slide {i}"]["windows"], PAGE, DOC)
    at_last = sum(n == moved + 1 for n, moved in zip(slides["windows"], slides["windows moved on by"]))
    said(f"{at_last} papers are read to their last window", PAGE)
    words = np.mean([(len(jumps) + 1) / n for jumps, n in zip(slides["slides"], slides["windows"])])
    said(f"from {words:.0%} of the windows", PAGE, DOC)


def test_chunks_against_windows():
    rows = numbers("windowed_papers")["chunks"]
    assert all(len(row["values"]) == 50 for row in rows.values())
    for name, row in rows.items():
        if name != "windows":
            mean, interval = re.match(r"(\S+) (\[.*\])", row["difference"]).groups()
            assert float(mean) > 0 and "-" not in interval, "chunks are better"
            said(f"{mean} {interval}", DOC)
            assert row["repeated"] < 0.03, "hardly anything is said in two chunks"
    said(rows["first and last chunk"]["difference"].split()[0], PAGE)
    assert rows["windows"]["repeated"] == 0


def test_a_conclusion_is_read_and_last():
    rows = numbers("windowed_papers")["orders"]
    assert all(len(row["values"]) == 50 for row in rows.values())
    mean = {name: np.mean(row["values"]) for name, row in rows.items()}
    said(f"R-1 rises from {mean['as they are']:.1f} to {mean['conclusion first']:.1f}", PAGE)
    said(f"it gives {mean['conclusion last']:.1f}, in the middle {mean['conclusion in the middle']:.1f}", PAGE)
    for name, other in (("conclusion first", "as they are"), ("conclusion last", "conclusion in the middle")):
        assert rows[name]["compared with"] == other
        difference = rows[name]["difference"].partition("]")[0]
        assert "-" not in difference, "both count"
        said(f"{difference}]", DOC)
        assert 3.3 < mean[name] - mean[other] < 3.7, "about 3.5 points each"
    first, last = (np.array(rows[f"conclusion {place}"]["values"]) for place in ("first", "last"))
    interval = str(paired_bootstrap(first, last)).partition(", p")[0]
    assert "[-" in interval, "not certain"
    said(interval, PAGE, DOC)


def test_each_part_has_its_own_work():
    table, columns = by_row(numbers("task_windows")["results"]), ("facts of 6", "first fact", "texts with symbols")
    rows = {part: table[f"windows without {part}"] for part in LEFT_OUT}
    for part, values in {
        "nothing": (1, 1, 1), "window": (0, 0, None), "sliding": (1 / 6, 1, 1), "copying": (0, 0, 1),
        "generating": (0, 1, 0),
    }.items():  # fmt: skip
        for column, value in zip(columns, values):
            assert value is None or rows[part][column] == pytest.approx([value] * 3), (part, column)
    look = np.array(rows["window"]["first look, facts"]), np.array(rows["window"]["first look, largest"])
    said(f"{look[0].mean():.3f} of the attention is on the first words of facts", DOC)
    assert look[0].min() > 0.95 and look[1].max() < 0.5, "spread over several"
    said(f"the largest weight is {look[1].mean():.2f}", DOC)
    said(f"writes {np.mean(rows['sliding']['facts of 6']):.0%} of the facts of six windows", PAGE)
    cells = ("facts of 6", "first fact", "texts with symbols", "first look, facts", "first look, largest")
    for part, row in rows.items():
        said(f"| {part} | {' | '.join(over_seeds(row[cell]) for cell in cells)} |", DOC)


def test_links_and_why_they_are_wrong():
    rows = numbers("windowed_papers")["links"]
    sums, *_ = rows.values()
    assert (sums["sentences"], sums["papers"]) == (122, 48)
    for name, row in rows.items():
        if name != "first paper":
            percent, real = (
                float(row["first"].split()[0]),
                "p < 0.01" in row["difference"] or "p 0.01" in row["difference"],
            )
            assert real == (name.startswith("means") or name in ("word counts", "tf-idf")), name
            if name in ("word counts", "tf-idf") or row is sums:
                said(f"{percent:.0f}%", PAGE)
            if row["difference"] and not name.startswith("means"):
                said(row["difference"].split(",")[0].split(" [")[0], DOC)
    assert sums["words, linked"] <= sums["words, true"], "linked sentences are no longer than the true ones"
    first = rows["first paper"]
    ranks = {how: [rank_of(np.array(first[how][i]), j) for i, j in first["copies"]] for how in ("sums", "tf-idf")}
    assert ranks["sums"] == [9, 12, 1] and [i for i, _ in first["copies"]] == [0, 2, 4]
    said("the sources of rows 1 and 3 the ranks 9 and 12 of 40", PAGE)


def test_sliding_carries_over_with_every_seed():
    table = by_row(numbers("task_windows")["results"])
    for mode in ("standard", "windows", "streamed"):
        assert table[mode]["seed"] == [0, 1, 2]
    for windows in (2, 6, 12, 300):
        for what in ("facts", "precision", "recall"):
            assert set(table["windows"][f"{what} of {windows}"]) == {1.0}
        assert set(table["streamed"][f"precision of {windows}"]) == {1.0}, "never a symbol in the wrong place"
    said(low_high(table["standard"]["facts of 12"]), DOC)
    said(low_high(table["streamed"]["facts of 300"]), DOC)
    said(f"standard model writes {np.mean(table['standard']['facts of 12']):.0%} of them", PAGE)


def test_an_overlap_is_enough_for_chunks():
    table = by_row(numbers("task_windows")["results"])
    chunks, overlapping, windows = (
        table[f"facts anywhere, {how}"] for how in ("chunks", "overlapping chunks", "windows")
    )
    assert all(rows["seed"] == [0, 1, 2] for rows in (chunks, overlapping, windows))
    assert set(overlapping["facts of 4"] + overlapping["facts of 12"]) == {1.0}
    assert {f"{share:.0%}" for share in chunks["facts of 4"] + chunks["facts of 12"]} == {"81%"}
    said(f"{np.mean(windows['facts of 4']):.0%} of the facts of 4 windows", DOC)
    assert f"{1 - np.mean(windows['facts of 12']):.0%}" == "5%"
    said("windows 5% in texts of twelve", PAGE)
    assert not any(sum(rows[f"twice of {n}"]) for rows in (chunks, overlapping, windows) for n in (4, 12))


def test_references_have_words_of_the_windows_between():
    references = numbers("windowed_papers")["references"]
    mean, low, high = (f"{float(number):.0f}" for number in re.findall(r"[\d.]+", references["words between"]))
    count, papers = references["no word between"], references["papers"]
    said(f"they have {mean}% [{low}, {high}], and only {count} of {papers} have no word from there", PAGE)
    said(f"where {count} of the {papers} references have nothing from there", DOC)
    said(f"all together {mean}% of their words [{low}, {high}]", DOC)
    assert references["vectors"] == "learned on 3,000 documents of sumpubmed"


@pytest.mark.parametrize("change, unit", [("no copying", " nats"), ("last section first", "")])
def test_what_the_words_rest_on(change, unit):
    (row,) = [row for row in numbers("interventions_windowed")["changes"] if row["change"] == change]
    said(f"{-row['difference']:.2f}{unit} [{-row['high']:.2f}, {-row['low']:.2f}]", PAGE, DOC)


def test_attention_and_erasure_rank_differently():
    rows = {(row["change"], row["what"]): row["text"] for row in numbers("attention_windowed")["changes"]}
    for pair in (("attention", "erasure"), ("attention", "gradient times input")):
        said(rows[pair], PAGE, DOC)


def test_a_wrong_word_costs_the_words_after_it_nothing():
    table = by_row(numbers("task_slips")["results"])
    for row in table.values():
        assert row["seed"] == [0, 1, 2]
        gains = np.subtract(row["nats after a wrong word"], row["nats after the true word"])
        assert gains.max() < 0.001
        assert max(row["goes on as before, twice"]) < 0.016 and min(row["goes on rightly, twice"]) > 0.5
    said("its old continuation gets 1%", START)
