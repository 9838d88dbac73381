"""Dropout whose mask is a function of global indices.

Owns one 32-bit hash, so that forward, replay, every layout and every rank count drop the same
probabilities. Leaves out where the factor is applied: to the output, never to the sum or lse.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    Array,
    any_array,
    expected,
    index_array,
    real_number,
    shown,
    whole_number,
)


@dataclass(frozen=True)
class Dropout:
    """Drops each probability with chance `rate`, decided by (seed, batch, head, i, j).

    Raises: ValueError unless 0 ≤ rate < 1 and seed is an integer in [0, 2**32).
    """

    rate: float
    seed: int

    def __post_init__(self) -> None:
        rate = real_number("rate", self.rate, "a number in [0, 1)")
        if not 0 <= rate < 1:
            raise expected("rate", "a number in [0, 1)", shown(self.rate))
        if whole_number("seed", self.seed, 0) >= 2**32:  # it would repeat a smaller one
            raise expected("seed", "an integer below 2**32", shown(self.seed))
        # Python's own numbers: rate · 2**32 would overflow numpy's float16.
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "seed", int(self.seed))

    def keep(self, batch: ArrayLike, query_head: ArrayLike, i: ArrayLike, j: ArrayLike) -> Array:
        """Bool, True where the probability is kept.

        Shapes: integer index arrays, broadcast against each other; i and j are global positions.
        Raises: ValueError for an index that is not an integer in [0, 2**32), or that does not
            broadcast against those before it.
        """
        state = _mix(np.asarray(self.seed, np.uint32))
        indices = {"batch": batch, "query_head": query_head, "i": i, "j": j}
        for name, index in indices.items():
            word = _word(name, index)
            try:
                state = _mix(state ^ word)
            except ValueError:
                wanted = f"a shape that broadcasts against {state.shape}"
                raise expected(name, wanted, word.shape) from None
        return np.asarray(state >= np.uint32(min(round(self.rate * 2**32), 2**32 - 1)))

    def factor(self, shape: tuple[int, ...], q_pos: ArrayLike, k_pos: ArrayLike) -> Array:
        """0 where dropped and 1/(1-rate) where kept, for a block of scores.

        Shapes: shape = (…, Q, D) of the queries, the axis before Q being heads and all axes before
            that the batch; positions (Q,) and (K,); result (…, Q, K).
        Raises: ValueError for a shape or positions of another kind, or positions from 2**32 on.
        """
        if not isinstance(shape, tuple | list) or len(shape) < 2:
            raise expected("shape", "a tuple (…, Q, D)", shown(shape))
        sizes = [whole_number("shape", size, 0) for size in shape[:-2]]
        q, k = index_array("q_pos", q_pos), index_array("k_pos", k_pos)
        heads = sizes[-1] if sizes else 1
        lead = np.arange(math.prod(sizes)).reshape(*sizes, 1, 1)  # (…, Hq, 1, 1)
        keep = self.keep(lead // heads, lead % heads, q[:, None], k[None, :])
        return keep / (1 - self.rate)  # (…, Hq, Q, K)


def _word(argument: str, index: ArrayLike) -> Array:
    """The index as 32-bit words; one that does not fit is refused, not wrapped around."""
    array = any_array(argument, index)
    if array.size and array.dtype.kind not in "iu":
        raise expected(argument, "integers", array.dtype)
    for end in (array.min(initial=0), array.max(initial=0)):
        if not 0 <= end < 2**32:
            raise expected(argument, "integers in [0, 2**32)", end)
    return array.astype(np.uint32)


def _mix(x: Array) -> Array:
    """Every input bit spread over the word: an offset, then MurmurHash3's 32-bit finalizer."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2**32 is the point
        x = x + np.uint32(0x9E3779B9)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return np.asarray(x ^ (x >> np.uint32(16)))
