/* What the page draws: a text, summaries, and of the step that is looked at the picture, the equations and the tables.
 * `PAGE` and `view` are described in `page.js`. */

const SHOWN = 5;  // words of a distribution

const shares = numbers => `${(100 * mean(numbers)).toFixed(mean(numbers) < 0.1 ? 1 : 0)}%`;
const range = numbers => `${number(Math.min(...numbers))} to ${number(Math.max(...numbers))}`;
const summary = () => view[view.looked] ?? view.own;
const textNow = () => summary()?.text ?? view.read;
const word = (id, text = textNow()) => PAGE.says?.[id] ?? vocabulary.word(id, text.ids.unknown);
const wordsOf = ({ ids, text }) => ids.map(id => word(id, text));
const wordAt = i => textNow().words[i];
const isWritten = id => id !== EOS && !model.control?.includes(id);  // a word, no symbol
const largestWord = weights => { const i = highest(weights, 1)[0]; return `largest ${number(weights[i])}, ${wordAt(i)}`; };
const bestOf = ([[id, p]]) => `largest ${number(p)}, ${word(id)}`;
const shadesOfRun = () => PAGE.attention.shades.filter(({ without }) => !without?.());

/** A card with a heading and a table that can be scrolled. */
const tableCard = (id, title, ...more) => element("section", { className: "card", "aria-labelledby": `${id}-name` },
  element("h2", { id: `${id}-name` }, title),
  element("div", { className: "wide", tabIndex: 0, role: "group", "aria-labelledby": `${id}-name` }, element("table", { id })), ...more);

/** What is shown of a row by default: its number, which erases it. */
const ERASING = {
  name: j => String(j + 1),
  title: j => `Erase ${PAGE.unit} ${j + 1}, or bring it back`,
  act: j => setControl("erased", $("erased").value === String(j) ? "" : j),
  pressed: j => $("erased").value === String(j),
};
const rowsOf = () => PAGE.rows ?? ERASING;

/** Draw a text, with a stop after every hundred rows; what is not read of it is folded, where it stands. */
function* drawText(text) {
  const { raw: { title, source }, rows, shown, of, unread } = text, article = $("text"), { name, title: said, act } = rowsOf();
  const limit = DATA.limit && filled(DATA.limit, DATA.options);
  const fold = j => {
    const parts = unread.filter(({ row }) => row === j), count = parts.flatMap(part => part.text.split(/\s+/)).length;
    const texts = parts.map((part, n) => `${part.name && part.name !== parts[n - 1]?.name ? `${part.name}: ` : ""}${part.text} `);
    if (count) article.append(element("details", { className: "unread" }, element("summary", {}, `${count.toLocaleString("en")} words are not read. ${limit}`), ...texts));
  };
  article.replaceChildren(element("div", { id: "strip", hidden: true }, element("i")), element("h2", {}, title || "Your text"));
  if (source) article.append(element("p", { className: "note" }, source));
  Object.assign(view, { spans: [], bars: [], darks: [], shown: rows, inside: [0, 0] });
  drawn = null;
  fold(-1);
  for (const [j, words] of shown.entries()) {
    if (of[j] && of[j] !== of[j - 1]) article.append(element("h3", {}, of[j]));
    const length = element("span", { className: "bar" });
    const sentence = element("p", { className: "sentence" }, button(name(j), () => act(j), { title: said(j) }), length);
    for (const [place, form] of words.entries()) {
      const span = element("span", { className: "word", onclick: PAGE.pick ? () => PAGE.pick(j, place) : null }, form.trim());
      view.spans.push(span);
      sentence.append(place && form.startsWith(" ") ? " " : "", span);
    }
    view.bars.push(length);
    article.append(sentence);
    fold(j);
    if (j % 100 === 99) yield j;
  }
  article.scrollTop = 0;
  PAGE.finishText?.(text, article);
}

