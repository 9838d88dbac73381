"""The form of a symptom: a table, perhaps a picture of it, and small rings to fill it from.

Owns how answers on several rank counts are put side by side. Leaves out every fault.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cpcore.checks import Array
from cpcore.layouts import contiguous
from cpcore.museum.system import Answer, Case, System
from cpcore.ui.figure import Figure
from cpcore.ui.svg import num


class Facts(NamedTuple):
    """A table, and perhaps a picture of the same numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figure: Figure | None = None


Probe = Callable[[System], Facts]


def column(*numbers: float) -> Array:
    """Numbers as rows of width one."""
    return np.array(numbers, float)[:, None]


def beside(
    case: Case, system: System, sizes: Sequence[int], pick: Callable[[Answer], Any], first: str
) -> Facts:
    """One row per picked number, one column per rank count; the rows are counted from 0."""
    answers = [pick(system.attend(case, contiguous(case.query.shape[-2], size))) for size in sizes]
    rows = [(str(i), *map(num, line)) for i, line in enumerate(zip(*answers, strict=True))]
    return Facts((first, *(f"R = {size}" for size in sizes)), tuple(rows))


def first_column(answer: Answer) -> Array:
    """The outputs of width one."""
    return answer.output[:, 0]
