"""Is the laboratory's table true? Every number again by plain loops and finite sums.

Only the stated inputs are read. Masks come from a double loop, softmax and gradients from `math`,
one query at a time; the faults are rebuilt from their description.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import chain, product
from typing import Any

from cpcore.ui.lab_facts import INPUTS

Q, K, V, DOUT = (x.tolist() for x in INPUTS.values())
N, SCALE = 5, 1 / math.sqrt(2)
ALL = list(range(N))
Pair = list[float]
Block = tuple[int, int, tuple[int, ...]]  # rank, owner, positions of the keys


def shards(split: str) -> list[list[int]]:
    """Positions of both ranks."""
    first = int(split[0])
    return [ALL[:first], ALL[first:]]


def pieces(split: str, block: str, owner: int) -> list[tuple[int, ...]]:
    """An owner's keys, cut."""
    mine = shards(split)[owner]
    size = N if block == "whole" else int(block)
    return [tuple(mine[a : a + size]) for a in range(0, len(mine), size)]


def sees(visibility: str, i: int, j: int) -> bool:
    """May query i attend to key j?"""
    return visibility == "full" or (j <= i and not (visibility == "empty-row" and i == 3))


@cache
def seen_in(state: tuple[str, ...], rank: int, keys: tuple[int, ...]) -> dict[int, list[int]]:
    """The keys of a block that each query of a rank sees on this path."""
    split, _, visibility, path = state
    found = {}
    for i in shards(split)[rank]:
        found[i] = [j for j in keys if sees(visibility, *_numbers(split, path, i, j))]
    return found


def _numbers(split: str, path: str, i: int, j: int) -> tuple[int, int]:
    """The positions that the mask is asked about: local masks count from 0 on each rank."""
    if path != "local-masks":
        return i, j
    first = int(split[0])
    return i - first * (i >= first), j - first * (j >= first)


def dot(a: Pair, b: Pair) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def softmax(i: int, keys: list[int]) -> tuple[float, float, dict[int, float]]:
    """Maximum, sum of exponentials relative to it, and probabilities."""
    scores = {j: dot(Q[i], K[j]) * SCALE for j in keys}
    top = max(scores.values(), default=-math.inf)
    total = math.fsum(math.exp(s - top) for s in scores.values())
    return top, total, {j: math.exp(s - top) / total for j, s in scores.items()}


def answer(probs: dict[int, float]) -> Pair:
    return [math.fsum(p * V[j][c] for j, p in probs.items()) for c in (0, 1)]


def gradients(i: int, probs: dict[int, float], dout: Pair) -> tuple[Pair, dict[int, Any]]:
    """dQ of one query, and what it adds to (dK, dV) of each key: the softmax Jacobian in full."""
    dprobs = {j: dot(dout, V[j]) for j in probs}
    mean = math.fsum(probs[j] * dprobs[j] for j in probs)
    dscores = {j: probs[j] * (dprobs[j] - mean) * SCALE for j in probs}
    dq = [math.fsum(d * K[j][c] for j, d in dscores.items()) for c in (0, 1)]
    return dq, {j: ([dscores[j] * x for x in Q[i]], [probs[j] * x for x in dout]) for j in probs}


