"""Faults on real processes: each fails exactly the checks that its name says, the forward never."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Layout, from_lengths, zigzag
from cpcore.distributed import GroupTransport, ThreadTransport, launch, run_threads
from cpcore.distributed.faults import AGREES, exchange_with
from tests.support.rank_cases import RankCase
from tests.support.rank_checks import RESULTS, wrong_results
from tests.support.rank_workers import Fault, Ran, attend
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, reference

RANKS = 3
PROTOCOLS = ("ring", "ring_full_return", "direct", "all_gather")


def case(protocol: str, layout: Layout) -> RankCase:
    """Causal attention in float64, four query heads over two."""
    rng, seq_len = np.random.default_rng(6), layout.seq_len

    def numbers(heads: int) -> NDArray[np.float64]:
        return rng.standard_normal((2, heads, seq_len, 4))

    visible = double_loop(range(seq_len), range(seq_len), {})
    problem = Problem(numbers(4), numbers(2), numbers(2), visible, None, None, numbers(4))
    cell = protocol, "zigzag", "causal"
    return RankCase(0, layout.cp_size, cell, layout, {}, problem, None, False, 512)


def on_processes(cases: list[RankCase], faults: list[Fault]) -> list[list[Ran]]:
    """Every case with its fault, over one group of processes."""

    def worker(rank: int) -> list[Ran]:
        transport = GroupTransport()
        return [attend(transport, each, fault) for each, fault in zip(cases, faults, strict=True)]

    ranks = launch(worker, cases[0].cp_size, time_limit_s=60)
    return [list(ran) for ran in zip(*ranks, strict=True)]


def test_a_lost_return_and_stale_keys_fail_exactly_their_checks() -> None:
    cases = [case(protocol, zigzag(18, RANKS)) for protocol in PROTOCOLS for _ in range(3)]
    faults: list[Fault] = [None, ("lost_return", 2, 0), "stale_kv"] * len(PROTOCOLS)
    for each, fault, ran in zip(cases, faults, on_processes(cases, faults), strict=True):
        name = fault[0] if isinstance(fault, tuple) else fault
        agrees = set(RESULTS) if name is None else AGREES[name]
        assert set(wrong_results(each, ran)) == set(RESULTS) - agrees, f"{each}, {fault}"


def test_a_lost_return_harms_no_owner_but_its_own() -> None:
    for protocol in PROTOCOLS:
        each = case(protocol, zigzag(18, RANKS))
        right, wrong = (
            run_threads(attend, RANKS, each, fault) for fault in (None, ("lost_return", 2, 0))
        )
        for name in ("dk", "dv"):
            same = [np.array_equal(getattr(a, name), getattr(b, name))
                    for a, b in zip(right, wrong, strict=True)]  # fmt: skip
            assert same == [False, True, True], f"{protocol}, {name}"


def divided(each: RankCase, divisors: list[int]) -> RankCase:
    """The case with the gradient of Σ over ranks of (Σ dout · output of the rank / its divisor)."""
    shards = each.layout.shard(np.asarray(each.problem.dout))
    dout = [part / divisor for part, divisor in zip(shards, divisors, strict=True)]
    problem = dataclasses.replace(each.problem, dout=each.layout.unshard(dout))
    return dataclasses.replace(each, problem=problem)


def test_a_wrong_divisor_fails_loss_and_gradients_and_leaves_the_output() -> None:
    """A mean over all rows; WRONG with each rank's own count of rows, which is 2 and 3."""
    each = case("ring", from_lengths([2, 3]))
    right, wrong = divided(each, [5, 5]), divided(each, [2, 3])
    runs = on_processes([right, wrong], [None, None])
    failed = [set(wrong_results(right, ran)) for ran in runs]
    assert failed == [set(), {"dq", "dk", "dv"}]
    losses = [
        sum(
            float((np.asarray(dout) * ran.output).sum())
            for dout, ran in zip(shards, ranks, strict=True)
        )
        for shards, ranks in zip(
            (c.layout.shard(np.asarray(c.problem.dout)) for c in (right, wrong)), runs, strict=True
        )
    ]
    exact = float((np.asarray(each.problem.dout) * reference(each.problem).out).sum()) / 5
    assert np.isclose(losses[0], exact, rtol=1e-12, atol=0)
    assert not np.isclose(losses[1], exact, rtol=1e-2, atol=0)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (
            "lost",
            "fault: expected ('lost_return', rank, owner), 'stale_kv' or None, received 'lost'",
        ),
        (("lost_return", 3, 0), "fault rank: expected a rank below 3, received 3"),
        (("lost_return", 0, -1), "fault owner: expected an integer of at least 0, received -1"),
    ],
)
def test_an_unknown_fault_is_refused(fault: Fault, wanted: str) -> None:
    with pytest.raises(ValueError, match="fault") as caught:
        exchange_with(fault, RANKS)
    assert str(caught.value) == wanted


def test_a_fault_of_blocks_is_refused_where_no_blocks_travel() -> None:
    each = case("all_to_all", zigzag(8, 2))

    def worker(transport: ThreadTransport) -> str:
        return attend(transport, each, "stale_kv").refusal

    wanted = "fault: expected none with all_to_all: no blocks travel, received StaleKv"
    assert run_threads(worker, 2, time_limit_s=5) == [wanted] * 2


def test_stale_keys_need_shards_of_one_length() -> None:
    each = case("ring", from_lengths([2, 4]))

    def worker(transport: ThreadTransport) -> str:
        return attend(transport, each, "stale_kv").refusal

    texts = run_threads(worker, 2, time_limit_s=5)
    assert texts == ["layout: expected shards of one length for this fault, received others"] * 2
