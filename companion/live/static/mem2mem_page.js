/* What the page of Mem2Mem shows of a step, and what can be changed: the parts that `page.js` asks for. */

const PAGE = {
  model: Mem2Mem,
  read: readDocument,
  unit: "sentence",

  /** Equations of a step in their order: number, and a value of an output for people. */
  equations: [
    [8, o => o.gates ? `keeps ${shares(o.gates)}` : UNWRITTEN],
    [9, o => o.updates ? `mean |u| ${range(o.updates)}` : UNWRITTEN],
    [10, o => `lengths of the slots ${range(o.norms)}`],
    [7, o => { const k = highest(o.psi, 1)[0]; return `most from slot ${k + 1}: ${number(o.psi[k])}`; }],
    [16, o => largestWord(o.coverage)],
    [17, o => largestWord(o.alpha)],
    [3, o => largestWord(o.gamma)],
    [13, o => `p = ${number(o.generate)}: generate`],
    [14, o => bestOf(o.best.copied)],
    [15, o => bestOf(o.best.mixed)],
  ],

  /** Weights of the words; the first shades them at the start and orders the table. */
  attention: {
    title: "Attention over the text: (3), (16), (17)",
    shades: [
      { name: "gamma", label: "γ (3)", weights: o => o.gamma },
      { name: "alpha", label: "α (17)", weights: o => o.alpha },
      { name: "coverage", label: "coverage (16)", weights: o => o.coverage, most: weights => Math.max(1, maximum(weights)) },
    ],
    units: { label: "β (3)", weights: o => o.beta },
  },

  next: {
    title: "The next word: (13) to (15)", generate: "generated p =", by: "(13)",
    columns: { generated: "generated, P<sub>g</sub>", copied: "copied, P<sub>c</sub> (14)", mixed: "both, P (15)" },
  },

  tables: [{
    id: "slots", title: "Memory: read (7), written (8) to (10)",
    rows: ({ psi, gates, updates, norms }) => [
      header("slot", "read ψ (7)", "kept z (8)", "mean |u| (9)", "‖M(k)‖ (10)"),
      ...Array.from(psi, (share, k) => cells(String(k + 1), withBar(share), gates ? withBar(gates[k], "memory") : "–",
        updates ? number(updates[k]) : "–", norms[k].toFixed(2))),
    ],
  }],

  changes: [
    { id: "unwritten", label: "memory not written", change: () => ({ written: false }), without: () => !model.config.write },
    { id: "uncovered", label: "coverage off", change: () => ({ covered: false }) },
    { id: "uncopied", label: "copying off", change: () => ({ copying: false }) },
    { id: "memory", label: "memory of", none: "this text", choices: () => titles(), paper: ({ memory }) => ({ memory }) },
    { id: "slot", label: "slot erased", none: "none", choices: () => numbered(model.slots), change: slot => ({ erasedSlot: slot }) },
  ],
};

const UNWRITTEN = "nothing is written before the first read";
