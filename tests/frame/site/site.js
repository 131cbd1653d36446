// The site's only script: the search, the switch that shows all code, and places inside folded code.
"use strict";

const root = document.body.dataset.root;
const query = document.getElementById("query");
const hits = document.getElementById("hits");
const KINDS = ["name", "page", "glossary", "section"];
const MOST = 30;
let active = -1;

// Smaller is better: the whole title, its beginning, the beginning of a word, anything else
function rank(entry, text, words) {
  const title = entry.title.toLowerCase();
  if (!words.every((word) => entry.words.includes(word))) return Infinity;
  const place = title.indexOf(text);
  const match = title === text ? 0 : place === 0 ? 1 : place > 0 && /\W/.test(title[place - 1]) ? 2 : 3;
  return match * 10 + KINDS.indexOf(entry.kind) + title.length / 1000;
}

const entries = SEARCH.entries.map(([kind, page, place, title]) => {
  const [file, where] = SEARCH.pages[page];
  const link = root + file + (place ? "#" + place : "");
  const shown = ["page", "glossary"].includes(KINDS[kind]) ? "" : where;
  return { kind: KINDS[kind], link, title, where: shown, words: `${title} ${where}`.toLowerCase() };
});

function search() {
  const text = query.value.trim().toLowerCase();
  const words = text.split(/\s+/);
  const ranked = text ? entries.map((entry) => [rank(entry, text, words), entry]) : [];
  const found = ranked.filter(([order]) => order < Infinity).sort((a, b) => a[0] - b[0]);
  hits.replaceChildren(...found.slice(0, MOST).map(([, entry], i) => hit(entry, i)));
  if (text && !found.length) hits.append(line("No results"));
  hits.hidden = !text;
  query.setAttribute("aria-expanded", String(Boolean(text)));
  activate(found.length ? 0 : -1);
}

function line(text) {
  const item = document.createElement("li");
  item.textContent = text;
  return item;
}

function hit(entry, i) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const about = document.createElement("small");
  item.id = `hit-${i}`;
  item.setAttribute("role", "option");
  link.href = entry.link;
  link.tabIndex = -1;
  link.textContent = entry.title;
  about.textContent = [entry.kind, entry.where].filter(Boolean).join(" · ");
  link.append(about);
  item.append(link);
  return item;
}

function activate(i) {
  const options = hits.querySelectorAll("[role=option]");
  active = options.length ? (i + options.length) % options.length : -1;
  options.forEach((option, k) => option.setAttribute("aria-selected", String(k === active)));
  if (active < 0) return query.removeAttribute("aria-activedescendant");
  query.setAttribute("aria-activedescendant", options[active].id);
  options[active].scrollIntoView({ block: "nearest" });
}

function close() {
  hits.hidden = true;
  query.setAttribute("aria-expanded", "false");
}

const KEYS = {
  ArrowDown: () => activate(active + 1),
  ArrowUp: () => activate(active - 1),
  Enter: () => active >= 0 && hits.querySelectorAll("a")[active].click(),
  Escape: () => {
    query.value = "";
    close();
  },
};

query.addEventListener("input", search);
query.addEventListener("keydown", (event) => {
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
hits.addEventListener("click", close);
document.addEventListener("click", (event) => event.target.closest(".search") || close());
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  query.focus();
});
document.querySelector(".search").hidden = false;

// One switch opens all folded code but the answers to exercises
const folded = document.querySelectorAll("details.code:not(.answer)");
const code = document.getElementById("code");
code.hidden = !folded.length;
code.addEventListener("click", () => {
  const open = code.getAttribute("aria-pressed") === "false";
  folded.forEach((part) => (part.open = open));
  code.setAttribute("aria-pressed", String(open));
  code.textContent = open ? "Fold the code" : "Show all code";
});

// A link to a name opens the code that defines it
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = place?.parentElement.closest(".exported")?.querySelector("details");
  if (!part) return;
  part.open = true;
  place.scrollIntoView();
}
window.addEventListener("hashchange", reveal);
reveal();
