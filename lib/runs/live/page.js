/* The page: a text, the summary that the model writes of it, and for each word the numbers of every equation. */

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const SHOWN = 5;  // words of a distribution
const SLICE = 12, DRAWN = 200;  // milliseconds of work before the page may breathe, and from one drawing to the next

/** Equations of a step in their order: number, formula, and a value of an output for people. */
const EQUATIONS = [
  [8, "z<sup>k</sup> = σ(W<sub>z1</sub>h<sup>(d)</sup> + W<sub>z2</sub>m + W<sub>z3</sub>M<sub>D</sub>(k))",
    o => o.gates && `keeps ${shares(o.gates)}`],
  [9, "u<sup>k</sup> = tanh(W<sub>u1</sub>h<sup>(d)</sup> + W<sub>u2</sub>m + W<sub>u3</sub>M<sub>D</sub>(k))",
    o => o.updates && `mean |u| ${range(o.updates)}`],
  [10, "M<sub>D</sub>(k) := z<sup>k</sup> ⊙ M<sub>D</sub>(k) + (1 − z<sup>k</sup>) ⊙ u<sup>k</sup>",
    o => `of the first memory ${shares(o.left)} left`],
  [7, "ψ = Attn(h<sup>(d)</sup>, M<sub>D</sub>), m = Σ ψ<sub>k</sub>M<sub>D</sub>(k), h<sup>(m)</sup> = W<sub>m</sub>[h<sup>(d)</sup>; m]",
    o => { const k = highest(o.psi, 1)[0]; return `most from slot ${k + 1}: ${number(o.psi[k])}`; }],
  [16, "cov<sub>t</sub> = Σ<sub>t′&lt;t</sub> α<sub>t′</sub>",
    o => { const i = highest(o.coverage, 1)[0]; return `largest ${number(o.coverage[i])}, ${wordAt(i)}`; }],
  [17, "α<sub>i</sub> = softmax<sub>i</sub>(v<sup>⊤</sup>tanh(W<sub>e</sub>h<sub>i</sub> + W<sub>d</sub>h<sup>(m)</sup> + w<sub>c</sub>cov<sub>i</sub>))",
    o => { const i = highest(o.alpha, 1)[0]; return `largest ${number(o.alpha[i])}, ${wordAt(i)}`; }],
  [3, "γ<sub>i</sub> ∝ β<sub>sen(i)</sub>α<sub>i</sub>, c = Σ γ<sub>i</sub>h<sub>i</sub>",
    o => { const i = highest(o.gamma, 1)[0]; return `largest ${number(o.gamma[i])}, ${wordAt(i)}`; }],
  [13, "P<sub>g</sub> = softmax(V(V′[h<sup>(m)</sup>; c] + b) + b′), p = σ(w<sub>c</sub>c + w<sub>d</sub>h<sup>(m)</sup> + w<sub>x</sub>x′)",
    o => `p = ${number(o.generate)}: generate`],
  [14, "P<sub>c</sub>(w) = Σ<sub>i: x<sub>i</sub> = w</sub> γ<sub>i</sub>",
    o => `largest ${number(o.best.copied[0][1])}, ${word(o.best.copied[0][0])}`],
  [15, "P = pP<sub>g</sub> + (1 − p)P<sub>c</sub>",
    o => `largest ${number(o.best.mixed[0][1])}, ${word(o.best.mixed[0][0])}`],
];

let model, vocabulary;
const encoded = new Map();  // of the papers, by their number
/** read: rows of words and their sections; document: what the encoder made; ids: of the text as it is encoded;
 *  own, changed: summaries, each a list of steps {id, logP, output}, and whether it goes on; step, equation, shown. */
const view = {
  read: null, document: null, ids: null, own: null, changed: null, looked: "own", step: 0, follows: true, equation: 0,
  erased: null, job: 0, other: null,
};

