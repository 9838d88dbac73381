"""Messages between ranks: posted together, waited for with a limit, recorded when asked.

Owns what every carrier shares: a message, its record, the error that names rank and step, and the
poison of receive buffers. `GroupTransport` carries by `torch.distributed`; `threads` holds the
in-process double. Leaves out what is sent when: that is `protocols`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from cpcore.checks import expected
from cpcore.distributed import where


class Message(NamedTuple):
    """One buffer to or from a peer, as part of a step of a phase."""

    phase: str
    step: int
    peer: int
    buffer: Tensor


class Record(NamedTuple):
    """What a message turned out to be: counted from its buffer, not from any plan.

    collective: it was one of several that travel in one call, as in an all-gather.
    """

    phase: str
    step: int
    direction: str  # "sent" | "received"
    peer: int
    elements: int
    bytes: int
    collective: bool


class PeerError(RuntimeError):
    """A message that did not come or could not be sent, with the rank and the step that miss it."""

    def __init__(self, rank: int, message: Message, side: str, reason: str) -> None:
        self.rank, self.phase, self.step, self.peer = rank, *message[:3]
        where = f"rank {rank}, {message.phase} step {message.step}"
        super().__init__(f"{where}: expected a message {side} rank {message.peer}, {reason}")


Wait = Callable[[], object]  # returns when its message is through, raises RuntimeError if it is not


class Pending:
    """Messages under way. Their buffers belong to the transport until `wait` has returned."""

    def __init__(self, transport: "Transport", waits: list[tuple[Message, str, Wait]]) -> None:
        self._transport, self._waits = transport, waits

    def wait(self) -> None:
        """Return when all have arrived and all buffers are free again.

        Raises: PeerError, naming the peer, for a message that fails or exceeds the time limit.
        """
        for message, side, wait in self._waits:
            where.step(f"{message.phase} step {message.step}")
            try:
                wait()
            except RuntimeError as error:
                reason = f"received {' '.join(str(error).split())}"
                raise PeerError(self._transport.rank, message, side, reason) from error
        self._waits = []


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

    def post(
        self, sends: Sequence[Message], receives: Sequence[Message], *, collective: bool = False
    ) -> Pending:
        """Start all of them at once, receives first; no buffer may be touched before `wait`."""
        for message in receives:
            if self.poison and message.buffer.is_floating_point():
                message.buffer.fill_(torch.nan)
        if self.recording:
            for direction, messages in (("sent", sends), ("received", receives)):
                self.records += [_record(message, direction, collective) for message in messages]
        return Pending(self, self._start(sends, receives))

    def share(self, phase: str, word: bytes) -> list[bytes]:
        """Every rank's word, all of one length, by rank. No payload, hence not recorded."""
        before = f"agreement before {phase},"
        mine = torch.frombuffer(bytearray(word), dtype=torch.uint8).to(self.device)
        words = [torch.zeros_like(mine) for _ in range(self.cp_size)]
        words[self.rank] = mine
        others = [peer for peer in range(self.cp_size) if peer != self.rank]
        sends = [Message(before, 0, peer, mine) for peer in others]
        receives = [Message(before, 0, peer, words[peer]) for peer in others]
        Pending(self, self._start(sends, receives)).wait()
        return [bytes(each.cpu().numpy()) for each in words]

    @property
    def device(self) -> torch.device:
        """Where messages must lie."""
        return torch.device("cpu")

    def carries(self, device: torch.device) -> bool:
        """Whether buffers on this device can travel."""
        return device.type == self.device.type

    @abstractmethod
    def _start(
        self, sends: Sequence[Message], receives: Sequence[Message]
    ) -> list[tuple[Message, str, Wait]]:
        """Begin all of them; for each its side, "from" or "to", and how to wait for it."""


def _record(message: Message, direction: str, collective: bool) -> Record:
    buffer, head = message.buffer, (message.phase, message.step, direction, message.peer)
    return Record(*head, buffer.numel(), buffer.numel() * buffer.element_size(), collective)


class GroupTransport(Transport):
    """Carries by `torch.distributed`, point to point: Gloo on CPUs, NCCL on GPUs.

    Collectives too are batches of point-to-point messages: Gloo's all-gather refuses shards of
    unequal length, and its reduce-scatter moves as much as an all-reduce.

    group: a process group, None = all processes. time_limit_s: for each wait; None = the limit
    with which the group was made.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        time_limit_s: float | None = None,
        poison: bool = False,
        recording: bool = False,
    ) -> None:
        if not dist.is_initialized():
            raise expected("group", "an initialized process group", "none")
        if dist.get_rank(group) < 0:
            raise expected("group", "a group with this process in it", "another one")
        self.group = dist.group.WORLD if group is None else group
        self.limit = None if time_limit_s is None else timedelta(seconds=time_limit_s)
        size = dist.get_world_size(group)
        super().__init__(dist.get_rank(group), size, poison=poison, recording=recording)
        self.peers = dist.get_process_group_ranks(self.group)  # group rank -> global rank
        self.on_gpus = dist.get_backend(group) == "nccl"

    @property
    def device(self) -> torch.device:
        """The GPU of this process under NCCL, else the CPU."""
        return torch.device("cuda" if self.on_gpus else "cpu")

    def _start(
        self, sends: Sequence[Message], receives: Sequence[Message]
    ) -> list[tuple[Message, str, Wait]]:
        if not sends and not receives:
            return []
        operations: list[tuple[Message, str, Any]] = [
            *((message, "from", dist.irecv) for message in receives),
            *((message, "to", dist.isend) for message in sends),
        ]
        try:
            works = dist.batch_isend_irecv(
                [
                    dist.P2POp(start, message.buffer, self.peers[message.peer], self.group)
                    for message, _, start in operations
                ]
            )
        except RuntimeError as error:
            message, side, _ = operations[0]
            raise PeerError(self.rank, message, side, f"received {error}") from error
        if len(works) < len(operations):  # NCCL: one piece of work for the whole batch
            return [(*operations[0][:2], works[0].wait)]
        return [
            (message, side, self._waiting(work))
            for (message, side, _), work in zip(operations, works, strict=True)
        ]

    def _waiting(self, work: dist.Work) -> Wait:
        return work.wait if self.limit is None else partial(work.wait, self.limit)
