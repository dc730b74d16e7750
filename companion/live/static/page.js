/* The page: a text, the summary that the model writes of it, and for each word the numbers of every equation.
 *
 * A model's own script (NAME_page.js) stands before this one and defines PAGE:
 *   model      its class (see `search.js`), with `encode(ids)`, a generator, and `with(change)`
 *   read       (text, options) to what `asRows` gives; unit: the name of a row
 *   equations  [number, value(output, text)] in the order of a step; they light the parts of the picture
 *   attention  title; shades {name, label, weights(output, text), ...} of the words; units {label, weights} of the rows
 *   next       title, columns of `output.best`, and a name for the switch
 *   tables     more of a step: {id, title, rows(output, text), note, place(card)}
 *   changes    controls {id, label, ...}: a box, with `choices` a list, or `hidden`. A control makes a `change` of the
 *              model, one by the document of another `paper`, of the `text` before it is read, or `rules` of the search;
 *              `anew`: the text is encoded again; `without`: whether the run lacks that part; `accepts`: whether a hidden
 *              control can have a value that an address names
 * A PAGE may also have `says` (names of symbols), `inside(output)` (first and last word in sight), `vocabulary`, `beside`
 * (a title for the summary of a second model), `closed` (a reader cannot bring a text), `begin` (the first step and
 * equation), `rows` (instead of `ERASING`), `pick(row, word)`, `finishText`, `finishStep`, `build()`.
 * What it says is in DATA: `look`, `formulas`, `symbols` and `tour` of `companion/live/texts.toml`.
 */

let model, second, vocabulary;
/** read: the text as `textOf` has it; document: what the encoder made of it; own, changed, other: summaries, each a list of
 *  steps {id, p, output}, the model, its text and document, and whether it is done; what is looked at: summary, step, equation. */
const view = {
  read: null, document: null, own: null, changed: null, other: null, looked: "own", step: 0, follows: true, equation: 0, job: 0,
};

const SLICE = 12, DRAWN = 200;  // milliseconds of work before the page may breathe, and from one drawing to the next
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

/** What is read of a text (see `own_text.js`): rows, as they are `shown`, what each is `of`, and what is `unread`; all words,
 *  lengths of rows and ids as they are read; forms of the words for a summary; gap: the row that was erased.
 *  Throws an Error where nothing is left of it. */
function textOf(raw) {
  const { read, ...text } = PAGE.read(raw, DATA.options), { rows } = text;
  if (!rows.length) throw new Error("Nothing is left of the text: there is nothing to summarize.");
  return {
    ...text, raw, unread: read ? unreadOf(raw, read) : [], words: rows.flat(), lengths: rows.map(words => words.length),
    ids: vocabulary.encode(rows), forms: formsOf(text), gap: null,
  };
}

/** The same text without a row. The only row stays. */
function withoutRow(text, row) {
  if (text.rows.length < 2) return text;
  const rows = text.rows.toSpliced(row, 1);
  const ids = { ...text.ids, sentences: text.ids.sentences.toSpliced(row, 1) };
  if (ids.read) ids.read = ids.read.toSpliced(row, 1);
  return { ...text, words: rows.flat(), lengths: rows.map(words => words.length), ids, gap: row };
}

/** Ids of a summary for another text, whose unknown words are others. */
const idsFor = (ids, from, to) => ids.map(id => vocabulary.idOf(vocabulary.word(id, from.ids.unknown), to.ids.unknown));

/** Show no text, and nothing that was said of one. */
function forget() {
  Object.assign(view, { read: null, own: null, changed: null, other: null, looked: "own", step: 0, follows: true, document: null });
  $("columns").hidden = true;
  for (const id of ["unlike", "effect", "answer", "unlinked"]) $(id).textContent = "";
  play(false);
}

/** Read a text. */
async function read(job, raw) {
  say("reads …");
  const text = view.read = textOf(raw);
  $("columns").hidden = false;
  $("pasting").open = false;
  $("unlike").replaceChildren(...remarksOn(text.words, vocabulary.reads ?? vocabulary.ids, DATA).map(line => element("span", {}, `${line} `)));
  await work(job, drawText(text));
  for (const control of controls()) if (control === ERASED || control.text) fillList(control);
  drawSummaries();
  view.document = await work(job, model.encode(text.ids));
}

/** Write the summary, or with changes a second one beside it; and what the second model writes of the same text. */
async function write(job) {
  const chosen = chosenChanges();
  Object.assign(view, { follows: true, changed: null, other: null, looked: "own" });
  $("effect").textContent = $("answer").textContent = "";
  if (!view.own?.done) say(await searched(job, "own", model, view.read, view.document));
  if (chosen.length) await writeChanged(job, chosen);
  else drawSummaries();
  if (second) await writeBeside(job, (view.changed ?? view.own).text);
}

