// All that there is to say of one Transaction.
"use strict";

// Reads for one Transaction overtake each other: that of the last asking counts.
let asked = 0;
// What is drawn: of which Transaction, and the answer that it was made of.
let drawn = "", drawnOf = "";

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
  const [text, parts] = await read(key);
  if (mine !== asked || key !== opened()) return;
  // What another client has marked, or scrolled to, is left as it is where there is nothing new.
  if (drawn === key && drawnOf === text) return;
  const focused = $("detail").contains(document.activeElement) && document.activeElement.id;
  const scrolled = drawn === key && $("graph")?.scrollLeft;
  $("parts").replaceChildren(...parts());
  if (scrolled && $("graph")) $("graph").scrollLeft = scrolled;
  document.title = "Janus: " + key;
  if (drawn !== key) { $("detail").focus({ preventScroll: true }); scrollTo(0, 0); }
  else if (focused) $(focused)?.focus();
  drawn = key;
  drawnOf = text;
}

// read returns what the server says of a Transaction, and what makes the parts of the page of that.
async function read(key) {
  const trouble = (text) => [text, () => [make("h2", { id: "title" }, key), make("p", { class: "trouble" }, text)]];
  try {
    const answer = await fetch("api/transactions/" + key.split("/").map(encodeURIComponent).join("/"));
    const text = await answer.text();
    if (answer.ok) {
      const d = JSON.parse(text);
      delete d.version; // It is another after each write, and not shown.
      return [JSON.stringify(d), () => detail(d)];
    }
    let error = "";
    try { error = JSON.parse(text).error; } catch { /* It is not janusd's, but that of something in between. */ }
    return trouble(error || answer.status + " " + answer.statusText);
  } catch (e) {
    return trouble("It could not be read: " + e.message);
  }
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

function table(name, heads, rows) {
  if (rows.length === 0) return make("p", { class: "faint" }, "none");
  return make("table", {}, make("caption", { class: "unseen" }, name),
    make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((c) => make("td", {}, ...[c].flat()))))));
}

function facts(d) {
  const all = [["ServiceAccount", d.serviceAccount], ["Progress", d.progress], ["Duration", d.duration], ["Failed item", d.failedItem],
    ["Failed attempts", d.failures], ["Recoveries", d.recoveries], ["Revision", d.revision], ["Undoes", d.undoOf],
    ["Approval", d.approval], ["Owned by", d.owner]];
  return make("dl", {}, ...all.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, String(v))]));
}

function detail(d) {
  const heading = (text) => make("h3", {}, text);
  const parts = [make("h2", { id: "title" }, signed(d.phase), " " + keyOf(d))];
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
