"""How far a window reaches around the ring: which steps have work, layout by layout."""

import pytest

from cpcore import Layout, Visibility, contiguous, schedule, striped, zigzag
from tests.support.relation import may_attend

SIZE = 24


def steps_by_hand(layout: Layout, window: int) -> set[int]:
    """Distances, in ranks along the ring, at which some query sees some key."""
    owner = {int(p): rank for rank, owned in enumerate(layout.owned) for p in owned}
    return {
        (owner[i] - owner[j]) % layout.cp_size
        for i in range(SIZE)
        for j in range(SIZE)
        if may_attend(i, j, {"window": window})
    }


def steps_of_the_schedule(layout: Layout, window: int) -> set[int]:
    events = schedule(layout, Visibility(window=window), backward=False)
    return {event.step for event in events if event.verdict != "empty"}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8, 12, 24])
def test_a_window_of_n_on_contiguous_shards_of_c_needs_n_minus_1_over_c_hops(ranks: int) -> None:
    layout, shard = contiguous(SIZE, ranks), SIZE // ranks
    for window in range(1, SIZE + 3):
        hops = min(ranks - 1, -(-(window - 1) // shard))
        assert steps_by_hand(layout, window) == set(range(hops + 1))
        assert steps_of_the_schedule(layout, window) == set(range(hops + 1))


@pytest.mark.parametrize("ranks", [3, 4, 6])
def test_a_zigzag_needs_the_last_step_of_the_ring_for_every_window_above_1(ranks: int) -> None:
    layout = zigzag(SIZE, ranks)
    assert steps_of_the_schedule(layout, 1) == {0}
    for window in range(2, SIZE + 1):
        steps = steps_of_the_schedule(layout, window)
        assert steps == steps_by_hand(layout, window)
        assert ranks - 1 in steps


def test_a_stripe_of_one_token_needs_as_many_hops_as_the_window_has_other_keys() -> None:
    for window in range(1, 9):
        steps = steps_of_the_schedule(striped(SIZE, 4), window)
        assert steps == set(range(min(4, window)))
