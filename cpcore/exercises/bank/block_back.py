"""Exercise: the backward pass of one block."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.dense import dense_attention
from cpcore.exercises.bank.inputs import Array, draw
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong

GRADIENTS = ("dq", "dk", "dv")


def pair_by_pair(
    q: Array, k: Array, v: Array, dout: Array, lse: Array, delta: Array, visible: Array
) -> tuple[Array, ...]:
    """Every visible pair adds its share."""
    dq, dk, dv = (np.zeros_like(x) for x in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1])
    for i, j in np.argwhere(visible):
        prob = math.exp(scale * math.fsum(q[i] * k[j]) - lse[i])
        slope = prob * (math.fsum(dout[i] * v[j]) - delta[i]) * scale
        dq[i] += slope * k[j]
        dk[j] += slope * q[i]
        dv[j] += prob * dout[i]
    return dq, dk, dv


def block(
    seed: int, rows: int, keys: int, width: int, first: int, hidden: tuple[int, ...] = ()
) -> Args:
    """The block of keys from `first` on, of an attention over `keys` keys; rows may be hidden."""
    q, k = draw(seed, (rows, width), (keys, width))
    v, dout = draw(seed + 50, (keys, 2), (rows, 2))
    visible = np.random.default_rng(seed).random((rows, keys)) < 0.8
    visible[:, 0] = True
    visible[list(hidden)] = False
    out, lse = dense_attention(q, k, v, visible=visible)
    part = slice(first, None)
    return q, k[part], v[part], dout, lse, (dout * out).sum(axis=-1), visible[:, part]


def two_keys(first: int) -> Args:
    """One query and keys 0 and 1 with values 0 and 1, as in chapter 6."""
    one, keys = np.ones((1, 1)), np.array([[0.0], [1.0]])
    out, lse = dense_attention(one, keys, keys)
    part, visible = keys[first:], np.ones((1, 2 - first), bool)
    return one, part, part.copy(), one.copy(), lse, out[:, 0], visible


def _parts_of_rows() -> Iterator[Args]:
    yield two_keys(first=1)
    for seed, shape in enumerate([(1, 3, 1), (2, 3, 2), (3, 5, 4)]):
        yield block(seed, *shape, first=1)


BLOCK_BACKWARD = Exercise(
    name="block_backward",
    title="Back through one block",
    level="senior",
    minutes=20,
    chapter="06_backward.ipynb",
    hints=(
        "The forward pass has kept two numbers per row. What does exp(score − lse) give, for one "
        "key of the row, if lse is that of the whole row?",
        "It gives the replayed probabilities P. Then dP = dout · v for each pair, and the "
        "gradient by a score is P ∘ (dP − delta). Nothing of the other blocks is needed beyond "
        "lse and delta.",
        "dv sums P · dout over queries, dk sums dscores · q · scale over queries, dq sums dscores "
        "· k · scale over keys. A row with lse −inf needs a finite number in its place, since "
        "−inf − (−inf) is NaN.",
    ),
    examples=(
        Example("the whole row in one block", lambda: two_keys(first=0)),
        Example("three keys, one block", lambda: block(3, 1, 3, 4, first=0)),
    ),
    claims=(
        Claim("A block that holds a part of the row", _parts_of_rows),
        Claim("Hidden pairs add nothing", lambda: [block(s, 2, 4, 2, first=0) for s in (4, 5, 6)]),
        Claim("A row that saw nothing adds 0, without NaN",
              lambda: [block(7, 1, 2, 1, 0, (0,)), block(8, 3, 4, 2, 1, (0, 2))], clean=True),
    ),
    oracle=pair_by_pair,
    parts=GRADIENTS,
    large=lambda: block(9, 64, 128, 16, first=64),
    wrong=(
        Wrong(
            "output of the block",
            "delta is taken from the block's own output: the mass of the block stays frozen",
            (("    dscores = probs * (dout @ v.T - delta[:, None])",
              "    dprobs = dout @ v.T\n"
              "    own = (probs * dprobs).sum(1) / np.maximum(probs.sum(1), 1e-300)\n"
              "    dscores = probs * (dprobs - own[:, None])"),),
            passes_run=True,
            seen_in="tt-metal#53205",
        ),
        Wrong(
            "output and lse of the block",
            "both lse and delta are those of the block alone",
            (("    dscores = probs * (dout @ v.T - delta[:, None])",
              "    probs = probs / np.maximum(probs.sum(1), 1e-300)[:, None]\n"
              "    dprobs = dout @ v.T\n"
              "    dscores = probs * (dprobs - (probs * dprobs).sum(1)[:, None])"),),
            passes_run=True,
        ),
        Wrong(
            "lse of the block",
            "the block's own lse normalizes the probabilities",
            (("    dscores", "    probs = probs / np.maximum(probs.sum(1), 1e-300)[:, None]\n"
              "    dscores"),),
            passes_run=True,
        ),
        Wrong(
            "masked row",
            "a row that saw nothing makes NaN, which spreads to every key",
            (("np.where(np.isneginf(lse), 0, lse)", "lse"),),
            passes_run=True,
            seen_in="pytorch#196170",
        ),
        Wrong(
            "no delta",
            "the softmax is taken for a fixed set of weights",
            (("dout @ v.T - delta[:, None]", "dout @ v.T"),),
        ),
        Wrong(
            "scale lost in dk",
            "dk lacks the scale of the scores",
            (("dscores.T @ q * scale", "dscores.T @ q"),),
        ),
        Wrong(
            "no scale",
            "the scores are not divided by √D",
            (("scale = q.shape[1] ** -0.5", "scale = 1.0"),),
        ),
        Wrong(
            "swapped",
            "dk and dv change places",
            (("return dscores @ k * scale, dscores.T @ q * scale, probs.T @ dout",
              "return dscores @ k * scale, probs.T @ dout, dscores.T @ q * scale"),),
        ),
    ),
)  # fmt: skip


EXERCISES = (BLOCK_BACKWARD,)
