/* Two live pages beside each other, which read the same text. They are files in the folder of this page. */

/** Offer the papers, if both models of the pair read papers, and a reader's own text. */
function offerTexts() {
  const papers = DATA.pairs[$("pair").value].papers ? DATA.papers : [];
  $("paper").replaceChildren(...papers.map((title, n) => option(n, title)), option("own", "Your own text …"));
}

/** Show both pages with the text and the change that are chosen, and keep them in the address. */
function show() {
  const isOwn = $("paper").value === "own";
  const state = new URLSearchParams({ pair: $("pair").value, text: $("paper").value });
  if (isOwn) state.set("own", $("pasted").value);
  if ($("uncopied").checked) state.set("uncopied", "on");
  $("typing").hidden = !isOwn;
  DATA.pairs[$("pair").value].pages.forEach((name, n) => {
    const frame = document.querySelectorAll("iframe")[n];
    frame.title = `${DATA.names[name]} writes in this frame`;
    frame.contentWindow.location.replace(`${name}.html#${state}`);
  });
  history.replaceState(null, "", $("address").href = `#${state}`);
}

/** Choose what an address names, or what comes first in the lists. */
function start() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (Object.hasOwn(DATA.pairs, state.get("pair"))) $("pair").value = state.get("pair");
  offerTexts();
  if (state.has("text")) $("paper").value = state.get("text");
  if ($("paper").selectedIndex < 0) $("paper").selectedIndex = 0;
  $("pasted").value = state.get("own") ?? DATA.example;
  $("uncopied").checked = state.has("uncopied");
  show();
}

$("look").textContent = DATA.look;
$("pair").append(...Object.entries(DATA.pairs).map(([name, { label }]) => option(name, label)));
$("pair").addEventListener("change", () => {
  offerTexts();
  show();
});
$("paper").addEventListener("change", show);
$("uncopied").addEventListener("change", show);
$("typing").addEventListener("submit", event => {
  event.preventDefault();
  show();
});
addEventListener("hashchange", start);
start();
