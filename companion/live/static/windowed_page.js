/* What the page of windowed attention shows of a step, and what can be changed: the parts that `page.js` asks for. */

const PAGE = {
  model: Windowed,
  read: readArticle,
  unit: "sentence",
  says: { [SLIDE]: "→" },
  inside: o => [o.begin, o.end],

  equations: [
    [1, (o, text) => `${text.words.length.toLocaleString("en")} words: n = ${o.last + 1}`],
    [5, () => `of ${model.d} numbers`],
    [6, o => `${word(o.input)} enters; mean |s| ${number(o.state)}`],
    [7, o => o.isStatic ? "not used" : windowNow(o)],
    [14, o => o.isStatic ? windowNow(o) : "not used"],
    [8, o => `largest ${o.score.toFixed(2)}`],
    [9, o => { const i = highest(o.alpha, 1)[0]; return `largest ${number(o.alpha[i])}, ${wordAt(o.begin + i)}`; }],
    [10, o => `largest l ${o.logit.toFixed(2)}`],
    [11, o => bestOf(o.best.generated)],
    [12, o => `p = ${number(o.generate)}; ${bestOf(o.best.mixed)}`],
  ],

  attention: {
    title: "Attention in the window: (8), (9)",
    shades: [
      { name: "alpha", label: "α (9)", weights: (o, text) => overText([o], text) },
      { name: "total", label: "α of all steps so far", most: weights => Math.max(1, maximum(weights)),
        weights: (o, text) => overText(summary().steps.slice(0, view.step + 1).map(step => step.output), text) },
    ],
    units: { label: "α of the sentence", weights: (o, text) => byRow(overText([o], text), text) },
  },

  next: {
    title: "The next word or symbol: (10) to (12)", generate: "generated p =", by: "(12)",
    columns: { generated: "generated, P<sub>g</sub> (11)", copied: "copied, P<sub>c</sub>", mixed: "both, P (12)" },
  },

  tables: [
    {
      id: "slides", title: "The symbol →, which moves the window",
      rows: o => [element("tr", {}, element("td", {}, "P(→) now: ", ...withBar(o.slide, "memory"))),
        element("tr", {}, element("td", {}, chart(summary().steps.map(step => step.output.slide), view.step)))],
    },
    {
      id: "windows", title: "Windows: (1), (7)",
      rows: (o, text) => {
        const { steps } = summary(), near = n => o.last < 8 || Math.abs(n - o.window) < 4, { window, stride } = model.config;
        const count = n => steps.filter(({ id, output }) => output.window === n && isWritten(id)).length;
        if (window === null) return [cells("this run has none: it attends to every word")];
        return [header("window", "words of the text", "words written in it"),
          ...Array.from({ length: o.last + 1 }, (_, n) => n).filter(near).map(n => {
            const line = cells(String(n + 1), `${n * stride + 1} to ${Math.min(n * stride + window, text.words.length)}`, String(count(n)));
            if (n === o.window) line.className = "chosen";
            return line;
          })];
      },
    },
  ],

  changes: [
    { id: "uncopied", label: "copying off", change: () => ({ copying: false }) },
    { id: "decided", label: "slide or not", none: "→ competes with words, as in the paper", rules: slide => ({ slide: ["half", "median"][slide] }),
      choices: () => [[0, "decided first: P(→) above 1/2"], [1, "decided first: by the median"]], without: () => windowless() },
    { id: "barred", label: "→ barred", rules: () => ({ forbidden: [...DATA.decode.forbidden, SLIDE] }), without: () => windowless() },
    { id: "stays", label: "window stays at the first", change: () => ({ stays: true }), without: () => windowless() },
    { id: "static", label: "windows by shares of the words (14)", change: () => ({ windowing: "static" }),
      without: () => windowless() || model.config.windowing === "static" },
    { id: "everything", label: "every word in sight", change: () => ({ everything: true }), without: () => windowless() },
    { id: "order", label: "sections", none: "in their order", choices: () => [[0, "the last one first"], [1, "backwards"]], text: reordered },
  ],
};

/** A bar for each step, as high as its share; the one of now stands out. */
const chart = (values, now) => element("div", { className: "chart", "aria-hidden": "true" }, ...values.map((share, t) => {
  const made = element("i", { className: t === now ? "now" : "" });
  made.style.height = `${Math.max(2, 100 * share)}%`;
  return made;
}));

const windowless = () => model.config.window === null;
const windowNow = o => `window ${o.window + 1} of ${o.last + 1}`;

/** A text with its last section first, or (1) with all sections backwards. */
function reordered(text, backwards) {
  const { sections } = text;
  return { ...text, sections: backwards ? sections.toReversed() : [sections.at(-1), ...sections.slice(0, -1)] };
}

/** Weights in windows, at the places of the whole text, summed over outputs. */
function overText(outputs, { words }) {
  const weights = new Float64Array(words.length);
  for (const { alpha, begin } of outputs) for (let i = 0; i < alpha.length; i++) weights[begin + i] += alpha[i];
  return weights;
}
