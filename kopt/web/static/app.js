"use strict";
// Keys, colours, cited lines, questions asked before, and runs that go on. Every page works without it.
(() => {
  const root = document.documentElement, $ = (query, of = document) => of.querySelector(query);
  const all = (query, of = document) => [...of.querySelectorAll(query)];
  const kept = {
    read: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    write: (name, value) => { try { value === null ? localStorage.removeItem(name) : localStorage.setItem(name, value); } catch { /* not kept */ } },
  };

  // --- colours
  function turn() {
    const next = { undefined: "light", light: "dark", dark: undefined }[root.dataset.theme];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    kept.write("kopt-theme", next ?? null);
    told();
  }
  function told() {
    const now = root.dataset.theme ?? "as the system has it";
    $("#theme").title = `Colours: ${now} (t)`;
    $("#theme").setAttribute("aria-label", `Colours: ${now}`);
  }
  $("#theme").addEventListener("click", turn);
  told();

  // --- work that takes a while
  let since = 0, ticking = null;
  function busy(what) {
    since = performance.now();
    const line = $("#busy");
    const say = () => {
      const seconds = Math.round((performance.now() - since) / 1000);
      line.hidden = seconds < 1;
      line.textContent = `${what} ${seconds} s${seconds > 8 ? ": the index may be being built, once" : ""}`;
    };
    clearInterval(ticking);
    ticking = setInterval(say, 500);
    root.classList.add("working");
  }
  addEventListener("pageshow", () => { clearInterval(ticking); $("#busy").hidden = true; root.classList.remove("working"); });
  addEventListener("submit", (event) => {
    if (event.target.method === "dialog") return;
    for (const field of all("input, select", event.target)) // a shorter address: fields that say nothing are left out
      if (field.name && !field.value && !field.required) { field.disabled = true; setTimeout(() => { field.disabled = false; }); }
    busy("Working …");
  });
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && link.origin === location.origin &&
        link.pathname + link.search !== location.pathname + location.search) busy("Loading …");
  });

  // --- questions asked before, kept by this browser alone
  const MOST = 8;
  function before() {
    try {
      const found = JSON.parse(kept.read("kopt-asked") ?? "[]");
      return Array.isArray(found) ? found.filter((one) => typeof one === "string").slice(0, MOST) : [];
    } catch { return []; }
  }
  const asked = $("#answer")?.dataset.question;
  if (asked) kept.write("kopt-asked", JSON.stringify([asked, ...before().filter((one) => one !== asked)].slice(0, MOST)));
  const recent = $("#recent");
  if (recent && before().length) {
    for (const one of before()) {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = "/?q=" + encodeURIComponent(one);
      link.textContent = one;
      item.append(link);
      $("ul", recent).append(item);
    }
    recent.hidden = false;
  }

  // --- a cited line: those of a range are marked, what hides the first is opened, and it is brought into view
  function land() {
    for (const one of all(".hit")) one.classList.remove("hit");
    const at = location.hash.match(/^#L(\d{1,7})(?:-L?(\d{1,7}))?$/);
    const source = location.hash.match(/^#s\d+$/) && document.getElementById(location.hash.slice(1));
    if (source) source.classList.add("hit");
    const gone = $("#no-line");
    let first = null;
    for (let line = at ? +at[1] : 1; at && line <= Math.min(+(at[2] ?? at[1]), +at[1] + 500); line++) {
      const one = document.getElementById("L" + line);
      first ??= one;
      one?.classList.add("hit");
    }
    if (gone) {
      gone.hidden = !at || !!first;
      gone.textContent = at ? `This page has no line ${at[1]}. It may have been changed since it was cited.` : "";
    }
    first?.closest("details")?.setAttribute("open", "");
    first?.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", land);
  const beside = $(".beside"), current = $(".beside [aria-current]");
  if (current) beside.scrollTop = current.offsetTop - beside.clientHeight / 2;
  land();
  for (const mark of all("[data-source]")) {
    const source = document.getElementById("s" + mark.dataset.source);
    for (const [name, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]])
      mark.addEventListener(name, () => source?.classList.toggle("near", on));
  }

  // --- a list that is narrowed as one types
  for (const field of all("[data-filter]")) {
    const list = $(field.dataset.filter), none = $(field.dataset.none);
    const narrow = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const item of all("li", list)) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
      for (const group of all("section", list).reverse()) group.hidden = !all("li", group).some((item) => !item.hidden);
      none.hidden = all("li", list).some((item) => !item.hidden);
      $("a", none).href = "/wiki?q=" + encodeURIComponent(field.value);
    };
    field.addEventListener("input", narrow);
    addEventListener("pageshow", narrow);  // a browser that goes back fills the field again
  }

  // --- what goes on: the page is fetched again where its mark has changed, and put in place of what is shown
  const EVERY = 1500;
  async function look() {
    const marked = $("[data-mark]");
    if (!marked || document.hidden) return;
    try {
      const answer = await fetch(marked.dataset.markAt);
      if (!answer.ok || (await answer.json()).mark === marked.dataset.mark) return;
      const page = await fetch(location.href);
      if (!page.ok) return;
      const made = new DOMParser().parseFromString(await page.text(), "text/html");
      const opened = all("details").map((one) => one.open), top = scrollY;
      const at = all("[data-list] a").indexOf(document.activeElement);
      document.title = made.title;
      $("#main").replaceChildren(...$("#main", made).childNodes);
      all("details").forEach((one, n) => { if (n < opened.length) one.open = opened[n]; });
      if (at >= 0) all("[data-list] a")[at]?.focus();
      scrollTo(0, top);
    } catch { /* the server is gone: what is shown stays, and is looked after again later */ }
  }
  if ($("[data-mark]") && !$("[data-ended]")) setInterval(look, EVERY);

  // --- keys
  const items = () => all("[data-list]").flatMap((list) =>
    list.tagName === "TABLE" ? all("tbody tr", list).map((row) => $("a", row)) : all("li", list).map((item) => $("a", item)))
    .filter((link) => link && link.offsetParent !== null);
  function step(by) {
    const found = items();
    if (!found.length) return false;
    const at = found.indexOf(document.activeElement);
    const next = found[at < 0 ? (by > 0 ? 0 : found.length - 1) : Math.min(found.length - 1, Math.max(0, at + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }
  const help = $("#help");
  $("#keys").addEventListener("click", () => help.showModal());
  let going = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const on = document.activeElement, typing = on?.matches?.("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape") { if (typing) on.blur(); return; }
    if (typing || help.open) return;
    const inside = on?.matches?.(".scroll, pre, .events");  // arrows scroll what has the focus
    let done = true;
    if (Date.now() - going < 1500 && $(`[data-go="${CSS.escape(event.key)}"]`)) $(`[data-go="${CSS.escape(event.key)}"]`).click();
    else if (event.key === "/") { $("#ask").focus(); $("#ask").select(); }
    else if (event.key === "?") help.showModal();
    else if (event.key === "t") turn();
    else if (event.key === "j" || (event.key === "ArrowDown" && !inside && items().includes(on))) done = step(1);
    else if (event.key === "k" || (event.key === "ArrowUp" && !inside && items().includes(on))) done = step(-1);
    else if (event.key === "[") history.back();
    else if (event.key === "]") history.forward();
    else if (event.key === "g") { going = Date.now(); event.preventDefault(); return; }
    else done = false;
    going = 0;
    if (done) event.preventDefault();
  });
})();
