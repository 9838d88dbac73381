"""Random attention problems for `verify`: a seed, a layout, a rule and a protocol fix everything.

Owns the draw. Every process draws for itself, so that no large array is sent to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cpcore.distributed.bounds import Problem
from cpcore.dropout import Dropout
from cpcore.layouts import Layout, contiguous, from_lengths, from_owned, per_document, zigzag
from cpcore.layouts import striped as stripes
from cpcore.masks import Visibility

Array = NDArray[Any]
DTYPES = ("float64", "float32", "bfloat16")
Draw = np.random.Generator


class Case(NamedTuple):
    """One problem by name. seq_len 0: drawn, from 1 to 64."""

    seed: int
    cp_size: int
    layout: str
    visibility: str
    protocol: str
    dtype: str
    seq_len: int = 0


class Drawn(NamedTuple):
    """The problem of a case, and what a call needs besides its arrays.

    `arrays` are q, k, v and dout in logical order with NaN in padding slots; `problem` has zeros
    there.
    """

    layout: Layout
    rule: Visibility
    dropout: Dropout | None
    arrays: list[Tensor]
    problem: Problem


def _cuts(rng: Draw, seq_len: int) -> Array:
    """Where up to four documents start and end."""
    inner = np.sort(rng.integers(0, seq_len + 1, rng.integers(0, 4)))
    return np.array([0, *inner, seq_len])


def _uneven(rng: Draw, seq_len: int, cp_size: int, bounds: Array) -> Layout:
    cuts = np.sort(rng.integers(0, seq_len + 1, cp_size - 1))
    return from_lengths(np.diff(cuts, prepend=0, append=seq_len).tolist())


def _scattered(rng: Draw, seq_len: int, cp_size: int, bounds: Array) -> Layout:
    cuts = np.sort(rng.integers(0, seq_len + 1, cp_size - 1))
    return from_owned(np.split(rng.permutation(seq_len), cuts))


LAYOUTS: dict[str, Callable[[Draw, int, int, Array], Layout]] = {
    "contiguous": lambda rng, seq_len, cp_size, bounds: contiguous(seq_len, cp_size),
    "zigzag": lambda rng, seq_len, cp_size, bounds: zigzag(seq_len, cp_size),
    "striped": lambda rng, seq_len, cp_size, bounds: stripes(seq_len, cp_size, 2),
    "per_document": lambda rng, seq_len, cp_size, bounds: per_document(bounds, cp_size),
    "uneven": _uneven,
    "scattered": _scattered,
}


def _packed(rng: Draw, seq_len: int, bounds: Array) -> Visibility:
    """Documents with padding among them."""
    documents = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    documents[rng.random(seq_len) < 0.2] = -1
    return Visibility(documents=documents)


RULES: dict[str, Callable[[Draw, int, Array], Visibility]] = {
    "full": lambda rng, seq_len, bounds: Visibility(causal=False),
    "causal": lambda rng, seq_len, bounds: Visibility(),
    "window": lambda rng, seq_len, bounds: Visibility(window=int(rng.integers(1, seq_len + 1))),
    "packed": _packed,
    "relation": lambda rng, seq_len, bounds: Visibility(
        causal=False, relation=rng.random((seq_len, seq_len)) < 0.4
    ),
}


def draw(case: Case) -> Drawn:
    """The problem of this case."""
    rng = np.random.default_rng(case.seed)
    seq_len = case.seq_len or int(rng.integers(1, 65))
    bounds = _cuts(rng, seq_len)
    layout = LAYOUTS[case.layout](rng, seq_len, case.cp_size, bounds)
    rule = RULES[case.visibility](rng, seq_len, bounds)
    batch, group = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    # All-to-all splits heads, so there every rank gets one key head or two.
    kv_heads = int(rng.integers(1, 3)) * (case.cp_size if case.protocol == "all_to_all" else 1)
    width, value_width = int(rng.choice([4, 8, 16])), int(rng.choice([4, 8, 16]))
    value_width = width if rng.random() < 0.7 else value_width  # fused kernels want them equal
    scale = None if rng.random() < 0.7 else float(rng.uniform(0.1, 0.5))
    dropout = Dropout(0.2, case.seed) if rng.random() < 0.2 else None
    heads = kv_heads * group
    shapes = [(heads, width), (kv_heads, width), (kv_heads, value_width), (heads, value_width)]
    clean = [
        torch.from_numpy(rng.standard_normal((batch, h, seq_len, w))).to(getattr(torch, case.dtype))
        for h, w in shapes
    ]
    everything = np.arange(seq_len)
    padding = torch.from_numpy(rule.padding(everything))[:, None]
    arrays = [x.masked_fill(padding, torch.nan) for x in clean]
    keep = None
    if dropout is not None:
        shape = (batch, heads, seq_len, width)
        keep = torch.from_numpy(dropout.factor(shape, everything, everything).copy())
    visible = torch.from_numpy(rule.block(everything, everything))
    q, k, v, dout = (x.masked_fill(padding, 0) for x in clean)
    problem = Problem(q, k, v, dout, visible, width**-0.5 if scale is None else scale, keep)
    return Drawn(layout, rule, dropout, arrays, problem)
