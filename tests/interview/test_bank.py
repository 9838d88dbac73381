"""The question bank: its schema, its chains, its numbers, and where its links lead."""

from __future__ import annotations

import copy
import importlib
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from pybtex.database import parse_file

from cpcore.interview import LEVELS, Bank, make_bank, schema
from cpcore.interview.bank import faults
from cpcore.interview.expressions import evaluate
from scripts.build import ROOT
from scripts.interview import read_chains, read_ladder
from tests.support.anchors import anchors
from tests.support.interview import bank, entries
from tests.support.numbers import ANY_NUMBER, printed

IDS = [entry["id"] for entry in entries()]
BY_ID = {entry["id"]: entry for entry in entries()}


def changed(**fields: Any) -> dict[str, Any]:
    """A valid entry with some fields replaced."""
    return {**copy.deepcopy(BY_ID["add-lse"]), **fields}


def test_the_bank_has_no_fault() -> None:
    assert faults(entries(), read_chains(), read_ladder()) == []


def test_there_are_sixty_questions_and_at_least_ten_of_each_level() -> None:
    levels = Counter(entry["level"] for entry in entries())
    assert sum(levels.values()) >= 60
    assert min(levels[level] for level in LEVELS) >= 10


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"level": "expert"}, "level: expected one of"),
        ({"minutes": 90}, "minutes: expected 2 to 20"),
        ({"hints": ["one", "two"]}, "hints: expected three"),
        ({"answer": [{"step": "bytes", "text": "a"}, {"step": "ring", "text": "b"}]}, "order"),
        ({"spoken": "Too short."}, "spoken: expected 60 to 170 words"),
        ({"wrong": {"says": "a"}}, "wrong: expected what is said, and why"),
        ({"rubric": {"correctness": "all"}}, "rubric: expected the axes"),
        ({"short": "It takes 64 MiB."}, "a number typed into the text"),
        ({"short": "It loses 12.5 of them."}, "a number typed into the text"),
        ({"short": "It is {nowhere}."}, "no number for {nowhere}"),
        ({"price": 3}, "unknown field price"),
    ],
)
def test_a_faulty_entry_is_refused_in_words(fields: dict[str, Any], fault: str) -> None:
    assert any(fault in line for line in schema.faults(changed(**fields)))


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        ({"is": "64", "check": "64"}, "a bare literal"),
        ({"is": "2 * 32", "check": "64"}, "a bare literal"),
        ({"is": "max(64, 2)", "check": "64"}, "received plain arithmetic"),
        (
            {"is": "causal_pairs(4)", "check": "causal_pairs(4)"},
            "both ways are of the kind planner",
        ),
        ({"is": "causal_pairs(4)", "check": "11"}, "the two ways differ"),
        ({"is": "causal_pairs(4) + count_pairs('zigzag', 4, 1)", "check": "20"}, "mixes two"),
        ({"is": "causal_pairs(4)", "check": "10", "unit": "furlongs"}, "unknown unit"),
        ({"is": "full_pairs(4)", "check": "__import__('os')"}, "names of the calculator"),
        ({"is": "full_pairs(4) / 0", "check": "16"}, "expected a finite value"),
        ({"is": "full_pairs(4) * 1e999", "check": "1e999"}, "expected finite numbers"),
        ({"published": 12, "source": "nobody"}, "expected a source of this question"),
    ],
)
def test_a_number_needs_two_ways_that_agree(number: dict[str, Any], fault: str) -> None:
    entry = changed(numbers={"right": {"unit": "pairs", **number}, "wrong": number})
    assert any(fault in line for line in schema.faults(entry))


def test_a_number_that_no_text_shows_is_a_fault() -> None:
    idle = {"is": "causal_pairs(4)", "check": "10", "unit": "pairs"}
    entry = changed(numbers={**BY_ID["add-lse"]["numbers"], "idle": idle})
    assert schema.faults(entry) == ["add-lse: number idle is never used"]


def test_every_number_is_computed_in_two_ways_that_agree() -> None:
    """Again without the schema: a schema that skipped numbers would be noticed here."""
    compared = 0
    for entry in entries():
        given = schema.bindings(entry)
        for name, number in entry.get("numbers", {}).items():
            if "published" not in number:
                one, two = (float(evaluate(str(number[way]), given)) for way in ("is", "check"))
                assert one == pytest.approx(two, rel=1e-6, abs=1e-12), f"{entry['id']}: {name}"
                compared += 1
    assert compared > 150


