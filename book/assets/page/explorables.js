/* Explorables: native controls that switch between pictures drawn by Python.
 *
 * A page holds the first picture of each explorable as plain HTML. This script adds the controls
 * that data-controls describes, in the state that data-places names, and loads explorables/NAME.js,
 * all pictures of that explorable, when the reader comes near or first uses a control. It is a classic script, and so is the data:
 * both work from disk, where modules and fetch are blocked, and under a strict content policy.
 * All HTML that is inserted here comes from that data file, which the build writes, or while the
 * page's Python runs, from the runner, which hands over harmless fragments.
 */
(function () {
  "use strict";

  var here = document.currentScript.src;
  var reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  var PLAY_MS = 1500;
  var data = {}; // name -> pictures of the whole grid
  var waiting = {}; // name -> functions to call when its pictures, or an error, arrive
  var count = 0; // makes ids of controls unique within the page

  var draw = null; // asks the page's Python for a picture, while it runs
  var connected = []; // one function per explorable: Python came or went

  window.cpExplorables = {
    register: function (name, pictures) {
      data[name] = pictures;
    },
    /* From now on `asker(name, values)` draws: a promise of two fragments, or null if busy. */
    connect: function (asker) {
      draw = asker;
      connected.forEach(function (call) {
        call();
      });
    },
    /* Adds the controls to an explorable that a live cell has shown. */
    add: function (root) {
      set(root, false);
    },
  };

  function load(name, done) {
    if (data[name]) {
      done(true);
      return;
    }
    if (waiting[name]) {
      waiting[name].push(done);
      return;
    }
    waiting[name] = [done];
    var script = document.createElement("script");
    var finish = function () {
      var calls = waiting[name];
      delete waiting[name];
      if (!data[name]) script.remove(); // so that the next use tries again
      calls.forEach(function (call) {
        call(Boolean(data[name]));
      });
    };
    script.onload = finish;
    script.onerror = finish;
    script.src = new URL("../explorables/" + name + ".js", here).href;
    document.head.appendChild(script);
  }

  function element(tag, properties, children) {
    var made = document.createElement(tag);
    Object.keys(properties || {}).forEach(function (key) {
      if (key in made) made[key] = properties[key];
      else made.setAttribute(key, properties[key]);
    });
    (children || []).forEach(function (child) {
      made.append(child);
    });
    return made;
  }

  function parsed(html) {
    var template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  }

  /* The place of a whole number between two ends, or -1 for any other text. */
  function whole(text, low, high) {
    var value = /^-?[0-9]+$/.test(text) ? Number(text) : NaN;
    return value >= low && value <= high ? value - low : -1;
  }

  /* The state of an explorable as its address names it: #NAME?control=value&... */
  function fragment(name) {
    var start = "#" + name + "?";
    var text = location.hash;
    return text.indexOf(start) === 0 ? new URLSearchParams(text.slice(start.length)) : null;
  }

  /* Each builder returns what is shown, plus read() -> place in the grid, and write(place);
   * text() is its value in the address, find(text) the place of such a value or -1. */

  function choice(control, changed) {
    var id = "cp-control-" + ++count;
    var select = element(
      "select",
      { id: id, onchange: changed },
      control.options.map(function (pair) {
        return element("option", { value: pair[0], textContent: pair[1] });
      })
    );
    var values = control.options.map(function (pair) {
      return pair[0];
    });
    return {
      size: values.length,
      start: values.indexOf(control.value),
      node: element("div", { className: "cp-control" }, [
        element("label", { htmlFor: id, textContent: control.label }),
        select,
      ]),
      read: function () {
        return select.selectedIndex;
      },
      text: function () {
        return select.value;
      },
      find: function (text) {
        return values.indexOf(text);
      },
      write: function (place) {
        select.selectedIndex = place;
      },
    };
  }

  function range(control, changed) {
    var id = "cp-control-" + ++count;
    var shown = element("output", { htmlFor: id });
    var input = element("input", { type: "range", id: id });
    input.min = control.min;
    input.max = control.max;
    input.step = 1;
    var say = function () {
      shown.textContent = String(input.value).replace("-", "\u2212");
    };
    input.oninput = function () {
      say();
      changed();
    };
    return {
      size: control.max - control.min + 1,
      start: control.value - control.min,
      node: element("div", { className: "cp-control" }, [
        element("label", { htmlFor: id, textContent: control.label }),
        element("span", { className: "cp-range" }, [input, shown]),
      ]),
      read: function () {
        return Number(input.value) - control.min;
      },
      text: function () {
        return input.value;
      },
      find: function (text) {
        return whole(text, control.min, control.max);
      },
      write: function (place) {
        input.value = place + control.min;
        say();
      },
      /* Python draws further than the grid of stored pictures, where the control says so. */
      widen: function (on) {
        if (!control.live) return;
        input.min = on ? control.live[0] : control.min;
        input.max = on ? control.live[1] : control.max;
        say();
      },
    };
  }

  function stepper(control, changed, quiet) {
    var place = 0;
    var end = control.max;
    var timer = null;
    var shown = element("span", { className: "cp-count" });
    var back = element("button", { type: "button", textContent: "Back" });
    var step = element("button", { type: "button", textContent: "Step" });
    var play = element("button", { type: "button", textContent: "Play" });
    var note = element("span", {
      className: "cp-why",
      textContent: "Play is off: this device asks for reduced motion. Use Step.",
    });

    function refresh() {
      shown.textContent = control.label.toLowerCase() + " " + place + " of " + end;
      // aria-disabled keeps a focused button focusable at either end
      back.setAttribute("aria-disabled", String(place === 0));
      step.setAttribute("aria-disabled", String(place === end));
      play.disabled = reduced.matches;
      note.hidden = !reduced.matches;
    }
    function stop() {
      if (timer !== null) clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      quiet(false);
    }
    function move(to) {
      if (to < 0 || to > end) return;
      place = to;
      refresh();
      changed();
    }
    function advance() {
      if (play.isConnected) move(place + 1);
      if (place === end || !play.isConnected) stop(); // a new run of its cell has replaced it
    }
    back.onclick = function () {
      stop();
      move(place - 1);
    };
    step.onclick = function () {
      stop();
      move(place + 1);
    };
    play.onclick = function () {
      if (timer !== null) {
        stop();
        return;
      }
      quiet(true); // a picture every second would flood a screen reader
      play.textContent = "Pause";
      timer = setInterval(advance, PLAY_MS);
      move(place === end ? 0 : place + 1);
    };
    reduced.addEventListener("change", function () {
      stop();
      refresh();
    });
    return {
      size: control.max + 1,
      start: control.value,
      node: element("div", { className: "cp-control cp-steps" }, [back, step, play, shown, note]),
      read: function () {
        return place;
      },
      text: function () {
        return String(place);
      },
      find: function (text) {
        return whole(text, 0, control.max);
      },
      write: function (to) {
        stop();
        place = to;
        refresh();
      },
      limit: function (to) {
        end = to;
        if (place > end) place = end;
        refresh();
      },
    };
  }

  var builders = { choice: choice, range: range, step: stepper };

  function set(root, first) {
    var name = root.dataset.explorable;
    var specs = JSON.parse(root.dataset.controls);
    var say = root.querySelector(".cp-say");
    var stage = root.querySelector(".cp-stage");
    var problem = element("p", { className: "cp-problem", role: "alert", hidden: true });
    var quiet = function (on) {
      say.setAttribute("aria-live", on ? "off" : "polite");
    };
    var controls = specs.map(function (control) {
      return builders[control.kind](control, changed, quiet);
    });
    var reset = element("button", { type: "button", textContent: "Reset", className: "cp-reset" });
    var mode = element("span", { className: "cp-mode" });
    var drawing = false; // Python draws now
    var again = false; // the controls moved meanwhile
    var outside = false; // the picture shown lies beyond the stored ones

    /* The place of the state among the stored pictures; NaN beyond them. */
    function place() {
      return controls.reduce(function (sum, control) {
        var at = control.read();
        return at >= 0 && at < control.size ? sum * control.size + at : NaN;
      }, 0);
    }
    /* The cursor comes last. Its end is where these other values stop changing the picture. */
    function limit() {
      var cursor = controls[controls.length - 1];
      if (!cursor || !cursor.limit || !data[name] || !fits()) return;
      if (isNaN(place())) {
        cursor.limit(cursor.size - 1);
        return;
      }
      var states = data[name].states;
      var start = place() - cursor.read();
      var end = cursor.size - 1;
      while (end > 0 && states[start + end] === states[start + end - 1]) end -= 1;
      cursor.limit(end);
    }
    function put(caption, parts) {
      var open = stage.querySelector("details[open]") !== null; // keep the table open
      say.replaceChildren(caption);
      stage.replaceChildren(parts);
      var table = stage.querySelector("details");
      if (table) table.open = open;
      remember();
    }
    function show() {
      var pictures = data[name];
      var frame = pictures.frames[pictures.states[place()]];
      var lines = frame.map(function (line) {
        return pictures.lines[line];
      });
      put(parsed(lines[0]), parsed(lines.slice(1).join("\n")));
    }
    function fits() {
      var size = controls.reduce(function (product, control) {
        return product * control.size;
      }, 1);
      return data[name].states.length === size;
    }
    function busy(on) {
      if (on) root.setAttribute("aria-busy", "true");
      else root.removeAttribute("aria-busy");
    }
    function changed() {
      limit();
      if (drawing) {
        again = true;
        return;
      }
      var drawn = draw && draw(name, values());
      if (!drawn) {
        switchPicture();
        return;
      }
      drawing = true;
      again = false;
      busy(true);
      drawn.then(
        function (picture) {
          drawing = false;
          problem.hidden = true;
          busy(false);
          if (again) changed();
          else put(picture.say, picture.stage);
        },
        function () {
          drawing = false;
          switchPicture();
        }
      );
    }
    function switchPicture() {
      busy(true);
      load(name, function (loaded) {
        busy(false);
        var good = loaded && fits() && !isNaN(place());
        problem.hidden = good;
        if (good) limit();
        if (good) show();
        else if (!loaded) {
          complain("could not be loaded. The picture shown stays; any control tries again.");
        } else if (fits()) complain("end here; Python draws the rest, and is busy.");
        else complain("belong to another version of this page. Reload the page.");
      });
    }
    function complain(what) {
      problem.textContent = "The pictures in explorables/" + name + ".js " + what;
    }
    function values() {
      var state = {};
      specs.forEach(function (control, i) {
        var text = controls[i].text();
        state[control.name] = control.kind === "choice" ? text : Number(text);
      });
      return state;
    }
    /* Python came or went: say so, and leave what only Python can draw. */
    function connection() {
      controls.forEach(function (control) {
        if (control.widen) control.widen(Boolean(draw));
      });
      mode.hidden = !window.cpRunner; // this page has no Python
      mode.textContent = draw ? "live: drawn by Python" : "stored pictures";
      if (!draw && (drawing || outside)) changed();
      outside = false;
    }
    /* The address names the state, so that it can be shared; the state first shown needs none. */
    function remember() {
      outside = isNaN(place());
      if (outside || (!fragment(name) && place() === opening)) return;
      var state = new URLSearchParams();
      specs.forEach(function (control, i) {
        state.set(control.name, controls[i].text());
      });
      var home = location.pathname + location.search;
      try {
        history.replaceState(history.state, "", place() === opening ? home : "#" + name + "?" + state);
      } catch (error) {
        // some browsers refuse it from disk; the explorable works all the same
      }
    }
    function recall() {
      var state = fragment(name);
      if (!state) return;
      specs.forEach(function (control, i) {
        var found = state.has(control.name) ? controls[i].find(state.get(control.name)) : -1;
        controls[i].write(found < 0 ? controls[i].start : found); // an unknown value is left out
      });
      changed();
      root.scrollIntoView();
    }
    function restore() {
      controls.forEach(function (control) {
        control.write(control.start);
      });
    }

    reset.onclick = function () {
      restore();
      changed();
    };
    quiet(false);
    restore();
    JSON.parse(root.dataset.places).forEach(function (where, i) {
      controls[i].write(where);
    });
    var opening = place();
    var nodes = controls.map(function (control) {
      return control.node;
    });
    var bar = element("div", { className: "cp-bar" }, nodes.concat([reset, mode]));
    root.insertBefore(bar, say);
    root.insertBefore(problem, say);
    root.querySelector(".cp-still").remove();
    root.classList.add("cp-ready");
    connected.push(connection);
    connection();
    if (first) {
      window.addEventListener("hashchange", recall);
      recall();
    }
    return function () {
      load(name, function (loaded) {
        if (loaded && fits()) limit(); // a failure is reported when a control is used
      });
    };
  }

  function start() {
    var near = {};
    var named = {}; // the first explorable of a name is the one that its address means
    var watch =
      "IntersectionObserver" in window
        ? new IntersectionObserver(
            function (entries) {
              entries.forEach(function (entry) {
                if (!entry.isIntersecting) return;
                watch.unobserve(entry.target);
                near[entry.target.dataset.order]();
              });
            },
            { rootMargin: "800px" }
          )
        : null;
    document.querySelectorAll(".cp-explorable").forEach(function (root, order) {
      var name = root.dataset.explorable;
      var fetchPictures = set(root, !named[name]);
      named[name] = true;
      root.dataset.order = order;
      near[order] = fetchPictures;
      if (watch) watch.observe(root);
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
