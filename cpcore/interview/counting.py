"""The second way to the numbers of the bank: counts of events, by functions of plain numbers.

An expression can call them. They use the schedule, the ledger, layouts and labels, and no closed
form of `planner`. Small runs of the core are in `numerics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from cpcore.layouts import Layout, contiguous, per_document, striped, zigzag
from cpcore.ledger import ledger
from cpcore.loss import LossSum, mean_loss, next_token_labels
from cpcore.masks import Visibility
from cpcore.schedule import Event, schedule

LAYOUTS = {"contiguous": contiguous, "striped": striped, "zigzag": zigzag}


@cache
def _events(
    layout: str, seq_len: int, cp_size: int, causal: bool, window: int | None, protocol: str
) -> tuple[Layout, tuple[Event, ...]]:
    made = LAYOUTS[layout](seq_len, cp_size)
    rule = Visibility(causal=causal, window=window)
    return made, tuple(schedule(made, rule, protocol=protocol))


def _forward(
    layout: str, seq_len: int, cp_size: int, causal: bool, window: int | None
) -> Iterator[Event]:
    _, events = _events(layout, seq_len, cp_size, causal, window, "ring")
    return (event for event in events if event.phase == "forward")


def count_pairs(
    layout: str,
    seq_len: int,
    cp_size: int,
    *,
    rank: int | None = None,
    step: int | None = None,
    causal: bool = True,
    window: int | None = None,
) -> int:
    """Visible pairs of all ranks and steps, or of one rank, one step, or both.

    >>> [count_pairs("contiguous", 64, 4, rank=rank) for rank in range(4)]
    [136, 392, 648, 904]
    """
    events = _forward(layout, seq_len, cp_size, causal, window)
    return sum(
        event.pairs for event in events if rank in (None, event.rank) and step in (None, event.step)
    )


def busy_pairs(layout: str, seq_len: int, cp_size: int, step: int | None = None) -> int:
    """Pairs of the busiest rank at one causal step, or summed over all steps."""
    table = np.zeros((cp_size, cp_size), np.int64)
    for event in _forward(layout, seq_len, cp_size, True, None):
        table[event.step, event.rank] += event.pairs
    slowest = table.max(axis=1)
    return int(slowest.sum() if step is None else slowest[step])


def count_blocks(verdict: str, layout: str, seq_len: int, cp_size: int) -> int:
    """Blocks of a causal ring that are empty, full or partial, whole shards against each other."""
    events = _forward(layout, seq_len, cp_size, True, None)
    return sum(event.verdict == verdict for event in events)


def packed_busy(layout: str, lengths: Sequence[int], cp_size: int) -> int:
    """As `busy_pairs` over all steps, for packed documents; also for the layout per_document."""
    ids = np.repeat(np.arange(len(lengths)), lengths)
    if layout == "per_document":
        made = per_document(np.cumsum([0, *lengths]), cp_size)
    else:
        made = LAYOUTS[layout](len(ids), cp_size)
    table = np.zeros((cp_size, cp_size), np.int64)
    for event in schedule(made, Visibility(documents=ids), backward=False):
        table[event.step, event.rank] += event.pairs
    return int(table.max(axis=1).sum())


def most_padded(layout: str, seq_len: int, cp_size: int) -> int:
    """The most real tokens, padded at the end to `seq_len`, that leave some rank without any."""
    return max(int(own.min()) for own in LAYOUTS[layout](seq_len, cp_size).owned)


def useful_hops(seq_len: int, cp_size: int, window: int) -> int:
    """Steps after the first at which some rank of a contiguous causal ring sees a key."""
    events = _forward("contiguous", seq_len, cp_size, True, window)
    return len({event.step for event in events if event.step and event.pairs})


def tally(
    field: str,
    phase: str,
    lengths: Sequence[int],
    *,
    rank: int = 0,
    protocol: str = "ring",
    q_heads: int | None = None,
    kv_heads: int,
    head_dim: int,
    element_bytes: int = 2,
    grad_bytes: int | None = None,
) -> int:
    """One number of the ledger: a field of the row of `rank` in `phase`, full attention."""
    made = _layout(tuple(lengths))
    events = schedule(made, None, protocol=protocol)
    rows = ledger(
        events, made, q_heads=q_heads or kv_heads, kv_heads=kv_heads, head_dim=head_dim,
        element_bytes=element_bytes, grad_bytes=grad_bytes,
    )  # fmt: skip
    return int(sum(getattr(r, field) for r in rows if (r.rank, r.phase) == (rank, phase)))


def _layout(lengths: tuple[int, ...]) -> Layout:
    ends = np.cumsum([0, *lengths])
    return Layout(tuple(np.arange(a, b) for a, b in pairwise(ends)))


def loss_of(parts: Sequence[Sequence[float]]) -> float:
    """The loss of ranks that each have a sum and a count."""
    return float(mean_loss(LossSum(total, int(count)) for total, count in parts))


def late_labels(layout: str, seq_len: int, cp_size: int) -> int:
    """Labels that are wrong if each rank shifts its own shard, by comparing them."""
    made, ids = LAYOUTS[layout](seq_len, cp_size), np.arange(seq_len)
    right = made.shard(next_token_labels(ids), axis=0)
    late = [np.append(own[1:], -1) for own in made.shard(ids, axis=0)]
    return int(sum((a != b).sum() for a, b in zip(right, late, strict=True)))


COUNTED: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        busy_pairs, count_blocks, count_pairs, late_labels, loss_of, most_padded, packed_busy,
        tally, useful_hops,
    )
}  # fmt: skip
