"""Exercises: what is visible in a block, decided by global positions."""

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from cpcore.exercises.bank.inputs import Array
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def at(*numbers: int) -> Array:
    """Global positions."""
    return np.array(numbers, dtype=int)


def _verdict(seen: list[bool]) -> str:
    return "empty" if not any(seen) else "full" if all(seen) else "partial"


def causal_by_pairs(q_pos: Array, k_pos: Array) -> str:
    """Pair by pair."""
    return _verdict([bool(j <= i) for i, j in product(q_pos, k_pos)])


def window_by_pairs(q_pos: Array, k_pos: Array, window: int) -> str:
    """Pair by pair."""
    return _verdict([bool(i - window < j <= i) for i, j in product(q_pos, k_pos)])


def _owned(seq_len: int, cp_size: int) -> list[Array]:
    """Zigzag, by hand: an early and a late piece per rank."""
    pieces = np.array_split(np.arange(seq_len), 2 * cp_size)
    return [np.concatenate([pieces[r], pieces[-1 - r]]) for r in range(cp_size)]


def _zigzag_blocks() -> Iterator[Args]:
    for cp_size in (2, 3):
        yield from product(_owned(4 * cp_size, cp_size), repeat=2)


def _contiguous_blocks() -> Iterator[Args]:
    yield from product([at(0, 1), at(2, 3), at(4, 5)], repeat=2)


def _edges() -> Iterator[Args]:
    yield at(3), at(3)
    yield at(3), at(4)
    yield at(3, 4), at(2, 3)
    yield at(3, 4), at(4, 5)


BLOCK_VERDICT = Exercise(
    name="block_verdict",
    title="Skip, full or partial",
    level="warm-up",
    minutes=10,
    chapter="04_causal_ring.ipynb",
    hints=(
        "Which single pair is the last to become hidden, and which is the first? Think of the "
        "earliest and latest query and of the earliest and latest key.",
        "Nothing is visible exactly if even the latest query lies before the earliest key. "
        "Everything is visible exactly if even the earliest query is not before the latest key.",
        "Compare min and max of the positions, never the first and last entry: the order of "
        "storage says nothing. Ask about empty arrays first, since they have no minimum.",
    ),
    examples=(
        Example("a shard's own block", lambda: (at(2, 3), at(2, 3))),
        Example("a block of the past", lambda: (at(4, 5), at(2, 3))),
        Example("a block of the future", lambda: (at(0, 1), at(2, 3))),
    ),
    claims=(
        Claim("Contiguous shards", _contiguous_blocks),
        Claim("Zigzag shards hold two places of the sequence", _zigzag_blocks),
        Claim("A query sees its own position", _edges),
        Claim("The order of storage says nothing",
              lambda: [(at(5, 0), at(3, 2)), (at(4, 5), at(2, 6)), (at(7, 2), at(1, 6, 0))]),
        Claim("A block without queries or keys is empty",
              lambda: [(at(), at(1)), (at(1), at()), (at(), at())]),
    ),
    oracle=causal_by_pairs,
    wrong=(
        Wrong(
            "first positions",
            "only the first positions of the two shards are compared",
            (
                ("q_pos.max() < k_pos.min()", "q_pos[0] < k_pos[0]"),
                ("q_pos.min() >= k_pos.max()", "q_pos[0] > k_pos[0]"),
            ),
            passes_run=True,
            seen_in="ring-flash-attention#54",
        ),
        Wrong(
            "stored order",
            "first and last entry are taken for the earliest and latest position",
            (
                ("q_pos.max() < k_pos.min()", "q_pos[-1] < k_pos[0]"),
                ("q_pos.min() >= k_pos.max()", "q_pos[0] >= k_pos[-1]"),
            ),
            passes_run=True,
        ),
        Wrong(
            "empty shard",
            "a shard without tokens is not expected",
            (("if len(q_pos) == 0 or len(k_pos) == 0:", "if q_pos is None:"),),
            passes_run=True,
            seen_in="EasyContext#47",
        ),
        Wrong(
            "not itself",
            "a query does not see its own position",
            (("q_pos.max() < k_pos.min()", "q_pos.max() <= k_pos.min()"),
             ("q_pos.min() >= k_pos.max()", "q_pos.min() > k_pos.max()")),
            passes_run=True,
        ),
    ),
)  # fmt: skip


def _windows() -> Iterator[Args]:
    for window in (1, 2, 3, 9):
        for block in _contiguous_blocks():
            yield *block, window


def _zigzag_windows() -> Iterable[Args]:
    shards = [(q, k, n) for q, k in product(_owned(12, 3), repeat=2) for n in (2, 3, 8)]
    return [*shards, (at(10, 11), at(0, 1), 3)]  # which tells a hole from no window at all


WINDOW_VERDICT = Exercise(
    name="window_verdict",
    title="The verdict under a window",
    level="core",
    minutes=10,
    chapter="05_borders.ipynb",
    hints=(
        "Let i − j be the distance of a key behind a query. Between which two numbers must it lie "
        "to be visible, if the window counts the query's own position?",
        "Four extreme positions bound i − j, but they do not decide it: a zigzag shard has a hole "
        "in the middle, into which the whole window may fall. Look at all pairs.",
        "Build the (Q, K) array of distances, then one boolean array of what is visible. `any` "
        "and `all` of it give the verdict; mind that `all` of nothing is True.",
    ),
    examples=(
        Example("a window of 2 over the own shard", lambda: (at(2, 3), at(2, 3), 2)),
        Example("the shard before", lambda: (at(2, 3), at(0, 1), 2)),
        Example("a shard further back", lambda: (at(4, 5), at(0, 1), 2)),
    ),
    claims=(
        Claim("Contiguous shards, any window", _windows),
        Claim("Zigzag shards: the window may fall into the hole between two pieces",
              _zigzag_windows),
        Claim("A block without queries or keys is empty",
              lambda: [(at(), at(1), 3), (at(1), at(), 3)]),
    ),
    oracle=window_by_pairs,
    large=lambda: (np.arange(256), np.arange(256), 64),
    wrong=(
        Wrong(
            "no window",
            "the window is ignored and everything in the past is visible",
            (("(behind >= 0) & (behind < window)", "behind >= 0"),),
            seen_in="accelerate#4177",
        ),
        Wrong(
            "one too many",
            "the window counts the keys before the query and the query itself on top",
            (("behind < window", "behind <= window"),),
            passes_run=True,
        ),
        Wrong(
            "both sides",
            "the future within the window is visible",
            (("(behind >= 0) & (behind < window)", "abs(behind) < window"),),
        ),
        Wrong(
            "extremes only",
            "only the four extreme positions are asked, and a hole between pieces is overlooked",
            (
                ("    if not visible.any():",
                 "    least, most = behind.min(initial=0), behind.max(initial=-1)\n"
                 "    if behind.size:\n        least = behind.min()\n"
                 "    if most < 0 or least >= window:"),
                ("visible.all()", "least >= 0 and most < window"),
            ),
            passes_run=True,
        ),
        Wrong(
            "all of nothing",
            "a block without queries counts as full, since `all` of nothing is True",
            (("    if not visible.any():", "    if visible.size and not visible.any():"),),
            passes_run=True,
            seen_in="pytorch#159706",
        ),
    ),
)  # fmt: skip

EXERCISES = (BLOCK_VERDICT, WINDOW_VERDICT)
