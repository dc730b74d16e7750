"""Corpora for extractors and TLM: what their pieces are learned from, what they are kept by, and
their Sent-PTR."""

from dataclasses import replace

import pytest
import torch

from lib import score, summarize
from lib import train as train_command
from lib.data.batch import rows_of
from lib.data.corpora import Corpus
from lib.data.documents import Document
from lib.models.sentence_extractors import SentencePointer
from lib.papers import resolve
from lib.papers.mem2mem.extracts import ExtractOptions, SequenceOptions, train_pointer
from lib.system.files import cache_dir
from lib.system.metrics import read_metrics
from lib.training.folder import load_weights

TEXT = [
    "Ten Cats were shown fish .",
    "Most Cats ate it .",
    "Dogs were not shown any .",
    "Why is not known .",
]
# z and x are in no text
LONG, SHORT = ["Cats ate fish .", "Dogs did not .", "Zxz .", "Why ?"], ["Cats ate fish ."]
TRAINING = [
    Document(f"p{n}", "", ["Introduction", "Method"], [TEXT[:2], TEXT[2:]], summary)
    for n, summary in enumerate((LONG, LONG, LONG, SHORT, SHORT))
]
OPTIONS = SequenceOptions(
    vocab_size=60,
    summary_tokens=30,
    window=100,
    extract_tokens=20,
    pointer_steps=2,
    pointer_batch=2,
    pointer_embedding=8,
    pointer_hidden=8,
    pointer_layers=1,
)
EXTRACTS = ExtractOptions(vocab_size=60, summary_tokens=30)


def corpus():
    return Corpus.from_records(train=TRAINING[:4], val=TRAINING[2:4], test=TRAINING[:1])


@pytest.mark.parametrize("lower", [True, False])
def test_pieces_are_learned_in_the_case_in_which_they_are_read(lower):
    made = replace(EXTRACTS, lower=lower).prepare(corpus(), progress=False)
    letters = set("".join(made.vocabulary.words))
    assert ("C" in letters) is not lower
    assert {"z", "x"} <= {letter.lower() for letter in letters}, "from summaries as well"
    (document,) = made["test"]
    texts = [t.lower() if lower else t for t in TEXT]
    assert [made.vocabulary.text(row) for row in rows_of(document)] == texts
    written = [t.lower() if lower else t for t in LONG]
    assert made.vocabulary.sentences(document.target.tolist()) == written


def test_the_pointers_best_weights_are_kept():
    """Other sentences are right in the validation document, so that the loss of it rises while the
    pointer learns."""
    options, other = (
        replace(OPTIONS, pointer_steps=30, pointer_rate=0.1),
        replace(TRAINING[0], summary=TEXT[2:3]),
    )
    texts = Corpus.from_records(train=TRAINING[3:], val=[other], test=TRAINING[:1])
    found = replace(EXTRACTS, matches=1).prepare(texts, progress=False)
    pointer = train_pointer(found, options, progress=False)
    (folder,) = cache_dir().glob("pointer-*")
    losses = [m["loss"] for m in read_metrics(folder) if m["split"] == "val"]
    assert min(losses) < losses[-1]
    best, last = (
        load_weights(SentencePointer(pointer.config), folder, kind).state_dict()
        for kind in ("best", "last")
    )
    assert (
        all(torch.equal(w, best[name]) for name, w in pointer.state_dict().items())
        and not pointer.training
    )
    assert not all(torch.equal(w, last[name]) for name, w in best.items())


def test_summaries_sentences_are_counted():
    """3.25 on average in training, 2.5 in the validation documents."""
    made = EXTRACTS.prepare(corpus(), progress=False)
    rounded = Corpus.from_records(train=TRAINING, val=TRAINING[:1], test=TRAINING[:1])
    row = resolve("mem2mem", "demo", "Sent-CLF")
    assert row.build(EXTRACTS.prepare(rounded, progress=False)).config.summary_sentences == 3, (
        "of 2.8"
    )
    assert row.build(made).config.summary_sentences == 3
    assert (
        replace(row, config={**row.config, "summary_sentences": 5})
        .build(made)
        .config.summary_sentences
        == 5
    ), "as it is given"


# ---------------------------------------------------------------------------------
# as presets


@pytest.fixture(scope="module", params=["Sent-CLF", "Sent-PTR"])
def run(request, tmp_path_factory):
    """Trained by the command."""
    folder = tmp_path_factory.mktemp("extractor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        given = ["--preset", "demo", "--variant", request.param, "--limit", "8", "--steps", "6"]
        train_command.main(["mem2mem", *given, "--output", str(folder / "run")])
    return folder / "run"


def test_they_are_scored_and_summarize(run, tmp_path, capsys):
    score.main(["run", str(run), "--dataset", "aclsum", "--documents", "3"])
    assert "\nsummaries " in capsys.readouterr().out
    (tmp_path / "a.txt").write_text(
        "A text about reading. It has three sentences. This is the last one.", encoding="utf-8"
    )
    summarize.main([str(run), str(tmp_path / "a.txt")])
    lines = capsys.readouterr().out.splitlines()
    assert lines and set(lines) <= {
        "A text about reading.",
        "It has three sentences.",
        "This is the last one.",
    }
    with pytest.raises(SystemExit, match="chooses whole sentences: no --words"):
        summarize.main([str(run), str(tmp_path / "a.txt"), "--words", "5"])
