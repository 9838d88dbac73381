"""What one rank sends and receives for one attention, in closed form, protocol by protocol.

Owns elements, bytes and messages per phase for every protocol of `schedule`; each equals the
ledger's count of the events (tested). Leaves out all-to-all by heads (`heads`) and time
(`overlap`). One sequence, one layer; multiply by the batch and the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.arguments import grouped_heads, one_of

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
    size, ranks = whole_number("seq_len", seq_len, 0), whole_number("cp_size", cp_size, 1)
    return tuple((r + 1) * size // ranks - r * size // ranks for r in range(ranks))


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
    tokens, width = _tokens_per_rank(lengths), _kv_width(kv_heads, head_dim, value_dim)
    ranks, mine = len(tokens), whole_number("rank", rank, 0)
    if mine >= ranks:
        raise expected("rank", f"below {ranks}, one of lengths", mine)
    one_of("protocol", protocol, PROTOCOLS)
    element = whole_number("element_bytes", element_bytes, 1)
    grad = element if grad_bytes is None else whole_number("grad_bytes", grad_bytes, 1)
    every, own = sum(tokens), tokens[mine]
    after, before = tokens[(mine + 1) % ranks], tokens[(mine - 1) % ranks]
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
    heads = grouped_heads(q_heads, kv_heads) * int(kv_heads)
    width, dim = _kv_width(kv_heads, head_dim, value_dim), int(head_dim)
    v_dim = dim if value_dim is None else int(value_dim)
    element = int(element_bytes)
    grad = element if grad_bytes is None else int(grad_bytes)
    state = element if state_bytes is None else whole_number("state_bytes", state_bytes, 1)
    tokens, mine = _tokens_per_rank(lengths), int(rank)
    own, longest = tokens[mine], max(tokens)
    others = [n for r, n in enumerate(tokens) if r != mine]
    gathered = protocol == "all_gather"
    remote = traffic[0].elements_received if gathered else max(others, default=0) * width
    returned = longest if others else 0
    received = 0 if gathered else remote
    homeward = 2 * returned * width
    qkv, rows = own * (heads * dim + width), own * heads
    kept = qkv + remote + rows * v_dim + received
    kept_state = rows * (v_dim + 2) + rows * longest + rows
    return Residency(
        qkv=qkv,
        remote_block=remote,
        online_state=rows * (v_dim + 2),
        workspace=rows * longest,
        output=rows * v_dim,
        lse=rows,
        gradients=qkv,
        buffers=received + homeward,
        resident_bytes=kept * element + kept_state * state + (qkv + homeward) * grad,
    )


def _tokens_per_rank(lengths: Sequence[int]) -> list[int]:
    if not isinstance(lengths, list | tuple) or not lengths:
        raise expected("lengths", "tokens of each rank, at least one rank", repr(lengths))
    return [whole_number("lengths", length, 0) for length in lengths]


def _kv_width(kv_heads: int, head_dim: int, value_dim: int | None) -> int:
    """Elements of one token's keys and values."""
    heads, dim = whole_number("kv_heads", kv_heads, 1), whole_number("head_dim", head_dim, 1)
    return heads * (dim + (dim if value_dim is None else whole_number("value_dim", value_dim, 1)))
