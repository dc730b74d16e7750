/* Mem2Mem as `lib.models.mem2mem` has it: encoder, memory, one step of the decoder for K hypotheses.
 *
 * N source words in L sentences, r slots, states of d numbers, a vocabulary of V words.
 */

/** Changes of a model, as `lib.evaluation.interventions` names them; `memory` is the M_E [r, d] of another text. */
const UNCHANGED = { written: true, covered: true, copying: true, erasedSlot: null, memory: null };

class Mem2Mem {
  /** config: of the run's model; weights: {name: {data, shape}}. shown: words of P_g, P_c and P that an output has. */
  constructor(config, weights, shown = 0) {
    Object.assign(this, { config, weights, shown, size: config.vocab_size, d: config.hidden, slots: config.slots });
    this.extracts = config.start === "encoder";
    this.readAttention = new Attention(weights, "read_attention", config.score);
    this.sentenceAttention = new Attention(weights, "sentence_attention", config.score);
    this.wordAttention = new CoverageAttention(weights, "word_attention");
    this.pointer = new PointerGenerator(weights, "pointer");
    this.change = UNCHANGED;
  }

  /** The same model with changes; what was encoded stays valid. */
  with(change) { return Object.assign(Object.create(this), { change: { ...UNCHANGED, ...change } }); }

  embedded(tokens) { return embed(this.weights["embedding.weight"], tokens); }

  /** What is made once of a text, with a stop after every sentence. sentences: extended ids; unknown: their words. */
  *encode({ sentences, unknown }) {
    const words = [], ends = [], L = sentences.length;
    for (const [j, ids] of sentences.entries()) {  // (1)
      const { states, last } = bidirectional(this.weights, "sentence_encoder", this.embedded(ids), ids.length);
      words.push(states);
      ends.push(last);
      yield j;
    }
    const { states, last } = bidirectional(this.weights, "document_encoder", stacked(ends), L);  // (2), (4)
    const sentenceOf = sentences.flatMap((ids, j) => ids.map(() => j)), N = sentenceOf.length, all = stacked(words);
    const heads = this.extracts ? this.writeAttention(states, L) : null;
    const memory = heads ? stacked(heads.map(weights => weightedSum(weights, states, this.d))) : null;
    return {
      sentences, unknown, source: sentences.flat(), sentenceOf, N, L, heads, words: all, extra: unknown.length,
      wordKeys: this.wordAttention.keys(all, N), sentenceKeys: this.sentenceAttention.keys(states, L),
      memory: memory ?? new Float32Array(this.slots * this.d),
      hidden: layer(this.weights, "bridge", last, 1),
    };
  }

  /** A (5): of each slot its weights [L] of the sentences, of their states [L, d]. */
  writeAttention(states, L) {
    const hidden = linear(this.weights["compress_hidden.weight"], states, L).map(tanh);
    const scores = linear(this.weights["compress_heads.weight"], hidden, L);  // [L, r]
    const of = slot => softmax(Float64Array.from({ length: L }, (_, j) => scores[j * this.slots + slot]));
    return Array.from({ length: this.slots }, (_, slot) => of(slot));
  }

  /** The state before the first word: hidden [d], coverage [N], memory M_D [r, d], the last read m [d] or null. */
  first(document) {
    const memory = (this.change.memory ?? document.memory).slice();
    if (this.change.erasedSlot !== null) row(memory, this.d, this.change.erasedSlot).fill(0);
    return { hidden: document.hidden, coverage: new Float32Array(document.N), memory, read: null };
  }

