// Everything that comes from objects is put in as text; nothing here makes markup of it.
"use strict";

const $ = (id) => document.getElementById(id);
// The states of Transactions that the list is filtered by.
const states = ["Running", "Waiting", "Failed", "RolledBack", "Committed", "Planned"];
const signs = {
  Committed: ["✓", "good"], Planned: ["✓", "good"], Failed: ["✗", "bad"], Unresolved: ["✗", "bad"], Rejected: ["✗", "bad"],
  RolledBack: ["↶", "back"], RollingBack: ["↶", "back"], Waiting: ["◔", "wait"],
  Running: ["▶", "busy"], Committing: ["▶", "busy"], Preparing: ["▶", "busy"], Prepared: ["▷", "busy"],
  Pending: ["○", "faint"], Skipped: ["–", "faint"],
};

// make makes an element of attributes and of children, which are elements or text.
function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children.flatMap((c) => typeof c === "string" && tag !== "option" ? soft(c) : [c]));
  return e;
}

// A long path or name may go on in another line after a sign, and what is copied of it has no more in it.
function soft(text) {
  if (!/\S{20}/.test(text)) return [text];
  return text.split(/(?<=[.\/\-:,=\]@_])(?=\S)/).flatMap((t, n) => n ? [document.createElement("wbr"), t] : [t]);
}

// draw makes an element of a picture.
function draw(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

const signOf = (state) => signs[state] || ["•", "faint"];

function signed(state) { return sign(make("span"), state); }

function sign(e, state) {
  const [mark, kind] = signOf(state);
  e.className = kind;
  e.textContent = mark + " " + state;
  return e;
}

// What a Transaction is called in a row: one that waits does not say in which phase.
const shownState = (t) => t.state === "Running" ? t.phase : t.state;

// A Transaction is known by its key, and opened by the hash of the address.
const keyOf = (t) => t.namespace + "/" + t.name;

function hashOf(t) { return "#" + encodeURIComponent(t.namespace) + "/" + encodeURIComponent(t.name); }

function opened() {
  if (location.hash.startsWith("#?")) return "";
  const parts = location.hash.slice(1).split("/");
  if (parts.length !== 2) return "";
  try { return parts.map(decodeURIComponent).join("/"); } catch { return ""; }
}

// say tells readers of screens something; the same text twice is told twice.
function say(text) {
  $("news").textContent = "";
  setTimeout(() => { $("news").textContent = text; }, 50);
}

// A text with a button that copies it. If the button has a name, the text is not seen.
function copyable(text, what, name) {
  const code = make("code", name ? { class: "unseen" } : {}, text);
  const button = make("button", { type: "button", class: "copy", title: text, "aria-label": "Copy " + (what || text) }, name || "copy");
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); } catch {
      // The browser lets nobody write there: what is to be copied is marked.
      getSelection().selectAllChildren(code);
      say("Marked, copy it: " + text);
      return;
    }
    button.textContent = "✓ copied";
    say("Copied: " + text);
    setTimeout(() => { button.textContent = name || "copy"; }, 2000);
  });
  return make("span", { class: "command" }, code, " ", button);
}

// A table whose rows become cards where there is no room for columns: each cell has its head with it.
function table(name, heads, rows) {
  if (rows.length === 0) return make("p", { class: "faint" }, "none");
  return make("table", { role: "table" }, make("caption", { class: "unseen" }, name), headOf(heads),
    make("tbody", { role: "rowgroup" }, ...rows.map((cells) => rowOfCells(heads, cells))));
}

function headOf(heads) {
  return make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads.map((h) => make("th", { role: "columnheader", scope: "col" }, h))));
}

function rowOfCells(heads, cells) {
  return make("tr", { role: "row" }, ...cells.map((c, n) => make("td", { role: "cell", "data-head": heads[n] }, ...[c].flat())));
}

// How many of all are done: a bar, and the same in words.
function meter(done, waiting, total) {
  const part = (n) => (total ? 100 * n / total : 0) + "%";
  return draw("svg", { class: "meter", width: "100%", height: 6, "aria-hidden": "true" },
    draw("rect", { class: "rest", width: "100%", height: 6, rx: 3 }),
    draw("rect", { class: "wait", x: part(done), width: part(waiting), height: 6 }),
    draw("rect", { class: "good", width: part(done), height: 6, rx: 3 }));
}

const inNumbers = (t) => t.done + "/" + t.total + (t.waiting ? ", " + t.waiting + " waiting" : "");