def test_a_published_number_is_in_a_cell_of_the_page_that_the_question_links() -> None:
    import nbformat

    seen = 0
    for entry in entries():
        page = entry["link"].partition("#")[0]
        for number in entry.get("numbers", {}).values():
            if "published" in number:
                seen += 1
                notebook = nbformat.read(ROOT / "book" / page, as_version=4)
                known = {
                    float(n.replace(",", ""))
                    for cell in notebook.cells
                    for n in ANY_NUMBER.findall(cell.source)
                } | {n for c in notebook.cells if c.cell_type == "code" for n in printed(c)}
                assert number["published"] in known, entry["id"]
    assert seen >= 10


def test_chains_name_every_question_and_nothing_else() -> None:
    chained = {question for chain in read_chains().values() for question in chain}
    assert chained == set(IDS)


def test_a_chain_never_falls_by_more_than_a_level() -> None:
    """Chains get harder, or stay; a follow-up may be one level easier than what it follows."""
    for name, chain in read_chains().items():
        levels = [LEVELS.index(BY_ID[question]["level"]) for question in chain]
        assert all(b >= a - 1 for a, b in pairwise(levels)), name
        assert levels[-1] >= levels[0], name


@pytest.mark.parametrize("break_it", ["repeat", "unchained", "unknown", "ladder"])
def test_a_faulty_bank_is_refused(break_it: str) -> None:
    every, chains, ladder = list(entries()), read_chains(), read_ladder()
    if break_it == "repeat":
        every.append(every[0])
    elif break_it == "unchained":
        every.append(changed(id="in-no-chain"))
    elif break_it == "unknown":
        chains["one softmax"] = [*chains["one softmax"], "not-there"]
    else:
        ladder["failure"] = ladder["failure"][:3]
    with pytest.raises(ValueError, match=r"entries of this id|no chain|not in the bank|ladder"):
        make_bank(every, chains, ladder)


@pytest.mark.parametrize("name", IDS)
def test_links_functions_and_sources_resolve(name: str) -> None:
    entry = BY_ID[name]
    page, _, anchor = entry["link"].partition("#")
    assert anchor in anchors(ROOT / "book" / page), entry["link"]
    known = parse_file(str(ROOT / "book" / "references.bib")).entries
    assert set(entry["sources"]) <= set(known)
    if "function" in entry:
        module, function = entry["function"].rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), function)), entry["function"]


def test_the_function_behind_the_numbers_is_called_or_documented_in_the_book() -> None:
    pages = [*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for entry in entries():
        function = entry.get("function", "").rsplit(".", 1)[-1]
        assert function in text, f"{entry['id']}: {function}"


def test_no_placeholder_is_left_in_a_filled_bank() -> None:
    for entry in bank().questions.values():
        for text in schema.texts(dict(entry)):
            assert not re.search(r"\{\w+#?\}", text), entry["id"]


def test_numbers_appear_with_commas_decimals_and_units() -> None:
    assert "2,198 tokens at 450 GB/s" in bank().questions["hidden-transfer"]["answer"][3]["text"]
    assert "87.5 %" in bank().questions["local-keys-only"]["short"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("minutes", [15, 30, 45, 60])
def test_a_mock_fits_its_minutes_and_reaches_its_level(level: str, minutes: int) -> None:
    made: Bank = bank()
    if level == "staff" and minutes == 15:
        assert made.mocks(level, minutes)
    for mock in made.mocks(level, minutes):
        asked = [made.questions[q] for q in mock.questions]
        assert mock.minutes == sum(entry["minutes"] for entry in asked) <= minutes
        assert len(set(mock.questions)) == len(mock.questions)
        assert level in {entry["level"] for entry in asked}
        assert all(LEVELS.index(entry["level"]) <= LEVELS.index(level) for entry in asked)


def test_mocks_use_most_of_an_hour() -> None:
    for level in ("core", "senior", "staff"):
        assert max(mock.minutes for mock in bank().mocks(level, 60)) >= 55


def test_every_question_is_asked_by_some_mock_of_its_level() -> None:
    asked = {
        question
        for level in LEVELS
        for minutes in (15, 30, 45, 60)
        for mock in bank().mocks(level, minutes)
        for question in mock.questions
    }
    assert asked == set(IDS)


def test_no_mock_without_room_for_one_question() -> None:
    with pytest.raises(ValueError, match="minutes: expected enough for one question"):
        bank().mocks("staff", 5)


def test_every_question_is_a_flashcard() -> None:
    cards = bank().cards()
    assert [card.question for card in cards] == IDS
    assert all(card.front and card.back for card in cards)
