/* The pointer-generator of `lib.models.seq2seq`, or the model without copying: it writes, and it learns.
 *
 * A value {data, grad} has numbers, row by row, and the derivatives of the loss L by them. A function makes a value y of
 * values x, and leaves on the tape a function that adds dL/dx = dL/dy dy/dx to x.grad. The tape played backwards gives
 * all gradients. A text has N words, a state d numbers, a projected key A; K rows are computed at once. */

const tape = [];

function value(data, backward) {
  const grad = new Float64Array(data.length);
  if (backward) tape.push(() => backward(grad));
  return { data, grad };
}

/** Some of the numbers of a value, not copied. */
const part = ({ data, grad }, from, to) => ({ data: data.subarray(from, to), grad: grad.subarray(from, to) });
const rowOf = (x, k, width) => part(x, k * width, (k + 1) * width);
const addTo = (sum, numbers) => { for (let i = 0; i < numbers.length; i++) sum[i] += numbers[i]; };

/** y = W x + b of K rows x [K, m]: dx = Wᵀ dy, dW = dy xᵀ, db = dy. */
function affine({ data: W, grad: dW }, { data: x, grad: dx }, K, b = null) {
  const m = x.length / K, n = W.length / m, y = new Float64Array(K * n);
  for (let k = 0; k < K; k++) for (let i = 0, w = 0; i < n; i++) {
    let sum = b ? b.data[i] : 0;
    for (let at = k * m, end = at + m; at < end; at++, w++) sum += W[w] * x[at];
    y[k * n + i] = sum;
  }
  return value(y, dy => {
    for (let k = 0; k < K; k++) for (let i = 0, w = 0; i < n; i++) {
      const g = dy[k * n + i];
      if (b) b.grad[i] += g;
      for (let at = k * m, end = at + m; at < end; at++, w++) { dx[at] += g * W[w]; dW[w] += g * x[at]; }
    }
  });
}

/** Values one after the other. */
function joined(...parts) {
  const all = new Float64Array(parts.reduce((n, { data }) => n + data.length, 0));
  const each = act => { let at = 0; for (const x of parts) act(x, at, at += x.data.length); };
  each((x, from) => all.set(x.data, from));
  return value(all, d => each((x, from, to) => addTo(x.grad, d.subarray(from, to))));
}

/** A step of a GRU from x = W_i x_t + b_i, u = W_h h + b_h [3d] and h [d] to h', which fills the value `made`:
 *  r = σ(x_r + u_r), z = σ(x_z + u_z), n = tanh(x_n + r u_n), h' = (1 − z) n + z h. */
function gruCell(x, u, h, made) {
  const d = h.data.length, [r, z, n] = [0, 1, 2].map(() => new Float64Array(d));
  for (let i = 0; i < d; i++) {
    r[i] = sigmoid(x.data[i] + u.data[i]); z[i] = sigmoid(x.data[d + i] + u.data[d + i]);
    n[i] = Math.tanh(x.data[2 * d + i] + r[i] * u.data[2 * d + i]);
    made.data[i] = (1 - z[i]) * n[i] + z[i] * h.data[i];
  }
  tape.push(() => {
    for (let i = 0; i < d; i++) {  // σ' = σ (1 − σ), tanh' = 1 − tanh²
      const g = made.grad[i], dn = g * (1 - z[i]) * (1 - n[i] ** 2), dz = g * (h.data[i] - n[i]) * z[i] * (1 - z[i]);
      const dr = dn * u.data[2 * d + i] * r[i] * (1 - r[i]);
      x.grad[i] += dr; x.grad[d + i] += dz; x.grad[2 * d + i] += dn;
      u.grad[i] += dr; u.grad[d + i] += dz; u.grad[2 * d + i] += dn * r[i]; h.grad[i] += g * z[i];
    }
  });
  return made;
}

/** Attention α [N] and context c [d] of a query [A], keys k [N, A] and states h [N, d]; w: only of a model with coverage.
 *  e_i = vᵀ tanh(k_i + q + w cov_i), α = softmax(e), c = Σ_i α_i h_i. */