@cache
def solved(state: tuple[str, ...]) -> tuple[dict[str, list[Pair]], dict[tuple[int, int], Any]]:
    """Results of a path, and what each query adds to each key's gradients."""
    split, block, _, path = state
    out, dq = [[0.0, 0.0] for _ in ALL], [[0.0, 0.0] for _ in ALL]
    shares: dict[tuple[int, int], Any] = {}
    for rank in (0, 1):
        for i in shards(split)[rank]:
            groups = [p for owner in (0, 1) for p in pieces(split, block, owner)]
            keys = [seen_in(state, rank, p)[i] for p in groups]
            # the mean has one softmax per block that is seen, all others one over everything
            keys = [x for x in keys if x] if path == "mean" else [list(chain(*keys))]
            for mine in filter(None, keys):
                probs = softmax(i, mine)[2]
                part, share = gradients(i, probs, [x / N / len(keys) for x in DOUT[i]])
                for c in (0, 1):
                    out[i][c] += answer(probs)[c] / len(keys)
                    dq[i][c] += part[c]
                shares |= {(i, j): both for j, both in share.items()}
    first = int(split[0])
    arrives = {(i, j): x for (i, j), x in shares.items() if not (path == "lost" and i >= first > j)}
    dk, dv = (
        [
            [math.fsum(x[w][c] for (_, j), x in arrives.items() if j == k) for c in (0, 1)]
            for k in ALL
        ]
        for w in (0, 1)
    )
    return {"output": out, "dQ": dq, "dK": dk, "dV": dv}, shares


def events(split: str, block: str) -> list[tuple[str, Block]]:
    """What the cursor visits: own block first, rank by rank; then replay, then the return."""
    order = [
        (rank, owner, keys)
        for hop, rank in product((0, 1), (0, 1))
        for owner in [(rank - hop) % 2]
        for keys in pieces(split, block, owner)
    ]
    away = [b for b in order if b[0] != b[1]]
    return (
        [("forward", b) for b in order]
        + [("replay", b) for b in order]
        + [("return", b) for b in away]
    )


