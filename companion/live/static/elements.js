/* What all pages share: elements, numbers, tables, and what is said to the reader. */

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);

/** An element; `attributes` are properties of it where it has them. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const button = (text, act, attributes = {}) => element("button", { type: "button", onclick: act, ...attributes }, text);
const option = (value, text) => element("option", { value }, text);
const header = (...names) => element("tr", {}, ...names.map(name => element("th", { scope: "col", innerHTML: name })));
const cells = (...contents) => element("tr", {}, ...contents.map(c => element("td", {}, ...[c].flat())));

/** A number for people: small ones with an exponent. */
function number(x) {
  const size = Math.abs(x), digits = size >= 0.9995 ? size.toFixed(2) : size >= 0.001 || !size ? size.toFixed(3) : size.toExponential(1);
  return (x < 0 ? "−" : "") + (size === Infinity ? "∞" : digits);
}
const signed = (x, digits = 3) => x.toFixed(digits).replace("-", "−");
const highest = (numbers, count) => largest(numbers, count).length ? largest(numbers, count) : [0];

/** Shade an element as dark as a share of 0 to 1; letters on it can be read. */
const shade = (part, share) => part.style.setProperty("--share", share.toFixed(2));

const bar = (share, kind = "") => {
  const filled = element("i");
  filled.style.width = `${Math.min(1, share) * 100}%`;
  return element("span", { className: `share ${kind}` }, filled);
};
const withBar = (share, kind) => [bar(share, kind), number(share)];

/** The number of a field within its bounds. */
function bounded(id) {
  const { min, max, valueAsNumber, defaultValue } = $(id);
  return Math.min(Number(max), Math.max(Number(min), Math.round(Number.isFinite(valueAsNumber) ? valueAsNumber : defaultValue)));
}

document.addEventListener("change", ({ target }) => {
  if (target.type === "number") target.value = bounded(target.id);
});

function say(text, error = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", error);
}

/** What to do with an arrow key: acts[key](). */
const onKeys = (acts, but = () => false) => event => {
  const act = acts[event.key];
  if (!act || but(event)) return;
  event.preventDefault();
  event.stopPropagation();
  act();
};
