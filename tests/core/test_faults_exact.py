"""What a fault computes instead, exactly: another relation, another mean, another owner."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Visibility,
    contiguous,
    dense_attention,
    dense_attention_backward,
    from_lengths,
    zigzag,
)
from cpcore.pitfalls import equal_weight_mean
from tests.support.runs import Setting, setting

Array = NDArray[Any]
Place = tuple[int, int]  # (rank, index within its shard)
LAYOUTS = [zigzag(8, 2), zigzag(12, 3), contiguous(12, 4), from_lengths([4, 2, 5])]


def hop_too_few(layout: Layout, i: int, j: int, row: Place, key: Place) -> bool:
    return j <= i and key[0] != (row[0] + 1) % layout.cp_size


def other_way(layout: Layout, i: int, j: int, row: Place, key: Place) -> bool:
    """The block `step` places behind is masked as if it came from `step` places ahead."""
    step = (row[0] - key[0]) % layout.cp_size
    return bool(layout.owned[(row[0] + step) % layout.cp_size][key[1]] <= i)


RELATIONS: dict[str, Callable[[Layout, int, int, Place, Place], bool]] = {
    "local_masks": lambda layout, i, j, row, key: key[1] <= row[1],
    "diagonal_as_full": lambda layout, i, j, row, key: j <= i or row[0] == key[0],
    "mask_by_rank": lambda layout, i, j, row, key: key <= row,
    "one_hop_too_few": hop_too_few,
    "wrong_direction": other_way,
}


def relation(name: str, layout: Layout) -> Array:
    places = {
        int(pos): (rank, index)
        for rank, owned in enumerate(layout.owned)
        for index, pos in enumerate(owned)
    }
    pairs = [
        [RELATIONS[name](layout, i, j, places[i], places[j]) for j in range(layout.seq_len)]
        for i in range(layout.seq_len)
    ]
    return np.array(pairs)


# Blocks of the wrong owner must have the length of the right ones.
CASES = [
    pytest.param(name, layout, id=f"{name}-{layout.lengths}")
    for name in RELATIONS
    for layout in LAYOUTS
    if name != "wrong_direction" or len(set(layout.lengths)) == 1
]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_a_wrong_mask_is_this_other_relation_forward_and_backward(
    name: str, layout: Layout
) -> None:
    """So a gradient check of the wrong program passes: only a comparison with dense shows it."""
    case, seen = setting(layout), relation(name, layout)
    p, run = case.problem, case.run(fault=name)
    wanted = [
        *dense_attention(p.q, p.k, p.v, visible=seen),
        *dense_attention_backward(p.q, p.k, p.v, p.dout, visible=seen),
    ]
    for got, right in zip(run[:5], wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-13)


@pytest.mark.parametrize("max_block", [None, 2])
def test_the_mean_of_a_run_is_the_mean_of_the_function_and_its_gradient_is_its_own(
    max_block: int | None,
) -> None:
    case = setting(contiguous(12, 3), heads=(2, 1))
    p, step = case.problem, 1e-6
    run = case.run(fault="equal_weight_mean", max_block=max_block)
    size = max_block or 4
    chunks = ([x[:, a : a + size] for a in range(0, 12, size)] for x in (p.k, p.v))
    mean = equal_weight_mean(p.q, *chunks, visibility=Visibility())
    np.testing.assert_allclose(run.output, mean, rtol=0, atol=1e-13)
    rng = np.random.default_rng(1)
    for argument, gradient in (("q", run.dq), ("k", run.dk), ("v", run.dv)):
        direction = rng.standard_normal(getattr(p, argument).shape)
        losses = []
        for sign in (1, -1):
            moved: dict[str, Any] = {n: getattr(p, n) for n in ("q", "k", "v", "dout")}
            moved[argument] = moved[argument] + sign * step * direction
            shifted = Setting(case.layout, case.rule, type(p)(visible=p.visible, **moved))
            wrong = shifted.run(fault="equal_weight_mean", max_block=max_block).output
            losses.append((p.dout * wrong).sum())
        assert gradient is not None
        slope = (losses[0] - losses[1]) / (2 * step)
        # 1e-7: the error of a central difference is step² and rounding / step, both below it
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-7, abs=1e-7)


def share(case: Setting, rank: int, owner: int) -> list[Array]:
    """dk and dv that the queries of `rank` add for the keys of `owner`."""
    p, owned = case.problem, case.layout.owned
    rows = np.isin(np.arange(case.layout.seq_len), owned[rank])
    dout = np.where(rows[:, None], p.dout, 0)
    _, *gradients = dense_attention_backward(p.q, p.k, p.v, dout, visible=p.visible)
    return [gradient[:, owned[owner]] for gradient in gradients]


@pytest.mark.parametrize("protocol", ["ring", "direct"])
def test_a_return_one_hop_short_gives_a_rank_the_gradient_of_its_neighbors_keys(
    protocol: str,
) -> None:
    """A ring's whole sum for the neighbor stays; straight returns miss the last share only."""
    layout = zigzag(16, 4)
    case = setting(layout)
    run = case.run(fault="return_one_hop_short", protocol=protocol)
    for rank, owned in enumerate(layout.owned):
        neighbor = (rank + 1) % 4
        before = (rank - 1) % 4
        if protocol == "ring":
            parts = [(rank, rank), *((r, neighbor) for r in range(4) if r != neighbor)]
        else:
            parts = [*((r, rank) for r in range(4) if r != before), (rank, neighbor)]
        wanted = [
            np.sum(both, axis=0) for both in zip(*(share(case, *p) for p in parts), strict=True)
        ]
        for got, right in zip((run.dk, run.dv), wanted, strict=True):
            assert got is not None
            np.testing.assert_allclose(got[:, owned], right, rtol=0, atol=1e-12)
