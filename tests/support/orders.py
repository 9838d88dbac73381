"""Is the merge-order table true? Every merge again by hand, in numbers of the stated precision.

The rounding error itself is recomputed, so the same operations are needed in the same order; only
numpy's scalars and `math.fsum` are used for it, never the functions that drew it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cpcore.ui.order_facts import inputs

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
State = list[Any]  # output, sum, max, each an array over queries


def merge(a: State, b: State) -> State:
    top = np.maximum(a[2], b[2])
    left, right = np.exp(a[2] - top), np.exp(b[2] - top)
    return [left * a[0] + right * b[0], left * a[1] + right * b[1], top]


def places(order: str, count: int) -> list[int]:
    """Who comes when; the random order is stated, and only has to hold everyone once."""
    from cpcore.ui.order_facts import arrival

    if order == "random":
        chosen = arrival(order, count)
        assert sorted(chosen) == list(range(count))
        assert chosen != sorted(chosen)
        assert chosen != sorted(chosen)[::-1]
        return chosen
    return list(range(count))[:: -1 if order == "reverse" else 1]


@cache
def error(order: str, precision: str, count: int) -> float:
    """The largest error of this order."""
    scores, values = inputs(count)
    dtype = np.float64 if precision == "float64" else np.float32
    half = precision == "float16"

    def rounded(state: State) -> State:
        return [x.astype(np.float16).astype(dtype) for x in state] if half else state

    one = np.ones(len(scores), dtype)
    states = [
        [one * dtype(values[c]), one, scores[:, c].astype(dtype)] for c in places(order, count)
    ]
    if order == "tree":
        while len(states) > 1:
            states = [rounded(merge(states[i], states[i + 1])) for i in range(0, len(states), 2)]
    state = states[0]
    for other in [] if order == "tree" else states[1:]:
        state = rounded(merge(state, other))
    answers = state[0] / state[1]
    largest = 0.0
    for row, got in zip(scores, answers, strict=True):
        weights = [math.exp(s) for s in row]
        right = math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)
        largest = max(largest, abs(float(got) - right))
    return largest


def check_orders(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Merge-order explorer: the error of every order in every precision, and the caption's."""
    from tests.support.explorables import tables

    (shown,) = tables(fragment)
    count = int(state["chunks"])
    for precision, eps in EPS.items():
        assert _float(shown["eps"][precision]) == float(f"{eps:.0e}")
        for order in ("chain", "reverse", "tree", "random"):
            mine, text = error(order, precision, count), shown[order][precision]
            # one digit is shown; the double sums here are themselves two units off (values ≤ 2)
            room = 0.5 * 10 ** math.floor(math.log10(_float(text))) + 4 * EPS["float64"]
            assert abs(_float(text) - mine) <= 1.01 * room, (order, precision, text, mine)
    assert f"{count} chunks" in caption
    now = shown[state["order"]][state["precision"]]
    assert f"largest error {now}." in caption


def _float(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))
