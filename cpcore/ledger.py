"""What the events cost: tokens, elements and bytes moved, and what each rank must hold for it.

Owns the fold over events. Traffic is counted from the events alone. Residency counts one sequence
of one batch entry; workspace, output, lse, gradients and buffers are kept apart, because none of
them follows from the protocol alone.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.event_checks import check_events
from cpcore.layouts import Layout
from cpcore.schedule import Event


class LedgerRow(NamedTuple):
    """One rank in one phase; in phase "resident" the traffic is 0 and the rest is filled.

    messages counts sends from rank to rank, each piece of a shard cut by `max_block` being one.
    collectives counts the library calls that stand for them.
    remote_block: the most foreign keys and values in use at once. online_state: output, sum and max
    of every row. workspace: the scores of the largest block, not cut into tiles. buffers: a second
    remote block, received while one is in use (none after a collective, which has brought all), and
    one message of gradients each way.

    Units: qkv … buffers in elements of one sequence; resident_bytes their total in bytes.
    """

    rank: int
    phase: str
    tokens_sent: int = 0
    tokens_received: int = 0
    elements_sent: int = 0
    elements_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    messages: int = 0
    collectives: int = 0
    qkv: int = 0
    remote_block: int = 0
    online_state: int = 0
    workspace: int = 0
    output: int = 0
    lse: int = 0
    gradients: int = 0
    buffers: int = 0
    resident_bytes: int = 0


class _Sizes(NamedTuple):
    """Elements per token and row, and bytes per element of each kind of array."""

    q_heads: int
    q_width: int
    kv_width: int
    value_dim: int
    kv_bytes: int
    grad_bytes: int
    state_bytes: int


def ledger(
    events: Iterable[Event],
    layout: Layout,
    *,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    element_bytes: int = 8,
    grad_bytes: int | None = None,
    state_bytes: int | None = None,
) -> list[LedgerRow]:
    """Traffic per rank and phase, then one row per rank of what it holds, phase "resident".

    One token is kv_heads · (head_dim + value_dim) elements, in the stream of keys and values
    (`element_bytes` each) and in that of their gradients (`grad_bytes`, default the same). Running
    state, lse and scores have `state_bytes`. No closed form is used: all is counted from events.

    Units: elements and bytes are of one sequence; multiply by the batch.
    Raises: ValueError for a size below 1, heads that do not group, or events that name ranks or
        keys which the layout does not have. A part of a schedule is counted as what it is.

    >>> from cpcore import from_lengths as cut, schedule
    >>> rows = ledger(schedule(cut([2, 3]), None), cut([2, 3]), q_heads=1, kv_heads=1, head_dim=2)
    >>> [(row.rank, row.phase, row.elements_sent) for row in rows][2:6]
    [(0, 'replay', 8), (1, 'replay', 12), (0, 'return', 12), (1, 'return', 8)]
    """
    # As Python's integers: products of numpy's small ones would wrap around.
    q_heads, kv_heads = whole_number("q_heads", q_heads, 1), whole_number("kv_heads", kv_heads, 1)
    head_dim = whole_number("head_dim", head_dim, 1)
    value_dim = whole_number("value_dim", head_dim if value_dim is None else value_dim, 1)
    if q_heads % kv_heads:
        raise expected("kv_heads", f"a divisor of q_heads = {q_heads}", kv_heads)
    kv = whole_number("element_bytes", element_bytes, 1)
    grad = whole_number("grad_bytes", kv if grad_bytes is None else grad_bytes, 1)
    state = whole_number("state_bytes", kv if state_bytes is None else state_bytes, 1)
    kv_width = kv_heads * (head_dim + value_dim)
    sizes = _Sizes(q_heads, q_heads * head_dim, kv_width, value_dim, kv, grad, state)
    turns = _turns(events, layout)
    ranks = range(layout.cp_size)
    traffic = [_traffic(turns, phase, rank, sizes) for phase, rank in product(turns, ranks)]
    return traffic + [_resident(turns, rank, layout.lengths[rank], sizes) for rank in ranks]


def _turns(events: Iterable[Event], layout: Layout) -> dict[str, list[list[Event]]]:
    """The events of each phase that occurs, rank by rank."""
    turns: dict[str, list[list[Event]]] = {}
    for event in check_events(events, layout):
        turns.setdefault(event.phase, [[] for _ in layout.owned])[event.rank].append(event)
    return turns


def _traffic(turns: dict[str, list[list[Event]]], phase: str, rank: int, of: _Sizes) -> LedgerRow:
    mine = turns[phase][rank]
    sent, received = sum(e.sent_tokens for e in mine), sum(e.received_tokens for e in mine)
    element = of.grad_bytes if phase == "return" else of.kv_bytes
    return LedgerRow(
        rank,
        phase,
        tokens_sent=sent,
        tokens_received=received,
        elements_sent=sent * of.kv_width,
        elements_received=received * of.kv_width,
        bytes_sent=sent * of.kv_width * element,
        bytes_received=received * of.kv_width * element,
        messages=sum(e.send_to is not None for e in mine),
        collectives=int(any(e.collective for e in mine)),
    )


def _resident(turns: dict[str, list[list[Event]]], rank: int, own: int, of: _Sizes) -> LedgerRow:
    by_phase = {phase: ranks[rank] for phase, ranks in turns.items()}
    forward, replay = by_phase.get("forward", []), by_phase.get("replay", [])
    arriving = [[event.received_tokens for event in phase] for phase in (forward, replay)]
    gathered = any(event.collective for event in (*forward, *replay))
    remote = max(sum(tokens) if gathered else max(tokens, default=0) for tokens in arriving)
    tiles = [e.key_stop - e.key_start for e in (*forward, *replay) if e.verdict != "empty"]
    returning = by_phase.get("return", [])
    message = max((max(e.sent_tokens, e.received_tokens) for e in returning), default=0)
    rows = own * of.q_heads
    parts = (
        ("qkv", own * (of.q_width + of.kv_width), of.kv_bytes),
        ("remote_block", remote * of.kv_width, of.kv_bytes),
        ("online_state", rows * (of.value_dim + 2), of.state_bytes),
        ("workspace", rows * max(tiles, default=0), of.state_bytes),
        ("output", rows * of.value_dim, of.kv_bytes),
        ("lse", rows, of.state_bytes),
        ("gradients", own * (of.q_width + of.kv_width) if replay else 0, of.grad_bytes),
        ("buffers", 0 if gathered else remote * of.kv_width, of.kv_bytes),
        ("buffers", 2 * message * of.kv_width, of.grad_bytes),
    )
    held: Counter[str] = Counter()
    for name, elements, _ in parts:
        held[name] += elements
    return LedgerRow(
        rank, "resident", **held, resident_bytes=sum(n * element for _, n, element in parts)
    )
