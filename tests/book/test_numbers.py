"""Every number in prose that claims something is printed, asserted or has a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from cpcore import exercises
from scripts import question_pages
from scripts.build import ROOT
from tests.support.interview import known_numbers
from tests.support.numbers import backed, claims, unbacked

BOOK = ROOT / "book"
NOTEBOOKS = sorted(BOOK.glob("*.ipynb"))
PAGES = sorted(BOOK.glob("*.md"))
# Written by scripts/pages.py from data whose numbers are computed in two ways.
FROM_THE_BANK = {"practice.md", "sheet.md", *question_pages.level_pages()}
# (page, number): no cell of its own page shows it. At most ten in the whole book.
EXCEPTIONS = {
    ("index.md", "0.1"): "a sum whose rounding tests/book/test_pages.py recomputes",
    ("index.md", "0.2"): "the same sum",
    ("index.md", "0.3"): "the same sum",
    ("index.md", "3 minutes"): "the rule for minutes, recounted by tests/book/test_pages.py",
    ("index.md", "45 minutes"): "a reader's time",
    ("index.md", "3 hours"): "a reader's time",
    ("index.md", "3.11"): "a version of Python, tested by tests/book/test_env.py",
    ("index.md", "3.12"): "a version of Python, tested by tests/book/test_env.py",
    ("index.md", "18 MB"): "what Python weighs: tests/site/test_runner.py adds it up",
    ("licences.md", "1.1"): "the version of a license",
}


def missing(path: Path) -> list[str]:
    """Claims of a page without anything behind them."""
    if path.suffix == ".ipynb":
        found = unbacked(nbformat.read(path, as_version=4))
        if path.name == "12_exercises.ipynb":  # scripts/exercises.py writes them from the bank
            minutes = {each.minutes for each in exercises.catalogue.values()}
            found = [claim for claim in found if not backed(claim, minutes)]
    else:
        known = known_numbers(path.name) if path.name in FROM_THE_BANK else ()
        found = [c for c in claims(path.read_text(encoding="utf-8")) if not backed(c, known)]
    return [
        f"{path.name}: {claim} in: {' '.join(claim.paragraph.split())[:120]}"
        for claim in found
        if (path.name, str(claim)) not in EXCEPTIONS
    ]


@pytest.mark.parametrize("path", NOTEBOOKS + PAGES, ids=lambda path: path.name)
def test_every_number_in_prose_is_printed_asserted_or_has_a_source(path: Path) -> None:
    assert not missing(path), "\n".join(missing(path))


def test_the_exceptions_are_few_and_all_needed() -> None:
    assert len(EXCEPTIONS) <= 10
    for name, number in EXCEPTIONS:
        path = BOOK / name
        if path.suffix == ".md":
            found = [str(claim) for claim in claims(path.read_text(encoding="utf-8"))]
        else:
            found = [str(claim) for claim in unbacked(nbformat.read(path, as_version=4))]
        assert number in found, f"{name} no longer says {number}"


def page(prose: str, code: str = "x = 1", shown: str = "") -> Any:
    """A notebook of one paragraph and one executed cell."""
    new = nbformat.v4
    cell = new.new_code_cell(code)
    if shown:
        cell.outputs = [new.new_output("stream", name="stdout", text=shown)]
    return new.new_notebook(cells=[new.new_markdown_cell(prose), cell])


@pytest.mark.parametrize(
    ("prose", "numbers"),
    [
        ("The answer is 0.818.", ["0.818"]),
        ("It takes 12 MiB and 3 ms.", ["12 MiB", "3 ms"]),
        ("About 83 % of them, or 7% of these.", ["83 %", "7%"]),
        ("It needs 131,072 bytes.", ["131,072 bytes"]),
        ("A formula $x = -0.5$ counts.", ["0.5"]),
        ("- a list, 62.6 GiB\n- another, 1.5", ["62.6 GiB", "1.5"]),
        ("| a table | 2.5 |", ["2.5"]),
        ("Link speed 400 Gbit/s, 900 GB/s, 989 TFLOPs.", ["400 Gbit/s", "900 GB/s", "989 TFLOPs"]),
        # names, counts and addresses claim nothing
        ("4 ranks, chapter 3, float16, a 16-bit sum, position 7", []),
        ("`0.5` and [2.5](x.md#a-3.5), version 2.13.0, arXiv:1805.02867", ["2.5"]),
        ("```\n0.5\n```", []),
    ],
)
def test_a_claim_is_a_number_with_a_decimal_point_a_percent_sign_or_a_unit(
    prose: str, numbers: list[str]
) -> None:
    assert [str(claim) for claim in claims(prose)] == numbers


@pytest.mark.parametrize(
    ("prose", "code", "shown"),
    [
        ("It is 0.82.", "print(y)", "y 0.8176\n"),
        ("About 83 % wait.", "print(y)", "share 0.83\n"),
        ("About 83 % wait.", "print(y)", "share 83%\n"),
        ("It is 0.5.", "assert abs(y - 0.5) < 1e-9", ""),
        ("It holds 131,072 bytes.", "print(y)", "131072\n"),
        ("It is 62.6 GiB ([Meta](references.md#ref-llama3)).", "x = 1", ""),
    ],
)
def test_a_printed_an_asserted_and_a_sourced_number_pass(prose: str, code: str, shown: str) -> None:
    assert unbacked(page(prose, code, shown)) == []


@pytest.mark.parametrize(
    ("prose", "code", "shown"),
    [
        ("It is 0.83.", "print(y)", "y 0.8176\n"),
        ("It is 0.5.", "x = 0.5", ""),
        ("About 83 % wait.", "print(y)", "share 8.3\n"),
        ("It is 62.6 GiB ([above](01_why.ipynb)).", "x = 1", ""),
    ],
)
def test_a_number_that_nothing_backs_is_noticed(prose: str, code: str, shown: str) -> None:
    assert [c.number for c in unbacked(page(prose, code, shown))]
