"""The picture of the matrix: one square per run, a cross where it fails and a tick where it passes.

Draws the verdicts that it is given and puts a table of the same facts below.
"""

from collections.abc import Mapping, Sequence

from cpcore.ui.svg import boxes, details, group, label, svg, table

LEFT, TOP, SIDE = 86, 24, 20
MARKS = {True: "\N{CHECK MARK} passes", False: "\N{BALLOT X} fails"}
THICK = 'fill="none" stroke="currentColor" stroke-width="2"'
FAINT = 'fill="none" stroke="currentColor" stroke-opacity=".55"'
GRAY = 'fill="currentColor" fill-opacity=".25" stroke="currentColor" stroke-width=".8"'
OUTLINE = 'fill="none" stroke="currentColor" stroke-width=".5"'
CROSS, TICK = "l8 8m0-8l-8 8", "m0 4l3 4l5-8"  # from the corner of a mark, 8 by 8


def grid(rows: Mapping[str, Sequence[bool]]) -> str:
    """Rows by name, columns by number; True means passed."""
    numbers = [str(i + 1) for i in range(max(map(len, rows.values())))]
    bottom = TOP + SIDE * len(rows)
    places = {
        (i, j): (LEFT + SIDE * j, TOP + SIDE * i, passed)
        for i, row in enumerate(rows.values())
        for j, passed in enumerate(row)
    }
    good = [(x, y) for x, y, passed in places.values() if passed]
    bad = [(x, y) for x, y, passed in places.values() if not passed]
    good, bad = [*good, (LEFT + 100, bottom + 12)], [*bad, (LEFT, bottom + 12)]  # the legend
    parts = [
        boxes([(x + 1, y + 1, SIDE - 2, SIDE - 2) for x, y in bad], GRAY),
        boxes([(x + 1, y + 1, SIDE - 2, SIDE - 2) for x, y in good], OUTLINE),
        _marks(bad, CROSS, THICK),
        _marks(good, TICK, FAINT),
        group(
            'text-anchor="middle"',
            *(label(LEFT + SIDE * (j + 0.5), TOP - 8, n) for j, n in enumerate(numbers)),
        ),
        *(label(0, TOP + SIDE * i + 14.5, name) for i, name in enumerate(rows)),
        label(LEFT + 26, bottom + 26.5, "fails"),
        label(LEFT + 126, bottom + 26.5, "passes"),
    ]
    picture = svg(bottom + 40, _told(rows), *parts)
    facts = table(
        ["exhibit", *numbers],
        [[name, *(MARKS[ok] for ok in row)] for name, row in rows.items()],
    )
    return f'<div class="cp-figure">\n{picture}\n{details(facts)}\n</div>'


def _marks(places: Sequence[tuple[int, int]], mark: str, ink: str) -> str:
    """One path for all marks of a kind."""
    return f'<path d="{"".join(f"M{x + 6} {y + 6}{mark}" for x, y in places)}" {ink}/>'


def _told(rows: Mapping[str, Sequence[bool]]) -> str:
    """The picture in words: the checks that each row fails."""
    told = []
    for name, row in rows.items():
        failed = ", ".join(str(j) for j, passed in enumerate(row, start=1) if not passed)
        told.append(f"{name} fails {failed or 'none'}")
    return f"Checks that fail, by number. {'; '.join(told)}."
