/* What the page of two towns shows of a step, and what can be changed: the parts that `page.js` asks for. A reader looks
 * into a paragraph, a word, a layer and a head, and can edit the paragraphs. */

const FACT_NAMES = ["founded in", "river", "known for", "mayor"];
const SIGNS = { right: ["✓", "right"], tied: ["≈", "unsure"] }, WRONG = ["✗", "wrong"];
const NO_GLOBAL = "this model has no global layers";

/** Equations in their order, in the code's form: number, and what it gives of a place `c` (`chosen`). */
const EQUATIONS = [
  [7, c => positionsOf(c, "sin", 0)],
  [8, c => positionsOf(c, "cos", 1)],
  [9, c => vector(c.of.position(c.i, c.j))],
  [10, c => vector(c.at(c.encoded.inputs[c.i]))],
  [11, c => `${c.word} looks most at ${c.encoded.local.map((_, l) => localLook(c, l)).join("; ")}`],
  [12, c => { const { h, x } = c.encoded.local.at(-1)[c.i]; return `|h| ${length(c.at(h))}, |x| ${length(c.at(x))} in the last local layer`; }],
  [13, c => `${signed(c.pooled.scores[c.j * c.heads + c.z], 2)} for ${c.word}`],
  [14, c => vector(c.head(c.pooled.values, c.j))],
  [15, c => `${number(c.pooled.weights[c.j * c.heads + c.z])} for ${c.word}`],
  [16, c => vector(c.head(c.global.norm, c.i))],
  [17, c => vector(c.head(c.global.queries, c.i))],
  [18, c => `i′ = ${c.k}: ${vector(c.head(c.global.keys, c.k))}`],
  [19, c => `i′ = ${c.k}: ${vector(c.head(c.global.values, c.k))}`],
  [20, c => `score ${signed(dot(c.head(c.global.queries, c.i), c.head(c.global.keys, c.k)) / Math.sqrt(c.s), 2)}, weight ${number(c.between(c.i, c.k))} of ${nameOf(c.text, c.k)}; ${vector(c.head(c.global.contexts, c.i))}`],
  [21, c => vector(row(c.global.c, c.d, c.i))],
  [22, c => vector(c.at(c.global.after[c.i]))],
  [23, c => `|x| from ${length(c.at(c.global.paragraphs[c.i]))} to ${length(c.at(c.global.x[c.i]))}`],
  ["y", c => { const most = highest(c.output.words, 1)[0]; return `most at “${c.text.words[most]}” of ${nameOf(c.text, c.encoded.paragraphOf[most])}: ${number(c.output.words[most])}`; }],
  ["P", c => bestOf(c.output.best.mixed)],
];

const facts = new TownFacts(DATA);
const place = { paragraph: 2, word: 0, layer: 1, head: 1, from: null };  // what the reader looks into

const LAYERS = Array.from({ length: DATA.config.global_layers }, (_, l) => l);
const CUTS = ["itself", "first"];
const cutting = l => ({
  id: `cut${l}`, label: `global layer ${l + 1}`, none: "as it is", anew: true,
  choices: () => [[0, "each paragraph sees itself alone"], [1, "none looks at the title"]],
  change: () => ({ cuts: LAYERS.map(l => CUTS[$(`cut${l}`).value] ?? "") }),
});

