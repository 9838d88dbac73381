"""What axe finds on a page: every rule but those of color on all of it, those on two of each look.

A page has thousands of words of few looks. The color of words, how large they are and what lies
behind them decide whether they can be read, so two words of each look are enough, and a fraction of
the time.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# Only what fails is described, and nothing is fetched a second time: twice as fast.
AXE = {"resultTypes": ["violations"], "preload": False}
COLOR_RULES = ["color-contrast", "link-in-text-block"]  # all that depend on colors
# Findings in markup that the theme makes and we cannot change from here, by rule and element.
UPSTREAM: dict[str, tuple[str, str]] = {}

# First and last visible element with text, or field, of each look within the parts that match. Two,
# because axe is not sure of what is partly covered or scrolled away.
OF_EACH = """part => {
  const grounds = new Map([[null, ""]]);
  const ground = e => {
    if (!grounds.has(e)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
      const own = `/${backgroundColor} ${backgroundImage} ${opacity}`;
      const clear = own === "/rgba(0, 0, 0, 0) none 1" ? "" : own;
      grounds.set(e, ground(e.parentElement) + clear);
    }
    return grounds.get(e);
  };
  const looks = new Map();
  for (const root of document.querySelectorAll(part)) {
    for (const e of [root, ...root.querySelectorAll("*")]) {
      const own = [...e.childNodes].filter(n => n.nodeType === Node.TEXT_NODE);
      const length = own.map(n => n.data).join("").trim().length;
      if (!(length || e.matches("input, select, textarea")) || !e.checkVisibility()) continue;
      const s = getComputedStyle(e);
      const around = e.parentElement ? getComputedStyle(e.parentElement).color : "";
      // Of a single letter axe is never sure.
      const look = [length > 1, e.localName, s.color, s.fontSize, s.fontWeight,
                    s.textDecorationLine, s.borderBottom, s.textShadow, around, ground(e)].join();
      looks.set(look, [looks.has(look) ? looks.get(look)[0] : e, e]);
    }
  }
  return [...new Set([...looks.values()].flat())];
}"""

# Code and formulas without the thousands of elements that color and place their letters.
STRIP = """kept => {
  const dull = box => !kept.some(e => box.contains(e));
  for (const code of document.querySelectorAll(".highlight pre"))
    if (dull(code)) code.textContent = code.textContent;
  for (const formula of document.querySelectorAll(".katex-html"))
    if (dull(formula)) formula.replaceChildren();
}"""

# Colors are judged as they are in the end, and without the shadows at the edges of what scrolls:
# with a picture behind words, axe says nothing.
PLAIN = """
  *, ::before, ::after { transition: none !important; }
  .highlight pre, .katex-display, .pst-scrollable-table-container {
    background-image: none !important;
  }"""

RUN = f"""async ([part, rules, colors, last, options, plain]) => {{
  if (colors) {{
    const style = new CSSStyleSheet();
    style.replaceSync(plain);
    document.adoptedStyleSheets.push(style);
  }}
  const looks = colors ? ({OF_EACH})(part) : [];
  if (last) ({STRIP})(looks);
  const only = values => ({{ ...options, runOnly: {{ type: "rule", values }} }});
  const off = Object.fromEntries(rules.map(rule => [rule, {{ enabled: false }}]));
  const found = colors === "only" ? [] : [await axe.run(part, {{ ...options, rules: off }})];
  if (looks.length) found.push(await axe.run({{ include: looks }}, only(rules)));
  return found.flatMap(each => each.violations);
}}"""


def axe_findings(
    page: Page, axe: str, *, within: str = "html", colors: bool | str = True, last: bool = False
) -> list[str]:
    """Serious and critical findings of axe, upstream exceptions apart.

    axe: its source. within: the parts that are looked at. colors: also the rules of color, or
    "only" these. last: the page is not used any more, and may lose words of no look of their own.
    """
    page.evaluate(axe)
    arguments: list[Any] = [within, COLOR_RULES, colors, last, AXE, PLAIN]
    return [
        f"{v['id']} ({v['impact']}): {node['target']} {node['html'][:120]}"
        for v in page.evaluate(RUN, arguments)
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
        if UPSTREAM.get(v["id"], ("", ""))[0] not in node["html"] or v["id"] not in UPSTREAM
    ]
