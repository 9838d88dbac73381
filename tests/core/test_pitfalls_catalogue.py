"""The catalogue of wrong variants: enough of them, each with what a reader must know."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from cpcore import pitfalls, training_pitfalls
from cpcore.agreements import STEP_AGREES
from cpcore.faults import AGREES
from cpcore.simulation import FAULTS

HELPERS = {"ring_attention_with"}  # runs a wrong merge; not itself wrong
OF_GRADIENTS = {"rank_mean_gradient", "averaged_over_ranks"}  # these are a backward


def functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {
        name: thing
        for name, thing in inspect.getmembers(module, inspect.isfunction)
        if thing.__module__ == module.__name__ and not name.startswith("_") and name not in HELPERS
    }


WRONG = functions(pitfalls) | functions(training_pitfalls)


def test_there_are_far_more_than_16_wrong_variants_under_different_names() -> None:
    assert len(functions(pitfalls)) >= 7
    assert len(functions(training_pitfalls)) >= 10
    assert len(AGREES) >= 17
    shared = set(AGREES) & set(WRONG)
    assert shared == {"equal_weight_mean"}, "the same mean, as a function and in a whole run"


def test_every_wrong_function_declares_what_still_agrees_in_a_training_step() -> None:
    assert set(STEP_AGREES) == set(WRONG) | {"lost_return"}, "test_agreements plays each of them"


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_function_says_that_it_is_wrong_where_it_hides_and_which_backward_goes_with_it(
    name: str,
) -> None:
    doc = inspect.getdoc(WRONG[name]) or ""
    assert doc.startswith(("WRONG: ", "WASTEFUL: "))
    assert "Backward: " in " ".join(doc.split()) or name in OF_GRADIENTS
    hides = ("Hidden", "Right ", "hides", "passes", "no comparison of numbers shows it")
    assert any(word in doc for word in hides) or name == "add_lse"


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_of_a_run_says_what_is_wrong(name: str) -> None:
    """Forward faults name their backward; for the others the whole class is the backward."""
    cls = FAULTS[name]
    assert cls.__doc__ is not None
    assert "Backward:" in cls.__doc__ or "output" in AGREES[name]
    methods = [m for m in vars(cls) if not m.startswith("__")]
    assert methods, "a fault overrides at least one decision"
    assert all(hasattr(cls.__mro__[1], m) for m in methods)
