"""The event stream, written out by hand for small cases, and what holds for every stream."""

from collections import Counter
from typing import Any

import pytest

from cpcore import Event, Visibility, from_lengths, schedule, zigzag
from cpcore.schedule import PROTOCOLS
from tests.support.errors import refused
from tests.support.random_runs import CELLS, drawn

NONE = (0, None)
FULL_RING = [
    # phase, step, rank, owner, keys, verdict, pairs, (sent, to), (received, from)
    ("forward", 0, 0, 0, (0, 2), "full", 4, (2, 1), NONE),
    ("forward", 0, 1, 1, (0, 1), "full", 1, (1, 2), NONE),
    ("forward", 0, 2, 2, (0, 0), "empty", 0, (0, 0), NONE),
    ("forward", 1, 0, 2, (0, 0), "empty", 0, (0, 1), (0, 2)),
    ("forward", 1, 1, 0, (0, 2), "full", 2, (2, 2), (2, 0)),
    ("forward", 1, 2, 1, (0, 1), "empty", 0, (1, 0), (1, 1)),
    ("forward", 2, 0, 1, (0, 1), "full", 2, NONE, (1, 2)),
    ("forward", 2, 1, 2, (0, 0), "empty", 0, NONE, (0, 0)),
    ("forward", 2, 2, 0, (0, 2), "empty", 0, NONE, (2, 1)),
]
RING_RETURN = [
    ("return", 1, 0, 2, (0, 0), "empty", 0, (0, 1), (1, 2)),
    ("return", 1, 1, 0, (0, 2), "empty", 0, (2, 2), (0, 0)),
    ("return", 1, 2, 1, (0, 1), "empty", 0, (1, 0), (2, 1)),
    ("return", 2, 0, 1, (0, 1), "empty", 0, (1, 1), (2, 2)),
    ("return", 2, 1, 2, (0, 0), "empty", 0, (0, 2), (1, 0)),
    ("return", 2, 2, 0, (0, 2), "empty", 0, (2, 0), (0, 1)),
]
RETURN_OF_THE_OWN_BLOCK = [
    ("return", 0, 0, 0, (0, 2), "empty", 0, (2, 1), (0, 2)),
    ("return", 0, 1, 1, (0, 1), "empty", 0, (1, 2), (2, 0)),
    ("return", 0, 2, 2, (0, 0), "empty", 0, (0, 0), (1, 1)),
]
FULL_DIRECT = [
    ("forward", 0, 0, 0, (0, 2), "full", 4, NONE, NONE),
    ("forward", 0, 1, 1, (0, 1), "full", 1, NONE, NONE),
    ("forward", 0, 2, 2, (0, 0), "empty", 0, NONE, NONE),
    ("forward", 1, 0, 2, (0, 0), "empty", 0, (2, 1), (0, 2)),
    ("forward", 1, 1, 0, (0, 2), "full", 2, (1, 2), (2, 0)),
    ("forward", 1, 2, 1, (0, 1), "empty", 0, (0, 0), (1, 1)),
    ("forward", 2, 0, 1, (0, 1), "full", 2, (2, 2), (1, 1)),
    ("forward", 2, 1, 2, (0, 0), "empty", 0, (1, 0), (0, 2)),
    ("forward", 2, 2, 0, (0, 2), "empty", 0, (0, 1), (2, 0)),
]
DIRECT_RETURN = [
    ("return", 1, 0, 2, (0, 0), "empty", 0, (0, 2), (2, 1)),
    ("return", 1, 1, 0, (0, 2), "empty", 0, (2, 0), (1, 2)),
    ("return", 1, 2, 1, (0, 1), "empty", 0, (1, 1), (0, 0)),
    ("return", 2, 0, 1, (0, 1), "empty", 0, (1, 1), (2, 2)),
    ("return", 2, 1, 2, (0, 0), "empty", 0, (0, 2), (1, 0)),
    ("return", 2, 2, 0, (0, 2), "empty", 0, (2, 0), (0, 1)),
]
BY_HAND = {
    "ring": (FULL_RING, RING_RETURN),
    "ring_full_return": (FULL_RING, RETURN_OF_THE_OWN_BLOCK + RING_RETURN),
    "direct": (FULL_DIRECT, DIRECT_RETURN),
    "all_gather": (FULL_DIRECT, DIRECT_RETURN),
}


def table(events: Any) -> list[tuple[Any, ...]]:
    """The events as the rows above; the stream follows from the phase."""
    rows = []
    for e in events:
        assert e.stream == ("grad_kv" if e.phase == "return" else "kv")
        keys, sent = (e.key_start, e.key_stop), (e.sent_tokens, e.send_to)
        received = e.received_tokens, e.recv_from
        rows.append((e.phase, e.step, e.rank, e.owner, keys, e.verdict, e.pairs, sent, received))
    return rows


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_three_ranks_of_2_1_and_0_tokens_by_hand(protocol: str) -> None:
    """An empty shard is a message of 0 tokens, and an empty rank forwards what it cannot use."""
    forward, back = BY_HAND[protocol]
    events = list(schedule(from_lengths([2, 1, 0]), None, protocol=protocol))
    assert table(events) == forward + [("replay", *row[1:]) for row in forward] + back
    assert {e.collective for e in events} == {protocol == "all_gather"}


