"""The two panels of the merge stepper: chunks as they arrive, and the merge of one step."""

from __future__ import annotations

from cpcore.ui.merge_facts import LAST, PER_CHUNK, Facts
from cpcore.ui.summaries import cells, merge_picture
from cpcore.ui.svg import (
    DOTS,
    arrow,
    box,
    boxes,
    filled,
    group,
    label,
    num,
    rank_color,
    svg,
    text_color,
    verdict,
)

FLOOR, UNIT = 196, 58  # of the bars: where they stand, and the height of 1


def _key_x(place: int) -> float:
    """Left edge of the place-th key in order of arrival."""
    return 48 + 34 * place + 2 * (place // PER_CHUNK)


def arrivals_panel(known: Facts) -> str:
    """All chunks in order of arrival, and what each key now adds to the state's sum."""
    parts = [
        label(0, 12, f"Arrival of {known.inputs} chunks, state in {known.state}"),
        label(0, 60, "score"),
        label(0, 84, "value"),
        label(0, 126, f"exp(score \N{MINUS SIGN} max), sum {num(known.after.sum)}"),
        f'<path d="M46 {FLOOR}H328" stroke="currentColor"/>',
    ]
    parts += [_chunk(known, turn, rank) for turn, rank in enumerate(known.order)]
    seen = ", ".join(map(str, known.arrived)) or "none yet"
    alt = f"Four chunks of two keys. Arrived, by rank: {seen}. Bars: each key's part of the sum."
    return svg(FLOOR + 6, alt, *parts)


def _chunk(known: Facts, turn: int, rank: int) -> str:
    """One chunk of two keys: title, scores, values, and a bar once it has arrived."""
    x, masked = _key_x(PER_CHUNK * turn), rank in known.hidden
    now = turn == known.step - 1
    ink, shape = "", f'fill="none" stroke="currentColor" {DOTS}'
    if turn < known.step and not masked:
        shape, ink = filled(rank), f' fill="{text_color(rank_color(rank))}"'
    numbers, bars = [], []
    for i, key in enumerate(range(PER_CHUNK * rank, PER_CHUNK * (rank + 1))):
        middle, weight = x + 34 * i + 17, float(known.weights[key])
        if not masked:
            numbers.append(label(middle, 60, num(float(known.scores[key]), 2)))
        numbers.append(label(middle, 84, num(float(known.values[key]), 2)))
        bars.append((middle - 11, FLOOR - UNIT * weight, 22, UNIT * weight))
    if masked:
        numbers.append(label(x + 34, 60, "masked"))
    title = label(
        x + 34, 34, f"rank {rank}", anchor="middle", more='font-weight="bold"' if now else ""
    )
    return (
        title
        + box(x, 42, 68, 50, shape)
        + (arrow(x + 34, 110, x + 34, 95) if now else "")
        + group(f'text-anchor="middle"{ink}', *numbers)
        + boxes(bars, filled(rank))
    )


def merge_panel(known: Facts) -> str:
    """The merge of this step, or the division at the end, and the two answers below."""
    if known.step == 0:
        top = cells(90, 40, "neutral state", known.after)
        alt = "The neutral state: nothing seen."
    elif known.step == LAST:
        top = cells(90, 40, "final state", known.after)
        alt = f"The final state is divided once: output {num(known.finished)}."
    else:
        rank = known.arrived[-1]
        top = merge_picture(
            ("state so far", known.before, None), (f"rank {rank} alone", known.chunk, rank),
            known.after, known.factors,
        )  # fmt: skip
        alt = f"State so far and chunk of rank {rank}, each rescaled, added to the merged state."
    head = "output \N{DIVISION SIGN} sum" if known.step == LAST else "if divided now"
    total, output = map(num, known.plain)
    plain = f"{output} \N{DIVISION SIGN} {total} = {num(known.plain_answer)}"
    answer = f"{num(known.finished)} by convention, lse {num(known.lse)}"
    if known.after.seen:
        answer = f"{num(known.finished)}, dense {num(known.dense)}: {verdict(known.right)}"
        plain = f"{plain} {verdict(known.plain_right)}"
    return svg(
        216, alt, top,
        label(0, 184, f"{head}: {answer}"), label(0, 208, f"no max: {plain}"),
    )  # fmt: skip
