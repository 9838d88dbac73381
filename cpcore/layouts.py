"""Which rank owns which positions, and how data moves between the two orders.

Logical order is the order of the text; physical order is rank after rank. A layout changes
ownership only: it never sees a mask, so it cannot change who may attend to whom.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    MOST_POSITIONS,
    MOST_RANKS,
    Array,
    any_array,
    check_axis,
    document_bounds,
    expected,
    index_array,
    shown,
    whole_number,
)


@dataclass(frozen=True, eq=False)
class Layout:
    """A partition of positions 0 … S-1 over ranks, each rank's in the order it stores them.

    Raises: ValueError unless every position is owned exactly once.
    """

    owned: tuple[Array, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.owned, tuple | list):
            raise expected("owned", "positions of each rank", type(self.owned).__name__)
        ranks = tuple(index_array(f"owned[{r}]", pos).copy() for r, pos in enumerate(self.owned))
        if not ranks:
            raise expected("owned", "at least one rank", "none")
        every = np.sort(np.concatenate(ranks))
        wrong = np.flatnonzero(every != np.arange(len(every)))
        if len(wrong):
            wanted = f"each position 0 … {len(every) - 1} exactly once"
            at = wrong[0]
            raise expected("owned", wanted, f"{every[at]} where {at} should stand, sorted")
        for pos in ranks:
            pos.setflags(write=False)
        object.__setattr__(self, "owned", ranks)

    @property
    def cp_size(self) -> int:
        """Number of ranks R."""
        return len(self.owned)

    @property
    def seq_len(self) -> int:
        """Number of positions S."""
        return sum(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Positions per rank; ranks may be empty."""
        return tuple(len(pos) for pos in self.owned)

    @property
    def permutation(self) -> Array:
        """physical = logical[permutation]."""
        return np.concatenate(self.owned)

    @property
    def inverse(self) -> Array:
        """logical = physical[inverse]; only by chance equal to the permutation."""
        return np.argsort(self.permutation)

    def shard(self, x: ArrayLike, axis: int = -2) -> list[Array]:
        """Each rank's own slice of a logical-order array, as copies.

        Raises: ValueError unless x has `seq_len` entries along `axis`.
        """
        array = any_array("x", x)
        check_axis("x", array, axis, self.seq_len)
        return [np.take(array, pos.astype(np.intp), axis=axis) for pos in self.owned]

    def unshard(self, parts: Sequence[ArrayLike], axis: int = -2) -> Array:
        """The logical-order array from each rank's slice: undoes `shard`.

        Raises: ValueError unless there is one part per rank, each of its rank's length.
        """
        _listed("parts", parts)
        if len(parts) != self.cp_size:
            raise expected("parts", f"{self.cp_size} arrays, one per rank", len(parts))
        arrays = [any_array(f"parts[{rank}]", part) for rank, part in enumerate(parts)]
        for rank, (array, length) in enumerate(zip(arrays, self.lengths, strict=True)):
            check_axis(f"parts[{rank}]", array, axis, length)
            if _others(array, axis) != _others(arrays[0], axis):
                wanted = f"the other axes of parts[0], {_others(arrays[0], axis)}"
                raise expected(f"parts[{rank}]", wanted, _others(array, axis))
        return np.take(np.concatenate(arrays, axis), self.inverse.astype(np.intp), axis)


def contiguous(seq_len: int, cp_size: int) -> Layout:
    """Rank r owns positions [r·S//R, (r+1)·S//R): any S and R, at most one token apart."""
    return Layout(tuple(_pieces(seq_len, cp_size)))


def striped(seq_len: int, cp_size: int, stripe: int = 1) -> Layout:
    """Stripes of `stripe` positions are dealt to the ranks in turn.

    Source: Brandon et al. 2023, Striped Attention (arXiv:2311.09431), with stripe = 1.
    """
    seq_len, cp_size = _sizes(seq_len, cp_size)
    owner = np.arange(seq_len) // whole_number("stripe", stripe, 1) % cp_size
    return Layout(tuple(np.flatnonzero(owner == rank) for rank in range(cp_size)))


