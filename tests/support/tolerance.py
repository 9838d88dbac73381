"""The project's error bound, and references in extended precision to compare with.

The bound is 4·eps·(A + √n)·M + tiny/eps: eps and tiny belong to the dtype the running state is
kept in, n is the number of pieces merged per row, A measures how strongly rounding errors of the
scores are amplified, and M is the same formula on absolute values, so that a true value of zero
still has a bound of the right size. A float16 result adds the one cast at the end.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpcore import dense_attention, dense_attention_backward

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """One attention problem, its relation given as a plain bool array."""

    q: Array
    k: Array
    v: Array
    visible: Array | None = None
    scale: float | None = None
    keep: Array | None = None
    dout: Array | None = None

    @property
    def seen(self) -> Array:
        """bool (…, Q, K): the relation, broadcast."""
        shape = (*self.q.shape[:-1], self.k.shape[-2])
        return np.broadcast_to(True if self.visible is None else self.visible, shape)

    @property
    def factor(self) -> float:
        return float(self.q.shape[-1] ** -0.5 if self.scale is None else self.scale)

    def extended(self) -> "Problem":
        """The same numbers in longdouble."""
        wide = {
            name: getattr(self, name).astype(np.longdouble)
            for name in ("q", "k", "v", "keep", "dout")
            if getattr(self, name) is not None
        }
        return replace(self, **wide)


class Answer(NamedTuple):
    """Output, lse and gradients; or the allowed error of each."""

    out: Array
    lse: Array
    dq: Array | None = None
    dk: Array | None = None
    dv: Array | None = None


def reference(problem: Problem) -> Answer:
    """`dense` evaluated in longdouble, so that its own rounding does not count."""
    p = problem.extended()
    out, lse = dense_attention(p.q, p.k, p.v, visible=p.visible, scale=p.scale, keep=p.keep)
    if p.dout is None:
        return Answer(out, lse)
    gradients = dense_attention_backward(
        p.q, p.k, p.v, p.dout, visible=p.visible, scale=p.scale, keep=p.keep
    )
    return Answer(out, lse, *gradients)


def tolerance(problem: Problem, pieces: int = 1) -> Answer:
    """The allowed error of each result, elementwise; `pieces` is n, the chunks merged per row."""
    p, result = problem.extended(), problem.q.dtype
    state = np.finfo(np.result_type(np.float32, problem.q, problem.k, problem.v))
    q, k, v = _repeated(p.q, p.k, p.v, p.seen)
    keep = np.asarray(1 if p.keep is None else p.keep, np.longdouble)
    strength = np.where(p.seen, np.abs(q) @ np.abs(k).swapaxes(-1, -2) * abs(p.factor), 0)
    most_keys = max(1, int(p.seen.sum(axis=-1).max(initial=0)))
    amplified = 1 + strength.max(initial=0) + np.log(most_keys)
    unit = 4 * state.eps * (amplified + np.sqrt(pieces))
    floor = np.longdouble(state.tiny) / state.eps
    probs = _softmax(q, k, p.seen, p.factor)
    out = unit * ((probs * keep) @ np.abs(v)) + floor
    if result == np.float16:
        ref = np.abs(reference(problem).out)
        out = out + np.finfo(np.float16).eps * ref + np.finfo(np.float16).smallest_subnormal
    lse = np.full(p.q.shape[:-1], unit)
    if p.dout is None:
        return Answer(out, lse)
    dout = np.abs(np.where(p.seen.any(axis=-1, keepdims=True), p.dout, 0))
    flow = (dout @ np.abs(v).swapaxes(-1, -2)) * keep
    delta = (dout * ((probs * keep) @ np.abs(v))).sum(axis=-1, keepdims=True)
    dscores = probs * (flow + delta)
    dq = dscores @ np.abs(k) * abs(p.factor)
    dk = _grouped(dscores.swapaxes(-1, -2) @ np.abs(q) * abs(p.factor), p.k)
    dv = _grouped((probs * keep).swapaxes(-1, -2) @ dout, p.v)
    return Answer(out, lse, *(unit * x + floor for x in (dq, dk, dv)))


def assert_within(name: str, actual: ArrayLike, wanted: ArrayLike, allowed: ArrayLike) -> None:
    """Every element within its bound; infinities must be equal."""
    got, ref = np.asarray(actual), np.asarray(wanted)
    assert got.shape == ref.shape, f"{name}: shape {got.shape}, wanted {ref.shape}"
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.longdouble) - ref)
    fine = np.where(np.isfinite(ref), error <= allowed, got == ref)
    assert fine.all(), f"{name}: worst error {error[~fine].max()}, at {np.argwhere(~fine)[0]}"


def _repeated(q: Array, k: Array, v: Array, seen: Array) -> tuple[Array, Array, Array]:
    """Query, and key and value with one head per query head; slots that no one sees are zero."""
    if q.ndim > 2:
        heads, group = np.arange(q.shape[-3]), q.shape[-3] // k.shape[-3]
        k, v = k[..., heads // group, :, :], v[..., heads // group, :, :]
    rows = seen.any(axis=-1, keepdims=True)  # (…, Q, 1)
    keys = np.swapaxes(seen.any(axis=-2, keepdims=True), -1, -2)  # (…, K, 1)
    return np.where(rows, q, 0), np.where(keys, k, 0), np.where(keys, v, 0)


def _softmax(q: Array, k: Array, seen: Array, factor: float) -> Array:
    scores = np.where(seen, q @ k.swapaxes(-1, -2) * factor, -np.inf)
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights / np.where(total == 0, 1, total))


def _grouped(gradient: Array, like: Array) -> Array:
    """Summed over the query heads that share one key head."""
    if gradient.shape == like.shape:
        return gradient
    heads, group = like.shape[-3], gradient.shape[-3] // like.shape[-3]
    parts = [
        gradient[..., h * group : (h + 1) * group, :, :].sum(axis=-3, keepdims=True)
        for h in range(heads)
    ]
    return np.concatenate(parts, axis=-3)
