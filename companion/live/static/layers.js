/* Layers of the models, forward only, as `lib.layers` has them.
 *
 * Arrays are flat and typed, row by row: W [n, m] has n rows of m numbers. A weight is {data, shape}. K rows stand for
 * K hypotheses of one step, so that a weight is read once for four of them.
 */

/** W x (+ b) of K rows: weight W [n, m], rows [K, m], bias [n]; the result is [K, n]. */
function linear({ data, shape: [n, m] }, rows, K, bias = null) {
  const made = new Float32Array(K * n);
  let first = 0;
  for (; first + 4 <= K; first += 4) {  // four rows at a time: each number of W is read once for them
    const [a, b, c, e] = [0, 1, 2, 3].map(k => Float64Array.from(row(rows, m, first + k)));
    for (let i = 0, at = 0; i < n; i++) {
      let p = 0, q = 0, r = 0, s = 0;
      for (let j = 0; j < m; j++, at++) { const w = data[at]; p += w * a[j]; q += w * b[j]; r += w * c[j]; s += w * e[j]; }
      made[first * n + i] = p; made[(first + 1) * n + i] = q; made[(first + 2) * n + i] = r; made[(first + 3) * n + i] = s;
    }
  }
  for (; first < K; first++) {
    const x = Float64Array.from(row(rows, m, first));
    for (let i = 0, at = 0; i < n; i++) {
      let p = 0;
      for (let j = 0; j < m; j++, at++) p += data[at] * x[j];
      made[first * n + i] = p;
    }
  }
  if (bias) for (let k = 0, at = 0; k < K; k++) for (let i = 0; i < n; i++, at++) made[at] += bias.data[i];
  return made;
}

/** W x + b of the layer `name`, of K rows. */
const layer = (weights, name, rows, K) => linear(weights[`${name}.weight`], rows, K, weights[`${name}.bias`]);

const sigmoid = x => 1 / (1 + Math.exp(-x));

/** tanh x, right to 2e-8, by x P(x²) / Q(x²): the function of `lib.layers.cpu_kernels`. */
function tanh(number) {
  const x = number < -9 ? -9 : number > 9 ? 9 : number, y = x * x;
  const above = (((1.3354700868838644e-8 * y + 2.060911321023788e-5) * y + 0.0034955900866167275) * y
    + 0.13381027304648785) * y + 0.9999999794465799;
  const below = (((7.77657518572533e-7 * y + 0.0003285637971079889) * y + 0.02587698970925746) * y
    + 0.46714342896527256) * y + 1;
  return x * above / below;
}

/** The sigmoid by that tanh: for gates, which may be 0 where the exact one is below 1e-8. */
const gate = x => 0.5 + 0.5 * tanh(0.5 * x);

/** Softmax of scores[from] to scores[to - 1], in their place. */
function softmax(scores, from = 0, to = scores.length) {
  let largest = -Infinity, total = 0;
  for (let i = from; i < to; i++) if (scores[i] > largest) largest = scores[i];
  for (let i = from; i < to; i++) total += scores[i] = Math.exp(scores[i] - largest);
  for (let i = from; i < to; i++) scores[i] /= total;
  return scores;
}

/** Row k of rows [K, width], not copied. */
const row = (rows, width, k) => rows.subarray(k * width, (k + 1) * width);

/** Embedded words [K, e] of K ids: those beyond the vocabulary, which only copies have, are read as [UNK]. */
function embed({ data, shape: [size, width] }, tokens) {
  return stacked(tokens.map(id => row(data, width, id < size ? id : UNK)));
}

const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

const mean = numbers => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const size = numbers => Math.sqrt(dot(numbers, numbers));
const meanSize = numbers => mean(numbers.map(Math.abs));
const maximum = numbers => numbers.reduce((a, b) => Math.max(a, b), -Infinity);

/** Arrays, one after the other: of K rows of one length [K, width]. */
function stacked(arrays) {
  const out = new Float32Array(arrays.reduce((n, array) => n + array.length, 0));
  let at = 0;
  for (const array of arrays) { out.set(array, at); at += array.length; }
  return out;
}

/** Two arrays [K, a] and [K, b] side by side: [K, a + b]. */
function beside(left, right, K) {
  const a = left.length / K, b = right.length / K, out = new Float32Array(K * (a + b));
  for (let k = 0; k < K; k++) {
    out.set(row(left, a, k), k * (a + b));
    out.set(row(right, b, k), k * (a + b) + a);
  }
  return out;
}

/** New states [K, d] of PyTorch's GRU. input: W_i x + b_i, [K, 3d]; before: W_h h + b_h, [K, 3d]; hidden: h [K, d].
 *  alpha: shares [K, d] of the update that are made (`lib.layers.recurrent.GatedGRU`), or all of it. */
