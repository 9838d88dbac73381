"""Ranks that are threads of one process: the in-process double of the real transport.

Owns delivery through shared memory with the guarantees of a network and no more: a buffer is read
as late as allowed, at the receiver's wait, so that touching it too early shows.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cpcore.checks import whole_number
from cpcore.distributed.messages import Message, Wait
from cpcore.distributed.transport import Transport, seconds

Link: TypeAlias = "queue.Queue[tuple[Tensor, threading.Event]]"


class Switchboard:
    """The links between the threads of one group, one queue per ordered pair of ranks."""

    def __init__(self, cp_size: int) -> None:
        self.cp_size = whole_number("cp_size", cp_size, 1)
        self.links: dict[tuple[int, int], Link] = {
            pair: queue.Queue() for pair in product(range(self.cp_size), range(self.cp_size))
        }

    def unread(self) -> list[tuple[int, int]]:
        """(sender, receiver) of every link that still holds a message."""
        return [pair for pair, link in self.links.items() if not link.empty()]


class ThreadTransport(Transport):
    """One thread's connection to the others of a switchboard."""

    def __init__(
        self,
        switchboard: Switchboard,
        rank: int,
        *,
        time_limit_s: float = 20.0,
        poison: bool = False,
        recording: bool = False,
    ) -> None:
        super().__init__(rank, switchboard.cp_size, poison=poison, recording=recording)
        self.links, self.time_limit_s = switchboard.links, seconds("time_limit_s", time_limit_s)

    def carries(self, device: torch.device) -> bool:
        """Any: memory is shared."""
        return True

    def _start(
        self, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> list[tuple[Message, str, Wait]]:
        waits: list[tuple[Message, str, Wait]] = []
        for message in receives:
            waits.append((message, "from", partial(self._receive, message)))
        for message in sends:
            taken = threading.Event()
            self.links[self.rank, message.peer].put((message.buffer, taken))
            waits.append((message, "to", partial(self._until, taken)))
        return waits

    def _receive(self, message: Message) -> None:
        try:
            sent, taken = self.links[message.peer, self.rank].get(timeout=self.time_limit_s)
        except queue.Empty:
            raise RuntimeError(f"nothing within {self.time_limit_s:g} s") from None
        wanted = (tuple(message.buffer.shape), message.buffer.dtype)
        if (tuple(sent.shape), sent.dtype) != wanted:
            raise RuntimeError(f"{(tuple(sent.shape), sent.dtype)} where {wanted} belongs")
        message.buffer.copy_(sent)
        taken.set()

    def _until(self, taken: threading.Event) -> None:
        if not taken.wait(self.time_limit_s):
            raise RuntimeError(f"no answer within {self.time_limit_s:g} s")


def run_threads(worker: Callable[..., Any], cp_size: int, *args: Any, **options: Any) -> list[Any]:
    """[worker(transport, *args) of rank 0, of rank 1, …], each in a thread of its own.

    options: those of `ThreadTransport`.

    Raises: the error that came first, after all threads have ended; RuntimeError for a message
        that nobody took.
    """
    switchboard = Switchboard(cp_size)
    results: list[Any] = [None] * switchboard.cp_size
    errors: list[Exception] = []

    def run(rank: int) -> None:
        try:
            results[rank] = worker(ThreadTransport(switchboard, rank, **options), *args)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(r,), daemon=True) for r in range(cp_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:  # the first one is the cause, others follow from it
        raise errors[0]
    if switchboard.unread():
        raise RuntimeError(f"messages that nobody took, (sender, receiver): {switchboard.unread()}")
    return results
