// The timeline of a Transaction: a bar for each thing that went on.
"use strict";

// How many items have a bar: of more, those that took longest.
const most = 40;

// The bars that are drawn, and the time that they are a part of.
let bars = [], whole = null;

function timelineOf(d) {
  whole = { from: d.created, to: d.ended };
  bars = [];
  const day = d.created.slice(0, 10);
  const clock = (text) => text.slice(0, 10) === day ? text.slice(11) : text.replace("T", " ");
  const rows = d.phases.map((p) => timelineRow(make("b", {}, p.what), [p], "phase", clock));
  const timed = d.items.filter((i) => i.spans.length);
  const shown = timed.length <= most ? timed : timed.filter((i) => i.spans.some((s) => !s.within) || i.name === d.failedItem)
    .sort((a, b) => longest(b) - longest(a)).slice(0, most).sort((a, b) => a.spans[0].from.localeCompare(b.spans[0].from));
  rows.push(...shown.map((i) => timelineRow(make("span", {}, signOf(i.state)[0] + " " + i.name), i.spans, "", clock)));
  const out = [table("Timeline", ["What", "From " + d.created.replace("T", " ") + " to " + (d.ended ? d.ended.replace("T", " ") : "now"), "When"], rows)];
  out[0].id = "gantt";
  if (shown.length < timed.length) out.push(make("p", { class: "faint" }, (timed.length - shown.length) + " more items were made, and not waited for."));
  out.push(make("p", { class: "faint" }, "A full bar is a wait. A hatched one is the time within which a change was made: the status keeps no time of a change that is not waited for."));
  redrawTimeline(true);
  return out;
}

const longest = (i) => Math.max(0, ...i.spans.filter((s) => !s.within).map((s) => between(s.from, s.to)));

function timelineRow(name, spans, kind, clock) {
  const svg = draw("svg", { class: "bar", width: "100%", height: 14, "aria-hidden": "true" });
  bars.push({ svg, spans, kind });
  const words = make("span", {});
  spans.forEach((s, n) => {
    if (n) words.append(make("br"));
    words.append(make("span", {}, ...spanWords(s, kind, clock)));
  });
  return [name, svg, words];
}

function spanWords(s, kind, clock) {
  if (s.within) return [s.what + " " + (s.to === s.from ? "at " + clock(s.from) : s.to ? "between " + clock(s.from) + " and " + clock(s.to) : "after " + clock(s.from))];
  if (s.to === s.from) return [(kind ? "" : s.what + " ") + "less than 1s, at " + clock(s.from)];
  return [kind ? "" : s.what + " ", lasting(s.from, s.to), s.to ? ", from " + clock(s.from) + " to " + clock(s.to) : ", since " + clock(s.from)];
}

// What has not ended grows.
function redrawTimeline(all) {
  if (!whole || (whole.to && !all)) return;
  const length = Math.max(1, between(whole.from, whole.to)), at = (text) => 100 * Math.min(1, Math.max(0, between(whole.from, text) / length));
  for (const { svg, spans, kind } of bars) {
    svg.replaceChildren(...spans.flatMap((s) => {
      const x = at(s.from), end = s.to ? at(s.to) : 100;
      const look = { class: kind || (s.within ? "within" : "wait"), y: s.within ? 4 : 1, height: s.within ? 6 : 12 };
      // What was shorter than a dot is a dot.
      return [draw("rect", { ...look, x: Math.min(x, 99.4) + "%", width: "0.6%" }), draw("rect", { ...look, x: x + "%", width: Math.max(0, end - x) + "%" })];
    }));
  }
}