const PAGE = {
  model: HierarchicalTransformer,
  read: ({ town, paragraphs }) => ({
    rows: [[town, "<T>"], ...paragraphs.map(typedWords)], of: [],
    shown: [[town, " <T>"], ...paragraphs.map(shownWords)],
  }),
  unit: "paragraph",
  beside: "without global layers",
  closed: true,
  begin: { step: facts.places[1], equation: EQUATIONS.findIndex(([n]) => n === 20) },
  equations: EQUATIONS.map(([n, value]) => [n, () => {
    const c = chosen();
    return n >= 13 && n <= 23 && !c.global ? NO_GLOBAL : value(c);
  }]),

  attention: {
    title: "Attention: of the decoder, and pooling (15)",
    shades: [
      { name: "decoder", label: "the decoder's attention", weights: o => o.words, most: maximum },
      { name: "pooling", label: "pooling in the chosen layer and head", weights: (o, text) => pooledWords(text), most: weights => maximum(weights) || 1 },
    ],
    units: { label: "of the paragraph", weights: o => o.paragraphs },
  },

  next: { title: "The next word: the best of P", columns: { mixed: "P" } },

  tables: [
    {
      id: "facts", title: "Facts of the summaries", rows: () => factRows(), place: card => $("words").closest(".card").before(card),
      note: "✓ right, ≈ another value is said as often, ✗ wrong: how often paragraphs about the town say it, or whose it is. A value is said of the town that its paragraph named last.",
    },
    {
      id: "between", title: "Attention between paragraphs (20)", rows: () => matrixRows(chosen()), place: card => $("inside").prepend(card),
      note: "Each row shows how much a paragraph takes from each: its weights sum to 1.",
    },
  ],

  changes: [
    { id: "title", label: "title", none: "as it is", choices: () => townsIn(view.read).map(town => [DATA.towns.indexOf(town), town]),
      text: (raw, n) => ({ ...raw, town: DATA.towns[n] }) },
    { id: "edited", hidden: true, accepts: areTexts, text: (raw, paragraphs) => ({ ...raw, paragraphs }) },
    ...LAYERS.map(cutting),
    { id: "sees", label: "decoder sees", none: "all paragraphs", change: (others, text) => ({ seen: seenRows(text, !others) }),
      choices: () => [[0, "only those of the title's town"], [1, "only those of other towns"]] },
    { id: "positions", label: "all paragraphs have number 1", change: () => ({ positions: false }), anew: true },
  ],

  rows: {
    name: i => i ? String(i) : "T",
    title: i => `Look into ${nameOf(textNow(), i)}`,
    act: i => lookInto({ paragraph: i, from: null }),
    pressed: i => i === chosen().i,
  },
  pick: (i, j) => lookInto({ paragraph: i, word: j, from: null }),

  finishText, finishStep, build: buildPlace,
};

const length = v => signed(size(v), 2);
const vector = v => `(${[...v.subarray(0, 3)].map(x => signed(x, 2)).join(", ")}, …), length ${length(v)}`;

const townsIn = text => [...new Set(text?.words.filter(w => facts.towns.has(w)))].sort();
const townsOf = ({ rows }) => rows.map(words => words.find(w => facts.towns.has(w)) ?? "");  // of each row
const nameOf = (text, i) => i === 0 ? "the title" : `paragraph ${i} (${townsOf(text)[i] || "no town"})`;

/** The place that a reader looks into, with what the model made there. */
function chosen() {
  const { text, document: encoded, of, steps } = summary(), { d, heads } = of;
  const i = Math.min(place.paragraph, encoded.P - 1), j = Math.min(place.word, text.rows[i].length - 1);
  const l = Math.min(place.layer, encoded.global.length - 1), global = encoded.global[l] ?? null, z = place.head, s = d / heads;
  const between = (one, other) => global.between[(z * encoded.P + one) * encoded.P + other];
  const most = global ? highest(Array.from({ length: encoded.P }, (_, other) => between(i, other)), 1)[0] : 0;
  const k = place.from !== null && place.from < encoded.P ? place.from : most;
  return {
    text, encoded, of, i, j, l, z, k, d, s, heads, global, between, pooled: global?.pooled[i], word: `“${text.rows[i][j]}”`,
    output: steps[view.step].output, at: words => row(words, d, j), head: (rows, n) => row(rows, s, n * heads + z),
  };
}

function lookInto(change) {
  Object.assign(place, change);
  drawStep();
}

/** The first number of the sinusoids of the word's place, and of its paragraph's. */
function positionsOf({ of, i, j }, name, at) {
  const paragraph = of.change.positions ? i : 1;
  const [first, second] = [j, paragraph].map(p => `${name} ${p} = ${signed(sinusoids(p, 2)[at], 2)}`);
  return `word ${j}: ${first}; paragraph ${paragraph}: ${second}`;
}

