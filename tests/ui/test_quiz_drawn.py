"""What a quiz shows: the page's HTML, and widgets that answer, without a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import ipywidgets as widgets
import pytest

from cpcore.ui import quiz
from cpcore.ui.quiz import Quiz, marked, plain
from cpcore.ui.quiz_data import Choice, Question, chapters
from cpcore.ui.quiz_widget import build
from cpcore.ui.shown import WIDGET_VIEW

CHAPTERS = [name[:2] for name in chapters()]
# What the page's runner lets through (book/assets/page/runner-output.js): live quizzes use no more.
ELEMENTS = {"a", "code", "details", "div", "em", "li", "ol", "p", "strong", "summary"}
ATTRIBUTES = re.compile(r"aria-label|class|data-(question|quiz|right)|href|id|role|style")
HOSTILE = Question(
    "x", "<b>1</b> & `<i>`", "A & B", (Choice("<u>*a*</u>", "w", True), Choice("b", "v", False)), ()
)


class Reader(HTMLParser):
    """Collects elements, attributes and what each list item says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.items: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        self.open.append(tag)
        if tag == "li":
            self.items.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "li" in self.open:
            self.items[-1] += data


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_page_holds_every_choice_and_every_reason_in_the_same_order(chapter: str) -> None:
    shown = quiz(chapter)
    read = Reader(shown.html())
    assert not read.open
    wanted = []
    for question in shown.questions:
        wanted += [plain(choice.text) for choice in question.choices]
        for choice in question.choices:
            wanted.append(("Right. " if choice.right else "Wrong. ") + plain(choice.why))
    assert read.items == wanted


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_page_s_html_is_small_and_made_of_harmless_parts(chapter: str) -> None:
    html = quiz(chapter).html()
    read = Reader(html)
    assert read.tags <= ELEMENTS
    assert all(ATTRIBUTES.fullmatch(name) for name, _ in read.attributes)
    ids = [value for name, value in read.attributes if name == "id"]
    assert ids == [f"quiz-{chapter}"]
    assert len(html) < 20_000


def test_text_is_text_and_only_code_and_emphasis_are_marked() -> None:
    html = Quiz("01", (HOSTILE,)).html()
    assert "&lt;b&gt;1&lt;/b&gt; &amp; <code>&lt;i&gt;</code>" in html
    assert "&lt;u&gt;<em>a</em>&lt;/u&gt;" in html
    assert '<a href="#a--b">A &amp; B</a>' in html
    assert marked("2 * 3 and `a_b`") == "2 * 3 and <code>a_b</code>"
    assert plain("`a` *b*") == "a b"


def test_a_stored_notebook_holds_no_widget_and_a_live_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = quiz("04")
    monkeypatch.setenv("CPCORE_STATIC", "1")
    stored = shown._repr_mimebundle_()
    assert stored == {"text/plain": repr(shown), "text/html": shown.html()}
    monkeypatch.setenv("CPCORE_STATIC", "0")
    live = shown._repr_mimebundle_()
    assert live.keys() == stored.keys() | {WIDGET_VIEW}
    assert live["text/html"] == stored["text/html"]


# Widgets


def inside(box: Any) -> list[Any]:
    """A widget and everything below it."""
    return [box, *(w for child in getattr(box, "children", ()) for w in inside(child))]


def parts(box: Any, kind: type) -> list[Any]:
    return [w for w in inside(box) if isinstance(w, kind)]


def button(box: Any, text: str) -> list[Any]:
    return [w for w in parts(box, widgets.Button) if w.description == text]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_choice_of_each_question_gets_its_reason_and_the_section(chapter: str) -> None:
    shown = quiz(chapter)
    box = build(shown)
    assert not parts(box, widgets.Output)
    asked = zip(
        parts(box, widgets.RadioButtons), button(box, "Check"), shown.questions, strict=True
    )
    for number, (choices, check, question) in enumerate(asked):
        said = box.children[1 + number].children[-1]
        assert said.value == ""
        check.click()
        assert said.value == "Choose an answer first."
        for place, choice in enumerate(question.choices):
            assert choices.options[place][0] == plain(choice.text)
            choices.value = place
            assert said.value == ""
            check.click()
            assert said.value.startswith(
                f"<strong>{'Right' if choice.right else 'Wrong'}.</strong>"
            )
            assert marked(choice.why) in said.value
            assert said.value.endswith(f" See the section <em>{plain(question.section)}</em>.")


def test_the_score_counts_what_is_right_and_what_was_right_at_once() -> None:
    shown = quiz("04")
    box = build(shown)
    score, radios, checks = box.children[-2], parts(box, widgets.RadioButtons), button(box, "Check")
    size = len(shown.questions)
    assert score.value == f"0 of {size} right, 0 at the first try."
    radios[0].value = shown.questions[0].right
    checks[0].click()
    assert score.value == f"1 of {size} right, 1 at the first try."
    wrong = (shown.questions[1].right + 1) % len(shown.questions[1].choices)
    for place in (wrong, shown.questions[1].right):
        radios[1].value = place
        checks[1].click()
    assert score.value == f"2 of {size} right, 1 at the first try."
    radios[0].value = (shown.questions[0].right + 1) % len(shown.questions[0].choices)
    checks[0].click()  # reading another reason afterwards costs nothing
    assert score.value == f"2 of {size} right, 1 at the first try."
    (reset,) = button(box, "Reset quiz")
    reset.click()
    assert score.value == f"0 of {size} right, 0 at the first try."
    assert {radio.value for radio in radios} == {None}
    assert box.children[1].children[-1].value == ""