const rules = (document = view.document, more = {}) => rulesFor({
  ...DATA.decode, block_ngrams: Number($("blocking").value), beam: bounded("beam"), ...more,
}, document.N);

const summaryOf = (best, made) => ({ ...made, steps: stepsOf(best), ids: best.ids, logP: best.logP });

/** Search, drawing what is best so far; the value says how long it took. more: rules of a change. */
async function searched(job, name, of, text, document, more = {}) {
  const started = performance.now(), show = (best, done = false) => {
    view[name] = summaryOf(best, { of, text, document, done });
    view.looked = name;
    if (view.follows) view.step = done ? PAGE.begin?.step ?? 0 : view[name].steps.length - 1;
    if (view.follows && done) view.equation = PAGE.begin?.equation ?? PAGE.equations.length - 1;
    drawSummaries();
    if (view.follows && done) light(view.equation);
  };
  say("writes …");
  const best = await work(job, search(of, document, rules(document, more)), run => show(run.best));
  show(best, true);
  const count = best.ids.filter(isWritten).length;
  return `${count} ${count === 1 ? "word" : "words"} in ${((performance.now() - started) / 1000).toFixed(1)} s`;
}

async function writeBeside(job, text) {
  const document = await work(job, second.encode(text.ids));
  const best = await work(job, search(second, document, rules(document)));
  view.other = summaryOf(best, { of: second, text, document, done: true });
  drawSummaries();
}

async function writeChanged(job, chosen) {
  say("writes with the change …");
  const change = {}, more = {};
  let text = view.read;
  $("summaries").scrollIntoView({ block: "nearest" });
  for (const { control, value } of chosen) {
    if (control.text) text = textOf(control.text(text.raw, value));
    if (control === ERASED) text = withoutRow(text, value);
  }
  for (const { control, value } of chosen) {
    if (control.paper) Object.assign(change, control.paper(await work(job, model.encode(textOf(DATA.papers[value]).ids))));
    if (control.change) Object.assign(change, control.change(value, text));
    if (control.rules) Object.assign(more, control.rules(value));
  }
  const of = model.with(change), anew = text !== view.read || chosen.some(({ control }) => control.anew);
  const document = anew ? await work(job, of.encode(text.ids)) : view.document;
  const time = await searched(job, "changed", of, text, document, more);
  say("compares the summaries …");
  const effect = {
    own: await meanLogP(job, model, view.read, view.document), changed: await meanLogP(job, of, text, document),
    same: wordsOf(view.own).join(" ") === wordsOf(view.changed).join(" "),
  };
  $("effect").replaceChildren(...withTerms(effectOf(effect)));
  $("effect").dataset.values = JSON.stringify(effect);
  say(time);
}

/** log P of the unchanged summary in nats a word, words that the vocabulary does not have left out. */
async function meanLogP(job, of, text, document) {
  const { ids } = view.own, known = [...ids, EOS].flatMap((id, t) => id < model.size && id !== UNK ? [t] : []);
  const logs = await work(job, logProbs(of, document, idsFor(ids, view.read, text)));
  return mean(known.map(t => logs[t]));
}

const numbered = count => Array.from({ length: count }, (_, n) => [n, String(n + 1)]);
const titles = () => DATA.papers.map(({ title }, n) => [n, title || `Text ${n + 1}`]);
const ERASED = { id: "erased", none: "none", choices: () => numbered(view.read?.rows.length ?? 0) };
const controls = () => [...PAGE.changes, ERASED];

/** Controls that differ from what the run does, with their values. */
const chosenChanges = () => controls().flatMap(control => {
  const { type, checked, value } = $(control.id);
  if (type === "checkbox") return checked ? [{ control, value: true }] : [];
  return value === "" ? [] : [{ control, value: JSON.parse(value) }];
});

const rewrite = () => view.document && begin(write);

/** Make the changes that a state names, and no others. */
function setChanges(state) {
  for (const { id, accepts } of controls()) {
    const value = state.get(id) ?? "";
    if ($(id).type === "checkbox") $(id).checked = state.has(id);
    else $(id).value = !accepts || accepts(value) ? value : "";
  }
}

/** Give a control another value, and write with it. */
function setControl(id, value) {
  $(id).value = value;
  $(id).dispatchEvent(new Event("change"));
}

/** A control was moved. What is erased is a place in the text: it goes with no other change of the text. */
function choose({ id, text }) {
  if (text) $("erased").value = "";
  for (const other of controls()) if (id === "erased" && other.text) $(other.id).value = "";
  rewrite();
}

const fillList = ({ id, none, choices }) => choices && $(id).replaceChildren(option("", none), ...choices().map(pair => option(...pair)));

