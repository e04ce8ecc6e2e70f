// Everything that comes from objects is put in as text; nothing here makes markup of it.
"use strict";

const $ = (id) => document.getElementById(id);
const phases = ["Pending", "Preparing", "Prepared", "Committing", "Committed", "RollingBack", "RolledBack", "Planned", "Failed"];
const signs = {
  Committed: ["✓", "good"], Planned: ["✓", "good"], Failed: ["✗", "bad"], Unresolved: ["✗", "bad"], Rejected: ["✗", "bad"],
  RolledBack: ["↶", "back"], RollingBack: ["↶", "back"], Committing: ["▶", "busy"], Preparing: ["▶", "busy"], Prepared: ["▷", "busy"],
  Pending: ["○", "faint"], Skipped: ["–", "faint"],
};

// The Transactions by namespace/name, and the key of the row that the keyboard is on.
const known = new Map();
let current = "";
// While a stream begins: the keys that it has told of. The others are gone when it is through.
let told = null;

const keyOf = (t) => t.namespace + "/" + t.name;

// make makes an element of attributes and of children, which are elements or text.
function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function signed(state) {
  const [sign, kind] = signs[state] || ["•", "faint"];
  return make("span", { class: kind }, sign + " " + state);
}

function time(text) {
  return text ? make("time", { datetime: text }, text.replace("T", " ").replace("Z", "")) : "";
}

// --- The list.

function shown() {
  const words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const namespace = $("namespace").value, phase = $("phase").value;
  return [...known.values()]
    .filter((t) => (!namespace || t.namespace === namespace) && (!phase || t.phase === phase))
    .filter((t) => words.every((w) => [t.namespace, t.name, t.phase, t.reason, t.message].join(" ").toLowerCase().includes(w)))
    .sort((a, b) => b.created.localeCompare(a.created) || keyOf(a).localeCompare(keyOf(b)));
}

function row(t) {
  const link = make("a", { href: hashOf(t) }, t.name);
  link.addEventListener("focus", () => { current = keyOf(t); });
  const r = make("tr", { "data-key": keyOf(t) },
    make("td", {}, signed(t.phase)), make("td", {}, t.namespace), make("th", { scope: "row" }, link),
    make("td", {}, t.progress), make("td", { title: t.message }, t.reason), make("td", {}, time(t.created)));
  r.addEventListener("click", () => { location.hash = hashOf(t); });
  return r;
}

function drawList() {
  const list = shown();
  const inTable = $("rows").contains(document.activeElement);
  $("rows").replaceChildren(...list.map(row));
  $("count").textContent = list.length + " of " + known.size + " Transactions";
  if (inTable) focusRow(current);
  const spaces = [...new Set([...known.values()].map((t) => t.namespace))].sort();
  const chosen = $("namespace").value;
  if (chosen && !spaces.includes(chosen)) spaces.push(chosen);
  $("namespace").replaceChildren(make("option", { value: "" }, "all"), ...spaces.map((s) => make("option", { value: s }, s)));
  $("namespace").value = chosen;
}

function focusRow(key) {
  const links = [...$("rows").querySelectorAll("a")];
  (links.find((a) => a.closest("tr").dataset.key === key) || links[0])?.focus();
}

function move(step) {
  const keys = [...$("rows").children].map((r) => r.dataset.key);
  if (keys.length === 0) return;
  const at = keys.indexOf(current);
  const inTable = $("rows").contains(document.activeElement);
  focusRow(keys[at < 0 ? 0 : inTable ? Math.min(Math.max(at + step, 0), keys.length - 1) : at]);
}

// --- One Transaction.

function hashOf(t) { return "#" + encodeURIComponent(t.namespace) + "/" + encodeURIComponent(t.name); }

function opened() {
  const parts = location.hash.slice(1).split("/");
  if (parts.length !== 2) return "";
  try { return parts.map(decodeURIComponent).join("/"); } catch { return ""; }
}

// Reads for one Transaction overtake each other: that of the last asking counts.
let asked = 0;
let drawn = "";

