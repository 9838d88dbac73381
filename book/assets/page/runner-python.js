/* The page's side of its Python: starts the worker when first needed, asks it, ends it. */
(function () {
  "use strict";

  const script = document.currentScript;
  const MB = 1e6;
  const SMALLEST = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]); // a WebAssembly module
  let worker = null;
  let booted = null; // promise of the start; null before and after a worker's life
  let waiting = {}; // id of a question -> how its promise ends
  let asked = 0;
  let output = null; // takes the outputs of the cell that runs
  let progress = null; // takes { text, share } while Python loads
  let cache = "default"; // "reload" once a file came damaged: the browser may have kept it

  /* Why this page cannot run Python at all, or "". */
  function obstacle() {
    if (location.protocol === "file:") {
      return (
        "Python needs the served site, and this page was opened from disk: run make serve, or " +
        "read the book online. Text and explorables work here too."
      );
    }
    try {
      if (typeof Worker === "function" && new WebAssembly.Module(SMALLEST)) return "";
    } catch (error) {
      // the browser has no WebAssembly, or a setting or policy forbids it
    }
    return (
      "Python needs WebAssembly and workers, and this browser does not let the page use them. " +
      "Text and explorables work all the same."
    );
  }

  function ask(op, question) {
    return new Promise(function (resolve, reject) {
      waiting[++asked] = { resolve: resolve, reject: reject };
      worker.postMessage(Object.assign({ id: asked, op: op }, question));
    });
  }

  function tell(loaded, total) {
    if (loaded >= total) {
      progress({ text: "Starting Python, " + (total / MB).toFixed(1) + " MB", share: 1 });
      return;
    }
    const figures = (loaded / MB).toFixed(1) + " of " + (total / MB).toFixed(1) + " MB";
    const share = Math.min(1, loaded / total);
    progress({ text: "Loading Python, numpy, cpcore: " + figures, share: share });
  }

  function hear(event) {
    const said = event.data;
    if (said.op === "output") {
      if (output) output(said.output);
    } else if (said.op === "loaded") {
      if (progress) tell(said.bytes, said.total);
    } else if (said.op === "broken") {
      stop("an error broke it");
    } else if (said.id in waiting) {
      const answer = waiting[said.id];
      delete waiting[said.id];
      if (said.op === "done") answer.resolve(said.result);
      else answer.reject(new Error(said.text));
    }
  }

  /* Ends the worker, whatever it does; the questions that it had not answered fail. */
  function stop(reason) {
    const open = Object.values(waiting);
    if (worker) worker.terminate();
    worker = booted = output = progress = null;
    waiting = {};
    if (window.cpExplorables) window.cpExplorables.connect(null);
    open.forEach(function (answer) {
      answer.reject(new Error(reason || "stopped"));
    });
  }

  /* True if Python runs, or starts. */
  function alive() {
    return booted !== null;
  }

  /* Resolves when Python runs; `show` gets the progress of its start. */
  function start(show) {
    if (booted) return booted;
    stop();
    progress = show;
    const version = script.dataset.live;
    worker = new Worker(new URL("runner-worker.js?v=" + version, script.src));
    worker.onmessage = hear;
    worker.onerror = function () {
      stop("its worker could not be loaded");
    };
    booted = ask("boot", { version: version, cache: cache }).then(
      function () {
        progress = null;
        cache = "default";
        if (window.cpExplorables) window.cpExplorables.connect(draw);
      },
      function (error) {
        stop();
        if (error.message.includes("damaged")) cache = "reload";
        throw error;
      }
    );
    return booted;
  }

  /* Runs one cell. Resolves to true, or to false after an error of the cell. */
  function run(request, show) {
    output = show;
    return ask("run", request);
  }

  /* The picture of an explorable, as harmless fragments; null while Python is busy. */
  function draw(name, values) {
    if (!worker || Object.keys(waiting).length) return null;
    return ask("draw", { name: name, values: values }).then(function (lines) {
      const harmless = window.cpRunner.harmless;
      return { say: harmless(lines[0]), stage: harmless(lines.slice(1).join("\n")) };
    });
  }

  window.cpRunner = Object.assign(window.cpRunner || {}, {
    obstacle: obstacle,
    alive: alive,
    start: start,
    run: run,
    stop: stop,
  });
})();
