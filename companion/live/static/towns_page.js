/* The page of two towns: paragraphs that a reader can change, what the model writes about the town of the title, and the
 * numbers of every equation for a paragraph, a word, a layer and a head. */

const FACT_NAMES = ["founded in", "river", "known for", "mayor"];
const NAMES = { own: "unchanged", changed: "with your changes", other: "without global layers" };
const SIGNS = { right: ["✓", "right"], tied: ["≈", "unsure"], "minority's": ["✗", "wrong"], "other town's": ["✗", "wrong"], nowhere: ["✗", "wrong"] };

/** Of equations in their order: number, formula in the code's form, and what it gives of a place `c` (`chosen`). */
const EQUATIONS = [
  [7, "e<sub>p</sub>[2i] = sin(p / 10000<sup>2i/d</sup>)", c => positionsOf(c, "sin", 0)],
  [8, "e<sub>p</sub>[2i+1] = cos(p / 10000<sup>2i/d</sup>)", c => positionsOf(c, "cos", 1)],
  [9, "pe<sub>ij</sub> = [e<sub>j</sub>; e<sub>i</sub>]", c => vector(c.of.position(c.i, c.j))],
  [10, "x<sup>0</sup><sub>ij</sub> = √d w<sub>ij</sub> + pe<sub>ij</sub>", c => vector(c.at(c.encoded.inputs[c.i]))],
  [11, "h = x + MHAtt(LN x)", c => `${c.word} looks most at ${c.encoded.local.map((_, l) => localLook(c, l)).join("; ")}`],
  [12, "x<sup>l</sup> = h + FFN(LN h)", c => { const { h, x } = c.encoded.local.at(-1)[c.i]; return `|h| ${size(c.at(h))}, |x| ${size(c.at(x))} in the last local layer`; }],
  [13, "a<sup>z</sup><sub>ij</sub> = W<sup>z</sup><sub>a</sub>LN(x<sub>ij</sub>)", c => c.global && `${short(c.pooled.scores[c.j * c.heads + c.z])} for ${c.word}`],
  [14, "b<sup>z</sup><sub>ij</sub> = W<sup>z</sup><sub>b</sub>LN(x<sub>ij</sub>)", c => c.global && vector(c.head(c.pooled.values, c.j))],
  [15, "â<sup>z</sup><sub>ij</sub> = softmax<sub>j</sub>(a<sup>z</sup><sub>ij</sub>)", c => c.global && `${number(c.pooled.weights[c.j * c.heads + c.z])} for ${c.word}`],
  [16, "head<sup>z</sup><sub>i</sub> = LN(Σ<sub>j</sub> â<sup>z</sup><sub>ij</sub>b<sup>z</sup><sub>ij</sub>)", c => c.global && vector(c.head(c.global.norm, c.i))],
  [17, "q<sup>z</sup><sub>i</sub> = W<sub>q</sub>head<sup>z</sup><sub>i</sub>", c => c.global && vector(c.head(c.global.queries, c.i))],
  [18, "k<sup>z</sup><sub>i′</sub> = W<sub>k</sub>head<sup>z</sup><sub>i′</sub>", c => c.global && `i′ = ${c.k}: ${vector(c.head(c.global.keys, c.k))}`],
  [19, "v<sup>z</sup><sub>i′</sub> = W<sub>v</sub>head<sup>z</sup><sub>i′</sub>", c => c.global && `i′ = ${c.k}: ${vector(c.head(c.global.values, c.k))}`],
  [20, "context<sup>z</sup><sub>i</sub> = Σ<sub>i′</sub> softmax<sub>i′</sub>(q<sup>z⊤</sup><sub>i</sub>k<sup>z</sup><sub>i′</sub> / √d<sub>head</sub>) v<sup>z</sup><sub>i′</sub>",
    c => c.global && `score ${short(dot(c.head(c.global.queries, c.i), c.head(c.global.keys, c.k)) / Math.sqrt(c.s))}, weight ${number(c.between(c.i, c.k))} of ${c.named(c.k)}; ${vector(c.head(c.global.contexts, c.i))}`],
  [21, "c<sub>i</sub> = W<sub>c</sub>[context<sup>1</sup><sub>i</sub>; …; context<sup>n</sup><sub>i</sub>]", c => c.global && vector(c.whole(c.global.c, c.i))],
  [22, "g<sub>ij</sub> = FFN(LN(x<sub>ij</sub> + c<sub>i</sub>))", c => c.global && vector(c.at(c.global.after[c.i]))],
  [23, "x<sup>l</sup><sub>ij</sub> = x<sub>ij</sub> + c<sub>i</sub> + g<sub>ij</sub>", c => c.global && `|x| from ${size(c.at(c.global.paragraphs[c.i]))} to ${size(c.at(c.global.x[c.i]))}`],
  ["y", "y + MHAtt(LN y, words)", c => { const at = highest(c.output.words, 1)[0]; return `most at “${c.text.words[at]}” of ${c.named(c.encoded.paragraphOf[at])}: ${number(c.output.words[at])}`; }],
  ["P", "softmax(E LN(y) + b)", c => { const [id, p] = c.output.best[0]; return `largest ${number(p)}, ${word(id, c.text)}`; }],
];

