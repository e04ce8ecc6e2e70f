// The graph of the items of a Transaction: a step to the right for each step that an item is away from those
// that wait for nothing. Where there is no room for more steps, they go on below, as lines of a text do.
"use strict";

// What is drawn of an item: its name and kind if there are few, its sign and letters of its kind if there are many.
const few = 30;
const large = { width: 176, height: 44, across: 40, down: 12, rows: 8 }, small = { width: 46, height: 24, across: 20, down: 6, rows: 10 };

// The letters that stand for a kind: CM for a ConfigMap, De for a Deployment.
function letters(kind) {
  const capitals = kind.replace(/[^A-Z]/g, "");
  return (capitals.length > 1 ? capitals : kind).slice(0, 3 - (capitals.length > 1 ? 0 : 1));
}

// stepsOf says how many steps each item is away from those that wait for nothing.
function stepsOf(before) {
  const step = before.map(() => 0);
  // The API server refuses no circle, janusd does: as many rounds as items end one here.
  for (let changed = true, round = 0; changed && round < before.length; round++) {
    changed = false;
    before.forEach((list, n) => list.forEach((b) => {
      if (step[n] <= step[b]) { step[n] = step[b] + 1; changed = true; }
    }));
  }
  return step;
}

function beforeOf(items, chain) {
  const at = new Map(items.map((i, n) => [i.name, n]));
  return items.map((i, n) => chain ? (n ? [n - 1] : []) : i.dependsOn.map((d) => at.get(d)).filter((d) => d !== undefined));
}

// layout puts each item into its place, within a width.
function layout(step, size, width) {
  const layers = [], place = [];
  step.forEach((s, n) => (layers[s] ||= []).push(n));
  const fit = Math.max(1, Math.floor((width + 6) / (size.width + 6)));
  let x = 0, y = 0, deep = 0, band = 0;
  for (const layer of layers) {
    const columns = Math.min(fit, Math.ceil(layer.length / size.rows)), rows = Math.ceil(layer.length / columns);
    const wide = columns * (size.width + 6) - 6;
    if (x > 0 && x + wide > width) { x = 0; y += deep + 22; deep = 0; band++; }
    layer.forEach((n, k) => {
      place[n] = { x: 3 + x + Math.floor(k / rows) * (size.width + 6), y: 3 + y + (k % rows) * (size.height + size.down), band };
    });
    x += wide + size.across;
    deep = Math.max(deep, rows * (size.height + size.down));
  }
  return place;
}

function arrow(a, b, size) {
  if (a.band === b.band && b.x > a.x) {
    const x1 = a.x + size.width, y1 = a.y + size.height / 2, y2 = b.y + size.height / 2, bend = size.across / 2;
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${b.x - bend} ${y2} ${b.x} ${y2}`;
  }
  const x1 = a.x + size.width / 2, y1 = a.y + size.height, x2 = b.x + size.width / 2;
  return `M${x1} ${y1}C${x1} ${y1 + 18} ${x2} ${b.y - 18} ${x2} ${b.y}`;
}

// blocker is the item that the Transaction is at: what has failed, is being done, or is waited for; -1 if there is none.
function blocker(d) {
  const of = (is) => d.items.findIndex(is), lock = d.locks.find((l) => l.holder && !l.ours);
  const found = [(i) => i.state === "Unresolved", (i) => d.failedItem && i.name === d.failedItem, (i) => i.state === "RollingBack",
    (i) => i.state === "Waiting", (i) => i.state === "Committing", (i) => lock && d.state === "Waiting" && lock.items.includes(i.name)];
  return found.map(of).find((n) => n >= 0) ?? -1;
}

function graphLabel(items, before) {
  if (items.length <= few) return items.map((i, n) => i.name + (before[n].length ? " after " + before[n].map((b) => items[b].name).join(", ") : "")).join("; ");
  return items.length + " items: " + Object.entries(Object.groupBy(items, (i) => i.state)).map(([s, l]) => l.length + " " + s).join(", ");
}

function graph(d, width) {
  const items = d.items, two = Math.floor((width - 6 - large.across) / 2);
  const size = items.length <= few ? { ...large, width: Math.min(large.width, Math.max(two, 100)) } : small;
  const before = beforeOf(items, d.chain), place = layout(stepsOf(before), size, width - 6), at = blocker(d);
  const far = { width: Math.max(0, ...place.map((p) => p.x + size.width + 4)), height: Math.max(0, ...place.map((p) => p.y + size.height + 4)) };
  const svg = draw("svg", { ...far, role: "img", "aria-label": graphLabel(items, before) });
  svg.append(draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    draw("path", { d: "M0 0L8 4L0 8z" })));
  // Of many arrows those that lead to the item that the Transaction is at are seen, and the others only just.
  before.forEach((list, n) => list.forEach((b) => svg.append(draw("path", { d: arrow(place[b], place[n], size),
    ...(size === small && n !== at ? { class: "thin" } : { "marker-end": "url(#tip)" }) }))));
  items.forEach((i, n) => {
    const node = nodeOf(i, size, n === at);
    node.setAttribute("transform", `translate(${place[n].x} ${place[n].y})`);
    node.addEventListener("click", () => showItem(n));
    svg.append(node);
  });
  return svg;
}

function nodeOf(i, size, isBlocker) {
  const [mark, kind] = signOf(i.state), room = Math.floor((size.width - 34) / 7.4), cut = (text, n) => text.length > n ? text.slice(0, n - 1) + "…" : text;
  const texts = size === small ? [draw("text", { x: 5, y: 17 }, mark + " " + letters(i.kind))]
    : [draw("text", { x: 9, y: 18 }, mark + " " + cut(i.name, room)), draw("text", { x: 26, y: 35, class: "kind" }, cut(i.kind + (i.type ? ", " + i.type : ""), room + 3))];
  return draw("g", { class: kind + (isBlocker ? " blocker" : "") },
    draw("title", {}, i.name + ": " + i.state + ", " + i.type + " " + i.target), draw("rect", { width: size.width, height: size.height, rx: 5 }), ...texts);
}

// What the letters stand for, where there are letters.
function legend(items) {
  if (items.length <= few) return "";
  const kinds = Object.entries(Object.groupBy(items, (i) => i.kind)).sort((a, b) => b[1].length - a[1].length);
  return make("p", { class: "faint" }, kinds.map(([k, l]) => letters(k) + " " + k + " (" + l.length + ")").join(", "));
}

// The item that the Transaction is at, in words, below the graph.
function blockerLine(d) {
  const n = blocker(d);
  if (n < 0) return "";
  const i = d.items[n], button = make("button", { type: "button", id: "to-blocker" }, "show it below");
  button.addEventListener("click", () => showItem(n));
  return make("p", { id: "blocker" }, signed(i.state), " ", make("b", {}, i.name), ", " + i.type + " " + i.target + ". ",
    i.wait ? make("span", {}, waiting(i.wait), ". ") : i.message ? i.message + ". " : "", button);
}

// Has the item that the Transaction is at in view, in the middle of a graph that is larger than its box.
function centre(box) {
  const node = box.querySelector(".blocker");
  if (!node) return;
  const a = node.getBoundingClientRect(), b = box.getBoundingClientRect();
  box.scrollTop += a.top - b.top - (b.height - a.height) / 2;
  box.scrollLeft += a.left - b.left - (b.width - a.width) / 2;
}
