// The list of Transactions.
"use strict";

// The Transactions by key, their rows by uid, and the key of the row that the keyboard is on.
const known = new Map(), rowOf = new Map();
let current = "";

function shown() {
  const words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const namespace = $("namespace").value, phase = $("phase").value;
  return [...known.values()]
    .filter((t) => (!namespace || t.namespace === namespace) && (!phase || t.phase === phase))
    .filter((t) => words.every((w) => [t.namespace, t.name, t.phase, t.reason, t.message].join(" ").toLowerCase().includes(w)))
    .sort((a, b) => b.created.localeCompare(a.created) || keyOf(a).localeCompare(keyOf(b)));
}

// A row stays the element that it is, with all in it, for as long as it is shown: the browser drops a
// click if what the mouse was pressed on has gone when it is released.
function row(t) {
  if (!rowOf.has(t.uid)) rowOf.set(t.uid, newRow(t));
  const r = rowOf.get(t.uid);
  if (r.shows === t) return r.element;
  r.shows = t;
  sign(r.phase, t.phase);
  r.progress.textContent = t.progress;
  r.reason.textContent = t.reason;
  r.reason.title = t.message;
  return r.element;
}

function newRow(t) {
  const r = { phase: make("span"), progress: make("td"), reason: make("td") };
  const link = make("a", { href: hashOf(t) }, t.name);
  link.addEventListener("focus", () => { current = keyOf(t); });
  r.element = make("tr", { "data-key": keyOf(t) },
    make("td", {}, r.phase), make("td", {}, t.namespace), make("th", { scope: "row" }, link), r.progress, r.reason, make("td", {}, time(t.created)));
  r.element.addEventListener("click", () => { location.hash = hashOf(t); });
  return r;
}

// Puts elements into a parent in their order, and moves none that is in its place.
function arrange(parent, elements) {
  const wanted = new Set(elements);
  for (const e of [...parent.children]) if (!wanted.has(e)) e.remove();
  let at = parent.firstElementChild;
  for (const e of elements) {
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
}

function drawList() {
  const uids = new Set([...known.values()].map((t) => t.uid));
  for (const uid of rowOf.keys()) if (!uids.has(uid)) rowOf.delete(uid);
  const list = shown(), inTable = $("rows").contains(document.activeElement);
  arrange($("rows"), list.map(row));
  $("count").textContent = list.length + " of " + known.size + " Transactions";
  if (inTable && !$("rows").contains(document.activeElement)) focusRow(current);
  drawNamespaces();
}

// What there is to choose from is left as it is while somebody chooses.
function drawNamespaces() {
  const chosen = $("namespace").value, options = [...$("namespace").options].slice(1).map((o) => o.value);
  const spaces = [...new Set([...known.values()].map((t) => t.namespace))].sort();
  if (chosen && !spaces.includes(chosen)) spaces.push(chosen);
  if (spaces.join("/") === options.join("/")) return;
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
