"""Messages between simulated ranks, as the events say.

Owns delivery: what a rank may use is what an event brought it. A foreign block that none brought
is NaN, and a message that fits no event, or that nobody takes, is an error.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from cpcore.checks import Array, expected
from cpcore.schedule import Event

Block = tuple[Array, ...]


class Parcel(NamedTuple):
    """One piece of an owner's shard on its way: which piece, and its arrays."""

    owner: int
    start: int
    stop: int
    arrays: Block


class Mailbox:
    """First in, first out, per pair of ranks; every parcel must be expected and taken."""

    def __init__(self) -> None:
        self._queues: defaultdict[tuple[int, int], deque[Parcel]] = defaultdict(deque)

    def post(self, event: Event, parcel: Parcel) -> None:
        """Send, if the event sends."""
        if event.send_to is not None:
            if event.sent_tokens != parcel.stop - parcel.start:
                raise expected("events", f"{parcel.stop - parcel.start} tokens to send", event)
            self._queues[event.rank, event.send_to].append(parcel)

    def take(self, event: Event) -> Parcel | None:
        """What arrives by this event, None if it receives nothing."""
        if event.recv_from is None:
            return None
        queue = self._queues[event.recv_from, event.rank]
        if not queue:
            raise expected("events", "a message sent before it is received", event)
        parcel = queue.popleft()
        if event.received_tokens != parcel.stop - parcel.start:
            raise expected("events", f"{parcel.stop - parcel.start} tokens to receive", event)
        return parcel

    def close(self) -> None:
        """Raise if a message was sent and never received."""
        for (sender, receiver), queue in self._queues.items():
            if queue:
                raise expected("events", f"rank {receiver} to take all from {sender}", queue[0][:3])


def by_step(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The events of each (phase, step), in order."""
    for _, group in groupby(events, key=lambda event: (event.phase, event.step)):
        yield list(group)


def pass_blocks(
    events: Iterable[Event],
    shards: Sequence[Block],
    ring: bool,
    use: Callable[[Event, Block], None],
) -> None:
    """Move keys and values by their events and hand each rank the block of its turn.

    Arrays go by reference: nothing writes to a block.

    Shapes: shards[r] the arrays that rank r owns, (…, c, ·) each.
    """
    mail = Mailbox()
    for step in by_step(events):
        if not ring:
            _post_own(mail, step, shards)
        for event in step:
            parcel = mail.take(event) or _own_or_poison(event, shards)
            if parcel[:3] != (event.owner, event.key_start, event.key_stop):
                raise expected("events", f"the block that arrives, {parcel[:3]}", event)
            use(event, parcel.arrays)
            if ring:
                mail.post(event, parcel)
    mail.close()


def _post_own(mail: Mailbox, step: Iterable[Event], shards: Sequence[Block]) -> None:
    """Owners send their shard piece by piece; none waits for another, so all send first."""
    sent: defaultdict[int, int] = defaultdict(int)
    for event in step:
        start, stop = sent[event.rank], sent[event.rank] + event.sent_tokens
        mail.post(event, Parcel(event.rank, start, stop, piece(shards[event.rank], start, stop)))
        sent[event.rank] = stop


def _own_or_poison(event: Event, shards: Sequence[Block]) -> Parcel:
    """The rank's own piece; NaN in its place if the block is foreign and was not delivered."""
    block = piece(shards[event.owner], event.key_start, event.key_stop)
    if event.owner != event.rank:
        block = tuple(np.full_like(array, np.nan) for array in block)
    return Parcel(event.owner, event.key_start, event.key_stop, block)


def piece(block: Block, start: int, stop: int) -> Block:
    """The arrays between two local indices of the sequence axis."""
    return tuple(array[..., start:stop, :] for array in block)
