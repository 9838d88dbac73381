"""Is a shown table true? Parse it and recompute every number from the stated inputs.

Inputs (scores, values, splits) are read from the presets; every result is recomputed with
`dense_attention`, the oracle, or with plain `math`, never with the functions that drew it.
"""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np

from cpcore.dense import dense_attention
from cpcore.ui import merge_facts, split_facts
from tests.support.averages import check_averages
from tests.support.bills import check_bill
from tests.support.calculators import check_calculator
from tests.support.laboratories import check_laboratory
from tests.support.orders import check_orders
from tests.support.schedules import check_schedule

Table = dict[str, dict[str, str]]  # row header -> column header -> text
SHOWN = 0.0006  # half a unit of the third decimal, and some room for binary ties


def tables(fragment: str) -> list[Table]:
    """Every table of a fragment, which must be well-formed XML."""
    root = ElementTree.fromstring(f"<div>{fragment}</div>")
    return [_table(node) for node in root.iter("table")]


def _table(node: ElementTree.Element) -> Table:
    head, *rows = [["".join(cell.itertext()) for cell in row] for row in node.iter("tr")]
    scopes = [cell.get("scope") for row in node.iter("tr") for cell in row if cell.tag == "th"]
    assert scopes == ["col"] * len(head) + ["row"] * len(rows)
    assert all(len(row) == len(head) for row in rows)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def number(text: str) -> float:
    """A number as printed by the book."""
    return float(text.replace("\N{MINUS SIGN}", "-"))


def assert_shown(text: str, expected: float, relative: float = 6e-6, more: float = 0.0) -> None:
    """The text is the expected number, at the precision with which the book prints."""
    shown = number(text)
    if not math.isfinite(expected):
        assert str(shown) == str(expected), f"shown {text}, expected {expected}"
        return
    room = SHOWN + more + relative * abs(expected)
    if abs(expected) >= 1e5:
        room = 0.0051 * abs(expected)  # printed with three significant digits
    assert abs(shown - expected) <= room, f"shown {text}, expected {expected}"


def assert_row(row: dict[str, str], expected: Any, **room: float) -> None:
    """Every cell of a row, in order."""
    for text, value in zip(row.values(), expected, strict=True):
        assert_shown(text, float(value), **room)


def softmax_answer(scores: Any, values: Any) -> float:
    """Attention of one query over these keys; 0 without keys."""
    keys, columns = np.array(scores, float)[:, None], np.array(values, float)[:, None]
    return float(dense_attention(np.ones((1, 1)), keys, columns, scale=1.0)[0].item())