let whole, alone, vocabulary, facts;  // the model, and the one without global layers
/** base, text: paragraphs (lists of words) and a title, as they were drawn and as they are now; own, changed, other:
 *  summaries with their text, what was `encoded` of it, and the model; at: what the reader chose to look into; shown: the text that is drawn. */
const view = {
  base: null, text: null, own: null, changed: null, other: null, looked: "own", step: 0, equation: 0, job: 0,
  at: { paragraph: 2, word: 0, layer: 1, head: 1, from: null }, shown: null, spans: [], focus: "",
};

// ------------------------------------------------------------------------------------------------------------ helpers

const short = x => x.toFixed(2).replace("-", "−");
const size = v => short(Math.hypot(...v));
const vector = v => `(${[...v.subarray(0, 3)].map(short).join(", ")}, …), length ${size(v)}`;
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const word = (id, text) => vocabulary.word(id, text.ids.unknown);
const layers = () => [...Array(whole.config.global_layers).keys()];
const same = (a, b) => JSON.stringify([a.title, a.paragraphs]) === JSON.stringify([b.title, b.paragraphs]);

/** What the model reads of a title and paragraphs: rows of words, of which the first is the title, and the town of each;
 *  `places` in the paragraphs, of which an empty one is no row. */
function readText({ title, paragraphs }) {
  const places = paragraphs.flatMap((words, place) => words.length ? [place] : []);
  const rows = [[title, "<T>"], ...places.map(place => paragraphs[place])];
  const towns = rows.map(words => words.find(w => facts.towns.has(w)) ?? "");
  return {
    title, paragraphs, rows, places, towns, words: rows.flat(), ids: vocabulary.encode(rows),
    mentions: facts.mentions(rows.slice(1)),
  };
}

/** A paragraph for people. */
const nameOf = (text, i) => i === 0 ? "the title" : `paragraph ${i} (${text.towns[i] || "no town"})`;

/** The place that a reader looks into, with what the model made there. */
function chosen() {
  const { text, encoded, of, steps } = summary(), { d, heads } = of, { at } = view;
  const i = Math.min(at.paragraph, encoded.P - 1), j = Math.min(at.word, text.rows[i].length - 1);
  const l = Math.min(at.layer, encoded.global.length - 1), global = encoded.global[l] ?? null, z = at.head, s = d / heads;
  const between = (one, other) => global.between[(z * encoded.P + one) * encoded.P + other];
  const most = global ? highest(Array.from({ length: encoded.P }, (_, other) => between(i, other)), 1)[0] : 0;
  const k = at.from !== null && at.from < encoded.P ? at.from : most;
  return {
    text, encoded, of, i, j, l, z, k, s, heads, global, between, pooled: global?.pooled[i], word: `“${text.rows[i][j]}”`,
    output: steps[view.step].output, named: place => nameOf(text, place),
    at: words => row(words, d, j), whole: (rows, place) => row(rows, d, place), head: (rows, place) => row(rows, s, place * heads + z),
  };
}

/** The first number of the sinusoids of the word's place, and of its paragraph's. */
function positionsOf({ of, i, j }, name, at) {
  const [first, second] = [j, i].map(p => `${name} ${p} = ${short(sinusoids(p, 2)[at])}`);
  return of.change.positions ? `word ${j}: ${first}; paragraph ${i}: ${second}` : `word ${j}: ${first}`;
}

/** At which word of its paragraph the chosen one looks most in local layer l, over all heads. */
function localLook({ encoded, text, i, j, heads }, l) {
  const n = text.rows[i].length, { attention } = encoded.local[l][i];
  const looks = Array.from({ length: heads * n }, (_, at) => attention[(Math.floor(at / n) * n + j) * n + at % n]);
  const [at] = highest(looks, 1);
  return `“${text.rows[i][at % n]}” ${number(looks[at])} (layer ${l + 1}, head ${Math.floor(at / n) + 1})`;
}

