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
addEventListener("hashchange", () => {
  if (document.querySelector("section.game:target")) scrollTo(0, 0);
  else if (location.hash === "#overview") scrollTo(0, overviewScroll);
});
for (const link of document.querySelectorAll('#overview a[href^="#game-"]')) {
  link.addEventListener("click", () => { overviewScroll = scrollY; });
}

// Shows the node of the lookahead tree that the pointer is on, or that was tapped or walked to with the arrow keys.
const tree = document.getElementById("tree");
if (tree) {
  const { screens, nodes } = JSON.parse(document.getElementById("nodes").textContent);
  const circles = new Map([...tree.querySelectorAll("circle")].map((c) => [Number(c.dataset.node), c]));
  const panel = document.getElementById("node");
  let picked = 0;

  const show = (node) => {
    circles.get(picked).classList.remove("picked");
    picked = node;
    circles.get(node).classList.add("picked");
    const screen = screens[nodes[node].screen];
    const image = panel.querySelector("img");
    image.style.visibility = screen ? "visible" : "hidden";
    if (screen) image.src = screen;
    const list = panel.querySelector("dl");
    list.replaceChildren();
    for (const [name, value] of nodes[node].facts) {
      list.append(
        Object.assign(document.createElement("dt"), { textContent: name }),
        Object.assign(document.createElement("dd"), { textContent: value }),
      );
    }
  };

  const pick = (event) => {
    const node = event.target.dataset && event.target.dataset.node;
    if (node !== undefined) show(Number(node));
  };
  tree.addEventListener("pointerover", pick);
  tree.addEventListener("click", pick);
  tree.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const { parent, children } = nodes[picked];
    const siblings = parent < 0 ? [picked] : nodes[parent].children;
    const at = siblings.indexOf(picked);
    const next = {
      ArrowUp: parent < 0 ? undefined : parent,
      ArrowDown: children[0],
      ArrowLeft: siblings[at - 1],
      ArrowRight: siblings[at + 1],
    }[event.key];
    if (next !== undefined) show(next);
  });
  show(0);
  const box = tree.parentElement; // which scrolls, where the tree is wider than the screen
  box.scrollLeft = circles.get(0).getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
}
