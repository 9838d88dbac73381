/* The trainer of the practice page: mock interviews, drills, flashcards and diagnosis.
 *
 * A page holds an empty .cp-practice. This script adds four buttons; the first use loads
 * practice/data.js, which the build writes from the question bank. What a reader does is kept in
 * the browser's local storage, where it may be kept, so that a reload goes on where it was. All
 * text is inserted as text. Native controls only: everything works by keyboard.
 */
(function () {
  "use strict";

  var here = document.currentScript.src;
  var KEY = "cp-practice-1";
  var TABS = [
    ["mock", "Mock interview"],
    ["drills", "Drills"],
    ["cards", "Flashcards"],
    ["diagnosis", "Diagnosis"],
  ];
  var POINTS = 3; // of one axis
  var HISTORY = 50; // mocks that are kept

  var data = null;
  var waiting = [];
  var count = 0; // makes ids unique

  window.cpPractice = {
    register: function (given) {
      data = given;
    },
  };

  /* ---- what is kept ---- */

  function fresh() {
    return { tab: "", mock: null, history: [], drill: { kind: "", at: 0 }, right: 0, tried: 0,
      known: {}, level: "", next: 0, cases: null };
  }
  /* Whether kept values have the shape that this script writes; anything else starts afresh. */
  var shaped = {
    tab: function (kept) {
      return kept === "" || TABS.some(function (tab) {
        return tab[0] === kept;
      });
    },
    mock: function (kept) {
      return kept === null || (is(kept, "asked", "hints", "grades") && isFinite(kept.end) &&
        whole(kept.at) && typeof kept.asked[kept.at] === "string" &&
        kept.hints.every(function (used) {
          return used === null || whole(used);
        }) &&
        kept.grades.every(function (given) {
          return given === null || (is(given) && Object.keys(given).every(function (axis) {
            return whole(given[axis]) && given[axis] <= POINTS;
          }));
        }));
    },
    history: function (kept) {
      return Array.isArray(kept) && kept.every(function (one) {
        return one && typeof one.day === "string";
      });
    },
    drill: function (kept) {
      return is(kept) && typeof kept.kind === "string" && whole(kept.at);
    },
    next: function (kept) {
      return whole(kept);
    },
    known: function (kept) {
      return is(kept);
    },
    cases: function (kept) {
      return kept === null || (is(kept, "order") && whole(kept.at));
    },
  };
  function whole(kept) {
    return typeof kept === "number" && kept >= 0 && kept % 1 === 0;
  }
  /* An object that holds lists under these names. */
  function is(kept) {
    var names = Array.prototype.slice.call(arguments, 1);
    return Boolean(kept) && typeof kept === "object" && !Array.isArray(kept) &&
      names.every(function (name) {
        return Array.isArray(kept[name]);
      });
  }
  function recall() {
    var start = fresh();
    try {
      var kept = JSON.parse(localStorage.getItem(KEY) || "{}") || {};
      Object.keys(start).forEach(function (name) {
        var fits = shaped[name]
          ? kept[name] !== undefined && shaped[name](kept[name])
          : typeof kept[name] === typeof start[name];
        if (fits) start[name] = kept[name];
      });
    } catch (error) {
      // nothing is kept, or nothing may be; the trainer works all the same
    }
    return start;
  }
  var state = recall();
  function keep() {
    try {
      localStorage.setItem(KEY, JSON.stringify(state));
    } catch (error) {
      // full, or not allowed
    }
  }

  /* Another tab of the book has kept something: what counts for the reader is taken from there,
   * what this tab shows stays. */
  window.addEventListener("storage", function (event) {
    if (event.key !== KEY && event.key !== null) return;
    var other = recall();
    ["history", "known", "right", "tried", "next"].forEach(function (name) {
      state[name] = other[name];
    });
  });

  /* ---- building blocks ---- */

  function make(tag, properties, children) {
    var made = document.createElement(tag);
    Object.keys(properties || {}).forEach(function (key) {
      // not as properties: older browsers know no made.ariaLabel
      var aria = /^aria([A-Z]\w+)$/.exec(key);
      if (aria) made.setAttribute("aria-" + aria[1].toLowerCase(), properties[key]);
      else if (key in made) made[key] = properties[key];
      else made.setAttribute(key, properties[key]);
    });
    (children || []).forEach(function (child) {
      if (child) made.append(child);
    });
    return made;
  }
  /* Text of the bank: `code` between backticks, everything else as it is. */
  function text(tag, words, properties) {
    var made = make(tag, properties);
    String(words).split("`").forEach(function (part, i) {
      if (part) made.append(i % 2 ? make("code", { textContent: part }) : part);
    });
    return made;
  }
  function button(label, use, properties) {
    var made = make("button", properties || {});
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", use);
    return made;
  }
  function row(children) {
    return make("div", { className: "cp-bar" }, children);
  }
  function select(label, pairs, value, use) {
    var id = "cp-practice-" + ++count;
    var menu = make("select", { id: id }, pairs.map(function (pair) {
      return make("option", { value: pair[0], textContent: pair[1] });
    }));
    menu.value = value;
    if (menu.selectedIndex < 0) menu.selectedIndex = 0;
    if (use) menu.addEventListener("change", use);
    return make("div", { className: "cp-control" }, [
      make("label", { htmlFor: id, textContent: label }), menu,
    ]);
  }
  function chosen(control) {
    return control.querySelector("select").value;
  }
  function list(items, ordered) {
    return make(ordered ? "ol" : "ul", {}, items.map(function (item) {
      return text("li", item);
    }));
  }
  function capital(word) {
    return word[0].toUpperCase() + word.slice(1);
  }
  function link(entry) {
    return make("a", { href: entry.link, textContent: "where the book computes it" });
  }

  function load(done) {
    if (data) return done();
    waiting.push(done);
    if (waiting.length > 1) return undefined;
    var script = make("script", { src: new URL("../practice/data.js", here).href });
    script.onload = script.onerror = function () {
      var calls = waiting;
      waiting = [];
      if (!data) script.remove(); // so that the next use tries again
      calls.forEach(function (call) {
        call();
      });
    };
    document.head.appendChild(script);
    return undefined;
  }

  /* ---- the frame ---- */

  function set(root) {
    var stage = make("div", { className: "cp-practice-stage" });
    var problem = make("p", { className: "cp-problem", role: "alert", hidden: true });
    var buttons = {};
    var timer = null;

    function show(nodes, focus) {
      if (timer !== null) clearInterval(timer);
      timer = null;
      stage.replaceChildren.apply(stage, nodes.filter(Boolean));
      keep();
      var head = focus && stage.querySelector("h3");
      if (head) head.focus();
    }
    function heading(words) {
      return text("h3", words, { tabIndex: -1 });
    }
    function open(name, focus) {
      load(function () {
        problem.hidden = Boolean(data);
        if (!data) {
          problem.textContent = "The questions in practice/data.js could not be loaded. Try again.";
          return;
        }
        state.tab = name;
        TABS.forEach(function (tab) {
          buttons[tab[0]].setAttribute("aria-pressed", String(tab[0] === name));
        });
        panels[name](focus);
      });
    }

    /* ---- mock interview ---- */

    function startPanel(focus) {
      var level = select("Level", data.levels.map(function (name) {
        return [name, name];
      }), state.level || "core");
      var minutes = select("Minutes", data.minutes.map(function (m) {
        return [String(m), String(m)];
      }), "30");
      var start = button("Start", function () {
        state.level = chosen(level);
        var all = data.mocks[state.level][chosen(minutes)];
        var mock = all[state.next % all.length];
        state.next += 1;
        state.mock = { level: state.level, chain: mock[0], asked: mock[1], at: 0,
          end: Date.now() + 60000 * Number(chosen(minutes)), hints: [], shown: false, grades: [] };
        ask(true);
      });
      show([
        heading("Mock interview"),
        text("p", "A chain of questions against the clock. Answer aloud, then grade yourself."),
        row([level, minutes, start]),
        history(),
      ], focus);
    }

    function history() {
      var note = make("div", { hidden: true });
      var out = button("Export", function () {
        var id = "cp-practice-" + ++count;
        var box = make("textarea", { id: id, rows: 8, readOnly: true,
          value: JSON.stringify(state.history, null, 1) });
        note.replaceChildren(
          make("label", { htmlFor: id, textContent: "Your mocks as JSON, to copy" }), box);
        note.hidden = false;
        box.focus();
        box.select();
      });
      var erase = button("Erase everything", function () {
        var sure = button("Yes, erase", function () {
          state = fresh();
          state.tab = "mock";
          startPanel(true);
        });
        note.replaceChildren(text("p", "This erases history, cards and drills in this browser."),
          row([sure, button("No", function () {
            note.hidden = true;
            erase.focus();
          })]));
        note.hidden = false;
        sure.focus();
      });
      var done = state.history.map(function (one) {
        return one.day + ": " + one.level + ", " + one.chain + ", " + one.points + " of " +
          one.of + " points, weakest " + one.weak;
      });
      return make("section", { className: "cp-history", ariaLabel: "History" }, [
        make("h4", { textContent: "Your mocks" }),
        done.length ? list(done.slice().reverse()) : text("p", "None yet."),
        row([out, erase]),
        note,
      ]);
    }

    function clock(mock) {
      var face = make("span", { className: "cp-clock", role: "timer" });
      function tick() {
        var seconds = Math.round((mock.end - Date.now()) / 1000);
        var late = seconds < 0;
        var size = Math.abs(seconds);
        var rest = ("0" + (size % 60)).slice(-2);
        face.textContent = (late ? "over by " : "") + Math.floor(size / 60) + ":" + rest +
          (late ? "" : " left");
      }
      tick();
      return [face, tick];
    }

    function ask(focus) {
      var mock = state.mock;
      var name = mock.asked[mock.at];
      var entry = asked(name);
      if (!entry) { // kept by another version of the book
        state.mock = null;
        startPanel(focus);
        return;
      }
      var used = mock.hints[mock.at] || 0;
      var face = clock(mock);
      var hints = make("ol", { className: "cp-hints", ariaLive: "polite" },
        entry.hints.slice(0, used).map(function (hint) {
          return text("li", hint);
        }));
      var more = button("Hint", function () {
        var at = mock.hints[mock.at] || 0;
        if (at >= entry.hints.length) return;
        mock.hints[mock.at] = at + 1;
        hints.append(text("li", entry.hints[at]));
        name_hint();
        keep();
      });
      function name_hint() {
        var at = mock.hints[mock.at] || 0;
        more.textContent = at < entry.hints.length
          ? "Hint " + (at + 1) + " of " + entry.hints.length + " (costs a point)" : "No more hints";
        more.setAttribute("aria-disabled", String(at >= entry.hints.length));
      }
      name_hint();
      var answer = button("Show the answer", function () {
        mock.shown = true;
        ask(true);
      });
      show([
        heading(entry.title),
        make("p", { className: "cp-where" }, [
          "Question " + (mock.at + 1) + " of " + mock.asked.length + ", " + entry.level + ", " +
            entry.minutes + " minutes. Chain: " + mock.chain + ". ", face[0],
        ]),
        text("p", entry.prompt, { className: "cp-prompt" }),
        hints,
        row([more, mock.shown ? null : answer, button("Give up this mock", function () {
          state.mock = null;
          startPanel(true);
        })]),
        mock.shown ? model(entry) : null,
        mock.shown ? grading(entry) : null,
      ], focus);
      timer = setInterval(face[1], 1000);
      if (focus && mock.shown) stage.querySelector(".cp-model h4").focus();
    }

    function model(entry) {
      return make("section", { className: "cp-model", ariaLabel: "Model answer" }, [
        make("h4", { textContent: "A model answer", tabIndex: -1 }),
      ].concat(entry.answer.map(function (part, i) {
        var made = text("p", part.text);
        var again = i > 0 && entry.answer[i - 1].step === part.step;
        if (!again) made.prepend(make("strong", { textContent: data.steps[part.step] + ". " }));
        return made;
      }), [
        make("h4", { textContent: "In sixty seconds" }), text("p", entry.spoken),
        make("h4", { textContent: "A common wrong answer" }),
        text("p", "\u201c" + entry.wrong.says + "\u201d " + entry.wrong.why),
        make("h4", { textContent: "They ask on" }), list(entry.follow_ups),
        make("p", {}, ["Numbers: ", link(entry), "."]),
      ]));
    }

    function grading(entry) {
      var mock = state.mock;
      var given = mock.grades[mock.at] || {};
      mock.grades[mock.at] = given;
      var alarm = make("p", { className: "cp-problem", role: "alert", hidden: true });
      var fields = data.axes.map(function (axis) {
        var own = entry.rubric[axis];
        var rungs = Array.isArray(own) ? own : data.ladder[axis];
        var says = make("p", { className: "cp-rung", ariaLive: "polite" });
        var group = "cp-axis-" + ++count;
        function say() {
          says.textContent = axis in given ? given[axis] + ": " + rungs[given[axis]] : "";
        }
        say();
        var choices = rungs.map(function (rung, points) {
          var id = group + "-" + points;
          var box = make("input", { type: "radio", name: group, id: id, value: String(points) });
          box.checked = given[axis] === points;
          box.addEventListener("change", function () {
            given[axis] = points;
            say();
            keep();
          });
          return make("span", { className: "cp-choice" }, [
            box, make("label", { htmlFor: id, textContent: String(points) }),
          ]);
        });
        return make("fieldset", {}, [
          make("legend", { textContent: capital(axis) }),
          Array.isArray(own) ? null : text("p", "A 3 here: " + own),
          make("div", { className: "cp-choices" }, choices),
          says,
        ]);
      });
      var last = mock.at === mock.asked.length - 1;
      var next = button(last ? "Finish" : "Next question", function () {
        var open = data.axes.filter(function (axis) {
          return !(axis in given);
        });
        if (open.length) {
          alarm.textContent = "Grade first: " + open.join(", ") + ".";
          alarm.hidden = false;
          return;
        }
        if (last) {
          finish();
          return;
        }
        mock.at += 1;
        mock.shown = false;
        ask(true);
      });
      return make("section", { className: "cp-grades", ariaLabel: "Grade yourself" }, [
        make("h4", { textContent: "Grade yourself" }),
      ].concat(fields, [alarm, row([next])]));
    }

    /* A question of this version of the book. */
    function asked(name) {
      return Object.prototype.hasOwnProperty.call(data.questions, name) && data.questions[name];
    }

    function finish() {
      var mock = state.mock;
      mock.asked.forEach(function (name, i) { // another version may have had other axes
        var given = mock.grades[i] || {};
        mock.grades[i] = given;
        data.axes.forEach(function (axis) {
          if (!(axis in given)) given[axis] = 0;
        });
      });
      var sums = data.axes.map(function (axis) {
        return mock.grades.reduce(function (sum, given) {
          return sum + given[axis];
        }, 0);
      });
      var weakest = data.axes[sums.indexOf(Math.min.apply(null, sums))];
      var hints = mock.asked.reduce(function (sum, name, i) {
        return sum + (mock.hints[i] || 0);
      }, 0);
      var total = sums.reduce(function (a, b) {
        return a + b;
      }, 0);
      var of = POINTS * data.axes.length * mock.asked.length;
      var low = Math.min.apply(null, mock.grades.map(function (given) {
        return given[weakest];
      }));
      var read = mock.asked.filter(function (name, i) {
        return asked(name) && mock.grades[i][weakest] === low;
      });
      state.history = state.history.concat([{
        day: new Date().toISOString().slice(0, 10), level: mock.level, chain: mock.chain,
        points: Math.max(0, total - hints), of: of, weak: weakest, questions: mock.asked,
        grades: mock.grades, hints: mock.hints,
      }]).slice(-HISTORY);
      state.mock = null;
      var full = POINTS * mock.asked.length;
      show([
        heading("Summary"),
        text("p", Math.max(0, total - hints) + " of " + of + " points, " + hints +
          " of them lost to hints. Weakest axis: " + weakest + "."),
        list(data.axes.map(function (axis, i) {
          return capital(axis) + ": " + sums[i] + " of " + full;
        })),
        make("h4", { textContent: "What to read" }),
        make("ul", {}, read.map(function (name) {
          var entry = data.questions[name];
          return make("li", {}, [entry.title + ": ", link(entry)]);
        })),
        row([button("Another mock", function () {
          startPanel(true);
        })]),
      ], true);
    }

    /* ---- drills ---- */

    function drills(focus) {
      var kinds = select("Kind", [["", "all kinds"]].concat(data.kinds.map(function (kind) {
        return [kind, kind];
      })), state.drill.kind, function () {
        state.drill = { kind: chosen(kinds), at: 0 };
        drills(false);
        stage.querySelector("select").focus();
      });
      var pool = data.drills.filter(function (one) {
        return !state.drill.kind || one.kind === state.drill.kind;
      });
      if (!pool.length) { // a kind of another version of the book
        state.drill = { kind: "", at: 0 };
        pool = data.drills;
      }
      var one = pool[state.drill.at % pool.length];
      var id = "cp-practice-" + ++count;
      var input = make("input", { id: id, type: "text", autocomplete: "off", spellcheck: false });
      var said = make("p", { className: "cp-verdict", role: "status" });
      var worked = make("div", {});
      var score = make("p", { className: "cp-where" });
      var counted = false;
      function tell() {
        score.textContent = "Drill " + (state.drill.at % pool.length + 1) + " of " + pool.length +
          ". First answers right: " + state.right + " of " + state.tried + ".";
      }
      tell();
      var form = make("form", { className: "cp-bar" }, [
        make("div", { className: "cp-control" }, [
          make("label", { htmlFor: id, textContent: "Your answer, with its unit" }), input,
        ]),
        make("button", { type: "submit", textContent: "Check" }),
      ]);
      form.addEventListener("submit", function (event) {
        event.preventDefault();
        var verdict = window.cpJudge.judge(input.value, one, data.judge);
        said.textContent = verdict.text;
        if (!counted && verdict.text.indexOf("Not read") !== 0) {
          counted = true;
          state.tried += 1;
          state.right += verdict.right ? 1 : 0;
          tell();
          keep();
        }
      });
      show([
        heading(capital(one.kind)),
        score,
        text("p", one.prompt, { className: "cp-prompt" }),
        text("p", "Accepted within a factor of " + one.factor + ", in any unit of its kind."),
        form, said,
        row([
          button("Worked solution", function () {
            worked.replaceChildren(list(one.steps, true));
          }),
          button("Next drill", function () {
            state.drill.at += 1;
            drills(true);
          }),
          kinds,
        ]),
        worked,
      ], focus);
    }

    /* ---- flashcards ---- */

    function cards(focus) {
      var names = Object.keys(data.questions);
      var open = names.filter(function (name) {
        return !state.known[name];
      });
      if (!open.length) {
        show([heading("Flashcards"), text("p", "You know all " + names.length + " of them."),
          row([button("Start again", function () {
            state.known = {};
            cards(true);
          })])], focus);
        return;
      }
      var name = open[0];
      var entry = data.questions[name];
      var back = make("div", { ariaLive: "polite" });
      function put(known) {
        if (known) {
          state.known[name] = true;
        } else { // to the end of the stack
          delete data.questions[name];
          data.questions[name] = entry;
        }
        cards(true);
      }
      var verdicts = row([
        button("I know it", function () {
          put(true);
        }),
        button("Again", function () {
          put(false);
        }),
      ]);
      verdicts.hidden = true;
      show([
        heading(entry.title),
        make("p", { className: "cp-where",
          textContent: "Known: " + (names.length - open.length) + " of " + names.length + "." }),
        text("p", entry.prompt, { className: "cp-prompt" }),
        row([button("Turn", function () {
          back.replaceChildren(text("p", entry.short));
          verdicts.hidden = false;
          verdicts.querySelector("button").focus();
        })]),
        back, verdicts,
      ], focus);
    }

    /* ---- diagnosis ---- */

    function diagnosis(focus) {
      if (!state.cases || !data.cases[state.cases.at]) {
        state.cases = { at: Math.floor(Math.random() * data.cases.length), order: [] };
      }
      var now = state.cases;
      var one = data.cases[now.at];
      var seen = make("ol", { className: "cp-seen", ariaLive: "polite" });
      var spent = make("p", { className: "cp-where" });
      var said = make("p", { className: "cp-verdict", role: "status" });
      function add(check) {
        var place = one.checks.map(function (c) {
          return c[0];
        }).indexOf(check);
        seen.append(make("li", { textContent: check + ": " + one.seen[one.truth][place] }));
      }
      function tell() {
        spent.textContent = now.order.reduce(function (sum, check) {
          return sum + one.checks.filter(function (c) {
            return c[0] === check;
          })[0][1];
        }, 0) + " minutes spent.";
      }
      now.order = now.order.filter(function (check) { // of this version of the book only
        return one.checks.some(function (c) {
          return c[0] === check;
        });
      });
      now.order.forEach(add);
      tell();
      var checks = one.checks.map(function (check) {
        var use = button(check[0] + " (" + check[1] + " min)", function () {
          if (use.getAttribute("aria-disabled") === "true") return;
          use.setAttribute("aria-disabled", "true");
          now.order.push(check[0]);
          add(check[0]);
          tell();
          keep();
        });
        use.setAttribute("aria-disabled", String(now.order.indexOf(check[0]) >= 0));
        return use;
      });
      var cause = select("The cause", Object.keys(one.seen).map(function (name) {
        return [name, name];
      }), "");
      show([
        heading("Diagnosis: " + one.name.replace(/ \d+$/, "")),
        text("p", one.story),
        make("div", { className: "cp-bar cp-checks", role: "group", ariaLabel: "Checks" }, checks),
        spent, seen,
        row([cause, button("Name it", function () {
          var result = window.cpJudge.grade(one, now.order, chosen(cause));
          said.textContent = result.points + " of 3 points. " + result.text;
        }), button("Another case", function () {
          var step = 1 + Math.floor(Math.random() * (data.cases.length - 1));
          state.cases = { at: (now.at + step) % data.cases.length, order: [] };
          diagnosis(true);
        })]),
        said,
      ], focus);
    }

    var panels = {
      mock: function (focus) {
        if (state.mock && state.mock.asked) ask(focus);
        else startPanel(focus);
      },
      drills: drills,
      cards: cards,
      diagnosis: diagnosis,
    };
    var bar = make("div", { className: "cp-bar", role: "group", ariaLabel: "Kind of practice" },
      TABS.map(function (tab) {
        buttons[tab[0]] = button(tab[1], function () {
          open(tab[0], true);
        }, { ariaPressed: "false" });
        return buttons[tab[0]];
      }));
    root.replaceChildren(bar, problem, stage);
    root.classList.add("cp-ready");
    if (state.tab) open(state.tab, false);
  }

  function start() {
    document.querySelectorAll(".cp-practice").forEach(set);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
