"""Closed forms of traffic and residency, against the ledger's count of the events."""

from typing import Any

import pytest

from cpcore import LedgerRow, from_lengths, ledger, planner, schedule
from tests.support.errors import refused

SHARDS = [(8,), (4, 4), (2, 3), (3, 1, 0, 2), (0, 5, 1), (2, 2, 2, 2, 2)]
SIZES: dict[str, Any] = {"kv_heads": 2, "head_dim": 4, "value_dim": 3}
BYTES: dict[str, Any] = {"element_bytes": 2, "grad_bytes": 4}


def counted(lengths: tuple[int, ...], protocol: str, **more: Any) -> list[LedgerRow]:
    layout = from_lengths(lengths)
    events = schedule(layout, None, protocol=protocol)
    return ledger(events, layout, q_heads=6, **SIZES, **BYTES, **more)


@pytest.mark.parametrize("protocol", planner.PROTOCOLS)
@pytest.mark.parametrize("lengths", SHARDS, ids=str)
def test_every_protocol_moves_what_the_ledger_counts(
    lengths: tuple[int, ...], protocol: str
) -> None:
    rows = counted(lengths, protocol)
    for rank in range(len(lengths)):
        forms = planner.attention_traffic(lengths, rank, protocol, **SIZES, **BYTES)
        mine = {row.phase: row for row in rows if row.rank == rank}
        assert [form.phase for form in forms] == ["forward", "replay", "return"]
        for form in forms:
            row = mine.get(form.phase, LedgerRow(rank, form.phase))  # R = 1 returns nothing
            assert form._asdict() == {name: getattr(row, name) for name in form._fields}


@pytest.mark.parametrize("protocol", planner.PROTOCOLS)
@pytest.mark.parametrize("lengths", SHARDS, ids=str)
def test_every_protocol_holds_what_the_ledger_counts(
    lengths: tuple[int, ...], protocol: str
) -> None:
    rows = [row for row in counted(lengths, protocol, state_bytes=8) if row.phase == "resident"]
    for rank, row in enumerate(rows):
        form = planner.residency(
            lengths, rank, protocol, q_heads=6, state_bytes=8, **SIZES, **BYTES
        )
        assert form._asdict() == {name: getattr(row, name) for name in form._fields}


@pytest.mark.parametrize(
    ("protocol", "messages", "collectives"),
    [("ring", 21, 0), ("ring_full_return", 22, 0), ("direct", 21, 0), ("all_gather", 21, 3)],
)
def test_messages_of_a_training_step_depend_on_the_protocol(
    protocol: str, messages: int, collectives: int
) -> None:
    """3(R − 1), 3R − 2, 3(R − 1), and three collectives, for R = 8."""
    rows = planner.attention_traffic([4] * 8, 0, protocol, kv_heads=1, head_dim=1)
    assert sum(row.messages for row in rows) == messages
    assert sum(row.collectives for row in rows) == collectives


def test_forward_traffic_of_even_shards_is_two_blocks_for_each_of_the_other_ranks() -> None:
    """2 · (R − 1) · c · d/g elements: almost constant in R when S is fixed."""
    sent = {}
    for ranks in (2, 4, 8, 64):
        c = 2**16 // ranks
        row, *_ = planner.attention_traffic([c] * ranks, 0, "ring", kv_heads=8, head_dim=128)
        assert row.elements_sent == 2 * (ranks - 1) * c * 8 * 128
        sent[ranks] = row.elements_sent
    assert sent[64] < 2 * sent[2]


def test_elements_that_are_not_given_are_two_bytes_and_gradients_follow_the_keys() -> None:
    rows = planner.attention_traffic([3, 5], 0, "ring", kv_heads=2, head_dim=4)
    assert all(row.bytes_sent == 2 * row.elements_sent > 0 for row in rows)
    rows = planner.attention_traffic([3, 5], 0, "ring", kv_heads=2, head_dim=4, element_bytes=8)
    assert all(row.bytes_received == 8 * row.elements_received > 0 for row in rows)
    held = planner.residency([3, 5], 0, "ring", q_heads=2, kv_heads=1, head_dim=4)
    assert held.resident_bytes == 2 * sum(held[:-1])


def test_shard_lengths_are_those_of_the_contiguous_layout() -> None:
    from cpcore import contiguous

    for seq_len, ranks in ((0, 3), (7, 3), (48, 5), (3, 4)):
        assert planner.shard_lengths(seq_len, ranks) == contiguous(seq_len, ranks).lengths


GOOD: dict[str, Any] = {"lengths": [2, 3], "rank": 0, "protocol": "ring", "kv_heads": 2,
                        "head_dim": 4}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "argument", "wanted", "received"),
    [
        ({"rank": 2}, "rank", "below 2, one of lengths", "2"),
        ({"rank": -1}, "rank", "an integer of at least 0", "-1"),
        ({"lengths": []}, "lengths", "tokens of each rank, at least one rank", "[]"),
        ({"lengths": [1, -1]}, "lengths", "an integer of at least 0", "-1"),
        ({"lengths": 3}, "lengths", "tokens of each rank, at least one rank", "3"),
        ({"protocol": "star"}, "protocol", "one of ring, ring_full_return, direct, all_gather",
         "'star'"),
        ({"kv_heads": 0}, "kv_heads", "an integer of at least 1", "0"),
        ({"head_dim": 0}, "head_dim", "an integer of at least 1", "0"),
        ({"value_dim": 0}, "value_dim", "an integer of at least 1", "0"),
        ({"element_bytes": 0}, "element_bytes", "an integer of at least 1", "0"),
        ({"grad_bytes": 0}, "grad_bytes", "an integer of at least 1", "0"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(
    change: dict[str, Any], argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        planner.attention_traffic(**(GOOD | change))
    with refused(argument, wanted, received):
        planner.residency(q_heads=4, **(GOOD | change))


def test_residency_refuses_heads_that_do_not_group() -> None:
    with refused("kv_heads", "a divisor of q_heads = 3", "2"):
        planner.residency(q_heads=3, **GOOD)