function gruGates(input, before, hidden, K, alpha = null) {
  const d = hidden.length / K, out = new Float32Array(K * d);
  for (let k = 0; k < K; k++) {
    for (let i = 0, g = 3 * d * k, at = d * k; i < d; i++, g++, at++) {
      const r = gate(input[g] + before[g]), z = gate(input[g + d] + before[g + d]);
      const n = tanh(input[g + 2 * d] + r * before[g + 2 * d]);
      out[at] = hidden[at] + (alpha ? alpha[at] : 1) * (1 - z) * (n - hidden[at]);
    }
  }
  return out;
}

/** New states and cells [K, d] of PyTorch's LSTM. input: W_i x + b_i, before: W_h h + b_h, [K, 4d]; cell [K, d]. */
function lstmGates(input, before, cell, K) {
  const d = cell.length / K, hidden = new Float32Array(K * d), next = new Float32Array(K * d);
  for (let k = 0; k < K; k++) {
    for (let j = 0, g = 4 * d * k, at = d * k; j < d; j++, g++, at++) {
      const i = gate(input[g] + before[g]), f = gate(input[g + d] + before[g + d]);
      const c = tanh(input[g + 2 * d] + before[g + 2 * d]), o = gate(input[g + 3 * d] + before[g + 3 * d]);
      next[at] = f * cell[at] + i * c;
      hidden[at] = o * tanh(next[at]);
    }
  }
  return { hidden, cell: next };
}

/** The state {hidden, cell: [K, d]} after one more input of each of K rows, of which W_i x + b_i is given: of an LSTM if W_h
 *  has 4d rows, otherwise of a GRU, which has no cell. */
function nextState(of, input, { hidden, cell }, K, alpha = null) {
  const W = of("weight_hh"), [n, d] = W.shape;
  const before = linear(W, hidden, K, of("bias_hh"));
  return n === 4 * d ? lstmGates(input, before, cell, K) : { hidden: gruGates(input, before, hidden, K, alpha) };
}

/** One step of the GRU or LSTM `name`: inputs [K, e] and a state to a new one. end: of the names of its weights. */
function recurrentStep(weights, name, inputs, state, K, end = "_l0") {
  const of = part => weights[`${name}.${part}${end}`];
  return nextState(of, linear(of("weight_ih"), inputs, K, of("bias_ih")), state, K);
}

/** The GRU or LSTM `name` over n inputs [n, e] from zeros: states [n, d], the last one and its cell [d]. A stop after every
 *  32 inputs. back: from the last input to the first; alpha [n, d]: as in `gruGates`. */
function* recurrent(weights, name, inputs, n, { back = false, end = "_l0", alpha = null } = {}) {
  const of = part => weights[`${name}.${part}${end}`], d = of("weight_hh").shape[1], e = inputs.length / n;
  const states = new Float32Array(n * d);
  let last = { hidden: new Float32Array(d), cell: new Float32Array(d) };
  for (let from = 0; from < n; from += 32) {
    const count = Math.min(32, n - from), first = back ? n - from - count : from;
    const projected = linear(of("weight_ih"), inputs.subarray(first * e, (first + count) * e), count, of("bias_ih"));
    for (let t = 0; t < count; t++) {
      const i = back ? count - 1 - t : t;
      const input = row(projected, projected.length / count, i);
      last = nextState(of, input, last, 1, alpha && row(alpha, d, first + i));
      states.set(last.hidden, (first + i) * d);
    }
    yield;
  }
  return { states, last: last.hidden, cell: last.cell };
}

/** A GRU in both directions over n inputs [n, e]: states [n, d], and the last forward and first backward one [d]. */
function bidirectional(weights, name, inputs, n) {
  const forth = drained(recurrent(weights, name, inputs, n));
  const back = drained(recurrent(weights, name, inputs, n, { back: true, end: "_l0_reverse" }));
  return { states: beside(forth.states, back.states, n), last: beside(forth.last, back.last, 1) };
}

/** What a generator with stops makes, without the stops. */
function drained(generator) {
  for (;;) {
    const { value, done } = generator.next();
    if (done) return value;
  }
}

/** v tanh(k_i + q (+ w c_i)) of one query [A] and n keys [n, A]: [n]. w, c: of coverage (17). */
function additiveScores(query, keys, n, v, w = null, coverage = null) {
  const A = query.length, q = Float64Array.from(query), weight = Float64Array.from(v), out = new Float64Array(n);
  const slope = w ? Float64Array.from(w) : new Float64Array(A);
  for (let i = 0, k = 0; i < n; i++) {
    const c = coverage ? coverage[i] : 0;
    let score = 0;
    for (let j = 0; j < A; j++, k++) score += weight[j] * tanh(keys[k] + q[j] + slope[j] * c);
    out[i] = score;
  }
  return out;
}

/** Luong's attention (`lib.layers.attention.Attention`): a score of "concat", "general" or "dot". */
class Attention {
  constructor(weights, name, score) {
    this.score = score;
    this.query = weights[`${name}.query.weight`];
    this.key = weights[`${name}.key.weight`];
    this.v = weights[`${name}.v.weight`]?.data;
  }

  /** Projected keys [n, A] of keys [n, d]: made once. */
  keys(values, n) { return this.score === "dot" ? values : linear(this.key, values, n); }