// --------------------------------------------------------------------------------------------------------------- work

/** What is changed of the model, or null. Throws an Error where the decoder would see nothing. */
function chosenChange(text) {
  const cuts = layers().map(l => $(`cut${l}`).value), positions = !$("positions").checked, who = $("sees").value;
  const seen = who ? text.towns.map((town, i) => i > 0 && (town === text.title) === (who === "own")) : null;
  if (seen && !seen.includes(true)) throw new Error(`No paragraph is ${who === "own" ? "" : "not "}about ${text.title}: the decoder would see nothing.`);
  return cuts.some(Boolean) || !positions || seen ? { cuts, positions, seen } : null;
}

/** Write the summaries: of the unchanged text, with the changes, and by the model without global layers. */
async function write(job) {
  say("writes …");
  const started = performance.now(), rules = { ...DATA.decode, beam: bounded("beam") };
  const written = async (of, text) => {
    const encoded = await work(job, of.encode(text.ids)), best = await work(job, search(of, encoded, rules));
    return { steps: stepsOf(best), ids: best.ids, logP: best.logP, text, encoded, of, done: true };
  };
  const base = readText(view.base), unchanged = same(view.base, view.text), text = unchanged ? base : readText(view.text);
  const change = chosenChange(text), own = await written(whole, base);
  const changed = change || !unchanged ? await written(whole.with(change ?? {}), text) : null;
  const other = $("beside").checked ? await written(alone, text) : null;
  const effect = changed && {
    own: mean(await work(job, logProbs(whole, own.encoded, own.ids))),
    changed: mean(await work(job, logProbs(changed.of, changed.encoded, own.ids))),
    same: own.ids.join() === changed.ids.join(),
  };
  Object.assign(view, { own, changed, other, looked: changed ? "changed" : "own" });
  say(`${own.ids.length} words in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  $("effect").textContent = effect ? effectOf(effect) : "";
  $("effect").dataset.values = JSON.stringify(effect);
  draw();
}

const rewrite = () => begin(write);

/** Take another text; focus: the control that the reader goes on with. */
function take(text, focus = "") {
  Object.assign(view, { text: { ...view.text, ...text }, focus });
  fillTitles();
  rewrite();
}

// --------------------------------------------------------------------------------------------------------------- draw

function draw() {
  const { own, changed } = view, kept = changed && common(own.ids, changed.ids);
  const judged = Object.fromEntries(Object.keys(NAMES).flatMap(name => view[name] ? [[name, judge(view[name])]] : []));
  for (const [name, title] of Object.entries(NAMES)) {
    $(name).hidden = !view[name];
    drawSummary(name, title, view[name] ?? {}, id => word(id, view[name].text), ({ id }, t) => {
      const fact = judged[name].find((_, f) => facts.places[f] === t), [, kind] = SIGNS[fact?.kind] ?? [];
      return {
        fact: Boolean(fact), right: kind === "right", wrong: kind === "wrong", unsure: kind === "unsure",
        [name === "own" ? "gone" : "new"]: name !== "other" && Boolean(kept) && !kept[name].has(t),
      };
    });
  }
  $("summaries").classList.toggle("two", Object.keys(judged).length > 1);
  drawFacts(judged);
  drawLook();
}

const judge = ({ ids, text }) => facts.judged(ids.map(id => word(id, text)), text.title, text.mentions);

/** What is said of a fact, for people: "2×, another 1×" of a town's own mentions. */
const verdict = ({ kind, said, most, other }) => ({
  right: `${said.length}×${most ? `, another ${most}×` : ""}`, tied: `${said.length}×, another as often`,
  "minority's": `${said.length}×, another ${most}×`, "other town's": `${other}'s`, nowhere: "nowhere",
})[kind];

function drawFacts(judged) {
  const names = Object.keys(judged), right = of => of.filter(({ kind }) => kind === "right").length;
  $("facts").replaceChildren(header("fact", ...names.map(name => `${NAMES[name]}: ${right(judged[name])} of ${FACT_NAMES.length}`)),
    ...FACT_NAMES.map((fact, f) => {
      const line = element("tr", {}, element("th", { scope: "row" }, fact));
      for (const name of names) {
        const judgement = judged[name][f], [sign, className] = SIGNS[judgement.kind];
        line.append(element("td", { className }, `${sign} ${judgement.word || "–"} (${verdict(judgement)})`));
      }
      return line;
    }));
}

