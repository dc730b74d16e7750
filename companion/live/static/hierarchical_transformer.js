/* The hierarchical transformer as `lib.models.hierarchical_transformer` has it, in the form "code": local layers inside
 * paragraphs, global layers between them, one step of the decoder for K hypotheses.
 *
 * N pieces in P paragraphs, of which the first is the title; states of d numbers, heads of s; a vocabulary of V pieces.
 */

/** Changes of a model, as `lib.evaluation.interventions` names them. cuts: of each global layer "" , "itself" (each
 *  paragraph attends to itself alone) or "first" (none attends to the first but itself); positions: whether paragraphs
 *  have numbers of their own, and not all 1; seen [P] or null: the paragraphs that the decoder may attend to. */
const UNCHANGED = { cuts: [], positions: true, seen: null };

const OPEN = { "": () => true, itself: (i, j) => i === j, first: (i, j) => j > 0 || i === 0 };

class HierarchicalTransformer {
  /** config: of the library's model; weights: {name: {data, shape}}. shown: words of P that an output has. */
  constructor(config, weights, shown = 0) {
    Object.assign(this, { config, weights, shown, size: config.vocab_size, d: config.width, heads: config.heads });
    this.decoder = Array.from({ length: config.decoder_layers }, (_, i) =>
      new DecoderLayer(weights, `decoder_layers.${i}`, config.heads));
    this.change = UNCHANGED;
  }

  /** The same model with changes. All but `seen` change the encoder, too: what was encoded is not valid. */
  with(change) { return Object.assign(Object.create(this), { change: { ...UNCHANGED, ...change } }); }

  /** √d E x of a piece: [d]; the source's unknown words are [UNK]. */
  embedded(id) {
    return row(this.weights["embedding.weight"].data, this.d, id < this.size ? id : UNK).map(x => x * Math.sqrt(this.d));
  }

  /** (7) to (9): piece j of paragraph i, [d]. */
  position(i, j) {
    if (!this.config.paragraph_positions) return sinusoids(j, this.d);
    return stacked([sinusoids(j, this.d / 2), sinusoids(this.change.positions ? i : 1, this.d / 2)]);
  }

  /** What is made once of a text, with a stop after every layer. sentences: ids of each paragraph; unknown: their words
   *  that the vocabulary does not have. `inputs`, `local` and `global` have what the layers made. */
  *encode({ sentences, unknown }) {
    const { weights, config, heads, d } = this, lengths = sentences.map(ids => ids.length), local = [], global = [];
    const paragraphOf = lengths.flatMap((n, i) => Array(n).fill(i));
    const inputs = sentences.map((ids, i) => stacked(ids.map((id, j) => sum(this.embedded(id), this.position(i, j)))));
    let x = inputs;
    for (let l = 0; l < config.local_layers; l++) {  // (11), (12)
      local.push(x.map(words => transformerLayer(weights, `local_layers.${l}`, heads, words)));
      x = local[l].map(made => made.x);
      yield l;
    }
    for (let l = 0; l < config.global_layers; l++) {
      global.push(this.globalLayer(l, x, lengths));
      x = global[l].x;
      yield l;
    }
    const words = layerNorm(weights, "encoder_norm", stacked(x));
    const source = this.decoder.map(layer => layer.source.keysAndValues(words));
    return { sentences, unknown, paragraphOf, N: paragraphOf.length, P: lengths.length, inputs, local, global, words, source };
  }

