"""Every page of the built book, in a real browser: what a reader's screen and network see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from scripts import check_site
from tests.support.accessibility import axe_findings, color_findings, turn
from tests.support.browser import SCHEMES, WIDTHS, Record, scrolls_sideways, visiting


def pages(site: Path) -> list[str]:
    """Addresses of all pages, relative to the site."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def faults_of_visit(page: Page, seen: Record, url: str, axe: str, judged: set[str]) -> list[str]:
    """Everything wrong with one page at one size, opened light and then turned dark.

    judged: looks of text that other pages have shown.
    """
    seen.clear()
    page.emulate_media(color_scheme="light")
    page.goto(url, wait_until="load")
    page.wait_for_function("document.readyState === 'complete'")
    plain, packed = seen.weight()
    found = []
    if plain > check_site.MAX_PAGE_BYTES or packed > check_site.MAX_PAGE_GZIP_BYTES:
        found.append(f"weighs {plain:,} bytes, {packed:,} gzipped")
    found += scrolls_sideways(page)
    found += axe_findings(page, axe, judged=judged)
    turn(page, "dark")
    found += scrolls_sideways(page)
    found += color_findings(page, axe, judged=judged)
    return found + [f"outside request {url}" for url in seen.outside] + seen.complaints


@pytest.fixture(scope="module")
def judged() -> set[str]:
    """Looks of text whose colors have been judged, on any page and at any width."""
    return set()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_quiet_light_accessible_and_fits(
    site: Path, address: str, browser: Browser, axe: str, judged: set[str], width: int
) -> None:
    found: list[str] = []
    with visiting(browser, address, viewport={"width": width, "height": 844}) as (page, seen):
        for name in pages(site):
            if name == "index.html":
                continue  # leads on at once, tested below
            faults = faults_of_visit(page, seen, address + name, axe, judged)
            found += [f"{name}: {fault}" for fault in faults]
    assert not found, "\n".join(found)


def test_dark_and_light_differ_in_colors_alone(site: Path) -> None:
    """Why a page that was turned dark is asked about its colors only."""
    for name in pages(site):
        text = (site / name).read_text(encoding="utf-8")
        assert not re.search(r'class="[^"]*\bonly-(dark|light)\b', text), name


def test_dark_readers_get_a_dark_page(address: str, browser: Browser) -> None:
    brightness = {}
    for scheme in SCHEMES:
        with visiting(browser, address, color_scheme=scheme) as (page, _):
            page.goto(address + "book/index.html")
            color = page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness[scheme] = sum(map(int, re.findall(r"\d+", color)[:3]))
    assert brightness["dark"] < 200 < 600 < brightness["light"]


def test_start_leads_to_the_book(address: str, browser: Browser) -> None:
    with visiting(browser, address) as (page, seen):
        page.goto(address)
        page.wait_for_url("**/book/index.html")
        assert not seen.outside
        assert not seen.complaints


def test_search_finds_chapter_three(address: str, browser: Browser) -> None:
    with visiting(browser, address) as (page, seen):
        page.goto(address + "search.html?q=rescale+merge")
        page.wait_for_selector("#search-results ul.search li a")
        links = page.eval_on_selector_all(
            "#search-results ul.search li a", "all => all.map(a => a.href)"
        )
        assert any("03_rescale_and_merge" in link for link in links)
        assert not seen.outside
        assert not seen.complaints


def test_only_the_search_page_loads_the_index(site: Path) -> None:
    loaders = [name for name in pages(site) if "searchindex.js" in (site / name).read_text("utf-8")]
    assert loaders == ["search.html"]


def test_missing_page_answers_404_with_a_way_home(address: str, browser: Browser) -> None:
    with visiting(browser, address) as (page, seen):
        response = page.goto(address + "book/no_such_page.html")
        assert response is not None
        assert response.status == 404
        page.click("#home")
        page.wait_for_url("**/book/index.html")
        assert not seen.outside


def test_pages_open_from_disk_without_complaint(site: Path, browser: Browser) -> None:
    found = []
    with visiting(browser, "file://") as (page, seen):
        for name in pages(site):
            if not name.startswith("book/"):
                continue
            seen.clear()
            page.goto((site / name).as_uri(), wait_until="load")
            found += [f"{name}: {fault}" for fault in seen.outside + seen.complaints]
    assert not found, "\n".join(found)


BOXES = [".katex-display", ".pst-scrollable-table-container", ".highlight pre"]


def test_what_is_wider_than_the_screen_scrolls_by_keyboard_and_shows_it(
    site: Path, address: str, browser: Browser
) -> None:
    wide = "all => all.findIndex(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 5)"
    style = "e => [getComputedStyle(e).outlineStyle, getComputedStyle(e).backgroundAttachment]"
    scrolled = dict.fromkeys(BOXES, 0)
    with visiting(browser, address, viewport={"width": 240, "height": 844}) as (page, _):
        for name in [name for name in pages(site) if name.startswith("book/")]:
            page.goto(address + name, wait_until="load")
            for box in BOXES:
                index = page.eval_on_selector_all(box, wide)
                if index < 0:
                    continue
                scroller = page.locator(box).nth(index)
                scroller.focus()
                page.keyboard.press("ArrowRight")
                page.wait_for_function("e => e.scrollLeft > 0", arg=scroller.element_handle())
                assert scroller.evaluate(style) == ["solid", "local, local, scroll, scroll"]
                scrolled[box] += 1
    assert all(scrolled.values()), scrolled


@pytest.mark.parametrize("name", ["02_naive_softmax", "03_rescale_and_merge"])
def test_without_scripts_first_frame_and_table_are_there(
    site: Path, address: str, browser: Browser, name: str
) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(f"{address}book/{name}.html")
        boxes = page.locator(".cp-explorable")
        assert boxes.count() >= 1
        for box in boxes.all():
            assert box.locator("svg").first.is_visible()
            assert box.locator("table").count() >= 1


def test_the_callouts_of_a_chapter_are_marked(site: Path) -> None:
    text = (site / "book/03_rescale_and_merge.html").read_text(encoding="utf-8")
    for kind in ("prediction", "check", "interview"):
        assert f'class="cp-callout cp-{kind}"' in text


def test_edit_and_issue_links_follow_the_one_setting(site: Path) -> None:
    import yaml

    config = yaml.safe_load(Path("_config.yml").read_text(encoding="utf-8"))
    url = config["repository"]["url"]
    text = (site / "book/02_naive_softmax.html").read_text(encoding="utf-8")
    assert f"{url}/edit/main/book/02_naive_softmax.ipynb" in text
    assert f"{url}/issues/new" in text
