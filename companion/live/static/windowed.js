/* Windowed attention as `lib.models.windowed` has it: encoder, window, one step of the decoder for K hypotheses.
 *
 * N source words, states of d numbers, a vocabulary of V words. Windows and words count from 0.
 */

const SLIDE = 4;  // the symbol that moves the window on

/** Changes of a model. copying; stays: whatever is written, in the first window; everything: attention to all words,
 *  while windows are counted; windowing: "static" moves them after shares of the words (14). */
const AS_TRAINED = { copying: true, stays: false, everything: false, windowing: null };

class Windowed {
  /** config: of the run's model; weights: {name: {data, shape}}. shown: words of P_g, P_c and P that an output has. */
  constructor(config, weights, shown = 0) {
    Object.assign(this, { config, weights, shown, size: config.vocab_size, d: 2 * config.hidden, control: [SLIDE] });
    this.change = AS_TRAINED;
  }

  /** The same model with changes; what was encoded stays valid. */
  with(change) { return Object.assign(Object.create(this), { change: { ...AS_TRAINED, ...change } }); }

  get windowing() { return this.change.windowing ?? this.config.windowing; }

  embedded(tokens) { return embed(this.weights["embedding.weight"], tokens); }

  /** What is made once of a text, with stops. sentences: extended ids. */
  *encode({ sentences, unknown }) {
    const source = sentences.flat(), N = source.length, inputs = this.embedded(source), { window, stride } = this.config;
    const last = window === null ? 0 : Math.max(0, Math.ceil((N - window) / stride));
    const forth = yield* recurrent(this.weights, "forward_encoder", inputs, N);  // (5)
    const back = yield* recurrent(this.weights, "backward_encoder", inputs, N, { back: true });
    return {
      sentences, unknown, source, N, extra: unknown.length, last, words: beside(forth.states, back.states, N),
      start: { hidden: beside(forth.last, back.last, 1), cell: beside(forth.cell, back.cell, 1) }, ends: window === null ? null : this.windowEnds(N, last),
    };
  }

  /** (14): after how many symbols of the summary each window ends. */
  windowEnds(N, last) {
    const { steepness, decay, budget, longest, window, stride } = this.config;
    const shares = Array.from({ length: last + 1 }, (_, t) => {
      const share = Math.exp(-steepness * (1 + t * decay ** t));
      return share * Math.min(1, Math.max(0, (N - t * stride) / window));
    });
    const total = shares.reduce((a, b) => a + b, 0), symbols = N * budget / longest;
    let sum = 0;
    return shares.map(share => {
      sum += share;
      return Math.trunc(sum / total * symbols + 1e-9);
    });
  }

  /** The state before the first word: state of the LSTM, window, symbols written. */
  first({ start }) { return { ...start, window: 0, position: 0 }; }

  /** Read K words: new states, outputs (what is seen before the next word) and features [K, E] of P_g. */
  advance(tokens, states, document) {
    const K = tokens.length, { d } = this, embedded = this.embedded(tokens), before = stacked(states.map(s => s.hidden));
    const last = { hidden: before, cell: stacked(states.map(s => s.cell)) };
    const { hidden, cell } = recurrentStep(this.weights, "decoder", embedded, last, K);  // (6)
    const seen = states.map((state, k) => this.attend(row(hidden, d, k), this.moved(tokens[k], state, document), document));
    const { attentional, features, generate } = this.pointer(stacked(seen.map(s => s.context)), hidden, before, embedded, K);
    const outputs = seen.map(({ context, ...output }, k) => ({
      ...output, input: tokens[k], state: meanSize(row(hidden, d, k)), attentional: meanSize(row(attentional, d, k)),
      last: document.last, isStatic: this.windowing === "static", generate: this.change.copying ? generate[k] : 1,
    }));
    const next = states.map(({ position }, k) =>
      ({ hidden: row(hidden, d, k), cell: row(cell, d, k), window: outputs[k].window, position: position + 1 }));
    return { states: next, outputs, features };
  }

  /** (7), or (14): the window after a symbol has entered. */
  moved(token, { window, position }, { last, ends }) {
    if (this.change.stays) return 0;
    if (this.windowing !== "static") return Math.min(window + (token === SLIDE ? 1 : 0), last);
    const passed = (ends ?? []).findIndex(end => end > position);
    return Math.min(passed < 0 ? last : passed, last);
  }

  /** (8), (9): weights alpha of the words in the window, which begins at `begin`, the largest score, and the context. */
  attend(query, window, document) {
    const { d, config, change } = this, all = config.window === null || change.everything;
    const begin = all ? 0 : window * config.stride, end = all ? document.N : Math.min(document.N, begin + config.window);
    const states = document.words.subarray(begin * d, end * d);
    const scores = Float64Array.from({ length: end - begin }, (_, i) => dot(query, row(states, d, i)));
    const score = maximum(scores), alpha = softmax(scores);
    return { alpha, begin, end, window, score, context: weightedSum(alpha, states, d) };
  }

  /** (10), (12): the attentional state [K, d], features [K, E] of P_g, and the switch p [K]. */
  pointer(contexts, hidden, before, embedded, K) {
    const through = (part, rows) => layer(this.weights, `pointer.${part}`, rows, K);
    const attentional = through("combine", beside(contexts, hidden, K).map(tanh));
    const switches = through("switch", beside(beside(attentional, before, K), embedded, K));
    return { attentional, features: through("bottleneck", attentional), generate: Array.from(switches, sigmoid) };
  }

  /** [SLIDE] may not follow where there is no further window. */
  impossible({ window, last }) { return this.windowing !== "static" && window < last ? [] : [SLIDE]; }

  /** (11), (12): P [V + extra] of each output. An output gets its words of the largest P_g, P_c and P, and the P of
   *  the symbol. */
  distributions(outputs, features, document) {
    const K = outputs.length, { size, weights } = this;
    const scores = linear(weights["embedding.weight"], features, K, weights["pointer.vocabulary.bias"]);
    return outputs.map((output, k) => {
      const own = row(scores, size, k), source = document.source.slice(output.begin, output.end);
      output.logit = maximum(own);
      const p = mixed(softmax(own), output.generate, output.alpha, source, document.extra);
      output.slide = p[SLIDE];
      if (this.shown) output.best = bestWords(own, output.alpha, p, source, this.shown);
      return p;
    });
  }
}
