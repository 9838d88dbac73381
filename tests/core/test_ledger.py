"""The ledger on small cases that can be counted by hand, the two-owner laboratory first."""

from typing import Any

import pytest

from cpcore import LedgerRow, Visibility, contiguous, from_lengths, ledger, schedule, zigzag

LABORATORY = from_lengths([2, 3])  # D = 2, one head, float64: 4 elements a token
ONE_HEAD: dict[str, Any] = {"q_heads": 1, "kv_heads": 1, "head_dim": 2}


def rows_of(phase: str, rows: list[LedgerRow]) -> list[LedgerRow]:
    return [row for row in rows if row.phase == phase]


def column(name: str, rows: list[LedgerRow]) -> list[int]:
    return [getattr(row, name) for row in rows]


def laboratory(protocol: str = "direct", **options: Any) -> list[LedgerRow]:
    events = schedule(LABORATORY, Visibility(), protocol=protocol)
    return ledger(events, LABORATORY, **(ONE_HEAD | options))


@pytest.mark.parametrize("protocol", ["direct", "ring", "all_gather"])
def test_the_laboratory_sends_and_receives_these_elements_and_bytes(protocol: str) -> None:
    rows = laboratory(protocol)
    assert [row.phase for row in rows] == [
        p for p in ("forward", "replay", "return", "resident") for _ in range(2)
    ]
    assert column("rank", rows) == [0, 1] * 4
    sent, received = column("elements_sent", rows), column("elements_received", rows)
    assert (sent[:6], received[:6]) == ([8, 12, 8, 12, 12, 8], [12, 8, 12, 8, 8, 12])
    assert column("tokens_sent", rows)[:6] == [2, 3, 2, 3, 3, 2]
    assert column("tokens_received", rows)[:6] == [3, 2, 3, 2, 2, 3]
    assert column("messages", rows) == [1] * 6 + [0, 0]
    total = [sum(row.bytes_sent for row in rows if row.rank == rank) for rank in (0, 1)]
    assert total == [224, 256]
    assert [sum(r.bytes_received for r in rows if r.rank == rank) for rank in (0, 1)] == [256, 224]


def test_the_laboratory_holds_these_elements() -> None:
    """Rank 0 computes its own 2 × 2 tile only; rank 1 its own 3 × 3 and the foreign 3 × 2."""
    rows = rows_of("resident", laboratory())
    held = {name: column(name, rows) for name in LedgerRow._fields[2:]}
    filled = {
        "qkv": [12, 18],
        "remote_block": [12, 8],
        "online_state": [8, 12],
        "workspace": [4, 9],
        "output": [4, 6],
        "lse": [2, 3],
        "gradients": [12, 18],
        "buffers": [12 + 2 * 12, 8 + 2 * 12],
        "resident_bytes": [90 * 8, 106 * 8],
    }
    assert held == {name: [0, 0] for name in held} | filled


def test_a_full_return_ring_takes_one_more_hop_home() -> None:
    """Rank 0 sends its own 2 tokens, then the sum for rank 1's 3; rank 1 the other way round."""
    rows = rows_of("return", laboratory("ring_full_return"))
    assert column("messages", rows) == [2, 2]
    assert column("elements_sent", rows) == column("elements_received", rows) == [20, 20]


def test_each_stream_and_the_running_state_have_element_sizes_of_their_own() -> None:
    rows = laboratory(element_bytes=2, grad_bytes=4, state_bytes=16)
    assert column("bytes_sent", rows)[:6] == [16, 24, 16, 24, 48, 32]
    assert column("bytes_received", rows)[:6] == [24, 16, 24, 16, 32, 48]
    # rank 0: qkv 12, remote 12, output 4, receive buffer 12 at 2 bytes; state 8, tile 4, lse 2 at
    # 16; gradients 12 and 24 of messages at 4
    assert rows[-2].resident_bytes == 2 * 40 + 16 * 14 + 4 * 36
    assert column("elements_sent", rows) == column("elements_sent", laboratory())


def test_gradients_and_state_take_the_size_of_the_keys_unless_another_is_given() -> None:
    rows = laboratory(element_bytes=2)
    assert column("bytes_sent", rows)[:6] == [16, 24, 16, 24, 24, 16]
    assert rows[-2].resident_bytes == 90 * 2
    assert laboratory() == laboratory(element_bytes=8, grad_bytes=8, state_bytes=8)


def test_heads_and_widths_enter_where_they_should() -> None:
    """Traffic counts Hkv · (D + Dv) a token; query heads enter what is held, not what is sent."""
    events = list(schedule(LABORATORY, Visibility(), protocol="direct"))
    sizes = {"q_heads": 6, "kv_heads": 2, "head_dim": 4, "value_dim": 3}
    rows = ledger(events, LABORATORY, **sizes)  # type: ignore[arg-type]
    assert column("elements_sent", rows)[:2] == [2 * 14, 3 * 14]
    first = rows[-2]
    assert (
        first._asdict()
        | {
            "qkv": 2 * (24 + 14),
            "remote_block": 3 * 14,
            "online_state": 2 * 6 * (3 + 1 + 1),
            "workspace": 2 * 6 * 2,
            "output": 2 * 6 * 3,
            "lse": 2 * 6,
            "gradients": 2 * (24 + 14),
            "buffers": (3 + 2 * 3) * 14,
        }
        == first._asdict()
    )


