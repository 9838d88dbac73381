"""The calculator of the bank: what it computes, and all that it refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cpcore.interview import evaluate, way_of
from cpcore.interview.expressions import is_literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4 - 6 / 3", 12),
        ("-(7 // 2) + 7 % 4", 0),
        ("2**10", 1024),
        ("ceil(989e12 / 450e9)", 2198),
        ("sum(r * r for r in range(4))", 14),
        ("max([3, 9, 4])", 9),
        ("[1, 2, 3, 4][1:3]", [2, 3]),
        ("model_shape('Llama 3.1 8B').group", 4),
        ("causal_pairs(64)", 2080),
        ("count_pairs('contiguous', 64, 4, rank=3)", 904),
    ],
)
def test_an_expression_has_the_value_of_its_arithmetic(text: str, value: object) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "().__class__",
        "planner.causal_pairs(4)",
        "open('x')",
        "(lambda: 1)()",
        "[x for x in range(3) for y in range(3)]",
        "[x for x in range(3) if x]",
        "causal_pairs(*[4])",
        "causal_pairs(**{})",
        "2 ** 2 ** 9",
        "1 if True else 2",
        "'a' @ 'b'",
        "x := 3",
        "1 +",
        "'{0.__class__}'.format(1)",
        "'a' * 1000000000",
        "1000000000 * 'a'",
        "[0] * 1000000000",
        "1000000000 * [0]",
        "(10**64)**64",
        "sum(r for r in range(1000000000))",
        "[[x for x in range(999)] for y in range(999)]",
        "range(3).index(1)",
        "causal_pairs.real",
        "1 / 0",
        "exp(1000)",
        "10.0 ** 64 ** 1 ** 1 * 1e308 ** 64",
        "-" * 100000 + "1",
        "(" * 5000 + "1" + ")" * 5000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expression: expected"):
        evaluate(text)


def test_private_attributes_are_out_of_reach() -> None:
    with pytest.raises(ValueError, match="arithmetic and calls"):
        evaluate("model_shape('Llama 3.1 8B').__class__")


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("causal_pairs(4)", "planner"),
        ("model_shape('Llama 3.1 8B').parameters", "planner"),
        ("model_shape('Llama 3.1 8B').hidden * 2", "preset"),
        ("count_pairs('zigzag', 8, 2) / 2", "counted"),
        ("4 * 5 / 2", "closed"),
    ],
)
def test_an_expression_tells_which_way_it_takes(text: str, way: str) -> None:
    assert way_of(text) == way


def test_what_the_planner_derives_is_no_plain_arithmetic() -> None:
    """A second way that read `group` or `parameters` would be the first way again."""
    assert way_of("m.group * 2") == way_of("m.parameters") == "planner"


def test_a_literal_is_arithmetic_on_typed_numbers() -> None:
    assert is_literal("64")
    assert is_literal("2 * 32")
    assert not is_literal("S * 2")


def test_the_engine_loads_numpy_and_neither_torch_nor_a_reader_of_yaml() -> None:
    """So that it also runs in a page, where only numpy is there."""
    code = "import sys, cpcore.interview; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "cpcore.interview.drills" in loaded
    assert not loaded & {"torch", "yaml", "matplotlib", "ipywidgets", "cpcore.ui"}
