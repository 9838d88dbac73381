"""Messages over `torch.distributed`, point to point: Gloo on CPUs, NCCL on GPUs.

Owns what these two do not notice by themselves: a message that is too short, and a wait without
end.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from functools import partial
from threading import TIMEOUT_MAX
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

from cpcore.checks import expected
from cpcore.distributed import courier, where
from cpcore.distributed.messages import Message, Wait, missed
from cpcore.distributed.transport import Transport, seconds

# How many each process group has begun. Not by name: that of a destroyed group is used again.
_agreements: WeakKeyDictionary[dist.ProcessGroup, int] = WeakKeyDictionary()


class _Batch(NamedTuple):
    """Messages of one post, each with its side, "to" or "from", in the order in which they begin.

    works: of those that have begun. errors: what the next one met, if it could not begin.
    """

    sides: Sequence[tuple[Message, str]]
    works: list[dist.Work]
    errors: list[RuntimeError]


class GroupTransport(Transport):
    """Carries by `torch.distributed`, point to point: Gloo on CPUs, NCCL on GPUs.

    Collectives too are batches of point-to-point messages: Gloo's all-gather refuses shards of
    unequal length, and its reduce-scatter moves as much as an all-reduce.

    Over Gloo, messages begin in the order in which they were posted, by a thread of their own: not
    in order with what the caller begins itself before it has waited for them.

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
        limit_s = None if time_limit_s is None else seconds("time_limit_s", time_limit_s)
        self.limit = None if limit_s is None else timedelta(seconds=limit_s)
        size = dist.get_world_size(group)
        super().__init__(dist.get_rank(group), size, poison=poison, recording=recording)
        self.peers = dist.get_process_group_ranks(self.group)  # group rank -> global rank
        self.on_gpus = dist.get_backend(group) == "nccl"
        if not self.on_gpus:
            limit = self.group._get_backend(self.device).options._timeout
            self.begin_s: float = min(limit_s or limit.total_seconds(), TIMEOUT_MAX)

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
        if self.on_gpus:
            return self._start_batch(sends, receives)
        # A send that finds its receive asked for is written by whoever begins it, under a lock for
        # which Gloo's own thread spins meanwhile. Begun first, it is left to that thread.
        sides = [(message, "to") for message in sends] + [(message, "from") for message in receives]
        if not sides:
            return []
        tails = [None if side == "to" else _marked_tail(message.buffer) for message, side in sides]
        batch = _Batch(sides, [], [])
        job = courier.submit(partial(self._begin, batch, tag))
        begun: tuple[Message, str, Wait] = *sides[0], partial(self._begun, job, batch)
        ended: list[tuple[Message, str, Wait]] = [
            (message, side, partial(self._end, batch, i, tails[i]))
            for i, (message, side) in enumerate(sides)
        ]
        return [begun, *ended[len(sends) :], *ended[: len(sends)]]  # who is missed comes first

    def _begin(self, batch: _Batch, tag: int) -> None:
        """In the courier's thread; what follows a message that cannot begin does not begin."""
        for message, side in batch.sides:
            begin: Any = dist.isend if side == "to" else dist.irecv
            try:
                work = begin(message.buffer, self.peers[message.peer], self.group, tag)
            except RuntimeError as error:
                batch.errors.append(error)
                return
            batch.works.append(work)

    def _begun(self, job: "Future[None]", batch: _Batch) -> None:
        """Raise for the first message that has not begun."""
        with suppress(TimeoutError):
            job.result(self.begin_s)
        begun = len(batch.works)
        if begun < len(batch.sides):
            message, side = batch.sides[begun]
            late = RuntimeError(f"no beginning within {self.begin_s:g} s")
            # Taken out of the batch: an error holds the frames that it passed, and their buffers.
            error = batch.errors.pop() if batch.errors else late
            where.step(message.place)
            raise missed(self.rank, message, side, error) from error

    def _end(self, batch: _Batch, which: int, tail: Tensor | None) -> None:
        self._finish(batch.works[which], tail)

    def _start_batch(
        self, sends: Sequence[Message], receives: Sequence[Message]
    ) -> list[tuple[Message, str, Wait]]:
        """All in one batch, without which two GPUs may wait for each other."""
        sides = [(message, "from") for message in receives]
        sides += [(message, "to") for message in sends]
        if not sides:
            return []
        begin = {"from": dist.irecv, "to": dist.isend}
        batch = [
            dist.P2POp(begin[side], message.buffer, self.peers[message.peer], self.group)
            for message, side in sides
        ]
        try:
            works = dist.batch_isend_irecv(batch)
        except RuntimeError as error:
            where.step(sides[0][0].place)
            raise missed(self.rank, *sides[0], error) from error
        if len(works) < len(sides):  # NCCL: one piece of work for the whole batch
            return [(*sides[0], works[0].wait)]
        return [
            (message, side, partial(self._finish, work, None))
            for work, (message, side) in zip(works, sides, strict=True)
        ]

    def _finish(self, work: dist.Work, tail: Tensor | None) -> None:
        if self.limit is None:
            work.wait()
        else:
            work.wait(self.limit)
        if tail is not None and int(tail) == _MARKS[tail.dtype]:
            raise RuntimeError("a shorter one")


# Gloo takes a message that is shorter than its buffer for a whole one. The last element is marked
# with bits that no computation yields: a NaN with a payload of its own.
_MARKS = {torch.int16: 0x7FE5, torch.int32: 0x7FE5A5A5, torch.int64: 0x7FFA5A5A5A5A5A5A}
_KINDS = {kind.itemsize: kind for kind in _MARKS}


def _marked_tail(buffer: Tensor) -> Tensor | None:
    """The bits of the last number, which the message will overwrite; None where there is none."""
    if not buffer.is_floating_point() or not buffer.numel():
        return None
    kind = _KINDS[buffer.element_size()]
    return buffer[-1:].view(kind).fill_(_MARKS[kind])
