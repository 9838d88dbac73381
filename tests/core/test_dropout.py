"""Dropout is one fixed function of global indices, with the rate it promises."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Dropout
from tests.support.errors import refused

Array = NDArray[Any]
MASK = 2**32 - 1


def mixed(x: int) -> int:
    """The definition in Python's integers: add, then two rounds of shift, xor and multiply."""
    x = (x + 0x9E3779B9) & MASK
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & MASK
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & MASK
    return x ^ (x >> 16)


def word(seed: int, *indices: int) -> int:
    state = mixed(seed)
    for index in indices:
        state = mixed(state ^ index)
    return state


# (seed, batch, head, i, j) -> the 32-bit word. Other implementations must give the same.
VECTORS = {
    (0, 0, 0, 0, 0): 0x81AC3EC8,
    (1, 0, 0, 0, 0): 0x994E72D2,
    (0, 1, 0, 0, 0): 0xFABC71C9,
    (0, 0, 1, 0, 0): 0xA31B0624,
    (0, 0, 0, 1, 0): 0xD12A701A,
    (0, 0, 0, 0, 1): 0x99BC4084,
    (1234, 5, 6, 1048575, 524288): 0x1DC83B51,
    (4294967295, 4294967295, 4294967295, 4294967295, 4294967295): 0x794A8D5A,
}


@pytest.mark.parametrize("indices", VECTORS)
def test_the_hash_has_these_values(indices: tuple[int, ...]) -> None:
    """A probability is kept while its word is at least rate · 2**32, which locates the word."""
    seed, *where = indices
    value = VECTORS[indices]
    assert word(*indices) == value
    assert bool(Dropout(value / 2**32, seed).keep(*where))
    assert not bool(Dropout((value + 1) / 2**32, seed).keep(*where))


def test_arrays_of_indices_give_what_each_index_gives_alone() -> None:
    rng = np.random.default_rng(0)
    where = [rng.integers(0, 2**32, 200) for _ in range(4)]
    kept = Dropout(0.5, 7).keep(*where)
    assert kept.dtype == np.bool_
    assert kept.tolist() == [word(7, *map(int, at)) >= 2**31 for at in zip(*where, strict=True)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_the_integer_dtype_of_the_indices_does_not_matter(dtype: Any) -> None:
    i = np.arange(100)
    wanted = Dropout(0.5, 3).keep(0, 1, i[:, None], i)
    small = i.astype(dtype)
    assert np.array_equal(Dropout(0.5, 3).keep(dtype(0), dtype(1), small[:, None], small), wanted)


def grid(rate: float, seed: int, head: int = 0) -> Array:
    pos = np.arange(256)
    return Dropout(rate, seed).keep(0, head, pos[:, None], pos)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.5, 0.9])
def test_the_share_that_is_dropped_is_the_rate(rate: float) -> None:
    """Within 5 standard deviations of a binomial, in the whole and in every row and column."""
    for seed in range(4):
        dropped = ~grid(rate, seed)
        for share, count in ((dropped.mean(), 256**2), *((x, 256) for x in dropped.mean(axis=0)),
                             *((x, 256) for x in dropped.mean(axis=1))):  # fmt: skip
            assert abs(share - rate) <= 5 * np.sqrt(rate * (1 - rate) / count)


def test_neighbors_heads_and_seeds_are_uncorrelated() -> None:
    """5 / √n bounds the correlation of independent fair bits; near seeds are the hard case."""
    base = grid(0.5, 0).astype(float)
    others = [np.roll(base, shift, axis) for shift in (1, 2, 16) for axis in (0, 1)]
    others += [base.T, np.roll(base, (1, 1), (0, 1))]
    others += [grid(0.5, seed).astype(float) for seed in (1, 2, 256)]
    others += [grid(0.5, 0, head).astype(float) for head in (1, 2)]
    centered = [x - x.mean() for x in (base, *others)]
    for other in centered[1:]:
        off_diagonal = ~np.eye(256, dtype=bool)
        pairs = centered[0][off_diagonal], other[off_diagonal]
        correlation = np.mean(pairs[0] * pairs[1]) * 4
        assert abs(correlation) < 5 / np.sqrt(off_diagonal.sum())


def test_a_higher_rate_drops_all_that_a_lower_one_drops() -> None:
    kept = [grid(rate, 5) for rate in (0.1, 0.3, 0.7)]
    assert all((high <= low).all() for low, high in pairwise(kept))


def test_rate_0_keeps_everything_and_changes_nothing() -> None:
    factor = Dropout(0.0, 9).factor((2, 3, 4), np.arange(3), np.arange(5))
    assert factor.shape == (2, 3, 5)
    assert (factor == 1).all()


def test_the_highest_rate_below_1_still_has_a_threshold_of_32_bits() -> None:
    """It keeps a probability in 2**32, and none of these."""
    assert not grid(float(np.nextafter(1, 0)), 0).any()


