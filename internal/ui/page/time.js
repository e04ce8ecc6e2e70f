// Times, and what changes with them.
"use strict";

// How far the clock of this machine is behind that of the server, in milliseconds.
let behind = 0;

async function setClock() {
  const answer = await fetch("icon.svg", { method: "HEAD" }).catch(() => null);
  const there = answer && Date.parse(answer.headers.get("Date"));
  if (there && Math.abs(there - Date.now()) > 3000) behind = there - Date.now();
}

const now = () => Date.now() + behind;

function time(text) {
  return text ? make("time", { datetime: text }, text.replace("T", " ")) : "";
}

// A duration as kubectl says it.
function human(seconds) {
  const s = Math.max(0, Math.floor(seconds)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  const two = (a, unit, b, small) => a + unit + (b ? b + small : "");
  if (s < 120) return s === 60 ? "1m" : s + "s";
  if (m < 10) return two(m, "m", s % 60, "s");
  if (h < 3) return m + "m";
  if (h < 8) return two(h, "h", m % 60, "m");
  if (d < 2) return h + "h";
  return d < 8 ? two(d, "d", h % 24, "h") : d + "d";
}

const between = (from, to) => ((to ? Date.parse(to) : now()) - Date.parse(from)) / 1000;

// The time since, or between two; the first is kept up to date.
function lasting(from, to = "", title = from) {
  const e = make("span", { title: title.replace("T", " ") }, from ? human(between(from, to)) : "");
  if (from && !to) e.dataset.since = from;
  return e;
}

// What a Transaction waits for: "Waiting 12s of 5m: 1/3 Pods ready".
function waiting(w, withItem) {
  const text = make("span", {}, "Waiting ");
  if (w.since) text.append(lasting(w.since), w.limit ? " of " + human(w.limit) : "");
  if (withItem && w.item) text.append(" for " + w.item);
  if (w.for) text.append(": " + w.for);
  return text;
}

setInterval(() => {
  if (document.hidden) return;
  for (const e of document.querySelectorAll("[data-since]")) e.textContent = human(between(e.dataset.since));
  redrawTimeline();
}, 1000);