def test_repeated_key_heads_would_multiply_the_bytes_and_grouping_does_not() -> None:
    """C21: a hop carries Hkv heads, whatever Hq is."""
    events = list(schedule(contiguous(8, 4), None))
    by_heads = {
        (q, kv): rows_of("forward", ledger(events, contiguous(8, 4), q_heads=q, kv_heads=kv,
                                           head_dim=16, element_bytes=2))[0].bytes_sent
        for q, kv in ((8, 1), (8, 2), (2, 2), (8, 8))
    }  # fmt: skip
    hops, tokens = 3, 2
    one_head = hops * tokens * (16 + 16) * 2
    assert by_heads == {(8, 1): one_head, (8, 2): 2 * one_head, (2, 2): 2 * one_head,
                        (8, 8): 8 * one_head}  # fmt: skip


def test_forward_alone_has_no_other_phase_and_holds_no_gradient() -> None:
    events = schedule(LABORATORY, Visibility(), protocol="direct", backward=False)
    rows = ledger(events, LABORATORY, **ONE_HEAD)
    assert [row.phase for row in rows] == ["forward"] * 2 + ["resident"] * 2
    assert column("gradients", rows) == [0] * 4
    assert column("buffers", rows)[2:] == [12, 8]


def test_all_gather_holds_every_foreign_token_and_is_one_collective_a_phase() -> None:
    layout = from_lengths([3, 1, 0, 2])
    rows = ledger(schedule(layout, None, protocol="all_gather"), layout, **ONE_HEAD)
    held = rows_of("resident", rows)
    assert column("remote_block", held) == [4 * (6 - own) for own in layout.lengths]
    assert column("buffers", held) == [2 * 4 * n for n in (3, 3, 3, 3)]  # one share in, one out
    assert column("collectives", rows[:12]) == [1] * 12
    assert column("messages", rows[:12]) == [3] * 12
    for protocol in ("ring", "ring_full_return", "direct"):
        others = ledger(schedule(layout, None, protocol=protocol), layout, **ONE_HEAD)
        assert not any(column("collectives", others))
        foreign = [max(n for r, n in enumerate(layout.lengths) if r != rank) for rank in range(4)]
        assert column("remote_block", rows_of("resident", others)) == [4 * n for n in foreign]


@pytest.mark.parametrize("protocol", ["ring", "ring_full_return", "direct", "all_gather"])
def test_one_rank_sends_nothing_and_calls_no_collective(protocol: str) -> None:
    layout = from_lengths([3])
    rows = ledger(schedule(layout, None, protocol=protocol), layout, **ONE_HEAD)
    assert [row.phase for row in rows] == ["forward", "replay", "resident"]
    assert all(row[2:10] == (0,) * 8 for row in rows)
    assert (rows[-1].remote_block, rows[-1].buffers, rows[-1].workspace) == (0, 0, 9)


def test_a_smaller_largest_block_sends_the_same_elements_in_more_messages_and_holds_less() -> None:
    layout = zigzag(24, 2)
    runs = {}
    for size in (None, 4):
        events = schedule(layout, Visibility(), protocol="ring", max_block=size)
        runs[size] = ledger(events, layout, **ONE_HEAD)
    for whole, cut in zip(runs[None], runs[4], strict=True):
        assert whole[2:8] == cut[2:8]
    assert column("messages", runs[None])[:6] == [1] * 6
    assert column("messages", runs[4])[:6] == [3] * 6
    whole, cut = runs[None][-1], runs[4][-1]
    assert (whole.remote_block, cut.remote_block) == (48, 16)
    assert (whole.workspace, cut.workspace) == (144, 48)
    assert (whole.buffers, cut.buffers) == (3 * 48, 3 * 16)


def test_a_skipped_block_costs_its_message_and_no_workspace() -> None:
    layout = from_lengths([1, 5])
    rows = ledger(schedule(layout, Visibility()), layout, **ONE_HEAD)
    assert column("tokens_received", rows_of("forward", rows)) == [5, 1]
    assert column("workspace", rows_of("resident", rows)) == [1, 25]


def test_the_ledger_counts_the_events_it_gets_and_no_others() -> None:
    """A stream with one message less is a cheaper stream, not a repaired one."""
    events = list(schedule(LABORATORY, Visibility(), protocol="direct"))
    fewer = [event for event in events if not (event.phase == "replay" and event.step == 1)]
    rows = ledger(iter(fewer), LABORATORY, **ONE_HEAD)
    assert column("elements_sent", rows_of("replay", rows)) == [0, 0]
    assert column("elements_sent", rows_of("forward", rows)) == [8, 12]
    nothing = ledger([], LABORATORY, **ONE_HEAD)
    assert [row.qkv for row in nothing] == [12, 18]
    assert column("workspace", nothing) == [0, 0]
    assert column("remote_block", nothing) == column("buffers", nothing) == [0, 0]
