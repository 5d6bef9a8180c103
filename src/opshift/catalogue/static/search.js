// Search of the catalogue: the index is loaded on first use.
"use strict";

const MAX_RESULTS = 12;

// Number of edits between two words, where swapping neighbours is one edit; `limit + 1` if there are more.
function distance(a, b, limit) {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let [before, row] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + !same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        next[j] = Math.min(next[j], before[j - 2] + 1);
      }
    }
    if (Math.min(...next) > limit) return limit + 1;
    [before, row] = [row, next];
  }
  return row[b.length];
}

// Words of a title: `LayerNormalization` also has the words `layer` and `normalization`.
function titleWords(title) {
  const parts = title.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[^\w.]+/);
  return [title, ...parts].map((each) => each.toLowerCase());
}

function exactScore(term, entry) {
  const title = entry.names[0];
  if (title === term) return 100;
  if (title.startsWith(term)) return 80;
  if (entry.names.some((name) => name.startsWith(term))) return 60;
  if (title.includes(term)) return 50;
  if (entry.words.some((word) => word.startsWith(term))) return 20;
  return entry.words.some((word) => word.includes(term)) ? 10 : 0;
}

function tolerantScore(term, entry) {
  const exact = exactScore(term, entry);
  if (exact || term.length < 4) return exact;
  const limit = term.length > 5 ? 2 : 1;
  const edits = Math.min(...entry.names.map((name) => distance(term, name, limit)));
  if (edits <= limit) return 50 - 10 * edits;
  return entry.words.some((word) => distance(term, word, 1) <= 1) ? 10 : 0;
}

// Factors of scores: pages and commands come before operators, and those before sections of the documentation.
const WEIGHTS = { page: 2, command: 2, operators: 1.5, opsets: 1.5 };

// Ways to match, from the strictest to the most tolerant: the score of a term, and the share of terms that match.
const PASSES = [[exactScore, 1], [tolerantScore, 1], [tolerantScore, 0.5]];

function prepare(index) {
  return index.map(([title, kind, path, words, versions]) => ({
    title, kind, path, versions, names: titleWords(title), words: [...words.split(" "), ...versions],
    weight: WEIGHTS[kind] ?? WEIGHTS[path.split("/")[0]] ?? 1,
    // fixed parts of a message
    parts: kind === "error message" ? title.toLowerCase().split("...").map((each) => each.trim()) : null,
  }));
}

const isNumber = (term) => /^\d+$/.test(term);

// Return the path of the page of a version (`13`) or of a comparison (`6-13`), from that of the operator.
const versionPath = (path, version) => path.replace(/index\.html$/, `${version}.html`);

// Return an entry for the version in the query, or for the comparison of two; by default the given entry.
function withVersion(entry, terms) {
  const versions = [...new Set(terms.filter((term) => entry.versions.includes(term)))];
  if (versions.length === 2 && terms.some((term) => entry.names[0] === term)) {
    const [old, latest] = versions.map(Number).sort((a, b) => a - b);
    return {
      ...entry, title: `${entry.title} ${old} to ${latest}`, path: versionPath(entry.path, `${old}-${latest}`),
    };
  }
  const version = versions.find((each) => entry.names[0].startsWith(terms[terms.indexOf(each) - 1]));
  if (!version) return entry;
  return { ...entry, title: `${entry.title} ${version}`, path: versionPath(entry.path, version) };
}

// Return a list with an entry for the changes between the two opsets in the query; empty for other queries.
function changesBetween(entries, terms) {
  const opsets = terms.filter(isNumber).map(Number).sort((a, b) => a - b);
  const words = terms.filter((term) => !isNumber(term));
  const entry = entries.find((each) => each.path === "changes.html");
  const known = entry && words.filter((term) => exactScore(term, entry));
  if (opsets.length !== 2 || !known?.length || known.length < words.length / 2) return [];
  const [above, upto] = opsets;
  return [{ ...entry, title: `Changes between opsets ${above} and ${upto}`, path: `changes.html?above=${above}&upto=${upto}` }];
}

function search(entries, query) {
  const text = query.toLowerCase();
  const terms = text.match(/\w[\w.]*\w|\w/g) ?? [];
  if (!terms.length) return [];
  const messages = entries.filter((entry) => entry.parts?.every((part) => text.includes(part)));
  messages.push(...changesBetween(entries, terms));
  for (const [score, share] of PASSES) {
    const found = [];
    for (const entry of entries) {
      const scores = terms.map((term) => score(term, entry));
      if (scores.filter(Boolean).length >= share * terms.length) {
        found.push([entry.weight * scores.reduce((sum, each) => sum + each, 0), entry]);
      }
    }
    if (found.length) {
      found.sort((a, b) => b[0] - a[0] || a[1].title.length - b[1].title.length);
      const ranked = found.map((each) => withVersion(each[1], terms));
      return [...new Set([...messages, ...ranked])].slice(0, MAX_RESULTS);
    }
  }
  return messages;
}

function start(form) {
  const [field, list, status] = ["query", "results", "status"]
    .map((name) => document.getElementById(`site-${name}`));
  const root = new URL(form.dataset.root, location.href);
  let entries = null;
  let chosen = -1;
  form.hidden = false;

  function load() {
    if (document.getElementById("site-index")) return;
    const script = document.createElement("script");
    script.id = "site-index";
    script.src = form.dataset.index;
    script.onload = () => {
      entries = prepare(self.searchIndex);
      show();
    };
    script.onerror = () => {
      status.textContent = "The search index cannot be loaded.";
      status.classList.remove("visually-hidden");
    };
    document.head.append(script);
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  function choose(position) {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = position;
    const item = list.children[chosen];
    item?.setAttribute("aria-selected", "true");
    item?.scrollIntoView({ block: "nearest" });
    if (item) field.setAttribute("aria-activedescendant", item.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function show() {
    if (!entries) return;
    const results = search(entries, field.value);
    choose(-1);
    list.replaceChildren(...results.map((entry, position) => {
      const item = document.createElement("li");
      item.id = `site-result-${position}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      const link = document.createElement("a");
      link.href = new URL(entry.path.split("#").map(encodeURI).join("#"), root);
      link.tabIndex = -1;
      link.textContent = entry.title;
      const kind = document.createElement("small");
      kind.textContent = entry.kind;
      link.append(" ", kind);
      item.append(link);
      return item;
    }));
    const isEmpty = !field.value.trim();
    status.textContent = isEmpty ? "" : results.length ? `${results.length} results` : "Nothing found.";
    status.classList.toggle("visually-hidden", isEmpty || results.length > 0);
    list.hidden = !results.length;
    field.setAttribute("aria-expanded", String(results.length > 0));
  }

  field.addEventListener("focus", load);
  field.addEventListener("input", () => { load(); show(); });
  field.addEventListener("keydown", (event) => {
    const count = list.children.length;
    if (event.key === "Escape") close();
    else if (count && !list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(chosen < 0 && step < 0 ? count - 1 : (chosen + step + count) % count);
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    (list.children[Math.max(chosen, 0)]?.firstChild)?.click();
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
  form.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) close();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
}

if (typeof document !== "undefined") start(document.getElementById("site-search"));