function look(name, step) {
  Object.assign(view, { looked: name, step, follows: false });
  drawStep();
  if (!drawn) return;
  const [strongest] = highest(drawn[shadesOfRun()[0].name], 1);
  bringIntoView($("text"), view.spans[strongest]);
}

function light(equation) {
  view.equation = equation;
  const { output } = summary()?.steps[view.step] ?? {};
  if (output) drawEquations(output);
  const lit = document.querySelector("#picture .lit");
  if (lit) bringIntoView($("picture"), lit);
}

const LINK = 30_000;  // characters at most: longer ones get lost on their way

/** What a reader sees, as the page's address has it: text, changes, summary and step. */
const stateNow = () => new URLSearchParams([["text", $("paper").value], ...($("paper").value === "own" ? [["own", $("pasted").value]] : []),
  ...chosenChanges().map(({ control: { id } }) => [id, $(id).value]), ["look", view.looked], ["step", view.step + 1]]);

const isInBook = () => location.pathname.includes("/live/"), hasPair = () => isInBook() && Boolean(DATA.pair);

/** Write the state into the address, and into the link to it. */
function keepAddress() {
  let state = String(stateNow());
  const isTooLong = state.length > LINK;
  if (isTooLong) state = "";
  $("address").hidden = isTooLong;
  $("beside").hidden = isTooLong || !hasPair();
  $("unlinked").textContent = isTooLong ? "This text is too long for a link." : "";
  history.replaceState(null, "", $("address").href = `#${state}`);
  $("beside").href = `side_by_side.html#${state}&pair=${DATA.pair}`;
}

/** Begin with a text: the one that an address names, otherwise the one that is chosen, or the first. anew: read it again if it is there. */
function start(address = "", anew = true) {
  const state = new URLSearchParams(address);
  document.body.classList.toggle("brief", state.has("pair"));
  for (const [id, name] of [["paper", "text"], ["pasted", "own"]]) if (state.has(name)) $(id).value = state.get(name);
  if ($("paper").selectedIndex < 0) $("paper").selectedIndex = 0;
  const own = $("paper").value === "own";
  if (own) $("pasting").open = true;
  return begin(async job => {
    const paper = DATA.papers[$("paper").value];
    if (anew || own || paper !== view.read?.raw || !view.document) {
      forget();
      await read(job, own ? ownText($("pasted").value, DATA.options) : paper);
    }
    setChanges(state);
    await write(job);
    const [looked = "own"] = SUMMARIES.filter(name => name === state.get("look") && view[name]);
    if (state.has("step")) look(looked, (Number(state.get("step")) || 1) - 1);
    $("answer").textContent = DATA.tour[asked].state === address ? DATA.tour[asked].see : "";
  });
}

const SUMMARIES = ["own", "changed", "other"];
let asked = 0, playing = null;

/** Ask a question of the tour. Its answer is shown when the reader has made the change. */
function ask(n) {
  asked = n % DATA.tour.length;
  const { question, act } = DATA.tour[asked];
  $("tour-name").textContent = `A tour in questions: ${asked + 1} of ${DATA.tour.length}`;
  for (const [id, text] of [["question", question], ["act", act], ["answer", ""]]) $(id).textContent = text;
  $("ahead").textContent = asked + 1 < DATA.tour.length ? "Next question" : "From the start";
}

/** Step through the summary by itself, or stop. */
function play(on = !playing) {
  clearInterval(playing);
  playing = null;
  const end = () => view.step >= summary().steps.length - 1;
  on &&= Boolean(drawn);
  if (on && end()) look(view.looked, 0);
  if (on) playing = setInterval(() => end() ? play(false) : look(view.looked, view.step + 1), 400);
  $("play").textContent = playing ? "❚❚ Pause" : "▶ Play";
}

