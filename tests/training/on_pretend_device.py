"""Every variant of every paper on a device that is not there (`tests.tools.pretend_device`): what a
GPU would refuse is found without one, and losses, gradients and texts are those of the CPU's
kernels.

    python -m pytest tests/training/on_pretend_device.py -q -k mem2mem
    TRITON_INTERPRET=1 python -m tests.training.on_pretend_device   # counts the synchronisations of all anew

To import the device changes PyTorch, so that pytest does not collect this file by its name:
`tests/training/test_devices.py` runs it in a process of its own.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import lib
from companion.results.tables import TRAINED
from companion.tasks.synthetic import planted_sentences
from lib.data.batch import Batch, EncodedDocument
from lib.data.corpus import Corpus
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.vocabulary import SPECIALS, Vocabulary
from lib.decoding import search
from lib.decoding.config import DecodeConfig
from lib.decoding.run import Run
from lib.decoding.search import Hypothesis, beam_search, greedy_search, sample_search
from lib.evaluation.interventions import changes_of, log_probs
from lib.models.hred import HRED
from lib.models.paragraph_ranker import ParagraphRanker
from lib.models.sentence_extractors import SentencePointer
from lib.models.summarizer import Summarizer
from lib.papers import PAPERS
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.devices import default_device
from lib.system.files import trained_folder
from lib.system.metrics import read_metrics
from lib.training import loop
from lib.training.config import TrainConfig
from lib.training.folder import Recipe, read_meta
from tests.conftest import VOCAB, batch_of, same_document
from tests.decoding.test_runs import RECORD, tiny
from tests.gpu import counts, plan
from tests.gpu.cases import PAPER_CASES
from tests.gpu.cases import Case as PlanCase
from tests.models.test_models import CONCERNED, Case, cases
from tests.tools.pretend_device import DEVICE, Fault, moved, on_cpu, pretend_device
from tests.training.test_gpu import same_as_the_kept_count

# case -> of a training step, of a search step
COUNTED = Path(__file__).parents[1] / "cases" / "synchronisations.json"
CPU = torch.device("cpu")
SEARCH = DecodeConfig(beam=2, min_length=4, max_length=4, block_ngrams=2)


def pytest_generate_tests(metafunc):
    """Of each class of models the first case; the others take long."""
    for name in CONCERNED.keys() & set(metafunc.fixturenames):
        kinds: set[type] = set()
        chosen = []
        for case in filter(CONCERNED[name], cases(PAPERS)):
            chosen.append(
                pytest.param(
                    case, marks=[pytest.mark.long] if case.kind in kinds else [], id=str(case)
                )
            )
            kinds.add(case.kind)
        metafunc.parametrize(name, chosen)


def model_of(case: Case, **changes) -> Any:
    return case.model(**changes).float()


def put(model: Any, device: torch.device) -> Any:
    return moved(model) if device == DEVICE else model


def loop_of(case: Case, folder: Path, device: torch.device, **changes) -> loop._Loop:
    """Training of a case on its documents, in one batch; the rate of SGD is 1."""
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCAB - len(SPECIALS))])
    encoder = TextEncoder(CohanOptions(vocab_size=VOCAB), vocabulary)
    corpus = PreparedCorpus(
        "tiny", encoder, {"train": Split.of(case.documents), "val": Split.of([])}
    )
    config = TrainConfig(batch_size=3, optimizer="sgd", learning_rate=1.0, max_norm=0.5)
    model = put(model_of(case, **changes), device)
    return loop._Loop(Recipe("mem2mem"), model, corpus, config, folder, device=device)


def close(ours: Any, expected: Any, what: Any) -> None:
    assert torch.allclose(torch.as_tensor(ours), torch.as_tensor(expected), rtol=1e-4, atol=2e-5), (
        what
    )


def closely(ours: dict, expected: dict) -> None:
    assert ours.keys() == expected.keys()
    for name, value in on_cpu(ours).items():
        close(value, expected[name], name)


def same_hypotheses(ours: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [h.ids for h in ours] == [h.ids for h in expected]
    close([h.log_prob for h in ours], [h.log_prob for h in expected], "log P")


def counted(case: Case) -> list[int]:
    """The synchronisations that a case may have."""
    numbers = json.loads(COUNTED.read_text("utf-8"))
    assert str(case) in numbers, (
        f"{case} has no line in {COUNTED.name}: TRITON_INTERPRET=1 python -m "
        "tests.training.on_pretend_device"
    )
    return numbers[str(case)]


def count_training(case: Case, folder: Path) -> tuple[int, loop._Loop, dict]:
    """The synchronisations of a training step, the training after it and its losses."""
    with pretend_device() as device:
        training = loop_of(case, folder, DEVICE)
        device.synchronisations.clear()
        losses = training.step(training.model, training.updates.make(0))
        return device.synchronisations.total(), training, losses


@torch.no_grad()
def count_search(case: Case) -> int:
    """The synchronisations of a step of beam search that ends no hypothesis."""
    with pretend_device() as device:
        model, batch = moved(model_of(case)).eval(), batch_of(*case.documents).to(DEVICE)
        searching = search._Search(model, batch, SEARCH)
        searching.step(1)
        device.synchronisations.clear()
        searching.step(2)
        return device.synchronisations.total()


# ---------------------------------------------------------------------------------
# every model


def test_a_training_step_is_the_kernels(case, tmp_path):
    """Loss, clipped gradients, and weights after the optimizer's step."""
    expected = loop_of(case, tmp_path, CPU)
    losses = expected.step(expected.model, expected.updates.make(0))
    synchronisations, training, own_losses = count_training(case, tmp_path)
    closely(own_losses, losses)
    pairs = zip(training.model.named_parameters(), expected.model.parameters(), strict=True)
    for (name, ours), parameter in pairs:
        assert (ours.grad is None) == (parameter.grad is None), name
        if parameter.grad is not None:
            close(on_cpu(ours.grad), parameter.grad, f"gradient of {name}")
        close(on_cpu(ours), parameter, name)
    assert synchronisations <= counted(case)[0]


