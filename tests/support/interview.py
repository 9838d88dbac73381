"""The files of the question bank, read as the build reads them."""

from __future__ import annotations

from functools import cache
from typing import Any

from cpcore.interview import LEVELS, UNITS, Bank, evaluate, make_bank, schema
from scripts import sheet
from scripts.interview import read_chains, read_coding, read_entries, read_ladder


@cache
def entries() -> list[dict[str, Any]]:
    """Every entry as it is written."""
    return read_entries()


@cache
def bank() -> Bank:
    """The bank with every placeholder filled."""
    return make_bank(entries(), read_chains(), read_ladder())


def known_numbers(page: str) -> set[float]:
    """Numbers that a page written from the bank may state: computed ones, and minutes.

    Each as it is shown in its unit. The bank's own tests compute all of them in two ways.
    """
    minutes = {float(entry["minutes"]) for entry in [*entries(), *read_coding()]}
    if page == "practice.md":
        return minutes
    known = set()
    for entry in [sheet.source()] if page == "sheet.md" else entries():
        given = schema.bindings(entry)
        for number in entry.get("numbers", {}).values():
            if "published" in number:
                known.add(float(number["published"]))
            else:
                value = float(evaluate(str(number["is"]), given))
                known.add(value / UNITS[number["unit"]].factor)
    totals = {float(sum(e["minutes"] for e in entries() if e["level"] == x)) for x in LEVELS}
    return known | minutes | totals
