"""Interventions on tiny models in double precision whose answers are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib import intervene
from lib.data.batch import EncodedDocument, make_batch, rows_of
from lib.data.documents import Document
from lib.data.vocabulary import UNK
from lib.evaluation.interventions import TEXTS, changes_of, log_probs
from lib.models.changes import Change, hooks, replaced
from lib.models.hierarchical_transformer import (
    CopyingTransformer,
    CopyingTransformerConfig,
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.models.mem2mem import Mem2Mem
from lib.models.memory_changes import MEMORY, one_memory
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.system.files import trained_folder
from tests.conftest import RAGGED, VOCAB, double, tiny_model

FOUR = [*RAGGED, replace(RAGGED[0], id="d", source=RAGGED[0].source[::-1].copy())]
SIZES = {"width": 8, "heads": 2, "inner": 8, "local_layers": 1, "global_layers": 2, "dropout": 0.0}


def transformer(copying: bool = False, **changes):
    if copying:
        return double(CopyingTransformer, CopyingTransformerConfig(VOCAB, **SIZES, **changes), 0.3)
    return double(
        HierarchicalTransformer, HierarchicalTransformerConfig(VOCAB, **SIZES, **changes), 0.3
    )


def read_again(**changes):
    config = ReadAgainConfig(
        source_vocab_size=VOCAB, vocab_size=VOCAB, embedding=5, hidden=6, dropout=0.0, **changes
    )
    return double(ReadAgain, config)


MODELS = {
    "mem2mem": tiny_model, "read-again": read_again, "transformer": transformer,
    "copying transformer": lambda: transformer(copying=True),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_log_probs_are_those_of_the_loss(name):
    model = MODELS[name]()
    expected = [-model.eval().loss(make_batch([d], VOCAB))["nll"].item() for d in FOUR]
    for size in (1, 3, 16):
        for change in ({}, {"change": changes_of(model)["nothing"]}):
            assert np.allclose(
                log_probs(model, FOUR, batch_size=size, **change), expected, rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_as_before_after_each_change(name):
    model = MODELS[name]()
    before = log_probs(model, FOUR)
    attributes = {module: set(vars(module)) for module in model.modules()}
    for change in changes_of(model).values():
        log_probs(model, FOUR, change)
        with pytest.raises(RuntimeError, match="in between"), change.model(model):
            raise RuntimeError("in between")
        assert np.array_equal(log_probs(model, FOUR), before), change.what
        assert attributes == {module: set(vars(module)) for module in model.modules()}, change.what


def test_changes_that_change_nothing():
    model = tiny_model()
    own, changes = log_probs(model, FOUR), changes_of(model)
    assert np.allclose(log_probs(model, FOUR, changes["slots permuted"]), own, rtol=0, atol=1e-12)
    with torch.no_grad():
        model.read_output.weight[:, 6:] = 0  # what is read of the memory reaches nothing
    own = log_probs(model, FOUR)
    for name in (*MEMORY, "never written", *WRITTEN):
        assert np.allclose(log_probs(model, FOUR, changes[name]), own, rtol=0, atol=1e-12), name


def test_one_memory_and_random_memories_change_the_words():
    model = tiny_model()
    own, all_alike = log_probs(model, FOUR), [FOUR[0]] * 3
    for name in ("random memory", "one memory for all"):
        assert abs(log_probs(model, FOUR, changes_of(model)[name]) - own).min() > 1e-4, name
    change = changes_of(model)["one memory for all"]
    assert np.allclose(log_probs(model, all_alike, change), own[0], rtol=0, atol=1e-12), (
        "the mean of equal memories"
    )
    of_the_next = log_probs(model, FOUR[:2], one_memory(model, FOUR[1:2]))
    assert of_the_next[0] == pytest.approx(
        log_probs(model, FOUR[:2], MEMORY["another memory"])[0], abs=1e-12
    )


def test_random_slots_keep_their_norms():
    model, batch = tiny_model(), make_batch(FOUR, VOCAB)
    state = model.encode(batch)
    memory = MEMORY["random memory"].state(state, None).memory
    assert torch.allclose(memory.norm(dim=-1), state.memory.norm(dim=-1), rtol=0, atol=1e-12)
    assert (
        torch.nn.functional.cosine_similarity(memory, state.memory, dim=-1).abs().max() < 1 - 1e-3
    )


WRITTEN = "written beside another text", "written with other words"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_document_that_reads_the_memory_that_it_writes_is_as_it_was(name):
    for config in ({}, {"score": "dot"}, {"start": "zeros", "lambda_comp": 0, "lambda_read": 0}):
        model = tiny_model(**config)
        twice = [FOUR[0], replace(FOUR[0], id="again")]
        own, changed = log_probs(model, twice), log_probs(model, twice, changes_of(model)[name])
        assert np.allclose(changed, own, rtol=0, atol=1e-12)
        assert (
            abs(log_probs(model, FOUR, changes_of(model)[name]) - log_probs(model, FOUR)).max()
            > 1e-2
        )


def test_what_is_written_counts_for_nothing_where_the_memory_keeps_everything():
    model = tiny_model(gate_bias=3.0)
    model.write_hidden.bias.data[: model.config.hidden] = 60
    for size in (1, 3, 16):
        of_text, of_words, handed_over, own = (
            log_probs(model, FOUR, changes_of(model)[name], size)
            for name in (*WRITTEN, "another memory", "nothing")
        )
        assert np.allclose(of_text, handed_over, rtol=0, atol=1e-12)
        assert np.allclose(of_words, own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["mem2mem", "copying transformer"])
def test_no_copying_is_the_softmax_of_the_vocabulary(name):
    model, batch = MODELS[name](), make_batch(FOUR[:1], VOCAB)
    output, _ = model.decode(batch.target_input, model.encode(batch))
    scores = (
        model.pointer.vocabulary.to("cpu")(output.features)
        if name == "mem2mem"
        else (output.features @ model.embedding.weight.T + model.bias)
    )
    known = batch.target < VOCAB
    expected = (
        scores.log_softmax(-1)
        .gather(-1, batch.target.where(known, UNK)[..., None])[..., 0][known]
        .mean()
    )
    change = changes_of(model)["no copying"]
    assert log_probs(model, FOUR[:1], change)[0] == pytest.approx(expected.item(), abs=1e-10)


def test_unknown_fed_back_is_unknown_in_the_input():
    model, batch = read_again(), make_batch(FOUR[:1], VOCAB)
    state = model.encode(batch)
    fed = batch.target_input.where(batch.target_input < VOCAB, UNK)
    expected = model.log_prob(model.decode(fed, state)[0], batch.target, state).mean().item()
    change = changes_of(model)["[UNK] fed back"]
    assert log_probs(model, FOUR[:1], change)[0] == pytest.approx(expected, abs=1e-12)
    assert expected != pytest.approx(log_probs(model, FOUR[:1])[0], abs=1e-4), (
        "a copied word is fed back"
    )


UNHEARD = [  # a change, a model of which a part hears it, and the weights of that part
    ("text not told", {}, lambda model: [model.second_read.weight_ih_l0[:, -model.config.hidden :]]),
    ("text not told", {"encoder": "read-again gru"}, lambda model: [model.importance_text.weight]),
    ("importance averaged", {"encoder": "read-again gru"}, lambda model: [
        layer.weight for layer in (model.importance_word, model.importance_text, model.importance_input)
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "weights"), UNHEARD)
def test_a_change_changes_nothing_where_its_part_has_no_weight(name, config, weights):
    model = read_again(**config)
    change = changes_of(model)[name]
    assert not np.allclose(log_probs(model, FOUR, change), log_probs(model, FOUR))
    with torch.no_grad():
        for weight in weights(model):
            weight.zero_()
    assert np.allclose(log_probs(model, FOUR, change), log_probs(model, FOUR), rtol=0, atol=1e-12)


CUTS = [  # a change, words of paragraphs, and whether words elsewhere still differ by them
    ("nothing", slice(6, 11), True), ("layer 1 cut", slice(6, 11), True), ("layer 2 cut", slice(6, 11), True),
    ("layers cut", slice(6, 11), False), ("first paragraph cut", slice(6, 11), True),
    ("first paragraph cut", slice(0, 4), False), ("first paragraph cut in layer 1", slice(0, 4), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "passes"), CUTS)
def test_cut_layers_let_nothing_pass_between_paragraphs(name, words, passes):
    model, source = transformer(), FOUR[0].source.copy()
    source[words] = 11
    others = [i for i in range(11) if i not in range(11)[words]]
    with changes_of(model)[name].model(model):
        before, after = (
            model.encode(make_batch([d], VOCAB)).words[0, others]
            for d in (FOUR[0], replace(FOUR[0], source=source))
        )
    assert torch.allclose(before, after, rtol=0, atol=1e-12) == (not passes)


def test_without_paragraph_positions_only_the_numbers_of_paragraphs_are_alike():
    model = transformer()
    changes = changes_of(model)
    backwards = [changes["paragraphs backwards"].document(document) for document in FOUR]
    numbers, tokens = torch.arange(3), torch.arange(3)
    own, code = log_probs(model, FOUR), model.positions(torch.ones_like(numbers), tokens)
    with changes["no paragraph positions"].model(model):
        assert torch.equal(model.positions(numbers, tokens), code)
        changed = log_probs(model, FOUR)
        assert np.allclose(changed, log_probs(model, backwards), rtol=0, atol=1e-12)
    assert abs(changed - own).max() > 1e-4


def test_paragraphs_backwards_are_the_same_paragraphs_after_the_title():
    change = changes_of(transformer())["paragraphs backwards"]
    whole = replace(FOUR[0], graph=np.arange(9, dtype=np.float32), source_ids=FOUR[0].source)
    turned = change.document(whole)
    title, one, two = (row.tolist() for row in rows_of(whole))
    assert [row.tolist() for row in rows_of(turned)] == [title, two, one]
    assert turned.source_ids.tolist() == turned.source.tolist()
    assert turned.graph.tolist() == [0, 2, 1, 6, 8, 7, 3, 5, 4]
    model, without = transformer(), transformer(paragraph_positions=False)
    assert not np.allclose(log_probs(model, FOUR), log_probs(model, FOUR, change)), (
        "positions know the order"
    )
    assert np.allclose(
        log_probs(without, FOUR), log_probs(without, FOUR, change), rtol=0, atol=1e-12
    )


def test_an_erased_unit_is_unknown_words_in_its_place():
    whole = replace(FOUR[0], source_ids=FOUR[0].source)
    erased = changes_of(tiny_model())["first unit erased"].document(whole)
    assert (
        erased.source.tolist()
        == erased.source_ids.tolist()
        == [UNK] * 4 + whole.source[4:].tolist()
    )
    assert (
        erased.sentence_lengths is whole.sentence_lengths
        and erased.source.dtype == whole.source.dtype
    )
    alone = FOUR[1]
    assert changes_of(tiny_model())["first unit erased"].document(alone) is alone


def test_sections_in_another_order():
    document = Document("d", "", ["a", "b", "c"], [["A."], ["B."], ["C."]], ["S."])
    assert TEXTS["last section first"].text(document).section_names == ["c", "a", "b"]
    assert TEXTS["sections backwards"].text(document).sections == [["C."], ["B."], ["A."]]


def test_words_that_can_only_be_copied_do_not_count_where_asked():
    model, document = tiny_model(), FOUR[0]
    batch = make_batch([document], VOCAB)
    output, _ = model.decode(batch.target_input, model.encode(batch))
    log_p = model.log_prob(output, batch.target, None)
    assert log_probs(model, [document], only_known=True)[0] == pytest.approx(
        log_p[batch.target < VOCAB].mean().item(), abs=1e-12
    )
    only_copied = EncodedDocument.of("only", [4, 12], [2], [12], ["u"])
    with pytest.raises(ValueError, match="'only' has no word in its reference"):
        log_probs(model, [document, only_copied], only_known=True)


# ---------------------------------------------------------------------------------
# command


def test_the_command_prints_a_row_for_each_change(tmp_path, capsys):
    """The shipped Mem2Mem, as its reader runs it: its own table, and what is written of each
    document."""
    arguments = [
        str(trained_folder("mem2mem")),
        "nothing",
        "slots permuted",
        "no copying",
        "last section first",
    ]
    intervene.main(
        [
            *arguments,
            "--dataset",
            "pmc-sample",
            "--documents",
            "3",
            "--output",
            str(tmp_path / "c.json"),
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| change |") and len(lines) == 6
    saved = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert (saved["corpus"], saved["of"], saved["documents"]) == ("pmc-sample", "references", 3)
    nothing, permuted, copying, order = saved["changes"]
    assert nothing["difference"] == 0 and abs(permuted["difference"]) < 1e-4
    assert copying["difference"] < -0.1 and len(copying["values"]) == 3
    assert order["difference"] != 0


def test_attention_is_compared_with_erasure_and_gradient(tmp_path, capsys):
    arguments = [
        str(trained_folder("read_again")),
        "--attention",
        "--dataset",
        "pmc-sample",
        "--documents",
        "4",
    ]
    intervene.main([*arguments, "--output", str(tmp_path / "a.json")])
    assert capsys.readouterr().out.count("\n") == 5
    rows = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["changes"]
    assert [(row["change"], row["what"]) for row in rows] == [
        ("attention", "erasure"), ("attention", "gradient times input"), ("erasure", "gradient times input"),
    ]  # fmt: skip
    assert all(-1 <= row["low"] <= row["mean"] <= row["high"] <= 1 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["slots permutd"], "did you mean 'slots permuted'"),
        (["--documents", "1"], "--documents must be at least 2"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, reason):
    with pytest.raises(SystemExit, match=reason):
        intervene.main([str(trained_folder("mem2mem")), *arguments, "--dataset", "pmc-sample"])


class Louder(Mem2Mem):
    """A model of one's own, with a change of one's own."""

    def changes(self):
        change = Change("features are 0", model=hooks(torch.zeros_like, "bottleneck"))
        return {**super().changes(), "no bottleneck": change}


def test_a_model_offers_its_own_changes():
    model = double(Louder, tiny_model().config)
    changes = changes_of(model)
    assert changes.keys() == {*changes_of(tiny_model()), "no bottleneck"}
    assert (
        abs(log_probs(model, FOUR, changes["no bottleneck"]) - log_probs(model, FOUR)).max() > 1e-3
    )


def test_a_replaced_attribute_comes_back():
    """A value of the object's own, and a method of its class."""
    model = tiny_model()
    own, method = model.config, model.compress
    with (
        pytest.raises(KeyError),
        replaced(model, "config", None),
        replaced(model, "compress", None),
    ):
        assert model.config is None and model.compress is None
        raise KeyError
    assert model.config is own and model.compress == method and "compress" not in vars(model)
