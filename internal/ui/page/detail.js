// All that there is to say of one Transaction.
"use strict";

// Reads for one Transaction overtake each other: that of the last asking counts.
let asked = 0;
// What is drawn: of which Transaction, and what each part of it was made of.
let drawn = "", parts = new Map(), last = null, focusOf = -1;

const pathOf = (key) => "api/transactions/" + key.split("/").map(encodeURIComponent).join("/");

async function drawDetail() {
  const key = opened();
  $("detail").hidden = !key;
  $("overview").hidden = Boolean(key);
  if (!key) {
    drawn = "";
    whole = null;
    document.title = "Janus: Transactions";
    return;
  }
  current = key;
  const mine = ++asked;
  const [d, trouble] = await read(key);
  if (mine !== asked || key !== opened()) return;
  const first = drawn !== key;
  if (first || last?.uid !== d?.uid || Boolean(trouble) !== parts.has("trouble")) {
    forgetItems();
    parts = new Map();
    whole = null;
    focusOf = -1;
    $("parts").replaceChildren();
  }
  const focused = $("detail").contains(document.activeElement) && document.activeElement.id;
  last = d;
  if (trouble) part("trouble", trouble, () => [make("h2", { id: "title" }, key), make("p", { class: "trouble" }, trouble)]);
  else drawParts(d);
  document.title = "Janus: " + (d ? shownState(d) + " " : "") + key;
  if (first) { $("detail").focus({ preventScroll: true }); scrollTo(0, 0); }
  else if (focused && document.activeElement === document.body) $(focused)?.focus();
  drawn = key;
}

// read returns what the server says of a Transaction, or why it says nothing.
async function read(key) {
  try {
    const answer = await fetch(pathOf(key)), text = await answer.text();
    if (answer.ok) return [JSON.parse(text), ""];
    let error = "";
    try { error = JSON.parse(text).error; } catch { /* It is not janusd's, but that of something in between. */ }
    return [null, error || answer.status + " " + answer.statusText];
  } catch (e) {
    return [null, "It could not be read: " + e.message];
  }
}

// One read at a time: what comes while it goes on is read once more after it.
let reading = false, again = false;

async function refresh() {
  again = reading;
  if (reading) return;
  reading = true;
  await drawDetail();
  // To read one with many items takes the API server some work, and a person no less time.
  if (last?.items.length > 50) await new Promise((done) => setTimeout(done, 1000));
  reading = false;
  if (again) refresh();
}

// part draws a part again if what it is made of is another. What a person has marked in a part, or
// scrolled to, is left as it is where there is nothing new.
function part(name, of, elements) {
  const text = JSON.stringify(of), old = parts.get(name);
  if (old?.text === text) return;
  const element = old?.element || make("section", { id: "part-" + name });
  const scrolled = [...element.querySelectorAll(".scroll")].map((e) => [e.id, e.scrollLeft, e.scrollTop]);
  element.replaceChildren(...elements().filter(Boolean));
  if (!old) $("parts").append(element);
  for (const [id, left, top] of scrolled) if ($(id)) { $(id).scrollLeft = left; $(id).scrollTop = top; }
  parts.set(name, { text, element });
}

const heading = (text) => make("h3", {}, text);

function drawParts(d) {
  part("head", [shownState(d), d.done, d.waiting, d.total, d.waits, d.state !== "Waiting" && d.reason, d.message, d.unread, d.namespace, d.name], () => head(d));
  part("facts", [d.phase, d.serviceAccount, d.creator, d.created, d.started, d.ended, d.failures, d.timedOut, d.recoveries, d.revision, d.undoOf, d.approval, d.owner], () => [facts(d)]);
  part("commands", d.commands, () => [heading("Commands"), make("ul", { class: "plain" }, ...d.commands.map((c) => make("li", {}, c.what + ": ", copyable(c.text))))]);
  drawOrder(d);
  part("timeline", [d.phases, d.items.map((i) => [i.name, i.spans, i.state]), d.ended], () => [heading("Timeline"), ...timelineOf(d)]);
  part("items", 0, () => [heading("Items"), make("div", { id: "item-list" })]);
  drawItems(d, $("item-list"));
  part("locks", d.locks, () => [heading("Locks"), ...locks(d.locks)]);
  part("history", [d.remembered, d.uid], () => historyOf(d));
  part("conditions", d.conditions, () => [heading("Conditions"), table("Conditions", ["Condition", "Is", "Since", "Reason now", "Message"],
    d.conditions.map((c) => [c.type, c.status, time(c.since), c.reason, c.message]))]);
  part("moments", d.timeline, () => [make("details", {}, make("summary", {}, "All times (" + d.timeline.length + ")"),
    make("ol", { id: "moments" }, ...d.timeline.map((m) => make("li", {}, time(m.time), " " + m.what + (m.why ? " (" + m.why + ")" : "")))))]);
  part("events", d.events, () => [heading("Events"), table("Events", ["Time", "Type", "Reason", "Message"], d.events.map((e) => [
    time(e.time), e.type === "Warning" ? "! Warning" : e.type, e.reason + (e.count > 1 ? " ×" + e.count : ""), e.message]))]);
}

