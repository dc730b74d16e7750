/* The page: a text, the summary that the model writes of it, and for each word the numbers of every equation.
 *
 * What is a model's own is in PAGE, of a script that stands before this one:
 *   model      its class (see `search.js`), with `encode(ids)`, a generator, and `with(change)`
 *   read       (text, options) to what is read of a text: rows of words, and the heading of each; unit: what a row is
 *   equations  [number, formula, value(output)] in the order of a step; the parts of the picture with that number are lit
 *   attention  title, shades {name, label, weights(output), ...} and units {label, weights(output)} of the words and rows
 *   next       title, columns of `output.best`, and what says how the model generates
 *   tables     more of a step: {id, title, rows(output)}
 *   changes    controls {id, label, ...}: a box, or with `choices` a list. What is chosen makes a `change` of the model,
 *              one by the document of another `paper`, of the `text` before it is read, or `rules` of the search;
 *              `anew`: the text is encoded with it; `without`: whether the run does not have that part
 * and where a model has them: `says` (symbols as they are shown), `inside(output)` (the first and the last word in sight),
 * `readings` ({label, config, options}: other ways to read a text) and `vocabulary` in place of the shared one.
 */

let model, vocabulary;
const encoded = new Map();  // of the papers, by their number
/** read: the text as `textOf` has it; document: what the encoder made of it; own, changed: summaries, each a list of steps
 *  {id, p, output}, the text that it is of, and whether it is done; what is looked at: summary, step, equation. */
const view = {
  read: null, document: null, own: null, changed: null, looked: "own", step: 0, follows: true, equation: 0, job: 0,
};

// ------------------------------------------------------------------------------------------------------------ helpers

const percent = x => `${(100 * x).toFixed(x < 0.1 ? 1 : 0)}%`;
const shares = numbers => percent(mean(numbers));
const range = numbers => `${number(Math.min(...numbers))} to ${number(Math.max(...numbers))}`;
const shadesOfRun = () => PAGE.attention.shades.filter(({ without }) => !without?.());
const textNow = () => summary()?.text ?? view.read;
const word = (id, text = textNow()) => PAGE.says?.[id] ?? vocabulary.word(id, text.ids.unknown);
const wordAt = i => textNow().words[i];
const isWritten = id => id !== EOS && !model.control?.includes(id);  // a word, no symbol
const largestWord = weights => { const i = highest(weights, 1)[0]; return `largest ${number(weights[i])}, ${wordAt(i)}`; };
const bestOf = ([[id, p]]) => `largest ${number(p)}, ${word(id)}`;
const numbered = count => Array.from({ length: count }, (_, n) => [n, String(n + 1)]);
const titles = () => DATA.papers.map(({ title }, n) => [n, title || `Text ${n + 1}`]);

// --------------------------------------------------------------------------------------------------------------- work

const rules = (document = view.document, more = {}) => rulesFor({
  ...DATA.decode, block_ngrams: Number($("blocking").value), beam: bounded("beam"), min_length: bounded("least"),
  max_length: Math.max(bounded("least"), bounded("most")), ...more,
}, document.N);

const reading = () => PAGE.readings?.[Number($("reading").value)] ?? {};

/** What is read of a text (see `own_text.js`): rows as they are shown, what each is `of`; all words, lengths of rows and
 *  ids as they are read; gap: what was taken out of it.
 *  Throws an Error where nothing is left of it. */
function textOf(raw) {
  const { rows, of } = PAGE.read(raw, { ...DATA.options, ...reading().options });
  if (!rows.length) throw new Error("Nothing is left of the text: there is nothing to summarize.");
  const lengths = rows.map(words => words.length);
  return { raw, rows, of, words: rows.flat(), lengths, ids: vocabulary.encode(rows), gap: null };
}

const BY_ROW = ["sentences", "read"];  // ids of a text in rows: of what is written, and of what the encoder reads where that is another vocabulary

/** The same text without `size` words from the place `at` on: a word, or a row, whose number it is. */
function without(text, at, size, row = null) {
  const cut = rows => {
    let place = 0;
    return rows.map(words => words.filter(() => place < at || place >= at + size ? (place++, true) : (place++, false))).filter(words => words.length);
  };
  const ids = { ...text.ids };
  for (const name of BY_ROW) if (name in ids) ids[name] = cut(ids[name]);
  const rows = cut(text.rows);
  return { ...text, words: rows.flat(), lengths: rows.map(words => words.length), ids, gap: { at, size, row } };
}

/** One that has no other stays. */
function withoutRow(text, row) {
  if (text.rows.length < 2) return text;
  return without(text, text.rows.slice(0, row).flat().length, text.rows[row].length, row);
}

