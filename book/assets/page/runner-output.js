/* What a live cell shows: streams, text, pictures and HTML, in the markup of stored outputs.
 *
 * HTML comes from a reader's Python, so it is never trusted: it is parsed inert, and only known
 * elements and attributes move into the page. Nothing in it can run or load.
 */
(function () {
  "use strict";

  const words = function (text) {
    return new Set(text.split(" "));
  };
  const HTML = words(
    "a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em " +
      "figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small " +
      "span strong sub summary sup table tbody td tfoot th thead time tr u ul var wbr"
  );
  const SVG = words(
    "svg g defs symbol use path rect circle ellipse line polyline polygon text tspan title desc " +
      "marker clipPath mask pattern linearGradient radialGradient stop"
  );
  const ATTRIBUTES = words(
    "alt class colspan dir headers height href id lang open role rowspan scope span src start " +
      "style tabindex title width"
  );
  const LOCAL = /^\s*#/;
  const LINK = /^\s*(#|https?:|mailto:|[\w.-]+(#|$))/i;
  const PICTURE = /^\s*data:image\/(png|jpeg|gif|webp);base64,/i;
  const FETCHES = /\\|image-set|@import|url\s*\(\s*(?!['"]?#)|src\s*\(/i; // also by CSS escapes

  function keepsAttribute(element, name, value) {
    if (name === "href" || name === "xlink:href") {
      return (element.localName === "a" ? LINK : LOCAL).test(value);
    }
    if (name === "src") return element.localName === "img" && PICTURE.test(value);
    if (/^on/i.test(name) || FETCHES.test(value)) return false;
    const svg = element.namespaceURI.endsWith("/svg");
    return svg || ATTRIBUTES.has(name) || /^(aria|data)-/.test(name);
  }

  function clean(node) {
    Array.from(node.childNodes).forEach(function (child) {
      if (child.nodeType === Node.TEXT_NODE) return;
      const element = child.nodeType === Node.ELEMENT_NODE;
      const known = element && (child.namespaceURI.endsWith("/svg") ? SVG : HTML);
      if (!known || !known.has(child.localName)) {
        child.remove();
        return;
      }
      Array.from(child.attributes).forEach(function (attribute) {
        if (!keepsAttribute(child, attribute.name, attribute.value)) {
          child.removeAttribute(attribute.name);
        }
      });
      if (child.localName === "a") child.setAttribute("rel", "noopener noreferrer");
      clean(child);
    });
  }

  /* A fragment of the harmless part of some HTML. */
  function harmless(html) {
    const body = new DOMParser().parseFromString(html, "text/html").body;
    clean(body);
    const fragment = document.createDocumentFragment();
    fragment.append.apply(fragment, Array.from(body.childNodes));
    return fragment;
  }

  function box(kind, content) {
    const made = document.createElement("div");
    made.className = "output " + kind;
    made.append(content);
    return made;
  }

  /* Text in the markup of the theme, which styles it and lets the keyboard scroll it. */
  function printed(kind, text) {
    const frame = document.createElement("div");
    frame.className = "highlight";
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    pre.textContent = text;
    frame.append(pre);
    return box(kind + " highlight-myst-ansi notranslate", frame);
  }

  function picture(base64, text) {
    const image = document.createElement("img");
    image.src = "data:image/png;base64," + base64;
    image.alt = text;
    return box("image_png", image);
  }

  function shown(data) {
    const html = data["text/html"] || data["image/svg+xml"];
    if (html) return box("text_html", harmless(html));
    if (data["image/png"]) return picture(data["image/png"], data["text/plain"]);
    return printed("text_plain", data["text/plain"] + "\n");
  }

  /* Append one output to the others of a cell. */
  function show(outputs, output) {
    const last = outputs.lastElementChild;
    if (output.kind === "data") {
      outputs.append(shown(output.data));
    } else if (output.kind === "error") {
      const error = printed("traceback", output.text + "\n");
      error.classList.add("cp-error");
      outputs.append(error);
    } else if (last && last.dataset.stream === output.name) {
      last.querySelector("pre").append(output.text);
    } else {
      const stream = printed(output.name === "stderr" ? "stderr" : "stream", output.text);
      stream.dataset.stream = output.name;
      outputs.append(stream);
    }
  }

  window.cpRunner = Object.assign(window.cpRunner || {}, { show: show, harmless: harmless });
})();