def _float(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def pair(text: str) -> Pair:
    """Both numbers of a cell, without its mark."""
    numbers = text.replace("\N{MINUS SIGN}", "-").split(")")[0].strip("(").split(", ")
    return [float(x) for x in numbers]


def close(text: str, expected: Pair) -> None:
    """Three decimals of both."""
    for got, want in zip(pair(text), expected, strict=True):
        assert abs(got - want) <= 0.0006, (text, expected)


def check_laboratory(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Laboratory: event, results beside the reference, headline, ledger and inputs."""
    from tests.support.explorables import tables

    event, final, headline, *costs, inputs = tables(fragment)
    key = tuple(str(state[n]) for n in ("split", "block", "visibility", "path"))
    reference = solved((*key[:3], "correct"))[0]
    results = solved(key)[0]
    largest = _check_final(final, results, reference)
    row = headline["largest difference"]
    for name, value in largest.items():
        shown = row[name]
        assert (shown == "rounding only") == (value < 1e-12), name
        assert value < 1e-12 or abs(float(shown) / value - 1) < 0.05, (shown, value)
    for head, found in (("loss", results), ("reference loss", reference)):
        loss = math.fsum(dot(DOUT[i], found["output"][i]) for i in ALL) / N
        assert abs(_float(row[head]) - loss) <= 0.0006
    right = max(largest.values()) < 1e-12
    assert ("right" in caption, "wrong" in caption) == (right, not right)
    _check_event(state, key, caption, event)
    _check_ledger(key, costs)
    for p in ALL:
        for head, numbers in zip(("q", "k", "v", "dout"), (Q, K, V, DOUT), strict=True):
            assert pair(inputs[f"position {p}"][head]) == numbers[p]


def _check_final(final: Any, results: Any, reference: Any) -> dict[str, float]:
    """Every result and its mark; returns the largest difference of each."""
    largest = dict.fromkeys(results, 0.0)
    assert len(final) == 2 * N
    for p, name in product(ALL, results):
        mine, right = results[name][p], reference[name][p]
        off = max(abs(a - b) for a, b in zip(mine, right, strict=True))
        largest[name] = max(largest[name], off)
        text = final[f"position {p}"][name]
        close(text, mine)
        assert ("\N{BALLOT X}" in text) == (off > 1e-12), (p, name, text)
        close(final[f"{p}, reference"][name], right)
    return largest


def _check_event(state: dict[str, Any], key: tuple[str, ...], caption: str, shown: Any) -> None:
    every = events(*key[:2])
    place = min(state["event"], len(every) - 1)
    phase, (rank, owner, keys) = every[place]
    assert f"Event {place} of {len(every) - 1}, {phase}: rank {rank}" in caption
    rows = [list(row.values()) for row in shown.values()]
    if phase == "forward":
        assert list(shown) == [f"query {i}" for i in shards(key[0])[rank]]
        for i, row in zip(shards(key[0])[rank], rows, strict=True):
            _check_query(key, every[: place + 1], i, row)
        return
    lost = phase == "return" and key[3] == "lost" and rank == 1
    names = {"replay": "key {}, share of rank {}", "return": "gradient of key {}, from rank {}"}
    assert list(shown) == [names[phase].format(j, rank) for j in keys]
    assert ("lost" in caption) == lost
    shares = solved(key)[1]
    for j, row in zip(keys, rows, strict=True):
        mine = [i for i in shards(key[0])[rank] if j in seen_in(key, rank, keys)[i]]
        target = "queries " + (", ".join(map(str, mine)) or "none")
        if phase == "return":
            target = f"to rank {owner}" + (", lost: 0 arrives" if lost else "")
        assert row[0] == target
        assert row[2] == "none"
        for text, which in ((row[1], 0), (row[3], 1)):
            close(text, [math.fsum(shares[i, j][which][c] for i in mine) for c in (0, 1)])


def _check_query(key: tuple[str, ...], visited: Any, i: int, row: list[str]) -> None:
    """A query's state after the blocks that its rank has visited."""
    _, (rank, _, keys) = visited[-1]
    met = [seen_in(key, rank, b[2])[i] for _, b in visited if b[0] == rank]
    now = seen_in(key, rank, keys)[i]
    assert row[0] == "keys " + (", ".join(map(str, now)) or "none")
    top, total, probs = softmax(i, now if key[3] == "mean" else list(chain(*met)))
    prefix = answer(probs)
    if key[3] == "mean":
        alone = [answer(softmax(i, x)[2]) for x in met if x]
        prefix = [math.fsum(a[c] for a in alone) / max(1, len(alone)) for c in (0, 1)]
    shown_top = _float(row[1])
    assert shown_top == top or abs(shown_top - top) <= 0.0006
    assert abs(float(row[2]) - total) <= 0.0006
    close(row[3], prefix)


def _check_ledger(key: tuple[str, ...], costs: list[Any]) -> None:
    """K and V are 4 elements a position, 8 bytes each; memory by its definition, rank by rank."""
    traffic, resident, apart = costs
    split, block = key[:2]
    for rank in (0, 1):
        own, other = (len(shards(split)[r]) for r in (rank, 1 - rank))
        mine, theirs = (len(pieces(split, block, r)) for r in (rank, 1 - rank))
        for name, sent, got, messages in (
            ("forward KV", own, other, mine),
            ("replayed KV", own, other, mine),
            ("returned gradients", other, own, theirs),
        ):
            numbers = (4 * sent, 4 * got, 32 * sent, 32 * got, messages)
            assert list(traffic[f"rank {rank}, {name}"].values()) == [str(n) for n in numbers]
        remote = 4 * max(map(len, pieces(split, block, 1 - rank)))
        returned = 4 * max(len(p) for r in (0, 1) for p in pieces(split, block, r))
        correct = (*key[:3], "correct")
        tile = max(
            len(p)
            for owner in (0, 1)
            for p in pieces(split, block, owner)
            if any(seen_in(correct, rank, p).values())
        )
        _sizes(resident[f"rank {rank}"], (6 * own, remote, 4 * own))
        _sizes(
            apart[f"rank {rank}"],
            (tile * own, 2 * own, own, 6 * own, remote + 2 * returned),
        )


def _sizes(row: dict[str, str], elements: tuple[int, ...]) -> None:
    assert list(row.values()) == [f"{n} ({8 * n} B)" for n in elements]
