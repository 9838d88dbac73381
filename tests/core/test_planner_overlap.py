"""Step times, thresholds and whole plans, against sums over the events and over their bytes."""

import math
from itertools import groupby
from typing import Any

import pytest

from cpcore import Visibility, contiguous, ledger, planner, schedule, striped, zigzag
from cpcore.planner import Hardware, ModelShape
from tests.support.errors import refused

CUTS = {"contiguous": contiguous, "striped": striped, "zigzag": zigzag}
MODEL = ModelShape("small", 2, 24, 6, 2, 4, 7, 11)
MACHINE = Hardware("box", 1000.0, 10**6, 50.0, 4, 40.0, 10.0)
F, BW = 1000.0, 40.0


def pairs_and_tokens(layout: str, seq_len: int, ranks: int, causal: bool) -> list[tuple[int, int]]:
    """Most pairs of any rank at each forward step, and most tokens that any rank sends in it."""
    rule = Visibility(causal=causal)
    events = schedule(CUTS[layout](seq_len, ranks), rule, backward=False)
    steps = [list(group) for _, group in groupby(events, key=lambda event: event.step)]
    return [(max(e.pairs for e in step), max(e.sent_tokens for e in step)) for step in steps]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("layout", planner.LAYOUTS)
@pytest.mark.parametrize(("seq_len", "ranks"), [(16, 1), (16, 2), (64, 4), (40, 5)])
def test_ring_steps_are_the_pairs_and_bytes_of_the_events(
    layout: str, seq_len: int, ranks: int, causal: bool
) -> None:
    steps = planner.ring_steps(
        MODEL, seq_len, ranks, flops_per_s=F, bytes_per_s=BW, layout=layout, causal=causal
    )
    expected = pairs_and_tokens(layout, seq_len, ranks, causal)
    assert len(steps) == len(expected) == ranks
    for step, (pairs, tokens) in zip(steps, expected, strict=True):
        assert step.compute_s == pytest.approx(4 * pairs * 6 * 4 / F)
        assert step.transfer_s == pytest.approx(tokens * 2 * 2 * 4 * 2 / BW)


def test_a_backward_step_has_five_products_and_carries_the_gradients_too() -> None:
    """Full blocks of 8 × 8, 16 elements a token; keys in 2 bytes, their gradients in 4."""
    steps = planner.ring_steps(
        MODEL, 32, 4, flops_per_s=F, bytes_per_s=BW, causal=False, backward=True, grad_bytes=4,
        latency_s=0.5,
    )  # fmt: skip
    assert len(steps) == 5
    for step in steps[:3]:
        assert step.compute_s == pytest.approx(10 * 64 * 24 / F)
        assert step.transfer_s == pytest.approx(0.5 + 8 * 16 * (2 + 4) / BW)
    assert steps[3].transfer_s == 0
    assert steps[4] == (0.0, pytest.approx(0.5 + 8 * 16 * 4 / BW))
    alone = planner.ring_steps(MODEL, 32, 1, flops_per_s=F, bytes_per_s=BW, backward=True)
    assert len(alone) == 1
    assert alone[0].transfer_s == 0


def test_a_step_hides_its_transfer_or_shows_the_rest_of_it() -> None:
    assert planner.Step(2.0, 2.0).hidden
    assert planner.Step(2.0, 2.0).exposed_s == 0
    assert not planner.Step(2.0, 2.5).hidden
    assert planner.Step(2.0, 2.5).exposed_s == 0.5
    assert planner.Step(2.0, 1.5).exposed_s == 0


def first_hidden(flops: int, moved: int, f: float, bw: float, share: float) -> int:
    """The first chunk that hides, found by trying: flops·c²·share and moved·c bytes a block."""
    return next(c for c in range(1, 10**6) if flops * c * c * share / f >= moved * c / bw)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(("f", "bw"), [(3.0e5, 7.0e2), (9.89e4, 4.5e2), (1.0, 50.0)])
