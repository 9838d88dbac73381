"""Who may see whom, decided from global positions and document ids alone.

Owns the attention relation and its verdict on a block of scores. Knows nothing of ranks or
layouts: moving a token to another rank cannot change what it sees.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import Array, any_array, expected, index_array, integers, truth, whole_number

Verdict = Literal["empty", "full", "partial"]


@dataclass(frozen=True, eq=False)
class Visibility:
    """The rule by which query position i may attend to key position j; all parts must agree.

    causal: j ≤ i. window n: the n latest keys including self if causal, else abs(i - j) < n.
    documents: one id per global position, positions of equal id see each other; -1 is padding,
    which sees nothing and is seen by none. relation: any bool matrix (S, S), for teaching.

    Raises: ValueError for a window below 1, ids that are not integers ≥ -1, or a relation that is
        not a square bool matrix.
    """

    causal: bool = True
    window: int | None = None
    documents: Array | None = None
    relation: Array | None = None

    def __post_init__(self) -> None:
        truth("causal", self.causal)
        if self.window is not None:
            object.__setattr__(self, "window", whole_number("window", self.window, 1))
        if self.documents is not None:
            object.__setattr__(self, "documents", _document_ids(self.documents))
        if self.relation is not None:
            object.__setattr__(self, "relation", _square_bool(self.relation))

    def block(self, q_pos: ArrayLike, k_pos: ArrayLike) -> Array:
        """Bool (Q, K), True where the query may attend to the key.

        Shapes: q_pos (Q,) and k_pos (K,), global positions in any order.
        Raises: ValueError for positions that are not 1-D integers within the documents.

        >>> Visibility(window=2).block([2, 3], [1, 2, 3]).astype(int)
        array([[1, 1, 0],
               [0, 1, 1]])
        """
        q, k = self._positions("q_pos", q_pos), self._positions("k_pos", k_pos)
        behind = q[:, None] - k[None, :]  # (Q, K): how far the key lies before the query
        visible = behind >= 0 if self.causal else np.ones(behind.shape, bool)
        if self.window is not None:
            visible &= np.abs(behind) < self.window
        if self.documents is not None:
            q_doc, k_doc = self.documents[q], self.documents[k]
            visible &= (q_doc[:, None] == k_doc[None, :]) & (q_doc != -1)[:, None]
        if self.relation is not None:
            visible &= self.relation[np.ix_(q, k)]
        return visible

    def pairs(self, q_pos: ArrayLike, k_pos: ArrayLike) -> int:
        """How many (query, key) pairs of the block may attend: its work."""
        return int(np.count_nonzero(self.block(q_pos, k_pos)))

    def verdict(self, q_pos: ArrayLike, k_pos: ArrayLike) -> Verdict:
        """Whether the block can be skipped, needs no mask, or needs one. No rows or keys: empty."""
        block = self.block(q_pos, k_pos)
        if not block.any():
            return "empty"
        return "full" if block.all() else "partial"

    def padding(self, positions: ArrayLike) -> Array:
        """Bool (n,), True where the position is a padding slot (document -1)."""
        return padding_slots(self, "positions", positions)

    def _positions(self, argument: str, positions: ArrayLike) -> Array:
        pos = index_array(argument, positions)
        for name, limit in (("documents", self.documents), ("relation", self.relation)):
            if limit is not None and len(pos) and pos.max() >= len(limit):
                raise expected(argument, f"positions below {len(limit)} ({name})", pos.max())
        return pos


def padding_slots(rule: Visibility, argument: str, positions: ArrayLike) -> Array:
    """`Visibility.padding` for a caller whose own argument an error must name."""
    pos = rule._positions(argument, positions)
    return np.zeros(len(pos), bool) if rule.documents is None else rule.documents[pos] == -1


def _document_ids(documents: ArrayLike) -> Array:
    """A private, read-only copy of the ids."""
    ids = integers("documents", documents)
    if ids.size and ids.min() < -1:
        raise expected("documents", "ids of at least -1", ids.min())
    return _frozen(ids.copy())


def _square_bool(relation: ArrayLike) -> Array:
    """A private, read-only copy of the relation."""
    matrix = any_array("relation", relation).copy()
    if matrix.dtype != np.bool_ or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        received = f"{matrix.dtype} of shape {matrix.shape}"
        raise expected("relation", "a square bool matrix (S, S)", received)
    return _frozen(matrix)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
