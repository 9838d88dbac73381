"""The pages of the question bank, written from its data: one for each level, and the ladder.

Every answer is folded, so that a page can be worked through without scripts. Text of the bank is
plain: what Markdown would read as markup is escaped, and `code` between backticks is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cpcore.interview import LEVELS, Bank
from scripts.interview import load, read_coding

TITLES = {
    "warm-up": "Warm-up questions",
    "core": "Core questions",
    "senior": "Senior questions",
    "staff": "Staff questions",
}
STEP_NAMES = {
    "state": "State memory",
    "lengths": "Lengths",
    "remote": "Why remote keys",
    "ring": "Exchange and merge",
    "masks": "Masks and positions",
    "bytes": "Bytes and work",
    "overlap": "Overlap, topology, balance",
    "sparse": "If the model may change",
}
AXIS = "correctness"  # spelled out from 0 to 3; the other axes say what a 3 is
CODING = ("<!-- coding: written by scripts/pages.py -->", "<!-- end of coding -->")
LADDER = ("<!-- ladder: written by scripts/pages.py -->", "<!-- end of ladder -->")


def name_of(level: str) -> str:
    """File name of a level's page."""
    return f"questions_{level.replace('-', '_')}.md"


def markdown(text: str) -> str:
    """Plain text of the bank as Markdown."""
    parts = text.split("`")
    escape = [re.sub(r"([_*\[\]$~|\\])", r"\\\1", p).replace("<", "&lt;") for p in parts]
    return "".join(
        f"`{part}`" if i % 2 else escape[i] for i, part in enumerate(parts) if part or not i % 2
    )


def folded(title: str, *lines: str) -> str:
    """A part that opens on request."""
    inside = "\n\n".join(lines)
    return f"<details>\n<summary>{title}</summary>\n\n{inside}\n\n</details>\n"


def question(bank: Bank, entry: Mapping[str, Any]) -> str:
    """One question with its folded hints, answer and rubric."""
    say = markdown
    steps = [part["step"] for part in entry["answer"]]
    heads = [
        "" if step == before else f"**{STEP_NAMES[step]}.** "
        for before, step in zip(["", *steps], steps, strict=False)
    ]
    answer = [head + say(part["text"]) for head, part in zip(heads, entry["answer"], strict=True)]
    rubric = [f"- *{axis}*: {say(text)}" for axis, text in entry["rubric"].items() if axis != AXIS]
    scale = [f"- *{AXIS} {i}*: {say(text)}" for i, text in enumerate(entry["rubric"][AXIS])]
    sources = ", ".join(
        f"[{key.replace('_', ' ')}](references.md#ref-{key})" for key in entry["sources"]
    )
    asked = "; ".join(
        f"{name}: {' → '.join(_link(bank, q, entry['id']) for q in bank.chains[name])}"
        for name in bank.chains_of(entry["id"])
    )
    follow = [f"- {say(text)}" for text in entry["follow_ups"]]
    wrong = entry["wrong"]
    return "\n".join(
        (
            f"(q-{entry['id']})=",
            f"## {say(entry['title'])}",
            "",
            f"*{entry['minutes']} minutes.* {say(entry['prompt'])}",
            "",
            folded("Three hints", *(f"{i}. {say(h)}" for i, h in enumerate(entry["hints"], 1))),
            folded("Answer", *answer),
            folded("In sixty seconds", f"“{say(entry['spoken'])}”"),
            folded("A common wrong answer", f"“{say(wrong['says'])}”", say(wrong["why"])),
            folded("Rubric", "\n".join(scale), "A 3 on the other axes:", "\n".join(rubric)),
            folded("They ask on", "\n".join(follow), f"Chains. {asked}."),
            f"[Where the numbers come from]({entry['link']}). Sources: {sources}."
            if sources
            else f"[Where the numbers come from]({entry['link']}).",
            "",
        )
    )


def _link(bank: Bank, name: str, here: str) -> str:
    """A question of a chain: bold if it is this one, else a link to its page."""
    entry = bank.questions[name]
    title = markdown(str(entry["title"]))
    page = name_of(str(entry["level"]))
    return f"**{title}**" if name == here else f"[{title}]({page}#q-{name})"


def level_page(bank: Bank, level: str) -> str:
    """All questions of a level."""
    entries = [entry for entry in bank.questions.values() if entry["level"] == level]
    others = ", ".join(f"[{other}]({name_of(other)})" for other in LEVELS if other != level)
    head = f"""\
# {TITLES[level]}

{len(entries)} questions, {sum(e["minutes"] for e in entries)} minutes in all. Answer aloud before
you unfold, then grade yourself on the [ladder](practice.md#what-0-to-3-look-like). Every number in
an answer is an expression that is computed in two ways, and its link leads to where the book
computes it. Other levels: {others}. The same questions, timed and in chains, are in
[practice](practice.md).
"""
    return head + "\n" + "\n".join(question(bank, entry) for entry in entries)


def ladder(bank: Bank) -> str:
    """The ladder of all axes as a list."""
    return "\n\n".join(
        f"**{axis.capitalize()}**\n\n"
        + "\n".join(f"- {i}: {markdown(text)}" for i, text in enumerate(rungs))
        for axis, rungs in bank.ladder.items()
    )


def coding() -> str:
    """The five tasks, each with what is looked at."""
    parts = []
    for i, task in enumerate(read_coding(), start=1):
        watched = "\n".join(f"- {markdown(text)}" for text in task["watched"])
        slips = "\n".join(f"- {markdown(text)}" for text in task["slips"])
        head = f"**{i}. `{task['exercise']}`**, {task['minutes']} minutes. {markdown(task['task'])}"
        seen = folded("What is looked at", watched, "Usual slips:", slips)
        parts.append(f"{head}\n\n{seen}\nThen: {markdown(task['after'])}")
    return "\n\n".join(parts)


def between(page: str, marks: tuple[str, str], text: str) -> str:
    """A page with `text` between two marks."""
    before, rest = page.split(marks[0])
    return f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{rest.split(marks[1])[1]}"


def practice(page: str) -> str:
    """The practice page with a fresh ladder and fresh tasks between their marks."""
    return between(between(page, LADDER, ladder(load())), CODING, coding())


def level_pages() -> dict[str, str]:
    """File name and text of every level's page."""
    bank = load()
    return {name_of(level): level_page(bank, level) for level in LEVELS}
