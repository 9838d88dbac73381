"""How keys and values reach a rank: by the events of `schedule`.

Owns the order send, compute, merge, wait: the next block travels while this one is computed, and a
buffer is used again only when its message is through. Leaves out the arithmetic (`rank`) and
the way home of gradients (`homecoming`).
"""

from collections.abc import Iterator, Sequence

from torch import Tensor

from cpcore.distributed import where
from cpcore.distributed.contract import Agreement
from cpcore.distributed.homecoming import Homecoming, RingReturn, StraightReturn
from cpcore.distributed.messages import Message, Pending, of_event
from cpcore.distributed.plan import Packing, Plan, Turn
from cpcore.distributed.transport import Transport
from cpcore.schedule import Event


class Exchange:
    """What one rank sends and receives; one method per decision, so that a fault overrides one."""

    def __init__(self, transport: Transport, plan: Plan, kv: Packing, grad_kv: Packing) -> None:
        self.transport, self.plan, self.kv, self.grad_kv = transport, plan, kv, grad_kv

    def begin(self, agreement: Agreement) -> None:
        """Enter a phase; its agreement must be closed before a block of another rank is used."""
        self.agreement = agreement

    def post(
        self, sends: list[Message], receives: list[Message], collective: bool = False
    ) -> Pending:
        """Start messages under the tag of the phase."""
        return self.transport.post(sends, receives, collective=collective, tag=self.agreement.tag)

    def blocks(self, turns: Sequence[Turn], own: Tensor) -> Iterator[tuple[Turn, Tensor]]:
        """(turn, message with its block); the next one travels while the caller computes."""
        travel = self._gathered if turns[0].event.collective else self._one_by_one
        for turn, block in travel(turns, own):
            where.step(f"{turn.event.phase} step {turn.event.step}")
            yield turn, block

    def _one_by_one(self, turns: Sequence[Turn], own: Tensor) -> Iterator[tuple[Turn, Tensor]]:
        block = own
        for turn, following in zip(turns, [*turns[1:], None], strict=True):
            pending, arriving = self._move(turn, following, block, own)  # send
            yield turn, block  # compute, merge
            self.agreement.close()
            pending.wait()
            block = arriving

    def _move(
        self, turn: Turn, following: Turn | None, block: Tensor, own: Tensor
    ) -> tuple[Pending, Tensor]:
        """Start what travels during a turn, and the buffer in which the next block arrives."""
        sends, receives, arriving = [], [], block
        if self.plan.relays:
            sends += of_event(turn.event, turn.event.send_to, block)
        if following is not None:
            event, arriving = following.event, self.kv.empty(len(following.positions))
            if not self.plan.relays:
                sends += of_event(event, event.send_to, own)
            receives += of_event(event, event.recv_from, arriving)
        return self.post(sends, receives), arriving

    def _gathered(self, turns: Sequence[Turn], own: Tensor) -> Iterator[tuple[Turn, Tensor]]:
        """All blocks travel in one call, and the first is computed when the last has arrived."""
        buffers = [own, *(self.kv.empty(len(turn.positions)) for turn in turns[1:])]
        sends, receives = [], []
        for turn, buffer in zip(turns, buffers, strict=True):
            sends += of_event(turn.event, turn.event.send_to, own)
            receives += of_event(turn.event, turn.event.recv_from, buffer)
        pending = self.post(sends, receives, collective=True)
        self.agreement.close()
        pending.wait()
        yield from zip(turns, buffers, strict=True)

    def replayed(self, block: Tensor, own: Tensor) -> Tensor:
        """The block that the backward pass works on."""
        return block

    def returned(self, event: Event, share: Tensor) -> Tensor:
        """What is sent of a share that goes home."""
        return share

    def homecoming(self) -> Homecoming:
        """The return of the gradients, to be fed one share after each turn of the replay."""
        kind = RingReturn if self.plan.relays else StraightReturn
        return kind(self.plan, self.grad_kv, self.post, self.returned)
