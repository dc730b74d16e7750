/* The page in which a reader trains the two models of Start here, and sees what they write every few steps. */

const STEPS = 300, BATCH = 32, HELD = 20, SLICE = 25;  // steps of the library's training, texts; milliseconds without a stop
const NAMES = ["plain", "pointer-generator"], RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
const HEIGHT = 160, TOP = 4;  // of the picture of the loss: pixels, and the largest loss
const vocabulary = new Vocabulary(DATA.words), fresh = randomFrom(-1);
const held = [DATA, ...Array.from({ length: HELD - 1 }, () => tell(fresh, DATA))].map(told => storyOf(told, vocabulary));
/** losses: of both models, of each step; work: the training, which stops after each text; text: number of the held-out text
 *  that is shown; word: the place in its summary of which the attention is shown. */
const view = { models: [], losses: [], work: null, running: false, text: 0, word: 1 };

function begin() {
  const seed = bounded("seed"), weights = DATA.shapes.map(shapes => randomWeights(shapes, randomFrom(1000 + seed)));
  Object.assign(view, { models: weights.map(of => new Seq2Seq(DATA.config, of)), losses: [], work: training(randomFrom(seed)) });
  run(false);
  drawText();
}

function* training(random) {
  for (;;) {
    const batch = Array.from({ length: BATCH }, () => storyOf(tell(random, DATA), vocabulary)), loss = [0, 0];
    for (const [k, model] of view.models.entries()) {
      for (const story of batch) { loss[k] += model.learn(story, story.target, 1 / BATCH); yield; }
      model.update(Number($("rate").value));
    }
    view.losses.push(loss);
    if (view.losses.length % STEPS === 0) run(false);
    if (view.losses.length % 5 === 0) draw(); else drawLosses();
  }
}

function run(running) {
  view.running = running;
  $("run").textContent = running ? "Pause" : view.losses.length ? "Go on" : "Start";
  const slice = () => {
    for (const end = performance.now() + SLICE; view.running && performance.now() < end;) view.work.next();
    if (view.running) setTimeout(slice);
  };
  slice();
}

function drawLosses() {
  const { losses } = view, last = Math.ceil(Math.max(losses.length, 1) / STEPS) * STEPS, width = $("loss").clientWidth - 40;
  const x = t => 30 + t / last * width, y = loss => 10 + HEIGHT * (1 - Math.min(loss, TOP) / TOP);
  const lines = [0, 1, 2, 3, 4].map(loss => `<path d="M30 ${y(loss)}h${width}"/><text x="18" y="${y(loss) + 4}">${loss}</text>`);
  const curves = NAMES.map((name, k) => `<text x="${30 + width}" y="${26 + 16 * k}" text-anchor="end" class="name${k}">${["—", "- -"][k]} ${name}</text>
    <polyline class="curve${k}" points="${losses.map((pair, t) => `${x(t + 1)},${y(pair[k])}`).join(" ")}"/>`);
  $("loss").innerHTML = `${lines.join("")}<text x="${30 + width}" y="186" text-anchor="end">step ${last}</text>${curves.join("")}`;
  const now = losses.at(-1)?.map((loss, k) => `${NAMES[k]} ${signed(loss)}`).join(", ");
  say(now ? `Step ${losses.length}: loss ${now}` : "Both models have random weights.");
}

/** The right summary of the held-out text; a click on a word shows the attention before it. */
function drawText() {
  const { target, unknown } = held[view.text];
  const choose = target.map((id, t) => button(vocabulary.word(id, unknown), () => { view.word = t; draw(); }));
  $("right-words").replaceChildren(element("th", { scope: "row" }, "right"), ...choose.map(word => element("td", {}, word)));
  draw();
}

function draw() {
  drawLosses();
  const { target, words, unknown } = held[view.text];
  $("right-words").querySelectorAll("button").forEach((word, t) => word.setAttribute("aria-pressed", t === view.word));
  view.models.forEach((model, k) => {
    const written = held.map(story => stepsOf(drained(search(model, drained(model.encode(story)), DATA.decode))));
    const right = held.filter((story, i) => `${story.target}` === `${written[i].map(step => step.id)}`).length, steps = written[view.text];
    const said = target.map((id, t) => element("td", { className: steps[t]?.id === id ? "right" : "wrong" },
      element("span", { className: steps[t]?.output.own < 0.5 ? "copied" : "" }, steps[t] ? vocabulary.word(steps[t].id, unknown) : "")));
    $(`written${k}`).replaceChildren(element("th", { scope: "row" }, NAMES[k]), ...said);
    $(`looks${k}`).replaceChildren(`${NAMES[k]}, ${right} of ${HELD} texts right: `, ...words.flatMap((text, i) => {
      const word = element("span", { className: unknown.includes(text) ? "shaded unknown" : "shaded" }, text);
      shade(word, steps[view.word]?.output.gamma[i] ?? 0);
      return [word, " "];
    }));
  });
}

$("frame").hidden = false;
$("rate").replaceChildren(...RATES.map(rate => option(rate, rate)));
$("rate").value = 0.003;  // that of the library's training
$("run").addEventListener("click", () => run(!view.running));
$("again").addEventListener("click", begin);
$("seed").addEventListener("input", begin);
$("other").addEventListener("click", () => { view.text = (view.text + 1) % HELD; drawText(); });
begin();
