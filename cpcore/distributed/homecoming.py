"""How gradients of keys and values go home to their owner.

Owns the sums on the way. The messages are those of the phase "return" of `schedule`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from torch import Tensor

from cpcore.distributed.messages import Pending, of_event
from cpcore.distributed.plan import Packing, Plan, Turn
from cpcore.distributed.state import Total
from cpcore.schedule import Event

Shares: TypeAlias = tuple[Total, Total]  # of dk and dv


class Homecoming:
    """Shares of dk and dv on their way to the owner of the keys; `home` is what has come here."""

    home: Tensor | None = None
    own: Shares | None = None  # the owner's own, which are added last: they need no message

    def __init__(
        self,
        plan: Plan,
        packing: Packing,
        post: Callable[..., Pending],
        returned: Callable[[Event, Tensor], Tensor],
    ) -> None:
        self.plan, self.packing, self.post, self.returned = plan, packing, post, returned
        self.own_tokens = len(plan.forward[0].positions)
        self.pending: Pending | None = None

    def give(self, turn: Turn, shares: Shares) -> None:
        """Send the shares of dk and dv that this turn's owner is owed, now or at the end."""
        raise NotImplementedError

    def finish(self) -> Tensor:
        """All that this rank's own keys and values are owed."""
        raise NotImplementedError

    def keep(self, message: Tensor) -> None:
        """Add the shares of a message to what has come home."""
        self.home = message if self.home is None else self.home.add_(message)

    def settled(self) -> Tensor:
        """All that has come home, and the owner's own shares."""
        if self.home is None:
            assert self.own is not None
            return self.packed(self.own_tokens, self.own)
        if self.own is not None:
            self.add(self.own, self.home, self.own_tokens)
        return self.home

    def add(self, shares: Shares, message: Tensor, tokens: int) -> None:
        """Add shares to those of a message."""
        for share, room in zip(shares, self.packing.open(message, tokens), strict=True):
            share.add_to(room)

    def packed(self, tokens: int, shares: Shares) -> Tensor:
        """The shares as a message."""
        message = self.packing.empty(tokens)
        for share, room in zip(shares, self.packing.open(message, tokens), strict=True):
            share.write_to(room)
        return message

    def wait(self) -> None:
        """Wait for what is under way."""
        if self.pending is not None:
            self.pending.wait()
            self.pending = None


class RingReturn(Homecoming):
    """The sum for an owner grows from hop to hop, behind its keys and values."""

    arriving: Tensor

    def give(self, turn: Turn, shares: Shares) -> None:
        """Add to what the hops before this one owe the same owner, and hand the sum on."""
        event, tokens = self.plan.returns.get(turn.event.step), len(turn.positions)
        if event is None:  # its own share never leaves home
            self.own = shares
            return
        if self.pending is None:
            message = self.packed(tokens, shares)
        else:
            self.wait()
            message = self.arriving
            self.add(shares, message, tokens)
        self.arriving = self.packing.empty(self._tokens_after(turn))
        sends = of_event(event, event.send_to, self.returned(event, message))
        receives = of_event(event, event.recv_from, self.arriving)
        self.pending = self.post(sends, receives)

    def _tokens_after(self, turn: Turn) -> int:
        """Tokens of the owner whose sum arrives next: the one that is computed next, or this."""
        replay = self.plan.replay
        return len(replay[(turn.event.step + 1) % len(replay)].positions)

    def finish(self) -> Tensor:
        """The sum that has passed all the others comes home."""
        if self.pending is not None:
            self.wait()
            self.keep(self.arriving)
        return self.settled()


class StraightReturn(Homecoming):
    """Every share goes to its owner at once, or all of them in one call at the end."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.shares: list[tuple[Event, Tensor]] = []

    def give(self, turn: Turn, shares: Shares) -> None:
        """Keep the own share, send a foreign one."""
        event = self.plan.returns.get(turn.event.step)
        if event is None:
            self.own = shares
            return
        self.shares.append((event, self.packed(len(turn.positions), shares)))
        if not event.collective:
            self._collect()
            self._start(collective=False)

    def _start(self, collective: bool) -> None:
        sends, receives, self.arriving = [], [], []
        for event, share in self.shares:
            buffer = self.packing.empty(self.own_tokens)
            self.arriving.append(buffer)
            sends += of_event(event, event.send_to, self.returned(event, share))
            receives += of_event(event, event.recv_from, buffer)
        self.shares = []
        self.pending = self.post(sends, receives, collective)

    def _collect(self) -> None:
        if self.pending is not None:
            self.wait()
            for share in self.arriving:
                self.keep(share)

    def finish(self) -> Tensor:
        """The sum of all shares that came."""
        if self.shares:
            self._start(collective=True)
        self._collect()
        return self.settled()
