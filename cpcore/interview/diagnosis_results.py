"""Evidence on wrong results: the faults of `simulate`, played, and compared with the oracle."""

from __future__ import annotations

from functools import cache

import numpy as np

from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.interview.diagnosis_base import Check, Evidence
from cpcore.layouts import Layout, contiguous, zigzag
from cpcore.masks import Visibility
from cpcore.ring import simulate

S = 16
STORY = (
    "Context parallelism of size 4 was switched on, zigzag shards, causal. Training runs, the loss "
    "falls, the model comes out worse. Something in attention is wrong. Each check compares one "
    "result with dense attention, in float64. Choose checks one by one."
)
CAUSES: dict[str, str | tuple[str, int, int]] = {
    "masks by local index": "local_masks",
    "masks by rank number": "mask_by_rank",
    "owners counted in the wrong direction": "wrong_direction",
    "the loop ends one step early": "one_hop_too_few",
    "equal-weight mean of the blocks": "equal_weight_mean",
    "the replay uses each block's own output": "own_output",
    "the replay uses each block's own lse": "own_lse",
    "the replay uses the keys of step 0": "stale_kv",
    "one returned gradient is lost": ("lost_return", 2, 0),
}
CHECKS = (
    Check("output, 4 ranks, zigzag, causal", 2),
    Check("output, 4 ranks, contiguous, causal", 2),
    Check("output, 2 ranks, contiguous, causal", 2),
    Check("output, 4 ranks, zigzag, full", 2),
    Check("lse, 4 ranks, zigzag, causal", 2),
    Check("dQ, 4 ranks, zigzag, causal", 4),
    Check("dK, 4 ranks, zigzag, causal", 4),
    Check("dV, 4 ranks, zigzag, causal", 4),
    Check("dQ, every rank given the same keys and values", 5),
)
SETTINGS: tuple[tuple[Layout, bool], ...] = (
    (zigzag(S, 4), True), (contiguous(S, 4), True), (contiguous(S, 2), True), (zigzag(S, 4), False),
)  # fmt: skip


@cache
def evidence() -> Evidence:
    """Every cause under every check: "agrees" or "differs" from dense attention."""
    return Evidence("wrong results", STORY, CHECKS, {name: _row(f) for name, f in CAUSES.items()})


def _row(fault: str | tuple[str, int, int]) -> tuple[str, ...]:
    q, k, v, dout = np.random.default_rng(1).standard_normal((4, S, 4))
    seen: list[str] = []
    for layout, causal in SETTINGS:
        rule = Visibility(causal=causal)
        visible = rule.block(np.arange(S), np.arange(S))
        out, lse = dense_attention(q, k, v, visible=visible)
        # A rank that is not there loses nothing: with two ranks, that run has no such fault.
        played = None if layout.cp_size < 3 and isinstance(fault, tuple) else fault
        run = simulate(q, k, v, layout, rule, dout=dout, fault=played)
        seen.append(_word(run.output, out))
        if not seen[1:]:
            right = dense_attention_backward(q, k, v, dout, visible=visible)
            pairs = [(run.lse, lse), *zip(run[2:5], right, strict=True)]
            first = [_word(a, b) for a, b in pairs]
    return (*seen, *first, _with_equal_shards(fault))


def _with_equal_shards(fault: str | tuple[str, int, int]) -> str:
    """dQ where it does not matter whose keys are used: full attention, all shards alike."""
    rng, layout = np.random.default_rng(2), contiguous(S, 4)
    q, dout = rng.standard_normal((2, S, 4))
    k, v = (np.tile(x, (4, 1)) for x in rng.standard_normal((2, S // 4, 4)))
    rule = Visibility(causal=False)
    run = simulate(q, k, v, layout, rule, dout=dout, fault=fault)
    return _word(run.dq, dense_attention_backward(q, k, v, dout)[0])


def _word(found: np.ndarray | None, right: np.ndarray) -> str:
    assert found is not None  # every run has its dout
    return "agrees" if np.allclose(found, right, rtol=1e-10, atol=1e-12) else "differs"