def test_dropout_and_adam(dropping, tmp_path):
    """No more than that they run: the device draws other numbers."""
    with pretend_device():
        training = loop_of(dropping, tmp_path, DEVICE, dropout=0.5)
        training.optimizer = loop.make_optimizer(training.model, TrainConfig())
        losses = training.step(training.model, training.updates.make(0))
        assert all(
            torch.isfinite(p).all() for p in [*losses.values(), *training.model.parameters()]
        )


def search_both(case: Case, write: Callable[[Any, Batch], list[Hypothesis]]) -> None:
    expected = write(model_of(case), batch_of(*case.documents))
    with pretend_device():
        ours = write(moved(model_of(case)), batch_of(*case.documents).to(DEVICE))
    same_hypotheses(ours, expected)


def test_searches_write_the_same(writer):
    search_both(
        writer,
        lambda model, batch: [h for found in beam_search(model, batch, SEARCH) for h in found],
    )
    ends = replace(SEARCH, min_length=0, block_ngrams=0)
    search_both(
        writer, lambda model, batch: [h for found in beam_search(model, batch, ends) for h in found]
    )
    search_both(writer, lambda model, batch: greedy_search(model, batch, SEARCH))
    search_both(writer, lambda model, batch: sample_search(model, batch, replace(SEARCH, sample=3)))


def test_synchronisations_of_a_search_step(writer):
    assert count_search(writer) <= counted(writer)[1]


def test_what_is_shown_is_the_same(writer):
    def seen(device: torch.device) -> dict[str, torch.Tensor]:
        model, batch = put(model_of(writer), device), batch_of(*writer.documents).to(device)
        with torch.no_grad():
            return model.attention_weights(batch.target_input, model.encode(batch))

    with pretend_device():
        ours = seen(DEVICE)
    closely(ours, seen(CPU))


def test_interventions_are_the_same(writer):
    model, documents = model_of(writer), writer.documents[1:]  # 2 and 8 words; one of them unknown

    def changed() -> dict[str, torch.Tensor]:
        return {
            name: log_probs(model, documents, change) for name, change in changes_of(model).items()
        }

    expected = changed()
    with pretend_device():
        moved(model)
        ours = changed()
    closely(ours, expected)


def test_the_same_sentences_are_chosen(extractor):
    expected = model_of(extractor).choose(batch_of(*extractor.documents))
    with pretend_device(), torch.no_grad():
        assert (
            moved(model_of(extractor)).choose(batch_of(*extractor.documents).to(DEVICE)) == expected
        )


def test_a_batch_is_copied_without_a_wait():
    with pretend_device() as device:
        batch = batch_of().to(DEVICE)
        assert {x.device for x in vars(batch).values() if isinstance(x, torch.Tensor)} == {DEVICE}
        for name in ("sentence_mask", "sentence_of", "sentences", "ragged", "packed"):
            getattr(batch, name)
        assert not device.synchronisations


# ---------------------------------------------------------------------------------
# whole runs