  /** Read K words: new states, outputs (what is seen before the next word) and features [K, F] of P_g. */
  advance(tokens, states, document) {
    const K = tokens.length, embedded = this.embedded(tokens);
    const before = stacked(states.map(s => s.hidden));
    const { hidden } = recurrentStep(this.weights, "decoder", embedded, { hidden: before }, K);
    const writes = this.write(states, hidden, K);
    const reads = this.read(hidden, writes, K);
    const query = linear(this.weights["read_output.weight"], beside(hidden, reads.rows, K), K);  // (7)
    const seen = this.attend(query, states, document, K);
    const { features, generate } = this.pointer.read(query, stacked(seen.map(s => s.context)), embedded, K);
    const outputs = seen.map(({ alpha, beta, gamma }, k) => ({
      alpha, beta, gamma, coverage: states[k].coverage, psi: reads.psi[k], ...writes[k].seen,
      norms: this.bySlot(writes[k].memory, size),
      generate: this.change.copying ? generate[k] : 1,
    }));
    const next = seen.map(({ coverage }, k) => ({
      hidden: row(hidden, this.d, k), coverage, memory: writes[k].memory,
      read: row(reads.rows, this.d, k),
    }));
    return { states: next, outputs, features };
  }

  /** (8) to (10): of each hypothesis its new memory, and to be `seen` of each slot the mean of its gates and of |u|; nothing is
   *  written before the first read. */
  write(states, hidden, K) {
    const { weights, d, slots } = this;
    if (!this.config.write || !this.change.written || !states[0].read)
      return states.map(({ memory }) => ({ memory, seen: { gates: null, updates: null } }));
    const shared = linear(weights["write_hidden.weight"], hidden, K, weights["write_hidden.bias"]);
    const read = linear(weights["write_read.weight"], stacked(states.map(s => s.read)), K);
    const own = linear(weights["write_memory.weight"], stacked(states.map(s => s.memory)), K * slots);
    return states.map((state, k) => {
      const [memory, gates, updates] = Array.from({ length: 3 }, () => new Float32Array(slots * d));
      for (let slot = 0, at = 0; slot < slots; slot++) {
        for (let i = 0, g = 2 * d * (k * slots + slot), c = 2 * d * k; i < d; i++, g++, c++, at++) {
          const z = gates[at] = gate(own[g] + shared[c] + read[c]);
          const u = tanh(own[g + d] + shared[c + d] + read[c + d]);
          memory[at] = z * state.memory[at] + (1 - z) * u;
          updates[at] = Math.abs(u);
        }
      }
      return { memory, seen: { gates: this.bySlot(gates, mean), updates: this.bySlot(updates, mean) } };
    });
  }

  /** A number of each slot: its mean or its size. */
  bySlot(values, of) { return Array.from({ length: this.slots }, (_, slot) => of(row(values, this.d, slot))); }

  /** (7): weights psi of the slots, r numbers for each hypothesis, and what is read [K, d]. */
  read(hidden, writes, K) {
    const { d, slots, readAttention } = this, queries = readAttention.queries(hidden, K), A = queries.length / K;
    const keys = readAttention.keys(stacked(writes.map(w => w.memory)), K * slots);
    const psi = writes.map((_, k) => readAttention.weights(row(queries, A, k), row(keys, slots * A, k), slots));
    return { psi, rows: stacked(psi.map((weights, k) => weightedSum(weights, writes[k].memory, d))) };
  }

  /** (16), (17) and (3): of each hypothesis alpha, gamma [N], beta [L], the context [d] and the next coverage [N]. */
  attend(query, states, document, K) {
    const { d, change } = this, { N, L, sentenceOf } = document;
    const byWord = this.wordAttention.queries(query, K), bySentence = this.sentenceAttention.queries(query, K);
    return states.map((state, k) => {
      const own = row(byWord, byWord.length / K, k);
      const alpha = this.wordAttention.weights(own, document.wordKeys, N, state.coverage, change.covered);
      const beta = this.sentenceAttention.weights(
        row(bySentence, bySentence.length / K, k), document.sentenceKeys, L);
      const gamma = alpha.map((weight, i) => weight * beta[sentenceOf[i]]);
      const total = Math.max(gamma.reduce((sum, x) => sum + x, 0), 1.1754943508222875e-38);
      for (let i = 0; i < N; i++) gamma[i] /= total;
      const coverage = state.coverage.map((c, i) => c + alpha[i]);
      return { alpha, beta, gamma, coverage, context: weightedSum(gamma, document.words, d) };
    });
  }

  /** (13) to (15): P [V + extra] of each output. */
  distributions(outputs, features, document) {
    return this.pointer.distributions(outputs, features, document, this.shown);
  }
}
