"""Is the schedule explorer's table true? Layouts and masks from their definitions, no events.

A position belongs to a rank by one line of arithmetic, a pair is visible by a double loop over
positions, and where a block is at which step follows from the ring: one hop a step, clockwise.
"""

from __future__ import annotations

from functools import cache
from typing import Any

S = 48
DOCUMENT = [0] * 8 + [1] * 24 + [2] * 16


def owner_of(layout: str, position: int, ranks: int) -> int:
    """The rank that owns a position."""
    if layout == "striped":
        return position % ranks
    if layout == "contiguous":
        return next(r for r in range(ranks) if position < (r + 1) * S // ranks)
    piece = next(i for i in range(2 * ranks) if position < (i + 1) * S // (2 * ranks))
    return min(piece, 2 * ranks - 1 - piece)


def sees(visibility: str, i: int, j: int) -> bool:
    """May query i attend to key j?"""
    if visibility == "full":
        return True
    near = visibility != "window" or i - j < 12
    same = visibility != "packed" or DOCUMENT[i] == DOCUMENT[j]
    return j <= i and near and same


@cache
def work(layout: str, ranks: int, visibility: str) -> dict[tuple[int, int], tuple[int, int]]:
    """(rank of the query, owner of the key) -> visible pairs, all pairs."""
    found = {(r, o): (0, 0) for r in range(ranks) for o in range(ranks)}
    owner = [owner_of(layout, p, ranks) for p in range(S)]
    for i in range(S):
        for j in range(S):
            seen, size = found[owner[i], owner[j]]
            found[owner[i], owner[j]] = (seen + sees(visibility, i, j), size + 1)
    return found


def word(pairs: tuple[int, int]) -> str:
    """skip, full or partial."""
    return "skip" if pairs[0] == 0 else "full" if pairs[0] == pairs[1] else "partial"


def check_schedule(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Schedule explorer: every rank's turn, the ring as a whole, and the plan."""
    from tests.support.explorables import tables

    by_rank, whole, plan = tables(fragment)
    ranks, step = int(state["ranks"]), state["step"]
    blocks = work(state["layout"], ranks, state["visibility"])
    turns = [[blocks[r, (r - t) % ranks] for r in range(ranks)] for t in range(ranks)]
    back = state["direction"] == "backward"
    returning = back and ranks <= step <= 2 * ranks - 2
    finished = step >= (2 * ranks - 1 if back else ranks)
    computed = [[pairs for pairs, _ in turn] for turn in turns[: step + 1]]
    pairs_now = [0] * ranks if finished or returning else computed[-1]
    hops = min(step + 1, ranks - 1)  # every rank sends one shard at each step but the last
    if back and step >= ranks:
        hops = ranks - 1 + min(step - ranks + 1, ranks - 1)
    assert len(by_rank) == ranks
    for r in range(ranks):
        row = by_rank[str(r)]
        held, done = f"shard {(r - step) % ranks}", "none"
        if returning:
            held = f"gradient {(r - (step - ranks + 1)) % ranks}"
        elif finished:
            held = "none"
        else:
            done = word(turns[step][r])
        sends = returning or (not finished and step < ranks - 1)
        gets = returning or (not finished and step > 0)
        assert row == {
            "has": held,
            "computes": done,
            "pairs": str(pairs_now[r]),
            "waits": str(max(pairs_now) - pairs_now[r]),
            "sends to": str((r + 1) % ranks) if sends else "none",
            "receives from": str((r - 1) % ranks) if gets else "none",
            "pairs so far": str(sum(turn[r] for turn in computed)),
            "tokens sent so far": str(hops * S // ranks),
        }, (r, row)
    total, elapsed = sum(map(sum, computed)), sum(map(max, computed))
    assert list(whole["ring"].values()) == [
        str(n) for n in (total, elapsed, ranks * elapsed - total)
    ]
    _check_plan(state, blocks, plan)
    _check_caption(caption, pairs_now, finished, returning, elapsed, total / ranks)


def _check_plan(state: dict[str, Any], blocks: dict[Any, Any], plan: dict[str, Any]) -> None:
    ranks = int(state["ranks"])
    for r in range(ranks):
        row = dict(plan[f"queries of {r}"])
        mine = {p for p in range(S) if owner_of(state["layout"], p, ranks) == r}
        assert owned(row.pop("owns")) == mine
        assert row == {
            f"keys of {o}": f"{word(blocks[r, o])}, step {(r - o) % ranks}" for o in range(ranks)
        }


def owned(text: str) -> set[int]:
    """Positions written as runs such as 0–5, or as first, second … last."""
    if "\N{HORIZONTAL ELLIPSIS}" in text:
        head, last = text.split(" \N{HORIZONTAL ELLIPSIS} ")
        first, second = map(int, head.split(", "))
        return set(range(first, int(last) + 1, second - first))
    runs = [tuple(map(int, run.split("\N{EN DASH}"))) for run in text.split(", ")]
    return {p for a, b in runs for p in range(a, b + 1)}


def _check_caption(
    caption: str, pairs: list[int], finished: bool, returning: bool, elapsed: int, mean: float
) -> None:
    """The sentence names the right pace."""
    assert ("Finished" in caption) == finished
    assert ("Return" in caption) == returning
    if finished:
        assert f"took {elapsed} pairs" in caption
        assert f"would have taken {mean:.3f}".rstrip("0").rstrip(".") in caption
    elif not returning:
        waits = sum(max(pairs) - p for p in pairs)
        assert f"{max(pairs)} pairs" in caption
        assert ("none waits" in caption) == (waits == 0)
        assert waits == 0 or f"wait {waits} in all" in caption