TEXT = """# Gulls

## Where they breed

Most gulls breed on cliffs near the sea. Some pairs have moved to flat roofs in towns.

## What they eat

Fish is their food in spring. In winter they follow the plough and eat worms."""


def first(kind: type) -> Case:
    return next(case for case in cases(PAPERS) if case.kind is kind)


def short_corpus() -> PreparedCorpus:
    """8 training and 2 validation documents of six words: the interpreter takes long for each
    word."""
    made = partial(planted_sentences, sentences=3, words=2, planted=2, vocab_size=20)
    splits = {
        "train": Split.of(made(8, seed=1)),
        "val": Split.of(made(2, seed=2)),
        "test": Split.of([]),
    }
    vocabulary = Vocabulary([f"w{i}" for i in range(20 - len(SPECIALS))])
    return PreparedCorpus("short", TextEncoder(CohanOptions(vocab_size=20), vocabulary), splits)


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adagrad"])
def test_a_run_is_trained_resumed_and_used(optimizer, tmp_path, monkeypatch):
    """Validation, checkpoints, a resumed optimizer, a summary with its attention."""
    case, recipe = first(HRED), Recipe("mem2mem", "hred", decode=replace(SEARCH, min_length=0))
    corpus = short_corpus()
    config = TrainConfig(
        batch_size=2,
        steps=4,
        optimizer=optimizer,
        learning_rate=0.01,
        validate_every=2,
        log_every=1,
    )

    def run_in(folder: str, steps: Sequence[int]) -> Any:
        for number in steps:
            torch.manual_seed(0)
            model = case.kind(replace(case.config, vocab_size=20))
            trained = loop.train(
                recipe, model, corpus, replace(config, steps=number), tmp_path / folder, True, False
            )
        return trained, trained.summarize([TEXT], attention=True)

    _, (expected,) = run_in("cpu", [4])
    with pretend_device():
        monkeypatch.setattr(loop.devices, "device_named", lambda name: DEVICE)
        run, (summary,) = run_in("device", [2, 4])
        assert {p.device for p in run.model.parameters()} == {DEVICE}
    ours, theirs = (
        [m["loss"] for m in read_metrics(tmp_path / name)] for name in ("device", "cpu")
    )
    close(ours, theirs, "losses")
    same_summary(summary, expected)


@pytest.mark.parametrize("checks", ["log_every", "validate_every", "save_every"])
def test_a_loss_that_is_not_finite_is_found_before_it_is_used(checks, tmp_path, monkeypatch):
    """Before the next log line, validation or checkpoint: the error is the CPU's, and nothing has
    been written."""
    case, recipe, step = first(HRED), Recipe("mem2mem", "hred"), loop._Loop.step
    rare = {"log_every": 100, "validate_every": 100, "save_every": 100, checks: 3}
    config = TrainConfig(
        batch_size=2, steps=9, optimizer="sgd", learning_rate=1e30, max_norm=None, **rare
    )
    updates = []
    monkeypatch.setattr(loop._Loop, "step", lambda *given: updates.append(given) or step(*given))

    def error_in(folder: str) -> str:
        torch.manual_seed(0)
        updates.clear()
        model = case.kind(replace(case.config, vocab_size=20))
        with pytest.raises(loop.NonFiniteLossError) as raised:
            loop.train(recipe, model, short_corpus(), config, tmp_path / folder, False, False)
        assert read_meta(tmp_path / folder / "last.safetensors")["step"] == 0 and not read_metrics(
            tmp_path / folder
        )
        return str(raised.value).replace(folder, "").partition(" at ")[2]

    expected = error_in("cpu")
    assert expected.startswith("step 2, documents ")
    with pretend_device():
        monkeypatch.setattr(loop.devices, "device_named", lambda name: DEVICE)
        assert error_in("device") == expected
    assert len(updates) == 3, "looked at every three updates"


# of a paper and variant: the model that chooses what it reads, and the method that does
CHOOSERS = {
    ("hierarchical_transformer", "HT"): (ParagraphRanker, "logits"),
    ("mem2mem", "TLM + extracts"): (SentencePointer, "choose"),
}


