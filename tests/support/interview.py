"""The files of the question bank, read as the build reads them."""

from __future__ import annotations

from functools import cache
from typing import Any

from cpcore.interview import Bank, make_bank
from scripts.interview import read_chains, read_entries, read_ladder


@cache
def entries() -> list[dict[str, Any]]:
    """Every entry as it is written."""
    return read_entries()


@cache
def bank() -> Bank:
    """The bank with every placeholder filled."""
    return make_bank(entries(), read_chains(), read_ladder())