/** At which word of its paragraph the chosen one looks most in local layer l, over all heads. */
function localLook({ encoded, text, i, j, heads }, l) {
  const n = text.rows[i].length, { attention } = encoded.local[l][i];
  const looks = Array.from({ length: heads * n }, (_, at) => attention[(Math.floor(at / n) * n + j) * n + at % n]);
  const [at] = highest(looks, 1);
  return `“${text.rows[i][at % n]}” ${number(looks[at])} (layer ${l + 1}, head ${Math.floor(at / n) + 1})`;
}

/** Pooling weights of all words, in the chosen layer and head. */
function pooledWords(text) {
  const { global, z, heads } = chosen();
  return text.rows.flatMap((words, r) => words.map((_, w) => global ? global.pooled[r].weights[w * heads + z] : 0));
}

/** Which rows are paragraphs about the title's town, or about others. Throws an Error where the decoder would see nothing. */
function seenRows(text, own) {
  const { town } = text.raw, seen = townsOf(text).map((about, i) => i > 0 && (about === town) === own);
  if (!seen.includes(true)) throw new Error(`No paragraph is ${own ? "" : "not "}about ${town}: the decoder would see nothing.`);
  return seen;
}

const judge = ({ ids, text }) => facts.judged(wordsOf({ ids, text }), text.raw.town, facts.mentions(text.rows.slice(1)));

/** What is said of a fact, for people: "2×, another 1×" of a town's own mentions. */
const verdict = ({ kind, said, most, other }) => ({
  right: `${said}×${most ? `, another ${most}×` : ""}`, tied: `${said}×, another as often`,
  "minority's": `${said}×, another ${most}×`, "other town's": `${other}'s`, nowhere: "nowhere",
})[kind];

function factRows() {
  const titles = { own: "unchanged", changed: "with the change", other: PAGE.beside }, names = Object.keys(titles).filter(name => view[name]);
  const judged = names.map(name => judge(view[name])), right = of => of.filter(({ kind }) => kind === "right").length;
  return [header("fact", ...names.map((name, n) => `${titles[name]}: ${right(judged[n])} of ${FACT_NAMES.length}`)),
    ...FACT_NAMES.map((fact, f) => element("tr", {}, element("th", { scope: "row" }, fact), ...judged.map(of => {
      const [sign, className] = SIGNS[of[f].kind] ?? WRONG;
      return element("td", { className }, `${sign} ${of[f].word || "–"} (${verdict(of[f])})`);
    })))];
}

/** A cell as dark as its weight. */
function weightCell(weight, attributes = {}) {
  const cell = element("td", { title: number(weight), ...attributes }, weight.toFixed(2).replace(/^0/, ""));
  cell.classList.add("shaded");
  shade(cell, weight);
  return cell;
}

/** Rows in the order of the matrix: the title, and by town those of its town first. */
function orderOf(text) {
  const towns = townsOf(text), key = i => `${towns[i] === text.raw.town ? 0 : 1}${towns[i]}`;
  return [0, ...towns.map((_, i) => i).slice(1).sort((a, b) => key(a).localeCompare(key(b)) || a - b)];
}

const pairOf = (text, i, k, weight) => `${nameOf(text, i)} takes ${number(weight)} from ${i === k ? "itself" : nameOf(text, k)}`;

/** The matrix of the chosen layer and head, in numbers. */
function matrixRows({ text, global, l, z, i, k, between }) {
  if (!global) return [element("caption", {}, `${NO_GLOBAL}: no paragraph sees another`)];
  const order = orderOf(text), towns = townsOf(text), { name } = PAGE.rows;
  const cell = (r, c) => {
    const weight = between(r, c), said = pairOf(text, r, c, weight), here = r === i && c === k;
    return weightCell(weight, {
      className: here ? "at" : "", title: said, onclick: () => lookInto({ paragraph: r, from: c }),
    });
  };
  return [element("caption", {}, `Layer ${l + 1}, head ${z + 1}: ${pairOf(text, i, k, between(i, k))}.`),
    header("from", ...order.map(name)),
    ...order.map(r => element("tr", {}, element("th", { scope: "row" }, `${name(r)} ${towns[r]}`), ...order.map(c => cell(r, c))))];
}

