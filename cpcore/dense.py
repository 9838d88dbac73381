"""Attention over the whole sequence at once, and its gradients, in the most obvious way.

This is the oracle of every other module, so it shares no code with them, keeps every matrix in full
and repeats grouped keys instead of reshaping. It is slow on purpose.
"""

import numpy as np
from numpy.typing import ArrayLike

from cpcore.oracle_inputs import Array, floats, keep_factor, prepare, zero_unseen


def dense_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    visible: ArrayLike | None = None,
    scale: float | None = None,
    keep: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """softmax(scale · query · keyᵀ) · value, and the log-sum-exp of each row.

    A row that sees no key has output 0 and lse -inf. `keep` is the dropout factor, 0 or
    1/(1-rate): it multiplies the probabilities in the output, never the sum or lse.

    Shapes: query (…, Q, D), key (…, K, D), value (…, K, Dv); visible bool and keep float,
        broadcast to (…, Q, K); output (…, Q, Dv) in query's dtype, lse (…, Q) at least float32.
        Axis -3 is heads when present: query head h reads key head h // (Hq / Hkv).
    Raises: ValueError for wrong shapes or dtypes, NaN or infinity in a slot that is seen, or an
        output that query's dtype cannot hold.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    >>> dense_attention([[1.0]], [[0.0], [np.log(3)]], [[0.0], [4.0]])[0].round(6)
    array([[3.]])
    """
    q, k, v, mask, scale = prepare(query, key, value, visible, scale)
    probs, lse = _probabilities(q, k, mask, scale)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        output = (probs * keep_factor(keep, probs)) @ v
        cast = output.astype(np.asarray(query).dtype)
    if not np.isfinite(cast).all():
        raise ValueError(f"query: expected a dtype that holds the output, received {cast.dtype}")
    return cast, lse


def dense_attention_backward(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    dout: ArrayLike,
    *,
    visible: ArrayLike | None = None,
    scale: float | None = None,
    keep: ArrayLike | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of Σ dout · output with respect to query, key and value.

    Written from the softmax Jacobian, dS = P ∘ (dP - rowsum(P ∘ dP)); it does not use the shorter
    form through delta = rowsum(dout · out), so that it can check that form.

    Shapes: dout (…, Q, Dv); results as query, key and value, at least float32. A row that sees no
        key contributes nothing. Other arguments as in `dense_attention`.
    Raises: ValueError as `dense_attention`, and for a dout of the wrong shape or gradients that
        overflow.
    Source: the chain rule; the same steps are in Dao et al. 2022 (arXiv:2205.14135), appendix B.
    """
    q, k, v, mask, scale = prepare(query, key, value, visible, scale)
    rows, shape = floats("dout", dout), (*q.shape[:-1], v.shape[-1])
    if rows.shape != shape:
        raise ValueError(f"dout: expected shape {shape}, received {rows.shape}")
    with np.errstate(under="ignore", over="ignore"):
        rows = zero_unseen("dout", rows.astype(q.dtype), mask.any(axis=-1))
    probs, _ = _probabilities(q, k, mask, scale)
    factor = keep_factor(keep, probs)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        dprobs = (rows @ v.swapaxes(-1, -2)) * factor
        dscores = probs * (dprobs - (probs * dprobs).sum(axis=-1, keepdims=True))
        dq = dscores @ k * scale
        dk = dscores.swapaxes(-1, -2) @ q * scale
        dv = (probs * factor).swapaxes(-1, -2) @ rows
        dk, dv = _sum_group(dk, np.shape(key)), _sum_group(dv, np.shape(value))
    if not all(np.isfinite(gradient).all() for gradient in (dq, dk, dv)):
        raise ValueError(f"dout: expected gradients that fit {q.dtype}, received an overflow")
    return dq, dk, dv


def _probabilities(q: Array, k: Array, mask: Array, scale: float) -> tuple[Array, Array]:
    """Softmax weights (…, Q, K), all 0 in a row that sees nothing, and lse (…, Q)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        scores = np.where(mask, (q * scale) @ k.swapaxes(-1, -2), -np.inf)
        if not np.isfinite(scores[mask]).all():
            raise ValueError(f"query, key: expected finite scores, received overflow in {q.dtype}")
        top = scores.max(axis=-1, initial=-np.inf)
        top = np.where(np.isneginf(top), 0, top)
        weights = np.exp(scores - top[..., None])
    total = weights.sum(axis=-1)
    divisor = np.where(total == 0, 1, total)
    return weights / divisor[..., None], np.where(total == 0, -np.inf, top + np.log(divisor))


def _sum_group(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Gradients of the query heads that share a key head, added up."""
    if gradient.shape == shape:
        return gradient
    group = gradient.shape[-3] // shape[-3]
    folded = gradient.reshape(*shape[:-2], group, *shape[-2:])  # (…, Hkv, group, K, ·)
    return np.asarray(folded.sum(axis=-3))