function withoutWord(text, at) {
  const row = sentencesOfWords(text.rows)(at);
  return text.words.length < 2 ? text : without(text, at, 1, text.rows[row].length === 1 ? row : null);
}

/** Ids of a summary for another text, whose unknown words are others. */
const idsFor = (ids, from, to) =>
  from.ids.unknown === to.ids.unknown ? ids : ids.map(id => vocabulary.idOf(vocabulary.word(id, from.ids.unknown), to.ids.unknown));

/** Read a text, and write its summary. */
async function read(job, raw, number = null) {
  say("reads …");
  const text = textOf(raw);
  Object.assign(view, { read: text, own: null, changed: null, looked: "own", step: 0, follows: true, document: null });
  clearChanges();
  await work(job, drawText(text));
  drawSummaries();
  view.document = await encode(job, model, text.ids, number);
  await write(job);
}

async function encode(job, of, ids, number = null) {
  if (encoded.has(number)) return encoded.get(number);
  const made = await work(job, of.encode(ids), j => say(`reads ${PAGE.unit} ${j + 1} of ${ids.sentences.length}`));
  if (number !== null) encoded.set(number, made);
  return made;
}

/** Write the summary, or with changes a second one beside it. */
async function write(job) {
  const chosen = chosenChanges();
  view.follows = true;
  if (!chosen.length) {
    Object.assign(view, { own: null, changed: null, looked: "own" });
    $("effect").textContent = "";
    return void await searched(job, "own", model, view.read, view.document);
  }
  if (!view.own?.done) await searched(job, "own", model, view.read, view.document);
  await changed(job, chosen);
}

