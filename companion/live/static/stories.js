/* The stories of `companion.tasks.stories` and the weights with which training begins, both at random. */

/** Random numbers of 0 to 1 from a seed (Mulberry32), the same in each browser. */
const randomFrom = seed => () => {
  let t = Math.imul((seed = seed + 0x6D2B79F5 | 0) ^ seed >>> 15, 1 | seed);
  t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
  return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
};

/** Weights as PyTorch begins with: of words normal numbers, of a layer with n inputs (a GRU: n numbers of its state) up to 1/√n. */
function randomWeights(shapes, random) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => {
    const n = name.includes("_l0") ? shape[0] / 3 : shapes[name.replace("bias", "weight")].at(-1);
    const drawn = name === "embedding.weight" ? normal : () => (2 * random() - 1) / Math.sqrt(n);
    return [name, { data: Float64Array.from({ length: shape.reduce((a, b) => a * b) }, drawn), shape }];
  }));
}

/** A text of three sentences, and its summary. */
function tell(random, { verbs, idle, known, rare }) {
  const from = list => list[Math.floor(random() * list.length)], animals = [...known, ...known, ...rare];
  const [who, whom, ...others] = [0, 1, 2, 3].map(() => animals.splice(Math.floor(random() * animals.length), 1)[0]);
  const [seen, saw] = from(Object.entries(verbs)), text = others.map(other => `the ${other} ${from(idle)} .`);
  text.splice(Math.floor(random() * 3), 0, `the ${whom} was ${seen} by the ${who} .`);
  return { text: text.join(" "), summary: `the ${who} ${saw} the ${whom} .` };
}

/** A story in extended ids: `sentences` and `unknown` for the model, and the target. */
function storyOf({ text, summary }, vocabulary) {
  const words = text.split(" "), ids = vocabulary.encode([words]);
  return { ...ids, words, target: [...summary.split(" ").map(word => vocabulary.idOf(word, ids.unknown)), EOS] };
}
