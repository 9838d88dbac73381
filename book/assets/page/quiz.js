/* Quizzes: the choices that the page lists become radio buttons, with a reason for each answer.
 *
 * A page holds every question, its choices and a folded answer as plain HTML. This script turns
 * each question into a form of native controls. Answers stay in this browser until they are reset.
 * It is a classic script, works from disk and under a strict content policy, and inserts no text
 * as HTML: what it shows are nodes that the page already holds, or text.
 */
(function () {
  "use strict";

  const KEY = "cp-quiz:";

  function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    Object.entries(properties || {}).forEach(function ([key, value]) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    });
    made.append(...children);
    return made;
  }

  /* What was tried, in order, by the mark of each question; a mark changes with the text. */
  function load(name) {
    try {
      const stored = JSON.parse(localStorage.getItem(KEY + name));
      return stored && typeof stored === "object" ? stored : {};
    } catch (error) {
      return {};
    }
  }

  function save(name, tried) {
    try {
      if (Object.keys(tried).length) localStorage.setItem(KEY + name, JSON.stringify(tried));
      else localStorage.removeItem(KEY + name);
    } catch (error) {
      // nothing can be stored here; the quiz works all the same
    }
  }

  function places(list, size) {
    const known = Array.isArray(list) ? list : [];
    return known.filter((place) => Number.isInteger(place) && place >= 0 && place < size);
  }

  /* One question as a form. `changed` is called after each answer. */
  function ask(node, changed) {
    const right = Number(node.dataset.right);
    const ask = node.querySelector(".cp-ask");
    const details = node.querySelector("details");
    const reasons = Array.from(details.querySelectorAll("li"));
    const settled = details.querySelector(".cp-settled");
    const said = element("div", { className: "cp-said", role: "status" });
    const button = element("button", { type: "submit", textContent: "Check" });
    const rows = Array.from(node.querySelectorAll(".cp-choices li")).map(function (item, i) {
      const input = element("input", { type: "radio", name: "choice", value: String(i) });
      const letter = String.fromCharCode(65 + i) + ". "; // as the lists of the page count
      const text = element("span", {}, letter, ...item.childNodes);
      const verdict = element("span", { className: "cp-verdict" });
      const row = element("label", { className: "cp-choice" }, input, text, verdict);
      input.addEventListener("change", () => show(tried.includes(i) ? i : -1));
      return { input: input, verdict: verdict, row: row };
    });
    const group = element(
      "fieldset",
      {},
      element("legend", {}, ...ask.childNodes),
      ...rows.map((row) => row.row)
    );
    const form = element("form", { noValidate: true }, group, button, said);
    let tried = [];

    const solved = () => tried.includes(right);

    /* Says why choice `place` is right or wrong; -1 says nothing. */
    function show(place) {
      said.replaceChildren();
      if (place < 0) return;
      const reason = element("p", {});
      reasons[place].childNodes.forEach((part) => reason.append(part.cloneNode(true)));
      said.append(reason, settled.cloneNode(true));
    }

    function paint() {
      rows.forEach(function (row, i) {
        const known = tried.includes(i);
        row.row.classList.toggle("cp-right", known && i === right);
        row.row.classList.toggle("cp-wrong", known && i !== right);
        row.verdict.textContent = known ? (i === right ? "right" : "wrong") : "";
      });
      details.hidden = !solved(); // all reasons, once they give nothing away
    }

    form.addEventListener("submit", function (event) {
      event.preventDefault();
      const place = rows.findIndex((row) => row.input.checked);
      if (place < 0) {
        said.textContent = "Choose an answer first.";
        return;
      }
      if (!tried.includes(place) && !solved()) tried.push(place);
      paint();
      show(place);
      changed();
    });

    ask.replaceWith(form);
    node.querySelector(".cp-choices").remove();
    details.querySelector("summary").textContent = "Why, for every choice";
    return {
      mark: node.dataset.question,
      tried: () => tried,
      solved: solved,
      first: () => tried[0] === right,
      /* Puts answers of an earlier visit, or none, into place. */
      restore: function (list) {
        tried = places(list, rows.length);
        const last = tried.length ? tried[tried.length - 1] : -1;
        rows.forEach((row, i) => (row.input.checked = i === last));
        details.open = false;
        paint();
        show(last);
      },
    };
  }

  function add(root) {
    if (root.classList.contains("cp-ready")) return;
    const name = root.dataset.quiz;
    const score = element("p", { className: "cp-score", role: "status" });
    const reset = element("button", { type: "button", textContent: "Reset quiz" });
    const questions = Array.from(root.querySelectorAll(".cp-question")).map((node) =>
      ask(node, function () {
        const tried = {};
        questions.forEach(function (question) {
          if (question.tried().length) tried[question.mark] = question.tried();
        });
        save(name, tried);
        count();
      })
    );

    function count() {
      const solved = questions.filter((question) => question.solved()).length;
      const first = questions.filter((question) => question.first()).length;
      score.textContent =
        solved + " of " + questions.length + " right, " + first + " at the first try.";
    }

    function restore(tried) {
      questions.forEach((question) => question.restore(tried[question.mark]));
      count();
    }

    reset.addEventListener("click", function () {
      save(name, {});
      restore({});
    });
    root.append(element("div", { className: "cp-quiz-end" }, score, reset));
    restore(load(name));
    root.classList.add("cp-ready");
  }

  window.cpQuiz = { add: add };

  function start() {
    document.querySelectorAll(".cp-quiz").forEach(add);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