// ------------------------------------------------------------------------------------------------------------ helpers

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const number = x => x >= 0.9995 ? x.toFixed(2) : x >= 0.001 || x === 0 ? x.toFixed(3) : x.toExponential(1);
const signed = x => x.toFixed(3).replace("-", "−");
const percent = x => `${(100 * x).toFixed(x < 0.1 ? 1 : 0)}%`;
const mean = numbers => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const shares = numbers => percent(mean(numbers));
const range = numbers => `${number(Math.min(...numbers))} to ${number(Math.max(...numbers))}`;
const highest = (numbers, count) => largest(numbers, count).length ? largest(numbers, count) : [0];
const word = id => vocabulary.word(id, view.ids.unknown);
const wordAt = i => view.read.words[i];
const summary = () => view[view.looked] ?? view.own;
const bar = (share, kind = "") => {
  const filled = element("i");
  filled.style.width = `${Math.min(1, share) * 100}%`;
  return element("span", { className: `share ${kind}` }, filled);
};

// --------------------------------------------------------------------------------------------------------------- work

const breath = new MessageChannel(), waiting = [];
breath.port1.onmessage = () => waiting.shift()();
const next = () => new Promise(go => { waiting.push(go); breath.port2.postMessage(0); });

class Stopped extends Error {}

/** Run a generator in slices, so that the page can be used; `seen` gets what it stops with, not more often than the
 *  page can show. Throws Stopped when another job begins. */
async function work(job, generator, seen = null) {
  let started = performance.now(), drawn = 0;
  for (;;) {
    const { value, done } = generator.next();
    if (done) return value;
    const now = performance.now();
    if (now - started < SLICE) continue;
    if (seen && now - drawn > DRAWN) { seen(value); drawn = performance.now(); }
    await next();
    if (job !== view.job) throw new Stopped();
    started = performance.now();
  }
}

function say(text, error = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", error);
}

/** Begin a job: the last one stops. What it throws is said to the reader. */
async function begin(task) {
  const job = ++view.job;
  $("stop").disabled = false;
  try {
    await task(job);
  } catch (reason) {
    if (reason instanceof Stopped) return;
    say(reason.message, true);
  }
  if (job === view.job) $("stop").disabled = true;
}

const rules = () => rulesFor({
  ...DATA.decode, block_ngrams: Number($("blocking").value), beam: bounded("beam"), min_length: bounded("least"),
  max_length: Math.max(bounded("least"), bounded("most")),
}, view.document.N);

/** The number of a field within its bounds. */
function bounded(id) {
  const { min, max, valueAsNumber, defaultValue } = $(id);
  return Math.min(Number(max), Math.max(Number(min), Math.round(Number.isFinite(valueAsNumber) ? valueAsNumber : defaultValue)));
}

/** Read a text {title, names, sections}, and write its summary. */
async function read(job, text, source = "", number = null) {
  say("reads …");
  const { rows, of } = readDocument(text, DATA.options);
  if (!rows.length) throw new Error("Nothing is left of the text: there is nothing to summarize.");
  Object.assign(view, { read: { title: text.title, source, rows, of, words: rows.flat() }, ids: vocabulary.encode(rows) });
  Object.assign(view, { own: null, changed: null, looked: "own", step: 0, follows: true, document: null, number });
  clearChanges();
  drawText();
  drawSummaries();
  view.document = await encode(job, view.ids, number);
  await write(job);
}

async function encode(job, ids, number = null) {
  if (encoded.has(number)) return encoded.get(number);
  const made = await work(job, model.encode(ids), j => say(`reads sentence ${j + 1} of ${ids.sentences.length}`));
  if (number !== null) encoded.set(number, made);
  return made;
}

/** Write the summary, or with changes a second one beside it. */
async function write(job) {
  const change = chosenChange();
  view.follows = true;
  if (!change) {
    Object.assign(view, { own: null, changed: null, looked: "own" });
    $("effect").textContent = "";
    return void await searched(job, "own", model, view.document);
  }
  if (!view.own?.done) await searched(job, "own", model, view.document);
  await changed(job, change);
}

