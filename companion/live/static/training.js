/* Training as `lib.models.seq2seq` and `companion.tasks.stories` do it: stories, forward and backward pass, loss, Adam.
 *
 * A value {data, grad} has numbers, row by row, and the derivatives of the loss L by each of them. A function makes a value
 * y from values x, and leaves a function on the tape that adds dL/dx = dL/dy dy/dx. Played backwards, the tape gives all
 * gradients. One text at a time: N words of the text, d numbers of a state, T words of the summary, K rows.
 */

const tape = [];

function value(data, backward) {
  const made = { data, grad: new Float64Array(data.length) };
  if (backward) tape.push(() => backward(made.grad));
  return made;
}

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
  let at = 0;
  const places = parts.map(({ data }) => (at += data.length) - data.length);
  const all = new Float64Array(at);
  parts.forEach(({ data }, i) => all.set(data, places[i]));
  return value(all, dy => parts.forEach(({ data, grad }, i) => addTo(grad, dy.subarray(places[i], places[i] + data.length))));
}

/** Rows of the table E at ids, of which [PAD] = 0 learns nothing; an id beyond the vocabulary is read as [UNK]. */
function embedded(E, ids, width) {
  const rows = ids.map(id => rowOf(E, (id + 1) * width <= E.data.length ? id : UNK, width));
  return joined(...rows.map((row, i) => ids[i] ? row : { data: row.data, grad: new Float64Array(width) }));
}

/** A step of a GRU, from x = W_i x + b_i [3d], u = W_h h + b_h [3d] and h [d], into the place of the new state h':
 *  r = σ(x_r + u_r), z = σ(x_z + u_z), n = tanh(x_n + r u_n), h' = (1 − z) n + z h. */
function gruCell(x, u, h, made) {
  const d = h.data.length, [r, z, n] = [0, 1, 2].map(() => new Float64Array(d));
  for (let i = 0; i < d; i++) {
    r[i] = sigmoid(x.data[i] + u.data[i]);
    z[i] = sigmoid(x.data[d + i] + u.data[d + i]);
    n[i] = Math.tanh(x.data[2 * d + i] + r[i] * u.data[2 * d + i]);
    made.data[i] = (1 - z[i]) * n[i] + z[i] * h.data[i];
  }
  tape.push(() => {
    for (let i = 0; i < d; i++) {  // σ' = σ (1 − σ), tanh' = 1 − tanh²
      const g = made.grad[i], dn = g * (1 - z[i]) * (1 - n[i] ** 2);
      const dr = dn * u.data[2 * d + i] * r[i] * (1 - r[i]), dz = g * (h.data[i] - n[i]) * z[i] * (1 - z[i]);
      x.grad[i] += dr; x.grad[d + i] += dz; x.grad[2 * d + i] += dn;
      u.grad[i] += dr; u.grad[d + i] += dz; u.grad[2 * d + i] += dn * r[i];
      h.grad[i] += g * z[i];
    }
  });
  return made;
}

/** Attention: e_i = vᵀ tanh(k_i + q + w cov_i) and α = softmax(e), of keys [N, A] and a query [A]; w: only with coverage. */
function attention({ data: q, grad: dq }, { data: k, grad: dk }, { data: v, grad: dv }, w, cov) {
  const A = q.length, N = k.length / A, t = new Float64Array(N * A), alpha = new Float64Array(N);
  for (let i = 0, at = 0; i < N; i++) for (let j = 0, c = w ? cov.data[i] : 0; j < A; j++, at++) {
    t[at] = Math.tanh(k[at] + q[j] + (w ? w.data[j] * c : 0));
    alpha[i] += v[j] * t[at];
  }
  return value(softmax(alpha), d => {
    const mean = dot(alpha, d);  // de_i = α_i (dα_i − Σ_k α_k dα_k)
    for (let i = 0, at = 0; i < N; i++) for (let j = 0, de = alpha[i] * (d[i] - mean); j < A; j++, at++) {
      const g = de * v[j] * (1 - t[at] ** 2);
      dv[j] += de * t[at]; dq[j] += g; dk[at] += g;
      if (w) { w.grad[j] += g * cov.data[i]; cov.grad[i] += g * w.data[j]; }
    }
  });
}