@pytest.mark.parametrize("chooser", CHOOSERS, ids=str)
def test_what_chooses_what_is_read_computes_there_too(chooser, tmp_path, monkeypatch):
    """The ranker of paragraphs and Sent-PTR, in preparing a corpus and in encoding a text for a
    run."""
    (kind, name), seen = CHOOSERS[chooser], []
    monkeypatch.setattr(kind, name, spied(getattr(kind, name), seen))
    setup = tiny(*chooser)
    records = [
        {**RECORD, "id": f"r{i}", "abstract_text": ["It ends ."], "summary": "It ends ."}
        for i in range(4)
    ]
    texts = Corpus.from_records(train=records, val=records[:1], test=records[:1])

    def prepared(device: torch.device) -> PreparedCorpus:
        monkeypatch.setenv("COMPANION_CACHE", str(tmp_path / device.type))
        with default_device(device):
            return setup.prepare(texts, progress=False)

    def encoded(device: torch.device) -> list[EncodedDocument]:
        run = Run(tmp_path, {}, put(setup.build(corpus), device), corpus.encoder)
        return run.encode(run.documents(records[:2]))

    corpus = prepared(CPU)
    expected = encoded(CPU)
    assert {*seen} == {"cpu"}
    seen.clear()
    with pretend_device():
        prepared(DEVICE)  # with other draws of dropout
        assert {*seen} == {DEVICE.type}
        seen.clear()
        ours = encoded(DEVICE)
    assert {*seen} == {DEVICE.type}
    for document, other in zip(ours, expected, strict=True):
        same_document(document, other)


def spied(method: Callable, seen: list[str]) -> Callable:
    """A model's method, with the type of the device of each batch that it gets put into `seen`."""

    def spy(self: Any, batch: Batch) -> Any:
        seen.append(batch.source.device.type)
        return method(self, batch)

    return spy


def same_summary(ours: Any, expected: Any) -> None:
    assert str(ours) == str(expected) and ours.attention.keys() == expected.attention.keys()
    for name, weights in expected.attention.items():
        assert np.allclose(ours.attention[name], weights, rtol=1e-3, atol=1e-4), name


@pytest.mark.long
@pytest.mark.parametrize("name", TRAINED)
def test_kept_runs_summarize_as_on_a_cpu(name):
    run = lib.load(trained_folder(name), device="cpu")
    run.decode = replace(run.decode, beam=2, min_length=0, max_length=8)
    (expected,) = run.summarize([TEXT], attention=True)
    with pretend_device():
        moved(run.model)
        (summary,) = run.summarize([TEXT], attention=True)
    same_summary(summary, expected)


# ---------------------------------------------------------------------------------
# mistakes are found


HERE = "tests/training/on_pretend_device.py"


def planted(mistake: Callable[[Any, Batch], Any]) -> Callable[[Any, Batch], Any]:
    """`encode` after a mistake."""
    encode = HRED.encode

    def encoded(self: Any, batch: Batch) -> Any:
        mistake(self, batch)
        return encode(self, batch)

    return encoded


