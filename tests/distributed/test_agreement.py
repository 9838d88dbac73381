"""Real processes that disagree: one ValueError on each, and a group that goes on to be right."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from cpcore import Layout, Visibility, from_lengths, zigzag
from cpcore.distributed import (
    MATH,
    GroupTransport,
    PeerError,
    context_parallel_attention,
    launch,
    run_threads,
)
from cpcore.distributed.contract import Agreement
from cpcore.distributed.state import Stats
from cpcore.distributed.transport import Transport

SEQ_LEN, RANKS = 24, 3
RIGHT = zigzag(SEQ_LEN, RANKS)
OTHER = from_lengths([2, 8, 14])
PROTOCOLS = ["ring", "ring_full_return", "direct", "all_gather", "all_to_all"]


def whole(n: int) -> Tensor:
    """q, k, v or dout of the whole sequence."""
    drawn = np.random.default_rng(n).standard_normal((1, 3, SEQ_LEN, 4))
    return torch.from_numpy(drawn)


def shards(rank: int, layout: Layout) -> list[Tensor]:
    """A rank's q, k, v and dout."""
    index = torch.from_numpy(layout.owned[rank].copy())
    q, k, v, dout = (whole(n)[:, :, index].clone() for n in range(4))
    return [q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), dout]


def attend(rank: int, layout: Layout, protocol: str, dout: Tensor | None = None) -> list[Tensor]:
    """(output, dq, dk, dv) of a rank."""
    *qkv, up = shards(rank, layout)
    out = context_parallel_attention(
        *qkv, layout=layout, visibility=Visibility(), protocol=protocol
    )
    return [out.detach(), *torch.autograd.grad(out, qkv, up if dout is None else dout)]


def told(work: Callable[[], object]) -> str:
    """What a refusal says."""
    try:
        work()
    except ValueError as error:
        return str(error)
    return ""


def wrong_layout(rank: int, protocol: str) -> str:
    return told(lambda: attend(rank, OTHER if rank == 1 else RIGHT, protocol))


def wrong_numbers(rank: int, protocol: str) -> str:
    dout = shards(rank, RIGHT)[3]
    if rank == 2:
        dout[0, 0, 0, 0] = torch.nan
    return told(lambda: attend(rank, RIGHT, protocol, dout))


def another_order(rank: int, protocol: str) -> str:
    calls = []
    for _ in range(2):
        *qkv, dout = shards(rank, RIGHT)
        out = context_parallel_attention(
            *qkv, layout=RIGHT, visibility=Visibility(), protocol=protocol
        )
        calls.append((out, qkv, dout))
    first = calls[0 if rank else 1]
    return told(lambda: torch.autograd.grad(*first))


def check_whole(ran: list[list[np.ndarray]]) -> None:
    """The shards of all ranks are (output, dq, dk, dv) of the whole sequence."""
    *qkv, dout = (whole(n).requires_grad_(n < 3) for n in range(4))
    out = torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=True)
    wanted = [out.detach(), *torch.autograd.grad(out, qkv, dout)]
    for ref, parts in zip(wanted, zip(*ran, strict=True), strict=True):
        assert np.abs(RIGHT.unshard(list(parts)) - ref.numpy()).max() < 1e-13


