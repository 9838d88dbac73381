"""The pages written from the bank, the sheet, and chapter 13 beside them."""

from __future__ import annotations

import re

import nbformat
import pytest

from cpcore.interview import LEVELS, evaluate, schema
from scripts import pages, question_pages, sheet
from scripts.build import ROOT
from scripts.interview import read_coding
from tests.support.interview import bank, entries

BOOK = ROOT / "book"
STEP_WORDS = (
    "State", "Lengths", "remote", "merge", "positions", "Bytes", "Overlap", "Sparse",
)  # fmt: skip
MISTAKE_WORDS = ("sparse", "softmax", "mask", "quadratic", "travel", "topology", "naming")


def read(name: str) -> str:
    return (BOOK / name).read_text(encoding="utf-8")


def prose_of_chapter() -> str:
    cells = nbformat.read(BOOK / "13_interview.ipynb", as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def section(text: str, title: str) -> str:
    return text.split(f"## {title}")[1].split("\n## ")[0]


def test_the_written_pages_are_up_to_date() -> None:
    for path, text in pages.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `-m scripts.pages`"


def test_every_question_stands_on_the_page_of_its_level_with_all_its_parts() -> None:
    for entry in bank().questions.values():
        text = read(question_pages.name_of(str(entry["level"])))
        part = text.split(f"(q-{entry['id']})=")[1].split("\n(q-")[0]
        assert part.count("<details>") == part.count("</details>") == 6
        assert entry["link"] in part
        for chain in bank().chains_of(str(entry["id"])):
            assert chain in part


def test_each_level_has_its_page_and_its_minutes() -> None:
    for level in LEVELS:
        minutes = sum(e["minutes"] for e in entries() if e["level"] == level)
        assert f"{minutes} minutes in all" in read(question_pages.name_of(level))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b and c*d", r"a\_b and c\*d"),
        ("`a_b` stays", "`a_b` stays"),
        ("q < k [1]", r"q &lt; k \[1\]"),
        ("about $5 ~ 6 | 7", r"about \$5 \~ 6 \| 7"),
    ],
)
def test_text_of_the_bank_is_no_markup(text: str, shown: str) -> None:
    assert question_pages.markdown(text) == shown


def test_the_eight_steps_are_on_the_sheet_and_in_chapter_13_in_order() -> None:
    assert len(STEP_WORDS) == len(schema.STEPS)
    for text in (
        section(read("sheet.md"), "Eight steps"),
        section(prose_of_chapter(), "Idea: eight steps, in this order"),
    ):
        steps = re.findall(r"^\d\. (.+)$", text, re.MULTILINE)
        assert len(steps) == 8
        for word, step in zip(STEP_WORDS, steps, strict=True):
            assert word.lower() in step.lower()


def test_the_seven_mistakes_are_on_the_sheet_and_refuted_in_chapter_13_in_order() -> None:
    on_sheet = re.findall(r"^\d\. (.+)$", section(read("sheet.md"), "Seven mistakes"), re.M)
    titles = re.findall(r"\*\*Mistake \d: ([^*]+)\*\*", prose_of_chapter())
    assert len(on_sheet) == len(titles) == 7
    for word, short, long in zip(MISTAKE_WORDS, on_sheet, titles, strict=True):
        assert word in short
        assert word in long


def test_every_number_of_the_sheet_is_computed_in_two_ways() -> None:
    entry = sheet.source()
    assert list(schema._numbers(entry)) == []
    assert len(entry["numbers"]) > 20
    for number in entry["numbers"].values():
        assert isinstance(evaluate(number["is"], schema.bindings(entry)), int | float)


def test_no_number_is_typed_into_the_text_of_the_sheet() -> None:
    text = schema.PLACEHOLDER.sub(" ", sheet.source()["text"])
    assert schema.CLAIM.findall(text) == []


def test_the_coding_round_has_five_timed_tasks() -> None:
    tasks = read_coding()
    names = ["merge_chunk_stats", "ring_attention", "zigzag", "block_backward", "causal_ring"]
    assert [task["exercise"] for task in tasks] == names
    for task in tasks:
        assert set(task) == {"exercise", "minutes", "task", "watched", "slips", "after"}
        assert 10 <= task["minutes"] <= 45
        assert len(task["watched"]) >= 2 <= len(task["slips"])
        assert f"`{task['exercise']}`" in read("practice.md")


def test_the_tasks_of_the_coding_round_are_exercises() -> None:
    exercises = pytest.importorskip("cpcore.exercises", reason="the exercises are not there yet")
    for task in read_coding():
        assert exercises.find(task["exercise"]).name == task["exercise"]
