"use strict";
// Search over an index that comes as a script, so that it works from a folder too; and the line that an address names.
(() => {
  const root = document.documentElement.dataset.root;
  const input = document.getElementById("kopt-search"), found = document.getElementById("kopt-found");
  const MOST = 30, MOST_OF_PAGE = 3;
  let index = null, wanted = null;

  // The index: [file, what it is cited as, title, kind, [[line, heading, asks, [line, text, line, text, ...]], ...]]
  globalThis.koptIndex = (pages) => {
    index = [];
    for (const [file, cited, title, kind, sections] of pages)
      for (const [line, heading, asks, said] of sections) {
        const lines = [];
        for (let at = 0; at < said.length; at += 2) lines.push([said[at], said[at + 1], said[at + 1].toLowerCase()]);
        index.push({ file, cited, title, kind, line, heading, lines, name: title.toLowerCase(),
          head: heading.toLowerCase(), asks: asks.toLowerCase(), text: lines.map((one) => one[2]).join("\n") });
      }
    search();
  };
  function load() {
    if (wanted) return;
    wanted = document.createElement("script");
    wanted.src = root + "_/index.js";
    wanted.onerror = () => { wanted = null; show("The search index could not be loaded.", []); };
    document.head.append(wanted);
  }

  const letters = (c) => c !== undefined && /[\p{L}\p{N}_]/u.test(c);
  function worth(text, word) { // 0: not there, 1: in a word, 2: at the start of one, 3: a whole one
    let best = 0;
    for (let at = text.indexOf(word); at >= 0 && best < 3; at = text.indexOf(word, at + 1)) {
      const begins = !letters(text[at - 1]), ends = !letters(text[at + word.length]);
      best = Math.max(best, begins && ends ? 3 : begins ? 2 : 1);
    }
    return best;
  }
  function scored(section, words) {
    let score = 0, has = 0;
    for (const word of words) {
      const of = 4 * worth(section.name, word) + 3 * worth(section.head, word) + 2 * worth(section.asks, word) + worth(section.text, word);
      if (of) { has += 1; score += of; }
    }
    return has ? { section, has, score: score / words.length } : null;
  }
  function snippet(section, words) {
    let best = [section.line, "", ""], most = 0;
    for (const one of section.lines) {
      const count = words.reduce((sum, word) => sum + worth(one[2], word), 0);
      if (count > most) [best, most] = [one, count];
    }
    return best;
  }

  function search() {
    const asked = input.value.trim();
    if (!asked) { found.hidden = true; return; }
    if (!index) { load(); show("Loading …", []); return; }
    const cited = asked.match(/([\w%.-]+(?:\/[\w%.-]+)+):L(\d+)/);
    if (cited) {
      const of = index.find((one) => one.cited === cited[1]);
      show(of ? "" : "No page of this site is cited so.", of ? [link(of, +cited[2], cited[0], [])] : []);
      return;
    }
    const words = [...new Set(asked.toLowerCase().split(/\s+/))].slice(0, 16);
    let hits = index.map((section) => scored(section, words)).filter(Boolean);
    const most = hits.reduce((sum, hit) => Math.max(sum, hit.has), 0);
    hits = hits.filter((hit) => hit.has >= Math.min(most, Math.max(1, words.length - 2)));
    hits.sort((a, b) => b.has - a.has || b.score - a.score);
    const counts = new Map(), shown = [];
    for (const { section } of hits) {
      const count = counts.get(section.file) ?? 0;
      if (count === MOST_OF_PAGE) continue;
      counts.set(section.file, count + 1);
      const [line, text] = snippet(section, words);
      shown.push(link(section, line, text, words));
      if (shown.length === MOST) break;
    }
    show(shown.length ? "" : "Nothing found.", shown);
  }

  function link(section, line, text, words) {
    const a = document.createElement("a"), title = document.createElement("b"), kind = document.createElement("small");
    a.href = root + section.file + "#L" + line;
    title.textContent = section.heading && section.heading !== section.title ? section.heading : section.title;
    kind.textContent = `  ${section.title} · ${section.kind}`;
    const said = document.createElement("span");
    marked(said, text, words);
    a.append(title, kind, said);
    return a;
  }
  function marked(into, text, words) {
    const low = text.toLowerCase(), firsts = words.map((word) => low.indexOf(word)).filter((at) => at >= 0);
    let at = Math.max(0, Math.min(...firsts, text.length) - 80);
    const end = Math.min(text.length, at + 260);
    if (at) into.append("… ");
    while (at < end) {
      const next = words.map((word) => [low.indexOf(word, at), word.length]).filter(([to]) => to >= 0 && to < end)
        .sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
      if (!next || low.length !== text.length) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next[0], next[0] + next[1]);
      into.append(text.slice(at, next[0]), mark);
      at = next[0] + next[1];
    }
    into.append(text.slice(at, Math.max(at, end)), end < text.length ? " …" : "");
  }
  function show(said, links) {
    const note = document.createElement("p");
    note.textContent = said;
    found.replaceChildren(...(said ? [note] : []), ...links);
    found.hidden = false;
    found.scrollTop = 0;
  }

  input.addEventListener("focus", load);
  input.addEventListener("input", search);
  addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing) { input.focus(); input.select(); }
    else if (event.key === "Escape") { found.hidden = true; input.blur(); }
    else if (event.key === "Enter" && document.activeElement === input) links[0]?.click();
    else if (!found.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp") && (typing || at >= 0))
      (links[at + (event.key === "ArrowDown" ? 1 : -1)] ?? input).focus();
    else return;
    event.preventDefault();
  });
  addEventListener("click", (event) => {
    if (!event.target.closest("[role=search]") || event.target.closest("#kopt-found a")) found.hidden = true;
  });

  // A cited line: those of a range are marked, what hides it is opened, and it is brought into view.
  function land() {
    for (const one of document.querySelectorAll(".hit")) one.classList.remove("hit");
    const at = location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/);
    if (!at) return;
    const first = document.getElementById("L" + at[1]);
    for (let line = +at[1]; line <= Math.min(+(at[2] ?? at[1]), +at[1] + 500); line++)
      document.getElementById("L" + line)?.classList.add("hit");
    first?.closest("details")?.setAttribute("open", "");
    first?.scrollIntoView({ block: "center" });
  }
  document.querySelector(".kinds [aria-current]")?.scrollIntoView({ block: "nearest" });
  addEventListener("hashchange", land);
  land();
})();
