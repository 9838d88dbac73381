"""Quizzes in a real browser: every answer gets its reason, by mouse and by keys, and is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from cpcore.ui import quiz
from cpcore.ui.quiz import Quiz, curly, plain
from cpcore.ui.quiz_data import Question, chapters
from tests.support.accessibility import axe_findings, turn
from tests.support.browser import (
    SCHEMES,
    WIDTHS,
    Record,
    scrolls_sideways,
    visiting,
)
from tests.support.live_page import Desk, code_cells

NAMES = chapters()
NAME, LONGEST = "04_causal_ring", "07_training_step"
SMALL = {"width": 360, "height": 800}


@contextmanager
def opened(
    browser: Browser, home: str, name: str, **options: Any
) -> Iterator[tuple[Page, list[Locator], Record]]:
    """The page of a chapter, and the questions of its quiz."""
    with visiting(browser, home, **options) as (page, seen):
        page.goto(f"{home}book/{name}.html")
        yield page, questions_of(page), seen


@pytest.fixture(scope="module", params=NAMES)
def sitting(
    request: pytest.FixtureRequest, address: str, browser: Browser
) -> Iterator[tuple[str, Page, Record]]:
    """A chapter with its quiz: answers are given, then forgotten and given by keys."""
    name: str = request.param
    with opened(browser, address, name) as (page, _, seen):
        yield name, page, seen


def questions_of(page: Page) -> list[Locator]:
    """The questions that the script has prepared."""
    page.locator(".cp-quiz.cp-ready").wait_for()
    return page.locator(".cp-question").all()


def asked(name: str) -> Quiz:
    """What the page should ask."""
    return quiz(name[:2])


def radio(node: Locator, place: int) -> Locator:
    """The native control of a choice."""
    return node.get_by_role("radio").nth(place)


def check(node: Locator) -> Locator:
    """The button that answers."""
    return node.get_by_role("button", name="Check", exact=True)


def said(node: Locator) -> str:
    """What the question says to the last answer."""
    return node.locator(".cp-said").inner_text()


def reply(question: Question, place: int) -> str:
    """What it should say."""
    choice = question.choices[place]
    word = "Right." if choice.right else "Wrong."
    return f"{word} {plain(choice.why)}\n\nSee {curly(question.section)}."


def reset(page: Page) -> None:
    """Forget every answer."""
    page.get_by_role("button", name="Reset quiz").click()


def score(page: Page) -> str:
    """The score in words."""
    return page.locator(".cp-score").inner_text()


def wrong(question: Question) -> int:
    """The place of a wrong choice."""
    return (question.right + 1) % len(question.choices)


# Tries the choices of a question in this order; what the page shows after every step. One trip for
# a quiz: with one for each click the chapters would take a minute.
TRY_ALL = """([root, orders]) => [...root.querySelectorAll(".cp-question")].map((node, q) => {
  const part = selector => node.querySelector(selector);
  const check = [...node.querySelectorAll("button")].find(b => b.textContent === "Check");
  const said = () => part(".cp-said").innerText;
  const steps = orders[q].map(place => {
    const shut = !part("details").checkVisibility();
    node.querySelectorAll(".cp-choice")[place].click();
    const before = said();
    check.click();
    return [shut, before, said(), node.querySelectorAll(".cp-wrong").length];
  });
  const link = part(".cp-said a");
  const target = link && document.getElementById(link.getAttribute("href").slice(1));
  const heading = target && target.querySelector(":scope > :is(h1, h2, h3)");
  return {
    steps,
    verdict: part(".cp-right .cp-verdict").innerText,
    open: part("details").checkVisibility(),
    heading: heading && heading.innerText.replace(/#+$/, ""),
  };
})"""


def test_each_choice_gets_its_reason_and_the_section_that_settles_it(
    address: str, sitting: tuple[str, Page, Record]
) -> None:
    name, page, seen = sitting
    questions = asked(name).questions
    orders = []
    for question in questions:
        others = [p for p in range(len(question.choices)) if p != question.right]
        orders.append([*others, question.right])
    total = len(questions)
    found = page.evaluate(TRY_ALL, [page.query_selector(".cp-quiz"), orders])
    for shown, question, order in zip(found, questions, orders, strict=True):
        for tried, (place, step) in enumerate(zip(order, shown["steps"], strict=True)):
            shut, before, after, wrong_ones = step
            assert shut, "reasons stay shut until solved"
            assert before == "", "it spoke of another choice"
            assert after == reply(question, place)
            assert wrong_ones == min(tried + 1, len(order) - 1)
        assert shown["verdict"] == "right"
        assert shown["open"]
        assert shown["heading"] == curly(question.section)
    assert score(page) == f"{total} of {total} right, 0 at the first try."
    assert page.url == f"{address}book/{name}.html", "no answer leaves the page"
    assert not seen.complaints
    assert not seen.outside


def test_each_choice_answers_to_the_mouse(address: str, browser: Browser) -> None:
    with opened(browser, address, NAME) as (page, nodes, _):
        for node, question in zip(nodes, asked(NAME).questions, strict=True):
            for place in range(len(question.choices)):
                node.locator(".cp-choice").nth(place).click()
                check(node).click()
                assert said(node) == reply(question, place)
        assert score(page).startswith(f"{len(nodes)} of {len(nodes)} right")


def test_keys_alone_answer_every_question(sitting: tuple[str, Page, Record]) -> None:
    """Tab reaches a group, arrows choose, Enter answers; the next Tab is the button."""
    name, page, seen = sitting
    reset(page)
    nodes = questions_of(page)
    page.locator(".cp-quiz .cp-title").evaluate("e => { e.tabIndex = -1; e.focus(); }")
    for node, question in zip(nodes, asked(name).questions, strict=True):
        page.keyboard.press("Tab")
        assert radio(node, 0).evaluate("e => e === document.activeElement")
        outline = radio(node, 0).evaluate("e => getComputedStyle(e).outlineWidth")
        assert float(outline.removesuffix("px")) >= 2
        page.keyboard.press("Space")
        for _ in range(question.right):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert said(node) == reply(question, question.right)
        page.keyboard.press("Tab")
        assert check(node).evaluate("e => e === document.activeElement")
        page.keyboard.press("Space")
        assert said(node) == reply(question, question.right)
        for _ in ("the link", "the fold"):
            page.keyboard.press("Tab")
    assert page.locator(":focus").evaluate("e => e.localName") == "summary"
    page.keyboard.press("Enter")
    assert nodes[-1].locator("details[open]").count() == 1
    page.keyboard.press("Tab")  # a link inside
    page.keyboard.press("Tab")
    total = len(nodes)
    assert score(page) == f"{total} of {total} right, {total} at the first try."
    page.keyboard.press("Enter")
    assert score(page) == f"0 of {total} right, 0 at the first try."
    assert not seen.complaints


def test_a_reload_keeps_what_was_tried_and_reset_forgets_it(address: str, browser: Browser) -> None:
    first, second, third, *_ = asked(NAME).questions
    with opened(browser, address, NAME) as (page, nodes, seen):
        for node, question in zip(nodes, (first, second), strict=False):
            radio(node, wrong(question)).check()
            check(node).click()
        radio(nodes[1], second.right).check()
        check(nodes[1]).click()
        radio(nodes[2], third.right).check()  # chosen, not checked
        before = score(page)
        page.reload()
        nodes = questions_of(page)
        assert score(page) == before == f"1 of {len(nodes)} right, 0 at the first try."
        assert said(nodes[0]) == reply(first, wrong(first))
        assert radio(nodes[0], wrong(first)).is_checked()
        assert nodes[0].locator(".cp-wrong").count() == 1
        assert said(nodes[1]) == reply(second, second.right)
        assert nodes[1].locator("details").is_visible()
        assert said(nodes[2]) == ""
        assert not nodes[2].locator("input:checked").count()
        reset(page)
        for _ in ("now", "after a reload"):
            assert page.locator(".cp-quiz :is(input:checked, .cp-right, .cp-wrong)").count() == 0
            assert "".join(said(node) for node in nodes) == ""
            assert score(page) == f"0 of {len(nodes)} right, 0 at the first try."
            assert page.evaluate("localStorage.getItem('cp-quiz:04')") is None
            page.reload()
            nodes = questions_of(page)
        assert not seen.complaints


def test_a_later_look_at_other_reasons_costs_nothing(address: str, browser: Browser) -> None:
    question = asked(NAME).questions[0]
    with opened(browser, address, NAME) as (page, nodes, _):
        check(nodes[0]).click()
        assert said(nodes[0]) == "Choose an answer first."
        for place in (question.right, wrong(question)):
            radio(nodes[0], place).check()
            check(nodes[0]).click()
            assert said(nodes[0]) == reply(question, place)
        assert score(page).startswith("1 of ")
        assert score(page).endswith(" 1 at the first try.")
        assert nodes[0].locator(".cp-wrong").count() == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_quiz_is_accessible_before_and_after_answers(
    address: str, browser: Browser, axe: str, width: int
) -> None:
    def faults() -> list[str]:
        found = []
        for scheme in SCHEMES:
            turn(page, scheme)
            found += scrolls_sideways(page) + axe_findings(page, axe, within=".cp-quiz")
        return found

    size = {"width": width, "height": 844}
    with opened(browser, address, NAME, viewport=size) as (page, nodes, seen):
        assert not faults()
        for node, question in zip(nodes, asked(NAME).questions, strict=True):
            for place in (wrong(question), question.right):
                radio(node, place).check()
                check(node).click()
            node.locator("summary").click()
        radio(nodes[0], wrong(asked(NAME).questions[0])).check()
        check(nodes[0]).click()
        assert not faults()
        assert not seen.complaints


@pytest.mark.parametrize("name", [NAME, LONGEST])
def test_on_a_small_phone_nothing_is_too_wide_or_too_small_for_a_finger(
    address: str, browser: Browser, name: str
) -> None:
    phone: dict[str, Any] = {"viewport": SMALL, "has_touch": True, "is_mobile": True}
    with opened(browser, address, name, **phone) as (page, nodes, _):
        for node, question in zip(nodes, asked(name).questions, strict=True):
            node.locator(".cp-choice").nth(question.right).tap()
            check(node).tap()
            assert said(node) == reply(question, question.right)
            node.locator("summary").tap()
        assert not scrolls_sideways(page)
        for target in page.locator(".cp-quiz :is(.cp-choice, button, summary)").all():
            size = target.bounding_box()
            assert size is not None
            assert min(size["width"], size["height"]) >= 24


def test_the_page_says_who_is_who_to_a_screen_reader(address: str, browser: Browser) -> None:
    question = asked(NAME).questions[0]
    with opened(browser, address, NAME) as (page, nodes, _):
        assert page.get_by_role("group", name="Quiz of chapter 4").count() == 1
        group = nodes[0].get_by_role("group", name=f"1. {plain(question.ask)}")
        names = [f"{'ABCDE'[i]}. {plain(c.text)}" for i, c in enumerate(question.choices)]
        for name in names:
            assert group.get_by_role("radio", name=name, exact=True).count() == 1
        radio(nodes[0], question.right).check()
        check(nodes[0]).click()
        solved = f"{names[question.right]} right"
        assert group.get_by_role("radio", name=solved, exact=True).count() == 1
        assert nodes[0].get_by_role("status").inner_text() == reply(question, question.right)
        ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert ids.count("quiz-04") == 1


@pytest.mark.parametrize("name", [NAME, LONGEST])
def test_without_scripts_every_reason_can_be_read(
    address: str, browser: Browser, name: str
) -> None:
    with visiting(browser, address, java_script_enabled=False) as (page, _):
        page.goto(f"{address}book/{name}.html")
        nodes = page.locator(".cp-question").all()
        for number, (node, question) in enumerate(
            zip(nodes, asked(name).questions, strict=True), start=1
        ):
            texts = [plain(choice.text) for choice in question.choices]
            assert node.locator(".cp-choices li").all_inner_texts() == texts
            assert not node.locator(".cp-reasons li").first.is_visible()
            node.get_by_text(f"Answer to question {number}", exact=True).click()
            reasons = node.locator(".cp-reasons li").all_inner_texts()
            assert reasons == [reply(question, p).split("\n")[0] for p in range(len(texts))]
        assert page.locator(".cp-quiz :is(button, input)").count() == 0


def test_from_disk_and_without_storage_it_works(site: Path, address: str, browser: Browser) -> None:
    question = asked(NAME).questions[0]
    blocked = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    for home, script in ((site.as_uri() + "/", ""), (address, blocked)):
        with visiting(browser, home) as (page, seen):
            page.add_init_script(script)
            page.goto(f"{home}book/{NAME}.html")
            node = questions_of(page)[0]
            radio(node, question.right).check()
            check(node).click()
            assert said(node) == reply(question, question.right)
            reset(page)
            assert said(node) == ""
            quizzes = [line for line in seen.complaints if "quiz" in line]
            assert not quizzes


@pytest.mark.parametrize("stored", ["{", "7", "null", "[]", '{"owner-0": [0]}', "MARK"])
def test_what_other_versions_have_stored_is_left_out(
    address: str, browser: Browser, stored: str
) -> None:
    mark = asked(NAME).questions[0].mark
    strange = json.dumps({mark: [9, -1, "0", None, 0.5, [0]]}) if stored == "MARK" else stored
    with visiting(browser, address) as (page, seen):
        page.add_init_script(f"localStorage.setItem('cp-quiz:04', {json.dumps(strange)});")
        page.goto(f"{address}book/{NAME}.html")
        nodes = questions_of(page)
        assert score(page) == f"0 of {len(nodes)} right, 0 at the first try."
        assert page.locator(".cp-quiz input:checked").count() == 0
        assert "".join(said(node) for node in nodes) == ""
        assert not seen.complaints


STRICT = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'"


def test_two_copies_under_a_strict_policy_do_not_disturb_each_other(
    address: str, browser: Browser
) -> None:
    html = asked(NAME).html()
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>'
        '<link rel="stylesheet" href="../page/quiz.css">'
        '<script defer src="../page/quiz.js"></script>'
        f"<main>{html}{html}</main></html>"
    )
    headers = {"Content-Security-Policy": STRICT, "Content-Type": "text/html"}
    with visiting(browser, address) as (page, seen):
        url = address + "book/plain.html"
        page.route(url, lambda route: route.fulfill(body=body, headers=headers))
        page.goto(url)
        first, second = page.locator(".cp-quiz.cp-ready").all()
        radio(first.locator(".cp-question").first, 0).check()
        radio(second.locator(".cp-question").first, 1).check()
        assert radio(first.locator(".cp-question").first, 0).is_checked()
        assert not seen.complaints


def test_a_quiz_that_python_shows_in_the_page_is_the_same_quiz(
    address: str, browser: Browser
) -> None:
    question = asked(NAME).questions[0]
    number = len(code_cells(f"book/{NAME}"))
    with opened(browser, address, NAME) as (page, nodes, seen):
        radio(nodes[0], wrong(question)).check()
        check(nodes[0]).click()
        assert Desk(page).try_out(number, 'from cpcore.ui import quiz\nquiz("04")') == ""
        nodes = questions_of(page)
        assert said(nodes[0]) == reply(question, wrong(question)), "answers are kept"
        radio(nodes[0], question.right).check()
        check(nodes[0]).click()
        assert said(nodes[0]) == reply(question, question.right)
        assert not seen.complaints
