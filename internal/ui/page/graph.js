// The graph of the items of a Transaction: a column for each step that an item is away from those that wait for nothing.
"use strict";

function draw(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function graph(items, chain) {
  const at = new Map(items.map((i, n) => [i.name, n]));
  const before = items.map((i, n) => chain ? (n ? [n - 1] : []) : i.dependsOn.map((d) => at.get(d)).filter((d) => d !== undefined));
  // The API server refuses no circle, janusd does: as many rounds as items end one here.
  const column = items.map(() => 0);
  for (let changed = true, round = 0; changed && round < items.length; round++) {
    changed = false;
    before.forEach((list, n) => list.forEach((b) => {
      if (column[n] <= column[b]) { column[n] = column[b] + 1; changed = true; }
    }));
  }
  const filled = [], width = 190, height = 34, wide = 240, high = 50;
  const place = items.map((_, n) => {
    const c = column[n];
    filled[c] = (filled[c] || 0) + 1;
    return { x: 4 + c * wide, y: 4 + (filled[c] - 1) * high };
  });
  const label = items.map((i, n) => i.name + (before[n].length ? " after " + before[n].map((b) => items[b].name).join(", ") : "")).join("; ");
  const size = { width: Math.max(0, ...place.map((p) => p.x + width + 4)), height: Math.max(0, ...place.map((p) => p.y + height + 4)) };
  const svg = draw("svg", { ...size, role: "img", "aria-label": label });
  svg.append(draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    draw("path", { d: "M0 0L8 4L0 8z" })));
  before.forEach((list, n) => list.forEach((b) => {
    const x1 = place[b].x + width, y1 = place[b].y + height / 2, x2 = place[n].x, y2 = place[n].y + height / 2;
    svg.append(draw("path", { d: `M${x1} ${y1}C${x1 + 25} ${y1} ${x2 - 25} ${y2} ${x2} ${y2}`, "marker-end": "url(#tip)" }));
  }));
  items.forEach((i, n) => {
    const [sign, kind] = signs[i.state] || ["•", "faint"], name = i.name.length > 22 ? i.name.slice(0, 21) + "…" : i.name;
    svg.append(draw("g", { class: kind, transform: `translate(${place[n].x} ${place[n].y})` },
      draw("title", {}, i.name + ": " + i.state), draw("rect", { width, height, rx: 5 }), draw("text", { x: 10, y: 22 }, sign + " " + name)));
  });
  return svg;
}
