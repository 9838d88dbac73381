"""Layouts: who owns what, the two orders, and what is refused."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Visibility,
    contiguous,
    from_lengths,
    from_owned,
    per_document,
    striped,
    zigzag,
)

Array = NDArray[Any]
Maker = Callable[[int, int], Layout]


def striped_by_three(seq_len: int, cp_size: int) -> Layout:
    return striped(seq_len, cp_size, stripe=3)


MAKERS: list[Maker] = [contiguous, zigzag, striped, striped_by_three]
SIZES = list(itertools.product(range(18), range(1, 6)))


def owned(layout: Layout) -> list[list[int]]:
    return [pos.tolist() for pos in layout.owned]


def work(layout: Layout) -> list[int]:
    """Causal pairs per rank, counted one pair at a time."""
    return [sum(i + 1 for i in pos) for pos in owned(layout)]


@pytest.mark.parametrize("maker", MAKERS)
def test_every_size_and_rank_count_is_a_partition(maker: Maker) -> None:
    for seq_len, cp_size in SIZES:
        layout = maker(seq_len, cp_size)
        assert sorted(np.concatenate(owned(layout))) == list(range(seq_len))
        assert (layout.cp_size, layout.seq_len) == (cp_size, seq_len)
        assert layout.lengths == tuple(len(pos) for pos in owned(layout))
        assert all(pos.dtype == np.int64 and not pos.flags.writeable for pos in layout.owned)


def test_owners_follow_their_definition_for_every_size() -> None:
    for s, r in SIZES:
        cut = [[*range(i * s // r, (i + 1) * s // r)] for i in range(r)]
        assert owned(contiguous(s, r)) == cut
        fine = [[*range(i * s // (2 * r), (i + 1) * s // (2 * r))] for i in range(2 * r)]
        assert owned(zigzag(s, r)) == [fine[i] + fine[2 * r - 1 - i] for i in range(r)]
        assert owned(striped(s, r)) == [[*range(i, s, r)] for i in range(r)]
        dealt = [[i for i in range(s) if i // 3 % r == rank] for rank in range(r)]
        assert owned(striped(s, r, stripe=3)) == dealt
        assert owned(striped(s, r, 3)) == dealt


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (contiguous(64, 4), [136, 392, 648, 904]),
        (striped(64, 4), [496, 512, 528, 544]),
        (zigzag(64, 4), [520, 520, 520, 520]),
        (per_document([0, 16, 32, 48, 64], 4), [136, 136, 136, 136]),
    ],
)
def test_causal_work_per_rank_of_64_positions_over_4_ranks(
    layout: Layout, wanted: list[int]
) -> None:
    documents = np.arange(64) // 16 if sum(wanted) == 544 else None
    rule = Visibility(documents=documents)
    assert [rule.pairs(pos, np.arange(64)) for pos in layout.owned] == wanted
    if documents is None:
        assert work(layout) == wanted


def test_layouts_of_small_sequences_leave_ranks_empty_rather_than_fail() -> None:
    assert owned(contiguous(2, 3)) == [[], [0], [1]]
    assert owned(zigzag(3, 4)) == [[2], [], [0, 1], []]  # two ranks own nothing
    assert owned(striped(2, 3)) == [[0], [1], []]
    assert zigzag(0, 2).seq_len == 0


def test_the_zigzag_of_eight_over_two() -> None:
    layout = zigzag(8, 2)
    assert owned(layout) == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert layout.permutation.tolist() == [0, 1, 6, 7, 2, 3, 4, 5]
    assert layout.inverse.tolist() == [0, 1, 4, 5, 6, 7, 2, 3]


@pytest.mark.parametrize("maker", MAKERS)
def test_permutation_and_inverse_undo_each_other(maker: Maker) -> None:
    for seq_len, cp_size in SIZES:
        layout = maker(seq_len, cp_size)
        assert layout.permutation[layout.inverse].tolist() == list(range(seq_len))
        assert layout.inverse[layout.permutation].tolist() == list(range(seq_len))


def test_one_rank_hides_what_two_and_three_ranks_show() -> None:
    """The inverse of zigzag is not zigzag; with R = 1 both are the identity."""
    assert (zigzag(12, 1).permutation == zigzag(12, 1).inverse).all()
    assert (zigzag(12, 2).permutation != zigzag(12, 2).inverse).any()
    assert (zigzag(12, 3).permutation != zigzag(12, 3).inverse).any()


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.bool_, np.complex64, "U3"])
def test_unshard_undoes_shard_on_any_axis_and_dtype(maker: Maker, dtype: Any) -> None:
    for cp_size, axis in itertools.product(range(1, 6), (0, 1, 2, -1, -2, -3)):
        shape = [2, 3, 5]
        shape[axis] = 11
        x = np.arange(np.prod(shape)).reshape(shape)
        x = x.astype(dtype)
        layout = maker(11, cp_size)
        parts = layout.shard(x, axis=axis)
        assert [part.shape[axis] for part in parts] == list(layout.lengths)
        assert all(part.dtype == x.dtype for part in parts)
        back = layout.unshard(parts, axis=axis)
        assert back.dtype == x.dtype
        assert (back == x).all()


def test_a_shard_holds_its_rows_in_the_order_the_rank_stores_them() -> None:
    x = np.arange(10.0).reshape(5, 2)
    shards = from_owned([[4, 0], [], [1, 3, 2]]).shard(x)
    assert [part[:, 0].tolist() for part in shards] == [[8, 0], [], [2, 6, 4]]


def test_the_default_axis_is_the_sequence_axis_minus_two() -> None:
    x = np.arange(2 * 4 * 3).reshape(2, 4, 3)
    layout = zigzag(4, 2)
    assert (layout.unshard(layout.shard(x)) == x).all()
    assert [part.shape for part in layout.shard(x)] == [(2, 2, 3), (2, 2, 3)]


def test_shards_are_copies() -> None:
    x = np.zeros((4, 1))
    part = contiguous(4, 1).shard(x)[0]
    part[:] = 1
    assert not x.any()


def test_physical_is_logical_taken_at_the_permutation() -> None:
    layout, x = striped(7, 3), np.arange(7) * 10
    physical = np.concatenate(layout.shard(x, axis=0))
    assert (physical == x[layout.permutation]).all()
    assert (physical[layout.inverse] == x).all()


def test_from_lengths_cuts_consecutive_shards() -> None:
    assert owned(from_lengths([2, 3])) == [[0, 1], [2, 3, 4]]
    assert owned(from_lengths([0, 2, 0, 1])) == [[], [0, 1], [], [2]]
    assert owned(from_lengths([0])) == [[]]


def test_from_owned_keeps_the_given_order_and_copies() -> None:
    mine = np.array([2, 0])
    layout = from_owned([mine, [1]])
    mine[0] = 9
    assert owned(layout) == [[2, 0], [1]]


def test_per_document_zigzag_gives_both_ranks_the_same_work_at_each_step() -> None:
    layout = per_document([0, 4, 12, 20], 2)
    assert owned(layout) == [
        [0, 3, 4, 5, 10, 11, 12, 13, 18, 19],
        [1, 2, 6, 7, 8, 9, 14, 15, 16, 17],
    ]
    rule = Visibility(documents=np.repeat([0, 1, 2], [4, 8, 8]))
    mine, other = layout.owned
    assert [rule.pairs(mine, mine), rule.pairs(mine, other)] == [23, 18]
    assert [rule.pairs(other, other), rule.pairs(other, mine)] == [23, 18]


def test_per_document_balances_each_document_on_its_own() -> None:
    assert owned(per_document([0, 4, 12], 2)) == [[0, 3, 4, 5, 10, 11], [1, 2, 6, 7, 8, 9]]
    assert owned(per_document([0, 4, 12], 2, contiguous)) == [
        [0, 1, 4, 5, 6, 7],
        [2, 3, 8, 9, 10, 11],
    ]
    assert owned(per_document([0, 4, 4, 6], 2, layout=striped)) == [[0, 2, 4], [1, 3, 5]]
    assert owned(per_document([0], 3)) == [[], [], []]
