"""Is the loss explorer's table true? Each way of averaging as a function, one loss nudged by one.

The weight of a token is what the result gains when its loss grows by 1: exact, since every way is
linear in the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

Losses = list[list[Fraction]]  # one list per rank


def descended(state: dict[str, Any]) -> Callable[[Losses], Fraction]:
    """The state's way from the losses of all tokens to the number that is descended."""

    def way(losses: Losses) -> Fraction:
        every = sum(len(own) for own in losses)
        ranks = [
            sum(own, Fraction(0)) / (len(own) if state["divisor"] == "own" else every)
            for own in losses
        ]
        result = sum(ranks, Fraction(0))
        if state["reduction"] == "mean":
            result /= len(ranks)
        return result * len(ranks) if state["scaled"] == "yes" else result

    return way


def nudged(way: Callable[[Losses], Fraction], losses: Losses, rank: int) -> Fraction:
    """What the result gains when the first token of a rank loses one more."""
    more = [list(own) for own in losses]
    more[rank][0] += 1
    return way(more) - way(losses)


def check_averages(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Weights, ratios, both losses and all verdicts, from the definition of each way."""
    root = ElementTree.fromstring(f"<div>{fragment}</div>")
    per_rank, losses, verdicts = (
        {row[0]: row[1:] for row in ([("".join(c.itertext())) for c in tr] for tr in t.iter("tr"))}
        for t in root.iter("table")
    )
    counts = [int(n) for n in state["labels"].split("-")]
    each = [2, 10, 6][: len(counts)]
    tokens = [[Fraction(loss)] * n for n, loss in zip(counts, each, strict=True)]
    assert per_rank["labels"] == [str(n) for n in counts]
    assert per_rank["loss of a token"] == [str(loss) for loss in each]
    flat = [loss for own in tokens for loss in own]
    fair = sum(flat, Fraction(0)) / len(flat)
    spoiled = state["divisor"] == "own" and 0 in counts
    shown = losses[""]
    assert shown == ["NaN" if spoiled else str(descended(state)(tokens)), str(fair)]
    if spoiled:
        assert set(per_rank["weight of a token"]) == {"NaN"} == set(per_rank["times the right one"])
        assert "divides 0 by 0" in caption
        assert {"".join(v) for v in list(verdicts.values())[1:]} == {"✗ wrong"}
        return
    times = []
    for rank, count in enumerate(counts):
        if count:
            weight = nudged(descended(state), tokens, rank)
            times.append(weight * len(flat))
            assert per_rank["weight of a token"][rank] == str(weight)
            assert per_rank["times the right one"][rank] == str(times[-1])
    straight, right = len(set(times)) == 1, set(times) == {1}
    wanted = {
        "loss that is descended": descended(state)(tokens) == fair,
        "direction of the gradient": straight,
        "plain gradient step": right,
        "update of Adam": straight,
    }
    for name, is_right in wanted.items():
        assert verdicts[name] == ["✓ right" if is_right else "✗ wrong"], name
    assert ("✓ right" in caption) == right
    assert ("for any labels" in caption) == (right and state["divisor"] == "all")
    assert ("equally many" in caption) == (right and state["divisor"] == "own")
    assert ("direction is right" in caption) == (straight and not right)
    assert ("another direction" in caption) == (not straight)
