"""How keys and values reach a rank, and how their gradients go home: by the events of `schedule`.

Owns the order send, compute, merge, wait: the next block travels while this one is computed, and a
buffer is used again only when its message is through. Leaves out the arithmetic (`rank`).
"""

from collections.abc import Iterator, Sequence

from torch import Tensor

from cpcore.distributed.messages import Message, Pending
from cpcore.distributed.plan import Packing, Plan, Turn
from cpcore.distributed.transport import Transport
from cpcore.schedule import Event


class Exchange:
    """What one rank sends and receives; one method per decision, so that a fault overrides one."""

    def __init__(self, transport: Transport, plan: Plan, kv: Packing, grad_kv: Packing) -> None:
        self.transport, self.plan, self.kv, self.grad_kv = transport, plan, kv, grad_kv

    def blocks(self, turns: Sequence[Turn], own: Tensor) -> Iterator[tuple[Turn, Tensor]]:
        """(turn, message with its block); the next one travels while the caller computes."""
        if turns[0].event.collective:
            yield from self._gathered(turns, own)
            return
        block = own
        for turn, following in zip(turns, [*turns[1:], None], strict=True):
            pending, arriving = self._move(turn, following, block, own)  # send
            yield turn, block  # compute, merge
            pending.wait()
            block = arriving

    def _move(
        self, turn: Turn, following: Turn | None, block: Tensor, own: Tensor
    ) -> tuple[Pending, Tensor]:
        """Start what travels during a turn, and the buffer in which the next block arrives."""
        sends, receives, arriving = [], [], block
        if self.plan.relays:
            sends += _message(turn.event, turn.event.send_to, block)
        if following is not None:
            event, arriving = following.event, self.kv.empty(len(following.positions))
            if not self.plan.relays:
                sends += _message(event, event.send_to, own)
            receives += _message(event, event.recv_from, arriving)
        return self.transport.post(sends, receives), arriving

    def _gathered(self, turns: Sequence[Turn], own: Tensor) -> Iterator[tuple[Turn, Tensor]]:
        """All blocks travel in one call, and the first is computed when the last has arrived."""
        buffers = [own, *(self.kv.empty(len(turn.positions)) for turn in turns[1:])]
        sends, receives = [], []
        for turn, buffer in zip(turns, buffers, strict=True):
            sends += _message(turn.event, turn.event.send_to, own)
            receives += _message(turn.event, turn.event.recv_from, buffer)
        self.transport.post(sends, receives, collective=True).wait()
        yield from zip(turns, buffers, strict=True)

    def replayed(self, block: Tensor, own: Tensor) -> Tensor:
        """The block that the backward pass works on."""
        return block

    def returned(self, event: Event, share: Tensor) -> Tensor:
        """What is sent of a share that goes home."""
        return share

    def homecoming(self) -> "Homecoming":
        """The return of the gradients, to be fed one share after each turn of the replay."""
        return (RingReturn if self.plan.relays else StraightReturn)(self)


class Homecoming:
    """Shares of dk and dv on their way to the owner of the keys; `home` is what has come here."""

    home: Tensor | None = None

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.own_tokens = len(exchange.plan.forward[0].positions)
        self.pending: Pending | None = None

    def give(self, turn: Turn, share: Tensor) -> None:
        """Send the share of this turn's owner, now or at the end."""
        raise NotImplementedError

    def finish(self) -> Tensor:
        """All that this rank's own keys and values are owed."""
        raise NotImplementedError

    def keep(self, share: Tensor) -> None:
        """Add a share to what has come home."""
        self.home = share if self.home is None else self.home.add_(share)

    def wait(self) -> None:
        """Wait for what is under way."""
        if self.pending is not None:
            self.pending.wait()
            self.pending = None


class RingReturn(Homecoming):
    """The sum for an owner grows from hop to hop, behind its keys and values."""

    arriving: Tensor

    def give(self, turn: Turn, share: Tensor) -> None:
        """Add what the hops before this one owe the same owner, and hand the sum on."""
        event = self.exchange.plan.returns.get(turn.event.step)
        if self.pending is not None:
            self.wait()
            share.add_(self.arriving)
        if event is None:  # its own share never leaves home
            self.keep(share)
            return
        self.arriving = self.exchange.grad_kv.empty(self._tokens_after(turn))
        sends = _message(event, event.send_to, self.exchange.returned(event, share))
        receives = _message(event, event.recv_from, self.arriving)
        self.pending = self.exchange.transport.post(sends, receives)

    def _tokens_after(self, turn: Turn) -> int:
        """Tokens of the owner whose sum arrives next: the one that is computed next, or this."""
        replay = self.exchange.plan.replay
        return len(replay[(turn.event.step + 1) % len(replay)].positions)

    def finish(self) -> Tensor:
        """The sum that has passed all the others comes home."""
        if self.pending is not None:
            self.wait()
            self.keep(self.arriving)
        assert self.home is not None
        return self.home


class StraightReturn(Homecoming):
    """Every share goes to its owner at once, or all of them in one call at the end."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.shares: list[tuple[Event, Tensor]] = []

    def give(self, turn: Turn, share: Tensor) -> None:
        """Keep the own share, send a foreign one."""
        event = self.exchange.plan.returns.get(turn.event.step)
        if event is None:
            self.keep(share)
            return
        self.shares.append((event, share))
        if not event.collective:
            self._collect()
            self._start(collective=False)

    def _start(self, collective: bool) -> None:
        sends, receives, self.arriving = [], [], []
        for event, share in self.shares:
            buffer = self.exchange.grad_kv.empty(self.own_tokens)
            self.arriving.append(buffer)
            sends += _message(event, event.send_to, self.exchange.returned(event, share))
            receives += _message(event, event.recv_from, buffer)
        self.shares = []
        self.pending = self.exchange.transport.post(sends, receives, collective=collective)

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
        assert self.home is not None
        return self.home


def _message(event: Event, peer: int | None, buffer: Tensor) -> list[Message]:
    """The message of one side of an event, if it has one."""
    return [] if peer is None else [Message(event.phase, event.step, peer, buffer)]
