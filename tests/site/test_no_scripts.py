"""Without scripts a page still reads well: right colors, no dead buttons, a way to other pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from playwright.sync_api import Browser

from scripts import serve
from tests.support.accessibility import axe_findings
from tests.support.browser import scrolls_sideways, serving, visiting

CHAPTER = "book/03_rescale_and_merge.html"
PHONE = {"width": 390, "height": 844}


class Scriptless(serve.Handler):
    """Blocks the scripts of every page, and leaves those of the tests."""

    site_headers: ClassVar[dict[str, str]] = {"Content-Security-Policy": "script-src 'none'"}


@pytest.fixture
def scriptless(site: Path) -> Iterator[str]:
    """Where the book is served without its scripts."""
    with serving(site, Scriptless) as home:
        yield home


def test_every_page_is_readable_for_who_prefers_dark_and_has_no_scripts(
    site: Path, scriptless: str, browser: Browser, axe: str
) -> None:
    found: list[str] = []
    judged: set[str] = set()
    with visiting(browser, scriptless, viewport=PHONE, color_scheme="dark") as (page, seen):
        for path in sorted(site.glob("book/*.html")):
            page.goto(f"{scriptless}book/{path.name}")
            faults = scrolls_sideways(page) + axe_findings(page, axe, judged=judged)
            found += [f"{path.name}: {fault}" for fault in faults]
        assert any("script-src 'none'" in line for line in seen.complaints)
        assert not seen.outside
    assert not found, "\n".join(found)


def test_no_button_is_shown_that_needs_a_script(browser: Browser, address: str) -> None:
    for width in (390, 1280):
        size = {"width": width, "height": 844}
        with visiting(browser, address, viewport=size, java_script_enabled=False) as (page, _):
            page.goto(address + CHAPTER)
            shown = [b for b in page.locator("button").all() if b.is_visible()]
            assert [b.get_attribute("class") for b in shown] == []


def test_a_phone_without_scripts_has_the_contents_after_the_text(
    browser: Browser, address: str
) -> None:
    with visiting(browser, address, viewport=PHONE, java_script_enabled=False) as (page, _):
        page.goto(address + CHAPTER)
        link = page.locator("#pst-primary-sidebar a", has_text="Notation")
        place, text = link.bounding_box(), page.locator("article").bounding_box()
        assert place
        assert text
        assert place["y"] > text["y"] + text["height"]
        link.click()
        page.wait_for_url("**/notation.html")


def test_code_that_is_folded_opens_without_scripts(browser: Browser, address: str) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(address + CHAPTER)
        folded = page.locator("details.hide").first
        assert not folded.locator("pre").first.is_visible()
        folded.locator("summary").click()
        assert folded.locator("pre").first.is_visible()
        assert page.locator(".katex").first.is_visible()