  /** (13) to (23): paragraphs [n_i, d] to the same, and what is made on the way. */
  globalLayer(l, paragraphs, lengths) {
    const { weights, d } = this, name = `global_layers.${l}`, P = lengths.length, open = OPEN[this.change.cuts[l] ?? ""];
    const pooled = paragraphs.map((x, i) => this.pool(name, x, lengths[i]));
    const norm = layerNorm(weights, `${name}.pool_norm`, stacked(pooled.map(p => p.sums)));  // (16): [P, d]
    const heads = d / weights[`${name}.pool_norm.weight`].shape[0];
    const [queries, keys, values] = [0, 1, 2].map(i => layer(weights, `${name}.between.${i}`, norm, P * heads));  // (17)-(19)
    const { rows: contexts, weights: between } = attend(queries, keys, values, heads, d, open);  // (20)
    const c = layer(weights, `${name}.output`, contexts, P);  // (21)
    const read = paragraphs.map((x, i) => x.map((value, at) => value + c[i * d + at % d]));
    const after = read.map((x, i) => {  // (22)
      const normed = layerNorm(weights, `${name}.norms.1`, x);
      return feedForward(weights, `${name}.feed_forward`, normed, lengths[i]);
    });
    const x = read.map((words, i) => sum(words, after[i]));  // (23)
    return { paragraphs, pooled, heads, norm, queries, keys, values, between, contexts, c, after, x };
  }

  /** (13) to (16) of one paragraph: scores and pooling weights [n, heads], values [n, d], and their sums [d] by head. */
  pool(name, x, n) {
    const { weights, d } = this, normed = layerNorm(weights, `${name}.norms.0`, x);
    const scores = layer(weights, `${name}.score`, normed, n), values = layer(weights, `${name}.value`, normed, n);
    const heads = scores.length / n, s = d / heads, shares = new Float64Array(scores.length), sums = new Float32Array(d);
    for (let z = 0; z < heads; z++) {
      const column = softmax(Float64Array.from({ length: n }, (_, j) => scores[j * heads + z]));  // (15)
      for (let j = 0; j < n; j++) {
        shares[j * heads + z] = column[j];
        for (let k = z * s; k < (z + 1) * s; k++) sums[k] += column[j] * values[j * d + k];
      }
    }
    return { scores, values, weights: shares, sums };
  }

  /** The state before the first piece: of each layer the keys and values of what is written, and how much that is. */
  first() {
    const nothing = () => ({ keys: new Float32Array(0), values: new Float32Array(0) });
    return { pasts: this.decoder.map(nothing), position: 0 };
  }

  /** Read K pieces: new states, outputs and features [K, d] of P. An output has the attention to `words` [N] (the mean
   *  over the heads of the last layer) and its sums over `paragraphs` [P]. */
  advance(tokens, states, document) {
    const { d, heads, change: { seen } } = this, K = tokens.length, next = states.map(() => []);
    const seenPieces = seen && document.paragraphOf.map(i => seen[i]);
    let x = stacked(tokens.map((id, k) => sum(this.embedded(id), sinusoids(states[k].position, d)))), weights;
    this.decoder.forEach((layer, l) => {
      const made = layer.step(x, states.map(state => state.pasts[l]), document.source[l], seenPieces);
      made.pasts.forEach((past, k) => next[k].push(past));
      ({ x, weights } = made);
    });
    const outputs = states.map((_, k) => {
      const words = new Float64Array(document.N), paragraphs = new Float64Array(document.P);
      for (let z = 0; z < heads; z++) row(weights, document.N, z * K + k).forEach((w, j) => { words[j] += w / heads; });
      words.forEach((w, j) => { paragraphs[document.paragraphOf[j]] += w; });
      return { words, paragraphs };
    });
    const following = states.map(({ position }, k) => ({ pasts: next[k], position: position + 1 }));
    return { states: following, outputs, features: layerNorm(this.weights, "decoder_norm", x) };
  }

  /** P [V] of each output, which gets its words of the largest. */
  distributions(outputs, features) {
    const K = outputs.length, scores = linear(this.weights["embedding.weight"], features, K, this.weights.bias);
    return outputs.map((output, k) => {
      const p = softmax(Float64Array.from(row(scores, this.size, k)));
      if (this.shown) output.best = { mixed: largest(p, this.shown).map(id => [id, p[id]]) };
      return p;
    });
  }
}