# what is found -> the mistake, and where that is
MISTAKES = {
    "tensors of both devices": (
        lambda model, batch: batch.source * torch.ones(batch.source.shape[1]),
        HERE,
    ),
    "an index on the CPU": (lambda model, batch: batch.source[torch.arange(len(batch))], HERE),
    "an array, such as the kernels": (lambda model, batch: batch.source.numpy(), HERE),
    "gru: tensors of both": (
        lambda model, batch: model.decoder(torch.zeros(1, 1, 5)),
        "lib/layers/recurrent.py",
    ),
    "gru: first states that": (
        lambda model, batch: model.decoder(
            model.embedding(batch.source),
            torch.zeros(1, 6, len(batch), device=DEVICE).transpose(1, 2),
        ),
        "lib/layers/recurrent.py",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_with_its_line(what, monkeypatch, tmp_path):
    mistake, file = MISTAKES[what]
    line = mistake.__code__.co_firstlineno if file == HERE else r"\d+"
    monkeypatch.setattr(HRED, "encode", planted(mistake))
    with pytest.raises(Fault, match=rf"{what}.*, {file}:{line}$"):
        count_training(first(HRED), tmp_path)


def test_a_further_synchronisation_is_counted(monkeypatch, tmp_path):
    shortest = Case.documents.fget(first(HRED))[1:2]
    monkeypatch.setattr(Case, "documents", shortest)
    before, *_ = count_training(first(HRED), tmp_path)
    monkeypatch.setattr(HRED, "encode", planted(lambda model, batch: bool(batch.source_mask.all())))
    after, *_ = count_training(first(HRED), tmp_path)
    assert after == before + 1


# ---------------------------------------------------------------------------------
# what the plan counts


def operations_of(work: Callable, *shapes: tuple[int, ...]) -> tuple[int, int, int]:
    """Floating-point operations, bytes moved and launches of a function of tensors of zeros."""
    with counts.counted() as (_, found):
        tensors = [torch.zeros(shape).to(DEVICE).requires_grad_() for shape in shapes]
        found.start()
        work(*tensors)
        return found.flop, found.moved, found.launches


@torch.no_grad()
@pytest.mark.parametrize(
    ("work", "shapes", "expected"),
    [
        (lambda a, b: a @ b, [(2, 3), (3, 5)], (60, 4 * (6 + 15 + 10), 1)),
        (lambda a: a.T[:1], [(2, 3)], (0, 0, 0)),  # views
        # what is repeated is read once
        (lambda a, b: a + b.expand(2, 3), [(2, 3), (1, 3)], (0, 4 * (6 + 3 + 6), 1)),
        (lambda a: a.add_(1), [(2, 3)], (0, 4 * (6 + 6), 1)),
        (lambda a: a.zero_(), [(2, 3)], (0, 4 * 6, 1)),  # written alone
        (lambda a, b: a.addmm_(b, b), [(3, 3), (3, 3)], (54, 4 * (9 + 9 + 9 + 9), 1)),
        # the index is copied; of 100 rows one is read
        (lambda a: a[torch.tensor([1]).to(DEVICE)], [(100, 3)], (0, 8 + 8 + 4 * 6 + 8, 2)),
        (lambda a: torch.zeros_like(a), [(2, 3)], (0, 4 * 6, 1)),
    ],
)
def test_operations_are_counted_as_by_hand(work, shapes, expected):
    assert operations_of(work, *shapes) == expected


def test_attention_and_recurrent_layers_are_counted():
    shapes = (1, 2, 3, 4), (1, 2, 5, 4)
    flop, _, launches = operations_of(
        lambda q, k: scaled_dot_product_attention(q, k, k).sum(), *shapes
    )
    assert flop == 2 * 2 * 2 * 3 * 5 * 4 and launches == 2, "two products of 2 heads, and the sum"
    layer = torch.nn.LSTM(3, 2, batch_first=True)

    def read(x: torch.Tensor) -> None:
        first = [torch.zeros(1, 7, 2, device=DEVICE)] * 2
        torch.lstm(
            x,
            first,
            [p.data.to(DEVICE) for p in layer.parameters()],
            True,
            1,
            0.0,
            True,
            False,
            True,
        )

    with torch.no_grad():
        assert operations_of(read, (7, 5, 3))[0] == 2 * 35 * (8 * 3 + 8 * 2)


def test_memory_is_counted_for_as_long_as_it_is_held():
    with counts.counted() as (_, found):
        a = torch.zeros(1000).to(DEVICE).requires_grad_()
        b = a.exp().exp()
        assert found.live == found.peak == 3 * 4000, (
            "a, and both exponentials, which their slopes need"
        )
        b.sum().backward()
        del b
        assert found.live == 2 * 4000, "a and its gradient"


def test_a_count_is_the_kept_one():
    """The code still asks for what the plan says, in the cheapest case."""
    same_as_the_kept_count(plan.count(PAPER_CASES["read_again"], 8))


def test_parts_of_an_update_are_counted_as_often_as_there_are(monkeypatch):
    """Of four documents in two parts: forward and backward twice, the optimizer once. Where a
    preset names no parts, all that fit into memory are one."""

    class Small(PlanCase):
        batch, parts = 4, 1
        source, target = 9, 5

        @property
        def setup(self):
            setup = PAPERS[self.paper].setup(self.preset)
            widths = {**setup.config, "embedding": 8, "hidden": 8}
            return replace(setup, config=widths, train=replace(setup.train, accumulate=self.parts))

    case = Small("read_again", "paper", ("gigaword",))
    one = plan.count(case, 1)
    Small.parts = 2
    two = plan.count(case, 1)
    Small.parts = None
    # two documents at once are counted, and four fit
    monkeypatch.setattr(plan, "WORDS_AT_ONCE", 2 * case.source)
    by_memory = plan.count(case, 1)
    assert two["parts"] == 2 and 1.8 * one["launches"] < two["launches"] < 2 * one["launches"]
    assert by_memory["parts"] == 1 and by_memory["launches"] == pytest.approx(
        one["launches"], rel=0.02
    )


def main() -> None:
    """Count the synchronisations of all cases, and write them where the tests read them."""
    numbers = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(PAPERS):
            step, *_ = count_training(case, Path(folder))
            numbers[str(case)] = [
                step,
                *([count_search(case)] if issubclass(case.kind, Summarizer) else []),
            ]
    lines = [f"{json.dumps(name)}: {counts}" for name, counts in numbers.items()]
    COUNTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