def check_split(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Split explorer: weights, shares, answers, mean, error, the formula and the verdict."""
    per_key, per_rank, result = tables(fragment)
    sizes = [1] * 8 if state["split"] == "ones" else [int(n) for n in state["split"].split("-")]
    owners = [rank for rank, size in enumerate(sizes) for _ in range(size)]
    scores = split_facts.SCORES[state["scores"]]
    values = split_facts.VALUES[state["values"]]
    seen = [i for i in range(8) if state["scores"] != "future" or i <= 3]
    mine = [[i for i in seen if owners[i] == rank] for rank in range(len(sizes))]
    mass = [math.fsum(math.exp(scores[i]) for i in keys) for keys in mine]
    total = math.fsum(mass)
    answers = [softmax_answer([scores[i] for i in k], [values[i] for i in k]) for k in mine]
    seeing = [rank for rank, keys in enumerate(mine) if keys]
    say = [1 / len(seeing) if rank in seeing else 0.0 for rank in range(len(sizes))]
    exact = softmax_answer([scores[i] for i in seen], [values[i] for i in seen])
    mean = math.fsum(answers[rank] for rank in seeing) / len(seeing)

    assert list(per_key["rank"].values()) == [str(rank) for rank in owners]
    assert_row(per_key["value"], values)
    for i, text in enumerate(per_key["score"].values()):
        if i in seen:
            assert_shown(text, scores[i])
        else:
            assert text == "masked"
    weight = [math.exp(scores[i]) if i in seen else 0.0 for i in range(8)]
    assert_row(per_key["weight alone"], [w / (mass[owners[i]] or 1) for i, w in enumerate(weight)])
    assert_row(per_key["exact weight"], [w / total for w in weight])
    assert_row(per_rank["say in mean"], say)
    assert_row(per_rank["share"], [m / total for m in mass])
    for rank, text in enumerate(per_rank["output"].values()):
        if rank in seeing:
            assert_shown(text, answers[rank])
        else:
            assert text == "none"
    formula = math.fsum((say[r] - mass[r] / total) * answers[r] for r in range(len(sizes)))
    assert_row(result["result"], [mean, exact, mean - exact, formula])

    right = abs(mean - exact) < 1e-9
    equal = max(mass) - min(mass[r] for r in seeing) < 1e-9
    assert ("wrong" in caption) == (not right)
    assert ("every V" in caption) == equal
    assert ("accident" in caption) == (right and not equal)


def check_merge(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Merge stepper: states before and after, the chunk, both factors, and every answer."""
    per_key, summary, answers = tables(fragment)
    preset = merge_facts.PRESETS[state["preset"]]
    half = state["precision"] == "float16"
    dtype = {"float64": np.float64, "float32": np.float32, "float16": np.float16}
    scores = [float(dtype[state["precision"]](s)) for s in preset.scores]
    order = [0, 1, 2, 3] if state["order"] == "given" else [3, 2, 1, 0]
    step = min(state["step"], 4)
    keys = {r: [] if r in preset.hidden else [2 * r, 2 * r + 1] for r in order}
    before = [i for r in order[: max(step - 1, 0)] for i in keys[r]]
    chunk = keys[order[step - 1]] if step else []
    after = before + chunk
    room = {"relative": 2e-5}  # float32 states beside float64 references

    def state_of(members: list[int]) -> tuple[float, float, float]:
        top = max((scores[i] for i in members), default=-math.inf)
        weights = [math.exp(scores[i] - top) for i in members]
        weighted = (w * preset.values[i] for w, i in zip(weights, members, strict=True))
        return top, math.fsum(weights), math.fsum(weighted)

    top = state_of(after)[0]

    def factor(members: list[int]) -> float:
        return math.exp(state_of(members)[0] - top) if members else 0.0

    weights = [math.exp(scores[i] - top) if i in after else 0.0 for i in range(8)]
    for i, row in enumerate(per_key.values()):
        assert_row(row, [i // 2, scores[i], preset.values[i], weights[i]], **room)
    merged = summary.pop("merged")
    assert merged["factor"] == ""
    _assert_summary(merged, state_of(after))
    if 1 <= state["step"] <= 4:
        for members, name in ((before, "state so far"), (chunk, f"rank {order[step - 1]}")):
            row = summary.pop(name)
            assert_shown(row["factor"], factor(members))
            _assert_summary(row, state_of(members))
    assert not summary

    dense = softmax_answer([scores[i] for i in after], [preset.values[i] for i in after])
    shown = {name: cell["value"] for name, cell in answers.items()}
    assert shown["arrival, by rank"] == ", ".join(map(str, order))
    assert shown["precision of inputs"] == state["precision"]
    wide = "float64" if state["precision"] == "float64" else "float32"
    assert shown["precision of the state"] == wide
    assert shown["keys seen"] == str(len(after))
    assert_shown(shown["dense, same keys"], dense)
    assert_shown(shown["divided now"], dense, more=2**-11 * abs(dense) if half else 0.0)
    lse = top + math.log(math.fsum(weights)) if after else -math.inf
    assert_shown(shown["lse"], lse, **room)
    assert shown["difference"].startswith("rounding")
    _check_plain(state, [(scores[i], preset.values[i]) for i in after], shown)
    assert ("wrong" in caption) == (
        state["step"] == 5 and shown["sum without the maximum"] == "inf"
    )


def _assert_summary(row: dict[str, str], expected: tuple[float, float, float]) -> None:
    for name, value in zip(("max", "sum", "output"), expected, strict=True):
        assert_shown(row[name], value, relative=2e-5)


def _check_plain(
    state: dict[str, Any], pairs: list[tuple[float, float]], shown: dict[str, str]
) -> None:
    """The way without a maximum: finite in float64, inf and NaN where float32 overflows."""
    total = math.fsum(math.exp(s) for s, _ in pairs)
    output = math.fsum(math.exp(s) * v for s, v in pairs)
    largest = float(np.finfo(np.float32).max)
    answer = output / total if total else math.nan
    if state["precision"] != "float64" and any(math.exp(s) > largest for s, _ in pairs):
        total, output, answer = math.inf, math.inf, math.nan
    assert_shown(shown["sum without the maximum"], total, relative=2e-5)
    assert_shown(shown["output without the maximum"], output, relative=2e-5)
    assert_shown(shown["answer without the maximum"], answer, relative=2e-5)


def check_network(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Network lab: the scalar graph, its gradients, the prediction, and the two-chunk sum."""
    nodes, keys, sums, result = tables(fragment)
    x, w, step = state["x"], state["w"], state["step"]
    total = x * w - 0.5
    out = 1 / (1 + math.exp(-total))
    slope = math.exp(-total) / (1 + math.exp(-total)) ** 2
    expected = {"x": (x, 0), "w": (w, 0), "b": (-0.5, 0), "product": (x * w, 1)}
    expected |= {"sum": (total, 2), "sigmoid": (out, 3), "gradient of x": (slope * w, 4)}
    expected |= {"gradient of w": (slope * x, 4), "gradient of b": (slope, 4)}
    for name, (value, when) in expected.items():
        _revealed(nodes[name]["value"], value, step >= when)
    if step == 3 and state["guess"] != "none":
        low = float(state["guess"])
        assert ("right" in caption) == (low <= out < low + 0.2 or (low == 0.8 and out >= 0.8))
        assert ("wrong" in caption) != ("right" in caption)

    logs = {"chunk a": ([1, 2], [6, 0]), "chunk b": ([4, 1], [2, 6])}
    for name, (masses, values) in logs.items():
        assert [number(t) for t in keys[name]["values"].split(", ")] == values
        for text, mass in zip(keys[name]["scores"].split(", "), masses, strict=True):
            assert_shown(text, math.log(mass))
    rows = {
        "chunk a": ([math.log(2), 1.5, 3], 0.5, 1),
        "chunk b": ([math.log(4), 1.25, 3.5], 1, 2),
        "merged": ([math.log(4), 2, 5], None, 3),
    }
    for name, (numbers, factor, when) in rows.items():
        for head, value in zip(("max", "sum", "output"), numbers, strict=True):
            _revealed(sums[name][head], value, step >= when)
        if step >= 3 and factor is not None:
            assert_shown(sums[name]["factor"], factor)
        else:
            assert sums[name]["factor"] == ""
    dense = softmax_answer([math.log(n) for n in (1, 2, 4, 1)], [6, 0, 2, 6])
    for name in ("divided", "dense"):
        _revealed(result["result"][name], dense, step == 4)


def _revealed(text: str, value: float, known: bool) -> None:
    """A number that the cursor has reached, or a question mark."""
    if known:
        assert_shown(text, value)
    else:
        assert text == "?"


CHECKS = {
    "split-explorer": check_split,
    "merge-stepper": check_merge,
    "network-lab": check_network,
    "schedule-explorer": check_schedule,
    "laboratory": check_laboratory,
    "loss-explorer": check_averages,
    "merge-order": check_orders,
    "calculator": check_calculator,
    "bill-explorer": check_bill,
}
