// What the scripts of test_summary_page.py use; they put what they see into `found`.

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
