/* The part of a page in which a reader types a text, and sees at once what a small pointer-generator makes of it. */

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const SHOWN = 3, MOST = 200, WIDEST = 6;  // words of a distribution, of a text, and the beam
const NAMES = { generated: ["generate, P", "g"], copied: ["copy, P", "c"], mixed: ["both, P", ""] };
const COLUMN = 92, LINE = 38;  // pixels of the tree

const vocabulary = new Vocabulary(DATA.words);
let model;
/** words: of the text; document: what the encoder made of them; moved: the switch at some steps, by hand; levels: open
 *  hypotheses after each word; run: the search; steps: of its best hypothesis; step: the one that is looked at. */
const view = { words: [], document: null, moved: new Map(), levels: [], run: null, steps: [], step: 0 };

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
const word = id => vocabulary.word(id, view.document.unknown);
const beamWidth = () => Math.min(WIDEST, Math.max(1, Math.round(Number($("beam").value)) || 1));

// ------------------------------------------------------------------------------------------------------ reading

function read() {
  const all = tokensOf($("text").value.toLowerCase());
  view.words = all.slice(0, MOST);
  view.moved.clear();
  view.step = 0;
  view.document = all.length ? model.encode(vocabulary.encode([view.words])) : null;
  write(all.length > MOST ? ` The first ${MOST} of ${all.length} words are read.` : "");
}

// ------------------------------------------------------------------------------------------------------ writing

function write(remark = "") {
  $("results").hidden = !view.document;
  if (!view.document) return say("Type a text.");
  const run = new BeamSearch(model.with(view.moved), view.document, { ...DATA.decode, beam: beamWidth() });
  view.levels = [run.open];
  for (let goes = true; goes;) { goes = run.step(); view.levels.push(run.open); }
  if (!run.best) {  // where a switch is moved to 0, [EOS] may have P = 0
    if (!view.moved.size) return say("No summary of this text can end. Type another one.");
    view.moved.clear();
    return write(" The switches are the model's own again: as they were no summary could end.");
  }
  view.run = run;
  view.steps = stepsOf(run.best);
  view.step = Math.min(view.step, view.steps.length - 1);
  say(`The summary: ${run.best.ids.map(word).join(" ")} (log P ${number(run.best.logP, 3)}).${remark}`);
  drawTree();
  drawEnded();
  look(view.step);
}

function say(text, error = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", error);
}

/** Show what the model does at a step. */
function look(step) {
  view.step = step;
  const { output, id } = view.steps[step], held = $("written").contains(document.activeElement);
  $("written").replaceChildren(...view.steps.map(({ id }, t) => {
    const button = element("button", { type: "button", onclick: () => look(t) }, word(id));
    button.setAttribute("aria-pressed", t === step);
    return button;
  }));
  if (held) $("written").children[step].focus();
  $("step-name").textContent = `Step ${step + 1}, ${word(id)}: the text as dark as the attention to it`;
  drawAttention(output.gamma);
  $("switch").value = output.generate;
  $("share").textContent = view.moved.has(step)
    ? `${number(output.generate)} by hand; the model's own is ${number(output.own)}`
    : `${number(output.own)}, the model's own: ${output.own > 0.5 ? "it generates" : "it copies"}`;
  $("back").disabled = !view.moved.size;
  $("best").replaceChildren(...Object.entries(NAMES).map(([name, [title, index]]) => element("tr", {},
    element("th", { scope: "row" }, title, element("sub", {}, index)),
    ...output.best[name].map(([id, p]) => element("td", {}, `${word(id)} ${number(p)}`)))));
}

function drawAttention(gamma) {
  const known = DATA.words.length;
  $("attention").replaceChildren(...view.words.flatMap((text, i) => {
    const unknown = view.document.source[i] >= known, weight = gamma[i];
    const span = element("span", { className: unknown ? "unknown" : "" }, text);
    span.title = `${weight.toFixed(3)}${unknown ? "; not in the vocabulary: it can only be copied" : ""}`;
    if (weight >= 0.005) span.style.background = `rgb(var(--looked) / ${weight.toFixed(2)})`;
    if (weight > 0.5) span.style.color = "var(--page)";
    return [span, " "];
  }));
}

// ------------------------------------------------------------------------------------------------------ searching

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
  const width = columns.length * COLUMN, height = Math.max(...columns.map(column => column.length)) * LINE;
  const nodes = [...places].map(([node, [x, y]]) => {
    const kind = chosen.has(node) ? "chosen" : "", name = node.score === undefined ? node.ids.at(-1) : EOS;
    const text = shape("text", { x: x + 24, y: y + 16, class: kind }, node.parent ? shortened(word(name)) : "[BOS]");
    return [text, shape("text", { x: x + 24, y: y + 30, class: "log" }, number(node.logP))];
  });
  const lines = [...places].filter(([node]) => node.parent).map(([node, [x, y]]) => {
    const [left, top] = places.get(node.parent), from = left + 24 + 58, kind = chosen.has(node) ? "chosen" : "";
    return shape("path", { d: `M${from} ${top + 12} C${x + 8} ${top + 12} ${x} ${y + 12} ${x + 20} ${y + 12}`, class: kind });
  });
  const tree = $("tree");
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) tree.setAttribute(name, value);
  tree.setAttribute("aria-label", `A tree of ${places.size - 1} hypotheses with log P below each; the table has those that ended`);
  tree.replaceChildren(...lines, ...nodes.flat());
}

function shape(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

const shortened = text => [...text].length > 8 ? `${[...text].slice(0, 7).join("")}…` : text;

function drawEnded() {
  const rows = view.run.ended.slice(0, beamWidth()).map(({ score, logP, ids }) => element("tr", {},
    ...[number(score, 3), number(logP, 3), ids.map(word).join(" ")].map(text => element("td", {}, text))));
  const head = element("tr", {}, ...["rank", "log P", "summary"].map(text => element("th", { scope: "col" }, text)));
  $("ended").replaceChildren(head, ...rows);
}

// ------------------------------------------------------------------------------------------------------ the reader

(async () => {
  model = new Seq2Seq(DATA.config, await unpacked(DATA.weights), SHOWN);
  $("text").value = DATA.text;
  $("beam").value = DATA.decode.beam;
  $("text").addEventListener("input", read);
  $("beam").addEventListener("input", () => write());
  $("switch").addEventListener("input", () => { view.moved.set(view.step, Number($("switch").value)); write(); });
  $("back").addEventListener("click", () => { view.moved.clear(); write(); });
  $("written").addEventListener("keydown", event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    look((view.step + by + view.steps.length) % view.steps.length);
  });
  document.querySelector("main").hidden = false;
  read();
})().catch(reason => {
  document.querySelector("main").hidden = false;
  $("results").hidden = true;
  say(`The model does not run in this browser: ${reason.message}`, true);
});
