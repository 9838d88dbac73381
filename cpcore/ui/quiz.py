"""A chapter's quiz as an object that shows itself: HTML in the page, widgets in Jupyter.

Owns the HTML, which reads well without scripts: every question, its choices, and a folded answer
that says of each choice why it is right, or tempting and wrong. The page's script turns the choices
into radio buttons. Leaves out the questions (`quiz_data`) and the widgets (`quiz_widget`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from cpcore.ui.quiz_data import Choice, Question, load
from cpcore.ui.shown import Shown

LETTERS = '<ol style="list-style-type: upper-alpha">'


@dataclass(frozen=True)
class Quiz(Shown):
    """The questions of one chapter."""

    widgets = "cpcore.ui.quiz_widget"

    chapter: str  # "04"
    questions: tuple[Question, ...]

    def html(self) -> str:
        """What the page holds, one line per part; the script finds its parts by their classes."""
        count = len(self.questions)
        name = f"Quiz of chapter {int(self.chapter)}"
        lines = [
            f'<div class="cp-quiz" id="quiz-{self.chapter}" role="group" aria-label="{name}" '
            f'data-quiz="{self.chapter}">',
            f'<p class="cp-title"><strong>Quiz.</strong> {count} questions on this chapter. '
            "Decide before you look at an answer: one choice is right, and each of the others is "
            "a mistake that people make.</p>",
        ]
        for number, question in enumerate(self.questions, start=1):
            lines += question_lines(number, question)
        return "\n".join([*lines, "</div>"])

    def __repr__(self) -> str:
        return f"Quiz of chapter {int(self.chapter)}: {len(self.questions)} questions"


def quiz(chapter: str) -> Quiz:
    """The quiz of a chapter, by its number in two digits: ``quiz("04")``.

    Raises: ValueError if that chapter has none.
    """
    return Quiz(chapter, load(chapter))


def question_lines(number: int, question: Question) -> list[str]:
    """One question: what is asked, the choices, and the folded answer in the same order."""
    choices = [f"<li>{marked(choice.text)}</li>" for choice in question.choices]
    reasons = [f"<li>{reason(choice)}</li>" for choice in question.choices]
    return [
        f'<div class="cp-question" data-question="{question.mark}" data-right="{question.right}">',
        f'<p class="cp-ask"><strong>{number}.</strong> {marked(question.ask)}</p>',
        f'<div class="cp-choices">{LETTERS}',
        *choices,
        "</ol></div>",
        f'<details class="cp-reasons"><summary>Answer to question {number}</summary>{LETTERS}',
        *reasons,
        "</ol>",
        f'<p class="cp-settled">{settled(question.section)}</p>',
        "</details>",
        "</div>",
    ]


def reason(choice: Choice) -> str:
    """The verdict as a word, and why."""
    return f"<strong>{'Right.' if choice.right else 'Wrong.'}</strong> {marked(choice.why)}"


def settled(section: str) -> str:
    """Where the chapter settles the question."""
    return f'See <a href="#{slug(section)}">{escape(curly(section), quote=False)}</a>.'


def slug(heading: str) -> str:
    """The anchor that the book gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def marked(text: str) -> str:
    """Text as HTML, with `code` and *emphasis*."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(curly(text), quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html)


def plain(text: str) -> str:
    """The same text without marks, for labels that take no HTML."""
    return re.sub(r"[`*]", "", curly(text))


def curly(text: str) -> str:
    """Quotation marks as the rest of the page has them."""
    return re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)
