"""Explorables in a real browser: every control works, and what is shown is true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route

from cpcore.ui import catalogue
from cpcore.ui.controls import Choice, Control, IntRange, Step
from cpcore.ui.explorable import Explorable
from tests.support.browser import Record, scrolls_sideways, visiting
from tests.support.explorables import CHECKS
from tests.support.plugin import SAID

NAMES = sorted(catalogue)
SEED = 20261129
SAMPLES = 50
PHONE = {"width": 390, "height": 844}
PLAY_MS = 1500


@cache
def page_of(site: Path, name: str) -> str:
    """The page of the book that holds an explorable."""
    mark = f'data-explorable="{name}"'
    found = [p for p in sorted(site.rglob("*.html")) if mark in p.read_text(encoding="utf-8")]
    assert found, f"no page shows {name}"
    return found[0].relative_to(site).as_posix()


def box_of(page: Page, name: str) -> Locator:
    """The explorable, brought into view and with its controls added."""
    box = page.locator(f'.cp-explorable.cp-ready[data-explorable="{name}"]').first
    box.scroll_into_view_if_needed()
    return box


@contextmanager
def opened(
    browser: Browser, home: str, path: str, name: str, **options: Any
) -> Iterator[tuple[Page, Locator, Record]]:
    """A page of the site, at one of its explorables."""
    with visiting(browser, home, **options) as (page, seen):
        page.goto(home + path)
        yield page, box_of(page, name), seen


@pytest.fixture(scope="module", params=NAMES)
def desk(
    request: pytest.FixtureRequest, site: Path, address: str, browser: Browser
) -> Iterator[tuple[str, Page, Locator, Record]]:
    """An explorable on its page, which each test leaves as it was; nothing was complained about."""
    name: str = request.param
    with opened(browser, address, page_of(site, name), name) as (page, box, seen):
        assert "#" not in page.url
        yield name, page, box, seen
        assert not seen.outside
        assert not seen.complaints


def holder(box: Locator, control: Control) -> Locator:
    """The native control with this label."""
    return box.get_by_label(control.label, exact=True)


def button(box: Locator, text: str) -> Locator:
    """A button of the explorable."""
    return box.get_by_role("button", name=text, exact=True)


def cursor(box: Locator) -> int:
    """Where a step control says that it stands."""
    return count_of(box)[0]


def count_of(box: Locator) -> tuple[int, int]:
    """Where a step control stands, and where it ends for the values of the other controls."""
    at, end = re.findall(r"\d+", box.locator(".cp-count").inner_text())
    return int(at), int(end)


def set_state(box: Locator, entry: Explorable, state: dict[str, Any]) -> None:
    """Move every control to its value as a reader would."""
    for control in entry.controls:
        value = state[control.name]
        if isinstance(control, Choice):
            holder(box, control).select_option(value)
        elif isinstance(control, IntRange):
            holder(box, control).fill(str(value))
        else:
            ready(box)  # the pictures say where this cursor ends
            at, end = count_of(box)
            value = min(value, end)  # past its end a cursor changes nothing
            for _ in range(abs(value - at)):
                button(box, "Step" if value > at else "Back").click()


def ready(box: Locator) -> None:
    """Wait until the picture shown is that of the controls."""
    box.page.wait_for_function("e => !e.hasAttribute('aria-busy')", arg=box.element_handle())


def shown(box: Locator) -> tuple[str, str]:
    """Caption and table as the page holds them now."""
    ready(box)
    return box.locator(".cp-say").inner_html(), tables_of(box)


def tables_of(box: Locator) -> str:
    """Every table, open or collapsed, in the order of the page."""
    return "".join(box.locator("table").evaluate_all("all => all.map(e => e.outerHTML)"))


def check(
    box: Locator, name: str, state: dict[str, Any], seen: tuple[str, str] | None = None
) -> None:
    """What is shown, or was seen, is this state, recomputed."""
    try:
        CHECKS[name](state, *(seen or shown(box)))
    except AssertionError as error:
        raise AssertionError(f"{name} {state}: {error}") from error


def sample(entry: Explorable, seed: int) -> list[dict[str, Any]]:
    """Random states in which every value of every control occurs."""
    rng = random.Random(seed)
    columns = {}
    for control in entry.controls:
        values = list(control.values) * (SAMPLES // len(control.values) + 1)
        columns[control.name] = rng.sample(values[:SAMPLES], SAMPLES)
        assert set(columns[control.name]) == set(control.values)
    return [{name: column[i] for name, column in columns.items()} for i in range(SAMPLES)]


MISPLACED = """root => {
  const bad = [];
  for (const svg of root.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent);
    const rects = texts.map(t => t.getBoundingClientRect());
    texts.forEach((t, i) => {
      const a = rects[i];
      const scale = t.getScreenCTM().a;
      if (parseFloat(getComputedStyle(t).fontSize) * scale < 11.95)
        bad.push("small: " + t.textContent);
      if (a.left < frame.left - 1 || a.right > frame.right + 1 ||
          a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
        bad.push("outside: " + t.textContent);
      for (let j = 0; j < i; j++) {
        const b = rects[j];
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 4) bad.push(t.textContent + " over " + texts[j].textContent);
      }
    });
  }
  return bad;
}"""

# Sets every control by its label, then tells caption, tables, misplaced letters, and how long the
# last control took. One trip for a state: with one for each click the sample would take minutes.
VISIT = """async (root, wanted) => {
  const end = performance.now() + 10000;
  const ready = async () => {
    while (root.hasAttribute("aria-busy")) {
      if (performance.now() > end) throw new Error("no picture within 10 s");
      await new Promise(done => setTimeout(done, 5));
    }
  };
  let took = 0;
  const timed = act => {
    const start = performance.now();
    act();
    root.getBoundingClientRect();
    took = performance.now() - start;
  };
  for (const [label, value, kind] of wanted) {
    if (kind === "step") {
      await ready();
      const button = text =>
        [...root.querySelectorAll("button")].find(b => b.textContent === text);
      const numbers = () => root.querySelector(".cp-count").textContent.match(/\\d+/g).map(Number);
      const target = Math.min(value, numbers()[1]);
      while (numbers()[0] !== target) {
        const before = numbers()[0];
        timed(() => button(before < target ? "Step" : "Back").click());
        await ready();
        if (numbers()[0] === before) throw new Error("the cursor does not move");
      }
      continue;
    }
    const field = [...root.querySelectorAll("select, input")]
      .find(e => [...e.labels].some(l => l.textContent.trim() === label));
    timed(() => {
      field.value = value;
      for (const name of ["input", "change"])
        field.dispatchEvent(new Event(name, { bubbles: true }));
    });
    if (field.value !== String(value)) throw new Error(`${label} does not take ${value}`);
  }
  await ready();
  return {
    say: root.querySelector(".cp-say").innerHTML,
    tables: [...root.querySelectorAll("table")].map(e => e.outerHTML).join(""),
    misplaced: (MISPLACED)(root),
    took,
  };
}""".replace("MISPLACED", MISPLACED)


def visited(box: Locator, entry: Explorable, state: dict[str, Any]) -> dict[str, Any]:
    """What is shown once every control has its value."""
    wanted = [
        [c.label, state[c.name], "step" if isinstance(c, Step) else "field"] for c in entry.controls
    ]
    found: dict[str, Any] = box.evaluate(VISIT, wanted)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_states_is_shown_as_recomputed_and_fits_its_picture(
    site: Path, address: str, browser: Browser, name: str,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    """Also: no letter leaves its picture, covers another or is smaller than 12 px on a phone.

    The time a control takes is told and not judged: a busy machine would make the test fail for no
    fault of the page.
    """
    entry, path = catalogue[name], page_of(site, name)
    took = []
    with opened(browser, address, path, name, viewport=PHONE) as (page, box, seen):
        for state in sample(entry, SEED):
            found = visited(box, entry, state)
            check(box, name, state, (found["say"], found["tables"]))
            assert not found["misplaced"], (state, found["misplaced"])
            took.append(found["took"])
        assert not scrolls_sideways(page)
        assert not seen.outside
        assert not seen.complaints
    record_property(
        SAID,
        f"{name}: seed {SEED}, {SAMPLES} states; a control answers in {median(took):.1f} ms",
    )


def misplaced_text(box: Locator) -> list[str]:
    """Letters outside their picture, on top of each other, or too small to read."""
    found: list[str] = box.evaluate(MISPLACED)
    return found


def other_option(control: Choice) -> int:
    """The place of an option that is not the default."""
    return 0 if control.values.index(control.default) == 1 else 1


def moves_by_mouse(box: Locator, control: Control) -> None:
    """Change a control with the pointer; a native list offers its options to the platform."""
    if isinstance(control, Choice):
        holder(box, control).select_option(index=other_option(control))
    elif isinstance(control, IntRange):
        size = holder(box, control).bounding_box()
        assert size is not None
        holder(box, control).click(position={"x": 3, "y": size["height"] / 2})
    else:
        button(box, "Step").click()


def moves_by_keyboard(box: Locator, control: Control) -> None:
    """Change a control with keys alone."""
    if isinstance(control, Step):
        button(box, "Step").focus()
        box.page.keyboard.press("Enter")
    else:
        holder(box, control).focus()
        box.page.keyboard.press("ArrowDown")


def test_each_control_changes_what_is_shown_and_reset_restores_it(
    desk: tuple[str, Page, Locator, Record],
) -> None:
    name, _, box, seen = desk
    entry = catalogue[name]
    first = shown(box)
    check(box, name, entry.defaults())
    for move in (moves_by_mouse, moves_by_keyboard):
        for control in entry.controls:
            move(box, control)
            assert shown(box) != first, control.name
            reset = button(box, "Reset")
            reset.click() if move is moves_by_mouse else reset.press("Enter")
            assert shown(box) == first, control.name
    assert not seen.complaints


@pytest.mark.parametrize("name", NAMES)
def test_a_finger_on_a_phone_reaches_and_moves_every_control(
    site: Path, address: str, browser: Browser, name: str
) -> None:
    """Targets of at least 24 px, the least that WCAG 2.2 asks for; a list opens by the platform."""
    entry, path = catalogue[name], page_of(site, name)
    phone: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with opened(browser, address, path, name, **phone) as (page, box, seen):
        for target in box.locator(".cp-bar :is(select, input, button), summary").all():
            size = target.bounding_box()
            assert size is not None
            assert min(size["width"], size["height"]) >= 24, target.evaluate("e => e.outerHTML")
        for control in entry.controls:
            first = shown(box)
            if isinstance(control, Choice):
                holder(box, control).tap()
                holder(box, control).select_option(index=other_option(control))
            elif isinstance(control, IntRange):
                holder(box, control).tap(position={"x": 3, "y": 10})
            else:
                button(box, "Step").tap()
            assert shown(box) != first, control.name
            button(box, "Reset").tap()
            assert shown(box) == first, control.name
        assert not scrolls_sideways(page)
        assert not seen.complaints


def test_tab_reaches_every_control_in_order_with_a_visible_focus(
    desk: tuple[str, Page, Locator, Record],
) -> None:
    _, page, box, _ = desk
    fields = box.locator(".cp-bar :is(select, input, button)")
    box.locator(".cp-bar").evaluate("e => { e.tabIndex = -1; e.focus(); }")
    for i in range(fields.count()):
        page.keyboard.press("Tab")
        assert fields.nth(i).evaluate("e => e === document.activeElement"), i
        outline = fields.nth(i).evaluate("e => getComputedStyle(e).outlineWidth")
        assert float(outline.removesuffix("px")) >= 2, i
    for _ in box.locator(".cp-note > .cp-table").all():  # tables that are open scroll by keys
        page.keyboard.press("Tab")
        assert page.locator(":focus").evaluate("e => e.classList.contains('cp-table')")
    page.keyboard.press("Tab")
    for opens in (1, 0):
        page.keyboard.press("Enter")
        assert box.locator("details[open]").count() == opens, "Enter opens the table and shuts it"


def test_the_table_stays_open_and_only_the_caption_is_announced(
    site: Path, address: str, browser: Browser
) -> None:
    path = page_of(site, "merge-stepper")
    with opened(browser, address, path, "merge-stepper") as (_, box, _seen):
        box.locator("summary").click()
        button(box, "Step").click()
        assert box.locator("details[open]").count() == 1
        assert box.locator("[aria-live]").evaluate_all("all => all.map(e => e.className)") == [
            "cp-say"
        ]
        assert box.locator(".cp-say").get_attribute("aria-live") == "polite"


def test_play_steps_to_the_end_quietly_and_pause_stops_it(
    site: Path, address: str, browser: Browser
) -> None:
    path = page_of(site, "merge-stepper")
    with visiting(browser, address) as (page, _):
        page.clock.install()
        page.goto(address + path)
        box = box_of(page, "merge-stepper")
        button(box, "Play").click()
        assert cursor(box) == 1
        assert box.locator(".cp-say").get_attribute("aria-live") == "off"
        page.clock.run_for(PLAY_MS)
        assert cursor(box) == 2
        button(box, "Pause").click()
        page.clock.run_for(3 * PLAY_MS)
        assert cursor(box) == 2
        button(box, "Play").click()
        page.clock.run_for(9 * PLAY_MS)
        assert cursor(box) == 5
        assert box.locator(".cp-say").get_attribute("aria-live") == "polite"
        assert button(box, "Play").is_enabled()
        check(box, "merge-stepper", catalogue["merge-stepper"].defaults() | {"step": 5})


def test_an_explorable_that_has_left_the_page_plays_no_longer(
    site: Path, address: str, browser: Browser
) -> None:
    """A new run of its cell replaces it; it must not go on to write the address."""
    with visiting(browser, address) as (page, _):
        page.clock.install()
        page.goto(address + page_of(site, "merge-stepper"))
        box = box_of(page, "merge-stepper")
        button(box, "Play").click()
        ready(box)
        before = page.url
        assert "step=1" in before
        box.evaluate("e => e.remove()")
        page.clock.run_for(3 * PLAY_MS)
        assert page.url == before


def test_the_address_names_the_state_and_opens_it_again(
    site: Path, address: str, desk: tuple[str, Page, Locator, Record]
) -> None:
    name, page, box, seen = desk
    entry, path = catalogue[name], page_of(site, name)
    for state in sample(entry, SEED)[:3]:
        visited(box, entry, state)
        check(box, name, state)
        with page.context.new_page() as other:
            other.goto(page.url)
            copy = box_of(other, name)
            check(copy, name, state)
            assert shown(copy) == shown(box)
    first = entry.defaults()
    button(box, "Reset").click()
    check(box, name, first)
    if path != "book/index.html":  # the first page opens its explorable in the middle
        assert page.url == address + path
    page.evaluate("hash => { location.hash = hash; }", f"{name}?nonsense=1&step=-1&ranks=99")
    check(box, name, first)
    assert not seen.complaints


def test_an_address_opens_the_first_of_two_copies_and_can_be_followed_within_the_page(
    address: str, browser: Browser
) -> None:
    entry = catalogue["split-explorer"]
    with visiting(browser, address) as (page, seen):
        plain_page(page, address, entry.html() + entry.html())
        page.evaluate("() => { location.hash = 'split-explorer?split=6-2&values=one'; }")
        first, second = page.locator(".cp-ready").all()
        state = entry.defaults() | {"split": "6-2", "values": "one"}
        page.wait_for_function(
            "e => e.querySelector('select').value === '6-2'", arg=first.element_handle()
        )
        check(first, entry.name, state)
        check(second, entry.name, entry.defaults())
        assert not seen.complaints


def test_a_cursor_ends_where_its_picture_stops_changing(
    site: Path, address: str, browser: Browser
) -> None:
    """Two ranks need three steps of backward, eight need fifteen: no dead steps at the end."""
    name = "schedule-explorer"
    with opened(browser, address, page_of(site, name), name) as (_, box, seen):
        entry = catalogue[name]
        for ranks, direction, end in (
            ("8", "backward", 15),
            ("8", "forward", 8),
            ("2", "forward", 2),
        ):
            state = entry.defaults() | {"ranks": ranks, "direction": direction, "step": 15}
            set_state(box, entry, state)
            assert count_of(box) == (end, end)
            assert button(box, "Step").get_attribute("aria-disabled") == "true"
            check(box, name, state)
        button(box, "Back").click()
        set_state(box, entry, entry.defaults() | {"ranks": "8", "step": 0})
        assert count_of(box) == (0, 8)
        assert not seen.complaints


def test_readers_who_asked_for_less_motion_get_step_and_a_reason_instead_of_play(
    site: Path, address: str, browser: Browser
) -> None:
    path = page_of(site, "merge-stepper")
    with opened(browser, address, path, "merge-stepper", reduced_motion="reduce") as (_, box, _s):
        assert button(box, "Play").is_disabled()
        assert "reduced motion" in box.locator(".cp-why").inner_text()
        button(box, "Step").click()
        assert cursor(box) == 1
    with opened(browser, address, path, "merge-stepper") as (_, box, _s):
        assert button(box, "Play").is_enabled()
        assert not box.locator(".cp-why").is_visible()


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_the_first_picture_and_its_true_table_are_there(
    site: Path, address: str, browser: Browser, name: str
) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(address + page_of(site, name))
        box = page.locator(f'.cp-explorable[data-explorable="{name}"]')
        assert box.locator("svg").count() == 2
        assert all(picture.is_visible() for picture in box.locator("svg").all())
        assert "controls appear where scripts run" in box.locator(".cp-still").inner_text()
        caption = box.locator(".cp-say").inner_html()
        CHECKS[name](catalogue[name].defaults(), caption, tables_of(box))


@pytest.mark.parametrize("name", NAMES)
def test_from_disk_the_controls_work(site: Path, browser: Browser, name: str) -> None:
    entry = catalogue[name]
    home = site.as_uri() + "/"
    with opened(browser, home, page_of(site, name), name) as (_, box, seen):
        for state in sample(entry, SEED)[:4]:
            visited(box, entry, state)
            check(box, name, state)
        assert not seen.complaints
        assert not seen.outside


STRICT = "default-src 'none'; script-src 'self'; style-src 'self'"
PLAIN = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>'
    '<link rel="stylesheet" href="../page/explorables.css">'
    '<script defer src="../page/explorables.js"></script><main>{body}</main></html>'
)


def plain_page(page: Page, address: str, body: str) -> None:
    """A page of the site with nothing but explorables, under a strict content policy."""
    url = address + "book/plain.html"
    headers = {"Content-Security-Policy": STRICT, "Content-Type": "text/html"}
    html = PLAIN.format(body=body)
    page.route(url, lambda route: route.fulfill(body=html, headers=headers))
    page.goto(url)


def test_two_copies_on_one_page_under_a_strict_policy_do_not_disturb_each_other(
    address: str, browser: Browser
) -> None:
    entry = catalogue["split-explorer"]
    with visiting(browser, address) as (page, seen):
        plain_page(page, address, entry.html() + entry.html())
        first, second = page.locator(".cp-ready").all()
        values = next(c for c in entry.controls if c.name == "values")
        holder(first, values).select_option("constant")
        check(first, entry.name, entry.defaults() | {"values": "constant"})
        check(second, entry.name, entry.defaults())
        assert page.locator("script[src*=split-explorer]").count() == 1, "one load for both"
        ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids)) == 6
        assert not seen.complaints


def test_pictures_are_fetched_once_and_only_when_the_reader_comes_near(
    address: str, browser: Browser
) -> None:
    html = catalogue["network-lab"].html()
    with visiting(browser, address, viewport=PHONE) as (page, seen):
        lines = "<br>".join("text" for _ in range(200))
        plain_page(page, address, f"{lines}{html}{lines}{html}")
        page.evaluate("() => new Promise(done => setTimeout(done, 100))")  # observers have run
        assert page.locator("script[src*=network-lab]").count() == 0, "nothing near yet"
        for box in page.locator(".cp-ready").all():
            box.scroll_into_view_if_needed()
            page.wait_for_function("() => document.querySelector('script[src*=network-lab]')")
            button(box, "Step").click()
            check(box, "network-lab", catalogue["network-lab"].defaults() | {"step": 1})
        fetched = [r.url for r in seen.responses if "explorables/" in r.url]
        assert len(fetched) == 1


def test_pictures_that_do_not_load_are_reported_and_the_next_use_tries_again(
    address: str, browser: Browser
) -> None:
    entry = catalogue["split-explorer"]
    url = address + "explorables/split-explorer.js"
    with visiting(browser, address) as (page, _):
        page.route(url, lambda route: route.abort())
        plain_page(page, address, entry.html())
        box = box_of(page, entry.name)
        split = entry.controls[0]
        holder(box, split).select_option("3-5")
        problem = box.get_by_role("alert")
        problem.wait_for()
        assert "explorables/split-explorer.js could not be loaded" in problem.inner_text()
        assert box.locator("svg").count() == 2, "the picture stays"
        page.unroute(url)
        holder(box, split).select_option("6-2")
        check(box, entry.name, entry.defaults() | {"split": "6-2"})
        assert not problem.is_visible()


def test_pictures_of_another_version_are_refused(address: str, browser: Browser) -> None:
    entry = catalogue["split-explorer"]
    old = 'cpExplorables.register("split-explorer", {lines: ["x"], frames: [[0]], states: [0]});'

    def serve_old(route: Route) -> None:
        route.fulfill(body=old, content_type="text/javascript")

    with visiting(browser, address) as (page, _):
        page.route(address + "explorables/split-explorer.js", serve_old)
        plain_page(page, address, entry.html())
        box = box_of(page, entry.name)
        holder(box, entry.controls[0]).select_option("3-5")
        problem = box.get_by_role("alert")
        problem.wait_for()
        assert "another version" in problem.inner_text()
        CHECKS[entry.name](entry.defaults(), *shown(box))
