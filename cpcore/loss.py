"""Next-token loss over a sharded sequence, kept as (sum, count).

Owns labels and the reduction. A mean of per-rank means weighs a token by how few neighbors its
rank happens to have; a sum and a count add up to the right mean for any split.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    Array,
    accumulate_dtype,
    any_array,
    expected,
    float_array,
    index_array,
    real_number,
    whole_number,
)

IGNORE = -1


class LossSum(NamedTuple):
    """Σ of the losses of the tokens that count, and their number."""

    sum: float
    count: int  # type: ignore[assignment]  # hides tuple.count, which no one needs here


def next_token_labels(tokens: ArrayLike, documents: ArrayLike | None = None) -> Array:
    """The label of each position: the token after it, in logical order, before any sharding.

    The last position of a document has no label, and neither has padding (document -1): IGNORE.

    Shapes: tokens (S,) ids of at least 0, documents (S,) ids of at least -1; result (S,).
    Raises: ValueError for ids that are not such integers, or lengths that differ.

    >>> next_token_labels([5, 6, 7, 8, 9], documents=[0, 0, 1, 1, -1])
    array([ 6, -1,  8, -1, -1])
    """
    ids = index_array("tokens", tokens)
    labels = np.append(ids[1:], IGNORE)[: len(ids)]
    if documents is None:
        return labels
    docs = any_array("documents", documents)
    if docs.shape != ids.shape or (docs.size and docs.dtype.kind not in "iu"):
        raise expected("documents", f"{len(ids)} integers", f"{docs.dtype} of shape {docs.shape}")
    if docs.size and docs.min() < -1:
        raise expected("documents", "ids of at least -1", docs.min())
    follows = np.append(docs[1:] == docs[:-1], False)[: len(ids)] & (docs != -1)
    return np.where(follows, labels, IGNORE)


def loss_sum(logits: ArrayLike, labels: ArrayLike) -> LossSum:
    """Cross entropy of the labels that are not IGNORE, as (sum, count). No valid token: (0, 0).

    Shapes: logits (S, vocabulary), labels (S,).
    Raises: ValueError for labels outside the vocabulary, shapes that differ, logits that are not
        finite where a label counts (elsewhere they may hold anything), or a loss that overflows.
    """
    scores, ids, valid = _checked(logits, labels)
    with np.errstate(under="ignore", over="ignore"):
        # Shifted first: a small loss has no digits to lose.
        shifted = scores - scores.max(axis=-1, keepdims=True)
        lse = np.log(np.exp(shifted).sum(axis=-1))
        losses = lse - shifted[np.arange(len(ids)), np.where(valid, ids, 0)]
        total = float(losses[valid].sum(dtype=np.float64))
    if not np.isfinite(total):
        raise expected("logits", f"losses that fit {scores.dtype}", "an overflow")
    return LossSum(total, int(valid.sum()))


def loss_gradient(logits: ArrayLike, labels: ArrayLike, count: int) -> Array:
    """Gradient of (Σ of losses) / count with respect to the logits of one shard.

    `count` is that of all ranks together: with it, the gradients of the ranks simply add up. A rank
    without valid tokens has zeros.

    Shapes: logits (S, vocabulary), labels (S,); result as logits, at least float32.
    Raises: ValueError as `loss_sum`, and for a count below the number of labels that count here.
    """
    scores, ids, valid = _checked(logits, labels)
    count = whole_number("count", count, int(valid.sum()))
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        probs = weights / weights.sum(axis=-1, keepdims=True)
        probs[np.arange(len(ids))[valid], ids[valid]] -= 1
        return np.where(valid[:, None], probs, 0) / max(1, count)


def mean_loss(parts: Iterable[LossSum]) -> float:
    """Σ of sums over Σ of counts: the mean over all tokens that count; 0 if there is none.

    Raises: ValueError unless every part is a LossSum of a finite sum and a count of at least 0: a
        bare number would have no count. Also for sums that overflow together.
    """
    checked = loss_parts(parts)
    total = sum(part.sum for part in checked)
    if not np.isfinite(total):
        raise expected("parts", "sums that fit a float together", "an overflow")
    return float(total / max(1, sum(part.count for part in checked)))


def loss_parts(parts: Iterable[LossSum]) -> list[LossSum]:
    """The parts as Python's own numbers, whose counts never wrap around."""
    array = isinstance(parts, np.ndarray)
    if array or not isinstance(parts, Iterable) or isinstance(parts, LossSum):
        raise expected("parts", "an iterable of LossSum", type(parts).__name__)
    checked = []
    for part in parts:
        if not isinstance(part, LossSum):
            raise expected("parts", "an iterable of LossSum", f"one of {type(part).__name__}")
        count = whole_number("parts.count", part.count, 0)
        checked.append(LossSum(real_number("parts.sum", part.sum), count))
    return checked


def _checked(logits: ArrayLike, labels: ArrayLike) -> tuple[Array, Array, Array]:
    """logits in at least float32, 0 where no label counts; labels; and which of them count."""
    scores, ids = float_array("logits", logits), any_array("labels", labels)
    if scores.ndim != 2 or scores.shape[-1] == 0:
        raise expected("logits", "shape (S, vocabulary)", scores.shape)
    if ids.shape != scores.shape[:1] or (ids.size and ids.dtype.kind not in "iu"):
        raise expected("labels", f"{len(scores)} integers", f"{ids.dtype} of shape {ids.shape}")
    if ids.size and (ids.min() < IGNORE or ids.max() >= scores.shape[-1]):
        raise expected("labels", f"{IGNORE} or ids below {scores.shape[-1]}", ids.tolist())
    valid = ids != IGNORE
    scores = np.where(valid[:, None], scores.astype(accumulate_dtype(scores.dtype)), 0)
    if not np.isfinite(scores).all():
        raise expected("logits", "finite numbers where a label counts", "NaN or infinity")
    return scores, ids.astype(np.int64), valid