def test_the_threshold_is_the_first_chunk_whose_compute_takes_as_long(
    f: float, bw: float, group: int, share: float
) -> None:
    heads, dim = 4, 8
    width = heads * dim
    kv = 2 * width // group
    found = planner.smallest_hidden_chunk(f, bw, group=group, visible_share=share)
    assert found == first_hidden(4 * width, kv * 2, f, bw, share)
    for grad_bytes in (2, 4):
        back = planner.smallest_hidden_chunk_backward(
            f, bw, group=group, visible_share=share, grad_bytes=grad_bytes
        )
        assert back == first_hidden(10 * width, kv * (2 + grad_bytes), f, bw, share)


def test_balancing_doubles_the_chunk_that_hides_the_transfer() -> None:
    """989 TFLOP/s against NVLink and against the network, full and balanced causal blocks."""
    found = [
        planner.smallest_hidden_chunk(989e12, bw, visible_share=share)
        for bw in (450e9, 50e9)
        for share in (1.0, 0.5)
    ]
    assert found == [2198, 4396, 19_780, 39_560]
    assert planner.smallest_hidden_chunk(0.6 * 989e12, 450e9) == math.ceil(0.6 * 989e12 / 450e9)


def test_sixteen_bit_gradients_hide_sooner_than_keys_and_float32_ones_later() -> None:
    forward = planner.smallest_hidden_chunk(1e15, 1e10)
    back = [planner.smallest_hidden_chunk_backward(1e15, 1e10, grad_bytes=n) for n in (2, 4)]
    assert back == [0.8 * forward, 1.2 * forward]


def ring_seconds(layout: str, seq_len: int, ranks: int, bw: float) -> float:
    """Step after step, each as long as the slower of compute and transfer."""
    steps = pairs_and_tokens(layout, seq_len, ranks, True)
    return sum(max(4 * pairs * 24 / F, tokens * 32 / bw) for pairs, tokens in steps)


@pytest.mark.parametrize("layout", planner.LAYOUTS)
@pytest.mark.parametrize(("ranks", "bw"), [(1, 40.0), (2, 40.0), (4, 40.0), (8, 10.0)])
def test_a_ring_takes_its_steps_and_a_gather_its_transfer_first(
    layout: str, ranks: int, bw: float
) -> None:
    """Up to 4 ranks share a node; 8 do not, and pay for the network on every hop."""
    ring = planner.attention_time("ring", MODEL, MACHINE, 64, ranks, layout=layout)
    assert ring.total_s == pytest.approx(ring_seconds(layout, 64, ranks, bw))
    assert ring.compute_s == pytest.approx(4 * (64 * 65 / 2) / ranks * 24 / F)
    cut = CUTS[layout](64, ranks)
    events = list(schedule(cut, Visibility(), protocol="all_gather", backward=False))
    rows = ledger(events, cut, q_heads=6, kv_heads=2, head_dim=4, element_bytes=2)
    received = max(row.bytes_received for row in rows)
    busiest = max(sum(e.pairs for e in events if e.rank == r) for r in range(ranks))
    gather = planner.attention_time("all_gather", MODEL, MACHINE, 64, ranks, layout=layout)
    assert gather.total_s == pytest.approx(received / bw + 4 * busiest * 24 / F)
    assert gather.exposed_s == gather.transfer_s == pytest.approx(received / bw)


def test_all_to_all_is_balanced_and_exposes_both_exchanges() -> None:
    found = planner.attention_time("all_to_all", MODEL, MACHINE, 64, 2, layout="contiguous")
    inward, outward, *_ = planner.all_to_all_traffic(32, 2, q_heads=6, kv_heads=2, head_dim=4)
    assert found.waiting_s == 0
    assert found.exposed_s == pytest.approx((inward.bytes_sent + outward.bytes_sent) / 40)
    assert found.compute_s == pytest.approx(4 * (64 * 65 / 2) / 2 * 24 / F)


