/* The page's Python: a worker that loads Pyodide from this site, then gives up the network.
 *
 * What a reader's cell runs, runs here. Once Python and its packages are there, every global of
 * this worker that is not on a short list is removed, and text can no longer become code: so no
 * cell can reach another site, whatever it imports. Stop ends the whole worker.
 */
(function () {
  "use strict";

  const post = self.postMessage.bind(self);
  const folder = new URL("../pyodide/", self.location.href).href;
  let session = null;

  /* Downloads of one start: all begin at once, the page hears how many bytes have come, and
   * Pyodide, which asks for them one after the other, gets them from here. */
  function downloads(version, cache) {
    const fetch = self.fetch.bind(self);
    const load = self.importScripts.bind(self);
    const begun = new Map();
    const late = []; // checks of files that are used before they are complete
    let fail = null;
    // Pyodide waits for ever for a core file that does not come.
    const failed = new Promise(function (resolve, reject) {
      fail = reject;
    });
    failed.catch(function () {});
    let sizes = {};
    let sums = {}; // sha256 of each file
    let loaded = 0;
    let total = 0;

    function nameOf(address) {
      return new URL(address).pathname.split("/").pop();
    }
    function count(bytes) {
      loaded += bytes;
      if (total) post({ op: "loaded", bytes: loaded, total: total });
    }
    /* What came must be what the build wrote. Without a secure connection a browser has no digest,
     * and the length must do. */
    async function check(name, content) {
      let good = !sizes[name] || content.byteLength === sizes[name];
      if (good && sums[name] && crypto.subtle) {
        const digest = await crypto.subtle.digest("SHA-256", content);
        const bytes = Array.from(new Uint8Array(digest));
        good = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("") === sums[name];
      }
      if (!good) throw new Error(name + ": damaged, and refused");
      return content;
    }
    async function content(name, response) {
      try {
        return await response.arrayBuffer();
      } catch (error) {
        throw new Error(name + ": the connection ended too early");
      }
    }
    async function begin(name) {
      const coming = fetch(folder + name + "?v=" + version, { cache: cache });
      const response = await coming.catch(function () {
        throw new Error(name + ": no answer from the server");
      });
      if (!response.ok) throw new Error(name + ": the server answers " + response.status);
      // WebAssembly compiles while it loads, from the answer itself: what a browser has compiled of
      // one, it keeps for the next page.
      const ahead = name.endsWith(".wasm") ? response.clone() : null;
      const counting = new TransformStream({
        transform: function (chunk, controller) {
          count(chunk.length);
          controller.enqueue(chunk);
        },
      });
      const body = response.body.pipeThrough(counting);
      const counted = new Response(body, { headers: response.headers });
      // A stream that nobody reads would wait, so each is read now.
      const whole = content(name, counted).then((found) => check(name, found));
      if (!ahead) return new Response(await whole, { headers: response.headers });
      whole.catch(fail); // Pyodide waits for ever for WebAssembly that does not compile
      late.push(whole);
      return ahead;
    }
    async function json(name) {
      const response = await begin(name);
      return response.json().catch(function () {
        throw new Error(name + ": damaged, and refused");
      });
    }
    function start(names, manifest) {
      sizes = manifest.files;
      sums = manifest.sums;
      total = names.reduce((sum, name) => sum + sizes[name], 0);
      names.filter((name) => !name.endsWith(".js")).forEach(function (name) {
        const coming = begin(name);
        coming.catch(fail);
        begun.set(name, coming);
      });
    }
    function take(name) {
      const coming = begun.get(name);
      begun.delete(name);
      return coming;
    }
    self.fetch = function (resource, options) {
      const address = String(resource.url || resource);
      return take(nameOf(address)) || fetch(resource, options);
    };
    self.importScripts = function (address) {
      const name = nameOf(address);
      try {
        load(address + "?v=" + version);
      } catch (error) {
        throw new Error(name + ": could not be loaded");
      }
      count(sizes[name]);
    };
    return { json: json, start: start, take: take, failed: failed, late: late };
  }

  /* The wheels of these packages and of all that they need. */
  function wheels(names, packages) {
    const found = new Set();
    const waiting = names.slice();
    while (waiting.length) {
      const entry = packages[waiting.pop()];
      if (!entry || found.has(entry.file_name)) continue;
      found.add(entry.file_name);
      waiting.push(...entry.depends);
    }
    return Array.from(found);
  }

  async function boot(request) {
    const from = downloads(request.version, request.cache);
    const [manifest, lock] = await Promise.all([
      from.json("manifest.json"),
      from.json("pyodide-lock.json"),
    ]);
    const packages = ["numpy"];
    const core = Object.keys(manifest.files).filter((name) => !name.endsWith(".whl"));
    from.start(core.concat(wheels(packages, lock.packages)), manifest);
    self.importScripts(folder + "pyodide.js");
    const quiet = function () {};
    const options = { indexURL: folder, packages: packages, stdout: quiet, stderr: quiet };
    const pyodide = await Promise.race([self.loadPyodide(options), from.failed]);
    const zip = await (await from.take("cpcore.zip")).arrayBuffer();
    await Promise.all(from.late);
    pyodide.unpackArchive(zip, "zip", { extractDir: "/lib/python3.12/site-packages" });
    const send = function (output) {
      post({ op: "output", output: JSON.parse(output) });
    };
    session = pyodide.pyimport("cpcore.ui.page").Session(send);
    // What ends Python itself ends without an answer to the cell that did it.
    pyodide._api.on_fatal = function () {
      post({ op: "broken" });
    };
    lockUp();
    // Holds the fetch of before if something of the start has imported it.
    pyodide.runPython("import sys; sys.modules.pop('pyodide.http', None); del sys");
  }

  /* The language itself, and the few things of the browser that Pyodide needs while it runs. */
  const KEPT = new Set(
    (
      "Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String " +
      "Symbol Date Promise RegExp Error AggregateError EvalError RangeError ReferenceError " +
      "SyntaxError TypeError URIError globalThis JSON Math Intl ArrayBuffer SharedArrayBuffer " +
      "Atomics DataView Uint8Array Int8Array Uint8ClampedArray Uint16Array Int16Array " +
      "Uint32Array Int32Array BigUint64Array BigInt64Array Float16Array Float32Array " +
      "Float64Array Map Set WeakMap WeakSet WeakRef FinalizationRegistry BigInt Iterator Proxy " +
      "Reflect decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape " +
      "isFinite isNaN WebAssembly console self setTimeout clearTimeout setInterval " +
      "clearInterval queueMicrotask structuredClone performance crypto TextEncoder TextDecoder " +
      "MessageChannel MessagePort Event EventTarget AbortController AbortSignal DOMException " +
      "URL URLSearchParams atob btoa"
    ).split(" ")
  );

  function refuse() {
    throw new Error("this page's Python has no network and runs no JavaScript text");
  }

  /* Removes fetch, XMLHttpRequest, WebSocket, EventSource, Worker, caches and all the rest. A list
   * of what stays, not of what goes: a browser's next way to the network is not on it. */
  function lockUp() {
    const end = [EventTarget.prototype, Object.prototype];
    const timers = { setTimeout: self.setTimeout, setInterval: self.setInterval };
    for (let owner = self; !end.includes(owner); owner = Object.getPrototypeOf(owner)) {
      Object.getOwnPropertyNames(owner).forEach(function (name) {
        if (!KEPT.has(name)) Reflect.deleteProperty(owner, name);
      });
    }
    // Pyodide's loader falls back to import() on a TypeError; this error ends the attempt.
    fix(self, "importScripts", refuse);
    // import() is syntax and cannot be removed, so text must not become code.
    Object.keys(timers).forEach(function (name) {
      fix(self, name, function (call, ...rest) {
        return typeof call === "function" ? timers[name].call(self, call, ...rest) : refuse();
      });
    });
    const Closed = function () {
      refuse();
    };
    Closed.prototype = Function.prototype;
    fix(self, "Function", Closed);
    const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
    kinds.forEach(function (kind) {
      fix(Object.getPrototypeOf(kind), "constructor", Closed);
    });
  }

  function fix(owner, name, value) {
    Object.defineProperty(owner, name, { value: value, writable: false, configurable: false });
  }

  const work = {
    boot: boot,
    run: async function (request) {
      if (request.fresh) session.fresh();
      return session.run(request.cell, request.code);
    },
    draw: function (request) {
      return JSON.parse(session.draw(request.name, JSON.stringify(request.values)));
    },
  };

  self.addEventListener("message", async function (event) {
    const request = event.data;
    try {
      const result = await work[request.op](request);
      post({ op: "done", id: request.id, result: result });
    } catch (error) {
      post({ op: "failed", id: request.id, text: String((error && error.message) || error) });
    }
  });
})();
