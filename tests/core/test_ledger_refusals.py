"""A caller's mistake in the ledger is one ValueError that says what was wrong."""

from typing import Any

import numpy as np
import pytest

from cpcore import LedgerRow, from_lengths, ledger, schedule
from tests.support.errors import refused

LAYOUT = from_lengths([2, 3])
ONE_HEAD: dict[str, Any] = {"q_heads": 1, "kv_heads": 1, "head_dim": 2}


def counted(**options: Any) -> list[LedgerRow]:
    return ledger(schedule(LAYOUT, None), LAYOUT, **(ONE_HEAD | options))


@pytest.mark.parametrize(
    "name",
    ["q_heads", "kv_heads", "head_dim", "value_dim", "element_bytes", "grad_bytes", "state_bytes"],
)
@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2"])
def test_a_size_that_is_no_whole_number_above_0_is_refused(name: str, size: Any) -> None:
    with refused(name, "an integer of at least 1", repr(size)):
        counted(**{name: size})


@pytest.mark.parametrize("name", ["rank", "owner"])
@pytest.mark.parametrize("rank", [2, -1])
def test_an_event_of_a_rank_that_the_layout_lacks_is_refused(rank: int, name: str) -> None:
    event = next(iter(schedule(LAYOUT, None)))._replace(**{name: rank})
    with refused("events", "ranks below 2", event):
        ledger([event], LAYOUT, **ONE_HEAD)


@pytest.mark.parametrize("keys", [(0, 3), (-1, 2), (2, 1)])
def test_an_event_of_keys_that_the_owner_lacks_is_refused(keys: tuple[int, int]) -> None:
    event = next(iter(schedule(LAYOUT, None)))._replace(key_start=keys[0], key_stop=keys[1])
    assert event.owner == 0
    with refused("events", "keys within the owner's 2", event):
        ledger([event], LAYOUT, **ONE_HEAD)


def test_the_events_of_a_longer_layout_are_refused_and_a_part_of_the_own_ones_is_counted() -> None:
    longer = list(schedule(from_lengths([3, 3]), None))
    with refused("events", "keys within the owner's 2", longer[0]):
        ledger(longer, LAYOUT, **ONE_HEAD)
    forward = [e for e in schedule(LAYOUT, None) if (e.phase, e.rank) == ("forward", 1)]
    rows = ledger(forward, LAYOUT, **ONE_HEAD)
    assert [(r.rank, r.phase, r.tokens_sent) for r in rows[:2]] == [
        (0, "forward", 0),
        (1, "forward", 3),
    ]


@pytest.mark.parametrize(
    ("events", "received"),
    [
        (5, "int"),
        ([1], "one of int"),
        ([tuple(next(iter(schedule(LAYOUT, None))))], "one of tuple"),
    ],
)
def test_what_is_no_stream_of_events_is_refused(events: Any, received: str) -> None:
    with refused("events", "an iterable of Event", received):
        ledger(events, LAYOUT, **ONE_HEAD)


def test_what_is_no_layout_is_refused() -> None:
    layout: Any = [2, 3]
    with refused("layout", "a Layout", "list"):
        ledger([], layout, **ONE_HEAD)


def test_key_heads_that_do_not_divide_the_query_heads_are_refused() -> None:
    with refused("kv_heads", "a divisor of q_heads = 4", 3):
        counted(q_heads=4, kv_heads=3)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_small_numpy_integers_count_like_pythons_own(kind: Any) -> None:
    """100 · (3 + 3) elements a token leave 8 bits."""
    sizes = {"q_heads": 100, "kv_heads": 100, "head_dim": 3, "value_dim": 3}
    small = counted(**{name: kind(size) for name, size in sizes.items()}, element_bytes=kind(2))
    assert small == counted(**sizes, element_bytes=2)
    assert small[0].elements_sent == 1200
    assert all(type(part) in (int, str) for row in small for part in row)