def test_only_bytes_for_other_nodes_pay_for_the_network() -> None:
    """Six ranks in nodes of four: of five peers, two are elsewhere."""
    found = planner.attention_time("all_to_all", MODEL, MACHINE, 60, 6)
    inward, outward, *_ = planner.all_to_all_traffic(10, 6, q_heads=6, kv_heads=2, head_dim=4)
    assert found.exposed_s == pytest.approx((inward.bytes_sent + outward.bytes_sent) * 2 / 5 / 10)


@pytest.mark.parametrize("layout", planner.LAYOUTS)
def test_a_mix_trades_inside_a_node_and_goes_around_between_nodes(layout: str) -> None:
    """8 ranks: heads over 2 neighbors, then a ring of 4 with shards of 16 and one key head."""
    found = planner.attention_time("mixed", MODEL, MACHINE, 64, 8, layout=layout, degree=2)
    steps = pairs_and_tokens(layout, 64, 4, True)
    ring = sum(max(4 * pairs * 12 / F, tokens * 16 / 10) for pairs, tokens in steps)
    inward, outward, *_ = planner.all_to_all_traffic(8, 2, q_heads=6, kv_heads=2, head_dim=4)
    trade = (inward.bytes_sent + outward.bytes_sent) / 40
    assert found.total_s == pytest.approx(trade + ring)
    assert found.transfer_s == pytest.approx(trade + 3 * 16 * 16 / 10)


def test_a_mix_of_one_is_the_ring_and_of_all_ranks_the_all_to_all() -> None:
    ring = planner.attention_time("ring", MODEL, MACHINE, 64, 2)
    assert planner.attention_time("mixed", MODEL, MACHINE, 64, 2, degree=1) == ring
    trade = planner.attention_time("all_to_all", MODEL, MACHINE, 64, 2)
    assert planner.attention_time("mixed", MODEL, MACHINE, 64, 2, degree=2) == trade


def test_half_of_the_peak_takes_twice_the_compute() -> None:
    full = planner.attention_time("ring", MODEL, MACHINE, 64, 4, layout="contiguous")
    half = planner.attention_time(
        "ring", MODEL, MACHINE, 64, 4, layout="contiguous", utilization=0.5
    )
    assert half.compute_s == pytest.approx(2 * full.compute_s)
    assert half.transfer_s == full.transfer_s


def test_full_attention_waits_for_no_one() -> None:
    for plan in ("ring", "all_gather"):
        found = planner.attention_time(
            plan, MODEL, MACHINE, 64, 4, layout="contiguous", causal=False
        )
        assert found.waiting_s == 0
        assert found.compute_s == pytest.approx(4 * 64 * 64 / 4 * 24 / F)


def test_buffers_of_ring_and_gather_are_those_of_residency() -> None:
    sizes: dict[str, int] = {"q_heads": 6, "kv_heads": 2, "head_dim": 4}
    held = planner.residency([16] * 4, 0, "ring", **sizes)
    blocks = 2 * held.remote_block  # in use, and arriving; 2 bytes each
    assert planner.buffer_bytes("ring", MODEL, 64, 4) == 2 * blocks
    held = planner.residency([16] * 4, 0, "all_gather", **sizes)
    assert planner.buffer_bytes("all_gather", MODEL, 64, 4) == 2 * held.remote_block
    assert planner.buffer_bytes("ring", MODEL, 64, 1) == 0
    assert planner.buffer_bytes("all_to_all", MODEL, 64, 1) == 0


def test_buffers_of_a_trade_are_the_heads_of_one_rank_for_all_its_tokens() -> None:
    """6 query and 2 key/value heads of 4 over 2 ranks: 3 and 1 heads, of 64 or of 32 tokens."""
    assert planner.buffer_bytes("all_to_all", MODEL, 64, 2) == 2 * 64 * (3 * 2 + 2) * 4
    mixed = 2 * 32 * ((3 * 2 + 2) + 2 * 2) * 4  # 4 ranks: a trade of 2, and two blocks of a ring
    assert planner.buffer_bytes("mixed", MODEL, 64, 4, degree=2) == mixed
    with refused("plan", "one of ring, all_gather, all_to_all, mixed", "'star'"):
        planner.buffer_bytes("star", MODEL, 64, 4)
    with refused("degree", "one of 1, 2, 6", "4"):
        planner.buffer_bytes("all_to_all", MODEL, 64, 4)


