"""What a rank does in tests of real processes: its shard through attention and back.

Workers for `launch` (rank, …) and for `run_threads` (transport, …). What they return can be sent
to another process.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from cpcore.distributed import MATH, GroupTransport, Record, Transport
from cpcore.distributed import rank as rank_module
from cpcore.distributed.attention import attention_with
from cpcore.distributed.faults import exchange_with
from tests.support.rank_cases import RankCase, rank_case

Array = NDArray[Any]
Fault = str | tuple[str, int, int] | None


class Ran(NamedTuple):
    """One rank's results in its physical order, what it recorded, or why it was refused."""

    output: Array | None = None
    dq: Array | None = None
    dk: Array | None = None
    dv: Array | None = None
    records: tuple[Record, ...] = ()
    refusal: str = ""


def attend(transport: Transport, case: RankCase, fault: Fault = None) -> Ran:
    """Forward and backward of one rank of a case."""
    q, k, v, dout = (torch.from_numpy(x.copy()) for x in case.shards(transport.rank))
    arrays = tuple(x.requires_grad_() for x in (q, k, v))
    block_op = MATH if case.plain else None
    settings = case.visibility, case.protocol, case.problem.scale, case.dropout, block_op
    exchange = exchange_with(fault, case.cp_size)
    start = len(transport.records)
    try:
        out = attention_with(exchange, arrays, transport, case.layout, *settings)
        out.backward(dout)
    except ValueError as error:
        return Ran(refusal=str(error), records=tuple(transport.records[start:]))
    results = (out.detach(), *(x.grad for x in arrays))
    return Ran(*(x.numpy() for x in results), tuple(transport.records[start:]))


def attend_in_turn(rank: int, numbers: Sequence[int], options: dict[str, Any]) -> list[Ran]:
    """A process: all cases of these numbers, one after the other, over one group."""
    transport = GroupTransport(recording=True, **options)
    return [run_case(transport, rank_case(number, transport.cp_size)) for number in numbers]


def run_case(transport: Transport, case: RankCase, fault: Fault = None) -> Ran:
    """One rank of a case in a process of its own, in tiles of the size that the case wants."""
    with patch.object(rank_module, "TILE", case.tile):
        return attend(transport, case, fault)


def logical(case: RankCase, ran: list[Ran], name: str) -> Array:
    """A result of all ranks in logical order."""
    return np.asarray(case.layout.unshard([getattr(each, name) for each in ran]))
