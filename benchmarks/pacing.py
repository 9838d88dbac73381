"""How a chapter is paced: cells, lines, words, pictures, exercises, and seconds to run it.

`python -m benchmarks.pacing` prints one row per chapter and says which limits are passed. The
rules without a clock are tests (tests/book/test_notebooks.py); the seconds depend on the machine.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from scripts.pages import counts
from tests.support.chapters import cells, line_count, own_code, prose, shown_pictures, word_count

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S, LIMITS_S, ALL_LIMIT_S = 8.0, {"10_real_processes": 25.0}, 90.0
COLUMNS = ("chapter", "cells", "median", "p90", "most", "words/cell", "figures", "exercises", "s")


def percentile_90(lengths: list[int]) -> int:
    """The length that nine of ten cells do not exceed."""
    return sorted(lengths)[-(-len(lengths) * 9 // 10) - 1]


def seconds(path: Path, notebook: Any) -> float:
    """Wall time of one run of all cells, with the start of the kernel."""
    start = time.perf_counter()
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": path.parent}}).execute()
    return time.perf_counter() - start


def row(path: Path) -> tuple[str, int, float, int, int, float, int, int, float]:
    """What the table says of one chapter."""
    notebook = nbformat.read(path, as_version=4)
    lengths = [line_count(cell) for cell in own_code(notebook)]
    count = len(cells(notebook, "code"))
    words = word_count(prose(notebook)) / count
    figures = shown_pictures(notebook)
    exercises = counts(notebook)["exercises"]
    spent = seconds(path, notebook)
    middle, tenth = statistics.median(lengths), percentile_90(lengths)
    return path.stem, count, middle, tenth, max(lengths), words, figures, exercises, spent


def main() -> None:
    """Print the table and the limits that are passed."""
    print(("{:<20}" + "{:>11}" * 8).format(*COLUMNS))
    total, late = 0.0, []
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        name, *numbers, words, figures, exercises, spent = row(path)
        print(f"{name:<20}" + "".join(f"{n:>11g}" for n in numbers), end="")
        print(f"{words:>11.1f}{figures:>11}{exercises:>11}{spent:>11.1f}", flush=True)
        total += spent
        if spent > LIMITS_S.get(name, LIMIT_S):
            late.append(f"{name}: {spent:.1f} s, wanted {LIMITS_S.get(name, LIMIT_S):.0f}")
    print(f"all: {total:.1f} s, wanted {ALL_LIMIT_S:.0f}", *late, sep="\n")


if __name__ == "__main__":
    main()
