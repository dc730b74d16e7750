"""Numbers and claims of the project's texts, against the stored JSON that they come from."""

import json
import math
import re
from functools import cache

import numpy as np
import pytest

from companion.pages.measured import over_seeds, task_results
from companion.results.kept import stored_numbers
from companion.studies import forced_name, slides
from companion.tasks.memory import COMP_WEIGHTS, GRID, LOSSES, READ_WEIGHTS
from lib.decoding.config import DECODINGS
from lib.evaluation.bootstrap import interval as of_documents
from lib.system.files import project_root

ROOT = project_root()
MEM2MEM, WINDOWED, HIERARCHICAL, READ_AGAIN = (
    f"docs/papers/{name}.md"
    for name in ("mem2mem", "windowed", "hierarchical_transformer", "read_again")
)


def page(name):
    return f"notebooks/{name}.py"


@cache
def text(file):
    """A text in one line."""
    return re.sub(r"\s+", " ", (ROOT / file).read_text(encoding="utf-8"))


def numbers(name):
    return json.loads((ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8"))


def losses(name):
    """{change: (mean, low, high)} of the log-probability that references lose in a changed
    model."""
    rows = numbers(f"interventions_{name}")["changes"]
    return {row["change"]: (-row["difference"], -row["high"], -row["low"]) for row in rows}


class Stored:
    """An entry of `effects`, which is called for its text."""

    def __init__(self, entry):
        self.values = [entry[name] for name in ("mean", "low", "high")]

    def __call__(self, digits, sign=""):
        mean, low, high = (f"{value:{sign}.{digits}f}" for value in self.values)
        return f"{mean} [{low}, {high}]"


def effects(name):
    return {entry["name"]: Stored(entry) for entry in numbers(name)["effects"] if "low" in entry}


def line(*cells):
    return f"| {' | '.join(map(str, cells))} |"


# ---------------------------------------------------------------------------------
# what the numbers of texts are


def mem2mem_lines():
    lever = effects("mem2mem_lever")
    for memory in ("another text's", "one for all", "erased", "random"):
        yield line(
            memory,
            *(
                lever[f"papers: {memory}{words}"](3)
                for words in ("", ", first 10 words", ", later words")
            ),
        )
    order = effects("mem2mem_reading_order")
    for memory in ("own", "one for all"):
        yield line(memory, order[f"{memory}: slots"](2), order[f"{memory}: order"](3))
    cosines = "a slot and the same slot for the next text", "two slots of a text"
    toys = {"all ways": "toy", "memory alone, gate +3": "memory only, gate that starts by keeping",
            "memory alone, never written": "memory only, never overwritten"}  # fmt: skip
    for row, model in toys.items():
        costs = [
            lever[f"{model}: {cell}"](2)
            for cell in ("own", "another text's", "one for all", "erased", "random")
        ]
        yield line(row, *costs, *(lever[f"{model}: {cosine}"](3) for cosine in cosines))
    grid = grid_of_memory()
    for comp in COMP_WEIGHTS:
        yield line(
            f"{comp:g}", *(f"{np.mean(grid[comp, read]['recall']):.2f}" for read in READ_WEIGHTS)
        )


def windowed_lines():
    table = task_results("windows")
    for name in (
        slides.PAPERS,
        slides.MEDIAN,
        slides.DRAWN,
        f"{slides.PAPERS}, greedy",
        f"{slides.MEDIAN}, greedy",
    ):
        plain, blocked = (
            numbers("windowed_slides_pmc")[f"{name}, {decoding}"] for decoding in DECODINGS
        )
        words = np.array(plain["by window"], dtype=float).T
        shares = (of_documents(100 * part, weights=words.sum(0)) for part in words)
        yield line(name, *map(str, shares), plain["R-1"], blocked["R-1"])
    for name, row in numbers("windowed_links")["shares"].items():
        yield line(*name.split(", "), row["right"], row["last"])
    for windows, size in {2: "36), 50", 6: "100), 50", 12: "196), 50", 300: "4,804), 5"}.items():
        shares = (
            over_seeds(table[mode][f"facts of {windows}"])
            for mode in ("standard", "windows", "streamed")
        )
        yield line(f"{windows} ({size}", *shares)


def hierarchical_lines():
    lost = losses("hierarchical_transformer_copying")
    yield f"references lose {lost['sections backwards'][0]:.3f} nats a piece."
    yield f"opposite order cost {lost['paragraphs backwards'][0]:.3f}."
    names = {
        "as they come": "as they come",
        "similarity": "similarity to the title",
        "learned": "learned ranker",
        "by the labels": "by the labels themselves",
    }
    for name, means in numbers("ranking_scisummnet_mds")["means"].items():
        of_seeds = (" / ".join(f"{mean:.2f}" for mean in seeds) for seeds in means.values())
        yield line(names[name], *of_seeds)
    found = effects("forced_name")
    for row in forced_name.TRAINED:
        for condition, replaced in REPLACED.items():
            of_towns = (found[f"{row}, {condition}: {t}'s facts"](1) for t in ("title", "other"))
            yield line(row, replaced, *of_towns)


REPLACED = {
    "own name": "nothing",
    "other name forced": "first word: the other town",
    "absent name forced": "first word: a town without snippets",
    "absent title, own name": "title: a town without snippets",
}


def read_again_lines():
    tables = stored_numbers("trained_read_again"), stored_numbers("read_again_table2_reuters")
    eight, bytes75 = (
        row["scores"]["R-1"] for t in tables for row in t["rows"] if row["label"].startswith("Lead")
    )
    yield f"already have {eight['mean']:.2f} R-1, and the first 75 bytes a recall of {bytes75['mean']:.1f},"


def mem2mem_page():
    reads = np.array(numbers("mem2mem_real_memory")["panels"][1]["weights"])[[0, 2, 6]].sum(0)
    yield f"get {reads[0]:.0%} of the reads, and at the last word {reads[-1]:.0%}"
    written, plain = (
        memory(f"all ways, both, {gate}")["nll"].mean() for gate in ("never written", "plain gate")
    )
    most = max(row["another memory"][0] for row in numbers("mem2mem_gates")["rows"])
    yield f"(one seed each) lose about {most:.2f} nats a word or less"
    yield f"({written:.2f} nats a word instead of {plain:.2f}, means of five seeds)"


def papers_lines():
    rows = {
        row["label"]: row.get("by seed")
        for row in numbers("hierarchical_table_clusters_scisummnet_mds")["rows"]
    }
    both = (rows[f"HT{part}, plain beam search"]["R-1"] for part in ("", " without global layers"))
    yield "{:+.1f}, {:+.1f} and {:+.1f} points of R-1".format(*np.subtract(*both))


def read_again_page():
    changes = {
        row["change"]: row["mean"] for row in numbers("copying_read_again_reuters")["changes"]
    }
    yield f"lose {changes['text not told']:.2f} nats a word"
    yield f"lose {losses('read_again_reuters')['[UNK] fed back'][0]:.3f} nats a word over all words"
    fed_back = {
        e["name"]: e["mean"] for e in stored_numbers("fed_back_read_again_reuters")["effects"]
    }
    yield f"there they lose {fed_back['the word after a copied unknown word']:.3f} nats"
    rows = {row["label"]: row for row in numbers("read_again_table2_reuters")["rows"]}
    order = "big-words-lvt2k-1sent", "RAS-LSTM", "ABS", "Read-Again LSTM + copy"
    lvt, low, high, again = (f"{rows[label]['scores']['R-1']['mean']:.0f}" for label in order)
    yield f"recalls {lvt}% of the references' words. Models that choose from all words recall {low} to {high}%,"
    yield f"Read-Again {again}%"


def teaching_lines():
    changes = {
        row["change"]: row["mean"] for row in numbers("copying_read_again_reuters")["changes"]
    }
    yield f"{changes['copying equal']:.2f} nats a word, and {changes['attention equal']:.2f} for attention"
    costs = [
        effects("mem2mem_lever")[f"papers: {memory}"].values[0]
        for memory in ("another text's", "erased")
    ]
    yield "another memory costs {:.3f} nats a word, and zeros cost {:.2f}".format(*costs)
    yield f"erasing the memory costs {effects('mem2mem_lever')['toy: erased'].values[0]:.1f} nats"


TEXTS = {
    "docs/teaching.md": teaching_lines,
    page("mem2mem"): mem2mem_page,
    "papers.md": papers_lines,
    page("read_again"): read_again_page,
    MEM2MEM: mem2mem_lines,
    WINDOWED: windowed_lines,
    HIERARCHICAL: hierarchical_lines,
    READ_AGAIN: read_again_lines,
}


@pytest.mark.parametrize(("file", "lines"), TEXTS.items(), ids=TEXTS)
def test_a_text_has_the_numbers_of_its_json(file, lines):
    assert [found for found in lines() if re.sub(r"\s+", " ", found) not in text(file)] == []


# ---------------------------------------------------------------------------------
# what texts claim of them


def grid_of_memory():
    """{(lambda 1, lambda 2): measures} over the seeds that all pairs have."""
    table = task_results("memory")
    rows = {weights: table[f"all ways, {name}, plain gate"] for name, weights in GRID.items()}
    seeds = set.intersection(*(set(row["seed"]) for row in rows.values()))
    return {
        weights: {
            m: [v for v, seed in zip(values, row["seed"]) if seed in seeds]
            for m, values in row.items()
        }
        for weights, row in rows.items()
    }


def memory(row):
    return {name: np.array(values) for name, values in task_results("memory")[row].items()}


def open_paths(name):
    return memory(f"all ways, {name}, plain gate")


def cost(row):
    """Nats a word that another document's memory costs, for each seed."""
    return row["nll, another"] - row["nll"]


CHANCE = 15 / 16 * math.log(94)  # nats a word: 94 words, and an end whose place is known


def test_only_four_pairs_find_all_marked_sentences():
    found = {weights for weights, row in grid_of_memory().items() if min(row["recall"]) > 0.99}
    assert found == {(0.01, 0.01), (0.01, 0.1), (0.1, 0.1), (0.1, 1)}


def test_with_both_terms_the_heads_find_all_marked_sentences():
    assert (
        open_paths("both")["recall"].min() == 1 and open_paths("neither")["on marked"].max() < 0.005
    )


def test_with_all_paths_open_another_memory_costs_nothing():
    assert max(cost(open_paths(name)).max() for name in LOSSES) < 0.0065


def test_alone_and_never_written_the_memory_works():
    row = memory("memory alone, both, never written")
    assert row["recall"].min() == 1 and row["on marked"].min() > 0.95 and cost(row).min() > 6.5


def test_with_the_papers_gate_nothing_is_learned_alone():
    assert abs(memory("memory alone, both, plain gate")["nll"] - CHANCE).max() < 0.06


def test_windows_slide_without_a_fault_at_any_length():
    assert all(
        set(task_results("windows")["windows"][f"facts of {n}"]) == {1.0} for n in (2, 6, 12, 300)
    )


def test_global_layers_make_towns_learnable_soon_and_not_only_they():
    solved = task_results("towns")
    apart = [solved[f"{row}, trained longer"] for row in ("without global layers", "flat")]
    early = [
        share
        for row in apart
        for n in (500, 1000, 1500, 2000, 2500)
        for share in row[f"right after {n}"]
    ]
    assert min(solved["HT"]["right"]) > 0.98 and max(early) < 0.54
    assert (
        sorted(share > 0.98 for share in apart[0]["right"]) == [False, True, True]
        and max(apart[1]["right"]) < 0.55
    )


def test_two_hops_take_two_layers_and_the_graph():
    solved = task_results("hops")
    others = ("no global layer", "1, learned", "1, given", "2, learned", "3, learned")
    assert (
        min(solved["2, given"]["right"]) == 1
        and max(max(solved[row]["right"]) for row in others) < 0.35
    )


def test_without_copying_no_headline_is_right():
    assert set(task_results("short_news")["twice, GRU, without copying"]["right"]) == {0}


# ---------------------------------------------------------------------------------
# the exam


def test_each_lesson_has_three_exam_questions_of_four_points():
    lessons, exam = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("teaching.md", "exam.md")
    )
    assert re.findall(r"^## \d.*", lessons, re.MULTILINE) == re.findall(
        r"^## .*", exam, re.MULTILINE
    )
    for lesson in exam.split("\n## ")[1:]:
        markings = re.findall(r"^\| (?!question|---).* \| (.*) \|$", lesson, re.MULTILINE)
        assert [
            sum(map(float, re.findall(r"\((\d|0\.5)\)", m.replace("½", "0.5")))) for m in markings
        ] == [4, 4, 4]
