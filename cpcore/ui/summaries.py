"""Pictures of running summaries: three cells max | sum | output, and two of them merged."""

from __future__ import annotations

from dataclasses import dataclass

from cpcore.ui.svg import (
    DOTS,
    WIDTH,
    arrow,
    boxes,
    filled,
    group,
    label,
    num,
    rank_color,
    text_color,
)

CELL = 50
HEIGHT = 26
HEADS = ("max", "sum", "output")


@dataclass(frozen=True)
class Summary:
    """The three numbers of one query and one value column, as plain floats."""

    max: float
    sum: float
    output: float

    @property
    def numbers(self) -> tuple[float, float, float]:
        """In the order in which they are always drawn."""
        return (self.max, self.sum, self.output)

    @property
    def seen(self) -> bool:
        """Has any key contributed?"""
        return self.sum > 0


def cells(x: float, y: float, title: str, summary: Summary | None, rank: int | None = None) -> str:
    """Title, heads and three cells from (x, y) down; ``None`` draws them still to come."""
    top = y + 36
    places = [(x + CELL * i, top, CELL, HEIGHT) for i in range(3)]
    ink, outline = "", 'fill="none" stroke="currentColor"'
    if summary is None or not summary.seen:
        outline = f"{outline} {DOTS}"
    elif rank is not None:
        outline = filled(rank)
        ink = f' fill="{text_color(rank_color(rank))}"'
    middle = [x + CELL * (i + 0.5) for i in range(3)]
    shown = ("", "", "") if summary is None else tuple(map(num, summary.numbers))
    return "\n".join(
        (
            label(x, y + 12, title),
            group(
                'text-anchor="middle" font-size="12"',
                *(label(m, y + 30, head) for m, head in zip(middle, HEADS, strict=True)),
            ),
            boxes(places, outline),
            group(
                f'text-anchor="middle"{ink}',
                *(
                    label(m, top + 18, content)
                    for m, content in zip(middle, shown, strict=True)
                    if content
                ),
            ),
        )
    )


def merge_picture(
    left: tuple[str, Summary | None, int | None],
    right: tuple[str, Summary | None, int | None],
    merged: Summary | None,
    factors: tuple[float, float] | None,
) -> str:
    """Two summaries above, their sum below, each rescale factor on the arrow that applies it.

    160 units high. A side is (title, summary, rank or None).
    """
    x_right = WIDTH - 1 - 3 * CELL
    parts = [cells(1, 0, *left), cells(x_right, 0, *right), cells(90, 92, "merged", merged)]
    if factors is not None:
        parts += [
            arrow(60, 64, 86, 138),
            arrow(WIDTH - 60, 64, WIDTH - 86, 138),
            label(64, 104, f"\N{MULTIPLICATION SIGN} {num(factors[0])}", anchor="end"),
            label(WIDTH - 64, 104, f"\N{MULTIPLICATION SIGN} {num(factors[1])}"),
        ]
    return "\n".join(parts)
