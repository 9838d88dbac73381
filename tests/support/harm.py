"""A rank that comes to harm in the middle of an attention: killed, stopped, gone, out of line."""

import faulthandler
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cpcore import Layout, Visibility, contiguous, from_lengths, schedule, striped, zigzag
from cpcore.distributed import (
    GroupTransport,
    Message,
    Transport,
    context_parallel_attention,
    courier,
    where,
)
from cpcore.distributed.transport import Pending

IN_FLIGHT = ("killed", "stopped", "asleep", "raises", "leaves", "longer", "shorter")
OUT_OF_LINE = ("dtype", "width", "layout", "visibility", "protocol")
PHASES = ("forward", "replay", "return")


@dataclass(frozen=True)
class Harm:
    """One round: the attention, and what happens to which rank where ("" = nothing)."""

    kind: str
    victim: int
    phase: str
    step: int
    after: bool  # the messages of that step are under way, not only due
    layout: Layout
    visibility: Visibility
    protocol: str
    wait_s: float

    @property
    def place(self) -> str:
        return f"{self.phase} step {self.step}"


def drawn(seed: int, wait_s: float) -> Harm:
    """The round of this seed; kinds take turns, all else is random."""
    kinds = ("killed", "killed", *IN_FLIGHT, *OUT_OF_LINE, "")
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    seq_len = int(rng.integers(2 * size, 25))
    cuts = np.sort(rng.integers(0, seq_len + 1, size - 1))
    layouts = (
        contiguous(seq_len, size),
        zigzag(seq_len, size),
        striped(seq_len, size),
        from_lengths(np.diff(cuts, prepend=0, append=seq_len).tolist()),
    )
    rules = (Visibility(), Visibility(causal=False), Visibility(window=3))
    layout, rule = layouts[rng.integers(4)], rules[rng.integers(3)]
    protocol = ("ring", "ring_full_return", "direct", "all_gather")[rng.integers(4)]
    victim, kind = int(rng.integers(size)), kinds[seed % len(kinds)]
    moves = [
        event
        for event in schedule(layout, rule, protocol=protocol)
        if event.rank == victim and event.send_to is not None
    ]
    # Nothing is shorter than a message of no tokens.
    moves = [event for event in moves if event.sent_tokens or kind != "shorter"]
    event = moves[rng.integers(len(moves))]
    after = bool(rng.integers(2)) and kind != "leaves"  # after its last message no one misses it
    return Harm(kind, victim, event.phase, event.step, after, layout, rule, protocol, wait_s)


class Hurt(GroupTransport):
    """Carries messages until the step at which its rank comes to harm."""

    def __init__(self, harm: Harm) -> None:
        super().__init__(time_limit_s=harm.wait_s)
        self.harm = harm

    def post(
        self, sends: Sequence[Message], receives: Sequence[Message], **options: Any
    ) -> Pending:
        harm = self.harm
        met = any((m.phase, m.step) == (harm.phase, harm.step) for m in sends)
        if not met or self.rank != harm.victim or harm.kind not in IN_FLIGHT:
            return super().post(sends, receives, **options)
        if harm.kind in ("longer", "shorter"):  # by one element, in one message
            whole = max(sends, key=lambda message: message.buffer.numel())
            buffer = torch.cat((whole.buffer, whole.buffer.new_zeros(1)))
            part = whole._replace(buffer=buffer if harm.kind == "longer" else buffer[:-2])
            sends = [part if message is whole else message for message in sends]
            return super().post(sends, receives, **options)
        if harm.after:
            super().post(sends, receives, **options)
            courier.submit(lambda: None).result(harm.wait_s)  # all before this has begun
        where.step(harm.place)
        _do(harm.kind)
        raise AssertionError("unharmed")


class Left(BaseException):
    """The rank has left the run without an error."""


def _do(kind: str) -> None:
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "asleep":
        time.sleep(600)
    if kind == "raises":
        raise ArithmeticError("this rank cannot go on")
    if kind == "leaves":
        raise Left


def attend(rank: int, harm: Harm) -> float:
    """Forward and backward of one attention on this rank, the sum of its results."""
    faulthandler.disable()  # a message that is too long aborts the peer: no need for its stack
    generator = torch.Generator().manual_seed(rank)
    call: dict[str, Any] = {
        "layout": harm.layout, "visibility": harm.visibility, "protocol": harm.protocol
    }  # fmt: skip
    tokens, width, dtype = harm.layout.lengths[rank], 4, torch.float64
    if rank == harm.victim and harm.kind in OUT_OF_LINE:
        dtype = torch.float32 if harm.kind == "dtype" else dtype
        width = 6 if harm.kind == "width" else width
        other = {
            "layout": contiguous(harm.layout.seq_len + 1, harm.layout.cp_size),
            "visibility": Visibility(window=2),
            "protocol": "direct" if harm.protocol == "ring" else "ring",
        }
        if harm.kind in other:
            call[harm.kind] = other[harm.kind]
            tokens = call["layout"].lengths[rank]
    q, k, v = (
        torch.randn(1, 2, tokens, width, generator=generator, dtype=dtype, requires_grad=True)
        for _ in range(3)
    )
    carrier: Transport = Hurt(harm)
    try:
        output = context_parallel_attention(q, k, v, group=carrier, **call)
        output.backward(torch.ones_like(output))
    except Left:
        return 0.0
    assert q.grad is not None
    return float((output.sum() + q.grad.sum()).detach())
