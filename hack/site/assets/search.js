// Searches the text of all pages. That is loaded when the first letter is typed, by a script
// and not by a request, which a page that was read from a disk may not make.
const pagesURL = new URL("pages.js", document.currentScript.src);
const field = document.querySelector("#search");
const list = document.querySelector("#found");
field.parentElement.hidden = false;

let loaded;
function load() {
  loaded ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: pagesURL, onload: () => resolve(window.janusPages), onerror: reject });
    document.head.append(script);
  });
  return loaded;
}

// A page is found if it has all words: first come those that have them in their title, then
// those that have them side by side, and decisions after other pages.
function search(pages, words) {
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const rank = (page) => (has(page.title) ? 0 : phraseIn(page, words) >= 0 ? 2 : 4) + page.path.startsWith("adr/");
  return pages.filter((page) => has(page.title + " " + page.text)).sort((a, b) => rank(a) - rank(b)).slice(0, 12);
}

function phraseIn(page, words) {
  return page.text.toLowerCase().indexOf(words.join(" "));
}

function entry(page, words) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const excerpt = document.createElement("span");
  const phrase = phraseIn(page, words);
  const looked = phrase >= 0 ? words.join(" ") : words[0];
  const at = page.text.toLowerCase().indexOf(looked);
  link.textContent = page.title;
  link.href = new URL(page.path, pagesURL);
  if (at >= 0) {
    // The browser scrolls to the words as they are written there.
    link.href += "#:~:text=" + encodeURIComponent(page.text.slice(at, at + looked.length)).replaceAll("-", "%2D");
    excerpt.textContent = "… " + page.text.slice(Math.max(0, at - 40), at + 80) + " …";
  }
  item.append(link, excerpt);
  return item;
}

field.addEventListener("input", async () => {
  const pages = await load();
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? search(pages, words) : [];
  list.replaceChildren(...found.map((page) => entry(page, words)));
  list.hidden = !words.length;
  if (words.length && !found.length) list.textContent = "No page has these words.";
});
