"""What the Mem2Mem page shows of its small models and of a run (`companion.pages.mem2mem`)."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.pages import mem2mem
from companion.pages.mem2mem import greedy_words, grid_panels, paper_weights, planted_steps, planted_words
from companion.tasks.synthetic import planted_sentences
from lib.data.batch import make_batch
from lib.data.vocabulary import EOS
from lib.evaluation import slots
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.system.files import project_root
from tests.test_project import PAGES, notebook


def small_model():
    torch.manual_seed(0)
    model = Mem2Mem(Mem2MemConfig(20, embedding=6, hidden=6, bottleneck=5, slots=3, compression=4))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def small_document():
    (document,) = planted_sentences(1, seed=0, sentences=5, words=4, planted=2, vocab_size=20)
    return document


def test_the_first_words_of_planted_sentences_have_names():
    first, *_ = document_words = planted_words(small_document().source)
    assert first in ("mark", "plain") and set(document_words) - {"mark", "plain"} <= set(map(str, range(6, 20)))
    assert planted_words([EOS]) == ["[EOS]"]


def test_greedy_words_are_the_most_probable_ones():
    model, document = small_model(), small_document()
    words = greedy_words(model, document, 4)
    batch = make_batch([replace(document, target=words)], 20)
    output, state = model.decode(batch.target_input, model.encode(batch))
    ranks = [model.log_prob(output, torch.full_like(batch.target, word), state) for word in range(20)]
    assert torch.stack(ranks).argmax(0)[0].tolist() == words.tolist()


def test_steps_of_a_model_that_writes():
    model, document = small_model(), small_document()
    frames = planted_steps(model, document).frames
    words = planted_words(greedy_words(model, document, len(document.target)))
    assert len(frames) == len(document.target) == 7
    for t, (_, html) in enumerate(frames.items()):
        written = re.search(r"written: (.*?)<b[^>]*>(.*?)</b>", html)
        assert written and [*written[1].split(), written[2]] == words[: t + 1]
        left = [float(share) for share in re.findall(r"([\d.]+) left", html)]
        assert len(left) == 3 and (left == [1, 1, 1]) == (t == 0), "nothing is written before the first word"
        for name in ("P_g", "P_c", "P"):
            assert f">{name}</td>" in html


def test_the_papers_symbols_are_the_weights_of_the_model():
    model = small_model()
    weights = paper_weights(model)
    assert weights["W_z1"].tolist() == model.write_hidden.weight[:6].tolist()
    assert weights["W_u3"].tolist() == model.write_memory.weight[6:].tolist()
    single = [w for w in weights.values() if not isinstance(w, tuple)] + [
        w for t in ("psi", "beta") for w in weights[t]
    ]
    encoders = ("embedding", "sentence_encoder", "document_encoder", "bridge", "decoder")
    rest = sum(p.numel() for name, p in model.named_parameters() if not name.startswith(encoders))
    assert sum(w.numel() for w in single) == rest, "each weight once"


def test_the_grid_takes_the_seeds_that_all_pairs_have(monkeypatch):
    results = {
        f"all ways, {mem2mem.losses_name(comp, read)}, plain gate": {"seed": [2, 0], "nll": [100.0 * comp, read]}
        for comp in mem2mem.COMP_WEIGHTS
        for read in mem2mem.READ_WEIGHTS
    }
    results["all ways, both, plain gate"] = {"seed": [0, 1], "nll": [0.5, 7.0]}
    monkeypatch.setattr(mem2mem, "task_results", lambda name: results)
    (panel,), seeds = grid_panels({"loss": "nll"})
    assert seeds == [0] and panel["title"] == "loss"
    assert panel["rows"] == ["0", "0.0001", "0.001", "0.01", "0.1"] and panel["columns"][-1] == "1"
    assert np.array(panel["values"])[3].tolist() == [0.0, 0.001, 0.01, 0.5, 1.0]


def test_the_usual_place_of_a_head():
    """Three papers: a head on the last sentence of a section, wherever that is; of whole sentences once."""
    as_read = np.array([[1, 4, 1], [2, 7, 1], [2, 5, 2]])  # section, from its beginning, from its end
    whole = np.array([[1, 4, 1], [2, 6, 2], [2, 5, 2]])
    row = slots._usual_place(as_read, whole)
    assert row["sentence of its section"] == "1 from the end" and row["of section"] == "1 (33%), 2 (67%)"
    assert (row["papers"], row["nothing cut off"]) == pytest.approx((2 / 3, 1 / 3))


def shown_on(name):
    """Markdown of a page, and what its cells print, as it was executed."""
    cells = notebook(next(page for page in PAGES if page.stem == name))["cells"]
    said = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return re.sub(r"\s+", " ", said), "\n".join("".join(d.get("text/html", d.get("text/plain", ""))) for d in data)


def test_what_is_said_of_the_trained_toy_is_what_its_cells_show():
    said, shown = shown_on("mem2mem")
    lost = {
        name: float(re.search(rf">{name} .*?\+([\d.]+)", shown, re.DOTALL)[1]) for name in ("α", "β", "no copying")
    }
    assert f"With α uniform words lose {lost['α']:.1f} nats each, with β uniform {lost['β']:.1f} (" in said
    assert f"Without copying this model loses {lost['no copying']:.0f} nats a word" in said
    left = [float(share) for share in re.findall(r"slot 1: ([\d.]+) left", shown)]
    assert len(left) == 16 and f"{left[1]:.1f} {left[5]:.1f}" == "0.6 0.1"
    assert "after one written word about 60% of what they held is left, after five words a tenth" in said
    alpha = float(re.search(r"the place of 36: coverage [\d.]+, α ([\d.]+)", shown)[1])
    assert abs(3 * alpha - 0.75) < 0.03 and "three words share three quarters of α" in said
    read = re.search(r"cosine of ([\d.]+) with it; what is really read, by \(7\), of (-?[\d.]+)\.(?=<|\s|$)", shown)
    document = (project_root() / "docs" / "papers" / "mem2mem.md").read_text(encoding="utf-8")
    assert f"have a cosine of {read[1]} with the state of the sentence that is attended to" in document
    assert f"what (7) reads has one of {read[2]}." in document


def test_the_two_kinds_of_rouge_l_are_those_of_the_first_page():
    _, shown = shown_on("start_here")
    row = re.search(r"Mem2Mem, trigram blocking</th>(.*?)</tr>", shown, re.DOTALL)[1]
    *_, summary_level, sentence_level = re.findall(r"[\d.]+(?=</td>)", row)
    assert f"({summary_level} and {sentence_level} for one summary on [Start here]" in shown_on("mem2mem")[0]