/** Search, drawing what is best so far. */
async function searched(job, name, of, document) {
  const started = performance.now(), show = (best, done = false) => {
    view[name] = { steps: stepsOf(best), ids: best.ids, logP: best.logP, done };
    view.looked = name;
    if (view.follows) {
      view.step = view[name].steps.length - 1;
      view.equation = done ? EQUATIONS.length - 1 : (view.equation + 1) % EQUATIONS.length;  // one after the other is lit
    }
    drawSummaries();
  };
  say("writes …");
  const best = await work(job, search(of, document, rules()), run => show(run.best));
  show(best, true);
  say(`${best.ids.length} words in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** The changes that are chosen, or null: of the model, of the memory, of the text. */
function chosenChange() {
  const from = (id, none = "") => $(id).value === none ? null : Number($(id).value);
  const change = {
    written: !$("unwritten").checked, covered: !$("uncovered").checked, copying: !$("uncopied").checked,
    other: from("memory"), erasedSlot: from("slot"), sentence: from("erased"),
  };
  const same = change.written && change.covered && change.copying;
  return same && change.other === null && change.erasedSlot === null && change.sentence === null ? null : change;
}

async function changed(job, { other, sentence, ...change }) {
  say("writes with the change …");
  const memory = other === null ? null : (await encode(job, vocabulary.encode(readDocument(DATA.papers[other], DATA.options).rows), other)).memory;
  const ids = sentence === null ? view.ids : { ...view.ids, sentences: view.ids.sentences.filter((_, j) => j !== sentence) };
  const document = sentence === null ? view.document : await encode(job, ids);
  const of = model.with({ ...change, memory });
  await searched(job, "changed", of, document);
  const logs = await work(job, logProbs(of, document, view.own.ids));
  const own = await work(job, logProbs(model, view.document, view.own.ids));
  const known = [...view.own.ids, EOS].flatMap((id, t) => id < model.size ? [t] : []);  // as lib.evaluation.interventions
  const sum = values => mean(known.map(t => values[t]));
  view.effect = { own: sum(own), changed: sum(logs), same: view.own.ids.join() === view.changed.ids.join() };
  const { own: a, changed: b, same } = view.effect, sign = b >= a ? "+" : "−";
  $("effect").textContent = `${same ? "The summary stays as it is. " : ""}log P of the unchanged summary, nats a word: `
    + `${signed(a)} unchanged, ${signed(b)} with the change (${sign}${Math.abs(b - a).toFixed(3)})`;
  $("effect").dataset.values = JSON.stringify(view.effect);
}

// --------------------------------------------------------------------------------------------------------------- draw

function drawText() {
  const { title, source, rows, of } = view.read, article = $("text");
  article.replaceChildren(element("h2", {}, title || "Your text"));
  if (source) article.append(element("p", { className: "note" }, source));
  Object.assign(view, { spans: [], bars: [], darks: [] });
  rows.forEach((words, j) => {
    if (of[j] && of[j] !== of[j - 1]) article.append(element("h3", {}, of[j]));
    const number = element("button", { type: "button", title: `Erase sentence ${j + 1}, or bring it back`, "aria-pressed": "false" }, String(j + 1));
    number.addEventListener("click", () => { $("erased").value = $("erased").value === String(j) ? "" : j; rewrite(); });
    const length = element("span", { className: "bar" });
    const sentence = element("p", { className: "sentence" }, number, length);
    for (const text of words) {
      const span = element("span", { className: "word" }, text);
      view.spans.push(span);
      sentence.append(span, " ");
    }
    view.bars.push(length);
    article.append(sentence);
  });
  article.scrollTop = 0;
  for (const name of ["own", "changed"]) $(name).lastElementChild.replaceChildren();
  $("erased").replaceChildren(element("option", { value: "" }, "none"), ...rows.map((_, j) => element("option", { value: j }, String(j + 1))));
}

/** Numbers of sentences as the text has them; a text without the erased one has fewer. */
const onShownText = weights => {
  const erased = view.looked === "changed" && $("erased").value !== "" ? Number($("erased").value) : null;
  if (erased === null) return weights;
  const before = view.read.rows.slice(0, erased).flat().length, words = view.read.rows[erased].length;
  const at = weights.length === view.read.rows.length - 1 ? erased : before, size = weights.length === view.read.rows.length - 1 ? 1 : words;
  return [...weights.slice(0, at), ...Array(size).fill(0), ...weights.slice(at)];
};

/** The summary, or two side by side. Words that are there already stay: a search mostly goes on. */
function drawSummaries() {
  const { own, changed } = view, kept = changed && common(own.ids, changed.ids);
  $("summaries").classList.toggle("two", Boolean(changed));
  for (const [name, title] of [["own", changed ? "unchanged" : ""], ["changed", "with the change"]]) {
    const { steps = [], logP } = view[name] ?? {}, box = $(name), paragraph = box.lastElementChild;
    box.hidden = name === "changed" && !changed;
    box.firstElementChild.textContent = [title, steps.length && `log P a word ${signed(logP / steps.length)}`].filter(Boolean).join(", ");
    const words = steps.filter(({ id }) => id !== EOS), shown = paragraph.children;
    let same = 0;
    while (same < shown.length && same < words.length && Number(shown[same].dataset.id) === words[same].id) same++;
    while (shown.length > same) shown[same].remove();
    for (const { id } of words.slice(same)) {
      const text = word(id), apart = shown.length && !/^[.,;:)\]%]$/.test(text) ? " " : "", place = shown.length;
      const span = element("span", { className: "word" }, text), whole = element("span", {}, apart, span);
      whole.dataset.id = id;
      span.addEventListener("click", () => look(name, place));
      paragraph.append(whole);
    }
    words.forEach(({ output }, t) => {
      const { classList } = shown[t].lastChild;
      classList.toggle("copied", output.generate < 0.5);
      classList.toggle(name === "own" ? "gone" : "new", Boolean(kept) && !kept[name].has(t));
    });
  }
  drawStep();
}

/** Places of the words that two summaries share in their order (the longest common subsequence), in each of them. */
function common(a, b) {
  const width = b.length + 1, longest = new Uint16Array((a.length + 1) * width), own = new Set(), changed = new Set();
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] = a[i] === b[j] ? 1 + longest[(i + 1) * width + j + 1]
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { own.add(i++); changed.add(j++); }
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return { own, changed };
}

function drawStep() {
  const { steps = [] } = summary() ?? {}, count = steps.length;
  view.step = Math.max(0, Math.min(view.step, count - 1));
  const slider = $("step"), { id, p, output } = steps[view.step] ?? {};
  slider.max = Math.max(0, count - 1);
  slider.value = view.step;
  for (const name of ["first", "back"]) $(name).disabled = view.step === 0;
  for (const name of ["on", "last"]) $(name).disabled = view.step >= count - 1;
  for (const here of document.querySelectorAll("#summaries .here")) here.classList.remove("here");
  if (!output) return;
  const said = id === EOS ? "[EOS]" : word(id);
  $("drawn").textContent = `Before “${said}” is written`;
  $("place").textContent = `word ${view.step + 1} of ${count}`;
  slider.setAttribute("aria-valuetext", `word ${view.step + 1} of ${count}: ${said}`);
  const paragraph = $(view.looked).lastElementChild, here = paragraph.children[view.step]?.lastChild;
  if (here) {
    here.classList.add("here");
    const place = here.offsetTop - paragraph.offsetTop;
    if (place < paragraph.scrollTop || place > paragraph.scrollTop + paragraph.clientHeight - 30)
      paragraph.scrollTop = place - paragraph.clientHeight / 2;
  }
  drawn = { alpha: onShownText(output.alpha), beta: onShownText(output.beta), gamma: onShownText(output.gamma), coverage: onShownText(output.coverage) };
  drawWeights();
  drawSlots(output);
  drawAttention();
  drawWords(output, id, p);
  drawEquations(output);
}

let drawn;  // weights of the step, at the places of the text that is shown

function drawWeights() {
  const shade = document.querySelector("[name=shade]:checked").value, weights = drawn[shade];
  const most = shade === "coverage" ? Math.max(1, ...weights) : 1;
  view.spans.forEach((span, i) => {
    const dark = Math.round(50 * Math.sqrt(weights[i] / most)) / 50;  // the root: small weights can be seen, too
    if (view.darks[i] === dark) return;
    view.darks[i] = dark;
    span.style.background = dark < 0.06 ? "" : `rgb(var(--looked) / ${dark})`;
    span.classList.toggle("strong", dark > 0.6);
  });
  const erased = $("erased").value;
  view.bars.forEach((length, j) => {
    length.style.width = `${2.1 * drawn.beta[j]}rem`;
    length.parentElement.classList.toggle("erased", String(j) === erased);
    length.previousElementSibling.setAttribute("aria-pressed", String(String(j) === erased));
  });
}

const header = (...names) => element("tr", {}, ...names.map(name => element("th", { scope: "col", innerHTML: name })));
const cells = (...contents) => element("tr", {}, ...contents.map(c => element("td", {}, ...[c].flat())));

function drawSlots({ psi, gates, updates, norms, left }) {
  $("slots").replaceChildren(header("slot", "read ψ (7)", "kept z (8)", "mean |u| (9)", "‖M(k)‖ (10)", "left of the first"),
    ...Array.from(psi, (share, k) => cells(String(k + 1), [bar(share), number(share)], gates ? [bar(gates[k], "memory"), number(gates[k])] : "–",
      updates ? number(updates[k]) : "–", norms[k].toFixed(2), [bar(left[k], "memory"), number(left[k])])));
}

function drawAttention() {
  const { alpha, beta, gamma, coverage } = drawn;
  $("attention").replaceChildren(header("word", "cov (16)", "α (17)", "sentence", "β (3)", "γ (3)"),
    ...highest(gamma, 6).map(i => {
      const j = sentenceOf(i), line = cells(wordAt(i), number(coverage[i]), number(alpha[i]), String(j + 1), number(beta[j]), [bar(gamma[i]), number(gamma[i])]);
      line.firstChild.className = "text";
      return line;
    }));
}

function sentenceOf(place) {
  let j = 0;
  for (let end = view.read.rows[0].length; place >= end; end += view.read.rows[++j].length);
  return j;
}

function drawWords({ generate, best, barred }, id, p) {
  $("switch").replaceChildren(element("span", {}, `copy ${number(1 - generate)}`), bar(generate), element("span", {}, `generate p = ${number(generate)} (13)`));
  const may = of => barred ? !barred.includes(of) : of === EOS;
  const cell = (pair, mixed) => pair ? element("span", {
    className: pair[0] === id ? "chosen" : mixed && !may(pair[0]) ? "barred" : "",
    title: mixed && !may(pair[0]) ? "barred: a symbol, the end of a summary that is too short, or a repetition" : "",
  }, `${word(pair[0])} ${number(pair[1])}`) : "";
  $("words").replaceChildren(header("generated, P<sub>g</sub>", "copied, P<sub>c</sub> (14)", "both, P (15)"),
    ...Array.from({ length: SHOWN }, (_, n) => cells(cell(best.generated[n]), cell(best.copied[n]), cell(best.mixed[n], true))),
    cells(`written: ${word(id)}`, "", `P = ${number(p)}`));
  for (const td of $("words").querySelectorAll("td")) td.className = "text";
  $("words").lastChild.classList.add("chosen");
}

function drawEquations(output) {
  [...$("equations").children].forEach((button, n) => {
    button.querySelector(".value").textContent = EQUATIONS[n][2](output) || "nothing is written before the first read";
    button.setAttribute("aria-checked", String(n === view.equation));
    button.tabIndex = n === view.equation ? 0 : -1;
  });
  const lit = `e${EQUATIONS[view.equation][0]}-`;
  for (const part of document.querySelectorAll("#picture g[id^=p]"))
    if (/^p\d+-/.test(part.id)) part.classList.toggle("lit", part.id.includes(`-${lit}`));
}

// -------------------------------------------------------------------------------------------------------------- reader

function look(name, step) {
  Object.assign(view, { looked: name, step, follows: false });
  drawStep();
  showStrongest();
}

/** Bring the word of the largest weight into view, inside the text's own box alone. */
function showStrongest() {
  const article = $("text"), box = article.getBoundingClientRect();
  const place = view.spans[highest(drawn.gamma, 1)[0]].getBoundingClientRect();
  if (place.top < box.top || place.bottom > box.bottom) article.scrollTop += place.top - box.top - box.height / 3;
}

function light(equation) {
  view.equation = equation;
  const { output } = summary()?.steps[view.step] ?? {};
  if (output) drawEquations(output);
}

const rewrite = () => view.document && begin(write);

function clearChanges() {
  for (const id of ["unwritten", "uncovered", "uncopied"]) $(id).checked = false;
  for (const id of ["memory", "slot", "erased"]) $(id).value = "";
}

/** Begin with what the reader chose: one of the papers, or a text of their own. */
function start() {
  const own = $("paper").value === "own", chosen = Number($("paper").value);
  if (own) $("pasting").open = true;
  begin(async job => {
    if (!own) return read(job, DATA.papers[chosen], DATA.papers[chosen].source, chosen);
    say("reads …");
    await read(job, await work(job, parseText($("pasted").value), n => say(`${n} sentences`)));
  });
}

const option = (value, text) => element("option", { value }, text);

function fillControls() {
  const { decode, papers } = DATA, titled = papers.map(({ title }, i) => option(i, title || `Text ${i + 1}`));
  $("paper").replaceChildren(...titled, option("own", "Your own text …"));
  $("memory").replaceChildren(option("", "this text"), ...papers.map(({ title }, i) => option(i, title || `Text ${i + 1}`)));
  $("slot").replaceChildren(option("", "none"), ...Array.from({ length: model.slots }, (_, k) => option(k, String(k + 1))));
  $("blocking").replaceChildren(option(0, "plain beam search"), option(decode.block_ngrams || 3, `no ${decode.block_ngrams || 3} words twice (blocking)`));
  $("blocking").value = decode.block_ngrams;
  for (const [id, value] of [["beam", decode.beam], ["least", decode.min_length], ["most", decode.max_length]])
    $(id).value = $(id).defaultValue = Math.min(value, Number($(id).max));
  $("unwritten").disabled = !model.config.write;
  $("about").textContent = `${(Object.values(model.weights).reduce((n, w) => n + w.data.length, 0) / 1e6).toFixed(1)} million weights`
    + `${DATA.weights.rounded ? ", rounded to 16 bits: numbers differ from the library's in the fourth digit" : ""}.`;
  $("equations").replaceChildren(...EQUATIONS.map(([n, formula], place) => {
    const button = element("button", { type: "button", role: "radio", "aria-checked": "false", tabIndex: -1 },
      element("b", {}, `(${n})`), element("span", { className: "line" },
        element("span", { className: "formula", innerHTML: formula }), element("span", { className: "value" })));
    button.addEventListener("click", () => light(place));
    return button;
  }));
}

function listen() {
  const move = step => look(view.looked, step);
  const moves = { first: () => 0, back: () => view.step - 1, on: () => view.step + 1, last: () => Infinity };
  for (const [id, to] of Object.entries(moves)) $(id).addEventListener("click", () => move(to()));
  $("step").addEventListener("input", () => move(Number($("step").value)));
  $("write").addEventListener("click", start);
  $("take").addEventListener("click", () => { $("paper").value = "own"; start(); });
  $("paper").addEventListener("change", () => $("paper").value === "own" ? ($("pasting").open = true, $("pasted").focus()) : start());
  $("stop").addEventListener("click", () => { view.job++; $("stop").disabled = true; say("stopped"); });
  $("undo").addEventListener("click", () => { clearChanges(); rewrite(); });
  for (const id of ["unwritten", "uncovered", "uncopied", "memory", "slot", "erased"]) $(id).addEventListener("change", rewrite);
  for (const id of ["blocking", "beam", "least", "most"])
    $(id).addEventListener("change", () => { if (view.own) view.own.done = false; rewrite(); });
  for (const input of document.querySelectorAll("[name=shade]")) input.addEventListener("change", () => drawn && drawWeights());
  $("equations").addEventListener("keydown", event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    light((view.equation + by + EQUATIONS.length) % EQUATIONS.length);
    $("equations").children[view.equation].focus();
  });
  document.addEventListener("keydown", event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    move(view.step + by);
  });
}

(async () => {
  say("unpacks the weights …");
  await new Promise(go => requestAnimationFrame(() => setTimeout(go)));  // the page is seen first
  loadRules(DATA.rules);
  vocabulary = new Vocabulary(DATA.words);
  model = new Mem2Mem(DATA.config, await unpacked(DATA.weights), SHOWN);
  fillControls();
  listen();
  if (DATA.papers.length) start();
  else say("Paste a text.");
})();