/** The controls of the changes, the kinds of shade, the tables and the equations that this model has. */
function build() {
  const { attention: { title, units }, changes, next, tables, equations, closed } = PAGE;
  for (const control of changes) {
    const { id, label, hidden, choices } = control;
    const input = choices ? element("select", { id }) : element("input", { id, type: hidden ? "hidden" : "checkbox" });
    $("erasing").before(hidden ? input : element("label", {}, ...(choices ? [`${label} `, input] : [input, ` ${label}`])));
    fillList(control);
    $(id).disabled = Boolean(control.without?.());  // of what the run does not have
  }
  $("erasing").firstChild.textContent = `${PAGE.unit} erased `;
  $("erasing").hidden = Boolean(PAGE.rows);
  fillList(ERASED);
  $("attention-name").textContent = title;
  $("shades").append(...shadesOfRun().map(({ name, label }, n) => element("label", {},
    element("input", { type: "radio", name: "shade", value: name, checked: n === 0 }), ` ${label}`)), element("span", {}, `bars: ${units.label}`));
  $("words-name").textContent = next.title;
  $("summaries").classList.toggle("short", DATA.decode.max_length <= 30);
  for (const { id, title, note, place = card => $("inside").append(card) } of tables)
    place(tableCard(id, title, ...(note ? [element("p", { className: "note" }, note)] : [])));
  $("equations").append(...equations.map(([n], place) =>
    element("button", { type: "button", role: "radio", tabIndex: -1, onclick: () => light(place) },
      element("b", {}, typeof n === "number" ? `(${n})` : n),
      element("span", { className: "line" },
        element("span", { className: "formula", innerHTML: withSymbols(DATA.formulas[n]) }),
        element("span", { className: "value" }), element("span", { className: "means" })))));
  $("pasting").hidden = Boolean(closed);
  PAGE.build?.();
  const { decode, weights: { rounded } } = DATA, n = decode.block_ngrams || 3;
  $("paper").replaceChildren(...titles().map(pair => option(...pair)), ...(PAGE.closed ? [] : [option("own", "Your own text …")]));
  $("blocking").replaceChildren(option(0, "plain beam search"), option(n, `no ${n} words twice (blocking)`));
  $("blocking").value = decode.block_ngrams;
  $("beam").value = $("beam").defaultValue = decode.beam;
  const millions = Object.values(model.weights).reduce((sum, w) => sum + w.data.length, 0) / 1e6;
  $("caution").textContent = DATA.caution;
  $("look").textContent = DATA.look;
  const inBook = isInBook(), page = `notebooks/${DATA.page}.${inBook ? "html" : "ipynb"}`;
  $("about").append(`The trained model (${millions.toFixed(1)} million weights${rounded ? ", rounded to 16 bits" : ""}) runs in this page, without a network: `
    + "what you paste stays in your browser. It is cut into sentences and words as the library does it with plain text. The equations are explained on ",
  inBook ? element("a", { href: `../${page}`, target: "_top" }, "the model's own page") : page, ".");
}

function listen() {
  const move = step => { play(false); look(view.looked, step); }, by = n => () => move(view.step + n);
  $("back").addEventListener("click", by(-1));
  $("on").addEventListener("click", by(1));
  $("step").addEventListener("input", () => move(Number($("step").value)));
  document.addEventListener("keydown", onKeys({ ArrowRight: by(1), ArrowLeft: by(-1) }, event =>
    event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)));
  const turn = n => () => {
    light((view.equation + n + PAGE.equations.length) % PAGE.equations.length);
    $("equations").children[view.equation].focus();
  };
  $("equations").addEventListener("keydown", onKeys({ ArrowDown: turn(1), ArrowUp: turn(-1) }));
  $("stop").addEventListener("click", () => { view.job++; $("stop").disabled = true; say("stopped"); });
  $("take").addEventListener("click", () => { $("paper").value = "own"; start(); });
  $("paper").addEventListener("change", () => $("paper").value === "own" ? ($("pasting").open = true, $("pasted").focus()) : start());
  $("undo").addEventListener("click", () => { setChanges(new URLSearchParams()); rewrite(); });
  $("play").addEventListener("click", () => play());
  for (const kind of ["pointerover", "click", "focusin"]) document.addEventListener(kind, showTip);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") $("tip").hidden = true; });
  $("picture").addEventListener("click", ({ target }) => {
    const part = target.closest("[data-equations]"), [place] = part ? equationsOf(part) : [];
    if (place !== undefined) light(place);
  });
  $("act").addEventListener("click", () => start(DATA.tour[asked].state, false));
  $("ahead").addEventListener("click", () => ask(asked + 1));
  addEventListener("hashchange", () => start(location.hash.slice(1), false));
  for (const control of controls()) $(control.id).addEventListener("change", () => choose(control));
  for (const id of ["blocking", "beam"])
    $(id).addEventListener("change", () => { if (view.own) view.own.done = false; rewrite(); });
  $("shades").addEventListener("change", () => drawn && drawStep());
}

(async () => {
  say("unpacks the weights …");
  await new Promise(go => requestAnimationFrame(() => setTimeout(go)));  // the page is seen first
  vocabulary = PAGE.vocabulary?.(DATA) ?? new Vocabulary(DATA.words);
  model = new PAGE.model(DATA.config, await unpacked(DATA.weights), SHOWN);
  if (DATA.beside) second = new PAGE.model(DATA.beside.config, await unpacked(DATA.beside.weights), SHOWN);
  build();
  listen();
  ask(0);
  if (DATA.papers.length) start(location.hash.slice(1));
  else say("Paste a text.");
})();
