// Marks the cells of tables that hold numbers alone, such as "34.10 [33.46, 34.74]" or "42.06 / 16.56 / 38.11".
document.addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("td")) {
    if (/^[\s\d.,:;/%×±+\-–−()[\]]*\d[\s\d.,:;/%×±+\-–−()[\]]*$/.test(cell.textContent)) cell.classList.add("number");
  }
});
