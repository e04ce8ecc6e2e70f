// Everything that comes from objects is put in as text; nothing here makes markup of it.
"use strict";

const $ = (id) => document.getElementById(id);
const phases = ["Pending", "Preparing", "Prepared", "Committing", "Committed", "RollingBack", "RolledBack", "Planned", "Failed"];
const signs = {
  Committed: ["✓", "good"], Planned: ["✓", "good"], Failed: ["✗", "bad"], Unresolved: ["✗", "bad"], Rejected: ["✗", "bad"],
  RolledBack: ["↶", "back"], RollingBack: ["↶", "back"], Committing: ["▶", "busy"], Preparing: ["▶", "busy"], Prepared: ["▷", "busy"],
  Pending: ["○", "faint"], Skipped: ["–", "faint"],
};

// make makes an element of attributes and of children, which are elements or text.
function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function signed(state) { return sign(make("span"), state); }

function sign(e, state) {
  const [mark, kind] = signs[state] || ["•", "faint"];
  e.className = kind;
  e.textContent = mark + " " + state;
  return e;
}

function time(text) {
  return text ? make("time", { datetime: text }, text.replace("T", " ").replace("Z", "")) : "";
}

// A Transaction is known by its key, and opened by the hash of the address.
const keyOf = (t) => t.namespace + "/" + t.name;

function hashOf(t) { return "#" + encodeURIComponent(t.namespace) + "/" + encodeURIComponent(t.name); }

function opened() {
  const parts = location.hash.slice(1).split("/");
  if (parts.length !== 2) return "";
  try { return parts.map(decodeURIComponent).join("/"); } catch { return ""; }
}