function attend({ data: q, grad: dq }, { data: k, grad: dk }, { data: h, grad: dh }, { data: v, grad: dv }, w, cov) {
  const A = q.length, N = k.length / A, d = h.length / N, t = new Float64Array(N * A), alpha = value(new Float64Array(N));
  for (let i = 0, at = 0; i < N; i++) for (let j = 0; j < A; j++, at++) {
    t[at] = Math.tanh(k[at] + q[j] + (w ? w.data[j] * cov.data[i] : 0));
    alpha.data[i] += v[j] * t[at];
  }
  const weights = softmax(alpha.data), dalpha = alpha.grad;
  return [alpha, value(Float64Array.from(weightedSum(weights, h, d)), dc => {
    for (let i = 0, at = 0; i < N; i++) for (let j = 0; j < d; j++, at++) { dalpha[i] += h[at] * dc[j]; dh[at] += weights[i] * dc[j]; }
    const mean = dot(weights, dalpha);  // de_i = α_i (dα_i − Σ_k α_k dα_k)
    for (let i = 0, at = 0; i < N; i++) for (let j = 0, de = weights[i] * (dalpha[i] - mean); j < A; j++, at++) {
      const g = de * v[j] * (1 - t[at] ** 2);
      dv[j] += de * t[at]; dq[j] += g; dk[at] += g;
      if (w) { w.grad[j] += g * cov.data[i]; cov.grad[i] += g * w.data[j]; }
    }
  })];
}

/** −weight log P(w), P(w) = p P_g(w) + (1 − p) P_c(w), where P_g = softmax(scores), p = σ(q), P_c(w) = Σ_{i: x_i = w} α_i. */
function wordLoss({ scores, q, alpha, P_g, own: p }, source, w, weight) {
  if (!q && w >= P_g.length) w = UNK;  // without copying an unknown word is [UNK]
  const P_c = source.reduce((sum, id, i) => sum + (id === w ? alpha.data[i] : 0), 0), own = P_g[w] ?? 0;
  const P = Math.max(p * own + (1 - p) * P_c, 1e-30), g = -weight / P;  // dL/dP
  tape.push(() => {
    for (let k = 0; k < P_g.length; k++) scores.grad[k] += g * p * own * ((k === w) - P_g[k]);
    if (!q) return;
    q.grad[0] += g * p * (1 - p) * (own - P_c);
    source.forEach((id, i) => { if (id === w) alpha.grad[i] += g * (1 - p); });
  });
  return -weight * Math.log(P);
}

class Seq2Seq {
  /** weights: {name: {data, shape}}; a model without copying has none of a switch. shown: words of each P of an output. */
  constructor({ hidden }, weights, shown = 0) {
    Object.assign(this, { shown, d: hidden, moved: new Map(), updates: 0, weights: {} });
    for (const [name, { data }] of Object.entries(weights)) this.weights[name] = value(Float64Array.from(data));
    this.moments = Object.values(this.weights).map(({ data }) => [data, data].map(({ length }) => new Float64Array(length)));
    this.size = this.weights["pointer.vocabulary.bias"].data.length;
  }

  /** The same model with its switch moved by hand: moved has its value at some steps, counted from 0. */
  with(moved) { return Object.assign(Object.create(this), { moved }); }

  layer(name, x, K = 1, end = "") { return affine(this.weights[`${name}weight${end}`], x, K, this.weights[`${name}bias${end}`]); }

  /** Rows of the table of words; of ids beyond the vocabulary that of [UNK]. */
  embed(ids) {
    const E = this.weights["embedding.weight"];
    return joined(...ids.map(id => rowOf(E, id < this.size ? id : UNK, E.data.length / this.size)));
  }

