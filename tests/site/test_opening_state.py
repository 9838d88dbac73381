"""An explorable on a Markdown page may open in the middle; Reset goes to the start."""

from __future__ import annotations

from playwright.sync_api import Browser

from cpcore.ui import merge_stepper
from tests.support.browser import visiting


def test_the_index_opens_the_merge_stepper_at_step_two_and_reset_goes_to_zero(
    address: str, browser: Browser
) -> None:
    with visiting(browser, address) as (page, seen):
        page.goto(address + "book/index.html")
        box = page.locator('.cp-ready[data-explorable="merge-stepper"]')
        box.scroll_into_view_if_needed()
        assert box.locator(".cp-count").inner_text() == "step 2 of 5"
        caption = box.locator(".cp-say")
        assert caption.inner_html() == merge_stepper.lines(step=2)[0]
        box.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_function("e => !e.hasAttribute('aria-busy')", arg=box.element_handle())
        assert caption.inner_html() == merge_stepper.lines(step=3)[0]
        box.get_by_role("button", name="Reset", exact=True).click()
        assert box.locator(".cp-count").inner_text() == "step 0 of 5"
        assert caption.inner_html() == merge_stepper.lines()[0]
        assert not seen.outside + seen.complaints