/** All that depends on which summary is looked at. */
function drawLook() {
  drawText();
  drawStep();
}

function drawStep() {
  const { steps, text } = summary(), { id, p, output } = drawStepper(steps, id => word(id, text));
  for (const name of Object.keys(NAMES)) for (const [t, { lastChild }] of [...$(name).lastElementChild.children].entries())
    lastChild.classList.toggle("later", name === view.looked && t > view.step);
  $("words").replaceChildren(header("word", "P"), ...output.best.map(([best, share]) => {
    const line = cells(best === EOS ? "[EOS]" : word(best, text), withBar(share));
    line.className = best === id ? "chosen" : "";
    return line;
  }));
  if (!output.best.some(([best]) => best === id)) $("words").append(cells(word(id, text), number(p)));
  drawPlace();
}

/** What depends on the chosen paragraph, word, layer and head, too. */
function drawPlace() {
  const c = chosen();
  shadeText(c);
  drawBetween(c);
  drawPooling(c);
  fillChoices(c);
  drawEquations(EQUATIONS, EQUATIONS.map(([, , value]) => value(c) || "this model has no global layers"));
}

// --------------------------------------------------------------------------------------------------------------- text

/** The paragraphs of the summary that is looked at; those that the reader can change have buttons. */
function drawText() {
  const { text } = summary(), article = $("text"), own = same(text, view.text);
  if (view.shown === text) return;
  Object.assign(view, { shown: text, spans: [], bars: [] });
  article.replaceChildren(element("h2", {}, own ? "What the model reads" : "The text before your changes"));
  if (!own) article.append(element("p", {}, button("Show your text", () => look(view.changed ? "changed" : "other", view.step))));
  article.append(rowOf(text, 0));
  text.paragraphs.forEach((words, place) => {
    const i = 1 + text.places.indexOf(place), line = i ? rowOf(text, i) : element("p", { className: "sentence empty" }, "empty: not read");
    if (own) line.append(tools(words, place, line));
    article.append(line);
  });
  if (!text.places.length) article.append(element("p", { className: "note" }, "There is no paragraph: the model has the title alone."));
  const { unknown } = text.ids;
  if (unknown.length) article.append(element("p", { className: "note" },
    `Not among the model's ${vocabulary.words.length} words, and read as [UNK]: ${unknown.join(" ")}`));
  article.append(element("details", {}, element("summary", {}, "The words that the model knows"),
    element("p", { className: "note" }, vocabulary.words.slice(DATA.symbols).join(" "))));
  if (view.focus) article.querySelector(`[data-tool="${view.focus}"]`)?.focus();
  view.focus = "";
}

const button = (text, act, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
};

function rowOf(text, i) {
  const pick = button(i ? String(i) : "T", () => place({ paragraph: i, from: null }), { title: `Look into ${nameOf(text, i)}`, "aria-pressed": "false" });
  const length = element("span", { className: "bar" }), line = element("p", { className: `sentence row${Math.min(i, 1)}` }, pick, length);
  text.rows[i].forEach((shown, j) => {
    const unknown = !vocabulary.ids.has(shown);
    const span = element("span", { className: `word seen${unknown ? " unknown" : ""}`, title: unknown ? "not a word of the model's: read as [UNK]" : "" }, shown);
    span.addEventListener("click", () => place({ paragraph: i, word: j, from: null }));
    view.spans.push(span);
    line.append(span, " ");
  });
  view.bars.push(length);
  return line;
}

/** Buttons to edit a paragraph and to drop it. */
function tools(words, place, line) {
  const { paragraphs } = view.text, without = paragraphs.filter((_, other) => other !== place);
  const after = Math.min(place, without.length - 1);
  return element("span", { className: "tools" },
    button("✎", () => edit(words, place, line), { title: "Edit this paragraph", "aria-label": `Edit paragraph ${place + 1} of the text`, "data-tool": `edit${place}` }),
    button("✕", () => take({ paragraphs: without }, `drop${after}`), { title: "Drop this paragraph", "aria-label": `Drop paragraph ${place + 1} of the text`, "data-tool": `drop${place}` }));
}

