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

# By look, the first and last element with text, or field, within the parts that match, and whether
# it is a link among other words. Two, because axe is not sure of what is partly covered.
#
# Left out is what axe finds no fault with, whatever its colors: what no one sees, fields without
# words, the letters of pictures, and, but for links among words, single letters and what is out of
# use.
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
  const inText = link => {
    let block = link.parentElement;
    while (block && getComputedStyle(block).display === "inline") block = block.parentElement;
    const letters = e => e.textContent.replace(/\\s/g, "").length;
    const links = block ? [...block.querySelectorAll("a[href]")].map(letters) : [];
    return !!block && letters(block) > links.reduce((sum, length) => sum + length, 0);
  };
  const unseen = e => {
    const copy = e.closest(".katex-mathml");
    return !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })
      || e.getBoundingClientRect().bottom + scrollY <= 0
      || (copy && getComputedStyle(copy).clip !== "auto");
  };
  const unused = "[aria-disabled=true], :disabled";
  const wordless = "input:is([type=checkbox], [type=radio], [type=range], [type=color])";
  const looks = new Map();
  for (const root of document.querySelectorAll(part)) {
    for (const e of [root, ...root.querySelectorAll("*")]) {
      const own = [...e.childNodes].filter(n => n.nodeType === Node.TEXT_NODE);
      const length = own.map(n => n.data).join("").trim().length;
      const link = length > 0 && e.matches("a[href]") && inText(e);
      const field = e.matches("input, select, textarea");
      if (field ? e.matches(wordless) : !link && length <= 1) continue;
      if (e instanceof SVGElement || (!link && e.closest(unused)) || unseen(e)) continue;
      const s = getComputedStyle(e);
      const around = e.parentElement ? getComputedStyle(e.parentElement).color : "";
      const look = [length > 1, e.localName, link, s.color, s.fontSize, s.webkitTextFillColor,
                    s.fontWeight, s.textDecorationLine, s.borderBottom, s.textShadow, around,
                    ground(e)].join();
      const { both: [first] } = looks.get(look) ?? { both: [e] };
      looks.set(look, { both: [first, e], link });
    }
  }
  return looks;
}"""

# Takes from code and formulas the thousands of elements that color and place their letters, and
# returns how to put them back.
STRIP = """kept => {
  const undo = [];
  for (const box of document.querySelectorAll(".highlight pre, .katex-html")) {
    if (kept.some(e => box.contains(e))) continue;
    const nodes = [...box.childNodes];
    box.replaceChildren(box.matches("pre") ? box.textContent : "");
    undo.push(() => box.replaceChildren(...nodes));
  }
  return () => undo.forEach(restore => restore());
}"""

# Colors are judged as they are in the end, and without the shadows at the edges of what scrolls:
# with a picture behind words, axe says nothing.
PLAIN = """
  *, ::before, ::after { transition: none !important; }
  .highlight pre, .katex-display, .pst-scrollable-table-container {
    background-image: none !important;
  }"""

RULES = """async ([part, colors, options]) => {
  const rules = Object.fromEntries(colors.map(rule => [rule, { enabled: false }]));
  return (await axe.run(part, { ...options, rules })).violations;
}"""

COLORS = f"""async ([part, values, options, plain, judged]) => {{
  const style = new CSSStyleSheet();
  style.replaceSync(plain);
  const before = [...document.adoptedStyleSheets];
  document.adoptedStyleSheets = [...before, style];
  const known = new Set(judged);
  const looks = [...({OF_EACH})(part)].filter(([look]) => !known.has(look));
  const include = [...new Set(looks.flatMap(([_, {{ both }}]) => both))];
  const restore = ({STRIP})(include);
  const only = {{ ...options, resultTypes: ["violations", "passes"], elementRef: true,
    runOnly: {{ type: "rule", values }} }};
  const nothing = {{ violations: [], passes: [] }};
  const found = include.length ? await axe.run({{ include }}, only) : nothing;
  restore();
  document.adoptedStyleSheets = before;
  const told = found.violations.map(({{ id, impact, nodes }}) => ({{
    id, impact, nodes: nodes.map(({{ target, html }}) => ({{ target, html }})),
  }}));
  // A verdict on every rule that can apply: axe asks nothing of links without words around them.
  const decided = rule => new Set([...found.passes, ...found.violations]
    .filter(({{ id }}) => id === rule).flatMap(({{ nodes }}) => nodes.map(node => node.element)));
  const verdicts = values.map(decided);
  const sure = looks.filter(([_, {{ both, link }}]) => verdicts.every((seen, i) =>
    both.some(e => seen.has(e)) || (values[i] === "link-in-text-block" && !link)
  ));
  return [told, sure.map(([look]) => look)];
}}"""

# The theme follows the system's scheme in its own time.
TURNED = """dark => (getComputedStyle(document.body).backgroundColor
  .match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) < 200) === dark"""


def turn(page: Page, scheme: str) -> None:
    """Let the reader's system ask for "light" or "dark", and wait until the page has turned."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.wait_for_function(TURNED, arg=scheme == "dark")


def axe_findings(
    page: Page, axe: str, *, within: str = "html", judged: set[str] | None = None
) -> list[str]:
    """Serious and critical findings of axe, upstream exceptions apart.

    axe: its source. within: the parts that are looked at. judged: as in `color_findings`.
    """
    _bring(page, axe)
    found = _told(page.evaluate(RULES, [within, COLOR_RULES, AXE]))
    return found + color_findings(page, axe, within=within, judged=judged)


def color_findings(
    page: Page, axe: str, *, within: str = "html", judged: set[str] | None = None
) -> list[str]:
    """Those of the rules of color alone.

    judged: looks of other pages, which are not judged again; those of this page of which axe was
    sure join them.
    """
    _bring(page, axe)
    known = set() if judged is None else judged
    arguments: list[Any] = [within, COLOR_RULES, AXE, PLAIN, sorted(known)]
    violations, looks = page.evaluate(COLORS, arguments)
    known.update(looks)
    return _told(violations)


def _bring(page: Page, axe: str) -> None:
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)


def _told(violations: list[dict[str, Any]]) -> list[str]:
    """One line for each element at fault."""
    return [
        f"{v['id']} ({v['impact']}): {node['target']} {node['html'][:120]}"
        for v in violations
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
        if UPSTREAM.get(v["id"], ("", ""))[0] not in node["html"] or v["id"] not in UPSTREAM
    ]
