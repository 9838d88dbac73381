"""The one-page sheet, written from `book/data/interview/sheet.yaml` with its numbers filled in."""

from __future__ import annotations

import re
from typing import Any

from cpcore.interview import evaluate, show
from cpcore.interview.schema import PLACEHOLDER, bindings
from scripts.interview import FOLDER, read
from scripts.question_pages import markdown

HEAD = """\
# The sheet

Two pages to print. Every number below is computed when the page is written, in two ways;
[chapter 9](09_cost.ipynb) derives the formulas, [notation](notation.md) explains the symbols.

"""


def source() -> dict[str, Any]:
    """What the file holds."""
    return dict(read(FOLDER / "sheet.yaml"))


def page() -> str:
    """The text of `book/sheet.md`."""
    entry = source()
    given = bindings(entry)

    def number(match: re.Match[str]) -> str:
        spec = entry["numbers"][match[1]]
        value = float(evaluate(spec["is"], given))
        return show(value, spec["unit"], spec.get("digits", 0), bare=bool(match[2]))

    lines = PLACEHOLDER.sub(number, entry["text"]).split("\n")
    marks = [re.match(r"^( *(?:#+ |- |\d\. )?)(.*)$", line) for line in lines]
    text = "\n".join(m[1] + _escaped(m[2]) for m in marks if m).rstrip()
    return f"{HEAD}{text}\n"


def _escaped(text: str) -> str:
    """As plain text of the bank, but bold stays bold."""
    return "**".join(markdown(part) for part in text.split("**"))
