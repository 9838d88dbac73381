"""Messages over a real process group: poison, subgroups, limits, and what Gloo does not notice."""

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from itertools import chain
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
import torch
import torch.distributed as dist

from cpcore.distributed import (
    GroupTransport,
    Message,
    PeerError,
    RankError,
    Switchboard,
    ThreadTransport,
    courier,
    launch,
    where,
)
from cpcore.distributed.group import _Batch
from tests.support.rank_cases import CELLS, rank_case
from tests.support.rank_checks import RESULTS, same_bits, wrong_results
from tests.support.rank_workers import Ran, attend_in_turn, run_case

FEW = range(0, 2 * len(CELLS), 11)


def test_poison_in_receive_buffers_of_real_processes_changes_no_bit() -> None:
    poisoned, plain = (
        launch(attend_in_turn, 3, FEW, {"poison": poison}, time_limit_s=60)
        for poison in (True, False)
    )
    compared = 0
    for one, other in zip(chain(*poisoned), chain(*plain), strict=True):
        for name in RESULTS if not one.refusal else ():
            assert same_bits(getattr(one, name), getattr(other, name))
            compared += 1
    assert compared > 3 * len(FEW)


def test_a_group_inside_the_world_counts_ranks_of_its_own() -> None:
    """Processes 1 and 3 of four are ranks 0 and 1: peers are found by their global rank."""
    case = next(c for n in range(len(CELLS)) if not (c := rank_case(n, 2)).refused and
                min(c.layout.lengths) > 1)  # fmt: skip

    def worker(rank: int) -> Ran | None:
        group = dist.new_group([1, 3])
        return run_case(GroupTransport(group, poison=True), case) if rank in (1, 3) else None

    ran = launch(worker, 4, time_limit_s=60)
    assert wrong_results(case, [ran[1], ran[3]]) == []


def test_a_process_outside_the_group_is_refused() -> None:
    def worker(rank: int) -> str:
        group: Any = dist.new_group([1])
        try:
            GroupTransport(group)
        except ValueError as error:
            return str(error)
        return ""

    wanted = "group: expected a group with this process in it, received another one"
    assert launch(worker, 2, time_limit_s=60) == [wanted, ""]


def test_a_message_shorter_than_its_buffer_is_an_error() -> None:
    """Gloo takes it for a whole one: the buffer's tail would hold whatever it held."""

    def worker(rank: int, dtype: torch.dtype) -> str:
        message = Message("forward", 1, 1 - rank, torch.zeros(3 - rank, dtype=dtype))
        try:
            GroupTransport().post(*(([message], []) if rank else ([], [message]))).wait()
        except PeerError as error:
            return str(error)
        return ""

    wanted = "rank 0, forward step 1: expected a message from rank 1, received a shorter one"
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert launch(worker, 2, dtype, time_limit_s=60) == [wanted, ""]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_whole_message_is_none_of_the_kind_even_if_it_ends_in_nan(dtype: torch.dtype) -> None:
    def worker(rank: int) -> list[float]:
        transport, peer = GroupTransport(), 1 - rank
        mine, other = torch.tensor([1.0, torch.nan], dtype=dtype), torch.zeros(2, dtype=dtype)
        transport.post([Message("a", 0, peer, mine)], [Message("a", 0, peer, other)]).wait()
        return other.tolist()

    assert all(np.isnan(got[1]) and got[0] == 1 for got in launch(worker, 2, time_limit_s=60))


def test_every_wait_ends_by_the_time_limit_and_names_rank_step_and_peer() -> None:
    def worker(rank: int) -> str:
        transport = GroupTransport(time_limit_s=0.5)
        if rank == 1:
            time.sleep(3.0)  # alive, and silent
            return ""
        try:
            messages = (Message("replay", 2, 1, torch.zeros(3)) for _ in range(2))
            transport.post([next(messages)], [next(messages)]).wait()  # who is missed comes first
        except PeerError as error:
            return str(error)
        return ""

    text = launch(worker, 2, time_limit_s=60)[0]
    assert text.startswith("rank 0, replay step 2: expected a message from rank 1, received ")
    assert "Timed out waiting 500ms" in text


def test_a_record_counts_the_buffer() -> None:
    def worker(rank: int) -> list[Any]:
        transport = GroupTransport(recording=True)
        mine, other = torch.zeros(5), torch.zeros(5)
        sends, receives = ([Message("in", 0, 1 - rank, x)] for x in (mine, other))
        transport.post(sends, receives, collective=True).wait()
        return [tuple(record) for record in transport.records]

    assert launch(worker, 2, time_limit_s=60)[1] == [
        ("in", 0, "sent", 0, 5, 20, True),
        ("in", 0, "received", 0, 5, 20, True),
    ]


