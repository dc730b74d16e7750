/* The frame in which a reader types a text, and sees at once what a small pointer-generator makes of it. */

const SHOWN = 3, MOST = 200;  // words of a distribution, and of a text
const NAMES = { generated: "generate, P<sub>g</sub>", copied: "copy, P<sub>c</sub>", mixed: "both, P" };
const COLUMN = 92, LINE = 38;  // pixels of the tree

const vocabulary = new Vocabulary(DATA.words);
let model;
/** words: of the text; document: what the encoder made of them; moved: the switch at some steps, by hand; levels: open
 *  hypotheses after each word; run: the search; steps: of its best hypothesis; step: the one that is looked at. */
const view = { words: [], document: null, moved: new Map(), levels: [], run: null, steps: [], step: 0 };

const short = x => signed(x, 2);
const word = id => vocabulary.word(id, view.document.unknown);

// ----------------------------------------------------------------------------------------------- reading and writing

function read() {
  const all = tokensOf($("typed").value.toLowerCase());
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
  view.levels = [run.open];
  for (let goes = true; goes;) { goes = run.step(); view.levels.push(run.open); }
  if (!run.best) {  // where a switch is moved to 0, [EOS] may have P = 0
    if (!view.moved.size) return say("No summary of this text can end. Type another one.");
    view.moved.clear();
    return write(" The switches are the model's own again: as they were no summary could end.");
  }
  Object.assign(view, { run, steps: stepsOf(run.best) });
  say(`The summary: ${run.best.ids.map(word).join(" ")} (log P ${signed(run.best.logP)}).${remark}`);
  drawTree();
  drawEnded();
  look(Math.min(view.step, view.steps.length - 1));
}

// ------------------------------------------------------------------------------------------------------------ a step

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

// ------------------------------------------------------------------------------------------------------- the search

/** Hypotheses by their number of words, [EOS] counted in: those that went on, and those that ended. */
function columnsOf({ levels, run }) {
  const columns = levels.map(open => [...open]);
  for (const ended of run.ended) columns[ended.ids.length + 1].push(ended);
  return columns.map(column => column.sort((a, b) => b.logP - a.logP));
}

function drawTree() {
  const columns = columnsOf(view), places = new Map(), chosen = new Set();
  columns.forEach((column, t) => column.forEach((node, line) => places.set(node, [t * COLUMN, line * LINE])));
  for (let node = view.run.best; node; node = node.parent) chosen.add(node);
  const shapes = [...places].flatMap(([node, [x, y]]) => {
    const { parent, score, ids } = node, kind = chosen.has(node) ? "chosen" : "";
    const said = parent ? word(score === undefined ? ids.at(-1) : EOS) : "[BOS]";
    const texts = [shape("text", { x: x + 24, y: y + 16, class: kind }, said.length > 8 ? `${said.slice(0, 7)}…` : said),
      shape("text", { x: x + 24, y: y + 30, class: "log" }, short(node.logP))];
    if (!parent) return texts;
    const [left, top] = places.get(parent), curve = `M${left + 82} ${top + 12} C${x + 8} ${top + 12} ${x} ${y + 12} ${x + 20} ${y + 12}`;
    return [shape("path", { d: curve, class: kind }), ...texts];
  });
  const width = columns.length * COLUMN, height = Math.max(...columns.map(column => column.length)) * LINE;
  const said = `A tree of ${places.size - 1} hypotheses with log P below each; the table has those that ended`;
  $("tree").replaceChildren(shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, ...shapes));
}

function shape(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawEnded() {
  $("ended").replaceChildren(header("rank", "log P", "summary"), ...view.run.ended.slice(0, bounded("beam")).map(({ score, logP, ids }) =>
    cells(signed(score), signed(logP), ids.map(word).join(" "))));
}

// -------------------------------------------------------------------------------------------------------- the reader

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
