// Shows the node of the lookahead tree that the pointer is on, or that was tapped or walked to with the arrow keys.
const tree = document.getElementById("tree");
if (tree) {
  const told = JSON.parse(document.getElementById("nodes").textContent);
  const circles = new Map([...tree.querySelectorAll("circle")].map((c) => [Number(c.dataset.node), c]));
  const panel = document.getElementById("node");
  let picked = 0;

  const show = (node) => {
    circles.get(picked).classList.remove("picked");
    picked = node;
    circles.get(node).classList.add("picked");
    const screen = told.screens[told.nodes[node].screen];
    const image = panel.querySelector("img");
    image.style.visibility = screen ? "visible" : "hidden";
    if (screen) image.src = "data:image/png;base64," + screen;
    const list = panel.querySelector("dl");
    list.replaceChildren();
    for (const [name, value] of told.nodes[node].facts) {
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
    const { parent, children } = told.nodes[picked];
    const siblings = parent < 0 ? [picked] : told.nodes[parent].children;
    const at = siblings.indexOf(picked);
    const next = {
      ArrowUp: parent < 0 ? undefined : parent,
      ArrowDown: children[0],
      ArrowLeft: siblings[at - 1],
      ArrowRight: siblings[at + 1],
    }[event.key];
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (next !== undefined) show(next);
  });
  show(0);
  const box = tree.parentElement; // which scrolls, where the tree is wider than the screen
  box.scrollLeft = circles.get(0).getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
}