/** Whether a value of an address is a list of paragraphs. */
function areTexts(value) {
  try {
    return JSON.parse(value).every(paragraph => typeof paragraph === "string");
  } catch {
    return false;
  }
}

let edited = null;  // the paragraph whose tool has the keyboard when the text has been drawn

/** A tool to edit each paragraph, and what the model does not know. */
function finishText(text, article) {
  const { paragraphs } = text.raw;
  view.bars.slice(1).forEach(({ parentElement: line }, n) => {
    const said = `Edit paragraph ${n + 1}`;
    line.append(" ", button("✎", () => edit(paragraphs, n, line), { className: "tool", title: said, "aria-label": said }));
  });
  text.words.forEach((shown, at) => view.spans[at].classList.toggle("unknown", !vocabulary.ids.has(shown)));
  article.append(element("details", {}, element("summary", {}, "The words that the model knows"),
    element("p", {}, "Other words are underlined, and read as [UNK]."),
    element("p", { className: "note" }, vocabulary.words.slice(DATA.specials).join(" "))));
  if (edited !== null) article.querySelectorAll(".tool")[edited]?.focus();
  edited = null;
}

/** Go on with other paragraphs; those of the text as it was are no change. */
function take(paragraphs) {
  const kept = JSON.stringify(paragraphs.filter(paragraph => typedWords(paragraph).length));
  setControl("edited", kept === JSON.stringify(view.read.raw.paragraphs) ? "" : kept);
}

/** A field in place of a paragraph: Enter or leaving it takes its words, Escape leaves them as they were. */
function edit(paragraphs, n, line) {
  const field = element("textarea", {
    rows: 3, maxLength: 600, spellcheck: false, value: paragraphs[n], "aria-label": `Words of paragraph ${n + 1}`,
  });
  let done = false;
  const leave = taken => {
    if (done) return;
    done = true;
    edited = n;
    if (taken && field.value !== paragraphs[n]) return take(paragraphs.with(n, field.value));
    view.shown = null;
    drawStep();
  };
  field.addEventListener("keydown", onKeys({ Enter: () => leave(true), Escape: () => leave(false) }));
  field.addEventListener("blur", () => leave(true));
  line.replaceChildren(field);
  field.focus();
}

/** Lists of the place that is looked into, and the keyboard where it was. */
function finishStep() {
  const { text, encoded, i, j, k, l, z, heads } = chosen(), names = text.rows.map((_, r) => nameOf(text, r));
  const lists = {
    paragraph: [names, i], from: [encoded.global.length ? names : [], k], word: [text.rows[i].map((shown, w) => `${w}: ${shown}`), j],
    layer: [encoded.global.map((_, n) => String(n + 1)), l], head: [Array.from({ length: heads }, (_, n) => String(n + 1)), z],
  };
  for (const [name, [labels, value]] of Object.entries(lists)) {
    const list = $(`at-${name}`);
    list.replaceChildren(...labels.map((label, n) => option(n, label)));
    list.value = value;
    list.disabled = !labels.length;
  }
  const first = text.rows.slice(0, i).flat().length;
  view.spans.forEach((span, at) => span.classList.toggle("at", at === first + j));
}

function buildPlace() {
  const list = (name, label) => element("label", {}, label, element("select", {
    id: `at-${name}`, onchange: event => lookInto({ from: null, [name]: Number(event.target.value) }),
  }));
  $("inside").prepend(element("section", { className: "card", "aria-labelledby": "look-into" }, element("h2", { id: "look-into" }, "Look into"),
    element("div", { className: "row" }, list("paragraph", "i "), list("word", "word j "), list("layer", "global layer "), list("head", "head z "), list("from", "from i′ ")),
    element("p", { className: "note" }, "The matrix and the equations below have their numbers for this place. A click on a word or a number chooses it, too.")));
  $("changing").textContent = "The text is changed where it stands: words and paragraphs. A paragraph without words is dropped. The summary is written again with the change, beside the unchanged one.";
}
