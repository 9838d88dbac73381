"""Documents are padded without losing a token, and padding reaches nothing real."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cpcore import Visibility, per_document, simulate
from cpcore.loss import next_token_labels
from cpcore.packing import Packed, pad_packed
from cpcore.schedule import PROTOCOLS
from tests.support.cases import examples
from tests.support.errors import refused

Array = NDArray[Any]
PACKED = pad_packed([0, 3, 3, 10, 11], multiple=4)


def test_every_document_is_padded_at_its_end_to_a_multiple() -> None:
    assert PACKED.cu_seqlens.tolist() == [0, 4, 4, 12, 16]
    assert PACKED.documents.tolist() == [0] * 3 + [-1] + [2] * 7 + [-1] + [3] + [-1] * 3
    assert PACKED.real.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 12]


@examples(60)
@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 8))
def test_no_token_is_lost_and_no_document_is_padded_by_a_whole_multiple(
    lengths: list[int], multiple: int
) -> None:
    packed = pad_packed(np.cumsum([0, *lengths]), multiple)
    sizes = np.diff(packed.cu_seqlens)
    assert (sizes % multiple == 0).all()
    assert all(0 <= size - n < multiple for size, n in zip(sizes, lengths, strict=True))
    ids = [number for number, n in enumerate(lengths) for _ in range(n)]
    assert packed.documents[packed.real].tolist() == ids
    assert (np.delete(packed.documents, packed.real) == -1).all()
    assert len(packed.documents) == packed.cu_seqlens[-1] == sizes.sum()
    starts = dict(enumerate(packed.cu_seqlens))
    firsts = [int(packed.real[ids.index(number)]) for number in dict.fromkeys(ids)]
    assert firsts == [starts[number] for number in dict.fromkeys(ids)]


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_padding_and_unpadding_is_a_round_trip_on_any_axis(axis: int) -> None:
    shape = [2, 3, 5]
    shape[axis] = len(PACKED.real)
    x = np.random.default_rng(0).standard_normal(shape)
    padded = PACKED.pad(x, axis=axis, fill=9.0)
    assert padded.shape[axis] == len(PACKED.documents)
    assert np.array_equal(PACKED.unpad(padded, axis=axis), x)
    rest = np.moveaxis(padded, axis, 0)[PACKED.documents == -1]
    assert (rest == 9).all()
    assert rest.size > 0


def test_the_axis_is_the_one_before_the_width_and_the_fill_0_unless_given() -> None:
    x = np.ones((11, 2))
    padded = PACKED.pad(x)
    assert padded.shape == (16, 2)
    assert padded.sum() == 22
    assert np.array_equal(PACKED.unpad(padded), x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8, np.bool_])
def test_the_dtype_is_kept_and_the_input_is_not_aliased(dtype: Any) -> None:
    x = np.ones((11, 2), dtype)
    padded = PACKED.pad(x, fill=1)
    assert padded.dtype == dtype
    assert padded.all()
    assert PACKED.unpad(padded).dtype == dtype
    assert not np.shares_memory(padded, x)


def test_labels_of_a_padded_pack_stay_within_documents() -> None:
    tokens = PACKED.pad(np.arange(1, 12), axis=0)
    labels = next_token_labels(tokens, PACKED.documents)
    assert PACKED.unpad(labels, axis=0).tolist() == [2, 3, -1, 5, 6, 7, 8, 9, 10, -1, -1]
    assert (np.delete(labels, PACKED.real) == -1).all()


def results(packed: Packed, fill: float, **options: Any) -> list[Array]:
    """Output, lse and gradients of the real rows; pads of all four inputs hold `fill`."""
    rng = np.random.default_rng(1)
    q, k, v, dout = rng.standard_normal((4, 2, len(packed.real), 3))
    layout = per_document(packed.cu_seqlens, 2)
    arrays = [packed.pad(x, fill=fill) for x in (q, k, v)]
    run = simulate(
        *arrays, layout, Visibility(documents=packed.documents),
        dout=packed.pad(dout, fill=fill), **options,
    )  # fmt: skip
    padding = np.flatnonzero(packed.documents == -1)
    assert not run.output[:, padding].any()
    assert np.isneginf(run.lse[:, padding]).all()
    found = [run.output, run.lse[..., None]]
    for gradient in (run.dq, run.dk, run.dv):
        assert gradient is not None
        assert not gradient[:, padding].any()
        found.append(gradient)
    return [packed.unpad(x) for x in found]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fill", [200.0, np.nan, np.inf])
def test_C16_C39_no_real_row_changes_by_a_bit_whatever_the_pads_hold(
    fill: float, protocol: str
) -> None:
    clean = results(PACKED, 0.0, protocol=protocol)
    for got, wanted in zip(results(PACKED, fill, protocol=protocol), clean, strict=True):
        assert np.array_equal(got, wanted)
    assert all(np.abs(x).max() > 0.1 for x in clean)


def test_C16_padding_to_cut_evenly_changes_no_result_beyond_rounding() -> None:
    whole, padded = results(pad_packed([0, 3, 3, 10, 11], 1), 0.0), results(PACKED, 200.0)
    for got, wanted in zip(padded, whole, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13)


def test_after_padding_every_rank_owns_the_same_number_of_slots() -> None:
    lengths = per_document(pad_packed([0, 5, 6, 13], 6).cu_seqlens, 3).lengths
    assert len(set(lengths)) == 1


def test_a_pack_of_nothing_has_no_slots() -> None:
    for ends in ([0], [0, 0]):
        packed = pad_packed(ends, 4)
        assert packed.cu_seqlens.tolist() == ends
        assert packed.pad(np.ones((0, 3))).shape == packed.unpad(np.ones((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("ends", "wanted", "received"),
    [
        ([], "0 followed by rising ends", []),
        ([1, 2], "0 followed by rising ends", [1, 2]),
        ([0, 3, 2], "0 followed by rising ends", [0, 3, 2]),
        ([0.0, 3.0], "a 1-D integer array", "float64 of shape (2,)"),
        ([0, -3], "positions of at least 0", -3),
    ],
)
def test_ends_that_are_not_cumulative_lengths_are_refused(
    ends: Any, wanted: str, received: Any
) -> None:
    with refused("cu_seqlens", wanted, received):
        pad_packed(ends, 4)


@pytest.mark.parametrize("multiple", [0, -4, 2.0, True, None])
def test_a_multiple_below_1_is_refused(multiple: Any) -> None:
    with refused("multiple", "an integer of at least 1", repr(multiple)):
        pad_packed([0, 3], multiple)


@pytest.mark.parametrize(("shape", "axis"), [((10, 2), -2), ((11, 2), -1), ((11,), -2), ((), 0)])
def test_arrays_of_another_length_are_refused(shape: tuple[int, ...], axis: int) -> None:
    with refused("x", f"11 positions along axis {axis}", f"shape {shape}"):
        PACKED.pad(np.ones(shape), axis=axis)
    with refused("x", f"16 positions along axis {axis}", f"shape {shape}"):
        PACKED.unpad(np.ones(shape), axis=axis)


@pytest.mark.parametrize(
    ("dtype", "fill"), [(np.int64, np.nan), (np.int64, 0.5), (np.uint8, -1), (np.bool_, 2)]
)
def test_a_fill_that_integers_cannot_hold_is_refused(dtype: Any, fill: float) -> None:
    with refused("fill", f"a value that {np.dtype(dtype)} can hold", repr(fill)):
        PACKED.pad(np.ones((11, 1), dtype), fill=fill)


@pytest.mark.parametrize("x", [["a"] * 11, [1j] * 11, [None] * 11])
def test_what_holds_no_numbers_is_refused(x: Any) -> None:
    with refused("x", "bools, integers or floating numbers", np.asarray(x).dtype):
        PACKED.pad(x, axis=0)


@pytest.mark.parametrize("fill", ["0", None, 1j, [0.0]])
def test_a_fill_that_is_no_number_is_refused(fill: Any) -> None:
    with refused("fill", "a number", repr(fill)):
        PACKED.pad(np.zeros(11), axis=0, fill=fill)


def test_lists_of_unequal_lengths_are_named() -> None:
    ragged: Any = [[1, 2], [3]]
    for move in (PACKED.pad, PACKED.unpad):
        with refused("x", "an array", "lists of unequal lengths"):
            move(ragged)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [(np.float16, 1e5), (np.float32, 1e300), (np.float64, 10**400), (np.int64, 10**400)],
    ids=["float16", "float32", "float64", "int64"],
)
def test_a_fill_that_would_become_infinite_or_wrap_is_refused(dtype: Any, fill: float) -> None:
    with refused("fill", f"a value that {np.dtype(dtype)} can hold", repr(fill)):
        PACKED.pad(np.ones((11, 1), dtype), fill=fill)


@pytest.mark.parametrize("fill", [np.nan, np.inf, -np.inf, np.float32(np.inf), 2**70, True, -7])
def test_a_float_array_takes_any_number_that_it_can_hold(fill: Any) -> None:
    padded = PACKED.pad(np.ones((11, 1)), fill=fill)
    held = padded[PACKED.documents == -1]
    assert np.array_equal(held, np.full(held.shape, float(fill)), equal_nan=True)


@pytest.mark.parametrize("axis", ["0", 1.5, None, True, [0]])
def test_an_axis_that_is_no_integer_is_refused(axis: Any) -> None:
    for move, size in ((PACKED.pad, 11), (PACKED.unpad, 16)):
        with refused("axis", "an integer", repr(axis)):
            move(np.ones((size, size)), axis=axis)
