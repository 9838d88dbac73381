"""The questions of a chapter's quiz: read, checked, and put into the order in which they show.

Owns the form of the files below `quizzes`, one per chapter. Leaves out how a quiz is drawn, and
whether its numbers are right: a test recomputes the `facts` of every question.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cpcore.checks import expected

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Choice:
    """One possible answer, and why it is right, or tempting and wrong."""

    text: str
    why: str
    right: bool


@dataclass(frozen=True)
class Question:
    """A question, its choices in the order shown, and the section of the chapter that settles it.

    ``facts`` are Python comparisons that hold; they hold every number that the question states.
    """

    id: str
    ask: str
    section: str
    choices: tuple[Choice, ...]
    facts: tuple[str, ...]

    @property
    def right(self) -> int:
        """The place of the right choice."""
        return next(place for place, choice in enumerate(self.choices) if choice.right)

    @property
    def mark(self) -> str:
        """Changes with the text of the question or of a choice: stored answers are for one text."""
        texts = "\n".join((self.ask, *(choice.text for choice in self.choices)))
        return f"{self.id}-{hashlib.sha256(texts.encode()).hexdigest()[:8]}"


def chapters() -> tuple[str, ...]:
    """Names of the chapters that have a quiz: "01_why" and so on."""
    files = (resources.files("cpcore.ui") / "quizzes").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def load(chapter: str) -> tuple[Question, ...]:
    """The questions of the chapter with this number, "04".

    Raises: ValueError if there is no quiz of that number, or its file breaks the form.
    """
    names = {name[:2]: name for name in chapters()}
    if chapter not in names:
        raise expected("chapter", f"one of {', '.join(names)}", repr(chapter))
    file = resources.files("cpcore.ui") / "quizzes" / f"{names[chapter]}.toml"
    return parse(chapter, file.read_text(encoding="utf-8"))


def parse(chapter: str, text: str) -> tuple[Question, ...]:
    """The questions in the text of a file.

    Raises: ValueError naming the first part that breaks the form.
    """
    data = tomllib.loads(text)
    _keys("file", data, {"question"}, set())
    questions = tuple(_question(chapter, raw) for raw in data["question"])
    ids = [question.id for question in questions]
    if len(set(ids)) != len(ids):
        raise expected("id", "a different one for each question", ", ".join(ids))
    return questions


def _question(chapter: str, raw: dict[str, Any]) -> Question:
    _keys("question", raw, {"id", "ask", "section", "choice"}, {"facts"})
    name = raw["id"]
    if not ID.fullmatch(name):
        raise expected("id", "words of a to z and 0 to 9 joined by hyphens", repr(name))
    choices = [_choice(name, choice) for choice in raw["choice"]]
    if not 3 <= len(choices) <= 5:
        raise expected(f"{name}: choice", "3 to 5 of them", len(choices))
    if sum(choice.right for choice in choices) != 1:
        found = sum(choice.right for choice in choices)
        raise expected(f"{name}: right", "one right choice", found)
    order = sorted(range(len(choices)), key=lambda place: _draw(chapter, name, place))
    facts = tuple(_words(f"{name}: facts", fact) for fact in raw.get("facts", []))
    shown = tuple(choices[place] for place in order)
    return Question(
        name,
        _words(f"{name}: ask", raw["ask"]),
        _words(f"{name}: section", raw["section"]),
        shown,
        facts,
    )


def _draw(chapter: str, name: str, place: int) -> str:
    """A fixed lot for a choice, so that no place is more often right than another."""
    return hashlib.sha256(f"{chapter}/{name}/{place}".encode()).hexdigest()


def _choice(name: str, raw: dict[str, Any]) -> Choice:
    _keys(f"{name}: choice", raw, {"text", "why"}, {"right"})
    right = raw.get("right", False)
    if not isinstance(right, bool):
        raise expected(f"{name}: right", "true or false", repr(right))
    return Choice(_words(f"{name}: text", raw["text"]), _words(f"{name}: why", raw["why"]), right)


def _keys(place: str, raw: dict[str, Any], needed: set[str], allowed: set[str]) -> None:
    if not needed <= set(raw) <= needed | allowed:
        raise expected(f"{place}: keys", ", ".join(sorted(needed | allowed)), ", ".join(raw))


def _words(name: str, text: object) -> str:
    """One line of text; lines of the file break where its writer liked."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    if not words:
        raise expected(name, "some text", repr(text))
    return words
