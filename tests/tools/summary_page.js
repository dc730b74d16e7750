// What readers do in the tests of test_summary_page.py, one function each; they put what they see into `found`.

const all = selector => [...document.querySelectorAll(selector)];
const style = box => getComputedStyle(box);
const shade = box => {  // 0 white to 1 black; null: no colour
  const [r, g, b, a = 1] = style(box).backgroundColor.match(/[\d.]+/g).map(Number);
  return a === 0 ? null : a * (1 - (r + g + b) / 765);
};
const word = i => all("#summary .word")[i];
const textWords = () => all("#text .word");
const shades = () => textWords().map(shade);
const point = box => box.dispatchEvent(new PointerEvent("pointerenter"));
const leave = box => box.dispatchEvent(new PointerEvent("pointerleave"));
const press = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const detail = () => document.getElementById("detail").innerText.replace(/\s+/g, " ");
const bars = () => all("#text .bar").map(bar => bar.getBoundingClientRect().width);
const carrying = () => all(".carries").map(box => box.textContent).join(" ");
const found = {};

const pointing = () => {
  found.before = shades();
  point(word(0)); found.pointed = shades(); found.detail = detail(); found.bars = bars();
  leave(document.getElementById("summary")); found.left = shades();
  word(2).click(); point(word(0)); leave(document.getElementById("summary"));
  found.pinned = shades(); found.made = detail();
  word(2).click(); found.again = all(".pinned").length;
  found.copied = [0, 1, 2, 3].map(i => style(word(i)).textDecorationLine);
};

const keys = () => {
  const KEYS = "ArrowDown ArrowRight ArrowUp End ArrowRight ArrowLeft Home ArrowLeft";
  const here = () => all("#summary .word").indexOf(document.activeElement);
  word(0).focus(); found.first = shades();
  press("ArrowRight"); found.second = shades(); found.places = [here()];
  for (const key of KEYS.split(" ")) { press(key); found.places.push(here()); }
  found.stops = all("#summary [tabindex='0']").length;
  press("ArrowRight"); press("Enter"); found.pinned = all(".pinned").map(w => w.textContent);
  press("Escape"); found.cleared = shades(); found.detail = detail();
  const documents = document.getElementById("documents");
  documents.value = 1; documents.dispatchEvent(new Event("change"));
  found.slots = all("#slots button").length;
};

const memorySlots = () => {
  const slots = all("#slots button"), held = () => all("#text .unit").map(shade);
  point(word(0)); found.first = slots.map(shade); point(word(1)); found.second = slots.map(shade);
  found.none = held(); point(slots[0]); found.pointed = held(); leave(slots[0]); found.left = held();
  slots[1].focus(); found.focused = held();
  found.holds = document.getElementById("holds").textContent;
  press("Escape"); found.cleared = held();
};

const windows = () => {
  const look = () => [colours(), detail()];
  const colours = () => textWords().map(w => style(w).color);
  draw(1); word(5).click(); found.second = look();
  press("Escape");
  found.cleared = colours();
  point(word(0)); found.first = look();
};

const unreadText = () => {
  const rest = all("#unread p:not(.label)");
  found.rest = rest.map(p => p.textContent); found.sections = all("#unread h3").map(h => h.textContent);
  found.colours = [style(rest[0]).color, style(textWords()[0]).color];
  found.below = rest[0].getBoundingClientRect().top > textWords()[10].getBoundingClientRect().bottom;
  found.words = textWords().length; found.notes = all("#said li").map(li => li.textContent);
  found.cut = all("#summary p").map(p => style(p).color === style(rest[0]).color);
  found.legend = document.getElementById("legend").textContent;
  draw(1); found.next = [all("#unread").length, all("#said li").length, document.getElementById("said").hidden];
};

const carriers = () => {
  found.before = carrying();
  point(word(4)); found.pointed = carrying(); found.detail = detail(); found.shades = shades().map(Boolean);
  found.units = all("#text .carrier").map(unit => unit.querySelector(".number").textContent);
  point(word(0)); found.none = carrying(); found.nowhere = detail();
  leave(document.getElementById("summary")); found.left = carrying();
  word(3).focus(); found.focused = carrying(); press("Escape"); found.cleared = carrying();
};

const marks = () => {
  const has = name => w => w.classList.contains(name);
  found.marked = all("#summary .word").map(w => [has("lacks")(w), has("weak")(w)]);
  found.seen = all("#summary .word").map(w => [style(w).boxShadow !== "none", shade(w) !== null]);
  found.legend = document.getElementById("legend").textContent;
  draw(1);
  found.next = [all(".lacks").length, document.getElementById("key").hidden];
};
