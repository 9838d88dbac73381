"""Rotary turns pairs by their global position, so scores depend on differences alone."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Visibility, contiguous, dense_attention, simulate, zigzag
from cpcore.positions import document_positions, rotary
from cpcore.training_pitfalls import local_rotary
from tests.support.errors import refused
from tests.support.relation import double_loop

Array = NDArray[Any]


def turned(x: Array, positions: list[int], base: float) -> Array:
    """The pair (i, i + D/2) as one complex number times exp(𝑖 · position · base**(-2i/D))."""
    half = x.shape[-1] // 2
    result = np.zeros(x.shape)
    for row, position in enumerate(positions):
        for i in range(half):
            number = x[..., row, i] + 1j * x[..., row, half + i]
            number = number * np.exp(1j * position * base ** (-2 * i / x.shape[-1]))
            result[..., row, i], result[..., row, half + i] = number.real, number.imag
    return result


@pytest.mark.parametrize("base", [10000.0, 500000, 1.0, 0.5])
@pytest.mark.parametrize("width", [2, 4, 6])
def test_rotary_equals_multiplication_by_complex_numbers(width: int, base: float) -> None:
    """1e-11: angles reach 1000 · 2 radians, each with a relative error of a few 1e-16."""
    x = np.random.default_rng(width).standard_normal((2, 3, 5, width))
    positions = [0, 1, 1000, 17, 2]
    got = rotary(x, positions, base=base)
    np.testing.assert_allclose(got, turned(x, positions, base), rtol=0, atol=1e-11)
    assert np.abs(got - x).max() > 0.5


def test_the_default_base_is_10000() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    assert np.array_equal(rotary(x, [0, 1, 2]), rotary(x, [0, 1, 2], base=10000.0))
    assert not np.allclose(rotary(x, [0, 1, 2]), rotary(x, [0, 1, 2], base=9999.0), atol=1e-9)


def test_position_0_turns_nothing_and_lengths_never_change() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6))
    assert np.array_equal(rotary(x, [0] * 4), x)
    norms = np.linalg.norm(rotary(x, [1, 20, 300, 4000]), axis=-1)
    np.testing.assert_allclose(norms, np.linalg.norm(x, axis=-1), rtol=1e-14)


def test_scores_depend_on_the_difference_of_positions_alone() -> None:
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 1, 8))
    for gap in (0, 1, 7):
        scores = [
            (rotary(q, [start + gap]) @ rotary(k, [start]).T).item() for start in (0, 1, 50, 4096)
        ]
        # 1e-11: the angle at 4096 has an absolute error of about 1e-12
        np.testing.assert_allclose(scores, scores[0], rtol=0, atol=1e-11)
    near, far = ((rotary(q, [n]) @ rotary(k, [0]).T).item() for n in (0, 7))
    assert abs(near - far) > 0.1


def attention_over_ranks(turn: Any, layout: Any) -> tuple[Array, Array]:
    """(output of ranks that turn their own shards, output of the whole sequence at once)."""
    total = layout.seq_len
    q, k, v = np.random.default_rng(2).standard_normal((3, 2, total, 4))
    pieces = [[turn(s, p) for s, p in zip(layout.shard(x), layout.owned, strict=True)]
              for x in (q, k)]  # fmt: skip
    run = simulate(*(layout.unshard(x) for x in pieces), v, layout, Visibility())
    every = list(range(total))
    whole = dense_attention(
        turned(q, every, 1e4), turned(k, every, 1e4), v, visible=double_loop(every, every, {})
    )[0]
    return run.output, whole


@pytest.mark.parametrize("make", [contiguous, zigzag])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_ranks_that_rotate_by_global_positions_equal_the_whole_sequence(
    make: Any, size: int
) -> None:
    got, wanted = attention_over_ranks(rotary, make(10, size))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13)
    local, _ = attention_over_ranks(local_rotary, make(10, size))
    assert (np.abs(local - wanted).max() > 0.01) == (size > 1), "one rank hides local positions"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_small_dtypes_turn_by_a_float64_angle_and_come_back_in_their_own_dtype(dtype: Any) -> None:
    """A late position: in float32 its angle alone would be off by about 0.03."""
    x = np.random.default_rng(3).standard_normal((2, 8)).astype(dtype)
    positions = [2**20 + 1, 3]
    got = rotary(x, positions)
    assert got.dtype == dtype
    exact = turned(x.astype(np.float64), positions, 1e4)
    # Half a unit: turned in float64 and rounded once. 1e-9: float64's own angle at 2**20.
    half = np.abs(exact) * float(np.finfo(dtype).eps) / 2 + 1e-9
    assert (np.abs(got - exact) <= half * (1 + 1e-6) + float(np.finfo(dtype).tiny)).all()


def test_the_input_is_neither_changed_nor_aliased_and_any_view_will_do() -> None:
    x = np.random.default_rng(4).standard_normal((3, 4))
    saved = x.copy()
    wanted = rotary(x, [0, 1, 2])
    assert not np.shares_memory(wanted, x)
    for view in (np.asfortranarray(x), x[::-1].copy()[::-1], np.repeat(x, 2, axis=0)[::2]):
        assert np.array_equal(rotary(view, np.array([0, 1, 2], np.uint8)), wanted)
    assert np.array_equal(x, saved)
    assert rotary(np.ones((0, 4)), []).shape == (0, 4)


def test_positions_restart_with_each_document() -> None:
    assert document_positions([0, 0, 0, 4, 1, 1, 0]).tolist() == [0, 1, 2, 0, 0, 1, 0]
    assert document_positions([-1, -1, 0]).tolist() == [0, 1, 0]
    assert document_positions([]).tolist() == []
    assert document_positions(np.array([0, 0, 255], np.uint8)).tolist() == [0, 1, 0]


def test_documents_rotate_alike_wherever_they_are_packed() -> None:
    """Packed positions shift both sides of every pair in a document, so outputs are the same."""
    documents = [0, 0, 0, 1, 1, 1, 1]
    q, k, v = np.random.default_rng(5).standard_normal((3, 7, 4))
    own, packed = document_positions(documents), np.arange(7)
    rule = Visibility(documents=np.array(documents))
    runs = [
        simulate(rotary(q, pos), rotary(k, pos), v, zigzag(7, 2), rule).output
        for pos in (own, packed)
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=0, atol=1e-13)
    alone = simulate(rotary(q[3:], own[3:]), rotary(k[3:], own[3:]), v[3:], zigzag(4, 2),
                     Visibility())  # fmt: skip
    np.testing.assert_allclose(runs[0][3:], alone.output, rtol=0, atol=1e-13)


@pytest.mark.parametrize("turn", [rotary, local_rotary])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 0)])
def test_an_odd_or_missing_width_is_refused(turn: Any, shape: tuple[int, ...]) -> None:
    with refused("x", "shape (…, S, D) with an even D", shape):
        turn(np.ones(shape), [0, 1])


@pytest.mark.parametrize("base", [0, -1.0, np.nan, np.inf, "10000", None, True, 1j])
def test_a_base_that_is_no_positive_number_is_refused(base: Any) -> None:
    with refused("base", "a finite number above 0", repr(base)):
        rotary(np.ones((2, 2)), [0, 1], base=base)


@pytest.mark.parametrize(
    ("positions", "wanted", "received"),
    [
        ([0], "2 positions", 1),
        ([0, -1], "positions of at least 0", -1),
        ([0.0, 1.0], "a 1-D integer array", "float64 of shape (2,)"),
        ([[0, 1]], "a 1-D integer array", "int64 of shape (1, 2)"),
    ],
)
def test_positions_that_do_not_fit_are_refused(positions: Any, wanted: str, received: Any) -> None:
    with refused("positions", wanted, received):
        rotary(np.ones((2, 2)), positions)
    with refused("positions", wanted, received):
        local_rotary(np.ones((2, 2)), positions)


def test_local_rotary_is_rotary_at_places_within_the_shard() -> None:
    x = np.random.default_rng(6).standard_normal((3, 4))
    got = local_rotary(x, [7, 100, 3], base=3.0)
    assert np.array_equal(got, rotary(x, [0, 1, 2], base=3.0))
    assert np.array_equal(local_rotary(x, [7, 8, 9]), rotary(x, [0, 1, 2]))


def test_integers_and_documents_of_another_kind_are_refused() -> None:
    with refused("x", "float16, float32 or float64", "int64"):
        rotary(np.ones((2, 2), int), [0, 1])
    ragged: Any = [[0], [0, 1]]
    with refused("documents", "an array", "lists of unequal lengths"):
        document_positions(ragged)
    with refused("documents", "a 1-D integer array", "float64 of shape (2,)"):
        document_positions([0.0, 1.0])
    with refused("documents", "a 1-D integer array", "int64 of shape (1, 2)"):
        document_positions([[0, 1]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_turn_that_leaves_the_dtype_is_refused(dtype: Any) -> None:
    """Both halves at the largest number: an eighth of a turn makes one of them √2 as long."""
    x = np.full((2, 2), np.finfo(dtype).max)
    with refused("x", f"numbers that fit {np.dtype(dtype)} when turned", "an overflow"):
        rotary(x, [0, 1])


def test_a_row_of_nan_or_infinity_is_turned_into_no_error_and_touches_no_other() -> None:
    """Padding may hold anything."""
    x = np.ones((3, 2))
    clean = rotary(x, [0, 1, 2])
    x[0], x[2] = np.inf, np.nan
    assert np.array_equal(rotary(x, [0, 1, 2])[1], clean[1])


def test_a_base_so_small_that_an_angle_is_infinite_is_refused() -> None:
    with refused("base", "a number whose angles are finite", repr(1e-320)):
        rotary(np.ones((2, 256)), [0, 3], base=1e-320)
    with refused("base", "a finite number above 0", repr(10**400)):
        rotary(np.ones((2, 2)), [0, 3], base=10**400)
