"""Laws that every right attention obeys, whatever its inputs: most need no reference at all.

The page book/invariants.md lists these beside those of test_simulate_metamorphic.
"""

from collections import Counter
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Run,
    Visibility,
    attention_chunk_stats,
    contiguous,
    dense_attention,
    finalize,
    from_lengths,
    merge_chunk_stats,
    schedule,
    simulate,
    striped,
    zigzag,
)
from cpcore.schedule import PROTOCOLS
from tests.support.relation import double_loop
from tests.support.tolerance import assert_within

Array = NDArray[Any]
S = 12
DOCUMENTS = np.array([0] * 5 + [1] * 7)
# A few hundred operations on numbers below 10, so 1e-13 is a hundred times their rounding.
ROUNDING = 1e-13
LAYOUTS = [zigzag(S, 3), striped(S, 4), from_lengths([1, 0, 8, 3])]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: str(x.lengths))
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def arrays(seed: int) -> tuple[Array, Array, Array, Array]:
    """query, key, value and dout: 4 heads that share 2."""
    rng = np.random.default_rng(seed)
    shapes = (4, S, 3), (2, S, 3), (2, S, 2), (4, S, 2)
    q, k, v, dout = (rng.standard_normal(shape) for shape in shapes)
    return q, k, v, dout


def run(layout: Layout, q: Array, k: Array, v: Array, dout: Array, **options: Any) -> Run:
    rule = Visibility(documents=DOCUMENTS)
    return simulate(q, k, v, layout, rule, dout=dout, **options)


def assert_unmoved(before: Run, after: Run, *names: str) -> None:
    for name in names:
        assert_within(name, getattr(after, name), getattr(before, name), ROUNDING)
        assert np.abs(getattr(before, name)).max() > 0.1  # zeros would agree, too


@every_layout
@every_protocol
def test_one_vector_added_to_every_key_moves_only_the_lse(layout: Layout, protocol: str) -> None:
    """It adds query · vector to all scores of a row, and each row's dS adds up to 0."""
    q, k, v, dout = arrays(1)
    step = np.array([0.5, -1.0, 2.0])
    before = run(layout, q, k, v, dout, protocol=protocol)
    after = run(layout, q, k + step, v, dout, protocol=protocol)
    assert_unmoved(before, after, "output", "dq", "dk", "dv")
    assert_within("lse", after.lse, before.lse + q @ step / np.sqrt(3), ROUNDING)


@every_layout
@every_protocol
def test_one_vector_added_to_every_value_moves_only_the_output_and_by_that_vector(
    layout: Layout, protocol: str
) -> None:
    """Probabilities add up to 1, and delta moves by as much as every dP."""
    q, k, v, dout = arrays(2)
    step = np.array([0.5, -1.0])
    before = run(layout, q, k, v, dout, protocol=protocol)
    after = run(layout, q, k, v + step, dout, protocol=protocol)
    assert_unmoved(before, after, "lse", "dq", "dk", "dv")
    assert_within("output", after.output, before.output + step, ROUNDING)


@every_layout
@every_protocol
def test_dk_adds_up_to_zero_and_dv_to_dout_over_the_keys_of_a_document(
    layout: Layout, protocol: str
) -> None:
    """If every row sees a key: a row of dS adds up to 0, a row of P to 1. Two heads share a key."""
    done = run(layout, *arrays(3), protocol=protocol)
    dout = arrays(3)[3].reshape(2, 2, S, 2).sum(axis=1)  # (Hkv, S, Dv)
    assert done.dk is not None
    assert done.dv is not None
    for document in (DOCUMENTS == 0, DOCUMENTS == 1):
        sums = [x[:, document].sum(axis=-2) for x in (done.dk, done.dv, dout)]
        assert_within("dk", sums[0], np.zeros((2, 3)), ROUNDING)
        assert_within("dv", sums[1], sums[2], ROUNDING)
        assert np.abs(done.dk[:, document]).max() > 0.1


@every_layout
@every_protocol
def test_a_later_token_changes_no_bit_of_an_earlier_output_or_dq(
    layout: Layout, protocol: str
) -> None:
    q, k, v, dout = arrays(4)
    before = run(layout, q, k, v, dout, protocol=protocol)
    for x in (q, k, v, dout):
        x[:, 9:] = 3 - 2 * x[:, 9:]
    after = run(layout, q, k, v, dout, protocol=protocol)
    for name in ("output", "lse", "dq"):
        a, b = getattr(before, name), getattr(after, name)
        assert np.array_equal(a[:, :9], b[:, :9]), name
        assert (np.abs(a - b)[:, 9:] > 1e-3).any(axis=0).all()


@every_layout
@every_protocol
def test_an_earlier_query_changes_no_bit_of_the_gradient_of_a_later_key(
    layout: Layout, protocol: str
) -> None:
    """It never saw that key, so it has no share in its gradient."""
    q, k, v, dout = arrays(5)
    before = run(layout, q, k, v, dout, protocol=protocol)
    for x in (q, dout):
        x[:, 5:9] = 3 - 2 * x[:, 5:9]
    after = run(layout, q, k, v, dout, protocol=protocol)
    for name in ("dk", "dv"):
        a, b = getattr(before, name), getattr(after, name)
        assert np.array_equal(a[:, 9:], b[:, 9:]), name
        assert (np.abs(a - b)[:, 5:9] > 1e-3).any(axis=0).all()


@every_layout
@every_protocol
@pytest.mark.parametrize("max_block", [None, 2])
def test_all_ranks_together_compute_every_visible_pair_once_and_replay_it_once(
    layout: Layout, protocol: str, max_block: int | None
) -> None:
    rule: dict[str, Any] = {"window": 4, "documents": DOCUMENTS}
    pairs: Counter[str] = Counter()
    options: dict[str, Any] = {"protocol": protocol, "max_block": max_block}
    for event in schedule(layout, Visibility(**rule), **options):
        pairs[event.phase] += event.pairs
    wanted = int(double_loop(range(S), range(S), rule).sum())
    assert 0 < wanted < S * S
    assert (pairs["forward"], pairs["replay"], pairs["return"]) == (wanted, wanted, 0)


@every_protocol
@pytest.mark.parametrize("layout", [*LAYOUTS, contiguous(S, 1), zigzag(S, 5)])
def test_every_protocol_brings_a_rank_each_foreign_token_once_a_phase(
    layout: Layout, protocol: str
) -> None:
    received: Counter[tuple[str, int]] = Counter()
    for event in schedule(layout, None, protocol=protocol):
        received[event.phase, event.rank] += event.received_tokens
    for rank, own in enumerate(layout.lengths):
        assert received["forward", rank] == received["replay", rank] == S - own


def test_another_order_of_merging_changes_bits_but_nothing_beyond_rounding() -> None:
    q, k, v, _ = (x[0] for x in arrays(6))
    chunks = zip(np.split(k, 4), np.split(v, 4), strict=True)
    parts = [attention_chunk_stats(q, *chunk) for chunk in chunks]
    outs = [finalize(reduce(merge_chunk_stats, order))[0] for order in permutations(parts)]
    assert len({out.tobytes() for out in outs}) > 1
    for out in outs:
        assert_within("output", out, dense_attention(q, k, v)[0], ROUNDING)