/** A field in place of a paragraph: Enter or leaving it takes its words, Escape leaves them as they were. */
function edit(words, place, line) {
  const field = element("textarea", { rows: 3, maxLength: 600, spellcheck: false, value: words.join(" "), "aria-label": `Words of paragraph ${place + 1}` });
  let done = false;
  const leave = taken => {
    if (done) return;
    done = true;
    view.shown = null;
    const paragraphs = view.text.paragraphs.with(place, typedWords(field.value)), focus = `edit${place}`;
    if (taken && JSON.stringify(paragraphs) !== JSON.stringify(view.text.paragraphs)) return take({ paragraphs }, focus);
    view.focus = focus;
    drawLook();
  };
  field.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    leave(event.key === "Enter");
  });
  field.addEventListener("blur", () => leave(true));
  line.replaceChildren(field);
  field.focus();
}

/** Words as dark as they are seen, beside the one that is seen most; the root, so that small weights can be seen, too. */
function shadeText({ text, output, global, z, heads, i, j }) {
  const pooling = global && document.querySelector("[name=shade]:checked").value === "pooling";
  const weights = pooling ? text.rows.flatMap((words, r) => words.map((_, w) => global.pooled[r].weights[w * heads + z])) : output.words;
  const most = Math.max(...weights), first = text.rows.slice(0, i).flat().length;
  view.spans.forEach((span, at) => {
    span.style.setProperty("--seen", Math.sqrt(weights[at] / most).toFixed(2));
    span.classList.toggle("at", at === first + j);
  });
  view.bars.forEach((length, r) => {
    length.style.width = `${2.1 * output.paragraphs[r]}rem`;
    length.title = number(output.paragraphs[r]);
    length.previousElementSibling.setAttribute("aria-pressed", String(r === i));
  });
}

// ----------------------------------------------------------------------------------------------------------- matrices

/** Rows in the order of the matrix: the title, and by town those of its town first. */
function orderOf({ towns, title }) {
  const places = towns.map((_, i) => i).slice(1), key = i => `${towns[i] === title ? 0 : 1}${towns[i]}`;
  return [0, ...places.sort((a, b) => key(a).localeCompare(key(b)) || a - b)];
}

const pairOf = (text, i, k, weight) => `${nameOf(text, i)} takes ${number(weight)} from ${i === k ? "itself" : nameOf(text, k)}`;

/** The matrix of the chosen layer and head, in numbers. */
function drawBetween({ text, global, l, z, i, k, between }) {
  $("pair").textContent = global ? `Layer ${l + 1}, head ${z + 1}: ${pairOf(text, i, k, between(i, k))}.` : "This model has no global layers: no paragraph sees another.";
  const table = $("between"), held = table.contains(document.activeElement), order = global ? orderOf(text) : [];
  const label = r => r ? `${r} ${text.towns[r]}` : `title ${text.title}`;
  table.hidden = !global;
  if (!global) return;
  table.replaceChildren(
    element("tr", { role: "row" }, element("th", { scope: "col" }, "from"), ...order.map(c => element("th", { scope: "col", title: nameOf(text, c) }, c ? String(c) : "T"))),
    ...order.map(r => element("tr", { role: "row" }, element("th", { scope: "row" }, label(r)), ...order.map(c => {
      const weight = between(r, c), here = r === i && c === k;
      const cell = element("td", {
        role: "gridcell", className: `seen${here ? " at" : ""}`, tabIndex: here ? 0 : -1, title: pairOf(text, r, c, weight), "data-pair": `${r} ${c}`,
      }, weight.toFixed(2).replace(/^0/, ""));
      cell.setAttribute("aria-label", pairOf(text, r, c, weight));
      cell.style.setProperty("--seen", weight.toFixed(2));
      return cell;
    }))));
  if (held) table.querySelector(".at").focus();
}

/** Move in the matrix, from where it stands in its order. */
function moveBetween(event) {
  const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  const { text, i, k } = chosen(), order = orderOf(text), move = (from, n) => order[Math.max(0, Math.min(order.length - 1, order.indexOf(from) + n))];
  place({ paragraph: move(i, by[0]), from: move(k, by[1]) });
}

function drawPooling({ text, output, global, pooled, heads, z, i, j, l }) {
  const first = text.rows.slice(0, i).flat().length, columns = global ? Array.from({ length: heads }, (_, h) => h) : [];
  const shaded = weight => {
    const cell = element("td", { className: "seen", title: number(weight) }, weight.toFixed(2).replace(/^0/, ""));
    cell.style.setProperty("--seen", weight.toFixed(2));
    return cell;
  };
  $("pooling-name").textContent = `Words of ${nameOf(text, i)}: ${global ? `pooling (15) in layer ${l + 1}, and ` : ""}the decoder`;
  $("pooling").replaceChildren(header("word", "decoder", ...columns.map(h => `head ${h + 1}`)),
    ...text.rows[i].map((shown, w) => {
      const line = element("tr", { className: w === j ? "chosen" : "" }, element("th", { scope: "row" }, shown), shaded(output.words[first + w]));
      line.append(...columns.map(h => shaded(pooled.weights[w * heads + h])));
      return line;
    }));
}

