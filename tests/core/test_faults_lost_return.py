"""A lost return drops exactly the sum that the message carried, and nothing else shows it."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Layout, contiguous, dense_attention_backward, from_lengths, simulate, zigzag
from cpcore.schedule import PROTOCOLS
from tests.support.errors import refused
from tests.support.runs import Setting, setting

Array = NDArray[Any]
LAYOUTS = {"zigzag": zigzag(9, 3), "uneven": from_lengths([3, 0, 2, 4]), "two": contiguous(5, 2)}


def contributors(protocol: str, size: int, rank: int, owner: int) -> set[int]:
    """Whose queries are in the message that `rank` sends for `owner`, from the description.

    A ring's sum for an owner starts at the rank after it, or with the owner itself in a full
    return, and grows hop by hop; otherwise a rank sends only what it computed.
    """
    if protocol in ("direct", "all_gather"):
        return {rank} - {owner}
    hops = (rank - owner) % size
    on_the_way = {(owner + step) % size for step in range(1, hops + 1)}
    return on_the_way | {owner} if protocol == "ring_full_return" and size > 1 else on_the_way


def contribution(case: Setting, layout: Layout, ranks: set[int]) -> tuple[Array, Array]:
    """dk and dv that the queries of these ranks add: dout of all other rows set to 0."""
    p = case.problem
    rows = np.zeros(layout.seq_len, bool)
    for rank in ranks:
        rows[layout.owned[rank]] = True
    dout = np.where(rows[:, None], p.dout, 0)
    _, dk, dv = dense_attention_backward(p.q, p.k, p.v, dout, visible=p.visible)
    return dk, dv


def returns(protocol: str, cp_size: int) -> list[tuple[int, int]]:
    """(rank, owner) of every gradient message: each rank's for every other owner.

    Under the full return a sum also passes its own rank on the way.
    """
    pairs = product(range(cp_size), repeat=2)
    return [(r, o) for r, o in pairs if r != o or protocol == "ring_full_return"]


@pytest.mark.parametrize("max_block", [None, 2])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_exactly_the_sum_in_the_message_is_lost(
    protocol: str, name: str, max_block: int | None
) -> None:
    layout = LAYOUTS[name]
    case = setting(layout)
    right = case.run(protocol=protocol)
    shown = 0
    for rank, owner in returns(protocol, layout.cp_size):
        fault = ("lost_return", rank, owner)
        run = case.run(protocol=protocol, max_block=max_block, fault=fault)
        lost = contribution(case, layout, contributors(protocol, layout.cp_size, rank, owner))
        elsewhere = np.delete(np.arange(layout.seq_len), layout.owned[owner])
        for got, whole, gone in zip((run.dk, run.dv), (right.dk, right.dv), lost, strict=True):
            assert got is not None
            assert whole is not None
            gone = gone.copy()
            gone[:, elsewhere] = 0
            # 1e-12: scores stay below 10, sums below 40 terms
            np.testing.assert_allclose(got, whole - gone, rtol=0, atol=1e-12)
            shown += np.abs(gone).max() > 1e-3
    assert shown >= layout.cp_size


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_output_lse_loss_and_dq_do_not_show_a_lost_return(protocol: str) -> None:
    case = setting(LAYOUTS["zigzag"])
    for rank, owner in returns(protocol, 3):
        fault = ("lost_return", rank, owner)
        agreeing = case.agreeing(case.run(protocol=protocol, fault=fault))
        assert agreeing == {"output", "lse", "loss", "dq"}


def test_the_laboratory_loses_a_return_from_rank_1_and_has_none_to_lose_from_rank_0() -> None:
    """Causal 2 + 3: rank 0's rows see no key of rank 1, so its return is a message of zeros."""
    case = setting(from_lengths([2, 3]), heads=(1, 1))
    everything = {"output", "lse", "loss", "dq", "dk", "dv"}
    assert case.agreeing(case.run(fault=("lost_return", 0, 1))) == everything
    lossy = case.run(fault=("lost_return", 1, 0))
    assert case.agreeing(lossy) == everything - {"dk", "dv"}
    right = case.run()
    for got, wanted in ((lossy.dk, right.dk), (lossy.dv, right.dv)):
        assert got is not None
        assert wanted is not None
        changed = np.abs(got - wanted).max(axis=(0, -1)) > 1e-3
        assert changed.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cp_size", [1, 2, 3])
def test_a_return_that_no_message_carries_is_refused(protocol: str, cp_size: int) -> None:
    """A rank's own share stays at home, but for the full return; one rank returns nothing."""
    case = setting(from_lengths([4, 2, 3][:cp_size]))
    for fault in (("lost_return", rank, rank) for rank in range(cp_size)):
        if protocol == "ring_full_return" and cp_size > 1:
            case.run(protocol=protocol, fault=fault)
            continue
        with refused("fault", "(rank, owner) of a return that the events hold", repr(fault)):
            case.run(protocol=protocol, fault=fault)


def test_a_run_without_dout_takes_the_fault_and_shows_nothing_of_it() -> None:
    """One call computes the loss, a second one with its dout the gradients: same arguments."""
    x = np.arange(8.0).reshape(4, 2)
    lossy = simulate(x, x, x, contiguous(4, 2), None, fault=("lost_return", 1, 0))
    assert np.array_equal(lossy.output, simulate(x, x, x, contiguous(4, 2), None).output)
    assert lossy.dk is None


@pytest.mark.parametrize(
    ("fault", "argument", "wanted", "received"),
    [
        (("lost_return", 2, 0), "fault rank", "a rank below 2", 2),
        (("lost_return", 0, 2), "fault owner", "a rank below 2", 2),
        (("lost_return", -1, 0), "fault rank", "an integer of at least 0", -1),
        (("lost_return", 0, 1.0), "fault owner", "an integer of at least 0", 1.0),
    ],
)
def test_a_lost_return_names_two_ranks(
    fault: Any, argument: str, wanted: str, received: Any
) -> None:
    with refused(argument, wanted, received):
        setting(from_lengths([2, 3])).run(fault=fault)


@pytest.mark.parametrize("fault", ["no such fault", ("lost_return", 0), ("own_lse", 0, 1), 3])
def test_an_unknown_fault_is_refused_with_the_names_of_all(fault: Any) -> None:
    with pytest.raises(ValueError, match="received ") as caught:
        setting(from_lengths([2, 3])).run(fault=fault)
    message = str(caught.value)
    assert message.startswith("fault: expected ('lost_return', rank, owner) or one of [")
    assert message.endswith(f"], received {fault!r}")
    assert "'own_output_and_lse'" in message
