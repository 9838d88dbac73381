"""Pairs and flops in closed form, against a count of the events and against numpy's products."""

import math
from typing import Any

import pytest

from cpcore import Visibility, contiguous, planner, schedule, striped, zigzag
from cpcore.planner import ModelShape
from tests.support.errors import refused

CUTS = {"contiguous": contiguous, "striped": striped, "zigzag": zigzag}
SIZES = [(8, 1), (16, 2), (12, 3), (64, 4), (40, 5)]


def test_pairs_in_total_are_those_of_a_double_loop() -> None:
    for n in (1, 2, 7, 12):
        pairs = [(i, j) for i in range(n) for j in range(n)]
        assert planner.full_pairs(n) == len(pairs)
        assert planner.causal_pairs(n) == sum(j <= i for i, j in pairs)
        for window in (1, 3, 12, 50):
            seen = sum(j <= i and i - j < window for i, j in pairs)
            assert planner.window_pairs(n, window) == seen


def test_no_token_has_no_pairs() -> None:
    found = planner.full_pairs(0), planner.causal_pairs(0), planner.window_pairs(0, 3)
    assert found == (0, 0, 0)


@pytest.mark.parametrize("layout", planner.LAYOUTS)
@pytest.mark.parametrize(("seq_len", "ranks"), SIZES)
def test_every_rank_and_step_has_the_pairs_of_the_events(
    layout: str, seq_len: int, ranks: int
) -> None:
    events = list(schedule(CUTS[layout](seq_len, ranks), Visibility(), backward=False))
    seen = {(event.rank, event.step): event.pairs for event in events}
    assert len(seen) == ranks**2
    for (rank, step), pairs in seen.items():
        assert planner.step_pairs(layout, seq_len, ranks, rank, step) == pairs
    for step in range(ranks):
        most = max(seen[rank, step] for rank in range(ranks))
        assert planner.slowest_pairs(layout, seq_len, ranks, step) == most
    totals = [sum(seen[rank, step] for step in range(ranks)) for rank in range(ranks)]
    assert [planner.rank_pairs(layout, seq_len, ranks, r) for r in range(ranks)] == totals
    slowest = sum(max(seen[r, t] for r in range(ranks)) for t in range(ranks))
    expected = sum(totals) / ranks / slowest
    assert planner.ring_efficiency(layout, seq_len, ranks) == pytest.approx(expected)


def test_sixty_four_positions_on_four_ranks() -> None:
    """The numbers of the interview, per rank and then per step."""
    rows = {name: [planner.rank_pairs(name, 64, 4, r) for r in range(4)] for name in CUTS}
    assert rows == {
        "contiguous": [136, 392, 648, 904],
        "striped": [496, 512, 528, 544],
        "zigzag": [520] * 4,
    }
    steps = {name: [planner.slowest_pairs(name, 64, 4, t) for t in range(4)] for name in CUTS}
    assert steps == {
        "contiguous": [136, 256, 256, 256],
        "striped": [136] * 4,
        "zigzag": [136, 128, 128, 128],
    }
    shares = [round(100 * planner.ring_efficiency(name, 64, 4), 1) for name in CUTS]
    assert shares == [57.5, 95.6, 100.0]


def test_without_a_mask_every_step_is_a_full_block() -> None:
    for layout in planner.LAYOUTS:
        assert planner.slowest_pairs(layout, 64, 4, 2, causal=False) == 256


def test_the_plain_ring_tends_to_its_limit_from_above() -> None:
    for ranks in (2, 4, 8, 16):
        limit = planner.plain_ring_limit(ranks)
        near = planner.ring_efficiency("contiguous", 2**20, ranks)
        assert limit < near < limit + 1e-4


def test_flops_count_two_for_each_multiply_add_of_each_product() -> None:
    """Full block of Q × K: forward QKᵀ and PV; backward QKᵀ again, dO Vᵀ, dS K, dSᵀ Q, Pᵀ dO."""
    heads, q, k, d, dv = 3, 5, 7, 4, 2
    products = {False: [(q, d, k), (q, k, dv)],
                True: [(q, d, k), (q, dv, k), (q, k, d), (k, q, d), (k, q, dv)]}  # fmt: skip
    for backward, shapes in products.items():
        expected = heads * sum(2 * math.prod(shape) for shape in shapes)
        assert planner.attention_flops(q * k, heads, d, dv, backward=backward) == expected
    assert planner.attention_flops(10, 2, 8) == 4 * 10 * 16
    assert planner.attention_flops(10, 2, 8, backward=True) == 10 * 10 * 16


def test_weights_cost_two_flops_a_token_and_twice_that_backward() -> None:
    model = ModelShape("small", 3, 8, 4, 2, 5, 7, 11)
    matrices = 3 * (8 * 20 + 2 * 8 * 10 + 20 * 8 + 3 * 8 * 7) + 8 * 11
    assert planner.matmul_flops(model, 6) == 2 * 6 * matrices
    assert planner.matmul_flops(model, 6, backward=True) == 4 * 6 * matrices


@pytest.mark.parametrize(
    ("arguments", "argument", "wanted", "received"),
    [
        (("star", 8, 2, 0, 0), "layout", "one of contiguous, striped, zigzag", "'star'"),
        (("zigzag", 10, 4, 0, 0), "seq_len", "a multiple of 2 · cp_size = 8", "10"),
        (("zigzag", 4, 4, 0, 0), "seq_len", "an integer of at least 8", "4"),
        (("zigzag", 8, 0, 0, 0), "cp_size", "an integer of at least 1", "0"),
        (("zigzag", 8, 2, 2, 0), "rank", "below cp_size = 2", "2"),
        (("zigzag", 8, 2, 0, 2), "step", "below cp_size = 2", "2"),
    ],
)
def test_uneven_shards_and_unknown_layouts_are_refused(
    arguments: Any, argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        planner.step_pairs(*arguments)


@pytest.mark.parametrize(
    ("call", "argument", "wanted", "received"),
    [
        (lambda: planner.full_pairs(-1), "seq_len", "an integer of at least 0", "-1"),
        (lambda: planner.causal_pairs(-1), "seq_len", "an integer of at least 0", "-1"),
        (lambda: planner.window_pairs(3, 0), "window", "an integer of at least 1", "0"),
        (lambda: planner.attention_flops(-1, 1, 1), "pairs", "an integer of at least 0", "-1"),
        (lambda: planner.attention_flops(1, 0, 1), "q_heads", "an integer of at least 1", "0"),
        (lambda: planner.attention_flops(1, 1, 1, 0), "value_dim", "an integer of at least 1",
         "0"),
        (lambda: planner.plain_ring_limit(0), "cp_size", "an integer of at least 1", "0"),
        (lambda: planner.ring_efficiency("zigzag", 8, 0), "cp_size", "an integer of at least 1",
         "0"),
    ],
)  # fmt: skip
def test_counts_that_cannot_be_are_refused(
    call: Any, argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        call()
