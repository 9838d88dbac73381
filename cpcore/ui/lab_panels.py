"""The two panels of the laboratory: the score matrix under the cursor, and the differences."""

from __future__ import annotations

import math

from cpcore.schedule import Event
from cpcore.ui.lab_events import Snapshot
from cpcore.ui.lab_facts import NAMES, POSITIONS, ROUNDING, Facts
from cpcore.ui.svg import (
    DOTS,
    box,
    boxes,
    filled,
    label,
    num,
    rank_color,
    svg,
    text_color,
    verdict,
)

CELL, LEFT, TOP = 40, 66, 62
DECADES = (-5, 1)  # the axis of the differences; below it is rounding only


def matrix_panel(known: Facts, snapshot: Snapshot) -> str:
    """Queries down, keys right; blocks done, the one under the cursor, and those to come."""
    now = snapshot.event
    forward = [e for e in known.events if e.phase == "forward"]
    parts = [
        label(LEFT, 14, "keys, by owner") + label(0, 54, "queries"),
        "".join(_band(known, rank) for rank in range(known.layout.cp_size)),
        *(_block(known, event, now) for event in forward),
        _legend(),
    ]
    alt = (
        f"Score matrix of five positions; {now.phase}: rank {now.rank} with keys "
        f"{span(known, now)} of rank {now.owner}."
    )
    return svg(TOP + CELL * POSITIONS + 34, alt, *parts)


def span(known: Facts, event: Event) -> str:
    """The keys of a block, such as 2 or 2-4."""
    keys = [int(p) for p in known.keys(event)]
    return str(keys[0]) if len(keys) == 1 else f"{keys[0]}\N{EN DASH}{keys[-1]}"


def _band(known: Facts, rank: int) -> str:
    """A rank's positions along both edges: a bar in its color with its number."""
    first, count = int(known.layout.owned[rank][0]), known.layout.lengths[rank]
    x, y, length = LEFT + CELL * first, TOP + CELL * first, CELL * count
    ink = f'fill="{text_color(rank_color(rank))}"'
    name = f"rank {rank}" if count > 1 else str(rank)
    across = box(x, 20, length, 18, filled(rank)) + box(0, y, 50, length, filled(rank))
    return (
        across
        + label(x + length / 2, 33.5, name, anchor="middle", more=ink)
        + label(25, y + length / 2 + 4.5, f"rank {rank}", anchor="middle", more=ink)
        + "".join(
            label(LEFT + CELL * (p + 0.5), 55, str(p), anchor="middle")
            + label(58, TOP + CELL * (p + 0.5) + 4.5, str(p), anchor="middle")
            for p in range(first, first + count)
        )
    )


def _block(known: Facts, event: Event, now: Event) -> str:
    """One block of the forward pass, as it stands under the cursor."""
    order = [_key(e) for e in known.events if e.phase == "forward"]
    at, cursor = order.index(_key(event)), order.index(_key(now))
    rows, keys, mask = known.rows(event), known.keys(event), known.mask(event)
    x, y = LEFT + CELL * int(keys[0]), TOP + CELL * int(rows[0])
    frame = [(x, y, CELL * len(keys), CELL * len(rows))]
    if now.phase == "forward" and at > cursor:
        return boxes(frame, f'fill="none" stroke="currentColor" {DOTS}')
    cells = [
        (LEFT + CELL * int(j), TOP + CELL * int(i), bool(mask[a, b]))
        for a, i in enumerate(rows)
        for b, j in enumerate(keys)
    ]
    seen = boxes([(cx, cy, CELL, CELL) for cx, cy, on in cells if on], filled(event.owner))
    hidden = "".join(
        f"M{cx} {cy}h{CELL}v{CELL}h-{CELL}zM{cx} {cy + CELL}l{CELL}-{CELL}"
        for cx, cy, on in cells
        if not on
    )
    skipped = hidden and f'<path d="{hidden}" fill="none" stroke="currentColor" stroke-width=".5"/>'
    if at == cursor:
        return seen + skipped + boxes(frame, 'fill="none" stroke="currentColor" stroke-width="4"')
    faded = now.phase == "replay" and at > cursor
    return f'<g opacity=".35">{seen}{skipped}</g>' if faded else seen + skipped


def _key(event: Event) -> tuple[int, int, int]:
    return event.rank, event.owner, event.key_start


def _legend() -> str:
    """What a cell can look like, in one line below."""
    y = TOP + CELL * POSITIONS + 12
    hatch = f'<path d="M89 {y}h15v15h-15zM89 {y + 15}l15-15"'
    return (
        box(1, y, 15, 15, filled(0))
        + f'{hatch} fill="none" stroke="currentColor" stroke-width=".5"/>'
        + box(181, y, 15, 15, f'fill="none" stroke="currentColor" {DOTS}')
        + box(256, y + 1, 13, 13, 'fill="none" stroke="currentColor" stroke-width="3"')
        + label(22, y + 12, "visible")
        + label(110, y + 12, "hidden")
        + label(202, y + 12, "later")
        + label(276, y + 12, "cursor")
    )


def small(value: float) -> str:
    """A difference: two digits, or the words for what is below any meaning."""
    return "rounding only" if value < ROUNDING else num(float(f"{value:.2g}"), 6)


def differences_panel(known: Facts) -> str:
    """The largest difference of each result on one log axis, and both losses."""
    parts = [label(0, 14, "Largest differences, after all events")]
    for i, (name, value) in enumerate(zip(NAMES, known.differences, strict=True)):
        y = 30.0 + 46 * i
        right = value < ROUNDING
        length = 0.0 if right else 8 + 260 * _place(value)
        parts += [
            label(0, y + 13, name),
            boxes([(60, y + 20, length, 14)], 'fill="currentColor" fill-opacity=".45"'),
            label(66, y + 13, f"{small(value)}, {verdict(right)}"),
        ]
    low, high = DECADES
    ticks = [
        label(68 + 260 * (n - low) / (high - low), 232, text, anchor="middle")
        for n, text in ((-4, "0.0001"), (-2, "0.01"), (0, "1"))
    ]
    parts += [
        f'<path d="M60 26V214H{328}" fill="none" stroke="currentColor"/>',
        label(0, 232, "rounding"),
        *ticks,
        label(0, 264, f"loss {num(known.loss)}"),
        label(165, 264, f"reference {num(known.reference_loss)}"),
        label(0, 284, _losses(known)),
    ]
    shown = ", ".join(f"{n} {small(d)}" for n, d in zip(NAMES, known.differences, strict=True))
    return svg(292, f"Bars of the largest differences: {shown}.", *(part for part in parts if part))


def _place(value: float) -> float:
    """Where a difference lies between the ends of the axis, 0 to 1."""
    low, high = DECADES
    return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))


def _losses(known: Facts) -> str:
    """What the two losses alone would tell."""
    equal = abs(known.loss - known.reference_loss) < ROUNDING
    if equal and not known.right:
        return "Equal losses beside wrong gradients."
    return "Equal losses." if equal else "The losses differ."