def test_the_factor_is_0_or_one_over_the_share_that_is_kept() -> None:
    pos = np.arange(50)
    factor = Dropout(0.2, 1).factor((50, 4), pos, pos)
    assert set(np.unique(factor)) == {0.0, 1.25}
    assert np.array_equal(factor > 0, Dropout(0.2, 1).keep(0, 0, pos[:, None], pos))


def test_the_factor_numbers_batch_entries_and_heads_and_absent_axes_are_0() -> None:
    drop, q_pos, k_pos = Dropout(0.5, 2), np.array([7, 3, 90]), np.array([1, 88])
    rows, keys = q_pos[:, None], k_pos[None, :]
    alone = drop.factor((3, 8), q_pos, k_pos)
    heads = drop.factor((4, 3, 8), q_pos, k_pos)
    batch = drop.factor((2, 4, 3, 8), q_pos, k_pos)
    nested = drop.factor((3, 2, 4, 3, 8), q_pos, k_pos)
    assert [x.shape for x in (alone, heads, batch)] == [(3, 2), (4, 3, 2), (2, 4, 3, 2)]
    assert np.array_equal(alone > 0, drop.keep(0, 0, rows, keys))
    for h in range(4):
        assert np.array_equal(heads[h] > 0, drop.keep(0, h, rows, keys))
        for b in range(2):
            assert np.array_equal(batch[b, h] > 0, drop.keep(b, h, rows, keys))
            for a in range(3):
                assert np.array_equal(nested[a, b, h] > 0, drop.keep(2 * a + b, h, rows, keys))


def test_no_rows_no_keys_and_no_heads_have_an_empty_factor() -> None:
    none, one = np.arange(0), np.arange(1)
    for shape, q_pos, k_pos in (
        ((2, 0, 4), none, one),
        ((2, 1, 4), one, none),
        ((0, 1, 4), one, one),
    ):
        factor = Dropout(0.5, 0).factor(shape, q_pos, k_pos)
        assert factor.shape == (shape[0], len(q_pos), len(k_pos))


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, np.nan, np.inf, "0.1", None, True, 0.1j])
def test_a_rate_outside_0_to_1_is_refused(rate: Any) -> None:
    with refused("rate", "a number in [0, 1)", repr(rate)):
        Dropout(rate, 0)


@pytest.mark.parametrize("seed", [-1, 0.0, True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with refused("seed", "an integer of at least 0", repr(seed)):
        Dropout(0.1, seed)


def test_a_seed_that_would_repeat_a_smaller_one_is_refused() -> None:
    with refused("seed", "an integer below 2**32", 2**32):
        Dropout(0.1, 2**32)
    assert Dropout(0.1, 2**32 - 1).seed == 2**32 - 1


@pytest.mark.parametrize("name", ["batch", "query_head", "i", "j"])
def test_an_index_that_does_not_fit_is_refused_by_name(name: str) -> None:
    good: dict[str, Any] = dict.fromkeys(("batch", "query_head", "i", "j"), 0)
    for bad in (-1, 2**32, np.array([3, -1])):
        with refused(name, "integers in [0, 2**32)", np.ravel(bad)[-1]):
            Dropout(0.1, 0).keep(**(good | {name: bad}))
    with refused(name, "integers", "float64"):
        Dropout(0.1, 0).keep(**(good | {name: 1.0}))
    with refused(name, "an array", "lists of unequal lengths"):
        Dropout(0.1, 0).keep(**(good | {name: [[0], [0, 1]]}))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_numpy_rate_drops_as_the_same_python_number(kind: Any) -> None:
    """In float16, rate · 2**32 is infinite; in float32, 1/(1-rate) has seven digits."""
    rate, pos = kind(0.3), np.arange(50)
    factors = [Dropout(r, np.int8(1)).factor((50, 4), pos, pos) for r in (rate, float(rate))]
    assert np.array_equal(*factors)
    assert factors[0].dtype == np.float64
    assert Dropout(rate, 1) == Dropout(float(rate), 1)


def test_the_threshold_is_rounded_to_the_nearest_word() -> None:
    """0.1 · 2**32 = 429496729.6: of the two words beside it, the lower one is dropped."""
    for target, kept in ((429496729, False), (429496730, True)):
        j = unmixed(target) ^ word(0, 0, 0, 0)
        assert word(0, 0, 0, 0, j) == target
        assert bool(Dropout(0.1, 0).keep(0, 0, 0, j)) is kept


def unmixed(x: int) -> int:
    """The word that `mixed` turns into x: its steps undone, last first."""
    x ^= x >> 16
    x = (x * pow(0xC2B2AE35, -1, 2**32)) & MASK
    x ^= (x >> 13) ^ (x >> 26)
    x = (x * pow(0x85EBCA6B, -1, 2**32)) & MASK
    return ((x ^ (x >> 16)) - 0x9E3779B9) & MASK


def test_indices_that_do_not_broadcast_are_refused_by_name() -> None:
    with refused("j", "a shape that broadcasts against (3,)", (4,)):
        Dropout(0.5, 1).keep(0, 0, np.arange(3), np.arange(4))
