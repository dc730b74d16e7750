/* Read-Again as `lib.models.read_again` has it: an encoder that reads a text once or twice, one step of the decoder for K
 * hypotheses, which generates or copies by one softmax.
 *
 * N source words, states of d numbers, embeddings of e, a vocabulary of Y words that are written.
 */

/** Changes of a model. copying; fromContext: whether a copied word enters by its context (15), otherwise as [UNK];
 *  told: whether the second read has the vector of the text. */
const READ_TWICE = { copying: true, fromContext: true, told: true };

class ReadAgain {
  /** config: of the run's model; weights: {name: {data, shape}}. shown: words of P_g, P_c and P that an output has. */
  constructor(config, weights, shown = 0) {
    Object.assign(this, { config, weights, shown, size: config.vocab_size, d: config.hidden });
    this.attention = new Attention(weights, "attention", "concat");
    this.change = READ_TWICE;
  }

  /** The same model with changes; `told` changes what is encoded. */
  with(change) { return Object.assign(Object.create(this), { change: { ...READ_TWICE, ...change } }); }

  /** What is made once of a text, with stops. sentences: extended ids; read: those that the encoder reads. */
  *encode({ sentences, unknown, read }) {
    const source = sentences.flat(), N = source.length, embedded = embed(this.weights["source_embedding.weight"], (read ?? sentences).flat());
    const { first, states, last, importance } = yield* this.read(embedded, N);
    const contexts = this.config.copy ? layer(this.weights, "word", states, N).map(tanh) : null;  // (15)
    return {
      sentences, unknown, read, source, N, extra: unknown.length, states, contexts, importance, text: first.last,
      keys: this.attention.keys(states, N), hidden: layer(this.weights, "bridge", last, 1).map(tanh), cell: new Float32Array(this.d),
    };
  }

  /** The reads: the first one, the states [N, d] of the words and the last of them, and alpha of a GRU that reads again. */
  *read(embedded, N) {
    const { config: { encoder }, weights, d } = this;
    if (encoder === "bidirectional gru") {
      const both = bidirectional(weights, "first_read", embedded, N);
      return { first: both, ...both, importance: null };
    }
    const first = yield* recurrent(weights, "first_read", embedded, N);
    if (!encoder.startsWith("read-again")) return { first, ...first, importance: null };
    const text = this.change.told ? first.last : new Float32Array(d);
    if (encoder === "read-again lstm") {  // (8)
      const again = beside(beside(embedded, first.states, N), stacked(Array(N).fill(text)), N);
      const second = yield* recurrent(weights, "second_read", again, N);
      return { first, ...second, importance: null };
    }
    const alpha = this.importance(first.states, text, embedded, N);
    const second = yield* recurrent(weights, "second_read.gru", embedded, N, { alpha: alpha.each });
    return { first, ...second, importance: alpha.mean };
  }

  /** (5): alpha of each word in each dimension [N, d], and its mean over dimensions [N]. */
  importance(first, text, embedded, N) {
    const { config, d } = this, own = layer(this.weights, "importance_word", first, N), width = own.length / N;
    const ofText = layer(this.weights, "importance_text", text, 1), ofInput = layer(this.weights, "importance_input", embedded, N);
    const squash = config.importance === "tanh" ? tanh : gate;
    const alpha = own.map((x, at) => squash(x + ofText[at % width] + ofInput[at]));
    const each = new Float32Array(N * d).map((_, at) => width === d ? alpha[at] : alpha[Math.floor(at / d)]);
    return { each, mean: Array.from({ length: N }, (_, i) => mean(row(alpha, width, i))) };
  }

  first({ hidden, cell }) { return { hidden, cell }; }

  /** Read K words: new states, outputs (what is seen before the next word) and features [K, d], which are the states. */
  advance(tokens, states, document) {
    const K = tokens.length, { d } = this, entered = tokens.map(id => this.entering(id, document));
    const before = stacked(states.map(s => s.hidden)), queries = this.attention.queries(before, K), A = queries.length / K;
    const betas = states.map((_, k) => this.attention.weights(row(queries, A, k), document.keys, document.N));  // (14)
    const contexts = betas.map(beta => weightedSum(beta, document.states, d));  // (13)
    const inputs = beside(stacked(entered.map(x => x.embedded)), stacked(contexts), K);
    const last = { hidden: before, cell: stacked(states.map(s => s.cell)) };
    const { hidden, cell } = recurrentStep(this.weights, "decoder", inputs, last, K, "");  // (12)
    const copies = this.copyScores(hidden, document, K);
    const outputs = betas.map((beta, k) => ({
      beta, copyScores: copies[k], input: tokens[k], from: entered[k].place, context: meanSize(contexts[k]), state: meanSize(row(hidden, d, k)),
    }));
    return { states: outputs.map((_, k) => ({ hidden: row(hidden, d, k), cell: row(cell, d, k) })), outputs, features: hidden };
  }

  /** (15): a word of Y from its table, another from where it first stands in the text, its `place`. */
  entering(id, { source, contexts }) {
    const place = id >= this.size && contexts && this.change.fromContext ? source.indexOf(id) : -1;
    if (place >= 0) return { embedded: row(contexts, contexts.length / source.length, place), place };
    return { embedded: embed(this.weights["target_embedding.weight"], [id]), place: null };
  }

  /** k of (16): of each hypothesis the scores of the words of the text; null where nothing is copied. */
  copyScores(hidden, { contexts, N }, K) {
    if (!contexts || !this.change.copying) return Array(K).fill(null);
    const queries = linear(this.weights["copy_query.weight"], hidden, K), e = queries.length / K;
    return Array.from({ length: K }, (_, k) =>
      linear({ data: contexts, shape: [N, e] }, row(queries, e, k), 1));
  }

  /** (16), (17): P [Y + extra] of each output: one softmax over words and places. An output gets what copying gives to
   *  each place, `generate`, its words of the largest shares, and the largest scores. */
  distributions(outputs, features, document) {
    const K = outputs.length, scores = layer(this.weights, "vocabulary", features, K);
    return outputs.map((output, k) => {
      const own = Float64Array.from(row(scores, this.size, k)), { copyScores } = output, { source, N } = document;
      const copied = Float64Array.from(copyScores ?? new Float64Array(N).fill(-Infinity));
      output.scores = { g: maximum(own), k: maximum(copied) };
      const both = new Float64Array(own.length + N);
      both.set(own);
      both.set(copied, own.length);
      softmax(both);
      const generated = both.subarray(0, own.length), p = new Float64Array(own.length + document.extra);
      p.set(generated);
      output.copied = both.slice(own.length);
      output.generate = generated.reduce((a, b) => a + b, 0);
      source.forEach((id, i) => { p[id] += output.copied[i]; });
      if (this.shown) output.best = bestWords(generated, output.copied, p, source, this.shown);
      return p;
    });
  }
}
