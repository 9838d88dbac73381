"""How a rank that is a thread passes real arrays through queues, protocol by protocol.

Written from the description of the protocols. It uses nothing of the package: no event, no layout,
no running summary. Every wait has a limit. `rank_threads` computes with what arrives here.
"""

import math
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Links = dict[tuple[int, int], "queue.Queue[list[Array]]"]
LIMIT_S = 10.0


@dataclass(frozen=True)
class World:
    """What every rank knows: the protocol, who owns what, who sees whom, and the wire formats."""

    protocol: str
    owned: list[list[int]]
    visible: Array
    max_block: int | None = None
    kv_dtype: Any = np.float64
    grad_dtype: Any = np.float64

    def piece_count(self, rank: int) -> int:
        if self.max_block is None:
            return 1
        return max(1, math.ceil(len(self.owned[rank]) / self.max_block))

    def pieces(self, array: Array) -> list[Array]:
        """At most max_block tokens each; an empty shard is one piece of 0 tokens."""
        size = self.max_block or max(1, array.shape[-2])
        return [array[..., a : a + size, :] for a in range(0, max(1, array.shape[-2]), size)]


class Peer(threading.Thread):
    """One rank's shard, its links to the others, and its count of what went over them."""

    def __init__(self, rank: int, world: World, links: Links, arrays: list[Array]) -> None:
        super().__init__(daemon=True)
        self.rank, self.world, self.links = rank, world, links
        pos = world.owned[rank]
        self.q, self.k, self.v, self.dout = (x[..., pos, :] for x in arrays)
        self.size = len(world.owned)
        self.traffic: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.holding = self.remote_block = 0

    def send(self, phase: str, to: int, *arrays: Array) -> None:
        wire = self.world.grad_dtype if phase == "return" else self.world.kv_dtype
        message = [np.array(x, wire) for x in arrays]
        self.links[self.rank, to].put(message)
        self.count(phase, "sent", message)
        self.traffic[phase]["messages"] += 1

    def receive(self, phase: str, source: int) -> list[Array]:
        message: list[Array] = self.links[source, self.rank].get(timeout=LIMIT_S)
        self.count(phase, "received", message)
        if phase != "return":
            self.holding += sum(x.size for x in message)
            self.remote_block = max(self.remote_block, self.holding)
        return message

    def count(self, phase: str, side: str, message: list[Array]) -> None:
        self.traffic[phase][f"tokens_{side}"] += message[0].shape[-2]
        self.traffic[phase][f"elements_{side}"] += sum(x.size for x in message)
        self.traffic[phase][f"bytes_{side}"] += sum(x.nbytes for x in message)

    def release(self, message: list[Array]) -> None:
        self.holding -= sum(x.size for x in message)

    def own_pieces(self) -> Iterator[list[Array]]:
        for k, v in zip(self.world.pieces(self.k), self.world.pieces(self.v), strict=True):
            yield [k, v]

    def blocks(self, phase: str) -> Iterator[tuple[int, list[Array]]]:
        """(owner, [k, v]) piece by piece, as they arrive."""
        if self.world.protocol in ("ring", "ring_full_return"):
            yield from self.around_the_ring(phase)
        elif self.world.protocol == "direct":
            yield from self.from_owners(phase)
        else:
            yield from self.gathered(phase)

    def around_the_ring(self, phase: str) -> Iterator[tuple[int, list[Array]]]:
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        for step in range(self.size):
            owner = (self.rank - step) % self.size
            mine = self.own_pieces()
            for _ in range(self.world.piece_count(owner)):
                message = next(mine) if step == 0 else self.receive(phase, left)
                yield owner, message
                if step < self.size - 1:
                    self.send(phase, right, *message)
                if step > 0:
                    self.release(message)

    def from_owners(self, phase: str) -> Iterator[tuple[int, list[Array]]]:
        for message in self.own_pieces():
            yield self.rank, message
        for step in range(1, self.size):
            for message in self.own_pieces():
                self.send(phase, (self.rank + step) % self.size, *message)
            owner = (self.rank - step) % self.size
            for _ in range(self.world.piece_count(owner)):
                message = self.receive(phase, owner)
                yield owner, message
                self.release(message)

    def gathered(self, phase: str) -> Iterator[tuple[int, list[Array]]]:
        others = [other for other in range(self.size) if other != self.rank]
        self.traffic[phase]["collectives"] += bool(others)
        for other in others:
            for message in self.own_pieces():
                self.send(phase, other, *message)
        everything = [(self.rank, message) for message in self.own_pieces()]
        for other in others:
            for _ in range(self.world.piece_count(other)):
                everything.append((other, self.receive(phase, other)))
        yield from everything
        self.holding = 0

    def return_shares(self, owed: list[list[Array]]) -> None:
        """Around the ring the sum for an owner grows from hop to hop; otherwise straight home."""
        if self.size == 1:
            return
        ring = self.world.protocol.startswith("ring")
        self.traffic["return"]["collectives"] += self.world.protocol == "all_gather"
        for step in range(0 if self.world.protocol == "ring_full_return" else 1, self.size):
            owner = (self.rank - step) % self.size
            to = (self.rank + 1) % self.size if ring else owner
            for shares in zip(*(self.world.pieces(x) for x in owed[owner]), strict=True):
                self.send("return", to, *shares)
            for total in owed[owner]:
                total[...] = 0
            source = (self.rank - 1) % self.size if ring else (self.rank + step) % self.size
            arriving = (source - step) % self.size if ring else self.rank
            start = 0
            for _ in range(self.world.piece_count(arriving)):
                message = self.receive("return", source)
                stop = start + message[0].shape[-2]
                for total, share in zip(owed[arriving], message, strict=True):
                    total[:, start:stop] += share
                start = stop
