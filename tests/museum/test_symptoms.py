"""What a visitor sees: closed-form numbers of the wrong system, and of its repair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cpcore.museum import EXHIBITS
from cpcore.museum.examination import repaired as right
from cpcore.museum.examination import symptom as wrong
from cpcore.museum.facts import Facts
from cpcore.museum.page import facts_text


def column(facts: Facts, i: int = -1) -> list[float]:
    """A column of numbers."""
    return [float(row[i].replace("\N{MINUS SIGN}", "-")) for row in facts.rows]


def close(got: list[float], want: list[float]) -> bool:
    """Equal to the three decimals that are printed; NaN equals NaN."""
    return np.allclose(got, want, rtol=0, atol=0.5e-3, equal_nan=True)


PREFIX = [1, 1.5, 7 / 3, 3.75]
NAN = float("nan")
TURNS = [np.exp(4 / np.sqrt(2) * np.cos(np.subtract.outer(x, x))) for x in (range(4), [0, 1, 0, 1])]
WEIGHTS = [(turn / turn.sum(axis=-1, keepdims=True))[:, 0].tolist() for turn in TURNS]
SMALL, LARGE = (1 / (1 + np.exp(x)) for x in (1, -1))
GRADIENTS = [SMALL * LARGE, -SMALL * LARGE, SMALL * LARGE, SMALL, LARGE]


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("mean", [2, 2], [3, 3]),
        ("merge", [2.5, NAN, NAN, 2.5, 2.5, NAN], [2.5, 3.5, 0.5, 2.5, 2.5, 0.5]),
        # rows of rank 0 see as much of rank 1 as of themselves
        ("triangle", [2.5, 3.75, 2.5, 3.75], PREFIX),
        ("angles", WEIGHTS[1], WEIGHTS[0]),
        ("order", [0, 1, 4, 5, 6, 7, 2, 3], list(range(8))),
        ("heads", [1, 2, 1, 2], [1, 1, 2, 2]),
        ("softmax", [0, 0, 0, SMALL, LARGE], GRADIENTS),
        ("means", [4, 4, 6], [4, 4, 4]),
        ("padding", [NAN] * 4, [1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3, 0]),
    ],
)
def test_the_last_column_has_these_numbers(name: str, bad: list[float], good: list[float]) -> None:
    assert close(column(wrong(name)), bad)
    assert close(column(right(name)), good)
    assert not close(bad, good)


def test_a_symptom_shows_one_rank_right_except_where_every_rank_count_is_wrong() -> None:
    for name in ("mean", "merge", "triangle", "angles", "order", "softmax"):
        assert close(column(wrong(name), 1), column(right(name), 1)), name
    heads = wrong("heads")
    assert column(heads, 2) == column(heads, 3) != column(heads, 1)


def test_padding_leaves_the_forward_pass_right() -> None:
    assert close(column(wrong("padding"), 1), [*PREFIX[:3], 0])


def test_a_gradient_that_is_averaged_shrinks_by_the_rank_count_and_the_loss_stays() -> None:
    facts = wrong("context")
    length = column(facts)
    assert np.allclose([length[0] / x for x in length], [1, 2, 3, 4], atol=0.02)
    assert len(set(column(facts, 1))) == 1
    assert len(set(column(right("context")))) == 1


def test_returned_gradients_are_right_in_sum_and_wrong_by_owner() -> None:
    facts = wrong("return")
    single, three = column(facts, 1), column(facts, 2)
    assert single[-1] == three[-1]
    assert not any(np.isclose(a, b, atol=0.01) for a, b in zip(single[:3], three[:3], strict=True))
    assert column(right("return"), 1) == column(right("return"), 2)


def test_stale_keys_agree_at_the_first_step_and_then_climb() -> None:
    single, three = column(wrong("stale"), 1), column(wrong("stale"), 2)
    assert single[0] == three[0]
    assert all(later < earlier for earlier, later in pairwise(single))
    assert three[1] > three[0]
    assert column(right("stale"), 2) == single


def test_a_seed_that_is_drawn_locally_gives_as_many_losses_as_rank_counts() -> None:
    assert len(set(column(wrong("draw")))) == 4
    assert len(set(column(right("draw")))) == 1


def test_rounding_to_16_bits_grows_with_the_ranks_and_float32_does_not_show() -> None:
    errors = column(wrong("bits"))
    assert errors == sorted(errors)
    assert errors[-1] > 2 * errors[0]
    assert {row[1] for row in right("bits").rows} == {"rounding only"}
    assert right("bits").figure is None


def test_a_skipped_message_stops_the_ranks_behind_it() -> None:
    """Rank 1 misses rank 3's shard from rank 0 at step 2, and rank 2 misses what rank 1 owes it."""
    ends = [row[1] for row in wrong("skip").rows]
    assert ends == ["finished", "waits at step 2", "waits at step 3", "finished"]
    assert {row[1] for row in right("skip").rows} == {"finished"}


def test_documents_listed_one_by_one_take_as_long_as_the_busier_rank() -> None:
    """Causal documents of 4 and 12 tokens have 10 + 78 pairs; a half is 44."""
    work = np.array([[int(x) for x in row[1:]] for row in wrong("balance").rows])
    assert work.sum() == 88
    assert work.sum(axis=0).tolist() == [26, 62]
    even = np.array([[int(x) for x in row[1:]] for row in right("balance").rows])
    assert even.sum(axis=0).tolist() == [44, 44]
    assert even.max(axis=1).sum() < work.max(axis=1).sum()


def test_every_repair_differs_from_its_symptom() -> None:
    for name in EXHIBITS:
        assert facts_text(wrong(name)) != facts_text(right(name)), name


def test_a_table_of_facts_is_aligned() -> None:
    text = facts_text(Facts(("a", "long"), (("1", "2"), ("333", "4"))))
    assert text == "a    long\n1    2\n333  4"
