"""What the events cost: tokens, elements and bytes moved, and what each rank must hold for it.

Owns the fold over events. Traffic is counted from the events alone. Residency counts one sequence
of one batch entry; workspace, output, lse, gradients and buffers are kept apart, because none of
them follows from the protocol alone.
"""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from cpcore.checks import whole_number
from cpcore.layouts import Layout
from cpcore.schedule import Event

STATE_FIELDS = ("online_state", "workspace", "lse")


class LedgerRow(NamedTuple):
    """One rank in one phase; in phase "resident" the traffic is 0 and the rest is filled.

    messages counts sends from rank to rank, collectives the library calls that stand for them.
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
    state, lse and scores have `state_bytes`. Nothing here is a formula: all is counted from events.

    Units: elements and bytes are of one sequence; multiply by the batch.
    Raises: ValueError for a size below 1.
    """
    value_dim = head_dim if value_dim is None else value_dim
    sizes = {"q_heads": q_heads, "kv_heads": kv_heads, "head_dim": head_dim, "value_dim": value_dim}
    for name, size in sizes.items():
        whole_number(name, size, 1)
    kv_bytes = whole_number("element_bytes", element_bytes, 1)
    stream_bytes = {
        "kv": kv_bytes,
        "grad_kv": whole_number("grad_bytes", kv_bytes if grad_bytes is None else grad_bytes, 1),
    }
    state = whole_number("state_bytes", kv_bytes if state_bytes is None else state_bytes, 1)
    events = list(events)
    width = kv_heads * (head_dim + value_dim)
    rows = _traffic(events, layout, width, stream_bytes)
    for rank, own in enumerate(layout.lengths):
        mine = [event for event in events if event.rank == rank]
        held = _held(mine, own, q_heads, width, head_dim, value_dim)
        per_field = dict.fromkeys(held, kv_bytes) | dict.fromkeys(STATE_FIELDS, state)
        per_field["gradients"] = stream_bytes["grad_kv"]
        total = sum(elements * per_field[name] for name, elements in held.items())
        rows.append(LedgerRow(rank, "resident", **held, resident_bytes=total))
    return rows


def _traffic(
    events: list[Event], layout: Layout, width: int, stream_bytes: dict[str, int]
) -> list[LedgerRow]:
    """One row per rank and phase that occurs."""
    rows = []
    for phase, rank in product(dict.fromkeys(e.phase for e in events), range(layout.cp_size)):
        mine = [e for e in events if e.phase == phase and e.rank == rank]
        sent, received = sum(e.sent_tokens for e in mine), sum(e.received_tokens for e in mine)
        element = stream_bytes["grad_kv" if phase == "return" else "kv"]
        rows.append(
            LedgerRow(
                rank, phase, sent, received, sent * width, received * width,
                sent * width * element, received * width * element,
                messages=sum(e.send_to is not None for e in mine),
                collectives=int(any(e.collective for e in mine)),
            )
        )  # fmt: skip
    return rows


def _held(
    mine: list[Event], own: int, q_heads: int, width: int, head_dim: int, value_dim: int
) -> dict[str, int]:
    """Elements that one rank holds, by field of the resident row."""
    arriving = [e.received_tokens for e in mine if e.phase == "forward"]
    gathered = any(e.collective for e in mine)
    remote = sum(arriving) if gathered else max(arriving, default=0)
    returned = [(e.sent_tokens, e.received_tokens) for e in mine if e.phase == "return"]
    sums = max((max(sent, received) for sent, received in returned), default=0)
    backward = any(e.phase == "replay" for e in mine)
    return {
        "qkv": own * (q_heads * head_dim + width),
        "remote_block": remote * width,
        "online_state": own * q_heads * (value_dim + 2),
        "workspace": own * q_heads * max((e.key_stop - e.key_start for e in mine), default=0),
        "output": own * q_heads * value_dim,
        "lse": own * q_heads,
        "gradients": own * (q_heads * head_dim + width) if backward else 0,
        "buffers": (0 if gathered else remote * width) + 2 * sums * width,
    }
