"""Judging an estimate: right within a factor, or which slip would explain what was written.

Owns the comparison. A slip is a factor with a reason: bits for bytes, the total for one rank's
part. The page's script follows the same steps; a test runs both on the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cpcore.interview.units import UNITS, read, show

NEAR = 1.15  # an explained slip may be rounded by this much, or by the drill's factor if smaller
TIED = 1.005  # slips this close to the best one are named too: four ranks, or a group of four
FAR = 1e6  # beyond that the factor says nothing
BINARY_NAMES = {"kB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}


class Slip(NamedTuple):
    """A mistake that multiplies the right answer by `factor`, and what to say about it."""

    factor: float
    reason: str


class Verdict(NamedTuple):
    """Whether the answer counts, and one or two sentences about it."""

    right: bool
    text: str


ALWAYS = {
    "data": (
        Slip(8, "That is the number of bits; a byte has 8."),
        Slip(1 / 8, "Divided by 8: your bytes are taken for bits."),
        Slip(1e3, "A prefix too high: a thousand times too much."),
        Slip(1e-3, "A prefix too low: a thousandth of it."),
    ),
    "time": (Slip(1e3, "Milliseconds and seconds."), Slip(1e-3, "Milliseconds and seconds.")),
    "tokens": (
        Slip(1e3, "A thousand times too much: k or M?"),
        Slip(1e-3, "A thousandth: k or M?"),
    ),
    "share": (Slip(100, "A share was multiplied by 100 twice."), Slip(0.01, "Percent or share?")),
}


def judge(
    text: str, value: float, unit: str, *, factor: float = 1.5, slips: Sequence[Slip] = ()
) -> Verdict:
    """What to say to the answer `text`, where `value` in base units is right, shown in `unit`.

    Accepted if within `factor` of the value, in any unit of the same quantity.

    >>> judge("67 MB", 2**26, "MiB").right
    True
    """
    try:
        answer = read(text)
    except ValueError as error:
        return Verdict(False, f"Not read: {error}.")
    right, wanted = best_shown(value, unit), UNITS[unit].quantity
    found = UNITS[answer.unit].quantity
    if found != wanted:
        return Verdict(False, f"{answer.unit} measure {found}, asked is {wanted}, in {unit}.")
    if answer.value <= 0:
        return Verdict(False, "The answer is a number above 0.")
    off = max(answer.value / value, 1e-300)  # so that it can be turned around
    if max(off, 1 / off) <= factor:
        return Verdict(True, f"Right: {right}.{_binary_note(off, answer.unit)}")
    reasons = _reasons(off, (*slips, *ALWAYS.get(wanted, ())), min(NEAR, factor))
    if reasons:
        return Verdict(False, f"Not yet. {' Or: '.join(reasons)}")
    return Verdict(
        False,
        f"Not yet: {_times(max(off, 1 / off))} {'more' if off > 1 else 'less'} than it should be.",
    )


def _reasons(off: float, slips: Sequence[Slip], near: float) -> list[str]:
    """What the slips nearest to a factor say; several, where their factors are the same."""
    nearest = min((_distance(off, slip.factor) for slip in slips), default=math.inf)
    if nearest > near:
        return []
    return [slip.reason for slip in slips if _distance(off, slip.factor) <= TIED * nearest]


def _times(times: float) -> str:
    """A factor in words, as the page's script writes it: halves go up."""
    if times > FAR:
        return "over a million times"
    step = 1 if times >= 100 else 10
    return f"{math.floor(times * step + 0.5) / step:,.{0 if step == 1 else 1}f} times"


def _distance(a: float, b: float) -> float:
    """By which factor two numbers differ, at least 1."""
    return max(a / b, b / a)


def _binary_note(off: float, unit: str) -> str:
    """A word on GB written for GiB or the other way around, where the digits say so."""
    for decimal, binary in BINARY_NAMES.items():
        ratio = UNITS[binary].factor / UNITS[decimal].factor
        if unit == decimal and abs(off * ratio - 1) < 0.004 and ratio > 1.03:
            return f" These digits belong to {binary}: 1 {binary} is {ratio:.3f} {decimal}."
        if unit == binary and abs(off / ratio - 1) < 0.004 and ratio > 1.03:
            return f" These digits belong to {decimal}: 1 {binary} is {ratio:.3f} {decimal}."
    return ""


def best_shown(value: float, unit: str) -> str:
    """A value above 0 in its unit, with decimals that leave three significant digits.

    >>> best_shown(2**26, "MiB"), best_shown(0.5714, "%")
    ('64.0 MiB', '57.1 %')
    """
    digits = 2 - math.floor(math.log10(value / UNITS[unit].factor))
    return show(value, unit, max(0, min(3, digits)))
