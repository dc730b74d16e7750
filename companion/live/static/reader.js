/* What all pages share: work in slices, summaries word by word, the stepper, equations and their numbers.
 *
 * A page has a `view`: `job`, the number of the work that is going on; summaries, of which `looked` is the one that is
 * looked at, and `own` that of the unchanged model; the `step` of it; `equation`, the one that is lit. It has
 * `look(name, step)`, which looks at a step of a summary.
 */

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const SHOWN = 5;  // words of a distribution
const SLICE = 12, DRAWN = 200;  // milliseconds of work before the page may breathe, and from one drawing to the next

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
const mean = numbers => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const highest = (numbers, count) => largest(numbers, count).length ? largest(numbers, count) : [0];
const bar = (share, kind = "") => {
  const filled = element("i");
  filled.style.width = `${Math.min(1, share) * 100}%`;
  return element("span", { className: `share ${kind}` }, filled);
};
const withBar = (share, kind) => [bar(share, kind), number(share)];
const summary = () => view[view.looked] ?? view.own;
const option = (value, text) => element("option", { value }, text);
const header = (...names) => element("tr", {}, ...names.map(name => element("th", { scope: "col", innerHTML: name })));
const cells = (...contents) => element("tr", {}, ...contents.map(c => element("td", {}, ...[c].flat())));

/** The number of a field within its bounds. */
function bounded(id) {
  const { min, max, valueAsNumber, defaultValue } = $(id);
  return Math.min(Number(max), Math.max(Number(min), Math.round(Number.isFinite(valueAsNumber) ? valueAsNumber : defaultValue)));
}

const millions = weights => `${(Object.values(weights).reduce((n, w) => n + w.data.length, 0) / 1e6).toFixed(1)} million weights`;

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

/** log P a word of the unchanged summary, unchanged and with a change: a line for people. */
function effectOf({ own, changed, same }) {
  const sign = changed >= own ? "+" : "−";
  return `${same ? "The summary stays as it is. " : ""}log P of the unchanged summary, nats a word: `
    + `${signed(own)} unchanged, ${signed(changed)} with the change (${sign}${Math.abs(changed - own).toFixed(3)})`;
}

// ---------------------------------------------------------------------------------------------------------- summaries

/** A summary in its box. Words that are there already stay: a search mostly goes on. said(id): a word; classes(step, t):
 *  {name: whether the word has that class}. */
function drawSummary(name, title, { steps = [], logP } = {}, said, classes) {
  const box = $(name), paragraph = box.lastElementChild, shown = paragraph.children;
  box.firstElementChild.textContent = [title, steps.length && `log P a word ${signed(logP / steps.length)}`].filter(Boolean).join(", ");
  const words = steps.filter(({ id }) => id !== EOS);
  let same = 0;
  while (same < shown.length && same < words.length && Number(shown[same].dataset.id) === words[same].id) same++;
  while (shown.length > same) shown[same].remove();
  for (const { id } of words.slice(same)) {
    const text = said(id), apart = shown.length && !/^[.,;:)\]%]$/.test(text) ? " " : "", place = shown.length;
    const span = element("span", { className: "word" }, text), whole = element("span", {}, apart, span);
    whole.dataset.id = id;
    span.addEventListener("click", () => look(name, place));
    paragraph.append(whole);
  }
  words.forEach((step, t) => {
    for (const [className, on] of Object.entries(classes(step, t))) shown[t].lastChild.classList.toggle(className, on);
  });
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

/** The stepper, and the word that is looked at; the step that it stands at, {} while there is none. */
function drawStepper(steps, said) {
  const count = steps.length, slider = $("step");
  view.step = Math.max(0, Math.min(view.step, count - 1));
  slider.max = Math.max(0, count - 1);
  slider.value = view.step;
  for (const name of ["first", "back"]) $(name).disabled = view.step === 0;
  for (const name of ["on", "last"]) $(name).disabled = view.step >= count - 1;
  for (const here of document.querySelectorAll("#summaries .here")) here.classList.remove("here");
  if (!count) return {};
  const step = steps[view.step], written = step.id === EOS ? "[EOS]" : said(step.id);
  $("drawn").textContent = `Before “${written}” is written`;
  $("place").textContent = `word ${view.step + 1} of ${count}`;
  slider.setAttribute("aria-valuetext", `word ${view.step + 1} of ${count}: ${written}`);
  const paragraph = $(view.looked).lastElementChild, here = paragraph.children[view.step]?.lastChild;
  if (here) {
    here.classList.add("here");
    const place = here.offsetTop - paragraph.offsetTop;
    if (place < paragraph.scrollTop || place > paragraph.scrollTop + paragraph.clientHeight - 30)
      paragraph.scrollTop = place - paragraph.clientHeight / 2;
  }
  return step;
}

/** Steps by buttons, slider and arrow keys: move(step). */
function listenToSteps(move) {
  const moves = { first: () => 0, back: () => view.step - 1, on: () => view.step + 1, last: () => Infinity };
  for (const [id, to] of Object.entries(moves)) $(id).addEventListener("click", () => move(to()));
  $("step").addEventListener("input", () => move(Number($("step").value)));
  $("stop").addEventListener("click", () => { view.job++; $("stop").disabled = true; say("stopped"); });
  document.addEventListener("keydown", event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    move(view.step + by);
  });
}

// ---------------------------------------------------------------------------------------------------------- equations

/** Equations [number or name, formula, ...] as a list of choices: light(place). */
function fillEquations(equations, light) {
  $("equations").replaceChildren(...equations.map(([n, formula], place) => {
    const button = element("button", { type: "button", role: "radio", "aria-checked": "false", tabIndex: -1 },
      element("b", {}, typeof n === "number" ? `(${n})` : n), element("span", { className: "line" },
        element("span", { className: "formula", innerHTML: formula }), element("span", { className: "value" })));
    button.addEventListener("click", () => light(place));
    return button;
  }));
  $("equations").addEventListener("keydown", event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    light((view.equation + by + equations.length) % equations.length);
    $("equations").children[view.equation].focus();
  });
}

/** Values (texts) of all equations, and the parts of the picture that are lit by the chosen one. */
function drawEquations(equations, values) {
  [...$("equations").children].forEach((button, n) => {
    button.querySelector(".value").textContent = values[n];
    button.setAttribute("aria-checked", String(n === view.equation));
    button.tabIndex = n === view.equation ? 0 : -1;
  });
  const lit = String(equations[view.equation][0]);
  for (const part of document.querySelectorAll("#picture [data-equations]")) {
    const numbers = part.dataset.equations.split(" ");
    part.classList.toggle("lit", numbers.includes(/^\d/.test(lit) ? lit : ""));  // a name stands for the unnumbered parts
  }
}
