"""Messages between ranks: posted together, waited for with a limit, recorded when asked.

Owns what every carrier shares, the record and the poison of receive buffers. `group` holds the
carrier over `torch.distributed`, `threads` the in-process double. Leaves out what is sent when:
that is `protocols`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from cpcore.checks import expected
from cpcore.distributed import where
from cpcore.distributed.messages import (
    Message,
    Pending,
    PendingWords,
    Record,
    Wait,
)


class Transport(ABC):
    """One rank's connection to the others of its group; ranks count within the group.

    poison: receive buffers are NaN until their message arrives. recording: `records` keeps one
    entry per message.
    """

    def __init__(
        self, rank: int, cp_size: int, *, poison: bool = False, recording: bool = False
    ) -> None:
        self.rank, self.cp_size, self.poison, self.recording = rank, cp_size, poison, recording
        self.records: list[Record] = []
        self.agreements = 0

    def post(
        self,
        sends: Sequence[Message],
        receives: Sequence[Message],
        *,
        collective: bool = False,
        tag: int = 0,
    ) -> Pending:
        """Start all of them at once; no buffer may be touched before `wait`.

        tag: a message is received under the tag with which it was sent, if tags are heeded.
        """
        for message in receives:
            if self.poison and message.buffer.is_floating_point():
                message.buffer.fill_(torch.nan)
        if self.recording:
            for direction, messages in (("sent", sends), ("received", receives)):
                self.records += [_record(message, direction, collective) for message in messages]
        return self._under_way(sends, receives, tag)

    def share(self, phase: str, word: bytes) -> PendingWords:
        """Send every rank a word; all have one length. No payload, hence not recorded."""
        before = f"agreement before {phase},"
        mine = torch.frombuffer(bytearray(word), dtype=torch.uint8).to(self.device)
        words = [torch.zeros_like(mine) for _ in range(self.cp_size)]
        words[self.rank] = mine
        others = [peer for peer in range(self.cp_size) if peer != self.rank]
        sends = [Message(before, 0, peer, mine) for peer in others]
        receives = [Message(before, 0, peer, words[peer]) for peer in others]
        return PendingWords(words, self._under_way(sends, receives, 0))

    def _under_way(
        self, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> Pending:
        for message in (*sends, *receives)[:1]:
            where.step(message.place)  # Gloo may end the process before anyone waits
        return Pending(self.rank, self._start(sends, receives, tag))

    def next_agreement(self) -> int:
        """How many agreements this group has begun, this one included."""
        self.agreements += 1
        return self.agreements

    @property
    def heeds_tags(self) -> bool:
        """Whether a message with another tag than the expected one is left alone."""
        return False

    @property
    def device(self) -> torch.device:
        """Where messages must lie."""
        return torch.device("cpu")

    def carries(self, device: torch.device) -> bool:
        """Whether buffers on this device can travel."""
        return device.type == self.device.type

    @abstractmethod
    def _start(
        self, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> list[tuple[Message, str, Wait]]:
        """Begin all of them; for each its side, "from" or "to", and how to wait for it."""


def _record(message: Message, direction: str, collective: bool) -> Record:
    buffer, head = message.buffer, (message.phase, message.step, direction, message.peer)
    return Record(*head, buffer.numel(), buffer.numel() * buffer.element_size(), collective)


def seconds(argument: str, value: object) -> float:
    """`value` as a time above 0."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not 0 < value < math.inf:  # type: ignore[operator]
        raise expected(argument, "a finite number above 0", repr(value))
    return float(value)  # type: ignore[arg-type]
