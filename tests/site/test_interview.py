"""The practice page in a real browser: a whole mock by keyboard, a reload, drills, cards, paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from scripts.interview import load
from tests.support.accessibility import axe_findings
from tests.support.browser import Record, scrolls_sideways, visiting

PAGE = "book/practice.html"
BOX = ".cp-practice"
PHONE = {"width": 390, "height": 844}
BANK = load()


@contextmanager
def opened(browser: Browser, home: str, **options: Any) -> Iterator[tuple[Page, Locator, Record]]:
    """The practice page with its trainer ready."""
    with visiting(browser, home, **options) as (page, seen):
        page.goto(home + PAGE)
        yield page, page.locator(".cp-practice.cp-ready"), seen


def tab_to(page: Page, name: str) -> None:
    """Move the focus with Tab until it is on the control of this name."""
    script = """() => {
      const e = document.activeElement;
      const label = e.labels && e.labels.length ? e.labels[0].textContent : "";
      return (label || e.textContent || "").trim();
    }"""
    for _ in range(120):
        page.keyboard.press("Tab")
        if re.match(name, page.evaluate(script)):
            return
    raise AssertionError(f"Tab never reaches {name!r}")


def press(page: Page, name: str, key: str = "Enter") -> None:
    tab_to(page, name)
    page.keyboard.press(key)


def grade_all(page: Page, points: int) -> None:
    """Grade all six axes with the keyboard, from the model answer on."""
    for axis in range(6):
        page.locator(".cp-practice fieldset").nth(axis).locator("input").first.focus()
        page.keyboard.press("Space")
        for _ in range(points):
            page.keyboard.press("ArrowRight")


def start_mock(page: Page, box: Locator) -> list[str]:
    """A core mock of 15 minutes, started by keyboard; the titles that will be asked."""
    press(page, "Mock interview")
    box.get_by_role("heading", name="Mock interview").wait_for()
    tab_to(page, "Level")
    page.keyboard.type("core")
    tab_to(page, "Minutes")
    page.keyboard.type("15")
    press(page, "Start")
    box.locator(".cp-clock").wait_for()
    questions = BANK.mocks("core", 15)[0].questions
    return [str(BANK.questions[q]["title"]) for q in questions]


def test_a_whole_mock_by_keyboard_ends_in_a_summary(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, seen):
        titles = start_mock(page, box)
        for i, title in enumerate(titles):
            assert box.locator("h3").inner_text() == title
            if i == 0:
                press(page, "Hint 1")
                assert box.locator(".cp-hints li").count() == 1
            press(page, "Show the answer")
            grade_all(page, 2 if i == 0 else 3)
            press(page, "Finish" if i == len(titles) - 1 else "Next question")
        box.get_by_role("heading", name="Summary").wait_for()
        summary = box.locator(".cp-practice-stage").inner_text()
        points = 12 + 18 * (len(titles) - 1) - 1
        assert f"{points} of {18 * len(titles)} points, 1 of them lost to hints" in summary
        assert "Weakest axis: correctness" in summary
        assert titles[0] in summary.split("What to read")[1]
        press(page, "Another mock")
        assert f"core, {BANK.mocks('core', 15)[0].chain}, {points} of" in box.inner_text()
        assert not seen.complaints
        assert not seen.outside


def test_a_reload_in_the_middle_goes_on_where_it_was(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, _):
        titles = start_mock(page, box)
        press(page, "Show the answer")
        grade_all(page, 1)
        press(page, "Next question")
        press(page, "Hint 1")
        page.wait_for_function("() => document.querySelector('.cp-clock').textContent[1] === '4'")
        before = box.locator(".cp-clock").inner_text()
        page.reload()
        box.locator(".cp-clock").wait_for()
        assert box.locator("h3").inner_text() == titles[1]
        assert box.locator(".cp-hints li").count() == 1
        minutes = [int(t.split(":")[0]) for t in (before, box.locator(".cp-clock").inner_text())]
        assert 0 <= minutes[0] - minutes[1] <= 1
        assert minutes[1] < 15


def test_a_question_without_all_grades_does_not_go_on(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, _):
        title = start_mock(page, box)[0]
        press(page, "Show the answer")
        box.locator("fieldset input").first.check()
        press(page, "Next question|Finish")
        alarm = box.locator('.cp-grades [role="alert"]')
        assert alarm.inner_text() == (
            "Grade first: structure, estimate, trade-off, failure, verification."
        )
        assert box.locator("h3").inner_text() == title


def test_history_is_exported_and_erased(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, _):
        for i in range(len(start_mock(page, box))):
            press(page, "Show the answer")
            grade_all(page, 3)
            press(page, "Finish|Next question")
            del i
        press(page, "Another mock")
        press(page, "Export")
        history = json.loads(box.locator("textarea").input_value())
        assert [one["level"] for one in history] == ["core"]
        press(page, "Erase everything")
        page.keyboard.press("Enter")
        assert "None yet." in box.inner_text()
        kept = page.evaluate("JSON.parse(localStorage.getItem('cp-practice-1')).history")
        assert kept == []


def test_drills_accept_right_answers_and_explain_unit_errors(
    address: str, browser: Browser
) -> None:
    with opened(browser, address) as (page, box, seen):
        press(page, "Drills")
        box.locator("form").wait_for()
        box.get_by_label("Kind", exact=True).select_option("ring buffers per rank")
        drill = page.evaluate("""() => new Promise((done) => {
            window.cpPractice = { register: (d) => done(
              d.drills.filter((o) => o.kind === "ring buffers per rank")[0]) };
            const s = document.createElement("script");
            s.src = "../practice/data.js";
            document.head.append(s);
        })""")
        assert drill["prompt"] in box.inner_text()
        answer, verdict = box.get_by_label("Your answer"), box.locator(".cp-verdict")
        for text, said in (
            (str(drill["value"] / 2**20), "a unit after the number"),
            (f"{drill['value'] * 8 / 2**20} MiB", "number of bits"),
            (f"{drill['value'] / 2**21} MiB", "another one arrives"),
            (f"{drill['value'] / 2**20} MiB", "Right: "),
        ):
            answer.fill(text)
            answer.press("Enter")
            assert said in verdict.inner_text()
        assert "First answers right: 0 of 1" in box.inner_text()
        press(page, "Worked solution")
        assert box.locator(".cp-practice-stage ol li").count() == len(drill["steps"])
        assert not seen.complaints


def test_flashcards_known_stay_known_after_a_reload(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, _):
        press(page, "Flashcards")
        first = box.locator("h3").inner_text()
        press(page, "Turn")
        assert str(BANK.cards()[0].back) in box.inner_text()
        press(page, "I know it")
        assert "Known: 1 of" in box.inner_text()
        page.reload()
        box.locator("h3").wait_for()
        assert "Known: 1 of" in box.inner_text()
        assert box.locator("h3").inner_text() != first


def test_a_diagnosis_names_what_the_checks_left_open(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, _):
        page.evaluate(
            "localStorage.setItem('cp-practice-1', JSON.stringify("
            "{tab: 'diagnosis', cases: {at: 9, order: []}}))"
        )
        page.reload()
        box.locator(".cp-checks").wait_for()
        box.get_by_label("The cause").select_option("contiguous shards")
        press(page, "Name it")
        assert "1 of 3 points" in box.locator(".cp-verdict").inner_text()
        box.get_by_role("button", name="pairs that each rank computes in all").click()
        assert "in all: uneven" in box.locator(".cp-seen").inner_text()
        box.get_by_role("button", name="Name it").click()
        assert "3 of 3 points. Right: contiguous shards." in box.locator(".cp-verdict").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_of_the_trainer_is_accessible_and_fits_a_phone(
    address: str, browser: Browser, axe: str, scheme: str
) -> None:
    with opened(browser, address, viewport=PHONE, color_scheme=scheme) as (page, box, seen):
        found = []
        for tab in ("Drills", "Flashcards", "Diagnosis", "Mock interview"):
            box.get_by_role("button", name=tab, exact=True).click()
            box.locator("h3").wait_for()
            found += [
                f"{tab}: {f}" for f in scrolls_sideways(page) + axe_findings(page, axe, within=BOX)
            ]
        box.get_by_role("button", name="Start").click()
        box.get_by_role("button", name="Show the answer").click()
        found += [
            f"answer: {f}" for f in scrolls_sideways(page) + axe_findings(page, axe, within=BOX)
        ]
        assert not found, "\n".join(found)
        assert not seen.complaints
        assert not seen.outside


def test_the_questions_are_loaded_only_when_they_are_used(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, seen):
        assert not [r for r in seen.responses if "practice/data.js" in r.url]
        press(page, "Drills")
        box.locator("form").wait_for()
        assert len([r for r in seen.responses if "practice/data.js" in r.url]) == 1


GARBAGE = (
    "null", "[]", "7", "{", '{"tab": "nowhere"}', '{"tab": "mock", "mock": {}}',
    '{"tab": "mock", "mock": {"asked": ["gone"], "at": 0, "end": 1, "hints": [], "grades": []}}',
    '{"tab": "mock", "mock": {"asked": ["constructor"], "at": 0, "end": 1, "hints": [],'
    ' "grades": []}}',
    '{"tab": "mock", "mock": {"asked": ["add-lse"], "at": "0", "end": 1, "hints": [],'
    ' "grades": []}}',
    '{"tab": "mock", "mock": {"asked": ["add-lse"], "at": 0, "end": 1, "hints": ["x"],'
    ' "grades": ["x"], "shown": true}}',
    '{"tab": "mock", "next": -1}', '{"tab": "mock", "next": 0.5}',
    '{"tab": "diagnosis", "cases": {"at": "length", "order": []}}',
    '{"tab": "mock", "history": [3]}', '{"tab": "drills", "drill": {"kind": "gone", "at": 2}}',
    '{"tab": "drills", "drill": null}', '{"tab": "cards", "known": []}',
    '{"tab": "diagnosis", "cases": {"at": 99, "order": ["gone"]}}',
    '{"tab": "diagnosis", "cases": {"at": 2, "order": ["gone"]}}',
)  # fmt: skip


def test_whatever_lies_in_the_storage_the_trainer_works(address: str, browser: Browser) -> None:
    with opened(browser, address) as (page, box, seen):
        for kept in GARBAGE:
            page.evaluate("kept => localStorage.setItem('cp-practice-1', kept)", kept)
            page.reload()
            box.get_by_role("button", name="Mock interview").click()
            box.get_by_role("heading", name="Mock interview").wait_for()
            box.get_by_role("button", name="Start").click()
            assert box.locator(".cp-clock").inner_text(), kept
            for tab in ("Drills", "Flashcards", "Diagnosis"):
                box.get_by_role("button", name=tab).click()
                assert box.locator("h3").inner_text(), (kept, tab)
        assert not seen.complaints


def test_a_mock_graded_by_another_version_of_the_book_ends_in_a_summary(
    address: str, browser: Browser
) -> None:
    kept = {"tab": "mock", "mock": {
        "asked": ["gone", "add-lse"], "at": 1, "end": 1, "hints": [], "grades": [None, {}],
        "level": "warm-up", "chain": "summaries", "shown": True,
    }}  # fmt: skip
    with opened(browser, address) as (page, box, seen):
        page.evaluate("kept => localStorage.setItem('cp-practice-1', kept)", json.dumps(kept))
        page.reload()
        box.locator(".cp-grades").wait_for()
        grade_all(page, 3)
        press(page, "Finish")
        box.get_by_role("heading", name="Summary").wait_for()
        assert "18 of 36 points" in box.inner_text()
        assert not seen.complaints


def test_two_tabs_do_not_lose_each_others_work(address: str, browser: Browser) -> None:
    """A mock finished in one tab is in the history, whatever the other tab does afterward."""
    with opened(browser, address) as (page, box, _):
        press(page, "Flashcards")
        box.locator("h3").wait_for()
        other = page.context.new_page()
        other.goto(page.url)
        card = other.locator(".cp-practice.cp-ready")
        press(other, "Flashcards")
        press(other, "Turn")
        press(other, "I know it")
        assert "Known: 1 of" in card.inner_text()
        box.get_by_role("button", name="Drills").click()
        box.locator("form").wait_for()
        kept = page.evaluate("JSON.parse(localStorage.getItem('cp-practice-1')).known")
        assert len(kept) == 1
        other.close()


def test_with_storage_blocked_the_trainer_works_until_the_reader_leaves(
    address: str, browser: Browser
) -> None:
    blocked = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
    with visiting(browser, address) as (page, seen):
        page.add_init_script(blocked)
        page.goto(address + PAGE)
        box = page.locator(".cp-practice.cp-ready")
        assert start_mock(page, box)[0] == box.locator("h3").inner_text()
        mine = [line for line in seen.complaints if "interview" in line]
        assert not mine


def test_the_trainer_works_from_disk(site: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto((site / PAGE).as_uri())
    box = page.locator(".cp-practice.cp-ready")
    press(page, "Flashcards")
    box.locator("h3").wait_for()
    assert "Known: 0 of" in box.inner_text()
    context.close()


def test_without_scripts_the_page_leads_to_the_questions(address: str, browser: Browser) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(address + PAGE)
        assert "folded answers" in page.locator(".cp-practice").inner_text()
        for level in ("warm_up", "core", "senior", "staff"):
            assert page.locator(f'main a[href^="questions_{level}.html"]').count() >= 1


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_sheet_prints_on_two_pages(
    address: str, browser: Browser, tmp_path: Path, paper: str
) -> None:
    with visiting(browser, address) as (page, _):
        page.goto(address + "book/sheet.html")
        pdf = page.pdf(format=paper, prefer_css_page_size=False)
    count = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 1 <= count <= 2, f"{count} pages"
