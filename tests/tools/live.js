// What the tests of live pages run in Node behind the scripts of a page (`tests.tools.live`); each puts its own code at the end.

const all = generator => { for (;;) { const { value, done } = generator.next(); if (done) return value; } };

// The best summary of each document.
const written = (model, data) => data.documents.map(read => {
  const document = all(model.encode(read)), best = all(search(model, document, rulesFor(data.decode, document.N)));
  const logs = all(logProbs(model, document, best.ids));
  return { ids: best.ids, logP: best.logP, score: best.score, sum: logs.reduce((a, b) => a + b, 0) };
});

// The mean log P of each document's target under each change.
const forced = (model, data) => {
  const mean = (of, document, { ids, known }) => {
    const logs = all(logProbs(of, document, ids)), counted = ids.map((id, t) => t).filter(t => known[t]);
    return counted.reduce((sum, t) => sum + logs[t], 0) / counted.length;
  };
  return Object.fromEntries(Object.entries(data.changes).map(([name, { following, ...change }]) => {
    const of = model.with(change), read = (data.changed[name] ?? data.documents).map(ids => all(of.encode(ids)));
    const part = n => following ? { [following]: read[(n + 1) % read.length][following] } : {};  // of the next document
    const logP = (document, n) => mean(model.with({ ...change, ...part(n) }), document, data.targets[n][name]);
    return [name, read.map(logP)];
  }));
};

// What the page shows of the last of some steps.
const lastStep = (model, data) => {
  const document = all(model.encode(data.document));
  let state = model.first(document), made;
  for (const token of data.tokens) {
    made = model.advance([token], [state], document);
    [state] = made.states;
    model.distributions(made.outputs, made.features, document);
  }
  const plain = Object.entries(made.outputs[0]).map(([name, list]) => [name, list?.buffer ? [...list] : list]);
  const heads = document.heads?.map(head => [...head]);
  return { ...Object.fromEntries(plain), heads, importance: document.importance };
};

// Whether the facts of summaries about towns are right.
const judged = data => {
  const facts = new TownFacts(data), kinds = found => found.map(({ kind }) => kind);
  return data.cases.map(({ title, paragraphs, summary }) => kinds(facts.judged(summary, title, facts.mentions(paragraphs))));
};

// Two steps of training: the loss, the gradients and then the weights, one after the other.
const trained = data => {
  const model = new Seq2Seq({ hidden: 8 }, data.weights), all = kind => Object.values(model.weights).flatMap(w => [...w[kind]]);
  return [1, 2].map(() => {
    const losses = data.documents.map(text => model.learn(text, text.target, 1 / 3)), gradients = all("grad");
    model.update(0.01);
    return [losses[0] + losses[1] + losses[2], gradients, all("data")];
  });
};

// Random weights of both models, and 100 stories.
const begun = data => {
  const random = randomFrom(0), vocabulary = new Vocabulary(data.words), told = Array.from({ length: 100 }, () => tell(random, data));
  const weights = data.shapes.map(shapes => Object.values(randomWeights(shapes, random)).map(weight => [...weight.data]));
  return [weights, told.map(story => ({ ...story, ...storyOf(story, vocabulary) }))];
};

(async () => {
  const data = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const found = await (async () => { BODY })();
  process.stdout.write(JSON.stringify(found));
})();
