/* The page in which a reader trains the two models of Start here, and sees what they write after every few steps. */

const STEPS = 300, BATCH = 32, HELD = 20, SLICE = 25;  // steps of the library's training, texts; milliseconds without a pause
const NAMES = ["plain", "pointer-generator"], RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
const WIDTH = 600, HEIGHT = 160, TOP = 4;  // of the picture: pixels, and its largest loss

const vocabulary = new Vocabulary(DATA.words), fresh = randomFrom(-1);
const held = [DATA, ...Array.from({ length: HELD - 1 }, () => tell(fresh, DATA))].map(told => storyOf(told, vocabulary));
/** models: both learners; losses: of each step; work: the training, which stops after each text; text: number of the text
 *  that is shown; word: the place in the summary whose attention is shown. */
const view = { models: [], losses: [], work: null, running: false, text: 0, word: 1 };

function begin() {
  const seed = bounded("seed"), random = randomFrom(seed);
  const models = DATA.shapes.map(shapes => new Learner(shapes, randomFrom(1000 + seed)));
  Object.assign(view, { models, losses: [], work: training(models, random) });
  run(false);
  drawAll();
}

function* training(models, random) {
  for (;;) {
    const batch = Array.from({ length: BATCH }, () => newStory(random)), loss = [0, 0];
    for (const [k, model] of models.entries()) {
      for (const story of batch) { loss[k] += model.learn(story, 1 / BATCH); yield; }
      model.update(Number($("rate").value));
    }
    view.losses.push(loss);
    if (view.losses.length % STEPS === 0) run(false);
    if (view.losses.length % 5 === 0 || !view.running) drawAll(); else drawLosses();
  }
}

function newStory(random) {
  const told = tell(random, DATA);
  return held.some(({ text }) => text === told.text) ? newStory(random) : storyOf(told, vocabulary);
}

function run(running) {
  view.running = running;
  $("run").textContent = running ? "Pause" : view.losses.length ? "Go on" : "Start";
  if (running) slice();
}

function slice() {
  for (const end = performance.now() + SLICE; view.running && performance.now() < end;) view.work.next();
  if (view.running) setTimeout(slice);
}

// --------------------------------------------------------------------------------------------------------- pictures

function drawLosses() {
  const steps = view.losses.length, last = Math.ceil(Math.max(steps, 1) / STEPS) * STEPS;
  const place = (loss, t) => `${30 + (t + 1) / last * WIDTH},${10 + HEIGHT * (1 - Math.min(loss, TOP) / TOP)}`;
  const lines = [0, 1, 2, 3, 4].map(y => `<path d="M${place(y, -1)}H${30 + WIDTH}"/><text x="18" y="${14 + HEIGHT * (1 - y / TOP)}">${y}</text>`);
  const curves = NAMES.map((_, k) => `<polyline class="curve${k}" points="${view.losses.map((pair, t) => place(pair[k], t)).join(" ")}"/>`);
  $("loss").innerHTML = `${lines.join("")}<text x="${30 + WIDTH}" y="186" text-anchor="end">step ${last}</text>${curves.join("")}`;
  const now = view.losses.at(-1)?.map((loss, k) => `${NAMES[k]} ${signed(loss)}`).join(", ");
  say(steps ? `Step ${steps}: loss ${now}` : "Not trained yet");
}

/** A text: its words, of which a click chooses the one that the attention belongs to, and the summary to be learned. */
function drawText() {
  const { target, unknown } = held[view.text];
  const choose = target.map((id, t) => button(vocabulary.word(id, unknown), () => { view.word = t; drawAll(); }));
  $("right-words").replaceChildren(element("th", { scope: "row" }, "right"), ...choose.map(chosen => element("td", {}, chosen)), element("td"));
  drawAll();
}

function drawAll() {
  drawLosses();
  const story = held[view.text], words = story.text.split(" "), at = view.word;
  $("right-words").querySelectorAll("button").forEach((chosen, t) => chosen.setAttribute("aria-pressed", t === at));
  view.models.forEach((model, k) => {
    const written = held.map(text => model.write(text)), steps = written[view.text];
    const right = held.filter(({ target }, i) => `${target}` === `${written[i].map(({ id }) => id)}`).length;
    const said = story.target.map((id, t) => steps[t] ? element("td", { className: steps[t].id === id ? "right" : "wrong" },
      element("span", { className: steps[t].p < 0.5 ? "copied" : "" }, vocabulary.word(steps[t].id, story.unknown))) : element("td"));
    $(`written${k}`).replaceChildren(element("th", { scope: "row" }, NAMES[k]), ...said, element("td", {}, `${right} of ${HELD} texts right`));
    $(`looks${k}`).replaceChildren(`${NAMES[k]}: `, ...words.flatMap((text, i) => {
      const word = element("span", { className: `shaded${story.source[i] < DATA.words.length ? "" : " unknown"}` }, text);
      shade(word, steps[at]?.alpha[i] ?? 0);
      return [word, " "];
    }));
  });
}

// -------------------------------------------------------------------------------------------------------- the reader

$("frame").hidden = false;
$("rate").replaceChildren(...RATES.map(rate => option(rate, rate)));
$("rate").value = 0.003;  // that of the library's training
$("run").addEventListener("click", () => run(!view.running));
$("again").addEventListener("click", begin);
$("seed").addEventListener("input", begin);
$("other").addEventListener("click", () => { view.text = (view.text + 1) % HELD; drawText(); });
begin();
drawText();
