"""The browser checks themselves: each must notice the fault that it is there for."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import axe_findings, scrolls_sideways, serving, visiting

PAGE = '<!doctype html><html lang="en"><head><title>t</title></head><body><main>{}</main></body>'


def faults(browser: Browser, folder: Path, body: str, axe: str) -> dict[str, list[str]]:
    """What the checks say about a page with this body."""
    (folder / "page.html").write_text(PAGE.format(body), encoding="utf-8")
    with (
        serving(folder) as home,
        visiting(browser, home, viewport={"width": 390, "height": 844}) as (page, seen),
    ):
        page.goto(home + "page.html", wait_until="load")
        page.wait_for_timeout(100)
        return {
            "outside": list(seen.outside),
            "complaints": list(seen.complaints),
            "scroll": scrolls_sideways(page),
            "axe": axe_findings(page, axe),
        }


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("<script>fetch('http://outside.invalid/x').catch(() => 0)</script>", "outside"),
        ("<img alt='x' src='http://outside.invalid/x.png'>", "outside"),
        ("<script>console.warn('careful')</script>", "complaints"),
        ("<script>throw new Error('broken')</script>", "complaints"),
        ("<p style='width: 600px'>wide</p>", "scroll"),
        ("<p style='color: #ccc; background: #fff'>faint</p>", "axe"),
        ("<input type='range'>", "axe"),
    ],
)
def test_a_fault_is_noticed(
    browser: Browser, tmp_path: Path, axe: str, body: str, check: str
) -> None:
    assert faults(browser, tmp_path, body, axe)[check]


def test_a_clean_page_has_no_findings(browser: Browser, tmp_path: Path, axe: str) -> None:
    found = faults(browser, tmp_path, "<h1>Title</h1><p>Text.</p>", axe)
    assert not any(found.values()), found
