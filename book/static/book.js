// Keeps parts of a table's cell in one piece: the interval of "+3.14 [+2.01, +4.31]", and "p < 0.01".
document.addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("td, td > p")) {
    if (!cell.children.length)
      cell.textContent = cell.textContent.replace(/\[[+\-−\d., ]+\]|\bp (< )?(?=\d)/g, (piece) => piece.replaceAll(" ", "\u00a0"));
  }
});