  /** h_1 … h_N = BiGRU(x_1 … x_N), and the decoder starts from a linear layer of both last states. */
  *encode({ sentences, unknown }) {
    const { d } = this, source = sentences.flat(), N = source.length, half = d / 2;
    const x = this.embed(source), states = value(new Float64Array(N * d));
    const last = ["", "_reverse"].map((side, back) => {
      const inputs = this.layer("encoder.", x, N, `_ih_l0${side}`);
      let h = value(new Float64Array(half));
      for (let t = 0; t < N; t++) {
        const i = back ? N - 1 - t : t, place = i * d + back * half;
        h = gruCell(rowOf(inputs, i, 3 * half), this.layer("encoder.", h, 1, `_hh_l0${side}`), h, part(states, place, place + half));
      }
      return h;
    });
    const keys = this.layer("word_attention.key.", states, N), hidden = this.layer("bridge.", joined(...last));
    return { source, unknown, extra: unknown.length, N, states, keys, hidden };
  }

  /** The state before the first word: hidden [d], coverage [N], and the number of its step. */
  first({ hidden, N }) { return { hidden, coverage: value(new Float64Array(N)), step: 0 }; }

  /** Read a word; what P of the next one is made of, and the next state. */
  step(word, { hidden, coverage, step }, { states, keys }) {
    const { d, weights: W } = this, x = this.embed([word]);
    const h = gruCell(this.layer("decoder.", x, 1, "_ih_l0"), this.layer("decoder.", hidden, 1, "_hh_l0"), hidden, value(new Float64Array(d)));
    const v = W["word_attention.v"] ?? W["word_attention.v.weight"], query = this.layer("word_attention.query.", h);
    const [alpha, c] = attend(query, keys, states, v, W["word_attention.coverage"], coverage);
    const covered = value(coverage.data.map((sum, i) => sum + alpha.data[i]), g => { addTo(coverage.grad, g); addTo(alpha.grad, g); });
    const scores = this.layer("pointer.vocabulary.", this.layer("pointer.bottleneck.", joined(h, c)));
    const q = W["pointer.switch.weight"] && this.layer("pointer.switch.", joined(c, h, x)), own = q ? sigmoid(q.data[0]) : 1;
    const next = { hidden: h, coverage: covered, step: step + 1 };
    return { scores, q, alpha, next, own, gamma: alpha.data, P_g: softmax(scores.data.slice()), generate: this.moved.get(step) ?? own };
  }

  /** Read K words: new states, and outputs, which have the attention `gamma`, the model's `own` switch and the one in use. */
  advance(tokens, states, document) {
    const outputs = tokens.map((word, k) => this.step(word, states[k], document));
    tape.length = 0;
    return { outputs, states: outputs.map(({ next }) => next), features: [] };
  }

  distributions(outputs, _, { source, extra }) {
    return outputs.map(output => {
      const { P_g, generate, gamma } = output, p = mixed(P_g, generate, gamma, source, extra);
      if (this.shown) output.best = bestWords(P_g, gamma, p, source, this.shown);
      return p;
    });
  }

  /** The mean of −log P of the words of a target, times `share`; its gradients are added to those of the weights. */
  learn(text, target, share) {
    const document = drained(this.encode(text));
    let loss = 0, state = this.first(document);
    target.forEach((w, t) => {
      const made = this.step(t ? target[t - 1] : BOS, state, document);
      loss += wordLoss(made, document.source, w, share / target.length);
      state = made.next;
    });
    while (tape.length) tape.pop()();
    return loss;
  }

  /** A step of Adam with gradients g of a norm of at most 2: m and s are means of g and g², corrected for their start. */
  update(rate) {
    const all = Object.values(this.weights), norm = Math.sqrt(all.reduce((sum, { grad }) => sum + dot(grad, grad), 0));
    const clip = Math.min(1, 2 / (norm + 1e-6)), t = ++this.updates;
    all.forEach(({ data, grad }, k) => {
      const [m, s] = this.moments[k];
      for (let i = 0; i < data.length; i++) {
        const g = clip * grad[i];
        m[i] += 0.1 * (g - m[i]); s[i] += 0.001 * (g * g - s[i]);
        data[i] -= rate * m[i] / (1 - 0.9 ** t) / (Math.sqrt(s[i] / (1 - 0.999 ** t)) + 1e-8);
      }
      grad.fill(0);
    });
  }
}
