/* The flat pointer-generator as `lib.models.seq2seq` has it: encoder, and one step of the decoder for K hypotheses.
 *
 * N source words, states of d numbers, a vocabulary of V words.
 */

class Seq2Seq {
  /** config: of a model that copies; weights: {name: {data, shape}}. shown: words of each distribution of an output. */
  constructor(config, weights, shown = 0) {
    Object.assign(this, { weights, shown, d: config.hidden, moved: new Map() });
    this.attention = new CoverageAttention(weights, "word_attention");
    this.pointer = new PointerGenerator(weights, "pointer");
  }

  /** The same model with its switch moved by hand: moved has its value at some steps, counted from 0. */
  with(moved) { return Object.assign(Object.create(this), { moved }); }

  /** What is made once of a text, without a stop. sentences: extended ids; unknown: their words. */
  *encode({ sentences, unknown }) {
    const { weights, attention } = this, source = sentences.flat(), N = source.length;
    const embedded = embed(weights["embedding.weight"], source);
    const { states, last } = bidirectional(weights, "encoder", embedded, N);
    const hidden = layer(weights, "bridge", last, 1);
    return { source, unknown, extra: unknown.length, N, words: states, keys: attention.keys(states, N), hidden };
  }

  /** The state before the first word: hidden [d], coverage [N], and the number of its step. */
  first({ hidden, N }) { return { hidden, coverage: new Float32Array(N), step: 0 }; }

  /** Read K words: new states, outputs (what is seen before the next word) and features [K, F] of P_g. An output has
   *  the model's `own` switch, and the one that is used. */
  advance(tokens, states, document) {
    const { weights, attention, d } = this, K = tokens.length, embedded = embed(weights["embedding.weight"], tokens);
    const hidden = gruStep(weights, "decoder", embedded, stacked(states.map(s => s.hidden)), K);
    const queries = attention.queries(hidden, K), width = queries.length / K;
    const gammas = states.map(({ coverage }, k) =>
      attention.weights(row(queries, width, k), document.keys, document.N, coverage));
    const contexts = stacked(gammas.map(gamma => weightedSum(gamma, document.words, d)));
    const { features, generate } = this.pointer.read(hidden, contexts, embedded, K);
    const outputs = gammas.map((gamma, k) =>
      ({ gamma, own: generate[k], generate: this.moved.get(states[k].step) ?? generate[k] }));
    const next = states.map(({ coverage, step }, k) =>
      ({ hidden: row(hidden, d, k), coverage: coverage.map((c, i) => c + gammas[k][i]), step: step + 1 }));
    return { states: next, outputs, features };
  }

  distributions(outputs, features, document) {
    return this.pointer.distributions(outputs, features, document, this.shown);
  }
}