@pytest.mark.parametrize(
    ("times", "limit", "efficiency"),
    [
        ((9.0, 0.5, 9.0, 0.5), "compute", 0.9),
        ((8.0, 1.5, 9.0, 0.5), "imbalance", 0.8),
        ((8.0, 0.5, 9.0, 1.5), "communication", 0.8),
    ],
)
def test_the_limit_is_compute_or_the_larger_loss(
    times: tuple[float, ...], limit: str, efficiency: float
) -> None:
    found = planner.AttentionTime(*times)
    assert (found.limit, found.efficiency) == (limit, efficiency)


PLAN: dict[str, Any] = {"plan": "mixed", "model": MODEL, "machine": MACHINE, "seq_len": 64,
                        "cp_size": 4, "degree": 2}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "argument", "wanted", "received"),
    [
        ({"plan": "star"}, "plan", "one of ring, all_gather, all_to_all, mixed", "'star'"),
        ({"utilization": 1.5}, "utilization", "at most 1", "1.5"),
        ({"utilization": 0.0}, "utilization", "a finite number above 0", "0.0"),
        ({"degree": 3}, "degree", "a divisor of cp_size = 4", "3"),
        ({"degree": None}, "degree", "an integer of at least 1", "None"),
        ({"cp_size": 0}, "cp_size", "an integer of at least 1", "0"),
        ({"seq_len": 62}, "seq_len", "a multiple of 4", "62"),  # 2 shards a group, 2 pieces each
        ({"plan": "ring", "degree": None, "seq_len": 62}, "seq_len", "a multiple of 8", "62"),
        ({"plan": "all_to_all", "degree": None, "cp_size": 6}, "seq_len", "a multiple of 6", "64"),
        ({"layout": "star"}, "layout", "one of contiguous, striped, zigzag", "'star'"),
        ({"plan": "all_to_all", "degree": None}, "degree", "one of 1, 2, 6", "4"),
        ({"plan": "ring"}, "degree", "None, for ring takes none", "2"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    change: dict[str, Any], argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        planner.attention_time(**(PLAN | change))


@pytest.mark.parametrize(
    ("call", "argument", "wanted", "received"),
    [
        (lambda: planner.smallest_hidden_chunk(0.0, 1.0), "flops_per_s",
         "a finite number above 0", "0.0"),
        (lambda: planner.smallest_hidden_chunk(1.0, -1.0), "bytes_per_s",
         "a finite number above 0", "-1.0"),
        (lambda: planner.smallest_hidden_chunk(1.0, math.inf), "bytes_per_s",
         "a finite number above 0", "inf"),
        (lambda: planner.smallest_hidden_chunk(1.0, True), "bytes_per_s",
         "a finite number above 0", "True"),
        (lambda: planner.smallest_hidden_chunk(1.0, 1.0, visible_share=1.1), "visible_share",
         "at most 1", "1.1"),
        (lambda: planner.smallest_hidden_chunk(1.0, 1.0, group=0), "group",
         "an integer of at least 1", "0"),
        (lambda: planner.smallest_hidden_chunk_backward(1.0, 1.0, grad_bytes=0), "grad_bytes",
         "an integer of at least 1", "0"),
        (lambda: planner.ring_steps(MODEL, 8, 2, flops_per_s=0.0, bytes_per_s=1.0),
         "flops_per_s", "a finite number above 0", "0.0"),
    ],
)  # fmt: skip
def test_speeds_and_shares_that_cannot_be_are_refused(
    call: Any, argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        call()
