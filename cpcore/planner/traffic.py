"""What one rank sends and receives for one attention, in closed form, protocol by protocol.

Owns elements, bytes and messages per phase for every protocol of `schedule`; each equals the
ledger's count of the events (tested). Leaves out all-to-all by heads (`heads`) and time
(`overlap`). One sequence, one layer; multiply by the batch and the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.shapes import grouped_heads

PROTOCOLS = ("ring", "ring_full_return", "direct", "all_gather")


class Traffic(NamedTuple):
    """One rank in one phase. bytes_sent = elements_sent · bytes per element, and so on."""

    phase: str
    elements_sent: int
    elements_received: int
    bytes_sent: int
    bytes_received: int
    messages: int
    collectives: int


def shard_lengths(seq_len: int, cp_size: int) -> tuple[int, ...]:
    """Tokens per rank of the contiguous layout: at most one apart, the later ranks hold more.

    Raises: ValueError for a negative length or no rank.

    >>> shard_lengths(7, 3)
    (2, 2, 3)
    """
    whole_number("seq_len", seq_len, 0)
    whole_number("cp_size", cp_size, 1)
    return tuple((r + 1) * seq_len // cp_size - r * seq_len // cp_size for r in range(cp_size))


def attention_traffic(
    lengths: Sequence[int],
    rank: int,
    protocol: str,
    *,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    element_bytes: int = 2,
    grad_bytes: int | None = None,
) -> tuple[Traffic, Traffic, Traffic]:
    """Forward, replay and return of one rank that shares a sequence with `lengths`.

    Forward and replay: a rank receives every foreign token once. On a ring it sends on all but
    the shard of its successor, otherwise its own shard R - 1 times. Return: on a ring every
    foreign gradient passes through it once (with a full return its own as well); otherwise it
    sends every foreign one and receives its own from R - 1 others.

    Units: elements and bytes of one sequence in one layer; `lengths` in tokens.
    Raises: ValueError for an unknown protocol, a rank that is not there, or sizes below 1.
    """
    ranks, width = _ranks(lengths), _kv_width(kv_heads, head_dim, value_dim)
    mine = whole_number("rank", rank, 0)
    if mine >= ranks:
        raise expected("rank", f"below {ranks}, one of lengths", rank)
    if protocol not in PROTOCOLS:
        raise expected("protocol", f"one of {', '.join(PROTOCOLS)}", repr(protocol))
    element = whole_number("element_bytes", element_bytes, 1)
    grad = element if grad_bytes is None else whole_number("grad_bytes", grad_bytes, 1)
    every, own = sum(lengths), lengths[mine]
    after, before = lengths[(mine + 1) % ranks], lengths[(mine - 1) % ranks]
    ring = protocol.startswith("ring")
    called = int(protocol == "all_gather" and ranks > 1)

    def row(phase: str, sent: int, received: int, messages: int, size: int) -> Traffic:
        out, into = sent * width, received * width
        return Traffic(phase, out, into, out * size, into * size, messages, called)

    out = every - after if ring else (ranks - 1) * own
    there = [row(phase, out, every - own, ranks - 1, element) for phase in ("forward", "replay")]
    if protocol == "ring_full_return" and ranks > 1:
        home = row("return", every, every, ranks, grad)
    elif ring:
        home = row("return", every - own, every - before, ranks - 1, grad)
    else:
        home = row("return", every - own, (ranks - 1) * own, ranks - 1, grad)
    return there[0], there[1], home


class Residency(NamedTuple):
    """Elements that one rank holds, named as in a ledger row; their total in bytes."""

    qkv: int
    remote_block: int
    online_state: int
    workspace: int
    output: int
    lse: int
    gradients: int
    buffers: int
    resident_bytes: int


def residency(
    lengths: Sequence[int],
    rank: int,
    protocol: str,
    *,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    element_bytes: int = 2,
    grad_bytes: int | None = None,
    state_bytes: int | None = None,
) -> Residency:
    """What a rank holds during full attention, forward and backward, whole blocks as messages.

    An all-gather holds all foreign keys and values at once, every other protocol the largest
    block in use and, as a buffer, the one arriving. Workspace is the untiled tile of scores; a
    kernel that tiles needs less, and under a mask a skipped block needs none.

    Units: elements of one sequence in one layer.
    Raises: ValueError as `attention_traffic`, and for heads that do not group.
    """
    traffic = attention_traffic(
        lengths, rank, protocol, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim,
        element_bytes=element_bytes, grad_bytes=grad_bytes,
    )  # fmt: skip  # for its checks, and the gathered tokens
    grouped_heads(q_heads, kv_heads)
    width, v_dim = _kv_width(kv_heads, head_dim, value_dim), value_dim or head_dim
    grad = element_bytes if grad_bytes is None else grad_bytes
    state = whole_number("state_bytes", element_bytes if state_bytes is None else state_bytes, 1)
    own = lengths[rank]
    others = [n for r, n in enumerate(lengths) if r != rank]
    gathered = protocol == "all_gather"
    remote = traffic[0].elements_received if gathered else max(others, default=0) * width
    returned = max(lengths) if len(lengths) > 1 else 0
    received = 0 if gathered else remote
    homeward = 2 * returned * width
    qkv, rows = own * (q_heads * head_dim + width), own * q_heads
    kept = qkv + remote + rows * v_dim + received
    kept_state = rows * (v_dim + 2) + rows * max(lengths) + rows
    return Residency(
        qkv=qkv,
        remote_block=remote,
        online_state=rows * (v_dim + 2),
        workspace=rows * max(lengths),
        output=rows * v_dim,
        lse=rows,
        gradients=qkv,
        buffers=received + homeward,
        resident_bytes=kept * element_bytes + kept_state * state + (qkv + homeward) * grad,
    )


def _ranks(lengths: Sequence[int]) -> int:
    if not isinstance(lengths, list | tuple) or not lengths:
        raise expected("lengths", "tokens of each rank, at least one rank", repr(lengths))
    for length in lengths:
        whole_number("lengths", length, 0)
    return len(lengths)


def _kv_width(kv_heads: int, head_dim: int, value_dim: int | None) -> int:
    """Elements of one token's keys and values."""
    heads, dim = whole_number("kv_heads", kv_heads, 1), whole_number("head_dim", head_dim, 1)
    return heads * (dim + (dim if value_dim is None else whole_number("value_dim", value_dim, 1)))
