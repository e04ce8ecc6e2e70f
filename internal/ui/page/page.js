// What changes, and what the keyboard does.
"use strict";

// While a stream begins: the keys that it has told of. The others are gone when it is through.
let told = null;

// Many changes at once are drawn together.
let pending = false, stale = false;

function changed(key) {
  if (told) return;
  // What others do shows in the locks of one that runs.
  const open = opened();
  stale ||= key === open || (open && known.has(open) && !known.get(open).ended);
  // An event is written after the change that it tells of.
  if (key === open) setTimeout(refresh, 2000);
  if (pending) return;
  pending = true;
  setTimeout(() => {
    pending = false;
    drawList();
    if (stale) refresh();
    stale = false;
  }, 100);
}

// A browser opens six connections to a host, and each stream is one of them: a page that nobody
// looks at leaves its own to others, and is told everything again when somebody does.
let following = null;

function connect() {
  following?.close();
  following = null;
  if (document.hidden) {
    $("connection").textContent = "‖ paused";
    return;
  }
  const stream = new EventSource("api/stream");
  following = stream;
  const on = (name, act) => stream.addEventListener(name, (e) => act(JSON.parse(e.data)));
  stream.addEventListener("open", () => { told = new Set(); });
  on("transaction", (t) => {
    const key = keyOf(t), old = known.get(key);
    known.set(key, t);
    told?.add(key);
    if (!told && (!old || shownState(old) !== shownState(t))) say("Transaction " + key + " is " + shownState(t));
    changed(key);
  });
  on("deleted", (t) => { known.delete(keyOf(t)); say("Transaction " + keyOf(t) + " is deleted"); changed(keyOf(t)); });
  on("synced", () => {
    for (const key of known.keys()) if (!told.has(key)) known.delete(key);
    told = null;
    $("connection").textContent = "● live";
    drawList();
    drawDetail();
  });
  // Who may look is asked again now and then: the stream ends for it, and nothing is wrong.
  on("again", connect);
  on("trouble", (t) => { $("connection").textContent = "✗ " + t.error; });
  stream.addEventListener("error", async () => {
    $("connection").textContent = "✗ not connected; what is shown may be old";
    if (stream.readyState !== EventSource.CLOSED) return;
    // A stream that is refused is not asked for again by the browser, and does not say why.
    const answer = await fetch("api/transactions").catch(() => null);
    const why = answer && !answer.ok ? (await answer.json().catch(() => ({}))).error || answer.status : "";
    if (stream !== following) return;
    if (why) $("connection").textContent = "✗ " + why;
    setTimeout(() => { if (stream === following) connect(); }, 3000);
  });
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) $("connection").textContent = "connecting …";
  connect();
});

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.matches("#text, select");
  const act = (f) => { e.preventDefault(); f(); };
  if (e.key === "Escape") {
    if (opened()) act(() => { location.hash = back; });
    else act(() => { filterBy("#"); takeFilters(); drawList(); if (typing) e.target.blur(); });
  } else if (e.key === "/" && !typing) act(() => { if (opened()) location.hash = back; $("overview").hidden = false; $("text").focus(); });
  else if (opened() || e.target.matches("select")) return;
  else if (e.key === "ArrowDown" || (e.key === "j" && !typing)) act(() => move(1));
  else if (e.key === "ArrowUp" || (e.key === "k" && !typing)) act(() => move(-1));
  else if (e.key === "Enter" && e.target.id === "text") act(() => $("rows").querySelector("a")?.click());
});

// Where the list was left, with its filters.
let back = "#";

// Each letter that is typed is no page of its own to go back to.
function filterBy(hash) {
  back = hash;
  history.replaceState(null, "", hash);
}

$("filters").addEventListener("submit", (e) => e.preventDefault());
$("filters").addEventListener("input", () => {
  filterBy(filterHash());
  drawList();
});
window.addEventListener("hashchange", async () => {
  const left = drawn;
  if (!opened()) {
    takeFilters();
    back = filterHash();
    drawList();
  }
  $("back").href = back;
  await drawDetail();
  if (left && !opened() && document.activeElement !== $("text")) focusRow(current);
});
makeStates();
takeFilters();
back = filterHash();
setClock();
connect();