// -------------------------------------------------------------------------------------------------------------- reader

function look(name, step) {
  const other = view.looked !== name;
  Object.assign(view, { looked: name, step });
  if (other) drawLook(); else drawStep();
}

/** Look into another paragraph, word, layer or head. */
function place(at) {
  Object.assign(view.at, at);
  drawPlace();
}

function light(equation) {
  view.equation = equation;
  drawPlace();
}

/** Lists of the place that is looked into. */
function fillChoices({ text, encoded, i, j, l, z, heads }) {
  const lists = {
    "at-paragraph": [text.rows.map((_, r) => nameOf(text, r)), i], "at-word": [text.rows[i].map((shown, w) => `${w}: ${shown}`), j],
    "at-layer": [encoded.global.map((_, n) => String(n + 1)), l], "at-head": [Array.from({ length: heads }, (_, n) => String(n + 1)), z],
  };
  for (const [id, [labels, value]] of Object.entries(lists)) {
    if ([...$(id).options].map(o => o.text).join("\n") !== labels.join("\n")) $(id).replaceChildren(...labels.map((label, n) => option(n, label)));
    $(id).value = value;
    $(id).disabled = !labels.length;
  }
}

function fillTitles() {
  const { title, paragraphs } = view.text, towns = new Set([title, ...paragraphs.flat().filter(w => facts.towns.has(w))]);
  $("title").replaceChildren(...[...towns].sort().map(town => option(town, town)));
  $("title").value = title;
}

/** Begin with one of the clusters. */
function start() {
  const { title, paragraphs } = DATA.clusters[Number($("cluster").value)];
  view.base = view.text = { title, paragraphs: paragraphs.map(typedWords) };
  view.step = facts.places[1];
  fillTitles();
  rewrite();
}

function undo() {
  for (const id of layers().map(l => `cut${l}`)) $(id).value = "";
  $("sees").value = "";
  $("positions").checked = false;
  take(view.base);
}

function fillControls() {
  $("cluster").replaceChildren(...DATA.clusters.map(({ title, other }, n) => option(n, `${n + 1}: ${title} and ${other}`)));
  for (const l of layers().reverse()) {
    const list = element("select", { id: `cut${l}` }, option("", "as it is"), option("itself", "each paragraph sees itself alone"), option("first", "none looks at the title"));
    $("cuts").prepend(element("label", {}, `global layer ${l + 1} `, list));
  }
  $("about").textContent = `${millions(whole.weights)}, and as many of a model without global layers.`;
  fillEquations(EQUATIONS, light);
}

function listen() {
  listenToSteps(step => look(view.looked, step));
  $("cluster").addEventListener("change", start);
  $("title").addEventListener("change", () => take({ title: $("title").value }));
  $("undo").addEventListener("click", undo);
  for (const id of [...layers().map(l => `cut${l}`), "sees", "positions", "beside", "beam"]) $(id).addEventListener("change", rewrite);
  for (const [id, name] of [["at-paragraph", "paragraph"], ["at-word", "word"], ["at-layer", "layer"], ["at-head", "head"]])
    $(id).addEventListener("change", () => place({ [name]: Number($(id).value), from: null }));
  for (const input of document.querySelectorAll("[name=shade]")) input.addEventListener("change", drawPlace);
  $("between").addEventListener("keydown", moveBetween);
  $("between").addEventListener("click", ({ target }) => {
    const pair = target.closest("[data-pair]")?.dataset.pair.split(" ").map(Number);
    if (pair) place({ paragraph: pair[0], from: pair[1] });
  });
}

(async () => {
  say("unpacks the weights …");
  await new Promise(go => requestAnimationFrame(() => setTimeout(go)));  // the page is seen first
  vocabulary = new Vocabulary(DATA.words);
  facts = new TownFacts(DATA);
  [whole, alone] = await Promise.all(DATA.models.map(async ({ config, weights }) => new HierarchicalTransformer(config, await unpacked(weights), SHOWN)));
  fillControls();
  listen();
  view.equation = EQUATIONS.findIndex(([n]) => n === 20);
  start();
})();
