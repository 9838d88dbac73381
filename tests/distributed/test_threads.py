"""Ranks that are threads: every protocol, layout and rule, without a network's help or harm."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor

from cpcore.distributed import Message, PeerError, ThreadTransport, rank, run_threads
from cpcore.distributed.messages import Pending
from cpcore.distributed.plan import Turn
from cpcore.distributed.protocols import Exchange
from tests.support import rank_workers
from tests.support.rank_cases import CELLS, RankCase, rank_case
from tests.support.rank_checks import RESULTS, same_bits, wrong_messages, wrong_results
from tests.support.rank_workers import Ran, attend

EVERY = range(0, 2 * len(CELLS), 3)


def threads(case: RankCase, poison: bool = True) -> list[Ran]:
    with patch.object(rank, "TILE", case.tile):
        return run_threads(attend, case.cp_size, case, poison=poison, recording=True)


@pytest.mark.parametrize("cp_size", [1, 2, 3, 5])
def test_output_gradients_and_messages_of_threads_are_right(cp_size: int) -> None:
    for number in EVERY:
        case = rank_case(number, cp_size)
        ran = threads(case)
        assert [bool(r.refusal) for r in ran] == [case.refused] * cp_size, f"{case}"
        if not case.refused:
            assert wrong_results(case, ran) == [], f"case {number}, {case.cell}"
            if case.protocol != "all_to_all":
                for r, each in enumerate(ran):
                    assert wrong_messages(case, r, each) == [], f"case {number}, {case.cell}"


@pytest.mark.parametrize("number", range(0, 2 * len(CELLS), 37))
def test_poison_in_receive_buffers_changes_no_bit(number: int) -> None:
    case = rank_case(number, 4)
    with_poison, without = threads(case), threads(case, poison=False)
    for one, other in zip(with_poison, without, strict=True):
        assert one.refusal == other.refusal
        if not case.refused:
            assert all(same_bits(getattr(one, n), getattr(other, n)) for n in RESULTS)


class Hasty(Exchange):
    """WRONG: what was sent is overwritten before its message is through."""

    def _move(
        self, turn: Turn, following: Turn | None, block: Tensor, own: Tensor
    ) -> tuple[Pending, Tensor]:
        pending, arriving = super()._move(turn, following, block, own)
        if turn.event.step:
            block.zero_()
        return pending, arriving


class Deaf(ThreadTransport):
    """WRONG: what arrives in the second step of the replay never gets into its buffer."""

    def _receive(self, message: Message) -> None:
        held = message.buffer.clone()
        super()._receive(message)
        if message.phase == "replay" and message.step == 2:
            message.buffer.copy_(held)


def run_wrongly(case: RankCase, exchange: type[Exchange], transport: type[ThreadTransport]) -> Any:
    """The ranks' results with another exchange or transport than the right one."""

    def worker(mine: ThreadTransport) -> Ran:
        mine.__class__ = transport
        return attend(mine, case)

    with patch.object(rank_workers, "exchange_with", lambda *_: exchange):
        return run_threads(worker, case.cp_size, poison=True)


def ring_of_four() -> RankCase:
    """Full attention on four equal shards: nothing is hidden, every message counts."""
    numbers = (n for n in range(2 * len(CELLS)) if CELLS[n // 2][:1] == ("ring",))
    cases = (rank_case(n, 4) for n in numbers if CELLS[n // 2][2] == "full")
    return next(case for case in cases if len(set(case.layout.lengths)) == 1)


def test_a_buffer_that_is_touched_before_its_message_is_through_shows() -> None:
    case = ring_of_four()
    assert wrong_results(case, run_wrongly(case, Exchange, ThreadTransport)) == []
    assert "output" in wrong_results(case, run_wrongly(case, Hasty, ThreadTransport))


def test_a_block_that_never_arrived_is_nan_and_not_what_the_memory_held() -> None:
    ran = run_wrongly(ring_of_four(), Exchange, Deaf)
    assert all(np.isnan(each.dq).all() for each in ran)


def error_of_rank_0(messages: Callable[[int], tuple[list[Message], list[Message]]]) -> PeerError:
    """What rank 0 of two says; messages(rank) are those that it sends and expects."""

    def worker(transport: ThreadTransport) -> PeerError | None:
        try:
            transport.post(*messages(transport.rank)).wait()
        except PeerError as error:
            return error
        return None

    error = run_threads(worker, 2, time_limit_s=0.2)[0]
    assert isinstance(error, PeerError)
    return error


def test_a_peer_that_sends_nothing_is_an_error_that_names_rank_step_and_peer() -> None:
    wanted = Message("replay", 3, 1, torch.zeros(3))
    error = error_of_rank_0(lambda rank: ([], [] if rank else [wanted]))
    assert str(error) == (
        "rank 0, replay step 3: expected a message from rank 1, received nothing within 0.2 s"
    )
    assert (error.rank, error.phase, error.step, error.peer) == (0, "replay", 3, 1)


def test_a_message_of_another_size_is_an_error_of_the_double_too() -> None:
    def messages(rank: int) -> tuple[list[Message], list[Message]]:
        return [Message("forward", 1, 1 - rank, torch.zeros(3 + rank))], [
            Message("forward", 1, 1 - rank, torch.zeros(3))
        ]

    assert str(error_of_rank_0(messages)) == (
        "rank 0, forward step 1: expected a message from rank 1, received "
        "((4,), torch.float32) where ((3,), torch.float32) belongs"
    )


def test_a_message_that_nobody_takes_is_an_error() -> None:
    def worker(transport: ThreadTransport) -> None:
        transport.post([Message("forward", 0, 1 - transport.rank, torch.zeros(1))], [])

    with pytest.raises(RuntimeError, match="messages that nobody took"):
        run_threads(worker, 2)
