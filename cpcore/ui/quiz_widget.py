"""The live form of a quiz in Jupyter: radio buttons, a Check button, and views of HTML.

As with explorables, what is said is the value of a widgets.HTML; there is no Output area.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from cpcore.ui.quiz import Quiz, marked, plain, reason
from cpcore.ui.quiz_data import Question

STYLE = """<style>
.cp-live-quiz { max-width: 48rem; line-height: 1.45; }
.cp-live-quiz .widget-radio, .cp-live-quiz .widget-radio-box { width: 100%; height: auto; }
.cp-live-quiz .widget-radio-box label { height: auto; width: 100%; line-height: 1.45;
  white-space: normal; padding: .15rem 0; }
</style>"""


class Asked:
    """One question on screen, and what the reader has tried so far."""

    def __init__(self, number: int, question: Question) -> None:
        self.question = question
        self.tried: list[int] = []
        texts = [(plain(choice.text), i) for i, choice in enumerate(question.choices)]
        wide = widgets.Layout(width="100%")
        self.head = widgets.HTML(f"<strong>{number}.</strong> {marked(question.ask)}")
        self.choices = widgets.RadioButtons(options=texts, value=None, layout=wide)
        self.check = widgets.Button(description="Check", tooltip=f"Check answer {number}")
        self.said = widgets.HTML()
        self.choices.observe(self._chosen, names="value")
        parts = [self.head, self.choices, self.check, self.said]
        self.box = widgets.VBox(parts, layout=widgets.Layout(margin="0 0 1rem 0"))

    @property
    def solved(self) -> bool:
        """Whether the right choice has been checked."""
        return self.question.right in self.tried

    def answer(self) -> None:
        """Say why the chosen answer is right or wrong, and where the chapter settles it."""
        place = self.choices.value
        if place is None:
            self.said.value = "Choose an answer first."
            return
        if place not in self.tried:
            self.tried.append(place)
        where = marked(self.question.section)  # no link: notebooks have other anchors
        self.said.value = (
            f"{reason(self.question.choices[place])} See the section <em>{where}</em>."
        )

    def clear(self) -> None:
        """Forget what was tried."""
        self.tried.clear()
        self.choices.value = None
        self.said.value = ""

    def _chosen(self, _change: object) -> None:
        self.said.value = ""  # it spoke of another choice


def build(quiz: Quiz) -> widgets.VBox:
    """The questions, the score and a button that starts again."""
    asked = [Asked(number, question) for number, question in enumerate(quiz.questions, start=1)]
    title = widgets.HTML(f"{STYLE}<strong>{quiz!r}.</strong> One choice is right.")
    score = widgets.HTML(score_text(asked))
    reset = widgets.Button(description="Reset quiz", tooltip="Forget all answers")

    def checked(one: Asked) -> Any:
        def act(_button: object) -> None:
            one.answer()
            score.value = score_text(asked)

        return act

    def restart(_button: object) -> None:
        for one in asked:
            one.clear()
        score.value = score_text(asked)

    for one in asked:
        one.check.on_click(checked(one))
    reset.on_click(restart)
    box = widgets.VBox([title, *(one.box for one in asked), score, reset])
    box.add_class("cp-live-quiz")
    return box


def score_text(asked: list[Asked]) -> str:
    """The score in words."""
    solved = sum(one.solved for one in asked)
    first = sum(one.tried[:1] == [one.question.right] for one in asked)
    return f"{solved} of {len(asked)} right, {first} at the first try."
