"""What tests of quizzes share: facts as Python, and the numbers that a text states."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from cpcore import planner
from cpcore.ui.quiz_data import Question, chapters, load
from tests.support import numbers, quiz_facts

NAMES = re.compile("|".join(map(re.escape, [*planner.MODELS, *planner.HARDWARE])))
WHOLE = re.compile(r"(?<![\w.,])\d[\d,]*(?![\w]|[.,]\d)")
SMALL = 10  # smaller whole numbers count ranks, steps and keys of an example


def everything() -> list[tuple[str, Question]]:
    """(chapter, question) for every question of every quiz."""
    return [(name[:2], question) for name in chapters() for question in load(name[:2])]


def texts(question: Question) -> Iterator[str]:
    """All that a reader reads of a question."""
    yield question.ask
    for choice in question.choices:
        yield choice.text
        yield choice.why


@cache
def holds(fact: str) -> bool:
    """Whether a fact, which must be a comparison, is true; names are those of `quiz_facts`."""
    tree = ast.parse(fact, mode="eval")
    assert isinstance(tree.body, ast.Compare), f"a fact is a comparison, not: {fact}"
    return bool(eval(compile(tree, fact, "eval"), dict(vars(quiz_facts))))


def known(facts: tuple[str, ...]) -> set[float]:
    """The numbers that facts name, written out or as a constant of `quiz_facts`."""
    found: set[float] = set()
    for node in (node for fact in facts for node in ast.walk(ast.parse(fact))):
        value: Any = None
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.Name):
            value = vars(quiz_facts).get(node.id)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.add(float(value))
    return found


def unbacked(question: Question) -> list[str]:
    """Numbers that a question states and none of its facts names.

    Those with a unit, a percent sign or a decimal point, as in prose, and whole numbers from 10 on.
    """
    asserted, found = known(question.facts), []
    for text in texts(question):
        shown = NAMES.sub("", text)
        found += [str(c) for c in numbers.claims(shown) if not numbers.backed(c, asserted)]
        for match in WHOLE.finditer(shown.replace("%", " ")):
            value = float(match[0].replace(",", ""))
            percent = "%" in shown[match.end() : match.end() + 2]
            if value >= SMALL and not percent and value not in asserted:
                found.append(match[0])
    return found
