"""`ring_attention` and the chunk algebra equal `dense` for any split, order, rule and layout."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpcore import (
    ChunkStats,
    Visibility,
    attention_chunk_stats,
    empty_stats,
    finalize,
    merge_chunk_stats,
    ring_attention,
)
from tests.support.cases import Case, cases, examples
from tests.support.tolerance import assert_within, reference, tolerance


def ring(case: Case) -> Any:
    p = case.problem
    visibility = None if case.rule is None else Visibility(**case.rule)
    return ring_attention(
        p.q,
        case.split(p.k),
        case.split(p.v),
        visibility=visibility,
        query_positions=np.array(case.q_pos, np.int64),
        key_positions=case.key_positions(),
        scale=p.scale,
    )


def chunk_summaries(case: Case) -> list[ChunkStats]:
    p = case.problem
    masks: list[Any] = [None] * len(case.lengths)
    if p.visible is not None:
        masks = case.split(p.visible, axis=-1)
    return [
        attention_chunk_stats(p.q, k, v, visible=visible, scale=p.scale)
        for k, v, visible in zip(case.split(p.k), case.split(p.v), masks, strict=True)
    ]


@examples(200)
@given(cases())
def test_ring_attention_equals_dense_for_any_split_rule_dtype_and_memory_layout(case: Case) -> None:
    out = ring(case)
    assert out.dtype == case.problem.q.dtype
    allowed = tolerance(case.problem, len(case.lengths))
    assert_within("out", out, reference(case.problem).out, allowed.out)


@examples(200)
@given(cases(), st.data())
def test_summaries_merge_in_any_order_and_any_bracketing(case: Case, data: st.DataObject) -> None:
    parts = chunk_summaries(case)
    while len(parts) > 1:
        first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(merge_chunk_stats(first, second))
    out, lse = finalize(parts[0], case.problem.q.dtype)
    wanted, allowed = reference(case.problem), tolerance(case.problem, len(case.lengths))
    assert_within("out", out, wanted.out, allowed.out)
    assert_within("lse", lse, wanted.lse, allowed.lse)


@examples(60)
@given(cases())
def test_merging_with_the_neutral_state_changes_no_bit(case: Case) -> None:
    for part in chunk_summaries(case):
        neutral = empty_stats(part.sum.shape, part.output.shape[-1], part.sum.dtype)
        for merged in (merge_chunk_stats(part, neutral), merge_chunk_stats(neutral, part)):
            for got, kept in zip(merged, part, strict=True):
                assert got.dtype == kept.dtype
                # + 0.0 makes both zeros positive: -0.0 + 0.0 is the one bit allowed to differ
                assert (got + 0.0).tobytes() == (kept + 0.0).tobytes()


@examples(60)
@given(cases())
def test_merging_two_summaries_is_commutative_bit_for_bit(case: Case) -> None:
    first, *rest = chunk_summaries(case)
    for other in rest[:3]:
        one, two = merge_chunk_stats(first, other), merge_chunk_stats(other, first)
        for a, b in zip(one, two, strict=True):
            assert a.tobytes() == b.tobytes()


@examples(60)
@given(cases())
def test_state_is_kept_in_the_accumulate_dtype(case: Case) -> None:
    state = np.float64 if case.problem.q.dtype == np.float64 else np.float32
    parts = chunk_summaries(case)
    merged = merge_chunk_stats(parts[0], parts[-1])
    _, lse = finalize(merged, np.float16)
    assert {x.dtype for x in (*parts[0], *merged, lse)} == {np.dtype(state)}


@examples(60)
@given(cases())
def test_no_input_is_mutated(case: Case) -> None:
    p = case.problem
    before = [x.tobytes() for x in (p.q, p.k, p.v)]
    ring(case)
    parts = chunk_summaries(case)
    states = [[x.tobytes() for x in part] for part in parts]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge_chunk_stats(merged, part)
        finalize(merged)
    assert before == [x.tobytes() for x in (p.q, p.k, p.v)]
    assert states == [[x.tobytes() for x in part] for part in parts]


@examples(150)
@given(cases(), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_whatever_a_slot_that_no_one_sees_holds_changes_no_bit(case: Case, junk: float) -> None:
    p = case.problem
    q, k, v = (x.copy() for x in (p.q, p.k, p.v))
    keys_used: Any = p.seen.any(axis=-2)
    if k.ndim > 2:  # a key slot is used if one head of its group sees it
        group = q.shape[-3] // k.shape[-3]
        heads = [keys_used[..., h * group : (h + 1) * group, :] for h in range(k.shape[-3])]
        keys_used = np.stack([head.any(axis=-2) for head in heads], axis=-2)
    clean = attention_chunk_stats(q, k, v, visible=p.seen, scale=p.scale)
    q[~p.seen.any(axis=-1)], k[~keys_used], v[~keys_used] = junk, junk, junk
    for got, kept in zip(
        attention_chunk_stats(q, k, v, visible=p.seen, scale=p.scale), clean, strict=True
    ):
        assert got.dtype == kept.dtype
        assert (got + 0.0).tobytes() == (kept + 0.0).tobytes()  # either zero will do


@examples(100)
@given(cases())
def test_a_row_that_sees_nothing_gives_zero_and_minus_infinity(case: Case) -> None:
    blind = ~case.problem.seen.any(axis=-1)
    parts = chunk_summaries(case)
    merged = parts[0]
    for part in parts[1:]:
        merged = merge_chunk_stats(merged, part)
    out, lse = finalize(merged)
    assert (out[blind] == 0).all()
    assert np.isneginf(lse[blind]).all()
    assert np.isfinite(lse[~blind]).all()
    assert (ring(case)[blind] == 0).all()


def test_the_random_cases_reach_every_corner_they_claim() -> None:
    """Otherwise the properties above could pass on easy cases alone."""
    corners: dict[str, int] = {}

    @examples(200)
    @given(cases())
    def count(case: Case) -> None:
        p, lengths = case.problem, case.lengths
        seen = p.seen.any(axis=-1)
        size = np.abs(reference(p).out).max(initial=0)
        for name, hit in {
            "a reference far from zero": size > 0.1,
            "no query": p.q.shape[-2] == 0,
            "no key": p.k.shape[-2] == 0,
            "empty chunk": 0 in lengths and sum(lengths) > 0,
            "chunks of one": set(lengths) == {1} and len(lengths) > 2,
            "forty chunks": len(lengths) == 40,
            "grouped heads": p.q.ndim > 2 and p.q.shape[-3] > p.k.shape[-3],
            "blind row": bool(seen.size) and not seen.all() and bool(seen.any()),
            "window": bool(case.rule and case.rule.get("window")),
            "documents": bool(case.rule and case.rule.get("documents") is not None),
            "relation": bool(case.rule and case.rule.get("relation") is not None),
            "strided": any(not x.flags.c_contiguous for x in (p.q, p.k, p.v)),
            **{str(np.dtype(t)): p.q.dtype == t for t in (np.float16, np.float32, np.float64)},
        }.items():
            corners[name] = corners.get(name, 0) + bool(hit)

    count()
    assert min(corners.values()) >= 5, corners
