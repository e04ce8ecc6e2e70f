// The items of a Transaction, and what their changes have changed.
"use strict";

const itemHeads = ["State", "Item", "Change", "Messages"];

// The rows that are drawn, by position; which items are shown, and what with them; and what the server has said that the
// items have changed.
let itemRows = [], wantedItems = "", everyItem = false, withItems = "asked", differences = null;

// How many are shown unless a person wants to see all.
const atFirst = 100;

const filters = {
  "": () => true,
  open: (i) => !["Committed", "Skipped", "RolledBack"].includes(i.state),
  failed: (i) => ["Rejected", "Unresolved"].includes(i.state) || Boolean(i.reason && i.state === "Skipped"),
};

function forgetItems() { itemRows = []; wantedItems = ""; everyItem = false; withItems = "asked"; differences = null; }

// drawItems keeps each row that says what it has said, with what is marked in it.
function drawItems(d, into) {
  if (!into.firstChild) into.append(itemTools(d), make("div", { id: "differences", role: "status" }), make("table", { role: "table", id: "items" },
    make("caption", { class: "unseen" }, "Items"), headOf(itemHeads), make("tbody", { role: "rowgroup" })), moreButton());
  for (const o of into.querySelectorAll("#which option")) {
    o.textContent = o.dataset.name + " (" + d.items.filter(filters[o.value]).length + ")";
  }
  const list = [], wanted = d.items.map((i, n) => n).filter((n) => filters[wantedItems](d.items[n])), at = blocker(d);
  const shown = everyItem ? wanted : wanted.filter((n, k) => k < atFirst || n === at);
  into.querySelector("#more").hidden = shown.length === wanted.length;
  into.querySelector("#more").textContent = "Show all " + wanted.length + " items";
  shown.forEach((n) => {
    const i = d.items[n], changed = withItems === "asked" ? null : differences?.[n], text = JSON.stringify([i, changed, withItems]);
    if (itemRows[n]?.text !== text) {
      const r = rowOfCells(itemHeads, itemCells(i, changed));
      r.id = "item-" + n;
      r.tabIndex = -1;
      itemRows[n] = { text, element: r };
    }
    list.push(itemRows[n].element);
  });
  arrange(into.querySelector("tbody"), list);
}

function moreButton() {
  const button = make("button", { type: "button", id: "more" });
  button.addEventListener("click", () => { everyItem = true; redrawItems(); });
  return button;
}

function itemTools(d) {
  const which = make("select", { id: "which" }, ...[["", "all"], ["open", "not done"], ["failed", "failed"]]
    .map(([v, name]) => make("option", { value: v, "data-name": name }, name)));
  which.addEventListener("change", () => { wantedItems = which.value; redrawItems(); });
  const tools = make("div", { class: "tools" }, make("label", {}, "Show ", which));
  if (d.differences) {
    const chips = [["asked", "what was asked for"], ["changed", "what was changed"], ["undo", "what an undo would change"]].map(([v, name]) => {
      const input = make("input", { type: "radio", name: "with", value: v, id: "with-" + v });
      input.checked = v === withItems;
      input.addEventListener("change", () => { withItems = v; readDifferences(); });
      return make("label", { class: "chip" }, input, name);
    });
    tools.append(make("fieldset", {}, make("legend", { class: "unseen" }, "With each item"), ...chips));
  }
  return tools;
}

// What the items have changed is read when a user opens it: it takes the before-images.
async function readDifferences() {
  const key = opened(), note = $("differences");
  if (withItems !== "asked" && !differences) {
    note.textContent = "reading the before-images …";
    const answer = await fetch(pathOf(key) + "/differences").catch((e) => ({ ok: false, json: async () => ({ error: e.message }) }));
    const said = await answer.json().catch(() => ({ error: answer.status }));
    if (key !== opened()) return;
    if (answer.ok) differences = said;
    note.replaceChildren(answer.ok ? "" : make("p", { class: "trouble" }, "Not to be read: " + said.error));
  }
  if (differences) note.replaceChildren(...differencesNote());
  redrawItems();
}

function differencesNote() {
  if (withItems === "changed") return [make("p", { class: "faint" }, "From the before-images, and from the dry run of each change. Values of Secrets and of other confidential content are masked.")];
  if (withItems !== "undo") return [];
  const [namespace, name] = opened().split("/");
  return [make("p", { class: "faint" }, "From the before-images alone. What others have changed since, the plan of the undo tells, which it shows before it asks: ",
    copyable("kubectl janus undo " + name + " -n " + namespace))];
}

function itemCells(i, changed) {
  const lines = [], line = (kind, ...children) => lines.push(make("div", kind ? { class: kind } : {}, ...children));
  const value = (v) => v || "(none)";
  if (i.wait) line("wait", waiting(i.wait));
  if (i.reason || i.message) line("", [i.reason, i.message].filter(Boolean).join(": "));
  if (i.dependsOn.length) line("faint", "after " + i.dependsOn.join(", "));
  for (const n of i.notes) line("", n);
  for (const f of i.conflicts) line("field", "≠ " + f.field + " is " + value(f.after) + (f.who ? ", written by " + f.who : "") + "; it was to be " + value(f.before));
  if (withItems === "asked") {
    for (const f of i.plan) line("field", "± " + f.field + ": " + value(f.before) + " → " + value(f.after));
    if (i.fields.length) line("faint field", "sets " + i.fields.join(" "));
  } else if (changed) {
    lines.push(...changedLines(i, changed, withItems === "undo"));
  }
  const change = [i.type + " " + i.target + (i.effect ? ": " + i.effect : "")];
  if (i.show) change.push(" ", copyable(i.show, "the command that shows " + i.target, "copy kubectl get"));
  return [signed(i.state), i.name, change, lines];
}

const inverse = { Create: "an undo deletes it", Delete: "an undo creates it again", Update: "an undo sets back", Patch: "an undo sets back" };

function changedLines(i, changed, undo) {
  const line = (kind, text) => make("div", { class: kind }, text);
  if (changed.unread) return [line("trouble", "Not to be read: " + changed.unread)];
  if (undo && (i.state !== "Committed" || changed.note)) return [line("faint", "an undo changes nothing of it" + (changed.note ? ": " + changed.note : ""))];
  const out = undo ? [line("", inverse[i.type] || "an undo changes nothing of it")] : [];
  if (changed.note) out.push(line("faint", changed.note));
  for (const f of changed.fields) {
    const [from, to] = undo ? [f.after, f.before] : [f.before, f.after];
    out.push(line("field", (from ? to ? "~ " : "− " : "+ ") + f.field + " " + [from, to].filter(Boolean).join(" → ")));
  }
  return out;
}

// Shows an item in the list of them, and puts the keyboard there.
function showItem(n) {
  if (!itemRows[n]?.element.isConnected) { wantedItems = $("which").value = ""; everyItem = true; redrawItems(); }
  itemRows[n].element.scrollIntoView({ block: "center" });
  itemRows[n].element.focus({ preventScroll: true });
}
