"""Exercises in a real browser: solved with the page's Python, hints in order, progress kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from cpcore.exercises import catalogue, progress
from cpcore.exercises.sources import model_source
from tests.support.accessibility import axe_findings
from tests.support.browser import SCHEMES, Record, scrolls_sideways, visiting
from tests.support.live_page import Desk, code_cells

CHAPTER = "book/12_exercises"
NAME = "merge_chunk_stats"
CELLS = [cell.source for cell in code_cells(CHAPTER)]
STARTER = next(i for i, s in enumerate(CELLS, 1) if f"def {NAME}(" in s and "raise" in s)
KEY = "cp-progress"
ROWS = "#the-map tbody tr:has(a[href^='#'])"


@contextmanager
def opened(browser: Browser, home: str, **options: object) -> Iterator[tuple[Page, Record]]:
    with visiting(browser, home, **options) as (page, seen):
        page.goto(f"{home}{CHAPTER}.html")
        page.locator(".cp-progress").wait_for()
        yield page, seen


def states(page: Page) -> dict[str, str]:
    """What the map says of each exercise, by its title."""
    script = "all => all.map(row => [row.querySelector('a'), row.lastElementChild]"
    rows = page.locator(ROWS).evaluate_all(script + ".map(e => e.innerText.trim()))")
    return {re.sub(r"^\d+\. ", "", title): said for title, said in rows}


def state(page: Page, name: str = NAME) -> str:
    """What the map says of an exercise."""
    return states(page)[catalogue[name].title]


def folds(page: Page, name: str = NAME) -> list[Locator]:
    return page.locator(f'details[data-exercise="{name}"]').all()


def is_open(fold: Locator) -> bool:
    return fold.get_attribute("open") is not None


def kept(page: Page) -> object:
    return json.loads(page.evaluate(f"localStorage.getItem('{KEY}')") or "null")


def test_the_map_has_a_row_for_every_exercise_and_nothing_is_solved(
    address: str, browser: Browser
) -> None:
    with opened(browser, address) as (page, seen):
        assert states(page) == {entry.title: "" for entry in catalogue.values()}
        assert page.locator(".cp-solved").inner_text() == f"0 of {len(catalogue)} solved."
        assert not seen.outside + seen.complaints


def test_hints_open_in_order_and_stay_known_after_a_reload(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, _):
        first, second, third = folds(page)
        for locked in (second, third):
            locked.locator("summary").click()
            assert not is_open(locked)
            assert locked.locator("summary").get_attribute("aria-disabled") == "true"
        assert page.locator(".cp-progress .cp-said").inner_text().startswith("Open the hint before")
        first.locator("summary").click()
        second.locator("summary").focus()
        page.keyboard.press("Enter")
        assert is_open(second)
        assert state(page) == "2 of 3 hints"
        page.reload()
        page.locator(".cp-progress").wait_for()
        assert state(page) == "2 of 3 hints"
        folds(page)[2].locator("summary").click()
        assert is_open(folds(page)[2])
        assert kept(page) == {"version": 1, "exercises": {NAME: {"hints": 3}}}


def press(page: Page, button: Locator) -> None:
    button.focus()
    page.keyboard.press("Enter")


@pytest.fixture(scope="module")
def hosted(site: Path) -> None:
    if not (site / "pyodide").exists():
        pytest.skip("the book was built without Python for the page")


def test_an_exercise_is_solved_from_starter_to_accepted_by_keys_alone(
    address: str, browser: Browser, hosted: None
) -> None:
    with opened(browser, address) as (page, seen):
        desk = Desk(page)
        press(page, desk.button("Run", STARTER + 2))
        assert desk.settled(STARTER + 2).startswith("Ran in")
        assert "not accepted" in desk.outputs(STARTER + 2).inner_text()
        # The exercise before was not needed: only its own starter has run.
        assert desk.note(STARTER - 4).inner_text() == ""
        assert desk.note(STARTER).inner_text().startswith("Ran in")
        assert state(page) == ""

        press(page, desk.button("Edit", STARTER))
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(model_source(NAME))
        page.keyboard.press("Shift+Enter")
        assert desk.settled(STARTER).startswith("Ran in")
        press(page, desk.button("Run", STARTER + 1))
        assert desk.settled(STARTER + 1).startswith("Ran in")
        assert "2 of 2 examples right" in desk.outputs(STARTER + 1).inner_text()
        desk.note(STARTER + 2).evaluate("e => { e.textContent = ''; }")
        press(page, desk.button("Run", STARTER + 2))
        assert desk.settled(STARTER + 2).startswith("Ran in")
        text = desk.outputs(STARTER + 2).inner_text()
        assert "accepted" in text
        assert "6 (model 6)" in text
        assert state(page) == "\u2713 solved"

        page.reload()
        page.locator(".cp-progress").wait_for()
        assert state(page) == "\u2713 solved"
        assert page.locator(".cp-solved").inner_text() == f"1 of {len(catalogue)} solved."
        assert not seen.outside + seen.complaints


def test_progress_travels_between_the_page_and_jupyter(
    address: str, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPCORE_PROGRESS", str(tmp_path / "mine.json"))
    progress.update("striped", solved=True)
    progress.update(NAME, hints=1)
    with opened(browser, address) as (page, _):
        folds(page, "zigzag")[0].locator("summary").click()
        page.locator(".cp-carry summary").click()
        field = page.get_by_label("Progress as text")
        field.fill(progress.export_text())
        page.get_by_role("button", name="Import", exact=True).click()
        assert state(page, "striped") == "\u2713 solved"
        assert state(page) == "1 of 3 hints"
        assert state(page, "zigzag") == "1 of 3 hints"
        page.get_by_role("button", name="Export", exact=True).click()
        progress.import_text(field.input_value())
        assert progress.hints_open("zigzag") == 1

        field.fill('{"version": 1, "exercises": {"striped": {"solved": "yes"}}}')
        page.get_by_role("button", name="Import", exact=True).click()
        assert "Not imported" in page.locator(".cp-progress .cp-said").inner_text()
        assert state(page, "striped") == "\u2713 solved"

        reset = page.get_by_role("button", name="Reset", exact=True)
        reset.click()
        assert state(page, "striped") == "\u2713 solved"
        reset.click()
        assert set(states(page).values()) == {""}
        assert kept(page) is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_is_accessible_and_fits_a_phone(
    address: str, browser: Browser, axe: str, scheme: str
) -> None:
    size = {"width": 390, "height": 844}
    with opened(browser, address, color_scheme=scheme, viewport=size) as (page, seen):
        folds(page)[0].locator("summary").click()
        page.locator(".cp-carry summary").click()
        assert not scrolls_sideways(page)
        assert not axe_findings(page, axe, within=".cp-progress, details[data-exercise]")
        assert not seen.outside + seen.complaints


def test_without_scripts_every_hint_can_be_read(address: str, browser: Browser) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(f"{address}{CHAPTER}.html")
        third = folds(page)[2]
        third.locator("summary").click()
        assert third.locator("p").first.is_visible()
        assert page.get_by_text("not accepted, 0 of").first.is_visible()