MISTAKES = {
    "layout: expected lengths (8, 8, 8), positions ": wrong_layout,
    "dout: expected finite numbers in every used slot, received NaN or infinity": wrong_numbers,
    "call: expected number ": another_order,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("text", MISTAKES)
def test_after_a_refusal_on_every_rank_the_same_call_is_right(text: str, protocol: str) -> None:
    """No message of the refused call is left that the next one could take for its own."""

    def worker(rank: int) -> tuple[list[str], list[np.ndarray]]:
        texts = [MISTAKES[text](rank, protocol) for _ in range(2)]
        return texts, [x.numpy() for x in attend(rank, RIGHT, protocol)]

    ran = launch(worker, RANKS, time_limit_s=30)
    for texts, _ in ran:
        assert all(each.startswith(text) for each in texts), texts
    check_whole([found for _, found in ran])


def test_no_two_phases_have_one_tag_or_number() -> None:
    """Also of one group that is reached through a new transport for every call."""

    def worker(rank: int) -> list[Any]:
        made = []
        for name in ("a", "a", "b"):
            agreement = Agreement(GroupTransport(), "forward", {"fact": name})
            agreement.close()
            agreement.close()  # a second time changes nothing
            made.append((agreement.number, agreement.tag))
        return made

    first, second = launch(worker, 2, time_limit_s=30)
    assert first == second
    assert [number for number, _ in first] == [1, 2, 3]
    assert len({tag for _, tag in first}) == 3
    assert all(0 < tag < 2**31 for _, tag in first)


def test_ranks_that_disagree_have_tags_that_never_meet() -> None:
    def worker(rank: int) -> tuple[int, str]:
        agreement = Agreement(GroupTransport(), "forward", {"fact": str(rank)})
        return agreement.tag, told(agreement.close)

    (one, text), (other, same) = launch(worker, 2, time_limit_s=30)
    assert one != other
    assert text == same == "fact: expected 0 as on rank 0, received 1 on rank 1"


def test_where_tags_are_not_heeded_payload_waits_for_the_answers() -> None:
    def worker(transport: Transport) -> bool:
        assert not transport.heeds_tags
        return Agreement(transport, "forward", {}).pending is None

    assert run_threads(worker, 2) == [True, True]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_that_every_rank_catches_costs_the_group_nothing(protocol: str) -> None:
    """The query changes before the backward pass: autograd refuses, and the next call is right."""

    def worker(rank: int) -> tuple[str, list[np.ndarray]]:
        text = ""
        *qkv, dout = shards(rank, RIGHT)
        query = qkv[0] * 1
        out = context_parallel_attention(
            query, *qkv[1:], layout=RIGHT, visibility=Visibility(), protocol=protocol
        )
        with torch.no_grad():
            query.mul_(2)
        try:
            torch.autograd.grad(out, qkv, dout)
        except RuntimeError as error:
            text = str(error)
        return text, [x.numpy() for x in attend(rank, RIGHT, protocol)]

    ran = launch(worker, RANKS, time_limit_s=30)
    if protocol != "all_to_all":  # which keeps its own copy of the query
        assert all("modified by an inplace operation" in text for text, _ in ran)
    check_whole([found for _, found in ran])


class Broken(type(MATH)):  # type: ignore[misc]
    """Plain math that fails."""

    def attend(self, *arrays: object) -> Stats:
        raise ArithmeticError("out of order")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rank_that_fails_in_the_middle_and_goes_on_ends_no_other_by_force(protocol: str) -> None:
    """Its next messages are no part of the call that the others are still in."""

    def worker(rank: int) -> str:
        transport, text = GroupTransport(time_limit_s=1.0), ""
        *qkv, _ = shards(rank, RIGHT)
        call: dict[str, Any] = {"layout": RIGHT, "visibility": Visibility(), "protocol": protocol}
        try:
            op = Broken() if rank == 1 else None
            context_parallel_attention(*qkv, group=transport, block_op=op, **call)
        except (ArithmeticError, PeerError) as error:
            text = type(error).__name__
        wide = [torch.cat([x, x], dim=3).detach() for x in qkv]
        with suppress(PeerError, ValueError):  # what it says is not the point: no process is ended
            context_parallel_attention(*wide, group=transport, **call)
        return text

    told = launch(worker, RANKS, time_limit_s=30)
    assert told[1] == "ArithmeticError"
    # Where all blocks have arrived before the first is computed, the others lack nothing yet.
    assert told[0] == told[2] == ("" if protocol == "all_gather" else "PeerError")


def test_a_group_is_counted_for_itself_also_under_a_name_that_is_used_again() -> None:
    """Ranks that were in another group before, or in none, begin together at 1."""

    def worker(rank: int) -> list[int]:
        numbers = []
        for ranks in ([0, 1], [1, 2]):
            group = dist.new_group(ranks)
            if rank in ranks:
                agreement = Agreement(GroupTransport(group), "forward", {})
                agreement.close()
                numbers.append(agreement.number)
        dist.barrier()
        agreement = Agreement(GroupTransport(), "forward", {})
        agreement.close()
        return [*numbers, agreement.number]

    assert launch(worker, 3, time_limit_s=30) == [[1, 1], [1, 1, 1], [1, 1]]
