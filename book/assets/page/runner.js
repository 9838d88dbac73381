/* Run, Edit, Reset and Stop under the code cells of a page.
 *
 * Nothing is loaded before the first Run. The cells are those of the page, in its order, also the
 * folded ones; cells tagged no-live say why they stay as they are. A classic script: from disk,
 * where workers are blocked, it still explains itself.
 */
(function () {
  "use strict";

  const parts = window.cpRunner;
  const SIZE = "18 MB";
  const cells = [];
  let queue = []; // cells that the reader asked for, in order
  let current = null; // the cell that the reader asked for and that runs, or waits for others
  let running = null; // what Python runs now: { cell, source, dropped }; it may be an earlier cell
  let announcer = null;

  function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    Object.entries(properties).forEach(function ([key, value]) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    });
    made.append(...children);
    return made;
  }

  function button(text, label, press) {
    return element("button", { type: "button", "aria-label": label, onclick: press }, text);
  }

  /* A button that cannot be used now stays reachable by keyboard. */
  function enable(which, on) {
    if (on) which.removeAttribute("aria-disabled");
    else which.setAttribute("aria-disabled", "true");
  }

  function usable(which) {
    return which.getAttribute("aria-disabled") !== "true";
  }

  function announce(text) {
    announcer.textContent = text;
  }

  function code(cell) {
    return cell.edit === null ? cell.original : cell.edit;
  }

  /* Why a cell is not live. What it imports decides; the tag alone says only that it is not. */
  function reason(source) {
    if (/^\s*(import|from)\s+torch\b/m.test(source)) return "needs PyTorch";
    if (/\b(subprocess|multiprocessing|distributed|torchrun)\b/.test(source)) {
      return "starts processes";
    }
    return "needs more than a browser's Python";
  }

  /* ---- running ---- */

  function say(cell, text, share) {
    const bar = cell.progress;
    cell.note.textContent = text;
    bar.hidden = share === undefined;
    if (share !== undefined) bar.value = share;
  }

  function refresh(cell) {
    enable(cell.reset, cell.edit !== null || cell.live);
    enable(cell.stop, current !== null);
    cell.editButton.textContent = cell.editor ? "Done" : "Edit";
    cell.editButton.setAttribute("aria-expanded", String(Boolean(cell.editor)));
    cell.bar.classList.toggle("cp-edited", cell.edit !== null);
  }

  function refreshAll() {
    cells.forEach(refresh);
  }

  /* What the note of a cell says while nothing happens. */
  function settle(cell) {
    const edited = cell.edit !== null;
    let text = "";
    if (cell.ran) text = "Ran in " + cell.seconds + " s. The output is live.";
    else if (cell.live) text = "The output is of an earlier run.";
    else if (edited) text = "Edited. The output is of the book's code until you run it.";
    say(cell, text);
    refresh(cell);
  }

  /* The same after a change by the reader; a cell that runs, or waits, goes on to say so. */
  function resettle(cell) {
    const waits = cell === current || queue.some((job) => job.cell === cell);
    if (waits || (running && running.cell === cell)) refresh(cell);
    else settle(cell);
  }

  function place(cell) {
    if (!cell.outputs) {
      cell.outputs = element("div", { className: "cell_output docutils container" });
      if (cell.solution) cell.bar.after(cell.outputs);
      else cell.node.append(cell.outputs);
    }
    if (!cell.stored) cell.stored = Array.from(cell.outputs.childNodes);
  }

  function unlive(error) {
    const skipped = document.querySelector(".cp-no-live");
    const about = /^(NameError|ImportError|ModuleNotFoundError)$/.test(error.name);
    return skipped && about ? "\nCells that are not live have not run here." : "";
  }

  function enliven(shown) {
    try {
      (shown.matches(".cp-quiz") ? window.cpQuiz : window.cpExplorables).add(shown);
    } catch (error) {
      // HTML of the reader's own that only looks like one: it stays as it is
    }
  }

  async function execute(cell, asker, fresh) {
    place(cell);
    let empty = true;
    let failed = false;
    const wrapped = cell.outputs;
    const began = performance.now();
    const job = { cell: cell, source: code(cell), dropped: false };
    const clear = function () {
      if (empty) wrapped.replaceChildren();
      empty = false;
      cell.live = true; // so that Reset brings the book's output back, however this run ends
    };
    running = job;
    wrapped.setAttribute("aria-busy", "true");
    say(asker, cell === asker ? "Running" : "Running cell " + cell.number + " first");
    try {
      const question = { cell: cell.number, code: job.source, fresh: fresh };
      const fine = await parts.run(question, function (o) {
        if (job.dropped) return;
        clear();
        if (o.kind === "error") {
          o.text += unlive(o);
          failed = true;
        }
        parts.show(wrapped, o);
      });
      if (job.dropped) return true;
      clear();
      wrapped.querySelectorAll(".cp-explorable, .cp-quiz").forEach(enliven);
      cell.ran = fine && code(cell) === job.source;
      cell.seconds = ((performance.now() - began) / 1000).toFixed(1);
      cell.failing = fine ? null : job.source;
      if (!fine && cell.details) cell.details.open = true;
      return fine && !failed;
    } finally {
      running = null;
      wrapped.removeAttribute("aria-busy");
    }
  }

  /* A cell builds on all before it; only an exercise does without the other exercises. */
  function needs(cell, other) {
    return !other.ran && (!other.exercise || other.home === cell.home);
  }

  /* Python must be there. A new start forgets every run. */
  async function ready(asker) {
    if (!parts.alive()) {
      forget();
      say(asker, "Loading Python, numpy and cpcore", 0);
      announce("Loading Python, numpy and cpcore, about " + SIZE + ".");
    }
    await parts.start(function (progress) {
      say(asker, progress.text, progress.share);
    });
  }

  function forget() {
    cells.forEach(function (cell) {
      cell.ran = false;
      resettle(cell);
    });
  }

  async function attempt(job) {
    const cell = job.cell;
    current = cell;
    refreshAll();
    try {
      await ready(cell);
      if (job.fresh) forget();
      const earlier = cells.slice(0, cells.indexOf(cell)).filter((other) => needs(cell, other));
      let fresh = job.fresh;
      for (const other of earlier.concat(cell)) {
        const fine = await execute(other, cell, fresh);
        fresh = false;
        settle(other);
        if (fine) continue;
        queue.forEach((waiting) => settle(waiting.cell));
        queue = [];
        announce("Cell " + other.number + " ended with an error.");
        if (code(other) === other.failing) say(other, "Ended with an error. The output is live.");
        if (other !== cell) {
          say(cell, "Cell " + other.number + ", which runs first, ended with an error.");
        }
        return;
      }
      if (cell.ran) announce("Cell " + cell.number + " has run.");
    } catch (error) {
      queue = [];
      ended(cell, error.message);
    }
  }

  /* Python is gone: stopped by the reader, broken, or never there. */
  function ended(cell, why) {
    const stopped = why === "stopped";
    const text = stopped
      ? "Stopped. The next Run starts Python again and runs the earlier cells first."
      : "Python ended: " + why + ". Run tries again.";
    if (!stopped) parts.stop();
    forget();
    say(cell, text);
    announce(text);
  }

  async function work() {
    if (current) return;
    while (queue.length) {
      await attempt(queue.shift());
      current = null;
      refreshAll();
    }
  }

  /* True if the run of this cell will not show what it holds now. */
  function outdated(cell) {
    const here = running !== null && running.cell === cell;
    return here && (running.dropped || running.source !== code(cell));
  }

  function request(jobs) {
    const problem = parts.obstacle();
    if (problem) {
      say(jobs[0].cell, problem);
      announce(problem);
      return;
    }
    if (jobs[0].fresh) {
      queue = queue.filter((waiting) => !jobs.some((job) => job.cell === waiting.cell));
    }
    jobs.forEach(function (job) {
      if (queue.some((waiting) => waiting.cell === job.cell)) return;
      if (job.cell === current && !job.fresh && !outdated(job.cell)) return;
      queue.push(job);
      if (current && job.cell !== current) say(job.cell, "Waits for cell " + current.number + ".");
    });
    work();
  }

  function stop() {
    if (!current) return;
    queue.forEach((job) => settle(job.cell));
    queue = [];
    parts.stop("stopped");
  }

  /* ---- editing ---- */

  function paint(cell) {
    if (cell.edit === null) cell.pre.replaceChildren(...cell.printed);
    else cell.pre.replaceChildren(parts.colored(cell.edit), "\n");
  }

  function change(cell, text) {
    cell.edit = text === cell.original ? null : text;
    cell.ran = false;
    paint(cell);
    const kept = parts.edits.keep(cell.number, cell.original, cell.edit);
    resettle(cell);
    if (!kept) say(cell, "Edited. This browser keeps no edits: it is lost when you leave.");
  }

  function toggle(cell) {
    if (cell.editor) {
      cell.editor.close();
      cell.editor = null;
      refresh(cell);
      return;
    }
    if (cell.details) cell.details.open = true;
    const label =
      "Code of cell " + cell.number + ". Shift+Enter runs it. Escape, then Tab, leaves the field.";
    cell.editor = parts.edit(
      cell.pre,
      code(cell),
      label,
      (text) => change(cell, text),
      () => request([{ cell: cell }])
    );
    refresh(cell);
  }

  function reset(cell) {
    if (cell.editor) toggle(cell);
    if (running && running.cell === cell) running.dropped = true; // what it still says is not shown
    change(cell, cell.original);
    if (cell.stored) cell.outputs.replaceChildren(...cell.stored);
    cell.live = false;
    resettle(cell);
    announce("Cell " + cell.number + " holds the book's code again.");
  }

  /* An edit of code that the book has changed since stays within reach, and is not applied. */
  function offer(cell, edit) {
    const text = element("span", {}, "The book has changed this cell since you edited it. ");
    const row = element("p", { className: "cp-older" }, text);
    const away = function () {
      parts.edits.keep(edit.cell, edit.original, null);
      row.remove();
    };
    const show = button("Show my edit", "Show my edit of cell " + cell.number, function () {
      away();
      change(cell, edit.code);
      if (!cell.editor) toggle(cell);
    });
    const drop = button("Discard it", "Discard my edit of cell " + cell.number, function () {
      away();
      cell.editButton.focus();
    });
    row.append(show, " ", drop);
    cell.bar.after(row);
  }

  function recall() {
    parts.edits.load().forEach(function (edit) {
      const same = cells.filter((cell) => cell.original === edit.original);
      const cell = same.find((one) => one.number === edit.cell) || same[0];
      if (cell) {
        cell.edit = edit.code;
        paint(cell);
      } else if (cells.length) {
        offer(cells.find((one) => one.number >= edit.cell) || cells[cells.length - 1], edit);
      }
    });
    cells.forEach(settle);
  }

  /* ---- the page ---- */

  function bar(cell) {
    const n = " cell " + cell.number;
    const when = (name, act) => () => usable(cell[name]) && act();
    const run = button("Run", "Run" + n, () => request([{ cell: cell }]));
    const above = button("Run all above", "Run all above" + n, () =>
      request(cells.slice(0, cells.indexOf(cell) + 1).map((c, i) => ({ cell: c, fresh: i === 0 })))
    );
    cell.editButton = button("Edit", "Edit" + n, () => toggle(cell));
    cell.reset = button("Reset", "Reset" + n, when("reset", () => reset(cell)));
    cell.stop = button("Stop", "Stop Python, cell " + cell.number, when("stop", stop));
    cell.note = element("span", { className: "cp-run-note" });
    cell.progress = element("progress", { max: 1, value: 0, hidden: true });
    cell.progress.setAttribute("aria-label", "Python loaded");
    const row = [run, cell.editButton, cell.reset, cell.stop];
    if (cells.length) row.push(above);
    return element("div", { className: "cp-run" }, ...row, cell.progress, cell.note);
  }

  function adopt(node, input, number) {
    const pre = input.querySelector("pre");
    const details = input.closest("details");
    const original = pre.textContent.replace(/\n$/, "");
    if (node.classList.contains("tag_no-live")) {
      const text =
        "Not live: this cell " + reason(original) + ". Run the notebook to change it.";
      input.after(element("p", { className: "cp-no-live" }, text));
      return;
    }
    const outputs = node.querySelector(".cell_output");
    const cell = { node, pre, details, original, number, outputs };
    cell.printed = Array.from(pre.childNodes);
    cell.solution = node.classList.contains("tag_hide-cell");
    cell.exercise = node.classList.contains("tag_exercise");
    cell.home = node.closest("section");
    Object.assign(cell, { edit: null, editor: null, ran: false, live: false, stored: null });
    cell.bar = bar(cell);
    // A folded solution keeps its buttons inside; code that is only hidden has them in sight.
    (details && !cell.solution ? details : input).after(cell.bar);
    cells.push(cell);
  }

  function head() {
    const all = button("Run all", "Run all cells", () =>
      request(cells.map((cell, i) => ({ cell: cell, fresh: i === 0 })))
    );
    const help = element(
      "details",
      {},
      element("summary", {}, "How it works"),
      element(
        "p",
        {},
        "The first Run loads Python, about " + SIZE + ", from this site and from nowhere else. " +
          "It runs on your device and has no network. Run also runs the earlier cells that have " +
          "not run. Shift+Enter runs the cell that you edit; Escape, then Tab, leaves its field. " +
          "Stop ends Python at once, and the next Run starts it again. While Python is there, " +
          "explorables are drawn by it. Edits stay in this browser until you reset them."
      )
    );
    const text = element("p", {}, "The code on this page runs in your browser. ", all);
    return element("div", { className: "cp-run-head" }, text, help);
  }

  function start() {
    const nodes = Array.from(document.querySelectorAll("div.cell"));
    nodes.forEach(function (node, i) {
      const input = node.querySelector(".cell_input");
      if (input) adopt(node, input, i + 1);
    });
    if (!cells.length) return;
    nodes[0].before(head());
    announcer = element("div", { className: "cp-run-status", role: "status" });
    document.querySelector(".bd-article").append(announcer);
    recall();
    window.cpExplorables.connect(null); // they say which way they are drawn
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
