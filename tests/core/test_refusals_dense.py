"""The oracle refuses bad arguments too, by its own checks: it shares none with the core."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import dense_attention, dense_attention_backward
from tests.support.errors import refused

Array = NDArray[Any]
ONES = np.ones((2, 3))
FLOATS = "float16, float32 or float64"
KEY = "(…, K, D) to fit a query (…, Q, D)"
FINITE = ("finite numbers in seen slots", "NaN or infinity")
NUMBER = "a finite number"


def three(*shapes: tuple[int, ...]) -> tuple[Array, ...]:
    return tuple(np.ones(shape) for shape in shapes)


@pytest.mark.parametrize(
    ("arrays", "options", "name", "wanted", "received"),
    [
        ((ONES.astype(int), ONES, ONES), {}, "query", FLOATS, "int64"),
        ((ONES, ONES, ONES + 0j), {}, "value", FLOATS, "complex128"),
        ((ONES, [[1.0], [1.0, 2.0]], ONES), {}, "key", "an array", "unequal lengths"),
        (three((2, 3), (2, 4), (2, 3)), {}, "key", KEY, "(2, 3), (2, 4), (2, 3)"),
        (
            three((2, 3), (2, 3), (3, 3)),
            {},
            "value",
            "(…, K, Dv) to fit key",
            "(2, 3), (2, 3), (3, 3)",
        ),
        (three((3, 2, 3), (2, 2, 3), (2, 2, 3)), {}, "key", KEY, "(3, 2, 3), (2, 2, 3), (2, 2, 3)"),
        (three((3,), (2, 3), (2, 3)), {}, "key", KEY, "(3,), (2, 3), (2, 3)"),
        (three((2, 0), (2, 0), (2, 3)), {}, "key", KEY, "(2, 0), (2, 0), (2, 3)"),
        ((ONES, ONES, ONES), {"visible": np.ones((2, 2))}, "visible", "bool", "float64"),
        (
            (ONES, ONES, ONES),
            {"visible": np.ones((3, 2), bool)},
            "visible",
            "a shape that broadcasts to (2, 2)",
            "(3, 2)",
        ),
        ((ONES * np.nan, ONES, ONES), {}, "query", *FINITE),
        ((ONES, ONES * np.nan, ONES), {}, "key", *FINITE),
        ((ONES, ONES, ONES * np.inf), {}, "value", *FINITE),
        ((ONES, ONES, ONES), {"scale": "1"}, "scale", NUMBER, "'1'"),
        ((ONES, ONES, ONES), {"scale": True}, "scale", NUMBER, "True"),
        ((ONES, ONES, ONES), {"scale": 1j}, "scale", NUMBER, "1j"),
        ((ONES, ONES, ONES), {"scale": np.nan}, "scale", NUMBER, "nan"),
        ((ONES, ONES, ONES), {"scale": -np.inf}, "scale", NUMBER, "-inf"),
        (
            (ONES, ONES, ONES),
            {"keep": ONES[:, :2] * np.nan},
            "keep",
            "finite factors of at least 0",
            "others",
        ),
        (
            (ONES, ONES, ONES),
            {"keep": -ONES[:, :2]},
            "keep",
            "finite factors of at least 0",
            "others",
        ),
        ((ONES, ONES, ONES), {"keep": [[1, 0]]}, "keep", FLOATS, "int64"),
        (
            (ONES, ONES, ONES),
            {"keep": np.ones((3, 2))},
            "keep",
            "a shape that broadcasts to (2, 2)",
            "(3, 2)",
        ),
    ],
)
def test_dense_refuses(
    arrays: tuple[Array, Array, Array], options: Any, name: str, wanted: str, received: str
) -> None:
    with refused(name, wanted, received):
        dense_attention(*arrays, **options)
    with refused(name, wanted, received):
        dense_attention_backward(*arrays, ONES, **options)


def test_dense_refuses_an_output_that_the_query_dtype_cannot_hold() -> None:
    query = np.ones((1, 1), np.float16)
    with refused("query", "a dtype that holds the output", "float16"):
        dense_attention(query, np.ones((1, 1)), np.full((1, 1), 1e6))


def test_dense_computes_in_the_widest_dtype_it_is_given() -> None:
    """A float32 query against float64 keys: 1 and 1 + 1e-10 are two values in float64 only."""
    query, values = np.ones((1, 1), np.float32), np.array([[1.0], [1 + 2e-10]])
    _, lse = dense_attention(query, np.array([[0.0], [1e-10]]), values, scale=1.0)
    assert lse.dtype == np.float64
    assert lse[0] - np.log(2) == pytest.approx(5e-11, rel=1e-4)


def test_dense_backward_refuses_a_dout_of_another_shape_or_kind() -> None:
    with refused("dout", "shape (2, 3)", "(2, 2)"):
        dense_attention_backward(ONES, ONES, ONES, np.ones((2, 2)))
    with refused("dout", FLOATS, "int64"):
        dense_attention_backward(ONES, ONES, ONES, np.ones((2, 3), int))


def test_a_dout_that_is_not_finite_in_a_row_that_counts_is_refused() -> None:
    with refused("dout", *FINITE):
        dense_attention_backward(ONES, ONES, ONES, ONES * np.nan)
