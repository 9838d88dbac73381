"""Chapter 3: the summaries of the worked sum, as printed, are those of pencil and paper."""

from __future__ import annotations

import math
import re
from typing import Any

import nbformat
import pytest

from scripts import notebooks


def printed(pattern: str) -> list[float]:
    """The numbers of the one printed line that matches, in its order."""
    notebook: Any = nbformat.read(notebooks.BOOK / "03_rescale_and_merge.ipynb", as_version=4)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    text = "".join(output.get("text", "") for output in outputs)
    found = re.findall(pattern, text, flags=re.MULTILINE)
    assert len(found) == 1, (pattern, found)
    return [float(number) for number in found[0]]


# exponentials of the scores and values: rank a (1, 2) and (6, 0), rank b (4, 1) and (2, 6)
@pytest.mark.parametrize(
    ("rank", "largest", "total", "output"),
    [("a", 2, 1 / 2 + 1, 6 / 2 + 0), ("b", 4, 1 + 1 / 4, 2 + 6 / 4)],
)
def test_each_number_of_a_summary_stands_under_its_name(
    rank: str, largest: int, total: float, output: float
) -> None:
    names = printed(rf"^{rank}: max ([\d.]+) \| sum ([\d.]+) \| output ([\d.]+)$")
    assert names == [round(math.log(largest), 3), round(total, 3), round(output, 3)]


def test_the_merge_by_hand_reaches_the_exact_answer() -> None:
    numbers = printed(r"^factors ([\d.]+) ([\d.]+), sum ([\d.]+), output ([\d.]+)$")
    assert numbers == [0.5, 1, 1.5 / 2 + 1.25, 3 / 2 + 3.5]
    assert printed(r"^divided once: ([\d.]+), exact ([\d.]+)$") == [20 / 8, 20 / 8]