@pytest.mark.parametrize("side", ["sends", "receives", "words"])
def test_a_rank_that_dies_before_it_waits_has_said_where_it_is(side: str) -> None:
    """Gloo ends a process whose peer sends too much, as soon as the message comes."""

    def worker(rank: int) -> None:
        transport, message = GroupTransport(), Message("replay", 2, 1 - rank, torch.zeros(3))
        if rank == 0:
            if side == "words":
                transport.share("backward", b"word")
            else:
                transport.post(*(([message], []) if side == "sends" else ([], [message])))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(5)

    with pytest.raises(RankError) as caught:
        launch(worker, 2, time_limit_s=60)
    place = "agreement before backward, step 0" if side == "words" else "replay step 2"
    assert (caught.value.rank, caught.value.place) == (0, place)


def test_all_sends_begin_before_any_receive() -> None:
    def worker(rank: int) -> list[str]:
        begun: list[str] = []

        def noting(name: str) -> Callable[..., Any]:
            begin = getattr(dist, name)

            def begin_noted(*arguments: Any) -> Any:
                begun.append(name)
                return begin(*arguments)

            return begin_noted

        transport, others = GroupTransport(), [r for r in range(3) if r != rank]
        sends, receives = ([Message("in", 0, r, torch.zeros(5)) for r in others] for _ in range(2))
        with patch.multiple(dist, isend=noting("isend"), irecv=noting("irecv")):
            transport.post(sends, receives).wait()
        return begun

    assert launch(worker, 3, time_limit_s=60) == [["isend", "isend", "irecv", "irecv"]] * 3


@pytest.mark.parametrize(
    ("failing", "wanted"),
    [
        ("isend", "rank 0, forward step 1: expected a message to rank 1, received no way there"),
        ("irecv", "rank 0, return step 2: expected a message from rank 2, received no way there"),
    ],
)
def test_a_message_that_cannot_begin_is_the_one_that_is_named(failing: str, wanted: str) -> None:
    def worker(rank: int) -> str:
        sends = [Message("forward", 1, 1, torch.zeros(3))]
        receives = [Message("return", 2, 2, torch.zeros(3))]
        working: dict[str, Any] = {"isend": MagicMock(), "irecv": MagicMock()}
        working[failing].side_effect = RuntimeError("no way there")
        transport = GroupTransport()
        transport.peers = [0, 1, 2]
        with patch.multiple(dist, **working):
            with pytest.raises(PeerError) as caught:
                transport.post(sends, receives).wait()
            courier.submit(lambda: None).result(20)
        assert where.place() == str(caught.value).split(": ")[0].removeprefix("rank 0, ")
        assert caught.value.__cause__ is working[failing].side_effect
        assert working["irecv"].called is (failing == "irecv"), "begun after the error"
        return str(caught.value)

    assert launch(worker, 1, time_limit_s=60) == [wanted]


@pytest.mark.parametrize(("own", "seconds"), [(1.0, "1"), (None, "4")])
@pytest.mark.parametrize("stuck", ["isend", "irecv"])
def test_a_message_that_never_begins_is_named_within_the_limit(
    stuck: str, own: float | None, seconds: str
) -> None:
    """Half of the launcher's limit is that of the group."""

    def worker(rank: int) -> str:
        end, place = threading.Event(), {"isend": "forward step 1", "irecv": "return step 2"}[stuck]
        working: dict[str, Any] = {"isend": MagicMock(), "irecv": MagicMock()}
        working[stuck] = lambda *_: end.wait(20)
        transport = GroupTransport(time_limit_s=own)
        courier.submit(lambda: None).result(20)  # its thread has started
        messages = [Message(*head, 0, torch.zeros(3)) for head in (("forward", 1), ("return", 2))]
        with patch.multiple(dist, **working):
            with pytest.raises(PeerError) as caught:
                transport.post(messages[:1], messages[1:]).wait()
            end.set()
            courier.submit(lambda: None).result(20)  # not before the patch is gone
        assert where.place() == place
        return str(caught.value)

    place, side = ("forward step 1", "to") if stuck == "isend" else ("return step 2", "from")
    told = f"expected a message {side} rank 0, received no beginning within {seconds} s"
    assert launch(worker, 1, time_limit_s=8.0) == [f"rank 0, {place}: {told}"]


