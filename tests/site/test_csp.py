"""The content policy in a browser: what it blocks, and that everything of the theme still works.

What must be blocked is tried without the headers that a host may add, so a page's own policy is
enough. What must work is tried with both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import Bare, Record, serving, visiting

CHAPTER = "book/03_rescale_and_merge.html"
Visit = AbstractContextManager[tuple[Page, Record]]


@pytest.fixture
def bare(site: Path) -> Iterator[str]:
    """Where the book is served without headers."""
    with serving(site, Bare) as home:
        yield home


@pytest.fixture
def visit(browser: Browser, address: str) -> Callable[..., Visit]:
    """Opens a watched page; leaves nothing behind."""
    return lambda **options: visiting(browser, address, **options)


# Blocked

# Each marks the page if it runs.
INJECTED = {
    "script": "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    "document.body.append(s)",
    "handler": "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.ran=1>')",
    "address": "const a = document.createElement('a'); a.href = 'javascript:window.ran=1';"
    "document.body.append(a); a.click()",
    "string": "setTimeout('window.ran = 1')",
    "blob": "const s = document.createElement('script');"
    "s.src = URL.createObjectURL(new Blob(['window.ran = 1'])); document.body.append(s)",
    "worker": "new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])))"
    ".onmessage = () => { window.ran = 1 }",
    "style": "document.body.insertAdjacentHTML('beforeend', '<style>h1 { width: 7px }</style>');"
    "if (getComputedStyle(document.querySelector('h1')).width === '7px') window.ran = 1",
}


@pytest.mark.parametrize("kind", INJECTED)
def test_what_is_injected_into_a_page_does_not_run(browser: Browser, bare: str, kind: str) -> None:
    with visiting(browser, bare) as (page, seen):
        page.goto(bare + CHAPTER)
        seen.clear()
        page.evaluate(f"() => {{ {INJECTED[kind]} }}")
        page.wait_for_timeout(200)
        assert page.evaluate("window.ran") is None
        assert any("Content Security Policy" in line for line in seen.complaints)


@pytest.mark.parametrize("kind", INJECTED)
def test_the_injections_run_where_there_is_no_policy(
    browser: Browser, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "page.html").write_text("<title>t</title><h1>x</h1>", encoding="utf-8")
    with serving(tmp_path, Bare) as home, visiting(browser, home) as (page, _):
        page.goto(home + "page.html")
        page.evaluate(f"() => {{ {INJECTED[kind]} }}")
        page.wait_for_timeout(200)
        assert page.evaluate("window.ran") == 1


OUTSIDE = {
    "fetch": "fetch('http://outside.invalid/x').catch(() => 0)",
    "beacon": "navigator.sendBeacon('http://outside.invalid/x')",
    "socket": "new WebSocket('ws://outside.invalid/x')",
    "image": "new Image().src = 'http://outside.invalid/x'",
    "script": "const s = document.createElement('script'); s.src = 'http://outside.invalid/x';"
    "document.body.append(s)",
    "sheet": "const l = document.createElement('link'); l.rel = 'stylesheet';"
    "l.href = 'http://outside.invalid/x'; document.head.append(l)",
    "font": "new FontFace('x', 'url(http://outside.invalid/x)').load().catch(() => 0)",
    "frame": "const f = document.createElement('iframe'); f.src = 'http://outside.invalid/x';"
    "document.body.append(f)",
    "form": "const f = document.createElement('form'); f.action = 'http://outside.invalid/x';"
    "document.body.append(f); f.submit()",
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_page_sends_nothing_to_another_site(browser: Browser, bare: str, kind: str) -> None:
    with visiting(browser, bare) as (page, seen):
        page.goto(bare + CHAPTER)
        seen.clear()
        page.evaluate(f"() => {{ {OUTSIDE[kind]} }}")
        page.wait_for_timeout(200)
        assert seen.outside == []
        assert any("Content Security Policy" in line for line in seen.complaints)


# Still working


def test_the_theme_switch_changes_the_colors_and_is_remembered(
    visit: Callable[..., Visit], address: str
) -> None:
    with visit(color_scheme="light") as (page, seen):
        page.goto(address + CHAPTER)
        modes = []
        for _ in range(3):
            page.locator(".theme-switch-button").first.click()
            modes.append(page.evaluate("document.documentElement.dataset.mode"))
        assert sorted(modes) == ["auto", "dark", "light"]
        while page.evaluate("document.documentElement.dataset.theme") != "dark":
            page.locator(".theme-switch-button").first.click()
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert not seen.complaints


def test_the_search_dialog_finds_a_chapter_and_shows_its_text(
    visit: Callable[..., Visit], address: str
) -> None:
    with visit(viewport={"width": 1280, "height": 900}) as (page, seen):
        page.goto(address + "book/index.html")
        page.locator(".search-button__button:visible").first.click()
        page.locator("#pst-search-dialog input").fill("rescale")
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results li p.context")  # read from the page by fetch
        page.locator("#search-results li a", has_text="merge").first.click()
        page.wait_for_url("**/03_rescale_and_merge.html*")
        assert not seen.complaints


def test_the_sidebar_folds_away_on_a_wide_screen(visit: Callable[..., Visit], address: str) -> None:
    with visit(viewport={"width": 1280, "height": 900}) as (page, seen):
        page.goto(address + CHAPTER)
        sidebar = page.locator("#pst-primary-sidebar")
        assert sidebar.is_visible()
        page.locator(".primary-toggle:visible").first.click()
        sidebar.wait_for(state="hidden")
        page.locator(".primary-toggle:visible").first.click()
        sidebar.wait_for(state="visible")
        assert not seen.complaints


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_the_menus_open_and_close_on_a_phone(
    visit: Callable[..., Visit], address: str, side: str
) -> None:
    with visit(viewport={"width": 390, "height": 844}) as (page, seen):
        page.goto(address + CHAPTER)
        page.locator(f".{side}-toggle:visible").first.click()
        dialog = page.locator(f"#pst-{side}-sidebar-modal")
        dialog.wait_for(state="visible")
        assert dialog.locator("a:visible").count() > 3
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        assert not seen.complaints


def test_full_screen_by_click_and_by_keyboard(visit: Callable[..., Visit], address: str) -> None:
    with visit() as (page, seen):
        page.goto(address + CHAPTER)
        button = page.locator(".btn-fullscreen-button")
        button.click()
        page.wait_for_function("() => document.fullscreenElement !== null")
        button.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.fullscreenElement === null")
        assert not seen.complaints


def test_the_download_menu_prints_and_gives_the_notebook(
    visit: Callable[..., Visit], address: str
) -> None:
    with visit() as (page, seen):
        page.add_init_script("window.print = () => { window.printed = true }")
        page.goto(address + CHAPTER)
        menu = page.locator(".dropdown-download-buttons > button")
        menu.click()
        page.locator(".btn-download-pdf-button").click()
        assert page.evaluate("window.printed")
        menu.click()
        with page.expect_download() as download:
            page.locator(".btn-download-source-button").click()
        notebook = json.loads(download.value.path().read_text(encoding="utf-8"))
        assert notebook["nbformat"] == 4
        assert not seen.complaints


def test_code_is_copied_and_folded_cells_open(visit: Callable[..., Visit], address: str) -> None:
    with visit(permissions=["clipboard-read", "clipboard-write"]) as (page, seen):
        page.goto(address + CHAPTER)
        code = page.locator(".cell_input .highlight:visible").first
        code.hover()
        code.locator(".copybtn").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == code.locator("pre").inner_text().strip()
        folded = page.locator("details.hide").first
        folded.locator("summary").click()
        assert folded.locator("pre").first.is_visible()
        assert not seen.complaints


def test_from_disk_the_page_is_styled_and_its_explorable_moves(
    browser: Browser, site: Path
) -> None:
    with visiting(browser, "file://") as (page, seen):
        page.goto((site / CHAPTER).as_uri())
        box = page.locator(".cp-ready").first
        before = box.locator(".cp-stage").inner_html()
        box.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_function("e => !e.hasAttribute('aria-busy')", arg=box.element_handle())
        assert box.locator(".cp-stage").inner_html() != before
        fonts = "() => [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family)"
        assert any("KaTeX" in family for family in page.evaluate(fonts))
        page.goto((site / "search.html").as_uri() + "?q=rescale+merge")
        page.wait_for_selector("#search-results ul.search li a")
        assert not seen.outside
