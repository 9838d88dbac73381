"""The oracle refuses bad arguments too, by its own checks: it shares none with the core."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import dense_attention, dense_attention_backward
from tests.support.errors import refused

Array = NDArray[Any]
ONES = np.ones((2, 3))
SHAPES = "(…, Q, D), (…, K, D), (…, K, Dv)"
FINITE = ("finite numbers in seen slots", "NaN or infinity")


@pytest.mark.parametrize(
    ("arrays", "options", "name", "wanted", "received"),
    [
        ((ONES.astype(int), ONES, ONES), {}, "dtypes", "floats", "int64, float64, float64"),
        ((ONES, ONES, ONES + 0j), {}, "dtypes", "floats", "float64, float64, complex128"),
        ((ONES, np.ones((2, 4)), ONES), {}, "shapes", SHAPES, "[(2, 3), (2, 4), (2, 3)]"),
        ((ONES, ONES, np.ones((3, 3))), {}, "shapes", SHAPES, "[(2, 3), (2, 3), (3, 3)]"),
        (
            (np.ones((3, 2, 3)), np.ones((2, 2, 3)), np.ones((2, 2, 3))),
            {},
            "shapes",
            SHAPES,
            "[(3, 2, 3), (2, 2, 3), (2, 2, 3)]",
        ),
        ((np.ones(3), ONES, ONES), {}, "shapes", SHAPES, "[(3,), (2, 3), (2, 3)]"),
        (
            (np.ones((2, 0)), np.ones((2, 0)), ONES),
            {},
            "shapes",
            SHAPES,
            "[(2, 0), (2, 0), (2, 3)]",
        ),
        ((ONES, ONES, ONES), {"visible": np.ones((2, 2))}, "visible", "bool", "float64"),
        ((ONES * np.nan, ONES, ONES), {}, "query", *FINITE),
        ((ONES, ONES, ONES * np.inf), {}, "key, value", *FINITE),
    ],
)
def test_dense_refuses(
    arrays: tuple[Array, Array, Array], options: Any, name: str, wanted: str, received: str
) -> None:
    with refused(name, wanted, received):
        dense_attention(*arrays, **options)


@pytest.mark.parametrize("dout", [np.ones((2, 2)), np.ones((2, 3), int)])
def test_dense_backward_refuses_a_dout_of_another_shape_or_kind(dout: Array) -> None:
    with refused("dout", "floats (2, 3)", f"{dout.dtype} {dout.shape}"):
        dense_attention_backward(ONES, ONES, ONES, dout)


def test_a_dout_that_is_not_finite_in_a_row_that_counts_is_refused() -> None:
    with refused("dout", *FINITE):
        dense_attention_backward(ONES, ONES, ONES, ONES * np.nan)