  queries(rows, K) { return this.score === "concat" ? linear(this.query, rows, K) : rows; }

  /** Weights [n] of one projected query over n projected keys. */
  weights(query, keys, n) {
    if (this.score === "concat") return softmax(additiveScores(query, keys, n, this.v));
    return softmax(Float64Array.from({ length: n }, (_, i) => dot(query, row(keys, query.length, i))));
  }
}

/** Attention with coverage, (16) and (17) (`lib.layers.attention.CoverageAttention`). */
class CoverageAttention extends Attention {
  constructor(weights, name) {
    super(weights, name, "concat");
    this.v = weights[`${name}.v`].data;
    this.w = weights[`${name}.coverage`].data;
  }

  /** Weights [n] of one projected query; covered: whether coverage has its weight. */
  weights(query, keys, n, coverage, covered = true) {
    return softmax(additiveScores(query, keys, n, this.v, covered ? this.w : null, coverage));
  }
}

/** The sum of rows [n, d] by weights [n]: [d]. */
function weightedSum(weights, rows, d) {
  const out = new Float64Array(d);
  weights.forEach((weight, i) => {
    for (let j = 0, at = i * d; j < d; j++, at++) out[j] += weight * rows[at];
  });
  return Float32Array.from(out);
}

/** The generate-or-copy distribution, (13) to (15) (`lib.layers.pointer.PointerGenerator`). */
class PointerGenerator {
  constructor(weights, name) {
    Object.assign(this, { weights, name, size: weights[`${name}.vocabulary.weight`].shape[0] });
  }

  through(part, rows, K) { return layer(this.weights, `${this.name}.${part}`, rows, K); }

  /** Features [K, F] of P_g and the switch p [K], of states, contexts and embedded words [K, .]. */
  read(states, contexts, embedded, K) {
    const features = this.through("bottleneck", beside(states, contexts, K), K);
    const all = beside(beside(contexts, states, K), embedded, K);
    return { features, generate: Array.from(this.through("switch", all, K), sigmoid) };
  }

  /** P_g [K, V] of features [K, F]. */
  generated(features, K) {
    const p = this.through("vocabulary", features, K);
    for (let k = 0; k < K; k++) softmax(p, k * this.size, (k + 1) * this.size);
    return p;
  }

  /** P [V + extra] of each output {generate, gamma}, which gets its `shown` words of the largest P_g, P_c and P. */
  distributions(outputs, features, document, shown = 0) {
    const generated = this.generated(features, outputs.length);
    return outputs.map((output, k) => {
      const own = row(generated, this.size, k), { generate, gamma } = output;
      const p = mixed(own, generate, gamma, document.source, document.extra);
      if (shown) output.best = bestWords(own, gamma, p, document.source, shown);
      return p;
    });
  }
}

/** {generated, copied, mixed}: `shown` pairs [id, P] each, of P_g [V], of copies by their weights [N], and of P. */
function bestWords(generated, weights, p, source, shown) {
  const copied = new Map();
  source.forEach((id, i) => copied.set(id, (copied.get(id) ?? 0) + weights[i]));
  const copies = [...copied].sort((a, b) => b[1] - a[1]).slice(0, shown);
  const pairs = numbers => largest(numbers, shown).map(id => [id, numbers[id]]);
  return { generated: pairs(generated), copied: copies, mixed: pairs(p) };
}

/** P [V + extra], (14) and (15): P_g [V] by the switch, and the weights of copies [N] at the words `source` [N]. */
function mixed(generated, generate, copies, source, extra) {
  const p = new Float64Array(generated.length + extra);
  for (let i = 0; i < generated.length; i++) p[i] = generate * generated[i];
  for (let i = 0; i < source.length; i++) p[source[i]] += (1 - generate) * copies[i];
  return p;
}

/** Places of the k largest numbers above 0, the largest first; of equal ones the first. */
function largest(numbers, k) {
  const places = [];
  let least = 0;
  for (let i = 0; i < numbers.length; i++) {
    const x = numbers[i];
    if (!(x > least)) continue;
    let at = places.length;
    while (at > 0 && numbers[places[at - 1]] < x) at--;
    places.splice(at, 0, i);
    if (places.length > k) places.pop();
    if (places.length === k) least = numbers[places[k - 1]];
  }
  return places;
}

/** Numbers of 16 bits (IEEE binary16) as usual ones: an older browser has no `Float16Array`. */
const fromHalves = bytes => Float64Array.from(new Uint16Array(bytes), half => {
  const sign = half & 0x8000 ? -1 : 1, exponent = half >> 10 & 31, fraction = (half & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
});

/** Weights by name, {data, shape}, as `companion.live.page.packed` wrote them. */
async function unpacked({ shapes, bits, data }) {
  const zipped = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer(), weights = {};
  const all = bits === 16 ? fromHalves(bytes) : Float64Array.from(new Float32Array(bytes));
  let at = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const count = shape.reduce((a, b) => a * b, 1);
    weights[name] = { data: all.subarray(at, at += count), shape };
  }
  return weights;
}
