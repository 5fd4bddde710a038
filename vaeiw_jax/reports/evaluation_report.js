"use strict";
// Tables are sorted by the values their cells carry; a cell without one goes last.
function sortBy(button) {
  const heading = button.closest("th");
  const table = heading.closest("table");
  const column = [...heading.parentNode.children].indexOf(heading);
  const before = heading.getAttribute("aria-sort");
  const isText = heading.classList.contains("text");
  const ascending = before ? before === "descending" : isText;
  for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = (row) => row.children[column].dataset.value ?? "";
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => {
    const a = value(one), b = value(other);
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = isText ? a.localeCompare(b) : Number(a) - Number(b);
    return ascending ? difference : -difference;
  });
  table.tBodies[0].append(...rows);
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button));
}
// A game's page begins at its top, and the overview where it was left.
let overviewScroll = 0;
addEventListener("hashchange", (event) => {
  const game = document.querySelector("section.game:target");
  if (game) scrollTo(0, 0);
  else if (location.hash === "#overview") scrollTo(0, overviewScroll);
});
for (const link of document.querySelectorAll('#overview a[href^="#game-"]')) {
  link.addEventListener("click", () => { overviewScroll = scrollY; });
}