/** The context c = Σ_i α_i h_i of states [N, d]. */
function contextOf(alpha, states, d) {
  return value(Float64Array.from(weightedSum(alpha.data, states.data, d)), dc => alpha.data.forEach((weight, i) => {
    const { data, grad } = rowOf(states, i, d);
    alpha.grad[i] += dot(data, dc);
    for (let j = 0; j < d; j++) grad[j] += weight * dc[j];
  }));
}

/** −log P(w) of a word, times its weight in the loss: P(w) = p P_g(w) + (1 − p) P_c(w), P_c(w) = Σ_{i: x_i = w} α_i.
 *  Leaves the gradients of the scores of P_g = softmax(scores), of the switch's score q, p = σ(q), and of α on the tape. */
function wordLoss({ scores, q, alpha, P_g, p }, source, w, weight) {
  if (!q && w >= P_g.length) w = UNK;  // without copying an unknown word is [UNK]
  let P_c = 0;
  source.forEach((id, i) => { if (id === w) P_c += alpha.data[i]; });
  const own = P_g[w] ?? 0, P = Math.max(p * own + (q ? (1 - p) * P_c : 0), 1e-30), g = -weight / P;  // dL/dP
  tape.push(() => {
    for (let k = 0; k < P_g.length; k++) scores.grad[k] += g * p * own * ((k === w) - P_g[k]);
    if (!q) return;
    q.grad[0] += g * p * (1 - p) * (own - P_c);
    source.forEach((id, i) => { if (id === w) alpha.grad[i] += g * (1 - p); });
  });
  return -weight * Math.log(P);
}

// ------------------------------------------------------------------------------------------------------- the model

/** A pointer-generator, or a model without copying where `shapes` has no switch; random weights as PyTorch begins with. */
class Learner {
  constructor(shapes, random) {
    this.weights = {};
    for (const [name, shape] of Object.entries(shapes)) {
      const fan = /_l0/.test(name) ? shape[0] / 3 : (shapes[name.replace("bias", "weight")].at(-1));  // d of a GRU, inputs of a layer
      const draw = name === "embedding.weight" ? () => normal(random) : () => (2 * random() - 1) / Math.sqrt(fan);
      this.weights[name] = value(Float64Array.from({ length: shape.reduce((a, b) => a * b) }, draw));
    }
    [this.size, this.width] = shapes["embedding.weight"];
    this.d = shapes["bridge.weight"][0];
    this.weights["embedding.weight"].data.fill(0, 0, this.width);  // [PAD]
    this.adam = Object.values(this.weights).map(({ data }) => [new Float64Array(data.length), new Float64Array(data.length)]);
    this.updates = 0;
  }

  layer(name, x, K = 1) { return affine(this.weights[`${name}.weight`], x, K, this.weights[`${name}.bias`]); }
  gru(name, end, x, K) { return affine(this.weights[`${name}_${end}`], x, K, this.weights[`${name.replace("weight", "bias")}_${end}`]); }

  /** h_1 … h_N = BiGRU(x_1 … x_N); the decoder starts from a linear layer of both last states. */
  encode(source) {
    const { d, weights: W } = this, N = source.length, half = d / 2, states = value(new Float64Array(N * d));
    const x = embedded(W["embedding.weight"], source, this.width);
    const last = ["l0", "l0_reverse"].map((end, back) => {
      const inputs = this.gru("encoder.weight_ih", end, x, N);
      let h = value(new Float64Array(half));
      for (let t = 0; t < N; t++) {
        const i = back ? N - 1 - t : t, place = part(states, i * d + back * half, i * d + (back + 1) * half);
        h = gruCell(rowOf(inputs, i, 3 * half), this.gru("encoder.weight_hh", end, h, 1), h, place);
      }
      return h;
    });
    return { source, states, keys: this.layer("word_attention.key", states, N), h: this.layer("bridge", joined(...last)), cov: value(new Float64Array(N)) };
  }