async function drawDetail() {
  const key = opened();
  $("detail").hidden = !key;
  $("overview").hidden = Boolean(key);
  if (!key) {
    drawn = "";
    document.title = "Janus: Transactions";
    return;
  }
  current = key;
  const mine = ++asked;
  let parts;
  try {
    const answer = await fetch("api/transactions/" + key.split("/").map(encodeURIComponent).join("/"));
    const content = await answer.json().catch(() => ({ error: answer.status + " " + answer.statusText }));
    parts = answer.ok ? detail(content) : [back(), make("h2", { id: "title" }, key), make("p", { class: "trouble" }, content.error)];
  } catch (e) {
    parts = [back(), make("h2", { id: "title" }, key), make("p", { class: "trouble" }, "It could not be read: " + e.message)];
  }
  if (mine !== asked || key !== opened()) return;
  const focused = $("detail").contains(document.activeElement) && document.activeElement.id;
  $("detail").replaceChildren(...parts);
  document.title = "Janus: " + key;
  if (drawn !== key) { $("detail").focus({ preventScroll: true }); scrollTo(0, 0); }
  else if (focused) $(focused)?.focus();
  drawn = key;
}

// One read at a time: what comes while it goes on is read once more after it.
let reading = false, again = false;

async function refresh() {
  again = reading;
  if (reading) return;
  reading = true;
  await drawDetail();
  reading = false;
  if (again) refresh();
}

function back() { return make("p", {}, make("a", { id: "back", href: "#" }, "← all Transactions")); }

function table(name, heads, rows) {
  if (rows.length === 0) return make("p", { class: "faint" }, "none");
  return make("table", {}, make("caption", { class: "unseen" }, name),
    make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((c) => make("td", {}, ...[c].flat()))))));
}

function facts(d) {
  const all = [["ServiceAccount", d.serviceAccount], ["Progress", d.progress], ["Duration", d.duration], ["Failed item", d.failedItem],
    ["Failed attempts", d.failures], ["Recoveries", d.recoveries], ["Revision", d.revision], ["Undoes", d.undoOf]];
  return make("dl", {}, ...all.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, String(v))]));
}

function detail(d) {
  const heading = (text) => make("h3", {}, text);
  const parts = [back(), make("h2", { id: "title" }, signed(d.phase), " " + keyOf(d))];
  if (d.message) parts.push(make("p", {}, d.reason + ": " + d.message));
  parts.push(...d.unread.map((u) => make("p", { class: "trouble" }, "Not to be read: " + u)), facts(d));
  parts.push(heading("Order"), make("div", { class: "scroll", tabindex: "0", id: "graph", role: "group", "aria-label": "Graph of the items" }, graph(d.items, d.chain)));
  parts.push(heading("Items"), table("Items", ["State", "Item", "Change", "What there is to say"], d.items.map(itemCells)));
  parts.push(heading("Locks"), table("Locks", ["Held by", "Items", "Lease", "Renewed", "Waiting for it"], d.locks.map((l) => [
    !l.holder ? "nobody" : l.ours ? "● this Transaction" : "◌ " + l.holder, l.items.join(", "), make("code", {}, l.lease), time(l.renewed),
    l.waiting.join(", ") || "nobody"])));
  parts.push(heading("Timeline"), make("ol", {}, ...d.timeline.map((m) => make("li", {}, time(m.time), " " + m.what + (m.why ? " (" + m.why + ")" : "")))));
  parts.push(heading("Events"), table("Events", ["Time", "Type", "Reason", "Message"], d.events.map((e) => [
    time(e.time), e.type === "Warning" ? "! Warning" : e.type, e.reason + (e.count > 1 ? " ×" + e.count : ""), e.message])));
  return parts;
}

