"""What must not change in a whole run, forward and backward, and what must by a known amount."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Run,
    Visibility,
    contiguous,
    from_lengths,
    from_owned,
    per_document,
    simulate,
    striped,
    zigzag,
)
from cpcore.schedule import PROTOCOLS
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]
S = 11
FIELDS = ("output", "lse", "dq", "dk", "dv")
PACKED = np.array([0] * 4 + [1] * 1 + [2] * 6)
ORDER = np.random.default_rng(1).permutation(S)
RULES: dict[str, dict[str, Any] | None] = {
    "full": None,
    "causal": {},
    "window": {"window": 3},
    "two-sided window": {"window": 3, "causal": False},
    "documents": {"documents": PACKED},
    "padding": {"documents": np.where(PACKED == 1, -1, PACKED), "causal": False},
    "relation": {"causal": False, "relation": np.random.default_rng(2).random((S, S)) < 0.4},
}
LAYOUTS: dict[str, Callable[[int], Layout]] = {
    "contiguous": lambda r: contiguous(S, r),
    "striped": lambda r: striped(S, r, stripe=2),
    "zigzag": lambda r: zigzag(S, r),
    "per document": lambda r: per_document([0, 4, 5, 11], r),
    "uneven": lambda r: from_lengths([*[0, 6, 1, 3, 0][:r], S - sum([0, 6, 1, 3, 0][:r])]),
    "shuffled": lambda r: from_owned(np.array_split(ORDER, r)),
}


def arrays(seed: int) -> tuple[Array, Array, Array, Array]:
    """query, key, value and dout: 4 heads that share 2."""
    rng = np.random.default_rng(seed)
    shapes = (4, S, 3), (2, S, 3), (2, S, 2), (4, S, 2)
    q, k, v, dout = (rng.standard_normal(shape) for shape in shapes)
    return q, k, v, dout


def run(layout: Layout, rule: dict[str, Any] | None, *inputs: Array, **options: Any) -> Run:
    q, k, v, dout = inputs
    visibility = None if rule is None else Visibility(**rule)
    return simulate(q, k, v, layout, visibility, dout=dout, **options)


def same_bits(a: Run, b: Run) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS, ids=str)
def test_no_layout_rank_count_protocol_or_block_size_changes_any_result(
    name: str, rule: str
) -> None:
    settings, (q, k, v, dout) = RULES[rule], arrays(1)
    every = range(S)
    visible = None if settings is None else double_loop(every, every, settings)
    problem = Problem(q, k, v, visible=visible, dout=dout)
    wanted, allowed = reference(problem), tolerance(problem, S)
    assert min(np.abs(x[np.isfinite(x)]).max() for x in wanted) > 0.3
    for cp_size, protocol in itertools.product(range(1, 6), PROTOCOLS):
        layout, max_block = LAYOUTS[name](cp_size), [None, 1, 2, 4, None][cp_size - 1]
        done = run(layout, settings, q, k, v, dout, protocol=protocol, max_block=max_block)
        for field, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
            assert_within(f"R = {cp_size}: {field}", getattr(done, field), ref, bound)


def test_every_way_to_cut_five_tokens_over_ranks_gives_the_same_results() -> None:
    q, k, v, dout = (x[:, :5] for x in arrays(2))
    problem = Problem(q, k, v, visible=np.tri(5, dtype=bool), dout=dout)
    wanted, allowed = reference(problem), tolerance(problem, 5)
    for ranks in range(1, 5):
        for cuts in itertools.combinations_with_replacement(range(6), ranks - 1):
            layout = from_lengths(np.diff([0, *cuts, 5]).tolist())
            done = run(layout, {}, q, k, v, dout, max_block=2)
            for field, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
                assert_within(f"{cuts}: {field}", getattr(done, field), ref, bound)


def test_every_order_in_which_ranks_own_five_pieces_gives_the_same_results() -> None:
    inputs = arrays(3)
    q, k, v, dout = inputs
    problem = Problem(q, k, v, visible=np.tri(S, dtype=bool), dout=dout)
    wanted, allowed = reference(problem), tolerance(problem, 5)
    for order in itertools.permutations(np.array_split(np.arange(S), 5)):
        done = run(from_owned(order), {}, *inputs)
        for field, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
            assert_within(field, getattr(done, field), ref, bound)


def test_all_protocols_compute_the_same_bits_and_differ_in_messages_only() -> None:
    """Forward and dq: same blocks in the same order. dk and dv are summed in another order."""
    for layout in (zigzag(S, 3), LAYOUTS["uneven"](4)):
        ring = run(layout, {}, *arrays(4), protocol="ring")
        for protocol in PROTOCOLS[1:]:
            other = run(layout, {}, *arrays(4), protocol=protocol)
            assert other.events != ring.events
            for field in ("output", "lse", "dq"):
                assert np.array_equal(getattr(other, field), getattr(ring, field))
            for field in ("dk", "dv"):
                assert_within(field, getattr(other, field), getattr(ring, field), 1e-13)


def test_without_a_backward_pass_the_forward_results_are_the_same_bits() -> None:
    layout, (q, k, v, dout) = zigzag(S, 3), arrays(4)
    both, alone = run(layout, {}, q, k, v, dout), simulate(q, k, v, layout, Visibility())
    assert np.array_equal(alone.output, both.output)
    assert np.array_equal(alone.lse, both.lse)
    assert alone[2:5] == (None, None, None)
    assert [result[2:] for result in alone.per_rank] == [(None, None, None)] * 3
    assert alone.events == [event for event in both.events if event.phase == "forward"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("layout", [zigzag(S, 3), striped(S, 4), per_document([0, 4, 5, 11], 2)])
def test_changing_one_document_changes_no_bit_of_another(layout: Layout, protocol: str) -> None:
    rule, (q, k, v, dout) = {"documents": PACKED}, arrays(5)
    before = run(layout, rule, q, k, v, dout, protocol=protocol)
    other = PACKED == 2
    for x in (q, k, v, dout):
        x[:, other] = 3 - 2 * x[:, other]
    after = run(layout, rule, q, k, v, dout, protocol=protocol)
    for field in FIELDS:
        a, b = getattr(before, field), getattr(after, field)
        assert np.array_equal(a[:, ~other], b[:, ~other]), field
        assert np.abs(a[:, other] - b[:, other]).max() > 0.5


@pytest.mark.parametrize("pad", [200.0, np.nan, np.inf])
@pytest.mark.parametrize("cp_size", [1, 2, 3])
def test_whatever_padding_slots_hold_reaches_no_real_result(pad: float, cp_size: int) -> None:
    rule, inputs = RULES["padding"], arrays(6)
    padded = PACKED == 1
    clean = run(zigzag(S, cp_size), rule, *inputs, max_block=2)
    for x in inputs:
        x[:, padded] = pad
    done = run(zigzag(S, cp_size), rule, *inputs, max_block=2)
    assert same_bits(done, clean)
    assert np.isneginf(done.lse[:, padded]).all()
    for name in ("output", "dq", "dk", "dv"):
        assert not getattr(done, name)[:, padded].any()
        assert np.abs(getattr(done, name)[:, ~padded]).max() > 0.5


@pytest.mark.parametrize("shift", [-512.0, 64.0, 1024.0])
def test_a_constant_added_to_all_logits_moves_only_the_lse(shift: float) -> None:
    """Scores are integers and so is the shift: all sums of scores are exact, so is the comparison.

    lse is max + log(sum): only that last sum is rounded, at the size of the shift.
    """
    rng = np.random.default_rng(7)
    q = np.concatenate([rng.integers(-3, 4, (S, 2)), np.ones((S, 1))], axis=1).astype(float)
    k = np.concatenate([rng.integers(-3, 4, (S, 2)), np.zeros((S, 1))], axis=1).astype(float)
    v, dout, moved = rng.standard_normal((S, 2)), rng.standard_normal((S, 2)), k.copy()
    moved[:, 2] = shift
    before, after = (run(zigzag(S, 3), {}, q, x, v, dout, scale=1.0) for x in (k, moved))
    assert np.array_equal(before.output, after.output)
    bound = 4 * np.finfo(float).eps * abs(shift)
    assert_within("lse", after.lse, before.lse + shift, bound)
    for name, width in (("dq", 2), ("dk", 3), ("dv", 2)):  # dq[:, 2] = Σ dS · shift: 0 but rounded
        a, b = getattr(before, name)[:, :width], getattr(after, name)[:, :width]
        assert_within(name, a, b, 100 * bound)
        assert np.abs(a).max() > 0.1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_key_given_twice_splits_the_gradient_between_its_copies(protocol: str) -> None:
    """A relation in which the queries see both copies of the keys, and their own copies nothing."""
    q, k, v, dout = arrays(8)
    once = run(zigzag(S, 3), None, q, k, v, dout, protocol=protocol)
    rows = np.concatenate([np.ones((S, 2 * S), bool), np.zeros((S, 2 * S), bool)])
    doubled = (np.concatenate([x, x], axis=-2) for x in (q, k, v, dout))
    twice = run(zigzag(2 * S, 4), {"causal": False, "relation": rows}, *doubled, protocol=protocol)
    assert_within("output", twice.output[:, :S], once.output, 1e-13)
    assert_within("lse", twice.lse[:, :S], once.lse + np.log(2), 1e-13)
    assert_within("dq", twice.dq[:, :S], once.dq, 1e-13)
    for name in ("dk", "dv"):
        copies, whole = getattr(twice, name), getattr(once, name)
        assert_within(name, copies[:, :S], whole / 2, 1e-13)
        assert_within(name, copies[:, S:], whole / 2, 1e-13)
        assert np.abs(whole).max() > 0.1
