"""Still pictures of training under context parallelism: the loss, and how far the weights differ.

Draws the report of `python -m cpcore train` and puts the same numbers in a table below. Computes
nothing but the scale: what agrees was decided by the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpcore.ui.charts import MARKS, SHOWN_WIDTH, Series, line_chart
from cpcore.ui.figure import Figure
from cpcore.ui.svg import FONT, WIDTH, at, details, group, label, num, table

LEFT, RIGHT, TOP, PLOT = 46.0, 316.0, 34.0, 170.0
FLOOR = 1e-17  # a difference of 0 has no place on a log axis: it is drawn at "rounding only"
NAMES = {
    None: "correct",
    "local_positions": "local positions",
    "shift_after_shard": "shift after shard",
    "mean_of_means": "mean of means",
    "lost_return": "lost return",
}


def loss_curves(report: Mapping[str, Any]) -> Figure:
    """The loss of each step: one process as a line, each correct run as marks upon it.

    report: what the command returns, or its JSON file as loaded.

    Raises: ValueError for a report without a correct run.
    """
    alone = report["reference"]["losses"]
    runs = [run for run in map(_fields, report["runs"]) if run["switch"] is None]
    if not runs:
        raise ValueError("report: expected a run without a switch, received none")
    top, bottom = max(alone), min(alone)
    across = _place(1, max(2, len(alone)), LEFT + 12, RIGHT - 12)
    down = _place(_ceiling(bottom) - 1, _ceiling(top), TOP + PLOT, TOP)
    line = "L".join(f"{at(across(i))} {at(down(y))}" for i, y in enumerate(alone, start=1))
    parts = [f'<path d="M{line}" fill="none" stroke="currentColor"/>']
    marks = list(MARKS)
    for number, run in enumerate(runs):  # each run marks other steps, so that all can be seen
        every = range(number, len(alone), len(runs))
        parts += [_mark(marks[number % 4], across(i + 1), down(run["losses"][i])) for i in every]
        parts.append(_legend(number + 1, marks[number % 4], f"ranks: {run['ranks']}"))
    parts.append(_legend(0, None, "one process, whole sequence"))
    alt = (
        f"Loss of {len(alone)} steps: from {num(alone[0], 2)} to {num(alone[-1], 2)}; the marks of "
        f"{len(runs)} runs with ranks lie on the line of one process."
    )
    height = TOP + PLOT + 62 + 20 * len(runs) + 14
    axes = _axes(across, down, len(alone), _ceiling(bottom) - 1, _ceiling(top))
    rows = [
        [str(i + 1), num(alone[i]), *(num(run["losses"][i]) for run in runs)]
        for i in range(len(alone))
    ]
    heads = ["step", "one process", *(f"ranks: {run['ranks']}" for run in runs)]
    return _figure(height, alt, [label(0, 14, "loss"), axes, *parts], table(heads, rows))


def weight_differences(report: Mapping[str, Any]) -> Figure:
    """How far the weights are from those of one process, after some steps, on log axes.

    Correct runs stay where rounding is; every switch leaves it with its first step.
    """
    series = []
    for number, run in enumerate(map(_fields, report["runs"])):
        after = {int(step): gap for step, gap in run["differences"].items() if int(step) > 0}
        right = run["switch"] is None
        name = f"{NAMES[run['switch']]}, ranks: {run['ranks']}"
        mark = list(MARKS)[number % 4]
        gaps = [max(FLOOR, gap) for gap in after.values()]
        series.append(Series(name, list(after), gaps, mark, hollow=not right))
    worst = max((max(one.y) for one in series if not one.hollow), default=FLOOR)
    least = min((one.y[-1] for one in series if one.hollow), default=1.0)
    alt = (
        f"Differences of the weights: correct runs stay below {worst:.0e}, "
        f"wrong ones end above {_below(least):.0e}."
    )
    return line_chart(series, x_label="steps", y_label="largest difference / weight", alt=alt)


def _fields(run: Any) -> Mapping[str, Any]:
    """A run of the report, from the command or from its file."""
    return run if isinstance(run, Mapping) else dict(run._asdict())


def _below(value: float) -> float:
    """The value rounded down to one digit, so that "above" stays true."""
    digits = f"{value:.15e}".split("e")
    return float(f"{digits[0][0]}e{digits[1]}")


def _place(low: float, high: float, start: float, stop: float) -> Any:
    return lambda value: start + (stop - start) * (value - low) / (high - low)


def _ceiling(value: float) -> int:
    return int(value) + (value > int(value))


def _axes(across: Any, down: Any, steps: int, low: int, high: int) -> str:
    """Faint lines at whole losses, and the steps 1, middle and last."""
    heights = [(down(y), str(y)) for y in range(low, high + 1)]
    path = "".join(f"M{at(LEFT)} {at(y)}H{at(RIGHT)}" for y, _ in heights)
    grid = f'<path d="{path}" stroke="currentColor" stroke-opacity=".25" fill="none"/>'
    named = group('text-anchor="end"', *(label(LEFT - 6, y + 4, name) for y, name in heights))
    ticks = sorted({1, (steps + 1) // 2, steps})
    below = group(
        'text-anchor="middle"', *(label(across(i), TOP + PLOT + 18, str(i)) for i in ticks)
    )
    title = label((LEFT + RIGHT) / 2, TOP + PLOT + 38, "step", anchor="middle")
    return grid + named + below + title


def _legend(place: int, mark: str | None, name: str) -> str:
    y = TOP + PLOT + 62 + 20 * place
    if mark is None:
        sign = f'<path d="M{at(LEFT - 4)} {at(y)}H{at(LEFT + 14)}" stroke="currentColor"/>'
    else:
        sign = _mark(mark, LEFT + 6, y)
    return sign + label(LEFT + 22, y + 4, name)


def _mark(mark: str, x: float, y: float) -> str:
    where = f'transform="translate({at(x)} {at(y)})"'
    return f'<path d="{MARKS[mark]}" {where} fill="currentColor" stroke="currentColor"/>'


def _figure(height: float, alt: str, parts: Sequence[str], facts: str) -> Figure:
    head = (
        f'<svg role="img" aria-label="{alt}" viewBox="0 0 {WIDTH} {at(height)}" '
        f'width="{SHOWN_WIDTH}" font-size="{FONT}" font-family="sans-serif" fill="currentColor">'
    )
    picture = "\n".join((head, *parts, "</svg>"))
    return Figure(f'<div class="cp-figure">\n{picture}\n{details(facts)}\n</div>')
