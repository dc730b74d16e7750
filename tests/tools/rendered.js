// What is wrong with a page as it is shown: an expression, whose value `rendered.py` reads.
(() => {
  const problems = [];
  const article = document.querySelector("article.bd-article") || document.body;
  const column = article.getBoundingClientRect();
  const style = getComputedStyle(article);
  const right = column.right - parseFloat(style.paddingRight);
  const what = (e) => e.closest("div.math")?.id || (e.innerText || e.textContent || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const scrolling = (e) => {
    for (let p = e.parentElement; p && p !== article; p = p.parentElement)
      if (/(auto|scroll)/.test(getComputedStyle(p).overflowX)) return p;
  };
  for (const e of article.querySelectorAll("table, mjx-container > svg, img, .output svg, :not(pre) > code")) {
    if (!shown(e) || e.closest("details:not([open])")) continue;
    const box = e.getBoundingClientRect(), frame = scrolling(e);
    const over = frame ? box.width - frame.clientWidth : box.right - right;
    if (over > 1) problems.push({ kind: "wide", tag: e.tagName, over: Math.round(over), scrolls: !!frame, text: what(e) });
  }
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const over = (a, b) => { const k = a[3] ?? 1; return [0, 1, 2].map((i) => a[i] * k + b[i] * (1 - k)); };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { const up = []; for (let p = e; p; p = p.parentElement) up.push(rgb(getComputedStyle(p).backgroundColor)); let c = [255, 255, 255]; for (const layer of up.reverse()) c = over(layer, c); return c; };
  const seen = new Set();
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.nodeValue.trim() || seen.has(e) || e.closest("svg, script, style, mjx-assistive-mml, details:not([open]) > :not(summary)") || !shown(e)) continue;
    seen.add(e);
    const back = ground(e), front = over(rgb(getComputedStyle(e).color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 3) problems.push({ kind: "faint", tag: e.tagName, ratio: +ratio.toFixed(2), text: what(e) });
  }
  return problems;
})()
