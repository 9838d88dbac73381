"""Merge stepper: chunks of keys arrive one by one and are merged into a running summary.

The numbers come from the core by way of `merge_facts`; `merge_panels` draws them; this
module puts the words and the table to the picture.
"""

from __future__ import annotations

from typing import Any

from cpcore.ui.controls import Choice, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.merge_facts import CHUNKS, LAST, PER_CHUNK, PRESETS, Facts, facts
from cpcore.ui.merge_panels import arrivals_panel, merge_panel
from cpcore.ui.svg import details, num, table, verdict

CONTROLS = (
    Choice("preset", "Numbers", tuple((name, p.text) for name, p in PRESETS.items())),
    Choice("order", "Arrival", (("given", "rank 0 first"), ("reversed", "rank 3 first"))),
    Choice(
        "precision",
        "Precision",
        (
            ("float64", "float64"),
            ("float32", "float32"),
            ("float16", "float16, state in float32"),
        ),
    ),
    Step("step", "Step", LAST),
)


def draw(**values: Any) -> tuple[str, ...]:
    """Caption, arrivals, merge and table of one state."""
    known = facts(**values)
    return (_caption(known), arrivals_panel(known), merge_panel(known), _table(known))


def _caption(known: Facts) -> str:
    """What happened in this step, and why."""
    if known.step == 0:
        return (
            "<p>Nothing has arrived. The neutral state: max \N{MINUS SIGN}inf, sum 0, output 0.</p>"
        )
    if known.step == LAST:
        return f"<p>{_closing(known)}</p>"
    rank, (keep, add) = known.arrived[-1], known.factors
    if not known.after.seen:
        what = "all masked. Nothing was seen before either, so the state stays neutral."
    elif rank in known.hidden:
        what = "all masked. Its summary is neutral, so the state does not change at all."
    elif not known.before.seen:
        what = "the first that is seen. The state takes over its summary."
    elif keep < 1:
        what = (
            f"its maximum {num(known.after.max)} is larger. "
            f"The state so far is rescaled by {num(keep)}."
        )
    elif add < 1:
        what = f"its maximum is smaller, so the arriving chunk is rescaled by {num(add)}."
    else:
        what = "its maximum equals the state's, so both factors are 1."
    return f"<p>The chunk of rank {rank} arrives: {what}</p>"


def _closing(known: Facts) -> str:
    """The one division, and the way without a maximum beside it."""
    if not known.after.seen:
        return (
            "The query saw no key. By convention its output is 0 and its lse "
            "\N{MINUS SIGN}inf; 0 \N{DIVISION SIGN} 0 would be NaN."
        )
    text = (
        f"All chunks are in, one division: {num(known.finished)}. Dense attention: "
        f"{num(known.dense)}. <b>{verdict(known.right)}</b>, {_difference(known)}."
    )
    if known.plain_right:
        return text
    return f"{text} Without the maximum: <b>{verdict(False)}</b>, the sum is {num(known.plain[0])}."


def _difference(known: Facts) -> str:
    """The difference from dense attention as the book prints differences."""
    if known.right and num(known.finished) != num(known.dense):
        return "rounding to float16 only"
    if known.right:
        return "rounding only"
    return f"off by {known.finished - known.dense:.1e}"


def _table(known: Facts) -> str:
    """State, chunk, factors and answers."""
    keep, add = (num(f) for f in known.factors)
    rows = [["merged", *map(num, known.after.numbers), ""]]
    if known.chunk is not None and known.step <= CHUNKS:
        chunk = [f"rank {known.arrived[-1]}", *map(num, known.chunk.numbers), add]
        rows = [["state so far", *map(num, known.before.numbers), keep], chunk, *rows]
    plain_sum, plain_output = map(num, known.plain)
    seen = [r for r in known.arrived if r not in known.hidden]
    answers = [
        ["arrival, by rank", ", ".join(map(str, known.order))],
        ["precision of inputs", known.inputs],
        ["precision of the state", known.state],
        ["keys seen", str(PER_CHUNK * len(seen))],
        ["divided now", num(known.finished)],
        ["lse", num(known.lse)],
        ["dense, same keys", num(known.dense)],
        ["difference", _difference(known)],
        ["sum without the maximum", plain_sum],
        ["output without the maximum", plain_output],
        ["answer without the maximum", num(known.plain_answer)],
    ]
    keys = [
        [str(i), str(i // PER_CHUNK), num(float(s)), num(float(v)), num(float(w))]
        for i, (s, v, w) in enumerate(zip(known.scores, known.values, known.weights, strict=True))
    ]
    return details(
        table(["key", "rank", "score", "value", "exp(score \N{MINUS SIGN} max)"], keys),
        table(["summary", "max", "sum", "output", "factor"], rows),
        table(["answer", "value"], answers),
    )


merge_stepper = Explorable(
    name="merge-stepper",
    title="Merge stepper",
    summary=(
        "One query, four chunks of two keys. Step lets a chunk arrive and merges its summary "
        "(max, sum, output) into the state; each factor stands on the arrow that applies it."
    ),
    controls=CONTROLS,
    drawing=draw,
)
