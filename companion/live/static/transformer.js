/* Parts of transformers, forward only, as `lib.layers.transformer` has them with `pre_norm`: layer normalisation comes
 * before each part, and what a part gives is added to what it read.
 *
 * Arrays are flat, row by row: x [n, d] are n words of d numbers. A head has s = d / heads of them.
 */

const EPSILON = 1e-6;  // of layer normalisation, as in the authors' code

/** The sine and cosine of p / 10000^(2i / width) beside each other: [width]. */
function sinusoids(position, width) {
  const out = new Float32Array(width);
  for (let i = 0; i < width; i += 2) {
    const angle = position / 10000 ** (i / width);
    out[i] = Math.sin(angle);
    out[i + 1] = Math.cos(angle);
  }
  return out;
}

const sum = (a, b) => a.map((x, i) => x + b[i]);

/** Layer normalisation of each row of x: as many rows as x has. */
function layerNorm(weights, name, x) {
  const scale = weights[`${name}.weight`].data, shift = weights[`${name}.bias`].data, d = scale.length;
  const out = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += d) {
    let mean = 0, variance = 0;
    for (let i = 0; i < d; i++) mean += x[at + i] / d;
    for (let i = 0; i < d; i++) variance += (x[at + i] - mean) ** 2 / d;
    const size = Math.sqrt(variance + EPSILON);
    for (let i = 0; i < d; i++) out[at + i] = (x[at + i] - mean) / size * scale[i] + shift[i];
  }
  return out;
}

/** W_2 relu(W_1 x) of rows [n, d]. */
function feedForward(weights, name, x, n) {
  return layer(weights, `${name}.outer`, layer(weights, `${name}.inner`, x, n).map(y => Math.max(0, y)), n);
}

/** Scaled dot-product attention, head by head: queries [m, d] over keys and values [n, d]; sees(i, j): whether query i
 *  may see key j, and it sees one at least. Returns rows [m, d] and weights [heads, m, n]. */
function attend(queries, keys, values, heads, d, sees = () => true) {
  const m = queries.length / d, n = keys.length / d, s = d / heads;
  const rows = new Float32Array(m * d), weights = new Float64Array(heads * m * n);
  for (let z = 0, at = 0; z < heads; z++) {
    for (let i = 0; i < m; i++, at += n) {
      for (let j = 0; j < n; j++) {
        let score = 0;
        for (let k = z * s; k < (z + 1) * s; k++) score += queries[i * d + k] * keys[j * d + k];
        weights[at + j] = sees(i, j) ? score / Math.sqrt(s) : -Infinity;
      }
      softmax(weights, at, at + n);
      for (let k = z * s; k < (z + 1) * s; k++) {
        let context = 0;
        for (let j = 0; j < n; j++) context += weights[at + j] * values[j * d + k];
        rows[i * d + k] = context;
      }
    }
  }
  return { rows, weights };
}

/** Attention of the layer `name` in several heads (`lib.layers.transformer.MultiHeadAttention`). */
class MultiHeadAttention {
  constructor(weights, name, heads) {
    Object.assign(this, { weights, name, heads, d: weights[`${name}.query.weight`].shape[0] });
  }

  /** Keys and values [n, d] of words [n, d]: made once. */
  keysAndValues(x) {
    const n = x.length / this.d, of = part => layer(this.weights, `${this.name}.${part}`, x, n);
    return { keys: of("key"), values: of("value") };
  }

  /** Rows [m, d] of x [m, d], and the weights [heads, m, n] of the keys. */
  read(x, { keys, values }, sees) {
    const { weights, name, heads, d } = this, m = x.length / d;
    const found = attend(layer(weights, `${name}.query`, x, m), keys, values, heads, d, sees);
    return { rows: layer(weights, `${name}.output`, found.rows, m), weights: found.weights };
  }
}

/** A layer over the words of one row (`TransformerLayer`), (11) and (12) in the code's form: x [n, d] to
 *  {attention [heads, n, n], h, x: [n, d] each}. */
function transformerLayer(weights, name, heads, x) {
  const attention = new MultiHeadAttention(weights, `${name}.attention`, heads), n = x.length / attention.d;
  const normed = layerNorm(weights, `${name}.attention_norm`, x);
  const found = attention.read(normed, attention.keysAndValues(normed));
  const h = sum(x, found.rows);
  const after = feedForward(weights, `${name}.feed_forward`, layerNorm(weights, `${name}.feed_forward_norm`, h), n);
  return { attention: found.weights, h, x: sum(h, after) };
}

/** A layer of the decoder (`DecoderLayer`): attention to the words written, to the source, and feed-forward. */
class DecoderLayer {
  constructor(weights, name, heads) {
    Object.assign(this, { weights, name });
    this.own = new MultiHeadAttention(weights, `${name}.self_attention`, heads);
    this.source = new MultiHeadAttention(weights, `${name}.source_attention`, heads);
  }

  /** One word of each of K hypotheses: x [K, d]; pasts: of each the keys and values of the words before; source: keys
   *  and values [N, d]; seen [N] or null: which of them may be seen. Returns x [K, d], pasts with this word, and the
   *  weights of the source [heads, K, N]. */
  step(x, pasts, source, seen) {
    const { weights, name, own: { d } } = this, K = pasts.length;
    const normed = layerNorm(weights, `${name}.norms.0`, x), made = this.own.keysAndValues(normed);
    const following = pasts.map(({ keys, values }, k) =>
      ({ keys: stacked([keys, row(made.keys, d, k)]), values: stacked([values, row(made.values, d, k)]) }));
    x = sum(x, stacked(following.map((past, k) => this.own.read(row(normed, d, k), past).rows)));
    const found = this.source.read(layerNorm(weights, `${name}.norms.1`, x), source, (_, j) => !seen || seen[j]);
    x = sum(x, found.rows);
    x = sum(x, feedForward(weights, `${name}.feed_forward`, layerNorm(weights, `${name}.norms.2`, x), K));
    return { x, pasts: following, weights: found.weights };
  }
}
