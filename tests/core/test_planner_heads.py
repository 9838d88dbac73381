"""All-to-all by heads and its mix with a ring, against a count of every token and head."""

from itertools import product
from typing import Any

import pytest

from cpcore import planner
from tests.support.errors import refused

D, DV = 3, 2


def needed_heads(degree: int, q_heads: int, kv_heads: int) -> list[tuple[set[int], set[int]]]:
    """Query heads that each rank computes, and the key/value heads that these read."""
    per_rank, group = q_heads // degree, q_heads // kv_heads
    queries = [set(range(r * per_rank, (r + 1) * per_rank)) for r in range(degree)]
    return [(mine, {h // group for h in mine}) for mine in queries]


def counted(tokens: int, degree: int, q_heads: int, kv_heads: int, rank: int) -> dict[str, int]:
    """Elements that one rank sends, token by token and head by head."""
    needs = needed_heads(degree, q_heads, kv_heads)
    sent = dict.fromkeys(("in", "out", "gradient in", "gradient out"), 0)
    for token, (peer, (queries, keys)) in product(range(tokens * degree), enumerate(needs)):
        owner = token // tokens
        if owner == peer:
            continue
        if owner == rank:  # its token goes to the rank that computes with it
            sent["in"] += len(queries) * D + len(keys) * (D + DV)
            sent["gradient in"] += len(queries) * DV
        if peer == rank:  # and what the rank has computed for a foreign token goes home
            sent["out"] += len(queries) * DV
            sent["gradient out"] += len(queries) * D + len(keys) * (D + DV)
    return sent


@pytest.mark.parametrize(("q_heads", "kv_heads"), [(8, 8), (8, 2), (8, 1), (12, 4), (6, 2)])
def test_every_degree_moves_what_a_count_by_token_and_head_moves(
    q_heads: int, kv_heads: int
) -> None:
    for degree in planner.head_degrees(q_heads, kv_heads):
        rows = planner.all_to_all_traffic(
            4, degree, q_heads=q_heads, kv_heads=kv_heads, head_dim=D, value_dim=DV, grad_bytes=4
        )
        for rank in range(degree):
            assert {row.phase: row.elements_sent for row in rows} == counted(
                4, degree, q_heads, kv_heads, rank
            )
        for row in rows:
            size = 4 if row.phase.startswith("gradient") else 2
            assert row.bytes_sent == row.bytes_received == size * row.elements_received
            assert (row.messages, row.collectives) == (degree - 1, int(degree > 1))


@pytest.mark.parametrize(("q_heads", "kv_heads"), [(8, 8), (8, 2), (12, 4), (6, 2), (9, 3)])
def test_a_degree_is_allowed_when_heads_and_copies_come_out_even(
    q_heads: int, kv_heads: int
) -> None:
    """Every rank has equally many query heads, reads equally many key/value heads, and these are
    the same number of copies each.
    """
    even = []
    for degree in range(1, q_heads + 1):
        if q_heads % degree:
            continue
        needs = needed_heads(degree, q_heads, kv_heads)
        reads = {len(keys) for _, keys in needs}
        copies = {sum(head in keys for _, keys in needs) for head in range(kv_heads)}
        if len(reads) == len(copies) == 1:
            even.append(degree)
            split = planner.split_heads(q_heads, kv_heads, degree)
            assert split == (q_heads // degree, reads.pop(), copies.pop())
    assert planner.head_degrees(q_heads, kv_heads) == tuple(even)


def test_all_to_all_of_a_long_sample_beats_the_ring_and_grouping_helps_the_ring_more() -> None:
    """S = 131,072, R = 8, heads of 128, 2 bytes: GB per layer and rank, forward."""
    found = {}
    for kv_heads in (8, 32):
        sizes: dict[str, int] = {"kv_heads": kv_heads, "head_dim": 128}
        ring, *_ = planner.attention_traffic([16_384] * 8, 0, "ring", **sizes)
        inward, outward, *_ = planner.all_to_all_traffic(16_384, 8, q_heads=32, **sizes)
        both = inward.bytes_sent + outward.bytes_sent
        found[kv_heads] = (round(ring.bytes_sent / 1e9, 2), round(both / 1e9, 2))
    assert found == {8: (0.47, 0.29), 32: (1.88, 0.47)}


@pytest.mark.parametrize(("q_heads", "kv_heads"), [(8, 8), (8, 4), (16, 4), (32, 2)])
def test_all_to_all_moves_less_than_a_ring_of_more_than_one_group_and_one(
    q_heads: int, kv_heads: int
) -> None:
    """R > g + 1, as long as no key head is copied."""
    sizes: dict[str, int] = {"kv_heads": kv_heads, "head_dim": D}
    for ranks in planner.head_degrees(q_heads, kv_heads):
        if 1 < ranks <= kv_heads:
            ring, *_ = planner.attention_traffic([6] * ranks, 0, "ring", **sizes)
            inward, outward, *_ = planner.all_to_all_traffic(6, ranks, q_heads=q_heads, **sizes)
            traded = inward.elements_sent + outward.elements_sent
            assert (traded < ring.elements_sent) == (ranks > q_heads // kv_heads + 1)


def test_with_one_key_head_the_ring_always_moves_less() -> None:
    """Every rank of the trade then needs a copy of it, and queries and outputs come on top."""
    sizes: dict[str, int] = {"kv_heads": 1, "head_dim": D}
    for ranks in planner.head_degrees(16, 1)[1:]:
        ring, *_ = planner.attention_traffic([6] * ranks, 0, "ring", **sizes)
        inward, outward, *_ = planner.all_to_all_traffic(6, ranks, q_heads=16, **sizes)
        assert ring.elements_sent < inward.elements_sent + outward.elements_sent


SIZES: dict[str, int] = {"q_heads": 8, "kv_heads": 4, "head_dim": 5}


def test_a_hop_of_a_mix_carries_as_many_elements_as_one_of_the_ring() -> None:
    """degree times the tokens of 1/degree of the heads: only the work beside it grows."""
    ring = planner.attention_traffic([6] * 8, 0, "ring", kv_heads=4, head_dim=5)[0]
    for degree in (1, 2, 4):
        hops = 8 // degree - 1
        mix = planner.mixed_traffic(6, degree, 8 // degree, **SIZES).ring[0]
        assert mix.elements_sent / hops == ring.elements_sent / 7


def test_a_mix_with_one_group_or_groups_of_one_is_one_of_the_two() -> None:
    alone = planner.mixed_traffic(6, 1, 4, **SIZES)
    ring = planner.attention_traffic([6] * 4, 0, "ring", kv_heads=4, head_dim=5)
    assert alone.ring == ring
    assert all(row.elements_sent == 0 for row in alone.all_to_all)
    assert alone.forward_bytes == ring[0].bytes_sent
    heads = planner.mixed_traffic(6, 4, 1, **SIZES)
    assert heads.all_to_all == planner.all_to_all_traffic(6, 4, **SIZES)
    assert all(row.elements_sent == 0 for row in heads.ring)


def test_a_mix_counts_each_foreign_key_of_its_own_heads_once_over_the_ring() -> None:
    """2 heads groups of 3 ring stations, 6 tokens a rank: 24 foreign tokens, 2 of 4 heads."""
    mix = planner.mixed_traffic(6, 2, 3, **SIZES)
    assert mix.ring[0].elements_received == 24 * 2 * (5 + 5)
    inward, outward, *_ = planner.all_to_all_traffic(6, 2, **SIZES)
    total = inward.elements_sent + outward.elements_sent + mix.ring[0].elements_sent
    assert mix.forward_bytes == 2 * total


@pytest.mark.parametrize(
    ("change", "argument", "wanted", "received"),
    [
        ({"degree": 3}, "degree", "one of 1, 2, 4, 8", "3"),
        ({"degree": 16}, "degree", "one of 1, 2, 4, 8", "16"),
        ({"degree": 0}, "degree", "an integer of at least 1", "0"),
        ({"kv_heads": 3}, "kv_heads", "a divisor of q_heads = 8", "3"),
        ({"tokens": 0}, "tokens", "an integer of at least 1", "0"),
        ({"head_dim": 0}, "head_dim", "an integer of at least 1", "0"),
        ({"value_dim": 0}, "value_dim", "an integer of at least 1", "0"),
        ({"element_bytes": 0}, "element_bytes", "an integer of at least 1", "0"),
        ({"grad_bytes": 0}, "grad_bytes", "an integer of at least 1", "0"),
    ],
)
def test_a_degree_that_the_heads_forbid_is_refused(
    change: dict[str, Any], argument: str, wanted: str, received: str
) -> None:
    good = {"tokens": 4, "degree": 2} | SIZES
    with refused(argument, wanted, received):
        planner.all_to_all_traffic(**(good | change))
    with refused(argument, wanted, received):
        planner.mixed_traffic(ring_size=2, **(good | change))


def test_a_ring_of_no_group_is_refused() -> None:
    with refused("ring_size", "an integer of at least 1", "0"):
        planner.mixed_traffic(4, 2, 0, **SIZES)
