"""Which rank computes which block at which step, and what it sends and receives for it.

Owns the event stream that drives the simulation, the ledger, the pictures and the real processes,
so that they cannot disagree. Leaves out every array: events carry positions and counts only.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product, zip_longest
from typing import Literal, NamedTuple

from cpcore.checks import expected, shown, truth, whole_number
from cpcore.layouts import Layout
from cpcore.masks import Verdict, Visibility
from cpcore.work import find_runs, judge

PROTOCOLS = ("ring", "ring_full_return", "direct", "all_gather")
Phase = Literal["forward", "replay", "return"]
Piece = tuple[int, int]


class Event(NamedTuple):
    """One rank's turn on one piece of `owner`'s shard: receive, compute, then send.

    key_start and key_stop index `layout.owned[owner]`, never global positions. In phase "return"
    the owner's gradient is sent, then another one received. A side without a message has 0 tokens
    and no peer. collective: the messages of the phase are one library call, which gathers every
    block before the first is used or, in the return, sums what each owner is owed.

    Units: sent_tokens and received_tokens count positions, pairs visible (query, key) pairs.
    """

    phase: Phase
    step: int
    rank: int
    owner: int
    key_start: int
    key_stop: int
    verdict: Verdict
    pairs: int
    stream: Literal["kv", "grad_kv"]
    sent_tokens: int
    send_to: int | None
    received_tokens: int
    recv_from: int | None
    collective: bool = False


def schedule(
    layout: Layout,
    visibility: Visibility | None,
    *,
    protocol: str = "ring",
    max_block: int | None = None,
    backward: bool = True,
) -> Iterator[Event]:
    """Every event of one attention, ordered by phase, step, rank and piece.

    A block that its rank may not see is skipped by its verdict, never by leaving out its message:
    the next rank needs it. An empty shard is still one message, of 0 tokens.

    Raises: ValueError for an unknown protocol, a max_block below 1 or a backward that is no bool.
    Source: Liu et al. 2023, Ring Attention (arXiv:2310.01889), for `ring`.
    """
    if not isinstance(layout, Layout):
        raise expected("layout", "a Layout", type(layout).__name__)
    if visibility is not None and not isinstance(visibility, Visibility):
        raise expected("visibility", "a Visibility or None", type(visibility).__name__)
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise expected("protocol", f"one of {', '.join(PROTOCOLS)}", shown(protocol))
    size = whole_number("max_block", layout.seq_len + 1 if max_block is None else max_block, 1)
    return _events(_Turns(layout, visibility, protocol, size), truth("backward", backward))


def _events(turns: "_Turns", backward: bool) -> Iterator[Event]:
    ranks = range(turns.cp_size)
    phases: tuple[Phase, ...] = ("forward", "replay") if backward else ("forward",)
    for phase in phases:
        for step, rank in product(ranks, ranks):
            yield from turns.keys_and_values(phase, step, rank)
    if backward and turns.cp_size > 1:
        first = 0 if turns.protocol == "ring_full_return" else 1
        for step, rank in product(ranks[first:], ranks):
            yield from turns.gradient_return(step, rank)


class _Turns:
    """The events of one rank's turn, for every protocol."""

    def __init__(
        self, layout: Layout, visibility: Visibility | None, protocol: str, size: int
    ) -> None:
        self.cp_size = layout.cp_size
        self.protocol = protocol
        self.ring = protocol.startswith("ring")
        self.collective = protocol == "all_gather" and layout.cp_size > 1
        self.pieces = [_pieces(length, size) for length in layout.lengths]
        self.rule = Visibility(causal=False) if visibility is None else visibility
        self.rows = [find_runs(self.rule, pos) for pos in layout.owned]
        self.keys = [
            [find_runs(self.rule, pos[a:b]) for a, b in pieces]
            for pos, pieces in zip(layout.owned, self.pieces, strict=True)
        ]
        self.work = cache(self._work)  # the replay meets the blocks of the forward pass again

    def keys_and_values(self, phase: Phase, step: int, rank: int) -> Iterator[Event]:
        """Compute with the shard of the owner `step` places behind, and move keys and values."""
        owner = (rank - step) % self.cp_size
        if self.ring:  # hand on what was just used, until everyone has seen it
            send_to, recv_from = (rank + 1) % self.cp_size, (rank - 1) % self.cp_size
            outgoing = self.pieces[owner] if step < self.cp_size - 1 else []
        else:  # every owner sends its shard itself
            send_to, recv_from = (rank + step) % self.cp_size, owner
            outgoing = self.pieces[rank] if step > 0 else []
        incoming = self.pieces[owner] if step > 0 else []
        for i, piece, out, into in _aligned(self.pieces[owner], outgoing, incoming):
            verdict, pairs = self.work(rank, owner, i)
            sides = *_side(out, send_to), *_side(into, recv_from)
            yield Event(
                phase, step, rank, owner, *piece, verdict, pairs, "kv", *sides, self.collective
            )

    def gradient_return(self, step: int, rank: int) -> Iterator[Event]:
        """Send the gradient of the owner `step` places behind, then receive another.

        On a ring the sum travels on with its block; otherwise each share goes straight home.
        """
        owner = (rank - step) % self.cp_size
        if self.ring:
            send_to, recv_from = (rank + 1) % self.cp_size, (rank - 1) % self.cp_size
            incoming = self.pieces[(recv_from - step) % self.cp_size]
        else:
            send_to, recv_from = owner, (rank + step) % self.cp_size
            incoming = self.pieces[rank]
        for _, piece, out, into in _aligned(self.pieces[owner], self.pieces[owner], incoming):
            sides = *_side(out, send_to), *_side(into, recv_from)
            yield Event(
                "return", step, rank, owner, *piece, "empty", 0, "grad_kv", *sides, self.collective
            )

    def _work(self, rank: int, owner: int, piece: int) -> tuple[Verdict, int]:
        if piece >= len(self.pieces[owner]):
            return "empty", 0
        return judge(self.rule, self.rows[rank], self.keys[owner][piece])


def _pieces(length: int, size: int) -> list[Piece]:
    """Consecutive index ranges of at most `size`; an empty shard is one empty piece."""
    return [(a, min(a + size, length)) for a in range(0, max(1, length), size)]


def _aligned(
    pieces: list[Piece], outgoing: list[Piece], incoming: list[Piece]
) -> Iterator[tuple[int, Piece, Piece | None, Piece | None]]:
    """The i-th piece to work on beside the i-th one out and in, where there is one."""
    end = pieces[-1][1]
    for i, (piece, out, into) in enumerate(zip_longest(pieces, outgoing, incoming)):
        yield i, piece or (end, end), out, into


def _side(piece: Piece | None, peer: int) -> tuple[int, int | None]:
    """Tokens and peer of one message, or of none."""
    return (0, None) if piece is None else (piece[1] - piece[0], peer)
