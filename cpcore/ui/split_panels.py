"""The two panels of the split explorer: weights per key, answers per rank."""

from __future__ import annotations

from cpcore.ui.split_facts import Array, Facts
from cpcore.ui.svg import (
    DOTS,
    at,
    boxes,
    disc,
    group,
    label,
    num,
    rank_color,
    svg,
    text_color,
    verdict,
)


def weights_panel(known: Facts) -> str:
    """Two rows of bars on one scale: softmaxed alone, and over all keys."""
    parts = [
        label(0, 12, "Weights, each rank alone (sum 1 per rank)"),
        label(0, 106, "Weights over all keys (sum 1)"),
    ]
    unit = 54 / float(known.alone.max())  # alone is never below exact: one scale fits both rows
    for weights, base in ((known.alone, 86), (known.exact_weights, 180)):
        parts.append(_bars(known, weights * unit, weights, base))
    parts.append(label(0, 200, "score") + label(0, 218, "value"))
    numbers = [
        label(_key_x(i), 200, num(s, 2) if seen else "mask") + label(_key_x(i), 218, num(v))
        for i, (s, v, seen) in enumerate(
            zip(known.scores, known.values, known.visible, strict=True)
        )
    ]
    parts.append(group('text-anchor="middle"', *numbers))
    alt = "Bars: weight of each key in its own rank's softmax, and below in the softmax of all."
    return svg(224, alt, *parts)


def _key_x(index: int) -> float:
    """Center of a key's column."""
    return 60 + 36 * index


def _bars(known: Facts, heights: Array, weights: Array, base: float) -> str:
    """One bar per key in its owner's color, standing on a line, with its weight above."""
    keys = list(zip(known.owners, heights, strict=True))
    bars = [
        boxes(
            [(_key_x(i) - 12, base - h, 24, h) for i, (owner, h) in enumerate(keys) if owner == r],
            f'fill="{rank_color(r)}"',
        )
        for r in range(len(known.sizes))
    ]
    tops = [
        label(_key_x(i), base - 3 - h, _two(w))
        for i, (h, w) in enumerate(zip(heights, weights, strict=True))
    ]
    return (
        group('stroke="currentColor" stroke-width=".8"', *bars)
        + f'<path d="M42 {base}H330" stroke="currentColor"/>'
        + group('text-anchor="middle" font-size="12"', *tops)
    )


def _two(weight: float) -> str:
    """Two decimals, so that bars are compared at a glance; plain 0 and 1."""
    snapped = float(f"{weight:.6g}")
    return num(snapped) if snapped in (0, 1) else f"{snapped:.2f}"


def answers_panel(known: Facts) -> str:
    """Say in the mean against true share, then every answer on one axis."""
    parts = [
        label(0, 12, "Say of each rank in the mean"), _shares(known.say, 18),
        label(0, 60, "True share of the mass"), _shares(known.shares, 66),
    ]  # fmt: skip
    top, bottom = 116, 116 + 22 * len(known.sizes)
    x_exact, x_mean = _value_x(known.exact), _value_x(known.mean)
    parts.append(
        f'<path d="M{at(x_exact)} {top - 12}V{bottom + 40}" stroke="currentColor" {DOTS}/>'
    )
    parts += [_lane(known, rank, top + 22 * rank) for rank in range(len(known.sizes))]
    mark = verdict(known.right)
    y_mean, y_exact = bottom + 8, bottom + 30
    parts += [
        label(0, y_mean + 4.5, f"mean {mark}"), label(0, y_exact + 4.5, "exact"),
        f'<path d="M{at(x_mean)} {y_mean}H{at(x_exact)}" stroke="currentColor" stroke-width="3"/>',
        _diamond(x_mean, y_mean), _beside(known, known.mean, y_mean),
        _diamond(x_exact, y_exact), _beside(known, known.exact, y_exact),
        f'<path d="M130 {bottom + 46}H322" stroke="currentColor"/>',
        group(
            'text-anchor="middle"',
            *(label(_value_x(v), bottom + 62, str(v)) for v in (0, 3, 6, 9)),
        ),
    ]  # fmt: skip
    alt = f"Answers of the ranks; mean {num(known.mean)}, exact {num(known.exact)}: {mark}."
    return svg(bottom + 66, alt, *parts)


def _lane(known: Facts, rank: int, y: float) -> str:
    """One rank's own answer, or that it has none."""
    if not known.seeing[rank]:
        return label(0, y + 4.5, f"rank {rank} sees no key")
    answer = float(known.outputs[rank])
    return (
        label(0, y + 4.5, f"rank {rank}")
        + disc(_value_x(answer), y, rank)
        + _beside(known, answer, y)
    )


def _shares(parts_of_one: Array, y: float) -> str:
    """One bar of length one, cut at the ranks' parts; wide enough parts carry their rank."""
    bars, texts, x = [], [], 1.0
    for rank, part in enumerate(parts_of_one):
        width, color = 328 * float(part), rank_color(rank)
        bars.append(boxes([(x, y, width, 20)], f'fill="{color}"'))
        if width > 14:
            shown = f"{rank}: {num(part, 2)}" if width > 56 else str(rank)
            shown = f"rank {shown}" if width > 90 else shown
            texts.append(label(x + width / 2, y + 15, shown, more=f'fill="{text_color(color)}"'))
        x += width
    return group('stroke="currentColor" stroke-width=".8"', *bars) + group(
        'text-anchor="middle"', *texts
    )


def _value_x(value: float) -> float:
    """Place of a value on the axis from 0 to 9."""
    return 136 + 20 * float(value)


def _beside(known: Facts, value: float, y: float) -> str:
    """The value beside its marker, on the side away from the line of the exact answer."""
    x = _value_x(value)
    if x > 275 or value < known.exact - 1e-9:
        return label(x - 12, y + 4.5, num(value), anchor="end")
    return label(x + 12, y + 4.5, num(value))


def _diamond(x: float, y: float) -> str:
    """The marker of a combined answer."""
    return f'<path d="M{at(x - 8)} {at(y)}l8 -8l8 8l-8 8z"/>'
