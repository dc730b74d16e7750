// Keeps parts of a table's cell in one piece: the interval of "+3.14 [+2.01, +4.31]", and "p < 0.01".
document.addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("td, td > p")) {
    if (!cell.children.length)
      cell.textContent = cell.textContent.replace(/\[[+\-−\d., ]+\]|\bp (< )?(?=\d)/g, (piece) => piece.replaceAll(" ", "\u00a0"));
  }
});

// Says of what scrolls sideways whether it goes on at the right.
addEventListener("load", () => {
  const mark = (e) => e.classList.toggle("goes-on", e.scrollLeft + e.clientWidth < e.scrollWidth - 4);
  const resized = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  for (const e of document.querySelectorAll(".bd-article :is(div.math, .pst-scrollable-table-container, .text_html, pre)")) {
    e.addEventListener("scroll", () => mark(e), { passive: true });
    resized.observe(e);
  }
});

// The side bar with the contents is a landmark, so that its title is in one too.
document.addEventListener("DOMContentLoaded", () => {
  const bar = document.getElementById("pst-primary-sidebar");
  bar?.setAttribute("role", "region");
  bar?.setAttribute("aria-label", "Contents");
});