def test_the_causal_laboratory_by_hand() -> None:
    """Positions 0-1 and 2-4: rank 0 may not see what it receives, and receives it all the same."""
    assert table(schedule(from_lengths([2, 3]), Visibility())) == [
        *(
            (phase, *row)
            for phase in ("forward", "replay")
            for row in [
                (0, 0, 0, (0, 2), "partial", 3, (2, 1), NONE),
                (0, 1, 1, (0, 3), "partial", 6, (3, 0), NONE),
                (1, 0, 1, (0, 3), "empty", 0, NONE, (3, 1)),
                (1, 1, 0, (0, 2), "full", 6, NONE, (2, 0)),
            ]
        ),
        ("return", 1, 0, 1, (0, 3), "empty", 0, (3, 1), (2, 1)),
        ("return", 1, 1, 0, (0, 2), "empty", 0, (2, 0), (3, 0)),
    ]


def test_blocks_of_two_on_a_ring_by_hand() -> None:
    """The i-th event of a turn carries the i-th piece out and in; a missing side is None."""
    events = schedule(from_lengths([2, 3]), Visibility(), max_block=2)
    assert [row for row in table(events) if row[0] != "replay"] == [
        ("forward", 0, 0, 0, (0, 2), "partial", 3, (2, 1), NONE),
        ("forward", 0, 1, 1, (0, 2), "partial", 5, (2, 0), NONE),
        ("forward", 0, 1, 1, (2, 3), "partial", 1, (1, 0), NONE),
        ("forward", 1, 0, 1, (0, 2), "empty", 0, NONE, (2, 1)),
        ("forward", 1, 0, 1, (2, 3), "empty", 0, NONE, (1, 1)),
        ("forward", 1, 1, 0, (0, 2), "full", 6, NONE, (2, 0)),
        ("return", 1, 0, 1, (0, 2), "empty", 0, (2, 1), (2, 1)),
        ("return", 1, 0, 1, (2, 3), "empty", 0, (1, 1), NONE),
        ("return", 1, 1, 0, (0, 2), "empty", 0, (2, 0), (2, 0)),
        ("return", 1, 1, 0, (2, 2), "empty", 0, NONE, (1, 0)),
    ]


def test_blocks_of_two_sent_directly_by_hand() -> None:
    """A rank with more pieces to send than to meet has a turn that computes nothing."""
    events = schedule(from_lengths([2, 3]), Visibility(), protocol="direct", max_block=2)
    assert [row[1:] for row in table(events) if row[0] == "forward" and row[1] == 1] == [
        (1, 0, 1, (0, 2), "empty", 0, (2, 1), (2, 1)),
        (1, 0, 1, (2, 3), "empty", 0, NONE, (1, 1)),
        (1, 1, 0, (0, 2), "full", 6, (2, 0), (2, 0)),
        (1, 1, 0, (2, 2), "empty", 0, (1, 0), NONE),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_rank_computes_its_block_twice_and_sends_nothing(protocol: str) -> None:
    assert table(schedule(from_lengths([3]), None, protocol=protocol)) == [
        ("forward", 0, 0, 0, (0, 3), "full", 9, NONE, NONE),
        ("replay", 0, 0, 0, (0, 3), "full", 9, NONE, NONE),
    ]
    assert not any(e.collective for e in schedule(from_lengths([3]), None, protocol=protocol))


@pytest.mark.parametrize("cp_size", range(1, 6))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_rank_sends_r_minus_1_messages_a_phase_and_r_on_a_full_return(
    protocol: str, cp_size: int
) -> None:
    sent: Counter[tuple[str, int]] = Counter()
    received: Counter[tuple[str, int]] = Counter()
    for e in schedule(zigzag(7, cp_size), Visibility(), protocol=protocol):
        sent[e.phase, e.rank] += e.send_to is not None
        received[e.phase, e.rank] += e.recv_from is not None
    hops = {"forward": cp_size - 1, "replay": cp_size - 1, "return": cp_size - 1}
    if protocol == "ring_full_return" and cp_size > 1:
        hops["return"] = cp_size
    for rank in range(cp_size):
        for phase, count in hops.items():
            assert sent[phase, rank] == received[phase, rank] == count
    assert sum(sent.values()) == sum(hops.values()) * cp_size


def test_without_backward_only_the_forward_phase_is_planned() -> None:
    layout = zigzag(9, 3)
    events = list(schedule(layout, Visibility(), backward=False))
    assert events == [e for e in schedule(layout, Visibility()) if e.phase == "forward"]
    assert len(events) == 9


def test_every_random_stream_delivers_what_is_sent_in_the_order_of_its_fields() -> None:
    """Ring keys arrive one step after they left; all else arrives in the step in which it left."""
    for seed in range(0, 4 * len(CELLS), 5):
        drawing = drawn(seed)
        events = drawing.events
        phases = ("forward", "replay", "return")
        places = [(phases.index(e.phase), e.step, e.rank) for e in events]
        assert places == sorted(places)
        late = drawing.cell[2].startswith("ring")
        sent = [
            (e.phase, e.step + (late and e.phase != "return"), e.rank, e.send_to, e.sent_tokens)
            for e in events
            if e.send_to is not None
        ]
        received = [
            (e.phase, e.step, e.recv_from, e.rank, e.received_tokens)
            for e in events
            if e.recv_from is not None
        ]
        assert Counter(sent) == Counter(received), drawing.cell
        assert sum(e.pairs for e in events if e.phase == "forward") == sum(
            e.pairs for e in events if e.phase == "replay"
        )


def test_a_wrong_argument_is_refused_at_the_call_before_any_event() -> None:
    layout = from_lengths([2])
    wanted = "one of ring, ring_full_return, direct, all_gather"
    with refused("protocol", wanted, "'rings'"):
        schedule(layout, None, protocol="rings")
    for size in (0, -1, True, 1.5):
        with refused("max_block", "an integer of at least 1", repr(size)):
            schedule(layout, None, max_block=size)  # type: ignore[arg-type]
    assert all(isinstance(e, Event) for e in schedule(layout, None, max_block=1))
