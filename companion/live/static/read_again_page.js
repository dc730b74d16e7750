/* What the page of Read-Again shows of a step, and what can be changed: the parts that `page.js` asks for. */

const PAGE = {
  model: ReadAgain,
  read: readHeadline,
  vocabulary: data => new Vocabulary(data.words, data.source_words),
  unit: "sentence",

  get equations() { return EQUATIONS.filter(([, , has]) => has?.() ?? true); },

  attention: {
    title: "Attention (14), copying (16), importance",
    shades: [
      { name: "beta", label: "β (14)", weights: o => o.beta },
      { name: "copied", label: "copied from here (17)", weights: o => o.copied },
      { name: "importance", label: "importance α (5)", weights: (o, text) => importanceOf(text), without: () => model.config.encoder !== "read-again gru" },
    ],
    units: { label: "β of the sentence", weights: (o, text) => byRow(o.beta, text) },
  },

  next: {
    title: "The next word: (16), (17)", generate: "generated", by: "(17)",
    columns: { generated: "generated", copied: "copied", mixed: "both, P (17)" },
  },

  tables: [],

  changes: [
    { id: "uncopied", label: "copying off", change: () => ({ copying: false }), without: () => !model.config.copy },
    { id: "unembedded", label: "[UNK] instead of p (15)", change: () => ({ fromContext: false }), without: () => !model.config.copy },
    { id: "untold", label: "second read without the text", change: () => ({ told: false }), anew: true,
      without: () => !model.config.encoder.startsWith("read-again") },
  ],
};

const readsAgain = kind => () => model.config.encoder === `read-again ${kind}`;
const isGru = () => model.config.encoder.endsWith("gru");

/** Equations of the encoder that the run has, and of a step, in their order. */
const EQUATIONS = [
  [2, () => firstRead(), isGru],
  [7, () => firstRead(), () => !isGru()],
  [5, (o, text) => largestWord(importanceOf(text)), readsAgain("gru")],
  [4, () => secondRead(), readsAgain("gru")],
  [8, () => secondRead(), readsAgain("lstm")],
  [15, o => o.from === null ? `${word(o.input)}: of the table` : `${word(o.input)}: p of word ${o.from + 1}`],
  [14, o => largestWord(o.beta)],
  [13, o => `mean |c| ${number(o.context)}`],
  [12, o => `mean |s| ${number(o.state)}`],
  [16, o => `largest g ${o.scores.g.toFixed(2)}, k ${Number.isFinite(o.scores.k) ? o.scores.k.toFixed(2) : "–"}`],
  [17, o => bestOf(o.best.mixed)],
];

const documentNow = () => summary()?.document ?? view.document;
const importanceOf = ({ words }) => documentNow().importance ?? words.map(() => 0);
const firstRead = () => `its last state: mean |h| ${number(meanSize(documentNow().text))}`;
const secondRead = () => `mean |h| ${number(meanSize(documentNow().states))}`;
