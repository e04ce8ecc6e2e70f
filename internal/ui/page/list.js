// The list of Transactions.
"use strict";

// The Transactions by key, their rows by uid, and the key of the row that the keyboard is on.
const known = new Map(), rowOf = new Map();
let current = "";

const wantedStates = () => new Set([...$("states").querySelectorAll("input:checked")].map((i) => i.value));

function shown() {
  const words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const namespace = $("namespace").value, wanted = wantedStates();
  return [...known.values()]
    .filter((t) => (!namespace || t.namespace === namespace) && (!wanted.size || wanted.has(t.state)))
    .filter((t) => words.every((w) => textOf(t).includes(w)))
    .sort((a, b) => b.created.localeCompare(a.created) || keyOf(a).localeCompare(keyOf(b)));
}

const textOf = (t) => [t.namespace, t.name, t.phase, t.state, t.serviceAccount, t.creator, t.reason, t.message].join(" ").toLowerCase();

// A row stays the element that it is, with all in it, for as long as it is shown: the browser drops a
// click if what the mouse was pressed on has gone when it is released.
function row(t) {
  if (!rowOf.has(t.uid)) rowOf.set(t.uid, newRow(t));
  const r = rowOf.get(t.uid);
  if (r.shows === t) return r.element;
  r.shows = t;
  sign(r.state, shownState(t));
  r.progress.replaceChildren(meter(t.done, t.waiting, t.total), make("span", {}, inNumbers(t)));
  r.took.replaceChildren(lasting(t.started, t.ended));
  r.message.replaceChildren(...messageOf(t));
  return r.element;
}

function messageOf(t) {
  if (t.wait) return [make("span", { class: "wait" }, waiting(t.wait, true), t.more ? "; and " + t.more + " more" : "")];
  if (t.state === "Committed" || t.state === "Running") return [];
  return [make("span", { class: "clamp", title: t.message }, [t.reason, t.message].filter(Boolean).join(": "))];
}

function newRow(t) {
  const cell = (head, ...children) => make("td", { role: "cell", "data-head": head }, ...children);
  const r = { state: make("span"), progress: cell("Progress"), took: cell("Took"), message: cell("Message") };
  const link = make("a", { href: hashOf(t) }, t.name);
  link.addEventListener("focus", () => { current = keyOf(t); });
  r.element = make("tr", { role: "row", "data-key": keyOf(t) },
    cell("State", r.state), make("th", { role: "rowheader", scope: "row", "data-head": "Transaction" }, link, make("div", { class: "faint" }, t.namespace)),
    r.progress, cell("Age", lasting(t.created)), r.took, cell("Made by", t.creator), cell("ServiceAccount", t.serviceAccount), r.message);
  r.element.addEventListener("click", (e) => { if (!e.target.closest("a")) location.hash = hashOf(t); });
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
  $("count").textContent = known.size ? list.length + " of " + known.size + " Transactions"
    : "No Transactions here. To make one: kubectl janus run -f FILE";
  if (inTable && !$("rows").contains(document.activeElement)) focusRow(current);
  drawNamespaces();
  drawStates();
}

// What there is to choose from is left as it is while a person chooses.
function drawNamespaces() {
  const chosen = $("namespace").value, options = [...$("namespace").options].slice(1).map((o) => o.value);
  const spaces = [...new Set([...known.values()].map((t) => t.namespace))].sort();
  if (chosen && !spaces.includes(chosen)) spaces.push(chosen);
  if (spaces.join("/") === options.join("/")) return;
  $("namespace").replaceChildren(make("option", { value: "" }, "all"), ...spaces.map((s) => make("option", { value: s }, s)));
  $("namespace").value = chosen;
}

// One box for each state, with the number of those that are in it.
function makeStates() {
  $("states").append(...states.map((s) => make("label", { class: "chip" }, make("input", { type: "checkbox", value: s }), signed(s), make("b", {}, "0"))));
}

function drawStates() {
  for (const chip of $("states").querySelectorAll("label")) {
    const n = [...known.values()].filter((t) => t.state === chip.firstChild.value).length;
    chip.lastChild.textContent = n;
    chip.classList.toggle("none", n === 0);
  }
}

// The filters are a part of the address, so that a link leads to what is seen.
function filterHash() {
  const q = new URLSearchParams();
  if ($("text").value) q.set("text", $("text").value);
  if ($("namespace").value) q.set("namespace", $("namespace").value);
  for (const s of wantedStates()) q.append("state", s);
  return q.size ? "#?" + q : "#";
}

function takeFilters() {
  if (opened()) return;
  const q = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  $("text").value = q.get("text") || "";
  const space = q.get("namespace") || "";
  if (space && ![...$("namespace").options].some((o) => o.value === space)) $("namespace").append(make("option", { value: space }, space));
  $("namespace").value = space;
  for (const i of $("states").querySelectorAll("input")) i.checked = q.getAll("state").includes(i.value);
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
