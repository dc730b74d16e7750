/* Beam search as `lib.decoding.search` does it, step by step, so that a page stays alive while it runs.
 *
 * A model has `first(document)`, the state before the first word, and `advance(tokens, states, document)`, which gives
 * for K hypotheses {states, outputs, features}; `distributions(outputs, features, document)` gives the P [V + extra]
 * of each. It may have `control`, symbols that are no words of a summary, and `impossible(output)`, ids that cannot follow.
 */

/** Rules of a search, by the names of `DecodeConfig`: beam, min_length, max_length, length_penalty, length_offset,
 *  block_ngrams, forbidden, slide ("as a word", "half" or "median"). Lengths count words without [EOS]. */
const rank = (rules, logP, length) =>
  logP / ((length + rules.length_offset) / (1 + rules.length_offset)) ** rules.length_penalty;

/** Words that would end an n-gram which `ids` already hold. */
function repeating(ids, n) {
  const words = [], begin = ids.length - n + 1;
  for (let i = 0; i + n <= ids.length; i++) {
    let same = true;
    for (let j = 0; j < n - 1 && same; j++) same = ids[i + j] === ids[begin + j];
    if (same) words.push(ids[i + n - 1]);
  }
  return words;
}

/** The rules for a text: of one that is shorter than the shortest summary, for one at most as long as it is. */
const rulesFor = (rules, words) =>
  words >= rules.min_length ? rules : { ...rules, min_length: 0, max_length: Math.min(rules.max_length, words) };

/** Hypotheses are {ids, logP, state, output, stayed, parent}: `output` is what the model saw before it wrote the last word
 *  (and which words were `barred`), `stayed` the probability that no symbol was written since the last one, `parent` the
 *  hypothesis without the last word. Those that ended have a score and [EOS] is not among their ids. */
class BeamSearch {
  constructor(model, document, rules) {
    Object.assign(this, { model, document, rules, length: 0, ended: [] });
    this.open = [{ ids: [], logP: 0, state: model.first(document), output: null, stayed: 1, parent: null }];
  }

  /** The ended hypothesis of the highest score, or the best open one while none has ended. */
  get best() { return this.ended[0] ?? this.open[0]; }

  /** Extend every hypothesis by a word; end, keep and drop. Returns whether the search goes on. */
  step() {
    const { model, document, rules, open } = this, length = ++this.length, most = 2 * rules.beam;
    const tokens = open.map(h => h.ids.length ? h.ids[h.ids.length - 1] : BOS);
    const made = model.advance(tokens, open.map(h => h.state), document);
    const p = model.distributions(made.outputs, made.features, document);
    const found = open.flatMap((parent, k) => {
      const output = made.outputs[k], barred = output.barred = this.barred(parent.ids, output);
      for (const word of barred ?? []) if (word < p[k].length) p[k][word] = 0;
      const stayed = barred ? this.decide(p[k], parent.stayed) : 1, words = barred ? largest(p[k], most) : p[k][EOS] > 0 ? [EOS] : [];
      return words.map(word =>
        ({ word, logP: parent.logP + Math.log(p[k][word]), parent, state: made.states[k], output, stayed }));
    });
    found.sort((a, b) => b.logP - a.logP);
    found.length = Math.min(found.length, most);
    found.forEach((f, place) => {
      if (f.word !== EOS || place >= rules.beam) return;
      const score = rank(rules, f.logP, length);
      this.ended.push({ ids: f.parent.ids, logP: f.logP, score, output: f.output, parent: f.parent });
    });
    this.ended.sort((a, b) => b.score - a.score);
    const worst = this.ended[rules.beam - 1]?.score ?? -Infinity;
    this.open = found.filter(f => f.word !== EOS).slice(0, rules.beam).map(f =>
      ({ ids: [...f.parent.ids, f.word], logP: f.logP, state: f.state, output: f.output, stayed: f.stayed, parent: f.parent }));
    return this.open.length > 0 && length <= rules.max_length && worst < rank(rules, this.open[0].logP, length);
  }

  /** Decide whether to slide, before a word is chosen: P of what is decided against becomes 0. The value is the
   *  probability that no symbol was written since the last one. */
  decide(p, before) {
    const { rules: { slide }, model: { control } } = this;
    if (!control || !slide || slide === "as a word") return 1;
    const stayed = (slide === "median" ? before : 1) * (1 - control.reduce((sum, id) => sum + p[id], 0)), slides = stayed < 0.5;
    for (let id = 0; id < p.length; id++) if (control.includes(id) !== slides) p[id] = 0;
    return slides ? 1 : stayed;
  }

  /** Words that may not follow `ids`; null: only [EOS] may, however improbable it is. N-grams pass over symbols. */
  barred(ids, output) {
    const { rules, length, model } = this, { control } = model;
    if (length > rules.max_length) return null;
    const words = control ? ids.filter(id => !control.includes(id)) : ids;
    const repeated = rules.block_ngrams ? repeating(words, rules.block_ngrams) : [];
    return [...rules.forbidden, ...(length <= rules.min_length ? [EOS] : []), ...repeated, ...model.impossible?.(output) ?? []];
  }
}

/** Search to the end, with a stop after every step; the value is the best hypothesis. */
function* search(model, document, rules) {
  const run = new BeamSearch(model, document, rules);
  while (run.step()) yield run;
  return run.best;
}

/** The steps that led to a hypothesis; of one that has ended [EOS] is the last. */
function stepsOf(best) {
  const steps = [];
  for (let h = best; h.parent; h = h.parent)
    steps.unshift({ id: h.score === undefined ? h.ids.at(-1) : EOS, p: Math.exp(h.logP - h.parent.logP), output: h.output });
  return steps;
}

/** log P of every word of `ids` and of the [EOS] behind them, with a stop after every fourth. */
function* logProbs(model, document, ids) {
  const targets = [...ids, EOS], logs = [];
  let state = model.first(document), waiting = [];
  for (let t = 0; t < targets.length; t++) {
    const { states, outputs, features } = model.advance([t ? targets[t - 1] : BOS], [state], document);
    [state] = states;
    waiting.push({ output: outputs[0], features });
    if (waiting.length < 4 && t < targets.length - 1) continue;
    const rows = stacked(waiting.map(w => w.features));  // the vocabulary is read once for four words
    const p = model.distributions(waiting.map(w => w.output), rows, document);
    p.forEach((of, i) => logs.push(Math.log(of[targets[logs.length]])));
    waiting = [];
    yield logs;
  }
  return logs;
}