function redrawItems() { if (last && $("item-list")) drawItems(last, $("item-list")); }

function head(d) {
  const link = copyable(location.href, "the link to this page", "copy link");
  const out = [make("div", { class: "title" }, make("h2", { id: "title" }, signed(shownState(d)), " " + keyOf(d)), link)];
  out.push(make("div", { class: "progress" }, meter(d.done, d.waiting, d.total),
    make("span", { id: "progress" }, d.done + " of " + d.total + (d.total === 1 ? " change" : " changes") + (d.waiting ? ", " + d.waiting + " waiting" : ""))));
  for (const w of d.waits.slice(0, 5)) out.push(make("p", { class: "wait now" }, signOf("Waiting")[0] + " ", waiting(w, true)));
  if (d.waits.length > 5) out.push(make("p", { class: "wait" }, "and " + (d.waits.length - 5) + " more"));
  if (d.message && !d.waits.length) out.push(make("p", {}, d.reason + ": " + d.message));
  return [...out, ...d.unread.map((u) => make("p", { class: "trouble" }, "Not to be read: " + u))];
}

function facts(d) {
  const all = [["Phase", d.phase], ["ServiceAccount", d.serviceAccount], ["Made by", d.creator], ["Created", time(d.created)], ["Took", lasting(d.started, d.ended)],
    ["Failed attempts", d.failures], ["Timed out", d.timedOut], ["Recoveries", d.recoveries], ["Revision", d.revision], ["Undoes", d.undoOf], ["Approval", d.approval]];
  return make("dl", {}, ...all.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v instanceof Node ? v : String(v))]));
}

// The order is drawn for the width that there is, and again when that is another.
function drawOrder(d) {
  const width = Math.floor($("parts").clientWidth), at = blocker(d);
  part("order", [d.items.map((i) => [i.name, i.state, i.kind, i.type, i.target, i.dependsOn, i.wait, i.message]), d.chain, width, at], () => [heading("Order"),
    make("div", { class: "scroll", tabindex: "0", id: "graph", role: "group", "aria-label": "Graph of the items" }, graph(d, width)), blockerLine(d), legend(d.items)]);
  // It is brought into view when it is another, and else left where a person has scrolled to.
  if (focusOf !== at && $("graph")) { focusOf = at; centre($("graph")); }
}

window.addEventListener("resize", () => {
  focusOf = -1;
  if (last && opened()) drawOrder(last);
});

// Of many locks those are shown that keep anybody waiting, and the others on demand.
function locks(all) {
  const of = (list) => table("Locks", ["Held by", "Items", "Since", "Lease", "Waiting for it"], list.map(lockCells));
  const quiet = all.length > 20 ? all.filter((l) => l.ours && !l.waiting.length) : [];
  if (!quiet.length) return [of(all)];
  const others = all.filter((l) => !quiet.includes(l));
  return [others.length ? of(others) : "", make("details", {}, make("summary", {}, quiet.length + " locks of this Transaction that nobody waits for"), of(quiet))];
}

function lockCells(l) {
  if (l.broken) return [make("span", { class: "trouble" }, "✗ broken: " + l.broken), l.items.join(", "), "", make("code", {}, l.lease), ""];
  const by = !l.holder ? "nobody" : l.ours ? make("span", {}, "● this Transaction") : l.transaction ? make("span", {}, "◌ ", linkTo(l.holder)) : make("span", {}, "◌ " + l.holder + ", by hand");
  const over = l.renewed && l.lasts && between(l.renewed) > l.lasts;
  return [by, l.items.join(", "), [lasting(l.held || l.renewed), over ? " (expired)" : ""], make("code", {}, l.lease),
    l.waiting.length ? l.waiting.flatMap((w, n) => [n ? ", " : "", linkTo(w)]) : "nobody"];
}

function linkTo(key) {
  const [namespace, name] = key.split("/");
  return make("a", { href: hashOf({ namespace, name }) }, key);
}

// What the namespace remembers, and the commands that lead back.
function historyOf(d) {
  if (!d.remembered.length) return [];
  return [heading("History of namespace " + d.namespace), table("History", ["Revision", "Transaction", "To undo all after it"], d.remembered.map((r) => [
    String(r.number) + (r.unchanged ? ", nothing was written" : ""),
    r.uid === d.uid ? make("b", {}, r.transaction + " (this one)") : linkTo(d.namespace + "/" + r.transaction),
    r.backTo ? copyable(r.backTo) : ""]))];
}