  /** Read a word, and compute what P of the next one is made of; `text` has the state of the decoder. */
  step(text, word) {
    const { d, weights: W } = this, x = embedded(W["embedding.weight"], [word], this.width);
    const h = gruCell(this.gru("decoder.weight_ih", "l0", x, 1), this.gru("decoder.weight_hh", "l0", text.h, 1), text.h, value(new Float64Array(d)));
    const v = W["word_attention.v"] ?? W["word_attention.v.weight"], w = W["word_attention.coverage"];
    const alpha = attention(this.layer("word_attention.query", h), text.keys, v, w, text.cov);
    const c = contextOf(alpha, text.states, d), before = text.cov;
    text.cov = value(before.data.map((sum, i) => sum + alpha.data[i]), g => { addTo(before.grad, g); addTo(alpha.grad, g); });
    text.h = h;
    const scores = this.layer("pointer.vocabulary", this.layer("pointer.bottleneck", joined(h, c)));
    const q = W["pointer.switch.weight"] && this.layer("pointer.switch", joined(c, h, x));
    return { scores, q, alpha, P_g: softmax(scores.data.slice()), p: q ? sigmoid(q.data[0]) : 1 };
  }

  /** The loss of a story, the mean of −log P of its words times `share`; its gradients are added to those of the weights. */
  learn({ source, target }, share) {
    const text = this.encode(source);
    const loss = target.map((w, t) => wordLoss(this.step(text, t ? target[t - 1] : BOS), source, w, share / target.length));
    while (tape.length) tape.pop()();
    return loss.reduce((a, b) => a + b);
  }

  /** A step of Adam: m += 0.1 (g − m), s += 0.001 (g² − s), both corrected for their start; gradients have a norm of at most 2. */
  update(rate) {
    const all = Object.values(this.weights), norm = Math.sqrt(all.reduce((sum, { grad }) => sum + dot(grad, grad), 0));
    const clip = Math.min(1, 2 / (norm + 1e-6)), t = ++this.updates;
    all.forEach(({ data, grad }, k) => {
      const [m, s] = this.adam[k];
      for (let i = 0; i < data.length; i++) {
        const g = clip * grad[i];
        m[i] += 0.1 * (g - m[i]); s[i] += 0.001 * (g * g - s[i]);
        data[i] -= rate * m[i] / (1 - 0.9 ** t) / (Math.sqrt(s[i] / (1 - 0.999 ** t)) + 1e-8);
      }
      grad.fill(0);
    });
  }

  /** Write a summary, always the most probable word: ids, and the switch and the attention before each. */
  write({ source, unknown }, longest = 10) {
    const text = this.encode(source), steps = [];
    for (let id = BOS; id !== EOS && steps.length < longest;) {
      const { P_g, p, q, alpha } = this.step(text, id);
      [id] = largest(q ? mixed(P_g, p, alpha.data, source, unknown.length) : P_g, 1);
      steps.push({ id, p, alpha: alpha.data });
    }
    tape.length = 0;
    return steps;
  }
}

// ------------------------------------------------------------------------------------------------------ the stories

/** Random numbers of 0 to 1 from a seed (Mulberry32), the same in each browser. */
const randomFrom = seed => () => {
  seed = seed + 0x6D2B79F5 | 0;
  let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
  t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
  return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
};
const normal = random => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** A text of three sentences and its summary (`companion.tasks.stories.tell`). */
function tell(random, { verbs, idle, known, rare }) {
  const from = list => list[Math.floor(random() * list.length)], animals = [...known, ...known, ...rare];
  const [who, whom, ...others] = [0, 1, 2, 3].map(() => animals.splice(Math.floor(random() * animals.length), 1)[0]);
  const [seen, saw] = from(Object.entries(verbs)), text = others.map(other => `the ${other} ${from(idle)} .`);
  text.splice(Math.floor(random() * 3), 0, `the ${whom} was ${seen} by the ${who} .`);
  return { text: text.join(" "), summary: `the ${who} ${saw} the ${whom} .` };
}

/** A story in extended ids. */
function storyOf({ text, summary }, vocabulary) {
  const { sentences: [source], unknown } = vocabulary.encode([text.split(" ")]);
  return { text, source, unknown, target: [...summary.split(" ").map(word => vocabulary.idOf(word, unknown)), EOS] };
}
