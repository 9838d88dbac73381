"""A caller's mistake in the ledger is one ValueError that says what was wrong."""

from typing import Any

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


@pytest.mark.parametrize("rank", [2, -1])
def test_an_event_of_a_rank_that_the_layout_lacks_is_refused(rank: int) -> None:
    event = next(iter(schedule(LAYOUT, None)))._replace(rank=rank)
    with refused("events", "ranks below 2 like the layout", rank):
        ledger([event], LAYOUT, **ONE_HEAD)


def test_key_heads_that_do_not_divide_the_query_heads_are_refused() -> None:
    with refused("kv_heads", "a divisor of q_heads = 4", 3):
        counted(q_heads=4, kv_heads=3)