def zigzag(seq_len: int, cp_size: int) -> Layout:
    """Cut 2R pieces; rank r owns piece r and piece 2R-1-r, an early one and a late one.

    >>> zigzag(8, 2).permutation, zigzag(8, 2).inverse
    (array([0, 1, 6, 7, 2, 3, 4, 5]), array([0, 1, 4, 5, 6, 7, 2, 3]))
    """
    seq_len, cp_size = _sizes(seq_len, cp_size)
    pieces = _pieces(seq_len, 2 * cp_size)
    return Layout(tuple(np.concatenate((pieces[r], pieces[-1 - r])) for r in range(cp_size)))


def from_lengths(lengths: Sequence[int]) -> Layout:
    """Consecutive shards of the given lengths, such as [2, 3]; 0 makes an empty rank."""
    _listed("lengths", lengths)
    sizes = [whole_number("lengths", length, 0) for length in lengths]
    whole_number("sum of lengths", sum(sizes), 0, MOST_POSITIONS)
    stops = np.cumsum(sizes, dtype=np.int64)
    return Layout(tuple(np.arange(b - n, b) for n, b in zip(sizes, stops, strict=True)))


def from_owned(owned: Sequence[ArrayLike]) -> Layout:
    """A layout from the positions of each rank, in the order in which it stores them."""
    _listed("owned", owned)
    return Layout(tuple(any_array(f"owned[{rank}]", pos) for rank, pos in enumerate(owned)))


def per_document(
    cu_seqlens: ArrayLike, cp_size: int, layout: Callable[[int, int], Layout] = zigzag
) -> Layout:
    """`layout` applied to every packed document on its own, so that each document is balanced.

    Shapes: cu_seqlens (documents + 1,), where each document starts and the last one ends.
    Raises: ValueError unless cu_seqlens starts at 0 and never falls.

    >>> [pos.tolist() for pos in per_document([0, 4, 8], cp_size=2).owned]
    [[0, 3, 4, 7], [1, 2, 5, 6]]
    """
    bounds = document_bounds("cu_seqlens", cu_seqlens)
    shares: list[list[Array]] = [[] for _ in range(_sizes(0, cp_size)[1])]
    if not callable(layout):
        raise expected("layout", "a function of (seq_len, cp_size)", shown(layout))
    for start, stop in itertools.pairwise(bounds):
        document = layout(int(stop - start), cp_size)
        if not isinstance(document, Layout):
            raise expected("layout", "a function that returns a Layout", shown(document))
        if (document.cp_size, document.seq_len) != (cp_size, stop - start):
            found = f"{document.cp_size} ranks, {document.seq_len} positions"
            raise expected("layout", f"{cp_size} ranks, {stop - start} positions", found)
        for share, pos in zip(shares, document.owned, strict=True):
            share.append(start + pos)
    return Layout(tuple(np.concatenate([np.arange(0), *share]) for share in shares))


def _pieces(seq_len: int, count: int) -> list[Array]:
    seq_len, count = _sizes(seq_len, count)
    return [np.arange(i * seq_len // count, (i + 1) * seq_len // count) for i in range(count)]


def _sizes(seq_len: int, cp_size: int) -> tuple[int, int]:
    positions = whole_number("seq_len", seq_len, 0, MOST_POSITIONS)
    return positions, whole_number("cp_size", cp_size, 1, MOST_RANKS)


def _listed(argument: str, value: object) -> None:
    if not isinstance(value, list | tuple | np.ndarray) or getattr(value, "ndim", 1) == 0:
        raise expected(argument, "a list with one entry per rank", type(value).__name__)


def _others(array: Array, axis: int) -> tuple[int, ...]:
    """The shape without one axis."""
    return tuple(np.delete(array.shape, axis).tolist())
