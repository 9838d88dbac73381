"""Messages over `torch.distributed`, point to point: Gloo on CPUs, NCCL on GPUs.

Owns what these two do not notice by themselves: a message that is too short, and a wait without
end.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

from cpcore.checks import expected
from cpcore.distributed.messages import Message, Wait, missed
from cpcore.distributed.transport import Transport

# How many each process group has begun. Not by name: that of a destroyed group is used again.
_agreements: WeakKeyDictionary[dist.ProcessGroup, int] = WeakKeyDictionary()


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
        self.group = dist.distributed_c10d._get_default_group() if group is None else group
        self.limit = None if time_limit_s is None else timedelta(seconds=time_limit_s)
        size = dist.get_world_size(group)
        super().__init__(dist.get_rank(group), size, poison=poison, recording=recording)
        self.peers = dist.get_process_group_ranks(self.group)  # group rank -> global rank
        self.on_gpus = dist.get_backend(group) == "nccl"

    @property
    def device(self) -> torch.device:
        """The GPU of this process under NCCL, else the CPU."""
        return torch.device("cuda" if self.on_gpus else "cpu")

    @property
    def heeds_tags(self) -> bool:
        """Gloo does, NCCL does not."""
        return not self.on_gpus

    def next_agreement(self) -> int:
        """Counted for the group, of which there may be many transports."""
        self.agreements = _agreements[self.group] = _agreements.get(self.group, 0) + 1
        return self.agreements

    def _start(
        self, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> list[tuple[Message, str, Wait]]:
        if not sends and not receives:
            return []
        for message in receives:
            _mark(message.buffer)
        sides = [(message, "from") for message in receives]
        sides += [(message, "to") for message in sends]
        try:
            works = self._begin(sides, tag)
        except RuntimeError as error:
            raise missed(self.rank, *sides[0], error) from error
        if len(works) < len(sides):  # NCCL: one piece of work for the whole batch
            return [(*sides[0], works[0].wait)]
        return [
            (message, side, partial(self._finish, work, message, side))
            for (message, side), work in zip(sides, works, strict=True)
        ]

    def _begin(self, sides: list[tuple[Message, str]], tag: int) -> list[Any]:
        start = {"from": dist.irecv, "to": dist.isend}
        to = [(start[side], message.buffer, self.peers[message.peer]) for message, side in sides]
        if self.on_gpus:  # in one batch, without which two GPUs may wait for each other
            return dist.batch_isend_irecv([dist.P2POp(*each, self.group) for each in to])
        return [begin(buffer, peer, self.group, tag) for begin, buffer, peer in to]

    def _finish(self, work: dist.Work, message: Message, side: str) -> None:
        if self.limit is None:
            work.wait()
        else:
            work.wait(self.limit)
        if side == "from" and _unfilled(message.buffer):
            raise RuntimeError("a shorter one")


# Gloo takes a message that is shorter than its buffer for a whole one. The last element is marked
# with bits that no computation yields: a NaN with a payload of its own.
_MARK = {
    2: (torch.int16, 0x7FE5),
    4: (torch.int32, 0x7FE5A5A5),
    8: (torch.int64, 0x7FFA5A5A5A5A5A5A),
}


def _mark(buffer: Tensor) -> None:
    if buffer.is_floating_point() and buffer.numel() and not buffer.is_cuda:
        kind, bits = _MARK[buffer.element_size()]
        buffer[-1:].view(kind).fill_(bits)


def _unfilled(buffer: Tensor) -> bool:
    """Whether the last element still carries the mark."""
    if not buffer.is_floating_point() or not buffer.numel() or buffer.is_cuda:
        return False
    kind, bits = _MARK[buffer.element_size()]
    return int(buffer[-1:].view(kind)) == bits
