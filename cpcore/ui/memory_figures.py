"""A still picture of memory: one stacked bar per setting, beside what a device has.

Draws the lines of a bill that it is given; it knows no model and no machine. Shade tells what the
model brings from what the tokens bring; a number under each part names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpcore.checks import expected
from cpcore.planner import MemoryItem
from cpcore.ui.figure import Figure
from cpcore.ui.svg import at, box, details, label, svg, table

GIB = 2**30
ACROSS = 316.0  # the longest bar
ROW, TOP, BAR = 62.0, 14.0, 18.0
DIGIT = 8.5  # width of a digit in the widest usual font: a narrower part gets no number
OF_MODEL, OF_TOKENS = (f'fill="currentColor" fill-opacity="{o}"' for o in (".6", ".15"))
OUTLINE = ' stroke="currentColor" stroke-width=".8"'
LEGEND_ROWS = 3  # names of parts in a line of the legend


Bills = Mapping[str, Sequence[MemoryItem]]


def memory_bill(bills: Bills, *, room_bytes: float, alt: str) -> Figure:
    """What the fullest rank holds in each setting, part by part, against the device's memory.

    Parts are in the order given, all bars on one scale; a thick line marks the room.

    Raises: ValueError without a bill, for bills that list other parts than the first, for a room
        that is not above 0, or without alt text.
    """
    drawn, facts = bill_panel(bills, room_bytes, alt), details(bill_table(bills, room_bytes))
    return Figure(f'<div class="cp-figure">\n{drawn}\n{facts}\n</div>')


def bill_panel(bills: Bills, room_bytes: float, alt: str) -> str:
    """The picture of `memory_bill` alone.

    Raises: ValueError as `memory_bill`.
    """
    names = [[item.name for item in bill] for bill in bills.values()]
    if not names or not names[0] or any(other != names[0] for other in names):
        raise expected("bills", "the same parts in each, at least one", repr(names))
    if not room_bytes > 0:
        raise expected("room_bytes", "a number above 0", repr(room_bytes))
    totals = _totals(bills)
    unit = ACROSS / max(room_bytes, *totals.values())
    rows = []
    for i, (name, bill) in enumerate(bills.items()):
        y, verdict = TOP + ROW * i, "fits" if totals[name] <= room_bytes else "does not fit"
        rows.append(_row(f"{name}: {_gib(totals[name])} GiB, {verdict}", bill, y, unit))
        rows.append(_mark(unit * room_bytes, y + 4))
    floor = TOP + ROW * len(bills)
    legend = _legend(names[0], floor, f"memory of a device, {_gib(room_bytes)} GiB")
    told = ", ".join(f"{name}: {_gib(total)} GiB" for name, total in totals.items())
    words = f"{alt} {told}." if alt.strip() else ""
    return svg(_height(floor, names[0]), words, *rows, *legend)


def bill_table(bills: Bills, room_bytes: float) -> str:
    """A row per part, then the total and whether it fits."""
    totals = _totals(bills)
    rows = [
        [same[0].name, *(f"{item.rank_bytes / GIB:.2f}" for item in same)]
        for same in zip(*bills.values(), strict=True)
    ]
    rows.append(["total", *(f"{total / GIB:.2f}" for total in totals.values())])
    fits = ("yes" if total <= room_bytes else "no" for total in totals.values())
    return table(["GiB on the fullest rank", *bills], [*rows, ["fits", *fits]])


def _totals(bills: Bills) -> dict[str, int]:
    return {name: sum(item.rank_bytes for item in bill) for name, bill in bills.items()}


def _gib(size: float) -> str:
    """One decimal."""
    return f"{size / GIB:.1f}"


def _row(title: str, bill: Sequence[MemoryItem], y: float, unit: float) -> str:
    """A title, its parts from left to right, and the number of each part that has room for it."""
    parts, x = [label(0, y, title)], 0.0
    for number, item in enumerate(bill, 1):
        width = unit * item.rank_bytes
        if width > 0:
            shade = OF_TOKENS if item.divided_by_cp else OF_MODEL
            parts.append(box(x, y + 6, width, BAR, shade + OUTLINE))
        if width >= DIGIT:
            parts.append(label(x + width / 2, y + 6 + BAR + 13, str(number), anchor="middle"))
        x += width
    return "".join(parts)


def _mark(x: float, y: float) -> str:
    """Where the memory of a device ends: a line a little longer than the bar is high."""
    return f'<path d="M{at(x)} {at(y)}v{at(BAR + 4)}" stroke="currentColor" stroke-width="2.5"/>'


def _legend(names: Sequence[str], floor: float, room: str) -> list[str]:
    """The line, two shades, then the parts by number."""
    parts = [
        _mark(9, floor - 10),
        label(24, floor + 6, room),
        box(0, floor + 20, 18, 14, OF_MODEL + OUTLINE),
        label(24, floor + 32, "left or added"),
        box(166, floor + 20, 18, 14, OF_TOKENS + OUTLINE),
        label(190, floor + 32, "divided by the cut"),
    ]
    for start in range(0, len(names), LEGEND_ROWS):
        named = enumerate(names[start : start + LEGEND_ROWS], start + 1)
        words = ", ".join(f"{number} {name}" for number, name in named)
        parts.append(label(0, floor + 56 + 20 * (start // LEGEND_ROWS), words))
    return parts


def _height(floor: float, names: Sequence[str]) -> float:
    """Down to below the last line of the legend."""
    return floor + 62 + 20 * ((len(names) - 1) // LEGEND_ROWS)
