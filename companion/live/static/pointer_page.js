/* The frame in which a reader types a text, and sees at once what a small pointer-generator makes of it. */

const SHOWN = 3, MOST = 200;  // words of a distribution, and of a text
const NAMES = { generated: "generate, P<sub>g</sub>", copied: "copy, P<sub>c</sub>", mixed: "both, P" };

const vocabulary = new Vocabulary(DATA.words);
let model;
/** words: of the text; document: what the encoder made of them; moved: the switch at some steps, by hand; run: the
 *  search; steps: of its best hypothesis; step: the one that is looked at. */
const view = { words: [], document: null, moved: new Map(), run: null, steps: [], step: 0 };

const short = x => signed(x, 2);
const word = id => vocabulary.word(id, view.document.unknown);

function read() {
  const all = tokenize(lowered($("typed").value));
  view.words = all.slice(0, MOST);
  view.moved.clear();
  view.step = 0;
  view.document = all.length ? drained(model.encode(vocabulary.encode([view.words]))) : null;
  write(all.length > MOST ? ` The first ${MOST} of ${all.length} words are read.` : "");
}

function write(remark = "") {
  $("results").hidden = !view.document;
  if (!view.document) return say("Type a text.");
  const run = new BeamSearch(model.with(view.moved), view.document, { ...DATA.decode, beam: bounded("beam") });
  while (run.step());
  if (!run.best) {  // where a switch is moved to 0, [EOS] may have P = 0
    if (!view.moved.size) return say("No summary of this text can end. Type another one.");
    view.moved.clear();
    return write(" The switches are the model's own again: as they were no summary could end.");
  }
  Object.assign(view, { run, steps: stepsOf(run.best) });
  say(`The summary: ${run.best.ids.map(word).join(" ")} (log P ${signed(run.best.logP)}).${remark}`);
  drawEnded();
  look(Math.min(view.step, view.steps.length - 1));
}

/** Show what the model does at a step. */
function look(step) {
  view.step = step;
  const { output, id } = view.steps[step], held = $("summary").contains(document.activeElement);
  $("summary").replaceChildren(...view.steps.map(({ id }, t) => button(word(id), () => look(t), { "aria-pressed": t === step })));
  if (held) $("summary").children[step].focus();
  $("step-name").textContent = `Step ${step + 1}, ${word(id)}: the text as dark as the attention to it`;
  drawAttention(output.gamma);
  $("by-hand").value = output.generate;
  $("share").textContent = view.moved.has(step)
    ? `${short(output.generate)} by hand; the model's own is ${short(output.own)}`
    : `${short(output.own)}, the model's own: ${output.own > 0.5 ? "it generates" : "it copies"}`;
  $("restore").disabled = !view.moved.size;
  $("best").replaceChildren(...Object.entries(NAMES).map(([name, title]) => element("tr", {},
    element("th", { scope: "row", innerHTML: title }), ...output.best[name].map(([id, p]) => element("td", {}, `${word(id)} ${short(p)}`)))));
}

function drawAttention(gamma) {
  $("words-read").replaceChildren(...view.words.flatMap((text, i) => {
    const unknown = view.document.source[i] >= DATA.words.length;
    const span = element("span", { className: `shaded${unknown ? " unknown" : ""}` }, text);
    span.title = `${gamma[i].toFixed(3)}${unknown ? "; not in the vocabulary: it can only be copied" : ""}`;
    shade(span, gamma[i]);
    return [span, " "];
  }));
}

function drawEnded() {
  $("ended").replaceChildren(header("rank", "log P", "summary"), ...view.run.ended.slice(0, bounded("beam")).map(({ score, logP, ids }) =>
    cells(signed(score), signed(logP), ids.map(word).join(" "))));
}

(async () => {
  $("frame").hidden = false;
  model = new Seq2Seq(DATA.config, await unpacked(DATA.weights), SHOWN);
  $("typed").value = DATA.text;
  $("beam").value = DATA.decode.beam;
  $("typed").addEventListener("input", read);
  $("beam").addEventListener("input", () => write());
  $("by-hand").addEventListener("input", () => { view.moved.set(view.step, Number($("by-hand").value)); write(); });
  $("restore").addEventListener("click", () => { view.moved.clear(); write(); });
  const turn = by => () => look((view.step + by + view.steps.length) % view.steps.length);
  $("summary").addEventListener("keydown", onKeys({ ArrowRight: turn(1), ArrowLeft: turn(-1) }));
  read();
})().catch(reason => {
  $("results").hidden = true;
  say(`The model does not run in this browser: ${reason.message}`, true);
});