/** Search, drawing what is best so far. more: rules of a change. */
async function searched(job, name, of, text, document, more = {}) {
  const started = performance.now(), show = (best, done = false) => {
    view[name] = { steps: stepsOf(best), ids: best.ids, logP: best.logP, done, text, document };
    view.looked = name;
    if (view.follows) {
      view.step = view[name].steps.length - 1;
      view.equation = done ? PAGE.equations.length - 1 : (view.equation + 1) % PAGE.equations.length;  // one after the other is lit
    }
    drawSummaries();
  };
  say("writes …");
  const best = await work(job, search(of, document, rules(document, more)), run => show(run.best));
  show(best, true);
  say(`${best.ids.filter(isWritten).length} words in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** Controls that differ from what the run does, with their values. */
const chosenChanges = () => controls().flatMap(control => {
  const { type, checked, value } = $(control.id);
  if (type === "checkbox") return checked ? [{ control, value: true }] : [];
  return value === "" ? [] : [{ control, value: Number(value) }];
});

const ERASED = { id: "erased", none: "none", choices: () => numbered(view.read?.rows.length ?? 0), gap: withoutRow };
const controls = () => [...PAGE.changes, ERASED];

async function changed(job, chosen) {
  say("writes with the change …");
  const change = {}, more = {};
  let text = view.read, anew = false;
  for (const { control, value } of chosen) {
    if (control.text) text = textOf(control.text(text.raw, value));
    if (control.gap) text = control.gap(text, value);
    if (control.paper) Object.assign(change, control.paper(await encode(job, model, textOf(DATA.papers[value]).ids, value)));
    if (control.change) Object.assign(change, control.change(value));
    if (control.rules) Object.assign(more, control.rules(value));
    anew ||= Boolean(control.anew);
  }
  const of = model.with(change), document = anew || text !== view.read ? await encode(job, of, text.ids) : view.document;
  await searched(job, "changed", of, text, document, more);
  const wordsOf = ({ ids, text }) => ids.map(id => word(id, text)).join(" ");
  view.effect = {
    own: await meanLogP(job, model, view.read, view.document), changed: await meanLogP(job, of, text, document),
    same: wordsOf(view.own) === wordsOf(view.changed),
  };
  $("effect").textContent = effectOf(view.effect);
  $("effect").dataset.values = JSON.stringify(view.effect);
}

/** log P of the unchanged summary in nats a word, words that the vocabulary does not have left out. */
async function meanLogP(job, of, text, document) {
  const { ids } = view.own, known = [...ids, EOS].flatMap((id, t) => id < model.size && id !== UNK ? [t] : []);
  const logs = await work(job, logProbs(of, document, idsFor(ids, view.read, text)));
  return mean(known.map(t => logs[t]));
}

// --------------------------------------------------------------------------------------------------------------- draw

/** Draw a text, with a stop after every hundred rows. */
function* drawText(text) {
  const { raw: { title, source }, rows, of } = text, article = $("text"), strip = element("div", { id: "strip", hidden: true }, element("i"));
  article.replaceChildren(strip, element("h2", {}, title || "Your text"));
  article.classList.toggle("long", rows.length > 500);  // what is out of sight is not laid out
  if (source) article.append(element("p", { className: "note" }, source));
  Object.assign(view, { spans: [], bars: [], darks: [], shown: rows, inside: [0, 0] });
  for (const [j, words] of rows.entries()) {
    if (of[j] && of[j] !== of[j - 1]) article.append(element("h3", {}, of[j]));
    const number = element("button", { type: "button", title: `Erase ${PAGE.unit} ${j + 1}, or bring it back`, "aria-pressed": "false" }, String(j + 1));
    number.addEventListener("click", () => erase($("erased").value === String(j) ? "" : j));
    const length = element("span", { className: "bar" });
    const sentence = element("p", { className: "sentence" }, number, length);
    for (const shown of words) {
      const span = element("span", { className: "word" }, shown);
      view.spans.push(span);
      sentence.append(span, " ");
    }
    view.bars.push(length);
    article.append(sentence);
    if (j % 100 === 99) yield j;
  }
  article.scrollTop = 0;
  if (text !== view.read) return;
  for (const name of ["own", "changed"]) $(name).lastElementChild.replaceChildren();
  for (const control of controls()) if (control.gap) fillList(control);
}

/** Weights of the words, or of the rows, that were read, at the places of those that are shown: what is erased has 0. */
function placed(weights, { gap }, ofRows = false) {
  if (!gap || ofRows && gap.row === null) return weights;
  const [at, size] = ofRows ? [gap.row, 1] : [gap.at, gap.size];
  return [...weights.slice(0, at), ...Array(size).fill(0), ...weights.slice(at)];
}

/** The sum over each row of weights of the words that were read. */
function byRow(weights, { lengths }) {
  let at = 0;
  return lengths.map(length => weights.slice(at, at += length).reduce((a, b) => a + b, 0));
}

/** The summary, or two side by side. Words that are there already stay: a search mostly goes on. */
function drawSummaries() {
  const { own, changed } = view, wordsOf = ({ ids, text }) => ids.map(id => word(id, text));
  const kept = changed && common(wordsOf(own), wordsOf(changed));
  $("summaries").classList.toggle("two", Boolean(changed));
  for (const [name, title] of [["own", changed ? "unchanged" : ""], ["changed", "with the change"]]) {
    $(name).hidden = name === "changed" && !changed;
    drawSummary(name, title, view[name] ?? {}, id => word(id, view[name].text), ({ output }, t) => ({
      copied: output.generate < 0.5, [name === "own" ? "gone" : "new"]: Boolean(kept) && !kept[name].has(t),
    }));
  }
  drawStep();
}

function drawStep() {
  const { id, p, output } = drawStepper(summary()?.steps ?? [], id => word(id));
  if (!output) return;
  const text = textNow();
  if (view.shown !== text.rows) for (const _ of drawText(text));  // the changed one, or the reader's own again
  drawn = Object.fromEntries(shadesOfRun().map(({ name, weights }) => [name, placed(weights(output, text), text)]));
  drawn.units = placed(PAGE.attention.units.weights(output, text), text, true);
  drawWeights();
  drawInside(output);
  for (const { id, rows } of PAGE.tables) $(id).replaceChildren(...rows(output, text));
  drawAttention();
  drawWords(output, id, p);
  drawValues(output);
}

let drawn;  // weights of the step, at the places of the text that is shown

const shade = () => document.querySelector("[name=shade]:checked").value;

function drawWeights() {
  const chosen = shade(), weights = drawn[chosen], most = shadesOfRun().find(({ name }) => name === chosen).most?.(weights) ?? 1;
  view.spans.forEach((span, i) => {
    const dark = Math.round(50 * Math.sqrt(weights[i] / most)) / 50;  // the root: small weights can be seen, too
    if (view.darks[i] === dark) return;
    view.darks[i] = dark;
    span.style.background = dark < 0.06 ? "" : `rgb(var(--looked) / ${dark})`;
    span.classList.toggle("strong", dark > 0.6);
  });
  const erased = $("erased").value;
  view.bars.forEach((length, j) => {
    length.style.width = `${2.1 * drawn.units[j]}rem`;
    length.parentElement.classList.toggle("erased", String(j) === erased);
    length.previousElementSibling.setAttribute("aria-pressed", String(String(j) === erased));
  });
}

/** The words in sight, and where in the text they are. */
function drawInside(output) {
  if (!PAGE.inside) return;
  const [first, end] = PAGE.inside(output), [before, until] = view.inside, { spans } = view;
  for (let i = before; i < until; i++) spans[i]?.classList.remove("inside");
  for (let i = first; i < end; i++) spans[i]?.classList.add("inside");
  view.inside = [first, end];
  const strip = $("strip"), { style } = strip.firstChild, share = i => `${100 * i / spans.length}%`;
  strip.hidden = false;
  Object.assign(style, { left: share(first), width: share(end - first) });
  if (first !== before || end !== until) bringIntoView(spans[first], 2.5);
}

function drawAttention() {
  const { units } = PAGE.attention, [main, ...others] = shadesOfRun(), rest = others.toReversed();
  const { rows } = textNow(), sentences = sentencesOfWords(rows), shown = rows.flat();
  $("attention").replaceChildren(
    header("word", ...rest.map(({ label, short = label }) => short), PAGE.unit, units.label, main.label),
    ...highest(drawn[shade()], 6).map(i => {
      const j = sentences(i), line = cells(shown[i], ...rest.map(({ name }) => number(drawn[name][i])), String(j + 1),
        number(drawn.units[j]), withBar(drawn[main.name][i]));
      line.firstChild.className = "text";
      return line;
    }));
}

/** A bar for each step, as high as its share; the one of now stands out. */
const chart = (values, now) => element("div", { className: "chart", "aria-hidden": "true" }, ...values.map((share, t) => {
  const made = element("i", { className: t === now ? "now" : "" });
  made.style.height = `${Math.max(2, 100 * share)}%`;
  return made;
}));

/** Of a place in a text, the row that it is in. */
const sentencesOfWords = rows => place => {
  let j = 0;
  for (let end = rows[0].length; place >= end; end += rows[++j].length);
  return j;
};

function drawWords({ generate, best, barred }, id, p) {
  const columns = Object.entries(PAGE.next.columns).filter(([name]) => best[name]);
  $("switch").hidden = generate === undefined;
  if (generate !== undefined)
    $("switch").replaceChildren(element("span", {}, `copy ${number(1 - generate)}`), bar(generate),
      element("span", {}, `${PAGE.next.generate} = ${number(generate)} ${PAGE.next.by}`));
  const may = of => barred ? !barred.includes(of) : of === EOS;
  const cell = (pair, mixed) => pair ? element("span", {
    className: pair[0] === id ? "chosen" : mixed && !may(pair[0]) ? "barred" : "",
    title: mixed && !may(pair[0]) ? "barred: a symbol, the end of a summary that is too short, or a repetition" : "",
  }, `${word(pair[0])} ${number(pair[1])}`) : "";
  const last = [`written: ${word(id)}`, ...Array(Math.max(0, columns.length - 2)).fill(""), `P = ${number(p)}`];
  $("words").replaceChildren(header(...columns.map(([, label]) => label)),
    ...Array.from({ length: SHOWN }, (_, n) => cells(...columns.map(([name]) => cell(best[name][n], name === "mixed")))),
    cells(...(columns.length > 1 ? last : [last.join(", ")])));
  for (const td of $("words").querySelectorAll("td")) td.className = "text";
  $("words").lastChild.classList.add("chosen");
}

const drawValues = output => drawEquations(PAGE.equations, PAGE.equations.map(([, , value]) => value(output, textNow())));

// -------------------------------------------------------------------------------------------------------------- reader

function look(name, step) {
  Object.assign(view, { looked: name, step, follows: false });
  drawStep();
  showStrongest();
}

/** Bring the word of the largest weight into view. */
const showStrongest = () => bringIntoView(view.spans[highest(drawn[shadesOfRun()[0].name], 1)[0]], 3);

/** Bring a word into view inside the text's own box alone, a share of its height below its top. */
function bringIntoView(span, share) {
  const article = $("text");
  for (let n = 0; n < 2; n++) {  // rows far away get their true height once they are near
    const box = article.getBoundingClientRect(), place = span.getBoundingClientRect();
    if (place.top < box.top || place.bottom > box.bottom) article.scrollTop += place.top - box.top - box.height / share;
  }
}

function light(equation) {
  view.equation = equation;
  const { output } = summary()?.steps[view.step] ?? {};
  if (output) drawValues(output);
}

const rewrite = () => view.document && begin(write);

function clearChanges() {
  for (const { id } of controls()) if ($(id).type === "checkbox") $(id).checked = false; else $(id).value = "";
}

/** Erase a row of the text, or none (""). */
function erase(row) {
  $("erased").value = row;
  $("erased").dispatchEvent(new Event("change"));
}

/** A control was moved. Of the changes of the text there is one at a time. */
function choose({ id, text, gap }) {
  if (text || gap) for (const other of controls()) if (other.id !== id && (other.text || other.gap)) $(other.id).value = "";
  rewrite();
}

/** Begin with what the reader chose: one of the papers, or a text of their own. */
function start() {
  const own = $("paper").value === "own", chosen = Number($("paper").value);
  if (own) $("pasting").open = true;
  begin(job => own ? read(job, parseText($("pasted").value, DATA.options)) : read(job, DATA.papers[chosen], chosen));
}

const fillList = ({ id, none, choices }) => $(id).replaceChildren(option("", none), ...choices().map(pair => option(...pair)));

/** The controls of the changes, the kinds of shade and the tables that this model has. */
function build() {
  const { attention: { title, units }, changes, next, tables, readings } = PAGE, shades = shadesOfRun();
  for (const control of changes) {
    const input = control.choices ? element("select", { id: control.id }) : element("input", { id: control.id, type: "checkbox" });
    const parts = control.choices ? [`${control.label} `, input] : [input, ` ${control.label}`];
    $("erasing").before(element("label", { className: control.choices ? "" : "box" }, ...parts));
    if (control.choices) fillList(control);
  }
  $("erasing").firstChild.textContent = `${PAGE.unit} erased `;
  fillList(ERASED);
  $("attention-name").textContent = title;
  $("shades").append(...shades.map(({ name, label }, n) => element("label", { className: "box" },
    element("input", { type: "radio", name: "shade", value: name, checked: n === 0 }), ` ${label}`)), element("span", {}, `bars: ${units.label}`));
  $("words-name").textContent = next.title;
  $("summaries").classList.toggle("short", DATA.decode.max_length <= 30);
  for (const { id, title } of tables)
    $("inside").append(element("section", { className: "card", "aria-labelledby": `${id}-name` }, element("h2", { id: `${id}-name` }, title),
      element("div", { className: "wide", tabIndex: 0, role: "group", "aria-labelledby": `${id}-name` }, element("table", { id }))));
  $("reading").replaceChildren(...(readings ?? []).map(({ label }, n) => option(n, label)));
  $("reading").parentElement.hidden = !readings;
}

/** A control of what the run does not have cannot be used. */
function allow() {
  for (const { id, without } of PAGE.changes) $(id).disabled = Boolean(without?.());
}

function fillControls() {
  const { decode } = DATA;
  $("paper").replaceChildren(...titles().map(pair => option(...pair)), option("own", "Your own text …"));
  $("blocking").replaceChildren(option(0, "plain beam search"), option(decode.block_ngrams || 3, `no ${decode.block_ngrams || 3} words twice (blocking)`));
  $("blocking").value = decode.block_ngrams;
  for (const [id, value] of [["beam", decode.beam], ["least", decode.min_length], ["most", decode.max_length]])
    $(id).value = $(id).defaultValue = Math.min(value, Number($(id).max));
  $("about").textContent = `${millions(model.weights)}`
    + `${DATA.weights.rounded ? ", rounded to 16 bits: numbers differ from the library's in the fourth digit" : ""}.`;
  fillEquations(PAGE.equations, light);
}

function listen() {
  listenToSteps(step => look(view.looked, step));
  $("write").addEventListener("click", start);
  $("take").addEventListener("click", () => { $("paper").value = "own"; start(); });
  $("paper").addEventListener("change", () => $("paper").value === "own" ? ($("pasting").open = true, $("pasted").focus()) : start());
  $("undo").addEventListener("click", () => { clearChanges(); rewrite(); });
  for (const control of controls()) $(control.id).addEventListener("change", () => choose(control));
  for (const id of ["blocking", "beam", "least", "most"])
    $(id).addEventListener("change", () => { if (view.own) view.own.done = false; rewrite(); });
  for (const input of document.querySelectorAll("[name=shade]")) input.addEventListener("change", () => { if (drawn) { drawWeights(); drawAttention(); } });
}

(async () => {
  say("unpacks the weights …");
  await new Promise(go => requestAnimationFrame(() => setTimeout(go)));  // the page is seen first
  vocabulary = PAGE.vocabulary?.(DATA) ?? new Vocabulary(DATA.words);
  const weights = await unpacked(DATA.weights), made = () => new PAGE.model({ ...DATA.config, ...reading().config }, weights, SHOWN);
  model = made();
  build();
  allow();
  fillControls();
  $("reading").addEventListener("change", () => { model = made(); encoded.clear(); allow(); start(); });
  listen();
  if (DATA.papers.length) start();
  else say("Paste a text.");
})();