/** Weights of the words, or of the rows, that were read, at the places of those that are shown: what is erased has 0. */
function placed(weights, { gap, rows }, ofRows = false) {
  if (gap === null) return weights;
  const at = ofRows ? gap : rows.slice(0, gap).flat().length;
  const none = Array(ofRows ? 1 : rows[gap].length).fill(0);
  return [...weights.slice(0, at), ...none, ...weights.slice(at)];
}

/** The sum over each row of weights of the words that were read. */
function byRow(weights, { lengths }) {
  let at = 0;
  return lengths.map(length => weights.slice(at, at += length).reduce((a, b) => a + b, 0));
}

const shadeChosen = () => document.querySelector("[name=shade]:checked").value;

function drawWeights() {
  const chosen = shadesOfRun().find(({ name }) => name === shadeChosen()), weights = drawn[chosen.name], most = chosen.most?.(weights) ?? 1;
  view.spans.forEach((span, i) => {
    const dark = Math.round(50 * Math.sqrt(weights[i] / most)) / 50;  // the root: small weights can be seen, too
    if (dark !== (view.darks[i] ?? 0)) shade(span, view.darks[i] = dark);
  });
  const { pressed } = rowsOf();
  view.bars.forEach((length, j) => {
    length.style.width = `${2.1 * drawn.units[j]}rem`;
    length.title = number(drawn.units[j]);
    length.parentElement.classList.toggle("erased", $("erased").value === String(j));
    length.previousElementSibling.setAttribute("aria-pressed", String(pressed(j)));
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
  if (first !== before || end !== until) bringIntoView($("text"), spans[first]);
}

/** Scroll a box, and nothing around it, until a part of it is in view. */
function bringIntoView(box, part) {
  for (let n = 0; n < 2; n++) {  // rows far away get their true height once they are near
    const outer = box.getBoundingClientRect(), inner = part.getBoundingClientRect();
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
    if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 3;
  }
}

/** Each summary in its box: unchanged, with the change, and what another model writes. Words are marked that only one of
 *  the first two has. */
function drawSummaries() {
  const { own, changed, other } = view;
  const others = changed ? { own: new Set(wordsOf(changed)), changed: new Set(wordsOf(own)) } : {};
  const titles = { own: changed || other ? "unchanged" : "", changed: "with the change", other: PAGE.beside };
  $("summaries").classList.toggle("two", Boolean(changed || other));
  for (const [name, title] of Object.entries(titles)) {
    $(name).hidden = name !== "own" && !view[name];
    drawSummary(name, title, view[name] ?? {}, others[name]);
  }
  drawStep();
}

/** A summary in its box. Words that are there already stay: a search mostly goes on. others: words of the other summary. */
function drawSummary(name, title, { steps = [], logP, text }, others) {
  const box = $(name), paragraph = box.lastElementChild, shown = paragraph.children;
  box.firstElementChild.replaceChildren(...withTerms([title, steps.length && `log P a word ${signed(logP / steps.length)}`].filter(Boolean).join(", ")));
  const words = readable(steps.filter(({ id }) => id !== EOS).map(({ id }) => word(id, text)), text?.forms);
  let same = 0;
  while (same < shown.length && same < words.length && shown[same].textContent === words[same]) same++;
  while (shown.length > same) shown[same].remove();
  for (let place = same; place < words.length; place++) {
    const written = element("span", { className: "word", onclick: () => look(name, place) }, words[place].trim());
    paragraph.append(element("span", {}, words[place].startsWith(" ") ? " " : "", written));
  }
  words.forEach((_, t) => {
    const { id, output } = steps[t], { classList } = shown[t].lastChild;
    classList.toggle("copied", output.generate < 0.5);
    classList.toggle(name === "own" ? "gone" : "new", Boolean(others) && !others.has(word(id, text)));
  });
}

/** log P a word of the unchanged summary, unchanged and with a change: a line for people. */
function effectOf({ own, changed, same }) {
  const sign = changed >= own ? "+" : "−";
  return `${same ? "The summary stays as it is. " : ""}log P of the unchanged summary, nats a word: `
    + `${signed(own)} unchanged, ${signed(changed)} with the change (${sign}${Math.abs(changed - own).toFixed(3)})`;
}

let drawn = null;  // weights of the step, at the places of the text that is shown; null: there is no step of it yet

/** All that is shown of the step that is looked at. */
function drawStep() {
  const steps = summary()?.steps ?? [];
  view.step = Math.max(0, Math.min(view.step, steps.length - 1));
  drawStepper(steps);
  if (!steps.length) return;
  const text = textNow(), { id, p, output } = steps[view.step];
  if (view.shown !== text.rows) for (const _ of drawText(text));  // the changed one, or the reader's own again
  drawn = Object.fromEntries(shadesOfRun().map(({ name, weights }) => [name, placed(weights(output, text), text)]));
  drawn.units = placed(PAGE.attention.units.weights(output, text), text, true);
  drawWeights();
  drawInside(output);
  for (const { id, rows } of PAGE.tables) $(id).replaceChildren(...rows(output, text));
  drawWords(output, id, p);
  drawEquations(output);
  PAGE.finishStep?.();
  if (summary().done) keepAddress();
}

/** The stepper, and the word that is looked at. */
function drawStepper(steps) {
  const count = steps.length, slider = $("step"), { step } = view;
  slider.max = Math.max(0, count - 1);
  slider.value = step;
  $("back").disabled = step === 0;
  $("on").disabled = step >= count - 1;
  for (const here of document.querySelectorAll("#summaries .here")) here.classList.remove("here");
  if (!count) return;
  const written = word(steps[step].id), place = `word ${step + 1} of ${count}`;
  $("drawn").replaceChildren(...withTerms(`Before “${written}” is written`));
  $("place").textContent = place;
  slider.setAttribute("aria-valuetext", `${place}: ${written}`);
  const paragraph = $(view.looked).lastElementChild, here = paragraph.children[step]?.lastChild;
  if (!here) return;
  here.classList.add("here");
  bringIntoView(paragraph, here);
}

/** Values of all equations, the symbols of the chosen one, and the parts of the picture that it lights. */
function drawEquations(output) {
  [...$("equations").children].forEach((choice, n) => {
    const symbols = n === view.equation ? new Set([...choice.querySelectorAll("[data-symbol]")].map(({ dataset }) => dataset.symbol)) : [];
    choice.querySelector(".means").replaceChildren(...[...symbols].map(symbol =>
      element("span", {}, element("span", { className: "formula", innerHTML: symbol }), ` ${meaningOf(symbol)} `)));
    choice.querySelector(".value").textContent = PAGE.equations[n][1](output, textNow());
    choice.setAttribute("aria-checked", String(n === view.equation));
    choice.tabIndex = n === view.equation ? 0 : -1;
  });
  for (const part of document.querySelectorAll("#picture [data-equations]"))
    part.classList.toggle("lit", equationsOf(part).includes(view.equation));
}

/** The equations that a part of the picture belongs to, by their places; a name stands for the unnumbered parts. */
const equationsOf = part => PAGE.equations.flatMap(([n], place) =>
  part.dataset.equations.split(" ").includes(typeof n === "number" ? String(n) : "") ? [place] : []);

/** The most probable words, by generating, by copying and by both, and the one that is written. */
function drawWords({ generate, best, barred }, id, p) {
  const columns = Object.entries(PAGE.next.columns);
  $("dotted").hidden = $("switch").hidden = generate === undefined;
  if (generate !== undefined)
    $("switch").replaceChildren(element("span", {}, `copied ${(1 - generate).toFixed(3)}`), bar(1 - generate, "copy"),
      element("span", {}, `${PAGE.next.generate} ${generate.toFixed(3)} ${PAGE.next.by}`));
  const may = of => barred ? !barred.includes(of) : of === EOS;
  const cell = (pair, mixed) => pair ? element("span", {
    className: pair[0] === id ? "chosen" : mixed && !may(pair[0]) ? "barred" : "",
    ...(mixed && !may(pair[0]) ? tipped("Not allowed here: a symbol, an end of the summary that is too early, or a repetition.") : {}),
  }, ...withTerms(`${word(pair[0])} ${number(pair[1])}`)) : "";
  const last = element("td", { colSpan: columns.length }, ...withTerms(`written: ${word(id)}, P = ${number(p)}`));
  $("words").replaceChildren(header(...columns.map(([, label]) => label)),
    ...Array.from({ length: SHOWN }, (_, n) => cells(...columns.map(([name]) => cell(best[name][n], name === "mixed")))),
    element("tr", { className: "chosen" }, last));
  for (const td of $("words").querySelectorAll("td")) td.className = "text";
}

const TERMS = {
  "[EOS]": "The end of the summary: a symbol that the model writes when it has finished.",
  "[UNK]": "A word that the model's vocabulary does not have. All such words look the same to it.",
  "→": "The symbol that moves the window on.",
  "log P a word": "How probable the model finds its own summary: the logarithm of the probability, averaged over the words. Nearer to 0 is more probable.",
  nats: "The unit of natural logarithms: 0.69 nats less make a word half as probable.",
};
const tipped = tip => ({ "data-tip": tip, tabIndex: 0 });

/** A text in which the terms that it has are explained. */
const withTerms = text => text.split(/(\[EOS\]|\[UNK\]|→|log P a word|nats)/).map(part =>
  TERMS[part] ? element("span", { className: "term", ...tipped(TERMS[part]) }, part) : part);

const SYMBOL = new RegExp(`(?<![\\p{L}</])(?:${Object.keys(DATA.symbols).sort((a, b) => b.length - a.length)
  .map(symbol => symbol.replace(/[()[\]]/g, "\\$&")).join("|")})(?![\\p{L}>])`, "gu");

/** A formula in which the symbols that are explained are marked. */
const withSymbols = formula => formula.replace(SYMBOL, symbol => `<span class="symbol" data-symbol="${symbol}">${symbol}</span>`);

/** The meaning of a symbol, its shape, and its value at the step that is looked at. */
function meaningOf(symbol) {
  const [meaning, shape, name] = DATA.symbols[symbol], value = summary()?.steps[view.step]?.output[name];
  const now = value === undefined || value === null ? [] : [value.length ? range([...value]) : number(value)];
  return [meaning, ...(shape ? [shape] : []), ...now].join("; ") + ".";
}

/** What is explained of the element that is pointed at, tapped or focused: nodes, none of most. */
function explained(target) {
  const place = view.spans.indexOf(target);
  if (place >= 0 && drawn) return [shadesOfRun().map(({ name, label }) => `${label}: ${number(drawn[name][place])}`).join("; ")];
  const [told, symbol, part] = ["[data-tip]", "[data-symbol]", "#picture [data-equations]"].map(kind => target.closest?.(kind));
  if (told) return [told.dataset.tip];
  if (symbol) return [meaningOf(symbol.dataset.symbol)];
  return part ? equationsOf(part).map(place => $("equations").children[place].querySelector(".line").cloneNode(true)) : [];
}

function showTip({ target }) {
  const told = explained(target), tip = $("tip");
  tip.hidden = !told.length;
  if (tip.hidden) return;
  tip.replaceChildren(...told);
  const { left, top, bottom } = target.getBoundingClientRect(), { offsetWidth, offsetHeight } = tip;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - offsetWidth - 8))}px`;
  tip.style.top = `${bottom + offsetHeight + 12 > innerHeight ? Math.max(8, top - offsetHeight - 6) : bottom + 6}px`;
}
