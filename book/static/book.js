// Keeps numbers of tables in one piece: a cell of numbers alone, such as "42.06 / 16.56 / 38.11", does not wrap; a longer
// one not inside "+3.14 [+2.01, +4.31]" and "p < 0.01".
document.addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("td, td > p")) {
    const text = cell.textContent;
    if (/\d/.test(text) && /^[\s\d.,:;/%×±+\-–−()[\]]*$/.test(text)) cell.classList.add("number");
    else if (!cell.children.length)
      cell.textContent = text.replace(/[+\-−\d.,]+ \[[^\]]*\]|\bp (< )?(?=\d)/g, (piece) => piece.replaceAll(" ", "\u00a0"));
  }
});
