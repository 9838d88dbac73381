/* Exercises: hints open in order, and what is solved stays in this browser.
 *
 * Progress has the form of cpcore.exercises.progress, so it can be carried to Jupyter and back:
 * {"version": 1, "exercises": {NAME: {"solved": true, "hints": 2}}}. A classic script that works
 * from disk and under a strict content policy; it inserts text and nodes, never HTML.
 */
(function () {
  "use strict";

  const KEY = "cp-progress";
  const VERSION = 1;
  const MOST_HINTS = 3;
  const FIELDS = ["solved", "hints", "started"];
  const hints = {}; // name of an exercise -> its folds, in order
  const marks = {}; // name of an exercise -> its state in the map
  let entries = {};
  let status = null;

  function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    Object.entries(properties || {}).forEach(function ([key, value]) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    });
    made.append(...children);
    return made;
  }

  function button(text, press) {
    return element("button", { type: "button", onclick: press }, text);
  }

  /* ---- the form ---- */

  function counts(value, most) {
    return Number.isInteger(value) && value >= 0 && value <= most;
  }

  /* Entries of a text of this form; an Error, and nothing is taken over, for any other text. */
  function parse(text) {
    let data = null;
    try {
      data = JSON.parse(text);
    } catch (error) {
      throw new Error("this is not JSON");
    }
    const found = data && data.version === VERSION ? data.exercises : null;
    if (!found || typeof found !== "object" || Array.isArray(found)) {
      throw new Error("this is not progress of version " + VERSION);
    }
    Object.entries(found).forEach(function ([name, entry]) {
      const whole = entry && typeof entry === "object" && !Array.isArray(entry);
      const known = whole && Object.keys(entry).every((key) => FIELDS.includes(key));
      const fine =
        known &&
        (entry.solved === undefined || typeof entry.solved === "boolean") &&
        (entry.hints === undefined || counts(entry.hints, MOST_HINTS)) &&
        (entry.started === undefined || counts(entry.started, Number.MAX_SAFE_INTEGER));
      if (!fine) throw new Error("the entry of " + name + " is not progress");
    });
    return found;
  }

  function written() {
    return JSON.stringify({ version: VERSION, exercises: entries }, null, 1);
  }

  function load() {
    try {
      return parse(localStorage.getItem(KEY) || written());
    } catch (error) {
      return {};
    }
  }

  /* False if this browser keeps nothing here. */
  function store() {
    try {
      if (Object.keys(entries).length) localStorage.setItem(KEY, written());
      else localStorage.removeItem(KEY);
      return true;
    } catch (error) {
      return false;
    }
  }

  function entry(name) {
    return Object.prototype.hasOwnProperty.call(entries, name) ? entries[name] : {};
  }

  function change(name, fields) {
    entries = load(); // another page of this book may have written since
    entries[name] = Object.assign({}, entry(name), fields);
    if (!store()) say("This browser keeps nothing here: progress is lost when you leave.");
    show();
  }

  /* ---- what is shown ---- */

  function say(text) {
    status.textContent = text;
  }

  function opened(name) {
    return entry(name).hints || 0;
  }

  function show() {
    let solved = 0;
    Object.keys(hints).forEach(function (name) {
      const done = entry(name).solved === true;
      const used = opened(name);
      solved += done;
      const parts = [];
      if (done) parts.push("\u2713 solved");
      if (used) parts.push(used + " of " + MOST_HINTS + " hints");
      if (marks[name]) marks[name].textContent = parts.join(", ");
      hints[name].forEach(function (fold, i) {
        const locked = i > used;
        fold.classList.toggle("cp-locked", locked);
        const summary = fold.querySelector("summary");
        if (locked) summary.setAttribute("aria-disabled", "true");
        else summary.removeAttribute("aria-disabled");
        fold.querySelector(".cp-first").textContent = locked ? " (after the hint before)" : "";
      });
    });
    const total = Object.keys(hints).length;
    document.querySelector(".cp-solved").textContent = solved + " of " + total + " solved.";
  }

  function prepare(fold) {
    const name = fold.dataset.exercise;
    const place = (hints[name] = hints[name] || []).push(fold) - 1;
    const summary = fold.querySelector("summary");
    summary.append(element("span", { className: "cp-first" }));
    summary.addEventListener("click", function (event) {
      if (place <= opened(name)) return;
      event.preventDefault(); // also for the keys that open a fold
      say("Open the hint before this one first.");
    });
    fold.addEventListener("toggle", function () {
      if (fold.open && place === opened(name)) change(name, { hints: place + 1 });
    });
  }

  /* A column of the map: the state of each exercise, found by the link to its section. */
  function mark(table) {
    const head = table.querySelector("thead tr");
    head.append(element("th", { scope: "col", className: "head" }, "state"));
    table.querySelectorAll("tbody tr").forEach(function (row) {
      const link = row.querySelector("a[href^='#']");
      const target = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
      const home = target && target.closest("section");
      const fold = home && home.querySelector("details[data-exercise]");
      const cell = element("td", {});
      row.append(cell);
      if (fold) marks[fold.dataset.exercise] = cell;
    });
  }

  function merge(other) {
    Object.entries(other).forEach(function ([name, theirs]) {
      const mine = entry(name);
      const both = {
        solved: mine.solved === true || theirs.solved === true,
        hints: Math.max(mine.hints || 0, theirs.hints || 0),
      };
      const started = Math.max(mine.started || 0, theirs.started || 0);
      if (started) both.started = started;
      entries[name] = both;
    });
  }

  function carrier() {
    const field = element("textarea", { rows: 5, spellcheck: false });
    field.setAttribute("aria-label", "Progress as text");
    const give = button("Export", function () {
      entries = load();
      field.value = written();
      field.focus();
      field.select();
      say("Your progress is in the field. Copy it.");
    });
    const take = button("Import", function () {
      try {
        entries = load();
        merge(parse(field.value));
        say(store() ? "Imported." : "Imported, but this browser keeps nothing here.");
      } catch (error) {
        say("Not imported: " + error.message + ".");
      }
      show();
    });
    const forget = button("Reset", function () {
      if (forget.dataset.sure) {
        entries = {};
        store();
        show();
        say("All progress of this page is forgotten.");
      } else {
        say("Press Reset again to forget what is solved and which hints are open.");
      }
      forget.dataset.sure = forget.dataset.sure ? "" : "yes";
    });
    forget.addEventListener("blur", () => (forget.dataset.sure = ""));
    return element(
      "details",
      { className: "cp-carry" },
      element("summary", {}, "Carry or forget your progress"),
      field,
      element("p", {}, give, " ", take, " ", forget)
    );
  }

  /* Results that the page's Python adds; those that the page came with do not count. */
  function watch(article) {
    new MutationObserver(function (changes) {
      changes.forEach(function (one) {
        one.addedNodes.forEach(function (node) {
          if (node.nodeType !== Node.ELEMENT_NODE) return;
          const result = node.matches(".cp-result") ? node : node.querySelector(".cp-result");
          if (!result || result.dataset.result !== "accepted") return;
          if (hints[result.dataset.exercise]) change(result.dataset.exercise, { solved: true });
        });
      });
    }).observe(article, { childList: true, subtree: true });
  }

  function start() {
    const table = document.querySelector("#the-map table");
    if (!table) return;
    document.querySelectorAll("details[data-exercise]").forEach(prepare);
    mark(table);
    status = element("p", { className: "cp-said", role: "status" });
    const bar = element("div", { className: "cp-progress" });
    bar.append(element("p", { className: "cp-solved" }), carrier(), status);
    (table.closest(".pst-scrollable-table-container") || table).after(bar);
    entries = load();
    show();
    watch(document.querySelector(".bd-article"));
    window.addEventListener("storage", function (event) {
      if (event.key !== KEY) return;
      entries = load();
      show();
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