function itemCells(i) {
  const value = (v) => v || "(none)";
  const lines = [];
  if (i.reason || i.message) lines.push(make("div", {}, [i.reason, i.message].filter(Boolean).join(": ")));
  if (i.dependsOn.length) lines.push(make("div", { class: "faint" }, "after " + i.dependsOn.join(", ")));
  lines.push(...i.notes.map((n) => make("div", {}, n)));
  lines.push(...i.plan.map((f) => make("div", { class: "field" }, "± " + f.field + ": " + value(f.before) + " → " + value(f.after))));
  lines.push(...i.conflicts.map((f) => make("div", { class: "field" },
    "≠ " + f.field + " is " + value(f.after) + ", written by " + value(f.who) + "; it was to be " + value(f.before))));
  if (i.fields.length) lines.push(make("div", { class: "faint field" }, "sets " + i.fields.join(" ")));
  return [signed(i.state), i.name, i.type + " " + i.target + (i.effect ? ": " + i.effect : ""), lines];
}

// --- The graph: a column for each step that an item is away from those that wait for nothing.

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

// --- What changes.

// Many changes at once are drawn together.
let waiting = false, stale = false;

function changed(key) {
  if (told) return;
  // What others do shows in the locks of one that runs.
  const open = opened();
  stale ||= key === open || (open && known.has(open) && !known.get(open).ended);
  // An event is written after the change that it tells of.
  if (key === open) setTimeout(refresh, 2000);
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    drawList();
    if (stale) refresh();
    stale = false;
  }, 100);
}

function connect() {
  const stream = new EventSource("api/stream");
  const on = (name, act) => stream.addEventListener(name, (e) => act(JSON.parse(e.data)));
  stream.addEventListener("open", () => { told = new Set(); });
  on("transaction", (t) => {
    const key = keyOf(t), old = known.get(key);
    known.set(key, t);
    told?.add(key);
    if (!told && (!old || old.phase !== t.phase)) $("news").textContent = "Transaction " + key + " is " + t.phase;
    changed(key);
  });
  on("deleted", (t) => { known.delete(keyOf(t)); $("news").textContent = "Transaction " + keyOf(t) + " is deleted"; changed(keyOf(t)); });
  on("synced", () => {
    for (const key of known.keys()) if (!told.has(key)) known.delete(key);
    told = null;
    $("connection").textContent = "● live";
    drawList();
    drawDetail();
  });
  // Who may look is asked anew now and then: the stream ends for it, and nothing is wrong.
  on("again", () => { stream.close(); connect(); });
  on("trouble", (t) => { $("connection").textContent = "✗ " + t.error; });
  stream.addEventListener("error", async () => {
    $("connection").textContent = "✗ not connected; what is shown may be old";
    if (stream.readyState !== EventSource.CLOSED) return;
    // A stream that is refused is not asked for again by the browser, and does not say why.
    const answer = await fetch("api/transactions").catch(() => null);
    if (answer && !answer.ok) $("connection").textContent = "✗ " + ((await answer.json().catch(() => ({}))).error || answer.status);
    setTimeout(connect, 3000);
  });
}

// --- The keyboard.

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.matches("input, select");
  const act = (f) => { e.preventDefault(); f(); };
  if (e.key === "Escape") {
    if (opened()) act(() => { location.hash = ""; });
    else act(() => { $("text").value = ""; drawList(); if (typing) e.target.blur(); });
  } else if (e.key === "/" && !typing) act(() => { location.hash = ""; $("overview").hidden = false; $("text").focus(); });
  else if (opened() || e.target.matches("select")) return;
  else if (e.key === "ArrowDown" || (e.key === "j" && !typing)) act(() => move(1));
  else if (e.key === "ArrowUp" || (e.key === "k" && !typing)) act(() => move(-1));
  else if (e.key === "Enter" && e.target.id === "text") act(() => $("rows").querySelector("a")?.click());
});

$("filters").addEventListener("submit", (e) => e.preventDefault());
$("filters").addEventListener("input", drawList);
window.addEventListener("hashchange", async () => {
  await drawDetail();
  if (!opened() && document.activeElement !== $("text")) focusRow(current);
});
$("phase").append(...phases.map((p) => make("option", { value: p }, p)));
connect();