def test_a_beginning_that_ends_just_after_its_limit_is_one() -> None:
    class Late(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            works.extend([MagicMock(), MagicMock()])
            raise TimeoutError

    works: list[Any] = []

    def worker(rank: int) -> bool:
        sides = [(Message("in", step, 0, torch.zeros(3)), "to") for step in range(2)]
        GroupTransport()._begun(Late(), _Batch(sides, works, []))
        return True

    assert launch(worker, 1, time_limit_s=60) == [True]


def test_an_error_of_a_beginning_keeps_no_buffer_alive() -> None:
    def worker(rank: int) -> bool:
        def fail(*_: Any) -> None:
            raise RuntimeError("no way there")

        def post() -> weakref.ref[torch.Tensor]:
            buffer = torch.zeros(3)
            try:
                transport.post([Message("in", 0, 0, buffer)], []).wait()
            except PeerError:
                return weakref.ref(buffer)
            raise AssertionError("begun")

        transport = GroupTransport()
        gc.disable()
        with patch.object(dist, "isend", fail):
            buffer = post()
            courier.submit(lambda: None).result(20)  # it has let go
            return buffer() is None

    assert launch(worker, 1, time_limit_s=60) == [True]


def test_a_time_limit_beyond_all_clocks_is_no_error() -> None:
    def worker(rank: int) -> float:
        transport = GroupTransport(time_limit_s=1e10)
        transport.limit = None  # Gloo has clocks of its own
        mine, other = torch.full((3,), float(rank)), torch.zeros(3)
        sends, receives = ([Message("in", 0, 1 - rank, x)] for x in (mine, other))
        transport.post(sends, receives).wait()
        return float(other[0])

    assert launch(worker, 2, time_limit_s=60) == [1.0, 0.0]


@pytest.mark.parametrize("limit", [0, -1.0, float("inf"), float("nan"), "1"])
def test_a_time_limit_is_a_time(limit: Any) -> None:
    told = f"time_limit_s: expected a finite number above 0, received {limit!r}"

    def worker(rank: int) -> str:
        with pytest.raises(ValueError, match="time_limit_s") as caught:
            GroupTransport(time_limit_s=limit)
        return str(caught.value)

    assert launch(worker, 1, time_limit_s=60) == [told]
    with pytest.raises(ValueError, match="time_limit_s") as caught:
        ThreadTransport(Switchboard(1), 0, time_limit_s=limit)
    assert str(caught.value) == told


def test_groups_of_the_same_ranks_do_not_mix_and_share_a_thread() -> None:
    def worker(rank: int) -> tuple[list[float], int]:
        transports = [GroupTransport(dist.new_group()) for _ in range(2)]
        under_way, arrived = [], []
        for number, transport in enumerate(transports if rank == 0 else ()):
            message = Message("in", 0, 1, torch.full((3,), float(number)))
            under_way.append(transport.post([message], []))
        for transport in reversed(transports) if rank == 1 else ():
            message = Message("in", 0, 0, torch.zeros(3))
            transport.post([], [message]).wait()
            arrived.append(float(message.buffer[0]))
        for pending in under_way:
            pending.wait()
        return arrived, [thread.name for thread in threading.enumerate()].count("courier")

    assert launch(worker, 2, time_limit_s=60) == [([], 1), ([1.0, 0.0], 1)]


def test_a_batch_for_gpus_that_cannot_begin_is_named_with_its_step() -> None:
    def worker(rank: int) -> str:
        transport = GroupTransport()
        transport.on_gpus = True
        messages = [Message(*head, 0, torch.zeros(3)) for head in (("forward", 1), ("return", 2))]
        failing = MagicMock(side_effect=RuntimeError("no way there"))
        with (
            patch.multiple(dist, batch_isend_irecv=failing, P2POp=MagicMock()),
            pytest.raises(PeerError) as caught,
        ):
            transport.post(messages[:1], messages[1:])
        assert where.place() == "return step 2"
        return str(caught.value)

    told = "rank 0, return step 2: expected a message from rank 0, received no way there"
    assert launch(worker, 1, time_limit_s=60) == [told]


def test_one_thread_that_does_not_compute_begins_all_messages_in_their_order() -> None:
    """The computing thread would lose its core with the lock of the connection in its hand."""

    def worker(rank: int) -> list[Any]:
        begun: list[tuple[int, int]] = []
        begin = dist.isend

        def noted(buffer: torch.Tensor, *rest: Any) -> Any:
            begun.append((threading.get_ident(), int(buffer[0])))
            return begin(buffer, *rest)

        with patch.object(dist, "isend", noted):
            waiting = []
            for number in range(20):
                messages = [Message("in", number, 1 - rank, torch.full((5,), float(number)))]
                arriving = [Message("in", number, 1 - rank, torch.zeros(5))]
                waiting.append((GroupTransport().post(messages, arriving), arriving[0].buffer))
            for pending, _ in waiting:
                pending.wait()
        threads = {thread for thread, _ in begun}
        arrived = [int(buffer[0]) for _, buffer in waiting]
        return [len(threads), threading.get_ident() in threads, [n for _, n in begun], arrived]

    wanted = [1, False, list(range(20)), list(range(20))]
    assert launch(worker, 2, time_limit_s=60) == [wanted, wanted]


def test_arrays_of_inference_mode_travel() -> None:
    def worker(rank: int) -> list[float]:
        transport = GroupTransport()
        with torch.inference_mode():
            mine, other = torch.full((3,), float(rank)), torch.zeros(3)
            transport.post(
                [Message("in", 0, 1 - rank, mine)], [Message("in", 0, 1 - rank, other)]
            ).wait()
        return other.tolist()

    assert launch(worker, 2, time_limit_s=60) == [[1.0] * 3, [0.0] * 3]
