/* Editing a cell: colors for Python, a text field over the colored code, and kept edits. */
(function () {
  "use strict";

  const KEYWORDS =
    "as assert async await break case class continue def del elif else except finally for from " +
    "global if import lambda match nonlocal pass raise return try while with yield";
  const BUILTINS =
    "abs all any bool bytes dict dir divmod enumerate filter float frozenset getattr hasattr hash " +
    "id int isinstance issubclass iter len list map max min next object open ord pow print range " +
    "repr reversed round set setattr slice sorted str sum super tuple type vars zip";
  // Classes of Pygments, which colored the code that the book was built with.
  const CLASSES = { and: "ow", or: "ow", not: "ow", in: "ow", is: "ow" };
  ["True", "False", "None"].forEach((word) => (CLASSES[word] = "kc"));
  KEYWORDS.split(" ").forEach((word) => (CLASSES[word] = "k"));
  BUILTINS.split(" ").forEach((word) => (CLASSES[word] = "nb"));
  const TOKENS = [
    ["c1", /#[^\n]*/y],
    ["s2", /[rbfuRBFU]{0,2}("""|''')[\s\S]*?(?:\1|$)/y],
    ["s2", /[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/y],
    ["mf", /(?:\d[\d_]*)?\.\d[\d_]*(?:[eE][+-]?\d+)?j?|\d[\d_]*\.?[eE][+-]?\d+j?/y],
    ["mi", /0[xXoObB][\da-fA-F_]+|\d[\d_]*j?/y],
    ["n", /[^\W\d]\w*/uy],
    ["nd", /@[\w.]+(?=[^\n]*$)/my],
    ["o", /[-+*/%@&|^~<>=!:]+/y],
    ["p", /[()[\]{},.;]/y],
  ];

  /* The code as colored spans; the text of the result is the code. */
  function colored(code) {
    const result = document.createDocumentFragment();
    let at = 0;
    let before = ""; // the word before: names a function or a class
    while (at < code.length) {
      let kind = "";
      let end = at + String.fromCodePoint(code.codePointAt(at)).length;
      for (const [name, pattern] of TOKENS) {
        pattern.lastIndex = at;
        if (pattern.test(code)) {
          kind = name;
          end = pattern.lastIndex;
          break;
        }
      }
      const text = code.slice(at, end);
      if (kind === "n") {
        kind = Object.hasOwn(CLASSES, text) ? CLASSES[text] : "n";
        if (before === "def") kind = "nf";
        if (before === "class") kind = "nc";
        before = text;
      } else if (text.trim()) before = "";
      at = end;
      if (!kind) {
        result.append(text);
        continue;
      }
      const span = document.createElement("span");
      span.className = kind;
      span.textContent = text;
      result.append(span);
    }
    return result;
  }

  /* Types text at the cursor so that the browser's undo knows it. */
  function type(field, text) {
    if (!document.execCommand("insertText", false, text)) {
      field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
      field.dispatchEvent(new Event("input"));
    }
  }

  function indent(field) {
    const before = field.value.slice(0, field.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    return line.match(/^ */)[0] + (/:\s*$/.test(line) ? "    " : "");
  }

  /* Moves every line that the selection touches four columns to the right. */
  function shift(field) {
    const start = field.value.lastIndexOf("\n", field.selectionStart - 1) + 1;
    const end = field.selectionEnd;
    const moved = field.value.slice(start, end).replace(/^(?=[^\n])/gm, "    ");
    field.setSelectionRange(start, end);
    type(field, moved);
    field.setSelectionRange(start, start + moved.length);
  }

  // Field and code box must place every letter alike, whatever the theme says about code.
  const ALIKE = ["fontFamily", "fontSize", "fontWeight", "lineHeight", "letterSpacing", "tabSize"];
  ALIKE.push("paddingTop", "paddingRight", "paddingBottom", "paddingLeft");
  ALIKE.push("borderTopWidth", "borderRightWidth", "borderBottomWidth", "borderLeftWidth");

  /* A text field over the code box `pre`, which keeps showing the colored text.
   *
   * Tab indents, so the keyboard needs a way out: Escape, then Tab. The label says so.
   */
  function edit(pre, code, label, changed, run) {
    const field = document.createElement("textarea");
    field.className = "cp-field";
    field.value = code;
    field.spellcheck = false;
    field.autocapitalize = "off";
    field.setAttribute("autocomplete", "off");
    field.setAttribute("aria-label", label);
    let leaving = false;
    field.addEventListener("input", function () {
      changed(field.value);
    });
    field.addEventListener("scroll", function () {
      pre.scrollLeft = field.scrollLeft;
    });
    field.addEventListener("blur", function () {
      leaving = false;
    });
    field.addEventListener("keydown", function (event) {
      const plain = !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey;
      if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      } else if (event.key === "Enter" && plain && !event.isComposing) {
        event.preventDefault();
        type(field, "\n" + indent(field));
      } else if (event.key === "Tab" && plain && !leaving) {
        event.preventDefault();
        if (field.selectionStart === field.selectionEnd) type(field, "    ");
        else shift(field);
      } else if (event.key !== "Tab" && event.key !== "Shift") {
        leaving = event.key === "Escape";
      }
    });
    const style = getComputedStyle(pre);
    ALIKE.forEach(function (name) {
      field.style[name] = style[name];
    });
    pre.parentNode.classList.add("cp-editing");
    pre.inert = true; // what it shows, the field says
    pre.after(field);
    field.focus();
    return {
      field: field,
      close: function () {
        field.remove();
        pre.parentNode.classList.remove("cp-editing");
        pre.inert = false;
      },
    };
  }

  /* Edits of this page in this browser: a list of { cell, original, code }. The original tells
   * whether the book has changed since. Storage may be blocked, full or hold anything. */
  const KEY = "cp-edits:" + location.pathname;

  function load() {
    try {
      const list = JSON.parse(localStorage.getItem(KEY));
      return Array.isArray(list) ? list.filter((e) => e && typeof e.code === "string") : [];
    } catch (error) {
      return [];
    }
  }

  /* Keeps or, without code, forgets the edit of an original; false if nothing can be stored. */
  function keep(cell, original, code) {
    const list = load().filter((e) => e.cell !== cell || e.original !== original);
    if (code !== null) list.push({ cell: cell, original: original, code: code });
    try {
      if (list.length) localStorage.setItem(KEY, JSON.stringify(list));
      else localStorage.removeItem(KEY);
      return true;
    } catch (error) {
      return false;
    }
  }

  window.cpRunner = Object.assign(window.cpRunner || {}, {
    colored: colored,
    edit: edit,
    edits: { load: load, keep: keep },
  });
})();
